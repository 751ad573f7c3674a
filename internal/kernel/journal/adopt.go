package journal

import (
	"context"
	"iter"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Adopter is a Journal that takes the events of another log as they are.
type Adopter interface {
	// Adopt records the whole log of a workspace that has no event here. Each event keeps its id, its places, its salt and its hashes, so that
	// signatures from elsewhere hold here too. Adopt checks each event against its own hash and the one before it. An event that does not
	// continue the chain is ErrForeign. An id of another workspace is a conflict, and so is a workspace that has events. It folds the
	// documents as Append does. An event with redacted data comes with the remains and stays withheld. Its redaction is later in the log and
	// names the same remains.
	//
	// Adopt records everything in one step after the last chunk. An error, of the source too, or a crash leaves nothing. Chunks hold at most
	// MaxBatch events. It asks for keys after the last chunk; keys may be nil. They are the idempotency keys of batches, so that a repeated
	// request is answered with its batch. It returns how many events it recorded. Other writers wait meanwhile.
	Adopt(ctx context.Context, ws id.Workspace, chunks iter.Seq2[[]event.Event, error], keys iter.Seq2[[]KeyUse, error]) (uint64, error)
}

// KeyUse is an idempotency key of a batch and its use.
type KeyUse struct {
	Key string `json:"key"`
	Use
}

// Keyed is a Journal that can tell which keys were used.
type Keyed interface {
	// Keys returns the idempotency keys of batches of a workspace behind a key, in their order, at most limit of them, at most MaxBatch.
	Keys(ctx context.Context, ws id.Workspace, after string, limit int) ([]KeyUse, error)
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
	key  string                    // the last one
	open map[id.Event]event.Digest // of what remains of redacted events, whose redaction has not come yet
}

// Head returns the place of the last event.
func (c *Continuity) Head() uint64 { return c.head }

// End reports whether events are missing after the last one.
func (c *Continuity) End() error {
	if c.head == 0 {
		return fault.New(fault.Invalid, ErrForeign.Code, "there is no event in this log")
	}
	if len(c.open) > 0 {
		return fault.New(fault.Conflict, "redaction_unrecorded",
			"the data of %d events were redacted, and the log ends before the record of that",
			len(c.open)).
			With("they were redacted while it was read: export it again")
	}
	return nil
}

// Next takes the next events of the log. After an error, which says what does not continue the log, Next must not be called again.
func (c *Continuity) Next(ws id.Workspace, events []event.Event) error {
	if len(events) == 0 || len(events) > MaxBatch {
		return fault.New(fault.Invalid, "batch_too_large", "a chunk holds 1 to %d events, not %d", MaxBatch, len(events))
	}
	if c.tips == nil {
		c.tips, c.open = map[event.Stream]Tip{}, map[id.Event]event.Digest{}
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

// Keys holds keys against the log, which has ended, and against the ones before: they come in their order, and say where their batch is
// in it.
func (c *Continuity) Keys(keys []KeyUse) error {
	if len(keys) == 0 || len(keys) > MaxBatch {
		return fault.New(fault.Invalid, "batch_too_large", "a chunk holds 1 to %d keys, not %d", MaxBatch, len(keys))
	}
	for _, k := range keys {
		if err := checkText("the key of a batch", k.Key); err != nil {
			return err
		}
		if k.Key <= c.key || k.Digest.IsZero() || k.First < 1 || k.Count < 1 || k.Count > MaxBatch || k.First > c.head ||
			uint64(k.Count) > c.head-k.First+1 {
			return fault.New(fault.Invalid, ErrForeign.Code, "the idempotency key %.64q is none of this log", k.Key)
		}
		c.key = k.Key
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
	case e.Withheld == event.Forgotten:
		if e.Redaction != event.RedactFull || !slices.Contains([]event.Redaction{event.RedactNone, event.RedactPartial, event.RedactFull},
			e.Chain.Redaction) || len(e.Chain.Salt) > 0 || e.Type == event.RedactedType {
			return broken("event %d is not as a log shows one whose data were redacted", e.Seq)
		}
		c.open[e.ID] = event.DigestOf(e.Data)
	case e.Withheld != "":
		return fault.New(fault.Conflict, "log_sealed",
			"the data of event %d cannot be read (%s), and the log does not say that they were redacted", e.Seq, e.Withheld).
			With("restore a backup of the whole data directory instead")
	case e.Chain.Redaction != "":
		return broken("event %d says that its data were redacted, and has them", e.Seq)
	case Commit(e.Chain.Salt, e.Data) != e.Chain.Commitment:
		return broken("the data of event %d are not those that it committed to", e.Seq)
	}
	c.head, c.tips[e.Stream] = e.Seq, Tip{Seq: e.StreamSeq, Hash: e.Chain.Hash}
	left, redacted := c.open[e.Causation]
	if e.Type != event.RedactedType || !redacted {
		return nil
	}
	d, err := event.Decode[event.Redacted](*e)
	if err != nil || event.DigestOf(d.Remains) != left {
		return broken("what remains of event %d is not what its redaction has left", d.Seq)
	}
	delete(c.open, e.Causation)
	return nil
}

// Adopted returns a chunk as a batch, for the code that checks and records batches.
func Adopted(ws id.Workspace, events []event.Event) event.Batch {
	b := event.Batch{Workspace: ws, Drafts: make([]event.Draft, len(events))}
	for i := range events {
		b.Drafts[i] = event.Draft{Header: events[i].Header, Data: events[i].Data}
	}
	return b
}
