package postgres

import (
	"context"
	"sync/atomic"
)

// survey sees to it that the server knows what is in its tables while they grow fast. PostgreSQL looks at them by itself, about once a
// minute; until then a query is planned, and its plan kept, for tables that are as good as empty, where each index looks as good as any
// other.
type survey struct {
	grown atomic.Int64 // events that were appended since the log was opened
	next  atomic.Int64 // the number of events at which the next survey runs
	busy  atomic.Bool
}

// The first survey of the tables runs after this many events. The next ones run each time the log has grown by the factor surveyGrowth.
const (
	firstSurvey  = 100
	surveyGrowth = 4
)

// begin finds out of how many events the server knows.
func (s *survey) begin(ctx context.Context, db querier) error {
	var known float64
	if err := db.QueryRow(ctx, `SELECT reltuples FROM pg_class WHERE oid = 'events'::regclass`).Scan(&known); err != nil {
		return err
	}
	s.next.Store(max(firstSurvey, (surveyGrowth-1)*int64(known)))
	return nil
}

// grew counts events that were appended.
func (j *Journal) grew(events int) {
	s := &j.survey
	if s.grown.Add(int64(events)) < s.next.Load() || !s.busy.CompareAndSwap(false, true) {
		return
	}
	if !j.queue.goes(func() {
		defer s.busy.Store(false)
		at := s.grown.Load()
		_ = j.db.reading(j.db.ctx, func(db querier) error { // the server does so itself in a while
			_, err := db.Exec(j.db.ctx,
				`ANALYZE events (workspace, seq, stream, stream_seq, type, id, correlation, run, step, thread, entity), bodies (workspace, seq),
					batches (workspace, key),
				streams (no, workspace, type, id), documents (projection, workspace, key), entries (projection, workspace, name, value, key)`)
			return err
		})
		s.next.Store(surveyGrowth * at)
	}) {
		s.busy.Store(false)
	}
}
