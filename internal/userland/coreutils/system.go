package coreutils

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
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
		gnu.FailUsage(p, 1, "missing operand")
	}
	total := time.Duration(0)
	for _, a := range args {
		d, ok := duration(a)
		if !ok {
			gnu.FailUsage(p, 1, "invalid time interval ‘%s’", a)
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
			gnu.FailUsage(p, 125, "missing operand")
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
				gnu.FailUsage(p, 125, "invalid time interval ‘%s’", o.Value)
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
		gnu.FailUsage(p, 125, "invalid time interval ‘%s’", args[0])
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
	splitStrings(p)
	opts, args := p.Options(125, "+iu:C:0vS:a:", "ignore-environment i", "unset u", "chdir C", "null 0", "split-string S", "debug v",
		"list-signal-handling", "block-signal=?", "default-signal=?", "ignore-signal=?", "argv0 a")
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
			n, err := gnu.Lookup(p, o.Value, true)
			if err == nil && n.Kind() != vfs.Directory {
				err = vfs.ENOTDIR
			}
			if err != nil {
				p.Errorf("cannot change directory to ‘%s’: %s", o.Value, program.Message(err))
				return 125
			}
			c.Cwd = n
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
	opts, _ := p.Options(1, "amnoprsvi", "all a", "machine m", "nodename n", "operating-system o", "processor p", "kernel-release r",
		"kernel-name s", "kernel-version v", "hardware-platform i")
	fields := []struct{ letter, text string }{{"s", "Linux"}, {"n", hostName(p)}, {"r", "6.1.0"}, {"v", "#1 SMP"}, {"m", "x86_64"},
		{"p", "unknown"}, {"i", "unknown"}, {"o", "GNU/Linux"}}
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
		gnu.FailUsage(p, 1, "extra operand ‘%s’", args[0])
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
				path = gnu.Join(d, name)
			}
			n, err := gnu.Lookup(p, path, true)
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
