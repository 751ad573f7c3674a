package memory

import (
	"context"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

var _ journal.Redactor = (*Journal)(nil)

// recorded returns the first redaction of an event, nil if there is none.
func (t *tenant) recorded(e *event.Event) *event.Event {
	for i := e.Seq; i < uint64(len(t.events)); i++ {
		if r := &t.events[i]; r.Type == event.RedactedType && r.Causation == e.ID {
			return r
		}
	}
	return nil
}

// Unfinished implements journal.Redactor.
func (j *Journal) Unfinished(ctx context.Context, ws id.Workspace) ([]uint64, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	var seqs []uint64
	if t := j.workspaces[ws]; t != nil {
		for i := range t.events {
			r := &t.events[i]
			if at := t.places[r.Causation]; r.Type == event.RedactedType && at != 0 && t.events[at-1].Withheld == "" && !slices.Contains(seqs, at) &&
				len(seqs) < journal.MaxBatch {
				seqs = append(seqs, at)
			}
		}
	}
	slices.Sort(seqs)
	return seqs, ctx.Err()
}

// Redact implements journal.Redactor.
func (j *Journal) Redact(ctx context.Context, ws id.Workspace, seqs []uint64) error {
	seqs, err := journal.CheckRedaction(seqs)
	if err != nil {
		return err
	}
	if len(seqs) == 0 {
		return ctx.Err()
	}
	if err := j.withhold(ws, seqs); err != nil {
		return err
	}
	for _, def := range j.set.Definitions() {
		if err := j.Rebuild(ctx, def.Name); err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) withhold(ws id.Workspace, seqs []uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return journal.ErrClosed
	}
	t := j.workspaces[ws]
	if t == nil {
		return journal.ErrNotFound
	}
	remains := map[uint64][]byte{}
	for _, seq := range seqs {
		if seq == 0 || seq > uint64(len(t.events)) {
			return journal.ErrUnrecorded
		}
		r := t.recorded(&t.events[seq-1])
		if r == nil {
			return journal.ErrUnrecorded
		}
		redacted, err := event.Decode[event.Redacted](*r)
		if err != nil {
			return err
		}
		remains[seq] = redacted.Remains
	}
	for seq, left := range remains {
		if e := &t.events[seq-1]; e.Withheld == "" {
			e.Withhold(event.Forgotten, left)
		}
	}
	return nil
}
