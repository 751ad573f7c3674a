package arch

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Links checks the packages that the tests of some patterns are linked with. Packages of the barred patterns are too large for that: each
// test would wait for them.
func Links(m *Module, patterns, barred []string) ([]Finding, error) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps | packages.NeedForTest, Dir: m.Dir, Tests: true,
	}, "./...")
	if err != nil {
		return nil, fmt.Errorf("load the tests of %s: %w", m.Dir, err)
	}
	var found []Finding
	said := map[string]bool{}
	for _, p := range loaded {
		of := m.Rel(p.ForTest)
		if p.ForTest == "" || !matchAny(patterns, of) || said[of] {
			continue
		}
		if chain := m.chain(p, barred, map[*packages.Package]bool{}); chain != nil {
			said[of] = true
			text := "its tests link " + strings.Join(chain, ", which imports ") + "; give them only what they need"
			found = append(found, Finding{"links", of, text})
		}
	}
	return found, nil
}

// chain returns the imports that lead from a package to one of the patterns.
func (m *Module) chain(p *packages.Package, barred []string, seen map[*packages.Package]bool) []string {
	if seen[p] {
		return nil
	}
	seen[p] = true
	for _, path := range slices.Sorted(maps.Keys(p.Imports)) {
		next := p.Imports[path]
		rel := m.Rel(next.PkgPath)
		if !m.Ours(next.PkgPath) {
			continue
		}
		if matchAny(barred, rel) {
			return []string{rel}
		}
		if chain := m.chain(next, barred, seen); chain != nil {
			return append([]string{rel}, chain...)
		}
	}
	return nil
}
