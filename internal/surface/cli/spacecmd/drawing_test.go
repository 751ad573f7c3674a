package spacecmd

import (
	"flag"
	"testing"
	"time"

	"agentbox/internal/domain/space"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
	"agentbox/internal/surface/cli/termtest"
)

var _ = flag.Bool("update", false, "write the golden files")

// TestSpaceDrawings compares how spaces look with golden files.
func TestSpaceDrawings(t *testing.T) {
	i := &cmdline.Invocation{Host: cmdline.Host{Clock: termtest.Clock{}}}
	termtest.Drawings(t, map[string]func(*term.Printer){
		"space": func(p *term.Printer) {
			writeSpace(p, i, space.Space{
				ID: "spc_1", Name: "first\nsecond", Status: space.Ready, Tier: "namespace", Policy: "standard", Limits: space.DefaultLimits(),
				CreatedAt: termtest.Noon().Add(-time.Hour),
				CreatedBy: "usr_1", ExpiresAt: termtest.Noon().Add(11 * time.Hour), Unenforced: []string{"memory_bytes"},
				Env: map[string]string{"B": "2",
					"A": "1"},
			})
		},
	})
}
