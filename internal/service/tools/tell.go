package tools

import (
	"fmt"
	"strings"

	"agentbox/internal/domain/run"
	"agentbox/internal/domain/tool"
)

// Tell returns the result of an operation as a model reads it.
func Tell(r run.Result) tool.Result {
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
	return tool.Result{OK: r.OK(), Text: said(r)}
}

// said returns what came of an operation that was executed.
func said(r run.Result) string {
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
	switch {
	case b.Len() > 0:
		return b.String()
	case r.OK():
		return "done"
	}
	return "failed"
}
