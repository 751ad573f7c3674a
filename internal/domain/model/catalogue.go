package model

import (
	"encoding/json"
	"slices"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// The names of the documents of models.
const (
	Projection         = "models"         // entries of the catalogue, by name
	SettingsProjection = "model_settings" // routes, budgets and names of keys; one document, whose key is the workspace
	CallProjection     = "model_calls"    // requests, by name
	UsageProjection    = "model_usage"    // the use, by scope
)

// The types of the entities that events are about.
const (
	Entity         = "model"
	SettingsEntity = "model_settings"
	CallEntity     = "model_call"
)

// The event types of the catalogue.
const (
	EventAdded      = "model.added"
	EventChanged    = "model.changed"
	EventRemoved    = "model.removed"
	EventRoutesSet  = "model.routes_set"
	EventBudgetsSet = "model.budgets_set"
	EventKeySet     = "model.key_set"
	EventKeyRemoved = "model.key_removed"
)

// Bounds of a catalogue.
const (
	MaxEntries = 200
	MaxRoutes  = 200
	MaxModels  = 16 // of a route
	MaxBudgets = 200
	MaxKeys    = 200
)

// The sources of an entry: who says how it is.
const (
	FromFile = "file" // the file of models in the data directory
	FromAPI  = "api"
)

// Held is the document of an entry.
type Held struct {
	Entry
	Source    string       `json:"source"`
	Hash      event.Digest `json:"model_sha256"` // of the entry; a blueprint pins it
	ChangedBy id.Principal `json:"changed_by,omitempty"`
	ChangedAt time.Time    `json:"changed_at,omitzero"`
	RemovedAt time.Time    `json:"removed_at,omitzero"`
	Reason    string       `json:"reason,omitempty"` // for the removal
	Before    *Entry       `json:"before,omitempty"` // of the API, in whose place the file's entry is; it is back when the file loses that
}

// Living reports whether the entry is in the catalogue.
func (h Held) Living() bool { return h.Name != "" && h.RemovedAt.IsZero() }

// Put is the data of model.added and model.changed.
type Put struct {
	Entry  Entry        `json:"entry"`
	Source string       `json:"source"`
	Hash   event.Digest `json:"model_sha256"`
	Reason string       `json:"reason,omitempty"` // of the daemon, where no person has changed it
}

// Removed is the data of model.removed.
type Removed struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	Reason string `json:"reason,omitempty"`
}

// RoutesSet is the data of model.routes_set.
type RoutesSet struct {
	Routes []Route `json:"routes"`
	Source string  `json:"source"`
}

// BudgetsSet is the data of model.budgets_set.
type BudgetsSet struct {
	Budgets []Budget `json:"budgets"`
	Source  string   `json:"source"`
}

// KeyChanged is the data of model.key_set and model.key_removed. It has the key's name and nothing of the key.
type KeyChanged struct {
	Name string `json:"name"`
}

// Digest returns the content hash of the entry's definition, without its author and without the state of its recording.
func (e Entry) Digest() (event.Digest, error) {
	e.Workspace, e.AddedBy, e.AddedAt, e.Record = "", "", time.Time{}, ""
	raw, err := json.Marshal(e)
	if err != nil {
		return event.Digest{}, err
	}
	canonical, err := policy.Canonicalize(raw)
	if err != nil {
		return event.Digest{}, err
	}
	return event.DigestOf(canonical), nil
}

// ErrFromFile refuses to change an entry of the file of models over the API.
var ErrFromFile = fault.New(fault.Conflict, "model_from_file", "the file of models sets this; change it there")

// Put decides what adding or changing the entry records: the type of the event and its data, an empty type where it says the same
// already. Living is how many entries there are.
func (h Held) Put(next Entry, source string, living int) (string, Put, error) {
	next.Workspace, next.AddedBy, next.AddedAt = "", "", time.Time{}
	next = next.Complete()
	if err := next.Check(); err != nil {
		return "", Put{}, err
	}
	hash, err := next.Digest()
	if err != nil {
		return "", Put{}, err
	}
	d := Put{Entry: next, Source: source, Hash: hash}
	switch {
	case !h.Living() && living >= MaxEntries:
		return "", d, fault.New(fault.Exhausted, "models_full", "a catalogue has at most %d models; remove one first", MaxEntries)
	case !h.Living():
		return EventAdded, d, nil
	case h.Source == FromFile && source != FromFile:
		return "", d, ErrFromFile
	case h.Hash == hash && h.Source == source && h.Record == next.Record:
		return "", d, nil
	}
	return EventChanged, d, nil
}

// Remove decides what removing the entry records: the type of the event and its data. Where the file loses an entry that it took over from
// the API, that of the API is back.
func (h Held) Remove(source, reason string) (string, any, error) {
	switch {
	case !h.Living():
		return "", nil, ErrNotFound
	case h.Source == FromFile && source != FromFile:
		return "", nil, ErrFromFile
	case h.Before == nil:
		return EventRemoved, Removed{h.Name, source, reason}, nil
	}
	before := *h.Before
	before.Workspace, before.AddedBy, before.AddedAt = "", "", time.Time{}
	hash, err := before.Digest()
	return EventChanged, Put{Entry: before, Source: FromAPI, Hash: hash, Reason: reason + "; what the API had set is back"}, err
}

