package shell

import (
	"strconv"
	"strings"

	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// conditions are what test needs to know of its surroundings.
type conditions struct {
	fs     *vfs.FS
	at     vfs.At
	stop   func(error)
	file   func(n int) *vfs.Handle
	option func(name string) bool
	isSet  func(name string) bool
	isRef  func(name string) bool
	number func(s string) (int64, bool)
}

func conditionsOf(sh *shell) *conditions {
	return &conditions{fs: sh.w.fs, at: sh.at(), stop: sh.w.stop, file: sh.fd, number: testNumber,
		option: func(name string) bool {
			for i, o := range optionTable() {
				if o.name == name {
					return sh.on[i]
				}
			}
			return false
		},
		isSet: func(name string) bool { return isSet(sh, name) },
		isRef: func(name string) bool { v := sh.vars[name]; return v != nil && v.ref },
	}
}

func isSet(sh *shell, name string) bool {
	if base, sub, ok := splitSubscript(name); ok {
		e := elementOf(sh, base, sub, false)
		return e.set
	}
	return parameterOf(sh, name).set
}

func testNumber(s string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "+")), 10, 64)
	return n, err == nil
}

// unary evaluates an operator with one operand; ok is false for what is not an operator.
func (c *conditions) unary(op, arg string) (result, ok bool) {
	switch op {
	case "-z":
		return arg == "", true
	case "-n":
		return arg != "", true
	case "-o":
		return c.option(arg), true
	case "-v":
		return c.isSet(arg), true
	case "-R":
		return c.isRef(arg), true
	case "-t":
		return false, true
	case "-h", "-L":
		n := c.node(arg, false)
		return n != nil && n.Kind() == vfs.Symlink, true
	}
	if len(op) != 2 || op[0] != '-' || strings.IndexByte("aefdbcpSrwxsugkOGN", op[1]) < 0 {
		return false, false
	}
	if fd, isFD := program.Descriptor(arg); isFD {
		h := c.file(fd)
		if h == nil {
			return false, true
		}
		switch op[1] {
		case 'a', 'e', 'r', 'w':
			return true, true
		case 'p':
			return h.Kind() == vfs.Pipe, true
		case 'c':
			return h.Kind() == vfs.Device, true
		case 'f':
			return h.Kind() == vfs.Regular, true
		}
		return false, true
	}
	n := c.node(arg, true)
	if n == nil {
		return false, true
	}
	info := n.Info()
	switch op[1] {
	case 'a', 'e', 'O', 'G':
		return true, true
	case 'f':
		return info.Kind == vfs.Regular, true
	case 'd':
		return info.Kind == vfs.Directory, true
	case 'c':
		return info.Kind == vfs.Device, true
	case 'p':
		return info.Kind == vfs.Pipe, true
	case 'r':
		return info.Mode&0o400 != 0, true
	case 'w':
		return info.Mode&0o200 != 0, true
	case 'x':
		return info.Mode&0o111 != 0, true
	case 's':
		return info.Size > 0, true
	case 'u':
		return info.Mode&0o4000 != 0, true
	case 'g':
		return info.Mode&0o2000 != 0, true
	case 'k':
		return info.Mode&0o1000 != 0, true
	case 'N':
		return info.Modified.After(info.Accessed), true
	}
	return false, true
}

func (c *conditions) node(path string, follow bool) *vfs.Node {
	n, err := c.fs.Lookup(c.at, path, follow)
	c.stop(err)
	if err != nil {
		return nil
	}
	return n
}

// testError is what is wrong with the words of test.
type testError struct{ text string }

// binary evaluates an operator with two operands; ok is false for what is not an operator.
func (c *conditions) binary(x, op, y string) (result, ok bool) {
	switch op {
	case "=", "==":
		return x == y, true
	case "!=":
		return x != y, true
	case "<":
		return x < y, true
	case ">":
		return x > y, true
	case "-eq", "-ne", "-lt", "-le", "-gt", "-ge":
		a, okA := c.number(x)
		if !okA {
			panic(testError{x + ": integer expression expected"})
		}
		b, okB := c.number(y)
		if !okB {
			panic(testError{y + ": integer expression expected"})
		}
		switch op {
		case "-eq":
			return a == b, true
		case "-ne":
			return a != b, true
		case "-lt":
			return a < b, true
		case "-le":
			return a <= b, true
		case "-gt":
			return a > b, true
		}
		return a >= b, true
	case "-nt", "-ot", "-ef":
		a, b := c.node(x, true), c.node(y, true)
		switch {
		case op == "-ef":
			return a != nil && a == b, true
		case op == "-ot":
			a, b = b, a
		}
		if a == nil || b == nil {
			return a != nil, true
		}
		return a.Info().Modified.After(b.Info().Modified), true
	}
	return false, false
}

