package sqlite

import (
	"context"
	"errors"
	"fmt"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

var _ journal.Hasher = (*Journal)(nil)

// Hashes implements journal.Hasher: a record ends with the hash and the seal, so that nothing else of an event has to be read.
func (j *Journal) Hashes(ctx context.Context, ws id.Workspace, from uint64, limit int) ([]event.Digest, error) {
	no, head := j.views.watch.number(ws), j.views.watch.Head(ws)
	if no == 0 || from > head || limit < 1 {
		return nil, ctx.Err()
	}
	from = max(from, 1)
	last := min(head, from+uint64(limit)-1)
	hashes := make([]event.Digest, 0, last-from+1)
	damaged := func(detail string) error {
		return &journal.Damage{Workspace: ws, Seq: from + uint64(len(hashes)), Detail: detail}
	}
	err := j.views.reading(ctx, func(r *connection) error {
		rows, err := r.rows(`SELECT place, record FROM events NOT INDEXED WHERE place BETWEEN ? AND ? ORDER BY place`, placeOf(no, from),
			placeOf(no, last))
		if err != nil {
			return err
		}
		for rows.Step() {
			record := rows.ColumnRawBlob(1)
			if seq := uint64(rows.ColumnInt64(0)) & maxSeq; seq != from+uint64(len(hashes)) {
				return errors.Join(damaged(fmt.Sprintf("no event is there; the next is at %d", seq)), rows.Reset())
			}
			hash, ok := journal.RecordHash(record)
			if !ok {
				return errors.Join(damaged("its record cannot be read"), rows.Reset())
			}
			hashes = append(hashes, hash)
		}
		return finish(rows)
	})
	if err == nil && from+uint64(len(hashes)) <= last {
		err = damaged("no event is there")
	}
	return hashes, err
}
