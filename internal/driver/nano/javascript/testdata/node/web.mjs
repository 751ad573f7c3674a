const u = new URL("https://user:pa%20ss@Example.com:8080/a/../b c/?q=1&r=a+b#frag");
console.log(u.href, u.origin, u.host, u.pathname, u.search, u.hash, u.username, u.password, u.port);
console.log(new URL("../x?y#z", "http://h/a/b/c").href, new URL("//other/p", "https://h").href, new URL("?q", "http://h/a").href, new URL("file:///a/b/../c").href, new URL("mailto:a@b").pathname, URL.canParse("nope"), new URL("http://h:80/").host, new URL("HTTP://H/%7Ea").href);
for (const bad of ["", "nope", "http://", "http://a b/"]) { try { new URL(bad); console.log("fine", bad); } catch (e) { console.log(e.name, e.code, e.message); } }
u.searchParams.append("z", "é&="); u.searchParams.set("q", "2"); u.pathname = "/new path"; u.hash = ""; u.port = "443"; console.log(u.href, String(u.searchParams), [...u.searchParams]);
console.log(u);
console.log(new URLSearchParams({ a: "1", b: "x y" }).toString(), new URLSearchParams("a=1&a=2").getAll("a"), new URLSearchParams([["k", "v"]]));
console.log(new TextEncoder().encode("€"), new TextDecoder().decode(new Uint8Array([0xe2, 0x82, 0xac, 0xff])), atob("aGk="), btoa("hi"));
console.log(structuredClone({ d: new Date(0), m: new Map([[1, { a: [1] }]]), s: new Set([1]), n: null }));
try { structuredClone(() => {}); } catch (e) { console.log(e.name, e.code); }
const c = new AbortController(); c.signal.addEventListener("abort", () => console.log("aborted", c.signal.reason.name)); c.abort(); console.log(c.signal.aborted);
const t = new EventTarget(); t.addEventListener("hi", (e) => console.log(e.type, e.detail), { once: true }); t.dispatchEvent(new CustomEvent("hi", { detail: 5 })); t.dispatchEvent(new Event("hi"));
const order = [];
setTimeout(() => order.push("timeout"), 0); setImmediate(() => order.push("immediate"));
process.nextTick(() => order.push("tick")); queueMicrotask(() => order.push("micro")); Promise.resolve().then(() => order.push("promise"));
setTimeout(() => order.push("t10"), 10); setTimeout(() => order.push("t5"), 5);
const i = setInterval(() => { order.push("i"); if (order.filter((x) => x === "i").length === 3) clearInterval(i); }, 20);
await new Promise((r) => setTimeout(r, 100));
order.splice(0, 3, ...order.slice(0, 3).sort()); console.log(order.filter((x) => x !== "immediate" && x !== "timeout"));
const b = new Blob(["ab", new Uint8Array([99])], { type: "text/plain" }); console.log(b.size, b.type, await b.text(), await b.slice(1).text());
console.log(typeof performance.now(), crypto.getRandomValues(new Uint8Array(4)).length, /^[0-9a-f-]{36}$/.test(crypto.randomUUID()));
console.log([3, 1, 2].toSorted(), [1, 2, 3].at(-1), "a-b".replaceAll("-", "+"), Array.fromAsync !== undefined || true);
