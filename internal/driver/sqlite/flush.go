package sqlite

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/kernel/vault"
)

// The documents, their entries and the ends of streams are up to date in memory, while their tables are as of an earlier event. They change
// with almost every event, each on a page of its own, and the same ones again and again. So they are written once per thousand events, and
// when nothing was appended for a moment. Until then readers get them from the shelf. After a crash, the events after workspaces.flushed
// are folded again.
const (
	flushedAtOnce = 1_024                  // events that the tables lag behind before they are written
	flushedBytes  = 4 << 20                // of documents, each counted as often as it changed
	flushQuiet    = 100 * time.Millisecond // without an append, after which they are written all the same
)

// behind holds the changes that the tables lack.
type behind struct {
	events  int
	bytes   int
	folios  []*folio
	streams []*line
}

func (b *behind) due() bool { return b.events >= flushedAtOnce || b.bytes >= flushedBytes }

// flush holds the changes that bring the tables up to the group that they are written with.
type flush struct {
	docs    []plannedDocument
	streams []plannedStream // their ends
}

// changedDocument is a document as a group leaves it, for readers.
type changedDocument struct {
	ref          projection.Ref
	version, seq uint64
	body         []byte
	indexes      []projection.Index
}

// plannedDocument is a document as its row is to be.
type plannedDocument struct {
	no, projection, tenantNo int64
	ref                      projection.Ref
	version, seq             uint64
	body                     []byte
	fresh                    bool
	added, removed           []projection.Index
}

// flush takes the changes that the tables lack.
func (l *ledger) flush() *flush {
	f := &flush{docs: make([]plannedDocument, len(l.behind.folios)), streams: make([]plannedStream, len(l.behind.streams))}
	for i, at := range l.behind.folios {
		fresh := at.no == 0
		if fresh {
			l.nextFolio++
			at.no = l.nextFolio
		}
		f.docs[i] = plannedDocument{
			no: at.no, projection: l.projections[at.ref.Name], tenantNo: l.tenants[at.ref.Workspace].no, ref: at.ref, version: at.state.Version,
			seq: at.state.Seq, body: at.body, fresh: fresh, added: without(at.next, at.indexes), removed: without(at.indexes, at.next),
		}
		at.indexes, at.behind, at.group = at.next, false, l.group
		at.body, at.next = nil, nil
	}
	for i, at := range l.behind.streams {
		f.streams[i] = plannedStream{no: at.no, tip: at.tip}
		at.behind, at.group = false, l.group
	}
	clear(l.behind.folios)
	clear(l.behind.streams)
	l.behind = behind{folios: l.behind.folios[:0], streams: l.behind.streams[:0]}
	return f
}

// flush writes the changes that the tables lack. The heads of the workspaces are there already.
func (c *connection) flush(f *flush) error {
	for i := range f.docs {
		if err := c.writeDocument(&f.docs[i]); err != nil {
			return err
		}
	}
	for i := range f.streams {
		if err := c.updateStream(&f.streams[i]); err != nil {
			return err
		}
	}
	return c.exec(`UPDATE workspaces SET flushed = head WHERE flushed <> head`)
}

// lagging returns the workspaces with events that the tables lag behind. The ledger has just been loaded.
func (l *ledger) lagging() (names []id.Workspace) {
	for ws, t := range l.tenants {
		if t.flushed < t.head {
			names = append(names, ws)
		}
	}
	slices.Sort(names)
	return names
}

// catchUp folds the events of workspaces that the tables lag behind, a thousand at a time, and has each thousand written.
func (l *ledger) catchUp(ctx context.Context, names []id.Workspace, write func(*group) error) (written []*group, err error) {
	for _, ws := range names {
		t := l.tenants[ws]
		for from := t.flushed + 1; from <= t.head; {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			events, err := l.r.read(journal.Query{Workspace: ws, From: from, Limit: journal.MaxRead}, t.no)
			if err != nil {
				return nil, err
			}
			if len(events) == 0 {
				return nil, missing(ws, t.head, from)
			}
			l.begin()
			if err := l.refold(ws, events); err != nil {
				return nil, err
			}
			g := &group{}
			if err := errors.Join(l.finish(g, true), write(g)); err != nil {
				return nil, err
			}
			written = append(written, g)
			from = events[len(events)-1].Seq + 1
		}
	}
	return written, nil
}

// refold takes events that are in the log already.
func (l *ledger) refold(ws id.Workspace, events []event.Event) error {
	for i := range events {
		e := &events[i]
		if e.Withheld == event.Sealed {
			return vault.ErrMissing
		}
		at, err := l.line(ws, e.Stream)
		if err != nil {
			return err
		}
		if at == nil {
			return fault.New(fault.Internal, "log_damaged", "the stream %s %s of workspace %s is not there; run agentbox audit verify",
				e.Stream.Type, e.Stream.ID, ws)
		}
		if e.StreamSeq > at.tip.Seq {
			l.extend(at, e)
		}
		refs, err := l.set.Touched(*e)
		if err != nil {
			return err
		}
		for _, ref := range refs {
			f, err := l.folio(ref)
			if err != nil {
				return err
			}
			if f.state.Seq >= e.Seq {
				continue // the table has the event already
			}
			state, err := f.state.Fold(*e)
			if err != nil {
				return err
			}
			l.save(ref, state)
		}
	}
	return nil
}

