// What a nano space lacks is there by name, and says so when it is used.
(() => {
  const ab = __agentbox;
  const refused = {
    net: ["the network", ["connect", "createConnection", "createServer", "Socket", "Server"]], tls: ["the network", ["connect", "createServer", "TLSSocket"]], dgram: ["the network", ["createSocket"]],
    http: ["the network", ["request", "get", "createServer", "Server", "Agent", "IncomingMessage", "ServerResponse"]], https: ["the network", ["request", "get", "createServer", "Agent"]],
    http2: ["the network", ["connect", "createServer"]], dns: ["the network", ["lookup", "resolve", "resolve4"]], "dns/promises": ["the network", ["lookup", "resolve"]],
    cluster: ["processes", ["fork"]], worker_threads: ["threads", ["Worker", "MessageChannel"]],
    v8: ["v8", ["serialize", "deserialize", "getHeapStatistics", "writeHeapSnapshot"]], inspector: ["inspector", ["open", "Session"]], repl: ["repl", ["start"]], tty: ["terminals", ["ReadStream", "WriteStream"]],
    sqlite: ["sqlite", ["DatabaseSync"]], wasi: ["wasi", ["WASI"]],
  };
  for (const [name, [what, functions]] of Object.entries(refused)) {
    ab.define(name, () => {
      const m = {};
      for (const f of functions) m[f] = { [f]: function () { throw ab.lacking(what, `${name}.${f} is not available: a nano space has no ${what.replace(/^the /, "")}`); } }[f];
      if (name === "tty") m.isatty = () => false;
      if (name === "worker_threads") Object.assign(m, { isMainThread: true, parentPort: null, workerData: null, threadId: 0 });
      if (name === "http") Object.assign(m, { METHODS: ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"], STATUS_CODES: { 200: "OK", 404: "Not Found", 500: "Internal Server Error" } });
      if (name === "net") Object.assign(m, { isIP: (s) => (/^\d+(\.\d+){3}$/.test(s) && s.split(".").every((n) => n < 256) ? 4 : /^[0-9a-f:]+$/i.test(s) && s.includes("::") | (s.split(":").length === 8) ? 6 : 0), isIPv4: (s) => m.isIP(s) === 4, isIPv6: (s) => m.isIP(s) === 6 });
      return m;
    });
  }
  ab.define("module", () => Object.assign(ab.Module, { createRequire: (p) => ab.requireFrom(p instanceof URL || String(p).startsWith("file:") ? ab.pathOf(String(p)) : String(p)), builtinModules: ab.names(), isBuiltin: (n) => { try { return ab.builtin(n.replace(/^node:/, "")) !== undefined; } catch { return false; } }, Module: ab.Module }));
  ab.define("constants", () => ab.builtin("fs").constants);
  ab.define("diagnostics_channel", () => ({ channel: (name) => ({ name, hasSubscribers: false, publish() {}, subscribe() {}, unsubscribe() {} }), hasSubscribers: () => false }));
  ab.define("punycode", () => ({ toASCII: (d) => ab.builtin("url").domainToASCII(d) }));
  ab.define("sys", () => ab.builtin("util"));
})();
