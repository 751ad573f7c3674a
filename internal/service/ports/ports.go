// Package ports opens ports of spaces to requests from outside, and closes them.
package ports

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Limits of open ports.
const (
	DefaultTTL   = time.Hour          // of an address
	MinTTL       = 10 * time.Second   // of an address
	MaxTTL       = 7 * 24 * time.Hour // of an address
	MaxExposures = 32                 // open ports of one space; each principal and each address of a port counts

	// Unused is the time without a request after which a port closes that is open for the requests of a principal.
	Unused = time.Hour
)

// Parts are the dependencies of the service.
type Parts struct {
	Log    journal.Journal
	Docs   projection.Reader
	Gate   policy.Gate
	Spaces space.Presence
	Clock  event.Clock
	IDs    *id.Source
	Key    []byte // signs addresses; at least 32 random bytes
	Logger *slog.Logger
	System id.Principal // closes ports whose time is over
}

// Service holds the open ports of the spaces of this daemon in memory, because the processes that listen end with the daemon too. Make it
// with New; any goroutine may call its methods.
type Service struct {
	Parts
	acts policy.Client

	mu      sync.Mutex // guards all, opening and making
	all     map[id.Exposure]*Exposure
	opening map[id.Space]int           // ports of a space that are about to be open
	making  map[making]<-chan struct{} // is closed when the request with the key has its address
}

var _ space.Doors = (*Service)(nil)

// New returns the service of the given parts.
func New(p Parts) *Service {
	return &Service{Parts: p, acts: policy.Client{Gate: p.Gate, Append: p.Log.Append}, all: map[id.Exposure]*Exposure{},
		opening: map[id.Space]int{}, making: map[making]<-chan struct{}{}}
}

// Listed is a port of a space on which a process listens, or that is open, or both.
type Listed struct {
	space.Port
	Listening bool   `json:"listening" doc:"A program listens on it now"`
	Open      []Open `json:"open" nullable:"false" doc:"For whom it is open"`
}

// Open describes an open port.
type Open struct {
	ID        id.Exposure  `json:"exposure_id"`
	How       string       `json:"how" doc:"requests: for the requests of the principal; link: for everybody who has the address; link_external: its pages may also load from other hosts"`
	Principal id.Principal `json:"principal_id" doc:"Who opened it"`
	ExpiresAt time.Time    `json:"expires_at,omitzero"`
	Requests  int64        `json:"requests"`
}

// List returns the ports of a space, in order.
func (s *Service) List(ctx context.Context, ws id.Workspace, sp id.Space) ([]Listed, error) {
	_, instance, err := s.running(ctx, ws, sp)
	if err != nil {
		return nil, err
	}
	ports, err := instance.Ports(ctx)
	if err != nil {
		return nil, err
	}
	at := map[int]*Listed{}
	for _, p := range ports {
		at[p.Port] = &Listed{Port: p, Listening: true, Open: []Open{}}
	}
	for _, x := range s.openIn(sp) {
		l := at[x.Port]
		if l == nil {
			l = &Listed{Port: space.Port{Port: x.Port, Addresses: []string{}}}
			at[x.Port] = l
		}
		l.Open = append(l.Open, Open{x.ID, x.How, x.origin.Principal, x.ExpiresAt, x.requests.Load()})
	}
	list := make([]Listed, 0, len(at))
	for _, l := range at {
		list = append(list, *l)
	}
	slices.SortFunc(list, func(a, b Listed) int { return a.Port.Port - b.Port.Port })
	return list, nil
}

// document returns a space of a workspace in any state.
func (s *Service) document(ctx context.Context, ws id.Workspace, sp id.Space) (space.Space, error) {
	doc, _, err := projection.Load[space.Space](ctx, s.Docs, ws, space.Projection, string(sp))
	if fault.KindOf(err) == fault.NotFound {
		err = fault.New(fault.NotFound, "space_not_found", "there is no space %.64s in this workspace", sp)
	}
	return doc, err
}

// running returns a space and its processes. It returns an error if the space has no processes, or its tier has no ports.
func (s *Service) running(ctx context.Context, ws id.Workspace, sp id.Space) (space.Space, space.Reachable, error) {
	doc, err := s.document(ctx, ws, sp)
	if err != nil {
		return doc, nil, err
	}
	switch {
	case doc.Status == space.Destroyed:
		return doc, nil, fault.New(fault.Conflict, "space_destroyed", "the space was destroyed; make a new one")
	case doc.Tier == space.Nano:
		return doc, nil, space.ErrNoPorts
	case doc.Pause != nil:
		return doc, nil, space.ErrPaused
	}
	instance, ok := s.Spaces.Present(sp)
	if !ok {
		return doc, nil, space.ErrNotRunning
	}
	reachable, ok := instance.(space.Reachable)
	if !ok {
		return doc, nil, space.ErrNoPorts
	}
	return doc, reachable, nil
}

