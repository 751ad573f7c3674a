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
	"agentbox/internal/service/agents"
	"agentbox/internal/service/audit"
	"agentbox/internal/service/blueprints"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gc"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/incidents"
	"agentbox/internal/service/labels"
	"agentbox/internal/service/models"
	"agentbox/internal/service/nodes"
	"agentbox/internal/service/outside"
	"agentbox/internal/service/ports"
	"agentbox/internal/service/query"
	redacting "agentbox/internal/service/redaction"
	"agentbox/internal/service/rooms"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/search"
	"agentbox/internal/service/spaces"
	"agentbox/internal/service/toolservers"
	"agentbox/internal/service/transfer"
	"agentbox/internal/service/workspaces"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/auditapi"
	"agentbox/internal/surface/httpapi/hostapi"
	"agentbox/internal/surface/httpapi/modelapi"
	"agentbox/internal/surface/httpapi/peopleapi"
	"agentbox/internal/surface/httpapi/policyapi"
	"agentbox/internal/surface/httpapi/portapi"
	"agentbox/internal/surface/httpapi/runapi"
	"agentbox/internal/surface/httpapi/spaceapi"
	"agentbox/internal/surface/httpapi/talkapi"
	"agentbox/internal/surface/httpapi/toolapi"
	"agentbox/internal/surface/httpapi/wire"
)

// Services are the services that the operations call.
type Services struct {
	Gate       *gate.Gate
	Spaces     *spaces.Service
	Ports      *ports.Service
	OpenToken  portapi.OpenToken // of the tokens of E2B; nil for none
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
	Models     *models.Service
	Servers    *toolservers.Service
	Agents     *agents.Starter
	Incidents  *incidents.Service
	Nodes      *nodes.Service
	Spool      access.Spool

	FileProblems func(ws id.Workspace) []string // why files about models are not used; may be nil

	MaxWorkspace int64 // bytes of a workspace's file that is sent

	Checks  []hostapi.Check                     // of readiness
	Metrics http.Handler                        // answers with the metrics
	Tally   func(ws id.Workspace) hostapi.Tally // counts the daemon's work for a workspace
}

// Server answers the HTTP API. Make it with New, then Run it.
type Server struct {
	*wire.Server
	health *hostapi.HealthAPI
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
	a := access.NewAccess(services.Gate, services.Spaces, services.Query, services.Log, services.Identity, services.Docs, services.Labels)
	c.Bound, c.Barred, c.Labels, c.Resolve = a.Bound, a.Barred, a.Labelled, a.Resolve
	c.Narrow = func(ctx context.Context, who principal.Caller, t id.Token) (principal.Caller, error) {
		return services.Identity.ActsFor(ctx, who, "", t)
	}
	c.Tags = []string{"service", "auth", "principals", "rooms", "spaces", "ports", "snapshots", "runs", "engines", "files", "contexts",
		"approvals", "policies", "blueprints", "models", "tools", "incidents", "labels", "events", "audit", "content"}
	s := &Server{Server: wire.New(c)}
	p := access.Part{Server: s.Server, Access: a}
	s.health = hostapi.NewHealth(p, services.Spaces, version, services.Checks, services.FileProblems)
	register(p, s.health, services)
	previews := portapi.New(p, services.Ports, services.OpenToken)
	previews.Register()
	wire.Previews(s.Server, previews.Serve)
	describe(s.Server)
	s.Object("PolicyApproval", "request")
	s.Object("PolicyExplanation", "request")
	s.Finish()
	return s
}

// register adds the operations of all subjects, in the order in which the API document lists them.
func register(p access.Part, health *hostapi.HealthAPI, of Services) {
	answers := policyapi.NewApprovals(p, of.Gate)
	evaluations := policyapi.NewOutside(p, of.Outside, of.Gate)
	spaceRuns := runapi.NewRuns(p, of.Gate, of.Spaces, of.Runs, of.Engines, of.Redaction, of.Identity, answers)
	claims := runapi.NewClaims(p, of.Spaces, of.Engines, of.Query, spaceRuns)
	for _, subject := range []interface{ Register() }{
		health,
		hostapi.NewTop(p, of.Gate, of.Spaces, of.Runs, of.Engines, of.Log, of.Metrics, of.Tally),
		peopleapi.NewSessions(p, of.Identity),
		peopleapi.NewPrincipals(p, of.Identity),
		peopleapi.NewCapabilities(p, of.Identity),
		peopleapi.NewEngines(p, of.Engines, of.Identity),
		talkapi.NewRooms(p, of.Rooms),
		talkapi.NewSearch(p, of.Rooms, of.Search),
		spaceapi.NewSpaces(p, of.Gate, of.Spaces),
		spaceapi.NewSnapshots(p, of.Spaces),
		spaceRuns,
		runapi.NewTranscripts(p, of.Spaces, of.Runs, of.Prover, of.Spool, spaceRuns),
		claims,
		runapi.NewAgents(p, of.Agents, claims),
		runapi.NewSteps(p, of.Engines, of.Query),
		runapi.NewArtifacts(p, of.Engines),
		runapi.NewEvidence(p, of.Engines),
		spaceapi.NewFiles(p, of.Gate, of.Spaces, of.Spool),
		spaceapi.NewWatches(p, of.Spaces),
		runapi.NewContexts(p, of.Spaces, of.Runs, spaceRuns),
		answers,
		policyapi.NewPolicies(p, of.Gate, of.Spaces, of.Runs, of.Outside, evaluations),
		evaluations,
		policyapi.NewActionTypes(p, of.Gate),
		policyapi.NewBlueprints(p, of.Blueprints, of.Agents != nil && of.Agents.Floating),
		modelapi.New(p, of.Models, of.FileProblems),
		toolapi.New(p, of.Servers),
		policyapi.NewIncidents(p, of.Incidents),
		policyapi.NewLabels(p, of.Labels),
		auditapi.NewEvents(p, of.Rooms, of.Query),
		auditapi.NewCauses(p, of.Query),
		auditapi.NewAudit(p, of.Query, of.Log, of.Prover),
		hostapi.NewContent(p, of.Runs, of.GC),
		auditapi.NewRedactions(p, of.Redaction),
		hostapi.NewWorkspaces(p, of.Transfer, of.Spool, of.MaxWorkspace),
		peopleapi.NewTenants(p, of.Workspaces),
		hostapi.NewNodes(p, of.Nodes),
	} {
		subject.Register()
	}
}

// Run serves until ctx ends, and returns when also no check is tried any more.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	defer s.health.Wait()
	return s.Server.Run(ctx, l)
}
