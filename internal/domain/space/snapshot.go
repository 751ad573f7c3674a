package space

import (
	"context"
	"io"
	"maps"
	"slices"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// Snapshot is a state of a space's files, named by the hash of the tree of their folders. It holds their names, content and permission
// bits, symbolic links as links, and empty folders. It does not hold times, owners and extended attributes. A file with two names becomes
// two files. Other kinds of nodes are left out.
type Snapshot struct {
	Root    event.Digest `json:"snapshot_sha256"`
	Files   int64        `json:"files"`
	Bytes   int64        `json:"size_bytes"`        // of their content, holes included
	Omitted int64        `json:"omitted,omitempty"` // pipes, sockets and devices that it leaves out
}

// Kept is the statement of an event about its snapshot: the hash, or the code of the error that prevented it.
type Kept struct {
	Snapshot *Snapshot `json:"snapshot,omitempty"`
	Error    string    `json:"snapshot_error,omitempty"`
}

// SnapshotProjection is the name of the documents of snapshots.
const SnapshotProjection = "snapshots"

// Recorded is the document of one snapshot, under the id of the event that says it was made. The same snapshot can have several.
type Recorded struct {
	Snapshot
	Event     id.Event  `json:"event_id"`
	Space     id.Space  `json:"space_id"`
	Cause     string    `json:"cause"` // the type of the event: space.ready, run.started, tool.succeeded, tool.failed, space.rewound
	Run       id.Run    `json:"run_id,omitempty"`
	Step      id.Step   `json:"step_id,omitempty"`
	Operation string    `json:"operation_id,omitempty"`
	At        time.Time `json:"at"`
}

// snapshotEvents are the events that may say that a snapshot was made.
var snapshotEvents = map[string]bool{
	EventReady: true, EventRewound: true, EventRewindFailed: true, "run.started": true, "tool.succeeded": true, "tool.failed": true,
}

// KeepingEvents returns the types of the events that may report a snapshot, and the type of the event after which a space has none, in
// order.
func KeepingEvents() []string {
	return append(slices.Sorted(maps.Keys(snapshotEvents)), EventDestroyed)
}

// RecordedIn returns the snapshot that an event says was made, and false if it says nothing of one. It is pure.
func RecordedIn(e event.Event) (Recorded, bool, error) {
	if e.EntityType != EntityType || !snapshotEvents[e.Type] {
		return Recorded{}, false, nil
	}
	d, err := event.Decode[struct {
		Snapshot  *Snapshot `json:"snapshot"`
		Operation string    `json:"operation_id"`
	}](e)
	if err != nil || d.Snapshot == nil {
		return Recorded{}, false, err
	}
	return Recorded{
		Snapshot: *d.Snapshot, Event: e.ID, Space: id.Space(e.EntityID), Cause: e.Type, Run: e.Run, Step: e.Step, Operation: d.Operation,
		At: e.OccurredAt,
	}, true, nil
}

// The changes of a Difference.
const (
	Added    = "added"
	Removed  = "removed"
	Modified = "modified"
)

// Difference is one path that is not the same in two snapshots.
type Difference struct {
	Path   string   `json:"path"`
	Change string   `json:"change"` // added, removed or modified
	Before *Version `json:"before,omitempty"`
	After  *Version `json:"after,omitempty"`
}

// Version is the state of a path in a snapshot.
type Version struct {
	Type   string       `json:"type"` // file, directory or symlink
	Mode   string       `json:"mode,omitempty"`
	Size   int64        `json:"size_bytes,omitempty"`
	Digest event.Digest `json:"content_sha256,omitzero"`
	Target string       `json:"target,omitempty"` // of a symlink
}

// Bearing says which contents a snapshot holds, each with one of its paths.
type Bearing struct {
	Root  event.Digest
	Files map[event.Digest]string
}

// History holds the snapshots of one space's files. No code may run in the space during a call, unless the caller has called Distrust
// before.
type History interface {
	// Disturb says that code is about to run in the space, so that the next snapshot checks every file. Without it, the next snapshot checks
	// only files that were written through Files or rewound.
	Disturb()
	// Distrust is Disturb for code that goes on running while snapshots are made, and when it has ended. It may have mapped files, and writes
	// through a mapping leave no note. So the next snapshot checks every file.
	Distrust()
	// Keep records the files as they are now. It changes nothing that the space sees, with one exception: a rewind that a crash interrupted
	// is finished first.
	Keep(ctx context.Context) (Snapshot, error)
	// Kept returns the snapshots that can be returned to, the oldest first, and how many bytes they take.
	Kept(ctx context.Context) ([]Snapshot, int64, error)
	// Survey says how many bytes a sweep would free that lets snapshots go. It changes nothing.
	Survey(ctx context.Context, gone []event.Digest) (freed int64, err error)
	// Sweep lets snapshots go, but never the newest, by a permit for content.sweep, and returns how many bytes that freed: of content that no
	// snapshot needs any more, also such as others have left. Nothing that a kept snapshot needs is lost, wherever it is cut off.
	Sweep(ctx context.Context, p policy.Permit, gone []event.Digest) (freed int64, err error)
	// Brought returns the files that one snapshot holds and an earlier one does not, by their content, each with one of its paths. A zero
	// hash is an empty snapshot.
	Brought(ctx context.Context, before, after event.Digest) (map[event.Digest]string, error)
	// Bearing returns which of some contents each snapshot that is kept holds, the oldest first.
	Bearing(ctx context.Context, contents map[event.Digest]bool) ([]Bearing, error)
	// Purge removes unsealed copies of contents that an earlier version stored. It finishes a redaction, and so needs no permit.
	Purge(ctx context.Context, contents map[event.Digest]bool) error
	// Diff returns the differences between two snapshots, at most limit entries: from the Target of a space.diff permit to its Content.
	Diff(ctx context.Context, p policy.Permit, limit int) ([]Difference, error)
	// Archive writes a snapshot to w as a tar.gz file. The snapshot is the Content of a file.archive permit. If its content exceeds MaxBytes,
	// it returns a fault archive_too_large before the first byte. It leaves out files that may refuses, links that point outside, and invalid
	// names. It returns how many it left out.
	Archive(ctx context.Context, p policy.Permit, w io.Writer, may func(path string) bool) (omitted int, err error)
	// Rewind sets the files to the snapshot that is the Content of a space.rewind permit, all of them or none. It returns snapshots of the
	// files before, which is kept, and after.
	Rewind(ctx context.Context, p policy.Permit) (from, to Snapshot, err error)
}

// HeldSnapshot is the result of reading a snapshot and comparing it with its hash.
type HeldSnapshot struct {
	Read      int64  // bytes read
	Contents  int    // folders and files that were read and are whole
	Sealed    int    // that cannot be opened, for their keys are not here
	Forgotten int    // that were redacted
	Left      int    // that were not read, for the bound was reached
	Damage    string // the file that cannot be read or was changed; "" for none. Then not all was read
}

// Shelf is one space's stored snapshots, opened for a check: nothing is changed.
type Shelf interface {
	// Keeps reports whether a snapshot is kept.
	Keeps(root event.Digest) bool
	// Hold reads a kept snapshot and checks each folder and each file against its hash. It reads at most so many bytes. It does not read again
	// what an earlier call has checked.
	Hold(ctx context.Context, root event.Digest, most int64) (HeldSnapshot, error)
}
