package calc

import (
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
)

// numberFormat is numfmt: it reads numbers with units and writes them.
type numberFormat struct {
	p                *program.Process
	from, to         string
	fromUnit, toUnit *big.Float
	round, suffix    string
	padding          int
	format           *posix.Verb
	before, after    string
	invalid          string
	code             int
	precision        int
	fields           [][2]int
	delim            string
	delimited        bool
	header           int
	end              byte
	grouping         bool
}

const (
	numberBits    = 64 // of a fraction, as in the long double of GNU's
	maxPlain      = 18 // that a number without unit has
	maxRead       = 33 // digits that are read, and powers of ten that are written
	maxPadding    = 1 << 20
	numberUnits   = "none auto si iec iec-i"
	numberInvalid = "abort fail warn ignore"
	numberRounds  = "up down from-zero towards-zero nearest"
)

func numfmt(p *program.Process) int {
	one := big.NewFloat(1).SetPrec(numberBits)
	f := &numberFormat{p: p, from: "none", to: "none", fromUnit: one, toUnit: one, round: "from-zero", invalid: "abort", precision: -1,
		end: '\n'}
	opts, operands := p.Options(1, "d:z", "from=", "to=", "from-unit=", "to-unit=", "round=", "suffix=", "padding=", "format=", "grouping",
		"invalid=", "field=", "delimiter= d",
		"header=?", "zero-terminated z", "debug", "-debug")
	for _, o := range opts {
		f.option(o)
	}
	switch {
	case f.format != nil && f.grouping:
		f.fail("--grouping cannot be combined with --format")
	case f.grouping && f.to != "none":
		f.fail("grouping cannot be combined with --to")
	}
	if f.fields == nil {
		f.fields = [][2]int{{1, 1}}
	}
	out := p.Out()
	if len(operands) > 0 {
		for _, o := range operands {
			f.line(o)
			_ = out.WriteByte(f.end)
		}
		return f.code
	}
	in := p.Reader(p.Stdin)
	for n := 0; ; n++ {
		line, ended, ok := in.Line(f.end)
		if !ok {
			return f.code
		}
		p.Charge(200)
		if n < f.header {
			_, _ = out.Write(line)
		} else {
			f.line(string(line))
		}
		if ended {
			_ = out.WriteByte(f.end)
		}
	}
}

func (f *numberFormat) fail(format string, args ...any) {
	f.p.Errorf(format, args...)
	f.p.Exit(1)
}

