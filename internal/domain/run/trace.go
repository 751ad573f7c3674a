package run

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"agentbox/internal/domain/id"
)

// TraceVariable is the variable in which a command finds its place in the trace of its run, where its environment has it and leaves it
// empty. Who makes the space or sends the operation asks for it: the name of a trace ties together what happens in different spaces, so
// that no command is told of it that nobody meant to tell.
const TraceVariable = "TRACEPARENT"

// SpanID returns the number of a span, in 16 hex digits, from what it is about: a run, a step, an approval. So those who tell of it at
// different times, also before and after a restart, call it the same, and nobody has to remember it.
func SpanID(about string) string {
	sum := sha256.Sum256([]byte("agentbox span\n" + about))
	return hex.EncodeToString(sum[:8])
}

// Traced returns the place in a trace (a W3C traceparent) of a step of the run, and "" for a run that belongs to no trace.
func (r Run) Traced(step id.Step) string {
	parts := strings.Split(r.Trace, "-")
	if len(parts) != 4 || step == "" {
		return ""
	}
	return strings.Join([]string{parts[0], parts[1], SpanID(string(step)), parts[3]}, "-")
}
