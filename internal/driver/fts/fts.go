// Package fts is a full-text index in a file of its own, over FTS5 of SQLite.
//
// The index splits a text into its pairs of adjacent characters. A word is then a phrase of pairs. So it is found anywhere and in any
// language, if it has two characters or more; a single character is the beginning of a pair. The room and the thread of a text are words of
// another column, so a search in one of them does not read the others.
package fts

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/fulltext"
)

// version is that of the tables. A file of another one is made anew, for the log has everything that was in it.
const version = 2

// seqBits are those of a place within its workspace; above them stands the number of the workspace, so that the entries of one lie
// together.
const seqBits = 40

// The texts are kept beside the pairs, because FTS5 needs the old text to remove it. A removed text leaves nothing in its pages.
const schema = `
CREATE TABLE workspaces (no INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, place INTEGER NOT NULL) STRICT;
CREATE TABLE entries (id INTEGER PRIMARY KEY, key TEXT NOT NULL, text TEXT NOT NULL, said TEXT NOT NULL) STRICT;
CREATE VIRTUAL TABLE pairs USING fts5(text, said, content='', tokenize='ascii');
INSERT INTO pairs (pairs, rank) VALUES ('secure-delete', 1);
PRAGMA user_version = 2;`

// Index is an index in a file. Make it with Open, and Close it.
type Index struct {
	path string

	mu   sync.Mutex // guards conn, which is nil once it was closed
	conn *sqlite3.Conn
}

var _ fulltext.Index = (*Index)(nil)

// errClosed means that the index was closed.
var errClosed = errors.New("the index is closed")

