package sqlite

import (
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/vault"
)

// connection is a connection with its prepared statements. One goroutine at a time uses it.
type connection struct {
	conn  *sqlite3.Conn
	stmts map[string]*sqlite3.Stmt
	buf   []byte
	seals *vault.Sealer
}

func newConnection(conn *sqlite3.Conn, seals *vault.Sealer) *connection {
	return &connection{conn: conn, seals: seals, stmts: map[string]*sqlite3.Stmt{}}
}

func (c *connection) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.conn.Close())...)
}

// rows prepares a statement, once, and binds its parameters: int64, uint64, string and []byte. A limit is written `? + 0`: SQLite plans
// for the value of one that is a parameter alone, and so compiles the statement anew each time it is bound (8 us in the place of 1, and
// 40 for a join).
func (c *connection) rows(sql string, args ...any) (*sqlite3.Stmt, error) {
	s := c.stmts[sql]
	if s == nil {
		var err error
		if s, _, err = c.conn.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT); err != nil {
			return nil, fmt.Errorf("prepare %s: %w", sql, err)
		}
		c.stmts[sql] = s
	}
	for i, arg := range args {
		var err error
		switch a := arg.(type) {
		case int64:
			err = s.BindInt64(i+1, a)
		case uint64:
			err = s.BindInt64(i+1, int64(a))
		case string:
			err = s.BindText(i+1, a)
		case []byte:
			err = s.BindBlob(i+1, a)
		default:
			err = fmt.Errorf("a parameter of type %T", arg)
		}
		if err != nil {
			return nil, fmt.Errorf("bind parameter %d of %s: %w", i+1, sql, err)
		}
	}
	return s, nil
}

// finish ends a query whose rows have been stepped through, or not.
func finish(s *sqlite3.Stmt) error {
	if err := errors.Join(s.Err(), s.Reset()); err != nil {
		return fmt.Errorf("%s: %w", s.SQL(), err)
	}
	return nil
}

