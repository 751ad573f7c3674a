package space_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
)

func happened(t *testing.T, typ string, data any) event.Event {
	t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return event.Event{Data: raw, Header: event.Header{
		ID: "evt_1", Type: typ, EntityType: space.EntityType, EntityID: "spc_1", Workspace: "ws_dev", Room: "room_1", Run: "run_1",
		Step: "step_1", Principal: "usr_1", OccurredAt: time.Unix(9, 0).UTC(),
	}}
}

func spoilt(e event.Event) event.Event {
	e.Data = json.RawMessage(`[]`)
	return e
}

// Each event changes what it says of a space and nothing else; one whose data cannot be read is an error, and nothing remains of it.
func TestTheDocumentOfASpace(t *testing.T) {
	at, hash := time.Unix(9, 0).UTC(), event.DigestOf([]byte("h"))
	word, table := "w", map[string]string{"a": "b"}
	created := space.Created{
		Space: "spc_1", Name: "n", Description: "d", Runtime: "auto", Tier: "nano", Policy: "standard", Bundle: hash, Env: table,
		Metadata: table, Limits: space.Limits{Pids: 3}, BestEffort: true, UID: 7, Node: "node_1",
		ExpiresAt: at.Add(1), ForkedFrom: "spc_0", ForkedAt: hash, Key: "k",
	}
	s := space.Space{
		ID: "spc_1", SpaceID: "spc_1", Workspace: "ws_dev", Room: "room_1", Name: "n", Description: "d", Status: space.Creating, Runtime: "auto",
		Tier: "nano", Policy: "standard", Bundle: hash, Env: table,
		Metadata: table, Limits: space.Limits{Pids: 3}, BestEffort: true, UID: 7, Node: "node_1", CreatedBy: "usr_1", CreatedAt: at,
		UpdatedAt: at, ExpiresAt: at.Add(1), ForkedFrom: "spc_0", ForkedAt: hash, Key: "k",
	}
	if got, err := space.Evolve(space.Space{}, happened(t, space.EventCreated, created)); err != nil || !reflect.DeepEqual(got, s) {
		t.Fatalf("got %+v, %v, want %+v", got, err, s)
	}
	gone := happened(t, space.EventCreated, struct{}{})
	gone.Withheld = event.Destroyed
	forgotten := space.Space{ID: "spc_1", SpaceID: "spc_1", Workspace: "ws_dev", Room: "room_1", Status: space.Destroyed,
		Reason: space.ReasonRedacted, CreatedBy: "usr_1", CreatedAt: at, UpdatedAt: at}
	if got, err := space.Evolve(space.Space{}, gone); err != nil || !reflect.DeepEqual(got, forgotten) {
		t.Errorf("of data that were destroyed: got %+v, %v", got, err)
	}
	if got, err := space.Evolve(forgotten, happened(t, space.EventReady, space.Made{})); err != nil || !reflect.DeepEqual(got, forgotten) {
		t.Errorf("behind data that were destroyed: got %+v, %v", got, err)
	}
	s.UpdatedAt = time.Time{}
	s.Rewinding = hash
	entry := space.Entry{}
	for _, c := range []struct {
		typ    string
		data   any
		change func(*space.Space)
		left   any // of the data when they are redacted
	}{
		{space.EventReady, space.Made{Space: "spc_1", Unenforced: []string{"pids"}, Withheld: 2},
			func(s *space.Space) { s.Status, s.Unenforced, s.Withheld = space.Ready, []string{"pids"}, 2 }, space.Made{Space: "spc_1",
				Unenforced: []string{"pids"}, Withheld: 2}},
		{space.EventUpdated, space.Updated{Name: &word, Description: &word, Env: &map[string]string{"x": "y"},
			Metadata: &map[string]string{"z": "y"}}, func(s *space.Space) {
			s.Name, s.Description, s.Env, s.Metadata = "w", "w", map[string]string{"x": "y"}, map[string]string{"z": "y"}
		}, space.Updated{Name: new(string), Description: new(string), Env: new(map[string]string), Metadata: new(map[string]string)}},
		{space.EventUpdated, space.Updated{Space: "spc_1"}, func(*space.Space) {}, space.Updated{Space: "spc_1"}},
		{space.EventExtended, space.Extended{ExpiresAt: at.Add(5)}, func(s *space.Space) { s.ExpiresAt = at.Add(5) },
			space.Extended{ExpiresAt: at.Add(5)}},
		{space.EventRewindBegun, space.RewindBegun{To: event.DigestOf(nil), Hash: hash},
			func(s *space.Space) { s.Rewinding = event.DigestOf(nil) }, space.RewindBegun{To: event.DigestOf(nil)}},
		{space.EventPromoted, space.Promoted{Space: "spc_1", From: "nano", To: "namespace", Code: "c", Reason: "r", Operation: "o", Run: "run_1",
			Unenforced: []string{"disk"}}, func(s *space.Space) { s.Tier, s.Unenforced = "namespace", []string{"disk"} },
			space.Promoted{Space: "spc_1", From: "nano", To: "namespace", Code: "c", Run: "run_1", Unenforced: []string{"disk"}}},
		{space.EventPromoted, space.Promoted{}, func(*space.Space) {}, space.Promoted{}},
		{space.EventPaused, space.PausedData{Space: "spc_1", Method: "signals", Reason: "r", ResumeOnRun: true, ExpiresAt: at.Add(9)},
			func(s *space.Space) {
				s.Pause = &space.Pause{At: at, By: "usr_1", Method: "signals", Reason: "r", ResumeOnRun: true, Resumes: s.Status}
				s.Status, s.ExpiresAt = space.Paused, at.Add(9)
			}, space.PausedData{Space: "spc_1", Method: "signals", ResumeOnRun: true, ExpiresAt: at.Add(9)}},
		{space.EventResumed, space.ResumedData{Space: "spc_1", Cause: "run", Ended: true, ExpiresAt: at.Add(9)},
			func(s *space.Space) { s.ExpiresAt = at.Add(9) }, space.ResumedData{Space: "spc_1", Cause: "run", Ended: true,
				ExpiresAt: at.Add(9)}},
		{space.EventPolicy, space.PolicyChanged{Policy: "mine", Bundle: event.DigestOf(nil)},
			func(s *space.Space) { s.Policy, s.Bundle = "mine", event.DigestOf(nil) }, space.PolicyChanged{Policy: "mine",
				Bundle: event.DigestOf(nil)}},
		{space.EventDestroyed, space.Ended{Reason: "expired"}, func(s *space.Space) { s.Status, s.Reason = space.Destroyed, "expired" },
			space.Ended{Reason: "expired"}},
		{space.EventRewound, space.Rewound{Space: "spc_1", From: hash}, func(s *space.Space) { s.Rewinding = event.Digest{} },
			space.Rewound{Space: "spc_1", From: hash}},
		{space.EventRewindFailed, space.RewindFailed{Error: "e"}, func(s *space.Space) { s.Rewinding = event.Digest{} },
			space.RewindFailed{Error: "e"}},
		{space.EventStarted, space.Started{Space: "spc_1", Tier: "nano"}, nil, space.Started{Space: "spc_1", Tier: "nano"}},
		{space.EventForked, space.Forked{Space: "spc_1", Fork: "spc_2", At: hash}, nil, space.Forked{Space: "spc_1", Fork: "spc_2", At: hash}},
		{space.EventFileBegun, space.FileBegun{Space: "spc_1", Action: "a", Path: "p", Content: hash, Size: 3, Mode: "0644", Hash: hash,
			Withheld: true}, nil, space.FileBegun{Space: "spc_1", Action: "a", Size: 3, Withheld: true}},
		{space.EventFileEnded, space.FileEnded{Space: "spc_1", Change: "evt_0", OK: true, Error: "e", Entry: &entry}, nil,
			space.FileEnded{Space: "spc_1", Change: "evt_0", OK: true, Error: "e"}},
		{space.EventFileRead, space.FileRead{Space: "spc_1", Action: "a", Path: "p", Hash: hash, Withheld: true}, nil,
			space.FileRead{Space: "spc_1", Action: "a", Withheld: true}},
	} {
		e := happened(t, c.typ, c.data)
		if got, err := space.Remains(e); err != nil || !reflect.DeepEqual(got, c.left) {
			t.Errorf("what remains of %s: got %+v, %v, want %+v", c.typ, got, err, c.left)
		}
		if _, err := space.Remains(spoilt(e)); err == nil {
			t.Errorf("something remains of %s with broken data", c.typ)
		}
		if space.Touches(e) != (c.change != nil) {
			t.Errorf("%s touches a space: %t", c.typ, c.change == nil)
		}
		if c.change == nil {
			continue
		}
		want := s
		want.UpdatedAt = at
		c.change(&want)
		if got, err := space.Evolve(s, e); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", c.typ, got, err, want)
		}
		if _, err := space.Evolve(s, spoilt(e)); (err == nil) != (c.typ == space.EventRewound || c.typ == space.EventRewindFailed) {
			t.Errorf("%s with broken data: %v", c.typ, err)
		}
	}
	created.Name, created.Description, created.Env, created.Metadata, created.Key = "", "", nil, nil, ""
	e := happened(t, space.EventCreated, space.Created{
		Space: "spc_1", Name: "n", Description: "d", Runtime: "auto", Tier: "nano", Policy: "standard", Bundle: hash, Env: table,
		Metadata: table, Limits: space.Limits{Pids: 3}, BestEffort: true, UID: 7, Node: "node_1",
		ExpiresAt: at.Add(1), ForkedFrom: "spc_0", ForkedAt: hash, Key: "k",
	})
	if got, err := space.Remains(e); err != nil || !reflect.DeepEqual(got, created) {
		t.Errorf("what remains of a space: got %+v, %v, want %+v", got, err, created)
	}
	if _, err := space.Remains(spoilt(e)); err == nil {
		t.Error("something remains of a space with broken data")
	}
	if _, err := space.Evolve(space.Space{}, spoilt(e)); err == nil {
		t.Error("a space was made of broken data")
	}
	if got, err := space.Remains(happened(t, "x", nil)); err != nil || got != nil {
		t.Errorf("of another event: %+v, %v", got, err)
	}
	if !space.Touches(e) {
		t.Error("the event that makes a space does not touch it")
	}
	strict, err := space.Evolve(space.Space{}, happened(t, space.EventCreated, space.Created{Space: "spc_1"}))
	if err != nil || strict.BestEffort {
		t.Errorf("a space whose bounds have to hold: got %+v, %v", strict, err)
	}
	for _, open := range []event.Event{happened(t, space.EventFileBegun, space.FileBegun{}), happened(t, space.EventFileRead,
		space.FileRead{})} {
		if got, err := space.Remains(open); err != nil || got != any(space.FileBegun{}) && got != any(space.FileRead{}) {
			t.Errorf("of a file that is not withheld: got %+v, %v", got, err)
		}
	}
	e.EntityType = "x"
	if space.Touches(e) || space.Touches(happened(t, "x", nil)) || !space.Touches(happened(t, "run.failed", nil)) {
		t.Error("an event of a space, or of a run in it, touches it, and no other one")
	}
}

