package sqlite

import (
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
)

// writer is a connection with its prepared statements. It is used by one goroutine at a time.
type writer struct {
	conn  *sqlite3.Conn
	stmts map[string]*sqlite3.Stmt
	buf   []byte
}

func newWriter(conn *sqlite3.Conn) *writer {
	return &writer{conn: conn, stmts: map[string]*sqlite3.Stmt{}}
}

func (w *writer) close() error {
	var errs []error
	for _, s := range w.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, w.conn.Close())...)
}

// rows prepares a statement, once, and binds its parameters: int64, uint64, string (empty is NULL) and []byte.
func (w *writer) rows(sql string, args ...any) (*sqlite3.Stmt, error) {
	s := w.stmts[sql]
	if s == nil {
		var err error
		if s, _, err = w.conn.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT); err != nil {
			return nil, fmt.Errorf("prepare %s: %w", sql, err)
		}
		w.stmts[sql] = s
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
		case nil:
			err = s.BindNull(i + 1)
		default:
			err = fmt.Errorf("a parameter of type %T", arg)
		}
		if err != nil {
			return nil, fmt.Errorf("bind parameter %d of %s: %w", i+1, sql, err)
		}
	}
	return s, nil
}

// exec runs a statement that returns no rows.
func (w *writer) exec(sql string, args ...any) error {
	s, err := w.rows(sql, args...)
	if err != nil {
		return err
	}
	if err := s.Exec(); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// one runs a statement that returns at most one row and lets scan read it; false where there is none.
func (w *writer) one(scan func(*sqlite3.Stmt), sql string, args ...any) (bool, error) {
	s, err := w.rows(sql, args...)
	if err != nil {
		return false, err
	}
	found := s.Step()
	if found {
		scan(s)
	}
	err = s.Err()
	if err := errors.Join(err, s.Reset()); err != nil {
		return false, fmt.Errorf("%s: %w", sql, err)
	}
	return found, nil
}

// placed is an event with the numbers of its row.
type placed struct {
	*event.Event
	place  int64
	stream int64
	typ    int64
}

func (w *writer) insertEvent(e placed) error {
	s, err := w.rows(`INSERT INTO events (place, stream, stream_seq, type, id, recorded_at, correlation, run, entity, record) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	uuid, ok := uuidBytes(e.ID)
	if !ok {
		return fmt.Errorf("event %.64q has no UUID for an id", e.ID)
	}
	w.buf = appendRecord(w.buf[:0], e.Event)
	err = errors.Join(
		s.BindInt64(1, e.place), s.BindInt64(2, e.stream), s.BindInt64(3, int64(e.StreamSeq)), s.BindInt64(4, e.typ), s.BindBlob(5, uuid[:]),
		s.BindInt64(6, e.RecordedAt.UnixMicro()), s.BindText(7, string(e.Correlation)), bindOptional(s, 8, string(e.Run)),
		bindOptional(s, 9, entityOf(e.Event)), s.BindBlob(10, w.buf),
	)
	if err != nil {
		return fmt.Errorf("bind an event: %w", err)
	}
	if err := s.Exec(); err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	w.buf = bodyOf(w.buf[:0], e.Event)
	return w.exec(`INSERT INTO bodies (place, body) VALUES (?, ?)`, e.place, w.buf)
}

func bindOptional(s *sqlite3.Stmt, param int, text string) error {
	if text == "" {
		return s.BindNull(param)
	}
	return s.BindText(param, text)
}
