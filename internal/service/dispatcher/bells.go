package dispatcher

import (
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

// How long who waits for a run goes without looking for one: he is told of what this daemon makes claimable, but not of claims that expire, nor
// of what other daemons record.
const (
	lookAgain         = 2 * time.Second
	lookAgainTogether = time.Second
)

// Await is Claim that waits for a run until ctx ends, and then returns errand.ErrNothing. Who came first is served first, with what he wants.
func (d *Dispatcher) Await(ctx context.Context, origin event.Origin, ws id.Workspace, want Wanted) (run.Run, string, error) {
	record := context.WithoutCancel(ctx) // who has gone away finds the run with his idempotency key
	again := lookAgain
	if d.Together {
		again = lookAgainTogether
	}
	b, waited := d.bells.hang(ws, want), false
	for {
		doc, token, err := d.Claim(record, origin, ws, want)
		if !errors.Is(err, errand.ErrNothing) {
			if d.bells.takeDown(b); waited {
				d.bells.again(ws) // there may be more
			}
			return doc, token, err
		}
		waited = true
		late, stop := d.Clock.NewTimer(again)
		select {
		case o := <-b.rung:
			stop()
			if o.run.ID != "" {
				if doc, token, err = d.accept(record, origin, want, o.run); !errors.Is(err, errand.ErrNothing) {
					return doc, token, err
				}
				d.bells.pass(o)
			}
			b = d.bells.hang(ws, want)
		case <-late:
		case <-ctx.Done():
			stop()
			d.bells.takeDown(b)
			return run.Run{}, "", errand.ErrNothing
		}
	}
}

// Listen returns where it is told, once, that a run of some workspace has become claimable that is of that kind of work, or may have; as far as this
// daemon knows, and from now on. Who listens no more says so.
func (d *Dispatcher) Listen(work string) (heard <-chan Offer, stop func()) {
	b := d.bells.hang("", Wanted{Work: work})
	return b.rung, func() { d.bells.takeDown(b) }
}

// accept claims a run that has just become claimable, if who waits for one wants it.
func (d *Dispatcher) accept(ctx context.Context, origin event.Origin, want Wanted, doc run.Run) (run.Run, string, error) {
	if want.Fits != nil {
		if fits, err := want.Fits(ctx, doc); err != nil || !fits {
			return run.Run{}, "", errors.Join(err, errand.ErrNothing)
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
	hung   map[id.Workspace][]*bell
	places map[id.Workspace]*places
}

// bell is one who waits. It hangs in a workspace, "" for all, until it is rung or taken down.
type bell struct {
	ws   id.Workspace
	room id.Room
	work string
	rung chan Offer // takes one
}

// Offer is what somebody is woken for: a run that has become claimable, or a workspace where it is worth to look again.
type Offer struct {
	workspace id.Workspace
	run       run.Run // one without an ID for none
	passed    int     // by so many who did not want it
}

func (b *bell) hears(doc run.Run) bool {
	return (b.room == "" || b.room == doc.Room) && (b.work == "" || b.work == doc.Work)
}

// hang is called before the first look, so that nothing can become claimable between the look and the wait.
func (s *bells) hang(ws id.Workspace, want Wanted) *bell {
	b := &bell{ws: ws, room: want.Room, work: want.Work, rung: make(chan Offer, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hung == nil {
		s.hung = map[id.Workspace][]*bell{}
	}
	s.hung[ws] = append(s.hung[ws], b)
	return b
}

// takeDown is called by who waits no more. Where he was rung meanwhile the next one is.
func (s *bells) takeDown(b *bell) {
	s.mu.Lock()
	s.remove(b)
	s.mu.Unlock()
	select {
	case o := <-b.rung:
		if o.run.ID != "" {
			s.ring(o)
		} else {
			s.again(o.workspace)
		}
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

// offer wakes the first who wants a run that has become claimable.
func (s *bells) offer(doc run.Run) { s.ring(Offer{workspace: doc.Workspace, run: doc}) }

// pass wakes the next one, unless as many have passed a run on as wait.
func (s *bells) pass(o Offer) {
	o.passed++
	s.mu.Lock()
	waiting := len(s.hung[o.workspace]) + len(s.hung[""])
	s.mu.Unlock()
	if o.passed <= waiting {
		s.ring(o)
	}
}

func (s *bells) ring(o Offer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ws := range []id.Workspace{o.workspace, ""} {
		at := slices.IndexFunc(s.hung[ws], func(b *bell) bool { return b.hears(o.run) })
		if at >= 0 {
			b := s.hung[ws][at]
			s.remove(b)
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

func (s *bells) at(ws id.Workspace) *places {
	if s.places == nil {
		s.places = map[id.Workspace]*places{}
	}
	if s.places[ws] == nil {
		s.places[ws] = &places{}
	}
	return s.places[ws]
}

// freed is how often a place for a run became free in a workspace.
func (s *bells) freed(ws id.Workspace) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at(ws).freed
}

// isFull notes that runs of a workspace wait for a place. Where one became free since freed was asked, before it was looked, those who wait look
// again.
func (s *bells) isFull(ws id.Workspace, freed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.at(ws); at.freed == freed {
		at.none = true
		return
	}
	s.wake(ws)
}

// hasRoom is told that fewer run in a workspace than before: where runs wait for that, those who wait for runs look again.
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
	type kind struct {
		room id.Room
		work string
	}
	told := map[kind]bool{}
	for _, of := range []id.Workspace{ws, ""} {
		for _, b := range slices.Clone(s.hung[of]) {
			if k := (kind{b.room, b.work}); !told[k] {
				told[k] = true
				s.remove(b)
				b.rung <- Offer{workspace: ws}
			}
		}
	}
}
