package tools

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"agentbox/internal/driver/wasm/posix"
	"agentbox/internal/driver/wasm/program"
	"agentbox/internal/driver/wasm/vfs"
)

// comparer is a diff that runs.
type comparer struct {
	p          *program.Process
	out        *program.Output
	options    string // as they were given, for the heads of folders' files
	brief      bool
	same       bool // files that are equal are told
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
	differs    bool
	trouble    bool
}

func diff(p *program.Process) int {
	c := &comparer{p: p, out: p.Out(), unified: -1, context: -1}
	opts, operands := p.Options(2, "uU:cC:qsrNwbiBaZEtnyepF:I:x:X:L:W:dHT", "unified=?", "brief q", "report-identical-files s", "recursive r", "new-file N",
		"ignore-all-space w", "ignore-space-change b", "ignore-case i", "ignore-blank-lines B", "text a", "ignore-trailing-space Z", "ignore-matching-lines= I",
		"exclude= x", "label= L", "strip-trailing-cr", "color=?", "context=?", "normal", "minimal d", "speed-large-files H", "side-by-side y", "no-dereference",
		"show-c-function p", "show-function-line= F", "expand-tabs t", "initial-tab T", "suppress-common-lines", "unidirectional-new-file", "from-file=", "to-file=", "width= W")
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			p.Errorf("invalid context length '%s'", s)
			p.Exit(2)
		}
		return n
	}
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
	for _, o := range opts {
		switch o.Name {
		case "u":
			c.unified = max(c.unified, 3)
		case "U":
			c.unified = number(o.Value)
		case "unified":
			c.unified = 3
			if o.Given {
				c.unified = number(o.Value)
			}
		case "c":
			c.context = 3
		case "C":
			c.context = number(o.Value)
		case "context":
			c.context = 3
			if o.Given {
				c.context = number(o.Value)
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
			c.ignore = compile(p, 2, o.Value, 0)
		case "p":
			c.function = compile(p, 2, "^[[:alpha:]$_]", 0)
		case "F":
			c.function = compile(p, 2, o.Value, 0)
		case "x":
			c.exclude = append(c.exclude, o.Value)
		case "L":
			c.labels = append(c.labels, o.Value)
		case "strip-trailing-cr":
			c.stripCR = true
		case "color", "normal", "d", "H", "no-dereference", "W":
		default:
			p.Lack(program.LackOption, "-"+o.Name)
			p.Errorf("the option %s is not supported here: use the normal, the unified (-u) or the context (-c) form", o.Name)
			return 2
		}
	}
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
		c.files(join(a, base(b)), b, false)
	case dirB:
		c.files(a, join(b, base(a)), false)
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
		if glob(x, name, false) {
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
		pathA, pathB := join(a, name), join(b, name)
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
			c.alone(join(a, e.Name), join(b, e.Name), first, depth+1)
		} else {
			c.files(join(a, e.Name), join(b, e.Name), true)
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
	data, err := whole(c.p, path)
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
	if bytes.Equal(x.data, y.data) && x.missing == y.missing {
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
	case c.unified >= 0:
		c.writeUnified(x, y, changes)
	case c.context >= 0:
		c.writeContext(x, y, changes)
	default:
		c.writeNormal(x, y, changes)
	}
}

func binaryData(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 32<<10)], 0) >= 0 }

// lines splits a text after each newline.
func lines(b []byte) [][]byte {
	all := bytes.SplitAfter(b, []byte("\n"))
	if len(all[len(all)-1]) == 0 {
		all = all[:len(all)-1]
	}
	return all
}

