package shell

import (
	"slices"
	"strconv"
	"strings"
)

func biUlimit(sh *shell, args []string) int {
	l := sh.w.account.Limits()
	type row struct {
		letter byte
		text   string
		val    string
	}
	rows := []row{{'c', "core file size              (blocks, -c) ", "0"}, {'f', "file size                   (blocks, -f) ", strconv.FormatInt(l.FileBytes/1024, 10)},
		{'n', "open files                          (-n) ", strconv.FormatInt(l.OpenFiles, 10)}, {'s', "stack size                  (kbytes, -s) ", "8192"},
		{'t', "cpu time                   (seconds, -t) ", strconv.Itoa(int(l.Time.Seconds()))}, {'u', "max user processes                  (-u) ", strconv.FormatInt(l.Depth, 10)},
		{'v', "virtual memory              (kbytes, -v) ", strconv.FormatInt(l.MemoryBytes/1024, 10)}}
	letter := byte('f')
	set := ""
	for _, a := range args[1:] {
		if len(a) < 2 || a[0] != '-' {
			set = a
			continue
		}
		for _, c := range []byte(a[1:]) {
			switch {
			case c == 'H' || c == 'S':
			case c == 'a' || slices.ContainsFunc(rows, func(r row) bool { return r.letter == c }):
				letter = c
			case strings.IndexByte("bdeiklmpqrxPRT", c) >= 0:
				letter = 0
			default:
				sh.complain("ulimit", "-%c: invalid option", c)
				sh.stderr("ulimit: usage: ulimit [-SHabcdefiklmnpqrstuvxPRT] [limit]\n")
				return 2
			}
		}
	}
	if set != "" { // the bounds of the execution hold: none is raised, and a lower one is no bound of ours
		n, err := strconv.ParseInt(set, 10, 64)
		i := slices.IndexFunc(rows, func(r row) bool { return r.letter == letter })
		if set != "unlimited" && set != "hard" && set != "soft" && err != nil {
			sh.complain("ulimit", "%s: invalid number", set)
			return 1
		}
		if most, e := int64(0), error(nil); i >= 0 && set != "hard" && set != "soft" {
			if most, e = strconv.ParseInt(rows[i].val, 10, 64); e == nil && (err != nil || n > most) {
				name := strings.TrimSpace(rows[i].text[:strings.IndexByte(rows[i].text, '(')])
				sh.complain("ulimit", "%s: cannot modify limit: Operation not permitted", name)
				return 1
			}
		}
		return 0
	}
	if letter == 0 {
		return sh.stdout("ulimit", "unlimited\n")
	}
	var b strings.Builder
	for _, r := range rows {
		if letter == 'a' {
			b.WriteString(r.text + r.val + "\n")
		} else if r.letter == letter {
			b.WriteString(r.val + "\n")
		}
	}
	return sh.stdout("ulimit", b.String())
}

func biCaller(sh *shell, args []string) int {
	n := 0
	if len(args) > 1 {
		var err error
		if n, err = strconv.Atoi(args[1]); err != nil || n < 0 {
			sh.complain("caller", "%s: invalid number", args[1])
			sh.stderr("caller: usage: caller [expr]\n")
			return 2
		}
	}
	i := len(sh.frames) - 1 - n
	if i < 0 || i == 0 && sh.fromText {
		return 1
	}
	name, source := "main", sh.name
	if i > 0 {
		name, source = sh.frames[i-1].name, sh.frames[i-1].source
	}
	line := strconv.Itoa(sh.frames[i].line)
	if len(args) == 1 {
		return sh.stdout("caller", line+" "+source+"\n")
	}
	return sh.stdout("caller", line+" "+name+" "+source+"\n")
}

func biEnable(sh *shell, args []string) int {
	if len(args) == 1 {
		var b strings.Builder
		for _, n := range builtinNames() {
			b.WriteString("enable " + n + "\n")
		}
		return sh.stdout("enable", b.String())
	}
	for _, a := range args[1:] {
		if strings.HasPrefix(a, "-") {
			if a == "-n" {
				sh.unsupported("enable -n")
				return 1
			}
			continue
		}
		if sh.builtin(a) == nil {
			sh.complain("enable", "%s: not a shell builtin", a)
			return 1
		}
	}
	return 0
}
