package sqlite

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// unopened names the error of a read for which a file could not be opened, mostly because the process has as many open as it may.
func unopened(err error) error {
	for _, code := range []sqlite3.ExtendedErrorCode{sqlite3.IOERR_SHMOPEN, sqlite3.IOERR_SHMMAP, sqlite3.IOERR_GETTEMPPATH} {
		if errors.Is(err, code) {
			return fault.Wrap(err, errUnopened.Kind, errUnopened.Code, "%s", errUnopened.Msg).With(errUnopened.Suggestion)
		}
	}
	if errors.Is(err, sqlite3.CANTOPEN) {
		return fault.Wrap(err, errUnopened.Kind, errUnopened.Code, "%s", errUnopened.Msg).With(errUnopened.Suggestion)
	}
	return err
}

var errUnopened = fault.New(fault.Unavailable, "log_not_opened", "a file of the log cannot be opened now; ask again in a moment").
	With("see that the daemon may have enough files open: ulimit -n or LimitNOFILE=")

// Get implements journal.Journal.
func (j *Journal) Get(ctx context.Context, ws id.Workspace, e id.Event) (event.Event, error) {
	no := j.views.watch.number(ws)
	uuid, ok := journal.UUIDBytes(e)
	if no == 0 || !ok {
		return event.Event{}, errors.Join(ctx.Err(), journal.ErrNotFound)
	}
	found := event.Event{}
	err := j.views.reading(ctx, func(r *connection) error {
		var bad error
		ok, err := r.one(func(s *sqlite3.Stmt) { bad = r.scanEvent(s, ws, &found) },
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
	no := j.views.watch.number(q.Workspace)
	if no == 0 {
		return []event.Event{}, ctx.Err()
	}
	if q.Follows {
		if found, ok := j.views.recent.read(q); ok {
			return found, ctx.Err()
		}
	}
	var events []event.Event
	err = j.views.reading(ctx, func(r *connection) error {
		events, err = r.read(q, no)
		return err
	})
	return events, err
}

// scanEvent reads a row of eventColumns. A row that cannot have been written so is a journal.Damage.
func (c *connection) scanEvent(row *sqlite3.Stmt, ws id.Workspace, e *event.Event) error {
	e.Workspace, e.Seq = ws, uint64(row.ColumnInt64(0))&maxSeq
	e.Type = row.ColumnText(1)
	eventID, known := journal.UUIDText(row.ColumnRawBlob(2))
	e.ID = eventID
	e.RecordedAt = time.UnixMicro(row.ColumnInt64(3)).UTC()
	e.Correlation, e.Run = id.Correlation(row.ColumnText(4)), id.Run(row.ColumnText(5))
	entity := row.ColumnText(6)
	e.EntityType, e.EntityID, _ = strings.Cut(entity, journal.EntitySeparator)
	e.StreamSeq = uint64(row.ColumnInt64(10))
	damaged := func(detail string) error {
		return &journal.Damage{Workspace: ws, Seq: e.Seq, Stream: e.Stream, StreamSeq: e.StreamSeq, ID: e.ID, Detail: detail}
	}
	err := journal.DecodeRecord(row.ColumnRawBlob(7), e)
	switch {
	case err != nil:
		return damaged("its record cannot be read")
	case !known:
		return damaged("its id is not a UUID")
	case e.Type == "":
		return damaged("its type is unknown")
	case entity != journal.EntityText(e):
		return damaged("its entity cannot be read")
	}
	return c.fill(e, row, 8)
}

// Used implements journal.Journal. A new key is known without waiting for the disk.
func (j *Journal) Used(ctx context.Context, ws id.Workspace, key string) (use journal.Use, known bool, err error) {
	no := j.views.watch.number(ws)
	if no == 0 {
		return use, false, ctx.Err()
	}
	err = j.views.lending(ctx, func(r *connection) (err error) {
		known, err = r.one(scanUse(&use), selectUse, no, key)
		return err
	})
	if known && err == nil {
		err = j.syncer.durable.wait(ctx)
	}
	return use, known && err == nil, unopened(err)
}

// Head implements journal.Journal.
func (j *Journal) Head(ctx context.Context, ws id.Workspace) (uint64, error) {
	head := j.views.watch.Head(ws)
	return head, ctx.Err()
}

// Wait implements journal.Journal.
func (j *Journal) Wait(ctx context.Context, ws id.Workspace, after uint64) error {
	if j.file.readOnly {
		return journal.ErrClosed
	}
	return j.views.watch.Wait(ctx, ws, after)
}

// Streams implements journal.Journal.
func (j *Journal) Streams(ctx context.Context, ws id.Workspace) ([]event.StreamVersion, error) {
	streams := []event.StreamVersion{}
	no := j.views.watch.number(ws)
	if no == 0 {
		return streams, ctx.Err()
	}
	err := j.views.reading(ctx, func(r *connection) error {
		return r.snapshot(func() error {
			ends, err := r.ends(no)
			if err != nil {
				return err
			}
			rows, err := r.rows(`SELECT type, id, head, hash, no FROM streams WHERE workspace = ? ORDER BY type, id`, no)
			if err != nil {
				return err
			}
			for rows.Step() {
				head := event.StreamVersion{Stream: event.Stream{Type: rows.ColumnText(0), ID: rows.ColumnText(1)},
					Version: uint64(rows.ColumnInt64(2))}
				copy(head.Hash[:], rows.ColumnRawBlob(3))
				if end := ends[rows.ColumnInt64(4)]; end.Seq >= head.Version && end.Seq > 0 {
					head.Version, head.Hash = end.Seq, end.Hash
				}
				streams = append(streams, head)
			}
			return finish(rows)
		})
	})
	return streams, err
}

// Workspaces implements journal.Journal.
func (j *Journal) Workspaces(ctx context.Context) ([]id.Workspace, error) {
	return j.views.watch.Workspaces(), ctx.Err()
}
