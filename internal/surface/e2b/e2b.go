// Package e2b answers the unmodified packages of E2B by operations of /v1, in the name of their caller.
//
// So authentication, roles, tokens, labels, the gate and the log hold for them as for every other client.
package e2b

import (
	"encoding/json"
	"net/http"
	"path"
	"strings"
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

	Known    []string                // what Remember was given before the restart, in any order
	Remember func(line string) error // keeps a sealed token over a restart; nil keeps none
}

// Surface answers the packages of E2B. Make it with New.
type Surface struct {
	mux    *http.ServeMux
	tokens *tokens
	clock  event.Clock
	binary transcoder
}

// New makes a surface. Its routes are fixed.
func New(p Parts) *Surface {
	api := api{p.API}
	tokens := &tokens{key: p.Key, clock: p.Clock, known: newTable[string, string](), remember: p.Remember}
	tokens.recall(p.Known)
	sandboxes := &sandboxes{api: api}
	files := &fileSystem{api: api, clock: p.Clock, ids: p.IDs}
	watchers := &watchers{api: api, clock: p.Clock, ids: p.IDs, files: files, open: map[string]*watcher{}}
	control := &controlPlane{api: api, clock: p.Clock, tokens: tokens, sandboxes: sandboxes, readings: newTable[string, reading]()}
	processes := &processes{api: api, clock: p.Clock, ids: p.IDs, sandboxes: sandboxes, files: files, runs: newTable[pid, string]()}
	code := &codeInterpreter{api: api, clock: p.Clock, ids: p.IDs, sandboxes: sandboxes, counts: newTable[string, int](),
		folders: newTable[string, string]()}

	s := &Surface{mux: http.NewServeMux(), tokens: tokens, clock: p.Clock}
	control.routes(s.control)
	sandboxes.routes(s.within)
	files.routes(s.within)
	watchers.routes(s.within)
	processes.routes(s.within)
	code.routes(s.within)
	return s
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
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // an earlier request of the connection left its deadline behind
	in = s.awaited(w, in)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if _, pattern := s.mux.Handler(in); pattern == "" {
		s.binary.serve(http.HandlerFunc(missing), w, in)
		return true
	}
	s.binary.serve(s.mux, w, in)
	return true
}

// missing refuses an operation that there is not.
func missing(w http.ResponseWriter, r *http.Request) {
	refuse(w, r, &refusal{Status: http.StatusNotFound, Code: "unimplemented", Message: "there is no such operation here; " +
		"docs/E2B.md lists what is offered"})
}

// handler answers one request of a caller; an error becomes the refusal in the form of the route.
type handler func(w http.ResponseWriter, r *http.Request, c *caller) error

// control adds a route of the control plane, which needs an API key.
func (s *Surface) control(pattern string, h handler) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		c, err := keyed(r)
		if err == nil {
			err = h(w, r, c)
		}
		if err != nil {
			refuse(w, r, err)
		}
	})
}

// within adds a route of a sandbox, which needs the sandbox's token.
func (s *Surface) within(pattern string, h handler) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		c, err := s.tokens.admitted(r)
		if err == nil {
			trust(r)
			err = h(w, r, c)
		}
		if err != nil {
			refuse(w, r, gone(err))
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
