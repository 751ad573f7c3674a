package spaceinit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Grace is how long a command has between SIGTERM and SIGKILL when its time has run out.
const Grace = 2 * time.Second

// The reasons why a command cannot run.
var (
	// ErrEnded says that the space has ended: its init died or closed the connection.
	ErrEnded = errors.New("the space has ended")
	// ErrRefused is wrapped by the errors of commands that the init could not start.
	ErrRefused = errors.New("the command could not be started")
	// ErrBusy says that MaxCommands are under way.
	ErrBusy = fmt.Errorf("%w: %d commands of this space are under way", ErrRefused, MaxCommands)
)

// Output takes a piece of a command's output; the slice is valid during the call. An error kills the command and is returned by Wait.
type Output func(c Channel, piece []byte) error

// Client is the daemon's side of the connection to one init. Every frame that it gets is treated as hostile: a frame that breaks the
// protocol ends the connection, and with it the space.
type Client struct {
	conn  io.ReadWriteCloser
	w     *Writer
	ended chan struct{} // closed when the reader has ended

	mu       sync.Mutex
	calls    map[uint32]*call
	handlers map[uint32]frameHandler // of ids that are no command's
	next     uint32
	pings    []chan struct{} // waiting for an answer, oldest first
	late     int             // frames since the last start that were for commands which are over
	err      error           // why it ended
}

// call is a command under way. The reader fills it; the goroutine of Wait empties it.
type call struct {
	wake   chan struct{} // holds at most one token: something changed
	frames bool          // the command has the channel Frames

	mu      sync.Mutex
	pieces  []piece
	started bool
	waiting int  // bytes of output that came and were not credited yet
	credit  int  // bytes of input that may be sent
	shut    bool // the command takes no more input
	exit    *Exit
	refused error

	credited chan struct{} // holds at most one token: there is more credit, or none will come
}

type piece struct {
	channel Channel
	bytes   []byte
}

// Send writes the setup. It fits into the buffer of a socket, so it may be sent before the init runs, which then need not wait for it.
func Send(conn io.Writer, setup *Setup) error {
	return NewWriter(conn).Write(KindSetup, 0, setup.Encode())
}

// Connect waits until the init, to which the setup was sent, says that the space stands. It owns conn from here on, also when it fails.
// Ending ctx closes the connection.
func Connect(ctx context.Context, conn io.ReadWriteCloser) (*Client, Ready, error) {
	c := &Client{conn: conn, w: NewWriter(conn), ended: make(chan struct{}), calls: map[uint32]*call{}, handlers: map[uint32]frameHandler{}}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	ready, frames, err := c.handshake()
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, Ready{}, errors.Join(err, conn.Close())
	}
	go c.read(frames)
	return c, ready, nil
}

func (c *Client) handshake() (Ready, *Reader, error) {
	frames := NewReader(bufio.NewReaderSize(c.conn, 2*MaxReply), MaxReply)
	f, err := frames.Next()
	if err != nil {
		return Ready{}, nil, fmt.Errorf("wait for the init: %w", err)
	}
	switch f.Kind {
	case KindFailed:
		return Ready{}, nil, fmt.Errorf("the init could not set the space up: %s", printable(f.Body))
	case KindReady:
		ready, err := DecodeReady(f.Body)
		if err == nil && ready.Version != Version {
			err = fmt.Errorf("%w: it speaks version %d, not %d; build it again", ErrProtocol, ready.Version, Version)
		}
		return ready, frames, err
	default:
		return Ready{}, nil, fmt.Errorf("%w: frame %d before the greeting", ErrProtocol, f.Kind)
	}
}

// Ended is closed when the connection has ended and every Wait is about to return.
func (c *Client) Ended() <-chan struct{} { return c.ended }

// Close ends the connection, and with it the space, and waits for the reader. It may be called again.
func (c *Client) Close() {
	_ = c.conn.Close() // the reader may have closed it before
	<-c.ended
}

// Drain is Close for when the init has ended. It waits at most d to read what the init sent before.
func (c *Client) Drain(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C: // somebody else has its end of the connection
	}
	c.Close()
}

// Ping waits until the init answers, ctx ends or the connection does.
func (c *Client) Ping(ctx context.Context) error {
	answer := make(chan struct{})
	c.mu.Lock()
	if len(c.pings) >= MaxCommands {
		c.mu.Unlock()
		return ErrBusy
	}
	c.pings = append(c.pings, answer)
	c.mu.Unlock()
	if err := c.w.Write(KindPing, 0); err != nil {
		return c.gone(err)
	}
	select {
	case <-answer:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.ended:
		return c.gone(nil)
	}
}

// pong hands an answer to the oldest waiting Ping.
func (c *Client) pong() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pings) == 0 {
		return fmt.Errorf("%w: an answer to no question", ErrProtocol)
	}
	close(c.pings[0])
	c.pings = c.pings[1:]
	return nil
}

// start registers a call and sends its frame.
func (c *Client) start(x Exec) (uint32, *call, error) {
	body := x.Encode()
	if len(body) > MaxRequest {
		return 0, nil, fmt.Errorf("%w: arguments and environment take %d bytes, more than %d", ErrRefused, len(body), MaxRequest)
	}
	call := &call{wake: make(chan struct{}, 1), frames: x.Frames, credited: make(chan struct{}, 1), credit: Window}
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return 0, nil, c.err
	}
	if len(c.calls) >= MaxCommands {
		c.mu.Unlock()
		return 0, nil, ErrBusy
	}
	c.next++
	id := c.next
	c.calls[id] = call
	c.late = 0
	c.mu.Unlock()
	if err := c.w.Write(KindExec, id, body); err != nil {
		c.forget(id)
		return 0, nil, c.gone(err)
	}
	return id, call, nil
}

