package incident_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/incident"
	"agentbox/internal/domain/policy"
)

const one = "inc_01M7YNAYM0SM228XA4K3G6VDD4"

func fold(t *testing.T, i incident.Incident, typ string, data any) incident.Incident {
	t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	i, err = i.Evolve(event.Event{Header: event.Header{Type: typ, EntityType: incident.Entity, EntityID: one}, Data: raw})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestTheBoundsOfAnIncident(t *testing.T) {
	word := func(n int) string { return strings.Repeat("x", n) }
	object := func(n int) json.RawMessage { return json.RawMessage(`{"a":"` + word(n-len(`{"a":""}`)) + `"}`) }
	for _, c := range []struct {
		name string
		o    incident.Opened
		want error
	}{
		{"no title", incident.Opened{}, incident.ErrMissingTitle}, {"blanks", incident.Opened{Title: " \n"}, incident.ErrMissingTitle},
		{"the longest title", incident.Opened{Title: word(incident.MaxTitle)}, nil}, {"a longer one",
			incident.Opened{Title: word(incident.MaxTitle + 1)}, incident.ErrMissingTitle},
		{"no text", incident.Opened{Title: "\xff"}, incident.ErrMissingTitle}, {"another severity", incident.Opened{Title: "a", Severity: "HIGH"},
			incident.ErrInvalidSeverity},
		{"the longest key", incident.Opened{Title: "a", Key: word(incident.MaxKey)}, nil}, {"a longer key", incident.Opened{Title: "a",
			Key: word(incident.MaxKey + 1)}, incident.ErrInvalidKey},
		{"the longest category", incident.Opened{Title: "a", Category: word(incident.MaxWord)}, nil},
		{"a longer category", incident.Opened{Title: "a", Category: word(incident.MaxWord + 1)}, incident.ErrTooLong},
		{"a longer entity", incident.Opened{Title: "a", EntityID: word(incident.MaxEntity + 1)}, incident.ErrTooLong},
		{"the largest details", incident.Opened{Title: "a", Details: object(incident.MaxDetails)}, nil},
		{"larger details", incident.Opened{Title: "a", Details: object(incident.MaxDetails + 1)}, incident.ErrInvalidDetails},
		{"a list", incident.Opened{Title: "a", Details: json.RawMessage(`[1]`)}, incident.ErrInvalidDetails},
		{"numbers that fold", incident.Opened{Title: "a", Details: json.RawMessage(`{"n":9007199254740993}`)}, policy.ErrInexact},
	} {
		if got, err := c.o.Check(); !errors.Is(err, c.want) || err == nil && got.Severity != incident.Medium {
			t.Errorf("%s: got %q, %v, want %v", c.name, got.Severity, err, c.want)
		}
	}
}

func TestAnIncidentIsClosedWithItsCauseAndALearning(t *testing.T) {
	i := fold(t, incident.Incident{}, incident.EventOpened, incident.Opened{Incident: one, Title: "a", Severity: incident.Low})
	if _, err := i.Close(""); !errors.Is(err, incident.ErrWithoutRCA) {
		t.Errorf("without both: %v", err)
	}
	learned := fold(t, i, incident.EventLearned, incident.LearningLogged{Incident: one, Note: "n"})
	if _, err := learned.Close(""); !errors.Is(err, incident.ErrWithoutRCA) {
		t.Errorf("without a cause: %v", err)
	}
	analysed := fold(t, i, incident.EventRCA, incident.RCAUpdated{Incident: one, Summary: "s"})
	if _, err := analysed.Close(""); !errors.Is(err, incident.ErrWithoutLearning) {
		t.Errorf("without a learning: %v", err)
	}
	both := fold(t, analysed, incident.EventLearned, incident.LearningLogged{Incident: one, Note: "n"})
	if len(analysed.Learning) != 0 {
		t.Error("the fold changed the document that it began with")
	}
	for reason, want := range map[int]error{policy.MaxReasonBytes: nil, policy.MaxReasonBytes + 1: policy.ErrReasonTooLong} {
		if _, err := both.Close(strings.Repeat("x", reason)); !errors.Is(err, want) {
			t.Errorf("%d bytes of reason: %v", reason, err)
		}
	}
	closed := fold(t, both, incident.EventClosed, incident.Ended{Incident: one})
	_, again := closed.Close("")
	_, rca := closed.Analyse("s", nil)
	_, learn := closed.Learn("n", nil)
	if !errors.Is(again, incident.ErrAlreadyClosed) || !errors.Is(rca, incident.ErrClosed) || !errors.Is(learn, incident.ErrClosed) {
		t.Errorf("after the end: %v, %v, %v", again, rca, learn)
	}
}

func TestWhatSaysNothingIsNoAnalysis(t *testing.T) {
	i := fold(t, incident.Incident{}, incident.EventOpened, incident.Opened{Incident: one, Title: "a"})
	for _, raw := range []string{"", "null", `""`, "{}", " [ ] "} {
		if _, err := i.Analyse(" ", json.RawMessage(raw)); !errors.Is(err, incident.ErrMissingRCA) {
			t.Errorf("%q: %v", raw, err)
		}
	}
	for n, want := range map[int]error{incident.MaxText: nil, incident.MaxText + 1: incident.ErrTooLong} {
		if _, err := i.Analyse(strings.Repeat("x", n), nil); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v", n, err)
		}
		if _, err := i.Learn(strings.Repeat("x", n), nil); !errors.Is(err, want) {
			t.Errorf("a note of %d bytes: %v", n, err)
		}
	}
	for n, want := range map[int]error{incident.MaxTags: nil, incident.MaxTags + 1: incident.ErrTooLong} {
		if _, err := i.Learn("n", slices.Repeat([]string{"t"}, n)); !errors.Is(err, want) {
			t.Errorf("%d tags: %v", n, err)
		}
	}
	if _, err := i.Learn("n", []string{""}); !errors.Is(err, incident.ErrTooLong) {
		t.Errorf("an empty tag: %v", err)
	}
	for n := range incident.MaxLearning {
		i = fold(t, i, incident.EventLearned, incident.LearningLogged{Incident: one, Note: fmt.Sprint(n)})
	}
	if _, err := i.Learn("n", nil); !errors.Is(err, incident.ErrTooMany) {
		t.Errorf("one learning more: %v", err)
	}
}

func TestWhatRemainsOfAnIncidentHoldsNoText(t *testing.T) {
	const private = "private"
	for typ, data := range map[string]any{
		incident.EventOpened: incident.Opened{
			Incident: one, Title: private, Severity: incident.High, Category: private, Details: json.RawMessage(`{"private":1}`),
			EntityType: private, EntityID: private, Key: private,
		},
		incident.EventRCA:     incident.RCAUpdated{Incident: one, Summary: private, Analysis: json.RawMessage(`"private"`)},
		incident.EventLearned: incident.LearningLogged{Incident: one, Note: private, Tags: []string{private}},
		incident.EventClosed:  incident.Ended{Incident: one, Reason: private},
	} {
		raw, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		left, err := incident.Remains(event.Event{Header: event.Header{Type: typ}, Data: raw})
		if err != nil || left == nil {
			t.Fatalf("%s: %v, %v", typ, left, err)
		}
		if text, err := json.Marshal(left); err != nil || strings.Contains(string(text), private) || !strings.Contains(string(text), one) {
			t.Errorf("of %s remains %s, %v", typ, text, err)
		}
	}
	if left, err := incident.Remains(event.Event{Header: event.Header{Type: "room.created"}}); left != nil || err != nil {
		t.Errorf("of another: %v, %v", left, err)
	}
}
