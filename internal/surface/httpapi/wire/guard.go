package wire

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
)

// Call holds the caller, the request and its context; handlers get it as an argument.
type Call struct {
	Caller      principal.Caller
	Request     id.Request
	Correlation id.Correlation
	Trace       Trace
	Key         string // Idempotency-Key, "" where none was sent
	Repeated    uint64 // not 0: the place of the last event of the first request with this key; nothing is to be done again
	Body        []byte // of a JSON operation

	route   *route
	host    string // as the request names it
	begun   time.Time
	held    int64        // bytes for which bodies has room
	once    string       // the key as the log sees it, scoped to the principal and the endpoint
	command event.Digest // of the request
	again   func() error // authenticates the caller once more
}

// callKey is the context key of the call: the only way from the outer handler, which admits a caller, through the router to an operation.
type callKey struct{}

func callOf(ctx context.Context) Call {
	c, _ := ctx.Value(callKey{}).(Call)
	return c
}

// Host is the host and port under which the request reached the server.
func (c Call) Host() string { return c.host }

// Lasting returns a handler's context without the end of the connection. Work under it is done and recorded even if the client has gone.
// The contexts of a Stream and of an operation that waits end with the connection.
func (Call) Lasting(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// ServiceKey is the idempotency key as the log sees it: short, and nobody's meets another principal's.
func (c Call) ServiceKey() string {
	if c.Key == "" {
		return ""
	}
	return event.DigestOf([]byte(string(c.Caller.Principal) + "\n" + c.Key)).Hex()
}

// Origin is who causes events, and why.
func (c Call) Origin() event.Origin {
	o := event.Origin{Principal: c.Caller.Principal, Token: c.Caller.Token, By: c.Caller.By, Issuer: c.Caller.Issuer,
		Correlation: c.Correlation}
	if c.Trace.followed() {
		o.Trace = c.Trace.Parent()
	}
	return o
}

// Once is Origin for the one batch of events by which a repeat of the request is known.
func (c Call) Once() event.Origin {
	o := c.Origin()
	o.Key, o.Command = c.once, c.command
	return o
}

// Part is Once for part n of a request whose body is not known when it begins.
func (c Call) Part(n int, command event.Digest) event.Origin {
	o := c.Origin()
	if c.once != "" {
		o.Key, o.Command = c.once+"#"+strconv.Itoa(n), command
	}
	return o
}

func (s *Server) requestID(r *http.Request) id.Request {
	if sent := r.Header.Get("X-Request-Id"); wellFormed(sent) {
		return id.Request(sent)
	}
	return id.New[id.Request](s.IDs)
}

// correlationID is the caller's correlation id, else the trace that the caller named. So either finds the events of a request.
func (s *Server) correlationID(r *http.Request, t Trace) id.Correlation {
	if sent := r.Header.Get("X-Correlation-Id"); wellFormed(sent) {
		return id.Correlation(sent)
	}
	if t.Foreign {
		return id.Correlation(t.ID)
	}
	return id.New[id.Correlation](s.IDs)
}

// wellFormed reports whether an identifier from outside may be repeated in headers, events and logs: 1 to 128 letters, digits and ._:- that
// are no secret.
func wellFormed(sent string) bool {
	if _, found := leak.Text(sent); len(found) > 0 {
		return false
	}
	return sent != "" && len(sent) <= 128 && strings.Trim(sent, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-") == ""
}

// present sets the headers that every answer has.
func (s *Server) present(h http.Header, c Call) {
	h.Set("X-Request-Id", string(c.Request))
	h.Set("X-Correlation-Id", string(c.Correlation))
	h.Set("Traceparent", c.Trace.Parent())
	h.Set("Traceresponse", c.Trace.Parent())
	if c.Trace.State != "" {
		h.Set("Tracestate", c.Trace.State)
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
}

// checkHost refuses requests that a web page of somebody else could make a browser send: a name that was made to point here (DNS
// rebinding), or an origin that is not this server.
func (s *Server) checkHost(r *http.Request) error {
	if !s.OwnHost(r.Host) {
		return fault.New(fault.Denied, "misdirected_request",
			"this daemon does not answer under that host name; use the address that `agentbox up` printed")
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || !strings.EqualFold(u.Host, r.Host) {
			return fault.New(fault.Denied, "origin_not_allowed", "requests of pages from other origins are refused")
		}
	}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return fault.New(fault.Denied, "origin_not_allowed", "requests of pages from other sites are refused")
	}
	return nil
}

// OwnHost reports whether the server answers under a host name.
func (s *Server) OwnHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	if addr, err := netip.ParseAddr(name); err == nil && addr.IsLoopback() && addr.Zone() == "" {
		return true
	}
	return strings.EqualFold(name, "localhost") || slices.ContainsFunc(s.Hosts, func(own string) bool { return strings.EqualFold(own, name) })
}

// match finds the operation. A path that is not written in the one way there is, is not repaired by a redirect, which would lose the body.
func (s *Server) match(w http.ResponseWriter, r *http.Request) (*route, error) {
	escaped := r.URL.EscapedPath()
	h, pattern := s.mux.Handler(r)
	rt := s.routes[pattern]
	whole := escaped
	if rt != nil && rt.any {
		whole = strings.TrimSuffix(escaped, "/") // a folder of somebody else's
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(whole, "/"), "/") {
		if part == "." || part == ".." || part == "" && escaped != "/" {
			return nil, fault.New(fault.NotFound, "route_not_found", "the path has an empty part, a . or a ..; there is nothing under such a path").
				With("the operations are listed at /v1/docs")
		}
	}
	if rt != nil {
		return rt, nil
	}
	probe := discard{http.Header{}}
	h.ServeHTTP(probe, r)
	if allow := probe.Header().Get("Allow"); allow != "" {
		w.Header().Set("Allow", allow)
		return nil, fault.New(fault.Invalid, "method_not_allowed", "%.16q is not possible here; use %s", r.Method, allow)
	}
	return nil, fault.New(fault.NotFound, "route_not_found", "there is no such operation").With("the operations are listed at /v1/docs")
}

// discard takes an answer that nobody gets.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

var errUnauthenticated = fault.New(fault.Denied, "unauthenticated", "no valid key; send the header `Authorization: Bearer KEY`").
	With("`agentbox up` says where the owner's key lies")

// Still refuses a call whose credential opens nothing any more. An operation asks that has let the caller wait.
func (c Call) Still() error {
	if c.again == nil {
		return nil
	}
	return c.again()
}

// admit authenticates the caller and counts the request. Failures count against the address; a valid key is never locked out by them.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, c *Call) error {
	caller, known, err := s.engine(w, r, c)
	if !known {
		caller, err = s.authenticate(r)
		c.again = func() error { _, err := s.authenticate(r); return err }
	}
	if err != nil {
		if StatusOf(fault.KindOf(err), fault.CodeOf(err)) != http.StatusUnauthorized {
			return err
		}
		if tooMany := s.limiter.allow(http.Header{}, address(r.RemoteAddr), rateFailures, s.Rates.Failures); tooMany != nil {
			return tooMany
		}
		return err
	}
	c.Caller = caller
	w.Header().Set("X-Workspace-Id", string(caller.Workspace))
	if sent := r.Header.Values(workspaceHeader); len(sent) > 1 || len(sent) == 1 && sent[0] != string(caller.Workspace) {
		return errOtherWorkspace
	}
	return s.limiter.allow(w.Header(), string(caller.Principal), c.route.rate, s.Rates.of(c.route.rate, caller))
}

