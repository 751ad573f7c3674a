package coreutils

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// argumentOptions are what the options of xargs say.
type argumentOptions struct {
	p                 *program.Process
	delim             byte
	quoted            bool
	replace           string
	maxArgs, maxLines int
	empty, verbose    bool
	file              string
	maxChars          int
	eof               string
}

// xargs builds command lines from its input.
func xargs(p *program.Process) int {
	x := &argumentOptions{p: p}
	opts, command := p.Options(1, "+0a:d:E:e::I:i::L:l::n:oP:prs:txe::", "null 0", "arg-file a", "delimiter d", "eof=?", "replace=?",
		"max-lines=?", "max-args n", "max-procs P", "interactive p",
		"no-run-if-empty r", "max-chars s", "verbose t", "exit x", "open-tty o", "show-limits", "process-slot-var=")
	x.delim, x.quoted, x.empty, x.maxChars = byte('\n'), true, true, 128<<10
	for _, o := range opts {
		if code, done := x.option(o); done {
			return code
		}
	}
	if len(command) == 0 {
		command = []string{"echo"}
	}
	in, stdin, ok := x.input()
	if !ok {
		return 1
	}
	status := 0
	execute := func(args []string) {
		if !x.run(args, stdin) {
			status = 123
		}
	}
	var words []string
	size, lines, ran := 0, 0, false
	fixed := 0
	for _, c := range command {
		fixed += len(c) + 1
	}
	flush := func() {
		if len(words) == 0 && (ran || !x.empty) {
			return
		}
		execute(slices.Concat(command, words))
		p.Drop(size)
		words, size, lines, ran = nil, 0, 0, true
	}
	add := func(w string) {
		if x.replace != "" {
			execute(replaced(command, x.replace, w))
			ran = true
			return
		}
		if size+fixed+len(w)+1 > x.maxChars && len(words) > 0 {
			flush()
		}
		p.Hold(len(w) + 1)
		size += len(w) + 1
		words = append(words, w)
		if x.maxArgs > 0 && len(words) == x.maxArgs {
			flush()
		}
	}
	carry := ""
	for {
		line, _, ok := in.Line(x.delim)
		if !ok {
			break
		}
		p.Charge(20 + len(line))
		switch {
		case x.replace != "" && x.quoted:
			w := string(bytes.TrimLeft(line, " \t"))
			if w != "" {
				split, bad := splitQuoted(w, true)
				if bad != "" {
					p.Errorf("unmatched %s quote; by default quotes are special to xargs unless you use the -0 option", bad)
					return 1
				}
				add(split[0])
			}
		case !x.quoted:
			add(string(line))
			if lines++; x.maxLines > 0 && lines == x.maxLines {
				flush()
			}
		default:
			text := carry + string(line)
			carry = ""
			if strings.HasSuffix(text, `\`) && !strings.HasSuffix(text, `\\`) {
				carry = text + "\n"
				continue
			}
			split, bad := splitQuoted(text, false)
			if bad != "" {
				p.Errorf("unmatched %s quote; by default quotes are special to xargs unless you use the -0 option", bad)
				return 1
			}
			for _, w := range split {
				if x.eof != "" && w == x.eof {
					flush()
					return status
				}
				add(w)
			}
			if len(split) > 0 {
				if lines++; x.maxLines > 0 && lines == x.maxLines && !strings.HasSuffix(text, " ") {
					flush()
				}
			}
		}
	}
	if len(words) > 0 || !ran && x.empty && x.replace == "" {
		flush()
	}
	return status
}

// replaced returns a command with the word in place of each mark. The command's name stays as it is.
func replaced(command []string, mark, word string) []string {
	args := slices.Clone(command)
	for i := range args[1:] {
		args[i+1] = strings.ReplaceAll(args[i+1], mark, word)
	}
	return args
}

// input returns the input of xargs, and the standard input of its commands.
func (x *argumentOptions) input() (in *program.Input, stdin *vfs.Handle, ok bool) {
	in, stdin = x.p.Reader(x.p.Stdin), x.p.Stdin
	if x.file != "" {
		h, err := x.p.Open(x.file, vfs.Read)
		if err != nil {
			x.p.Errorf("Cannot open input file ‘%s’: %s", x.file, program.Message(err))
			return nil, nil, false
		}
		in = x.p.Reader(h)
	} else {
		null, err := x.p.Open("/dev/null", vfs.Read)
		if err == nil {
			stdin = null
		}
	}
	return in, stdin, true
}

// run runs a command and reports whether it succeeded. Some failures end xargs.
func (x *argumentOptions) run(args []string, stdin *vfs.Handle) bool {
	if x.verbose {
		x.p.Stderrf("%s\n", strings.Join(args, " "))
	}
	c := x.p.Child(args...)
	c.Stdin = stdin
	s, err := x.p.Execute(c)
	if err != nil {
		x.p.Check(err)
		x.p.Errorf("%s: %s", args[0], program.Message(err))
		if errors.Is(err, vfs.ENOENT) {
			x.p.Exit(127)
		}
		x.p.Exit(126)
	}
	switch {
	case s.Signal != 0:
		x.p.Errorf("%s: terminated by signal %d", args[0], s.Signal)
		x.p.Exit(125)
	case s.Code == 255:
		x.p.Errorf("%s: exited with status 255; aborting", args[0])
		x.p.Exit(124)
	}
	return s.Code == 0
}

// option takes one option. It returns whether the command ends with that, and the code.
func (x *argumentOptions) option(o program.Option) (code int, done bool) {
	switch o.Name {
	case "0":
		x.delim, x.quoted = 0, false
	case "a":
		x.file = o.Value
	case "d":
		x.quoted = false
		switch {
		case o.Value == `\n`:
			x.delim = '\n'
		case o.Value == `\t`:
			x.delim = '\t'
		case o.Value == `\0`:
			x.delim = 0
		case len(o.Value) == 1:
			x.delim = o.Value[0]
		default:
			x.p.Errorf("Invalid input delimiter specification %s: the delimiter must be either a single character or an escape sequence starting "+
				"with \\.", o.Value)
			return 1, true
		}
	case "I":
		x.replace, x.maxArgs, x.maxLines = o.Value, 0, 0
	case "i", "replace":
		if x.replace = o.Value; x.replace == "" {
			x.replace = "{}"
		}
	case "L", "l", "max-lines":
		if x.maxLines = 1; o.Given {
			x.maxLines = x.number(o)
		}
		x.maxArgs, x.replace = 0, ""
	case "n":
		if x.maxArgs = x.number(o); x.maxArgs == 0 {
			x.p.Errorf("value 0 for -n option should be >= 1")
			return 1, true
		}
		x.maxLines = 0
	case "r":
		x.empty = false
	case "t":
		x.verbose = true
	case "s":
		x.maxChars = min(x.number(o), x.maxChars)
	case "E", "e", "eof":
		x.eof = o.Value
	case "P", "x", "o", "process-slot-var":
	case "p", "show-limits":
		x.p.Lack(program.LackOption, "-"+o.Name)
		gnu.FailUsage(x.p, 1, "option -%s is not supported in a nano space", o.Name)
	}
	return 0, false
}

// splitQuoted splits a line at blanks; quotes and backslashes are resolved. whole keeps it one word. bad names a quote that does not end.
func splitQuoted(s string, whole bool) (words []string, bad string) {
	var b strings.Builder
	started := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
			started = true
		case c == '\'' || c == '"':
			end := strings.IndexByte(s[i+1:], c)
			if end < 0 {
				if c == '"' {
					return words, "double"
				}
				return words, "single"
			}
			b.WriteString(s[i+1 : i+1+end])
			i += end + 1
			started = true
		case !whole && (c == ' ' || c == '\t' || c == '\n'):
			if started {
				words = append(words, b.String())
				b.Reset()
				started = false
			}
		default:
			b.WriteByte(c)
			started = true
		}
	}
	if started || whole {
		words = append(words, b.String())
	}
	return words, ""
}

// number reads the number of an option, or ends the program.
func (x *argumentOptions) number(o program.Option) int {
	n, err := strconv.Atoi(o.Value)
	if err != nil || n < 0 {
		x.p.Errorf("invalid number \"%s\" for -%s option", o.Value, o.Name)
		x.p.Stderrf("Try '%s --help' for more information.\n", x.p.Name())
		x.p.Exit(1)
	}
	return n
}
