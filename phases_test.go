package agentbox_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestHookPhases holds that each of the eight phases of hooks has one place in the code, and that docs/ARCHITECTURE.md names it.
func TestHookPhases(t *testing.T) {
	marks := regexp.MustCompile(`(?m)^\s*// Hook phase: ([A-Za-z/ -]+)\.$`)
	found := map[string][]string{}
	err := filepath.WalkDir("internal", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range marks.FindAllSubmatch(source, -1) {
			found[string(m[1])] = append(found[string(m[1])], filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	phases := []string{"Pre-Plan", "Pre-Send", "Post-Receive", "Pre-Tool", "Post-Tool", "State Transition", "Spawn/Fork", "Audit"}
	for _, phase := range phases {
		at := found[phase]
		if len(at) != 1 {
			t.Errorf("%s has the places %q, want one", phase, at)
			continue
		}
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(phase) + ` \| [^|]+ \| ` + "`" + regexp.QuoteMeta(at[0]) + "`")
		if !row.Match(raw) {
			t.Errorf("docs/ARCHITECTURE.md does not say that %s is in %s", phase, at[0])
		}
	}
	if len(found) != len(phases) {
		t.Errorf("the code marks %d phases, want %d", len(found), len(phases))
	}
}
