// vm: code with another global object. What it declares with var and function becomes the object's own.
(() => {
  const ab = __agentbox;
  const run = globalThis.eval;
  const own = new Set(["Object", "Function", "Array", "Number", "parseFloat", "parseInt", "Infinity", "NaN", "undefined", "Boolean", "String", "Symbol", "Date", "Promise", "RegExp", "Error", "AggregateError", "EvalError", "RangeError", "ReferenceError", "SyntaxError",
    "TypeError", "URIError", "JSON", "Math", "Atomics", "Reflect", "Map", "BigInt", "Set", "WeakMap", "WeakSet", "WeakRef", "Proxy", "ArrayBuffer", "SharedArrayBuffer", "Uint8Array", "Int8Array", "Uint16Array", "Int16Array", "Uint32Array", "Int32Array", "Float32Array",
    "Float64Array", "Uint8ClampedArray", "BigUint64Array", "BigInt64Array", "DataView", "decodeURI", "decodeURIComponent", "encodeURI", "encodeURIComponent", "escape", "unescape", "isFinite", "isNaN", "eval", "Intl", "Iterator"]);
  const contexts = new WeakSet();
  // scope is what code of a context sees: the object's own, and the language's.
  const scope = (o, code) => new Proxy(o, {
    has: (_, k) => typeof k === "string" && k !== "eval" && k !== "__vm_code",
    get: (_, k) => {
      if (k === Symbol.unscopables) return undefined;
      if (k in o) return o[k];
      if (k === "globalThis") return o;
      if (own.has(k)) return globalThis[k];
      if (new RegExp(`typeof\\s*\\(?\\s*${k.replace(/\$/g, "\\$")}\\b`).test(code)) return undefined;
      throw new ReferenceError(`${k} is not defined`);
    },
    set: (_, k, v) => { o[k] = v; return true; },
  });
  // skipped returns where a text goes on behind a string, a template or a comment that begins at i; i itself where there is none.
  const skipped = (code, i) => {
    const c = code[i];
    if (c === "'" || c === '"' || c === "`") {
      for (let j = i + 1; j < code.length; j++) { if (code[j] === "\\") j++; else if (code[j] === c) return j + 1; }
      return code.length;
    }
    if (c === "/" && code[i + 1] === "/") { const end = code.indexOf("\n", i); return end < 0 ? code.length : end; }
    if (c === "/" && code[i + 1] === "*") { const end = code.indexOf("*/", i + 2); return end < 0 ? code.length : end + 2; }
    return i;
  };
  // closing returns where the bracket that opens at i is closed.
  const closing = (code, i) => {
    for (let depth = 0; i < code.length;) {
      const next = skipped(code, i);
      if (next !== i) { i = next; continue; }
      if ("{([".includes(code[i])) depth++;
      else if ("})]".includes(code[i]) && --depth === 0) return i;
      i++;
    }
    return code.length - 1;
  };
  const declared = /^(?:async\s+)?function(?:\s*\*\s*|\s+)([\w$]+)\s*\(/;
  // hoisted has the functions that are declared at the top assigned first: those of a text that is evaluated would be nobody's.
  const hoisted = (code) => {
    let first = "";
    let rest = "";
    for (let i = 0, last = ";"; i < code.length;) {
      const next = skipped(code, i);
      if (next !== i) { rest += code.slice(i, next); i = next; continue; }
      const m = ";}\n".includes(last) && (code[i] === "f" || code[i] === "a") ? declared.exec(code.slice(i)) : null;
      if (m) {
        const params = closing(code, i + m[0].length - 1);
        const end = closing(code, code.indexOf("{", params)) + 1;
        const text = code.slice(i, end);
        first += `${m[1]} = ${text.replace(/\n/g, " ").includes("//") ? text : text.replace(/\n/g, " ")};`;
        rest += text.replace(/[^\n]/g, "");
        i = end;
        continue;
      }
      if ("{([".includes(code[i])) { const end = closing(code, i) + 1; rest += code.slice(i, end); last = code[end - 1]; i = end; continue; }
      if (!/\s/.test(code[i]) || code[i] === "\n") last = code[i] === "\n" && !";}\n".includes(last) ? (/[\w$)\]'"`]/.test(last) ? "\n" : last) : code[i];
      rest += code[i++];
    }
    return first + rest;
  };
  const inside = (code, o) => Function("__vm_scope", "__vm_code", "with (__vm_scope) { return eval(__vm_code); }").call(o, scope(o, code), hoisted(code));
  const textOf = (code) => { if (typeof code !== "string") throw ab.argument("code", "string", code); return code; };
  const contextOf = (o) => { if (!contexts.has(o)) throw ab.argument("contextifiedObject", "vm.Context", o); return o; };
  const createContext = (o = {}) => { if (typeof o !== "object" || o === null) throw ab.argument("contextObject", "object", o); contexts.add(o); return o; };
  class Script {
    constructor(code) { this.code = textOf(code); try { Function(hoisted(this.code)); } catch (e) { if (!/return/.test(e.message)) throw e; } }
    runInThisContext() { return run(this.code); }
    runInContext(o) { return inside(this.code, contextOf(o)); }
    runInNewContext(o) { return inside(this.code, createContext(o)); }
    createCachedData() { return Buffer.alloc(0); }
  }
  ab.define("vm", () => ({
    Script, createContext, isContext: (o) => contexts.has(o), createScript: (code) => new Script(code),
    runInThisContext: (code) => run(textOf(code)), runInContext: (code, o) => inside(textOf(code), contextOf(o)), runInNewContext: (code, o) => inside(textOf(code), createContext(o)),
    compileFunction: (code, params = []) => Function(...params, textOf(code)),
    SourceTextModule: class SourceTextModule { constructor() { throw ab.lacking("vm modules", "vm.SourceTextModule is not available in a nano space"); } },
  }));
})();
