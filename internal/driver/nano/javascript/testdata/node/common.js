const path = require("path"), { readFileSync } = require("node:fs");
console.log(module.id, require.main === module, path.basename(__filename), typeof __dirname, this === module.exports);
console.log(JSON.stringify(readFileSync(0, "utf8")));
function Old() { require("events").EventEmitter.call(this); } require("util").inherits(Old, require("events"));
const o = new Old(); o.on("a", (x) => console.log("old", x)); o.emit("a", 1);
try { require("./none"); } catch (e) { console.log(e.code, e.message.split("\n")[0].replace(/'.*\/none/, "'none")); }
try { null.x; } catch (e) { console.log(e instanceof TypeError); }
try { throw Object.assign(new RangeError("r"), { code: "E" }); } catch ({ name, message, code }) { console.log(name, message, code); }
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
(async () => { const t = Date.now(); await sleep(50); console.log("slept", Date.now() - t >= 49); })();
process.exitCode = 0; process.on("exit", () => console.log("bye"));
const [a, ...rest] = [1, 2, 3]; class A { static #p = 1; static get p() { return A.#p; } } label: for (const x of [1, 2]) { for (;;) continue label; }
console.log(a, rest, A.p, `t${1 + 1}`, 2 ** 10, 7 % 3, a ?? 0, null?.x, [..."añ"], /(?<y>\d{4})/.exec("in 2026").groups.y, 0.1.toFixed(20).length, (255).toString(16), parseInt("12px"), Number("0x1f"), [10, 9, 1].sort(), typeof BigInt(1), 1e21 + "", (1234.5678).toFixed(2));
console.log(require("util").inspect(new Error("e"), { compact: true }).startsWith("Error: e\n    at"), new Error("m", { cause: 1 }).cause);
console.log(new Date(Date.UTC(2026, 0, 2, 3, 4, 5)).toISOString(), isNaN(new Date("x")), new Date("2026-01-01T00:00:00Z").getTime());
console.log(require("os").EOL === "\n", require("url").parse("http://a/b?c=d").query, require("querystring").stringify({ a: [1, 2], b: "x y" }), require("string_decoder").StringDecoder.name);
setTimeout(() => console.log("last"), 1);
