package executor

import (
	"context"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
)

// start records that the run begins, and what the space's files are before its first operation.
func (r *ride) start(ctx context.Context) error {
	if _, err := r.room(ctx); err != nil {
		return err
	}
	leave, err := r.x.Spaces.Occupy(ctx, r.doc.Workspace, r.doc.Space, false)
	if err != nil {
		return err
	}
	defer leave()
	return r.enter(ctx, r.event(run.EventStarted, "", run.Started{Run: r.doc.ID, Child: r.doc.Parent != nil, Kept: r.keep(ctx)}))
}

// occupied causes an effect while nobody else may touch the space's files as a whole, and makes a snapshot of them afterwards. No process of
// the operation is left by then, and the next one has not begun.
func (r *ride) occupied(ctx context.Context, t *task, p policy.Permit) run.Result {
	if t.op.Type == run.OpMessage {
		return r.affect(ctx, t, p)
	}
	leave, err := r.x.Spaces.Occupy(ctx, r.doc.Workspace, r.doc.Space, t.op.Type == run.OpShell)
	if err != nil {
		return r.failed(ctx, *t, run.Result{Type: t.op.Type, Path: t.action.Path, Command: t.op.Command}, err)
	}
	defer leave()
	result := r.affect(ctx, t, p)
	if t.op.Type != run.OpReadFile && result.Type != run.ResPolicyDenied {
		t.kept = r.keep(context.WithoutCancel(ctx))
	}
	return result
}

// keep makes a snapshot of the space's files. What happened is recorded whether it can be made or not, so its error becomes a code.
func (r *ride) keep(ctx context.Context) run.Kept {
	made, err := r.x.Spaces.Keep(ctx, r.doc.Workspace, r.doc.Space)
	if err == nil {
		return run.Kept{Snapshot: &run.Snapshot{Root: made.Root, Files: made.Files, Bytes: made.Bytes, Omitted: made.Omitted}}
	}
	r.x.Logger.Warn("no snapshot of a space", "code", "snapshot_missing", "space", r.doc.Space, "run", r.doc.ID, "error", err)
	if code := fault.CodeOf(err); code != "" {
		return run.Kept{Error: code}
	}
	return run.Kept{Error: "internal_error"}
}
