package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/vault"
)

// readTries is how often a read is tried on another connection after one was lost.
const readTries = 3

// view is the one state of the log that is seen by who only looks at it.
type view struct {
	mu   sync.Mutex // one reads at a time
	conn *pgx.Conn
}

func (v *view) close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.conn == nil {
		return nil
	}
	return v.conn.Close(context.Background())
}

// reading lends a connection to fn, which may be called again on another one.
func (j *Journal) reading(ctx context.Context, fn func(querier) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if j.ctx.Err() != nil {
		return journal.ErrClosed
	}
	if j.readOnly {
		j.view.mu.Lock()
		defer j.view.mu.Unlock()
		return j.trouble(fn(j.view.conn))
	}
	var err error
	for range readTries {
		conn, refused := j.reads.Acquire(ctx)
		if err = refused; err == nil {
			err = fn(conn)
			conn.Release()
		}
		if err == nil || !lost(err) || ctx.Err() != nil || j.ctx.Err() != nil {
			break
		}
		j.reads.Reset() // what took one connection may have taken those that rest
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return j.trouble(err)
}

const (
	eventColumns = `e.seq, e.stream_seq, e.type, uuid_send(e.id), e.recorded_at, e.correlation, coalesce(e.run, ''), coalesce(e.entity, ` +
		`''), e.record, b.body, b.generation`
	eventTables = ` FROM events e LEFT JOIN bodies b ON b.workspace = e.workspace AND b.seq = e.seq`
)

// scanEvents reads rows of eventColumns. A row that cannot be as it was written is a journal.Damage. For events without data it looks up
// the remains.
func (j *Journal) scanEvents(ctx context.Context, db querier, ws id.Workspace, no int64, rows pgx.Rows) ([]event.Event, error) {
	events := []event.Event{}
	var gone []int
	defer rows.Close()
	for rows.Next() {
		events = append(events, event.Event{})
		here, err := j.scanEvent(rows, ws, &events[len(events)-1])
		if err != nil {
			return nil, err
		}
		if !here {
			gone = append(gone, len(events)-1)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(gone) == 0 {
		return events, nil
	}
	return events, j.withhold(ctx, db, ws, no, events, gone)
}

// scanEvent reads one event; false if its data were destroyed.
func (j *Journal) scanEvent(row pgx.Rows, ws id.Workspace, e *event.Event) (here bool, err error) {
	var typ, correlation, run, entity string
	var uuid, record, body []byte
	var recorded int64
	var g *int64
	if err := row.Scan(&e.Seq, &e.StreamSeq, &typ, &uuid, &recorded, &correlation, &run, &entity, &record, &body, &g); err != nil {
		return false, err
	}
	e.Workspace, e.Type, e.Correlation, e.Run = ws, typ, id.Correlation(correlation), id.Run(run)
	e.ID, _ = journal.UUIDText(uuid)
	e.RecordedAt = time.UnixMicro(recorded).UTC()
	e.EntityType, e.EntityID, _ = strings.Cut(entity, journal.EntitySeparator)
	damaged := func(detail string) error {
		return &journal.Damage{Workspace: ws, Seq: e.Seq, Stream: e.Stream, StreamSeq: e.StreamSeq, ID: e.ID, Detail: detail}
	}
	if err := journal.DecodeRecord(record, e); err != nil {
		return false, damaged("its record cannot be read")
	}
	if entity != journal.EntityText(e) {
		return false, damaged("its entity cannot be read")
	}
	if body == nil {
		return false, nil
	}
	if g != nil {
		opened, err := j.seals.Open(eventTree(ws), vault.Generation(*g), e.Seq, e.Chain.Commitment[:vault.NonceBytes], body)
		switch {
		case errors.Is(err, vault.ErrForgotten):
			e.Withhold(event.Destroyed, nil)
			return false, nil
		case errors.Is(err, vault.ErrMissing):
			e.Withhold(event.Sealed, nil)
			return true, nil
		case errors.Is(err, vault.ErrTampered):
			return false, damaged("its data are not those that were sealed for it")
		case err != nil:
			return false, err
		}
		body = opened
	}
	salt, data, ok := journal.SplitBody(body)
	if !ok {
		return false, damaged("its data are missing")
	}
	e.Chain.Salt, e.Data = salt, data
	return true, nil
}

// withhold fills in what remains of events whose data are gone.
func (j *Journal) withhold(ctx context.Context, db querier, ws id.Workspace, no int64, events []event.Event, gone []int) error {
	seqs := make([]int64, len(gone))
	for i, at := range gone {
		seqs[i] = int64(events[at].Seq)
	}
	found, err := db.Query(ctx, `SELECT r.seq, r.by_seq FROM redactions r WHERE r.workspace = $1 AND r.seq = ANY($2)`, no, seqs)
	if err != nil {
		return err
	}
	by := map[uint64]int64{}
	var seq uint64
	var record int64
	if _, err := pgx.ForEachRow(found, []any{&seq, &record}, func() error {
		by[seq] = record
		return nil
	}); err != nil {
		return err
	}
	records := map[int64]event.Event{}
	if len(by) > 0 {
		wanted := make([]int64, 0, len(by))
		for _, record := range by {
			wanted = append(wanted, record)
		}
		rows, err := db.Query(ctx, `SELECT `+eventColumns+eventTables+` WHERE e.workspace = $1 AND e.seq = ANY($2)`, no, wanted)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var e event.Event
			here, err := j.scanEvent(rows, ws, &e)
			if err != nil {
				return err
			}
			if here && e.Type == event.RedactedType {
				records[int64(e.Seq)] = e
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
	}
	for _, at := range gone {
		e := &events[at]
		record, recorded := records[by[e.Seq]]
		switch {
		case recorded && record.Withheld != "":
			e.Withhold(event.Forgotten, nil)
		case recorded:
			redacted, err := event.Decode[event.Redacted](record)
			if err != nil {
				return err
			}
			e.Withhold(event.Forgotten, redacted.Remains)
		case e.Withheld == "":
			return &journal.Damage{Workspace: ws, Seq: e.Seq, Stream: e.Stream, StreamSeq: e.StreamSeq, ID: e.ID, Detail: "its data are missing"}
		}
	}
	return nil
}

// storable reports whether a text can be one of PostgreSQL's. What cannot is nowhere in the log.
func storable(texts ...string) bool {
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return false
		}
	}
	return true
}

// read returns what a checked query selects. Whichever of its fields selects, an index has the events in their order.
func (j *Journal) read(ctx context.Context, db querier, q journal.Query, no int64) ([]event.Event, error) {
	if no == 0 || !storable(append([]string{string(q.Run), string(q.Step), string(q.Thread), string(q.Correlation), q.EntityType, q.EntityID,
		q.Stream.Type, q.Stream.ID}, q.Types...)...) {
		return []event.Event{}, nil
	}
	var sql strings.Builder
	args := []any{no}
	where := func(condition string, values ...any) {
		for _, value := range values {
			args = append(args, value)
			condition = strings.Replace(condition, "?", fmt.Sprint("$", len(args)), 1)
		}
		sql.WriteString(` AND ` + condition)
	}
	sql.WriteString(`SELECT ` + eventColumns + eventTables + ` WHERE e.workspace = $1`)
	first, last := int64(min(max(q.From, 1), maxSeq+1)), int64(maxSeq)
	if q.Before != 0 {
		last = int64(min(q.Before-1, maxSeq))
	}
	order := `e.seq`
	if q.Stream != (event.Stream{}) {
		where(`e.stream = (SELECT no FROM streams WHERE workspace = $1 AND type = ? AND id = ?)`, q.Stream.Type, q.Stream.ID)
		order = `e.stream_seq`
	}
	entity := ""
	if q.EntityID != "" {
		entity = q.EntityType + journal.EntitySeparator + q.EntityID
	}
	if q.Causation != "" {
		cause, ok := journal.UUIDBytes(q.Causation)
		if !ok {
			return []event.Event{}, nil // no event has such an id
		}
		where(`e.causation = ?`, pgtype.UUID{Bytes: cause, Valid: true})
	}
	var column, value string // that of the index by which it is read, unless that is the index of the places
	for _, by := range []struct{ column, value string }{
		{`e.run`, string(q.Run)}, {`e.step`, string(q.Step)}, {`e.thread`, string(q.Thread)}, {`e.entity`, entity}, {`e.correlation`,
			string(q.Correlation)},
	} {
		if by.value == "" {
			continue
		}
		where(by.column+` = ?`, by.value)
		if column == "" && q.Stream == (event.Stream{}) {
			column, value = by.column, by.value
		}
	}
	// A range of places is believed to be so few rows, of a table of which nothing is known, that the index of the places looks as good as
	// that of what is asked for, and the whole workspace is read. Hence the side at which the reading ends is that of both together, which
	// no other index has: it ends there all the same.
	bound := func(compare string, place int64, ends bool) {
		if ends && column != "" {
			where(`(`+column+`, `+order+`)`+compare+`(?, ?)`, value, place)
		} else {
			where(order+compare+`?`, place)
		}
	}
	if first > 1 {
		bound(` >= `, first, q.Last)
	}
	if last < maxSeq {
		bound(` <= `, last, !q.Last)
	}
	if len(q.Types) > 0 {
		where(`e.type = ANY(?)`, q.Types)
	}
	if q.Last {
		order += ` DESC`
	}
	args = append(args, q.Limit)
	fmt.Fprintf(&sql, ` ORDER BY %s LIMIT $%d`, order, len(args))
	rows, err := db.Query(ctx, sql.String(), args...)
	if err != nil {
		return nil, err
	}
	events, err := j.scanEvents(ctx, db, q.Workspace, no, rows)
	if q.Last {
		slices.Reverse(events)
	}
	return events, err
}

// number returns the number of a workspace, which never changes; 0 for one that nobody has heard of.
func (j *Journal) number(ctx context.Context, db querier, ws id.Workspace) (int64, error) {
	if no, known := j.numbered.Load(ws); known {
		return no.(int64), nil
	}
	s, err := j.stand(ctx, db, ws, false)
	if err == nil && s.no != 0 {
		j.numbered.Store(ws, s.no)
	}
	return s.no, err
}

// Get implements journal.Journal.
func (j *Journal) Get(ctx context.Context, ws id.Workspace, e id.Event) (found event.Event, err error) {
	uuid, ok := journal.UUIDBytes(e)
	if !ok {
		return event.Event{}, errors.Join(ctx.Err(), journal.ErrNotFound)
	}
	err = j.reading(ctx, func(db querier) error {
		no, err := j.number(ctx, db, ws)
		if err != nil {
			return err
		}
		rows, err := db.Query(ctx, `SELECT `+eventColumns+eventTables+` WHERE e.id = $1 AND e.workspace = $2`, uuid, no)
		if err != nil {
			return err
		}
		events, err := j.scanEvents(ctx, db, ws, no, rows)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return journal.ErrNotFound
		}
		found = events[0]
		return nil
	})
	if err == nil {
		err = j.settled(ctx, ws, found.Seq)
	}
	return found, err
}

// Read implements journal.Journal.
func (j *Journal) Read(ctx context.Context, q journal.Query) (events []event.Event, err error) {
	q, err = q.Check()
	if err != nil {
		return nil, err
	}
	err = j.reading(ctx, func(db querier) error {
		no, err := j.number(ctx, db, q.Workspace)
		if err == nil {
			events, err = j.read(ctx, db, q, no)
		}
		return err
	})
	if err == nil && len(events) > 0 {
		err = j.settled(ctx, q.Workspace, events[len(events)-1].Seq)
	}
	return events, err
}

// Hashes implements journal.Hasher: of an event nothing but the end of its record is read.
func (j *Journal) Hashes(ctx context.Context, ws id.Workspace, from uint64, limit int) (hashes []event.Digest, err error) {
	if limit < 1 {
		return nil, ctx.Err()
	}
	from = max(from, 1)
	err = j.reading(ctx, func(db querier) error {
		hashes = nil
		s, err := j.stand(ctx, db, ws, false)
		if err != nil || s.no == 0 || from > s.head {
			return err
		}
		last := min(s.head, from+uint64(limit)-1)
		hashes = make([]event.Digest, 0, last-from+1)
		rows, err := db.Query(ctx,
			`SELECT seq, substring(record FROM greatest(length(record) - $4, 0) + 1) FROM events WHERE workspace = $1 AND seq BETWEEN $2 AND $3 `+
				`ORDER BY seq`, s.no, from, last, journal.RecordTail)
		if err != nil {
			return err
		}
		damaged := func(detail string) error {
			return &journal.Damage{Workspace: ws, Seq: from + uint64(len(hashes)), Detail: detail}
		}
		var seq uint64
		var tail []byte
		_, err = pgx.ForEachRow(rows, []any{&seq, &tail}, func() error {
			if seq != from+uint64(len(hashes)) {
				return damaged(fmt.Sprintf("no event is there; the next is at %d", seq))
			}
			hash, ok := journal.RecordHash(tail)
			if !ok {
				return damaged("its record cannot be read")
			}
			hashes = append(hashes, hash)
			return nil
		})
		if err == nil && from+uint64(len(hashes)) <= last {
			err = damaged("no event is there")
		}
		return err
	})
	return hashes, err
}

// Head implements journal.Journal.
func (j *Journal) Head(ctx context.Context, ws id.Workspace) (uint64, error) {
	if j.readOnly {
		var s standing
		err := j.reading(ctx, func(db querier) (err error) {
			s, err = j.stand(ctx, db, ws, false)
			return err
		})
		return s.head, err
	}
	s, err := j.prove(ctx, ws)
	if err == nil && !j.options.Alone {
		j.heads.Advance(ws, s.head)
	}
	return s.head, err
}

// Wait implements journal.Journal.
func (j *Journal) Wait(ctx context.Context, ws id.Workspace, after uint64) error {
	if j.readOnly {
		return journal.ErrClosed
	}
	return j.heads.Wait(ctx, ws, after)
}

// Streams implements journal.Journal.
func (j *Journal) Streams(ctx context.Context, ws id.Workspace) (streams []event.StreamVersion, err error) {
	err = j.reading(ctx, func(db querier) error {
		streams = []event.StreamVersion{}
		no, err := j.number(ctx, db, ws)
		if err != nil {
			return err
		}
		rows, err := db.Query(ctx, `SELECT type, id, head, hash FROM streams WHERE workspace = $1 ORDER BY type, id`, no)
		if err != nil {
			return err
		}
		var at event.StreamVersion
		_, err = pgx.ForEachRow(rows, []any{&at.Stream.Type, &at.Stream.ID, &at.Version, (*digest)(&at.Hash)}, func() error {
			streams = append(streams, at)
			return nil
		})
		return err
	})
	return streams, err
}

// Workspaces implements journal.Journal.
func (j *Journal) Workspaces(ctx context.Context) (found []id.Workspace, err error) {
	err = j.reading(ctx, func(db querier) error {
		found = []id.Workspace{}
		rows, err := db.Query(ctx, `SELECT name FROM workspaces WHERE head > 0 ORDER BY name`)
		if err != nil {
			return err
		}
		var name string
		_, err = pgx.ForEachRow(rows, []any{&name}, func() error {
			found = append(found, id.Workspace(name))
			return nil
		})
		return err
	})
	return found, err
}

// Keys implements journal.Keyed.
func (j *Journal) Keys(ctx context.Context, ws id.Workspace, after string, limit int) (keys []journal.KeyUse, err error) {
	if !storable(after) {
		return nil, ctx.Err()
	}
	err = j.reading(ctx, func(db querier) error {
		keys = nil
		no, err := j.number(ctx, db, ws)
		if err != nil {
			return err
		}
		rows, err := db.Query(ctx, `SELECT key, digest, first, count FROM batches WHERE workspace = $1 AND key > $2 ORDER BY key LIMIT $3`, no,
			after, min(limit, journal.MaxBatch))
		if err != nil {
			return err
		}
		var k journal.KeyUse
		_, err = pgx.ForEachRow(rows, []any{&k.Key, (*digest)(&k.Digest), &k.First, &k.Count}, func() error {
			keys = append(keys, k)
			return nil
		})
		return err
	})
	return keys, err
}
