package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// table writes what was found, for people.
func table(w io.Writer, results []result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range results {
		fmt.Fprintf(t, "\n%s\twhat\tcount\ta second\tp50 ms\tp99 ms\t\n", r.Store)
		line := func(name, what string, f figures) {
			fmt.Fprintf(t, "%s\t%s\t%d\t%.0f\t%.2f\t%.2f\t\n", name, what, f.Count, f.Rate, f.P50, f.P99)
		}
		for _, p := range r.Phases {
			fmt.Fprintf(t, "%s\tprocessors: daemon %.0f us, PostgreSQL %.0f us, clients %.0f us for each message and run\t\t\t\t\t\n", p.Name,
				p.Costs.Daemon, p.Costs.Postgres, p.Costs.Clients)
			for _, what := range slices.Sorted(maps.Keys(p.Figures)) {
				line(p.Name, what, p.Figures[what])
			}
			if p.Killed {
				fmt.Fprintf(t, "%s\tkilled; it answered again after %.0f ms\t\t\t\t\t\n", p.Name, p.Recovery)
			}
		}
		fmt.Fprintf(t, "bare\tprocessors: PostgreSQL %.0f us, clients %.0f us for each row\t\t\t\t\t\n", r.RawCosts.Postgres, r.RawCosts.Clients)
		line("bare", fmt.Sprintf("rows of %d bytes", r.RowBytes), r.Raw)
		if r.DBOS != nil {
			line("bare HTTP", fmt.Sprintf("rows of %d bytes", r.RowBytes), *r.Bare)
			line("bare HTTP", "the same, of as many clients as engines", *r.BareStep)
			line("DBOS", "step", *r.DBOS)
			line("River", "job made to work", *r.River)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(t)
	for _, r := range results {
		verdict := func(what string, ours, other, ratio float64, goal string, met bool) {
			word := "met"
			if !met {
				word = "MISSED"
			}
			if goal == "" {
				goal, word = "-", ""
			}
			fmt.Fprintf(t, "%s\t%s\t%.2f\t%.2f\t%.2f\t%s  %s\t\n", r.Store, what, ours, other, ratio, goal, word)
		}
		fmt.Fprint(t, "store\tbeside\tours\ttheirs\tratio\tgoal\t\n")
		goal := ""
		if r.Store == "postgres" {
			goal = "at least 0.5"
		}
		verdict("bare rows a second", r.Phases[0].Figures["message"].Rate, r.Raw.Rate, r.Ratio, goal, r.Ratio >= 0.5)
		if r.DBOS != nil {
			step, came := r.Phases[1].Figures["step"].P50, r.Phases[2].Figures["run made to claimed"].P50
			verdict("the same rows over bare HTTP a second", r.Phases[0].Figures["message"].Rate, r.Bare.Rate,
				r.Phases[0].Figures["message"].Rate/r.Bare.Rate, "", true)
			verdict("a row over bare HTTP, p50 ms, beside a step", step, r.BareStep.P50, step/r.BareStep.P50, "", true)
			verdict("a step of DBOS, p50 ms", step, r.DBOS.P50, step/r.DBOS.P50, "below 1", step < r.DBOS.P50)
			verdict("a job of River made to work, p50 ms", came, r.River.P50, came/r.River.P50, "below 1", came < r.River.P50)
		}
		kept := "every promise was kept"
		if len(r.Breaches) > 0 {
			kept = "PROMISES WERE BROKEN"
		}
		fmt.Fprintf(t, "%s\t%s: %d events and %d documents proven, followers cut off %d times\t\t\t\t\t\n", r.Store, kept, r.Events, r.Documents,
			r.Cuts)
		for _, b := range r.Breaches {
			fmt.Fprintf(t, "\t%s: %s\t\t\t\t\t\n", b.What, b.Where)
		}
	}
	return t.Flush()
}
