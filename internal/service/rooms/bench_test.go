package rooms_test

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/room"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/rooms"
	"agentbox/internal/service/spaces"
)

// BenchmarkThread posts into a thread and reads its last page, its first messages and the unread ones, where it is new and where it has a
// hundred thousand messages: the figures of each are to be the same.
func BenchmarkThread(b *testing.B) {
	for _, messages := range []int{0, 100_000} {
		c := &clock{}
		h := &house{t: b, ids: id.NewSource(c.Now, rand.Reader)}
		log, err := sqlite.Open(b.Context(), sqlite.Options{
			Path: filepath.Join(b.TempDir(), "log.db"), Definitions: append(append(gate.Definitions(), spaces.Definition()), rooms.Definitions()...),
			Clock: c, IDs: h.ids, Entropy: rand.Reader,
		})
		if err != nil {
			b.Fatal(err)
		}
		if h.gate, err = gate.New(gate.Parts{Log: log, Docs: log, Evaluator: cedar.New(), Clock: c, IDs: h.ids}); err != nil {
			b.Fatal(err)
		}
		h.people = identity.New(identity.Parts{Log: log, Docs: log, Gate: h.gate, Clock: c, IDs: h.ids, Entropy: rand.Reader})
		h.Service = rooms.New(rooms.Parts{Log: log, Docs: log, Gate: h.gate, IDs: h.ids})
		owner, err := h.people.Owner(b.Context(), ws, "Olga")
		if err != nil {
			b.Fatal(err)
		}
		h.owner = principal.Caller{Principal: owner, Workspace: ws, Role: principal.Overlord}
		thread := h.thread()
		for done := 0; done < messages; done += journal.MaxBatch {
			batch := event.Batch{Workspace: ws}
			for range journal.MaxBatch {
				m := id.New[id.Message](h.ids)
				d := event.New(room.EventMessageCreated, origin(h.owner), ws, id.DefaultRoom, room.MessageCreated{Message: m, Thread: thread.ID,
					Content: "a message of some words, as people write them"}).About(room.MessageEntity, string(m))
				d.Thread = thread.ID
				batch.Drafts = append(batch.Drafts, d)
			}
			if _, err := log.Append(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
		}
		h.post(h.owner, thread.ID, "last")
		b.Run(fmt.Sprintf("post/%d", messages), func(b *testing.B) {
			for b.Loop() {
				if _, err := h.Post(b.Context(), origin(h.owner), h.owner, thread.ID, room.MessageCreated{Content: "one more"}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("page/%d", messages), func(b *testing.B) {
			for b.Loop() {
				if page, err := h.Messages(b.Context(), ws, thread.ID, "", 50); err != nil || len(page) == 0 {
					b.Fatal(len(page), err)
				}
			}
		})
		b.Run(fmt.Sprintf("unread/%d", messages), func(b *testing.B) {
			for b.Loop() {
				if _, err := h.ReadCursor(b.Context(), ws, owner, id.DefaultRoom); err != nil {
					b.Fatal(err)
				}
			}
		})
		if err := log.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
