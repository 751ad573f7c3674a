package tools

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"agentbox/internal/driver/wasm/program"
)

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
	c := &calculator{p: p, out: p.Out(), ibase: 10, obase: 10, vars: map[string]decimal{}, arrays: map[string]map[int]decimal{}, functions: map[string]*calcFunction{},
		last: whole64(0), result: whole64(0)}
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
		data, err := whole(p, name)
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
	case ch >= '0' && ch <= '9' || ch >= 'A' && ch <= 'Z' || ch == '.' && c.at+1 < len(s) && (s[c.at+1] >= '0' && s[c.at+1] <= '9' || s[c.at+1] >= 'A' && s[c.at+1] <= 'Z'):
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

func (c *calculator) expr() *calcNode {
	c.enter()
	defer func() { c.nest-- }()
	n := c.and()
	for c.tok == "||" {
		c.advance()
		n = &calcNode{op: "||", args: []*calcNode{n, c.and()}}
	}
	return n
}

func (c *calculator) and() *calcNode {
	n := c.not()
	for c.tok == "&&" {
		c.advance()
		n = &calcNode{op: "&&", args: []*calcNode{n, c.not()}}
	}
	return n
}

func (c *calculator) not() *calcNode {
	if c.accept("!") {
		c.enter()
		defer func() { c.nest-- }()
		return &calcNode{op: "!", args: []*calcNode{c.not()}}
	}
	n := c.sum()
	for {
		switch c.tok {
		case "<", "<=", ">", ">=", "==", "!=":
			op := c.tok
			c.advance()
			n = &calcNode{op: op, args: []*calcNode{n, c.sum()}}
			continue
		}
		return n
	}
}

func (c *calculator) sum() *calcNode {
	n := c.product()
	for c.tok == "+" || c.tok == "-" {
		op := c.tok
		c.advance()
		n = &calcNode{op: op, args: []*calcNode{n, c.product()}}
	}
	return n
}

func (c *calculator) product() *calcNode {
	n := c.power()
	for c.tok == "*" || c.tok == "/" || c.tok == "%" {
		op := c.tok
		c.advance()
		n = &calcNode{op: op, args: []*calcNode{n, c.power()}}
	}
	return n
}

func (c *calculator) power() *calcNode {
	n := c.unary()
	if c.accept("^") {
		c.enter()
		defer func() { c.nest-- }()
		return &calcNode{op: "^", args: []*calcNode{n, c.power()}}
	}
	return n
}

func (c *calculator) unary() *calcNode {
	if c.accept("-") {
		c.enter()
		defer func() { c.nest-- }()
		return &calcNode{op: "neg", args: []*calcNode{c.unary()}}
	}
	if c.tok == "++" || c.tok == "--" {
		op := c.tok
		c.advance()
		return &calcNode{op: "pre" + op, args: []*calcNode{c.lvalue(c.primary())}}
	}
	n := c.primary()
	switch c.tok {
	case "++", "--":
		op := c.tok
		c.advance()
		return &calcNode{op: "post" + op, args: []*calcNode{c.lvalue(n)}}
	case "=", "+=", "-=", "*=", "/=", "%=", "^=":
		op := strings.TrimSuffix(c.tok, "=")
		c.lvalue(n)
		c.advance()
		return &calcNode{op: "=", name: op, args: []*calcNode{n, c.expr()}}
	}
	return n
}

func (c *calculator) lvalue(n *calcNode) *calcNode {
	if n.op != "var" && n.op != "element" {
		c.syntax()
	}
	return n
}

func (c *calculator) primary() *calcNode {
	switch c.tok {
	case "num":
		n := &calcNode{op: "num", name: c.text}
		c.advance()
		return n
	case "(":
		c.advance()
		n := c.expr()
		c.expect(")")
		return &calcNode{op: "()", args: []*calcNode{n}}
	case ".":
		c.advance()
		return &calcNode{op: "var", name: "last"}
	case "name":
		name := c.text
		c.advance()
		switch {
		case c.accept("("):
			n := &calcNode{op: "call", name: name}
			for c.tok != ")" {
				if c.tok == "name" {
					at, line, text := c.at, c.line, c.text
					c.advance()
					if c.tok == "[" {
						c.advance()
						if c.accept("]") {
							n.args = append(n.args, &calcNode{op: "array", name: text})
							c.accept(",")
							continue
						}
					}
					c.at, c.line, c.tok, c.text = at, line, "name", text
				}
				n.args = append(n.args, c.expr())
				if !c.accept(",") {
					break
				}
			}
			c.expect(")")
			return n
		case c.accept("["):
			n := &calcNode{op: "element", name: name, args: []*calcNode{c.expr()}}
			c.expect("]")
			return n
		}
		return &calcNode{op: "var", name: name}
	}
	c.syntax()
	return nil
}

