package awk

import (
	"errors"
	"math"
	"strings"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/posix"
)

// variable returns the cell of a variable.
func (e *engine) variable(x expr) *cell {
	var c *cell
	switch x := x.(type) {
	case *global:
		return &e.globals[x.index]
	case *local:
		c = &e.frame[x.index]
	}
	for c.ref != nil {
		c = c.ref
	}
	return c
}

// array returns the array that a variable is.
func (e *engine) array(x expr) *array {
	switch x := x.(type) {
	case *element:
		return elementArray(e, x)
	case *global, *local:
	default:
		e.fatal("a value stands where an array is wanted")
	}
	if g, ok := x.(*global); ok && g.index == vSYMTAB {
		return fillSymbols(e)
	}
	c := e.variable(x)
	if c.arr == nil {
		ok := c.v.kind == none && !c.used
		switch {
		case ok && c.at.in != nil:
			c.arr, ok = innerArray(e, c.at.in, c.at.key)
		case ok:
			c.arr = newArray()
		}
		if !ok {
			scalarAsArray(e, x)
		}
	}
	return c.arr
}

func (e *engine) subscript(subs []expr) string {
	if len(subs) == 1 {
		return subscriptText(e, e.eval(subs[0]))
	}
	var b strings.Builder
	for i, s := range subs {
		if i > 0 {
			b.WriteString(e.subsep)
		}
		b.WriteString(subscriptText(e, e.eval(s)))
	}
	return b.String()
}

func subscriptText(e *engine, v value) string { return e.write(v, e.convfmt) }

// eval evaluates an expression.
func (e *engine) eval(x expr) value {
	e.tick(4)
	switch x := x.(type) {
	case *number:
		return x.v
	case *text:
		return x.v
	case *global:
		if x.index <= vFNR {
			return specialValue(e, x.index)
		}
		c := &e.globals[x.index]
		if c.arr != nil {
			arrayAsScalar(e, x)
		}
		c.used = true
		return c.v
	case *local:
		c := e.variable(x)
		if c.arr != nil {
			arrayAsScalar(e, x)
		}
		c.used = true
		return c.v
	case *dollar:
		return e.field(fieldNumberOf(e, x.index))
	case *element:
		if g, ok := x.array.(*global); ok && g.index == vSYMTAB {
			return e.symbol(e.subscript(x.subs))
		}
		a := e.array(x.array)
		key := e.subscript(x.subs)
		at := e.slot(a, key)
		if at.arr != nil {
			e.fatal("attempt to use array `%s[\"%s\"]' in a scalar context", calledWith(e, x.array), key)
		}
		return at.val
	case *group:
		if len(x.list) == 1 {
			return e.eval(x.list[0])
		}
		e.fatal("a list stands where one value is wanted")
	case *match:
		e.refresh()
		return truth(e.matches(e.record, x.source))
	case *matches:
		s := e.str(e.eval(x.x))
		return truth(e.matches(s, regexText(e, x.r)) != x.not)
	case *inArray:
		_, ok := e.array(x.array).at[e.subscript(x.subs)]
		return truth(ok)
	case *unary:
		v := e.eval(x.x)
		switch x.op {
		case '!':
			return truth(!v.truth())
		case '-':
			return num(-v.num())
		}
		return num(v.num())
	case *binary:
		return e.binary(x)
	case *concat:
		a := e.str(e.eval(x.a))
		b := e.str(e.eval(x.b))
		e.fit(len(a) + len(b))
		text, err := bound.Text(e.p.Account, a, b)
		e.p.Check(err)
		return str(text)
	case *ternary:
		if e.eval(x.test).truth() {
			return e.eval(x.a)
		}
		return e.eval(x.b)
	case *assign:
		v := e.eval(x.from)
		if x.op != "" {
			v = num(arithmeticOf(e, x.op, e.eval(x.to).num(), v.num()))
		}
		if v.kind == none {
			v = value{kind: none}
		}
		e.store(x.to, v)
		return v
	case *step:
		old := e.eval(x.to).num()
		e.store(x.to, num(old+x.delta))
		if x.prefix {
			return num(old + x.delta)
		}
		return num(old)
	case *call:
		return e.call(x)
	case *builtinCall:
		return x.fn(e, x.args)
	case *indirect:
		return callIndirect(e, x)
	case *getline:
		return e.getline(x)
	}
	return value{}
}

