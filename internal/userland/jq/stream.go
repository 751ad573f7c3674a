package jq

// jqEvents are the parts of one value, as --stream has them: [PATH, LEAF] for what has no parts, and [PATH] at the end of each list or
// object that is not empty.
type jqEvents struct {
	q    *querier
	open []jqOpen // the lists and objects that the next part lies in
	leaf any      // a value without parts
	has  bool     // there is such a value
}

// jqOpen is a list or an object, and how far it was gone through.
type jqOpen struct {
	list []any
	keys []string // of an object
	of   map[string]any
	at   int
}

// eventsOf begins to divide a value.
func eventsOf(q *querier, v any) *jqEvents {
	e := &jqEvents{q: q}
	if !e.enter(v) {
		e.leaf, e.has = v, true
	}
	return e
}

// enter opens a value, and reports whether it has parts.
func (e *jqEvents) enter(v any) bool {
	switch v := v.(type) {
	case []any:
		if len(v) > 0 {
			e.open = append(e.open, jqOpen{list: v})
			return true
		}
	case map[string]any:
		if len(v) > 0 {
			e.open = append(e.open, jqOpen{keys: e.q.keys(v), of: v})
			return true
		}
	}
	return false
}

// next returns the next event.
func (e *jqEvents) next() (any, bool) {
	if e.has {
		e.has = false
		return []any{[]any{}, e.leaf}, true
	}
	for len(e.open) > 0 {
		top := &e.open[len(e.open)-1]
		if top.at == len(top.list)+len(top.keys) { // the path of its last part ends it
			top.at--
			path := e.path()
			if e.open = e.open[:len(e.open)-1]; len(e.open) > 0 {
				e.open[len(e.open)-1].at++
			}
			return []any{path}, true
		}
		v := any(nil)
		if top.list != nil {
			v = top.list[top.at]
		} else {
			v = top.of[top.keys[top.at]]
		}
		if e.enter(v) {
			continue
		}
		path := e.path()
		top.at++
		return []any{path, v}, true
	}
	return nil, false
}

// path is where the present part lies.
func (e *jqEvents) path() []any {
	e.q.p.Charge((1 + len(e.open)) * gasPerElement)
	path := make([]any, len(e.open))
	for i, o := range e.open {
		if o.list != nil {
			path[i] = o.at
		} else {
			path[i] = o.keys[o.at]
		}
	}
	return path
}
