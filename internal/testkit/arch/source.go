package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/tools/go/packages"
)

// Sizes checks that no Go file, test or not, is longer than lines, and that no line of one is wider than columns. Generated files are
// exempt. So are lines with a raw string, which is a struct tag or a text that stands as it is.
func Sizes(m *Module, lines, columns int) ([]Finding, error) {
	var found []Finding
	seen := map[string]bool{}
	for _, p := range m.Packages {
		for _, file := range p.GoFiles {
			dir := filepath.Dir(file)
			if seen[dir] {
				continue
			}
			seen[dir] = true
			files, err := filepath.Glob(filepath.Join(dir, "*.go"))
			if err != nil {
				return nil, err
			}
			for _, name := range files {
				text, err := os.ReadFile(name)
				if err != nil {
					return nil, err
				}
				rel, err := filepath.Rel(m.Dir, name)
				if err != nil {
					return nil, err
				}
				if generated(text) {
					continue
				}
				if n := bytes.Count(text, []byte("\n")); n > lines {
					found = append(found, Finding{"size", filepath.ToSlash(rel), fmt.Sprintf("%d lines; at most %d", n, lines)})
				}
				for _, n := range wide(text, columns) {
					found = append(found, Finding{"size", fmt.Sprintf("%s:%d", filepath.ToSlash(rel), n), fmt.Sprintf("wider than %d columns", columns)})
				}
			}
		}
	}
	return found, nil
}

// generated reports whether a file says before its package clause that a program wrote it.
func generated(text []byte) bool {
	head, _, _ := bytes.Cut(text, []byte("\npackage "))
	for line := range bytes.Lines(head) {
		if bytes.HasPrefix(line, []byte("// Code generated ")) && bytes.HasSuffix(bytes.TrimSpace(line), []byte(" DO NOT EDIT.")) {
			return true
		}
	}
	return false
}

// Comments checks that every package has a comment whose first paragraph is one sentence that begins as usual: Package x, or Command x.
func Comments(m *Module) []Finding {
	var found []Finding
	for _, p := range m.Packages {
		var comment string
		for _, f := range p.Syntax {
			if f.Doc != nil {
				comment = f.Doc.Text()
			}
		}
		rel := m.Rel(p.PkgPath)
		start := "Package " + p.Name + " "
		if p.Name == "main" {
			start = "Command " + filepath.Base(p.PkgPath) + " "
		}
		paragraph, _, _ := strings.Cut(comment, "\n\n")
		paragraph = strings.Join(strings.Fields(paragraph), " ")
		switch {
		case comment == "":
			found = append(found, Finding{"comment", rel, "no package comment; one sentence that says its purpose"})
		case !strings.HasPrefix(paragraph, start):
			found = append(found, Finding{"comment", rel, fmt.Sprintf("the package comment begins with %q, not with %q", firstWords(paragraph),
				start)})
		case new(doc.Package).Synopsis(paragraph) != paragraph || !strings.HasSuffix(paragraph, "."):
			found = append(found, Finding{"comment", rel, "the first paragraph of the package comment is not one sentence with a full stop"})
		}
	}
	return found
}

func firstWords(text string) string {
	words := strings.Fields(text)
	return strings.Join(words[:min(2, len(words))], " ")
}

// Globals checks that there is no func init, and no package variable but sentinels (errors), tables (composite literals and compiled
// constants), embedded files and interface guards, none of which is ever changed.
func Globals(m *Module, compiled []string) []Finding {
	var found []Finding
	for _, p := range m.Packages {
		vars := map[types.Object]bool{}
		for _, f := range p.Syntax {
			for _, decl := range f.Decls {
				switch d := decl.(type) {
				case *ast.FuncDecl:
					if d.Recv == nil && d.Name.Name == "init" {
						found = append(found, Finding{"globals", m.at(d.Pos()), "func init; make it in a constructor that the roof calls"})
					}
				case *ast.GenDecl:
					if d.Tok != token.VAR {
						continue
					}
					for _, spec := range d.Specs {
						found = append(found, m.variable(p, d, spec.(*ast.ValueSpec), vars, compiled)...)
					}
				}
			}
		}
		for _, f := range p.Syntax {
			found = append(found, m.changes(p, f, vars)...)
		}
	}
	return found
}

func (m *Module) variable(p *packages.Package, d *ast.GenDecl, spec *ast.ValueSpec, vars map[types.Object]bool,
	compiled []string) []Finding {
	var found []Finding
	embedded := embeds(d.Doc) || embeds(spec.Doc)
	for i, name := range spec.Names {
		if name.Name == "_" {
			continue
		}
		vars[p.TypesInfo.Defs[name]] = true
		if embedded || i < len(spec.Values) && constant(p.TypesInfo, spec.Values[i], compiled) {
			continue
		}
		found = append(found, Finding{"globals", m.at(name.Pos()),
			fmt.Sprintf("package variable %s is neither a sentinel nor a table nor an embed", name.Name)})
	}
	return found
}

