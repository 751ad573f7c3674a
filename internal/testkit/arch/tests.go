package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Goroutines checks that packages of the patterns start none. Conformance suites, whose names end with test, may: they try what many do at
// once.
func Goroutines(m *Module, patterns []string) []Finding {
	var found []Finding
	for _, p := range m.Packages {
		if !matchAny(patterns, m.Rel(p.PkgPath)) || strings.HasSuffix(p.Name, "test") {
			continue
		}
		for _, f := range p.Syntax {
			ast.Inspect(f, func(n ast.Node) bool {
				if g, ok := n.(*ast.GoStmt); ok {
					found = append(found, Finding{"goroutine", m.at(g.Pos()), "a goroutine in a package that only decides"})
				}
				return true
			})
		}
	}
	return found
}

// Sleeps checks that no test sleeps outside testing/synctest, where sleeping takes no time.
func Sleeps(m *Module) ([]Finding, error) {
	var found []Finding
	for _, p := range m.Packages {
		files, err := testFiles(p)
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			f, err := parser.ParseFile(m.Fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			if imports(f, "testing/synctest") || !imports(f, "time") {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok || s.Sel.Name != "Sleep" {
					return true
				}
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
					found = append(found, Finding{"sleep", m.at(s.Pos()), "a test that sleeps; wait for what it waits for, or use testing/synctest"})
				}
				return true
			})
		}
	}
	return found, nil
}

func testFiles(p *packages.Package) ([]string, error) {
	if len(p.GoFiles) == 0 {
		return nil, nil
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(p.GoFiles[0]), "*_test.go"))
	if err != nil {
		return nil, fmt.Errorf("find the tests of %s: %w", p.PkgPath, err)
	}
	return files, nil
}

func imports(f *ast.File, path string) bool {
	for _, spec := range f.Imports {
		if got, err := strconv.Unquote(spec.Path.Value); err == nil && got == path {
			return true
		}
	}
	return false
}
