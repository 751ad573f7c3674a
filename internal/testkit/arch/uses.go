package arch

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// Use forbids names outside the packages that may use them.
type Use struct {
	Rule    string
	Names   []string // full names: time.Now, (*math/rand.Rand).Intn; ours relative to the module; "pkg.*" for all of a package
	Allowed []string // patterns of packages
	Why     string
}

// Uses checks every mention of the forbidden names, called or not, in what is not a test.
func Uses(m *Module, uses []Use) []Finding {
	var found []Finding
	for _, p := range m.Packages {
		rel := m.Rel(p.PkgPath)
		for _, f := range p.Syntax {
			ast.Inspect(f, func(n ast.Node) bool {
				ident, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				object := p.TypesInfo.Uses[ident]
				if object == nil || object.Pkg() == nil || object.Pkg() == p.Types {
					return true
				}
				name := m.fullName(object)
				for _, u := range uses {
					if matchAny(u.Allowed, rel) || !u.covers(m, object, name) {
						continue
					}
					found = append(found, Finding{u.Rule, m.at(ident.Pos()), fmt.Sprintf("%s: %s", name, u.Why)})
				}
				return true
			})
		}
	}
	return found
}

func (u Use) covers(m *Module, object types.Object, name string) bool {
	return slices.Contains(u.Names, name) || slices.Contains(u.Names, m.Rel(object.Pkg().Path())+".*")
}

// fullName names a function, method, type or variable with its package; ours relative to the module.
func (m *Module) fullName(object types.Object) string {
	var name string
	if f, ok := object.(*types.Func); ok {
		name = f.FullName()
	} else {
		name = object.Pkg().Path() + "." + object.Name()
	}
	return strings.ReplaceAll(name, m.Path+"/", "")
}
