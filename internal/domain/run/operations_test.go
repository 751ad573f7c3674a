package run_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
)

// jsonFields returns the fields of a struct by their names in JSON, and the JSON type of each.
func jsonFields(v any) map[string]string {
	fields := map[string]string{}
	for f := range reflect.TypeOf(v).Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		typ := f.Type
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		switch typ.Kind() {
		case reflect.String:
			fields[name] = "string"
		case reflect.Bool:
			fields[name] = "boolean"
		case reflect.Slice:
			fields[name] = "array"
		case reflect.Map, reflect.Struct:
			fields[name] = "object"
		case reflect.Int, reflect.Int64:
			fields[name] = "integer"
		default:
			fields[name] = typ.String()
		}
	}
	return fields
}

// TestEveryOperationHasACompleteRow holds the table of operations to its contract. Everything that depends on operations is derived from
// it.
func TestEveryOperationHasACompleteRow(t *testing.T) {
	sent, results, used := jsonFields(run.Operation{}), jsonFields(run.Result{}), map[string]bool{}
	actions := map[string]string{}
	for _, spec := range run.Specs() {
		if spec.Type == "" || spec.Doc == "" || spec.Title == "" || spec.Tool == "" || spec.ResultDoc == "" || len(spec.Needed()) == 0 {
			t.Errorf("the row is not complete: %+v", spec)
		}
		kind, known := policy.KindOf(spec.Action)
		if !known || spec.Effect() != kind.SideEffect {
			t.Errorf("%s: its action %q is not in the registry of actions", spec.Type, spec.Action)
		}
		for _, action := range append([]string{spec.Action}, spec.Also...) {
			if other := actions[action]; other != "" {
				t.Errorf("%s and %s have the action %s", other, spec.Type, action)
			}
			actions[action] = spec.Type
			if got, ok := run.SpecOfAction(action); !ok || got.Type != spec.Type {
				t.Errorf("%s is an action of %q, want %s", action, got.Type, spec.Type)
			}
		}
		want := map[policy.SideEffect]run.Change{
			policy.Pure: run.ChangesNothing, policy.Read: run.ChangesNothing, policy.Filesystem: run.ChangesFile, policy.Process: run.ChangesSpace,
		}[kind.SideEffect]
		if want == "" || spec.Changes != want {
			t.Errorf("%s has the effect %q and changes %q, want %q", spec.Type, kind.SideEffect, spec.Changes, want)
		}
		for _, f := range spec.Fields {
			used[f.Name] = true
			if sent[f.Name] != f.Kind {
				t.Errorf("%s: the field %s is of the type %q, and %q in the message", spec.Type, f.Name, f.Kind, sent[f.Name])
			}
		}
		for _, name := range spec.Result {
			if results[name] == "" {
				t.Errorf("%s: a result has no field %q", spec.Type, name)
			}
		}
		whole := map[string]json.RawMessage{"type": json.RawMessage(strconv.Quote(spec.Type)), "id": json.RawMessage(`"a"`)}
		for _, f := range spec.Fields {
			whole[f.Name] = json.RawMessage(map[string]string{
				"string": `"x"`, "boolean": "true", "integer": "7", "array": `[{"oldContent":"a","newContent":"b"}]`, "object": `{"A":"b"}`,
			}[f.Kind])
			if f.Name == "pty" {
				whole[f.Name] = json.RawMessage(`{"cols":80,"rows":24}`)
			}
		}
		all, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		m, err := run.ParseOperations([]json.RawMessage{all})
		if err != nil || m.Refused() != nil {
			t.Fatalf("%s with all fields: %v, %v", spec.Type, err, m.Refused())
		}
		if again, err := json.Marshal(m.Operations[0]); err != nil || !same(t, again, all) {
			t.Errorf("%s: got %s, %v; want %s", spec.Type, again, err, all)
		}
		raw, _ := json.Marshal(map[string]string{"type": spec.Type})
		if got := run.ToolName(raw); got != "space."+spec.Type {
			t.Errorf("%s is the tool %q", spec.Type, got)
		}
	}
	for name := range sent {
		if !used[name] && !slices.Contains([]string{"type", "id", "context", "malformed"}, name) {
			t.Errorf("no operation has the field %s", name)
		}
	}
	constants := opConstants(t)
	slices.Sort(constants)
	if got := run.OpTypes(); !slices.Equal(got, constants) {
		t.Errorf("the table has the types %v, and the constants are %v", got, constants)
	}
}

// same reports whether two JSON values are equal.
func same(t *testing.T, a, b []byte) bool {
	t.Helper()
	var one, other any
	if err := errors.Join(json.Unmarshal(a, &one), json.Unmarshal(b, &other)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(one, other)
}

// opConstants returns the types that the constants of operations.go name.
func opConstants(t *testing.T) (types []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "operations.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if strings.HasPrefix(name.Name, "Op") {
				typ, err := strconv.Unquote(spec.Values[i].(*ast.BasicLit).Value)
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

// TestUnknownOperationsFailClosed holds what an operation type is that has no row, and one that is not complete.
func TestUnknownOperationsFailClosed(t *testing.T) {
	if err := (run.Operation{Type: "renameFile", ID: "a"}).Check(); err == nil {
		t.Error("an unknown operation is well-formed")
	}
	if _, known := run.SpecOf("renameFile"); known {
		t.Error("an unknown operation has a row")
	}
	if _, known := run.SpecOfAction(""); known {
		t.Error("no action belongs to an operation")
	}
	none := run.Spec{Type: "renameFile"}
	if !none.Whole() || !none.InSpace() || !none.Effect().Reaches() {
		t.Errorf("a row that says nothing: whole %t, in space %t, effect %q", none.Whole(), none.InSpace(), none.Effect())
	}
	for _, raw := range []string{`{"type":"renameFile"}`, `{}`, `[]`, ``, `{"type":7}`} {
		if got := run.TypeOf(json.RawMessage(raw)); got != "unknown" {
			t.Errorf("%s is of the type %q", raw, got)
		}
	}
}

// TestTheDocsNameEveryOperation holds the lists of operations in the docs.
func TestTheDocsNameEveryOperation(t *testing.T) {
	for file, line := range map[string]string{"../../../GLOSSARY.md": "| **operation** |",
		"../../../docs/POLICY.md": "| operations in a space of the room |"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, found := strings.Cut(string(text), line)
		row, _, _ := strings.Cut(rest, "\n")
		for _, typ := range run.OpTypes() {
			if !found || !strings.Contains(row, "`"+typ+"`") {
				t.Errorf("%s does not name %s in the row %q", file, typ, line)
			}
		}
	}
}