// choice returns the one of some words that an option's value begins.
func (f *numberFormat) choice(o program.Option, words string) string {
	var found []string
	for _, w := range strings.Fields(words) {
		if w == o.Value {
			return w
		}
		if o.Value != "" && strings.HasPrefix(w, o.Value) {
			found = append(found, w)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	f.p.Errorf("invalid argument %s for ‘--%s’", gnu.Quote(o.Value), o.Name)
	f.p.Stderrf("Valid arguments are:\n  - ‘%s’\nTry 'numfmt --help' for more information.\n", strings.ReplaceAll(words, " ", "’\n  - ‘"))
	f.p.Exit(1)
	return ""
}

func (f *numberFormat) option(o program.Option) {
	switch o.Name {
	case "from":
		f.from = f.choice(o, numberUnits)
	case "to":
		f.to = f.choice(o, numberUnits)
	case "from-unit":
		f.fromUnit = f.unit(o.Value)
	case "to-unit":
		f.toUnit = f.unit(o.Value)
	case "round":
		f.round = f.choice(o, numberRounds)
	case "invalid":
		f.invalid = f.choice(o, numberInvalid)
	case "suffix":
		f.suffix = o.Value
	case "padding":
		f.pad(o.Value)
	case "grouping":
		f.grouping = true
	case "format":
		f.layout(o.Value)
	case "field":
		if f.fields != nil {
			f.fail("multiple field specifications")
		}
		f.ranges(o.Value)
	case "d":
		if utf8.RuneCountInString(o.Value) > 1 {
			f.fail("the delimiter must be a single character")
		}
		f.delim, f.delimited = o.Value, true
	case "header":
		f.heads(o)
	case "z":
		f.end = 0
	}
}

func (f *numberFormat) pad(s string) {
	n, err := strconv.Atoi(s)
	if err != nil || n == 0 || n > maxPadding || n < -maxPadding {
		f.fail("invalid padding value %s", gnu.Quote(s))
	}
	f.padding = n
}

// heads says how many lines are headings: one where no number is given.
func (f *numberFormat) heads(o program.Option) {
	if f.header = 1; !o.Given {
		return
	}
	if f.header = gnu.ParseCount(f.p, 1, o.Value, "invalid header value"); f.header == 0 {
		f.fail("invalid header value %s", gnu.Quote(o.Value))
	}
}

// unit reads the size of a unit: a number with a letter, which is a power of 1000, or of 1024 with an i behind it.
func (f *numberFormat) unit(s string) *big.Float {
	digits := strings.TrimRight(s, gnu.UnitLetters+"ki")
	n, err := strconv.ParseUint(digits, 10, 64)
	if digits == "" && s != "" {
		n, err = 1, nil
	}
	size := new(big.Float).SetPrec(numberBits).SetUint64(n)
	if rest := s[len(digits):]; err == nil && rest != "" {
		power := strings.IndexByte(gnu.UnitLetters, strings.ToUpper(rest[:1])[0]) + 1
		base := 1000.0
		if rest[1:] == "i" {
			base = 1024
		} else if rest[1:] != "" {
			power = 0
		}
		if power == 0 {
			n = 0
		}
		size.Mul(size, raised(base, power))
	}
	if err != nil || n == 0 || size.Cmp(raised(2, 64)) >= 0 {
		f.fail("invalid unit size: %s", gnu.Quote(s))
	}
	return size
}

// raised returns a power.
func raised(base float64, power int) *big.Float {
	x, b := big.NewFloat(1).SetPrec(numberBits), big.NewFloat(base)
	for range power {
		x.Mul(x, b)
	}
	return x
}

// layout reads a format: a text with one %f.
func (f *numberFormat) layout(s string) {
	at := 0
	for {
		i := strings.IndexByte(s[at:], '%')
		if i < 0 {
			f.fail("format %s has no %% directive", gnu.Quote(s))
		}
		if at += i; !strings.HasPrefix(s[at:], "%%") {
			break
		}
		at += 2
	}
	f.before, s = s[:at], s[at:]
	v, size, ok := posix.ParseVerb(s, func() int { return 0 })
	if !ok || v.Letter != 'f' || strings.Contains(s[:size], "*") {
		f.fail("invalid format %s, directive must be %%[0]['][-][N][.][N]f", gnu.Quote(f.before+s))
	}
	if v.Width > maxPadding {
		f.fail("invalid format %s (width overflow)", gnu.Quote(f.before+s))
	}
	if strings.Contains(strings.ReplaceAll(s[size:], "%%", ""), "%") {
		f.fail("format %s has too many %% directives", gnu.Quote(f.before+s))
	}
	if strings.Contains(s[:size], "'") && f.to != "none" {
		f.fail("grouping cannot be combined with --to")
	}
	f.format, f.after, f.precision = &v, s[size:], v.Precision
	if strings.Contains(s[:size], ".") && v.Precision < 0 {
		f.precision = 0
	}
}

// ranges reads the fields to convert.
func (f *numberFormat) ranges(s string) {
	wrong := func(format string, args ...any) {
		f.p.Errorf(format, args...)
		f.p.Stderrf("Try 'numfmt --help' for more information.\n")
		f.p.Exit(1)
	}
	number := func(s string, none int) int {
		if s == "" {
			return none
		}
		n, err := strconv.Atoi(s)
		switch {
		case strings.Trim(s, "0123456789") != "":
			wrong("invalid field value %s", gnu.Quote(s))
		case err != nil:
			wrong("field number %s is too large", gnu.Quote(s))
		case n == 0:
			wrong("fields are numbered from 1")
		}
		return n
	}
	const all = 1<<63 - 1
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		low, high, ranged := strings.Cut(part, "-")
		if strings.Contains(high, "-") {
			wrong("invalid field range")
		}
		r := [2]int{number(low, 1), all}
		if r[1] = number(high, all); !ranged {
			r[1] = r[0]
		}
		if r[1] < r[0] {
			wrong("invalid decreasing range")
		}
		f.fields = append(f.fields, r)
	}
}

// wants reports whether a field is converted.
func (f *numberFormat) wants(n int) bool {
	for _, r := range f.fields {
		if n >= r[0] && n <= r[1] {
			return true
		}
	}
	return false
}

// line converts the fields of a line and writes it.
func (f *numberFormat) line(s string) {
	out := f.p.Out()
	if f.delimited {
		cells := []string{s}
		if f.delim != "" {
			cells = strings.Split(s, f.delim)
		}
		for i, cell := range cells {
			if i > 0 {
				out.WriteString(f.delim)
			}
			if f.wants(i + 1) {
				f.convert(cell, strings.Trim(cell, " \t"), 0)
			} else {
				out.WriteString(cell)
			}
		}
		return
	}
	for n := 1; n == 1 || s != ""; n++ {
		k := len(s) - len(strings.TrimLeft(s, " \t\n"))
		end := strings.IndexAny(s[k:], " \t\n") + k
		if end < k {
			end = len(s)
		}
		blank, cell := s[:k], s[k:end]
		s = s[end:]
		if n > 1 && blank != "" {
			_ = out.WriteByte(' ')
			blank = blank[1:]
		}
		if !f.wants(n) {
			out.WriteString(blank + cell)
			continue
		}
		width := 0
		if blank != "" { // the room that the field takes stays
			width = len(blank) + utf8.RuneCountInString(cell)
		}
		f.convert(blank+cell, cell, width)
	}
}

// refuse says what is wrong with a number, and writes it as it is.
func (f *numberFormat) refuse(whole, format string, args ...any) {
	if f.invalid != "ignore" {
		f.p.Errorf(format, args...)
	}
	switch f.invalid {
	case "abort":
		f.p.Exit(2)
	case "fail":
		f.code = 2
	}
	f.p.Out().WriteString(whole)
}

// convert writes a field in its other form. whole is the field as it stands there.
func (f *numberFormat) convert(whole, s string, width int) {
	text := s
	if f.suffix != "" {
		text = strings.TrimSuffix(s, f.suffix)
	}
	v, decimals, problem := f.read(text)
	if problem != "" {
		f.refuse(whole, "%s", problem)
		return
	}
	v.Mul(v, f.fromUnit)
	v.Quo(v, f.toUnit)
	digits := 0
	for x := new(big.Float).Abs(v); x.Cmp(big.NewFloat(10)) >= 0 && digits < 100; digits++ {
		x.Quo(x, big.NewFloat(10))
	}
	precision := f.precision
	if precision < 0 {
		precision = decimals
	}
	switch {
	case f.to == "none" && digits+precision > maxPlain && precision > 0:
		f.refuse(whole, "value/precision too large to be printed: '%s/%d' (consider using --to)", v.Text('g', 6), precision)
	case f.to == "none" && digits+precision > maxPlain:
		f.refuse(whole, "value too large to be printed: '%s' (consider using --to)", v.Text('g', 6))
	case digits > maxRead-1:
		f.refuse(whole, "value too large to be printed: '%s' (cannot handle values > 999Q)", v.Text('g', 6))
	case f.to == "none":
		f.show(places(f.rounded(v, precision), precision), width)
	default:
		f.show(f.scaled(v), width)
	}
}

// places writes a number with so many places; -0 is 0.
func places(v *big.Float, precision int) string {
	if v.Sign() == 0 {
		v = new(big.Float)
	}
	return v.Text('f', precision)
}

// show writes a number with what belongs to it, and pads it.
func (f *numberFormat) show(text string, width int) {
	out, pad := f.p.Out(), f.padding
	text += f.suffix
	if f.format != nil && f.format.Width > 0 {
		switch {
		case f.format.Zero && !f.format.Minus:
			if fill := f.format.Width - utf8.RuneCountInString(text); fill > 0 {
				f.p.Hold(fill)
				text = strings.Repeat("0", fill) + text
			}
		case f.format.Minus:
			pad = -f.format.Width
		default:
			pad = f.format.Width
		}
	}
	if pad == 0 {
		pad = width
	}
	n := utf8.RuneCountInString(text)
	out.WriteString(f.before)
	out.Fill(' ', pad-n)
	out.WriteString(text)
	out.Fill(' ', -pad-n)
	out.WriteString(f.after)
}

// read reads a number with a unit. decimals is how many places it has.
func (f *numberFormat) read(s string) (v *big.Float, decimals int, problem string) {
	end := 0
	if strings.HasPrefix(s, "-") {
		end++
	}
	digits := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
		digits++
	}
	if end < len(s) && s[end] == '.' {
		for end++; end < len(s) && s[end] >= '0' && s[end] <= '9'; end++ {
			decimals++
		}
		if digits += decimals; decimals == 0 {
			digits = 0
		}
	}
	if digits == 0 {
		return nil, 0, "invalid number: " + gnu.Quote(s)
	}
	if digits > maxRead || decimals > maxRead {
		return nil, 0, "value too large to be converted: " + gnu.Quote(s)
	}
	v, _, err := big.ParseFloat(s[:end], 10, numberBits, big.ToNearestEven)
	if err != nil {
		return nil, 0, "invalid number: " + gnu.Quote(s)
	}
	rest := strings.TrimLeft(s[end:], " \t")
	if rest == "" {
		return v, decimals, ""
	}
	power := strings.IndexByte(gnu.UnitLetters, rest[0]) + 1
	if rest[0] == 'k' {
		power = 1
	}
	switch {
	case power == 0:
		return nil, 0, "invalid suffix in input: " + gnu.Quote(s)
	case f.from == "none":
		return nil, 0, "rejecting suffix in input: " + gnu.Quote(s) + " (consider using --from)"
	}
	base := 1000.0
	if f.from == "iec" || f.from == "iec-i" {
		base = 1024
	}
	rest = rest[1:]
	switch {
	case f.from == "auto" && strings.HasPrefix(rest, "i"):
		base, rest = 1024, rest[1:]
	case f.from == "iec-i" && strings.HasPrefix(rest, "i"):
		rest = rest[1:]
	case f.from == "iec-i":
		return nil, 0, "missing 'i' suffix in input: " + gnu.Quote(s) + " (e.g Ki/Mi/Gi)"
	}
	if rest != "" {
		return nil, 0, "invalid suffix in input " + gnu.Quote(s) + ": " + gnu.Quote(rest)
	}
	v.Mul(v, raised(base, power))
	return v, 0, ""
}

