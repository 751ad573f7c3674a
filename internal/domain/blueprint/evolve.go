package blueprint

import (
	"slices"

	"agentbox/internal/domain/event"
)

// Evolve returns the entry after an event about its blueprint.
func (e Entry) Evolve(ev event.Event) (Entry, error) {
	switch ev.Type {
	case EventRegistered, EventChanged:
		d, err := event.Decode[Registered](ev)
		if err != nil {
			return e, err
		}
		editions := append(slices.Clone(e.Editions), Edition{
			Version: d.Version, Hash: d.Hash, Locked: d.Locked, At: ev.OccurredAt, By: ev.Principal,
		})
		return Entry{
			Name: d.Name, Workspace: ev.Workspace, Status: StatusRegistered, Version: d.Version, Hash: d.Hash, Locked: d.Locked,
			Summary: d.Summary, Unpinned: d.Unpinned, Changed: ev.OccurredAt, ChangedBy: ev.Principal,
			Editions: editions[max(0, len(editions)-MaxVersions):],
		}, nil
	case EventRemoved:
		d, err := event.Decode[Removed](ev)
		if err != nil {
			return e, err
		}
		e.Status, e.Reason, e.Changed, e.ChangedBy = StatusRemoved, d.Reason, ev.OccurredAt, ev.Principal
	}
	return e, nil
}

// Evolve returns the count after an event about a blueprint.
func (c Count) Evolve(ev event.Event) (Count, error) {
	switch ev.Type {
	case EventRegistered:
		c.Living++
	case EventRemoved:
		c.Living--
	}
	return c, nil
}

// Find returns a version of the blueprint; the newest for 0.
func (e Entry) Find(version int) (Edition, error) {
	if version == 0 {
		version = e.Version
	}
	for _, ed := range e.Editions {
		if ed.Version == version {
			return ed, nil
		}
	}
	return Edition{}, ErrVersion
}

// maxChanges bounds what an event lists of the changes from the version before.
const maxChanges = 100

// Evolve returns the text of a version after the event that registered it.
func (s Source) Evolve(ev event.Event) (Source, error) {
	if ev.Type != EventRegistered && ev.Type != EventChanged {
		return s, nil
	}
	d, err := event.Decode[Registered](ev)
	return Source{Name: d.Name, Version: d.Version, Locked: d.Locked, Text: d.Text}, err
}

// Register decides what registering a blueprint records: the type of the event and its data; an empty type where the entry says the same
// already. Before is the newest version that the entry has, with its text.
func (e Entry) Register(next Blueprint, text string, before Blueprint, was string, living int) (string, Registered, error) {
	hash, err := next.Hash()
	if err != nil {
		return "", Registered{}, err
	}
	locked, err := next.Locked()
	if err != nil {
		return "", Registered{}, err
	}
	d := Registered{
		Name: next.Name, Version: e.Version + 1, Hash: hash, Locked: locked, Text: text, Summary: next.Summarize(),
		Unpinned: len(next.Unpinned()),
	}
	if !e.Living() {
		if living >= MaxBlueprints {
			return "", d, ErrFull
		}
		return EventRegistered, d, nil
	}
	if e.Locked == locked && was == text {
		return "", d, nil
	}
	changes := Diff(before, next)
	d.Changes = changes[:min(len(changes), maxChanges)]
	return EventChanged, d, nil
}

// Remove decides what removing the blueprint records.
func (e Entry) Remove(reason string) (Removed, error) {
	if !e.Living() {
		return Removed{}, ErrNotFound
	}
	return Removed{Name: e.Name, Reason: reason}, nil
}
