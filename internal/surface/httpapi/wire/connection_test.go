package wire

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestThePatienceEndsWithTheBody holds that the time limit of a body does not end the request that has it.
func TestThePatienceEndsWithTheBody(t *testing.T) {
	w := newWire(t, func(c *Config) { c.Clock = earlyClock{back: bodyTimeout - 100*time.Millisecond} })
	ended := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
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
	defer server.Close()
	resp, err := http.Post(server.URL, "text/plain", strings.NewReader("a body"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := <-ended; err != nil {
		t.Errorf("after the body: %v", err)
	}
}