// test evaluates the words of test, as POSIX says: by how many there are.
func (c *conditions) test(args []string) bool {
	switch len(args) {
	case 0:
		return false
	case 1:
		return args[0] != ""
	case 2:
		if args[0] == "!" {
			return args[1] == ""
		}
		r, ok := c.unary(args[0], args[1])
		if !ok {
			panic(testError{args[0] + ": unary operator expected"})
		}
		return r
	case 3:
		if r, ok := c.binary(args[0], args[1], args[2]); ok {
			return r
		}
		switch {
		case args[1] == "-a":
			return args[0] != "" && args[2] != ""
		case args[1] == "-o":
			return args[0] != "" || args[2] != ""
		case args[0] == "!":
			return !c.test(args[1:])
		case args[0] == "(" && args[2] == ")":
			return args[1] != ""
		}
		panic(testError{args[1] + ": binary operator expected"})
	case 4:
		if args[0] == "!" {
			return !c.test(args[1:])
		}
		if args[0] == "(" && args[3] == ")" {
			return c.test(args[1:3])
		}
	}
	p := testParser{c: c, args: args}
	r := p.or()
	if p.pos < len(args) {
		panic(testError{"too many arguments"})
	}
	return r
}

// testParser evaluates longer expressions of test.
type testParser struct {
	c     *conditions
	args  []string
	pos   int
	depth int
}

func (p *testParser) peek() string {
	if p.pos < len(p.args) {
		return p.args[p.pos]
	}
	return ""
}

func (p *testParser) or() bool {
	r := p.and()
	for p.peek() == "-o" {
		p.pos++
		more := p.and()
		r = r || more
	}
	return r
}

func (p *testParser) and() bool {
	r := p.term()
	for p.peek() == "-a" {
		p.pos++
		more := p.term()
		r = r && more
	}
	return r
}

func (p *testParser) term() bool {
	if p.depth++; p.depth > 200 {
		panic(testError{"expression nested too deeply"})
	}
	defer func() { p.depth-- }()
	left := len(p.args) - p.pos
	if left == 0 {
		panic(testError{"argument expected"})
	}
	a := p.args[p.pos]
	if left >= 3 {
		if r, ok := p.c.binary(a, p.args[p.pos+1], p.args[p.pos+2]); ok {
			p.pos += 3
			return r
		}
	}
	if a == "!" {
		p.pos++
		return !p.term()
	}
	if a == "(" {
		p.pos++
		r := p.or()
		if p.peek() != ")" {
			panic(testError{"`)' expected"})
		}
		p.pos++
		return r
	}
	if left >= 2 && p.args[p.pos+1] != "-a" && p.args[p.pos+1] != "-o" {
		if r, ok := p.c.unary(a, p.args[p.pos+1]); ok {
			p.pos += 2
			return r
		}
	}
	p.pos++
	return a != ""
}

// run evaluates the words of a command test or [ and returns its status; complain prints what is wrong with them.
func (c *conditions) run(args []string, complain func(text string)) (status int) {
	words := args[1:]
	if args[0] == "[" {
		if len(words) == 0 || words[len(words)-1] != "]" {
			complain("missing `]'")
			return 2
		}
		words = words[:len(words)-1]
	}
	defer func() {
		if x := recover(); x != nil {
			e, ok := x.(testError)
			if !ok {
				panic(x)
			}
			complain(e.text)
			status = 2
		}
	}()
	return int(truth(!c.test(words)))
}

func biTest(sh *shell, args []string) int {
	return conditionsOf(sh).run(args, func(text string) { sh.complain(args[0], "%s", text) })
}
