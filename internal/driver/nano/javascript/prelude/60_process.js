// process, console, readline.
(() => {
  const ab = __agentbox;
  const host = ab.host;
  const EventEmitter = ab.builtin("events");
  const { Readable, Writable } = ab.builtin("stream");
  const define = (name, value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });

  // process
  const output = (fd) => {
    const w = new Writable({ write(b, e, done) { const [x, o, n] = ab.view(b); try { host.writeAt(fd, x, o, n, -1); done(); } catch (error) { done(error); } } });
    Object.assign(w, { fd, isTTY: undefined, getColorDepth: () => 1, hasColors: () => false, _type: "pipe" });
    const write = (b, e, done) => { // at once, in the order in which it is written
      if (typeof e === "function") [done, e] = [e, undefined];
      if (typeof b === "string" && (e === undefined || e === "utf8")) host.write(fd, b);
      else { if (typeof b !== "string" && !ArrayBuffer.isView(b)) throw ab.argument("chunk", "string or an instance of Buffer, TypedArray, or DataView", b); const [x, o, n] = ab.view(ab.bytesOf(b, e)); host.writeAt(fd, x, o, n, -1); }
      if (done) ab.nextTick(done);
      return true;
    };
    // A program may put its own in the place of write, to see what is printed; console then writes there.
    Object.defineProperty(w, "write", { get: () => now, set: (f) => { now = f; ab.redirected = now !== write; }, enumerable: true, configurable: true });
    let now = write;
    w.end = (b, e, done) => { if (b !== undefined && typeof b !== "function") w.write(b, e); const f = [b, e, done].find((x) => typeof x === "function"); if (f) ab.nextTick(f); return w; };
    w.destroy = () => w;
    return w;
  };
  class Process extends EventEmitter {
    constructor() {
      super();
      Object.assign(this, {
        title: "node", version: "", versions: {}, arch: "wasm32", platform: "linux", release: { name: "node" }, argv: [], argv0: "node", execArgv: [], execPath: "", env: {}, pid: 1, ppid: 0,
        features: { inspector: false, debug: false, uv: true, ipv6: false, tls_alpn: false, tls_sni: false, tls_ocsp: false, tls: false, cached_builtins: true, require_module: true, typescript: "transform" }, config: { variables: {} }, allowedNodeEnvironmentFlags: new Set(), exitCode: undefined,
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
      this.env = new Plain({ __proto__: null, [unread]: env }, environment);
      cwd = at;
      if (ab.bun) ab.beginBun(bun);
    }
    cwd() { return ab.cwd(); }
    chdir(p) { try { cwd = host.chdir(p); } catch (e) { throw Object.assign(new Error(`${e.code}: ${e.message.toLowerCase()}, chdir '${cwd}' -> '${p}'`), { code: e.code, syscall: "chdir", path: cwd, dest: p }); } }
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
    kill(pid, signal = "SIGTERM") { if (typeof pid !== "number") throw ab.argument("pid", "number", pid); if (pid === this.pid) { if (signal === 0) return true; if (this.emit(signal, signal)) return true; host.exit(143); } throw ab.lacking("other processes"); }
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
    availableMemory() { return 134217728; }
    constrainedMemory() { return 268435456; }
    loadEnvFile(p = ".env") { for (const [k, v] of Object.entries(ab.builtin("util").parseEnv(ab.builtin("fs").readFileSync(p, "utf8")))) if (!(k in this.env)) this.env[k] = v; }
    getuid() { return 1000; }
    geteuid() { return 1000; }
    getgid() { return 1000; }
    getegid() { return 1000; }
    emitWarning(w, o, code) {
      if (typeof o === "string") o = { type: o, code };
      const name = w instanceof Error ? w.name : o?.type ?? "Warning";
      const e = w instanceof Error ? w : Object.assign(new Error(String(w)), { name, ...(o?.code ? { code: o.code } : {}) });
      ab.nextTick(() => { host.write(2, `(node:${this.pid}) ${e.code ? `[${e.code}] ` : ""}${name}: ${e.message}\n`); this.emit("warning", e); });
    }
    getBuiltinModule(name) { try { return ab.builtin(name.replace(/^node:/, "")); } catch { return undefined; } }
    binding() { throw ab.lacking("process.binding"); }
    dlopen() { throw ab.lacking("native modules"); }
    setUncaughtExceptionCaptureCallback() {}
    get stdin() { return (stdin ??= input()); }
    get [Symbol.toStringTag]() { return "process"; }
  }
  Process.prototype.hrtime.bigint = () => BigInt(Math.round((host.now() - ab.began) * 1e6));
  Process.prototype.memoryUsage.rss = () => 67108864;
  const Plain = Proxy; // as programs have it later, it keeps lists
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
