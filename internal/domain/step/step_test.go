package step_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/step"
)

var at = time.Unix(9, 0).UTC()

func told(t *testing.T, typ, entity string, data any) event.Event {
	t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return event.Event{Data: raw, Header: event.Header{Type: typ, EntityType: entity, EntityID: "id", Room: "room_1", Run: "run_1",
		Step: "step_1", Principal: "svc_1", OccurredAt: at}}
}

func withheld(e event.Event) event.Event {
	e.Withheld = event.Forgotten
	return e
}

// folds holds what an event makes of a document, and that one with broken data is an error.
func folds[T interface{ Evolve(event.Event) (T, error) }](t *testing.T, before T, e event.Event, want T) {
	t.Helper()
	if got, err := before.Evolve(e); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, %v, want %+v", e.Type, got, err, want)
	}
	if e.Type == "x" || e.Type == "run.created" {
		return
	}
	e.Data = json.RawMessage(`[]`)
	if _, err := before.Evolve(e); err == nil {
		t.Errorf("%s with broken data was folded", e.Type)
	}
	if _, err := step.Remains(e); err == nil {
		t.Errorf("something remains of %s with broken data", e.Type)
	}
}

func TestTheDocumentOfAStep(t *testing.T) {
	created := told(t, step.EventCreated, step.EntityType, step.Created{Step: "step_1", Run: "run_1", Kind: "k", Title: "t",
		Input: json.RawMessage(`{}`), Fence: 3})
	s := step.Step{
		ID: "step_1", Run: "run_1", Room: "room_1", Kind: "k", Title: "t", Input: json.RawMessage(`{}`), Fence: 3, Status: step.Pending,
		As: policy.Attested, CreatedBy: "svc_1", CreatedAt: at,
	}
	folds(t, step.Step{}, created, s)
	gone := s
	gone.Redacted = true
	folds(t, step.Step{}, withheld(created), gone)
	folds(t, s, told(t, "x", step.EntityType, nil), s)
	for _, c := range []struct {
		typ    string
		calls  int
		status step.Status
	}{
		{step.EventInvoked, 1, step.Running}, {step.EventInvoked, 2, step.Running}, {step.EventSucceeded, 1, step.Running},
		{"x", 1, step.Running}, {step.EventFailed, 0, step.Failed},
		{step.EventInvoked, 1, step.Running}, {step.EventSucceeded, 0, step.Succeeded}, {step.EventInvoked, 1, step.Running},
		{step.EventUnknown, 0, step.Unknown}, {step.EventUnknown, 0, step.Unknown},
	} {
		var err error
		if s, err = s.Evolve(told(t, c.typ, step.CallEntity, nil)); err != nil || s.Calls != c.calls || s.Status != c.status || s.Title != "t" {
			t.Fatalf("%s: got %+v, %v, want %d calls, %s", c.typ, s, err, c.calls, c.status)
		}
	}
}

