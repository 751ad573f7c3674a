// punycode: names of hosts in letters beyond ASCII, by RFC 3492.
(() => {
  const ab = __agentbox;
  const adapted = (delta, n, first) => {
    delta = first ? Math.floor(delta / 700) : delta >> 1;
    delta += Math.floor(delta / n);
    let k = 0;
    for (; delta > 455; k += 36) delta = Math.floor(delta / 35);
    return k + Math.floor((36 * delta) / (delta + 38));
  };
  const threshold = (k, bias) => (k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias);
  const encode = (text) => {
    const points = Array.from(text, (c) => c.codePointAt(0));
    let out = points.filter((c) => c < 128).map((c) => String.fromCharCode(c)).join("");
    let done = out.length;
    const basic = done;
    if (basic > 0) out += "-";
    let [n, delta, bias] = [128, 0, 72];
    while (done < points.length) {
      const m = Math.min(...points.filter((c) => c >= n));
      delta += (m - n) * (done + 1);
      n = m;
      for (const c of points) {
        if (c < n) delta++;
        if (c !== n) continue;
        let q = delta;
        for (let k = 36; ; k += 36) {
          const t = threshold(k, bias);
          if (q < t) break;
          const d = t + ((q - t) % (36 - t));
          out += String.fromCharCode(d < 26 ? d + 97 : d + 22);
          q = Math.floor((q - t) / (36 - t));
        }
        out += String.fromCharCode(q < 26 ? q + 97 : q + 22);
        bias = adapted(delta, done + 1, done === basic);
        delta = 0;
        done++;
      }
      delta++;
      n++;
    }
    return out;
  };
  const decode = (text) => {
    const dash = text.lastIndexOf("-");
    const out = Array.from(text.slice(0, Math.max(dash, 0)), (c) => c.charCodeAt(0));
    let [n, i, bias] = [128, 0, 72];
    for (let at = dash > 0 ? dash + 1 : 0; at < text.length;) {
      const was = i;
      for (let w = 1, k = 36; ; k += 36) {
        const c = text.charCodeAt(at++);
        const d = c >= 48 && c < 58 ? c - 22 : (c | 32) - 97;
        if (!(d >= 0 && d < 36)) throw new RangeError("Invalid input");
        i += d * w;
        const t = threshold(k, bias);
        if (d < t) break;
        w *= 36 - t;
      }
      bias = adapted(i - was, out.length + 1, was === 0);
      n += Math.floor(i / (out.length + 1));
      i %= out.length + 1;
      out.splice(i++, 0, n);
    }
    return String.fromCodePoint(...out);
  };
  const labels = (d, f) => { const at = d.lastIndexOf("@"); return (at < 0 ? "" : d.slice(0, at + 1)) + d.slice(at + 1).split(/[.\u3002\uff0e\uff61]/).map(f).join("."); };
  ab.punycode = {
    version: "2.1.0", ucs2: { decode: (s) => Array.from(s, (c) => c.codePointAt(0)), encode: (points) => String.fromCodePoint(...points) }, encode, decode,
    toASCII: (d) => labels(d, (l) => (/[^\0-\x7f]/.test(l) ? `xn--${encode(l)}` : l)), toUnicode: (d) => labels(d, (l) => (/^xn--/.test(l) ? decode(l.slice(4).toLowerCase()) : l)),
  };
  ab.define("punycode", () => ab.punycode);
})();
