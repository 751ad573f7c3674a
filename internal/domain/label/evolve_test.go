package label_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/policy"
)

var now = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

// happened returns an event of a principal with data.
func happened(t *testing.T, typ string, data any) event.Event {
	t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return event.Event{Header: event.Header{Type: typ, Workspace: "ws_dev", Principal: "usr_a", OccurredAt: now}, Data: raw}
}

func broken(typ string) event.Event {
	return event.Event{Header: event.Header{Type: typ, Workspace: "ws_dev", Principal: "usr_b", OccurredAt: now.Add(1)}, Data: []byte("[")}
}

func TestALabelIsWhatWasSetLast(t *testing.T) {
	set := label.Labelled{Resource: thing, Level: label.Confidential, Room: room, Purposes: []string{"a"}}
	want := label.Label{Resource: thing, Workspace: "ws_dev", Level: label.Confidential, Room: room, Purposes: []string{"a"}, SetBy: "usr_a",
		SetAt: now}
	got, err := label.Label{}.Evolve(happened(t, label.EventLabelled, set))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
	if again, err := got.Evolve(happened(t, label.EventJustified, label.Labelled{Resource: thing, Level: label.Public})); err != nil ||
		!reflect.DeepEqual(again, want) {
		t.Errorf("an event of another kind made %+v, %v", again, err)
	}
	if again, err := got.Evolve(broken(label.EventLabelled)); err == nil || !reflect.DeepEqual(again, want) {
		t.Errorf("broken data made %+v, %v", again, err)
	}
	if next, err := got.Evolve(happened(t, label.EventLabelled, label.Labelled{Resource: thing, Level: label.Public})); err != nil ||
		next.Level != label.Public || next.Room != "" || next.Purposes != nil {
		t.Errorf("the next label is %+v, %v", next, err)
	}
}

