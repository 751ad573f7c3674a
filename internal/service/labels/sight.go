package labels

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/incident"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/room"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/step"
	"agentbox/internal/kernel/projection"
)

// documents are the projections in which the things of each type say where they lie.
var documents = map[string]string{
	label.OfRoom: room.Projection, label.OfThread: room.ThreadProjection, label.OfMessage: room.MessageProjection,
	label.OfSpace: space.Projection, label.OfRun: run.Projection,
	label.OfStep: step.Projection, label.OfToolCall: step.CallProjection, label.OfArtifact: step.ArtifactProjection,
	label.OfApproval: policy.ApprovalProjection,
	label.OfIncident: incident.Projection,
}

// around are the types of things that contain others. An operation of a run is a step in it, and shows the same data as the run.
var around = []string{label.OfRoom, label.OfThread, label.OfSpace, label.OfRun, label.OfStep, label.OfToolCall, label.OfApproval}

// place is the containers of a thing, from its document or from the data of an event about it.
type place struct {
	Room     id.Room     `json:"room_id"`
	Thread   id.Thread   `json:"thread_id"`
	Space    id.Space    `json:"space_id"`
	Run      id.Run      `json:"run_id"`
	Step     id.Step     `json:"step_id"`
	Approval id.Approval `json:"approval_id"`
	Event    id.Event    `json:"event_id"` // of an event about another one
	Origin   id.Space    `json:"forked_from"`
	Parent   struct {
		Run  id.Run      `json:"run_id"`
		Call id.ToolCall `json:"tool_call_id"`
	} `json:"parent"`
	EntityType string `json:"entity_type"`
	EntityID   string `json:"entity_id"`
	Operations []struct {
		Step id.Step `json:"step_id"`
	} `json:"operations"`
}

// in returns the things that contain it.
func (p place) in() []label.Resource {
	all := []label.Resource{
		{Type: label.OfRoom, ID: string(p.Room)}, {Type: label.OfThread, ID: string(p.Thread)}, {Type: label.OfSpace, ID: string(p.Space)},
		{Type: label.OfRun, ID: string(p.Run)},
		{Type: label.OfStep, ID: string(p.Step)}, {Type: label.OfApproval, ID: string(p.Approval)}, {Type: label.OfSpace, ID: string(p.Origin)},
		{Type: label.OfRun, ID: string(p.Parent.Run)}, {Type: label.OfToolCall, ID: string(p.Parent.Call)}, {Type: p.EntityType, ID: p.EntityID},
		{Type: leak.Entity, ID: string(p.Event)},
	}
	for _, o := range p.Operations {
		all = append(all, label.Resource{Type: label.OfStep, ID: string(o.Step)})
	}
	return slices.DeleteFunc(all, func(r label.Resource) bool { return r.Type == "" || r.ID == "" })
}

// Sight decides during one answer which resources of a workspace one principal may see. One goroutine uses it.
type Sight struct {
	c         *Service
	workspace id.Workspace
	principal id.Principal
	guards    label.Guards
	places    map[label.Resource]place
	verdicts  map[label.Resource]error
}

// Sight returns the present sight of a principal.
func (c *Service) Sight(ctx context.Context, ws id.Workspace, p id.Principal) (*Sight, error) {
	guards, err := c.guards(ctx, ws)
	if err != nil || len(guards.Types) == 0 {
		return &Sight{}, err
	}
	return &Sight{c, ws, p, guards, map[label.Resource]place{}, map[label.Resource]error{}}, nil
}

// maxGuarded is of how many workspaces it is kept how much is labelled in them.
const maxGuarded = 1_024

// guarded is how much is labelled in a workspace whose log has a head.
type guarded struct {
	head   uint64
	guards label.Guards
}

