// Writes what Intl of nano spaces knows of languages: node generate.mjs, with a Node that has all of ICU. What it says of itself is Unicode's CLDR.
import fs from "node:fs";

const locales = ["en", "en-GB", "en-CA", "en-AU", "en-IN", "de", "de-AT", "de-CH", "fr", "fr-CA", "es", "es-MX", "it", "pt", "pt-PT", "nl", "sv", "ja", "zh"];
const languages = ["en", "de", "fr", "es"];
const at = Date.UTC(2024, 8, 5, 7, 8, 9); // a Thursday, of which no two fields are the same
const evening = Date.UTC(2024, 8, 5, 19, 8, 9);
const UTC = { timeZone: "UTC" };
const month = (m) => Date.UTC(2024, m, 5);
const day = (d) => Date.UTC(2024, 8, 1 + d);
const part = (locale, o, when, type) => new Intl.DateTimeFormat(locale, { ...UTC, ...o }).formatToParts(when).find((p) => p.type === type)?.value;

const namesOf = (locale) => {
  const months = (style, o) => Array.from({ length: 12 }, (_, m) => part(locale, { month: style, ...o }, month(m), "month"));
  const days = (style, o) => Array.from({ length: 7 }, (_, d) => part(locale, { weekday: style, ...o }, day(d), "weekday"));
  return {
    MMMM: months("long", { day: "numeric" }), LLLL: months("long", {}), MMM: months("short", { day: "numeric" }), LLL: months("short", {}), MMMMM: months("narrow", {}),
    EEEE: days("long", {}), EEE: days("short", {}), EEEEE: days("narrow", {}), MMMd: months("short", { day: "numeric", year: "numeric" }), EEEd: days("short", { day: "numeric", month: "short" }), EEEc: days("short", { day: "numeric" }),
    a: [part(locale, { hour: "numeric", hour12: true }, at, "dayPeriod"), part(locale, { hour: "numeric", hour12: true }, evening, "dayPeriod")],
    G: ["long", "short", "narrow"].map((era) => [Date.UTC(-10, 5), at].map((when) => part(locale, { era }, when, "era"))),
  };
};
// patternOf reads the pattern off what is formatted.
const patternOf = (locale, names, o) => {
  const parts = new Intl.DateTimeFormat(locale, { ...UTC, ...o }).formatToParts(at);
  return parts.map(({ type, value }) => {
    const first = (keys, i) => keys.find((k) => names[k][i] === value);
    switch (type) {
      case "literal": return value.replaceAll("{", "'");
      case "year": return value === "24" ? "{yy}" : "{y}";
      case "relatedYear": return "{y}";
      case "month": return value === "9" ? "{M}" : value === "09" ? "{MM}" : `{${first(["MMMM", "LLLL", "MMM", "LLL", "MMMd", "MMMMM"], 8) ?? "M"}}`;
      case "day": return value === "5" ? "{d}" : "{dd}";
      case "weekday": return `{${first(["EEEE", "EEE", "EEEd", "EEEc", "EEEEE"], 4) ?? "EEE"}}`;
      case "hour": return o.hour12 ? (value === "7" ? "{h}" : "{hh}") : value === "7" ? "{H}" : "{HH}";
      case "minute": return value === "8" ? "{m}" : "{mm}";
      case "second": return value === "9" ? "{s}" : "{ss}";
      case "fractionalSecond": return "{S}";
      case "dayPeriod": return "{a}";
      case "era": return "{G}";
      case "timeZoneName": return "{z}";
    }
    throw new Error(`${locale}: ${type}`);
  }).join("");
};
const none = (o) => Object.fromEntries(Object.entries(o).filter(([, v]) => v !== ""));
const datesOf = (locale) => {
  const names = namesOf(locale);
  const list = [];
  const put = (p) => { let i = list.indexOf(p); if (i < 0) i = list.push(p) - 1; return i; };
  const of = (o) => put(patternOf(locale, names, o));
  const dates = [];
  for (const weekday of ["", "short", "long", "narrow"]) for (const year of ["", "numeric", "2-digit"]) for (const m of ["", "numeric", "2-digit", "short", "long", "narrow"]) for (const d of ["", "numeric", "2-digit"]) {
    const o = none({ weekday, year, month: m, day: d });
    dates.push(Object.keys(o).length === 0 ? -1 : of(o));
  }
  const eras = [];
  for (const year of ["", "numeric"]) for (const m of ["", "numeric", "short", "long"]) for (const d of ["", "numeric"]) eras.push(of(none({ year, month: m, day: d, era: "short" })));
  const times = [];
  for (const hour12 of [true, false]) for (const hour of ["", "numeric", "2-digit"]) for (const minute of ["", "numeric", "2-digit"]) for (const second of ["", "numeric", "2-digit"]) {
    const o = none({ hour, minute, second });
    times.push(Object.keys(o).length === 0 ? -1 : of({ ...o, hour12 }));
  }
  const styles = ["full", "long", "medium", "short"];
  const glue = (date, time) => { const p = patternOf(locale, names, { ...date, ...time }); return put(p.replace(patternOf(locale, names, date), "{1}").replace(patternOf(locale, names, time), "{0}")); };
  const hm = { hour: "numeric", minute: "numeric", hour12: new Intl.DateTimeFormat(locale, { hour: "numeric" }).resolvedOptions().hour12 };
  const hour12 = hm.hour12;
  const joined = [
    { weekday: "long", year: "numeric", month: "long", day: "numeric" }, { year: "numeric", month: "long", day: "numeric" }, { year: "numeric", month: "short", day: "numeric" }, { year: "numeric", month: "numeric", day: "numeric" },
  ].map((d) => glue(d, hm));
  return {
    names, list, dates, eras, times, joined, hour12, dateStyles: styles.map((dateStyle) => of({ dateStyle })), timeStyles: [true, false].map((h) => styles.map((timeStyle) => of({ timeStyle, hour12: h }))),
    styled: styles.map((dateStyle) => glue({ dateStyle }, { timeStyle: "short", hour12 })),
    // What stands before a zone behind a date alone.
    zoned: patternOf(locale, names, { year: "numeric", month: "numeric", day: "numeric", timeZoneName: "short" }).replace(patternOf(locale, names, { year: "numeric", month: "numeric", day: "numeric" }), "{1}"),
  };
};

