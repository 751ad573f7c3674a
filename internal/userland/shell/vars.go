package shell

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
)

// owner marks which shell may change a variable in place; another one copies it first.
type owner struct{ _ byte }

type kind uint8

const (
	scalar kind = iota
	indexed
	associative
)

// variable is a shell variable with its attributes.
type variable struct {
	own      *owner
	size     int64 // that is held for it
	kind     kind
	set      bool
	exported bool
	readonly bool
	integer  bool
	lower    bool
	upper    bool
	capital  bool
	ref      bool // str names another variable

	str  string
	keys []int // of vals, in order; nil where vals begins with 0 and has no holes
	vals []string
	m    map[string]item
	seq  int
	list []string // the keys of m in order; nil when it has to be made again
}

type item struct {
	val string
	seq int
}

// frame is a call of a function.
type frame struct {
	name   string
	source string
	line   int // of the call
	params []string
	saved  []savedVar
	temps  []string // the variables of saved that the assignments before the call have set
}

// savedVar is what a variable was before another one hid it.
type savedVar struct {
	name    string
	old     *variable
	optind  int // where getopts was
	optlast int
}

const variableBytes = 96 // that a variable or an element takes besides its text

// rawVariable returns a variable without following references.
func rawVariable(sh *shell, name string) *variable {
	if v := sh.vars[name]; v != nil {
		return v
	}
	if special(name) {
		return dynamicVariable(sh, name)
	}
	return nil
}

// resolve follows the references of a name: to another one, perhaps with a subscript.
func (sh *shell) resolve(name string) string {
	for range 10 {
		v := sh.vars[name]
		if v == nil || !v.ref || v.str == "" || v.str == name {
			return name
		}
		name = v.str
	}
	return name
}

// refersToItself reports whether the references of a name lead back to it.
func refersToItself(sh *shell, name string) bool {
	at := name
	for range 10 {
		v := sh.vars[at]
		if v == nil || !v.ref || v.str == "" || v.str == at {
			return false
		}
		if at = v.str; at == name {
			return true
		}
	}
	return false
}

// lookup returns a variable, nil where there is none.
func (sh *shell) lookup(name string) *variable {
	v := rawVariable(sh, name)
	if v != nil && v.ref && v.str != "" {
		name = sh.resolve(name)
		base, _, _ := strings.Cut(name, "[")
		v = rawVariable(sh, base)
	}
	return v
}

// get returns the value of a scalar or of the first element, and whether there is one.
func (sh *shell) get(name string) (string, bool) {
	v := rawVariable(sh, name)
	if v == nil {
		return "", false
	}
	if v.ref && v.str != "" {
		if refersToItself(sh, name) {
			sh.complain("", "warning: %s: circular name reference", name)
			return "", false
		}
		target := sh.resolve(name)
		if strings.Contains(target, "[") {
			e := parameterOf(sh, target)
			return e.join(sh), e.set
		}
		if v = rawVariable(sh, target); v == nil {
			return "", false
		}
	}
	return v.scalar()
}

// str returns the value of a variable, "" where there is none.
func (sh *shell) str(name string) string {
	s, _ := sh.get(name)
	return s
}

func (v *variable) scalar() (string, bool) {
	switch v.kind {
	case indexed:
		return v.at(0)
	case associative:
		i, ok := v.m["0"]
		return i.val, ok
	}
	return v.str, v.set
}

// at returns an element of an indexed array.
func (v *variable) at(i int) (string, bool) {
	if v.keys == nil {
		if i >= 0 && i < len(v.vals) {
			return v.vals[i], true
		}
		return "", false
	}
	if p, ok := slices.BinarySearch(v.keys, i); ok {
		return v.vals[p], true
	}
	return "", false
}

// top returns one more than the highest index.
func (v *variable) top() int {
	if v.keys != nil {
		if len(v.keys) == 0 {
			return 0
		}
		return v.keys[len(v.keys)-1] + 1
	}
	return len(v.vals)
}