// openIn returns the open ports of a space, the oldest first.
func (s *Service) openIn(sp id.Space) []*Exposure {
	return s.selected(func(x *Exposure) bool { return x.Space == sp })
}

func (s *Service) selected(wanted func(*Exposure) bool) []*Exposure {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*Exposure
	for _, x := range s.all {
		if wanted(x) {
			list = append(list, x)
		}
	}
	slices.SortFunc(list, func(a, b *Exposure) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return list
}

// Reach returns the exposure of a port for the requests of a principal. The first request opens it, through the gate.
func (s *Service) Reach(ctx context.Context, origin event.Origin, ws id.Workspace, sp id.Space, port int) (*Exposure, error) {
	for _, x := range s.openIn(sp) {
		if x.Port == port && x.Workspace == ws && x.How == space.PortByRequests && x.origin.Principal == origin.Principal &&
			x.origin.Token == origin.Token {
			err := s.check(ctx, x)
			if fault.CodeOf(err) == space.ErrPortClosed.Code {
				break // open it again
			}
			x.use()
			return x, err
		}
	}
	return s.open(ctx, origin, ws, request{space: sp, port: port, how: space.PortByRequests})
}

// Address asks for an address of a port of a space.
type Address struct {
	Workspace id.Workspace
	Space     id.Space
	Port      int
	TTL       time.Duration // 0 means DefaultTTL
	External  bool          // pages may load from other hosts
	Key       string        // a repeat of a request with the same key gets the same address; "" for none
	By        Credential    // the address ends with it
}

// Preview opens a port under a secret address, and returns the secret part. It returns invalid_ttl for a time
// outside of MinTTL to MaxTTL, and journal.ErrKeyConflict for the key of another request.
func (s *Service) Preview(ctx context.Context, origin event.Origin, a Address) (*Exposure, string, error) {
	if a.TTL == 0 {
		a.TTL = DefaultTTL
	}
	if a.TTL < MinTTL || a.TTL > MaxTTL {
		return nil, "", fault.New(fault.Invalid, "invalid_ttl", "an address holds for %s to %s", MinTTL, MaxTTL)
	}
	q := request{space: a.Space, port: a.Port, how: space.PortByLink, ttl: a.TTL, key: a.Key, by: a.By}
	if a.External {
		q.how = space.PortByExternalLink
	}
	if a.Key != "" {
		end, err := s.alone(ctx, making{a.Workspace, a.Space, origin.Principal, a.Key})
		if err != nil {
			return nil, "", err
		}
		defer end()
		for _, x := range s.openIn(a.Space) {
			if x.key == a.Key && x.Workspace == a.Workspace && x.origin.Principal == origin.Principal {
				if x.Port != q.port || x.How != q.how || x.ttl != q.ttl {
					return nil, "", journal.ErrKeyConflict
				}
				return x, s.sign(x), s.check(ctx, x)
			}
		}
	}
	x, err := s.open(ctx, origin, a.Workspace, q)
	if err != nil {
		return nil, "", err
	}
	return x, s.sign(x), nil
}

// request describes a port to open.
type request struct {
	space id.Space
	port  int
	how   string
	ttl   time.Duration // 0 for none
	key   string
	by    Credential
}

// open opens a port through the gate.
func (s *Service) open(ctx context.Context, origin event.Origin, ws id.Workspace, q request) (*Exposure, error) {
	if q.port < 1 || q.port > 65535 {
		_, err := space.ReadPort(strconv.Itoa(q.port))
		return nil, err
	}
	doc, instance, err := s.running(ctx, ws, q.space)
	if err != nil {
		return nil, err
	}
	if err := s.reserve(q.space); err != nil {
		return nil, err
	}
	defer s.release(q.space)
	origin.Key, origin.Command = "", event.Digest{} // the service itself recognises a repeat
	action := actionOn(origin, doc, q)
	ruling, approval, err := s.acts.Ask(ctx, origin, action)
	if err != nil {
		return nil, err
	}
	x := &Exposure{
		service: s, ID: id.New[id.Exposure](s.IDs), Workspace: ws, Room: doc.Room, Space: q.space, Port: q.port, How: q.how, ttl: q.ttl,
		key: q.key, origin: origin, bundle: doc.Bundle, request: q,
	}
	x.use()
	if q.ttl > 0 {
		x.ExpiresAt = s.Clock.Now().UTC().Add(q.ttl)
	}
	told := space.PortOpened{Space: q.space, Exposure: x.ID, Port: q.port, How: q.how, ExpiresAt: x.ExpiresAt, Hash: ruling.Decision.Action}
	permit, receipt, err := s.Gate.Begin(ctx, ruling, approval, event.Batch{Workspace: ws, Drafts: []event.Draft{
		x.draft(space.EventPortOpened, origin, told),
	}})
	if err != nil {
		return nil, err
	}
	if n := len(receipt.Events); n > 0 {
		x.opened, x.cause = receipt.Events[n-1].ID, receipt.Events[n-1].Correlation
	}
	if x.door, err = instance.Expose(permit); err != nil {
		s.record(context.WithoutCancel(ctx), x, origin, space.PortSpaceEnded)
		return nil, err
	}
	s.mu.Lock()
	s.all[x.ID] = x
	s.mu.Unlock()
	if err := s.check(ctx, x); err != nil { // somebody threw the kill switch, or the space ended, meanwhile
		return nil, err
	}
	return x, nil
}

// reserve counts a port before it is open. It returns too_many_ports if the space has MaxExposures.
func (s *Service) reserve(sp id.Space) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.opening[sp]
	for _, x := range s.all {
		if x.Space == sp {
			n++
		}
	}
	if n >= MaxExposures {
		return fault.New(fault.Exhausted, "too_many_ports", "ports of this space are open %d times, which is the most", MaxExposures).
			With("close one: agentbox space ports SPACE --close PORT")
	}
	s.opening[sp]++
	return nil
}

