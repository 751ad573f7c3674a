package termtest

import (
	"flag"
	"strings"
	"testing"

	"agentbox/internal/surface/cli/term"
)

var _ = flag.Bool("update", false, "write the golden files")

// TestTables aligns, cuts only the last column, and says what to do when there is nothing.
func TestTables(t *testing.T) {
	rows := [][]term.Cell{{term.Text("id-1"), term.Text("ä\nb"), term.Text(strings.Repeat("x", 30))}, {term.Text("identity-2"), term.Text(""),
		term.Text("y")}}
	Golden(t, "table", Drawn(30, func(p *term.Printer) {
		p.Table("none", []string{"id", "name", "rest"}, rows)
		p.Table("There are none; make one.", []string{"id"}, nil)
	}))
	long := strings.Repeat("x", 5000)
	if got := Drawn(0, func(p *term.Printer) {
		p.Table("none", []string{"id", "rest"}, [][]term.Cell{{term.Text("id-1"), term.Text(long)}})
	}); !strings.HasSuffix(got, "\nid-1  "+long+"\n") {
		t.Errorf("where a program reads it, a table is cut: %.80q", got)
	}
}
