package sqlite_test

import (
	"path/filepath"
	"sync"
	"testing"

	"agentbox/internal/driver/sqlite"
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
