package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// goal is the expectation of one pair in one unit; zero fields expect nothing.
type goal struct {
	Name         string  `json:"name"`    // of the row, for people
	Pair         string  `json:"pair"`    // the benchmark's name without Benchmark, /ours and /yardstick
	Against      string  `json:"against"` // the sub-benchmark that is the yardstick of this row; "" for yardstick
	Unit         string  `json:"unit"`
	RatioAtLeast float64 `json:"ratio_at_least"`
	RatioAtMost  float64 `json:"ratio_at_most"`
	OursAtMost   float64 `json:"ours_at_most"`
	OursAtLeast  float64 `json:"ours_at_least"`
}

// row is a line of the table. A figure that was not measured is null.
type row struct {
	Name      string   `json:"name"`
	Ours      *float64 `json:"ours"`
	Yardstick *float64 `json:"yardstick"`
	Unit      string   `json:"unit"`
	Ratio     *float64 `json:"ratio"` // ours divided by the yardstick
	Goal      string   `json:"goal"`
	Met       *bool    `json:"met"`               // null where there is no goal; a goal whose figures are missing is not met
	Missing   string   `json:"missing,omitempty"` // why the yardstick or the figure of Agentbox is missing
}

// sample is one figure: the benchmark's full name and a unit.
type sample struct{ name, unit string }

// figures are the medians of what a run measured, in the order in which it did.
type figures struct {
	order   []sample
	values  map[sample][]float64
	missing map[string]string // why a benchmark was left out, or that it failed
	failed  []string          // benchmarks
}

// processors is the -N that go test appends to names where GOMAXPROCS is not 1.
var processors = regexp.MustCompile(`-\d+$`)

// leftOut is how a benchmark says that what it would measure is not to be had on this machine.
var leftOut = regexp.MustCompile(`^left out: Benchmark(\S+): (.+)$`)

// failed is how go test says that a benchmark measured nothing.
var failed = regexp.MustCompile(`^\s*--- FAIL: Benchmark(\S+)(?: \(.*\))?$`)

// add takes one line of go test's output; lines that are neither results nor say why there is none are passed over.
func (f *figures) add(line string) {
	if found := leftOut.FindStringSubmatch(line); found != nil {
		f.miss(found[1], found[2])
		return
	}
	if found := failed.FindStringSubmatch(line); found != nil {
		f.failed = append(f.failed, found[1])
		f.miss(found[1], found[1]+" failed; what the run printed says why")
		return
	}
	fields := strings.Fields(line)
	if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
		return
	}
	if _, err := strconv.ParseInt(fields[1], 10, 64); err != nil {
		return
	}
	name := processors.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
	for i := 2; i+1 < len(fields); i += 2 {
		value, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return
		}
		s := sample{name, fields[i+1]}
		if f.values == nil {
			f.values = map[sample][]float64{}
		}
		if f.values[s] == nil {
			f.order = append(f.order, s)
		}
		f.values[s] = append(f.values[s], value)
	}
}

// miss records why a benchmark told no figure.
func (f *figures) miss(name, why string) {
	if f.missing == nil {
		f.missing = map[string]string{}
	}
	f.missing[processors.ReplaceAllString(name, "")] = why
}

// median returns the median of the measurements with a name and a unit, or nil.
func (f *figures) median(name, unit string) *float64 {
	values := slices.Sorted(slices.Values(f.values[sample{name, unit}]))
	if len(values) == 0 {
		return nil
	}
	middle := (values[(len(values)-1)/2] + values[len(values)/2]) / 2
	return &middle
}

// rows returns one row for each goal, then one for each other pair and for each benchmark that stands alone, in every unit that it reports;
// allocations only where they stand alone. A yardstick that a goal names appears in the goal's row and not in a row of its own.
func (f *figures) rows(goals []goal) []row {
	rows := make([]row, 0, len(goals))
	told, against := map[sample]bool{}, map[string]bool{}
	for _, g := range goals {
		rows = append(rows, f.row(g))
		told[sample{g.Pair, g.Unit}] = true
		if g.Against != "" {
			against[g.Pair+"/"+g.Against] = true
		}
	}
	for _, s := range f.order {
		pair := strings.TrimSuffix(strings.TrimSuffix(s.name, "/ours"), "/yardstick")
		if told[sample{pair, s.unit}] || against[s.name] || pair != s.name && (s.unit == "B/op" || s.unit == "allocs/op") {
			continue // what a yardstick allocates says nothing
		}
		told[sample{pair, s.unit}] = true
		rows = append(rows, f.row(goal{Name: pair, Pair: pair, Unit: s.unit}))
	}
	return rows
}

