package cmdline

import (
	"fmt"
	"io"
	"strings"

	"agentbox/internal/domain/fault"
	"agentbox/internal/surface/cli/term"
)

// failure is an error as JSON.
type failure struct {
	Error      string `json:"error"`
	Kind       string `json:"kind"`
	Detail     string `json:"detail"`
	Suggestion string `json:"suggestion,omitempty"`
}

// Complain writes an error: first the problem, then the suggestion.
func Complain(w io.Writer, p *term.Printer, err error) {
	f := failure{Error: fault.CodeOf(err), Kind: fault.KindOf(err).String(), Detail: err.Error()}
	if e, ok := AsFault(err); ok {
		f.Suggestion = e.Suggestion
	}
	if p.JSON {
		_ = (&term.Printer{Out: w}).Record(f) // there is nowhere left to say it
		return
	}
	fmt.Fprintf(w, "%s %s\n", p.Paint(term.Red, "agentbox:"), term.Wrapped(term.Plain(f.Detail), p.Width, len("agentbox: ")))
	if f.Suggestion != "" {
		for line := range strings.SplitSeq(term.Plain(f.Suggestion), "\n") {
			fmt.Fprintf(w, "          %s\n", term.Wrapped(line, p.Width, len("agentbox: ")))
		}
	}
}
