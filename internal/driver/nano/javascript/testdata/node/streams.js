// Pipelines of streams, iterables and functions, and what the loop does first.
const { Readable, Transform, Writable, PassThrough, pipeline } = require("stream");
const done = [];
const steps = [
  (next) => pipeline(Readable.from(["a"]), async function* (s) { for await (const c of s) done.push(`read ${c}`); }, (e) => { done.push(`generator ${e}`); next(); }),
  (next) => pipeline(Readable.from(["a", "b"]), async (s) => { let n = 0; for await (const c of s) n += c.length; return n; }, (e, v) => { done.push(`function ${e} ${v}`); next(); }),
  (next) => pipeline(["p", "q"], async function* (s) { for await (const c of s) yield c + c; }, new Writable({ objectMode: true, write(c, e, ok) { done.push(`wrote ${c}`); ok(); } }), (e) => { done.push(`writable ${e}`); next(); }),
  (next) => pipeline(Readable.from(["z"]), new Transform({ transform(c, e, ok) { ok(new Error("bad")); } }), new PassThrough(), (e) => { done.push(`failed ${e.message}`); next(); }),
];
const run = () => {
  const step = steps.shift();
  if (step) { step(run); return; }
  console.log(done.join("\n"));
  setTimeout(() => console.log("timeout"), 0);
  setTimeout(() => setImmediate(() => console.log("immediate of a timeout")), 0);
  Promise.resolve().then(() => console.log("job"));
  process.nextTick(() => console.log("tick"));
};
run();
for (const f of [() => null.x, () => undefined.f(), () => { null.x = 1; }, () => Symbol() + "", () => new Array(-1), () => decodeURIComponent("%"), () => { y; let y; }, () => { throw new TypeError("not a function"); }]) {
  try { f(); } catch (e) { console.log(`${e.name}: ${e.message}`); }
}
const o = { inner: {} };
const five = 5;
for (const f of [
  () => o.none(),
  () => o.inner.none(1),
  () => five(),
  () => new five(),
]) try { f(); } catch (e) { console.log(e.message); }