// Evolve returns the document after an event about the entry.
func (h Held) Evolve(e event.Event) (Held, error) {
	switch e.Type {
	case EventAdded, EventChanged:
		d, err := event.Decode[Put](e)
		if err != nil {
			return h, err
		}
		next := Held{Entry: d.Entry, Source: d.Source, Hash: d.Hash, ChangedBy: e.Principal, ChangedAt: e.OccurredAt}
		next.Workspace, next.AddedBy, next.AddedAt = e.Workspace, h.AddedBy, h.AddedAt
		if e.Type == EventAdded {
			next.AddedBy, next.AddedAt = e.Principal, e.OccurredAt
		} else if d.Source == FromFile {
			if next.Before = h.Before; h.Source == FromAPI {
				before := h.Entry
				next.Before = &before
			}
		}
		return next, nil
	case EventRemoved:
		d, err := event.Decode[Removed](e)
		h.RemovedAt, h.Reason, h.ChangedBy, h.ChangedAt = e.OccurredAt, d.Reason, e.Principal, e.OccurredAt
		return h, err
	}
	return h, nil
}

// Settings are a workspace's settings of models beside the entries.
type Settings struct {
	Living        int       `json:"models"` // entries in the catalogue
	Routes        []Route   `json:"routes"`
	RoutesSource  string    `json:"routes_source,omitempty"`
	Budgets       []Budget  `json:"budgets"`
	BudgetsSource string    `json:"budgets_source,omitempty"`
	Keys          []KeyName `json:"keys"`

	// What the API had set before the file set it. It is back when the file sets nothing any more.
	RoutesBefore  []Route  `json:"routes_before,omitempty"`
	BudgetsBefore []Budget `json:"budgets_before,omitempty"`
}

// KeyName is a key that was set, without the key.
type KeyName struct {
	Name  string       `json:"name"`
	SetBy id.Principal `json:"set_by,omitempty"`
	SetAt time.Time    `json:"set_at"`
}

// Evolve returns the settings after an event.
func (s Settings) Evolve(e event.Event) (Settings, error) {
	switch e.Type {
	case EventAdded:
		s.Living++
	case EventRemoved:
		s.Living--
	case EventRoutesSet:
		d, err := event.Decode[RoutesSet](e)
		if err != nil {
			return s, err
		}
		s.RoutesBefore = before(s.RoutesBefore, s.Routes, s.RoutesSource, d.Source)
		s.Routes, s.RoutesSource = d.Routes, d.Source
	case EventBudgetsSet:
		d, err := event.Decode[BudgetsSet](e)
		if err != nil {
			return s, err
		}
		s.BudgetsBefore = before(s.BudgetsBefore, s.Budgets, s.BudgetsSource, d.Source)
		s.Budgets, s.BudgetsSource = d.Budgets, d.Source
	case EventKeySet, EventKeyRemoved:
		d, err := event.Decode[KeyChanged](e)
		if err != nil {
			return s, err
		}
		s.Keys = slices.DeleteFunc(slices.Clone(s.Keys), func(k KeyName) bool { return k.Name == d.Name })
		if e.Type == EventKeySet {
			s.Keys = append(s.Keys, KeyName{d.Name, e.Principal, e.OccurredAt})
		}
	}
	return s, nil
}

// before returns what the API had set before a change from one source to the next.
func before[T any](earlier, now []T, source, next string) []T {
	switch {
	case next != FromFile:
		return nil
	case source == FromAPI:
		return now
	}
	return earlier
}

// CheckRoutes refuses routes that name no model, or an unknown one, and two routes for the same.
func CheckRoutes(routes []Route, known func(name string) bool) error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Invalid, "model_routes_invalid", format, args...)
	}
	if len(routes) > MaxRoutes {
		return bad("there are at most %d routes", MaxRoutes)
	}
	type place struct {
		class TaskClass
		room  id.Room
	}
	seen := map[place]bool{}
	for i, r := range routes {
		if len(r.Models) == 0 || len(r.Models) > MaxModels {
			return bad("route %d names 1 to %d models", i+1, MaxModels)
		}
		if len(r.Class) > 64 {
			return bad("the class of route %d has at most 64 bytes", i+1)
		}
		at := place{r.Class, r.Room}
		if seen[at] {
			return bad("two routes are for the class %q in the room %q; join them", r.Class, r.Room)
		}
		seen[at] = true
		for _, name := range r.Models {
			if !known(name) {
				return bad("route %d names %q, which is not a model of the catalogue", i+1, name)
			}
		}
	}
	return nil
}

// CheckKeyName refuses what cannot name a key.
func CheckKeyName(name string) error {
	if !named(name) {
		return fault.New(fault.Invalid, "model_key_invalid", "a key's name has 1 to 64 of a-z, 0-9, . _ and -")
	}
	return nil
}

// MaxKeyBytes bounds the length of a key.
const MaxKeyBytes = 4 << 10

// CheckSecret refuses what cannot be a key: it is printable ASCII without spaces, because it becomes the value of a header.
func CheckSecret(value string) error {
	if value == "" || len(value) > MaxKeyBytes {
		return fault.New(fault.Invalid, "model_key_invalid", "a key has 1 to %d bytes", MaxKeyBytes)
	}
	for i := range len(value) {
		if value[i] <= ' ' || value[i] > '~' {
			return fault.New(fault.Invalid, "model_key_invalid", "a key is printable ASCII without spaces and line breaks")
		}
	}
	return nil
}
