// Package termtest compares what commands draw on a terminal with golden files, and has the clocks of their tests.
package termtest

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentbox/internal/surface/cli/term"
)

// Clock stands still.
type Clock struct{}

// Noon is the moment at which the clocks of the tests stand.
func Noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// Now returns noon.
func (Clock) Now() time.Time { return Noon() }

// NewTimer returns a timer that never goes off.
func (Clock) NewTimer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// Drawn returns the drawing of a function on a terminal of a width, with colours as {31:...}.
func Drawn(width int, draw func(*term.Printer)) string {
	var out bytes.Buffer
	draw(&term.Printer{Out: &out, Colour: true, Width: width})
	s := strings.ReplaceAll(out.String(), "\x1b[0m", "}")
	for _, c := range []string{term.Bold, term.Faint, term.Red, term.Green, term.Yellow, term.Cyan} {
		s = strings.ReplaceAll(s, "\x1b["+c+"m", "{"+c+":")
	}
	return s
}

// Golden compares a text with a golden file of the package under test; -update rewrites it.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name + ".txt"
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s has changed (-want +got):\n%s", file, diff)
	}
}

// Drawings compares drawings with golden files; -update rewrites them.
func Drawings(t *testing.T, all map[string]func(*term.Printer)) {
	t.Helper()
	for name, draw := range all {
		t.Run(name, func(t *testing.T) { Golden(t, name, Drawn(100, draw)) })
	}
}

// Stepped is a clock whose timers go off at once, after a step of the test.
type Stepped struct{ Step func() }

// Now returns the beginning of time.
func (Stepped) Now() time.Time { return time.Unix(0, 0) }

// NewTimer takes a step and returns a timer that is over.
func (s Stepped) NewTimer(time.Duration) (<-chan time.Time, func()) {
	s.Step()
	c := make(chan time.Time, 1)
	c <- time.Time{}
	return c, func() {}
}

// Soon is a clock whose timers are over at once.
type Soon struct{}

// Now returns noon.
func (Soon) Now() time.Time { return Noon() }

// NewTimer returns a timer that is over.
func (Soon) NewTimer(time.Duration) (<-chan time.Time, func()) {
	over := make(chan time.Time, 1)
	over <- time.Time{}
	return over, func() {}
}

// Told is an output whose Done is closed when something was written to it.
type Told struct {
	strings.Builder
	Done chan struct{}
}

// Write implements io.Writer.
func (w *Told) Write(p []byte) (int, error) {
	n, err := w.Builder.Write(p)
	if strings.HasSuffix(w.String(), "\n") {
		close(w.Done)
	}
	return n, err
}
