// async_hooks: a store that follows what was begun in it, over timers, promises and what awaits them. The host rewrites async functions of programs
// that name the module, for the engine's own await tells nobody where it goes on.
(() => {
  const ab = __agentbox;
  const host = ab.host;
  let now = new Map(); // AsyncLocalStorage -> its store
  let watching = false;
  // Hooks see what was begun by its id: 1 is the program itself, 0 what nobody began.
  let serial = 1;
  let current = { id: 1, trigger: 0, resource: {} };
  const hooks = new Set();
  const begun = (type, resource) => {
    const r = { id: ++serial, trigger: current.id, resource, type };
    for (const h of hooks) h.init?.(r.id, type, r.trigger, resource);
    return r;
  };
  const tell = (name, r) => { for (const h of hooks) h[name]?.(r.id); };
  const inside = (r, f) => {
    const was = current;
    current = r;
    tell("before", r);
    try { return f(); } finally { tell("after", r); current = was; }
  };
  // bound is a function that has the stores of now when it is called, and is told of to the hooks where it has a type.
  const bound = (f, type, resource = {}) => {
    if (typeof f !== "function") return f;
    const at = now;
    const r = type && tracked ? begun(type === "Interval" ? "Timeout" : type, resource) : null;
    const g = function (...args) {
      const was = now;
      now = at;
      try { return r ? inside(r, () => f.apply(this, args)) : f.apply(this, args); } finally { now = was; if (r && type !== "Interval") afterwards(() => tell("destroy", r)); }
    };
    g.begun = r;
    return g;
  };
  const afterwards = ab.nextTick;
  const types = { setTimeout: "Timeout", setInterval: "Interval", setImmediate: "Immediate", queueMicrotask: "Microtask" };
  let patched = false;
  let tracked = false;
  const patch = () => {
    if (patched) return;
    patched = true;
    const then = Promise.prototype.then;
    Object.defineProperty(Promise.prototype, "then", { value: function (a, b) {
      const r = tracked ? begun("PROMISE", this) : null;
      const of = (f) => (typeof f !== "function" ? f : r ? bound((...args) => inside(r, () => f(...args))) : bound(f));
      return then.call(this, of(a), of(b));
    }, writable: true, configurable: true });
    for (const name of ["setTimeout", "setInterval", "setImmediate", "queueMicrotask"]) {
      const was = globalThis[name];
      const g = { [name](f, ...rest) { const resource = {}; return was(bound(f, types[name], resource), ...rest); } }[name];
      for (const k of Object.getOwnPropertySymbols(was)) g[k] = was[k];
      Object.defineProperty(globalThis, name, { value: g, writable: true, configurable: true, enumerable: true });
    }
    const tick = ab.nextTick;
    ab.nextTick = (f, ...args) => tick(bound(f, "TickObject"), ...args);
  };
  // watch has everything that calls back later keep the stores of its caller.
  const watch = () => {
    if (watching) return;
    if (host.awaits()) throw ab.lacking("async context", "AsyncLocalStorage is not available here: a file with await was loaded before node:async_hooks; name the module in the program's first file");
    watching = true;
    patch();
  };
  const track = () => { tracked = true; patch(); };
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
  class AsyncResource {
    #begun;
    #at;
    constructor(type, o = {}) {
      if (typeof type !== "string") throw ab.argument("type", "string", type);
      watch();
      this.#at = now;
      this.#begun = begun(type, this);
      const trigger = typeof o === "number" ? o : o?.triggerAsyncId;
      if (trigger !== undefined) this.#begun.trigger = trigger;
    }
    runInAsyncScope(f, self, ...args) { const was = now; now = this.#at; try { return inside(this.#begun, () => f.apply(self, args)); } finally { now = was; } }
    bind(f, self) { const r = this; return Object.defineProperty(function (...args) { return r.runInAsyncScope(f, self ?? this, ...args); }, "length", { value: f.length }); }
    static bind(f, type) { return new AsyncResource(type ?? f.name ?? "bound-anonymous-fn").bind(f); }
    emitDestroy() { tell("destroy", this.#begun); return this; }
    asyncId() { return this.#begun.id; }
    triggerAsyncId() { return this.#begun.trigger; }
  }
  const createHook = (callbacks = {}) => {
    for (const name of ["init", "before", "after", "destroy", "promiseResolve"]) if (callbacks[name] !== undefined && typeof callbacks[name] !== "function") throw ab.error(TypeError, "ERR_ASYNC_CALLBACK", `hook.${name} must be a function`);
    const h = { enable() { track(); hooks.add(callbacks); return h; }, disable() { hooks.delete(callbacks); return h; } };
    return h;
  };
  ab.define("async_hooks", () => ({ AsyncLocalStorage, AsyncResource, createHook, executionAsyncId: () => current.id, triggerAsyncId: () => current.trigger, executionAsyncResource: () => current.resource, asyncWrapProviders: {} }));
})();
