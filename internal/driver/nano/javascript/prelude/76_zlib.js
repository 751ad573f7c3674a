// zlib: gzip, deflate, raw deflate, brotli and zstd.
(() => {
  const ab = __agentbox;
  const host = ab.host;
  const { Transform } = ab.builtin("stream");
  const most = 2 ** 31 - 1;
  const constants = {
    Z_NO_FLUSH: 0, Z_PARTIAL_FLUSH: 1, Z_SYNC_FLUSH: 2, Z_FULL_FLUSH: 3, Z_FINISH: 4, Z_BLOCK: 5, Z_OK: 0, Z_STREAM_END: 1, Z_NEED_DICT: 2, Z_ERRNO: -1, Z_STREAM_ERROR: -2, Z_DATA_ERROR: -3, Z_MEM_ERROR: -4,
    Z_BUF_ERROR: -5, Z_NO_COMPRESSION: 0, Z_BEST_SPEED: 1, Z_BEST_COMPRESSION: 9, Z_DEFAULT_COMPRESSION: -1, Z_FILTERED: 1, Z_HUFFMAN_ONLY: 2, Z_RLE: 3, Z_FIXED: 4, Z_DEFAULT_STRATEGY: 0,
    DEFLATE: 1, INFLATE: 2, GZIP: 3, GUNZIP: 4, DEFLATERAW: 5, INFLATERAW: 6, UNZIP: 7, BROTLI_DECODE: 8, BROTLI_ENCODE: 9, ZSTD_COMPRESS: 10, ZSTD_DECOMPRESS: 11,
    Z_MIN_CHUNK: 64, Z_MAX_CHUNK: Infinity, Z_DEFAULT_CHUNK: 16384, Z_MIN_MEMLEVEL: 1, Z_MAX_MEMLEVEL: 9, Z_DEFAULT_MEMLEVEL: 8, BROTLI_OPERATION_PROCESS: 0, BROTLI_OPERATION_FLUSH: 1, BROTLI_OPERATION_FINISH: 2, BROTLI_OPERATION_EMIT_METADATA: 3,
    BROTLI_PARAM_MODE: 0, BROTLI_MODE_GENERIC: 0, BROTLI_MODE_TEXT: 1, BROTLI_MODE_FONT: 2, BROTLI_DEFAULT_MODE: 0, BROTLI_PARAM_QUALITY: 1, BROTLI_MIN_QUALITY: 0, BROTLI_MAX_QUALITY: 11, BROTLI_DEFAULT_QUALITY: 11, BROTLI_PARAM_LGWIN: 2,
    BROTLI_MIN_WINDOW_BITS: 10, BROTLI_MAX_WINDOW_BITS: 24, BROTLI_DEFAULT_WINDOW: 22, BROTLI_PARAM_LGBLOCK: 3, BROTLI_PARAM_DISABLE_LITERAL_CONTEXT_MODELING: 4, BROTLI_PARAM_SIZE_HINT: 5, BROTLI_PARAM_LARGE_WINDOW: 6, BROTLI_PARAM_NPOSTFIX: 7, BROTLI_PARAM_NDIRECT: 8,
    ZSTD_e_continue: 0, ZSTD_e_flush: 1, ZSTD_e_end: 2, ZSTD_c_compressionLevel: 100, ZSTD_c_windowLog: 101, ZSTD_c_checksumFlag: 201, ZSTD_CLEVEL_DEFAULT: 3,
    Z_MIN_WINDOWBITS: 8, Z_MAX_WINDOWBITS: 15, Z_DEFAULT_WINDOWBITS: 15, Z_MIN_LEVEL: -1, Z_MAX_LEVEL: 9, Z_DEFAULT_LEVEL: -1,
  };
  const given = (data) => {
    if (typeof data !== "string" && !ArrayBuffer.isView(data) && !(data instanceof ArrayBuffer)) throw ab.argument("buffer", "string or an instance of Buffer, TypedArray, DataView, or ArrayBuffer", data);
    return ab.view(typeof data === "string" ? Buffer.from(data) : ArrayBuffer.isView(data) ? data : new Uint8Array(data));
  };
  const level = (o) => {
    const l = o?.level ?? -1;
    if (typeof l !== "number" || l < -1 || l > 9) throw ab.error(RangeError, "ERR_OUT_OF_RANGE", `The value of "options.level" is out of range. It must be >= -1 and <= 9. Received ${ab.inspect(l)}`);
    return l;
  };
  const told = (f) => { try { return ab.wrap(f()); } catch (e) { if (e.code === "ERR_BUFFER_TOO_LARGE") throw ab.error(RangeError, e.code, e.message); if (constants[e.code] !== undefined) e.errno = constants[e.code]; throw e; } };
  const quality = { br: (o) => Math.min(Math.max(o?.params?.[1] ?? 11, 0), 11), zstd: (o) => o?.params?.[100] ?? 3 };
  const pack = (format) => (data, o) => { const [x, from, n] = given(data); return told(() => host.pack(format, (quality[format] ?? level)(o), x, from, n)); };
  const unpack = (format) => (data, o) => { const [x, from, n] = given(data); return told(() => host.unpack(format, o?.maxOutputLength ?? most, x, from, n)); };
  const ways = { gzip: pack("gzip"), gunzip: unpack("gzip"), deflate: pack("deflate"), inflate: unpack("deflate"), deflateRaw: pack("raw"), inflateRaw: unpack("raw"), unzip: unpack("either"), brotliCompress: pack("br"), brotliDecompress: unpack("br"), zstdCompress: pack("zstd"), zstdDecompress: unpack("zstd") };
  const m = { constants, codes: { Z_OK: 0, Z_STREAM_END: 1, Z_DATA_ERROR: -3, Z_BUF_ERROR: -5, 0: "Z_OK", 1: "Z_STREAM_END" } };
  for (const [name, f] of Object.entries(ways)) {
    m[`${name}Sync`] = (data, o) => f(data, o);
    m[name] = (data, o, done) => {
      if (typeof o === "function") [done, o] = [o, {}];
      if (typeof done !== "function") throw ab.argument("callback", "function", done);
      given(data);
      setImmediate(() => { let out; try { out = f(data, o); } catch (e) { done(e); return; } done(null, out); });
    };
    const Name = name[0].toUpperCase() + name.slice(1);
    // A stream keeps what it is given until its end, for its parts are nothing by themselves.
    m[Name] = { [Name]: class extends Transform {
      constructor(o = {}) {
        super({ ...o });
        const parts = [];
        this.bytesWritten = 0;
        this._transform = (b, e, next) => { parts.push(ab.bytesOf(b, e)); this.bytesWritten += parts.at(-1).length; next(); };
        this._flush = (next) => { let out; try { out = f(Buffer.concat(parts), o); } catch (e) { next(e); return; } next(null, out); };
      }
      flush(kind, done) { if (typeof kind === "function") done = kind; done?.(); }
      close(done) { this.destroy(); if (done) ab.nextTick(done); }
    } }[Name];
    m[`create${Name}`] = (o) => new m[Name](o);
  }
  m.crc32 = (data, from = 0) => host.sum("crc32", from, ...given(data));
  Object.assign(m, Object.fromEntries(Object.entries(constants).filter(([k]) => k.startsWith("Z_"))));
  ab.define("zlib", () => m);
})();
