package shell

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

const readUsage = "read: usage: read [-ers] [-a array] [-d delim] [-i text] [-n nchars] [-N nchars] [-p prompt] [-t timeout] [-u fd] " +
	"[name ...]\n"

// biRead is the builtin read.
func biRead(sh *shell, args []string) int {
	raw, array, exact := false, "", false
	delim, limit, fd := byte('\n'), 0, 0
	timed := false
	i := 1
options:
	for ; i < len(args) && len(args[i]) > 1 && args[i][0] == '-'; i++ {
		a := args[i][1:]
		if a == "-" {
			i++
			break
		}
		for j := 0; j < len(a); j++ {
			c := a[j]
			if strings.IndexByte("adinNptu", c) < 0 {
				switch c {
				case 'r':
					raw = true
				case 's', 'e':
				default:
					sh.complain("read", "-%c: invalid option", c)
					sh.stderr(readUsage)
					return 2
				}
				continue
			}
			val := a[j+1:]
			if val == "" {
				if i++; i >= len(args) {
					sh.complain("read", "-%c: option requires an argument", c)
					sh.stderr(readUsage)
					return 2
				}
				val = args[i]
			}
			switch c {
			case 'a':
				array = val
			case 'd':
				if delim = 0; val != "" {
					delim = val[0]
				}
			case 'n', 'N':
				n, err := strconv.Atoi(val)
				if err != nil || n < 0 {
					sh.complain("read", "%s: invalid number", val)
					return 1
				}
				limit, exact = n, c == 'N'
				if n == 0 {
					return 0
				}
			case 't':
				n, err := strconv.ParseFloat(val, 64)
				if err != nil || n < 0 {
					sh.complain("read", "%s: invalid timeout specification", val)
					return 1
				}
				timed = n == 0
			case 'u':
				n, err := strconv.Atoi(val)
				if err != nil || n < 0 || n >= maxFD {
					sh.complain("read", "%s: invalid file descriptor specification", val)
					return 1
				}
				fd = n
			}
			continue options
		}
	}
	names := args[i:]
	h := sh.fd(fd)
	if h == nil {
		sh.complain("read", "%d: invalid file descriptor: Bad file descriptor", fd)
		return 1
	}
	if timed {
		_, ready, _ := h.Ready()
		return int(truth(!ready))
	}
	for _, n := range names {
		if base, _, _ := splitSubscript(n); !validName(base) {
			sh.complain("read", "`%s': not a valid identifier", n)
			return 1
		}
	}
	stop := delim
	line, ended, err := readDelimited(sh, h, stop, limit, exact, raw)
	if err != nil {
		if errors.Is(err, vfs.EISDIR) || errors.Is(err, vfs.EBADF) {
			sh.complain("read", "read error: %d: %s", fd, program.Message(err))
		}
		return 1
	}
	status := 0
	if !ended {
		status = 1
	}
	sh.charge(50 + len(line))
	if !assignRead(sh, names, array, line, raw, exact) {
		return 1
	}
	return status
}

// readDelimited reads what read takes at once; where backslashes are resolved, a line that ends in one goes on.
func readDelimited(sh *shell, h *vfs.Handle, delim byte, limit int, exact, raw bool) (string, bool, error) {
	if exact {
		var all []byte
		for len(all) < limit {
			c, err := readByte(h)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					sh.w.stop(err)
					return "", false, err
				}
				return string(all), false, nil
			}
			all = append(all, c)
		}
		return string(all), true, nil
	}
	escape := func(byte) bool { return false }
	if !raw {
		escape = func(c byte) bool { return c == '\\' }
	}
	line, ended, err := readLine(sh, h, delim, limit, escape)
	if limit > 0 && len(line) >= limit {
		ended = true
	}
	s := string(line)
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	return s, ended, err
}

// assignRead splits a line and assigns the fields.
func assignRead(sh *shell, names []string, array, line string, raw, whole bool) bool {
	set := func(name, val string) bool {
		var err error
		if base, sub, ok := splitSubscript(name); ok {
			err = assignElement(sh, base, sub, val, false)
		} else {
			err = sh.assign(name, val, false)
		}
		if err != nil {
			sh.complain("read", "%s", err)
			return false
		}
		return true
	}
	if whole && array == "" {
		if len(names) == 0 {
			names = []string{"REPLY"}
		}
		for i, n := range names {
			if i > 0 {
				line = ""
			}
			if !set(n, line) {
				return false
			}
		}
		return true
	}
	if len(names) == 0 && array == "" {
		text, _ := unquoteRead(line, raw)
		return set("REPLY", text)
	}
	ifs := " \t\n"
	if sh.ifsSet {
		ifs = sh.ifs
	}
	if array != "" {
		fields := readFields(line, ifs, -1, raw)
		v := sh.vars[array]
		if v != nil && v.readonly {
			sh.complain("read", "%s: readonly variable", array)
			return false
		}
		sh.drop(array)
		v = sh.mine(array)
		v.kind, v.set = indexed, true
		for i, f := range fields {
			_ = assignIndex(sh, array, i, f, false)
		}
		return true
	}
	fields := readFields(line, ifs, len(names), raw)
	for i, n := range names {
		val := ""
		if i < len(fields) {
			val = fields[i]
		}
		if !set(n, val) {
			return false
		}
	}
	return true
}

