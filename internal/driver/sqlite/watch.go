package sqlite

import (
	"sync"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// watch holds the number and the committed head of every workspace, and wakes those who wait for a head to move.
type watch struct {
	journal.Heads
	mu      sync.RWMutex
	numbers map[id.Workspace]int64 // guarded by mu
}

func (w *watch) load(tenants map[id.Workspace]*tenant) {
	for ws, t := range tenants {
		w.set(ws, t.no, t.head)
	}
}

func (w *watch) set(ws id.Workspace, no int64, head uint64) {
	w.mu.Lock()
	if w.numbers == nil {
		w.numbers = map[id.Workspace]int64{}
	}
	w.numbers[ws] = no
	w.mu.Unlock()
	w.Advance(ws, head)
}

// number returns the number of a workspace, 0 for one without events.
func (w *watch) number(ws id.Workspace) int64 {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.numbers[ws]
}
