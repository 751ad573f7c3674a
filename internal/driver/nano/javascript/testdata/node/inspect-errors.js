const util = require("util");
const bare = (e) => { e.stack = e.stack.split("\n").slice(0, e.message.split("\n").length).join("\n"); return e; };
class MyError extends Error { constructor(m, o) { super(m, o); this.name = "MyError"; this.status = 404; } }
class Plain extends TypeError {}
console.log(bare(new Error("msg")), [bare(new Error("in array"))], { e: bare(new TypeError("in object")) });
console.log(bare(new MyError("mine")), bare(new Plain("plain")), bare(Object.assign(new Error("with code"), { code: "E_X", detail: { a: 1 } })));
console.log(bare(new Error("outer", { cause: bare(new Error("inner")) })), bare(new Error("text cause", { cause: "why" })), bare(new Error("object cause", { cause: { a: 1 } })));
console.log(bare(new AggregateError([bare(new Error("one")), bare(new RangeError("two"))], "many")));
console.log(bare(new Error("")), bare(new Error("two\nlines")), bare(Object.assign(new Error("x"), { name: "Renamed" })), bare(Object.assign(new Error("x"), { message: "changed" })));
const noStack = new Error("no stack"); noStack.stack = undefined; console.log(noStack); const empty = new Error("empty stack"); empty.stack = ""; console.log(empty);
console.log(Object.create(Error.prototype), Error.prototype);
console.log(util.format("%s %s", bare(new Error("f")), "x"), `${new Error("t")}`, String(new MyError("s")), new Error("j").toString(), JSON.stringify(new Error("j")), Object.keys(new Error("k")));
try { null.x; } catch (e) { console.log(bare(e)); }
try { JSON.parse("{"); } catch (e) { console.log(e.name, e.message); }
const e = new Error("own"); Object.defineProperty(e, "name", { value: "Own", enumerable: false }); console.log(bare(e).toString());
console.log(bare(new DOMException("dom", "AbortError")).name, new DOMException("m", "DataCloneError").code, String(new DOMException("m", "N")), new DOMException("x").name);
console.log(util.inspect(bare(new Error("depth", { cause: { a: { b: { c: { d: 1 } } } } })), { depth: 1 }), util.inspect(bare(Object.assign(new Error("c"), { a: 1 })), { compact: false }));
console.log(Error("without new") instanceof Error, typeof Error.captureStackTrace, Error.stackTraceLimit, new Error("x", {}).cause, "cause" in new Error("x", { cause: undefined }), Error.isError?.(new TypeError("x")));
const o = {}; Error.captureStackTrace(o); console.log(o.stack.split("\n")[0], Object.keys(o)); const p = { name: "N", message: "M" }; Error.captureStackTrace(p); console.log(p.stack.split("\n")[0]);
function a() { return new Error("here"); } const st = a().stack.split("\n"); console.log(st[0], /^ {4}at a \(.*:\d+:\d+\)$/.test(st[1]), st.length > 2);
(async function af() { await null; console.log(new Error("af").stack.split("\n")[1].replace(/\(.*\)/, "()")); })();
const limited = Error.stackTraceLimit; Error.stackTraceLimit = 1; console.log(new Error("l").stack.split("\n").length); Error.stackTraceLimit = 0; console.log(new Error("l").stack.split("\n").length); Error.stackTraceLimit = limited;
const prep = Error.prepareStackTrace; Error.prepareStackTrace = (err, sites) => sites.map((s) => [s.getFunctionName(), s.getLineNumber(), typeof s.getColumnNumber()]); (function named() { console.log(new Error("p").stack[0]); })(); Error.prepareStackTrace = prep;
console.log(util.inspect(new (class extends Error { get name() { return "Getter"; } })("n")).split("\n")[0], util.inspect(Object.assign(bare(new Error("sym")), { [Symbol("k")]: 1 })));
