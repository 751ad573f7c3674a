package awk

import (
	"math"
	"strconv"
	"strings"
)

type kind uint8

const (
	none  kind = iota // never assigned: "" and 0
	isNum             // a number
	isStr             // a text
	input             // a text from outside, which is a number if it looks like one
)

// value is what a variable holds.
type value struct {
	kind kind
	n    float64
	s    string
}

func num(n float64) value { return value{kind: isNum, n: n} }
func str(s string) value  { return value{kind: isStr, s: s} }
func in(s string) value   { return value{kind: input, s: s} }

func truth(b bool) value {
	if b {
		return num(1)
	}
	return num(0)
}

// num returns the value as a number.
func (v value) num() float64 {
	switch v.kind {
	case isNum:
		return v.n
	case isStr, input:
		n, _ := prefix(v.s)
		return n
	}
	return 0
}

// numeric reports whether the value counts as a number where it is compared.
func (v value) numeric() (float64, bool) {
	switch v.kind {
	case isNum:
		return v.n, true
	case input:
		return numeric(v.s)
	case none:
		return 0, true
	}
	return 0, false
}

func (v value) truth() bool {
	switch v.kind {
	case isNum:
		return v.n != 0
	case isStr:
		return v.s != ""
	case input:
		if n, ok := numeric(v.s); ok {
			return n != 0
		}
		return v.s != ""
	}
	return false
}

// str returns the value as a text; a number that is not whole is written as the format says.
func (e *engine) str(v value) string { return e.write(v, e.convfmt) }

func (e *engine) write(v value, format string) string {
	if v.kind != isNum {
		return v.s
	}
	if v.n == math.Trunc(v.n) && math.Abs(v.n) < 1e16 {
		return strconv.FormatInt(int64(v.n), 10)
	}
	switch {
	case math.IsNaN(v.n):
		if math.Signbit(v.n) {
			return "-nan"
		}
		return "nan"
	case math.IsInf(v.n, 1):
		return "inf"
	case math.IsInf(v.n, -1):
		return "-inf"
	case v.n == math.Trunc(v.n):
		return strconv.FormatFloat(v.n, 'f', -1, 64)
	}
	if format == "%.6g" {
		return formatG(v.n, 6)
	}
	return e.sprintf(format, []value{v})
}

func formatG(n float64, precision int) string {
	s := strconv.FormatFloat(n, 'g', precision, 64)
	if mantissa, exponent, ok := strings.Cut(s, "e"); ok {
		if strings.Contains(mantissa, ".") {
			mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
		}
		return mantissa + "e" + exponent
	}
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// array is what subscripts lead into. Its elements stay in the order in which they were made.
type array struct {
	at   map[string]int
	keys []string
	vals []value
	live []bool
}

func newArray() *array { return &array{at: map[string]int{}} }

func (a *array) get(key string) (value, bool) {
	i, ok := a.at[key]
	if !ok {
		return value{}, false
	}
	return a.vals[i], true
}

// slot returns where the element of a key is, making it.
func (e *engine) slot(a *array, key string) int {
	i, ok := a.at[key]
	if !ok {
		e.hold(len(key) + 96)
		i = len(a.keys)
		a.at[strings.Clone(key)] = i
		a.keys = append(a.keys, key)
		a.vals = append(a.vals, value{})
		a.live = append(a.live, true)
	}
	return i
}

func (e *engine) set(a *array, key string, v value) {
	i := e.slot(a, key)
	e.hold(len(v.s) - len(a.vals[i].s))
	a.vals[i] = v
}

func (e *engine) remove(a *array, key string) {
	i, ok := a.at[key]
	if !ok {
		return
	}
	e.hold(-len(key) - 96 - len(a.vals[i].s))
	delete(a.at, key)
	a.live[i], a.keys[i], a.vals[i] = false, "", value{}
	if len(a.keys) > 64 && len(a.at) < len(a.keys)/2 { // close the gaps
		n := 0
		for j, live := range a.live {
			if live {
				a.keys[n], a.vals[n], a.live[n] = a.keys[j], a.vals[j], true
				a.at[a.keys[n]] = n
				n++
			}
		}
		e.tick(len(a.keys))
		clear(a.keys[n:])
		clear(a.vals[n:])
		a.keys, a.vals, a.live = a.keys[:n], a.vals[:n], a.live[:n]
	}
}

func (e *engine) empty(a *array) {
	for i, live := range a.live {
		if live {
			e.hold(-len(a.keys[i]) - 96 - len(a.vals[i].s))
		}
	}
	*a = *newArray()
}

// list returns the keys in order.
func (a *array) list() []string {
	keys := make([]string, 0, len(a.at))
	for i, live := range a.live {
		if live {
			keys = append(keys, a.keys[i])
		}
	}
	return keys
}

// cell is a variable.
type cell struct {
	v   value
	arr *array
	ref *cell // the variable that was given for a parameter and had no value yet
}
