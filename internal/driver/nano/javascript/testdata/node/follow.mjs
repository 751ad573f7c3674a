// AsyncLocalStorage follows what was begun in it.
import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
const s = new AsyncLocalStorage();
await s.run(5, async () => {
  await null;
  console.log("after await", s.getStore());
  await new Promise((resolve) => setTimeout(() => { console.log("timer", s.getStore()); resolve(); }, 1));
  await new Promise((resolve) => process.nextTick(() => { console.log("tick", s.getStore()); resolve(); }));
  await new Promise((resolve) => queueMicrotask(() => { console.log("job", s.getStore()); resolve(); }));
  for await (const x of (async function* () { yield 1; await null; yield s.getStore(); })()) console.log("generator", x, s.getStore());
  try { await Promise.reject(new Error("no")); } catch (e) { console.log(e.message, s.getStore()); } finally { console.log("finally", s.getStore()); }
});
const seen = await Promise.all([1, 2, 3].map((i) => s.run(i, async () => { await sleep(i * 3); return [i, s.getStore()]; })));
console.log(seen, s.getStore(), s.exit(() => s.getStore()));
console.log(s.run("bound", () => AsyncResource.bind(() => s.getStore()))());
class A { async m() { await 1; return s.getStore(); } }
console.log(await s.run({ a: 1 }, () => new A().m()), await s.run("then", () => Promise.resolve().then(() => s.getStore())));
if (s.getStore() === undefined) await sleep(1);
console.log("top", s.getStore());
