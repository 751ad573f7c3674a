// Node's modules that need no host: events, path, util, assert, url, timers, querystring, string_decoder, os, stream.
(() => {
  const ab = __agentbox;
  const custom = Symbol.for("nodejs.util.inspect.custom");
  const argument = ab.argument;

  // path
  const clean = (parts, above) => {
    const out = [];
    for (const p of parts) {
      if (p === "" || p === ".") continue;
      if (p === "..") { if (out.length > 0 && out.at(-1) !== "..") out.pop(); else if (above) out.push(".."); } else out.push(p);
    }
    return out;
  };
  const text = (name, v) => { if (typeof v !== "string") throw argument(name, "string", v); return v; };
  const path = {
    sep: "/", delimiter: ":",
    resolve(...parts) {
      let whole = "";
      for (let i = parts.length - 1; i >= 0 && !whole.startsWith("/"); i--) { text(`paths[${i}]`, parts[i]); if (parts[i] !== "") whole = whole === "" ? parts[i] : `${parts[i]}/${whole}`; }
      if (!whole.startsWith("/")) whole = `${ab.cwd()}/${whole}`;
      return `/${clean(whole.split("/"), false).join("/")}`;
    },
    normalize(p) {
      text("path", p);
      if (p === "") return ".";
      const rooted = p.startsWith("/");
      let n = clean(p.split("/"), !rooted).join("/");
      if (n === "" && !rooted) n = ".";
      if (n !== "" && p.endsWith("/")) n += "/";
      return rooted ? `/${n}` : n;
    },
    isAbsolute: (p) => text("path", p).startsWith("/"),
    join(...parts) { const s = parts.map((p) => text("path", p)).filter((p) => p !== "").join("/"); return s === "" ? "." : path.normalize(s); },
    relative(from, to) {
      const a = path.resolve(text("from", from)).split("/").filter(Boolean);
      const b = path.resolve(text("to", to)).split("/").filter(Boolean);
      let n = 0;
      while (n < a.length && n < b.length && a[n] === b[n]) n++;
      return [...a.slice(n).map(() => ".."), ...b.slice(n)].join("/");
    },
    dirname(p) {
      text("path", p);
      const s = p.replace(/\/+$/, "");
      if (s === "") return p.startsWith("/") ? "/" : ".";
      const i = s.lastIndexOf("/");
      return i < 0 ? "." : i === 0 ? "/" : i === 1 && s[0] === "/" ? "//" : s.slice(0, i);
    },
    basename(p, suffix) {
      text("path", p);
      if (suffix !== undefined) text("suffix", suffix);
      const s = p.replace(/\/+$/, "");
      const b = s.slice(s.lastIndexOf("/") + 1);
      return !suffix || !b.endsWith(suffix) ? b : s === suffix ? "" : b === suffix ? b : b.slice(0, -suffix.length);
    },
    extname(p) { const b = path.basename(p); const i = b.lastIndexOf("."); return i <= 0 || b === ".." ? "" : b.slice(i); },
    parse(p) {
      text("path", p);
      const root = p.startsWith("/") ? "/" : "";
      const s = p.replace(/\/+$/, "");
      const start = Math.max(root.length, s.lastIndexOf("/") + 1);
      const base = s.slice(start);
      const ext = base === "" ? "" : path.extname(base);
      return { root, dir: start > root.length ? s.slice(0, start - 1) : root, base, ext, name: ext ? base.slice(0, -ext.length) : base };
    },
    toNamespacedPath: (p) => p,
    matchesGlob: (p, g) => ab.glob(g).test(p),
  };
  // glob makes an expression of a pattern of file names.
  ab.glob = (g) => {
    let s = "";
    for (let i = 0; i < g.length; i++) {
      const c = g[i];
      if (c === "*") {
        if (g[i + 1] === "*") { i++; if (g[i + 1] === "/") { i++; s += "(?:[^/]+/)*"; } else s += ".*"; } else s += "[^/]*";
      } else if (c === "?") s += "[^/]";
      else if (c === "{") s += "(?:";
      else if (c === "}") s += ")";
      else if (c === ",") s += "|";
      else if (c === "[") { const j = g.indexOf("]", i + 1); if (j < 0) s += "\\["; else { s += g.slice(i, j + 1).replace("[!", "[^"); i = j; } } else s += c.replace(/[.+^$()|\\]/g, "\\$&");
    }
    return new RegExp(`^${s}$`);
  };
  ab.define("path", () => path);
  ab.define("path/posix", () => path);

  // util
  const types = {
    isDate: (v) => v instanceof Date, isRegExp: (v) => v instanceof RegExp, isMap: (v) => v instanceof Map, isSet: (v) => v instanceof Set, isPromise: (v) => v instanceof Promise,
    isNativeError: (v) => v instanceof Error, isTypedArray: (v) => ArrayBuffer.isView(v) && !(v instanceof DataView), isUint8Array: (v) => v instanceof Uint8Array, isArrayBuffer: (v) => v instanceof ArrayBuffer,
    isAnyArrayBuffer: (v) => v instanceof ArrayBuffer, isArrayBufferView: (v) => ArrayBuffer.isView(v), isDataView: (v) => v instanceof DataView, isWeakMap: (v) => v instanceof WeakMap, isWeakSet: (v) => v instanceof WeakSet,
    isAsyncFunction: (v) => typeof v === "function" && v.constructor?.name === "AsyncFunction", isGeneratorFunction: (v) => typeof v === "function" && v.constructor?.name === "GeneratorFunction",
    isGeneratorObject: (v) => v?.[Symbol.toStringTag] === "Generator", isProxy: () => false, isBoxedPrimitive: (v) => v instanceof Number || v instanceof String || v instanceof Boolean || v instanceof BigInt || v instanceof Symbol,
    isSymbolObject: (v) => v instanceof Symbol, isNumberObject: (v) => v instanceof Number, isStringObject: (v) => v instanceof String, isModuleNamespaceObject: (v) => v?.[Symbol.toStringTag] === "Module",
  };
  const kindOf = (v) => Object.prototype.toString.call(v);
  // same compares deeply; strict is the way of deepStrictEqual.
  const same = (a, b, strict, seen = new Map()) => {
    if (strict ? Object.is(a, b) : a == b || (a !== a && b !== b)) return true; // eslint-disable-line
    if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
    if (strict && Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
    if (kindOf(a) !== kindOf(b) || Array.isArray(a) !== Array.isArray(b)) return false;
    if (seen.get(a) === b) return true;
    seen.set(a, b);
    if (a instanceof Date) { if (a.getTime() !== b.getTime() && !(Number.isNaN(a.getTime()) && Number.isNaN(b.getTime()))) return false; }
    else if (a instanceof RegExp) { if (String(a) !== String(b) || a.lastIndex !== b.lastIndex) return false; }
    else if (a instanceof Error) { if (a.message !== b.message || a.name !== b.name) return false; }
    else if (types.isBoxedPrimitive(a)) { if (!types.isBoxedPrimitive(b) || !Object.is(a.valueOf(), b.valueOf())) return false; }
    else if (ArrayBuffer.isView(a) || a instanceof ArrayBuffer) {
      const x = new Uint8Array(...ab.view(a));
      const y = new Uint8Array(...ab.view(b));
      return x.length === y.length && x.every((n, i) => n === y[i]);
    } else if (a instanceof Set) {
      if (a.size !== b.size) return false;
      const rest = [...b];
      for (const x of a) {
        if (b.has(x)) { const i = rest.indexOf(x); if (i >= 0) { rest.splice(i, 1); continue; } }
        const i = rest.findIndex((y) => same(x, y, strict, new Map(seen)));
        if (i < 0) return false;
        rest.splice(i, 1);
      }
    } else if (a instanceof Map) {
      if (a.size !== b.size) return false;
      for (const [k, v] of a) {
        if (b.has(k)) { if (!same(v, b.get(k), strict, seen)) return false; continue; }
        if (![...b].some(([j, w]) => same(k, j, strict, new Map(seen)) && same(v, w, strict, new Map(seen)))) return false;
      }
    }
    const keys = (o) => [...Object.keys(o), ...(strict ? Object.getOwnPropertySymbols(o).filter((s) => Object.getOwnPropertyDescriptor(o, s).enumerable) : [])];
    const mine = keys(a);
    if (mine.length !== keys(b).length || (Array.isArray(a) && a.length !== b.length)) return false;
    return mine.every((k) => Object.hasOwn(b, k) && same(a[k], b[k], strict, seen));
  };
  const promisified = Symbol.for("nodejs.util.promisify.custom");
  const promisify = (f) => {
    if (typeof f !== "function") throw argument("original", "function", f);
    if (f[promisified]) return f[promisified];
    return Object.defineProperty(function (...args) {
      return new Promise((resolve, reject) => f.call(this, ...args, (e, ...values) => (e ? reject(e) : resolve(values[0]))));
    }, "name", { value: f.name });
  };
  promisify.custom = promisified;
  setTimeout[promisified] = (ms, v) => new Promise((resolve) => setTimeout(resolve, ms, v));
  setImmediate[promisified] = (v) => new Promise((resolve) => setImmediate(resolve, v));
  const styles = { reset: [0, 0], bold: [1, 22], dim: [2, 22], italic: [3, 23], underline: [4, 24], inverse: [7, 27], black: [30, 39], red: [31, 39], green: [32, 39], yellow: [33, 39], blue: [34, 39], magenta: [35, 39], cyan: [36, 39], white: [37, 39], gray: [90, 39], grey: [90, 39] };
  ab.same = same;
  ab.define("util", () => ({
    inspect: ab.inspect, format: ab.format, formatWithOptions: (o, ...a) => ab.formatWith(o, ...a), promisify, types, parseArgs: ab.parseArgs, TextEncoder, TextDecoder, isDeepStrictEqual: (a, b) => same(a, b, true),
    callbackify: (f) => function (...args) { const done = args.pop(); Promise.resolve(f.apply(this, args)).then((v) => ab.nextTick(done, null, v), (e) => ab.nextTick(done, e ?? new Error("rejected"))); },
    inherits(child, parent) { Object.defineProperty(child, "super_", { value: parent, writable: true, configurable: true }); Object.setPrototypeOf(child.prototype, parent.prototype); },
    deprecate: (f) => f, debuglog: () => Object.assign(() => {}, { enabled: false }), debug: () => () => {}, isArray: Array.isArray,
    stripVTControlCharacters: (s) => String(s).replace(/\x1b\[[0-?]*[ -/]*[@-~]/g, ""), toUSVString: (s) => String(s).toWellFormed(),
    styleText: (style, s) => [style].flat().reduceRight((t, n) => { if (!styles[n]) throw argument("format", "a style", n); return `\x1b[${styles[n][0]}m${t}\x1b[${styles[n][1]}m`; }, String(s)),
    aborted: (signal) => new Promise((resolve) => { if (signal.aborted) resolve(); else signal.addEventListener("abort", () => resolve(), { once: true }); }), getSystemErrorName: (n) => `E${n}`,
  }));
  ab.define("util/types", () => types);

  // url
  const fileURLToPath = (u) => {
    const url = typeof u === "string" ? new URL(u) : u;
    if (url.protocol !== "file:") throw ab.error(TypeError, "ERR_INVALID_URL_SCHEME", "The URL must be of scheme file");
    return ab.decodePercent(url.pathname);
  };
  const pathToFileURL = (p) => new URL(`file://${ab.encodePath(path.resolve(p) + (p.endsWith("/") && p !== "/" ? "/" : "")).replace(/[?#]/g, encodeURIComponent)}`);
  ab.pathOf = fileURLToPath;
  ab.define("url", () => ({
    URL, URLSearchParams, fileURLToPath, pathToFileURL, domainToASCII: (d) => { try { return new URL(`http://${d}`).hostname; } catch { return ""; } },
    format: (u) => (typeof u === "string" ? u : u.href ?? `${u.protocol ? `${u.protocol.replace(/:?$/, ":")}//` : ""}${u.host ?? `${u.hostname ?? ""}${u.port ? `:${u.port}` : ""}`}${u.pathname ?? ""}${u.search ?? (u.query ? `?${ab.builtin("querystring").stringify(u.query)}` : "")}${u.hash ?? ""}`),
    parse: (s, q) => {
      let u;
      try { u = new URL(s); } catch { const r = new URL(s, "http://x"); return { protocol: null, host: null, hostname: null, port: null, search: r.search || null, query: q ? Object.fromEntries(r.searchParams) : r.search.slice(1) || null, pathname: r.pathname, path: r.pathname + r.search, hash: r.hash || null, href: s }; }
      return { protocol: u.protocol, slashes: true, auth: u.username ? `${u.username}:${u.password}` : null, host: u.host, port: u.port || null, hostname: u.hostname, hash: u.hash || null, search: u.search || null, query: q ? Object.fromEntries(u.searchParams) : u.search.slice(1) || null, pathname: u.pathname, path: u.pathname + u.search, href: u.href };
    },
    resolve: (a, b) => { try { return new URL(b, a).href; } catch { const r = new URL(b, new URL(a, "resolve://x")); return r.protocol === "resolve:" ? r.pathname + r.search + r.hash : r.href; } },
  }));
  ab.define("querystring", () => {
    const q = {
      escape: encodeURIComponent, unescape: (s) => ab.decodePercent(s),
      stringify: (o, sep = "&", eq = "=") => Object.entries(o ?? {}).flatMap(([k, v]) => [v].flat().map((x) => `${encodeURIComponent(k)}${eq}${encodeURIComponent(x ?? "")}`)).join(sep),
      parse(s, sep = "&", eq = "=") {
        const out = Object.create(null);
        for (const part of String(s).split(sep)) {
          if (part === "") continue;
          const i = part.indexOf(eq);
          const [k, v] = (i < 0 ? [part, ""] : [part.slice(0, i), part.slice(i + eq.length)]).map((x) => ab.decodePercent(x.replaceAll("+", " ")));
          if (k in out) out[k] = [out[k], v].flat(); else out[k] = v;
        }
        return out;
      },
    };
    return Object.assign(q, { encode: q.stringify, decode: q.parse });
  });

  // timers
  ab.define("timers", () => ({ setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate, promises: ab.builtin("timers/promises") }));
  ab.define("timers/promises", () => {
    const wait = (ms, v, o) => new Promise((resolve, reject) => {
      if (o?.signal?.aborted) { reject(o.signal.reason); return; }
      const t = setTimeout(resolve, ms, v);
      if (o?.ref === false) t.unref();
      o?.signal?.addEventListener("abort", () => { clearTimeout(t); reject(Object.assign(new Error("The operation was aborted"), { name: "AbortError", code: "ABORT_ERR", cause: o.signal.reason })); }, { once: true });
    });
    return {
      setTimeout: wait, setImmediate: (v) => new Promise((resolve) => setImmediate(resolve, v)), async *setInterval(ms, v) { for (;;) yield await wait(ms, v); },
      scheduler: { wait: (ms, o) => wait(ms, undefined, o), yield: () => new Promise((resolve) => setImmediate(resolve)) },
    };
  });

  ab.define("string_decoder", () => ({
    StringDecoder: class StringDecoder {
      constructor(e) {
        this.encoding = ab.encodingOf(e);
        // What is no whole character, or no whole group of base64, waits for what comes.
        const text = { utf8: "utf-8", utf16le: "utf-16le" }[this.encoding];
        const group = /^base64/.test(this.encoding) ? 3 : 1;
        const decoder = text ? new TextDecoder(text, { ignoreBOM: true }) : null;
        let rest = Buffer.alloc(0);
        Object.defineProperty(this, "decode", { value: (b, last) => {
          if (decoder) return b ? decoder.decode(b, { stream: !last }) : decoder.decode();
          rest = Buffer.concat([rest, ...(b ? [Buffer.from(b)] : [])]);
          const n = last ? rest.length : rest.length - (rest.length % group);
          const out = rest.toString(this.encoding, 0, n);
          rest = rest.subarray(n);
          return out;
        } });
      }
      write(b) { return typeof b === "string" ? b : this.decode(b, false); }
      end(b) { return this.decode(b, true); }
    },
  }));

  ab.define("os", () => ({
    EOL: "\n", devNull: "/dev/null", platform: () => "linux", type: () => "Linux", arch: () => "wasm32", machine: () => "wasm32", release: () => "6.0.0", version: () => "agentbox nano", hostname: () => "agentbox",
    homedir: () => ab.process.env.HOME ?? "/", tmpdir: () => ab.process.env.TMPDIR ?? "/tmp", endianness: () => "LE", cpus: () => [{ model: "WebAssembly", speed: 1000, times: { user: 0, nice: 0, sys: 0, idle: 0, irq: 0 } }],
    availableParallelism: () => 1, totalmem: () => 268435456, freemem: () => 134217728, loadavg: () => [0, 0, 0], uptime: () => performance.now() / 1000, networkInterfaces: () => ({}),
    userInfo: () => ({ uid: 1000, gid: 1000, username: ab.process.env.USER ?? "agent", homedir: ab.process.env.HOME ?? "/", shell: "/bin/sh" }), getPriority: () => 0, setPriority() {},
    constants: { signals: { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGILL: 4, SIGTRAP: 5, SIGABRT: 6, SIGBUS: 7, SIGFPE: 8, SIGKILL: 9, SIGUSR1: 10, SIGSEGV: 11, SIGUSR2: 12, SIGPIPE: 13, SIGALRM: 14, SIGTERM: 15, SIGCHLD: 17, SIGCONT: 18, SIGSTOP: 19 }, errno: { EPERM: 1, ENOENT: 2, EIO: 5, EBADF: 9, EAGAIN: 11, ENOMEM: 12, EACCES: 13, EBUSY: 16, EEXIST: 17, EXDEV: 18, ENOTDIR: 20, EISDIR: 21, EINVAL: 22, EMFILE: 24, ENOSPC: 28, EROFS: 30, EPIPE: 32, ENAMETOOLONG: 36, ENOTEMPTY: 39, ELOOP: 40, ETIMEDOUT: 110, ECONNREFUSED: 111 }, priority: { PRIORITY_NORMAL: 0, PRIORITY_LOW: 19 } },
  }));
})();