func (e *engine) binary(x *binary) value {
	switch x.op {
	case "&&":
		return truth(e.eval(x.a).truth() && e.eval(x.b).truth())
	case "||":
		return truth(e.eval(x.a).truth() || e.eval(x.b).truth())
	}
	a, b := e.eval(x.a), e.eval(x.b)
	switch x.op {
	case "<", "<=", "==", "!=", ">", ">=":
		return truth(e.compare(x.op, a, b))
	}
	return num(arithmeticOf(e, x.op, a.num(), b.num()))
}

func (e *engine) compare(op string, a, b value) bool {
	c := 0
	x, okX := a.numeric()
	y, okY := b.numeric()
	if okX && okY {
		if math.IsNaN(x) || math.IsNaN(y) {
			return op == "!="
		}
		switch {
		case x < y:
			c = -1
		case x > y:
			c = 1
		}
	} else {
		s, t := e.str(a), e.str(b)
		e.tick(min(len(s), len(t)) / 8)
		if e.fold {
			s, t = lowerCase(e, s), lowerCase(e, t)
		}
		c = strings.Compare(s, t)
	}
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case "==":
		return c == 0
	case "!=":
		return c != 0
	case ">":
		return c > 0
	}
	return c >= 0
}

func arithmeticOf(e *engine, op string, a, b float64) float64 {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "/":
		if b == 0 {
			e.fatal("division by zero attempted")
		}
		return a / b
	case "%":
		if b == 0 {
			e.fatal("division by zero attempted in `%%'")
		}
		return math.Mod(a, b)
	}
	return math.Pow(a, b)
}

// store assigns to a variable, a field or an element.
func (e *engine) store(to expr, v value) {
	switch to := to.(type) {
	case *global:
		assignSpecial(e, to.index, v)
	case *local:
		c := e.variable(to)
		if c.arr != nil {
			arrayAsScalar(e, to)
		}
		c.v = v
	case *dollar:
		e.setField(fieldNumberOf(e, to.index), e.str(v), v.kind != isStr)
	case *element:
		if g, ok := to.array.(*global); ok && g.index == vSYMTAB {
			setSymbol(e, e.subscript(to.subs), v)
			return
		}
		refuseFixed(e, to.array, "cannot assign to elements of %s")
		a := e.array(to.array)
		key := e.subscript(to.subs)
		if i, ok := a.at[key]; ok && a.entry(i).arr != nil {
			e.fatal("attempt to use array `%s[\"%s\"]' in a scalar context", calledWith(e, to.array), key)
		}
		e.set(a, key, v)
	case *group:
		e.store(to.list[0], v)
	}
}

// specialValue returns a variable that is kept elsewhere.
func specialValue(e *engine, i int) value {
	switch i {
	case vNF:
		e.splitRecord()
		return num(float64(len(e.fields)))
	case vNR:
		return num(e.nr)
	}
	return num(e.fnr)
}

