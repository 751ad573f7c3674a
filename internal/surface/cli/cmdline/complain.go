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

// Lists names the command that lists what there is, for each error about a thing that there is not.
var Lists = map[string]string{
	"agent_not_found":            "principal ls --kind agent",
	"approval_not_found":         "approvals list",
	"artifact_not_found":         "artifact list",
	"capability_token_not_found": "token ls",
	"engine_not_found":           "engines ls",
	"event_not_found":            "events",
	"incident_not_found":         "incident list",
	"key_not_found":              "key ls",
	"mcp_server_not_found":       "mcp ls",
	"model_not_found":            "model ls",
	"node_not_found":             "node list",
	"principal_not_found":        "principal ls",
	"room_not_found":             "room list",
	"run_not_found":              "runs list",
	"space_not_found":            "space list",
	"standing_not_found":         "approvals standing",
	"thread_not_found":           "thread list --room ROOM",
}

// Complain writes an error: first the problem, then the suggestion.
func Complain(w io.Writer, p *term.Printer, err error) {
	f := failure{Error: fault.CodeOf(err), Kind: fault.KindOf(err).String(), Detail: err.Error()}
	if e, ok := AsFault(err); ok {
		f.Suggestion = e.Suggestion
	}
	if list := Lists[f.Error]; list != "" && f.Suggestion == "" {
		f.Suggestion = "see: agentbox " + list
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
