package command

import (
	"errors"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bash runs some texts that the parser refuses. They are written in another way here, which the parser accepts and which means the same.
// The tree that comes of it must show the change where it was made. Otherwise the text stays refused.

// maxMends is how many places of one text are written otherwise at most. Each costs another reading of the text.
const maxMends = 16

// fix is one place that was written otherwise.
type fix struct {
	at   int // offset in the text that is parsed
	kind fixKind
}

type fixKind int

const (
	negations  fixKind = iota // two exclamation marks were taken out
	subshells                 // "((" became "( (": it does not end with "))", so Bash runs it in subshells
	expression                // an expression was quoted: only its evaluation tells what it is
	count                     // "${##x}" became "${0#x}": it is about $#, which is as unknown as $0
	hollow                    // an empty expression became 0
)

// Parsed is a text as the parser accepted it.
type Parsed struct {
	File    *syntax.File
	Mended  bool // the text was written otherwise, so that offsets in the tree are not those of the text
	Unknown bool // it evaluates expressions that are only known when they are evaluated
}

// Parse parses a text of Bash. It also accepts what Bash runs and the parser alone refuses: several negations, a subshell at the begin of a
// subshell as in "((a) || (b))", and arithmetic whose operators come of variables. The error is a syntax.ParseError or a syntax.LangError.
func Parse(text string) (Parsed, error) {
	var fixes []fix
	for {
		file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
		if err == nil {
			if !shown(file, fixes) {
				return Parsed{}, refusedAt(text, fixes)
			}
			unknown := slices.ContainsFunc(fixes, func(f fix) bool { return f.kind == expression })
			return Parsed{File: file, Mended: len(fixes) > 0, Unknown: unknown}, nil
		}
		if len(fixes) == maxMends {
			return Parsed{}, err
		}
		mended, made, ok := mend(text, err)
		if !ok {
			return Parsed{}, err
		}
		for i := range fixes { // what lies behind the change moves
			if fixes[i].at > made.at {
				fixes[i].at += len(mended) - len(text)
			}
		}
		text, fixes = mended, append(fixes, made)
	}
}

// refusedAt is the error of a text whose tree does not show the changes.
func refusedAt(text string, fixes []fix) error {
	at := fixes[0].at
	line := 1 + strings.Count(text[:at], "\n")
	col := at - strings.LastIndexByte(text[:at], '\n')
	return syntax.ParseError{Pos: syntax.NewPos(uint(at), uint(line), uint(col)), Text: "this cannot be read as one command"}
}

// mend writes what the parser has refused in another way.
func mend(text string, err error) (string, fix, bool) {
	at, message := 0, ""
	if e, ok := errors.AsType[syntax.ParseError](err); ok {
		at, message = int(e.Pos.Offset()), e.Text
	} else {
		return "", fix{}, false
	}
	if at > len(text) {
		return "", fix{}, false
	}
	if message == "cannot negate a command multiple times" {
		return dropNegations(text, at)
	}
	if strings.HasPrefix(message, "cannot combine multiple parameter expansion operators") {
		return countParameter(text, at)
	}
	from := at
	if strings.HasPrefix(text[at:], "$((") {
		from++
	}
	for i := min(from, len(text)-2); i >= 0; i-- {
		if text[i] != '(' || text[i+1] != '(' {
			continue
		}
		end := closing(text, i+1)
		switch {
		case end < 0:
			return "", fix{}, false
		case end < at:
			continue // it is over before the error
		case !strings.HasPrefix(text[end+1:], ")"):
			return text[:i+1] + " " + text[i+1:], fix{i, subshells}, true
		}
		inner := text[i+2 : end]
		if strings.Trim(inner, " \t\n") == "" {
			return text[:i+2] + "0" + text[i+2:], fix{i, hollow}, true
		}
		if strings.ContainsAny(inner, "\"'`\\\n;") {
			return "", fix{}, false
		}
		return text[:i+2] + `"` + inner + `"` + text[end:], fix{i, expression}, true
	}
	return "", fix{}, false
}

// dropNegations takes the two exclamation marks at an offset out.
func dropNegations(text string, at int) (string, fix, bool) {
	blank := func(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }
	if !strings.HasPrefix(text[at:], "!") {
		return "", fix{}, false
	}
	first := blank(text[at+1:])
	second := at + 1 + first
	if first == 0 || !strings.HasPrefix(text[second:], "!") || blank(text[second+1:]) == 0 {
		return "", fix{}, false
	}
	return text[:at] + " " + text[at+1:second] + " " + text[second+1:], fix{at, negations}, true
}

// countParameter puts $0 in the place of $# where an operator follows, before an offset.
func countParameter(text string, at int) (string, fix, bool) {
	i := strings.LastIndex(text[:at], "${#")
	if i < 0 || i+3 >= len(text) || !strings.ContainsRune("#%/", rune(text[i+3])) {
		return "", fix{}, false
	}
	return text[:i+2] + "0" + text[i+3:], fix{i, count}, true
}

// closing returns where the parenthesis at an offset closes, as Bash looks for it before it knows what stands in it. It returns -1 for
// nowhere, and where Bash's search depends on more than parentheses and plain quotes.
func closing(text string, at int) int {
	depth := 0
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '\'', '"':
			if i > 0 && text[i-1] == '$' {
				return -1
			}
			end := strings.IndexByte(text[i+1:], text[i])
			if end < 0 || text[i] == '"' && strings.ContainsAny(text[i+1:i+1+end], "$`\\") {
				return -1
			}
			i += end + 1
		case '`', '#':
			return -1
		case '{':
			if i > 0 && text[i-1] == '$' {
				end := strings.IndexByte(text[i:], '}')
				if end < 0 || strings.ContainsAny(text[i:i+end], "()\"'`\\$") {
					return -1
				}
				i += end
			}
		case 'c':
			if strings.HasPrefix(text[i:], "case") { // its patterns close parentheses that were not opened
				return -1
			}
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// shown reports whether a tree has what the changes stand for at their places. A change in the middle of data does not: the tree would be
// that of another text.
func shown(file *syntax.File, fixes []fix) bool {
	left := map[fix]bool{}
	for _, f := range fixes {
		if f.kind != negations { // the parser itself said that a statement begins there
			left[f] = true
		}
	}
	found := func(pos syntax.Pos, before int, kinds ...fixKind) {
		for _, k := range kinds {
			delete(left, fix{int(pos.Offset()) + before, k})
		}
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Subshell:
			if opensSubshell(n.Stmts, n.Lparen) {
				found(n.Lparen, 0, subshells)
			}
		case *syntax.CmdSubst:
			if opensSubshell(n.Stmts, n.Left) {
				found(n.Left, 1, subshells)
			}
		case *syntax.ParamExp:
			if n.Param != nil && n.Param.Value == "0" {
				found(n.Dollar, 0, count)
			}
		case *syntax.ArithmCmd:
			found(n.Left, 0, expression, hollow)
		case *syntax.ArithmExp:
			found(n.Left, 1, expression, hollow)
		}
		return true
	})
	return len(left) == 0
}

// opensSubshell reports whether statements begin with a subshell that opens behind the blank which was put in: two characters behind a
// parenthesis, or three behind a dollar sign.
func opensSubshell(stmts []*syntax.Stmt, left syntax.Pos) bool {
	if len(stmts) == 0 {
		return false
	}
	begin := stmts[0].Pos()
	opens := false
	syntax.Walk(stmts[0], func(n syntax.Node) bool {
		s, ok := n.(*syntax.Subshell)
		opens = opens || ok && s.Lparen == begin
		return !opens
	})
	behind := begin.Offset() - left.Offset()
	return opens && (behind == 2 || behind == 3)
}
