package calc

import (
	"math/big"
	"strings"

	"agentbox/internal/userland/program"
)

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
