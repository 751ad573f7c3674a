package space

import (
	"context"
	"time"

	"agentbox/internal/domain/policy"
)

// Kinds of events of a watch.
const (
	WatchCreated = "created" // the entry is there, and was not
	WatchChanged = "changed" // its content, its size, its time or its permissions are others; also where another file took its place
	WatchRemoved = "removed" // the entry is gone; entries of a removed folder are reported before the folder
	WatchRenamed = "renamed" // the entry has another path; what lies in a folder goes with it and is not told one by one
)

// The bounds of one watch.
const (
	MaxWatchEntries = 50_000 // files and folders below the watched folder
	MaxWatchDepth   = 256    // folders nested in it, as in a snapshot
)

// WatchPoll is how long a watch waits between two looks where the host notes nothing by itself.
const WatchPoll = time.Second

// WatchEvent is one thing that became of an entry of a watched folder. The events of a watch tell what became of the files, not each step
// on the way: a file that comes and goes between two looks is not told, and several writes may be one change.
type WatchEvent struct {
	Kind       string // created, changed, removed or renamed
	Path       string // relative to the space's files, with slashes
	From       string // of a renamed entry, its earlier path
	Type       string // file, directory, symlink or other
	Size       int64  // of a file, in bytes; 0 for a removed one
	Attributes bool   // of a change: only the permissions are others
}

// Without returns an event without some paths that the reader may not see: a rename from or to such a path is the creation or the removal
// of the other one. It returns false if nothing is left.
func (e WatchEvent) Without(hidden func(path string) bool) (WatchEvent, bool) {
	switch from := e.From != "" && hidden(e.From); {
	case hidden(e.Path) && (e.From == "" || from):
		return WatchEvent{}, false
	case hidden(e.Path):
		return WatchEvent{Kind: WatchRemoved, Path: e.From, Type: e.Type}, true
	case from:
		e.Kind, e.From = WatchCreated, ""
	}
	return e, true
}

// Watch reports the changes of entries of one folder of a space, in order. One goroutine uses it; Join and Close may be
// called from others.
type Watch interface {
	// Next waits for events and returns them. It returns a fault watched_folder_removed after the folder went away, space_files_missing after
	// the space did, and watch_too_large when the folder has grown beyond the bounds; then the watch is over.
	Next(ctx context.Context) ([]WatchEvent, error)
	// Join redeems the permit of another caller who wants to hear the same: a file.list permit of the same folder.
	Join(p policy.Permit) error
	// Polls returns how long the watch waits between two looks at the files; 0 where the host notes changes at once.
	Polls() time.Duration
	// Close ends the watch, and a Next that waits.
	Close() error
}
