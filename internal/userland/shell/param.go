package shell

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// value is what a parameter has.
type value struct {
	name   string // with the subscript
	s      string
	list   []string
	isList bool // by @ or *
	star   bool
	set    bool
	v      *variable // nil for special parameters
}

func (e value) join(sh *shell) string {
	if !e.isList {
		return e.s
	}
	if e.star {
		return joinFields(sh, e.list)
	}
	return strings.Join(e.list, " ")
}

// parameterOf returns the value of a parameter by its text: a name, a number, a special character, a name with a subscript.
func parameterOf(sh *shell, name string) value {
	if base, sub, ok := splitSubscript(name); ok {
		return elementOf(sh, base, sub, false)
	}
	e := value{name: name}
	switch name {
	case "@", "*":
		e.list, e.isList, e.star, e.set = sh.params, true, name == "*", len(sh.params) > 0
	case "#":
		e.s, e.set = strconv.Itoa(len(sh.params)), true
	case "?":
		e.s, e.set = strconv.Itoa(sh.status), true
	case "$":
		e.s, e.set = strconv.Itoa(sh.root), true
	case "!":
		if sh.lastJob > 0 {
			e.s, e.set = strconv.Itoa(sh.lastJob), true
		}
	case "-":
		e.s, e.set = optionLetters(sh), true
	case "_":
		e.s, e.set = sh.last, true
	case "0":
		e.s, e.set = sh.name, true
	case countParameter:
		return parameterOf(sh, "#")
	default:
		if name != "" && name[0] >= '0' && name[0] <= '9' {
			if n, err := strconv.Atoi(name); err == nil && n <= len(sh.params) {
				e.s, e.set = sh.params[n-1], true
			}
			return e
		}
		e.s, e.set = sh.get(name)
		e.v = sh.lookup(name)
	}
	return e
}

// elementOf returns the value of name[sub], sub being source text.
func elementOf(sh *shell, name, sub string, expanded bool) value {
	e := value{name: name + "[" + sub + "]"}
	if v := sh.vars[name]; v != nil && v.ref && refersToItself(sh, name) {
		sh.complain("", "warning: %s: circular name reference", name)
		return value{name: name}
	}
	target := sh.resolve(name)
	v := rawVariable(sh, target)
	e.v = v
	if sub == "@" || sub == "*" {
		e.isList, e.star = true, sub == "*"
		if v != nil {
			e.list = v.values()
			e.set = len(e.list) > 0
		}
		return e
	}
	if v != nil && v.kind == associative {
		key := sub
		if !expanded {
			key = subscriptKey(sh, sub)
		}
		i, ok := v.m[key]
		e.s, e.set = i.val, ok
		return e
	}
	i := sh.arith(arithText(sh, sub))
	if v == nil {
		return e
	}
	if i < 0 {
		top := v.top()
		if v.kind == scalar && v.set {
			top = 1
		}
		if i += int64(top); i < 0 {
			sh.complain("", "%s: bad array subscript", name)
			return e
		}
	}
	switch {
	case v.kind == indexed:
		e.s, e.set = v.at(int(i))
	case i == 0:
		e.s, e.set = v.str, v.set
	}
	return e
}

// codeOf returns the source text of a node.
func codeOf(sh *shell, n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from >= 0 && from <= to && to <= len(sh.source.code) {
		return sh.source.code[from:to]
	}
	var b strings.Builder
	_ = syntax.NewPrinter().Print(&b, n)
	return b.String()
}

