package auditapi

import (
	"context"
	"net/http"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/service/query"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

type causeTree struct {
	Event      event.Shown   `json:"event"`
	Path       []event.Shown `json:"path" nullable:"false" doc:"What led to the event: the first cause first, its own cause last"`
	Effects    []effect      `json:"effects" nullable:"false" doc:"What the event led to, each behind its cause; at most 200"`
	Outside    id.Event      `json:"outside_cause_id,omitempty" doc:"The cause of the first event of path, where another workspace's log holds it"`
	PathCut    bool          `json:"path_cut,omitempty" doc:"There are more than 1,000 causes; path has those next to the event"`
	EffectsCut bool          `json:"effects_cut,omitempty" doc:"There are more than 200 effects"`
}

type effect struct {
	Depth int         `json:"depth" minimum:"1" doc:"1 for what the event itself caused"`
	Event event.Shown `json:"event"`
}

// Causes are the operations for causes of an event.
type Causes struct {
	access.Part
	query *query.Service
}

// NewCauses returns the operations for causes of an event.
func NewCauses(p access.Part, query *query.Service) *Causes {
	return &Causes{p, query}
}

// Register adds the operations to the server.
func (s *Causes) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "get-event-causes", Needs: wire.Shows("event", "event_id").PastLabels(), Method: http.MethodGet, Path: "/v1/events/{event_id}/causes",
		Tag:     "events",
		Summary: "Show what led to an event, and what it led to",
		Detail: "Every event names the event that caused it in `causation_id`. This walks from one event to its first cause, and to all its " +
			"effects. " +
			"Where a label keeps an event's data from the caller, they are withheld.",
	}, s.getCauses)
}

func (s *Causes) getCauses(ctx context.Context, c wire.Call, in *struct {
	Event string `path:"event_id" doc:"The event"`
}) (*struct{ Body causeTree }, error) {
	found, err := s.query.Causes(ctx, c.Caller.Workspace, id.Event(in.Event))
	if err != nil {
		return nil, err
	}
	sight, err := s.Sight(ctx, c)
	if err != nil {
		return nil, err
	}
	var failed error
	show := func(e event.Event) event.Shown {
		e, err := sight.Event(ctx, e)
		if err != nil {
			failed = err
		}
		return event.Show(e)
	}
	out := causeTree{
		Event: show(found.Event), Path: make([]event.Shown, len(found.Path)), Effects: make([]effect, len(found.Effects)),
		Outside: found.Outside, PathCut: found.PathCut, EffectsCut: found.EffectsCut,
	}
	for i, e := range found.Path {
		out.Path[i] = show(e)
	}
	for i, e := range found.Effects {
		out.Effects[i] = effect{e.Depth, show(e.Event)}
	}
	if failed != nil {
		return nil, failed
	}
	return &struct{ Body causeTree }{out}, nil
}
