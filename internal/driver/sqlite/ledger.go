package sqlite

import (
	"context"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Limits of the ledger's memory. Beyond these it forgets entries that it can read again.
const (
	keptStreams   = 16_384
	keptDocuments = 4_096
	keptBytes     = 32 << 20 // of documents, as JSON
	seqBits       = 40       // of a place; the rest is the number of the workspace
	maxSeq        = 1<<seqBits - 1
)

// ledger is the log as the planner sees it: the file, the commit in progress, and the additions of the present group. While group n is
// planned, group n-1 may be on its way to the file, and all earlier ones are there. So the ledger never forgets the changes of the last two
// groups, and everything else can be read.
type ledger struct {
	r   *connection
	set *projection.Set

	group       uint64 // number of the present group
	tenants     map[id.Workspace]*tenant
	types       map[string]int64
	projections map[string]int64
	nextTenant  int64
	nextStream  int64
	nextFolio   int64

	streams map[streamRef]*line
	folios  map[projection.Ref]*folio
	kept    int           // bytes of folios
	added   [2]*additions // by the present group and by the one before
	behind  behind
	keeps   bool // changes that the tables lack are not written

	// Changes of the current group, in their order.
	dirtyTenants []id.Workspace
	dirtyFolios  []*folio
	staleFolios  []*folio // of those, the ones that are to be encoded
	newStreams   []streamRef
	newTypes     []plannedType

	broken error // the file could not be read; nothing that was planned since may be recorded
}

type tenant struct {
	no      int64
	head    uint64
	flushed uint64 // when the ledger was loaded
	last    event.Digest
	made    bool // has a row, or will have
	dirty   bool // the present group changes it
}

type line struct {
	no     int64
	tip    journal.Tip
	group  uint64 // that changed it last
	made   bool   // has a row, or will have
	behind bool   // the row has an earlier end
}

type folio struct {
	ref     projection.Ref
	no      int64 // 0 where it has no row
	state   projection.State
	indexes []projection.Index // of the row
	size    int
	group   uint64
	dirty   bool // the present group changes it
	behind  bool // the row has an earlier state; that of the group before is encoded below
	stale   bool // the state is not encoded below
	body    []byte
	next    []projection.Index
}

type streamRef struct {
	workspace id.Workspace
	stream    event.Stream
}

type keyRef struct {
	workspace id.Workspace
	key       string
}

type additions struct {
	uses  map[keyRef]journal.Use
	taken map[keyRef]bool
	ids   map[id.Event]bool
}

func newAdditions() *additions {
	return &additions{uses: map[keyRef]journal.Use{}, taken: map[keyRef]bool{}, ids: map[id.Event]bool{}}
}

// load reads the permanent part of the ledger, and forgets the rest. Nothing may be on its way to the file.
func (l *ledger) load(ctx context.Context, r *connection) error {
	*l = ledger{
		r: r, set: l.set, tenants: map[id.Workspace]*tenant{}, types: map[string]int64{}, projections: map[string]int64{},
		streams: map[streamRef]*line{}, folios: map[projection.Ref]*folio{}, added: [2]*additions{newAdditions(), newAdditions()},
	}
	for _, q := range []struct {
		sql string
		row func(s *sqlite3.Stmt)
	}{
		{`SELECT no, name, head, flushed FROM workspaces`, func(s *sqlite3.Stmt) {
			t := &tenant{no: s.ColumnInt64(0), head: uint64(s.ColumnInt64(2)), flushed: uint64(s.ColumnInt64(3)), made: true}
			l.tenants[id.Workspace(s.ColumnText(1))] = t
			l.nextTenant = max(l.nextTenant, t.no)
		}},
		{`SELECT no, name FROM projections`, func(s *sqlite3.Stmt) { l.projections[s.ColumnText(1)] = s.ColumnInt64(0) }},
		{`SELECT no, name FROM types`, func(s *sqlite3.Stmt) { l.types[s.ColumnText(1)] = s.ColumnInt64(0) }},
		{`SELECT max(no) FROM streams`, func(s *sqlite3.Stmt) { l.nextStream = s.ColumnInt64(0) }},
		{`SELECT max(no) FROM documents`, func(s *sqlite3.Stmt) { l.nextFolio = s.ColumnInt64(0) }},
	} {
		s, err := r.rows(q.sql)
		if err != nil {
			return err
		}
		for s.Step() {
			q.row(s)
		}
		if err := finish(s); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return l.orphans(r)
}

// errOrphans refuses a log of which a workspace was taken away: the rest of it would be hidden, and another would get its place.
var errOrphans = fault.New(fault.Internal, "log_damaged",
	"the log holds events of a workspace that it does not name any more: a row of it was removed").
	With("put the log back from a copy that agentbox audit verify finds intact")

// findOrphans steps from workspace to workspace of the streams, and looks at the two ends of the events. The number of rows that it
// reads does not grow with the log.
const findOrphans = `WITH RECURSIVE streamed (no) AS (
		SELECT min(workspace) FROM streams
		UNION ALL SELECT (SELECT min(workspace) FROM streams WHERE workspace > streamed.no) FROM streamed WHERE streamed.no IS NOT NULL)
	SELECT 1 FROM (SELECT no FROM streamed UNION ALL SELECT (SELECT min(place) FROM events) >> ?1 UNION ALL SELECT (SELECT max(place) FROM
	events) >> ?1)
	WHERE no IS NOT NULL AND no NOT IN (SELECT no FROM workspaces) LIMIT 1`

// orphans reports events or streams whose workspace is not there.
func (l *ledger) orphans(r *connection) error {
	found, err := r.one(func(*sqlite3.Stmt) {}, findOrphans, int64(seqBits))
	if err == nil && found {
		err = errOrphans
	}
	return err
}

// begin starts a group. The one before has been handed to the committer, and with it all before that one are in the file.
func (l *ledger) begin() {
	l.group++
	l.added[0], l.added[1] = l.added[1], l.added[0]
	clear(l.added[0].uses)
	clear(l.added[0].taken)
	clear(l.added[0].ids)
	l.dirtyTenants, l.newStreams, l.newTypes = l.dirtyTenants[:0], l.newStreams[:0], nil
	l.dirtyFolios, l.staleFolios = l.dirtyFolios[:0], l.staleFolios[:0]
	if len(l.streams) > keptStreams {
		for ref, at := range l.streams {
			if at.group+1 < l.group && !at.behind {
				delete(l.streams, ref)
			}
		}
	}
	if len(l.folios) > keptDocuments || l.kept > keptBytes {
		for ref, f := range l.folios {
			if f.group+1 < l.group && !f.behind {
				delete(l.folios, ref)
				l.kept -= f.size
			}
		}
	}
}

// read runs a query that returns at most one row. An error breaks the group.
func (l *ledger) read(scan func(*sqlite3.Stmt), sql string, args ...any) (bool, error) {
	found, err := l.r.one(scan, sql, args...)
	if err != nil {
		l.broken = err
	}
	return found, err
}

// Head implements journal.Ledger.
func (l *ledger) Head(ws id.Workspace) (uint64, error) {
	if t := l.tenants[ws]; t != nil {
		return t.head, nil
	}
	return 0, nil
}

// Tip implements journal.Ledger.
func (l *ledger) Tip(ws id.Workspace, s event.Stream) (journal.Tip, error) {
	at, err := l.line(ws, s)
	if at == nil || err != nil {
		return journal.Tip{}, err
	}
	return at.tip, nil
}

// line returns a stream, nil if there is none.
func (l *ledger) line(ws id.Workspace, s event.Stream) (*line, error) {
	ref := streamRef{ws, s}
	if known := l.streams[ref]; known != nil {
		return known, nil
	}
	t := l.tenants[ws]
	if t == nil {
		return nil, nil
	}
	found := &line{made: true}
	ok, err := l.read(func(row *sqlite3.Stmt) {
		found.no, found.tip.Seq = row.ColumnInt64(0), uint64(row.ColumnInt64(1))
		copy(found.tip.Hash[:], row.ColumnRawBlob(2))
	}, `SELECT no, head, hash FROM streams WHERE workspace = ? AND type = ? AND id = ?`, t.no, s.Type, s.ID)
	if !ok || err != nil {
		return nil, err
	}
	l.streams[ref] = found
	return found, nil
}

// Used implements journal.Ledger.
func (l *ledger) Used(ws id.Workspace, key string) (journal.Use, bool, error) {
	for _, a := range l.added {
		if use, ok := a.uses[keyRef{ws, key}]; ok {
			return use, true, nil
		}
	}
	t := l.tenants[ws]
	if t == nil {
		return journal.Use{}, false, nil
	}
	var use journal.Use
	ok, err := l.read(scanUse(&use), selectUse, t.no, key)
	return use, ok, err
}

// selectUse finds a batch by its key.
const selectUse = `SELECT digest, first, count FROM batches WHERE workspace = ? AND key = ?`

func scanUse(use *journal.Use) func(*sqlite3.Stmt) {
	return func(row *sqlite3.Stmt) {
		copy(use.Digest[:], row.ColumnRawBlob(0))
		use.First, use.Count = uint64(row.ColumnInt64(1)), row.ColumnInt(2)
	}
}

// Taken implements journal.Ledger.
func (l *ledger) Taken(ws id.Workspace, key string) (bool, error) {
	if ref := (keyRef{ws, key}); l.added[0].taken[ref] || l.added[1].taken[ref] {
		return true, nil
	}
	t := l.tenants[ws]
	if t == nil {
		return false, nil
	}
	return l.read(func(*sqlite3.Stmt) {}, `SELECT 1 FROM event_keys WHERE workspace = ? AND key = ?`, t.no, key)
}

// Holds implements journal.Ledger.
func (l *ledger) Holds(e id.Event) (bool, error) {
	if l.added[0].ids[e] || l.added[1].ids[e] {
		return true, nil
	}
	uuid, ok := journal.UUIDBytes(e)
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

// Cause implements journal.Ledger.
func (l *ledger) Cause(ws id.Workspace, of event.Subject) (event.Cause, error) {
	ref, ok := l.set.LeadingRef(ws, of)
	if !ok {
		return event.Cause{}, nil
	}
	f, err := l.folio(ref)
	if err != nil {
		return event.Cause{}, err
	}
	return f.state.Cause(), nil
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
	f := &folio{ref: ref, group: l.group}
	var body []byte
	var version, seq uint64
	if t := l.tenants[ref.Workspace]; t != nil {
		_, err = l.read(func(row *sqlite3.Stmt) {
			f.no, version, seq = row.ColumnInt64(0), uint64(row.ColumnInt64(1)), uint64(row.ColumnInt64(2))
			body = row.ColumnBlob(3, nil)
		}, `SELECT no, version, seq, body FROM documents WHERE projection = ? AND workspace = ? AND key = ?`, l.projections[ref.Name], t.no,
			ref.Key)
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

// apply adds a planned batch to the ledger.
func (l *ledger) apply(b event.Batch, events []event.Event) (plannedBatch, error) {
	t := l.tenants[b.Workspace]
	if t == nil {
		l.nextTenant++
		t = &tenant{no: l.nextTenant}
		l.tenants[b.Workspace] = t
	}
	planned := plannedBatch{tenantNo: t.no, key: b.Key, digest: b.Digest, events: events, streams: make([]int64, len(events)),
		types: make([]int64, len(events))}
	if t.head+uint64(len(events)) > maxSeq {
		return planned, fault.New(fault.Exhausted, "log_full", "a workspace holds at most %d events", uint64(maxSeq))
	}
	for i := range events {
		e := &events[i]
		ref := streamRef{b.Workspace, e.Stream}
		at, err := l.line(b.Workspace, e.Stream)
		if err != nil {
			return planned, err
		}
		if at == nil {
			l.nextStream++
			at = &line{no: l.nextStream}
			l.streams[ref] = at
			l.newStreams = append(l.newStreams, ref)
		}
		l.extend(at, e)
		if l.types[e.Type] == 0 {
			l.types[e.Type] = int64(len(l.types)) + 1
			l.newTypes = append(l.newTypes, plannedType{l.types[e.Type], e.Type})
		}
		planned.streams[i], planned.types[i] = at.no, l.types[e.Type]
		if e.IdempotencyKey != "" {
			l.added[0].taken[keyRef{b.Workspace, e.IdempotencyKey}] = true
		}
		if b.Drafts[i].ID != "" {
			l.added[0].ids[e.ID] = true
		}
	}
	if b.Key != "" {
		l.added[0].uses[keyRef{b.Workspace, b.Key}] = journal.Use{Digest: b.Digest, First: events[0].Seq, Count: len(events)}
	}
	if !t.dirty {
		l.dirtyTenants = append(l.dirtyTenants, b.Workspace)
	}
	last := &events[len(events)-1]
	t.head, t.last, t.dirty = last.Seq, last.Chain.Hash, true
	return planned, nil
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
	for i := range events {
		if err := l.set.Fold(events[i], load, l.save); err != nil {
			return err
		}
	}
	return nil
}

// save takes the state of a document after an event.
func (l *ledger) save(ref projection.Ref, s projection.State) {
	f := l.folios[ref]
	if !f.dirty {
		l.dirtyFolios = append(l.dirtyFolios, f)
	}
	if !f.stale {
		l.staleFolios = append(l.staleFolios, f)
	}
	f.state, f.dirty, f.stale, f.group = s, true, true, l.group
}

// encode writes the documents that were changed since it was last called.
func (l *ledger) encode() (err error) {
	for _, f := range l.staleFolios {
		if f.body, f.next, err = f.state.Encode(); err != nil {
			return err
		}
		f.stale = false
	}
	l.staleFolios = l.staleFolios[:0]
	return nil
}

// extend sets the end of a stream.
func (l *ledger) extend(at *line, e *event.Event) {
	at.tip, at.group = journal.Tip{Seq: e.StreamSeq, Hash: e.Chain.Hash}, l.group
	if at.made && !at.behind {
		at.behind = true
		l.behind.streams = append(l.behind.streams, at)
	}
}

// finish adds the changed documents of its batches to the group, each document once however many events changed it. If the tables lag far
// enough behind, or if flush is set, it adds the pending documents too.
func (l *ledger) finish(g *group, flush bool) error {
	if err := l.encode(); err != nil {
		return err
	}
	g.docs = make([]changedDocument, len(l.dirtyFolios))
	for i, f := range l.dirtyFolios {
		g.docs[i] = changedDocument{f.ref, f.state.Version, f.state.Seq, f.body, f.next}
		l.kept += len(f.body) - f.size
		l.behind.bytes += len(f.body)
		f.size, f.dirty = len(f.body), false
		if f.behind {
			continue
		}
		f.behind = true
		l.behind.folios = append(l.behind.folios, f)
	}
	for _, ref := range l.newStreams {
		at := l.streams[ref]
		g.streams = append(g.streams, plannedStream{at.no, l.tenants[ref.workspace].no, ref.stream, at.tip})
		at.made = true
	}
	for _, ws := range l.dirtyTenants {
		t := l.tenants[ws]
		g.tenants = append(g.tenants, plannedTenant{t.no, ws, t.head, t.last, !t.made})
		t.made, t.dirty = true, false
	}
	g.types = l.newTypes
	for i := range g.batches {
		l.behind.events += len(g.batches[i].events)
	}
	if !l.keeps && (flush || l.behind.due()) {
		g.flush = l.flush()
	}
	return nil
}

// without returns what of a is not in b.
func without(a, b []projection.Index) []projection.Index {
	if slices.Equal(a, b) {
		return nil
	}
	var rest []projection.Index
	for _, index := range a {
		if !slices.Contains(b, index) {
			rest = append(rest, index)
		}
	}
	return rest
}

var _ journal.Ledger = (*ledger)(nil)
