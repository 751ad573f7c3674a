// Package wire handles every request: authentication, limits, refusals, and the API document.
package wire

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
)

// Limits of a connection. The server answers a request that breaks one and closes its connection.
const (
	headerTimeout  = 10 * time.Second // to send the headers
	idleTimeout    = 2 * time.Minute  // between two requests of a connection
	maxHeaderBytes = 32 << 10
	bodyTimeout    = 30 * time.Second // to send a JSON body; each piece of an upload gets as long
	writeTimeout   = 30 * time.Second // for each piece of an answer to be taken
	maxBody        = 1 << 20          // bytes of a JSON body where the operation says nothing else
	stopTimeout    = 5 * time.Second  // for answers under way, when the daemon stops
)

// Authenticate finds out to whom a key belongs. A key that belongs to nobody is a fault of the kind Denied.
type Authenticate func(ctx context.Context, bearer string) (principal.Caller, error)

// Narrow returns a caller as one who acts under a capability token, which must be their own.
type Narrow func(ctx context.Context, c principal.Caller, t id.Token) (principal.Caller, error)

// Config has the dependencies and settings of a server.
type Config struct {
	Authenticate       Authenticate
	AuthenticateEngine AuthenticateEngine // needed where an operation is open to engines
	Narrow             Narrow             // needed where callers name capability tokens
	Bound              Bound              // needed where callers act under capability tokens
	Barred             Barred             // judges roles before bodies are read; nil where only services judge them
	Labels             Labels             // needed where labels hold
	Resolve            Resolve            // finds the id for a name; nil if paths and parameters take ids only
	Recall             Recall             // needed where an operation is RepeatRecalled
	Clock              event.Clock
	IDs                *id.Source
	Log                *slog.Logger
	Hosts              []string  // host names besides loopback's by which clients may reach the server; a wrong Host is refused
	Rates              Rates     // the zero value means DefaultRates
	Tags               []string  // the groups of operations, in the order of the docs
	Elsewhere          Elsewhere // finds the daemon that answers; nil where there is only this one
	Observer           Observer  // is called for each request; nil for none
	Beside             Beside    // answers requests outside this API; nil for none
}

// Observer receives the events of the server. Its methods must not block.
type Observer interface {
	// Begun is called for each request before it is judged. If its trace begins here, Begun decides whether it is sampled.
	Begun(t Trace) (followed bool)
	// Answered is called for each request once it is answered.
	Answered(Answered)
	// Stream is called for each event stream that opens. It returns the function for its end, called with one of the causes complete,
	// client_gone, too_slow, key_revoked, daemon_stopped and broken.
	Stream() (ended func(cause string))
}

// Answered is a request that was answered.
type Answered struct {
	Pattern string // of the operation, as in "GET /v1/runs/{run_id}"; "" for a request that met none
	Status  int
	Took    time.Duration
	Began   time.Time
	Trace   Trace
	Request id.Request
	Caller  id.Principal // "" where it was not admitted
}

// nobody is the Observer of a server without one.
type nobody struct{}

func (nobody) Begun(Trace) bool     { return false }
func (nobody) Answered(Answered)    {}
func (nobody) Stream() func(string) { return func(string) {} }

// Server answers requests. Operations are added with Handle and Stream, then Finish is called once.
type Server struct {
	Config
	document

	mux     *http.ServeMux
	routes  map[string]*route // by the mux's pattern
	limiter *limiter
	inHand  inHand
	bodies  bodies
	idle    idle

	previews Beside // answers at hosts and paths of ports of spaces; nil for none

	done chan struct{} // closed when the server stops; event streams end with it
}

// New makes a server without operations; it listens nowhere yet.
func New(c Config) *Server {
	if c.Rates == (Rates{}) {
		c.Rates = DefaultRates()
	}
	if c.Observer == nil {
		c.Observer = nobody{}
	}
	s := &Server{
		Config: c, mux: http.NewServeMux(), routes: map[string]*route{},
		limiter: newLimiter(c.Rates, c.Clock), done: make(chan struct{}),
	}
	s.begin = func() huma.API { return huma.NewAPI(s.apiConfig(), adapter{s}) }
	return s
}

// Run serves on the listener until ctx ends. Then it ends event streams at once, without a `complete`, and gives answers under way a
// moment.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	hs := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug), ConnState: s.idle.turn,
	}
	served := make(chan error, 1)
	go func() { served <- hs.Serve(l) }()
	select {
	case err := <-served:
		s.stop()
		return err
	case <-ctx.Done():
	}
	s.stop()
	grace, cancel := s.Within(context.WithoutCancel(ctx), stopTimeout, nil)
	defer cancel()
	err := hs.Shutdown(grace)
	if grace.Err() != nil {
		err = hs.Close()
	}
	if served := <-served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// stop ends the event streams.
func (s *Server) stop() { close(s.done) }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.previews != nil && s.previews(w, r) || s.besides(w, r) {
		return
	}
	c := s.call(r)
	if s.Observer.Begun(c.Trace) && !c.Trace.Foreign {
		c.Trace.Flags = "01"
	}
	a := &answer{ResponseWriter: w, control: http.NewResponseController(w), now: s.Clock.Now}
	a.patience() // an earlier request of the connection has set a deadline
	s.present(a.Header(), c)
	defer s.finish(a, r, &c)
	if err := s.serve(a, r, &c); err != nil {
		if r.ContentLength != 0 {
			// Else net/http waits for the rest of an unread body before it closes the connection or takes the next request.
			_ = a.control.SetReadDeadline(s.Clock.Now().Add(discardTime)) // a writer without deadlines has no slow sender
		}
		s.refuse(a, r, c, err)
	}
}

