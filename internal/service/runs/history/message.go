package history

import (
	"context"
	"encoding/json"
	"io"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
)

// Operations returns the operations of a run. Of a run whose operations were redacted, it returns their types alone.
func (h *Reader) Operations(ctx context.Context, doc run.Run) ([]run.Operation, error) {
	if doc.Redacted && doc.Input.Digest.IsZero() {
		ops := make([]run.Operation, len(doc.Operations))
		for i, p := range doc.Operations {
			ops[i] = run.Operation{Type: p.Type} // that is all that is left of it
		}
		return ops, nil
	}
	m, err := h.message(ctx, doc)
	if err != nil {
		return nil, err
	}
	if len(m.Operations) != len(doc.Operations) {
		return nil, fault.New(fault.Internal, "content_unreadable", "the stored operations are not those of the run")
	}
	return m.Operations, nil
}

// message reads the operations message of a run, from its event or from the blob store.
func (h *Reader) message(ctx context.Context, doc run.Run) (m run.Message, err error) {
	if doc.Input.Inline {
		found, err := h.log.Read(ctx, journal.Query{Workspace: doc.Workspace, Run: doc.ID, Types: []string{run.EventCreated}, Limit: 1})
		if err != nil {
			return m, err
		}
		if len(found) == 1 {
			created, err := event.Decode[run.Created](found[0])
			if err == nil && created.Message != nil && digestOf(*created.Message) == doc.Input.Digest {
				return *created.Message, nil
			}
		}
		return m, fault.New(fault.Internal, "content_unreadable", "the log does not hold the operations of the run")
	}
	content, err := h.blobs.Open(ctx, doc.Input.Digest)
	if err != nil {
		return m, err
	}
	defer content.Close()
	raw, err := io.ReadAll(io.LimitReader(content, run.MaxInputBytes+1))
	if err != nil {
		return m, fault.Wrap(err, fault.Unavailable, "content_unreadable", "the operations of the run cannot be read")
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fault.Wrap(err, fault.Internal, "content_unreadable", "the operations of the run cannot be read")
	}
	return m, nil
}

// digestOf returns the hash of a message, wherever it is stored; zero for none.
func digestOf(m run.Message) event.Digest {
	raw, err := json.Marshal(m)
	if err != nil {
		return event.Digest{}
	}
	return event.DigestOf(raw)
}
