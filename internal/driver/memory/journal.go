// Package memory keeps the log, its documents, content and live output in memory: the twin of every durable store, for tests and trials.
package memory

import (
	"cmp"
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

var (
	_ journal.Journal  = (*Journal)(nil)
	_ projection.Store = (*Journal)(nil)
)

// Journal is a journal and a store of documents in memory.
type Journal struct {
	set     *projection.Set
	planner *journal.Planner

	mu         sync.RWMutex // guards all below; Append holds it from its first look to its last change
	closed     bool
	workspaces map[id.Workspace]*tenant
	ids        map[id.Event]bool
}

// tenant is everything of one workspace.
type tenant struct {
	events    []event.Event // at place seq-1
	tips      map[event.Stream]journal.Tip
	uses      map[string]journal.Use
	taken     map[string]bool
	places    map[id.Event]uint64
	documents map[string]map[string]stored // by projection and key
	grown     chan struct{}                // closed and replaced when the head moves
}

// stored is a document as it lies in the store: bytes, never the value they were made from.
type stored struct {
	projection.Document
	indexes []projection.Index
}

// NewJournal returns an empty journal that folds its events into documents of the given definitions.
func NewJournal(defs []projection.Definition, clock event.Clock, ids *id.Source, entropy io.Reader) (*Journal, error) {
	set, err := projection.NewSet(defs)
	if err != nil {
		return nil, err
	}
	return &Journal{
		set: set, planner: journal.NewPlanner(clock, ids, entropy),
		workspaces: map[id.Workspace]*tenant{}, ids: map[id.Event]bool{},
	}, nil
}

// Close shuts the journal. Append and Wait then return ErrClosed.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	for _, t := range j.workspaces {
		close(t.grown)
	}
	return nil
}

// Append implements journal.Journal.
func (j *Journal) Append(ctx context.Context, b event.Batch) (event.Receipt, error) {
	b, err := journal.Check(b)
	if err != nil {
		return event.Receipt{}, err
	}
	for i := range b.Drafts {
		b.Drafts[i].Data = slices.Clone(b.Drafts[i].Data)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return event.Receipt{}, err
	}
	if j.closed {
		return event.Receipt{}, journal.ErrClosed
	}
	events, use, err := j.planner.Plan(b, ledger{j})
	if err != nil {
		return event.Receipt{}, err
	}
	if use != nil {
		first := j.workspaces[b.Workspace].events[use.First-1:][:use.Count]
		return event.Receipt{Events: cloneAll(first), Replayed: true}, nil
	}
	changed, err := j.fold(events)
	if err != nil {
		return event.Receipt{}, err
	}
	j.record(b, events, changed)
	return event.Receipt{Events: cloneAll(events)}, nil
}

// fold returns the documents that the events change.
func (j *Journal) fold(events []event.Event) (map[projection.Ref]stored, error) {
	states := map[projection.Ref]projection.State{}
	load := func(ref projection.Ref) (projection.State, error) {
		if s, ok := states[ref]; ok {
			return s, nil
		}
		def, err := j.set.Lookup(ref.Name)
		if err != nil {
			return projection.State{}, err
		}
		var d stored
		if t := j.workspaces[ref.Workspace]; t != nil {
			d = t.documents[ref.Name][ref.Key]
		}
		return def.Restore(ref.Key, d.Body, d.Version, d.Seq)
	}
	for _, e := range events {
		if err := j.set.Fold(event.Clone(e), load, func(ref projection.Ref, s projection.State) { states[ref] = s }); err != nil {
			return nil, err
		}
	}
	return encode(states)
}

func encode(states map[projection.Ref]projection.State) (map[projection.Ref]stored, error) {
	changed := make(map[projection.Ref]stored, len(states))
	for ref, s := range states {
		body, indexes, err := s.Encode()
		if err != nil {
			return nil, err
		}
		changed[ref] = stored{projection.Document{Key: ref.Key, Version: s.Version, Seq: s.Seq, Body: body}, indexes}
	}
	return changed, nil
}

// record stores a batch that can no longer fail.
func (j *Journal) record(b event.Batch, events []event.Event, changed map[projection.Ref]stored) {
	t := j.workspaces[b.Workspace]
	if t == nil {
		t = newTenant()
		j.workspaces[b.Workspace] = t
	}
	for _, e := range events {
		t.events = append(t.events, e)
		t.tips[e.Stream] = journal.Tip{Seq: e.StreamSeq, Hash: e.Chain.Hash}
		t.places[e.ID] = e.Seq
		j.ids[e.ID] = true
		if e.IdempotencyKey != "" {
			t.taken[e.IdempotencyKey] = true
		}
	}
	if b.Key != "" {
		t.uses[b.Key] = journal.Use{Digest: b.Digest, First: events[0].Seq, Count: len(events)}
	}
	for ref, d := range changed {
		t.keep(ref.Name, d)
	}
	close(t.grown)
	t.grown = make(chan struct{})
}

func newTenant() *tenant {
	return &tenant{
		tips: map[event.Stream]journal.Tip{}, uses: map[string]journal.Use{}, taken: map[string]bool{},
		places: map[id.Event]uint64{}, documents: map[string]map[string]stored{}, grown: make(chan struct{}),
	}
}

func (t *tenant) keep(name string, d stored) {
	if t.documents[name] == nil {
		t.documents[name] = map[string]stored{}
	}
	t.documents[name][d.Key] = d
}

