package runs

import (
	"context"
	"maps"

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
	kept    run.Kept     // the snapshot after it

	halt  policy.Halt // the throw of the kill switch that ended it, if one did
	cause id.Event    // what its end follows from, where that is not its beginning

	shown []space.Display   // beside its output
	env   map[string]string // of the space, whose values are not shown
}

// glances reports whether the operation is done without an intent in the log: it changes nothing, and uses nothing up.
func (t *task) glances() bool {
	kind, _ := policy.KindOf(t.action.Type)
	return t.ruling.Standing == "" && (kind.SideEffect == policy.Pure || kind.SideEffect == policy.Read)
}

// prepare makes the action of an operation. Its error is the operation's validation error.
func (r *ride) prepare(ctx context.Context, t *task, s space.Space) error {
	t.env = s.Env
	if err := t.op.Check(); err != nil {
		return err
	}
	bundle, err := r.x.Bundles.Bundle(ctx, r.doc.Workspace, s.Bundle)
	if err != nil {
		return err
	}
	return r.fill(t, s, bundle)
}

// Preview returns the action that an operation of whoever asks would be in a space under a bundle. Nothing is done with it.
func (x *Service) Preview(s space.Space, origin event.Origin, bundle policy.Bundle, op run.Operation) (policy.Action, error) {
	if err := op.Check(); err != nil {
		return policy.Action{}, err
	}
	s.Bundle = bundle.Hash
	t := task{op: op}
	r := ride{x: x, doc: run.Run{Workspace: s.Workspace, Room: s.Room, Space: s.ID, Agent: origin.Principal, Token: origin.Token}}
	err := r.fill(&t, s, bundle)
	return t.action, err
}

// fill makes the action of an operation that is well-formed in itself.
func (r *ride) fill(t *task, s space.Space, bundle policy.Bundle) error {
	step := t.progress.Step
	if step == "" {
		step = id.New[id.Step](r.x.IDs)
	}
	a := policy.Action{
		Workspace: r.doc.Workspace, Room: r.doc.Room, Principal: r.doc.Agent, Token: r.doc.Token, Space: r.doc.Space, Run: r.doc.ID, Step: step,
		Operation: t.op.ID, Bundle: s.Bundle,
	}
	var err error
	most := min(run.MaxContentBytes, bundle.Limits.FileBytes) // an agent that names no bound is held to the policy's, not refused
	switch t.op.Type {
	case run.OpMessage:
		a.Type, a.Content, a.Size = policy.MessageSend, event.DigestOf([]byte(t.op.Content)), int64(len(t.op.Content))
	case run.OpCreateFile:
		a.Type, a.Overwrite = policy.FileCreate, t.op.Overwrite
		if t.content, err = space.DecodeContent(t.op.Content, t.op.Encoding, run.MaxContentBytes); err != nil {
			return err
		}
		a.Content, a.Size = event.DigestOf(t.content), int64(len(t.content))
		a.Path, err = space.CleanFilePath(t.op.Path)
	case run.OpReadFile:
		a.Type, a.MaxBytes = policy.FileRead, most
		a.Path, err = space.CleanFilePath(t.op.Path)
	case run.OpEditFile:
		a.Type, a.MaxBytes = policy.FileEdit, most
		for _, e := range t.op.Edits {
			t.edits = append(t.edits, space.Edit(e))
			a.Size += int64(len(e.New))
		}
		if a.Content, err = space.EditsDigest(t.edits); err != nil {
			return err
		}
		a.Path, err = space.CleanFilePath(t.op.Path)
	case run.OpDeleteFile:
		a.Type = policy.FileDelete
		a.Path, err = space.CleanFilePath(t.op.Path)
	case run.OpShell:
		err = shell(&a, t.op, s, bundle.Limits.CommandMS)
		if place, wanted := a.Env[run.TraceVariable]; wanted && place == "" {
			a.Env[run.TraceVariable] = r.doc.Traced(step)
		}
	}
	t.action = a
	return err
}

// shell makes the action of a command: what runs is bash with the command's text, under the space's environment and the operation's over
// it. The time that was asked for may only lower the policy's.
func shell(a *policy.Action, op run.Operation, s space.Space, mostMS int64) error {
	a.Type, a.Command, a.Argv = policy.ShellExec, op.Command, []string{"/bin/bash", "-c", op.Command}
	a.TimeoutMS = min(run.DefaultTimeoutMS, mostMS)
	if op.TimeoutMS != nil {
		a.TimeoutMS = min(*op.TimeoutMS, mostMS)
	}
	a.Env = map[string]string{}
	maps.Copy(a.Env, s.Env)
	maps.Copy(a.Env, op.Env)
	if op.Cwd == "" || op.Cwd == "." {
		return nil
	}
	cwd, err := space.CleanPath(op.Cwd)
	a.Cwd = cwd
	return err
}
