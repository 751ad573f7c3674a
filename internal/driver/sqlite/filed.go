package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// Misfiled compares what the events of a workspace are filed under beside their records: the stream, and the keys by which repeats are
// known. It returns what differs in the order of the log, at most limit of it; keys of no event come last.
func (j *Journal) Misfiled(ctx context.Context, ws id.Workspace, limit int) (found []journal.Misfiled, err error) {
	no := j.views.watch.number(ws)
	if no == 0 {
		return nil, ctx.Err()
	}
	err = j.views.reading(ctx, func(r *connection) error {
		found, err = r.misfiled(ws, no, limit)
		return err
	})
	return found, err
}

func (c *connection) misfiled(ws id.Workspace, no int64, limit int) (found []journal.Misfiled, err error) {
	streams := map[int64]event.Stream{}
	if _, err := c.one(func(s *sqlite3.Stmt) {
		found = append(found, journal.Misfiled{Seq: uint64(s.ColumnInt64(0)),
			Detail: fmt.Sprintf("the tables are said to know event %d, which the log does not have", s.ColumnInt64(1))})
	}, `SELECT head, flushed FROM workspaces WHERE no = ? AND flushed > head`, no); err != nil {
		return nil, err
	}
	rows, err := c.rows(`SELECT no, type, id FROM streams WHERE workspace = ?`, no)
	if err != nil {
		return nil, err
	}
	for rows.Step() {
		streams[rows.ColumnInt64(0)] = event.Stream{Type: rows.ColumnText(1), ID: rows.ColumnText(2)}
	}
	if err := finish(rows); err != nil {
		return nil, err
	}
	if rows, err = c.rows(`SELECT place, stream, record FROM events WHERE place BETWEEN ? AND ? ORDER BY place`, placeOf(no, 1),
		placeOf(no, maxSeq)); err != nil {
		return nil, err
	}
	keys := 0
	for rows.Step() && len(found) < limit {
		f := journal.FiledOf(rows.ColumnRawBlob(2), ws)
		if f.Bad {
			continue // the reader of the event reports it
		}
		seq := uint64(rows.ColumnInt64(0)) & maxSeq
		if under := streams[rows.ColumnInt64(1)]; under != f.Stream {
			found = append(found, journal.Misfiled{Seq: seq, Stream: true,
				Detail: fmt.Sprintf("the event belongs to the stream %s %s and is filed under %s", f.Stream.Type, f.Stream.ID, named(under))})
		}
		if f.Key == "" {
			continue
		}
		keys++
		says := uint64(0)
		if _, err := c.one(func(s *sqlite3.Stmt) { says = uint64(s.ColumnInt64(0)) },
			`SELECT seq FROM event_keys WHERE workspace = ? AND key = ?`, no, f.Key); err != nil {
			return nil, errors.Join(err, rows.Reset())
		}
		if says != seq {
			found = append(found, journal.Misfiled{Seq: seq,
				Detail: "the event's key is not known, or as another event's: a repeat of its request would not be taken for one"})
		}
	}
	if err := finish(rows); err != nil || len(found) == limit {
		return found, err
	}
	more, err := c.unfounded(ws, no, keys, limit-len(found))
	return append(found, more...), err
}

func named(s event.Stream) string {
	if s == (event.Stream{}) {
		return "none of the workspace's"
	}
	return s.Type + " " + s.ID
}

// unfounded returns keys of no event. As many keys as there are events with one are theirs, for each of those has been found.
func (c *connection) unfounded(ws id.Workspace, no int64, keys, limit int) (found []journal.Misfiled, err error) {
	known := 0
	if _, err := c.one(func(s *sqlite3.Stmt) { known = s.ColumnInt(0) }, `SELECT count(*) FROM event_keys WHERE workspace = ?`,
		no); err != nil || known == keys {
		return nil, err
	}
	rows, err := c.rows(`SELECT k.seq, k.key, e.record FROM event_keys k LEFT JOIN events e ON e.place = (? << ?) + k.seq WHERE k.workspace `+
		`= ? ORDER BY k.seq`, no, int64(seqBits), no)
	if err != nil {
		return nil, err
	}
	for rows.Step() && len(found) < limit {
		if key := rows.ColumnText(1); journal.FiledOf(rows.ColumnRawBlob(2), ws).Key != key {
			found = append(found, journal.Misfiled{Seq: uint64(rows.ColumnInt64(0)),
				Detail: fmt.Sprintf("the key %.64q is known as the event's, which has no such key: a request would be taken for a repeat", key)})
		}
	}
	return found, finish(rows)
}
