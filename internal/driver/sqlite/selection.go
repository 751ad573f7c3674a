package sqlite

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/kernel/journal"
)

const (
	eventColumns = `e.place, y.name, e.id, e.recorded_at, e.correlation, e.run, e.entity, e.record, b.body, b.generation, e.stream_seq`
	eventTables  = ` LEFT JOIN types y ON y.no = e.type LEFT JOIN bodies b ON b.place = e.place`
	streamNo     = `(SELECT no FROM streams WHERE workspace = ? AND type = ? AND id = ?)`
)

// selection is a checked query, ready for SQL. The most selective of its fields selects, through the postings: step, causation, run,
// entity, correlation, thread, stream; without any of them the place in the workspace does. All of them filter what that finds, step,
// causation and thread outside of SQL, for they have no columns.
type selection struct {
	kind            int64 // of posting, 0 for none
	key             string
	from, to        int64 // numbers in the posting
	lowest, highest int64 // places
	last            bool
	filter          string
	args            []any // of filter
}

// selectionOf returns the selection of a query of the workspace with the given number; stream is the number of its stream, 0 for none.
func selectionOf(q journal.Query, no, stream int64) selection {
	s := selection{last: q.Last}
	where := func(sql string, args ...any) {
		s.filter += ` AND ` + sql
		s.args = append(s.args, args...)
	}
	field := func(kind int64, column, value string) {
		if value == "" {
			return
		}
		where(column+` = ?`, value)
		if s.kind == 0 {
			s.kind, s.key = kind, value
		}
	}
	if q.Step != "" {
		s.kind, s.key = postedStep, string(q.Step)
	}
	if s.kind == 0 && q.Causation != "" {
		s.kind, s.key = postedCausation, string(q.Causation)
	}
	field(postedRun, `e.run`, string(q.Run))
	if q.EntityID != "" {
		field(postedEntity, `e.entity`, q.EntityType+journal.EntitySeparator+q.EntityID)
	}
	field(postedCorrelation, `e.correlation`, string(q.Correlation))
	if s.kind == 0 && q.Thread != "" {
		s.kind, s.key = postedThread, string(q.Thread)
	}

	first, last := int64(min(max(q.From, 1), maxSeq+1)), int64(maxSeq)
	if q.Before != 0 {
		last = int64(min(q.Before-1, maxSeq))
	}
	if q.Stream == (event.Stream{}) {
		// Beyond the largest place of a workspace begins the next one's.
		s.lowest, s.highest = no<<seqBits+first, no<<seqBits+last
	} else {
		where(`e.stream = ?`, stream)
		where(`e.stream_seq BETWEEN ? AND ?`, first, last)
		s.lowest, s.highest = placeOf(no, 1), placeOf(no, maxSeq)
	}
	s.from, s.to = s.lowest, s.highest
	if s.kind == 0 && q.Stream != (event.Stream{}) {
		s.kind, s.key, s.from, s.to = postedStream, strconv.FormatInt(stream, 10), first, last
	}
	if len(q.Types) > 0 {
		args := make([]any, len(q.Types))
		for i, t := range q.Types {
			args[i] = t
		}
		where(`e.type IN (SELECT no FROM types WHERE name IN (`+strings.TrimSuffix(strings.Repeat(`?, `, len(args)), `, `)+`))`, args...)
	}
	return s
}

// oneSQL reads the event at a place, if it is selected.
func (s selection) oneSQL() string {
	return `SELECT ` + eventColumns + ` FROM events e` + eventTables + ` WHERE e.place = ?` + s.filter
}

// rangeSQL reads the selected events between two places, at most a limit.
func (s selection) rangeSQL() string {
	direction := ``
	if s.last {
		direction = ` DESC`
	}
	return `SELECT ` + eventColumns + ` FROM events e NOT INDEXED` + eventTables + ` WHERE e.place BETWEEN ? AND ?` + s.filter +
		` ORDER BY e.place` + direction + ` LIMIT ? + 0`
}

// read returns the events that a checked query selects, from one snapshot.
func (c *connection) read(q journal.Query, no int64) (events []event.Event, err error) {
	if c.conn.GetAutocommit() {
		if err := c.exec(`BEGIN`); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, c.exec(`COMMIT`)) }()
	}
	var stream, indexed int64
	if q.Stream != (event.Stream{}) {
		found, err := c.one(func(row *sqlite3.Stmt) { stream = row.ColumnInt64(0) }, `SELECT `+streamNo, no, q.Stream.Type, q.Stream.ID)
		if err != nil || !found || stream == 0 {
			return []event.Event{}, err
		}
	}
	if _, err := c.one(func(row *sqlite3.Stmt) { indexed = row.ColumnInt64(0) }, `SELECT indexed FROM workspaces WHERE no = ?`,
		no); err != nil {
		return nil, err
	}
	s := selectionOf(q, no, stream)
	filtered := q.Step != "" || q.Thread != "" || q.Causation != ""
	events = []event.Event{}
	between := func(lowest, highest int64) error {
		limit := int64(q.Limit - len(events))
		if filtered {
			limit = -1 // some of what SQL finds is not selected
		}
		rows, err := c.rows(s.rangeSQL(), slices.Concat([]any{lowest, highest}, s.args, []any{limit})...)
		if err != nil {
			return err
		}
		for len(events) < q.Limit && rows.Step() {
			events = append(events, event.Event{})
			e := &events[len(events)-1]
			if err := c.scanEvent(rows, q.Workspace, e); err != nil {
				return errors.Join(err, rows.Reset())
			}
			if filtered && !q.Selects(e) {
				events = events[:len(events)-1]
			}
		}
		return finish(rows)
	}
	known := no<<seqBits + indexed
	parts := []func() error{
		func() error {
			sql := s.oneSQL()
			return c.posted(s.kind, s.key, s.from, s.to, s.last, func(place int64) (bool, error) {
				var e event.Event
				var bad error
				found, err := c.one(func(row *sqlite3.Stmt) { bad = c.scanEvent(row, q.Workspace, &e) }, sql, slices.Concat([]any{place}, s.args)...)
				if err := errors.Join(err, bad); err != nil {
					return false, err
				}
				if found && (!filtered || q.Selects(&e)) {
					events = append(events, e)
				}
				return len(events) < q.Limit, nil
			})
		},
		func() error { return between(max(s.lowest, known+1), s.highest) },
	}
	if s.kind == 0 {
		parts = []func() error{func() error { return between(s.lowest, s.highest) }}
	}
	if s.last {
		slices.Reverse(parts)
	}
	for _, part := range parts {
		if err := part(); err != nil {
			return nil, err
		}
		if len(events) == q.Limit {
			break
		}
	}
	if s.last {
		slices.Reverse(events)
	}
	return events, nil
}
