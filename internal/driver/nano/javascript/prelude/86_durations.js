// Intl.DurationFormat, of the numbers, units and lists that Intl has.
(() => {
  const units = ["years", "months", "weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"];
  const clock = new Set(["hours", "minutes", "seconds"]);
  class DurationFormat {
    #o;
    constructor(locales, o = {}) {
      const style = o.style ?? "short";
      if (!["long", "short", "narrow", "digital"].includes(style)) throw new RangeError(`Value ${style} out of range for Intl.DurationFormat options property style`);
      const each = {};
      for (const u of units) each[u] = { style: o[u] ?? (style === "digital" ? (clock.has(u) ? (u === "hours" ? "numeric" : "2-digit") : "short") : style), always: o[`${u}Display`] === "always" || (o[`${u}Display`] === undefined && style === "digital" && clock.has(u)) };
      this.#o = { locale: new Intl.NumberFormat(locales).resolvedOptions().locale, style, each, fractionalDigits: o.fractionalDigits };
    }
    formatToParts(d) { return [{ type: "literal", value: this.format(d) }]; }
    format(d) {
      if (typeof d === "string" || d === null || typeof d !== "object") throw new TypeError(`Cannot convert ${typeof d} to duration`);
      const { locale, style, each } = this.#o;
      const known = units.filter((u) => d[u] !== undefined);
      if (known.length === 0) throw new TypeError("The duration has no fields");
      const parts = [];
      let joined = null; // the units of a clock, which stand with colons
      for (const u of units) {
        const n = Number(d[u] ?? 0);
        if (!Number.isInteger(n)) throw new RangeError(`Invalid duration: ${u} is not an integer`);
        const { style: as, always } = each[u];
        if (as === "numeric" || as === "2-digit") {
          if (n === 0 && !always && d[u] === undefined && !joined) continue;
          const text = new Intl.NumberFormat(locale, { minimumIntegerDigits: as === "2-digit" || joined ? 2 : 1, useGrouping: false }).format(n);
          if (joined) joined.push(text); else parts.push((joined = [text]));
          continue;
        }
        if (n === 0 && !always) continue;
        parts.push(new Intl.NumberFormat(locale, { style: "unit", unit: u.slice(0, -1), unitDisplay: as }).format(n));
      }
      return new Intl.ListFormat(locale, { type: "unit", style: style === "digital" ? "short" : style }).format(parts.map((p) => (Array.isArray(p) ? p.join(":") : p)));
    }
    resolvedOptions() {
      const { locale, style, each } = this.#o;
      const out = { locale, numberingSystem: "latn", style };
      for (const u of units) { out[u] = each[u].style; out[`${u}Display`] = each[u].always ? "always" : "auto"; }
      return out;
    }
    static supportedLocalesOf(l) { return Intl.NumberFormat.supportedLocalesOf(l); }
    get [Symbol.toStringTag]() { return "Intl.DurationFormat"; }
  }
  __agentbox.DurationFormat = DurationFormat; // Intl takes it when it is first asked for
})();
