package runs

import (
	"context"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
)

const entitySpace = space.EntityType

// task is one operation on its way.
type task struct {
	index    int
	op       run.Operation
	progress run.Progress

	action  policy.Action
	ruling  policy.Ruling
	glanced bool         // permitted without an intent in the log
	content []byte       // of createFile, decoded
	edits   []space.Edit // of editFile
	space   space.Space  // while the operation has its files
	kept    run.Kept     // the snapshot after it

	halt  policy.Halt // the throw of the kill switch that ended it, if one did
	cause id.Event    // the cause of its end, if that is not its beginning

	fails string // why the run fails with this operation; "" if it does not

	shown []space.Display   // beside its output
	env   map[string]string // of the space, without masks; its secret values are not shown
}

// glances reports whether the operation is done without an intent in the log: it changes nothing, and uses nothing up.
func (t *task) glances() bool {
	kind, _ := policy.KindOf(t.action.Type)
	return t.ruling.Standing == "" && (kind.SideEffect == policy.Pure || kind.SideEffect == policy.Read)
}

// prepare makes the action of an operation. Its error is the operation's validation error.
func (r *execution) prepare(ctx context.Context, t *task, s space.Space) error {
	var err error
	if t.env, err = r.x.variables(s); err != nil { // without its values nobody can keep them out of results
		return err
	}
	if err := t.op.Check(); err != nil {
		return err
	}
	if t.op.Attached() && !r.doc.Background {
		return run.ErrNotAttached
	}
	bundle, err := r.x.Bundles.Bundle(ctx, r.doc.Workspace, s.Bundle)
	if err != nil {
		return err
	}
	return r.fill(t, s, bundle)
}

// Preview returns the action that an operation of the caller would be in a space under a bundle. It has no effect.
func (x *Service) Preview(s space.Space, origin event.Origin, bundle policy.Bundle, op run.Operation) (policy.Action, error) {
	if err := op.Check(); err != nil {
		return policy.Action{}, err
	}
	s.Bundle = bundle.Hash
	t := task{op: op}
	doc := run.Run{Workspace: s.Workspace, Room: s.Room, Space: s.ID, Agent: origin.Principal, Token: origin.Token}
	r := execution{record: record{x: x, doc: doc}}
	err := r.fill(&t, s, bundle)
	return t.action, err
}

// fill makes the action of an operation that is well-formed in itself.
func (r *execution) fill(t *task, s space.Space, bundle policy.Bundle) error {
	step := t.progress.Step
	if step == "" {
		step = id.New[id.Step](r.x.IDs)
	}
	a := policy.Action{
		Workspace: r.doc.Workspace, Room: r.doc.Room, Principal: r.doc.Agent, Token: r.doc.Token, Space: r.doc.Space, Run: r.doc.ID, Step: step,
		Operation: t.op.ID, Bundle: s.Bundle,
	}
	var err error
	spec, known := run.SpecOf(t.op.Type)
	if v, ok := verbs[t.op.Type]; known && ok {
		a.Type = spec.Action
		err = v.ask(r, t, &a, s, bundle.Limits)
	}
	t.action = a
	return err
}