// param expands a parameter.
func (k *sink) param(pe *syntax.ParamExp, quoted bool) {
	sh := k.sh
	name := pe.Param.Value
	if pe.Short || !pe.Excl && !pe.Length && pe.Index == nil && pe.Slice == nil && pe.Repl == nil && pe.Exp == nil && pe.Names == 0 {
		if k.plain(pe, quoted) {
			return
		}
	}
	if pe.Width || pe.IsSet || pe.Flags != nil || len(pe.Modifiers) > 0 {
		badSubstitution(sh, pe)
	}
	if pe.Excl && pe.Names != 0 {
		k.emit(value{list: namesBeginning(sh, name), isList: true, star: pe.Names == syntax.NamesPrefix}, quoted)
		return
	}
	e := paramValue(sh, pe)
	if pe.Length {
		if !e.set && !e.isList && sh.on[optNounset] {
			unboundVariable(sh, e.name)
		}
		k.number(e, quoted)
		return
	}
	if pe.Exp != nil && k.conditional(pe, e, quoted) {
		return
	}
	if !e.set && !e.isList && sh.on[optNounset] && !(pe.Excl && pe.Index != nil) {
		unboundVariable(sh, e.name)
	}
	switch {
	case pe.Slice != nil:
		e = sliceOf(sh, pe, e)
	case pe.Repl != nil && !e.set && !e.isList:
	case pe.Repl != nil:
		e = replaced(sh, pe, e)
	case pe.Exp != nil:
		e = operateOn(sh, pe, e)
	}
	k.emit(e, quoted)
}

// plain expands a parameter that is a variable's name and no more. It reports false for a special parameter, such as $1 or $?.
func (k *sink) plain(pe *syntax.ParamExp, quoted bool) bool {
	sh, name := k.sh, pe.Param.Value
	if name == "LINENO" {
		lineOf(sh, pe)
	}
	c := name[0]
	if pe.Index != nil || !(c == '_' && len(name) > 1 || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
		return false
	}
	s, ok := sh.get(name)
	if !ok && sh.on[optNounset] {
		unboundVariable(sh, name)
	}
	if quoted {
		k.add(s, true)
	} else {
		k.split(s)
	}
	return true
}

// namesBeginning returns the names of the variables that begin with a text, in order: ${!text*}.
func namesBeginning(sh *shell, text string) (names []string) {
	for _, n := range slices.Sorted(maps.Keys(sh.vars)) {
		if strings.HasPrefix(n, text) && sh.vars[n].set {
			names = append(names, n)
		}
	}
	return names
}

// number appends the length of a value: ${#name}.
func (k *sink) number(e value, quoted bool) {
	n := len(e.list)
	if !e.isList {
		n = utf8.RuneCountInString(e.s)
	}
	if quoted {
		k.add(strconv.Itoa(n), true)
	} else {
		k.split(strconv.Itoa(n))
	}
}

// anchorOf returns the anchor with which a replacement's pattern begins in the source, 0 for none.
func anchorOf(pe *syntax.ParamExp) byte {
	if pe.Repl.Orig != nil && len(pe.Repl.Orig.Parts) > 0 {
		if lit, ok := pe.Repl.Orig.Parts[0].(*syntax.Lit); ok && lit.Value != "" && (lit.Value[0] == '#' || lit.Value[0] == '%') {
			return lit.Value[0]
		}
	}
	return 0
}

