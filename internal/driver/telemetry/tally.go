package telemetry

import (
	"sync"
	"sync/atomic"

	"agentbox/internal/domain/id"
)

// Tally is what the daemon has done for one workspace since it was started. No metric has it, for workspaces are no short list.
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

// Tally returns what was counted for a workspace.
func (m *Metrics) Tally(ws id.Workspace) Tally {
	t := m.tallies.of(ws)
	return Tally{t.decisions.Load(), t.appends.Load()}
}