// exec runs a statement.
func (c *calculator) exec(n *calcNode) calcFlow {
	c.p.Charge(30)
	switch n.op {
	case "block":
		for _, s := range n.list {
			if f := c.exec(s); f != calcNext {
				return f
			}
		}
	case "string":
		c.put(n.name)
	case "show":
		c.last = c.eval(n.args[0])
		c.show(c.last)
		c.put("\n")
	case "silent":
		c.eval(n.args[0])
	case "print":
		for _, a := range n.args {
			if a.op == "string" {
				c.put(strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`, `\q`, `"`, `\a`, "\a", `\r`, "\r", `\b`, "\b", `\f`, "\f").Replace(a.name))
			} else {
				c.last = c.eval(a)
				c.show(c.last)
			}
		}
	case "if":
		if c.eval(n.args[0]).v.Sign() != 0 {
			return c.exec(n.list[0])
		} else if len(n.list) > 1 {
			return c.exec(n.list[1])
		}
	case "while", "for":
		test := n.args[0]
		if n.op == "for" {
			if test != nil {
				c.eval(test)
			}
			test = n.args[1]
		}
		for test == nil || c.eval(test).v.Sign() != 0 {
			switch f := c.exec(n.list[0]); f {
			case calcBreak:
				return calcNext
			case calcReturn, calcQuit:
				return f
			}
			if n.op == "for" && n.args[2] != nil {
				c.eval(n.args[2])
			}
		}
	case "break":
		return calcBreak
	case "continue":
		return calcContinue
	case "return":
		c.result = whole64(0)
		if len(n.args) > 0 {
			c.result = c.eval(n.args[0])
		}
		return calcReturn
	case "quit", "halt":
		return calcQuit
	}
	return calcNext
}

func truthOf(b bool) decimal {
	if b {
		return whole64(1)
	}
	return whole64(0)
}

func (c *calculator) eval(n *calcNode) decimal {
	c.p.Charge(20)
	switch n.op {
	case "num":
		return c.number(n.name)
	case "()":
		return c.eval(n.args[0])
	case "var":
		return c.get(n.name)
	case "element":
		v, ok := c.arrays[n.name][c.index(n)]
		if !ok {
			return whole64(0)
		}
		return v
	case "neg":
		d := c.eval(n.args[0])
		return decimal{new(big.Int).Neg(d.v), d.scale}
	case "!":
		return truthOf(c.eval(n.args[0]).v.Sign() == 0)
	case "&&":
		a := c.eval(n.args[0]).v.Sign() != 0
		b := c.eval(n.args[1]).v.Sign() != 0
		return truthOf(a && b)
	case "||":
		a := c.eval(n.args[0]).v.Sign() != 0
		b := c.eval(n.args[1]).v.Sign() != 0
		return truthOf(a || b)
	case "pre++", "pre--", "post++", "post--":
		old := c.eval(n.args[0])
		op := "+"
		if strings.HasSuffix(n.op, "-") {
			op = "-"
		}
		v := c.arithmetic(op, old, whole64(1))
		c.set(n.args[0], v)
		if strings.HasPrefix(n.op, "post") {
			return old
		}
		return v
	case "=":
		v := c.eval(n.args[1])
		if n.name != "" {
			v = c.arithmetic(n.name, c.eval(n.args[0]), v)
		}
		c.set(n.args[0], v)
		return v
	case "call":
		return c.call(n)
	case "<", "<=", ">", ">=", "==", "!=":
		k := c.eval(n.args[0]).cmp(c.eval(n.args[1]))
		return truthOf(map[string]bool{"<": k < 0, "<=": k <= 0, ">": k > 0, ">=": k >= 0, "==": k == 0, "!=": k != 0}[n.op])
	case "array":
		c.fail("an array stands where a number is wanted")
	}
	a := c.eval(n.args[0])
	return c.arithmetic(n.op, a, c.eval(n.args[1]))
}

func (c *calculator) index(n *calcNode) int {
	i := c.eval(n.args[0]).int64()
	if i < 0 || i > 1<<24 {
		c.fail("Array " + n.name + " subscript out of bounds.")
	}
	return int(i)
}

func (c *calculator) get(name string) decimal {
	switch name {
	case "scale":
		return whole64(int64(c.scale))
	case "ibase":
		return whole64(int64(c.ibase))
	case "obase":
		return whole64(int64(c.obase))
	case "last":
		return c.last
	}
	if v, ok := c.vars[name]; ok {
		return v
	}
	return whole64(0)
}

func (c *calculator) set(to *calcNode, v decimal) {
	if to.op == "element" {
		i := c.index(to)
		if c.arrays[to.name] == nil {
			c.arrays[to.name] = map[int]decimal{}
		}
		if _, ok := c.arrays[to.name][i]; !ok {
			c.p.Hold(64 + v.v.BitLen()/8)
		}
		c.arrays[to.name][i] = v
		return
	}
	n := v.int64()
	switch to.name {
	case "scale":
		if n < 0 || n > maxDigits {
			c.fail("scale is out of its bounds")
		}
		c.scale = int(n)
	case "ibase":
		c.ibase = int(min(max(n, 2), 36))
	case "obase":
		c.obase = int(min(max(n, 2), 1<<30))
	case "last":
		c.last = v
	default:
		c.vars[to.name] = v
	}
}

// number reads digits in the base of the input.
func (c *calculator) number(s string) decimal {
	c.p.Charge(len(s) * 4)
	digit := func(ch byte) int64 {
		v := int64(ch - '0')
		if ch >= 'A' {
			v = int64(ch-'A') + 10
		}
		if len(s) > 1 {
			v = min(v, int64(c.ibase)-1)
		}
		return v
	}
	left, right, _ := strings.Cut(s, ".")
	if c.ibase == 10 && strings.Trim(s, "0123456789.") == "" {
		v, ok := new(big.Int).SetString(left+right, 10)
		if !ok {
			v = new(big.Int)
		}
		return decimal{v, len(right)}
	}
	v := new(big.Int)
	base := big.NewInt(int64(c.ibase))
	for i := range left {
		v.Mul(v, base).Add(v, big.NewInt(digit(left[i])))
	}
	if right == "" {
		return decimal{v, 0}
	}
	f, q := new(big.Int), big.NewInt(1)
	for i := range right {
		f.Mul(f, base).Add(f, big.NewInt(digit(right[i])))
		q.Mul(q, base)
	}
	scale := len(right)
	f.Mul(f, power10(scale)).Quo(f, q)
	return decimal{v.Mul(v, power10(scale)).Add(v, f), scale}
}

// work charges an operation on numbers by their sizes, and refuses those that are too large.
func (c *calculator) work(a, b *big.Int) {
	x, y := a.BitLen()/64+1, b.BitLen()/64+1
	c.p.Charge(30 + x*y)
	if x+y > maxDigits/16 {
		c.fail("a number became too large")
	}
}

func (c *calculator) arithmetic(op string, a, b decimal) decimal {
	c.work(a.v, b.v)
	switch op {
	case "+", "-":
		s := max(a.scale, b.scale)
		x, y := a.rescale(s), b.rescale(s)
		if op == "+" {
			return decimal{new(big.Int).Add(x.v, y.v), s}
		}
		return decimal{new(big.Int).Sub(x.v, y.v), s}
	case "*":
		s := a.scale + b.scale
		return decimal{new(big.Int).Mul(a.v, b.v), s}.rescale(min(s, max(c.scale, a.scale, b.scale)))
	case "/":
		return c.divide(a, b, c.scale)
	case "%":
		s := max(c.scale+b.scale, a.scale)
		q := c.divide(a, b, c.scale)
		m := decimal{new(big.Int).Mul(q.v, b.v), q.scale + b.scale}
		r := c.arithmetic("-", a, m)
		return r.rescale(s)
	}
	if b.rescale(0).scale != b.scale && new(big.Int).Mul(b.rescale(0).v, power10(b.scale)).Cmp(b.v) != 0 {
		c.p.Stderrf("Runtime warning (func=(main), adr=0): non-zero scale in exponent\n")
	}
	n := b.int64()
	if n > 1<<30 || n < -1<<30 || int64(a.v.BitLen())*max(n, -n) > maxDigits*4 && a.v.BitLen() > 1 {
		c.fail("exponent too large in raise")
	}
	exp := max(n, -n)
	if exp*int64(a.scale) > maxDigits {
		c.fail("exponent too large in raise")
	}
	v := decimal{new(big.Int).Exp(a.v, big.NewInt(exp), nil), a.scale * int(exp)}
	c.p.Charge(v.v.BitLen() / 8 * max(v.v.BitLen()/4096, 1))
	if n < 0 {
		return c.divide(whole64(1), v, c.scale)
	}
	return v.rescale(min(v.scale, max(c.scale, a.scale)))
}

func (c *calculator) divide(a, b decimal, scale int) decimal {
	if b.v.Sign() == 0 {
		c.fail("Divide by zero")
	}
	shift := scale + b.scale - a.scale
	x, y := a.v, b.v
	if shift >= 0 {
		x = new(big.Int).Mul(x, power10(shift))
	} else {
		y = new(big.Int).Mul(y, power10(-shift))
	}
	c.work(x, y)
	return decimal{new(big.Int).Quo(x, y), scale}
}

func (c *calculator) sqrt(a decimal, scale int) decimal {
	if a.v.Sign() < 0 {
		c.fail("Square root of a negative number")
	}
	v := a.rescale(2 * scale)
	if a.scale > 2*scale {
		v = decimal{new(big.Int).Quo(a.v, power10(a.scale-2*scale)), 2 * scale}
	}
	c.work(v.v, v.v)
	return decimal{new(big.Int).Sqrt(v.v), scale}
}

func (c *calculator) call(n *calcNode) decimal {
	if f, ok := c.functions[n.name]; ok {
		return c.user(f, n)
	}
	arg := func() decimal {
		if len(n.args) != 1 {
			c.fail("Parameter number mismatch")
		}
		return c.eval(n.args[0])
	}
	switch n.name {
	case "length":
		d := arg()
		s := new(big.Int).Abs(d.v).String()
		return whole64(int64(max(len(s), d.scale)))
	case "scale":
		return whole64(int64(arg().scale))
	case "sqrt":
		d := arg()
		return c.sqrt(d, max(c.scale, d.scale))
	case "read":
		c.fail("read has nobody to ask")
	case "s", "c", "a", "l", "e":
		if c.math {
			return c.library(n.name, arg())
		}
	case "j":
		if c.math {
			c.p.Lack(program.LackFeature, "the function j of -l")
			c.fail("the function j is not supported here")
		}
	}
	c.fail("Function " + n.name + " not defined.")
	return decimal{}
}

func (c *calculator) user(f *calcFunction, n *calcNode) decimal {
	if len(n.args) != len(f.params) {
		c.fail("Parameter number mismatch")
	}
	if c.depth++; c.depth > 10_000 {
		c.fail("functions call each other too deep")
	}
	defer func() { c.depth-- }()
	if err := c.p.Account.Enter(); err != nil {
		c.fail(err.Error())
	}
	defer c.p.Account.Leave()
	vars := map[string]decimal{}
	arrays := map[string]map[int]decimal{}
	for i, name := range f.params {
		if base, isArray := strings.CutSuffix(name, "[]"); isArray {
			copied := map[int]decimal{}
			c.p.Charge(len(c.arrays[n.args[i].name]) * 20)
			for k, v := range c.arrays[n.args[i].name] {
				copied[k] = v
			}
			arrays[base] = copied
		} else {
			vars[name] = c.eval(n.args[i])
		}
	}
	for _, name := range f.autos {
		if base, isArray := strings.CutSuffix(name, "[]"); isArray {
			arrays[base] = map[int]decimal{}
		} else {
			vars[name] = whole64(0)
		}
	}
	oldVars, oldArrays := map[string]decimal{}, map[string]map[int]decimal{}
	for name, v := range vars {
		oldVars[name] = c.get(name)
		c.set(&calcNode{op: "var", name: name}, v)
	}
	for name, a := range arrays {
		oldArrays[name] = c.arrays[name]
		c.arrays[name] = a
	}
	c.result = whole64(0)
	for _, s := range f.body {
		if f := c.exec(s); f == calcReturn {
			break
		} else if f == calcQuit {
			c.p.Exit(0)
		}
	}
	result := c.result
	c.result = whole64(0)
	for name, v := range oldVars {
		c.set(&calcNode{op: "var", name: name}, v)
	}
	for name, a := range oldArrays {
		c.arrays[name] = a
	}
	return result
}

// fixed is arithmetic with so many digits behind the point, for the functions of -l.
type fixed struct {
	c   *calculator
	one *big.Int
}

func (f fixed) mul(a, b *big.Int) *big.Int {
	f.c.work(a, b)
	v := new(big.Int).Mul(a, b)
	return v.Quo(v, f.one)
}

func (f fixed) div(a, b *big.Int) *big.Int {
	f.c.work(a, b)
	v := new(big.Int).Mul(a, f.one)
	return v.Quo(v, b)
}

func (f fixed) sqrt(a *big.Int) *big.Int { return new(big.Int).Sqrt(new(big.Int).Mul(a, f.one)) }

func (c *calculator) library(name string, d decimal) decimal {
	extra := 15
	if name == "e" {
		n := d.int64()
		if n > maxDigits {
			c.fail("exponent too large in raise")
		}
		if n < -int64(3*c.scale+10) {
			return decimal{new(big.Int), c.scale}
		}
		extra += int(max(n, 0)/2) + 5
	}
	digits := c.scale + extra
	f := fixed{c, power10(digits)}
	x := d.rescale(digits).v
	var v *big.Int
	switch name {
	case "e":
		v = f.exp(x)
	case "l":
		if x.Sign() <= 0 { // as bc has it
			return decimal{new(big.Int).Quo(new(big.Int).Mul(big.NewInt(1), new(big.Int).Neg(new(big.Int).Sub(power10(c.scale), big.NewInt(1)))), big.NewInt(1)), 0}.divided(c)
		}
		v = f.log(x)
	case "s":
		v = f.sin(x)
	case "c":
		half := new(big.Int).Quo(f.pi(), big.NewInt(2))
		v = f.sin(new(big.Int).Add(x, half))
	default:
		v = f.atan(x)
	}
	return decimal{v, digits}.rescale(c.scale)
}

// divided is what l returns for what has no logarithm: (1 - 10^scale) / 1.
func (d decimal) divided(c *calculator) decimal { return d.rescale(c.scale) }

func (f fixed) exp(x *big.Int) *big.Int {
	halvings := 0
	for y := new(big.Int).Abs(x); y.Cmp(new(big.Int).Rsh(f.one, 3)) > 0; y.Rsh(y, 1) {
		halvings++
	}
	guard := fixed{f.c, new(big.Int).Mul(f.one, power10(halvings/3+5))}
	y := new(big.Int).Mul(x, power10(halvings/3+5))
	y.Quo(y, new(big.Int).Lsh(big.NewInt(1), uint(halvings)))
	sum, term := new(big.Int).Set(guard.one), new(big.Int).Set(guard.one)
	for i := int64(1); term.Sign() != 0; i++ {
		term = guard.mul(term, y)
		term.Quo(term, big.NewInt(i))
		sum.Add(sum, term)
	}
	for range halvings {
		sum = guard.mul(sum, sum)
	}
	return sum.Quo(sum, power10(halvings/3+5))
}

func (f fixed) log(x *big.Int) *big.Int {
	roots := 0
	g := fixed{f.c, new(big.Int).Mul(f.one, power10(10))}
	y := new(big.Int).Mul(x, power10(10))
	near := new(big.Int).Quo(g.one, big.NewInt(10))
	for new(big.Int).Abs(new(big.Int).Sub(y, g.one)).Cmp(near) > 0 {
		y = g.sqrt(y)
		f.c.work(y, y)
		roots++
	}
	z := g.div(new(big.Int).Sub(y, g.one), new(big.Int).Add(y, g.one))
	square, term, sum := g.mul(z, z), new(big.Int).Set(z), new(big.Int).Set(z)
	for i := int64(3); term.Sign() != 0; i += 2 {
		term = g.mul(term, square)
		sum.Add(sum, new(big.Int).Quo(term, big.NewInt(i)))
	}
	sum.Lsh(sum, uint(roots+1))
	return sum.Quo(sum, power10(10))
}

func (f fixed) pi() *big.Int {
	inverse := func(n int64) *big.Int { // the arc tangent of 1/n
		term := new(big.Int).Quo(f.one, big.NewInt(n))
		sum := new(big.Int).Set(term)
		for i, sign := int64(3), false; term.Sign() != 0; i, sign = i+2, !sign {
			f.c.work(term, term)
			term.Quo(term, big.NewInt(n*n))
			t := new(big.Int).Quo(term, big.NewInt(i))
			if sign {
				sum.Add(sum, t)
			} else {
				sum.Sub(sum, t)
			}
		}
		return sum
	}
	v := new(big.Int).Mul(inverse(5), big.NewInt(16))
	return v.Sub(v, new(big.Int).Mul(inverse(239), big.NewInt(4)))
}

func (f fixed) sin(x *big.Int) *big.Int {
	turn := new(big.Int).Lsh(f.pi(), 1)
	x = new(big.Int).Rem(x, turn)
	square, term, sum := f.mul(x, x), new(big.Int).Set(x), new(big.Int).Set(x)
	for i := int64(2); term.Sign() != 0; i += 2 {
		term = f.mul(term, square)
		term.Quo(term, big.NewInt(-i*(i+1)))
		sum.Add(sum, term)
	}
	return sum
}

func (f fixed) atan(x *big.Int) *big.Int {
	doublings := 0
	for near := new(big.Int).Quo(f.one, big.NewInt(10)); new(big.Int).Abs(x).Cmp(near) > 0; doublings++ {
		root := f.sqrt(new(big.Int).Add(f.one, f.mul(x, x)))
		x = f.div(x, root.Add(root, f.one))
	}
	square, term, sum := f.mul(x, x), new(big.Int).Set(x), new(big.Int).Set(x)
	for i := int64(3); term.Sign() != 0; i += 2 {
		term = f.mul(term, square)
		term.Neg(term)
		sum.Add(sum, new(big.Int).Quo(term, big.NewInt(i)))
	}
	return sum.Lsh(sum, uint(doublings))
}

// put writes text, and breaks lines of digits as bc does.
func (c *calculator) put(s string) {
	c.out.WriteString(s)
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		c.column = len(s) - i - 1
	} else {
		c.column += len(s)
	}
}