// An access opens the allowed uses, reading and writing apart. A refused use, or one that was not named, stays closed.
func TestAnAccessIsWhatWasAllowed(t *testing.T) {
	said := func(action string, o policy.Outcome) label.Accessed {
		return label.Accessed{Resource: thing, Action: action, Level: label.Confidential, Decision: o}
	}
	near := label.Nearness{At: now, Level: label.Confidential}
	reads := label.Access{Resource: thing, Principal: "usr_a", Reads: near}
	writes := label.Access{Resource: thing, Principal: "usr_a", Writes: near}
	for _, c := range []struct {
		name string
		e    event.Event
		want label.Access
		err  bool
	}{
		{"read", happened(t, label.EventJustified, said("read", policy.Allow)), reads, false},
		{"read without a justification", happened(t, label.EventUnjustified, said("read", policy.Allow)), reads, false},
		{"written", happened(t, label.EventJustified, said("write", policy.Allow)), writes, false},
		{"denied", happened(t, label.EventJustified, said("read", policy.Deny)), label.Access{}, false},
		{"for a person to decide", happened(t, label.EventUnjustified, said("read", policy.RequireApproval)), label.Access{}, false},
		{"without a decision", happened(t, label.EventUnjustified, map[string]any{"resource_type": "artifact", "resource_id": "a",
			"action": "read"}), label.Access{}, false},
		{"another event", happened(t, label.EventDenied, said("read", policy.Allow)), label.Access{}, false},
		{"a mismatch", happened(t, label.EventMismatch, said("write", policy.Allow)), label.Access{}, false},
		{"broken", broken(label.EventJustified), label.Access{}, true},
	} {
		if got, err := (label.Access{}).Evolve(c.e); got != c.want || (err != nil) != c.err {
			t.Errorf("%s: got %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
	both, err := reads.Evolve(happened(t, label.EventJustified, said("write", policy.Allow)))
	if err != nil || both.Reads != near || both.Writes != near {
		t.Errorf("then written: %+v, %v", both, err)
	}
	for _, e := range []event.Event{broken(label.EventUnjustified), happened(t, label.EventLabelled, said("read", policy.Allow)),
		happened(t, label.EventJustified, said("read", policy.Deny))} {
		if got, _ := both.Evolve(e); got != both {
			t.Errorf("%s made %+v of %+v", e.Type, got, both)
		}
	}
}

// Guards count the resources of each type that bear a label which keeps anybody away, and forget a type at zero.
func TestGuardsCountWhatIsKept(t *testing.T) {
	var g label.Guards
	other := label.Resource{Type: "room", ID: "b"}
	for _, c := range []struct {
		name     string
		resource label.Resource
		was, is  label.Level
		want     map[string]int
	}{
		{"the first", thing, "", label.Restricted, map[string]int{"artifact": 1}},
		{"stricter", thing, label.Restricted, label.SensitivePII, map[string]int{"artifact": 1}},
		{"a second", thing, label.Internal, label.Confidential, map[string]int{"artifact": 2}},
		{"of another type", other, label.Public, label.Restricted, map[string]int{"artifact": 2, "room": 1}},
		{"that was free and is", other, label.Public, label.Internal, map[string]int{"artifact": 2, "room": 1}},
		{"one less", thing, label.SensitivePII, label.Internal, map[string]int{"artifact": 1, "room": 1}},
		{"none", thing, label.Confidential, label.Public, map[string]int{"room": 1}},
	} {
		before := g.Types["artifact"]
		next, err := g.Evolve(happened(t, label.EventLabelled, label.Labelled{Resource: c.resource, Was: c.was, Level: c.is}))
		if err != nil || !reflect.DeepEqual(next.Types, c.want) {
			t.Fatalf("%s: got %v, %v, want %v", c.name, next.Types, err, c.want)
		}
		if g.Types["artifact"] != before {
			t.Errorf("%s: the guards before were changed", c.name)
		}
		g = next
	}
	if !g.On("room") || !g.On("artifact", "room") || g.On("artifact") || g.On() || (label.Guards{}).On("room") {
		t.Errorf("%v guard the wrong types", g.Types)
	}
	for _, e := range []event.Event{broken(label.EventLabelled), broken(label.EventJustified)} {
		if next, err := g.Evolve(e); (err != nil) != (e.Type == label.EventLabelled) || !reflect.DeepEqual(next, g) {
			t.Errorf("%s made %+v, %v", e.Type, next, err)
		}
	}
}

// An access holds for an hour, and for no stricter level than it was allowed for.
func TestHowLongAnAccessHolds(t *testing.T) {
	near := label.Nearness{At: now, Level: label.Confidential}
	last := now.Add(label.AccessTime)
	for _, c := range []struct {
		name string
		n    label.Nearness
		l    label.Level
		at   time.Time
		want bool
	}{
		{"at once", near, label.Confidential, now, true},
		{"in the last moment", near, label.Confidential, last.Add(-1), true},
		{"after it", near, label.Confidential, last, false},
		{"a freer level", near, label.Restricted, now, true},
		{"a stricter level", near, label.SensitivePII, now, false},
		{"never", label.Nearness{}, label.Confidential, now, false},
	} {
		if got := c.n.Holds(c.l, c.at); got != c.want {
			t.Errorf("%s: holds %t, want %t", c.name, got, c.want)
		}
	}
	if got := label.AccessKey("usr_a", thing); got != "usr_a/artifact/a" {
		t.Errorf("the key is %q", got)
	}
}

func TestARequestIsChecked(t *testing.T) {
	good := label.Request{Resource: thing, Action: "read"}
	with := func(change func(*label.Request)) label.Request { q := good; change(&q); return q }
	for _, c := range []struct {
		name string
		q    label.Request
		want error
	}{
		{"to read", good, nil},
		{"to write", with(func(q *label.Request) { q.Action = "write" }), nil},
		{"of a level", with(func(q *label.Request) { q.Level = label.Restricted }), nil},
		{"for a purpose", with(func(q *label.Request) { q.Purposes = []string{"a", "b"} }), nil},
		{"of nothing", with(func(q *label.Request) { q.Resource = label.Resource{} }), label.ErrInvalidResource},
		{"without an id", with(func(q *label.Request) { q.ID = "" }), label.ErrInvalidResource},
		{"to do anything else", with(func(q *label.Request) { q.Action = "delete" }), label.ErrInvalidAction},
		{"to do nothing", with(func(q *label.Request) { q.Action = "" }), label.ErrInvalidAction},
		{"of an unknown level", with(func(q *label.Request) { q.Level = "odd" }), label.ErrInvalidLabel},
		{"for one purpose twice", with(func(q *label.Request) { q.Purposes = []string{"a", "a"} }), label.ErrInvalidTags},
		{"for an empty purpose", with(func(q *label.Request) { q.Purposes = []string{""} }), label.ErrInvalidTags},
		{"for what is not a text", with(func(q *label.Request) { q.Purposes = []string{"\xff"} }), label.ErrInvalidTags},
		{"because of what is not a text", with(func(q *label.Request) { q.Justification = "\xff" }), label.ErrInvalidJustification},
	} {
		if err := c.q.Check(); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

// A mismatch is reported where the purposes are compared and differ, whether a justification opens the way or not. A wrong room is none.
func TestWhatIsAMismatch(t *testing.T) {
	kept := label.Label{Resource: thing, Level: label.SensitivePII, Purposes: []string{"a"}}
	ask := func(in id.Room, why string, purposes ...string) label.Request {
		return label.Request{Resource: thing, Action: "read", Room: in, Purposes: purposes, Justification: why}
	}
	for _, c := range []struct {
		name     string
		l        label.Label
		q        label.Request
		mismatch bool
		reason   string
	}{
		{"its purpose", kept, ask("", "", "a"), false, "the label sensitive_pii permits it"},
		{"no label", label.Label{Resource: thing}, ask("", "", "b"), false, "the label internal permits it"},
		{"another purpose", kept, ask("", "", "b"), true, "the purpose is not that of the label, and no justification is given"},
		{"another purpose, justified", kept, ask("", "why", "b"), true, "the purpose is not that of the label, and a justification is given"},
		{"another room", label.Label{Resource: thing, Level: label.Restricted, Room: room}, ask(other, ""), false,
			"the data are restricted to another room"},
	} {
		if _, d, mismatch := c.l.Decide(c.q); mismatch != c.mismatch || d.Reason != c.reason {
			t.Errorf("%s: mismatch %t, %q, want %t, %q", c.name, mismatch, d.Reason, c.mismatch, c.reason)
		}
	}
}

func TestWhatRemainsOfBrokenDataIsAnError(t *testing.T) {
	if _, err := label.Remains(broken(label.EventDenied)); err == nil {
		t.Error("broken data were redacted without an error")
	}
}
