package event

import "agentbox/internal/domain/id"

// Batch is a set of events of one workspace that are recorded together or not at all.
type Batch struct {
	Workspace id.Workspace
	Drafts    []Draft
	Streams   []StreamVersion   // heads that must be as expected
	Documents []DocumentVersion // projected documents that must be as expected

	// Key makes the batch idempotent within its workspace. The first batch with this key is recorded. A later one with the same Digest returns
	// the events of the first; one with another Digest is a conflict. A refused batch does not use up its key.
	Key    string
	Digest Digest // of the command behind the batch
}

// Correlation returns the correlation of the first event of the batch, "" for an empty batch.
func (b Batch) Correlation() id.Correlation {
	if len(b.Drafts) == 0 {
		return ""
	}
	return b.Drafts[0].Correlation
}

// StreamVersion expects a stream's head: the place of its last event, 0 for a stream without events. A log that lists its heads also sets
// the hash of that event; an expectation leaves it out.
type StreamVersion struct {
	Stream  Stream
	Version uint64
	Hash    Digest
}

// DocumentVersion expects a document's version: how many events were folded into it, 0 for one that does not exist.
type DocumentVersion struct {
	Projection string
	Key        string
	Version    uint64
}

// Receipt is the answer to a batch.
type Receipt struct {
	Events   []Event
	Replayed bool // the key was known; these are the events of the first batch
}
