package term

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Markdown draws Markdown on a terminal while it comes: headings and strong words are bold, code is coloured, points have a bullet. It
// draws unknown syntax unchanged. Without colours it writes the text unchanged. Control characters become visible escapes.
type Markdown struct {
	P *Printer

	lead   string // the beginning of a line that may become a mark
	inside bool   // of a line: its lead is drawn
	line   string // the colour of the whole line
	code   bool   // within `
	strong bool   // within **
	star   bool   // a * whose successor is not known yet
	fenced bool   // within ```
	rest   []byte // of a character that came in two pieces
	Open   bool   // the last line has no end yet
}

// Write implements io.Writer.
func (m *Markdown) Write(data []byte) (int, error) {
	text := slices.Concat(m.rest, data)
	whole := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if utf8.RuneStart(text[len(text)-back]) {
			if !utf8.FullRune(text[len(text)-back:]) {
				whole = len(text) - back
			}
			break
		}
	}
	m.rest = append([]byte(nil), text[whole:]...)
	var b strings.Builder
	plain := Plain(string(text[:whole]))
	if !m.P.Colour {
		b.WriteString(plain)
	} else {
		for _, r := range plain {
			m.draw(&b, r)
		}
	}
	if plain != "" {
		m.Open = !strings.HasSuffix(plain, "\n")
	}
	if _, err := io.WriteString(m.P.Out, b.String()); err != nil {
		return 0, err
	}
	return len(data), nil
}

// Flush draws the held text and ends it. It leaves the terminal at the beginning of a line.
func (m *Markdown) Flush() error {
	var b strings.Builder
	if m.P.Colour {
		m.begin(&b)
		m.settle(&b)
	}
	if len(m.rest) > 0 {
		b.WriteString(Plain(string(m.rest)))
		m.Open = true
	}
	if m.Open {
		b.WriteByte('\n')
	}
	*m = Markdown{P: m.P}
	_, err := io.WriteString(m.P.Out, b.String())
	return err
}

const reset = "\x1b[0m"

// draw draws one character.
func (m *Markdown) draw(b *strings.Builder, r rune) {
	switch {
	case r == '\n':
		m.end(b)
	case m.inside:
		m.within(b, r)
	default:
		m.lead += string(r)
		if !marks(m.lead) {
			m.begin(b)
		}
	}
}

// marks reports whether the beginning of a line may still become a mark, or a longer one.
func marks(lead string) bool {
	lead = strings.TrimLeft(lead, " ")
	if len(lead) > len("######") {
		return false
	}
	switch lead {
	case "", "-", "*", "+", ">":
		return true
	}
	return strings.Trim(lead, "#") == "" || strings.Trim(lead, "`") == "" && len(lead) < len("```")
}

// begin draws the beginning of a line, now that it is known.
func (m *Markdown) begin(b *strings.Builder) {
	lead := m.lead
	m.lead, m.inside = "", true
	indent := lead[:len(lead)-len(strings.TrimLeft(lead, " "))]
	mark := strings.TrimSpace(lead)
	switch {
	case lead == "":
	case strings.HasPrefix(mark, "```"):
		m.fenced, m.line = !m.fenced, Faint
		b.WriteString("\x1b[" + Faint + "m" + lead)
	case m.fenced:
		m.line = Cyan
		b.WriteString("\x1b[" + Cyan + "m" + lead)
	case mark != "" && strings.Trim(mark, "#") == "" && strings.HasSuffix(lead, " "):
		m.line = Bold
		b.WriteString("\x1b[" + Bold + "m")
	case (mark == "-" || mark == "*" || mark == "+") && strings.HasSuffix(lead, " "):
		b.WriteString(indent + "• ")
	case mark == ">" && strings.HasSuffix(lead, " "):
		m.line = Faint
		b.WriteString(indent + "\x1b[" + Faint + "m│ ")
	default:
		b.WriteString(indent)
		for _, r := range lead[len(indent):] {
			m.within(b, r)
		}
	}
}

// within draws one character behind the beginning of a line.
func (m *Markdown) within(b *strings.Builder, r rune) {
	if m.line == Cyan && m.fenced || m.line == Faint && m.fenced {
		b.WriteRune(r)
		return
	}
	switch {
	case m.star && r == '*':
		m.star, m.strong = false, !m.strong
		m.colour(b)
		return
	case m.star:
		m.star = false
		b.WriteByte('*')
	}
	switch {
	case r == '*' && !m.code:
		m.star = true
	case r == '`':
		m.code = !m.code
		m.colour(b)
	default:
		b.WriteRune(r)
	}
}

// colour sets the colours that hold now.
func (m *Markdown) colour(b *strings.Builder) {
	b.WriteString(reset)
	if m.line != "" {
		b.WriteString("\x1b[" + m.line + "m")
	}
	if m.strong {
		b.WriteString("\x1b[" + Bold + "m")
	}
	if m.code {
		b.WriteString("\x1b[" + Cyan + "m")
	}
}

// settle draws a held star and ends the colours.
func (m *Markdown) settle(b *strings.Builder) {
	if m.star {
		b.WriteByte('*')
	}
	if m.line != "" || m.strong || m.code {
		b.WriteString(reset)
	}
}

// end ends a line.
func (m *Markdown) end(b *strings.Builder) {
	if m.fenced && !m.inside && m.lead == "" {
		b.WriteByte('\n')
		return
	}
	if !m.inside {
		m.begin(b)
	}
	m.settle(b)
	b.WriteByte('\n')
	m.inside, m.line, m.code, m.strong, m.star = false, "", false, false, false
}
