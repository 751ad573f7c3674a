// What a nano space lacks is there by name, and says so when it is used.
(() => {
  const ab = __agentbox;
  const refused = {
    net: ["the network", ["connect", "createConnection", "createServer", "Socket", "Server"]], tls: ["the network", ["connect", "createServer", "TLSSocket"]], dgram: ["the network", ["createSocket"]],
    http: ["the network", ["request", "get", "createServer", "Server", "Agent", "IncomingMessage", "ServerResponse"]], https: ["the network", ["request", "get", "createServer", "Agent"]],
    http2: ["the network", ["connect", "createServer"]], dns: ["the network", ["lookup", "resolve", "resolve4"]], "dns/promises": ["the network", ["lookup", "resolve"]],
    cluster: ["processes", ["fork"]], worker_threads: ["threads", ["Worker", "MessageChannel"]],
    inspector: ["inspector", ["open", "Session"]], repl: ["repl", ["start"]], tty: ["terminals", ["ReadStream", "WriteStream"]],
    sqlite: ["sqlite", ["DatabaseSync"]], wasi: ["wasi", ["WASI"]],
  };
  for (const [name, [what, functions]] of Object.entries(refused)) {
    ab.define(name, () => {
      const m = {};
      for (const f of functions) m[f] = { [f]: function () { throw ab.lacking(what, `${name}.${f} is not available: a nano space has no ${what.replace(/^the /, "")}`); } }[f];
      if (name === "tty") m.isatty = () => false;
      if (name === "worker_threads") Object.assign(m, { isMainThread: true, parentPort: null, workerData: null, threadId: 0 });
      if (name === "http") {
        const words = { 100: "Continue", 101: "Switching Protocols", 200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 206: "Partial Content", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable", 408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed", 413: "Payload Too Large", 415: "Unsupported Media Type", 418: "I'm a Teapot", 422: "Unprocessable Entity", 429: "Too Many Requests", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout" };
        Object.assign(m, { METHODS: ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"], STATUS_CODES: words });
      }
      if (name === "dns") m.promises = { lookup: m.lookup, resolve: m.resolve };
      if (name === "net") Object.assign(m, { isIP: (s) => (/^\d+(\.\d+){3}$/.test(s) && s.split(".").every((n) => n < 256) ? 4 : /^[0-9a-f:]+$/i.test(s) && s.includes("::") | (s.split(":").length === 8) ? 6 : 0), isIPv4: (s) => m.isIP(s) === 4, isIPv6: (s) => m.isIP(s) === 6 });
      return m;
    });
  }
  ab.define("module", () => Object.assign(ab.Module, { createRequire: (p) => ab.requireFrom(p instanceof URL || String(p).startsWith("file:") ? ab.pathOf(String(p)) : String(p)), builtinModules: ab.names(), isBuiltin: (n) => { try { return ab.builtin(n.replace(/^node:/, "")) !== undefined; } catch { return false; } }, Module: ab.Module }));
  ab.define("constants", () => ab.builtin("fs").constants);
  ab.define("diagnostics_channel", () => {
    const all = new Map();
    class Channel {
      constructor(name) { this.name = name; Object.defineProperty(this, "heard", { value: new Set() }); }
      get hasSubscribers() { return this.heard.size > 0; }
      subscribe(f) { this.heard.add(f); }
      unsubscribe(f) { return this.heard.delete(f); }
      publish(m) { for (const f of this.heard) f(m, this.name); }
    }
    const channel = (name) => all.get(name) ?? (all.set(name, new Channel(name)), all.get(name));
    return { Channel, channel, hasSubscribers: (name) => channel(name).hasSubscribers, subscribe: (name, f) => channel(name).subscribe(f), unsubscribe: (name, f) => channel(name).unsubscribe(f) };
  });
  ab.define("sys", () => ab.builtin("util"));
})();
