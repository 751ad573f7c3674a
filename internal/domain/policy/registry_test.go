package policy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
)

// actionTypes returns the constants that a file of the package gives to action types: a noun, a dot and a verb.
func actionTypes(t *testing.T, file string) (types []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for _, value := range spec.Values {
			if text, ok := value.(*ast.BasicLit); ok && text.Kind == token.STRING && strings.Contains(text.Value, ".") {
				typ, err := strconv.Unquote(text.Value)
				if err != nil {
					t.Fatal(err)
				}
				types = append(types, typ)
			}
		}
		return false
	})
	return types
}

// TestEveryActionTypeHasACompleteRow holds the table of actions to its contract: each constant has one row, and each row says everything.
func TestEveryActionTypeHasACompleteRow(t *testing.T) {
	rows := map[string]int{}
	for _, k := range policy.Registry() {
		rows[k.Type]++
		if rows[k.Type] > 1 {
			t.Errorf("%s has two rows", k.Type)
		}
		if k.Title == "" || k.SideEffect == "" || k.Zone == "" {
			t.Errorf("%s: title %q, side effect %q, zone %q", k.Type, k.Title, k.SideEffect, k.Zone)
		}
		fetches := k.Type == policy.HTTPFetch || k.Type == policy.HTTPPrivate || k.Type == policy.MCPConnect ||
			k.Type == policy.MCPConnectPrivate || k.Type == policy.MCPCall
		model := k.SideEffect == policy.Network && !k.Outside && !fetches // done here, to an endpoint of the catalogue
		asking := k.Type == policy.AgentTool                              // a program in a space does it, and asks before
		role := k.SideEffect == policy.Record || k.Outside || model || asking
		if role != (k.Role != "") {
			t.Errorf("%s: the least role of a person is %q", k.Type, k.Role)
		}
		want := map[policy.SideEffect][]policy.Rules{
			policy.Pure: {policy.RulesOwn}, policy.Read: {policy.RulesReads}, policy.Filesystem: {policy.RulesWrites, policy.RulesControl},
			policy.Process: {policy.RulesCommands}, policy.Control: {policy.RulesControl, policy.RulesOwn}, policy.Record: {policy.RulesRole},
			policy.Network: {policy.RulesRole},
		}[k.SideEffect]
		if model != (k.Type == policy.ModelCall) {
			t.Errorf("%s leaves the machine from within", k.Type)
		}
		if fetches {
			want = []policy.Rules{policy.RulesHosts}
		}
		if k.Type == policy.MCPCall {
			want = []policy.Rules{policy.RulesOwn}
		}
		if asking {
			want = []policy.Rules{policy.RulesRole}
		}
		if k.Outside {
			want = []policy.Rules{policy.RulesRole, policy.RulesHosts}
		}
		if !slices.Contains(want, k.Rules) {
			t.Errorf("%s has the side effect %s and the rules %q, want one of %v", k.Type, k.SideEffect, k.Rules, want)
		}
		if k.Outside != (k.Template == policy.TemplateRequest) {
			t.Errorf("%s is done outside: %t, and has the template %q", k.Type, k.Outside, k.Template)
		}
		if k.Rules == policy.RulesWrites && k.Template == "" || k.Rules == policy.RulesCommands && k.Template != policy.TemplateWords {
			t.Errorf("%s has the rules %s and the template %q", k.Type, k.Rules, k.Template)
		}
		files := k.Rules == policy.RulesReads || k.Rules == policy.RulesWrites
		if (k.Clamp == policy.ClampTime) != (k.Rules == policy.RulesCommands) || k.Clamp == policy.ClampBytes && !files {
			t.Errorf("%s has the rules %s, and policy bounds its %q", k.Type, k.Rules, k.Clamp)
		}
		if k.Zone == event.Sandbox && k.SideEffect != policy.Pure && k.SideEffect != policy.Read {
			t.Errorf("%s changes something in the zone %s", k.Type, k.Zone)
		}
		if k.Givable != slices.Contains(policy.Givable(), k.Type) || k.Givable && k.Rules != policy.RulesControl {
			t.Errorf("%s can be given: %t, with the rules %s", k.Type, k.Givable, k.Rules)
		}
	}
	named := append(actionTypes(t, "registry.go"), actionTypes(t, "outside.go")...)
	if len(named) < 80 {
		t.Errorf("only %d action types were found in the source: %v", len(named), named)
	}
	for _, typ := range named {
		if rows[typ] == 0 {
			t.Errorf("%s has no row in the table of actions", typ)
		}
	}
	if _, known := policy.KindOf("file.rename"); known {
		t.Error("an action without a row is known")
	}
	if (policy.Kind{}).Rules != "" || policy.Ruled(policy.RulesReads)[0] != policy.FileRead {
		t.Error("the zero value is in a class of rules, or the classes are out of order")
	}
}
