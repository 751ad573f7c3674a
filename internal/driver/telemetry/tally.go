package telemetry

import (
	"sync"
	"sync/atomic"

	"agentbox/internal/domain/id"
)

// Tally counts the daemon's work for one workspace since its start. No metric has it, because the list of workspaces is not short.
type Tally struct{ Decisions, Appends uint64 }

// tallies count for each workspace. Those exist that the operator has made, so that they are few.
type tallies struct{ counts sync.Map } // id.Workspace to *tally

type tally struct{ decisions, appends atomic.Uint64 }

func (t *tallies) of(ws id.Workspace) *tally {
	if found, ok := t.counts.Load(ws); ok {
		return found.(*tally)
	}
	found, _ := t.counts.LoadOrStore(ws, &tally{})
	return found.(*tally)
}

// Tally returns the counts of a workspace.
func (m *Metrics) Tally(ws id.Workspace) Tally {
	t := m.tallies.of(ws)
	return Tally{t.decisions.Load(), t.appends.Load()}
}
