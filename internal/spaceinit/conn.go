package spaceinit

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// The bounds of connections to ports of a space.
const (
	// MaxConns is how many connections to ports of one space may be open or being opened.
	MaxConns = 64
	// MaxServers is how many sockets of one space may lead to the daemon.
	MaxServers = 4
	// MaxListening is the most listening sockets that an init names.
	MaxListening = 256
)

// The ways in which a connection to a port of a space does not come about.
var (
	// ErrNobody says that no process of the space listens on the port.
	ErrNobody = errors.New("nothing listens on the port")
	// ErrConns says that MaxConns are open.
	ErrConns = fmt.Errorf("%d connections to ports of this space are open", MaxConns)
	// ErrUnreached is wrapped by the errors of connections that could not be opened for another reason.
	ErrUnreached = errors.New("the port could not be reached")
	// ErrConnClosed says that the connection was closed on this side.
	ErrConnClosed = errors.New("the connection is closed")
)

// Listening is a listening socket of TCP in a space.
type Listening struct {
	Port uint16
	Six  bool // of IPv6; a socket of IPv6 may take connections of IPv4 too
	Any  bool // it listens on every address of the space, not on one of loopback
}

// EncodePort returns the body of KindDial.
func EncodePort(port uint16) []byte { return binary.LittleEndian.AppendUint16(nil, port) }

// DecodePort reads the body of KindDial.
func DecodePort(body []byte) (uint16, error) {
	if len(body) != 2 || binary.LittleEndian.Uint16(body) == 0 {
		return 0, fmt.Errorf("%w: a malformed port", ErrProtocol)
	}
	return binary.LittleEndian.Uint16(body), nil
}

// EncodeListening returns the body of KindListening.
func EncodeListening(all []Listening) []byte {
	var e encoder
	e.u32(uint32(len(all)))
	for _, l := range all {
		e.b = binary.LittleEndian.AppendUint16(e.b, l.Port)
		e.flag(l.Six)
		e.flag(l.Any)
	}
	return e.b
}

// DecodeListening reads the body of KindListening.
func DecodeListening(body []byte) ([]Listening, error) {
	const size = 4
	d := decoder{b: body}
	n := d.count(size)
	if n > MaxListening {
		d.bad = true
	}
	var all []Listening
	for range n {
		port := d.take(2)
		if d.bad {
			break
		}
		l := Listening{Port: binary.LittleEndian.Uint16(port), Six: d.flag(), Any: d.flag()}
		if l.Port == 0 {
			d.bad = true
		}
		all = append(all, l)
	}
	if err := d.end("list of ports"); err != nil {
		return nil, err
	}
	return all, nil
}

// The answers of an init to KindDial that is refused: the body of KindUnreached.
const (
	Nobody    = 1 // nothing listens on the port
	Full      = 2 // the space has as many open files as it may
	Unreached = 3 // something else
)

// frameHandler reads the frames of an id that is not a command's.
type frameHandler interface {
	// take adds what a frame says; over means that no other frame of the id follows.
	handle(f Frame) (over bool, err error)
	// lost is called when the connection to the init has ended.
	lost(err error)
}

// Conn is a connection to a port of a space. Read, Write and the two ways to close may be called from different goroutines.
type Conn struct {
	c    *Client
	id   uint32
	gone chan struct{} // closed when over is set

	mu      sync.Mutex
	changed chan struct{} // closed and made anew when something below changes
	pieces  [][]byte      // what came and was not read
	waiting int           // bytes that came and were not credited
	credit  int           // bytes that may be sent
	opened  bool
	ended   bool  // the space sends nothing more
	shut    bool  // the space takes nothing more
	over    bool  // the init has closed the connection
	done    bool  // this side has sent the end of what it sends
	closed  bool  // this side has closed the connection
	err     error // why it did not come about, or broke
}

// Dial opens a connection to a TCP port of the space's loopback interface, of IPv4 or else of IPv6. It returns ErrNobody, ErrConns, an
// error that wraps ErrUnreached, ErrEnded if the space ends, and the cause of ctx if that ends before.
func (c *Client) Dial(ctx context.Context, port uint16) (*Conn, error) {
	return c.connect(ctx, KindDial, EncodePort(port))
}

