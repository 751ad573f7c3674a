package bench

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
)

// The picture's panels, in pixels.
const (
	panelWidth  = 620.0
	panelHeight = 240.0
	panelLeft   = 80.0
	panelGap    = 70.0
)

// line is one line of a panel.
type line struct {
	name, colour string
	value        func(point) float64
}

// drawCurve draws the points as SVG: the rate above, the latencies below, each from zero, over the logarithm of the size.
func drawCurve(points []point) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12" fill="#333">`+
		"\n",
		panelLeft+panelWidth+40, 2*(panelHeight+panelGap)+20)
	fmt.Fprintln(&out, `<rect width="100%" height="100%" fill="#fff"/>`)
	panel(&out, 0, "durable appends, events/s, 64 writers", points, []line{{"events/s", "#1769aa", func(p point) float64 { return p.Rate }}})
	panel(&out, 1, "median latency, ms", points, []line{
		{"append, 64 writers", "#1769aa", func(p point) float64 { return p.P50 }},
		{"read the last 100", "#b3541e", func(p point) float64 { return p.Read }},
		{"page of a room", "#7b3fa0", func(p point) float64 { return p.Page }},
		{"append to follower", "#3a7d34", func(p point) float64 { return p.Tail }},
	})
	fmt.Fprintln(&out, `</svg>`)
	return out.Bytes()
}

func panel(out *bytes.Buffer, n int, title string, points []point, lines []line) {
	top := 40 + float64(n)*(panelHeight+panelGap)
	most := 0.0
	for _, p := range points {
		for _, l := range lines {
			most = max(most, l.value(p))
		}
	}
	most = ceiling(most)
	y := func(v float64) float64 { return top + panelHeight*(1-v/most) }
	x := func(i int) float64 { return panelLeft + panelWidth*(float64(i)+0.5)/float64(len(points)) }
	fmt.Fprintf(out, `<text x="%.0f" y="%.0f" font-weight="bold">%s</text>`+"\n", panelLeft, top-12, title)
	for i := range 5 {
		v := most * float64(i) / 4
		fmt.Fprintf(out, `<path d="M%.1f %.1fh%.1f" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n",
			panelLeft, y(v), panelWidth, panelLeft-8, y(v)+4, strconv.FormatFloat(v, 'f', -1, 64))
	}
	for i, p := range points {
		fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", x(i), top+panelHeight+18, short(p.Events))
	}
	fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="end">events in the log</text>`+"\n", panelLeft+panelWidth, top+panelHeight+34)
	for i, l := range lines {
		var path strings.Builder
		for k, p := range points {
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(k, 1)], x(k), y(l.value(p)))
			fmt.Fprintf(out, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x(k), y(l.value(p)), l.colour)
		}
		fmt.Fprintf(out, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", path.String(), l.colour)
		if len(lines) > 1 {
			fmt.Fprintf(out, `<text x="%.1f" y="%.1f" fill="%s">%s</text>`+"\n", panelLeft+180+float64(i)*130, top-12, l.colour, l.name)
		}
	}
}

// ceiling is the least of 1, 2, 4 and 8 times a power of ten that is at least v.
func ceiling(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 2, 4, 8} {
		if v <= step*power {
			return step * power
		}
	}
	return 10 * power
}

// short writes a size as people say it.
func short(n uint64) string {
	switch {
	case n >= 1_000_000:
		return strconv.FormatUint(n/1_000_000, 10) + " M"
	case n >= 1_000:
		return strconv.FormatUint(n/1_000, 10) + " k"
	}
	return strconv.FormatUint(n, 10)
}

// TestThePictureIsWellFormed draws and parses.
func TestThePictureIsWellFormed(t *testing.T) {
	picture := drawCurve([]point{{Events: 0, Rate: 30_000, P50: 1.5, Read: 0.2, Page: 0.3, Tail: 0.4}, {Events: 5_000_000, Rate: 31_000,
		P50: 1.4, Read: 0.2, Page: 0.3, Tail: 0.5}})
	var parsed struct {
		Circles []struct {
			Y float64 `xml:"cy,attr"`
		} `xml:"circle"`
	}
	if err := xml.Unmarshal(picture, &parsed); err != nil {
		t.Fatal(err)
	}
	if len(parsed.Circles) != 10 {
		t.Fatalf("%d points, want 10", len(parsed.Circles))
	}
	if low, high := parsed.Circles[0].Y, parsed.Circles[1].Y; low <= high {
		t.Errorf("30,000 lies at %g and 31,000 at %g, which is not above it", low, high)
	}
}
