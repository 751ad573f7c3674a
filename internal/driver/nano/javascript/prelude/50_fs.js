// fs and fs/promises.
(() => {
  const ab = __agentbox;
  const host = ab.host;
  const flags = { read: 1, write: 2, append: 4, create: 8, exclusive: 16, truncate: 32 };
  const constants = {
    F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, COPYFILE_EXCL: 1, COPYFILE_FICLONE: 2, O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, O_CREAT: 64, O_EXCL: 128, O_TRUNC: 512, O_APPEND: 1024,
    S_IFMT: 0o170000, S_IFREG: 0o100000, S_IFDIR: 0o040000, S_IFLNK: 0o120000, S_IFIFO: 0o010000, S_IFCHR: 0o020000, S_IRUSR: 0o400, S_IWUSR: 0o200, S_IXUSR: 0o100,
  };
  const numbers = { EPERM: -1, ENOENT: -2, EIO: -5, ENXIO: -6, EBADF: -9, EAGAIN: -11, ENOMEM: -12, EACCES: -13, EBUSY: -16, EEXIST: -17, EXDEV: -18, ENOTDIR: -20, EISDIR: -21, EINVAL: -22, EMFILE: -24, ETXTBSY: -26, EFBIG: -27, ENOSPC: -28, ESPIPE: -29, EROFS: -30, EMLINK: -31, EPIPE: -32, ENAMETOOLONG: -36, ENOTEMPTY: -39, ELOOP: -40, ENOTSUP: -95 };
  const words = { ENOENT: "no such file or directory", EEXIST: "file already exists", EISDIR: "illegal operation on a directory", ENOTDIR: "not a directory", ENOTEMPTY: "directory not empty", EACCES: "permission denied", EPERM: "operation not permitted", EBADF: "bad file descriptor", EINVAL: "invalid argument", EROFS: "read-only file system", ENOSPC: "no space left on device", ELOOP: "too many symbolic links encountered", ENAMETOOLONG: "name too long", EXDEV: "cross-device link not permitted", EMFILE: "too many open files", EFBIG: "file too large" };

  // doing calls the host, and says in Node's words what did not work.
  const doing = (syscall, path, dest, f) => {
    try {
      return f();
    } catch (e) {
      if (!(e.code in numbers)) throw e;
      const at = path === undefined ? "" : dest === undefined ? ` '${path}'` : ` '${path}' -> '${dest}'`;
      const error = new Error(`${e.code}: ${words[e.code] ?? e.message.toLowerCase()}, ${syscall}${at}`);
      error.errno = numbers[e.code];
      error.code = e.code;
      error.syscall = syscall;
      if (path !== undefined) error.path = path;
      if (dest !== undefined) error.dest = dest;
      throw error;
    }
  };
  const named = (p, name = "path") => {
    if (p instanceof URL) p = ab.pathOf(p);
    else if (p instanceof Uint8Array) p = Buffer.from(p).toString();
    if (typeof p !== "string") throw ab.argument(name, "string or an instance of Buffer or URL", p);
    if (p.includes("\0")) throw ab.error(TypeError, "ERR_INVALID_ARG_VALUE", `The argument '${name}' must be a string, Uint8Array, or URL without null bytes. Received ${ab.inspect(p)}`);
    return p;
  };
  const encodingOf = (o) => (typeof o === "string" ? o : o?.encoding ?? null);
  const mode = (m, fallback) => (m === undefined || m === null ? fallback : typeof m === "string" ? parseInt(m, 8) : m);
  const flagsOf = (f = "r") => {
    const { read, write, append, create, exclusive, truncate } = flags;
    if (typeof f === "number") return ((f & 3) === 0 ? read : (f & 3) === 1 ? write : read | write) | (f & 64 ? create : 0) | (f & 128 ? exclusive : 0) | (f & 512 ? truncate : 0) | (f & 1024 ? append : 0);
    const known = {
      r: read, rs: read, "r+": read | write, "rs+": read | write, w: write | create | truncate, wx: write | create | truncate | exclusive, "w+": read | write | create | truncate, "wx+": read | write | create | truncate | exclusive,
      a: write | create | append, ax: write | create | append | exclusive, "a+": read | write | create | append, "ax+": read | write | create | append | exclusive, as: write | create | append, "as+": read | write | create | append,
    }[f];
    if (known === undefined) throw ab.error(TypeError, "ERR_INVALID_ARG_VALUE", `The argument 'flags' is invalid. Received ${ab.inspect(f)}`);
    return known;
  };
  class Stats {
    constructor(raw, big) {
      const [kind, perm, size, links, id, device, atime, mtime, ctime] = JSON.parse(raw);
      const n = big ? BigInt : Number;
      this.dev = n(device);
      this.mode = n(kind | perm);
      this.nlink = n(links);
      this.uid = n(1000);
      this.gid = n(1000);
      this.rdev = n(0);
      this.blksize = n(4096);
      this.ino = n(id);
      this.size = n(size);
      this.blocks = n(Math.ceil(size / 512));
      for (const [k, v] of [["atime", atime], ["mtime", mtime], ["ctime", ctime], ["birthtime", ctime]]) {
        this[`${k}Ms`] = big ? BigInt(Math.trunc(v)) : v;
        if (big) this[`${k}Ns`] = BigInt(Math.round(v * 1e6));
      }
      for (const [k, v] of [["atime", atime], ["mtime", mtime], ["ctime", ctime], ["birthtime", ctime]]) this[k] = new Date(v);
    }
    #is(kind) { return (Number(this.mode) & 0o170000) === kind; }
    isFile() { return this.#is(0o100000); }
    isDirectory() { return this.#is(0o040000); }
    isSymbolicLink() { return this.#is(0o120000); }
    isFIFO() { return this.#is(0o010000); }
    isCharacterDevice() { return this.#is(0o020000); }
    isBlockDevice() { return false; }
    isSocket() { return false; }
  }
  class Dirent {
    #kind;
    constructor(name, parent, kind) { this.name = name; this.parentPath = parent; this.path = parent; this.#kind = kind; }
    isFile() { return this.#kind === 0o100000; }
    isDirectory() { return this.#kind === 0o040000; }
    isSymbolicLink() { return this.#kind === 0o120000; }
    isFIFO() { return this.#kind === 0o010000; }
    isCharacterDevice() { return this.#kind === 0o020000; }
    isBlockDevice() { return false; }
    isSocket() { return false; }
  }
  const stat = (call, follow) => (p, o) => {
    p = named(p);
    try {
      return doing(call, p, undefined, () => new Stats(host.stat(p, follow ? 1 : 0), o?.bigint));
    } catch (e) {
      if (o?.throwIfNoEntry === false && (e.code === "ENOENT" || e.code === "ENOTDIR")) return undefined;
      throw e;
    }
  };
  const kindAt = (p) => { try { return JSON.parse(host.stat(p, 0))[0]; } catch (e) { if (e.code === "ENOENT" || e.code === "ENOTDIR") return 0; throw e; } };
  const children = (p) => { const raw = JSON.parse(host.readdir(p)); const out = []; for (let i = 0; i < raw.length; i += 2) out.push([raw[i], raw[i + 1]]); return out; };
  const encoded = (b, e) => (e && e !== "buffer" ? ab.wrap(b).toString(e) : ab.wrap(b));
  const bytes = (v, e) => {
    if (typeof v === "string") return ab.bytesOf(v, e ?? "utf8");
    if (ArrayBuffer.isView(v) || v instanceof ArrayBuffer) return new Uint8Array(...ab.view(v));
    throw ab.argument("data", "string or an instance of Buffer, TypedArray, or DataView", v);
  };
  const sync = {
    openSync(p, f, m) { p = named(p); return doing("open", p, undefined, () => host.open(p, flagsOf(f ?? "r"), mode(m, 0o666))); },
    closeSync(fd) { doing("close", undefined, undefined, () => host.close(fd)); },
    readSync(fd, buffer, offset, length, position) {
      if (typeof offset === "object" && offset !== null) ({ offset, length, position } = offset);
      const [b, at, n] = ab.view(buffer);
      offset ??= 0;
      return doing("read", undefined, undefined, () => host.read(fd, b, at + offset, length ?? n - offset, position === undefined || position === null ? -1 : Number(position)));
    },
    writeSync(fd, data, offset, length, position) {
      if (typeof data === "string") { position = offset; data = bytes(data, length); offset = 0; length = data.length; } else if (typeof offset === "object" && offset !== null) ({ offset, length, position } = offset);
      const [b, at, n] = ab.view(data);
      offset ??= 0;
      return doing("write", undefined, undefined, () => host.writeAt(fd, b, at + offset, length ?? n - offset, position === undefined || position === null ? -1 : Number(position)));
    },
    readvSync: (fd, list, position) => list.reduce((n, b) => n + sync.readSync(fd, b, 0, b.byteLength, position), 0),
    writevSync: (fd, list, position) => list.reduce((n, b) => n + sync.writeSync(fd, b, 0, b.byteLength, position), 0),
    readFileSync(p, o) {
      if (typeof p === "number" && p >>> 0 === p) {
        const parts = [];
        for (;;) {
          const part = Buffer.alloc(65536);
          const n = sync.readSync(p, part, 0, part.length, null);
          if (n === 0) break;
          parts.push(part.subarray(0, n));
        }
        return encoded(Buffer.concat(parts), encodingOf(o));
      }
      p = named(p);
      const folder = kindAt(p) === 0o040000;
      return encoded(doing(folder ? "read" : "open", folder ? undefined : p, undefined, () => host.readFile(p)), encodingOf(o));
    },
    writeFileSync(p, data, o) {
      const b = bytes(data, encodingOf(o));
      const fd = typeof p === "number" ? p : sync.openSync(p, o?.flag ?? "w", o?.mode);
      try { for (let at = 0; at < b.length;) at += sync.writeSync(fd, b, at, b.length - at, null); } finally { if (fd !== p) sync.closeSync(fd); }
    },
    appendFileSync(p, data, o) { sync.writeFileSync(p, data, { encoding: encodingOf(o), mode: o?.mode, flag: o?.flag ?? "a" }); },
    existsSync(p) { try { host.stat(named(p), 1); return true; } catch { return false; } },
    accessSync(p, m = 0) {
      p = named(p);
      doing("access", p, undefined, () => {
        const perm = JSON.parse(host.stat(p, 1))[1];
        if ((m & 1 && !(perm & 0o111)) || (m & 2 && !(perm & 0o222)) || (m & 4 && !(perm & 0o444))) throw Object.assign(new Error(""), { code: "EACCES" });
      });
    },
    statSync: stat("stat", true), lstatSync: stat("lstat", false),
    fstatSync(fd, o) { return doing("fstat", undefined, undefined, () => new Stats(host.fstat(fd), o?.bigint)); },
    readdirSync(p, o) {
      p = named(p);
      const out = [];
      const walk = (dir, prefix) => {
        for (const [name, kind] of doing("scandir", dir, undefined, () => children(dir))) {
          out.push(o?.withFileTypes ? new Dirent(name, dir, kind) : encodingOf(o) === "buffer" ? Buffer.from(prefix + name) : prefix + name);
          if (o?.recursive && kind === 0o040000) walk(`${dir.replace(/\/$/, "")}/${name}`, `${prefix}${name}/`);
        }
      };
      walk(p, "");
      return out;
    },
    mkdirSync(p, o) {
      p = named(p);
      const m = mode(typeof o === "object" ? o?.mode : o, 0o777);
      if (!o?.recursive) { doing("mkdir", p, undefined, () => host.mkdir(p, m)); return undefined; }
      let first;
      const make = (dir) => {
        try { host.mkdir(dir, m); first = dir; } catch (e) {
          if (e.code === "EEXIST") { if (kindAt(`${dir}/.`) === 0o040000) return; throw e; }
          const up = ab.builtin("path").dirname(dir);
          if (e.code !== "ENOENT" || up === dir) throw e;
          make(up);
          const made = first;
          try { host.mkdir(dir, m); } catch (again) { if (again.code !== "EEXIST") throw again; }
          first = made ?? dir;
        }
      };
      doing("mkdir", p, undefined, () => make(ab.builtin("path").resolve(p)));
      return first;
    },
    mkdtempSync(prefix, o) {
      const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
      const b = new Uint8Array(6);
      for (;;) {
        host.entropy(b.buffer, 0, 6);
        const p = named(prefix, "prefix") + Array.from(b, (x) => letters[x % letters.length]).join("");
        try { sync.mkdirSync(p, 0o700); return encodingOf(o) === "buffer" ? Buffer.from(p) : p; } catch (e) { if (e.code !== "EEXIST") { e.message = e.message.replace("mkdir", "mkdtemp"); throw e; } }
      }
    },
    rmdirSync(p, o) { p = named(p); if (o?.recursive) { sync.rmSync(p, { recursive: true }); return; } doing("rmdir", p, undefined, () => host.rmdir(p)); },
    unlinkSync(p) { p = named(p); doing("unlink", p, undefined, () => host.unlink(p)); },
    rmSync(p, o) {
      p = named(p);
      const kind = doing("rm", p, undefined, () => kindAt(p));
      if (kind === 0) { if (o?.force) return; doing("lstat", p, undefined, () => host.stat(p, 0)); }
      if (kind !== 0o040000) { doing("rm", p, undefined, () => host.unlink(p)); return; }
      if (!o?.recursive) {
        const e = ab.error(Error, "ERR_FS_EISDIR", `Path is a directory: rm returned EISDIR (is a directory) ${p}`);
        e.name = "SystemError";
        e.syscall = "rm";
        e.path = p;
        throw e;
      }
      const remove = (dir) => { for (const [name, k] of children(dir)) { if (k === 0o040000) remove(`${dir}/${name}`); else host.unlink(`${dir}/${name}`); } host.rmdir(dir); };
      doing("rm", p, undefined, () => remove(p.replace(/(.)\/+$/, "$1")));
    },
    renameSync(a, b) { a = named(a, "oldPath"); b = named(b, "newPath"); doing("rename", a, b, () => host.rename(a, b)); },
    linkSync(a, b) { a = named(a, "existingPath"); b = named(b, "newPath"); doing("link", a, b, () => host.link(a, b)); },
    symlinkSync(target, p) { target = named(target, "target"); p = named(p); doing("symlink", target, p, () => host.symlink(target, p)); },
    readlinkSync(p, o) { p = named(p); const t = doing("readlink", p, undefined, () => host.readlink(p)); return encodingOf(o) === "buffer" ? Buffer.from(t) : t; },
    realpathSync(p) { p = named(p); return doing("lstat", p, undefined, () => host.realpath(p)); },
    chmodSync(p, m) { p = named(p); doing("chmod", p, undefined, () => host.chmod(p, mode(m))); },
    chownSync(p) { p = named(p); doing("chown", p, undefined, () => host.stat(p, 1)); },
    lchownSync(p) { sync.chownSync(p); },
    utimesSync(p, a, m) { p = named(p); const ms = (t) => (t instanceof Date ? t.getTime() : Number(t) * 1000); doing("utime", p, undefined, () => host.utimes(p, ms(a), ms(m), 1)); },
    truncateSync(p, n = 0) { const fd = sync.openSync(p, "r+"); try { sync.ftruncateSync(fd, n); } finally { sync.closeSync(fd); } },
    ftruncateSync(fd, n = 0) { doing("ftruncate", undefined, undefined, () => host.truncate(fd, n)); },
    fsyncSync() {}, fdatasyncSync() {},
    copyFileSync(a, b, m = 0) {
      a = named(a, "src");
      b = named(b, "dest");
      doing("copyfile", a, b, () => {
        const content = host.readFile(a);
        const perm = JSON.parse(host.stat(a, 1))[1];
        const fd = host.open(b, flagsOf(m & 1 ? "wx" : "w"), perm);
        try { for (let at = 0; at < content.length;) at += host.writeAt(fd, content.buffer, content.byteOffset + at, content.length - at, -1); } finally { host.close(fd); }
      });
    },
    cpSync(a, b, o = {}) {
      a = named(a, "src");
      b = named(b, "dest");
      if (o.filter && !o.filter(a, b)) return;
      const kind = doing("cp", a, b, () => JSON.parse(host.stat(a, o.dereference ? 1 : 0))[0]);
      if (kind === 0o040000) {
        if (!o.recursive) throw ab.error(Error, "ERR_FS_EISDIR", `Recursive option not enabled, cannot copy a directory: cp returned EISDIR (${a} is a directory (not copied)) ${a}`);
        sync.mkdirSync(b, { recursive: true });
        for (const [name] of children(a)) sync.cpSync(`${a}/${name}`, `${b}/${name}`, o);
      } else if (kind === 0o120000) {
        sync.symlinkSync(host.readlink(a), b);
      } else {
        if (o.force === false && sync.existsSync(b)) { if (o.errorOnExist) throw ab.error(Error, "ERR_FS_CP_EEXIST", `Target already exists: cp returned EEXIST (${b} already exists) ${b}`); return; }
        sync.mkdirSync(ab.builtin("path").dirname(b), { recursive: true });
        sync.copyFileSync(a, b);
      }
    },
    opendirSync(p) {
      const list = sync.readdirSync(p, { withFileTypes: true });
      return { path: p, readSync: () => list.shift() ?? null, read: async () => list.shift() ?? null, closeSync() {}, async close() {}, async *[Symbol.asyncIterator]() { yield* list; } };
    },
    globSync(pattern, o = {}) {
      const re = [pattern].flat().map(ab.glob);
      return sync.readdirSync(o.cwd ?? ".", { recursive: true }).filter((p) => re.some((r) => r.test(p)));
    },
  };
  // The other two ways do the same, a turn later.
  const callbacks = {};
  const promises = { constants };
  for (const [name, f] of Object.entries(sync)) {
    const plain = name.slice(0, -4);
    callbacks[plain] = Object.defineProperty((...args) => {
      const done = args.pop();
      if (typeof done !== "function") throw ab.argument("cb", "function", done);
      let result, error = null;
      try { result = f(...args); } catch (e) { if (e.code?.startsWith("ERR_INVALID_ARG")) throw e; error = e; }
      setImmediate(() => {
        if (plain === "exists") done(result);
        else if (error) done(error);
        else if ((plain === "read" || plain === "write") && args.length > 1) done(null, result, args[1]);
        else done(null, result);
      });
    }, "name", { value: plain });
    promises[plain] = Object.defineProperty((...args) => new Promise((resolve, reject) => {
      let result, error = null;
      try {
        args = args.map((a) => (a instanceof FileHandle ? a.fd : a));
        result = f(...args);
      } catch (e) { error = e; }
      setImmediate(() => (error ? reject(error) : resolve(result)));
    }), "name", { value: plain });
  }
  for (const name of ["exists", "close", "fstat", "ftruncate", "read", "write", "fsync", "fdatasync", "readv", "writev"]) delete promises[name];
  callbacks.readFile = Object.assign(callbacks.readFile, {});
  callbacks.realpath.native = callbacks.realpath;
  sync.realpathSync.native = sync.realpathSync;
  class FileHandle {
    constructor(fd) { this.fd = fd; }
    async read(b, ...rest) { if (!ArrayBuffer.isView(b)) { const o = b ?? {}; b = o.buffer ?? Buffer.alloc(16384); rest = [o.offset ?? 0, o.length, o.position]; } return { bytesRead: sync.readSync(this.fd, b, ...rest), buffer: b }; }
    async write(b, ...rest) { return { bytesWritten: sync.writeSync(this.fd, b, ...rest), buffer: b }; }
    async readFile(o) { return sync.readFileSync(this.fd, o); }
    async writeFile(d, o) { sync.writeFileSync(this.fd, d, o); }
    async appendFile(d, o) { sync.writeFileSync(this.fd, d, o); }
    async stat(o) { return sync.fstatSync(this.fd, o); }
    async truncate(n) { sync.ftruncateSync(this.fd, n); }
    async sync() {}
    async datasync() {}
    async close() { if (this.fd >= 0) sync.closeSync(this.fd); this.fd = -1; }
    async *readLines() { yield* (await this.readFile("utf8")).replace(/\n$/, "").split(/\r?\n/); }
    createReadStream(o) { return streams.createReadStream(null, { ...o, fd: this.fd }); }
    createWriteStream(o) { return streams.createWriteStream(null, { ...o, fd: this.fd }); }
    async [Symbol.asyncDispose ?? Symbol("asyncDispose")]() { await this.close(); }
  }
  promises.open = async (...args) => new FileHandle(sync.openSync(...args));
  promises.glob = async function* (...args) { yield* sync.globSync(...args); };
  promises.watch = () => { throw ab.lacking("watching files"); };
  const streams = {
    createReadStream(p, o = {}) {
      if (typeof o === "string") o = { encoding: o };
      const { Readable } = ab.builtin("stream");
      let fd = o.fd ?? null;
      let at = o.start ?? null;
      const end = o.end ?? Infinity;
      const r = new Readable({
        encoding: o.encoding, highWaterMark: o.highWaterMark ?? 65536, emitClose: o.emitClose, signal: o.signal, autoDestroy: o.autoClose,
        construct(done) {
          if (fd === null) try { fd = sync.openSync(p, o.flags ?? "r"); } catch (e) { done(e); return; }
          r.fd = fd;
          done();
          r.emit("open", fd);
          r.emit("ready");
        },
        read(n) {
          try {
            const b = Buffer.alloc(Math.max(0, Math.min(n, at === null ? Infinity : end - at + 1)));
            const got = b.length === 0 ? 0 : sync.readSync(fd, b, 0, b.length, at);
            if (at !== null) at += got;
            r.bytesRead += got;
            r.push(got === 0 ? null : b.subarray(0, got));
          } catch (e) { r.destroy(e); }
        },
        destroy(e, done) { if (fd !== null && o.fd === undefined && o.autoClose !== false) { try { sync.closeSync(fd); } catch { /* it is closed */ } fd = null; } done(e); },
      });
      r.bytesRead = 0;
      if (at === null && end !== Infinity) at = 0;
      r.path = p;
      return r;
    },
    createWriteStream(p, o = {}) {
      if (typeof o === "string") o = { encoding: o };
      const { Writable } = ab.builtin("stream");
      let fd = o.fd ?? null;
      let at = o.start ?? null;
      const w = new Writable({
        highWaterMark: o.highWaterMark ?? 65536, signal: o.signal, emitClose: o.emitClose, defaultEncoding: o.encoding,
        construct(done) {
          if (fd === null) try { fd = sync.openSync(p, o.flags ?? (at === null ? "w" : "r+"), o.mode); } catch (e) { done(e); return; }
          w.fd = fd;
          done();
          w.emit("open", fd);
          w.emit("ready");
        },
        write(b, e, done) {
          try {
            for (let from = 0; from < b.length;) { const n = sync.writeSync(fd, b, from, b.length - from, at); from += n; if (at !== null) at += n; }
            w.bytesWritten += b.length;
          } catch (x) { done(x); return; }
          done();
        },
        destroy(e, done) { if (fd !== null && o.fd === undefined && o.autoClose !== false) { try { sync.closeSync(fd); } catch { /* it is closed */ } fd = null; } done(e); },
      });
      w.bytesWritten = 0;
      w.close = (done) => { if (done) w.once("close", done); w.end(); };
      w.path = p;
      return w;
    },
  };
  const fs = {
    ...sync, ...callbacks, ...streams, constants, promises, Stats, Dirent, F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1,
    watch() { throw ab.lacking("watching files"); }, watchFile() { throw ab.lacking("watching files"); }, unwatchFile() {},
  };
  ab.define("fs", () => fs);
  ab.define("fs/promises", () => promises);
  ab.fs = sync;
})();
