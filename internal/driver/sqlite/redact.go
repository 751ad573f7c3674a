package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

var _ journal.Redactor = (*Journal)(nil)

// truncateTimeout is how long a redaction waits for other programs that read the log, which hold back what it wants to clear.
const truncateTimeout = time.Second

// mergedAtOnce is how many events are kept in memory to be put in order; where there are more the whole log is read, which is in order.
const mergedAtOnce = 50_000

// errHeld means that another program reads the log.
var errHeld = fault.New(fault.Unavailable, "log_held", "the data were destroyed, but another program reads an older state of the log, which still holds documents made of them").
	With("end the programs that read the data directory; the daemon clears the rest within a minute, or when it starts")

// insertRedaction notes which event the event.redacted at a place is about. Its own record is written in the same transaction.
func (c *connection) insertRedaction(by int64, e *event.Event) error {
	target, ok := journal.UUIDBytes(e.Causation)
	if !ok {
		return nil
	}
	return c.exec(`INSERT INTO redactions (place, by, done) SELECT place, ?, 0 FROM events WHERE id = ? AND place >> ? = ? ON CONFLICT DO NOTHING`,
		by, target[:], int64(seqBits), by>>seqBits)
}

// Unfinished implements journal.Redactor.
func (j *Journal) Unfinished(ctx context.Context, ws id.Workspace) ([]uint64, error) {
	no, _ := j.watch.get(ws)
	var seqs []uint64
	err := j.reading(ctx, func(r *connection) error {
		rows, err := r.rows(`SELECT place FROM redactions INDEXED BY redactions_open WHERE done < 2 AND place BETWEEN ? AND ? ORDER BY place LIMIT ? + 0`,
			placeOf(no, 1), placeOf(no, maxSeq), int64(journal.MaxBatch))
		if err != nil {
			return err
		}
		for rows.Step() {
			seqs = append(seqs, uint64(rows.ColumnInt64(0))&maxSeq)
		}
		return finish(rows)
	})
	return seqs, err
}

// Redact implements journal.Redactor. Appends wait until it is done.
func (j *Journal) Redact(ctx context.Context, ws id.Workspace, seqs []uint64) error {
	no, _ := j.watch.get(ws)
	switch {
	case len(seqs) == 0:
		return nil
	case no == 0:
		return journal.ErrNotFound
	case len(seqs) > journal.MaxBatch:
		return fault.New(fault.Exhausted, "batch_too_large", "at most %d events are redacted at a time, not %d", journal.MaxBatch, len(seqs))
	}
	seqs = slices.Compact(slices.Sorted(slices.Values(seqs)))
	return j.do(&request{ctx: ctx, task: func(ctx context.Context) error {
		open, uncleared, err := j.recorded(no, seqs)
		if err != nil || len(open)+len(uncleared) == 0 {
			return err
		}
		if len(open) > 0 {
			if err := j.forget(context.WithoutCancel(ctx), ws, no, open); err != nil {
				return err
			}
		}
		if err := j.truncate(); err != nil {
			return err
		}
		return j.mark(no, append(open, uncleared...))
	}})
}

// forget destroys the keys of bodies, then the bodies and what was made of them.
func (j *Journal) forget(ctx context.Context, ws id.Workspace, no int64, seqs []uint64) error {
	// The documents that the data touched are found while the data can be read.
	touched, err := j.touched(ws, no, seqs)
	if err != nil {
		return err
	}
	if j.seals.Keys != nil {
		if err := j.seals.Keys.Forget(treeOf(ws), seqs...); err != nil {
			return err
		}
	}
	j.unshelve(false)
	defer func() { j.unshelve(j.failed.Load() == nil) }()
	if touched.unknown {
		if err := j.rebuild(ctx, j.set.Definitions(), nil); err != nil {
			return err
		}
		// From here on no document has anything of the data. Those that this folds anew are the same again.
		if touched, err = j.touched(ws, no, seqs); err != nil {
			return err
		}
		if err := j.ledger.load(ctx, j.ledger.r); err != nil {
			return j.fail(err)
		}
	}
	if err := j.destroy(ctx, ws, no, seqs, touched); err != nil {
		return err
	}
	if err := j.ledger.load(ctx, j.ledger.r); err != nil {
		return j.fail(err)
	}
	return nil
}

// The steps of a redaction, as its row says.
const (
	redactionRecorded  = iota
	redactionDestroyed // key, body, and what documents had of it
	redactionDone      // and what the write-ahead log had
)

