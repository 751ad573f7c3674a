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

// Uses checks every mention of the forbidden names, called or not, outside tests.
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

// Literal wants a field beside another one wherever a struct is written out, in packages that mention a name.
type Literal struct {
	Rule    string
	Type    string // full name; ours relative to the module
	Has     string // a literal that sets this field
	Wants   string // has to set this one
	Mention string // in packages that use this name
	Why     string
}

// Literals checks every struct literal outside tests.
func Literals(m *Module, rules []Literal) []Finding {
	var found []Finding
	for _, p := range m.Packages {
		for _, r := range rules {
			mentioned := false
			for _, object := range p.TypesInfo.Uses {
				mentioned = mentioned || object.Pkg() != nil && m.fullName(object) == r.Mention
			}
			if !mentioned {
				continue
			}
			for _, f := range p.Syntax {
				ast.Inspect(f, func(n ast.Node) bool {
					literal, ok := n.(*ast.CompositeLit)
					if !ok {
						return true
					}
					named, ok := p.TypesInfo.TypeOf(literal).(*types.Named)
					if ok && named.Obj().Pkg() != nil && m.fullName(named.Obj()) == r.Type && sets(literal, r.Has) && !sets(literal, r.Wants) {
						found = append(found, Finding{r.Rule, m.at(literal.Pos()), fmt.Sprintf("%s without %s: %s", r.Type, r.Wants, r.Why)})
					}
					return true
				})
			}
		}
	}
	return found
}

func sets(literal *ast.CompositeLit, field string) bool {
	return slices.ContainsFunc(literal.Elts, func(e ast.Expr) bool {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		name, ok := pair.Key.(*ast.Ident)
		return ok && name.Name == field
	})
}
