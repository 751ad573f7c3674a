// Package e2b answers the unmodified packages of E2B by operations of /v1, in the name of their caller.
//
// So authentication, roles, tokens, labels, the gate and the log hold for them as for every other client.
package e2b

import (
	"context"
	"encoding/json"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// Prefix is the path below which the surface answers. Signed addresses of files have no prefix.
const Prefix = "/e2b"

// envdVersion is the version of E2B's daemon in the sandbox whose features the surface has.
const envdVersion = "0.6.4"

// Parts are the dependencies of the surface.
type Parts struct {
	API   http.Handler // answers /v1
	Key   []byte       // seals the tokens of sandboxes; at least 32 random bytes, the same after a restart
	Clock event.Clock
	IDs   *id.Source
}

// Surface answers the packages of E2B. Make it with New.
type Surface struct {
	Parts
	mux *http.ServeMux

	mu       sync.Mutex
	tokens   map[string]string // of sandboxes, by which signed addresses are found
	runs     map[pid]string
	cells    map[string]int // executions of a context, by sandbox and context
	folders  map[string]string
	readings map[string]reading
}

// maxRemembered bounds each table of the surface; what is forgotten is found again or counted anew.
const maxRemembered = 10_000

// New makes a surface. Its routes are fixed.
func New(p Parts) *Surface {
	s := &Surface{Parts: p, mux: http.NewServeMux(), tokens: map[string]string{}, runs: map[pid]string{}, cells: map[string]int{},
		folders: map[string]string{}, readings: map[string]reading{}}
	s.routeControl()
	s.routeSandbox()
	return s
}

// remember puts an entry into a table of the surface.
func remember[K comparable, V any](s *Surface, table map[K]V, key K, value V) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(table) >= maxRemembered {
		clear(table)
	}
	table[key] = value
}

func recalled[K comparable, V any](s *Surface, table map[K]V, key K) (V, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := table[key]
	return value, ok
}

// Serve answers a request that is one of E2B's, and returns false for any other.
func (s *Surface) Serve(w http.ResponseWriter, r *http.Request) bool {
	rest, ours := strings.CutPrefix(r.URL.Path, Prefix)
	ours = ours && (rest == "" || rest[0] == '/')
	if !ours && (r.URL.Path != "/files" || !strings.HasPrefix(r.URL.Query().Get("signature"), signaturePrefix)) {
		return false
	}
	if !ours {
		rest = r.URL.Path
	}
	in := r.Clone(r.Context())
	in.URL.Path, in.URL.RawPath = path.Clean("/"+rest), ""
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // an earlier request of the connection left its deadline behind
	_ = control.SetReadDeadline(time.Time{})
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if _, pattern := s.mux.Handler(in); pattern == "" {
		s.refuse(w, in, &refusal{Status: http.StatusNotFound, Code: "unimplemented", Message: "there is no such operation here; " +
			"docs/E2B.md lists what is offered"})
		return true
	}
	s.mux.ServeHTTP(w, in)
	return true
}

// handler answers one request of a caller; an error becomes the refusal in the form of the route.
type handler func(w http.ResponseWriter, r *http.Request, c *caller) error

// control adds a route of the control plane, which needs an API key.
func (s *Surface) control(pattern string, h handler) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		c, err := s.keyed(r)
		if err == nil {
			err = h(w, r, c)
		}
		if err != nil {
			s.refuse(w, r, err)
		}
	})
}

// within adds a route of a sandbox, which needs the sandbox's token.
func (s *Surface) within(pattern string, h handler) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		c, err := s.admitted(r)
		if err == nil {
			err = h(w, r, c)
		}
		if err != nil {
			s.refuse(w, r, gone(err))
		}
	})
}

// answer writes a JSON document.
func answer(w http.ResponseWriter, status int, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(raw) // the caller has gone; there is nobody left to tell
	return nil
}

// nothing answers without a body.
func nothing(w http.ResponseWriter) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// after calls f when d is over, unless the returned function was called before.
func (s *Surface) after(d time.Duration, f func()) (stop func()) {
	over, release := s.Clock.NewTimer(d)
	done, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-over:
			f()
		case <-done.Done():
		}
	}()
	return func() {
		cancel()
		<-ended
		release()
	}
}
