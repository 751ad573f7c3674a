// Package killswitch stops every effect of a workspace at once, and permits effects again.
package killswitch

import (
	"context"
	"errors"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate/authority"
)

// ErrThrown refuses every effect while the kill switch is thrown.
var ErrThrown = fault.New(fault.Denied, policy.ReasonKillSwitch,
	"the kill switch is thrown: only reading, and what is only recorded, is permitted").
	With("An owner lifts it with `agentbox kill-switch off`.")

// Parts are the dependencies of the service.
type Parts struct {
	Log   journal.Journal
	Docs  projection.Reader
	Clock event.Clock
	IDs   *id.Source
	Who   Who

	Together bool // other daemons throw it too, so an open switch is checked in the log
}

// Who finds principals.
type Who interface {
	// Who returns a principal of a workspace; authority.ErrNobody if there is none.
	Who(ctx context.Context, ws id.Workspace, p id.Principal) (principal.Principal, error)
}

// Service throws and lifts the kill switches of workspaces. Make it with New; any goroutine may call its methods.
type Service struct {
	Parts
	switches switches
	halt     func(ws id.Workspace, cause error)
	lifted   func(ws id.Workspace)
}

// New returns a service of the given parts.
func New(parts Parts) *Service {
	return &Service{Parts: parts, switches: switches{docs: parts.Docs, together: parts.Together}}
}

// OnHalt tells the service whom to call when a kill switch is thrown, so that effects under way end at once. It is called once, before
// anything else. The cause is a policy.Halt.
func (s *Service) OnHalt(f func(ws id.Workspace, cause error)) { s.halt = f }

// OnLift sets the function that the service calls when a kill switch is lifted, so that held work continues. Call it once, before anything
// else.
func (s *Service) OnLift(f func(ws id.Workspace)) { s.lifted = f }

// On reports whether the switch of a workspace is thrown.
func (s *Service) On(ctx context.Context, ws id.Workspace) (bool, error) {
	return s.switches.on(ctx, ws)
}

// Check is called when a permit is redeemed. It refuses while the switch is thrown, and for a workspace that the daemon has not seen.
func (s *Service) Check(ws id.Workspace) error { return s.switches.check(ws) }

// Last returns the latest throw in a workspace, or nil where this daemon did not see it.
func (s *Service) Last(ws id.Workspace) policy.Halt {
	s.switches.mu.RLock()
	defer s.switches.mu.RUnlock()
	if st := s.switches.states[ws]; st != nil && st.last != nil {
		return st.last
	}
	return nil
}

// switches are the kill switches in memory, one per workspace. Memory decides: a switch is thrown there first and recorded after. It is
// read from the log only when the daemon first sees a workspace. If other daemons throw it too, memory is enough to refuse, but an open
// switch is checked in the log.
type switches struct {
	docs     projection.Reader
	together bool

	mu     sync.RWMutex
	states map[id.Workspace]*state
}

type state struct {
	on     bool
	throws int   // counts throws, so that a lift does not undo a throw that came while it was recorded
	own    int   // throws of this daemon that are not recorded
	last   *halt // the latest throw; nil where this daemon did not see it
}

// halt is a throw of the kill switch. It is ErrThrown that knows its event.
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
func (h *halt) Error() string { return ErrThrown.Error() }

// Unwrap returns ErrThrown.
func (h *halt) Unwrap() error { return ErrThrown }

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
	return doc.On, nil // before Follow has seen it
}

// learn applies the state of a switch in the log, and the event that set it. It reports whether that has thrown or lifted the switch here.
// A throw that could not be recorded here stays in force.
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

// recorded notes that a throw is in the log.
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

