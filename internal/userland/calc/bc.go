// Package calc has the commands that compute: bc, expr, factor and numfmt.
package calc

import (
	"math/big"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
)

// Programs returns the commands of this package by their names.
func Programs() program.Table {
	return program.Functions(map[string]program.Func{"bc": bc, "expr": expr, "factor": factor, "numfmt": numfmt})
}

// decimal is a number of bc: v is its value times 10 to the power of scale.
type decimal struct {
	v     *big.Int
	scale int
}

func power10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

func whole64(n int64) decimal { return decimal{big.NewInt(n), 0} }

// rescale cuts or extends the digits behind the point.
func (d decimal) rescale(scale int) decimal {
	switch {
	case scale > d.scale:
		return decimal{new(big.Int).Mul(d.v, power10(scale-d.scale)), scale}
	case scale < d.scale:
		return decimal{new(big.Int).Quo(d.v, power10(d.scale-scale)), scale}
	}
	return d
}

func (d decimal) int64() int64 {
	n := d.rescale(0).v
	if !n.IsInt64() {
		return 1 << 62
	}
	return n.Int64()
}

func (d decimal) cmp(e decimal) int {
	s := max(d.scale, e.scale)
	return d.rescale(s).v.Cmp(e.rescale(s).v)
}

// calculator is a bc that runs.
type calculator struct {
	p            *program.Process
	out          *program.Output
	src          string
	at, line     int
	tok, text    string // "num", "name", "str", "\n", "eof" or the operator
	scale        int
	ibase, obase int
	last         decimal
	vars         map[string]decimal
	arrays       map[string]map[int]decimal
	functions    map[string]*calcFunction
	depth        int
	nest         int
	loops        int
	result       decimal
	column       int
	name         string
	math         bool
}

type calcFunction struct {
	params, autos []string
	body          []*calcNode
}

// calcNode is a statement or an expression.
type calcNode struct {
	op   string
	name string
	args []*calcNode
	list []*calcNode
}

// calcError is thrown at a mistake.
type calcError struct {
	msg    string
	syntax bool
}

type calcFlow uint8

const (
	calcNext calcFlow = iota
	calcBreak
	calcContinue
	calcReturn
	calcQuit
)

func bc(p *program.Process) int {
	opts, operands := p.Options(1, "hilqsvwe:", "interactive i", "mathlib l", "quiet q", "standard s", "warn w", "expression= e")
	c := &calculator{p: p, out: p.Out(), ibase: 10, obase: 10, vars: map[string]decimal{}, arrays: map[string]map[int]decimal{},
		functions: map[string]*calcFunction{},
		last:      whole64(0), result: whole64(0)}
	var given []string
	for _, o := range opts {
		switch o.Name {
		case "l":
			c.scale, c.math = 20, true
		case "e":
			given = append(given, o.Value)
		}
	}
	for _, name := range operands {
		data, err := gnu.ReadWhole(p, name)
		if err != nil {
			p.Stderrf("File %s is unavailable.\n", name)
			return 1
		}
		if c.program(string(data), name) {
			return 0
		}
	}
	for _, e := range given {
		if c.program(e+"\n", "(standard_in)") {
			return 0
		}
	}
	if len(given) == 0 {
		c.program(string(p.Reader(p.Stdin).All()), "(standard_in)")
	}
	return 0
}

// program runs a text and reports whether it ended everything.
func (c *calculator) program(src, name string) bool {
	c.src, c.at, c.line, c.name = src, 0, 1, name
	for {
		quit, end := c.unit()
		if quit {
			return true
		}
		if end {
			return false
		}
	}
}

