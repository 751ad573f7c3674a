package sqlite_test

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
)

// logs opens logs in folders of their own and remembers where they lie.
type logs struct {
	mu    sync.Mutex // guards paths
	paths map[journaltest.Log]string
}

func (l *logs) open(t *testing.T, path string, s journaltest.Setup) journaltest.Log {
	t.Helper()
	j, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, Definitions: s.Definitions, Clock: s.Clock, IDs: s.IDs, Entropy: s.Entropy})
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
	journaltest.Run(t, (&logs{paths: map[journaltest.Log]string{}}).driver())
}

// A log that is closed leaves no goroutine behind, whoever waited for it.
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
