package sorting

import (
	"bytes"
	"strconv"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// uniqCommand compares lines that follow each other.
type uniqCommand struct {
	p                      *program.Process
	in                     *program.Input
	out                    *program.Output
	counting, fold         bool
	repeated, unique, all  bool
	fields, chars, compare int
	delim                  byte
	between                string // how groups are set apart: none, prepend, append, separate, both; "" where lines are not shown in groups
	whole                  bool   // --group, which shows all lines
	groups                 int
}

func uniq(p *program.Process) int {
	old := uniqObsolete(p)
	opts, files := p.Options(1, "cdDuif:s:w:z", "count c", "repeated d", "all-repeated=?", "unique u", "ignore-case i", "skip-fields f",
		"skip-chars s", "check-chars w",
		"zero-terminated z", "group=?")
	u := &uniqCommand{p: p, compare: -1, delim: '\n', chars: old.chars, fields: old.fields}
	for _, o := range opts {
		u.option(o)
	}
	filtered := u.repeated || u.unique
	switch {
	case u.whole && (u.counting || filtered):
		gnu.FailUsage(p, 1, "--group is mutually exclusive with -c/-d/-D/-u")
	case u.all && u.counting:
		gnu.FailUsage(p, 1, "printing all duplicated lines and repeat counts is meaningless")
	case len(files) > 2:
		gnu.FailUsage(p, 1, "extra operand ‘%s’", files[2])
	}
	name := "-"
	if len(files) > 0 {
		name = files[0]
	}
	if u.in = gnu.OpenOrTell(p, name); u.in == nil {
		return 1
	}
	u.out = p.Out()
	if len(files) > 1 && files[1] != "-" {
		h, err := p.Open(files[1], vfs.Write|vfs.Create|vfs.Truncate)
		if err != nil {
			p.Errorf("%s: %s", files[1], program.Message(err))
			return 1
		}
		u.out = p.Writer(h)
	}
	if u.all || u.whole {
		u.inGroups()
	} else {
		u.singly()
	}
	u.out.Flush()
	if !gnu.EndedWell(p, name, u.in) {
		return 1
	}
	return 0
}

// uniqSkips are what the old forms -N and +N skip.
type uniqSkips struct{ fields, chars int }

// uniqObsolete takes -N and +N out of the arguments. The latter is a file where the variable _POSIX2_VERSION does not say otherwise.
func uniqObsolete(p *program.Process) (old uniqSkips) {
	version, err := strconv.Atoi(p.Getenv("_POSIX2_VERSION"))
	plus := err == nil && (version < 200112 || version >= 200809)
	args, operands := p.Args[:1:1], 0
	for i := 1; i < len(p.Args); i++ {
		a := p.Args[i]
		if a == "--" {
			args = append(args, p.Args[i:]...)
			break
		}
		n, digits := oldSkip(a)
		switch {
		case digits && a[0] == '-':
			old.fields = n
		case digits && a[0] == '+' && plus && operands == 0:
			old.chars = n
		case len(a) == 2 && a[0] == '-' && strings.ContainsAny(a[1:], "fsw") && i+1 < len(p.Args):
			args = append(args, a, p.Args[i+1])
			i++
		default:
			if a[:min(1, len(a))] != "-" || a == "-" {
				operands++
			}
			args = append(args, a)
		}
	}
	p.Args = args
	return old
}

// oldSkip reads the number of an old option, like -5 or +3, and reports whether it is one. One that is too large is more than any line has.
func oldSkip(a string) (int, bool) {
	if len(a) < 2 || strings.Trim(a[1:], "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(a[1:])
	if err != nil {
		n = 1<<62 - 1
	}
	return n, true
}

func (u *uniqCommand) option(o program.Option) {
	switch o.Name {
	case "c":
		u.counting = true
	case "d":
		u.repeated = true
	case "D", "all-repeated":
		u.all, u.repeated = true, true
		u.between = u.method(o, "none", "prepend", "separate")
	case "group":
		u.whole = true
		u.between = u.method(o, "separate", "prepend", "append", "separate", "both")
	case "u":
		u.unique = true
	case "i":
		u.fold = true
	case "f":
		u.fields = u.number(o.Value, "fields to skip")
	case "s":
		u.chars = u.number(o.Value, "bytes to skip")
	case "w":
		u.compare = u.number(o.Value, "bytes to compare")
	case "z":
		u.delim = 0
	}
}

// method returns how groups are set apart: by default as the first name says.
func (u *uniqCommand) method(o program.Option, names ...string) string {
	if !o.Given {
		return names[0]
	}
	for _, n := range names {
		if o.Value != "" && strings.HasPrefix(n, o.Value) {
			return n
		}
	}
	u.p.Errorf("invalid argument ‘%s’ for ‘--%s’", o.Value, o.Name)
	if o.Name == "group" {
		names = names[1:]
	}
	u.p.Stderrf("Valid arguments are:\n  - ‘%s’\nTry '%s --help' for more information.\n", strings.Join(names, "’\n  - ‘"), u.p.Name())
	u.p.Exit(1)
	return ""
}

func (u *uniqCommand) number(s, what string) int {
	if strings.Trim(s, "0123456789") != "" || s == "" {
		u.p.Errorf("%s: invalid number of %s", s, what)
		u.p.Exit(1)
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 1<<63 - 1 // no line is so long
	}
	return n
}

// key returns what of a line is compared.
func (u *uniqCommand) key(line []byte) []byte {
	for i := 0; i < u.fields && len(line) > 0; i++ {
		line = bytes.TrimLeft(line, " \t\n")
		end := bytes.IndexAny(line, " \t\n")
		if end < 0 {
			end = len(line)
		}
		line = line[end:]
	}
	line = line[min(u.chars, len(line)):]
	if u.compare >= 0 {
		line = line[:min(u.compare, len(line))]
	}
	return line
}

func (u *uniqCommand) same(a, b []byte) bool {
	u.p.Charge((len(a) + len(b)) / 4)
	if u.fold {
		return bytes.EqualFold(u.key(a), u.key(b))
	}
	return bytes.Equal(u.key(a), u.key(b))
}

// singly writes one line of those that are the same.
func (u *uniqCommand) singly() {
	var previous []byte
	n := 0
	emit := func() {
		switch {
		case n == 0, u.repeated && n < 2, u.unique && n > 1:
		case u.counting:
			u.out.Printf("%7d ", n)
			gnu.WriteLine(u.out, previous, u.delim, true)
		default:
			gnu.WriteLine(u.out, previous, u.delim, true)
		}
	}
	for {
		line, _, ok := u.in.Line(u.delim)
		if !ok {
			break
		}
		if n > 0 && u.same(line, previous) {
			n++
			continue
		}
		emit()
		n, previous = 1, u.p.Append(previous[:0], line)
	}
	emit()
}

// inGroups writes all lines, or all that are there more than once.
func (u *uniqCommand) inGroups() {
	var previous []byte
	n := 0 // lines of the group
	for {
		line, _, ok := u.in.Line(u.delim)
		if !ok {
			break
		}
		if n > 0 && u.same(line, previous) {
			if n++; u.whole {
				gnu.WriteLine(u.out, line, u.delim, true)
				continue
			}
			if n == 2 && !u.unique {
				u.begin()
				gnu.WriteLine(u.out, previous, u.delim, true)
			}
			if !u.unique {
				gnu.WriteLine(u.out, line, u.delim, true)
			}
			continue
		}
		n, previous = 1, u.p.Append(previous[:0], line)
		if u.whole {
			u.begin()
			gnu.WriteLine(u.out, line, u.delim, true)
		}
	}
	if u.whole && u.groups > 0 && (u.between == "append" || u.between == "both") {
		_ = u.out.WriteByte(u.delim)
	}
}

// begin writes what stands in front of a group.
func (u *uniqCommand) begin() {
	u.groups++
	if u.between == "prepend" || u.between == "both" || u.groups > 1 && (u.between == "separate" || u.between == "append") {
		_ = u.out.WriteByte(u.delim)
	}
}
