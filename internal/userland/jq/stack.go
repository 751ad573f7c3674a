package jq

import (
	"reflect"
	"unsafe"

	"github.com/itchyny/gojq"

	"agentbox/internal/userland/bound"
)

// Growing stacks are copied here, piece by piece, before the library would copy them at once: from growAt bytes on, when no more than ahead
// elements fit any more. It is checked after each growEvery instructions, each of which adds two at most; of variables, each function that
// is called adds a few.
const (
	growAt    = 1 << 20
	ahead     = 4096
	growEvery = 1024
	maxNear   = 1024 // nested functions whose lists are checked

	opAppend = 8 // the number of the instruction that adds to a list
)

// machine is jq's own: its stacks, and its variables, among which the lists are that it collects.
type machine struct {
	q       *querier
	stacks  []reflect.Value
	values  *[]any
	offset  *int
	scopes  reflect.Value // the stack of the functions that are in each other
	top     *int          // of it
	appends map[int][]int // the variables that are lists to which a function adds
}

// machineFor reaches the stacks by reflection, as the instructions are. If their layout is unknown, the program does not run.
func machineFor(q *querier, code *gojq.Code, iter gojq.Iter) (*machine, error) {
	env := reflect.ValueOf(iter)
	if env.Kind() != reflect.Pointer || env.Elem().Kind() != reflect.Struct {
		return nil, errJQ
	}
	field := func(of reflect.Value, name string) reflect.Value {
		if of.Kind() != reflect.Struct {
			return reflect.Value{}
		}
		f := of.FieldByName(name)
		if !f.IsValid() || !f.CanAddr() {
			return reflect.Value{}
		}
		return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem() // which can be set
	}
	number := func(of reflect.Value, name string) *int {
		if f := field(of, name); f.IsValid() {
			n, _ := f.Addr().Interface().(*int)
			return n
		}
		return nil
	}
	m := &machine{q: q, appends: map[int][]int{}}
	for _, name := range []string{"stack", "paths", "scopes"} {
		stack := field(env.Elem(), name)
		if stack.Kind() != reflect.Pointer {
			return nil, errJQ
		}
		m.scopes, m.top = field(stack.Elem(), "data"), number(stack.Elem(), "index")
		m.stacks = append(m.stacks, m.scopes)
	}
	m.stacks = append(m.stacks, field(env.Elem(), "forks"))
	for _, s := range m.stacks {
		if s.Kind() != reflect.Slice {
			return nil, errJQ
		}
	}
	values := field(env.Elem(), "values")
	if !values.IsValid() {
		return nil, errJQ
	}
	var isList bool
	m.values, isList = values.Addr().Interface().(*[]any)
	m.offset = number(env.Elem(), "offset")
	scope := reflect.New(m.scopes.Type().Elem()).Elem()
	if !isList || m.offset == nil || m.top == nil || number(scope, "next") == nil || number(field(scope, "value"), "id") == nil ||
		number(field(scope, "value"), "offset") == nil {
		return nil, errJQ
	}
	return m, m.study(code)
}

// study finds the lists that the program collects.
func (m *machine) study(code *gojq.Code) error {
	codes := reflect.ValueOf(code).Elem().FieldByName("codes")
	for i := range codes.Len() {
		if c := codes.Index(i).Elem(); c.FieldByName("op").Int() == opAppend {
			at, ok := reflect.NewAt(c.FieldByName("v").Type(), unsafe.Pointer(c.FieldByName("v").UnsafeAddr())).Elem().Interface().([2]int)
			if !ok {
				return errJQ
			}
			m.appends[at[0]] = append(m.appends[at[0]], at[1])
		}
	}
	return nil
}

// grow makes room for what the next instructions add.
func (m *machine) grow() {
	m.q.made(growEvery*bytesPerStep, nil)
	for _, s := range m.stacks {
		n, size := s.Len(), int(s.Type().Elem().Size())
		if n*size < growAt {
			continue
		}
		m.q.fits(n * size * 9 / 4)
		if s.Cap()-n < ahead {
			s.Set(m.copied(s, n, n+n/4+ahead))
		}
	}
	values := *m.values
	if n := len(values); n*elementBytes >= growAt {
		m.q.fits(n * elementBytes * 5 / 2)
		if n-*m.offset < ahead {
			v := reflect.ValueOf(values)
			*m.values = m.copied(v, n+n/2, n+n/2).Interface().([]any)
		}
	}
	if len(m.appends) == 0 {
		return
	}
	values = *m.values
	for i, n := *m.top, 0; i >= 0 && n < maxNear; n++ {
		scope := m.scopes.Index(i)
		value := scope.FieldByName("value")
		for _, at := range m.appends[int(value.FieldByName("id").Int())] {
			if at += int(value.FieldByName("offset").Int()); at >= len(values) {
				continue
			}
			list, ok := values[at].([]any)
			if !ok || len(list)*elementBytes < growAt {
				continue
			}
			m.q.fits(len(list) * elementBytes * 9 / 4)
			if cap(list)-len(list) < ahead {
				values[at] = m.copied(reflect.ValueOf(list), len(list), len(list)+len(list)/4+ahead).Interface()
			}
		}
		i = int(scope.FieldByName("next").Int())
	}
}

// copied returns a copy of another length and capacity. It checks for a stop on the way.
func (m *machine) copied(s reflect.Value, size, capacity int) reflect.Value {
	fresh := reflect.MakeSlice(s.Type(), size, capacity)
	for at := 0; at < s.Len(); {
		m.q.p.Check(m.q.p.Account.Check())
		n := min(bound.Piece/int(s.Type().Elem().Size()), s.Len()-at)
		reflect.Copy(fresh.Slice(at, at+n), s.Slice(at, at+n))
		at += n
	}
	return fresh
}