// unit parses and runs what stands up to the end of a line.
func (c *calculator) unit() (quit, end bool) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case calcError:
			c.out.Flush()
			if x.syntax {
				c.p.Stderrf("%s %d: %s\n", c.name, c.line, x.msg)
				for c.at < len(c.src) && c.src[c.at] != '\n' {
					c.at++
				}
			} else {
				c.p.Stderrf("Runtime error (func=(main), adr=3): %s\n", x.msg)
			}
			c.depth, c.nest, c.loops = 0, 0, 0
		default:
			panic(x)
		}
	}()
	c.advance()
	if c.tok == "eof" {
		return false, true
	}
	var list []*calcNode
	for c.tok != "\n" && c.tok != "eof" {
		if c.tok == ";" {
			c.advance()
			continue
		}
		if c.tok == "name" && c.text == "define" {
			c.define()
			continue
		}
		list = append(list, c.statement())
		if c.tok != ";" && c.tok != "\n" && c.tok != "eof" {
			c.syntax()
		}
	}
	end = c.tok == "eof"
	for _, n := range list {
		if n.op == "quit" {
			return true, true
		}
		if c.exec(n) == calcQuit {
			return true, true
		}
	}
	return false, end
}

func (c *calculator) fail(msg string) { panic(calcError{msg, false}) }
func (c *calculator) syntax()         { panic(calcError{"syntax error", true}) }

// advance reads the next token. It is long because it is one switch over the first character of a token.
//
//nolint:cyclop // one case for each token
func (c *calculator) advance() {
	s := c.src
	for c.at < len(s) {
		switch {
		case s[c.at] == ' ' || s[c.at] == '\t' || s[c.at] == '\r':
			c.at++
			continue
		case strings.HasPrefix(s[c.at:], "\\\n"):
			c.at += 2
			c.line++
			continue
		case s[c.at] == '#':
			for c.at < len(s) && s[c.at] != '\n' {
				c.at++
			}
			continue
		case strings.HasPrefix(s[c.at:], "/*"):
			end := strings.Index(s[c.at+2:], "*/")
			if end < 0 {
				c.at = len(s)
				continue
			}
			c.line += strings.Count(s[c.at:c.at+2+end], "\n")
			c.at += end + 4
			continue
		}
		break
	}
	if c.at >= len(s) {
		c.tok = "eof"
		return
	}
	start := c.at
	ch := s[c.at]
	switch {
	case ch == '\n':
		c.at++
		c.line++
		c.tok = "\n"
	case ch == '"':
		end := strings.IndexByte(s[c.at+1:], '"')
		if end < 0 {
			c.syntax()
		}
		c.tok, c.text = "str", s[c.at+1:c.at+1+end]
		c.at += end + 2
	case ch >= '0' && ch <= '9' || ch >= 'A' && ch <= 'Z' || ch == '.' && c.at+1 < len(s) && (s[c.at+1] >= '0' && s[c.at+1] <= '9' ||
		s[c.at+1] >= 'A' && s[c.at+1] <= 'Z'):
		var b strings.Builder
		point := false
		for c.at < len(s) {
			ch := s[c.at]
			if strings.HasPrefix(s[c.at:], "\\\n") {
				c.at += 2
				continue
			}
			if ch == '.' {
				if point {
					break
				}
				point = true
			} else if !(ch >= '0' && ch <= '9' || ch >= 'A' && ch <= 'Z') {
				break
			}
			b.WriteByte(ch)
			c.at++
		}
		if b.Len() > maxDigits {
			c.fail("number too long")
		}
		c.tok, c.text = "num", b.String()
	case ch >= 'a' && ch <= 'z':
		for c.at < len(s) && (s[c.at] >= 'a' && s[c.at] <= 'z' || s[c.at] >= '0' && s[c.at] <= '9' || s[c.at] == '_') {
			c.at++
		}
		c.tok, c.text = "name", s[start:c.at]
	default:
		for _, op := range []string{"&&", "||", "==", "!=", "<=", ">=", "++", "--", "+=", "-=", "*=", "/=", "%=", "^="} {
			if strings.HasPrefix(s[c.at:], op) {
				c.tok = op
				c.at += 2
				return
			}
		}
		c.at++
		c.tok = string(ch)
		if strings.IndexByte("+-*/%^=<>!(){}[],;.", ch) < 0 {
			panic(calcError{"illegal character: " + c.tok, true})
		}
	}
}

func (c *calculator) accept(tok string) bool {
	if c.tok == tok {
		c.advance()
		return true
	}
	return false
}

