// What programs for Bun use of the object Bun.
(() => {
  const ab = __agentbox;
  const host = ab.host;
  class BunFile extends Blob {
    constructor(path, o = {}) { super([], { type: o.type ?? types[path.slice(path.lastIndexOf("."))] ?? "application/octet-stream" }); this.name = path; }
    get size() { try { return ab.fs.statSync(this.name).size; } catch { return 0; } }
    get lastModified() { try { return ab.fs.statSync(this.name).mtimeMs; } catch { return 0; } }
    async exists() { return ab.fs.existsSync(this.name); }
    async text() { return ab.fs.readFileSync(this.name, "utf8"); }
    async json() { return JSON.parse(await this.text()); }
    async bytes() { return new Uint8Array(ab.fs.readFileSync(this.name)); }
    async arrayBuffer() { const b = ab.fs.readFileSync(this.name); return b.buffer.slice(b.byteOffset, b.byteOffset + b.length); }
    async write(data) { return write(this, data); }
    async delete() { ab.fs.unlinkSync(this.name); }
    async unlink() { ab.fs.unlinkSync(this.name); }
    async stat() { return ab.fs.statSync(this.name); }
    slice(from, to) { return new Blob([ab.fs.readFileSync(this.name).subarray(from, to)]); }
    writer() { const parts = []; return { write: (x) => { parts.push(ab.bytesOf(x)); return parts.at(-1).length; }, flush() {}, end: () => { ab.fs.writeFileSync(this.name, Buffer.concat(parts)); } }; }
  }
  const types = { ".json": "application/json;charset=utf-8", ".txt": "text/plain;charset=utf-8", ".html": "text/html;charset=utf-8", ".js": "text/javascript;charset=utf-8", ".ts": "text/javascript;charset=utf-8", ".css": "text/css;charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png", ".csv": "text/csv" };
  const write = async (to, data) => {
    const path = to instanceof BunFile ? to.name : to instanceof URL ? ab.pathOf(to) : String(to);
    const b = data instanceof Blob ? Buffer.from(await data.arrayBuffer()) : ab.bytesOf(typeof data === "string" || ArrayBuffer.isView(data) || data instanceof ArrayBuffer ? data : String(data));
    ab.fs.mkdirSync(ab.builtin("path").dirname(path), { recursive: true });
    ab.fs.writeFileSync(path, b);
    return b.length;
  };
  const lacking = (name, what) => () => { throw ab.lacking(what, `Bun.${name} is not available: a nano space has no ${what.replace(/^the /, "")}`); };
  const std = (fd) => ({ write: (x) => { const b = ab.bytesOf(x); ab.fs.writeSync(fd, b); return Promise.resolve(b.length); }, writer: () => ({ write: (x) => ab.fs.writeSync(fd, ab.bytesOf(x)), flush() {}, end() {} }) });
  const Bun = {
    version: "", revision: "nano", main: undefined, get argv() { return ab.process.argv; }, get env() { return ab.process.env; }, get cwd() { return ab.cwd(); },
    file: (p, o) => new BunFile(p instanceof URL ? ab.pathOf(p) : String(p), o), write, inspect: ab.inspect, deepEquals: (a, b, strict) => ab.same(a, b, Boolean(strict)), escapeHTML: (s) => String(s).replace(/[&<>"']/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;" })[c]),
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms instanceof Date ? ms - Date.now() : ms)), nanoseconds: () => Math.round(performance.now() * 1e6), randomUUIDv7: () => crypto.randomUUID(),
    fileURLToPath: (u) => ab.pathOf(u), pathToFileURL: (p) => ab.builtin("url").pathToFileURL(p), stringWidth: (s) => ab.width(String(s)), which: () => null, gc() {}, resolveSync: (name, from) => host.resolve(`${from}/x`, name),
    stdout: std(1), stderr: std(2), stdin: { text: async () => ab.fs.readFileSync(0, "utf8"), json: async () => JSON.parse(ab.fs.readFileSync(0, "utf8")), stream: () => ab.process.stdin },
    hash: Object.assign((v) => BigInt(`0x${ab.builtin("crypto").createHash("sha256").update(ab.bytesOf(v)).digest("hex").slice(0, 16)}`), {}),
    CryptoHasher: class CryptoHasher { constructor(a) { return ab.builtin("crypto").createHash(a); } },
    Glob: class Glob { constructor(p) { this.p = p; this.re = ab.glob(p); } match(s) { return this.re.test(s); } *scanSync(o) { yield* ab.fs.globSync(this.p, { cwd: typeof o === "string" ? o : o?.cwd }); } async *scan(o) { yield* this.scanSync(o); } },
    spawn: lacking("spawn", "processes"), spawnSync: lacking("spawnSync", "processes"), $: lacking("$", "processes"), serve: lacking("serve", "the network"), listen: lacking("listen", "the network"), connect: lacking("connect", "the network"), build: lacking("build", "bundler"),
  };
  ab.beginBun = (version) => {
    Bun.version = version;
    Bun.main = ab.process.argv[1];
    Object.defineProperty(globalThis, "Bun", { value: Bun, writable: true, configurable: true });
  };
  ab.recordProxies();
})();
