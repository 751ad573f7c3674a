package hostcmd

import (
	"flag"
	"testing"
	"time"

	"agentbox/internal/domain/space"
	"agentbox/internal/surface/cli/term"
	"agentbox/internal/surface/cli/termtest"
)

var _ = flag.Bool("update", false, "write the golden files")

// TestHostDrawings compares how the host look with golden files.
func TestHostDrawings(t *testing.T) {
	termtest.Drawings(t, map[string]func(*term.Printer){
		"doctor": func(p *term.Printer) {
			writeReport(p, space.Report{Tier: "namespace", Limited: true, Start: 12 * time.Millisecond, Checks: []space.Check{
				{Name: "user namespaces", OK: true, Detail: "a real space was started"},
				{Name: "memory limit", Detail: "no writable memory control group", Mend: "mount -t cgroup2 none /sys/fs/cgroup", Bound: "memory_bytes"},
			}})
		},
	})
}
