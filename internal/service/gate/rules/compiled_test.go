package rules_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/service/gate/rules"
)

var update = flag.Bool("update", false, "write testdata/*.cedar")

// each has every list of the short form, and every kind of entry but the star alone.
const each = `
limits: {file_bytes: 1, command_ms: 3600000}
files: {read: true, write: true}
approvers: 2
weakest_tier: namespace
withhold: {paths: ["*.csv", secret], except: [public.csv]}
allow:
  commands: [ls, cat, "git   status"]
  paths: ["docs/**", "**/a/"]
  domains: [api.example.com, "*.example.com"]
  tools: [search, 'say "hi" \o/', "é"]
  traits: [network]
  actions: [run.start, email.send, run.start, till.open]
  delegated: [space.start]
ask:
  commands: [make, git push]
  paths: ["a***b"]
  domains: [ask.example.com]
  tools: [t1, t2, t3, t4, t5, t6, t7, t8]
  traits: [unresolved]
  actions: [payment.execute, till.close]
deny:
  commands: [dd, rm -r]
  paths: ["*.env"]
  domains: ["*.evil.example"]
  tools: [t1, t2, t3, t4, t5, t6, t7, t8, t9]
  traits: [deletes_tree, privilege]
  actions: [room.create]
`

// TestCompiledPolicies holds the Cedar text and the limits of the presets, of a policy with every list, of one with stars, and of one
// with nothing. Read the difference after -update as one of what everybody may do.
func TestCompiledPolicies(t *testing.T) {
	texts := map[string]string{
		"each": each, "nothing": "{}",
		"stars": `{name: stars, files: {read: false, write: false}, allow: {commands: ["*"], paths: ["**"], domains: ["*"]}, ask: {commands: ` +
			`["*"], paths: ["*"]}, deny: {commands: ["*"], paths: ["**/"], domains: ["*"]}}`,
	}
	for _, name := range rules.Names() {
		texts[name] = "preset: " + name
	}
	for name, text := range texts {
		b, err := rules.FromYAML([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := cedar.New().Validate(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		withhold := b.Limits.Withhold
		b.Limits.Withhold = nil
		got := fmt.Sprintf("// %s: %+v", b.Name, b.Limits)
		if withhold != nil {
			got += fmt.Sprintf(", withhold %+v", *withhold)
		}
		got += "\n" + b.Cedar
		file := "testdata/" + name + ".cedar"
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs; go test -update writes it anew:\n%s", file, got)
		}
	}
}

// TestTheBoundsOfThePolicyText holds each bound of the short form at its edge; an empty refusal means that the text is a policy.
func TestTheBoundsOfThePolicyText(t *testing.T) {
	commands := func(n int) string { return "allow:\n  commands: [" + strings.Repeat("a,", n-1) + "a]\n" }
	for name, c := range map[string]struct{ text, refusal string }{
		"the longest text":              {"#" + strings.Repeat("x", rules.MaxYAMLBytes-1), ""},
		"a longer text":                 {"#" + strings.Repeat("x", rules.MaxYAMLBytes), "the limit is 65536"},
		"the longest name":              {"name: " + strings.Repeat("x", 64), ""},
		"an empty name":                 {"name: ''", "1 to 64 bytes"},
		"a list of names":               {"name: [a]", "1 to 64 bytes"},
		"the least limits":              {"limits: {file_bytes: 1, command_ms: 1}", ""},
		"the most limits":               {"limits: {file_bytes: 1073741824, command_ms: 3600000}", ""},
		"a larger file":                 {"limits: {file_bytes: 1073741825}", "from 1 to 1073741824"},
		"a number as a text":            {"limits: {command_ms: '5'}", "whole number"},
		"a truth as a text":             {"files: {read: 'true'}", "true or false"},
		"a truth in another case":       {"files: {read: True}", "true or false"},
		"one approver":                  {"approvers: 1", ""},
		"a list of approvers":           {"approvers: [1]", "whole number from 1 to 2"},
		"brackets one behind another":   {"# " + strings.Repeat("[]", 70) + strings.Repeat("{}", 70), ""},
		"64 brackets":                   {strings.Repeat("[", 64) + strings.Repeat("]", 64), "nested more than 8 deep"},
		"65 brackets":                   {strings.Repeat("[", 65) + strings.Repeat("]", 65), "brackets are nested more than 64 deep"},
		"65 braces":                     {"# " + strings.Repeat("{", 65), "brackets are nested more than 64 deep"},
		"closing brackets first":        {"# " + strings.Repeat("]", 70) + strings.Repeat("[", 64), ""},
		"8 deep":                        {strings.Repeat("[", 8) + "x" + strings.Repeat("]", 8), "must be an object"},
		"9 deep":                        {strings.Repeat("[", 9) + "x" + strings.Repeat("]", 9), "nested more than 8 deep"},
		"1000 entries":                  {commands(1_000), ""},
		"1001 entries":                  {commands(1_001), "a list of at most 1000 texts"},
		"2000 entries":                  {commands(2_000), "a list of at most 1000 texts"},
		"2001 entries":                  {commands(2_001), "more than 1000 entries"},
		"the longest entry":             {"allow: {tools: [" + strings.Repeat("x", 512) + "]}", ""},
		"a longer entry":                {"allow: {tools: [" + strings.Repeat("x", 513) + "]}", "more than 512 bytes"},
		"an entry with DEL":             {`allow: {tools: ["a\x7f"]}`, "control characters"},
		"a list in a list":              {"allow: {tools: [[a]]}", "not a text"},
		"a command without a name":      {"allow: {commands: [' x']}", "not a command"},
		"an absolute exception":         {"withhold: {except: [/x]}", "not a path glob"},
		"what is withheld is no list":   {"withhold: {paths: x}", "must be a list"},
		"what is withheld is no object": {"withhold: [x]", "must be an object"},
		"delegated, but no action":      {"allow: {delegated: [x]}", "is no action"},
		"asked, but no action":          {"ask: {actions: [x]}", "is no action"},
		"asked, but no command":         {"ask: {commands: [/x]}", "not a command"},
		"a preset in a list":            {"- preset\n- loose\n", "must be an object"},
		"a policy that is named preset": {"name: preset\nfiles: {read: true}\n", ""},
		"a domain of nothing":           {"allow: {domains: ['*.']}", "not a domain"},
	} {
		_, err := rules.FromYAML([]byte(c.text))
		if (err == nil) != (c.refusal == "") || err != nil && (fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), c.refusal)) {
			t.Errorf("%s: got %v, want %q", name, err, c.refusal)
		}
	}
	if _, err := rules.FromYAML([]byte("#" + strings.Repeat("x", rules.MaxYAMLBytes))); fault.CodeOf(err) != "policy_too_large" {
		t.Errorf("a longer text: %v", err)
	}
}

