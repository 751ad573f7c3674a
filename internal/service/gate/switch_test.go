package gate_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gate/authority"
	"agentbox/internal/service/gate/killswitch"
)

// ticking is the clock of a bubble, which counts the timers that nobody has released.
type ticking struct{ open atomic.Int64 }

func (*ticking) Now() time.Time { return time.Now() }

func (c *ticking) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	c.open.Add(1)
	return t.C, func() { c.open.Add(-1); t.Stop() }
}

// watched is a log with its documents that counts what it is asked. The next reads of a document fail, as many as broken says, and while
// full nothing is recorded.
type watched struct {
	journal.Journal
	docs                projection.Reader
	looks, heads, reads atomic.Int64
	broken              atomic.Int64
	full                atomic.Bool
	meanwhile           func() // happens once, after a document was read and before it is returned
	of                  string // of which projection that document has to be; "" for any
	recorded            func() // happens once, after something was recorded and before that is told
}

func (w *watched) Append(ctx context.Context, b event.Batch) (event.Receipt, error) {
	if w.full.Load() {
		return event.Receipt{}, errFrail
	}
	receipt, err := w.Journal.Append(ctx, b)
	if do := w.recorded; do != nil {
		w.recorded = nil
		do()
	}
	return receipt, err
}

func (w *watched) Workspaces(ctx context.Context) ([]id.Workspace, error) {
	if w.looks.Add(1) > 1000 {
		panic("it looks for workspaces without a pause")
	}
	return w.Journal.Workspaces(ctx)
}

func (w *watched) Head(ctx context.Context, ws id.Workspace) (uint64, error) {
	w.heads.Add(1)
	return w.Journal.Head(ctx, ws)
}

func (w *watched) Document(ctx context.Context, ws id.Workspace, name, key string) (projection.Document, error) {
	w.reads.Add(1)
	if w.broken.Load() > 0 {
		w.broken.Add(-1)
		return projection.Document{}, errUnreadable
	}
	doc, err := w.docs.Document(ctx, ws, name, key)
	if do := w.meanwhile; do != nil && (w.of == "" || w.of == name) {
		w.meanwhile = nil
		do()
	}
	return doc, err
}

func (w *watched) Documents(ctx context.Context, q projection.Query) ([]projection.Document, error) {
	return w.docs.Documents(ctx, q)
}

// everybody is a workspace in which each principal is its owner.
type everybody struct{}

func (everybody) Who(_ context.Context, _ id.Workspace, p id.Principal) (principal.Principal, error) {
	return principal.Principal{ID: p, Kind: id.User, Role: principal.Overlord}, nil
}

// twoSwitches are the kill switches of two daemons of one log: one that is told, and another one that throws and lifts.
type twoSwitches struct {
	t      *testing.T
	log    *watched
	clock  *ticking
	told   *killswitch.Service
	other  *killswitch.Service
	halts  []error
	lifts  int
	origin event.Origin
}

func newTwoSwitches(t *testing.T, together bool) *twoSwitches {
	t.Helper()
	c := &ticking{}
	entropy := &chance{}
	ids := id.NewSource(c.Now, entropy)
	log, err := memory.NewJournal(gate.Definitions(), c, ids, entropy)
	if err != nil {
		t.Fatal(err)
	}
	owner := id.NewPrincipal(ids, id.User)
	two := &twoSwitches{t: t, log: &watched{Journal: log, docs: log}, clock: c,
		origin: event.Origin{Principal: owner, Correlation: "cor_test"}}
	draft := event.New("test.said", two.origin, ws, "", struct{}{})
	if _, err := log.Append(t.Context(), event.Batch{Workspace: ws, Drafts: []event.Draft{draft}}); err != nil {
		t.Fatal(err)
	}
	two.told = killswitch.New(killswitch.Parts{Log: two.log, Docs: two.log, Clock: c, IDs: ids, Who: everybody{}, Together: together})
	two.other = killswitch.New(killswitch.Parts{Log: log, Docs: log, Clock: c, IDs: ids, Who: everybody{}, Together: true})
	return two
}

