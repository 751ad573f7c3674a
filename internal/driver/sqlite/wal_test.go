package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
)

// TestTheWriteAheadLogBeginsAnew appends four times as much as the write-ahead log may hold, without a pause and with readers: it is moved
// into the database beside the appends, begins anew, and nothing is lost.
func TestTheWriteAheadLogBeginsAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	log, err := sqlite.Open(t.Context(), options(path, journaltest.Notes(1), journaltest.Rooms(1)))
	if err != nil {
		t.Fatal(err)
	}
	const writers, each, size = 8, 500, 64 << 10
	text := strings.Repeat("x", size)
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for n := range each {
				if _, err := log.Append(t.Context(), journaltest.Batch(journaltest.Draft(text))); err != nil {
					t.Error(err)
					return
				}
				if n%50 == 0 {
					if _, err := log.Read(t.Context(), journal.Query{Workspace: journaltest.Workspace, From: uint64(n + 1), Limit: 10}); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if most := int64(160 << 20); info.Size() > most {
		t.Errorf("after %d MiB of events the write-ahead log has %d MiB, want at most %d", writers*each*size>>20, info.Size()>>20, most>>20)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	log, err = sqlite.Open(t.Context(), options(path, journaltest.Notes(1), journaltest.Rooms(1)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}()
	var last event.Event
	for from := uint64(1); ; {
		page, err := log.Read(t.Context(), journal.Query{Workspace: journaltest.Workspace, From: from, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			if e.Seq != last.Seq+1 {
				t.Fatalf("event %d follows %d", e.Seq, last.Seq)
			}
			last = e
		}
		if len(page) < 100 {
			break
		}
		from = last.Seq + 1
	}
	if last.Seq != writers*each {
		t.Errorf("%d events are there, want %d", last.Seq, writers*each)
	}
}
