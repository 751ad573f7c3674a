package evidence_test

import (
	"crypto/sha256"
	"errors"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/evidence"
)

func at(seq uint64, typ, entity, about, step string) event.Event {
	e := event.Event{Seq: seq, StreamSeq: seq}
	e.Type, e.EntityType, e.EntityID = typ, entity, about
	e.Step = "step_1"
	if step == "" {
		e.Step = ""
	}
	e.Chain.Hash = event.DigestOf([]byte{byte(seq)})
	return e
}

func TestCollect(t *testing.T) {
	told := []event.Event{
		at(3, "run.created", "run", "run_1", ""), at(5, "step.created", "step", "step_1", "x"), at(6, "tool.invoked", "tool_call", "tc_1", "x"),
		at(7, "tool.invoked", "tool_call", "tc_2", "x"), at(8, "tool.succeeded", "tool_call", "tc_1", "x"), at(9, "artifact.created", "artifact",
			"art_1", "x"),
	}
	if _, err := evidence.Collect("ws_dev", "run_1", "room_1", told, nil); !errors.Is(err, evidence.ErrNoEvents) {
		t.Errorf("got %v of a run that has not ended", err)
	}
	told = append(told, at(12, "run.failed", "run", "run_1", ""), at(13, "run.retained", "run", "run_1", ""))
	m, err := evidence.Collect("ws_dev", "run_1", "room_1", told, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := (evidence.Window{From: 3, To: 12, Count: 7}); m.Window != want {
		t.Errorf("got the window %+v, want %+v", m.Window, want)
	}
	if want := (evidence.Completeness{Terminal: true, Calls: false, Artifacts: 1}); m.Completeness != want {
		t.Errorf("got %+v, want %+v: a tool call is open", m.Completeness, want)
	}
	if m.Status != "failed" || len(m.Calls) != 2 || len(m.Steps) != 1 || m.Artifacts[0] != "art_1" {
		t.Errorf("got %+v", m)
	}
	// As anybody would compute it.
	text := ""
	for i, e := range told[:7] {
		if i > 0 {
			text += "\n"
		}
		text += e.Chain.Hash.String()
	}
	if m.Root != event.Digest(sha256.Sum256([]byte(text))) {
		t.Errorf("the root %s is not that of the hashes", m.Root)
	}
	again, _ := evidence.Collect("ws_dev", "run_1", "room_1", told[:7], nil)
	one, _ := m.Canonical()
	two, _ := again.Canonical()
	if string(one) != string(two) {
		t.Error("what lies behind the end changes the manifest")
	}
	for i := range 7 { // each hash counts
		other := append([]event.Event(nil), told...)
		other[i].Chain.Hash[0] ^= 1
		if changed, _ := evidence.Collect("ws_dev", "run_1", "room_1", other, nil); changed.Root == m.Root {
			t.Errorf("the hash of event %d does not count", i)
		}
	}
}

func TestAnOperationThatHasItsResultIsTerminal(t *testing.T) {
	told := []event.Event{at(1, "run.created", "space", "spc_1", ""), at(2, "tool.invoked", "space", "spc_1", "x"), at(3, "tool.unknown",
		"space", "spc_1", "x"), at(4, "run.completed", "space", "spc_1", "")}
	if m, err := evidence.Collect("ws_dev", "run_1", "room_1", told, nil); err != nil || !m.Completeness.Calls || len(m.Calls) != 0 {
		t.Errorf("got %+v, %v", m.Completeness, err)
	}
}

func TestARecordIsMadeOnce(t *testing.T) {
	e := event.Event{Data: []byte(`{"evidence_id":"evd_1","run_id":"run_1"}`)}
	e.Type = evidence.EventCreated
	r, err := evidence.Record{}.Evolve(e)
	if err != nil || r.ID != "evd_1" {
		t.Fatalf("got %+v, %v", r, err)
	}
	e.Data = []byte(`{"evidence_id":"evd_2","run_id":"run_1"}`)
	if r, err = r.Evolve(e); err != nil || r.ID != "evd_1" {
		t.Errorf("got %+v, %v", r, err)
	}
}