// A run makes its space busy, and only its own end makes it free.
func TestARunInASpace(t *testing.T) {
	s := space.Space{ID: "spc_1", Status: space.Ready}
	for _, c := range []struct {
		typ    string
		run    id.Run
		status space.Status
		active string
	}{
		{"run.completed", "run_0", space.Ready, ""}, {"run.started", "run_1", space.Running, "run_1"},
		{"run.suspended", "run_1", space.Paused, "run_1"}, {"run.failed", "run_0", space.Paused, "run_1"},
		{"run.resumed", "run_1", space.Running, "run_1"}, {"run.cancelled", "run_1", space.Ready, ""},
	} {
		e := happened(t, c.typ, nil)
		e.Run = c.run
		var err error
		if s, err = space.Evolve(s, e); err != nil || s.Status != c.status || string(s.ActiveRun) != c.active || !s.UpdatedAt.IsZero() {
			t.Fatalf("%s of %s: got %s, %s, %v, want %s, %s", c.typ, c.run, s.Status, s.ActiveRun, err, c.status, c.active)
		}
	}
	s.Status = space.Destroyed
	if got, err := space.Evolve(s, happened(t, "run.started", nil)); err != nil || got.Status != space.Destroyed || got.ActiveRun != "" {
		t.Errorf("in a destroyed space: got %+v, %v", got, err)
	}
}

