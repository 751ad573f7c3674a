// Package find has the command find.
package find

import (
	"math"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// Programs returns the commands of this package by their names.
func Programs() program.Table {
	return program.Functions(map[string]program.Func{"find": find})
}

// seeker is a find that runs.
type seeker struct {
	p        *program.Process
	out      *program.Output
	min, max int
	post     bool // what is in a folder comes before it
	follow   bool
	roots    bool // links that are starting points are followed
	syntax   posix.Flags
	acts     bool // there is an action: nothing is printed by itself
	daystart bool
	batches  []*batch
	args     []string
	test     test
	code     int
	quit     bool
	depth    int
}

// visit is a file that find looks at.
type visit struct {
	path  string
	start string
	name  string
	depth int
	node  *vfs.Node
	info  vfs.Info
	prune bool
}

// test is an expression of find.
type test func(v *visit) bool

// batch is a command that is called with many names.
type batch struct {
	args  []string
	names []string
	size  int
}

const maxBatch = 128 << 10

func find(p *program.Process) int {
	s := &seeker{p: p, out: p.Out(), max: math.MaxInt}
	args := p.Args[1:]
	for len(args) > 0 && (args[0] == "-H" || args[0] == "-L" || args[0] == "-P") {
		s.follow, s.roots = args[0] == "-L", args[0] != "-P"
		args = args[1:]
	}
	var starts []string
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") && args[0] != "(" && args[0] != "!" {
		starts = append(starts, args[0])
		args = args[1:]
	}
	if len(starts) == 0 {
		starts = []string{"."}
	}
	s.args = args
	if len(args) > 0 {
		s.test = s.list()
		if len(s.args) > 0 {
			if s.args[0] == ")" {
				s.fail("you have too many ')'")
			}
			s.fail("paths must precede expression: `%s'", s.args[0])
		}
	}
	if s.test == nil {
		s.test = func(*visit) bool { return true }
	}
	if !s.acts {
		inner := s.test
		s.test = func(v *visit) bool {
			if inner(v) {
				s.out.WriteString(v.path + "\n")
			}
			return true
		}
	}
	for _, start := range starts {
		if s.quit {
			break
		}
		node, err := s.lookup(start, s.roots)
		if err != nil {
			s.complain(start, err)
			continue
		}
		s.visit(&visit{path: start, start: start, name: startName(start), node: node})
	}
	for _, b := range s.batches {
		s.run(b)
	}
	return s.code
}

// startName is the last element of a starting point.
func startName(path string) string {
	if b := gnu.LastName(path); b != "" {
		return b
	}
	return path
}

func (s *seeker) lookup(path string, follow bool) (*vfs.Node, error) {
	n, err := s.p.FS.Lookup(s.p.At(), path, follow)
	if err != nil && follow {
		n, err = s.p.FS.Lookup(s.p.At(), path, false)
	}
	return n, err
}

func (s *seeker) complain(path string, err error) {
	s.p.Charge(0)
	s.p.Errorf("‘%s’: %s", path, program.Message(err))
	s.code = 1
}

func (s *seeker) fail(format string, args ...any) {
	s.p.Errorf(format, args...)
	s.p.Exit(1)
}

func (s *seeker) visit(v *visit) {
	s.p.Charge(100)
	v.info = v.node.Info()
	deep := v.node.Kind() == vfs.Directory && v.depth < s.max && v.depth <= vfs.MaxDepth
	if !s.post && v.depth >= s.min {
		s.test(v)
	}
	if deep && !v.prune && !s.quit {
		entries, err := v.node.List()
		if err != nil {
			s.complain(v.path, err)
		}
		for _, e := range entries {
			if s.quit {
				return
			}
			path := gnu.Join(v.path, e.Name)
			node := e.Node
			if s.follow && node.Kind() == vfs.Symlink {
				if n, err := s.p.FS.Lookup(s.p.At(), path, true); err == nil {
					node = n
				}
			}
			s.visit(&visit{path: path, start: v.start, name: e.Name, depth: v.depth + 1, node: node})
		}
	}
	if s.post && v.depth >= s.min && !s.quit {
		s.test(v)
	}
}

func (s *seeker) peek() string {
	if len(s.args) > 0 {
		return s.args[0]
	}
	return ""
}

// next takes the argument of a primary.
func (s *seeker) next(of string) string {
	if len(s.args) == 0 {
		s.fail("missing argument to `%s'", of)
	}
	a := s.args[0]
	s.args = s.args[1:]
	return a
}

func (s *seeker) list() test {
	t := s.or()
	for s.peek() == "," {
		s.args = s.args[1:]
		a, b := t, s.or()
		t = func(v *visit) bool { a(v); return b(v) }
	}
	return t
}

func (s *seeker) or() test {
	t := s.and()
	for s.peek() == "-o" || s.peek() == "-or" {
		s.args = s.args[1:]
		a, b := t, s.and()
		t = func(v *visit) bool { return a(v) || b(v) }
	}
	return t
}

func (s *seeker) and() test {
	t := s.not()
	for {
		switch s.peek() {
		case "-a", "-and":
			s.args = s.args[1:]
		case "", "-o", "-or", ")", ",":
			return t
		}
		if p := s.peek(); !strings.HasPrefix(p, "-") && p != "(" && p != "!" {
			return t
		}
		a, b := t, s.not()
		t = func(v *visit) bool { return a(v) && b(v) }
	}
}

func (s *seeker) not() test {
	if s.depth++; s.depth > 500 {
		s.fail("the expression nests too deep")
	}
	defer func() { s.depth-- }()
	if s.peek() == "!" || s.peek() == "-not" {
		s.args = s.args[1:]
		t := s.not()
		return func(v *visit) bool { return !t(v) }
	}
	if s.peek() == "(" {
		s.args = s.args[1:]
		if s.peek() == ")" {
			s.fail("invalid expression; empty parentheses are not allowed.")
		}
		t := s.list()
		if s.peek() != ")" {
			s.fail("invalid expression; I was expecting to find a ')' somewhere but did not see one.")
		}
		s.args = s.args[1:]
		return t
	}
	return s.primary()
}

// number reads N, +N or -N and returns a comparison.
func (s *seeker) number(of, a string) func(int64) bool {
	sign, digits := byte(0), a
	if a != "" && (a[0] == '+' || a[0] == '-') {
		sign, digits = a[0], a[1:]
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		s.fail("invalid argument `%s' to `%s'", a, of)
	}
	switch sign {
	case '+':
		return func(x int64) bool { return x > n }
	case '-':
		return func(x int64) bool { return x < n }
	}
	return func(x int64) bool { return x == n }
}

func (s *seeker) age(of string, unit time.Duration, when func(vfs.Info) time.Time) test {
	fits := s.number(of, s.next(of))
	now := s.p.Now()
	if s.daystart {
		now = now.Truncate(24 * time.Hour).Add(24 * time.Hour)
	}
	return func(v *visit) bool {
		d := now.Sub(when(v.info))
		if unit == time.Minute { // parts of minutes count as whole ones
			return fits(int64(math.Ceil(float64(d) / float64(unit))))
		}
		return fits(int64(d / unit))
	}
}

func modified(i vfs.Info) time.Time { return i.Modified }
func accessed(i vfs.Info) time.Time { return i.Accessed }
func changed(i vfs.Info) time.Time  { return i.Changed }

// primary reads a test or an action. It is long because it is one switch over the names of these.
//
//nolint:cyclop // one case for each primary
func (s *seeker) primary() test {
	name := s.next("")
	always := func(*visit) bool { return true }
	switch name {
	case "-name", "-iname":
		pattern, fold := s.next(name), name == "-iname"
		return func(v *visit) bool {
			s.p.Charge(len(v.name) * 2)
			return gnu.Glob(pattern, v.name, fold)
		}
	case "-path", "-wholename", "-ipath", "-iwholename":
		pattern, fold := s.next(name), name[1] == 'i'
		return func(v *visit) bool {
			s.p.Charge(len(v.path) * 4)
			return gnu.Glob(pattern, v.path, fold)
		}
	case "-regex", "-iregex":
		flags := s.syntax | posix.Whole
		if name == "-iregex" {
			flags |= posix.IgnoreCase
		}
		pattern := s.next(name)
		if s.syntax&posix.Extended == 0 { // in Emacs's, + and ? are special
			pattern = gnu.EmacsSyntax(pattern)
		}
		re := gnu.Compile(s.p, 1, pattern, flags)
		return func(v *visit) bool {
			ok, err := re.MatchString(v.path)
			gnu.Check(s.p, 1, err)
			return ok
		}
	case "-regextype":
		switch kind := s.next(name); kind {
		case "posix-extended", "egrep", "posix-egrep", "awk", "gnu-awk", "posix-awk":
			s.syntax = posix.Extended
		case "emacs", "posix-basic", "sed", "grep", "ed", "findutils-default", "posix-minimal-basic":
			s.syntax = 0
		default:
			s.fail("Unknown regular expression type ‘%s’", kind)
		}
		return always
	case "-lname":
		pattern := s.next(name)
		return func(v *visit) bool { return v.info.Kind == vfs.Symlink && gnu.Glob(pattern, v.node.Target(), false) }
	case "-type", "-xtype":
		return s.kind(name)
	case "-size":
		return s.bytes(s.next(name))
	case "-empty":
		return func(v *visit) bool {
			if v.info.Kind == vfs.Directory {
				entries, err := v.node.List()
				return err == nil && len(entries) == 0
			}
			return v.info.Kind == vfs.Regular && v.info.Size == 0
		}
	case "-mtime":
		return s.age(name, 24*time.Hour, modified)
	case "-atime":
		return s.age(name, 24*time.Hour, accessed)
	case "-ctime":
		return s.age(name, 24*time.Hour, changed)
	case "-mmin":
		return s.age(name, time.Minute, modified)
	case "-amin":
		return s.age(name, time.Minute, accessed)
	case "-cmin":
		return s.age(name, time.Minute, changed)
	case "-newer", "-anewer", "-cnewer", "-newermm":
		file := s.next(name)
		i, err := s.p.FS.Stat(s.p.At(), file, true)
		if err != nil {
			s.fail("‘%s’: %s", file, program.Message(err))
		}
		when := map[string]func(vfs.Info) time.Time{"-anewer": accessed, "-cnewer": changed}[name]
		if when == nil {
			when = modified
		}
		return func(v *visit) bool { return when(v.info).After(i.Modified) }
	case "-newermt":
		text := s.next(name)
		t, ok := moment(text, s.p.Now())
		if !ok {
			s.fail("I cannot figure out how to interpret ‘%s’ as a date or time", text)
		}
		return func(v *visit) bool { return v.info.Modified.After(t) }
	case "-perm":
		return s.perm(s.next(name))
	case "-links":
		fits := s.number(name, s.next(name))
		return func(v *visit) bool { return fits(int64(v.info.Links)) }
	case "-inum":
		fits := s.number(name, s.next(name))
		return func(v *visit) bool { return fits(int64(v.info.ID)) }
	case "-samefile":
		file := s.next(name)
		n, err := s.lookup(file, true)
		if err != nil {
			s.fail("‘%s’: %s", file, program.Message(err))
		}
		return func(v *visit) bool { return v.node == n }
	case "-user", "-group", "-uid", "-gid":
		s.next(name)
		return always
	case "-nouser", "-nogroup", "-false":
		return func(*visit) bool { return false }
	case "-readable":
		return func(v *visit) bool { return v.info.Mode&0o400 != 0 }
	case "-writable":
		return func(v *visit) bool { return v.info.Mode&0o200 != 0 }
	case "-executable":
		return func(v *visit) bool { return v.info.Mode&0o100 != 0 }
	case "-true", "-noleaf", "-xdev", "-mount", "-ignore_readdir_race", "-noignore_readdir_race", "-nowarn", "-warn":
		return always
	case "-follow":
		s.follow, s.roots = true, true
		return always
	case "-daystart":
		s.daystart = true
		return always
	case "-depth", "-d":
		s.post = true
		return always
	case "-maxdepth", "-mindepth":
		a := s.next(name)
		n, err := strconv.Atoi(a)
		if err != nil || n < 0 {
			s.fail("Expected a positive decimal integer argument to %s, but got ‘%s’", name, a)
		}
		if name == "-maxdepth" {
			s.max = n
		} else {
			s.min = n
		}
		return always
	}
	return s.action(name)
}
