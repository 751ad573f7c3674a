package gnu

import (
	"strconv"
	"strings"

	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// OpenOrTell opens an operand; - is the standard input. It writes an error to stderr and returns nil where that fails.
func OpenOrTell(p *program.Process, name string) *program.Input {
	if name == "-" {
		return p.Reader(p.Stdin)
	}
	h, err := p.Open(name, vfs.Read)
	if err != nil {
		p.Errorf("%s: %s", name, program.Message(err))
		return nil
	}
	return p.Reader(h)
}

// EndedWell reports whether an input was read to its end. It writes an error of reading to stderr.
func EndedWell(p *program.Process, name string, in *program.Input) bool {
	if err := in.Err(); err != nil {
		p.Errorf("%s: %s", name, program.Message(err))
		return false
	}
	return true
}

// FailUsage writes that the arguments are wrong, and ends the program.
func FailUsage(p *program.Process, code int, format string, args ...any) {
	p.Errorf(format, args...)
	p.Stderrf("Try '%s --help' for more information.\n", p.Name())
	p.Exit(code)
}

// QuoteName writes a name as messages have it: in single quotes, escaped where it has to be.
func QuoteName(s string) string {
	if strings.ContainsAny(s, "'") {
		if !strings.ContainsAny(s, "\"$`\\!") {
			return `"` + s + `"`
		}
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	if strings.ContainsAny(s, "\n\t\r") {
		return "'" + strings.NewReplacer("\n", `'$'\n''`, "\t", `'$'\t''`, "\r", `'$'\r''`).Replace(s) + "'"
	}
	return "'" + s + "'"
}

// QuoteIfNeeded writes a name as messages of cat and wc have it: in quotes only where it needs them.
func QuoteIfNeeded(s string) string {
	if s == "" || strings.ContainsAny(s, " '\"\\|&;()<>!*?[]$`#~=\n\t:") {
		return QuoteName(s)
	}
	return s
}

// ParseSuffixed reads a number with a unit, as head, tail and sleep of sizes have them.
func ParseSuffixed(s string) (int64, bool) {
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(s[:end], 10, 64)
	if err != nil {
		return 0, false
	}
	unit := int64(1)
	switch s[end:] {
	case "":
	case "b":
		unit = 512
	case "k", "K", "KiB":
		unit = 1 << 10
	case "kB", "KB":
		unit = 1000
	case "m", "M", "MiB":
		unit = 1 << 20
	case "MB":
		unit = 1000 * 1000
	case "G", "GiB":
		unit = 1 << 30
	case "GB":
		unit = 1000 * 1000 * 1000
	default:
		return 0, false
	}
	return n * unit, n <= (1<<62)/unit
}

// WriteLine writes a line, and its delimiter where end says so.
func WriteLine(out *program.Output, line []byte, delim byte, end bool) {
	_, _ = out.Write(line)
	if end {
		_ = out.WriteByte(delim)
	}
}

// OrStdin returns the operands, or the standard input where there is none.
func OrStdin(files []string) []string {
	if len(files) == 0 {
		return []string{"-"}
	}
	return files
}

// StdinName returns the name of an operand as messages of head and cksum have it.
func StdinName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}

// ByteClass reports whether a byte is in a class of characters, such as alpha, in the locale C.
func ByteClass(name string, c byte) bool {
	lower, upper, digit := c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9'
	switch name {
	case "alpha":
		return lower || upper
	case "digit":
		return digit
	case "alnum":
		return lower || upper || digit
	case "upper":
		return upper
	case "lower":
		return lower
	case "space":
		return c == ' ' || c >= 9 && c <= 13
	case "blank":
		return c == ' ' || c == '\t'
	case "punct":
		return c > 32 && c < 127 && !lower && !upper && !digit
	case "print":
		return c >= 32 && c < 127
	case "graph":
		return c > 32 && c < 127
	case "cntrl":
		return c < 32 || c == 127
	case "xdigit":
		return digit || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
	}
	return false
}

// User returns the name of the user: that of the variable USER, or root. There is one user, whose number is 0.
func User(p *program.Process) string {
	if name := p.Getenv("USER"); name != "" {
		return name
	}
	return "root"
}
