// Package textdiff has the commands that compare files and apply the differences: diff, sdiff, cmp and patch.
package textdiff

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// Programs returns the commands of this package by their names.
func Programs() program.Table {
	return program.Functions(map[string]program.Func{"cmp": cmp, "diff": diff, "patch": patch, "sdiff": sdiff})
}

// comparer is a diff that runs.
type comparer struct {
	beside     sides // the form of two columns
	width      int   // of that form
	p          *program.Process
	out        *program.Output
	options    string // as they were given, for the heads of folders' files
	brief      bool
	same       bool // report files that are equal
	recursive  bool
	absent     bool // files that are not there are empty
	unified    int  // lines of context, -1 for the normal form
	context    int  // -1, or lines of the context form
	fold       bool
	blanks     byte // 'b' for amounts, 'w' for all
	emptyLines bool
	stripCR    bool
	text       bool
	labels     []string
	exclude    []string
	ignore     *posix.Regexp
	function   *posix.Regexp
	sides      *sides // nil for another form
	differs    bool
	trouble    bool
}

func diff(p *program.Process) int {
	c := &comparer{p: p, out: p.Out(), unified: -1, context: -1}
	opts, operands := p.Options(2, "uU:cC:qsrNwbiBaZEtnyepF:I:x:X:L:W:dHT", "unified=?", "brief q", "report-identical-files s", "recursive r",
		"new-file N",
		"ignore-all-space w", "ignore-space-change b", "ignore-case i", "ignore-blank-lines B", "text a", "ignore-trailing-space Z",
		"ignore-matching-lines= I",
		"exclude= x", "label= L", "strip-trailing-cr", "color=?", "context=?", "normal", "minimal d", "speed-large-files H", "side-by-side y",
		"no-dereference",
		"show-c-function p", "show-function-line= F", "expand-tabs t", "initial-tab T", "suppress-common-lines", "unidirectional-new-file",
		"from-file=", "to-file=", "width= W", "left-column")
	given := slices.Clone(p.Args[1:])
	for i, o := len(given)-1, len(operands)-1; i >= 0 && o >= 0; i-- {
		if given[i] == operands[o] {
			given = slices.Delete(given, i, i+1)
			o--
		}
	}
	for _, a := range given {
		c.options += " " + a
	}
	c.beside, c.width = sides{c: c}, 130
	for _, o := range opts {
		if code, done := c.option(o); done {
			return code
		}
	}
	c.beside.setWidth(c.width)
	switch {
	case len(operands) == 0:
		p.Errorf("missing operand after '%s'", p.Args[len(p.Args)-1])
	case len(operands) == 1:
		p.Errorf("missing operand after '%s'", operands[0])
	case len(operands) > 2:
		p.Errorf("extra operand '%s'", operands[2])
	}
	if len(operands) != 2 {
		p.Stderrf("diff: Try 'diff --help' for more information.\n")
		return 2
	}
	a, b := operands[0], operands[1]
	dirA, dirB := c.isDir(a), c.isDir(b)
	switch {
	case dirA && dirB:
		c.folders(a, b, 0)
	case dirA:
		c.files(gnu.Join(a, gnu.LastName(b)), b, false)
	case dirB:
		c.files(a, gnu.Join(b, gnu.LastName(a)), false)
	default:
		c.files(a, b, false)
	}
	switch {
	case c.trouble:
		return 2
	case c.differs:
		return 1
	}
	return 0
}

// option takes one option. It returns whether the command ends with that, and the code.
func (c *comparer) option(o program.Option) (code int, done bool) {
	switch o.Name {
	case "y":
		c.sides = &c.beside
	case "t":
		c.beside.expand = true
	case "left-column":
		c.beside.left = true
	case "suppress-common-lines":
		c.beside.suppress = true
	case "W":
		n, err := strconv.Atoi(o.Value)
		if err != nil || n <= 0 {
			c.p.Errorf("invalid width '%s'", o.Value)
			c.p.Stderrf("diff: Try 'diff --help' for more information.\n")
			return 2, true
		}
		c.width = n
	case "u":
		c.unified = max(c.unified, 3)
	case "U":
		c.unified = c.number(o.Value)
	case "unified":
		c.unified = 3
		if o.Given {
			c.unified = c.number(o.Value)
		}
	case "c":
		c.context = 3
	case "C":
		c.context = c.number(o.Value)
	case "context":
		c.context = 3
		if o.Given {
			c.context = c.number(o.Value)
		}
	case "q":
		c.brief = true
	case "s":
		c.same = true
	case "r":
		c.recursive = true
	case "N":
		c.absent = true
	case "w", "b", "Z":
		if c.blanks != 'w' {
			c.blanks = o.Name[0]
		}
	case "i":
		c.fold = true
	case "B":
		c.emptyLines = true
	case "a":
		c.text = true
	case "I":
		c.ignore = gnu.Compile(c.p, 2, o.Value, 0)
	case "p":
		c.function = gnu.Compile(c.p, 2, "^[[:alpha:]$_]", 0)
	case "F":
		c.function = gnu.Compile(c.p, 2, o.Value, 0)
	case "x":
		c.exclude = append(c.exclude, o.Value)
	case "L":
		c.labels = append(c.labels, o.Value)
	case "strip-trailing-cr":
		c.stripCR = true
	case "color", "normal", "d", "H", "no-dereference", "E":
	default:
		c.p.Lack(program.LackOption, "-"+o.Name)
		c.p.Errorf("the option %s is not supported here: use the normal, the unified (-u) or the context (-c) form", o.Name)
		return 2, true
	}
	return 0, false
}

