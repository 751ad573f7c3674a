package rules_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/service/gate/rules"
)

func TestPresetsAreValidAndDifferent(t *testing.T) {
	seen := map[string]string{}
	for _, name := range rules.Names() {
		b, err := rules.Resolve(name, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := cedar.New().Validate(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if b.Name != name {
			t.Errorf("got the name %s, want %s", b.Name, name)
		}
		if other := seen[b.Hash.String()]; other != "" {
			t.Errorf("%s and %s have one hash", name, other)
		}
		seen[b.Hash.String()] = name
		again, err := rules.Resolve(name, []byte("null"))
		if err != nil || again.Hash != b.Hash {
			t.Errorf("%s: resolved twice it has two hashes, %v", name, err)
		}
	}
}

func TestLimitsOfThePresets(t *testing.T) {
	for name, want := range map[string]policy.Limits{
		rules.Restrictive: {FileBytes: 1 << 20, CommandMS: 10_000},
		rules.Standard:    {FileBytes: 10 << 20, CommandMS: 30_000},
		rules.Permissive:  {FileBytes: 100 << 20, CommandMS: 300_000},
	} {
		b, err := rules.Resolve(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b.Limits.FileBytes != want.FileBytes || b.Limits.CommandMS != want.CommandMS {
			t.Errorf("%s: got %+v, want %+v", name, b.Limits, want)
		}
	}
}

func TestOverridesReplaceWhatTheyGive(t *testing.T) {
	base, err := rules.Resolve(rules.Standard, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		overrides string
		check     func(policy.Bundle) bool
	}{
		{`{"limits":{"command_ms":5000}}`, func(b policy.Bundle) bool {
			return b.Limits.CommandMS == 5000 && b.Limits.FileBytes == base.Limits.FileBytes
		}},
		{`{"deny":{"paths":["secret/**"]}}`, func(b policy.Bundle) bool {
			return strings.Contains(b.Cedar, "secret/*") && !strings.Contains(b.Cedar, "*.env") && strings.Contains(b.Cedar,
				"commands.privilege.refused")
		}},
		{`{"weakest_tier":"namespace"}`, func(b policy.Bundle) bool { return b.Limits.Weakest == "namespace" && b.Cedar == base.Cedar }},
		{`{"weakest_tier":"` + strings.Repeat("x", 32) + `"}`, func(b policy.Bundle) bool { return len(b.Limits.Weakest) == 32 }},
		{`{"files":{"write":false}}`, func(b policy.Bundle) bool {
			return !strings.Contains(b.Cedar, `"files.write"`) && strings.Contains(b.Cedar, `"files.read"`)
		}},
		{`{"allow":{"commands":[]}}`, func(b policy.Bundle) bool {
			return !strings.Contains(b.Cedar, "commands.allowed") && !strings.Contains(b.Cedar, "commands.builtins")
		}},
		{"name: mine\nask:\n  commands: [ls, git push]\n", func(b policy.Bundle) bool {
			return b.Name == "mine" && strings.Contains(b.Cedar, `"git push *"`)
		}},
	} {
		b, err := rules.Resolve(rules.Standard, []byte(c.overrides))
		if err != nil {
			t.Errorf("%s: %v", c.overrides, err)
			continue
		}
		if !c.check(b) || b.Hash == base.Hash {
			t.Errorf("%s: got\n%s", c.overrides, b.Cedar)
		}
		if err := cedar.New().Validate(b); err != nil {
			t.Errorf("%s: %v", c.overrides, err)
		}
	}
}

func TestRefusedPolicies(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "alow:\n  commands: [ls]\n", `line 1, column 1: the policy has no key "alow"; did you mean allow?`},
		{"unknown key below", "allow:\n  command: [ls]\n", `line 2, column 3: allow has no key "command"; did you mean commands?`},
		{"unknown limit", `{"limits":{"filebytes":1}}`, "did you mean file_bytes?"},
		{"key twice", "allow:\n  commands: [ls]\nallow:\n  commands: [cat]\n", "line 3"},
		{"not an object", "- ls\n", "must be an object"},
		{"text instead of a list", "allow:\n  commands: ls\n", "line 2, column 13: commands must be a list"},
		{"number out of range", "limits:\n  command_ms: 0\n", "from 1 to 3600000"},
		{"number too large", "limits:\n  command_ms: 3600001\n", "from 1 to 3600000"},
		{"no approver", "approvers: 0\n", "approvers must be a whole number from 1 to 2"},
		{"too many approvers", "approvers: 3\n", "approvers must be a whole number from 1 to 2"},
		{"approvers as a text", "approvers: '2'\n", "approvers must be a whole number from 1 to 2"},
		{"no tier", "weakest_tier: ''\n", "weakest_tier must be the name of a tier"},
		{"a tier with a space", "weakest_tier: name space\n", "weakest_tier must be the name of a tier"},
		{"a tier that is too long", "weakest_tier: " + strings.Repeat("x", 33) + "\n", "weakest_tier must be the name of a tier"},
		{"a tier that is a list", "weakest_tier: [nano]\n", "weakest_tier must be the name of a tier"},
		{"a tier that is a number", "weakest_tier: 1\n", "weakest_tier must be the name of a tier"},
		{"fraction", "limits:\n  command_ms: 1.5\n", "whole number"},
		{"not a truth value", "files:\n  read: maybe\n", "true or false"},
		{"yes is no truth value", "files:\n  read: yes\n", "true or false"},
		{"anchor", "allow: &a\n  commands: [ls]\n", "anchors and aliases"},
		{"alias", "allow:\n  commands: &x [ls]\nask:\n  commands: *x\n", "anchors and aliases"},
		{"merge", "allow:\n  <<: {commands: [ls]}\n", "merge keys"},
		{"tag", "allow:\n  commands: !!set {ls}\n", "tags"},
		{"a line that is indented otherwise", "name: a\nallow:\n  tools: [x]\n   paths: [y]\n", `line 4: a key is wanted here`},
		{"two documents", "name: a\n---\nname: b\n", "more than one document"},
		{"command with a folder", "allow:\n  commands: [/bin/ls]\n", "not a command"},
		{"command with a star", "allow:\n  commands: ['l*']\n", "not a command"},
		{"absolute path", "deny:\n  paths: [/etc]\n", "not a path glob"},
		{"path with a question mark", "deny:\n  paths: ['a?']\n", "not a path glob"},
		{"path upwards", "deny:\n  paths: [../x]\n", "not a path glob"},
		{"domain in capitals", "allow:\n  domains: [EXAMPLE.com]\n", "not a domain"},
		{"star within a domain", "allow:\n  domains: ['a.*.com']\n", "not a domain"},
		{"unknown trait", "deny:\n  traits: [netwrok]\n", "did you mean network?"},
		{"unknown preset", "preset: loose\n", "no preset"},
		{"control character", "allow:\n  commands: [\"a\\u0007\"]\n", "control characters"},
		{"broken", "allow: [", "line"},
		{"empty entry", "allow:\n  commands: ['']\n", "not a text"},
		{"null entry", "allow:\n  commands: [~]\n", "not a text"},
		{"name too long", "name: " + strings.Repeat("x", 65) + "\n", "1 to 64 bytes"},
	} {
		_, err := rules.FromYAML([]byte(c.text))
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestThreat33PolicyBombs(t *testing.T) {
	laughs := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'k'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	for name, text := range map[string]string{
		"billion laughs":    laughs,
		"too large":         "name: " + strings.Repeat("x", rules.MaxYAMLBytes),
		"deep brackets":     strings.Repeat("[", 60_000),
		"deep braces":       strings.Repeat("{a: ", 15_000),
		"deep indentation":  indentation(300),
		"many entries":      "allow:\n  commands: [" + strings.Repeat("a,", 2_001) + "a]\n",
		"long entry":        "allow:\n  commands: [" + strings.Repeat("a", 513) + "]\n",
		"many documents":    strings.Repeat("---\n", 10_000),
		"deep sequence":     strings.Repeat("- ", 20_000) + "x",
		"many keys":         manyKeys(3_000),
		"numbers as keys":   "1: 2\n",
		"complex key":       "? [a]\n: b\n",
		"reference to self": "a: &a [*a]\n",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := rules.FromYAML([]byte(text))
		runtime.ReadMemStats(&after)
		if fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
			t.Errorf("%s: took %d bytes, want at most 64 MiB", name, used)
		}
	}
}

func indentation(n int) string {
	var out strings.Builder
	for i := range n {
		out.WriteString(strings.Repeat(" ", i))
		out.WriteString("a:\n")
	}
	return out.String()
}

func manyKeys(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "k%d: 1\n", i)
	}
	return out.String()
}

