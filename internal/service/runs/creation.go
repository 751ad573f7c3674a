package runs

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/step"
	"agentbox/internal/kernel/journal"
)

// creation is a run that is not in the log yet.
type creation struct {
	request  Request
	admitted policy.Ruling // the caller may start it
	created  run.Created
	found    []leak.Match // secrets in its operations
	batch    event.Batch  // with run.created
	ops      []run.Operation
	side     run.Side
	child    id.Run // the run that its tool call had already; "" for none

	answer chan answered // where its worker records it; holds one
}

// answered is the result for a caller that waits for its run to be recorded.
type answered struct {
	doc run.Run
	err error
}

// opening is the batch that is recorded with a run: its beginning, and the intent of its first operation.
type opening struct {
	ruling policy.Ruling // of the operation
	drafts []event.Draft
	place  []event.DocumentVersion
}

// draft drafts run.created.
func (x *Service) draft(c *creation, origin event.Origin, s space.Space, agent id.Principal, m run.Message, input run.Input) {
	q, r := c.request, c.admitted.Action.Run
	if origin.Correlation == "" {
		origin.Correlation = id.New[id.Correlation](x.IDs)
	}
	outlines := make([]run.Outline, len(m.Operations))
	for i, op := range m.Operations {
		outlines[i] = outline(op)
	}
	c.created = run.Created{
		Run: r, Space: s.ID, Agent: agent, Title: q.Title, Input: input, Operations: outlines, Trace: origin.Trace,
		Retention: int64(q.Retention / time.Second), Token: origin.Token, Side: c.side,
		Artifacts: q.Artifacts,
	}
	if input.Inline {
		c.created.Message = &m
	}
	draft := event.New(run.EventCreated, origin, s.Workspace, s.Room, c.created).About(space.EntityType, string(s.ID)).In(r, "")
	c.batch = event.Batch{
		Workspace: s.Workspace, Drafts: x.withFindings(leak.Named(c.found, "input"), false, draft),
		Documents: []event.DocumentVersion{{Projection: run.Projection, Key: string(r)}},
	}
	if q.Key != "" {
		c.batch.Key, c.batch.Digest = startKey(q), startDigest(q, input.Digest)
	}
}

// create records a run, with the permission of the principal that asks for it. No other function records run.created. With an opening the
// run also begins in this commit; then the permit is that of its first operation.
func (x *Service) create(ctx context.Context, c *creation, with *opening) (policy.Permit, event.Receipt, error) {
	for try := 1; ; try++ {
		batch, err := c.under(ctx)
		if err != nil || c.child != "" {
			return policy.Permit{}, event.Receipt{}, err
		}
		ruling, others := c.admitted, []policy.Ruling(nil)
		if with != nil {
			batch.Drafts = slices.Concat(batch.Drafts, with.drafts)
			batch.Documents = slices.Concat(batch.Documents, with.place)
			ruling, others = with.ruling, []policy.Ruling{c.admitted}
		}
		permit, receipt, err := x.Gate.Begin(ctx, ruling, "", batch, others...)
		if c.request.Under == nil || !errors.Is(err, journal.ErrConflict) || try == underTries {
			return permit, receipt, err
		}
	}
}

// underTries bounds how often a run is recorded again because the claim of its engine was renewed meanwhile.
const underTries = 16

// under returns the batch of a run, with the tool call of the engine that asks for it, if any. The log records it only while the claim is
// the engine's and the call has no run. So an engine that has lost its claim starts nothing, and no call starts two runs. A run that the
// call has becomes the child.
func (c *creation) under(ctx context.Context) (event.Batch, error) {
	batch := c.batch
	if c.request.Under == nil {
		return batch, nil
	}
	under, err := c.request.Under(ctx)
	if c.child = under.Child; err != nil || c.child != "" {
		return batch, err
	}
	created := c.created
	created.Parent = &under.Parent
	batch.Drafts = slices.Clone(batch.Drafts)
	if batch.Drafts[0].Data, err = json.Marshal(created); err != nil {
		return batch, err
	}
	batch.Drafts[0].Follows = event.Subject{Type: step.CallEntity, ID: string(under.Parent.Call)}
	batch.Documents = slices.Concat(batch.Documents, under.Expect)
	return batch, nil
}

// created returns the run of a creation: the one that was recorded, or the earlier one of its key or its tool call.
func (x *Service) created(ctx context.Context, c *creation, receipt event.Receipt) (run.Run, error) {
	if c.child != "" {
		return x.child(ctx, c.request, c.child)
	}
	return x.recorded(ctx, c.request.Workspace, receipt.Events)
}

// child returns the run that a tool call has already.
func (x *Service) child(ctx context.Context, q Request, r id.Run) (run.Run, error) {
	doc, err := x.History.Find(ctx, q.Workspace, r)
	if err == nil && doc.Space != q.Space {
		err = fault.New(fault.Conflict, "tool_call_used", "the tool call has a run in another space")
	}
	return doc, err
}

// handOver lets the worker of the space record the run, if the caller waits for its end and the space has no other run. The worker can
// record the run, its beginning and the intent of its first operation in one commit. Recorded is false where the caller has to record the
// run.
func (x *Service) handOver(ctx context.Context, c *creation) (doc run.Run, recorded bool, err error) {
	if !c.request.Waits || c.request.Under != nil {
		return doc, false, nil
	}
	if c.admitted.Action.Token != "" { // the gate judges a capability token again when the run is recorded
		return doc, false, nil
	}
	if c.batch.Key != "" {
		if _, known, err := journal.Recall(ctx, x.Log, c.batch.Workspace, c.batch.Key, c.batch.Digest); known || err != nil {
			return doc, false, nil // recording it says so
		}
	}
	head, err := x.Log.Head(ctx, c.batch.Workspace)
	if err != nil {
		return doc, false, nil
	}
	c.answer = make(chan answered, 1)
	e := &entry{
		workspace: c.request.Workspace, space: c.request.Space, beside: c.side.Background, run: c.created.Run, ops: c.ops, creation: c,
		done: make(chan struct{}),
	}
	if !x.insertFirst(e, head) {
		return doc, false, nil
	}
	told := <-c.answer // the worker always answers
	return told.doc, true, told.err
}