// Open opens the index in a file and makes one where there is none, or where it cannot be used.
func Open(path string) (*Index, error) {
	i := &Index{path: path}
	err := i.open()
	if err == nil {
		return i, nil
	}
	if gone := errors.Join(i.Close(), remove(path)); gone != nil {
		return nil, errors.Join(err, gone)
	}
	i = &Index{path: path}
	if err := i.open(); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

// remove removes the files of an index.
func remove(path string) error {
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (i *Index) open() error {
	file, err := os.OpenFile(i.path, os.O_RDWR|os.O_CREATE, 0o600) // what people say is nobody else's business
	if err != nil {
		return fmt.Errorf("open the index: %w", err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("open the index: %w", err)
	}
	name := "file:" + (&url.URL{Path: i.path}).EscapedPath() + "?modeof=" + url.QueryEscape(i.path)
	if i.conn, err = sqlite3.OpenFlags(name, sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE|sqlite3.OPEN_URI|sqlite3.OPEN_EXRESCODE); err != nil {
		return fmt.Errorf("open the index: %w", err)
	}
	if err := fts5.Register(i.conn); err != nil {
		return fmt.Errorf("open the index: %w", err)
	}
	// Nobody else has the file, so the index of the write-ahead log is in memory. secure_delete overwrites removed data.
	if err := i.conn.Exec(`PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ` +
		`ON; PRAGMA temp_store = MEMORY`); err != nil {
		return fmt.Errorf("open the index: %w", err)
	}
	found, err := i.number(`PRAGMA user_version`)
	if err != nil {
		return err
	}
	tables, err := i.number(`SELECT count(*) FROM sqlite_schema`)
	if err != nil {
		return err
	}
	switch {
	case found == version:
		_, err = i.number(`SELECT count(*) FROM workspaces`)
		return err
	case found == 0 && tables == 0:
		return i.change(func() error { return i.conn.Exec(schema) })
	}
	return fmt.Errorf("the index is of version %d, not %d", found, version)
}

// Close closes the file.
func (i *Index) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.conn == nil {
		return nil
	}
	err := i.conn.Close()
	i.conn = nil
	return err
}

// change runs something in one transaction.
func (i *Index) change(do func() error) (err error) {
	if err := i.conn.Exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	if err := do(); err != nil {
		return errors.Join(err, i.conn.Exec(`ROLLBACK`))
	}
	return i.conn.Exec(`COMMIT`)
}

// rows runs a statement with numbers and texts as its arguments and calls scan for each row.
func (i *Index) rows(scan func(*sqlite3.Stmt), sql string, args ...any) error {
	stmt, _, err := i.conn.Prepare(sql)
	if err != nil {
		return fmt.Errorf("prepare %s: %w", sql, err)
	}
	for n, arg := range args {
		switch a := arg.(type) {
		case int64:
			err = errors.Join(err, stmt.BindInt64(n+1, a))
		case string:
			err = errors.Join(err, stmt.BindText(n+1, a))
		}
	}
	if err == nil {
		for stmt.Step() {
			if scan != nil {
				scan(stmt)
			}
		}
		err = stmt.Err()
	}
	return errors.Join(err, stmt.Close())
}

func (i *Index) number(sql string, args ...any) (n int64, err error) {
	err = i.rows(func(s *sqlite3.Stmt) { n = s.ColumnInt64(0) }, sql, args...)
	return n, err
}

// begin takes the lock for a method; the caller gives it back.
func (i *Index) begin(ctx context.Context) error {
	i.mu.Lock()
	if i.conn == nil {
		i.mu.Unlock()
		return errClosed
	}
	if err := ctx.Err(); err != nil {
		i.mu.Unlock()
		return err
	}
	return nil
}

// Place implements search.Index.
func (i *Index) Place(ctx context.Context, ws id.Workspace) (uint64, error) {
	if err := i.begin(ctx); err != nil {
		return 0, err
	}
	defer i.mu.Unlock()
	place, err := i.number(`SELECT place FROM workspaces WHERE name = ?`, string(ws))
	return uint64(place), err
}

// Take implements search.Index.
func (i *Index) Take(ctx context.Context, ws id.Workspace, upTo uint64, entries []fulltext.Entry) error {
	if err := i.begin(ctx); err != nil {
		return err
	}
	defer i.mu.Unlock()
	return i.change(func() error {
		if err := i.rows(nil, `INSERT INTO workspaces (name, place) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET place = ?2`, string(ws),
			int64(upTo)); err != nil {
			return err
		}
		no, err := i.number(`SELECT no FROM workspaces WHERE name = ?`, string(ws))
		for _, e := range entries {
			if err != nil {
				return err
			}
			at, text, said := no<<seqBits|int64(e.Place), fulltext.Fold(e.Text), within(e.Room)+" "+within(e.Thread)
			err = errors.Join(
				i.rows(nil, `INSERT INTO entries (id, key, text, said) VALUES (?, ?, ?, ?)`, at, e.Key, text, said),
				i.rows(nil, `INSERT INTO pairs (rowid, text, said) VALUES (?, ?, ?)`, at, pairs(text), said),
			)
		}
		return err
	})
}

// Search implements search.Index.
func (i *Index) Search(ctx context.Context, q fulltext.Query) ([]fulltext.Hit, error) {
	if err := i.begin(ctx); err != nil {
		return nil, err
	}
	defer i.mu.Unlock()
	hits := []fulltext.Hit{}
	no, err := i.number(`SELECT no FROM workspaces WHERE name = ?`, string(q.Workspace))
	if err != nil || no == 0 {
		return hits, err
	}
	before := (no + 1) << seqBits
	if q.Before != 0 && q.Before < 1<<seqBits {
		before = no<<seqBits | int64(q.Before)
	}
	var phrases []string
	for _, w := range q.Words {
		phrases = append(phrases, "text : "+phrase(w))
	}
	if q.Room != "" {
		phrases = append(phrases, `said : "`+within(q.Room)+`"`)
	}
	if q.Thread != "" {
		phrases = append(phrases, `said : "`+within(q.Thread)+`"`)
	}
	err = i.rows(func(s *sqlite3.Stmt) {
		hits = append(hits, fulltext.Hit{Place: uint64(s.ColumnInt64(0)) & (1<<seqBits - 1), Key: s.ColumnText(1)})
	}, `SELECT p.rowid, e.key FROM pairs p JOIN entries e ON e.id = p.rowid WHERE p.pairs MATCH ? AND p.rowid > ? AND p.rowid < ? ORDER BY `+
		`p.rowid DESC LIMIT ? + 0`,
		strings.Join(phrases, " AND "), no<<seqBits, before, int64(q.Limit))
	return hits, err
}

// Forget implements search.Index.
func (i *Index) Forget(ctx context.Context, ws id.Workspace, places ...uint64) error {
	if err := i.begin(ctx); err != nil {
		return err
	}
	defer i.mu.Unlock()
	no, err := i.number(`SELECT no FROM workspaces WHERE name = ?`, string(ws))
	if err != nil || no == 0 {
		return err
	}
	if err := i.change(func() error {
		for _, place := range places {
			if err := i.remove(`id = ?`, no<<seqBits|int64(place)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return i.scrub()
}

// Reset implements search.Index.
func (i *Index) Reset(ctx context.Context, ws id.Workspace) error {
	if err := i.begin(ctx); err != nil {
		return err
	}
	defer i.mu.Unlock()
	no, err := i.number(`SELECT no FROM workspaces WHERE name = ?`, string(ws))
	if err != nil || no == 0 {
		return err
	}
	if err := i.change(func() error {
		if err := i.remove(`id BETWEEN ? AND ?`, no<<seqBits, (no+1)<<seqBits-1); err != nil {
			return err
		}
		return i.rows(nil, `UPDATE workspaces SET place = 0 WHERE no = ?`, no)
	}); err != nil {
		return err
	}
	return i.scrub()
}

// remove removes the entries that a condition on their ids selects.
func (i *Index) remove(where string, args ...any) error {
	texts := map[int64][2]string{}
	if err := i.rows(func(s *sqlite3.Stmt) {
		texts[s.ColumnInt64(0)] = [2]string{s.ColumnText(1), s.ColumnText(2)}
	}, `SELECT id, text, said FROM entries WHERE `+where, args...); err != nil {
		return err
	}
	for at, was := range texts {
		if err := i.rows(nil, `INSERT INTO pairs (pairs, rowid, text, said) VALUES ('delete', ?, ?, ?)`, at, pairs(was[0]), was[1]); err != nil {
			return err
		}
	}
	return i.rows(nil, `DELETE FROM entries WHERE `+where, args...)
}

// scrub empties the write-ahead log, which has the pages as they were.
func (i *Index) scrub() error {
	_, _, err := i.conn.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	return err
}

// digits are those in which a character is written in four; the tokenizer takes them for letters and numbers of one word.
const digits = "0123456789abcdefghijklmnopqrstuvwxyz"

func write(b *strings.Builder, r rune) {
	n := uint32(r)
	var four [4]byte
	for at := 3; at >= 0; at-- {
		four[at] = digits[n%36]
		n /= 36
	}
	b.Write(four[:])
}

// pairs returns a folded text as its pairs of characters. The last character stands beside a space, so that each begins a pair.
func pairs(folded string) string {
	var b strings.Builder
	runes := append([]rune(folded), ' ')
	for at := range len(runes) - 1 {
		if at > 0 {
			b.WriteByte(' ')
		}
		write(&b, runes[at])
		write(&b, runes[at+1])
	}
	return b.String()
}

// within returns a room or a thread as one word of the tokenizer.
func within[T id.Room | id.Thread](in T) string { return hex.EncodeToString([]byte(in)) }

// phrase returns the query that finds a word.
func phrase(word string) string {
	runes := []rune(word)
	var b strings.Builder
	b.WriteByte('"')
	if len(runes) == 1 {
		write(&b, runes[0])
		b.WriteString(`" *`)
		return b.String()
	}
	for at := range len(runes) - 1 {
		if at > 0 {
			b.WriteByte(' ')
		}
		write(&b, runes[at])
		write(&b, runes[at+1])
	}
	b.WriteByte('"')
	return b.String()
}
