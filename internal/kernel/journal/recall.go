package journal

import (
	"context"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
)

// Recall returns the events of the batch that used an idempotency key for a command with that digest. It leaves out reports of leaked
// secrets. It returns false if the key is new. A key that was used for another command is ErrKeyConflict.
func Recall(ctx context.Context, j Journal, ws id.Workspace, key string, digest event.Digest) ([]event.Event, bool, error) {
	use, known, err := j.Used(ctx, ws, key)
	if err != nil || !known {
		return nil, false, err
	}
	if use.Digest != digest {
		return nil, false, ErrKeyConflict
	}
	events, err := j.Read(ctx, Query{Workspace: ws, From: use.First, Limit: use.Count})
	return Untold(events), err == nil, err
}

// Untold returns the events of a batch without the reports of leaked secrets: the events of the batch's author. The reports follow the
// other events; in logs of earlier versions they precede them.
func Untold(events []event.Event) []event.Event {
	tells := func(e event.Event) bool { return e.Type == leak.EventDetected }
	if !slices.ContainsFunc(events, tells) {
		return events
	}
	return slices.DeleteFunc(slices.Clone(events), tells)
}
