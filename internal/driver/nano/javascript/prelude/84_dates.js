// Intl.DateTimeFormat, and the names of zones in Date's own text.
(() => {
  const ab = __agentbox;
  const host = ab.host;
  const I = ab.intl;
  const fields = ["weekday", "era", "year", "month", "day", "dayPeriod", "hour", "minute", "second", "fractionalSecondDigits", "timeZoneName"];
  const dateFields = ["weekday", "year", "month", "day"];
  const timeFields = ["dayPeriod", "hour", "minute", "second", "fractionalSecondDigits"];
  const styles = ["full", "long", "medium", "short"];
  const numeric = ["numeric", "2-digit"];
  const words = ["narrow", "short", "long"];

  // dateOptions adds what is formatted where nothing was asked for.
  I.dateOptions = (o, required, usual) => {
    o = o === undefined ? {} : Object(o);
    const has = (list) => list.some((k) => o[k] !== undefined);
    const asked = (required !== "time" && has(dateFields)) || (required !== "date" && has(timeFields));
    if (o.dateStyle !== undefined || o.timeStyle !== undefined) {
      if (required === "date" && o.timeStyle !== undefined) throw new TypeError("Invalid option : timeStyle");
      if (required === "time" && o.dateStyle !== undefined) throw new TypeError("Invalid option : dateStyle");
      return o;
    }
    if (asked) return o;
    return { ...o, ...(usual !== "time" ? { year: "numeric", month: "numeric", day: "numeric" } : {}), ...(usual !== "date" ? { hour: "numeric", minute: "numeric", second: "numeric" } : {}) };
  };
  class DateTimeFormat {
    #at;
    #o;
    #data;
    #format;
    constructor(locales, options) {
      I.now = "DateTimeFormat";
      const at = (this.#at = I.localeOf(locales));
      const d = (this.#data = I.read(at.from));
      const o = I.dateOptions(options, "any", "date");
      const r = {
        weekday: I.option(o, "weekday", words), era: I.option(o, "era", words), year: I.option(o, "year", numeric), month: I.option(o, "month", [...numeric, ...words]), day: I.option(o, "day", numeric), dayPeriod: I.option(o, "dayPeriod", words),
        hour: I.option(o, "hour", numeric), minute: I.option(o, "minute", numeric), second: I.option(o, "second", numeric), fractionalSecondDigits: I.integer(o, "fractionalSecondDigits", 1, 3, undefined),
        timeZoneName: I.option(o, "timeZoneName", ["short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric"]),
      };
      const dateStyle = I.option(o, "dateStyle", styles);
      const timeStyle = I.option(o, "timeStyle", styles);
      if (dateStyle || timeStyle) for (const k of fields) if (r[k] !== undefined) throw new TypeError(`Can't set option ${k} when ${dateStyle ? "dateStyle" : "timeStyle"} is used`);
      if (r.dayPeriod) throw ab.lacking("Intl.DateTimeFormat with dayPeriod");
      const calendar = o.calendar ?? at.keys.ca;
      if (calendar !== undefined && !["gregory", "gregorian", "iso8601"].includes(calendar)) throw ab.lacking(`Intl.DateTimeFormat with the calendar ${calendar}`);
      const system = o.numberingSystem ?? at.keys.nu;
      if (system !== undefined && system !== "latn") throw ab.lacking(`Intl.DateTimeFormat with the digits ${system}`);
      let { timeZone } = o;
      if (timeZone === undefined) timeZone = host.zoneName("");
      else {
        const offset = /^([+-])(\d\d):?(\d\d)?$/.exec(String(timeZone));
        const found = offset ? `${offset[1]}${offset[2]}:${offset[3] ?? "00"}` : host.zoneName(String(timeZone));
        if (found === "") throw new RangeError(`Invalid time zone specified: ${timeZone}`);
        timeZone = found;
      }
      const cycle = I.option(o, "hourCycle", ["h11", "h12", "h23", "h24"], ["h11", "h12", "h23", "h24"].includes(at.keys.hc) ? at.keys.hc : undefined);
      const hour12 = o.hour12 === undefined ? (cycle ? cycle === "h11" || cycle === "h12" : d.hour12) : Boolean(o.hour12);
      // What a style of time with a zone is written with.
      const zone = timeStyle === "full" ? "long" : timeStyle === "long" ? "short" : r.timeZoneName;
      const hours = o.hour12 !== undefined ? (hour12 ? "h12" : "h23") : cycle ?? (hour12 ? "h12" : "h23");
      this.#o = { ...r, dateStyle, timeStyle, timeZone, hour12, hours, zone, pattern: this.#pattern({ ...r, dateStyle, timeStyle, hour12, zone }) };
    }
    #pattern(o) {
      const d = this.#data;
      const { list } = d;
      let date = "";
      let time = "";
      let glue = list[d.joined[3]];
      if (o.dateStyle) { date = list[d.dateStyles[styles.indexOf(o.dateStyle)]]; glue = list[d.styled[styles.indexOf(o.dateStyle)]]; } else if (o.era) {
        const year = o.year ?? (o.weekday || o.month || o.day ? undefined : undefined);
        const at = (["", "numeric"].indexOf(year ? "numeric" : "") * 4 + ["", "numeric", "short", "long"].indexOf(o.month === "2-digit" ? "numeric" : o.month === "narrow" ? "short" : o.month ?? "")) * 2 + (o.day ? 1 : 0);
        date = list[d.eras[at]];
        if (o.weekday) date = `{${{ long: "EEEE", short: "EEE", narrow: "EEEEE" }[o.weekday]}}, ${date}`;
      } else {
        const at = ((["", "short", "long", "narrow"].indexOf(o.weekday ?? "") * 3 + ["", ...numeric].indexOf(o.year ?? "")) * 6 + ["", ...numeric, "short", "long", "narrow"].indexOf(o.month ?? "")) * 3 + ["", ...numeric].indexOf(o.day ?? "");
        if (at > 0) date = list[d.dates[at]];
        if (o.month === "long") glue = list[d.joined[o.weekday ? 0 : 1]]; else if (o.month === "short") glue = list[d.joined[2]];
      }
      if (o.timeStyle) time = list[d.timeStyles[o.hour12 ? 0 : 1][styles.indexOf(o.timeStyle)]].replace(/\s*[(]?\{z\}[)]?/, ""); else {
        const at = (((o.hour12 ? 0 : 1) * 3 + ["", ...numeric].indexOf(o.hour ?? "")) * 3 + ["", ...numeric].indexOf(o.minute ?? "")) * 3 + ["", ...numeric].indexOf(o.second ?? (o.fractionalSecondDigits && !o.minute ? "numeric" : ""));
        if (d.times[at] >= 0) time = list[d.times[at]];
        if (o.fractionalSecondDigits) time = /\{ss?\}/.test(time) ? time.replace(/(\{ss?\})/, `$1${d.decimal}{S}`) : `${time}{S}`;
      }
      if (o.zone) { if (time) time += " {z}"; else if (date) date = d.zoned.replace("{1}", date); else time = "{z}"; }
      return date && time ? glue.replace("{1}", () => date).replace("{0}", () => time) : date || time;
    }
    #parts(ms) {
      ms = ms === undefined ? Date.now() : ms instanceof Date ? ms.getTime() : Number(ms);
      if (!(Math.abs(ms) <= 8.64e15)) throw new RangeError("Invalid time value");
      const o = this.#o;
      const { names } = this.#data;
      const offset = /^[+-]/.test(o.timeZone) ? (o.timeZone[0] === "-" ? -1 : 1) * (60 * Number(o.timeZone.slice(1, 3)) + Number(o.timeZone.slice(4))) * 60 : host.zoneOffset(o.timeZone, ms);
      const t = new Date(ms + offset * 1000);
      const [y, m, day, wd, h, mi, s] = [t.getUTCFullYear(), t.getUTCMonth(), t.getUTCDate(), t.getUTCDay(), t.getUTCHours(), t.getUTCMinutes(), t.getUTCSeconds()];
      const two = (n) => String(n).padStart(2, "0");
      const shown = o.era || y > 0 ? (y > 0 ? y : 1 - y) : 1 - y;
      const twelve = o.hours === "h11" ? h % 12 : h % 12 || 12;
      const full = o.hours === "h24" ? h || 24 : h;
      const part = (type, value) => [{ type, value: String(value) }];
      const values = {
        y: part("year", shown), yy: part("year", two(shown % 100)), M: part("month", m + 1), MM: part("month", two(m + 1)), d: part("day", day), dd: part("day", two(day)),
        h: part("hour", twelve), hh: part("hour", two(twelve)), H: part("hour", full), HH: part("hour", two(full)), m: part("minute", mi), mm: part("minute", two(mi)), s: part("second", s), ss: part("second", two(s)),
        S: part("fractionalSecond", String(t.getUTCMilliseconds()).padStart(3, "0").slice(0, o.fractionalSecondDigits ?? 3)), a: part("dayPeriod", names.a[h < 12 ? 0 : 1]), G: part("era", names.G[["long", "short", "narrow"].indexOf(o.era ?? "short")][y > 0 ? 1 : 0]),
      };
      for (const k of ["MMMM", "LLLL", "MMM", "LLL", "MMMM", "MMMMM", "MMMd"]) values[k] = part("month", names[k][m]);
      for (const k of ["EEEE", "EEE", "EEEEE", "EEEd", "EEEc"]) values[k] = part("weekday", names[k][wd]);
      if (o.zone) values.z = part("timeZoneName", zoneText(o.timeZone, ms, offset, o.zone, this.#at));
      return I.split(o.pattern, values);
    }
    formatToParts(ms) { const out = []; for (const p of this.#parts(ms)) { if (p.type === "literal" && out.at(-1)?.type === "literal") out.at(-1).value += p.value; else out.push({ ...p }); } return out; }
    get format() { return (this.#format ??= Object.defineProperty((ms) => I.joined(this.#parts(ms)), "name", { value: "" })); }
    formatRange(a, b) {
      const [x, y] = [this.#parts(a), this.#parts(b)];
      const [s, t] = [I.joined(x), I.joined(y)];
      if (s === t) return s;
      // Where the day is one and a time is shown, the date is said once.
      const dated = (l) => l.filter((p) => ["year", "month", "day"].includes(p.type)).map((p) => p.value).join();
      const first = x.findIndex((p) => p.type === "hour");
      if (first > 0 && dated(x) !== "" && dated(x) === dated(y)) return `${s}\u2009–\u2009${I.joined(y.slice(y.findIndex((p) => p.type === "hour")))}`;
      return `${s}\u2009–\u2009${t}`;
    }
    resolvedOptions() {
      const { timeZone, hours, hour12, dateStyle, timeStyle, hour, timeZoneName, ...r } = this.#o;
      const timed = hour !== undefined || timeStyle !== undefined;
      const all = { locale: this.#at.locale, calendar: "gregory", numberingSystem: "latn", timeZone, ...(timed ? { hourCycle: hours, hour12 } : {}) };
      for (const k of fields) { const v = k === "hour" ? hour : k === "timeZoneName" ? timeZoneName : r[k]; if (v !== undefined) all[k] = (k === "minute" || k === "second") && hour !== undefined ? "2-digit" : v; }
      if (dateStyle) all.dateStyle = dateStyle;
      if (timeStyle) all.timeStyle = timeStyle;
      return all;
    }
  }
  const gmt = (offset, long) => {
    if (offset === 0) return "GMT";
    const [h, m] = [Math.floor(Math.abs(offset) / 3600), Math.floor((Math.abs(offset) % 3600) / 60)];
    const two = (n) => String(n).padStart(2, "0");
    return `GMT${offset < 0 ? "-" : "+"}${long ? two(h) : h}${m || long ? `:${two(m)}` : ""}`;
  };
  const zoneText = (zone, ms, offset, style, at) => {
    if (style === "shortOffset" || style === "longOffset") return gmt(offset, style === "longOffset");
    if (style.endsWith("Generic")) throw ab.lacking("Intl.DateTimeFormat with generic names of zones");
    const language = at.language === "en" && at.from !== "en" && at.from !== "en-IN" ? "en-GB" : ["en", "de", "fr", "es"].includes(at.language) ? at.language : "";
    return (language && host.zoneText(zone, offset, language, style === "long" ? 1 : 0)) || gmt(offset, style === "long");
  };
  I.DateTimeFormat = DateTimeFormat;

  const method = (name, f) => Object.defineProperty(Date.prototype, name, { value: f, writable: true, configurable: true });
  for (const name of ["toString", "toTimeString"]) {
    const plain = Date.prototype[name];
    method(name, { [name]() {
      const text = plain.call(this);
      if (text === "Invalid Date") return text;
      const zone = host.zoneName("");
      const offset = -60 * Date.prototype.getTimezoneOffset.call(this);
      return `${text} (${host.zoneText(zone, offset, "en", 1) || gmt(offset, true)})`;
    } }[name]);
  }
})();
