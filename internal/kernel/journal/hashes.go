package journal

import (
	"context"
	"fmt"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// MaxHashes is how many hashes one call returns at most.
const MaxHashes = 16 << 10

// Hasher is a Journal that can tell the hashes of events without reading the events.
type Hasher interface {
	// Hashes returns the hashes of the events from a place on, at most limit of them and none behind the head. A place without an event is a
	// Damage.
	Hashes(ctx context.Context, ws id.Workspace, from uint64, limit int) ([]event.Digest, error)
}

// Hashes returns the hashes of the events from a place on, at most limit of them and none behind the head, as they were recorded.
func Hashes(ctx context.Context, j Journal, ws id.Workspace, from uint64, limit int) ([]event.Digest, error) {
	if h, ok := j.(Hasher); ok {
		return h.Hashes(ctx, ws, from, min(limit, MaxHashes))
	}
	events, err := j.Read(ctx, Query{Workspace: ws, From: from, Limit: min(limit, MaxRead)})
	if err != nil {
		return nil, err
	}
	hashes := make([]event.Digest, len(events))
	for i := range events {
		if want := from + uint64(i); events[i].Seq != want {
			return nil, &Damage{Workspace: ws, Seq: want, Detail: fmt.Sprintf("no event is there; the next is at %d", events[i].Seq)}
		}
		hashes[i] = events[i].Chain.Hash
	}
	return hashes, nil
}
