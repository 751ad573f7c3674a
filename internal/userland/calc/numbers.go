package calc

import (
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
)

// maxDigits bounds the numbers of expr, factor and bc.
const maxDigits = 100_000

// evaluator is an expr that runs.
type evaluator struct {
	p     *program.Process
	args  []string
	at    int
	depth int
}

func expr(p *program.Process) int {
	e := &evaluator{p: p, args: p.Args[1:]}
	if len(e.args) > 0 && e.args[0] == "--" {
		e.args = e.args[1:]
	}
	if len(e.args) == 0 {
		p.Errorf("missing operand")
		p.Stderrf("Try 'expr --help' for more information.\n")
		return 2
	}
	v := e.or(true)
	if e.at < len(e.args) {
		p.Errorf("syntax error: unexpected argument %s", gnu.Quote(e.args[e.at]))
		return 2
	}
	p.Out().WriteString(v + "\n")
	if null(v) {
		return 1
	}
	return 0
}

// null reports whether a value is empty or zero.
func null(s string) bool {
	return s == "" || s == "-0" || strings.Trim(strings.TrimPrefix(s, "-"), "0") == "" && s != "-"
}

func (e *evaluator) is(op string) bool { return e.at < len(e.args) && e.args[e.at] == op }

func (e *evaluator) or(run bool) string {
	if e.depth++; e.depth > 500 {
		e.p.Errorf("syntax error: the expression nests too deep")
		e.p.Exit(2)
	}
	defer func() { e.depth-- }()
	v := e.and(run)
	for e.is("|") {
		e.at++
		w := e.and(run && null(v))
		if null(v) {
			if v = w; null(w) {
				v = "0"
			}
		}
	}
	return v
}

func (e *evaluator) and(run bool) string {
	v := e.compare(run)
	for e.is("&") {
		e.at++
		w := e.compare(run && !null(v))
		if null(v) || null(w) {
			v = "0"
		}
	}
	return v
}

func (e *evaluator) compare(run bool) string {
	v := e.sum(run)
	for e.at < len(e.args) {
		op := e.args[e.at]
		switch op {
		case "<", "<=", "=", "==", "!=", ">=", ">":
		default:
			return v
		}
		e.at++
		w := e.sum(run)
		c := strings.Compare(v, w)
		if a, ok := integer(v); ok {
			if b, ok := integer(w); ok {
				c = a.Cmp(b)
			}
		}
		yes := map[string]bool{"<": c < 0, "<=": c <= 0, "=": c == 0, "==": c == 0, "!=": c != 0, ">=": c >= 0, ">": c > 0}[op]
		if v = "0"; yes {
			v = "1"
		}
	}
	return v
}

func integer(s string) (*big.Int, bool) {
	if s == "" || len(s) > maxDigits || strings.Trim(strings.TrimPrefix(s, "-"), "0123456789") != "" || s == "-" {
		return nil, false
	}
	return new(big.Int).SetString(s, 10)
}

func (e *evaluator) number(s string, run bool) *big.Int {
	n, ok := integer(s)
	if !ok {
		if !run {
			return big.NewInt(1)
		}
		e.p.Errorf("non-integer argument")
		e.p.Exit(2)
	}
	e.p.Charge(20 + len(s))
	return n
}

func (e *evaluator) sum(run bool) string {
	v := e.product(run)
	for e.is("+") || e.is("-") {
		op := e.args[e.at]
		e.at++
		w := e.product(run)
		a, b := e.number(v, run), e.number(w, run)
		if op == "-" {
			b = new(big.Int).Neg(b)
		}
		v = new(big.Int).Add(a, b).String()
	}
	return v
}

func (e *evaluator) product(run bool) string {
	v := e.match(run)
	for e.is("*") || e.is("/") || e.is("%") {
		op := e.args[e.at]
		e.at++
		w := e.match(run)
		a, b := e.number(v, run), e.number(w, run)
		if op != "*" && b.Sign() == 0 {
			if !run {
				continue
			}
			e.p.Errorf("division by zero")
			e.p.Exit(2)
		}
		switch op {
		case "*":
			a = new(big.Int).Mul(a, b)
		case "/":
			a = new(big.Int).Quo(a, b)
		default:
			a = new(big.Int).Rem(a, b)
		}
		v = a.String()
	}
	return v
}

