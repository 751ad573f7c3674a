package sqlite_test

import (
	"crypto/rand"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"agentbox/internal/driver/memory"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/vault"
)

// logs opens logs in folders of their own and remembers where they lie.
type logs struct {
	sealed bool
	mu     sync.Mutex // guards paths
	paths  map[journaltest.Log]string
	keys   map[string]vault.Keys // of each path
}

func (l *logs) open(t *testing.T, path string, s journaltest.Setup) journaltest.Log {
	t.Helper()
	j, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, Definitions: s.Definitions, Clock: s.Clock, IDs: s.IDs, Entropy: s.Entropy,
		Keys: l.keysOf(path)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paths[j] = path
	return j
}

// keysOf are the keys of the log at a path, none where logs are not sealed.
func (l *logs) keysOf(path string) vault.Keys {
	if !l.sealed {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys == nil {
		l.keys = map[string]vault.Keys{}
	}
	if l.keys[path] == nil {
		l.keys[path] = memory.NewKeys(rand.Reader)
	}
	return l.keys[path]
}

func (l *logs) driver() journaltest.Driver {
	return journaltest.Driver{
		Open: func(t *testing.T, s journaltest.Setup) journaltest.Log {
			t.Helper()
			return l.open(t, filepath.Join(t.TempDir(), "log.db"), s)
		},
		Reopen: func(t *testing.T, j journaltest.Log, s journaltest.Setup) journaltest.Log {
			t.Helper()
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			return l.open(t, l.paths[j], s)
		},
	}
}

func TestJournal(t *testing.T) {
	for name, sealed := range map[string]bool{"sealed": true, "as it is": false} {
		t.Run(name, func(t *testing.T) {
			journaltest.Run(t, (&logs{sealed: sealed, paths: map[journaltest.Log]string{}}).driver())
		})
	}
}

// A closed log leaves no goroutine behind, even if somebody waited for it.
func TestCloseLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	path := filepath.Join(t.TempDir(), "log.db")
	log, err := sqlite.Open(t.Context(), options(path, journaltest.Notes(1)))
	if err != nil {
		t.Fatal(err)
	}
	tailed := make(chan error, 1)
	go func() {
		var last error
		for _, err := range journal.Tail(t.Context(), log, journal.Query{Workspace: journaltest.Workspace}) {
			last = err
		}
		tailed <- last
	}()
	if _, err := log.Append(t.Context(), journaltest.Batch(journaltest.Draft("x").About("note", "n"))); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-tailed; !errors.Is(err, journal.ErrClosed) {
		t.Errorf("the tail ended with %v, want %v", err, journal.ErrClosed)
	}
	for name, err := range map[string]error{
		"read":     second(log.Read(t.Context(), journal.Query{Workspace: journaltest.Workspace})),
		"document": second(log.Document(t.Context(), journaltest.Workspace, "notes", "n")),
	} {
		if !errors.Is(err, journal.ErrClosed) {
			t.Errorf("%s after close: %v, want %v", name, err, journal.ErrClosed)
		}
	}
	goleak.VerifyNone(t, before)
}

func second[T any](_ T, err error) error { return err }