func embeds(comment *ast.CommentGroup) bool {
	return comment != nil && slices.ContainsFunc(comment.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}

// constant reports whether a variable that starts with this value is as good as a constant.
func constant(info *types.Info, value ast.Expr, compiled []string) bool {
	switch v := value.(type) {
	case *ast.CompositeLit, *ast.BasicLit:
		return true
	case *ast.UnaryExpr:
		_, literal := v.X.(*ast.CompositeLit)
		return v.Op == token.AND && literal
	case *ast.CallExpr:
		if t, ok := info.Types[v.Fun]; ok && t.IsType() { // a conversion: []byte("...")
			return len(v.Args) == 1 && info.Types[v.Args[0]].Value != nil
		}
		if implementsError(info.TypeOf(v)) {
			return true
		}
		f, ok := callee(info, v).(*types.Func)
		return ok && (slices.Contains(compiled, f.FullName()) || table(info, f, v))
	}
	return false
}

// table reports whether a call makes a map or slice out of constants by a function of the same package.
func table(info *types.Info, f *types.Func, call *ast.CallExpr) bool {
	switch info.TypeOf(call).Underlying().(type) {
	case *types.Map, *types.Slice:
	default:
		return false
	}
	name, local := ast.Unparen(call.Fun).(*ast.Ident)
	return local && info.Uses[name] == f && !slices.ContainsFunc(call.Args, func(a ast.Expr) bool { return info.Types[a].Value == nil })
}

func implementsError(t types.Type) bool {
	return t != nil && types.Implements(t, types.Universe.Lookup("error").Type().Underlying().(*types.Interface))
}

// callee returns what a call calls, if that is named.
func callee(info *types.Info, call *ast.CallExpr) types.Object {
	fun := ast.Unparen(call.Fun)
	if index, ok := fun.(*ast.IndexExpr); ok {
		fun = index.X
	}
	switch f := fun.(type) {
	case *ast.Ident:
		return info.Uses[f]
	case *ast.SelectorExpr:
		return info.Uses[f.Sel]
	}
	return nil
}

// changes reports assignments to package variables, to their elements and fields, and their addresses taken.
func (m *Module) changes(p *packages.Package, f *ast.File, vars map[types.Object]bool) []Finding {
	var found []Finding
	report := func(e ast.Expr, what string) {
		if name := root(e); name != nil && vars[p.TypesInfo.Uses[name]] {
			found = append(found, Finding{"globals", m.at(e.Pos()), fmt.Sprintf("package variable %s is %s", name.Name, what)})
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, left := range n.Lhs {
					report(left, "assigned to")
				}
			}
		case *ast.IncDecStmt:
			report(n.X, "assigned to")
		case *ast.UnaryExpr:
			if _, literal := ast.Unparen(n.X).(*ast.CompositeLit); n.Op == token.AND && !literal {
				report(n.X, "handed out by its address")
			}
		case *ast.CallExpr:
			if b, ok := callee(p.TypesInfo, n).(*types.Builtin); ok && (b.Name() == "delete" || b.Name() == "clear") {
				report(n.Args[0], "emptied")
			}
		}
		return true
	})
	return found
}

// root returns the variable that an expression reaches into.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// Names checks that no package and nothing that a package declares at its top level, nor a method, has one of the words in its name.
func Names(m *Module, banned map[string]string) []Finding {
	var found []Finding
	check := func(at, name string) {
		for _, word := range words(name) {
			if better, ok := banned[word]; ok {
				found = append(found, Finding{"names", at, fmt.Sprintf("%s: %q says nothing here; %s", name, word, better)})
			}
		}
	}
	for _, p := range m.Packages {
		check(m.Rel(p.PkgPath), p.Name)
		for _, f := range p.Syntax {
			for _, decl := range f.Decls {
				switch d := decl.(type) {
				case *ast.FuncDecl:
					check(m.at(d.Pos()), d.Name.Name)
				case *ast.GenDecl:
					for _, spec := range d.Specs {
						switch s := spec.(type) {
						case *ast.TypeSpec:
							check(m.at(s.Pos()), s.Name.Name)
						case *ast.ValueSpec:
							for _, name := range s.Names {
								check(m.at(name.Pos()), name.Name)
							}
						}
					}
				}
			}
		}
	}
	return found
}

// words splits an identifier at its capitals and underscores into lower-case words.
func words(name string) []string {
	var split []string
	start := 0
	runes := []rune(name)
	for i := range runes {
		upper := unicode.IsUpper(runes[i])
		boundary := i > 0 && upper && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if boundary || runes[i] == '_' {
			split = append(split, strings.ToLower(strings.Trim(string(runes[start:i]), "_")))
			start = i
		}
	}
	return append(split, strings.ToLower(strings.Trim(string(runes[start:]), "_")))
}

// wide returns the numbers of the lines that are wider than columns and have no part of a raw string.
func wide(text []byte, columns int) (numbers []int) {
	raw := map[int]bool{}
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	for pos, tok, lit := s.Scan(); tok != token.EOF; pos, tok, lit = s.Scan() {
		if tok == token.STRING && lit[0] == '`' {
			first := file.Line(pos)
			for n := range strings.Count(lit, "\n") + 1 {
				raw[first+n] = true
			}
		}
	}
	for n, line := range bytes.Split(text, []byte("\n")) {
		if utf8.RuneCount(line) > columns && !raw[n+1] {
			numbers = append(numbers, n+1)
		}
	}
	return numbers
}
