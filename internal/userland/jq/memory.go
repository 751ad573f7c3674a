package jq

import (
	"math/big"
	"reflect"
	"slices"
	"unsafe"
)

// Values of the library have no owner that reports their end. So the account estimates their bytes when they are made. If there may be
// many, it measures all values that the machine can still reach.
const (
	bytesPerStep = 32      // of an instruction: an object or a list that is made of what lies on the stack
	weighAt      = 4 << 20 // bytes that are made between two weighings, at least
	weighPart    = 4       // and at least this part of the memory that is free
	matchEntry   = 512     // of a match: its object, and the list of its groups
	parsedBytes  = 16      // of a value, for each byte of the text that it is read from
)

// returnsParts are the functions that make nothing: they return a part of what they get.
var returnsParts = map[string]bool{"_index": true, "getpath": true, "first": true, "last": true, "min": true, "max": true, "_min_by": true,
	"_max_by": true}

// madeBy estimates how many bytes a call has made.
func madeBy(name string, v any, args []any, result any) int {
	n := shallow(result)
	switch name {
	case "_match":
		if list, ok := result.([]any); ok {
			n += len(list) * matchEntry
		}
	case "fromjson":
		if s, ok := v.(string); ok {
			n += len(s) * parsedBytes
		}
	case "setpath", "_setpath":
		if len(args) > 0 {
			path, _ := args[0].([]any)
			n += shallowAlong(result, path) // each level is copied
		}
	}
	return n
}

// shallow is what a value takes without its parts.
func shallow(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case []any:
		return cap(v) * elementBytes
	case map[string]any:
		return len(v) * entryBytes
	case *big.Int:
		return v.BitLen() / 8
	}
	return 0
}

// shallowAlong is what the values on a path take without their parts.
func shallowAlong(v any, path []any) (n int) {
	for _, key := range path {
		switch at := v.(type) {
		case map[string]any:
			name, _ := key.(string)
			v = at[name]
		case []any:
			i, ok := key.(int)
			if !ok || i < 0 || i >= len(at) {
				return n
			}
			v = at[i]
		default:
			return n
		}
		n += shallow(v)
	}
	return n
}

// made counts bytes that were made, and weighs what is held when they may be too many. result is held beside what the machine can reach.
func (q *querier) made(bytes int, result any) {
	if q.fresh += bytes; q.machine == nil || q.fresh < weighAt || int64(q.fresh) < q.p.Account.Spare()/weighPart {
		return
	}
	q.fresh = 0
	s := scale{q: q, lists: map[uintptr]memory{}, maps: map[uintptr]bool{}}
	s.rest = append(s.rest, result)
	for _, v := range q.machine.stacks {
		s.stack(v)
	}
	s.list(*q.machine.values)
	for len(s.rest) > 0 {
		v := s.rest[len(s.rest)-1]
		s.rest = s.rest[:len(s.rest)-1]
		s.put(v)
	}
	texts := s.texts()
	q.p.Charge(s.bytes/2 + texts/64) // not by what it has looked at, which depends on the order of keys
	q.fits(s.bytes + texts)
}

// scale weighs values. A value that is reached twice counts once.
type scale struct {
	q     *querier
	bytes int
	rest  []any
	lists map[uintptr]memory // by where their memory ends
	maps  map[uintptr]bool
	spans []memory // of texts
	n     int      // of values
}

// memory is a piece of memory.
type memory struct{ begin, end uintptr }

func (s *scale) put(v any) {
	if s.n++; s.n%4096 == 0 {
		s.q.p.Check(s.q.p.Account.Check())
	}
	switch v := v.(type) {
	case nil, bool, int, float64:
	case string:
		if len(v) > 0 {
			at := uintptr(unsafe.Pointer(unsafe.StringData(v)))
			span := memory{at, at + uintptr(len(v))}
			if n := len(s.spans); n == 0 || s.spans[n-1] != span {
				s.spans = append(s.spans, span)
			}
		}
	case []any:
		s.list(v)
	case map[string]any:
		s.object(v)
	case *big.Int:
		s.bytes += v.BitLen() / 8
	default:
		if list := reflect.ValueOf(v); list.Kind() == reflect.Slice { // what is left of an iteration
			s.stack(list)
		}
	}
}

func (s *scale) list(v []any) {
	if cap(v) == 0 {
		return
	}
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(v)))
	if s.seen(begin, uintptr(len(v)), uintptr(cap(v)), elementBytes) {
		return
	}
	for _, x := range v {
		switch x.(type) {
		case []any, map[string]any:
			s.rest = append(s.rest, x)
		default:
			s.put(x)
		}
	}
}

// seen notes a list and reports whether all of it was weighed before.
func (s *scale) seen(begin, size, capacity, element uintptr) bool {
	limit, end := begin+capacity*element, begin+size*element
	before, known := s.lists[limit]
	if known && before.begin <= begin && before.end >= end {
		return true
	}
	if !known {
		before = memory{limit, begin}
	}
	if begin < before.begin {
		s.bytes += int(before.begin - begin)
	}
	s.lists[limit] = memory{min(begin, before.begin), max(end, before.end)}
	return false
}

func (s *scale) object(v map[string]any) {
	at := reflect.ValueOf(v).Pointer()
	if s.maps[at] {
		return
	}
	s.maps[at] = true
	s.bytes += len(v)*entryBytes + entryBytes
	for k, x := range v {
		s.put(k)
		s.rest = append(s.rest, x)
	}
}

// stack weighs a list of structures, which hold values in fields of any depth.
func (s *scale) stack(list reflect.Value) {
	size := list.Type().Elem().Size()
	if list.Cap() == 0 || s.seen(list.Pointer(), uintptr(list.Len()), uintptr(list.Cap()), size) ||
		list.Type().Elem().Kind() != reflect.Struct {
		return
	}
	for i := range list.Len() {
		s.fields(list.Index(i))
	}
}

func (s *scale) fields(of reflect.Value) {
	for i := range of.NumField() {
		switch f := of.Field(i); f.Kind() {
		case reflect.Struct:
			s.fields(f)
		case reflect.Interface:
			if f.CanAddr() {
				if v, ok := reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Interface().(*any); ok {
					s.rest = append(s.rest, *v)
				}
			}
		}
	}
}

// texts is what all the texts take; those that lie in each other count once.
func (s *scale) texts() int {
	slices.SortFunc(s.spans, func(a, b memory) int {
		switch {
		case a.begin < b.begin:
			return -1
		case a.begin > b.begin:
			return 1
		}
		return 0
	})
	n, end := 0, uintptr(0)
	for _, x := range s.spans {
		if begin := max(x.begin, end); x.end > begin {
			n, end = n+int(x.end-begin), x.end
		}
	}
	return n
}