func missing(ws id.Workspace, head, from uint64) error {
	return fault.New(fault.Internal, "log_damaged", "workspace %s has %d events and none from %d on; run agentbox audit verify", ws, head,
		from)
}

// ends returns the ends of the streams of a workspace, by their number, as the events have them that the tables lag behind. The last
// event has to be the one that was last: where it is another, its stream's end is said to have the hash that is missing.
func (c *connection) ends(no int64) (map[int64]journal.Tip, error) {
	rows, err := c.rows(`SELECT e.stream, e.stream_seq, e.record FROM workspaces w CROSS JOIN events e ON e.place > (w.no << ?1) + w.flushed
		AND e.place <= (w.no << ?1) + w.head
		WHERE w.no = ?2 ORDER BY e.place`, int64(seqBits), no)
	if err != nil {
		return nil, err
	}
	ends := map[int64]journal.Tip{}
	for rows.Step() {
		hash, _ := journal.RecordHash(rows.ColumnRawBlob(2))
		ends[rows.ColumnInt64(0)] = journal.Tip{Seq: uint64(rows.ColumnInt64(1)), Hash: hash}
	}
	if err := finish(rows); err != nil {
		return nil, err
	}
	_, err = c.one(func(s *sqlite3.Stmt) {
		last := journal.Tip{Seq: uint64(s.ColumnInt64(1))}
		if hash, _ := journal.RecordHash(s.ColumnRawBlob(2)); hash != event.Digest(s.ColumnRawBlob(3)) {
			copy(last.Hash[:], s.ColumnRawBlob(3))
			ends[s.ColumnInt64(0)] = last
		}
	}, `SELECT e.stream, e.stream_seq, e.record, w.last FROM workspaces w JOIN events e ON e.place = (w.no << ?1) + w.head WHERE w.no = ?2 `+
		`AND w.flushed <= w.head AND length(w.last) = 32`,
		int64(seqBits), no)
	return ends, err
}

// snapshot lets fn read several times from one state of the file.
func (c *connection) snapshot(fn func() error) (err error) {
	if c.conn.GetAutocommit() {
		if err := c.exec(`BEGIN`); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.exec(`COMMIT`)) }()
	}
	return fn()
}

// newer holds the changes that the table of a projection lacks.
type newer struct {
	seqs map[string]uint64 // by key: the event up to which a document is folded
	docs []changedDocument // those of them that a query selects, in its order
}

// selects reports whether the query may return a document with that key and those entries.
func selects(q projection.Query, key string, indexes []projection.Index) bool {
	if q.After != "" && (q.Newest && key >= q.After || !q.Newest && key <= q.After) {
		return false
	}
	return q.Index == projection.Index{} || slices.Contains(indexes, q.Index)
}

// list reads what a query selects from the table, with what that lags behind in its place: one state of the log, for the shelf was looked
// at before, and the file says up to which event it goes.
func (c *connection) list(q projection.Query, no int64, n newer) (docs []projection.Document, err error) {
	flushed := uint64(0)
	if len(n.seqs) > 0 {
		if _, err := c.one(func(s *sqlite3.Stmt) { flushed = uint64(s.ColumnInt64(0)) }, `SELECT flushed FROM workspaces WHERE no = ?`,
			no); err != nil {
			return nil, err
		}
		n.docs = slices.DeleteFunc(n.docs, func(d changedDocument) bool { return d.seq <= flushed })
	}
	before := func(a, b string) bool { return a < b != q.Newest && a != b }
	lend := func() {
		d := &n.docs[0]
		docs = append(docs, projection.Document{Key: d.ref.Key, Version: d.version, Seq: d.seq, Body: slices.Clone(d.body)})
		n.docs = n.docs[1:]
	}
	docs = []projection.Document{}
	sql, args := listing(q, no, len(n.seqs))
	rows, err := c.rows(sql, args...)
	if err != nil {
		return nil, err
	}
	for len(docs) < q.Limit && rows.Step() {
		key := rows.ColumnText(0)
		for len(docs) < q.Limit && len(n.docs) > 0 && before(n.docs[0].ref.Key, key) {
			lend()
		}
		if n.seqs[key] <= flushed && len(docs) < q.Limit {
			docs = append(docs, scanDocument(rows))
		}
	}
	for len(docs) < q.Limit && len(n.docs) > 0 {
		lend()
	}
	return docs, finish(rows)
}
