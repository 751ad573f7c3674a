package spaceinit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect returns a client and the other end, on which the test plays the init. The greeting has been exchanged.
func connect(t *testing.T) (*Client, *peer) {
	t.Helper()
	ours, theirs := net.Pipe()
	p := &peer{conn: theirs, r: NewReader(theirs, MaxRequest), w: NewWriter(theirs)}
	go func() { _ = p.w.Write(KindReady, 0, Ready{Version: Version, Landlock: 3}.Encode()) }()
	c, ready, err := Connect(t.Context(), ours)
	if err != nil || ready.Landlock != 3 {
		t.Fatalf("connect: got %+v, %v", ready, err)
	}
	t.Cleanup(func() {
		_ = theirs.Close()
		c.Close()
	})
	return c, p
}

type peer struct {
	conn net.Conn
	r    *Reader
	w    *Writer
}

// expect reads frames up to one of a kind.
func (p *peer) expect(t *testing.T, kind Kind) Frame {
	t.Helper()
	for {
		f, err := p.r.Next()
		if err != nil {
			t.Errorf("wait for frame %d: %v", kind, err)
			return Frame{}
		}
		if f.Kind == kind {
			return f
		}
	}
}

type outcome struct {
	exit Exit
	err  error
	out  string
}

// run runs a command beside the test.
func run(ctx context.Context, c *Client, stdin string, expire <-chan time.Time) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		var out strings.Builder
		exit, err := c.Run(ctx, Exec{Argv: []string{"x"}, Cwd: "/"}, []byte(stdin), expire, func(ch Channel, p []byte) error {
			out.WriteByte("?12"[ch])
			out.Write(p)
			return nil
		})
		done <- outcome{exit, err, out.String()}
	}()
	return done
}

func (p *peer) data(id uint32, c Channel, text string) error {
	return p.w.Write(KindData, id, []byte{byte(c)}, []byte(text))
}

func TestRun(t *testing.T) {
	c, p := connect(t)
	done := run(t.Context(), c, "input", nil)
	id := p.expect(t, KindExec).ID
	if f := p.expect(t, KindData); string(f.Body) != "\x00input" {
		t.Errorf("input: got %q", f.Body)
	}
	if f := p.expect(t, KindData); string(f.Body) != "\x00" {
		t.Errorf("end of the input: got %q", f.Body)
	}
	for _, err := range []error{
		p.w.Write(KindStarted, id), p.data(id, Stdout, "a"), p.data(id, Stderr, "b"), p.data(id, Stdout, "c"), p.w.Write(KindExit, id,
			Exit{Code: 3}.Encode()),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, p.conn) }() // credit
	if got := <-done; got.err != nil || got.exit.Code != 3 || got.out != "1a2b1c" {
		t.Errorf("got %+v", got)
	}
}

// TestInputWaitsForCredit sends more input than the window: the rest follows when the init has taken some.
func TestInputWaitsForCredit(t *testing.T) {
	c, p := connect(t)
	input := strings.Repeat("0123456789abcdef", 3*Window/16)
	done := run(t.Context(), c, input, nil)
	id := p.expect(t, KindExec).ID
	var got bytes.Buffer
	taken := 0
	for {
		_, data, err := DecodeData(p.expect(t, KindData).Body)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) == 0 {
			break
		}
		got.Write(data)
		if under := got.Len() - taken; under > Window {
			t.Fatalf("%d bytes under way, more than %d", under, Window)
		} else if under == Window {
			if err := p.w.Write(KindCredit, id, EncodeCredit(Stdin, Window)); err != nil {
				t.Fatal(err)
			}
			taken += Window
		}
	}
	if got.String() != input {
		t.Errorf("got %d bytes of input, want %d", got.Len(), len(input))
	}
	if err := p.w.Write(KindExit, id, Exit{}.Encode()); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got.err != nil {
		t.Error(got.err)
	}
}

