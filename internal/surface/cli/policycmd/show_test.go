package policycmd

import (
	"strings"
	"testing"

	"agentbox/internal/service/gate/rules"
)

// TestShownRulesOfThePresets holds that every rule of a preset is shown, under the answer that it gives.
func TestShownRulesOfThePresets(t *testing.T) {
	for _, name := range rules.Names() {
		b, err := rules.Resolve(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		shown := shownRules(b.Cedar)
		if want := strings.Count(b.Cedar, "@id("); len(shown) != want {
			t.Errorf("%s: %d rules are shown of %d", name, len(shown), want)
		}
		for _, r := range shown {
			if r.id == "" || r.answer == "refuses" && r.about == "" {
				t.Errorf("%s: %+v says nothing", name, r)
			}
		}
	}
	b, err := rules.FromYAML([]byte("preset: standard\nallow: {domains: [api.example.com]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]shownRule{}
	for _, r := range shownRules(b.Cedar) {
		got[r.id] = r
	}
	for id, want := range map[string]shownRule{
		"commands.deletes_tree.ask": {answer: "asks", about: "deletes a folder"}, "commands.refused": {answer: "refuses", about: "chmod"},
		"domains.allowed": {answer: "allows", about: "a space has no network"}, "commands.builtins": {answer: "allows", about: "echo"},
	} {
		if r := got[id]; r.answer != want.answer || !strings.Contains(r.about, want.about) {
			t.Errorf("%s: got %+v, want %s ... %s", id, r, want.answer, want.about)
		}
	}
}
