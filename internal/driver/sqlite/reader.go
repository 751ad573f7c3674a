package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

const eventColumns = `e.place, y.name, e.id, e.recorded_at, e.correlation, e.run, e.entity, e.record, b.body, e.stream_seq`

const eventTables = ` LEFT JOIN types y ON y.no = e.type LEFT JOIN bodies b ON b.place = e.place`

// reading lends a connection to fn, within which it sees what was committed before.
func (j *Journal) reading(ctx context.Context, fn func(*writer) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var r *writer
	select {
	case <-j.done:
		return journal.ErrClosed
	default:
	}
	select {
	case r = <-j.pool:
	case <-j.done:
		return journal.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { j.pool <- r }()
	if r == nil {
		conn, err := j.connect(sqlite3.OPEN_READONLY)
		if err != nil {
			return err
		}
		if err := conn.Exec(`PRAGMA query_only = ON; PRAGMA mmap_size = 0; PRAGMA trusted_schema = OFF; PRAGMA cache_size = -` + strconv.Itoa(readerCachePgs)); err != nil {
			return errors.Join(fmt.Errorf("open the log for reading: %w", err), conn.Close())
		}
		r = newWriter(conn)
	}
	j.reads.RLock()
	defer j.reads.RUnlock()
	r.conn.SetInterrupt(ctx)
	defer r.conn.SetInterrupt(context.Background())
	err := fn(r)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Get implements journal.Journal.
func (j *Journal) Get(ctx context.Context, ws id.Workspace, e id.Event) (event.Event, error) {
	no, _ := j.watch.get(ws)
	uuid, ok := uuidBytes(e)
	if no == 0 || !ok {
		return event.Event{}, errors.Join(ctx.Err(), journal.ErrNotFound)
	}
	found := event.Event{}
	err := j.reading(ctx, func(r *writer) error {
		var bad error
		ok, err := r.one(func(s *sqlite3.Stmt) { bad = scanEvent(s, ws, &found) },
			`SELECT `+eventColumns+` FROM events e INDEXED BY events_id`+eventTables+` WHERE e.id = ? AND e.place BETWEEN ? AND ?`,
			uuid[:], placeOf(no, 1), placeOf(no, maxSeq))
		if err == nil && !ok {
			return journal.ErrNotFound
		}
		return errors.Join(err, bad)
	})
	return found, err
}

// Read implements journal.Journal.
func (j *Journal) Read(ctx context.Context, q journal.Query) ([]event.Event, error) {
	q, err := q.Check()
	if err != nil {
		return nil, err
	}
	events := []event.Event{}
	no, _ := j.watch.get(q.Workspace)
	if no == 0 {
		return events, ctx.Err()
	}
	sql, args := selection(q, no)
	err = j.reading(ctx, func(r *writer) error {
		rows, err := r.rows(sql, args...)
		if err != nil {
			return err
		}
		for rows.Step() {
			events = append(events, event.Event{})
			if err := scanEvent(rows, q.Workspace, &events[len(events)-1]); err != nil {
				return errors.Join(err, rows.Reset())
			}
		}
		return errors.Join(rows.Err(), rows.Reset())
	})
	if err != nil {
		return nil, err
	}
	if q.Last {
		slices.Reverse(events)
	}
	return events, nil
}

// selection writes a query in SQL. Which index serves it is said there, so that no statistics and no version of SQLite decide otherwise;
// what is not the most selective field filters what that index finds.
func selection(q journal.Query, no int64) (string, []any) {
	index, order := `NOT INDEXED`, `e.place`
	var where []string
	var args []any
	cond := func(sql string, with ...any) {
		where = append(where, sql)
		args = append(args, with...)
	}
	if q.Correlation != "" {
		index = `INDEXED BY events_correlation`
		cond(`e.correlation = ?`, string(q.Correlation))
	}
	if q.EntityID != "" {
		index = `INDEXED BY events_entity`
		cond(`e.entity = ?`, q.EntityType+entitySeparator+q.EntityID)
	}
	if q.Run != "" {
		index = `INDEXED BY events_run`
		cond(`e.run = ?`, string(q.Run))
	}
	lowest, highest := placeOf(no, max(q.From, 1)), placeOf(no, maxSeq)
	if q.Before != 0 {
		highest = placeOf(no, min(q.Before-1, maxSeq))
	}
	if q.From > maxSeq {
		lowest = highest + 1
	}
	if q.Stream != (event.Stream{}) {
		if len(where) == 0 {
			index, order = `INDEXED BY events_stream`, `e.stream_seq`
		}
		before := uint64(maxSeq)
		if q.Before != 0 {
			before = min(q.Before-1, maxSeq)
		}
		cond(`e.stream = (SELECT no FROM streams WHERE workspace = ? AND type = ? AND id = ?)`, no, q.Stream.Type, q.Stream.ID)
		cond(`e.stream_seq BETWEEN ? AND ?`, min(q.From, maxSeq+1), before)
		lowest, highest = placeOf(no, 1), placeOf(no, maxSeq)
	}
	if order == `e.place` {
		cond(`e.place BETWEEN ? AND ?`, lowest, highest)
	}
	if len(q.Types) > 0 {
		marks := strings.TrimSuffix(strings.Repeat(`?, `, len(q.Types)), `, `)
		cond(`e.type IN (SELECT no FROM types WHERE name IN (` + marks + `))`)
		for _, t := range q.Types {
			args = append(args, t)
		}
	}
	if q.Last {
		order += ` DESC`
	}
	args = append(args, int64(q.Limit))
	return `SELECT ` + eventColumns + ` FROM events e ` + index + eventTables + ` WHERE ` + strings.Join(where, ` AND `) + ` ORDER BY ` + order + ` LIMIT ?`, args
}

// scanEvent reads a row of eventColumns. What cannot be what was written is a journal.Damage.
func scanEvent(row *sqlite3.Stmt, ws id.Workspace, e *event.Event) error {
	e.Workspace, e.Seq = ws, uint64(row.ColumnInt64(0))&maxSeq
	e.Type = row.ColumnText(1)
	eventID, known := uuidText(row.ColumnRawBlob(2))
	e.ID = eventID
	e.RecordedAt = time.UnixMicro(row.ColumnInt64(3)).UTC()
	e.Correlation, e.Run = id.Correlation(row.ColumnText(4)), id.Run(row.ColumnText(5))
	entity := row.ColumnText(6)
	e.EntityType, e.EntityID, _ = strings.Cut(entity, entitySeparator)
	e.StreamSeq = uint64(row.ColumnInt64(9))
	damaged := func(detail string) error {
		return &journal.Damage{Workspace: ws, Seq: e.Seq, Stream: e.Stream, StreamSeq: e.StreamSeq, ID: e.ID, Detail: detail}
	}
	err := decodeRecord(row.ColumnRawBlob(7), e)
	switch {
	case err != nil:
		return damaged("its record cannot be read")
	case !known:
		return damaged("its id is no UUID")
	case e.Type == "":
		return damaged("its type is unknown")
	case entity != entityOf(e):
		return damaged("its entity cannot be read")
	}
	// One copy for salt and data, which the caller may keep.
	salt, data, ok := splitBody(row.ColumnBlob(8, nil))
	if !ok {
		return damaged("its data is missing")
	}
	e.Chain.Salt, e.Data = salt, data
	return nil
}

// Head implements journal.Journal.
func (j *Journal) Head(ctx context.Context, ws id.Workspace) (uint64, error) {
	_, head := j.watch.get(ws)
	return head, ctx.Err()
}

// Wait implements journal.Journal.
func (j *Journal) Wait(ctx context.Context, ws id.Workspace, after uint64) error {
	if j.readOnly {
		return journal.ErrClosed
	}
	return j.watch.wait(ctx, ws, after)
}

// Streams implements journal.Journal.
func (j *Journal) Streams(ctx context.Context, ws id.Workspace) ([]event.StreamVersion, error) {
	streams := []event.StreamVersion{}
	no, _ := j.watch.get(ws)
	if no == 0 {
		return streams, ctx.Err()
	}
	err := j.reading(ctx, func(r *writer) error {
		rows, err := r.rows(`SELECT type, id, head FROM streams WHERE workspace = ? ORDER BY type, id`, no)
		if err != nil {
			return err
		}
		for rows.Step() {
			streams = append(streams, event.StreamVersion{Stream: event.Stream{Type: rows.ColumnText(0), ID: rows.ColumnText(1)}, Version: uint64(rows.ColumnInt64(2))})
		}
		return errors.Join(rows.Err(), rows.Reset())
	})
	return streams, err
}

// Workspaces implements journal.Journal.
func (j *Journal) Workspaces(ctx context.Context) ([]id.Workspace, error) {
	return j.watch.all(), ctx.Err()
}
