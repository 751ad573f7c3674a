package engines

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
)

// The intervals after which a waiting engine looks for a run without being woken. This daemon wakes it for runs that it makes claimable
// itself, but not for expired claims, nor for what other daemons record.
const (
	lookAgain         = 2 * time.Second
	lookAgainTogether = time.Second
)

// Await is Claim that waits for a run until ctx ends, and then returns errand.ErrNothing. It serves waiting callers in the order of
// arrival, each with a run that fits their request.
func (d *Service) Await(ctx context.Context, origin event.Origin, ws id.Workspace, want Wanted) (run.Run, string, error) {
	record := context.WithoutCancel(ctx) // a caller who has gone away finds the run again with their idempotency key
	again := lookAgain
	if d.Together {
		again = lookAgainTogether
	}
	barred := false // there was a run that the caller may not have
	want = want.noting(&barred)
	b, heard := d.bells.hang(ws, want), Offer{}
	for waited := false; ; waited = true {
		barred = false
		doc, token, err := d.Claim(record, origin, ws, want)
		if !errors.Is(err, errand.ErrNothing) {
			if d.bells.takeDown(b); waited {
				d.bells.again(ws) // there may be more
			}
			return doc, token, err
		}
		if barred {
			d.bells.pass(heard)
		}
		heard = Offer{}
		late, stop := d.Clock.NewTimer(again)
		select {
		case heard = <-b.rung:
			stop()
			if ctx.Err() != nil {
				d.bells.pass(heard)
				return run.Run{}, "", errand.ErrNothing
			}
			if heard.run.ID != "" {
				if doc, token, err = d.accept(record, origin, want, heard.run); err == nil {
					return doc, token, nil
				}
				d.bells.pass(heard)
				if heard = (Offer{}); !errors.Is(err, errand.ErrNothing) {
					return doc, token, err
				}
			}
			d.bells.rehang(b)
		case <-late:
		case <-ctx.Done():
			stop()
		}
		if ctx.Err() != nil {
			d.bells.takeDown(b)
			d.bells.pass(heard)
			return run.Run{}, "", errand.ErrNothing
		}
	}
}

// noting returns the wishes with a note: it sets barred when a run exists that this caller may not have.
func (w Wanted) noting(barred *bool) Wanted {
	if shows := w.Shows; shows != nil {
		w.Shows = func(r id.Run) (bool, error) {
			may, err := shows(r)
			*barred = *barred || !may
			return may, err
		}
	}
	if fits := w.Fits; fits != nil {
		w.Fits = func(ctx context.Context, doc run.Run) (bool, error) {
			can, err := fits(ctx, doc)
			*barred = *barred || !can
			return can, err
		}
	}
	return w
}

// Listen returns a channel that gets one message when a run of this kind of work may have become claimable, in any workspace. It covers
// only events that this daemon knows, from now on. The caller calls stop when it stops listening.
func (d *Service) Listen(work string) (heard <-chan Offer, stop func()) {
	b := d.bells.hang("", Wanted{Work: work})
	return b.rung, func() { d.bells.takeDown(b) }
}

// accept claims a run that has just become claimable, if it fits what the waiting caller wants.
func (d *Service) accept(ctx context.Context, origin event.Origin, want Wanted, doc run.Run) (run.Run, string, error) {
	if want.Fits != nil {
		if fits, err := want.Fits(ctx, doc); err != nil || !fits {
			return run.Run{}, "", either(err, errand.ErrNothing)
		}
	}
	doc, token, err := d.reach(ctx, origin, want, doc)
	if errors.Is(err, errTaken) {
		err = errand.ErrNothing
	}
	return doc, token, err
}

// bells wake those who wait for runs. The zero value is ready.
type bells struct {
	mu     sync.Mutex // guards all below
	came   uint64     // how many have begun to wait
	hung   map[id.Workspace][]*bell
	places map[id.Workspace]*places
}

// bell is one waiting caller. It hangs in a workspace ("" for all), in the order of arrival, until it is rung or taken down.
type bell struct {
	kind
	ws     id.Workspace
	number uint64
	rung   chan Offer // takes one
}

// kind is the kind of work that a caller waits for.
type kind struct {
	room id.Room
	work string
}

// Offer is the reason to wake a waiting caller: a run that has become claimable, or a workspace that is worth another look. It goes from
// one caller to the next: first those that wait in the workspace, then those that wait in all.
type Offer struct {
	workspace id.Workspace
	run       run.Run // one without an ID for none
	kind      kind    // for which it is worth to look, where there is no run
	outside   bool    // it was offered to all who hang in the workspace
	number    uint64  // and up to this one
}

