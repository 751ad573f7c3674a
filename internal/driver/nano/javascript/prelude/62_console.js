// console, and consoles of a program's own streams.
(() => {
  const ab = __agentbox;
  const host = ab.host;
  const say = (c, i, args) => {
    let text = ab.formatWith(c.options(i), ...args);
    if (c.indent) text = c.indent + text.replaceAll("\n", `\n${c.indent}`);
    c.write(i, `${text}\n`);
  };
  const span = (ms) => (ms >= 1000 ? `${(ms / 1000).toFixed(3)}s` : `${Number(ms.toFixed(3))}ms`);
  const warn = (c, text) => { if (c.global) ab.process.emitWarning(text); };
  const drawn = (titles, lines) => {
    const widths = titles.map((t, i) => Math.max(ab.width(t), ...lines.map((l) => ab.width(l[i]))) + 2);
    const row = (cells) => `│${cells.map((c, i) => ` ${c}${" ".repeat(widths[i] - ab.width(c) - 1)}`).join("│")}│`;
    const rule = (a, b, c) => a + widths.map((w) => "─".repeat(w)).join(b) + c;
    return [rule("┌", "┬", "┐"), row(titles), rule("├", "┼", "┤"), ...lines.map(row), rule("└", "┴", "┘")].join("\n");
  };
  const iteration = "(iteration index)";
  const tabled = (rows, columns, options) => {
    const show = (v) => ab.inspect(v, { ...options, depth: v !== null && typeof v === "object" && !Array.isArray(v) && Object.keys(v).length > 2 ? -1 : 0, maxArrayLength: 3, breakLength: Infinity });
    const tag = rows[Symbol.toStringTag];
    if (rows instanceof Map) return drawn([iteration, "Key", "Values"], [...rows].map(([k, v], i) => [String(i), show(k), show(v)]));
    if (tag === "Map Iterator") {
      const all = [...rows];
      return all.every((e) => Array.isArray(e) && e.length === 2) ? drawn([iteration, "Key", "Values"], all.map(([k, v], i) => [String(i), show(k), show(v)])) : drawn([iteration, "Values"], all.map((v, i) => [String(i), show(v)]));
    }
    if (rows instanceof Set || tag === "Set Iterator") return drawn([iteration, "Values"], [...rows].map((v, i) => [String(i), show(v)]));
    const names = [...(columns ?? [])];
    let values = false;
    const isRow = (r) => r !== null && (typeof r === "object" || typeof r === "function") && !(typeof r === "function");
    const entries = Object.entries(rows);
    for (const [, r] of entries) {
      if (!isRow(r)) values = true;
      else if (!columns) for (const k of Object.keys(r)) if (!names.includes(k)) names.push(k);
    }
    const lines = entries.map(([k, r]) => [k, ...names.map((n) => (isRow(r) && Object.hasOwn(r, n) ? show(r[n]) : "")), ...(values ? [isRow(r) ? "" : show(r)] : [])]);
    return drawn(["(index)", ...names, ...(values ? ["Values"] : [])], lines);
  };
  const inner = new WeakMap();
  const of = (self) => inner.get(self);
  const methods = {
    log(...a) { say(of(this), 1, a); }, warn(...a) { say(of(this), 2, a); }, error(...a) { say(of(this), 2, a); },
    dir(v, o) { say(of(this), 1, [ab.inspect(v, { customInspect: false, ...of(this).options(1), ...o })]); },
    time(label = "default") { const c = of(this); label = `${label}`; if (c.began.has(label)) warn(c, `Label '${label}' already exists for console.time()`); else c.began.set(label, host.now()); },
    timeEnd(label = "default") { const c = of(this); label = `${label}`; if (!c.began.has(label)) { warn(c, `No such label '${label}' for console.timeEnd()`); return; } say(c, 1, [`${label}: ${span(host.now() - c.began.get(label))}`]); c.began.delete(label); },
    timeLog(label = "default", ...a) { const c = of(this); label = `${label}`; if (!c.began.has(label)) warn(c, `No such label '${label}' for console.timeLog()`); else say(c, 1, [`${label}: ${span(host.now() - c.began.get(label))}`, ...a]); },
    trace(...a) { const e = { name: "Trace", message: ab.format(...a) }; Error.captureStackTrace?.(e); say(of(this), 2, [e.stack ?? `Trace: ${e.message}`]); },
    assert(v, ...a) { if (v) return; if (typeof a[0] === "string") a[0] = `Assertion failed: ${a[0]}`; else a.unshift("Assertion failed"); say(of(this), 2, a); },
    clear() {},
    count(label = "default") { const c = of(this); label = `${label}`; c.counts.set(label, (c.counts.get(label) ?? 0) + 1); say(c, 1, [`${label}: ${c.counts.get(label)}`]); },
    countReset(label = "default") { const c = of(this); label = `${label}`; if (!c.counts.has(label)) warn(c, `Count for '${label}' does not exist`); else c.counts.delete(label); },
    group(...a) { const c = of(this); if (a.length > 0) say(c, 1, a); c.indent += " ".repeat(c.step); },
    groupEnd() { const c = of(this); c.indent = c.indent.slice(0, Math.max(0, c.indent.length - c.step)); },
    table(rows, columns) {
      const c = of(this);
      if (rows === null || typeof rows !== "object") { say(c, 1, [rows]); return; }
      if (columns !== undefined && !Array.isArray(columns)) throw ab.argument("properties", "an instance of Array", columns);
      say(c, 1, [tabled(rows, columns, c.options(1))]);
    },
  };
  const all = { log: "log", debug: "log", info: "log", dirxml: "log", warn: "warn", error: "error", dir: "dir", time: "time", timeEnd: "timeEnd", timeLog: "timeLog", trace: "trace", assert: "assert", clear: "clear", count: "count", countReset: "countReset", group: "group", groupCollapsed: "group", groupEnd: "groupEnd", table: "table" };
  const equip = (self, held) => {
    inner.set(self, { counts: new Map(), began: new Map(), indent: "", step: 2, ...held });
    for (const [name, as] of Object.entries(all)) Object.defineProperty(self, name, { value: Object.defineProperty(methods[as].bind(self), "name", { value: name }), writable: true, configurable: true, enumerable: true });
  };
  function Console(o, err) {
    if (!new.target) return new Console(o, err);
    if (!o || typeof o.write === "function") o = { stdout: o, stderr: err };
    const { stdout, stderr = stdout, colorMode = "auto", inspectOptions, groupIndentation = 2 } = o;
    const unfit = (name) => ab.error(TypeError, "ERR_CONSOLE_WRITABLE_STREAM", `Console expects a writable stream instance for ${name}`);
    if (!stdout || typeof stdout.write !== "function") throw unfit("stdout");
    if (!stderr || typeof stderr.write !== "function") throw unfit("stderr");
    const options = { ...(colorMode === true ? { colors: true } : {}), ...inspectOptions };
    equip(this, { write: (i, text) => (i === 1 ? stdout : stderr).write(text), options: () => options, step: groupIndentation });
    return undefined;
  }
  Object.defineProperty(Console, Symbol.hasInstance, { value: (v) => inner.has(v) });
  const console = Object.create({});
  equip(console, { write: (i, text) => { if (ab.redirected) ab.process[i === 1 ? "stdout" : "stderr"].write(text); else host.write(i, text); }, options: () => ({}), global: true });
  for (const name of ["profile", "profileEnd", "timeStamp"]) console[name] = { [name]() {} }[name];
  console.context = () => console;
  console.createTask = () => ({ run: (f) => f() });
  console.Console = Console;
  Object.defineProperty(console, Symbol.toStringTag, { value: "console", configurable: true });
  Object.defineProperty(globalThis, "console", { value: console, writable: true, configurable: true });
  ab.define("console", () => console);
})();
