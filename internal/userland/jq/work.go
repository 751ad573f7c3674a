package jq

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"reflect"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/itchyny/gojq"

	"agentbox/internal/userland/bound"
)

// Costs and limits of jq's functions. Its machine calls each of them as one instruction.
const (
	gasPerElement = 10
	elementBytes  = 16      // of an array
	entryBytes    = 64      // of an object
	maxBits       = 1 << 12 // of a whole number; a larger one becomes a fraction, as all numbers of jq are
)

// native is a function of jq's machine.
type native = func(v any, args []any) any

// meterFunctions has every function that a program calls count its work. The library has no place for that: its instructions are reached by
// reflection, and where they are not as they are known, the program is not run.
func meterFunctions(q *querier, code *gojq.Code) error {
	list := reflect.ValueOf(code).Elem().FieldByName("codes")
	if list.Kind() != reflect.Slice {
		return errJQ
	}
	for i := range list.Len() {
		op, field := list.Index(i).Elem().FieldByName("op"), list.Index(i).Elem().FieldByName("v")
		if !op.IsValid() || !op.CanInt() || !field.IsValid() || !field.CanAddr() {
			return errJQ
		}
		at, ok := reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Interface().(*any)
		if !ok {
			return errJQ
		}
		call, ok := (*at).([3]any)
		if calls := op.Int() == opCall; ok != calls || !ok && !isData(*at) {
			if _, defined := (*at).(int); calls && defined { // a function of the program's own
				continue
			}
			return errJQ
		}
		if !ok {
			continue
		}
		f, ok := call[0].(native)
		name, named := call[2].(string)
		if !ok || !named {
			return errJQ
		}
		call[0] = meteredFunctions(q, name, f)
		*at = call
	}
	return nil
}

// opCall is the number of the instruction that calls a function of the library, and the only one that does.
const opCall = 19

// isData reports whether the operand of an instruction is one of those that are known, none of which can be called.
func isData(v any) bool {
	switch v.(type) {
	case nil, bool, int, [2]int, [3]int, float64, *big.Int, json.Number, string, []any, map[string]any:
		return true
	}
	return false
}

var errJQ = errors.New("this build's jq cannot be bounded")

// meteredFunctions is a function that is charged, and whose long work can be stopped on the way.
func meteredFunctions(q *querier, name string, f native) native {
	own := map[string]native{
		"_add": q.add, "_multiply": q.multiply, "_subtract": q.subtract, "add": q.sum(f), "join": q.join, "contains": q.contains,
		"inside": q.inside, "indices": q.indices(everywhere),
		"index": q.indices(first), "rindex": q.indices(last), "_index": q.index, "sort": q.sorts(sorted), "_sort_by": q.sorts(sorted),
		"unique": q.sorts(unique), "_unique_by": q.sorts(unique),
		"_group_by": q.sorts(grouped), "min": q.extreme(true), "_min_by": q.extreme(true), "max": q.extreme(false), "_max_by": q.extreme(false),
		"keys":   q.sortedKeys,
		"_equal": q.compares(func(o int) bool { return o == 0 }), "_notequal": q.compares(func(o int) bool { return o != 0 }),
		"_greater": q.compares(func(o int) bool { return o > 0 }),
		"_less":    q.compares(func(o int) bool { return o < 0 }), "_greatereq": q.compares(func(o int) bool { return o >= 0 }),
		"_lesseq": q.compares(func(o int) bool { return o <= 0 }),
		"reverse": q.reverse, "delpaths": q.deletes, "_delpaths": q.deletes, "setpath": q.set, "_setpath": q.set,
		"ascii_downcase": q.piecewise(f, false), "ascii_upcase": q.piecewise(f, false), "_tohtml": q.piecewise(f, false), "_touri": q.piecewise(f,
			false), "_tobase64": q.piecewise(f, true),
		"_match": q.match, "tojson": q.toJSON, "tostring": q.toString, "length": q.length, "explode": q.explode, "implode": q.implode,
		"split":     q.split,
		"transpose": q.transpose, "flatten": q.flatten, "fromjson": q.fromJSON, "getpath": q.getPath(f),
	}[name]
	if name == "_add" || name == "_subtract" || name == "_multiply" || name == "_divide" {
		f = doubles(f)
	}
	return func(v any, args []any) any {
		switch {
		case name == "length", name == "_add", name == "_multiply", name == "_match": // they count for themselves
		case strings.HasPrefix(name, "_") && len(args) > 1: // an operator, which does not look at v
			touchedParts(q, nil, args)
		default:
			touchedParts(q, v, args)
		}
		result := resultOf(own, f, v, args)
		if !returnsParts[name] {
			q.made(madeBy(name, v, args, result), result)
		}
		return result
	}
}

