// perf_hooks, with the entries that programs make, and navigator.
(() => {
  const ab = __agentbox;
  const host = ab.host;
  const custom = Symbol.for("nodejs.util.inspect.custom");
  const global = (name, value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  const illegal = () => ab.error(TypeError, "ERR_ILLEGAL_CONSTRUCTOR", "Illegal constructor");
  const making = Symbol("making");
  const now = () => host.now() - ab.began;
  class PerformanceEntry {
    #is;
    constructor(token, name, type, start, duration, detail) { if (token !== making) throw illegal(); this.#is = { name, type, start, duration, detail }; }
    get name() { return this.#is.name; }
    get entryType() { return this.#is.type; }
    get startTime() { return this.#is.start; }
    get duration() { return this.#is.duration; }
    static detailOf(e) { return e.#is.detail; }
    toJSON() { return { name: this.name, entryType: this.entryType, startTime: this.startTime, duration: this.duration, ...(this instanceof PerformanceMark || this instanceof PerformanceMeasure ? { detail: this.detail } : {}) }; }
    [custom](depth, o, inspect) { return depth < 0 ? this : `${this.constructor.name} ${inspect(this.toJSON(), { ...o, depth: o.depth === null ? null : o.depth - 1 })}`; }
    get [Symbol.toStringTag]() { return "PerformanceEntry"; }
  }
  const { detailOf } = PerformanceEntry;
  delete PerformanceEntry.detailOf;
  class PerformanceMark extends PerformanceEntry {
    constructor(name, o) { if (arguments.length === 0) throw ab.error(TypeError, "ERR_MISSING_ARGS", 'The "name" argument must be specified'); super(making, `${name}`, "mark", o?.startTime ?? now(), 0, o?.detail === undefined ? null : structuredClone(o.detail)); }
    get detail() { return detailOf(this); }
    get [Symbol.toStringTag]() { return "PerformanceMark"; }
  }
  class PerformanceMeasure extends PerformanceEntry {
    get detail() { return detailOf(this); }
    get [Symbol.toStringTag]() { return "PerformanceMeasure"; }
  }
  const entries = [];
  const observers = new Set();
  const noted = (e, kept = true) => {
    if (kept) entries.push(e);
    for (const o of observers) o.heard(e);
    return e;
  };
  const sorted = (list) => [...list].sort((a, b) => a.startTime - b.startTime);
  const place = (at) => {
    if (typeof at === "number") return at;
    const m = entries.findLast((e) => e.entryType === "mark" && e.name === `${at}`);
    if (!m) throw new DOMException(`The "${at}" performance mark has not been set`, "SyntaxError");
    return m.startTime;
  };
  const timeline = {
    now, mark: (name, o) => noted(new PerformanceMark(name, o)),
    measure(name, from, to) {
      const o = from !== null && typeof from === "object" ? from : { start: from, end: to };
      const end = o.end !== undefined ? place(o.end) : o.start !== undefined && o.duration !== undefined ? place(o.start) + o.duration : now();
      const start = o.start !== undefined ? place(o.start) : o.duration !== undefined ? end - o.duration : 0;
      return noted(new PerformanceMeasure(making, `${name}`, "measure", start, end - start, o.detail === undefined ? null : structuredClone(o.detail)));
    },
    clearMarks(name) { remove("mark", name); }, clearMeasures(name) { remove("measure", name); }, clearResourceTimings() {}, setResourceTimingBufferSize() {}, markResourceTiming() {},
    getEntries: () => sorted(entries), getEntriesByName: (name, type) => sorted(entries.filter((e) => e.name === `${name}` && (type === undefined || e.entryType === type))), getEntriesByType: (type) => sorted(entries.filter((e) => e.entryType === type)),
    eventLoopUtilization: () => ({ idle: 0, active: 0, utilization: 0 }),
    timerify(f) {
      if (typeof f !== "function") throw ab.argument("fn", "function", f);
      const g = function (...args) {
        const start = now();
        const told = () => noted(new PerformanceEntry(making, f.name, "function", start, now() - start), false);
        const r = new.target ? Reflect.construct(f, args, f) : Reflect.apply(f, this, args);
        if (typeof r?.finally === "function") return r.finally(told);
        told();
        return r;
      };
      Object.defineProperties(g, { length: { value: f.length, configurable: true }, name: { value: `timerified ${f.name}`, configurable: true } });
      return g;
    },
    toJSON() { return { nodeTiming: {}, timeOrigin: ab.began, eventLoopUtilization: timeline.eventLoopUtilization() }; },
  };
  const remove = (type, name) => { for (let i = entries.length - 1; i >= 0; i--) if (entries[i].entryType === type && (name === undefined || entries[i].name === `${name}`)) entries.splice(i, 1); };
  class Performance extends EventTarget {
    constructor(token) { if (token !== making) throw illegal(); super(); }
    get timeOrigin() { return ab.began; }
    get nodeTiming() { return new PerformanceEntry(making, "node", "node", 0, now()); }
    get onresourcetimingbufferfull() { return null; }
    get [Symbol.toStringTag]() { return "Performance"; }
  }
  for (const [k, f] of Object.entries(timeline)) Object.defineProperty(Performance.prototype, k, { value: f, writable: true, configurable: true, enumerable: true });
  const performance = new Performance(making);
  class PerformanceObserverEntryList {
    #all;
    constructor(all) { this.#all = sorted(all); }
    getEntries() { return [...this.#all]; }
    getEntriesByName(name, type) { return this.#all.filter((e) => e.name === name && (type === undefined || e.entryType === type)); }
    getEntriesByType(type) { return this.#all.filter((e) => e.entryType === type); }
  }
  class PerformanceObserver {
    #f;
    #types = new Set();
    #waiting = [];
    #asked = false;
    constructor(f) { if (typeof f !== "function") throw ab.argument("callback", "function", f); this.#f = f; }
    observe(o = {}) {
      if (o.entryTypes === undefined && o.type === undefined) throw ab.error(TypeError, "ERR_MISSING_ARGS", 'The "options.entryTypes" or "options.type" argument must be specified');
      for (const t of o.entryTypes ?? [o.type]) this.#types.add(t);
      observers.add(this);
      if (o.buffered) for (const e of entries) this.heard(e);
    }
    heard(e) {
      if (!this.#types.has(e.entryType)) return;
      this.#waiting.push(e);
      if (this.#asked) return;
      this.#asked = true;
      setImmediate(() => { this.#asked = false; if (this.#waiting.length > 0) this.#f.call(this, new PerformanceObserverEntryList(this.#waiting.splice(0)), this); });
    }
    takeRecords() { return this.#waiting.splice(0); }
    disconnect() { observers.delete(this); this.#types.clear(); }
    static get supportedEntryTypes() { return ["dns", "function", "gc", "http", "http2", "mark", "measure", "net", "resource"]; }
  }
  // A histogram keeps its values: programs record few.
  class Histogram {
    #all = [];
    record(n) { if (typeof n !== "number" && typeof n !== "bigint") throw ab.argument("val", "of type number or bigint", n); this.#all.push(Number(n)); }
    recordDelta() { const t = now() * 1e6; if (this.last !== undefined) this.record(Math.max(1, Math.round(t - this.last))); this.last = t; }
    add(other) { this.#all.push(...other.values()); }
    values() { return this.#all; }
    reset() { this.#all.length = 0; }
    get count() { return this.#all.length; }
    get min() { return this.#all.length ? Math.min(...this.#all) : 9223372036854776000; }
    get max() { return this.#all.length ? Math.max(...this.#all) : 0; }
    get mean() { return this.#all.reduce((a, b) => a + b, 0) / this.#all.length; }
    get stddev() { const m = this.mean; return Math.sqrt(this.#all.reduce((a, b) => a + (b - m) ** 2, 0) / this.#all.length); }
    get exceeds() { return 0; }
    percentile(p) { const s = [...this.#all].sort((a, b) => a - b); return s[Math.max(0, Math.ceil((p / 100) * s.length) - 1)] ?? 0; }
    get percentiles() { return new Map([[0, this.percentile(0)], [50, this.percentile(50)], [100, this.percentile(100)]]); }
    enable() { return true; }
    disable() { return true; }
  }
  for (const [name, value] of Object.entries({ performance, Performance, PerformanceEntry, PerformanceMark, PerformanceMeasure, PerformanceObserver, PerformanceObserverEntryList })) global(name, value);
  ab.define("perf_hooks", () => ({
    performance, Performance, PerformanceEntry, PerformanceMark, PerformanceMeasure, PerformanceObserver, PerformanceObserverEntryList, createHistogram: () => new Histogram(), monitorEventLoopDelay: () => new Histogram(), timerify: timeline.timerify, eventLoopUtilization: timeline.eventLoopUtilization,
    constants: { NODE_PERFORMANCE_GC_MAJOR: 4, NODE_PERFORMANCE_GC_MINOR: 1, NODE_PERFORMANCE_GC_INCREMENTAL: 8, NODE_PERFORMANCE_GC_WEAKCB: 16 },
  }));

  class Navigator {
    constructor(token) { if (token !== making) throw illegal(); }
    get hardwareConcurrency() { return 1; }
    get language() { return "en-US"; }
    get languages() { return languages; }
    get userAgent() { return `Node.js/${ab.versions.node.split(".")[0]}`; }
    get platform() { return "linux"; }
  }
  const languages = Object.freeze(["en-US"]);
  for (const k of ["hardwareConcurrency", "language", "languages", "userAgent", "platform"]) Object.defineProperty(Navigator.prototype, k, { enumerable: true });
  global("Navigator", Navigator);
  global("navigator", new Navigator(making));
})();