// Get implements journal.Journal.
func (j *Journal) Get(ctx context.Context, ws id.Workspace, e id.Event) (event.Event, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if err := ctx.Err(); err != nil {
		return event.Event{}, err
	}
	if t := j.workspaces[ws]; t != nil && t.places[e] != 0 {
		return event.Clone(t.events[t.places[e]-1]), nil
	}
	return event.Event{}, journal.ErrNotFound
}

// Read implements journal.Journal.
func (j *Journal) Read(ctx context.Context, q journal.Query) ([]event.Event, error) {
	q, err := q.Check()
	if err != nil {
		return nil, err
	}
	j.mu.RLock()
	defer j.mu.RUnlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	found := []event.Event{}
	t := j.workspaces[q.Workspace]
	if t == nil {
		return found, nil
	}
	n := len(t.events)
	for i := range n {
		e := &t.events[i]
		if q.Last {
			e = &t.events[n-1-i]
		}
		if !q.Selects(e) {
			continue
		}
		found = append(found, event.Clone(*e))
		if len(found) == q.Limit {
			break
		}
	}
	if q.Last {
		slices.Reverse(found)
	}
	return found, nil
}

// Used implements journal.Journal.
func (j *Journal) Used(ctx context.Context, ws id.Workspace, key string) (journal.Use, bool, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if err := ctx.Err(); err != nil {
		return journal.Use{}, false, err
	}
	return ledger{j}.Used(ws, key)
}

// Head implements journal.Journal.
func (j *Journal) Head(ctx context.Context, ws id.Workspace) (uint64, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return ledger{j}.Head(ws)
}

// Wait implements journal.Journal.
func (j *Journal) Wait(ctx context.Context, ws id.Workspace, after uint64) error {
	for {
		j.mu.Lock()
		if j.closed {
			j.mu.Unlock()
			return journal.ErrClosed
		}
		t := j.workspaces[ws]
		if t == nil {
			t = newTenant()
			j.workspaces[ws] = t
		}
		head, grown := uint64(len(t.events)), t.grown
		j.mu.Unlock()
		if head > after {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Streams implements journal.Journal.
func (j *Journal) Streams(ctx context.Context, ws id.Workspace) ([]event.StreamVersion, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	streams := []event.StreamVersion{}
	if t := j.workspaces[ws]; t != nil {
		for s, tip := range t.tips {
			streams = append(streams, event.StreamVersion{Stream: s, Version: tip.Seq, Hash: tip.Hash})
		}
	}
	slices.SortFunc(streams, func(a, b event.StreamVersion) int {
		return cmp.Or(strings.Compare(a.Stream.Type, b.Stream.Type), strings.Compare(a.Stream.ID, b.Stream.ID))
	})
	return streams, nil
}

// Workspaces implements journal.Journal.
func (j *Journal) Workspaces(ctx context.Context) ([]id.Workspace, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	found := []id.Workspace{}
	for _, ws := range slices.Sorted(maps.Keys(j.workspaces)) {
		if len(j.workspaces[ws].events) > 0 {
			found = append(found, ws)
		}
	}
	return found, nil
}

// ledger is the journal as a planner sees it; the journal's lock is held.
type ledger struct{ j *Journal }

func (l ledger) Head(ws id.Workspace) (uint64, error) {
	if t := l.j.workspaces[ws]; t != nil {
		return uint64(len(t.events)), nil
	}
	return 0, nil
}

func (l ledger) Tip(ws id.Workspace, s event.Stream) (journal.Tip, error) {
	if t := l.j.workspaces[ws]; t != nil {
		return t.tips[s], nil
	}
	return journal.Tip{}, nil
}

func (l ledger) Used(ws id.Workspace, key string) (journal.Use, bool, error) {
	if t := l.j.workspaces[ws]; t != nil {
		use, ok := t.uses[key]
		return use, ok, nil
	}
	return journal.Use{}, false, nil
}

func (l ledger) Taken(ws id.Workspace, key string) (bool, error) {
	t := l.j.workspaces[ws]
	return t != nil && t.taken[key], nil
}

func (l ledger) Holds(e id.Event) (bool, error) { return l.j.ids[e], nil }

func (l ledger) Cause(ws id.Workspace, of event.Subject) (event.Cause, error) {
	ref, ok := l.j.set.LeadingRef(ws, of)
	t := l.j.workspaces[ws]
	if !ok || t == nil {
		return event.Cause{}, nil
	}
	d, ok := t.documents[ref.Name][ref.Key]
	if !ok {
		return event.Cause{}, nil
	}
	def, err := l.j.set.Lookup(ref.Name)
	if err != nil {
		return event.Cause{}, err
	}
	state, err := def.Restore(ref.Key, d.Body, d.Version, d.Seq)
	return state.Cause(), err
}

// Folded implements journal.Ledger.
func (l ledger) Folded(ws id.Workspace, name, key string) (uint64, error) {
	if _, err := l.j.set.Lookup(name); err != nil {
		return 0, err
	}
	if t := l.j.workspaces[ws]; t != nil {
		return t.documents[name][key].Version, nil
	}
	return 0, nil
}

func cloneAll(events []event.Event) []event.Event {
	copied := make([]event.Event, len(events))
	for i, e := range events {
		copied[i] = event.Clone(e)
	}
	return copied
}
