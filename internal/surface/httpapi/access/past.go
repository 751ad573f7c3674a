package access

import (
	"context"

	"agentbox/internal/domain/fault"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/query"
	"agentbox/internal/surface/httpapi/wire"
)

// Recalled returns how a repeat finds the document that the first request with its key was about: see past.
func Recalled[T any](a *Access, projection, entity string) func(context.Context, wire.Call) (T, error) {
	return func(ctx context.Context, c wire.Call) (T, error) { return Past[T](ctx, a, c, projection, entity) }
}

// Past returns the document that the first request with the call's key was about, as its last event left it.
func Past[T any](ctx context.Context, a *Access, c wire.Call, projection, entity string) (T, error) {
	found, err := a.log.Read(ctx, journal.Query{Workspace: c.Caller.Workspace, From: c.Repeated, Before: c.Repeated + 1, Limit: 1})
	if err == nil && (len(found) == 0 || found[0].EntityType != entity) {
		err = fault.New(fault.Internal, "answer_lost", "the answer to the first request is not where it was recorded")
	}
	if err != nil {
		var none T
		return none, err
	}
	return Then[T](ctx, a, c, query.Subject{Projection: projection, EntityType: entity, Key: found[0].EntityID})
}

// Then returns a document as it stood when the request was answered that the call repeats.
func Then[T any](ctx context.Context, a *Access, c wire.Call, about query.Subject) (T, error) {
	return query.Past[T](ctx, a.Query, c.Caller.Workspace, about, c.Repeated)
}

// Told returns the document that the last event of a repeated request was about, as it stood then.
func Told[T any](ctx context.Context, a *Access, c wire.Call, projection, entity string) (T, error) {
	last, err := a.Query.At(ctx, c.Caller.Workspace, c.Repeated)
	if err != nil {
		var none T
		return none, err
	}
	return Then[T](ctx, a, c, query.Subject{Projection: projection, EntityType: entity, Key: last.EntityID})
}
