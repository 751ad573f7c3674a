// Intl: made when a program first names it. What it knows of languages lies with the host.
(() => {
  const ab = __agentbox;
  const host = ab.host;
  const known = ["en", "en-GB", "en-CA", "en-AU", "en-IN", "de", "de-AT", "de-CH", "fr", "fr-CA", "es", "es-MX", "it", "pt", "pt-PT", "nl", "sv", "ja", "zh"];
  const like = { "en-NZ": "en-AU", "en-IE": "en-GB", "en-ZA": "en-GB", "es-US": "es-MX", "es-AR": "es", "es-CO": "es", "es-419": "es-MX" };
  const detailed = ["en", "de", "fr", "es"];
  const data = new Map();
  const read = (name) => { if (!data.has(name)) data.set(name, JSON.parse(host.locale(name))); return data.get(name); };
  const I = { read, known };
  ab.intl = I;

  const tag = /^([a-z]{2,3}|[a-z]{5,8})(-[a-z]{4})?(-(?:[a-z]{2}|\d{3}))?((?:-(?:[a-z\d]{5,8}|\d[a-z\d]{3}))*)((?:-[a-wy-z\d](?:-[a-z\d]{2,8})+)*)(-x(?:-[a-z\d]{1,8})+)?$/i;
  const canonical = (text) => {
    if (typeof text !== "string" && (typeof text !== "object" || text === null)) throw new TypeError("Incorrect locale information provided");
    if (text instanceof Locale) return text.toString();
    const m = tag.exec(String(text));
    if (!m) throw new RangeError(`Invalid language tag: ${text}`);
    const [, language, script = "", region = "", variants = "", extensions = "", privately = ""] = m;
    return language.toLowerCase() + (script && `-${script[1].toUpperCase()}${script.slice(2).toLowerCase()}`) + region.toUpperCase() + variants.toLowerCase() + extensions.toLowerCase() + privately.toLowerCase();
  };
  const listOf = (locales) => {
    if (locales === undefined) return [];
    if (typeof locales === "string" || locales instanceof Locale) return [canonical(locales)];
    if (locales === null) throw new TypeError("Cannot convert undefined or null to object");
    return [...new Set(Array.from(locales, canonical))];
  };
  const parts = (l) => { const [base, ...rest] = l.split(/-(?=u-)/); return [base.replace(/-[A-Z][a-z]{3}(?=-|$)/, ""), rest.join("-")]; };
  const languageOf = (l) => l.split("-")[0];
  const supported = (l) => known.includes(languageOf(l));
  // localeOf chooses a language: what is asked for, or English.
  const localeOf = (locales) => {
    for (const l of listOf(locales)) {
      if (!supported(l)) continue;
      const [base] = parts(l);
      const from = known.includes(base) ? base : like[base] ?? languageOf(base);
      const keys = {};
      const u = /-u-(.*)$/.exec(l)?.[1].split("-") ?? [];
      for (let i = 0; i < u.length; i++) if (u[i].length === 2) { keys[u[i]] = u[i + 1]?.length > 2 ? u[i + 1] : ""; }
      return { locale: l.replace(/-u-.*$/, ""), from, language: languageOf(base), keys };
    }
    return { locale: "en-US", from: "en", language: "en", keys: {} };
  };
  // more is what is known of a few languages only; of the others it is refused.
  const more = (at, what) => {
    if (!detailed.includes(at.language)) throw ab.lacking(`Intl.${what} of ${at.language}`, `Intl.${what} is not available for ${at.locale}: a nano space knows it in English, German, French and Spanish`);
    return read(`${at.language}.more`);
  };
  const option = (o, name, values, usual) => {
    let v = o?.[name];
    if (v === undefined) return usual;
    v = typeof v === "boolean" && values?.includes(v) ? v : String(v);
    if (values && !values.includes(v)) throw new RangeError(`Value ${v} out of range for Intl.${I.now} options property ${name}`);
    return v;
  };
  const integer = (o, name, low, high, usual) => {
    const v = o?.[name];
    if (v === undefined) return usual;
    const n = Number(v);
    if (!(n >= low && n <= high)) throw new RangeError(`${name} value is out of range.`);
    return Math.floor(n);
  };
  const supportedLocalesOf = { value: (locales) => listOf(locales).filter(supported), writable: true, configurable: true };
  const define = (name, C) => {
    Object.defineProperty(C, "supportedLocalesOf", supportedLocalesOf);
    Object.defineProperty(C.prototype, Symbol.toStringTag, { value: `Intl.${name}`, configurable: true });
    return C;
  };
  Object.assign(I, { canonical, listOf, localeOf, more, option, integer, define, languageOf });

  // plural returns the form of a number, which is given as it is printed.
  I.plural = (language, text, ordinal) => {
    const m = /^-?(\d+)(?:\.(\d+))?(?:[ec]\+?(\d+))?$/.exec(text);
    if (!m) return "other";
    const n = Math.abs(Number(text));
    const i = Number(m[1]);
    const v = m[2]?.length ?? 0;
    if (ordinal) {
      switch (language) {
        case "en": return n % 10 === 1 && n % 100 !== 11 ? "one" : n % 10 === 2 && n % 100 !== 12 ? "two" : n % 10 === 3 && n % 100 !== 13 ? "few" : "other";
        case "fr": return n === 1 ? "one" : "other";
        case "it": return [11, 8, 80, 800].includes(n) ? "many" : "other";
        case "sv": return [1, 2].includes(n % 10) && ![11, 12].includes(n % 100) ? "one" : "other";
      }
      return "other";
    }
    const million = i !== 0 && i % 1000000 === 0 && v === 0;
    switch (language) {
      case "en": case "de": case "nl": case "sv": return i === 1 && v === 0 ? "one" : "other";
      case "fr": return i === 0 || i === 1 ? "one" : million ? "many" : "other";
      case "es": return n === 1 ? "one" : million ? "many" : "other";
      case "it": return i === 1 && v === 0 ? "one" : million ? "many" : "other";
      case "pt": return i === 0 || i === 1 ? "one" : million ? "many" : "other";
    }
    return "other";
  };
  const categories = { en: ["one", "other"], de: ["one", "other"], nl: ["one", "other"], sv: ["one", "other"], fr: ["one", "many", "other"], es: ["one", "many", "other"], it: ["one", "many", "other"], pt: ["one", "many", "other"] };
  const ordinals = { en: ["few", "one", "two", "other"], fr: ["one", "other"], it: ["many", "other"], sv: ["one", "other"] };

  class PluralRules {
    #at;
    #o;
    constructor(locales, o) {
      I.now = "PluralRules";
      this.#at = localeOf(locales);
      this.#o = { type: option(o, "type", ["cardinal", "ordinal"], "cardinal"), ...I.digitsOf(o, 0, 3) };
    }
    select(n) { n = Number(n); return I.plural(this.#at.language, Number.isFinite(n) ? I.rounded(n, this.#o) : "x", this.#o.type === "ordinal"); }
    selectRange(a, b) { if (a === undefined || b === undefined) throw new TypeError("Invalid time value"); return this.select(b); }
    resolvedOptions() {
      const { type, minimumIntegerDigits, minimumFractionDigits, maximumFractionDigits } = this.#o;
      return { locale: this.#at.locale, type, minimumIntegerDigits, minimumFractionDigits, maximumFractionDigits, pluralCategories: (type === "ordinal" ? ordinals : categories)[this.#at.language] ?? ["other"], roundingIncrement: 1, roundingMode: "halfExpand", roundingPriority: "auto", trailingZeroDisplay: "auto" };
    }
  }
  // split puts values where a pattern names them.
  const split = (pattern, values) => pattern.split(/(\{[^}]*\})/).filter((p) => p !== "").flatMap((p) => (p[0] === "{" && p.slice(1, -1) in values ? values[p.slice(1, -1)] : [{ type: "literal", value: p }]));
  const joined = (list) => list.map((p) => p.value).join("");
  Object.assign(I, { split, joined });

  const unitOf = (unit) => {
    const u = String(unit).replace(/s$/, "");
    if (!["second", "minute", "hour", "day", "week", "month", "quarter", "year"].includes(u)) throw new RangeError(`Invalid unit argument for format() '${unit}'`);
    return u;
  };
  class RelativeTimeFormat {
    #at;
    #o;
    #n;
    constructor(locales, o) {
      I.now = "RelativeTimeFormat";
      this.#at = localeOf(locales);
      this.#o = { style: option(o, "style", ["long", "short", "narrow"], "long"), numeric: option(o, "numeric", ["always", "auto"], "always") };
      this.#n = new I.NumberFormat(this.#at.locale);
    }
    formatToParts(n, unit) {
      unit = unitOf(unit);
      n = Number(n);
      if (!Number.isFinite(n)) throw new RangeError("Value need to be finite number for Intl.RelativeTimeFormat.prototype.formatToParts()");
      const all = more(this.#at, "RelativeTimeFormat").rtf[this.#o.style][unit];
      if (this.#o.numeric === "auto" && all.words[n] !== undefined && !Object.is(n, -0)) return [{ type: "literal", value: all.words[n] }];
      const past = n < 0 || Object.is(n, -0);
      const number = this.#n.formatToParts(Math.abs(n));
      const form = I.plural(this.#at.language, I.rounded(Math.abs(n), I.digitsOf({}, 0, 3))) === "one" ? 0 : 1;
      return split(all[past ? "past" : "future"][form], { n: number.map((p) => ({ ...p, unit })) });
    }
    format(n, unit) { return joined(this.formatToParts(n, unit)); }
    resolvedOptions() { return { locale: this.#at.locale, ...this.#o, numberingSystem: "latn" }; }
  }
  class ListFormat {
    #at;
    #o;
    constructor(locales, o) {
      I.now = "ListFormat";
      this.#at = localeOf(locales);
      this.#o = { type: option(o, "type", ["conjunction", "disjunction", "unit"], "conjunction"), style: option(o, "style", ["long", "short", "narrow"], "long") };
    }
    formatToParts(items) {
      const all = Array.from(items ?? [], (x) => { if (typeof x !== "string") throw new TypeError("Iterable yielded " + ab.inspect(x) + " which is not a string"); return x; });
      const [pair, first, middle, last] = more(this.#at, "ListFormat").lists[`${this.#o.type} ${this.#o.style}`];
      const out = [];
      all.forEach((value, i) => {
        if (i > 0) {
          let literal = all.length === 2 ? pair : i === all.length - 1 ? last : i === 1 ? first : middle;
          // The words for "and" and "or" of Spanish change before their own sound.
          if (this.#at.language === "es" && i === all.length - 1) {
            if (/ y $/.test(literal) && /^(i|hi(?!a|e|o))/i.test(value)) literal = literal.replace(/ y $/, " e ");
            if (/ o $/.test(literal) && /^(o|ho|8)/i.test(value)) literal = literal.replace(/ o $/, " u ");
          }
          out.push({ type: "literal", value: literal });
        }
        out.push({ type: "element", value });
      });
      return out;
    }
    format(items) { return joined(this.formatToParts(items)); }
    resolvedOptions() { return { locale: this.#at.locale, ...this.#o }; }
  }
  class Collator {
    #at;
    #o;
    #compare;
    constructor(locales, o) {
      I.now = "Collator";
      this.#at = localeOf(locales);
      const { keys } = this.#at;
      this.#o = {
        usage: option(o, "usage", ["sort", "search"], "sort"), sensitivity: option(o, "sensitivity", ["base", "accent", "case", "variant"], "variant"), ignorePunctuation: Boolean(o?.ignorePunctuation ?? false),
        collation: "default", numeric: o?.numeric === undefined ? keys.kn === "" || keys.kn === "true" : Boolean(o.numeric), caseFirst: option(o, "caseFirst", ["upper", "lower", "false"], keys.kf ?? "false"),
      };
      if (this.#o.caseFirst === "upper") throw ab.lacking("Intl.Collator with caseFirst", "Intl.Collator with caseFirst: \"upper\" is not available in a nano space");
      const { sensitivity, numeric, ignorePunctuation } = this.#o;
      const how = ["base", "accent", "case", "variant"].indexOf(sensitivity) + (numeric ? 4 : 0);
      const clean = ignorePunctuation ? (s) => String(s).replace(/[\p{P}\p{Z}]/gu, "") : String;
      const { locale } = this.#at;
      this.#compare = (a, b) => host.collate(locale, how, clean(a), clean(b));
      Object.defineProperty(this.#compare, "name", { value: "" });
    }
    get compare() { return this.#compare; }
    resolvedOptions() { const { usage, sensitivity, ignorePunctuation, collation, numeric, caseFirst } = this.#o; return { locale: this.#at.locale, usage, sensitivity, ignorePunctuation, collation, numeric, caseFirst }; }
  }
  class Locale {
    #text;
    #u = {};
    constructor(text, o = {}) {
      if (typeof text !== "string" && !(text instanceof Locale)) throw new TypeError("First argument to Intl.Locale constructor can't be empty or missing");
      const [base, ...u] = canonical(String(text)).split(/-u-/);
      let [language, script, region] = [base.split("-")[0], /-([A-Z][a-z]{3})(?=-|$)/.exec(base)?.[1], /-([A-Z]{2}|\d{3})(?=-|$)/.exec(base)?.[1]];
      language = o.language ?? language;
      script = o.script ?? script;
      region = o.region ?? region;
      const words = (u[0] ?? "").split("-");
      for (let i = 0; i < words.length; i++) if (words[i].length === 2) { const v = []; while (words[i + 1]?.length > 2) v.push(words[++i]); this.#u[words[i - v.length]] = v.join("-"); }
      for (const [k, name] of [["ca", "calendar"], ["co", "collation"], ["hc", "hourCycle"], ["kf", "caseFirst"], ["kn", "numeric"], ["nu", "numberingSystem"]]) if (o[name] !== undefined) this.#u[k] = o[name] === true ? "" : String(o[name]);
      this.#text = [language, script, region].filter(Boolean).join("-");
    }
    get baseName() { return this.#text; }
    get language() { return this.#text.split("-")[0]; }
    get script() { return /-([A-Z][a-z]{3})/.exec(this.#text)?.[1]; }
    get region() { return /-([A-Z]{2}|\d{3})$/.exec(this.#text)?.[1]; }
    get calendar() { return this.#u.ca; }
    get collation() { return this.#u.co; }
    get hourCycle() { return this.#u.hc; }
    get caseFirst() { return this.#u.kf; }
    get numeric() { return this.#u.kn === "" || this.#u.kn === "true"; }
    get numberingSystem() { return this.#u.nu; }
    toString() { const u = Object.keys(this.#u).sort().map((k) => `-${k}${this.#u[k] ? `-${this.#u[k]}` : ""}`).join(""); return this.#text + (u && `-u${u}`); }
    maximize() { const full = { en: "en-Latn-US", de: "de-Latn-DE", fr: "fr-Latn-FR", es: "es-Latn-ES", it: "it-Latn-IT", pt: "pt-Latn-BR", nl: "nl-Latn-NL", sv: "sv-Latn-SE", ja: "ja-Jpan-JP", zh: "zh-Hans-CN" }[this.language]; return full ? new Locale(full, { language: this.language, script: this.script, region: this.region }) : this; }
    minimize() { return new Locale(this.language); }
    getWeekInfo() { const first = ["US", "CA", "MX", "JP", "BR", "IN"].includes(this.maximize().region) ? 7 : 1; return { firstDay: first, weekend: [6, 7] }; }
    getTextInfo() { return { direction: ["ar", "he", "fa", "ur"].includes(this.language) ? "rtl" : "ltr" }; }
  }
  Object.defineProperty(Locale.prototype, Symbol.toStringTag, { value: "Intl.Locale", configurable: true });
  class DisplayNames {
    #at;
    #o;
    constructor(locales, o) {
      I.now = "DisplayNames";
      if (o === undefined) throw new TypeError("Cannot convert undefined or null to object");
      this.#at = localeOf(locales);
      this.#o = { style: option(o, "style", ["narrow", "short", "long"], "long"), type: option(o, "type", ["language", "region", "script", "currency", "calendar", "dateTimeField"]), fallback: option(o, "fallback", ["code", "none"], "code") };
      if (this.#o.type === undefined) throw new TypeError("Required option \"type\" must not be undefined");
      if (["calendar", "dateTimeField"].includes(this.#o.type)) throw ab.lacking(`Intl.DisplayNames of type ${this.#o.type}`);
    }
    of(code) {
      const { type, fallback } = this.#o;
      const valid = { language: tag, region: /^([a-z]{2}|\d{3})$/i, script: /^[a-z]{4}$/i, currency: /^[a-z]{3}$/i }[type];
      if (!valid.test(String(code))) throw new RangeError(`Invalid argument to Intl.DisplayNames.prototype.of`);
      code = type === "language" ? canonical(code) : type === "script" ? code[0].toUpperCase() + code.slice(1).toLowerCase() : String(code).toUpperCase();
      const all = more(this.#at, "DisplayNames");
      const table = all[{ language: "languages", region: "regions", script: "scripts", currency: "currencies" }[type]];
      if (table[code] !== undefined) return table[code];
      if (type === "language" && code.includes("-") && table[languageOf(code)]) {
        const l = new Locale(code);
        const inside = [all.scripts[l.script] ?? l.script, all.regions[l.region] ?? l.region].filter(Boolean);
        return `${table[l.language]} (${inside.join(", ")})`;
      }
      return fallback === "code" ? code : undefined;
    }
    resolvedOptions() { return { locale: this.#at.locale, ...this.#o, ...(this.#o.type === "language" ? { languageDisplay: "dialect" } : {}) }; }
  }
  // Segments: what belongs to one character is joined by marks, joiners and the rules of flags.
  const clusters = /\r\n|\p{Regional_Indicator}{2}|(?:\p{Extended_Pictographic}(?:\p{EMod}|\ufe0f|\u20e3|[\u{e0020}-\u{e007f}])*(?:\u200d\p{Extended_Pictographic}(?:\p{EMod}|\ufe0f)*)*|[\u1100-\u115f]+[\u1160-\u11a7]*[\u11a8-\u11ff]*|[^])[\p{M}\u200d\ufe0f]*/gu;
  const words = /[\p{L}\p{N}_\p{M}]+(?:['’.:·,](?=[\p{L}\p{N}])[\p{L}\p{N}_\p{M}]+)*|\r\n|[\u0020\u3000]+|\p{Regional_Indicator}{2}|\p{Extended_Pictographic}(?:\p{EMod}|\ufe0f|\u200d\p{Extended_Pictographic})*|[^]/gu;
  const sentences = /[^.!?…\n]*(?:(?:[.!?…]+["'”’)\]]*(?:\s+|$)|\n|$)|[.!?…]+(?=\S))(?:)/gu;
  class Segmenter {
    #at;
    #o;
    constructor(locales, o) { I.now = "Segmenter"; this.#at = localeOf(locales); this.#o = { granularity: option(o, "granularity", ["grapheme", "word", "sentence"], "grapheme") }; }
    segment(input) {
      input = String(input);
      const { granularity } = this.#o;
      const all = function* () {
        if (granularity === "word" && /[\u3040-\u30ff\u4e00-\u9fff\u0e00-\u0e7f]/.test(input)) throw ab.lacking("Intl.Segmenter for words without spaces");
        for (const m of input.matchAll({ grapheme: clusters, word: words, sentence: sentences }[granularity])) {
          if (m[0] === "") continue;
          const s = { segment: m[0], index: m.index, input };
          if (granularity === "word") s.isWordLike = /[\p{L}\p{N}]/u.test(m[0]);
          yield s;
        }
      };
      return { [Symbol.iterator]: all, containing(at = 0) { for (const s of all()) if (at >= s.index && at < s.index + s.segment.length) return s; return undefined; } };
    }
    resolvedOptions() { return { locale: this.#at.locale, ...this.#o }; }
  }
  ab.makeIntl = () => {
    const { NumberFormat, DateTimeFormat } = I;
    const all = { getCanonicalLocales: (l) => listOf(l), supportedValuesOf(key) {
      const shared = read("digits");
      const values = { currency: () => shared.currencies, unit: () => shared.units.filter((u) => !u.includes("-per-")), timeZone: () => JSON.parse(host.zones()), calendar: () => ["gregory", "iso8601"], collation: () => ["emoji", "eor"], numberingSystem: () => ["latn"] }[key];
      if (!values) throw new RangeError(`Invalid key : ${key}`);
      return [...values()];
    } };
    const I_ = {};
    for (const [name, C] of Object.entries({ ...all, Collator, DateTimeFormat, DisplayNames, DurationFormat: ab.DurationFormat, ListFormat, Locale, NumberFormat, PluralRules, RelativeTimeFormat, Segmenter })) {
      if (!(name in all) && name !== "Locale") define(name, C);
      Object.defineProperty(I_, name, { value: C, writable: true, configurable: true });
    }
    // Those that may be called without new.
    for (const name of ["NumberFormat", "DateTimeFormat", "Collator"]) {
      const C = I_[name];
      const callable = new Proxy(C, { apply: (_, __, args) => new C(...args) });
      C.prototype.constructor = callable;
      Object.defineProperty(I_, name, { value: callable, writable: true, configurable: true });
    }
    Object.defineProperty(I_, Symbol.toStringTag, { value: "Intl", configurable: true });
    return I_;
  };
  let made;
  const Intl = () => (made ??= ab.makeIntl());
  Object.defineProperty(globalThis, "Intl", { get: Intl, set(v) { Object.defineProperty(globalThis, "Intl", { value: v, writable: true, configurable: true, enumerable: false }); }, configurable: true, enumerable: false });

  // The methods of others that follow a language.
  const method = (C, name, f) => Object.defineProperty(C.prototype, name, { value: f, writable: true, configurable: true });
  const kept = new Map(); // of one use: programs call these in loops
  const cached = (kind, locales, o, make) => {
    if (o !== undefined || (locales !== undefined && typeof locales !== "string")) return make();
    const key = `${kind} ${locales}`;
    if (!kept.has(key)) kept.set(key, make());
    return kept.get(key);
  };
  method(String, "localeCompare", function localeCompare(that, locales, o) {
    const text = String(this);
    if (locales === undefined && o === undefined) return host.collate("en", 3, text, String(that));
    return cached("c", locales, o, () => new Collator(locales, o)).compare(text, String(that));
  });
  method(Number, "toLocaleString", function toLocaleString(locales, o) { return cached("n", locales, o, () => new I.NumberFormat(locales, o)).format(Number.prototype.valueOf.call(this)); });
  method(BigInt, "toLocaleString", function toLocaleString(locales, o) { return cached("n", locales, o, () => new I.NumberFormat(locales, o)).format(BigInt.prototype.valueOf.call(this)); });
  const dated = (name, required, usual) => method(Date, name, { [name](locales, o) {
    const ms = Date.prototype.getTime.call(this);
    if (Number.isNaN(ms)) return "Invalid Date";
    return new I.DateTimeFormat(locales, I.dateOptions(o, required, usual)).format(ms);
  } }[name]);
  dated("toLocaleString", "any", "all");
  dated("toLocaleDateString", "date", "date");
  dated("toLocaleTimeString", "time", "time");
  const arrayLocale = function toLocaleString(locales, o) { return Array.from(this, (v) => (v === null || v === undefined ? "" : v.toLocaleString(locales, o))).join(","); };
  method(Array, "toLocaleString", arrayLocale);
  method(Object.getPrototypeOf(Uint8Array), "toLocaleString", arrayLocale);
  for (const [name, plain] of [["toLocaleUpperCase", "toUpperCase"], ["toLocaleLowerCase", "toLowerCase"]]) {
    method(String, name, { [name](locales) {
      const l = locales === undefined ? "" : languageOf(listOf(locales)[0] ?? "");
      let s = String(this);
      if (l === "tr" || l === "az") s = plain === "toUpperCase" ? s.replaceAll("i", "\u0130") : s.replaceAll("I\u0307", "i").replaceAll("I", "\u0131").replaceAll("\u0130", "i");
      return s[plain]();
    } }[name]);
  }
})();