func (c *calculator) digits(s string) {
	limit := 70
	if v := c.p.Getenv("BC_LINE_LENGTH"); v != "" {
		if n, err := strconv.Atoi(v); err == nil {
			limit = n
		}
	}
	for _, ch := range []byte(s) {
		if c.column++; limit > 0 && c.column == limit-1 {
			c.out.WriteString("\\\n")
			c.column = 1
		}
		_ = c.out.WriteByte(ch)
	}
}

// show writes a number in the base of the output.
func (c *calculator) show(d decimal) {
	c.p.Charge(50 + d.v.BitLen()/4*max(d.v.BitLen()/4096, 1))
	negative := d.v.Sign() < 0
	v := new(big.Int).Abs(d.v)
	var b strings.Builder
	if v.Sign() == 0 {
		c.digits("0")
		return
	}
	if negative {
		b.WriteByte('-')
	}
	if c.obase == 10 {
		s := v.String()
		if len(s) <= d.scale {
			s = strings.Repeat("0", d.scale-len(s)) + s
			b.WriteString("." + s)
		} else {
			b.WriteString(s[:len(s)-d.scale])
			if d.scale > 0 {
				b.WriteString("." + s[len(s)-d.scale:])
			}
		}
		c.digits(b.String())
		return
	}
	unit := power10(d.scale)
	integer, fraction := new(big.Int).QuoRem(v, unit, new(big.Int))
	base := big.NewInt(int64(c.obase))
	width := len(strconv.Itoa(c.obase - 1))
	cell := func(n int64) string {
		if c.obase <= 16 {
			return strings.ToUpper(strconv.FormatInt(n, 16))
		}
		return fmt.Sprintf(" %0*d", width, n)
	}
	var parts []string
	for integer.Sign() > 0 {
		c.work(integer, base)
		r := new(big.Int)
		integer.QuoRem(integer, base, r)
		parts = append(parts, cell(r.Int64()))
	}
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteString(parts[i])
	}
	if d.scale > 0 {
		b.WriteByte('.')
		for t := big.NewInt(1); t.Cmp(unit) < 0; t.Mul(t, base) {
			fraction.Mul(fraction, base)
			r := new(big.Int)
			q, _ := new(big.Int).QuoRem(fraction, unit, r)
			fraction = r
			b.WriteString(cell(q.Int64()))
		}
	}
	c.digits(b.String())
}
