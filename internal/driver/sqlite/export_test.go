package sqlite

import (
	"context"

	"agentbox/internal/domain/id"
)

// FlushedAtOnce is the number of events that the tables lag behind at most, between two groups.
const FlushedAtOnce = flushedAtOnce

// Flush brings the tables up to the log.
func (j *Journal) Flush() error {
	return j.planning.do(&request{ctx: context.Background(), task: func(context.Context) error { return nil }})
}

// TryRoom reports whether there is the room that has to be free before a log is opened again, beside a log of that path.
func TryRoom(path string) error {
	return (&mending{file: &file{options: Options{Path: path}}}).tryRoom()
}

// MendingRoom is that room, in bytes.
const MendingRoom = mendingRoom

// The part of the last events that is kept.
const (
	RecentEvents = recentEvents
	RecentBytes  = recentBytes
	RecentTotal  = recentTotal
)

// Recent returns how many of the last events of a workspace are in memory, and how many bytes count for them; of all workspaces for none.
func (j *Journal) Recent(ws id.Workspace) (events, bytes int) {
	j.views.recent.mu.RLock()
	defer j.views.recent.mu.RUnlock()
	if ws == "" {
		return 0, j.views.recent.bytes
	}
	if at := j.views.recent.of[ws]; at != nil {
		return len(at.events), at.bytes
	}
	return 0, 0
}

// Absences returns how many keys without a document the log keeps in memory, and checks the count.
func Absences(j *Journal) int {
	j.views.shelf.mu.RLock()
	defer j.views.shelf.mu.RUnlock()
	n := 0
	for _, at := range j.views.shelf.places {
		if at.full && at.doc.Version == 0 {
			n++
		}
	}
	if n != j.views.shelf.absent {
		return -1
	}
	return n
}