// mark notes that redactions are done.
func (j *Journal) mark(no int64, seqs []uint64) error {
	err := j.transact(func() error {
		for _, seq := range seqs {
			if err := j.w.exec(`UPDATE redactions SET done = ? WHERE place = ?`, int64(redactionDone), placeOf(no, seq)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return j.fail(err)
	}
	return nil
}

// recorded returns those of the events whose data are there, and those of which only something in the write-ahead log may be left. The
// redaction of all has to be recorded.
func (j *Journal) recorded(no int64, seqs []uint64) (open, uncleared []uint64, err error) {
	for _, seq := range seqs {
		step := int64(0)
		found, err := j.w.one(func(s *sqlite3.Stmt) { step = s.ColumnInt64(0) }, `SELECT done FROM redactions WHERE place = ?`, placeOf(no, seq))
		switch {
		case err != nil:
			return nil, nil, err
		case !found:
			return nil, nil, journal.ErrUnrecorded
		case step == redactionRecorded:
			open = append(open, seq)
		case step == redactionDestroyed:
			uncleared = append(uncleared, seq)
		}
	}
	return open, uncleared, nil
}

// touch is what is to be folded anew.
type touch struct {
	events  map[projection.Ref]int // how many of the redacted events had touched the document
	where   []journal.Query        // that find every event which touched one of them, as a rule
	unknown bool                   // data cannot be read any more, after a crash: they may have touched others too
}

// touched returns the documents that events have touched. An event and the others that touched the same document have their run or their
// entity in common, as a rule; destroy finds out where they have not.
func (j *Journal) touched(ws id.Workspace, no int64, seqs []uint64) (touch, error) {
	t := touch{events: map[projection.Ref]int{}}
	asked := map[string]bool{}
	ask := func(name string, q journal.Query) {
		if q.Workspace = ws; !asked[name] {
			asked[name] = true
			t.where = append(t.where, q)
		}
	}
	for _, seq := range seqs {
		found, err := j.w.read(journal.Query{Workspace: ws, From: seq, Before: seq + 1, Limit: 1}, no)
		if err != nil {
			return t, err
		}
		for _, e := range found {
			t.unknown = t.unknown || e.Withheld != ""
			refs, err := j.set.Touched(e)
			if err != nil {
				return t, err
			}
			for _, ref := range refs {
				t.events[ref]++
				if ref.Key == string(e.ID) {
					ask("event "+string(e.ID), journal.Query{From: e.Seq, Before: e.Seq + 1})
					continue
				}
				if e.Run != "" && ref.Key != e.EntityID {
					ask("run "+string(e.Run), journal.Query{Run: e.Run})
				}
				if e.EntityID != "" && ref.Key != string(e.Run) {
					ask("entity "+journal.EntityText(&e), journal.Query{EntityType: e.EntityType, EntityID: e.EntityID})
				}
			}
		}
	}
	return t, nil
}

// destroy deletes bodies and folds what they had touched anew, in one transaction.
func (j *Journal) destroy(ctx context.Context, ws id.Workspace, no int64, seqs []uint64, t touch) error {
	return j.transact(func() error { return j.destroyAll(ctx, ws, no, seqs, t) })
}

func (j *Journal) destroyAll(ctx context.Context, ws id.Workspace, no int64, seqs []uint64, t touch) (err error) {
	for _, seq := range seqs {
		if err := j.w.exec(`DELETE FROM bodies WHERE place = ?`, placeOf(no, seq)); err != nil {
			return err
		}
		if err := j.w.exec(`UPDATE redactions SET done = ? WHERE place = ?`, int64(redactionDestroyed), placeOf(no, seq)); err != nil {
			return err
		}
	}
	if len(t.events) == 0 {
		return nil
	}
	f := &refolding{j: j, ws: ws, no: no, states: map[projection.Ref]projection.State{}, seen: map[uint64]bool{}, only: t.events}
	if err := f.through(ctx, t.where); err != nil {
		return err
	}
	whole, err := f.whole(seqs)
	if err != nil {
		return err
	}
	if !whole {
		// A document has been touched by events that nothing ties to those which are redacted: the whole log tells them.
		f.states, f.seen = map[projection.Ref]projection.State{}, map[uint64]bool{}
		if err := f.through(ctx, []journal.Query{{Workspace: ws}}); err != nil {
			return err
		}
	}
	return f.write()
}

// refolding folds some documents anew from the log.
type refolding struct {
	j      *Journal
	ws     id.Workspace
	no     int64
	only   map[projection.Ref]int
	seen   map[uint64]bool
	states map[projection.Ref]projection.State
}

// through folds what the queries find, in the order of the log, each event once.
func (f *refolding) through(ctx context.Context, queries []journal.Query) error {
	var events []event.Event
	for _, q := range queries {
		for q.From, q.Limit = max(q.From, 1), journal.MaxRead; ; {
			if err := ctx.Err(); err != nil {
				return err
			}
			found, err := f.j.w.read(q, f.no)
			if err != nil {
				return err
			}
			for i := range found {
				q.From = found[i].Seq + 1
				if !f.seen[found[i].Seq] {
					f.seen[found[i].Seq] = true
					events = append(events, found[i])
				}
			}
			if len(queries) == 1 { // then they come in order, and need not be kept
				if err := f.fold(events); err != nil {
					return err
				}
				events = events[:0]
				clear(f.seen)
			}
			if len(events) > mergedAtOnce {
				return nil // whoever asked finds that some are missing, and folds the whole log in its order
			}
			if len(found) < q.Limit {
				break
			}
		}
	}
	slices.SortFunc(events, func(a, b event.Event) int { return int(int64(a.Seq) - int64(b.Seq)) })
	return f.fold(events)
}

func (f *refolding) fold(events []event.Event) error {
	for i := range events {
		refs, err := f.j.set.Touched(events[i])
		if err != nil {
			return err
		}
		for _, ref := range refs {
			if f.only[ref] == 0 {
				continue
			}
			state, begun := f.states[ref]
			if !begun {
				def, err := f.j.set.Lookup(ref.Name)
				if err != nil {
					return err
				}
				if state, err = def.Restore(ref.Key, nil, 0, 0); err != nil {
					return err
				}
			}
			if f.states[ref], err = state.Fold(events[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// whole reports whether every document has been folded from as many events as before, but for those that touch it no more.
func (f *refolding) whole(seqs []uint64) (bool, error) {
	still := map[projection.Ref]int{}
	for _, seq := range seqs {
		found, err := f.j.w.read(journal.Query{Workspace: f.ws, From: seq, Before: seq + 1, Limit: 1}, f.no)
		if err != nil {
			return false, err
		}
		for _, e := range found {
			refs, err := f.j.set.Touched(e)
			if err != nil {
				return false, err
			}
			for _, ref := range refs {
				still[ref]++
			}
		}
	}
	for ref, had := range f.only {
		version := uint64(0)
		if _, err := f.j.w.one(func(s *sqlite3.Stmt) { version = uint64(s.ColumnInt64(0)) },
			`SELECT version FROM documents WHERE projection = ? AND workspace = ? AND key = ?`, f.j.ledger.projections[ref.Name], f.no, ref.Key); err != nil {
			return false, err
		}
		if f.states[ref].Version+uint64(had-still[ref]) != version {
			return false, nil
		}
	}
	return true, nil
}

// write puts what was folded in the place of what was there.
func (f *refolding) write() error {
	w := f.j.w
	for ref := range f.only {
		def, err := f.j.set.Lookup(ref.Name)
		if err != nil {
			return err
		}
		d := plannedDocument{projection: f.j.ledger.projections[ref.Name], tenantNo: f.no, ref: ref}
		var was projection.Document
		found, err := w.one(func(s *sqlite3.Stmt) { d.no, was = s.ColumnInt64(4), scanDocument(s) },
			`SELECT key, version, seq, body, no FROM documents WHERE projection = ? AND workspace = ? AND key = ?`, d.projection, f.no, ref.Key)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("document %s %s is not there to be folded anew", ref.Name, ref.Key)
		}
		old, err := def.Restore(ref.Key, was.Body, was.Version, was.Seq)
		if err != nil {
			return err
		}
		_, removed, err := old.Encode()
		if err != nil {
			return err
		}
		state, folded := f.states[ref]
		if folded {
			var entries []projection.Index
			if d.body, entries, err = state.Encode(); err != nil {
				return err
			}
			d.version, d.seq, d.added, d.removed = state.Version, state.Seq, without(entries, removed), without(removed, entries)
		} else {
			d.removed = removed
		}
		if err := w.writeDocument(&d); err != nil {
			return err
		}
		if !folded {
			if err := w.exec(`DELETE FROM documents WHERE no = ?`, d.no); err != nil {
				return err
			}
		}
	}
	return nil
}

// truncate moves the whole write-ahead log into the database and makes it empty, for it holds the documents as they were. It runs in the
// committer's place.
func (j *Journal) truncate() error {
	if j.wal.moving {
		j.wal.moving = false
		j.wal.take(j, <-j.mover.tells)
	}
	j.reads.Lock()
	defer j.reads.Unlock()
	if err := j.w.conn.BusyTimeout(truncateTimeout); err != nil {
		return err
	}
	_, _, err := j.w.conn.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	if again := j.w.conn.BusyTimeout(busyTimeout); again != nil {
		return errors.Join(err, again)
	}
	if errors.Is(err, sqlite3.BUSY) {
		return errHeld
	}
	if err != nil {
		return j.fail(err)
	}
	j.wal.pages, j.wal.moved = 0, 0
	return nil
}