// workspaceHeader names the workspace that a request is meant for. A key belongs to one, so that it can only agree.
const workspaceHeader = "X-Workspace-Id"

var errOtherWorkspace = fault.New(fault.Denied, "unauthorized_workspace",
	"the header x-workspace-id names another workspace than that of the key").
	With("Send a key of that workspace, or leave the header out.")

func (s *Server) authenticate(r *http.Request) (principal.Caller, error) {
	sent := r.Header.Values("Authorization")
	if len(sent) != 1 {
		return principal.Caller{}, errUnauthenticated
	}
	scheme, bearer, _ := strings.Cut(sent[0], " ")
	if !strings.EqualFold(scheme, "bearer") || bearer == "" || len(bearer) > 512 {
		return principal.Caller{}, errUnauthenticated
	}
	caller, err := s.Authenticate(r.Context(), bearer)
	if fault.CodeOf(err) == policy.ReasonAgentQuarantined {
		return principal.Caller{}, err // the key is valid: its owner learns the reason, and nobody searches for another key
	}
	if err != nil && (fault.KindOf(err) == fault.Denied || fault.KindOf(err) == fault.NotFound) {
		return principal.Caller{}, errUnauthenticated // which of the reasons it was is nobody's business
	}
	if err != nil {
		return caller, err
	}
	return s.narrowed(r, caller)
}

// narrowed returns a caller as one who acts under the capability token that a header names, if one does.
func (s *Server) narrowed(r *http.Request, caller principal.Caller) (principal.Caller, error) {
	named := r.Header.Values(narrowHeader)
	if len(named) == 0 {
		return caller, nil
	}
	t, err := id.Parse[id.Token](named[0])
	if err != nil || len(named) > 1 || s.Narrow == nil {
		return principal.Caller{}, fault.New(fault.Invalid, "invalid_capability_token",
			"%s names one capability token by its id, as cap_ and 26 characters", narrowHeader)
	}
	return s.Narrow(r.Context(), caller, t)
}

// prepare reads what every operation of a kind has: the idempotency key of a change, and the body of a JSON operation.
func (s *Server) prepare(w http.ResponseWriter, r *http.Request, c *Call) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if c.Key = r.Header.Get("Idempotency-Key"); !validKey(c.Key) {
			return fault.New(fault.Invalid, "invalid_idempotency_key", "Idempotency-Key has at most 200 printable ASCII characters")
		}
	}
	defer c.scope(r)
	if !c.route.json {
		return nil
	}
	if c.held == 0 { // else there is room for it since an engine was looked for in it
		if err := s.bodies.reserve(c, r.ContentLength); err != nil {
			return err
		}
	}
	body, err := s.readBody(w, r, c.route)
	if err != nil {
		return err
	}
	r.Body, r.ContentLength, c.Body = io.NopCloser(bytes.NewReader(body)), int64(len(body)), body
	return nil
}

// scope names the idempotency key as the log sees it, and what the request asks for.
func (c *Call) scope(r *http.Request) {
	if c.Key != "" {
		c.once = "http:" + event.DigestOf([]byte(string(c.Caller.Principal)+"\n"+r.Method+" "+r.URL.EscapedPath()+"\n"+c.Key)).Hex()
		c.command = event.DigestOf(append([]byte(r.URL.RawQuery+"\n"), c.Body...))
	}
}

func validKey(key string) bool {
	return len(key) <= 200 && !strings.ContainsFunc(key, func(c rune) bool { return c < 0x21 || c > 0x7e })
}