// values returns the elements in order.
func (v *variable) values() []string {
	switch v.kind {
	case indexed:
		return v.vals
	case associative:
		all := make([]string, 0, len(v.m))
		for _, k := range v.names() {
			all = append(all, v.m[k].val)
		}
		return all
	}
	if !v.set {
		return nil
	}
	return []string{v.str}
}

// names returns the keys in order.
func (v *variable) names() []string {
	switch v.kind {
	case indexed:
		all := make([]string, len(v.vals))
		for i := range all {
			if v.keys != nil {
				all[i] = strconv.Itoa(v.keys[i])
			} else {
				all[i] = strconv.Itoa(i)
			}
		}
		return all
	case associative:
		if v.list == nil {
			v.list = sortedKeys(v.m)
		}
		return v.list
	}
	if !v.set {
		return nil
	}
	return []string{"0"}
}

// sortedKeys orders the keys of an associative array as bash does: by the buckets of its hash table, in each the newest first.
func sortedKeys(m map[string]item) []string {
	buckets := uint32(1024)
	for len(m) > int(buckets)*2 {
		buckets *= 4
	}
	keys := slices.Collect(maps.Keys(m))
	slices.SortFunc(keys, func(a, b string) int {
		ha, hb := bashHash(a)&(buckets-1), bashHash(b)&(buckets-1)
		if ha != hb {
			return int(ha) - int(hb)
		}
		return m[b].seq - m[a].seq
	})
	return keys
}

func bashHash(s string) uint32 {
	h := uint32(2166136261)
	for _, c := range []byte(s) {
		h *= 16777619
		h ^= uint32(int32(int8(c)))
	}
	return h
}

// put sets an element of an associative array.
func (v *variable) put(key, val string) {
	if old, ok := v.m[key]; ok {
		v.m[key] = item{val, old.seq}
		return
	}
	v.seq++
	v.m[key] = item{val, v.seq}
	v.list = nil
}

// setAt sets an element of an indexed array.
func (v *variable) setAt(i int, val string) {
	if v.keys == nil {
		switch {
		case i < len(v.vals):
			v.vals[i] = val
			return
		case i == len(v.vals):
			v.vals = append(v.vals, val)
			return
		}
		v.keys = make([]int, len(v.vals), len(v.vals)+1)
		for j := range v.keys {
			v.keys[j] = j
		}
	}
	p, ok := slices.BinarySearch(v.keys, i)
	if ok {
		v.vals[p] = val
		return
	}
	v.keys = slices.Insert(v.keys, p, i)
	v.vals = slices.Insert(v.vals, p, val)
}

// unsetAt removes an element of an indexed array.
func (v *variable) unsetAt(i int) {
	if v.keys == nil {
		if i < 0 || i >= len(v.vals) {
			return
		}
		if i == len(v.vals)-1 {
			v.vals = v.vals[:i]
			return
		}
		v.keys = make([]int, len(v.vals))
		for j := range v.keys {
			v.keys[j] = j
		}
	}
	if p, ok := slices.BinarySearch(v.keys, i); ok {
		v.keys = slices.Delete(v.keys, p, p+1)
		v.vals = slices.Delete(v.vals, p, p+1)
	}
}

// mine returns a variable that this shell may change in place, made where there is none.
func (sh *shell) mine(name string) *variable {
	v := sh.vars[name]
	if v != nil && v.own == sh.own {
		return v
	}
	n := &variable{}
	if v != nil {
		*n = *v
		n.keys, n.vals, n.m = slices.Clone(v.keys), slices.Clone(v.vals), maps.Clone(v.m)
		sh.charge(len(v.vals) + len(v.m)*4)
	} else {
		n.size = int64(variableBytes + len(name))
	}
	n.own = sh.own
	sh.hold(n.size)
	sh.vars[name] = n
	return n
}

// grow counts what a variable holds more.
func (sh *shell) grow(v *variable, n int) {
	v.size += int64(n)
	sh.hold(int64(n))
}

