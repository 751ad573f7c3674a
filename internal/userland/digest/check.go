package digest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"

	"agentbox/internal/userland/gnu"
)

// checker compares files with lists of digests.
type checker struct {
	*summer
	ignore, quiet, silent, strict, warn bool

	last                                string // the kind of the line before
	good, bad, failed, unread, verified int    // lines
}

// sumLine is a line of a list of digests.
type sumLine struct {
	kind string
	bits int
	want []byte
	file string
}

// check compares files with a list of digests, and reports whether all is well.
func (c *checker) check(list string) bool {
	p := c.p
	in := gnu.OpenOrTell(p, list)
	if in == nil {
		return false
	}
	shown := gnu.StdinName(list)
	c.last = c.kind
	c.good, c.bad, c.failed, c.unread, c.verified = 0, 0, 0, 0, 0
	for n := 1; ; n++ {
		line, _, ok := in.Line('\n')
		if !ok {
			break
		}
		p.Charge(len(line) * 4)
		text := strings.TrimSuffix(string(line), "\r")
		if text == "" || text[0] == '#' {
			continue
		}
		l, ok := c.parse(text)
		if !ok {
			c.bad++
			if c.warn {
				tag := digestKinds[l.kind].tag
				if l.kind == "crc" {
					tag = "CRC"
				}
				p.Errorf("%s: %d: improperly formatted %s checksum line", gnu.QuoteIfNeeded(shown), n, tag)
			}
			continue
		}
		c.good++
		c.one(l)
	}
	if !gnu.EndedWell(p, list, in) {
		return false
	}
	if c.good == 0 {
		p.Errorf("%s: no properly formatted checksum lines found", gnu.QuoteIfNeeded(shown))
		return false
	}
	if !c.silent {
		c.warning(c.bad, "line is improperly formatted", "lines are improperly formatted")
		c.warning(c.unread, "listed file could not be read", "listed files could not be read")
		c.warning(c.failed, "computed checksum did NOT match", "computed checksums did NOT match")
		if c.ignore && c.verified == 0 {
			p.Errorf("%s: no file was verified", gnu.QuoteIfNeeded(shown))
		}
	}
	return c.failed == 0 && c.unread == 0 && (!c.strict || c.bad == 0) && (!c.ignore || c.verified > 0)
}

func (c *checker) warning(n int, one, many string) {
	switch n {
	case 0:
	case 1:
		c.p.Errorf("WARNING: 1 %s", one)
	default:
		c.p.Errorf("WARNING: %d %s", n, many)
	}
}

// one compares one file.
func (c *checker) one(l sumLine) {
	p := c.p
	if c.ignore {
		if _, err := gnu.Lookup(p, l.file, true); err != nil {
			return
		}
	}
	sum, ok := digest(p, l.file, digestKinds[l.kind].make(l.bits))
	name := l.file
	if strings.ContainsAny(name, "\\\n\r") {
		name = `\` + strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`).Replace(name)
	}
	verdict := "OK"
	switch {
	case !ok:
		c.unread++
		verdict = "FAILED open or read"
	case !bytes.Equal(sum, l.want):
		c.failed++
		verdict = "FAILED"
	default:
		c.verified++
	}
	if !c.silent && (verdict != "OK" || !c.quiet) {
		p.Out().WriteString(name + ": " + verdict + "\n")
	}
}

// parse reads a line, with a tag or without one.
func (c *checker) parse(line string) (sumLine, bool) {
	line = strings.TrimLeft(line, " \t")
	line, escaped := strings.CutPrefix(line, `\`)
	l, digits, ok := c.tagged(line)
	if !ok {
		if c.cksum && !c.named {
			if l.kind == "" {
				l.kind = c.last
			}
			c.last = l.kind
			return l, false
		}
		if l, digits, ok = c.untagged(line); !ok {
			return l, false
		}
	}
	c.last = l.kind
	if escaped {
		if l.file, ok = unescapedName(l.file); !ok {
			return l, false
		}
	}
	if l.file == "" || strings.ContainsRune(l.file, 0) {
		return l, false
	}
	l.want, ok = digestOf(digits, l.bits)
	return l, ok
}

// digestOf reads a digest in hexadecimal or base64.
func digestOf(s string, bits int) ([]byte, bool) {
	b, err := hex.DecodeString(strings.ToLower(s))
	if err != nil || len(b)*8 != bits {
		b, err = base64.StdEncoding.DecodeString(s)
	}
	return b, err == nil && len(b)*8 == bits
}

// tagged reads a line like SHA256 (FILE) = DIGEST.
func (c *checker) tagged(line string) (l sumLine, digits string, ok bool) {
	for _, name := range algorithms {
		kind, known := digestKinds[name]
		if !known || name != c.kind && (!c.cksum || c.named) {
			continue
		}
		rest, fits := strings.CutPrefix(line, kind.tag)
		if !fits {
			continue
		}
		l = sumLine{kind: name, bits: kind.bits}
		if number, found := strings.CutPrefix(rest, "-"); found && name == "blake2b" {
			end := len(number) - len(strings.TrimLeft(number, "0123456789"))
			n, err := strconv.Atoi(number[:end])
			if err != nil || n <= 0 || n > kind.bits || n%8 != 0 {
				return l, "", false
			}
			l.bits, rest = n, number[end:]
		}
		rest, fits = strings.CutPrefix(strings.TrimPrefix(rest, " "), "(")
		end := strings.LastIndexByte(rest, ')')
		if !fits || end < 0 {
			continue
		}
		l.file = rest[:end]
		digits, ok = strings.CutPrefix(strings.TrimLeft(rest[end+1:], " \t"), "=")
		return l, strings.Trim(digits, " \t"), ok
	}
	return l, "", false // of the kind that the line began with
}

// untagged reads a line like DIGEST *FILE.
func (c *checker) untagged(line string) (l sumLine, digits string, ok bool) {
	l = sumLine{kind: c.kind, bits: c.bits}
	at := strings.IndexAny(line, " \t")
	if at < 0 {
		return l, "", false
	}
	digits, l.file = line[:at], line[at+1:]
	if l.file != "" && (l.file[0] == ' ' || l.file[0] == '*') {
		l.file = l.file[1:]
	}
	if c.kind == "blake2b" && len(digits)%2 == 0 && len(digits) > 0 && len(digits)*4 <= 512 { // the length says how many bits there are
		l.bits = len(digits) * 4
	}
	return l, digits, true
}

// unescapedName reads the name of a line that begins with a backslash.
func unescapedName(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", false
		}
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case '\\':
			b.WriteByte('\\')
		default:
			return "", false
		}
	}
	return b.String(), true
}
