// Package access holds the shared code of the operations: a caller's rights and sight, names, pages, and answers to repeats.
package access

import (
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/labels"
	"agentbox/internal/service/query"
	"agentbox/internal/service/spaces"
	"agentbox/internal/surface/httpapi/wire"
)

// Access checks a caller's rights and resolves the names in a request. The operations of all subjects use it.
type Access struct {
	gate     *gate.Gate
	spaces   *spaces.Service
	Query    *query.Service
	log      journal.Journal
	identity *identity.Service
	docs     projection.Reader
	labels   *labels.Service
}

// NewAccess returns the access to what services have.
func NewAccess(gate *gate.Gate, spaces *spaces.Service, query *query.Service, log journal.Journal, identity *identity.Service,
	docs projection.Reader, labels *labels.Service) *Access {
	return &Access{gate, spaces, query, log, identity, docs, labels}
}

// Part holds the shared services of the operations of a subject.
type Part struct {
	*wire.Server
	*Access
}
