package journal

import (
	"context"
	"iter"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Adopter is a Journal that takes the events of another log as they are.
type Adopter interface {
	// Adopt records the whole log of a workspace that has no event here: every event as it comes, with its id, its places, its salt and its
	// hashes, so that what was signed for it elsewhere holds here too. Each is held against its own hash and the one before it; what does not
	// continue is ErrForeign, an id that another workspace has is a conflict, and so is a workspace that has events. The documents are folded as
	// by Append. All of it is recorded in one step after the last chunk: an error, of the source too, or the end of the process leave nothing.
	// Chunks hold at most MaxBatch events. It returns how many events were recorded; others wait meanwhile.
	Adopt(ctx context.Context, ws id.Workspace, chunks iter.Seq2[[]event.Event, error]) (uint64, error)
}

// The refusals of an adoption.
var (
	// ErrForeign means that events are not a log: one is missing, out of order, of another workspace, or was changed.
	ErrForeign = fault.New(fault.Invalid, "log_broken", "these events are not one unbroken log")
	// ErrOccupied means that the workspace has events here already.
	ErrOccupied = fault.New(fault.Conflict, "workspace_exists", "the workspace has events here already; nothing is put beside or into them").
			With("import it into another data directory")
)

// Continuity holds the events of a workspace's log against each other, from the first. The zero value begins.
type Continuity struct {
	head uint64
	tips map[event.Stream]Tip
}

// Head returns the place of the last event.
func (c *Continuity) Head() uint64 { return c.head }

// Next takes the next events of the log. An error says what does not continue it; then nothing more may be taken.
func (c *Continuity) Next(ws id.Workspace, events []event.Event) error {
	if len(events) == 0 || len(events) > MaxBatch {
		return fault.New(fault.Invalid, "batch_too_large", "a chunk holds 1 to %d events, not %d", MaxBatch, len(events))
	}
	if c.tips == nil {
		c.tips = map[event.Stream]Tip{}
	}
	if _, err := Check(Adopted(ws, events)); err != nil {
		return err
	}
	for i := range events {
		if err := c.next(&events[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Continuity) next(e *event.Event) error {
	tip := c.tips[e.Stream]
	broken := func(format string, args ...any) error {
		return fault.New(fault.Invalid, ErrForeign.Code, "these events are not one unbroken log: "+format, args...)
	}
	switch {
	case e.ID == "" || e.OccurredAt.IsZero() || e.RecordedAt.IsZero() || e.Chain.HashVersion != HashVersion:
		return broken("event %d is not as a log records one", e.Seq)
	case e.Seq != c.head+1:
		return broken("event %d follows event %d", e.Seq, c.head)
	case e.StreamSeq != tip.Seq+1 || e.Chain.Prev != tip.Hash:
		return broken("event %d does not continue its stream", e.Seq)
	case HashOf(e) != e.Chain.Hash:
		return broken("event %d is not what its hash says", e.Seq)
	case e.Withheld != "":
		return fault.New(fault.Conflict, "log_redacted", "the data of event %d were redacted, and a log with gaps is not taken from elsewhere", e.Seq).
			With("restore a backup of the whole data directory instead")
	case Commit(e.Chain.Salt, e.Data) != e.Chain.Commitment:
		return broken("the data of event %d are not those that it committed to", e.Seq)
	}
	c.head, c.tips[e.Stream] = e.Seq, Tip{Seq: e.StreamSeq, Hash: e.Chain.Hash}
	return nil
}

// Adopted returns the batch that a chunk would have come from, for what checks and records batches.
func Adopted(ws id.Workspace, events []event.Event) event.Batch {
	b := event.Batch{Workspace: ws, Drafts: make([]event.Draft, len(events))}
	for i := range events {
		b.Drafts[i] = event.Draft{Header: events[i].Header, Data: events[i].Data}
	}
	return b
}