// replacementText expands the text that is put in by a replacement: an & that is quoted stands for itself.
func replacementText(sh *shell, w *syntax.Word) string {
	if w == nil {
		return ""
	}
	k := sink{sh: sh, mode: modeLiteral}
	for _, p := range w.Parts {
		inner := sink{sh: sh, mode: modeLiteral}
		switch q := p.(type) {
		case *syntax.Lit:
			if strings.Contains(q.Value, `\&`) {
				k.add(strings.ReplaceAll(q.Value, `\/`, `/`), true)
				continue
			}
			inner.walk([]syntax.WordPart{p}, false)
			k.add(strings.ReplaceAll(string(inner.text), `\`, `\\`), true)
		case *syntax.SglQuoted, *syntax.DblQuoted:
			inner.part(p, false)
			k.add(strings.NewReplacer(`\`, `\\`, `&`, `\&`).Replace(string(inner.text)), true)
		default:
			inner.part(p, false)
			k.add(string(inner.text), true)
		}
	}
	return string(k.text)
}

func badSubstitution(sh *shell, pe *syntax.ParamExp) {
	sh.complain("", "%s: bad substitution", codeOf(sh, pe))
	panic(discard{1})
}

func unboundVariable(sh *shell, name string) {
	sh.complain("", "%s: unbound variable", name)
	endExpansion(sh)
}

// endExpansion ends the shell because of an expansion.
func endExpansion(sh *shell) {
	if sh.fromText && !sh.on[optErrexit] {
		panic(exitShell{127})
	}
	panic(exitShell{1})
}

// paramValue returns the value that the operators of an expansion begin with.
func paramValue(sh *shell, pe *syntax.ParamExp) value {
	name := pe.Param.Value
	if pe.Excl {
		if pe.Index != nil {
			sub := codeOf(sh, pe.Index)
			if sub == "@" || sub == "*" {
				e := value{isList: true, star: sub == "*", set: true}
				if v := sh.lookup(name); v != nil {
					e.list = v.names()
				}
				return e
			}
		}
		if v := sh.vars[name]; v != nil && v.ref && pe.Index == nil {
			return value{name: name, s: v.str, set: true}
		}
		var e value
		if pe.Index != nil {
			e = elementOf(sh, name, codeOf(sh, pe.Index), false)
		} else {
			e = parameterOf(sh, name)
		}
		target := e.join(sh)
		if target == "" {
			if !e.set {
				if pe.Exp != nil {
					return value{name: name}
				}
				sh.complain("", "%s: invalid indirect expansion", name)
			} else {
				sh.complain("", "%s: invalid variable name", target)
			}
			panic(discard{1})
		}
		base, _, isElement := splitSubscript(target)
		if !isElement && !validName(target) && !isSpecial(target) {
			sh.complain("", "%s: invalid variable name", target)
			panic(discard{1})
		}
		_ = base
		return parameterOf(sh, target)
	}
	if pe.Index != nil {
		return elementOf(sh, name, codeOf(sh, pe.Index), false)
	}
	e := parameterOf(sh, name)
	if e.v != nil && e.v.kind != scalar && (pe.Slice == nil || e.v.kind == associative) {
		e.name = name
	}
	return e
}

func isSpecial(name string) bool {
	if len(name) == 1 && strings.Contains("@*#?$!-_", name) {
		return true
	}
	_, err := strconv.ParseUint(name, 10, 31)
	return err == nil
}

// each applies an operator to every element.
func (e value) each(f func(string) string) value {
	if !e.isList {
		e.s = f(e.s)
		return e
	}
	list := make([]string, len(e.list))
	for i, s := range e.list {
		list[i] = f(s)
	}
	e.list = list
	return e
}

// conditional does the operators that look at whether the parameter is set, and reports whether that was all.
func (k *sink) conditional(pe *syntax.ParamExp, e value, quoted bool) bool {
	sh := k.sh
	null := false
	switch pe.Exp.Op {
	case syntax.DefaultUnsetOrNull, syntax.AlternateUnsetOrNull, syntax.AssignUnsetOrNull, syntax.ErrorUnsetOrNull:
		null = e.join(sh) == ""
	case syntax.DefaultUnset, syntax.AlternateUnset, syntax.AssignUnset, syntax.ErrorUnset:
	default:
		return false
	}
	there := e.set && !null
	switch pe.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		if there {
			k.emit(e, quoted)
			return true
		}
		k.alternative(pe.Exp.Word, quoted)
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if there {
			k.alternative(pe.Exp.Word, quoted)
		} else if quoted && !e.isList {
			k.add("", true)
		}
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if there {
			k.emit(e, quoted)
			return true
		}
		inner := sink{sh: sh, mode: modeLiteral}
		inner.alternative(pe.Exp.Word, quoted)
		s := string(inner.text)
		var err error
		base, sub, isElement := splitSubscript(e.name)
		switch {
		case isElement:
			err = assignElement(sh, base, sub, s, false)
		case !validName(e.name):
			sh.complain("", "$%s: cannot assign in this way", e.name)
			panic(discard{1})
		default:
			err = sh.assign(e.name, s, false)
		}
		if err != nil {
			sh.complain("", "%s", err)
			panic(discard{1})
		}
		if quoted {
			k.add(s, true)
		} else {
			k.split(s)
		}
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		if there {
			k.emit(e, quoted)
			return true
		}
		message := "parameter not set"
		if pe.Exp.Op == syntax.ErrorUnsetOrNull {
			message = "parameter null or not set"
		}
		if pe.Exp.Word != nil && len(pe.Exp.Word.Parts) > 0 {
			message = sh.literal(pe.Exp.Word)
		}
		sh.complain("", "%s: %s", e.name, message)
		endExpansion(sh)
	}
	return true
}

// alternative expands the word that stands behind an operator.
func (k *sink) alternative(w *syntax.Word, quoted bool) {
	if w == nil || len(w.Parts) == 0 {
		if quoted {
			k.add("", true)
		}
		return
	}
	if quoted {
		k.walk(w.Parts, true)
		return
	}
	for i, p := range w.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			k.part(p, false)
			continue
		}
		s := lit.Value
		if i == 0 && strings.HasPrefix(s, "~") {
			s = k.tilde(s, true, len(w.Parts) == 1)
		}
		if k.mode != modeFields {
			k.unquoted(s)
			continue
		}
		// Literal text is split as what is expanded is.
		for {
			i := strings.IndexByte(s, '\\')
			if i < 0 || i+1 == len(s) {
				k.split(s)
				break
			}
			k.split(s[:i])
			k.add(s[i+1:i+2], true)
			s = s[i+2:]
		}
	}
}

// sliceOf is ${x:offset:length}.
func sliceOf(sh *shell, pe *syntax.ParamExp, e value) value {
	offset, length := int64(0), int64(-1)
	if pe.Slice.Offset != nil {
		offset = sliceArith(sh, pe, pe.Slice.Offset)
	}
	limited := pe.Slice.Length != nil
	if limited {
		length = sliceArith(sh, pe, pe.Slice.Length)
	}
	if !e.isList {
		runes := []rune(e.s)
		ascii := len(runes) == len(e.s)
		n := int64(len(runes))
		if offset < 0 {
			if offset += n; offset < 0 {
				e.s = ""
				return e
			}
		}
		if offset > n {
			e.s = ""
			return e
		}
		end := n
		if limited {
			if length < 0 {
				if end = n + length; end < offset {
					sh.complain("", "%s: substring expression < 0", codeOf(sh, pe.Slice.Length))
					panic(discard{1})
				}
			} else if length < n-offset {
				end = offset + length
			}
		}
		if ascii {
			e.s = e.s[offset:end]
		} else {
			e.s = string(runes[offset:end])
		}
		return e
	}
	if limited && length < 0 {
		sh.complain("", "%s: substring expression < 0", codeOf(sh, pe.Slice.Length))
		panic(discard{1})
	}
	list := e.list
	begin := 0
	switch {
	case e.name == "@" || e.name == "*":
		list = append([]string{sh.name}, list...)
		if offset < 0 {
			offset += int64(len(list))
		}
		begin = int(min(max(offset, 0), int64(len(list))))
		if offset < 0 {
			begin = len(list)
		}
	case e.v != nil && e.v.kind == indexed && e.v.keys != nil:
		if offset < 0 {
			offset += int64(e.v.top())
		}
		if offset < 0 {
			begin = len(list)
		} else {
			begin, _ = slices.BinarySearch(e.v.keys, int(offset))
		}
	default:
		if offset < 0 {
			offset += int64(len(list))
		}
		begin = int(min(max(offset, 0), int64(len(list))))
		if offset < 0 {
			begin = len(list)
		}
	}
	end := len(list)
	if limited {
		end = int(min(int64(end), int64(begin)+length))
	}
	e.list = list[begin:max(begin, end)]
	return e
}

// emit appends a value to a word.
func (k *sink) emit(e value, quoted bool) {
	sh := k.sh
	if !e.isList {
		if quoted {
			k.add(e.s, true)
		} else {
			k.split(e.s)
		}
		return
	}
	sh.charge(5 * len(e.list))
	if k.mode != modeFields {
		k.add(e.join(sh), quoted)
		return
	}
	if quoted && e.star {
		k.add(joinFields(sh, e.list), true)
		return
	}
	hard := !quoted && hardIFS(sh)
	for i, s := range e.list {
		if i > 0 {
			k.started = k.started || hard
			k.end()
		}
		if quoted {
			k.add(s, true)
		} else {
			k.split(s)
		}
	}
}

// sliceArith evaluates the offset or the length of ${x:offset:length}; an error names the variable.
func sliceArith(sh *shell, pe *syntax.ParamExp, x syntax.ArithmExpr) int64 {
	n, err := tryArith(sh, arithExpr(sh, x))
	if err != nil {
		sh.complain(pe.Param.Value, "%s", err.text)
		sh.status = 1
		panic(discard{1})
	}
	return n
}
