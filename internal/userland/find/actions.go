package find

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// action reads what find does with a file.
func (s *seeker) action(name string) test {
	switch name {
	case "-print", "-print0", "-ls", "-printf", "-exec", "-execdir", "-delete", "-quit", "-fprint", "-fprint0", "-fprintf":
		s.acts = true
	}
	switch name {
	case "-prune":
		return func(v *visit) bool { v.prune = true; return true }
	case "-print":
		return func(v *visit) bool { s.out.WriteString(v.path + "\n"); return true }
	case "-print0":
		return func(v *visit) bool { s.out.WriteString(v.path + "\x00"); return true }
	case "-printf":
		format := s.next(name)
		return func(v *visit) bool { s.out.WriteString(s.format(format, v)); return true }
	case "-fprint", "-fprint0", "-fprintf":
		file := s.next(name)
		format := map[string]string{"-fprint": `%p\n`, "-fprint0": `%p\0`}[name]
		if name == "-fprintf" {
			format = s.next(name)
		}
		_, w, err := gnu.Create(s.p, file)
		if err != nil {
			s.fail("‘%s’: %s", file, program.Message(err))
		}
		return func(v *visit) bool { w.WriteString(s.format(format, v)); w.Flush(); return true }
	case "-ls":
		return func(v *visit) bool {
			s.out.WriteString(s.format(`%9i %6k %M %3n %-8u %-8g %8s %Tb %Td %TH:%TM %p`, v))
			if v.info.Kind == vfs.Symlink {
				s.out.WriteString(" -> " + v.node.Target())
			}
			s.out.WriteString("\n")
			return true
		}
	case "-quit":
		return func(*visit) bool { s.quit = true; return true }
	case "-delete":
		s.post = true
		return func(v *visit) bool {
			var err error
			switch {
			case v.path == ".":
				return true
			case v.info.Kind == vfs.Directory:
				err = s.p.FS.Rmdir(s.p.At(), v.path)
			default:
				err = s.p.FS.Unlink(s.p.At(), v.path)
			}
			if err != nil {
				s.p.Charge(0)
				s.p.Errorf("cannot delete ‘%s’: %s", v.path, program.Message(err))
				s.code = 1
			}
			return err == nil
		}
	case "-exec", "-execdir":
		return s.exec(name)
	case "-ok", "-okdir":
		s.p.Lack(program.LackOption, name)
		s.fail("%s asks, and nobody is there to answer: use -exec", name)
	}
	if strings.HasPrefix(name, "-") {
		s.p.Lack(program.LackOption, name)
		s.fail("unknown predicate `%s'", name)
	}
	s.fail("paths must precede expression: `%s'", name)
	return nil
}

func (s *seeker) exec(name string) test {
	var args []string
	for {
		if len(s.args) == 0 {
			s.fail("missing argument to `%s'", name)
		}
		a := s.next(name)
		if a == ";" {
			break
		}
		if a == "+" && len(args) > 0 && args[len(args)-1] == "{}" {
			b := &batch{args: args[:len(args)-1]}
			s.batches = append(s.batches, b)
			return func(v *visit) bool {
				path := v.path
				if name == "-execdir" {
					path = "./" + v.name
				}
				b.names = append(b.names, path)
				s.p.Hold(len(path) + 16)
				if b.size += len(path) + 1; b.size > maxBatch {
					s.run(b)
				}
				return true
			}
		}
		args = append(args, a)
	}
	if len(args) == 0 {
		s.fail("invalid argument `;' to `%s'", name)
	}
	return func(v *visit) bool {
		path := v.path
		if name == "-execdir" {
			path = "./" + v.name
		}
		call := make([]string, len(args))
		for i, a := range args {
			call[i] = strings.ReplaceAll(a, "{}", path)
		}
		c := s.p.Child(call...)
		if name == "-execdir" && v.depth > 0 {
			if dir, err := s.p.FS.Lookup(s.p.At(), v.path[:len(v.path)-len(v.name)], true); err == nil {
				c.Cwd = dir
			}
		}
		return s.call(c) == 0
	}
}

func (s *seeker) call(c *program.Process) int {
	status, err := s.p.Execute(c)
	if err != nil {
		s.p.Errorf("‘%s’: %s", c.Args[0], program.Message(err))
		s.code = 1
		return 127
	}
	return status.Exit()
}