// split splits the files into lines and gives equal ones equal numbers.
func (c *comparer) split(x, y *side) {
	ids := map[string]int{}
	for _, s := range []*side{x, y} {
		s.lines = lines(s.data)
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

// compareLines marks the lines of two files that are changed, by the algorithm of Myers.
func compareLines(p *program.Process, x, y *side) {
	m := &myers{p: p}
	inX, inY := map[int]bool{}, map[int]bool{}
	for _, id := range x.ids {
		inX[id] = true
	}
	for _, id := range y.ids {
		inY[id] = true
	}
	keep := func(s *side, other map[int]bool) (ids, at []int) {
		for i, id := range s.ids {
			if other[id] {
				ids, at = append(ids, id), append(at, i)
			} else {
				s.changed[i+1] = true
			}
		}
		return ids, at
	}
	m.a, m.atA = keep(x, inY)
	m.b, m.atB = keep(y, inX)
	m.x, m.y = x, y
	n := len(m.a) + len(m.b) + 3
	p.Hold(n * 16)
	m.forward, m.backward = make([]int, n), make([]int, n)
	m.offset = len(m.b) + 1
	m.limit = 1024
	for m.limit*m.limit < n {
		m.limit *= 2
	}
	m.compare(0, len(m.a), 0, len(m.b))
	p.Drop(n * 16)
}

// myers compares sequences in linear space.
type myers struct {
	p                 *program.Process
	a, b, atA, atB    []int
	x, y              *side
	forward, backward []int
	offset, limit     int
}

func (m *myers) compare(a0, a1, b0, b1 int) {
	for a0 < a1 && b0 < b1 && m.a[a0] == m.b[b0] {
		a0++
		b0++
	}
	for a0 < a1 && b0 < b1 && m.a[a1-1] == m.b[b1-1] {
		a1--
		b1--
	}
	m.p.Charge(20)
	switch {
	case a0 == a1:
		for ; b0 < b1; b0++ {
			m.y.changed[m.atB[b0]+1] = true
		}
	case b0 == b1:
		for ; a0 < a1; a0++ {
			m.x.changed[m.atA[a0]+1] = true
		}
	default:
		a, b := m.middle(a0, a1, b0, b1)
		m.compare(a0, a, b0, b)
		m.compare(a, a1, b, b1)
	}
}

// middle returns a point that the best way through the two ranges passes.
func (m *myers) middle(a0, a1, b0, b1 int) (int, int) {
	fd, bd := m.forward, m.backward
	o := m.offset
	low, high := a0-b1, a1-b0 // diagonals
	fmid, bmid := a0-b0, a1-b1
	fmin, fmax, bmin, bmax := fmid, fmid, bmid, bmid
	odd := (fmid-bmid)&1 != 0
	const none = 1 << 60
	fd[fmid+o], bd[bmid+o] = a0, a1
	for cost := 1; ; cost++ {
		m.p.Charge(10 + 6*(fmax-fmin+bmax-bmin))
		if fmin > low {
			fmin--
			fd[fmin-1+o] = -1
		} else {
			fmin++
		}
		if fmax < high {
			fmax++
			fd[fmax+1+o] = -1
		} else {
			fmax--
		}
		for d := fmax; d >= fmin; d -= 2 {
			tlo, thi := fd[d-1+o], fd[d+1+o]
			x := thi
			if tlo >= thi {
				x = tlo + 1
			}
			y := x - d
			for x < a1 && y < b1 && m.a[x] == m.b[y] {
				x++
				y++
			}
			fd[d+o] = x
			if odd && bmin <= d && d <= bmax && bd[d+o] <= x {
				return x, y
			}
		}
		if bmin > low {
			bmin--
			bd[bmin-1+o] = none
		} else {
			bmin++
		}
		if bmax < high {
			bmax++
			bd[bmax+1+o] = none
		} else {
			bmax--
		}
		for d := bmax; d >= bmin; d -= 2 {
			tlo, thi := bd[d-1+o], bd[d+1+o]
			x := tlo
			if tlo >= thi {
				x = thi - 1
			}
			y := x - d
			for a0 < x && b0 < y && m.a[x-1] == m.b[y-1] {
				x--
				y--
			}
			bd[d+o] = x
			if !odd && fmin <= d && d <= fmax && x <= fd[d+o] {
				return x, y
			}
		}
		if cost >= m.limit { // the best so far has to do
			best, at := -1, 0
			for d := fmax; d >= fmin; d -= 2 {
				x := min(fd[d+o], a1)
				y := x - d
				if y > b1 {
					x, y = b1+d, b1
				}
				if x+y > best {
					best, at = x+y, x
				}
			}
			return at, best - at
		}
	}
}

// shift moves runs of changes to where they read best, as GNU's diff does.
func shift(s, other *side) {
	changed, theirs := s.changed[1:], other.changed[1:]
	end := len(s.lines)
	i, j := 0, 0
	for {
		for i < end && !changed[i] {
			for theirs[j] {
				j++
			}
			j++
			i++
		}
		if i == end {
			return
		}
		start := i
		for i++; changed[i]; i++ {
		}
		for theirs[j] {
			j++
		}
		corresponding := end
		for {
			length := i - start
			for start > 0 && s.ids[start-1] == s.ids[i-1] {
				start--
				changed[start] = true
				i--
				changed[i] = false
				for s.changed[start] { // the one before
					start--
				}
				for j--; other.changed[j+1]; j-- {
				}
			}
			corresponding = end
			if other.changed[j] { // the one before
				corresponding = i
			}
			for i != end && s.ids[start] == s.ids[i] {
				changed[start] = false
				start++
				changed[i] = true
				for i++; changed[i]; i++ {
				}
				for j++; theirs[j]; j++ {
					corresponding = i
				}
			}
			if length == i-start {
				break
			}
		}
		for corresponding < i {
			start--
			changed[start] = true
			i--
			changed[i] = false
			for j--; other.changed[j+1]; j-- {
			}
		}
	}
}

// change is a run of lines that are not the same.
type change struct{ a0, a1, b0, b1 int }

func (c *comparer) changes(x, y *side) []change {
	var all []change
	i, j := 0, 0
	for i < len(x.lines) || j < len(y.lines) {
		if !x.changed[i+1] && !y.changed[j+1] {
			i++
			j++
			continue
		}
		ch := change{a0: i, b0: j}
		for x.changed[i+1] {
			i++
		}
		for y.changed[j+1] {
			j++
		}
		ch.a1, ch.b1 = i, j
		if c.ignored(x, y, ch) {
			continue
		}
		all = append(all, ch)
	}
	return all
}

// ignored reports whether a change is only of lines that do not matter.
func (c *comparer) ignored(x, y *side, ch change) bool {
	if !c.emptyLines && c.ignore == nil {
		return false
	}
	for _, line := range append(append([][]byte(nil), x.lines[ch.a0:ch.a1]...), y.lines[ch.b0:ch.b1]...) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if c.emptyLines && len(line) == 0 {
			continue
		}
		if c.ignore != nil {
			ok, err := c.ignore.Match(line)
			check(c.p, 2, err)
			if ok {
				continue
			}
		}
		return false
	}
	return true
}

func (c *comparer) line(prefix string, line []byte) {
	c.out.WriteString(prefix)
	_, _ = c.out.Write(line)
	if !bytes.HasSuffix(line, []byte("\n")) {
		c.out.WriteString("\n\\ No newline at end of file\n")
	}
}

// span writes the lines of a normal form's head.
func span(from, to int) string {
	if to-from <= 1 {
		return strconv.Itoa(to)
	}
	return fmt.Sprintf("%d,%d", from+1, to)
}

func (c *comparer) writeNormal(x, y *side, changes []change) {
	for _, ch := range changes {
		letter := "c"
		switch {
		case ch.a0 == ch.a1:
			letter = "a"
		case ch.b0 == ch.b1:
			letter = "d"
		}
		c.out.WriteString(span(ch.a0, ch.a1) + letter + span(ch.b0, ch.b1) + "\n")
		for _, line := range x.lines[ch.a0:ch.a1] {
			c.line("< ", line)
		}
		if letter == "c" {
			c.out.WriteString("---\n")
		}
		for _, line := range y.lines[ch.b0:ch.b1] {
			c.line("> ", line)
		}
	}
}

// hunks groups changes that are near each other.
func hunks(changes []change, context int) [][]change {
	var all [][]change
	for i, ch := range changes {
		if i > 0 && ch.a0-changes[i-1].a1 <= 2*context {
			all[len(all)-1] = append(all[len(all)-1], ch)
			continue
		}
		all = append(all, []change{ch})
	}
	return all
}

func (c *comparer) writeUnified(x, y *side, changes []change) {
	c.out.WriteString("--- " + x.label + "\n+++ " + y.label + "\n")
	for _, h := range hunks(changes, c.unified) {
		first, last := h[0], h[len(h)-1]
		lead := min(c.unified, first.a0)
		tail := min(c.unified, len(x.lines)-last.a1)
		a0, a1, b0, b1 := first.a0-lead, last.a1+tail, first.b0-lead, last.b1+tail
		c.out.WriteString("@@ -" + extent(a0, a1) + " +" + extent(b0, b1) + " @@" + c.heading(x, a0) + "\n")
		i := a0
		for _, ch := range h {
			for ; i < ch.a0; i++ {
				c.line(" ", x.lines[i])
			}
			for ; i < ch.a1; i++ {
				c.line("-", x.lines[i])
			}
			for _, line := range y.lines[ch.b0:ch.b1] {
				c.line("+", line)
			}
		}
		for ; i < a1; i++ {
			c.line(" ", x.lines[i])
		}
	}
}

// heading is the last line before a hunk that begins a function, where those are asked for.
func (c *comparer) heading(x *side, before int) string {
	if c.function == nil {
		return ""
	}
	for i := before - 1; i >= 0; i-- {
		line := bytes.TrimRight(x.lines[i], " \t\r\n")
		ok, err := c.function.Match(line)
		check(c.p, 2, err)
		if ok {
			return " " + strings.TrimRight(string(line[:min(len(line), 40)]), " \t")
		}
	}
	return ""
}

func extent(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return strconv.Itoa(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func (c *comparer) writeContext(x, y *side, changes []change) {
	c.out.WriteString("*** " + x.label + "\n--- " + y.label + "\n")
	for _, h := range hunks(changes, c.context) {
		first, last := h[0], h[len(h)-1]
		lead := min(c.context, first.a0)
		tail := min(c.context, len(x.lines)-last.a1)
		a0, a1, b0, b1 := first.a0-lead, last.a1+tail, first.b0-lead, last.b1+tail
		removes, adds := false, false
		for _, ch := range h {
			removes, adds = removes || ch.a0 < ch.a1, adds || ch.b0 < ch.b1
		}
		c.out.WriteString("***************" + c.heading(x, a0) + "\n*** " + span(a0, a1) + " ****\n")
		half := func(s *side, from, to int, mark string, own, other func(change) (int, int)) {
			i := from
			for _, ch := range h {
				start, end := own(ch)
				for ; i < start; i++ {
					c.line("  ", s.lines[i])
				}
				m := mark
				if f, t := other(ch); f < t {
					m = "! "
				}
				for ; i < end; i++ {
					c.line(m, s.lines[i])
				}
			}
			for ; i < to; i++ {
				c.line("  ", s.lines[i])
			}
		}
		ofA := func(ch change) (int, int) { return ch.a0, ch.a1 }
		ofB := func(ch change) (int, int) { return ch.b0, ch.b1 }
		if removes {
			half(x, a0, a1, "- ", ofA, ofB)
		}
		c.out.WriteString("--- " + span(b0, b1) + " ----\n")
		if adds {
			half(y, b0, b1, "+ ", ofB, ofA)
		}
	}
}

// cmp compares two files byte by byte.
func cmp(p *program.Process) int {
	opts, operands := p.Options(2, "bi:ln:s", "print-bytes b", "ignore-initial= i", "verbose l", "bytes= n", "quiet s", "silent s")
	verbose, silent, shown := false, false, false
	limit, skip := int64(-1), int64(0)
	for _, o := range opts {
		var err error
		switch o.Name {
		case "l":
			verbose = true
		case "s":
			silent = true
		case "b":
			shown = true
		case "n":
			limit, err = size(o.Value)
		case "i":
			skip, err = size(o.Value)
		}
		if err != nil {
			p.Errorf("invalid --%s value '%s'", map[string]string{"n": "bytes", "i": "ignore-initial"}[o.Name], o.Value)
			return 2
		}
	}
	if len(operands) == 0 {
		p.Errorf("missing operand after '%s'", p.Name())
		p.Stderrf("cmp: Try 'cmp --help' for more information.\n")
		return 2
	}
	if len(operands) == 1 {
		operands = append(operands, "-")
	}
	var ins [2]*program.Input
	for i := range ins {
		in, done, err := input(p, operands[i])
		if err != nil {
			p.Errorf("%s: %s", operands[i], program.Message(err))
			return 2
		}
		defer done()
		ins[i] = in
	}
	out := p.Out()
	at, line := int64(0), 1
	var a, b []byte
	code := 0
	for limit < 0 || at < limit {
		if len(a) == 0 {
			a = ins[0].Chunk()
		}
		if len(b) == 0 {
			b = ins[1].Chunk()
		}
		n := min(len(a), len(b))
		if n == 0 {
			break
		}
		p.Charge(n)
		for i := range n {
			if limit >= 0 && at >= limit {
				return code
			}
			at++
			if at <= skip {
				continue
			}
			if a[i] != b[i] {
				code = 1
				switch {
				case silent:
					return 1
				case verbose:
					out.Printf("%d %3o %3o\n", at-skip, a[i], b[i])
				case shown:
					out.Printf("%s %s differ: byte %d, line %d is %3o %s %3o %s\n", operands[0], operands[1], at-skip, line, a[i], visible(a[i]), b[i], visible(b[i]))
					return 1
				default:
					out.Printf("%s %s differ: byte %d, line %d\n", operands[0], operands[1], at-skip, line)
					return 1
				}
			}
			if a[i] == '\n' {
				line++
			}
		}
		a, b = a[n:], b[n:]
	}
	for i, in := range ins {
		if err := in.Err(); err != nil {
			p.Errorf("%s: %s", operands[i], program.Message(err))
			return 2
		}
	}
	if (len(a) > 0 || len(b) > 0) && (limit < 0 || at < limit) {
		short := operands[0]
		if len(a) > 0 {
			short = operands[1]
		}
		if !silent {
			switch {
			case at == 0:
				p.Errorf("EOF on %s which is empty", short)
			case verbose:
				p.Errorf("EOF on %s after byte %d", short, at)
			default:
				p.Errorf("EOF on %s after byte %d, in line %d", short, at, line)
			}
		}
		return 1
	}
	return code
}

// visible writes a byte as cat -v does.
func visible(c byte) string {
	s := ""
	if c >= 0x80 {
		s, c = "M-", c-0x80
	}
	switch {
	case c < ' ':
		return s + "^" + string(rune(c+'@'))
	case c == 0x7f:
		return s + "^?"
	}
	return s + string(rune(c))
}
