package arch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Twins reports packages that share one name, and exceptions that nothing needs any more. Programs are all called main. A name of the
// exceptions is one that several packages may have, with the reason.
func Twins(m *Module, exceptions map[string]string) []Finding {
	paths := map[string][]string{}
	for _, p := range m.Packages {
		if p.Name != "main" {
			paths[p.Name] = append(paths[p.Name], m.Rel(p.PkgPath))
		}
	}
	var found []Finding
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		if len(paths[name]) > 1 && exceptions[name] == "" {
			found = append(found, Finding{"twins", strings.Join(paths[name], ", "), fmt.Sprintf("packages are all called %q: rename one", name)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(exceptions)) {
		if len(paths[name]) < 2 {
			found = append(found, Finding{"twins", name, "stands on the list of shared names, and is none: take it off"})
		}
	}
	return found
}