func TestShortFormDecides(t *testing.T) {
	b, err := rules.FromYAML([]byte(`
name: docs
files: {read: true}
allow:
  commands: [cat, git status]
  paths: ["docs/**"]
  domains: [api.example.com]
  tools: [search]
ask:
  commands: [make]
  paths: ["docs/private/*"]
  domains: ["*.example.com"]
deny:
  commands: [cat -v]
  paths: ["*.env"]
  domains: [bad.example.com]
`))
	if err != nil {
		t.Fatal(err)
	}
	e := cedar.New()
	command := func(name, line string, traits ...string) policy.Facts {
		return policy.Facts{Principal: agent, Action: policy.ShellExec, Command: name, Line: line, Traits: traits}
	}
	path := func(action, p string) policy.Facts { return policy.Facts{Principal: agent, Action: action, Path: p} }
	host := func(h string) policy.Facts {
		return policy.Facts{Principal: agent, Action: policy.ExternalWrite, Target: h}
	}
	for _, c := range []struct {
		name  string
		facts policy.Facts
		want  policy.Outcome
	}{
		{"named", command("cat", "cat x"), policy.Allow},
		{"builtin", command("cd", "cd x"), policy.Allow},
		{"not named", command("ls", "ls"), policy.Deny},
		{"own program of that name", command("cat", "cat x", policy.TraitByPath, policy.TraitOwnProgram), policy.Deny},
		{"own program of a builtin's name", command("cd", "cd x", policy.TraitByPath, policy.TraitOwnProgram), policy.Deny},
		{"line", command("git", "git status"), policy.Allow},
		{"line with more", command("git", "git status -s"), policy.Allow},
		{"another line", command("git", "git push"), policy.Deny},
		{"a line that only begins alike", command("git", "git statusx"), policy.Deny},
		{"asks", command("make", "make all"), policy.RequireApproval},
		{"refused line", command("cat", "cat -v x"), policy.Deny},
		{"read anything", path(policy.FileRead, "src/x"), policy.Allow},
		{"write nothing", path(policy.FileCreate, "src/x"), policy.Deny},
		{"write below", path(policy.FileCreate, "docs/x"), policy.Allow},
		{"ask below", path(policy.FileCreate, "docs/private/x"), policy.RequireApproval},
		{"refused below", path(policy.FileCreate, "docs/.env"), policy.Deny},
		{"refused to read", path(policy.FileRead, "a/b/prod.env"), policy.Deny},
		{"host", host("api.example.com"), policy.RequireApproval}, // both name it; asking is stricter
		{"subdomain", host("x.y.example.com"), policy.RequireApproval},
		{"the domain itself", host("example.com"), policy.RequireApproval},
		{"refused host", host("bad.example.com"), policy.Deny},
		{"another host", host("example.com.evil.org"), policy.Deny},
		{"ends alike", host("notexample.com"), policy.Deny},
	} {
		v, err := e.Evaluate(b, c.facts)
		if err != nil || v.Outcome != c.want {
			t.Errorf("%s: got %s %v, %v, want %s", c.name, v.Outcome, v.Rules, err, c.want)
		}
	}
}

