package postgres

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// querier is a connection, a pool of them, or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// numbers gives streams and documents their numbers, a block at a time.
type numbers struct {
	mu   sync.Mutex // guards both
	at   int64
	left int
}

// blockOfNumbers is how many one value of the sequence stands for.
const blockOfNumbers = 256

func (n *numbers) next(ctx context.Context, db querier, count int) ([]int64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	given := make([]int64, 0, count)
	for len(given) < count {
		if n.left == 0 {
			if err := db.QueryRow(ctx, `SELECT nextval('numbers')`).Scan(&n.at); err != nil {
				return nil, err
			}
			n.left = blockOfNumbers
		}
		given = append(given, n.at)
		n.at++
		n.left--
	}
	return given, nil
}

// wants holds the lookups of a group.
type wants struct {
	l         *ledger
	keys      []string
	eventKeys []string
	ids       [][]byte
	streams   []event.Stream
	refs      []projection.Ref
}

func (w *wants) stream(s event.Stream) {
	if _, known := w.l.streams[s]; !known {
		w.l.streams[s] = nil // asked for
		w.streams = append(w.streams, s)
	}
}

func (w *wants) document(ref projection.Ref) {
	if _, known := w.l.folios[docRef{ref.Name, ref.Key}]; !known {
		w.l.folios[docRef{ref.Name, ref.Key}] = nil // asked for
		w.refs = append(w.refs, ref)
	}
}

// unmade is document for one of an event that is planned: where no other event can have made it, it is presumed to be empty.
func (w *wants) unmade(ref projection.Ref) error {
	def, err := w.l.set.Lookup(ref.Name)
	if err != nil || !def.Once || !w.l.presumes {
		w.document(ref)
		return err
	}
	return w.presume(ref, def)
}

// presume takes a document for one that nobody has made yet. Its row is inserted as a new one, which fails where there is one already.
func (w *wants) presume(ref projection.Ref, def projection.Definition) (err error) {
	at := docRef{ref.Name, ref.Key}
	if _, known := w.l.folios[at]; known {
		return nil
	}
	f := &folio{ref: ref, fresh: true}
	f.state, err = def.Restore(ref.Key, nil, 0, 0)
	w.l.folios[at] = f
	w.l.presumed = append(w.l.presumed, f)
	return err
}

// prefetch reads in one round trip what planning will ask for: the keys, the ends of streams, and the documents. Which documents an event
// changes may depend on what it is stamped with; those that are missed here are read one by one.
func (l *ledger) prefetch(ctx context.Context, requests []*request) error {
	w := wants{l: l}
	for _, r := range requests {
		if r.batch.Key != "" {
			if l.uses[r.batch.Key] = nil; !l.presumes {
				w.keys = append(w.keys, r.batch.Key)
			}
		}
		for _, s := range r.batch.Streams {
			w.stream(s.Stream)
		}
		for _, d := range r.batch.Documents {
			def, err := l.set.Lookup(d.Projection)
			if err != nil {
				continue // planning says so
			}
			ref := projection.Ref{Workspace: l.ws, Name: d.Projection, Key: d.Key}
			if d.Version != 0 || !l.presumes {
				w.document(ref)
			} else if err := w.presume(ref, def); err != nil {
				return err
			}
		}
		for i := range r.batch.Drafts {
			d := &r.batch.Drafts[i]
			w.stream(d.Stream)
			if d.IdempotencyKey != "" {
				w.eventKeys = append(w.eventKeys, d.IdempotencyKey)
			}
			if uuid, ok := journal.UUIDBytes(d.ID); ok {
				w.ids = append(w.ids, uuid[:])
			}
			refs, err := l.set.Touched(event.Event{Header: d.Header, Data: d.Data})
			if err != nil {
				continue // the fold reports the error
			}
			for _, ref := range refs {
				w.document(ref)
			}
			w.causes(d)
		}
	}
	return w.read(ctx)
}

// causes asks for the documents that know the cause of a draft, so that they come with the others.
func (w *wants) causes(d *event.Draft) {
	if d.Causation != "" {
		return
	}
	subjects, n := d.Subjects()
	for _, of := range append(subjects[:n:n], d.Follows) {
		if ref, ok := w.l.set.LeadingRef(w.l.ws, of); ok {
			w.document(ref)
		}
	}
}

func (w *wants) read(ctx context.Context) error {
	l, b := w.l, &pgx.Batch{}
	if len(w.keys) > 0 {
		b.Queue(selectUses, l.no, w.keys).Query(func(rows pgx.Rows) error { return scanUses(rows, l.uses) })
	}
	if len(w.eventKeys) > 0 {
		b.Queue(`SELECT key FROM event_keys WHERE workspace = $1 AND key = ANY($2)`, l.no, w.eventKeys).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var key string
				if err := rows.Scan(&key); err != nil {
					return err
				}
				l.taken[key] = true
			}
			return rows.Err()
		})
	}
	if len(w.ids) > 0 {
		b.Queue(`SELECT uuid_send(id) FROM events WHERE id = ANY($1)`, uuids(w.ids)).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var raw []byte
				if err := rows.Scan(&raw); err != nil {
					return err
				}
				found, _ := journal.UUIDText(raw)
				l.ids[found] = true
			}
			return rows.Err()
		})
	}
	l.queueStreams(b, w.streams)
	if err := l.queueFolios(b, w.refs); err != nil || b.Len() == 0 {
		return err
	}
	return l.db.SendBatch(ctx, b).Close()
}

