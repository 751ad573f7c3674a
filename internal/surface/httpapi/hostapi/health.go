// Package hostapi has the operations for the daemon and its data: health, load, metrics, nodes, content and whole workspaces.
package hostapi

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/spaces"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// Check is something that must work for the daemon to be ready. A check may take long, and anybody may ask: so it runs apart from the
// requests, and its result is repeated for a while.
type Check struct {
	Name string
	Try  func(ctx context.Context) error
	Keep time.Duration // for how long a success is repeated; a failure is for checkAge; 0 means checkAge
}

// checkAge is how long the result of a readiness check without a Keep is repeated.
const checkAge = 10 * time.Second

// Health says whether the daemon lives.
type Health struct {
	Status  string `json:"status" enum:"ok,starting,not_ready"`
	Version string `json:"version"`
}

type checked struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty" doc:"What is wrong"`
}

type readiness struct {
	Health
	Checks []checked `json:"checks" nullable:"false"`
}

// prober tries one check, at most once at a time, and keeps the last result.
type prober struct {
	check Check

	mu    sync.Mutex
	done  chan struct{} // of the try under way; nil where there is none
	at    time.Time     // of the last result
	known bool
	last  checked
}

// Starting answers for a daemon that opens its data directory: phase says what it does now, as in "opens the log".
func Starting(c wire.Config, version string, phase func() string) http.Handler {
	return wire.Starting(c, func() any { return Health{"starting", version} }, func() any {
		return readiness{Health{"starting", version}, []checked{{Name: "start", Detail: "the daemon " + phase()}}}
	}, phase)
}

// HealthAPI are the operations for the health of the daemon.
type HealthAPI struct {
	access.Part
	spaces    *spaces.Service
	version   string
	probers   []*prober
	diagnosis diagnosis
	trying    sync.WaitGroup                 // checks under way
	files     func(ws id.Workspace) []string // why files about models are not used; may be nil
}

// NewHealth returns the operations for health and readiness. The function says why files about models are not used; it may be nil.
func NewHealth(p access.Part, of *spaces.Service, version string, checks []Check, files func(ws id.Workspace) []string) *HealthAPI {
	s := &HealthAPI{Part: p, spaces: of, version: version, files: files}
	for _, check := range checks {
		s.probers = append(s.probers, &prober{check: check})
	}
	return s
}

// Wait returns when no check is tried any more.
func (s *HealthAPI) Wait() { s.trying.Wait() }

// Register adds the operations to the server.
func (s *HealthAPI) Register() {
	wire.Tell(s.Server, wire.Operation{ID: "healthz", Method: http.MethodGet, Path: "/healthz", Tag: "service", Summary: "Is the daemon alive",
		Public: true},
		func(context.Context) (int, Health) { return http.StatusOK, Health{"ok", s.version} })
	wire.Tell(s.Server, wire.Operation{
		ID: "readyz", Method: http.MethodGet, Path: "/readyz", Tag: "service", Summary: "Can the daemon do its work", Public: true,
		Answers: map[int]any{http.StatusServiceUnavailable: readiness{}},
		Detail: "503 while the daemon starts (and says what it does), the log cannot be written (and whether it opens again by itself), or no " +
			"tier works. The tiers are tried beside the requests: " +
			"the first answers may say that they are being tried.",
	}, s.ready)
	wire.Handle(s.Server, wire.Operation{
		ID: "get-doctor", Needs: wire.Shows("host"), Method: http.MethodGet, Path: "/v1/doctor", Tag: "service",
		Summary: "What the host supports, and how to mend what it does not",
		Detail:  "Starts a real space of every tier and tries what the tier promises. The result is cached for ten seconds.",
	}, func(ctx context.Context, c wire.Call, _ *struct{}) (*struct{ Body doctor }, error) {
		found := s.diagnose(ctx)
		found.Problems = []string{}
		if s.files != nil {
			found.Problems = append(found.Problems, s.files(c.Caller.Workspace)...)
		}
		return &struct{ Body doctor }{found}, nil
	})
	wire.Handle(s.Server, wire.Operation{ID: "get-session", Needs: wire.Own(), Method: http.MethodGet, Path: "/v1/auth/session", Tag: "auth",
		Summary: "Who am I"},
		func(_ context.Context, c wire.Call, _ *struct{}) (*struct{ Body session }, error) {
			return &struct{ Body session }{session{c.Caller.Principal, c.Caller.Workspace, string(c.Caller.Role), c.Caller.Token, c.Caller.Key}}, nil
		})
}

