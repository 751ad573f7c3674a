// stream: how streams are joined, and what is done with all that comes out of one.
(() => {
  const ab = __agentbox;
  const s = ab.streams;
  const { tick, failure, Readable, Writable, Duplex, Transform, PassThrough, Stream } = s;
  const isStream = (x) => Boolean(x?._readableState || x?._writableState || (x && typeof x.on === "function" && (typeof x.write === "function" || typeof x.pipe === "function")));
  const iterable = (x) => typeof x?.[Symbol.asyncIterator] === "function" || typeof x?.[Symbol.iterator] === "function";
  const premature = () => failure("ERR_STREAM_PREMATURE_CLOSE", "Premature close");

  const finished = (stream, o, done) => {
    if (typeof o === "function") [done, o] = [o, {}];
    o ??= {};
    if (!isStream(stream)) throw failure("ERR_INVALID_ARG_TYPE", `The "stream" argument must be an instance of ReadableStream, WritableStream, or Stream. Received ${ab.received(stream)}`, TypeError);
    if (typeof done !== "function") throw ab.argument("callback", "function", done);
    let called = false;
    const call = (...args) => { if (!called) { called = true; done.apply(stream, args); } };
    const r = stream._readableState;
    const w = stream._writableState;
    const readable = o.readable ?? Boolean(r);
    const writable = o.writable ?? Boolean(w);
    const state = w ?? r;
    let waits = Boolean(state?.autoDestroy && state.emitClose && !state.closed) && Boolean(r) === readable && Boolean(w) === writable; // its close comes, and says it all
    let wrote = !w || w.finished;
    let read = !r || r.endEmitted;
    const onfinish = () => {
      wrote = true;
      if (stream.destroyed) waits = false;
      if (waits && (!stream.readable || readable)) return;
      if (!readable || read) call();
    };
    const onend = () => {
      read = true;
      if (stream.destroyed) waits = false;
      if (waits && (!stream.writable || writable)) return;
      if (!writable || wrote) call();
    };
    const onerror = (e) => call(e);
    const onclose = () => {
      const e = w?.errored ?? r?.errored;
      if (e && typeof e !== "boolean") call(e);
      else if (readable && !read && r && !r.endEmitted && r.readable !== false) call(premature());
      else if (writable && !wrote && w && !w.finished) call(premature());
      else call();
    };
    stream.on("end", onend);
    stream.on("finish", onfinish);
    if (o.error !== false) stream.on("error", onerror);
    stream.on("close", onclose);
    const closed = w?.closed || r?.closed;
    if (closed) tick(onclose);
    else if (w?.errorEmitted || r?.errorEmitted) { if (!waits) tick(onclose); } else if (!readable && (!waits || stream.readable) && (wrote || (w && !stream.writable))) tick(onclose);
    else if (!writable && (!waits || stream.writable) && (read || (r && !stream.readable))) tick(onclose);
    const end = () => {
      called = true;
      stream.removeListener("end", onend);
      stream.removeListener("finish", onfinish);
      stream.removeListener("error", onerror);
      stream.removeListener("close", onclose);
    };
    if (o.signal && !closed) {
      const cancel = () => { const f = done; end(); f.call(stream, ab.aborted(o.signal)); };
      if (o.signal.aborted) tick(cancel); else o.signal.addEventListener("abort", cancel, { once: true });
    }
    return end;
  };
  s.finished = finished;

  // pump writes what an iterable gives into a stream, and ends it.
  const pump = async (from, to, ends, over) => {
    let failed = null;
    let wake = null;
    const resume = (e) => { if (e) failed = e; const f = wake; wake = null; f?.(); };
    to.on("drain", resume);
    const clean = finished(to, { readable: false }, resume);
    const drained = () => new Promise((resolve, reject) => { if (failed) reject(failed); else wake = () => { if (failed) reject(failed); else resolve(); }; });
    try {
      if (to.writableNeedDrain) await drained();
      for await (const x of from) if (!to.write(x)) await drained();
      if (ends) { to.end(); await new Promise((resolve, reject) => { if (to.writableFinished) resolve(); else { const done = finished(to, { readable: false }, (e) => { done?.(); if (e) reject(e); else resolve(); }); } }); }
      over();
    } catch (e) { over(failed ?? e); } finally { clean(); to.removeListener("drain", resume); }
  };
  const pipelineOf = (all, done, o) => {
    if (all.length === 1 && Array.isArray(all[0])) [all] = all;
    if (all.length < 2) throw ab.error(TypeError, "ERR_MISSING_ARGS", 'The "streams" argument must be specified');
    let error;
    let value;
    let count = 0;
    const destroys = [];
    const final = (e) => { if (e && (!error || error.code === "ERR_STREAM_PREMATURE_CLOSE")) error = e; if (--count === 0) end(); else if (error) destroyAll(); };
    const destroyAll = () => { while (destroys.length > 0) destroys.shift()(error); };
    const end = () => { destroyAll(); o?.signal?.removeEventListener("abort", cancel); tick(done, error, value); };
    const cancel = () => { error ??= ab.aborted(o.signal); destroyAll(); count = 1; final(); };
    const watch = (x, reads, writes) => {
      let over = false;
      const clean = finished(x, { readable: reads, writable: writes }, (e) => { over = true; if (e && !error) { /* the pipe tells it */ } void e; });
      destroys.push((e) => { if (over) return; over = true; clean(); x.on("error", () => {}); if (!x.destroyed) x.destroy(e ?? failure("ERR_STREAM_DESTROYED", "Cannot call pipe after a stream was destroyed")); });
    };
    if (o?.signal) { if (o.signal.aborted) { count = 1; error = ab.aborted(o.signal); tick(final); return all.at(-1); } o.signal.addEventListener("abort", cancel, { once: true }); }
    let at;
    for (let i = 0; i < all.length; i++) {
      const x = all[i];
      const reads = i < all.length - 1;
      const writes = i > 0;
      const ends = reads || o?.end !== false;
      const last = i === all.length - 1;
      if (isStream(x)) {
        if (ends) watch(x, reads, writes);
        if (last || ends) x.on("error", (e) => { if (e && e.name !== "AbortError" && e.code !== "ERR_STREAM_PREMATURE_CLOSE") { error ??= e; if (count > 0) destroyAll(); } });
      }
      if (i === 0) {
        if (typeof x === "function") { at = x({ signal: o?.signal }); if (!iterable(at)) throw failure("ERR_INVALID_RETURN_VALUE", `Expected Iterable, AsyncIterable or Stream to be returned from the "source" function but got ${ab.received(at)}.`, TypeError); } else if (iterable(x) || isStream(x)) at = x;
        else at = Duplex.from(x);
      } else if (typeof x === "function") {
        const gave = x(iterable(at) ? at : at, { signal: o?.signal });
        if (reads) {
          if (!iterable(gave)) throw failure("ERR_INVALID_RETURN_VALUE", `Expected AsyncIterable to be returned from the "transform[${i - 1}]" function but got ${ab.received(gave)}.`, TypeError);
          at = gave;
        } else if (typeof gave?.then === "function") {
          const out = new PassThrough({ objectMode: true });
          count++;
          gave.then((v) => { value = v; if (v !== null && v !== undefined) out.write(v); if (ends) out.end(); tick(final); }, (e) => { out.destroy(e); tick(final, e); });
          at = out;
          watch(out, true, false);
        } else if (iterable(gave)) {
          const out = new PassThrough({ objectMode: true });
          count++;
          pump(gave, out, ends, final);
          at = out;
          watch(out, true, false);
        } else throw failure("ERR_INVALID_RETURN_VALUE", `Expected AsyncIterable or Promise to be returned from the "destination" function but got ${ab.received(gave)}.`, TypeError);
      } else if (isStream(x)) {
        if (at?._readableState) {
          count += 2;
          joined(at, x, final, ends);
        } else if (iterable(at)) { count++; pump(at, x, ends, final); } else throw failure("ERR_INVALID_ARG_TYPE", 'The "val" argument must be an instance of Readable, Iterable or AsyncIterable', TypeError);
        at = x;
      } else throw failure("ERR_INVALID_ARG_TYPE", `The "destination" argument must be of type function or an instance of Stream. Received ${ab.received(x)}`, TypeError);
    }
    return at;
  };
  // joined pipes two streams, and tells of the end of each.
  const joined = (from, to, final, ends) => {
    let ended = false;
    to.on("close", () => { if (!ended) final(premature()); ended = true; });
    from.pipe(to, { end: false });
    if (ends) {
      const end = () => { ended = true; to.end(); };
      if (from._readableState.endEmitted) tick(end); else from.once("end", end);
    } else final();
    finished(from, { readable: true, writable: false }, (e) => {
      const r = from._readableState;
      if (e && e.code === "ERR_STREAM_PREMATURE_CLOSE" && r?.ended && !r.errored && !r.errorEmitted) { from.once("end", final).once("error", final); } else final(e);
    });
    const toEnd = (e) => { ended = true; final(e); };
    finished(to, { readable: false, writable: true }, toEnd);
  };
  const pipeline = (...all) => {
    const done = typeof all.at(-1) === "function" ? all.pop() : undefined;
    let called = false;
    return pipelineOf(all, (e, v) => { if (!called) { called = true; done?.(e, v); } });
  };
  const promises = {
    pipeline: (...all) => new Promise((resolve, reject) => {
      const o = all.at(-1) !== null && typeof all.at(-1) === "object" && !isStream(all.at(-1)) && !iterable(all.at(-1)) ? all.pop() : undefined;
      pipelineOf(all, (e, v) => (e ? reject(e) : resolve(v)), o);
    }),
    finished: (stream, o) => new Promise((resolve, reject) => { const end = finished(stream, o ?? {}, (e) => { if (o?.cleanup) end?.(); if (e) reject(e); else resolve(); }); }),
  };
  for (const k of ["pipeline", "finished"]) Object.defineProperty(k === "pipeline" ? pipeline : finished, Symbol.for("nodejs.util.promisify.custom"), { value: promises[k] });

  // The operators of a stream.
  const called = (f) => { if (typeof f !== "function") throw failure("ERR_INVALID_ARG_TYPE", `The "fn" argument must be of type function. Received ${ab.received(f)}`, TypeError); };
  const whole = (n) => { n = Number(n); if (Number.isNaN(n)) throw failure("ERR_OUT_OF_RANGE", 'The value of "number" is out of range. It must be >= 0. Received NaN', RangeError); return n; };
  async function* mapped(self, f, o) {
    const signal = o?.signal ?? new AbortController().signal;
    const width = Math.max(1, Math.floor(o?.concurrency ?? 1));
    if (width === 1) { for await (const x of self) yield await f(x, { signal }); return; }
    const queue = [];
    for await (const x of self) {
      queue.push(Promise.resolve(f(x, { signal })));
      queue.at(-1).catch(() => {});
      if (queue.length >= width) yield await queue.shift();
    }
    for (const p of queue) yield await p;
  }
  const made = (g) => Readable.from(g);
  s.give(Readable, {
    map(f, o) { called(f); return made(mapped(this, f, o)); },
    filter(f, o) { called(f); const self = this; return made((async function* () { for await (const [x, keep] of mapped(self, async (v, h) => [v, await f(v, h)], o)) if (keep) yield x; })()); },
    flatMap(f, o) { called(f); const self = this; return made((async function* () { for await (const x of mapped(self, f, o)) yield* x; })()); },
    take(n) { n = whole(n); const self = this; return made((async function* () { if (n <= 0) return; let i = 0; for await (const x of self) { yield x; if (++i >= n) return; } })()); },
    drop(n) { n = whole(n); const self = this; return made((async function* () { let i = 0; for await (const x of self) if (i++ >= n) yield x; })()); },
    asIndexedPairs() { const self = this; return made((async function* () { let i = 0; for await (const x of self) yield [i++, x]; })()); },
    async toArray() { const all = []; for await (const x of this) all.push(x); return all; },
    async forEach(f, o) { called(f); for await (const _ of mapped(this, f, o)) void _; },
    async some(f, o) { called(f); for await (const x of mapped(this, f, o)) if (x) return true; return false; },
    async every(f, o) { called(f); for await (const x of mapped(this, f, o)) if (!x) return false; return true; },
    async find(f, o) { called(f); for await (const [x, is] of mapped(this, async (v, h) => [v, await f(v, h)], o)) if (is) return x; return undefined; },
    async reduce(f, ...start) {
      called(f);
      let [v] = start;
      let has = start.length > 0;
      for await (const x of this) { if (has) v = await f(v, x); else { v = x; has = true; } }
      if (!has) throw ab.error(TypeError, "ERR_MISSING_ARGS", "Reduce of an empty stream requires an initial value");
      return v;
    },
    compose(x) { return compose(this, x); },
  });
  const compose = (...all) => {
    if (all.length === 1) return Duplex.from(all[0]);
    const first = isStream(all[0]) ? all[0] : Duplex.from(all[0]);
    const rest = all.slice(1).map((x) => (typeof x === "function" && all.length > 1 ? x : x));
    const writes = first._writableState ? first : null;
    const out = new Duplex({ objectMode: true, write(b, e, done) { if (writes.write(b, e)) done(); else writes.once("drain", done); }, final(done) { writes.end(); done(); }, read() {} });
    if (!writes) { out._writableState.writable = false; out._writableState.ending = out._writableState.finished = true; }
    const tail = pipelineOf([first, ...rest, new PassThrough({ objectMode: true })], (e) => { if (e) out.destroy(e); });
    tail.on("data", (b) => { if (!out.push(b)) tail.pause(); });
    tail.on("end", () => out.push(null));
    out._read = () => tail.resume();
    return out;
  };
  Duplex.from = (x) => {
    if (isStream(x)) return x;
    if (typeof x === "function") {
      const inner = new PassThrough({ objectMode: true });
      const gave = x(inner);
      const r = iterable(gave) ? Readable.from(gave) : null;
      const d = new Duplex({ objectMode: true, write: (b, e, done) => { if (inner.write(b)) done(); else inner.once("drain", done); }, final(done) { inner.end(); if (r) done(); else gave.then(() => { d.push(null); done(); }, done); }, read() { r?.resume(); } });
      r?.on("data", (b) => { if (!d.push(b)) r.pause(); });
      r?.on("end", () => d.push(null));
      r?.on("error", (e) => d.destroy(e));
      return d;
    }
    if (x?.readable || x?.writable) { const d = new Duplex({ objectMode: true, read() { x.readable.resume(); }, write(b, e, done) { x.writable.write(b, e, done); }, final(done) { x.writable.end(done); } }); x.readable?.on("data", (b) => { if (!d.push(b)) x.readable.pause(); }); x.readable?.on("end", () => d.push(null)); return d; }
    if (typeof x?.then === "function") return Readable.from((async function* () { const v = await x; if (v !== undefined && v !== null) yield v; })());
    return Readable.from(x);
  };
  const duplexPair = (o) => {
    const side = () => new Duplex({ ...o, read() { const f = this.waiting; this.waiting = null; f?.(); }, write(b, e, done) { if (b.length === 0) { tick(done); return; } this.other.push(b); this.other.waiting = done; }, final(done) { this.other.on("end", done); this.other.push(null); } });
    const [a, b] = [side(), side()];
    for (const [x, y] of [[a, b], [b, a]]) { Object.defineProperty(x, "other", { value: y }); Object.defineProperty(x, "waiting", { value: null, writable: true }); }
    return [a, b];
  };
  // The streams of the web, from and to these.
  Readable.fromWeb = (web, o) => Readable.from((async function* () { yield* web; })(), { objectMode: false, highWaterMark: undefined, ...o });
  Readable.toWeb = (r) => new ReadableStream({
    start(c) { r.pause(); finished(r, (e) => { try { if (e) c.error(e); else c.close(); } catch { /* it is closed */ } }); r.on("data", (b) => { c.enqueue(Buffer.isBuffer(b) ? new Uint8Array(b) : b); if (c.desiredSize <= 0) r.pause(); }); r.pause(); },
    pull() { r.resume(); }, cancel(e) { r.destroy(e); },
  }, { highWaterMark: 1 });
  Writable.toWeb = (w) => new WritableStream({ write: (b) => new Promise((resolve, reject) => w.write(b, (e) => (e ? reject(e) : resolve()))), close: () => new Promise((resolve) => w.end(resolve)), abort: (e) => { w.destroy(e); } });
  Writable.fromWeb = (web) => { const to = web.getWriter(); return new Writable({ write: (b, e, done) => { to.write(b).then(() => done(), done); }, final: (done) => { to.close().then(() => done(), done); } }); };

  ab.define("stream", () => {
    const named = {
      isDestroyed: (x) => x.destroyed, isDisturbed: (x) => Boolean(x?._readableState?.dataEmitted || x?.disturbed), isErrored: (x) => Boolean(x?._readableState?.errored || x?._writableState?.errored),
      isReadable: (x) => (x?._readableState ? x.readable : null), isWritable: (x) => (x?._writableState ? x.writable : null), Readable, Writable, Duplex, Transform, PassThrough, duplexPair, pipeline,
      addAbortSignal(signal, x) { return s.abortable(signal, x); }, finished, destroy: (x, e) => { x.destroy(e); return x; }, compose,
      setDefaultHighWaterMark(objects, n) { s.usual[objects ? 1 : 0] = n; }, getDefaultHighWaterMark: (objects) => s.usual[objects ? 1 : 0], promises, Stream,
      _isArrayBufferView: ArrayBuffer.isView, _isUint8Array: (x) => x instanceof Uint8Array, _uint8ArrayToBuffer: (x) => ab.wrap(x),
    };
    return Object.assign(Stream, named);
  });
  ab.define("stream/promises", () => promises);
  ab.define("stream/consumers", () => {
    const all = async (x) => { const parts = []; for await (const b of x) parts.push(typeof b === "string" ? Buffer.from(b) : ab.bytesOf(b)); return Buffer.concat(parts); };
    const text = async (x) => { const d = new TextDecoder(); let t = ""; for await (const b of x) t += typeof b === "string" ? b : d.decode(b, { stream: true }); return t + d.decode(); };
    return { buffer: all, text, json: async (x) => JSON.parse(await text(x)), arrayBuffer: async (x) => { const b = await all(x); return b.buffer.slice(b.byteOffset, b.byteOffset + b.length); }, bytes: async (x) => new Uint8Array(await all(x)), blob: async (x) => new Blob([await all(x)]) };
  });
  ab.define("stream/web", () => Object.fromEntries(["ReadableStream", "ReadableStreamDefaultReader", "ReadableStreamDefaultController", "WritableStream", "WritableStreamDefaultWriter", "TransformStream", "ByteLengthQueuingStrategy", "CountQueuingStrategy", "TextEncoderStream", "TextDecoderStream", "CompressionStream", "DecompressionStream"].map((k) => [k, globalThis[k]])));
})();
