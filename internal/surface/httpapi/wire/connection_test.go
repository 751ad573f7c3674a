package wire

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestThePatienceEndsWithTheBody holds that the time limit of a body does not end the request that has it.
func TestThePatienceEndsWithTheBody(t *testing.T) {
	w := newWire(t, func(c *Config) { c.Clock = earlyClock{back: bodyTimeout - 100*time.Millisecond} })
	ended := make(chan error, 1)
	served := httptestServer(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(w.s.Patient(rw, r))
		if err == nil {
			select {
			case <-r.Context().Done():
				err = r.Context().Err()
			case <-time.After(400 * time.Millisecond):
			}
		}
		ended <- err
	}))
	resp, err := http.Post(served, "text/plain", strings.NewReader("a body"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := <-ended; err != nil {
		t.Errorf("after the body: %v", err)
	}
}

// TestAnAbandonedConnectionIsCut holds that a connection that net/http gave up ends, so that its client asks again on another one.
func TestAnAbandonedConnectionIsCut(t *testing.T) {
	w := newWire(t, nil)
	first := true
	served := httptestServer(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !first {
			w.s.ServeHTTP(rw, r)
			return
		}
		first = false
		_ = http.NewResponseController(rw).SetReadDeadline(time.Unix(1, 0))
		<-r.Context().Done()
		rw.WriteHeader(http.StatusNoContent)
	}))
	conn, err := net.Dial("tcp", strings.TrimPrefix(served, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	request := "GET /v1/test/things/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\n\r\n"
	fmt.Fprint(conn, request)
	resp, err := http.ReadResponse(answers, nil)
	if err != nil || resp.StatusCode != http.StatusNoContent {
		t.Fatal(resp, err)
	}
	_ = resp.Body.Close()
	fmt.Fprint(conn, request)
	if resp, err := http.ReadResponse(answers, nil); err == nil {
		_ = resp.Body.Close()
		t.Errorf("a request on a connection that was given up: %d", resp.StatusCode)
	}
}

func httptestServer(t *testing.T, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return "http://" + l.Addr().String()
}
