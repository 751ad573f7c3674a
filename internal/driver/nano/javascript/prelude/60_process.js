// process, console, streams, readline.
(() => {
  const ab = __agentbox;
  const host = ab.host;
  const EventEmitter = ab.builtin("events");
  const define = (name, value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });

  // stream: what is written and read in memory, a chunk at a time.
  class Stream extends EventEmitter {
    pipe(to, o) {
      this.on("data", (b) => { if (to.write(b) === false) { this.pause?.(); to.once("drain", () => this.resume?.()); } });
      if (o?.end !== false && to !== ab.process?.stdout && to !== ab.process?.stderr) this.on("end", () => to.end());
      to.emit("pipe", this);
      return to;
    }
  }
  class Readable extends Stream {
    constructor(o = {}) {
      super();
      this.readable = true;
      this.readableEnded = false;
      this.destroyed = false;
      this.readableFlowing = null;
      this.readableObjectMode = Boolean(o.objectMode ?? o.readableObjectMode);
      this.readableHighWaterMark = o.highWaterMark ?? 65536;
      this._chunks = [];
      this._ended = false;
      this._asked = false;
      if (o.encoding) this.setEncoding(o.encoding);
      if (o.read) this._read = o.read;
      if (o.destroy) this._destroy = o.destroy;
    }
    static from(items, o) {
      const it = (typeof items === "string" || items instanceof Uint8Array ? [items] : items);
      const iterator = it[Symbol.asyncIterator]?.() ?? it[Symbol.iterator]();
      const r = new Readable({ objectMode: true, ...o, read() { Promise.resolve(iterator.next()).then(async ({ value, done }) => r.push(done ? null : await value), (e) => r.destroy(e)); } });
      return r;
    }
    _read() {}
    setEncoding(e) { this._decoder = new (ab.builtin("string_decoder").StringDecoder)(e); this.readableEncoding = e; return this; }
    push(b) {
      this._asked = false;
      if (b === null) {
        this._ended = true;
        const rest = this._decoder?.end();
        if (rest) this._chunks.push(rest);
      } else {
        if (typeof b === "string" && !this._decoder && !this.readableObjectMode) b = Buffer.from(b);
        if (this._decoder && typeof b !== "string") b = this._decoder.write(b);
        if (this.readableObjectMode || b.length > 0) this._chunks.push(b);
      }
      this._turn();
      return this._chunks.length < 16;
    }
    unshift(b) { this._chunks.unshift(b); }
    _turn() {
      if (this._turning) return;
      this._turning = true;
      setImmediate(() => {
        this._turning = false;
        if (this.destroyed) return;
        if (this.readableFlowing) {
          while (this._chunks.length > 0 && this.readableFlowing) this.emit("data", this._chunks.shift());
        } else if ((this._chunks.length > 0 || this._ended) && this.listenerCount("readable") > 0) this.emit("readable");
        if (this._ended && this._chunks.length === 0) { this._finish(); return; }
        if (!this._ended && !this._asked && (this.readableFlowing || (this.listenerCount("readable") > 0 && this._chunks.length === 0))) { this._asked = true; this._read(this.readableHighWaterMark); }
      });
    }
    _finish() {
      if (this.readableEnded) return;
      this.readableEnded = true;
      this.readable = false;
      this.emit("end");
      this.emit("close");
    }
    read(n) {
      if (this._chunks.length === 0) { if (!this._ended && !this._asked) { this._asked = true; this._read(this.readableHighWaterMark); } if (this._chunks.length === 0) { if (this._ended) this._turn(); return null; } }
      if (this.readableObjectMode) return this._chunks.shift();
      const all = typeof this._chunks[0] === "string" ? this._chunks.join("") : Buffer.concat(this._chunks);
      this._chunks = [];
      if (n === undefined || n >= all.length) { this._turn(); return all; }
      this._chunks.push(all.slice(n));
      return all.slice(0, n);
    }
    on(name, f) {
      super.on(name, f);
      if (name === "data" && this.readableFlowing !== false) this.resume();
      if (name === "readable") this._turn();
      return this;
    }
    addListener(name, f) { return this.on(name, f); }
    pause() { this.readableFlowing = false; return this; }
    resume() { this.readableFlowing = true; this._turn(); return this; }
    isPaused() { return this.readableFlowing === false; }
    unpipe() { this.removeAllListeners("data"); return this; }
    destroy(e) {
      if (this.destroyed) return this;
      this.destroyed = true;
      this.readable = false;
      setImmediate(() => { if (e) this.emit("error", e); this.emit("close"); });
      return this;
    }
    async *[Symbol.asyncIterator]() {
      const waiting = [];
      let failure = null;
      let over = this.readableEnded || this.destroyed;
      let wake = null;
      const woken = () => { const w = wake; wake = null; w?.(); };
      this.on("data", (b) => { waiting.push(b); woken(); });
      this.on("end", () => { over = true; woken(); });
      this.on("close", () => { over = true; woken(); });
      this.on("error", (e) => { failure = e; woken(); });
      for (;;) {
        if (waiting.length > 0) yield waiting.shift();
        else if (failure) throw failure;
        else if (over) return;
        else await new Promise((resolve) => { wake = resolve; });
      }
    }
    async toArray() { const all = []; for await (const x of this) all.push(x); return all; }
    async forEach(f) { for await (const x of this) await f(x); }
    map(f) { const self = this; return Readable.from((async function* () { for await (const x of self) yield await f(x); })()); }
    filter(f) { const self = this; return Readable.from((async function* () { for await (const x of self) if (await f(x)) yield x; })()); }
  }
  const writing = {
    _begin(o) {
      this.writable = true;
      this.writableEnded = this.writableFinished = false;
      this.writableObjectMode = Boolean(o.objectMode ?? o.writableObjectMode);
      this.writableHighWaterMark = o.highWaterMark ?? 16384;
      this._queue = [];
      this._busy = false;
      if (o.write) this._write = o.write;
      if (o.final) this._final = o.final;
    },
    write(b, e, done) {
      if (typeof e === "function") [done, e] = [e, undefined];
      if (this.writableEnded) { const x = ab.error(Error, "ERR_STREAM_WRITE_AFTER_END", "write after end"); ab.nextTick(() => { done?.(x); this.emit("error", x); }); return false; }
      if (!this.writableObjectMode && typeof b === "string") b = Buffer.from(b, e);
      this._queue.push([b, e, done]);
      this._next();
      return this._queue.length < 16;
    },
    _next() {
      if (this._busy) return;
      if (this._queue.length === 0) {
        if (this.writableEnded && !this.writableFinished) {
          this.writableFinished = true;
          this.writable = false;
          const over = (x) => ab.nextTick(() => { if (x) this.emit("error", x); else this.emit("finish"); if (!(this instanceof Readable)) this.emit("close"); });
          if (this._final) this._final(over); else over();
        }
        return;
      }
      this._busy = true;
      const [b, e, done] = this._queue.shift();
      this._write(b, e ?? "buffer", (x) => {
        this._busy = false;
        if (x) { done?.(x); ab.nextTick(() => this.emit("error", x)); return; }
        done?.();
        if (this._queue.length === 0 && !this.writableEnded) ab.nextTick(() => this.emit("drain"));
        this._next();
      });
    },
    end(b, e, done) {
      if (typeof b === "function") [done, b] = [b, undefined];
      if (typeof e === "function") [done, e] = [e, undefined];
      if (b !== undefined && b !== null) this.write(b, e);
      if (done) this.once("finish", done);
      this.writableEnded = true;
      this._next();
      return this;
    },
    cork() {}, uncork() {}, setDefaultEncoding() { return this; },
  };
  class Writable extends Stream {
    constructor(o = {}) { super(); this.destroyed = false; this._begin(o); if (o.destroy) this._destroy = o.destroy; }
    _write(b, e, done) { done(); }
    destroy(e) { if (!this.destroyed) { this.destroyed = true; setImmediate(() => { if (e) this.emit("error", e); this.emit("close"); }); } return this; }
  }
  class Duplex extends Readable {
    constructor(o = {}) { super(o); this._begin(o); }
    _write(b, e, done) { done(); }
  }
  for (const C of [Writable, Duplex]) for (const [k, v] of Object.entries(writing)) Object.defineProperty(C.prototype, k, { value: v, writable: true, configurable: true });
  class Transform extends Duplex {
    constructor(o = {}) { super(o); if (o.transform) this._transform = o.transform; if (o.flush) this._flush = o.flush; }
    _transform(b, e, done) { done(null, b); }
    _write(b, e, done) { this._transform(b, e, (x, out) => { if (!x && out !== undefined && out !== null) this.push(out); done(x); }); }
    _final(done) { const over = (x, out) => { if (out !== undefined && out !== null) this.push(out); this.push(null); done(x); }; if (this._flush) this._flush(over); else over(); }
  }
  class PassThrough extends Transform {}
  const finished = (s, o, done) => {
    if (typeof o === "function") [done, o] = [o, {}];
    let over = false;
    const call = (e) => { if (!over) { over = true; done(e); } };
    s.on("error", call);
    if (s instanceof Readable) s.on("end", () => { if (!s._write || s.writableFinished) call(); });
    if (s._write) s.on("finish", () => { if (!(s instanceof Readable) || s.readableEnded) call(); });
    return () => { over = true; };
  };
  const iterable = (x) => typeof x?.[Symbol.asyncIterator] === "function" || typeof x?.[Symbol.iterator] === "function";
  // fill writes what an iterable gives into a stream, and ends it.
  const fill = async (from, to, over) => {
    try {
      for await (const x of from) if (!to.write(x) && to instanceof Transform === false) await new Promise((resolve) => to.once("drain", resolve));
      to.end();
      over();
    } catch (e) { to.destroy(e); over(e); }
  };
  // pipeline joins streams, iterables and functions of iterables; the last function is told how it ended, and with which value.
  const pipeline = (...all) => {
    const done = typeof all.at(-1) === "function" ? all.pop() : () => {};
    if (all.length === 1 && Array.isArray(all[0])) all = all[0];
    if (all.length < 2) throw ab.error(TypeError, "ERR_MISSING_ARGS", 'The "streams" argument must be specified');
    let waits = 1; // ends that are not there yet
    let over = false;
    let value;
    const parts = [];
    const finish = (e) => {
      if (over || (!e && --waits > 0)) return;
      over = true;
      if (e) for (const p of parts) p.destroy?.();
      done(e, value);
    };
    let at = all[0];
    if (typeof at === "function") at = at();
    if (!(at instanceof Stream)) { if (!iterable(at)) throw ab.argument("source", "Stream, Iterable or AsyncIterable", at); if (all.length === 2 || typeof all[1] !== "function") at = Readable.from(at); }
    if (at instanceof Stream) parts.push(at);
    for (let i = 1; i < all.length; i++) {
      const next = all[i];
      const last = i === all.length - 1;
      if (typeof next === "function") {
        const gave = next(at);
        if (typeof gave?.then === "function" && last) {
          gave.then((v) => { value = v; ab.nextTick(finish); }, (e) => finish(e));
          at = new PassThrough({ objectMode: true });
          break;
        }
        if (!iterable(gave)) throw ab.error(TypeError, "ERR_INVALID_RETURN_VALUE", `Expected AsyncIterable to be returned from the "transform[${i - 1}]" function but got ${ab.received(gave)}.`);
        at = gave;
        if (last) { const out = new PassThrough({ objectMode: true }); fill(gave, out, finish); at = out; } else if (typeof all[i + 1] !== "function") { at = Readable.from(gave); parts.push(at); }
      } else {
        at.pipe(next);
        parts.push(next);
        at = next;
        if (last) finished(next, finish);
      }
    }
    for (const p of parts) p.on("error", finish);
    return at;
  };
  const streamPromises = { pipeline: (...all) => new Promise((resolve, reject) => { if (all.at(-1)?.constructor === Object) all.pop(); pipeline(...all, (e, v) => (e ? reject(e) : resolve(v))); }), finished: (s, o) => new Promise((resolve, reject) => finished(s, o ?? {}, (e) => (e ? reject(e) : resolve()))) };
  ab.define("stream", () => Object.assign(Stream, { Stream, Readable, Writable, Duplex, Transform, PassThrough, finished, pipeline, promises: streamPromises, addAbortSignal: (_, s) => s }));
  ab.define("stream/promises", () => streamPromises);
  ab.define("stream/consumers", () => {
    const all = async (s) => { const parts = []; for await (const x of s) parts.push(typeof x === "string" ? Buffer.from(x) : x); return Buffer.concat(parts); };
    return { buffer: all, text: async (s) => (await all(s)).toString(), json: async (s) => JSON.parse((await all(s)).toString()), arrayBuffer: async (s) => { const b = await all(s); return b.buffer.slice(b.byteOffset, b.byteOffset + b.length); } };
  });

  // process
  const output = (fd) => {
    const w = new Writable({ write(b, e, done) { const [x, o, n] = ab.view(b); try { host.writeAt(fd, x, o, n, -1); done(); } catch (error) { done(error); } } });
    Object.assign(w, { fd, isTTY: undefined, getColorDepth: () => 1, hasColors: () => false, _type: "pipe" });
    w.write = (b, e, done) => { // at once, in the order in which it is written
      if (typeof e === "function") [done, e] = [e, undefined];
      if (typeof b === "string" && (e === undefined || e === "utf8")) host.write(fd, b);
      else { if (typeof b !== "string" && !ArrayBuffer.isView(b)) throw ab.argument("chunk", "string or an instance of Buffer, TypedArray, or DataView", b); const [x, o, n] = ab.view(ab.bytesOf(b, e)); host.writeAt(fd, x, o, n, -1); }
      if (done) ab.nextTick(done);
      return true;
    };
    w.end = (b, e, done) => { if (b !== undefined && typeof b !== "function") w.write(b, e); const f = [b, e, done].find((x) => typeof x === "function"); if (f) ab.nextTick(f); return w; };
    w.destroy = () => w;
    return w;
  };
  class Process extends EventEmitter {
    constructor() {
      super();
      Object.assign(this, {
        title: "node", version: "", versions: {}, arch: "wasm32", platform: "linux", release: { name: "node" }, argv: [], argv0: "node", execArgv: [], execPath: "", env: {}, pid: 1, ppid: 0,
        features: { typescript: "transform" }, config: { variables: {} }, allowedNodeEnvironmentFlags: new Set(), exitCode: undefined,
      });
      this.stdout = output(1);
      this.stderr = output(2);
    }
    begin(title, at, argv, env, pid, ppid) {
      ab.began = host.now();
      this.title = title;
      this.argv = argv;
      this.argv0 = this.execPath = argv[0];
      this.pid = pid;
      this.ppid = ppid;
      const { node, quickjs, bun } = ab.versions;
      this.version = `v${node}`;
      this.versions = ab.bun ? { node, quickjs, bun } : { node, quickjs };
      this.env = new Proxy({ __proto__: null, [unread]: env }, environment);
      cwd = at;
      if (ab.bun) ab.beginBun(bun);
    }
    cwd() { return ab.cwd(); }
    chdir(p) { try { cwd = host.chdir(p); } catch (e) { throw Object.assign(new Error(`${e.code}: ${e.message.toLowerCase()}, chdir ${cwd} -> '${p}'`), { code: e.code, syscall: "chdir", path: cwd, dest: p }); } }
    exit(code) {
      if (code !== undefined) this.exitCode = code;
      host.exit(this.ending(0));
    }
    reallyExit(code) { host.exit(code ?? 0); }
    // ending has listeners hear of the end, and returns the exit code.
    ending(code) {
      if (!this.exiting) {
        this.exiting = true;
        this.exitCode ??= code || undefined;
        if (this.listenerCount("exit") > 0) this.emit("exit", Number(this.exitCode ?? code));
      }
      return Number(this.exitCode ?? code) & 255;
    }
    // idle is called when there is nothing to do; it returns whether there is something again.
    idle() {
      if (this.listenerCount("beforeExit") === 0 || idled) return false;
      idled = true;
      this.emit("beforeExit", Number(this.exitCode ?? 0));
      return true;
    }
    nextTick(f, ...args) { idled = false; ab.nextTick(f, ...args); }
    abort() { host.write(2, "Aborted\n"); host.exit(134); }
    kill(pid, signal = "SIGTERM") { if (pid === this.pid) { if (signal === 0) return true; if (this.emit(signal, signal)) return true; host.exit(143); } throw ab.lacking("other processes"); }
    uptime() { return (host.now() - ab.began) / 1000; }
    hrtime(since) {
      const ns = Math.round(host.now() * 1e3) * 1e3 - Math.round(ab.began * 1e3) * 1e3;
      let [s, n] = [Math.floor(ns / 1e9), ns % 1e9];
      if (since) { s -= since[0]; n -= since[1]; if (n < 0) { s--; n += 1e9; } }
      return [s, n];
    }
    memoryUsage() { return { rss: 67108864, heapTotal: 33554432, heapUsed: 16777216, external: 0, arrayBuffers: 0 }; }
    resourceUsage() { return { userCPUTime: Math.round((host.now() - ab.began) * 1000), systemCPUTime: 0, maxRSS: 65536 }; }
    cpuUsage() { return { user: Math.round((host.now() - ab.began) * 1000), system: 0 }; }
    umask(mask) {
      if (mask === undefined) return host.umask(-1);
      if (typeof mask === "string" && /^[0-7]+$/.test(mask)) mask = parseInt(mask, 8);
      if (typeof mask !== "number") throw ab.error(TypeError, "ERR_INVALID_ARG_TYPE", `The "mask" argument must be of type number. Received ${ab.received(mask)}`);
      return host.umask(mask & 0o777);
    }
    getuid() { return 1000; }
    geteuid() { return 1000; }
    getgid() { return 1000; }
    getegid() { return 1000; }
    emitWarning(w) { host.write(2, `(node:${this.pid}) ${typeof w === "string" ? `Warning: ${w}` : w}\n`); }
    getBuiltinModule(name) { try { return ab.builtin(name.replace(/^node:/, "")); } catch { return undefined; } }
    binding() { throw ab.lacking("process.binding"); }
    dlopen() { throw ab.lacking("native modules"); }
    setUncaughtExceptionCaptureCallback() {}
    get stdin() { return (stdin ??= input()); }
    get [Symbol.toStringTag]() { return "process"; }
  }
  Process.prototype.hrtime.bigint = () => BigInt(Math.round((host.now() - ab.began) * 1e6));
  Process.prototype.memoryUsage.rss = () => 67108864;
  let cwd = "/";
  let idled = false;
  let stdin = null;
  // The environment is filled when it is touched first, and holds its text up to then.
  const unread = Symbol("unread");
  const filled = (o) => {
    const text = o[unread];
    if (text !== undefined) {
      delete o[unread];
      const words = text.split("\0");
      for (let i = 1; i < words.length; i += 2) o[words[i]] = words[i + 1];
    }
    return o;
  };
  const environment = {};
  for (const trap of ["get", "has", "ownKeys", "getOwnPropertyDescriptor", "getPrototypeOf", "setPrototypeOf", "isExtensible", "preventExtensions"]) {
    const as = Reflect[trap];
    environment[trap] = (o, ...rest) => as(filled(o), ...rest);
  }
  // TZ holds for dates as soon as it is set.
  const changed = (k, v) => { if (k === "TZ") host.zone(v); return true; };
  environment.set = (o, k, v) => { filled(o)[k] = String(v); return changed(k, String(v)); };
  environment.defineProperty = (o, k, d) => { Object.defineProperty(filled(o), k, { ...d, value: String(d.value) }); return changed(k, String(d.value)); };
  environment.deleteProperty = (o, k) => Reflect.deleteProperty(filled(o), k) && changed(k, "");
  ab.cwd = () => cwd;
  const input = () => {
    const r = new Readable({
      read(n) {
        const b = Buffer.alloc(n);
        try { const got = host.read(0, b.buffer, 0, n, -1); r.push(got === 0 ? null : b.subarray(0, got)); } catch (e) { if (e.code === "EBADF") r.push(null); else r.destroy(e); }
      },
    });
    return Object.assign(r, { fd: 0, isTTY: undefined, setRawMode: () => r, ref: () => r, unref: () => r });
  };
  const process = new Process();
  ab.process = process;
  define("process", process);
  ab.define("process", () => {
    const all = {};
    for (const k of new Set([...Object.keys(process), ...Object.getOwnPropertyNames(Process.prototype), ...Object.getOwnPropertyNames(Object.getPrototypeOf(Process.prototype))])) if (k !== "constructor" && k !== "stdin" && k !== "lists") all[k] = 1;
    return new Proxy(process, { ownKeys: () => [...Object.keys(all), "stdin"], getOwnPropertyDescriptor: (_, k) => (k in all || k === "stdin" ? { enumerable: true, configurable: true, value: undefined } : Object.getOwnPropertyDescriptor(process, k)), get: (t, k) => { const v = t[k]; return typeof v === "function" && k !== "hrtime" && k !== "memoryUsage" && typeof k === "string" && k !== "constructor" ? v.bind(t) : v; } });
  });

  // console
  const counts = new Map();
  const began = new Map();
  let indent = "";
  const say = (fd, ...args) => {
    let text = ab.format(...args);
    if (indent) text = indent + text.replaceAll("\n", `\n${indent}`);
    host.write(fd, `${text}\n`);
  };
  const since = (label) => {
    const ms = host.now() - began.get(label);
    return ms >= 1000 ? `${(ms / 1000).toFixed(3)}s` : `${Number(ms.toFixed(3))}ms`;
  };
  const table = (rows, columns) => {
    if (rows === null || typeof rows !== "object") { say(1, rows); return; }
    const show = (v) => ab.inspect(v, { depth: v !== null && typeof v === "object" && !Array.isArray(v) && Object.keys(v).length > 2 ? -1 : 0, maxArrayLength: 3, breakLength: Infinity });
    const entries = rows instanceof Map ? [...rows].map(([k, v], i) => [i, { Key: k, Values: v }]) : rows instanceof Set ? [...rows].map((v, i) => [i, v]) : Object.entries(rows);
    const head = rows instanceof Map || rows instanceof Set ? "(iteration index)" : "(index)";
    const names = [];
    let values = false;
    for (const [, r] of entries) {
      if (r !== null && typeof r === "object") { for (const k of columns ?? Object.keys(r)) if (!names.includes(k)) names.push(k); } else values = true;
    }
    const lines = entries.map(([k, r]) => {
      const isObject = r !== null && typeof r === "object";
      return [String(k), ...names.map((n) => (isObject && Object.hasOwn(r, n) ? show(r[n]) : "")), ...(values ? [isObject ? "" : show(r)] : [])];
    });
    const titles = [head, ...names.map(String), ...(values ? ["Values"] : [])];
    const widths = titles.map((t, i) => Math.max(ab.width(t), ...lines.map((l) => ab.width(l[i]))) + 2);
    const row = (cells) => `│${cells.map((c, i) => ` ${c}${" ".repeat(widths[i] - ab.width(c) - 1)}`).join("│")}│`;
    const rule = (a, b, c) => a + widths.map((w) => "─".repeat(w)).join(b) + c;
    say(1, [rule("┌", "┬", "┐"), row(titles), rule("├", "┼", "┤"), ...lines.map(row), rule("└", "┴", "┘")].join("\n"));
  };
  const trace = (...args) => {
    const e = { name: "Trace", message: ab.format(...args) };
    Error.captureStackTrace?.(e, trace);
    say(2, e.stack ?? `Trace: ${e.message}`);
  };
  const console = {
    log: (...a) => say(1, ...a), info: (...a) => say(1, ...a), debug: (...a) => say(1, ...a), error: (...a) => say(2, ...a), warn: (...a) => say(2, ...a), trace,
    dir: (v, o) => say(1, ab.inspect(v, { customInspect: false, ...o })), dirxml: (...a) => say(1, ...a), table,
    assert(v, ...a) { if (!v) { if (typeof a[0] === "string") a[0] = `Assertion failed: ${a[0]}`; else a.unshift("Assertion failed"); say(2, ...a); } },
    count(label = "default") { counts.set(label, (counts.get(label) ?? 0) + 1); say(1, `${label}: ${counts.get(label)}`); }, countReset(label = "default") { counts.delete(label); },
    group(...a) { if (a.length > 0) say(1, ...a); indent += "  "; }, groupCollapsed(...a) { console.group(...a); }, groupEnd() { indent = indent.slice(2); },
    time(label = "default") { began.set(label, host.now()); }, timeLog(label = "default", ...a) { if (began.has(label)) say(1, `${label}: ${since(label)}`, ...a); },
    timeEnd(label = "default") { if (began.has(label)) { say(1, `${label}: ${since(label)}`); began.delete(label); } }, clear() {}, profile() {}, profileEnd() {}, timeStamp() {},
  };
  class Console {
    constructor(out, err) {
      const streams = out?.write ? [out, err ?? out] : [out.stdout, out.stderr ?? out.stdout];
      const to = (i) => (...a) => { streams[i].write(`${ab.format(...a)}\n`); };
      Object.assign(this, console, { log: to(0), info: to(0), debug: to(0), error: to(1), warn: to(1) });
    }
  }
  console.Console = Console;
  define("console", console);
  ab.define("console", () => console);

  // readline
  class Interface extends EventEmitter {
    constructor(o, out) {
      super();
      if (o?.on && !o.input) o = { input: o, output: out };
      this.input = o.input;
      this.output = o.output;
      this.closed = false;
      this.terminal = false;
      this.line = "";
      this.text = o.prompt ?? "> ";
      this.waiting = []; // questions
      this.ready = []; // lines that nobody has asked for
      this.rest = "";
      const decoder = new TextDecoder();
      this.data = (b) => {
        this.rest += typeof b === "string" ? b : decoder.decode(b, { stream: true });
        const lines = this.rest.split(/\r\n|\n|\r(?!$)/);
        this.rest = lines.pop();
        for (const l of lines) this.give(l);
      };
      this.over = () => {
        if (this.closed) return;
        if (this.rest !== "") { const l = this.rest; this.rest = ""; this.give(l); }
        this.finishing = true;
        if (!this.paused || this.ready.length === 0) this.close();
      };
      this.input.on("data", this.data);
      this.input.on("end", this.over);
    }
    give(l) {
      if (this.closed) return;
      const ask = this.waiting.shift();
      if (ask) ask(l);
      else if (this.listenerCount("line") > 0) this.emit("line", l);
      else this.ready.push(l);
    }
    on(name, f) { super.on(name, f); if (name === "line") while (this.ready.length > 0) f.call(this, this.ready.shift()); return this; }
    question(text, o, done) {
      if (typeof o === "function") done = o;
      this.output?.write(text);
      if (this.ready.length > 0) { const l = this.ready.shift(); ab.nextTick(() => done(l)); } else this.waiting.push(done);
    }
    setPrompt(text) { this.text = text; }
    getPrompt() { return this.text; }
    prompt() { this.output?.write(this.text); }
    write(text) { this.data(text); }
    pause() { this.input.pause(); return this; }
    resume() { this.input.resume(); return this; }
    close() {
      if (this.closed) return;
      this.closed = true;
      this.input.pause();
      this.input.off("data", this.data);
      this.emit("close");
    }
    async *[Symbol.asyncIterator]() {
      let wake = null;
      const lines = this.ready.splice(0);
      let over = this.closed;
      this.on("line", (l) => { lines.push(l); wake?.(); });
      this.on("close", () => { over = true; wake?.(); });
      for (;;) {
        if (lines.length > 0) yield lines.shift();
        else if (over) return;
        else await new Promise((resolve) => { wake = resolve; });
      }
    }
    [Symbol.dispose ?? Symbol("dispose")]() { this.close(); }
  }
  const cursor = { clearLine: () => true, clearScreenDown: () => true, cursorTo: () => true, moveCursor: () => true, emitKeypressEvents() {} };
  class PromiseInterface extends Interface { question(text) { return new Promise((resolve) => super.question(text, resolve)); } }
  ab.define("readline", () => ({ createInterface: (o, out) => new Interface(o, out), Interface, ...cursor, promises: ab.builtin("readline/promises") }));
  ab.define("readline/promises", () => ({ createInterface: (o, out) => new PromiseInterface(o, out), Interface: PromiseInterface }));
})();