// unquoteRead resolves the backslashes of a line and says which bytes were behind one.
func unquoteRead(line string, raw bool) (string, []bool) {
	if raw || strings.IndexByte(line, '\\') < 0 {
		return line, nil
	}
	var out []byte
	var quoted []bool
	for i := 0; i < len(line); i++ {
		if line[i] != '\\' {
			out, quoted = append(out, line[i]), append(quoted, false)
			continue
		}
		if i++; i < len(line) && line[i] != '\n' {
			out, quoted = append(out, line[i]), append(quoted, true)
		}
	}
	return string(out), quoted
}

// readFields splits a line into at most n fields (all where n is negative); the last takes what is left.
func readFields(line, ifs string, n int, raw bool) []string {
	s, quoted := unquoteRead(line, raw)
	sep := func(i int) bool { return strings.IndexByte(ifs, s[i]) >= 0 && (len(quoted) <= i || !quoted[i]) }
	space := func(i int) bool { return sep(i) && isSpace(s[i]) }
	var fields []string
	i := 0
	for i < len(s) && space(i) {
		i++
	}
	for i < len(s) {
		if n > 0 && len(fields) == n-1 {
			end := len(s)
			for end > i && space(end-1) {
				end--
			}
			last := s[i:end]
			// One delimiter at the end that closes the only field that is left does not belong to it.
			j := i
			for j < end && !sep(j) {
				j++
			}
			k := j
			for k < end && space(k) {
				k++
			}
			if k < end && sep(k) {
				k++
			}
			if k == end {
				last = s[i:j]
			}
			return append(fields, last)
		}
		j := i
		for j < len(s) && !sep(j) {
			j++
		}
		fields = append(fields, s[i:j])
		for i = j; i < len(s) && space(i); {
			i++
		}
		if i < len(s) && sep(i) {
			i++
			for i < len(s) && space(i) {
				i++
			}
		}
	}
	return fields
}

// biMapfile is the builtin mapfile.
func biMapfile(sh *shell, args []string) int {
	delim, trim, count, skip, origin, fd := byte('\n'), false, 0, 0, -1, 0
	callback, quantum := "", 5000
	i := 1
	for ; i < len(args) && len(args[i]) > 1 && args[i][0] == '-'; i++ {
		c := args[i][1]
		if args[i] == "--" {
			i++
			break
		}
		if c == 't' && len(args[i]) == 2 {
			trim = true
			continue
		}
		rest := args[i][1:]
		if rest[0] == 't' {
			trim = true
			rest = rest[1:]
			c = rest[0]
		}
		if strings.IndexByte("dnOsuCc", c) < 0 {
			sh.complain(args[0], "-%c: invalid option", c)
			sh.stderr(args[0] + ": usage: " + args[0] +
				" [-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]\n")
			return 2
		}
		val := rest[1:]
		if val == "" {
			if i++; i >= len(args) {
				sh.complain(args[0], "-%c: option requires an argument", c)
				return 2
			}
			val = args[i]
		}
		if c == 'd' {
			if delim = 0; val != "" {
				delim = val[0]
			}
			continue
		}
		if c == 'C' {
			callback = val
			continue
		}
		n, err := strconv.Atoi(val)
		if err != nil {
			sh.complain(args[0], "%s: invalid number", val)
			return 1
		}
		switch c {
		case 'n':
			count = n
		case 'O':
			origin = n
		case 's':
			skip = n
		case 'u':
			fd = n
		case 'c':
			quantum = n
		}
		if n < 0 || n == 0 && c == 'c' {
			what := map[byte]string{'n': "line count", 'O': "array origin", 's': "line count", 'u': "file descriptor specification",
				'c': "callback quantum"}[c]
			sh.complain(args[0], "%s: invalid %s", val, what)
			return 1
		}
	}
	name := "MAPFILE"
	if i < len(args) {
		name = args[i]
	}
	if !validName(name) {
		sh.complain(args[0], "`%s': not a valid identifier", name)
		return 1
	}
	h := sh.fd(fd)
	if h == nil {
		sh.complain(args[0], "%d: invalid file descriptor: Bad file descriptor", fd)
		return 1
	}
	if v := sh.vars[name]; v != nil && v.readonly {
		sh.complain(args[0], "%s: readonly variable", name)
		return 1
	}
	if origin < 0 {
		sh.drop(name)
		origin = 0
	}
	v := sh.mine(name)
	v.kind, v.set = indexed, true
	for got := 0; count == 0 || got < count; {
		line, ended, err := readLine(sh, h, delim, 0, func(byte) bool { return false })
		if err != nil || len(line) == 0 && !ended {
			break
		}
		sh.charge(20 + len(line)/4)
		if skip > 0 {
			skip--
			continue
		}
		s := string(line)
		if ended && !trim && delim != 0 {
			s += string(rune(delim))
		}
		if callback != "" && (got+1)%quantum == 0 {
			runText(sh, callback+" "+strconv.Itoa(origin+got)+" "+quoteShell(s), "")
		}
		_ = assignIndex(sh, name, origin+got, s, false)
		got++
	}
	return 0
}
