package runview

import (
	"encoding/xml"
	"fmt"
	"strings"
	"time"

	"agentbox/internal/client"
	"agentbox/internal/domain/run"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// extent returns the first and the last moment of spans.
func extent(spans []run.Span) (from, to time.Time) {
	for _, s := range spans {
		if from.IsZero() || s.From.Before(from) {
			from = s.From
		}
		if s.To.After(to) {
			to = s.To
		}
	}
	return from, to
}

// lane is a line of a timeline: the run itself first, then its operations, or the parts of one that engines execute.
type lane struct {
	number, kind, what string
	bad                bool // it did not succeed
}

// partWords are the words for the parts of a run that engines execute.
var partWords = map[string]string{run.PartWhole: "without a claim", run.PartAttempt: "attempt", run.PartStep: "· step",
	run.PartCall: "· · tool call"}

func lanes(r run.Run, spans []run.Span) []lane {
	all := []lane{{kind: "queued"}}
	for i, o := range r.Operations {
		all = append(all, lane{fmt.Sprint(i + 1), o.Type, o.Summary, o.State == run.Done && !o.OK})
	}
	for _, s := range spans {
		if s.Part != "" {
			all = append(all, lane{fmt.Sprint(s.Index + 1), partWords[s.Part], cmdline.First(s.Name, s.ID), s.Failed})
		}
	}
	return all
}

// WriteWaterfall writes a timeline for people: a line for each operation with a bar that shows when.
func WriteWaterfall(p *term.Printer, r client.RunShown, spans []run.Span) {
	from, to := extent(spans)
	width := 40
	if p.Width > 0 {
		width = min(60, max(12, p.Width-74))
	}
	var rows [][]term.Cell
	for i, l := range lanes(r.Run, spans) {
		i-- // the first is the run itself
		var took, waited time.Duration
		var begun time.Time
		bar := []rune(strings.Repeat(" ", width))
		for _, s := range spans {
			if s.Index != i {
				continue
			}
			if begun.IsZero() {
				begun = s.From
			}
			mark := '█'
			if s.Kind == run.SpanWorking {
				took += s.To.Sub(s.From)
			} else {
				mark = '░'
				waited += s.To.Sub(s.From)
			}
			first, last := column(s.From, from, to, width), column(s.To, from, to, width)
			for at := first; at <= last; at++ {
				bar[at] = mark
			}
		}
		if begun.IsZero() && i < 0 {
			continue
		}
		row := []term.Cell{{Text: l.number, Colour: term.Faint}, {Text: l.kind, Colour: ""}, {Text: p.Cut(l.what, 28), Colour: ""},
			{Text: after(begun, from), Colour: term.Faint}, {Text: term.Duration(took), Colour: term.Faint},
			{Text: pause(waited), Colour: term.Yellow}, {Text: string(bar), Colour: term.Cyan}}
		if i < 0 {
			row[1].Colour = term.Faint
		}
		if l.bad {
			row[6].Colour = term.Red
		}
		if i < 0 || begun.IsZero() {
			row[4].Text = ""
		}
		rows = append(rows, row)
	}
	p.Table("The run has no operations.", []string{"", "operation", "what", "began", "worked", "waited", "when"}, rows)
	status := State(r.Status)
	p.Line("\nrun %s: %s, %s in all", p.Paint(term.Bold, string(r.ID)), p.Paint(status.Colour, status.Text), term.Duration(to.Sub(from)))
}

// pause is a span of waiting, empty where there was none.
func pause(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return term.Duration(d)
}

func after(at, from time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return "+" + term.Duration(at.Sub(from))
}

// column is the place of a moment in a bar.
func column(at, from, to time.Time, width int) int {
	all := to.Sub(from)
	if all <= 0 {
		return 0
	}
	return min(width-1, int(float64(width)*float64(at.Sub(from))/float64(all)))
}

// The measures of the picture, in pixels.
const (
	pictureWidth = 1000
	labelWidth   = 330
	rowHeight    = 24
	headHeight   = 64
	footHeight   = 52
	timeWidth    = 70
)

// Waterfall draws a timeline as an SVG picture that loads nothing.
func Waterfall(r run.Run, spans []run.Span) string {
	from, to := extent(spans)
	all := max(to.Sub(from), time.Millisecond)
	chart := float64(pictureWidth - labelWidth - timeWidth)
	x := func(at time.Time) float64 { return labelWidth + chart*float64(at.Sub(from))/float64(all) }
	parts := lanes(r, spans)
	rows := len(parts)
	height := headHeight + rows*rowHeight + footHeight
	var b strings.Builder
	title := fmt.Sprintf("Run %s: %s, %s", r.ID, r.Status, term.Duration(to.Sub(from)))
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n",
		pictureWidth, height, pictureWidth, height, escaped(title))
	b.WriteString(pictureStyle)
	fmt.Fprintf(&b, `<title>%s</title><rect class="ground" width="100%%" height="100%%"/>`+"\n", escaped(title))
	fmt.Fprintf(&b, `<text class="head" x="16" y="26">%s</text>`+"\n", escaped(term.OneLine(headline(r), 100)))
	fmt.Fprintf(&b, `<text class="quiet" x="16" y="46">%s</text>`+"\n", escaped(title))
	bottom := headHeight + rows*rowHeight
	for n := range 6 {
		at := from.Add(all * time.Duration(n) / 5)
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/><text class="tick" x="%.1f" y="%d">%s</text>`+"\n",
			x(at), x(at), headHeight-6, bottom, x(at), bottom+16, escaped(term.Duration(at.Sub(from))))
	}
	for i, l := range parts {
		y := headHeight + i*rowHeight
		i-- // the first is the run itself
		label, class := l.kind, ""
		if i >= 0 {
			label = l.number + "  " + l.kind + "  " + l.what
		}
		if l.bad {
			class = " bad"
		}
		fmt.Fprintf(&b, `<g><title>%s</title><text class="label" x="16" y="%d">%s</text>`, escaped(term.Plain(label)), y+16,
			escaped(term.OneLine(label, 42)))
		var took time.Duration
		end := float64(labelWidth)
		for _, s := range spans {
			if s.Index != i {
				continue
			}
			width := max(2, x(s.To)-x(s.From))
			fmt.Fprintf(&b, `<rect class="%s%s" x="%.1f" y="%d" width="%.1f" height="14" rx="2"><title>%s %s</title></rect>`,
				s.Kind, class, x(s.From), y+5, width, s.Kind, escaped(term.Duration(s.To.Sub(s.From))))
			took += s.To.Sub(s.From)
			end = max(end, x(s.From)+width)
		}
		if end > labelWidth {
			fmt.Fprintf(&b, `<text class="quiet" x="%.1f" y="%d">%s</text>`, end+6, y+16, escaped(term.Duration(took)))
		}
		b.WriteString("</g>\n")
	}
	for n, key := range []struct{ class, words string }{{"queued", "queued"}, {"waiting", "waits for a person"}, {"working", "works"},
		{"working bad", "did not succeed"}} {
		at := 16 + n*160
		fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%d" width="12" height="12" rx="2"/><text class="quiet" x="%d" y="%d">%s</text>`+"\n",
			key.class, at, height-18, at+18, height-8, key.words)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// pictureStyle are the colours of the picture, on light and on dark ground.
const pictureStyle = `<style>
text{font:13px ui-sans-serif,system-ui,sans-serif;fill:#1f2328}
.head{font-weight:600;font-size:15px}.quiet,.tick{fill:#59636e;font-size:12px}.tick{text-anchor:middle}
.label{font-family:ui-monospace,monospace;font-size:12px}
.ground{fill:#ffffff}.grid{stroke:#d1d9e0;stroke-width:1}
.queued{fill:#afb8c1}.waiting{fill:#d4a72c}.working{fill:#1f883d}.bad{fill:#cf222e}
@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.quiet,.tick{fill:#9198a1}.ground{fill:#0d1117}.grid{stroke:#3d444d}.working{fill:#3fb950}.bad{fill:#f85149}}
</style>
`

func headline(r run.Run) string {
	if r.Title != "" {
		return r.Title
	}
	return string(r.ID)
}

// escaped returns a text for the inside of XML. The caller has replaced characters that XML cannot hold.
func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(term.Plain(s))) // a Builder takes everything
	return b.String()
}
