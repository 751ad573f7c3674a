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
	row := regexp.MustCompile("(?m)^\\| \\d+ \\| `(\\w+)` \\| `([^`]+)` \\| `([^`]+)`(?: in `([^`]+)`)? \\|")
	for title, most := range map[string]int{"One operation, from HTTP to the disk": 25, "One message, from HTTP to the log": 10} {
		_, rest, _ := strings.Cut(string(text), "## "+title+"\n")
		section, _, _ := strings.Cut(rest, "\n## ")
		rows := row.FindAllStringSubmatch(section, -1)
		if len(rows) < 2 || len(rows) > most {
			t.Fatalf("%s: got %d functions, want 2 to %d", title, len(rows), most)
		}
		earlier := map[string]string{}
		for i, row := range rows {
			name, caller := row[1], earlier[row[3]]
			if row[4] != "" {
				caller = function(t, filepath.Join(root, filepath.FromSlash(row[4])), row[3])
			}
			if i > 0 && !regexp.MustCompile(`\b`+name+`\b`).MatchString(caller) {
				t.Errorf("%s: %s does not name %s", title, row[3], name)
			}
			earlier[name] = function(t, filepath.Join(root, filepath.FromSlash(row[2])), name)
		}
	}
}

// function returns the body of a function of a file.
func function(t *testing.T, file, name string) string {
	t.Helper()
	code, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
		return ""
	}
	head := regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + name + `\(`).FindIndex(code)
	if head == nil {
		t.Errorf("%s has no function %s", file, name)
		return ""
	}
	body, _, _ := strings.Cut(string(code[head[1]:]), "\n}\n")
	return body
}
