package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/types/typeutil"
)

// mutant is one small change of a package that its tests should notice.
type mutant struct {
	id       int
	file     string // relative to the module
	line     int    // for people; it names nothing
	function string // for example Standing.Holds
	change   string // the source text, what becomes of it, and its number where the function has the same change twice
}

// key names the mutant in the list of explained ones.
func (m *mutant) key() string { return m.file + " " + m.function + "\t" + m.change }

// weaver writes all mutants into one file. Each is a call of a function of switch.go around an expression, or an if around a
// statement, so that lines stay where they are.
type weaver struct {
	pkg      *packages.Package
	src      []byte
	file     string
	function string
	results  []*types.Tuple                   // of the functions around the place, the innermost last
	failing  map[*ast.ReturnStmt]types.Object // returns behind a condition that something is not nil, which is what they return last
	wording  map[string]bool                  // functions of the package that do nothing but make an error
	refused  map[string]bool
	found    *[]*mutant

	before, after map[int]string // by offset; outer text comes first in before and last in after
	instead       map[int]string // of an operator at an offset
}

// weave returns the text of a file with its mutants, which it appends to found. Places whose mutants the compiler refused get none.
func weave(pkg *packages.Package, file *ast.File, name string, src []byte, refused map[string]bool, found *[]*mutant) string {
	w := &weaver{
		pkg: pkg, src: src, file: name, function: "the package", refused: refused, found: found,
		failing: map[*ast.ReturnStmt]types.Object{},
		before:  map[int]string{}, after: map[int]string{}, instead: map[int]string{},
	}
	w.wording = w.wordings()
	for _, d := range file.Decls {
		w.walk(d)
	}
	var out strings.Builder
	for i := range len(src) + 1 {
		out.WriteString(w.after[i])
		out.WriteString(w.before[i])
		if text, ok := w.instead[i]; ok {
			out.WriteString(text)
		} else if i < len(src) {
			out.WriteByte(src[i])
		}
	}
	return out.String()
}

func (w *weaver) at(pos token.Pos) int { return w.pkg.Fset.Position(pos).Offset }

// text returns the source of a node on one line, cut where it is long.
func (w *weaver) text(n ast.Node) string {
	text := strings.Join(strings.Fields(string(w.src[w.at(n.Pos()):w.at(n.End())])), " ")
	if runes := []rune(text); len(runes) > 120 {
		text = string(runes[:120]) + "..."
	}
	return text
}

// add makes a mutant around a node.
func (w *weaver) add(n ast.Node, change, open, end string) bool {
	line := w.pkg.Fset.Position(n.Pos()).Line
	for l := line; l <= w.pkg.Fset.Position(n.End()).Line; l++ {
		if w.refused[fmt.Sprintf("%s:%d", w.file, l)] {
			return false
		}
	}
	m := &mutant{id: len(*w.found) + 1, file: w.file, line: line, function: w.function, change: change}
	*w.found = append(*w.found, m)
	w.before[w.at(n.Pos())] += fmt.Sprintf(open, m.id)
	w.after[w.at(n.End())] = end + w.after[w.at(n.End())]
	return true
}

func (w *weaver) call(function string, n ast.Node, becomes string) bool {
	return w.add(n, w.text(n)+" -> "+becomes, "mutant"+function+"(%d, ", ")")
}

func (w *weaver) walk(n ast.Node) {
	if n != nil {
		ast.Inspect(n, w.visit)
	}
}

func (w *weaver) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.FuncDecl:
		if n.Body != nil {
			f := w.pkg.TypesInfo.Defs[n.Name].(*types.Func)
			w.function = f.Name()
			if recv := f.Signature().Recv(); recv != nil {
				of := recv.Type()
				if p, ok := of.(*types.Pointer); ok {
					of = p.Elem()
				}
				w.function = of.(*types.Named).Obj().Name() + "." + w.function
			}
			w.inside(f.Type(), n.Body)
			w.function = "the package"
		}
		return false
	case *ast.FuncLit:
		w.inside(w.pkg.TypesInfo.TypeOf(n), n.Body)
		return false
	case *ast.BlockStmt:
		w.deletions(n.List)
	case *ast.CaseClause:
		w.deletions(n.Body)
	case *ast.CommClause:
		w.deletions(n.Body)
	case *ast.IfStmt:
		if c, ok := n.Cond.(*ast.BinaryExpr); ok && c.Op == token.NEQ && w.pkg.TypesInfo.Types[c.Y].IsNil() {
			if e, ok := c.X.(*ast.Ident); ok && len(n.Body.List) > 0 {
				if last, ok := n.Body.List[len(n.Body.List)-1].(*ast.ReturnStmt); ok {
					w.failing[last] = w.pkg.TypesInfo.Uses[e]
				}
			}
		}
	case *ast.ForStmt:
		w.walk(n.Init)
		if n.Cond != nil {
			both, ok := n.Cond.(*ast.BinaryExpr)
			w.condition(n.Cond, ok && both.Op == token.LAND, true) // a loop that never ends says little
		}
		w.walk(n.Post)
		w.walk(n.Body)
		return false
	case *ast.SwitchStmt:
		for _, clause := range n.Body.List {
			for _, e := range clause.(*ast.CaseClause).List {
				if n.Tag != nil {
					w.alternative(e)
				}
			}
		}
	case *ast.ExprStmt: // nobody takes the result of its call
		if call, ok := n.X.(*ast.CallExpr); ok && !w.quiet(call) {
			w.below(call)
		}
		return false
	case *ast.DeferStmt:
		w.below(n.Call)
		return false
	case *ast.GoStmt:
		w.below(n.Call)
		return false
	case *ast.AssignStmt:
		for _, e := range n.Lhs {
			if index, ok := e.(*ast.IndexExpr); ok {
				w.walk(index.Index)
			}
		}
		for _, e := range n.Rhs {
			w.walk(e)
		}
		return false
	case *ast.ReturnStmt:
		return w.returns(n)
	case ast.Expr:
		return w.expression(n)
	}
	return true
}

