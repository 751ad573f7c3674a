package run

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"agentbox/internal/domain/id"
)

// TraceVariable is the environment variable by which a command learns its place in the trace of its run. It is set only if the environment
// has it and leaves it empty. So the maker of the space or of the operation asks for it. The name of a trace links events of different
// spaces, and a command must not learn it by accident.
const TraceVariable = "TRACEPARENT"

// SpanID derives the number of a span, in 16 hex digits, from its subject: a run, a step, an approval. So reports at different times, also
// before and after a restart, use the same number, and nobody has to store it.
func SpanID(about string) string {
	sum := sha256.Sum256([]byte("agentbox span\n" + about))
	return hex.EncodeToString(sum[:8])
}

// Traced returns the place of a step in a trace (a W3C traceparent); "" for a run without a trace.
func (r Run) Traced(step id.Step) string {
	parts := strings.Split(r.Trace, "-")
	if len(parts) != 4 || step == "" {
		return ""
	}
	return strings.Join([]string{parts[0], parts[1], SpanID(string(step)), parts[3]}, "-")
}