// connect asks for a connection and waits until it stands.
func (c *Client) connect(ctx context.Context, kind Kind, body []byte) (*Conn, error) {
	l := &Conn{c: c, gone: make(chan struct{}), changed: make(chan struct{}), credit: Window}
	var err error
	if l.id, err = c.enter(l); err != nil {
		return nil, err
	}
	if err := c.say(ctx, kind, l.id, body); err != nil {
		_ = l.Close() // returns no error
		return nil, err
	}
	for {
		l.mu.Lock()
		opened, failed, wait := l.opened, l.err, l.changed
		l.mu.Unlock()
		switch {
		case failed != nil:
			return nil, failed
		case opened:
			return l, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			_ = l.Close() // returns no error
			return nil, context.Cause(ctx)
		}
	}
}

// enter registers what takes the frames of a new id.
func (c *Client) enter(t frameHandler) (uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	if len(c.handlers) >= MaxConns {
		return 0, ErrConns
	}
	c.next++
	c.handlers[c.next] = t
	return c.next, nil
}

// say writes a frame without waiting longer than ctx for an init that reads nothing. Then the frame is sent once the init reads.
func (c *Client) say(ctx context.Context, kind Kind, id uint32, parts ...[]byte) error {
	sent := make(chan error, 1)
	go func() { sent <- c.w.Write(kind, id, parts...) }() // an init that reads nothing keeps only this goroutine, until its space ends
	select {
	case err := <-sent:
		if err != nil {
			return c.gone(err)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.ended:
		return c.gone(nil)
	}
}

// signal wakes every goroutine that waits. The caller holds the lock.
func (l *Conn) signal() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *Conn) handle(f Frame) (over bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.signal()
	if !l.opened && f.Kind != KindOpened && f.Kind != KindUnreached && f.Kind != KindClosed {
		return false, fmt.Errorf("%w: frame %d of a connection that does not stand", ErrProtocol, f.Kind)
	}
	switch f.Kind {
	case KindOpened:
		if l.opened || len(f.Body) > 0 {
			return false, fmt.Errorf("%w: a connection that was opened twice", ErrProtocol)
		}
		l.opened = true
	case KindUnreached:
		if l.opened || len(f.Body) == 0 {
			return false, fmt.Errorf("%w: a connection that was refused after it stood", ErrProtocol)
		}
		switch f.Body[0] {
		case Nobody:
			l.err = ErrNobody
		case Full:
			l.err = fmt.Errorf("%w: the space has as many open files as it may", ErrUnreached)
		default:
			l.err = fmt.Errorf("%w: %s", ErrUnreached, printable(f.Body[1:]))
		}
		l.end()
	case KindData:
		channel, data, err := DecodeData(f.Body)
		switch {
		case err != nil:
			return false, err
		case channel != Stdout || l.ended:
			return false, fmt.Errorf("%w: data of a connection on channel %d, or after its end", ErrProtocol, channel)
		case len(data) == 0:
			l.ended = true
			return false, nil
		}
		if l.waiting += len(data); l.waiting > Window {
			return false, fmt.Errorf("%w: more of a connection than was asked for", ErrProtocol)
		}
		if !l.closed { // what nobody reads is not kept
			l.pieces = append(l.pieces, bytes.Clone(data))
		}
	case KindCredit:
		channel, n, err := DecodeCredit(f.Body)
		if err != nil {
			return false, err
		}
		if l.credit += n; channel != Stdin || n == 0 || l.credit > Window {
			return false, fmt.Errorf("%w: credit for what was not sent", ErrProtocol)
		}
	case KindShut:
		if len(f.Body) > 0 || l.shut {
			return false, fmt.Errorf("%w: an end of a connection that cannot be", ErrProtocol)
		}
		l.shut = true
	case KindClosed:
		if len(f.Body) > 0 {
			return false, fmt.Errorf("%w: a malformed end of a connection", ErrProtocol)
		}
		if !l.opened && l.err == nil {
			l.err = ErrConnClosed
		}
		l.end()
	default:
		return false, fmt.Errorf("%w: frame %d is not for a connection", ErrProtocol, f.Kind)
	}
	return l.over, nil
}

func (l *Conn) lost(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	l.end()
	l.signal()
}

// end notes that the init has closed the connection. The caller holds the lock.
func (l *Conn) end() {
	if !l.over {
		l.over = true
		close(l.gone)
	}
}

// Over is closed when the connection is over in the space: all that was sent has been taken or dropped there, and nothing more comes.
func (l *Conn) Over() <-chan struct{} { return l.gone }

