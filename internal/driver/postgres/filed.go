package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// Misfiled compares what the events of a workspace are filed under beside their records: the stream, and the keys by which repeats are
// known. It returns what differs in the order of the log, at most limit of it; keys of no event come last.
func (j *Journal) Misfiled(ctx context.Context, ws id.Workspace, limit int) (found []journal.Misfiled, err error) {
	err = j.db.reading(ctx, func(db querier) error {
		found = nil
		s, err := j.events.readStanding(ctx, db, ws, false)
		if err != nil {
			return err
		}
		keys := 0
		for from := uint64(1); from <= s.head && len(found) < limit; from += journal.MaxRead {
			page, err := filedFrom(ctx, db, ws, s.no, from)
			if err != nil {
				return err
			}
			known, err := page.known(ctx, db, s.no)
			if err != nil {
				return err
			}
			keys += len(page.keys)
			found = append(found, page.misfiled(known)...)
		}
		if len(found) >= limit {
			found = found[:limit]
			return nil
		}
		more, err := unfounded(ctx, db, ws, s.no, keys, limit-len(found))
		found = append(found, more...)
		return err
	})
	return found, err
}

// filing holds the columns beside a record.
type filing struct {
	stream event.Stream
	step   id.Step
	thread id.Thread
}

// filed are some events as they are filed, and as they should be.
type filed struct {
	seqs  []uint64
	under []filing
	says  []journal.Filed
	keys  []string
}

func filedFrom(ctx context.Context, db querier, ws id.Workspace, no int64, from uint64) (page filed, err error) {
	rows, err := db.Query(ctx,
		`SELECT e.seq, coalesce(s.type, ''), coalesce(s.id, ''), coalesce(e.step, ''), coalesce(e.thread, ''), e.record FROM events e LEFT JOIN
			streams s ON s.no = e.stream AND s.workspace = e.workspace
		WHERE e.workspace = $1 AND e.seq BETWEEN $2 AND $3 ORDER BY e.seq`, no, from, from+journal.MaxRead-1)
	if err != nil {
		return page, err
	}
	var seq uint64
	var under filing
	var record []byte
	_, err = pgx.ForEachRow(rows, []any{&seq, &under.stream.Type, &under.stream.ID, (*string)(&under.step), (*string)(&under.thread), &record},
		func() error {
			says := journal.FiledOf(record, ws)
			if says.Bad {
				return nil // the reader of the event reports it
			}
			page.seqs, page.under, page.says = append(page.seqs, seq), append(page.under, under), append(page.says, says)
			if says.Key != "" {
				page.keys = append(page.keys, says.Key)
			}
			return nil
		})
	return page, err
}

// known returns of which events the keys are known to be.
func (f *filed) known(ctx context.Context, db querier, no int64) (map[string]uint64, error) {
	known := map[string]uint64{}
	if len(f.keys) == 0 {
		return known, nil
	}
	rows, err := db.Query(ctx, `SELECT key, seq FROM event_keys WHERE workspace = $1 AND key = ANY($2)`, no, f.keys)
	if err != nil {
		return nil, err
	}
	var key string
	var seq uint64
	_, err = pgx.ForEachRow(rows, []any{&key, &seq}, func() error {
		known[key] = seq
		return nil
	})
	return known, err
}

func (f *filed) misfiled(known map[string]uint64) (found []journal.Misfiled) {
	for i, seq := range f.seqs {
		says, under := f.says[i], f.under[i]
		if under.step != says.Step || under.thread != says.Thread {
			found = append(found, journal.Misfiled{Seq: seq, Stream: true,
				Detail: fmt.Sprintf("the event belongs to the step %q and the thread %q and is filed under %q and %q", says.Step, says.Thread,
					under.step, under.thread)})
		}
		if under.stream != says.Stream {
			name := "none of the workspace's"
			if under.stream != (event.Stream{}) {
				name = under.stream.Type + " " + under.stream.ID
			}
			found = append(found, journal.Misfiled{Seq: seq, Stream: true,
				Detail: fmt.Sprintf("the event belongs to the stream %s %s and is filed under %s", says.Stream.Type, says.Stream.ID, name)})
		}
		if says.Key != "" && known[says.Key] != seq {
			found = append(found, journal.Misfiled{Seq: seq,
				Detail: "the event's key is not known, or as another event's: a repeat of its request would not be taken for one"})
		}
	}
	return found
}

// unfounded returns keys of no event. As many keys as there are events with one are theirs, for each of those has been found.
func unfounded(ctx context.Context, db querier, ws id.Workspace, no int64, keys, limit int) (found []journal.Misfiled, err error) {
	known := 0
	if err := db.QueryRow(ctx, `SELECT count(*) FROM event_keys WHERE workspace = $1`, no).Scan(&known); err != nil || known == keys {
		return nil, err
	}
	rows, err := db.Query(ctx,
		`SELECT k.seq, k.key, coalesce(e.record, '') FROM event_keys k LEFT JOIN events e ON e.workspace = k.workspace AND e.seq = k.seq WHERE `+
			`k.workspace = $1 ORDER BY k.seq`, no)
	if err != nil {
		return nil, err
	}
	var seq uint64
	var key string
	var record []byte
	_, err = pgx.ForEachRow(rows, []any{&seq, &key, &record}, func() error {
		if len(found) < limit && journal.FiledOf(record, ws).Key != key {
			found = append(found, journal.Misfiled{Seq: seq,
				Detail: fmt.Sprintf("the key %.64q is known as the event's, which has no such key: a request would be taken for a repeat", key)})
		}
		return nil
	})
	return found, err
}
