package spaceinit

import (
	"context"
	"fmt"
	"time"
)

// The ways in which a command under way does not take what it is sent.
var (
	// ErrFull says that the command has not read earlier input yet. Nothing was sent.
	ErrFull = fmt.Errorf("the command has %d bytes of input that it did not read yet", Window)
	// ErrShut says that the command takes no more input: it has closed it, or its end was sent.
	ErrShut = fmt.Errorf("the command takes no more input")
	// ErrOver says that the command has ended.
	ErrOver = fmt.Errorf("the command has ended")
)

// Process is a command under way. One goroutine calls Wait, once; the other methods may be called from any goroutine, also after the end.
type Process struct {
	c    *Client
	id   uint32
	call *call
	line chan struct{} // holds a token while somebody sends input
	shut bool          // the end of the input was sent; under line
}

// Run starts a command, sends its input, passes its output on as it comes and returns how it ended: see Wait.
func (c *Client) Run(ctx context.Context, x Exec, stdin []byte, expire <-chan time.Time, out Output) (Exit, error) {
	if x.Stdin = len(stdin) > 0; !x.Stdin {
		stdin = nil
	}
	p, err := c.Start(x)
	if err != nil {
		return Exit{}, err
	}
	return p.wait(ctx, stdin, expire, out)
}

// Start starts a command. The caller has to call Wait. The input of a command with Stdin or Terminal comes by Send.
func (c *Client) Start(x Exec) (*Process, error) {
	id, call, err := c.start(x)
	if err != nil {
		return nil, err
	}
	return &Process{c: c, id: id, call: call, line: make(chan struct{}, 1), shut: !x.Stdin && x.Terminal == nil}, nil
}

// Wait passes the output of the command on as it comes and returns how it ended. When it returns without an error, no process of the
// command is left. Ending ctx kills the command at once; a value or the closing of expire gives it Grace first. Both let Wait wait for the
// end of the command, whose Exit then says Killed.
func (p *Process) Wait(ctx context.Context, expire <-chan time.Time, out Output) (Exit, error) {
	return p.wait(ctx, nil, expire, out)
}

// wait is Wait that sends all input of the command, where there is any.
func (p *Process) wait(ctx context.Context, stdin []byte, expire <-chan time.Time, out Output) (Exit, error) {
	c, id, call := p.c, p.id, p.call
	defer c.forget(id)
	done := ctx.Done()
	var fault error // of out; the command is being killed for it
	ended := false
	for {
		piece, exit, err := call.next()
		switch {
		case err != nil:
			return Exit{}, err
		case piece.bytes != nil:
			if fault == nil {
				if fault = out(piece.channel, piece.bytes); fault != nil {
					done, expire = nil, nil
					if err := c.w.Write(KindKill, id, EncodeKill(0)); err != nil {
						return Exit{}, c.gone(err)
					}
				}
			}
			call.taken(len(piece.bytes))
			// An init that is gone takes no credit. Its earlier frames still count, and the reader finds their end.
			_ = c.w.Write(KindCredit, id, EncodeCredit(piece.channel, len(piece.bytes)))
			continue
		case exit != nil:
			return *exit, fault
		case ended:
			return Exit{}, c.gone(nil)
		}
		if stdin != nil {
			if stdin, err = c.feed(id, call, stdin); err != nil {
				return Exit{}, c.gone(err)
			}
		}
		select {
		case <-call.wake:
		case <-done:
			done, expire = nil, nil
			if err := c.w.Write(KindKill, id, EncodeKill(0)); err != nil {
				return Exit{}, c.gone(err)
			}
		case <-expire:
			expire = nil
			if err := c.w.Write(KindKill, id, EncodeKill(Grace)); err != nil {
				return Exit{}, c.gone(err)
			}
		case <-c.ended:
			ended = true // what came before the end still counts
		}
	}
}

// feed sends as much input as there is credit for, and the end of it; it returns what is left, nil when the end was sent.
func (c *Client) feed(id uint32, call *call, stdin []byte) ([]byte, error) {
	for {
		n := call.spend(min(len(stdin), MaxData))
		if n == 0 && len(stdin) > 0 {
			return stdin, nil
		}
		if err := c.w.Write(KindData, id, []byte{byte(Stdin)}, stdin[:n]); err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, nil
		}
		stdin = stdin[n:]
	}
}

// Send waits until the command has room for all of the input and sends it; an empty one is the end of the input. It takes all or nothing:
// ErrFull means that ctx ended before there was room. Input that there is room for is taken, although an init may read it late. Before,
// unless it is nil, is called when there is room; an error of it is returned, and nothing is sent. Input keeps the order in which Send was
// called.
func (p *Process) Send(ctx context.Context, input []byte, before func() error) error {
	if len(input) > Window {
		return fmt.Errorf("%w: %d bytes are more than it takes at once", ErrFull, len(input))
	}
	select {
	case p.line <- struct{}{}:
	case <-ctx.Done():
		return ErrFull
	}
	err := p.reserve(ctx, len(input))
	if err == nil && before != nil {
		err = before()
	}
	if err != nil {
		<-p.line
		return err
	}
	p.shut = len(input) == 0
	p.call.spend(len(input))
	sent := make(chan error, 1)
	go func() { // an init that reads nothing keeps only this goroutine, until its space ends
		defer func() { <-p.line }()
		sent <- p.send(input)
	}()
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		return nil // it is under way, before whatever follows
	}
}

func (p *Process) send(input []byte) error {
	for {
		n := min(len(input), MaxData)
		if err := p.c.w.Write(KindData, p.id, []byte{byte(Stdin)}, input[:n]); err != nil {
			return p.c.gone(err)
		}
		if input = input[n:]; len(input) == 0 {
			return nil
		}
	}
}

// reserve waits until the command takes n bytes of input.
func (p *Process) reserve(ctx context.Context, n int) error {
	for {
		err := p.call.over()
		switch {
		case err != nil:
			return err
		case p.shut || p.call.closed():
			return ErrShut
		case p.call.has(n):
			return nil
		}
		select {
		case <-p.call.credited:
		case <-ctx.Done():
			return ErrFull
		case <-p.c.ended:
			return p.c.gone(nil)
		}
	}
}

// Signal sends a signal to the process group of the command, and to the one in the foreground of its terminal.
func (p *Process) Signal(number uint8) error {
	if err := p.call.over(); err != nil {
		return err
	}
	if err := p.c.w.Write(KindSignal, p.id, EncodeSignal(number)); err != nil {
		return p.c.gone(err)
	}
	return nil
}

// Resize gives the terminal of the command another size.
func (p *Process) Resize(size Size) error {
	if err := p.call.over(); err != nil {
		return err
	}
	if err := p.c.w.Write(KindResize, p.id, EncodeResize(size)); err != nil {
		return p.c.gone(err)
	}
	return nil
}

// over returns why the command takes nothing any more; nil while it may.
func (k *call) over() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.exit != nil {
		return ErrOver
	}
	return k.refused
}

// closed reports whether the command has closed its input.
func (k *call) closed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.shut
}

// has reports whether n bytes of input may be sent.
func (k *call) has(n int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.credit >= n
}
