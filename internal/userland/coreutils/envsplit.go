package coreutils

import (
	"strings"

	"agentbox/internal/userland/program"
)

// splitStrings puts the words of env's option -S in its place.
func splitStrings(p *program.Process) {
	for i, rounds := 1, 0; i < len(p.Args) && rounds < 100; rounds++ {
		a := p.Args[i]
		text, used, ok := "", 1, false
		switch long, isLong := strings.CutPrefix(a, "--"); {
		case a == "--" || len(a) < 2 || a[0] != '-':
			return
		case isLong:
			name, value, given := strings.Cut(long, "=")
			if !strings.HasPrefix("split-string", name) {
				i++
				if (strings.HasPrefix("unset", name) || strings.HasPrefix("chdir", name)) && !given {
					i++
				}
				continue
			}
			if text, ok = value, true; !given {
				if i+1 == len(p.Args) {
					return
				}
				text, used = p.Args[i+1], 2
			}
		default:
			at := strings.IndexAny(a[1:], "SuCa") + 1
			if at == 0 || a[at] != 'S' {
				if i++; at == len(a)-1 && at > 0 {
					i++
				}
				continue
			}
			if text, ok = a[at+1:], true; text == "" {
				if i+1 == len(p.Args) {
					return
				}
				text, used = p.Args[i+1], 2
			}
			if at > 1 { // letters in front of it
				p.Args = append(append(p.Args[:i:i], a[:at], "-S"+text), p.Args[i+used:]...)
				i++
				continue
			}
		}
		if ok {
			s := &stringSplitter{p: p, s: text}
			p.Args = append(append(p.Args[:i:i], s.words()...), p.Args[i+used:]...)
		}
	}
}

// stringSplitter splits the text of env -S into words.
type stringSplitter struct {
	p    *program.Process
	s    string
	all  []string
	word strings.Builder
	some bool // there is a word, though it may be empty
}

func (s *stringSplitter) fail(format string, args ...any) {
	s.p.Errorf(format, args...)
	s.p.Exit(125)
}

func (s *stringSplitter) end() {
	if s.some {
		s.all = append(s.all, s.word.String())
	}
	s.word.Reset()
	s.some = false
}

func (s *stringSplitter) put(c byte) {
	s.some = true
	s.word.WriteByte(c)
}

func (s *stringSplitter) words() []string {
	quote := byte(0)
	for i := 0; i < len(s.s); i++ {
		s.p.Charge(2)
		switch c := s.s[i]; {
		case c == '\'' && quote != '"' || c == '"' && quote != '\'':
			s.some = true
			if quote == 0 {
				quote = c
			} else {
				quote = 0
			}
		case quote == 0 && strings.IndexByte(" \t\n\v\f\r", c) >= 0:
			s.end()
		case c == '#' && quote == 0 && !s.some:
			return s.all
		case c == '$' && quote != '\'':
			i += s.variable(s.s[i:]) - 1
		case c == '\\' && quote == '\'':
			if i+1 < len(s.s) && (s.s[i+1] == '\\' || s.s[i+1] == '\'') {
				i++
			}
			s.put(s.s[i])
		case c == '\\':
			if i++; i == len(s.s) {
				s.fail("invalid backslash at end of string in -S")
			}
			if s.escape(s.s[i], quote) {
				s.end()
				return s.all
			}
		default:
			s.put(c)
		}
	}
	if quote != 0 {
		s.fail("no terminating quote in -S string")
	}
	s.end()
	return s.all
}

// escape takes what a backslash stands in front of, and reports whether the text ends there.
func (s *stringSplitter) escape(c, quote byte) bool {
	if strings.IndexByte("\"#$'\\", c) >= 0 {
		s.put(c)
		return false
	}
	if i := strings.IndexByte("fnrtv", c); i >= 0 {
		s.put("\f\n\r\t\v"[i])
		return false
	}
	switch {
	case c == '_' && quote == '"':
		s.put(' ')
	case c == '_':
		s.end()
	case c == 'c' && quote == '"':
		s.fail("'\\c' must not appear in double-quoted -S string")
	case c == 'c':
		return true
	default:
		s.fail("invalid sequence '\\%c' in -S", c)
	}
	return false
}

// variable takes ${NAME}, and returns how long that is.
func (s *stringSplitter) variable(text string) int {
	end := strings.IndexByte(text, '}')
	if !strings.HasPrefix(text, "${") || end < 3 || text[2] >= '0' && text[2] <= '9' ||
		strings.Trim(text[2:end], "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") != "" {
		s.fail("only ${VARNAME} expansion is supported, error at: %s", text)
	}
	if v, ok := s.p.LookupEnv(text[2:end]); ok {
		s.word.WriteString(v)
		s.some = true
	}
	return end + 1
}
