package cli

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

	"agentbox/internal/domain/fault"
)

// The colours, as SGR parameters.
const (
	bold   = "1"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// printer writes what a command has to say, for people or as JSON.
type printer struct {
	out    io.Writer
	json   bool
	colour bool
	width  int // characters of a line; 0 where nobody reads it
}

// paint colours a text that is already plain.
func (p *printer) paint(colour, text string) string {
	if !p.colour || colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// line writes one line for people; in JSON mode it writes nothing.
func (p *printer) line(format string, args ...any) {
	if !p.json {
		fmt.Fprintf(p.out, format+"\n", args...)
	}
}

// object writes a value as one indented JSON document.
func (p *printer) object(v any) error { return p.encode(v, "  ") }

// record writes a value as one line of JSON, for output that goes on.
func (p *printer) record(v any) error { return p.encode(v, "") }

func (p *printer) encode(v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(p.out, plainJSON(b.String()))
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

// cell is a field of a table.
type cell struct{ text, colour string }

// cut writes foreign text on one line of at most so many characters on a terminal. A program that reads the output gets it whole.
func (p *printer) cut(s string, width int) string {
	if p.width == 0 {
		width = 0
	}
	return oneLine(s, width)
}

// text makes a cell of foreign text.
func text(s string) cell { return cell{text: oneLine(s, 0)} }

// table writes rows under their heads, aligned. The last column takes what the line has left; the rest is never cut, so that ids can be
// copied. Without rows it writes the sentence for none.
func (p *printer) table(none string, heads []string, rows [][]cell) {
	if len(rows) == 0 {
		p.line("%s", none)
		return
	}
	widths := make([]int, len(heads))
	for i, h := range heads {
		widths[i] = utf8.RuneCountInString(h)
	}
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	head := make([]cell, len(heads))
	for i, h := range heads {
		head[i] = cell{strings.ToUpper(h), faint}
	}
	for _, row := range append([][]cell{head}, rows...) {
		var b strings.Builder
		left := p.width
		for i, c := range row {
			if i == len(row)-1 {
				if p.width > 0 && left > 8 {
					c.text = oneLine(c.text, left)
				}
				b.WriteString(p.paint(c.colour, c.text))
				break
			}
			b.WriteString(p.paint(c.colour, c.text))
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+2))
			left -= widths[i] + 2
		}
		fmt.Fprintln(p.out, strings.TrimRight(b.String(), " "))
	}
}

// fields writes names and values below each other, aligned; pairs without a value are left out, and
// further lines of a value stand below its first.
func (p *printer) fields(pairs ...string) {
	width := 0
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			width = max(width, utf8.RuneCountInString(pairs[i]))
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			value := strings.TrimRight(plain(pairs[i+1]), "\n")
			if strings.Contains(value, "\n") {
				value = strings.ReplaceAll(value, "\n", "\n"+strings.Repeat(" ", width+2))
			} else {
				value = wrapped(value, p.width, width+2)
			}
			fmt.Fprintf(p.out, "%s  %s\n", p.paint(faint, fmt.Sprintf("%-*s", width, pairs[i])), value)
		}
	}
}

// failure is an error as JSON.
type failure struct {
	Error      string `json:"error"`
	Kind       string `json:"kind"`
	Detail     string `json:"detail"`
	Suggestion string `json:"suggestion,omitempty"`
}

// complain writes an error: first the problem, then the suggestion.
func complain(w io.Writer, p *printer, err error) {
	f := failure{Error: fault.CodeOf(err), Kind: fault.KindOf(err).String(), Detail: err.Error()}
	if e, ok := asFault(err); ok {
		f.Suggestion = e.Suggestion
	}
	if p.json {
		_ = (&printer{out: w}).record(f) // there is nowhere left to say it
		return
	}
	fmt.Fprintf(w, "%s %s\n", p.paint(red, "agentbox:"), wrapped(plain(f.Detail), p.width, len("agentbox: ")))
	if f.Suggestion != "" {
		for line := range strings.SplitSeq(plain(f.Suggestion), "\n") {
			fmt.Fprintf(w, "          %s\n", wrapped(line, p.width, len("agentbox: ")))
		}
	}
}

// trimmed writes a number without zeros that say nothing.
func trimmed(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// assignments writes a map as NAME=VALUE pairs in order.
func assignments(m map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%s=%s ", name, m[name])
	}
	return strings.TrimSpace(b.String())
}
