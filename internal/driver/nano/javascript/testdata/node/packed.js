// zlib and vm.
const zlib = require("zlib");
const vm = require("vm");
const text = "hello ".repeat(100);
console.log(zlib.gunzipSync(zlib.gzipSync(text)).toString() === text, zlib.inflateSync(zlib.deflateSync("abc")).toString(), zlib.inflateRawSync(zlib.deflateRawSync(Buffer.from("raw"))).toString(), zlib.unzipSync(zlib.gzipSync("u")).toString(), zlib.unzipSync(zlib.deflateSync("v")).toString());
for (const f of [() => zlib.gunzipSync("nope"), () => zlib.gunzipSync(zlib.gzipSync(text).subarray(0, 20)), () => zlib.inflateSync(Buffer.from([1, 2, 3])), () => zlib.gzipSync(5), () => zlib.gunzipSync(zlib.gzipSync(text), { maxOutputLength: 10 })]) {
  try { f(); console.log("nothing was wrong"); } catch (e) { console.log(e.code, e.errno); }
}
zlib.gzip("later", (e, b) => zlib.gunzip(b, (e2, t) => {
  console.log(e, e2, String(t));
  const z = zlib.createGzip();
  const parts = [];
  z.on("data", (d) => parts.push(d));
  z.on("end", () => console.log(zlib.gunzipSync(Buffer.concat(parts)).toString()));
  z.write("one ");
  z.end("two");
}));
const c = vm.createContext({ x: 2, console });
console.log(vm.runInContext("x += 40; var y = 17; f(1); function f(a) { return a + y }", c), c.x, c.y, typeof c.f, vm.isContext(c), vm.isContext({}));
console.log(new vm.Script("a * b").runInNewContext({ a: 6, b: 7 }), vm.runInNewContext("typeof process + typeof require + typeof JSON"), vm.runInNewContext("[1, 2].map((v) => v * k)", { k: 3 }).join(), vm.runInThisContext("1 + 1"), vm.compileFunction("return a + b", ["a", "b"])(1, 2));
for (const f of [() => vm.runInNewContext("nope + 1"), () => new vm.Script("let = = 1"), () => vm.runInContext("1", {}), () => vm.runInNewContext("throw new RangeError('far')")]) {
  try { f(); } catch (e) { console.log(e.name, e.code); }
}
vm.runInContext("console.log('in', x); g = 5", c);
console.log(c.g, globalThis.g);