// counts makes the daemon that is told count what it is told.
func (s *twoSwitches) counts() {
	s.told.OnHalt(func(_ id.Workspace, cause error) { s.halts = append(s.halts, cause) })
	s.told.OnLift(func(id.Workspace) { s.lifts++ })
}

// follow follows the log until stop is called, which returns when nothing follows it any more.
func (s *twoSwitches) follow() (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	over := make(chan error, 1)
	go func() { over <- s.told.Follow(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-over; err != nil {
			s.t.Error(err)
		}
	}
}

// does throws the switch elsewhere, or lifts it, and waits until everybody who is to be told of it was.
func (s *twoSwitches) does(on bool) {
	s.t.Helper()
	do := s.other.Lift
	if on {
		do = s.other.Throw
	}
	if doc, err := do(s.t.Context(), s.origin, ws, ""); err != nil || doc.On != on {
		s.t.Fatalf("got %+v, %v, want it thrown: %t", doc, err, on)
	}
	synctest.Wait()
}

func (s *twoSwitches) wants(when string, halts, lifts int) {
	s.t.Helper()
	if len(s.halts) != halts || s.lifts != lifts {
		s.t.Errorf("%s: %d times halted and %d times lifted, want %d and %d", when, len(s.halts), s.lifts, halts, lifts)
	}
}

// A daemon is told at once of what another one does, once for each change. Where it could not read of it, it asks again a second later,
// and until then nothing is taken for lifted.
func TestADaemonFollowsTheSwitchesOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTwoSwitches(t, true)
		s.counts()
		stop := s.follow()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		s.wants("nobody has thrown it", 0, 0)
		if looks, heads := s.log.looks.Load(), s.log.heads.Load(); looks != 11 || heads != 2 {
			t.Errorf("it looked %d times for workspaces and %d times for the head, want 11 and 2", looks, heads)
		}
		s.does(true)
		s.wants("thrown", 1, 0)
		thrown, err := s.log.Read(t.Context(), journal.Query{Workspace: ws, Types: []string{policy.KillSwitchThrownType}, Limit: 2})
		if err != nil || len(thrown) != 1 {
			t.Fatalf("the log has %d throws, %v", len(thrown), err)
		}
		cause := s.halts[0]
		if by, ok := errors.AsType[policy.Halt](cause); !ok || by.Event() != thrown[0].ID || !errors.Is(cause, killswitch.ErrThrown) ||
			cause.Error() != killswitch.ErrThrown.Error() {
			t.Errorf("halted by %v, want by the event %s", cause, thrown[0].ID)
		}
		s.does(true)
		s.wants("thrown twice", 1, 0)
		s.log.broken.Store(1)
		s.does(true)
		time.Sleep(2 * time.Second)
		s.wants("thrown a third time, which could not be read at once", 1, 0)
		s.does(false)
		s.wants("lifted", 1, 1)
		s.log.broken.Store(1)
		s.does(true)
		s.wants("thrown, which could not be read", 1, 1)
		time.Sleep(time.Second)
		synctest.Wait()
		s.wants("thrown, a second later", 2, 1)
		s.does(false)
		s.wants("lifted again", 2, 2)
		stop()
		if n := s.clock.open.Load(); n != 0 {
			t.Errorf("%d timers are left", n)
		}
	})
}

// A switch that was thrown before a daemon begins is learnt when it can be read.
func TestADaemonLearnsASwitchThatItCouldNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTwoSwitches(t, true)
		s.counts()
		s.does(true)
		s.log.broken.Store(2)
		stop := s.follow()
		s.wants("unreadable", 0, 0)
		time.Sleep(time.Second)
		synctest.Wait()
		s.wants("unreadable again", 0, 0)
		time.Sleep(time.Second)
		synctest.Wait()
		s.wants("readable", 1, 0)
		stop()
	})
}

// Following ends when all that it has begun to end has ended; and it needs nobody who wants to be told.
func TestFollowingEndsAfterWhatItHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTwoSwitches(t, true)
		ended := false
		s.told.OnHalt(func(id.Workspace, error) {
			time.Sleep(time.Minute)
			ended = true
		})
		stop := s.follow()
		s.does(true)
		stop()
		if !ended {
			t.Error("what was halted had not ended")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newTwoSwitches(t, true)
		stop := s.follow()
		for _, on := range []bool{true, false} {
			s.does(on)
			if got, err := s.told.On(t.Context(), ws); got != on || err != nil {
				t.Errorf("got %t, %v, want %t", got, err, on)
			}
		}
		stop()
	})
}