// drop forgets a variable.
func (sh *shell) drop(name string) {
	if v := sh.vars[name]; v != nil {
		if v.own == sh.own {
			sh.hold(-v.size)
		}
		delete(sh.vars, name)
	}
}

// validName reports whether s can be the name of a variable.
func validName(s string) bool {
	for i, c := range []byte(s) {
		if c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9' {
			continue
		}
		return false
	}
	return s != ""
}

// unset removes a variable.
func (sh *shell) unset(name string) error {
	v := sh.vars[name]
	if v == nil {
		return nil
	}
	if v.readonly {
		return fmt.Errorf("%s: cannot unset: readonly variable", name)
	}
	sh.drop(name)
	revealVariable(sh, name)
	sh.changed(name)
	return nil
}

// revealVariable gives back the variable that a local one of a caller hid; one of the function that runs stays local.
func revealVariable(sh *shell, name string) {
	for i := len(sh.frames) - 1; i >= 0; i-- {
		f := sh.frames[i]
		for j, s := range f.saved {
			if s.name != name {
				continue
			}
			if i == len(sh.frames)-1 && !f.temporary(name) && !sh.shopts["localvar_unset"] {
				return
			}
			f.saved = slices.Concat(f.saved[:j], f.saved[j+1:])
			if s.old != nil {
				sh.vars[name] = s.old
			}
			return
		}
	}
}

// temporary reports whether a variable is one of the assignments before the call.
func (f *frame) temporary(name string) bool { return slices.Contains(f.temps, name) }

// local makes a variable local to the function that runs, and returns whether it was not yet.
func (sh *shell) local(name string) bool {
	f := sh.frames[len(sh.frames)-1]
	for _, s := range f.saved {
		if s.name == name {
			if i := slices.Index(f.temps, name); i >= 0 { // it goes on with the value that the call gave it
				f.temps = slices.Concat(f.temps[:i], f.temps[i+1:])
			}
			return false
		}
	}
	f.saved = append(f.saved, hideVariable(sh, name))
	return true
}

// hideVariable takes a variable away until restore gives it back.
func hideVariable(sh *shell, name string) savedVar {
	s := savedVar{name: name, old: sh.vars[name]}
	delete(sh.vars, name)
	if name == "OPTIND" {
		s.optind, s.optlast = sh.optind, sh.optlast
		sh.optind, sh.optlast = 1, 0
	}
	return s
}

// unhideVariable undoes that a variable is local to the function that runs.
func unhideVariable(sh *shell, name string) {
	f := sh.frames[len(sh.frames)-1]
	i := slices.IndexFunc(f.saved, func(s savedVar) bool { return s.name == name })
	if i < 0 {
		return
	}
	old := f.saved[i].old
	f.saved = slices.Concat(f.saved[:i], f.saved[i+1:])
	sh.drop(name)
	if old != nil {
		sh.vars[name] = old
	}
}

// restore gives back variables that were hidden.
func (sh *shell) restore(saved []savedVar) {
	for i := len(saved) - 1; i >= 0; i-- {
		s := saved[i]
		sh.drop(s.name)
		if s.old != nil {
			sh.vars[s.name] = s.old
		}
		sh.changed(s.name)
		if s.name == "OPTIND" {
			sh.optind, sh.optlast = s.optind, s.optlast
		}
	}
}

