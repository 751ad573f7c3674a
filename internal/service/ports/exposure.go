package ports

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
)

// Exposure is an open port of a space.
type Exposure struct {
	ID        id.Exposure
	Workspace id.Workspace
	Room      id.Room
	Space     id.Space
	Port      int
	How       string
	ExpiresAt time.Time // zero for one without an end of its own

	service *Service
	door    space.Door
	origin  event.Origin // of the request that opened it
	opened  id.Event
	cause   id.Correlation // of that event
	bundle  event.Digest   // under which it was opened
	request request
	ttl     time.Duration
	key     string

	halted   atomic.Bool  // the kill switch was thrown
	used     atomic.Int64 // nanoseconds of Unix time of the last request
	requests atomic.Int64
	in, out  atomic.Int64 // bytes into the space, and out of it
}

// use notes the time of a request.
func (x *Exposure) use() { x.used.Store(x.service.Clock.Now().UnixNano()) }

// External reports whether pages of the port may load from other hosts.
func (x *Exposure) External() bool { return x.How == space.PortByExternalLink }

// connecting is the time limit for opening a connection.
const connecting = 15 * time.Second

// Dial opens a connection for one request, and counts its bytes. It returns space.ErrPortUnreachable after the time limit.
func (x *Exposure) Dial(ctx context.Context) (space.Conn, error) {
	x.requests.Add(1)
	within, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	late, cancel := x.service.Clock.NewTimer(connecting)
	defer cancel()
	dialled := make(chan struct{})
	defer close(dialled)
	go func() {
		select {
		case <-late:
			stop(space.ErrPortUnreachable)
		case <-dialled:
		}
	}()
	c, err := x.door.Dial(within)
	if fault.CodeOf(err) == "space_ended" {
		err = errors.Join(space.ErrPortClosed, err)
	}
	if err != nil {
		return nil, err
	}
	return &counted{c, x}, nil
}

// over reports whether the processes of the space have ended.
func (x *Exposure) over() bool {
	select {
	case <-x.door.Done():
		return true
	default:
		return false
	}
}

// counted is a connection that counts its bytes.
type counted struct {
	space.Conn
	of *Exposure
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.of.out.Add(int64(n))
	return n, err
}

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.of.in.Add(int64(n))
	return n, err
}

func (x *Exposure) draft(typ string, origin event.Origin, told any) event.Draft {
	return event.New(typ, origin, x.Workspace, x.Room, told).About(space.EntityType, string(x.Space))
}