func (s *seeker) run(b *batch) {
	if len(b.names) == 0 {
		return
	}
	if s.call(s.p.Child(append(append([]string(nil), b.args...), b.names...)...)) != 0 {
		s.code = 1
	}
	b.names, b.size = nil, 0
}

func (s *seeker) kind(name string) test {
	want := s.next(name)
	for _, part := range strings.Split(want, ",") {
		if len(part) != 1 || !strings.Contains("bcdpflsD", part) {
			s.fail("Unknown argument to %s: %s", name, part)
		}
	}
	return func(v *visit) bool {
		k := v.info.Kind
		if name == "-xtype" && k == vfs.Symlink {
			if i, err := s.p.FS.Stat(s.p.At(), v.path, true); err == nil {
				k = i.Kind
			}
		}
		return strings.Contains(want, gnu.Letter(k))
	}
}

// bytes reads the argument of -size.
func (s *seeker) bytes(a string) test {
	unit := int64(512)
	if a != "" {
		switch a[len(a)-1] {
		case 'c':
			unit = 1
		case 'w':
			unit = 2
		case 'b':
		case 'k':
			unit = 1 << 10
		case 'M':
			unit = 1 << 20
		case 'G':
			unit = 1 << 30
		default:
			if a[len(a)-1] > '9' {
				s.fail("invalid -size type `%c'", a[len(a)-1])
			}
			a += "b"
		}
		a = a[:len(a)-1]
	}
	fits := s.number("-size", a)
	return func(v *visit) bool { return fits((v.info.Size + unit - 1) / unit) }
}

func (s *seeker) perm(a string) test {
	how := byte(0)
	text := a
	if a != "" && (a[0] == '-' || a[0] == '/') {
		how, text = a[0], a[1:]
	}
	mode, ok := permissions(text)
	if !ok {
		s.fail("invalid mode ‘%s’", a)
	}
	return func(v *visit) bool {
		switch how {
		case '-':
			return v.info.Mode&mode == mode
		case '/':
			return mode == 0 || v.info.Mode&mode != 0
		}
		return v.info.Mode&0o7777 == mode
	}
}

// permissions reads a mode in octal digits or symbols, from nothing.
func permissions(text string) (uint32, bool) {
	if n, err := strconv.ParseUint(text, 8, 12); err == nil {
		return uint32(n), true
	}
	mode := uint32(0)
	for _, part := range strings.Split(text, ",") {
		i := strings.IndexAny(part, "+=-")
		if i < 0 {
			return 0, false
		}
		who, bits := uint32(0), uint32(0)
		for _, c := range part[:i] {
			m, ok := map[rune]uint32{'u': 0o4700, 'g': 0o2070, 'o': 0o1007, 'a': 0o7777}[c]
			if !ok {
				return 0, false
			}
			who |= m
		}
		if i == 0 {
			who = 0o7777
		}
		for _, c := range part[i+1:] {
			m, ok := map[rune]uint32{'r': 0o444, 'w': 0o222, 'x': 0o111, 'X': 0o111, 's': 0o6000, 't': 0o1000}[c]
			if !ok {
				return 0, false
			}
			bits |= m
		}
		if part[i] == '-' {
			mode &^= who & bits
		} else {
			mode |= who & bits
		}
	}
	return mode, true
}

// moment reads a time as -newermt takes it.
func moment(s string, now time.Time) (time.Time, bool) {
	if n, err := strconv.ParseFloat(strings.TrimPrefix(s, "@"), 64); strings.HasPrefix(s, "@") && err == nil {
		return time.Unix(int64(n), 0).UTC(), true
	}
	switch s {
	case "now":
		return now, true
	case "today":
		return now, true
	case "yesterday":
		return now.AddDate(0, 0, -1), true
	}
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02",
		time.RFC3339, "2006/01/02", "20060102", "Jan 2 2006", "2 Jan 2006"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), true
		}
	}
	fields := strings.Fields(s)
	if len(fields) == 3 && fields[2] == "ago" || len(fields) == 2 && strings.HasPrefix(s, "-") {
		n, err := strconv.Atoi(strings.TrimPrefix(fields[0], "-"))
		if err != nil {
			return now, false
		}
		switch strings.TrimSuffix(fields[1], "s") {
		case "second", "sec":
			return now.Add(-time.Duration(n) * time.Second), true
		case "minute", "min":
			return now.Add(-time.Duration(n) * time.Minute), true
		case "hour":
			return now.Add(-time.Duration(n) * time.Hour), true
		case "day":
			return now.AddDate(0, 0, -n), true
		case "week":
			return now.AddDate(0, 0, -7*n), true
		case "month":
			return now.AddDate(0, -n, 0), true
		case "year":
			return now.AddDate(-n, 0, 0), true
		}
	}
	return now, false
}

