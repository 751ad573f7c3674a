package shell

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"agentbox/internal/userland/posix"
)

// regexp translates a pattern; ok is false where there is an operator that cannot be.
func patternRegexp(p string, lazy bool) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		c := p[i]
		if i+1 < len(p) && p[i+1] == '(' && strings.IndexByte("?*+@!", c) >= 0 {
			alternatives, rest, ok := cutExtended(p[i:])
			if ok {
				if c == '!' {
					return "", false
				}
				b.WriteString("(?:")
				for j, a := range alternatives {
					if j > 0 {
						b.WriteByte('|')
					}
					x, ok := patternRegexp(a, lazy)
					if !ok {
						return "", false
					}
					b.WriteString(x)
				}
				b.WriteByte(')')
				if c != '@' {
					b.WriteByte(c)
				}
				i = len(p) - len(rest) - 1
				continue
			}
		}
		switch c {
		case '*':
			if lazy {
				b.WriteString("(?s:.*?)")
			} else {
				b.WriteString("(?s:.*)")
			}
		case '?':
			b.WriteString("(?s:.)")
		case '[':
			set, rest, ok := cutBracket(p[i:])
			if !ok {
				b.WriteString(`\[`)
				continue
			}
			b.WriteString(setRegexp(set))
			i = len(p) - len(rest) - 1
		case '\\':
			if i+1 < len(p) {
				i++
			}
			fallthrough
		default:
			_, size := utf8.DecodeRuneInString(p[i:])
			b.WriteString(regexp.QuoteMeta(p[i : i+size]))
			i += size - 1
		}
	}
	return b.String(), true
}

// setRegexp translates what stands between brackets.
func setRegexp(set string) string {
	var b strings.Builder
	not := set != "" && (set[0] == '!' || set[0] == '^')
	if not {
		set = set[1:]
	}
	for set != "" {
		if strings.HasPrefix(set, "[:") {
			if name, rest, ok := strings.Cut(set[2:], ":]"); ok {
				switch name {
				case "alpha":
					b.WriteString(`\pL`)
				case "alnum":
					b.WriteString(`\pL0-9`)
				case "upper":
					b.WriteString(`\p{Lu}`)
				case "lower":
					b.WriteString(`\p{Ll}`)
				case "digit", "space", "blank", "punct", "print", "graph", "cntrl", "xdigit", "word":
					b.WriteString("[:" + name + ":]")
				}
				set = rest
				continue
			}
		}
		var lo rune
		lo, set = setRune(set)
		hi := lo
		if len(set) > 1 && set[0] == '-' {
			hi, set = setRune(set[1:])
		}
		switch {
		case hi == lo:
			b.WriteString(escapeInSet(lo))
		case hi > lo:
			b.WriteString(escapeInSet(lo) + "-" + escapeInSet(hi))
		}
	}
	switch {
	case b.Len() == 0 && not: // of ranges that hold nothing
		return "(?s:.)"
	case b.Len() == 0:
		return `[^\x00-\x{10FFFF}]`
	case not:
		return "[^" + b.String() + "]"
	}
	return "[" + b.String() + "]"
}

func escapeInSet(r rune) string {
	if strings.ContainsRune(`\]^-[&~`, r) {
		return `\` + string(r)
	}
	return string(r)
}

// compilePattern returns a regular expression, from those that were compiled before if it is there; nil for one that is none.
func compilePattern(sh *shell, expr string, longest bool) *posix.Machine {
	key := expr
	if longest {
		key = "L" + expr
	}
	if m, ok := sh.w.regexps[key]; ok {
		return m
	}
	sh.charge(200 + 50*len(expr))
	m, err := posix.NewMachine(expr, longest, sh.w.account.Charge)
	sh.w.stop(err)
	if err != nil {
		m = nil
	}
	if len(sh.w.regexps) >= 256 {
		clear(sh.w.regexps)
	}
	sh.w.regexps[key] = m
	return m
}

// locate returns the first match of an expression and of its groups.
func locate(sh *shell, re *posix.Machine, s string) []int {
	loc, err := re.FindString(s)
	sh.w.stop(err)
	return loc
}
