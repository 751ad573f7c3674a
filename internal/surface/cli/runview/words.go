package runview

import (
	"fmt"
	"strings"

	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// WriteDisplay is a line about a form of a value, and where it is; a text was printed.
func WriteDisplay(p *term.Printer, d run.Display, where string) {
	if d.Media != space.DisplayText {
		p.Line("%s", p.Paint(term.Faint, FormOf(d)+"  "+where))
	}
}

// FormOf describes a form of a value in a few words.
func FormOf(d run.Display) string {
	about := term.Bytesize(d.Size)
	switch {
	case d.Width > 0:
		about = fmt.Sprintf("%d by %d, %s", d.Width, d.Height, about)
	case d.Columns > 0:
		about = fmt.Sprintf("%s of %s, %s", term.Count(d.Rows, "row"), term.Count(d.Columns, "column"), about)
	}
	return term.Plain(d.Media) + "  " + about
}

// Full says how many tasks of a workspace run.
func Full(t run.Tasks) string {
	said := fmt.Sprintf("%d of %d tasks of the workspace run", t.Running, t.Most)
	if t.Silent > 0 {
		said += fmt.Sprintf(", %d of them with engines that were not heard of for longer than their claims last", t.Silent)
	}
	return said
}

// Stands says in words where a run stands: "the run" goes before them.
func Stands(s run.Status) string {
	switch s {
	case run.Succeeded, run.Failed:
		return string(s)
	case run.Cancelled:
		return "was cancelled"
	case run.AwaitingApproval:
		return "waits for a person"
	}
	return "is " + term.OneLine(string(s), 40)
}

// Said puts a result event into a few words, with the colour that suits it.
func Said(e run.Result) (string, string) {
	switch e.Type {
	case run.ResPolicyDenied:
		return cmdline.First(e.Reason, e.ReasonCode), term.Red
	case run.ResUnknown:
		return "unknown: " + e.Reason, term.Red
	case run.ResError:
		return cmdline.First(e.Message, e.Category), term.Red
	case run.ResApprovalRequired:
		return "asks: " + e.Reason, term.Yellow
	}
	var parts []string
	if e.ExitCode != nil {
		parts = append(parts, fmt.Sprintf("exit %d", *e.ExitCode))
	}
	if e.TimedOut != nil && *e.TimedOut {
		parts = append(parts, "timed out")
	}
	if e.Limit != "" {
		parts = append(parts, "hit "+e.Limit)
	}
	if e.BytesWritten != nil {
		parts = append(parts, term.Bytesize(*e.BytesWritten)+" written")
	}
	if e.Size != nil {
		parts = append(parts, term.Bytesize(*e.Size)+" read")
	}
	if e.EditsApplied != nil {
		parts = append(parts, fmt.Sprintf("%d edited", *e.EditsApplied))
	}
	if e.Error != "" {
		parts = append(parts, e.Error)
	}
	if !e.OK() {
		return cmdline.First(strings.Join(parts, ", "), "failed"), term.Red
	}
	return cmdline.First(strings.Join(parts, ", "), "ok"), term.Green
}
