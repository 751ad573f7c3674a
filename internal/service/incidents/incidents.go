// Package incidents opens incidents, records their causes and learnings, and closes them.
package incidents

import (
	"context"
	"encoding/json"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/incident"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Parts are the dependencies of the service.
type Parts struct {
	Docs  projection.Reader // of Definition, and of runs
	Gate  policy.Gate
	Clock event.Clock
	IDs   *id.Source

	// Place refuses a room and a thread that are not there, or not together; either may be empty.
	Place func(ctx context.Context, ws id.Workspace, in id.Room, thread id.Thread) error
}

// Service keeps incidents. Make it with New; every method may be called from any goroutine.
type Service struct{ Parts }

// New returns a service of the given parts.
func New(p Parts) *Service { return &Service{p} }

// Definition folds the documents of incidents.
func Definition() projection.Definition {
	return projection.Define(incident.Projection, 2, func(e event.Event) []string {
		if e.EntityType != incident.Entity || e.EntityID == "" {
			return nil
		}
		return []string{e.EntityID}
	}, func(i incident.Incident, _ string, e event.Event) (incident.Incident, error) { return i.Evolve(e) }, indexes).Leads(incident.Entity,
		nil)
}

func indexes(i incident.Incident) []projection.Index {
	found := []projection.Index{{Name: "status", Value: string(i.Status)}}
	if i.Room != "" {
		found = append(found, projection.Index{Name: "room", Value: string(i.Room)}, projection.Index{Name: "room_status", Value: string(i.Room) +
			" " + string(i.Status)})
	}
	if i.Run != "" {
		found = append(found, projection.Index{Name: "run", Value: string(i.Run)}, projection.Index{Name: "run_status", Value: string(i.Run) +
			" " + string(i.Status)})
	}
	if i.Key != "" {
		found = append(found, projection.Index{Name: "key", Value: i.Key})
	}
	return found
}

// The refusals of where an incident is to be.
var (
	// ErrRunNotFound means that the workspace has no such run.
	ErrRunNotFound = fault.New(fault.NotFound, "run_not_found", "there is no such run in this workspace")
	// ErrRunRoom refuses a run together with another room than its own.
	ErrRunRoom = fault.New(fault.Invalid, "run_room_mismatch", "the run belongs to another room")
	// ErrRunThread refuses a run together with another thread than its own.
	ErrRunThread = fault.New(fault.Invalid, "run_thread_mismatch", "the run belongs to another thread")
	// ErrKeyUnresolved means that something that is not an incident has the key.
	ErrKeyUnresolved = fault.New(fault.Conflict, "idempotency_conflict_unresolved",
		"the idempotency key was already used, and no incident for it can be found; choose another one")
)

// Place is where an incident happened. Empty fields are taken from the run.
type Place struct {
	Room   id.Room
	Thread id.Thread
	Run    id.Run
}

// Open records an incident and returns it. If one with the same key exists, it returns that one and true.
func (v *Service) Open(ctx context.Context, origin event.Origin, ws id.Workspace, at Place, o incident.Opened) (incident.Incident, bool,
	error) {
	o, err := o.Check()
	if err != nil {
		return incident.Incident{}, false, err
	}
	if at, err = v.place(ctx, ws, at); err != nil {
		return incident.Incident{}, false, err
	}
	if before, found, err := v.keyed(ctx, ws, o.Key); found || err != nil {
		return repeated(before, o, err)
	}
	content, err := json.Marshal(o)
	if err != nil {
		return incident.Incident{}, false, err
	}
	a := policy.Action{Type: policy.IncidentOpen, Workspace: ws, Room: at.Room, Run: at.Run, Principal: origin.Principal,
		Content: event.DigestOf(content)}
	o.Incident = id.New[id.Incident](v.IDs)
	draft := event.New(incident.EventOpened, origin, ws, at.Room, o).In(at.Run, "").About(incident.Entity, string(o.Incident))
	draft.Thread, draft.OccurredAt = at.Thread, v.Clock.Now().UTC()
	if o.Key != "" {
		draft.IdempotencyKey = "incident:" + o.Key
	}
	_, err = v.Gate.Record(ctx, origin, a, origin.Once(event.Batch{
		Workspace: ws, Drafts: []event.Draft{draft}, Documents: []event.DocumentVersion{{Projection: incident.Projection,
			Key: string(o.Incident)}},
	}))
	if errors.Is(err, journal.ErrKeyConflict) && o.Key != "" {
		before, found, lookErr := v.keyed(ctx, ws, o.Key)
		switch {
		case lookErr != nil:
			return incident.Incident{}, false, lookErr
		case found:
			return repeated(before, o, nil)
		}
		return incident.Incident{}, false, ErrKeyUnresolved
	}
	if err != nil {
		return incident.Incident{}, false, err
	}
	made, _, err := v.load(ctx, ws, o.Incident)
	return made, false, err
}

// repeated answers an incident that was opened before with the same key. Another incident than that is refused, as an Idempotency-Key
// that was used for another request is; where it happened does not count, for several may notice the same thing.
func repeated(before incident.Incident, o incident.Opened, err error) (incident.Incident, bool, error) {
	if err != nil {
		return incident.Incident{}, false, err
	}
	o.Title, _ = leak.Text(o.Title) // as they are recorded
	o.Category, _ = leak.Text(o.Category)
	if before.Title != "" && !before.Same(o) { // of one that was redacted nobody knows
		return incident.Incident{}, false, journal.ErrKeyConflict
	}
	return before, true, nil
}

// place fills in the room and the thread of the run.
func (v *Service) place(ctx context.Context, ws id.Workspace, at Place) (Place, error) {
	if at.Run == "" {
		return at, v.Place(ctx, ws, at.Room, at.Thread)
	}
	of, _, err := projection.Load[struct {
		Room   id.Room   `json:"room_id"`
		Thread id.Thread `json:"thread_id"`
	}](ctx, v.Docs, ws, run.Projection, string(at.Run))
	switch {
	case errors.Is(err, projection.ErrNotFound):
		return at, ErrRunNotFound
	case err != nil:
		return at, err
	case at.Room != "" && at.Room != of.Room:
		return at, ErrRunRoom
	case at.Thread != "" && of.Thread != "" && at.Thread != of.Thread:
		return at, ErrRunThread
	}
	at.Room = of.Room
	if of.Thread != "" {
		at.Thread = of.Thread
	}
	return at, v.Place(ctx, ws, at.Room, at.Thread)
}

// keyed returns the incident that has a key.
func (v *Service) keyed(ctx context.Context, ws id.Workspace, key string) (incident.Incident, bool, error) {
	if key == "" {
		return incident.Incident{}, false, nil
	}
	found, err := projection.List[incident.Incident](ctx, v.Docs, projection.Query{
		Workspace: ws, Name: incident.Projection, Index: projection.Index{Name: "key", Value: key}, Limit: 1,
	})
	if err != nil || len(found) == 0 {
		return incident.Incident{}, false, err
	}
	return found[0], true, nil
}

func (v *Service) load(ctx context.Context, ws id.Workspace, i id.Incident) (incident.Incident, uint64, error) {
	doc, version, err := projection.Load[incident.Incident](ctx, v.Docs, ws, incident.Projection, string(i))
	if errors.Is(err, projection.ErrNotFound) {
		err = incident.ErrNotFound
	}
	return doc, version, err
}

// Incident returns one incident of the workspace.
func (v *Service) Incident(ctx context.Context, ws id.Workspace, i id.Incident) (incident.Incident, error) {
	doc, _, err := v.load(ctx, ws, i)
	return doc, err
}

// Filter selects incidents. Zero fields do not select; a run goes before a room.
type Filter struct {
	Status incident.Status
	Room   id.Room
	Run    id.Run
	After  id.Incident // the last one of the page before
	Limit  int         // 1 to 1000; 0 means 100
}

// Incidents returns the incidents of a workspace that the filter selects, newest first.
func (v *Service) Incidents(ctx context.Context, ws id.Workspace, f Filter) ([]incident.Incident, error) {
	q := projection.Query{Workspace: ws, Name: incident.Projection, After: string(f.After), Newest: true, Limit: f.Limit}
	name, value := "", ""
	switch {
	case f.Run != "":
		name, value = "run", string(f.Run)
	case f.Room != "":
		name, value = "room", string(f.Room)
	}
	switch {
	case name != "" && f.Status != "":
		q.Index = projection.Index{Name: name + "_status", Value: value + " " + string(f.Status)}
	case name != "":
		q.Index = projection.Index{Name: name, Value: value}
	case f.Status != "":
		q.Index = projection.Index{Name: "status", Value: string(f.Status)}
	}
	return projection.List[incident.Incident](ctx, v.Docs, q)
}

// Analyse writes down the root cause.
func (v *Service) Analyse(ctx context.Context, origin event.Origin, ws id.Workspace, i id.Incident, summary string,
	analysis json.RawMessage) (incident.Incident, error) {
	return v.change(ctx, origin, ws, i, policy.IncidentRCA, incident.EventRCA, func(doc incident.Incident) (any, error) {
		return doc.Analyse(summary, analysis)
	})
}

// Learn records a learning.
func (v *Service) Learn(ctx context.Context, origin event.Origin, ws id.Workspace, i id.Incident, note string,
	tags []string) (incident.Incident, error) {
	return v.change(ctx, origin, ws, i, policy.IncidentLearn, incident.EventLearned, func(doc incident.Incident) (any, error) {
		return doc.Learn(note, tags)
	})
}

// Close ends an incident.
func (v *Service) Close(ctx context.Context, origin event.Origin, ws id.Workspace, i id.Incident, reason string) (incident.Incident,
	error) {
	return v.change(ctx, origin, ws, i, policy.IncidentClose, incident.EventClosed, func(doc incident.Incident) (any, error) {
		return doc.Close(reason)
	})
}

// tries bounds how often a change is decided again because another change came first.
const tries = 16

// change decides one change of an incident on its present document, and records it if no other change came first.
func (v *Service) change(ctx context.Context, origin event.Origin, ws id.Workspace, i id.Incident, action, typ string,
	decide func(incident.Incident) (any, error)) (incident.Incident, error) {
	for try := 1; ; try++ {
		doc, version, err := v.load(ctx, ws, i)
		if err != nil {
			return incident.Incident{}, err
		}
		data, err := decide(doc)
		if err != nil {
			return incident.Incident{}, err
		}
		content, err := json.Marshal(data)
		if err != nil {
			return incident.Incident{}, err
		}
		a := policy.Action{
			Type: action, Workspace: ws, Room: doc.Room, Run: doc.Run, Principal: origin.Principal, Subject: string(i),
			Content: event.DigestOf(content),
		}
		draft := event.New(typ, origin, ws, doc.Room, data).In(doc.Run, "").About(incident.Entity, string(i))
		draft.Thread, draft.OccurredAt = doc.Thread, v.Clock.Now().UTC()
		_, err = v.Gate.Record(ctx, origin, a, origin.Once(event.Batch{
			Workspace: ws, Drafts: []event.Draft{draft}, Documents: []event.DocumentVersion{{Projection: incident.Projection, Key: string(i),
				Version: version}},
		}))
		if errors.Is(err, journal.ErrConflict) && try < tries {
			continue
		}
		if err != nil {
			return incident.Incident{}, err
		}
		return v.Incident(ctx, ws, i)
	}
}