func (e *evaluator) match(run bool) string {
	v := e.keyword(run)
	for e.is(":") {
		e.at++
		v = e.regexp(v, e.keyword(run), run)
	}
	return v
}

// regexp matches from the begin of a text.
func (e *evaluator) regexp(s, pattern string, run bool) string {
	if !run {
		return ""
	}
	re := gnu.Compile(e.p, 2, "\\`"+strings.TrimPrefix(pattern, "^"), 0)
	m, err := re.FindString(s)
	gnu.Check(e.p, 2, err)
	if re.Groups() > 0 {
		if len(m) == 0 || m[2] < 0 {
			return ""
		}
		return s[m[2]:m[3]]
	}
	if m == nil {
		return "0"
	}
	return strconv.Itoa(utf8.RuneCountInString(s[:m[1]]))
}

func (e *evaluator) next() string {
	if e.at >= len(e.args) {
		if e.at == 0 {
			e.p.Errorf("missing operand")
		} else {
			e.p.Errorf("syntax error: missing argument after %s", gnu.Quote(e.args[e.at-1]))
		}
		e.p.Exit(2)
	}
	e.at++
	return e.args[e.at-1]
}

func (e *evaluator) keyword(run bool) string {
	word := e.next()
	switch word {
	case "(":
		v := e.or(run)
		if !e.is(")") {
			if e.at >= len(e.args) {
				e.p.Errorf("syntax error: expecting ')' after %s", gnu.Quote(e.args[e.at-1]))
			} else {
				e.p.Errorf("syntax error: expecting ')' instead of %s", gnu.Quote(e.args[e.at]))
			}
			e.p.Exit(2)
		}
		e.at++
		return v
	case ")":
		e.p.Errorf("syntax error: unexpected ')'")
		e.p.Exit(2)
	case "+":
		return e.next()
	}
	if e.at >= len(e.args) {
		return word
	}
	switch word {
	case "length":
		return strconv.Itoa(utf8.RuneCountInString(e.keyword(run)))
	case "match":
		s := e.keyword(run)
		return e.regexp(s, e.keyword(run), run)
	case "index":
		s := []rune(e.keyword(run))
		set := e.keyword(run)
		for i, r := range s {
			if strings.ContainsRune(set, r) {
				return strconv.Itoa(i + 1)
			}
		}
		return "0"
	case "substr":
		s := []rune(e.keyword(run))
		from, err1 := strconv.Atoi(e.keyword(run))
		n, err2 := strconv.Atoi(e.keyword(run))
		if err1 != nil || err2 != nil || from < 1 || n < 1 || from > len(s) {
			return ""
		}
		return string(s[from-1 : min(from-1+n, len(s))])
	}
	return word
}

// factor writes the prime factors of numbers.
func factor(p *program.Process) int {
	_, operands := p.Options(1, "h")
	code := 0
	one := func(s string) {
		s = strings.TrimPrefix(strings.TrimSpace(s), "+")
		n, ok := integer(s)
		if !ok || n.Sign() < 0 {
			p.Errorf("%s is not a valid positive integer", gnu.Quote(s))
			code = 1
			return
		}
		if n.BitLen() > 64 {
			p.Lack(program.LackFeature, "factors of numbers beyond 64 bits")
			p.Errorf("%s is too large", gnu.Quote(s))
			code = 1
			return
		}
		out := p.Out()
		out.WriteString(n.String() + ":")
		v := n.Uint64()
		put := func(f uint64) { out.WriteString(" " + strconv.FormatUint(f, 10)) }
		for f := uint64(2); f*f <= v && f < 1<<32; {
			p.Charge(4)
			if v%f == 0 {
				put(f)
				v /= f
				if v > 1<<20 && new(big.Int).SetUint64(v).ProbablyPrime(20) {
					break
				}
				continue
			}
			if f == 2 {
				f = 3
			} else {
				f += 2
			}
			if f == 1025 && new(big.Int).SetUint64(v).ProbablyPrime(20) {
				break
			}
		}
		if v > 1 {
			put(v)
		}
		out.WriteString("\n")
	}
	if len(operands) == 0 {
		for _, w := range strings.Fields(string(p.Reader(p.Stdin).All())) {
			one(w)
		}
		return code
	}
	for _, o := range operands {
		one(o)
	}
	return code
}
