package arch_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentbox/internal/testkit/arch"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestEveryRuleCanBeBroken turns the rules on a module that breaks each of them and keeps others beside, and compares what is found.
func TestEveryRuleCanBeBroken(t *testing.T) {
	module, err := arch.Load(filepath.Join("testdata", "broken"))
	if err != nil {
		t.Fatal(err)
	}
	found := arch.Imports(module, []arch.Floor{
		{Name: "policy", Packages: []string{"internal/domain/policy"}},
		{Name: "domain", Packages: []string{"internal/domain/*"}, Imports: []string{"internal/domain/policy"}, Own: true, Depth: 3,
			Refused: []string{"os"}},
		{Name: "kernel", Packages: []string{"internal/kernel/*"}, Imports: []string{"internal/domain/*"}},
		{Name: "a service", Packages: []string{"internal/service/*"}, Imports: []string{"internal/domain/**", "internal/kernel/**"}},
		{Name: "a driver", Packages: []string{"internal/driver/*/**", "internal/driver/*"}, Imports: []string{"internal/domain/*"},
			ThirdParty: []string{"**"}},
		{Name: "app", Packages: []string{"internal/app"}, Imports: []string{"**"}},
	})
	sizes, err := arch.Sizes(module, 110, 140)
	if err != nil {
		t.Fatal(err)
	}
	sleeps, err := arch.Sleeps(module)
	if err != nil {
		t.Fatal(err)
	}
	found = append(found, sizes...)
	found = append(found, sleeps...)
	found = append(found, arch.Goroutines(module, []string{"internal/domain/*"})...)
	found = append(found, arch.Comments(module)...)
	found = append(found, arch.Globals(module, nil)...)
	found = append(found, arch.Names(module, map[string]string{"manager": "say what it does"})...)
	found = append(found, arch.Uses(module, []arch.Use{
		{Rule: "clock", Names: []string{"time.Now"}, Allowed: []string{"internal/app"}, Why: "time is an argument"},
		{Rule: "issue", Names: []string{"internal/domain/policy.Issue"}, Allowed: []string{"internal/service/gate"},
			Why: "only the gate makes permits"},
	})...)
	found = append(found, arch.Literals(module, []arch.Literal{
		{Rule: "act", Type: "internal/domain/policy.Act", Has: "Who", Wants: "Under", Mention: "internal/domain/policy.Judge",
			Why: "it would be forgotten"},
		{Rule: "act", Type: "internal/domain/policy.Act", Has: "Who", Wants: "Under", Mention: "internal/domain/policy.Nothing",
			Why: "nobody mentions it"},
	})...)
	bulk, err := arch.Bulk{
		Methods: 2, Lines: 100, Free: []string{"internal/domain/thing"},
		Types:    map[string]string{"internal/domain/large.Explained": "a list", "internal/domain/large.part": "it was larger"},
		Packages: map[string]int{"internal/domain/long": 110, "internal/domain/noun": 200},
	}.Check(module)
	if err != nil {
		t.Fatal(err)
	}
	found = append(found, bulk...)
	links, err := arch.Links(module, []string{"internal/service/*", "internal/domain/*"}, []string{"internal/app/**"})
	if err != nil {
		t.Fatal(err)
	}
	found = append(found, links...)
	lines, unsaid := arch.Logs(module, nil)
	want := []arch.LogLine{{Code: "also_well", Level: "error", Message: "also well", Package: "internal/app"}, {Code: "well_said",
		Level: "info", Message: "it is well said", Package: "internal/app"}}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("the lines of the log (-want +got):\n%s", diff)
	}
	found = append(found, unsaid...)
	found = append(found, arch.Effects{
		Sinks: []string{"os.*"}, Harmless: []string{"os.IsNotExist"},
		Permit: "internal/domain/policy.Permit", From: []string{"internal/service/*"}, Drivers: []string{"internal/driver/**"},
		Inner: []string{"internal/driver/*/within"},
		Allowed: map[string]string{
			"(*internal/driver/disk.Disk).Append": "the log itself",
			"internal/driver/disk.Gone":           "an entry that nothing needs",
		},
	}.Check(module)...)

	texts := make([]string, len(found))
	for i, f := range found {
		texts[i] = f.String()
	}
	got := strings.Join(texts, "\n") + "\n"
	golden := filepath.Join("testdata", "broken.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(recorded), got); diff != "" {
		t.Errorf("what is found has changed (-want +got):\n%s", diff)
	}
}

// TestMatch holds the form of the patterns.
func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"internal/domain/*", "internal/domain/id", true},
		{"internal/domain/*", "internal/domain/id/idtest", false},
		{"internal/domain/**", "internal/domain/id/idtest", true},
		{"internal/domain/**", "internal/domain", true},
		{"internal/domain/**", "internal/domains", false},
		{"internal/*/id", "internal/domain/id", true},
		{"cmd/agentbox", "cmd/agentbox-init", false},
		{"**", "anything/at/all", true},
		{".", ".", true},
	} {
		if got := arch.Match(c.pattern, c.name); got != c.want {
			t.Errorf("Match(%q, %q): got %v, want %v", c.pattern, c.name, got, c.want)
		}
	}
}

// TestABrokenModuleIsAnError makes sure that what cannot be read is not taken for clean.
func TestABrokenModuleIsAnError(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.26\n", "m.go": "package m\n\nvar x undefined\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := arch.Load(dir); err == nil || !strings.Contains(err.Error(), "undefined") {
		t.Errorf("got %v, want an error that names what is undefined", err)
	}
}
