package runs

import (
	"context"
	"errors"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
)

// begun is an operation whose intent is recorded and whose effect is to follow.
type begun struct {
	task   task
	permit policy.Permit
}

// errAlone means that the first operation of a run cannot begin in the commit in which the run does.
var errAlone = errors.New("the operation begins apart")

// start records that the run begins, and what the space's files are before its first operation. Where that may be done at once, it is begun in the same
// commit, and is done.
func (r *ride) start(ctx context.Context, s space.Space) error {
	if _, err := r.room(ctx); err != nil {
		return err
	}
	leave, err := r.x.Spaces.Occupy(ctx, r.doc.Workspace, r.doc.Space, false)
	if err != nil {
		return err
	}
	started := r.started(ctx)
	first, err := r.startWith(ctx, s, nil, started)
	if errors.Is(err, errAlone) {
		err = r.enter(ctx, started)
	}
	leave()
	if err != nil || first == nil {
		return err
	}
	return r.carry(ctx, first.task, first.permit)
}

func (r *ride) started(ctx context.Context) event.Draft {
	return r.event(run.EventStarted, "", run.Started{Run: r.doc.ID, Child: r.doc.Parent != nil, Kept: r.keep(ctx)})
}

// startWith records that the run and its first operation begin, and that there is the run where it was only asked for. It is errAlone where policy has
// more to say about the operation; then nothing is recorded.
func (r *ride) startWith(ctx context.Context, s space.Space, a *asked, started event.Draft) (*begun, error) {
	t, ok := r.foresee(ctx, s)
	if !ok {
		return nil, errAlone
	}
	id, shown := r.doc.ID, make(chan struct{})
	again := r.entry.announced == t.op.ID
	go func() { // while the disk is waited for
		defer close(shown)
		if !again {
			r.x.announce(ctx, id, outline(t.op))
		}
	}()
	r.entry.announced = t.op.ID
	defer func() { <-shown }()
	var permit policy.Permit
	receipt, err := r.entering(ctx, func(place []event.DocumentVersion) (receipt event.Receipt, err error) {
		batch, with := r.batch(started, r.intent(t, "")), []policy.Ruling(nil)
		if a != nil {
			batch.Drafts = slices.Concat(a.batch.Drafts, batch.Drafts)
			batch.Key, batch.Digest, with = a.batch.Key, a.batch.Digest, []policy.Ruling{a.admitted}
		}
		batch.Documents = append(batch.Documents, place...)
		permit, receipt, err = r.x.Gate.Begin(ctx, t.ruling, "", batch, with...)
		return receipt, err
	})
	switch fault.KindOf(err) {
	case fault.Denied, fault.Waiting, fault.Invalid, fault.NotFound, fault.Exhausted: // of the operation: the run begins all the same, and it is judged anew
		return nil, errAlone
	}
	if err != nil {
		return nil, err
	}
	if receipt.Replayed { // somebody has asked for the run a moment ago
		return nil, errAlone
	}
	return &begun{t, permit}, r.fold(receipt)
}

// foresee returns the first operation if it is one that policy allows as it stands, and whose intent is recorded before it is done.
func (r *ride) foresee(ctx context.Context, s space.Space) (t task, ok bool) {
	if len(r.ops) == 0 {
		return t, false
	}
	t = task{op: r.ops[0], progress: r.doc.Operations[0]}
	if err := r.prepare(ctx, &t, s); err != nil {
		return t, false
	}
	var err error
	if t.ruling, err = r.x.Gate.Judge(ctx, t.action); err != nil {
		return t, false
	}
	return t, t.ruling.Decision.Allowed() && !t.glances()
}

// occupied causes an effect while nobody else may touch the space's files as a whole, and makes a snapshot of them afterwards. No process of
// the operation is left by then, and the next one has not begun.
func (r *ride) occupied(ctx context.Context, t *task, p policy.Permit) run.Result {
	if t.op.Type == run.OpMessage {
		return r.affect(ctx, t, p)
	}
	leave, err := r.x.Spaces.Occupy(ctx, r.doc.Workspace, r.doc.Space, t.op.Type == run.OpShell)
	if err != nil {
		return r.failed(ctx, t, run.Result{Type: t.op.Type, Path: t.action.Path, Command: t.op.Command}, err)
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
