package bench

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// bare is the yardstick of durable appends: one goroutine that takes whatever waits (at most 1,024) into one transaction on SQLite in WAL
// mode with synchronous=FULL, and nothing else. Its events have a 512-byte body, two 32-byte hashes, a stream, a version, a type and a time,
// are unique by stream and version, and are chained with SHA-256. No envelope, no checks, no documents, no reads.
type bare struct {
	conn   *sqlite3.Conn
	insert *sqlite3.Stmt
	begin  *sqlite3.Stmt
	commit *sqlite3.Stmt
	queue  chan bareAppend
	done   sync.WaitGroup
	heads  map[int64]bareHead
}

type bareAppend struct {
	stream int64
	body   []byte
	answer chan error
}

type bareHead struct {
	version int64
	hash    [32]byte
}

func openBare(tb testing.TB) *bare {
	tb.Helper()
	conn, err := sqlite3.Open(filepath.Join(tb.TempDir(), "bare.db"))
	must(tb, err)
	must(tb, conn.Exec(`PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
		CREATE TABLE events (id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, version INTEGER NOT NULL, type TEXT NOT NULL, at INTEGER NOT NULL,
			body BLOB NOT NULL, prev BLOB NOT NULL, hash BLOB NOT NULL, UNIQUE (stream, version))`))
	b := &bare{conn: conn, queue: make(chan bareAppend, 1024), heads: map[int64]bareHead{}}
	for sql, stmt := range map[string]**sqlite3.Stmt{
		`INSERT INTO events (stream, version, type, at, body, prev, hash) VALUES (?, ?, ?, ?, ?, ?, ?)`: &b.insert,
		`BEGIN IMMEDIATE`: &b.begin, `COMMIT`: &b.commit,
	} {
		*stmt, _, err = conn.Prepare(sql)
		must(tb, err)
	}
	b.done.Go(b.run)
	tb.Cleanup(func() {
		close(b.queue)
		b.done.Wait()
		for _, stmt := range []*sqlite3.Stmt{b.insert, b.begin, b.commit} {
			must(tb, stmt.Close())
		}
		must(tb, conn.Close())
	})
	return b
}

func (b *bare) append(stream int64, body []byte, answer chan error) error {
	b.queue <- bareAppend{stream, body, answer}
	return <-answer
}

func (b *bare) run() {
	group := make([]bareAppend, 0, 1024)
	for first := range b.queue {
		group = append(group[:0], first)
	waiting:
		for len(group) < cap(group) {
			select {
			case next, ok := <-b.queue:
				if !ok {
					break waiting
				}
				group = append(group, next)
			default:
				break waiting
			}
		}
		err := b.write(group)
		for _, a := range group {
			a.answer <- err
		}
	}
}

func (b *bare) write(group []bareAppend) error {
	if err := b.begin.Exec(); err != nil {
		return err
	}
	for _, a := range group {
		head := b.heads[a.stream]
		h := sha256.New()
		h.Write(head.hash[:])
		h.Write(a.body)
		next := bareHead{version: head.version + 1}
		h.Sum(next.hash[:0])
		for i, err := range []error{
			b.insert.BindInt64(1, a.stream), b.insert.BindInt64(2, next.version), b.insert.BindText(3, "bench.appended"),
			b.insert.BindInt64(4, time.Now().UnixNano()), b.insert.BindBlob(5, a.body), b.insert.BindBlob(6, head.hash[:]),
			b.insert.BindBlob(7, next.hash[:]),
		} {
			if err != nil {
				return fmt.Errorf("bind %d: %w", i, err)
			}
		}
		if err := b.insert.Exec(); err != nil {
			return err
		}
		b.heads[a.stream] = next
	}
	return b.commit.Exec()
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
