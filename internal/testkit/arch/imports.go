package arch

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Floor is a row of the table of allowed imports. A package belongs to the first floor whose pattern fits.
type Floor struct {
	Name       string
	Packages   []string // patterns of package paths relative to the module
	Imports    []string // patterns of our packages that it may import
	Own        bool     // it may also import packages of its own folder, the Depth-th element of its path and below
	Depth      int
	ThirdParty []string // patterns of other modules' packages; "**" for any
	Refused    []string // packages of the standard library that it may not import
}

// Imports checks every import of a module that is not a test against the table.
func Imports(m *Module, floors []Floor) []Finding {
	var found []Finding
	for _, p := range m.Packages {
		rel := m.Rel(p.PkgPath)
		floor, ok := floorOf(floors, rel)
		if !ok {
			found = append(found, Finding{"imports", rel, "the package lies on no floor; see the table in arch_test.go"})
			continue
		}
		for _, path := range slices.Sorted(maps.Keys(p.Imports)) {
			if why := floor.refuses(m, rel, path, p.Imports[path]); why != "" {
				found = append(found, Finding{"imports", rel, why})
			}
		}
	}
	return found
}

func floorOf(floors []Floor, rel string) (Floor, bool) {
	i := slices.IndexFunc(floors, func(f Floor) bool { return matchAny(f.Packages, rel) })
	if i < 0 {
		return Floor{}, false
	}
	return floors[i], true
}

// refuses says why a package of the floor may not import another, or nothing.
func (f Floor) refuses(m *Module, rel, path string, imported *packages.Package) string {
	switch {
	case m.Ours(path):
		target := m.Rel(path)
		if matchAny(f.Imports, target) || f.Own && folder(target, f.Depth) == folder(rel, f.Depth) {
			return ""
		}
		return fmt.Sprintf("imports %s; %s may import %s", target, f.Name, list(f.Imports))
	case imported != nil && imported.Module == nil && standard(path):
		if matchAny(f.Refused, path) {
			return fmt.Sprintf("imports %s, which reaches out of the program; %s may not", path, f.Name)
		}
		return ""
	case matchAny(f.ThirdParty, path):
		return ""
	}
	return fmt.Sprintf("imports %s; %s may import of others %s", path, f.Name, list(f.ThirdParty))
}

// standard reports whether a path is of the standard library: its first element has no dot.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// folder returns the first depth elements of a path.
func folder(path string, depth int) string {
	parts := strings.Split(path, "/")
	return strings.Join(parts[:min(depth, len(parts))], "/")
}

func list(patterns []string) string {
	if len(patterns) == 0 {
		return "nothing"
	}
	return strings.Join(patterns, ", ")
}
