package httpapi

import (
	"context"

	"agentbox/internal/domain/id"
	"agentbox/internal/service/executor"
	"agentbox/internal/service/keeper"
	"agentbox/internal/service/reader"
)

// apiVersion is the version of the API, not of the daemon.
const apiVersion = "1.0"

// Services are what the operations call.
type Services struct {
	Gate     Gatekeeper
	Keeper   *keeper.Keeper
	Executor *executor.Executor
	Reader   *reader.Reader
	Spool    Spool
	Checks   []Check // of readiness
}

// Caller is who a key belongs to.
type Caller struct {
	Principal id.Principal
	Workspace id.Workspace
	Role      string
}

// Gatekeeper is what the API needs of the gate.
type Gatekeeper interface {
	Authenticate(ctx context.Context, bearer string) (Caller, error)
}

// tags are the groups of operations, in the order of the docs.
var tags = []string{"service", "auth", "spaces", "runs", "files", "approvals", "policies", "events", "audit"}

func (s *Server) register() {
	s.registerHealth()
	s.registerSpaces()
	s.registerRuns()
	s.registerFiles()
	s.registerEvents()
	s.registerDocs()
}
