package tools

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentbox/internal/driver/wasm/posix"
	"agentbox/internal/driver/wasm/program"
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
		p.Errorf("syntax error: unexpected argument %s", quote(e.args[e.at]))
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
	re := compile(e.p, 2, "\\`"+strings.TrimPrefix(pattern, "^"), 0)
	m, err := re.FindString(s)
	check(e.p, 2, err)
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
			e.p.Errorf("syntax error: missing argument after %s", quote(e.args[e.at-1]))
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
				e.p.Errorf("syntax error: expecting ')' after %s", quote(e.args[e.at-1]))
			} else {
				e.p.Errorf("syntax error: expecting ')' instead of %s", quote(e.args[e.at]))
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
			p.Errorf("%s is not a valid positive integer", quote(s))
			code = 1
			return
		}
		if n.BitLen() > 64 {
			p.Lack(program.LackFeature, "factors of numbers beyond 64 bits")
			p.Errorf("%s is too large", quote(s))
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

// numfmt writes numbers with units and reads them.
type numberFormat struct {
	p                *program.Process
	from, to         string
	fromUnit, toUnit float64
	round, suffix    string
	padding          int
	format           *posix.Verb
	before, after    string
	invalid          string
	code             int
	precision        int
	fields           string
	delim            string
	header           int
}

func numfmt(p *program.Process) int {
	f := &numberFormat{p: p, from: "none", to: "none", fromUnit: 1, toUnit: 1, round: "from-zero", invalid: "abort", precision: -1, fields: "1"}
	opts, operands := p.Options(1, "d:z", "from=", "to=", "from-unit=", "to-unit=", "round=", "suffix=", "padding=", "format=", "grouping", "invalid=", "field=", "delimiter= d",
		"header=?", "zero-terminated z", "debug")
	unit := func(s string) float64 {
		n, ok := unscale(s, "auto", 0)
		if !ok || n <= 0 {
			p.Errorf("invalid unit size: %s", quote(s))
			p.Exit(1)
		}
		return n
	}
	for _, o := range opts {
		switch o.Name {
		case "from", "to":
			switch o.Value {
			case "none", "auto", "si", "iec", "iec-i":
			default:
				p.Errorf("invalid argument %s for ‘--%s’", quote(o.Value), o.Name)
				p.Stderrf("Valid arguments are:\n  - ‘none’\n  - ‘auto’\n  - ‘si’\n  - ‘iec’\n  - ‘iec-i’\nTry 'numfmt --help' for more information.\n")
				return 1
			}
			if o.Name == "from" {
				f.from = o.Value
			} else {
				f.to = o.Value
			}
		case "from-unit":
			f.fromUnit = unit(o.Value)
		case "to-unit":
			f.toUnit = unit(o.Value)
		case "round":
			f.round = o.Value
		case "suffix":
			f.suffix = o.Value
		case "padding":
			n, err := strconv.Atoi(o.Value)
			if err != nil || n == 0 || n > 10000 || n < -10000 {
				p.Errorf("invalid padding value %s", quote(o.Value))
				return 1
			}
			f.padding = n
		case "grouping":
		case "format":
			i := strings.IndexByte(o.Value, '%')
			if i < 0 {
				p.Errorf("format %s has no %% directive", quote(o.Value))
				return 1
			}
			v, size, ok := posix.ParseVerb(o.Value[i:], func() int { return 0 })
			if !ok || v.Letter != 'f' {
				p.Errorf("invalid format %s, directive must be %%[0]['][-][N][.][N]f", quote(o.Value))
				return 1
			}
			v.Width = min(v.Width, 10000)
			f.format, f.before, f.after, f.precision = &v, o.Value[:i], strings.ReplaceAll(o.Value[i+size:], "%%", "%"), v.Precision
		case "invalid":
			f.invalid = o.Value
		case "field":
			f.fields = o.Value
		case "d":
			f.delim = o.Value
		case "header":
			f.header = 1
			if o.Given {
				f.header = count(p, 1, o.Value, "invalid header value")
			}
		}
	}
	out := p.Out()
	if len(operands) > 0 {
		for _, o := range operands {
			text := f.line(o)
			if f.code != 0 && f.invalid == "abort" {
				return f.code
			}
			out.WriteString(text + "\n")
		}
		return f.code
	}
	in := p.Reader(p.Stdin)
	for n := 0; ; n++ {
		line, _, ok := in.Line('\n')
		if !ok {
			return f.code
		}
		p.Charge(200)
		if n < f.header {
			out.WriteString(string(line) + "\n")
			continue
		}
		s := f.line(string(line))
		if f.code != 0 && f.invalid == "abort" {
			return f.code
		}
		out.WriteString(s + "\n")
	}
}

// wants reports whether a field is converted.
func (f *numberFormat) wants(n int) bool {
	for _, part := range strings.Split(f.fields, ",") {
		if part == "-" {
			return true
		}
		a, b, ranged := strings.Cut(part, "-")
		low, _ := strconv.Atoi(a)
		high, err := strconv.Atoi(b)
		if !ranged {
			high = low
		} else if err != nil {
			high = math.MaxInt
		}
		if n >= low && n <= high {
			return true
		}
	}
	return false
}

func (f *numberFormat) line(s string) string {
	if f.delim != "" {
		cells := strings.Split(s, f.delim)
		for i := range cells {
			if f.wants(i + 1) {
				cells[i] = f.convert(cells[i], 0)
			}
		}
		return strings.Join(cells, f.delim)
	}
	var b strings.Builder
	n := 0
	for s != "" {
		k := len(s) - len(strings.TrimLeft(s, " \t"))
		blank := s[:k]
		s = s[k:]
		end := strings.IndexAny(s, " \t")
		if end < 0 {
			end = len(s)
		}
		cell := s[:end]
		s = s[end:]
		if cell == "" {
			b.WriteString(blank)
			break
		}
		n++
		if !f.wants(n) {
			b.WriteString(blank + cell)
			continue
		}
		width := 0
		if n > 1 && blank != "" { // the room that the field takes stays
			b.WriteByte(' ')
			blank = blank[1:]
		}
		if blank != "" {
			width = len(blank) + len(cell)
		}
		b.WriteString(f.convert(cell, width))
	}
	return b.String()
}

const unitLetters = "KMGTPEZY"

// unscale reads a number with a unit.
func unscale(s, how string, _ int) (float64, bool) {
	i := strings.IndexFunc(s, func(r rune) bool { return strings.ContainsRune(unitLetters+"kiB", r) })
	rest := ""
	if i >= 0 {
		s, rest = s[:i], s[i:]
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.ContainsAny(s, "eExXpPnN_") {
		return 0, false
	}
	if rest == "" {
		return v, true
	}
	power := strings.IndexByte(unitLetters, strings.ToUpper(rest[:1])[0]) + 1
	if power == 0 || how == "none" {
		return 0, false
	}
	factor := 1000.0
	switch {
	case how == "iec" && len(rest) == 1, (how == "iec-i" || how == "auto") && rest[1:] == "i":
		factor = 1024
	case how == "iec-i" || len(rest) > 1:
		return 0, false
	}
	return v * math.Pow(factor, float64(power)), true
}

func (f *numberFormat) rounded(v float64) float64 {
	switch f.round {
	case "up":
		return math.Ceil(v)
	case "down":
		return math.Floor(v)
	case "towards-zero":
		return math.Trunc(v)
	case "nearest":
		return math.Round(v)
	}
	if v < 0 {
		return math.Floor(v)
	}
	return math.Ceil(v)
}

func (f *numberFormat) convert(s string, width int) string {
	text := strings.TrimSuffix(s, f.suffix)
	v, ok := unscale(text, f.from, 0)
	if !ok {
		if f.invalid != "ignore" {
			reason := "invalid number: " + quote(s)
			if i := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != '-' }); i > 0 {
				reason = "invalid suffix in input: " + quote(s)
				if f.from == "none" && strings.ContainsRune(unitLetters, rune(text[i])) {
					reason = "rejecting suffix in input: " + quote(s) + " (consider using --from)"
				}
			}
			f.p.Errorf("%s", reason)
			if f.invalid != "warn" {
				f.code = 2
			}
		}
		return s
	}
	v = v * f.fromUnit / f.toUnit
	var out string
	if f.to == "none" {
		precision := f.precision
		if precision < 0 {
			if precision = 0; f.from == "none" {
				if i := strings.IndexByte(text, '.'); i >= 0 {
					precision = len(text) - i - 1
				}
			}
		}
		scale := math.Pow(10, float64(precision))
		out = strconv.FormatFloat(f.rounded(v*scale)/scale, 'f', precision, 64)
	} else {
		factor := 1000.0
		if f.to != "si" {
			factor = 1024
		}
		power := 0
		for math.Abs(v) >= factor && power < len(unitLetters) {
			v /= factor
			power++
		}
		precision := f.precision
		if precision < 0 {
			precision = 0
			if math.Abs(v) < 10 && power > 0 {
				precision = 1
			}
		}
		scale := math.Pow(10, float64(precision))
		v = f.rounded(v*scale) / scale
		if math.Abs(v) >= factor && power < len(unitLetters) {
			v /= factor
			power++
		}
		if f.precision < 0 {
			precision = 0
			if math.Abs(v) < 10 && power > 0 {
				precision = 1
			}
		}
		out = strconv.FormatFloat(v, 'f', precision, 64)
		if power > 0 {
			out += unitLetters[power-1 : power]
			if f.to == "si" && power == 1 {
				out = strings.TrimSuffix(out, "K") + "K"
			}
			if f.to == "iec-i" {
				out += "i"
			}
		}
	}
	out += f.suffix
	pad := f.padding
	if f.format != nil && f.format.Width > 0 {
		if pad = f.format.Width; f.format.Minus {
			pad = -pad
		}
		if f.format.Zero && len(out) < pad {
			out = strings.Repeat("0", pad-len(out)) + out
		}
	}
	if pad == 0 {
		pad = width
	}
	switch n := utf8.RuneCountInString(out); {
	case pad > n:
		out = strings.Repeat(" ", pad-n) + out
	case -pad > n:
		out += strings.Repeat(" ", -pad-n)
	}
	return f.before + out + f.after
}
