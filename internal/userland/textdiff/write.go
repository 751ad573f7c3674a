package textdiff

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"agentbox/internal/userland/gnu"
)

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
			gnu.Check(c.p, 2, err)
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

// heading is the last line before a hunk that begins a function, if an option requests it.
func (c *comparer) heading(x *side, before int) string {
	if c.function == nil {
		return ""
	}
	for i := before - 1; i >= 0; i-- {
		line := bytes.TrimRight(x.lines[i], " \t\r\n")
		ok, err := c.function.Match(line)
		gnu.Check(c.p, 2, err)
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
