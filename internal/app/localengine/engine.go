// Package localengine is the engine within the daemon, which executes runs through the services that the API calls too.
//
// A run of operations is worked on in operations.go, a run of an agent in loop.go, and a run of an external agent in external.go. The other
// files are the tools of the daemon, and how people who watch a run are shown what happens in it.
package localengine

import (
	"cmp"
	"context"
	"log/slog"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/agents"
	"agentbox/internal/service/blueprints"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/labels"
	"agentbox/internal/service/models"
	"agentbox/internal/service/rooms"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/search"
	"agentbox/internal/service/spaces"
	"agentbox/internal/service/toolservers"
	"agentbox/internal/service/webpages"
)

// ID is the engine within the daemon, in every workspace whose runs it executes.
const ID id.Principal = "svc_00000000000000000000000001"

// Parts are what an engine works with.
type Parts struct {
	Log        journal.Journal
	Docs       projection.Reader
	Gate       *gate.Gate
	Identity   *identity.Service
	Spaces     *spaces.Service
	Runs       *runs.Service
	Engines    *engines.Service
	Rooms      *rooms.Service
	Search     *search.Service
	Labels     *labels.Service
	Blueprints *blueprints.Service
	Models     *models.Service
	Pages      *webpages.Service
	Servers    *toolservers.Service
	Clock      event.Clock
	Logger     *slog.Logger
	Floating   bool // blueprints may be used whose references have changed since they were pinned
	Shares     bool // other daemons work on the same log, and some spaces are theirs
}

// Engine is the engine within the daemon.
type Engine struct{ Parts }

// New returns an engine that executes nothing yet.
func New(p Parts) *Engine { return &Engine{p} }

// Keep keeps the files that the blueprint of an agent names when a run of the agent ends. It returns nothing for any other run.
func (e *Engine) Keep(ctx context.Context, origin event.Origin, doc run.Run) ([]event.Draft, *run.Gathered) {
	if len(doc.Patterns) == 0 || doc.StartedAt.IsZero() {
		return nil, nil
	}
	_, m, err := e.mission(ctx, doc.Workspace, doc.ID)
	if err != nil {
		e.Logger.Error("read which files a run of an agent keeps", "code", "agent_files_not_kept", "run", doc.ID, "error", err)
		return nil, &run.Gathered{Error: cmp.Or(fault.CodeOf(err), "internal_error")}
	}
	return e.Runs.KeepFor(ctx, runs.Kept{Workspace: doc.Workspace, Room: doc.Room, Run: doc.ID, Space: m.Space, Patterns: doc.Patterns,
		Token: doc.Token, Origin: origin})
}

// mission returns a run of an agent, and its mission.
func (e *Engine) mission(ctx context.Context, ws id.Workspace, r id.Run) (run.Run, errand.Mission, error) {
	doc, err := e.Engines.Find(ctx, ws, r)
	if err != nil {
		return doc, errand.Mission{}, err
	}
	given, err := e.Engines.Given(ctx, doc)
	if err != nil {
		return doc, errand.Mission{}, err
	}
	m, ok := errand.ReadMission(given)
	switch {
	case ok:
		return doc, m, nil
	case doc.Redacted:
		return doc, m, errand.ErrForgotten
	}
	return doc, m, agents.ErrNoAgent
}