// readStreams reads the ends of streams; those without a row are empty.
func (l *ledger) readStreams(ctx context.Context, streams []event.Stream) error {
	b := &pgx.Batch{}
	l.queueStreams(b, streams)
	return l.db.SendBatch(ctx, b).Close()
}

func (l *ledger) queueStreams(b *pgx.Batch, streams []event.Stream) {
	if len(streams) == 0 {
		return
	}
	types, ids := make([]string, len(streams)), make([]string, len(streams))
	for i, s := range streams {
		types[i], ids[i] = s.Type, s.ID
		l.streams[s] = &line{stream: s}
	}
	b.Queue(`SELECT s.type, s.id, s.no, s.head, s.hash FROM unnest($2::text[], $3::text[]) u (type, id)
		CROSS JOIN LATERAL (SELECT * FROM streams s WHERE s.workspace = $1 AND s.type = u.type AND s.id = u.id OFFSET 0) s`,
		l.no, types, ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			at := &line{}
			if err := rows.Scan(&at.stream.Type, &at.stream.ID, &at.no, &at.tip.Seq, (*digest)(&at.tip.Hash)); err != nil {
				return err
			}
			l.streams[at.stream] = at
		}
		return rows.Err()
	})
}

// readFolios reads documents; those without a row are empty.
func (l *ledger) readFolios(ctx context.Context, refs []projection.Ref) error {
	b := &pgx.Batch{}
	if err := l.queueFolios(b, refs); err != nil {
		return err
	}
	return l.db.SendBatch(ctx, b).Close()
}

func (l *ledger) queueFolios(b *pgx.Batch, refs []projection.Ref) error {
	if len(refs) == 0 {
		return nil
	}
	nos, keys, names := make([]int64, len(refs)), make([][]byte, len(refs)), map[int64]string{}
	for i, ref := range refs {
		nos[i], keys[i] = l.folding.nos[ref.Name], []byte(ref.Key)
		names[nos[i]] = ref.Name
		def, err := l.set.Lookup(ref.Name)
		if err != nil {
			return err
		}
		f := &folio{ref: ref}
		if f.state, err = def.Restore(ref.Key, nil, 0, 0); err != nil {
			return err
		}
		l.folios[docRef{ref.Name, ref.Key}] = f
	}
	// OFFSET 0 keeps the planner from turning the join around: of a table that it knows nothing of it would read every document for a few.
	b.Queue(`SELECT d.projection, d.key, d.leaf, d.version, d.seq, d.body, d.generation FROM unnest($2::bigint[], $3::bytea[]) u (projection,
		key)
		CROSS JOIN LATERAL (SELECT * FROM documents d WHERE d.projection = u.projection AND d.workspace = $1 AND d.key = u.key OFFSET 0) d`, l.no,
		nos, keys).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var no int64
			var key []byte
			var d document
			if err := rows.Scan(&no, &key, &d.leaf, &d.version, &d.seq, &d.body, &d.generation); err != nil {
				return err
			}
			if err := l.restore(l.folios[docRef{names[no], string(key)}], d); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	return nil
}

// restore reads a document into its folio.
func (l *ledger) restore(f *folio, d document) error {
	if f == nil {
		return fmt.Errorf("a document that nobody has asked for")
	}
	body, err := l.j.events.unseal(l.ws, d)
	if err != nil {
		return err
	}
	def, err := l.set.Lookup(f.ref.Name)
	if err != nil {
		return err
	}
	if f.state, err = def.Restore(f.ref.Key, body, d.version, d.seq); err != nil {
		return err
	}
	if _, f.indexes, err = f.state.Encode(); err != nil {
		return err
	}
	f.leaf, f.body = d.leaf, body
	l.kept += len(body)
	return nil
}

// document is a row of documents.
type document struct {
	leaf         int64
	version, seq uint64
	body         []byte
	generation   *int64
}

// digest reads and writes a hash as bytea.
type digest event.Digest

// ScanBytes implements pgtype.BytesScanner.
func (d *digest) ScanBytes(raw []byte) error {
	if len(raw) != len(d) {
		*d = digest{} // its reader finds out that it is wrong
		return nil
	}
	copy(d[:], raw)
	return nil
}

func eventTree(ws id.Workspace) string    { return "events/" + string(ws) }
func documentTree(ws id.Workspace) string { return "documents/" + string(ws) }
