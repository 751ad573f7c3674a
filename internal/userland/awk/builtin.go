package awk

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentbox/internal/userland/posix"
)

// builtin is a function of awk's own.
type builtin func(e *engine, args []expr) value

// arity is how many arguments the functions take.
var arity = map[string][2]int{
	"length": {0, 1}, "substr": {2, 3}, "index": {2, 2}, "split": {2, 4}, "sub": {2, 3}, "gsub": {2, 3}, "gensub": {3, 4}, "match": {2, 3},
	"sprintf": {1, 1 << 16},
	"sin":     {1, 1}, "cos": {1, 1}, "atan2": {2, 2}, "exp": {1, 1}, "log": {1, 1}, "sqrt": {1, 1}, "int": {1, 1}, "rand": {0, 0},
	"srand":   {0, 1},
	"tolower": {1, 1}, "toupper": {1, 1}, "system": {1, 1}, "close": {1, 2}, "fflush": {0, 1}, "strftime": {0, 3}, "systime": {0, 0},
	"mktime": {1, 2},
	"and":    {2, 1 << 16}, "or": {2, 1 << 16}, "xor": {2, 1 << 16}, "lshift": {2, 2}, "rshift": {2, 2}, "compl": {1, 1}, "asort": {1, 3},
	"asorti":   {1, 3},
	"strtonum": {1, 1}, "typeof": {1, 1}, "isarray": {1, 1}, "patsplit": {2, 4},
}

var builtins map[string]builtin = map[string]builtin{
	"length": length, "substr": substr, "index": index, "split": split, "sub": sub, "gsub": gsub, "gensub": gensub, "match": matchOf,
	"sprintf": sprintf,
	"sin":     float(math.Sin), "cos": float(math.Cos), "exp": exponential, "log": positive("log", math.Log), "sqrt": positive("sqrt",
		math.Sqrt),
	"int":     float(math.Trunc),
	"atan2":   func(e *engine, a []expr) value { y := numberOf(e, a[0]); return num(math.Atan2(y, numberOf(e, a[1]))) },
	"rand":    random,
	"srand":   seedChance,
	"tolower": func(e *engine, a []expr) value { return str(strings.ToLower(e.text(a[0]))) },
	"toupper": func(e *engine, a []expr) value { return str(strings.ToUpper(e.text(a[0]))) },
	"system":  system,
	"close":   closing,
	"fflush": func(e *engine, a []expr) value {
		if len(a) > 0 {
			e.text(a[0])
		}
		e.flush()
		return num(0)
	},
	"systime":  func(e *engine, _ []expr) value { return num(float64(e.p.Now().Unix())) },
	"strftime": strftime,
	"mktime":   mktime,
	"and":      bits(func(a, b uint64) uint64 { return a & b }),
	"or":       bits(func(a, b uint64) uint64 { return a | b }),
	"xor":      bits(func(a, b uint64) uint64 { return a ^ b }),
	"lshift":   bits(func(a, b uint64) uint64 { return a << b }),
	"rshift":   bits(func(a, b uint64) uint64 { return a >> b }),
	"compl":    func(e *engine, a []expr) value { return num(float64(^uint64(numberOf(e, a[0])) & (1<<53 - 1))) },
	"asort":    func(e *engine, a []expr) value { return sortInto(e, a, false) },
	"asorti":   func(e *engine, a []expr) value { return sortInto(e, a, true) },
	"strtonum": strtonum,
	"typeof":   typeOf,
	"isarray":  func(e *engine, a []expr) value { return truth(isKnownArray(e, a[0])) },
	"patsplit": patsplit,
}

func numberOf(e *engine, x expr) float64 { return e.eval(x).num() }

func (e *engine) text(x expr) string {
	s := e.str(e.eval(x))
	e.tick(len(s) / 8)
	return s
}

func float(f func(float64) float64) builtin {
	return func(e *engine, a []expr) value { return num(f(numberOf(e, a[0]))) }
}

// positive is a function of numbers that are not negative.
func positive(name string, f func(float64) float64) builtin {
	return func(e *engine, a []expr) value {
		n := numberOf(e, a[0])
		if n < 0 {
			e.warn("%s: received negative argument %s", name, formatG(n, 6))
			return num(math.Copysign(math.NaN(), -1))
		}
		return num(f(n))
	}
}

