package postgres

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"agentbox/internal/domain/event"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/vault"
)

// channel is the channel that announces every commit: the workspace, a blank, and the place of its last event.
const channel = "agentbox"

func generation(g vault.Generation) *int64 {
	if g == 0 {
		return nil
	}
	n := int64(g)
	return &n
}

func nullable(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func uuids(raw [][]byte) []pgtype.UUID {
	all := make([]pgtype.UUID, len(raw))
	for i := range raw {
		all[i] = pgtype.UUID{Bytes: [16]byte(raw[i]), Valid: true}
	}
	return all
}

// write queues a group: first the row of the workspace, which says whether the rest may be, and last the word to those who listen.
func (l *ledger) write(b *pgx.Batch, g *group) error {
	if err := l.fits(); err != nil {
		return err
	}
	b.Queue(`SELECT advance($1, $2, $3, $4, $5, $6, $7, $8)`, l.no, l.was.head, l.was.epoch, l.folding.folds, l.j.reign.no, l.j.Together.no,
		l.head,
		l.last[:])
	l.writeStreams(b)
	l.writeBatches(b, g)
	if err := l.writeEvents(b, g); err != nil {
		return err
	}
	if err := l.writeDocuments(b, g); err != nil {
		return err
	}
	b.Queue(`SELECT pg_notify($1, $2)`, channel, string(l.ws)+" "+strconv.FormatUint(l.head, 10))
	return nil
}

// writeStreams writes the ends of the streams that the group has extended. Each is found by its number, whatever else there is: a join
// might be planned from the other side. writeBatches queues the keys of the batches that have one, in one statement, for most of a group
// have.
func (l *ledger) writeBatches(b *pgx.Batch, g *group) {
	var keys []string
	var digests [][]byte
	var firsts, counts []int64
	for i := range g.batches {
		if r := &g.batches[i]; r.Key != "" {
			keys, digests = append(keys, r.Key), append(digests, r.Digest[:])
			firsts, counts = append(firsts, int64(r.events[0].Seq)), append(counts, int64(len(r.events)))
		}
	}
	if len(keys) > 0 {
		b.Queue(`INSERT INTO batches (workspace, key, digest, first, count) SELECT $1, * FROM unnest($2::text[], $3::bytea[], $4::bigint[], `+
			`$5::bigint[])`, l.no, keys, digests, firsts, counts)
	}
}

func (l *ledger) writeStreams(b *pgx.Batch) {
	n := len(l.lines)
	nos, types, ids, heads, hashes := make([]int64, n), make([]string, n), make([]string, n), make([]int64, n), make([][]byte, n)
	for i, at := range l.lines {
		nos[i], types[i], ids[i], heads[i], hashes[i] = at.no, at.stream.Type, at.stream.ID, int64(at.tip.Seq), at.tip.Hash[:]
	}
	b.Queue(`INSERT INTO streams (workspace, no, type, id, head, hash) SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::text[],
		$5::bigint[], $6::bytea[])
		ON CONFLICT (no) DO UPDATE SET head = excluded.head, hash = excluded.hash`, l.no, nos, types, ids, heads, hashes)
}

// rows are the columns of events and bodies that are to be written.
type rows struct {
	seq, stream, streamSeq []int64
	typ                    []string
	id                     []pgtype.UUID
	recorded               []int64
	correlation            []string
	run, step, thread      []*string
	causation              []pgtype.UUID
	entity                 []*string
	record, body           [][]byte
	bodySeq                []int64
	generation             []*int64
	keys                   []string
	keySeq                 []int64
}

func (l *ledger) writeEvents(b *pgx.Batch, g *group) error {
	var r rows
	for i := range g.batches {
		for k := range g.batches[i].events {
			if err := l.add(&r, &g.batches[i].events[k]); err != nil {
				return err
			}
		}
	}
	b.Queue(`INSERT INTO events (workspace, seq, stream, stream_seq, type, id, recorded_at, correlation, run, step, thread, entity, record,
		causation)
		SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::uuid[], $7::bigint[], $8::text[], $9::text[],
			$10::text[], $11::text[], $12::text[], $13::bytea[], $14::uuid[])`,
		l.no, r.seq, r.stream, r.streamSeq, r.typ, r.id, r.recorded, r.correlation, r.run, r.step, r.thread, r.entity, r.record, r.causation)
	if len(r.bodySeq) > 0 {
		b.Queue(`INSERT INTO bodies (workspace, seq, body, generation) SELECT $1, * FROM unnest($2::bigint[], $3::bytea[], $4::bigint[])`, l.no,
			r.bodySeq, r.body, r.generation)
	}
	if len(r.keys) > 0 {
		b.Queue(`INSERT INTO event_keys (workspace, key, seq) SELECT $1, * FROM unnest($2::text[], $3::bigint[])`, l.no, r.keys, r.keySeq)
	}
	for i := range g.batches {
		for k := range g.batches[i].events {
			e := &g.batches[i].events[k]
			if target, ok := journal.UUIDBytes(e.Causation); ok && e.Type == event.RedactedType {
				b.Queue(`INSERT INTO redactions (workspace, seq, by_seq, done) SELECT workspace, seq, $3, CASE WHEN EXISTS (SELECT 1 FROM bodies b
					WHERE b.workspace = e.workspace AND b.seq = e.seq) THEN 0 ELSE 2 END
					FROM events e WHERE id = $2 AND workspace = $1 ON CONFLICT DO NOTHING`, l.no, target, e.Seq)
			}
		}
	}
	return nil
}

// add adds an event. One whose data were taken out elsewhere has no body here.
func (l *ledger) add(r *rows, e *event.Event) error {
	uuid, ok := journal.UUIDBytes(e.ID)
	if !ok {
		return fmt.Errorf("the event id %q is not a UUID", e.ID)
	}
	shown := e.Recorded()
	r.seq, r.stream, r.streamSeq = append(r.seq, int64(e.Seq)), append(r.stream, l.streams[e.Stream].no), append(r.streamSeq,
		int64(e.StreamSeq))
	r.typ, r.id, r.recorded = append(r.typ, e.Type), append(r.id, pgtype.UUID{Bytes: uuid, Valid: true}), append(r.recorded,
		e.RecordedAt.UnixMicro())
	r.correlation, r.run, r.entity = append(r.correlation, string(e.Correlation)), append(r.run, nullable(string(e.Run))), append(r.entity,
		nullable(journal.EntityText(e)))
	r.step, r.thread = append(r.step, nullable(string(e.Step))), append(r.thread, nullable(string(e.Thread)))
	cause, named := journal.UUIDBytes(e.Causation)
	r.causation = append(r.causation, pgtype.UUID{Bytes: cause, Valid: named})
	r.record = append(r.record, journal.AppendRecord(nil, &shown))
	if e.IdempotencyKey != "" {
		r.keys, r.keySeq = append(r.keys, e.IdempotencyKey), append(r.keySeq, int64(e.Seq))
	}
	if e.Withheld != "" {
		return nil
	}
	body, g, err := l.j.db.seals.Seal(journal.AppendBody(make([]byte, 0, journal.SaltBytes+len(e.Data)+16), e), 0, eventTree(l.ws), e.Seq,
		e.Chain.Commitment[:vault.NonceBytes])
	if err != nil {
		return err
	}
	r.bodySeq, r.body, r.generation = append(r.bodySeq, int64(e.Seq)), append(r.body, body), append(r.generation, generation(g))
	return nil
}

func (l *ledger) writeDocuments(b *pgx.Batch, g *group) error {
	n := len(g.docs)
	if n == 0 {
		return nil
	}
	var fresh, known folios
	var freshly, added, removed entries
	for _, f := range g.docs {
		no, key := l.folding.nos[f.ref.Name], []byte(f.ref.Key)
		if no == 0 {
			return errors.New("a document of a projection that the database does not have")
		}
		body, g, err := l.j.events.seal(l.ws, f.leaf, f.body)
		if err != nil {
			return err
		}
		into, entered := &known, &added
		if f.fresh {
			into, entered = &fresh, &freshly
		}
		into.add(no, key, f, body, g)
		for _, index := range without(f.next, f.indexes) {
			entered.add(no, index.Name, index.Value, key)
		}
		for _, index := range without(f.indexes, f.next) {
			removed.add(no, index.Name, index.Value, key)
		}
	}
	fresh.insert(b, l.no, ``)
	known.insert(b, l.no, ` ON CONFLICT (projection, workspace, key) DO UPDATE SET leaf = excluded.leaf, version = excluded.version, seq = `+
		`excluded.seq, body = excluded.body, generation = excluded.generation`)
	removed.remove(b, l.no)
	freshly.insert(b, l.no, ``)
	added.insert(b, l.no, ` ON CONFLICT DO NOTHING`)
	return nil
}

// folios are rows of documents.
type folios struct {
	projection         []int64
	key                [][]byte
	leaf, version, seq []int64
	body               [][]byte
	generation         []*int64
}

func (d *folios) add(projection int64, key []byte, f *folio, body []byte, g *int64) {
	d.projection, d.key, d.leaf = append(d.projection, projection), append(d.key, key), append(d.leaf, f.leaf)
	d.version, d.seq = append(d.version, int64(f.state.Version)), append(d.seq, int64(f.state.Seq))
	d.body, d.generation = append(d.body, body), append(d.generation, g)
}

func (d *folios) insert(b *pgx.Batch, no int64, conflict string) {
	if len(d.key) > 0 {
		b.Queue(`INSERT INTO documents (workspace, projection, key, leaf, version, seq, body, generation)
			SELECT $1, * FROM unnest($2::bigint[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[], $8::bigint[])`+conflict,
			no, d.projection, d.key, d.leaf, d.version, d.seq, d.body, d.generation)
	}
}

// entries are rows of entries.
type entries struct {
	projection []int64
	name       []string
	value, key [][]byte
}

func (e *entries) add(projection int64, name, value string, key []byte) {
	e.projection, e.name = append(e.projection, projection), append(e.name, name)
	e.value, e.key = append(e.value, []byte(value)), append(e.key, key)
}

func (e *entries) insert(b *pgx.Batch, no int64, conflict string) {
	if len(e.name) > 0 {
		b.Queue(`INSERT INTO entries (workspace, projection, name, value, key) SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::bytea[], `+
			`$5::bytea[])`+conflict,
			no, e.projection, e.name, e.value, e.key)
	}
}

func (e *entries) remove(b *pgx.Batch, no int64) {
	if len(e.name) > 0 {
		b.Queue(`DELETE FROM entries WHERE ctid = ANY(ARRAY(SELECT e.at FROM unnest($2::bigint[], $3::text[], $4::bytea[], $5::bytea[]) u
			(projection, name, value, key) CROSS JOIN LATERAL
			(SELECT ctid AS at FROM entries e WHERE e.projection = u.projection AND e.workspace = $1 AND e.name = u.name AND e.value = u.value AND
				e.key = u.key OFFSET 0) e))`, no, e.projection, e.name, e.value, e.key)
	}
}
