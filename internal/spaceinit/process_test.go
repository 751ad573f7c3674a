package spaceinit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"
)

// begin starts a command with input on a connection whose other end the test plays. The returned channel tells how it ended.
func begin(t *testing.T, c *Client, p *peer) (*Process, uint32, <-chan outcome) {
	t.Helper()
	started := make(chan *Process, 1)
	done := make(chan outcome, 1)
	go func() {
		process, err := c.Start(Exec{Argv: []string{"x"}, Cwd: "/", Stdin: true})
		if err != nil {
			t.Error(err)
		}
		started <- process
		exit, err := process.Wait(t.Context(), nil, func(Channel, []byte) error { return nil })
		done <- outcome{exit: exit, err: err}
	}()
	id := p.expect(t, KindExec).ID
	return <-started, id, done
}

// TestSendIsAllOrNothing: what there is no room for is not sent, and what comes later keeps its order.
func TestSendIsAllOrNothing(t *testing.T) {
	c, p := connect(t)
	process, id, done := begin(t, c, p)
	frames := make(chan []byte, 64)
	go func() {
		defer close(frames)
		for {
			f, err := p.r.Next()
			if err != nil {
				return
			}
			if f.Kind == KindData {
				frames <- bytes.Clone(f.Body[1:])
			}
		}
	}()
	take := func(n int) {
		t.Helper()
		for n > 0 {
			n -= len(<-frames)
		}
	}
	if err := process.Send(t.Context(), make([]byte, Window-1), nil); err != nil {
		t.Fatal(err)
	}
	take(Window - 1)
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := process.Send(soon, []byte("ab"), func() error { t.Error("it was begun without room"); return nil }); !errors.Is(err, ErrFull) {
		t.Errorf("without room: got %v, want ErrFull", err)
	}
	if err := process.Send(t.Context(), []byte("c"), nil); err != nil {
		t.Fatal(err)
	}
	if got := <-frames; string(got) != "c" {
		t.Errorf("got %q, want c alone", got)
	}
	if err := process.Send(t.Context(), make([]byte, Window+1), nil); !errors.Is(err, ErrFull) {
		t.Errorf("more than a window: got %v, want ErrFull", err)
	}
	if err := p.w.Write(KindCredit, id, EncodeCredit(Stdin, Window)); err != nil {
		t.Fatal(err)
	}
	if err := process.Send(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	if got := <-frames; len(got) != 0 {
		t.Errorf("the end of the input: got %q", got)
	}
	if err := process.Send(t.Context(), []byte("d"), nil); !errors.Is(err, ErrShut) {
		t.Errorf("behind the end: got %v, want ErrShut", err)
	}
	if err := p.w.Write(KindExit, id, Exit{}.Encode()); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got.err != nil {
		t.Error(got.err)
	}
	for name, err := range map[string]error{"input": process.Send(t.Context(), []byte("x"), nil), "a signal": process.Signal(9),
		"a size": process.Resize(Size{1, 1})} {
		if !errors.Is(err, ErrOver) {
			t.Errorf("%s after the end: got %v, want ErrOver", name, err)
		}
	}
}

// TestHostileProcess: an init that says of the input what cannot be loses its connection, and those who wait for room learn of it.
func TestHostileProcess(t *testing.T) {
	for name, say := range map[string]func(p *peer, id uint32) error{
		"credit that nobody gave": func(p *peer, id uint32) error { return p.w.Write(KindCredit, id, EncodeCredit(Stdin, 1)) },
		"shut with words":         func(p *peer, id uint32) error { return p.w.Write(KindShut, id, []byte("x")) },
		"shut twice": func(p *peer, id uint32) error {
			return errors.Join(p.w.Write(KindShut, id), p.w.Write(KindShut, id))
		},
		"a signal of the init":     func(p *peer, id uint32) error { return p.w.Write(KindSignal, id, EncodeSignal(9)) },
		"a size of the init":       func(p *peer, id uint32) error { return p.w.Write(KindResize, id, EncodeResize(Size{1, 1})) },
		"shut of no command":       func(p *peer, id uint32) error { return p.w.Write(KindShut, id+1) },
		"shut for the whole space": func(p *peer, _ uint32) error { return p.w.Write(KindShut, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			c, p := connect(t)
			process, id, done := begin(t, c, p)
			go func() { _, _ = io.Copy(io.Discard, p.conn) }()
			if err := say(p, id); err != nil && !errors.Is(err, io.ErrClosedPipe) {
				t.Fatal(err)
			}
			if got := <-done; !errors.Is(got.err, ErrEnded) {
				t.Errorf("got %+v, want the end of the space", got)
			}
			if err := process.Send(t.Context(), []byte("x"), nil); err == nil {
				t.Error("input was taken after the end of the space")
			}
		})
	}
}

// TestAnInitThatReadsNothing keeps a sender only until its patience ends. The input is under way then, and what comes behind it is refused.
func TestAnInitThatReadsNothing(t *testing.T) {
	c, p := connect(t)
	process, _, done := begin(t, c, p)
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := process.Send(soon, []byte("x"), nil); err != nil {
		t.Errorf("input that there is room for: %v", err)
	}
	if err := process.Send(soon, []byte("y"), nil); !errors.Is(err, ErrFull) {
		t.Errorf("behind it: got %v, want ErrFull", err)
	}
	_ = p.conn.Close()
	if got := <-done; !errors.Is(got.err, ErrEnded) {
		t.Errorf("got %+v, want the end of the space", got)
	}
}