func TestTheDocumentOfAToolCall(t *testing.T) {
	invoked := told(t, step.EventInvoked, step.CallEntity, step.Invoked{
		Call: "tc_1", Run: "run_1", Tool: "saw", Title: "t", Input: json.RawMessage(`{}`), Agent: "agt_1", Action: event.DigestOf([]byte("a")),
		Decision: "allow", Reason: "r", Fence: 3,
	})
	c := step.Call{
		ID: "tc_1", Run: "run_1", Step: "step_1", Room: "room_1", Tool: "saw", Title: "t", Agent: "agt_1", By: "svc_1", Fence: 3,
		Status: step.Running, Input: json.RawMessage(`{}`), Decision: "allow",
		Reason: "r", Action: event.DigestOf([]byte("a")), As: policy.Attested, BegunAt: at,
	}
	with := func(change func(*step.Call)) step.Call {
		other := c
		change(&other)
		return other
	}
	folds(t, step.Call{}, invoked, c)
	folds(t, step.Call{}, withheld(invoked), with(func(c *step.Call) { c.Redacted = true }))
	folds(t, c, told(t, "x", step.CallEntity, nil), c)
	folds(t, c, told(t, "run.created", "run", nil), with(func(c *step.Call) { c.Child = "run_1" }))
	ended := step.Ended{Call: "tc_1", Output: json.RawMessage(`1`), Error: json.RawMessage(`2`), Message: "m"}
	shown := ended
	shown.Permit = event.DigestOf([]byte("p"))
	for typ, status := range map[string]step.Status{step.EventSucceeded: step.Succeeded, step.EventFailed: step.Failed,
		step.EventUnknown: step.Unknown} {
		end := func(c *step.Call) {
			c.Status, c.EndedAt, c.Output, c.Error, c.Message = status, at, json.RawMessage(`1`), json.RawMessage(`2`), "m"
		}
		folds(t, c, told(t, typ, step.CallEntity, ended), with(end))
		folds(t, c, told(t, typ, step.CallEntity, shown), with(func(c *step.Call) { end(c); c.As = policy.Permitted }))
		folds(t, c, withheld(told(t, typ, step.CallEntity, ended)), with(func(c *step.Call) { end(c); c.Redacted = true }))
		folds(t, with(func(c *step.Call) { c.Redacted = true }), told(t, typ, step.CallEntity, ended),
			with(func(c *step.Call) { end(c); c.Redacted = true }))
	}
	for name, p := range map[string]struct {
		e    event.Event
		want string
	}{
		"of a call":       {told(t, "run.created", "run", map[string]any{"parent": map[string]any{"tool_call_id": "tc_1"}}), "tc_1"},
		"of none":         {told(t, "run.created", "run", map[string]any{"x": 1}), ""},
		"of another type": {told(t, "run.started", "run", map[string]any{"parent": map[string]any{"tool_call_id": "tc_1"}}), ""},
		"broken": {told(t, "run.created", "run", map[string]any{"parent": map[string]any{"tool_call_id": "tc_1", "z": 1}, "step": 1}),
			"tc_1"},
		"no id":     {told(t, "run.created", "run", map[string]any{"parent": map[string]any{"tool_call_id": 7}}), ""},
		"no object": {told(t, "run.created", "run", map[string]any{"parent": 7}), ""},
	} {
		if got := step.Parent(p.e); string(got) != p.want {
			t.Errorf("a run %s: got %q, want %q", name, got, p.want)
		}
	}
	half := told(t, "run.created", "run", nil)
	half.Data = json.RawMessage(`{"parent":{"tool_call_id":"tc_1"},"parent":7}`)
	if got := step.Parent(half); got != "" {
		t.Errorf("of data that can be read in part: %q", got)
	}
}

func TestTheDocumentOfAnArtifact(t *testing.T) {
	size := int64(3)
	created := step.ArtifactCreated{
		Artifact: "art_1", Run: "run_1", Kind: "k", Title: "t", Media: "m", Size: &size, Digest: event.DigestOf([]byte("d")),
		Content: step.Content{Type: step.None}, Metadata: json.RawMessage(`{}`), Fence: 3,
	}
	a := step.Artifact{
		ID: "art_1", Run: "run_1", Step: "step_1", Room: "room_1", Kind: "k", Title: "t", Media: "m", Size: &size,
		Digest: event.DigestOf([]byte("d")), Content: step.Content{Type: step.None},
		Metadata: json.RawMessage(`{}`), Fence: 3, As: policy.Attested, CreatedBy: "svc_1", CreatedAt: at,
	}
	with := func(change func(*step.Artifact)) step.Artifact {
		other := a
		change(&other)
		return other
	}
	e := told(t, step.EventArtifactCreated, step.ArtifactEntity, created)
	folds(t, step.Artifact{}, e, a)
	folds(t, step.Artifact{}, withheld(e), with(func(a *step.Artifact) { a.Redacted = true }))
	created.Operation = "op-1"
	folds(t, step.Artifact{}, told(t, step.EventArtifactCreated, step.ArtifactEntity, created),
		with(func(a *step.Artifact) { a.Operation, a.As = "op-1", policy.Permitted }))
	stored := step.Stored{Digest: event.DigestOf([]byte("d")), Size: 3}
	created.Operation, created.Taken = "", true // the daemon has taken it from a space
	folds(t, step.Artifact{}, told(t, step.EventArtifactCreated, step.ArtifactEntity, created),
		with(func(a *step.Artifact) { a.As = policy.Permitted }))
	kept := told(t, step.EventArtifactStored, step.ArtifactEntity, step.ArtifactStored{Content: stored})
	folds(t, a, kept, with(func(a *step.Artifact) { a.Stored = &stored }))
	folds(t, with(func(a *step.Artifact) { a.Redacted = true }), kept, with(func(a *step.Artifact) { a.Stored, a.Redacted = &stored, true }))
	folds(t, a, withheld(kept), with(func(a *step.Artifact) { a.Redacted = true }))
	folds(t, a, told(t, "x", step.ArtifactEntity, nil), a)
	for typ, c := range map[string]struct {
		c    step.Content
		want string
		ok   bool
	}{
		"text": {step.Content{Type: step.Text, Text: "a"}, "a", true}, "JSON": {step.Content{Type: step.JSON, JSON: json.RawMessage(`{}`)}, "{}",
			true}, "a place": {step.Content{Type: step.URI, URI: "x"}, "", false},
		"nothing": {step.Content{Type: step.None, Text: "a"}, "", false},
	} {
		if got, ok := c.c.Bytes(); string(got) != c.want || ok != c.ok {
			t.Errorf("%s: got %q, %t", typ, got, ok)
		}
	}
}

