// crypto: chance and hashes.
(() => {
  const ab = __agentbox;
  const host = ab.host;
  const fill = (b) => { const [x, o, n] = ab.view(b); host.entropy(x, o, n); return b; };
  const uuid = () => {
    const b = fill(new Uint8Array(16));
    b[6] = (b[6] & 15) | 64;
    b[8] = (b[8] & 63) | 128;
    const h = Array.from(b, (x) => x.toString(16).padStart(2, "0")).join("");
    return `${h.slice(0, 8)}-${h.slice(8, 12)}-${h.slice(12, 16)}-${h.slice(16, 20)}-${h.slice(20)}`;
  };
  const dataTypes = "of type string or an instance of Buffer, TypedArray, or DataView";
  class Hash {
    constructor(name, key, parts = [], o = {}) {
      Object.defineProperty(this, "h", { value: { name, key, parts, length: o?.outputLength, done: false, stream: null }, writable: true });
      let b;
      try { b = this.of(new Uint8Array(0)); } catch (e) {
        if (e.code !== "ERR_CRYPTO_INVALID_DIGEST") throw e;
        throw key === null ? Object.assign(new Error("Digest method not supported")) : ab.error(TypeError, e.code, e.message);
      }
      if (o?.outputLength !== undefined && !/^shake/i.test(name) && o.outputLength !== b.length) throw Object.assign(new Error("Unsupported state or unable to set output length"));
    }
    of(b) {
      const { name, key, length } = this.h;
      const [x, o, n] = ab.view(b);
      return key === null ? host.hash(length === undefined ? name : `${name}/${length}`, x, o, n) : host.hmac(name, ...ab.view(key), x, o, n);
    }
    update(data, e) {
      const { h } = this;
      if (h.done) throw ab.error(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
      if (typeof data !== "string" && !ArrayBuffer.isView(data)) throw ab.argument("data", dataTypes, data);
      h.parts.push(typeof data === "string" ? ab.bytesOf(data, e) : new Uint8Array(...ab.view(data)).slice());
      return this;
    }
    digest(e) {
      const { h } = this;
      if (h.done && h.key !== null) return e && e !== "buffer" ? "" : Buffer.alloc(0);
      if (h.done) throw ab.error(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
      h.done = true;
      const b = ab.wrap(this.of(Buffer.concat(h.parts)));
      return e && e !== "buffer" ? b.toString(e) : b;
    }
    copy(o) {
      if (this.h.done) throw ab.error(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
      return new Hash(this.h.name, null, [...this.h.parts], o ?? { outputLength: this.h.length });
    }
    // stream is what a hash is where it is used as one: made then, for most are not.
    stream() {
      const { h } = this;
      if (!h.stream) {
        const { Transform } = ab.builtin("stream");
        h.stream = new Transform({
          transform: (b, e, done) => { try { this.update(b, e); done(); } catch (x) { done(x); } },
          flush: (done) => { try { done(null, this.digest()); } catch (x) { done(x); } },
        });
      }
      return h.stream;
    }
  }
  class Hmac extends Hash {}
  // streamed gives a hash all that a stream has.
  const streamed = () => {
    Object.setPrototypeOf(Hash.prototype, ab.builtin("stream").Transform.prototype);
    for (let p = ab.builtin("stream").Transform.prototype; p && p !== Object.prototype; p = Object.getPrototypeOf(p)) {
      for (const k of Reflect.ownKeys(p)) {
        if (k === "constructor" || Object.hasOwn(Hash.prototype, k)) continue;
        const d = Object.getOwnPropertyDescriptor(p, k);
        Object.defineProperty(Hash.prototype, k, typeof d.value === "function" ? { value: function (...args) { const s = this.stream(); const r = s[k](...args); return r === s ? this : r; }, writable: true, configurable: true } : { get() { return this.stream()[k]; }, set(v) { this.stream()[k] = v; }, configurable: true });
      }
    }
    for (const k of ["_readableState", "_writableState", "_events"]) if (!Object.hasOwn(Hash.prototype, k)) Object.defineProperty(Hash.prototype, k, { get() { return this.stream()[k]; }, configurable: true });
  };
  class Crypto {
    constructor() { throw ab.error(TypeError, "ERR_ILLEGAL_CONSTRUCTOR", "Illegal constructor"); }
    get subtle() { return ab.subtle; }
    getRandomValues(b) {
      if (!ArrayBuffer.isView(b) || /^Float|DataView/.test(b.constructor.name)) throw new DOMException("The data argument must be an integer-type TypedArray", "TypeMismatchError");
      if (b.byteLength > 65536) throw new QuotaExceededError("The requested length exceeds 65,536 bytes");
      return fill(b);
    }
    randomUUID() { return uuid(); }
    get [Symbol.toStringTag]() { return "Crypto"; }
  }
  const web = Object.create(Crypto.prototype);
  Object.defineProperty(globalThis, "Crypto", { value: Crypto, writable: true, configurable: true });
  Object.defineProperty(globalThis, "crypto", { value: web, writable: true, configurable: true });
  // later is a function that may take a callback: wrong arguments throw at once, what else fails is told to it. spread makes the callback's values of what is returned.
  const later = (f, spread = (v) => [v]) => (...args) => {
    const done = typeof args.at(-1) === "function" ? args.pop() : null;
    if (!done) return f(...args);
    let v, e = null;
    try { v = f(...args); } catch (x) { if (/^ERR_(INVALID_ARG|OUT_OF_RANGE|CRYPTO_INVALID_DIGEST)/.test(x.code)) throw x; e = x; }
    setImmediate(() => { if (e) done(e); else done(null, ...spread(v)); });
    return undefined;
  };
  const randomInt = (low, high) => {
    if (high === undefined) [low, high] = [0, low];
    if (!(high > low)) throw ab.error(RangeError, "ERR_OUT_OF_RANGE", `The value of "max" is out of range. It must be greater than the value of "min" (${low}). Received ${high}`);
    const n = high - low;
    const most = 2 ** 48 - (2 ** 48 % n);
    for (;;) { const v = fill(Buffer.alloc(6)).readUIntBE(0, 6); if (v < most) return low + (v % n); }
  };
  const hashes = ["RSA-MD5", "RSA-RIPEMD160", "RSA-SHA1", "RSA-SHA224", "RSA-SHA256", "RSA-SHA3-224", "RSA-SHA3-256", "RSA-SHA3-384", "RSA-SHA3-512", "RSA-SHA384", "RSA-SHA512", "RSA-SHA512/224", "RSA-SHA512/256", "blake2b512", "blake2s256", "md5", "ripemd", "ripemd160", "rmd160", "sha1", "sha224", "sha256", "sha3-224", "sha3-256", "sha3-384", "sha3-512", "sha384", "sha512", "sha512-224", "sha512-256", "shake128", "shake256"];
  const size = (n, name = "size") => {
    if (typeof n !== "number") throw ab.argument(name, "of type number", n);
    if (!(n >= 0 && n <= 2147483647)) throw ab.error(RangeError, "ERR_OUT_OF_RANGE", `The value of "${name}" is out of range. It must be >= 0 && <= 2147483647. Received ${ab.inspect(n, { numericSeparator: true })}`);
    return n;
  };
  const fillSync = (b, from = 0, n = b.byteLength - from) => { const [x, o] = ab.view(b); host.entropy(x, o + from, n); return b; };
  const text = (name, v) => { if (typeof v !== "string") throw ab.argument(name, "of type string", v); return v; };
  const keyOf = (k) => {
    const secret = ab.secretOf(k);
    if (secret) return secret;
    if (typeof k !== "string" && !ArrayBuffer.isView(k) && !(k instanceof ArrayBuffer)) throw ab.argument("key", "of type string or an instance of ArrayBuffer, Buffer, TypedArray, DataView, KeyObject, or CryptoKey", k);
    return ab.bytesOf(k).slice();
  };
  const pbkdf2 = (password, salt, rounds, length, digest) => {
    if (typeof digest !== "string") throw ab.argument("digest", "string", digest);
    if (!(rounds >= 1)) throw ab.error(RangeError, "ERR_OUT_OF_RANGE", `The value of "iterations" is out of range. It must be >= 1 && <= 2147483647. Received ${ab.inspect(rounds)}`);
    try { host.hash(digest, new ArrayBuffer(0), 0, 0); } catch { throw ab.error(TypeError, "ERR_CRYPTO_INVALID_DIGEST", `Invalid digest: ${digest}`); }
    return ab.wrap(host.pbkdf2(digest, ...ab.view(keyOf(password)), ...ab.view(ab.bytesOf(salt)), rounds, size(length, "keylen")));
  };
  const scrypt = (password, salt, length, o = {}) => ab.wrap(host.scrypt(...ab.view(ab.bytesOf(password)), ...ab.view(ab.bytesOf(salt)), o.N ?? o.cost ?? 16384, o.r ?? o.blockSize ?? 8, o.p ?? o.parallelization ?? 1, length));
  const hkdf = (digest, key, salt, info, length) => { const b = host.hkdf(digest, ...ab.view(keyOf(key)), ...ab.view(ab.bytesOf(salt)), ...ab.view(ab.bytesOf(info)), length); return b.buffer.slice(b.byteOffset, b.byteOffset + b.length); };
  // Ciphers: AES, whose parts come as Node gives them.
  const ciphers = ["cbc", "ctr", "ecb", "gcm"].flatMap((mode) => [128, 192, 256].map((bits) => `aes-${bits}-${mode}`));
  const makeCipher = () => {
    const { Transform } = ab.builtin("stream");
    const joined = (a, b) => { const c = new Uint8Array(a.length + b.length); c.set(a); c.set(b, a.length); return c; };
    const wrong = (reason, code) => Object.assign(new Error(`error:1C80006${code === "ERR_OSSL_BAD_DECRYPT" ? "4" : "B"}:Provider routines::${reason}`), { library: "Provider routines", reason, code });
    return class Cipher extends Transform {
      constructor(encrypts, name, key, iv, o = {}) {
        super(o);
        const m = /^aes-(128|192|256)-(cbc|ctr|ecb|gcm)$/i.exec(String(name));
        if (!m) throw ab.error(Error, "ERR_CRYPTO_UNKNOWN_CIPHER", "Unknown cipher");
        const k = keyOf(key).slice();
        const v = iv === null ? new Uint8Array(0) : ab.bytesOf(iv).slice();
        const mode = m[2].toLowerCase();
        if (mode === "ecb" ? v.length !== 0 : mode === "gcm" ? v.length === 0 : v.length !== 16) throw ab.error(TypeError, "ERR_CRYPTO_INVALID_IV", "Invalid initialization vector");
        if (k.length !== Number(m[1]) / 8) throw ab.error(RangeError, "ERR_CRYPTO_INVALID_KEYLEN", "Invalid key length");
        Object.defineProperty(this, "c", { value: { encrypts, mode, key: k, iv: v, rest: new Uint8Array(0), count: 0, all: [], extra: new Uint8Array(0), tag: null, padding: true, done: false, tagLength: o.authTagLength ?? 16 } });
      }
      blocks(b) {
        const { c } = this;
        if (b.length === 0) return b;
        const out = host.cipher(c.mode, c.encrypts ? 1 : 0, ...ab.view(c.key), ...ab.view(c.iv), 0, ...ab.view(b));
        if (c.mode === "cbc") c.iv = (c.encrypts ? out : b).slice(-16);
        return out;
      }
      update(data, from, to) {
        const { c } = this;
        if (c.done) throw ab.error(Error, "ERR_CRYPTO_INVALID_STATE", "Invalid state for operation update");
        if (typeof data !== "string" && !ArrayBuffer.isView(data)) throw ab.argument("data", "string or an instance of Buffer, TypedArray, or DataView", data);
        const b = typeof data === "string" ? ab.bytesOf(data, from) : new Uint8Array(...ab.view(data)).slice();
        let out;
        if (c.mode === "ctr") { out = host.cipher("ctr", 1, ...ab.view(c.key), ...ab.view(c.iv), c.count, ...ab.view(b)); c.count += b.length; } else if (c.mode === "gcm") {
          c.all = joined(c.all, b);
          out = host.gcm(c.encrypts ? 1 : 0, ...ab.view(c.key), ...ab.view(c.iv), ...ab.view(c.extra), ...ab.view(c.all)).slice(c.count, c.all.length);
          c.count += b.length;
        } else {
          const whole = joined(c.rest, b);
          let n = whole.length - (whole.length % 16);
          if (!c.encrypts && c.padding && n === whole.length && n > 0) n -= 16; // the last block holds the padding
          c.rest = whole.slice(n);
          out = this.blocks(whole.slice(0, n));
        }
        const w = ab.wrap(out);
        return to && to !== "buffer" ? w.toString(to) : w;
      }
      final(to) {
        const { c } = this;
        if (c.done) throw ab.error(Error, "ERR_CRYPTO_INVALID_STATE", "Invalid state for operation final");
        c.done = true;
        let out = new Uint8Array(0);
        if (c.mode === "gcm") {
          const all = c.all.length === 0 ? new Uint8Array(0) : c.all;
          const tag = host.gcm(c.encrypts ? 1 : 0, ...ab.view(c.key), ...ab.view(c.iv), ...ab.view(c.extra), ...ab.view(all)).slice(all.length);
          if (c.encrypts) c.tag = tag.slice(0, c.tagLength);
          else if (!c.tag || Buffer.compare(tag.slice(0, c.tag.length), c.tag) !== 0) throw new Error("Unsupported state or unable to authenticate data");
        } else if (c.mode !== "ctr") {
          if (c.encrypts) {
            if (c.padding) { const n = 16 - c.rest.length; out = this.blocks(joined(c.rest, new Uint8Array(n).fill(n))); } else if (c.rest.length > 0) throw wrong("wrong final block length", "ERR_OSSL_WRONG_FINAL_BLOCK_LENGTH");
          } else {
            if (c.rest.length !== 16 && (c.padding || c.rest.length > 0)) throw wrong("wrong final block length", "ERR_OSSL_WRONG_FINAL_BLOCK_LENGTH");
            if (c.padding) {
              out = this.blocks(c.rest);
              const n = out[15];
              if (n < 1 || n > 16 || out.slice(16 - n).some((x) => x !== n)) throw wrong("bad decrypt", "ERR_OSSL_BAD_DECRYPT");
              out = out.slice(0, 16 - n);
            }
          }
        }
        const w = ab.wrap(out);
        return to && to !== "buffer" ? w.toString(to) : w;
      }
      setAAD(b) { this.c.extra = ab.bytesOf(b).slice(); return this; }
      setAuthTag(b, e) { this.c.tag = ab.bytesOf(b, e).slice(); return this; }
      getAuthTag() { if (!this.c.tag || !this.c.encrypts) throw ab.error(Error, "ERR_CRYPTO_INVALID_STATE", "Invalid state for operation getAuthTag"); return ab.wrap(this.c.tag.slice()); }
      setAutoPadding(on = true) { this.c.padding = Boolean(on); return this; }
      _transform(b, e, done) { try { done(null, this.update(b, e)); } catch (x) { done(x); } }
      _flush(done) { try { done(null, this.final()); } catch (x) { done(x); } }
    };
  };
  ab.define("crypto", () => {
    streamed();
    const Cipher = makeCipher();
    const c = {
      createHash: (name, o) => new Hash(text("algorithm", name), null, [], o), createHmac: (name, key) => new Hmac(text("hmac", name), keyOf(key)), Hash, Hmac, getHashes: () => [...hashes],
      hash: (name, data, o = "hex") => new Hash(text("algorithm", name), null, [], typeof o === "object" ? o : {}).update(data).digest(typeof o === "object" ? o.outputEncoding ?? "hex" : o),
      randomBytes: later((n) => fill(Buffer.alloc(size(n)))), randomFillSync: fillSync, randomFill: later(fillSync), randomInt: (...args) => { const done = typeof args.at(-1) === "function" ? args.pop() : null; const n = randomInt(...args); if (done) { ab.nextTick(done, undefined, n); return undefined; } return n; }, randomUUID: uuid,
      getRandomValues: (b) => web.getRandomValues(b), webcrypto: web, get subtle() { return ab.subtle; }, getFips: () => 0, setEngine() {}, secureHeapUsed: () => ({ total: 0, used: 0, utilization: 0, min: 2 }), pbkdf2Sync: pbkdf2, pbkdf2: later(pbkdf2),
      timingSafeEqual: (a, b) => { for (const [name, v] of [["buf1", a], ["buf2", b]]) if (!ArrayBuffer.isView(v) && !(v instanceof ArrayBuffer)) throw ab.error(TypeError, "ERR_INVALID_ARG_TYPE", `The "${name}" argument must be an instance of ArrayBuffer, Buffer, TypedArray, or DataView.`); if (a.byteLength !== b.byteLength) throw ab.error(RangeError, "ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH", "Input buffers must have the same byte length"); return Buffer.compare(new Uint8Array(...ab.view(a)), new Uint8Array(...ab.view(b))) === 0; },
      constants: {}, createCipheriv: (...args) => new Cipher(true, ...args), createDecipheriv: (...args) => new Cipher(false, ...args), getCiphers: () => [...ciphers],
      scryptSync: scrypt, scrypt: later(scrypt), hkdfSync: hkdf, hkdf: later(hkdf),
    };
    ab.keyed(c, later);
    for (const name of ["X509Certificate", "Certificate", "generatePrime", "generatePrimeSync", "checkPrime", "checkPrimeSync", "argon2", "argon2Sync"]) c[name] = { [name]: function () { throw ab.lacking(`crypto.${name}`); } }[name];
    c.getCipherInfo = (name) => {
      const m = /^aes-(128|192|256)-(cbc|ctr|ecb|gcm)$/i.exec(String(name));
      if (!m) return undefined;
      const mode = m[2].toLowerCase();
      const nid = { ecb: [418, 422, 426], cbc: [419, 423, 427], ctr: [904, 905, 906], gcm: [895, 898, 901] }[mode][Number(m[1]) / 64 - 2];
      return Object.assign(Object.create(null), { mode, name: mode === "gcm" ? `id-aes${m[1]}-gcm` : name.toLowerCase(), nid, keyLength: Number(m[1]) / 8, blockSize: mode === "ecb" || mode === "cbc" ? 16 : 1, ...(mode === "ecb" ? {} : { ivLength: mode === "gcm" ? 12 : 16 }) });
    };
    return c;
  });
})();
