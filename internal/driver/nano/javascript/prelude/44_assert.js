// assert, with Node's texts and differences.
(() => {
  const ab = __agentbox;
  const custom = Symbol.for("nodejs.util.inspect.custom");
  const bad = (code, message, Type = TypeError) => ab.error(Type, code, message);
  const isError = (e) => e instanceof Error;
  const same = ab.same;
  const heads = {
    deepStrictEqual: "Expected values to be strictly deep-equal:", partialDeepStrictEqual: "Expected values to be partially and strictly deep-equal:", strictEqual: "Expected values to be strictly equal:",
    strictEqualObject: 'Expected "actual" to be reference-equal to "expected":', deepEqual: "Expected values to be loosely deep-equal:", notDeepStrictEqual: 'Expected "actual" not to be strictly deep-equal to:',
    notStrictEqual: 'Expected "actual" to be strictly unequal to:', notStrictEqualObject: 'Expected "actual" not to be reference-equal to "expected":', notDeepEqual: 'Expected "actual" not to be loosely deep-equal to:',
    notIdentical: "Values have same structure but are not reference-equal:", notDeepEqualUnequal: "Expected values not to be loosely deep-equal:",
  };
  const shown = (v) => ab.inspect(v, { compact: false, customInspect: false, depth: 1000, maxArrayLength: Infinity, showHidden: false, sorted: true, getters: true });
  const isObject = (v) => typeof v === "object" && v !== null;

  // difference says which lines are of both, only of the first (1) or only of the second (-1), by Myers' algorithm. The last line comes first.
  const difference = (a, b, commas) => {
    const most = a.length + b.length;
    const equal = (x, y) => x === y || (commas && (`${x},` === y || x === `${y},`));
    const down = (v, k, level) => k === -level || (k !== level && v[k - 1 + most] < v[k + 1 + most]);
    const furthest = new Int32Array(2 * most + 2);
    const trace = [];
    search: for (let level = 0; level <= most; level++) {
      trace.push(furthest.slice());
      for (let k = -level; k <= level; k += 2) {
        let x = down(furthest, k, level) ? furthest[k + 1 + most] : furthest[k - 1 + most] + 1;
        while (x < a.length && x - k < b.length && equal(a[x], b[x - k])) x++;
        furthest[k + most] = x;
        if (x >= a.length && x - k >= b.length) break search;
      }
    }
    const out = [];
    let [x, y] = [a.length, b.length];
    for (let level = trace.length - 1; level >= 0; level--) {
      const v = trace[level];
      const k = x - y;
      const before = down(v, k, level) ? k + 1 : k - 1;
      const fromX = v[before + most];
      const fromY = fromX - before;
      while (x > fromX && y > fromY) { x--; y--; out.push([0, commas && !a[x].endsWith(",") ? b[y] : a[x]]); }
      if (level > 0) out.push(x > fromX ? [1, a[--x]] : [-1, b[--y]]);
    }
    return out;
  };
  const kept = 5; // lines of both in a row that are shown
  const printed = (lines) => {
    let text = "";
    let skipped = false;
    let run = 0;
    for (let i = lines.length - 1; i >= 0; i--) {
      const [kind, line] = lines[i];
      if (kind !== 0 && run > 0) {
        if (run === kept + 2) text += `  ${lines[i + 2][1]}\n`;
        if (run > kept + 2) { text += "...\n"; skipped = true; }
        if (run > kept) text += `  ${lines[i + 1][1]}\n`;
        run = 0;
      }
      if (kind === 0) { if (run < kept) text += `  ${line}\n`; run++; } else text += `${kind > 0 ? "+" : "-"} ${line}\n`;
    }
    return [`\n${text.trimEnd()}`, skipped];
  };
  const compared = (actual, expected, operator, message, how) => {
    if (operator === "strictEqual" && ((isObject(actual) && isObject(expected)) || (typeof actual === "function" && typeof expected === "function"))) operator = "strictEqualObject";
    const [x, y] = [shown(actual), shown(expected)];
    const [left, right] = [x.split("\n"), y.split("\n")];
    let head = "+ actual - expected";
    let skipped = false;
    let body;
    if (left.length === 1 && right.length === 1 && !(isObject(actual) && isObject(expected))) {
      const size = x.length + y.length - (typeof actual === "string" ? 2 : 0) - (typeof expected === "string" ? 2 : 0);
      if (size <= 12 && (actual !== 0 || expected !== 0)) { body = `${x} !== ${y}`; head = ""; } else {
        body = `\n+ ${x}\n- ${y}`;
        if (typeof actual === "string" && typeof expected === "string" && x.length + y.length <= 80) {
          const i = [...x].findIndex((c, n) => c !== y[n]);
          if (i >= 3) body += `\n${" ".repeat(i + 2)}^`;
        }
      }
    } else if (x === y) {
      operator = "notIdentical";
      head = "";
      body = left.length > 50 && how !== "full" ? ((skipped = true), `${left.slice(0, 50).join("\n")}\n...}`) : x;
    } else [body, skipped] = printed(difference(left, right, isObject(actual)));
    return `${message || heads[operator]}\n${head}${skipped ? "\n... Skipped lines" : ""}\n${body}\n`;
  };
  const worded = (actual, expected, operator, how) => {
    const cut = (s, n) => (s.length > n && how !== "full" ? `${s.slice(0, n - 3)}...` : s);
    if (operator === "notDeepStrictEqual" || operator === "notStrictEqual") {
      const base = operator === "notStrictEqual" && (isObject(actual) || typeof actual === "function") ? heads.notStrictEqualObject : heads[operator];
      let lines = shown(actual).split("\n");
      if (lines.length > 50 && how !== "full") lines = [...lines.slice(0, 46), "..."];
      return lines.length === 1 ? `${base}${lines[0].length > 5 ? "\n\n" : " "}${lines[0]}` : `${base}\n\n${lines.join("\n")}\n`;
    }
    const [x, y] = [shown(actual), shown(expected)];
    if (operator === "notDeepEqual" && x === y) return cut(`${heads[operator]}\n\n${x}`, 1024);
    const [a, b] = [cut(x, 512), cut(y, 512)];
    if (operator === "deepEqual") return `${heads.deepEqual}\n\n${a}\n\nshould loosely deep-equal\n\n${b}`;
    if (operator === "notDeepEqual") return `${heads.notDeepEqualUnequal}\n\n${a}\n\nshould not loosely deep-equal\n\n${b}`;
    return `${a} ${operator} ${b}`;
  };
  const differs = new Set(["deepStrictEqual", "strictEqual", "partialDeepStrictEqual"]);
  const copied = (e) => {
    const c = Object.assign(Object.create(Object.getPrototypeOf(e)), e);
    Object.defineProperty(c, "message", { value: e.message });
    if (Object.hasOwn(e, "cause")) Object.defineProperty(c, "cause", { value: isError(e.cause) ? copied(e.cause) : e.cause });
    return c;
  };
  const textOf = ({ message, actual, expected, operator, diff }) => {
    if (message !== undefined && message !== null) return differs.has(operator) ? compared(actual, expected, operator, message, diff) : String(message);
    if (isError(actual) && isError(expected)) [actual, expected] = [copied(actual), copied(expected)];
    return differs.has(operator) ? compared(actual, expected, operator, "", diff) : worded(actual, expected, operator, diff);
  };
  const ellipsis = (s) => {
    if (typeof s !== "string") return s;
    const lines = s.split("\n", 11);
    return lines.length > 10 ? `${lines.slice(0, 10).join("\n")}\n...` : s.length > 512 ? `${s.slice(512)}...` : s;
  };
  class AssertionError extends Error {
    constructor(o) {
      if (!isObject(o) || Array.isArray(o)) throw ab.argument("options", "object", o);
      super(textOf(o));
      this.generatedMessage = !o.message;
      Object.defineProperty(this, "name", { value: "AssertionError", writable: true, configurable: true });
      this.code = "ERR_ASSERTION";
      this.actual = o.actual;
      this.expected = o.expected;
      this.operator = o.operator;
      this.diff = o.diff ?? "simple";
      const text = String(this.stack);
      const at = text.search(/\n {4}at /);
      Object.defineProperty(this, "stack", { value: `AssertionError [ERR_ASSERTION]: ${this.message}${at < 0 ? "" : ab.placed(text.slice(at), true)}`, writable: true, configurable: true });
    }
    toString() { return `${this.name} [${this.code}]: ${this.message}`; }
    [custom](depth, o) {
      const { actual, expected } = this;
      [this.actual, this.expected] = [ellipsis(actual), ellipsis(expected)];
      try { return ab.inspect(this, { ...o, customInspect: false, depth: 0 }); } finally { [this.actual, this.expected] = [actual, expected]; }
    }
  }
  const failed = (o, given) => {
    const [first, ...rest] = given;
    let message;
    const ignored = (what) => bad("ERR_AMBIGUOUS_ARGUMENT", `The "message" argument is ambiguous. ${what} has trailing arguments that would be ignored.`);
    if (given.length === 0 || first === undefined) message = undefined;
    else if (typeof first === "string") message = rest.length > 0 ? ab.format(...given) : first;
    else if (isError(first)) { if (rest.length > 0) throw ignored(`The error message was passed as error object "${Error.prototype.toString.call(first)}"`); throw first; } else if (typeof first === "function") {
      if (rest.length > 0) throw ignored(`The error message with function "${first.name || "anonymous"}"`);
      try { message = first(o.actual, o.expected); } catch { /* the usual text */ }
      if (typeof message !== "string") message = undefined;
    } else throw ab.argument("message", "of type string or function", first);
    const e = new AssertionError({ ...o, message });
    if (o.generated !== undefined) e.generatedMessage = o.generated;
    throw e;
  };
  // expression is the call of assert in the program, as it was written. The engine may name any place in it, which is not always its line.
  const expression = () => {
    const at = ab.placeOf(new Error());
    if (!at || at[0][0] !== "/") return undefined;
    const [file, line, column] = at;
    let text = ab.host.line(file, line);
    let place = column - 1;
    const call = /(?:[\w$]+\.)*(?:assert|ok)(?:\.ok|\.strict)*\s*\(/g;
    let found = null;
    for (let n = line; n > 0 && line - n < 20; n--) {
      if (n < line) { const above = ab.host.line(file, n); text = `${above}\n${text}`; place += above.length + 1; }
      for (const m of text.matchAll(call)) if (m.index <= place) found = m;
      if (found) break;
    }
    if (!found) return undefined;
    let last = line;
    const start = found.index;
    for (let i = start + found[0].length - 1, depth = 0, quote = ""; last < line + 20; i++) {
      if (i >= text.length) { text += `\n${ab.host.line(file, ++last)}`; continue; }
      const c = text[i];
      if (quote) { if (c === "\\") i++; else if (c === quote) quote = ""; continue; }
      if ("'\"`".includes(c)) quote = c;
      else if ("([{".includes(c)) depth++;
      else if (")]}".includes(c) && --depth === 0) return text.slice(start, i + 1);
    }
    return undefined;
  };
  const ok = (args) => {
    if (args[0]) return;
    const usual = args.length === 1 || args[1] === null || args[1] === undefined;
    let message = args.slice(1);
    if (args.length === 0) message = ["No value argument passed to `assert.ok()`"];
    else if (usual) { const text = expression(); message = text === undefined ? [] : [`The expression evaluated to a falsy value:\n\n  ${text}\n`]; }
    failed({ actual: args[0], expected: true, operator: "==", generated: args.length === 0 || usual }, message);
  };
  const two = (n) => { if (n < 2) throw bad("ERR_MISSING_ARGS", 'The "actual" and "expected" arguments must be specified'); };
  const nan = (v) => typeof v === "number" && v !== v; // eslint-disable-line no-self-compare
  const test = (operator, passes) => ({ [operator](actual, expected, ...message) {
    two(arguments.length);
    if (!passes(actual, expected)) failed({ actual, expected, operator, diff: this?.diff }, message);
  } })[operator];
  const partly = (a, b, seen = new Map()) => {
    if (Object.is(a, b)) return true;
    if (!isObject(a) || !isObject(b)) return false;
    if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
    if (seen.get(b) === a) return true;
    seen.set(b, a);
    if (a instanceof Set) { const rest = [...a]; return [...b].every((y) => { const i = rest.findIndex((x) => partly(x, y, seen)); if (i < 0) return false; rest.splice(i, 1); return true; }); }
    if (a instanceof Map) return [...b].every(([k, y]) => [...a].some(([j, x]) => partly(j, k, seen) && partly(x, y, seen)));
    if (Array.isArray(a)) { let i = 0; for (const y of b) { while (i < a.length && !partly(a[i], y, seen)) i++; if (i++ >= a.length) return false; } return true; }
    if (a instanceof Date || a instanceof RegExp || ArrayBuffer.isView(a) || a instanceof ArrayBuffer || isError(a)) return same(a, b, true);
    return Reflect.ownKeys(b).filter((k) => Object.getOwnPropertyDescriptor(b, k).enumerable).every((k) => k in a && partly(a[k], b[k], seen));
  };
  const none = {}; // nothing was thrown
  const called = (f) => {
    if (typeof f !== "function") throw ab.argument("fn", "function", f);
    try { f(); } catch (e) { return e; }
    return none;
  };
  const isPromise = (p) => p instanceof Promise || (isObject(p) && typeof p.then === "function" && typeof p.catch === "function");
  const settled = async (f) => {
    let p = f;
    if (typeof f === "function") { p = f(); if (!isPromise(p)) throw bad("ERR_INVALID_RETURN_VALUE", `Expected instance of Promise to be returned from the "promiseFn" function but got ${ab.received(p)}.`); } else if (!isPromise(p)) throw ab.argument("promiseFn", "of type function or an instance of Promise", f);
    try { await p; } catch (e) { return e; }
    return none;
  };
  const judged = (actual, expected, message, operator) => {
    let text;
    if (typeof expected === "function") {
      if (expected.prototype !== undefined && actual instanceof expected) return;
      if (Object.prototype.isPrototypeOf.call(Error, expected)) {
        text = `The error is expected to be an instance of "${expected.name}". Received `;
        if (isError(actual)) {
          const name = actual.constructor?.name || actual.name;
          text += expected.name === name ? "an error with identical name but a different prototype." : `"${name}"`;
          if (actual.message) text += `\n\nError message:\n\n${actual.message}`;
        } else text += `"${ab.inspect(actual, { depth: -1 })}"`;
      } else {
        const r = expected.call({}, actual);
        if (r === true) return;
        text = `The ${expected.name ? `"${expected.name}" ` : ""}validation function is expected to return "true". Received ${ab.inspect(r)}`;
        if (isError(actual)) text += `\n\nCaught error:\n\n${actual}`;
      }
    } else if (expected instanceof RegExp) {
      const s = String(actual);
      if (expected.exec(s) !== null) return;
      text = `The input did not match the regular expression ${ab.inspect(expected)}. Input:\n\n${ab.inspect(s)}\n`;
    } else if (!isObject(actual)) throw Object.assign(new AssertionError({ actual, expected, message, operator: "deepStrictEqual" }), { operator });
    else {
      const keys = Object.keys(expected);
      if (isError(expected)) keys.push("name", "message");
      else if (keys.length === 0) throw bad("ERR_INVALID_ARG_VALUE", `The argument 'error' may not be an empty object. Received ${ab.inspect(expected)}`);
      const fits = (k) => typeof actual[k] === "string" && expected[k] instanceof RegExp && expected[k].exec(actual[k]) !== null;
      class Comparison { constructor(o, other) { for (const k of keys) if (k in o) this[k] = other && fits(k) ? actual[k] : o[k]; } }
      for (const k of keys) {
        if (fits(k) || (k in actual && same(actual[k], expected[k], true))) continue;
        if (message) failed({ actual, expected, operator }, [message]);
        throw Object.assign(new AssertionError({ actual: new Comparison(actual), expected: new Comparison(expected, true), operator: "deepStrictEqual" }), { actual, expected, operator });
      }
      return;
    }
    const e = new AssertionError({ actual, expected, message: message || text, operator });
    e.generatedMessage = !message;
    throw e;
  };
  const kinds = "of type function or an instance of Object, Error, or RegExp";
  const expects = (operator, actual, args) => {
    let [expected, message] = args;
    if (typeof expected === "string") {
      if (args.length > 1) throw ab.argument("error", kinds, expected);
      if (isObject(actual) ? actual.message === expected : actual === expected) throw bad("ERR_AMBIGUOUS_ARGUMENT", `The "error/message" argument is ambiguous. The error ${isObject(actual) ? "message " : ""}"${isObject(actual) ? actual.message : actual}" is identical to the message.`);
      [expected, message] = [undefined, expected];
    } else if (expected !== null && expected !== undefined && typeof expected !== "object" && typeof expected !== "function") throw ab.argument("error", kinds, expected);
    if (actual === none) failed({ expected, operator }, [`Missing expected ${operator === "rejects" ? "rejection" : "exception"}${expected?.name ? ` (${expected.name})` : ""}${message ? `: ${message}` : "."}`]);
    if (expected) judged(actual, expected, message, operator);
  };
  const refuses = (operator, actual, [expected, message]) => {
    if (actual === none) return;
    if (typeof expected === "string") [expected, message] = [undefined, expected];
    const fits = () => {
      if (expected instanceof RegExp) return expected.exec(String(actual)) !== null;
      if (typeof expected !== "function") throw ab.argument("expected", "of type function or an instance of RegExp", expected);
      if (expected.prototype !== undefined && actual instanceof expected) return true;
      return !Object.prototype.isPrototypeOf.call(Error, expected) && expected.call({}, actual) === true;
    };
    if (!expected || fits()) failed({ actual, expected, operator }, [`Got unwanted ${operator === "doesNotReject" ? "rejection" : "exception"}${message ? `: ${message}` : "."}\nActual message: "${actual?.message}"`]);
    throw actual;
  };
  const matching = (s, re, message, operator) => {
    if (!(re instanceof RegExp)) throw ab.argument("regexp", "an instance of RegExp", re);
    const wanted = operator === "match";
    if (typeof s === "string" && (re.exec(s) !== null) === wanted) return;
    const usual = message[0] === undefined;
    const text = typeof s !== "string" ? `The "string" argument must be of type string. Received type ${typeof s} (${ab.inspect(s)})` : `The input ${wanted ? "did not match the regular expression" : "was expected to not match the regular expression"} ${ab.inspect(re)}. Input:\n\n${ab.inspect(s)}\n`;
    failed({ actual: s, expected: re, operator, ...(usual ? { generated: true } : {}) }, usual ? [text] : message);
  };
  const methods = {
    fail(message) {
      if (isError(message)) throw message;
      const e = new AssertionError({ message: message === undefined ? "Failed" : message, operator: "fail" });
      if (message === undefined) e.generatedMessage = true;
      throw e;
    },
    ok(...args) { ok(args); },
    equal(actual, expected, ...message) { two(arguments.length); if (actual != expected && !(nan(actual) && nan(expected))) failed({ actual, expected, operator: "==" }, message); }, // eslint-disable-line eqeqeq
    notEqual(actual, expected, ...message) { two(arguments.length); if (actual == expected || (nan(actual) && nan(expected))) failed({ actual, expected, operator: "!=" }, message); }, // eslint-disable-line eqeqeq
    deepEqual: test("deepEqual", (a, b) => same(a, b, false)), notDeepEqual: test("notDeepEqual", (a, b) => !same(a, b, false)),
    deepStrictEqual: test("deepStrictEqual", (a, b) => same(a, b, true)), notDeepStrictEqual: test("notDeepStrictEqual", (a, b) => !same(a, b, true)),
    strictEqual: test("strictEqual", Object.is), notStrictEqual: test("notStrictEqual", (a, b) => !Object.is(a, b)), partialDeepStrictEqual: test("partialDeepStrictEqual", (a, b) => partly(a, b)),
    throws(f, ...args) { expects("throws", called(f), args); },
    async rejects(p, ...args) { expects("rejects", await settled(p), args); },
    doesNotThrow(f, ...args) { refuses("doesNotThrow", called(f), args); },
    async doesNotReject(p, ...args) { refuses("doesNotReject", await settled(p), args); },
    match(s, re, ...message) { matching(s, re, message, "match"); },
    doesNotMatch(s, re, ...message) { matching(s, re, message, "doesNotMatch"); },
    ifError(e) {
      if (e === null || e === undefined) return;
      const said = isObject(e) && typeof e.message === "string" ? (e.message === "" && e.constructor ? e.constructor.name : e.message) : ab.inspect(e);
      const failure = new AssertionError({ actual: e, expected: null, operator: "ifError", message: `ifError got unwanted exception: ${said}` });
      throw failure;
    },
  };
  class Assert {
    constructor(o = {}) {
      Object.defineProperty(this, "diff", { value: o.diff ?? "simple" });
      this.AssertionError = AssertionError;
      if (o.strict !== false) Object.assign(this, { equal: this.strictEqual, deepEqual: this.deepStrictEqual, notEqual: this.notStrictEqual, notDeepEqual: this.notDeepStrictEqual });
    }
  }
  for (const [k, f] of Object.entries(methods)) Object.defineProperty(Assert.prototype, k, { value: f, writable: true, configurable: true });
  const assert = Object.assign(function assert(...args) { ok(args); }, methods, { AssertionError, Assert });
  const strict = Object.assign(function strict(...args) { ok(args); }, assert, { equal: methods.strictEqual, deepEqual: methods.deepStrictEqual, notEqual: methods.notStrictEqual, notDeepEqual: methods.notDeepStrictEqual });
  assert.strict = strict.strict = strict;
  ab.define("assert", () => assert);
  ab.define("assert/strict", () => strict);
})();