// TestOneApproverIsTheDefault holds that the same policy has one form, and so one hash.
func TestOneApproverIsTheDefault(t *testing.T) {
	none, err := rules.FromYAML([]byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	one, err := rules.FromYAML([]byte("approvers: 1"))
	if err != nil || one.Hash != none.Hash {
		t.Errorf("got %s, %v, want %s", one.Hash, err, none.Hash)
	}
	two, err := rules.FromYAML([]byte("approvers: 2"))
	if err != nil || two.Limits.Approvers != 2 || two.Hash == none.Hash {
		t.Errorf("got %+v, %v", two.Limits, err)
	}
}

// TestWhichPresetsThereAre holds the words of a preset to its text, and the refusal of what is none.
func TestWhichPresetsThereAre(t *testing.T) {
	for _, name := range rules.Names() {
		text, err := rules.PresetText(name)
		if err != nil {
			t.Fatal(err)
		}
		written, err := rules.FromYAML([]byte(text))
		named, err2 := rules.Resolve(name, nil)
		if err != nil || err2 != nil || written.Hash != named.Hash {
			t.Errorf("%s: its text has the hash %s, %v, its name %s, %v", name, written.Hash, err, named.Hash, err2)
		}
	}
	for _, name := range []string{"", "loose", "../presets/standard"} {
		_, first := rules.Preset(name)
		text, second := rules.PresetText(name)
		_, third := rules.Resolve(name, nil)
		for _, err := range []error{first, second, third} {
			if fault.CodeOf(err) != "policy_unknown" || fault.KindOf(err) != fault.Invalid || text != "" {
				t.Errorf("%q: got %v", name, err)
			}
		}
	}
	if b, err := rules.Resolve(rules.Standard, []byte("nothing: x")); fault.CodeOf(err) != "policy_invalid" || b.Cedar != "" {
		t.Errorf("broken overrides: %v", err)
	}
	b, err := rules.Resolve(rules.Standard, []byte("files: {read: false}"))
	if err != nil || strings.Contains(b.Cedar, `"files.read"`) || !strings.Contains(b.Cedar, `"files.write"`) {
		t.Errorf("without reading: %v\n%s", err, b.Cedar)
	}
	if traits := rules.Traits(); !slices.IsSorted(traits) || len(traits) != 14 || !slices.Contains(traits, policy.TraitNetwork) {
		t.Errorf("got %v", traits)
	}
}
