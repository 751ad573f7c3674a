// Errors in Node's words: programs look for these texts, and models know them. The engine says what went wrong and about where; names are those of the program's text there.
(() => {
  const ab = __agentbox;
  const host = ab.host;
  const lineAt = (at, ahead = 0) => (at && at[0][0] === "/" ? host.line(at[0], at[1] + ahead) : "");

  // back returns where the bracket that closes at i was opened; forth where the one that opens at i is closed. -1 for neither.
  const back = (s, i) => { for (let depth = 0; i >= 0; i--) { if (")]}".includes(s[i])) depth++; else if ("([{".includes(s[i]) && --depth === 0) return i; } return -1; };
  const forth = (s, i) => {
    for (let depth = 0, quote = ""; i < s.length; i++) {
      const c = s[i];
      if (quote) { if (c === "\\") i++; else if (c === quote) quote = ""; } else if ("'\"`".includes(c)) quote = c;
      else if ("([{".includes(c)) depth++;
      else if (")]}".includes(c) && --depth === 0) return i;
    }
    return -1;
  };
  // spoken is an expression that ends before i, as V8 names it: names, properties and elements as they are, calls without their arguments.
  const spoken = (s, i) => {
    let said = "";
    for (;;) {
      while (i > 0 && /\s/.test(s[i - 1])) i--;
      const c = s[i - 1];
      if (c === ")" || c === "]") {
        const open = back(s, i - 1);
        if (open < 0) return null;
        const before = s.slice(0, open).trimEnd();
        const follows = /[\w$)\]]$/.test(before) && !/\b(return|typeof|await|of|in|new|case|void)$/.test(before);
        if (c === ")") {
          if (!follows) return `(intermediate value)${said}`;
          said = `(...)${said}`;
        } else {
          if (!follows) return `(intermediate value)${said}`;
          const inner = s.slice(open + 1, i - 1).trim();
          const literal = /^(["'])(.*)\1$/.exec(inner);
          said = literal ? `.${literal[2]}${said}` : `[${inner}]${said}`;
        }
        i = open;
        if (before.endsWith("?.")) i = before.length - 2;
        continue;
      }
      const name = /(?:#?[\w$]+)$/.exec(s.slice(0, i));
      if (!name) return said === "" ? null : `(intermediate value)${said}`;
      i -= name[0].length;
      const rest = s.slice(0, i).trimEnd();
      if (/^(super|import)$/.test(name[0])) return `(intermediate value)${said}`;
      said = name[0] + said;
      if (!rest.endsWith(".") || rest.endsWith("..")) return said;
      said = `.${said}`;
      i = rest.length - (rest.endsWith("?.") ? 2 : 1);
    }
  };
  // opened is where the brackets of the call open that the engine means: it names the called, its bracket, or something among the arguments.
  const opened = (s, c) => {
    const from = /^[#\w$]+(?:\??\.[#\w$]+|\[[^\]]*\])*\s*(?:\?\.)?\(/.exec(s.slice(c));
    if (from) return c + from[0].length - 1;
    if (s[c] === "(" && /[\w$)\]]\s*$/.test(s.slice(0, c))) return c;
    for (let depth = 0, i = c - 1; i >= 0; i--) {
      if (")]}".includes(s[i])) depth++;
      else if (s[i] === "{" && s[i - 1] === "$" && depth === 0) continue; // of a template
      else if ("([{".includes(s[i])) { if (depth === 0) return s[i] === "(" && /[\w$)\]]\s*$/.test(s.slice(0, i)) ? i : -1; depth--; }
    }
    return -1;
  };
  const named = (message, at, what) => {
    const s = lineAt(at);
    if (s === "") return message;
    const open = opened(s, at[2] - 1);
    if (open < 0) {
      const made = /\bnew\s+([\w$.]+)\s*;?/.exec(s.slice(Math.max(0, at[2] - 6)));
      return made ? `${made[1]} is not a constructor` : message;
    }
    let said = spoken(s, s.slice(0, open).endsWith("?.") ? open - 2 : open);
    if (!said) return message;
    if (typeof globalThis[said] === "function" && said !== "Symbol" && said !== "BigInt") { // it is one: what is meant is the call around it
      const around = opened(s, Math.max(0, s.lastIndexOf("new ", open) >= 0 && /\bnew\s+[\w$]+$/.test(s.slice(0, open)) ? s.lastIndexOf("new ", open) : open - said.length));
      const outer = around >= 0 && around !== open ? spoken(s, around) : null;
      if (outer) return `${outer} is not a function`;
    }
    const start = s.lastIndexOf(said.split(/[([]/)[0], open);
    if (start >= 0 && /\bnew\s+$/.test(s.slice(0, start))) what = "constructor";
    return `${said} is not a ${what}`;
  };
  // forward is an expression that begins at i.
  const forward = (s, i) => {
    const m = /^(?:await\s+)?((?:#?[\w$]+|\((?:[^()]|\([^()]*\))*\)|\[[^\]]*\]|["'][^"']*["'])(?:\??\.[#\w$]+|\[[^\]]*\]|\((?:[^()]|\([^()]*\))*\))*)/.exec(s.slice(i));
    return m ? m[1] : "";
  };
  const missing = (v) => (v === "null" ? "null" : "undefined");
  const symbol = "(cannot read property Symbol(Symbol.iterator))";
  // value is what the engine knows: null, undefined, or "value".
  const iterable = (value, at, sites) => {
    const any = value === "value" ? "object" : value === "null" ? "object null" : value;
    if (sites[0]?.isNative()) return `${any} is not iterable ${symbol}`;
    const s = lineAt(at);
    const c = (at?.[2] ?? 1) - 1;
    const before = s.slice(0, c);
    const said = (e) => spoken(e, e.length) ?? e;
    if (/\bof\s+$/.test(before)) return `${said(forward(s, c))} is not iterable`;
    if (/\.\.\.\s*$/.test(before)) {
      const open = opened(s, c);
      const called = open >= 0 && /[\w$)\]]\s*$/.test(s.slice(0, open)) && !before.slice(open).includes("[");
      if (called && value === "value") return "Spread syntax requires ...iterable[Symbol.iterator] to be a function";
      return `${said(forward(s, c))} is not iterable${called ? ` (cannot read property ${value})` : ""}`;
    }
    if (/\byield\s*\*\s*$/.test(before)) return `${any} is not iterable ${symbol}`;
    const rest = s.slice(c);
    const pattern = /(?:(?:const|let|var)\s*|[;{(]\s*)\[[^=]*\]\s*=\s*(?!=)/.exec(rest);
    const parameter = /^[^{;]*?\(\s*(?:[\w$\s,]*,\s*)?\[/.exec(rest);
    if (parameter && (!pattern || parameter[0].length < pattern.index + 2) && !/^\w+\(\s*\(/.test(rest)) return `${any} is not iterable ${symbol}`;
    if (pattern) {
      const e = forward(rest, pattern.index + pattern[0].length);
      if (e.endsWith(")")) { const f = said(e).replace(/\(\.\.\.\)$/, ""); return `${f} is not a function or its return value is not iterable`; }
      if (e !== "") return `${said(e)} is not iterable`;
    }
    return value === "value" ? `object is not iterable ${symbol}` : `${value} is not iterable`;
  };
  // destructured words what the engine says of a pattern of properties without a value.
  const destructured = (message, at, sites) => {
    if (sites[0]?.isNative() || !at || at[0][0] !== "/") return message;
    let s = lineAt(at).slice(at[2] - 1);
    for (let n = 1; n < 6 && !/\}\s*(=(?!=)|\))/.test(s); n++) s += `\n${lineAt(at, n)}`;
    const parameter = /^(?:async\s*)?(?:function\b\s*\*?\s*)?[\w$]*\s*\((?:[\w$\s,=]*,)?\s*(\{)/.exec(s);
    const declared = /(?:\b(?:const|let|var)\s*|\(\s*)(\{)(?=[^;]*?\}\s*=(?!=|>))/.exec(s);
    const loop = /\b(?:const|let|var)\s*(\{)[^;]*?\}\s*of\b/.exec(s);
    const m = parameter && (!declared || parameter.index + parameter[0].length <= declared.index + declared[0].length) && !/^[\w$]+\(\s*\{[^}]*\}\s*\)\s*[;)]/.test(s) ? parameter : declared ?? loop;
    if (!m) return message;
    const open = m.index + m[0].length - 1;
    const close = forth(s, open);
    if (close < 0) return message;
    const inner = s.slice(open + 1, close).trim();
    let e = "undefined";
    if (m !== parameter && m !== loop) { const eq = s.slice(close + 1).search(/\S/) + close + 2; e = forward(s, eq + s.slice(eq).search(/\S/)); }
    if (m === loop) e = ".for";
    const said = spoken(e, e.length) ?? "(intermediate value)";
    const v = missing(e);
    const nested = /^([\w$]+)\s*:\s*\{\s*([\w$]+)/.exec(inner);
    if (nested && e !== "undefined" && e !== "null") return `Cannot read properties of undefined (reading '${nested[2]}')`;
    const first = /^(?:([\w$]+)|(["'])(.*?)\2)/.exec(inner);
    if (!first) return `Cannot destructure '${said}' as it is ${v}.`;
    const name = first[1] ?? first[3];
    if (/^[\w$]+\s*=(?!=)/.test(inner)) return `Cannot read properties of ${v} (reading '${name}')`;
    return `Cannot destructure property '${name}' of '${said}' as it is ${v}.`;
  };
  // placed has the frames of a stack name the columns that V8 names: that of new where an error is made, and of the last name of what is called.
  // With called, the first frame is one that calls too: what made the error is not the program's.
  ab.placed = (text, called = false) => {
    const lines = text.split("\n");
    let above = -1; // the frame that the one before was called from
    for (let i = 0, first = !called; i < lines.length; i++) {
      const m = /^( {4}at (?:.* \()?)(\/[^\s()]*):(\d+):(\d+)(\)?)$/.exec(lines[i]);
      if (!m) { if (lines[i] !== "") { first = false; above = -1; } continue; }
      const s = host.line(m[2], Number(m[3]));
      let c = Number(m[4]) - 1;
      const make = /\bnew\s+$/.exec(s.slice(0, c));
      if (make && /^[\w$.]+\s*(\(|;|$|,|\))/.test(s.slice(c))) {
        c = make.index;
        if (above >= 0) lines[above] = lines[above].replace(/^( {4}at )([A-Z][\w$]* \()/, "$1new $2");
      } else if (first) {
        const open = opened(s, c);
        const error = open < 0 ? null : /\bnew\s+[\w$.]*Error\s*$/.exec(s.slice(0, open));
        if (error) c = error.index;
      } else {
        const open = opened(s, c);
        const name = open < 0 ? null : /#?([\w$]+)\s*(?:\?\.)?$/.exec(s.slice(0, open));
        if (name) {
          c = name.index;
          const made = /\bnew\s+(?:[\w$]+\.)*$/.exec(s.slice(0, c));
          if (made) { c = made.index; if (above >= 0) lines[above] = lines[above].replace(/^( {4}at )([A-Z][\w$]* \()/, "$1new $2"); }
        }
      }
      lines[i] = `${m[1]}${m[2]}:${m[3]}:${c + 1}${m[5]}`;
      first = false;
      above = i;
    }
    return lines.join("\n");
  };
  // constant reports whether what was assigned to is a name, and not a property.
  const constant = (name, at) => {
    if (!at || at[0][0] !== "/") return false;
    const plain = name.replace(/\$/g, "\\$&");
    return /^[\w$]+$/.test(name) && new RegExp(`(^|[^.\\w$])${plain}\\s*([-+*/%&|^]|\\*\\*|<<|>>>?|&&|\\|\\||\\?\\?)?(=(?!=)|\\+\\+|--)|(\\+\\+|--)${plain}(?![\\w$.])`).test(lineAt(at));
  };
  // assigned is the property that the program sets near where the engine says.
  const assigned = (at) => {
    const s = lineAt(at);
    const all = [...s.matchAll(/(?:\.([\w$]+)|\[["']([^"']*)["']\])\s*(?:[-+*/%&|^]|\*\*|&&|\|\||\?\?)?=(?![=>])/g)];
    const near = all.filter((m) => m.index <= (at?.[2] ?? 1) + 1).at(-1) ?? all[0];
    return near ? near[1] ?? near[2] : null;
  };
  const native = (sites) => (sites[0]?.isNative() ? sites[0].getFunctionName() : "");
  const digits = { toFixed: "toFixed() digits argument must be between 0 and 100", toPrecision: "toPrecision() argument must be between 1 and 100", toExponential: "toExponential() argument must be between 0 and 100", toString: "toString() radix must be between 2 and 36" };
  const notObject = { ownKeys: "Reflect.ownKeys called on non-object", defineProperty: "Object.defineProperty called on non-object", defineProperties: "Object.defineProperties called on non-object", Proxy: "Cannot create proxy with a non-object as target or handler", setPrototypeOf: "Object prototype may only be an Object or null: undefined", getPrototypeOf: "Reflect.getPrototypeOf called on non-object" };
  const callbacks = new Set(["map", "filter", "forEach", "reduce", "reduceRight", "some", "every", "find", "findIndex", "findLast", "findLastIndex", "flatMap", "from"]);
  // Each is the engine's text and what Node says: of what was matched, the place, and the frames.
  const worded = {
    TypeError: [
      [/^cannot (read|set) property 'Symbol\.iterator' of (null|undefined)$/, ([, , v], at, sites) => iterable(v, at, sites)],
      [/^value is not iterable$/, (_, at, sites) => iterable("value", at, sites)],
      [/^cannot read property '(.*)' of (null|undefined)$/s, ([, p, v]) => `Cannot read properties of ${v} (reading '${p}')`],
      [/^cannot set property '(.*)' of (null|undefined)$/s, ([, p, v]) => `Cannot set properties of ${v} (setting '${p}')`],
      [/^Cannot convert undefined or null to object$/, ([m], at, sites) => destructured(m, at, sites)],
      [/^'(.*)' is read-only$/s, ([, v], at) => (constant(v, at) ? "Assignment to constant variable." : `Cannot assign to read only property '${v}' of object '${/^\d+$/.test(v) ? "[object Array]" : "#<Object>"}'`)],
      [/^empty array$/, () => "Reduce of empty array with no initial value"],
      [/^cannot convert BigInt to number$/, (_, at, sites) => (native(sites) ? "Cannot convert a BigInt value to a number" : "Cannot mix BigInt and other types, use explicit conversions")],
      [/^bigint argument with unary \+$/, () => "Cannot convert a BigInt value to a number"], [/^BigInt are forbidden in JSON\.stringify$/, () => "Do not know how to serialize a BigInt"],
      [/^invalid 'in' operand$/, (_, at) => { const m = /(["'])([^"']*)\1\s+in\s+(.*)$/.exec(lineAt(at).slice(Math.max(0, (at?.[2] ?? 1) - 40))); return `Cannot use 'in' operator to search for '${m ? m[2] : "key"}' in ${m ? forward(m[3], 0).replace(/^(["'])(.*)\1$/, "$2") : "undefined"}`; }],
      [/^cannot convert symbol to string$/, () => "Cannot convert a Symbol value to a string"], [/^cannot convert symbol to number$/, () => "Cannot convert a Symbol value to a number"],
      [/^circular reference$/, () => "Converting circular structure to JSON"],
      [/^object is not extensible$/, (_, at) => { const p = assigned(at); return p ? `Cannot add property ${p}, object is not extensible` : "Cannot add property, object is not extensible"; }],
      [/^no setter for property$/, (_, at) => `Cannot set property ${assigned(at) ?? ""} of #<Object> which has only a getter`],
      [/^could not delete property$/, (_, at) => { const m = /\bdelete\s+[\w$.]+?(?:\.([\w$]+)|\[["']?([^"'\]]*)["']?\])\s*[;,)\n}]?/.exec(`${lineAt(at)}\n`); return `Cannot delete property '${m ? m[1] ?? m[2] : ""}' of #<Object>`; }],
      [/^property is not configurable$/, (_, at) => { const m = /definePropert(?:y|ies)\(\s*[^,]+,\s*["']([^"']*)["']/.exec(lineAt(at).slice(Math.max(0, (at?.[2] ?? 1) - 40))); return m ? `Cannot redefine property: ${m[1]}` : "Cannot redefine property"; }],
      [/^circular prototype chain$/, () => "Cyclic __proto__ value"], [/^object prototype may only be an Object or null$/, () => "Object prototype may only be an Object or null: undefined"],
      [/^invalid 'instanceof' right operand$/, () => "Right-hand side of 'instanceof' is not callable"],
      [/^class constructors must be invoked with 'new'$/, (_, at, sites) => `Class constructor ${sites[0]?.getFunctionName() ?? ""} cannot be invoked without 'new'`],
      [/^must be called with new$/, (_, at, sites) => (native(sites) === "Promise" ? "Promise constructor cannot be invoked without 'new'" : `Constructor ${native(sites)} requires 'new'`)],
      [/^parent class must be constructor$/, (_, at) => { const m = /\bextends\s+([^{]+?)\s*\{/.exec(lineAt(at)); return `Class extends value ${m && /^(\d+|null|["'`].*)$/.test(m[1]) ? m[1] : "undefined"} is not a constructor or null`; }],
      [/^private class field '(.*)' does not exist$/, ([, p], at) => (new RegExp(`[\\w$)\\]]\\.${p}\\s*[-+*/]?=(?!=)`).test(lineAt(at)) ? `Cannot write private member ${p} to an object whose class did not declare it` : `Cannot read private member ${p} from an object whose class did not declare it`)],
      [/^toPrimitive$/, () => "Cannot convert object to primitive value"], [/^cannot invoke a running generator$/, () => "Generator is already running"],
      [/^invalid value used as WeakMap key$/, () => "Invalid value used as weak map key"], [/^invalid value used as WeakSet key$/, () => "Invalid value used in weak set"],
      [/^regexp must have the 'g' flag$/, (_, at, sites) => `String.prototype.${native(sites)} called with a non-global RegExp argument`],
      [/^not an object$/, ([m], at, sites) => notObject[native(sites)] ?? (/^(Map|WeakMap|fromEntries)$/.test(native(sites)) ? "Iterator value undefined is not an entry object" : m)],
      [/^not a function$/, ([m], at, sites) => {
        const f = native(sites);
        if (f === "Promise") return "Promise resolver undefined is not a function";
        if (f === "sort" || f === "toSorted") return "The comparison function must be either a function or undefined";
        if (f === "bind") return "Bind must be called on a function";
        if (callbacks.has(f)) return "undefined is not a function";
        return f ? m : named(m, at, "function");
      }],
      [/^not a constructor$/, ([m], at) => named(m, at, "constructor")],
    ],
    ReferenceError: [
      [/^this is not initialized$/, () => "Must call super constructor in derived class before accessing 'this' or returning from derived constructor"], [/^(.*) is not initialized$/s, ([, v]) => `Cannot access '${v}' before initialization`],
    ],
    SyntaxError: [
      [/^unexpected token in expression: '(.+)'$/s, ([, t]) => `Unexpected token '${t}'`], [/^unexpected token in expression: ''$/, () => "Unexpected end of input"], [/^unexpected token: '(.+)'$/s, ([, t]) => `Unexpected token '${t}'`],
      [/^invalid regular expression flags$/, () => "Invalid flags supplied to RegExp constructor"], [/^invalid BigInt literal$/, () => "Cannot convert the text to a BigInt"],
    ],
    RangeError: [
      [/^Date value is NaN$/, () => "Invalid time value"], [/^invalid number of digits$/, (_, at, sites) => digits[native(sites)] ?? digits.toFixed], [/^bad normalization form$/, () => "The normalization form should be one of NFC, NFD, NFKC, NFKD."],
      [/^invalid array length$/, () => "Invalid array length"], [/^invalid repeat count$/, () => "Invalid count value"], [/^invalid code point$/, () => "Invalid code point"], [/^BigInt division by zero$/, () => "Division by zero"],
      [/^cannot convert to BigInt: not an integer$/, () => "The number cannot be converted to a BigInt because it is not an integer"], [/^out of bound$/, () => "Offset is outside the bounds of the DataView"], [/^invalid array index$/, () => "Invalid typed array length"],
      [/^invalid length$/, ([m], at, sites) => { const n = globalThis[native(sites)]?.BYTES_PER_ELEMENT; return n ? `byte length of ${native(sites)} should be a multiple of ${n}` : m; }],
    ],
    URIError: [[/^(?!URI malformed)/, () => "URI malformed"]],
  };
  const kinds = new Map([TypeError, ReferenceError, RangeError, URIError, SyntaxError].map((K) => [K.prototype, K.name]));
  ab.asNode = (error, at, sites) => {
    const own = Object.getOwnPropertyDescriptor(error, "message");
    if (typeof own?.value !== "string" || !own.writable) return;
    for (const [form, say] of worded[kinds.get(Object.getPrototypeOf(error))] ?? []) {
      const m = form.exec(own.value);
      if (!m) continue;
      if (!thrownBy(at, sites)) error.message = say(m, at, sites);
      return;
    }
  };
  // thrownBy reports whether the program made the error itself: its text stays.
  const thrownBy = (at, sites) => !sites[0]?.isNative() && /^[\w$.]*Error\s*\(/.test(lineAt(at).slice((at?.[2] ?? 1) - 1));

  // refined has a function of the language word its errors with what it was given: say returns the text, or undefined.
  const refined = (o, name, say) => {
    const was = o[name];
    const f = { [name](a, b, c) {
      try { return was.call(this, a, b, c); } catch (e) {
        let text;
        try { text = say(e, this, a, b, c); } catch { /* it stays as it is */ }
        if (text !== undefined) reworded(e, text);
        throw e;
      }
    } }[name];
    Object.defineProperty(f, "length", { value: was.length, configurable: true });
    Object.defineProperty(o, name, { value: f, writable: true, configurable: true });
  };
  const reworded = (e, text) => {
    const old = ab.headline(e);
    e.message = text;
    if (typeof e.stack === "string" && e.stack.startsWith(old)) Object.defineProperty(e, "stack", { value: ab.headline(e) + e.stack.slice(old.length), writable: true, configurable: true });
  };
  // mistake is what V8 says of a text that is no JSON.
  const mistake = (s) => {
    let i = 0;
    const place = (n) => { const lines = s.slice(0, n).split("\n"); return `in JSON at position ${n} (line ${lines.length} column ${lines.at(-1).length + 1})`; };
    const stop = (text) => { throw { text }; };
    const skip = () => { while (i < s.length && " \t\n\r".includes(s[i])) i++; };
    const token = () => {
      if (i >= s.length) stop("Unexpected end of JSON input");
      if (s[i] === '"') stop(`Unexpected string ${place(i)}`);
      if (/[0-9-]/.test(s[i])) stop(`Unexpected number ${place(i)}`);
      if (["NaN", "Infinity", "undefined", "[object Object]"].includes(s)) stop(`"${s}" is not valid JSON`);
      const c = String.fromCodePoint(s.codePointAt(i));
      if (s.length <= 20) stop(`Unexpected token '${c}', "${s}" is not valid JSON`);
      const [from, to] = [i < 10 ? 0 : i - 10, i >= s.length - 10 ? s.length : i + 10];
      stop(`Unexpected token '${c}', ${from > 0 ? "..." : ""}"${s.slice(from, to)}"${to < s.length ? "..." : ""} is not valid JSON`);
    };
    const string = () => {
      for (i++; ; i++) {
        if (i >= s.length) stop(`Unterminated string ${place(i)}`);
        if (s[i] === '"') { i++; return; }
        if (s[i] < " ") stop(`Bad control character in string literal ${place(i)}`);
        if (s[i] !== "\\") continue;
        i++;
        if (i >= s.length) stop(`Unterminated string ${place(i)}`);
        if (s[i] === "u") { for (let n = 0; n < 4; n++) { i++; if (!/[0-9a-f]/i.test(s[i] ?? "")) stop(i >= s.length ? `Bad Unicode escape ${place(i)}` : `Bad Unicode escape ${place(i)}`); } } else if (!'"\\/bfnrt'.includes(s[i])) stop(`Bad escaped character ${place(i)}`);
      }
    };
    const number = () => {
      if (s[i] === "-") { i++; if (!/[0-9]/.test(s[i] ?? "")) stop(`No number after minus sign ${place(i)}`); }
      if (s[i] === "0") { i++; if (/[0-9]/.test(s[i] ?? "")) stop(`Unexpected number ${place(i)}`); } else while (/[0-9]/.test(s[i] ?? "")) i++;
      if (s[i] === ".") { i++; if (!/[0-9]/.test(s[i] ?? "")) stop(`Unterminated fractional number ${place(i)}`); while (/[0-9]/.test(s[i] ?? "")) i++; }
      if (/[eE]/.test(s[i] ?? "")) { i++; if (/[-+]/.test(s[i] ?? "")) i++; if (!/[0-9]/.test(s[i] ?? "")) stop(`Exponent part is missing a number ${place(i)}`); while (/[0-9]/.test(s[i] ?? "")) i++; }
    };
    const value = () => {
      skip();
      const c = s[i];
      if (c === '"') string();
      else if (c !== undefined && /[0-9-]/.test(c)) number();
      else if (c === "{") {
        i++;
        skip();
        if (s[i] === "}") { i++; return; }
        if (s[i] !== '"') stop(`Expected property name or '}' ${place(i)}`);
        for (;;) {
          string();
          skip();
          if (s[i] !== ":") stop(`Expected ':' after property name ${place(i)}`);
          i++;
          value();
          skip();
          if (s[i] === "}") { i++; return; }
          if (s[i] !== ",") stop(`Expected ',' or '}' after property value ${place(i)}`);
          i++;
          skip();
          if (s[i] !== '"') stop(`Expected double-quoted property name ${place(i)}`);
        }
      } else if (c === "[") {
        i++;
        skip();
        if (s[i] === "]") { i++; return; }
        for (;;) {
          value();
          skip();
          if (s[i] === "]") { i++; return; }
          if (s[i] !== ",") stop(`Expected ',' or ']' after array element ${place(i)}`);
          i++;
        }
      } else {
        const word = { t: "true", f: "false", n: "null" }[c];
        if (!word) token();
        for (const x of word) { if (s[i] !== x) token(); i++; }
      }
    };
    try {
      value();
      skip();
      if (i < s.length) stop(`Unexpected non-whitespace character after ${place(i).slice(3)}`);
    } catch (e) { return e.text; }
    return undefined;
  };
  ab.jsonMistake = mistake;
  refined(JSON, "parse", (e, _, s) => (e instanceof SyntaxError ? mistake(String(s)) : undefined));
  const kindOf = (o) => `object with constructor '${o.constructor?.name ?? "Object"}'`;
  const keyed = (k) => (typeof k === "number" ? `index ${k}` : `property '${k}'`);
  // circle is how an object comes back to itself: the objects on the way, each with the key that leads to it.
  const circle = (v, path) => {
    if (v === null || typeof v !== "object") return null;
    if (typeof v.toJSON === "function") return null;
    for (const k of Array.isArray(v) ? v.keys() : Object.keys(v)) {
      const x = v[k];
      const i = path.findIndex((p) => p[1] === x);
      if (i >= 0) return [path.slice(i), k];
      const found = circle(x, [...path, [k, x]]);
      if (found) return found;
    }
    return null;
  };
  refined(JSON, "stringify", (e, _, v) => {
    if (!(e instanceof TypeError) || !e.message.startsWith("Converting circular")) return undefined;
    const found = circle(v, [[null, v]]);
    if (!found) return undefined;
    const [way, last] = found;
    const lines = way.slice(1).map(([k, o]) => `\n    |     ${keyed(k)} -> ${kindOf(o)}`);
    if (lines.length > 3) lines.splice(2, lines.length - 3, "\n    |     ...");
    return `Converting circular structure to JSON\n    --> starting at ${kindOf(way[0][1])}${lines.join("")}\n    --- ${keyed(last)} closes the circle`;
  });
  const shownValue = (v) => (typeof v === "string" ? v : typeof v === "object" && v !== null ? (Array.isArray(v) ? v.join() : "#<Object>") : typeof v === "function" ? String(v) : String(v));
  refined(String.prototype, "repeat", (e, _, n) => (e.message === "Invalid count value" ? `Invalid count value: ${shownValue(n)}` : undefined));
  refined(Object, "setPrototypeOf", (e, _, o, p) => (e.message.startsWith("Object prototype may") ? `Object prototype may only be an Object or null: ${shownValue(p)}` : undefined));
  refined(Object, "create", (e, _, p) => (e.message.startsWith("Object prototype may") ? `Object prototype may only be an Object or null: ${shownValue(p)}` : undefined));
  refined(Object, "defineProperty", (e, _, o, k) => (e.message.startsWith("Cannot redefine") ? `Cannot redefine property: ${String(k)}` : undefined));
  const nonIterable = (v) => (v === undefined ? "undefined" : v === null ? "object null" : typeof v === "object" ? "object" : typeof v === "function" ? "function" : `${typeof v} ${typeof v === "string" ? JSON.stringify(v) : String(v)}`);
  const entries = (e, v) => {
    if (e.message.includes("is not iterable")) return `${nonIterable(v)} is not iterable ${symbol}`;
    if (e.message.startsWith("Iterator value")) { for (const x of v) if (x === null || typeof x !== "object") return `Iterator value ${shownValue(x)} is not an entry object`; }
    return undefined;
  };
  refined(Object, "fromEntries", (e, _, v) => entries(e, v));
  // constructed has a constructor of the language word its errors so.
  const constructed = (name, say) => {
    const was = globalThis[name];
    const told = (f, args) => { try { return f(); } catch (e) { let text; try { text = say(e, ...args); } catch { /* it stays */ } if (text !== undefined) reworded(e, text); throw e; } };
    const p = new Proxy(was, {
      apply: (t, self, args) => told(() => Reflect.apply(t, self, args), args),
      construct: (t, args, target) => told(() => Reflect.construct(t, args, target === p ? t : target), args),
    });
    Object.defineProperty(was.prototype, "constructor", { value: p, writable: true, configurable: true });
    Object.defineProperty(globalThis, name, { value: p, writable: true, configurable: true });
  };
  const anyOf = Promise.any;
  Object.defineProperty(Promise, "any", { value: { any(list) {
    return anyOf.call(this, list).then(undefined, (e) => { if (e instanceof AggregateError && e.message === "") Object.defineProperty(e, "message", { value: "All promises were rejected", writable: true, configurable: true }); throw e; });
  } }.any, writable: true, configurable: true });
  constructed("BigInt", (e, v) => {
    if (e instanceof SyntaxError) return `Cannot convert ${v} to a BigInt`;
    if (e instanceof RangeError) return `The number ${v} cannot be converted to a BigInt because it is not an integer`;
    return e instanceof TypeError && /BigInt$/.test(e.message) ? `Cannot convert ${shownValue(v)} to a BigInt` : undefined;
  });
  const patterns = [
    [/^expecting '\)'$/, "Unterminated group"], [/^invalid class range$/, "Range out of order in character class"], [/^nothing to repeat$/, "Nothing to repeat"], [/^duplicate group name$/, "Duplicate capture group name"], [/^invalid repetition count$/, "numbers out of order in {} quantifier"],
    [/^unknown unicode property name$/, "Invalid property name"], [/^invalid group name$/, "Invalid capture group name"], [/^extraneous characters at the end$/, "Unmatched ')'"], [/^invalid group$/, "Invalid group"], [/^invalid escape sequence in regular expression$/, "Invalid escape"], [/^syntax error$/, "Lone quantifier brackets"],
    [/^group name not defined$/, "Invalid named reference"], [/^back reference out of range in regular expression$/, "Invalid escape"], [/^too many captures/, "Too many captures"],
  ];
  constructed("RegExp", (e, p, flags = "") => {
    if (!(e instanceof SyntaxError)) return undefined;
    if (e.message.startsWith("Invalid flags")) return `Invalid flags supplied to RegExp constructor '${flags}'`;
    const source = p instanceof RegExp ? p.source : String(p);
    let said = patterns.find(([form]) => form.test(e.message))?.[1];
    if (e.message === "unexpected end") said = /(^|[^\\])(\\\\)*\\$/.test(source) ? "\\ at end of pattern" : "Unterminated character class";
    return `Invalid regular expression: /${source}/${flags}: ${said ?? e.message}`;
  });
})();
