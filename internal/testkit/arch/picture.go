package arch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Picture draws the imports between the packages of a module as a Mermaid flowchart: a box for each floor of the table that has packages,
// in the table's order from the ground up, an arrow for each import. The ground is left out of the arrows, for all stand on it.
func Picture(m *Module, floors []Floor) string {
	groups := map[string][]string{}
	for _, p := range m.Packages {
		rel := m.Rel(p.PkgPath)
		if floor, ok := floorOf(floors, rel); ok && drawn(rel) {
			groups[floor.Name] = append(groups[floor.Name], rel)
		}
	}
	var b strings.Builder
	b.WriteString("```mermaid\nflowchart TD\n")
	for _, floor := range slices.Backward(floors) {
		if len(groups[floor.Name]) == 0 {
			continue
		}
		fmt.Fprintf(&b, "  subgraph %s [%s]\n", node(floor.Name), floor.Name)
		for _, rel := range groups[floor.Name] {
			fmt.Fprintf(&b, "    %s[%s]\n", node(rel), rel[strings.LastIndex(rel, "/")+1:])
		}
		b.WriteString("  end\n")
	}
	for _, p := range m.Packages {
		from := m.Rel(p.PkgPath)
		if !drawn(from) {
			continue
		}
		for _, path := range slices.Sorted(maps.Keys(p.Imports)) {
			if to := m.Rel(path); m.Ours(path) && drawn(to) && !strings.HasPrefix(to, "internal/domain/") {
				fmt.Fprintf(&b, "  %s --> %s\n", node(from), node(to))
			}
		}
	}
	b.WriteString("```\n")
	return b.String()
}

// drawn leaves out the root, which imports nothing, and what only tests import.
func drawn(rel string) bool {
	return rel != "." && !strings.HasPrefix(rel, "internal/testkit/") && !strings.HasSuffix(rel, "test")
}

func node(name string) string {
	return "p_" + strings.NewReplacer("/", "_", "-", "_", " ", "_", ".", "root").Replace(name)
}
