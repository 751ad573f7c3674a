package coreutils

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/driver/wasm/program"
	"agentbox/internal/driver/wasm/vfs"
)

// duration reads a number of seconds with a unit, as sleep and timeout have it.
func duration(s string) (time.Duration, bool) {
	unit := time.Second
	number := s
	if s != "" {
		switch s[len(s)-1] {
		case 's':
			number = s[:len(s)-1]
		case 'm':
			unit, number = time.Minute, s[:len(s)-1]
		case 'h':
			unit, number = time.Hour, s[:len(s)-1]
		case 'd':
			unit, number = 24*time.Hour, s[:len(s)-1]
		}
	}
	if s == "infinity" || s == "inf" {
		return 1<<63 - 1, true
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n < 0 || n != n {
		return 0, false
	}
	if n*float64(unit) > 1<<62 {
		return 1 << 62, true
	}
	return time.Duration(n * float64(unit)), true
}

func sleep(p *program.Process) int {
	_, args := p.Options(1, "")
	if len(args) == 0 {
		usage(p, 1, "missing operand")
	}
	total := time.Duration(0)
	for _, a := range args {
		d, ok := duration(a)
		if !ok {
			usage(p, 1, "invalid time interval ‘%s’", a)
		}
		total = min(total+min(d, 1<<61), 1<<61)
	}
	p.Sleep(total)
	return 0
}

// run runs a command for one that wraps another, and returns its status.
func run(p *program.Process, c *program.Process) program.Status {
	s, err := p.Execute(c)
	if err == nil {
		return s
	}
	p.Check(err)
	code := 126
	if errors.Is(err, vfs.ENOENT) {
		code = 127
	}
	switch p.Name() {
	case "env":
		p.Errorf("‘%s’: %s", c.Args[0], program.Message(err))
	default:
		p.Errorf("failed to run command ‘%s’: %s", c.Args[0], program.Message(err))
	}
	return program.Status{Code: code}
}

// finish ends a program as the one has ended that it stands for.
func finish(p *program.Process, s program.Status) int {
	if s.Signal != 0 {
		p.Kill(s.Signal)
	}
	return s.Code
}

// wrapper is a command that changes something about another which means nothing here.
func wrapper(short string) program.Func {
	return func(p *program.Process) int {
		_, args := p.Options(125, "+"+short, "adjustment n", "input i", "output o", "error e", "fork f", "wait w", "ctty c")
		if len(args) == 0 {
			if p.Name() == "nice" {
				_, _ = p.Out().WriteString("0\n")
				return 0
			}
			usage(p, 125, "missing operand")
		}
		return finish(p, run(p, p.Child(args...)))
	}
}

func timeout(p *program.Process) int {
	opts, args := p.Options(125, "+k:s:v", "kill-after k", "signal s", "verbose v", "foreground", "preserve-status")
	preserve, signal := false, program.SIGTERM
	for _, o := range opts {
		switch o.Name {
		case "preserve-status":
			preserve = true
		case "s":
			if strings.TrimPrefix(strings.ToUpper(o.Value), "SIG") == "KILL" || o.Value == "9" {
				signal = program.SIGKILL
			}
		case "k":
			if _, ok := duration(o.Value); !ok {
				usage(p, 125, "invalid time interval ‘%s’", o.Value)
			}
		}
	}
	if len(args) < 2 {
		if len(args) == 1 {
			p.Stderrf("Try '%s --help' for more information.\n", p.Name())
			return 125
		}
		p.Stderrf("Try '%s --help' for more information.\n", p.Name())
		return 125
	}
	d, ok := duration(args[0])
	if !ok {
		usage(p, 125, "invalid time interval ‘%s’", args[0])
	}
	c := p.Child(args[1:]...)
	deadline := time.Time{}
	if d > 0 {
		deadline = p.Now().Add(min(d, 1<<55))
		if c.Deadline.IsZero() || deadline.Before(c.Deadline) {
			c.Deadline = deadline
		}
	}
	s := run(p, c)
	if d > 0 && s.Signal == program.SIGTERM && !p.Now().Before(deadline) {
		if signal == program.SIGKILL {
			p.Kill(signal)
		}
		if preserve {
			return 143
		}
		return 124
	}
	return finish(p, s)
}

func env(p *program.Process) int {
	opts, args := p.Options(125, "+iu:C:0vS:", "ignore-environment i", "unset u", "chdir C", "null 0", "split-string S", "debug v")
	c := p.Child()
	c.Env = slices.Clone(p.Env)
	end := "\n"
	for _, o := range opts {
		switch o.Name {
		case "i":
			c.Env = nil
		case "u":
			c.Env = slices.DeleteFunc(c.Env, func(kv string) bool { return strings.HasPrefix(kv, o.Value+"=") })
		case "0":
			end = "\x00"
		case "C":
			n, err := lookup(p, o.Value, true)
			if err == nil && n.Kind() != vfs.Directory {
				err = vfs.ENOTDIR
			}
			if err != nil {
				p.Errorf("cannot change directory to ‘%s’: %s", o.Value, program.Message(err))
				return 125
			}
			c.Cwd = n
		case "S":
			args = append(strings.Fields(o.Value), args...)
		}
	}
	if len(args) > 0 && args[0] == "-" {
		c.Env, args = nil, args[1:]
	}
	for len(args) > 0 && strings.Contains(args[0], "=") {
		name, _, _ := strings.Cut(args[0], "=")
		at := slices.IndexFunc(c.Env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		if at >= 0 {
			c.Env[at] = args[0]
		} else {
			c.Env = append(c.Env, args[0])
		}
		args = args[1:]
	}
	if len(args) == 0 {
		for _, kv := range c.Env {
			_, _ = p.Out().WriteString(kv + end)
		}
		return 0
	}
	c.Args = args
	return finish(p, run(p, c))
}

func printenv(p *program.Process) int {
	opts, names := p.Options(2, "0", "null 0")
	end := "\n"
	if len(opts) > 0 {
		end = "\x00"
	}
	if len(names) == 0 {
		for _, kv := range p.Env {
			_, _ = p.Out().WriteString(kv + end)
		}
		return 0
	}
	status := 0
	for _, name := range names {
		v, ok := p.LookupEnv(name)
		if !ok {
			status = 1
			continue
		}
		_, _ = p.Out().WriteString(v + end)
	}
	return status
}

func date(p *program.Process) int {
	opts, args := p.Options(1, "d:f:I::Rr:s:u", "date d", "file f", "iso-8601=?", "rfc-email R", "rfc-2822 R", "rfc-3339=", "reference r", "set s", "universal u", "utc u", "debug", "resolution")
	at := p.Now().UTC()
	layout := "%a %b %e %H:%M:%S UTC %Y"
	for _, o := range opts {
		switch o.Name {
		case "d":
			t, ok := ParseDate(o.Value, p.Now().UTC())
			if !ok {
				p.Errorf("invalid date ‘%s’", o.Value)
				return 1
			}
			at = t
		case "r":
			n, err := lookup(p, o.Value, true)
			if !try(p, err, "%s", o.Value) {
				return 1
			}
			at = n.Info().Modified.UTC()
		case "R":
			layout = "%a, %d %b %Y %H:%M:%S %z"
		case "I", "iso-8601":
			var ok bool
			if layout, ok = map[string]string{"": "%F", "date": "%F", "hours": "%FT%H%:z", "minutes": "%FT%H:%M%:z", "seconds": "%FT%T%:z", "ns": "%FT%T,%N%:z"}[o.Value]; !ok {
				usage(p, 1, "invalid argument ‘%s’ for ‘--iso-8601’", o.Value)
			}
		case "rfc-3339":
			var ok bool
			if layout, ok = map[string]string{"date": "%F", "seconds": "%F %T%:z", "ns": "%F %T.%N%:z"}[o.Value]; !ok {
				usage(p, 1, "invalid argument ‘%s’ for ‘--rfc-3339’", o.Value)
			}
		case "f", "s":
			p.Lack(program.LackOption, "-"+o.Name)
			usage(p, 1, "option -%s is not supported in a nano space", o.Name)
		}
	}
	if len(args) > 1 {
		usage(p, 1, "extra operand ‘%s’", args[1])
	}
	if len(args) == 1 {
		if !strings.HasPrefix(args[0], "+") {
			p.Errorf("invalid date ‘%s’", args[0])
			return 1
		}
		layout = args[0][1:]
	}
	_, _ = p.Out().WriteString(program.Strftime(layout, at) + "\n")
	return 0
}

func id(p *program.Process) int {
	opts, names := p.Options(1, "agGnruzZ", "group g", "groups G", "name n", "real r", "user u", "zero z")
	if len(names) > 0 && names[0] != "root" && names[0] != "0" {
		p.Errorf("‘%s’: no such user", names[0])
		return 1
	}
	which, name, zero := "", false, false
	for _, o := range opts {
		switch o.Name {
		case "u", "g", "G":
			which = o.Name
		case "n":
			name = true
		case "z":
			zero = true
		}
	}
	switch {
	case which == "" && zero:
		p.Errorf("option --zero not permitted in default format")
		return 1
	case which == "" && name:
		p.Errorf("cannot print only names or real IDs in default format")
		return 1
	case which == "":
		_, _ = p.Out().WriteString("uid=0(root) gid=0(root) groups=0(root)\n")
	case name:
		_, _ = p.Out().WriteString("root\n")
	default:
		_, _ = p.Out().WriteString("0\n")
	}
	return 0
}

func whoami(p *program.Process) int {
	_, args := p.Options(1, "")
	if len(args) > 0 {
		usage(p, 1, "extra operand ‘%s’", args[0])
	}
	_, _ = p.Out().WriteString("root\n")
	return 0
}

func groups(p *program.Process) int { _, _ = p.Out().WriteString("root\n"); return 0 }

func arch(p *program.Process) int { _, _ = p.Out().WriteString("x86_64\n"); return 0 }

func sync(*program.Process) int { return 0 }

func tty(p *program.Process) int {
	opts, _ := p.Options(2, "s", "silent s", "quiet s")
	if len(opts) == 0 {
		_, _ = p.Out().WriteString("not a tty\n")
	}
	return 1
}

func uname(p *program.Process) int {
	opts, _ := p.Options(1, "amnoprsvi", "all a", "machine m", "nodename n", "operating-system o", "processor p", "kernel-release r", "kernel-name s", "kernel-version v", "hardware-platform i")
	fields := []struct{ letter, text string }{{"s", "Linux"}, {"n", hostName(p)}, {"r", "6.1.0"}, {"v", "#1 SMP"}, {"m", "x86_64"}, {"p", "unknown"}, {"i", "unknown"}, {"o", "GNU/Linux"}}
	want := ""
	for _, o := range opts {
		if o.Name == "a" {
			o.Name = "snrvmo"
		}
		want += o.Name
	}
	if want == "" {
		want = "s"
	}
	var words []string
	for _, f := range fields {
		if strings.Contains(want, f.letter) {
			words = append(words, f.text)
		}
	}
	_, _ = p.Out().WriteString(strings.Join(words, " ") + "\n")
	return 0
}

func hostName(p *program.Process) string {
	if name := p.Getenv("HOSTNAME"); name != "" {
		return name
	}
	return "agentbox"
}

func hostname(p *program.Process) int {
	opts, args := p.Options(1, "fsidAI", "fqdn f", "short s", "ip-address i", "all-fqdns A", "all-ip-addresses I", "domain d")
	if len(args) > 0 {
		p.Errorf("you must be root to change the host name")
		return 1
	}
	for _, o := range opts {
		switch o.Name {
		case "i", "I":
			_, _ = p.Out().WriteString("127.0.0.1\n")
			return 0
		case "d":
			return 0
		}
	}
	_, _ = p.Out().WriteString(hostName(p) + "\n")
	return 0
}

func nproc(p *program.Process) int {
	_, args := p.Options(1, "", "all", "ignore=")
	if len(args) > 0 {
		usage(p, 1, "extra operand ‘%s’", args[0])
	}
	_, _ = p.Out().WriteString("1\n")
	return 0
}

func which(p *program.Process) int {
	opts, names := p.Options(2, "as")
	all, silent := false, false
	for _, o := range opts {
		all, silent = all || o.Name == "a", silent || o.Name == "s"
	}
	status := 0
	if len(names) == 0 {
		return 1
	}
	for _, name := range names {
		found := false
		dirs := strings.Split(p.Getenv("PATH"), ":")
		if strings.Contains(name, "/") {
			dirs = []string{""}
		}
		for _, d := range dirs {
			path := name
			if d != "" {
				path = join(d, name)
			}
			n, err := lookup(p, path, true)
			if err != nil || n.Kind() != vfs.Regular || n.Info().Mode&0o111 == 0 {
				continue
			}
			found = true
			if !silent {
				_, _ = p.Out().WriteString(path + "\n")
			}
			if !all {
				break
			}
		}
		if !found {
			status = 1
		}
	}
	return status
}

// xargs builds command lines from its input.
func xargs(p *program.Process) int {
	opts, command := p.Options(1, "+0a:d:E:e::I:i::L:l::n:oP:prs:txe::", "null 0", "arg-file a", "delimiter d", "eof=?", "replace=?", "max-lines=?", "max-args n", "max-procs P", "interactive p",
		"no-run-if-empty r", "max-chars s", "verbose t", "exit x", "open-tty o", "show-limits", "process-slot-var=")
	delim, quoted, replace, maxArgs, maxLines, empty, verbose, file, maxChars, eof := byte('\n'), true, "", 0, 0, true, false, "", 128<<10, ""
	number := func(o program.Option) int {
		n, err := strconv.Atoi(o.Value)
		if err != nil || n < 0 {
			p.Errorf("invalid number \"%s\" for -%s option", o.Value, o.Name)
			p.Stderrf("Try '%s --help' for more information.\n", p.Name())
			p.Exit(1)
		}
		return n
	}
	for _, o := range opts {
		switch o.Name {
		case "0":
			delim, quoted = 0, false
		case "a":
			file = o.Value
		case "d":
			quoted = false
			switch {
			case o.Value == `\n`:
				delim = '\n'
			case o.Value == `\t`:
				delim = '\t'
			case o.Value == `\0`:
				delim = 0
			case len(o.Value) == 1:
				delim = o.Value[0]
			default:
				p.Errorf("Invalid input delimiter specification %s: the delimiter must be either a single character or an escape sequence starting with \\.", o.Value)
				return 1
			}
		case "I":
			replace, maxArgs, maxLines = o.Value, 0, 0
		case "i", "replace":
			if replace = o.Value; replace == "" {
				replace = "{}"
			}
		case "L", "l", "max-lines":
			if maxLines = 1; o.Given {
				maxLines = number(o)
			}
			maxArgs, replace = 0, ""
		case "n":
			if maxArgs = number(o); maxArgs == 0 {
				p.Errorf("value 0 for -n option should be >= 1")
				return 1
			}
			maxLines = 0
		case "r":
			empty = false
		case "t":
			verbose = true
		case "s":
			maxChars = min(number(o), maxChars)
		case "E", "e", "eof":
			eof = o.Value
		case "P", "x", "o", "process-slot-var":
		case "p", "show-limits":
			p.Lack(program.LackOption, "-"+o.Name)
			usage(p, 1, "option -%s is not supported in a nano space", o.Name)
		}
	}
	if len(command) == 0 {
		command = []string{"echo"}
	}
	in := p.Reader(p.Stdin)
	stdin := p.Stdin
	if file != "" {
		h, err := p.Open(file, vfs.Read)
		if err != nil {
			p.Errorf("Cannot open input file ‘%s’: %s", file, program.Message(err))
			return 1
		}
		in = p.Reader(h)
	} else {
		null, err := p.Open("/dev/null", vfs.Read)
		if err == nil {
			stdin = null
		}
	}
	status := 0
	execute := func(args []string) {
		if verbose {
			p.Stderrf("%s\n", strings.Join(args, " "))
		}
		c := p.Child(args...)
		c.Stdin = stdin
		s, err := p.Execute(c)
		if err != nil {
			p.Check(err)
			p.Errorf("%s: %s", args[0], program.Message(err))
			if errors.Is(err, vfs.ENOENT) {
				p.Exit(127)
			}
			p.Exit(126)
		}
		switch {
		case s.Signal != 0:
			p.Errorf("%s: terminated by signal %d", args[0], s.Signal)
			p.Exit(125)
		case s.Code == 255:
			p.Errorf("%s: exited with status 255; aborting", args[0])
			p.Exit(124)
		case s.Code != 0:
			status = 123
		}
	}
	var words []string
	size, lines, ran := 0, 0, false
	base := 0
	for _, c := range command {
		base += len(c) + 1
	}
	flush := func() {
		if len(words) == 0 && (ran || !empty) {
			return
		}
		execute(slices.Concat(command, words))
		p.Drop(size)
		words, size, lines, ran = nil, 0, 0, true
	}
	add := func(w string) {
		if replace != "" {
			args := make([]string, len(command))
			for i, c := range command {
				args[i] = c
				if i > 0 {
					args[i] = strings.ReplaceAll(c, replace, w)
				}
			}
			execute(args)
			ran = true
			return
		}
		if size+base+len(w)+1 > maxChars && len(words) > 0 {
			flush()
		}
		p.Hold(len(w) + 1)
		size += len(w) + 1
		words = append(words, w)
		if maxArgs > 0 && len(words) == maxArgs {
			flush()
		}
	}
	carry := ""
	for {
		line, _, ok := in.Line(delim)
		if !ok {
			break
		}
		p.Charge(20 + len(line))
		switch {
		case replace != "" && quoted:
			w := string(bytes.TrimLeft(line, " \t"))
			if w != "" {
				split, bad := splitQuoted(w, true)
				if bad != "" {
					p.Errorf("unmatched %s quote; by default quotes are special to xargs unless you use the -0 option", bad)
					return 1
				}
				add(split[0])
			}
		case !quoted:
			add(string(line))
			if lines++; maxLines > 0 && lines == maxLines {
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
				if eof != "" && w == eof {
					flush()
					return status
				}
				add(w)
			}
			if len(split) > 0 {
				if lines++; maxLines > 0 && lines == maxLines && !strings.HasSuffix(text, " ") {
					flush()
				}
			}
		}
	}
	if len(words) > 0 || !ran && empty && replace == "" {
		flush()
	}
	return status
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

// stat prints what is known of files.
func stat(p *program.Process) int {
	opts, names := p.Options(1, "Lfc:t", "dereference L", "file-system f", "format c", "printf=", "terse t", "cached=")
	follow, format, newline, escapes := false, "", true, false
	for _, o := range opts {
		switch o.Name {
		case "L":
			follow = true
		case "c":
			format = o.Value
		case "printf":
			format, newline, escapes = o.Value, false, true
		case "f":
			p.Lack(program.LackOption, "-f")
			usage(p, 1, "option -f is not supported in a nano space")
		case "t":
			format = "%n %s %b %f %u %g %D %i %h %t %T %X %Y %Z %W %o"
		}
	}
	if len(names) == 0 {
		usage(p, 1, "missing operand")
	}
	status := 0
	for _, name := range names {
		n, err := lookup(p, name, follow)
		if !try(p, err, "cannot statx %s", quoteName(name)) {
			status = 1
			continue
		}
		f := format
		if f == "" {
			f = "  File: %N\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\nDevice: %Hd,%Ld\tInode: %-11i Links: %h\nAccess: (%04a/%10.10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)\n" +
				"Access: %x\nModify: %y\nChange: %z\n Birth: %w"
			if n.Kind() != vfs.Symlink {
				f = strings.Replace(f, "%N", "%n", 1)
			} else {
				f = strings.Replace(f, "%N", "%n -> "+strings.ReplaceAll(n.Target(), "%", "%%"), 1)
			}
		}
		if escapes {
			f = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`, `\0`, "\x00", `\a`, "\a", `\e`, "\x1b").Replace(f)
		}
		_, _ = p.Out().WriteString(statFormat(name, n, f))
		if newline {
			_ = p.Out().WriteByte('\n')
		}
	}
	return status
}

func kindName(i vfs.Info) string {
	switch i.Kind {
	case vfs.Directory:
		return "directory"
	case vfs.Symlink:
		return "symbolic link"
	case vfs.Device:
		return "character special file"
	case vfs.Pipe:
		return "fifo"
	case vfs.Other:
		return "socket"
	}
	if i.Size == 0 {
		return "regular empty file"
	}
	return "regular file"
}

// statFormat writes the conversions of stat -c.
func statFormat(name string, n *vfs.Node, format string) string {
	i := n.Info()
	var b strings.Builder
	for at := 0; at < len(format); at++ {
		if format[at] != '%' || at+1 == len(format) {
			b.WriteByte(format[at])
			continue
		}
		begin := at
		at++
		for at < len(format) && strings.IndexByte("-+ #0123456789.", format[at]) >= 0 {
			at++
		}
		flags := format[begin+1 : at]
		if at+1 < len(format) && (format[at] == 'H' || format[at] == 'L') && (format[at+1] == 'd' || format[at+1] == 'r') {
			at++
		}
		if at == len(format) {
			b.WriteString(format[begin:])
			break
		}
		c := format[at]
		stamp := func(t time.Time) string { return program.Strftime("%Y-%m-%d %H:%M:%S.%N %z", t.UTC()) }
		text, isText := "", true
		number := int64(0)
		switch c {
		case '%':
			b.WriteByte('%')
			continue
		case 'a':
			text = strconv.FormatUint(uint64(i.Mode), 8)
			if strings.HasPrefix(flags, "0") {
				text = fmt.Sprintf("%"+flags+"o", i.Mode)
				flags = ""
			}
		case 'A':
			text = letter(i.Kind) + permissions(i.Mode)
			flags = ""
		case 'b':
			isText, number = false, blocks(i)*2
		case 'B':
			isText, number = false, 512
		case 'C':
			text = "?"
		case 'd':
			isText, number = false, int64(i.Device)
		case 'D':
			text = strconv.FormatUint(i.Device, 16)
		case 'f':
			text = strconv.FormatUint(uint64(i.Mode)|map[vfs.Kind]uint64{vfs.Regular: 0o100000, vfs.Directory: 0o40000, vfs.Symlink: 0o120000, vfs.Device: 0o20000, vfs.Pipe: 0o10000}[i.Kind], 16)
		case 'F':
			text = kindName(i)
		case 'g', 'u':
			isText, number = false, 0
		case 'G', 'U':
			text = "root"
		case 'h':
			isText, number = false, int64(i.Links)
		case 'i':
			text = strconv.FormatUint(i.ID, 10)
		case 'm':
			text = "/"
		case 'n':
			text = name
		case 'N':
			if text = quoteName(name); i.Kind == vfs.Symlink {
				text += " -> " + quoteName(n.Target())
			}
		case 'o':
			isText, number = false, 4096
		case 's':
			isText, number = false, i.Size
		case 't', 'T', 'r', 'R':
			text = "0"
		case 'w':
			text = "-"
		case 'W':
			text = "0"
		case 'x':
			text = stamp(i.Accessed)
		case 'X':
			isText, number = false, i.Accessed.Unix()
		case 'y':
			text = stamp(i.Modified)
		case 'Y':
			isText, number = false, i.Modified.Unix()
		case 'z':
			text = stamp(i.Changed)
		case 'Z':
			isText, number = false, i.Changed.Unix()
		default:
			b.WriteByte('?')
			continue
		}
		if isText {
			fmt.Fprintf(&b, "%"+strings.Trim(flags, "+# ")+"s", text)
		} else {
			fmt.Fprintf(&b, "%"+flags+"d", number)
		}
	}
	return b.String()
}
