package awk

import (
	"fmt"
	"strconv"
	"strings"
)

type token uint8

const (
	tEOF token = iota
	tNewline
	tNumber
	tString
	tName
	tCall // a name with ( right behind it
	tBuiltin
	tKeyword
	tOp
)

var keywords = map[string]bool{
	"BEGIN": true, "END": true, "BEGINFILE": true, "ENDFILE": true, "function": true, "func": true, "if": true, "else": true, "while": true,
	"for": true, "do": true,
	"break": true, "continue": true, "next": true, "nextfile": true, "exit": true, "return": true, "delete": true, "in": true, "getline": true,
	"print":  true,
	"printf": true, "switch": true, "case": true, "default": true,
}

// lexer splits a program into tokens.
type lexer struct {
	src  string
	at   int
	line int

	tok   token
	text  string // of a name, an operator or a string
	num   float64
	start int // where the token begins

	sources []origin
	warned  map[string]bool
	warn    func(line int, text string) // may be nil
}

// origin is where a part of a program comes from.
type origin struct {
	name string // of a file, or "cmd. line"
	line int    // of the program, at which it begins
}

// whereIs names a line of a program as gawk's messages do.
func whereIs(sources []origin, line int) string {
	name, first := "cmd. line", 1
	for _, o := range sources {
		if o.line <= line {
			name, first = o.name, o.line
		}
	}
	return fmt.Sprintf("%s:%d: ", name, line-first+1)
}

// mistake is thrown at a mistake in a program. Its text begins with the place.
type mistake struct{ error }

// fail ends the reading at the present token: the message shows the line, and a mark below the place.
func (l *lexer) fail(format string, args ...any) { l.failAt(l.start, format, args...) }

func (l *lexer) failAt(at int, format string, args ...any) {
	begin := strings.LastIndexByte(l.src[:min(at, len(l.src))], '\n') + 1
	shown, _, _ := strings.Cut(l.src[begin:], "\n")
	var gap strings.Builder
	for _, c := range l.src[begin:min(at, len(l.src))] {
		if c == '\t' {
			gap.WriteByte('\t')
		} else {
			gap.WriteByte(' ')
		}
	}
	where := whereIs(l.sources, l.line)
	panic(mistake{fmt.Errorf("%s%s\n\x00%s%s^ %s", where, shown, where, gap.String(), fmt.Sprintf(format, args...))})
}

// wrong ends the reading for what is well-formed and means nothing.
func (l *lexer) wrong(format string, args ...any) {
	panic(mistake{fmt.Errorf("%serror: %s", whereIs(l.sources, l.line), fmt.Sprintf(format, args...))})
}

// foreign is a mistake that would be none in gawk, which a heavier tier has.
type foreign struct{ what string }

func (f foreign) Error() string { return f.what + " are gawk's, and not supported in a nano space" }

func (l *lexer) foreign(what string) {
	panic(mistake{fmt.Errorf("%s%w", whereIs(l.sources, l.line), foreign{what})})
}

// atSign says what the line of a program is that begins with @, "" for one that is known.
func atSign(rest string) string {
	for _, word := range []string{"include", "load", "namespace"} {
		if strings.HasPrefix(rest, word) {
			return "lines of @" + word
		}
	}
	return ""
}

var operators = []string{
	"**=", "<<=", "&&", "||", "|&", "==", "!=", "<=", ">=", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "**", ">>", "!~",
	"{", "}", "(", ")", "[", "]", ";", ",", "+", "-", "*", "/", "%", "^", "!", ">", "<", "|", "?", ":", "~", "$", "=",
}

// next reads the next token. It is long because it is one switch over the first character of a token.
//
//nolint:cyclop // one case for each token
func (l *lexer) next() {
	for l.at < len(l.src) {
		switch c := l.src[l.at]; {
		case c == ' ' || c == '\t' || c == '\r':
			l.at++
			continue
		case c == '\\' && strings.HasPrefix(l.src[l.at:], "\\\n"):
			l.at += 2
			l.line++
			continue
		case c == '\\' && strings.HasPrefix(l.src[l.at:], "\\\r\n"):
			l.at += 3
			l.line++
			continue
		case c == '#':
			for l.at < len(l.src) && l.src[l.at] != '\n' {
				l.at++
			}
			continue
		}
		break
	}
	l.start = l.at
	if l.at >= len(l.src) {
		l.tok, l.text = tEOF, ""
		return
	}
	c := l.src[l.at]
	switch {
	case c == '\n':
		l.at++
		l.line++
		l.tok, l.text = tNewline, "\n"
	case c == '"':
		l.at++
		l.tok, l.text = tString, l.str()
	case c >= '0' && c <= '9' || c == '.' && l.at+1 < len(l.src) && l.src[l.at+1] >= '0' && l.src[l.at+1] <= '9':
		l.tok = tNumber
		if (strings.HasPrefix(l.src[l.at:], "0x") || strings.HasPrefix(l.src[l.at:], "0X")) && l.at+2 < len(l.src) {
			end := l.at + 2
			for end < len(l.src) && strings.IndexByte("0123456789abcdefABCDEF", l.src[end]) >= 0 {
				end++
			}
			if n, err := strconv.ParseUint(l.src[l.at+2:end], 16, 64); err == nil {
				l.num, l.at = float64(n), end
				return
			}
		}
		var size int
		l.num, size = prefix(l.src[l.at:])
		if digits := l.src[l.at : l.at+size]; len(digits) > 1 && digits[0] == '0' && strings.Trim(digits, "01234567") == "" {
			if n, err := strconv.ParseUint(digits, 8, 64); err == nil { // of a program; not of what it reads
				l.num = float64(n)
			}
		}
		l.at += size
	case c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z':
		end := l.at
		for end < len(l.src) && (l.src[end] == '_' || l.src[end]|0x20 >= 'a' && l.src[end]|0x20 <= 'z' || l.src[end] >= '0' &&
			l.src[end] <= '9') {
			end++
		}
		l.text = l.src[l.at:end]
		l.at = end
		switch {
		case keywords[l.text]:
			l.tok = tKeyword
		case builtins[l.text] != nil:
			l.tok = tBuiltin
		case end < len(l.src) && l.src[end] == '(':
			l.tok = tCall
		default:
			l.tok = tName
		}
	default:
		for _, op := range operators {
			if strings.HasPrefix(l.src[l.at:], op) {
				l.tok, l.text = tOp, op
				l.at += len(op)
				switch op {
				case "**":
					l.text = "^"
				case "**=":
					l.text = "^="
				}
				return
			}
		}
		if c != '@' {
			l.fail("syntax error")
		}
		if what := atSign(l.src[l.at+1:]); what != "" {
			l.foreign(what)
		}
		l.tok, l.text = tOp, "@"
		l.at++
	}
}

