package mcpserver

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// over is a clock for which the time that a client is given is over.
type over struct{}

func (over) Now() time.Time { return time.Now().Add(-time.Hour) }

func (over) NewTimer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// TestNobodyHoldsAConnectionUnknown sends the head of a request, and no body.
func TestNobodyHoldsAConnectionUnknown(t *testing.T) {
	w := NewWeb(Config{Logger: quiet(), Clock: over{}}, http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.WriteHeader(http.StatusUnauthorized)
	}))
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) { w.Serve(out, r) }))
	defer server.Close()
	for _, more := range []string{"", "Authorization: Bearer guessed\r\n"} {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"+more+"\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(c); err != nil { // it ends because the connection does
			t.Error(err)
		}
	}
}

// TestALargeAnswerOfTheAPI is not taken into memory as a whole.
func TestALargeAnswerOfTheAPI(t *testing.T) {
	for size, fits := range map[int]bool{maxInner: true, maxInner + 1: false, 4 * maxInner: false} {
		written := 0
		piece := bytes.Repeat([]byte("x"), 1<<20)
		from := inner{handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for written < size {
				n, err := w.Write(piece[:min(len(piece), size-written)])
				if written += n; err != nil {
					return
				}
			}
		})}
		answer, err := from.RoundTrip(httptest.NewRequest(http.MethodGet, "/v1/artifacts/art_1/content", nil))
		if (err == nil) != fits || written > maxInner+1 {
			t.Errorf("%d bytes: %v, of which %d were taken", size, err, written)
		}
		if err == nil {
			_ = answer.Body.Close()
		}
	}
}