// rounded rounds to so many places.
func (f *numberFormat) rounded(v *big.Float, decimals int) *big.Float {
	scale := raised(10, min(decimals, maxRead))
	x := new(big.Float).SetPrec(numberBits).Mul(v, scale)
	whole, _ := x.Int(nil)
	exact := new(big.Float).SetPrec(numberBits).SetInt(whole)
	if rest := new(big.Float).Sub(x, exact); rest.Sign() != 0 {
		away := false
		switch f.round {
		case "up":
			away = x.Sign() > 0
		case "down":
			away = x.Sign() < 0
		case "from-zero":
			away = true
		case "nearest":
			away = rest.Abs(rest).Cmp(big.NewFloat(0.5)) >= 0
		}
		if away {
			whole.Add(whole, big.NewInt(int64(x.Sign())))
		}
	}
	exact.SetInt(whole)
	return exact.Quo(exact, scale)
}

// scaled writes a number with a unit.
func (f *numberFormat) scaled(v *big.Float) string {
	base := big.NewFloat(1000)
	if f.to != "si" {
		base = big.NewFloat(1024)
	}
	v = new(big.Float).Copy(v)
	power, ten := 0, big.NewFloat(10)
	small := func(limit *big.Float) bool { return new(big.Float).Abs(v).Cmp(limit) < 0 }
	for ; !small(base) && power < len(gnu.UnitLetters); power++ {
		v.Quo(v, base)
	}
	adjust := 0
	switch {
	case f.precision >= 0:
		adjust = min(power*3, f.precision)
	case small(ten):
		adjust = 1
	}
	if v = f.rounded(v, adjust); !small(base) && power < len(gnu.UnitLetters) {
		v.Quo(v, base)
		power++
	}
	precision := f.precision
	if precision < 0 {
		if precision = 0; v.Sign() != 0 && small(ten) && power > 0 {
			precision = 1
		}
	}
	text := places(v, precision)
	if power == 0 {
		return text
	}
	letter := gnu.UnitLetters[power-1 : power]
	if f.to == "si" && power == 1 {
		letter = "k"
	}
	if f.to == "iec-i" {
		letter += "i"
	}
	return text + letter
}