// str reads a string behind its quote.
func (l *lexer) str() string {
	start := l.at
	for l.at < len(l.src) {
		switch l.src[l.at] {
		case '"':
			s := l.src[start:l.at]
			l.at++
			l.warnOf(s)
			return unescape(s)
		case '\n':
			l.fail("unterminated string")
		case '\\':
			if l.at++; l.at < len(l.src) && l.src[l.at] == '\n' {
				l.line++
			}
		}
		l.at++
	}
	l.fail("unterminated string")
	return ""
}

// regex reads an expression whose slash was read.
func (l *lexer) regex() string {
	if l.text == "/=" {
		l.at--
	}
	start, bracket := l.at, false
	for l.at < len(l.src) {
		switch c := l.src[l.at]; {
		case c == '\n':
			l.failAt(start, "unterminated regexp")
		case c == '\\' && l.at+1 < len(l.src):
			l.at++
		case c == '[' && !bracket:
			bracket = true
			if strings.HasPrefix(l.src[l.at+1:], "^]") {
				l.at += 2
			} else if strings.HasPrefix(l.src[l.at+1:], "]") {
				l.at++
			}
		case c == '[' && strings.HasPrefix(l.src[l.at:], "[:"):
			if end := strings.Index(l.src[l.at:], ":]"); end > 0 {
				l.at += end + 1
			}
		case c == ']':
			bracket = false
		case c == '/' && !bracket:
			s := l.src[start:l.at]
			l.at++
			return strings.ReplaceAll(s, `\/`, "/")
		}
		l.at++
	}
	l.failAt(start, "unterminated regexp")
	return ""
}

// warnOf warns of the escapes of a string that mean nothing.
func (l *lexer) warnOf(s string) {
	for i := 0; i+1 < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		if i++; strings.IndexByte("abfnrtv\\\"01234567x\n\r&", s[i]) < 0 && !l.warned[s[i:i+1]] && l.warn != nil {
			l.warned[s[i:i+1]] = true
			l.warn(l.line, "escape sequence `\\"+s[i:i+1]+"' treated as plain `"+s[i:i+1]+"'")
		}
	}
}

// unescape replaces what backslashes mean in a string.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'a':
			b.WriteByte('\a')
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'v':
			b.WriteByte('\v')
		case '\\', '"', '/':
			b.WriteByte(c)
		case '\n':
		case '0', '1', '2', '3', '4', '5', '6', '7':
			end := i
			for end < len(s) && end < i+3 && s[end] >= '0' && s[end] <= '7' {
				end++
			}
			n, _ := strconv.ParseUint(s[i:end], 8, 16)
			b.WriteByte(byte(n))
			i = end - 1
		case 'x':
			end := i + 1
			for end < len(s) && end < i+3 && strings.IndexByte("0123456789abcdefABCDEF", s[end]) >= 0 {
				end++
			}
			n, err := strconv.ParseUint(s[i+1:end], 16, 16)
			if err != nil {
				b.WriteString(`\x`)
				continue
			}
			b.WriteByte(byte(n))
			i = end - 1
		case '&': // of what sub puts in
			b.WriteString(`\&`)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// prefix returns the number with which a text begins, and how long it is.
func prefix(s string) (float64, int) {
	i := 0
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r' || s[i] == '\f' || s[i] == '\v') {
		i++
	}
	start := i
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	digits := i
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	n := i - digits
	if n > 0 && n < 16 && (i == len(s) || s[i] != '.' && s[i]|0x20 != 'e') { // a small whole number
		v := int64(0)
		for _, c := range []byte(s[digits:i]) {
			v = v*10 + int64(c-'0')
		}
		if s[start] == '-' {
			return -float64(v), i
		}
		return float64(v), i
	}
	if i < len(s) && s[i] == '.' {
		i++
		fraction := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		n += i - fraction
	}
	if n == 0 {
		return 0, 0
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if j < len(s) && s[j] >= '0' && s[j] <= '9' {
			for j < len(s) && s[j] >= '0' && s[j] <= '9' {
				j++
			}
			i = j
		}
	}
	v, _ := strconv.ParseFloat(s[start:i], 64) // beyond the range it is infinite, which is right
	return v, i
}

// numeric reports whether a text is a number and nothing else but blanks.
func numeric(s string) (float64, bool) {
	if s == "" {
		return 0, false
	}
	if c := s[0]; c > '9' && c != ' ' {
		return 0, false
	}
	v, n := prefix(s)
	if n == 0 {
		return 0, false
	}
	return v, n == len(s) || strings.Trim(s[n:], " \t\n\r\f\v") == ""
}
