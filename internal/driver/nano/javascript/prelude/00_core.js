// The frame of the prelude: Node's modules by name, require, the event loop, and how errors are told.
(() => {
  const host = globalThis.__host;
  delete globalThis.__host;

  const builtins = new Map(); // name -> the module, or a function that makes it
  const made = new Map();
  const ab = {
    host,
    bun: false, // whether the program is called so
    versions: null,
    about(node, quickjs, bun) { ab.versions = { node, quickjs, bun }; },
    define(name, make) { builtins.set(name, make); },
    builtin(name) {
      if (!made.has(name)) made.set(name, builtins.get(name)());
      return made.get(name);
    },
    names() { return [...builtins.keys()].sort(); },
    // list returns what each module exports, for import.
    list() {
      const all = {};
      for (const name of builtins.keys()) {
        const m = ab.builtin(name);
        all[name] = Object.getOwnPropertyNames(m).filter((k) => !["default", "length", "name", "prototype", "arguments", "caller"].includes(k) && /^[A-Za-z_$][\w$]*$/.test(k)).sort();
      }
      return JSON.stringify(all);
    },
    error(Type, code, message) {
      const e = new Type(message);
      e.code = code;
      // As with Node, the text of its stack names the code.
      if (code.startsWith("ERR_") && code !== "ERR_FEATURE_UNAVAILABLE" && typeof e.stack === "string" && e.stack.startsWith(`${e.name}: `)) {
        Object.defineProperty(e, "stack", { value: `${e.name} [${code}]${e.stack.slice(e.name.length)}`, writable: true, configurable: true });
      }
      return e;
    },
    lacking(what, message) {
      host.lack(what);
      return ab.error(Error, "ERR_FEATURE_UNAVAILABLE", message ?? `${what} is not available in a nano space`);
    },
  };
  Object.defineProperty(globalThis, "__agentbox", { value: ab });
  Object.defineProperty(globalThis, "global", { value: globalThis, writable: true, configurable: true });

  // Stack traces name the files as they were written.
  const position = (file, line, column) => (file && file[0] === "/" && /\.[mc]?tsx?$|\.jsx$/.test(file) ? JSON.parse(host.position(file, line, column)) : [line, column]);
  const heads = new WeakMap();
  // A program may make anything of a stack, which the engine's own would refuse.
  const stackOf = Object.getOwnPropertyDescriptor(Error.prototype, "stack");
  if (stackOf?.set) {
    Object.defineProperty(Error.prototype, "stack", { ...stackOf, get() {
      let text = stackOf.get.call(this);
      const head = heads.get(this); // of when it was made: the first who asks is told its name and message of now
      if (head === undefined) return text;
      heads.delete(this);
      let now;
      try { now = ab.headline(this); } catch { return text; }
      if (typeof text !== "string" || !text.startsWith(head)) return text;
      text = now + (ab.placed?.(text.slice(head.length)) ?? text.slice(head.length));
      Object.defineProperty(this, "stack", { value: text, writable: true, configurable: true });
      return text;
    }, set(v) {
      heads.delete(this);
      Object.defineProperty(this, "stack", { value: v, writable: true, configurable: true });
    } });
  }
  // natives are the engine's own functions as V8 names them.
  const natives = {};
  for (const [of, names] of Object.entries({ Array: "map filter forEach reduce reduceRight some every find findIndex findLast flatMap sort from toSorted", JSON: "parse stringify", Object: "keys entries values assign defineProperty fromEntries create freeze", String: "replace replaceAll matchAll repeat split", Promise: "all race any allSettled", Reflect: "apply construct ownKeys" })) for (const n of names.split(" ")) natives[n] = `${of}.${n}`;
  Error.stackTraceLimit = 10;
  Error.prepareStackTrace = (error, sites) => {
    let text = "";
    let first = null;
    for (const s of sites) {
      const file = s.getFileName();
      if (!file || file.startsWith("node:internal/")) continue;
      let name = s.getFunctionName();
      if (name === "<anonymous>" || name === "<eval>" || name === "<module>") name = "";
      if (s.isNative()) { text += `\n    at ${natives[name] ?? (/^[A-Z]/.test(name) ? `new ${name}` : name || "<anonymous>")} (<anonymous>)`; continue; }
      let [line, column] = [s.getLineNumber(), s.getColumnNumber()];
      if (line === 1 && commonJS.has(file)) column = Math.max(1, column - wrapper.length);
      [line, column] = position(file, line, column);
      first ??= [file, line, column];
      const place = `${file}:${line}:${column}`;
      text += name ? `\n    at ${name} (${place})` : `\n    at ${place}`;
    }
    if (first) places.set(error, first);
    let head;
    try { ab.asNode?.(error, first, sites); head = ab.headline(error); } catch { head = "Error"; }
    if (error !== null && typeof error === "object") heads.set(error, head);
    return head + text;
  };
  const wrapper = "(function (exports, require, module, __filename, __dirname) {";
  const places = new WeakMap(); // where an error was made
  ab.placeOf = (e) => { void e.stack; return places.get(e) ?? null; };
  ab.headline = (e) => {
    const name = e.name === undefined ? "Error" : String(e.name);
    const message = e.message === undefined ? "" : String(e.message);
    if (name === "") return message;
    return message === "" ? name : `${name}: ${message}`;
  };

  // CommonJS.
  const modules = new Map();
  const commonJS = new Set();
  class Module {
    constructor(id, parent) {
      this.id = id;
      this.path = dirname(id);
      this.exports = {};
      this.filename = id;
      this.loaded = false;
      this.children = [];
      this.paths = [];
      this.parent = parent;
    }
  }
  // modulePaths are the folders in which packages are looked for.
  ab.modulePaths = (from) => {
    const all = [];
    for (let at = from; at[0] === "/"; at = dirname(at)) {
      if (!at.endsWith("/node_modules")) all.push(at === "/" ? "/node_modules" : `${at}/node_modules`);
      if (at === "/") break;
    }
    return all;
  };
  const dirname = (p) => p.slice(0, Math.max(p.lastIndexOf("/"), 1)) || "/";
  const load = (file, parent, main) => {
    const known = modules.get(file);
    if (known) return known.exports;
    const m = new Module(main ? "." : file, parent);
    m.filename = file;
    m.path = dirname(file);
    m.paths = ab.modulePaths(m.path);
    if (main) ab.mainModule = m;
    modules.set(file, m);
    try {
      commonJS.add(file);
      const f = host.compile(file);
      if (typeof f === "string") {
        try { m.exports = JSON.parse(f); } catch (e) { e.message = `${file}: ${e.message}`; throw e; }
      } else {
        f.call(m.exports, m.exports, requireOf(file, m), m, file, m.path);
      }
      m.loaded = true;
    } catch (e) {
      modules.delete(file);
      throw e;
    }
    return m.exports;
  };
  const requireOf = (file, parent) => {
    const require = (name) => {
      if (typeof name !== "string") throw ab.error(TypeError, "ERR_INVALID_ARG_TYPE", `The "id" argument must be of type string. Received ${typeof name}`);
      const found = require.resolve(name);
      return found.startsWith("node:") ? ab.builtin(found.slice(5)) : load(found, parent, false);
    };
    require.resolve = (name) => host.resolve(typeof file === "string" ? file : file(), String(name));
    require.cache = cache;
    require.main = ab.mainModule;
    return require;
  };
  const cache = new Proxy({}, {
    has: (_, k) => modules.has(k), get: (_, k) => modules.get(k), deleteProperty: (_, k) => modules.delete(k) || true,
    ownKeys: () => [...modules.keys()], getOwnPropertyDescriptor: (_, k) => modules.has(k) ? { value: modules.get(k), enumerable: true, configurable: true } : undefined,
  });
  ab.requireFrom = (file) => (file === "[eval]" || file === "[stdin]" ? requireOf(() => ab.cwd() + "/" + file, undefined) : requireOf(file, undefined));
  ab.main = (file) => { load(file, null, true); };
  ab.mainText = null;
  ab.Module = Module;
  ab.meta = (meta, file) => {
    meta.filename = file;
    meta.dirname = meta.dir = dirname(file);
    meta.path = file;
    meta.file = file.slice(file.lastIndexOf("/") + 1);
    meta.url = file[0] === "/" ? ab.builtin("url").pathToFileURL(file).href : file;
    meta.main = file === ab.process.argv[1];
    meta.resolve = (name) => {
      let found;
      try { found = host.resolve(file, String(name)); } catch (e) {
        if (!/^(\.|\/|file:)/.test(String(name))) throw e;
        return new URL(String(name), meta.url).href; // as Node, which does not look whether it is there
      }
      return found[0] === "/" ? ab.builtin("url").pathToFileURL(found).href : found;
    };
  };
  // globals makes the names of CommonJS and the modules of Node global, for -e and -p: they lie behind the global object, and become its own when they are used.
  const behind = Object.create(Object.getPrototypeOf(globalThis));
  const lazy = (name, make) => {
    const own = (value) => { Object.defineProperty(globalThis, name, { value, writable: true, configurable: true }); return value; };
    Object.defineProperty(behind, name, { get: () => own(make()), set: own, configurable: true });
  };
  lazy("require", () => ab.requireFrom("[eval]"));
  lazy("module", () => new Module("[eval]", undefined));
  lazy("exports", () => globalThis.module.exports);
  lazy("__filename", () => "[eval]");
  lazy("__dirname", () => ".");
  for (const name of ["fs", "path", "os", "util", "events", "assert", "crypto", "url", "child_process", "readline", "zlib", "http", "https", "net", "stream"]) {
    lazy(name, () => ab.builtin(name));
  }
  ab.globals = () => { Object.setPrototypeOf(globalThis, behind); };

  // The event loop. The clock is the execution's: it goes on by work and by waiting, and waiting takes no time.
  let serial = 0;
  const heap = []; // timers by when they are due, then by when they were set
  const before = (a, b) => a.due < b.due || (a.due === b.due && a.order < b.order);
  const push = (t) => {
    let i = heap.push(t) - 1;
    while (i > 0) {
      const up = (i - 1) >> 1;
      if (!before(heap[i], heap[up])) break;
      [heap[i], heap[up]] = [heap[up], heap[i]];
      i = up;
    }
  };
  const pop = () => {
    const top = heap[0];
    const last = heap.pop();
    if (heap.length > 0) {
      heap[0] = last;
      for (let i = 0; ;) {
        let least = i;
        for (const child of [2 * i + 1, 2 * i + 2]) if (child < heap.length && before(heap[child], heap[least])) least = child;
        if (least === i) break;
        [heap[i], heap[least]] = [heap[least], heap[i]];
        i = least;
      }
    }
    return top;
  };
  class Timeout {
    constructor(f, ms, args, repeat) {
      this.f = f;
      this.args = args;
      ms = Number(ms);
      this.ms = ms >= 1 && ms <= 2147483647 ? Math.trunc(ms) : 1;
      this.repeat = repeat;
      this.live = true;
      this.held = true;
      this.id = ++serial;
      timers.set(this.id, this);
      this.arm();
    }
    arm() {
      this.due = host.now() + this.ms;
      this.order = ++serial;
      push(this);
    }
    ref() { this.held = true; return this; }
    unref() { this.held = false; return this; }
    hasRef() { return this.held; }
    refresh() { const t = new Timeout(this.f, this.ms, this.args, this.repeat); t.held = this.held; this.live = false; this.next = t; return this; }
    close() { clear(this); return this; }
    [Symbol.toPrimitive]() { return this.id; }
    [Symbol.dispose ?? Symbol("dispose")]() { clear(this); }
  }
  const timers = new Map();
  const clear = (t) => {
    if (typeof t === "number" || typeof t === "string") t = timers.get(Number(t));
    for (; t instanceof Timeout; t = t.next) { t.live = false; timers.delete(t.id); }
    if (t instanceof Immediate) t.live = false;
  };
  const callable = (f) => {
    if (typeof f !== "function") throw ab.error(TypeError, "ERR_INVALID_ARG_TYPE", `The "callback" argument must be of type function. Received ${ab.received(f)}`);
  };
  class Immediate {
    constructor(f, args) { this.f = f; this.args = args; this.live = true; }
    ref() { return this; }
    unref() { return this; }
    hasRef() { return true; }
  }
  let immediates = [];
  const ticks = [];
  const global = {
    setTimeout(f, ms, ...args) { callable(f); return new Timeout(f, ms, args, false); },
    setInterval(f, ms, ...args) { callable(f); return new Timeout(f, ms, args, true); },
    setImmediate(f, ...args) { callable(f); const i = new Immediate(f, args); immediates.push(i); return i; },
    clearTimeout: clear, clearInterval: clear, clearImmediate: clear,
  };
  for (const [name, value] of Object.entries(global)) Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: true });
  if (!globalThis.queueMicrotask) {
    Object.defineProperty(globalThis, "queueMicrotask", { value(f) { callable(f); Promise.resolve().then(f); }, writable: true, configurable: true });
  }
  // work is what else may have something to do: each is asked in turn, and returns whether it did something.
  ab.work = [];
  ab.nextTick = (f, ...args) => { callable(f); ticks.push([f, args]); };
  ab.ticks = () => {
    const n = ticks.length;
    while (ticks.length > 0) {
      const [f, args] = ticks.shift();
      f(...args);
    }
    return n;
  };
  // begun is whether the first timers were looked at: those of a millisecond go before what is immediate, as where a program takes that long to start.
  let begun = false;
  // step does one thing, or says how many milliseconds nothing has to be done; -1 is for ever.
  ab.step = () => {
    while (heap.length > 0 && !heap[0].live) pop();
    if (heap.length > 0 && heap[0].due <= host.now() + (begun ? 0 : 1)) {
      const t = pop();
      if (t.repeat) t.arm(); else { t.live = false; timers.delete(t.id); }
      t.f.apply(t, t.args);
      return 0;
    }
    begun = true;
    while (immediates.length > 0) {
      const i = immediates.shift();
      if (!i.live) continue;
      i.f(...i.args);
      return 0;
    }
    for (let i = 0; i < ab.work.length; i++) if (ab.work[i]()) return 0;
    let held = false;
    if (heap.length > 0) for (const t of heap) if (t.live && t.held) { held = true; break; }
    if (held) return Math.max(heap[0].due - host.now(), 0.001);
    return ab.process.idle() ? 0 : -1;
  };

  // How errors end a program.
  const show = (e) => {
    const isError = e instanceof Error;
    if (isError) void e.stack;
    const at = isError ? places.get(e) ?? placeIn(e.stack) : null;
    let text = "";
    if (at && at[0][0] === "/") {
      text += `${at[0]}:${at[1]}\n`;
      const line = host.line(at[0], at[1]);
      const thrown = line.slice(0, at[2]).lastIndexOf("throw "); // what throws is where V8 points
      const column = thrown >= 0 && isError ? thrown : at[2] - 1;
      if (line !== "") text += `${line}\n${" ".repeat(Math.max(0, Math.min(column, line.length)))}^\n`;
      text += "\n";
    }
    text += isError ? ab.inspect(e, { depth: 5 }) : `Uncaught ${ab.inspect(e)}`;
    return `${text}\n\n${ab.bun ? `Bun v${ab.versions.bun}` : `Node.js v${ab.versions.node}`}\n`;
  };
  const placeIn = (stack) => {
    const m = /\(?(\/[^\s()]*):(\d+):(\d+)\)?/.exec(String(stack));
    return m ? [m[1], Number(m[2]), Number(m[3])] : null;
  };
  ab.fatal = (e) => {
    ab.process.emit("uncaughtExceptionMonitor", e, "uncaughtException");
    if (ab.process.listenerCount("uncaughtException") > 0) {
      ab.process.emit("uncaughtException", e, "uncaughtException");
      return 0;
    }
    if (e instanceof Error && e.name === "InternalError" && e.message === "out of memory") return 2;
    host.write(2, show(e));
    return 1;
  };
  ab.unhandled = (e, promise) => {
    if (ab.process.listenerCount("unhandledRejection") > 0) {
      ab.process.emit("unhandledRejection", e, promise);
      return 0;
    }
    if (!(e instanceof Error)) {
      const wrapped = new Error(`This error originated either by throwing inside of an async function without a catch block, or by rejecting a promise which was not handled with .catch(). The promise rejected with the reason "${ab.inspect(e)}".`);
      wrapped.name = "UnhandledPromiseRejection";
      wrapped.code = "ERR_UNHANDLED_REJECTION";
      wrapped.stack = `[${ab.headline(wrapped)}]`;
      return ab.fatal(wrapped);
    }
    return ab.fatal(e);
  };
  ab.exit = (code) => ab.process.ending(code);
  ab.print = (v) => { host.write(1, `${typeof v === "string" || Number.isInteger(v) && v !== 0 ? v : ab.inspect(v)}\n`); };
  // Cells: what they display, and the values of their last expressions, each in all the forms that it has.
  const maxText = 1 << 20; // of one form of a value
  const maxRows = 1000; // of a table
  const forms = { "text/html": "html", "image/svg+xml": "svg", "text/markdown": "markdown", "text/latex": "latex", "image/png": "png", "image/jpeg": "jpeg" };
  const cut = (text) => (text.length <= maxText ? text : `${text.slice(0, maxText)}…`);
  const table = (v) => {
    const plain = (x) => x !== null && typeof x === "object" && [Object.prototype, null].includes(Object.getPrototypeOf(x));
    if (!Array.isArray(v) || v.length === 0 || !v.every(plain)) return undefined;
    const rows = v.slice(0, maxRows);
    const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
    if (columns.length === 0 || columns.length > 256) return undefined;
    const one = (x) => (x === undefined || x === null ? null : typeof x === "boolean" || (typeof x === "number" && Number.isFinite(x)) ? x : cut(typeof x === "string" ? x : ab.inspect(x)));
    return { columns, rows: rows.map((row) => columns.map((c) => one(row[c]))), total: v.length };
  };
  const rich = (v, text) => {
    const out = { type: v === null ? "null" : typeof v, text };
    let json, shows = false;
    if (v !== null && (typeof v === "object" || typeof v === "function")) {
      try { if (typeof v.constructor?.name === "string" && v.constructor.name !== "") out.type = v.constructor.name; } catch { /* it does not say */ }
      try { out.table = table(v); } catch { /* it is none */ }
      try {
        const said = v[Symbol.for("Jupyter.display")]?.();
        for (const [media, form] of Object.entries(forms)) if (typeof said?.[media] === "string" && said[media].length <= 8 * maxText) { out[form] = said[media]; shows = true; }
        if (said?.["application/json"] !== undefined) json = JSON.stringify(said["application/json"]);
      } catch { /* it says no more */ }
      if (v instanceof Uint8Array && v.length <= 6 * maxText) {
        const begins = (...bytes) => bytes.every((b, i) => v[i] === b);
        if (begins(0x89, 0x50, 0x4e, 0x47)) out.png = Buffer.from(v).toString("base64");
        if (begins(0xff, 0xd8, 0xff)) out.jpeg = Buffer.from(v).toString("base64");
      } else if (json === undefined && !shows && typeof v === "object") { // what says its forms has no others
        try { json = JSON.stringify(v); } catch { /* it is none */ }
      }
    }
    const said = JSON.stringify(out);
    return json === undefined || json.length > maxText ? said : `${said.slice(0, -1)},"json":${json}}`;
  };
  // last is around the last expression of a cell that would be lost while its types are taken away.
  ab.last = (v) => v;
  // present prints a value, and shows all of its forms beside the output.
  const present = (v, result) => {
    const text = cut(ab.inspect(v));
    host.write(1, `${text}\n`);
    host.show(rich(v, text), result);
  };
  // begin makes display a global function.
  ab.begin = () => {
    if (Object.hasOwn(globalThis, "display")) return;
    Object.defineProperty(globalThis, "display", { value: (...values) => { for (const v of values) present(v, 0); }, writable: true, configurable: true });
  };
  // cell shows the value of a cell's last expression.
  ab.cell = (result) => {
    if (result !== null && typeof result === "object" && Object.hasOwn(result, "value") && result.value !== undefined) present(result.value, 1);
  };
  ab.received = (v) => {
    if (v == null) return String(v);
    if (typeof v === "function") return `function ${v.name}`;
    if (typeof v === "object") return v.constructor?.name ? `an instance of ${v.constructor.name}` : ab.inspect(v, { depth: -1 });
    const text = ab.inspect(v);
    return `type ${typeof v} (${text.length > 28 ? `${text.slice(0, 25)}...` : text})`;
  };
  // start takes what the host says of a run. The words behind the first of argv, and the names and values of the environment, come each with a zero before it, which is
  // taken apart in a tenth of the time that JSON takes; the environment is, when somebody asks for it.
  ab.start = (title, cwd, words, env, pid, ppid) => {
    ab.bun = title === "bun";
    ab.process.begin(title, cwd, `/bin/${title}${words}`.split("\0"), env, pid, ppid);
  };

  // Chance is drawn from the host when a program first asks: what an image holds is the same in every run.
  let state = null;
  Math.random = Object.defineProperty(() => {
    if (!state) {
      const seed = new ArrayBuffer(32);
      host.entropy(seed, 0, 32);
      state = new Uint32Array(seed);
      if (state.every((n) => n === 0)) state[0] = 1;
    }
    const next = () => { // xoshiro128**
      const result = Math.imul(rotate(Math.imul(state[1], 5), 7), 9) >>> 0;
      const t = state[1] << 9;
      state[2] ^= state[0];
      state[3] ^= state[1];
      state[1] ^= state[2];
      state[0] ^= state[3];
      state[2] ^= t;
      state[3] = rotate(state[3], 11);
      return result;
    };
    return ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992;
  }, "name", { value: "random" });
  const rotate = (n, by) => (n << by) | (n >>> (32 - by));
})();