// release undoes reserve: the port is open by now, or the gate refused it.
func (s *Service) release(sp id.Space) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opening[sp]--; s.opening[sp] == 0 {
		delete(s.opening, sp)
	}
}

func actionOn(origin event.Origin, doc space.Space, q request) policy.Action {
	return policy.Action{
		Type: policy.PortExpose, Workspace: doc.Workspace, Room: doc.Room, Principal: origin.Principal, Token: origin.Token, Space: doc.ID,
		Bundle: doc.Bundle, Target: strconv.Itoa(q.port), Method: q.how, TimeoutMS: q.ttl.Milliseconds(),
	}
}

// check returns nil if the port may stay open. Otherwise it closes the port, unless the space is only paused, and returns the reason.
func (s *Service) check(ctx context.Context, x *Exposure) error {
	doc, _, err := s.running(ctx, x.Workspace, x.Space)
	switch code := fault.CodeOf(err); {
	case code == space.ErrPaused.Code:
		return err
	case code == "space_destroyed", code == space.ErrNotRunning.Code, code == space.ErrNoPorts.Code:
		s.close(ctx, x, s.system(x), space.PortSpaceEnded)
		return space.ErrPortClosed
	case err != nil:
		return err
	case doc.Bundle != x.bundle:
		s.close(ctx, x, s.system(x), space.PortPolicy)
		return space.ErrPortClosed
	case !x.ExpiresAt.IsZero() && !s.Clock.Now().Before(x.ExpiresAt):
		s.close(ctx, x, s.system(x), space.PortExpired)
		return ErrExpired
	case x.over():
		s.close(ctx, x, s.system(x), space.PortSpaceEnded)
		return space.ErrPortClosed
	}
	if valid, err := s.valid(ctx, x); err != nil {
		return err
	} else if !valid {
		s.close(ctx, x, s.system(x), space.PortNotPermitted)
		return space.ErrPortClosed
	}
	// The principal must still have the right: a quarantine, a revoked token, a lower role and the kill switch close the port.
	ruling, err := s.Gate.Judge(ctx, actionOn(x.origin, doc, x.request))
	if err != nil {
		return err
	}
	if ruling.Decision.Outcome == policy.Deny {
		s.close(ctx, x, s.system(x), space.PortNotPermitted)
		return s.acts.Refuse(ctx, x.origin, ruling)
	}
	s.mu.Lock()
	known := s.all[x.ID] == x
	s.mu.Unlock()
	if !known {
		return space.ErrPortClosed
	}
	return nil
}
