package gate

import (
	"context"
	"errors"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/projection"
)

// ErrKillSwitch refuses every effect while the kill switch is thrown.
var ErrKillSwitch = fault.New(fault.Denied, policy.ReasonKillSwitch, "the kill switch is thrown: only reading, and what is only recorded, is permitted").
	With("An owner lifts it with `agentbox kill-switch off`.")

// ErrKillSwitchHolds refuses to approve, while the kill switch is thrown, what would be refused at once.
var ErrKillSwitchHolds = fault.New(fault.Conflict, policy.ReasonKillSwitch, "the kill switch is on, so what is approved now would be refused; the question stays open").
	With("Lift it with `agentbox kill-switch off` and approve then; to deny or to hold is possible now.")

// switches are the kill switches in memory, one per workspace. Memory decides: a switch is thrown there first and recorded after, and it
// is read from the log only when the daemon meets a workspace for the first time. Where other daemons throw it too, memory is enough to refuse,
// and what it says is open is read from the log.
type switches struct {
	docs     projection.Reader
	together bool

	mu     sync.RWMutex
	states map[id.Workspace]*state
}

type state struct {
	on     bool
	throws int   // counts, so that a lift does not undo a throw that came while it was recorded
	own    int   // throws of this daemon that are not recorded
	last   *halt // the latest throw; nil where this daemon did not see it
}

// halt is a throw of the kill switch. It is ErrKillSwitch that knows its event.
type halt struct {
	event id.Event
	known chan struct{} // closed when the event is recorded, or could not be
}

var _ policy.Halt = (*halt)(nil)

// thrownBy returns the throw of an event that is in the log.
func thrownBy(e id.Event) *halt {
	h := &halt{event: e, known: make(chan struct{})}
	close(h.known)
	return h
}

// Error implements error.
func (h *halt) Error() string { return ErrKillSwitch.Error() }

// Unwrap makes it the refusal that it is.
func (h *halt) Unwrap() error { return ErrKillSwitch }

// Event implements policy.Halt.
func (h *halt) Event() id.Event {
	<-h.known
	return h.event
}

// on reports whether a workspace's switch is thrown.
func (s *switches) on(ctx context.Context, ws id.Workspace) (bool, error) {
	s.mu.RLock()
	st := s.states[ws]
	on := st != nil && st.on
	s.mu.RUnlock()
	if st != nil && (on || !s.together) {
		return on, nil
	}
	doc, _, err := projection.Load[policy.KillSwitch](ctx, s.docs, ws, policy.KillSwitchProjection, string(ws))
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return true, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st = s.state(ws, doc.On); st.on {
		return true, nil
	}
	return doc.On, nil // before Follow has told of it
}

// learn takes what the log says of a switch now, and by which event, and reports whether that has thrown it, or lifted it, here. What was thrown
// here and could not be recorded holds.
func (s *switches) learn(ws id.Workspace, on bool, by id.Event) (thrown *halt, lifted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.states[ws]
	if st == nil {
		st = s.state(ws, false)
	}
	was := st.on
	if st.on = on || st.own > 0; st.on && !was {
		st.last = thrownBy(by)
		return st.last, false
	}
	return nil, was && !st.on
}

// recorded is told that a throw is in the log.
func (s *switches) recorded(ws id.Workspace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.state(ws, true); st.own > 0 {
		st.own--
	}
}

// state returns the state of a workspace and makes it if there is none. The lock is held.
func (s *switches) state(ws id.Workspace, on bool) *state {
	if s.states == nil {
		s.states = map[id.Workspace]*state{}
	}
	st := s.states[ws]
	if st == nil {
		st = &state{on: on}
		s.states[ws] = st
	}
	return st
}

// check is what a permit asks when it is redeemed. A workspace that was never met refuses.
func (s *switches) check(ws id.Workspace) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := s.states[ws]
	switch {
	case st == nil || st.on && st.last == nil:
		return ErrKillSwitch
	case st.on:
		return st.last
	}
	return nil
}

func (s *switches) throw(ws id.Workspace, by *halt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state(ws, true)
	st.on, st.last = true, by
	st.throws++
	st.own++
}

func (s *switches) throws(ws id.Workspace) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if st := s.states[ws]; st != nil {
		return st.throws
	}
	return 0
}

// lift opens the switch unless it was thrown again after the count was taken.
func (s *switches) lift(ws id.Workspace, throws int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state(ws, true)
	if st.throws != throws {
		return false
	}
	st.on, st.own = false, 0
	return true
}

