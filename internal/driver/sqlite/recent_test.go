package sqlite_test

import (
	"fmt"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
)

// TestRecentEventsAreBounded counts what is kept in memory: by their number, by what they take, and over all workspaces.
func TestRecentEventsAreBounded(t *testing.T) {
	log, _ := openNotes(t, "")
	for i := range 2*sqlite.RecentEvents + 10 {
		if _, err := log.Append(t.Context(), note("a", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		if n, bytes := log.Recent(journaltest.Workspace); n != i+1 && n < sqlite.RecentEvents || n >= 2*sqlite.RecentEvents ||
			bytes > sqlite.RecentBytes {
			t.Fatalf("after %d events: %d of %d bytes are kept", i+1, n, bytes)
		}
	}
	long := strings.Repeat("x", sqlite.RecentBytes/4)
	for range 5 {
		if _, err := log.Append(t.Context(), note("a", long)); err != nil {
			t.Fatal(err)
		}
	}
	if n, bytes := log.Recent(journaltest.Workspace); n != 3 || bytes > sqlite.RecentBytes {
		t.Errorf("of long events %d of %d bytes are kept, want 3", n, bytes)
	}
	for i := range 2 * sqlite.RecentTotal / sqlite.RecentBytes {
		for range 3 {
			d := journaltest.Of(id.Workspace(fmt.Sprint("ws_", i)), journaltest.Draft(long).About("note", "a"))
			if _, err := log.Append(t.Context(), journaltest.Batch(d)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, bytes := log.Recent(""); bytes > sqlite.RecentTotal || bytes < sqlite.RecentTotal/2 {
		t.Errorf("of all workspaces %d bytes are kept, want at most %d", bytes, sqlite.RecentTotal)
	}
	// An event that is larger than all that is kept is read from the file, and so is what follows it as long as it is asked for with it.
	head, err := log.Head(t.Context(), journaltest.Workspace)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), note("a", strings.Repeat(long, 5))); err != nil {
		t.Fatal(err)
	}
	if n, _ := log.Recent(journaltest.Workspace); n != 0 {
		t.Errorf("%d events are kept, want none", n)
	}
	if _, err := log.Append(t.Context(), note("a", "short")); err != nil {
		t.Fatal(err)
	}
	for from, want := range map[uint64]int{head + 1: 2, head + 2: 1, head + 3: 0} {
		got, err := log.Read(t.Context(), journal.Query{Workspace: journaltest.Workspace, From: from, Follows: true})
		if err != nil || len(got) != want {
			t.Errorf("from %d: %d events, %v; want %d", from-head, len(got), err, want)
		}
	}
}

// TestRecentEventsAreNobodyElses changes what a reader got.
func TestRecentEventsAreNobodyElses(t *testing.T) {
	log, _ := openNotes(t, "")
	receipt, err := log.Append(t.Context(), note("a", "as it is"))
	if err != nil {
		t.Fatal(err)
	}
	scratch := func(e *event.Event) {
		clear(e.Data)
		clear(e.Chain.Salt)
	}
	scratch(&receipt.Events[0])
	for range 2 {
		got, err := log.Read(t.Context(), journal.Query{Workspace: journaltest.Workspace, From: 1, Follows: true})
		if err != nil || len(got) != 1 || journal.Commit(got[0].Chain.Salt, got[0].Data) != got[0].Chain.Commitment {
			t.Fatalf("%+v, %v", got, err)
		}
		scratch(&got[0])
	}
}
