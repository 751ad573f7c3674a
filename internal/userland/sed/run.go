package sed

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// outcome is how a cycle ended.
type outcome uint8

const (
	cycled  outcome = iota // print and read on
	deleted                // read on
	kept                   // go on with what is left of the pattern
	quit                   // print and end
	quitNow                // end
)

func (e *editor) run() int {
	again := false
	for again || e.read(false) {
		again = false
		how, code := e.cycle()
		if !e.quiet && (how == cycled || how == quit) {
			e.print()
		}
		if how != quitNow {
			e.flush()
		}
		switch how {
		case quit, quitNow:
			e.drain(how == quit || how == quitNow)
			return code
		case kept:
			again = true
		}
	}
	e.drain(false)
	return 0
}

// drain ends the file that is edited in place. After q what is left of it is kept.
func (e *editor) drain(rest bool) {
	if e.fresh != nil && rest {
		for e.peekQuietly() {
			e.main.line(e.next, e.delim, e.ended)
			e.has = false
		}
	}
	if e.fresh != nil {
		e.finish()
	} else if rest && e.in != nil && e.handle == nil {
		e.in.Unread()
	}
}

// cycle runs the commands on one line. It is long because it is one switch over the commands.
//
//nolint:cyclop // one case for each command
func (e *editor) cycle() (outcome, int) {
	e.swapped = false
	for pc := 0; pc < len(e.commands); pc++ {
		e.p.Charge(30)
		c := e.commands[pc]
		if e.selects(c) == c.not {
			if c.name == '{' {
				pc = c.jump
			}
			continue
		}
		switch c.name {
		case '=':
			e.main.text(strconv.Itoa(e.line)+"\n", e.delim)
		case 'a':
			e.appended = append(e.appended, func() { e.main.text(c.text, e.delim) })
		case 'i':
			e.main.text(c.text, e.delim)
		case 'c':
			if c.to == nil || !c.active || c.not {
				e.main.text(c.text, e.delim)
			}
			return deleted, 0
		case 'b':
			pc = c.jump - 1
		case 't':
			if e.swapped {
				e.swapped = false
				pc = c.jump - 1
			}
		case 'T':
			if !e.swapped {
				pc = c.jump - 1
			}
			e.swapped = false
		case 'd':
			return deleted, 0
		case 'D':
			i := bytes.IndexByte(e.pattern, e.delim)
			if i < 0 {
				return deleted, 0
			}
			e.pattern = append(e.pattern[:0], e.pattern[i+1:]...)
			return kept, 0
		case 'F':
			e.main.text(e.name+"\n", e.delim)
		case 'g':
			e.pattern = append(e.pattern[:0], e.hold...)
		case 'G':
			e.pattern = append(append(e.pattern, e.delim), e.hold...)
		case 'h':
			e.hold = append(e.hold[:0], e.pattern...)
		case 'H':
			e.hold = append(append(e.hold, e.delim), e.pattern...)
		case 'x':
			e.pattern, e.hold = e.hold, e.pattern
		case 'z':
			e.pattern = e.pattern[:0]
		case 'l':
			e.list(c.n)
		case 'n':
			if e.atEnd() && len(e.files) == 0 {
				return quit, 0
			}
			if !e.quiet {
				e.print()
			}
			e.flush()
			if !e.read(false) {
				return quitNow, 0
			}
		case 'N':
			if e.atEnd() && (!e.separate || len(e.files) == 0) || e.separate && e.atEnd() {
				if e.separate && len(e.files) > 0 {
					return cycled, 0
				}
				return quit, 0
			}
			e.flush()
			e.read(true)
		case 'p':
			e.print()
		case 'P':
			text := e.pattern
			if i := bytes.IndexByte(text, e.delim); i >= 0 {
				text = text[:i]
			}
			e.main.line(text, e.delim, true)
		case 'q':
			return quit, max(c.n, 0)
		case 'Q':
			return quitNow, max(c.n, 0)
		case 'r':
			e.appended = append(e.appended, func() { e.copy(c.file) })
		case 'R':
			if line, ended, ok := e.lineOf(c.file); ok {
				e.appended = append(e.appended, func() { e.main.line(line, e.delim, ended) })
			}
		case 's':
			e.substitute(c)
		case 'w':
			c.out.line(e.pattern, e.delim, e.chomped)
			c.out.w.Flush()
		case 'W':
			text := e.pattern
			if i := bytes.IndexByte(text, e.delim); i >= 0 {
				text = text[:i]
			}
			c.out.line(text, e.delim, true)
			c.out.w.Flush()
		case 'y':
			e.p.Charge(len(e.pattern) * 10)
			var b []byte
			for i := 0; i < len(e.pattern); {
				r, size := utf8.DecodeRune(e.pattern[i:])
				if to, ok := c.table[r]; ok {
					b = utf8.AppendRune(b, to)
				} else {
					b = append(b, e.pattern[i:i+size]...)
				}
				i += size
			}
			e.pattern = b
		}
		e.account()
	}
	return cycled, 0
}