// resultOf calls our own function, and the library's where ours leaves it to that.
func resultOf(own, f native, v any, args []any) any {
	if own != nil {
		result := own(v, args)
		if is, ok := result.(answer); ok {
			return is.v
		}
		if result != nil {
			return result
		}
	}
	return f(v, args)
}

// touchedParts charges the texts that a function looks at.
func touchedParts(q *querier, v any, args []any) {
	n := 0
	if s, ok := v.(string); ok {
		n = len(s)
	}
	for _, a := range args {
		if s, ok := a.(string); ok {
			n += len(s)
		}
	}
	if n > 1024 {
		q.p.Charge(n / 2)
	}
}

// fits ends the program where so much memory could not be held.
func (q *querier) fits(bytes int) { _ = q.p.Room(bytes) }

// work charges for elements, some of them at once.
type work struct {
	q *querier
	n int
}

func (w *work) step(n int) {
	if w.n += n; w.n >= 1024 {
		w.q.p.Charge(w.n * gasPerElement)
		w.n = 0
	}
}

func (w *work) end() { w.q.p.Charge(w.n * gasPerElement) }

// concatenated puts texts behind each other.
func (q *querier) concatenated(parts []string) string {
	s, err := bound.Text(q.p.Account, parts...)
	q.p.Check(err)
	return s
}

// huge reports whether something is a whole number that has become too large.
func huge(v any) bool {
	n, ok := v.(*big.Int)
	return ok && n.BitLen() > maxBits
}

func (q *querier) add(_ any, args []any) any {
	l, r := args[0], args[1]
	switch l := l.(type) {
	case string:
		if r, ok := r.(string); ok {
			q.fits(len(l) + len(r))
			return q.concatenated([]string{l, r})
		}
	case []any:
		if r, ok := r.([]any); ok && len(l) > 0 && len(r) > 0 {
			return q.concat(len(l)+len(r), l, r)
		}
	case map[string]any:
		if r, ok := r.(map[string]any); ok {
			q.fits((len(l) + len(r)) * entryBytes)
			q.p.Charge((len(l) + len(r)) * gasPerElement)
			if len(r) == 1 {
				for _, m := range []map[string]any{l, r} {
					for k := range m {
						if len(m) == 1 {
							q.came(k)
						}
					}
				}
			}
		}
	}
	return nil
}

// concat puts arrays behind each other.
func (q *querier) concat(size int, lists ...[]any) any {
	q.fits(size * elementBytes)
	all, w := make([]any, 0, size), work{q: q}
	for _, list := range lists {
		for len(list) > 0 {
			n := min(len(list), 1024)
			w.step(n / 4)
			all, list = append(all, list[:n]...), list[n:]
		}
	}
	w.end()
	return all
}