func TestKill(t *testing.T) {
	for name, c := range map[string]struct {
		expire bool
		grace  time.Duration
	}{"cancelled": {false, 0}, "out of time": {true, Grace}} {
		t.Run(name, func(t *testing.T) {
			client, p := connect(t)
			ctx, cancel := context.WithCancel(t.Context())
			expire := make(chan time.Time, 1)
			done := run(ctx, client, "", expire)
			id := p.expect(t, KindExec).ID
			if c.expire {
				expire <- time.Time{}
			} else {
				cancel()
			}
			f := p.expect(t, KindKill)
			if d, err := DecodeKill(f.Body); err != nil || d != c.grace || f.ID != id {
				t.Errorf("got a kill of %d with %v, %v, want %v", f.ID, d, err, c.grace)
			}
			if c.expire {
				cancel() // out of patience: at once now
				if d, err := DecodeKill(p.expect(t, KindKill).Body); err != nil || d != 0 {
					t.Errorf("got a second kill with %v, %v, want none", d, err)
				}
			}
			if err := p.w.Write(KindExit, id, Exit{Code: 137, Signal: 9, Killed: true}.Encode()); err != nil {
				t.Fatal(err)
			}
			if got := <-done; got.err != nil || !got.exit.Killed {
				t.Errorf("got %+v", got)
			}
			cancel()
		})
	}
}

func TestPing(t *testing.T) {
	c, p := connect(t)
	go func() {
		p.expect(t, KindPing)
		_ = p.w.Write(KindPong, 0)
	}()
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestHostileInit plays inits that break the protocol in every way: the connection ends, the command gets an error, and nothing hangs.
func TestHostileInit(t *testing.T) {
	full := func(p *peer, id uint32) {
		for range 2*Window/MaxData + 1 {
			_ = p.data(id, Stdout, strings.Repeat("x", MaxData))
		}
	}
	for name, breach := range map[string]func(*peer, uint32){
		"a frame for nobody":          func(p *peer, _ uint32) { _ = p.w.Write(KindExit, 4711, Exit{}.Encode()) },
		"a frame for the space":       func(p *peer, _ uint32) { _ = p.w.Write(KindReady, 0, Ready{}.Encode()) },
		"a frame that is the other's": func(p *peer, id uint32) { _ = p.w.Write(KindExec, id) },
		"an unknown frame":            func(p *peer, id uint32) { _ = p.w.Write(99, id) },
		"a frame that is too large":   func(p *peer, id uint32) { _ = p.w.Write(KindData, id, make([]byte, MaxReply+1)) },
		"data of stdin":               func(p *peer, id uint32) { _ = p.data(id, Stdin, "x") },
		"data of no channel":          func(p *peer, id uint32) { _ = p.data(id, 7, "x") },
		"empty data":                  func(p *peer, id uint32) { _ = p.data(id, Stdout, "") },
		"more output than asked for":  full,
		"credit for nothing":          func(p *peer, id uint32) { _ = p.w.Write(KindCredit, id, EncodeCredit(Stdin, 1)) },
		"credit for output":           func(p *peer, id uint32) { _ = p.w.Write(KindCredit, id, EncodeCredit(Stdout, 0)) },
		"two starts": func(p *peer, id uint32) {
			_ = p.w.Write(KindStarted, id)
			_ = p.w.Write(KindStarted, id)
		},
		"a refusal of what has started": func(p *peer, id uint32) {
			_ = p.w.Write(KindStarted, id)
			_ = p.w.Write(KindRefused, id, []byte("no"))
		},
		"two ends": func(p *peer, id uint32) {
			_ = p.data(id, Stdout, "x") // held back, so that the first end is not taken yet
			_ = p.w.Write(KindExit, id, Exit{}.Encode())
			_ = p.w.Write(KindExit, id, Exit{Code: 1}.Encode())
		},
		"output after the end": func(p *peer, id uint32) {
			_ = p.data(id, Stdout, "x")
			_ = p.w.Write(KindExit, id, Exit{}.Encode())
			_ = p.data(id, Stdout, "y")
		},
		"an exit by an unknown signal": func(p *peer, id uint32) { _ = p.w.Write(KindExit, id, []byte{0, 65, 0}) },
		"a malformed exit":             func(p *peer, id uint32) { _ = p.w.Write(KindExit, id, []byte{1}) },
		"an answer to no question":     func(p *peer, _ uint32) { _ = p.w.Write(KindPong, 0) },
		"half a frame":                 func(p *peer, _ uint32) { _, _ = p.conn.Write([]byte{9, 0}); _ = p.conn.Close() },
		"an end":                       func(p *peer, _ uint32) { _ = p.conn.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			c, p := connect(t)
			hold := make(chan struct{})
			done := make(chan error, 1)
			go func() {
				_, err := c.Run(t.Context(), Exec{Argv: []string{"x"}}, nil, nil, func(Channel, []byte) error {
					<-hold // so that nothing is credited
					return nil
				})
				done <- err
			}()
			id := p.expect(t, KindExec).ID
			go func() { _, _ = io.Copy(io.Discard, p.conn) }()
			breach(p, id)
			<-c.Ended()
			close(hold)
			said := name == "two ends" || name == "output after the end" // how the command ended, before the breach
			if err := <-done; !said && !errors.Is(err, ErrEnded) || said && err != nil {
				t.Errorf("got %v, want that the space has ended, or what was said before", err)
			}
			if _, err := c.Run(t.Context(), Exec{Argv: []string{"x"}}, nil, nil, nil); !errors.Is(err, ErrEnded) {
				t.Errorf("a command afterwards: got %v", err)
			}
			if err := c.Ping(t.Context()); !errors.Is(err, ErrEnded) {
				t.Errorf("a question afterwards: got %v", err)
			}
		})
	}
}

