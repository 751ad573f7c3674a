package label

import (
	"maps"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
)

// Evolve returns the label after an event about its resource.
func (l Label) Evolve(e event.Event) (Label, error) {
	if e.Type != EventLabelled {
		return l, nil
	}
	d, err := event.Decode[Labelled](e)
	if err != nil {
		return l, err
	}
	return Label{Resource: d.Resource, Workspace: e.Workspace, Level: d.Level, Room: d.Room, Purposes: d.Purposes, SetBy: e.Principal,
		SetAt: e.OccurredAt}, nil
}

// Evolve returns the access after an event about it.
func (a Access) Evolve(e event.Event) (Access, error) {
	if e.Type != EventJustified && e.Type != EventUnjustified {
		return a, nil
	}
	d, err := event.Decode[Accessed](e)
	if err != nil || d.Decision != policy.Allow {
		return a, err
	}
	a.Resource, a.Principal = d.Resource, e.Principal
	switch near := (Nearness{e.OccurredAt, d.Level}); d.Action {
	case "read":
		a.Reads = near
	case "write":
		a.Writes = near
	}
	return a, nil
}

// Evolve returns the guards after an event about a label.
func (g Guards) Evolve(e event.Event) (Guards, error) {
	if e.Type != EventLabelled {
		return g, nil
	}
	d, err := event.Decode[Labelled](e)
	if err != nil {
		return g, err
	}
	was, is := d.Was.AtLeast(Restricted), d.Level.AtLeast(Restricted)
	if was == is {
		return g, nil
	}
	types := maps.Clone(g.Types)
	if types == nil {
		types = map[string]int{}
	}
	if is {
		types[d.Type]++
	} else if types[d.Type]--; types[d.Type] <= 0 {
		delete(types, d.Type)
	}
	return Guards{types}, nil
}