// The remains are ids, numbers and words of the program. Other packages test the events of operations, which have the same names.
func TestWhatRemainsOfSteps(t *testing.T) {
	size := int64(3)
	ended := step.Ended{Call: "tc_1", Run: "run_1", Tool: "saw", Output: json.RawMessage(`"w"`), Error: json.RawMessage(`"w"`), Message: "w",
		Fence: 3, Permit: event.DigestOf([]byte("p"))}
	less := step.Ended{Call: "tc_1", Run: "run_1", Tool: "saw", Fence: 3, Permit: event.DigestOf([]byte("p"))}
	for name, c := range map[string]struct {
		e    event.Event
		want any
	}{
		"a step": {told(t, step.EventCreated, step.EntityType, step.Created{Step: "step_1", Run: "run_1", Kind: "k", Title: "w",
			Input: json.RawMessage(`"w"`), Fence: 3}), step.Created{Step: "step_1", Run: "run_1", Kind: "k", Fence: 3}},
		"a call": {
			told(t, step.EventInvoked, step.CallEntity, step.Invoked{Call: "tc_1", Run: "run_1", Tool: "saw", Title: "w",
				Input: json.RawMessage(`"w"`), Agent: "agt_1", Action: event.DigestOf(nil), Decision: "allow", Reason: "r", Fence: 3}),
			step.Invoked{Call: "tc_1", Run: "run_1", Tool: "saw", Agent: "agt_1", Decision: "allow", Reason: "r", Fence: 3},
		},
		"an operation":            {told(t, step.EventInvoked, "space", step.Invoked{Call: "tc_1"}), nil},
		"a success":               {told(t, step.EventSucceeded, step.CallEntity, ended), less},
		"a failure":               {told(t, step.EventFailed, step.CallEntity, ended), less},
		"an unknown end":          {told(t, step.EventUnknown, step.CallEntity, ended), less},
		"the end of an operation": {told(t, step.EventFailed, "space", ended), nil},
		"an artifact": {
			told(t, step.EventArtifactCreated, step.ArtifactEntity, step.ArtifactCreated{Artifact: "art_1", Run: "run_1", Kind: "k", Title: "w",
				Media: "w", Size: &size, Content: step.Content{Type: step.Text, Text: "w"}, Fence: 3, Operation: "op"}),
			step.ArtifactCreated{Artifact: "art_1", Run: "run_1", Kind: "k", Content: step.Content{Type: step.None}, Fence: 3, Operation: "op"},
		},
		"a kept file": {
			told(t, step.EventArtifactCreated, step.ArtifactEntity, step.ArtifactCreated{Artifact: "art_1", Run: "run_1", Kind: "k",
				Path: "w", Taken: true}),
			step.ArtifactCreated{Artifact: "art_1", Run: "run_1", Kind: "k", Content: step.Content{Type: step.None}, Taken: true},
		},
		"its content": {told(t, step.EventArtifactStored, step.ArtifactEntity,
			step.ArtifactStored{Artifact: "art_1", Run: "run_1", Content: step.Stored{Size: 3}, Fence: 3}),
			step.ArtifactStored{Artifact: "art_1", Run: "run_1", Fence: 3}},
		"another event": {told(t, "x", step.CallEntity, nil), nil},
	} {
		if got, err := step.Remains(c.e); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, c.want)
		}
	}
}

func TestWhatIsAWord(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "azAZ09_.:/-": true, strings.Repeat("x", step.MaxWord): true, strings.Repeat("x", step.MaxWord+1): false, "`": false,
		"{": false, "@": false, "[": false, ";": false, "a b": false, "é": false, "+": false,
	} {
		if got := step.Word(text); got != want {
			t.Errorf("%.20q: %t", text, got)
		}
	}
}
