package awk

import (
	"iter"
	"math"
	"strconv"
	"strings"
)

type kind uint8

const (
	none    kind = iota // never assigned: "" and 0
	isNum               // a number
	isStr               // a text
	input               // a text from outside, which is a number if it looks like one
	isRegex             // an expression, as a text
)

// value is the value of a variable.
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
	case isStr, input, isRegex:
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
	case isStr, isRegex:
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
		return "+nan"
	case math.IsInf(v.n, 1):
		return "+inf"
	case math.IsInf(v.n, -1):
		return "-inf"
	case v.n == math.Trunc(v.n):
		return strconv.FormatFloat(v.n, 'f', 0, 64) // with all its digits
	}
	if format == "%.6g" {
		return formatG(v.n, 6)
	}
	return formatText(e, format, []value{v})
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

// array is what subscripts lead into. Its elements stay in the order in which they were made. They lie in pieces, so that it never grows
// by copying all of them in one step.
type array struct {
	at     map[string]int
	pieces [][]entry
	depth  int // of arrays in which it lies
	n      int // elements, those that were removed and whose gaps are not closed yet among them
}

// entry is an element of an array; one that was removed is not live.
type entry struct {
	key  string
	val  value
	arr  *array // where the element is one
	live bool
}

// pieceEntries is how many elements each piece of an array has; the last may have fewer.
const pieceEntries = 1_024

func newArray() *array { return &array{at: map[string]int{}} }

func (a *array) get(key string) (value, bool) {
	i, ok := a.at[key]
	if !ok {
		return value{}, false
	}
	return a.entry(i).val, true
}

func (a *array) entry(i int) *entry { return &a.pieces[i/pieceEntries][i%pieceEntries] }

// slot returns the element of a key, making it.
func (e *engine) slot(a *array, key string) *entry {
	if i, ok := a.at[key]; ok {
		return a.entry(i)
	}
	e.hold(len(key) + 104)
	key = strings.Clone(key)
	a.at[key] = a.n
	if a.n%pieceEntries == 0 {
		a.pieces = append(a.pieces, nil)
	}
	last := &a.pieces[len(a.pieces)-1]
	*last = append(*last, entry{key: key, live: true})
	a.n++
	return a.entry(a.n - 1)
}

func (e *engine) set(a *array, key string, v value) {
	at := e.slot(a, key)
	if at.arr != nil {
		e.fatal("attempt to use an array in a scalar context")
	}
	e.hold(len(v.s) - len(at.val.s))
	at.val = v
}

func removeElement(e *engine, a *array, key string) {
	i, ok := a.at[key]
	if !ok {
		return
	}
	at := a.entry(i)
	dropElement(e, at)
	e.hold(-len(key) - 104 - len(at.val.s))
	delete(a.at, key)
	*at = entry{}
	if a.n <= 64 || len(a.at) >= a.n/2 {
		return
	}
	closed := 0 // the gaps are closed
	for piece := range a.live(e) {
		for k := range piece {
			if piece[k].live {
				*a.entry(closed), a.at[piece[k].key] = piece[k], closed
				closed++
			}
		}
	}
	for ; a.n > closed; a.n-- {
		*a.entry(a.n - 1) = entry{}
	}
	pieces := (closed + pieceEntries - 1) / pieceEntries
	clear(a.pieces[pieces:])
	a.pieces = a.pieces[:pieces]
	if rest := closed % pieceEntries; rest > 0 {
		a.pieces[pieces-1] = a.pieces[pieces-1][:rest]
	}
}

// live returns the pieces of an array, each after it was charged for.
func (a *array) live(e *engine) iter.Seq[[]entry] {
	return func(yield func([]entry) bool) {
		for _, piece := range a.pieces {
			e.tick(len(piece))
			if !yield(piece) {
				return
			}
		}
	}
}

func emptyArray(e *engine, a *array) {
	for piece := range a.live(e) {
		for i := range piece {
			if piece[i].live {
				dropElement(e, &piece[i])
				e.hold(-len(piece[i].key) - 104 - len(piece[i].val.s))
			}
		}
	}
	depth := a.depth
	*a = *newArray()
	a.depth = depth
}

// elementsOf returns the keys in order.
func elementsOf(e *engine, a *array) []string {
	keys := make([]string, 0, len(a.at))
	for piece := range a.live(e) {
		for i := range piece {
			if piece[i].live {
				keys = append(keys, piece[i].key)
			}
		}
	}
	return keys
}

// cell is a variable.
type cell struct {
	v    value
	used bool // it was read as a value, so that it can be no array
	arr  *array
	from string // what the array is called that was given for a parameter
	ref  *cell  // the variable that was given for a parameter and had no value yet
	at   place  // the element that was given for one and had none
}
