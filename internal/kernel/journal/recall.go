package journal

import (
	"context"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// Recall returns the events of the batch that used an idempotency key for a command of that digest; false where the key is new. A key that
// was used for another command is ErrKeyConflict.
func Recall(ctx context.Context, j Journal, ws id.Workspace, key string, digest event.Digest) ([]event.Event, bool, error) {
	use, known, err := j.Used(ctx, ws, key)
	if err != nil || !known {
		return nil, false, err
	}
	if use.Digest != digest {
		return nil, false, ErrKeyConflict
	}
	events, err := j.Read(ctx, Query{Workspace: ws, From: use.First, Limit: use.Count})
	return events, err == nil, err
}