// A daemon that is alone asks the log once and its memory afterwards; one that has company asks the log each time, unless it knows that
// the switch is thrown.
func TestWhenTheLogIsAskedForASwitch(t *testing.T) {
	for together, want := range map[bool]int64{false: 1, true: 3} {
		s := newTwoSwitches(t, together)
		for range 3 {
			if on, err := s.told.On(t.Context(), ws); on || err != nil {
				t.Errorf("nobody has thrown it: got %t, %v", on, err)
			}
		}
		if n := s.log.reads.Load(); n != want {
			t.Errorf("together %t: the log was asked %d times, want %d", together, n, want)
		}
		if _, err := s.told.Throw(t.Context(), s.origin, ws, ""); err != nil {
			t.Fatal(err)
		}
		s.log.broken.Store(1)
		if on, err := s.told.On(t.Context(), ws); !on || err != nil {
			t.Errorf("together %t: thrown, over a log that cannot be read: got %t, %v", together, on, err)
		}
	}
}

// A kill switch that was thrown here and could not be recorded holds, whatever the log says.
func TestAThrowThatIsNotRecordedHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTwoSwitches(t, true)
		s.counts()
		stop := s.follow()
		s.log.full.Store(true)
		if doc, err := s.told.Throw(t.Context(), s.origin, ws, "why"); !errors.Is(err, errFrail) || !doc.On || doc.Workspace != ws ||
			doc.Reason != "why" || doc.By != s.origin.Principal {
			t.Errorf("got %+v, %v", doc, err)
		}
		s.wants("thrown here", 1, 0)
		s.does(true)
		s.does(false)
		s.wants("lifted elsewhere", 1, 0)
		if on, err := s.told.On(t.Context(), ws); !on || err != nil {
			t.Errorf("got %t, %v, want it to hold", on, err)
		}
		if doc, err := s.told.State(t.Context(), ws); !doc.On || err != nil {
			t.Errorf("got %+v, %v, want it to hold", doc, err)
		}
		if _, err := s.told.Lift(t.Context(), s.origin, ws, ""); !errors.Is(err, errFrail) {
			t.Errorf("lifted over a log that is full: got %v", err)
		}
		s.wants("not lifted", 1, 0)
		s.log.full.Store(false)
		if doc, err := s.told.Lift(t.Context(), s.origin, ws, ""); doc.On || err != nil {
			t.Errorf("lifted: got %+v, %v", doc, err)
		}
		s.wants("lifted here", 1, 1)
		s.does(true)
		s.does(false)
		s.wants("thrown and lifted elsewhere", 2, 2)
		stop()
	})
}

// A recorded kill switch that was thrown here is lifted when another daemon lifts it. An unrecorded throw counts apart from it, also where
// the earlier one was lifted while it was recorded.
func TestOnlyAThrowThatIsNotRecordedHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTwoSwitches(t, true)
		s.counts()
		stop := s.follow()
		throw := func(want error) {
			if _, err := s.told.Throw(t.Context(), s.origin, ws, ""); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			synctest.Wait()
		}
		throw(nil)
		s.does(false)
		s.wants("thrown here and lifted elsewhere", 1, 1)
		s.log.recorded = func() {
			if doc, err := s.told.Lift(t.Context(), s.origin, ws, ""); doc.On || err != nil {
				t.Errorf("lifted while the throw is recorded: got %+v, %v", doc, err)
			}
		}
		throw(nil)
		s.wants("lifted while it is recorded", 2, 2)
		s.log.full.Store(true)
		throw(errFrail)
		s.does(true)
		s.does(false)
		s.wants("not recorded", 3, 2)
		stop()
	})
}