func (c *comparer) isDir(path string) bool {
	if path == "-" {
		return false
	}
	i, err := c.p.FS.Stat(c.p.At(), path, true)
	return err == nil && i.IsDir()
}

func (c *comparer) fail(path string, err error) {
	c.p.Charge(0)
	c.p.Errorf("%s: %s", path, program.Message(err))
	c.trouble = true
}

func (c *comparer) excluded(name string) bool {
	for _, x := range c.exclude {
		if gnu.Glob(x, name, false) {
			return true
		}
	}
	return false
}

func (c *comparer) folders(a, b string, depth int) {
	if depth > vfs.MaxDepth {
		c.fail(a, vfs.ELOOP)
		return
	}
	listA, err := c.p.FS.List(c.p.At(), a)
	if err != nil {
		c.fail(a, err)
		return
	}
	listB, err := c.p.FS.List(c.p.At(), b)
	if err != nil {
		c.fail(b, err)
		return
	}
	for len(listA)+len(listB) > 0 {
		order := 0
		switch {
		case len(listA) == 0:
			order = 1
		case len(listB) == 0:
			order = -1
		default:
			order = strings.Compare(listA[0].Name, listB[0].Name)
		}
		var name string
		if order <= 0 {
			name = listA[0].Name
			listA = listA[1:]
		}
		if order >= 0 {
			name = listB[0].Name
			listB = listB[1:]
		}
		if c.excluded(name) {
			continue
		}
		pathA, pathB := gnu.Join(a, name), gnu.Join(b, name)
		dirA, dirB := order <= 0 && c.isDir(pathA), order >= 0 && c.isDir(pathB)
		switch {
		case order != 0 && !c.absent:
			dir := a
			if order > 0 {
				dir = b
			}
			c.out.Printf("Only in %s: %s\n", strings.TrimSuffix(dir, "/"), name)
			c.differs = true
		case order == 0 && dirA != dirB:
			kind := map[bool]string{true: "directory", false: "regular file"}
			c.out.Printf("File %s is a %s while file %s is a %s\n", pathA, kind[dirA], pathB, kind[dirB])
			c.differs = true
		case dirA && dirB:
			if c.recursive {
				c.folders(pathA, pathB, depth+1)
			} else {
				c.out.Printf("Common subdirectories: %s and %s\n", pathA, pathB)
			}
		case dirA || dirB:
			if c.recursive {
				c.alone(pathA, pathB, dirA, depth+1)
			}
		default:
			c.files(pathA, pathB, true)
		}
	}
}

// alone compares what is in a folder with nothing.
func (c *comparer) alone(a, b string, first bool, depth int) {
	dir := b
	if first {
		dir = a
	}
	list, err := c.p.FS.List(c.p.At(), dir)
	if err != nil || depth > vfs.MaxDepth {
		return
	}
	for _, e := range list {
		if c.excluded(e.Name) {
			continue
		}
		if e.Node.Kind() == vfs.Directory {
			c.alone(gnu.Join(a, e.Name), gnu.Join(b, e.Name), first, depth+1)
		} else {
			c.files(gnu.Join(a, e.Name), gnu.Join(b, e.Name), true)
		}
	}
}

// side is one of the files that are compared.
type side struct {
	path    string
	data    []byte
	lines   [][]byte
	ids     []int
	changed []bool // with one more at each end
	missing bool
	label   string
}

