package arch

import (
	"bytes"
	"cmp"
	"fmt"
	"go/types"
	"maps"
	"os"
	"slices"
	"strings"
)

// Bulk says how large a type and a package may be, and which ones are larger and why.
type Bulk struct {
	Methods int               // the most that one type has
	Types   map[string]string // larger types, relative to the module: "internal/domain/space.Space", and why
	Lines   int               // the most that one package has, without tests and without generated files
	Free    []string          // patterns of packages of any size
	// larger packages and the most lines that each may have: a number that only goes down
	Packages map[string]int
}

// Check reports larger types and packages, and exceptions that nothing needs any more.
func (b Bulk) Check(m *Module) ([]Finding, error) {
	var found []Finding
	types, packages := maps.Clone(b.Types), maps.Clone(b.Packages)
	for _, p := range m.Packages {
		for _, name := range p.Types.Scope().Names() {
			full := m.Rel(p.PkgPath) + "." + name
			n := methods(p.Types.Scope().Lookup(name))
			if n <= b.Methods {
				continue
			}
			if why := types[full]; why == "" {
				found = append(found, Finding{"methods", full, fmt.Sprintf("%d methods; at most %d: split it by subject", n, b.Methods)})
			}
			delete(types, full)
		}
		lines, err := written(p.GoFiles)
		if err != nil {
			return nil, err
		}
		path := m.Rel(p.PkgPath)
		most := cmp.Or(packages[path], b.Lines)
		if lines > most && !matchAny(b.Free, path) {
			found = append(found, Finding{"bulk", path, fmt.Sprintf("%d lines without tests; at most %d: split it", lines, most)})
		}
		if lines > b.Lines {
			delete(packages, path)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		found = append(found, Finding{"methods", name, "stands on the list of larger types, and is none: take it off"})
	}
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		found = append(found, Finding{"bulk", name, "stands on the list of larger packages, and is none: take it off"})
	}
	return found, nil
}

// methods counts the methods that are written for a type; those of an embedded type are not its own.
func methods(object types.Object) int {
	name, ok := object.(*types.TypeName)
	if !ok || name.IsAlias() {
		return 0
	}
	named, ok := name.Type().(*types.Named)
	if !ok {
		return 0
	}
	return named.NumMethods()
}

// written counts the lines of files that a person wrote.
func written(files []string) (lines int, err error) {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		if !generated(text) && !strings.HasSuffix(file, "_test.go") {
			lines += bytes.Count(text, []byte("\n"))
		}
	}
	return lines, nil
}
