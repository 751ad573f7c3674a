// Package labels labels data by how sensitive they are, and decides who may access them.
package labels

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Parts are the dependencies of the service.
type Parts struct {
	Log   journal.Journal
	Docs  projection.Reader // of Definitions, and of the things that are labelled
	Gate  policy.Gate
	Clock event.Clock

	// Place refuses a room and a thread that are not there, or not together; either may be empty.
	Place func(ctx context.Context, ws id.Workspace, in id.Room, thread id.Thread) error
}

// Service keeps labels. Make it with New; every method may be called from any goroutine.
type Service struct {
	Parts

	mu      sync.Mutex // guards all below
	guarded map[id.Workspace]guarded
}

// New returns a service of the given parts.
func New(p Parts) *Service { return &Service{Parts: p} }

// Definitions fold the documents of labels and of accesses.
func Definitions() []projection.Definition {
	about := func(entity string) func(event.Event) []string {
		return func(e event.Event) []string {
			if e.EntityType != entity || e.EntityID == "" {
				return nil
			}
			return []string{e.EntityID}
		}
	}
	return []projection.Definition{
		projection.Define(label.Projection, 2, about(label.Entity), func(l label.Label, _ string, e event.Event) (label.Label, error) {
			return l.Evolve(e)
		},
			func(l label.Label) []projection.Index {
				found := []projection.Index{{Name: "label", Value: string(l.Level)}}
				if l.Room != "" {
					found = append(found, projection.Index{Name: "room", Value: string(l.Room)})
				}
				return found
			}).Leads(label.Entity, nil),
		projection.Define(label.AccessProjection, 3, about(label.AccessEntity), func(a label.Access, _ string, e event.Event) (label.Access,
			error) {
			return a.Evolve(e)
		}, nil).Leads(label.AccessEntity, nil),
		projection.Define(label.GuardProjection, 1, func(e event.Event) []string {
			if e.EntityType != label.Entity {
				return nil
			}
			return []string{string(e.Workspace)}
		}, func(g label.Guards, _ string, e event.Event) (label.Guards, error) { return g.Evolve(e) }, nil),
	}
}

// tries bounds how often a label is decided again because another change came first.
const tries = 16

// Label labels a resource. A caller who lowers a label, so that more people may access the resource, must be an admin.
func (c *Service) Label(ctx context.Context, origin event.Origin, ws id.Workspace, next label.Label) (label.Label, error) {
	if err := next.Check(); err != nil {
		return label.Label{}, err
	}
	if err := c.Place(ctx, ws, next.Room, ""); err != nil {
		return label.Label{}, err
	}
	for try := 1; ; try++ {
		now, version, err := c.label(ctx, ws, next.Resource)
		if err != nil {
			return label.Label{}, err
		}
		data := label.Labelled{Resource: next.Resource, Level: next.Level, Was: now.Level, Room: next.Room, Purposes: next.Purposes}
		content, err := json.Marshal(data)
		if err != nil {
			return label.Label{}, err
		}
		a := policy.Action{Type: policy.LabelSet, Workspace: ws, Principal: origin.Principal, Token: origin.Token, Subject: next.Key(),
			Content: event.DigestOf(content)}
		if now.Lowers(next) {
			a.Type = policy.LabelLower
		}
		draft := event.New(label.EventLabelled, origin, ws, "", data).About(label.Entity, next.Key())
		draft.OccurredAt = c.Clock.Now().UTC()
		_, err = c.Gate.Record(ctx, origin, a, origin.Once(event.Batch{
			Workspace: ws, Drafts: []event.Draft{draft}, Documents: []event.DocumentVersion{{Projection: label.Projection, Key: next.Key(),
				Version: version}},
		}))
		if errors.Is(err, journal.ErrConflict) && try < tries {
			continue
		}
		if err != nil {
			return label.Label{}, err
		}
		made, _, err := c.label(ctx, ws, next.Resource)
		return made, err
	}
}

// label returns the label of a resource, internal if it has none, and its version.
func (c *Service) label(ctx context.Context, ws id.Workspace, r label.Resource) (label.Label, uint64, error) {
	doc, version, err := projection.Load[label.Label](ctx, c.Docs, ws, label.Projection, r.Key())
	if errors.Is(err, projection.ErrNotFound) {
		return label.Label{Resource: r, Workspace: ws, Level: label.Internal}, 0, nil
	}
	return doc, version, err
}

// Filter selects labels. Zero fields do not select; a room goes before a level.
type Filter struct {
	Resource label.Resource // this one, as it is labelled or would be by default
	Level    label.Level
	Room     id.Room
	After    string // the key of the last one of the page before
	Limit    int    // 1 to 1000; 0 means 100
}