const numberParts = (locale, o, n) => new Intl.NumberFormat(locale, o).formatToParts(n);
const around = (parts) => parts.map(({ type, value }) => (type === "currency" ? "{c}" : type === "minusSign" ? "{-}" : type === "percentSign" ? "{%}" : type === "literal" ? value : "{n}")).join("").replace(/(\{n\})+/g, "{n}");
const numbersOf = (locale) => {
  const one = (o, n, type) => numberParts(locale, o, n).find((p) => p.type === type)?.value;
  const currencies = Intl.supportedValuesOf("currency");
  const symbols = (currencyDisplay) => Object.fromEntries(currencies.map((currency) => [currency, one({ style: "currency", currency, currencyDisplay }, 1, "currency")]).filter(([c, s]) => s !== c));
  const compact = (compactDisplay) => Array.from({ length: 15 }, (_, e) => [1, 2].map((n) => {
    const parts = numberParts(locale, { notation: "compact", compactDisplay }, n * 10 ** e);
    const digits = parts.filter((p) => p.type === "integer").map((p) => p.value).join("").length;
    return [digits, parts.map((p) => (p.type === "compact" || p.type === "literal" ? p.value : "{n}")).join("").replace(/(\{n\})+/g, "{n}")];
  }));
  return {
    decimal: one({}, 1.5, "decimal"), group: one({}, 1234567, "group"), indian: locale === "en-IN", min: new Intl.NumberFormat(locale).format(1234).length > 4 ? 1 : 2, minus: one({}, -1, "minusSign"), nan: one({}, NaN, "nan"),
    percent: around(numberParts(locale, { style: "percent" }, 0.5)), currency: around(numberParts(locale, { style: "currency", currency: "EUR" }, 1)), negative: around(numberParts(locale, { style: "currency", currency: "EUR" }, -1)),
    accounting: around(numberParts(locale, { style: "currency", currency: "EUR", currencySign: "accounting" }, -1)), symbols: symbols("symbol"), narrow: symbols("narrowSymbol"), short: compact("short"), long: compact("long"),
  };
};
const units = ["acre", "bit", "byte", "celsius", "centimeter", "day", "degree", "fahrenheit", "fluid-ounce", "foot", "gallon", "gigabit", "gigabyte", "gram", "hectare", "hour", "inch", "kilobit", "kilobyte", "kilogram", "kilometer", "liter", "megabit", "megabyte", "meter", "microsecond", "mile", "mile-scandinavian", "milliliter", "millimeter", "millisecond", "minute", "month", "nanosecond", "ounce", "percent", "petabyte", "pound", "second", "stone", "terabit", "terabyte", "week", "yard", "year", "kilometer-per-hour", "mile-per-hour", "meter-per-second", "mile-per-gallon", "liter-per-kilometer", "megabyte-per-second", "byte-per-second", "kilobyte-per-second"];
const moreOf = (locale) => {
  const unitPattern = (unit, unitDisplay) => [1, 2].map((n) => numberParts(locale, { style: "unit", unit, unitDisplay }, n).map((p) => (p.type === "unit" || p.type === "literal" ? p.value : "{n}")).join(""));
  const plurals = (currency) => [1, 2].map((n) => numberParts(locale, { style: "currency", currency, currencyDisplay: "name", maximumFractionDigits: 0 }, n).find((p) => p.type === "currency").value);
  const names = (type, codes) => { const f = new Intl.DisplayNames(locale, { type, fallback: "none" }); const all = {}; for (const c of codes) { let s; try { s = f.of(c); } catch { continue; } if (s) all[c] = s; } return all; };
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const two = [...letters].flatMap((a) => [...letters].map((b) => a + b));
  const rtf = {};
  for (const style of ["long", "short", "narrow"]) {
    rtf[style] = {};
    for (const unit of ["second", "minute", "hour", "day", "week", "month", "quarter", "year"]) {
      const f = new Intl.RelativeTimeFormat(locale, { style });
      const auto = new Intl.RelativeTimeFormat(locale, { style, numeric: "auto" });
      const p = (n) => f.formatToParts(n, unit).map((x) => (x.type === "literal" ? x.value : "{n}")).join("");
      const words = {};
      for (const n of [-2, -1, 0, 1, 2]) { const text = auto.format(n, unit); if (!/\d/.test(text)) words[n] = text; }
      rtf[style][unit] = { past: [p(-1), p(-2)], future: [p(1), p(2)], words };
    }
  }
  const lists = {};
  for (const type of ["conjunction", "disjunction", "unit"]) for (const style of ["long", "short", "narrow"]) {
    const f = new Intl.ListFormat(locale, { type, style });
    const lit = (n) => f.formatToParts(Array.from({ length: n }, () => "x")).filter((p) => p.type === "literal").map((p) => p.value);
    lists[`${type} ${style}`] = [lit(2)[0], ...lit(4)];
  }
  return {
    units: Object.fromEntries(units.map((u) => [u, ["short", "long", "narrow"].map((d) => unitPattern(u, d))])), currencies: names("currency", Intl.supportedValuesOf("currency")),
    plurals: Object.fromEntries(Intl.supportedValuesOf("currency").map((c) => [c, plurals(c)])), regions: names("region", [...two, "419", "001", "150"]), languages: names("language", [...two.map((s) => s.toLowerCase()), "en-US", "en-GB", "de-AT", "de-CH", "fr-CA", "fr-CH", "es-ES", "es-MX", "es-419", "pt-BR", "pt-PT", "zh-Hans", "zh-Hant"]),
    scripts: names("script", ["Latn", "Cyrl", "Grek", "Arab", "Hans", "Hant", "Jpan", "Kore", "Hebr", "Deva", "Thai"]), rtf, lists,
  };
};
for (const l of locales) fs.writeFileSync(new URL(`${l}.json`, import.meta.url), `${JSON.stringify({ ...numbersOf(l), ...datesOf(l) })}\n`);
for (const l of languages) fs.writeFileSync(new URL(`${l}.more.json`, import.meta.url), `${JSON.stringify(moreOf(l))}\n`);

