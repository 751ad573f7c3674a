package sed

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"agentbox/internal/driver/wasm/posix"
	"agentbox/internal/driver/wasm/program"
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
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case 'r':
				b.WriteByte('\r')
			case 'f':
				b.WriteByte('\f')
			case 'v':
				b.WriteByte('\v')
			case 'a':
				b.WriteByte('\a')
			case 'x', 'o', 'd':
				base, width := map[byte]int{'x': 16, 'o': 8, 'd': 10}[y], map[byte]int{'x': 2, 'o': 3, 'd': 3}[y]
				end := i + 1
				for end < len(s) && end <= i+width {
					if _, err := strconv.ParseUint(s[end:end+1], base, 8); err != nil {
						break
					}
					end++
				}
				v, err := strconv.ParseUint(s[i+1:end], base, 16)
				if err != nil {
					b.WriteByte(y)
					continue
				}
				b.WriteByte(byte(v))
				i = end - 1
			default:
				b.WriteByte(y)
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

func (c *compiler) letters(s string) []rune {
	var all []rune
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if r == '\\' && i < len(s) {
			switch s[i] {
			case '\\':
			case 'n':
				r = '\n'
			case 't':
				r = '\t'
			case 'r':
				r = '\r'
			default:
				all = append(all, r)
				continue
			}
			i++
		}
		all = append(all, r)
	}
	return all
}