// KillSwitch returns the workspace's kill switch.
func (g *Gate) KillSwitch(ctx context.Context, ws id.Workspace) (policy.KillSwitch, error) {
	doc, _, err := projection.Load[policy.KillSwitch](ctx, g.Docs, ws, policy.KillSwitchProjection, string(ws))
	if errors.Is(err, projection.ErrNotFound) {
		doc, err = policy.KillSwitch{Workspace: ws}, nil
	}
	on, err2 := g.switches.on(ctx, ws)
	doc.On = on
	return doc, errors.Join(err, err2)
}

// ThrowKillSwitch stops every effect of a workspace: it takes hold in memory, ends what is under way, and is recorded then. It holds even
// if recording it fails; the error says so. Every person but a viewer may throw it.
func (g *Gate) ThrowKillSwitch(ctx context.Context, origin event.Origin, ws id.Workspace, reason string) (policy.KillSwitch, error) {
	who, err := g.who(ctx, ws, origin.Principal)
	if err == nil && (who.Kind != id.User || !who.Role.AtLeast(principal.Member)) || errors.Is(err, errNobody) {
		return policy.KillSwitch{}, ErrNotDecider
	} // where the role cannot be read, stopping goes before asking
	if len(reason) > policy.MaxReasonBytes {
		return policy.KillSwitch{}, policy.ErrReasonTooLong
	}
	by := &halt{event: id.NewEvent(g.IDs), known: make(chan struct{})}
	g.switches.throw(ws, by)
	if g.halt != nil {
		g.halt(ws, by)
	}
	if err := g.recordThrow(ctx, origin, ws, reason, by); err != nil {
		return policy.KillSwitch{Workspace: ws, On: true, Reason: reason, By: origin.Principal},
			fault.Wrap(err, fault.Unavailable, "kill_switch_not_recorded", "the kill switch is thrown, but that could not be recorded; it holds until the daemon ends")
	}
	g.switches.recorded(ws)
	return g.KillSwitch(ctx, ws)
}

// LiftKillSwitch permits effects again. Only the owner and admins may, and it is recorded before it takes hold.
func (g *Gate) LiftKillSwitch(ctx context.Context, origin event.Origin, ws id.Workspace, reason string) (policy.KillSwitch, error) {
	who, err := g.who(ctx, ws, origin.Principal)
	if err != nil {
		return policy.KillSwitch{}, err
	}
	if who.Kind != id.User || who.Quarantined || !who.Role.AtLeast(principal.Admin) {
		return policy.KillSwitch{}, ErrNotDecider
	}
	if len(reason) > policy.MaxReasonBytes {
		return policy.KillSwitch{}, policy.ErrReasonTooLong
	}
	if on, err := g.switches.on(ctx, ws); err != nil || !on {
		doc, docErr := g.KillSwitch(ctx, ws)
		return doc, errors.Join(err, docErr)
	}
	throws := g.switches.throws(ws)
	if err := g.recordSwitch(ctx, origin, ws, "", policy.KillSwitchLiftedType, policy.KillSwitchLifted{Reason: reason}); err != nil {
		return policy.KillSwitch{}, err
	}
	if g.switches.lift(ws, throws) {
		if g.lifted != nil {
			g.lifted(ws)
		}
	} else {
		// Thrown again while the lift was recorded: the log must end with the throw, whatever order the two took.
		if err := g.recordSwitch(ctx, origin, ws, "", policy.KillSwitchThrownType, policy.KillSwitchThrown{Reason: "thrown while it was being lifted"}); err != nil {
			return policy.KillSwitch{}, err
		}
	}
	return g.KillSwitch(ctx, ws)
}

// recordThrow records a throw and tells what it has ended by which event.
func (g *Gate) recordThrow(ctx context.Context, origin event.Origin, ws id.Workspace, reason string, by *halt) (err error) {
	recorded := false
	defer func() {
		if !recorded {
			by.event = ""
		}
		close(by.known)
	}()
	err = g.recordSwitch(ctx, origin, ws, by.event, policy.KillSwitchThrownType, policy.KillSwitchThrown{Reason: reason})
	recorded = err == nil
	return err
}

func (g *Gate) recordSwitch(ctx context.Context, origin event.Origin, ws id.Workspace, e id.Event, typ string, data any) error {
	draft := event.New(typ, origin, ws, "", data).About(policy.KillSwitchEntity, string(ws))
	draft.ID, draft.OccurredAt = e, g.Clock.Now().UTC()
	batch := event.Batch{Workspace: ws, Drafts: []event.Draft{draft}}
	if typ == policy.KillSwitchLiftedType {
		batch = origin.Once(batch) // a throw is never taken for a repeat
	}
	_, err := g.Log.Append(context.WithoutCancel(ctx), batch)
	return err
}
