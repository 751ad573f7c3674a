package journal

import (
	"context"
	"errors"
	"math"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// Recall returns the events of the batch that used an idempotency key for a command of that digest; false where the key is new. A key that
// was used for another command is ErrKeyConflict. It records nothing: it hands in the draft under an expectation that no log meets, and
// keys are looked at before expectations.
func Recall(ctx context.Context, j Journal, ws id.Workspace, key string, digest event.Digest, draft event.Draft) ([]event.Event, bool, error) {
	never := event.StreamVersion{Stream: event.WorkspaceStream(ws), Version: math.MaxInt64}
	receipt, err := j.Append(ctx, event.Batch{
		Workspace: ws, Drafts: []event.Draft{draft}, Streams: []event.StreamVersion{never}, Key: key, Digest: digest,
	})
	if errors.Is(err, ErrConflict) {
		return nil, false, nil
	}
	return receipt.Events, err == nil && receipt.Replayed, err
}