func exponential(e *engine, a []expr) value {
	n := numberOf(e, a[0])
	v := math.Exp(n)
	if math.IsInf(v, 0) && !math.IsInf(n, 0) {
		e.warn("exp: argument %s is out of range", formatG(n, 6))
	}
	return num(v)
}

// closing is close: of both ends of a stream, or of the one that "to" and "from" name.
func closing(e *engine, a []expr) value {
	name, which := e.text(a[0]), ""
	if len(a) > 1 {
		which = strings.ToLower(e.text(a[1]))
		if which != "to" && which != "from" {
			e.fatal("close: second argument must be `to' or `from'")
		}
	}
	return num(closeStream(e, name, which))
}

// lowerCase is a text as it is compared where IGNORECASE is set.
func lowerCase(e *engine, s string) string {
	e.tick(len(s) / 8)
	e.fit(len(s))
	return strings.ToLower(s)
}

// charactersOf counts those of a text.
func charactersOf(e *engine, s string) int {
	if e.octets {
		return len(s)
	}
	return utf8.RuneCountInString(s)
}

func bits(f func(a, b uint64) uint64) builtin {
	return func(e *engine, a []expr) value {
		n := numberOf(e, a[0])
		v := uint64(n)
		for _, x := range a[1:] {
			m := numberOf(e, x)
			if n < 0 || m < 0 {
				e.fatal("negative values are not allowed in operations on bits")
			}
			v = f(v, uint64(m))
		}
		return num(float64(v))
	}
}

func isKnownArray(e *engine, x expr) bool {
	return knownArray(e, x) != nil
}

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func length(e *engine, a []expr) value {
	if len(a) == 0 {
		e.refresh()
		return num(float64(charactersOf(e, e.record)))
	}
	if isKnownArray(e, a[0]) {
		return num(float64(len(e.array(a[0]).at)))
	}
	return num(float64(charactersOf(e, e.text(a[0]))))
}

// round rounds half to even, as the C library does.
func substr(e *engine, a []expr) value {
	s := e.text(a[0])
	from := max(math.Trunc(numberOf(e, a[1])), 1) // what begins before the first character is no shorter for that
	to := math.Inf(1)
	if len(a) > 2 {
		to = from + math.Trunc(numberOf(e, a[2]))
	}
	if math.IsNaN(from) || math.IsNaN(to) {
		return str("")
	}
	if ascii(s) {
		to = min(to, float64(len(s)+1))
		if from >= to {
			return str("")
		}
		return str(s[int(from)-1 : int(to)-1])
	}
	r := []rune(s)
	to = min(to, float64(len(r)+1))
	if from >= to {
		return str("")
	}
	return str(string(r[int(from)-1 : int(to)-1]))
}

func index(e *engine, a []expr) value {
	s, part := e.text(a[0]), e.text(a[1])
	if e.fold {
		s, part = lowerCase(e, s), lowerCase(e, part)
	}
	i := strings.Index(s, part)
	if i < 0 {
		return num(0)
	}
	return num(float64(utf8.RuneCountInString(s[:i]) + 1))
}

func split(e *engine, a []expr) value {
	s := e.text(a[0])
	fs := e.fs
	if len(a) > 2 {
		fs = regexText(e, a[2])
		if m, ok := a[2].(*match); ok {
			if fs = m.source; fs == " " {
				fs = "[ ]"
			}
		}
	}
	seps := []string(nil)
	if len(a) > 3 {
		seps = []string{}
	}
	parts, seps := cutFields(e, nil, seps, s, fs)
	fillArray(e, e.array(a[1]), parts)
	if len(a) > 3 {
		to := e.array(a[3])
		emptyArray(e, to)
		for i, x := range seps {
			if fs != " " {
				i++
			} else if x == "" {
				continue
			}
			e.set(to, strconv.Itoa(i), str(x))
		}
	}
	return num(float64(len(parts)))
}

func fillArray(e *engine, to *array, parts []string) {
	emptyArray(e, to)
	for i, x := range parts {
		e.tick(30)
		e.set(to, strconv.Itoa(i+1), in(x))
	}
}

