package textdiff

import (
	"bytes"
	"strconv"
)

// applied reports whether a patch is in the file already: its first hunk does not fit, but fits in reverse.
func (s *patcher) applied(text [][]byte, f *filePatch, creates bool) bool {
	if s.force || len(f.hunks) == 0 {
		return false
	}
	h := f.hunks[0]
	if creates && len(text) > 0 {
		return true
	}
	if _, _, ok := s.place(text, h, 0, 0); ok {
		return false
	}
	_, _, ok := s.place(text, h.reversed(), 0, 0)
	return ok
}

// fits reports whether the old lines of a hunk are those of the text at a place.
func (s *patcher) fits(text [][]byte, h *hunk, at, skipFirst, skipLast int) bool {
	last := len(h.lines) - skipLast
	for i, l := range h.lines {
		if l.kind == '+' {
			continue
		}
		if i >= skipFirst && i < last {
			if at < 0 || at >= len(text) {
				return false
			}
			s.p.Charge(4)
			if !bytes.Equal(text[at], l.text) {
				return false
			}
		}
		at++
	}
	return true
}

// place finds where a hunk fits, nearest to where it should, and with how much fuzz.
func (s *patcher) place(text [][]byte, h hunk, offset, _ int) (at, fuzz int, ok bool) {
	old := 0
	for _, l := range h.lines {
		if l.kind != '+' {
			old++
		}
	}
	want := h.at - 1 + offset
	if old == 0 {
		want = h.at + offset
		if h.at == 0 {
			if len(text) > 0 {
				return 0, 0, false
			}
			return 0, 0, true
		}
	}
	context := max(h.begin, h.end)
	for fuzz = 0; fuzz <= min(s.fuzz, context); fuzz++ {
		first := max(fuzz+h.begin-context, 0)
		last := max(fuzz+h.end-context, 0)
		for d := 0; d <= max(want, len(text)-want)+1; d++ {
			s.p.Charge(4)
			for _, try := range []int{want + d, want - d} {
				if try < -first || try+old-last > len(text) {
					continue
				}
				if fuzz == 0 && h.begin < h.end && h.at == 1 && try != 0 && d > 0 && h.begin == 0 {
					continue // it belongs to the begin of the file
				}
				if s.fits(text, &h, try, first, last) {
					return try, fuzz, true
				}
			}
		}
	}
	return 0, 0, false
}

// apply changes a text.
func (s *patcher) apply(text [][]byte, hunks []hunk) (result []byte, rejected []hunk, mismatch bool) {
	var out bytes.Buffer
	done, offset, grown := 0, 0, 0
	for i, h := range hunks {
		at, fuzz, ok := s.place(text, h, offset, done)
		if !ok || at < done {
			s.say("Hunk #%d FAILED at %d.\n", i+1, h.newAt)
			rejected = append(rejected, h)
			continue
		}
		old := 0
		for _, l := range h.lines {
			if l.kind != '+' {
				old++
			}
		}
		want := h.at - 1
		if old == 0 && h.at > 0 {
			want = h.at
		}
		if old == 0 && h.at == 0 {
			want = 0
		}
		moved := at - want
		if fuzz > 0 || moved != 0 {
			mismatch = true
			note := ""
			if fuzz > 0 {
				note = " with fuzz " + strconv.Itoa(fuzz)
			}
			if moved != 0 {
				unit := " line"
				if moved != 1 {
					unit = " lines"
				}
				note += " (offset " + strconv.Itoa(moved) + unit + ")"
			}
			s.say("Hunk #%d succeeded at %d%s.\n", i+1, at+1+grown, note)
		}
		offset = moved
		for ; done < at; done++ {
			out.Write(text[done])
		}
		for _, l := range h.lines {
			switch l.kind {
			case '+':
				out.Write(l.text)
				grown++
			case '-':
				done++
				grown--
			default:
				if done < len(text) && done >= 0 {
					out.Write(text[done]) // what fuzz has let differ stays
				}
				done++
			}
		}
		s.p.Hold(len(h.lines) * 8)
	}
	for ; done < len(text); done++ {
		out.Write(text[done])
	}
	return out.Bytes(), rejected, mismatch
}