// check is called when a permit is redeemed. It refuses for a workspace that the daemon has not seen.
func (s *switches) check(ws id.Workspace) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := s.states[ws]
	switch {
	case st == nil || st.on && st.last == nil:
		return ErrThrown
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

// State returns the workspace's kill switch.
func (s *Service) State(ctx context.Context, ws id.Workspace) (policy.KillSwitch, error) {
	doc, _, err := projection.Load[policy.KillSwitch](ctx, s.Docs, ws, policy.KillSwitchProjection, string(ws))
	if errors.Is(err, projection.ErrNotFound) {
		doc, err = policy.KillSwitch{Workspace: ws}, nil
	}
	on, err2 := s.switches.on(ctx, ws)
	doc.On = on
	return doc, errors.Join(err, err2)
}

// Throw stops every effect of a workspace. It takes effect in memory first, ends effects under way, and is recorded then. It holds even if
// recording fails; the error says so. Every person except a viewer may throw it.
func (s *Service) Throw(ctx context.Context, origin event.Origin, ws id.Workspace, reason string) (policy.KillSwitch, error) {
	who, err := s.Who.Who(ctx, ws, origin.Principal)
	if err == nil && (who.Kind != id.User || !who.Role.AtLeast(principal.Member)) || errors.Is(err, authority.ErrNobody) {
		return policy.KillSwitch{}, authority.ErrNotDecider
	} // where the role cannot be read, stopping goes before asking
	if len(reason) > policy.MaxReasonBytes {
		return policy.KillSwitch{}, policy.ErrReasonTooLong
	}
	by := &halt{event: id.NewEvent(s.IDs), known: make(chan struct{})}
	s.switches.throw(ws, by)
	if s.halt != nil {
		s.halt(ws, by)
	}
	if err := s.recordThrow(ctx, origin, ws, reason, by); err != nil {
		return policy.KillSwitch{Workspace: ws, On: true, Reason: reason, By: origin.Principal},
			fault.Wrap(err, fault.Unavailable, "kill_switch_not_recorded",
				"the kill switch is thrown, but that could not be recorded; it holds until the daemon ends")
	}
	s.switches.recorded(ws)
	return s.State(ctx, ws)
}

// Lift permits effects again. Only the owner and admins may, and it is recorded before it takes hold.
func (s *Service) Lift(ctx context.Context, origin event.Origin, ws id.Workspace, reason string) (policy.KillSwitch, error) {
	who, err := s.Who.Who(ctx, ws, origin.Principal)
	if err != nil {
		return policy.KillSwitch{}, err
	}
	if who.Kind != id.User || who.Quarantined || !who.Role.AtLeast(principal.Admin) {
		return policy.KillSwitch{}, authority.ErrNotDecider
	}
	if len(reason) > policy.MaxReasonBytes {
		return policy.KillSwitch{}, policy.ErrReasonTooLong
	}
	if on, err := s.switches.on(ctx, ws); err != nil || !on {
		doc, docErr := s.State(ctx, ws)
		return doc, errors.Join(err, docErr)
	}
	throws := s.switches.throws(ws)
	if err := s.record(ctx, origin, ws, "", policy.KillSwitchLiftedType, policy.KillSwitchLifted{Reason: reason}); err != nil {
		return policy.KillSwitch{}, err
	}
	if s.switches.lift(ws, throws) {
		if s.lifted != nil {
			s.lifted(ws)
		}
	} else {
		// Thrown again while the lift was recorded: the log must end with the throw, whatever order the two took.
		if err := s.record(ctx, origin, ws, "", policy.KillSwitchThrownType,
			policy.KillSwitchThrown{Reason: "thrown while it was being lifted"}); err != nil {
			return policy.KillSwitch{}, err
		}
	}
	return s.State(ctx, ws)
}

// recordThrow records a throw, and publishes the event by which the effects ended.
func (s *Service) recordThrow(ctx context.Context, origin event.Origin, ws id.Workspace, reason string, by *halt) (err error) {
	recorded := false
	defer func() {
		if !recorded {
			by.event = ""
		}
		close(by.known)
	}()
	err = s.record(ctx, origin, ws, by.event, policy.KillSwitchThrownType, policy.KillSwitchThrown{Reason: reason})
	recorded = err == nil
	return err
}

func (s *Service) record(ctx context.Context, origin event.Origin, ws id.Workspace, e id.Event, typ string, data any) error {
	draft := event.New(typ, origin, ws, "", data).About(policy.KillSwitchEntity, string(ws))
	draft.ID, draft.OccurredAt = e, s.Clock.Now().UTC()
	batch := event.Batch{Workspace: ws, Drafts: []event.Draft{draft}}
	if typ == policy.KillSwitchLiftedType {
		batch = origin.Once(batch) // a throw is never a repeat
	}
	_, err := s.Log.Append(context.WithoutCancel(ctx), batch)
	return err
}