func patsplit(e *engine, a []expr) value {
	s := e.text(a[0])
	pattern := e.fpat
	if len(a) > 2 {
		pattern = regexText(e, a[2])
	}
	all, err := e.compile(pattern).FindAllString(s, -1)
	e.check(err)
	parts := make([]string, len(all))
	seps, last := make([]string, 0, len(all)+1), 0
	for i, m := range all {
		parts[i] = s[m[0]:m[1]]
		seps = append(seps, s[last:m[0]])
		last = m[1]
	}
	seps = append(seps, s[last:])
	fillArray(e, e.array(a[1]), parts)
	if len(a) > 3 {
		to := e.array(a[3])
		emptyArray(e, to)
		for i, x := range seps {
			e.set(to, strconv.Itoa(i), str(x))
		}
	}
	return num(float64(len(parts)))
}

// substitutionTarget returns the text that sub and gsub change, and where it goes.
func substitutionTarget(e *engine, a []expr) (expr, string) {
	if len(a) < 3 {
		e.refresh()
		return &dollar{&number{num(0)}}, e.record
	}
	to := a[2]
	if g, ok := to.(*group); ok && len(g.list) == 1 {
		to = g.list[0]
	}
	return to, e.str(e.eval(to))
}

func sub(e *engine, a []expr) value  { return substitute(e, a, 1) }
func gsub(e *engine, a []expr) value { return substitute(e, a, -1) }

func substitute(e *engine, a []expr, n int) value {
	re := e.compile(regexText(e, a[0]))
	with := e.text(a[1])
	to, s := substitutionTarget(e, a)
	all, err := re.FindAllString(s, n)
	e.check(err)
	if len(all) == 0 {
		return num(0)
	}
	var b []byte
	last, fitted := 0, 0
	plain := !strings.ContainsAny(with, `\&`)
	for _, m := range all {
		b = appendText(e, b, s[last:m[0]])
		last = m[1]
		if plain {
			b = append(b, with...)
			e.tick(10)
		} else {
			b = expandReplacement(e, b, with, s, m, false)
		}
		e.fit(len(with))
		if len(b)-fitted > 1<<20 {
			e.fit(len(b))
			fitted = len(b)
		}
	}
	b = appendText(e, b, s[last:])
	e.fit(len(b))
	if isLvalue(to) {
		e.store(to, str(e.p.Text(b)))
	}
	return num(float64(len(all)))
}

