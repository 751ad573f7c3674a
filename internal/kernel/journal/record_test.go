package journal

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// sample are an event that says all that an event can say, and one that says as little as it may.
func sample() []event.Event {
	full := event.Event{
		Header: event.Header{
			Type: "note.written", Version: 3, OccurredAt: time.UnixMicro(1_700_000_000_123_456).UTC(), Workspace: "ws_dev",
			Actor: event.Actor{Type: id.Agent, ID: "someone else"}, Principal: "agt_01ARZ3NDEKTSV4RRFFQ69G5FAV", Zone: event.HighStakes,
			Stream: event.Stream{Type: "thread", ID: "th_1"}, Mission: "mission", Room: "room_1", Thread: "th_1", Run: "run_1", Step: "step_1",
			EntityType: "note", EntityID: "n\u00e9", Correlation: "cor", Causation: "01890a5d-ac96-774b-bcce-b302099a8057",
			PolicyContext: json.RawMessage(`{"a":1}`), ModelContext: json.RawMessage(`{"b":2}`), Display: json.RawMessage(`{"c":3}`),
			Redaction: event.RedactFull, ContainsSecrets: true, IdempotencyKey: "key",
		},
		RecordedAt: time.UnixMicro(1_700_000_000_999_999).UTC(),
	}
	least := event.Event{
		Header: event.Header{
			Version: 1, OccurredAt: time.UnixMicro(0).UTC(), Workspace: "ws_dev", Actor: event.Actor{Type: id.User,
				ID: "usr_01ARZ3NDEKTSV4RRFFQ69G5FAV"},
			Principal: "usr_01ARZ3NDEKTSV4RRFFQ69G5FAV", Zone: event.Sandbox, Stream: event.WorkspaceStream("ws_dev"), Redaction: event.RedactNone,
		},
		RecordedAt: time.UnixMicro(0).UTC(),
	}
	for _, e := range []*event.Event{&full, &least} {
		e.Chain = event.Chain{HashVersion: HashVersion, Commitment: event.DigestOf([]byte("c")), Prev: event.DigestOf([]byte("p")),
			Hash: event.DigestOf([]byte("h"))}
	}
	return []event.Event{full, least}
}

// columns returns an event that has only what has columns of its own.
func columns(e event.Event) event.Event {
	return event.Event{
		Header: event.Header{ID: e.ID, Type: e.Type, Workspace: e.Workspace, Run: e.Run, Correlation: e.Correlation, EntityType: e.EntityType,
			EntityID: e.EntityID},
		RecordedAt: e.RecordedAt,
	}
}

func TestRecord(t *testing.T) {
	for _, want := range sample() {
		got := columns(want)
		if err := DecodeRecord(AppendRecord(nil, &want), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("decoded\n got %+v\nwant %+v", got, want)
		}
	}
}

// FuzzRecord decodes anything without harm, and whatever it accepts it writes back the same.
func FuzzRecord(f *testing.F) {
	for _, e := range sample() {
		record := AppendRecord(nil, &e)
		f.Add(record)
		f.Add(record[:len(record)/2])
		f.Add(append(bytes.Clone(record), 0))
	}
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{recordVersion, 0xff}, 60))
	f.Fuzz(func(t *testing.T, record []byte) {
		for _, s := range sample() {
			e := columns(s)
			if err := DecodeRecord(record, &e); err != nil {
				continue
			}
			if again := AppendRecord(nil, &e); !bytes.Equal(again, record) {
				t.Errorf("decoded and written again\n got %x\nwant %x", again, record)
			}
		}
	})
}

func FuzzUUID(f *testing.F) {
	for _, text := range []string{"01890a5d-ac96-774b-bcce-b302099a8057", "01890A5D-ac96-774b-bcce-b302099a8057", "",
		"01890a5dac96774bbcceb302099a80571234", "01890a5d-ac96-774b-bcce-b302099a805g"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, ok := UUIDBytes(id.Event(text))
		if !ok {
			return
		}
		if again, ok := UUIDText(b[:]); !ok || string(again) != text {
			t.Errorf("read and written again: %q, want %q", again, text)
		}
	})
}
