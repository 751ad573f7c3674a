package simulation_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentbox/internal/documents"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/memory"
	"agentbox/internal/driver/postgres"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/audit"
	"agentbox/internal/testkit/pgtest"
	"agentbox/internal/testkit/simulation"
	"agentbox/internal/testkit/wall"
)

// The same log is the same wherever it is kept: every document of every store has the same bytes, as it is folded and as it is folded
// anew, and the log is proven with the same result.
func TestTheSameLogInEveryStore(t *testing.T) {
	server := pgtest.Start(t)
	compared := 0
	for seed := uint64(1); seed <= 5; seed++ {
		events := play(t, seed).Events
		if len(events) == 0 {
			t.Fatalf("seed %d has no events", seed)
		}
		var want map[string][]byte
		var proof string
		for _, store := range []struct {
			name string
			log  journaltest.Log
		}{{"memory", inMemory(t)}, {"sqlite", inFile(t)}, {"postgres", inDatabase(t, server)}} {
			chunks := func(yield func([]event.Event, error) bool) {
				for some := range slices.Chunk(events, 300) {
					if !yield(some, nil) {
						return
					}
				}
			}
			if head, err := store.log.Adopt(t.Context(), simulation.WS, iter.Seq2[[]event.Event, error](chunks), nil); err != nil ||
				head != uint64(len(events)) {
				t.Fatalf("seed %d, %s: %d, %v, want %d events", seed, store.name, head, err, len(events))
			}
			folded := everything(t, store.log)
			for _, def := range documents.All() {
				if err := store.log.Rebuild(t.Context(), def.Name); err != nil {
					t.Fatal(err)
				}
			}
			report, docs, err := audit.Audit(t.Context(), store.log, store.log, documents.All(), simulation.WS)
			if err != nil || !report.OK || !docs.OK {
				t.Fatalf("seed %d, %s: %+v, %+v, %v", seed, store.name, report, docs, err)
			}
			said := fmt.Sprintf("%+v %+v", report, docs)
			if want == nil {
				want, proof = folded, said
				compared += len(folded)
			}
			for again, got := range map[string]map[string][]byte{"": folded, " folded anew": everything(t, store.log)} {
				if !same(got, want) {
					t.Errorf("seed %d: the documents of %s%s are others: -memory +%s\n%.4000s", seed, store.name, again, store.name, cmp.Diff(want, got))
				}
			}
			if said != proof {
				t.Errorf("seed %d, %s is proven otherwise\n got %s\nwant %s", seed, store.name, said, proof)
			}
		}
	}
	if compared < 100 {
		t.Errorf("only %d documents were compared", compared)
	}
}

func same(a, b map[string][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for key := range a {
		if !bytes.Equal(a[key], b[key]) {
			return false
		}
	}
	return true
}

// everything returns every document with its version and place.
func everything(t *testing.T, docs projection.Reader) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, def := range documents.All() {
		for q := (projection.Query{Workspace: simulation.WS, Name: def.Name, Limit: projection.MaxDocuments}); ; {
			some, err := docs.Documents(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range some {
				all[fmt.Sprintf("%s %s version %d seq %d", def.Name, d.Key, d.Version, d.Seq)] = d.Body
				q.After = d.Key
			}
			if len(some) < q.Limit {
				break
			}
		}
	}
	return all
}

func ids() *id.Source { return id.NewSource(time.Now, rand.Reader) }

func inMemory(t *testing.T) journaltest.Log {
	t.Helper()
	j, err := memory.NewJournal(documents.All(), wall.Clock{}, ids(), rand.Reader)
	return kept(t, j, err)
}

func inFile(t *testing.T) journaltest.Log {
	t.Helper()
	j, err := sqlite.Open(t.Context(), sqlite.Options{
		Path: filepath.Join(t.TempDir(), "log.db"), Definitions: documents.All(), Clock: wall.Clock{}, IDs: ids(), Entropy: rand.Reader,
		Keys: memory.NewKeys(rand.Reader),
	})
	return kept(t, j, err)
}

func inDatabase(t *testing.T, server *pgtest.Server) journaltest.Log {
	t.Helper()
	j, err := postgres.Open(t.Context(), postgres.Options{
		Address: server.Database(), Definitions: documents.All(), Clock: wall.Clock{}, IDs: ids(), Entropy: rand.Reader,
		Keys: memory.NewKeys(rand.Reader),
	})
	return kept(t, j, err)
}

func kept(t *testing.T, log journaltest.Log, err error) journaltest.Log {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return log
}