// A switch that is thrown while the log is read is thrown, whatever was read; and one of which nothing can be read counts as thrown.
func TestASwitchThatIsThrownWhileTheLogIsRead(t *testing.T) {
	s := newTwoSwitches(t, true)
	s.log.full.Store(true)
	s.log.meanwhile = func() {
		if _, err := s.told.Throw(t.Context(), s.origin, ws, ""); !errors.Is(err, errFrail) {
			t.Errorf("got %v, want %v", err, errFrail)
		}
	}
	if on, err := s.told.On(t.Context(), ws); !on || err != nil {
		t.Errorf("got %t, %v, want it thrown", on, err)
	}
	s = newTwoSwitches(t, true)
	s.log.broken.Store(1)
	if on, err := s.told.On(t.Context(), ws); !on || !errors.Is(err, errUnreadable) {
		t.Errorf("unreadable: got %t, %v, want it thrown", on, err)
	}
}

// Only a person with the right lifts the kill switch, with a reason within its bounds; a switch that is off is not lifted. A throw that
// comes while the lift is recorded wins, and the log ends with it.
func TestLiftingTheKillSwitch(t *testing.T) {
	ctx := t.Context()
	h, log, other := rivals(t)
	lifts := 0
	h.KillSwitch.OnLift(func(id.Workspace) { lifts++ })
	reason := strings.Repeat("x", policy.MaxReasonBytes)
	if doc, err := h.KillSwitch.Lift(ctx, h.origin(h.owner), ws, ""); err != nil || doc.On || doc.Workspace != ws ||
		h.count(policy.KillSwitchLiftedType) != 0 || lifts != 0 {
		t.Errorf("nobody has thrown it: got %+v, %v", doc, err)
	}
	if _, err := h.KillSwitch.Throw(ctx, h.origin(h.owner), ws, reason+"x"); !errors.Is(err, policy.ErrReasonTooLong) ||
		h.count(policy.KillSwitchThrownType) != 0 {
		t.Errorf("thrown for a long reason: got %v", err)
	}
	if doc, err := h.KillSwitch.Throw(ctx, h.origin(h.owner), ws, reason); err != nil || !doc.On || doc.Reason != reason ||
		doc.By != h.owner {
		t.Fatalf("got %+v, %v", doc, err)
	}
	bad := h.person("bad", principal.Admin)
	if err := h.Quarantine(ctx, h.origin(h.owner), ws, bad, true, ""); err != nil {
		t.Fatal(err)
	}
	engine := id.NewPrincipal(h.ids, id.Service)
	registered := event.New(principal.RegisteredType, h.origin(h.owner), ws, "", principal.Registered{Principal: engine, Kind: id.Service,
		Role: principal.Admin, Name: "engine"})
	if _, err := h.log.Append(ctx, event.Batch{Workspace: ws, Drafts: []event.Draft{registered.About(principal.Entity,
		string(engine))}}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		by     id.Principal
		reason string
		code   string
	}{
		"quarantined": {bad, "", policy.ReasonRoleTooLow}, "a service of that role": {engine, "", policy.ReasonRoleTooLow},
		"a long reason": {h.owner, reason + "x", policy.ErrReasonTooLong.Code},
		"a stranger":    {"usr_00000000000000000000000009", "", policy.ReasonPrincipalNotFound},
	} {
		if _, err := h.KillSwitch.Lift(ctx, h.origin(c.by), ws, c.reason); fault.CodeOf(err) != c.code {
			t.Errorf("%s: got %v, want %s", name, err, c.code)
		}
	}
	log.before = func() {
		if _, err := h.KillSwitch.Throw(ctx, h.origin(h.owner), ws, "again"); err != nil {
			t.Error(err)
		}
	}
	doc, err := h.KillSwitch.Lift(ctx, h.origin(h.owner), ws, reason)
	if err != nil || !doc.On || lifts != 0 || h.last(policy.KillSwitchThrownType).Seq < h.last(policy.KillSwitchLiftedType).Seq {
		t.Errorf("thrown while it is lifted: got %+v, %v, told of %d lifts", doc, err, lifts)
	}
	if on, err := other.KillSwitch.On(ctx, ws); !on || err != nil {
		t.Errorf("another daemon: got %t, %v", on, err)
	}
	doc, err = h.KillSwitch.Lift(ctx, h.origin(h.owner), ws, reason)
	if err != nil || doc.On || doc.Reason != reason || lifts != 1 {
		t.Errorf("lifted: got %+v, %v, told of %d lifts", doc, err, lifts)
	}
	// The log fails when the throw is to follow the lift that it met.
	if _, err := h.KillSwitch.Throw(ctx, h.origin(h.owner), ws, ""); err != nil {
		t.Fatal(err)
	}
	log.before = func() {
		if _, err := h.KillSwitch.Throw(ctx, h.origin(h.owner), ws, ""); err != nil {
			t.Error(err)
		}
		log.after = func() { log.always = true }
	}
	if _, err := h.KillSwitch.Lift(ctx, h.origin(h.owner), ws, ""); !errors.Is(err, journal.ErrConflict) || lifts != 1 {
		t.Errorf("the throw could not follow: got %v, told of %d lifts", err, lifts)
	}
}

