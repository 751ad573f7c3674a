package coreutils

import (
	"strconv"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
)

func id(p *program.Process) int {
	opts, names := p.Options(1, "agGnruzZ", "group g", "groups G", "name n", "real r", "user u", "zero z")
	for _, name := range names {
		if name != gnu.User(p) && name != "root" && name != "0" {
			p.Errorf("‘%s’: no such user", name)
			return 1
		}
	}
	which, name, zero, real := "", false, false, false
	for _, o := range opts {
		switch o.Name {
		case "u", "g", "G":
			if which != "" && which != o.Name {
				p.Errorf("cannot print \"only\" of more than one choice")
				return 1
			}
			which = o.Name
		case "n":
			name = true
		case "r":
			real = true
		case "z":
			zero = true
		case "Z":
			p.Errorf("--context (-Z) works only on an SELinux-enabled kernel")
			return 1
		}
	}
	end := "\n"
	if zero {
		end = "\x00"
	}
	switch {
	case which == "" && (name || real):
		p.Errorf("printing only names or real IDs requires -u, -g, or -G")
		return 1
	case which == "" && zero:
		p.Errorf("option --zero not permitted in default format")
		return 1
	case which == "":
		p.Out().Printf("uid=0(%[1]s) gid=0(%[1]s) groups=0(%[1]s)\n", gnu.User(p))
	case name:
		p.Out().WriteString(gnu.User(p) + end)
	default:
		p.Out().WriteString("0" + end)
	}
	return 0
}

func whoami(p *program.Process) int {
	_, args := p.Options(1, "")
	if len(args) > 0 {
		gnu.FailUsage(p, 1, "extra operand ‘%s’", args[0])
	}
	p.Out().WriteString(gnu.User(p) + "\n")
	return 0
}

func groups(p *program.Process) int {
	_, _ = p.Options(1, "")
	p.Out().WriteString(gnu.User(p) + "\n")
	return 0
}

// nobody is a command that lists who is logged in.
func nobody(p *program.Process) int {
	_, _ = p.Options(1, "abdHlmpqrstTuwsfihq", "all a", "heading H", "count q", "short s")
	return 0
}

func hostid(p *program.Process) int {
	_, args := p.Options(1, "")
	if len(args) > 0 {
		gnu.FailUsage(p, 1, "extra operand ‘%s’", args[0])
	}
	p.Out().WriteString("00000000\n")
	return 0
}

// ps shows the shell and itself: nothing else has a number here.
func ps(p *program.Process) int {
	rows := [][2]string{{strconv.Itoa(p.PPID), "bash"}, {strconv.Itoa(p.PID), "ps"}}
	letters := strings.Join(p.Args[1:], "")
	if strings.ContainsAny(letters, "fu") {
		p.Out().Printf("%-8s %7s %7s CMD\n", "UID", "PID", "PPID")
		for i, r := range rows {
			parent := "0"
			if i > 0 {
				parent = rows[0][0]
			}
			p.Out().Printf("%-8s %7s %7s %s\n", gnu.User(p), r[0], parent, r[1])
		}
		return 0
	}
	p.Out().Printf("%7s TTY          TIME CMD\n", "PID")
	for _, r := range rows {
		p.Out().Printf("%7s ?        00:00:00 %s\n", r[0], r[1])
	}
	return 0
}
