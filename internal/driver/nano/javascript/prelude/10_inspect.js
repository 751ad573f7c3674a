// util.inspect and util.format, as Node prints.
(() => {
  const ab = __agentbox;
  const custom = Symbol.for("nodejs.util.inspect.custom");
  const plainKey = /^[A-Za-z_$][\w$]*$/;
  const styles = { number: 33, bigint: 33, boolean: 33, string: 32, undefined: 90, null: 1, symbol: 32, special: 36, date: 35, regexp: 31 };

  const quote = (s, single) => {
    let q = "'";
    if (!single || s.includes("'")) {
      if (!s.includes("'")) q = "'"; else if (!s.includes('"')) q = '"'; else if (!s.includes("`") && !s.includes("${")) q = "`";
    }
    const body = s.replace(/[\x00-\x1f\x7f-\x9f\\]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, (c) => {
      const named = { "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", "\\": "\\\\" }[c];
      if (named) return named;
      const n = c.charCodeAt(0);
      return n > 255 ? `\\u${n.toString(16).toUpperCase()}` : `\\x${n.toString(16).toUpperCase().padStart(2, "0")}`;
    });
    return q + (q === "'" ? body.replace(/'/g, "\\'") : body) + q;
  };
  const grouped = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, "_");
  const number = (n, o) => {
    if (Object.is(n, -0)) return "-0";
    const text = String(n);
    if (!o?.numericSeparator || !Number.isFinite(n) || text.includes("e")) return text;
    const [whole, part] = text.split(".");
    return grouped(whole) + (part === undefined ? "" : `.${part.replace(/\d{3}(?=\d)/g, "$&_")}`);
  };
  const nameOf = (v) => {
    for (let p = v; p !== null; p = Object.getPrototypeOf(p)) {
      const d = Object.getOwnPropertyDescriptor(p, "constructor");
      if (d && typeof d.value === "function" && d.value.name !== "" && (p !== v || v instanceof d.value)) return d.value.name;
    }
    const first = v === null ? null : Object.getPrototypeOf(v);
    return first === null ? null : `${typeof v === "function" ? "Function" : "Object"} <${inspect(first, { depth: -1, customInspect: false })}>`;
  };
  const width = (s) => {
    s = s.replace(/\x1b\[\d+m/g, "");
    let n = 0;
    for (const c of s) n += c.codePointAt(0) >= 0x1100 && /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}]/u.test(c) ? 2 : 1;
    return n;
  };
  const key = (k, d, ctx) => {
    let text;
    if (typeof k === "symbol") text = ctx.paint(String(k), "symbol");
    else if (k === "__proto__") text = "['__proto__']";
    else text = plainKey.test(k) ? k : ctx.paint(quote(k, true), "string");
    return d.enumerable ? text : `[${text}]`;
  };

  const inspect = (value, options, ...old) => {
    if (typeof options === "boolean") options = { showHidden: options, depth: old[0], colors: old[1] };
    const o = { depth: 2, colors: false, breakLength: 80, compact: 3, maxArrayLength: 100, maxStringLength: 10000, showHidden: false, sorted: false, getters: false, customInspect: true, ...inspect.defaultOptions, ...options };
    if (o.depth === null || o.depth === undefined) o.depth = Infinity;
    if (o.maxArrayLength === null) o.maxArrayLength = Infinity;
    const ctx = {
      o, seen: [], circular: new Map(), indent: 0, deepest: 0,
      paint: o.colors ? (s, kind) => (kind === "null" ? `\x1b[1m${s}\x1b[22m` : `\x1b[${styles[kind]}m${s}\x1b[39m`) : (s) => s,
    };
    return format(ctx, value, 0);
  };

  const primitive = (ctx, v) => {
    switch (typeof v) {
      case "string": {
        let rest = "";
        if (v.length > ctx.o.maxStringLength) {
          const more = v.length - ctx.o.maxStringLength;
          v = v.slice(0, ctx.o.maxStringLength);
          rest = `... ${more} more character${more > 1 ? "s" : ""}`;
        }
        if (v.length > 16 && v.length > ctx.o.breakLength - ctx.indent - 4 && ctx.o.compact !== true) {
          const lines = v.split(/(?<=\n)/);
          if (lines.length > 1) return lines.map((l) => ctx.paint(quote(l), "string")).join(` +\n${" ".repeat(ctx.indent + 2)}`) + rest;
        }
        return ctx.paint(quote(v), "string") + rest;
      }
      case "number": return ctx.paint(number(v, ctx.o), "number");
      case "bigint": return ctx.paint(`${ctx.o.numericSeparator ? grouped(String(v)) : v}n`, "bigint");
      case "boolean": return ctx.paint(String(v), "boolean");
      case "undefined": return ctx.paint("undefined", "undefined");
      case "symbol": return ctx.paint(String(v), "symbol");
    }
    return ctx.paint("null", "null");
  };

  const format = (ctx, v, depth) => {
    if (v === null || (typeof v !== "object" && typeof v !== "function")) return primitive(ctx, v);
    if (ctx.o.customInspect) {
      const f = v[custom];
      if (typeof f === "function" && f !== inspect && !(v.constructor && v.constructor.prototype === v)) {
        const left = ctx.o.depth - depth;
        const r = f.call(v, left, { ...ctx.o, stylize: (s, kind) => ctx.paint(s, kind) }, inspect);
        if (r !== v) return typeof r === "string" ? r.replaceAll("\n", `\n${" ".repeat(ctx.indent)}`) : format(ctx, r, depth);
      }
    }
    if (ctx.seen.includes(v)) {
      if (!ctx.circular.has(v)) ctx.circular.set(v, ctx.circular.size + 1);
      return ctx.paint(`[Circular *${ctx.circular.get(v)}]`, "special");
    }
    return object(ctx, v, depth);
  };

  const prefixOf = (name, tag, fallback, size) => {
    const n = name === null ? (tag !== "" && tag !== fallback ? `[${fallback}${size ?? ""}: null prototype] [${tag}] ` : `[${fallback}${size ?? ""}: null prototype] `) : `${name}${size ?? ""} `;
    if (name !== null && tag.endsWith(`.${name}`)) return `${tag}${size ?? ""} `;
    return name !== null && tag !== "" && tag !== name ? `${n}[${tag}] ` : n;
  };
  const settled = (p) => { const state = ab.host.settled(p); return state === 0 ? null : [state, ab.host.outcome(p)]; };
  const typedNames = ["Uint8Array", "Uint8ClampedArray", "Uint16Array", "Uint32Array", "Int8Array", "Int16Array", "Int32Array", "Float16Array", "Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array"];
  const isTyped = (v) => ArrayBuffer.isView(v) && !(v instanceof DataView);

  const object = (ctx, v, depth) => {
    const name = nameOf(v);
    let tag = "";
    try { tag = v[Symbol.toStringTag]; } catch { /* a getter that throws */ }
    if (typeof tag !== "string") tag = "";
    const keys = ownKeys(ctx, v);
    const out = [];
    let braces = ["{", "}"];
    let start = "";
    let kind = 0; // 1: an array, whose entries may stand in columns
    const o = ctx.o;
    let items = null;
    let base = 0; // 1: what stands before the brace is no prefix, and its blank does not count
    if (proxied.has(v) && !o.showProxy) return `Proxy(${format(ctx, proxied.get(v), depth)})`;
    if (Array.isArray(v)) {
      const n = v.length;
      start = name === "Array" && tag === "" ? "" : prefixOf(name, tag, "Array", `(${n})`);
      braces = [`${start}[`, "]"];
      if (n === 0 && keys.length === 0) return `${braces[0]}]`;
      kind = 1;
      items = () => list(ctx, v, depth);
    } else if (isTyped(v)) {
      const real = typedNames.find((t) => globalThis[t] && v instanceof globalThis[t]) ?? "TypedArray";
      braces = [`${prefixOf(name, tag, real, `(${v.length})`)}[`, "]"];
      if (v.length === 0 && keys.length === 0) return `${braces[0]}]`;
      kind = 1;
      items = () => {
        const shown = Math.min(o.maxArrayLength, v.length);
        const r = [];
        for (let i = 0; i < shown; i++) r.push(primitive(ctx, v[i]));
        if (v.length > shown) r.push(more(v.length - shown));
        return r;
      };
    } else if (v instanceof Set) {
      start = prefixOf(name, tag, "Set", `(${v.size})`);
      braces = [`${start}{`, "}"];
      if (v.size === 0 && keys.length === 0) return `${start}{}`;
      items = () => limited(ctx, Set.prototype.values.call(v), v.size, (x) => format(ctx, x, depth + 1));
    } else if (v instanceof Map) {
      start = prefixOf(name, tag, "Map", `(${v.size})`);
      braces = [`${start}{`, "}"];
      if (v.size === 0 && keys.length === 0) return `${start}{}`;
      items = () => limited(ctx, Map.prototype.entries.call(v), v.size, ([k, x]) => `${format(ctx, k, depth + 1)} => ${format(ctx, x, depth + 1)}`);
    } else if (typeof v === "function") {
      start = functionName(v, name, tag);
      if (keys.length === 0) return ctx.paint(start, "special");
      braces = [`${ctx.paint(start, "special")} {`, "}"]; base = 1;
    } else if (v instanceof RegExp) {
      start = RegExp.prototype.toString.call(v);
      if (keys.length === 0) return ctx.paint(start, "regexp");
      braces = [`${ctx.paint(start, "regexp")} {`, "}"]; base = 1;
    } else if (v instanceof Date) {
      start = Number.isNaN(v.getTime()) ? "Invalid Date" : v.toISOString();
      if (keys.length === 0) return ctx.paint(start, "date");
      braces = [`${ctx.paint(start, "date")} {`, "}"]; base = 1;
    } else if (v instanceof Error) {
      start = errorText(ctx, v, keys, name, tag);
      if ("cause" in v && Object.hasOwn(v, "cause") && !keys.includes("cause")) keys.push("cause");
      if (Array.isArray(v.errors) && Object.hasOwn(v, "errors") && !keys.includes("errors")) keys.push("errors");
      if (keys.length === 0) return start.replaceAll("\n", `\n${" ".repeat(ctx.indent)}`);
      braces = [`${start.replaceAll("\n", `\n${" ".repeat(ctx.indent)}`)} {`, "}"]; base = 1;
    } else if (v instanceof Promise) {
      start = prefixOf(name, tag, "Promise");
      braces = [`${start}{`, "}"];
      items = () => [ctx.paint("<pending>", "special")];
      const state = settled(v);
      if (state) items = () => [state[0] === 1 ? format(ctx, state[1], depth + 1) : state[0] === 2 ? `${ctx.paint("<rejected>", "special")} ${format(ctx, state[1], depth + 1)}` : ctx.paint("<pending>", "special")];
    } else if (v instanceof ArrayBuffer) {
      braces = [`${prefixOf(name, tag, "ArrayBuffer")}{`, "}"];
      items = () => {
        const bytes = new Uint8Array(v);
        const shown = Array.from(bytes.slice(0, Math.min(50, o.maxArrayLength)), (b) => b.toString(16).padStart(2, "0")).join(" ");
        const rest = bytes.length > 50 ? ` ... ${bytes.length - 50} more byte${bytes.length > 51 ? "s" : ""}` : "";
        return [`[Uint8Contents]: <${shown}${rest}>`, `[byteLength]: ${ctx.paint(String(v.byteLength), "number")}`];
      };
    } else if (v instanceof DataView) {
      braces = [`${prefixOf(name, tag, "DataView")}{`, "}"];
      items = () => ["byteLength", "byteOffset", "buffer"].map((k) => `[${k}]: ${format(ctx, v[k], depth + 1)}`);
    } else if (v instanceof WeakSet || v instanceof WeakMap) {
      return `${prefixOf(name, "", v instanceof WeakSet ? "WeakSet" : "WeakMap")}{ ${ctx.paint("<items unknown>", "special")} }`;
    } else if (v instanceof WeakRef) {
      start = prefixOf(name, "", "WeakRef");
      if (keys.length === 0) return `${start}{}`;
      braces = [`${start}{`, "}"];
    } else if (v instanceof Number || v instanceof String || v instanceof Boolean || v instanceof Symbol || v instanceof BigInt) {
      const inner = v.valueOf();
      const type = typeof inner;
      start = `[${type === "bigint" ? "BigInt" : type[0].toUpperCase() + type.slice(1)}: ${primitive({ ...ctx, paint: (s) => s }, inner)}]`;
      const own = type === "string" ? keys.filter((k) => !/^\d+$/.test(String(k))) : keys;
      if (own.length === 0) return ctx.paint(start, type);
      keys.length = 0;
      keys.push(...own);
      braces = [`${start} {`, "}"];
      base = 1;
    } else if (Object.prototype.toString.call(v) === "[object Arguments]") {
      braces = ["[Arguments] {", "}"];
    } else if (tag.endsWith(" Iterator") && typeof v.next === "function" && /^(Map|Set) Iterator$/.test(tag)) {
      braces = [`[${tag}] {`, "}"];
      items = () => [];
    } else if (name === "Module" && tag === "Module" || tag === "Module" && Object.getPrototypeOf(v) === null) {
      braces = ["[Module: null prototype] {", "}"];
    } else {
      if (tag === "Generator" || tag === "AsyncGenerator") return `Object [${tag}] {}`;
      start = name === "Object" && tag === "" ? "" : prefixOf(name, tag, "Object");
      if (keys.length === 0) return `${start}{}`;
      braces = [`${start}{`, "}"];
    }
    if (depth > o.depth) {
      const label = (name ?? (tag || "Object: null prototype")) + (tag && tag !== name && name !== null ? ` [${tag}]` : "");
      return ctx.paint(`[${Array.isArray(v) ? (name ?? "Array") : label}]`, "special");
    }
    ctx.seen.push(v);
    ctx.deepest = depth;
    const wasIndent = ctx.indent;
    try {
      if (items) { ctx.indent = wasIndent + 2; out.push(...items()); ctx.indent = wasIndent; }
      for (const k of keys) out.push(property(ctx, v, k, depth));
    } finally {
      ctx.seen.pop();
      ctx.indent = wasIndent;
    }
    if (o.sorted && kind === 0) out.sort(typeof o.sorted === "function" ? o.sorted : undefined);
    let head = braces[0];
    if (ctx.circular.has(v)) {
      const ref = ctx.paint(`<ref *${ctx.circular.get(v)}>`, "special");
      head = `${ref} ${head}`;
    }
    return reduce(ctx, out, head, braces[1], kind, depth, v, base);
  };

  const more = (n) => `... ${n} more item${n > 1 ? "s" : ""}`;
  const limited = (ctx, iterator, size, show) => {
    const r = [];
    const shown = Math.min(ctx.o.maxArrayLength, size);
    for (const x of iterator) {
      if (r.length >= shown) break;
      r.push(show(x));
    }
    if (size > shown) r.push(more(size - shown));
    return r;
  };
  const list = (ctx, v, depth) => {
    const r = [];
    const shown = Math.min(ctx.o.maxArrayLength, v.length);
    let i = 0;
    while (i < v.length && r.length < shown) {
      if (!Object.hasOwn(v, i)) {
        let j = i;
        while (j < v.length && !Object.hasOwn(v, j)) j++;
        r.push(ctx.paint(`<${j - i} empty item${j - i > 1 ? "s" : ""}>`, "undefined"));
        i = j;
        continue;
      }
      r.push(entry(ctx, v, String(i), depth));
      i++;
    }
    if (i < v.length) r.push(more(v.length - i));
    return r;
  };
  const ownKeys = (ctx, v) => {
    let keys;
    const indexed = Array.isArray(v) || isTyped(v);
    if (ctx.o.showHidden) keys = Object.getOwnPropertyNames(v); else keys = Object.keys(v);
    if (indexed) keys = keys.filter((k) => !/^(0|[1-9]\d*)$/.test(k) && (k !== "length" || ctx.o.showHidden || !Array.isArray(v)));
    for (const s of Object.getOwnPropertySymbols(v)) if (ctx.o.showHidden || Object.getOwnPropertyDescriptor(v, s)?.enumerable) keys.push(s);
    return keys;
  };
  const entry = (ctx, v, k, depth) => {
    const d = Object.getOwnPropertyDescriptor(v, k) ?? { value: v[k], enumerable: true };
    if (d.get || d.set) return accessor(ctx, d, v, depth);
    return format(ctx, d.value, depth + 1);
  };
  const accessor = (ctx, d, v, depth) => {
    const special = (s) => ctx.paint(s, "special");
    if (!d.get) return special("[Setter]");
    const label = d.set ? "Getter/Setter" : "Getter";
    const { getters } = ctx.o;
    if (!(getters === true || (getters === "get" && !d.set) || (getters === "set" && d.set))) return special(`[${label}]`);
    let x;
    try { x = d.get.call(v); } catch (e) { return `${special(`[${label}:`)} <Inspection threw (${format(ctx, e, depth + 1)})>${special("]")}`; }
    if (x !== null && (typeof x === "object" || typeof x === "function")) return `${special(`[${label}]`)} ${format(ctx, x, depth + 1)}`;
    return `${special(`[${label}:`)} ${primitive(ctx, x)}${special("]")}`;
  };
  const property = (ctx, v, k, depth) => {
    const d = Object.getOwnPropertyDescriptor(v, k) ?? { value: v[k], enumerable: true };
    ctx.indent += ctx.o.compact === true ? 3 : 2;
    let text;
    text = d.get || d.set ? accessor(ctx, d, v, depth) : format(ctx, d.value, depth + 1);
    ctx.indent -= ctx.o.compact === true ? 3 : 2;
    const name = key(k, d, ctx);
    return `${name}: ${text}`;
  };
  const functionName = (f, name, tag) => {
    const text = Function.prototype.toString.call(f);
    if (/^class[\s{]/.test(text)) {
      const own = (Object.hasOwn(f, "name") && f.name) || "(anonymous)";
      const parent = name === null ? "[null prototype]" : Object.getPrototypeOf(f)?.name;
      return `[class ${own}${name !== "Function" && name !== null ? ` [${name}]` : ""}${tag !== "" && name !== tag ? ` [${tag}]` : ""}${parent ? ` extends ${parent}` : ""}]`;
    }
    const made = /^(Async)?(Generator)?Function$/.exec(tag || name || "");
    const type = made ? made[0] : "Function";
    const own = f.name;
    let s = `[${type}${name === null ? " (null prototype)" : ""}${own === "" || own === undefined ? " (anonymous)" : `: ${typeof own === "string" ? own : inspect(own)}`}]`;
    if (name !== type && name !== null) s += ` ${name}`;
    if (tag !== "" && tag !== name && tag !== type) s += ` [${tag}]`;
    return s;
  };
  const errorText = (ctx, e, keys, constructor, tag) => {
    const quiet = (f) => { try { return f(); } catch { return undefined; } };
    let stack = quiet(() => e.stack);
    const message = quiet(() => e.message);
    let name = quiet(() => e.name);
    if (stack && typeof stack !== "string") { ctx.indent += 4; stack = `${Error.prototype.toString.call(e)}\n    ${format(ctx, stack, 0)}`; ctx.indent -= 4; }
    if (!stack) stack = Error.prototype.toString.call(e);
    if (!ctx.o.showHidden) {
      for (const [k, v] of [["stack", null], ["message", message], ["name", name]]) {
        const i = keys.indexOf(k);
        if (i >= 0 && (typeof v !== "string" || stack.includes(v))) keys.splice(i, 1);
      }
    }
    name = String(name ?? "Error");
    const prefix = (fallback) => prefixOf(constructor, tag, fallback).slice(0, -1);
    if (constructor === null || (name.endsWith("Error") && stack.startsWith(name) && (stack.length === name.length || ":\n".includes(stack[name.length])))) {
      let fallback = "Error";
      let size = name.length;
      if (constructor === null) { fallback = (/^([A-Z][a-z_ A-Z0-9[\]()-]+)(?::|\n {4}at)/.exec(stack) ?? /^([a-z_A-Z0-9-]*Error)$/.exec(stack))?.[1] ?? ""; size = fallback.length; fallback ||= "Error"; }
      const p = prefix(fallback);
      if (p !== name) stack = p.includes(name) ? (size === 0 ? `${p}: ${stack}` : p + stack.slice(size)) : `${p} [${name}]${stack.slice(size)}`;
    }
    const from = message && typeof message === "string" && stack.includes(message) ? stack.indexOf(message) + message.length : 0;
    return stack.indexOf("\n    at", from) < 0 ? `[${stack}]` : stack;
  };

  const reduce = (ctx, out, head, tail, kind, depth, v, base) => {
    const o = ctx.o;
    const pad = `\n${" ".repeat(ctx.indent)}`;
    if (o.compact === true) return `${head} ${out.join(", ")} ${tail}`;
    if (typeof o.compact === "number" && o.compact >= 1) {
      const entries = out.length;
      if (kind === 1 && entries > 6) out = columns(ctx, out, v);
      if (ctx.deepest - depth < o.compact && entries === out.length && !head.includes("\n")) {
        let total = 2 * out.length + ctx.indent + head.length - base + 10;
        let fits = total <= o.breakLength;
        for (const s of out) {
          total += o.colors ? width(s) : s.length;
          if (total > o.breakLength || s.includes("\n")) { fits = false; break; }
        }
        if (fits) return out.length === 0 ? `${head}${tail}` : `${head} ${out.join(", ")} ${tail}`;
      }
    }
    return `${head}${pad}  ${out.join(`,${pad}  `)}${pad}${tail}`;
  };
  const columns = (ctx, out, v) => {
    let total = 0;
    let longest = 0;
    let length = out.length;
    if (ctx.o.maxArrayLength < v.length) length--;
    const sizes = new Array(length);
    for (let i = 0; i < length; i++) {
      sizes[i] = width(out[i]);
      total += sizes[i] + 2;
      longest = Math.max(longest, sizes[i]);
    }
    const actual = longest + 2;
    if (!(actual * 3 + ctx.indent < ctx.o.breakLength && (total / actual > 5 || longest <= 6))) return out;
    const biased = Math.max(actual - 3 - Math.sqrt(actual - total / out.length), 1);
    const cols = Math.min(Math.round(Math.sqrt(2.5 * biased * length) / biased), Math.floor((ctx.o.breakLength - ctx.indent) / actual), ctx.o.compact * 4, 15);
    if (cols <= 1) return out;
    const result = [];
    const widths = [];
    for (let i = 0; i < cols; i++) {
      let w = 0;
      for (let j = i; j < length; j += cols) w = Math.max(w, sizes[j]);
      widths.push(w + 2);
    }
    let numeric = true;
    for (let i = 0; i < length && numeric; i++) numeric = typeof v[i] === "number" || typeof v[i] === "bigint";
    for (let i = 0; i < length; i += cols) {
      const max = Math.min(i + cols, length);
      let row = "";
      let j = i;
      for (; j < max - 1; j++) {
        const cell = `${out[j]}, `;
        const pad = " ".repeat(widths[j - i] - sizes[j] - 2);
        row += numeric ? pad + cell : cell + pad;
      }
      row += numeric ? " ".repeat(widths[j - i] - sizes[j] - 2) + out[j] : out[j];
      result.push(row);
    }
    if (ctx.o.maxArrayLength < v.length) result.push(out[length]);
    return result;
  };
  inspect.custom = custom;
  inspect.defaultOptions = {};
  inspect.colors = {};
  inspect.styles = {};

  const builtIn = new Set(["Object", "Function", "Array", "Number", "Boolean", "String", "Symbol", "Date", "Promise", "RegExp", "Error", "AggregateError", "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError", "URIError", "Map", "BigInt", "Set", "WeakMap", "WeakSet", "WeakRef", "Proxy", "ArrayBuffer", "DataView", "Uint8Array", "Int8Array", "Uint16Array", "Int16Array", "Uint32Array", "Int32Array", "Float32Array", "Float64Array", "Uint8ClampedArray", "BigInt64Array", "BigUint64Array", "TypedArray"]);
  // plainText reports whether an object has no text of its own, but the one that all of its kind have.
  const plainText = (v) => {
    if (proxied.has(v)) return true;
    if (typeof v[Symbol.toPrimitive] === "function" && !(v instanceof Date)) return false;
    if (typeof v.toString !== "function") return true;
    if (Object.hasOwn(v, "toString")) return false;
    let p = v;
    do p = Object.getPrototypeOf(p); while (!Object.hasOwn(p, "toString"));
    const d = Object.getOwnPropertyDescriptor(p, "constructor");
    return typeof d?.value === "function" && builtIn.has(d.value.name);
  };
  const formatWith = (options, ...args) => {
    let i = 0;
    let text = "";
    if (typeof args[0] === "string") {
      i = 1;
      text = args.length === 1 || !args[0].includes("%") ? args[0] : args[0].replace(/%[sdifjoOc%]/g, (m) => {
        if (m === "%%") return "%";
        if (i >= args.length) return m;
        const a = args[i++];
        switch (m) {
          case "%s":
            if (typeof a === "bigint") return `${a}n`;
            if (typeof a === "number") return number(a);
            if ((typeof a !== "object" && typeof a !== "function") || a === null) return String(a);
            if (!plainText(a)) return String(a);
            return inspect(a, { ...options, depth: 0, colors: false, compact: 3 });
          case "%d": return typeof a === "bigint" ? `${a}n` : typeof a === "symbol" || typeof a === "object" ? number(Number(typeof a === "symbol" ? NaN : a)) : number(Number(a));
          case "%i": return typeof a === "bigint" ? `${a}n` : typeof a === "symbol" || typeof a === "object" ? "NaN" : number(parseInt(a));
          case "%f": return typeof a === "symbol" ? "NaN" : number(parseFloat(a));
          case "%j": try { return String(JSON.stringify(a)); } catch { return "[Circular]"; }
          case "%o": return inspect(a, { ...options, showHidden: true, depth: 4 });
          case "%O": return inspect(a, options);
        }
        return "";
      });
    }
    for (; i < args.length; i++) {
      if (i > 0) text += " ";
      const a = args[i];
      if (typeof a === "string") text += a;
      else if (typeof a === "number" && !options.colors) text += number(a);
      else if ((typeof a === "boolean" || a === undefined || a === null) && !options.colors) text += String(a);
      else text += inspect(a, options);
    }
    return text;
  };
  // proxied are the proxies that programs make, with what they stand for.
  const proxied = new WeakMap();
  ab.proxied = proxied;
  const PlainProxy = globalThis.Proxy;
  ab.recordProxies = () => {
    const make = (args) => { const p = new PlainProxy(...args); proxied.set(p, args[0]); return p; };
    const Recorded = new PlainProxy(PlainProxy, {
      construct: (_, args) => make(args),
      get: (t, k) => (k === "revocable" ? (target, handler) => { const r = t.revocable(target, handler); proxied.set(r.proxy, target); return r; } : t[k]),
    });
    Object.defineProperty(globalThis, "Proxy", { value: Recorded, writable: true, configurable: true });
  };
  ab.inspect = inspect;
  ab.quote = quote;
  ab.width = width;
  ab.formatWith = formatWith;
  ab.format = (...args) => formatWith({}, ...args);
})();