func TestAfterItsEnd(t *testing.T) {
	c, p := connect(t)
	done := run(t.Context(), c, "", nil)
	id := p.expect(t, KindExec).ID
	if err := p.w.Write(KindExit, id, Exit{}.Encode()); err != nil {
		t.Fatal(err)
	}
	<-done
	// A late frame of a command that is over is dropped, not taken for a breach.
	if err := p.w.Write(KindCredit, id, EncodeCredit(Stdin, 0)); err != nil {
		t.Fatal(err)
	}
	done = run(t.Context(), c, "", nil)
	next := p.expect(t, KindExec).ID
	if next == id {
		t.Errorf("the id %d was used twice", id)
	}
	if err := p.w.Write(KindRefused, next, []byte("no\nway \x1b[31m"), bytes.Repeat([]byte("x"), 1000)); err != nil {
		t.Fatal(err)
	}
	if got := <-done; !errors.Is(got.err, ErrRefused) || strings.ContainsAny(got.err.Error(), "\n\x1b") || len(got.err.Error()) > 400 {
		t.Errorf("got %q, want a refusal that may be shown", got.err)
	}
}

// TestWhatWasSaidBeforeTheEnd has an init die right after it has told how a command ended: that counts, though nobody takes its credit.
func TestWhatWasSaidBeforeTheEnd(t *testing.T) {
	c, p := connect(t)
	hold := make(chan struct{})
	done := make(chan outcome, 1)
	go func() {
		var out strings.Builder
		exit, err := c.Run(t.Context(), Exec{Argv: []string{"x"}}, nil, nil, func(_ Channel, piece []byte) error {
			<-hold
			out.Write(piece)
			return nil
		})
		done <- outcome{exit, err, out.String()}
	}()
	id := p.expect(t, KindExec).ID
	if err := errors.Join(p.data(id, Stdout, "a"), p.data(id, Stderr, "b"), p.w.Write(KindExit, id, Exit{Code: 3}.Encode()),
		p.conn.Close()); err != nil {
		t.Fatal(err)
	}
	c.Drain(time.Minute)
	close(hold)
	if got := <-done; got.err != nil || got.exit.Code != 3 || got.out != "ab" {
		t.Errorf("got %+v, want what was said", got)
	}
}

