package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// arithmetic evaluates an expression as bash does: while it reads the text, so that the values of variables are expressions too.
type arithmetic struct {
	sh     *shell
	src    string
	pos    int // behind the current token
	tok    token
	at     int    // where the current token begins
	num    int64  // of a number
	name   string // of a variable, with its subscript
	noeval int
	depth  int
}

type token uint16

const (
	tokEnd token = iota
	tokNumber
	tokName
	tokIncrement
	tokDecrement
	tokPower
	tokShiftLeft
	tokShiftRight
	tokLessEqual
	tokGreaterEqual
	tokEqual
	tokNotEqual
	tokAnd
	tokOr
	tokAssign // op= ; the operator is in num
)

// arithError is what is wrong with an expression.
type arithError struct {
	text  string
	plain bool // it is not told behind the name of the command
}

// maxArithDepth bounds how deep expressions lie in each other, by parentheses and by the values of variables.
const maxArithDepth = 1024

// arith evaluates an expression. It prints an error, which discards the command line.
func (sh *shell) arith(expr string) int64 {
	n, err := tryArith(sh, expr)
	if err != nil {
		sh.complain("", "%s", err.text)
		sh.status = 1
		panic(discard{1})
	}
	return n
}

// tryArith evaluates an expression.
func tryArith(sh *shell, expr string) (n int64, err *arithError) {
	if n, ok := plainNumber(expr); ok {
		return n, nil
	}
	defer func() {
		if x := recover(); x != nil {
			e, ok := x.(*arithError)
			if !ok {
				panic(x)
			}
			n, err = 0, e
		}
	}()
	return evalArith(sh, expr), nil
}

func evalArith(sh *shell, expr string) int64 {
	sh.charge(20 + len(expr))
	sh.arithmetic++
	defer func() { sh.arithmetic-- }()
	a := &arithmetic{sh: sh, src: strings.TrimLeft(expr, " \t\n")}
	if sh.arithmetic > maxArithDepth {
		panic(&arithError{text: a.src + ": expression recursion level exceeded" + errorToken(a.src)})
	}
	a.next()
	if a.tok == tokEnd {
		return 0
	}
	n := a.comma()
	if a.tok != tokEnd {
		a.fail("syntax error in expression")
	}
	return n
}

// plainNumber reads a decimal number, which is most of what is evaluated.
func plainNumber(s string) (int64, bool) {
	if len(s) == 0 || len(s) > 18 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	n := int64(0)
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// errorToken names where an expression is wrong.
func errorToken(s string) string { return ` (error token is "` + s + `")` }

func (a *arithmetic) fail(message string) {
	panic(&arithError{text: a.src + ": " + message + errorToken(a.src[min(a.at, len(a.src)):])})
}

// next reads the next token. It is long because it is one switch over the first character of a token.
//
//nolint:cyclop // one case for each token
func (a *arithmetic) next() {
	s := a.src
	i := a.pos
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n') {
		i++
	}
	if i >= len(s) {
		a.tok, a.pos = tokEnd, i
		return
	}
	a.at = i
	c := s[i]
	switch {
	case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		j := i
		for j < len(s) && (s[j] == '_' || s[j] >= 'a' && s[j] <= 'z' || s[j] >= 'A' && s[j] <= 'Z' || s[j] >= '0' && s[j] <= '9') {
			j++
		}
		if j < len(s) && s[j] == '[' {
			end := closing(s, j)
			if end < 0 {
				panic(&arithError{text: s + ": bad array subscript" + errorToken(s[i:])})
			}
			j = end + 1
		}
		a.tok, a.name, a.pos = tokName, s[i:j], j
		return
	case c >= '0' && c <= '9':
		j := i
		for j < len(s) && (s[j] == '_' || s[j] == '#' || s[j] == '@' || s[j] >= 'a' && s[j] <= 'z' || s[j] >= 'A' && s[j] <= 'Z' || s[j] >= '0' &&
			s[j] <= '9') {
			j++
		}
		a.pos = j
		a.number(s[i:j])
		a.tok = tokNumber
		return
	}
	two := ""
	if i+1 < len(s) {
		two = s[i : i+2]
	}
	if i+2 < len(s) && s[i+2] == '=' && (two == "<<" || two == ">>") {
		a.tok, a.pos = tokAssign, i+3
		a.num = int64(tokShiftLeft)
		if two == ">>" {
			a.num = int64(tokShiftRight)
		}
		return
	}
	a.pos = i + 2
	switch two {
	case "++", "--":
		if a.tok != tokName && !beginsName(s[i+2:]) { // two signs
			a.tok, a.pos = token(c)+256, i+1
			return
		}
		a.tok = tokIncrement
		if two == "--" {
			a.tok = tokDecrement
		}
		return
	case "**":
		a.tok = tokPower
		return
	case "<<":
		a.tok = tokShiftLeft
		return
	case ">>":
		a.tok = tokShiftRight
		return
	case "<=":
		a.tok = tokLessEqual
		return
	case ">=":
		a.tok = tokGreaterEqual
		return
	case "==":
		a.tok = tokEqual
		return
	case "!=":
		a.tok = tokNotEqual
		return
	case "&&":
		a.tok = tokAnd
		return
	case "||":
		a.tok = tokOr
		return
	case "+=", "-=", "*=", "/=", "%=", "&=", "^=", "|=":
		a.tok, a.num = tokAssign, int64(c)+256
		return
	}
	a.tok, a.pos = token(c)+256, i+1
}

