package projection

import (
	"fmt"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Limits of documents and of their lists.
const (
	MaxKeyBytes   = 256     // of a document's key, an index's name and its value
	MaxIndexes    = 32      // entries of one document
	MaxBodyBytes  = 8 << 20 // of a document
	MaxDocuments  = 1_000   // documents of one list
	listedUnasked = 100
)

// Set is every definition that a store folds. Make it with NewSet.
type Set struct {
	defs []Definition
	at   map[string]int

	leaders map[string]int // by the entity whose causes they know
}

// NewSet returns the set of the given definitions; two of one name are a mistake in the program and an error.
func NewSet(defs []Definition) (*Set, error) {
	s := &Set{defs: slices.Clone(defs), at: make(map[string]int, len(defs)), leaders: map[string]int{}}
	for i, d := range defs {
		if d.Name == "" || d.Version < 1 || d.keys == nil {
			return nil, fmt.Errorf("projection %q: a definition has a name, a version from 1 on, and is made with Define", d.Name)
		}
		if _, twice := s.at[d.Name]; twice {
			return nil, fmt.Errorf("projection %q is defined twice", d.Name)
		}
		s.at[d.Name] = i
		if d.entity == "" {
			continue
		}
		if _, twice := s.leaders[d.entity]; twice {
			return nil, fmt.Errorf("projection %q: another one leads %q already", d.Name, d.entity)
		}
		s.leaders[d.entity] = i
	}
	return s, nil
}

// Definitions returns every definition, in the order in which they were given.
func (s *Set) Definitions() []Definition { return slices.Clone(s.defs) }

// Lookup returns the definition of that name, or a fault.
func (s *Set) Lookup(name string) (Definition, error) {
	i, ok := s.at[name]
	if !ok {
		return Definition{}, fault.New(fault.Invalid, "unknown_projection", "there is no projection %.64q", name)
	}
	return s.defs[i], nil
}

// Ref names one document.
type Ref struct {
	Workspace id.Workspace
	Name      string // of its projection
	Key       string
}

// Touched returns the documents that an event changes, each once.
func (s *Set) Touched(e event.Event) ([]Ref, error) {
	var refs []Ref
	for i := range s.defs {
		keys := s.defs[i].keys(e)
		for at, key := range keys {
			if key == "" || len(key) > MaxKeyBytes {
				return nil, fault.New(fault.Invalid, "document_key_invalid", "%s would change a document of %s whose key has %d bytes; it has 1 to %d",
					e.Type, s.defs[i].Name, len(key), MaxKeyBytes)
			}
			if !slices.Contains(keys[:at], key) {
				if refs == nil {
					refs = make([]Ref, 0, 4) // most events change no more
				}
				refs = append(refs, Ref{Workspace: e.Workspace, Name: s.defs[i].Name, Key: key})
			}
		}
	}
	return refs, nil
}

// Fold folds an event into every document that it changes. Load returns the present state of one, and save takes the new state.
func (s *Set) Fold(e event.Event, load func(Ref) (State, error), save func(Ref, State)) error {
	refs, err := s.Touched(e)
	if err != nil {
		return err
	}
	return FoldInto(refs, e, load, save)
}

// FoldInto folds an event into the documents that it changes, of which Touched has told.
func FoldInto(refs []Ref, e event.Event, load func(Ref) (State, error), save func(Ref, State)) error {
	for _, ref := range refs {
		state, err := load(ref)
		if err != nil {
			return err
		}
		if state, err = state.Fold(e); err != nil {
			return err
		}
		save(ref, state)
	}
	return nil
}

// Check returns the query with its limit filled in, or a fault that names the error.
func (q Query) Check() (Query, error) {
	if _, err := id.ParseWorkspace(string(q.Workspace)); err != nil {
		return q, fault.Wrap(err, fault.Invalid, "workspace_invalid", "the query names no valid workspace")
	}
	if q.Limit == 0 {
		q.Limit = listedUnasked
	}
	if q.Limit < 1 || q.Limit > MaxDocuments {
		return q, fault.New(fault.Invalid, "limit_invalid", "limit is 1 to %d, not %d", MaxDocuments, q.Limit)
	}
	return q, nil
}
