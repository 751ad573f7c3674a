// Package gnu has what the commands share that GNU wrote: how they read operands and numbers, and how they write names and messages.
package gnu

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// UnitLetters are the units of 1000 and its powers, or of 1024 and its powers, in their order.
const UnitLetters = "KMGTPEZYRQ"

// Lines splits a text after each newline.
func Lines(b []byte) [][]byte {
	all := bytes.SplitAfter(b, []byte("\n"))
	if len(all[len(all)-1]) == 0 {
		all = all[:len(all)-1]
	}
	return all
}

// EmacsSyntax writes an expression of Emacs as a basic one of GNU.
func EmacsSyntax(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			if s[i] != '+' && s[i] != '?' {
				b.WriteByte('\\')
			}
			b.WriteByte(s[i])
		case c == '[':
			end := strings.IndexByte(s[min(i+2, len(s)):], ']')
			if end >= 0 {
				b.WriteString(s[i : i+2+end])
				i += 1 + end
				continue
			}
			b.WriteByte(c)
		case c == '+' || c == '?':
			b.WriteString(`\` + string(c))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Letter returns the letter of a kind of file, as find -type and ls write it.
func Letter(k vfs.Kind) string {
	switch k {
	case vfs.Regular:
		return "f"
	case vfs.Directory:
		return "d"
	case vfs.Symlink:
		return "l"
	case vfs.Pipe:
		return "p"
	case vfs.Device:
		return "c"
	}
	return "s"
}

// Symbols writes a mode as ls does.
func Symbols(k vfs.Kind, mode uint32) string {
	b := []byte(Letter(k) + "rwxrwxrwx")
	if k == vfs.Regular {
		b[0] = '-'
	}
	for i := range 9 {
		if mode&(0o400>>i) == 0 {
			b[i+1] = '-'
		}
	}
	for i, bit := range []uint32{0o4000, 0o2000, 0o1000} {
		if mode&bit != 0 {
			at := 3 + 3*i
			c := "sst"[i]
			if b[at] == '-' {
				c -= 'a' - 'A'
			}
			b[at] = c
		}
	}
	return string(b)
}

// Blocks returns how many blocks of 512 bytes a file takes, were it on a disk with blocks of 4096.
func Blocks(i vfs.Info) int64 {
	if i.Kind == vfs.Symlink {
		return 0
	}
	return (i.Size + 4095) / 4096 * 8
}

// SafeName reports whether a name stays within the folder.
func SafeName(name string) bool {
	if strings.HasPrefix(name, "/") {
		return false
	}
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return false
		}
	}
	return true
}

// Plural returns the ending of a noun of which there are n.
func Plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// EachInput calls f with each operand as an input. The operand -, and no operand at all, mean the standard input. It writes an error for
// each operand that it cannot read, and then returns 1.
func EachInput(p *program.Process, operands []string, f func(name string, in *program.Input)) (code int) {
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	for _, name := range operands {
		in, done, err := OpenInput(p, name)
		if err == nil {
			f(name, in)
			err = in.Err()
			done()
		}
		if err != nil {
			p.Errorf("%s: %s", name, program.Message(err))
			code = 1
		}
	}
	return code
}

// OpenInput opens an operand.
func OpenInput(p *program.Process, name string) (*program.Input, func(), error) {
	if name == "-" {
		return p.Reader(p.Stdin), func() {}, nil
	}
	h, err := p.Open(name, vfs.Read)
	if err != nil {
		return nil, nil, err
	}
	return p.Reader(h), func() { _ = p.Close(h) }, nil
}

// ReadWhole reads an operand to its end.
func ReadWhole(p *program.Process, name string) ([]byte, error) {
	in, done, err := OpenInput(p, name)
	if err != nil {
		return nil, err
	}
	defer done()
	all := in.All()
	return all, in.Err()
}

// Create opens a file to be written from its beginning.
func Create(p *program.Process, name string) (*vfs.Handle, *program.Output, error) {
	h, err := p.Open(name, vfs.Write|vfs.Create|vfs.Truncate)
	if err != nil {
		return nil, nil, err
	}
	return h, p.Writer(h), nil
}

// Charger returns the function by which a regular expression charges its work to a process.
func Charger(p *program.Process) func(int64) error {
	return func(gas int64) error { p.Charge(int(gas)); return nil }
}

// Compile compiles an expression, or ends the program.
func Compile(p *program.Process, bad int, pattern string, flags posix.Flags) *posix.Regexp {
	re, err := posix.Compile(pattern, flags, Charger(p))
	if err != nil {
		p.Errorf("%s", err.Error())
		p.Exit(bad)
	}
	return re
}

// Check ends the program with the code bad if matching returned an error.
func Check(p *program.Process, bad int, err error) {
	if err != nil {
		p.Errorf("%s", err.Error())
		p.Exit(bad)
	}
}

// ParseSize reads a number with one of the suffixes of GNU: k and K for 1024, KB for 1000, and so on.
func ParseSize(s string) (int64, error) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	n, err := strconv.ParseInt(s[:i], 10, 64)
	if err != nil {
		return 0, err
	}
	unit, ok := units[s[i:]]
	if !ok || n > (1<<63-1)/unit {
		return 0, strconv.ErrRange
	}
	return n * unit, nil
}

var units = map[string]int64{
	"": 1, "c": 1, "w": 2, "b": 512, "k": 1 << 10, "K": 1 << 10, "KiB": 1 << 10, "kB": 1000, "KB": 1000, "m": 1 << 20, "M": 1 << 20,
	"MiB": 1 << 20, "MB": 1000_000,
	"g": 1 << 30, "G": 1 << 30, "GiB": 1 << 30, "GB": 1000_000_000, "T": 1 << 40, "TiB": 1 << 40, "TB": 1000_000_000_000, "P": 1 << 50,
	"PB": 1000_000_000_000_000,
}

// ParseCount reads a whole number that is not negative, or ends the program.
func ParseCount(p *program.Process, bad int, s, what string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		p.Errorf("%s: %s", what, Quote(s))
		p.Exit(bad)
	}
	return n
}

// Quote quotes as GNU's messages do.
func Quote(s string) string { return "‘" + s + "’" }

// Glob reports whether a name matches a pattern of the shell, in which a slash and a leading period are like any other character.
func Glob(pattern, name string, fold bool) bool {
	if fold {
		pattern, name = strings.ToLower(pattern), strings.ToLower(name)
	}
	pat, s := []rune(pattern), []rune(name)
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(s) {
		if i < len(pat) {
			if pat[i] == '*' {
				star, mark = i, j
				i++
				continue
			}
			if n, ok := globOne(pat[i:], s[j]); ok {
				i += n
				j++
				continue
			}
		}
		if star < 0 {
			return false
		}
		mark++
		i, j = star+1, mark
	}
	for i < len(pat) && pat[i] == '*' {
		i++
	}
	return i == len(pat)
}

// globOne matches one character, and returns how much of the pattern that takes.
func globOne(pat []rune, c rune) (int, bool) {
	switch pat[0] {
	case '?':
		return 1, true
	case '\\':
		if len(pat) > 1 {
			return 2, pat[1] == c
		}
	case '[':
		i, not, found := 1, false, false
		if i < len(pat) && (pat[i] == '!' || pat[i] == '^') {
			not = true
			i++
		}
		for first := true; i < len(pat) && (pat[i] != ']' || first); first = false {
			if pat[i] == '[' && i+1 < len(pat) && pat[i+1] == ':' {
				if end := strings.Index(string(pat[i:]), ":]"); end > 0 {
					name := string(pat[i : i+end])[2:]
					found = found || InClass(name, c)
					i += end + 2
					continue
				}
			}
			if pat[i] == '\\' && i+1 < len(pat) {
				i++
			}
			low, high := pat[i], pat[i]
			i++
			if i+1 < len(pat) && pat[i] == '-' && pat[i+1] != ']' {
				high = pat[i+1]
				i += 2
			}
			found = found || low <= c && c <= high
		}
		if i < len(pat) {
			return i + 1, found != not
		}
	}
	return 1, pat[0] == c
}

// InClass reports whether a character is in a class of patterns, such as digit.
func InClass(name string, c rune) bool {
	switch name {
	case "digit":
		return c >= '0' && c <= '9'
	case "lower":
		return c >= 'a' && c <= 'z'
	case "upper":
		return c >= 'A' && c <= 'Z'
	case "alpha":
		return c|0x20 >= 'a' && c|0x20 <= 'z'
	case "alnum":
		return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
	case "space":
		return strings.ContainsRune(" \t\n\r\v\f", c)
	case "blank":
		return c == ' ' || c == '\t'
	case "punct":
		return c > ' ' && c < 0x7f && !InClass("alnum", c)
	case "xdigit":
		return strings.ContainsRune("0123456789abcdefABCDEF", c)
	}
	return false
}

// Apostrophes quotes a name for a message with the name in the middle.
func Apostrophes(s string) string {
	if strings.Contains(s, "'") && !strings.ContainsAny(s, "\"$`\\") {
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\\''`) + "'"
}

// BareOrQuoted quotes a name where the shell would need that.
func BareOrQuoted(s string) string {
	if s == "" || strings.ContainsAny(s, " '\"\\|&;()<>!*?[]$`#~=\n\t:") {
		return Apostrophes(s)
	}
	return s
}

// WrongUsage writes that the arguments are wrong, and returns 1.
func WrongUsage(p *program.Process, format string, args ...any) int {
	p.Errorf(format, args...)
	p.Stderrf("Try '%s --help' for more information.\n", p.Name())
	return 1
}

// TooLong begins the message about a name of n bytes, where the most is allowed.
func TooLong(most, n int) string {
	return "limit " + strconv.Itoa(most) + " exceeded by length " + strconv.Itoa(n) + " of "
}

// LastName returns the last element of a path.
func LastName(path string) string {
	path = strings.TrimRight(path, "/")
	return path[strings.LastIndexByte(path, '/')+1:]
}

// Join joins a folder's path and a name.
func Join(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}

// Ended reports whether an error means the end of an input.
func Ended(err error) bool { return errors.Is(err, io.EOF) }
