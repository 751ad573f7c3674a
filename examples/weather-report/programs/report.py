"""Turns summary.json into a report for people. Usage: python3 report.py SUMMARY.json REPORT.md"""

import json
import sys
from collections import defaultdict
from datetime import date
from pathlib import Path
from statistics import mean

NAMES = "January February March April May June July August September October November December".split()


def when(text: str) -> str:
    day = date.fromisoformat(text)
    return f"{day.day} {NAMES[day.month - 1]} {day.year}"


def bar(value: float, most: float, width: int = 24) -> str:
    return "█" * max(1, round(value / most * width))


def table(head: list[str], rows: list[list[object]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join(["---"] + ["---:"] * (len(head) - 1)) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def main(source: Path, target: Path) -> None:
    s = json.loads(source.read_text())
    years, records, months = s["years"], s["records"], defaultdict(list)
    for m in s["months"]:
        months[int(m["month"][5:])].append(m)
    rain = {n: mean(m["rain"] for m in ms) for n, ms in months.items()}
    wet, dry = max(rain, key=rain.get), min(rain, key=rain.get)
    first, last = years[0], years[-1]
    warmer = last["high"] - first["high"]
    summer = sum(rain[n] for n in (6, 7, 8)) / sum(rain.values())
    spell = records["longestDrySpell"]

    parts = [
        f"# Seattle's weather, {first['year']} to {last['year']}",
        "Status: DRAFT",
        f"{s['days']:,} days, {when(s['from'])} to {when(s['to'])}; {s['rejectedRows']} rows could not be read.",
        f"![Monthly temperature and rain]({source.parent.name}/weather.svg)",
        "## What stands out",
        "\n".join(
            [
                f"- **{NAMES[wet - 1]} is the wettest month** with {rain[wet]:.0f} mm on average, {NAMES[dry - 1]} the driest with {rain[dry]:.0f} mm. "
                f"June to August bring {summer:.0%} of the year's rain.",
                f"- **{last['year']} was {abs(warmer):.1f} °C {'warmer' if warmer > 0 else 'cooler'} than {first['year']}** by mean daily high, "
                f"with {last['hotDays']} days of 30 °C or more against {first['hotDays']}.",
                f"- **It stayed dry for {spell['days']} days**, from {when(spell['from'])} to {when(spell['to'])}.",
                f"- It rained on {sum(y['rainyDays'] for y in years) / s['days']:.0%} of all days.",
            ]
        ),
        "## Year by year",
        table(
            ["year", "mean high °C", "mean low °C", "rain mm", "days with rain", "days ≥ 30 °C", "days with frost"],
            [[y["year"], f"{y['high']:.1f}", f"{y['low']:.1f}", f"{y['rain']:.0f}", y["rainyDays"], y["hotDays"], y["frostDays"]] for y in years],
        ),
        "## The rain of an average year",
        "```\n" + "\n".join(f"{NAMES[n - 1][:3]} {rain[n]:4.0f} mm {bar(rain[n], rain[wet])}" for n in sorted(rain)) + "\n```",
        "## Records",
        table(
            ["record", "value", "day"],
            [
                ["hottest", f"{records['hottest']['high']} °C", when(records["hottest"]["date"])],
                ["coldest", f"{records['coldest']['low']} °C", when(records["coldest"]["date"])],
                ["wettest", f"{records['wettest']['rain']} mm", when(records["wettest"]["date"])],
                ["windiest", f"{records['windiest']['wind']} m/s", when(records["windiest"]["date"])],
            ],
        ),
        "Days by weather: " + ", ".join(f"{kind} {n}" for kind, n in sorted(s["weather"].items(), key=lambda kn: -kn[1])) + ".",
    ]
    target.write_text("\n\n".join(parts) + "\n")
    print(f"wrote {target}: {sum(1 for _ in target.open())} lines")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
