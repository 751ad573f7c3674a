package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

const (
	eventColumns = `e.seq, e.stream_seq, e.type, uuid_send(e.id), e.recorded_at, e.correlation, coalesce(e.run, ''), coalesce(e.entity, ` +
		`''), e.record, b.body, b.generation`
	eventTables = ` FROM events e LEFT JOIN bodies b ON b.workspace = e.workspace AND b.seq = e.seq`
)

// storable reports whether PostgreSQL can store a text. Other texts are nowhere in the log.
func storable(texts ...string) bool {
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return false
		}
	}
	return true
}

// Get implements journal.Journal.
func (j *Journal) Get(ctx context.Context, ws id.Workspace, e id.Event) (found event.Event, err error) {
	uuid, ok := journal.UUIDBytes(e)
	if !ok {
		return event.Event{}, errors.Join(ctx.Err(), journal.ErrNotFound)
	}
	err = j.db.reading(ctx, func(db querier) error {
		no, err := j.events.number(ctx, db, ws)
		if err != nil {
			return err
		}
		rows, err := db.Query(ctx, `SELECT `+eventColumns+eventTables+` WHERE e.id = $1 AND e.workspace = $2`, uuid, no)
		if err != nil {
			return err
		}
		events, err := j.events.scan(ctx, db, ws, no, rows)
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
		err = j.listener.settled(ctx, ws, found.Seq)
	}
	return found, err
}

// Read implements journal.Journal.
func (j *Journal) Read(ctx context.Context, q journal.Query) (events []event.Event, err error) {
	q, err = q.Check()
	if err != nil {
		return nil, err
	}
	err = j.db.reading(ctx, func(db querier) error {
		no, err := j.events.number(ctx, db, q.Workspace)
		if err == nil {
			events, err = j.events.read(ctx, db, q, no)
		}
		return err
	})
	if err == nil && len(events) > 0 {
		err = j.listener.settled(ctx, q.Workspace, events[len(events)-1].Seq)
	}
	return events, err
}

// Hashes implements journal.Hasher: of an event nothing but the end of its record is read.
func (j *Journal) Hashes(ctx context.Context, ws id.Workspace, from uint64, limit int) (hashes []event.Digest, err error) {
	if limit < 1 {
		return nil, ctx.Err()
	}
	from = max(from, 1)
	err = j.db.reading(ctx, func(db querier) error {
		hashes = nil
		s, err := j.events.readStanding(ctx, db, ws, false)
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
	if j.db.readOnly {
		var s standing
		err := j.db.reading(ctx, func(db querier) (err error) {
			s, err = j.events.readStanding(ctx, db, ws, false)
			return err
		})
		return s.head, err
	}
	s, err := j.prove(ctx, ws)
	if err == nil && !j.db.options.Alone {
		j.listener.heads.Advance(ws, s.head)
	}
	return s.head, err
}

// Wait implements journal.Journal.
func (j *Journal) Wait(ctx context.Context, ws id.Workspace, after uint64) error {
	if j.db.readOnly {
		return journal.ErrClosed
	}
	return j.listener.heads.Wait(ctx, ws, after)
}

// Streams implements journal.Journal.
func (j *Journal) Streams(ctx context.Context, ws id.Workspace) (streams []event.StreamVersion, err error) {
	err = j.db.reading(ctx, func(db querier) error {
		streams = []event.StreamVersion{}
		no, err := j.events.number(ctx, db, ws)
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
	err = j.db.reading(ctx, func(db querier) error {
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
	err = j.db.reading(ctx, func(db querier) error {
		keys = nil
		no, err := j.events.number(ctx, db, ws)
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
