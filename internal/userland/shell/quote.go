package shell

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// quoteShell writes a word so that it can be read again, as ${x@Q} does.
func quoteShell(s string) string {
	if hasControl(s) {
		return quoteANSI(s)
	}
	return quoteSingle(s)
}

func quoteSingle(s string) string {
	if s == "'" {
		return `\'`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func hasControl(s string) bool {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r < 32 || r == 127 || r == utf8.RuneError && size == 1 {
			return true
		}
		i += size
	}
	return false
}

// quoteANSI writes $'...'.
func quoteANSI(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch c := s[i]; {
		case c == 27:
			b.WriteString(`\E`)
		case c == '\a':
			b.WriteString(`\a`)
		case c == '\b':
			b.WriteString(`\b`)
		case c == '\f':
			b.WriteString(`\f`)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\v':
			b.WriteString(`\v`)
		case c == '\\' || c == '\'':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 32 || c == 127 || r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	b.WriteByte('\'')
	return b.String()
}

// quoteBackslash is printf %q.
func quoteBackslash(s string) string {
	if s == "" {
		return "''"
	}
	if hasControl(s) {
		return quoteANSI(s)
	}
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if strings.IndexByte(" \t\n'\"\\|&;()<>!{}*[]?^$`,", c) >= 0 || i == 0 && (c == '#' || c == '~') {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// quoteDouble is how declare -p writes a value.
func quoteDouble(s string) string {
	if hasControl(s) {
		return quoteANSI(s)
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		if strings.IndexByte("\"$`\\", s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	b.WriteByte('"')
	return b.String()
}

// quoteKey is how declare -p writes the key of an associative array.
func quoteKey(s string) string {
	if hasControl(s) {
		return quoteANSI(s)
	}
	if s == "" || strings.ContainsAny(s, " \t'\"\\|&;()<>!{}*[]?^$`~#@") {
		return quoteDouble(s)
	}
	return s
}

// quoteTrace is how set -x writes a word.
func quoteTrace(s string) string {
	switch {
	case s == "":
		return "''"
	case strings.ContainsAny(s, "\n\t '\"\\|&;()<>!{}*[]?^$`,") || s[0] == '#' || s[0] == '~':
		return quoteSingle(s)
	case hasControl(s):
		return quoteANSI(s)
	}
	return s
}

// unescape resolves backslashes. mode is 'e' for echo -e, 'b' for printf %b, 'f' for a format of printf and '$' for $'...'. stop says
// that \c ends all output. It is long because it is one switch over the escapes.
//
//nolint:cyclop // one case for each escape
func unescape(s string, mode byte) (out string, stop bool) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, false
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		c := s[i]
		switch c {
		case 'a':
			b.WriteByte('\a')
		case 'b':
			b.WriteByte('\b')
		case 'e', 'E':
			b.WriteByte(27)
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'v':
			b.WriteByte('\v')
		case '\\':
			b.WriteByte('\\')
		case '\'', '"', '?':
			if mode == 'e' || mode == 'b' && c == '?' {
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		case 'c':
			if mode == 'e' || mode == 'b' {
				return b.String(), true
			}
			if mode == '$' && i+1 < len(s) {
				i++
				if s[i] == '?' {
					b.WriteByte(0x7f)
					continue
				}
				b.WriteByte(s[i] & 0x1f)
				continue
			}
			b.WriteString(`\c`)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			limit := 3
			if c == '0' && (mode == 'e' || mode == 'b') {
				limit = 4
			} else if mode == 'e' {
				b.WriteByte('\\')
				b.WriteByte(c)
				continue
			}
			n, j := 0, i
			for ; j < len(s) && j < i+limit && s[j] >= '0' && s[j] <= '7'; j++ {
				n = n*8 + int(s[j]-'0')
			}
			b.WriteByte(byte(n))
			i = j - 1
		case 'x', 'u', 'U':
			limit := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			n, j := 0, i+1
			if c == 'x' && mode == '$' && strings.HasPrefix(s[j:], "{") {
				for j++; j < len(s) && hexDigit(s[j]) >= 0; j++ {
					n = n<<4&0xff + hexDigit(s[j])
				}
				if j < len(s) && s[j] == '}' {
					j++
				}
				b.WriteByte(byte(n))
				i = j - 1
				continue
			}
			for ; j < len(s) && j < i+1+limit && hexDigit(s[j]) >= 0; j++ {
				n = n*16 + hexDigit(s[j])
			}
			if j == i+1 {
				b.WriteByte('\\')
				b.WriteByte(c)
				continue
			}
			if c == 'x' {
				b.WriteByte(byte(n))
			} else {
				b.WriteRune(rune(n))
			}
			i = j - 1
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String(), false
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
