package sqlite

import (
	"cmp"
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

// The documents, their entries and the ends of streams are in memory what the log says, and in their tables what it said at an earlier
// event: they change with almost every event, each on a page of its own, and the same ones again and again. So they are written for a
// thousand events at a time, and when nothing was appended for a moment. Until then readers get them from the shelf. What the tables lag behind is folded again after a crash, from
// the events that follow workspaces.flushed.
const (
	flushedAtOnce = 1_024   // events that the tables lag behind before they are written
	flushedBytes  = 4 << 20 // of documents, each counted as often as it changed
	flushQuiet    = 100 * time.Millisecond
)

// behind is what the tables lag behind.
type behind struct {
	events  int
	bytes   int
	folios  []*folio
	streams []*line
}

func (b *behind) due() bool { return b.events >= flushedAtOnce || b.bytes >= flushedBytes }

// flush is what brings the tables up to the group that it is written with.
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

// flush takes what the tables lag behind.
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
	l.behind = behind{folios: l.behind.folios[:0], streams: l.behind.streams[:0]}
	return f
}

// flush hands the committer what the tables lag behind, alone.
func (j *Journal) flush() {
	if j.ledger.behind.events == 0 {
		return
	}
	j.ledger.begin()
	j.hand(&group{flush: j.ledger.flush()})
}

// flush writes what the tables lag behind. The heads of the workspaces are there already.
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
	return c.exec(`UPDATE workspaces SET flushed = head WHERE flushed < head`)
}

// recover loads the ledger and brings the tables up to the log, in the committer's place.
func (j *Journal) recover(ctx context.Context) (err error) {
	l := &j.ledger
	if err := l.load(ctx, l.r); err != nil {
		return err
	}
	if !l.lags() {
		return nil
	}
	if err := j.w.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	written, err := l.catchUp(ctx, j.put)
	if err == nil {
		err = j.w.exec(`COMMIT`)
	}
	if err != nil {
		return errors.Join(err, j.w.exec(`ROLLBACK`))
	}
	for _, g := range written {
		j.shelf.lay(g)
	}
	return nil
}

// lags reports whether there are events that the tables lag behind. The ledger has just been loaded.
func (l *ledger) lags() bool {
	for _, t := range l.tenants {
		if t.flushed < t.head {
			return true
		}
	}
	return false
}

// catchUp folds the events that the tables lag behind, a thousand at a time, and has each thousand written.
func (l *ledger) catchUp(ctx context.Context, write func(*group) error) (written []*group, err error) {
	for ws, t := range l.tenants {
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
			return fault.New(fault.Internal, "log_damaged", "the stream %s %s of workspace %s is not there; run agentbox audit verify", e.Stream.Type, e.Stream.ID, ws)
		}
		if e.StreamSeq > at.tip.Seq {
			l.extend(at, e)
		}
	}
	return l.fold(events)
}

func missing(ws id.Workspace, head, from uint64) error {
	return fault.New(fault.Internal, "log_damaged", "workspace %s has %d events and none from %d on; run agentbox audit verify", ws, head, from)
}

// flushed returns up to which event the tables hold what was made of a workspace.
func (c *connection) flushed(no int64) (seq uint64, err error) {
	_, err = c.one(func(s *sqlite3.Stmt) { seq = uint64(s.ColumnInt64(0)) }, `SELECT flushed FROM workspaces WHERE no = ?`, no)
	return seq, err
}

// ends returns the ends of the streams of a workspace, by their number, as the events have them that the tables lag behind.
func (c *connection) ends(no int64) (map[int64]journal.Tip, error) {
	rows, err := c.rows(`SELECT e.stream, e.stream_seq, e.record FROM workspaces w CROSS JOIN events e ON e.place > (w.no << ?1) + w.flushed AND e.place <= (w.no << ?1) + w.head
		WHERE w.no = ?2 ORDER BY e.place`, int64(seqBits), no)
	if err != nil {
		return nil, err
	}
	ends := map[int64]journal.Tip{}
	for rows.Step() {
		ends[rows.ColumnInt64(0)] = journal.Tip{Seq: uint64(rows.ColumnInt64(1)), Hash: hashOf(rows.ColumnRawBlob(2))}
	}
	return ends, finish(rows)
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

// beyond returns those documents that the file, as it is read now, lags behind.
func (c *connection) beyond(no int64, docs []changedDocument) ([]changedDocument, error) {
	if len(docs) == 0 {
		return nil, nil
	}
	flushed, err := c.flushed(no)
	return slices.DeleteFunc(docs, func(d changedDocument) bool { return d.seq <= flushed }), err
}

// lookAhead folds what the tables lag behind, once, where nobody writes: a daemon did not end in good order, or is at work.
func (j *Journal) lookAhead(ctx context.Context) error {
	if j.ahead.Load() || !j.readOnly {
		return nil
	}
	current, err := j.Current(ctx)
	if err != nil {
		return err
	}
	return j.reading(ctx, func(*connection) error {
		l := &j.ledger
		if j.ahead.Load() {
			return nil
		}
		if l.set, err = projection.NewSet(current); err != nil {
			return err
		}
		if err := l.load(ctx, l.r); err != nil {
			return err
		}
		l.keeps = true
		written, err := l.catchUp(ctx, func(*group) error { return nil })
		if err != nil {
			return err
		}
		for _, g := range written {
			j.shelf.lay(g)
		}
		j.ahead.Store(true)
		return nil
	})
}

// merge puts the documents that the tables lag behind in the place of those that were read, in the order of the query. Of those that were
// read there are as many more than the query's limit as there are others.
func merge(q projection.Query, read []projection.Document, newer []changedDocument) []projection.Document {
	if len(newer) > 0 {
		read = slices.DeleteFunc(read, func(d projection.Document) bool {
			_, found := slices.BinarySearchFunc(newer, d.Key, func(c changedDocument, key string) int { return cmp.Compare(c.ref.Key, key) })
			return found
		})
		for _, c := range newer {
			key := c.ref.Key
			switch {
			case q.After != "" && !q.Newest && key <= q.After, q.After != "" && q.Newest && key >= q.After:
			case q.Index != projection.Index{} && !slices.Contains(c.indexes, q.Index):
			default:
				read = append(read, projection.Document{Key: key, Version: c.version, Seq: c.seq, Body: slices.Clone(c.body)})
			}
		}
		slices.SortFunc(read, func(a, b projection.Document) int {
			if q.Newest {
				a, b = b, a
			}
			return cmp.Compare(a.Key, b.Key)
		})
	}
	return read[:min(len(read), q.Limit)]
}
