// Package httpapi is the HTTP API: a table of operations, each of which reads a request, calls one service and writes its answer.
package httpapi

import (
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/auditor"
	"agentbox/internal/service/executor"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/keeper"
	"agentbox/internal/service/reader"
	"agentbox/internal/surface/httpapi/wire"
)

// Services are what the operations call.
type Services struct {
	Gate     *gate.Gate
	Keeper   *keeper.Keeper
	Executor *executor.Executor
	Reader   *reader.Reader
	Log      journal.Journal // which the audit verifies
	Prover   *auditor.Prover
	Spool    Spool
	Checks   []Check // of readiness
}

// Server answers the HTTP API. Make it with New, then Run it.
type Server struct {
	*wire.Server
	services Services
	version  string
	prober   prober
}

// New makes a server of the daemon's version; it listens nowhere yet.
func New(c wire.Config, services Services, version string) *Server {
	c.Tags = []string{"service", "auth", "spaces", "runs", "files", "approvals", "policies", "events", "audit"}
	s := &Server{Server: wire.New(c), services: services, version: version}
	s.registerHealth()
	s.registerSpaces()
	s.registerRuns()
	s.registerFiles()
	s.registerApprovals()
	s.registerPolicies()
	s.registerEvents()
	s.registerAudit()
	s.Object("PolicyApproval", "request")
	s.Object("PolicyExplanation", "request")
	s.Finish()
	return s
}