// selects reports whether the line is one of those that a command's addresses mean.
func (e *editor) selects(c *command) bool {
	switch {
	case c.from == nil:
		return true
	case c.to == nil:
		return e.matches(c.from)
	}
	if c.active {
		return e.inRange(c)
	}
	return e.begins(c)
}

// inRange reports whether the line belongs to the range that a command is in, and whether that goes on.
func (e *editor) inRange(c *command) bool {
	switch c.to.kind {
	case byNumber, byOffset, byMultiple:
		end := c.end
		if c.to.kind == byNumber {
			end = c.to.n
		}
		c.active = e.line < end
		c.closed = !c.active
		return e.line <= end
	}
	c.active = !e.matches(c.to)
	c.closed = !c.active
	return true
}

// begins reports whether the range of a command begins at the line. One that begins with a number does so at the first line from there
// that the command sees.
func (e *editor) begins(c *command) bool {
	switch {
	case c.from.kind != byNumber:
		if !e.matches(c.from) {
			return false
		}
	case c.closed || e.line < c.from.n:
		return false
	case c.to.kind == byNumber && e.line >= c.to.n:
		c.closed = true
		return e.line == c.from.n || e.line == c.to.n
	}
	switch c.to.kind {
	case byNumber:
		c.end = c.to.n
	case byOffset:
		c.end = e.line + c.to.n
	case byMultiple:
		c.end = e.line
		if c.to.n > 0 {
			c.end = (e.line + c.to.n - 1) / c.to.n * c.to.n
		}
	case byLast:
		c.active = !e.atEnd()
		return true
	default:
		c.active = true
		return true
	}
	c.active = e.line < c.end
	c.closed = !c.active
	return true
}

func (e *editor) matches(a *address) bool {
	switch a.kind {
	case byNumber:
		return e.line == a.n
	case byStep:
		if a.step <= 0 {
			return e.line == a.n
		}
		return e.line >= a.n && (e.line-a.n)%a.step == 0
	case byLast:
		return e.atEnd()
	}
	ok, err := e.resolve(a.re).Match(e.pattern)
	e.check(err)
	return ok
}

// resolve returns the expression, or the last one that was used for an empty one.
func (e *editor) resolve(re *posix.Regexp) *posix.Regexp {
	if re == nil {
		if e.last == nil {
			e.p.Errorf("no previous regular expression")
			e.p.Exit(exitUsage)
		}
		return e.last
	}
	e.last = re
	return re
}

func (e *editor) check(err error) {
	if err != nil {
		e.p.Errorf("%s", err.Error())
		e.p.Exit(exitPanic)
	}
}

