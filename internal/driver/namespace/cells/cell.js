// Runs the cells of one interpreter context of JavaScript and TypeScript, one after the other, for the daemon.
//
// A message is four bytes with its length, big-endian, and JSON. Messages to the daemon go to descriptor 3, those of the daemon come on 4.
// The standard streams belong to the cells. The daemon believes nothing of what comes from here but what a cell may say about itself.
"use strict";
const fs = require("fs"), path = require("path"), vm = require("vm"), util = require("util"), net = require("net");
const { stripTypeScriptTypes, createRequire } = require("module");
const acorn = require("internal/deps/acorn/acorn/dist/acorn");

const [, , NAME] = process.argv;
const FILE = `/workspace/.agentbox/contexts/${NAME}.js`;
const MAX_TEXT = 1 << 20, MAX_BYTES = 4 << 20, MAX_FORMS = 64, MAX_ALL = 8 << 20;

/** Writes all of some bytes to a descriptor that may not block. */
function write(fd, raw) {
  for (let at = 0; at < raw.length;) {
    try {
      at += fs.writeSync(fd, raw, at);
    } catch (e) {
      if (e.code !== "EAGAIN") throw e;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

function say(message) {
  const body = Buffer.from(JSON.stringify(message)), head = Buffer.alloc(4);
  head.writeUInt32BE(body.length);
  write(3, Buffer.concat([head, body]));
}

const inspect = v => util.inspect(v, { maxArrayLength: 100, breakLength: 80 });
const cut = text => (text.length <= MAX_TEXT ? text : text.slice(0, MAX_TEXT) + "…").toWellFormed();
const shown = { values: 0, forms: 0, bytes: 0, left: 0 };

/** All forms of a value, by their media types. Pictures are in base64. */
function rich(v) {
  let text;
  try {
    text = inspect(v);
  } catch (e) {
    text = `<${e}>`;
  }
  const forms = { "text/plain": cut(text) };
  if (v === null || (typeof v !== "object" && typeof v !== "function")) return forms;
  try {
    const said = v[Symbol.for("Jupyter.display")]?.() ?? (typeof v._toMime === "function" ? Object.fromEntries([v._toMime()].map(([a, b]) => [a, b])) : undefined);
    if (said && typeof said === "object") {
      for (const [media, data] of Object.entries(said)) {
        if (media === "application/json") forms[media] = JSON.stringify(data);
        else if (typeof data === "string") forms[media] = data;
      }
    } else if (v instanceof Uint8Array) {
      const raw = Buffer.from(v.buffer, v.byteOffset, v.byteLength);
      if (raw.subarray(0, 4).toString("latin1") === "\x89PNG") forms["image/png"] = raw.toString("base64");
      if (raw.subarray(0, 3).toString("latin1") === "\xff\xd8\xff") forms["image/jpeg"] = raw.toString("base64");
    } else if (Array.isArray(v) || [Object.prototype, null].includes(Object.getPrototypeOf(v))) {
      const json = JSON.stringify(v);
      if (json !== undefined) forms["application/json"] = json;
    }
  } catch { /* a value that has no such form */ }
  return forms;
}

/** Prints a value, and shows all of its forms beside the output. */
function present(v, result) {
  const forms = rich(v), fitting = {};
  process.stdout.write(forms["text/plain"] + "\n");
  shown.values++;
  for (const [media, data] of Object.entries(forms)) {
    const size = media === "image/png" || media === "image/jpeg" ? data.length * 3 / 4 : Buffer.byteLength(data);
    if (shown.forms >= MAX_FORMS || size > MAX_BYTES || shown.bytes + size > MAX_ALL) {
      shown.left++;
      continue;
    }
    shown.forms++;
    shown.bytes += size;
    fitting[media] = data;
  }
  if (Object.keys(fitting).length)
    say({ kind: "shown", value: shown.values, result, type: String(v === null ? "null" : v?.constructor?.name ?? typeof v).slice(0, 100), forms: fitting });
}

Object.defineProperty(globalThis, "display", { value: (...values) => values.forEach(v => present(v, false)), writable: true, configurable: true });

const SYNTAX = { ecmaVersion: "latest", allowAwaitOutsideFunction: true, allowHashBang: true };

/** Parses a cell, which may have types. */
function parse(code) {
  const tried = text => {
    try {
      return { text, tree: acorn.parse(text, { ...SYNTAX, sourceType: "script" }) };
    } catch (e) {
      try {
        return { text, tree: acorn.parse(text, { ...SYNTAX, sourceType: "module" }) };
      } catch { throw e; }
    }
  };
  try {
    return tried(code);
  } catch (plain) {
    let text;
    try {
      text = stripTypeScriptTypes(code);
    } catch (e) {
      if (e.code !== "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") throw e.code === "ERR_INVALID_TYPESCRIPT_SYNTAX" || e instanceof SyntaxError ? new SyntaxError(plain.message) : plain;
      text = transformed(code, e); // an enum, a namespace: what is more than types
    }
    return tried(text);
  }
}

/** What Bun makes of TypeScript that is more than types. */
function transformed(code, why) {
  const made = require("child_process").spawnSync("bun", ["-e",
    "process.stdout.write(new Bun.Transpiler({loader:'ts',deadCodeElimination:false,trimUnusedImports:false}).transformSync(await Bun.stdin.text()))"], { input: code, encoding: "utf8" });
  if (made.status !== 0) throw new SyntaxError(why.message);
  return made.stdout;
}

/** The names that a pattern declares. */
function names(p, found = []) {
  if (p?.type === "Identifier") found.push(p.name);
  else if (p?.type === "ObjectPattern") for (const q of p.properties) names(q.type === "RestElement" ? q.argument : q.value, found);
  else if (p?.type === "ArrayPattern") for (const q of p.elements) names(q, found);
  else if (p?.type === "AssignmentPattern") names(p.left, found);
  else if (p?.type === "RestElement") names(p.argument, found);
  return found;
}

/** Makes of a cell a function that leaves its declarations to the next cell and returns the value of the last expression. */
function prepared(code) {
  const { text, tree } = parse(code);
  const declared = [], functions = [];
  let out = "", at = 0;
  const put = (node, made) => {
    out += text.slice(at, node.start) + made;
    at = node.end;
  };
  const of = node => text.slice(node.start, node.end);
  tree.body.forEach((node, n) => {
    if (node.type === "ExportNamedDeclaration" && node.declaration) {
      out += text.slice(at, node.start);
      at = node.declaration.start;
      node = node.declaration;
    }
    switch (node.type) {
    case "VariableDeclaration": {
      const parts = [];
      for (const d of node.declarations) {
        declared.push(...names(d.id));
        if (d.init) parts.push(`${of(d.id)} = ${of(d.init)}`);
        else if (node.kind !== "var") parts.push(`${of(d.id)} = undefined`);
      }
      put(node, parts.length ? `void (${parts.join(", ")});` : ";");
      break;
    }
    case "FunctionDeclaration":
      declared.push(node.id.name);
      functions.push(`globalThis.${node.id.name} = ${node.id.name};`);
      break;
    case "ClassDeclaration":
      declared.push(node.id.name);
      put(node, `void (${node.id.name} = ${of(node)});`);
      break;
    case "ImportDeclaration": {
      const from = `await __agentbox.load(${node.source.raw})`;
      const parts = [];
      for (const s of node.specifiers) {
        declared.push(s.local.name);
        if (s.type === "ImportNamespaceSpecifier") parts.push(`${s.local.name} = __m`);
        else parts.push(`${s.local.name} = __m[${JSON.stringify(s.type === "ImportDefaultSpecifier" ? "default" : s.imported.name ?? s.imported.value)}]`);
      }
      put(node, `{ const __m = ${from}; ${parts.join("; ")} }`);
      break;
    }
    case "ExpressionStatement":
      if (n === tree.body.length - 1 && !(node.directive && tree.body.length > 1)) put(node, `return __agentbox.last(${of(node.expression)});`);
    }
  });
  out += text.slice(at);
  for (const name of declared)
    if (!(name in globalThis)) Object.defineProperty(globalThis, name, { value: undefined, writable: true, enumerable: true, configurable: true });
  return `(async () => { ${functions.join(" ")} ${out.replace(/^#!.*/, "")}\n})()`;
}

let given = {}, folder = null;

/** Sets the environment and the folder of a cell, and leaves what cells have set themselves. */
function surround(request) {
  for (const [name, value] of Object.entries(given)) if (!(name in request.env) && process.env[name] === value) delete process.env[name];
  for (const [name, value] of Object.entries(request.env)) if (given[name] !== value) process.env[name] = value;
  given = request.env;
  if (folder !== request.cwd) {
    process.chdir(request.cwd);
    folder = request.cwd;
  }
}

let count = 0, written = null;

/** Reports whether the file of the context is as this program has left it. */
function stands() {
  let now = null;
  try {
    now = fs.readFileSync(FILE);
  } catch { /* there is none */ }
  return written === null || now === null ? now === written : now.equals(written);
}

/** Writes the file of the context, by which it is listed and deleted. */
function note(token) {
  const numbers = Buffer.alloc(12);
  numbers.writeBigUInt64LE(BigInt(count));
  const content = Buffer.concat([Buffer.from("agentbox context 1\njs\0\0"), numbers, Buffer.from(`live ${token}\n`)]);
  try {
    fs.mkdirSync(path.dirname(FILE), { recursive: true });
    fs.writeFileSync(FILE + ".new", content);
    fs.renameSync(FILE + ".new", FILE);
    written = content;
  } catch (e) {
    process.stderr.write(`agentbox: the context is not listed: ${e.message}\n`);
  }
}

/** The trace of an error without the frames of this program. */
function traceOf(e) {
  if (!(e instanceof Error) && !util.types.isNativeError(e)) return "Uncaught " + inspect(e);
  const kept = String(e.stack ?? e).split("\n").filter(line => !line.includes("/run/agentbox/cell.js") && !/^\s+at .*\(?node:(vm|internal)/.test(line));
  const rest = Object.keys(e).length ? " " + inspect(Object.fromEntries(Object.entries(e))) : "";
  return "Uncaught " + kept.join("\n") + rest;
}

let interrupt = null; // ends the cell under way
const waiting = () => new Promise((_, reject) => { interrupt = reject; });
process.on("SIGINT", () => interrupt?.(new Error("the cell was interrupted")));
process.on("uncaughtException", e => process.stderr.write(traceOf(e) + "\n"));
process.on("unhandledRejection", e => process.stderr.write(traceOf(e) + "\n"));

Object.defineProperty(globalThis, "__agentbox", { value: Object.freeze({
  last: v => [v],
  load: name => import(name.startsWith(".") || name.startsWith("/") ? "file://" + path.resolve(name) : resolved(name)),
}) });

/** The address of a package, as the files of the space find it. */
function resolved(name) {
  try {
    const found = require("module").isBuiltin(name) ? name : createRequire(path.join(process.cwd(), "_")).resolve(name);
    return path.isAbsolute(found) ? "file://" + found : found;
  } catch {
    return name;
  }
}

/** Runs one cell and returns its exit code. */
async function cell(request) {
  Object.assign(shown, { values: 0, forms: 0, bytes: 0, left: 0 });
  let code = 0;
  try {
    surround(request);
    globalThis.require = createRequire(path.join(process.cwd(), "_"));
    const source = request.file ? fs.readFileSync(request.file, "utf8") : request.code;
    const run = new vm.Script(prepared(source), { filename: request.file ?? `<cell ${count + 1}>`, importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER });
    const stopped = waiting();
    stopped.catch(() => {});
    const last = await Promise.race([run.runInThisContext({ breakOnSigint: true }), stopped]);
    interrupt = null;
    if (Array.isArray(last)) {
      const v = await last[0];
      if (v !== undefined) {
        globalThis._ = v;
        present(v, true);
      }
    }
  } catch (e) {
    code = 1;
    process.stderr.write(traceOf(e) + "\n");
  }
  interrupt = null;
  if (shown.left)
    process.stderr.write(`agentbox: ${shown.left} of the forms of what the cell shows are left out: there is room for ${MAX_FORMS} of ${MAX_BYTES} bytes each, ${MAX_ALL} together; write what is more to files\n`);
  return code;
}

/** Lets what was written to a stream reach its pipe. */
const flushed = stream => new Promise(done => stream.writableLength ? stream.write("", done) : done());

async function serve(request) {
  if (!stands()) {
    if (count > 0) return say({ kind: "stale" });
    process.stderr.write(`agentbox: the context ${NAME} begins anew. Its variables lived in a process that has ended, or in another space or tier.\n`);
  }
  const code = await cell(request);
  count++;
  note(request.token);
  await Promise.all([flushed(process.stdout), flushed(process.stderr)]);
  for (const fd of [1, 2]) {
    try {
      write(fd, Buffer.from(request.marker));
    } catch { /* the cell has closed it */ }
  }
  say({ kind: "end", code, count });
}

let pending = Buffer.alloc(0), line = Promise.resolve();
const input = new net.Socket({ fd: 4, readable: true, writable: false });
input.on("end", () => process.exit(0));
input.on("data", piece => {
  pending = Buffer.concat([pending, piece]);
  while (pending.length >= 4 && pending.length >= 4 + pending.readUInt32BE(0)) {
    const end = 4 + pending.readUInt32BE(0), request = JSON.parse(pending.subarray(4, end));
    pending = pending.subarray(end);
    line = line.then(() => serve(request));
  }
});
