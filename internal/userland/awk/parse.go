package awk

import "fmt"

// The expressions of a program.
type (
	expr interface{}

	number struct{ v value }
	text   struct{ v value }
	match  struct{ source string } // /re/ alone: $0 ~ /re/
	global struct {
		index int
		name  string
	}
	local struct {
		index int
		name  string
	}
	dollar  struct{ index expr }
	element struct {
		array expr // global, local or element
		subs  []expr
	}
	inArray struct {
		subs  []expr
		array expr
	}
	group struct{ list []expr }
	unary struct {
		op byte // '-', '+' or '!'
		x  expr
	}
	binary struct {
		op   string
		a, b expr
	}
	matches struct {
		not  bool
		x, r expr
	}
	ternary struct{ test, a, b expr }
	assign  struct {
		op       string // "" for =, or the operator
		to, from expr
	}
	step struct {
		to     expr
		delta  float64
		prefix bool
	}
	concat  struct{ a, b expr }
	getline struct {
		to   expr // nil for $0
		kind byte // 0 for the input, '<' for a file, '|' for a command
		from expr
	}
	call struct {
		fn   *function
		name string
		args []expr
		line int
	}
	builtinCall struct {
		fn   builtin
		name string
		args []expr
	}
)

// The statements of a program.
type (
	stmt interface{}

	simple struct{ x expr }
	output struct {
		format bool
		args   []expr
		kind   string // "", ">", ">>" or "|"
		to     expr
	}
	ifStmt struct {
		test   expr
		then   []stmt
		orElse []stmt
	}
	loop struct {
		init  stmt
		test  expr // nil for ever
		after stmt
		body  []stmt
		first bool // the body comes before the test
	}
	forIn struct {
		to    expr
		array expr
		body  []stmt
	}
	block     struct{ body []stmt }
	deleteAll struct{ array expr }
	deleteOne struct {
		array expr // as of element
		subs  []expr
	}
	ret      struct{ x expr }
	exitStmt struct{ x expr }
	jump     struct{ to flow }
	choose   struct {
		x     expr
		cases []choice
	}
	choice struct {
		x     expr // nil for default
		regex bool
		body  []stmt
	}
)

// rule is a pattern with what is done.
type rule struct {
	from, to expr
	inRange  bool
	body     []stmt // nil to print
	bare     bool
}

// function is one of the program's.
type function struct {
	name   string
	params int
	body   []stmt
	done   bool
}

// script is a program that was read.
type script struct {
	begin, end         []stmt
	beginFile, endFile []stmt
	rules              []*rule
	functions          map[string]*function
	globals            map[string]int
}

// parser reads a program.
type parser struct {
	lexer
	s      *script
	locals map[string]int
	inFunc bool
	loops  int
	noGT   bool // > is a redirection
	noIn   bool
	depth  int
}

// maxNesting bounds how deep a program nests.
const maxNesting = 1000

func parse(src string) (s *script, err error) {
	p := &parser{lexer: lexer{src: src, line: 1}, s: &script{functions: map[string]*function{}, globals: map[string]int{}}}
	for i, name := range specials {
		p.s.globals[name] = i
	}
	defer func() {
		switch x := recover().(type) {
		case nil:
		case mistake:
			err = x.error
		default:
			panic(x)
		}
	}()
	p.next()
	p.program()
	for _, f := range p.s.functions {
		if !f.done {
			return nil, fmt.Errorf("function `%s' called but never defined", f.name)
		}
	}
	return p.s, nil
}

func (p *parser) is(op string) bool { return (p.tok == tOp || p.tok == tKeyword) && p.text == op }

