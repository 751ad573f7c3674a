const util = require("util");
class Point { constructor(x, y) { this.x = x; this.y = y; } get sum() { return this.x + this.y; } static make() {} #secret = 1; }
class Point3 extends Point { z = 3; }
class Empty {}
class Tagged { get [Symbol.toStringTag]() { return "Tag"; } }
class List extends Array {}
class Dict extends Map {}
class Bag extends Set {}
class Fail extends Error { constructor(m) { super(m); this.name = "Fail"; this.extra = 1; } }
class Quiet extends Promise {}
class F extends Function {}
console.log(new Point(1, 2), new Point3(1, 2), new Empty(), new Tagged(), List.from([1, 2]), new Dict([["a", 1]]), new Bag([1]));
console.log(Point, Point3, Empty, class {}, class extends Point {}, Object.assign(class X { static a = 1; }, {}));
console.log([new Point(1, 2), [new Empty()]], { p: new Point(1, 2), e: new Empty() });
console.log(Object.create(null), Object.assign(Object.create(null), { a: 1 }), Object.create({}), Object.create({ a: 1 }), Object.create(Point.prototype), Object.create(Object.create(null)));
console.log({ get a() { return 1; }, set a(v) {}, get b() { return 2; }, set c(v) {} });
console.log(util.inspect({ get a() { return { x: 1 }; }, set a(v) {}, get b() { return null; } }, { getters: true }));
console.log(function named() {}, () => {}, async () => {}, function* gen() {}, async function* agen() {}, Object.assign(function f() {}, { a: 1 }), Math.max, parseInt);
console.log([function named() {}, class A {}, Symbol("s"), 1n, -0, null, undefined]);
console.log({ f() {}, g: () => {}, async h() {}, [Symbol("k")]: 1, "a-b": 2, 3: 4, "ünï": 5, "": 6 });
console.log(Symbol.iterator, Symbol(), Symbol.for("x"), { [Symbol.iterator]: 1 });
console.log(new Number(1), new String("abc"), new Boolean(false), Object(1n), Object(Symbol("s")), Object.assign(new String("ab"), { x: 1 }), new Number(-0));
console.log(new Date(0), new Date(NaN), /a\/b/gi, Object.assign(/x/, { a: 1 }), Object.assign(new Date(0), { a: 1 }));
console.log(globalThis === global, typeof globalThis, Object.prototype.toString.call(globalThis), [globalThis].length);
console.log(Promise.resolve(4), Promise.reject(new Error("x")).catch(() => {}) && 1, new Promise(() => {}), Quiet.resolve(1), [Promise.resolve({ a: 1 })]);
console.log(new WeakMap(), new WeakSet(), new WeakRef({ a: 1 }), new Proxy({ a: 1 }, {}), new Proxy(function f() {}, {}), new Proxy([1], {}));
console.log((function () { return arguments; })(1, 2), [][Symbol.iterator](), "ab"[Symbol.iterator](), "a".matchAll(/a/g), (function* () {})());
console.log(Math, JSON, Reflect, Intl);
console.log({ a: { b: { c: { d: 1 } } } }, [[[[1]]]], { a: [{ b: { c: 1 } }] }, new Point(new Point(new Point(new Point(1, 2), 2), 3), 4));
console.log(util.inspect({ a: { b: { c: { d: { e: 1 } } } } }, { depth: 0 }), util.inspect({ a: { b: {} } }, { depth: 1 }), util.inspect({ a: { b: { c: { d: { e: 1 } } } } }, { depth: null }), util.inspect(new Map([["a", { b: { c: 1 } }]]), { depth: 1 }));
class Custom { [util.inspect.custom](depth, options, inspect) { return `Custom<${inspect({ a: 1 }, options)}>${depth}`; } }
console.log(new Custom(), [new Custom()], { a: { b: new Custom() } }, util.inspect(new Custom(), { customInspect: false }), `${util.inspect({ [util.inspect.custom]() { return { z: 1 }; } })}`);
console.log(Object.defineProperty({}, "hidden", { value: 1 }), util.inspect(Object.defineProperty({ a: 1 }, "hidden", { value: 1 }), { showHidden: true }), util.inspect([1], { showHidden: true }), util.inspect(new Map([[1, 2]]), { showHidden: true }));
console.log(new (class extends Object { constructor() { super(); this.a = 1; } })(), new (class A extends null { constructor() { return Object.create(A.prototype); } })());
console.log(Object.setPrototypeOf([1, 2], null), Object.setPrototypeOf(function f() {}, null));
const fake = { constructor: { name: "Fake" } }; console.log(fake, { constructor: 1 }, { toString: 1 });