func (e *editor) substitute(c *command) {
	s := c.sub
	re := e.resolve(s.re)
	n := s.nth
	if s.global {
		n = -1
	}
	var all [][]int
	var err error
	if n == 1 {
		var m []int
		if m, err = re.Find(e.pattern); m != nil {
			all = [][]int{m}
		}
	} else {
		all, err = re.FindAll(e.pattern, n)
	}
	e.check(err)
	if len(all) < s.nth {
		return
	}
	r := replacer{p: e.p}
	last := 0
	for _, m := range all[s.nth-1:] {
		r.out = e.p.Append(r.out, e.pattern[last:m[0]])
		last = m[1]
		before := len(r.out)
		r.expand(s.parts, e.pattern, m)
		e.p.Charge(30 + (len(r.out)-before)/8)
		if len(r.out) > 1<<16 && int64(len(r.out)) > e.p.Account.Spare() {
			e.p.Hold(len(r.out))
		}
	}
	r.out = e.p.Append(r.out, e.pattern[last:])
	e.pattern = r.out
	e.p.Charge(len(r.out) / 8)
	e.swapped = true
	if s.print > 0 {
		e.print()
	}
	if c.out != nil {
		c.out.line(e.pattern, e.delim, e.chomped)
		c.out.w.Flush()
	}
}

// replacer writes replacements with the cases that they ask for.
type replacer struct {
	p    *program.Process
	out  []byte
	mode byte // L or U
	once byte // l or u
}

func (r *replacer) expand(parts []part, text []byte, m []int) {
	r.mode, r.once = 0, 0
	for _, x := range parts {
		switch {
		case x.mode == 'L' || x.mode == 'U':
			r.mode = x.mode
		case x.mode == 'E':
			r.mode = 0
		case x.mode != 0:
			r.once = x.mode
		case x.group < 0:
			r.add(x.text)
		case 2*x.group+1 < len(m) && m[2*x.group] >= 0:
			if r.mode == 0 && r.once == 0 {
				r.out = r.p.Append(r.out, text[m[2*x.group]:m[2*x.group+1]])
			} else {
				r.add(string(text[m[2*x.group]:m[2*x.group+1]]))
			}
		}
	}
}

func (r *replacer) add(s string) {
	switch r.mode {
	case 'L':
		s = strings.ToLower(s)
	case 'U':
		s = strings.ToUpper(s)
	}
	if r.once != 0 && s != "" {
		first, size := utf8.DecodeRuneInString(s)
		if r.once == 'u' {
			first = unicode.ToUpper(first)
		} else {
			first = unicode.ToLower(first)
		}
		s = string(first) + s[size:]
		r.once = 0
	}
	r.out = append(r.out, s...)
}

// copy appends a file, if it is there.
func (e *editor) copy(path string) {
	h := e.p.Stdin
	if path != "/dev/stdin" {
		var err error
		if h, err = e.p.Open(path, vfs.Read); err != nil {
			return
		}
		defer func() { _ = e.p.Close(h) }()
	}
	e.main.due(e.delim)
	in := e.p.Reader(h)
	for b := in.Chunk(); b != nil; b = in.Chunk() {
		_, _ = e.main.w.Write(b)
	}
}

// lineOf reads the next line of a file.
func (e *editor) lineOf(path string) (line []byte, ended, ok bool) {
	in := e.reads[path]
	if in == nil {
		h := e.p.Stdin
		if path != "/dev/stdin" {
			var err error
			if h, err = e.p.Open(path, vfs.Read); err != nil {
				return nil, false, false
			}
		}
		in = e.p.Reader(h)
		e.reads[path] = in
	}
	line, ended, ok = in.Line(e.delim)
	return bytes.Clone(line), ended, ok
}

// list writes the pattern in a form that shows everything.
func (e *editor) list(wrap int) {
	if wrap < 0 {
		wrap = e.wrap
	}
	var b strings.Builder
	width := 0
	for _, c := range e.pattern {
		var s string
		switch {
		case c == '\\':
			s = `\\`
		case c >= ' ' && c < 0x7f:
			s = string(rune(c))
		case c >= '\a' && c <= '\r':
			s = `\` + string("abtnvfr"[c-'\a'])
		default:
			o := strconv.FormatUint(uint64(c), 8)
			s = `\` + strings.Repeat("0", 3-len(o)) + o
		}
		if wrap > 1 && width+len(s) > wrap-1 {
			b.WriteString("\\\n")
			width = 0
		}
		b.WriteString(s)
		width += len(s)
	}
	b.WriteString("$\n")
	e.main.text(b.String(), e.delim)
}
