// Package httpapi is the HTTP API: a table of operations, each of which reads a request, calls one service and writes its answer.
package httpapi

import (
	"context"
	"net"
	"net/http"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/audit"
	"agentbox/internal/service/blueprints"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gc"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/incidents"
	"agentbox/internal/service/labels"
	"agentbox/internal/service/nodes"
	"agentbox/internal/service/outside"
	"agentbox/internal/service/query"
	redacting "agentbox/internal/service/redaction"
	"agentbox/internal/service/rooms"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/search"
	"agentbox/internal/service/spaces"
	"agentbox/internal/service/transfer"
	"agentbox/internal/service/workspaces"
	"agentbox/internal/surface/httpapi/wire"
)

// Services are what the operations call.
type Services struct {
	Gate       *gate.Gate
	Spaces     *spaces.Service
	Runs       *runs.Service
	Engines    *engines.Service
	Rooms      *rooms.Service
	Workspaces *workspaces.Service
	Search     *search.Service
	Query      *query.Service
	Log        journal.Journal // which the audit verifies
	Prover     *audit.Prover
	GC         *gc.Service
	Redaction  *redacting.Service
	Transfer   *transfer.Importer
	Outside    *outside.Service
	Identity   *identity.Service
	Docs       projection.Reader // by which the room of a thing is found
	Labels     *labels.Service
	Blueprints *blueprints.Service
	Incidents  *incidents.Service
	Nodes      *nodes.Service
	Spool      Spool

	MaxWorkspace int64 // bytes of a workspace's file that is sent

	Checks  []Check                     // of readiness
	Metrics http.Handler                // answers with the metrics
	Tally   func(ws id.Workspace) Tally // counts what was done for a workspace
}

// Server answers the HTTP API. Make it with New, then Run it.
type Server struct {
	*wire.Server
	health *healthAPI
}

// access says what a caller may reach, and finds what a request names. The operations of all subjects use it.
type access struct {
	gate     *gate.Gate
	spaces   *spaces.Service
	query    *query.Service
	log      journal.Journal
	identity *identity.Service
	docs     projection.Reader
	labels   *labels.Service
}

// part is what the operations of each subject have.
type part struct {
	*wire.Server
	*access
}

// New makes a server of the daemon's version; it listens nowhere yet.
func New(c wire.Config, services Services, version string) *Server {
	c.Recall = func(ctx context.Context, who principal.Caller, key string, command event.Digest) (uint64, error) {
		found, _, err := journal.Recall(ctx, services.Log, who.Workspace, key, command)
		if err != nil || len(found) == 0 {
			return 0, err
		}
		return found[len(found)-1].Seq, nil
	}
	a := &access{services.Gate, services.Spaces, services.Query, services.Log, services.Identity, services.Docs, services.Labels}
	c.Bound, c.Barred, c.Labels, c.Resolve = a.bound, a.barred, a.labelled, a.resolve
	c.Narrow = func(ctx context.Context, who principal.Caller, t id.Token) (principal.Caller, error) {
		return services.Identity.ActsFor(ctx, who, "", t)
	}
	c.Tags = []string{"service", "auth", "principals", "rooms", "spaces", "snapshots", "runs", "engines", "files", "contexts", "approvals",
		"policies", "blueprints", "incidents", "labels", "events", "audit", "content"}
	s := &Server{Server: wire.New(c)}
	p := part{s.Server, a}
	s.health = newHealthAPI(p, services.Spaces, version, services.Checks)
	register(p, s.health, services)
	describe(s.Server)
	s.Object("PolicyApproval", "request")
	s.Object("PolicyExplanation", "request")
	s.Finish()
	return s
}

// register adds the operations of all subjects, in the order in which the API document lists them.
func register(p part, health *healthAPI, of Services) {
	answers := &approvalsAPI{p, of.Gate}
	arbiter := &outsideAPI{p, of.Outside, of.Gate}
	spaceRuns := &runsAPI{p, of.Gate, of.Spaces, of.Runs, of.Engines, of.Redaction, of.Identity, answers}
	for _, subject := range []interface{ register() }{
		health,
		&topAPI{p, of.Gate, of.Spaces, of.Runs, of.Engines, of.Log, of.Metrics, of.Tally},
		&sessionsAPI{p, of.Identity},
		&principalsAPI{p, of.Identity},
		&capabilitiesAPI{p, of.Identity},
		&enginesAPI{p, of.Engines, of.Identity},
		&roomsAPI{p, of.Rooms},
		&searchAPI{p, of.Rooms, of.Search},
		&spacesAPI{p, of.Gate, of.Spaces},
		&snapshotsAPI{p, of.Spaces},
		spaceRuns,
		&transcriptsAPI{p, of.Spaces, of.Runs, of.Prover, of.Spool, spaceRuns, make(chan struct{}, 1)},
		&claimsAPI{p, of.Spaces, of.Engines, of.Query, spaceRuns},
		&stepsAPI{p, of.Engines, of.Query},
		&artifactsAPI{p, of.Engines},
		&evidenceAPI{p, of.Engines},
		&filesAPI{p, of.Gate, of.Spaces, of.Spool},
		&contextsAPI{p, of.Spaces, of.Runs, spaceRuns},
		answers,
		&policiesAPI{p, of.Gate, of.Spaces, of.Runs, of.Outside, arbiter},
		arbiter,
		&actionTypesAPI{p, of.Gate},
		&blueprintsAPI{p, of.Blueprints},
		&incidentsAPI{p, of.Incidents},
		&labelsAPI{p, of.Labels},
		&eventsAPI{p, of.Rooms, of.Query},
		&causesAPI{p, of.Query},
		&auditAPI{p, of.Query, of.Log, of.Prover},
		&contentAPI{p, of.Runs, of.GC},
		&redactionsAPI{p, of.Redaction},
		&workspacesAPI{p, of.Transfer, of.Spool, of.MaxWorkspace},
		&tenantsAPI{p, of.Workspaces},
		&nodesAPI{p, of.Nodes},
	} {
		subject.register()
	}
}

// Run serves until ctx ends, and returns when also no check is tried any more.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	defer s.health.trying.Wait()
	return s.Server.Run(ctx, l)
}
