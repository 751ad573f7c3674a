package tools

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentbox/internal/driver/wasm/posix"
	"agentbox/internal/driver/wasm/program"
)

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
