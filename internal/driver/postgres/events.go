package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/vault"
)

// events reads the tables of events and of workspaces, and seals and opens the content of a row.
type events struct {
	db       *database
	nos      numbers  // for new streams and documents
	numbered sync.Map // the numbers of workspaces
	nonces   nonces
}

// scan reads rows of eventColumns. A row that cannot be as it was written is a journal.Damage. For events without data it looks up
// the remains.
func (es *events) scan(ctx context.Context, db querier, ws id.Workspace, no int64, rows pgx.Rows) ([]event.Event, error) {
	events := []event.Event{}
	var gone []int
	defer rows.Close()
	for rows.Next() {
		events = append(events, event.Event{})
		here, err := es.scanOne(rows, ws, &events[len(events)-1])
		if err != nil {
			return nil, err
		}
		if !here {
			gone = append(gone, len(events)-1)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(gone) == 0 {
		return events, nil
	}
	return events, es.withhold(ctx, db, ws, no, events, gone)
}

// scanOne reads one event; false if its data were destroyed.
func (es *events) scanOne(row pgx.Rows, ws id.Workspace, e *event.Event) (here bool, err error) {
	var typ, correlation, run, entity string
	var uuid, record, body []byte
	var recorded int64
	var g *int64
	if err := row.Scan(&e.Seq, &e.StreamSeq, &typ, &uuid, &recorded, &correlation, &run, &entity, &record, &body, &g); err != nil {
		return false, err
	}
	e.Workspace, e.Type, e.Correlation, e.Run = ws, typ, id.Correlation(correlation), id.Run(run)
	e.ID, _ = journal.UUIDText(uuid)
	e.RecordedAt = time.UnixMicro(recorded).UTC()
	e.EntityType, e.EntityID, _ = strings.Cut(entity, journal.EntitySeparator)
	damaged := func(detail string) error {
		return &journal.Damage{Workspace: ws, Seq: e.Seq, Stream: e.Stream, StreamSeq: e.StreamSeq, ID: e.ID, Detail: detail}
	}
	if err := journal.DecodeRecord(record, e); err != nil {
		return false, damaged("its record cannot be read")
	}
	if entity != journal.EntityText(e) {
		return false, damaged("its entity cannot be read")
	}
	if body == nil {
		return false, nil
	}
	if g != nil {
		opened, err := es.db.seals.Open(eventTree(ws), vault.Generation(*g), e.Seq, e.Chain.Commitment[:vault.NonceBytes], body)
		switch {
		case errors.Is(err, vault.ErrForgotten):
			e.Withhold(event.Destroyed, nil)
			return false, nil
		case errors.Is(err, vault.ErrMissing):
			e.Withhold(event.Sealed, nil)
			return true, nil
		case errors.Is(err, vault.ErrTampered):
			return false, damaged("its data are not those that were sealed for it")
		case err != nil:
			return false, err
		}
		body = opened
	}
	salt, data, ok := journal.SplitBody(body)
	if !ok {
		return false, damaged("its data are missing")
	}
	e.Chain.Salt, e.Data = salt, data
	return true, nil
}

// withhold fills in what remains of events whose data are gone.
func (es *events) withhold(ctx context.Context, db querier, ws id.Workspace, no int64, events []event.Event, gone []int) error {
	seqs := make([]int64, len(gone))
	for i, at := range gone {
		seqs[i] = int64(events[at].Seq)
	}
	found, err := db.Query(ctx, `SELECT r.seq, r.by_seq FROM redactions r WHERE r.workspace = $1 AND r.seq = ANY($2)`, no, seqs)
	if err != nil {
		return err
	}
	by := map[uint64]int64{}
	var seq uint64
	var record int64
	if _, err := pgx.ForEachRow(found, []any{&seq, &record}, func() error {
		by[seq] = record
		return nil
	}); err != nil {
		return err
	}
	records := map[int64]event.Event{}
	if len(by) > 0 {
		wanted := make([]int64, 0, len(by))
		for _, record := range by {
			wanted = append(wanted, record)
		}
		rows, err := db.Query(ctx, `SELECT `+eventColumns+eventTables+` WHERE e.workspace = $1 AND e.seq = ANY($2)`, no, wanted)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var e event.Event
			here, err := es.scanOne(rows, ws, &e)
			if err != nil {
				return err
			}
			if here && e.Type == event.RedactedType {
				records[int64(e.Seq)] = e
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
	}
	for _, at := range gone {
		e := &events[at]
		record, recorded := records[by[e.Seq]]
		switch {
		case recorded && record.Withheld != "":
			e.Withhold(event.Forgotten, nil)
		case recorded:
			redacted, err := event.Decode[event.Redacted](record)
			if err != nil {
				return err
			}
			e.Withhold(event.Forgotten, redacted.Remains)
		case e.Withheld == "":
			return &journal.Damage{Workspace: ws, Seq: e.Seq, Stream: e.Stream, StreamSeq: e.StreamSeq, ID: e.ID, Detail: "its data are missing"}
		}
	}
	return nil
}

// read returns the events that a checked query selects. For every field that selects, an index has the events in their order.
func (es *events) read(ctx context.Context, db querier, q journal.Query, no int64) ([]event.Event, error) {
	if no == 0 || !storable(append([]string{string(q.Run), string(q.Step), string(q.Thread), string(q.Correlation), q.EntityType, q.EntityID,
		q.Stream.Type, q.Stream.ID}, q.Types...)...) {
		return []event.Event{}, nil
	}
	var sql strings.Builder
	args := []any{no}
	where := func(condition string, values ...any) {
		for _, value := range values {
			args = append(args, value)
			condition = strings.Replace(condition, "?", fmt.Sprint("$", len(args)), 1)
		}
		sql.WriteString(` AND ` + condition)
	}
	sql.WriteString(`SELECT ` + eventColumns + eventTables + ` WHERE e.workspace = $1`)
	first, last := int64(min(max(q.From, 1), maxSeq+1)), int64(maxSeq)
	if q.Before != 0 {
		last = int64(min(q.Before-1, maxSeq))
	}
	order := `e.seq`
	if q.Stream != (event.Stream{}) {
		where(`e.stream = (SELECT no FROM streams WHERE workspace = $1 AND type = ? AND id = ?)`, q.Stream.Type, q.Stream.ID)
		order = `e.stream_seq`
	}
	entity := ""
	if q.EntityID != "" {
		entity = q.EntityType + journal.EntitySeparator + q.EntityID
	}
	if q.Causation != "" {
		cause, ok := journal.UUIDBytes(q.Causation)
		if !ok {
			return []event.Event{}, nil // no event has such an id
		}
		where(`e.causation = ?`, pgtype.UUID{Bytes: cause, Valid: true})
	}
	var column, value string // that of the index by which it is read, unless that is the index of the places
	for _, by := range []struct{ column, value string }{
		{`e.run`, string(q.Run)}, {`e.step`, string(q.Step)}, {`e.thread`, string(q.Thread)}, {`e.entity`, entity}, {`e.correlation`,
			string(q.Correlation)},
	} {
		if by.value == "" {
			continue
		}
		where(by.column+` = ?`, by.value)
		if column == "" && q.Stream == (event.Stream{}) {
			column, value = by.column, by.value
		}
	}
	// A range of places is believed to be so few rows, of a table of which nothing is known, that the index of the places looks as good as
	// that of what is asked for, and the whole workspace is read. Hence the side at which the reading ends is that of both together, which
	// no other index has: it ends there all the same.
	bound := func(compare string, place int64, ends bool) {
		if ends && column != "" {
			where(`(`+column+`, `+order+`)`+compare+`(?, ?)`, value, place)
		} else {
			where(order+compare+`?`, place)
		}
	}
	if first > 1 {
		bound(` >= `, first, q.Last)
	}
	if last < maxSeq {
		bound(` <= `, last, !q.Last)
	}
	if len(q.Types) > 0 {
		where(`e.type = ANY(?)`, q.Types)
	}
	if q.Last {
		order += ` DESC`
	}
	args = append(args, q.Limit)
	fmt.Fprintf(&sql, ` ORDER BY %s LIMIT $%d`, order, len(args))
	rows, err := db.Query(ctx, sql.String(), args...)
	if err != nil {
		return nil, err
	}
	events, err := es.scan(ctx, db, q.Workspace, no, rows)
	if q.Last {
		slices.Reverse(events)
	}
	return events, err
}

// number returns the number of a workspace, which never changes; 0 for one that nobody has heard of.
func (es *events) number(ctx context.Context, db querier, ws id.Workspace) (int64, error) {
	if no, known := es.numbered.Load(ws); known {
		return no.(int64), nil
	}
	s, err := es.readStanding(ctx, db, ws, false)
	if err == nil && s.no != 0 {
		es.numbered.Store(ws, s.no)
	}
	return s.no, err
}

// readStanding reads how a workspace stands.
func (es *events) readStanding(ctx context.Context, db querier, ws id.Workspace, hold bool) (s standing, err error) {
	sql := `SELECT no, head, epoch FROM workspaces WHERE name = $1`
	if hold {
		sql += ` FOR UPDATE`
	}
	err = db.QueryRow(ctx, sql, string(ws)).Scan(&s.no, &s.head, &s.epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return s, err
}

// outcome finds out whether a transaction was committed of which no answer came: it waits until nobody holds the workspace's row any
// more, for as long as the database is away.
func (es *events) outcome(ws id.Workspace, first id.Event) (committed bool, err error) {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		if err := es.db.ctx.Err(); err != nil {
			return false, errUnknown
		}
		committed, err := es.has(ws, first)
		if err == nil {
			return committed, nil
		}
		if err := es.db.trouble(err); !errors.Is(err, journal.ErrClosed) {
			return false, err
		}
		select {
		case <-time.After(wait):
		case <-es.db.ctx.Done():
		}
	}
}

func (es *events) has(ws id.Workspace, e id.Event) (found bool, err error) {
	err = pgx.BeginFunc(es.db.ctx, es.db.writes, func(tx pgx.Tx) error {
		uuid, _ := journal.UUIDBytes(e)
		var head int64
		if err := tx.QueryRow(es.db.ctx, `SELECT head FROM workspaces WHERE name = $1 FOR UPDATE`, string(ws)).Scan(&head); err != nil {
			return err
		}
		return tx.QueryRow(es.db.ctx, `SELECT EXISTS (SELECT 1 FROM events WHERE id = $1)`, uuid).Scan(&found)
	})
	return found, err
}

// seal returns the body of a document as its row has it: the nonce, and what it seals. The same document is sealed under the same key
// with each event, hence the nonce is drawn.
func (es *events) seal(ws id.Workspace, leaf int64, body []byte) ([]byte, *int64, error) {
	if es.db.seals.Keys == nil {
		return body, nil, nil
	}
	nonce, err := es.nonces.next(es.db.options.Entropy)
	if err != nil {
		return nil, nil, err
	}
	dst := make([]byte, 0, len(nonce)+len(body)+16)
	dst = append(append(dst, nonce...), body...)
	sealed, g, err := es.db.seals.Seal(dst, len(nonce), documentTree(ws), uint64(leaf), nonce)
	return sealed, generation(g), err
}

// unseal is the opposite of seal.
func (es *events) unseal(ws id.Workspace, d document) ([]byte, error) {
	if d.generation == nil {
		return d.body, nil
	}
	if len(d.body) < vault.NonceBytes {
		return nil, vault.ErrTampered
	}
	return es.db.seals.Open(documentTree(ws), vault.Generation(*d.generation), uint64(d.leaf), d.body[:vault.NonceBytes],
		d.body[vault.NonceBytes:])
}

// nonces draws numbers that are used once, for many at a time.
type nonces struct {
	mu    sync.Mutex // guards drawn
	drawn []byte
}

func (n *nonces) next(entropy io.Reader) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.drawn) < vault.NonceBytes {
		n.drawn = make([]byte, 256*vault.NonceBytes)
		if _, err := io.ReadFull(entropy, n.drawn); err != nil {
			n.drawn = nil
			return nil, fmt.Errorf("draw a nonce: %w", err)
		}
	}
	nonce := n.drawn[:vault.NonceBytes:vault.NonceBytes]
	n.drawn = n.drawn[vault.NonceBytes:]
	return nonce, nil
}
