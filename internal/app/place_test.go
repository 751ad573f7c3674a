package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentbox/internal/domain/space"
	"agentbox/internal/driver/nano"
	"agentbox/internal/service/tiering"
)

func TestRulesOfWhereCommandsRun(t *testing.T) {
	write := func(name, text string) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for _, c := range []struct {
		name, file, needs string // what `sort; gcc` needs; - where the rules are refused
	}{
		{"none", "", "gcc"},
		{"one's own", write("rules.yaml", "nano: {commands: [gcc]}\nheavy: {commands: [sort]}\n"), "sort"},
		{"what nobody knows", write("rules.yaml", "light: {}\n"), "-"},
		{"too large", write("rules.yaml", strings.Repeat("#", tiering.MaxRulesBytes+1)), "-"},
		{"not there", filepath.Join(t.TempDir(), "none.yaml"), "-"},
		{"a folder", t.TempDir(), "-"},
	} {
		c2 := Default(t.TempDir())
		c2.RuntimeRules = c.file
		found, err := place(c2)
		if checked := c2.check(); (checked == nil) != (err == nil) || (err != nil) != (c.needs == "-") {
			t.Errorf("%s: got %v, and at the start %v", c.name, err, checked)
		}
		if err != nil {
			continue
		}
		var names []string
		for _, n := range found(nano.Offer(), space.Command{Text: "sort; gcc"}, nil) {
			names = append(names, n.Name)
		}
		if got := strings.Join(names, " "); got != c.needs {
			t.Errorf("%s: got %q, want %q", c.name, got, c.needs)
		}
	}
}
