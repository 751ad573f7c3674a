package yardstick

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// SQLite is the yardstick of durable appends: one goroutine that takes whatever waits (at most 1,024) into one transaction on SQLite in WAL
// mode with synchronous=FULL, and nothing else. Its events have a body, two 32-byte hashes, a stream, a version, a type and a time, are
// unique by stream and version, and are chained with SHA-256. No envelope, no checks, no documents, no reads.
type SQLite struct {
	conn   *sqlite3.Conn
	insert *sqlite3.Stmt
	begin  *sqlite3.Stmt
	commit *sqlite3.Stmt
	queue  chan row
	done   sync.WaitGroup
	heads  map[int64]head
}

type row struct {
	stream int64
	body   []byte
	answer chan error
}

type head struct {
	version int64
	hash    [sha256.Size]byte
}

// OpenSQLite makes a database in a file that does not exist yet.
func OpenSQLite(path string) (*SQLite, error) {
	conn, err := sqlite3.Open(path)
	if err != nil {
		return nil, err
	}
	s := &SQLite{conn: conn, queue: make(chan row, 1024), heads: map[int64]head{}}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	s.done.Go(s.run)
	return s, nil
}

func (s *SQLite) prepare() error {
	if err := s.conn.Exec(`PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
		CREATE TABLE events (id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, version INTEGER NOT NULL, type TEXT NOT NULL, at INTEGER NOT NULL,
			body BLOB NOT NULL, prev BLOB NOT NULL, hash BLOB NOT NULL, UNIQUE (stream, version))`); err != nil {
		return err
	}
	for sql, stmt := range map[string]**sqlite3.Stmt{
		`INSERT INTO events (stream, version, type, at, body, prev, hash) VALUES (?, ?, ?, ?, ?, ?, ?)`: &s.insert,
		`BEGIN IMMEDIATE`: &s.begin, `COMMIT`: &s.commit,
	} {
		var err error
		if *stmt, _, err = s.conn.Prepare(sql); err != nil {
			return err
		}
	}
	return nil
}

// Append returns when the event is on the disk. The channel answer has room for one and belongs to the caller; nobody appends after Close.
func (s *SQLite) Append(stream int64, body []byte, answer chan error) error {
	s.queue <- row{stream, body, answer}
	return <-answer
}

// Close waits for all appends.
func (s *SQLite) Close() error {
	close(s.queue)
	s.done.Wait()
	return errors.Join(s.insert.Close(), s.begin.Close(), s.commit.Close(), s.conn.Close())
}

func (s *SQLite) run() {
	group := make([]row, 0, 1024)
	for first := range s.queue {
		group = append(group[:0], first)
	waiting:
		for len(group) < cap(group) {
			select {
			case next, ok := <-s.queue:
				if !ok {
					break waiting
				}
				group = append(group, next)
			default:
				break waiting
			}
		}
		err := s.write(group)
		for _, r := range group {
			r.answer <- err
		}
	}
}

func (s *SQLite) write(group []row) error {
	if err := s.begin.Exec(); err != nil {
		return err
	}
	for _, r := range group {
		last := s.heads[r.stream]
		h := sha256.New()
		h.Write(last.hash[:])
		h.Write(r.body)
		next := head{version: last.version + 1}
		h.Sum(next.hash[:0])
		for i, err := range []error{
			s.insert.BindInt64(1, r.stream), s.insert.BindInt64(2, next.version), s.insert.BindText(3, "bench.appended"),
			s.insert.BindInt64(4, time.Now().UnixNano()), s.insert.BindBlob(5, r.body), s.insert.BindBlob(6, last.hash[:]),
			s.insert.BindBlob(7, next.hash[:]),
		} {
			if err != nil {
				return fmt.Errorf("bind %d: %w", i, err)
			}
		}
		if err := s.insert.Exec(); err != nil {
			return err
		}
		s.heads[r.stream] = next
	}
	return s.commit.Exec()
}
