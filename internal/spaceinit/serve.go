package spaceinit

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
)

// EncodeAccept returns the body of KindAccept: the id of the socket.
func EncodeAccept(of uint32) []byte { return binary.LittleEndian.AppendUint32(nil, of) }

// DecodeAccept reads the body of KindAccept.
func DecodeAccept(body []byte) (uint32, error) {
	d := decoder{b: body}
	of := d.u32()
	if of == 0 {
		d.bad = true
	}
	return of, d.end("socket")
}

// Listener is a socket on 127.0.0.1 of a space whose connections come to the daemon. Every method may be called from any goroutine.
type Listener struct {
	c    *Client
	id   uint32
	port uint16

	mu     sync.Mutex
	stands chan struct{} // closed when port or err is set
	told   bool          // stands is closed
	err    error
	closed chan struct{} // closed by Close, or with the socket
	once   sync.Once
}

// Serve makes a socket on a port that the space's kernel chooses. It returns an error that wraps ErrUnreached, ErrConns, ErrEnded if the
// space ends, and the cause of ctx if that ends before.
func (c *Client) Serve(ctx context.Context) (*Listener, error) {
	l := &Listener{c: c, stands: make(chan struct{}), closed: make(chan struct{})}
	var err error
	if l.id, err = c.enter(l); err != nil {
		return nil, err
	}
	if err := c.say(ctx, KindServe, l.id); err != nil {
		l.Close()
		return nil, err
	}
	select {
	case <-l.stands:
	case <-ctx.Done():
		l.Close()
		return nil, context.Cause(ctx)
	}
	if l.err != nil {
		return nil, l.err
	}
	return l, nil
}

// Port returns the port.
func (l *Listener) Port() uint16 { return l.port }

// Accept waits for the next connection. It returns ErrConnClosed once the socket is closed, ErrConns, ErrEnded if the space ends, and the
// cause of ctx if that ends before.
func (l *Listener) Accept(ctx context.Context) (*Conn, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-l.closed:
			end(ErrConnClosed)
		case <-over:
		}
	}()
	conn, err := l.c.connect(ctx, KindAccept, EncodeAccept(l.id))
	if errors.Is(err, ErrNobody) {
		err = ErrConnClosed
	}
	return conn, err
}

// Close ends the socket. Connections that stand go on. It may be called again.
func (l *Listener) Close() {
	l.once.Do(func() { close(l.closed) })
	go func() { _ = l.c.w.Write(KindClose, l.id) }() // an init that reads nothing keeps only this goroutine, until its space ends
}

// tell says how the socket came about. The caller holds the lock.
func (l *Listener) tell(err error) {
	if !l.told {
		l.told, l.err = true, err
		close(l.stands)
	}
}

func (l *Listener) handle(f Frame) (over bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch f.Kind {
	case KindServing:
		port, err := DecodePort(f.Body)
		if err != nil {
			return false, err
		}
		if l.told {
			return false, fmt.Errorf("%w: a socket that was made twice", ErrProtocol)
		}
		l.port = port
		l.tell(nil)
		return false, nil
	case KindUnreached:
		if l.told || len(f.Body) == 0 {
			return false, fmt.Errorf("%w: a socket that was refused after it stood", ErrProtocol)
		}
		why := printable(f.Body[1:])
		if f.Body[0] == Full {
			why = "the space has as many open files as it may"
		}
		l.tell(fmt.Errorf("%w: %s", ErrUnreached, why))
		return true, nil
	case KindClosed:
		if len(f.Body) > 0 {
			return false, fmt.Errorf("%w: a malformed end of a socket", ErrProtocol)
		}
		l.tell(ErrConnClosed)
		l.once.Do(func() { close(l.closed) })
		return true, nil
	}
	return false, fmt.Errorf("%w: frame %d is not for a socket", ErrProtocol, f.Kind)
}

func (l *Listener) lost(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tell(err)
	l.once.Do(func() { close(l.closed) })
}
