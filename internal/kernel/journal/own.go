package journal

import (
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
)

// Own returns the batch with copies of its data, for a log that keeps them after Append has returned. Back puts the caller's own bytes into
// the recorded events. So the caller may change the bytes that it gets, and the log's copies do not change.
func Own(b event.Batch) (owned event.Batch, back func([]event.Event)) {
	theirs := make([][]byte, len(b.Drafts))
	for i := range b.Drafts {
		theirs[i] = b.Drafts[i].Data
		b.Drafts[i].Data = slices.Clone(b.Drafts[i].Data)
	}
	return b, func(events []event.Event) {
		for i := range events {
			e := &events[i]
			e.Data, e.Chain.Salt = theirs[i], slices.Clone(e.Chain.Salt)
			e.PolicyContext, e.ModelContext, e.Display = slices.Clone(e.PolicyContext), slices.Clone(e.ModelContext), slices.Clone(e.Display)
		}
	}
}

// CheckRedaction returns the sequence numbers of a call of Redact in order and each once, or a fault where they are more than MaxBatch.
func CheckRedaction(seqs []uint64) ([]uint64, error) {
	if len(seqs) > MaxBatch {
		return nil, fault.New(fault.Exhausted, "batch_too_large", "at most %d events are redacted at a time, not %d", MaxBatch, len(seqs))
	}
	return slices.Compact(slices.Sorted(slices.Values(seqs))), nil
}
