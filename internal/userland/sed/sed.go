// Package sed is the stream editor of the virtual shell: GNU sed without the commands that start programs.
package sed

import (
	"errors"
	"strconv"
	"strings"

	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// Program returns sed.
func Program() program.Program { return program.Func(run) }

// The exit codes of sed.
const (
	exitUsage = 1
	exitInput = 2
	exitPanic = 4
)

// piece is a part of the script: an -e or a file.
type piece struct {
	file string // "" for an expression
	at   int    // where it begins
	nth  int
}

func run(p *program.Process) int {
	e := &editor{p: p, delim: '\n', wrap: 70, outputs: map[string]*output{}, reads: map[string]*program.Input{}}
	opts, operands := p.Options(exitUsage, "ne:f:ErsuzbVi::l:", "quiet n", "silent n", "expression= e", "file= f", "regexp-extended E",
		"in-place=? i", "line-length= l",
		"separate s", "unbuffered u", "null-data z", "zero-terminated z", "posix", "debug", "sandbox", "follow-symlinks", "binary b")
	var script strings.Builder
	var pieces []piece
	add := func(text, file string) {
		if len(pieces) > 0 {
			script.WriteByte('\n')
		}
		pieces = append(pieces, piece{file, script.Len(), len(pieces) + 1})
		script.WriteString(text)
	}
	c := &compiler{p: p, e: e}
	for _, o := range opts {
		switch o.Name {
		case "n":
			e.quiet = true
		case "e":
			add(o.Value, "")
		case "f":
			add(strings.TrimSuffix(e.slurp(o.Value), "\n"), o.Value)
		case "E", "r":
			c.flags |= posix.Extended
		case "s":
			e.separate = true
		case "i":
			e.inPlace, e.separate, e.suffix = true, true, o.Value
		case "l":
			n, err := strconv.Atoi(o.Value)
			if err != nil || n < 0 {
				p.Errorf("invalid line length: %s", o.Value)
				return exitUsage
			}
			e.wrap = n
		case "z":
			e.delim = 0
		case "sandbox":
			c.sandbox = true
		case "follow-symlinks":
			e.follow = true
		}
	}
	if len(pieces) == 0 {
		if len(operands) == 0 {
			p.Stderrf("Usage: sed [OPTION]... {script-only-if-no-other-script} [input-file]...\n")
			return exitUsage
		}
		add(operands[0], "")
		operands = operands[1:]
	}
	c.src, c.pieces = script.String(), pieces
	if strings.HasPrefix(c.src, "#n\n") || c.src == "#n" {
		e.quiet = true
	}
	if err := c.compile(); err != nil {
		p.Errorf("%s", err.Error())
		if _, ok := errors.AsType[noLabel](err); ok {
			return exitPanic
		}
		return exitUsage
	}
	e.commands = c.commands
	e.stdout = &output{w: p.Out()}
	e.main = e.stdout
	for _, cmd := range e.commands {
		if cmd.file != "" && (cmd.name == 'w' || cmd.name == 'W' || cmd.name == 's') {
			cmd.out = e.open(cmd.file)
		}
	}
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	e.files = operands
	code := e.run()
	for _, o := range e.outputs {
		o.w.Flush()
	}
	return max(code, e.code)
}

// slurp reads a script.
func (e *editor) slurp(path string) string {
	h := e.p.Stdin
	if path != "-" {
		var err error
		if h, err = e.p.Open(path, vfs.Read); err != nil {
			e.p.Errorf("couldn't open file %s: %s", path, program.Message(err))
			e.p.Exit(exitUsage)
		}
	}
	return string(e.p.Reader(h).All())
}

// output is where lines are written.
type output struct {
	w       *program.Output
	missing bool // the last line had no newline: one is due before the next
}

func (o *output) line(text []byte, delim byte, ended bool) {
	o.due(delim)
	_, _ = o.w.Write(text)
	if ended {
		_ = o.w.WriteByte(delim)
	} else {
		o.missing = true
	}
}

func (o *output) text(s string, delim byte) {
	o.due(delim)
	_, _ = o.w.WriteString(s)
}

func (o *output) due(delim byte) {
	if o.missing {
		_ = o.w.WriteByte(delim)
		o.missing = false
	}
}

// editor runs a script.
type editor struct {
	p        *program.Process
	commands []*command
	quiet    bool
	separate bool
	inPlace  bool
	follow   bool
	suffix   string
	delim    byte
	wrap     int

	files   []string // that are still to be read
	name    string   // of the one that is read
	in      *program.Input
	handle  *vfs.Handle
	next    []byte // the line that comes
	ended   bool   // it ends with a newline
	has     bool   // there is one
	line    int
	code    int
	stdout  *output
	main    *output // where lines go: stdout, or the new file
	edited  string  // the path of the file that is edited in place
	scratch string
	temps   int
	fresh   *vfs.Handle
	outputs map[string]*output
	reads   map[string]*program.Input

	pattern  []byte
	chomped  bool // the pattern's line ended with a newline
	hold     []byte
	appended []func()
	swapped  bool // an s has replaced something, for t
	last     *posix.Regexp
	counted  int // bytes that are held for pattern and hold
}

func (e *editor) open(path string) *output {
	switch path {
	case "/dev/stdout":
		return e.stdout
	case "/dev/stderr":
		return &output{w: e.p.Writer(e.p.Stderr)}
	}
	if o := e.outputs[path]; o != nil {
		return o
	}
	h, err := e.p.Open(path, vfs.Write|vfs.Create|vfs.Truncate)
	if err != nil {
		e.p.Errorf("couldn't open file %s: %s", path, program.Message(err))
		e.p.Exit(exitPanic)
	}
	o := &output{w: e.p.Writer(h)}
	e.outputs[path] = o
	return o
}

// peek readies the next line of the file that is read, and reports whether there is one.
func (e *editor) peek() bool {
	if e.has {
		return true
	}
	if e.in == nil {
		return false
	}
	line, ended, ok := e.in.Line(e.delim)
	if !ok {
		if err := e.in.Err(); err != nil {
			if errors.Is(err, vfs.EISDIR) {
				e.p.Errorf("couldn't read %s: %s", e.name, program.Message(err))
			} else {
				e.p.Errorf("read error on %s: %s", e.name, program.Message(err))
			}
			e.code = exitInput
		}
		e.finish()
		return false
	}
	e.next, e.ended, e.has = append(e.next[:0], line...), ended, true
	return true
}

// finish closes the file that was read and, if it is edited in place, puts the new one in its place.
func (e *editor) finish() {
	e.in = nil
	if e.handle != nil {
		_ = e.p.Close(e.handle)
		e.handle = nil
	}
	if e.fresh == nil {
		return
	}
	e.main.w.Flush()
	_ = e.p.Close(e.fresh)
	e.fresh, e.main = nil, e.stdout
	fs, at := e.p.FS, e.p.At()
	if e.suffix != "" {
		backup := e.suffix
		dir, base := "", e.edited
		if i := strings.LastIndexByte(e.edited, '/'); i >= 0 {
			dir, base = e.edited[:i+1], e.edited[i+1:]
		}
		if strings.Contains(backup, "*") {
			backup = strings.ReplaceAll(backup, "*", base)
		} else {
			backup = base + backup
		}
		if !strings.Contains(backup, "/") {
			backup = dir + backup
		}
		if err := fs.Rename(at, e.edited, at, backup); err != nil {
			e.p.Errorf("cannot rename %s: %s", e.edited, program.Message(err))
			e.p.Exit(exitPanic)
		}
	}
	if err := fs.Rename(at, e.scratch, at, e.edited); err != nil {
		e.p.Errorf("cannot rename %s: %s", e.scratch, program.Message(err))
		e.p.Exit(exitPanic)
	}
}

// advance opens the next file that has a line, and reports whether there is one.
func (e *editor) advance() bool {
	for !e.peek() {
		if len(e.files) == 0 {
			return false
		}
		e.name, e.files = e.files[0], e.files[1:]
		if e.name == "-" && !e.inPlace {
			e.in = e.p.Reader(e.p.Stdin)
			e.restart()
			continue
		}
		if e.inPlace {
			if !e.edit() {
				continue
			}
		}
		h, err := e.p.Open(e.name, vfs.Read)
		if err != nil {
			e.p.Errorf("can't read %s: %s", e.name, program.Message(err))
			e.code = exitInput
			continue
		}
		if h.Kind() == vfs.Directory {
			e.p.Errorf("couldn't edit %s: not a regular file", e.name)
		}
		e.handle, e.in = h, e.p.Reader(h)
		e.restart()
	}
	return true
}

// restart begins to count anew where files are edited apart.
func (e *editor) restart() {
	if e.separate {
		e.line = 0
		for _, c := range e.commands {
			if c.from != nil && c.from.kind == byNumber {
				c.active, c.closed = c.from.n == 0, false
			}
		}
		for _, c := range e.commands {
			c.active = c.from != nil && c.from.kind == byNumber && c.from.n == 0 && c.to != nil
		}
	}
}

// edit makes the file into which the next one is edited.
func (e *editor) edit() bool {
	e.edited = e.name
	if e.follow {
		if target, err := e.p.FS.Readlink(e.p.At(), e.name); err == nil {
			if !strings.HasPrefix(target, "/") {
				target = e.name[:strings.LastIndexByte(e.name, '/')+1] + target
			}
			e.edited = target
		}
	}
	info, err := e.p.FS.Stat(e.p.At(), e.name, true)
	switch {
	case err != nil:
		e.p.Errorf("can't read %s: %s", e.name, program.Message(err))
		e.code = exitInput
		return false
	case info.Kind != vfs.Regular:
		e.p.Errorf("couldn't edit %s: not a regular file", e.name)
		e.code = exitPanic
		return false
	}
	dir := e.edited[:strings.LastIndexByte(e.edited, '/')+1]
	for {
		e.temps++
		e.scratch = dir + "sed" + strconv.Itoa(100000+e.temps)
		h, err := e.p.Open(e.scratch, vfs.Write|vfs.Create|vfs.Exclusive)
		if errors.Is(err, vfs.EEXIST) {
			continue
		}
		if err != nil {
			e.p.Errorf("couldn't open temporary file %s: %s", e.scratch, program.Message(err))
			e.p.Exit(exitPanic)
		}
		_ = h.Node().Chmod(info.Mode)
		e.fresh, e.main = h, &output{w: e.p.Writer(h)}
		return true
	}
}

// atEnd reports whether no line follows.
func (e *editor) atEnd() bool {
	if e.peekQuietly() {
		return false
	}
	if e.separate {
		return true
	}
	return !e.advance()
}

// peekQuietly is peek that leaves a file which is edited in place open at its end, since its last line is still to be written.
func (e *editor) peekQuietly() bool {
	if e.fresh == nil {
		return e.peek()
	}
	if e.has {
		return true
	}
	if e.in == nil {
		return false
	}
	line, ended, ok := e.in.Line(e.delim)
	if ok {
		e.next, e.ended, e.has = append(e.next[:0], line...), ended, true
	}
	return ok
}

// read makes the next line the pattern, or appends it, and reports whether there is one.
func (e *editor) read(join bool) bool {
	if !e.advance() {
		return false
	}
	if join {
		e.pattern = append(append(e.pattern, e.delim), e.next...)
	} else {
		e.pattern = append(e.pattern[:0], e.next...)
	}
	e.chomped, e.has = e.ended, false
	e.line++
	e.account()
	return true
}

// account counts what the spaces hold.
func (e *editor) account() {
	size := (cap(e.pattern) + cap(e.hold)) &^ 0xfff
	if size > e.counted {
		e.p.Hold(size - e.counted)
		e.counted = size
	}
}

// print writes the pattern.
func (e *editor) print() { e.main.line(e.pattern, e.delim, e.chomped) }

// flush writes what is to be appended.
func (e *editor) flush() {
	for _, f := range e.appended {
		f()
	}
	e.appended = e.appended[:0]
}
