package memory

import (
	"context"
	"slices"
	"sync"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/fulltext"
)

// Search is an index in memory, which looks at every text.
type Search struct {
	mu      sync.Mutex // guards all below
	entries map[id.Workspace][]fulltext.Entry
	places  map[id.Workspace]uint64
}

var _ fulltext.Index = (*Search)(nil)

// NewSearch returns an empty index.
func NewSearch() *Search {
	return &Search{entries: map[id.Workspace][]fulltext.Entry{}, places: map[id.Workspace]uint64{}}
}

// Place implements search.Index.
func (s *Search) Place(_ context.Context, ws id.Workspace) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places[ws], nil
}

// Take implements search.Index.
func (s *Search) Take(_ context.Context, ws id.Workspace, upTo uint64, entries []fulltext.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[ws] = append(s.entries[ws], entries...)
	s.places[ws] = upTo
	return nil
}

// Search implements search.Index.
func (s *Search) Search(_ context.Context, q fulltext.Query) ([]fulltext.Hit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hits := []fulltext.Hit{}
	for _, e := range slices.Backward(s.entries[q.Workspace]) {
		if (q.Before == 0 || e.Place < q.Before) && len(hits) < q.Limit && among(q, e) && fulltext.Matches(e.Text, q.Words) {
			hits = append(hits, fulltext.Hit{Place: e.Place, Key: e.Key})
		}
	}
	return hits, nil
}

// among reports whether an entry is from where is searched.
func among(q fulltext.Query, e fulltext.Entry) bool {
	return (q.Room == "" || e.Room == q.Room) && (q.Thread == "" || e.Thread == q.Thread)
}

// Forget implements search.Index.
func (s *Search) Forget(_ context.Context, ws id.Workspace, places ...uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[ws] = slices.DeleteFunc(s.entries[ws], func(e fulltext.Entry) bool { return slices.Contains(places, e.Place) })
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
