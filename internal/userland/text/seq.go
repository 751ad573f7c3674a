package text

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
)

// seqCommand writes numbers.
type seqCommand struct {
	p         *program.Process
	separator string
	equal     bool
	verb      *posix.Verb // of -f
	before    string
	after     string
	printed   bool
}

// seqNumber is an operand of seq.
type seqNumber struct {
	text     string
	exact    *big.Rat // nil for one that is infinite
	negative bool     // of one that is infinite
	decimals int      // behind its point, -1 where the text does not say
}

// maxExact bounds the exponent of numbers that are written in full.
const maxExact = 5000

func seq(p *program.Process) int {
	c := &seqCommand{p: p, separator: "\n"}
	p.Args = append(p.Args[:1:1], seqOperands(p.Args[1:])...)
	opts, args := p.Options(1, "+f:s:w", "format f", "separator s", "equal-width w")
	format := ""
	for _, o := range opts {
		switch o.Name {
		case "f":
			format = o.Value
		case "s":
			c.separator = o.Value
		case "w":
			c.equal = true
		}
	}
	switch {
	case len(args) == 0:
		gnu.FailUsage(p, 1, "missing operand")
	case len(args) > 3:
		gnu.FailUsage(p, 1, "extra operand ‘%s’", args[3])
	case format != "" && c.equal:
		gnu.FailUsage(p, 1, "format string may not be specified when printing equal width strings")
	}
	if format != "" {
		c.layout(format)
	}
	one := seqNumber{text: "1", exact: big.NewRat(1, 1)}
	first, step, last := one, one, c.number(args[len(args)-1])
	if len(args) > 1 {
		first = c.number(args[0])
	}
	if len(args) > 2 {
		if step = c.number(args[1]); step.exact != nil && step.exact.Sign() == 0 {
			gnu.FailUsage(p, 1, "invalid Zero increment value: ‘%s’", args[1])
		}
	}
	c.write(first, step, last)
	if c.printed {
		_ = p.Out().WriteByte('\n')
	}
	return 0
}

// seqOperands puts -- in front of the first negative number, which is not an option.
func seqOperands(args []string) []string {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--" || a == "" || a[0] != '-':
			return args
		case len(a) > 1 && (a[1] >= '0' && a[1] <= '9' || a[1] == '.') || strings.HasPrefix(a, "-inf") || strings.HasPrefix(a, "-nan"):
			return append(append(args[:i:i], "--"), args[i:]...)
		case a == "-s" || a == "-f" || a == "--separator" || a == "--format":
			i++
		}
	}
	return args
}

