// async_hooks: a store that follows what was begun in it, over timers, promises and what awaits them. The host rewrites async functions of programs
// that name the module, for the engine's own await tells nobody where it goes on.
(() => {
  const ab = __agentbox;
  const host = ab.host;
  let now = new Map(); // AsyncLocalStorage -> its store
  let watching = false;
  const bound = (f) => {
    if (typeof f !== "function") return f;
    const at = now;
    return function (...args) { const was = now; now = at; try { return f.apply(this, args); } finally { now = was; } };
  };
  // watch has everything that calls back later keep the stores of its caller.
  const watch = () => {
    if (watching) return;
    if (host.awaits()) throw ab.lacking("async context", "AsyncLocalStorage is not available here: a file with await was loaded before node:async_hooks; name the module in the program's first file");
    watching = true;
    const then = Promise.prototype.then;
    Object.defineProperty(Promise.prototype, "then", { value: function (a, b) { return then.call(this, bound(a), bound(b)); }, writable: true, configurable: true });
    for (const name of ["setTimeout", "setInterval", "setImmediate", "queueMicrotask"]) {
      const was = globalThis[name];
      Object.defineProperty(globalThis, name, { value: { [name](f, ...rest) { return was(bound(f), ...rest); } }[name], writable: true, configurable: true, enumerable: true });
    }
    const tick = ab.nextTick;
    ab.nextTick = (f, ...args) => tick(bound(f), ...args);
  };
  class AsyncLocalStorage {
    constructor(o = {}) { this.usual = o.defaultValue; this.name = o.name ?? ""; watch(); }
    run(v, f, ...args) { const was = now; now = new Map(was).set(this, v); try { return f(...args); } finally { now = was; } }
    getStore() { return now.has(this) ? now.get(this) : this.usual; }
    enterWith(v) { now = new Map(now).set(this, v); }
    exit(f, ...args) { return this.run(undefined, f, ...args); }
    disable() { now = new Map(now); now.delete(this); }
    static bind(f) { return bound(f); }
    static snapshot() { const at = now; return (f, ...args) => { const was = now; now = at; try { return f(...args); } finally { now = was; } }; }
  }
  let serial = 1;
  class AsyncResource {
    constructor(type) { watch(); this.type = type; this.at = now; this.id = ++serial; }
    runInAsyncScope(f, self, ...args) { const was = now; now = this.at; try { return f.apply(self, args); } finally { now = was; } }
    bind(f) { const self = this; return function (...args) { return self.runInAsyncScope(f, this, ...args); }; }
    static bind(f) { watch(); return bound(f); }
    emitDestroy() { return this; }
    asyncId() { return this.id; }
    triggerAsyncId() { return 1; }
  }
  const lacks = (name) => () => { throw ab.lacking("async hooks", `async_hooks.${name} is not available in a nano space; use AsyncLocalStorage`); };
  ab.define("async_hooks", () => ({ AsyncLocalStorage, AsyncResource, createHook: lacks("createHook"), executionAsyncId: lacks("executionAsyncId"), triggerAsyncId: lacks("triggerAsyncId"), executionAsyncResource: lacks("executionAsyncResource") }));
})();
