// Package term writes the results of commands, for people at a terminal or as JSON, and makes foreign text harmless.
package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The colours, as SGR parameters.
const (
	Bold   = "1"
	Faint  = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Cyan   = "36"
)

// Printer writes the results of a command, for people or as JSON.
type Printer struct {
	Out    io.Writer
	JSON   bool
	Colour bool
	Width  int // characters of a line; 0 where nobody reads it
}

// Paint colours a text that is already plain.
func (p *Printer) Paint(colour, text string) string {
	if !p.Colour || colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// Line writes one line for people; in JSON mode it writes nothing.
func (p *Printer) Line(format string, args ...any) {
	if !p.JSON {
		fmt.Fprintf(p.Out, format+"\n", args...)
	}
}

// Object writes a value as one indented JSON document.
func (p *Printer) Object(v any) error { return p.encode(v, "  ") }

// Record writes a value as one line of JSON, for output that goes on.
func (p *Printer) Record(v any) error { return p.encode(v, "") }

func (p *Printer) encode(v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(p.Out, plainJSON(b.String()))
	return err
}

// plainJSON makes foreign text in JSON harmless for a terminal without changing what it says: such characters stand in strings only, where
// they can be escaped.
func plainJSON(s string) string {
	if harmless(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !disguise(r):
			b.WriteRune(r)
		case r >= 0x10000:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Cell is a field of a table.
type Cell struct{ Text, Colour string }

// Cut writes foreign text on one line of at most so many characters on a terminal. A program that reads the output gets it whole.
func (p *Printer) Cut(s string, width int) string {
	if p.Width == 0 {
		width = 0
	}
	return OneLine(s, width)
}

// Text makes a cell of foreign text.
func Text(s string) Cell { return Cell{Text: OneLine(s, 0)} }

// Table writes rows under their heads, aligned. The last column takes what the line has left; the rest is never cut, so that ids can be
// copied. Without rows it writes the sentence for none.
func (p *Printer) Table(none string, heads []string, rows [][]Cell) {
	if len(rows) == 0 {
		p.Line("%s", none)
		return
	}
	widths := make([]int, len(heads))
	for i, h := range heads {
		widths[i] = utf8.RuneCountInString(h)
	}
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.Text))
		}
	}
	head := make([]Cell, len(heads))
	for i, h := range heads {
		head[i] = Cell{strings.ToUpper(h), Faint}
	}
	for _, row := range append([][]Cell{head}, rows...) {
		var b strings.Builder
		left := p.Width
		for i, c := range row {
			if i == len(row)-1 {
				if p.Width > 0 && left > 8 {
					c.Text = OneLine(c.Text, left)
				}
				b.WriteString(p.Paint(c.Colour, c.Text))
				break
			}
			b.WriteString(p.Paint(c.Colour, c.Text))
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.Text)+2))
			left -= widths[i] + 2
		}
		fmt.Fprintln(p.Out, strings.TrimRight(b.String(), " "))
	}
}

// Fields writes names and values below each other, aligned; pairs without a value are left out, and
// further lines of a value stand below its first.
func (p *Printer) Fields(pairs ...string) {
	width := 0
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			width = max(width, utf8.RuneCountInString(pairs[i]))
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			value := strings.TrimRight(Plain(pairs[i+1]), "\n")
			if strings.Contains(value, "\n") {
				value = strings.ReplaceAll(value, "\n", "\n"+strings.Repeat(" ", width+2))
			} else {
				value = Wrapped(value, p.Width, width+2)
			}
			fmt.Fprintf(p.Out, "%s  %s\n", p.Paint(Faint, fmt.Sprintf("%-*s", width, pairs[i])), value)
		}
	}
}

// Trimmed writes a number without zeros that say nothing.
func Trimmed(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// Assignments writes a map as NAME=VALUE pairs in order.
func Assignments(m map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%s=%s ", name, m[name])
	}
	return strings.TrimSpace(b.String())
}