// call returns the properties of a request that need no check.
func (s *Server) call(r *http.Request) Call {
	c := Call{host: r.Host, begun: s.Clock.Now(), Request: s.requestID(r), Trace: s.trace(r)}
	c.Correlation = s.correlationID(r, c.Trace)
	return c
}

// serve finds the operation, admits the caller and hands over.
func (s *Server) serve(w *answer, r *http.Request, c *Call) error {
	if err := s.checkHost(r); err != nil {
		return err
	}
	rt, err := s.match(w, r)
	if err != nil {
		return err
	}
	c.route = rt
	waiting := r.Context()
	// A client may close its end once it has sent everything, and still read the answer: that ends a context of net/http.
	r = r.WithContext(context.WithoutCancel(waiting))
	if rt.public && r.Method == http.MethodPost { // anybody may call it, and may guess
		if err := s.limiter.allow(w.Header(), address(r.RemoteAddr), rateFailures, s.Rates.Failures); err != nil {
			return err
		}
	}
	if !rt.public {
		if err := s.admit(w, r, c); err != nil {
			return err
		}
		var unclear error
		if r, unclear, err = s.resolved(r, *c); err != nil {
			return err
		}
		if err := s.bound(r, *c); err != nil {
			return err
		}
		if unclear != nil { // which lists what has the name, to whom the name's things are open
			return unclear
		}
	}
	if rt.home != AtAny && s.Elsewhere != nil {
		out := r
		if rt.waits {
			out = r.WithContext(waiting)
		}
		if answered, err := s.elsewhere(w, out, *c); err != nil || answered {
			return err
		}
	}
	if err := s.prepare(w, r, c); err != nil {
		return err
	}
	if rt.repeat != "" && c.Key != "" {
		end, err := s.repeated(w, r, c)
		if err != nil {
			return err
		}
		defer end()
	}
	ctx := r.Context()
	if rt.waits {
		ctx = waiting
	}
	s.mux.ServeHTTP(w, r.WithContext(context.WithValue(ctx, callKey{}, *c)))
	return nil
}

// refuse answers with the problem document of an error, and logs an internal cause.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, c Call, err error) {
	p := ProblemOf(err, c.Request)
	s.Note(c, p, err)
	if p.Status == http.StatusRequestEntityTooLarge {
		s.discard(w, r)
	}
	p.write(w)
}

// Note logs the cause of an answer that does not show it.
func (s *Server) Note(c Call, p *Problem, err error) {
	if p.Status >= http.StatusInternalServerError {
		s.Log.Error("request failed", slog.String("code", "request_failed"), slog.String("request_id", string(c.Request)), slog.String("trace_id",
			c.Trace.ID), slog.String("error", p.Code), slog.String("cause", err.Error()))
	}
}

// answer records the status and size of an answer, and gives each piece of it a deadline of its own.
type answer struct {
	http.ResponseWriter
	control *http.ResponseController
	now     func() time.Time
	status  int
	bytes   int64
}

func (a *answer) begun() bool { return a.status != 0 }

// WriteHeader sends the status.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
	}
	a.patience()
	a.ResponseWriter.WriteHeader(status)
}

// Write sends a piece of the body.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	a.patience()
	n, err := a.ResponseWriter.Write(p)
	a.bytes += int64(n)
	return n, err
}

func (a *answer) patience() {
	_ = a.control.SetWriteDeadline(a.now().Add(writeTimeout)) // a writer without deadlines is not slow
}

// Unwrap returns the writer underneath, for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// finish logs the request and turns a panic into an answer.
func (s *Server) finish(w *answer, r *http.Request, c *Call) {
	broken := recover()
	s.bodies.release(c)
	if broken != nil && broken != http.ErrAbortHandler {
		s.Log.Error("request panicked", slog.String("code", "request_panicked"), slog.String("request_id", string(c.Request)),
			slog.String("trace_id", c.Trace.ID), slog.Any("cause", broken))
		if w.status == 0 {
			ProblemOf(errPanicked, c.Request).write(w)
			broken = nil
		} else {
			broken = http.ErrAbortHandler
		}
	}
	pattern := ""
	if c.route != nil {
		pattern = c.route.pattern
	}
	took := s.Clock.Now().Sub(c.begun)
	s.Observer.Answered(Answered{pattern, w.status, took, c.begun, c.Trace, c.Request, c.Caller.Principal})
	s.Log.LogAttrs(r.Context(), slog.LevelInfo, "request", slog.String("code", "request"), slog.String("request_id", string(c.Request)),
		slog.String("trace_id", c.Trace.ID),
		slog.String("span_id", c.Trace.Span), slog.String("route", pattern),
		slog.Int("status", w.status), slog.Int64("bytes", w.bytes), slog.String("principal", string(c.Caller.Principal)),
		slog.Duration("took", took), slog.Bool("cut_off", broken != nil))
	if broken != nil {
		panic(broken)
	}
}

var errPanicked = errors.New("panic")

// Within returns a context that ends after d of the server's clock, or when done is closed.
func (s *Server) Within(ctx context.Context, d time.Duration, done <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	over, stop := s.Clock.NewTimer(d)
	go func() {
		defer stop()
		select {
		case <-over:
			cancel()
		case <-done:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// Stopping is closed when the server stops.
func (s *Server) Stopping() <-chan struct{} { return s.done }