func (c *calculator) expect(tok string) {
	if !c.accept(tok) {
		c.syntax()
	}
}

func (c *calculator) newlines() {
	for c.tok == "\n" {
		c.advance()
	}
}

func (c *calculator) define() {
	c.advance()
	if c.tok == "name" && c.text == "void" {
		c.advance()
	}
	if c.tok != "name" {
		c.syntax()
	}
	name := c.text
	f := &calcFunction{}
	c.advance()
	c.expect("(")
	f.params = c.names(")")
	c.expect(")")
	c.newlines()
	c.expect("{")
	c.newlines()
	for c.tok == "name" && c.text == "auto" {
		c.advance()
		f.autos = append(f.autos, c.names(";")...)
		for c.tok == ";" || c.tok == "\n" {
			c.advance()
		}
	}
	f.body = c.block()
	c.functions[name] = f
}

// names reads a list of variables; arrays have [] behind them.
func (c *calculator) names(end string) []string {
	var all []string
	for c.tok == "name" {
		name := c.text
		c.advance()
		if c.accept("[") {
			c.expect("]")
			name += "[]"
		}
		all = append(all, name)
		if !c.accept(",") {
			break
		}
	}
	_ = end
	return all
}

// block reads statements up to a closing brace.
func (c *calculator) block() []*calcNode {
	var list []*calcNode
	for {
		for c.tok == ";" || c.tok == "\n" {
			c.advance()
		}
		if c.accept("}") {
			return list
		}
		if c.tok == "eof" {
			c.syntax()
		}
		list = append(list, c.statement())
	}
}

func (c *calculator) enter() {
	if c.nest++; c.nest > 1000 {
		c.fail("the program nests too deep")
	}
}

func (c *calculator) statement() *calcNode {
	c.enter()
	defer func() { c.nest-- }()
	switch {
	case c.tok == "{":
		c.advance()
		return &calcNode{op: "block", list: c.block()}
	case c.tok == "str":
		n := &calcNode{op: "string", name: c.text}
		c.advance()
		return n
	case c.tok == "name":
		switch word := c.text; word {
		case "if":
			c.advance()
			c.expect("(")
			n := &calcNode{op: "if", args: []*calcNode{c.expr()}}
			c.expect(")")
			c.newlines()
			n.list = append(n.list, c.statement())
			at, line, tok, text := c.at, c.line, c.tok, c.text
			for c.tok == ";" || c.tok == "\n" {
				c.advance()
			}
			if c.tok == "name" && c.text == "else" {
				c.advance()
				c.newlines()
				n.list = append(n.list, c.statement())
			} else {
				c.at, c.line, c.tok, c.text = at, line, tok, text
			}
			return n
		case "while":
			c.advance()
			c.expect("(")
			n := &calcNode{op: "while", args: []*calcNode{c.expr()}}
			c.expect(")")
			c.newlines()
			n.list = []*calcNode{c.statement()}
			return n
		case "for":
			c.advance()
			c.expect("(")
			n := &calcNode{op: "for", args: make([]*calcNode, 3)}
			for i, end := range []string{";", ";", ")"} {
				if c.tok != end {
					n.args[i] = c.expr()
				}
				c.expect(end)
			}
			c.newlines()
			n.list = []*calcNode{c.statement()}
			return n
		case "break", "continue", "quit", "halt":
			c.advance()
			return &calcNode{op: word}
		case "return":
			c.advance()
			n := &calcNode{op: word}
			if c.tok != ";" && c.tok != "\n" && c.tok != "}" && c.tok != "eof" {
				n.args = []*calcNode{c.expr()}
			}
			return n
		case "print":
			c.advance()
			n := &calcNode{op: word}
			for {
				if c.tok == "str" {
					n.args = append(n.args, &calcNode{op: "string", name: c.text})
					c.advance()
				} else {
					n.args = append(n.args, c.expr())
				}
				if !c.accept(",") {
					return n
				}
			}
		}
	}
	x := c.expr()
	if x.op == "=" {
		return &calcNode{op: "silent", args: []*calcNode{x}}
	}
	return &calcNode{op: "show", args: []*calcNode{x}}
}
