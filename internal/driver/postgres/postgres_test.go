package postgres_test

import (
	"crypto/rand"
	"sync"
	"testing"

	"agentbox/internal/driver/memory"
	"agentbox/internal/driver/postgres"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/vault"
	"agentbox/internal/testkit/pgtest"
)

// logs opens logs in databases of their own and remembers which those are.
type logs struct {
	server *pgtest.Server
	sealed bool
	mu     sync.Mutex // guards all below
	at     map[journaltest.Log]string
	keys   map[string]vault.Keys // of each address
}

func (l *logs) open(t *testing.T, address string, s journaltest.Setup) journaltest.Log {
	t.Helper()
	j, err := postgres.Open(t.Context(), postgres.Options{Address: address, Definitions: s.Definitions, Clock: s.Clock, IDs: s.IDs,
		Entropy: s.Entropy, Keys: l.keysOf(address)})
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
	if l.at == nil {
		l.at = map[journaltest.Log]string{}
	}
	l.at[j] = address
	return j
}

// keysOf are the keys of the log at an address, none where logs are not sealed.
func (l *logs) keysOf(address string) vault.Keys {
	if !l.sealed {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys == nil {
		l.keys = map[string]vault.Keys{}
	}
	if l.keys[address] == nil {
		l.keys[address] = memory.NewKeys(rand.Reader)
	}
	return l.keys[address]
}

func (l *logs) driver() journaltest.Driver {
	return journaltest.Driver{
		Open: func(t *testing.T, s journaltest.Setup) journaltest.Log {
			t.Helper()
			return l.open(t, l.server.Database(), s)
		},
		Reopen: func(t *testing.T, j journaltest.Log, s journaltest.Setup) journaltest.Log {
			t.Helper()
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			return l.open(t, l.at[j], s)
		},
	}
}

func TestJournal(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	for name, sealed := range map[string]bool{"sealed": true, "as it is": false} {
		t.Run(name, func(t *testing.T) {
			journaltest.Run(t, (&logs{server: server, sealed: sealed}).driver())
		})
	}
}