// beginsName reports whether the name of a variable is what follows.
func beginsName(s string) bool {
	s = strings.TrimLeft(s, " \t\n")
	return s != "" && (s[0] == '_' || s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z')
}

// closing returns where the bracket that opens at i closes, -1 for nowhere.
func closing(s string, i int) int {
	depth := 0
	for ; i < len(s); i++ {
		switch s[i] {
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return i
			}
		case '\\':
			i++
		}
	}
	return -1
}

func op(c byte) token { return token(c) + 256 }

func (a *arithmetic) number(s string) {
	base, digits := int64(10), s
	bad := func(message string) { a.fail(message) }
	if i := strings.IndexByte(s, '#'); i >= 0 {
		b, err := strconv.ParseInt(s[:i], 10, 32)
		if err != nil || b < 2 || b > 64 {
			bad("invalid arithmetic base")
		}
		base, digits = b, s[i+1:]
		if digits == "" {
			bad("invalid integer constant")
		}
	} else if len(s) > 1 && s[0] == '0' {
		if s[1] == 'x' || s[1] == 'X' {
			base, digits = 16, s[2:]
		} else {
			base, digits = 8, s[1:]
		}
	}
	n := int64(0)
	for _, c := range []byte(digits) {
		d := int64(0)
		switch {
		case c >= '0' && c <= '9':
			d = int64(c - '0')
		case c >= 'a' && c <= 'z':
			d = int64(c-'a') + 10
		case c >= 'A' && c <= 'Z':
			if d = int64(c-'A') + 36; base <= 36 {
				d -= 26
			}
		case c == '@':
			d = 62
		case c == '_':
			d = 63
		default:
			bad("invalid number")
		}
		if d >= base {
			bad("value too great for base")
		}
		n = n*base + d
	}
	a.num = n
}

func (a *arithmetic) comma() int64 {
	n := a.assignment()
	for a.tok == op(',') {
		a.next()
		n = a.assignment()
	}
	return n
}

func (a *arithmetic) assignment() int64 {
	if a.depth++; a.depth > maxArithDepth {
		panic(&arithError{text: a.src[:min(len(a.src), 40)] + ": expression recursion level exceeded"})
	}
	defer func() { a.depth-- }()
	isName, name := a.tok == tokName, a.name
	n := a.conditional()
	if a.tok != tokAssign && a.tok != op('=') {
		return n
	}
	if !isName || a.name != name {
		a.fail("attempted assignment to non-variable")
	}
	kind, by := a.tok, token(a.num)
	a.next()
	if a.tok == tokEnd {
		a.fail("syntax error: operand expected")
	}
	val := a.assignment()
	if kind == tokAssign {
		val = a.binary(by, n, val)
	}
	a.store(name, val)
	a.name = ""
	return val
}

func (a *arithmetic) conditional() int64 {
	n := a.or()
	if a.tok != op('?') {
		return n
	}
	a.next()
	if a.tok == tokEnd || a.tok == op(':') {
		a.fail("expression expected")
	}
	if n == 0 {
		a.noeval++
	}
	x := a.comma()
	if n == 0 {
		a.noeval--
	}
	if a.tok != op(':') {
		a.fail("`:' expected for conditional expression")
	}
	a.next()
	if a.tok == tokEnd {
		a.fail("expression expected")
	}
	if n != 0 {
		a.noeval++
	}
	y := a.conditionalOrAssign()
	if n != 0 {
		a.noeval--
	}
	a.name = ""
	if n != 0 {
		return x
	}
	return y
}

func (a *arithmetic) conditionalOrAssign() int64 {
	if a.depth++; a.depth > maxArithDepth {
		panic(&arithError{text: a.src[:min(len(a.src), 40)] + ": expression recursion level exceeded"})
	}
	defer func() { a.depth-- }()
	return a.conditional()
}

func (a *arithmetic) or() int64 {
	n := a.and()
	for a.tok == tokOr {
		a.next()
		if n != 0 {
			a.noeval++
		}
		m := a.and()
		if n != 0 {
			a.noeval--
		}
		n = truth(n != 0 || m != 0)
		a.name = ""
	}
	return n
}

func (a *arithmetic) and() int64 {
	n := a.level(0)
	for a.tok == tokAnd {
		a.next()
		if n == 0 {
			a.noeval++
		}
		m := a.level(0)
		if n == 0 {
			a.noeval--
		}
		n = truth(n != 0 && m != 0)
		a.name = ""
	}
	return n
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// arithExpr returns the text of an expression as it is evaluated: with what stands behind $ expanded.
func arithExpr(sh *shell, x syntax.ArithmExpr) string {
	if x == nil {
		return ""
	}
	if w, ok := x.(*syntax.Word); ok {
		if lit := w.Lit(); lit != "" && strings.IndexByte(lit, '\\') < 0 {
			return lit
		}
	}
	return arithText(sh, codeOf(sh, x))
}

// arithText expands the source text of an expression.
func arithText(sh *shell, raw string) string {
	if strings.ContainsRune(raw, '"') {
		raw = strings.ReplaceAll(raw, `"`, "")
	}
	if !strings.ContainsAny(raw, "$`\\'") {
		return raw
	}
	return sh.documentText(raw)
}
