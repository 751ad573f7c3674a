package spaceinit

import (
	"context"
	"errors"
	"testing"
)

// listeningAt returns a socket that the test's init has made.
func listeningAt(t *testing.T, c *Client, p *peer) (*Listener, uint32) {
	t.Helper()
	made := make(chan *Listener, 1)
	go func() {
		l, err := c.Serve(t.Context())
		if err != nil {
			t.Error(err)
		}
		made <- l
	}()
	f := p.expect(t, KindServe)
	if err := p.w.Write(KindServing, f.ID, EncodePort(4000)); err != nil {
		t.Fatal(err)
	}
	l := <-made
	if l == nil || l.Port() != 4000 {
		t.Fatalf("the socket: %+v", l)
	}
	return l, f.ID
}

// TestHostileSockets ends the space of an init that breaks the protocol of sockets.
func TestHostileSockets(t *testing.T) {
	for name, say := range map[string]func(p *peer, id uint32){
		"a second port":      func(p *peer, id uint32) { _ = p.w.Write(KindServing, id, EncodePort(4001)) },
		"a late refusal":     func(p *peer, id uint32) { _ = p.w.Write(KindUnreached, id, []byte{Full}) },
		"data":               func(p *peer, id uint32) { _ = p.data(id, Stdout, "x") },
		"an end with a text": func(p *peer, id uint32) { _ = p.w.Write(KindClosed, id, []byte("x")) },
		"a connection that nobody asked for": func(p *peer, id uint32) {
			_ = p.w.Write(KindOpened, id+1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, p := connect(t)
			l, id := listeningAt(t, c, p)
			say(p, id)
			<-c.Ended()
			if _, err := l.Accept(t.Context()); !errors.Is(err, ErrEnded) && !errors.Is(err, ErrConnClosed) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestSocketsThatDoNotComeAbout tells why.
func TestSocketsThatDoNotComeAbout(t *testing.T) {
	c, p := connect(t)
	for _, body := range [][]byte{{Full}, append([]byte{Unreached}, "no"...)} {
		failed := make(chan error, 1)
		go func() {
			_, err := c.Serve(t.Context())
			failed <- err
		}()
		f := p.expect(t, KindServe)
		if err := p.w.Write(KindUnreached, f.ID, body); err != nil {
			t.Fatal(err)
		}
		if err := <-failed; !errors.Is(err, ErrUnreached) {
			t.Errorf("got %v", err)
		}
	}
	l, _ := listeningAt(t, c, p)
	ctx, stop := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := l.Accept(ctx)
		failed <- err
	}()
	f := p.expect(t, KindAccept)
	if of, err := DecodeAccept(f.Body); err != nil || of != l.id {
		t.Errorf("the socket of the connection: %d, %v", of, err)
	}
	stop()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	p.expect(t, KindClose)
	for _, body := range [][]byte{nil, {1, 0, 0}, {0, 0, 0, 0}, {1, 0, 0, 0, 0}} {
		if _, err := DecodeAccept(body); !errors.Is(err, ErrProtocol) {
			t.Errorf("%v: %v", body, err)
		}
	}
}
