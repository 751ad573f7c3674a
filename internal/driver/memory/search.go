package memory

import (
	"context"
	"slices"
	"sync"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/search"
)

// Search is an index in memory, which looks at every text.
type Search struct {
	mu      sync.Mutex // guards all below
	entries map[id.Workspace][]search.Entry
	places  map[id.Workspace]uint64
}

var _ search.Index = (*Search)(nil)

// NewSearch returns an empty index.
func NewSearch() *Search {
	return &Search{entries: map[id.Workspace][]search.Entry{}, places: map[id.Workspace]uint64{}}
}

// Place implements search.Index.
func (s *Search) Place(_ context.Context, ws id.Workspace) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places[ws], nil
}

// Take implements search.Index.
func (s *Search) Take(_ context.Context, ws id.Workspace, upTo uint64, entries []search.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[ws] = append(s.entries[ws], entries...)
	s.places[ws] = upTo
	return nil
}

// Search implements search.Index.
func (s *Search) Search(_ context.Context, q search.Query) ([]search.Hit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hits := []search.Hit{}
	for _, e := range slices.Backward(s.entries[q.Workspace]) {
		if (q.Before == 0 || e.Place < q.Before) && len(hits) < q.Limit && among(q, e) && search.Matches(e.Text, q.Words) {
			hits = append(hits, search.Hit{Place: e.Place, Key: e.Key})
		}
	}
	return hits, nil
}

// among reports whether an entry is from where is searched.
func among(q search.Query, e search.Entry) bool {
	return (q.Room == "" || e.Room == q.Room) && (q.Thread == "" || e.Thread == q.Thread)
}

// Forget implements search.Index.
func (s *Search) Forget(_ context.Context, ws id.Workspace, places ...uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[ws] = slices.DeleteFunc(s.entries[ws], func(e search.Entry) bool { return slices.Contains(places, e.Place) })
	return nil
}

// Reset implements search.Index.
func (s *Search) Reset(_ context.Context, ws id.Workspace) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, ws)
	delete(s.places, ws)
	return nil
}
