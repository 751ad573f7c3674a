package layout

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
)

// The size of a page of pr, in lines and characters.
const (
	prLength  = 66
	prWidth   = 72
	prHeader  = 5       // lines above the text, and as many below
	prMaximum = 1 << 20 // of any number
)

// prLayout is how pr divides texts into pages.
type prLayout struct {
	columns, length, width, margin                    int
	across, merge, double, feed, bare, ignoreFeed     bool
	join, aligned, numbered, quiet, carets, octal     bool
	separator, title, dates                           string
	titled, separated, counted, widthGiven, lineWidth bool
	digits, number, first, last                       int
	numberEnd                                         byte
	tabIn, tabOut                                     byte
	inWidth, outWidth                                 int // 0: tabs stay as they are
}

// prPager writes pages.
type prPager struct {
	*prLayout
	p       *program.Process
	out     *program.Output
	page    int
	line    int // the number of the next one
	at      int // the position in the line that is written
	pending int // blanks that are not written yet
}

// pr divides texts into pages and columns.
func pr(p *program.Process) int {
	l, operands := prOptions(p)
	g := &prPager{prLayout: l, p: p, out: p.Out()}
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	code := 0
	var sources []*prSource
	for _, name := range operands {
		in, done, err := gnu.OpenInput(p, name)
		if err != nil {
			if code = 1; !l.quiet {
				p.Errorf("%s: %s", name, program.Message(err))
			}
			continue
		}
		s := &prSource{g: g, in: in, name: name, at: p.Now()}
		if name == "-" {
			s.name = ""
		} else if h := in.Handle(); h != nil {
			s.at = h.Info().Modified
		}
		sources = append(sources, s)
		if !l.merge {
			g.file(sources)
			sources = nil
			done()
		} else {
			defer done()
		}
		if err := in.Err(); err != nil {
			p.Errorf("%s: %s", name, program.Message(err))
			code = 1
		}
	}
	if len(sources) > 0 {
		l.columns = len(sources)
		g.file(sources)
	}
	return code
}

// prSource is a file that is divided into lines, and by form feeds.
type prSource struct {
	g    *prPager
	in   *program.Input
	name string
	at   time.Time
	rest []byte // of a line, behind a form feed
	have bool
	done bool
}

// next returns the next line; feed says that a form feed ends the page instead.
func (s *prSource) next() (line []byte, feed, ok bool) {
	if s.done {
		return nil, false, false
	}
	if !s.have {
		raw, _, more := s.in.Line('\n')
		if !more {
			s.done = true
			return nil, false, false
		}
		s.g.p.Charge(20 + len(raw))
		s.rest = bytes.Clone(raw)
	}
	s.have = false
	at := bytes.IndexByte(s.rest, '\f')
	if at < 0 {
		return s.rest, false, true
	}
	if at > 0 { // the form feed counts next
		line, s.rest, s.have = s.rest[:at], s.rest[at:], true
		return line, false, true
	}
	s.rest = s.rest[1:]
	s.have = len(s.rest) > 0
	if s.g.ignoreFeed {
		return s.next()
	}
	return nil, true, true
}

// file writes the pages of one file, or of those that are merged.
func (g *prPager) file(sources []*prSource) {
	g.page, g.line = 0, 1
	if g.counted {
		g.line = g.number
	}
	rows := g.rows()
	for {
		cells, fed, some := g.gather(sources, rows)
		if !some {
			return
		}
		g.page++
		if g.last > 0 && g.page > g.last {
			return
		}
		if g.page < g.first {
			if !g.counted {
				g.line += g.numbers(cells)
			}
			continue
		}
		g.write(sources[0], cells, rows, fed)
	}
}

// rows is how many lines of text a page has.
func (g *prPager) rows() int {
	n := g.length
	if !g.bare {
		n -= 2 * prHeader
	}
	if g.double {
		n /= 2
	}
	return max(n, 1)
}

// numbers is how many numbers a page takes.
func (g *prPager) numbers(cells [][][]byte) (n int) {
	for _, row := range cells {
		if g.merge {
			n++
			continue
		}
		n += len(row)
	}
	return n
}

