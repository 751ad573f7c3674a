package shell

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

type assigned struct {
	name string
	val  string
	add  bool
}

// runAssignments runs a command that has no words.
func runAssignments(sh *shell, s *syntax.Stmt, c *syntax.CallExpr, substs int) {
	if len(s.Redirs) > 0 {
		undo, ok := sh.redirect(s.Redirs)
		undo.restore(sh)
		if !ok {
			sh.status = 1
			return
		}
	}
	for _, a := range c.Assigns {
		if err := assignNode(sh, a); err != nil {
			sh.complain("", "%s", err)
			panic(discard{1})
		}
	}
	sh.status = 0
	if sh.substs != substs {
		sh.status = sh.substCode
	}
}

// assignNode does one assignment of a script.
func assignNode(sh *shell, a *syntax.Assign) error {
	name := a.Name.Value
	if a.Array != nil {
		return assignArray(sh, name, a.Array, a.Append, scalar)
	}
	if a.Index != nil {
		sub := codeOf(sh, a.Index)
		val := sh.one(a.Value, modeLiteral, true)
		if sh.on[optXtrace] {
			sh.trace(name + "[" + sub + "]" + assignOperator(a.Append) + quoteTrace(val))
		}
		return assignElement(sh, name, sub, val, a.Append)
	}
	val := sh.one(a.Value, modeLiteral, true)
	if sh.on[optXtrace] {
		sh.trace(name + assignOperator(a.Append) + quoteTrace(val))
	}
	return sh.assign(name, val, a.Append)
}

func assignOperator(add bool) string {
	if add {
		return "+="
	}
	return "="
}

// assignArray is name=( ... ). want is the kind that a declaration asks for, scalar for none.
func assignArray(sh *shell, name string, array *syntax.ArrayExpr, add bool, want kind) error {
	name = sh.resolve(name)
	old := sh.vars[name]
	if old != nil && old.readonly {
		return readonlyError{name}
	}
	assoc := want == associative || old != nil && old.kind == associative
	type element struct {
		key, val string
		keyed    bool
		add      bool
	}
	var elements []element
	sh.charge(gasPerWord * len(array.Elems))
	for _, e := range array.Elems {
		if e.Index != nil {
			sub, add := strings.CutSuffix(codeOf(sh, e.Index), appendElement)
			el := element{key: sub, add: add, val: sh.one(e.Value, modeLiteral, true), keyed: true}
			if assoc {
				el.key = subscriptKey(sh, sub)
			}
			elements = append(elements, el)
			continue
		}
		for i, f := range sh.fields([]*syntax.Word{e.Value}) {
			if i%256 == 255 {
				sh.charge(256 * gasPerWord)
			}
			elements = append(elements, element{val: f})
		}
	}
	if sh.on[optXtrace] {
		raw := make([]string, 0, len(array.Elems))
		for _, e := range array.Elems {
			raw = append(raw, codeOf(sh, e))
		}
		sh.trace(name + assignOperator(add) + "(" + strings.Join(raw, " ") + ")")
	}
	v := sh.mine(name)
	if !add {
		sh.grow(v, variableBytes+len(name)-int(v.size))
		v.str, v.vals, v.keys, v.m, v.list = "", nil, nil, nil, nil
	} else if v.kind == scalar && v.set && !assoc {
		v.vals, v.str = []string{v.str}, ""
	}
	v.set = true
	if assoc {
		v.kind = associative
		if v.m == nil {
			v.m = map[string]item{}
		}
		for i := 0; i < len(elements); i++ {
			e := elements[i]
			if !e.keyed {
				key := e.val
				e.val = ""
				if i+1 < len(elements) && !elements[i+1].keyed {
					i++
					e.val = elements[i].val
				}
				e.key = key
			}
			if e.key == "" {
				return fmt.Errorf("%s: bad array subscript", name)
			}
			if err := assignKey(sh, name, e.key, e.val, e.add); err != nil {
				return err
			}
		}
		return nil
	}
	v.kind = indexed
	next := v.top()
	for _, e := range elements {
		if e.keyed {
			i, ok := subscriptIndex(sh, v, e.key)
			if !ok {
				return fmt.Errorf("[%s]=%s: bad array subscript", e.key, e.val)
			}
			next = i
		}
		if err := assignIndex(sh, name, next, e.val, e.add); err != nil {
			return err
		}
		next++
	}
	return nil
}

// assignTemporarily sets variables for one command and returns what they were.
func assignTemporarily(sh *shell, assigns []assigned) []savedVar {
	saved := make([]savedVar, 0, len(assigns))
	for _, a := range assigns {
		old := sh.vars[a.name]
		if old != nil && old.readonly {
			sh.complain("", "%s: readonly variable", a.name)
			continue
		}
		saved = append(saved, hideVariable(sh, a.name))
		val := a.val
		if a.add && old != nil {
			val = old.str + val
		}
		v := sh.mine(a.name)
		sh.grow(v, len(val))
		v.str, v.set, v.exported = val, true, true
		sh.changed(a.name)
	}
	return saved
}
