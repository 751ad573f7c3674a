// crypto with keys: RSA, curves and Diffie-Hellman, and the web's crypto.subtle. A key is its DER; the host does the work.
(() => {
  const ab = __agentbox;
  const host = ab.host;
  const empty = new Uint8Array(0);
  const bad = (code, message, Type = TypeError) => ab.error(Type, code, message);
  // call has the host use a key; the texts are bytes.
  const call = (way, options, a = empty, b = empty, c = empty) => {
    try { return host.key(way, JSON.stringify(options ?? {}), ...ab.view(a), ...ab.view(b), ...ab.view(c)); } catch (e) {
      if (["ERR_CRYPTO_INVALID_CURVE", "ERR_CRYPTO_INVALID_DIGEST", "ERR_INVALID_ARG_VALUE", "ERR_CRYPTO_UNKNOWN_CIPHER"].includes(e.code)) throw bad(e.code, e.message);
      if (e.code === "ERR_OUT_OF_RANGE") throw bad(e.code, e.message, RangeError);
      const m = /^error:[0-9A-F]+:([^:]*)::(.*)$/.exec(e.message ?? "");
      if (m) Object.assign(e, { library: m[1], reason: m[2] });
      throw e;
    }
  };
  const utf8 = new TextDecoder();
  const json = (b) => JSON.parse(utf8.decode(b));
  const isBytes = (v) => ArrayBuffer.isView(v) || v instanceof ArrayBuffer;
  const bytes = (v, e) => (typeof v === "string" ? ab.bytesOf(v, e) : new Uint8Array(...ab.view(v)));
  const buffer = (b) => b.buffer.slice(b.byteOffset, b.byteOffset + b.byteLength);
  const shown = (b, e) => { const w = ab.wrap(b); return e && e !== "buffer" ? w.toString(e) : w; };
  const inner = new WeakMap(); // KeyObject or CryptoKey -> what it holds
  const kinds = { rsa: "rsa", ec: "ec", ed25519: "ed25519", x25519: "x25519" };
  const secretTypes = "an instance of ArrayBuffer, Buffer, TypedArray, or DataView";

  class KeyObject {
    constructor(type, held) { if (!held) throw bad("ERR_INVALID_ARG_VALUE", `The argument 'type' is invalid. Received ${ab.inspect(type)}`); inner.set(this, { type, ...held }); }
    get type() { return inner.get(this).type; }
    static from(key) {
      if (!(key instanceof CryptoKey)) throw ab.argument("key", "an instance of CryptoKey", key);
      const k = inner.get(key);
      return k.secret ? new SecretKeyObject("secret", { secret: k.secret }) : keyOf(k.der);
    }
    equals(other) {
      if (!(other instanceof KeyObject)) throw ab.argument("otherKeyObject", "an instance of KeyObject", other);
      const [a, b] = [inner.get(this), inner.get(other)];
      return a.type === b.type && Buffer.compare(a.der ?? a.secret, b.der ?? b.secret) === 0;
    }
    toCryptoKey(algorithm, extractable, usages) {
      const k = inner.get(this);
      const a = named(algorithm);
      return k.secret ? importSecret(k.secret, a, extractable, usages) : importDER(k.der, a, extractable, usages);
    }
    get [Symbol.toStringTag]() { return "KeyObject"; }
  }
  class SecretKeyObject extends KeyObject {
    get symmetricKeySize() { return inner.get(this).secret.length; }
    export(o) {
      if (o?.format === "jwk") return { kty: "oct", k: ab.wrap(inner.get(this).secret).toString("base64url") };
      return ab.wrap(inner.get(this).secret.slice());
    }
  }
  class AsymmetricKeyObject extends KeyObject {
    get asymmetricKeyType() { return kinds[inner.get(this).details.kind]; }
    get asymmetricKeyDetails() {
      const d = inner.get(this).details;
      return d.kind === "rsa" ? { modulusLength: d.bits, publicExponent: BigInt(d.exponent) } : d.kind === "ec" ? { namedCurve: d.curve } : {};
    }
    export(o) {
      if (o === null || typeof o !== "object") throw ab.argument("options", "of type object", o);
      return exported(inner.get(this), o);
    }
  }
  class PublicKeyObject extends AsymmetricKeyObject {}
  class PrivateKeyObject extends AsymmetricKeyObject {}
  const keyOf = (der) => {
    const details = json(call("details", null, der));
    return new (details.private ? PrivateKeyObject : PublicKeyObject)(details.private ? "private" : "public", { der, details });
  };
  const exported = (k, o) => {
    if (o.format === "jwk") return json(call("parts", null, k.der));
    if (o.format !== "pem" && o.format !== "der") throw bad("ERR_INVALID_ARG_VALUE", `The property 'options.format' is invalid. Received ${ab.inspect(o.format)}`);
    const type = o.type ?? undefined;
    const allowed = k.type === "public" ? ["pkcs1", "spki"] : ["pkcs1", "pkcs8", "sec1"];
    if (!allowed.includes(type)) throw bad("ERR_INVALID_ARG_VALUE", `The property 'options.type' is invalid. Received ${ab.inspect(type)}`);
    if (o.cipher !== undefined && type !== "pkcs8") throw bad("ERR_CRYPTO_INCOMPATIBLE_KEY_OPTIONS", `The selected key encoding ${type} does not support encryption.`, Error);
    const b = call("write", { type, format: o.format, cipher: o.cipher ?? "", passphrase: o.passphrase === undefined ? "" : ab.wrap(bytes(o.passphrase)).toString() }, k.der);
    return o.format === "pem" ? utf8.decode(b) : ab.wrap(b);
  };
  // given makes a key of what a program hands over: a key, PEM, or an object with either.
  const keyTypes = "of type string or an instance of ArrayBuffer, Buffer, TypedArray, DataView, KeyObject, or CryptoKey";
  const given = (k, want) => {
    let o = {};
    if ((k === null || k === undefined) && want === "signs") throw bad("ERR_CRYPTO_SIGN_KEY_REQUIRED", "No key provided to sign", Error);
    if (want === "signs") want = "private";
    if (k !== null && typeof k === "object" && !isBytes(k) && !(k instanceof KeyObject) && !(k instanceof CryptoKey)) { o = k; k = o.key; }
    if (k instanceof CryptoKey) k = KeyObject.from(k);
    if (k instanceof KeyObject) {
      if (k.type === "secret" || (want === "private" && k.type !== "private")) throw bad("ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE", `Invalid key object type ${k.type}, expected ${want === "private" ? "private" : "private or public"}.`);
      return k;
    }
    if (o.format === "jwk") {
      if (k === null || typeof k !== "object") throw ab.argument("key.key", "of type object", k);
      return keyOf(call("jwk", null, bytes(JSON.stringify(k))));
    }
    if (typeof k !== "string" && !isBytes(k)) throw ab.argument("key", keyTypes, k);
    const passphrase = o.passphrase === undefined ? "" : ab.wrap(bytes(o.passphrase)).toString();
    const made = keyOf(call("read", { format: o.format ?? "pem", type: o.type ?? "", passphrase }, bytes(k, o.encoding)));
    if (want === "private" && made.type !== "private") throw Object.assign(new Error("error:1E08010C:DECODER routines::unsupported"), { library: "DECODER routines", reason: "unsupported", code: "ERR_OSSL_UNSUPPORTED" });
    return made;
  };
  const createPrivateKey = (k) => { const o = given(k, "private"); return o; };
  const createPublicKey = (k) => {
    if (k instanceof PublicKeyObject) throw bad("ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE", "Invalid key object type public, expected private.");
    const o = given(k);
    return o.type === "private" ? keyOf(call("public", null, inner.get(o).der)) : o;
  };
  const createSecretKey = (k, e) => {
    if (typeof k !== "string" && !isBytes(k)) throw ab.argument("key", typeof k === "string" ? "of type string" : secretTypes, k);
    return new SecretKeyObject("secret", { secret: bytes(k, e).slice() });
  };
  ab.secretOf = (k) => { const held = inner.get(k); if (!held) return null; if (!held.secret) throw bad("ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE", `Invalid key object type ${held.type}, expected secret.`); return held.secret; };

  const generateKeyPairSync = (type, o) => {
    if (typeof type !== "string") throw ab.argument("type", "of type string", type);
    const want = { kind: type };
    if (!["rsa", "ec", "ed25519", "x25519"].includes(type)) {
      if (["rsa-pss", "dsa", "dh", "ed448", "x448"].includes(type) || /^(ml|slh)-/.test(type)) throw ab.lacking(`keys of ${type}`, `crypto.generateKeyPair of ${type} is not available: a nano space has rsa, ec, ed25519 and x25519`);
      throw bad("ERR_INVALID_ARG_VALUE", `The argument 'type' must be a supported key type. Received ${ab.inspect(type)}`);
    }
    if (type === "rsa" || type === "ec") {
      if (o === null || typeof o !== "object") throw ab.argument("options", "of type object", o);
      if (type === "rsa") {
        if (typeof o.modulusLength !== "number") throw ab.argument("options.modulusLength", "of type number", o.modulusLength);
        want.bits = o.modulusLength;
        if (o.publicExponent !== undefined) want.exponent = Number(o.publicExponent);
      } else {
        if (typeof o.namedCurve !== "string") throw ab.argument("options.namedCurve", "of type string", o.namedCurve);
        if (o.namedCurve === "secp256k1") throw ab.lacking("the curve secp256k1", "the curve secp256k1 is not available in a nano space; it has prime256v1, secp384r1 and secp521r1");
        want.curve = o.namedCurve;
      }
    }
    const der = call("make", want);
    const pair = { publicKey: keyOf(call("public", null, der)), privateKey: keyOf(der) };
    if (o?.publicKeyEncoding) pair.publicKey = exported(inner.get(pair.publicKey), o.publicKeyEncoding);
    if (o?.privateKeyEncoding) pair.privateKey = exported(inner.get(pair.privateKey), o.privateKeyEncoding);
    return pair;
  };
  const generateKeySync = (type, o) => {
    if (type !== "aes" && type !== "hmac") throw bad("ERR_INVALID_ARG_VALUE", `The argument 'type' must be a supported key type. Received ${ab.inspect(type)}`);
    if (typeof o?.length !== "number") throw ab.argument("options.length", "of type number", o?.length);
    if (type === "aes" && ![128, 192, 256].includes(o.length)) throw bad("ERR_INVALID_ARG_VALUE", `The property 'options.length' must be one of: 128, 192, 256. Received ${o.length}`);
    const b = new Uint8Array(o.length >> 3);
    host.entropy(b.buffer, 0, b.length);
    return new SecretKeyObject("secret", { secret: b });
  };

  // Signatures.
  const use = (hash, k) => {
    const o = k !== null && typeof k === "object" && !(k instanceof KeyObject) && !isBytes(k) ? k : {};
    return { hash: hash ?? "", padding: o.padding ?? 0, ...(o.saltLength !== undefined ? { salt: o.saltLength } : {}), plain: o.dsaEncoding === "ieee-p1363" };
  };
  const dataOf = (data, e) => {
    if (typeof data !== "string" && !isBytes(data)) throw ab.argument("data", "of type string or an instance of ArrayBuffer, Buffer, TypedArray, or DataView", data);
    return bytes(data, e);
  };
  const sign = (hash, data, key) => ab.wrap(call("sign", use(hash, key), inner.get(given(key, "signs")).der, dataOf(data)));
  const verify = (hash, data, key, signature) => {
    if (!isBytes(signature)) throw ab.argument("signature", secretTypes, signature);
    return call("verify", use(hash, key), inner.get(given(key)).der, dataOf(data), bytes(signature)).length > 0;
  };
  const makeSigns = () => {
    const { Writable } = ab.builtin("stream");
    class Parts extends Writable {
      constructor(hash, o) {
        super(o);
        if (typeof hash !== "string") throw ab.argument("algorithm", "of type string", hash);
        try { host.hash(hash.replace(/^rsa-/i, ""), empty.buffer, 0, 0); } catch { throw bad("ERR_CRYPTO_INVALID_DIGEST", "Invalid digest"); }
        inner.set(this, { hash, parts: [] });
      }
      update(data, e) {
        if (typeof data !== "string" && !isBytes(data)) throw ab.argument("data", "of type string or an instance of Buffer, TypedArray, or DataView", data);
        inner.get(this).parts.push(bytes(data, e).slice());
        return this;
      }
      _write(b, e, done) { this.update(b, e); done(); }
    }
    class Sign extends Parts {
      sign(key, e) { if (!key) throw bad("ERR_CRYPTO_SIGN_KEY_REQUIRED", "No key provided to sign", Error); const { hash, parts } = inner.get(this); return shown(sign(hash, Buffer.concat(parts), key), e); }
    }
    class Verify extends Parts {
      verify(key, signature, e) { const { hash, parts } = inner.get(this); return verify(hash, Buffer.concat(parts), key, typeof signature === "string" ? ab.bytesOf(signature, e) : signature); }
    }
    return { Sign, Verify };
  };

  // Encryption with RSA.
  const crypt = (way, want, raw) => (key, data) => {
    if (typeof data !== "string" && !isBytes(data)) throw ab.argument("buffer", "of type string or an instance of ArrayBuffer, Buffer, TypedArray, or DataView", data);
    const o = key !== null && typeof key === "object" && !(key instanceof KeyObject) && !isBytes(key) ? key : {};
    const label = o.oaepLabel === undefined ? undefined : ab.wrap(bytes(o.oaepLabel)).toString("base64");
    return ab.wrap(call(way, { padding: o.padding ?? 0, hash: o.oaepHash ?? "", label, raw }, inner.get(given(key, want)).der, bytes(data, o.encoding)));
  };

  // Diffie-Hellman, with numbers as bytes.
  const groups = {
    modp5: "ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b139b22514a08798e3404ddef9519b3cd3a431b302b0a6df25f14374fe1356d6d51c245e485b576625e7ec6f44c42e9a637ed6b0bff5cb6f406b7edee386bfb5a899fa5ae9f24117c4b1fe649286651ece45b3dc2007cb8a163bf0598da48361c55d39a69163fa8fd24cf5f83655d23dca3ad961c62f356208552bb9ed529077096966d670c354e4abc9804f1746c08ca237327ffffffffffffffff",
    modp14: "ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b139b22514a08798e3404ddef9519b3cd3a431b302b0a6df25f14374fe1356d6d51c245e485b576625e7ec6f44c42e9a637ed6b0bff5cb6f406b7edee386bfb5a899fa5ae9f24117c4b1fe649286651ece45b3dc2007cb8a163bf0598da48361c55d39a69163fa8fd24cf5f83655d23dca3ad961c62f356208552bb9ed529077096966d670c354e4abc9804f1746c08ca18217c32905e462e36ce3be39e772c180e86039b2783a2ec07a28fb5c55df06f4c52c9de2bcbf6955817183995497cea956ae515d2261898fa051015728e5a8aacaa68ffffffffffffffff",
    modp15: "ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b139b22514a08798e3404ddef9519b3cd3a431b302b0a6df25f14374fe1356d6d51c245e485b576625e7ec6f44c42e9a637ed6b0bff5cb6f406b7edee386bfb5a899fa5ae9f24117c4b1fe649286651ece45b3dc2007cb8a163bf0598da48361c55d39a69163fa8fd24cf5f83655d23dca3ad961c62f356208552bb9ed529077096966d670c354e4abc9804f1746c08ca18217c32905e462e36ce3be39e772c180e86039b2783a2ec07a28fb5c55df06f4c52c9de2bcbf6955817183995497cea956ae515d2261898fa051015728e5a8aaac42dad33170d04507a33a85521abdf1cba64ecfb850458dbef0a8aea71575d060c7db3970f85a6e1e4c7abf5ae8cdb0933d71e8c94e04a25619dcee3d2261ad2ee6bf12ffa06d98a0864d87602733ec86a64521f2b18177b200cbbe117577a615d6c770988c0bad946e208e24fa074e5ab3143db5bfce0fd108e4b82d120a93ad2caffffffffffffffff",
    modp16: "ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b139b22514a08798e3404ddef9519b3cd3a431b302b0a6df25f14374fe1356d6d51c245e485b576625e7ec6f44c42e9a637ed6b0bff5cb6f406b7edee386bfb5a899fa5ae9f24117c4b1fe649286651ece45b3dc2007cb8a163bf0598da48361c55d39a69163fa8fd24cf5f83655d23dca3ad961c62f356208552bb9ed529077096966d670c354e4abc9804f1746c08ca18217c32905e462e36ce3be39e772c180e86039b2783a2ec07a28fb5c55df06f4c52c9de2bcbf6955817183995497cea956ae515d2261898fa051015728e5a8aaac42dad33170d04507a33a85521abdf1cba64ecfb850458dbef0a8aea71575d060c7db3970f85a6e1e4c7abf5ae8cdb0933d71e8c94e04a25619dcee3d2261ad2ee6bf12ffa06d98a0864d87602733ec86a64521f2b18177b200cbbe117577a615d6c770988c0bad946e208e24fa074e5ab3143db5bfce0fd108e4b82d120a92108011a723c12a787e6d788719a10bdba5b2699c327186af4e23c1a946834b6150bda2583e9ca2ad44ce8dbbbc2db04de8ef92e8efc141fbecaa6287c59474e6bc05d99b2964fa090c3a2233ba186515be7ed1f612970cee2d7afb81bdd762170481cd0069127d5b05aa993b4ea988d8fddc186ffb7dc90a6c08f4df435c934063199ffffffffffffffff",
  };
  class DiffieHellman {
    constructor(prime, generator) { inner.set(this, { prime, generator, mine: null, theirs: null }); this.verifyError = 0; }
    generateKeys(e) {
      const k = inner.get(this);
      if (!k.mine) { k.mine = new Uint8Array(Math.min(k.prime.length, 64)); host.entropy(k.mine.buffer, 0, k.mine.length); }
      k.theirs = call("power", null, k.generator, k.mine, k.prime);
      return shown(k.theirs, e);
    }
    computeSecret(other, from, to) {
      const k = inner.get(this);
      return shown(call("power", null, bytes(other, typeof other === "string" ? from : undefined), k.mine, k.prime), typeof other === "string" ? to : to ?? from);
    }
    getPrime(e) { return shown(inner.get(this).prime, e); }
    getGenerator(e) { return shown(inner.get(this).generator, e); }
    getPublicKey(e) { const k = inner.get(this).theirs; if (!k) throw bad("ERR_CRYPTO_INVALID_STATE", "No public key - did you forget to generate one?", Error); return shown(k, e); }
    getPrivateKey(e) { const k = inner.get(this).mine; if (!k) throw bad("ERR_CRYPTO_INVALID_STATE", "No private key - did you forget to generate one?", Error); return shown(k, e); }
    setPrivateKey(k, e) { inner.get(this).mine = bytes(k, e).slice(); }
    setPublicKey(k, e) { inner.get(this).theirs = bytes(k, e).slice(); }
  }
  const getDiffieHellman = (name) => {
    if (!groups[name]) throw bad("ERR_CRYPTO_UNKNOWN_DH_GROUP", "Unknown DH group", Error);
    return new DiffieHellman(ab.bytesOf(groups[name], "hex"), new Uint8Array([2]));
  };
  const createDiffieHellman = (prime, e, generator = 2, ge) => {
    if (typeof prime === "number") throw ab.lacking("primes of Diffie-Hellman", "crypto.createDiffieHellman makes no primes in a nano space; use crypto.getDiffieHellman('modp14')");
    if (typeof prime === "string") return new DiffieHellman(ab.bytesOf(prime, e).slice(), typeof generator === "number" ? new Uint8Array([generator]) : bytes(generator, ge));
    const g = e === undefined ? 2 : e;
    return new DiffieHellman(bytes(prime).slice(), typeof g === "number" ? new Uint8Array([g]) : bytes(g, generator === 2 ? undefined : generator));
  };
  const compressed = (point) => { const half = (point.length - 1) / 2; const b = new Uint8Array(1 + half); b[0] = 2 + (point.at(-1) & 1); b.set(point.subarray(1, 1 + half), 1); return b; };
  class ECDH {
    constructor(curve) {
      if (typeof curve !== "string") throw ab.argument("curve", "of type string", curve);
      if (curve === "secp256k1") throw ab.lacking("the curve secp256k1", "the curve secp256k1 is not available in a nano space; it has prime256v1, secp384r1 and secp521r1");
      inner.set(this, { curve, der: null });
      if (!ECDH.curves.includes(curve)) throw bad("ERR_CRYPTO_INVALID_CURVE", "Invalid EC curve name");
    }
    static curves = ["prime256v1", "secp224r1", "secp384r1", "secp521r1"];
    generateKeys(e, format) { const k = inner.get(this); k.der = call("make", { kind: "ec", curve: k.curve }); return this.getPublicKey(e, format); }
    getPublicKey(e, format) {
      const { der } = inner.get(this);
      if (!der) throw bad("ERR_CRYPTO_ECDH_INVALID_PUBLIC_KEY", "Failed to get ECDH public key", Error);
      const point = call("bytes", false, der);
      return shown(format === "compressed" ? compressed(point) : point, e);
    }
    getPrivateKey(e) { const { der } = inner.get(this); if (!der) throw new Error("Failed to get ECDH private key"); return shown(call("bytes", true, der), e); }
    setPrivateKey(b, e) {
      const k = inner.get(this);
      try { k.der = call("raw", { curve: k.curve, private: true }, bytes(b, e)); } catch { throw bad("ERR_CRYPTO_INVALID_KEYTYPE", "Private key is not valid for specified curve.", Error); }
    }
    computeSecret(other, from, to) {
      const k = inner.get(this);
      let theirs;
      try { theirs = call("raw", { curve: k.curve, private: false }, bytes(other, typeof other === "string" ? from : undefined)); } catch { throw bad("ERR_CRYPTO_ECDH_INVALID_PUBLIC_KEY", "Public key is not valid for specified curve", Error); }
      return shown(call("agree", null, k.der, theirs), typeof other === "string" ? to : to ?? from);
    }
  }
  const diffieHellman = ({ privateKey, publicKey }) => ab.wrap(call("agree", null, inner.get(given(privateKey, "private")).der, inner.get(given(publicKey)).der));

  // The web's.
  const raise = (name, message) => { throw new DOMException(message, name); };
  const hashName = (h) => {
    const n = String(typeof h === "string" ? h : h?.name).toUpperCase();
    return ["SHA-1", "SHA-256", "SHA-384", "SHA-512", "SHA3-256", "SHA3-384", "SHA3-512"].includes(n) ? n : raise("NotSupportedError", "Unrecognized algorithm name");
  };
  const algorithms = ["AES-GCM", "AES-CBC", "AES-CTR", "AES-KW", "HMAC", "RSA-OAEP", "RSASSA-PKCS1-v1_5", "RSA-PSS", "ECDSA", "ECDH", "Ed25519", "X25519", "PBKDF2", "HKDF"];
  const named = (a) => {
    const o = typeof a === "string" ? { name: a } : a;
    const name = algorithms.find((n) => n.toLowerCase() === String(o?.name).toLowerCase()) ?? raise("NotSupportedError", "Unrecognized algorithm name");
    return { ...o, name };
  };
  const usable = {
    "AES-GCM": ["encrypt", "decrypt", "wrapKey", "unwrapKey"], "AES-CBC": ["encrypt", "decrypt", "wrapKey", "unwrapKey"], "AES-CTR": ["encrypt", "decrypt", "wrapKey", "unwrapKey"], "AES-KW": ["wrapKey", "unwrapKey"], HMAC: ["sign", "verify"],
    "RSA-OAEP": { public: ["encrypt", "wrapKey"], private: ["decrypt", "unwrapKey"] }, "RSASSA-PKCS1-v1_5": { public: ["verify"], private: ["sign"] }, "RSA-PSS": { public: ["verify"], private: ["sign"] }, ECDSA: { public: ["verify"], private: ["sign"] },
    Ed25519: { public: ["verify"], private: ["sign"] }, ECDH: { public: [], private: ["deriveKey", "deriveBits"] }, X25519: { public: [], private: ["deriveKey", "deriveBits"] }, PBKDF2: ["deriveKey", "deriveBits"], HKDF: ["deriveKey", "deriveBits"],
  };
  const order = ["encrypt", "decrypt", "sign", "verify", "deriveKey", "deriveBits", "wrapKey", "unwrapKey"];
  const ordered = (usages, allowed, what) => {
    for (const u of usages) if (!allowed.includes(u)) raise("SyntaxError", `Unsupported key usage for ${what} key`);
    return order.filter((u) => usages.includes(u));
  };
  class CryptoKey {
    constructor(token, held) { if (token !== inner) throw bad("ERR_ILLEGAL_CONSTRUCTOR", "Illegal constructor"); inner.set(this, held); }
    get type() { return inner.get(this).type; }
    get extractable() { return inner.get(this).extractable; }
    get algorithm() { return inner.get(this).algorithm; }
    get usages() { return inner.get(this).usages; }
    [Symbol.for("nodejs.util.inspect.custom")](depth, o) {
      if (depth < 0) return this;
      return `CryptoKey ${ab.inspect({ type: this.type, extractable: this.extractable, algorithm: this.algorithm, usages: this.usages }, { ...o, depth: o.depth === null ? null : o.depth - 1 })}`;
    }
    get [Symbol.toStringTag]() { return "CryptoKey"; }
  }
  const held = (k) => (k instanceof CryptoKey ? inner.get(k) : (() => { throw bad("ERR_INVALID_ARG_TYPE", "The \"key\" argument must be an instance of CryptoKey."); })());
  const secretKey = (secret, algorithm, extractable, usages) => new CryptoKey(inner, { type: "secret", secret, algorithm, extractable, usages });
  const importSecret = (secret, a, extractable, usages) => {
    const allowed = usable[a.name];
    if (!Array.isArray(allowed)) raise("NotSupportedError", `Unable to import ${a.name} key with format raw`);
    const list = ordered(usages, allowed, a.name);
    if (list.length === 0) raise("SyntaxError", "Usages cannot be empty when importing a secret key.");
    if (a.name.startsWith("AES")) { if (![16, 24, 32].includes(secret.length)) raise("DataError", "Invalid key length"); return secretKey(secret, { name: a.name, length: secret.length * 8 }, extractable, list); }
    if (a.name === "HMAC") { if (secret.length === 0) raise("DataError", "Zero-length key is not supported"); return secretKey(secret, { name: "HMAC", length: secret.length * 8, hash: { name: hashName(a.hash) } }, extractable, list); }
    if (extractable) raise("SyntaxError", `${a.name} keys are not extractable`);
    return secretKey(secret, { name: a.name }, false, list);
  };
  const curveNames = { prime256v1: "P-256", secp384r1: "P-384", secp521r1: "P-521" };
  const algorithmOf = (d, a) => {
    const rsa = a.name.startsWith("RSA");
    const kind = rsa ? "rsa" : a.name.startsWith("EC") ? "ec" : a.name.toLowerCase();
    if (d.kind !== kind) raise("DataError", "Invalid key type");
    if (rsa) { const e = []; for (let n = d.exponent; n > 0; n = Math.floor(n / 256)) e.unshift(n % 256); return { name: a.name, modulusLength: d.bits, publicExponent: new Uint8Array(e), hash: { name: hashName(a.hash) } }; }
    if (kind === "ec") { if (a.namedCurve !== curveNames[d.curve]) raise("DataError", "Named curve mismatch"); return { name: a.name, namedCurve: a.namedCurve }; }
    return { name: a.name };
  };
  const importDER = (der, a, extractable, usages) => {
    const d = json(call("details", null, der));
    const type = d.private ? "private" : "public";
    const list = ordered(usages, usable[a.name][type] ?? [], a.name);
    if (type === "private" && list.length === 0) raise("SyntaxError", "Usages cannot be empty when importing a private key.");
    return new CryptoKey(inner, { type, der, algorithm: algorithmOf(d, a), extractable: type === "public" ? Boolean(extractable) : Boolean(extractable), usages: list });
  };
  const may = (k, usage, a) => {
    const h = held(k);
    if (h.algorithm.name !== a.name) raise("InvalidAccessError", "Key algorithm mismatch");
    if (!h.usages.includes(usage)) raise("InvalidAccessError", `Unable to use this key to ${{ deriveBits: "derive bits", deriveKey: "derive a key", wrapKey: "wrap a key", unwrapKey: "unwrap a key" }[usage] ?? usage}`);
    return h;
  };
  const failing = (f) => { try { return f(); } catch (e) { if (e instanceof DOMException || e instanceof TypeError) throw e; return raise("OperationError", "The operation failed for an operation-specific reason"); } };
  const copied = (v) => bytes(v).slice();
  const joined = (a, b) => { const c = new Uint8Array(a.length + b.length); c.set(a); c.set(b, a.length); return c; };
  const aes = (encrypts, a, h, data) => failing(() => {
    const key = h.secret;
    if (a.name === "AES-GCM") {
      const size = (a.tagLength ?? 128) / 8;
      const extra = a.additionalData ? copied(a.additionalData) : empty;
      const iv = copied(a.iv);
      if (encrypts) { const all = host.gcm(1, ...ab.view(key), ...ab.view(iv), ...ab.view(extra), ...ab.view(data)); return buffer(all.slice(0, data.length + size)); }
      if (data.length < size) return raise("OperationError", "The operation failed for an operation-specific reason");
      const text = data.slice(0, data.length - size);
      const all = host.gcm(0, ...ab.view(key), ...ab.view(iv), ...ab.view(extra), ...ab.view(text));
      if (Buffer.compare(all.subarray(text.length, text.length + size), data.subarray(text.length)) !== 0) throw new Error("tag");
      return buffer(all.slice(0, text.length));
    }
    if (a.name === "AES-CTR") return buffer(host.cipher("ctr", 1, ...ab.view(key), ...ab.view(copied(a.counter)), 0, ...ab.view(data)));
    const { createCipheriv, createDecipheriv } = ab.builtin("crypto");
    const c = (encrypts ? createCipheriv : createDecipheriv)(`aes-${key.length * 8}-cbc`, key, copied(a.iv));
    return buffer(Buffer.concat([c.update(data), c.final()]));
  });
  const cipher = (way) => (algorithm, key, data) => {
    const a = named(algorithm);
    const h = may(key, way, a);
    return encipher(way === "encrypt", a, h, copied(data));
  };
  const encipher = (encrypts, a, h, data) => {
    if (a.name === "RSA-OAEP") {
      if (h.type !== (encrypts ? "public" : "private")) raise("InvalidAccessError", "The requested operation is not valid for the provided key");
      return failing(() => buffer(call(encrypts ? "encrypt" : "decrypt", { padding: 4, hash: h.algorithm.hash.name, label: a.label ? ab.wrap(copied(a.label)).toString("base64") : undefined }, h.der, data)));
    }
    return aes(encrypts, a, h, data);
  };
  const signing = (a, h) => ({ hash: a.name === "ECDSA" ? hashName(a.hash) : h.algorithm.hash?.name ?? "", plain: true, padding: a.name === "RSA-PSS" ? 6 : 0, ...(a.name === "RSA-PSS" ? { salt: a.saltLength } : {}) });
  const derive = (a, h, length) => {
    if (a.name === "PBKDF2") {
      if (length === null || length === undefined || length % 8 !== 0) raise("OperationError", "length must be a multiple of 8");
      return failing(() => buffer(host.pbkdf2(hashName(a.hash), ...ab.view(h.secret), ...ab.view(copied(a.salt)), a.iterations, length / 8)));
    }
    if (a.name === "HKDF") {
      if (length === null || length === undefined || length % 8 !== 0) raise("OperationError", "length must be a multiple of 8");
      return failing(() => buffer(host.hkdf(hashName(a.hash), ...ab.view(h.secret), ...ab.view(copied(a.salt)), ...ab.view(copied(a.info)), length / 8)));
    }
    const all = failing(() => call("agree", null, h.der, held(a.public).der));
    if (length === null || length === undefined) return buffer(all);
    if (length > all.length * 8) raise("OperationError", "derived bit length is too small");
    const b = all.slice(0, Math.ceil(length / 8));
    if (length % 8 !== 0) b[b.length - 1] &= 0xff << (8 - (length % 8));
    return buffer(b);
  };
  const lengthOf = (a) => (a.name.startsWith("AES") ? a.length : a.name === "HMAC" ? a.length ?? { "SHA-384": 1024, "SHA-512": 1024 }[hashName(a.hash)] ?? 512 : null);
  // wrapped is AES-KW by RFC 3394.
  const wrapped = (key, data, back) => {
    const block = (b, e) => host.cipher("ecb", e ? 1 : 0, ...ab.view(key), ...ab.view(empty), 0, ...ab.view(b));
    if (data.length % 8 !== 0 || data.length < 16 + (back ? 8 : 0)) raise("OperationError", "The operation failed for an operation-specific reason");
    const n = data.length / 8 - (back ? 1 : 0);
    const r = Array.from({ length: n }, (_, i) => data.slice(8 * (i + (back ? 1 : 0)), 8 * (i + (back ? 2 : 1))));
    let a = back ? data.slice(0, 8) : new Uint8Array(8).fill(0xa6);
    const mix = (t) => { for (let i = 7; t > 0; i--) { a[i] ^= t & 255; t >>>= 8; } };
    if (!back) for (let j = 0; j < 6; j++) for (let i = 0; i < n; i++) { const b = block(joined(a, r[i]), true); a = b.slice(0, 8); mix(n * j + i + 1); r[i] = b.slice(8); }
    else {
      for (let j = 5; j >= 0; j--) for (let i = n - 1; i >= 0; i--) { mix(n * j + i + 1); const b = block(joined(a, r[i]), false); a = b.slice(0, 8); r[i] = b.slice(8); }
      if (a.some((x) => x !== 0xa6)) raise("OperationError", "The operation failed for an operation-specific reason");
    }
    return r.reduce(joined, back ? empty : a);
  };
  const methods = {
    async digest(a, data) { return buffer(host.hash(hashName(a), ...ab.view(copied(data)))); },
    async generateKey(algorithm, extractable, usages) {
      const a = named(algorithm);
      const allowed = usable[a.name];
      if (Array.isArray(allowed)) {
        if (a.name === "PBKDF2" || a.name === "HKDF") raise("NotSupportedError", "Unrecognized algorithm name");
        const list = ordered(usages, allowed, a.name);
        if (list.length === 0) raise("SyntaxError", "Usages cannot be empty when creating a key.");
        const n = lengthOf(a);
        if (a.name.startsWith("AES") && ![128, 192, 256].includes(n)) raise("OperationError", "Invalid key length");
        const secret = new Uint8Array(Math.ceil(n / 8));
        host.entropy(secret.buffer, 0, secret.length);
        return secretKey(secret, a.name === "HMAC" ? { name: "HMAC", length: n, hash: { name: hashName(a.hash) } } : { name: a.name, length: n }, Boolean(extractable), list);
      }
      ordered(usages, [...allowed.public, ...allowed.private], a.name);
      const list = usages.filter((u) => allowed.private.includes(u));
      if (list.length === 0) raise("SyntaxError", "Usages cannot be empty when creating a key.");
      const want = a.name.startsWith("RSA") ? { kind: "rsa", bits: a.modulusLength, exponent: bytes(a.publicExponent).reduce((n, b) => n * 256 + b, 0) } : a.name.startsWith("EC") ? { kind: "ec", curve: a.namedCurve } : { kind: a.name.toLowerCase() };
      if (want.kind === "ec" && !["P-256", "P-384", "P-521"].includes(a.namedCurve)) raise("NotSupportedError", "Unrecognized namedCurve");
      const der = failing(() => call("make", want));
      return { publicKey: importDER(call("public", null, der), a, true, usages.filter((u) => allowed.public.includes(u))), privateKey: importDER(der, a, extractable, list) };
    },
    async importKey(format, data, algorithm, extractable, usages) {
      const a = named(algorithm);
      if (Array.isArray(usable[a.name])) {
        if (format === "raw" || format === "raw-secret") return importSecret(copied(data), a, extractable, usages);
        if (format === "jwk") {
          if (data.kty !== "oct") raise("DataError", "Invalid JWK \"kty\" Parameter");
          return importSecret(ab.bytesOf(data.k, "base64url").slice(), a, extractable, usages);
        }
        return raise("NotSupportedError", `Unable to import ${a.name} key with format ${format}`);
      }
      let der;
      try {
        if (format === "jwk") der = call("jwk", null, bytes(JSON.stringify(data)));
        else if (format === "raw" || format === "raw-public") der = call("raw", { curve: a.namedCurve ?? a.name, private: false }, copied(data));
        else if (format === "spki" || format === "pkcs8") der = call("read", { format: "der", type: format }, copied(data));
        else throw bad("ERR_INVALID_ARG_VALUE", `The argument 'format' is invalid. Received ${ab.inspect(format)}`);
      } catch (e) { if (e instanceof TypeError && e.code === "ERR_INVALID_ARG_VALUE") throw e; raise("DataError", "Invalid keyData"); }
      return importDER(der, a, extractable, usages);
    },
    async exportKey(format, key) {
      const h = held(key);
      if (!h.extractable) raise("InvalidAccessError", "key is not extractable");
      const { name } = h.algorithm;
      if (format === "jwk") {
        const parts = h.secret ? { kty: "oct", k: ab.wrap(h.secret).toString("base64url") } : json(call("parts", null, h.der));
        const sha = h.algorithm.hash?.name.slice(4);
        const alg = { "AES-GCM": `A${h.algorithm.length}GCM`, "AES-CBC": `A${h.algorithm.length}CBC`, "AES-CTR": `A${h.algorithm.length}CTR`, "AES-KW": `A${h.algorithm.length}KW`, HMAC: `HS${sha}`, "RSA-OAEP": sha === "1" ? "RSA-OAEP" : `RSA-OAEP-${sha}`, "RSASSA-PKCS1-v1_5": `RS${sha}`, "RSA-PSS": `PS${sha}`, Ed25519: "EdDSA" }[name];
        return { key_ops: h.usages.slice(), ext: true, ...(name === "Ed25519" ? { alg: "Ed25519" } : alg ? { alg } : {}), ...parts };
      }
      if (h.secret) return format === "raw" || format === "raw-secret" ? buffer(h.secret.slice()) : raise("NotSupportedError", `Unable to export a ${name} secret key using ${format} format`);
      if (format === "raw" || format === "raw-public") return h.type === "public" && h.algorithm.modulusLength === undefined ? buffer(call("bytes", false, h.der)) : raise(h.type === "public" ? "NotSupportedError" : "InvalidAccessError", `Unable to export a ${name} ${h.type} key using ${format} format`);
      if ((format === "spki") !== (h.type === "public")) raise("InvalidAccessError", `Unable to export a ${name} ${h.type} key using ${format} format`);
      return buffer(h.der.slice());
    },
    async encrypt(a, k, data) { return cipher("encrypt")(a, k, data); },
    async decrypt(a, k, data) { return cipher("decrypt")(a, k, data); },
    async sign(algorithm, key, data) {
      const a = named(algorithm);
      const h = may(key, "sign", a);
      if (a.name === "HMAC") return buffer(host.hmac(h.algorithm.hash.name, ...ab.view(h.secret), ...ab.view(copied(data))));
      return failing(() => buffer(call("sign", signing(a, h), h.der, copied(data))));
    },
    async verify(algorithm, key, signature, data) {
      const a = named(algorithm);
      const h = may(key, "verify", a);
      if (a.name === "HMAC") return Buffer.compare(host.hmac(h.algorithm.hash.name, ...ab.view(h.secret), ...ab.view(copied(data))), copied(signature)) === 0;
      return failing(() => call("verify", signing(a, h), h.der, copied(data), copied(signature)).length > 0);
    },
    async deriveBits(algorithm, key, length) { const a = named(algorithm); return derive(a, may(key, "deriveBits", a), length); },
    async deriveKey(algorithm, key, into, extractable, usages) {
      const a = named(algorithm);
      const b = named(into);
      return importSecret(new Uint8Array(derive(a, may(key, "deriveKey", a), lengthOf(b))), b, extractable, usages);
    },
    async wrapKey(format, key, by, algorithm) {
      const a = named(algorithm);
      const h = may(by, "wrapKey", a);
      let data = await methods.exportKey(format, key);
      data = format === "jwk" ? bytes(JSON.stringify(data)) : new Uint8Array(data);
      return a.name === "AES-KW" ? buffer(wrapped(h.secret, data, false)) : encipher(true, a, h, data);
    },
    async unwrapKey(format, data, by, algorithm, into, extractable, usages) {
      const a = named(algorithm);
      const h = may(by, "unwrapKey", a);
      const text = a.name === "AES-KW" ? wrapped(h.secret, copied(data), true) : new Uint8Array(encipher(false, a, h, copied(data)));
      return methods.importKey(format, format === "jwk" ? json(text) : text, into, extractable, usages);
    },
  };
  class SubtleCrypto { constructor() { throw bad("ERR_ILLEGAL_CONSTRUCTOR", "Illegal constructor"); } get [Symbol.toStringTag]() { return "SubtleCrypto"; } }
  for (const [name, f] of Object.entries(methods)) Object.defineProperty(SubtleCrypto.prototype, name, { value: f, writable: true, configurable: true, enumerable: true });
  const subtle = Object.create(SubtleCrypto.prototype);
  Object.defineProperty(globalThis, "CryptoKey", { value: CryptoKey, writable: true, configurable: true });
  Object.defineProperty(globalThis, "SubtleCrypto", { value: SubtleCrypto, writable: true, configurable: true });
  ab.subtle = subtle;
  // keyed adds what needs keys to node:crypto.
  ab.keyed = (c, later) => {
    const { Sign, Verify } = makeSigns();
    const pair = later(generateKeyPairSync, (p) => [p.publicKey, p.privateKey]);
    Object.defineProperty(pair, Symbol.for("nodejs.util.promisify.custom"), { value: async (type, o) => generateKeyPairSync(type, o) });
    Object.assign(c, {
      KeyObject, createPrivateKey, createPublicKey, createSecretKey, generateKeyPairSync, generateKeyPair: pair, generateKeySync, generateKey: later(generateKeySync),
      Sign, Verify, createSign: (a, o) => new Sign(a, o), createVerify: (a, o) => new Verify(a, o), sign: later(sign), verify: later(verify),
      publicEncrypt: crypt("encrypt"), privateDecrypt: crypt("decrypt", "private"), privateEncrypt: crypt("encrypt", "private", true), publicDecrypt: crypt("decrypt", undefined, true),
      DiffieHellman, createDiffieHellman, getDiffieHellman, createDiffieHellmanGroup: getDiffieHellman, ECDH, createECDH: (curve) => new ECDH(curve), diffieHellman: later(diffieHellman), getCurves: () => [...ECDH.curves],
    });
    Object.assign(c.constants, { RSA_PKCS1_PADDING: 1, RSA_NO_PADDING: 3, RSA_PKCS1_OAEP_PADDING: 4, RSA_X931_PADDING: 5, RSA_PKCS1_PSS_PADDING: 6, RSA_PSS_SALTLEN_DIGEST: -1, RSA_PSS_SALTLEN_MAX_SIGN: -2, RSA_PSS_SALTLEN_AUTO: -2 });
  };
})();
