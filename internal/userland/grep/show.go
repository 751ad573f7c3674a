package grep

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// held is a line that may have to be shown as context.
type held struct {
	text   []byte
	number int
	offset int
}

// file searches one input.
func (s *searcher) file(name string, in *program.Input) {
	count, number, offset, trailing, last := 0, 0, 0, 0, 0
	var before []held
	binary, checked := false, s.text || s.delim == 0
	binaryMatched := false
	quick := s.quiet || s.list || s.without || s.count
	for {
		if s.max >= 0 && count >= s.max && trailing == 0 {
			in.Unread()
			break
		}
		line, ended, ok := in.Line(s.delim)
		if !ok {
			break
		}
		number++
		start := offset
		offset += len(line)
		if ended {
			offset++
		}
		if !checked && (bytes.IndexByte(line, 0) >= 0) {
			binary, checked = true, true
			if s.skipBinary {
				count = 0
				break
			}
		}
		hit := false
		if s.max < 0 || count < s.max {
			hit = s.matches(line) != s.invert
		}
		if hit {
			count++
			s.found = true
			if s.quiet || s.list || s.without {
				break
			}
			if quick {
				continue
			}
			if !s.text && !binary && s.delim != 0 && !utf8.Valid(line) {
				binary = true
			}
			if binary {
				binaryMatched = true
				break
			}
			if s.before+s.after > 0 && last > 0 && number-len(before) > last+1 {
				s.separator()
			}
			for _, h := range before {
				s.line(name, h.text, h.number, h.offset, '-')
			}
			before = before[:0]
			if s.only {
				if !s.invert {
					s.parts(name, line, number, start)
				}
			} else {
				s.line(name, line, number, start, ':')
			}
			last, trailing = number, s.after
			continue
		}
		if quick {
			continue
		}
		switch {
		case trailing > 0:
			trailing--
			if !s.only {
				s.line(name, line, number, start, '-')
			}
			last = number
		case s.before > 0:
			if len(before) == s.before {
				s.p.Drop(len(before[0].text))
				before = append(before[:0], before[1:]...)
			}
			s.p.Hold(len(line))
			if s.only {
				line = nil
			}
			before = append(before, held{bytes.Clone(line), number, start})
		}
	}
	if err := in.Err(); err != nil {
		s.fail(name, err)
		if errors.Is(err, vfs.EISDIR) {
			return
		}
	}
	s.report(name, count, binaryMatched)
}

// report writes what is to say of a file after its lines: its name or its count.
func (s *searcher) report(name string, count int, binary bool) {
	switch {
	case s.quiet:
	case binary:
		s.p.Errorf("%s: binary file matches", name)
	case s.list:
		if count > 0 {
			s.name(name, '\n')
		}
	case s.without:
		if count == 0 {
			s.name(name, '\n')
		}
	case s.count:
		if s.names {
			s.name(name, ':')
		}
		s.out.WriteString(strconv.Itoa(count) + "\n")
	}
}

func (s *searcher) paint(code, text string) {
	if s.color && text != "" {
		text = "\x1b[" + code + "m\x1b[K" + text + "\x1b[m\x1b[K"
	}
	s.out.WriteString(text)
}

// name writes a file's name and what stands behind it.
func (s *searcher) name(name string, after byte) {
	s.paint("35", name)
	if s.null {
		after = 0
	}
	if after == ':' || after == '-' {
		s.paint("36", string(after))
		return
	}
	_ = s.out.WriteByte(after)
}

func (s *searcher) separator() {
	s.paint("36", "--")
	_ = s.out.WriteByte('\n')
}

// tabbedWidth is the width of numbers before lines that -T sets below each other: that of the largest.
const tabbedWidth = 19

func (s *searcher) head(name string, number, offset int, sep byte) {
	if s.names {
		s.name(name, sep)
	}
	put := func(n, width int) {
		text := strconv.Itoa(n)
		if s.tab {
			text = strings.Repeat(" ", max(width-len(text), 0)) + text
		}
		s.paint("32", text)
		s.paint("36", string(sep))
	}
	if s.numbers {
		put(number, tabbedWidth)
	}
	if s.offsets {
		put(offset, tabbedWidth)
	}
	if s.tab && (s.names || s.numbers || s.offsets) {
		_ = s.out.WriteByte('\t')
	}
}

func (s *searcher) line(name string, line []byte, number, offset int, sep byte) {
	s.head(name, number, offset, sep)
	if s.color && sep == ':' && !s.invert {
		last := 0
		for _, m := range s.match(line) {
			_, _ = s.out.Write(line[last:m[0]])
			s.paint("01;31", string(line[m[0]:m[1]]))
			last = m[1]
		}
		line = line[last:]
	}
	_, _ = s.out.Write(line)
	_ = s.out.WriteByte(s.delim)
}

// parts writes the matches of a line.
func (s *searcher) parts(name string, line []byte, number, offset int) {
	for _, m := range s.match(line) {
		if m[0] == m[1] {
			continue
		}
		s.head(name, number, offset+m[0], ':')
		s.paint("01;31", string(line[m[0]:m[1]]))
		_ = s.out.WriteByte(s.delim)
	}
}