func (w *weaver) inside(function types.Type, body *ast.BlockStmt) {
	w.results = append(w.results, function.(*types.Signature).Results())
	w.walk(body)
	w.results = w.results[:len(w.results)-1]
}

// below walks what an expression consists of.
func (w *weaver) below(e ast.Expr) {
	ast.Inspect(e, func(n ast.Node) bool { return n == e || n != nil && w.visit(n) })
}

// deletions lets statements of a block be left out. It keeps what only writes logs or traces, what locks, and panics.
func (w *weaver) deletions(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); !ok || w.quiet(call) {
				continue
			}
		case *ast.DeferStmt:
			if w.quiet(s.Call) {
				continue
			}
		case *ast.GoStmt, *ast.IncDecStmt, *ast.SendStmt:
		case *ast.AssignStmt:
			blank := !slices.ContainsFunc(s.Lhs, func(e ast.Expr) bool { i, ok := e.(*ast.Ident); return !ok || i.Name != "_" })
			if s.Tok == token.DEFINE || blank {
				continue
			}
		default:
			continue
		}
		w.add(s, w.text(s)+" -> nothing", "if mutantStays(%d) { ", " }")
	}
}

// quiet reports whether a call is one whose absence no test should notice, or would only notice by hanging.
func (w *weaver) quiet(call *ast.CallExpr) bool {
	switch f := typeutil.Callee(w.pkg.TypesInfo, call).(type) {
	case *types.Builtin:
		return f.Name() == "panic"
	case *types.Func:
		return f.Pkg() != nil && (f.Pkg().Path() == "log/slog" || strings.HasPrefix(f.Pkg().Path(), "go.opentelemetry.io/")) ||
			slices.Contains([]string{"Lock", "Unlock", "RLock", "RUnlock"}, f.Name())
	}
	return false
}

// worded reports whether a call makes an error's text: what goes into it is for people.
func (w *weaver) worded(call *ast.CallExpr) bool {
	f, ok := typeutil.Callee(w.pkg.TypesInfo, call).(*types.Func)
	return ok && f.Pkg() != nil && (f.FullName() == "fmt.Errorf" || strings.HasSuffix(f.Pkg().Path(), "domain/fault"))
}

// returns lets errors be lost and other results be zero, and says whether the results are still to be walked: what stands beside an
// error is not for use.
func (w *weaver) returns(n *ast.ReturnStmt) bool {
	fails := len(n.Results) > 0 && w.fails(n.Results[len(n.Results)-1], n)
	results := w.results[len(w.results)-1]
	failure := types.Universe.Lookup("error").Type()
	for i, e := range n.Results {
		tv := w.pkg.TypesInfo.Types[e]
		if fails && i < len(n.Results)-1 {
			continue
		}
		if results.Len() == len(n.Results) && tv.Value == nil && !tv.IsNil() && !isBool(tv.Type) {
			want := results.At(i).Type()
			switch {
			case types.Identical(want, failure):
				w.call("NoError", e, "nil")
			case types.Identical(want, tv.Type) && !isEmpty(e):
				w.call("Zero", e, "the zero value")
			}
		}
		w.walk(e)
	}
	return false
}

// isEmpty reports whether an expression is T{}.
func isEmpty(e ast.Expr) bool {
	literal, ok := e.(*ast.CompositeLit)
	return ok && len(literal.Elts) == 0
}

// fails reports whether what a return returns last is surely an error: one that has a name in its package, one that is made there,
// or one that was just found not to be nil.
func (w *weaver) fails(e ast.Expr, n *ast.ReturnStmt) bool {
	switch e := e.(type) {
	case *ast.CallExpr:
		f := typeutil.StaticCallee(w.pkg.TypesInfo, e)
		return w.worded(e) || f != nil && w.wording[f.Name()]
	case *ast.Ident:
		v, ok := w.pkg.TypesInfo.Uses[e].(*types.Var)
		return ok && (w.failing[n] == v || v.Parent() == v.Pkg().Scope() &&
			types.Implements(v.Type(), types.Universe.Lookup("error").Type().Underlying().(*types.Interface)))
	case *ast.SelectorExpr:
		return strings.HasPrefix(e.Sel.Name, "Err")
	}
	return false
}

