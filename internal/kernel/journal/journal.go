// Package journal is the contract of the append-only log: batches in, events out, a hash chain between them.
package journal

import (
	"context"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Limits of one batch, of one event's data and of one read.
const (
	MaxBatch     = 1_000    // drafts
	MaxDataBytes = 16 << 20 // bytes of one event's data; larger content belongs into a blob
	MaxRead      = 1_000    // events per Read
)

// The refusals of a journal.
var (
	// ErrConflict means that a stream or a document has moved on since the caller looked.
	ErrConflict = fault.New(fault.Conflict, "version_conflict", "it has changed in the meantime; look again, then retry")
	// ErrKeyConflict means that an idempotency key was used for another batch.
	ErrKeyConflict = fault.New(fault.Conflict, "idempotency_conflict", "this idempotency key was used for something else; choose a new key")
	// ErrNotFound means that the workspace has no such event.
	ErrNotFound = fault.New(fault.NotFound, "not_found", "there is no such event in this workspace")
	// ErrClosed means that the journal is shut, or was shut by a write error; nothing more is accepted.
	ErrClosed = fault.New(fault.Unavailable, "log_unavailable",
		"the log cannot be written, and nothing is done without it; see that its disk is well and has room; the daemon opens it again where it "+
			"can, and says where it has to be started again")
)

// Query selects events of one workspace, in ascending order of their place. Zero fields do not select; every other one is served by an
// index.
type Query struct {
	Workspace   id.Workspace
	From        uint64 // the lowest place, inclusive; of the stream if one is named, else of the workspace
	Before      uint64 // the place at which to stop, exclusive; 0 for the end
	Stream      event.Stream
	Run         id.Run
	Step        id.Step
	Thread      id.Thread
	Correlation id.Correlation
	Causation   id.Event // the events that name this one as their cause
	EntityType  string   // with EntityID
	EntityID    string
	Types       []string // at most 20; filters what the other fields select
	Last        bool     // the last Limit of them instead of the first; still ascending
	Limit       int      // 1 to MaxRead; 0 means 100
	Follows     bool     // the reader follows the log, so recent events need not be read from the disk
}

// Place returns an event's place in the query's stream if it names one, else in the workspace.
func (q *Query) Place(e *event.Event) uint64 {
	if q.Stream != (event.Stream{}) {
		return e.StreamSeq
	}
	return e.Seq
}

// Selects reports whether an event of the query's workspace is among those that it selects, whatever its limit.
func (q *Query) Selects(e *event.Event) bool {
	place := q.Place(e)
	return place >= q.From && (q.Before == 0 || place < q.Before) &&
		(q.Stream == event.Stream{} || q.Stream == e.Stream) &&
		(q.Run == "" || q.Run == e.Run) && (q.Step == "" || q.Step == e.Step) && (q.Thread == "" || q.Thread == e.Thread) &&
		(q.Correlation == "" || q.Correlation == e.Correlation) && (q.Causation == "" || q.Causation == e.Causation) &&
		(q.EntityID == "" || q.EntityType == e.EntityType && q.EntityID == e.EntityID) &&
		(len(q.Types) == 0 || slices.Contains(q.Types, e.Type))
}

// Journal is the log. Every method is safe for concurrent use. The conformance suite is package journaltest.
type Journal interface {
	// Append records the batch durably, folds it into every document that it changes in the same transaction, and returns its events.
	Append(ctx context.Context, b event.Batch) (event.Receipt, error)
	// Get returns one event of the workspace.
	Get(ctx context.Context, ws id.Workspace, e id.Event) (event.Event, error)
	// Read returns the events that the query selects, and no more than its limit.
	Read(ctx context.Context, q Query) ([]event.Event, error)
	// Used returns the use of a batch's idempotency key; false if no recorded batch used it.
	Used(ctx context.Context, ws id.Workspace, key string) (Use, bool, error)
	// Head returns the place of the workspace's last event, 0 if it has none.
	Head(ctx context.Context, ws id.Workspace) (uint64, error)
	// Wait returns when the workspace's head is greater than after, when ctx ends, or with ErrClosed.
	Wait(ctx context.Context, ws id.Workspace, after uint64) error
	// Streams returns every stream of the workspace with its head, for the verification of the chains.
	Streams(ctx context.Context, ws id.Workspace) ([]event.StreamVersion, error)
	// Workspaces returns every workspace that has an event, in order.
	Workspaces(ctx context.Context) ([]id.Workspace, error)
}

// Redactor is a Journal that can destroy data. Before that, the caller records an event of event.RedactedType for each event.
type Redactor interface {
	// Redact destroys the data of events whose redaction is recorded, at most MaxBatch of them. It folds every document that they had touched
	// again from the rest. When it returns, no file of the log has a byte of the data any more. A repeated redaction does nothing. An event
	// without a recorded redaction is a fault.
	Redact(ctx context.Context, ws id.Workspace, seqs []uint64) error
	// Unfinished returns the places of events whose redaction is recorded and not yet done, at most MaxBatch of them.
	Unfinished(ctx context.Context, ws id.Workspace) ([]uint64, error)
}

// ErrUnrecorded means that no redaction of the event is recorded.
var ErrUnrecorded = fault.New(fault.Conflict, "redaction_unrecorded",
	"data are destroyed only where the log says that they are: record the redaction first")