// A lift that is sent again is one lift; a throw is never taken for a repeat.
func TestOnlyALiftIsTakenForARepeat(t *testing.T) {
	h := build(t, nil)
	origin := h.origin(h.owner)
	origin.Key, origin.Command = "once", event.DigestOf([]byte("lift"))
	for round := range 2 {
		if doc, err := h.KillSwitch.Throw(t.Context(), origin, ws, ""); err != nil || !doc.On ||
			h.count(policy.KillSwitchThrownType) != round+1 {
			t.Errorf("thrown: got %+v, %v", doc, err)
		}
	}
	if doc, err := h.KillSwitch.Lift(t.Context(), origin, ws, ""); err != nil || doc.On {
		t.Errorf("lifted: got %+v, %v", doc, err)
	}
	if use, known, err := h.log.Used(t.Context(), ws, "once"); err != nil || !known {
		t.Errorf("the key of the lift is %+v, known: %t, %v", use, known, err)
	}
	if doc, err := h.KillSwitch.Throw(t.Context(), origin, ws, ""); err != nil || !doc.On || h.count(policy.KillSwitchThrownType) != 3 {
		t.Errorf("thrown again: got %+v, %v", doc, err)
	}
}

// Who cannot be read may throw the switch, who is not there may not; and a permit holds only where the switch is known to be open.
func TestStoppingGoesBeforeAsking(t *testing.T) {
	h := build(t, nil)
	for err, want := range map[error]error{errUnreadable: nil, authority.ErrNobody: authority.ErrNotDecider} {
		s := newTwoSwitches(t, false)
		s.told.Parts.Who = nobody{err}
		if _, got := s.told.Throw(t.Context(), s.origin, ws, ""); !errors.Is(got, want) {
			t.Errorf("%v: got %v, want %v", err, got, want)
		}
		if on, err := s.told.On(t.Context(), ws); err != nil || on != (want == nil) {
			t.Errorf("%v: thrown %t, %v", err, on, err)
		}
	}
	if err := h.KillSwitch.Check("ws_never"); !errors.Is(err, killswitch.ErrThrown) {
		t.Errorf("a workspace that was never met: got %v", err)
	}
	if _, err := h.KillSwitch.Throw(t.Context(), h.origin(h.owner), ws, ""); err != nil {
		t.Fatal(err)
	}
	h.restart()
	if on, err := h.KillSwitch.On(t.Context(), ws); !on || err != nil {
		t.Errorf("after a restart: got %t, %v", on, err)
	}
	err := h.KillSwitch.Check(ws)
	if _, known := errors.AsType[policy.Halt](err); !errors.Is(err, killswitch.ErrThrown) || known {
		t.Errorf("thrown before this daemon began, by an event that it does not know: got %v", err)
	}
	for _, of := range []id.Workspace{ws, "ws_never"} {
		if by := h.KillSwitch.Last(of); by != nil {
			t.Errorf("of %s: got the throw %v, want none", of, by)
		}
	}
}

// nobody knows nobody.
type nobody struct{ err error }

func (n nobody) Who(context.Context, id.Workspace, id.Principal) (principal.Principal, error) {
	return principal.Principal{}, n.err
}