// wordings returns the functions of a package that do nothing but make an error.
func (w *weaver) wordings() map[string]bool {
	names := map[string]bool{}
	for _, file := range w.pkg.Syntax {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Body != nil && len(f.Body.List) == 1 {
				if r, ok := f.Body.List[0].(*ast.ReturnStmt); ok && len(r.Results) == 1 {
					if call, ok := r.Results[0].(*ast.CallExpr); ok {
						names[f.Name.Name] = w.worded(call)
					}
				}
			}
		}
	}
	return names
}

func isBool(t types.Type) bool {
	b, ok := types.Unalias(t).(*types.Basic)
	return ok && b.Info()&types.IsBoolean != 0
}

// alternative lets a case of a switch over text or numbers match nothing.
func (w *weaver) alternative(e ast.Expr) {
	t := types.Unalias(w.pkg.TypesInfo.TypeOf(e))
	if b, ok := t.Underlying().(*types.Basic); !ok || b.Info()&(types.IsString|types.IsInteger) == 0 {
		return
	}
	function := "Case"
	if _, literal := e.(*ast.BasicLit); literal { // alone it has another type
		if named, ok := t.(*types.Named); ok && named.Obj().Pkg() != w.pkg.Types {
			return // the file may not import it
		}
		function += "[" + types.TypeString(t, func(*types.Package) string { return "" }) + "]"
	}
	w.call(function, e, "no case")
}

var arithmetic = map[token.Token][2]string{
	token.ADD: {"Add", "-"}, token.SUB: {"Subtract", "+"}, token.MUL: {"Multiply", "+"}, token.QUO: {"Divide", "*"}, token.REM: {"Rest", "+"},
	token.SHL: {"Left", ">>"}, token.SHR: {"Right", "<<"}, token.AND: {"And", "|"}, token.OR: {"Or", "&"}, token.XOR: {"Xor", "&"},
}

var bounds = map[token.Token][2]string{
	token.LSS: {"Less", "<="}, token.LEQ: {"AtMost", "<"}, token.GTR: {"More", ">="}, token.GEQ: {"AtLeast", ">"},
}

// expression mutates a value, and says whether what it consists of is still to be visited.
func (w *weaver) expression(e ast.Expr) bool {
	tv := w.pkg.TypesInfo.Types[e]
	switch {
	case tv.IsType():
		return false
	case tv.Value != nil:
		if i, ok := e.(*ast.Ident); ok && (i.Name == "true" || i.Name == "false") && w.pkg.TypesInfo.Uses[i].Parent() == types.Universe {
			w.call("Not", e, map[string]string{"true": "false", "false": "true"}[i.Name])
		}
		return false
	case tv.IsValue() && tv.Type != nil && isBool(tv.Type):
		w.condition(e, true, true)
		return false
	}
	switch e := e.(type) {
	case *ast.UnaryExpr:
		if literal, ok := e.X.(*ast.CompositeLit); e.Op == token.AND {
			if ok {
				w.walk(literal)
			}
			return false // what has its address taken is not a value here
		}
	case *ast.BinaryExpr:
		if b, ok := tv.Type.Underlying().(*types.Basic); ok && b.Info()&types.IsNumeric != 0 {
			w.operator(e, arithmetic)
		}
	case *ast.CallExpr:
		return !w.quiet(e) && !w.worded(e)
	}
	return true
}

// operator lets an operator be its neighbour.
func (w *weaver) operator(e *ast.BinaryExpr, table map[token.Token][2]string) {
	if entry, ok := table[e.Op]; ok {
		change := w.text(e.X) + " " + e.Op.String() + " " + w.text(e.Y) + " -> " + entry[1]
		if w.add(e, change, "mutant"+entry[0]+"(%d, ", ")") {
			at := w.at(e.OpPos)
			w.instead[at] = ","
			for i := 1; i < len(e.Op.String()); i++ {
				w.instead[at+i] = ""
			}
		}
	}
}

// condition lets the parts of a condition be true, false or both. Of what && and || join, each part gets what is not the same as a
// change of the other.
func (w *weaver) condition(e ast.Expr, canBeTrue, canBeFalse bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		w.condition(e.X, canBeTrue, canBeFalse)
		return
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			w.condition(e.X, canBeFalse, canBeTrue)
			return
		}
	case *ast.BinaryExpr:
		if e.Op == token.LAND || e.Op == token.LOR {
			w.condition(e.X, canBeTrue, canBeFalse)
			w.condition(e.Y, canBeTrue && e.Op == token.LAND, canBeFalse && e.Op == token.LOR)
			return
		}
	}
	tv := w.pkg.TypesInfo.Types[e]
	if tv.Value != nil {
		w.walk(e)
		return
	}
	if isBool(tv.Type) {
		if canBeTrue {
			w.call("True", e, "true")
		}
		if canBeFalse {
			w.call("False", e, "false")
		}
	}
	if b, ok := e.(*ast.BinaryExpr); ok {
		w.operator(b, bounds)
	}
	w.below(e)
}
