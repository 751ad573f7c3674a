package shell

import (
	"maps"
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
	rows := []row{{'c', "core file size              (blocks, -c) ", "0"}, {'f', "file size                   (blocks, -f) ",
		strconv.FormatInt(l.FileBytes/1024, 10)},
		{'n', "open files                          (-n) ", strconv.FormatInt(l.OpenFiles, 10)}, {'s', "stack size                  (kbytes, -s) ",
			"8192"},
		{'t', "cpu time                   (seconds, -t) ", strconv.Itoa(int(l.Time.Seconds()))},
		{'u', "max user processes                  (-u) ", strconv.FormatInt(l.Depth, 10)},
		{'v', "virtual memory              (kbytes, -v) ", strconv.FormatInt(l.MemoryBytes/1024, 10)}}
	letter := byte('f')
	set, soft, hard := "", false, false
	for _, a := range args[1:] {
		if len(a) < 2 || a[0] != '-' {
			set = a
			continue
		}
		for _, c := range []byte(a[1:]) {
			switch {
			case c == 'H':
				hard = true
			case c == 'S':
				soft = true
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
	for i, r := range rows {
		if lowered, ok := sh.ulimits[r.letter]; ok {
			rows[i].val = strconv.FormatInt(lowered[truth(hard && !soft)], 10)
		}
	}
	if set != "" {
		i := slices.IndexFunc(rows, func(r row) bool { return r.letter == letter })
		if i < 0 && set != "unlimited" && set != "hard" && set != "soft" {
			sh.complain("ulimit", "warning: this limit is not enforced in a nano space")
		}
		if i < 0 || set == "hard" || set == "soft" {
			return 0
		}
		return lowerLimit(sh, letter, rows[i].text, rows[i].val, set, soft, hard)
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

// lowerLimit sets a limit that is not above the hard one. It changes only what ulimit prints: the bounds of the execution stay as they are.
func lowerLimit(sh *shell, letter byte, text, now, set string, soft, hard bool) int {
	n, err := strconv.ParseInt(set, 10, 64)
	if set != "unlimited" && (err != nil || n < 0) {
		sh.complain("ulimit", "%s: invalid number", set)
		return 1
	}
	most, err := strconv.ParseInt(now, 10, 64)
	if err != nil {
		return 0
	}
	limit := [2]int64{most, most}
	if lowered, ok := sh.ulimits[letter]; ok {
		limit = lowered
	}
	if set == "unlimited" || n > limit[1] {
		sh.complain("ulimit", "%s: cannot modify limit: Operation not permitted", strings.TrimSpace(text[:strings.IndexByte(text, '(')]))
		return 1
	}
	if soft || !hard {
		limit[0] = n
	}
	if hard || !soft {
		limit[1] = n
	}
	if sh.ulimits == nil {
		sh.ulimits = map[byte][2]int64{}
	}
	sh.ulimits[letter] = limit
	if n < most && strings.IndexByte("tvuf", letter) >= 0 { // those by which scripts bound what they run
		sh.complain("ulimit", "warning: %s: the lower limit is told but not enforced in a nano space",
			strings.TrimSpace(text[:strings.IndexByte(text, '(')]))
	}
	return 0
}

func biCaller(sh *shell, args []string) int {
	if len(sh.frames) == 0 && sh.fromText {
		return 1
	}
	n := 0
	if len(args) > 1 {
		if len(args[1]) > 1 && args[1][0] == '-' {
			sh.complain("caller", "%s: invalid option", args[1][:2])
			sh.stderr("caller: usage: caller [expr]\n")
			return 2
		}
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
	off, names, status := false, 0, 0
	for _, a := range args[1:] {
		if strings.HasPrefix(a, "-") {
			off = off || strings.Contains(a, "n")
			continue
		}
		names++
		if !slices.Contains(builtinNames(), a) {
			sh.complain("enable", "%s: not a shell builtin", a)
			status = 1
			continue
		}
		sh.disabled = maps.Clone(sh.disabled)
		if delete(sh.disabled, a); off {
			if sh.disabled == nil {
				sh.disabled = map[string]bool{}
			}
			sh.disabled[a] = true
		}
	}
	if names > 0 {
		return status
	}
	var b strings.Builder
	for _, n := range builtinNames() {
		switch {
		case sh.disabled[n] && (off || slices.Contains(args, "-a")):
			b.WriteString("enable -n " + n + "\n")
		case !sh.disabled[n] && !off:
			b.WriteString("enable " + n + "\n")
		}
	}
	return sh.stdout("enable", b.String())
}
