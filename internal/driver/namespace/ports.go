//go:build linux

package namespace

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/spaceinit"
)

var _ space.Reachable = (*instance)(nil)

// Expose implements space.Reachable.
func (s *instance) Expose(p policy.Permit) (space.Door, error) {
	action, err := p.Redeem(policy.PortExpose)
	if err != nil {
		return nil, err
	}
	port, err := space.ReadPort(action.Target)
	if err != nil {
		return nil, err
	}
	if action.Space != s.spec.ID {
		return nil, policy.ErrPermitMismatch
	}
	return &door{space: s, port: uint16(port), conns: map[*spaceinit.Conn]bool{}}, nil
}

// Ports implements space.Reachable.
func (s *instance) Ports(ctx context.Context) ([]space.Port, error) {
	all, err := s.client.Listening(ctx)
	if err != nil {
		return nil, reached(err)
	}
	at := map[int][]string{}
	for _, l := range all {
		port := int(l.Port)
		if name := address(l); !slices.Contains(at[port], name) {
			at[port] = append(at[port], name)
		}
	}
	ports := make([]space.Port, 0, len(at))
	for port, names := range at {
		slices.Sort(names)
		ports = append(ports, space.Port{Port: port, Addresses: names})
	}
	slices.SortFunc(ports, func(a, b space.Port) int { return cmp.Compare(a.Port, b.Port) })
	return ports, nil
}

// address is where a socket listens.
func address(l spaceinit.Listening) string {
	switch {
	case l.Six && l.Any:
		return "::"
	case l.Six:
		return "::1"
	case l.Any:
		return "0.0.0.0"
	}
	return "127.0.0.1"
}

// door is an open port of a space.
type door struct {
	space *instance
	port  uint16

	mu     sync.Mutex
	conns  map[*spaceinit.Conn]bool
	closed bool
}

var _ space.Door = (*door)(nil)

// Dial implements space.Door.
func (d *door) Dial(ctx context.Context) (space.Conn, error) {
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return nil, space.ErrPortClosed
	}
	c, err := d.space.client.Dial(ctx, d.port)
	if err != nil {
		return nil, reached(err)
	}
	d.mu.Lock()
	if closed = d.closed; !closed {
		d.conns[c] = true
	}
	d.mu.Unlock()
	if closed {
		return nil, errors.Join(space.ErrPortClosed, c.Close())
	}
	return &passage{c, d}, nil
}

// Drop implements space.Door.
func (d *door) Drop() { d.drop(false) }

// Close implements space.Door.
func (d *door) Close() { d.drop(true) }

func (d *door) drop(closed bool) {
	d.mu.Lock()
	d.closed = d.closed || closed
	open := d.conns
	d.conns = map[*spaceinit.Conn]bool{}
	d.mu.Unlock()
	for c := range open {
		_ = c.Close() // it always can
	}
}

// Done implements space.Door.
func (d *door) Done() <-chan struct{} { return d.space.done }

// passage is a connection that its door knows.
type passage struct {
	*spaceinit.Conn
	door *door
}

// Port implements space.Conn.
func (p *passage) Port() int { return int(p.door.port) }

// Close implements io.Closer.
func (p *passage) Close() error {
	p.door.mu.Lock()
	delete(p.door.conns, p.Conn)
	p.door.mu.Unlock()
	return p.Conn.Close()
}

// reached turns an error of the connection to the init into one of the contract.
func reached(err error) error {
	switch {
	case errors.Is(err, spaceinit.ErrNobody):
		return space.ErrPortSilent
	case errors.Is(err, spaceinit.ErrConns):
		return space.ErrPortBusy
	case errors.Is(err, spaceinit.ErrEnded):
		return errEnded()
	case errors.Is(err, spaceinit.ErrUnreached):
		return fault.Wrap(err, fault.Unavailable, space.ErrPortUnreachable.Code, "%s", space.ErrPortUnreachable.Msg)
	}
	return err
}
