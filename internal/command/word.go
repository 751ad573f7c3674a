package command

import (
	"fmt"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// arg is a word of a simple command after quotes are taken away.
type arg struct {
	text  string // as far as it is known
	known bool   // text is what the command gets, except for glob
	one   bool   // where not known: it is one argument all the same, for it stands in double quotes
	glob  bool   // the shell will replace it by the names of files

	word  *syntax.Word // as it was written
	shape string       // if there is no word: the text, with a star for unknown parts
}

// words expands the braces of words and takes their quotes away.
func (r *reader) words(ws []*syntax.Word) ([]arg, error) {
	args := make([]arg, 0, len(ws))
	for _, w := range ws {
		if !hasBrace(w) {
			args = append(args, literal(w))
			continue
		}
		split := &syntax.Word{Parts: append([]syntax.WordPart(nil), w.Parts...)}
		syntax.SplitBraces(split)
		if braces := 0; len(args)+spread(split, &braces) > maxWords || braces > maxBraces {
			return nil, &Error{Line: w.Pos().Line(), Col: w.Pos().Col(),
				Msg: fmt.Sprintf("the braces expand to more than %d words, or are more than %d in one word", maxWords, maxBraces)}
		}
		for expanded, err := range expand.BracesSeq(nil, split) {
			if err != nil {
				return nil, &Error{Line: w.Pos().Line(), Col: w.Pos().Col(), Msg: err.Error()}
			}
			args = append(args, literal(expanded))
		}
	}
	if len(args) > maxWords {
		return nil, &Error{Msg: fmt.Sprintf("a command has more than %d words", maxWords)}
	}
	return args, nil
}

// spread returns how many words a word with braces expands to, without expanding it. For more than maxWords it returns maxWords+1. It
// counts the brace expressions too.
func spread(w *syntax.Word, braces *int) int {
	words := 1
	for _, part := range w.Parts {
		b, ok := part.(*syntax.BraceExp)
		if !ok {
			continue
		}
		*braces++
		n := 0
		if b.Sequence {
			n = sequence(b)
		} else {
			for _, e := range b.Elems {
				n = min(n+spread(e, braces), maxWords+1)
			}
		}
		words = min(words*max(n, 1), maxWords+1)
	}
	return words
}

// sequence returns how many words {from..to..step} expands to.
func sequence(b *syntax.BraceExp) int {
	from, err1 := strconv.ParseInt(b.Elems[0].Lit(), 10, 64)
	to, err2 := strconv.ParseInt(b.Elems[1].Lit(), 10, 64)
	if err1 != nil || err2 != nil {
		from, to = int64(b.Elems[0].Lit()[0]), int64(b.Elems[1].Lit()[0]) // one byte each
	}
	step := uint64(1)
	if len(b.Elems) > 2 {
		if n, _ := strconv.ParseInt(b.Elems[2].Lit(), 10, 64); n > 0 {
			step = uint64(n)
		} else if n < 0 {
			step = -uint64(n)
		}
	}
	between := uint64(max(from, to)) - uint64(min(from, to))
	return int(min(between/step, maxWords)) + 1
}

func hasBrace(w *syntax.Word) bool {
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok && strings.Contains(lit.Value, "{") {
			return true
		}
	}
	return false
}

// literal takes the quotes of a word away.
func literal(w *syntax.Word) arg {
	a := arg{known: true, one: true, word: w}
	var text strings.Builder
	for i, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if i == 0 && strings.HasPrefix(p.Value, "~") && p.Value != "~" && !strings.HasPrefix(p.Value, "~/") {
				a.known = false // another user's home, or a folder of the stack
			}
			text.WriteString(unescape(p.Value, &a))
		case *syntax.SglQuoted:
			value := p.Value
			if p.Dollar {
				value, _, _ = expand.Format(nil, value, nil)
				value, _, _ = strings.Cut(value, "\x00")
			}
			text.WriteString(value)
		case *syntax.DblQuoted:
			quoted(p.Parts, &text, &a)
		case *syntax.ProcSubst:
			a.known = false
		case *syntax.ExtGlob:
			a.known, a.one = false, false
		default:
			a.known, a.one = false, false
		}
	}
	a.text = text.String()
	return a
}

// quoted reads the text between double quotes.
func quoted(parts []syntax.WordPart, text *strings.Builder, a *arg) {
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			text.WriteString(unescapeQuoted(p.Value))
		case *syntax.ParamExp:
			a.known = false
			if p.Param == nil || p.Param.Value == "@" || p.Index != nil || p.Names != 0 || p.Excl {
				a.one = false
			}
		default:
			a.known = false
		}
	}
}

// unescape removes the backslashes of unquoted text and notes unescaped glob characters.
func unescape(text string, a *arg) string {
	if !strings.ContainsAny(text, "\\*?[") {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if i+1 < len(text) {
				i++
				if text[i] != '\n' {
					out.WriteByte(text[i])
				}
			}
		case '*', '?':
			a.glob = true
			out.WriteByte(text[i])
		case '[':
			a.glob = a.glob || strings.Contains(text[i:], "]")
			out.WriteByte(text[i])
		default:
			out.WriteByte(text[i])
		}
	}
	return out.String()
}

// unescapeQuoted removes those backslashes that have a meaning between double quotes.
func unescapeQuoted(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && strings.IndexByte("$`\"\\\n", text[i+1]) >= 0 {
			i++
			if text[i] == '\n' {
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// known returns the texts of the arguments that are known.
func known(args []arg) []string {
	var texts []string
	for _, a := range args {
		if a.known {
			texts = append(texts, a.text)
		}
	}
	return texts
}
