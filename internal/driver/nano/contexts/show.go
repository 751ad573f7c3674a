package contexts

import (
	"bytes"
	"encoding/json"
	"html"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"strconv"
	"strings"

	"agentbox/internal/domain/space"
	"agentbox/internal/userland/program"
)

// Value is all that a value of a cell says of itself, by the names that notebooks have for it. Only its guest vouches for it.
type Value struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"` // as the language's console shows it
	HTML     string          `json:"html,omitempty"`
	SVG      string          `json:"svg,omitempty"`
	Markdown string          `json:"markdown,omitempty"`
	LaTeX    string          `json:"latex,omitempty"`
	PNG      []byte          `json:"png,omitempty"`
	JPEG     []byte          `json:"jpeg,omitempty"`
	JSON     json.RawMessage `json:"json,omitempty"`
	Table    *Table          `json:"table,omitempty"` // of a list of records
}

// Table is a list of records in rows.
type Table struct {
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`  // nil, bool, float64 or string, in the order of the columns; at most 1,000
	Total   int      `json:"total"` // how many rows there are
}

// maxTable is how many bytes of HTML a table is written to; the rows behind are left out.
const maxTable = 1 << 20

// Showing holds the displayed values of one cell. The guest itself prints their texts.
type Showing struct {
	p      *program.Process
	values int
	left   int
}

// NewShowing returns the showing of a cell that has shown nothing yet.
func NewShowing(p *program.Process) *Showing { return &Showing{p: p} }

// Show shows a value in all its forms, as its guest describes it in JSON. Show bounds the description and otherwise believes it, because it
// is about the guest's own value.
func (s *Showing) Show(raw []byte, result bool) {
	s.p.Charge(len(raw) / bytesPerGas)
	held := int64(2 * len(raw))
	if len(raw) > maxValue || s.p.Account.Allocate(held) != nil {
		s.left++
		return
	}
	defer s.p.Account.Release(held)
	var v Value
	if json.Unmarshal(raw, &v) != nil {
		s.left++
		return
	}
	s.values++
	s.left += v.show(s.p, s.values, result)
}

// maxValue is how many bytes a guest may take to describe a value.
const maxValue = 32 << 20

// End counts the values of the cell that did not fit.
func (s *Showing) End() {
	if s.left > 0 {
		s.p.Errorf("%d of the forms of what the cell shows are left out: there is room for %d of %d bytes each, %d together; write what is "+
			"more to files",
			s.left, space.MaxDisplays, space.MaxDisplayBytes, space.MaxDisplaysBytes)
	}
}

// show shows a value in each of its forms and returns how many of them had no room.
func (v *Value) show(p *program.Process, number int, result bool) (left int) {
	text := strings.ToValidUTF8(v.Text, "\uFFFD")
	all := space.Display{Value: number, Result: result, Type: cutType(v.Type)}
	form := func(media string, data []byte, size image.Config) {
		if len(data) == 0 && media != space.DisplayText {
			return
		}
		p.Charge(len(data) / bytesPerGas)
		d := all
		d.Media, d.Data, d.Width, d.Height = media, data, size.Width, size.Height
		if media == space.DisplayHTML && v.Table != nil {
			d.Rows, d.Columns = max(v.Table.Total, 0), len(v.Table.Columns)
		}
		if !p.Host.Show(program.Display(d)) {
			left++
		}
	}
	plain := func(media, text string) { form(media, []byte(strings.ToValidUTF8(text, "\uFFFD")), image.Config{}) }
	picture := func(media string, data []byte, decode func(io.Reader) (image.Config, error)) {
		if size, err := decode(bytes.NewReader(data)); err == nil { // what says that it is a picture and is none has no such form
			form(media, data, size)
		}
	}
	plain(space.DisplayText, text)
	if v.HTML == "" && v.Table != nil {
		p.Hold(maxTable)
		plain(space.DisplayHTML, v.Table.html())
	} else {
		plain(space.DisplayHTML, v.HTML)
	}
	plain(space.DisplaySVG, v.SVG)
	picture(space.DisplayPNG, v.PNG, png.DecodeConfig)
	picture(space.DisplayJPEG, v.JPEG, jpeg.DecodeConfig)
	plain(space.DisplayMarkdown, v.Markdown)
	plain(space.DisplayLaTeX, v.LaTeX)
	plain(space.DisplayJSON, string(v.JSON))
	return left
}

// cutType returns a type's name, cut to the length that is shown.
func cutType(name string) string {
	return strings.ToValidUTF8(name[:min(len(name), space.MaxDisplayType)], "")
}

// html writes a table, every text of it escaped.
func (t *Table) html() string {
	var b strings.Builder
	b.WriteString("<table>\n<thead><tr>")
	for _, c := range t.Columns {
		if b.Len()+len(c) > maxTable/8 { // its names are texts, and no form of a table
			return ""
		}
		b.WriteString("<th>" + html.EscapeString(c) + "</th>")
	}
	b.WriteString("</tr></thead>\n<tbody>\n")
	shown := 0
	for _, row := range t.Rows {
		size := 0
		for _, cell := range row {
			size += len("<td></td>") + len("&quot;")*len(cellText(cell)) // at most
		}
		if b.Len()+size > maxTable-200 {
			break
		}
		b.WriteString("<tr>")
		for _, cell := range row {
			b.WriteString("<td>" + html.EscapeString(cellText(cell)) + "</td>")
		}
		b.WriteString("</tr>\n")
		shown++
	}
	b.WriteString("</tbody>\n")
	if shown < t.Total {
		b.WriteString("<caption>" + strconv.Itoa(shown) + " of " + strconv.Itoa(t.Total) + " rows</caption>\n")
	}
	b.WriteString("</table>\n")
	return b.String()
}

func cellText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		return v
	}
	return "?" // its guest tells what it never does
}