// Read reads what the space sent. At the end of that it returns io.EOF; if the connection broke before, io.ErrUnexpectedEOF or why.
func (l *Conn) Read(p []byte) (int, error) {
	for {
		l.mu.Lock()
		switch {
		case l.closed:
			l.mu.Unlock()
			return 0, ErrConnClosed
		case len(l.pieces) > 0:
			n := copy(p, l.pieces[0])
			if l.pieces[0] = l.pieces[0][n:]; len(l.pieces[0]) == 0 {
				l.pieces = l.pieces[1:]
			}
			l.waiting -= n
			over := l.over
			l.mu.Unlock()
			if n > 0 && !over {
				_ = l.post(KindCredit, EncodeCredit(Stdout, n)) // the reader finds the end of an init that is gone
			}
			return n, nil
		case l.ended:
			l.mu.Unlock()
			return 0, io.EOF
		case l.over:
			err := l.err
			l.mu.Unlock()
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		wait := l.changed
		l.mu.Unlock()
		<-wait
	}
}

// Write sends all of p, and waits while the space does not read.
func (l *Conn) Write(p []byte) (int, error) {
	sent := 0
	for sent < len(p) {
		n, err := l.reserve(min(len(p)-sent, MaxData))
		if err != nil {
			return sent, err
		}
		if err := l.post(KindData, append([]byte{byte(Stdin)}, p[sent:sent+n]...)); err != nil {
			return sent, err
		}
		sent += n
	}
	return sent, nil
}

// reserve waits until something may be sent and takes credit for at most n bytes.
func (l *Conn) reserve(n int) (int, error) {
	for {
		l.mu.Lock()
		switch {
		case l.closed || l.done:
			l.mu.Unlock()
			return 0, ErrConnClosed
		case l.shut || l.over:
			err := l.err
			l.mu.Unlock()
			if err == nil {
				err = io.ErrClosedPipe
			}
			return 0, err
		case l.credit > 0:
			n = min(n, l.credit)
			l.credit -= n
			l.mu.Unlock()
			return n, nil
		}
		wait := l.changed
		l.mu.Unlock()
		<-wait
	}
}

// CloseWrite ends the sending. Reading from the space still works.
func (l *Conn) CloseWrite() error {
	l.mu.Lock()
	again := l.done || l.closed || l.over
	l.done = true
	l.signal()
	l.mu.Unlock()
	if again {
		return nil
	}
	return l.post(KindData, []byte{byte(Stdin)})
}

// post writes a frame. It does not wait for an init that reads nothing, a frozen one for example, longer than until Close.
func (l *Conn) post(kind Kind, body []byte) error {
	sent := make(chan error, 1)
	go func() { sent <- l.c.w.Write(kind, l.id, body) }() // it ends with the space at the latest
	for {
		l.mu.Lock()
		closed, wait := l.closed, l.changed
		l.mu.Unlock()
		if closed {
			return ErrConnClosed
		}
		select {
		case err := <-sent:
			if err != nil {
				return l.c.gone(err)
			}
			return nil
		case <-wait:
		}
	}
}

// Close ends the connection at once, without waiting for the init. It may be called again.
func (l *Conn) Close() error {
	l.mu.Lock()
	again, over := l.closed, l.over
	l.closed, l.pieces = true, nil
	l.signal()
	l.mu.Unlock()
	if again || over {
		return nil
	}
	go func() { _ = l.c.w.Write(KindClose, l.id) }() // an init that reads nothing keeps only this goroutine, until its space ends
	return nil
}

// list is a question for the listening sockets.
type list struct {
	answer chan struct{} // closed when all and err are set
	all    []Listening
	err    error
}

func (q *list) handle(f Frame) (over bool, err error) {
	if f.Kind != KindListening {
		return false, fmt.Errorf("%w: frame %d is not a list of ports", ErrProtocol, f.Kind)
	}
	if q.all, err = DecodeListening(f.Body); err != nil {
		return false, err
	}
	close(q.answer)
	return true, nil
}

func (q *list) lost(err error) {
	q.err = err
	close(q.answer)
}

// Listening returns the sockets on which processes of the space listen for connections of TCP, in no order, at most MaxListening.
func (c *Client) Listening(ctx context.Context) ([]Listening, error) {
	q := &list{answer: make(chan struct{})}
	id, err := c.enter(q)
	if err != nil {
		return nil, err
	}
	if err := c.say(ctx, KindPorts, id); err != nil {
		return nil, err
	}
	select {
	case <-q.answer:
		return q.all, q.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
