package localengine

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/space"
	"agentbox/internal/testkit/wall"
)

// pipes is an inlet whose connections a test makes.
type pipes struct{ come chan net.Conn }

func (p *pipes) Port() int { return 4000 }
func (p *pipes) Close()    {}

func (p *pipes) Accept(ctx context.Context) (space.Conn, error) {
	select {
	case c := <-p.come:
		return &end{c}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// end is one end of such a connection.
type end struct{ net.Conn }

func (e *end) Port() int         { return 4000 }
func (e *end) CloseWrite() error { return e.Conn.Close() }

func serveInward(t *testing.T, server *http.Server) (dial func() net.Conn) {
	t.Helper()
	p := &pipes{make(chan net.Conn)}
	l := newInward(t.Context(), p)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return func() net.Conn {
		ours, theirs := net.Pipe()
		go func() {
			select {
			case p.come <- theirs:
			case <-done:
			}
		}()
		t.Cleanup(func() { _ = ours.Close() })
		return ours
	}
}

// TestSlowPrograms drops a program that sends its request too slowly, keeps its bound of connections, and tells the answerer that a program
// has gone.
func TestSlowPrograms(t *testing.T) {
	gone := make(chan bool, 1)
	dial := serveInward(t, &http.Server{ReadTimeout: 200 * time.Millisecond, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			if r.URL.Path == "/wait" {
				<-r.Context().Done()
				gone <- true
			}
			if err == nil {
				_, _ = io.WriteString(w, "ok")
			}
		})})
	said := func(c net.Conn, text string) string {
		t.Helper()
		_ = c.SetDeadline(time.Now().Add(wall.Patience))
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return err.Error()
		}
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			return err.Error()
		}
		return string(raw)
	}
	if got := said(dial(), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab"); got != "ok" {
		t.Errorf("got %q", got)
	}
	if got := said(dial(), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nab"); strings.Contains(got, "ok") {
		t.Errorf("a slow body: %q", got)
	}
	if got := said(dial(), "POST / HTTP/1.1\r\nHost"); strings.Contains(got, "ok") {
		t.Errorf("a slow head: %q", got)
	}
	c := dial()
	if _, err := io.WriteString(c, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	select {
	case <-gone:
	case <-time.After(wall.Patience):
		t.Error("the answerer does not hear that the program has gone")
	}
}

// TestInwardConnectionsAreBounded takes no more connections at one time than may be, and the next one when one ends.
func TestInwardConnectionsAreBounded(t *testing.T) {
	on := make(chan bool)
	begun := make(chan bool, 2*inwardConns)
	dial := serveInward(t, &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- true
		<-on
	})})
	ask := func() {
		c := dial()
		go func() {
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			_, _ = io.Copy(io.Discard, c)
		}()
	}
	for range inwardConns + 1 {
		ask()
	}
	for range inwardConns {
		<-begun
	}
	select {
	case <-begun:
		t.Error("one more connection than may be")
	case <-time.After(100 * time.Millisecond):
	}
	on <- true
	select {
	case <-begun:
	case <-time.After(wall.Patience):
		t.Error("the next connection is not taken")
	}
	close(on)
}
