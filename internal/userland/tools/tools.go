// Package tools has the commands of the virtual shell that look at texts, files and archives: GNU's, as far as scripts use them.
package tools

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"agentbox/internal/userland/awk"
	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/sed"
	"agentbox/internal/userland/vfs"
)

// Programs returns the commands by their names, with sed and awk.
func Programs() program.Table {
	return program.Functions(map[string]program.Func{
		"bunzip2": bzip2Command, "bzcat": bzip2Command, "bzip2": bzip2Command, "gunzip": gzipCommand, "gzip": gzipCommand, "tar": tarCommand,
		"unzip": unzip, "zcat": gzipCommand, "zip": zipCommand, "chgrp": refuses("there are no other owners here"),
		"chown": refuses("there are no other owners here"), "mkfifo": refuses("pipes with names are not supported here: use |"),
		"mknod": refuses("devices cannot be made here"), "ionice": runs, "nice": runs, "nohup": runs, "setsid": runs, "stdbuf": runs, "tty": tty,
	}).Add(program.Table{"sed": sed.Program(), "awk": awk.Program(), "gawk": awk.Program(), "mawk": awk.Program()},
		programsTextdiff(), programsCalc(), programsJq(), programsFind(), programsGrep(), programsFiles(),
		programsDump(), programsLayout(), programsLines())
}

// each calls f with every operand as an input, - and none being the standard input. What cannot be read is told, and makes the code 1.
func each(p *program.Process, operands []string, f func(name string, in *program.Input)) (code int) {
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	for _, name := range operands {
		in, done, err := input(p, name)
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

// input opens an operand.
func input(p *program.Process, name string) (*program.Input, func(), error) {
	if name == "-" {
		return p.Reader(p.Stdin), func() {}, nil
	}
	h, err := p.Open(name, vfs.Read)
	if err != nil {
		return nil, nil, err
	}
	return p.Reader(h), func() { _ = p.Close(h) }, nil
}

// whole reads an operand to its end.
func whole(p *program.Process, name string) ([]byte, error) {
	in, done, err := input(p, name)
	if err != nil {
		return nil, err
	}
	defer done()
	all := in.All()
	return all, in.Err()
}

// create opens a file to be written from its beginning.
func create(p *program.Process, name string) (*vfs.Handle, *program.Output, error) {
	h, err := p.Open(name, vfs.Write|vfs.Create|vfs.Truncate)
	if err != nil {
		return nil, nil, err
	}
	return h, p.Writer(h), nil
}

// charge returns what counts the work of expressions.
func charge(p *program.Process) func(int64) error {
	return func(gas int64) error { p.Charge(int(gas)); return nil }
}

// compile compiles an expression, or ends the program.
func compile(p *program.Process, bad int, pattern string, flags posix.Flags) *posix.Regexp {
	re, err := posix.Compile(pattern, flags, charge(p))
	if err != nil {
		p.Errorf("%s", err.Error())
		p.Exit(bad)
	}
	return re
}

// check ends the program for an error of matching.
func check(p *program.Process, bad int, err error) {
	if err != nil {
		p.Errorf("%s", err.Error())
		p.Exit(bad)
	}
}

// size reads a number with one of the suffixes of GNU: k and K for 1024, KB for 1000, and so on.
func size(s string) (int64, error) {
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

// count reads a whole number that is not negative, or ends the program.
func count(p *program.Process, bad int, s, what string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		p.Errorf("%s: %s", what, quote(s))
		p.Exit(bad)
	}
	return n
}

// quote quotes as GNU's messages do.
func quote(s string) string { return "‘" + s + "’" }

// glob reports whether a name matches a pattern of the shell, in which a slash and a leading period are like any other character.
func glob(pattern, name string, fold bool) bool {
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
					found = found || inClass(name, c)
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

func inClass(name string, c rune) bool {
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
		return c > ' ' && c < 0x7f && !inClass("alnum", c)
	case "xdigit":
		return strings.ContainsRune("0123456789abcdefABCDEF", c)
	}
	return false
}

// apostrophes quotes a name as messages have it that name a file in the middle.
func apostrophes(s string) string {
	if strings.Contains(s, "'") && !strings.ContainsAny(s, "\"$`\\") {
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\\''`) + "'"
}

// bareOrQuoted quotes a name where the shell would need that.
func bareOrQuoted(s string) string {
	if s == "" || strings.ContainsAny(s, " '\"\\|&;()<>!*?[]$`#~=\n\t:") {
		return apostrophes(s)
	}
	return s
}

// wrongUsage tells that the arguments are wrong, and returns 1.
func wrongUsage(p *program.Process, format string, args ...any) int {
	p.Errorf(format, args...)
	p.Stderrf("Try '%s --help' for more information.\n", p.Name())
	return 1
}

// tooLong begins the message about a name of n bytes where there is room for most.
func tooLong(most, n int) string {
	return "limit " + strconv.Itoa(most) + " exceeded by length " + strconv.Itoa(n) + " of "
}

// lastName returns the last element of a path.
func lastName(path string) string {
	path = strings.TrimRight(path, "/")
	return path[strings.LastIndexByte(path, '/')+1:]
}

// join joins a folder's path and a name.
func join(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}

// ended reports whether an error is the end of an input.
func ended(err error) bool { return errors.Is(err, io.EOF) }

// charger lets a reader or writer of a library charge what it moves.
type charger struct {
	p *program.Process
	r io.Reader
	w io.Writer
	n int // gas for a byte
}

func (c *charger) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.p.Charge(n * c.n)
	return n, err
}

func (c *charger) Write(b []byte) (int, error) {
	c.p.Charge(len(b) * c.n)
	return c.w.Write(b)
}
