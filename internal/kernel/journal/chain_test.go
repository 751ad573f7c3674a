package journal_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/gowebpki/jcs"
	"pgregory.net/rapid"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// The bytes that are hashed can be made by anybody from an event's JSON with a canonicaliser: this is that other way, and both must agree.
func canonicalHeader(t require, e event.Event) string {
	raw, err := json.Marshal(e)
	t.ok(err)
	var fields, chain map[string]json.RawMessage
	t.ok(json.Unmarshal(raw, &fields))
	t.ok(json.Unmarshal(fields["chain"], &chain))
	for _, name := range []string{"data", "recorded_at", "entity_type", "entity_id", "chain"} {
		delete(fields, name)
	}
	for _, name := range []string{"hash_version", "data_commitment", "prev_event_hash"} {
		fields[name] = chain[name]
	}
	raw, err = json.Marshal(fields)
	t.ok(err)
	canonical, err := jcs.Transform(raw)
	t.ok(err)
	return string(canonical)
}

type require struct{ rapid.TB }

func (r require) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func TestHeaderIsCanonicalJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		digest := rapid.Custom(func(t *rapid.T) event.Digest {
			if rapid.Bool().Draw(t, "none") {
				return event.Digest{}
			}
			return event.DigestOf([]byte(text.Draw(t, "hashed")))
		})
		contextOf := rapid.Custom(func(t *rapid.T) json.RawMessage {
			if rapid.Bool().Draw(t, "none") {
				return nil
			}
			raw, err := json.Marshal(map[string]any{text.Draw(t, "name"): text.Draw(t, "value"), "n": rapid.Float64Range(-1e9, 1e9).Draw(t,
				"number")})
			require{t}.ok(err)
			canonical, err := jcs.Transform(raw)
			require{t}.ok(err)
			return canonical
		})
		place := rapid.Uint64Range(1, 1<<53-1)
		var e event.Event
		e.ID, e.Type, e.Version = id.Event(text.Draw(t, "id")), text.Draw(t, "type"), rapid.IntRange(1, 1000).Draw(t, "version")
		e.OccurredAt = time.UnixMicro(rapid.Int64Range(0, 250e15).Draw(t, "occurred")).UTC()
		e.RecordedAt = e.OccurredAt.Add(time.Second)
		e.Workspace, e.Room, e.Thread = id.Workspace(text.Draw(t, "ws")), id.Room(text.Draw(t, "room")), id.Thread(text.Draw(t, "thread"))
		e.Actor, e.Principal = event.Actor{Type: id.User, ID: text.Draw(t, "actor")}, id.Principal(text.Draw(t, "principal"))
		e.Zone, e.Redaction, e.ContainsSecrets = event.Sandbox, event.RedactPartial, rapid.Bool().Draw(t, "secrets")
		e.Stream = event.Stream{Type: text.Draw(t, "stream type"), ID: text.Draw(t, "stream")}
		e.Mission, e.Run, e.Step = text.Draw(t, "mission"), id.Run(text.Draw(t, "run")), id.Step(text.Draw(t, "step"))
		e.EntityType, e.EntityID = text.Draw(t, "entity type"), text.Draw(t, "entity")
		e.Correlation, e.Causation = id.Correlation(text.Draw(t, "cor")), id.Event(text.Draw(t, "cause"))
		e.PolicyContext, e.ModelContext, e.Display = contextOf.Draw(t, "policy"), contextOf.Draw(t, "model"), contextOf.Draw(t, "display")
		e.IdempotencyKey = text.Draw(t, "key")
		e.Seq, e.StreamSeq, e.Data = place.Draw(t, "seq"), place.Draw(t, "stream seq"), json.RawMessage(`{}`)
		e.Chain = event.Chain{HashVersion: journal.HashVersion, Salt: []byte("salt"), Commitment: digest.Draw(t, "commitment"),
			Prev: digest.Draw(t, "prev")}

		if got, want := string(journal.AppendHeader(nil, &e)), canonicalHeader(require{t}, e); got != want {
			t.Fatalf("header\n got %s\nwant %s", got, want)
		}
	})
}

// A fixed event and its hash: a change of the hashed bytes breaks every log there is, and this test says so.
func TestHashIsFixed(t *testing.T) {
	e := event.Event{
		Header: event.Header{
			ID: "01890a5d-ac96-774b-bcce-b302099a8057", Type: "run.claimed", Version: 1, OccurredAt: time.Date(2026, 1, 2, 3, 4, 5, 678_900_000,
				time.UTC),
			Workspace: "ws_dev", Actor: event.Actor{Type: id.Agent, ID: "agt_01ARZ3NDEKTSV4RRFFQ69G5FAV"},
			Principal: "agt_01ARZ3NDEKTSV4RRFFQ69G5FAV",
			Zone:      event.Supervised, Stream: event.Stream{Type: event.StreamRoom, ID: "room_01ARZ3NDEKTSV4RRFFQ69G5FAV"},
			Room: "room_01ARZ3NDEKTSV4RRFFQ69G5FAV",
			Run:  "run_01ARZ3NDEKTSV4RRFFQ69G5FAV", Correlation: "cor_01ARZ3NDEKTSV4RRFFQ69G5FAV", Redaction: event.RedactNone,
		},
		Seq: 7, StreamSeq: 3, Data: json.RawMessage(`{"fence":1}`),
	}
	journal.Seal(&e, []byte("0123456789abcdef"), event.DigestOf([]byte("the one before")))
	if got, want := e.Chain.Commitment.String(), "sha256:c5bc00bdf3955e18aab4b8e811689f1626f2903fe7fae92dac4f4e74dc2de569"; got != want {
		t.Errorf("commitment %s, want %s", got, want)
	}
	if got, want := e.Chain.Hash.String(), "sha256:4eb3603e53fcb624773f75736cf9a045ae646d874f17ded146bc5ada7fd9fda9"; got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
}