// number reads an operand, or ends the program.
func (c *seqCommand) number(s string) seqNumber {
	text := strings.TrimPrefix(strings.TrimLeft(s, " \t\n"), "+")
	x := seqNumber{text: text}
	hex := text
	if lower := strings.ToLower(strings.TrimPrefix(text, "-")); strings.HasPrefix(lower, "0x") && !strings.Contains(lower, "p") {
		hex += "p0"
	}
	f, err := strconv.ParseFloat(hex, 64)
	if strings.ContainsAny(text, "_") || err != nil && !math.IsInf(f, 0) {
		gnu.FailUsage(c.p, 1, "invalid floating point argument: ‘%s’", s)
	}
	if math.IsNaN(f) {
		gnu.FailUsage(c.p, 1, "invalid ‘not-a-number’ argument: ‘%s’", s)
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if hex != text {
		exponent = ""
	}
	power, _ := strconv.Atoi(exponent)
	x.negative = f < 0
	switch letters := strings.Trim(text, "+-.0123456789"); {
	case math.IsInf(f, 0) && strings.ContainsAny(text, "iI"), power > maxExact, power < -maxExact, len(text) > maxExact:
		if x.decimals = -1; f == 0 {
			x.exact = new(big.Rat)
		}
		return x
	case hex == text && (letters == "" || strings.ToLower(letters) == "e"):
		x.exact, _ = new(big.Rat).SetString(text)
		if dot := strings.IndexByte(mantissa, '.'); dot >= 0 {
			x.decimals = len(mantissa) - dot - 1
		}
		x.decimals = max(x.decimals-power, 0)
	default: // hexadecimal
		x.exact, x.decimals = new(big.Rat), -1
		x.exact.SetFloat64(f)
		if x.exact.IsInt() {
			x.decimals = 0
			x.text = x.exact.RatString()
		}
	}
	return x
}

// layout reads a format.
func (c *seqCommand) layout(s string) {
	wrong := func(format string, args ...any) {
		c.p.Errorf(format, args...)
		c.p.Exit(1)
	}
	at := 0
	for {
		i := strings.IndexByte(s[at:], '%')
		if i < 0 {
			wrong("format ‘%s’ has no %% directive", s)
		}
		if at += i; !strings.HasPrefix(s[at:], "%%") {
			break
		}
		at += 2
	}
	v, size, ok := posix.ParseVerb(s[at:], func() int { return 0 })
	switch {
	case v.Letter == 0:
		wrong("format ‘%s’ ends in %%", s)
	case !ok || !strings.Contains("aAeEfFgG", string(v.Letter)) || strings.Contains(s[at:at+size], "*"):
		wrong("format ‘%s’ has unknown %%%c directive", s, v.Letter)
	case v.Width > maxSeqWidth || v.Precision > maxSeqWidth:
		wrong("format ‘%s’ is too wide", s)
	case strings.Contains(strings.ReplaceAll(s[at+size:], "%%", ""), "%"):
		wrong("format ‘%s’ has too many %% directives", s)
	}
	unescape := strings.NewReplacer("%%", "%")
	c.verb, c.before, c.after = &v, unescape.Replace(s[:at]), unescape.Replace(s[at+size:])
}

// maxSeqWidth bounds what a number is filled up to, which is made in memory.
const maxSeqWidth = 1 << 20

// put writes one number.
func (c *seqCommand) put(s string) {
	c.p.Charge(20 + len(s))
	if c.printed {
		c.p.Out().WriteString(c.separator)
	}
	c.printed = true
	c.p.Out().WriteString(s)
}

// write writes the numbers from first to last.
func (c *seqCommand) write(first, step, last seqNumber) {
	switch {
	case first.exact == nil || step.exact == nil:
		c.infinite(first, step, last)
		return
	case first.decimals < 0 || step.decimals < 0 || c.verb != nil:
		c.fractions(first, step, last)
		return
	}
	decimals := max(first.decimals, step.decimals)
	width := 0
	if c.equal {
		width = max(c.width(first, decimals), c.width(last, decimals))
		c.p.Hold(width)
	}
	scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil))
	c.p.Charge(decimals * 4)
	whole := func(r *big.Rat) *big.Int { // the scaled number; behind the point of last, digits do not count
		x := new(big.Rat).Mul(r, scale)
		return new(big.Int).Div(x.Num(), x.Denom())
	}
	at, by := whole(first.exact), whole(step.exact)
	var end *big.Int
	if last.exact != nil {
		if end = whole(last.exact); by.Sign() < 0 {
			x := new(big.Rat).Mul(last.exact, scale)
			end = new(big.Int).Neg(new(big.Int).Div(new(big.Int).Neg(x.Num()), x.Denom()))
		}
	}
	if at.IsInt64() && by.IsInt64() && (end == nil || end.IsInt64()) && decimals == 0 {
		c.short(at.Int64(), by.Int64(), end, last.negative, width, first.text == "-0")
		return
	}
	for {
		if end != nil && at.Cmp(end)*by.Sign() > 0 || end == nil && (by.Sign() > 0) == last.negative {
			return
		}
		c.p.Charge(at.BitLen())
		c.put(filled(pointed(at, decimals), width))
		at.Add(at, by)
	}
}

