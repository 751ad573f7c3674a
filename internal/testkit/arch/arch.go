// Package arch checks the shape of a module's source: who imports whom, where time and effects come from, how
// things are named.
//
// It reads a module as the compiler does and reports findings; which rules hold is said by a Rules value, so that the same code can be
// turned on a module that breaks every one of them.
package arch

import (
	"errors"
	"fmt"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Finding is one place where a rule is broken.
type Finding struct {
	Rule string // its name, for example imports
	At   string // file and line relative to the module, or a package
	Text string // what is wrong and what would be right
}

// String returns the finding on one line.
func (f Finding) String() string { return fmt.Sprintf("%s: %s: %s", f.Rule, f.At, f.Text) }

// Module is a loaded module: its packages without their tests, parsed and type-checked.
type Module struct {
	Path     string // of the module, as in go.mod
	Dir      string
	Packages []*packages.Package // in the order of their paths
	Fset     *token.FileSet
}

// Load reads the module that lies in dir.
func Load(dir string) (*Module, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	config := &packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedModule |
			packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedExportFile,
		Dir:  abs,
		Fset: token.NewFileSet(),
	}
	found, err := packages.Load(config, "./...")
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", dir, err)
	}
	m := &Module{Dir: abs, Packages: found, Fset: config.Fset}
	for _, p := range found {
		for _, e := range p.Errors {
			err = errors.Join(err, e)
		}
		if p.Module != nil {
			m.Path = p.Module.Path
		}
	}
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", dir, err)
	}
	if m.Path == "" {
		return nil, fmt.Errorf("load %s: no package of a module; does go list ./... work there", dir)
	}
	slices.SortFunc(m.Packages, func(a, b *packages.Package) int { return strings.Compare(a.PkgPath, b.PkgPath) })
	return m, nil
}

// Rel returns a package's path without the module's: internal/domain/id, and "." for the root.
func (m *Module) Rel(path string) string {
	if path == m.Path {
		return "."
	}
	return strings.TrimPrefix(path, m.Path+"/")
}

// Ours reports whether a package belongs to the module.
func (m *Module) Ours(path string) bool {
	return path == m.Path || strings.HasPrefix(path, m.Path+"/")
}

// at says where a position lies.
func (m *Module) at(pos token.Pos) string {
	p := m.Fset.Position(pos)
	rel, err := filepath.Rel(m.Dir, p.Filename)
	if err != nil {
		rel = p.Filename
	}
	return fmt.Sprintf("%s:%d", filepath.ToSlash(rel), p.Line)
}

// Match reports whether a slash-separated name fits a pattern: `*` stands for one element, a closing `/**` for the element before it and
// anything below. A package's floor is the first pattern that fits.
func Match(pattern, name string) bool {
	parts, names := strings.Split(pattern, "/"), strings.Split(name, "/")
	for i, part := range parts {
		if part == "**" && i == len(parts)-1 {
			return true
		}
		if i >= len(names) || part != "*" && part != names[i] {
			return false
		}
	}
	return len(parts) == len(names)
}

func matchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return Match(p, name) })
}