// The changes by the runs of a paused space show when it is resumed.
func TestARunInAPausedSpace(t *testing.T) {
	s := space.Space{ID: "spc_1", Status: space.Ready}
	for _, c := range []struct {
		typ             string
		data            any
		status, resumes space.Status
	}{
		{"run.started", nil, space.Running, ""}, {space.EventPaused, space.PausedData{}, space.Paused, space.Running},
		{"run.suspended", nil, space.Paused, space.Paused}, {space.EventPaused, space.PausedData{}, space.Paused, space.Paused},
		{"run.cancelled", nil, space.Paused, space.Ready}, {space.EventResumed, space.ResumedData{}, space.Ready, ""},
		{space.EventPaused, space.PausedData{}, space.Paused, space.Ready}, {space.EventDestroyed, space.Ended{}, space.Destroyed, ""},
	} {
		e := happened(t, c.typ, c.data)
		e.Run = "run_1"
		before := s
		var err error
		if s, err = space.Evolve(s, e); err != nil || s.Status != c.status {
			t.Fatalf("after %s: got %s, %v, want %s", c.typ, s.Status, err, c.status)
		}
		if got := s.Pause; (got == nil) != (c.resumes == "") || got != nil && got.Resumes != c.resumes {
			t.Errorf("after %s: got %+v, want it to resume as %q", c.typ, got, c.resumes)
		}
		if before.Pause != nil && before.Pause == s.Pause && c.typ == "run.cancelled" {
			t.Error("the fold has changed the document before")
		}
	}
}

