package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
)

// maxFailures is how many failures of one trial are printed; the others are only counted.
const maxFailures = 5

// result is the result for one property.
type result struct {
	Property string   `json:"property"`
	Promise  string   `json:"promise"`
	Held     bool     `json:"held"` // every trial was made and held
	Seconds  float64  `json:"seconds"`
	Trials   []*trial `json:"trials"`

	say    func(format string, args ...any) // tells how far it has come
	failed func()                           // hears of each failure
}

// trial is one thing that was tried.
type trial struct {
	What     string   `json:"what"`
	Tried    int      `json:"tried"` // how often, or with how many; 0 shows nothing
	Held     bool     `json:"held"`
	Evidence string   `json:"evidence,omitempty"`
	Failures []string `json:"failures,omitempty"` // the first of them
	Failed   int      `json:"failed,omitempty"`

	mu     sync.Mutex // guards all of it
	failed func()     // hears of each failure
}

// try begins a trial, which holds until it fails.
func (r *result) try(what string) *trial {
	t := &trial{What: what, Held: true, failed: r.failed}
	r.Trials = append(r.Trials, t)
	r.say("%s", what)
	return t
}

// tried counts n more tries.
func (t *trial) tried(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Tried += n
}

// fail records that a try did not hold, and how.
func (t *trial) fail(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Held = false
	t.failed()
	if t.Failed++; t.Failed <= maxFailures {
		t.Failures = append(t.Failures, fmt.Sprintf(format, args...))
	}
}

// want fails where a statement does not hold.
func (t *trial) want(holds bool, format string, args ...any) {
	if !holds {
		t.fail(format, args...)
	}
}

// note says what shows that the trial held.
func (t *trial) note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Evidence = fmt.Sprintf(format, args...)
}

// report writes the results, as a table or as JSON.
func report(out io.Writer, results []result, interrupted, asJSON bool) error {
	if asJSON {
		raw, err := json.MarshalIndent(map[string]any{"properties": results, "held": held(results) && !interrupted, "interrupted": interrupted},
			"", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s\n", raw)
		return err
	}
	var text strings.Builder
	for _, r := range results {
		fmt.Fprintf(&text, "%s %-9s %s (%.1f s)\n", mark(r.Held), r.Property, r.Promise, r.Seconds)
		for _, t := range r.Trials {
			fmt.Fprintf(&text, "    %s %6d  %s\n", mark(t.Held && t.Tried > 0), t.Tried, t.What)
			if t.Evidence != "" {
				fmt.Fprintf(&text, "              %s\n", t.Evidence)
			}
			for _, f := range t.Failures {
				fmt.Fprintf(&text, "              ! %s\n", f)
			}
			if more := t.Failed - len(t.Failures); more > 0 {
				fmt.Fprintf(&text, "              ! and %d more\n", more)
			}
		}
	}
	shown := 0
	for _, r := range results {
		if r.Held {
			shown++
		}
	}
	fmt.Fprintf(&text, "%d of %d properties were shown\n", shown, len(results))
	if interrupted {
		fmt.Fprintln(&text, "interrupted: the others were not examined, which says nothing about them")
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func held(results []result) bool {
	for _, r := range results {
		if !r.Held {
			return false
		}
	}
	return len(results) > 0
}

func mark(held bool) string {
	if held {
		return "✓"
	}
	return "✗"
}
