// child_process: commands of the space's shell. One runs to its end while its starter waits; what it prints is there then.
(() => {
  const ab = __agentbox;
  const host = ab.host;
  const EventEmitter = ab.builtin("events");
  const { Readable, Writable } = ab.builtin("stream");
  const signals = { 1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 6: "SIGABRT", 9: "SIGKILL", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM" };
  const errnos = { ENOENT: -2, EACCES: -13, ENOTDIR: -20 };

  // words splits (file, args, options) as Node does.
  const words = (file, args, o) => {
    if (typeof file !== "string") throw ab.argument("file", "string", file);
    if (file === "") throw ab.error(TypeError, "ERR_INVALID_ARG_VALUE", "The argument 'file' cannot be empty. Received ''");
    if (args !== null && args !== undefined && !Array.isArray(args)) [o, args] = [args, []];
    return [file, (args ?? []).map(String), o ?? {}];
  };
  const shellOf = (o) => (typeof o.shell === "string" ? o.shell : "/bin/sh");
  const argvOf = (file, args, o) => (o.shell ? [shellOf(o), "-c", [file, ...args].join(" ")] : [file, ...args]);
  // stdio returns where each of the three goes: pipe, inherit or ignore.
  const stdio = (o, usual) => {
    const s = Array.isArray(o.stdio) ? o.stdio : [o.stdio, o.stdio, o.stdio];
    return [0, 1, 2].map((i) => {
      const x = s[i] ?? usual[i];
      if (x === "inherit" || x === i || x === [ab.process.stdin, ab.process.stdout, ab.process.stderr][i]) return "inherit";
      return x === "ignore" ? "ignore" : "pipe";
    });
  };
  const kept = { pipe: "capture", inherit: "inherit", ignore: "null" };
  const envOf = (o) => Object.entries(o.env ?? ab.process.env).filter(([, v]) => v !== undefined).map(([k, v]) => `${k}=${v}`);
  const cwdOf = (o) => (o.cwd instanceof URL ? ab.pathOf(o.cwd) : o.cwd ? ab.builtin("path").resolve(String(o.cwd)) : ab.cwd());

  // execute runs a command to its end; input is what it reads, null for what the program itself reads.
  const execute = (argv, o, to, input) => {
    if (argv.some((a) => a.includes("\0"))) throw ab.error(TypeError, "ERR_INVALID_ARG_VALUE", "The arguments of a command must be strings without null bytes");
    const feeds = input !== null;
    const given = feeds ? ab.bytesOf(input) : new Uint8Array(0);
    const answer = ab.wrap(host.execute(JSON.stringify({ args: argv, env: envOf(o), cwd: cwdOf(o), stdout: kept[to[1]], stderr: kept[to[2]], feeds, timeout: Number(o.timeout ?? 0) }), ...ab.view(given)));
    const line = answer.indexOf(10);
    const { code, signal, timed_out, out } = JSON.parse(answer.toString("utf8", 0, line));
    const rest = answer.subarray(line + 1);
    return { status: signal ? null : code, signal: signal ? signals[signal] ?? `SIG${signal}` : null, timedOut: Boolean(timed_out), stdout: Buffer.from(rest.subarray(0, out)), stderr: Buffer.from(rest.subarray(out)) };
  };
  const notStarted = (e, what, file, args) => Object.assign(new Error(`${what} ${file} ${e.code ?? "EIO"}`), { errno: errnos[e.code] ?? -5, code: e.code ?? "EIO", syscall: `${what} ${file}`, path: file, spawnargs: args });
  const inputOf = (o, to) => (o.input !== undefined && o.input !== null ? o.input : to[0] === "inherit" ? null : "");
  const text = (b, encoding) => (encoding && encoding !== "buffer" ? b.toString(encoding) : b);

  const spawnSync = (...given) => {
    const [file, args, o] = words(...given);
    const to = stdio(o, ["pipe", "pipe", "pipe"]);
    const argv = argvOf(file, args, o);
    let r;
    try { r = execute(argv, o, to, inputOf(o, to)); } catch (e) {
      if (e.code?.startsWith("ERR_")) throw e;
      return { pid: 0, output: null, stdout: null, stderr: null, status: null, signal: null, error: notStarted(e, "spawnSync", argv[0], args) };
    }
    const [stdout, stderr] = [1, 2].map((i) => (to[i] === "pipe" ? text(i === 1 ? r.stdout : r.stderr, o.encoding) : null));
    const done = { pid: ++serial, output: [null, stdout, stderr], stdout, stderr, status: r.status, signal: r.signal };
    if (r.timedOut) done.error = Object.assign(new Error(`spawnSync ${argv[0]} ETIMEDOUT`), { errno: -110, code: "ETIMEDOUT", syscall: `spawnSync ${argv[0]}`, path: argv[0], spawnargs: args });
    return done;
  };
  let serial = 100;
  // checked returns what a command printed, or throws where it failed, as execSync does.
  const checked = (r, line, o, to) => {
    if (to[2] === "pipe" && !o.stdio && r.stderr?.length > 0) ab.process.stderr.write(r.stderr);
    if (r.error) throw Object.assign(r.error, r);
    if (r.status !== 0) throw Object.assign(new Error(`Command failed: ${line}${r.stderr?.length ? `\n${r.stderr}` : ""}`), r);
    return r.stdout;
  };
  const execSync = (line, o = {}) => { if (typeof line !== "string") throw ab.argument("command", "string", line); return checked(spawnSync(line, [], { ...o, shell: o.shell ?? true }), line, o, stdio(o, ["pipe", "pipe", "pipe"])); };
  const execFileSync = (...given) => { const [file, args, o] = words(...given); return checked(spawnSync(file, args, o), [file, ...args].join(" "), o, stdio(o, ["pipe", "pipe", "pipe"])); };

  // ChildProcess is a command that begins when its input is there: at the next turn, or where the program writes to it, when it ends it.
  class ChildProcess extends EventEmitter {
    constructor(file, args, o) {
      super();
      Object.assign(this, { pid: ++serial, spawnfile: file, spawnargs: [file, ...args], exitCode: null, signalCode: null, killed: false, connected: false });
      const to = stdio(o, ["pipe", "pipe", "pipe"]);
      const argv = argvOf(file, args, o);
      const parts = [];
      let open = false; // something is written to it that has no end yet
      const self = this;
      this.stdin = to[0] === "pipe" ? new Writable({ write(b, e, done) { open = true; parts.push(ab.bytesOf(b)); done(); }, final(done) { open = false; done(); setImmediate(begin); } }) : null;
      this.stdout = to[1] === "pipe" ? new Readable({ read() {} }) : null;
      this.stderr = to[2] === "pipe" ? new Readable({ read() {} }) : null;
      this.stdio = [this.stdin, this.stdout, this.stderr];
      let begun = false;
      const begin = () => {
        if (begun || open) return;
        begun = true;
        if (self.killed) { over(null, self.signalCode ?? "SIGTERM"); return; }
        let r;
        try { r = execute(argv, o, to, to[0] === "inherit" ? null : Buffer.concat(parts)); } catch (e) {
          self.pid = undefined;
          const failed = e.code?.startsWith("ERR_") ? e : notStarted(e, "spawn", argv[0], args);
          self.stdout?.push(null);
          self.stderr?.push(null);
          ab.nextTick(() => { self.emit("error", failed); self.emit("close", errnos[e.code] ?? -5, null); });
          return;
        }
        self.emit("spawn");
        for (const [s, b] of [[self.stdout, r.stdout], [self.stderr, r.stderr]]) if (s && b.length > 0) s.push(b);
        over(r.status, r.signal);
      };
      const over = (code, signal) => {
        self.exitCode = code;
        self.signalCode = signal;
        setImmediate(() => {
          self.emit("exit", code, signal);
          for (const s of [self.stdout, self.stderr]) s?.push(null); // it ends, and then its streams do
          let left = 1;
          const one = () => { if (--left === 0) self.emit("close", code, signal); };
          for (const s of [self.stdout, self.stderr]) if (s && !s.readableEnded && (s.readableFlowing || s.listenerCount("readable") > 0)) { left++; s.once("end", one); }
          setImmediate(one);
        });
      };
      setImmediate(begin);
      if (o.signal) o.signal.addEventListener("abort", () => { this.kill(); this.emit("error", Object.assign(new Error("The operation was aborted"), { name: "AbortError", code: "ABORT_ERR" })); }, { once: true });
    }
    kill(signal = "SIGTERM") { if (this.exitCode !== null || this.signalCode !== null) return false; this.killed = true; this.signalCode = typeof signal === "number" ? signals[signal] : signal; return true; }
    ref() {} unref() {} disconnect() {}
    [Symbol.dispose ?? Symbol("dispose")]() { this.kill(); }
  }
  const spawn = (...given) => { const [file, args, o] = words(...given); return new ChildProcess(file, args, o); };
  const execFile = (...given) => {
    const done = typeof given.at(-1) === "function" ? given.pop() : null;
    const [file, args, o] = words(...given);
    const child = new ChildProcess(file, args, o);
    const all = [[], []];
    child.stdout?.on("data", (b) => all[0].push(b));
    child.stderr?.on("data", (b) => all[1].push(b));
    let failed = null;
    child.on("error", (e) => { failed = e; });
    child.on("close", (code, signal) => {
      const [out, err] = all.map((parts) => text(Buffer.concat(parts), o.encoding ?? "utf8"));
      if (!failed && (code !== 0 || signal)) {
        const line = o.shell ? file : [file, ...args].join(" ");
        failed = Object.assign(new Error(`Command failed: ${line}\n${err}`), { code: signal ? null : code, killed: child.killed, signal, cmd: line });
      }
      done?.(failed, out, err);
    });
    return child;
  };
  const exec = (line, ...rest) => {
    const done = typeof rest.at(-1) === "function" ? rest.pop() : null;
    if (typeof line !== "string") throw ab.argument("command", "string", line);
    const o = rest[0] ?? {};
    return execFile(line, [], { ...o, shell: o.shell ?? true }, done ?? (() => {}));
  };
  const promised = (f) => (...given) => {
    let child;
    const p = new Promise((resolve, reject) => { child = f(...given, (e, stdout, stderr) => (e ? reject(Object.assign(e, { stdout, stderr })) : resolve({ stdout, stderr }))); });
    p.child = child;
    return p;
  };
  for (const f of [exec, execFile]) Object.defineProperty(f, Symbol.for("nodejs.util.promisify.custom"), { value: promised(f) });
  ab.define("child_process", () => ({
    spawn, spawnSync, exec, execSync, execFile, execFileSync, ChildProcess,
    fork() { throw ab.lacking("processes", "child_process.fork is not available: a nano space has no processes that send each other messages; use spawn"); },
  }));
  ab.commands = { execute, stdio, spawnSync };
})();