// gather reads a page and returns its rows. In the rows of files that are merged, a missing line is nil.
func (g *prPager) gather(sources []*prSource, rows int) (cells [][][]byte, fed, some bool) {
	if g.merge {
		return g.merged(sources, rows)
	}
	var lines [][]byte
	held := 0
	defer func() { g.p.Drop(held) }()
	full := true
	for len(lines) < rows*g.columns {
		line, feed, ok := sources[0].next()
		if feed {
			fed, some, full = true, true, false
			break
		}
		if !ok {
			full = false
			break
		}
		g.p.Hold(len(line) + 32)
		held += len(line) + 32
		lines, some = append(lines, line), true
	}
	if full && len(lines) == rows*g.columns && !g.across {
		for r := range rows {
			var row [][]byte
			for c := range g.columns {
				row = append(row, lines[c*rows+r])
			}
			cells = append(cells, row)
		}
		return cells, fed, some
	}
	if g.across || g.columns == 1 {
		for len(lines) > 0 {
			n := min(g.columns, len(lines))
			cells, lines = append(cells, lines[:n]), lines[n:]
		}
		return cells, fed, some
	}
	return balanced(lines, g.columns), fed, some
}

// balanced divides lines into columns that differ by one line at most.
func balanced(lines [][]byte, columns int) (cells [][][]byte) {
	each, more := len(lines)/columns, len(lines)%columns
	for r := range each + min(more, 1) {
		var row [][]byte
		for c := range columns {
			if r < each || c < more {
				row = append(row, lines[c*each+min(c, more)+r])
			}
		}
		cells = append(cells, row)
	}
	return cells
}

// merged reads a page of all files.
func (g *prPager) merged(sources []*prSource, rows int) (cells [][][]byte, fed, some bool) {
	ended := make([]bool, len(sources))
	for range rows {
		row, any1 := make([][]byte, len(sources)), false
		for i, s := range sources {
			if ended[i] {
				continue
			}
			line, feed, ok := s.next()
			if ended[i] = feed || !ok; feed {
				fed, some = true, true
			}
			if !ended[i] {
				g.p.Charge(len(line))
				row[i], any1, some = line, true, true
				if line == nil {
					row[i] = []byte{}
				}
			}
		}
		if !any1 {
			break
		}
		cells = append(cells, row)
	}
	return cells, fed, some
}

// write writes one page.
func (g *prPager) write(s *prSource, cells [][][]byte, rows int, fed bool) {
	if !g.bare {
		g.header(s)
	}
	begins := g.begins(cells)
	for r, row := range cells {
		g.row(row, r, begins)
		if g.double {
			g.end()
		}
	}
	switch {
	case g.bare:
		if fed && !g.ignoreFeed {
			_ = g.out.WriteByte('\f')
		}
	case g.feed:
		_ = g.out.WriteByte('\f')
	default:
		missing := g.length - 2*prHeader - len(cells)
		if g.double {
			missing -= len(cells)
		}
		for range max(missing, 0) + prHeader {
			g.end()
		}
	}
}

// begins returns the numbers of the first lines of the columns that are read downwards; nil where the numbers go across.
func (g *prPager) begins(cells [][][]byte) (all []int) {
	if !g.numbered || g.across || g.merge || g.columns == 1 {
		return nil
	}
	for c := range g.columns {
		all = append(all, g.line)
		for _, row := range cells {
			if c < len(row) {
				g.line++
			}
		}
	}
	return all
}

// header writes what stands above the text.
func (g *prPager) header(s *prSource) {
	title := g.title
	if !g.titled && !g.merge {
		title = s.name
	}
	date := program.Strftime(g.dates, s.at.In(g.p.Zone()))
	page := "Page " + strconv.Itoa(g.page)
	room := max(g.width-len(date)-len(title)-len(page), 0)
	left := room / 2
	g.out.WriteString("\n\n")
	margin := strings.Repeat(" ", g.margin)
	g.out.WriteString(margin + date + strings.Repeat(" ", max(left, 1)) + title + strings.Repeat(" ", max(room-left, 1)) + page + "\n\n\n")
}