func (c *Client) forget(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}

// gone returns why the connection ended, or the error of a write that met its end first.
func (c *Client) gone(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return c.err
	case err != nil:
		return fmt.Errorf("%w: %w", ErrEnded, err)
	default:
		return ErrEnded
	}
}

func (c *Client) read(frames *Reader) {
	err := c.readAll(frames)
	if errors.Is(err, ErrProtocol) {
		err = fmt.Errorf("%w: %w", ErrEnded, err)
	} else {
		err = ErrEnded
	}
	c.mu.Lock()
	c.err = err
	lost := c.handlers
	c.handlers = map[uint32]frameHandler{}
	c.mu.Unlock()
	for _, t := range lost {
		t.lost(err)
	}
	_ = c.conn.Close() // the init sees it and ends, if it has not
	close(c.ended)
}

// readAll takes frames until the connection ends or the init breaks the protocol.
func (c *Client) readAll(frames *Reader) error {
	for {
		f, err := frames.Next()
		if err != nil {
			return err
		}
		if f.Kind == KindPong && f.ID == 0 {
			if err := c.pong(); err != nil {
				return err
			}
			continue
		}
		known, err := c.handTo(f)
		if err != nil {
			return err
		}
		if known {
			continue
		}
		call, err := c.addressee(f)
		if err == nil && call != nil {
			err = call.handle(f)
		}
		if err != nil {
			return err
		}
	}
}

// handTo gives a frame to the receiver of its id, if there is one.
func (c *Client) handTo(f Frame) (known bool, err error) {
	c.mu.Lock()
	t := c.handlers[f.ID]
	c.mu.Unlock()
	if t == nil {
		return false, nil
	}
	over, err := t.handle(f)
	if over {
		c.mu.Lock()
		delete(c.handlers, f.ID)
		c.mu.Unlock()
	}
	return true, err
}

// addressee returns the call that a frame is for. There is none for the credit of a command that is over, which its init may have sent just
// before the end; of that it cannot have had more than so much to say.
func (c *Client) addressee(f Frame) (*call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.calls[f.ID]
	switch {
	case call != nil:
		return call, nil
	case f.ID == 0 || f.ID > c.next:
		return nil, fmt.Errorf("%w: frame %d for a command that was never started", ErrProtocol, f.Kind)
	case f.Kind != KindCredit || c.late >= MaxCommands:
		return nil, fmt.Errorf("%w: frame %d for a command that is over", ErrProtocol, f.Kind)
	}
	c.late++
	return nil, nil
}

// handle adds what a frame says to the call.
func (k *call) handle(f Frame) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if (k.exit != nil || k.refused != nil) && f.Kind != KindCredit {
		return fmt.Errorf("%w: frame %d after the end of its command", ErrProtocol, f.Kind)
	}
	switch f.Kind {
	case KindStarted:
		if k.started {
			return fmt.Errorf("%w: a command that started twice", ErrProtocol)
		}
		k.started = true
		return nil
	case KindData:
		channel, data, err := DecodeData(f.Body)
		if err != nil {
			return err
		}
		if channel == Stdin || len(data) == 0 {
			return fmt.Errorf("%w: data on channel %d, %d bytes", ErrProtocol, channel, len(data))
		}
		if channel == Frames && !k.frames {
			return fmt.Errorf("%w: a message of a command that has none", ErrProtocol)
		}
		// Each output channel has a window of its own.
		windows := 2
		if k.frames {
			windows = 3
		}
		if k.waiting += len(data); k.waiting > windows*Window {
			return fmt.Errorf("%w: more output than was asked for", ErrProtocol)
		}
		k.pieces = append(k.pieces, piece{channel, bytes.Clone(data)})
	case KindCredit:
		channel, n, err := DecodeCredit(f.Body)
		if err != nil {
			return err
		}
		if k.credit += n; channel != Stdin || n == 0 || k.credit > Window {
			return fmt.Errorf("%w: credit for what was not sent", ErrProtocol)
		}
	case KindExit:
		exit, err := DecodeExit(f.Body)
		if err != nil {
			return err
		}
		k.exit = &exit
	case KindShut:
		if len(f.Body) > 0 || k.shut {
			return fmt.Errorf("%w: an end of the input that cannot be", ErrProtocol)
		}
		k.shut = true
	case KindRefused:
		if k.started {
			return fmt.Errorf("%w: a command that was refused after it had started", ErrProtocol)
		}
		k.refused = fmt.Errorf("%w: %s", ErrRefused, printable(f.Body))
	default:
		return fmt.Errorf("%w: frame %d is not for the daemon", ErrProtocol, f.Kind)
	}
	for _, waiting := range []chan struct{}{k.wake, k.credited} {
		select {
		case waiting <- struct{}{}:
		default:
		}
	}
	return nil
}

// next returns the next piece of output, or, when there is none left, how the command ended, if it has.
func (k *call) next() (piece, *Exit, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.pieces) > 0 {
		p := k.pieces[0]
		k.pieces = k.pieces[1:]
		return p, nil, nil
	}
	return piece{}, k.exit, k.refused
}

// taken makes room for n bytes of output.
func (k *call) taken(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting -= n
}

// spend takes up to n bytes of credit.
func (k *call) spend(n int) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n = min(n, k.credit)
	k.credit -= n
	return n
}

// printable is a short text of the init, made safe to show.
func printable(text []byte) string {
	const most = 300
	if len(text) > most {
		text = text[:most]
	}
	return string(bytes.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return '?'
		}
		return r
	}, text))
}
