// stream: what is read. The order of its events is Node's.
(() => {
  const ab = __agentbox;
  const EventEmitter = ab.builtin("events");
  const tick = (f, ...args) => ab.nextTick(f, ...args);
  const failure = (code, message, Type = Error) => ab.error(Type, code, message);
  const s = { tick, failure, usual: [65536, 16] }; // shared by the files of streams
  ab.streams = s;

  class Stream extends EventEmitter {
    constructor(o) { super(o); }
    pipe(to, o) {
      this.on("data", (b) => { if (to.writable && to.write(b) === false) this.pause?.(); });
      to.on("drain", () => this.resume?.());
      if (o?.end !== false) this.on("end", () => to.end());
      to.emit("pipe", this);
      return to;
    }
  }
  // Destroying, for both sides: _readableState and _writableState share what is said of it.
  s.state = (o, side) => {
    const objectMode = Boolean(o.objectMode || o[`${side}ObjectMode`]);
    const high = o.highWaterMark ?? o[`${side}HighWaterMark`];
    if (high !== undefined && high !== null && (!Number.isInteger(high) || high < 0)) throw failure("ERR_INVALID_ARG_VALUE", `The property 'options.highWaterMark' is invalid. Received ${ab.inspect(high)}`, TypeError);
    return {
      objectMode, highWaterMark: high ?? s.usual[objectMode ? 1 : 0], length: 0, ended: false, destroyed: false, errored: null, closed: false, closeEmitted: false, errorEmitted: false,
      constructed: true, sync: true, emitClose: o.emitClose !== false, autoDestroy: o.autoDestroy !== false,
    };
  };
  s.begin = (self, o) => { // what a stream opens first
    if (typeof self._construct !== "function") return;
    const states = [self._readableState, self._writableState].filter(Boolean);
    for (const st of states) st.constructed = false;
    tick(() => {
      let called = false;
      const done = (e) => {
        if (called) { s.errorOrDestroy(self, e ?? failure("ERR_MULTIPLE_CALLBACK", "Callback called multiple times")); return; }
        called = true;
        for (const st of states) st.constructed = true;
        if (states.some((st) => st.destroyed)) self.emit("agentbox:constructed", e);
        else if (e) s.errorOrDestroy(self, e);
        else tick(() => { if (self._readableState) s.readMore(self); if (self._readableState?.wantsRead) { self._readableState.wantsRead = false; self.read(0); } if (self._writableState) s.written?.(self); });
      };
      try { self._construct((e) => tick(done, e)); } catch (e) { tick(done, e); }
    });
    void o;
  };
  s.destroy = function (e, done) {
    const r = this._readableState;
    const w = this._writableState;
    if (w?.destroyed || r?.destroyed) { if (typeof done === "function") done(); return this; }
    for (const st of [w, r]) if (st) { if (e) st.errored ??= e; st.destroyed = true; }
    if ((w ?? r).constructed === false) this.once("agentbox:constructed", (x) => destroying(this, x ?? e, done));
    else destroying(this, e, done);
    return this;
  };
  const destroying = (self, e, done) => {
    let called = false;
    const over = (x) => {
      if (called) return;
      called = true;
      const r = self._readableState;
      const w = self._writableState;
      for (const st of [w, r]) if (st) { if (x) st.errored ??= x; st.closed = true; }
      if (typeof done === "function") done(x);
      tick(() => {
        if (x) emitError(self, x);
        emitClose(self);
      });
    };
    try { self._destroy(e ?? null, over); } catch (x) { over(x); }
  };
  const emitClose = (self) => {
    const r = self._readableState;
    const w = self._writableState;
    for (const st of [w, r]) if (st) st.closeEmitted = true;
    if (w?.emitClose || r?.emitClose) self.emit("close");
  };
  const emitError = (self, e) => {
    const r = self._readableState;
    const w = self._writableState;
    if (w?.errorEmitted || r?.errorEmitted) return;
    for (const st of [w, r]) if (st) st.errorEmitted = true;
    self.emit("error", e);
  };
  s.errorOrDestroy = (self, e, sync) => {
    const r = self._readableState;
    const w = self._writableState;
    if (w?.destroyed || r?.destroyed) return;
    if (r?.autoDestroy || w?.autoDestroy) { self.destroy(e); return; }
    for (const st of [w, r]) if (st && e) st.errored ??= e;
    if (sync) tick(emitError, self, e); else emitError(self, e);
  };

  function Readable(o) {
    if (!(this instanceof Readable)) return new Readable(o);
    o ??= {};
    Stream.call2(this, o);
    s.readable(this, o);
    s.begin(this, o);
  }
  // A class cannot be called as a function, and programs of old do that with streams.
  Stream.call2 = (self, o) => EventEmitter.call(self, o);
  s.readable = (self, o) => {
    self._readableState = Object.assign(s.state(o, "readable"), {
      buffer: [], flowing: null, endEmitted: false, reading: false, needReadable: false, emittedReadable: false, readableListening: false, resumeScheduled: false, readingMore: false, dataEmitted: false,
      decoder: null, encoding: null, pipes: [], awaitDrain: new Set(), defaultEncoding: o.defaultEncoding ?? "utf8",
    });
    if (typeof o.read === "function") self._read = o.read;
    if (typeof o.destroy === "function") self._destroy = o.destroy;
    if (typeof o.construct === "function") self._construct = o.construct;
    if (o.encoding) self.setEncoding(o.encoding);
    if (o.signal) s.abortable(o.signal, self);
  };
  s.abortable = (signal, self) => {
    const end = () => self.destroy(ab.aborted(signal));
    if (signal.aborted) end(); else { signal.addEventListener("abort", end, { once: true }); s.finished?.(self, () => signal.removeEventListener("abort", end)); }
    return self;
  };
  Object.setPrototypeOf(Readable.prototype, Stream.prototype);
  Object.setPrototypeOf(Readable, Stream);
  const add = (self, chunk, encoding, first) => {
    const st = self._readableState;
    if (chunk === null) {
      st.reading = false;
      if (!st.ended) {
        if (st.decoder) { const rest = st.decoder.end(); if (rest) { st.buffer.push(rest); st.length += st.objectMode ? 1 : rest.length; } }
        st.ended = true;
        if (st.sync) emitReadable(self); else { st.needReadable = false; st.emittedReadable = true; emittingReadable(self); }
      }
      return false;
    }
    if (!st.objectMode) {
      if (typeof chunk === "string") {
        encoding ??= st.defaultEncoding;
        if (st.encoding !== encoding) chunk = first && st.encoding ? Buffer.from(chunk, encoding).toString(st.encoding) : Buffer.from(chunk, encoding);
      } else if (ArrayBuffer.isView(chunk)) { if (!Buffer.isBuffer(chunk)) chunk = ab.wrap(new Uint8Array(...ab.view(chunk))); } else if (chunk !== undefined) {
        s.errorOrDestroy(self, failure("ERR_INVALID_ARG_TYPE", `The "chunk" argument must be of type string or an instance of Buffer, TypedArray, or DataView. Received ${ab.received(chunk)}`, TypeError));
        return false;
      }
      if (chunk === undefined || chunk.length <= 0) { if (!first) { st.reading = false; s.readMore(self); } return more(st); }
    }
    if (first) {
      if (st.endEmitted) s.errorOrDestroy(self, failure("ERR_STREAM_UNSHIFT_AFTER_END_EVENT", "stream.unshift() after end event"));
      else if (!st.destroyed && !st.errored) put(self, st, chunk, true);
    } else if (st.ended) s.errorOrDestroy(self, failure("ERR_STREAM_PUSH_AFTER_EOF", "stream.push() after EOF"));
    else if (st.destroyed || st.errored) return false;
    else {
      st.reading = false;
      if (st.decoder && encoding === undefined || st.decoder && typeof chunk !== "string") {
        chunk = st.decoder.write(chunk);
        if (st.objectMode || chunk.length !== 0) put(self, st, chunk, false); else s.readMore(self);
      } else put(self, st, chunk, false);
    }
    return more(st);
  };
  const more = (st) => !st.ended && (st.length < st.highWaterMark || st.length === 0);
  const put = (self, st, chunk, first) => {
    if (st.flowing && st.length === 0 && !st.sync && self.listenerCount("data") > 0) {
      st.awaitDrain.clear();
      st.dataEmitted = true;
      self.emit("data", chunk);
    } else {
      st.length += st.objectMode ? 1 : chunk.length;
      if (first) st.buffer.unshift(chunk); else st.buffer.push(chunk);
      if (st.needReadable) emitReadable(self);
    }
    s.readMore(self);
  };
  s.readMore = (self) => {
    const st = self._readableState;
    if (st.readingMore || !st.constructed) return;
    st.readingMore = true;
    tick(() => {
      while (!st.reading && !st.ended && (st.length < st.highWaterMark || (st.flowing && st.length === 0))) {
        const before = st.length;
        self.read(0);
        if (before === st.length) break;
      }
      st.readingMore = false;
    });
  };
  const emitReadable = (self) => {
    const st = self._readableState;
    st.needReadable = false;
    if (!st.emittedReadable) { st.emittedReadable = true; tick(emittingReadable, self); }
  };
  const emittingReadable = (self) => {
    const st = self._readableState;
    if (!st.destroyed && !st.errored && (st.length || st.ended)) { self.emit("readable"); st.emittedReadable = false; }
    st.needReadable = !st.flowing && !st.ended && st.length <= st.highWaterMark;
    flow(self);
  };
  const flow = (self) => { const st = self._readableState; while (st.flowing && self.read() !== null); };
  const howMuch = (n, st) => {
    if (n <= 0 || (st.length === 0 && st.ended)) return 0;
    if (st.objectMode) return 1;
    if (Number.isNaN(n)) return st.flowing && st.length ? st.buffer[0].length : st.length;
    return n <= st.length ? n : st.ended ? st.length : 0;
  };
  const take = (n, st) => {
    if (st.length === 0) return null;
    if (st.objectMode) return st.buffer.shift();
    if (!n || n >= st.length) {
      const all = st.decoder ? st.buffer.join("") : st.buffer.length === 1 ? st.buffer[0] : Buffer.concat(st.buffer, st.length);
      st.buffer = [];
      return all;
    }
    if (n === st.buffer[0].length) return st.buffer.shift();
    if (n < st.buffer[0].length) { const b = st.buffer[0].slice(0, n); st.buffer[0] = st.buffer[0].slice(n); return b; }
    const all = st.decoder ? st.buffer.join("") : Buffer.concat(st.buffer, st.length);
    st.buffer = [all.slice(n)];
    return all.slice(0, n);
  };
  const ending = (self) => {
    const st = self._readableState;
    if (st.endEmitted) return;
    st.ended = true;
    tick(() => {
      if (st.errored || st.closeEmitted || st.endEmitted || st.length !== 0) return;
      st.endEmitted = true;
      self.emit("end");
      const w = self._writableState;
      if (self.writable && self.allowHalfOpen === false) tick(() => { if (self.writable && !self.writableEnded && !self.destroyed) self.end(); });
      else if (st.autoDestroy && (!w || (w.autoDestroy && (w.finished || w.writable === false)))) self.destroy();
    });
  };
  const listened = (self, name) => self.listenerCount(name) > 0;
  const methods = {
    push(chunk, e) { return add(this, chunk, e, false); },
    unshift(chunk, e) { return add(this, chunk, e, true); },
    _read() { throw failure("ERR_METHOD_NOT_IMPLEMENTED", "The _read() method is not implemented"); },
    _destroy(e, done) { done(e); },
    destroy: s.destroy,
    [Symbol.for("nodejs.rejection")](e) { this.destroy(e); },
    setEncoding(e) {
      const st = this._readableState;
      st.decoder = new (ab.builtin("string_decoder").StringDecoder)(e);
      st.encoding = st.decoder.encoding;
      let text = "";
      for (const b of st.buffer) text += st.decoder.write(b);
      st.buffer = text === "" ? [] : [text];
      st.length = text.length;
      return this;
    },
    read(n) {
      n = n === undefined ? NaN : Number.isInteger(n) ? n : parseInt(n, 10);
      const st = this._readableState;
      const asked = n;
      if (n > st.highWaterMark && !st.objectMode) st.highWaterMark = 2 ** Math.ceil(Math.log2(n));
      if (n !== 0) st.emittedReadable = false;
      if (n === 0 && st.needReadable && ((st.highWaterMark !== 0 ? st.length >= st.highWaterMark : st.length > 0) || st.ended)) {
        if (st.length === 0 && st.ended) ending(this); else emitReadable(this);
        return null;
      }
      n = howMuch(n, st);
      if (n === 0 && st.ended) { if (st.length === 0) ending(this); return null; }
      let wants = st.needReadable;
      if (st.length === 0 || st.length - n < st.highWaterMark) wants = true;
      if (!st.constructed) st.wantsRead = true;
      if (st.ended || st.reading || st.destroyed || st.errored || !st.constructed) wants = false;
      else if (wants) {
        st.reading = true;
        st.sync = true;
        if (st.length === 0) st.needReadable = true;
        try { this._read(st.highWaterMark); } catch (e) { s.errorOrDestroy(this, e); }
        st.sync = false;
        if (!st.reading) n = howMuch(asked, st);
      }
      let got = n > 0 ? take(n, st) : null;
      if (got === null) { st.needReadable = st.length <= st.highWaterMark; n = 0; } else { st.length -= st.objectMode ? 1 : got.length; st.awaitDrain.clear(); }
      if (st.length === 0) {
        if (!st.ended) st.needReadable = true;
        if (asked !== n && st.ended) ending(this);
      }
      if (got !== null && !st.errored && !st.closeEmitted) { st.dataEmitted = true; this.emit("data", got); }
      return got;
    },
    on(name, f) {
      const r = EventEmitter.prototype.on.call(this, name, f);
      const st = this._readableState;
      if (name === "data") {
        st.readableListening = listened(this, "readable");
        if (st.flowing !== false) this.resume();
      } else if (name === "readable" && !st.endEmitted && !st.readableListening) {
        st.readableListening = st.needReadable = true;
        st.flowing = false;
        st.emittedReadable = false;
        if (st.length) emitReadable(this); else if (!st.reading) tick(() => this.read(0));
      }
      return r;
    },
    removeListener(name, f) {
      const r = EventEmitter.prototype.removeListener.call(this, name, f);
      if (name === "readable") tick(unlistened, this);
      else if (name === "data" && !listened(this, "data")) { const st = this._readableState; if (st.pipes.length === 0 && st.flowing !== false) st.flowing = st.flowing && listened(this, "data"); }
      return r;
    },
    removeAllListeners(name) {
      const r = EventEmitter.prototype.removeAllListeners.call(this, name);
      if (name === "readable" || name === undefined) tick(unlistened, this);
      return r;
    },
    resume() {
      const st = this._readableState;
      if (!st.flowing) {
        st.flowing = !st.readableListening;
        if (!st.resumeScheduled) {
          st.resumeScheduled = true;
          tick(() => {
            if (!st.reading) this.read(0);
            st.resumeScheduled = false;
            this.emit("resume");
            flow(this);
            if (st.flowing && !st.reading) this.read(0);
          });
        }
      }
      st.paused = false;
      return this;
    },
    pause() {
      if (this._readableState.flowing !== false) { this._readableState.flowing = false; this.emit("pause"); }
      this._readableState.paused = true;
      return this;
    },
    isPaused() { return this._readableState.paused === true || this._readableState.flowing === false; },
    wrap(old) {
      old.on("data", (b) => { if (!this.push(b) && old.pause) old.pause(); });
      old.on("end", () => this.push(null));
      old.on("error", (e) => s.errorOrDestroy(this, e));
      old.on("close", () => this.destroy());
      this._read = () => old.resume?.();
      return this;
    },
    pipe(to, o) {
      const from = this;
      const st = this._readableState;
      st.pipes.push(to);
      const ends = o?.end !== false && to !== ab.process?.stdout && to !== ab.process?.stderr;
      const unpiped = (readable, how) => { if (readable === from && how && !how.cleaned) { how.cleaned = true; clean(); } };
      const end = () => to.end();
      const unpipe = () => from.unpipe(to);
      if (st.endEmitted) tick(ends ? end : unpipe); else from.once("end", ends ? end : unpipe);
      to.on("unpipe", unpiped);
      let drained;
      let cleaned = false;
      const clean = () => {
        cleaned = true;
        to.removeListener("close", closed);
        to.removeListener("finish", finishes);
        if (drained) to.removeListener("drain", drained);
        to.removeListener("error", failed);
        to.removeListener("unpipe", unpiped);
        from.removeListener("end", end);
        from.removeListener("end", unpipe);
        from.removeListener("data", data);
        if (drained && st.awaitDrain.size > 0) drained();
      };
      const pause = () => {
        if (!cleaned) { st.awaitDrain.add(to); from.pause(); }
        if (!drained) {
          drained = () => { st.awaitDrain.delete(to); if (st.awaitDrain.size === 0 && listened(from, "data")) from.resume(); };
          to.on("drain", drained);
        }
      };
      const data = (b) => { if (to.write(b) === false) pause(); };
      from.on("data", data);
      const failed = (e) => {
        unpipe();
        to.removeListener("error", failed);
        if (to.listenerCount("error") === 0) { const w = to._writableState ?? to._readableState; if (w && !w.errorEmitted) s.errorOrDestroy(to, e); else to.emit("error", e); }
      };
      to.prependListener("error", failed);
      const closed = () => { to.removeListener("finish", finishes); unpipe(); };
      const finishes = () => { to.removeListener("close", closed); unpipe(); };
      to.once("close", closed);
      to.once("finish", finishes);
      to.emit("pipe", from);
      if (to.writableNeedDrain === true) pause(); else if (!st.flowing) from.resume();
      return to;
    },
    unpipe(to) {
      const st = this._readableState;
      if (st.pipes.length === 0) return this;
      const gone = to === undefined ? st.pipes.splice(0) : st.pipes.includes(to) ? st.pipes.splice(st.pipes.indexOf(to), 1) : [];
      if (gone.length > 0 && st.pipes.length === 0) this.pause();
      for (const t of gone) t.emit("unpipe", this, { cleaned: false });
      return this;
    },
    [Symbol.asyncIterator]() { return this.iterator(); },
    async *iterator(o) {
      let wake = () => {};
      const next = () => wake();
      this.on("readable", next);
      let failed;
      const end = s.finished(this, { writable: false }, (e) => { failed = e ?? null; wake(); });
      try {
        for (;;) {
          const b = this.destroyed ? null : this.read();
          if (b !== null) yield b;
          else if (failed) throw failed;
          else if (failed === null) return;
          else await new Promise((resolve) => { wake = resolve; });
        }
      } catch (e) { failed = e; throw e; } finally {
        if ((failed || o?.destroyOnReturn !== false) && (failed === undefined || this._readableState.autoDestroy)) this.destroy();
        else { this.removeListener("readable", next); end(); }
      }
    },
    async [Symbol.asyncDispose ?? Symbol("asyncDispose")]() { if (!this.destroyed) this.destroy(this.readableEnded ? null : ab.aborted()); },
  };
  const unlistened = (self) => {
    const st = self._readableState;
    st.readableListening = listened(self, "readable");
    if (st.resumeScheduled && st.paused === false) st.flowing = true;
    else if (listened(self, "data")) self.resume();
    else if (!st.readableListening) st.flowing = null;
  };
  const give = (C, all) => { for (const k of Reflect.ownKeys(all)) { const d = Object.getOwnPropertyDescriptor(all, k); Object.defineProperty(C.prototype, k, { ...d, enumerable: false }); } };
  s.give = give;
  give(Readable, methods);
  Readable.prototype.addListener = Readable.prototype.on;
  Readable.prototype.off = Readable.prototype.removeListener;
  give(Readable, {
    get readable() { const r = this._readableState; return Boolean(r) && r.readable !== false && !r.destroyed && !r.errorEmitted && !r.endEmitted; },
    set readable(v) { if (this._readableState) this._readableState.readable = Boolean(v); },
    get readableDidRead() { return this._readableState.dataEmitted; },
    get readableAborted() { const r = this._readableState; return r.readable !== false && (r.destroyed || Boolean(r.errored)) && !r.endEmitted; },
    get readableHighWaterMark() { return this._readableState.highWaterMark; },
    get readableBuffer() { return this._readableState.buffer; },
    get readableFlowing() { return this._readableState.flowing; },
    set readableFlowing(v) { this._readableState.flowing = v; },
    get readableLength() { return this._readableState.length; },
    get readableObjectMode() { return this._readableState?.objectMode ?? false; },
    get readableEncoding() { return this._readableState?.encoding ?? null; },
    get readableEnded() { return this._readableState?.endEmitted ?? false; },
    get errored() { return this._readableState?.errored ?? null; },
    get closed() { return this._readableState?.closed ?? false; },
    get destroyed() { return this._readableState?.destroyed ?? false; },
    set destroyed(v) { if (this._readableState) this._readableState.destroyed = v; },
  });
  // from makes a stream of what is iterated.
  Readable.from = (items, o) => {
    if (typeof items === "string" || items instanceof Uint8Array) return new Readable({ objectMode: true, ...o, read() { this.push(items); this.push(null); } });
    if (items === null || items === undefined || !(items[Symbol.asyncIterator] || items[Symbol.iterator])) throw failure("ERR_INVALID_ARG_TYPE", `The "iterable" argument must be an instance of Iterable. Received ${ab.received(items)}`, TypeError);
    const slow = Boolean(items[Symbol.asyncIterator]);
    const it = slow ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
    const r = new Readable({ objectMode: true, highWaterMark: 1, ...o });
    let reading = false;
    const next = async () => {
      for (;;) {
        try {
          const { value, done } = slow ? await it.next() : it.next();
          if (done) { r.push(null); return; }
          const v = value !== null && typeof value === "object" && typeof value.then === "function" ? await value : value;
          if (v === null) { reading = false; throw failure("ERR_STREAM_NULL_VALUES", "May not write null values to stream", TypeError); }
          if (r.push(v)) continue;
          reading = false;
        } catch (e) { r.destroy(e); }
        return;
      }
    };
    r._read = () => { if (!reading) { reading = true; next(); } };
    r._destroy = (e, done) => {
      const close = async () => {
        if (e && typeof it.throw === "function") { const { done: over } = await it.throw(e); if (over) return; }
        if (typeof it.return === "function") await it.return();
      };
      close().then(() => tick(done, e), (x) => tick(done, x ?? e));
    };
    return r;
  };
  Object.assign(s, { Stream, Readable, listened });
})();
