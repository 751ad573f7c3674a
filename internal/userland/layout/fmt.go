// Package layout has the commands that arrange text for a page: fmt, fold, column, pr, ptx, nl and expand.
package layout

import (
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
)

// Programs returns the commands of this package by their names.
func Programs() program.Table {
	return program.Functions(map[string]program.Func{
		"column": column, "expand": expand, "fmt": fmtCommand, "fold": fold,
		"nl": nl, "pr": pr, "ptx": ptx, "rev": rev, "unexpand": unexpand,
	})
}

// Limits of one paragraph of fmt. It writes a longer one in parts.
const (
	fillWords = 1000
	fillBytes = 5000
)

// filler breaks paragraphs into lines as GNU's fmt does: with the least cost over all.
type filler struct {
	p   *program.Process
	out *program.Output
	in  *program.Input

	width, goal                   int
	crown, tagged, split, uniform bool
	prefix                        string
	prefixLead, prefixFull        int // spaces before the prefix; its length with those behind it

	chunk []byte // of the input

	tabs                     bool // the input has tabs, so the output may
	inColumn, outColumn      int
	nextIndent, indent       int // of the prefix: of the line that comes, of the paragraph
	firstIndent, otherIndent int
	next                     int // the character that comes, -1 at the end
	lastLength               int // of the line before
	words                    []fillWord
	held                     int // bytes of the words
}

type fillWord struct {
	text                        string
	space                       int
	paren, period, punct, final bool
	length                      int // of the line that begins here
	cost                        int64
	next                        int
}

// fmtCommand fills paragraphs.
func fmtCommand(p *program.Process) int {
	if len(p.Args) > 1 && len(p.Args[1]) > 1 && p.Args[1][0] == '-' && p.Args[1][1] >= '0' && p.Args[1][1] <= '9' {
		p.Args = append([]string{p.Args[0], "-w" + p.Args[1][1:]}, p.Args[2:]...)
	}
	for _, a := range p.Args[1:] {
		if len(a) > 1 && a[0] == '-' && a[1] >= '0' && a[1] <= '9' {
			p.Errorf("invalid option -- %c; -WIDTH is recognized only when it is the first\noption; use -w N instead", a[1])
			p.Stderrf("Try '%s --help' for more information.\n", p.Name())
			return 1
		}
	}
	opts, operands := p.Options(1, "cp:stug:w:", "crown-margin c", "prefix= p", "split-only s", "tagged-paragraph t", "uniform-spacing u",
		"goal= g", "width= w")
	f := &filler{p: p, width: 75}
	width, goal := "", ""
	for _, o := range opts {
		switch o.Name {
		case "w":
			width = o.Value
		case "g":
			goal = o.Value
		case "s":
			f.split = true
		case "u":
			f.uniform = true
		case "c":
			f.crown = true
		case "t":
			f.tagged = true
		case "p":
			f.prefix = strings.TrimLeft(o.Value, " ")
			f.prefixLead = len(o.Value) - len(f.prefix)
			f.prefixFull = len(f.prefix)
			f.prefix = strings.TrimRight(f.prefix, " ")
		}
	}
	number := func(s string, most int) int {
		n, err := gnu.ParseSize(s)
		if err != nil || strings.Trim(s, "0123456789") != "" {
			p.Errorf("invalid width: %s", gnu.Quote(s))
			p.Exit(1)
		}
		if n > int64(most) {
			p.Errorf("invalid width: %s: Numerical result out of range", gnu.Quote(s))
			p.Exit(1)
		}
		return int(n)
	}
	if width != "" {
		f.width = number(width, fillBytes/2)
	}
	if goal != "" {
		f.goal = number(goal, f.width)
		if width == "" {
			f.width = f.goal + 10
		}
	} else {
		f.goal = f.width * 187 / 200
	}
	f.out = p.Out()
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	code := 0
	for _, name := range operands {
		in, done, err := gnu.OpenInput(p, name)
		if err != nil {
			p.Errorf("cannot open '%s' for reading: %s", name, program.Message(err))
			code = 1
			continue
		}
		f.in, f.chunk = in, nil
		f.file()
		if err := in.Err(); err != nil {
			p.Errorf("read error: %s", program.Message(err))
			code = 1
		}
		done()
	}
	return code
}

// file fills the paragraphs of one input.
func (f *filler) file() {
	f.tabs, f.otherIndent = false, 0
	f.next = f.lineStart()
	for f.read() {
		f.choose()
		f.write(len(f.words))
		f.drop(len(f.words))
	}
}

