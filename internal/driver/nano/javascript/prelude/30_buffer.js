// Buffer.
(() => {
  const ab = __agentbox;
  const host = ab.host;
  const names = { utf8: "utf8", "utf-8": "utf8", hex: "hex", base64: "base64", base64url: "base64url", latin1: "latin1", binary: "latin1", ascii: "ascii", utf16le: "utf16le", "utf-16le": "utf16le", ucs2: "utf16le", "ucs-2": "utf16le" };
  const encoding = (e) => {
    if (e === undefined || e === null) return "utf8";
    const n = names[String(e).toLowerCase()];
    if (!n) throw ab.error(TypeError, "ERR_UNKNOWN_ENCODING", `Unknown encoding: ${e}`);
    return n;
  };
  const bytesOf = (text, e) => {
    switch (encoding(e)) {
      case "utf8": return host.encode(text);
      case "base64": case "base64url": return host.unbase64(text);
      case "hex": {
        let n = 0;
        const b = new Uint8Array(text.length >> 1);
        for (; n < b.length; n++) {
          const v = parseInt(text.slice(2 * n, 2 * n + 2), 16);
          if (Number.isNaN(v) || !/^[0-9a-fA-F]{2}$/.test(text.slice(2 * n, 2 * n + 2))) break;
          b[n] = v;
        }
        return b.subarray(0, n);
      }
      case "utf16le": {
        const b = new Uint8Array(text.length * 2);
        for (let i = 0; i < text.length; i++) { const c = text.charCodeAt(i); b[2 * i] = c & 255; b[2 * i + 1] = c >> 8; }
        return b;
      }
    }
    const b = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) b[i] = text.charCodeAt(i) & 255;
    return b;
  };
  const range = (name, range, v) => ab.error(RangeError, "ERR_OUT_OF_RANGE", `The value of "${name}" is out of range. It must be ${range}. Received ${ab.inspect(v, { numericSeparator: true })}`);
  const sized = (n) => {
    if (typeof n !== "number") throw ab.error(TypeError, "ERR_INVALID_ARG_TYPE", `The "size" argument must be of type number. Received ${ab.received(n)}`);
    if (!(n >= 0 && n <= 2 ** 31)) throw range("size", ">= 0 && <= 9007199254740991", n);
    return n;
  };
  class Buffer extends Uint8Array {
    static from(v, a, b) {
      if (typeof v === "string") { const x = bytesOf(v, a); return wrap(x); }
      if (v instanceof ArrayBuffer || (globalThis.SharedArrayBuffer && v instanceof SharedArrayBuffer)) return new Buffer(v, a, b);
      if (ArrayBuffer.isView(v)) return wrap(Uint8Array.from(v));
      if (v && v.type === "Buffer" && Array.isArray(v.data)) return wrap(Uint8Array.from(v.data));
      if (v && typeof v === "object" && typeof v.valueOf === "function" && v.valueOf() !== v && v.valueOf() != null) return Buffer.from(v.valueOf(), a, b);
      if (v && typeof v === "object" && (Symbol.iterator in v || typeof v.length === "number")) return wrap(Uint8Array.from(Array.from(v), (x) => Number(x) & 255));
      throw ab.error(TypeError, "ERR_INVALID_ARG_TYPE", `The first argument must be of type string or an instance of Buffer, ArrayBuffer, or Array or an Array-like Object. Received ${ab.received(v)}`);
    }
    static of(...items) { return Buffer.from(items); }
    static alloc(n, fill, e) { const b = new Buffer(sized(n)); if (fill !== undefined && fill !== 0) b.fill(fill, e); return b; }
    static allocUnsafe(n) { return new Buffer(sized(n)); }
    static allocUnsafeSlow(n) { return new Buffer(sized(n)); }
    static isBuffer(b) { return b instanceof Buffer; }
    static isEncoding(e) { return typeof e === "string" && e.toLowerCase() in names; }
    static byteLength(v, e) { return typeof v === "string" ? bytesOf(v, e).length : v.byteLength; }
    static concat(list, total) {
      if (!Array.isArray(list)) throw ab.argument("list", "an instance of Array", list);
      if (list.length === 0) return Buffer.alloc(0);
      total ??= list.reduce((n, b) => n + b.length, 0);
      const out = Buffer.alloc(total);
      let at = 0;
      for (const b of list) {
        if (at >= total) break;
        const part = b.length > total - at ? b.subarray(0, total - at) : b;
        out.set(part, at);
        at += part.length;
      }
      return out;
    }
    static copyBytesFrom(v, from = 0, n = v.length - from) {
      if (!ArrayBuffer.isView(v) || v instanceof DataView) throw ab.argument("view", "an instance of TypedArray", v);
      return wrap(new Uint8Array(...ab.view(v.subarray(from, from + n))).slice());
    }
    static compare(a, b) {
      const n = Math.min(a.length, b.length);
      for (let i = 0; i < n; i++) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
      return Math.sign(a.length - b.length);
    }
    toString(e, from = 0, to = this.length) {
      from = Math.max(0, Math.trunc(from) || 0);
      to = Math.min(this.length, Math.trunc(to) || 0);
      if (to <= from) return "";
      const n = to - from;
      const b = new Uint8Array(this.buffer, this.byteOffset + from, n);
      switch (encoding(e)) {
        case "utf8": return host.decode(this.buffer, this.byteOffset + from, n, 0);
        case "base64": return host.base64(this.buffer, this.byteOffset + from, n, 0);
        case "base64url": return host.base64(this.buffer, this.byteOffset + from, n, 1);
        case "hex": { let s = ""; for (const x of b) s += (x < 16 ? "0" : "") + x.toString(16); return s; }
        case "utf16le": { let s = ""; for (let i = 0; i + 1 < n; i += 2) s += String.fromCharCode(b[i] | (b[i + 1] << 8)); return s; }
        case "ascii": { let s = ""; for (const x of b) s += String.fromCharCode(x & 127); return s; }
      }
      let s = "";
      for (let i = 0; i < n; i += 4096) s += String.fromCharCode(...b.subarray(i, i + 4096));
      return s;
    }
    toLocaleString(e, from, to) { return this.toString(e, from, to); }
    toJSON() { return { type: "Buffer", data: Array.from(this) }; }
    equals(b) { return Buffer.compare(this, b) === 0; }
    compare(b, from = 0, to = b.length, mine = 0, end = this.length) { return Buffer.compare(this.subarray(mine, end), b.subarray(from, to)); }
    write(text, at, n, e) {
      if (typeof at === "string") [e, at, n] = [at, 0, undefined];
      else if (typeof n === "string") [e, n] = [n, undefined];
      at ??= 0;
      let b = bytesOf(text, e);
      const room = Math.min(n ?? Infinity, this.length - at);
      if (b.length > room) { b = b.subarray(0, room); if (encoding(e) === "utf8") b = b.subarray(0, b.length - ab.incomplete(b)); }
      this.set(b, at);
      return b.length;
    }
    fill(v, from, to, e) {
      if (typeof from === "string") [e, from] = [from, undefined];
      if (typeof to === "string") [e, to] = [to, undefined];
      if (typeof v === "number") return super.fill(v & 255, from, to);
      const b = typeof v === "string" ? bytesOf(v, e) : v;
      if (b.length === 0) return super.fill(0, from, to);
      for (let i = from ?? 0, j = 0; i < (to ?? this.length); i++, j++) this[i] = b[j % b.length];
      return this;
    }
    subarray(from, to) { const s = super.subarray(from, to); return s instanceof Buffer ? s : wrap(s); }
    slice(from, to) { return this.subarray(from, to); }
    copy(into, at = 0, from = 0, to = this.length) {
      const part = Uint8Array.prototype.subarray.call(this, from, Math.min(to, from + into.length - at));
      into.set(part, at);
      return part.length;
    }
    indexOf(v, from = 0, e) {
      if (typeof from === "string") [e, from] = [from, 0];
      if (typeof v === "number") return super.indexOf(v & 255, from);
      const b = typeof v === "string" ? bytesOf(v, e) : v;
      if (from < 0) from = Math.max(0, this.length + from);
      for (let i = from; i + b.length <= this.length; i++) {
        let j = 0;
        while (j < b.length && this[i + j] === b[j]) j++;
        if (j === b.length) return i;
      }
      return -1;
    }
    lastIndexOf(v, from, e) {
      if (typeof v === "number") return super.lastIndexOf(v & 255, from ?? this.length);
      const b = typeof v === "string" ? bytesOf(v, e) : v;
      for (let i = Math.min(from ?? Infinity, this.length - b.length); i >= 0; i--) {
        let j = 0;
        while (j < b.length && this[i + j] === b[j]) j++;
        if (j === b.length) return i;
      }
      return -1;
    }
    includes(v, from, e) { return this.indexOf(v, from, e) >= 0; }
    swapped(size, bits) {
      if (this.length % size !== 0) throw ab.error(RangeError, "ERR_INVALID_BUFFER_SIZE", `Buffer size must be a multiple of ${bits}-bits`);
      for (let i = 0; i < this.length; i += size) Uint8Array.prototype.subarray.call(this, i, i + size).reverse();
      return this;
    }
    swap16() { return this.swapped(2, 16); }
    swap32() { return this.swapped(4, 32); }
    swap64() { return this.swapped(8, 64); }
    [Symbol.for("nodejs.util.inspect.custom")]() {
      let s = "";
      for (const b of Uint8Array.prototype.subarray.call(this, 0, 50)) s += ` ${b.toString(16).padStart(2, "0")}`;
      if (this.length > 50) s += ` ... ${this.length - 50} more byte${this.length > 51 ? "s" : ""}`;
      const more = Object.keys(this).filter((k) => !/^\d+$/.test(k)).map((k) => `${k}: ${ab.inspect(this[k])}`).join(", ");
      return `<Buffer${s === "" ? " " : s}${more === "" ? "" : `${s === "" ? "" : ","} ${more}`}>`;
    }
    get parent() { return this.buffer; }
    get offset() { return this.byteOffset; }
    readUIntBE(at, n) { let v = 0; for (let i = 0; i < n; i++) v = v * 256 + this[at + i]; return v; }
    readUIntLE(at, n) { let v = 0; for (let i = n - 1; i >= 0; i--) v = v * 256 + this[at + i]; return v; }
    readIntBE(at, n) { const v = this.readUIntBE(at, n); return v >= 2 ** (8 * n - 1) ? v - 2 ** (8 * n) : v; }
    readIntLE(at, n) { const v = this.readUIntLE(at, n); return v >= 2 ** (8 * n - 1) ? v - 2 ** (8 * n) : v; }
    writeUIntBE(v, at, n) { for (let i = n - 1; i >= 0; i--) { this[at + i] = v % 256; v = Math.floor(v / 256); } return at + n; }
    writeUIntLE(v, at, n) { for (let i = 0; i < n; i++) { this[at + i] = v % 256; v = Math.floor(v / 256); } return at + n; }
    writeIntBE(v, at, n) { return this.writeUIntBE(v < 0 ? v + 2 ** (8 * n) : v, at, n); }
    writeIntLE(v, at, n) { return this.writeUIntLE(v < 0 ? v + 2 ** (8 * n) : v, at, n); }
  }
  const wrap = (b) => new Buffer(b.buffer, b.byteOffset, b.byteLength);
  const kinds = [["Int8", 1], ["Uint8", 1], ["Int16", 2], ["Uint16", 2], ["Int32", 4], ["Uint32", 4], ["BigInt64", 8], ["BigUint64", 8], ["Float32", 4], ["Float64", 8]];
  for (const [kind, size] of kinds) {
    for (const order of size === 1 ? [""] : ["LE", "BE"]) {
      const shown = (kind === "Float32" ? "Float" : kind === "Float64" ? "Double" : kind) + order;
      const whole = (at, n) => {
        if (typeof at !== "number") throw ab.argument("offset", "number", at);
        if (!Number.isInteger(at)) throw range("offset", "an integer", at);
        if (n < size) throw ab.error(RangeError, "ERR_BUFFER_OUT_OF_BOUNDS", "Attempt to access memory outside buffer bounds");
      };
      const bits = 8 * size;
      const limits = /^U/.test(kind) ? [0, 2 ** bits - 1] : [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1];
      const get = function (at = 0) {
        whole(at, this.length);
        if (!(at >= 0 && at + size <= this.length)) throw range("offset", `>= 0 and <= ${this.length - size}`, at);
        return new DataView(this.buffer, this.byteOffset, this.length)[`get${kind}`](at, order === "LE");
      };
      const set = function (v, at = 0) {
        if (/int/i.test(kind) && size < 8) {
          v = +v;
          if (v > limits[1] || v < limits[0]) throw range("value", size < 4 ? `>= ${limits[0]} and <= ${limits[1]}` : /^U/.test(kind) ? `>= 0 and <= ${limits[1]}` : `>= ${limits[0]} and <= ${limits[1]}`, v);
        }
        whole(at, this.length);
        if (!(at >= 0 && at + size <= this.length)) throw range("offset", `>= 0 and <= ${this.length - size}`, at);
        new DataView(this.buffer, this.byteOffset, this.length)[`set${kind}`](at, v, order === "LE");
        return at + size;
      };
      for (const name of new Set([shown, shown.replace("Uint", "UInt")])) {
        Object.defineProperty(Buffer.prototype, `read${name}`, { value: get, writable: true, configurable: true });
        Object.defineProperty(Buffer.prototype, `write${name}`, { value: set, writable: true, configurable: true });
      }
    }
  }
  Buffer.poolSize = 8192;
  // Buffer may be called without new.
  const Callable = new Proxy(Buffer, { apply: (_, __, [v, a, b]) => (typeof v === "number" ? Buffer.alloc(v) : Buffer.from(v, a, b)) });
  Object.defineProperty(Buffer.prototype, "constructor", { value: Callable, writable: true, configurable: true });
  Object.defineProperty(globalThis, "Buffer", { value: Callable, writable: true, configurable: true });
  ab.bytesOf = (v, e) => (typeof v === "string" ? bytesOf(v, e) : new Uint8Array(...ab.view(v)));
  ab.encodingOf = encoding;
  ab.wrap = wrap;
  ab.define("buffer", () => ({
    Buffer: Callable, Blob, File, atob, btoa, constants: { MAX_LENGTH: 2 ** 31, MAX_STRING_LENGTH: 2 ** 29 - 24 }, kMaxLength: 2 ** 31, SlowBuffer: Callable, INSPECT_MAX_BYTES: 50,
    isAscii: (b) => new Uint8Array(...ab.view(b)).every((x) => x < 128),
    isUtf8: (b) => { const [x, o, n] = ab.view(b); try { host.decode(x, o, n, 1); return true; } catch { return false; } },
    transcode: (b, from, to) => Callable.from(/^(latin1|binary|ascii)$/.test(to) ? Callable.from(b).toString(from).replace(to === "ascii" ? /[^\0-\x7f]/gu : /[^\0-\xff]/gu, "?") : Callable.from(b).toString(from), to),
  }));
})();
