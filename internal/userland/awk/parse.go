package awk

import (
	"errors"
	"fmt"
	"slices"
)

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
		kind byte // 0 for the input, '<' for a file, '|' for a command, '&' for one that is written to as well
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
		line int
		end  int // where its parenthesis closes
	}
)

// The statements of a program.
type (
	stmt interface{}

	lined struct { // a statement, and where it stands
		line int
		s    stmt
	}
	simple struct{ x expr }
	output struct {
		format bool
		args   []expr
		kind   string // "", ">", ">>", "|" or "|&"
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
	line     int
}

// function is one of the program's.
type function struct {
	name   string
	params int
	body   []stmt
	done   bool
	line   int // of its first call
}

// script is a program that was read.
type script struct {
	begin, end         []stmt
	beginFile, endFile []stmt
	rules              []*rule
	functions          map[string]*function
	globals            map[string]int
	names              []string // of the globals
	sources            []origin
	functab            bool // it is named
}

// parser reads a program by recursive descent. It has more than 40 methods because it has one for each rule of the grammar.
type parser struct {
	lexer
	s      *script
	locals map[string]int
	inFunc bool
	rule   string // BEGIN and the like, where the statements of one are read
	loops  int
	errors int            // that do not end the reading
	before int            // where the token before began
	seen   map[string]int // at which line a variable was first named
	noGT   bool           // > is a redirection
	noIn   bool
	depth  int
}

// maxNesting bounds how deep a program nests.
const maxNesting = 1000

// errRead ends a program whose mistakes were told.
var errRead = errors.New("")

// errUndefined is a call of a function that is not there, which is found when everything was read.
var errUndefined = errors.New("not defined")

// parse reads a program. It passes warnings and mistakes that do not end the parsing to warn.
func parse(src string, sources []origin, warn func(line int, text string)) (s *script, err error) {
	p := &parser{lexer: lexer{src: src, line: 1, sources: sources, warned: map[string]bool{}, warn: warn},
		s:    &script{functions: map[string]*function{}, globals: map[string]int{}, names: slices.Clone(specials), sources: sources},
		seen: map[string]int{}}
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
			return nil, fmt.Errorf("%sfatal: function `%s' %w", whereIs(sources, f.line), f.name, errUndefined)
		}
	}
	for _, name := range p.s.names {
		if f := p.s.functions[name]; f != nil {
			p.line = p.seen[name]
			p.complain("function `%s' called with space between name and `(',\nor used as a variable or an array", name)
		}
	}
	if p.errors > 0 {
		return nil, errRead
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
	if p.tok == tEOF || p.tok == tNewline {
		at := p.start
		for p.tok == tEOF && at > 0 && p.src[at-1] == '\n' {
			at--
		}
		p.failAt(at, "unexpected newline or end of string")
	}
	p.fail("syntax error")
}

// complain tells of a mistake after which the reading goes on.
func (p *parser) complain(format string, args ...any) {
	p.errors++
	if p.warn != nil {
		p.warn(-p.line, fmt.Sprintf(format, args...))
	}
}

// next reads the next token and keeps where the one before began.
func (p *parser) next() {
	p.before = p.start
	p.lexer.next()
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
			p.s.begin = append(p.s.begin, p.special()...)
		case p.is("END"):
			p.s.end = append(p.s.end, &block{p.special()})
		case p.is("BEGINFILE"):
			p.s.beginFile = append(p.s.beginFile, p.special()...)
		case p.is("ENDFILE"):
			p.s.endFile = append(p.s.endFile, p.special()...)
		case p.is("function") || p.is("func"):
			p.next()
			p.function()
		default:
			r := &rule{line: p.line}
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

// special reads what stands behind BEGIN and the like.
func (p *parser) special() []stmt {
	p.rule = p.text
	p.next()
	if !p.is("{") {
		p.complain("`%s' blocks must have an action part", p.rule)
		p.unexpected()
	}
	body := p.braces()
	p.rule = ""
	return body
}

func (p *parser) function() {
	if p.tok != tName && p.tok != tCall {
		p.unexpected()
	}
	f := p.named(p.text)
	if f.done {
		p.wrong("function name `%s' previously defined", f.name)
	}
	f.done = true
	p.next()
	p.expect("(")
	p.locals = map[string]int{}
	for p.newlines(); !p.accept(")"); p.newlines() {
		if p.tok != tName {
			p.unexpected()
		}
		if first, twice := p.locals[p.text]; twice {
			p.wrong("function `%s': parameter #%d, `%s', duplicates parameter #%d", f.name, len(p.locals)+1, p.text, first+1)
		}
		if p.text == f.name {
			p.wrong("function `%s': cannot use function name as parameter name", f.name)
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
		f = &function{name: name, line: p.line}
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
	line := p.line
	s := p.unlined()
	switch s.(type) {
	case *block, *jump:
		return s
	}
	return &lined{line, s}
}

func (p *parser) unlined() stmt {
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
			p.loops++
			defer func() { p.loops-- }()
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

func (p *parser) print(format bool) stmt {
	s := &output{format: format}
	was := p.noGT
	p.noGT = true
	if p.tok != tNewline && !p.is(";") && !p.is("}") && !p.is(">") && !p.is(">>") && !p.is("|") && !p.is("|&") && p.tok != tEOF {
		s.args = p.list()
		if g, ok := s.args[0].(*group); ok && len(s.args) == 1 {
			s.args = g.list
		}
	}
	if p.is(">") || p.is(">>") || p.is("|") || p.is("|&") {
		s.kind = p.text
		p.next()
		s.to = p.concat()
	}
	p.noGT = was
	if format && len(s.args) == 0 {
		s.args = []expr{&dollar{&number{num(0)}}}
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
		p.s.names = append(p.s.names, name)
		p.seen[name] = p.line
	}
	p.s.functab = p.s.functab || i == vFUNCTAB
	return &global{i, name}
}