// char returns the next character of the input, -1 at its end.
func (f *filler) char() int {
	if len(f.chunk) == 0 {
		if f.chunk = f.in.Chunk(); f.chunk == nil {
			return -1
		}
		f.p.Charge(len(f.chunk) * 4)
	}
	c := f.chunk[0]
	f.chunk = f.chunk[1:]
	return int(c)
}

// spaces reads over blanks and returns what stands behind them.
func (f *filler) spaces(c int) int {
	for {
		switch c {
		case ' ':
			f.inColumn++
		case '\t':
			f.tabs = true
			f.inColumn = (f.inColumn/8 + 1) * 8
		default:
			return c
		}
		c = f.char()
	}
}

// lineStart reads over the margin and the prefix of a line, and returns what stands behind them.
func (f *filler) lineStart() int {
	f.inColumn = 0
	c := f.spaces(f.char())
	if f.prefix == "" {
		f.nextIndent = min(f.prefixLead, f.inColumn)
		return c
	}
	f.nextIndent = f.inColumn
	for _, want := range []byte(f.prefix) {
		if c != int(want) {
			return c
		}
		f.inColumn++
		c = f.char()
	}
	return f.spaces(c)
}

// same reports whether a line that begins with c may belong to the paragraph.
func (f *filler) same(c int) bool {
	return f.nextIndent == f.indent && f.inColumn >= f.nextIndent+f.prefixFull && c != '\n' && c >= 0
}

// read reads one paragraph, and copies what stands before it. It reports false at the end.
func (f *filler) read() bool {
	f.lastLength = 0
	c := f.next
	for c == '\n' || c < 0 || f.nextIndent < f.prefixLead || f.inColumn < f.nextIndent+f.prefixFull {
		if c = f.copy(c); c < 0 {
			f.next = -1
			return false
		}
		f.put('\n')
		c = f.lineStart()
	}
	f.indent, f.firstIndent = f.nextIndent, f.inColumn
	c = f.line(c)
	f.setOther(f.same(c))
	switch {
	case f.split:
	case f.crown, f.tagged:
		if f.same(c) && (f.crown || f.inColumn != f.firstIndent) {
			for {
				if c = f.line(c); !f.same(c) || f.inColumn != f.otherIndent {
					break
				}
			}
		}
	default:
		for f.same(c) && f.inColumn == f.otherIndent {
			c = f.line(c)
		}
	}
	if n := len(f.words); n > 0 {
		f.words[n-1].period, f.words[n-1].final = true, true
	}
	f.next = c
	return true
}

// copy writes a line that is in no paragraph, as it is.
func (f *filler) copy(c int) int {
	f.outColumn = 0
	if f.inColumn > f.nextIndent || c != '\n' && c >= 0 {
		f.blanks(f.nextIndent)
		for i := 0; f.outColumn != f.inColumn && i < len(f.prefix); i++ {
			f.put(f.prefix[i])
			f.outColumn++
		}
		if c >= 0 && c != '\n' {
			f.blanks(f.inColumn - f.outColumn)
		}
		if c < 0 && f.inColumn >= f.nextIndent+len(f.prefix) {
			f.put('\n')
		}
	}
	for c != '\n' && c >= 0 {
		f.put(byte(c))
		c = f.char()
	}
	return c
}

func (f *filler) put(c byte) { _ = f.out.WriteByte(c) }

// setOther decides the indent of the lines behind the first one.
func (f *filler) setOther(same bool) {
	switch {
	case f.split:
		f.otherIndent = f.firstIndent
	case f.crown:
		f.otherIndent = f.firstIndent
		if same {
			f.otherIndent = f.inColumn
		}
	case f.tagged:
		if same && f.inColumn != f.firstIndent {
			f.otherIndent = f.inColumn
		} else if f.otherIndent == f.firstIndent {
			f.otherIndent = 0
			if f.firstIndent == 0 {
				f.otherIndent = 3
			}
		}
	default:
		f.otherIndent = f.firstIndent
	}
}

// line reads the words of a line, of which c is the first character, and the beginning of the next.
func (f *filler) line(c int) int {
	var text []byte
	for c != '\n' && c >= 0 {
		text = text[:0]
		for {
			if f.held+len(text) == fillBytes {
				f.setOther(true)
				text = f.flush(text)
			}
			text = append(text, byte(c))
			if c = f.char(); c < 0 || c == ' ' || c >= '\t' && c <= '\r' {
				break
			}
		}
		w := fillWord{text: string(text)}
		f.inColumn += len(text)
		w.punctuation()
		start := f.inColumn
		c = f.spaces(c)
		w.space = f.inColumn - start
		w.final = c < 0 || w.period && (c == '\n' || w.space > 1)
		if c == '\n' || c < 0 || f.uniform {
			w.space = 1
			if w.final {
				w.space = 2
			}
		}
		if len(f.words) == fillWords-2 {
			f.setOther(true)
			f.flush(nil)
		}
		f.p.Hold(len(w.text) + 64)
		f.held += len(w.text)
		f.words = append(f.words, w)
	}
	return f.lineStart()
}

