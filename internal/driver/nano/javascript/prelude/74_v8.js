// v8: values as bytes, in version 15 of V8's format, and what the engine says of its memory.
(() => {
  const ab = __agentbox;
  const failure = (text) => new Error(text);
  const views = () => [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array, Float64Array, DataView, Buffer, BigInt64Array, BigUint64Array, globalThis.Float16Array];
  const errors = { EvalError: "E", RangeError: "R", ReferenceError: "F", SyntaxError: "S", TypeError: "T", URIError: "U" };
  const flags = "gimsuy";
  const flagBits = { g: 1, i: 2, m: 4, y: 8, u: 16, s: 32, d: 128, v: 256 };
  const isIndex = (k) => typeof k === "string" && /^(0|[1-9]\d*)$/.test(k) && Number(k) < 2 ** 32 - 1;

  class Serializer {
    #b = new Uint8Array(256);
    #n = 0;
    #seen = new Map();
    #room(n) { if (this.#n + n > this.#b.length) { const b = new Uint8Array(Math.max(2 * this.#b.length, this.#n + n)); b.set(this.#b); this.#b = b; } }
    #byte(x) { this.#room(1); this.#b[this.#n++] = x; }
    #tag(c) { this.#byte(c.charCodeAt(0)); }
    #varint(n) { do { const low = n % 128; n = Math.floor(n / 128); this.#byte(n > 0 ? low | 128 : low); } while (n > 0); }
    #double(n) { this.#room(8); new DataView(this.#b.buffer).setFloat64(this.#n, n, true); this.#n += 8; }
    #string(s) {
      if (/^[\x00-\xff]*$/.test(s)) { this.#tag('"'); this.#varint(s.length); this.writeRawBytes(Buffer.from(s, "latin1")); return; }
      let needed = 1;
      for (let n = 2 * s.length; n >= 128; n = Math.floor(n / 128)) needed++;
      if ((this.#n + 1 + needed) & 1) this.#byte(0);
      this.#tag("c");
      this.#varint(2 * s.length);
      this.writeRawBytes(Buffer.from(s, "utf16le"));
    }
    #bigint(n) {
      const negative = n < 0n;
      const bytes = [];
      for (let rest = negative ? -n : n; rest > 0n; rest >>= 8n) bytes.push(Number(rest & 255n));
      while (bytes.length % 8 !== 0) bytes.push(0);
      this.#varint(bytes.length * 2 + (negative ? 1 : 0));
      this.writeRawBytes(Uint8Array.from(bytes));
    }
    #key(k) { if (isIndex(k)) this.#number(Number(k)); else this.#string(k); }
    #number(n) {
      if (Number.isInteger(n) && n >= -(2 ** 31) && n < 2 ** 31 && !Object.is(n, -0)) { this.#tag("I"); this.#varint(n >= 0 ? 2 * n : -2 * n - 1); } else { this.#tag("N"); this.#double(n); }
    }
    writeHeader() { this.#byte(0xff); this.#byte(15); }
    writeUint32(n) { this.#varint(n >>> 0); }
    writeUint64(high, low) { this.#varint(high * 2 ** 32 + low); }
    writeDouble(n) { this.#double(n); }
    writeRawBytes(b) { this.#room(b.byteLength); this.#b.set(new Uint8Array(...ab.view(b)), this.#n); this.#n += b.byteLength; }
    releaseBuffer() { const b = Buffer.from(this.#b.slice(0, this.#n)); this.#n = 0; return b; }
    transferArrayBuffer() {}
    _setTreatArrayBufferViewsAsHostObjects() {}
    writeValue(v) {
      switch (typeof v) {
        case "undefined": this.#tag("_"); return true;
        case "boolean": this.#tag(v ? "T" : "F"); return true;
        case "number": this.#number(v); return true;
        case "bigint": this.#tag("Z"); this.#bigint(v); return true;
        case "string": this.#string(v); return true;
        case "symbol": case "function": throw failure(`${typeof v === "symbol" ? String(v) : Function.prototype.toString.call(v)} could not be cloned.`);
      }
      if (v === null) { this.#tag("0"); return true; }
      const known = this.#seen.get(v);
      if (known !== undefined) { this.#tag("^"); this.#varint(known); return true; }
      this.#seen.set(v, this.#seen.size);
      this.#object(v);
      return true;
    }
    #properties(v, keys) { for (const k of keys) { this.#key(k); this.writeValue(v[k]); } return keys.length; }
    #object(v) {
      if (ArrayBuffer.isView(v)) {
        this.#tag("\\");
        if (this._writeHostObject) this._writeHostObject(v); else throw failure("#<Object> could not be cloned.");
      } else if (v instanceof ArrayBuffer) { this.#tag("B"); this.#varint(v.byteLength); this.writeRawBytes(new Uint8Array(v)); } else if (v instanceof Date) { this.#tag("D"); this.#double(v.getTime()); } else if (v instanceof RegExp) {
        this.#tag("R");
        this.#string(v.source);
        let bits = 0;
        for (const f of v.flags) bits |= flagBits[f] ?? 0;
        this.#varint(bits);
      } else if (v instanceof Map) {
        this.#tag(";");
        const all = [...v];
        for (const [k, x] of all) { this.writeValue(k); this.writeValue(x); }
        this.#tag(":");
        this.#varint(2 * all.length);
      } else if (v instanceof Set) {
        this.#tag("'");
        const all = [...v];
        for (const x of all) this.writeValue(x);
        this.#tag(",");
        this.#varint(all.length);
      } else if (v instanceof Boolean) this.#tag(v.valueOf() ? "y" : "x");
      else if (v instanceof Number) { this.#tag("n"); this.#double(v.valueOf()); } else if (v instanceof BigInt) { this.#tag("z"); this.#bigint(v.valueOf()); } else if (v instanceof String) { this.#tag("s"); this.#string(v.valueOf()); } else if (v instanceof Error) {
        this.#tag("r");
        if (errors[v.name]) this.#tag(errors[v.name]);
        if (Object.hasOwn(v, "message")) { this.#tag("m"); this.#string(String(v.message)); }
        if (Object.hasOwn(v, "cause")) { this.#tag("c"); this.writeValue(v.cause); }
        if (typeof v.stack === "string") { this.#tag("s"); this.#string(v.stack); }
        this.#tag(".");
      } else if (v instanceof Promise || v instanceof WeakMap || v instanceof WeakSet || v instanceof WeakRef) throw failure(`#<${v.constructor.name}> could not be cloned.`);
      else if (Array.isArray(v)) this.#array(v);
      else {
        this.#tag("o");
        const n = this.#properties(v, Object.keys(v));
        this.#tag("{");
        this.#varint(n);
      }
    }
    #array(v) {
      const { length } = v;
      const others = Object.keys(v).filter((k) => !isIndex(k));
      const dense = Object.keys(v).length - others.length === length;
      if (dense) {
        this.#tag("A");
        this.#varint(length);
        for (let i = 0; i < length; i++) this.writeValue(v[i]);
        const n = this.#properties(v, others);
        this.#tag("$");
        this.#varint(n);
      } else {
        this.#tag("a");
        this.#varint(length);
        const n = this.#properties(v, Object.keys(v));
        this.#tag("@");
        this.#varint(n);
      }
      this.#varint(length);
    }
  }
  class DefaultSerializer extends Serializer {
    _writeHostObject(v) {
      const all = views();
      const i = Buffer.isBuffer(v) ? 10 : all.findIndex((T, n) => n !== 10 && T && v instanceof T);
      this.writeUint32(i);
      this.writeUint32(v.byteLength);
      this.writeRawBytes(v);
    }
  }
  class Deserializer {
    #at = 0;
    #objects = [];
    constructor(b) {
      if (!ArrayBuffer.isView(b)) throw ab.error(TypeError, "ERR_INVALID_ARG_TYPE", "buffer must be a TypedArray or a DataView");
      this.buffer = b;
      Object.defineProperty(this, "bytes", { value: new Uint8Array(...ab.view(b)) });
    }
    #byte() { if (this.#at >= this.bytes.length) throw failure("Unable to deserialize cloned data."); return this.bytes[this.#at++]; }
    #varint() { let n = 0; for (let unit = 1; ; unit *= 128) { const x = this.#byte(); n += (x & 127) * unit; if (x < 128) return n; } }
    #double() { const b = this.#raw(8); return new DataView(b.buffer, b.byteOffset, 8).getFloat64(0, true); }
    #raw(n) { if (this.#at + n > this.bytes.length) throw failure("Unable to deserialize cloned data."); this.#at += n; return this.bytes.subarray(this.#at - n, this.#at); }
    #tag() { let x; do x = this.#byte(); while (x === 0); return String.fromCharCode(x); }
    #peek() { let i = this.#at; while (this.bytes[i] === 0) i++; return String.fromCharCode(this.bytes[i]); }
    readHeader() {
      if (this.bytes[this.#at] === 0xff) { this.#at++; if (this.#varint() > 15) throw failure("Unable to deserialize cloned data due to invalid or unsupported version."); return true; }
      throw failure("Unable to deserialize cloned data due to invalid or unsupported version.");
    }
    readUint32() { return this.#varint(); }
    readUint64() { const n = this.#varint(); return [Math.floor(n / 2 ** 32), n % 2 ** 32]; }
    readDouble() { return this.#double(); }
    _readRawBytes(n) { this.#raw(n); return this.#at - n; }
    readRawBytes(n) { return Buffer.from(this.#raw(n)); }
    getWireFormatVersion() { return 15; }
    transferArrayBuffer() {}
    #bigint() {
      const bits = this.#varint();
      let n = 0n;
      for (const x of [...this.#raw(bits >> 1)].reverse()) n = (n << 8n) | BigInt(x);
      return bits & 1 ? -n : n;
    }
    #string(tag = this.#tag()) {
      const b = this.#raw(this.#varint());
      return Buffer.from(b).toString(tag === '"' ? "latin1" : tag === "c" ? "utf16le" : "utf8");
    }
    // #filled reads properties up to a tag.
    #filled(o, end) { while (this.#peek() !== end) { const k = this.readValue(); o[k] = this.readValue(); } this.#tag(); this.#varint(); return o; }
    #kept(v) { this.#objects.push(v); return v; }
    readValue() {
      const tag = this.#tag();
      switch (tag) {
        case "_": return undefined;
        case "0": return null;
        case "T": return true;
        case "F": return false;
        case "I": { const n = this.#varint(); return n % 2 === 0 ? n / 2 : -(n + 1) / 2; }
        case "U": return this.#varint();
        case "N": return this.#double();
        case "Z": return this.#bigint();
        case '"': case "c": case "S": return this.#string(tag);
        case "^": { const i = this.#varint(); if (i >= this.#objects.length) throw failure("Unable to deserialize cloned data."); return this.#objects[i]; }
        case "o": return this.#filled(this.#kept({}), "{");
        case "A": {
          const n = this.#varint();
          const a = this.#kept(new Array(n));
          for (let i = 0; i < n; i++) if (this.#peek() === "-") this.#tag(); else a[i] = this.readValue();
          this.#filled(a, "$");
          this.#varint();
          return a;
        }
        case "a": { const a = this.#kept(new Array(this.#varint())); this.#filled(a, "@"); this.#varint(); return a; }
        case "D": return this.#kept(new Date(this.#double()));
        case "R": {
          const i = this.#objects.push(null) - 1;
          const source = this.#string();
          const bits = this.#varint();
          return (this.#objects[i] = new RegExp(source, [...flags, "d", "v"].filter((f) => bits & flagBits[f]).join("")));
        }
        case ";": { const m = this.#kept(new Map()); while (this.#peek() !== ":") { const k = this.readValue(); m.set(k, this.readValue()); } this.#tag(); this.#varint(); return m; }
        case "'": { const s = this.#kept(new Set()); while (this.#peek() !== ",") s.add(this.readValue()); this.#tag(); this.#varint(); return s; }
        case "y": return this.#kept(Object(true));
        case "x": return this.#kept(Object(false));
        case "n": return this.#kept(Object(this.#double()));
        case "z": return this.#kept(Object(this.#bigint()));
        case "s": { const i = this.#objects.push(null) - 1; return (this.#objects[i] = Object(this.#string())); }
        case "B": return this.#kept(this.#raw(this.#varint()).slice().buffer);
        case "r": return this.#error();
        case "\\": { const i = this.#objects.push(null) - 1; return (this.#objects[i] = this._readHostObject()); }
      }
      throw failure("Unable to deserialize cloned data.");
    }
    #error() {
      const i = this.#objects.push(null) - 1;
      let Type = Error;
      let message, stack, cause, caused = false;
      for (;;) {
        const t = this.#tag();
        if (t === ".") break;
        if (t === "m") message = this.#string();
        else if (t === "s") stack = this.#string();
        else if (t === "c") { caused = true; cause = this.readValue(); } else Type = globalThis[Object.keys(errors).find((n) => errors[n] === t)] ?? Error;
      }
      const e = new Type(message, caused ? { cause } : undefined);
      if (stack !== undefined) Object.defineProperty(e, "stack", { value: stack, writable: true, configurable: true });
      return (this.#objects[i] = e);
    }
    _readHostObject() { throw failure("Unable to deserialize cloned data."); }
  }
  class DefaultDeserializer extends Deserializer {
    _readHostObject() {
      const T = views()[this.readUint32()];
      const n = this.readUint32();
      const at = this.bytes.byteOffset + this._readRawBytes(n); // a view of what is read, where it may stand there
      const size = T.BYTES_PER_ELEMENT ?? 1;
      if (T === Buffer) return Buffer.from(this.bytes.buffer, at, n);
      return at % size === 0 ? new T(this.bytes.buffer, at, n / size) : new T(this.bytes.buffer.slice(at, at + n), 0, n / size);
    }
  }
  const statistics = { total_heap_size: 33554432, total_heap_size_executable: 262144, total_physical_size: 33554432, total_available_size: 268435456, used_heap_size: 16777216, heap_size_limit: 268435456, malloced_memory: 262144, peak_malloced_memory: 524288, does_zap_garbage: 0, number_of_native_contexts: 1, number_of_detached_contexts: 0, total_global_handles_size: 8192, used_global_handles_size: 2112, external_memory: 0 };
  ab.define("v8", () => {
    const refuse = (name) => ({ [name]() { throw ab.lacking("v8", `v8.${name} is not available in a nano space`); } }[name]);
    return {
      serialize(v) { const s = new DefaultSerializer(); s.writeHeader(); s.writeValue(v); return s.releaseBuffer(); },
      deserialize(b) {
        const d = new DefaultDeserializer(b instanceof ArrayBuffer ? new Uint8Array(b) : b);
        d.readHeader();
        return d.readValue();
      },
      Serializer, Deserializer, DefaultSerializer, DefaultDeserializer, getHeapStatistics: () => ({ ...statistics }), getHeapSpaceStatistics: () => [], getHeapCodeStatistics: () => ({ code_and_metadata_size: 0, bytecode_and_metadata_size: 0, external_script_source_size: 0, cpu_profiler_metadata_size: 0 }),
      setFlagsFromString() {}, cachedDataVersionTag: () => 1165837636, startupSnapshot: { isBuildingSnapshot: () => false }, promiseHooks: {}, writeHeapSnapshot: refuse("writeHeapSnapshot"), getHeapSnapshot: refuse("getHeapSnapshot"), takeCoverage() {}, stopCoverage() {},
    };
  });
})();
