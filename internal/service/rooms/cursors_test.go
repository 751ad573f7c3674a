package rooms_test

import (
	"errors"
	"sync"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/room"
)

// A cursor never goes back, even if an older reader comes last. It counts the new messages of others.
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

// Messages of others are found behind any number of one's own, up to the bound.
func TestUnreadIsCountedBehindOwnMessages(t *testing.T) {
	h := build(t)
	mia := h.person(principal.Member)
	h.thread()
	says := func(who principal.Caller, n int) {
		t.Helper()
		for n > 0 {
			b := event.Batch{Workspace: ws}
			for range min(n, 500) {
				draft := event.New(room.EventMessageCreated, origin(who), ws, id.DefaultRoom, map[string]string{})
				b.Drafts = append(b.Drafts, draft)
			}
			if _, err := h.log.Append(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			n -= len(b.Drafts)
		}
	}
	unread := func(want int) {
		t.Helper()
		if got, err := h.ReadCursor(t.Context(), ws, mia.Principal, id.DefaultRoom); err != nil || got.Unread != want {
			t.Errorf("got %d, %v, want %d", got.Unread, err, want)
		}
	}
	says(mia, 2*room.MaxUnread)
	unread(0)
	says(h.owner, 1)
	unread(1)
	says(mia, 2_000)
	says(h.owner, room.MaxUnread-2)
	unread(room.MaxUnread - 1)
	says(h.owner, 1)
	unread(room.MaxUnread)
	says(h.owner, 1)
	unread(room.MaxUnread)
	if _, err := h.MarkRead(t.Context(), origin(mia), ws, id.DefaultRoom, 0); err != nil {
		t.Fatal(err)
	}
	says(mia, 9_999)
	says(h.owner, 2)
	unread(1) // the last that is looked at
}
