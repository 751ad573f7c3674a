package rooms_test

import (
	"fmt"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/room"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/rooms"
)

// The remains of a redacted event hold no text, and the documents can still be folded from it.
func TestRemains(t *testing.T) {
	h := build(t)
	secret := "MARZIPAN"
	words := []string{"sh." + secret}
	lab, err := h.CreateRoom(t.Context(), origin(h.owner), ws, room.Created{
		Title: secret, Topic: secret, Mode: secret, Lang: secret, ToolPolicy: secret, Context: room.Context{Prompt: &secret, Tools: &words,
			Models: &words, Memory: &secret},
	})
	if err != nil {
		t.Fatal(err)
	}
	thread, err := h.CreateThread(t.Context(), origin(h.owner), ws, lab.ID, room.ThreadCreated{Title: secret})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Post(t.Context(), origin(h.owner), h.owner, thread.ID, room.MessageCreated{Content: secret, Lang: secret,
		Labels: []string{secret}, SchemaVersion: secret}); err != nil {
		t.Fatal(err)
	}
	for _, change := range []error{
		second(h.UpdateRoom(t.Context(), origin(h.owner), ws, lab.ID, room.Updated{Title: &secret, Topic: &secret, Mode: &secret, Lang: &secret,
			ToolPolicy: &secret, Context: room.Context{Prompt: &secret, Tools: &words}})),
		second(h.UpdateThread(t.Context(), origin(h.owner), ws, thread.ID, room.ThreadUpdated{Title: &secret})),
		second(h.SetDefaults(t.Context(), origin(h.owner), ws, room.DefaultsSet{Context: room.Context{Prompt: &secret, Models: &words}})),
	} {
		if change != nil {
			t.Fatal(change)
		}
	}
	events, err := h.log.Read(t.Context(), journal.Query{Workspace: ws, Limit: journal.MaxRead})
	if err != nil {
		t.Fatal(err)
	}
	set, err := projection.NewSet(rooms.Definitions())
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, why := range []event.Withheld{event.Forgotten, event.Destroyed} {
		states := map[projection.Ref]projection.State{}
		for _, e := range events {
			left, err := room.Remains(e)
			if err != nil {
				t.Fatal(err)
			}
			if left == nil {
				continue
			}
			seen++
			data := event.New("x.y", event.Origin{}, ws, "", left).Data
			if strings.Contains(string(data), secret) {
				t.Errorf("of %s remains %s", e.Type, data)
			}
			if why == event.Destroyed {
				data = nil
			}
			e.Withhold(why, data)
			err = set.Fold(e, func(ref projection.Ref) (projection.State, error) {
				if s, ok := states[ref]; ok {
					return s, nil
				}
				d, err := set.Lookup(ref.Name)
				if err != nil {
					return projection.State{}, err
				}
				return d.Restore(ref.Key, nil, 0, 0)
			}, func(ref projection.Ref, s projection.State) { states[ref] = s })
			if err != nil {
				t.Errorf("fold what remains of %s: %v", e.Type, err)
			}
		}
		for ref, s := range states {
			body, indexes, err := s.Encode()
			if err != nil || strings.Contains(string(body), secret) || strings.Contains(fmt.Sprint(indexes), secret) {
				t.Errorf("%s %s is %s %v, %v", ref.Name, ref.Key, body, indexes, err)
			}
			if ref.Name == room.MessageProjection && (!strings.Contains(string(body), `"withheld":"`+string(why)) || !strings.Contains(string(body),
				string(thread.ID))) {
				t.Errorf("the message is %s", body)
			}
			if ref.Name == room.Projection && why == event.Forgotten && !strings.Contains(string(body), `"tool_allowlist":[]`) {
				t.Errorf("of an allowlist whose names are gone is left %s: it has to allow nothing", body)
			}
		}
	}
	if seen != 2*6 {
		t.Errorf("%d events have remains, want 12", seen)
	}
}

func second[T any](_ T, err error) error { return err }
