package shell

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// operateOn does the operators that change the value.
func operateOn(sh *shell, pe *syntax.ParamExp, e value) value {
	op := pe.Exp.Op
	switch op {
	case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		pat := sh.pattern(pe.Exp.Word)
		return e.each(func(s string) string {
			switch op {
			case syntax.RemSmallPrefix, syntax.RemLargePrefix:
				return trimPrefix(sh, s, pat, op == syntax.RemLargePrefix)
			}
			return trimSuffix(sh, s, pat, op == syntax.RemLargeSuffix)
		})
	case syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll:
		pat := sh.pattern(pe.Exp.Word)
		change := unicode.ToUpper
		toggle := strings.HasPrefix(pat, toggleCase)
		pat = strings.TrimPrefix(pat, toggleCase)
		if op == syntax.LowerFirst || op == syntax.LowerAll {
			change = unicode.ToLower
		}
		return e.each(func(s string) string {
			sh.charge(len(s))
			var b strings.Builder
			for i, r := range s {
				if (i == 0 || op == syntax.UpperAll || op == syntax.LowerAll) && (pat == "" || sh.match(pat, string(r), false)) {
					if toggle && unicode.IsUpper(r) {
						r = unicode.ToLower(r)
					} else {
						r = change(r)
					}
				}
				b.WriteRune(r)
			}
			return b.String()
		})
	case syntax.OtherParamOps:
		return transformValue(sh, pe, e, sh.literal(pe.Exp.Word))
	}
	badSubstitution(sh, pe)
	return e
}

// transformValue is ${x@op}.
func transformValue(sh *shell, pe *syntax.ParamExp, e value, op string) value {
	name, _, _ := splitSubscript(e.name)
	switch op {
	case "Q":
		if !e.set && !e.isList {
			return value{set: true}
		}
		return e.each(quoteShell)
	case "U":
		return e.each(strings.ToUpper)
	case "L":
		return e.each(strings.ToLower)
	case "u":
		return e.each(func(s string) string {
			r, size := utf8.DecodeRuneInString(s)
			if size == 0 {
				return s
			}
			return string(unicode.ToUpper(r)) + s[size:]
		})
	case "E":
		return e.each(func(s string) string { s, _ = unescape(s, '$'); return s })
	case "P":
		return e.each(func(s string) string { return expandPrompt(sh, s) })
	case "a":
		flags := ""
		if e.v != nil {
			flags = e.v.flags()
		}
		return e.each(func(string) string { return flags }).withFlags(flags)
	case "A":
		switch {
		case e.v == nil:
			if e.isList {
				words := make([]string, len(e.list))
				for i, s := range e.list {
					words[i] = quoteShell(s)
				}
				return value{s: "set -- " + strings.Join(words, " "), set: true}
			}
			return value{set: true}
		case e.isList || e.v.kind == scalar && e.v.flags() != "":
			if e.v.kind != scalar {
				return value{s: e.v.declaration(name), set: true}
			}
			return value{s: "declare -" + e.v.flags() + " " + name + "=" + quoteShell(e.v.str), set: true}
		case !e.set && e.v.flags() != "":
			return value{s: "declare -" + e.v.flags() + " " + name, set: true}
		case !e.set:
			return value{set: true}
		case e.v.flags() != "":
			return value{s: "declare -" + e.v.flags() + " " + e.name + "=" + quoteShell(e.s), set: true}
		}
		return value{s: e.name + "=" + quoteShell(e.s), set: true}
	case "K", "k":
		if !e.isList || e.v == nil || e.v.kind == scalar {
			return e.each(quoteShell)
		}
		var words []string
		names, values := e.v.names(), e.v.values()
		for i, k := range names {
			if op == "k" {
				words = append(words, k, values[i])
				continue
			}
			if e.v.kind == associative {
				k = quoteKey(k)
			}
			words = append(words, k+" "+quoteDouble(values[i]))
		}
		if op == "k" {
			e.list = words
			return e
		}
		s := strings.Join(words, " ")
		if e.v.kind == associative && s != "" {
			s += " "
		}
		return value{s: s, set: true}
	}
	badSubstitution(sh, pe)
	return e
}

func (e value) withFlags(flags string) value {
	if !e.isList {
		e.s = flags
	}
	return e
}

func lastElement(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// replaced returns a value with a pattern of it replaced: ${name/pattern/text}.
func replaced(sh *shell, pe *syntax.ParamExp, e value) value {
	pat := sh.pattern(pe.Repl.Orig)
	with := replacementText(sh, pe.Repl.With)
	if pe.Repl.All && pat == "" && strings.HasPrefix(codeOf(sh, pe), "${"+pe.Param.Value+"///") { // the pattern begins with the third slash
		rest := ""
		rest, with, _ = strings.Cut(with, "/")
		pat = "/" + rest
	}
	if pe.Repl.All {
		// An anchor means nothing with //.
		return e.each(func(s string) string { return replaceAll(sh, s, pat, with, true) })
	}
	if raw := anchorOf(pe); raw == 0 && pat != "" && (pat[0] == '#' || pat[0] == '%') {
		pat = `\` + pat
	}
	return e.each(func(s string) string { return replaceAll(sh, s, pat, with, false) })
}