func (b *bell) hears(o Offer) bool {
	if o.run.ID == "" {
		return b.kind == o.kind
	}
	return (b.room == "" || b.room == o.run.Room) && (b.work == "" || b.work == o.run.Work)
}

// hang is called before the first look, so that nothing can become claimable between the look and the wait.
func (s *bells) hang(ws id.Workspace, want Wanted) *bell {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.came++
	b := &bell{kind: kind{want.Room, want.Work}, ws: ws, number: s.came, rung: make(chan Offer, 1)}
	s.put(b)
	return b
}

// rehang hangs a bell that was rung, and emptied, where it hung.
func (s *bells) rehang(b *bell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(b)
}

// put hangs a bell in its turn. The lock is held.
func (s *bells) put(b *bell) {
	if s.hung == nil {
		s.hung = map[id.Workspace][]*bell{}
	}
	at, _ := slices.BinarySearchFunc(s.hung[b.ws], b.number, func(other *bell, number uint64) int { return cmp.Compare(other.number, number) })
	s.hung[b.ws] = slices.Insert(s.hung[b.ws], at, b)
}

// takeDown removes the bell of a caller that has stopped waiting. If the bell was rung meanwhile, takeDown rings the next one.
func (s *bells) takeDown(b *bell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(b)
	select {
	case o := <-b.rung:
		s.ring(o)
	default:
	}
}

// remove takes a bell off its hook. The lock is held.
func (s *bells) remove(b *bell) {
	at := slices.Index(s.hung[b.ws], b)
	if at < 0 {
		return
	}
	if s.hung[b.ws] = slices.Delete(s.hung[b.ws], at, at+1); len(s.hung[b.ws]) == 0 {
		delete(s.hung, b.ws)
	}
}

// offer wakes the first caller that wants a run which has become claimable.
func (s *bells) offer(doc run.Run) { s.pass(Offer{workspace: doc.Workspace, run: doc}) }

// pass wakes the next caller. A caller that hangs a bell before that looks for a run itself.
func (s *bells) pass(o Offer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring(o)
}

// ring is pass, with the lock held.
func (s *bells) ring(o Offer) {
	if o.workspace == "" {
		return
	}
	for _, outside := range []bool{false, true} {
		ws, after := o.workspace, uint64(0)
		if outside {
			ws = ""
		}
		switch {
		case outside == o.outside:
			after = o.number
		case o.outside:
			continue
		}
		at := slices.IndexFunc(s.hung[ws], func(b *bell) bool { return b.number > after && b.hears(o) })
		if at >= 0 {
			b := s.hung[ws][at]
			s.remove(b)
			o.outside, o.number = outside, b.number
			b.rung <- o
			return
		}
	}
}

// places are the places for runs of a workspace.
type places struct {
	freed uint64 // how often one became free
	none  bool   // somebody has found that there is none, and none became free since
}

// mostPlaces is how many workspaces are remembered. Callers that wait in other workspaces look again after an interval.
const mostPlaces = 10_000

func (s *bells) at(ws id.Workspace) *places {
	if s.places[ws] == nil {
		if s.places == nil || len(s.places) >= mostPlaces {
			s.places = map[id.Workspace]*places{}
		}
		s.places[ws] = &places{}
	}
	return s.places[ws]
}

// freed returns how often a place for a run became free in a workspace.
func (s *bells) freed(ws id.Workspace) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.places[ws]; at != nil {
		return at.freed
	}
	return 0
}

// isFull notes that runs of a workspace wait for a place. If a place became free since freed was read, the waiting callers look again.
func (s *bells) isFull(ws id.Workspace, freed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.at(ws); at.freed == freed {
		at.none = true
		return
	}
	s.wake(ws)
}

// hasRoom is called when fewer runs than before are under way in a workspace. If runs wait for a place, the waiting callers look again.
func (s *bells) hasRoom(ws id.Workspace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.at(ws)
	at.freed++
	if at.none {
		at.none = false
		s.wake(ws)
	}
}

// again lets one of each kind of those who wait look again.
func (s *bells) again(ws id.Workspace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake(ws)
}

// wake is again, with the lock held.
func (s *bells) wake(ws id.Workspace) {
	told := map[kind]bool{}
	for _, of := range []id.Workspace{ws, ""} {
		for _, b := range slices.Clone(s.hung[of]) {
			if !told[b.kind] {
				told[b.kind] = true
				s.ring(Offer{workspace: ws, kind: b.kind})
			}
		}
	}
}
