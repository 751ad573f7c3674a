// What browsers and Node have in common: events, URL, encodings, Blob, structuredClone.
(() => {
  const ab = __agentbox;
  const host = ab.host;
  const custom = Symbol.for("nodejs.util.inspect.custom");
  const global = (name, value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });

  if (!globalThis.DOMException) {
    global("DOMException", class DOMException extends Error {
      constructor(message = "", name = "Error") {
        super(message);
        Object.defineProperty(this, "name", { value: typeof name === "object" ? name.name ?? "Error" : name, configurable: true });
        if (typeof name === "object" && "cause" in name) this.cause = name.cause;
      }
      get code() { return { AbortError: 20, TimeoutError: 23, DataCloneError: 25, InvalidCharacterError: 5, NotSupportedError: 9, SyntaxError: 12, InvalidAccessError: 15, NotFoundError: 8, InvalidStateError: 11, IndexSizeError: 1, HierarchyRequestError: 3, QuotaExceededError: 22, NetworkError: 19, TypeMismatchError: 17, SecurityError: 18, URLMismatchError: 21, InvalidModificationError: 13, NamespaceError: 14, ValidationError: 16, InvalidNodeTypeError: 24, WrongDocumentError: 4, NoModificationAllowedError: 7 }[this.name] ?? 0; }
    });
  }

  global("QuotaExceededError", class QuotaExceededError extends DOMException {
    constructor(message = "", o = {}) { super(message, "QuotaExceededError"); this.quota = o.quota ?? null; this.requested = o.requested ?? null; }
  });
  const missing = (name) => ab.error(TypeError, "ERR_MISSING_ARGS", `The "${name}" argument must be specified`);
  const illegal = () => ab.error(TypeError, "ERR_ILLEGAL_CONSTRUCTOR", "Illegal constructor");
  let stopped; // whether an event goes to no further listener
  let sent; // an event gets its target, and knows whether it is on its way
  class Event {
    #type;
    #cancelable;
    #bubbles;
    #composed;
    #prevented = false;
    #stop = false;
    #spread = false;
    #target = null;
    #passing = false;
    #at = performance.now();
    static {
      stopped = (e) => e.#stop;
      sent = (e, target, passing) => { e.#target = target; e.#passing = passing; };
    }
    constructor(type, init = undefined) {
      if (arguments.length === 0) throw missing("type");
      if (init !== undefined && init !== null && typeof init !== "object") throw ab.argument("options", "object", init);
      this.#type = `${type}`;
      this.#bubbles = Boolean(init?.bubbles);
      this.#cancelable = Boolean(init?.cancelable);
      this.#composed = Boolean(init?.composed);
    }
    get type() { return this.#type; }
    get target() { return this.#target; }
    get currentTarget() { return this.#passing ? this.#target : null; }
    get srcElement() { return this.#target; }
    get cancelable() { return this.#cancelable; }
    get bubbles() { return this.#bubbles; }
    get composed() { return this.#composed; }
    get defaultPrevented() { return this.#cancelable && this.#prevented; }
    get returnValue() { return !this.#cancelable || !this.#prevented; }
    get timeStamp() { return this.#at; }
    get eventPhase() { return this.#passing ? 2 : 0; }
    get cancelBubble() { return this.#spread; }
    set cancelBubble(v) { if (v) this.#spread = true; }
    get isTrusted() { return false; }
    composedPath() { return this.#passing ? [this.#target] : []; }
    preventDefault() { this.#prevented = true; }
    stopPropagation() { this.#spread = true; }
    stopImmediatePropagation() { this.#stop = true; }
    initEvent(type, bubbles, cancelable) { this.#type = `${type}`; this.#bubbles = Boolean(bubbles); this.#cancelable = Boolean(cancelable); }
    get [Symbol.toStringTag]() { return "Event"; }
    [custom](depth, o, inspect) {
      const { name } = this.constructor;
      if (depth < 0) return name;
      return `${name} ${inspect({ type: this.#type, defaultPrevented: this.defaultPrevented, cancelable: this.#cancelable, timeStamp: this.#at }, { ...o, depth: Number.isInteger(o.depth) ? o.depth - 1 : o.depth })}`;
    }
    static NONE = 0;
    static CAPTURING_PHASE = 1;
    static AT_TARGET = 2;
    static BUBBLING_PHASE = 3;
  }
  class CustomEvent extends Event {
    #detail;
    constructor(type, init = undefined) { if (arguments.length === 0) throw missing("type"); super(type, init); this.#detail = init?.detail ?? null; }
    get detail() { return this.#detail; }
    get [Symbol.toStringTag]() { return "CustomEvent"; }
  }
  class EventTarget {
    #listeners = new Map();
    addEventListener(type, f, options) {
      if (arguments.length < 2) throw ab.error(TypeError, "ERR_MISSING_ARGS", 'The "type" and "listener" arguments must be specified');
      if (f === null || f === undefined) return;
      if (typeof f !== "function" && typeof f !== "object") throw ab.argument("listener", "an instance of EventListener", f);
      const o = typeof options === "object" && options ? options : { capture: Boolean(options) };
      if (o.signal?.aborted) return;
      type = `${type}`;
      const list = this.#listeners.get(type) ?? [];
      const capture = Boolean(o.capture);
      if (list.some((l) => l.f === f && l.capture === capture)) return;
      list.push({ f, capture, once: Boolean(o.once) });
      this.#listeners.set(type, list);
      o.signal?.addEventListener("abort", () => this.removeEventListener(type, f, o), { once: true });
    }
    removeEventListener(type, f, options) {
      if (arguments.length < 2) throw ab.error(TypeError, "ERR_MISSING_ARGS", 'The "type" and "listener" arguments must be specified');
      const capture = typeof options === "object" && options ? Boolean(options.capture) : Boolean(options);
      const list = this.#listeners.get(`${type}`);
      if (list) this.#listeners.set(`${type}`, list.filter((l) => { if (l.f === f && l.capture === capture) { l.gone = true; return false; } return true; }));
    }
    dispatchEvent(event) {
      if (!(event instanceof Event)) throw ab.argument("event", "an instance of Event", event);
      if (event.eventPhase !== 0) throw ab.error(Error, "ERR_EVENT_RECURSION", `The event "${event.type}" is already being dispatched`);
      sent(event, this, true);
      const on = this[`on${event.type}`];
      const heard = (f) => {
        try { const r = typeof f === "function" ? f.call(this, event) : f.handleEvent(event); if (typeof r?.then === "function") r.then(undefined, (e) => ab.nextTick(() => { throw e; })); } catch (e) { ab.nextTick(() => { throw e; }); }
      };
      for (const l of [...(this.#listeners.get(event.type) ?? [])]) {
        if (l.gone) continue;
        if (l.once) this.removeEventListener(event.type, l.f, l);
        heard(l.f);
        if (stopped(event)) break;
      }
      if (typeof on === "function" && !stopped(event)) heard(on);
      sent(event, this, false);
      return !event.defaultPrevented;
    }
    get [Symbol.toStringTag]() { return "EventTarget"; }
    [custom](depth, o, inspect) { return depth < 0 ? this.constructor.name : `${this.constructor.name} ${inspect({}, o)}`; }
  }
  const making = Symbol("making");
  class AbortSignal extends EventTarget {
    #aborted = false;
    #reason = undefined;
    constructor(token) {
      if (token !== making) throw illegal();
      super();
      Object.defineProperty(this, "onabort", { value: null, writable: true, configurable: true });
    }
    get aborted() { return this.#aborted; }
    get reason() { return this.#reason; }
    throwIfAborted() { if (this.#aborted) throw this.#reason; }
    static end(s, reason) {
      if (s.#aborted) return;
      s.#aborted = true;
      s.#reason = reason;
      s.dispatchEvent(new Event("abort"));
    }
    static abort(reason = new DOMException("This operation was aborted", "AbortError")) { const s = new AbortSignal(making); end(s, reason); return s; }
    static timeout(ms) {
      if (typeof ms !== "number") throw ab.argument("delay", "number", ms);
      const s = new AbortSignal(making);
      setTimeout(() => end(s, new DOMException("The operation was aborted due to timeout", "TimeoutError")), ms).unref();
      return s;
    }
    static any(signals) {
      const s = new AbortSignal(making);
      for (const from of signals) {
        if (from.aborted) { end(s, from.reason); break; }
        from.addEventListener("abort", () => end(s, from.reason), { once: true });
      }
      return s;
    }
    get [Symbol.toStringTag]() { return "AbortSignal"; }
    [custom](depth, options, inspect) { return depth < 0 ? "AbortSignal" : `AbortSignal ${inspect({ aborted: this.aborted }, options)}`; }
  }
  const { end } = AbortSignal;
  delete AbortSignal.end;
  class AbortController {
    #signal = new AbortSignal(making);
    get signal() { return this.#signal; }
    abort(reason = new DOMException("This operation was aborted", "AbortError")) { end(this.#signal, reason); }
    get [Symbol.toStringTag]() { return "AbortController"; }
    [custom](depth, options, inspect) { return depth < 0 ? "AbortController" : `AbortController ${inspect({ signal: this.#signal }, options)}`; }
  }

  // Encodings.
  const view = (b) => {
    if (b === undefined) return [new ArrayBuffer(0), 0, 0];
    if (ArrayBuffer.isView(b)) return [b.buffer, b.byteOffset, b.byteLength];
    if (b instanceof ArrayBuffer || (globalThis.SharedArrayBuffer && b instanceof SharedArrayBuffer)) return [b, 0, b.byteLength];
    throw ab.error(TypeError, "ERR_INVALID_ARG_TYPE", `The argument must be an instance of Buffer, TypedArray, DataView or ArrayBuffer. Received ${ab.received(b)}`);
  };
  ab.view = view;
  class TextEncoder {
    get encoding() { return "utf-8"; }
    encode(text = "") { return host.encode(String(text)); }
    get [Symbol.toStringTag]() { return "TextEncoder"; }
    encodeInto(text, into) {
      if (typeof text !== "string") throw ab.argument("src", "string", text);
      if (!(into instanceof Uint8Array)) throw ab.argument("dest", "an instance of Uint8Array", into);
      let read = 0;
      let written = 0;
      for (const c of String(text)) {
        const b = host.encode(c);
        if (written + b.length > into.length) break;
        into.set(b, written);
        written += b.length;
        read += c.length;
      }
      return { read, written };
    }
  }
  const common = { "utf-8": "utf-8", utf8: "utf-8", "utf-16le": "utf-16le", "utf-16": "utf-16le", "ucs-2": "utf-16le" }; // the others the host knows
  class TextDecoder {
    #kept = new Uint8Array(0);
    #bom = true;
    constructor(label = "utf-8", options = {}) {
      const name = String(label).replace(/^[\t\n\f\r ]+|[\t\n\f\r ]+$/g, "").toLowerCase();
      const known = common[name] ?? host.encoding(name);
      if (!known) throw ab.error(RangeError, "ERR_ENCODING_NOT_SUPPORTED", `The "${label}" encoding is not supported`);
      if (typeof options !== "object" && options !== undefined) throw ab.argument("options", "object", options);
      this.encoding = known;
      this.fatal = Boolean(options.fatal);
      this.ignoreBOM = Boolean(options.ignoreBOM);
    }
    decode(input, options = {}) {
      if (input !== undefined && !ArrayBuffer.isView(input) && !(input instanceof ArrayBuffer) && !(globalThis.SharedArrayBuffer && input instanceof SharedArrayBuffer)) throw ab.error(TypeError, "ERR_INVALID_ARG_TYPE", 'The "list" argument must be an instance of SharedArrayBuffer, ArrayBuffer or ArrayBufferView.');
      const [buffer, offset, length] = view(input);
      let bytes = new Uint8Array(buffer, offset, length);
      if (this.#kept.length > 0) {
        const all = new Uint8Array(this.#kept.length + bytes.length);
        all.set(this.#kept);
        all.set(bytes, this.#kept.length);
        bytes = all;
        this.#kept = new Uint8Array(0);
      }
      const other = this.encoding !== "utf-8" && this.encoding !== "utf-16le";
      if (options.stream && !other) {
        const cut = this.encoding === "utf-8" ? incomplete(bytes) : bytes.length % 2;
        this.#kept = bytes.slice(bytes.length - cut);
        bytes = bytes.subarray(0, bytes.length - cut);
      }
      let text;
      if (other) {
        const answer = this.#told(() => host.decodeAs(this.encoding, options.stream ? 1 : 0, this.fatal ? 1 : 0, bytes.buffer, bytes.byteOffset, bytes.byteLength));
        const colon = answer.indexOf(":");
        this.#kept = bytes.slice(Number(answer.slice(0, colon)));
        text = answer.slice(colon + 1);
      } else if (this.encoding === "utf-16le") text = ab.builtin("buffer").Buffer.from(bytes).toString("utf16le");
      else text = this.#told(() => host.decode(bytes.buffer, bytes.byteOffset, bytes.byteLength, this.fatal ? 1 : 0));
      if (this.encoding === "utf-16le") {
        if (this.fatal && (!text.isWellFormed() || bytes.length % 2 !== 0)) throw ab.error(TypeError, "ERR_ENCODING_INVALID_ENCODED_DATA", "The encoded data was not valid for encoding utf-16le");
        text = text.toWellFormed() + (bytes.length % 2 !== 0 ? "\ufffd" : "");
      }
      if (this.#bom && !this.ignoreBOM && text[0] === "\ufeff") text = text.slice(1);
      this.#bom = !options.stream || (this.#bom && text === "");
      return text;
    }
    #told(f) { try { return f(); } catch (e) { throw e.code ? ab.error(TypeError, e.code, e.message) : e; } }
    get [Symbol.toStringTag]() { return "TextDecoder"; }
  }
  const incomplete = (b) => {
    for (let back = 1; back <= Math.min(3, b.length); back++) {
      const c = b[b.length - back];
      if ((c & 0xc0) === 0x80) continue;
      const need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
      return need > back ? back : 0;
    }
    return 0;
  };
  ab.incomplete = incomplete;
  global("btoa", (text) => {
    text = String(text);
    const b = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) {
      const c = text.charCodeAt(i);
      if (c > 255) throw new DOMException("Invalid character", "InvalidCharacterError");
      b[i] = c;
    }
    return host.base64(b.buffer, 0, b.length, 0);
  });
  global("atob", (text) => {
    text = String(text).replace(/[\t\n\f\r ]/g, "");
    if (text.length % 4 === 0) text = text.replace(/==?$/, "");
    if (text.length % 4 === 1 || /[^A-Za-z0-9+/]/.test(text)) throw new DOMException("Invalid character", "InvalidCharacterError");
    let s = "";
    for (const c of host.unbase64(text)) s += String.fromCharCode(c);
    return s;
  });

  // URL, as far as programs without a network need it: all of the parts, the special schemes and relative references.
  const ports = { "http:": "80", "https:": "443", "ftp:": "21", "ws:": "80", "wss:": "443", "file:": "" };
  const encode = (s, keep) => {
    let out = "";
    for (const c of s) {
      const n = c.codePointAt(0);
      if (n > 0x20 && n < 0x7f && !keep.includes(c)) out += c;
      else if (n >= 0xd800 && n <= 0xdfff) out += "%EF%BF%BD";
      else out += n < 0x80 ? `%${n.toString(16).toUpperCase().padStart(2, "0")}` : encodeURIComponent(c);
    }
    return out;
  };
  const decode = (s) => s.replace(/(?:%[0-9a-fA-F]{2})+/g, (m) => {
    const b = new Uint8Array(m.length / 3);
    for (let i = 0; i < b.length; i++) b[i] = parseInt(m.slice(3 * i + 1, 3 * i + 3), 16);
    return host.decode(b.buffer, 0, b.length, 0);
  });
  const inPath = '"#<>?`{}^';
  const inQuery = "\"#<>'";
  const inFragment = '"<>`';
  const inUser = '"#<>?`{}/:;=@[\\]^|';
  const invalid = (input, base) => {
    const e = ab.error(TypeError, "ERR_INVALID_URL", "Invalid URL");
    e.input = input;
    if (base !== undefined) e.base = base;
    return e;
  };
  const hostOf = (text, special) => {
    if (text.startsWith("[")) {
      if (!/^\[[0-9a-fA-F:.]+\]$/.test(text)) return null;
      return text.toLowerCase();
    }
    if (!special) return /[\0\t\n\r #/<>?@[\\\]^|]/.test(text) ? null : encode(text, "");
    let h = decode(text).toLowerCase();
    if (/[^\x00-\x7f]/.test(h)) h = h.normalize("NFKC").split(".").map(puny).join(".");
    if (/[\0\t\n\r #/:<>?@[\\\]^|%\x7f]/.test(h)) return null;
    const parts = h.replace(/\.$/, "").split(".");
    if (/^(\d+|0x[0-9a-f]*)$/.test(parts.at(-1)) && parts.at(-1) !== "") {
      const n = parts.map((p) => (/^0x[0-9a-f]*$/.test(p) ? parseInt(p.slice(2) || "0", 16) : /^0[0-7]+$/.test(p) ? parseInt(p, 8) : /^\d+$/.test(p) ? Number(p) : NaN));
      if (n.length > 4 || n.some(Number.isNaN) || n.slice(0, -1).some((x) => x > 255) || n.at(-1) >= 256 ** (5 - n.length)) return null;
      let v = n.at(-1);
      n.slice(0, -1).forEach((x, i) => { v += x * 256 ** (3 - i); });
      return [24, 16, 8, 0].map((s) => Math.floor(v / 2 ** s) % 256).join(".");
    }
    return h;
  };
  const puny = (label) => {
    if (!/[^\x00-\x7f]/.test(label)) return label;
    const input = Array.from(label, (c) => c.codePointAt(0));
    let out = input.filter((c) => c < 128).map((c) => String.fromCharCode(c)).join("");
    let n = 128, delta = 0, bias = 72, h = out.length;
    const basic = h;
    if (basic > 0) out += "-";
    const digit = (d) => String.fromCharCode(d < 26 ? d + 97 : d + 22);
    while (h < input.length) {
      const m = Math.min(...input.filter((c) => c >= n));
      delta += (m - n) * (h + 1);
      n = m;
      for (const c of input) {
        if (c < n) delta++;
        if (c !== n) continue;
        let q = delta;
        for (let k = 36; ; k += 36) {
          const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
          if (q < t) break;
          out += digit(t + ((q - t) % (36 - t)));
          q = Math.floor((q - t) / (36 - t));
        }
        out += digit(q);
        delta = h === basic ? Math.floor(delta / 700) : delta >> 1;
        delta += Math.floor(delta / (h + 1));
        let k = 0;
        for (; delta > 455; k += 36) delta = Math.floor(delta / 35);
        bias = k + Math.floor((36 * delta) / (delta + 38));
        delta = 0;
        h++;
      }
      delta++;
      n++;
    }
    return `xn--${out}`;
  };
  const dots = (parts, folder) => {
    const out = [];
    for (let i = 0; i < parts.length; i++) {
      const p = parts[i].toLowerCase().replaceAll("%2e", ".");
      const last = i === parts.length - 1;
      if (p === "..") { out.pop(); if (last) out.push(""); } else if (p === ".") { if (last) out.push(""); } else out.push(parts[i]);
    }
    void folder;
    return out;
  };
  const parse = (input, base) => {
    let s = input.replace(/^[\x00-\x20]+|[\x00-\x20]+$/g, "").replace(/[\t\n\r]/g, "");
    let u = { protocol: "", username: "", password: "", host: null, port: "", path: "", search: null, hash: null, opaque: false };
    let m = /#(.*)$/s.exec(s);
    if (m) { u.hash = encode(m[1], inFragment); s = s.slice(0, m.index); }
    const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(s);
    let rest;
    if (scheme) {
      u.protocol = scheme[0].toLowerCase();
      rest = s.slice(scheme[0].length);
      if (base && base.protocol === u.protocol && u.protocol in ports && !/^[/\\]/.test(rest)) return relative(u, rest, base);
    } else {
      if (!base) return null;
      if (base.opaque) {
        if (s !== "" || u.hash === null) return null;
        return { ...base, hash: u.hash };
      }
      u.protocol = base.protocol;
      return relative(u, s, base);
    }
    return absolute(u, rest);
  };
  const query = (u, s) => {
    const q = s.indexOf("?");
    if (q >= 0) { u.search = encode(s.slice(q + 1), u.protocol in ports ? inQuery : inQuery.replace("'", "")); s = s.slice(0, q); }
    return s;
  };
  const absolute = (u, rest) => {
    const special = u.protocol in ports;
    rest = query(u, rest);
    if (special) {
      rest = rest.replace(/\\/g, "/");
      if (u.protocol === "file:") {
        if (!rest.startsWith("//")) { u.host = ""; return path(u, rest.startsWith("/") ? rest : `/${rest}`); }
        rest = rest.slice(2);
      } else rest = rest.replace(/^\/*/, "");
      return authority(u, rest);
    }
    if (rest.startsWith("//")) return authority(u, rest.slice(2));
    if (rest.startsWith("/")) return path(u, rest);
    u.opaque = true;
    u.path = rest.replace(/[^\x20-\x7e]/g, (c) => encode(c, ""));
    return u;
  };
  const authority = (u, rest) => {
    const special = u.protocol in ports;
    const slash = rest.indexOf("/");
    let auth = slash < 0 ? rest : rest.slice(0, slash);
    const after = slash < 0 ? "" : rest.slice(slash);
    const at = auth.lastIndexOf("@");
    if (at >= 0) {
      const user = auth.slice(0, at);
      const colon = user.indexOf(":");
      u.username = encode(colon < 0 ? user : user.slice(0, colon), inUser);
      u.password = colon < 0 ? "" : encode(user.slice(colon + 1), inUser);
      auth = auth.slice(at + 1);
    }
    const m = /^(.*?)(?::(\d*))?$/.exec(auth.startsWith("[") ? auth.replace(/^(\[[^\]]*\])/, (x) => x.replaceAll(":", "\x01")) : auth);
    if (!m) return null;
    const name = m[1].replaceAll("\x01", ":");
    if (m[2]) {
      if (Number(m[2]) > 65535) return null;
      u.port = String(Number(m[2])) === ports[u.protocol] ? "" : String(Number(m[2]));
    }
    if (/:/.test(name) && !name.startsWith("[")) return null;
    u.host = hostOf(name, special);
    if (u.host === null || (u.host === "" && special && u.protocol !== "file:")) return null;
    if (u.protocol === "file:" && u.host === "localhost") u.host = "";
    return path(u, after);
  };
  const path = (u, p) => {
    const special = u.protocol in ports;
    if (special) p = p.replace(/\\/g, "/");
    if (p === "") { u.path = special ? "/" : ""; return u; }
    u.path = `/${dots(p.replace(/^\//, "").split("/").map((x) => encode(x, inPath))).join("/")}`;
    return u;
  };
  const relative = (u, s, base) => {
    const special = u.protocol in ports;
    if (special) { const q = s.search(/[?]/); s = q < 0 ? s.replace(/\\/g, "/") : s.slice(0, q).replace(/\\/g, "/") + s.slice(q); }
    if (s.startsWith("//")) return absolute(u, s);
    u.username = base.username;
    u.password = base.password;
    u.host = base.host;
    u.port = base.port;
    if (s === "") { u.path = base.path; u.search = base.search; return u; }
    if (s.startsWith("?")) { query(u, s); u.path = base.path; return u; }
    s = query(u, s);
    if (s.startsWith("/")) return path(u, s);
    const folder = base.path.slice(0, base.path.lastIndexOf("/") + 1) || "/";
    return path(u, folder + s);
  };
  class URLSearchParams {
    #list = [];
    #url = null;
    constructor(init = "") {
      if (init !== null && typeof init === "object" || typeof init === "function") {
        if (typeof init[Symbol.iterator] === "function") {
          for (const pair of init) {
            const [k, v, ...rest] = [...pair];
            if (v === undefined || rest.length > 0) throw ab.error(TypeError, "ERR_INVALID_TUPLE", "Each query pair must be an iterable [name, value] tuple");
            this.#list.push([String(k), String(v)]);
          }
        } else for (const k of Object.keys(init)) this.#list.push([k, String(init[k])]);
      } else this.#parse(String(init).replace(/^\?/, ""));
    }
    static of(url, text) { const p = new URLSearchParams(text); p.#url = url; return p; }
    static renew(p, text) { p.#list = []; p.#parse(text); }
    #parse(text) {
      for (const part of text.split("&")) {
        if (part === "") continue;
        const eq = part.indexOf("=");
        const plain = (s) => decode(s.replaceAll("+", " "));
        this.#list.push(eq < 0 ? [plain(part), ""] : [plain(part.slice(0, eq)), plain(part.slice(eq + 1))]);
      }
    }
    #changed() { this.#url?.(this.toString()); }
    append(k, v) { this.#list.push([String(k), String(v)]); this.#changed(); }
    delete(k, v) { this.#list = this.#list.filter(([n, x]) => n !== String(k) || (v !== undefined && x !== String(v))); this.#changed(); }
    get(k) { return this.#list.find(([n]) => n === String(k))?.[1] ?? null; }
    getAll(k) { return this.#list.filter(([n]) => n === String(k)).map(([, v]) => v); }
    has(k, v) { return this.#list.some(([n, x]) => n === String(k) && (v === undefined || x === String(v))); }
    set(k, v) {
      const i = this.#list.findIndex(([n]) => n === String(k));
      if (i < 0) this.#list.push([String(k), String(v)]);
      else {
        this.#list[i][1] = String(v);
        this.#list = this.#list.filter(([n], j) => j <= i || n !== String(k));
      }
      this.#changed();
    }
    sort() { this.#list.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)); this.#changed(); }
    forEach(f, self) { for (const [k, v] of this.#list) f.call(self, v, k, this); }
    *keys() { for (const [k] of this.#list) yield k; }
    *values() { for (const [, v] of this.#list) yield v; }
    *entries() { for (const [k, v] of this.#list) yield [k, v]; }
    [Symbol.iterator]() { return this.entries(); }
    get size() { return this.#list.length; }
    get [Symbol.toStringTag]() { return "URLSearchParams"; }
    toString() {
      const form = (s) => encodeURIComponent(s.toWellFormed?.() ?? s).replace(/[!'()~]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`).replaceAll("%20", "+");
      return this.#list.map(([k, v]) => `${form(k)}=${form(v)}`).join("&");
    }
    [custom](depth, options, inspect) {
      if (this.#list.length === 0) return "URLSearchParams {}";
      return `URLSearchParams { ${this.#list.map(([k, v]) => `${inspect(k, options)} => ${inspect(v, options)}`).join(", ")} }`;
    }
  }
  class URL {
    #u;
    #params = null;
    constructor(input, base) {
      let from = null;
      if (base !== undefined) {
        from = parse(String(base), null);
        if (!from) throw invalid(String(input), String(base));
      }
      this.#u = parse(String(input), from);
      if (!this.#u) throw invalid(String(input), base === undefined ? undefined : String(base));
    }
    static canParse(input, base) { try { new URL(input, base); return true; } catch { return false; } }
    static parse(input, base) { try { return new URL(input, base); } catch { return null; } }
    get href() {
      const u = this.#u;
      const auth = u.host === null ? "" : `//${u.username || u.password ? `${u.username}${u.password ? `:${u.password}` : ""}@` : ""}${this.host}`;
      return `${u.protocol}${auth}${u.path}${u.search === null ? "" : `?${u.search}`}${u.hash === null ? "" : `#${u.hash}`}`;
    }
    set href(v) { const u = parse(String(v), null); if (!u) throw invalid(String(v)); this.#u = u; this.#renew(); }
    get origin() { const u = this.#u; return u.protocol in ports && u.protocol !== "file:" ? `${u.protocol}//${this.host}` : "null"; }
    get protocol() { return this.#u.protocol; }
    set protocol(v) { const p = `${String(v).replace(/:.*$/, "").toLowerCase()}:`; if ((p in ports) === (this.#u.protocol in ports)) { this.#u.protocol = p; if (ports[p] === this.#u.port) this.#u.port = ""; } }
    get username() { return this.#u.username; }
    set username(v) { if (this.#u.host) this.#u.username = encode(String(v), inUser); }
    get password() { return this.#u.password; }
    set password(v) { if (this.#u.host) this.#u.password = encode(String(v), inUser); }
    get host() { return (this.#u.host ?? "") + (this.#u.port ? `:${this.#u.port}` : ""); }
    set host(v) { const [h, p] = String(v).split(/:(?=\d*$)/); this.hostname = h; if (p !== undefined) this.port = p; }
    get hostname() { return this.#u.host ?? ""; }
    set hostname(v) { if (this.#u.opaque) return; const h = hostOf(String(v), this.#u.protocol in ports); if (h) this.#u.host = h; }
    get port() { return this.#u.port; }
    set port(v) { const m = /^\d+/.exec(String(v)); if (String(v) === "") this.#u.port = ""; else if (m && Number(m[0]) < 65536) this.#u.port = String(Number(m[0])) === ports[this.#u.protocol] ? "" : String(Number(m[0])); }
    get pathname() { return this.#u.path; }
    set pathname(v) { if (!this.#u.opaque) { const s = String(v); path(this.#u, s.startsWith("/") ? s : `/${s}`); } }
    get search() { return this.#u.search ? `?${this.#u.search}` : ""; }
    set search(v) { const s = String(v).replace(/^\?/, ""); this.#u.search = s === "" ? null : encode(s, this.#u.protocol in ports ? inQuery : inQuery.replace("'", "")); this.#renew(); }
    get hash() { return this.#u.hash ? `#${this.#u.hash}` : ""; }
    set hash(v) { const s = String(v).replace(/^#/, ""); this.#u.hash = s === "" ? null : encode(s, inFragment); }
    get searchParams() { return (this.#params ??= URLSearchParams.of((text) => { this.#u.search = text === "" ? null : text; }, this.#u.search ?? "")); }
    #renew() { if (this.#params) URLSearchParams.renew(this.#params, this.#u.search ?? ""); }
    toString() { return this.href; }
    toJSON() { return this.href; }
    get [Symbol.toStringTag]() { return "URL"; }
    [custom](depth, options, inspect) {
      if (depth < 0) return this.href;
      const shown = {};
      for (const k of ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "searchParams", "hash"]) shown[k] = this[k];
      return `URL ${inspect(shown, options)}`;
    }
  }
  ab.decodePercent = decode;
  ab.encodePath = (s) => encode(s, `${inPath}%`);

  class Blob {
    #bytes;
    constructor(parts = [], options = {}) {
      const all = [...parts].map((p) => (p instanceof Blob ? p.#bytes : typeof p === "object" && p !== null && (ArrayBuffer.isView(p) || p instanceof ArrayBuffer) ? new Uint8Array(...view(p)).slice() : host.encode(String(p))));
      this.#bytes = new Uint8Array(all.reduce((n, b) => n + b.length, 0));
      let at = 0;
      for (const b of all) { this.#bytes.set(b, at); at += b.length; }
      this.type = String(options.type ?? "").toLowerCase();
    }
    get size() { return this.#bytes.length; }
    async arrayBuffer() { return this.#bytes.slice().buffer; }
    async bytes() { return this.#bytes.slice(); }
    async text() { return host.decode(this.#bytes.buffer, 0, this.#bytes.length, 0); }
    slice(from, to, type) { return new Blob([this.#bytes.slice(from, to)], { type }); }
    get [Symbol.toStringTag]() { return "Blob"; }
    [custom](depth, options, inspect) { return `${this.constructor.name} ${inspect({ size: this.size, type: this.type }, options)}`; }
  }
  class File extends Blob {
    constructor(parts, name, options = {}) { super(parts, options); this.name = String(name); this.lastModified = options.lastModified ?? Math.trunc(host.now()); }
  }

  const cannot = (v) => new DOMException(`${typeof v === "symbol" ? String(v) : typeof v === "function" ? String(v).split("\n")[0] : `#<${v.constructor?.name ?? "Object"}>`} could not be cloned.`, "DataCloneError");
  const clone = (v, seen) => {
    if (typeof v === "symbol" || typeof v === "function") throw cannot(v);
    if (v === null || typeof v !== "object") return v;
    if (seen.has(v)) return seen.get(v);
    const keep = (c) => { seen.set(v, c); return c; };
    if (v instanceof Date) return keep(new Date(v.getTime()));
    if (v instanceof RegExp) return keep(new RegExp(v.source, v.flags));
    if (v instanceof ArrayBuffer) return keep(v.slice(0));
    if (ArrayBuffer.isView(v)) {
      const b = clone(v.buffer, seen);
      return keep(v instanceof DataView ? new DataView(b, v.byteOffset, v.byteLength) : new (globalThis[v[Symbol.toStringTag]])(b, v.byteOffset, v.length));
    }
    if (v instanceof Map) { const c = keep(new Map()); for (const [k, x] of v) c.set(clone(k, seen), clone(x, seen)); return c; }
    if (v instanceof Set) { const c = keep(new Set()); for (const x of v) c.add(clone(x, seen)); return c; }
    if (v instanceof Error) {
      const Type = { EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError }[v.name] ?? Error;
      const c = keep(Object.create(Type.prototype));
      for (const k of ["stack", "message", "cause"]) if (Object.hasOwn(v, k)) Object.defineProperty(c, k, { value: clone(v[k], seen), writable: true, configurable: true });
      return c;
    }
    if (v instanceof Number || v instanceof String || v instanceof Boolean || v instanceof BigInt) return keep(Object(v.valueOf()));
    if (v instanceof Blob) return keep(v);
    if (v instanceof Promise || v instanceof WeakMap || v instanceof WeakSet || v instanceof WeakRef) throw cannot(v);
    const c = keep(Array.isArray(v) ? new Array(v.length) : {});
    for (const k of Object.keys(v)) c[k] = clone(v[k], seen);
    return c;
  };
  global("structuredClone", function structuredClone(v, o) {
    if (arguments.length === 0) throw ab.error(TypeError, "ERR_MISSING_ARGS", 'The "The value argument must be specified" argument must be specified');
    const c = clone(v, new Map());
    for (const b of o?.transfer ?? []) b.transfer?.();
    return c;
  });

  for (const [name, value] of Object.entries({ Event, CustomEvent, EventTarget, AbortSignal, AbortController, TextEncoder, TextDecoder, URL, URLSearchParams, Blob, File })) global(name, value);
  for (const name of ["fetch", "WebSocket", "Worker", "XMLHttpRequest", "BroadcastChannel"]) {
    const refuse = { [name]() {
      const e = ab.lacking(name === "Worker" ? "threads" : "the network", `${name} is not available: a nano space has no ${name === "Worker" ? "threads" : "network"}`);
      if (name === "fetch") return Promise.reject(e);
      throw e;
    } }[name];
    global(name, name === "fetch" ? refuse : function () { return refuse(); });
  }
})();
