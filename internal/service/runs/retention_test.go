package runs_test

import (
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/runs"
	"agentbox/internal/testkit"
)

// TestARunHasATimeOfItsOwn asks for it at the edges, as somebody who may redact and as one who may not, and has the run forgotten.
func TestARunHasATimeOfItsOwn(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program, SQLite: true})
	member := id.Principal("usr_01ARZ3NDEKTSV4RRFFQ69G5FAV")
	registered := event.New(principal.RegisteredType, s.Origin, testkit.WS, "", principal.Registered{Principal: member, Kind: id.User,
		Role: principal.Member, Name: "m"}).About(principal.Entity, string(member))
	if _, err := s.Log.Append(t.Context(), event.Batch{Workspace: testkit.WS, Drafts: []event.Draft{registered}}); err != nil {
		t.Fatal(err)
	}
	in := s.Space().ID
	start := func(who id.Principal, keep time.Duration, key string) (run.Run, error) {
		t.Helper()
		return s.Runs.Start(t.Context(), event.Origin{Principal: who}, runs.Request{
			Workspace: testkit.WS, Space: in, Message: s.Message(`[{"type":"message","content":"private ` + key + `"}]`), Retention: keep, Key: key,
		})
	}
	s.Runs.MaxRetention = time.Hour
	for keep, code := range map[time.Duration]string{
		time.Minute: "", time.Minute - time.Second: "retention_invalid", time.Minute + time.Millisecond: "retention_invalid",
		-time.Hour: "retention_invalid",
		time.Hour:  "", time.Hour + time.Second: "retention_too_long",
	} {
		if _, err := start(s.Owner, keep, ""); fault.CodeOf(err) != code {
			t.Errorf("%s: %v, want %q", keep, err, code)
		}
	}
	s.Runs.MaxRetention = 0
	for keep, code := range map[time.Duration]string{run.MaxRetention: "", run.MaxRetention + time.Second: "retention_invalid"} {
		if _, err := start(s.Owner, keep, ""); fault.CodeOf(err) != code {
			t.Errorf("%s: %v, want %q", keep, err, code)
		}
	}
	if _, err := start(member, time.Hour, ""); fault.CodeOf(err) != policy.ReasonNoPolicy {
		t.Errorf("a member asks for it: %v", err)
	}
	if _, err := start(member, 0, ""); err != nil {
		t.Errorf("a member asks for nothing: %v", err)
	}

	doc, err := start(s.Owner, time.Hour, "k")
	if err != nil {
		t.Fatal(err)
	}
	s.Runs.MaxRetention = time.Minute // the operator has another rule now: a repeat is not a new request
	if again, err := start(s.Owner, time.Hour, "k"); err != nil || again.ID != doc.ID {
		t.Errorf("a repeat: %s, %v; want %s", again.ID, err, doc.ID)
	}
	if _, err := start(s.Owner, time.Minute, "k"); fault.CodeOf(err) != "idempotency_conflict" {
		t.Errorf("the key with another time: %v", err)
	}
	doc = s.Ended(doc.ID)
	if got := doc.KeptUntil.Sub(doc.EndedAt).Round(time.Minute); doc.Retention != 3600 || got != time.Hour {
		t.Errorf("it says %d seconds and is kept for %s", doc.Retention, got)
	}
	if err := s.Redaction.Step(t.Context(), doc.KeptUntil.Add(-time.Nanosecond)); err != nil || !s.Find(doc.ID).Forgotten.IsZero() {
		t.Fatalf("too early: %v", err)
	}
	s.Crash()
	if err := s.Redaction.Step(t.Context(), doc.KeptUntil); err != nil || s.Find(doc.ID).Forgotten.IsZero() {
		t.Fatalf("in time: %v", err)
	}
	for _, e := range s.Events(0) {
		if _, err := event.Decode[run.Created](e); e.Run == doc.ID && e.Type == run.EventCreated && (err != nil ||
			e.Withheld != event.Forgotten) {
			t.Errorf("%s is there still", e.Type)
		}
	}
	if _, err := s.Blobs.Open(t.Context(), doc.Input.Digest); err == nil {
		t.Error("the operations that it named are there still")
	}
	s.Verify()
}
