import fs, { readFileSync, writeFileSync, existsSync } from "node:fs";
import { readFile, writeFile, mkdir, readdir, stat, rm } from "fs/promises";
import path, { join, resolve, basename } from "path";
import os from "os";
import util, { inspect, format, promisify } from "util";
import { EventEmitter, once } from "events";
import assert from "node:assert/strict";
import crypto, { createHash, createHmac, randomUUID } from "crypto";
import { fileURLToPath, pathToFileURL } from "url";
import { setTimeout as sleep } from "timers/promises";
import { Buffer } from "buffer";
import readline from "readline";
import { Readable, Transform, pipeline } from "stream";

const dir = fs.mkdtempSync(join(os.tmpdir(), "test-"));
process.chdir(dir);
writeFileSync("a.txt", "hello\n");
fs.appendFileSync("a.txt", "world\n");
console.log(readFileSync("a.txt", "utf8"), existsSync("a.txt"), existsSync("none"));
await mkdir("x/y/z", { recursive: true });
await writeFile("x/y/f.json", JSON.stringify({ a: 1 }));
console.log(await readdir("x", { recursive: true }), JSON.parse(await readFile("x/y/f.json", "utf8")));
console.log((await stat("a.txt")).size, fs.statSync("x").isDirectory(), fs.readdirSync(".", { withFileTypes: true }).map((e) => [e.name, e.isFile()]));
fs.renameSync("a.txt", "b.txt"); fs.copyFileSync("b.txt", "c.txt"); fs.symlinkSync("b.txt", "l"); console.log(fs.readlinkSync("l"), fs.lstatSync("l").isSymbolicLink(), basename(fs.realpathSync("l")));
for (const f of [() => fs.readFileSync("none"), () => fs.mkdirSync("x"), () => fs.rmdirSync("x"), () => fs.readFileSync("x"), () => fs.readdirSync("b.txt"), () => fs.rmSync("x"), () => fs.unlinkSync("none"), () => fs.openSync("none"), () => fs.statSync("none"), () => fs.renameSync("none", "m"), () => fs.readFileSync(5.5e9), () => fs.writeFileSync("q", {})]) {
  try { f(); console.log("no error"); } catch (e) { console.log(e.code, e.syscall, e.message.replace(dir, "")); }
}
await rm("x", { recursive: true }); console.log(existsSync("x"));
await new Promise((done) => fs.readFile("b.txt", "utf8", (e, d) => { console.log("callback", e, d.length); done(); }));
await fs.promises.access("b.txt"); await assert.rejects(fs.promises.access("none"), { code: "ENOENT" });
console.log(path.normalize("/a/../b//c/."), path.relative("/a/b", "/a/c/d"), path.parse("/x/y.tar.gz"), path.format({ dir: "/q", base: "z" }), path.extname(".bashrc"), path.isAbsolute("a"), resolve("/a", "..", "b"), path.dirname("/a/b/"), join("a", "", "..", "..", "b"));
console.log(format("%s:%d", "a", 1), inspect({ a: [1, 2, { b: 3 }] }, { compact: false }), util.isDeepStrictEqual({ a: [1] }, { a: [1] }), util.types.isDate(new Date()));
const e = new EventEmitter();
e.on("x", (...a) => console.log("on", a)); e.once("x", () => console.log("once")); e.prependListener("x", () => console.log("first"));
console.log(e.emit("x", 1, 2), e.emit("x"), e.emit("y"), e.listenerCount("x"));
setTimeout(() => e.emit("later", 7), 5); console.log(await once(e, "later"));
console.log(createHash("sha256").update("abc").digest("hex"), createHash("md5").update("a").update("b").digest("base64"), createHmac("sha1", "k").update("v").digest("hex"), randomUUID().length, crypto.randomBytes(4).length, crypto.getHashes().length > 3);
console.log(Buffer.from(await crypto.subtle.digest("SHA-256", new TextEncoder().encode("abc"))).toString("hex").slice(0, 8));
console.log(fileURLToPath("file:///a%20b"), pathToFileURL("/a b#c").href, typeof import.meta.url, import.meta.url.startsWith("file:///"));
console.log(Buffer.concat([Buffer.from("a"), Buffer.from([98])]).toString(), Buffer.from("aGk=", "base64").toString(), Buffer.from("héllo").toString("hex"), Buffer.byteLength("€"), Buffer.alloc(3, "ab"), Buffer.from("abc").readUInt16BE(0), Buffer.from([1, 2, 3]).equals(Buffer.from([1, 2, 3])), Buffer.from("xyz").indexOf("z"), JSON.stringify(Buffer.from("a")));
assert.deepEqual({ a: [1, new Map([[1, { x: 1 }]])] }, { a: [1, new Map([[1, { x: 1 }]])] });
assert.throws(() => { throw new TypeError("bad"); }, TypeError); assert.throws(() => { throw new Error("x y"); }, /x y/);
try { assert.equal(1, 2); } catch (x) { console.log(x.name, x.code, x.message); }
try { assert(false, "custom"); } catch (x) { console.log(x.message, x instanceof assert.AssertionError); }
await sleep(10); console.log(await promisify((a, cb) => cb(null, a * 2))(21));
const rl = readline.createInterface({ input: process.stdin });
const lines = []; for await (const line of rl) lines.push(line);
console.log(lines);
const up = new Transform({ transform(b, _, cb) { cb(null, String(b).toUpperCase()); } });
await new Promise((done) => pipeline(Readable.from(["a", "b"]), up, (err) => { console.log("piped", err); done(); }).on("data", (d) => console.log(String(d))));
const dynamic = await import("node:path"); console.log(dynamic.default === path, dynamic.sep);
for await (const x of Readable.from([1, 2])) console.log(x);
console.log(await Promise.allSettled([Promise.resolve(1), Promise.reject(new Error("r"))]).then((r) => r.map((x) => x.status)), await Promise.any([Promise.reject(1), 2]));
const w = fs.createWriteStream("w.txt"); w.write("one "); w.end("two"); await once(w, "finish"); console.log(fs.readFileSync("w.txt", "utf8"));
let read = ""; for await (const part of fs.createReadStream("w.txt", "utf8")) read += part; console.log(read);
rl.close(); process.chdir("/"); fs.rmSync(dir, { recursive: true });
process.on("exit", (code) => console.log("exit", code));