// TestFloodsOfAnEndedCommand has inits go on about a command that is over: a few frames of credit may have been under way, more end the
// space.
func TestFloodsOfAnEndedCommand(t *testing.T) {
	for name, c := range map[string]struct {
		kind   Kind
		body   []byte
		frames int
		ends   bool
	}{
		"credit that was under way": {KindCredit, EncodeCredit(Stdin, 1), MaxCommands, false},
		"more credit than that":     {KindCredit, EncodeCredit(Stdin, 1), MaxCommands + 1, true},
		"output":                    {KindData, []byte("\x01x"), 1, true},
		"an end":                    {KindExit, Exit{}.Encode(), 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			client, p := connect(t)
			done := run(t.Context(), client, "", nil)
			id := p.expect(t, KindExec).ID
			if err := p.w.Write(KindExit, id, Exit{}.Encode()); err != nil {
				t.Fatal(err)
			}
			<-done
			for range c.frames {
				_ = p.w.Write(c.kind, id, c.body)
			}
			if c.ends {
				<-client.Ended()
				return
			}
			go func() { p.expect(t, KindPing); _ = p.w.Write(KindPong, 0) }()
			if err := client.Ping(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestGreeting(t *testing.T) {
	for name, c := range map[string]struct {
		kind Kind
		body []byte
		want string
	}{
		"failed":          {KindFailed, []byte("no mounts"), "no mounts"},
		"another version": {KindReady, Ready{Version: Version + 1}.Encode(), "version"},
		"malformed":       {KindReady, []byte{1}, "greeting"},
		"something else":  {KindExit, nil, "before the greeting"},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			go func() { _ = NewWriter(theirs).Write(c.kind, 0, c.body) }()
			if _, _, err := Connect(t.Context(), ours); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	t.Run("silent", func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer func() { _ = theirs.Close() }()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := Connect(ctx, ours); err == nil {
			t.Error("got no error")
		}
	})
}

// FuzzInit feeds a client whatever an init may say while a command is under way.
func FuzzInit(f *testing.F) {
	seed := func(write func(*peer)) {
		var b bytes.Buffer
		write(&peer{w: NewWriter(&b)})
		f.Add(b.Bytes())
	}
	seed(func(p *peer) { _ = p.w.Write(KindExit, 1, Exit{Code: 1}.Encode()) })
	seed(func(p *peer) { _ = p.data(1, Stdout, "hello"); _ = p.w.Write(KindExit, 1, Exit{Signal: 9}.Encode()) })
	seed(func(p *peer) { _ = p.w.Write(KindRefused, 1, []byte("no")) })
	seed(func(p *peer) { _ = p.w.Write(KindPong, 0) })
	f.Add([]byte("\xff\xff\xff\xff\x10\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, said []byte) {
		ours, theirs := net.Pipe()
		go func() {
			_ = NewWriter(theirs).Write(KindReady, 0, Ready{Version: Version}.Encode())
			r := NewReader(theirs, MaxRequest)
			for {
				f, err := r.Next()
				if err != nil || f.Kind == KindExec {
					break
				}
			}
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			_, _ = theirs.Write(said)
			_ = theirs.Close()
		}()
		c, _, err := Connect(t.Context(), ours)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		total := 0
		_, err = c.Run(t.Context(), Exec{Argv: []string{"x"}}, nil, nil, func(_ Channel, p []byte) error {
			total += len(p)
			return nil
		})
		if err != nil && !errors.Is(err, ErrEnded) && !errors.Is(err, ErrRefused) {
			t.Errorf("got %v", err)
		}
		if total > len(said) {
			t.Errorf("got %d bytes of output from %d", total, len(said))
		}
	})
}
