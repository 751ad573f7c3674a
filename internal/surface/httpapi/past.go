package httpapi

import (
	"context"

	"agentbox/internal/domain/fault"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/query"
	"agentbox/internal/surface/httpapi/wire"
)

// recalled returns how a repeat finds the document that the first request with its key was about: see past.
func recalled[T any](s *Server, projection, entity string) func(context.Context, wire.Call) (T, error) {
	return func(ctx context.Context, c wire.Call) (T, error) { return past[T](ctx, s, c, projection, entity) }
}

// past returns the document that the first request with the call's key was about, as its last event left it.
func past[T any](ctx context.Context, s *Server, c wire.Call, projection, entity string) (T, error) {
	found, err := s.services.Log.Read(ctx, journal.Query{Workspace: c.Caller.Workspace, From: c.Repeated, Before: c.Repeated + 1, Limit: 1})
	if err == nil && (len(found) == 0 || found[0].EntityType != entity) {
		err = fault.New(fault.Internal, "answer_lost", "the answer to the first request is not where it was recorded")
	}
	if err != nil {
		var none T
		return none, err
	}
	return query.Past[T](ctx, s.services.Query, c.Caller.Workspace, query.Subject{Projection: projection, EntityType: entity,
		Key: found[0].EntityID}, c.Repeated)
}
