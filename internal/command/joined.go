package command

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// joins are words that a program joins to the names of files, and the values that variables in them may have.
type joins struct {
	line     *reader
	values   map[string][]*syntax.Word // what the command line gives variables
	words    []joinedWord
	followed int // variables that were followed
}

// A joined word (x.$a, "$dir/$f", x.$(echo env)) names a file that is not written anywhere in the command line. The reader follows
// variables to the words that the line gives them, and writes a star for unknown parts.

// Bounds of the texts that a joined word may expand to. A word beyond them becomes a star.
const (
	maxAlternatives = 64     // names that one word stands for
	maxIndirections = 4      // variables whose values name other variables
	maxFollowed     = 10_000 // variables that are followed in one command line
)

// unknownPart is a part of a word that may be anything, including slashes.
const unknownPart = "\x00"

// joinedWord is a word of parts that a command is handed as the name of a file.
type joinedWord struct {
	arg
	write bool
}

// gives notes that a variable gets a word, or that the word is appended to its value.
func (jn *joins) gives(name string, w *syntax.Word, behind bool) {
	if w == nil {
		w = &syntax.Word{} // an empty text
	}
	if behind {
		w = &syntax.Word{Parts: append([]syntax.WordPart{&syntax.ExtGlob{}}, w.Parts...)}
	}
	if jn.values == nil {
		jn.values = map[string][]*syntax.Word{}
	}
	jn.values[name] = append(jn.values[name], w)
}

// join notes a word of parts that names a file.
func (jn *joins) join(a arg, write bool) {
	if a.word != nil || a.shape != "" {
		jn.words = append(jn.words, joinedWord{a, write})
	}
}

// files turns joined words into the files and patterns that they may stand for. A word that may be anything stands for the files that
// the line mentions.
func (jn *joins) files() error {
	for _, j := range jn.words {
		names := []string{j.shape}
		if j.word != nil {
			names = jn.alternatives(j.word.Parts, 0)
		}
		for _, name := range names {
			if strings.Trim(name, "*/"+unknownPart) == "" {
				continue
			}
			deep := strings.Contains(name, unknownPart) || j.word == nil && strings.Contains(name, "*")
			name = strings.ReplaceAll(name, unknownPart, "*")
			if err := jn.line.name(arg{text: name, known: true, glob: strings.ContainsAny(name, "*?[")}, j.write, true, deep); err != nil {
				return err
			}
		}
	}
	return nil
}

// alternatives returns the possible values of a word from its parts, with a star for unknown parts.
func (jn *joins) alternatives(parts []syntax.WordPart, depth int) []string {
	all := []string{""}
	for _, part := range parts {
		var next []string
		switch p := part.(type) {
		case *syntax.DblQuoted:
			next = jn.alternatives(p.Parts, depth)
		case *syntax.ParamExp:
			next = jn.variable(p, depth)
		case *syntax.CmdSubst:
			next = []string{unknownPart}
			if isNumber(p) {
				next = []string{"0"}
			}
		case *syntax.ArithmExp:
			next = []string{"0"}
		case *syntax.Lit, *syntax.SglQuoted:
			next = []string{literal(&syntax.Word{Parts: []syntax.WordPart{part}}).text}
		default:
			next = []string{unknownPart}
		}
		if len(all)*len(next) > maxAlternatives {
			next = []string{unknownPart}
		}
		crossed := make([]string, 0, len(all)*len(next))
		for _, a := range all {
			for _, b := range next {
				if len(a)+len(b) > MaxChars {
					b = unknownPart
				}
				crossed = append(crossed, a+b)
			}
		}
		all = crossed
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// variable returns the values that the command line gives a variable, a star where it may have others.
func (jn *joins) variable(p *syntax.ParamExp, depth int) []string {
	unknown := []string{unknownPart}
	jn.followed++
	switch {
	case jn.followed > maxFollowed:
		return unknown
	case p.Length:
		return []string{"0"}
	case p.Param == nil || p.Excl || p.Index != nil || p.Slice != nil || p.Names != 0:
		return unknown
	case numeric[p.Param.Value]:
		return []string{"0"}
	}
	name := p.Param.Value
	given, counted := jn.values[name], jn.line.math.known[name]
	if depth >= maxIndirections || jn.line.math.received[name] || !counted {
		return unknown
	}
	if len(given) == 0 {
		return []string{"0"} // arithmetic alone gives it its values
	}
	var all []string
	for _, w := range given {
		if all = append(all, jn.alternatives(w.Parts, depth+1)...); len(all) > maxAlternatives {
			return unknown
		}
	}
	return altered(p, all)
}

// altered applies the operator of an expansion to values if the operator is simple; otherwise it returns a star.
func altered(p *syntax.ParamExp, values []string) []string {
	unknown := []string{unknownPart}
	var change func(string) string
	switch {
	case p.Exp == nil && p.Repl == nil:
		return values
	case p.Repl != nil:
		from, to := plainText(p.Repl.Orig), plainText(p.Repl.With)
		if !from.known || !to.known || from.text == "" || strings.ContainsAny(from.text[:1], "#%") {
			return unknown
		}
		n := 1
		if p.Repl.All {
			n = -1
		}
		change = func(v string) string { return strings.Replace(v, from.text, to.text, n) }
	default:
		cut := plainText(p.Exp.Word)
		switch op := p.Exp.Op; {
		case op == syntax.UpperAll && cut.text == "":
			change = strings.ToUpper
		case op == syntax.LowerAll && cut.text == "":
			change = strings.ToLower
		case (op == syntax.RemSmallSuffix || op == syntax.RemLargeSuffix) && cut.known:
			change = func(v string) string { return strings.TrimSuffix(v, cut.text) }
		case (op == syntax.RemSmallPrefix || op == syntax.RemLargePrefix) && cut.known:
			change = func(v string) string { return strings.TrimPrefix(v, cut.text) }
		default:
			return unknown
		}
	}
	changed := make([]string, len(values))
	for i, v := range values {
		changed[i] = change(v)
	}
	return changed
}

// plainText is a word that is known and no pattern.
func plainText(w *syntax.Word) arg {
	if w == nil {
		return arg{known: true}
	}
	a := literal(w)
	a.known = a.known && !a.glob
	return a
}
