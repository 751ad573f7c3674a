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
  class Hash {
    constructor(name, key, parts = []) {
      this.name = name;
      this.key = key;
      this.parts = parts;
      this.done = false;
      try { this.of(new Uint8Array(0)); } catch (e) { if (key === null && e.code === "ERR_CRYPTO_INVALID_DIGEST") throw new Error("Digest method not supported"); throw e; }
    }
    of(b) {
      const [x, o, n] = ab.view(b);
      return this.key === null ? host.hash(this.name, x, o, n) : host.hmac(this.name, ...ab.view(this.key), x, o, n);
    }
    update(data, e) {
      if (this.done) throw ab.error(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
      if (typeof data !== "string" && !ArrayBuffer.isView(data)) throw ab.argument("data", "string or an instance of Buffer, TypedArray, or DataView", data);
      this.parts.push(typeof data === "string" ? ab.bytesOf(data, e) : new Uint8Array(...ab.view(data)).slice());
      return this;
    }
    digest(e) {
      if (this.done) throw ab.error(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
      this.done = true;
      const b = ab.wrap(this.of(Buffer.concat(this.parts)));
      return e && e !== "buffer" ? b.toString(e) : b;
    }
    copy() { return new Hash(this.name, this.key, [...this.parts]); }
    write(data, e) { this.update(data, e); return true; }
    end(data) { if (data !== undefined) this.update(data); return this; }
    read() { return this.digest(); }
  }
  const algorithm = (a) => (typeof a === "string" ? a : a.hash?.name ?? a.hash ?? a.name);
  const lacks = new Proxy({}, { get: (_, name) => async () => { throw ab.lacking(`crypto.subtle.${String(name)}`); } });
  const subtle = Object.create(lacks, {
    digest: { value: async (a, data) => { const b = host.hash(algorithm(a), ...ab.view(data)); return b.buffer.slice(b.byteOffset, b.byteOffset + b.length); } },
    importKey: { value: async (format, data, a, extractable, usages) => {
      const name = algorithm(a);
      if (format !== "raw" || (a.name ?? a) !== "HMAC") throw ab.lacking(`crypto.subtle keys of ${a.name ?? a}`);
      return { type: "secret", extractable, algorithm: { name: "HMAC", hash: { name } }, usages, key: new Uint8Array(...ab.view(data)).slice() };
    } },
    sign: { value: async (a, k, data) => { const b = host.hmac(k.algorithm.hash.name, ...ab.view(k.key), ...ab.view(data)); return b.buffer.slice(b.byteOffset, b.byteOffset + b.length); } },
    verify: { value: async (a, k, sum, data) => { const b = host.hmac(k.algorithm.hash.name, ...ab.view(k.key), ...ab.view(data)); return Buffer.compare(b, new Uint8Array(...ab.view(sum))) === 0; } },
  });
  const web = {
    getRandomValues(b) {
      if (!ArrayBuffer.isView(b)) throw ab.argument("typedArray", "an integer typed array", b);
      if (b.byteLength > 65536) throw new DOMException("The requested length exceeds 65,536 bytes", "QuotaExceededError");
      return fill(b);
    },
    randomUUID: uuid, subtle,
  };
  Object.defineProperty(globalThis, "crypto", { value: web, writable: true, configurable: true });
  const later = (f) => (...args) => {
    const done = typeof args.at(-1) === "function" ? args.pop() : null;
    if (!done) return f(...args);
    let v, e = null;
    try { v = f(...args); } catch (x) { e = x; }
    setImmediate(() => done(e, v));
    return undefined;
  };
  const randomInt = (low, high) => {
    if (high === undefined) [low, high] = [0, low];
    if (!(high > low)) throw ab.error(RangeError, "ERR_OUT_OF_RANGE", `The value of "max" is out of range. It must be greater than the value of "min" (${low}). Received ${high}`);
    const n = high - low;
    const most = 2 ** 48 - (2 ** 48 % n);
    for (;;) { const v = fill(Buffer.alloc(6)).readUIntBE(0, 6); if (v < most) return low + (v % n); }
  };
  const hashes = ["md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha512-256", "sha3-256", "sha3-384", "sha3-512"];
  const pbkdf2 = (password, salt, rounds, length, digest) => {
    if (typeof digest !== "string") throw ab.argument("digest", "string", digest);
    if (!(rounds >= 1)) throw ab.error(RangeError, "ERR_OUT_OF_RANGE", `The value of "iterations" is out of range. It must be >= 1 && <= 2147483647. Received ${ab.inspect(rounds)}`);
    return ab.wrap(host.pbkdf2(digest, ...ab.view(ab.bytesOf(password)), ...ab.view(ab.bytesOf(salt)), rounds, length));
  };
  const scrypt = (password, salt, length, o = {}) => ab.wrap(host.scrypt(...ab.view(ab.bytesOf(password)), ...ab.view(ab.bytesOf(salt)), o.N ?? o.cost ?? 16384, o.r ?? o.blockSize ?? 8, o.p ?? o.parallelization ?? 1, length));
  const hkdf = (digest, key, salt, info, length) => { const b = host.hkdf(digest, ...ab.view(ab.bytesOf(key)), ...ab.view(ab.bytesOf(salt)), ...ab.view(ab.bytesOf(info)), length); return b.buffer.slice(b.byteOffset, b.byteOffset + b.length); };
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
        const k = ab.bytesOf(key).slice();
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
    const Cipher = makeCipher();
    const c = {
      createHash: (name) => new Hash(String(name), null), createHmac: (name, key) => new Hash(String(name), ab.bytesOf(key)), Hash, Hmac: Hash, getHashes: () => hashes,
      hash: (name, data, e = "hex") => new Hash(name, null).update(data).digest(e), randomBytes: later((n) => fill(Buffer.alloc(n))), randomFillSync: fill, randomFill: later(fill), randomInt: later(randomInt), randomUUID: uuid,
      getRandomValues: web.getRandomValues, webcrypto: web, subtle, pbkdf2Sync: pbkdf2, pbkdf2: later(pbkdf2),
      timingSafeEqual: (a, b) => { if (a.byteLength !== b.byteLength) throw ab.error(RangeError, "ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH", "Input buffers must have the same byte length"); return Buffer.compare(new Uint8Array(...ab.view(a)), new Uint8Array(...ab.view(b))) === 0; },
      constants: {}, createCipheriv: (...args) => new Cipher(true, ...args), createDecipheriv: (...args) => new Cipher(false, ...args), getCiphers: () => [...ciphers],
      scryptSync: scrypt, scrypt: later(scrypt), hkdfSync: hkdf, hkdf: later(hkdf),
    };
    for (const name of ["createSign", "createVerify", "generateKeyPair", "generateKeyPairSync", "generateKeySync", "publicEncrypt", "privateDecrypt", "createDiffieHellman", "createECDH", "sign", "verify", "createPrivateKey", "createPublicKey"]) c[name] = () => { throw ab.lacking(`crypto.${name}`); };
    return c;
  });
})();
