package runs

import (
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
)

// errApart means that the first operation of a run does not begin in the commit in which the run does.
var errApart = errors.New("the operation begins apart")

// start records that the run begins. If policy allows the first operation without asking, start begins it in the same commit and applies
// it. A run that is not recorded yet is recorded in that commit too, or else alone.
func (r *execution) start(ctx context.Context, s space.Space) error {
	t, permit, err := r.open(ctx, s)
	switch {
	case err == nil:
		return r.apply(ctx, t, permit)
	case errors.Is(err, errApart) && r.creation == nil:
		return nil
	case r.creation == nil:
		return err
	case errors.Is(err, journal.ErrClosed): // it may be recorded; look for it when the log is open again
		r.answer(run.Run{}, err)
		return err
	}
	return r.create(ctx)
}

// open records that the run begins, with a snapshot of the space's files and, where policy allows it, the intent of the first operation.
// It returns errApart where that operation begins later. A run that is not recorded yet stays so then.
func (r *execution) open(ctx context.Context, s space.Space) (t task, permit policy.Permit, err error) {
	if r.creation != nil {
		ctx = context.WithoutCancel(ctx) // it is recorded, or it is not
	}
	if _, err := r.slot(ctx); err != nil {
		return t, permit, err
	}
	begun := run.Started{Run: r.doc.ID, Child: r.doc.Parent != nil, Background: r.doc.Background}
	if !r.doc.Background { // else nobody would know what of the files was its own
		now, leave, err := r.occupy(ctx, s)
		if err != nil {
			return t, permit, err
		}
		defer leave()
		s, begun.Kept = now, r.snapshot(ctx, now)
	}
	started := r.event(run.EventStarted, "", begun)
	t, err = r.allowed(ctx, s)
	if err == nil {
		permit, err = r.beginFirst(ctx, t, started)
	}
	if errors.Is(err, errApart) && r.creation == nil {
		if failed := r.appendInSlot(ctx, started); failed != nil {
			err = failed
		}
	}
	return t, permit, err
}

// occupy takes the space's files and returns the space's document. The caller of a run that is not recorded yet waits for an answer, so
// such a run does not wait for the files.
func (r *execution) occupy(ctx context.Context, s space.Space) (now space.Space, leave func(), err error) {
	if r.creation != nil {
		leave, err = r.x.Spaces.Seize(r.doc.Space)
		return s, leave, err
	}
	return r.x.Spaces.Occupy(ctx, r.doc.Workspace, r.doc.Space, false)
}

// allowed returns the first operation if policy allows it as it stands and it needs an intent in the log; else errApart.
func (r *execution) allowed(ctx context.Context, s space.Space) (t task, err error) {
	if len(r.ops) == 0 {
		return t, errApart
	}
	t = task{op: r.ops[0], progress: r.doc.Operations[0]}
	if err := r.prepare(ctx, &t, s); err != nil {
		return t, errApart
	}
	if t.ruling, err = r.x.Gate.Judge(ctx, t.action); err != nil || !t.ruling.Decision.Allowed() || t.glances() {
		return t, errApart
	}
	return t, nil
}

// beginFirst records in one commit that the run begins and the intent of its first operation, and the run itself if it is not recorded
// yet. It returns errApart, and records nothing, where the operation cannot begin.
func (r *execution) beginFirst(ctx context.Context, t task, started event.Draft) (permit policy.Permit, err error) {
	defer r.announceMeanwhile(ctx, t)()
	drafts := []event.Draft{started, r.intent(t, "")}
	receipt, err := r.inSlot(ctx, func(place []event.DocumentVersion) (receipt event.Receipt, err error) {
		if r.creation != nil {
			permit, receipt, err = r.x.create(ctx, r.creation, &opening{ruling: t.ruling, drafts: drafts, place: place})
			return receipt, err
		}
		batch := r.batch(drafts...)
		batch.Documents = append(batch.Documents, place...)
		permit, receipt, err = r.x.Gate.Begin(ctx, t.ruling, "", batch)
		return receipt, err
	})
	switch fault.KindOf(err) {
	case fault.Denied, fault.Waiting, fault.Invalid, fault.NotFound, fault.Exhausted: // of the operation: the run begins all the same
		return permit, errApart
	}
	if err != nil {
		return permit, err
	}
	if receipt.Replayed { // somebody has asked for the run a moment ago
		return permit, errApart
	}
	if err := r.fold(receipt); err != nil {
		return permit, err
	}
	r.answer(r.doc, nil)
	return permit, nil
}

// announceMeanwhile shows the beginning of an operation while the disk works. The returned function waits until that is shown.
func (r *execution) announceMeanwhile(ctx context.Context, t task) (wait func()) {
	if r.entry.announced == t.op.ID {
		return func() {}
	}
	r.entry.announced = t.op.ID
	id, shown := r.doc.ID, make(chan struct{})
	go func() {
		defer close(shown)
		r.x.Frames.Announce(ctx, id, outline(t.op))
	}()
	return func() { <-shown }
}

// create records the run alone and tells its caller. It is errNoRun where there is no such run then.
func (r *execution) create(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	_, receipt, err := r.x.create(ctx, r.creation, nil)
	var doc run.Run
	if err == nil {
		doc, err = r.x.created(ctx, r.creation, receipt)
	}
	r.answer(doc, err)
	switch {
	case errors.Is(err, journal.ErrClosed):
		return err
	case err != nil || receipt.Replayed:
		r.x.forget(r.entry)
		return errNoRun
	}
	return r.reload(ctx)
}

// answer tells the caller of a run that was not recorded yet what became of it. From then on the log has it, or it is none.
func (r *execution) answer(doc run.Run, err error) {
	if r.creation == nil {
		return
	}
	r.creation.answer <- answered{doc, err}
	r.creation, r.entry.creation = nil, nil
	if !r.doc.Input.Inline { // longer ones are not kept in memory while the run waits
		r.entry.ops = nil
	}
}