// Labels returns the labels of a workspace that the filter selects, by their resources.
func (c *Service) Labels(ctx context.Context, ws id.Workspace, f Filter) ([]label.Label, error) {
	if f.Resource != (label.Resource{}) {
		if err := f.Resource.Check(); err != nil {
			return nil, err
		}
		one, _, err := c.label(ctx, ws, f.Resource)
		if f.Room != "" && one.Room != f.Room {
			return nil, err // a caller who asks about one room gets nothing of the others
		}
		return []label.Label{one}, err
	}
	q := projection.Query{Workspace: ws, Name: label.Projection, After: f.After, Limit: f.Limit}
	switch {
	case f.Room != "":
		q.Index = projection.Index{Name: "room", Value: string(f.Room)}
	case f.Level != "":
		q.Index = projection.Index{Name: "label", Value: string(f.Level)}
	}
	return projection.List[label.Label](ctx, c.Docs, q)
}

// Answer is a decision about an access together with its basis.
type Answer struct {
	Decision policy.Decision
	Label    label.Label // with the level by which it was decided
	Approval id.Approval // the question that is open about it
	Event    id.Event    // that records it
}

// Request decides whether origin's principal may access a resource, and records the decision if the resource is more than internal. If a
// person has to approve, it asks a question, and the same request succeeds once it is answered.
func (c *Service) Request(ctx context.Context, origin event.Origin, ws id.Workspace, in id.Run, q label.Request) (Answer, error) {
	if err := q.Check(); err != nil {
		return Answer{}, err
	}
	if err := c.placed(ctx, ws, q.Room, in); err != nil {
		return Answer{}, err
	}
	l, _, err := c.label(ctx, ws, q.Resource)
	if err != nil {
		return Answer{}, err
	}
	resolved, d, mismatch := l.Decide(q)
	said := label.Accessed{
		Resource: q.Resource, Action: q.Action, Level: resolved, Purposes: q.Purposes, Justification: q.Justification, Decision: d.Outcome,
		Code: d.ReasonCode, Reason: d.Reason,
	}
	l.Level = resolved
	answer := Answer{Decision: d, Label: l}
	if d.Outcome == policy.Deny {
		// Without the key of the request: a refusal does not use it up.
		receipt, err := c.Log.Append(ctx, c.batch(origin, ws, q.Room, in, said, label.EventDenied))
		if err == nil {
			answer.Event = receipt.Events[0].ID
		}
		return answer, err
	}
	a, err := access(origin, ws, in, q, said)
	if err != nil {
		return Answer{}, err
	}
	if !resolved.AtLeast(label.Confidential) {
		r, err := c.Gate.Judge(ctx, a)
		if err != nil || r.Decision.Allowed() {
			return answer, err
		}
	}
	types := []string{label.EventUnjustified}
	if q.Justification != "" {
		types = []string{label.EventJustified}
	}
	if mismatch {
		types = append([]string{label.EventMismatch}, types...)
	}
	if d.Outcome == policy.RequireApproval {
		a.Type = policy.DataAccessUnjustified
		said.Decision = policy.Allow // it is recorded when a person has approved it
	}
	receipt, err := c.Gate.Record(ctx, origin, a, origin.Once(c.batch(origin, ws, q.Room, in, said, types...)))
	if asked, ok := errors.AsType[*policy.Asked](err); ok && asked.Fault.Kind == fault.Waiting {
		answer.Approval = asked.Approval
		if d.Outcome == policy.Allow { // the policy asks, not the label
			answer.Decision = policy.Decision{Outcome: policy.RequireApproval, ReasonCode: policy.ReasonPolicyAsks, Reason: asked.Fault.Msg,
				Suggestion: asked.Fault.Suggestion}
		}
		return answer, nil
	}
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.Denied {
		answer.Decision = policy.Decision{Outcome: policy.Deny, ReasonCode: f.Code, Reason: f.Msg, Suggestion: f.Suggestion}
		return answer, nil
	}
	if err != nil {
		return Answer{}, err
	}
	if d.Outcome == policy.RequireApproval {
		answer.Decision = policy.Decision{Outcome: policy.Allow, ReasonCode: policy.ReasonApprovalAllows, Reason: "a person has approved it"}
	}
	answer.Event = receipt.Events[len(types)-1].ID
	return answer, nil
}

