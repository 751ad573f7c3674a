package httpapi

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/surface/httpapi/wire"
)

// Check is something that must work for the daemon to be ready.
type Check struct {
	Name string
	Try  func(ctx context.Context) error
}

// checkAge is how long the result of a readiness check is repeated: anybody may ask, and a check may be work.
const checkAge = 10 * time.Second

// Health says whether the daemon lives.
type Health struct {
	Status  string `json:"status" enum:"ok,not_ready"`
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

// prober remembers the last readiness.
type prober struct {
	mu   sync.Mutex
	at   time.Time
	last []checked
}

func (s *Server) registerHealth() {
	wire.Handle(s.Server, wire.Operation{ID: "healthz", Method: http.MethodGet, Path: "/healthz", Tag: "service", Summary: "Is the daemon alive", Public: true},
		func(context.Context, wire.Call, *struct{}) (*struct{ Body Health }, error) {
			return &struct{ Body Health }{Health{"ok", s.version}}, nil
		})
	wire.Handle(s.Server, wire.Operation{
		ID: "readyz", Method: http.MethodGet, Path: "/readyz", Tag: "service", Summary: "Can the daemon do its work", Public: true,
		Answers: map[int]any{http.StatusServiceUnavailable: readiness{}}, Detail: "503 while the log cannot be written or no tier works.",
	}, s.ready)
	wire.Handle(s.Server, wire.Operation{
		ID: "get-doctor", Method: http.MethodGet, Path: "/v1/doctor", Tag: "service", Summary: "What the host supports, and how to mend what it does not",
		Detail: "Starts a real space of every tier and tries what the tier promises.",
	}, func(ctx context.Context, c wire.Call, _ *struct{}) (*struct{ Body doctor }, error) {
		reports := s.services.Keeper.Probe(ctx)
		out := doctor{Version: s.version, Tiers: reports}
		for _, r := range reports {
			out.OK = out.OK || r.OK || r.Limited
		}
		return &struct{ Body doctor }{out}, nil
	})
	wire.Handle(s.Server, wire.Operation{ID: "get-session", Method: http.MethodGet, Path: "/v1/auth/session", Tag: "auth", Summary: "Who am I"},
		func(_ context.Context, c wire.Call, _ *struct{}) (*struct{ Body session }, error) {
			return &struct{ Body session }{session{c.Caller.Principal, c.Caller.Workspace, string(c.Caller.Role)}}, nil
		})
}

type doctor struct {
	Version string         `json:"version"`
	OK      bool           `json:"ok" doc:"Spaces can be made"`
	Tiers   []space.Report `json:"tiers" nullable:"false"`
}

type session struct {
	Principal id.Principal `json:"principal_id"`
	Workspace id.Workspace `json:"workspace_id"`
	Role      string       `json:"role"`
}

func (s *Server) ready(ctx context.Context, _ wire.Call, _ *struct{}) (*struct {
	Status int
	Body   readiness
}, error) {
	s.prober.mu.Lock()
	defer s.prober.mu.Unlock()
	if now := s.Clock.Now(); s.prober.at.IsZero() || now.Sub(s.prober.at) >= checkAge {
		s.prober.at, s.prober.last = now, []checked{}
		for _, check := range s.services.Checks {
			err := check.Try(context.WithoutCancel(ctx))
			one := checked{Name: check.Name, OK: err == nil}
			if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind != fault.Internal {
				one.Detail = f.Msg
			} else if err != nil {
				one.Detail = "it failed; the daemon's log says why"
			}
			s.prober.last = append(s.prober.last, one)
		}
	}
	out := &struct {
		Status int
		Body   readiness
	}{http.StatusOK, readiness{Health{"ok", s.version}, s.prober.last}}
	for _, one := range s.prober.last {
		if !one.OK {
			out.Status, out.Body.Status = http.StatusServiceUnavailable, "not_ready"
		}
	}
	return out, nil
}
