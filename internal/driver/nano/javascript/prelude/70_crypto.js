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
      this.of(new Uint8Array(0));
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
  const hashes = ["md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha512-256"];
  // pbkdf2 of RFC 8018.
  const pbkdf2 = (password, salt, rounds, length, digest = "sha1") => {
    const key = ab.bytesOf(password);
    const out = [];
    for (let block = 1, have = 0; have < length; block++) {
      const n = Buffer.alloc(4);
      n.writeUInt32BE(block);
      let u = new Hash(digest, key).update(Buffer.concat([ab.bytesOf(salt), n])).digest();
      const t = Buffer.from(u);
      for (let i = 1; i < rounds; i++) { u = new Hash(digest, key).update(u).digest(); for (let j = 0; j < t.length; j++) t[j] ^= u[j]; }
      out.push(t);
      have += t.length;
    }
    return Buffer.concat(out).subarray(0, length);
  };
  ab.define("crypto", () => {
    const c = {
      createHash: (name) => new Hash(String(name), null), createHmac: (name, key) => new Hash(String(name), ab.bytesOf(key)), Hash, Hmac: Hash, getHashes: () => hashes,
      hash: (name, data, e = "hex") => new Hash(name, null).update(data).digest(e), randomBytes: later((n) => fill(Buffer.alloc(n))), randomFillSync: fill, randomFill: later(fill), randomInt: later(randomInt), randomUUID: uuid,
      getRandomValues: web.getRandomValues, webcrypto: web, subtle, pbkdf2Sync: pbkdf2, pbkdf2: later(pbkdf2),
      timingSafeEqual: (a, b) => { if (a.byteLength !== b.byteLength) throw ab.error(RangeError, "ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH", "Input buffers must have the same byte length"); return Buffer.compare(new Uint8Array(...ab.view(a)), new Uint8Array(...ab.view(b))) === 0; },
      constants: {},
    };
    for (const name of ["createCipheriv", "createDecipheriv", "createSign", "createVerify", "generateKeyPair", "generateKeyPairSync", "generateKeySync", "publicEncrypt", "privateDecrypt", "scrypt", "scryptSync", "createDiffieHellman", "createECDH", "hkdfSync", "sign", "verify", "createPrivateKey", "createPublicKey"]) c[name] = () => { throw ab.lacking(`crypto.${name}`); };
    return c;
  });
})();