// doctorAge is how long the doctor's findings are cached, because each check starts spaces, fills memory and starts programs.
const doctorAge = 10 * time.Second

// diagnosis is the last result of the doctor.
type diagnosis struct {
	mu    sync.Mutex // held while the doctor looks: other callers wait and get the same answer
	at    time.Time
	found doctor
}

// diagnose checks the tiers on this host, unless a cached result is recent.
func (s *HealthAPI) diagnose(ctx context.Context) doctor {
	d := &s.diagnosis
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at.IsZero() || s.Clock.Now().Sub(d.at) >= doctorAge {
		d.found = doctor{Version: s.version, Tiers: s.spaces.Tiers.Probe(ctx)}
		for _, r := range d.found.Tiers {
			d.found.OK = d.found.OK || r.OK || r.Limited
		}
		d.at = s.Clock.Now()
	}
	return d.found
}

type doctor struct {
	Version string         `json:"version"`
	OK      bool           `json:"ok" doc:"Spaces can be made"`
	Tiers   []space.Report `json:"tiers" nullable:"false"`

	Problems []string `json:"problems" nullable:"false" doc:"What is wrong with files that people write, such as models.yaml; the daemon works without them"`
}

type session struct {
	Principal id.Principal `json:"principal_id"`
	Workspace id.Workspace `json:"workspace_id"`
	Role      string       `json:"role"`
	Token     id.Token     `json:"capability_token_id,omitempty" doc:"Under which the caller acts"`
	Key       id.Key       `json:"key_id,omitempty" doc:"With which the caller was authenticated, where it was a key"`
}

func (s *HealthAPI) ready(ctx context.Context) (status int, body readiness) {
	found := make([]checked, len(s.probers))
	for i, p := range s.probers {
		found[i] = p.ask(ctx, s)
	}
	status, body = http.StatusOK, readiness{Health{"ok", s.version}, found}
	for _, one := range found {
		if !one.OK {
			status, body.Status = http.StatusServiceUnavailable, "not_ready"
		}
	}
	return status, body
}

// patience is how long an answer waits for the result of a running check. After that the answer says that the check is running.
const patience = 2 * time.Second

// ask returns the last result of the check, and begins to try it again where that is too old. A result that is too old is no reason to say
// that the daemon is not ready; to have none is.
func (p *prober) ask(ctx context.Context, s *HealthAPI) checked {
	p.mu.Lock()
	keep := checkAge
	if p.known && p.last.OK && p.check.Keep > 0 {
		keep = p.check.Keep
	}
	if p.done == nil && (!p.known || s.Clock.Now().Sub(p.at) >= keep) {
		p.done = make(chan struct{})
		s.trying.Go(func() { p.try(context.WithoutCancel(ctx), s) }) // later requests get this result too
	}
	done := p.done
	p.mu.Unlock()
	if done != nil {
		limited, cancel := s.Within(ctx, patience, done)
		<-limited.Done()
		cancel()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.known {
		return checked{Name: p.check.Name, Detail: "it is being tried"}
	}
	return p.last
}

func (p *prober) try(ctx context.Context, s *HealthAPI) {
	err := p.check.Try(ctx)
	one := checked{Name: p.check.Name, OK: err == nil}
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind != fault.Internal {
		one.Detail = f.Msg
	} else if err != nil {
		one.Detail = "it failed; the daemon's log says why"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.known, p.last = s.Clock.Now(), true, one
	close(p.done)
	p.done = nil
}
