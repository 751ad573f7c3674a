package localengine

import (
	"context"
	"io"
	"log"
	"net"
	"sync"

	"agentbox/internal/domain/space"
)

// inwardConns is how many connections of the programs of a space to the daemon may be open. Further ones wait in the space.
const inwardConns = 16

// inward is a listener on the connections that come out of a space.
type inward struct {
	ctx   context.Context
	stop  context.CancelFunc
	inlet space.Inlet
	slots chan struct{}
}

var _ net.Listener = (*inward)(nil)

func newInward(ctx context.Context, inlet space.Inlet) *inward {
	ctx, stop := context.WithCancel(ctx)
	return &inward{ctx, stop, inlet, make(chan struct{}, inwardConns)}
}

// Accept implements net.Listener.
func (l *inward) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
	c, err := l.inlet.Accept(l.ctx)
	if err != nil {
		<-l.slots
		return nil, net.ErrClosed
	}
	return bridge(c, func() { <-l.slots }), nil
}

// Close implements net.Listener.
func (l *inward) Close() error {
	l.stop()
	return nil
}

// Addr implements net.Listener.
func (l *inward) Addr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: l.inlet.Port()}
}

// bridge makes a connection of a space one that keeps deadlines, as the server of net/http needs them.
func bridge(c space.Conn, closed func()) net.Conn {
	ours, theirs := net.Pipe()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(ours, c) // what the program sends; it ends with the connection, or with the server's half
		_ = ours.Close()
	})
	both.Go(func() {
		_, _ = io.Copy(c, ours) // what the server answers
		_ = c.CloseWrite()
		_ = c.Close() // what was written still arrives
	})
	go func() {
		both.Wait()
		closed()
	}()
	return theirs
}

// quiet drops what net/http says about connections that programs of a space break off.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
