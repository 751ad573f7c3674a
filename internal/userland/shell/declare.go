package shell

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// declared is one operand of declare, export, readonly or local.
type declared struct {
	name  string
	sub   string // of an element
	elem  bool
	val   string
	has   bool
	add   bool
	array *syntax.ArrayExpr
}

// declClause runs a declaration of the syntax, in which arrays can stand.
func declClause(sh *shell, c *syntax.DeclClause) {
	args := []string{c.Variant.Value}
	var items []declared
	options := true
	trace := args[0]
	for _, a := range c.Args {
		if a.Name == nil {
			for _, f := range sh.fields([]*syntax.Word{a.Value}) {
				trace += " " + quoteTrace(f)
				if options && len(f) > 1 && (f[0] == '-' || f[0] == '+') {
					if f == "--" {
						options = false
						continue
					}
					args = append(args, f)
					continue
				}
				options = false
				items = append(items, parseDeclared(f))
			}
			continue
		}
		options = false
		d := declared{name: a.Name.Value, add: a.Append, array: a.Array}
		if a.Index != nil {
			d.elem, d.sub = true, codeOf(sh, a.Index)
		}
		switch {
		case !a.Naked && a.Array == nil:
			d.has, d.val = true, sh.one(a.Value, modeLiteral, true)
			trace += " " + quoteTrace(d.name+assignOperator(d.add)+d.val)
		case a.Naked:
			trace += " " + d.name
		default:
			trace += " " + quoteTrace(d.name+assignOperator(d.add)+strings.TrimPrefix(codeOf(sh, a), d.name+assignOperator(d.add)))
		}
		items = append(items, d)
	}
	if sh.on[optXtrace] {
		sh.trace(trace)
	}
	sh.status = declareNames(sh, args, items)
	sh.last = c.Variant.Value
}

func parseDeclared(s string) declared {
	name, val, has := strings.Cut(s, "=")
	d := declared{name: name, val: val, has: has}
	if has {
		d.name, d.add = strings.CutSuffix(name, "+")
	}
	if base, sub, ok := splitSubscript(d.name); ok {
		d.name, d.sub, d.elem = base, sub, true
	}
	return d
}

// biDeclare runs a declaration whose words are expanded already.
func biDeclare(sh *shell, args []string) int {
	i := 1
	opts := []string{args[0]}
	for ; i < len(args) && len(args[i]) > 1 && (args[i][0] == '-' || args[i][0] == '+'); i++ {
		if args[i] == "--" {
			i++
			break
		}
		opts = append(opts, args[i])
	}
	items := make([]declared, 0, len(args)-i)
	for _, a := range args[i:] {
		items = append(items, parseDeclared(a))
	}
	return declareNames(sh, opts, items)
}

func declareUsage(name string) string {
	switch name {
	case "export":
		return "export: usage: export [-fn] [name[=value] ...] or export -p\n"
	case "readonly":
		return "readonly: usage: readonly [-aAf] [name[=value] ...] or readonly -p\n"
	case "local":
		return "local: usage: local [option] name[=value] ...\n"
	}
	return name + ": usage: " + name + " [-aAfFgiIlnrtux] [name[=value] ...] or " + name + " -p [-aAfFilnrtux] [name ...]\n"
}

// declareNames gives attributes and values to variables. args are the command's name and its options.
func declareNames(sh *shell, args []string, items []declared) int {
	name := args[0]
	on, off := map[byte]bool{}, map[byte]bool{}
	for _, a := range args[1:] {
		for _, c := range []byte(a[1:]) {
			known := "aAcfFgiIlnprtux"
			switch name {
			case "export":
				known = "fnp"
			case "readonly":
				known = "aAfp"
			}
			if strings.IndexByte(known, c) < 0 {
				sh.complain(name, "%c%c: invalid option", a[0], c)
				sh.stderr(declareUsage(name))
				return 2
			}
			if a[0] == '-' {
				on[c] = true
			} else {
				off[c] = true
			}
		}
	}
	switch name {
	case "export":
		if on['n'] {
			off['x'] = true
			delete(on, 'n')
		} else {
			on['x'] = true
		}
	case "readonly":
		on['r'] = true
	case "local":
		if len(sh.frames) == 0 {
			sh.complain("local", "can only be used in a function")
			return 1
		}
	}
	if on['f'] || on['F'] {
		return declareFunctions(sh, name, on, off, items)
	}
	if len(items) == 0 {
		return listDeclared(sh, name, on)
	}
	if on['p'] && name != "export" && name != "readonly" {
		return printDeclared(sh, name, items)
	}
	status := 0
	for _, d := range items {
		if !validName(d.name) || d.elem && !d.has && (name == "export" || name == "readonly") {
			text := d.name
			if d.has {
				text += assignOperator(d.add) + d.val
			}
			if d.elem {
				text = d.name + "[" + d.sub + "]"
			}
			sh.complain(name, "`%s': not a valid identifier", text)
			status = 1
			continue
		}
		if !declareOne(sh, name, on, off, d) {
			status = 1
		}
	}
	return status
}

