package shell

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// readonlyError is what assigning to a constant is; the caller decides how far it reaches.
type readonlyError struct{ name string }

func (r readonlyError) Error() string { return r.name + ": readonly variable" }

// assign sets a scalar, or the first element of an array.
func (sh *shell) assign(name, val string, add bool) error {
	if v := sh.vars[name]; v != nil && v.ref && refersToItself(sh, name) {
		return fmt.Errorf("warning: %s: circular name reference", name)
	}
	target := sh.resolve(name)
	if base, sub, ok := splitSubscript(target); ok {
		return assignElement(sh, base, sub, val, add)
	}
	if v := sh.vars[target]; v != nil && v.readonly {
		return readonlyError{target}
	}
	switch v := sh.vars[target]; {
	case v != nil && v.ref && v.str == "" && !add:
		if base, _, _ := splitSubscript(val); !validName(base) {
			return fmt.Errorf("`%s': not a valid identifier", val)
		}
	case v != nil && v.kind == indexed:
		return assignIndex(sh, target, 0, val, add)
	case v != nil && v.kind == associative:
		return assignKey(sh, target, "0", val, add)
	}
	if special(target) && assignDynamic(sh, target, val) {
		return nil
	}
	v := sh.mine(target)
	val = convertValue(sh, v, v.str, val, add)
	sh.grow(v, len(val)-len(v.str))
	if add && !v.integer && len(val) > 4096 {
		sh.charge(len(val) / 8)
	}
	v.str, v.set = val, true
	if sh.on[optAllexport] {
		v.exported = true
	}
	sh.changed(target)
	return nil
}

// set is assign of the shell's own values, which cannot fail.
func (sh *shell) set(name, val string) { _ = sh.assign(name, val, false) }

// convertValue applies the attributes of a variable to a value.
func convertValue(sh *shell, v *variable, old, val string, add bool) string {
	switch {
	case v.integer:
		n := sh.arith(val)
		if add {
			n += sh.arith(old)
		}
		return strconv.FormatInt(n, 10)
	case v.lower:
		val = strings.ToLower(val)
	case v.upper:
		val = strings.ToUpper(val)
	case v.capital:
		_, size := utf8.DecodeRuneInString(val)
		val = strings.ToUpper(val[:size]) + strings.ToLower(val[size:])
	}
	if add {
		return old + val
	}
	return val
}

// assignDynamic sets what a variable that is made when it is read begins with; it reports whether that is all.
func assignDynamic(sh *shell, name, val string) bool {
	switch name {
	case "RANDOM":
		n, _ := strconv.ParseInt(val, 10, 64)
		sh.seed, sh.seeded = uint32(n), true
	case "SECONDS":
		n, _ := strconv.ParseInt(val, 10, 64)
		sh.started = sh.p.Now().Add(-seconds(float64(n)))
	case "BASH_ARGV0":
		sh.name = val
	}
	return true
}

// changed is called when a variable has another value, for those on which the shell depends.
func (sh *shell) changed(name string) {
	switch name {
	case "IFS":
		sh.ifs, sh.ifsSet = sh.get("IFS")
	case "GLOBIGNORE":
		set := false
		sh.ignore, set = sh.get("GLOBIGNORE")
		sh.shopts["dotglob"] = set && sh.ignore != ""
	case "PATH":
		clear(sh.hash)
	case "OPTIND":
		sh.optind = 1
	}
}

// assignIndex sets an element of an indexed array; a scalar becomes one.
func assignIndex(sh *shell, name string, i int, val string, add bool) error {
	v := sh.vars[name]
	if v != nil && v.readonly {
		return readonlyError{name}
	}
	if special(name) && v == nil {
		return nil
	}
	v = sh.mine(name)
	if v.kind == scalar {
		v.kind = indexed
		if v.set {
			v.vals = []string{v.str}
		}
		v.str = ""
	}
	old, had := v.at(i)
	val = convertValue(sh, v, old, val, add)
	more := len(val) - len(old)
	if !had {
		more += 16
	}
	sh.grow(v, more)
	if v.keys != nil && !had {
		sh.charge(len(v.keys) / 16)
	}
	v.setAt(i, val)
	v.set = true
	return nil
}

// assignKey sets an element of an associative array.
func assignKey(sh *shell, name, key, val string, add bool) error {
	v := sh.mine(name)
	if v.readonly {
		return readonlyError{name}
	}
	if v.m == nil {
		v.m = map[string]item{}
	}
	old, had := v.m[key]
	val = convertValue(sh, v, old.val, val, add)
	more := len(val) - len(old.val)
	if !had {
		more += variableBytes + len(key)
	}
	sh.grow(v, more)
	v.put(key, val)
	v.set = true
	return nil
}

// assignElement sets name[sub], sub being source text.
func assignElement(sh *shell, name, sub, val string, add bool) error {
	name = sh.resolve(name)
	if sub == emptySubscript {
		sub = ""
	}
	if v := sh.vars[name]; v != nil && v.kind == associative {
		if v.readonly {
			return readonlyError{name}
		}
		key := subscriptKey(sh, sub)
		if key == "" {
			return fmt.Errorf("%s[%s]: bad array subscript", name, sub)
		}
		return assignKey(sh, name, key, val, add)
	}
	if sub == "" || sub == "@" || sub == "*" {
		return fmt.Errorf("%s[%s]: bad array subscript", name, sub)
	}
	i, ok := subscriptIndex(sh, sh.vars[name], sub)
	if !ok {
		return fmt.Errorf("%s[%s]: bad array subscript", name, sub)
	}
	return assignIndex(sh, name, i, val, add)
}

// subscriptIndex evaluates a subscript of an indexed array; a negative one counts from the end.
func subscriptIndex(sh *shell, v *variable, sub string) (int, bool) {
	i := sh.arith(arithText(sh, sub))
	if i < 0 {
		top := 0
		if v != nil {
			if top = v.top(); v.kind == scalar && v.set {
				top = 1
			}
		}
		i += int64(top)
	}
	return int(i), i >= 0
}

// splitSubscript splits name[sub].
func splitSubscript(s string) (name, sub string, ok bool) {
	i := strings.IndexByte(s, '[')
	if i <= 0 || s[len(s)-1] != ']' || !validName(s[:i]) {
		return s, "", false
	}
	return s[:i], s[i+1 : len(s)-1], true
}