func (f *figures) row(g goal) row {
	yardstick := g.Pair + "/" + cmp.Or(g.Against, "yardstick")
	r := row{Name: g.Name, Unit: g.Unit, Ours: f.median(g.Pair+"/ours", g.Unit), Yardstick: f.median(yardstick, g.Unit)}
	for _, name := range []string{yardstick, g.Pair + "/ours", g.Pair} {
		r.Missing = cmp.Or(r.Missing, f.missing[name])
	}
	if r.Ours == nil {
		r.Ours = f.median(g.Pair, g.Unit)
	}
	if r.Ours != nil && r.Yardstick != nil && *r.Yardstick != 0 {
		ratio := *r.Ours / *r.Yardstick
		r.Ratio = &ratio
	}
	var parts []string
	met := true
	expect := func(limit float64, text string, value *float64, ok func(float64) bool) {
		if limit == 0 {
			return
		}
		parts = append(parts, text)
		met = met && value != nil && ok(*value)
	}
	expect(g.RatioAtLeast, fmt.Sprintf("ratio >= %g", g.RatioAtLeast), r.Ratio, func(v float64) bool { return v >= g.RatioAtLeast })
	expect(g.RatioAtMost, fmt.Sprintf("ratio <= %g", g.RatioAtMost), r.Ratio, func(v float64) bool { return v <= g.RatioAtMost })
	expect(g.OursAtMost, fmt.Sprintf("ours <= %g", g.OursAtMost), r.Ours, func(v float64) bool { return v <= g.OursAtMost })
	expect(g.OursAtLeast, fmt.Sprintf("ours >= %g", g.OursAtLeast), r.Ours, func(v float64) bool { return v >= g.OursAtLeast })
	if len(parts) > 0 {
		r.Goal, r.Met = strings.Join(parts, ", "), &met
	}
	return r
}

// lacking says which benchmarks failed and which goals have no figure. One that was left out is named under strict only.
func (f *figures) lacking(goals []goal, strict bool) []string {
	var lacks []string
	for _, name := range f.failed {
		lacks = append(lacks, name+" failed")
	}
	for _, g := range goals {
		r := f.row(g)
		beside := g.Against != "" || g.RatioAtLeast != 0 || g.RatioAtMost != 0
		if r.Ours != nil && (r.Yardstick != nil || !beside) || r.Missing != "" && !strict {
			continue
		}
		lacks = append(lacks, fmt.Sprintf("%s: Benchmark%s gives no %s %s", g.Name, g.Pair, g.Unit, r.Missing))
	}
	return lacks
}

// reasons are why benchmarks were left out, each once.
func (f *figures) reasons() []string {
	return slices.Compact(slices.Sorted(maps.Values(f.missing)))
}

// print writes the table, the last thing of a run, and why what is missing in it is.
func print(w io.Writer, rows []row, reasons []string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nname\tours\tyardstick\tunit\tratio\tgoal\t")
	for _, r := range rows {
		goal := r.Goal
		switch {
		case goal == "":
			goal = "-"
		case *r.Met:
			goal += "  met"
		default:
			goal += "  MISSED"
		}
		ours, yardstick := number(r.Ours), number(r.Yardstick)
		if r.Missing != "" && r.Ours == nil {
			ours = "MISSING"
		}
		if r.Missing != "" && r.Yardstick == nil {
			yardstick = "MISSING"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Name, ours, yardstick, r.Unit, number(r.Ratio), goal)
	}
	for _, why := range reasons {
		fmt.Fprintf(t, "\nLeft out: %s\n", why)
	}
	return t.Flush()
}

// number writes a figure with three or more digits that mean something.
func number(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case math.Abs(*v) >= 100:
		return strconv.FormatFloat(*v, 'f', 0, 64)
	}
	return strconv.FormatFloat(*v, 'g', 3, 64)
}
