package tools

import (
	"fmt"
	"strings"

	"agentbox/internal/domain/run"
	"agentbox/internal/domain/tool"
)

// Tell returns the result of an operation as a model reads it. shown returns the text of a display, and false if it is not a short text;
// then the model reads only its media type and size.
func Tell(r run.Result, shown func(run.Display) (string, bool)) tool.Result {
	switch r.Type {
	case run.ResPolicyDenied:
		refusal := tool.Refusal{Tool: r.OperationType, Rule: r.ReasonCode, Reason: r.Reason, Instead: r.Suggestion}
		return tool.Result{Text: refusal.Text(), Refusal: &refusal}
	case run.ResUnknown:
		return tool.Result{Text: "unknown: the daemon was interrupted, so nobody knows whether this was done. Look before you do it again."}
	case run.ResError:
		text := "failed: " + r.Message
		if r.Suggestion != "" {
			text += "\ninstead: " + r.Suggestion
		}
		return tool.Result{Text: text}
	}
	return tool.Result{OK: r.OK(), Text: said(r, shown)}
}

// said returns the text of the result of an executed operation.
func said(r run.Result, shown func(run.Display) (string, bool)) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if r.ExitCode != nil {
		line("exit code: %d", *r.ExitCode)
	}
	if r.TimedOut != nil && *r.TimedOut {
		line("it was ended at its time limit")
	}
	if r.Error != "" {
		line("failed: %s", r.Error)
	}
	for _, lack := range r.Lacks {
		line("this space lacks the %s %s: %s", lack.Kind, lack.Name, lack.Detail)
	}
	if r.BytesWritten != nil {
		line("%d bytes written to %s", *r.BytesWritten, r.Path)
	}
	if r.EditsApplied != nil {
		line("%d edits made in %s", *r.EditsApplied, r.Path)
	}
	if r.Content != nil {
		if r.Encoding == "base64" {
			line("base64:")
		}
		b.WriteString(*r.Content)
	}
	stream := func(name string, text *string) {
		if text != nil && *text != "" {
			line("%s:", name)
			b.WriteString(*text)
			if !strings.HasSuffix(*text, "\n") {
				b.WriteByte('\n')
			}
		}
	}
	stream("stdout", r.Stdout)
	stream("stderr", r.Stderr)
	for i, d := range r.Displays {
		if d.Media == "text/plain" {
			if text, ok := shown(d); ok {
				if r.Stdout == nil || !strings.Contains(*r.Stdout, strings.TrimSpace(text)) { // a cell also prints its value
					stream("value", &text)
				}
				continue
			}
		}
		if i > 0 && r.Displays[i-1].Value == d.Value {
			line("the same value as %s", form(d))
		} else {
			line("shown: %s", form(d))
		}
	}
	switch {
	case b.Len() > 0:
		return b.String()
	case r.OK():
		return "done"
	}
	return "failed"
}

// form describes a display by its media type and size. It does not name the artifact, because its id differs in every run.
func form(d run.Display) string {
	text := fmt.Sprintf("%s, %d bytes", d.Media, d.Size)
	switch {
	case d.Width > 0:
		text += fmt.Sprintf(", %d x %d pixels", d.Width, d.Height)
	case d.Rows > 0:
		text += fmt.Sprintf(", %d rows and %d columns", d.Rows, d.Columns)
	}
	return text
}
