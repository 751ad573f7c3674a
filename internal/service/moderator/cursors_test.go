package moderator_test

import (
	"errors"
	"sync"
	"testing"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/room"
)

// A cursor never goes back, whoever comes last, and says how much of what others said is new.
func TestReadCursors(t *testing.T) {
	h := build(t)
	thread, mia, worker := h.thread(), h.person(principal.Member), h.agent("worker")
	read := func(who principal.Caller, place uint64, unread int) {
		t.Helper()
		got, err := h.ReadCursor(t.Context(), ws, who.Principal, id.DefaultRoom)
		if err != nil || got.StreamSeq != place || got.Unread != unread || got.Principal != who.Principal {
			t.Errorf("got %+v, %v, want place %d and %d unread", got, err, place, unread)
		}
	}
	read(mia, 0, 0)
	for n := range 3 { // places 2 to 4
		h.post([]principal.Caller{h.owner, worker, mia}[n], thread.ID, "x")
	}
	read(mia, 0, 2)
	read(h.owner, 0, 2)
	var moving sync.WaitGroup
	for n := range 4 {
		moving.Go(func() {
			if _, err := h.MarkRead(t.Context(), origin(mia), ws, id.DefaultRoom, uint64(4-n)); err != nil {
				t.Error(err)
			}
		})
	}
	moving.Wait()
	read(mia, 4, 0)
	head, err := h.log.Head(t.Context(), ws)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.MarkRead(t.Context(), origin(mia), ws, id.DefaultRoom, 1); err != nil {
		t.Error(err)
	}
	if now, err := h.log.Head(t.Context(), ws); err != nil || now != head {
		t.Errorf("going back recorded %d events, %v", now-head, err)
	}
	read(mia, 4, 0)
	if _, err := h.MarkRead(t.Context(), origin(mia), ws, id.DefaultRoom, 5); !errors.Is(err, room.ErrBeyond) {
		t.Errorf("beyond the end: %v, want %v", err, room.ErrBeyond)
	}
	for range room.MaxUnread {
		h.post(h.owner, thread.ID, "x")
	}
	read(mia, 4, room.MaxUnread)
	h.post(h.owner, thread.ID, "x")
	read(mia, 4, room.MaxUnread)
	lab, err := h.CreateRoom(t.Context(), origin(h.owner), ws, room.Created{Title: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := h.ReadCursor(t.Context(), ws, mia.Principal, lab.ID); err != nil || got.Unread != 0 {
		t.Errorf("another room: %+v, %v", got, err)
	}
	if got, err := h.MarkRead(t.Context(), origin(mia), ws, id.DefaultRoom, 0); err != nil || got.StreamSeq != 105 || got.Unread != 0 {
		t.Errorf("everything: %+v, %v", got, err)
	}
	if _, err := h.ReadCursor(t.Context(), "ws_other", mia.Principal, lab.ID); !errors.Is(err, room.ErrNoRoom) {
		t.Errorf("through another workspace: %v", err)
	}
}