func declareOne(sh *shell, by string, on, off map[byte]bool, d declared) bool {
	target := d.name
	if old := sh.vars[target]; old != nil && old.ref && !on['n'] && !off['n'] && by != "local" {
		target = sh.resolve(target)
	}
	old := sh.vars[target]
	if len(sh.frames) > 0 && !on['g'] && by != "export" && by != "readonly" && (old == nil || !old.readonly) {
		declareLocal(sh, target, old, on['I'])
	}
	old = sh.vars[target]
	if old != nil && old.readonly && (d.has || d.array != nil || off['r']) {
		if by == "export" || by == "readonly" {
			by = ""
		}
		sh.complain(by, "%s: readonly variable", target)
		return false
	}
	want := scalar
	switch {
	case on['A']:
		want = associative
	case on['a']:
		want = indexed
	}
	if old != nil && old.set && old.kind == indexed && want == associative {
		sh.complain(by, "%s: cannot convert indexed to associative array", target)
		return false
	}
	if old != nil && old.kind == associative && want == indexed {
		sh.complain(by, "%s: cannot convert associative to indexed array", target)
		return false
	}
	if special(target) && old == nil {
		if d.has {
			assignDynamic(sh, target, d.val)
		}
		return true
	}
	v := sh.mine(target)
	v.become(want)
	declareCase(v, on, off)
	if on['n'] {
		return declareReference(sh, by, v, target, d, on['g'])
	}
	if off['n'] {
		v.ref = false
	}
	if err := declareValue(sh, target, d, v.kind, want); err != nil {
		sh.complain(by, "%s", err)
		return false
	}
	if sh.on[optXtrace] && d.has && (by == "export" || by == "readonly") {
		sh.trace(target + assignOperator(d.add) + quoteTrace(d.val))
	}
	declareFlags(sh, sh.mine(target), on, off, d.has)
	return true
}

// declareFlags sets the attributes -x and -r after a value was assigned, or was not.
func declareFlags(sh *shell, v *variable, on, off map[byte]bool, assigned bool) {
	if on['x'] {
		v.exported = true
	}
	if off['x'] {
		v.exported = false
	}
	if on['r'] {
		v.readonly = true
	}
	if assigned && sh.on[optAllexport] {
		v.exported = true
	}
}

// declareLocal makes a variable local to the function that runs. inherit says that it begins with the value of the old one.
func declareLocal(sh *shell, target string, old *variable, inherit bool) {
	if !sh.local(target) {
		return
	}
	v := sh.mine(target)
	v.exported = old != nil && old.exported
	if (inherit || sh.shopts["localvar_inherit"]) && old != nil {
		v.set, v.str, v.kind = old.set, old.str, old.kind
		v.vals, v.keys, v.m = slices.Clone(old.vals), slices.Clone(old.keys), maps.Clone(old.m)
	}
}

// become makes an array of a scalar, with its value as the first element.
func (v *variable) become(want kind) {
	if want != scalar && v.kind == scalar {
		if v.set && want == indexed {
			v.vals, v.str = []string{v.str}, ""
		}
		v.kind = want
		if want == associative && v.m == nil {
			v.m = map[string]item{}
		}
	}
}

// declareCase sets the attributes that change a value: -i, -l, -u and -c.
func declareCase(v *variable, on, off map[byte]bool) {
	if on['i'] || off['i'] {
		v.integer = on['i']
	}
	if on['l'] {
		v.lower, v.upper, v.capital = true, false, false
	}
	if on['u'] {
		v.upper, v.lower, v.capital = true, false, false
	}
	if on['c'] || off['c'] {
		v.capital = on['c']
		v.lower, v.upper = v.lower && !on['c'], v.upper && !on['c']
	}
	if off['l'] {
		v.lower = false
	}
	if off['u'] {
		v.upper = false
	}
}

