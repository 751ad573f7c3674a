package cmdline

import (
	"flag"
	"os"
	"testing"

	"agentbox/internal/surface/cli/term"
	"agentbox/internal/surface/cli/termtest"
)

var _ = flag.Bool("update", false, "write the golden files")

// TestErrorDrawings compares how errors look with golden files.
func TestErrorDrawings(t *testing.T) {
	termtest.Drawings(t, map[string]func(*term.Printer){
		"error": func(p *term.Printer) {
			Complain(p.Out, p, Usage("%q is not a size", "x\x1b[0m"))
			Complain(p.Out, p, Unreadable(os.ErrNotExist, "a\nb").With("look again"))
		},
	})
}
