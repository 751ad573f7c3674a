package hostapi

import (
	"context"
	"net/http"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gate/approvals"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/spaces"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// Tally counts the daemon's work for a workspace since its start.
type Tally struct {
	Decisions uint64 `json:"decisions" doc:"Of the gate, since the daemon was started"`
	Appends   uint64 `json:"appends" doc:"Batches that the log took, since the daemon was started"`
}

// maxTop is how many spaces are shown; the newest are.
const maxTop = 500

// top is the running work of a workspace.
type top struct {
	At      time.Time  `json:"at" doc:"The daemon's clock; two answers and what has grown between them give a rate"`
	Head    uint64     `json:"head" doc:"Events in the workspace's log"`
	Waiting int        `json:"approvals_waiting" doc:"Questions that a person has to answer; 1000 stands for at least as many"`
	Thrown  bool       `json:"kill_switch" doc:"The kill switch is thrown"`
	Tasks   run.Tasks  `json:"tasks" doc:"How many runs run at the same time, and how many may; silent are those whose engines were not heard of for longer than their claims last"`
	Spaces  []topSpace `json:"spaces" nullable:"false" doc:"Those that are not destroyed, the newest first, at most 500"`
	Tally
}

// topSpace is a space and its running work.
type topSpace struct {
	ID     id.Space     `json:"space_id"`
	Name   string       `json:"name"`
	Status space.Status `json:"status"`
	Tier   string       `json:"tier"`
	Policy string       `json:"policy"`
	Load   *space.Load  `json:"load,omitempty" doc:"What its processes use now; absent where none run"`
	Memory int64        `json:"memory_limit_bytes"`
	CPU    int64        `json:"cpu_limit_millis"`
	Run    *topRun      `json:"run,omitempty" doc:"The run that is under way or waits for a person"`
}

// topRun is a run and the operation that it is at.
type topRun struct {
	ID        id.Run     `json:"run_id"`
	Title     string     `json:"title,omitempty"`
	Status    run.Status `json:"status"`
	Operation string     `json:"operation,omitempty" doc:"Type of the operation that it is at"`
	Summary   string     `json:"summary,omitempty"`
	Number    int        `json:"number" doc:"Of that operation, from 1"`
	Of        int        `json:"of" doc:"Operations that it has"`
	Since     time.Time  `json:"since" doc:"When the operation began; where it has not, when the run was started"`
}

// Top are the operations for the running work, and the metrics.
type Top struct {
	access.Part
	gate    *gate.Gate
	spaces  *spaces.Service
	runs    *runs.Service
	engines *engines.Service
	log     journal.Journal
	shows   http.Handler
	tally   func(ws id.Workspace) Tally
}

// NewTop returns the operations for the running work, and the metrics.
func NewTop(p access.Part, gate *gate.Gate, spaces *spaces.Service, runs *runs.Service, engines *engines.Service, log journal.Journal,
	shows http.Handler, tally func(ws id.Workspace) Tally) *Top {
	return &Top{p, gate, spaces, runs, engines, log, shows, tally}
}

// Register adds the operations to the server.
func (s *Top) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "get-top", Needs: wire.Shows("host"), Method: http.MethodGet, Path: "/v1/top", Tag: "service",
		Summary: "What happens now: spaces, their runs and what they use",
		Detail: "Counters come as they stand, so that whoever asks twice has rates. Nothing is measured that takes longer than reading a few " +
			"small files for each space.",
	}, s.top)
	wire.Stream[struct{}](s.Server, wire.Operation{
		ID: "get-metrics", Needs: wire.Shows("host").From(principal.Operator), Method: http.MethodGet, Path: "/metrics", Tag: "service",
		Summary: "The metrics, for Prometheus", Media: "text/plain",
		Detail: "In Prometheus's text format; docs/METRICS.md lists them. They are those of the whole daemon, so that an operator's key is " +
			"needed.",
	}, s.metrics)
}

func (s *Top) metrics(w http.ResponseWriter, r *http.Request, c wire.Call) error {
	if !c.Caller.Role.AtLeast(principal.Operator) {
		return fault.New(fault.Denied, policy.ReasonRoleTooLow, "the metrics tell of the whole daemon; an operator's key reads them").
			With("use the key of a person who is an operator, an admin or the owner")
	}
	s.shows.ServeHTTP(w, r)
	return nil
}

func (s *Top) top(ctx context.Context, c wire.Call, _ *struct{}) (*struct{ Body top }, error) {
	ws := c.Caller.Workspace
	out := top{At: s.Clock.Now().UTC(), Tally: s.tally(ws), Spaces: []topSpace{}}
	var err error
	if out.Head, err = s.log.Head(ctx, ws); err != nil {
		return nil, err
	}
	for _, status := range []policy.ApprovalStatus{policy.Pending, policy.Held} {
		open, err := s.gate.Approvals.List(ctx, ws, approvals.Filter{Status: status, Limit: 1000})
		if err != nil {
			return nil, err
		}
		out.Waiting += len(open)
	}
	thrown, err := s.gate.KillSwitch.State(ctx, ws)
	if err != nil {
		return nil, err
	}
	out.Thrown = thrown.On
	if out.Tasks, err = s.engines.Tasks(ctx, ws); err != nil {
		return nil, err
	}
	living, err := s.spaces.Catalog.List(ctx, ws, "", "", maxTop)
	if err != nil {
		return nil, err
	}
	if living, err = access.Visible(ctx, s.Access, c, living, func(x space.Space) label.Resource {
		return label.Resource{Type: label.OfSpace, ID: string(x.ID)}
	}); err != nil {
		return nil, err
	}
	for _, sp := range living {
		one := topSpace{ID: sp.ID, Name: sp.Name, Status: sp.Status, Tier: sp.Tier, Policy: sp.Policy, Memory: sp.Limits.MemoryBytes,
			CPU: sp.Limits.CPUMillis}
		if load, ok := s.spaces.Living.Load(sp.ID); ok {
			one.Load = &load
		}
		if sp.ActiveRun != "" {
			doc, err := s.runs.History.Find(ctx, ws, sp.ActiveRun)
			if err != nil {
				return nil, err
			}
			hidden, err := s.Hidden(ctx, c, label.Resource{Type: label.OfRun, ID: string(doc.ID)})
			if err != nil {
				return nil, err
			}
			if !hidden {
				one.Run = atNow(doc)
			}
		}
		out.Spaces = append(out.Spaces, one)
	}
	return &struct{ Body top }{out}, nil
}

// atNow says which operation a run is at.
func atNow(doc run.Run) *topRun {
	at := &topRun{ID: doc.ID, Title: doc.Title, Status: doc.Status, Number: min(doc.Next+1, len(doc.Operations)), Of: len(doc.Operations),
		Since: doc.CreatedAt}
	if !doc.StartedAt.IsZero() {
		at.Since = doc.StartedAt
	}
	if doc.Next < len(doc.Operations) {
		p := doc.Operations[doc.Next]
		at.Operation, at.Summary = p.Type, p.Summary
		if !p.BegunAt.IsZero() {
			at.Since = p.BegunAt
		} else if doc.Next > 0 && !doc.Operations[doc.Next-1].EndedAt.IsZero() {
			at.Since = doc.Operations[doc.Next-1].EndedAt
		}
	}
	return at
}
