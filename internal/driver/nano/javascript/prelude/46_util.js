// The rest of util, querystring and the old functions of url.
(() => {
  const ab = __agentbox;
  const { argument } = ab;
  const bad = (code, message, Type = TypeError) => ab.error(Type, code, message);
  const text = (name, v) => { if (typeof v !== "string") throw argument(name, "string", v); return v; };
  const func = (name, v) => { if (typeof v !== "function") throw argument(name, "function", v); return v; };
  const util = ab.builtin("util");

  // Styles of terminals.
  const colors = {
    reset: [0, 0], bold: [1, 22], dim: [2, 22], italic: [3, 23], underline: [4, 24], blink: [5, 25], inverse: [7, 27], hidden: [8, 28], strikethrough: [9, 29], doubleunderline: [21, 24],
    black: [30, 39], red: [31, 39], green: [32, 39], yellow: [33, 39], blue: [34, 39], magenta: [35, 39], cyan: [36, 39], white: [37, 39], bgBlack: [40, 49], bgRed: [41, 49], bgGreen: [42, 49], bgYellow: [43, 49], bgBlue: [44, 49], bgMagenta: [45, 49], bgCyan: [46, 49], bgWhite: [47, 49],
    framed: [51, 54], overlined: [53, 55], gray: [90, 39], redBright: [91, 39], greenBright: [92, 39], yellowBright: [93, 39], blueBright: [94, 39], magentaBright: [95, 39], cyanBright: [96, 39], whiteBright: [97, 39],
    bgGray: [100, 49], bgRedBright: [101, 49], bgGreenBright: [102, 49], bgYellowBright: [103, 49], bgBlueBright: [104, 49], bgMagentaBright: [105, 49], bgCyanBright: [106, 49], bgWhiteBright: [107, 49],
  };
  const also = { grey: "gray", blackBright: "gray", bgGrey: "bgGray", bgBlackBright: "bgGray", faint: "dim", crossedout: "strikethrough", strikeThrough: "strikethrough", crossedOut: "strikethrough", conceal: "hidden", swapColors: "inverse", swapcolors: "inverse", doubleUnderline: "doubleunderline" };
  Object.assign(ab.inspect.colors, colors);
  for (const [k, of] of Object.entries(also)) Object.defineProperty(ab.inspect.colors, k, { value: colors[of], writable: true, configurable: true });
  Object.assign(ab.inspect.styles, { special: "cyan", number: "yellow", bigint: "yellow", boolean: "yellow", undefined: "grey", null: "bold", string: "green", symbol: "green", date: "magenta", regexp: "red", module: "underline" });
  Object.assign(ab.inspect.defaultOptions, { showHidden: false, depth: 2, colors: false, customInspect: true, showProxy: false, maxArrayLength: 100, maxStringLength: 10000, breakLength: 80, compact: 3, sorted: false, getters: false, numericSeparator: false });
  const styleText = (format, s, o = {}) => {
    text("text", s);
    const names = [format].flat();
    const known = { ...colors, ...Object.fromEntries(Object.entries(also).map(([k, of]) => [k, colors[of]])) };
    let out = s;
    for (const n of names) if (n !== "none" && !known[n] && !/^#([0-9a-f]{3}|[0-9a-f]{6})$/i.test(n)) throw bad("ERR_INVALID_ARG_VALUE", `The argument 'format' must be one of: ${Object.keys(known).map((k) => `'${k}'`).join(", ")}. Received ${ab.inspect(n)}`);
    if (o.validateStream !== false) {
      const stream = o.stream ?? ab.process.stdout;
      const { env } = ab.process;
      if (!(env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== "0") && (!stream.isTTY || env.NO_COLOR !== undefined)) return s;
    }
    for (const n of names.reverse()) if (known[n]) { const [on, off] = known[n]; out = `\x1b[${on}m${out.replaceAll(`\x1b[${off}m`, `\x1b[${off}m\x1b[${on}m`)}\x1b[${off}m`; }
    return out;
  };

  // What values are.
  const { types } = util;
  const tagged = (name) => (v) => v !== null && typeof v === "object" && Object.prototype.toString.call(v) === `[object ${name}]`;
  for (const n of ["Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array", "Float16Array", "Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array"]) types[`is${n}`] = (v) => ArrayBuffer.isView(v) && !(v instanceof DataView) && v[Symbol.toStringTag] === n;
  const kindOf = (v) => { let p = v; while (p) { p = Object.getPrototypeOf(p); const t = p && Object.getOwnPropertyDescriptor(p, Symbol.toStringTag)?.value; if (t) return t; } return ""; };
  Object.assign(types, {
    isProxy: (v) => v !== null && (typeof v === "object" || typeof v === "function") && ab.proxied.has(v), isArgumentsObject: tagged("Arguments"), isMapIterator: tagged("Map Iterator"), isSetIterator: tagged("Set Iterator"), isGeneratorObject: (v) => tagged("Generator")(v) || tagged("AsyncGenerator")(v),
    isAsyncFunction: (v) => typeof v === "function" && /^Async/.test(kindOf(v)), isGeneratorFunction: (v) => typeof v === "function" && /GeneratorFunction$/.test(kindOf(v)), isExternal: () => false, isBigIntObject: (v) => v instanceof BigInt, isBooleanObject: (v) => v instanceof Boolean,
    isSharedArrayBuffer: (v) => Boolean(globalThis.SharedArrayBuffer) && v instanceof SharedArrayBuffer, isKeyObject: (v) => v instanceof ab.builtin("crypto").KeyObject, isCryptoKey: (v) => v instanceof CryptoKey, isModuleNamespaceObject: tagged("Module"), isEventTarget: (v) => v instanceof EventTarget,
  });
  delete types.isEventTarget;

  // Numbers of the system's errors.
  const errnos = [
    ["EPERM", 1, "operation not permitted"], ["ENOENT", 2, "no such file or directory"], ["ESRCH", 3, "no such process"], ["EINTR", 4, "interrupted system call"], ["EIO", 5, "i/o error"], ["ENXIO", 6, "no such device or address"], ["E2BIG", 7, "argument list too long"], ["EBADF", 9, "bad file descriptor"], ["EAGAIN", 11, "resource temporarily unavailable"],
    ["ENOMEM", 12, "not enough memory"], ["EACCES", 13, "permission denied"], ["EFAULT", 14, "bad address in system call argument"], ["EBUSY", 16, "resource busy or locked"], ["EEXIST", 17, "file already exists"], ["EXDEV", 18, "cross-device link not permitted"], ["ENODEV", 19, "no such device"], ["ENOTDIR", 20, "not a directory"], ["EISDIR", 21, "illegal operation on a directory"],
    ["EINVAL", 22, "invalid argument"], ["ENFILE", 23, "file table overflow"], ["EMFILE", 24, "too many open files"], ["ENOTTY", 25, "inappropriate ioctl for device"], ["ETXTBSY", 26, "text file is busy"], ["EFBIG", 27, "file too large"], ["ENOSPC", 28, "no space left on device"], ["ESPIPE", 29, "invalid seek"], ["EROFS", 30, "read-only file system"], ["EMLINK", 31, "too many links"], ["EPIPE", 32, "broken pipe"], ["ERANGE", 34, "result too large"],
    ["ENAMETOOLONG", 36, "name too long"], ["ENOSYS", 38, "function not implemented"], ["ENOTEMPTY", 39, "directory not empty"], ["ELOOP", 40, "too many symbolic links encountered"], ["EADDRINUSE", 98, "address already in use"], ["EADDRNOTAVAIL", 99, "address not available"], ["ENETUNREACH", 101, "network is unreachable"], ["ECONNABORTED", 103, "software caused connection abort"], ["ECONNRESET", 104, "connection reset by peer"], ["ENOTCONN", 107, "socket is not connected"], ["ETIMEDOUT", 110, "connection timed out"], ["ECONNREFUSED", 111, "connection refused"], ["EHOSTUNREACH", 113, "host is unreachable"], ["EALREADY", 114, "connection already in progress"], ["ECANCELED", 125, "operation canceled"], ["EOF", 4095, "end of file"],
  ];
  const byNumber = new Map(errnos.map(([name, n, message]) => [-n, [name, message]]));
  const errno = (n) => {
    if (typeof n !== "number") throw argument("err", "number", n);
    if (n >= 0 || !Number.isSafeInteger(n)) throw bad("ERR_OUT_OF_RANGE", `The value of "err" is out of range. It must be a negative integer. Received ${ab.inspect(n)}`, RangeError);
    return byNumber.get(n);
  };

  // Media types.
  const token = /^[!#$%&'*+\-.^_`|~\w]+$/;
  class MIMEParams {
    #all = new Map();
    get(k) { return this.#all.get(String(k)) ?? null; }
    has(k) { return this.#all.has(String(k)); }
    set(k, v) { this.#all.set(String(k), String(v)); }
    delete(k) { this.#all.delete(String(k)); }
    entries() { return this.#all.entries(); }
    keys() { return this.#all.keys(); }
    values() { return this.#all.values(); }
    [Symbol.iterator]() { return this.#all.entries(); }
    toString() { return [...this.#all].map(([k, v]) => `${k}=${token.test(v) ? v : `"${v.replace(/["\\]/g, "\\$&")}"`}`).join(";"); }
    toJSON() { return this.toString(); }
  }
  class MIMEType {
    #type;
    #subtype;
    #params = new MIMEParams();
    constructor(input) {
      const s = `${input}`.trim();
      const invalid = (what, i) => bad("ERR_INVALID_MIME_SYNTAX", `The MIME syntax for a ${what} in ${JSON.stringify(String(input))} is invalid${i === undefined ? "" : ` at ${i}`}`);
      const m = /^([^/]*)\/([^;]*)(.*)$/s.exec(s);
      if (!m || !token.test(m[1])) throw invalid("type", m ? 0 : undefined);
      if (!token.test(m[2].trimEnd())) throw invalid("subtype");
      this.#type = m[1].toLowerCase();
      this.#subtype = m[2].trimEnd().toLowerCase();
      for (const p of m[3].matchAll(/;\s*([^=;]+)(?:=("(?:[^"\\]|\\.)*"|[^;]*))?/g)) {
        const k = p[1].trim().toLowerCase();
        if (!token.test(k) || p[2] === undefined || this.#params.has(k)) continue;
        this.#params.set(k, p[2].startsWith('"') ? p[2].slice(1, -1).replace(/\\(.)/g, "$1") : p[2].trim());
      }
    }
    get type() { return this.#type; }
    get subtype() { return this.#subtype; }
    get essence() { return `${this.#type}/${this.#subtype}`; }
    get params() { return this.#params; }
    toString() { const p = this.#params.toString(); return p ? `${this.essence};${p}` : this.essence; }
    toJSON() { return this.toString(); }
  }
  // parseEnv reads a text of the form of .env.
  const parseEnv = (content) => {
    text("content", content);
    const out = Object.create(null);
    const line = /^[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*=[ \t]*(?:"((?:[^"])*)"|'((?:[^'])*)'|`((?:[^`])*)`|([^\n#]*))?[^\n]*$/gm;
    for (const m of content.replace(/\r\n?/g, "\n").matchAll(line)) out[m[1]] = m[2] !== undefined ? m[2].replace(/\\n/g, "\n") : m[3] ?? m[4] ?? (m[5] ?? "").trim();
    return out;
  };
  // difference is util.diff: 0 for what both have, 1 for what is added to the second to have the first, -1 the other way.
  const difference = (a, b) => {
    if (a === b) return [];
    const n = a.length;
    const m = b.length;
    const longest = Array.from({ length: n + 1 }, () => new Uint32Array(m + 1));
    for (let i = n - 1; i >= 0; i--) for (let j = m - 1; j >= 0; j--) longest[i][j] = a[i] === b[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
    const out = [];
    for (let i = 0, j = 0; i < n || j < m;) {
      if (i < n && j < m && a[i] === b[j]) { out.push([0, a[i]]); i++; j++; } else if (j >= m || (i < n && longest[i + 1][j] >= longest[i][j + 1])) out.push([1, a[i++]]); else out.push([-1, b[j++]]);
    }
    return out;
  };
  const deprecated = new Set();
  const promised = util.promisify;
  Object.assign(util, {
    styleText, parseEnv, MIMEType, MIMEParams, diff: (a, b) => difference(a, b),
    stripVTControlCharacters: (s) => text("str", s).replace(/[\u001B\u009B][[\]()#;?]*(?:(?:(?:(?:;[-a-zA-Z\d/#&.:=?%@~_]+)*|[a-zA-Z\d]+(?:;[-a-zA-Z\d/#&.:=?%@~_]*)*)?(?:\u0007|\u001B\u005C|\u009C))|(?:(?:\d{1,4}(?:;\d{0,4})*)?[\dA-PR-TZcf-nq-uy=><~]))/g, ""),
    inherits(child, parent) {
      if (child === undefined || child === null) throw argument("ctor", "function", child);
      if (parent === undefined || parent === null) throw argument("superCtor", "function", parent);
      if (parent.prototype === undefined) throw argument("superCtor.prototype", "object", undefined);
      Object.defineProperty(child, "super_", { value: parent, writable: true, configurable: true });
      Object.setPrototypeOf(child.prototype, parent.prototype);
    },
    callbackify(f) {
      func("original", f);
      const g = function (...args) {
        const done = func("last argument", args.pop());
        Promise.resolve(f.apply(this, args)).then((v) => ab.nextTick(done, null, v), (e) => ab.nextTick(done, e || Object.assign(bad("ERR_FALSY_VALUE_REJECTION", "Promise was rejected with falsy value", Error), { reason: e })));
      };
      Object.defineProperty(g, "name", { value: `${f.name}Callbackified`, configurable: true });
      return g;
    },
    deprecate(f, message, code) {
      func("fn", f);
      let told = false;
      const g = function (...args) {
        if (!told && !ab.process.noDeprecation) { told = true; if (!code || !deprecated.has(code)) { deprecated.add(code); ab.process.emitWarning(message, "DeprecationWarning", code); } }
        return new.target ? Reflect.construct(f, args, new.target) : Reflect.apply(f, this, args);
      };
      Object.setPrototypeOf(g, f);
      if (f.prototype) g.prototype = f.prototype;
      return g;
    },
    promisify: Object.assign((f) => { const p = promised(f); return p === f || Object.hasOwn(p, "length") && p.name ? p : Object.defineProperty(p, "name", { value: f.name, configurable: true }); }, { custom: promised.custom }),
    getSystemErrorName: (n) => errno(n)?.[0], getSystemErrorMessage: (n) => errno(n)?.[1], getSystemErrorMap: () => new Map(byNumber),
    getCallSites: () => String(new Error().stack).split("\n").slice(1).map((l) => { const m = /^ {4}at (?:(.*) \()?(.*):(\d+):(\d+)\)?$/.exec(l); return m ? { functionName: m[1] ?? "", scriptId: "0", scriptName: m[2], lineNumber: Number(m[3]), columnNumber: Number(m[4]), column: Number(m[4]) } : null; }).filter(Boolean),
    transferableAbortController: () => new AbortController(), transferableAbortSignal: (s) => s, setTraceSigInt() {},
    markPromiseAsHandled: (p) => { p.then(undefined, () => {}); },
    throttle: (f, ms) => { let last = -Infinity; return (...args) => { const now = performance.now(); if (now - last < ms) return undefined; last = now; return f(...args); }; },
    debounce: (f, ms) => { let t; return (...args) => { clearTimeout(t); t = setTimeout(() => f(...args), ms); }; },
    debuglog(section) {
      let on;
      const enabled = () => (on ??= String(ab.process.env.NODE_DEBUG ?? "").toLowerCase().split(",").includes(String(section).toLowerCase()));
      const log = (...args) => { if (enabled()) ab.process.stderr.write(`${String(section).toUpperCase()} ${ab.process.pid}: ${ab.format(...args)}\n`); };
      return Object.defineProperty(log, "enabled", { get: enabled, configurable: true });
    },
  });
  util.debug = util.debuglog;
  delete util.toUSVString;
  util.toUSVString = (s) => String(s).toWellFormed();

  // querystring
  const qs = ab.builtin("querystring");
  const scalar = (v) => (typeof v === "string" ? v : typeof v === "number" && Number.isFinite(v) ? String(v) : typeof v === "bigint" || typeof v === "boolean" ? String(v) : "");
  qs.escape = (s) => encodeURIComponent(typeof s === "object" ? String(s) : s).replace(/%(7E)/g, "~");
  qs.stringify = qs.encode = (o, sep, eq, options) => {
    sep = sep || "&";
    eq = eq || "=";
    const encode = options?.encodeURIComponent ?? qs.escape;
    if (o === null || typeof o !== "object") return "";
    return Object.keys(o).flatMap((k) => (Array.isArray(o[k]) ? o[k] : [o[k]]).map((v) => `${encode(scalar(k))}${eq}${encode(scalar(v))}`)).join(sep);
  };
  qs.parse = qs.decode = (s, sep, eq, options) => {
    sep = sep || "&";
    eq = eq || "=";
    const out = Object.create(null);
    if (typeof s !== "string" || s === "") return out;
    const decode = options?.decodeURIComponent ?? qs.unescape;
    const told = (x) => { try { return decode(x); } catch { return qs.unescape(x); } };
    const most = options?.maxKeys ?? 1000;
    let parts = s.split(sep);
    if (most > 0) parts = parts.slice(0, most);
    for (const part of parts) {
      if (part === "") continue;
      const i = part.indexOf(eq);
      const [k, v] = (i < 0 ? [part, ""] : [part.slice(0, i), part.slice(i + eq.length)]).map((x) => told(x.replaceAll("+", " ")));
      if (!(k in out)) out[k] = v; else if (Array.isArray(out[k])) out[k].push(v); else out[k] = [out[k], v];
    }
    return out;
  };

  // The old parser of url, which knows relative references and keeps what it does not know.
  const url = ab.builtin("url");
  const slashed = new Set(["http:", "https:", "ftp:", "gopher:", "file:", "ws:", "wss:"]);
  class Url {
    constructor() { Object.assign(this, { protocol: null, slashes: null, auth: null, host: null, port: null, hostname: null, hash: null, search: null, query: null, pathname: null, path: null, href: null }); }
    parse(s, asQuery, slashes) {
      text("url", s);
      let rest = s.trim();
      const mark = rest.search(/[?#]/);
      rest = (mark < 0 ? rest : rest.slice(0, mark)).replaceAll("\\", "/") + (mark < 0 ? "" : rest.slice(mark));
      const p = /^[a-z0-9.+-]+:/i.exec(rest);
      if (p) { this.protocol = p[0].toLowerCase(); rest = rest.slice(p[0].length); }
      const script = this.protocol === "javascript:";
      if ((slashes || p || /^\/\/[^@/]+@[^@/]+/.test(rest)) && rest.startsWith("//") && !script) { rest = rest.slice(2); this.slashes = true; }
      if (!script && (this.slashes || (p && !slashed.has(this.protocol)))) {
        let end = rest.search(/[/?#]/);
        if (end < 0) end = rest.length;
        const at = rest.lastIndexOf("@", end);
        let from = 0;
        if (at >= 0 && at < end) { this.auth = decodeURIComponent(rest.slice(0, at)); from = at + 1; }
        let stop = from;
        while (stop < end && !/[\t\n\r "%';<>\\^`{|}]/.test(rest[stop])) stop++;
        let name = rest.slice(from, stop);
        rest = rest.slice(stop);
        const port = /:(\d*)$/.exec(name);
        if (port) { if (port[1] !== "") this.port = port[1]; name = name.slice(0, -port[0].length); }
        this.hostname = /^\[.*\]$/.test(name) ? name.slice(1, -1).toLowerCase() : name.toLowerCase();
        if (/[^\x00-\x7f]/.test(this.hostname)) this.hostname = url.domainToASCII(this.hostname);
        this.host = (/^\[.*\]$/.test(name) ? `[${this.hostname}]` : this.hostname) + (this.port ? `:${this.port}` : "");
        if (stop < end && rest !== "" && !"/?#".includes(rest[0])) rest = `/${rest}`;
      }
      if (!script) rest = rest.replace(/[\t\n\r "'<>\\^`{|}]/g, (c) => encodeURIComponent(c).replace("'", "%27"));
      const hash = rest.indexOf("#");
      if (hash >= 0) { this.hash = rest.slice(hash); rest = rest.slice(0, hash); }
      const q = rest.indexOf("?");
      if (q >= 0) { this.search = rest.slice(q); this.query = asQuery ? qs.parse(this.search.slice(1)) : this.search.slice(1); rest = rest.slice(0, q); } else if (asQuery) { this.search = null; this.query = Object.create(null); }
      if (rest !== "") this.pathname = rest;
      if (slashed.has(this.protocol) && this.hostname && !this.pathname) this.pathname = "/";
      if (this.pathname || this.search) this.path = (this.pathname ?? "") + (this.search ?? "");
      this.href = this.format();
      return this;
    }
    format() {
      let { protocol, pathname, search, hash } = this;
      protocol = protocol ?? "";
      if (protocol && !protocol.endsWith(":")) protocol += ":";
      const auth = this.auth ? `${encodeURIComponent(this.auth).replace(/%3A/i, ":")}@` : "";
      let host = "";
      if (this.host) host = auth + this.host;
      else if (this.hostname) host = auth + (this.hostname.includes(":") ? `[${this.hostname}]` : this.hostname) + (this.port ? `:${this.port}` : "");
      search = search || (this.query !== null && typeof this.query === "object" ? qs.stringify(this.query) && `?${qs.stringify(this.query)}` : "") || "";
      pathname = (pathname ?? "").replace(/[?#]/g, encodeURIComponent);
      if (this.slashes || ((!protocol || slashed.has(protocol)) && this.host !== null && host !== "" && protocol)) { host = `//${host}`; if (pathname && pathname[0] !== "/") pathname = `/${pathname}`; } else if (slashed.has(protocol) && host !== "") host = `//${host}`;
      hash = hash ?? "";
      if (hash && hash[0] !== "#") hash = `#${hash}`;
      if (search && search[0] !== "?") search = `?${search}`;
      return protocol + host + pathname + search.replaceAll("#", "%23") + hash;
    }
  }
  const resolved = (from, to) => {
    const a = new Url().parse(from, false, true);
    const b = new Url().parse(to, false, true);
    if (b.protocol && b.protocol !== a.protocol) return b.href;
    const out = Object.assign(new Url(), { protocol: a.protocol, slashes: a.slashes, auth: a.auth, host: a.host, hostname: a.hostname, port: a.port, hash: b.hash });
    if (b.host !== null && b.slashes) { Object.assign(out, { auth: b.auth, host: b.host, hostname: b.hostname, port: b.port, slashes: true }); out.pathname = b.pathname; out.search = b.search; return out.format(); }
    if (!b.pathname) { out.pathname = a.pathname; out.search = b.search ?? a.search; if (to === "") { out.hash = null; } return out.format(); }
    const absolute = b.pathname.startsWith("/");
    const base = absolute ? [] : (a.pathname ?? "").split("/").slice(0, -1);
    const parts = absolute ? b.pathname.split("/") : [...base, ...b.pathname.split("/")];
    const rooted = absolute || (a.pathname ?? "").startsWith("/") || Boolean(out.host);
    const kept = [];
    let up = 0;
    for (const [i, p] of parts.entries()) {
      const last = i === parts.length - 1;
      if (p === ".") { if (last) kept.push(""); } else if (p === "..") { if (kept.length > (rooted ? 1 : 0) && kept.at(-1) !== "..") kept.pop(); else if (!rooted) { kept.push(".."); up++; } if (last) kept.push(""); } else kept.push(p);
    }
    void up;
    let path = kept.join("/");
    if (rooted && !path.startsWith("/")) path = `/${path}`;
    out.pathname = path;
    out.search = b.search;
    return out.format();
  };
  const punycode = ab.punycode;
  Object.assign(url, {
    Url, parse: (s, q, slashes) => (s instanceof Url ? s : new Url().parse(s, q, slashes)), resolve: (a, b) => resolved(String(a), String(b)), resolveObject: (a, b) => new Url().parse(resolved(a, b)),
    domainToUnicode: (d) => punycode.toUnicode(url.domainToASCII(d)),
    format(u, o) {
      if (typeof u === "string") u = new Url().parse(u);
      else if (u === null || typeof u !== "object") throw argument("urlObject", "of type string or an instance of Object", u);
      if (u instanceof URL) {
        const c = new URL(u.href);
        if (o?.fragment === false) c.hash = "";
        if (o?.search === false) c.search = "";
        if (o?.auth === false) { c.username = ""; c.password = ""; }
        return o?.unicode ? c.href.replace(c.hostname, punycode.toUnicode(c.hostname)) : c.href;
      }
      return Url.prototype.format.call({ query: null, ...u, host: u.host ?? null });
    },
    urlToHttpOptions: (u) => Object.assign(Object.create(null), { protocol: u.protocol, hostname: u.hostname.replace(/^\[|\]$/g, ""), hash: u.hash, search: u.search, pathname: u.pathname, path: `${u.pathname || ""}${u.search || ""}`, href: u.href, ...(u.port !== "" ? { port: Number(u.port) } : {}), ...(u.username || u.password ? { auth: `${decodeURIComponent(u.username)}:${decodeURIComponent(u.password)}` } : {}) }),
    fileURLToPathBuffer: (u) => Buffer.from(url.fileURLToPath(u)),
  });
})();
