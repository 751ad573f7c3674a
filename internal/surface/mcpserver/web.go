package mcpserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
)

// Path is the path at which the daemon serves the protocol over HTTP.
const Path = "/mcp"

// Bounds of the protocol over HTTP.
const (
	idleTime    = 30 * time.Minute // a session without a request for so long ends
	maxSessions = 1_000            // concurrent sessions
	silence     = 10 * time.Second // for the request of a client that nobody knows yet
	maxInner    = 64 << 20         // bytes of an answer of the API, which are all in memory
)

// Web serves the protocol over HTTP, with a session for each client that sends a key. Make it with NewWeb.
type Web struct {
	Config
	api     http.Handler // answers /v1
	handler http.Handler

	mu   sync.Mutex // guards open
	open []*mcp.Server
}

// NewWeb returns a server. Its sessions use the configuration and the keys of their clients. api answers /v1.
func NewWeb(c Config, api http.Handler) *Web {
	w := &Web{Config: c, api: api}
	streams := mcp.NewStreamableHTTPHandler(w.session, &mcp.StreamableHTTPOptions{
		SessionTimeout: idleTime, Logger: c.Logger,
	})
	known := auth.RequireBearerToken(w.verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(trusted(streams))
	w.handler = http.NewCrossOriginProtection().Handler(known) // no page of another site may send requests, not even with a key
	return w
}

// Serve answers a request at Path, and returns false for any other.
func (w *Web) Serve(out http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != Path {
		return false
	}
	control := http.NewResponseController(out)
	_ = control.SetWriteDeadline(time.Time{}) // a stream of events stays open, and an earlier request left its deadline behind
	_ = control.SetReadDeadline(w.Clock.Now().Add(silence))
	out.Header().Set("Cache-Control", "no-store")
	out.Header().Set("X-Content-Type-Options", "nosniff")
	w.handler.ServeHTTP(out, r)
	return true
}

// trusted takes the limit of time off the requests of clients that are known.
func trusted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(out).SetReadDeadline(time.Time{}) // a writer without deadlines has no slow sender
		next.ServeHTTP(out, r)
	})
}

// verify asks the API for the principal of a key. A session belongs to the key that began it.
func (w *Web) verify(ctx context.Context, key string, r *http.Request) (*auth.TokenInfo, error) {
	who, err := w.client(key, r).Session(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: the key is not known, or may do nothing", auth.ErrInvalidToken)
	}
	return &auth.TokenInfo{UserID: fmt.Sprintf("%s %x", who.Principal, sha256.Sum256([]byte(key)))}, nil
}

// client returns a client of this daemon's own API, with the key and the address of a request.
func (w *Web) client(key string, r *http.Request) *client.Client {
	return client.Through(inner{w.api, r.RemoteAddr, r.Host}, key)
}

// session makes the server of a new session. It returns nil if there are maxSessions.
func (w *Web) session(r *http.Request) *mcp.Server {
	_, key, _ := bytes.Cut([]byte(r.Header.Get("Authorization")), []byte(" "))
	c := w.Config
	c.API = w.client(string(bytes.TrimSpace(key)), r)
	w.mu.Lock()
	defer w.mu.Unlock()
	living := w.open[:0]
	for _, s := range w.open {
		for range s.Sessions() {
			living = append(living, s)
			break
		}
	}
	clear(w.open[len(living):])
	if w.open = living; len(living) >= maxSessions {
		return nil
	}
	made := New(c)
	w.open = append(w.open, made)
	return made
}

// inner is a transport to a handler in this program.
type inner struct {
	handler       http.Handler
	address, host string // of the client
}

// RoundTrip implements http.RoundTripper. It returns when the answer is complete.
func (t inner) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.RemoteAddr, in.Host, in.RequestURI = t.address, t.host, r.URL.RequestURI()
	if in.Body == nil {
		in.Body = http.NoBody
	}
	out := &answer{header: http.Header{}, status: http.StatusOK}
	t.handler.ServeHTTP(out, in)
	_ = in.Body.Close()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if out.body.Len() > maxInner {
		return nil, errLarge
	}
	return &http.Response{
		Status: http.StatusText(out.status), StatusCode: out.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: out.header,
		Body: io.NopCloser(&out.body), ContentLength: int64(out.body.Len()), Request: r,
	}, nil
}

// answer records the answer of the handler.
type answer struct {
	header http.Header
	status int
	begun  bool
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if !a.begun && status >= 200 {
		a.begun, a.status = true, status
	}
}

// Write implements io.Writer. It takes at most one byte more than maxInner, by which the answer is known to be too large.
func (a *answer) Write(p []byte) (int, error) {
	a.begun = true
	if left := maxInner + 1 - a.body.Len(); len(p) > left {
		a.body.Write(p[:max(left, 0)])
		return max(left, 0), errLarge
	}
	return a.body.Write(p)
}

// errLarge refuses an answer of more than maxInner.
var errLarge = fault.New(fault.Exhausted, "answer_too_large", "the answer has more than %d bytes; read it over the API", maxInner)
