package sqlite

import (
	"context"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// What the ledger keeps in memory of what is in the file. Beyond these it forgets what it can read again.
const (
	keptStreams   = 16_384
	keptDocuments = 4_096
	keptBytes     = 32 << 20 // of documents, as JSON
	seqBits       = 40       // of a place; the rest is the number of the workspace
	maxSeq        = 1<<seqBits - 1
)

// tenant is a workspace in the ledger.
type tenant struct {
	no    int64
	head  uint64
	dirty bool // differs from its row
}

// line is a stream in the ledger.
type line struct {
	no    int64
	tip   journal.Tip
	dirty bool
	made  bool // has a row
}

type streamRef struct {
	workspace id.Workspace
	stream    event.Stream
}

type keyRef struct {
	workspace id.Workspace
	key       string
}

// folio is a document in the ledger: its state, and what of it is in the file.
type folio struct {
	no      int64 // of its row, 0 where it has none yet
	state   projection.State
	indexes []projection.Index // of the row
	size    int
	dirty   bool
}

// ledger is the log as the committer sees it: what is in the file, and over it what the present group adds. It belongs to the committer.
type ledger struct {
	w   *writer
	set *projection.Set

	// A group's changes, in the order in which they came.
	dirtyTenants []id.Workspace
	dirtyStreams []streamRef
	dirtyFolios  []projection.Ref
	newTypes     []string

	tenants     map[id.Workspace]*tenant
	types       map[string]int64
	projections map[string]int64
	nextTenant  int64
	nextStream  int64
	nextFolio   int64

	streams map[streamRef]*line
	folios  map[projection.Ref]*folio
	kept    int // bytes of folios
	uses    map[keyRef]journal.Use
	taken   map[keyRef]uint64
	ids     map[id.Event]bool

	broken error // the file could not be read; nothing that was planned since may be recorded
}

// load reads what the ledger always keeps, and drops the rest, with whatever a group that was not recorded has added.
func (l *ledger) load(ctx context.Context, w *writer) error {
	l.w = w
	l.uses, l.taken, l.ids = map[keyRef]journal.Use{}, map[keyRef]uint64{}, map[id.Event]bool{}
	l.nextTenant, l.nextStream, l.nextFolio = 0, 0, 0
	l.tenants, l.types, l.projections = map[id.Workspace]*tenant{}, map[string]int64{}, map[string]int64{}
	for sql, row := range map[string]func(s *sqlite3.Stmt){
		`SELECT no, name, head FROM workspaces`: func(s *sqlite3.Stmt) {
			t := &tenant{no: s.ColumnInt64(0), head: uint64(s.ColumnInt64(2))}
			l.tenants[id.Workspace(s.ColumnText(1))] = t
			l.nextTenant = max(l.nextTenant, t.no)
		},
		`SELECT no, name FROM projections`: func(s *sqlite3.Stmt) { l.projections[s.ColumnText(1)] = s.ColumnInt64(0) },
		`SELECT no, name FROM types`:       func(s *sqlite3.Stmt) { l.types[s.ColumnText(1)] = s.ColumnInt64(0) },
		`SELECT max(no) FROM streams`:      func(s *sqlite3.Stmt) { l.nextStream = s.ColumnInt64(0) },
		`SELECT max(no) FROM documents`:    func(s *sqlite3.Stmt) { l.nextFolio = s.ColumnInt64(0) },
	} {
		s, err := w.rows(sql)
		if err != nil {
			return err
		}
		for s.Step() {
			row(s)
		}
		if err := s.Err(); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
		if err := s.Reset(); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	l.streams, l.folios, l.kept = map[streamRef]*line{}, map[projection.Ref]*folio{}, 0
	l.settle()
	return nil
}

// settle ends a group: what it added is in the file now.
func (l *ledger) settle() {
	clear(l.uses)
	clear(l.taken)
	clear(l.ids)
	l.dirtyTenants, l.dirtyStreams, l.dirtyFolios, l.newTypes, l.broken = l.dirtyTenants[:0], l.dirtyStreams[:0], l.dirtyFolios[:0], l.newTypes[:0], nil
	if len(l.streams) > keptStreams {
		l.streams = map[streamRef]*line{}
	}
	if len(l.folios) > keptDocuments || l.kept > keptBytes {
		l.folios, l.kept = map[projection.Ref]*folio{}, 0
	}
}

// read runs a query that returns at most one row. What it cannot read breaks the group.
func (l *ledger) read(scan func(*sqlite3.Stmt), sql string, args ...any) (bool, error) {
	found, err := l.w.one(scan, sql, args...)
	if err != nil {
		l.broken = err
	}
	return found, err
}

// tenant returns a workspace, nil if there is none yet.
func (l *ledger) tenant(ws id.Workspace) *tenant { return l.tenants[ws] }

// Head implements journal.Ledger.
func (l *ledger) Head(ws id.Workspace) (uint64, error) {
	if t := l.tenant(ws); t != nil {
		return t.head, nil
	}
	return 0, nil
}

// Tip implements journal.Ledger.
func (l *ledger) Tip(ws id.Workspace, s event.Stream) (journal.Tip, error) {
	line, err := l.line(ws, s)
	if line == nil || err != nil {
		return journal.Tip{}, err
	}
	return line.tip, nil
}

func (l *ledger) line(ws id.Workspace, s event.Stream) (*line, error) {
	ref := streamRef{ws, s}
	if known := l.streams[ref]; known != nil {
		return known, nil
	}
	t := l.tenant(ws)
	if t == nil {
		return nil, nil
	}
	var found line
	ok, err := l.read(func(row *sqlite3.Stmt) {
		found.no, found.tip.Seq = row.ColumnInt64(0), uint64(row.ColumnInt64(1))
		copy(found.tip.Hash[:], row.ColumnRawBlob(2))
	}, `SELECT no, head, hash FROM streams WHERE workspace = ? AND type = ? AND id = ?`, t.no, s.Type, s.ID)
	if !ok || err != nil {
		return nil, err
	}
	found.made = true
	l.streams[ref] = &found
	return &found, nil
}

// Used implements journal.Ledger.
func (l *ledger) Used(ws id.Workspace, key string) (journal.Use, bool, error) {
	if use, ok := l.uses[keyRef{ws, key}]; ok {
		return use, true, nil
	}
	t := l.tenant(ws)
	if t == nil {
		return journal.Use{}, false, nil
	}
	var use journal.Use
	ok, err := l.read(func(row *sqlite3.Stmt) {
		copy(use.Digest[:], row.ColumnRawBlob(0))
		use.First, use.Count = uint64(row.ColumnInt64(1)), row.ColumnInt(2)
	}, `SELECT digest, first, count FROM batches WHERE workspace = ? AND key = ?`, t.no, key)
	return use, ok, err
}

// Taken implements journal.Ledger.
func (l *ledger) Taken(ws id.Workspace, key string) (bool, error) {
	if _, ok := l.taken[keyRef{ws, key}]; ok {
		return true, nil
	}
	t := l.tenant(ws)
	if t == nil {
		return false, nil
	}
	return l.read(func(*sqlite3.Stmt) {}, `SELECT 1 FROM event_keys WHERE workspace = ? AND key = ?`, t.no, key)
}

// Holds implements journal.Ledger.
func (l *ledger) Holds(e id.Event) (bool, error) {
	if l.ids[e] {
		return true, nil
	}
	uuid, ok := uuidBytes(e)
	if !ok {
		return false, nil
	}
	return l.read(func(*sqlite3.Stmt) {}, `SELECT 1 FROM events WHERE id = ?`, uuid[:])
}

// Folded implements journal.Ledger.
func (l *ledger) Folded(ws id.Workspace, name, key string) (uint64, error) {
	f, err := l.folio(projection.Ref{Workspace: ws, Name: name, Key: key})
	if err != nil {
		return 0, err
	}
	return f.state.Version, nil
}

// folio returns a document, empty where there is none.
func (l *ledger) folio(ref projection.Ref) (*folio, error) {
	if known := l.folios[ref]; known != nil {
		return known, nil
	}
	def, err := l.set.Lookup(ref.Name)
	if err != nil {
		return nil, err
	}
	f := &folio{}
	var body []byte
	var version, seq uint64
	if t := l.tenant(ref.Workspace); t != nil {
		_, err = l.read(func(row *sqlite3.Stmt) {
			f.no, version, seq = row.ColumnInt64(0), uint64(row.ColumnInt64(1)), uint64(row.ColumnInt64(2))
			body = row.ColumnBlob(3, nil)
		}, `SELECT no, version, seq, body FROM documents WHERE projection = ? AND workspace = ? AND key = ?`, l.projections[ref.Name], t.no, ref.Key)
		if err != nil {
			return nil, err
		}
	}
	if f.state, err = def.Restore(ref.Key, body, version, seq); err != nil {
		return nil, err
	}
	if body != nil {
		if _, f.indexes, err = f.state.Encode(); err != nil {
			return nil, err
		}
	}
	f.size = len(body)
	l.kept += f.size
	l.folios[ref] = f
	return f, nil
}

// fold folds planned events into the documents that they change.
func (l *ledger) fold(events []event.Event) error {
	load := func(ref projection.Ref) (projection.State, error) {
		f, err := l.folio(ref)
		if err != nil {
			return projection.State{}, err
		}
		return f.state, nil
	}
	save := func(ref projection.Ref, s projection.State) {
		f := l.folios[ref]
		if !f.dirty {
			l.dirtyFolios = append(l.dirtyFolios, ref)
		}
		f.state, f.dirty = s, true
	}
	for i := range events {
		if err := l.set.Fold(events[i], load, save); err != nil {
			return err
		}
	}
	return nil
}

// take adds a planned batch to what the ledger knows.
func (l *ledger) take(b event.Batch, events []event.Event) error {
	t := l.tenants[b.Workspace]
	if t == nil {
		l.nextTenant++
		t = &tenant{no: l.nextTenant}
		l.tenants[b.Workspace] = t
	}
	if t.head+uint64(len(events)) > maxSeq {
		return fault.New(fault.Exhausted, "log_full", "a workspace holds at most %d events", uint64(maxSeq))
	}
	for i := range events {
		e := &events[i]
		at, err := l.line(b.Workspace, e.Stream)
		if err != nil {
			return err
		}
		if at == nil {
			l.nextStream++
			at = &line{no: l.nextStream}
			l.streams[streamRef{b.Workspace, e.Stream}] = at
		}
		if !at.dirty {
			l.dirtyStreams = append(l.dirtyStreams, streamRef{b.Workspace, e.Stream})
		}
		at.tip, at.dirty = journal.Tip{Seq: e.StreamSeq, Hash: e.Chain.Hash}, true
		if e.IdempotencyKey != "" {
			l.taken[keyRef{b.Workspace, e.IdempotencyKey}] = e.Seq
		}
		if b.Drafts[i].ID != "" {
			l.ids[e.ID] = true
		}
		if l.types[e.Type] == 0 {
			l.types[e.Type] = int64(len(l.types)) + 1
			l.newTypes = append(l.newTypes, e.Type)
		}
	}
	if b.Key != "" {
		l.uses[keyRef{b.Workspace, b.Key}] = journal.Use{Digest: b.Digest, First: events[0].Seq, Count: len(events)}
	}
	if !t.dirty {
		l.dirtyTenants = append(l.dirtyTenants, b.Workspace)
	}
	t.head, t.dirty = events[len(events)-1].Seq, true
	return nil
}

var _ journal.Ledger = (*ledger)(nil)