// assignSpecial sets a global variable.
func assignSpecial(e *engine, i int, v value) {
	c := &e.globals[i]
	if c.arr != nil {
		e.fatal("attempt to use an array in a scalar context")
	}
	e.hold(len(v.s) - len(c.v.s))
	c.v = v
	if i > vFIELDWIDTHS {
		return
	}
	switch i {
	case vNF:
		e.splitRecord()
		n := int(v.num())
		if n < 0 {
			e.fatal("NF set to negative value")
		}
		if n > maxFields {
			e.fatal("NF set to a value that is not possible")
		}
		resizeFields(e, n)
		e.stale = true
	case vNR:
		e.nr = v.num()
	case vFNR:
		e.fnr = v.num()
	case vFS:
		keepFields(e)
		e.fs, e.widths, e.byFPAT = e.str(v), nil, false
	case vOFS:
		e.refresh()
		e.ofs = e.str(v)
	case vORS:
		e.ors = e.str(v)
	case vRS:
		e.rs = e.str(v)
	case vSUBSEP:
		e.subsep = e.str(v)
	case vCONVFMT:
		e.convfmt = e.str(v)
	case vOFMT:
		e.ofmt = e.str(v)
	case vIGNORECASE:
		e.fold = v.truth()
		clear(e.regexps)
	case vFPAT:
		keepFields(e)
		e.fpat, e.byFPAT, e.widths = e.str(v), true, nil
	case vFIELDWIDTHS:
		keepFields(e)
		e.widths, e.byFPAT = nil, false
		for _, w := range strings.Fields(e.str(v)) {
			e.widths = append(e.widths, readWidths(e, w))
		}
	}
}

// call calls a function of the program.
func (e *engine) call(x *call) value {
	if len(x.args) > x.fn.params {
		e.warn("function `%s' called with more arguments than declared", x.name)
	}
	frame := make([]cell, x.fn.params)
	for i, arg := range x.args {
		if i >= len(frame) {
			e.eval(arg)
			continue
		}
		switch arg := arg.(type) {
		case *element:
			frame[i] = passElement(e, arg)
		case *global, *local:
			if g, ok := arg.(*global); ok && g.index <= vFNR {
				frame[i].v = specialValue(e, g.index)
				continue
			}
			c := e.variable(arg)
			switch {
			case c.arr != nil:
				frame[i].arr, frame[i].from = c.arr, calledWith(e, arg)
			case c.v.kind == none:
				frame[i].ref, frame[i].from = c, calledWith(e, arg) // with its place, if it has one
			default:
				frame[i].v = c.v
			}
		default:
			frame[i].v = e.eval(arg)
		}
	}
	if err := e.p.Account.Enter(); err != nil {
		e.fatal("function `%s': %s", x.name, err.Error())
	}
	e.depth++
	old, line := e.frame, e.line
	e.frame = frame
	e.tick(60 + 20*len(frame))
	e.result = value{}
	f := e.block(x.fn.body)
	for i := range frame {
		if c := &frame[i]; c.arr != nil && i >= len(x.args) {
			emptyArray(e, c.arr)
		}
	}
	e.frame, e.line = old, line
	e.depth--
	e.p.Account.Leave()
	switch f {
	case nextRecord, nextFile, exited:
		panic(unwind{f})
	}
	r := e.result
	e.result = value{}
	return r
}

// matches reports whether an expression matches a text.
func (e *engine) matches(s, source string) bool {
	ok, err := e.compile(source).MatchString(s)
	e.check(err)
	return ok
}

// regexText returns the source of the expression that an argument is.
func regexText(e *engine, x expr) string {
	if m, ok := x.(*match); ok {
		return m.source
	}
	return e.str(e.eval(x))
}

// compile returns a compiled expression.
func (e *engine) compile(source string) *posix.Regexp {
	if re := e.regexps[source]; re != nil {
		return re
	}
	flags := posix.Extended | posix.Awk
	if e.fold {
		flags |= posix.IgnoreCase
	}
	re, err := posix.Compile(source, flags, e.charge)
	if err != nil {
		e.fatal("%s: /%s/", err.Error(), source)
	}
	if len(e.regexps) >= 256 {
		clear(e.regexps)
	}
	re.Bound(e.p.Room)
	e.regexps[source] = re
	return re
}

func (e *engine) charge(gas int64) error {
	e.tick(int(gas))
	return nil
}

func (e *engine) check(err error) {
	if err == nil {
		return
	}
	if s, ok := errors.AsType[*bound.Stopped](err); ok {
		panic(s)
	}
	e.fatal("%s", err.Error())
}