// short writes whole numbers of 64 bits, and goes on with longer ones behind them.
func (c *seqCommand) short(at, by int64, end *big.Int, negative bool, width int, minus bool) {
	if end == nil && (by > 0) == negative {
		return
	}
	limit := int64(math.MaxInt64)
	if by < 0 {
		limit = math.MinInt64
	}
	if end != nil {
		limit = end.Int64()
	}
	for by > 0 && at <= limit || by < 0 && at >= limit {
		s := strconv.FormatInt(at, 10)
		if minus && at == 0 {
			s = "-0"
		}
		c.put(filled(s, width))
		minus = false
		if by > 0 && at > math.MaxInt64-by || by < 0 && at < math.MinInt64-by {
			return
		}
		at += by
	}
}

// width is how wide an operand is with so many digits behind the point.
func (c *seqCommand) width(x seqNumber, decimals int) int {
	n := len(x.text)
	if x.decimals < 0 || x.exact == nil {
		return 0
	}
	if strings.ContainsAny(x.text, "eE") {
		n = len(x.exact.FloatString(x.decimals))
	}
	n += decimals - x.decimals
	point := strings.Contains(x.text, ".") && !strings.ContainsAny(x.text, "eE") || x.decimals > 0
	switch {
	case point && decimals == 0:
		n--
	case !point && decimals > 0:
		n++
	}
	if strings.HasPrefix(x.text, ".") || strings.HasPrefix(x.text, "-.") {
		n++
	}
	return n
}

// pointed writes a scaled number.
func pointed(n *big.Int, decimals int) string {
	s := n.String()
	if decimals == 0 {
		return s
	}
	digits, minus := strings.CutPrefix(s, "-")
	if len(digits) <= decimals {
		digits = strings.Repeat("0", decimals-len(digits)+1) + digits
	}
	s = digits[:len(digits)-decimals] + "." + digits[len(digits)-decimals:]
	if minus {
		return "-" + s
	}
	return s
}

// filled fills up a number with zeros.
func filled(s string, width int) string {
	if len(s) >= width {
		return s
	}
	digits, minus := strings.CutPrefix(s, "-")
	if minus {
		return "-" + strings.Repeat("0", width-len(s)) + digits
	}
	return strings.Repeat("0", width-len(s)) + s
}

// fractions writes numbers with a format, or with as many digits as they need.
func (c *seqCommand) fractions(first, step, last seqNumber) {
	v := c.verb
	if v == nil {
		v = &posix.Verb{Precision: -1, Letter: 'g'}
	}
	c.p.Hold(max(v.Width, v.Precision, 0) * 4)
	at := new(big.Rat).Set(first.exact)
	for {
		if last.exact != nil && at.Cmp(last.exact)*step.exact.Sign() > 0 || last.exact == nil && (step.exact.Sign() > 0) == last.negative {
			return
		}
		c.p.Charge(200 + max(v.Width, v.Precision, 0))
		f, _ := at.Float64()
		if at.Sign() == 0 && strings.HasPrefix(first.text, "-0") {
			f = math.Copysign(0, -1)
		}
		c.put(c.before + string(v.Float(nil, f)) + c.after)
		at.Add(at, step.exact)
	}
}

// infinite writes a sequence that begins at infinity, or that takes one step into it.
func (c *seqCommand) infinite(first, step, last seqNumber) {
	if first.exact == nil {
		text := "inf"
		if first.negative {
			text = "-inf"
		}
		down := step.negative || step.exact != nil && step.exact.Sign() < 0
		for first.negative && !down && last.exact == nil || !first.negative && down || last.exact == nil && last.negative == first.negative ||
			first.negative && !down {
			c.put(text)
		}
		return
	}
	if last.exact == nil || last.exact.Cmp(first.exact) >= 0 && !step.negative || last.exact.Cmp(first.exact) <= 0 && step.negative {
		c.put(first.text)
	}
}

func yes(p *program.Process) int {
	_, words := p.Options(1, "+")
	line := strings.Join(words, " ") + "\n"
	if len(words) == 0 {
		line = "y\n"
	}
	block := []byte(strings.Repeat(line, max(4096/len(line), 1)))
	for {
		p.Charge(len(block))
		_, _ = p.Out().Write(block)
	}
}
