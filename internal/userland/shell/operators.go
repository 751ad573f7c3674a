package shell

import (
	"strconv"
)

// precedence returns how tightly a binary operator binds, -1 for what is none.
func precedence(t token) int {
	switch t {
	case op('|'):
		return 0
	case op('^'):
		return 1
	case op('&'):
		return 2
	case tokEqual, tokNotEqual:
		return 3
	case tokLessEqual, tokGreaterEqual, op('<'), op('>'):
		return 4
	case tokShiftLeft, tokShiftRight:
		return 5
	case op('+'), op('-'):
		return 6
	case op('*'), op('/'), op('%'):
		return 7
	}
	return -1
}

// level reads operators that bind at least so tightly.
func (a *arithmetic) level(least int) int64 {
	n := a.power()
	for {
		t := a.tok
		p := precedence(t)
		if p < least {
			return n
		}
		a.next()
		operand := a.at
		m := a.level(p + 1)
		if m == 0 && a.noeval == 0 && (t == op('/') || t == op('%')) {
			a.at = operand
		}
		n = a.binary(t, n, m)
		a.name = ""
	}
}

func (a *arithmetic) power() int64 {
	n := a.unary()
	if a.tok != tokPower {
		return n
	}
	if a.depth++; a.depth > maxArithDepth {
		panic(&arithError{text: a.src[:min(len(a.src), 40)] + ": expression recursion level exceeded"})
	}
	defer func() { a.depth-- }()
	a.next()
	m := a.power()
	a.name = ""
	if m < 0 {
		a.fail("exponent less than 0")
	}
	r := int64(1)
	for ; m > 0; m >>= 1 {
		if m&1 != 0 {
			r *= n
		}
		n *= n
	}
	return r
}

func (a *arithmetic) binary(t token, x, y int64) int64 {
	switch t {
	case op('|'):
		return x | y
	case op('^'):
		return x ^ y
	case op('&'):
		return x & y
	case tokEqual:
		return truth(x == y)
	case tokNotEqual:
		return truth(x != y)
	case tokLessEqual:
		return truth(x <= y)
	case tokGreaterEqual:
		return truth(x >= y)
	case op('<'):
		return truth(x < y)
	case op('>'):
		return truth(x > y)
	case tokShiftLeft:
		return x << (uint64(y) & 63)
	case tokShiftRight:
		return x >> (uint64(y) & 63)
	case op('+'):
		return x + y
	case op('-'):
		return x - y
	case op('*'):
		return x * y
	case op('/'), op('%'):
		if y == 0 {
			if a.noeval == 0 {
				a.fail("division by 0")
			}
			y = 1
		}
		if t == op('/') {
			return x / y
		}
		return x % y
	}
	return 0
}

func (a *arithmetic) unary() int64 {
	if a.depth++; a.depth > maxArithDepth {
		panic(&arithError{text: a.src[:min(len(a.src), 40)] + ": expression recursion level exceeded"})
	}
	defer func() { a.depth-- }()
	switch t := a.tok; t {
	case op('!'), op('~'), op('-'), op('+'):
		a.next()
		n := a.unary()
		a.name = ""
		switch t {
		case op('!'):
			return truth(n == 0)
		case op('~'):
			return ^n
		case op('-'):
			return -n
		}
		return n
	case tokIncrement, tokDecrement:
		a.next()
		if a.tok != tokName {
			// As in --5: two signs.
			n := a.unary()
			return n
		}
		name := a.name
		n := a.load(name) + 1
		if t == tokDecrement {
			n -= 2
		}
		a.store(name, n)
		a.next()
		a.name = ""
		return n
	}
	return a.primary()
}

func (a *arithmetic) primary() int64 {
	switch a.tok {
	case op('('):
		a.next()
		n := a.comma()
		if a.tok != op(')') {
			a.fail("missing `)'")
		}
		a.next()
		a.name = ""
		return n
	case tokNumber:
		n := a.num
		a.next()
		if a.tok != tokName {
			a.name = ""
		}
		return n
	case tokName:
		name := a.name
		begin := a.at
		a.next()
		if a.tok == tokIncrement || a.tok == tokDecrement {
			n := a.load(name)
			more := int64(1)
			if a.tok == tokDecrement {
				more = -1
			}
			a.store(name, n+more)
			a.next()
			a.name = ""
			return n
		}
		if a.tok == op('=') {
			a.name = name
			return 0
		}
		after := a.at
		a.at = begin
		n := a.load(name)
		a.at = after
		if a.tok != tokName {
			a.name = name
		}
		return n
	}
	a.fail("syntax error: operand expected")
	return 0
}

// load returns the value of a variable, which is an expression itself.
func (a *arithmetic) load(name string) int64 {
	if a.noeval > 0 {
		return 0
	}
	sh := a.sh
	s, ok := "", false
	if base, sub, element := splitSubscript(name); element {
		v := sh.lookup(base)
		switch {
		case v == nil:
		case v.kind == associative:
			i, has := v.m[subscriptKey(sh, sub)]
			s, ok = i.val, has
		default:
			i := evalArith(sh, sub)
			if i < 0 {
				i += int64(v.top())
			}
			if v.kind == indexed {
				s, ok = v.at(int(i))
			} else if i == 0 {
				s, ok = v.str, v.set
			}
		}
	} else {
		s, ok = sh.get(name)
	}
	if !ok && sh.on[optNounset] {
		unboundVariable(sh, name)
	}
	if n, plain := plainNumber(s); plain {
		return n
	}
	if s == "" {
		return 0
	}
	return evalArith(sh, s)
}

func (a *arithmetic) store(name string, n int64) {
	if a.noeval > 0 {
		return
	}
	val := strconv.FormatInt(n, 10)
	var err error
	if base, sub, element := splitSubscript(name); element {
		err = assignElement(a.sh, base, sub, val, false)
	} else {
		err = a.sh.assign(name, val, false)
	}
	if err != nil {
		panic(&arithError{text: err.Error(), plain: true})
	}
}
