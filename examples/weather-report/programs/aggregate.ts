// Reads daily weather, writes summary.json, weather.svg and the rows that could not be read.
// Usage: bun run aggregate.ts INPUT.csv OUTPUT_DIRECTORY
import { mkdir } from "node:fs/promises";

type Day = { date: string; rain: number; high: number; low: number; wind: number; weather: string };
type Month = { month: string; days: number; high: number; low: number; rain: number; rainyDays: number };

const [input, output] = process.argv.slice(2);
if (!input || !output) throw new Error("usage: aggregate.ts INPUT.csv OUTPUT_DIRECTORY");

const [header, ...lines] = (await Bun.file(input).text()).trim().split(/\r?\n/);
const columns = header.split(",");
const days: Day[] = [];
const rejected: string[] = [header];
for (const line of lines) {
  const cells = line.split(",");
  const cell = (name: string) => cells[columns.indexOf(name)];
  const day: Day = {
    date: cell("date"),
    rain: Number(cell("precipitation")),
    high: Number(cell("temp_max")),
    low: Number(cell("temp_min")),
    wind: Number(cell("wind")),
    weather: cell("weather"),
  };
  const good = /^\d{4}-\d{2}-\d{2}$/.test(day.date) && [day.rain, day.high, day.low, day.wind].every(Number.isFinite);
  if (good) days.push(day);
  else rejected.push(line);
}

const round = (n: number) => Math.round(n * 10) / 10;
const sum = (ns: number[]) => ns.reduce((a, b) => a + b, 0);
const mean = (ns: number[]) => sum(ns) / ns.length;
const by = (key: (d: Day) => string) => Object.entries(Object.groupBy(days, key)) as [string, Day[]][];
const most = (value: (d: Day) => number) => days.reduce((a, b) => (value(b) > value(a) ? b : a));

const months: Month[] = by((d) => d.date.slice(0, 7)).map(([month, ds]) => ({
  month,
  days: ds.length,
  high: round(mean(ds.map((d) => d.high))),
  low: round(mean(ds.map((d) => d.low))),
  rain: round(sum(ds.map((d) => d.rain))),
  rainyDays: ds.filter((d) => d.rain > 0).length,
}));

const years = by((d) => d.date.slice(0, 4)).map(([year, ds]) => ({
  year,
  high: round(mean(ds.map((d) => d.high))),
  low: round(mean(ds.map((d) => d.low))),
  rain: round(sum(ds.map((d) => d.rain))),
  rainyDays: ds.filter((d) => d.rain > 0).length,
  hotDays: ds.filter((d) => d.high >= 30).length,
  frostDays: ds.filter((d) => d.low < 0).length,
}));

let dry = { from: "", to: "", days: 0 };
let run = { from: "", to: "", days: 0 };
for (const d of days) {
  run = d.rain > 0 ? { from: "", to: "", days: 0 } : { from: run.from || d.date, to: d.date, days: run.days + 1 };
  if (run.days > dry.days) dry = run;
}

const summary = {
  source: input,
  from: days[0].date,
  to: days[days.length - 1].date,
  days: days.length,
  rejectedRows: rejected.length - 1,
  weather: Object.fromEntries(by((d) => d.weather).map(([kind, ds]) => [kind, ds.length])),
  records: {
    hottest: most((d) => d.high),
    coldest: most((d) => -d.low),
    wettest: most((d) => d.rain),
    windiest: most((d) => d.wind),
    longestDrySpell: dry,
  },
  years,
  months,
};

await mkdir(output, { recursive: true });
await Bun.write(`${output}/summary.json`, JSON.stringify(summary, null, 2) + "\n");
await Bun.write(`${output}/weather.svg`, chart(months));
await Bun.write(`${output}/rejected-rows.csv`, rejected.join("\n") + "\n");
console.log(`${days.length} days in ${months.length} months, ${rejected.length - 1} rows rejected`);
console.log(`wrote ${output}/summary.json and ${output}/weather.svg`);

