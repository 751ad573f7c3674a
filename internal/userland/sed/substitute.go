package sed

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
)

func (c *compiler) substitute(cmd *command) {
	delim := c.peek()
	c.at++
	if delim == 0 || delim == '\n' || delim == '\\' {
		c.fail("unterminated `s' command")
	}
	pattern, ok := c.until(delim, true)
	if !ok {
		c.at = len(c.src)
		c.fail("unterminated `s' command")
	}
	replacement, ok := c.until(delim, false)
	if !ok {
		c.fail("unterminated `s' command")
	}
	s := &substitution{nth: 1}
	cmd.sub = s
	flags := c.flags
	counted := false
	for more := true; more; {
		switch x := c.peek(); x {
		case 'g':
			if s.global {
				c.at++
				c.fail("multiple `g' options to `s' command")
			}
			s.global = true
			c.at++
		case 'p':
			if s.print > 0 {
				c.at++
				c.fail("multiple `p' options to `s' command")
			}
			s.print++
			c.at++
		case 'i', 'I':
			flags |= posix.IgnoreCase
			c.at++
		case 'm', 'M':
			flags |= posix.Lines
			c.at++
		case 'e':
			c.p.Lack(program.LackFeature, "the flag e of s")
			c.at++
			c.fail("the option `e' of `s' is not supported here: start programs by the shell instead")
		case 'w':
			c.at++
			cmd.file = c.filename()
			more = false
		case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			if counted {
				c.at++
				c.fail("multiple number options to `s' command")
			}
			s.nth, _ = c.number()
			counted = true
			if s.nth == 0 {
				c.fail("number option to `s' command may not be zero")
			}
		case 0, '\n', ';':
			c.at++
			more = false
		case '}', '#':
			more = false
		case ' ', '\t', '\r':
			c.skip(" \t\r")
			if strings.IndexByte("\x00\n;}#", c.peek()) < 0 {
				c.at++
				c.fail("unknown option to `s'")
			}
		default:
			c.at++
			c.fail("unknown option to `s'")
		}
	}
	end := c.at
	c.at = min(c.at, len(c.src))
	s.re = c.regexp(pattern, flags)
	s.parts = c.replacement(replacement)
	if s.re != nil {
		for _, x := range s.parts {
			if x.group > s.re.Groups() {
				c.at = min(end-1, len(c.src))
				c.fail("invalid reference \\%d on `s' command's RHS", x.group)
			}
		}
	}
	c.at = end
}

// replacement reads the right side of s.
func (c *compiler) replacement(s string) []part {
	var parts []part
	var b strings.Builder
	put := func(x part) {
		if b.Len() > 0 {
			parts = append(parts, part{text: b.String(), group: -1})
			b.Reset()
		}
		parts = append(parts, x)
	}
	for i := 0; i < len(s); i++ {
		switch x := s[i]; {
		case x == '&':
			put(part{group: 0})
		case x == '\\' && i+1 < len(s):
			i++
			switch y := s[i]; y {
			case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
				put(part{group: int(y - '0')})
			case 'L', 'U', 'E', 'l', 'u':
				put(part{group: -1, mode: y})
			default:
				c, size := escaped(s[i:])
				b.WriteString(c)
				i += size - 1
			}
		default:
			b.WriteByte(x)
		}
	}
	if b.Len() > 0 {
		parts = append(parts, part{text: b.String(), group: -1})
	}
	return parts
}

func (c *compiler) transliterate(cmd *command) {
	delim := c.peek()
	c.at++
	from, ok := c.until(delim, false)
	if !ok {
		c.fail("unterminated `y' command")
	}
	to, ok := c.until(delim, false)
	if !ok {
		c.fail("unterminated `y' command")
	}
	a, b := c.letters(from), c.letters(to)
	if len(a) != len(b) {
		c.fail("strings for `y' command are different lengths")
	}
	cmd.table = make(map[rune]rune, len(a))
	for i, r := range a {
		if _, ok := cmd.table[r]; !ok {
			cmd.table[r] = b[i]
		}
	}
	c.done()
}

// letters are the characters of one side of y.
func (c *compiler) letters(s string) []rune {
	var all []rune
	for s != "" {
		if s[0] == '\\' && len(s) > 1 {
			text, size := escaped(s[1:])
			all = append(all, []rune(text)...)
			s = s[1+size:]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		all, s = append(all, r), s[size:]
	}
	return all
}

// escaped returns what a backslash in front of s means, and how much of s belongs to that. Other characters mean themselves.
func escaped(s string) (string, int) {
	if i := strings.IndexByte("afnrtv", s[0]); i >= 0 {
		return "\a\f\n\r\t\v"[i : i+1], 1
	}
	base, width := 16, 2
	switch s[0] {
	case 'x':
	case 'o':
		base, width = 8, 3
	case 'd':
		base, width = 10, 3
	default:
		_, size := utf8.DecodeRuneInString(s)
		return s[:size], size
	}
	end := 1
	for end < len(s) && end <= width {
		if _, err := strconv.ParseUint(s[end:end+1], base, 8); err != nil {
			break
		}
		end++
	}
	v, err := strconv.ParseUint(s[1:end], base, 16)
	if err != nil {
		return s[:1], 1
	}
	return string([]byte{byte(v)}), end
}
