// events, with the fields that Node's emitters have: programs print them.
(() => {
  const ab = __agentbox;
  const kCapture = Symbol("kCapture");
  const shapeMode = Symbol("shapeMode");
  const kRejection = Symbol.for("nodejs.rejection");
  const errorMonitor = Symbol("events.errorMonitor");
  const argument = (name, type, v) => ab.error(TypeError, "ERR_INVALID_ARG_TYPE", `The "${name}" ${name.includes(".") ? "property" : "argument"} must be ${/^(of type |an instance |one of |\()/.test(type) ? "" : "of type "}${type}. Received ${ab.received(v)}`);
  ab.argument = argument;
  const callable = (f) => { if (typeof f !== "function") throw argument("listener", "function", f); };
  let usual = 10;

  function EventEmitter(o) { EventEmitter.init.call(this, o); }
  EventEmitter.init = function (o) {
    if (this._events === undefined || this._events === Object.getPrototypeOf(this)._events) {
      this._events = Object.create(null);
      this._eventsCount = 0;
    }
    this._maxListeners ??= undefined;
    this[shapeMode] ??= false;
    this[kCapture] = Boolean(o?.captureRejections ?? EventEmitter.captureRejections);
  };
  const ready = (e) => { if (e._events === undefined) { e._events = Object.create(null); e._eventsCount = 0; } return e._events; };
  const listed = (l) => (l === undefined ? [] : typeof l === "function" ? [l] : l);
  const maxOf = (e) => e._maxListeners ?? usual;
  const add = (self, name, f, first) => {
    callable(f);
    let events = ready(self);
    if (events.newListener !== undefined) {
      self.emit("newListener", name, f.listener ?? f);
      events = self._events;
    }
    const was = events[name];
    if (was === undefined) {
      events[name] = f;
      self._eventsCount++;
      return self;
    }
    const list = typeof was === "function" ? (first ? [f, was] : [was, f]) : first ? [f, ...was] : [...was, f];
    if (was.warned) Object.defineProperty(list, "warned", { value: true });
    events[name] = list;
    const most = maxOf(self);
    if (most > 0 && list.length > most && !list.warned) {
      Object.defineProperty(list, "warned", { value: true });
      const w = new Error(`Possible EventEmitter memory leak detected. ${list.length} ${String(name)} listeners added to ${ab.inspect(self, { depth: -1 })}. MaxListeners is ${most}. Use emitter.setMaxListeners() to increase limit`);
      w.name = "MaxListenersExceededWarning";
      w.emitter = self;
      w.type = name;
      w.count = list.length;
      ab.process.emitWarning(w);
    }
    return self;
  };
  const once = (self, name, f) => {
    callable(f);
    let fired = false;
    const wrapper = { wrapper(...args) {
      if (fired) return undefined;
      self.removeListener(name, wrapper);
      fired = true;
      return f.apply(self, args);
    } }.wrapper;
    Object.defineProperty(wrapper, "name", { value: "bound onceWrapper" });
    wrapper.listener = f;
    return wrapper;
  };
  const rejected = (self, name, args, e) => {
    if (typeof self[kRejection] === "function") { self[kRejection](e, name, ...args); return; }
    const was = self[kCapture];
    try { self[kCapture] = false; self.emit("error", e); } finally { self[kCapture] = was; }
  };
  const methods = {
    setMaxListeners(n) {
      if (typeof n !== "number" || n < 0 || Number.isNaN(n)) throw ab.error(RangeError, "ERR_OUT_OF_RANGE", `The value of "setMaxListeners" is out of range. It must be >= 0. Received ${ab.inspect(n)}`);
      this._maxListeners = n;
      return this;
    },
    getMaxListeners() { return maxOf(this); },
    emit(name, ...args) {
      const events = this._events;
      if (name === "error") {
        if (events?.[errorMonitor] !== undefined) this.emit(errorMonitor, ...args);
        if (events?.error === undefined) {
          const [e] = args;
          if (e instanceof Error) throw e;
          let said;
          try { said = ab.inspect(e); } catch { said = e; }
          const wrapped = ab.error(Error, "ERR_UNHANDLED_ERROR", `Unhandled error. (${said})`);
          wrapped.context = e;
          throw wrapped;
        }
      }
      const l = events?.[name];
      if (l === undefined) return false;
      const call = (f) => {
        const r = f.apply(this, args);
        if (this[kCapture] && r !== undefined && r !== null && typeof r.then === "function") r.then(undefined, (e) => ab.nextTick(rejected, this, name, args, e));
      };
      if (typeof l === "function") call(l);
      else for (const f of l.slice()) call(f);
      return true;
    },
    addListener(name, f) { return add(this, name, f, false); },
    prependListener(name, f) { return add(this, name, f, true); },
    once(name, f) { callable(f); return this.on(name, once(this, name, f)); },
    prependOnceListener(name, f) { callable(f); return this.prependListener(name, once(this, name, f)); },
    removeListener(name, f) {
      callable(f);
      const events = this._events;
      const l = events?.[name];
      if (l === undefined) return this;
      if (l === f || l.listener === f) {
        this._eventsCount--;
        if (this._eventsCount === 0) this._events = Object.create(null); else delete events[name];
        if (events.removeListener) this.emit("removeListener", name, l.listener ?? f);
      } else if (typeof l !== "function") {
        let at = -1;
        for (let i = l.length - 1; i >= 0; i--) if (l[i] === f || l[i].listener === f) { at = i; break; }
        if (at < 0) return this;
        const left = l.filter((_, i) => i !== at);
        events[name] = left.length === 1 ? left[0] : left;
        if (events.removeListener !== undefined) this.emit("removeListener", name, f);
      }
      return this;
    },
    removeAllListeners(name) {
      const events = this._events;
      if (events === undefined) return this;
      if (events.removeListener === undefined || name === "removeListener") {
        if (name === undefined) { this._events = Object.create(null); this._eventsCount = 0; } else if (events[name] !== undefined) {
          if (--this._eventsCount === 0) this._events = Object.create(null); else delete events[name];
        }
        return this;
      }
      if (name === undefined) {
        for (const k of Reflect.ownKeys(events)) if (k !== "removeListener") this.removeAllListeners(k);
        this.removeAllListeners("removeListener");
        this._events = Object.create(null);
        this._eventsCount = 0;
        return this;
      }
      for (const f of listed(events[name]).toReversed()) this.removeListener(name, f);
      return this;
    },
    listeners(name) { return listed(this._events?.[name]).map((f) => f.listener ?? f); },
    rawListeners(name) { return [...listed(this._events?.[name])]; },
    listenerCount(name, f) { const l = listed(this._events?.[name]); return f === undefined || f === null ? l.length : l.filter((g) => g === f || g.listener === f).length; },
    eventNames() { return this._eventsCount > 0 ? Reflect.ownKeys(this._events) : []; },
  };
  for (const [k, v] of Object.entries(methods)) EventEmitter.prototype[k] = v;
  EventEmitter.prototype.on = EventEmitter.prototype.addListener;
  EventEmitter.prototype.off = EventEmitter.prototype.removeListener;
  for (const k of ["_events", "_eventsCount", "_maxListeners"]) EventEmitter.prototype[k] = k === "_eventsCount" ? 0 : undefined;

  const aborted = (signal) => Object.assign(new Error("The operation was aborted", { cause: signal?.reason }), { name: "AbortError", code: "ABORT_ERR" });
  ab.aborted = aborted;
  const onceOf = (emitter, name, o) => new Promise((resolve, reject) => {
    const signal = o?.signal;
    if (signal?.aborted) { reject(aborted(signal)); return; }
    const target = emitter instanceof EventTarget;
    const end = () => {
      if (target) emitter.removeEventListener(name, done); else { emitter.removeListener(name, done); emitter.removeListener("error", failed); }
      signal?.removeEventListener("abort", cancel);
    };
    const failed = (e) => { end(); reject(e); };
    const done = (...args) => { end(); resolve(args); };
    const cancel = () => { end(); reject(aborted(signal)); };
    if (target) emitter.addEventListener(name, done, { once: true });
    else {
      emitter.once(name, done);
      if (name !== "error") emitter.once("error", failed);
    }
    signal?.addEventListener("abort", cancel, { once: true });
  });
  const onOf = (emitter, name, o) => {
    const signal = o?.signal;
    if (signal?.aborted) throw aborted(signal);
    const waiting = [];
    const given = [];
    let failure = null;
    let over = false;
    const take = (...args) => { const w = waiting.shift(); if (w) w.resolve({ value: args, done: false }); else given.push(args); };
    const fail = (e) => { const w = waiting.shift(); if (w) w.reject(e); else failure = e; end(); };
    const end = () => {
      if (over) return;
      over = true;
      emitter.removeListener?.(name, take);
      emitter.removeListener?.("error", fail);
      for (const w of waiting.splice(0)) w.resolve({ value: undefined, done: true });
    };
    if (emitter instanceof EventTarget) emitter.addEventListener(name, take); else { emitter.on(name, take); if (name !== "error") emitter.on("error", fail); }
    for (const k of o?.close ?? []) emitter.on(k, end);
    signal?.addEventListener("abort", () => fail(aborted(signal)), { once: true });
    return {
      next() {
        if (given.length > 0) return Promise.resolve({ value: given.shift(), done: false });
        if (failure) { const e = failure; failure = null; return Promise.reject(e); }
        if (over) return Promise.resolve({ value: undefined, done: true });
        return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
      },
      return() { end(); return Promise.resolve({ value: undefined, done: true }); },
      throw(e) { fail(e); return Promise.reject(e); },
      [Symbol.asyncIterator]() { return this; },
    };
  };
  class EventEmitterAsyncResource extends EventEmitter {}
  Object.assign(EventEmitter, {
    addAbortListener(signal, f) { if (signal.aborted) queueMicrotask(() => f()); else signal.addEventListener("abort", f, { once: true }); return { [Symbol.dispose]() { signal.removeEventListener("abort", f); } }; },
    once: onceOf, on: onOf,
    getEventListeners: (e, name) => (typeof e.listeners === "function" ? e.listeners(name) : e.heard?.(name) ?? []),
    getMaxListeners: (e) => e.getMaxListeners?.() ?? usual,
    listenerCount: (e, name) => e.listenerCount?.(name) ?? 0,
    EventEmitter, usingDomains: false, captureRejectionSymbol: kRejection, captureRejections: false, EventEmitterAsyncResource, errorMonitor,
    setMaxListeners(n = usual, ...targets) { if (targets.length === 0) usual = n; else for (const t of targets) t.setMaxListeners?.(n); },
  });
  const init = EventEmitter.init;
  delete EventEmitter.init;
  Object.defineProperty(EventEmitter, "defaultMaxListeners", { enumerable: true, get: () => usual, set: (n) => { usual = n; } });
  EventEmitter.init = init;
  ab.EventEmitter = EventEmitter;
  ab.define("events", () => EventEmitter);
})();