// chart draws the months: temperatures as a band between mean low and mean high, rain as columns below.
function chart(months: Month[]): string {
  const width = 1040, left = 64, right = 1016, slot = (right - left) / months.length;
  const warm = { top: 96, bottom: 316, min: -5, max: 35 };
  const wet = { top: 356, bottom: 500, min: 0, max: Math.ceil(Math.max(...months.map((m) => m.rain)) / 100) * 100 };
  const x = (i: number) => round(left + slot * (i + 0.5));
  const y = (v: number, p: typeof warm) => round(p.bottom - ((v - p.min) / (p.max - p.min)) * (p.bottom - p.top));
  const line = (value: (m: Month) => number) => months.map((m, i) => `${x(i)},${y(value(m), warm)}`);

  const grid = (p: typeof warm, step: number, unit: string) => {
    let marks = "";
    for (let v = Math.ceil(p.min / step) * step; v <= p.max; v += step)
      marks += `<line class="grid" x1="${left}" x2="${right}" y1="${y(v, p)}" y2="${y(v, p)}"/><text class="tick" x="${left - 8}" y="${y(v, p) + 4}" text-anchor="end">${v}${unit}</text>`;
    return marks;
  };
  const bands = months.flatMap((m, i) => {
    if (!m.month.endsWith("-01")) return [];
    const at = left + slot * i, year = Number(m.month.slice(0, 4));
    const shade = year % 2 ? "" : `<rect class="year" x="${round(at)}" y="${warm.top}" width="${round(slot * 12)}" height="${wet.bottom - warm.top}"/>`;
    return [shade + `<text class="label" x="${round(at + slot * 6)}" y="${wet.bottom + 24}" text-anchor="middle">${year}</text>`];
  });
  const bars = months.map((m, i) =>
    `<rect class="rain" x="${round(x(i) - slot * 0.36)}" width="${round(slot * 0.72)}" y="${y(m.rain, wet)}" height="${round(wet.bottom - y(m.rain, wet))}" rx="2"><title>${m.month}: ${m.rain} mm on ${m.rainyDays} days</title></rect>`);
  const wettest = months.reduce((a, b, i) => (b.rain > months[a].rain ? i : a), 0);
  const hottest = months.reduce((a, b, i) => (b.high > months[a].high ? i : a), 0);
  const note = (i: number, at: number, text: string) =>
    `<text class="note" x="${x(i)}" y="${at - 8}" text-anchor="${i > months.length - 6 ? "end" : "middle"}">${text}</text>`;

  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} 548" font-family="system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif" role="img" aria-label="Monthly temperature and rain in Seattle, ${months[0].month} to ${months[months.length - 1].month}">
<style>
  .year { fill: #f1f5f9 } .grid { stroke: #d8dee6; stroke-width: 1 } .tick { fill: #64748b; font-size: 12px } .label { fill: #334155; font-size: 14px; font-weight: 600 }
  .band { fill: #f59e0b; opacity: .22 } .high { fill: none; stroke: #ea580c; stroke-width: 2.5; stroke-linejoin: round } .low { fill: none; stroke: #0284c7; stroke-width: 2.5; stroke-linejoin: round }
  .rain { fill: #0d9488 } .title { fill: #0f172a; font-size: 22px; font-weight: 700 } .sub { fill: #475569; font-size: 13px } .note { fill: #0f172a; font-size: 12px; font-weight: 600; paint-order: stroke; stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round }
</style>
<rect width="${width}" height="548" fill="#ffffff"/>
<text class="title" x="${left}" y="40">Seattle, month by month</text>
<text class="sub" x="${left}" y="64">mean daily high <tspan fill="#ea580c" font-weight="700">&#9473;</tspan> and low <tspan fill="#0284c7" font-weight="700">&#9473;</tspan> in °C, rain <tspan fill="#0d9488" font-weight="700">&#9608;</tspan> in mm a month</text>
${bands.join("\n")}
${grid(warm, 10, "°")}
${grid(wet, 100, "")}
<polygon class="band" points="${[...line((m) => m.high), ...line((m) => m.low).reverse()].join(" ")}"/>
<polyline class="high" points="${line((m) => m.high).join(" ")}"/>
<polyline class="low" points="${line((m) => m.low).join(" ")}"/>
${bars.join("\n")}
${note(hottest, y(months[hottest].high, warm), `${months[hottest].high} °C`)}
${note(wettest, y(months[wettest].rain, wet), `${Math.round(months[wettest].rain)} mm`)}
</svg>
`;
}
