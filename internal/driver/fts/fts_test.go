package fts

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/kernel/fulltext"
	"agentbox/internal/kernel/fulltext/fulltexttest"
)

func open(t *testing.T, path string) *Index {
	t.Helper()
	i, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return i
}

// holds looks for a text in the bytes of every file, and for its pairs in what FTS5 has.
func holds(t *testing.T, i fulltext.Index, text string) bool {
	t.Helper()
	index := i.(*Index)
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		raw, err := os.ReadFile(index.path + suffix)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if bytes.Contains(bytes.ToLower(raw), []byte(text)) {
			return true
		}
	}
	return paired(t, index, text)
}

// paired reports whether a page of FTS5 has a pair of a text that no entry has any more.
func paired(t *testing.T, index *Index, text string) bool {
	t.Helper()
	if err := index.conn.Exec(`CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab(main, pairs, instance)`); err != nil {
		t.Fatal(err)
	}
	for _, pair := range bytes.Fields([]byte(pairs(fulltext.Fold(text)))) {
		living, err := index.number(`SELECT count(*) FROM temp.vocabulary WHERE term = ? AND doc IN (SELECT id FROM entries)`, string(pair))
		if err != nil {
			t.Fatal(err)
		}
		// A term is written without what it has in common with the one before it.
		pages, err := index.number(`SELECT count(*) FROM pairs_data WHERE instr(block, CAST(? AS BLOB)) > 0`, string(pair[3:]))
		if err != nil {
			t.Fatal(err)
		}
		if living == 0 && pages > 0 {
			return true
		}
	}
	return false
}

// A removal removes the bytes: the pages have the pairs before, and not afterwards.
func TestForgottenPairsAreOverwritten(t *testing.T) {
	i := open(t, filepath.Join(t.TempDir(), "search.db"))
	entries := []fulltext.Entry{{Place: 1, Key: "a", Text: "public words"}, {Place: 2, Key: "b", Text: "秘密"}}
	if err := i.Take(t.Context(), "ws_one", 2, entries); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"秘密"} {
		if pages, err := i.number(`SELECT count(*) FROM pairs_data WHERE instr(block, CAST(? AS BLOB)) > 0`,
			string(pairs(text)[3:8])); err != nil || pages == 0 {
			t.Fatalf("the pages do not have %q to begin with, %v", text, err)
		}
	}
	if err := i.Forget(t.Context(), "ws_one", 2); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"秘密"} {
		if holds(t, i, text) {
			t.Errorf("%q is in the pages still", text)
		}
	}
}

func TestIndex(t *testing.T) {
	fulltexttest.Run(t, fulltexttest.Driver{
		Open:  func(t *testing.T) fulltext.Index { return open(t, filepath.Join(t.TempDir(), "search.db")) },
		Holds: holds,
	})
}

// An index is found again as it was; one that is damaged, or of another version, begins anew.
func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "search.db")
	fill := func() {
		t.Helper()
		i, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(i.Take(t.Context(), "ws_one", 7, []fulltext.Entry{{Place: 7, Key: "k", Text: "kept"}}), i.Close()); err != nil {
			t.Fatal(err)
		}
	}
	fill()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	for name, c := range map[string]struct {
		spoil func() error
		place uint64
	}{
		"as it was": {func() error { return nil }, 7},
		"of another version": {func() error {
			conn, err := sqlite3.Open(path)
			if err != nil {
				return err
			}
			return errors.Join(conn.Exec(`PRAGMA user_version = 99`), conn.Close())
		}, 0},
		"no database": {func() error { return os.WriteFile(path, bytes.Repeat([]byte("garbage "), 1000), 0o600) }, 0},
		"lost":        {func() error { return os.Remove(path) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if err := remove(path); err != nil {
				t.Fatal(err)
			}
			fill()
			if err := c.spoil(); err != nil {
				t.Fatal(err)
			}
			i := open(t, path)
			if place, err := i.Place(t.Context(), "ws_one"); err != nil || place != c.place {
				t.Errorf("the log was taken in up to %d, %v, want %d", place, err, c.place)
			}
			if err := i.Take(t.Context(), "ws_one", 9, []fulltext.Entry{{Place: 9, Key: "k", Text: "more"}}); err != nil {
				t.Error(err)
			}
		})
	}
	i := open(t, filepath.Join(t.TempDir(), "closed.db"))
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Place(t.Context(), "ws_one"); !errors.Is(err, errClosed) {
		t.Errorf("after it was closed: %v", err)
	}
}
