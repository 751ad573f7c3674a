package runs

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/kernel/journal"
)

// underTries bounds how often a run is recorded anew because its engine's claim was renewed meanwhile.
const underTries = 16

// child returns the run that a tool call has already, or why it may have none.
func (x *Service) child(ctx context.Context, q Request, under run.Under, err error) (run.Run, error) {
	if err != nil {
		return run.Run{}, err
	}
	doc, err := x.Find(ctx, q.Workspace, under.Child)
	if err == nil && doc.Space != q.Space {
		err = fault.New(fault.Conflict, "tool_call_used", "the tool call has a run in another space")
	}
	return doc, err
}

// recordUnder records a run under an engine's tool call: in the moment in which it is recorded the claim is the engine's, and the call has no
// run yet. So an engine that has lost its claim starts nothing, and nothing is started twice.
func (x *Service) recordUnder(ctx context.Context, q Request, admitted policy.Ruling, b event.Batch) (run.Run, error) {
	created, err := event.Decode[run.Created](event.Event{Header: b.Drafts[0].Header, Data: b.Drafts[0].Data})
	if err != nil {
		return run.Run{}, err
	}
	for try := 1; ; try++ {
		under, err := q.Under(ctx)
		if err != nil || under.Child != "" {
			return x.child(ctx, q, under, err)
		}
		created.Parent = &under.Parent
		batch := b
		batch.Drafts = slices.Clone(b.Drafts)
		if batch.Drafts[0].Data, err = json.Marshal(created); err != nil {
			return run.Run{}, err
		}
		batch.Drafts[0].Follows = event.Subject{Type: step.CallEntity, ID: string(under.Parent.Call)}
		batch.Documents = append(slices.Clone(b.Documents), under.Expect...)
		_, receipt, err := x.Gate.Begin(ctx, admitted, "", batch)
		if errors.Is(err, journal.ErrConflict) && try < underTries {
			continue
		}
		if err != nil {
			return run.Run{}, err
		}
		return x.recorded(ctx, q.Workspace, receipt.Events)
	}
}
