// Package httpapi is the HTTP API: a table of operations, each of which reads a request, calls one service and writes its answer.
package httpapi

import (
	"context"
	"net/http"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/audit"
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
	services  Services
	version   string
	probers   []*prober
	diagnosis diagnosis
	trying    sync.WaitGroup // checks under way

	importing chan struct{} // holds one: a transcript is read into memory as a whole
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
	s := &Server{services: services, version: version, importing: make(chan struct{}, 1)}
	c.Bound, c.Barred, c.Labels, c.Resolve = s.bound, s.barred, s.labelled, s.resolve
	c.Narrow = func(ctx context.Context, who principal.Caller, t id.Token) (principal.Caller, error) {
		return services.Identity.ActsFor(ctx, who, "", t)
	}
	c.Tags = []string{"service", "auth", "principals", "rooms", "spaces", "snapshots", "runs", "engines", "files", "contexts", "approvals",
		"policies", "incidents", "labels", "events", "audit", "content"}
	s.Server = wire.New(c)
	for _, check := range services.Checks {
		s.probers = append(s.probers, &prober{check: check})
	}
	s.registerHealth()
	s.registerTop()
	s.registerSessions()
	s.registerPrincipals()
	s.registerCapabilities()
	s.registerEngines()
	s.registerRooms()
	s.registerSearch()
	s.registerSpaces()
	s.registerSnapshots()
	s.registerRuns()
	s.registerClaims()
	s.registerSteps()
	s.registerEvidence()
	s.registerFiles()
	s.registerContexts()
	s.registerApprovals()
	s.registerPolicies()
	s.registerArbiter()
	s.registerActionTypes()
	s.registerIncidents()
	s.registerLabels()
	s.registerEvents()
	s.registerAudit()
	s.registerContent()
	s.registerRedactions()
	s.registerWorkspaces()
	s.registerTenants()
	s.registerNodes()
	s.describe()
	s.Object("PolicyApproval", "request")
	s.Object("PolicyExplanation", "request")
	s.Finish()
	return s
}
