// Package documents lists the documents that a daemon keeps: those of every service.
package documents

import (
	"slices"

	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/blueprints"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gc"
	"agentbox/internal/service/incidents"
	"agentbox/internal/service/labels"
	"agentbox/internal/service/models"
	"agentbox/internal/service/redaction"
	"agentbox/internal/service/rooms"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/spaces"
	"agentbox/internal/service/toolservers"
	"agentbox/internal/service/transfer"
	"agentbox/internal/service/workspaces"
)

// All returns the definitions of the documents. A program that opens a log needs them.
func All() []projection.Definition {
	return slices.Concat(
		gate.Definitions(),
		rooms.Definitions(),
		engines.Definitions(),
		labels.Definitions(),
		blueprints.Definitions(),
		models.Definitions(),
		toolservers.Definitions(),
		[]projection.Definition{
			spaces.Definition(), spaces.ChangeDefinition(), spaces.SnapshotDefinition(),
			runs.Definition(), runs.LoadDefinition(), gc.Definition(), redaction.Definition(), transfer.Definition(), workspaces.Definition(),
			incidents.Definition(),
		},
	)
}
