package query_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"agentbox/internal/service/query"
)

// TestEveryEventTypeIsListed finds the event types of the domain in its source: constants named EventX or XType that hold a noun and a
// verb.
func TestEveryEventTypeIsListed(t *testing.T) {
	paths, err := filepath.Glob("../../domain/*/*.go")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	var want []string
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, name := range spec.Names {
				if i >= len(spec.Values) || !strings.HasPrefix(name.Name, "Event") && !strings.HasSuffix(name.Name, "Type") {
					continue
				}
				if lit, ok := spec.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if text, err := strconv.Unquote(lit.Value); err == nil && strings.Contains(text, ".") {
						want = append(want, text)
					}
				}
			}
			return true
		})
	}
	got := query.EventTypes()
	slices.Sort(got)
	slices.Sort(want)
	want = slices.Compact(want) // operations and tool calls share the names of their events
	if !slices.Equal(got, want) || len(got) < 30 {
		t.Errorf("listed are\n%q\nrecorded are\n%q", got, want)
	}
}
