package topcmd

import (
	"flag"
	"testing"

	"agentbox/internal/surface/cli/term"
	"agentbox/internal/surface/cli/termtest"
)

var _ = flag.Bool("update", false, "write the golden files")

// TestTopDrawings compares how top look with golden files.
func TestTopDrawings(t *testing.T) {
	termtest.Drawings(t, map[string]func(*term.Printer){
		"top": func(p *term.Printer) {
			before, now := someTop()
			for _, o := range []order{{}, {by: 'c'}, {by: 'n', turned: true}} {
				for _, line := range rated(before, now).draw(p, o, 0, 0) {
					p.Line("%s", line)
				}
			}
		},
	})
}
