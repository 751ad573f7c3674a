package layout

import (
	"strconv"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
)

// tabStops are the stops of expand and unexpand: a list, and what follows its last one.
type tabStops struct {
	list   []int
	every  int // /N: behind the list, columns that are multiples of it
	behind int // +N: behind the list, so many columns after its last stop or the stop before
}

// maxTab is the largest stop.
const maxTab = 1 << 40

// add reads a list of stops.
func (t *tabStops) add(p *program.Process, s string) {
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		digits := strings.TrimLeft(word, "/+")
		n, err := strconv.Atoi(digits)
		if strings.Trim(digits, "0123456789") != "" || digits == "" && len(word) == 0 {
			if i := strings.IndexAny(digits, "/+"); i > 0 && strings.Trim(digits[:i], "0123456789") == "" {
				t.fail(p, "'%c' specifier not at start of number: %s", digits[i], gnu.Quote(digits[i:]))
			}
			t.fail(p, "tab size contains invalid character(s): %s", gnu.Quote(strings.TrimLeft(digits, "0123456789")))
		}
		if digits != "" && (err != nil || n > maxTab) {
			t.fail(p, "tab stop is too large %s", gnu.Quote(digits))
		}
		kind := byte(0)
		if word != digits {
			kind = word[len(word)-len(digits)-1]
		}
		switch {
		case digits == "":
		case kind == '/' && t.every > 0:
			t.fail(p, "'/' specifier only allowed with the last value")
		case kind == '/':
			t.every = n
		case kind == '+' && t.behind > 0:
			t.fail(p, "'+' specifier only allowed with the last value")
		case kind == '+':
			t.behind = n
		case t.every > 0:
			t.fail(p, "'/' specifier only allowed with the last value")
		case t.behind > 0:
			t.fail(p, "'+' specifier only allowed with the last value")
		default:
			t.list = append(t.list, n)
		}
	}
}

func (t *tabStops) fail(p *program.Process, format string, args ...any) {
	p.Errorf(format, args...)
	p.Exit(1)
}

// finish looks whether the stops are in order. Without any, each eighth column is one.
func (t *tabStops) finish(p *program.Process) {
	for i, n := range t.list {
		if n == 0 {
			t.fail(p, "tab size cannot be 0")
		}
		if i > 0 && n <= t.list[i-1] {
			t.fail(p, "tab sizes must be ascending")
		}
	}
	if t.every > 0 && t.behind > 0 {
		t.fail(p, "'/' specifier is mutually exclusive with '+'")
	}
	if len(t.list) == 0 && t.every == 0 {
		t.every, t.behind = max(t.behind, 0), 0
		if t.every == 0 {
			t.every = 8
		}
	}
	if len(t.list) == 1 && t.every == 0 && t.behind == 0 {
		t.every, t.list = t.list[0], nil
	}
}

// next returns the next stop behind a column, or false where there is none.
func (t *tabStops) next(column int) (int, bool) {
	for _, n := range t.list {
		if n > column {
			return n, true
		}
	}
	switch {
	case t.every > 0:
		return column + t.every - column%t.every, true
	case t.behind > 0:
		last := t.list[len(t.list)-1]
		return column + t.behind - (column-last)%t.behind, true
	}
	return column + 1, false
}

// digitsAsTabs makes -t4,8 of -4,8, and reports whether there was one.
func digitsAsTabs(p *program.Process) (some bool) {
	args := p.Args[:1:1]
	for i, a := range p.Args[1:] {
		if a == "--" {
			args = append(args, p.Args[i+1:]...)
			break
		}
		if len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "0123456789,") == "" {
			a, some = "-t"+a[1:], true
		}
		args = append(args, a)
	}
	p.Args = args
	return some
}

