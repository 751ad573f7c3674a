package sqlite

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/kernel/journal"
)

// indexedAtOnce is how many events lie behind what the postings know before more are written. Fewer cost more pages per event; more make
// queries slower, for these read what lies behind one by one.
const indexedAtOnce = 1_024

// The kinds of posting.
const (
	postedStream = 1 + iota
	postedRun
	postedCorrelation
	postedEntity
	postedStep
	postedThread
	postedCausation
)

// posting is a piece of what lies where, while it is made.
type posting struct {
	kind   int64
	key    string
	first  int64
	last   int64 // place
	count  int64
	places []byte
}

// located is an event with its search keys.
type located struct {
	place, stream, streamSeq int64
	run, correlation, entity string
	step, thread, causation  string
}

func (p *posting) add(place int64) {
	p.places = binary.AppendUvarint(p.places, uint64(place-p.last))
	p.last = place
	p.count++
}

// index writes the postings up to the last event of every workspace.
func (cm *committer) index() error {
	type tail struct{ no, first, last int64 }
	var tails []tail
	rows, err := cm.w.rows(`SELECT no, indexed, head FROM workspaces WHERE indexed < head`)
	if err != nil {
		return err
	}
	for rows.Step() {
		no := rows.ColumnInt64(0)
		tails = append(tails, tail{no, placeOf(no, uint64(rows.ColumnInt64(1))+1), placeOf(no, uint64(rows.ColumnInt64(2)))})
	}
	if err := finish(rows); err != nil {
		return err
	}
	for _, t := range tails {
		events := cm.fresh
		if len(events) != cm.unindexed {
			// Some lie behind from before the log was opened.
			if events, err = cm.w.located(t.first, t.last); err != nil {
				return err
			}
		}
		postings, err := gather(events, t.first, t.last)
		if err != nil {
			return err
		}
		if err := cm.w.post(postings); err != nil {
			return err
		}
		if err := cm.w.exec(`UPDATE workspaces SET indexed = head WHERE no = ?`, t.no); err != nil {
			return err
		}
	}
	cm.unindexed, cm.fresh = 0, cm.fresh[:0]
	return nil
}

// post writes pieces of postings.
func (c *connection) post(postings []*posting) error {
	for _, p := range postings {
		if err := c.exec(`INSERT INTO postings (kind, key, first, places) VALUES (?, ?, ?, ?)`, p.kind, p.key, p.first, p.places); err != nil {
			return err
		}
	}
	return nil
}

// located reads the search keys of the events between two places.
func (c *connection) located(first, last int64) ([]located, error) {
	rows, err := c.rows(`SELECT place, stream, stream_seq, run, correlation, entity, record FROM events WHERE place BETWEEN ? AND ? ORDER `+
		`BY place`, first, last)
	if err != nil {
		return nil, err
	}
	var events []located
	for rows.Step() {
		f := journal.FiledOf(rows.ColumnRawBlob(6), "")
		events = append(events, located{
			rows.ColumnInt64(0), rows.ColumnInt64(1), rows.ColumnInt64(2), rows.ColumnText(3), rows.ColumnText(4), rows.ColumnText(5),
			string(f.Step), string(f.Thread), string(f.Cause),
		})
	}
	return events, finish(rows)
}

// gather makes the postings of those events that lie between two places, in the order of the table. Events of one workspace stand in the
// order of their places.
func gather(events []located, first, last int64) ([]*posting, error) {
	type name struct {
		kind int64
		key  string
	}
	made := map[name]*posting{}
	add := func(kind int64, key string, first, place int64) *posting {
		p := made[name{kind, key}]
		if p == nil {
			p = &posting{kind: kind, key: key, first: first}
			made[name{kind, key}] = p
		}
		p.add(place)
		return p
	}
	streams := map[int64]string{}
	for i := range events {
		e := &events[i]
		if e.place < first || e.place > last {
			continue
		}
		stream, known := streams[e.stream]
		if !known {
			stream = strconv.FormatInt(e.stream, 10)
			streams[e.stream] = stream
		}
		if s := add(postedStream, stream, e.streamSeq, e.place); s.first+s.count-1 != e.streamSeq {
			return nil, fmt.Errorf("event %d has number %d in its stream, want %d", e.place, e.streamSeq, s.first+s.count-1)
		}
		if e.run != "" {
			add(postedRun, e.run, e.place, e.place)
		}
		if e.correlation != "" {
			add(postedCorrelation, e.correlation, e.place, e.place)
		}
		if e.entity != "" {
			add(postedEntity, e.entity, e.place, e.place)
		}
		if e.step != "" {
			add(postedStep, e.step, e.place, e.place)
		}
		if e.thread != "" {
			add(postedThread, e.thread, e.place, e.place)
		}
		if e.causation != "" {
			add(postedCausation, e.causation, e.place, e.place)
		}
	}
	postings := make([]*posting, 0, len(made))
	for _, p := range made {
		postings = append(postings, p)
	}
	slices.SortFunc(postings, func(a, b *posting) int {
		if a.kind != b.kind {
			return int(a.kind - b.kind)
		}
		return strings.Compare(a.key, b.key)
	})
	return postings, nil
}

// postingsSQL lists the pieces that can hold what lies from one number to another: stream_seq for a stream, else places.
func postingsSQL(last bool) string {
	sql := `SELECT first, places FROM postings WHERE kind = ?1 AND key = ?2
		AND first BETWEEN coalesce((SELECT max(first) FROM postings WHERE kind = ?1 AND key = ?2 AND first <= ?3), 0) AND ?4 ORDER BY first`
	if last {
		sql += ` DESC`
	}
	return sql
}

// posted calls yield with the places under a key, in order or, if last is set, in reverse, until yield returns false.
func (c *connection) posted(kind int64, key string, from, to int64, last bool, yield func(place int64) (bool, error)) error {
	rows, err := c.rows(postingsSQL(last), kind, key, from, to)
	if err != nil {
		return err
	}
	more := true
	for more && rows.Step() {
		places, err := unfold(rows, kind, from, to)
		if err != nil {
			_ = rows.Reset()
			return err
		}
		if last {
			slices.Reverse(places)
		}
		for _, place := range places {
			if more, err = yield(place); err != nil {
				_ = rows.Reset()
				return err
			}
			if !more {
				break
			}
		}
	}
	return finish(rows)
}

// unfold returns the places of a piece whose numbers lie from one to another.
func unfold(row *sqlite3.Stmt, kind, from, to int64) ([]int64, error) {
	first, rest := row.ColumnInt64(0), row.ColumnRawBlob(1)
	var places []int64
	place := int64(0)
	for n := int64(0); len(rest) > 0; n++ {
		step, size := binary.Uvarint(rest)
		if size <= 0 {
			return nil, fmt.Errorf("a piece of the postings cannot be read")
		}
		rest = rest[size:]
		place += int64(step)
		number := place
		if kind == postedStream {
			number = first + n
		}
		if number >= from && number <= to {
			places = append(places, place)
		}
	}
	return places, nil
}
