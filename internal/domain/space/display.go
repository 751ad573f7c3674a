package space

import "slices"

// Display is one form of a value that a command has shown besides its output, such as the value of an interpreter cell.
type Display struct {
	Value   int    // which of the values that the command has shown, from 1; the forms of one follow each other, its text first
	Result  bool   // the value is that of a cell's last expression
	Type    string // the language's name for the type of the value
	Media   string // the media type of this form, one of DisplayMedia
	Data    []byte
	Rows    int // of a table; 0 for other forms
	Columns int
	Width   int // of a picture in pixels; 0 for other forms
	Height  int
}

// Bounds of the displays of one command. Displays beyond them are left out, and the command reports it.
const (
	MaxDisplays      = 64      // forms of values together
	MaxDisplayBytes  = 4 << 20 // of one
	MaxDisplaysBytes = 8 << 20 // of all together
	MaxDisplayType   = 100     // bytes of the name of a type
)

// The media types of the forms of a value.
const (
	DisplayText     = "text/plain"
	DisplayHTML     = "text/html"
	DisplayMarkdown = "text/markdown"
	DisplayLaTeX    = "text/latex"
	DisplaySVG      = "image/svg+xml"
	DisplayPNG      = "image/png"
	DisplayJPEG     = "image/jpeg"
	DisplayJSON     = "application/json"
	DisplayChart    = "application/vnd.agentbox.chart+json" // the data of a chart, in the words of E2B
)

// DisplayMedia returns every media type that a form of a value can have.
func DisplayMedia() []string {
	return []string{DisplayText, DisplayHTML, DisplaySVG, DisplayPNG, DisplayJPEG, DisplayMarkdown, DisplayLaTeX, DisplayJSON,
		DisplayChart}
}

// Fits reports whether one more display is well-formed and has room besides the existing ones.
func (d Display) Fits(there []Display) bool {
	if len(there) >= MaxDisplays || len(d.Data) > MaxDisplayBytes || len(d.Type) > MaxDisplayType || !slices.Contains(DisplayMedia(),
		d.Media) ||
		d.Value < 1 || min(d.Rows, d.Columns, d.Width, d.Height) < 0 {
		return false
	}
	size := len(d.Data)
	for _, t := range there {
		size += len(t.Data)
	}
	return size <= MaxDisplaysBytes
}
