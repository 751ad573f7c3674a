package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// printer writes commands as bash writes the body of a function: one command in a line, with semicolons, four blanks deeper for each level.
type printer struct {
	b         strings.Builder
	code      string // from which the commands were read
	indent    int
	documents []*syntax.Redirect // whose bodies follow the line
	inner     bool               // within a function: functions in it are written with the keyword
}

// text returns the source of a node.
func (p *printer) text(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from <= to && to <= len(p.code) {
		return original(p.code[from:to])
	}
	return ""
}

func (p *printer) write(parts ...string) {
	for _, s := range parts {
		p.b.WriteString(s)
	}
}

func (p *printer) line() { p.write("\n", strings.Repeat(" ", p.indent)) }

// list writes commands, each in a line. The last one is followed by end, ";" or nothing.
func (p *printer) list(stmts []*syntax.Stmt, end string) {
	for i, s := range stmts {
		if i > 0 {
			if stmts[i-1].Background {
				p.write(" ")
			} else {
				p.line()
			}
		}
		p.stmt(s)
		switch {
		case s.Background:
			p.write(" &")
		case i+1 < len(stmts) || end != "":
			if len(p.documents) == 0 {
				p.write(";")
			}
		}
		p.flush()
	}
}

// flush writes the bodies of here-documents.
func (p *printer) flush() bool {
	if len(p.documents) == 0 {
		return false
	}
	for _, rd := range p.documents {
		p.write("\n")
		if rd.Hdoc != nil {
			body := p.text(rd.Hdoc)
			if rd.Op == syntax.DashHdoc {
				lines := strings.Split(body, "\n")
				for i := range lines {
					lines[i] = strings.TrimLeft(lines[i], "\t")
				}
				body = strings.Join(lines, "\n")
			}
			p.write(strings.TrimSuffix(body, strings.NewReplacer(`"`, "", `'`, "", `\`, "").Replace(p.text(rd.Word))))
		}
		p.write(strings.NewReplacer(`"`, "", `'`, "", `\`, "").Replace(p.text(rd.Word)), "\n")
	}
	p.documents = nil
	return true
}

// block writes commands a level deeper.
func (p *printer) block(stmts []*syntax.Stmt, end string) {
	p.indent += 4
	p.line()
	p.list(stmts, end)
	p.indent -= 4
	p.line()
}

func (p *printer) stmt(s *syntax.Stmt) {
	if s.Negated {
		p.write("! ")
	}
	before := p.b.Len()
	if s.Cmd != nil {
		p.command(s.Cmd)
	}
	for _, rd := range s.Redirs {
		if p.b.Len() > before {
			p.write(" ")
		}
		p.redirect(rd)
	}
}

func (p *printer) redirect(rd *syntax.Redirect) {
	op, word := rd.Op.String(), p.text(rd.Word)
	if rd.N != nil {
		p.write(rd.N.Value)
	}
	switch rd.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		p.documents = append(p.documents, rd)
		p.write(op, word)
	case syntax.DplIn, syntax.DplOut:
		if rd.N == nil && (word == "-" || strings.Trim(word, "0123456789") == "") {
			p.write(map[bool]string{true: "0", false: "1"}[rd.Op == syntax.DplIn])
		}
		if word == "-" {
			op = ">&"
		}
		p.write(op, word)
	default:
		p.write(op, " ", word)
	}
}

func (p *printer) words(list []*syntax.Word) string {
	var b strings.Builder
	for i, w := range list {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(p.word(w))
	}
	return b.String()
}

// word returns a word as it was written, except $'...', which bash resolves when it reads it.
func (p *printer) word(w *syntax.Word) string {
	if !slices.ContainsFunc(w.Parts, isANSI) {
		return p.text(w)
	}
	var b strings.Builder
	for _, part := range w.Parts {
		if isANSI(part) {
			b.WriteString(quoteSingle(ansiText(part.(*syntax.SglQuoted))))
		} else {
			b.WriteString(p.text(part))
		}
	}
	return b.String()
}

func isANSI(part syntax.WordPart) bool {
	q, ok := part.(*syntax.SglQuoted)
	return ok && q.Dollar
}

func ansiText(q *syntax.SglQuoted) string {
	text, _ := unescape(q.Value, '$')
	return text
}

func (p *printer) command(c syntax.Command) {
	switch c := c.(type) {
	case *syntax.CallExpr:
		for i, a := range c.Assigns {
			if i > 0 {
				p.write(" ")
			}
			p.write(p.text(a))
		}
		if len(c.Assigns) > 0 && len(c.Args) > 0 {
			p.write(" ")
		}
		p.write(p.words(c.Args))
	case *syntax.Block:
		p.write("{ ")
		p.block(c.Stmts, "")
		p.write("}")
	case *syntax.Subshell:
		p.write("( ")
		p.list(c.Stmts, "")
		p.write(" )")
	case *syntax.BinaryCmd:
		p.binary(c)
	case *syntax.IfClause:
		p.ifClause(c)
	case *syntax.WhileClause:
		p.write(map[bool]string{true: "until ", false: "while "}[c.Until])
		p.list(c.Cond, "")
		p.write("; do")
		p.block(c.Do, ";")
		p.write("done")
	case *syntax.ForClause:
		p.forClause(c)
	case *syntax.CaseClause:
		p.caseClause(c)
	case *syntax.FuncDecl:
		p.function(c)
	case *syntax.ArithmCmd:
		p.write(p.text(c))
	case *syntax.TestClause:
		text := p.condition(c.X)
		if _, word := c.X.(*syntax.Word); word {
			text = "-n " + text
		}
		p.write("[[ ", text, " ]]")
	case *syntax.TimeClause:
		p.write("time ")
		if c.PosixFormat {
			p.write("-p ")
		}
		if c.Stmt != nil {
			p.stmt(c.Stmt)
		}
	case *syntax.CoprocClause:
		p.write("coproc ")
		if c.Name != nil {
			p.write(p.text(c.Name), " ")
		} else if _, simple := c.Stmt.Cmd.(*syntax.CallExpr); !simple {
			p.write("COPROC ")
		}
		p.stmt(c.Stmt)
	default:
		p.write(p.text(c))
	}
}

func (p *printer) binary(c *syntax.BinaryCmd) {
	p.stmt(c.X)
	op := " " + c.Op.String()
	if c.Op == syntax.PipeAll {
		op = " 2>&1 |"
	}
	p.write(op)
	if len(p.documents) > 0 {
		p.flush()
		p.write(" ")
	}
	p.write(" ")
	p.stmt(c.Y)
}

func (p *printer) ifClause(c *syntax.IfClause) {
	p.write("if ")
	p.list(c.Cond, "")
	p.write("; then")
	p.block(c.Then, ";")
	if c.Else != nil {
		p.write("else")
		if c.Else.ThenPos.IsValid() {
			p.indent += 4
			p.line()
			p.ifClause(c.Else)
			p.write(";")
			p.indent -= 4
			p.line()
		} else {
			p.block(c.Else.Then, ";")
		}
	}
	p.write("fi")
}

func (p *printer) forClause(c *syntax.ForClause) {
	switch l := c.Loop.(type) {
	case *syntax.CStyleLoop:
		part := func(x syntax.ArithmExpr) string {
			if x == nil {
				return "1"
			}
			return p.text(x)
		}
		p.write("for ((", part(l.Init), "; ", part(l.Cond), "; ", part(l.Post), "))")
	case *syntax.WordIter:
		p.write(map[bool]string{true: "select ", false: "for "}[c.Select], l.Name.Value, " in ")
		if l.InPos.IsValid() {
			p.write(p.words(l.Items), ";")
		} else {
			p.write(`"$@";`)
		}
	}
	p.line()
	p.write("do")
	p.block(c.Do, ";")
	p.write("done")
}

func (p *printer) caseClause(c *syntax.CaseClause) {
	p.write("case ", p.text(c.Word), " in ")
	p.indent += 4
	for _, item := range c.Items {
		p.line()
		for i, w := range item.Patterns {
			if i > 0 {
				p.write(" | ")
			}
			p.write(p.text(w))
		}
		p.write(")")
		if len(item.Stmts) > 0 {
			p.block(item.Stmts, "")
		} else {
			p.write("\n")
			p.line()
		}
		op := item.Op.String()
		if !item.OpPos.IsValid() {
			op = ";;"
		}
		p.write(op)
	}
	p.indent -= 4
	p.line()
	p.write("esac")
}

func (p *printer) function(c *syntax.FuncDecl) {
	name := ""
	if c.Name != nil {
		name = c.Name.Value
	}
	if p.inner {
		p.write("function ")
	}
	p.write(name, " () ")
	p.body(c.Body)
}

// body writes the body of a function, with braces around it where it has none.
func (p *printer) body(s *syntax.Stmt) {
	p.line()
	stmts := []*syntax.Stmt{s}
	b, braces := s.Cmd.(*syntax.Block)
	if braces {
		stmts = b.Stmts
	}
	inner := p.inner
	p.inner = true
	p.write("{ ")
	p.block(stmts, "")
	p.write("}")
	p.inner = inner
	if braces {
		for _, rd := range s.Redirs {
			p.write(" ")
			p.redirect(rd)
		}
		p.flush()
	}
}

func (p *printer) condition(x syntax.TestExpr) string {
	switch x := x.(type) {
	case *syntax.BinaryTest:
		op := x.Op.String()
		return p.condition(x.X) + " " + op + " " + p.condition(x.Y)
	case *syntax.UnaryTest:
		return x.Op.String() + " " + p.condition(x.X)
	case *syntax.ParenTest:
		return "( " + p.condition(x.X) + " )"
	}
	return p.text(x)
}

// headOf returns what a command is called in BASH_COMMAND: of a loop or a case what stands before its body.
func headOf(sh *shell, c syntax.Command) string {
	p := printer{code: sh.source.code}
	switch c := c.(type) {
	case *syntax.ForClause:
		p.forClause(c)
	case *syntax.CaseClause:
		return "case " + p.text(c.Word) + " in"
	default:
		p.command(c)
	}
	head, _, _ := strings.Cut(p.b.String(), "\ndo\n")
	if _, loop := c.(*syntax.ForClause); loop {
		return strings.TrimSuffix(head, ";")
	}
	return p.b.String()
}

// print writes the body as it can be read again.
func (f *function) print() string {
	p := printer{code: f.source.code}
	p.body(f.body)
	return strings.TrimPrefix(p.b.String(), "\n")
}
