// Intl.NumberFormat. Numbers are rounded as they are written in decimal.
(() => {
  const ab = __agentbox;
  const I = ab.intl;
  const modes = ["ceil", "floor", "expand", "trunc", "halfCeil", "halfFloor", "halfExpand", "halfTrunc", "halfEven"];

  I.digitsOf = (o, low, high, compact) => {
    const r = { minimumIntegerDigits: I.integer(o, "minimumIntegerDigits", 1, 21, 1), roundingMode: I.option(o, "roundingMode", modes, "halfExpand"), trailingZeroDisplay: I.option(o, "trailingZeroDisplay", ["auto", "stripIfInteger"], "auto") };
    if (o?.roundingIncrement !== undefined && Number(o.roundingIncrement) !== 1) throw ab.lacking("Intl.NumberFormat with roundingIncrement");
    const { minimumFractionDigits: mnfd, maximumFractionDigits: mxfd, minimumSignificantDigits: mnsd, maximumSignificantDigits: mxsd } = o ?? {};
    if (mnsd !== undefined || mxsd !== undefined) {
      r.minimumSignificantDigits = I.integer(o, "minimumSignificantDigits", 1, 21, 1);
      r.maximumSignificantDigits = I.integer(o, "maximumSignificantDigits", r.minimumSignificantDigits, 21, 21);
      return r;
    }
    if (compact && mnfd === undefined && mxfd === undefined) return { ...r, compact: true, minimumFractionDigits: 0, maximumFractionDigits: 0, minimumSignificantDigits: 1, maximumSignificantDigits: 2 };
    const a = I.integer(o, "minimumFractionDigits", 0, 100, undefined);
    const b = I.integer(o, "maximumFractionDigits", 0, 100, undefined);
    if (a !== undefined && b !== undefined && a > b) throw new RangeError("maximumFractionDigits value is out of range.");
    r.minimumFractionDigits = a ?? (b === undefined ? low : Math.min(low, b));
    r.maximumFractionDigits = b ?? Math.max(high, r.minimumFractionDigits);
    return r;
  };
  // decimal returns the digits of a number, without zeros around, and how many stand before the point.
  const decimal = (text) => {
    const m = /^(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i.exec(text);
    const all = m[1] + m[2];
    const zeros = /^0*/.exec(all)[0].length;
    const digits = all.slice(zeros).replace(/0+$/, "");
    return digits === "" ? { digits: "", point: 0 } : { digits, point: m[1].length - zeros + Number(m[3] ?? 0) };
  };
  // cut rounds to so many digits.
  const cut = ({ digits, point }, keep, mode, negative) => {
    if (keep >= digits.length) return { digits, point };
    const rest = keep < 0 ? `0${digits}` : digits.slice(keep);
    const half = rest[0] > "5" || (rest[0] === "5" && /[1-9]/.test(rest.slice(1))) ? 1 : rest[0] === "5" ? 0 : -1;
    const some = /[1-9]/.test(rest);
    const odd = keep > 0 && Number(digits[keep - 1]) % 2 === 1;
    const up = some && {
      ceil: !negative, floor: negative, expand: true, trunc: false, halfCeil: half > 0 || (half === 0 && !negative), halfFloor: half > 0 || (half === 0 && negative), halfExpand: half >= 0, halfTrunc: half > 0, halfEven: half > 0 || (half === 0 && odd),
    }[mode];
    let kept = keep < 0 ? "" : digits.slice(0, keep);
    if (up) {
      if (keep <= 0) return { digits: "1", point: point - keep + 1 };
      let i = keep - 1;
      while (i >= 0 && kept[i] === "9") i--;
      if (i < 0) return { digits: "1", point: point + 1 };
      kept = kept.slice(0, i) + String(Number(kept[i]) + 1);
    }
    kept = kept.replace(/0+$/, "");
    return kept === "" ? { digits: "", point: 0 } : { digits: kept, point };
  };
  const roundOf = (d, o, negative) => {
    if (o.compact) return d.point >= 2 ? cut(d, d.point, o.roundingMode, negative) : cut(d, 2, o.roundingMode, negative);
    if (o.maximumSignificantDigits !== undefined) return cut(d, o.maximumSignificantDigits, o.roundingMode, negative);
    return cut(d, d.point + o.maximumFractionDigits, o.roundingMode, negative);
  };
  const write = ({ digits, point }, o) => {
    let whole = point > 0 ? digits.slice(0, point).padEnd(point, "0") : "";
    let fraction = point > 0 ? digits.slice(point) : digits === "" ? "" : "0".repeat(-point) + digits;
    whole = whole.padStart(o.minimumIntegerDigits, "0");
    if (o.minimumSignificantDigits !== undefined && !o.compact) fraction = fraction.padEnd(o.minimumSignificantDigits - (point > 0 ? point : digits === "" ? 1 : point), "0");
    else if (!o.compact) fraction = fraction.padEnd(o.minimumFractionDigits, "0");
    if (o.trailingZeroDisplay === "stripIfInteger" && !/[1-9]/.test(fraction)) fraction = "";
    return fraction === "" ? whole : `${whole}.${fraction}`;
  };
  I.rounded = (n, o) => write(roundOf(decimal(String(Math.abs(n))), o, n < 0), o);

  class NumberFormat {
    #at;
    #o;
    #data;
    #format;
    constructor(locales, o) {
      I.now = "NumberFormat";
      const at = (this.#at = I.localeOf(locales));
      const d = (this.#data = I.read(at.from));
      const style = I.option(o, "style", ["decimal", "percent", "currency", "unit"], "decimal");
      let currency = o?.currency;
      if (currency !== undefined) { if (!/^[a-z]{3}$/i.test(String(currency))) throw new RangeError(`Invalid currency code : ${currency}`); currency = String(currency).toUpperCase(); }
      if (style === "currency" && currency === undefined) throw new TypeError("Currency code is required with currency style.");
      const { unit } = o ?? {};
      if (style === "unit" && unit === undefined) throw new TypeError("Unit is required with unit style.");
      const shared = I.read("digits");
      if (unit !== undefined && !shared.units.includes(unit)) {
        const [a, b] = String(unit).split("-per-");
        if (b !== undefined && shared.units.includes(a) && shared.units.includes(b)) throw ab.lacking(`Intl.NumberFormat with the unit ${unit}`);
        throw new RangeError(`Invalid unit argument for Intl.NumberFormat() '${unit}'`);
      }
      const display = I.option(o, "currencyDisplay", ["code", "symbol", "narrowSymbol", "name"], "symbol");
      const sign = I.option(o, "currencySign", ["standard", "accounting"], "standard");
      const unitDisplay = I.option(o, "unitDisplay", ["short", "narrow", "long"], "short");
      const notation = I.option(o, "notation", ["standard", "scientific", "engineering", "compact"], "standard");
      const digits = style === "currency" && notation === "standard" ? shared.digits[currency] ?? 2 : 0;
      const r = I.digitsOf(o, digits, style === "currency" && notation === "standard" ? digits : style === "percent" ? 0 : 3, notation === "compact");
      const compactDisplay = I.option(o, "compactDisplay", ["short", "long"], "short");
      let grouping = o?.useGrouping;
      if (grouping === undefined) grouping = notation === "compact" ? "min2" : "auto";
      else if (grouping === true || grouping === "always") grouping = "always";
      else if (grouping === "true" || grouping === "false") grouping = "auto";
      else if (grouping !== "min2" && grouping !== "auto") { if (grouping) throw new RangeError(`Value ${grouping} out of range for Intl.NumberFormat options property useGrouping`); grouping = false; }
      this.#o = { style, currency, display, sign, unit, unitDisplay, notation, compactDisplay, grouping, signDisplay: I.option(o, "signDisplay", ["auto", "never", "always", "exceptZero", "negative"], "auto"), r };
      if (style === "unit" || (style === "currency" && display === "name")) this.more = I.more(at, "NumberFormat");
      if (this.more) Object.defineProperty(this, "more", { enumerable: false });
      void d;
    }
    #group(whole) {
      const { grouping } = this.#o;
      const d = this.#data;
      const least = grouping === "min2" ? 2 : grouping === "auto" ? d.min : 1;
      if (!grouping || whole.length < 3 + least) return [{ type: "integer", value: whole }];
      const parts = [whole.slice(-3)];
      let rest = whole.slice(0, -3);
      const size = d.indian ? 2 : 3;
      while (rest !== "") { parts.unshift(rest.slice(-size)); rest = rest.slice(0, -size); }
      return parts.flatMap((value, i) => (i === 0 ? [{ type: "integer", value }] : [{ type: "group", value: d.group }, { type: "integer", value }]));
    }
    #number(text) {
      const [whole, fraction] = text.split(".");
      const out = this.#group(whole);
      if (fraction !== undefined) out.push({ type: "decimal", value: this.#data.decimal }, { type: "fraction", value: fraction });
      return out;
    }
    formatToParts(n) {
      const o = this.#o;
      const d = this.#data;
      const { r } = o;
      let text;
      let negative;
      if (typeof n === "bigint") { negative = n < 0n; text = String(negative ? -n : n); } else {
        if (typeof n === "string" && /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(n)) { text = n.trim(); negative = text[0] === "-"; text = text.replace(/^[+-]/, ""); } else {
          n = Number(n);
          negative = n < 0 || Object.is(n, -0);
          text = String(Math.abs(n));
        }
      }
      let number;
      let zero = false;
      let plural = "other";
      let compact = null;
      if (text === "NaN") { number = [{ type: "nan", value: d.nan }]; negative = false; } else if (text === "Infinity") number = [{ type: "infinity", value: "∞" }];
      else {
        let x = decimal(text);
        if (o.style === "percent" && x.digits !== "") x = { ...x, point: x.point + 2 };
        if (o.notation === "scientific" || o.notation === "engineering") {
          let e = x.digits === "" ? 0 : x.point - 1;
          const step = () => (o.notation === "engineering" ? e - (((e % 3) + 3) % 3) : e);
          let small = roundOf({ digits: x.digits, point: x.point - step() }, r, negative);
          if (x.digits !== "" && small.point > x.point - step()) { e++; small = roundOf({ digits: x.digits, point: x.point - step() }, r, negative); }
          zero = small.digits === "";
          number = [...this.#number(write(small, r)), { type: "exponentSeparator", value: "E" }];
          if (step() < 0) number.push({ type: "exponentMinusSign", value: d.minus });
          number.push({ type: "exponentInteger", value: String(Math.abs(step())) });
        } else if (o.notation === "compact") {
          const table = d[o.compactDisplay];
          let exponent = Math.max(0, Math.min(14, x.point - 1));
          let cutTo = (e) => table[e][1][0] - 1;
          let small = x;
          for (;;) {
            const shift = exponent - cutTo(exponent);
            small = roundOf({ digits: x.digits, point: x.digits === "" ? 0 : x.point - shift }, r, negative);
            if (small.point - 1 > cutTo(exponent) && exponent < 14 && small.digits !== "") { exponent++; continue; }
            break;
          }
          zero = small.digits === "";
          const written = write(small, r);
          plural = I.plural(this.#at.language, written);
          number = this.#number(written);
          compact = table[exponent][plural === "one" ? 0 : 1][1];
          if (compact === "{n}") compact = null;
        } else {
          const small = roundOf(x, r, negative);
          zero = small.digits === "";
          const written = write(small, r);
          plural = I.plural(this.#at.language, written);
          number = this.#number(written);
        }
      }
      if (compact) number = I.split(compact, { n: number }).flatMap((p) => (p.type !== "literal" ? [p] : p.value.split(/(\s+)/).filter((s) => s !== "").map((value) => ({ type: /^\s+$/.test(value) ? "literal" : "compact", value }))));
      const sign = { auto: negative ? "-" : "", never: "", always: negative ? "-" : "+", exceptZero: zero || number[0].type === "nan" ? "" : negative ? "-" : "+", negative: negative && !zero ? "-" : "" }[o.signDisplay];
      const mark = sign === "-" ? [{ type: "minusSign", value: d.minus }] : sign === "+" ? [{ type: "plusSign", value: "+" }] : [];
      if (o.style === "percent") return [...mark, ...I.split(d.percent, { n: number, "%": [{ type: "percentSign", value: "%" }] })];
      if (o.style === "unit") return I.split(this.more.units[o.unit][["short", "long", "narrow"].indexOf(o.unitDisplay)][plural === "one" ? 0 : 1], { n: [...mark, ...number] }).flatMap((p) => (p.type !== "literal" ? [p] : p.value.split(/(^\s+|\s+$)/).filter((s) => s !== "").map((value) => ({ type: /^\s+$/.test(value) ? "literal" : "unit", value }))));
      if (o.style === "currency") {
        if (o.display === "name") return [...mark, ...number, { type: "literal", value: " " }, { type: "currency", value: this.more.plurals[o.currency]?.[plural === "one" ? 0 : 1] ?? o.currency }];
        const symbol = o.display === "code" ? o.currency : (o.display === "narrowSymbol" ? d.narrow : d.symbols)[o.currency] ?? o.currency;
        let pattern = sign === "" ? d.currency : o.sign === "accounting" && sign === "-" ? d.accounting : d.negative;
        // A symbol of letters keeps away from the number.
        if (/[\p{L}]$/u.test(symbol)) pattern = pattern.replace("{c}{n}", "{c}\u00a0{n}").replace("{c}{-}{n}", "{c}\u00a0{-}{n}");
        if (/^[\p{L}]/u.test(symbol)) pattern = pattern.replace("{n}{c}", "{n}\u00a0{c}");
        return I.split(pattern, { n: number, c: [{ type: "currency", value: symbol }], "-": mark });
      }
      return [...mark, ...number];
    }
    get format() { return (this.#format ??= Object.defineProperty((n) => I.joined(this.formatToParts(n)), "name", { value: "" })); }
    formatRange(a, b) { const [x, y] = [this.format(a), this.format(b)]; return x === y ? `~${x}` : `${x}${/^[\d.,]+$/.test(x) ? "–" : " – "}${y}`; }
    resolvedOptions() {
      const { style, currency, display, sign, unit, unitDisplay, notation, compactDisplay, grouping, signDisplay, r } = this.#o;
      const { minimumIntegerDigits, minimumFractionDigits, maximumFractionDigits, minimumSignificantDigits, maximumSignificantDigits, roundingMode, trailingZeroDisplay } = r;
      const all = {
        locale: this.#at.locale, numberingSystem: "latn", style, ...(style === "currency" ? { currency, currencyDisplay: display, currencySign: sign } : {}), ...(style === "unit" ? { unit, unitDisplay } : {}), minimumIntegerDigits, minimumFractionDigits, maximumFractionDigits,
        minimumSignificantDigits, maximumSignificantDigits, useGrouping: grouping, notation, ...(notation === "compact" ? { compactDisplay } : {}), signDisplay, roundingIncrement: 1, roundingMode, roundingPriority: r.compact ? "morePrecision" : "auto", trailingZeroDisplay,
      };
      return Object.fromEntries(Object.entries(all).filter(([, v]) => v !== undefined));
    }
  }
  I.NumberFormat = NumberFormat;
})();
