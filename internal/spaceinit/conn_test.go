package spaceinit

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"testing"
	"time"
)

// dialled returns a connection that the test's init has opened.
func dialled(t *testing.T, c *Client, p *peer) (*Conn, uint32) {
	t.Helper()
	type result struct {
		conn *Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		conn, err := c.Dial(t.Context(), 80)
		done <- result{conn, err}
	}()
	f := p.expect(t, KindDial)
	if port, err := DecodePort(f.Body); err != nil || port != 80 {
		t.Fatalf("the port: %d, %v", port, err)
	}
	if err := p.w.Write(KindOpened, f.ID); err != nil {
		t.Fatal(err)
	}
	got := <-done
	if got.err != nil {
		t.Fatal(got.err)
	}
	return got.conn, f.ID
}

// TestHostileConnections ends the space of an init that breaks the protocol of connections.
func TestHostileConnections(t *testing.T) {
	full := make([]byte, MaxData)
	for name, say := range map[string]func(p *peer, id uint32){
		"a second opening":      func(p *peer, id uint32) { _ = p.w.Write(KindOpened, id) },
		"a late refusal":        func(p *peer, id uint32) { _ = p.w.Write(KindUnreached, id, []byte{Nobody}) },
		"input as output":       func(p *peer, id uint32) { _ = p.data(id, Stdin, "x") },
		"data after the end":    func(p *peer, id uint32) { _ = p.data(id, Stdout, ""); _ = p.data(id, Stdout, "x") },
		"two ends of the input": func(p *peer, id uint32) { _ = p.w.Write(KindShut, id); _ = p.w.Write(KindShut, id) },
		"credit for nothing":    func(p *peer, id uint32) { _ = p.w.Write(KindCredit, id, EncodeCredit(Stdin, 1)) },
		"more than the window": func(p *peer, id uint32) {
			for range Window/MaxData + 1 {
				_ = p.w.Write(KindData, id, []byte{byte(Stdout)}, full)
			}
		},
		"an exit":               func(p *peer, id uint32) { _ = p.w.Write(KindExit, id, Exit{}.Encode()) },
		"a list":                func(p *peer, id uint32) { _ = p.w.Write(KindListening, id, EncodeListening(nil)) },
		"a frame after its end": func(p *peer, id uint32) { _ = p.w.Write(KindClosed, id); _ = p.data(id, Stdout, "x") },
		"an end with a text":    func(p *peer, id uint32) { _ = p.w.Write(KindClosed, id, []byte("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			c, p := connect(t)
			_, id := dialled(t, c, p)
			say(p, id)
			<-c.Ended()
			if _, err := c.Dial(t.Context(), 80); !errors.Is(err, ErrProtocol) || !errors.Is(err, ErrEnded) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestRefusedConnections says why a connection does not come about.
func TestRefusedConnections(t *testing.T) {
	for name, c := range map[string]struct {
		body []byte
		want error
	}{
		"nobody":  {[]byte{Nobody}, ErrNobody},
		"full":    {[]byte{Full}, ErrUnreached},
		"another": {append([]byte{Unreached}, "why\x1b[0m"...), ErrUnreached},
	} {
		t.Run(name, func(t *testing.T) {
			client, p := connect(t)
			done := make(chan error, 1)
			go func() {
				_, err := client.Dial(t.Context(), 80)
				done <- err
			}()
			_ = p.w.Write(KindUnreached, p.expect(t, KindDial).ID, c.body)
			if err := <-done; !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// TestConnectionOfAnInitThatReadsNothing closes a connection at once, whose init takes nothing.
func TestConnectionOfAnInitThatReadsNothing(t *testing.T) {
	c, p := connect(t)
	conn, _ := dialled(t, c, p)
	done := make(chan error, 1)
	go func() {
		_, err := conn.Write(make([]byte, 2*Window))
		done <- err
	}()
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, ErrConnClosed) {
		t.Errorf("got %v, want %v", err, ErrConnClosed)
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if _, err := c.Dial(ctx, 80); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Listening(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestHalfOfAConnection reads what came before the end, and nothing of one that broke.
func TestHalfOfAConnection(t *testing.T) {
	c, p := connect(t)
	conn, id := dialled(t, c, p)
	credited := make(chan struct{})
	go func() {
		defer close(credited)
		_ = p.data(id, Stdout, "answer")
		_ = p.data(id, Stdout, "")
		p.expect(t, KindCredit)
	}()
	if got, err := io.ReadAll(conn); err != nil || string(got) != "answer" {
		t.Errorf("got %q, %v", got, err)
	}
	<-credited
	broken, id := dialled(t, c, p)
	_ = p.w.Write(KindClosed, id)
	if _, err := io.ReadAll(broken); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a connection that broke: %v", err)
	}
}

// TestListeningMessages decodes what was encoded, and refuses what no init says.
func TestListeningMessages(t *testing.T) {
	all := []Listening{{Port: 1}, {Port: 65535, Six: true, Any: true}}
	if got, err := DecodeListening(EncodeListening(all)); err != nil || !reflect.DeepEqual(got, all) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := DecodeListening(EncodeListening(slices.Repeat(all, MaxListening/2))); err != nil || len(got) != MaxListening {
		t.Errorf("the most: %d, %v", len(got), err)
	}
	for name, body := range map[string][]byte{
		"one more":      EncodeListening(slices.Repeat(all[:1], MaxListening+1)),
		"port 0":        EncodeListening([]Listening{{}}),
		"a lying count": {255, 255, 255, 255},
		"a cut list":    EncodeListening(all)[:7],
		"nothing":       nil,
	} {
		if got, err := DecodeListening(body); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	for _, body := range [][]byte{nil, {80}, {0, 0}, {80, 0, 0}} {
		if _, err := DecodePort(body); !errors.Is(err, ErrProtocol) {
			t.Errorf("port % x: %v", body, err)
		}
	}
}