func (w *fillWord) punctuation() {
	if w.text == "" {
		return
	}
	last := w.text[len(w.text)-1]
	w.paren = strings.IndexByte("(['`\"", w.text[0]) >= 0
	w.punct = last < 0x80 && gnu.InClass("punct", rune(last))
	core := strings.TrimRight(w.text[1:], ")]'\"") // the first letter is never taken away
	last = w.text[len(core)]
	w.period = strings.IndexByte(".?!", last) >= 0
}

// flush writes the best part of a paragraph that is longer than what is held; text is the word that is being read, which is all where
// there is no other.
func (f *filler) flush(text []byte) []byte {
	if len(f.words) == 0 {
		_, _ = f.out.Write(text)
		return text[:0]
	}
	f.choose()
	const most = int64(1) << 62
	split, best := len(f.words), most
	for w := f.words[0].next; w != len(f.words); w = f.words[w].next {
		if d := f.words[w].cost - f.costAt(f.words[w].next); d < best {
			split, best = w, d
		}
		if best <= most-9 {
			best += 9
		}
	}
	f.write(split)
	f.drop(split)
	return text
}

func (f *filler) costAt(i int) int64 {
	if i == len(f.words) {
		return 0
	}
	return f.words[i].cost
}

// drop forgets the first words.
func (f *filler) drop(n int) {
	for _, w := range f.words[:n] {
		f.held -= len(w.text)
		f.p.Drop(len(w.text) + 64)
	}
	f.words = append(f.words[:0], f.words[n:]...)
}

func square(n int64) int64 { return n * n }

// choose decides where lines begin.
func (f *filler) choose() {
	n := len(f.words)
	for start := n - 1; start >= 0; start-- {
		best := int64(1) << 62
		length := f.otherIndent
		if start == 0 {
			length = f.firstIndent
		}
		length += len(f.words[start].text)
		w := start
		for {
			f.p.Charge(10)
			w++
			cost := f.lineCost(w, length) + f.costAt(w)
			if start == 0 && f.lastLength > 0 {
				cost += square(10*int64(length-f.lastLength)) / 2
			}
			if cost < best {
				best = cost
				f.words[start].next, f.words[start].length = w, length
			}
			if w == n {
				break
			}
			if length += f.words[w-1].space + len(f.words[w].text); length >= f.width {
				break
			}
		}
		f.words[start].cost = best + f.opening(start)
	}
}

// lineCost is what a line costs that ends before a word.
func (f *filler) lineCost(next, length int) int64 {
	if next == len(f.words) {
		return 0
	}
	cost := square(10 * int64(f.goal-length))
	if w := f.words[next]; w.next != len(f.words) {
		cost += square(10*int64(length-w.length)) / 2
	}
	return cost
}

// opening is what it costs to begin a line with a word.
func (f *filler) opening(i int) int64 {
	cost := square(70)
	w := &f.words[i]
	if i > 0 {
		before := &f.words[i-1]
		switch {
		case before.period && before.final:
			cost -= square(50)
		case before.period:
			cost += square(600)
		case before.punct:
			cost -= square(40)
		case i > 1 && f.words[i-2].final:
			cost += square(200) / int64(len(before.text)+2)
		}
	}
	switch {
	case w.paren:
		cost -= square(40)
	case w.final:
		cost += square(150) / int64(len(w.text)+2)
	}
	return cost
}

// write writes the lines up to a word.
func (f *filler) write(end int) {
	indent := f.firstIndent
	for w := 0; w < end; w = f.words[w].next {
		f.outColumn = 0
		f.blanks(f.indent)
		f.out.WriteString(f.prefix)
		f.outColumn += len(f.prefix)
		f.blanks(indent - f.outColumn)
		for i := w; i < f.words[w].next; i++ {
			f.out.WriteString(f.words[i].text)
			f.outColumn += len(f.words[i].text)
			if i+1 < f.words[w].next {
				f.blanks(f.words[i].space)
			}
		}
		f.lastLength = f.outColumn
		f.put('\n')
		indent = f.otherIndent
	}
}

// blanks writes so much space, by tabs where the input had some.
func (f *filler) blanks(n int) {
	target := f.outColumn + n
	if tab := target / 8 * 8; f.tabs && f.outColumn+1 < tab {
		for f.outColumn < tab {
			f.put('\t')
			f.outColumn = (f.outColumn/8 + 1) * 8
		}
	}
	for f.outColumn < target {
		f.put(' ')
		f.outColumn++
	}
}