func (q *querier) multiply(_ any, args []any) any {
	l, r := args[0], args[1]
	if huge(l) || huge(r) {
		x, isX := number(l)
		y, isY := number(r)
		if isX && isY {
			return x * y
		}
	}
	text, ok := l.(string)
	times, isNumber := number(r)
	if !ok {
		text, ok = r.(string)
		times, isNumber = number(l)
	}
	if !ok || !isNumber || !(times >= 1) || float64(len(text))*times < bound.Piece || float64(len(text))*math.Trunc(times) >= math.MaxInt32 {
		return nil
	}
	size := len(text) * int(times)
	q.fits(size)
	all := make([]byte, 0, size)
	unit := max(bound.Piece/len(text), 1) * len(text) // of so many bytes whole texts are copied
	all = q.p.Append(all, []byte(text))
	for len(all) < size {
		all = q.p.Append(all, all[:min(len(all), size-len(all), unit)])
		q.p.Charge(64)
	}
	return q.p.Text(all)
}

func number(v any) (float64, bool) {
	if _, isText := v.(string); isText {
		return 0, false
	}
	return gojq.ToFloat64(v)
}

func (q *querier) subtract(_ any, args []any) any {
	l, ok := args[0].([]any)
	r, both := args[1].([]any)
	if !ok || !both {
		return nil
	}
	all, w := []any{}, work{q: q}
next:
	for _, x := range l {
		for _, y := range r {
			w.step(1)
			if q.compare(x, y, &w) == 0 {
				continue next
			}
		}
		all = append(all, x)
	}
	w.end()
	return all
}

// sum is add of an array; the elements of objects are few. Of what are neither texts nor lists, some are added at once to what came of
// those before, by the library's own f.
func (q *querier) sum(f native) native {
	return func(v any, args []any) any {
		list, ok := v.([]any)
		if !ok || len(list) == 0 {
			return nil
		}
		q.p.Charge(gasPerElement)
		if all := q.merged(list); all != nil {
			return all
		}
		const some = 4096
		sum := any(nil)
		for len(list) > some {
			q.p.Charge(some * gasPerElement)
			if sum = f(append([]any{sum}, list[:some]...), args); isError(sum) {
				return sum
			}
			list = list[some:]
		}
		q.p.Charge(len(list) * gasPerElement)
		return answer{f(append([]any{sum}, list...), args)}
	}
}

func isError(v any) bool {
	_, is := v.(error)
	return is
}

// merged puts texts behind each other, or lists, or objects over each other; nil where they are not all of one kind.
func (q *querier) merged(list []any) any {
	w := work{q: q}
	defer w.end()
	switch list[0].(type) {
	case string:
		parts, size := make([]string, 0, len(list)), 0
		for _, x := range list {
			w.step(1)
			s, ok := x.(string)
			if !ok {
				return nil
			}
			parts, size = append(parts, s), size+len(s)
		}
		q.fits(size)
		return q.concatenated(parts)
	case []any:
		parts, size := make([][]any, 0, len(list)), 0
		for _, x := range list {
			w.step(1)
			s, ok := x.([]any)
			if !ok {
				return nil
			}
			parts, size = append(parts, s), size+len(s)
		}
		return q.concat(size, parts...)
	case map[string]any:
		all := map[string]any{}
		for _, x := range list {
			w.step(1)
			m, ok := x.(map[string]any)
			if !ok {
				return nil
			}
			for k, x := range m {
				if w.step(2); len(all)%4096 == 0 {
					q.fits(len(all) * entryBytes)
				}
				all[k] = x
				if len(m) == 1 {
					q.came(k)
				}
			}
		}
		return all
	}
	return nil
}

func (q *querier) join(v any, args []any) any {
	list, ok := v.([]any)
	separator, isText := args[0].(string)
	if !ok || !isText {
		return nil
	}
	w := work{q: q}
	defer w.end()
	q.fits(len(list) * 2 * elementBytes)
	parts, size := make([]string, 0, 2*len(list)), 0
	for i, x := range list {
		w.step(1)
		s, ok := x.(string)
		if x != nil && !ok {
			return nil
		}
		if i > 0 {
			parts = append(parts, separator)
		}
		parts, size = append(parts, s), size+len(s)+len(separator)
	}
	q.fits(size)
	if size < bound.Piece {
		return nil
	}
	return q.concatenated(parts)
}

