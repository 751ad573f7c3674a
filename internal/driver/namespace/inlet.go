//go:build linux

package namespace

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"agentbox/internal/domain/space"
	"agentbox/internal/spaceinit"
)

var _ space.Asking = (*instance)(nil)

// Inlet implements space.Asking.
func (s *instance) Inlet(ctx context.Context) (space.Inlet, error) {
	l, err := s.client.Serve(ctx)
	if err != nil {
		return nil, reached(err)
	}
	return &inlet{Listener: l, conns: map[*spaceinit.Conn]bool{}}, nil
}

// inlet is a port of a space that leads to the daemon.
type inlet struct {
	*spaceinit.Listener

	mu     sync.Mutex
	conns  map[*spaceinit.Conn]bool
	closed bool
}

var _ space.Inlet = (*inlet)(nil)

// Port implements space.Inlet.
func (i *inlet) Port() int { return int(i.Listener.Port()) }

// Accept implements space.Inlet.
func (i *inlet) Accept(ctx context.Context) (space.Conn, error) {
	c, err := i.Listener.Accept(ctx)
	switch {
	case errors.Is(err, spaceinit.ErrConnClosed) || errors.Is(err, spaceinit.ErrEnded):
		return nil, space.ErrPortClosed
	case err != nil:
		return nil, reached(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil, errors.Join(space.ErrPortClosed, c.Close())
	}
	i.conns[c] = true
	return &inward{Conn: c, inlet: i}, nil
}

// Close implements space.Inlet.
func (i *inlet) Close() {
	i.Listener.Close()
	i.mu.Lock()
	i.closed = true
	open := i.conns
	i.conns = map[*spaceinit.Conn]bool{}
	i.mu.Unlock()
	for c := range open {
		_ = c.Close() // it always can
	}
}

// lingering is how long a program may take to read the rest of an answer and close its side.
const lingering = 5 * time.Second

// inward is a connection that its inlet knows.
type inward struct {
	*spaceinit.Conn
	inlet *inlet
	sent  atomic.Bool // CloseWrite was called
}

// CloseWrite implements space.Conn.
func (c *inward) CloseWrite() error {
	c.sent.Store(true)
	return c.Conn.CloseWrite()
}

// Port implements space.Conn.
func (c *inward) Port() int { return c.inlet.Port() }

// Close implements io.Closer. Bytes that were sent before CloseWrite still arrive.
func (c *inward) Close() error {
	if c.sent.Load() {
		go func() {
			late := time.NewTimer(lingering)
			defer late.Stop()
			select {
			case <-c.Over():
			case <-late.C:
			}
			_ = c.end() // it always can
		}()
		return nil
	}
	return c.end()
}

func (c *inward) end() error {
	c.inlet.mu.Lock()
	delete(c.inlet.conns, c.Conn)
	c.inlet.mu.Unlock()
	return c.Conn.Close()
}