func expand(p *program.Process) int {
	digitsAsTabs(p)
	opts, operands := p.Options(1, "it:", "initial i", "tabs= t")
	stops, initial := &tabStops{}, false
	for _, o := range opts {
		if o.Name == "i" {
			initial = true
		} else {
			stops.add(p, o.Value)
		}
	}
	stops.finish(p)
	return gnu.EachInput(p, operands, func(_ string, in *program.Input) {
		column, convert := 0, true
		for chunk := in.Chunk(); chunk != nil; chunk = in.Chunk() {
			p.Charge(len(chunk))
			for _, c := range chunk {
				column, convert = stops.expand(p, c, column, convert)
				if initial && c != ' ' && c != '\t' {
					convert = false
				}
				if c == '\n' {
					column, convert = 0, true
				}
			}
		}
	})
}

// expand writes a character at a column, and returns the column behind it.
func (t *tabStops) expand(p *program.Process, c byte, column int, convert bool) (int, bool) {
	switch {
	case !convert:
	case c == '\t':
		p.Charge(len(t.list))
		next, _ := t.next(column)
		p.Out().Fill(' ', next-column)
		return next, true
	case c == '\b':
		column = max(column-1, 0)
	default:
		column++
	}
	_ = p.Out().WriteByte(c)
	return column, convert
}

// unexpander makes tabs of blanks.
type unexpander struct {
	p       *program.Process
	stops   *tabStops
	all     bool // also behind what is not a blank
	column  int
	convert bool
	blank   bool // the character before was one
	before  bool // a single blank stands right before a stop
	pending int  // blanks that are not written yet
	tab     bool // the first of them is a tab
}

func unexpand(p *program.Process) int {
	old := digitsAsTabs(p)
	opts, operands := p.Options(1, "aft:", "all a", "first-only f", "tabs= t")
	u := &unexpander{p: p, stops: &tabStops{}}
	first := false
	for _, o := range opts {
		switch o.Name {
		case "a":
			u.all = true
		case "f":
			first = true
		case "t":
			u.all = u.all || !old
			u.stops.add(p, o.Value)
		}
	}
	if first {
		u.all = false
	}
	u.stops.finish(p)
	u.line()
	code := gnu.EachInput(p, operands, func(_ string, in *program.Input) {
		for chunk := in.Chunk(); chunk != nil; chunk = in.Chunk() {
			p.Charge(len(chunk) * 2)
			for _, c := range chunk {
				u.put(c)
			}
		}
	})
	u.flush()
	return code
}

// line begins a line.
func (u *unexpander) line() {
	u.column, u.convert, u.blank, u.before, u.pending, u.tab = 0, true, true, false, 0, false
}

// put takes a character.
func (u *unexpander) put(c byte) {
	if u.convert {
		blank := c == ' ' || c == '\t'
		switch {
		case blank:
			var kept bool
			if c, kept = u.space(c); kept {
				return
			}
		case c == '\b':
			u.column = max(u.column-1, 0)
		default:
			u.column++
		}
		u.flush()
		u.blank = blank
		u.convert = u.convert && (u.all || blank)
	}
	_ = u.p.Out().WriteByte(c)
	if c == '\n' {
		u.line()
	}
}

// space takes a blank, and reports whether it waits for what follows. Else it returns what stands for it.
func (u *unexpander) space(c byte) (byte, bool) {
	u.p.Charge(len(u.stops.list))
	next, some := u.stops.next(u.column)
	if !some {
		u.convert = false
		return c, false
	}
	if c == '\t' {
		u.column = next
		u.tab = u.pending > 0
	} else {
		u.column++
		if !u.blank || u.column != next {
			u.before = u.before || u.column == next
			u.pending++
			u.blank = true
			return c, true
		}
		c, u.tab = '\t', true
	}
	if u.pending = 0; u.before {
		u.pending = 1
	}
	return c, false
}

// flush writes the blanks that wait.
func (u *unexpander) flush() {
	if u.pending == 0 {
		u.tab = false
		return
	}
	if u.pending > 1 && u.before {
		u.tab = true
	}
	if u.tab {
		_ = u.p.Out().WriteByte('\t')
		u.pending--
	}
	u.p.Out().Fill(' ', u.pending)
	u.pending, u.before, u.tab = 0, false, false
}
