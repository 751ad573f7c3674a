package rules_test

import (
	"strings"
	"testing"

	"agentbox/internal/service/gate/rules"
)

// TestWarningsNameWhatHasNoEffect reads policies with and without domains.
func TestWarningsNameWhatHasNoEffect(t *testing.T) {
	for text, want := range map[string]string{
		"{}": "", "preset: standard": "", "preset: permissive": "domains.ask", "allow: {domains: [a.example]}": "domains.allowed",
		"deny: {domains: [a.example]}": "", "allow: {domains: [a.example]}\nask: {domains: [\"*\"]}": "domains.allowed domains.ask",
	} {
		b, err := rules.FromYAML([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, said := range rules.Warnings(b) {
			rule, _, _ := strings.Cut(said, " ")
			got = append(got, rule)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %s", text, got, want)
		}
	}
}

// TestEnvironmentWarningsNameWhatChangesCommands looks at variables of a space.
func TestEnvironmentWarningsNameWhatChangesCommands(t *testing.T) {
	got := rules.EnvironmentWarnings(map[string]string{"PATH": "/x", "BASH_ENV": "f", "LD_PRELOAD": "f", "Y": "x[$(rm -r y)]", "CI": "true",
		"LANG": "C"})
	var names []string
	for _, said := range got {
		name, _, _ := strings.Cut(said, " ")
		names = append(names, name)
	}
	if strings.Join(names, " ") != "BASH_ENV LD_PRELOAD PATH Y" {
		t.Errorf("got %q", got)
	}
}