// exec runs a statement that returns no rows.
func (c *connection) exec(sql string, args ...any) error {
	s, err := c.rows(sql, args...)
	if err != nil {
		return err
	}
	if err := s.Exec(); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// one runs a statement that returns at most one row and lets scan read it; false where there is none.
func (c *connection) one(scan func(*sqlite3.Stmt), sql string, args ...any) (bool, error) {
	s, err := c.rows(sql, args...)
	if err != nil {
		return false, err
	}
	found := s.Step()
	if found {
		scan(s)
	}
	return found, finish(s)
}

// writtenAtOnce is how many events one statement writes, as long as there are as many; each row costs a fifth less than alone.
const writtenAtOnce = 16

// insertBatches writes the events of batches and adds their search keys to a list.
func (c *connection) insertBatches(batches []plannedBatch, list []located) ([]located, error) {
	var rows []row
	for i := range batches {
		b := &batches[i]
		for k := range b.events {
			e := &b.events[k]
			at := located{placeOf(b.tenantNo, e.Seq), b.streams[k], int64(e.StreamSeq), string(e.Run), string(e.Correlation), journal.EntityText(e),
				string(e.Step), string(e.Thread), string(e.Causation)}
			rows, list = append(rows, row{e, at, b.types[k]}), append(list, at)
			if e.Type == event.RedactedType {
				if err := c.insertRedaction(at.place, e); err != nil {
					return list, err
				}
			}
			if e.IdempotencyKey == "" {
				continue
			}
			if err := c.exec(`INSERT INTO event_keys (workspace, key, seq) VALUES (?, ?, ?)`, b.tenantNo, e.IdempotencyKey, e.Seq); err != nil {
				return list, err
			}
		}
		if b.key == "" {
			continue
		}
		if err := c.exec(`INSERT INTO batches (workspace, key, digest, first, count) VALUES (?, ?, ?, ?, ?)`,
			b.tenantNo, b.key, b.digest[:], b.events[0].Seq, int64(len(b.events))); err != nil {
			return list, err
		}
	}
	for len(rows) > 0 {
		events, bodies, n := insertMany, insertManyBodies, writtenAtOnce
		if len(rows) < n {
			events, bodies, n = insertOne, insertOneBody, 1
		}
		if err := c.insertRows(events, bodies, rows[:n]); err != nil {
			return list, err
		}
		rows = rows[n:]
	}
	return list, nil
}

// row is an event that is to be written.
type row struct {
	*event.Event
	at  located
	typ int64
}

// The statements that write events and their bodies, one and many.
const (
	insertOne = `INSERT INTO events (place, stream, stream_seq, type, id, recorded_at, correlation, run, entity, record) VALUES ` +
		eventRow
	insertOneBody = `INSERT INTO bodies (place, body, generation) VALUES ` + bodyRow
	eventRow      = `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	bodyRow       = `(?, ?, ?)`

	insertMany       = insertOne + threeEvents + fourEvents + fourEvents + fourEvents
	insertManyBodies = insertOneBody + threeBodies + fourBodies + fourBodies + fourBodies
	threeEvents      = `, ` + eventRow + `, ` + eventRow + `, ` + eventRow
	fourEvents       = threeEvents + `, ` + eventRow
	threeBodies      = `, ` + bodyRow + `, ` + bodyRow + `, ` + bodyRow
	fourBodies       = threeBodies + `, ` + bodyRow
)

// insertRows writes as many events as the statements have rows.
func (c *connection) insertRows(events, bodies string, rows []row) error {
	s, err := c.rows(events)
	if err != nil {
		return err
	}
	body, err := c.rows(bodies)
	if err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		uuid, ok := journal.UUIDBytes(r.ID)
		if !ok {
			return fmt.Errorf("event %.64q has no UUID for an id", r.ID)
		}
		c.buf = journal.AppendRecord(c.buf[:0], r.Event)
		p := 10 * i
		err := errors.Join(
			s.BindInt64(p+1, r.at.place), s.BindInt64(p+2, r.at.stream), s.BindInt64(p+3, r.at.streamSeq), s.BindInt64(p+4, r.typ), s.BindBlob(p+5,
				uuid[:]),
			s.BindInt64(p+6, r.RecordedAt.UnixMicro()), s.BindText(p+7, r.at.correlation), bindOptional(s, p+8, r.at.run),
			bindOptional(s, p+9, r.at.entity), s.BindBlob(p+10, c.buf))
		if err != nil {
			return fmt.Errorf("bind an event: %w", err)
		}
		sealed, generation, err := seal(c.seals, c.buf[:0], r.Event)
		if err != nil {
			return fmt.Errorf("seal an event: %w", err)
		}
		c.buf = sealed
		err = errors.Join(body.BindInt64(3*i+1, r.at.place), body.BindBlob(3*i+2, c.buf))
		if generation == 0 {
			err = errors.Join(err, body.BindNull(3*i+3))
		} else {
			err = errors.Join(err, body.BindInt64(3*i+3, int64(generation)))
		}
		if err != nil {
			return fmt.Errorf("bind a body: %w", err)
		}
	}
	if err := s.Exec(); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	if err := body.Exec(); err != nil {
		return fmt.Errorf("write bodies: %w", err)
	}
	return nil
}

func bindOptional(s *sqlite3.Stmt, param int, text string) error {
	if text == "" {
		return s.BindNull(param)
	}
	return s.BindText(param, text)
}

// insertStream writes a stream that has no row yet, with its end.
func (c *connection) insertStream(p *plannedStream) error {
	return c.exec(`INSERT INTO streams (head, hash, no, workspace, type, id) VALUES (?, ?, ?, ?, ?, ?)`,
		p.tip.Seq, p.tip.Hash[:], p.no, p.tenantNo, p.stream.Type, p.stream.ID)
}

// updateStream writes the end of a stream.
func (c *connection) updateStream(p *plannedStream) error {
	return c.exec(`UPDATE streams SET head = ?, hash = ? WHERE no = ?`, p.tip.Seq, p.tip.Hash[:], p.no)
}

// writeDocument writes a document and what of its index entries has changed.
func (c *connection) writeDocument(d *plannedDocument) error {
	sql := `UPDATE documents SET version = ?, seq = ?, body = ? WHERE no = ?`
	if d.fresh {
		sql = `INSERT INTO documents (version, seq, body, no, projection, workspace, key) VALUES (?, ?, ?, ?, ?, ?, ?)`
	}
	s, err := c.rows(sql)
	if err != nil {
		return err
	}
	err = errors.Join(s.BindInt64(1, int64(d.version)), s.BindInt64(2, int64(d.seq)), s.BindBlob(3, d.body), s.BindInt64(4, d.no))
	if d.fresh {
		err = errors.Join(err, s.BindInt64(5, d.projection), s.BindInt64(6, d.tenantNo), s.BindText(7, d.ref.Key))
	}
	if err != nil {
		return fmt.Errorf("bind a document: %w", err)
	}
	if err := s.Exec(); err != nil {
		return fmt.Errorf("write a document: %w", err)
	}
	for _, old := range d.removed {
		if err := c.exec(`DELETE FROM entries WHERE projection = ? AND workspace = ? AND name = ? AND value = ? AND key = ?`, d.projection,
			d.tenantNo, old.Name, old.Value, d.ref.Key); err != nil {
			return err
		}
	}
	for _, added := range d.added {
		if err := c.exec(`INSERT INTO entries (projection, workspace, name, value, key) VALUES (?, ?, ?, ?, ?)`, d.projection, d.tenantNo,
			added.Name, added.Value, d.ref.Key); err != nil {
			return err
		}
	}
	return nil
}

func placeOf(tenantNo int64, seq uint64) int64 { return tenantNo<<seqBits | int64(seq) }