// guards returns how much is labelled in a workspace. Every follower asks for each event, so the answer is cached while the log does not
// grow. It reads the head first, so that the cached answer is at least as new as that head.
func (c *Service) guards(ctx context.Context, ws id.Workspace) (label.Guards, error) {
	head, err := c.Log.Head(ctx, ws)
	if err != nil {
		return label.Guards{}, err
	}
	c.mu.Lock()
	kept, ok := c.guarded[ws]
	c.mu.Unlock()
	if ok && kept.head == head {
		return kept.guards, nil
	}
	var now label.Guards
	doc, err := projection.Lend(ctx, c.Docs, ws, label.GuardProjection, string(ws))
	if err == nil {
		if err := json.Unmarshal(doc.Body, &now); err != nil {
			return now, fmt.Errorf("read how much is labelled: %w", err)
		}
	} else if !errors.Is(err, projection.ErrNotFound) {
		return now, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.guarded == nil || len(c.guarded) >= maxGuarded {
		c.guarded = map[id.Workspace]guarded{}
	}
	if c.guarded[ws].head <= head {
		c.guarded[ws] = guarded{head, now}
	}
	return now, nil
}

// Sees refuses resources that a label hides from the principal, by their own label or by that of a thing that contains them.
func (s *Sight) Sees(ctx context.Context, resources ...label.Resource) error {
	if len(s.guards.Types) == 0 {
		return nil
	}
	seen := map[label.Resource]bool{}
	return s.sees(ctx, resources, seen)
}

// Shows reports whether the principal may see a resource.
func (s *Sight) Shows(ctx context.Context, r label.Resource) (bool, error) {
	err := s.Sees(ctx, r)
	if fault.KindOf(err) == fault.Denied {
		return false, nil
	}
	return err == nil, err
}

func (s *Sight) sees(ctx context.Context, resources []label.Resource, seen map[label.Resource]bool) error {
	for _, r := range resources {
		if seen[r] {
			continue
		}
		seen[r] = true
		if err := s.verdict(ctx, r); err != nil {
			return err
		}
		if r.Type == leak.Entity {
			about, err := s.about(ctx, r)
			if err == nil {
				err = s.sees(ctx, about, seen)
			}
			if err != nil {
				return err
			}
			continue
		}
		if !s.guards.On(around...) {
			continue
		}
		lies, err := s.place(ctx, r)
		if err == nil {
			err = s.sees(ctx, lies.in(), seen)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// verdict refuses a resource that its own label hides from the principal.
func (s *Sight) verdict(ctx context.Context, r label.Resource) error {
	if !s.guards.On(r.Type) {
		return nil
	}
	if err, known := s.verdicts[r]; known {
		return err
	}
	lies, err := s.place(ctx, r)
	if err != nil {
		return err
	}
	if r.Type == label.OfRoom {
		lies.Room = id.Room(r.ID)
	}
	if err = s.c.MayRead(ctx, s.workspace, s.principal, r, lies.Room); err == nil || fault.KindOf(err) == fault.Denied {
		s.verdicts[r] = err
	}
	return err
}

// place returns the containers of a thing; none if it has no document.
func (s *Sight) place(ctx context.Context, r label.Resource) (place, error) {
	if known, ok := s.places[r]; ok {
		return known, nil
	}
	var lies place
	if name, ok := documents[r.Type]; ok && len(r.ID) <= label.MaxID {
		doc, err := projection.Lend(ctx, s.c.Docs, s.workspace, name, r.ID)
		if err == nil {
			err = json.Unmarshal(doc.Body, &lies)
		}
		if err != nil && !errors.Is(err, projection.ErrNotFound) {
			return place{}, fmt.Errorf("read where %s %s lies: %w", r.Type, r.ID, err)
		}
	}
	s.places[r] = lies
	return lies, nil
}

// about returns the resources that an event is about.
func (s *Sight) about(ctx context.Context, r label.Resource) ([]label.Resource, error) {
	e, err := s.c.Log.Get(ctx, s.workspace, id.Event(r.ID))
	if fault.KindOf(err) == fault.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.told(&e), nil
}

// told returns the resources that an event is about, by its header and by the ids in its data.
func (s *Sight) told(e *event.Event) []label.Resource {
	header := place{Room: e.Room, Thread: e.Thread, Run: e.Run, Step: e.Step, EntityType: e.EntityType, EntityID: e.EntityID}
	var data place
	_ = json.Unmarshal(e.Data, &data) // a member of another type is not an id; the others are read all the same
	return append(header.in(), data.in()...)
}

// Event returns an event as the principal may see it: as it is, or with its data withheld.
func (s *Sight) Event(ctx context.Context, e event.Event) (event.Event, error) {
	if len(s.guards.Types) == 0 || e.Withheld != "" {
		return e, nil
	}
	err := s.Sees(ctx, s.told(&e)...)
	if fault.KindOf(err) == fault.Denied {
		e.Withhold(event.Labelled, nil)
		err = nil
	}
	return e, err
}

// Visible removes from a list the elements that the principal may not see. Resource names an element.
func Visible[T any](ctx context.Context, s *Sight, list []T, resource func(T) label.Resource) ([]T, error) {
	if len(s.guards.Types) == 0 {
		return list, nil
	}
	kept := make([]T, 0, len(list))
	for _, x := range list {
		shows, err := s.Shows(ctx, resource(x))
		if err != nil {
			return nil, err
		}
		if shows {
			kept = append(kept, x)
		}
	}
	return kept, nil
}
