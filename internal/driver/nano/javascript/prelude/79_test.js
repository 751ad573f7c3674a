// node:test: tests run one after the other once the program has been read, and are reported as spec, tap or dot.
(() => {
  const ab = __agentbox;
  const host = ab.host;
  const say = (text) => { if (ab.redirected) ab.process.stdout.write(`${text}\n`); else host.write(1, `${text}\n`); };
  const ms = (n) => `${Math.round(n * 1e4) / 1e4}ms`;
  const totals = { tests: 0, suites: 0, pass: 0, fail: 0, cancelled: 0, skipped: 0, todo: 0 };
  const failures = [];
  const asked = { only: false };
  // placeOf is where the program declares a test.
  const placeOf = () => {
    const at = ab.placeOf(new Error());
    if (!at || at[0][0] !== "/") return null;
    const names = [...host.line(at[0], at[1]).matchAll(/(?:[\w$]+\.)*(test|it|describe|suite|skip|todo|only)(?=\s*\()/g)].filter((m) => m.index < at[2]);
    const m = names.at(-1);
    const call = m && /\.(?:skip|todo|only)$/.test(m[0]) ? m.index + 1 : m ? m.index + m[0].length - m[1].length + 1 : at[2];
    return [at[0], at[1], m && !/\./.test(m[0]) ? m.index + 1 : call];
  };
  const option = (name) => ab.process.execArgv.find((a) => a.startsWith(`--test-${name}=`))?.slice(name.length + 8);
  // A node of the tree: a suite, a test, or the root.
  class Node {
    constructor(name, o, f, parent, suite) {
      Object.assign(this, { name: String(name || f?.name || "<anonymous>"), o, f, parent, suite, children: [], failed: false, hooks: { before: [], after: [], beforeEach: [], afterEach: [] } });
      this.asserted = 0;
      this.place = parent ? placeOf() : null;
      this.depth = parent ? parent.depth + 1 : -1;
      this.fullName = parent?.parent ? `${parent.fullName} > ${this.name}` : this.name;
    }
    get path() { return this.parent?.parent ? [...this.parent.path, this.name] : [this.name]; }
  }
  const root = new Node("", {}, null, null, true);
  let at = root; // where what is declared belongs to
  let scheduled = false;
  const schedule = () => {
    if (scheduled) return;
    scheduled = true;
    setImmediate(() => runRoot().catch((e) => { throw e; }));
  };
  const read = (given) => {
    let [name, o, f] = given;
    if (typeof name === "function") [name, o, f] = ["", {}, name];
    else if (name !== null && typeof name === "object") [name, o, f] = ["", name, o];
    else if (typeof o === "function") [o, f] = [{}, o];
    return [name, o ?? {}, f ?? (() => {})];
  };
  const called = async (f, t) => {
    if (f.length > 1 || (f.length === 1 && t === undefined)) await new Promise((resolve, reject) => { const r = f.call(t, ...(t === undefined ? [] : [t]), (e) => (e ? reject(e) : resolve())); if (typeof r?.then === "function") r.then(null, reject); });
    else await f.call(t, t);
  };
  const hooksOf = (n, which) => { const all = []; for (let p = n.parent; p; p = p.parent) all.unshift(...p.hooks[which].map((f) => f)); return which === "afterEach" ? all.reverse() : all; };
  const limited = (p, limit) => (limit === undefined || limit === Infinity ? p : Promise.race([p, new Promise((_, reject) => { setTimeout(() => reject(ab.error(Error, "ERR_TEST_FAILURE", `test timed out after ${limit}ms`)), limit).unref(); })]));

  // counted are the assertions of a test, which its plan counts.
  const counted = (n) => {
    const all = {};
    const assert = ab.builtin("assert");
    for (const k of Object.keys(assert)) if (typeof assert[k] === "function" && !/^(AssertionError|Assert|strict)$/.test(k)) all[k] = (...args) => { n.asserted++; return assert[k](...args); };
    return all;
  };
  class TestContext {
    constructor(n) { this.node = n; Object.defineProperty(this, "node", { enumerable: false }); this.name = n.name; this.fullName = n.fullName; this.signal = new AbortController().signal; this.mock = new Mock(); this.assert = counted(n); Object.defineProperty(this, "filePath", { value: n.place?.[0] }); }
    test(...given) { const [name, o, f] = read(given); const n = new Node(name, o, f, this.node, false); this.node.children.push(n); return run(n); }
    diagnostic(text) { (this.node.notes ??= []).push(String(text)); }
    skip(why) { this.node.skipped = why === undefined ? true : String(why); }
    todo(why) { this.node.todo = why === undefined ? true : String(why); }
    plan(n) { this.node.plan = n; }
    before(f) { this.node.hooks.before.push(f); }
    after(f) { this.node.hooks.after.push(f); }
    beforeEach(f) { this.node.hooks.beforeEach.push(f); }
    afterEach(f) { this.node.hooks.afterEach.push(f); }
    runOnly() {}
  }

  const noteOf = (n) => (n.skipped ? ` # ${typeof n.skipped === "string" && n.skipped !== "" ? n.skipped : "SKIP"}` : n.todo ? ` # ${typeof n.todo === "string" && n.todo !== "" ? n.todo : "TODO"}` : "");
  // Each reporter hears of a test that has ended, of one that has others and begins, and of the end.
  const quoted = (x) => (/[\n]/.test(x) ? null : `'${x.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`);
  const yaml = (pad, k, v) => {
    if (v === undefined) return "";
    if (typeof v !== "string") return `${pad}${k}: ${v !== null && typeof v === "object" ? ab.inspect(v, { breakLength: Infinity }) : String(v)}\n`;
    const q = quoted(v);
    return q ? `${pad}${k}: ${q}\n` : `${pad}${k}: |-\n${v.split("\n").map((l) => `${pad}  ${l}\n`).join("")}`;
  };
  const reporters = {
    spec: {
      begins(n) { say(`${"  ".repeat(n.depth)}▶ ${n.name}`); },
      ends(n, took) {
        const pad = "  ".repeat(n.depth);
        const mark = n.skipped ? "﹣" : n.failed && !n.todo ? "✖" : n.failed ? "⚠" : "✔";
        n.line = `${mark} ${n.name} (${ms(took)})${noteOf(n)}`;
        say(`${pad}${n.line}`);
        for (const note of n.notes ?? []) say(`${pad}ℹ ${note}`);
      },
      over(took) {
        for (const [k, v] of Object.entries(totals)) say(`ℹ ${k} ${v}`);
        say(`ℹ duration_ms ${took}`);
        if (failures.length > 0) say("\n✖ failing tests:");
        for (const [n, e] of failures) {
          say("");
          if (n.place) { const base = `${ab.cwd()}/`; say(`test at ${n.place[0].startsWith(base) ? n.place[0].slice(base.length) : n.place[0]}:${n.place[1]}:${n.place[2]}`); }
          say(n.line ?? `✖ ${n.name}`);
          say(told(e).split("\n").map((l) => `  ${l}`).join("\n"));
        }
      },
    },
    tap: {
      first() { say("TAP version 13"); },
      begins(n) { say(`${"    ".repeat(n.depth)}# Subtest: ${n.name}`); },
      ends(n, took) {
        const pad = "    ".repeat(n.depth);
        if (!n.announced) this.begins(n);
        if (n.children.length > 0) say(`${pad}    1..${n.children.length}`);
        const number = (n.parent.ended = (n.parent.ended ?? 0) + 1);
        const escaped = n.name.replace(/[\\#]/g, "\\$&");
        const why = (x) => (typeof x === "string" && x !== "" ? ` ${x}` : "");
        let text = `${pad}${n.failed ? "not ok" : "ok"} ${number} - ${escaped}${n.skipped ? ` # SKIP${why(n.skipped)}` : n.todo ? ` # TODO${why(n.todo)}` : ""}\n${pad}  ---\n${pad}  duration_ms: ${Math.round(took * 1e6) / 1e6}\n${yaml(`${pad}  `, "type", n.suite ? "suite" : "test")}`;
        if (n.failed) {
          const e = n.failure;
          text += yaml(`${pad}  `, "location", n.place ? n.place.join(":") : undefined) + yaml(`${pad}  `, "failureType", e?.code === "ERR_TEST_FAILURE" && /subtests? failed$/.test(e.message) ? "subtestsFailed" : "testCodeFailure");
          text += yaml(`${pad}  `, "error", e instanceof Error ? e.message : String(e)) + yaml(`${pad}  `, "code", e?.code ?? "ERR_TEST_FAILURE");
          if (e?.code === "ERR_ASSERTION") text += yaml(`${pad}  `, "name", e.name) + yaml(`${pad}  `, "expected", e.expected) + yaml(`${pad}  `, "actual", e.actual) + yaml(`${pad}  `, "operator", e.operator);
          const frames = String(e?.stack ?? "").split("\n").filter((l) => /^ {4}at /.test(l)).map((l) => l.slice(7));
          if (frames.length > 0 && e?.code !== "ERR_TEST_FAILURE") text += `${pad}  stack: |-\n${frames.map((l) => `${pad}    ${l}\n`).join("")}`;
        }
        say(`${text}${pad}  ...`);
        for (const note of n.notes ?? []) say(`${pad}# ${note}`);
      },
      over(took) {
        say(`1..${root.children.length}`);
        for (const [k, v] of Object.entries(totals)) say(`# ${k} ${v}`);
        say(`# duration_ms ${took}`);
      },
    },
    dot: {
      begins() {},
      ends(n) { if (n.suite) return; host.write(1, n.failed ? "X" : "."); if (++dots % 20 === 0) say(""); },
      over() {
        if (dots % 20 !== 0) say("");
        if (failures.length > 0) say("\nFailed tests:\n");
        for (const [n, e] of failures) say(`✖ ${n.name} (${ms(n.took)})\n${told(e).split("\n").map((l) => `  ${l}`).join("\n")}`);
      },
    },
  };
  let dots = 0;
  let reporter = reporters.spec;
  const report = (n, took) => {
    if ((n.children.length > 0 || n.suite) && !n.skipped && !n.announced) announce(n);
    n.took = took;
    reporter.ends(n, took);
  };
  const told = (e) => ab.inspect(e);
  const announce = (n) => {
    if (n.announced || n.depth < 0) return;
    announce(n.parent);
    n.announced = true;
    reporter.begins(n);
  };
  const run = async (n) => {
    const began = host.now();
    const was = at;
    if (n.depth > 0) announce(n.parent);
    if (n.suite) totals.suites++; else totals.tests++;
    n.skipped = n.o.skip ?? (asked.only && !n.o.only && !n.suite && !n.children.some((c) => c.o.only) && !within(n) ? true : undefined);
    n.todo = n.o.todo;
    if (n.skipped === false) n.skipped = undefined;
    const only = option("name-pattern");
    const not = option("skip-pattern");
    const matches = (pattern, x) => new RegExp(/^\/(.*)\/([a-z]*)$/.exec(pattern)?.[1] ?? pattern, /^\/(.*)\/([a-z]*)$/.exec(pattern)?.[2]).test(x);
    if (!n.suite && ((only && !matches(only, n.fullName)) || (not && matches(not, n.fullName)))) { totals.tests--; return; }
    let failure;
    if (n.skipped === undefined) {
      try {
        if (n.suite) {
          if (n.children.length > 0) announce(n);
          for (const f of n.hooks.before) await called(f);
          for (const c of n.children) await run(c);
          for (const f of n.hooks.after) await called(f);
          const bad = n.children.filter((c) => c.failed && !c.todo).length;
          if (bad > 0) failure = ab.error(Error, "ERR_TEST_FAILURE", `${bad} subtest${bad > 1 ? "s" : ""} failed`);
        } else {
          const t = new TestContext(n);
          at = n;
          for (const f of hooksOf(n, "beforeEach")) await called(f, t);
          try {
            for (const f of n.hooks.before) await called(f, t);
            await limited(called(n.f, t), n.o.timeout);
            for (const f of n.hooks.after) await called(f, t);
          } finally {
            for (const f of hooksOf(n, "afterEach")) await called(f, t);
            t.mock.restoreAll(); t.mock.timers.reset();
          }
          const bad = n.children.filter((c) => c.failed && !c.todo).length;
          if (bad > 0) failure = ab.error(Error, "ERR_TEST_FAILURE", `${bad} subtest${bad > 1 ? "s" : ""} failed`);
          const met = n.asserted + n.children.length;
          if (n.plan !== undefined && n.plan !== met) failure ??= ab.error(Error, "ERR_TEST_FAILURE", `plan expected ${n.plan} assertions but received ${met}`);
        }
      } catch (e) { failure = e ?? new Error(String(e)); }
    }
    at = was;
    n.failed = failure !== undefined;
    n.failure = failure;
    n.error = n.failed && !(n.children.length > 0 && failure.code === "ERR_TEST_FAILURE") ? failure : undefined;
    if (!n.suite) {
      if (n.skipped !== undefined) totals.skipped++;
      else if (n.todo) totals.todo++;
      else if (n.failed) totals.fail++;
      else totals.pass++;
    }
    if (n.error && !n.todo) failures.push([n, failure]);
    report(n, host.now() - began);
  };
  const within = (n) => { for (let p = n; p; p = p.parent) if (p.o.only) return true; return false; };
  const runRoot = async () => {
    const began = host.now();
    const wanted = option("reporter") ?? "spec";
    if (!reporters[wanted]) throw ab.lacking(`the reporter ${wanted}`, `the reporter ${wanted} is not available in a nano space; it has spec, tap and dot`);
    reporter = reporters[wanted];
    reporter.first?.();
    for (const f of root.hooks.before) await called(f);
    for (let i = 0; i < root.children.length; i++) await run(root.children[i]); // a test may declare others
    for (const f of root.hooks.after) await called(f);
    reporter.over(Math.round((host.now() - began) * 1e4) / 1e4);
    if (totals.fail > 0 || failures.length > 0) ab.process.exitCode = 1;
  };
  const declare = (suite, extra = {}) => (...given) => {
    const [name, o, f] = read(given);
    if (o.only || extra.only) asked.only = ab.process.execArgv.includes("--test-only") || extra.only === true && ab.process.execArgv.includes("--test-only");
    const n = new Node(name, { ...o, ...extra }, f, at, suite);
    schedule();
    if (at !== root && !at.suite && !suite) { at.children.push(n); return run(n); }
    at.children.push(n);
    if (suite) {
      const was = at;
      at = n;
      try { const r = f(new TestContext(n)); if (typeof r?.then === "function") r.then(null, (e) => { throw e; }); } finally { at = was; }
    }
    return Promise.resolve();
  };
  const test = declare(false);
  const suite = declare(true);
  for (const [f, s] of [[test, false], [suite, true]]) for (const k of ["skip", "todo", "only"]) f[k] = declare(s, { [k]: true });
  const hook = (name) => (f) => { at.hooks[name].push(f); };
  const hooks = { before: hook("before"), after: hook("after"), beforeEach: hook("beforeEach"), afterEach: hook("afterEach") };

  // MockTimers have a clock of their own, which only tick moves.
  class MockTimers {
    #was = null;
    #now = 0;
    #serial = 0;
    #waiting = [];
    enable(o = {}) {
      if (this.#was) throw ab.error(Error, "ERR_INVALID_STATE", "Invalid state: MockTimers is already enabled!");
      const apis = o.apis ?? ["setTimeout", "setInterval", "setImmediate", "Date"];
      for (const a of apis) if (!["setTimeout", "setInterval", "setImmediate", "Date", "scheduler.wait", "AbortSignal.timeout"].includes(a)) throw ab.error(TypeError, "ERR_INVALID_ARG_VALUE", `The property 'options.apis' option ${a} is not supported. Received ${ab.inspect(a)}`);
      this.#now = typeof o.now === "number" ? o.now : o.now instanceof Date ? o.now.getTime() : 0;
      this.#was = {};
      const put = (name, value) => { this.#was[name] = Object.getOwnPropertyDescriptor(globalThis, name); Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: true }); };
      const set = (repeat) => (f, delay = 0, ...args) => { const t = { id: ++this.#serial, f, args, at: this.#now + Math.max(delay, repeat ? 1 : 0), every: repeat ? Math.max(delay, 1) : 0, ref() { return t; }, unref() { return t; }, hasRef: () => true, [Symbol.toPrimitive]: () => t.id }; this.#waiting.push(t); return t; };
      const clear = (t) => { this.#waiting = this.#waiting.filter((x) => x !== t && x.id !== t); };
      if (apis.includes("setTimeout")) { put("setTimeout", set(false)); put("clearTimeout", clear); }
      if (apis.includes("setInterval")) { put("setInterval", set(true)); put("clearInterval", clear); }
      if (apis.includes("setImmediate")) { const f = set(false); put("setImmediate", (g, ...args) => f(g, -1, ...args)); put("clearImmediate", clear); }
      if (apis.includes("Date")) {
        const Real = Date;
        const clock = () => this.#now;
        const Mocked = class Date extends Real { constructor(...args) { super(...(args.length === 0 ? [clock()] : args)); } static now() { return clock(); } };
        put("Date", new Proxy(Mocked, { apply: () => new Mocked().toString() }));
      }
    }
    #on() { if (!this.#was) throw ab.error(Error, "ERR_INVALID_STATE", "Invalid state: You should enable MockTimers first by calling the .enable function"); }
    tick(n = 1) {
      this.#on();
      if (!(n >= 0)) throw ab.error(RangeError, "ERR_OUT_OF_RANGE", `The value of "time" is out of range. It must be >= 0. Received ${ab.inspect(n)}`);
      const end = this.#now + n;
      for (;;) {
        const due = this.#waiting.filter((t) => t.at <= end).sort((a, b) => a.at - b.at || a.id - b.id)[0];
        if (!due) break;
        this.#now = Math.max(this.#now, due.at);
        if (due.every) due.at += due.every; else this.#waiting.splice(this.#waiting.indexOf(due), 1);
        due.f(...due.args);
      }
      this.#now = end;
    }
    runAll() { this.#on(); const last = Math.max(this.#now, ...this.#waiting.map((t) => t.at)); this.tick(last - this.#now); }
    setTime(n) { this.#on(); this.#now = n; this.tick(0); }
    reset() {
      if (!this.#was) return;
      for (const [k, d] of Object.entries(this.#was)) Object.defineProperty(globalThis, k, d);
      this.#was = null;
      this.#waiting = [];
    }
    [Symbol.dispose ?? Symbol("dispose")]() { this.reset(); }
  }
  // Mocks.
  class MockFunctionContext {
    constructor(original, instead) { Object.assign(this, { calls: [], original, instead, once: new Map() }); }
    callCount() { return this.calls.length; }
    resetCalls() { this.calls.length = 0; }
    mockImplementation(f) { this.instead = f; }
    mockImplementationOnce(f, on = this.calls.length) { this.once.set(on, f); }
    restore() { this.undo?.(); this.instead = this.original; }
  }
  class Mock {
    constructor() { this.made = []; Object.defineProperty(this, "made", { enumerable: false }); this.timers = new MockTimers(); Object.defineProperty(this, "timers", { enumerable: false }); }
    fn(original = () => {}, instead = original, o) {
      if (typeof instead !== "function") [instead, o] = [original, instead];
      void o;
      const c = new MockFunctionContext(original, instead);
      const f = function (...args) {
        const g = c.once.get(c.calls.length) ?? c.instead;
        c.once.delete(c.calls.length);
        const call = { arguments: args, error: undefined, result: undefined, stack: new Error(), target: new.target, this: this };
        try { call.result = new.target ? Reflect.construct(g, args) : g.apply(this, args); return call.result; } catch (e) { call.error = e; throw e; } finally { c.calls.push(call); }
      };
      Object.defineProperty(f, "mock", { value: c });
      Object.defineProperty(f, "name", { value: original.name });
      this.made.push(c);
      return f;
    }
    method(o, name, instead, options) {
      if (instead !== undefined && typeof instead !== "function") [instead, options] = [undefined, instead];
      const was = Object.getOwnPropertyDescriptor(o, name);
      const kind = options?.getter ? "get" : options?.setter ? "set" : "value";
      const original = was?.[kind] ?? o[name];
      const f = this.fn(original, instead ?? original);
      f.mock.undo = () => { if (was) Object.defineProperty(o, name, was); else delete o[name]; };
      Object.defineProperty(o, name, kind === "value" ? { value: f, writable: true, configurable: true, enumerable: was?.enumerable ?? true } : { ...was, [kind]: f, configurable: true });
      return f;
    }
    getter(o, name, instead, options) { return this.method(o, name, instead, { ...options, getter: true }); }
    setter(o, name, instead, options) { return this.method(o, name, instead, { ...options, setter: true }); }
    reset() { this.restoreAll(); this.made.length = 0; this.timers.reset(); }
    restoreAll() { for (const c of this.made) c.restore(); }
  }
  // testFiles runs the tests of files: those that are named, or all below the folder that have a name of tests.
  const named = /(^|\/)(test\/.*|test|test-[^/]*|[^/]*[.\-_]test)\.[cm]?[jt]s$/;
  ab.testFiles = async (wanted) => {
    const fs = ab.builtin("fs");
    const path = ab.builtin("path");
    const below = (dir) => fs.readdirSync(dir, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1)).flatMap((d) => (d.isDirectory() ? (d.name === "node_modules" || d.name[0] === "." ? [] : below(`${dir}/${d.name}`)) : [`${dir}/${d.name}`]));
    let files = [];
    if (wanted.length === 0) files = below(ab.cwd()).filter((f) => named.test(f.slice(ab.cwd().length + 1)));
    for (const w of wanted) {
      const whole = path.resolve(w);
      if (/[*?[{]/.test(w)) files.push(...below(ab.cwd()).filter((f) => ab.glob(whole).test(f)));
      else if (fs.existsSync(whole) && fs.statSync(whole).isDirectory()) files.push(...below(whole).filter((f) => /\.[cm]?[jt]s$/.test(f)));
      else if (fs.existsSync(whole)) files.push(whole);
      else { ab.process.stderr.write(`Could not find '${whole}'\n`); ab.process.exitCode = 1; }
    }
    ab.builtin("test");
    schedule();
    for (const f of files) {
      try { await import(f); } catch (e) { test(path.relative(ab.cwd(), f), () => { throw e; }); }
    }
  };
  ab.define("test", () => Object.assign(test, { test, it: test, describe: suite, suite, ...hooks, mock: new Mock(), snapshot: {}, assert: { register() {} }, run() { throw ab.lacking("test runs", "test.run is not available in a nano space"); }, default: test }));
})();
