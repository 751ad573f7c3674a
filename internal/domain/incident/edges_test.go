package incident_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/incident"
)

func told(t *testing.T, typ string, data any) event.Event {
	t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return event.Event{Data: raw, Header: event.Header{
		ID: "evt_1", Type: typ, EntityType: incident.Entity, EntityID: one, Workspace: "ws_dev", Room: "room_1", Thread: "th_1", Run: "run_1",
		Principal: "usr_1", OccurredAt: time.Unix(9, 0).UTC(),
	}}
}

// Each event changes what it says and nothing else; one about another incident, or that cannot be read, changes nothing.
func TestWhatAnEventSaysOfAnIncident(t *testing.T) {
	at := time.Unix(9, 0).UTC()
	opened := incident.Opened{Incident: one, Title: "a", Severity: incident.High, Category: "c", Details: json.RawMessage(`{"a":1}`),
		EntityType: "x", EntityID: "y", Key: "k"}
	i, err := incident.Incident{}.Evolve(told(t, incident.EventOpened, opened))
	want := incident.Incident{
		ID: one, Workspace: "ws_dev", Room: "room_1", Thread: "th_1", Run: "run_1", EntityType: "x", EntityID: "y", Title: "a",
		Severity: incident.High, Category: "c",
		Details: json.RawMessage(`{"a":1}`), Key: "k", Status: incident.Open, OpenedBy: "usr_1", OpenedAt: at, Learning: []incident.Learning{},
	}
	if err != nil || !reflect.DeepEqual(i, want) {
		t.Fatalf("got %+v, %v, want %+v", i, err, want)
	}
	for _, c := range []struct {
		typ         string
		data, other any
		change      func(*incident.Incident)
	}{
		{incident.EventRCA, incident.RCAUpdated{Incident: one, Summary: "s", Analysis: json.RawMessage(`"a"`)},
			incident.RCAUpdated{Incident: "inc_2"}, func(i *incident.Incident) {
				i.RCA = &incident.RCA{Summary: "s", Analysis: json.RawMessage(`"a"`), By: "usr_1", At: at}
			}},
		{incident.EventLearned, incident.LearningLogged{Incident: one, Note: "n", Tags: []string{"t"}},
			incident.LearningLogged{Incident: "inc_2"}, func(i *incident.Incident) {
				i.Learning = []incident.Learning{{ID: "evt_1", Note: "n", Tags: []string{"t"}, By: "usr_1", At: at}}
			}},
		{incident.EventClosed, incident.Ended{Incident: one, Reason: "r"}, incident.Ended{Incident: "inc_2"}, func(i *incident.Incident) {
			i.Status, i.CloseReason, i.ClosedBy, i.ClosedAt = incident.Closed, "r", "usr_1", at
		}},
		{"x", struct{}{}, nil, func(*incident.Incident) {}},
	} {
		want := i
		c.change(&want)
		if got, err := i.Evolve(told(t, c.typ, c.data)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", c.typ, got, err, want)
		}
		if c.other == nil {
			continue
		}
		for name, e := range map[string]event.Event{"of another incident": told(t, c.typ, c.other),
			"with broken data": told(t, c.typ, []int{1})} {
			if got, err := i.Evolve(e); err == nil || !reflect.DeepEqual(got, i) {
				t.Errorf("%s %s: got %+v, %v", c.typ, name, got, err)
			}
			if _, err := incident.Remains(e); (err == nil) != (name == "of another incident") {
				t.Errorf("what remains of %s %s: %v", c.typ, name, err)
			}
		}
	}
	if got, err := i.Evolve(told(t, incident.EventOpened, []int{1})); err == nil || !reflect.DeepEqual(got, i) {
		t.Errorf("opened with broken data: got %+v, %v", got, err)
	}
	if _, err := incident.Remains(told(t, incident.EventOpened, []int{1})); err == nil {
		t.Error("something remains of broken data")
	}
	if !i.Same(opened) {
		t.Error("an incident is the same as what opened it")
	}
	for field, change := range map[string]func(*incident.Opened){
		"title": func(o *incident.Opened) { o.Title = "b" }, "severity": func(o *incident.Opened) { o.Severity = incident.Low },
		"category":    func(o *incident.Opened) { o.Category = "d" },
		"entity type": func(o *incident.Opened) { o.EntityType = "z" }, "entity": func(o *incident.Opened) { o.EntityID = "z" },
	} {
		other := opened
		if change(&other); i.Same(other) {
			t.Errorf("another %s is the same incident", field)
		}
	}
}

// The texts of an incident are within their bounds, and come back unchanged.
func TestWhatIsSaidOfAnIncident(t *testing.T) {
	i := incident.Incident{ID: one, Status: incident.Open, RCA: &incident.RCA{}, Learning: []incident.Learning{{}}}
	for _, s := range []incident.Severity{incident.Low, incident.Medium, incident.High, incident.Critical} {
		if got, err := (incident.Opened{Title: " a ", Severity: s}).Check(); err != nil || got.Severity != s || got.Title != "a" {
			t.Errorf("%s: got %+v, %v", s, got, err)
		}
	}
	long := strings.Repeat("x", incident.MaxWord+1)
	for name, c := range map[string]struct {
		o    incident.Opened
		want error
	}{
		"a key that is not a text":        {incident.Opened{Title: "a", Key: "\xff"}, incident.ErrInvalidKey},
		"an entity type that is too long": {incident.Opened{Title: "a", EntityType: long}, incident.ErrTooLong},
		"a category that is not a text":   {incident.Opened{Title: "a", Category: "\xff"}, incident.ErrTooLong},
		"broken details":                  {incident.Opened{Title: "a", Details: json.RawMessage(`{`)}, nil},
	} {
		if got, err := c.o.Check(); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: got %+v, %v, want %v", name, got, err, c.want)
		}
	}
	if got, err := i.Analyse("s", json.RawMessage(` "a" `)); err != nil ||
		!reflect.DeepEqual(got, incident.RCAUpdated{Incident: one, Summary: "s", Analysis: json.RawMessage(`"a"`)}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := i.Analyse("", json.RawMessage(`"a"`)); err != nil || string(got.Analysis) != `"a"` {
		t.Errorf("an analysis alone: got %+v, %v", got, err)
	}
	if _, err := i.Analyse("s", json.RawMessage(`{`)); err == nil {
		t.Error("a broken analysis was taken")
	}
	if got, err := i.Learn("n", []string{"t"}); err != nil || !reflect.DeepEqual(got, incident.LearningLogged{Incident: one, Note: "n",
		Tags: []string{"t"}}) {
		t.Errorf("got %+v, %v", got, err)
	}
	for name, c := range map[string]struct {
		note string
		tags []string
		want error
	}{"no note": {" ", nil, incident.ErrMissingNote}, "a long tag": {"n", []string{long}, incident.ErrTooLong}, "an empty tag": {"n",
		[]string{""}, incident.ErrTooLong}} {
		if _, err := i.Learn(c.note, c.tags); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if got, err := i.Close("r"); err != nil || got != (incident.Ended{Incident: one, Reason: "r"}) {
		t.Errorf("got %+v, %v", got, err)
	}
}
