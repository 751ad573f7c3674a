package httpapi

import (
	"context"

	"agentbox/internal/domain/fault"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/query"
	"agentbox/internal/surface/httpapi/wire"
)

// recalled returns how a repeat finds the document that the first request with its key was about: see past.
func recalled[T any](a *access, projection, entity string) func(context.Context, wire.Call) (T, error) {
	return func(ctx context.Context, c wire.Call) (T, error) { return past[T](ctx, a, c, projection, entity) }
}

// past returns the document that the first request with the call's key was about, as its last event left it.
func past[T any](ctx context.Context, a *access, c wire.Call, projection, entity string) (T, error) {
	found, err := a.log.Read(ctx, journal.Query{Workspace: c.Caller.Workspace, From: c.Repeated, Before: c.Repeated + 1, Limit: 1})
	if err == nil && (len(found) == 0 || found[0].EntityType != entity) {
		err = fault.New(fault.Internal, "answer_lost", "the answer to the first request is not where it was recorded")
	}
	if err != nil {
		var none T
		return none, err
	}
	return then[T](ctx, a, c, query.Subject{Projection: projection, EntityType: entity, Key: found[0].EntityID})
}

// then returns a document as it stood when the request was answered that the call repeats.
func then[T any](ctx context.Context, a *access, c wire.Call, about query.Subject) (T, error) {
	return query.Past[T](ctx, a.query, c.Caller.Workspace, about, c.Repeated)
}

// told returns the document that the last event of a repeated request was about, as it stood then.
func told[T any](ctx context.Context, a *access, c wire.Call, projection, entity string) (T, error) {
	last, err := a.query.At(ctx, c.Caller.Workspace, c.Repeated)
	if err != nil {
		var none T
		return none, err
	}
	return then[T](ctx, a, c, query.Subject{Projection: projection, EntityType: entity, Key: last.EntityID})
}