func (c *comparer) read(path string) (*side, bool) {
	s := &side{path: path, label: path}
	data, err := gnu.ReadWhole(c.p, path)
	if err == vfs.ENOENT && c.absent {
		s.missing = true
		s.label += "\t1970-01-01 00:00:00.000000000 +0000"
		return s, true
	}
	if err != nil {
		c.fail(path, err)
		return nil, false
	}
	s.data = data
	when := c.p.Now()
	if path != "-" {
		if i, err := c.p.FS.Stat(c.p.At(), path, true); err == nil {
			when = i.Modified
		}
	}
	s.label += "\t" + when.UTC().Format("2006-01-02 15:04:05.000000000 +0000")
	return s, true
}

func (c *comparer) files(a, b string, nested bool) {
	x, ok := c.read(a)
	if !ok {
		if _, err := c.p.FS.Stat(c.p.At(), b, true); err != nil && b != "-" {
			c.fail(b, err)
		}
		return
	}
	defer func() { c.p.Drop(len(x.data)) }()
	y, ok := c.read(b)
	if !ok {
		return
	}
	defer func() { c.p.Drop(len(y.data)) }()
	c.p.Charge((len(x.data) + len(y.data)) / 8)
	if bytes.Equal(x.data, y.data) && x.missing == y.missing && c.sides == nil {
		if c.same {
			c.out.Printf("Files %s and %s are identical\n", a, b)
		}
		return
	}
	if !c.text && (binaryData(x.data) || binaryData(y.data)) {
		if c.brief {
			c.out.Printf("Files %s and %s differ\n", a, b)
		} else {
			c.out.Printf("Binary files %s and %s differ\n", a, b)
		}
		c.differs = true
		return
	}
	for i, l := range c.labels {
		if i == 0 {
			x.label = l
		} else if i == 1 {
			y.label = l
		}
	}
	c.split(x, y)
	compareLines(c.p, x, y)
	shift(x, y)
	shift(y, x)
	changes := c.changes(x, y)
	if len(changes) == 0 {
		if c.sides != nil && !c.brief {
			c.sides.write(x, y, changes)
		}
		if c.same {
			c.out.Printf("Files %s and %s are identical\n", a, b)
		}
		return
	}
	c.differs = true
	if c.brief {
		c.out.Printf("Files %s and %s differ\n", a, b)
		return
	}
	if nested {
		if len(c.labels) == 2 {
			a, b = c.labels[0], c.labels[1]
		}
		c.out.Printf("diff%s %s %s\n", c.options, a, b)
	}
	switch {
	case c.sides != nil:
		c.sides.write(x, y, changes)
	case c.unified >= 0:
		c.writeUnified(x, y, changes)
	case c.context >= 0:
		c.writeContext(x, y, changes)
	default:
		c.writeNormal(x, y, changes)
	}
}

func binaryData(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 32<<10)], 0) >= 0 }

// split splits the files into lines and gives equal ones equal numbers.
func (c *comparer) split(x, y *side) {
	ids := map[string]int{}
	for _, s := range []*side{x, y} {
		s.lines = gnu.Lines(s.data)
		c.p.Hold(len(s.lines) * 64)
		s.ids = make([]int, len(s.lines))
		s.changed = make([]bool, len(s.lines)+2)
		for i, line := range s.lines {
			c.p.Charge(20 + len(line)/4)
			key := c.key(line)
			id, ok := ids[key]
			if !ok {
				id = len(ids) + 1
				ids[key] = id
			}
			s.ids[i] = id
		}
	}
	c.p.Drop((len(x.lines) + len(y.lines)) * 64)
}

// key is what of a line is compared.
func (c *comparer) key(line []byte) string {
	ended := bytes.HasSuffix(line, []byte("\n"))
	if c.stripCR {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	}
	switch c.blanks {
	case 'w':
		return c.cased(strings.Join(strings.Fields(string(line)), ""))
	case 'b':
		s := string(line)
		fields := strings.Fields(s)
		if len(fields) > 0 && (s[0] == ' ' || s[0] == '\t') {
			fields[0] = " " + fields[0]
		}
		return c.cased(strings.Join(fields, " "))
	case 'Z':
		return c.cased(strings.TrimRight(string(line), " \t\r\n"))
	}
	if c.stripCR && ended {
		return c.cased(string(line) + "\n")
	}
	return c.cased(string(line))
}

func (c *comparer) cased(s string) string {
	if c.fold {
		return strings.ToLower(s)
	}
	return s
}

// number reads the number of an option, or ends the program.
func (c *comparer) number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		c.p.Errorf("invalid context length '%s'", s)
		c.p.Exit(2)
	}
	return n
}