// TestTheGuideIsTrue holds docs/POLICY.md to the code: its example compiles, and it explains every trait and every key.
func TestTheGuideIsTrue(t *testing.T) {
	raw, err := os.ReadFile("../../../../docs/POLICY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(raw), "```yaml\n")
	example, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("the guide has no example")
	}
	b, err := rules.FromYAML([]byte(example))
	if err != nil {
		t.Fatalf("the example: %v", err)
	}
	if err := cedar.New().Validate(b); err != nil {
		t.Errorf("the example: %v", err)
	}
	for _, trait := range rules.Traits() {
		if !strings.Contains(string(raw), "| `"+trait+"` |") {
			t.Errorf("the guide does not explain the trait %s", trait)
		}
	}
}

const agent = "agt_00000000000000000000000001"

func FuzzFromYAML(f *testing.F) {
	for _, seed := range []string{
		"name: a\nallow:\n  commands: [ls]\n", `{"limits":{"file_bytes":1}}`, "preset: standard\n", "deny: {paths: ['*.env', '.git/**']}\n",
		"allow: {commands: ['*', 'git push \"x\"*']}\n", "a: &a [*a]\n", "ask: {domains: ['*', '*.x', y]}\n", "", "~",
		"allow: {paths: ['\\\"*']}",
	} {
		f.Add(seed)
	}
	e := cedar.New()
	f.Fuzz(func(t *testing.T, text string) {
		b, err := rules.FromYAML([]byte(text))
		if err != nil {
			return
		}
		if err := e.Validate(b); err != nil {
			t.Errorf("%q compiles to Cedar that is not valid: %v\n%s", text, err, b.Cedar)
		}
		if v, err := e.Evaluate(b, policy.Facts{Principal: agent, Action: "nothing.known"}); err != nil || v.Outcome != policy.Deny &&
			!strings.Contains(text, "tools") {
			t.Errorf("%q permits what nobody knows: %v, %v", text, v, err)
		}
	})
}
