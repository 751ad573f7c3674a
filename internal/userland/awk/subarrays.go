package awk

import "strings"

// maxArrayDepth bounds how deep arrays lie in arrays.
const maxArrayDepth = 1000

// place is an element that was given for a parameter and that has no value yet: it may become an array.
type place struct {
	in  *array
	key string
}

// calledWith returns what messages call a variable or an element.
func calledWith(e *engine, x expr) string {
	switch x := x.(type) {
	case *global:
		return x.name
	case *local:
		if c := e.frame[x.index]; c.from != "" { // and where that comes from
			name, rest, more := strings.Cut(c.from, " (")
			if more {
				return x.name + " (from " + name + ", " + rest
			}
			return x.name + " (from " + name + ")"
		}
		return x.name
	case *element:
		return calledWith(e, x.array)
	}
	return "?"
}

// scalarAsArray ends the program because a variable that holds a value is used as an array.
func scalarAsArray(e *engine, x expr) {
	what := "scalar"
	if _, ok := x.(*local); ok {
		what = "scalar parameter"
	}
	e.fatal("attempt to use %s `%s' as an array", what, calledWith(e, x))
}

// arrayAsScalar ends the program because an array is used as a value.
func arrayAsScalar(e *engine, x expr) {
	e.fatal("attempt to use array `%s' in a scalar context", calledWith(e, x))
}

// elementArray returns the array that an element of an array is, making it of one without a value.
func elementArray(e *engine, x *element) *array {
	if g, ok := x.array.(*global); ok && g.index == vSYMTAB {
		if i, ok := e.s.globals[e.subscript(x.subs)]; ok && i != vSYMTAB {
			return e.array(&global{i, e.s.names[i]})
		}
	}
	outer := e.array(x.array)
	key := e.subscript(x.subs)
	inner, ok := innerArray(e, outer, key)
	if !ok {
		e.fatal("attempt to use scalar `%s[\"%s\"]' as an array", calledWith(e, x.array), key)
	}
	return inner
}

// innerArray returns the array that an element is, and false for one that has a value.
func innerArray(e *engine, outer *array, key string) (*array, bool) {
	at := e.slot(outer, key)
	if at.arr == nil {
		if at.val.kind != none {
			return nil, false
		}
		if outer.depth >= maxArrayDepth {
			e.fatal("arrays lie in each other deeper than %d times", maxArrayDepth)
		}
		e.hold(96)
		at.arr = newArray()
		at.arr.depth = outer.depth + 1
	}
	return at.arr, true
}

// knownArray returns the array that a variable or an element is, nil where it is none. It makes nothing.
func knownArray(e *engine, x expr) *array {
	switch x := x.(type) {
	case *global:
		return e.globals[x.index].arr
	case *local:
		c := e.variable(x)
		if c.arr == nil && c.at.in != nil {
			if i, ok := c.at.in.at[c.at.key]; ok {
				return c.at.in.entry(i).arr
			}
		}
		return c.arr
	case *element:
		if g, ok := x.array.(*global); ok && g.index == vSYMTAB {
			if i, ok := e.s.globals[e.subscript(x.subs)]; ok {
				return e.globals[i].arr
			}
			return nil
		}
		if outer := knownArray(e, x.array); outer != nil {
			if i, ok := outer.at[e.subscript(x.subs)]; ok {
				return outer.entry(i).arr
			}
		}
	}
	return nil
}

// dropElement forgets the array that an element is.
func dropElement(e *engine, at *entry) {
	if at.arr != nil {
		emptyArray(e, at.arr)
		e.hold(-96)
		at.arr = nil
	}
}

// passElement gives an element to a parameter: its array, its value, or its place where it has neither.
func passElement(e *engine, x *element) cell {
	outer := e.array(x.array)
	key := e.subscript(x.subs)
	at := e.slot(outer, key)
	switch {
	case at.arr != nil:
		return cell{arr: at.arr}
	case at.val.kind == none:
		return cell{at: place{outer, key}}
	}
	return cell{v: at.val}
}

// indirect is a call of the function whose name a variable holds.
type indirect struct {
	name expr
	args []expr
	line int
}

func callIndirect(e *engine, x *indirect) value {
	name := e.str(e.eval(x.name))
	if fn := e.s.functions[name]; fn != nil {
		return e.call(&call{fn: fn, name: name, args: x.args, line: x.line})
	}
	fn := e.builtins[name]
	if fn == nil {
		e.fatal("`%s' is not a function, so it cannot be called indirectly", name)
	}
	if bounds := arity[name]; len(x.args) < bounds[0] || len(x.args) > bounds[1] {
		e.fatal("%s: called with %d arguments", name, len(x.args))
	}
	return fn(e, x.args)
}

// comparisonOf returns how a function of the program orders elements, nil where how names one of awk's own orders.
func comparisonOf(e *engine, how string) func(k1 string, v1 value, k2 string, v2 value) int {
	if how == "" || how[0] == '@' {
		return nil
	}
	fn := e.s.functions[how]
	if fn == nil {
		e.fatal("sort comparison function `%s' is not defined", how)
	}
	return func(k1 string, v1 value, k2 string, v2 value) int {
		c := e.call(&call{fn: fn, name: how, args: []expr{&text{in(k1)}, &text{v1}, &text{in(k2)}, &text{v2}}}).num()
		switch {
		case c < 0:
			return -1
		case c > 0:
			return 1
		}
		return 0
	}
}

// regexValue is an expression that is a value, @/.../.
func regexValue(source string) value { return value{kind: isRegex, s: source} }
