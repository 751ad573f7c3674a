package policyapi

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/incident"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/token"
	"agentbox/internal/service/incidents"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// incidentRequest opens an incident.
type incidentRequest struct {
	Title      string          `json:"title,omitempty" doc:"What went wrong, in at most 300 bytes"`
	Summary    string          `json:"summary,omitempty" doc:"Another name of title"`
	Severity   string          `json:"severity,omitempty" doc:"low, medium, high or critical; medium unless named"`
	Category   string          `json:"category,omitempty" maxLength:"100"`
	Details    json.RawMessage `json:"details,omitempty" doc:"An object of at most 64 KiB"`
	EntityType string          `json:"entity_type,omitempty" maxLength:"100" doc:"What it is about, where the ids do not say"`
	EntityID   string          `json:"entity_id,omitempty" maxLength:"200"`
	Room       id.Room         `json:"room_id,omitempty" maxLength:"100" doc:"That of the run unless named"`
	Thread     id.Thread       `json:"thread_id,omitempty" maxLength:"100"`
	Run        id.Run          `json:"run_id,omitempty" maxLength:"100"`
	Key        string          `json:"idempotency_key,omitempty" doc:"At most 200 bytes: an incident that was opened with it is answered instead of a new one"`
}

type rcaRequest struct {
	Summary  string          `json:"summary,omitempty" doc:"At most 4,000 bytes; this, or analysis"`
	Analysis json.RawMessage `json:"analysis,omitempty" doc:"A text or an object of at most 64 KiB"`
}

type learningRequest struct {
	Note string   `json:"note,omitempty" doc:"At most 4,000 bytes"`
	Tags []string `json:"tags,omitempty" maxItems:"20" doc:"Of at most 100 bytes each"`
}

type closeRequest struct {
	Reason string `json:"reason,omitempty" maxLength:"2000"`
}

// openedIncident is an incident, and whether it was there before.
type openedIncident struct {
	incident.Incident
	Deduped bool `json:"deduped" doc:"An incident of the same idempotency_key was there before"`
}