func (p *parser) accept(op string) bool {
	if p.is(op) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expect(op string) {
	if !p.accept(op) {
		p.unexpected()
	}
}

func (p *parser) unexpected() {
	switch p.tok {
	case tEOF:
		p.fail("syntax error: unexpected end of the program")
	case tNewline:
		p.fail("syntax error: unexpected newline")
	}
	p.fail("syntax error at or near %s", p.src[p.start:p.at])
}

func (p *parser) newlines() {
	for p.tok == tNewline {
		p.next()
	}
}

func (p *parser) terminators() {
	for p.tok == tNewline || p.is(";") {
		p.next()
	}
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxNesting {
		p.fail("the program nests too deep")
	}
}

func (p *parser) program() {
	for p.terminators(); p.tok != tEOF; p.terminators() {
		switch {
		case p.is("BEGIN"):
			p.next()
			p.s.begin = append(p.s.begin, p.braces()...)
		case p.is("END"):
			p.next()
			p.s.end = append(p.s.end, &block{p.braces()})
		case p.is("BEGINFILE"):
			p.next()
			p.s.beginFile = append(p.s.beginFile, p.braces()...)
		case p.is("ENDFILE"):
			p.next()
			p.s.endFile = append(p.s.endFile, p.braces()...)
		case p.is("function") || p.is("func"):
			p.next()
			p.function()
		default:
			r := &rule{}
			if !p.is("{") {
				r.from = p.expr()
				if p.accept(",") {
					p.newlines()
					r.to = p.expr()
				}
			}
			if p.is("{") {
				r.body = p.braces()
			} else {
				r.bare = true
			}
			p.s.rules = append(p.s.rules, r)
		}
	}
}

func (p *parser) function() {
	if p.tok != tName && p.tok != tCall {
		p.unexpected()
	}
	f := p.named(p.text)
	if f.done {
		p.fail("function `%s' is defined twice", f.name)
	}
	f.done = true
	p.next()
	p.expect("(")
	p.locals = map[string]int{}
	for p.newlines(); !p.accept(")"); p.newlines() {
		if p.tok != tName {
			p.unexpected()
		}
		if _, twice := p.locals[p.text]; twice {
			p.fail("function `%s': parameter `%s' is there twice", f.name, p.text)
		}
		p.locals[p.text] = len(p.locals)
		p.next()
		if !p.accept(",") && !p.is(")") {
			p.unexpected()
		}
	}
	f.params = len(p.locals)
	p.newlines()
	p.inFunc = true
	f.body = p.braces()
	p.inFunc, p.locals = false, nil
}

func (p *parser) named(name string) *function {
	f := p.s.functions[name]
	if f == nil {
		f = &function{name: name}
		p.s.functions[name] = f
	}
	return f
}

// braces reads { ... }.
func (p *parser) braces() []stmt {
	p.enter()
	defer func() { p.depth-- }()
	p.expect("{")
	body := []stmt{}
	for p.terminators(); !p.accept("}"); p.terminators() {
		body = append(body, p.statement())
	}
	return body
}

// body reads what stands behind if, while and the like.
func (p *parser) body() []stmt {
	p.newlines()
	if p.accept(";") {
		return nil
	}
	if p.is("{") {
		b := p.braces()
		return b
	}
	return []stmt{p.statement()}
}

// end expects the end of a simple statement.
func (p *parser) end() {
	switch {
	case p.tok == tNewline || p.is(";"):
		p.next()
		p.newlines()
	case p.is("}") || p.tok == tEOF:
	default:
		p.unexpected()
	}
}

func (p *parser) statement() stmt {
	p.enter()
	defer func() { p.depth-- }()
	if p.tok == tKeyword {
		switch p.text {
		case "if":
			p.next()
			p.expect("(")
			s := &ifStmt{test: p.expr()}
			p.newlines()
			p.expect(")")
			s.then = p.body()
			p.maybeElse(s)
			return s
		case "while":
			p.next()
			p.expect("(")
			s := &loop{test: p.expr()}
			p.expect(")")
			if p.tok == tNewline || !p.is(";") {
				s.body = p.loopBody()
			} else {
				p.next()
			}
			return s
		case "do":
			p.next()
			s := &loop{first: true, body: p.loopBody()}
			p.terminators()
			p.expect("while")
			p.expect("(")
			s.test = p.expr()
			p.expect(")")
			p.end()
			return s
		case "for":
			return p.forLoop()
		case "switch":
			return p.choose()
		}
	}
	if p.is("{") {
		b := &block{p.braces()}
		p.terminatorsOne()
		return b
	}
	if p.accept(";") {
		return &block{}
	}
	s := p.simple()
	p.end()
	return s
}

// terminatorsOne skips what may stand behind a block.
func (p *parser) terminatorsOne() {
	if p.is(";") {
		p.next()
	}
	p.newlines()
}

func (p *parser) maybeElse(s *ifStmt) {
	at, line, tok, txt, start := p.at, p.line, p.tok, p.text, p.start
	p.terminators()
	if p.accept("else") {
		s.orElse = p.body()
		return
	}
	p.at, p.line, p.tok, p.text, p.start = at, line, tok, txt, start
}

func (p *parser) loopBody() []stmt {
	p.loops++
	b := p.body()
	p.loops--
	return b
}

func (p *parser) forLoop() stmt {
	p.next()
	p.expect("(")
	s := &loop{}
	if !p.is(";") {
		if p.tok == tName { // for (x in a)
			at, line, name, start := p.at, p.line, p.text, p.start
			p.next()
			if p.accept("in") && p.tok == tName {
				array := p.reference()
				if p.accept(")") {
					return &forIn{to: p.variable(name), array: array, body: p.loopBody()}
				}
			}
			p.at, p.line, p.tok, p.text, p.start = at, line, tName, name, start
		}
		s.init = p.simple()
	}
	p.expect(";")
	p.newlines()
	if !p.is(";") {
		s.test = p.expr()
	}
	p.expect(";")
	p.newlines()
	if !p.is(")") {
		s.after = p.simple()
	}
	p.expect(")")
	s.body = p.loopBody()
	return s
}

func (p *parser) choose() stmt {
	p.next()
	p.expect("(")
	s := &choose{x: p.expr()}
	p.expect(")")
	p.newlines()
	p.expect("{")
	p.loops++
	for p.terminators(); !p.accept("}"); p.terminators() {
		c := choice{}
		if p.accept("default") {
			p.expect(":")
		} else {
			p.expect("case")
			c.x = p.primaryNoTernary()
			if m, ok := c.x.(*match); ok {
				c.x, c.regex = &text{str(m.source)}, true
			}
			p.expect(":")
		}
		for p.terminators(); !p.is("case") && !p.is("default") && !p.is("}"); p.terminators() {
			c.body = append(c.body, p.statement())
		}
		s.cases = append(s.cases, c)
	}
	p.loops--
	return s
}

func (p *parser) primaryNoTernary() expr { return p.additive() }

// simple reads a statement that may stand in the head of a loop.
func (p *parser) simple() stmt {
	if p.tok != tKeyword || p.text == "getline" {
		return &simple{p.expr()}
	}
	word := p.text
	switch word {
	case "print", "printf":
		p.next()
		return p.print(word == "printf")
	case "delete":
		p.next()
		if p.tok != tName {
			p.unexpected()
		}
		array := p.reference()
		if x, ok := array.(*element); ok {
			return &deleteOne{x.array, x.subs}
		}
		return &deleteAll{array}
	case "break":
		p.next()
		return &jump{broke}
	case "continue":
		p.next()
		return &jump{continued}
	case "next":
		p.next()
		return &jump{nextRecord}
	case "nextfile":
		p.next()
		return &jump{nextFile}
	case "exit", "return":
		p.next()
		var x expr
		if p.tok != tNewline && !p.is(";") && !p.is("}") && p.tok != tEOF {
			x = p.expr()
		}
		if word == "exit" {
			return &exitStmt{x}
		}
		if !p.inFunc {
			p.fail("return outside of a function")
		}
		return &ret{x}
	}
	p.unexpected()
	return nil
}

func (p *parser) print(format bool) stmt {
	s := &output{format: format}
	was := p.noGT
	p.noGT = true
	if p.tok != tNewline && !p.is(";") && !p.is("}") && !p.is(">") && !p.is(">>") && !p.is("|") && p.tok != tEOF {
		s.args = p.list()
		if g, ok := s.args[0].(*group); ok && len(s.args) == 1 {
			s.args = g.list
		}
	}
	if p.is(">") || p.is(">>") || p.is("|") {
		s.kind = p.text
		p.next()
		s.to = p.concat()
	}
	p.noGT = was
	if format && len(s.args) == 0 {
		p.fail("printf: no format")
	}
	return s
}

// list reads expressions with commas between them.
func (p *parser) list() []expr {
	all := []expr{p.expr()}
	for p.accept(",") {
		p.newlines()
		all = append(all, p.expr())
	}
	return all
}

// reference reads a variable with the subscripts behind it.
func (p *parser) reference() expr {
	x := p.variable(p.text)
	p.next()
	for p.accept("[") {
		was, in := p.noGT, p.noIn
		p.noGT, p.noIn = false, false
		subs := p.list()
		p.noGT, p.noIn = was, in
		p.expect("]")
		x = &element{x, subs}
	}
	return x
}

func (p *parser) variable(name string) expr {
	if i, ok := p.locals[name]; ok {
		return &local{i, name}
	}
	i, ok := p.s.globals[name]
	if !ok {
		i = len(p.s.globals)
		p.s.globals[name] = i
	}
	return &global{i, name}
}
