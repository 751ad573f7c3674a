// The streams of the web, messages between ports, and the parts of fetch that need no network.
(() => {
  const ab = __agentbox;
  const global = (all) => { for (const [name, value] of Object.entries(all)) Object.defineProperty(globalThis, name, { value, writable: true, configurable: true }); };
  const custom = Symbol.for("nodejs.util.inspect.custom");
  const bad = (code, message) => ab.error(TypeError, code, message);
  const sizeOf = (o, usual) => ({ high: o?.highWaterMark ?? usual, size: typeof o?.size === "function" ? (x) => o.size(x) : () => 1 });

  class ReadableStreamDefaultController {
    #s;
    constructor(s) { this.#s = s; }
    get desiredSize() { const s = this.#s; return s.status === "errored" ? null : s.status === "closed" ? 0 : s.strategy.high - s.total; }
    get byobRequest() { return null; }
    enqueue(x) {
      const s = this.#s;
      if (s.status !== "readable" || s.closing) throw bad("ERR_INVALID_STATE", "Invalid state: Controller is already closed");
      if (s.waiting.length > 0) s.waiting.shift().resolve({ done: false, value: x });
      else { const n = s.strategy.size(x); s.queue.push([x, n]); s.total += n; }
      s.pull();
    }
    close() {
      const s = this.#s;
      if (s.status !== "readable" || s.closing) throw bad("ERR_INVALID_STATE", "Invalid state: Controller is already closed");
      s.closing = true;
      if (s.queue.length === 0) s.close();
    }
    error(e) { this.#s.fail(e); }
  }
  // source is what a stream of the web reads from.
  class Source {
    constructor(from, strategy) {
      Object.assign(this, { from, strategy, status: "readable", stored: undefined, queue: [], total: 0, waiting: [], closing: false, pulling: false, again: false, started: false, locked: null });
      this.closed = Promise.withResolvers();
      this.closed.promise.catch(() => {});
      this.controller = new ReadableStreamDefaultController(this);
    }
    begin() {
      const start = this.from.start?.(this.controller);
      Promise.resolve(start).then(() => { this.started = true; this.pull(); }, (e) => this.fail(e));
    }
    pull() {
      if (!this.started || this.status !== "readable" || this.closing || !(this.waiting.length > 0 || this.strategy.high - this.total > 0)) return;
      if (this.pulling) { this.again = true; return; }
      if (!this.from.pull) return;
      this.pulling = true;
      let p;
      try { p = Promise.resolve(this.from.pull(this.controller)); } catch (e) { p = Promise.reject(e); }
      p.then(() => { this.pulling = false; if (this.again) { this.again = false; this.pull(); } }, (e) => this.fail(e));
    }
    close() { this.status = "closed"; for (const w of this.waiting.splice(0)) w.resolve({ done: true, value: undefined }); this.closed.resolve(undefined); }
    fail(e) {
      if (this.status !== "readable") return;
      this.status = "errored";
      this.stored = e;
      this.queue = [];
      this.total = 0;
      for (const w of this.waiting.splice(0)) w.reject(e);
      this.closed.reject(e);
    }
    read() {
      if (this.queue.length > 0) {
        const [x, n] = this.queue.shift();
        this.total -= n;
        if (this.closing && this.queue.length === 0) this.close(); else this.pull();
        return Promise.resolve({ done: false, value: x });
      }
      if (this.status === "closed") return Promise.resolve({ done: true, value: undefined });
      if (this.status === "errored") return Promise.reject(this.stored);
      const w = Promise.withResolvers();
      this.waiting.push(w);
      this.pull();
      return w.promise;
    }
    async cancel(e) {
      if (this.status === "closed") return;
      if (this.status === "errored") throw this.stored;
      this.queue = [];
      this.total = 0;
      this.close();
      await this.from.cancel?.(e);
    }
  }
  class ReadableStreamDefaultReader {
    #s;
    constructor(stream) {
      const s = sources.get(stream);
      if (!s) throw ab.argument("stream", "ReadableStream", stream);
      if (s.locked) throw bad("ERR_INVALID_STATE", "Invalid state: ReadableStream is locked");
      s.locked = this;
      this.#s = s;
    }
    get closed() { return this.#s.closed.promise; }
    read() { if (!this.#s) return Promise.reject(bad("ERR_INVALID_STATE", "Invalid state: The reader is not attached to a stream")); s_read(this.#s); return this.#s.read(); }
    cancel(e) { return this.#s.cancel(e); }
    releaseLock() { if (this.#s) { this.#s.locked = null; this.#s = null; } }
  }
  const s_read = (s) => { s.disturbed = true; };
  const sources = new WeakMap();
  class ReadableStream {
    constructor(from = {}, strategy) {
      const s = new Source(from ?? {}, sizeOf(strategy, from?.type === "bytes" ? 0 : 1));
      sources.set(this, s);
      s.begin();
    }
    static from(items) {
      const it = items[Symbol.asyncIterator]?.() ?? items[Symbol.iterator]();
      return new ReadableStream({ async pull(c) { const { value, done } = await it.next(); if (done) c.close(); else c.enqueue(await value); }, async cancel(e) { await it.return?.(e); } }, { highWaterMark: 0 });
    }
    get locked() { return sources.get(this).locked !== null; }
    get disturbed() { return Boolean(sources.get(this).disturbed); }
    getReader() { return new ReadableStreamDefaultReader(this); }
    cancel(e) { return this.locked ? Promise.reject(bad("ERR_INVALID_STATE", "Invalid state: ReadableStream is locked")) : sources.get(this).cancel(e); }
    async pipeTo(to, o = {}) {
      const reader = this.getReader();
      const writer = to.getWriter();
      try {
        for (;;) {
          o.signal?.throwIfAborted();
          await writer.ready;
          const { value, done } = await reader.read();
          if (done) break;
          await writer.write(value);
        }
        if (!o.preventClose) await writer.close();
      } catch (e) {
        if (!o.preventAbort) await writer.abort(e).catch(() => {});
        if (!o.preventCancel) await reader.cancel(e).catch(() => {});
        throw e;
      } finally { reader.releaseLock(); writer.releaseLock(); }
    }
    pipeThrough({ readable, writable }, o) { this.pipeTo(writable, o).catch(() => {}); return readable; }
    tee() {
      const reader = this.getReader();
      const sides = [];
      let reading = null;
      const pull = () => (reading ??= reader.read().then(({ value, done }) => { reading = null; for (const c of sides) try { if (done) c.close(); else c.enqueue(value); } catch { /* it was cancelled */ } }, (e) => { for (const c of sides) c.error(e); }));
      return [0, 1].map((i) => new ReadableStream({ start(c) { sides[i] = c; }, pull }));
    }
    async *values({ preventCancel = false } = {}) {
      const reader = this.getReader();
      let over = false;
      try {
        for (;;) {
          const { value, done } = await reader.read();
          if (done) { over = true; return; }
          yield value;
        }
      } catch (e) { over = true; throw e; } finally { if (!over && !preventCancel) await reader.cancel(); reader.releaseLock(); }
    }
    [Symbol.asyncIterator](o) { return this.values(o); }
    get [Symbol.toStringTag]() { return "ReadableStream"; }
    [custom](depth, o, inspect) { const s = sources.get(this); return `ReadableStream ${inspect({ locked: this.locked, state: s.status, supportsBYOB: s.from.type === "bytes" }, o)}`; }
  }

  const sinks = new WeakMap();
  class WritableStreamDefaultController { #s; constructor(s) { this.#s = s; this.abort = new AbortController(); } get signal() { return this.abort.signal; } error(e) { this.#s.fail(e); } }
  class Sink {
    constructor(to, strategy) {
      Object.assign(this, { to, strategy, status: "writable", stored: undefined, chain: null, total: 0, locked: null, closing: false });
      this.closed = Promise.withResolvers();
      this.closed.promise.catch(() => {});
      this.room = Promise.resolve();
      this.opens = null;
      this.controller = new WritableStreamDefaultController(this);
      this.chain = Promise.resolve(to.start?.(this.controller));
      this.chain.catch((e) => this.fail(e));
    }
    fail(e) {
      if (this.status !== "writable") return;
      this.status = "errored";
      this.stored = e;
      this.closed.reject(e);
      if (this.opens) { this.room.catch(() => {}); this.opens.reject(e); this.opens = null; } else { this.room = Promise.reject(e); this.room.catch(() => {}); }
    }
    pressure() {
      const full = this.strategy.high - this.total <= 0;
      if (full && !this.opens) { this.opens = Promise.withResolvers(); this.room = this.opens.promise; this.room.catch(() => {}); }
      if (!full && this.opens) { this.opens.resolve(); this.opens = null; }
    }
    write(x) {
      if (this.status === "errored") return Promise.reject(this.stored);
      if (this.closing || this.status === "closed") return Promise.reject(bad("ERR_INVALID_STATE", "Invalid state: WritableStream is closed"));
      const n = this.strategy.size(x);
      this.total += n;
      this.pressure();
      const done = this.chain.then(async () => {
        if (this.status === "errored") throw this.stored;
        try { await this.to.write?.(x, this.controller); } catch (e) { this.fail(e); throw e; }
        this.total -= n;
        this.pressure();
      });
      this.chain = done.catch(() => {});
      return done;
    }
    close() {
      if (this.closing || this.status === "closed") return Promise.reject(bad("ERR_INVALID_STATE", "Invalid state: WritableStream is closed"));
      this.closing = true;
      const done = this.chain.then(async () => {
        if (this.status === "errored") throw this.stored;
        try { await this.to.close?.(this.controller); } catch (e) { this.fail(e); throw e; }
        this.status = "closed";
        this.closed.resolve(undefined);
      });
      this.chain = done.catch(() => {});
      return done;
    }
    async abort(e) {
      if (this.status !== "writable") return;
      this.controller.abort.abort(e);
      this.fail(e);
      await this.to.abort?.(e);
    }
  }
  class WritableStreamDefaultWriter {
    #s;
    constructor(stream) { const s = sinks.get(stream); if (s.locked) throw bad("ERR_INVALID_STATE", "Invalid state: WritableStream is locked"); s.locked = this; this.#s = s; }
    get closed() { return this.#s.closed.promise; }
    get ready() { return this.#s.room; }
    get desiredSize() { const s = this.#s; return s.status === "errored" ? null : s.status === "closed" ? 0 : s.strategy.high - s.total; }
    write(x) { return this.#s.write(x); }
    close() { return this.#s.close(); }
    abort(e) { return this.#s.abort(e); }
    releaseLock() { if (this.#s) { this.#s.locked = null; } }
  }
  class WritableStream {
    constructor(to = {}, strategy) { sinks.set(this, new Sink(to ?? {}, sizeOf(strategy, 1))); }
    get locked() { return sinks.get(this).locked !== null; }
    getWriter() { return new WritableStreamDefaultWriter(this); }
    close() { return sinks.get(this).close(); }
    abort(e) { return sinks.get(this).abort(e); }
    get [Symbol.toStringTag]() { return "WritableStream"; }
    [custom](depth, o, inspect) { return `WritableStream ${inspect({ locked: this.locked, state: sinks.get(this).status }, o)}`; }
  }
  class TransformStream {
    constructor(t = {}, writes, reads) {
      let c;
      let wake = null;
      const self = { enqueue: (x) => c.enqueue(x), error: (e) => { c.error(e); sinks.get(writable).fail(e); }, terminate: () => c.close(), get desiredSize() { return c.desiredSize; } };
      const readable = new ReadableStream({ start(k) { c = k; }, pull() { const f = wake; wake = null; f?.(); }, cancel: (e) => { sinks.get(writable).fail(e); return t.cancel?.(e); } }, reads ?? { highWaterMark: 0 });
      const writable = new WritableStream({
        start: () => t.start?.(self),
        async write(x) {
          if (c.desiredSize <= 0 && sources.get(readable).waiting.length === 0) await new Promise((resolve) => { wake = resolve; });
          try { if (t.transform) await t.transform(x, self); else c.enqueue(x); } catch (e) { c.error(e); throw e; }
        },
        async close() { try { await t.flush?.(self); } catch (e) { c.error(e); throw e; } try { c.close(); } catch { /* it was ended */ } },
        abort: (e) => { c.error(e); return t.cancel?.(e); },
      }, writes);
      Object.defineProperties(this, { readable: { value: readable }, writable: { value: writable } });
    }
    get [Symbol.toStringTag]() { return "TransformStream"; }
  }
  class TextEncoderStream extends TransformStream { constructor() { super({ transform(x, c) { const b = new TextEncoder().encode(String(x)); if (b.length > 0) c.enqueue(b); } }); } get encoding() { return "utf-8"; } }
  class TextDecoderStream extends TransformStream {
    constructor(label, o) { const d = new TextDecoder(label, o); super({ transform(x, c) { const t = d.decode(x, { stream: true }); if (t !== "") c.enqueue(t); }, flush(c) { const t = d.decode(); if (t !== "") c.enqueue(t); } }); this.encoding = d.encoding; }
  }
  const packing = (name, ways) => ({ [name]: class extends TransformStream {
    constructor(format) {
      const f = ways[format];
      if (!f) throw ab.error(TypeError, "ERR_INVALID_ARG_VALUE", `The argument 'format' must be one of: 'deflate', 'deflate-raw', 'gzip'. Received ${ab.inspect(format)}`);
      const parts = [];
      super({ transform(x) { parts.push(ab.bytesOf(x)); }, flush(c) { c.enqueue(new Uint8Array(ab.builtin("zlib")[f](Buffer.concat(parts)))); } });
    }
  } })[name];
  class CountQueuingStrategy { constructor({ highWaterMark }) { this.highWaterMark = highWaterMark; } size() { return 1; } }
  class ByteLengthQueuingStrategy { constructor({ highWaterMark }) { this.highWaterMark = highWaterMark; } size(x) { return x.byteLength; } }
  global({
    ReadableStream, ReadableStreamDefaultReader, ReadableStreamDefaultController, WritableStream, WritableStreamDefaultWriter, WritableStreamDefaultController, TransformStream, TextEncoderStream, TextDecoderStream,
    CountQueuingStrategy, ByteLengthQueuingStrategy, CompressionStream: packing("CompressionStream", { gzip: "gzipSync", deflate: "deflateSync", "deflate-raw": "deflateRawSync" }),
    DecompressionStream: packing("DecompressionStream", { gzip: "gunzipSync", deflate: "inflateSync", "deflate-raw": "inflateRawSync" }),
  });
  Object.defineProperty(Blob.prototype, "stream", { value: function () { const self = this; let done = false; return new ReadableStream({ async pull(c) { if (done) { c.close(); return; } done = true; const b = new Uint8Array(await self.arrayBuffer()); if (b.length > 0) c.enqueue(b); else c.close(); } }, { highWaterMark: 0 }); }, writable: true, configurable: true });

  // Ports that send each other clones.
  class MessageEvent extends Event {
    constructor(type, init = {}) { super(type, init); this.data = init.data ?? null; this.origin = init.origin ?? ""; this.lastEventId = ""; this.source = init.source ?? null; this.ports = init.ports ?? []; }
  }
  class MessagePort extends EventTarget {
    #queue = [];
    #open = false;
    #closed = false;
    #heard = new Map();
    #onmessage = null;
    get onmessage() { return this.#onmessage; }
    set onmessage(f) { this.#onmessage = f; this.start(); }
    other(p) { this.other = (() => p); Object.defineProperty(this, "other", { enumerable: false }); }
    postMessage(x, o) { const to = this.other(); if (this.#closed || !to) return; to.take(structuredClone(x, Array.isArray(o) ? { transfer: o } : o)); }
    take(x) { this.#queue.push(x); this.#deliver(); }
    start() { if (!this.#open) { this.#open = true; this.#deliver(); } }
    #deliver() {
      if (!this.#open) return;
      for (const x of this.#queue.splice(0)) setImmediate(() => {
        if (this.#closed) return;
        const e = new MessageEvent("message", { data: x });
        this.#onmessage?.call(this, e);
        this.dispatchEvent(e);
        for (const f of this.#heard.get("message") ?? []) f.call(this, x);
      });
    }
    addEventListener(name, f, o) { super.addEventListener(name, f, o); }
    on(name, f) { this.#heard.set(name, [...(this.#heard.get(name) ?? []), f]); if (name === "message") this.start(); return this; }
    addListener(name, f) { return this.on(name, f); }
    once(name, f) { const g = (...a) => { this.off(name, g); f.apply(this, a); }; g.f = f; return this.on(name, g); }
    off(name, f) { this.#heard.set(name, (this.#heard.get(name) ?? []).filter((g) => g !== f && g.f !== f)); return this; }
    removeListener(name, f) { return this.off(name, f); }
    received() { return this.#queue.splice(0, 1); }
    close() { for (const p of [this, this.other()]) p?.end(); }
    end() { if (this.#closed) return; setImmediate(() => { this.#closed = true; this.dispatchEvent(new Event("close")); for (const f of this.#heard.get("close") ?? []) f.call(this); }); }
    ref() { return this; }
    unref() { return this; }
  }
  class MessageChannel { constructor() { this.port1 = new MessagePort(); this.port2 = new MessagePort(); this.port1.other(this.port2); this.port2.other(this.port1); } }
  global({ MessageEvent, MessagePort, MessageChannel });

  // Headers, bodies, requests and responses.
  const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
  class Headers {
    #all = new Map();
    constructor(init) {
      if (init instanceof Headers) for (const [k, v] of init) this.append(k, v);
      else if (init?.[Symbol.iterator]) for (const [k, v] of init) this.append(k, v);
      else for (const [k, v] of Object.entries(init ?? {})) this.append(k, v);
    }
    #name(k) { k = String(k); if (!token.test(k)) throw new TypeError(`Headers.append: ${k} is an invalid header name.`); return k.toLowerCase(); }
    append(k, v) { k = this.#name(k); v = String(v).trim(); this.#all.set(k, this.#all.has(k) ? [...this.#all.get(k), v] : [v]); }
    set(k, v) { this.#all.set(this.#name(k), [String(v).trim()]); }
    get(k) { const v = this.#all.get(this.#name(k)); return v === undefined ? null : v.join(", "); }
    getSetCookie() { return [...(this.#all.get("set-cookie") ?? [])]; }
    has(k) { return this.#all.has(this.#name(k)); }
    delete(k) { this.#all.delete(this.#name(k)); }
    forEach(f, self) { for (const [k, v] of this) f.call(self, v, k, this); }
    *entries() { for (const k of [...this.#all.keys()].sort()) { if (k === "set-cookie") for (const v of this.#all.get(k)) yield [k, v]; else yield [k, this.get(k)]; } }
    *keys() { for (const [k] of this.entries()) yield k; }
    *values() { for (const [, v] of this.entries()) yield v; }
    [Symbol.iterator]() { return this.entries(); }
    get [Symbol.toStringTag]() { return "Headers"; }
    [custom](depth, o, inspect) { return `Headers ${inspect(Object.fromEntries(this), o)}`; }
  }
  class FormData {
    #all = [];
    append(k, v, name) { this.#all.push([String(k), v instanceof Blob ? (v instanceof File && name === undefined ? v : new File([v], name ?? v.name ?? "blob", { type: v.type })) : String(v)]); }
    set(k, v, name) { const i = this.#all.findIndex((e) => e[0] === String(k)); this.append(k, v, name); const e = this.#all.pop(); if (i < 0) this.#all.push(e); else { this.#all[i] = e; this.#all = this.#all.filter((x, j) => j <= i || x[0] !== e[0]); } }
    get(k) { return this.#all.find((e) => e[0] === String(k))?.[1] ?? null; }
    getAll(k) { return this.#all.filter((e) => e[0] === String(k)).map((e) => e[1]); }
    has(k) { return this.#all.some((e) => e[0] === String(k)); }
    delete(k) { this.#all = this.#all.filter((e) => e[0] !== String(k)); }
    forEach(f, self) { for (const [k, v] of this) f.call(self, v, k, this); }
    *entries() { for (const e of this.#all) yield [...e]; }
    *keys() { for (const [k] of this.#all) yield k; }
    *values() { for (const [, v] of this.#all) yield v; }
    [Symbol.iterator]() { return this.entries(); }
    get [Symbol.toStringTag]() { return "FormData"; }
  }
  class Body {
    #from;
    #stream = null;
    #used = false;
    constructor(body, headers) {
      let type = null;
      if (body === null || body === undefined) body = null;
      else if (typeof body === "string") type = "text/plain;charset=UTF-8";
      else if (body instanceof URLSearchParams) { type = "application/x-www-form-urlencoded;charset=UTF-8"; body = String(body); } else if (body instanceof Blob) type = body.type || null;
      else if (body instanceof FormData) type = "multipart/form-data";
      else if (!(body instanceof ReadableStream) && !ArrayBuffer.isView(body) && !(body instanceof ArrayBuffer) && !body[Symbol.asyncIterator]) { body = String(body); type = "text/plain;charset=UTF-8"; }
      this.#from = body;
      if (type && !headers.has("content-type")) headers.set("content-type", type);
    }
    get body() {
      if (this.#from === null) return null;
      if (this.#from instanceof ReadableStream) return this.#from;
      const self = this;
      return (this.#stream ??= new ReadableStream({ async pull(c) { const b = await self.#bytes(); if (b.length > 0) c.enqueue(new Uint8Array(b)); c.close(); } }, { highWaterMark: 0 }));
    }
    get bodyUsed() { return this.#used || Boolean(this.#stream?.disturbed) || (this.#from instanceof ReadableStream && this.#from.disturbed); }
    async #bytes() {
      const b = this.#from;
      if (b === null) return Buffer.alloc(0);
      if (typeof b === "string") return Buffer.from(b);
      if (b instanceof Blob) return Buffer.from(await b.arrayBuffer());
      if (b instanceof FormData) throw ab.lacking("multipart bodies", "bodies of FormData are not available in a nano space");
      if (b[Symbol.asyncIterator]) return ab.builtin("stream/consumers").buffer(b);
      return Buffer.from(ab.bytesOf(b));
    }
    async #take() {
      if (this.bodyUsed) throw new TypeError("Body is unusable: Body has already been read");
      if (this.#from !== null) this.#used = true;
      return this.#bytes();
    }
    async text() { return new TextDecoder().decode(await this.#take()); }
    async json() { return JSON.parse(await this.text()); }
    async arrayBuffer() { const b = await this.#take(); return b.buffer.slice(b.byteOffset, b.byteOffset + b.length); }
    async bytes() { return new Uint8Array(await this.#take()); }
    async blob() { return new Blob([await this.#take()], { type: this.headers.get("content-type") ?? "" }); }
    async formData() {
      if (this.#from instanceof FormData) { this.#used = true; return this.#from; }
      const f = new FormData();
      for (const [k, v] of new URLSearchParams(await this.text())) f.append(k, v);
      return f;
    }
    source() { if (this.bodyUsed) throw new TypeError("Response.clone: Body has already been consumed."); if (!(this.#from instanceof ReadableStream)) return this.#from; const [a, b] = this.#from.tee(); this.#from = a; return b; }
  }
  class Response extends Body {
    #o;
    constructor(body, o = {}) {
      const headers = new Headers(o.headers);
      const status = o.status ?? 200;
      if (!(status >= 200 && status <= 599)) throw new RangeError('init["status"] must be in the range of 200 to 599, inclusive.');
      super(body, headers);
      this.#o = { headers, status, statusText: o.statusText ?? "", url: o.url ?? "", type: o.type ?? "default" };
    }
    static json(x, o = {}) { const headers = new Headers(o.headers); if (!headers.has("content-type")) headers.set("content-type", "application/json"); return new Response(JSON.stringify(x), { ...o, headers }); }
    static error() { const r = new Response(null); r.#o.status = 0; r.#o.type = "error"; return r; }
    static redirect(url, status = 302) { return new Response(null, { status, headers: { location: String(new URL(url)) } }); }
    get headers() { return this.#o.headers; }
    get status() { return this.#o.status; }
    get statusText() { return this.#o.statusText; }
    get ok() { return this.status >= 200 && this.status <= 299; }
    get redirected() { return false; }
    get url() { return this.#o.url; }
    get type() { return this.#o.type; }
    clone() { return new Response(this.source(), this.#o); }
    get [Symbol.toStringTag]() { return "Response"; }
    [custom](depth, o, inspect) { const { status, statusText, headers, body, bodyUsed, ok, redirected, type, url } = this; return `Response ${inspect({ status, statusText, headers, body, bodyUsed, ok, redirected, type, url }, o)}`; }
  }
  class Request extends Body {
    #o;
    constructor(input, o = {}) {
      const was = input instanceof Request ? input : null;
      let url = was?.url;
      if (!was) try { url = new URL(String(input)).href; } catch { throw new TypeError(`Failed to parse URL from ${input}`); }
      const headers = new Headers(o.headers ?? was?.headers);
      const method = (o.method ?? was?.method ?? "GET").toUpperCase();
      const body = o.body ?? was?.source() ?? null;
      if (body !== null && (method === "GET" || method === "HEAD")) throw new TypeError("Request with GET/HEAD method cannot have body.");
      super(body, headers);
      this.#o = { url, headers, method, signal: o.signal ?? was?.signal ?? new AbortController().signal };
    }
    get headers() { return this.#o.headers; }
    get url() { return this.#o.url; }
    get method() { return this.#o.method; }
    get signal() { return this.#o.signal; }
    get mode() { return "cors"; }
    get credentials() { return "same-origin"; }
    get cache() { return "default"; }
    get redirect() { return "follow"; }
    clone() { return new Request(this.url, { ...this.#o, body: this.source() }); }
    get [Symbol.toStringTag]() { return "Request"; }
  }
  global({ Headers, FormData, Response, Request });
})();
