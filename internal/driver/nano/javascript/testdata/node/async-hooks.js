const ah = require("async_hooks");
console.log(ah.executionAsyncId(), ah.triggerAsyncId(), typeof ah.executionAsyncResource(), Object.keys(ah).sort().join());
const kinds = {}; let open = new Map(); const order = [];
const hook = ah.createHook({ init(id, type, trigger, resource) { open.set(id, type); (kinds[type] ??= []).push([trigger, typeof resource]); }, before(id) { if (open.has(id) && /Timeout|Immediate/.test(open.get(id))) order.push("before " + open.get(id)); }, after(id) { if (/Timeout|Immediate/.test(open.get(id))) order.push("after " + open.get(id)); }, destroy() {} });
console.log(hook.enable() === hook);
const outer = ah.executionAsyncId();
setTimeout(() => { order.push("timeout"); console.log(ah.executionAsyncId() > 1, ah.triggerAsyncId() === outer, open.get(ah.executionAsyncId())); }, 15);
setImmediate(() => { order.push("immediate"); console.log(open.get(ah.executionAsyncId())); });
process.nextTick(() => console.log(open.get(ah.executionAsyncId())));
Promise.resolve().then(() => console.log(open.get(ah.executionAsyncId())));
queueMicrotask(() => console.log(open.get(ah.executionAsyncId())));
setTimeout(() => { hook.disable(); console.log(order.join(", "), Object.keys(kinds).filter((k) => /Timeout|Immediate|TickObject|PROMISE|Microtask/.test(k)).sort().join()); }, 80);
const r = new ah.AsyncResource("Mine"); console.log(r.asyncId() > 1, r.triggerAsyncId(), open.get(r.asyncId()), r.runInAsyncScope((a) => [a, ah.executionAsyncId() === r.asyncId()], null, 5), r.emitDestroy() === r);
const als = new ah.AsyncLocalStorage(); als.run({ id: 1 }, () => { setTimeout(() => console.log("store", als.getStore()), 30); Promise.resolve().then(() => console.log("then", als.getStore())); setImmediate(() => console.log("immediate", als.getStore())); process.nextTick(() => console.log("tick", als.getStore())); }); console.log(als.getStore(), als.run(5, (x) => [als.getStore(), x], 6), als.exit(() => als.getStore()));
try { ah.createHook({ init: 5 }); } catch (e) { console.log(e.name, e.code, e.message); } try { new ah.AsyncResource(5); } catch (e) { console.log(e.name, e.code, e.message); }
const bound = als.run("b", () => ah.AsyncLocalStorage.bind(() => als.getStore())); console.log(bound(), als.run("s", () => ah.AsyncLocalStorage.snapshot())(() => als.getStore()));
