package wire

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// serve lets a server answer on a port, until the test ends.
func (w wire) serve() string {
	w.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.s.Run(ctx, l) }()
	w.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			w.Error(err)
		}
	})
	return l.Addr().String()
}

// guest is a connection of a client.
type guest struct {
	net.Conn
	in *bufio.Reader
}

func (w wire) connect(address string) guest {
	w.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = c.Close() })
	return guest{c, bufio.NewReader(c)}
}

// asks reports whether the connection is answered.
func (g guest) asks(path string) bool {
	if _, err := io.WriteString(g, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\n\r\n"); err != nil {
		return false
	}
	answer, err := http.ReadResponse(g.in, nil)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err == nil && answer.Body.Close() == nil && answer.StatusCode == 200
}

// Row 32: clients that ask for nothing are closed when there are too many of them, those first that have asked for nothing for longest.
func TestThreat32IdleConnectionsBeyondTheMostAreClosed(t *testing.T) {
	w := newWire(t, func(c *Config) { c.Rates = DefaultRates(); c.Rates.General = MaxRate })
	var sent atomic.Uint64
	endless(w.s, &sent)
	address := w.serve()
	waiting := func(n int) {
		t.Helper()
		waitFor(t, "the connections to wait", func() bool {
			w.s.idle.mu.Lock()
			defer w.s.idle.mu.Unlock()
			return w.s.idle.order.Len() == n && len(w.s.idle.at) == n
		})
	}
	first := w.connect(address)
	waiting(1)
	second := w.connect(address)
	waiting(2)
	streaming := w.connect(address)
	if _, err := io.WriteString(streaming,
		"GET /v1/test/endless HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(streaming.in, nil)
	if err != nil || answer.StatusCode != 200 {
		t.Fatalf("the stream: %v", err)
	}
	waiting(2) // an answered client does not wait
	for range maxIdle - 2 {
		w.connect(address)
	}
	waiting(maxIdle)
	if !first.asks("/v1/test/things/a") { // exactly so many may
		t.Fatal("the oldest of the most was closed")
	}
	waiting(maxIdle)
	third := w.connect(address)
	if !third.asks("/v1/test/things/a") || !first.asks("/v1/test/things/a") {
		t.Error("who has just asked is not answered")
	}
	if err := second.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("who has waited longest is still connected: %v", err)
	}
	if _, err := io.CopyN(io.Discard, answer.Body, 1<<20); err != nil {
		t.Errorf("the stream: %v", err)
	}
}

// A client that is refused before its body was read, and never sends the rest, gets the answer, and is closed after discardTime.
func TestRefusedSlowBodiesAreClosed(t *testing.T) {
	w := newWire(t, nil)
	address := w.serve()
	for name, head := range map[string]string{
		"no such path": "POST /v1/test/nothing HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\nContent-Length: 100\r\n\r\n{",
		"no valid key": "POST /v1/test/things HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer bad\r\nContent-Length: 100\r\n\r\n{",
		"another host": "POST /v1/test/things HTTP/1.1\r\nHost: example.com\r\nAuthorization: Bearer good\r\nContent-Length: 100\r\n\r\n{",
		"in pieces": "POST /v1/test/nothing HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\nTransfer-Encoding: " +
			"chunked\r\n\r\n1\r\n{\r\n",
		"another method": "PUT /v1/test/things HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\nContent-Length: 100\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			g := w.connect(address)
			if _, err := io.WriteString(g, head); err != nil {
				t.Fatal(err)
			}
			if err := g.SetReadDeadline(time.Now().Add(10 * discardTime)); err != nil {
				t.Fatal(err)
			}
			raw, err := io.ReadAll(g.in)
			if err != nil || !strings.HasPrefix(string(raw), "HTTP/1.1 4") {
				t.Errorf("got %.60q, %v, want an answer and the end of the connection", raw, err)
			}
		})
	}
	g := w.connect(address)
	if _, err := io.WriteString(g,
		"POST /v1/test/nothing HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
		t.Fatal(err)
	}
	if answer, err := http.ReadResponse(g.in, nil); err != nil || answer.StatusCode != 404 {
		t.Fatalf("got %+v, %v", answer, err)
	} else if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Fatal(err)
	}
	if !g.asks("/v1/test/things/a") {
		t.Error("a connection whose body was sent is closed after a refusal")
	}
}