// The zones: which names each has, by its distance of UTC.
const winter = Date.UTC(2024, 0, 15);
const summer = Date.UTC(2024, 6, 15);
const name = (locale, timeZone, timeZoneName, when) => part(locale, { timeZone, timeZoneName }, when, "timeZoneName");
const offset = (timeZone, when) => { const m = /GMT(?:([+-])(\d\d):(\d\d))?/.exec(name("en", timeZone, "longOffset", when)); return m[1] ? (m[1] === "-" ? -1 : 1) * (60 * m[2] + Number(m[3])) : 0; };
const links = ["UTC", "GMT", "Etc/UTC", "Etc/GMT", "US/Eastern", "US/Central", "US/Mountain", "US/Pacific", "US/Alaska", "US/Hawaii", "Asia/Kolkata", "Asia/Ho_Chi_Minh", "Asia/Yangon", "Asia/Kathmandu", "America/Buenos_Aires", "Europe/Kyiv", "Asia/Calcutta", "Asia/Saigon", "EST", "MST", "HST", "Japan", "Singapore", "Hongkong", "America/Indianapolis"];
const list = [];
const zones = {};
for (const timeZone of new Set([...Intl.supportedValuesOf("timeZone"), ...links])) {
  const names = [...new Set([winter, summer].map((w) => offset(timeZone, w)))].map((o) => {
    const when = offset(timeZone, winter) === o ? winter : summer;
    return [o, ...["en", "en-GB", "de", "fr", "es"].map((l) => [name(l, timeZone, "long", when), name(l, timeZone, "short", when)])];
  });
  const text = JSON.stringify(names);
  let i = list.indexOf(text);
  if (i < 0) i = list.push(text) - 1;
  zones[timeZone] = i;
}
fs.writeFileSync(new URL("zones.json", import.meta.url), `${JSON.stringify({ zones, names: list.map((t) => JSON.parse(t)) })}\n`);
const digits = Object.fromEntries(Intl.supportedValuesOf("currency").map((currency) => [currency, new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions().maximumFractionDigits]).filter(([, n]) => n !== 2));
fs.writeFileSync(new URL("digits.json", import.meta.url), `${JSON.stringify({ digits, currencies: Intl.supportedValuesOf("currency"), units })}\n`);