// environOf returns what programs that are started get.
func environOf(sh *shell) []string {
	names := make([]string, 0, len(sh.vars))
	for name, v := range sh.vars {
		if v.exported && v.set && v.kind == scalar {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	env := make([]string, 0, len(names)+len(sh.funcs)/8)
	for _, name := range names {
		env = append(env, name+"="+sh.vars[name].str)
	}
	for _, name := range slices.Sorted(maps.Keys(sh.funcs)) {
		if f := sh.funcs[name]; f.exported {
			env = append(env, "BASH_FUNC_"+name+"%%=() "+f.print())
		}
	}
	sh.charge(len(env) * 20)
	return env
}

// zoneOf returns the time zone of the variable TZ, which counts only where it is exported.
func zoneOf(sh *shell) *time.Location {
	v := sh.vars["TZ"]
	if v == nil || !v.exported {
		return time.UTC
	}
	sh.charge(posix.GasPerZone)
	return posix.Zone(v.str)
}

// setVariables sets the variables with which a shell begins.
func setVariables(sh *shell, p *program.Process) {
	for _, kv := range p.Env {
		name, val, ok := strings.Cut(kv, "=")
		if ok && strings.HasPrefix(name, "BASH_FUNC_") && strings.HasSuffix(name, "%%") {
			importFunction(sh, name[10:len(name)-2], val)
			continue
		}
		if ok && validName(name) {
			v := sh.mine(name)
			sh.grow(v, len(val))
			v.str, v.set, v.exported = val, true, true
		}
	}
	level, _ := strconv.Atoi(sh.str("SHLVL"))
	for _, kv := range [][2]string{{"PATH", defaultPath}, {"IFS", " \t\n"}, {"PS4", "+ "}, {"OPTIND", "1"}, {"OPTERR", "1"},
		{"SHLVL", strconv.Itoa(level + 1)},
		{"BASH", "/bin/bash"}, {"BASH_VERSION", "5.2.15(1)-release"}, {"HOSTTYPE", "x86_64"}, {"OSTYPE", "linux-gnu"},
		{"MACHTYPE", "x86_64-pc-linux-gnu"},
		{"HOSTNAME", "agentbox"}, {"TERM", "dumb"}} {
		if _, has := sh.vars[kv[0]]; !has || kv[0] == "SHLVL" || kv[0] == "IFS" {
			sh.set(kv[0], kv[1])
		}
	}
	sh.vars["SHLVL"].exported = true
	for i, s := range []string{"5", "2", "15", "1", "release", "x86_64-pc-linux-gnu"} {
		_ = assignIndex(sh, "BASH_VERSINFO", i, s, false)
	}
	for _, kv := range [][2]string{{"UID", "0"}, {"EUID", "0"}, {"PPID", strconv.Itoa(p.PPID)}} {
		sh.set(kv[0], kv[1])
		sh.vars[kv[0]].readonly, sh.vars[kv[0]].integer = true, true
	}
	sh.vars["BASH_VERSINFO"].readonly = true
	startFolder(sh)
}

// flags returns the attributes of a variable as declare -p writes them.
func (v *variable) flags() string {
	b := ""
	for _, f := range []struct {
		on bool
		c  string
	}{{v.kind == indexed, "a"}, {v.kind == associative, "A"}, {v.capital, "c"}, {v.integer, "i"}, {v.lower, "l"}, {v.ref, "n"},
		{v.readonly, "r"}, {v.upper, "u"}, {v.exported, "x"}} {
		if f.on {
			b += f.c
		}
	}
	return b
}

// declaration returns the command that makes a variable as it is.
func (v *variable) declaration(name string) string {
	flags := v.flags()
	if flags == "" {
		flags = "-"
	}
	head := "declare -" + flags + " " + name
	if !v.set {
		return head
	}
	if v.kind == scalar {
		return head + "=" + quoteDouble(v.str)
	}
	return head + "=" + v.compound(false)
}

// compound returns the elements of an array as an assignment writes them.
func (v *variable) compound(plain bool) string {
	var b strings.Builder
	b.WriteByte('(')
	names, values := v.names(), v.values()
	for i, k := range names {
		if i > 0 {
			b.WriteByte(' ')
		}
		if v.kind == associative {
			k = quoteKey(k)
		}
		b.WriteString("[" + k + "]=" + quoteDouble(values[i]))
	}
	if v.kind == associative && !plain && len(names) > 0 {
		b.WriteByte(' ')
	}
	b.WriteByte(')')
	return b.String()
}