type incidentList struct {
	Incidents []incident.Incident `json:"incidents" nullable:"false"`
	Next      string              `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

type incidentAnswer struct{ Body incident.Incident }

// IncidentPath names an incident.
type IncidentPath struct {
	Incident string `path:"incident_id" doc:"The incident"`
}

// Incidents are the operations for incidents.
type Incidents struct {
	access.Part
	incidents *incidents.Service
}

// NewIncidents returns the operations for incidents.
func NewIncidents(p access.Part, incidents *incidents.Service) *Incidents {
	return &Incidents{p, incidents}
}

// Register adds the operations to the server.
func (s *Incidents) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "open-incident", Needs: wire.DoesThere(policy.IncidentOpen), Method: http.MethodPost, Path: "/v1/incidents", Tag: "incidents",
		Summary: "Open an incident", Status: http.StatusCreated,
		Repeat: wire.RepeatRecalled, Answers: map[int]any{http.StatusOK: openedIncident{}},
		Detail: "Answers with 200 and `deduped` where an incident of the same idempotency_key is there.",
	}, s.openIncident)
	wire.Handle(s.Server, wire.Operation{ID: "list-incidents", Needs: wire.Shows("incident", "room_id", "run_id"), Method: http.MethodGet,
		Path: "/v1/incidents", Tag: "incidents", Summary: "List incidents, the newest first"}, s.listIncidents)
	wire.Handle(s.Server, wire.Operation{ID: "get-incident", Needs: wire.Shows("incident", "incident_id"), Method: http.MethodGet,
		Path: "/v1/incidents/{incident_id}", Tag: "incidents", Summary: "Show an incident"},
		func(ctx context.Context, c wire.Call, in *IncidentPath) (*incidentAnswer, error) {
			found, err := s.incidents.Incident(ctx, c.Caller.Workspace, id.Incident(in.Incident))
			return &incidentAnswer{found}, err
		})
	changeIncident(s, "analyse-incident", policy.IncidentRCA, "rca", "Write down the root cause",
		"It may be written anew as long as the incident is open; the last one counts.",
		func(ctx context.Context, c wire.Call, i id.Incident, b rcaRequest) (incident.Incident, error) {
			return s.incidents.Analyse(ctx, c.Once(), c.Caller.Workspace, i, b.Summary, b.Analysis)
		})
	changeIncident(s, "learn-of-incident", policy.IncidentLearn, "learning", "Write down what was learned", "",
		func(ctx context.Context, c wire.Call, i id.Incident, b learningRequest) (incident.Incident, error) {
			return s.incidents.Learn(ctx, c.Once(), c.Caller.Workspace, i, b.Note, b.Tags)
		})
	changeIncident(s, "close-incident", policy.IncidentClose, "close", "Close an incident",
		"It takes an analysis of the root cause and at least one learning. Operators close incidents.",
		func(ctx context.Context, c wire.Call, i id.Incident, b closeRequest) (incident.Incident, error) {
			return s.incidents.Close(ctx, c.Once(), c.Caller.Workspace, i, b.Reason)
		})
}

// changeIncident adds an operation that changes an incident and answers with it.
func changeIncident[B any](s *Incidents, op, action, word, summary, detail string, change func(ctx context.Context, c wire.Call,
	i id.Incident, body B) (incident.Incident, error)) {
	wire.HandleOnce(s.Server, wire.Operation{
		ID: op, Needs: wire.Does(action, "incident_id"), Method: http.MethodPost, Path: "/v1/incidents/{incident_id}/" + word, Tag: "incidents",
		Summary: summary, Detail: detail, Repeat: wire.RepeatRecalled,
	}, access.Recalled[incident.Incident](s.Access, incident.Projection, incident.Entity),
		func(ctx context.Context, c wire.Call, in *struct {
			IncidentPath
			Body B
		}) (incident.Incident, error) {
			return change(ctx, c, id.Incident(in.Incident), in.Body)
		}, func(i incident.Incident) *incidentAnswer { return &incidentAnswer{i} })
}

type openIncidentAnswer struct {
	Status   int
	Location string `header:"Location"`
	Body     openedIncident
}

func (s *Incidents) openIncident(ctx context.Context, c wire.Call, in *struct{ Body incidentRequest }) (*openIncidentAnswer, error) {
	var deduped bool
	found, err := wire.Once(c, func() (incident.Incident, error) {
		return access.Past[incident.Incident](ctx, s.Access, c, incident.Projection, incident.Entity)
	}, func() (found incident.Incident, err error) {
		b := in.Body
		found, deduped, err = s.incidents.Open(ctx, c.Once(), c.Caller.Workspace, incidents.Place{Room: b.Room, Thread: b.Thread,
			Run: b.Run}, incident.Opened{
			Title: cmp.Or(b.Title, b.Summary), Severity: incident.Severity(b.Severity), Category: b.Category, Details: b.Details,
			EntityType: b.EntityType, EntityID: b.EntityID, Key: b.Key,
		})
		return found, err
	})
	if err == nil && deduped { // it was opened by somebody else, maybe in another room
		err = s.Permitted(ctx, c, token.Use{Action: policy.IncidentOpen, Room: found.Room})
	}
	if err != nil {
		return nil, err
	}
	out := &openIncidentAnswer{http.StatusCreated, "/v1/incidents/" + string(found.ID), openedIncident{found, deduped}}
	if deduped {
		out.Status = http.StatusOK
	}
	return out, nil
}

func (s *Incidents) listIncidents(ctx context.Context, c wire.Call, in *struct {
	Status string `query:"status" enum:"open,closed" doc:"Only incidents in this state"`
	Room   string `query:"room_id" maxLength:"100"`
	Run    string `query:"run_id" maxLength:"100"`
	access.Page[id.Incident]
}) (*struct{ Body incidentList }, error) {
	found, err := s.incidents.Incidents(ctx, c.Caller.Workspace, incidents.Filter{
		Status: incident.Status(in.Status), Room: id.Room(in.Room), Run: id.Run(in.Run), After: in.Cursor.After, Limit: in.Limit + 1,
	})
	if err != nil {
		return nil, err
	}
	out := incidentList{}
	out.Incidents, out.Next = access.Cut(found, in.Limit, func(i incident.Incident) string { return string(i.ID) })
	out.Incidents, err = access.Visible(ctx, s.Access, c, out.Incidents, func(x incident.Incident) label.Resource {
		return label.Resource{Type: label.OfIncident, ID: string(x.ID)}
	})
	return &struct{ Body incidentList }{out}, err
}
