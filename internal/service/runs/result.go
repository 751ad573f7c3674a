package runs

import (
	"context"
	"errors"
	"strings"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
)

// do does the permitted action and returns the operation's result event. It never returns an error: an error becomes the result.
func (r *execution) do(ctx context.Context, t *task, p policy.Permit) run.Result {
	v, ok := verbs[t.op.Type]
	if !ok {
		err := fault.New(fault.Invalid, "operation_unsupported", "operations of the type %.64q are not executed here", t.op.Type)
		return r.failed(ctx, t, run.Result{Type: t.op.Type}, err)
	}
	return v.do(ctx, r, t, p)
}

// failed completes a result with an error. A permit that was refused at the last moment is a denial. An error without words for the agent
// is the system's, and its cause goes to the daemon's own log.
func (r *execution) failed(ctx context.Context, t *task, result run.Result, err error) run.Result {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	} else if cause != nil {
		err = errShutdown
	}
	if halt, ok := errors.AsType[policy.Halt](err); ok {
		t.halt = halt
	}
	f, ok := errors.AsType[*fault.Error](err)
	switch {
	case !ok || f.Kind == fault.Internal:
		r.x.Logger.Error("operation failed", "code", "operation_failed", "run", r.doc.ID, "operation", t.op.ID, "error", err)
		return failure(run.CategorySystem, err)
	case f.Kind == fault.Denied:
		refused := *t
		refused.ruling.Decision = policy.Decision{Outcome: policy.Deny, ReasonCode: f.Code, Reason: f.Msg, Suggestion: f.Suggestion}
		return denial(refused)
	}
	result.Success, result.Error, result.ReasonCode, result.Suggestion = ptr(false), f.Msg, f.Code, f.Suggestion
	return result
}

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