// expandReplacement appends a replacement: & is what matched, and, where groups may be referred to, \1 and the like.
func expandReplacement(e *engine, b []byte, with, s string, m []int, groups bool) []byte {
	e.tick(len(with))
	for i := 0; i < len(with); i++ {
		c := with[i]
		switch {
		case c == '&':
			b = append(b, s[m[0]:m[1]]...)
		case c == '\\' && i+1 < len(with):
			d := with[i+1]
			if run := len(with[i:]) - len(strings.TrimLeft(with[i:], `\`)); !groups && run > 1 && strings.HasPrefix(with[i+run:], "&") {
				// each two are one
				for range run / 2 {
					b = append(b, '\\')
				}
				if i += run; run%2 == 0 {
					b = append(b, s[m[0]:m[1]]...)
				} else {
					b = append(b, '&')
				}
				continue
			}
			switch {
			case d == '&' || groups && d == '\\':
				b = append(b, d)
				i++
			case groups && d >= '0' && d <= '9':
				if g := int(d - '0'); 2*g+1 < len(m) && m[2*g] >= 0 {
					b = append(b, s[m[2*g]:m[2*g+1]]...)
				}
				i++
			default:
				b = append(b, c)
			}
		default:
			b = append(b, c)
		}
	}
	return b
}

func gensub(e *engine, a []expr) value {
	re := e.compile(regexText(e, a[0]))
	with := e.text(a[1])
	how := e.eval(a[2])
	nth := 1
	every := false
	if s := e.str(how); s != "" && (s[0] == 'g' || s[0] == 'G') {
		every = true
	} else if nth = int(how.num()); nth < 1 {
		e.warn("gensub: third argument `%s' treated as 1", s)
		nth = 1
	}
	var s string
	if len(a) > 3 {
		s = e.text(a[3])
	} else {
		e.refresh()
		s = e.record
	}
	limit := nth
	if every {
		limit = -1
	}
	all, err := re.FindAllString(s, limit)
	e.check(err)
	if len(all) < nth {
		return str(s)
	}
	var b []byte
	last := 0
	for _, m := range all[nth-1:] {
		b = appendText(e, b, s[last:m[0]])
		last = m[1]
		b = expandReplacement(e, b, with, s, m, true)
		e.fit(len(with))
	}
	b = appendText(e, b, s[last:])
	e.fit(len(b))
	return str(e.p.Text(b))
}

func matchOf(e *engine, a []expr) value {
	s := e.text(a[0])
	m, err := e.compile(regexText(e, a[1])).FindString(s)
	e.check(err)
	start, size := 0, -1
	if m != nil {
		start = utf8.RuneCountInString(s[:m[0]]) + 1
		size = utf8.RuneCountInString(s[m[0]:m[1]])
	}
	assignSpecial(e, vRSTART, num(float64(start)))
	assignSpecial(e, vRLENGTH, num(float64(size)))
	if len(a) > 2 {
		to := e.array(a[2])
		emptyArray(e, to)
		for g := 0; 2*g < len(m); g++ {
			if m[2*g] < 0 {
				continue
			}
			key := strconv.Itoa(g)
			e.set(to, key, in(s[m[2*g]:m[2*g+1]]))
			e.set(to, key+e.subsep+"start", num(float64(utf8.RuneCountInString(s[:m[2*g]])+1)))
			e.set(to, key+e.subsep+"length", num(float64(utf8.RuneCountInString(s[m[2*g]:m[2*g+1]]))))
		}
	}
	return num(float64(start))
}

func sprintf(e *engine, a []expr) value {
	format := e.text(a[0])
	args := make([]value, len(a)-1)
	for i, x := range a[1:] {
		args[i] = e.eval(x)
	}
	return str(formatText(e, format, args))
}

func formatText(e *engine, format string, args []value) string {
	given, at := args, 0
	next := func() value {
		if len(args) == 0 {
			mark := strings.Repeat(" ", max(at-1, 0))
			e.fatal("not enough arguments to satisfy format string\n\t`%s'\n\t%s^ ran out for this one", format, " "+mark)
		}
		v := args[0]
		args = args[1:]
		return v
	}
	var b []byte
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b = append(b, format[i])
			continue
		}
		at = i + 1
		if end := strings.TrimLeft(format[i+1:], "0123456789"); strings.HasPrefix(end, "$") && len(end) < len(format)-i-1 {
			n, _ := strconv.Atoi(format[i+1 : len(format)-len(end)])
			if n < 1 || n > len(given) {
				e.fatal("arg count %d greater than total number of supplied arguments", n)
			}
			args = given[n-1:]
			format, i = "%"+end[1:], 0
		}
		v, size, ok := posix.ParseVerb(format[i:], func() int { return int(next().num()) })
		if !ok {
			b = append(b, format[i:i+size]...)
			i += size - 1
			continue
		}
		i += size - 1
		if v.Width > 1<<20 || v.Precision > 1<<20 {
			e.fatal("a width of a format is too large")
		}
		switch v.Letter {
		case '%':
			b = append(b, '%')
		case 'c':
			x := next()
			s := ""
			if n, ok := x.numeric(); ok && x.kind != none {
				s = string(rune(n))
			} else if s = e.str(x); s != "" {
				_, size := utf8.DecodeRuneInString(s)
				s = s[:size]
			} else {
				s = "\x00"
			}
			v.Precision = -1
			b = v.String(b, s)
		case 's':
			x := next()
			b = v.String(b, e.str(x))
		default:
			n := next().num()
			switch {
			case math.IsNaN(n) || math.IsInf(n, 0):
				v.Precision = -1
				b = v.String(b, e.write(num(n), ""))
			case strings.IndexByte("dioxXu", v.Letter) >= 0:
				b = v.Number(b, n)
			default:
				b = v.Float(b, n)
			}
		}
		e.fit(len(b) / 4)
	}
	e.fit(len(b))
	return string(b)
}
