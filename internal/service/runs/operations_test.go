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
	for _, typ := range run.OpTypes() {
		if v := verbs[typ]; v.ask == nil || v.do == nil {
			t.Errorf("%s: asks %t, does %t; add a row to verbs", typ, v.ask != nil, v.do != nil)
		}
	}
	for typ := range verbs {
		if _, ok := run.SpecOf(typ); !ok {
			t.Errorf("%s is executed and is no operation", typ)
		}
	}
}

// TestTheWayOfAnOperationIsDescribed holds the list of functions in docs/ARCHITECTURE.md to the code.
func TestTheWayOfAnOperationIsDescribed(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## One operation, from HTTP to the disk\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| \\d+ \\| `(\\w+)` \\| `([^`]+)` ").FindAllStringSubmatch(section, -1)
	if len(rows) == 0 || len(rows) > 25 {
		t.Fatalf("the list has %d functions, want 1 to 25", len(rows))
	}
	for _, row := range rows {
		code, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(row[2])))
		if err != nil {
			t.Error(err)
			continue
		}
		if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + row[1] + `\(`).Match(code) {
			t.Errorf("%s has no function %s", row[2], row[1])
		}
	}
}
