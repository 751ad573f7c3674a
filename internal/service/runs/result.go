package runs

import (
	"errors"
	"strings"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/run"
)

// failure is the result of an operation that could not be tried.
func failure(category string, err error) run.Result {
	return run.Result{Type: run.ResError, Category: category, Message: message(err), ReasonCode: fault.CodeOf(err),
		Suggestion: suggestion(err)}
}

// denial is the result of an operation that the gate, or a person, refused.
func denial(t task) run.Result {
	d := t.ruling.Decision
	return run.Result{Type: run.ResPolicyDenied, OperationType: t.op.Type, Reason: d.Reason, ReasonCode: d.ReasonCode,
		Suggestion: d.Suggestion}
}

func message(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind != fault.Internal {
		return f.Msg
	}
	return "the daemon could not do it; its own log says why"
}

func suggestion(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Suggestion
	}
	return ""
}

// valid returns bytes as text. It replaces invalid UTF-8 by U+FFFD.
func valid(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

func ptr[T any](v T) *T { return &v }
