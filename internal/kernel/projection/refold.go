package projection

import (
	"context"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// mergedAtOnce is how many events are sorted in memory. If there are more, the whole log is read, which is sorted.
const mergedAtOnce = 50_000

// Trace selects the events of a workspace that have something in common: their place, their run or their entity. The zero value selects
// all.
type Trace struct {
	Seq        uint64
	Run        id.Run
	EntityType string
	EntityID   string
}

// Refolding folds again, without the data of some events, the documents that these events had touched. A store calls Look while the data
// can be read, destroys the data, calls Fold, and writes what Documents returns.
type Refolding struct {
	Set  *Set
	Seqs []uint64 // the events whose data is destroyed
	// Read returns events of the workspace in the order of the log, from a place on: Limit of them, or fewer at the end.
	Read  func(ctx context.Context, t Trace, from uint64) ([]event.Event, error)
	Limit int
	// Versions returns the versions of stored documents; one that is not stored has version 0.
	Versions func(ctx context.Context, refs []Ref) (map[Ref]uint64, error)

	touched map[Ref]int // how many of the events touch the document
	still   map[Ref]int // how many of them touch it without their data
	traces  []Trace     // that select every event which touched one of the documents, as a rule
	states  map[Ref]State
}

// Look finds the documents that the events touch. An event and the others that touched the same document have their run or their entity in
// common, as a rule; Fold finds out where they have not. Look reports unknown where the data of an event cannot be read any more, after a
// crash: then the events may have touched other documents too.
func (r *Refolding) Look(ctx context.Context) (unknown bool, err error) {
	r.touched, r.traces = map[Ref]int{}, nil
	asked := map[Trace]bool{}
	ask := func(t Trace) {
		if !asked[t] {
			asked[t] = true
			r.traces = append(r.traces, t)
		}
	}
	err = r.each(ctx, func(e event.Event, refs []Ref) {
		unknown = unknown || e.Withheld != ""
		for _, ref := range refs {
			r.touched[ref]++
			if ref.Key == string(e.ID) {
				ask(Trace{Seq: e.Seq})
				continue
			}
			if e.Run != "" && ref.Key != e.EntityID {
				ask(Trace{Run: e.Run})
			}
			if e.EntityID != "" && ref.Key != string(e.Run) {
				ask(Trace{EntityType: e.EntityType, EntityID: e.EntityID})
			}
		}
	})
	return unknown, err
}

// each calls f for each of the events whose data is destroyed, with the documents that it touches now.
func (r *Refolding) each(ctx context.Context, f func(event.Event, []Ref)) error {
	for _, seq := range r.Seqs {
		found, err := r.Read(ctx, Trace{Seq: seq}, seq)
		if err != nil {
			return err
		}
		for _, e := range found {
			refs, err := r.Set.Touched(e)
			if err != nil {
				return err
			}
			f(e, refs)
		}
	}
	return nil
}

// Empty reports whether the events touch no document.
func (r *Refolding) Empty() bool { return len(r.touched) == 0 }

// Fold folds the documents that Look found from the rest of the log.
func (r *Refolding) Fold(ctx context.Context) error {
	if r.Empty() {
		return nil
	}
	r.still = map[Ref]int{}
	if err := r.each(ctx, func(_ event.Event, refs []Ref) {
		for _, ref := range refs {
			r.still[ref]++
		}
	}); err != nil {
		return err
	}
	complete, err := r.through(ctx, r.traces)
	if err != nil || complete {
		return err
	}
	// A document has been touched by events that nothing ties to those which are redacted: the whole log tells them.
	_, err = r.through(ctx, []Trace{{}})
	return err
}

// through folds what the traces select, in the order of the log, each event once. It reports whether every document was folded from as many
// events as before, without those that no longer touch it.
func (r *Refolding) through(ctx context.Context, traces []Trace) (complete bool, err error) {
	var events []event.Event
	seen := map[uint64]bool{}
	r.states = map[Ref]State{}
	for _, t := range traces {
		for from, more := max(t.Seq, 1), true; more; {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			found, err := r.Read(ctx, t, from)
			if err != nil {
				return false, err
			}
			for i := range found {
				from = found[i].Seq + 1
				if !seen[found[i].Seq] {
					seen[found[i].Seq] = true
					events = append(events, found[i])
				}
			}
			if len(traces) == 1 { // then they come in order, and need not be kept
				if err := r.fold(events); err != nil {
					return false, err
				}
				events = events[:0]
				clear(seen)
			}
			if len(events) > mergedAtOnce {
				return false, nil
			}
			more = t.Seq == 0 && len(found) >= r.Limit
		}
	}
	slices.SortFunc(events, func(a, b event.Event) int { return int(int64(a.Seq) - int64(b.Seq)) })
	if err := r.fold(events); err != nil {
		return false, err
	}
	return r.complete(ctx)
}

func (r *Refolding) complete(ctx context.Context) (bool, error) {
	versions, err := r.Versions(ctx, r.refs())
	if err != nil {
		return false, err
	}
	for ref, had := range r.touched {
		if r.states[ref].Version+uint64(had-r.still[ref]) != versions[ref] {
			return false, nil
		}
	}
	return true, nil
}

// refs returns the documents that are folded again.
func (r *Refolding) refs() []Ref {
	refs := make([]Ref, 0, len(r.touched))
	for ref := range r.touched {
		refs = append(refs, ref)
	}
	return refs
}

func (r *Refolding) fold(events []event.Event) error {
	for i := range events {
		refs, err := r.Set.Touched(events[i])
		if err != nil {
			return err
		}
		refs = slices.DeleteFunc(refs, func(ref Ref) bool { return r.touched[ref] == 0 })
		if err := FoldInto(refs, events[i], r.state, func(ref Ref, s State) { r.states[ref] = s }); err != nil {
			return err
		}
	}
	return nil
}

// state returns the folded state of a document so far; the empty document at first.
func (r *Refolding) state(ref Ref) (State, error) {
	if state, begun := r.states[ref]; begun {
		return state, nil
	}
	def, err := r.Set.Lookup(ref.Name)
	if err != nil {
		return State{}, err
	}
	return def.Restore(ref.Key, nil, 0, 0)
}

// Documents calls f with each document that was folded again. Gone is true for one that no event makes any more.
func (r *Refolding) Documents(f func(ref Ref, state State, gone bool) error) error {
	for ref := range r.touched {
		state, folded := r.states[ref]
		if err := f(ref, state, !folded); err != nil {
			return err
		}
	}
	return nil
}
