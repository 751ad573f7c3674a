package awk

// fillSymbols returns SYMTAB as an array of what the variables are now: for loops over it, and for those that look whether a name is in
// it.
func fillSymbols(e *engine) *array {
	all := e.globals[vSYMTAB].arr
	emptyArray(e, all)
	for i, name := range e.s.names {
		if e.tick(20); i == vSYMTAB || i == vFUNCTAB {
			continue
		}
		if c := &e.globals[i]; c.arr == nil {
			e.set(all, name, symbolValue(e, i))
		} else {
			e.slot(all, name)
		}
	}
	return all
}

// symbolValue returns a global variable that is not an array.
func symbolValue(e *engine, i int) value {
	if i <= vFNR {
		return specialValue(e, i)
	}
	return e.globals[i].v
}

// symbol returns the variable that SYMTAB has under a name.
func (e *engine) symbol(name string) value {
	i, ok := e.s.globals[name]
	switch {
	case !ok:
		return value{}
	case e.globals[i].arr != nil:
		e.fatal("attempt to use array `SYMTAB[\"%s\"]' in a scalar context", name)
	}
	return symbolValue(e, i)
}

// setSymbol sets the variable that SYMTAB has under a name.
func setSymbol(e *engine, name string, v value) {
	i, ok := e.s.globals[name]
	if !ok {
		e.fatal("cannot assign to arbitrary elements of SYMTAB")
	}
	assignSpecial(e, i, v)
}

// refuseFixed ends the program where an array is one of awk's own that may not be changed.
func refuseFixed(e *engine, array expr, message string) {
	if g, ok := array.(*global); ok && (g.index == vSYMTAB || g.index == vFUNCTAB) {
		e.fatal(message, g.name)
	}
}