// format writes a file as -printf says.
func (s *seeker) format(f string, v *visit) string {
	s.p.Charge(len(f) * 10)
	var b strings.Builder
	for i := 0; i < len(f); i++ {
		if f[i] == '\\' && i+1 < len(f) {
			i++
			switch f[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case '0':
				b.WriteByte(0)
			case '\\':
				b.WriteByte('\\')
			case 'c':
				return b.String()
			default:
				b.WriteByte('\\')
				b.WriteByte(f[i])
			}
			continue
		}
		if f[i] != '%' || i+1 == len(f) {
			b.WriteByte(f[i])
			continue
		}
		start := i
		i++
		for i < len(f) && strings.IndexByte("-+ #0123456789.", f[i]) >= 0 {
			i++
		}
		if i == len(f) {
			b.WriteString(f[start:])
			break
		}
		flags := f[start+1 : i]
		c := f[i]
		if c == '%' {
			b.WriteByte('%')
			continue
		}
		var text string
		if c == 'T' || c == 'A' || c == 'C' {
			t := map[byte]time.Time{'T': v.info.Modified, 'A': v.info.Accessed, 'C': v.info.Changed}[c].UTC()
			i++
			if i == len(f) {
				break
			}
			text = timeField(f[i], t)
		} else {
			var ok bool
			if text, ok = s.directive(c, v); !ok {
				b.WriteString(f[start : i+1])
				continue
			}
		}
		if flags != "" {
			verb, _, _ := posix.ParseVerb("%"+flags+"s", func() int { return 0 })
			verb.Width = min(verb.Width, 1000)
			text = string(verb.String(nil, text))
		}
		b.WriteString(text)
	}
	return b.String()
}

func timeField(c byte, t time.Time) string {
	switch c {
	case '@':
		return fmt.Sprintf("%d.%09d0", t.Unix(), t.Nanosecond())
	case 'S':
		return fmt.Sprintf("%02d.%09d0", t.Second(), t.Nanosecond())
	case 'T', 'X':
		return t.Format("15:04:05") + fmt.Sprintf(".%09d0", t.Nanosecond())
	case '+':
		return t.Format("2006-01-02+15:04:05") + fmt.Sprintf(".%09d0", t.Nanosecond())
	}
	return program.Strftime("%"+string(c), t)
}

func (s *seeker) directive(c byte, v *visit) (string, bool) {
	i := v.info
	switch c {
	case 'p':
		return v.path, true
	case 'f':
		return v.name, true
	case 'h':
		if at := strings.LastIndexByte(v.path, '/'); at > 0 {
			return v.path[:at], true
		} else if at == 0 {
			return "", true
		}
		return ".", true
	case 'P':
		return strings.TrimPrefix(strings.TrimPrefix(v.path, v.start), "/"), true
	case 'H':
		return v.start, true
	case 's':
		return strconv.FormatInt(i.Size, 10), true
	case 'k':
		return strconv.FormatInt(gnu.Blocks(i)/2, 10), true
	case 'b':
		return strconv.FormatInt(gnu.Blocks(i), 10), true
	case 'm':
		return strconv.FormatUint(uint64(i.Mode), 8), true
	case 'M':
		return gnu.Symbols(i.Kind, i.Mode), true
	case 'y':
		return gnu.Letter(i.Kind), true
	case 'Y':
		if t, err := s.p.FS.Stat(s.p.At(), v.path, true); err == nil {
			return gnu.Letter(t.Kind), true
		}
		return "N", true
	case 'd':
		return strconv.Itoa(v.depth), true
	case 'l':
		return v.node.Target(), true
	case 'n':
		return strconv.Itoa(i.Links), true
	case 'i':
		return strconv.FormatUint(i.ID, 10), true
	case 'D':
		return strconv.FormatUint(i.Device, 10), true
	case 'u', 'g':
		if u := s.p.Getenv("USER"); u != "" {
			return u, true
		}
		return "root", true
	case 'U', 'G':
		return "0", true
	case 't':
		return i.Modified.UTC().Format("Mon Jan _2 15:04:05") + fmt.Sprintf(".%09d0 ", i.Modified.Nanosecond()) + i.Modified.UTC().Format("2006"),
			true
	}
	return "", false
}
