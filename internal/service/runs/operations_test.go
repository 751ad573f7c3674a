package runs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentbox/internal/domain/run"
)

// TestEveryOperationIsExecuted holds that each type of operation can be asked for and done, and that nothing else can.
func TestEveryOperationIsExecuted(t *testing.T) {
	t.Parallel()
	for _, typ := range run.OpTypes() {
		if v := verbs[typ]; v.ask == nil || v.do == nil {
			t.Errorf("%s: asks %t, does %t; add a row to verbs", typ, v.ask != nil, v.do != nil)
		}
	}
	for typ := range verbs {
		if _, ok := run.SpecOf(typ); !ok {
			t.Errorf("%s is executed and is not an operation", typ)
		}
	}
}

// TestTheWayOfARequestIsDescribed holds the lists of functions in docs/ARCHITECTURE.md to the code: that of an operation and that of a
// message.
func TestTheWayOfARequestIsDescribed(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| \\d+ \\| `(\\w+)` \\| `([^`]+)` ")
	for title, most := range map[string]int{"One operation, from HTTP to the disk": 25, "One message, from HTTP to the log": 10} {
		_, rest, _ := strings.Cut(string(text), "## "+title+"\n")
		section, _, _ := strings.Cut(rest, "\n## ")
		rows := row.FindAllStringSubmatch(section, -1)
		if len(rows) == 0 || len(rows) > most {
			t.Errorf("%s: got %d functions, want 1 to %d", title, len(rows), most)
		}
		for _, row := range rows {
			code, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(row[2])))
			if err != nil {
				t.Error(err)
				continue
			}
			if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + row[1] + `\(`).Match(code) {
				t.Errorf("%s: %s has no function %s", title, row[2], row[1])
			}
		}
	}
}