// row writes the r-th line.
func (g *prPager) row(row [][]byte, r int, begins []int) {
	g.at, g.pending = 0, 0
	g.blanks(g.margin)
	g.flush()
	for i, text := range row {
		start := g.at + g.pending
		if i > 0 {
			g.text([]byte(g.separator))
			start = g.at + g.pending
		}
		room := 0
		if g.aligned {
			room = g.columnWidth()
		}
		if g.numbered && (!g.merge || i == 0) {
			g.flush()
			n := g.line
			if begins != nil {
				n = begins[i] + r
			} else {
				g.line++
			}
			used := g.numberText(n)
			if g.aligned && !g.merge {
				room -= used
			}
			start += used
		}
		if g.aligned || g.lineWidth {
			text = g.expand(text)
			if !g.aligned {
				room = g.width
				if g.numbered {
					room -= g.digits + 1
				}
			}
			text = text[:min(len(text), max(room, 1))]
		} else {
			text = g.expand(text)
		}
		g.text(text)
		if g.aligned && i+1 < len(row) {
			g.blanks(start + max(room, 1) - g.at - g.pending)
		}
	}
	g.end()
}

// columnWidth is how wide a column is, with its number.
func (g *prPager) columnWidth() int {
	width := g.width
	if g.merge && g.numbered {
		width -= g.numberWidth()
	}
	return max((width-(g.columns-1)*len(g.separator))/g.columns, 1)
}

// numberWidth is what a number takes with what stands behind it.
func (g *prPager) numberWidth() int {
	if g.numberEnd == '\t' {
		return g.digits + 8 - g.digits%8
	}
	return g.digits + 1
}

// numberText writes the number of a line and returns how wide it is.
func (g *prPager) numberText(n int) int {
	s := strconv.Itoa(n)
	if len(s) > g.digits {
		s = s[len(s)-g.digits:]
	}
	g.blanks(g.digits - len(s))
	g.text([]byte(s))
	if g.numberEnd != '\t' {
		g.text([]byte{g.numberEnd})
		return g.digits + 1
	}
	if g.columns == 1 {
		g.flush()
		_ = g.out.WriteByte('\t')
		g.at += 8 - g.at%8
		return g.numberWidth()
	}
	g.blanks(g.numberWidth() - g.digits)
	return g.numberWidth()
}

// expand writes tabs of the input as blanks, and control characters as they are to be shown.
func (g *prPager) expand(text []byte) []byte {
	if g.inWidth == 0 && !g.carets && !g.octal {
		return text
	}
	var b []byte
	for _, c := range text {
		switch {
		case c == g.tabIn && g.inWidth > 0:
			n := g.inWidth - len(b)%g.inWidth
			g.p.Charge(n)
			_ = g.p.Room(len(b) + n)
			b = append(b, bytes.Repeat([]byte{' '}, n)...)
		case c == '\b' && !g.carets && !g.octal:
			b = append(b, c)
		case (c < ' ' || c == 0x7f) && g.carets:
			b = append(b, '^', c^0x40)
		case (c < ' ' || c >= 0x7f) && (g.octal || g.carets):
			b = append(b, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
		default:
			b = append(b, c)
		}
	}
	return b
}

// text writes characters; blanks are kept back where they may become tabs.
func (g *prPager) text(s []byte) {
	if g.outWidth == 0 {
		g.flush()
		_, _ = g.out.Write(s)
		g.at += len(s)
		return
	}
	for _, c := range s {
		if c == ' ' {
			g.pending++
			continue
		}
		g.flush()
		_ = g.out.WriteByte(c)
		g.at++
	}
}

// blanks moves to the right.
func (g *prPager) blanks(n int) { g.pending += max(n, 0) }

// flush writes the blanks that were kept back.
func (g *prPager) flush() {
	goal := g.at + g.pending
	g.p.Charge(g.pending / 4)
	for g.outWidth > 0 && goal-g.at > 1 {
		stop := g.at + g.outWidth - g.at%g.outWidth
		if stop > goal {
			break
		}
		_ = g.out.WriteByte(g.tabOut)
		g.at = stop
	}
	for ; g.at < goal; g.at++ {
		_ = g.out.WriteByte(' ')
	}
	g.pending = 0
}

// end ends a line. Blanks at its end are not written where they may become tabs.
func (g *prPager) end() {
	if g.outWidth == 0 {
		g.flush()
	}
	g.p.Charge(10)
	_ = g.out.WriteByte('\n')
	g.at, g.pending = 0, 0
}
