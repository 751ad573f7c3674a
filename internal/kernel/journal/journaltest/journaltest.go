// Package journaltest is the conformance suite of logs and of the documents folded from them.
//
// Every log that passes it can replace any other.
package journaltest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Log is a driver's store: events, and documents folded from them.
type Log interface {
	journal.Journal
	journal.Adopter
	journal.Keyed
	journal.Redactor
	projection.Store
	Close() error
}

// Setup holds the inputs of a log.
type Setup struct {
	Definitions []projection.Definition
	Clock       event.Clock
	IDs         *id.Source
	Entropy     io.Reader
}

// Driver makes logs.
type Driver struct {
	Open   func(t *testing.T, s Setup) Log        // an empty log, closed when the test ends
	Reopen func(t *testing.T, l Log, s Setup) Log // closes a log and opens its remains; nil if nothing lasts
}

// The workspace and the principals of the suite's events.
const (
	Workspace      id.Workspace = "ws_dev"
	OtherWorkspace id.Workspace = "ws_other"
	Room           id.Room      = "room_01ARZ3NDEKTSV4RRFFQ69G5FAV"
	User           id.Principal = "usr_01ARZ3NDEKTSV4RRFFQ69G5FAV"
)

// Run tests the logs that a driver makes.
func Run(t *testing.T, d Driver) {
	for name, test := range map[string]func(t *testing.T, d Driver){
		"stamps":                            stamps,
		"refuses bad batches":               refusesBadBatches,
		"limits of a batch":                 limitsOfABatch,
		"expected versions":                 expectedVersions,
		"batch keys":                        batchKeys,
		"event keys":                        eventKeys,
		"chains":                            chains,
		"many writers":                      manyWriters,
		"one of many wins":                  oneOfManyWins,
		"queries":                           queries,
		"causes":                            causes,
		"workspaces are apart":              workspacesAreApart,
		"forged lines":                      forgedLines,
		"own bytes":                         ownBytes,
		"wait":                              wait,
		"tail":                              tail,
		"tail of a stream":                  tailOfAStream,
		"closed":                            closed,
		"documents":                         documents,
		"document lists":                    documentLists,
		"folds that fail":                   foldsThatFail,
		"rebuild":                           rebuild,
		"ended context":                     endedContext,
		"adoption":                          adoption,
		"adoptions that fail":               adoptionsThatFail,
		"adoption of redactions":            adoptionOfRedactions,
		"adoption of keys":                  adoptionOfKeys,
		"adoptions of redactions that fail": adoptionsOfRedactionsThatFail,
		"redaction":                         redaction,
		"redacts as recorded":               redactsAsRecorded,
	} {
		t.Run(name, func(t *testing.T) { test(t, d) })
	}
	if d.Reopen == nil {
		return
	}
	for name, test := range map[string]func(t *testing.T, d Driver){
		"restart":               restart,
		"restart with new fold": restartWithNewFold,
		"restart of redaction":  restartOfRedaction,
	} {
		t.Run(name, func(t *testing.T) { test(t, d) })
	}
}

// NewSetup returns a setup in which time and chance are the same each time: every look at the clock is a millisecond later.
func NewSetup(defs ...projection.Definition) Setup {
	clock := &Clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	return Setup{Definitions: defs, Clock: clock, IDs: id.NewSource(clock.Now, &Chance{}), Entropy: &Chance{}}
}

// With returns a setup of other definitions whose time and chance go on.
func (s Setup) With(defs ...projection.Definition) Setup {
	s.Definitions = defs
	return s
}

// Clock is a clock that goes on by a millisecond whenever it is read. Its timers fire at once.
type Clock struct {
	mu sync.Mutex // guards at
	at time.Time
}

// Now implements event.Clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(time.Millisecond)
	return c.at
}

// NewTimer implements event.Clock.
func (c *Clock) NewTimer(time.Duration) (<-chan time.Time, func()) {
	fired := make(chan time.Time, 1)
	fired <- c.Now()
	return fired, func() {}
}

