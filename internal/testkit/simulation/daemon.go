package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing/synctest"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/spaces"
)

// daemon is one of the daemons that live one after the other.
type daemon struct {
	s      *simulation
	wire   *wire
	gate   *gate.Gate
	people *identity.Service
	spaces *spaces.Service
	runs   *runs.Service
	owner  event.Origin

	living context.Context // ends when its process does
	end    context.CancelFunc
	ctx    context.Context // ends when the daemon must stop
	stop   context.CancelFunc
	calls  sync.WaitGroup // of clients
	parts  sync.WaitGroup // the service of runs
}

// open starts a daemon that dies after so many appends, or never if left is negative. An error means that it died over its start.
func (s *simulation) open(left int, how death) (*daemon, error) {
	s.count(func(h *History) { h.Daemons++ })
	d := &daemon{s: s, wire: s.newWire(left, how)}
	d.living, d.end = context.WithCancel(context.Background())
	d.ctx, d.stop = context.WithCancel(d.living)
	name := fmt.Sprint("daemon ", s.history.Daemons)
	s.note("%s begins", name)
	ids := id.NewSource(s.clock.Now, source(s.seed, name+" ids"))
	logger := slog.New(slog.DiscardHandler)
	light, heavy := &host{s.world, d.living, space.Nano}, &host{s.world, d.living, "namespace"}
	var err error
	d.gate, err = gate.New(gate.Parts{
		Log: view{d.wire, "gate"}, Docs: s.log, Evaluator: cedar.New(), Clock: s.clock, IDs: ids, System: principal.System,
	})
	if err == nil {
		err = d.gate.Warm() // now, and not while several wait for the first decision: the machine must not decide which one is first
	}
	if err != nil {
		return d, err
	}
	d.people = identity.New(identity.Parts{
		Log: view{d.wire, "people"}, Docs: s.log, Gate: d.gate, Clock: s.clock, IDs: ids, Entropy: source(s.seed, name),
	})
	d.spaces = spaces.New(spaces.Parts{
		Log: view{d.wire, "spaces"}, Docs: s.log, Gate: d.gate, Library: d.gate.Bundles, Store: &hostFiles{heavy},
		Tiers: []space.Tier{light, heavy}, Place: place, Clock: s.clock, IDs: ids,
		Logger: logger, MaxSpaces: 20, MaxLimits: space.DefaultLimits(), System: principal.System,
	})
	d.runs = runs.New(runs.Parts{
		Log: view{d.wire, "runs"}, Docs: s.log, Blobs: store{s.blobs, s}, Live: output{s.live, s}, Gate: d.gate, Thrown: d.gate.KillSwitch.Last,
		Agents: d.people,
		Spaces: d.spaces.Living, Routes: d.spaces.Routing, Bundles: d.gate.Bundles,
		Clock: s.clock, IDs: ids, Logger: logger,
	})
	d.gate.KillSwitch.OnLift(d.runs.Lifted)
	d.spaces.SetOccupants(d.runs)
	d.gate.KillSwitch.OnHalt(d.runs.Halt)
	owner, err := d.people.Owner(d.ctx, WS, "owner")
	if err != nil {
		return d, err
	}
	d.owner = event.Origin{Principal: owner}
	if err := d.spaces.Recover(d.ctx); err != nil {
		return d, err
	}
	d.parts.Go(func() {
		if err := d.runs.Run(d.ctx); err != nil && !d.wire.gone() {
			s.wrong("the service of runs ended with %v", err)
		}
	})
	d.parts.Go(func() { d.tick() })
	return d, nil
}

// tick ends what has expired, as the daemon's own loop does.
func (d *daemon) tick() {
	for {
		t := time.NewTimer(time.Second + d.s.moment("a step", time.Millisecond))
		select {
		case <-t.C:
		case <-d.ctx.Done():
			t.Stop()
			return
		}
		now := d.s.clock.Now()
		for _, err := range []error{d.spaces.Ending.Step(d.ctx, now), d.gate.Approvals.Step(d.ctx, now)} {
			if err != nil && d.ctx.Err() == nil && !d.wire.gone() {
				d.s.note("a step failed: %v", err)
			}
		}
	}
}

// close ends the daemon: its work, then its processes. Every caller has its answer when close returns.
func (d *daemon) close() {
	d.stop()
	d.parts.Wait()
	d.calls.Wait()
	if d.spaces != nil {
		if err := d.spaces.Living.Close(); err != nil {
			d.s.wrong("close the spaces: %v", err)
		}
	}
	d.end()
}

// lives lets daemons live and die until the history comes to its end, then lets the last one go on. It returns when that is over too.
func (s *simulation) lives(chance *rand.Rand, lives int, over <-chan struct{}) {
	for n := 1; ; n++ {
		left, how := -1, recorded
		last := n > lives
		if !last && chance.IntN(3) > 0 {
			left, how = 1+chance.IntN(60), death(chance.IntN(int(deaths)))
		}
		if last {
			s.calm()
		} else if chance.IntN(5) == 0 {
			off := time.Duration(chance.Int64N(int64(4*time.Hour))) - 2*time.Hour
			s.note("somebody sets the clock to be wrong by %s", off)
			s.clock.set(off)
		}
		d, err := s.open(left, how)
		if err != nil && !d.wire.gone() {
			s.wrong("daemon %d does not start: %v", n, err)
		}
		if err == nil {
			synctest.Wait() // work that the daemon starts by itself comes before requests
			s.set(d)
			d.live(chance, last, over)
			s.set(nil)
		}
		if d.wire.gone() {
			if chance.IntN(2) == 0 {
				rest(chance, 40*time.Millisecond) // nothing of it reaches the log any more, but it does not know
			}
			d.end()
		}
		d.close()
		crashed := d.wire.gone() // it may have died over its end
		d.wire.die()
		s.ended(crashed)
		if last || err != nil && !crashed {
			return
		}
		rest(chance, 100*time.Millisecond)
	}
}

// live returns when the daemon's time has come: it is dead, or told to stop, or everything is over.
func (d *daemon) live(chance *rand.Rand, last bool, over <-chan struct{}) {
	if last {
		<-over
		return
	}
	t := time.NewTimer(time.Duration(chance.Int64N(int64(600 * time.Millisecond))))
	defer t.Stop()
	select {
	case <-d.wire.alive.Done():
	case <-over:
	case <-t.C:
		if chance.IntN(2) == 0 {
			d.s.note("the daemon is told to stop")
			return
		}
		d.s.note("the daemon is killed")
		d.wire.die()
	}
}

// calm ends all faults.
func (s *simulation) calm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chaos = false
}

// set says who lives.
func (s *simulation) set(d *daemon) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = d
	close(s.changed)
	s.changed = make(chan struct{})
}

// call calls the daemon that lives; while there is none it waits. Those who have waited do not call at the same moment: each draws from its
// own source.
func (s *simulation) call(chance *rand.Rand, do func(ctx context.Context, d *daemon) error) error {
	for {
		s.mu.Lock()
		d, changed := s.now, s.changed
		if d != nil {
			d.calls.Add(1)
		}
		s.mu.Unlock()
		if d == nil {
			<-changed
			rest(chance, wakeTime)
			continue
		}
		defer d.calls.Done()
		return do(d.ctx, d)
	}
}