// declareReference makes a variable a reference to the one that its value names. global says that declare -g did it.
func declareReference(sh *shell, by string, v *variable, target string, d declared, global bool) bool {
	v.ref = true
	if d.has {
		if d.val == target && len(sh.frames) > 0 && !global {
			sh.complain(by, "warning: %s: circular name reference", target)
			unhideVariable(sh, target)
			return true
		}
		if d.val == target {
			sh.complain(by, "%s: nameref variable self references not allowed", target)
			v.ref = false
			return false
		}
		base, _, _ := strings.Cut(d.val, "[")
		if !validName(base) {
			sh.complain(by, "`%s': invalid variable name for name reference", d.val)
			v.ref = false
			return false
		}
		v.str, v.set = d.val, true
	}
	return true
}

// declareValue assigns the value of a declaration.
func declareValue(sh *shell, target string, d declared, has, want kind) error {
	switch {
	case d.array != nil:
		return assignArray(sh, target, d.array, d.add, want)
	case d.elem && d.has:
		return assignElement(sh, target, d.sub, d.val, d.add)
	case d.has && has != scalar && strings.HasPrefix(d.val, "(") && strings.HasSuffix(d.val, ")"):
		return assignText(sh, target, d, has)
	case d.has:
		return sh.assign(target, d.val, d.add)
	}
	return nil
}

// assignText is declare -a "name=(a b)": the value is source text.
func assignText(sh *shell, name string, d declared, want kind) error {
	stmts, code, err := parseSource(sh, name+"="+d.val)
	if err != nil || len(stmts) != 1 {
		return sh.assign(name, d.val, d.add)
	}
	call, ok := stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) != 1 || call.Assigns[0].Array == nil {
		return sh.assign(name, d.val, d.add)
	}
	before := sh.source
	sh.source = &text{code: code, name: before.name}
	defer func() { sh.source = before }()
	return assignArray(sh, name, call.Assigns[0].Array, d.add, want)
}

func declareFunctions(sh *shell, by string, on, off map[byte]bool, items []declared) int {
	if len(items) == 0 {
		var b strings.Builder
		for _, n := range slices.Sorted(maps.Keys(sh.funcs)) {
			if on['F'] {
				b.WriteString("declare -f " + n + "\n")
			} else {
				b.WriteString(n + " () \n" + sh.funcs[n].print() + "\n")
			}
		}
		return sh.stdout(by, b.String())
	}
	status := 0
	for _, d := range items {
		f := sh.funcs[d.name]
		switch {
		case f == nil && by == "export":
			sh.complain(by, "%s: not a function", d.name)
			status = 1
		case f == nil:
			status = 1
		case by == "export":
			exported := *f
			exported.exported = !off['x']
			sh.funcs[d.name] = &exported
		case by == "readonly":
		case on['F'] && sh.shopts["extdebug"]:
			sh.stdout(by, d.name+" "+strconv.Itoa(f.line)+" "+sourceOf(sh, f)+"\n")
		case on['F']:
			sh.stdout(by, d.name+"\n")
		default:
			sh.stdout(by, d.name+" () \n"+f.print()+"\n")
		}
	}
	return status
}

func printDeclared(sh *shell, by string, items []declared) int {
	status := 0
	for _, d := range items {
		v := rawVariable(sh, d.name)
		if v == nil {
			sh.complain(by, "%s: not found", d.name)
			status = 1
			continue
		}
		sh.stdout(by, v.declaration(d.name)+"\n")
	}
	return status
}

func listDeclared(sh *shell, by string, on map[byte]bool) int {
	if by == "declare" && len(on) == 0 || by == "typeset" && len(on) == 0 {
		return biSet(sh, []string{"set"})
	}
	var b strings.Builder
	for _, n := range slices.Sorted(maps.Keys(sh.vars)) {
		v := sh.vars[n]
		if by == "local" {
			f := sh.frames[len(sh.frames)-1]
			if !slices.ContainsFunc(f.saved, func(s savedVar) bool { return s.name == n }) {
				continue
			}
			b.WriteString(n + "=" + v.str + "\n")
			continue
		}
		flags := v.flags()
		show := true
		for c := range on {
			if c != 'p' && c != 'g' && strings.IndexByte(flags, c) < 0 {
				show = false
			}
		}
		if show {
			b.WriteString(v.declaration(n) + "\n")
		}
	}
	return sh.stdout(by, b.String())
}
