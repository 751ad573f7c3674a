package textdiff

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"agentbox/internal/userland/program"
)

// sides writes two files beside each other.
type sides struct {
	c              *comparer
	half, second   int  // how wide a column is, and where the second one begins
	expand         bool // tabs
	left, suppress bool // common lines are written once, or not
}

const (
	sideTab    = 8
	sideGutter = 3
)

// setWidth divides a line of so many columns.
func (s *sides) setWidth(w int) {
	tab := sideTab
	if s.expand {
		tab = 1
	}
	gutter := tab + sideGutter
	at := w>>1 + gutter>>1 + w&gutter&1
	at -= at % tab
	s.half = max(0, min(at-sideGutter, w-at))
	if s.second = at; s.half == 0 {
		s.second = w
	}
}

func (s *sides) write(x, y *side, changes []change) {
	i, j := 0, 0
	common := func(to int) {
		for ; i < to; i, j = i+1, j+1 {
			switch {
			case s.suppress:
			case s.left:
				s.line(x.lines[i], '(', nil)
			default:
				s.line(x.lines[i], ' ', y.lines[j])
			}
		}
	}
	for _, ch := range changes {
		common(ch.a0)
		for i, j = ch.a0, ch.b0; i < ch.a1 || j < ch.b1; {
			switch {
			case i < ch.a1 && j < ch.b1:
				s.line(x.lines[i], '|', y.lines[j])
				i, j = i+1, j+1
			case i < ch.a1:
				s.line(x.lines[i], '<', nil)
				i++
			default:
				s.line(nil, '>', y.lines[j])
				j++
			}
		}
	}
	common(len(x.lines))
}

// line writes one line. mark says how the sides differ.
func (s *sides) line(left []byte, mark byte, right []byte) {
	out, column := s.c.out, 0
	ended := bytes.HasSuffix(left, []byte("\n"))
	if left != nil {
		column = s.part(left, 0)
	}
	if mark != ' ' {
		column = s.move(column, (s.half+s.second-1)/2) + 1
		if rightEnded := bytes.HasSuffix(right, []byte("\n")); mark == '|' && ended != rightEnded {
			if mark = '\\'; ended {
				mark = '/'
			}
		}
		_ = out.WriteByte(mark)
	}
	if right != nil {
		if right[0] != '\n' {
			column = s.move(column, s.second)
			s.part(right, column)
		}
		ended = ended || bytes.HasSuffix(right, []byte("\n"))
	}
	if ended {
		_ = out.WriteByte('\n')
	}
}

// move goes from one column to another.
func (s *sides) move(from, to int) int {
	if !s.expand {
		for tab := from + sideTab - from%sideTab; tab <= to; tab += sideTab {
			_ = s.c.out.WriteByte('\t')
			from = tab
		}
	}
	for ; from < to; from++ {
		_ = s.c.out.WriteByte(' ')
	}
	return to
}

// part writes what of a line fits into a column that begins at indent, and returns how wide that is.
func (s *sides) part(line []byte, indent int) int {
	out, in, at := s.c.out, 0, 0
	s.c.p.Charge(len(line) * 2)
	for len(line) > 0 {
		r, size := utf8.DecodeRune(line)
		text := line[:size]
		line = line[size:]
		switch r {
		case '\n':
			return at
		case '\t':
			blanks := sideTab - in%sideTab
			if in == at {
				stop := at + blanks
				switch {
				case s.expand:
					for ; at < min(stop, s.half); at++ {
						_ = out.WriteByte(' ')
					}
				case stop < s.half:
					at = stop
					_ = out.WriteByte('\t')
				}
			}
			in += blanks
		case '\r':
			_ = out.WriteByte('\r')
			s.move(0, indent)
			in, at = 0, 0
		default:
			if in++; in <= s.half {
				at = in
				_, _ = out.Write(text)
			}
		}
	}
	return at
}

// sdiff is diff -y.
func sdiff(p *program.Process) int {
	opts, operands := p.Options(2, "slw:tabBdEiHWZI:o:", "suppress-common-lines s", "left-column l", "width= w", "expand-tabs t", "text a",
		"ignore-space-change b", "ignore-blank-lines B",
		"minimal d", "ignore-tab-expansion E", "ignore-case i", "speed-large-files H", "ignore-all-space W", "ignore-trailing-space Z",
		"ignore-matching-lines= I", "output= o")
	args := []string{"diff", "-y"}
	for _, o := range opts {
		switch o.Name {
		case "s":
			args = append(args, "--suppress-common-lines")
		case "l":
			args = append(args, "--left-column")
		case "w":
			if n, err := strconv.Atoi(o.Value); err != nil || n <= 0 {
				p.Errorf("invalid width '%s'", o.Value)
				return 2
			}
			args = append(args, "-W"+o.Value)
		case "W":
			args = append(args, "-w")
		case "o":
			p.Lack(program.LackOption, "-o")
			p.Errorf("option -o asks questions that nobody answers in a nano space")
			return 2
		case "I":
			args = append(args, "-I"+o.Value)
		default:
			args = append(args, "-"+o.Name)
		}
	}
	p.Args = append(append(args, "--"), operands...)
	return diff(p)
}
