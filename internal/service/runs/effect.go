package runs

import (
	"context"
	"errors"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
)

// effect causes an effect while nobody else may use the space's files as a whole, and makes a snapshot of them afterwards. By then no
// process of the operation is left, and the next one has not begun.
func (r *execution) effect(ctx context.Context, t *task, p policy.Permit) run.Result {
	spec, _ := run.SpecOf(t.op.Type)
	if !spec.InSpace() {
		return r.do(ctx, t, p)
	}
	if r.doc.Background {
		return command{r}.beside(ctx, t, p)
	}
	s, leave, err := r.x.Spaces.Occupy(ctx, r.doc.Workspace, r.doc.Space, spec.Whole())
	if err != nil {
		return r.failed(ctx, t, run.Result{Type: t.op.Type, Path: t.action.Path, Command: t.op.Command}, err)
	}
	defer leave()
	t.space = s
	result := r.do(ctx, t, p)
	if spec.Changes != run.ChangesNothing && result.Type != run.ResPolicyDenied {
		t.kept = r.snapshot(context.WithoutCancel(ctx), t.space)
	}
	return result
}

// snapshot makes a snapshot of the space's files. The outcome is recorded even if the snapshot fails, so its error becomes a code.
func (r *execution) snapshot(ctx context.Context, s space.Space) run.Kept {
	made, err := r.x.Spaces.Keep(ctx, s)
	if err == nil {
		return run.Kept{Snapshot: &run.Snapshot{Root: made.Root, Files: made.Files, Bytes: made.Bytes, Omitted: made.Omitted}}
	}
	r.x.Logger.Warn("no snapshot of a space", "code", "snapshot_missing", "space", r.doc.Space, "run", r.doc.ID, "error", err)
	if code := fault.CodeOf(err); code != "" {
		return run.Kept{Error: code}
	}
	return run.Kept{Error: "internal_error"}
}

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
