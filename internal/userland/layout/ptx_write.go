package layout

import (
	"strconv"
	"strings"
)

// indexLine is one line of the index in its parts.
type indexLine struct {
	text                            []byte
	tail, before, key, head         stretch
	tailCut, beforeCut, keyCut, cut bool // by the mark; cut is that of the head
	ref                             string
}

// fields divides what stands around a word.
func (x *index) fields(o occurrence) indexLine {
	text := x.files[o.file].text
	l := indexLine{text: text, key: stretch{o.key, o.end}}
	marks := x.truncation != ""
	cursor := o.end
	for cursor < o.right && cursor <= o.key+x.keyMost {
		l.key.to = cursor
		cursor = x.skip(text, cursor, o.right)
	}
	if cursor <= o.key+x.keyMost {
		l.key.to = cursor
	}
	l.keyCut = marks && l.key.to < o.right
	l.key.to = backWhite(text, l.key.to, o.key)

	left := o.left
	if o.key-o.left > x.half+x.longest {
		left = x.skip(text, o.key-(x.half+x.longest), o.key)
	}
	l.before = stretch{left, backWhite(text, o.key, left)}
	for l.before.from+x.beforeMost < l.before.to {
		l.before.from = x.skip(text, l.before.from, l.before.to)
	}
	l.beforeCut = marks && backWhite(text, l.before.from, 0) > o.left
	l.before.from = skipWhite(text, l.before.from, len(text))

	if most := x.beforeMost - (l.before.to - l.before.from) - x.gap; most > 0 {
		from := skipWhite(text, l.key.to, len(text))
		l.tail = stretch{from, from}
		cursor := from
		for cursor < o.right && cursor < from+most {
			l.tail.to = cursor
			cursor = x.skip(text, cursor, o.right)
		}
		if cursor < from+most {
			l.tail.to = cursor
		}
		if l.tail.to > from {
			l.keyCut = false
			l.tailCut = marks && l.tail.to < o.right
		}
		l.tail.to = backWhite(text, l.tail.to, from)
	}
	if most := x.keyMost - (l.key.to - l.key.from) - x.gap; most > 0 {
		l.head = stretch{left, backWhite(text, l.before.from, 0)}
		for l.head.from+most < l.head.to {
			l.head.from = x.skip(text, l.head.from, l.head.to)
		}
		if l.head.to > l.head.from {
			l.beforeCut = false
			l.cut = marks && l.head.from > o.left
		}
		l.head.from = skipWhite(text, l.head.from, l.head.to)
	}
	if x.autoRefs {
		l.ref = x.files[o.file].name + ":" + strconv.Itoa(o.ref+1-x.files[o.file].line)
	} else if x.inputRefs {
		l.ref = string(text[o.ref:skipBlack(text, o.ref, max(o.right, o.ref))])
	}
	return l
}

// write writes one line of the index.
func (x *index) write(o occurrence) {
	l := x.fields(o)
	x.p.Charge(100 + x.width)
	switch x.format {
	case 'r':
		x.roff(l)
	case 't':
		x.tex(l)
	default:
		x.plain(l)
	}
	_ = x.out.WriteByte('\n')
}

func (x *index) mark(cut bool) int {
	if !cut {
		return 0
	}
	x.out.WriteString(x.truncation)
	return len(x.truncation)
}

func (x *index) spaces(n int) { x.out.Fill(' ', max(n, 0)) }

func (x *index) plain(l indexLine) {
	if !x.rightRefs {
		n := x.text([]byte(l.ref))
		if x.autoRefs {
			n += 1
			_ = x.out.WriteByte(':')
		}
		x.spaces(x.refMost + x.gap - n)
	}
	marked := func(cut bool) int {
		if cut {
			return len(x.truncation)
		}
		return 0
	}
	left := x.half - x.gap - l.before.len() - marked(l.beforeCut)
	if l.tail.from < l.tail.to {
		n := x.part(l, l.tail)
		n += x.mark(l.tailCut)
		x.spaces(left - n)
	} else {
		x.spaces(left)
	}
	x.mark(l.beforeCut)
	x.part(l, l.before)
	x.spaces(x.gap)
	n := x.part(l, l.key)
	n += x.mark(l.keyCut)
	refs := (x.autoRefs || x.inputRefs) && x.rightRefs
	if l.head.from < l.head.to {
		x.spaces(x.half - n - l.head.len() - marked(l.cut))
		x.mark(l.cut)
		x.part(l, l.head)
	} else if refs {
		x.spaces(x.half - n)
	}
	if refs {
		x.spaces(x.gap)
		x.text([]byte(l.ref))
	}
}

// len may be negative: before a word that stands alone, blanks are skipped up to it.
func (s stretch) len() int { return s.to - s.from }

func (x *index) part(l indexLine, s stretch) int {
	if s.from >= s.to {
		return 0
	}
	return x.text(l.text[s.from:s.to])
}

// text writes a part of a line, in the letters of the format, and returns its length.
func (x *index) text(b []byte) int {
	for _, c := range b {
		switch {
		case blank(c):
			c = ' '
		case x.format == 'r' && c == '"':
			x.out.WriteString(`"`)
		case x.format == 't' && strings.IndexByte("$%&#_", c) >= 0:
			x.out.WriteString(`\`)
		case x.format == 't' && (c == '{' || c == '}'):
			x.out.WriteString(`$\` + string(rune(c)) + `$`)
			continue
		case x.format == 't' && c == '\\':
			x.out.WriteString(`\backslash{}`)
			continue
		}
		_ = x.out.WriteByte(c)
	}
	return len(b)
}

func (x *index) roff(l indexLine) {
	x.out.WriteString("." + x.macro + ` "`)
	x.part(l, l.tail)
	x.mark(l.tailCut)
	x.out.WriteString(`" "`)
	x.mark(l.beforeCut)
	x.part(l, l.before)
	x.out.WriteString(`" "`)
	x.part(l, l.key)
	x.mark(l.keyCut)
	x.out.WriteString(`" "`)
	x.mark(l.cut)
	x.part(l, l.head)
	x.out.WriteString(`"`)
	if x.autoRefs || x.inputRefs {
		x.out.WriteString(` "`)
		x.text([]byte(l.ref))
		x.out.WriteString(`"`)
	}
}

func (x *index) tex(l indexLine) {
	x.out.WriteString(`\` + x.macro + " {")
	x.part(l, l.tail)
	x.out.WriteString("}{")
	x.part(l, l.before)
	x.out.WriteString("}{")
	after := min(x.skip(l.text, l.key.from, l.key.to), l.key.to)
	x.part(l, stretch{l.key.from, after})
	x.out.WriteString("}{")
	x.part(l, stretch{after, l.key.to})
	x.out.WriteString("}{")
	x.part(l, l.head)
	x.out.WriteString("}")
	if x.autoRefs || x.inputRefs {
		x.out.WriteString("{")
		x.text([]byte(l.ref))
		x.out.WriteString("}")
	}
}
