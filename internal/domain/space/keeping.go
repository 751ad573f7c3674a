package space

import (
	"context"

	"agentbox/internal/domain/id"
)

// Keeping is what an executor needs of the service that keeps spaces.
type Keeping interface {
	// Space returns the document of a space of the workspace.
	Space(ctx context.Context, ws id.Workspace, s id.Space) (Space, error)
	// Files returns the files of a living space.
	Files(ctx context.Context, ws id.Workspace, s id.Space) (Files, error)
	// Instance returns the running instance of a space and starts it again if the daemon or the space has ended since.
	Instance(ctx context.Context, ws id.Workspace, s id.Space) (Instance, error)
}
