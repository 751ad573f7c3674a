package sqlite

import (
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/kernel/journal"
)

const eventColumns = `e.place, y.name, e.id, e.recorded_at, e.correlation, e.run, e.entity, e.record, b.body, e.stream_seq`

const eventTables = ` CROSS JOIN events e ON e.place = i.place LEFT JOIN types y ON y.no = e.type LEFT JOIN bodies b ON b.place = e.place`

const indexedUpTo = `(SELECT no << 40 | indexed FROM workspaces WHERE no = ?)`

// selected is one statement of a query; its last parameter, the limit, is missing.
type selected struct {
	sql  string
	args []any
}

// selection writes a checked query in SQL, in the order in which the parts yield. The most selective of its fields selects, the others
// filter: run, entity, correlation, stream, then the place in the workspace. Where a table by_... serves it, the first part looks there and the
// second among the events that the table does not know yet.
func selection(q journal.Query, no int64) []selected {
	var filter []string
	var filterArgs []any
	where := func(sql string, args ...any) {
		filter = append(filter, sql)
		filterArgs = append(filterArgs, args...)
	}
	table, key, by := "", "", any(nil)
	field := func(name string, value string) {
		if value == "" {
			return
		}
		where(`e.`+name+` = ?`, value)
		if table == "" {
			table, key, by = `by_`+name, name, value
		}
	}
	entity := ""
	if q.EntityID != "" {
		entity = q.EntityType + entitySeparator + q.EntityID
	}
	field(`run`, string(q.Run))
	field(`entity`, entity)
	field(`correlation`, string(q.Correlation))

	first, last := max(q.From, 1), uint64(maxSeq)
	if q.Before != 0 {
		last = min(q.Before-1, maxSeq)
	}
	lowest, highest := placeOf(no, min(first, maxSeq)), placeOf(no, last)
	if first > maxSeq {
		lowest = highest + 1
	}
	streamArgs := []any{no, q.Stream.Type, q.Stream.ID}
	const stream = `(SELECT no FROM streams WHERE workspace = ? AND type = ? AND id = ?)`
	byStream := q.Stream != event.Stream{}
	if byStream {
		where(`e.stream = `+stream, streamArgs...)
		where(`e.stream_seq BETWEEN ? AND ?`, min(first, maxSeq+1), last)
		lowest, highest = placeOf(no, 1), placeOf(no, maxSeq)
	}
	if len(q.Types) > 0 {
		marks := strings.TrimSuffix(strings.Repeat(`?, `, len(q.Types)), `, `)
		args := make([]any, len(q.Types))
		for i, t := range q.Types {
			args[i] = t
		}
		where(`e.type IN (SELECT no FROM types WHERE name IN (`+marks+`))`, args...)
	}
	direction := ``
	if q.Last {
		direction = ` DESC`
	}
	part := func(from string, args []any, order string) selected {
		sql := `SELECT ` + eventColumns + ` FROM ` + from + eventTables
		if len(filter) > 0 {
			sql += ` WHERE ` + strings.Join(filter, ` AND `)
		}
		return selected{sql + ` ORDER BY ` + order + direction + ` LIMIT ?`, slices.Concat(args, filterArgs)}
	}
	tail := part(`(SELECT place FROM events NOT INDEXED WHERE place BETWEEN max(?, 1 + `+indexedUpTo+`) AND ?) i`, []any{lowest, no, highest}, `i.place`)
	parts := []selected{{}, tail}
	switch {
	case table != "":
		parts[0] = part(`(SELECT place FROM `+table+` WHERE `+key+` = ? AND place BETWEEN ? AND ?) i`, []any{by, lowest, highest}, `i.place`)
	case byStream:
		parts[0] = part(`(SELECT stream_seq, place FROM by_stream WHERE stream = `+stream+` AND stream_seq BETWEEN ? AND ?) i`,
			append(slices.Clone(streamArgs), min(first, maxSeq+1), last), `i.stream_seq`)
	default:
		return []selected{part(`(SELECT place FROM events NOT INDEXED WHERE place BETWEEN ? AND ?) i`, []any{lowest, highest}, `i.place`)}
	}
	if q.Last {
		slices.Reverse(parts)
	}
	return parts
}
