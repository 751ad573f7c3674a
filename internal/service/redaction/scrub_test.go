package redaction_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/redaction"
)

// secret is none; it looks like one.
var secret = "ghp" + "_" + strings.Repeat("aB3dE6gH9k", 3)

// still is a clock that stands.
type still struct{}

func (still) Now() time.Time { return time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC) }

func (still) NewTimer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// counting counts the batches that reach the log, and can refuse them.
type counting struct {
	journal.Journal
	batches int
	fail    error
}

func (c *counting) Append(ctx context.Context, b event.Batch) (event.Receipt, error) {
	c.batches++
	if c.fail != nil {
		return event.Receipt{}, c.fail
	}
	return c.Journal.Append(ctx, b)
}

const dlp id.Principal = "svc_01ARZ3NDEKTSV4RRFFQ69G5FAV"

func scrubbed(t *testing.T) (*redaction.Log, *counting) {
	t.Helper()
	ids := id.NewSource(still{}.Now, rand.Reader)
	log, err := memory.NewJournal(nil, still{}, ids, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	under := &counting{Journal: log}
	return redaction.Scrub(under, dlp, ids), under
}

func said(typ string, data any) event.Draft {
	return event.New(typ, event.Origin{Principal: "usr_01ARZ3NDEKTSV4RRFFQ69G5FAV", Correlation: "cor_1"}, id.DefaultWorkspace, id.DefaultRoom,
		data)
}

func batch(drafts ...event.Draft) event.Batch {
	return event.Batch{Workspace: id.DefaultWorkspace, Drafts: drafts}
}

func everything(t *testing.T, log journal.Journal) []event.Event {
	t.Helper()
	found, err := log.Read(t.Context(), journal.Query{Workspace: id.DefaultWorkspace, Limit: journal.MaxRead})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestALeakIsToldInTheSameBatch records secrets: what says so is recorded with them, or neither is.
func TestALeakIsToldInTheSameBatch(t *testing.T) {
	log, under := scrubbed(t)
	b := batch(said("thing.said", map[string]string{"text": "a " + secret}), said("thing.said", map[string]string{"text": "nothing"}),
		said("thing.said", map[string]string{secret: "b"}))
	b.Key, b.Digest = "once", event.DigestOf([]byte("once"))
	under.fail = errors.New("the disk is full")
	if _, err := log.Append(t.Context(), b); !errors.Is(err, under.fail) || len(everything(t, log)) != 0 {
		t.Fatalf("got %v, and %d events", err, len(everything(t, log)))
	}
	under.fail, under.batches = nil, 0
	for range 2 { // the second is a repeat
		receipt, err := log.Append(t.Context(), b)
		if err != nil || len(receipt.Events) != 3 || receipt.Events[0].Type != "thing.said" ||
			string(receipt.Events[0].Data) != `{"text":"a [redacted]"}` {
			t.Fatalf("got %+v, %v", receipt, err)
		}
	}
	all := everything(t, log)
	if len(all) != 5 || under.batches != 2 {
		t.Fatalf("%d events in %d batches", len(all), under.batches)
	}
	for n, about := range []int{0, 2} { // told of behind the caller's events, for a cause is earlier
		i, of := 3+n, all[about]
		d, err := event.Decode[leak.Detected](all[i])
		if err != nil || all[i].Type != leak.EventDetected || d.Event != of.ID || all[i].Causation != of.ID || d.Type != "thing.said" ||
			len(d.Matches) != 1 || all[i].Actor.ID != "dlp" || all[i].Principal != dlp {
			t.Errorf("event %d tells %+v of %s, %v", i, d, of.ID, err)
		}
		if !of.ContainsSecrets || of.Redaction != event.RedactPartial || strings.Contains(string(of.Data), secret) {
			t.Errorf("event %d is %+v with %s", about, of.Header, of.Data)
		}
	}
	if clean := all[1]; clean.ContainsSecrets || clean.Redaction != event.RedactNone {
		t.Errorf("what has no secret says %t, %s", clean.ContainsSecrets, clean.Redaction)
	}
}

// TestWhatCountsByItsBytesIsMarked records secrets where they cannot be taken out.
func TestWhatCountsByItsBytesIsMarked(t *testing.T) {
	in := func(member string, v any) map[string]any { return map[string]any{member: v, "b": "<b>", "n": 1} }
	for _, c := range []struct{ typ, kept string }{
		{policy.ApprovalRequestedType, "request"}, {policy.ApprovalRequestedType, "question"}, {policy.BundlePinnedType, "bundle"},
		{space.EventCreated, "env"}, {space.EventUpdated, "env"},
		{run.EventSucceeded, "result"}, {run.EventErred, "result"}, {run.EventUnknown, "result"},
	} {
		log, _ := scrubbed(t)
		value := map[string]string{"x": secret}
		only, both := said(c.typ, in(c.kept, value)), in(c.kept, value)
		both["title_of_it"] = secret
		if _, err := log.Append(t.Context(), batch(only, said(c.typ, both), said("thing.said", both))); err != nil {
			t.Fatalf("%s: %v", c.typ, err)
		}
		all := everything(t, log)
		if len(all) != 6 || all[3].Type != leak.EventDetected || all[5].Type != leak.EventDetected {
			t.Fatalf("%s: %d events", c.typ, len(all))
		}
		kept, mixed, plain := all[0], all[1], all[2]
		if string(kept.Data) != string(only.Data) || !kept.ContainsSecrets || kept.Redaction != event.RedactNone {
			t.Errorf("%s: got %s at level %s", c.typ, kept.Data, kept.Redaction)
		}
		var got map[string]json.RawMessage
		if err := json.Unmarshal(mixed.Data, &got); err != nil || string(got[c.kept]) != `{"x":"`+secret+`"}` ||
			string(got["title_of_it"]) != `"[redacted]"` || mixed.Redaction != event.RedactPartial || !mixed.ContainsSecrets {
			t.Errorf("%s: got %s at level %s, %v", c.typ, mixed.Data, mixed.Redaction, err)
		}
		if strings.Contains(string(plain.Data), secret) {
			t.Errorf("another type keeps %s: %s", c.kept, plain.Data)
		}
	}
}

// TestABatchThatIsFullTellsWhatItCan has as many leaks as a batch has events, and one more than there is room for.
func TestABatchThatIsFullTellsWhatItCan(t *testing.T) {
	for _, c := range []struct{ drafts, told int }{{journal.MaxBatch / 2, journal.MaxBatch / 2}, {journal.MaxBatch/2 + 1,
		journal.MaxBatch/2 - 1}, {journal.MaxBatch, 0}} {
		log, under := scrubbed(t)
		var drafts []event.Draft
		for range c.drafts {
			drafts = append(drafts, said("thing.said", map[string]string{"text": secret}))
		}
		receipt, err := log.Append(t.Context(), batch(drafts...))
		if err != nil || len(receipt.Events) != c.drafts {
			t.Fatalf("%d drafts: %d events, %v", c.drafts, len(receipt.Events), err)
		}
		if head, err := under.Head(t.Context(), id.DefaultWorkspace); err != nil || int(head) != c.drafts+c.told {
			t.Errorf("%d drafts: %d events, want %d told (%v)", c.drafts, head, c.told, err)
		}
		for _, e := range receipt.Events {
			if !e.ContainsSecrets || strings.Contains(string(e.Data), secret) {
				t.Fatalf("%d drafts: %+v with %s", c.drafts, e.Header, e.Data)
			}
		}
	}
}

// TestNoSecretInAHeader has one in each place of a header that comes from outside.
func TestNoSecretInAHeader(t *testing.T) {
	for name, change := range map[string]func(*event.Draft){
		"key": func(d *event.Draft) { d.IdempotencyKey = secret }, "entity": func(d *event.Draft) {
			d.EntityType, d.EntityID = "thing",
				"a/"+secret
		},
		"correlation": func(d *event.Draft) { d.Correlation = id.Correlation(secret) }, "thread": func(d *event.Draft) {
			d.Thread = id.Thread(secret)
		},
	} {
		log, under := scrubbed(t)
		d := said("thing.said", struct{}{})
		change(&d)
		if _, err := log.Append(t.Context(), batch(said("thing.said", struct{}{}), d)); !errors.Is(err, redaction.ErrSecretInHeader) ||
			under.batches != 0 {
			t.Errorf("%s: got %v after %d batches", name, err, under.batches)
		}
	}
}

// FuzzScrub records any object with a secret in it, as an event of a type some of whose members count by their bytes: those stay as they
// were, byte for byte where nothing else had a secret, and the secret is nowhere else.
func FuzzScrub(f *testing.F) {
	f.Add(`{"env":{"a":"%"},"name":"%"}`, 0)
	f.Add(`{"env":{"b":1e400,"a":"%"},"name":"<&>"}`, 0)
	f.Add(`{"result":"%","x":[["%"]]}`, 1)
	f.Add(`{"%":1,"request":{"%":"%"},"question":null}`, 2)
	f.Add(`{"000":{"b":1e000,"0":"%"},"000":"000"}`, 30)
	types := []string{space.EventCreated, run.EventSucceeded, policy.ApprovalRequestedType, "thing.said"}
	members := [][]string{{"env"}, {"result"}, {"action", "title", "request", "question"}, nil}
	f.Fuzz(func(t *testing.T, shape string, n int) {
		raw := json.RawMessage(strings.ReplaceAll(shape, "%", secret))
		var was map[string]json.RawMessage
		if n < 0 || json.Unmarshal(raw, &was) != nil || was == nil {
			return
		}
		log, _ := scrubbed(t)
		d := said(types[n%len(types)], struct{}{})
		d.Data = raw
		receipt, err := log.Append(t.Context(), batch(d))
		if err != nil {
			if fault.KindOf(err) != fault.Invalid { // what the log takes for no object
				t.Fatal(err)
			}
			return
		}
		e := receipt.Events[0]
		var is map[string]json.RawMessage
		if err := json.Unmarshal(e.Data, &is); err != nil {
			t.Fatalf("%s became %s: %v", raw, e.Data, err)
		}
		for _, name := range members[n%len(types)] {
			if string(is[name]) != string(was[name]) {
				t.Errorf("%s was %s and is %s", name, was[name], is[name])
			}
			delete(is, name)
		}
		for name, value := range is {
			if strings.Contains(name+string(value), secret) {
				t.Errorf("%s became %s", raw, e.Data)
			}
		}
		if strings.Contains(string(raw), secret) && !e.ContainsSecrets || e.Redaction == event.RedactNone && string(e.Data) != string(raw) {
			t.Errorf("%s became %s, at level %s", raw, e.Data, e.Redaction)
		}
	})
}
