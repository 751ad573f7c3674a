package shell

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func newParser() *syntax.Parser { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }

// maxFrames bounds how deep the parser may call itself. It reads a kilobyte at a time, from that depth.
const maxFrames = 20_000

// errNested refuses text that nests deeper than the parser's stack is allowed to be.
var errNested = errors.New("maximum nesting level exceeded")

// shallow reads text for the parser and refuses to go on where that has gone too deep: the stack of a goroutine ends the process when it
// is full.
type shallow struct {
	sh *shell
	r  *strings.Reader
}

func (s *shallow) Read(p []byte) (int, error) {
	var pc [1]uintptr
	if within := s.r.Len() > 0 && s.r.Len() < int(s.r.Size()); within && runtime.Callers(maxFrames, pc[:]) > 0 {
		return 0, errNested
	}
	n, err := s.r.Read(p[:min(len(p), 1024)])
	s.sh.charge(20 * n) // here, so that a long text can be stopped on the way
	return n, err
}

// maxMends is how many places of a text are written otherwise at most; each costs another reading of the text.
const maxMends = 1000

// parseSource reads all statements up to the first error. It first rewrites what bash understands and the parser does not. It returns the
// code as the parser read it.
func parseSource(sh *shell, code string) (stmts []*syntax.Stmt, read string, err error) {
	sh.charge(100)
	sh.aliasLines = nil
	if len(sh.aliases) > 0 && sh.shopts["expand_aliases"] {
		code, sh.aliasLines = expandAliases(sh, code)
	}
	code = endComments(sh, code)
	for range maxMends {
		stmts = stmts[:0]
		err = nil
		for s, e := range newParser().StmtsSeq(&shallow{sh, strings.NewReader(code)}) {
			// The parser calls again after an error, so the loop may not be left.
			switch {
			case err != nil:
			case e != nil:
				err = e
			default:
				stmts = append(stmts, s)
			}
		}
		fixed, ok := mendSource(sh, code, err)
		if !ok {
			return stmts, code, err
		}
		sh.charge(len(code))
		code = fixed
	}
	return stmts, code, err
}

// longComment is a line that may be a comment and that ends with a backslash.
var longComment = regexp.MustCompile(`(?m)(^|[\s;&|()])#.*\\$`)

// endComments takes the backslashes from the ends of comments. In bash a comment ends with its line; the parser goes on in the next one.
func endComments(sh *shell, code string) string {
	for at := 0; ; {
		m := longComment.FindStringSubmatchIndex(code[at:])
		if m == nil {
			return code
		}
		hash, end := at+m[3], at+m[1]
		sh.charge(len(code))
		if isComment(sh, code, hash) {
			code = code[:end-1] + " " + code[end:]
		}
		at = end
	}
}

// isComment reports whether the parser takes the text at an offset for a comment. It cannot tell if the parser refuses an earlier text. The
// command that is put behind the text is there for a comment at its end, which belongs to the next command.
func isComment(sh *shell, code string, at int) bool {
	found := false
	look := func(list []syntax.Comment) {
		for _, c := range list {
			found = found || int(c.Hash.Offset()) == at
		}
	}
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	for s, err := range parser.StmtsSeq(&shallow{sh, strings.NewReader(code + "\n:\n")}) {
		if s == nil || err != nil {
			continue
		}
		if int(s.Pos().Offset()) <= at || len(s.Comments) > 0 {
			syntax.Walk(s, func(n syntax.Node) bool {
				if c, ok := n.(*syntax.Comment); ok {
					look([]syntax.Comment{*c})
				}
				return !found
			})
		}
	}
	return found
}

var nearToken = regexp.MustCompile("^`(.+?)` (?:can only|must|is not)")

// syntaxError tells what is wrong with a text.
func syntaxError(sh *shell, code, where string, err error) {
	line, text := 1, err.Error()
	if e, ok := errors.AsType[syntax.ParseError](err); ok {
		line, text = int(e.Pos.Line()), e.Text
	} else if e, ok := errors.AsType[syntax.LangError](err); ok {
		line, text = int(e.Pos.Line()), e.Feature+" is not supported"
	}
	prefix := sh.name + ": "
	if where != "" {
		prefix += where + ": "
	}
	lines := strings.Split(code, "\n")
	total := len(lines) + 1
	if strings.HasSuffix(code, "\n") {
		total--
	}
	say := func(n int, format string, args ...any) {
		sh.stderr(fmt.Sprintf("%sline %d: %s\n", prefix, n+sh.source.base, fmt.Sprintf(format, args...)))
	}
	token := ""
	switch {
	case strings.HasPrefix(text, "reached EOF without closing quote `"):
		say(line, "unexpected EOF while looking for matching `%s'", text[len(text)-2:len(text)-1])
		return
	case strings.HasPrefix(text, "reached EOF without matching `"):
		parts := strings.Split(text, "`")
		if closer := parts[len(parts)-2]; closer == "}" && strings.HasPrefix(parts[1], "{") || closer == ")" && parts[1] == "(" &&
			!afterEqual(code, err) {
			say(total, "syntax error: unexpected end of file")
		} else {
			if strings.Contains(text, "`$(`") {
				line = total
			}
			say(line, "unexpected EOF while looking for matching `%s'", closer)
		}
		return
	case strings.HasSuffix(text, "must be followed by a statement list"):
		rest := lineAfter(lines, line, text)
		if rest == "" {
			say(total, "syntax error: unexpected end of file")
			return
		}
		token = rest
	case strings.Contains(text, "statement must end with"):
		say(total, "syntax error: unexpected end of file")
		return
	case nearToken.MatchString(text):
		token = nearToken.FindStringSubmatch(text)[1]
	}
	if m := nearToken.FindStringSubmatch(text); m != nil && !strings.HasSuffix(text, "a statement list") &&
		(strings.Contains(text, "must be followed") || strings.Contains(text, "must end with") || strings.Contains(text, "must be ended")) {
		say(total, "syntax error: unexpected end of file")
		return
	}
	if token == "" {
		say(line, "syntax error: %s", text)
		return
	}
	say(line, "syntax error near unexpected token `%s'", token)
	if line-1 < len(lines) {
		say(line, "`%s'", lines[line-1])
	}
}

// afterEqual reports whether an error lies behind an equals sign: at the bracket of an array.
func afterEqual(code string, err error) bool {
	e, ok := errors.AsType[syntax.ParseError](err)
	at := int(e.Pos.Offset())
	return ok && at > 0 && at <= len(code) && (code[at-1] == '=' || at < len(code) && code[at] == '=')
}

// lineAfter returns the token that stands behind the keyword with which a message begins.
func lineAfter(lines []string, line int, text string) string {
	parts := strings.Split(text, "`")
	if line-1 >= len(lines) || len(parts) < 2 {
		return ""
	}
	_, rest, ok := strings.Cut(lines[line-1], parts[1])
	if rest = strings.TrimLeft(rest, " \t"); !ok || rest == "" {
		return ""
	}
	if strings.HasPrefix(rest, ";;") || strings.HasPrefix(rest, "&&") || strings.HasPrefix(rest, "||") {
		return rest[:2]
	}
	if strings.IndexByte(";&|()", rest[0]) >= 0 {
		return rest[:1]
	}
	return strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune(" \t;&|()", r) })[0]
}

var _ io.Reader = (*shallow)(nil)
