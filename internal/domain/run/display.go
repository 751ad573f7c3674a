package run

import (
	"fmt"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// Display is one form of a value that an operation has shown besides its output, and the artifact that holds it.
type Display struct {
	Artifact id.Artifact  `json:"artifact_id"`
	Value    int          `json:"value"`            // which of the values that were shown, from 1; the forms of one follow each other
	Result   bool         `json:"result,omitempty"` // the value is that of a cell's last expression
	Type     string       `json:"type,omitempty"`   // the language's name for the type of the value
	Media    string       `json:"mime_type"`
	Size     int64        `json:"size_bytes"`
	Digest   event.Digest `json:"sha256"`
	Rows     int          `json:"rows,omitempty"` // of a table, all that it has
	Columns  int          `json:"columns,omitempty"`
	Width    int          `json:"width,omitempty"` // of a picture in pixels
	Height   int          `json:"height,omitempty"`
}

// displaysText describes displays by their content, without the artifacts, which differ in every run.
func displaysText(all []Display) string {
	var b strings.Builder
	for _, d := range all {
		fmt.Fprintf(&b, "%d %t %s %s %s\n", d.Value, d.Result, d.Type, d.Media, d.Digest)
	}
	return b.String()
}
