package awk

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
)

// random returns the next number of a sequence that the seed decides.
func random(e *engine, _ []expr) value {
	e.chance += 0x9e3779b97f4a7c15
	z := e.chance
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return num(float64((z^z>>31)>>11) / (1 << 53))
}

func seedChance(e *engine, a []expr) value {
	old := e.seed
	if len(a) > 0 {
		e.seed = uint64(int64(numberOf(e, a[0])))
	} else {
		e.seed = uint64(e.p.Now().Unix())
	}
	e.chance = e.seed
	return num(float64(old))
}

func system(e *engine, a []expr) value {
	if e.sandbox {
		e.fatal("'system' function not allowed in sandbox mode")
	}
	text := e.text(a[0])
	e.flush()
	s, err := e.p.Shell(text)
	if err != nil {
		return num(127)
	}
	if s.Signal != 0 {
		return num(float64(256 + s.Signal))
	}
	return num(float64(s.Code))
}

func strftime(e *engine, a []expr) value {
	format := "%a %b %e %H:%M:%S %Z %Y"
	t := e.p.Now()
	if len(a) > 0 {
		format = e.text(a[0])
	}
	if len(a) > 1 {
		t = time.Unix(int64(numberOf(e, a[1])), 0)
	}
	zone := time.UTC
	if len(a) < 3 || !e.eval(a[2]).truth() {
		zone = zoneOf(e)
	}
	return str(program.Strftime(format, t.In(zone)))
}

func mktime(e *engine, a []expr) value {
	parts := strings.Fields(e.text(a[0]))
	if len(parts) < 6 {
		return num(-1)
	}
	var n [6]int
	for i := range n {
		v, err := strconv.Atoi(parts[i])
		if err != nil {
			return num(-1)
		}
		n[i] = v
	}
	zone := time.UTC
	if len(a) < 2 || !e.eval(a[1]).truth() {
		zone = zoneOf(e)
	}
	return num(float64(time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], 0, zone).Unix()))
}

// zoneOf returns the time zone, which ENVIRON["TZ"] says.
func zoneOf(e *engine) *time.Location {
	v, _ := e.globals[vENVIRON].arr.get("TZ")
	if name := e.str(v); e.local == nil || name != e.localName {
		e.tick(10_000)
		e.local, e.localName = posix.Zone(name), name
	}
	return e.local
}

func strtonum(e *engine, a []expr) value {
	v := e.eval(a[0])
	if v.kind == isNum {
		return v
	}
	s := strings.TrimLeft(e.str(v), " \t\n")
	sign := 1.0
	if strings.HasPrefix(s, "-") {
		sign, s = -1, s[1:]
	}
	base := 0
	switch {
	case strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X"):
		base, s = 16, s[2:]
	case len(s) > 1 && s[0] == '0' && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsDigit(r) }) < 0:
		base = 8
	}
	if base == 0 {
		n, _ := prefix(s)
		return num(sign * n)
	}
	n := 0.0
	for _, c := range []byte(s) {
		d, err := strconv.ParseUint(string(c), base, 8)
		if err != nil {
			break
		}
		n = n*float64(base) + float64(d)
	}
	return num(sign * n)
}

func typeOf(e *engine, a []expr) value {
	if isKnownArray(e, a[0]) {
		return str("array")
	}
	used := false
	switch x := a[0].(type) {
	case *global:
		used = e.globals[x.index].used
	case *local:
		used = e.variable(x).used
	}
	v := e.eval(a[0])
	switch x := a[0].(type) {
	case *global:
		e.globals[x.index].used = used
	case *local:
		e.variable(x).used = used
	}
	switch v.kind {
	case isNum:
		return str("number")
	case isStr:
		return str("string")
	case isRegex:
		return str("regexp")
	case input:
		if _, ok := numeric(v.s); ok {
			return str("strnum")
		}
		return str("string")
	}
	if _, ok := a[0].(*dollar); ok || used {
		return str("unassigned")
	}
	return str("untyped")
}

// lessThan orders numbers before texts, as asort does.
func lessThan(e *engine, a, b value) int {
	x, okX := a.numeric()
	y, okY := b.numeric()
	switch {
	case okX && okY:
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	case okX:
		return -1
	case okY:
		return 1
	}
	s, t := e.str(a), e.str(b)
	if e.fold {
		s, t = lowerCase(e, s), lowerCase(e, t)
	}
	return strings.Compare(s, t)
}

// sortInto sorts the values of an array, or its keys, and numbers them.
func sortInto(e *engine, a []expr, keys bool) value {
	from := e.array(a[0])
	names := elementsOf(e, from)
	e.tick(len(names) * 80)
	how := "@val_type_asc"
	if keys {
		how = "@ind_str_asc"
	}
	if len(a) > 2 {
		how = e.text(a[2])
	}
	sortValues(e, from, names, how)
	vals := make([]value, len(names))
	for i, k := range names {
		if keys {
			vals[i] = str(k)
		} else {
			vals[i], _ = from.get(k)
		}
	}
	to := from
	if len(a) > 1 {
		to = e.array(a[1])
	}
	emptyArray(e, to)
	for i, v := range vals {
		e.set(to, strconv.Itoa(i+1), v)
	}
	return num(float64(len(vals)))
}

// sortedKeysOf returns the keys of an array in the order of for: that in which they were made, or what PROCINFO["sorted_in"] says.
func sortedKeysOf(e *engine, a *array) []string {
	keys := elementsOf(e, a)
	e.tick(len(keys) * 10)
	info := e.globals[vPROCINFO].arr
	if info == nil {
		return keys
	}
	v, ok := info.get("sorted_in")
	if !ok {
		return keys
	}
	e.tick(len(keys) * 40)
	sortValues(e, a, keys, e.str(v))
	return keys
}

// sortValues sorts the keys of an array. The order is a word of gawk's, or the name of a function of the program that compares. Without
// one the keys stay in the order of their making.
func sortValues(e *engine, a *array, keys []string, how string) {
	own := comparisonOf(e, how)
	if own == nil && (how == "" || how == "@unsorted") {
		return
	}
	number := func(s string) float64 { n, _ := prefix(s); return n }
	text := func(v value) string {
		if e.fold {
			return lowerCase(e, e.str(v))
		}
		return e.str(v)
	}
	slices.SortStableFunc(keys, func(x, y string) int {
		c := 0
		vx, _ := a.get(x)
		vy, _ := a.get(y)
		switch {
		case own != nil:
			return own(x, vx, y, vy)
		case strings.HasPrefix(how, "@ind_num"):
			c = cmp.Compare(number(x), number(y))
		case strings.HasPrefix(how, "@val_num"):
			c = cmp.Compare(vx.num(), vy.num())
		case strings.HasPrefix(how, "@val_str"):
			c = strings.Compare(text(vx), text(vy))
		case strings.HasPrefix(how, "@val_type"):
			c = lessThan(e, vx, vy)
		}
		if c == 0 {
			c = strings.Compare(text(str(x)), text(str(y)))
		}
		if strings.HasSuffix(how, "_desc") {
			return -c
		}
		return c
	})
}