// placed refuses a room and a run that are not there, or not together.
func (c *Service) placed(ctx context.Context, ws id.Workspace, in id.Room, r id.Run) error {
	if r == "" {
		return c.Place(ctx, ws, in, "")
	}
	doc, _, err := projection.Load[place](ctx, c.Docs, ws, run.Projection, string(r))
	switch {
	case errors.Is(err, projection.ErrNotFound):
		return ErrRunNotFound
	case err != nil:
		return err
	case in != "" && in != doc.Room:
		return ErrRunRoom
	}
	return nil
}

// Refusals that concern the place of an access request.
var (
	// ErrRunNotFound means that the workspace has no such run.
	ErrRunNotFound = fault.New(fault.NotFound, "run_not_found", "there is no such run in this workspace")
	// ErrRunRoom refuses a run together with another room than its own.
	ErrRunRoom = fault.New(fault.Invalid, "run_room_mismatch", "the run belongs to another room")
)

// access is the action of an access. Its request holds all the details, so that an approval is for exactly these.
func access(origin event.Origin, ws id.Workspace, in id.Run, q label.Request, said label.Accessed) (policy.Action, error) {
	raw, err := json.Marshal(struct {
		label.Accessed
		Run id.Run `json:"run_id,omitempty"`
	}{said, in})
	if err != nil {
		return policy.Action{}, err
	}
	request, err := policy.Canonicalize(raw)
	return policy.Action{Type: policy.DataAccess, Workspace: ws, Room: q.Room, Principal: origin.Principal, Token: origin.Token,
		Subject: q.Key(), Method: q.Action, Request: request}, err
}

func (c *Service) batch(origin event.Origin, ws id.Workspace, room id.Room, in id.Run, said label.Accessed, types ...string) event.Batch {
	b := event.Batch{Workspace: ws}
	for _, typ := range types {
		draft := event.New(typ, origin, ws, room, said).In(in, "").About(label.AccessEntity, label.AccessKey(origin.Principal, said.Resource))
		draft.OccurredAt = c.Clock.Now().UTC()
		b.Drafts = append(b.Drafts, draft)
	}
	return b
}

// ErrAccessRequired refuses to read a confidential resource before the access was requested.
var ErrAccessRequired = fault.New(fault.Denied, "data_access_required", "these data are labelled; ask for access to them first").
	With("POST /v1/data/access/requests; what is allowed there can be read for " + label.AccessTime.String() + ".")

// MayRead reports whether a principal may read a resource of a room now. A restricted resource must belong to that room. For a confidential
// one the principal must have asked for read access within label.AccessTime.
func (c *Service) MayRead(ctx context.Context, ws id.Workspace, p id.Principal, r label.Resource, room id.Room) error {
	l, _, err := c.label(ctx, ws, r)
	if err != nil || !l.Level.AtLeast(label.Restricted) {
		return err
	}
	if l.Room != "" && l.Room != room {
		return fault.New(fault.Denied, policy.ReasonRoomMismatch, "the data are restricted to another room")
	}
	if l.Level == label.Restricted {
		return nil
	}
	got, _, err := projection.Load[label.Access](ctx, c.Docs, ws, label.AccessProjection, label.AccessKey(p, r))
	if errors.Is(err, projection.ErrNotFound) || err == nil && !got.Reads.Holds(l.Level, c.Clock.Now()) {
		return ErrAccessRequired
	}
	return err
}

// Recall returns the answer that was given to a request, of which the event at a place of the log is the last.
func (c *Service) Recall(ctx context.Context, ws id.Workspace, place uint64) (Answer, error) {
	const most = 3 // events of one answer: a mismatch, the access, the use of an approval
	found, err := c.Log.Read(ctx, journal.Query{Workspace: ws, From: max(place, most) - most + 1, Before: place + 1, Limit: most})
	if err != nil {
		return Answer{}, err
	}
	for i := len(found) - 1; i >= 0; i-- {
		if found[i].EntityType != label.AccessEntity {
			continue
		}
		said, err := event.Decode[label.Accessed](found[i])
		if err != nil {
			return Answer{}, err
		}
		l, _, err := c.label(ctx, ws, said.Resource)
		l.Level = said.Level
		d := policy.Decision{Outcome: said.Decision, ReasonCode: said.Code, Reason: said.Reason}
		if said.Decision == policy.Allow && said.Code == policy.ReasonPurposeMismatch {
			d.ReasonCode, d.Reason = policy.ReasonApprovalAllows, "a person has approved it"
		}
		return Answer{Decision: d, Label: l, Event: found[i].ID}, err
	}
	return Answer{}, fault.New(fault.Internal, "answer_lost", "the answer to the first request is not where it was recorded")
}