func (q *querier) contains(v any, args []any) any { return q.holds(v, args[0]) }

func (q *querier) inside(v any, args []any) any { return q.holds(args[0], v) }

// holds is whether arrays and objects contain others; nil leaves it to the library.
func (q *querier) holds(l, r any) any {
	w := work{q: q}
	defer w.end()
	var in func(l, r any) (is, ok bool)
	in = func(l, r any) (bool, bool) {
		w.step(1)
		switch l := l.(type) {
		case string:
			if r, ok := r.(string); ok {
				w.step(len(l) / 32)
				return strings.Contains(l, r), true
			}
		case []any:
			if r, ok := r.([]any); ok {
			next:
				for _, y := range r {
					for _, x := range l {
						if is, _ := in(x, y); is {
							continue next
						}
					}
					return false, true
				}
				return true, true
			}
		case map[string]any:
			if r, ok := r.(map[string]any); ok {
				if len(l) < len(r) {
					return false, true
				}
				for k, y := range r {
					x, ok := l[k]
					if !ok {
						return false, true
					}
					if is, _ := in(x, y); !is {
						return false, true
					}
				}
				return true, true
			}
		}
		return gojq.TypeOf(l) == gojq.TypeOf(r) && gojq.Compare(l, r) == 0, false
	}
	if is, ok := in(l, r); ok {
		return is
	}
	return nil
}

func (q *querier) length(v any, _ []any) any {
	s, ok := v.(string)
	if !ok {
		return nil
	}
	n := 0
	for s != "" {
		piece := min(len(s), bound.Piece)
		for piece < len(s) && !utf8.RuneStart(s[piece]) {
			piece++
		}
		q.p.Charge(piece / 2)
		n, s = n+utf8.RuneCountInString(s[:piece]), s[piece:]
	}
	return n
}

func (q *querier) explode(v any, _ []any) any {
	s, ok := v.(string)
	if !ok || len(s) < bound.Piece {
		return nil
	}
	n := utf8.RuneCountInString(s)
	q.fits(n * 2 * elementBytes)
	all, w := make([]any, 0, n), work{q: q}
	for _, r := range s {
		w.step(1)
		all = append(all, int(r))
	}
	w.end()
	return all
}

// piecewise is a function of a text that does the same with its parts.
func (q *querier) piecewise(f native, bytes bool) native {
	return func(v any, args []any) any {
		s, ok := v.(string)
		if !ok || len(s) <= bound.Piece {
			return nil
		}
		q.fits(len(s))
		var parts []string
		for s != "" {
			n := min(len(s), bound.Piece/3*3) // as base64 has it; of the others a character is not divided
			for n < len(s) && !bytes && !utf8.RuneStart(s[n]) {
				n++
			}
			q.p.Charge(n)
			part, ok := f(s[:n], args).(string)
			if !ok {
				return errJQ
			}
			parts, s = append(parts, part), s[n:]
		}
		return q.concatenated(parts)
	}
}

func (q *querier) implode(v any, _ []any) any {
	if list, ok := v.([]any); ok {
		q.p.Charge(len(list) * gasPerElement)
	}
	return nil
}

func (q *querier) split(v any, args []any) any {
	s, ok := v.(string)
	if !ok || len(args) != 1 || len(s) < bound.Piece {
		return nil
	}
	separator, ok := args[0].(string)
	if !ok || separator == "" {
		q.fits(len(s) * 2 * elementBytes)
		return nil
	}
	all, w := []any{}, work{q: q}
	for {
		part, rest, more := strings.Cut(s, separator)
		w.step(1 + len(part)/64)
		if len(all)%4096 == 0 {
			q.fits(len(all) * 2 * elementBytes)
		}
		if all, s = append(all, part), rest; !more {
			w.end()
			return all
		}
	}
}
