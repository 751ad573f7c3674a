// node:test: tests run one after the other once the program has been read, and are reported as the spec reporter does.
(() => {
  const ab = __agentbox;
  const host = ab.host;
  const say = (text) => host.write(1, `${text}\n`);
  const ms = (n) => `${Math.round(n * 1e4) / 1e4}ms`;
  const totals = { tests: 0, suites: 0, pass: 0, fail: 0, cancelled: 0, skipped: 0, todo: 0 };
  const failures = [];
  const asked = { only: false };
  // A node of the tree: a suite, a test, or the root.
  class Node {
    constructor(name, o, f, parent, suite) {
      Object.assign(this, { name: String(name || f?.name || "<anonymous>"), o, f, parent, suite, children: [], failed: false, hooks: { before: [], after: [], beforeEach: [], afterEach: [] } });
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

  class TestContext {
    constructor(n) { this.node = n; Object.defineProperty(this, "node", { enumerable: false }); this.name = n.name; this.fullName = n.fullName; this.signal = new AbortController().signal; this.mock = new Mock(); this.assert = ab.builtin("assert"); }
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

  const report = (n, took) => {
    const pad = "  ".repeat(n.depth);
    const mark = n.failed ? "✖" : n.skipped ? "﹣" : n.suite ? "✔" : "✔";
    const note = n.skipped ? ` # ${typeof n.skipped === "string" && n.skipped !== "" ? n.skipped : "SKIP"}` : n.todo ? ` # ${typeof n.todo === "string" && n.todo !== "" ? n.todo : "TODO"}` : "";
    if (n.children.length > 0 || n.suite) {
      if (!n.announced) announce(n);
    }
    say(`${pad}${mark} ${n.name} (${ms(took)})${note}`);
    if (n.error && !n.suite) say(`${told(n.error).replace(/^/gm, `${pad}  `)}\n`);
    for (const note of n.notes ?? []) say(`${pad}ℹ ${note}`);
  };
  const told = (e) => ab.inspect(e);
  const announce = (n) => {
    if (n.announced || n.depth < 0) return;
    announce(n.parent);
    n.announced = true;
    say(`${"  ".repeat(n.depth)}▶ ${n.name}`);
  };
  const run = async (n) => {
    const began = host.now();
    const was = at;
    if (n.depth > 0) announce(n.parent);
    if (n.suite) totals.suites++; else totals.tests++;
    n.skipped = n.o.skip ?? (asked.only && !n.o.only && !n.suite && !n.children.some((c) => c.o.only) && !within(n) ? true : undefined);
    n.todo = n.o.todo;
    if (n.skipped === false) n.skipped = undefined;
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
            t.mock.restoreAll();
          }
          const bad = n.children.filter((c) => c.failed && !c.todo).length;
          if (bad > 0) failure = ab.error(Error, "ERR_TEST_FAILURE", `${bad} subtest${bad > 1 ? "s" : ""} failed`);
          if (n.plan !== undefined && n.plan !== n.children.length) failure ??= ab.error(Error, "ERR_TEST_FAILURE", `plan expected ${n.plan} assertions but received ${n.children.length}`);
        }
      } catch (e) { failure = e ?? new Error(String(e)); }
    }
    at = was;
    n.failed = failure !== undefined;
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
    for (const f of root.hooks.before) await called(f);
    for (let i = 0; i < root.children.length; i++) await run(root.children[i]); // a test may declare others
    for (const f of root.hooks.after) await called(f);
    for (const [k, v] of Object.entries(totals)) say(`ℹ ${k} ${v}`);
    say(`ℹ duration_ms ${Math.round((host.now() - began) * 1e4) / 1e4}`);
    if (failures.length > 0) {
      say("\n✖ failing tests:");
      for (const [n, e] of failures) {
        say(`\n✖ ${n.name}`);
        say(told(e).replace(/^/gm, "  "));
      }
    }
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
    constructor() { this.made = []; Object.defineProperty(this, "made", { enumerable: false }); this.timers = new Proxy({}, { get: (_, k) => () => { throw ab.lacking("mock timers", `mock.timers.${String(k)} is not available in a nano space; its clock is virtual already`); } }); }
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
    reset() { this.restoreAll(); this.made.length = 0; }
    restoreAll() { for (const c of this.made) c.restore(); }
  }
  ab.define("test", () => Object.assign(test, { test, it: test, describe: suite, suite, ...hooks, mock: new Mock(), run() { throw ab.lacking("test runs", "test.run is not available in a nano space"); }, default: test }));
})();
