// stream: what is written, and what is both.
(() => {
  const ab = __agentbox;
  const s = ab.streams;
  const { tick, failure, Readable } = s;
  const EventEmitter = ab.builtin("events");

  s.writable = (self, o) => {
    self._writableState = Object.assign(s.state(o, "writable"), {
      buffer: [], needDrain: false, ending: false, finished: false, prefinished: false, finalCalled: false, corked: 0, writing: false, pendingcb: 0, decodeStrings: o.decodeStrings !== false,
      defaultEncoding: o.defaultEncoding ?? "utf8", afterWrites: null, processing: false,
    });
    if (typeof o.write === "function") self._write = o.write;
    if (typeof o.writev === "function") self._writev = o.writev;
    if (typeof o.final === "function") self._final = o.final;
    if (typeof o.destroy === "function") self._destroy = o.destroy;
    if (typeof o.construct === "function") self._construct = o.construct;
  };
  function Writable(o) {
    if (!(this instanceof Writable)) return new Writable(o);
    o ??= {};
    EventEmitter.call(this, o);
    s.writable(this, o);
    if (o.signal) s.abortable(o.signal, this);
    s.begin(this, o);
  }
  Object.setPrototypeOf(Writable.prototype, s.Stream.prototype);
  Object.setPrototypeOf(Writable, s.Stream);
  Object.defineProperty(Writable, Symbol.hasInstance, { value: function (v) { return Function.prototype[Symbol.hasInstance].call(this, v) || (this === Writable && Boolean(v?._writableState) && typeof v.write === "function"); } });

  const write = (self, chunk, encoding, done) => {
    const st = self._writableState;
    if (typeof encoding === "function") [done, encoding] = [encoding, undefined];
    encoding ||= st.defaultEncoding;
    if (encoding !== "buffer" && !Buffer.isEncoding(encoding)) throw failure("ERR_UNKNOWN_ENCODING", `Unknown encoding: ${encoding}`, TypeError);
    done ??= () => {};
    if (chunk === null) throw failure("ERR_STREAM_NULL_VALUES", "May not write null values to stream", TypeError);
    if (!st.objectMode) {
      if (typeof chunk === "string") { if (st.decodeStrings) { chunk = Buffer.from(chunk, encoding); encoding = "buffer"; } } else if (ArrayBuffer.isView(chunk)) {
        if (!Buffer.isBuffer(chunk)) chunk = ab.wrap(new Uint8Array(...ab.view(chunk)));
        encoding = "buffer";
      } else throw failure("ERR_INVALID_ARG_TYPE", `The "chunk" argument must be of type string or an instance of Buffer, TypedArray, or DataView. Received ${ab.received(chunk)}`, TypeError);
    }
    let e;
    if (st.ending) e = failure("ERR_STREAM_WRITE_AFTER_END", "write after end");
    else if (st.destroyed) e = failure("ERR_STREAM_DESTROYED", "Cannot call write after a stream was destroyed");
    if (e) { tick(done, e); s.errorOrDestroy(self, e, true); return e; }
    st.pendingcb++;
    const length = st.objectMode ? 1 : chunk.length;
    st.length += length;
    const room = st.length < st.highWaterMark;
    if (!room) st.needDrain = true;
    if (st.writing || st.corked || st.errored || !st.constructed) st.buffer.push({ chunk, encoding, done });
    else {
      st.writing = true;
      st.sync = true;
      st.writelen = length;
      st.writecb = done;
      self._write(chunk, encoding, (x) => wrote(self, x));
      st.sync = false;
    }
    return room && !st.errored && !st.destroyed;
  };
  const wrote = (self, e) => {
    const st = self._writableState;
    const { sync, writecb: done } = st;
    if (typeof done !== "function") { s.errorOrDestroy(self, failure("ERR_MULTIPLE_CALLBACK", "Callback called multiple times")); return; }
    st.writing = false;
    st.writecb = null;
    st.length -= st.writelen;
    st.writelen = 0;
    if (e) {
      st.errored ??= e;
      if (self._readableState && !self._readableState.errored) self._readableState.errored = e;
      const fail = () => { st.pendingcb--; done(e); drop(st); s.errorOrDestroy(self, e); };
      if (sync) tick(fail); else fail();
      return;
    }
    if (st.buffer.length > 0) s.written(self);
    if (!sync) { after(self, st, 1, done); return; }
    if (st.afterWrites && st.afterWrites.done === done) st.afterWrites.count++;
    else { st.afterWrites = { count: 1, done }; const mine = st.afterWrites; tick(() => { st.afterWrites = null; after(self, st, mine.count, done); }); }
  };
  const after = (self, st, count, done) => {
    if (!st.ending && !st.destroyed && st.length === 0 && st.needDrain) { st.needDrain = false; self.emit("drain"); }
    while (count-- > 0) { st.pendingcb--; done(null); }
    if (st.destroyed) drop(st);
    finishing(self, st);
  };
  const drop = (st) => {
    if (st.writing) return;
    for (const b of st.buffer.splice(0)) { st.length -= st.objectMode ? 1 : b.chunk.length; b.done(st.errored ?? failure("ERR_STREAM_DESTROYED", "Cannot call write after a stream was destroyed")); }
    for (const f of (st.onfinish ?? []).splice(0)) f(st.errored ?? failure("ERR_STREAM_DESTROYED", "Cannot call end after a stream was destroyed"));
  };
  // written goes on with what waits to be written.
  s.written = (self) => {
    const st = self._writableState;
    if (st.corked || st.processing || st.destroyed || !st.constructed) return;
    if (st.buffer.length > 1 && self._writev) {
      const all = st.buffer.splice(0);
      st.pendingcb -= all.length - 1;
      st.writing = true;
      st.sync = true;
      st.writelen = st.length;
      st.writecb = (e) => { for (const b of all) b.done(e); };
      self._writev(all.map(({ chunk, encoding }) => ({ chunk, encoding })), (e) => wrote(self, e));
      st.sync = false;
    } else if (!st.writing) {
      st.processing = true;
      while (st.buffer.length > 0 && !st.writing) {
        const { chunk, encoding, done } = st.buffer.shift();
        st.writing = true;
        st.sync = true;
        st.writelen = st.objectMode ? 1 : chunk.length;
        st.writecb = done;
        self._write(chunk, encoding, (e) => wrote(self, e));
        st.sync = false;
      }
      st.processing = false;
    }
    finishing(self, st);
  };
  const needsFinish = (st) => st.ending && !st.destroyed && st.constructed && st.length === 0 && !st.errored && st.buffer.length === 0 && !st.finished && !st.writing && !st.errorEmitted && !st.closeEmitted;
  const finishing = (self, st, sync) => {
    if (!needsFinish(st)) return;
    if (!st.prefinished && !st.finalCalled) {
      if (typeof self._final === "function" && !st.destroyed) {
        st.finalCalled = true;
        st.pendingcb++;
        let called = false;
        st.sync = true;
        const done = (e) => {
          if (called) { s.errorOrDestroy(self, e ?? failure("ERR_MULTIPLE_CALLBACK", "Callback called multiple times")); return; }
          called = true;
          st.pendingcb--;
          if (e) { for (const f of (st.onfinish ?? []).splice(0)) f(e); s.errorOrDestroy(self, e, st.sync); } else if (needsFinish(st)) {
            st.prefinished = true;
            self.emit("prefinish");
            st.pendingcb++;
            tick(finish, self, st);
          }
        };
        try { self._final(done); } catch (e) { done(e); }
        st.sync = false;
      } else { st.prefinished = true; self.emit("prefinish"); }
    }
    if (st.pendingcb !== 0) return;
    if (sync) { st.pendingcb++; tick(() => { if (needsFinish(st)) finish(self, st); else st.pendingcb--; }); } else if (needsFinish(st)) { st.pendingcb++; finish(self, st); }
  };
  const finish = (self, st) => {
    st.pendingcb--;
    st.finished = true;
    for (const f of (st.onfinish ?? []).splice(0)) f(null);
    self.emit("finish");
    const r = self._readableState;
    if (st.autoDestroy && (!r || (r.autoDestroy && (r.endEmitted || r.readable === false)))) self.destroy();
  };
  const methods = {
    write(chunk, encoding, done) { return write(this, chunk, encoding, done) === true; },
    _write(chunk, encoding, done) { if (this._writev) this._writev([{ chunk, encoding }], done); else throw failure("ERR_METHOD_NOT_IMPLEMENTED", "The _write() method is not implemented"); },
    cork() { this._writableState.corked++; },
    uncork() { const st = this._writableState; if (st.corked) { st.corked--; if (!st.writing) s.written(this); } },
    setDefaultEncoding(e) { if (!Buffer.isEncoding(e)) throw failure("ERR_UNKNOWN_ENCODING", `Unknown encoding: ${e}`, TypeError); this._writableState.defaultEncoding = e; return this; },
    end(chunk, encoding, done) {
      const st = this._writableState;
      if (typeof chunk === "function") [done, chunk, encoding] = [chunk, null, null];
      else if (typeof encoding === "function") [done, encoding] = [encoding, null];
      let e;
      if (chunk !== null && chunk !== undefined) { const r = write(this, chunk, encoding); if (r instanceof Error) e = r; }
      if (st.corked) { st.corked = 1; this.uncork(); }
      if (e) { /* it was told */ } else if (!st.errored && !st.ending) {
        st.ending = true;
        finishing(this, st, true);
        st.ended = true;
      } else if (st.finished) e = failure("ERR_STREAM_ALREADY_FINISHED", "Cannot call end after a stream was finished");
      else if (st.destroyed) e = failure("ERR_STREAM_DESTROYED", "Cannot call end after a stream was destroyed");
      if (typeof done === "function") { if (e) tick(done, e); else if (st.finished) tick(done); else (st.onfinish ??= []).push(done); }
      return this;
    },
    destroy(e, done) {
      const st = this._writableState;
      if (!st.destroyed && (st.buffer.length > 0 || st.onfinish?.length > 0)) tick(drop, st);
      s.destroy.call(this, e, done);
      return this;
    },
    _destroy(e, done) { done(e); },
    [Symbol.for("nodejs.rejection")](e) { this.destroy(e); },
    async [Symbol.asyncDispose ?? Symbol("asyncDispose")]() { if (!this.destroyed) this.destroy(this.writableFinished ? null : ab.aborted()); },
  };
  const facts = {
    get writable() { const w = this._writableState; return Boolean(w) && w.writable !== false && !w.destroyed && !w.errored && !w.ending && !w.ended; },
    set writable(v) { if (this._writableState) this._writableState.writable = Boolean(v); },
    get writableFinished() { return this._writableState?.finished ?? false; },
    get writableObjectMode() { return this._writableState?.objectMode ?? false; },
    get writableBuffer() { return this._writableState?.buffer; },
    get writableEnded() { return this._writableState?.ending ?? false; },
    get writableNeedDrain() { const w = this._writableState; return Boolean(w) && !w.destroyed && !w.ending && w.needDrain; },
    get writableHighWaterMark() { return this._writableState?.highWaterMark; },
    get writableCorked() { return this._writableState?.corked ?? 0; },
    get writableLength() { return this._writableState?.length; },
    get writableAborted() { const w = this._writableState; return w.writable !== false && (w.destroyed || Boolean(w.errored)) && !w.finished; },
  };
  const both = { get errored() { return this._writableState?.errored ?? null; }, get closed() { return this._writableState?.closed ?? false; }, get destroyed() { return this._writableState?.destroyed ?? false; }, set destroyed(v) { if (this._writableState) this._writableState.destroyed = v; } };
  s.give(Writable, methods);
  s.give(Writable, facts);
  s.give(Writable, both);
  s.give(Writable, { pipe() { s.errorOrDestroy(this, failure("ERR_STREAM_CANNOT_PIPE", "Cannot pipe, not readable")); } });

  function Duplex(o) {
    if (!(this instanceof Duplex)) return new Duplex(o);
    o ??= {};
    EventEmitter.call(this, o);
    s.readable(this, o);
    s.writable(this, o);
    this.allowHalfOpen = o.allowHalfOpen !== false;
    if (o.readable === false) { const r = this._readableState; r.readable = false; r.ended = r.endEmitted = true; }
    if (o.writable === false) { const w = this._writableState; w.writable = false; w.ending = w.ended = w.finished = true; }
    s.begin(this, o);
  }
  Object.setPrototypeOf(Duplex.prototype, Readable.prototype);
  Object.setPrototypeOf(Duplex, Readable);
  s.give(Duplex, methods);
  s.give(Duplex, facts);
  s.give(Duplex, { get destroyed() { return Boolean(this._readableState?.destroyed && this._writableState?.destroyed); }, set destroyed(v) { if (this._readableState) this._readableState.destroyed = this._writableState.destroyed = v; } });

  function Transform(o) {
    if (!(this instanceof Transform)) return new Transform(o);
    o ??= {};
    const high = o.readableHighWaterMark === 0 || o.highWaterMark === 0 ? { ...o, highWaterMark: null, readableHighWaterMark: o.readableHighWaterMark, writableHighWaterMark: o.writableHighWaterMark || 0 } : o;
    Duplex.call(this, high);
    this._readableState.sync = false;
    this._waits = null;
    if (typeof o.transform === "function") this._transform = o.transform;
    if (typeof o.flush === "function") this._flush = o.flush;
    Object.defineProperty(this, "_waits", { enumerable: false });
    this.on("prefinish", () => { if (this._final !== last) last.call(this); });
  }
  function last(done) {
    const over = (e, data) => {
      if (e) { if (done) done(e); else this.destroy(e); return; }
      if (data !== null && data !== undefined) this.push(data);
      this.push(null);
      done?.();
    };
    if (typeof this._flush === "function" && !this.destroyed) this._flush(over); else over();
  }
  Object.setPrototypeOf(Transform.prototype, Duplex.prototype);
  Object.setPrototypeOf(Transform, Duplex);
  s.give(Transform, {
    _final: last,
    _transform() { throw failure("ERR_METHOD_NOT_IMPLEMENTED", "The _transform() method is not implemented"); },
    _write(chunk, encoding, done) {
      const { _readableState: r, _writableState: w } = this;
      const length = r.length;
      this._transform(chunk, encoding, (e, v) => {
        if (e) { done(e); return; }
        if (v !== null && v !== undefined) this.push(v);
        if (w.ended || length === r.length || r.length < r.highWaterMark) done(); else this._waits = done;
      });
    },
    _read() { if (this._waits) { const f = this._waits; this._waits = null; f(); } },
  });
  function PassThrough(o) { if (!(this instanceof PassThrough)) return new PassThrough(o); Transform.call(this, o); }
  Object.setPrototypeOf(PassThrough.prototype, Transform.prototype);
  Object.setPrototypeOf(PassThrough, Transform);
  s.give(PassThrough, { _transform(chunk, encoding, done) { done(null, chunk); } });
  for (const C of [Readable, Writable, Duplex, Transform, PassThrough]) Object.defineProperty(C.prototype, "constructor", { value: C, writable: true, configurable: true });
  Object.assign(s, { Writable, Duplex, Transform, PassThrough });
})();