// Chance is a source of bytes that look random and are the same each time.
type Chance struct {
	mu sync.Mutex // guards n
	n  uint64
}

// Read implements io.Reader.
func (c *Chance) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := 0; i < len(p); i += sha256.Size {
		c.n++
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, c.n))
		copy(p[i:], sum[:])
	}
	return len(p), nil
}

// Note is the data of the suite's events.
type Note struct {
	Text string `json:"text,omitempty"`
	N    int    `json:"n,omitempty"`
}

// Draft is an event of the suite: about nothing, in the workspace's stream.
func Draft(text string) event.Draft {
	return event.New("note.written", event.Origin{Principal: User}, Workspace, "", Note{Text: text})
}

// InRoom is an event of the suite in a room's stream.
func InRoom(room id.Room, text string) event.Draft {
	return event.New("note.written", event.Origin{Principal: User}, Workspace, room, Note{Text: text})
}

// Of moves a draft into another workspace.
func Of(ws id.Workspace, d event.Draft) event.Draft {
	d.Workspace, d.Stream = ws, event.RoomStream(ws, d.Room)
	return d
}

// Batch is a batch of the suite's workspace.
func Batch(drafts ...event.Draft) event.Batch {
	return event.Batch{Workspace: drafts[0].Workspace, Drafts: drafts}
}

func open(t *testing.T, d Driver, defs ...projection.Definition) Log {
	t.Helper()
	return d.Open(t, NewSetup(defs...))
}

func appendAll(t *testing.T, l journal.Journal, b event.Batch) []event.Event {
	t.Helper()
	receipt, err := l.Append(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return receipt.Events
}

func read(t *testing.T, l journal.Journal, q journal.Query) []event.Event {
	t.Helper()
	if q.Workspace == "" {
		q.Workspace = Workspace
	}
	events, err := l.Read(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func head(t *testing.T, l journal.Journal, ws id.Workspace) uint64 {
	t.Helper()
	n, err := l.Head(t.Context(), ws)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// CheckChains reads a workspace's whole log and reports errors. Places must have no gaps, in the workspace and in every stream, and every
// event must name the hash of the one before.
func CheckChains(ctx context.Context, l journal.Journal, ws id.Workspace) error {
	tips := map[event.Stream]journal.Tip{}
	next := uint64(1)
	for {
		events, err := l.Read(ctx, journal.Query{Workspace: ws, From: next, Limit: journal.MaxRead})
		if err != nil {
			return err
		}
		for i := range events {
			e := &events[i]
			tip := tips[e.Stream]
			if e.Seq != next || e.StreamSeq != tip.Seq+1 {
				return fmt.Errorf("event %s has place %d and %d in its stream, want %d and %d", e.ID, e.Seq, e.StreamSeq, next, tip.Seq+1)
			}
			if e.Chain.Prev != tip.Hash || e.Chain.Hash != journal.HashOf(e) || (e.Withheld == "" &&
				e.Chain.Commitment != journal.Commit(e.Chain.Salt, e.Data)) {
				return fmt.Errorf("event %d does not continue its chain", e.Seq)
			}
			tips[e.Stream] = journal.Tip{Seq: e.StreamSeq, Hash: e.Chain.Hash}
			next++
		}
		if len(events) < journal.MaxRead {
			break
		}
	}
	n, err := l.Head(ctx, ws)
	if err != nil {
		return err
	}
	if n != next-1 {
		return fmt.Errorf("the head is %d, want %d", n, next-1)
	}
	streams, err := l.Streams(ctx, ws)
	if err != nil {
		return err
	}
	if len(streams) != len(tips) {
		return fmt.Errorf("%d streams, want %d", len(streams), len(tips))
	}
	for _, s := range streams {
		if tip := tips[s.Stream]; s.Version != tip.Seq || s.Hash != tip.Hash {
			return fmt.Errorf("stream %v ends at %d with %s, want %d with %s", s.Stream, s.Version, s.Hash, tip.Seq, tip.Hash)
		}
	}
	return nil
}
