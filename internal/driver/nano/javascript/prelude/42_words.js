// Node's ways to take words apart: path.win32, and util.parseArgs with its tokens.
(() => {
  const ab = __agentbox;
  const text = (name, v) => { if (typeof v !== "string") throw ab.argument(name, "string", v); return v; };

  // path.win32: a path is a device ("C:" or "\\server\share"), perhaps a root, and names.
  const isSep = (c) => c === "/" || c === "\\";
  const share = /^[\\/]{2}([^\\/]+)[\\/]+([^\\/]+)/;
  const cut = (p) => {
    if (isSep(p[0])) {
      const m = share.exec(p);
      if (!m) return ["", true, p.slice(1)];
      return m[1] === "." || m[1] === "?" ? [`\\\\${m[1]}`, true, p.slice(3)] : [`\\\\${m[1]}\\${m[2]}`, true, p.slice(m[0].length)];
    }
    if (/^[a-z]:/i.test(p)) return [p.slice(0, 2), isSep(p[2] ?? ""), p.slice(isSep(p[2] ?? "") ? 3 : 2)];
    return ["", false, p];
  };
  const names = (rest, above) => {
    const out = [];
    for (const n of rest.split(/[\\/]/)) {
      if (n === "" || n === ".") continue;
      if (n === "..") { if (out.length > 0 && out.at(-1) !== "..") out.pop(); else if (above) out.push(".."); } else out.push(n);
    }
    return out.join("\\");
  };
  // rooted is how long the root of a path is as it was written; -1 where it has none.
  const rooted = (p) => {
    if (isSep(p[0] ?? "")) { const m = share.exec(p); return m ? Math.min(p.length, m[0].length + 1) : 1; }
    return /^[a-z]:/i.test(p) ? (isSep(p[2] ?? "") ? 3 : 2) : -1;
  };
  const trimmed = (p, from) => { let end = p.length; while (end > from && isSep(p[end - 1])) end--; return p.slice(0, end); };
  // withoutSuffix is a last name without its suffix. A path that is the suffix has none left.
  const withoutSuffix = (p, b, suffix) => (!suffix || !b.endsWith(suffix) ? b : p === suffix ? "" : b === suffix ? b : b.slice(0, -suffix.length));
  const win32 = {
    sep: "\\", delimiter: ";",
    normalize(p) {
      text("path", p);
      if (p === "") return ".";
      if (p.length === 1) return isSep(p) ? "\\" : p;
      const [device, root, rest] = cut(p);
      let tail = names(rest, !root);
      if (tail === "" && !root) tail = ".";
      if (tail !== "" && isSep(p.at(-1))) tail += "\\";
      return root ? `${device}\\${tail}` : device + tail;
    },
    isAbsolute(p) { text("path", p); return p !== "" && (isSep(p[0]) || (/^[a-z]:/i.test(p) && isSep(p[2] ?? ""))); },
    join(...parts) {
      const all = parts.map((p) => text("path", p)).filter((p) => p !== "");
      if (all.length === 0) return ".";
      let joined = all.join("\\");
      if (!/^[\\/]{2}[^\\/]/.test(all[0]) || (/^[\\/]{2}[^\\/]+[\\/]*$/.test(all[0]) && all.length === 1)) joined = joined.replace(/^[\\/]{2,}/, "\\");
      return win32.normalize(joined);
    },
    resolve(...parts) {
      let device = "";
      let rest = "";
      let absolute = false;
      for (let i = parts.length - 1; i >= -1 && !(absolute && device !== ""); i--) {
        let p;
        if (i >= 0) { p = text(`paths[${i}]`, parts[i]); if (p === "") continue; } else p = device === "" || device.startsWith("\\") ? ab.cwd() : `${device}\\`;
        const [d, root, tail] = cut(p);
        if (d !== "") {
          if (device !== "") { if (d.toLowerCase() !== device.toLowerCase()) continue; } else device = d;
        }
        if (absolute) { if (device !== "") break; } else { rest = `${tail}\\${rest}`; absolute = root; }
      }
      const tail = names(rest, !absolute);
      return absolute ? `${device}\\${tail}` : device + tail || ".";
    },
    relative(from, to) {
      const [a, b] = [win32.resolve(text("from", from)), win32.resolve(text("to", to))];
      if (from === to || a.toLowerCase() === b.toLowerCase()) return "";
      const [x, y] = [a, b].map((p) => p.split("\\").filter(Boolean));
      let n = 0;
      while (n < x.length && n < y.length && x[n].toLowerCase() === y[n].toLowerCase()) n++;
      return n === 0 ? b : [...x.slice(n).map(() => ".."), ...y.slice(n)].join("\\");
    },
    dirname(p) {
      text("path", p);
      if (p === "") return ".";
      const root = rooted(p);
      if (share.exec(p)?.[0].length === p.length && isSep(p[0])) return p;
      const s = trimmed(p, Math.max(root, 0));
      let end = s.length;
      while (end > Math.max(root, 0) && !isSep(s[end - 1])) end--;
      if (end <= root) return p.slice(0, root);
      return end === 0 ? "." : p.slice(0, end - 1) || p.slice(0, Math.max(root, 1));
    },
    basename(p, suffix) {
      text("path", p);
      if (suffix !== undefined) text("suffix", suffix);
      const s = trimmed(/^[a-z]:/i.test(p) ? p.slice(2) : p, 0);
      const b = s.slice(Math.max(s.lastIndexOf("/"), s.lastIndexOf("\\")) + 1);
      return withoutSuffix(s, b, suffix);
    },
    extname(p) { const b = win32.basename(p); const i = b.lastIndexOf("."); return i <= 0 || b === ".." ? "" : b.slice(i); },
    parse(p) {
      text("path", p);
      const end = Math.max(rooted(p), 0);
      const root = p.slice(0, end);
      const s = trimmed(p, end);
      const start = Math.max(end, s.lastIndexOf("/") + 1, s.lastIndexOf("\\") + 1);
      const base = s.slice(start);
      const ext = base === "" ? "" : win32.extname(base);
      return { root, dir: start > end ? s.slice(0, start - 1) : root, base, ext, name: ext ? base.slice(0, -ext.length) : base };
    },
    format: (o) => formatted("\\", o),
    toNamespacedPath(p) {
      if (typeof p !== "string" || p === "") return p;
      const r = win32.resolve(p);
      if (r.startsWith("\\\\") && r[2] !== "?" && r[2] !== ".") return `\\\\?\\UNC\\${r.slice(2)}`;
      return /^[a-z]:\\/i.test(r) ? `\\\\?\\${r}` : p;
    },
    matchesGlob: (p, g) => ab.glob(g.replaceAll("\\", "/")).test(p.replaceAll("\\", "/")),
  };
  const formatted = (sep, o) => {
    if (o === null || typeof o !== "object") throw ab.argument("pathObject", "object", o);
    const dir = o.dir || o.root;
    const base = o.base || `${o.name || ""}${o.ext ? `${o.ext[0] === "." ? "" : "."}${o.ext}` : ""}`;
    if (!dir) return base;
    return dir === o.root ? `${dir}${base}` : `${dir}${sep}${base}`;
  };
  const posix = ab.builtin("path");
  posix.format = (o) => formatted("/", o);
  for (const p of [posix, win32]) { p.posix = posix; p.win32 = win32; p._makeLong = p.toNamespacedPath; }
  ab.define("path/win32", () => win32);

  // parseArgs: words become tokens, of which values and positionals are made.
  const bad = (code, message) => ab.error(TypeError, code, message);
  const boolean = (name, v) => { if (typeof v !== "boolean") throw ab.argument(name, "boolean", v); };
  const object = (name, v) => { if (v === null || typeof v !== "object" || Array.isArray(v)) throw ab.argument(name, "object", v); };
  const own = (o, k) => (o !== null && o !== undefined && Object.hasOwn(o, k) ? o[k] : undefined);
  const checked = (options) => {
    for (const [k, o] of Object.entries(options)) {
      object(`options.${k}`, o);
      const type = own(o, "type");
      if (type !== "string" && type !== "boolean") throw ab.argument(`options.${k}.type`, "('string|boolean')", type);
      if (Object.hasOwn(o, "short")) {
        text(`options.${k}.short`, o.short);
        if (o.short.length !== 1) throw bad("ERR_INVALID_ARG_VALUE", `The property 'options.${k}.short' must be a single character. Received ${ab.inspect(o.short)}`);
      }
      if (Object.hasOwn(o, "multiple")) boolean(`options.${k}.multiple`, o.multiple);
      const usual = own(o, "default");
      if (usual === undefined) continue;
      if (o.multiple && !Array.isArray(usual)) throw ab.argument(`options.${k}.default`, "an instance of Array", usual);
      for (const [i, v] of (o.multiple ? usual : [usual]).entries()) if (typeof v !== type) throw ab.argument(`options.${k}.default${o.multiple ? `[${i}]` : ""}`, type, v);
    }
  };
  const tokensOf = (args, options) => {
    const typeOf = (k) => own(own(options, k), "type");
    const long = (short) => Object.keys(options).find((k) => own(options[k], "short") === short) ?? short;
    const tokens = [];
    const rest = [...args];
    const option = (name, rawName, index, value, inlineValue) => tokens.push({ kind: "option", name, rawName, index, value, inlineValue });
    for (let index = -1, grouped = 0; rest.length > 0;) {
      const a = rest.shift();
      if (grouped > 0) grouped--; else index++;
      const wants = (name) => typeOf(name) === "string" && rest[0] !== undefined && rest[0] !== null;
      if (a === "--") {
        tokens.push({ kind: "option-terminator", index });
        for (const value of rest) tokens.push({ kind: "positional", index: ++index, value });
        break;
      }
      const isShort = a.length > 1 && a[0] === "-" && a[1] !== "-";
      if (isShort && a.length === 2 || a.startsWith("--") && !a.slice(3).includes("=")) {
        const name = isShort ? long(a[1]) : a.slice(2);
        const taken = wants(name);
        option(name, a, index, taken ? rest.shift() : undefined, taken ? false : undefined);
        if (taken) index++;
      } else if (isShort && typeOf(long(a[1])) !== "string") {
        const apart = [];
        for (let i = 1; i < a.length; i++) {
          if (typeOf(long(a[i])) === "string" && i < a.length - 1) { apart.push(`-${a.slice(i)}`); break; }
          apart.push(`-${a[i]}`);
        }
        rest.unshift(...apart);
        grouped = apart.length;
      } else if (isShort) option(long(a[1]), `-${a[1]}`, index, a.slice(2), true);
      else if (a.startsWith("--")) { const eq = a.indexOf("=", 3); option(a.slice(2, eq), a.slice(0, eq), index, a.slice(eq + 1), true); } else tokens.push({ kind: "positional", index, value: a });
    }
    return tokens;
  };
  const judged = (t, { options, allowPositionals, allowNegative }) => {
    let { name } = t;
    if (!Object.hasOwn(options, name)) {
      const off = name.slice(3);
      if (!allowNegative || !name.startsWith("no-") || own(own(options, off), "type") !== "boolean") {
        throw bad("ERR_PARSE_ARGS_UNKNOWN_OPTION", `Unknown option '${t.rawName}'${allowPositionals ? `. To specify a positional argument starting with a '-', place it at the end of the command after '--', as in '-- ${JSON.stringify(t.rawName)}` : ""}`);
      }
      name = off;
    }
    const { type, short } = options[name];
    const both = `${short ? `-${short}, ` : ""}--${name}`;
    const invalid = (message) => bad("ERR_PARSE_ARGS_INVALID_OPTION_VALUE", message);
    if (type === "string" && typeof t.value !== "string") throw invalid(`Option '${both} <value>' argument missing`);
    if (type === "boolean" && t.value !== undefined && t.value !== null) throw invalid(`Option '${both}' does not take an argument`);
    if (!t.inlineValue && t.value?.length > 1 && t.value[0] === "-") {
      const how = t.rawName.startsWith("--") ? `'${t.rawName}=-XYZ'` : `'--${t.name}=-XYZ' or '${t.rawName}-XYZ'`;
      throw invalid(`Option '${t.rawName}' argument is ambiguous.\nDid you forget to specify the option argument for '${t.rawName}'?\nTo specify an option argument starting with a dash use ${how}.`);
    }
  };
  ab.parseArgs = (config = {}) => {
    const evaluated = ab.process.execArgv.some((a) => ["-e", "--eval", "-p", "--print"].includes(a));
    const args = own(config, "args") ?? ab.process.argv.slice(evaluated ? 1 : 2);
    const strict = own(config, "strict") ?? true;
    const allowPositionals = own(config, "allowPositionals") ?? !strict;
    const wanted = own(config, "tokens") ?? false;
    const allowNegative = own(config, "allowNegative") ?? false;
    const options = own(config, "options") ?? { __proto__: null };
    if (!Array.isArray(args)) throw ab.argument("args", "an instance of Array", args);
    for (const [name, v] of Object.entries({ strict, allowPositionals, tokens: wanted, allowNegative })) boolean(name, v);
    object("options", options);
    checked(options);
    const tokens = tokensOf(args, options);
    const result = { values: Object.create(null), positionals: [], ...(wanted ? { tokens } : {}) };
    const { values } = result;
    for (const t of tokens) {
      if (t.kind === "positional") {
        if (!allowPositionals) throw bad("ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL", `Unexpected argument '${t.value}'. This command does not take positional arguments`);
        result.positionals.push(t.value);
      }
      if (t.kind !== "option") continue;
      if (strict) judged(t, { options, allowPositionals, allowNegative });
      if (t.name === "__proto__") continue;
      let v = t.value ?? true;
      if (allowNegative && t.value === undefined && t.name.startsWith("no-")) { t.name = t.name.slice(3); v = false; }
      if (own(own(options, t.name), "multiple")) (values[t.name] ??= []).push(v); else values[t.name] = v;
    }
    for (const [k, o] of Object.entries(options)) if (k !== "__proto__" && own(o, "default") !== undefined && values[k] === undefined) values[k] = o.default;
    return result;
  };
})();