func TestTheDocumentOfAChange(t *testing.T) {
	at, entry := time.Unix(9, 0).UTC(), space.Entry{}
	begun := space.FileBegun{Space: "spc_1", Action: "a", Path: "p"}
	e := happened(t, space.EventFileBegun, begun)
	c, err := space.EvolveChange(space.Change{}, e)
	want := space.Change{FileBegun: begun, Workspace: "ws_dev", Room: "room_1", Principal: "usr_1", BegunAt: at, Open: true}
	if err != nil || !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v, %v, want %+v", c, err, want)
	}
	if which, err := space.ChangeOf(e); err != nil || which != "evt_1" {
		t.Errorf("got %s, %v", which, err)
	}
	ended := happened(t, space.EventFileEnded, space.FileEnded{Space: "spc_1", Change: "evt_0", OK: true, Unknown: true, Error: "e",
		Entry: &entry})
	if which, err := space.ChangeOf(ended); err != nil || which != "evt_0" {
		t.Errorf("got %s, %v", which, err)
	}
	want.Open, want.OK, want.Unknown, want.Error, want.Entry = false, true, true, "e", &entry
	if got, err := space.EvolveChange(c, ended); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	failed := want
	failed.OK, failed.Unknown, failed.Entry = false, false, nil
	if got, err := space.EvolveChange(c, happened(t, space.EventFileEnded, space.FileEnded{Error: "e"})); err != nil ||
		!reflect.DeepEqual(got, failed) {
		t.Errorf("got %+v, %v, want %+v", got, err, failed)
	}
	if got, err := space.EvolveChange(c, happened(t, "x", nil)); err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("another event: got %+v, %v", got, err)
	}
	if which, err := space.ChangeOf(happened(t, "x", nil)); err != nil || which != "" {
		t.Errorf("of another event: got %s, %v", which, err)
	}
	for _, e := range []event.Event{spoilt(e), spoilt(ended)} {
		if _, err := space.EvolveChange(c, e); err == nil {
			t.Errorf("%s with broken data was folded", e.Type)
		}
	}
	if _, err := space.ChangeOf(spoilt(ended)); err == nil {
		t.Error("the end of a change of broken data was found")
	}
	if got := space.ChangeOn("evt_1"); got != (event.Subject{Type: "file_change", ID: "evt_1"}) {
		t.Errorf("got %+v", got)
	}
}

func TestWhichSnapshotAnEventTells(t *testing.T) {
	kept := space.Snapshot{Root: event.DigestOf([]byte("r")), Files: 1}
	data := map[string]any{"snapshot": kept, "operation_id": "op"}
	for _, typ := range []string{space.EventReady, space.EventRewound, space.EventRewindFailed, "run.started", "tool.succeeded",
		"tool.failed"} {
		e := happened(t, typ, data)
		got, ok, err := space.RecordedIn(e)
		if want := (space.Recorded{Snapshot: kept, Event: "evt_1", Space: "spc_1", Cause: typ, Run: "run_1", Step: "step_1", Operation: "op",
			At: time.Unix(9, 0).UTC()}); err != nil || !ok || got != want {
			t.Errorf("%s: got %+v, %t, %v, want %+v", typ, got, ok, err, want)
		}
		if _, ok, err := space.RecordedIn(spoilt(e)); ok || err == nil {
			t.Errorf("%s with broken data: %t, %v", typ, ok, err)
		}
		if _, ok, err := space.RecordedIn(happened(t, typ, struct{}{})); ok || err != nil {
			t.Errorf("%s without a snapshot: %t, %v", typ, ok, err)
		}
		e.EntityType = "x"
		if _, ok, err := space.RecordedIn(e); ok || err != nil {
			t.Errorf("%s of another thing: %t, %v", typ, ok, err)
		}
	}
	half := happened(t, space.EventReady, map[string]any{"snapshot": kept, "operation_id": 7})
	if _, ok, err := space.RecordedIn(half); ok || err == nil {
		t.Errorf("data that can be read in part: %t, %v", ok, err)
	}
	if _, ok, err := space.RecordedIn(happened(t, space.EventCreated, data)); ok || err != nil {
		t.Errorf("what keeps none: %t, %v", ok, err)
	}
	want := []string{"run.started", "space.ready", "space.rewind_failed", "space.rewound", "tool.failed", "tool.succeeded", "space.destroyed"}
	if got := space.KeepingEvents(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
