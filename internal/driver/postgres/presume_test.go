package postgres_test

import (
	"errors"
	"sync"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/testkit/pgtest"
)

// TestWhatIsPresumedToBeNewIsFoundOut gives a daemon that has read nothing batches whose keys and documents another one has used: alone,
// and among others that are well.
func TestWhatIsPresumedToBeNewIsFoundOut(t *testing.T) {
	address := pgtest.Start(t).Database()
	command := event.DigestOf([]byte("command"))
	keyed := func(key string, want ...event.DocumentVersion) event.Batch {
		b := journaltest.Batch(journaltest.Draft("text").About("note", key))
		b.Key, b.Digest, b.Documents = key, command, want
		return b
	}
	unmade := func(key string) event.DocumentVersion { return event.DocumentVersion{Projection: "notes", Key: key} }
	first := daemon(t, address, nil)
	receipt, err := first.Append(t.Context(), keyed("a", unmade("a")))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		batch    event.Batch
		replayed bool
		err      error
	}{
		"a repeat":                           {keyed("a"), true, nil},
		"a repeat that would be refused now": {keyed("a", unmade("a")), true, nil},
		"another command under the key": {event.Batch{Workspace: journaltest.Workspace, Drafts: []event.Draft{journaltest.Draft("text")},
			Key: "a", Digest: event.DigestOf([]byte("another"))}, false, journal.ErrKeyConflict},
		"a document that is there":         {journaltest.Batch(journaltest.Draft("text").About("note", "a")), false, nil},
		"a document that may not be there": {keyed("b", unmade("a")), false, journal.ErrConflict},
		"the same without a key": {event.Batch{Workspace: journaltest.Workspace,
			Drafts: []event.Draft{journaltest.Draft("text").About("note", "a")}, Documents: []event.DocumentVersion{unmade("a")}}, false,
			journal.ErrConflict},
		"a document that is not there, its key": {keyed("c", unmade("c")), false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			second := daemon(t, address, nil)
			was, err := second.Head(t.Context(), journaltest.Workspace)
			if err != nil {
				t.Fatal(err)
			}
			const others = 8
			var beside sync.WaitGroup
			for range others {
				beside.Go(func() {
					if _, err := second.Append(t.Context(), journaltest.Batch(journaltest.Draft("beside"))); err != nil {
						t.Errorf("beside it: %v", err)
					}
				})
			}
			got, err := second.Append(t.Context(), c.batch)
			beside.Wait()
			if !errors.Is(err, c.err) || got.Replayed != c.replayed {
				t.Errorf("got replayed %t, %v, want %t, %v", got.Replayed, err, c.replayed, c.err)
			}
			if c.replayed && (len(got.Events) != 1 || got.Events[0].ID != receipt.Events[0].ID) {
				t.Errorf("answered with %+v, want the first event", got.Events)
			}
			more := uint64(others)
			if err == nil && !c.replayed {
				more++
			}
			if now, err := second.Head(t.Context(), journaltest.Workspace); err != nil || now != was+more {
				t.Errorf("%d events were recorded, want %d (%v)", now-was, more, err)
			}
		})
	}
}
