package redaction_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/kernel/vault"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/redaction"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/spaces"
)

const (
	ws     = id.DefaultWorkspace
	system = id.Principal("svc_00000000000000000000000000")
	runID  = id.Run("run_01ARZ3NDEKTSV4RRFFQ69G5FAV")
)

// clock is a time that the test sets.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) NewTimer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

func (c *clock) pass(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	return c.at
}

// contents remembers what it was told to forget, and what could be read of it then.
type contents struct {
	events []event.Event
	broken error
}

func (c *contents) ForgetContent(_ context.Context, events []event.Event) (vault.Remains, error) {
	c.events = append(c.events, events...)
	return vault.Remains{Forgotten: len(events), Live: []string{"a file"}}, c.broken
}

// house is the service over a log in memory.
type house struct {
	*testing.T
	*redaction.Service
	log      *memory.Journal
	clock    *clock
	contents *contents
	origin   event.Origin // the owner's
}

func open(t *testing.T, rules ...string) *house {
	t.Helper()
	h := &house{T: t, clock: &clock{at: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}, contents: &contents{}}
	ids := id.NewSource(h.clock.Now, rand.Reader)
	definitions := append(gate.Definitions(), spaces.Definition(), spaces.ChangeDefinition(), spaces.SnapshotDefinition(), runs.Definition(),
		redaction.Definition())
	var err error
	h.log, err = memory.NewJournal(definitions, h.clock, ids, rand.Reader)
	h.must(err)
	g, err := gate.New(gate.Parts{Log: h.log, Docs: h.log, Evaluator: cedar.New(), Clock: h.clock, IDs: ids, System: system})
	h.must(err)
	people := identity.New(identity.Parts{Log: h.log, Docs: h.log, Gate: g, Clock: h.clock, IDs: ids, Entropy: rand.Reader})
	owner, err := people.Owner(t.Context(), ws, "owner")
	h.must(err)
	h.origin = event.Origin{Principal: owner, Correlation: "cor_test"}
	retention, err := redaction.ParseRetention(rules)
	h.must(err)
	h.Service = redaction.New(redaction.Parts{
		Log: h.log, Bodies: h.log, Docs: h.log, Gate: g, Contents: []vault.Forgetter{h.contents}, Clock: h.clock,
		Logger: slog.New(slog.DiscardHandler), System: system, Retention: retention,
	})
	return h
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *house) append(drafts ...event.Draft) []event.Event {
	h.Helper()
	receipt, err := h.log.Append(h.Context(), event.Batch{Workspace: ws, Drafts: drafts})
	h.must(err)
	return receipt.Events
}

// read is an event that nothing is folded from.
func (h *house) read(path string) event.Event {
	h.Helper()
	return h.append(event.New(space.EventFileRead, h.origin, ws, "", space.FileRead{Path: path}))[0]
}

// run records a run of two operations, up to its end or not.
func (h *house) run(ended bool) []event.Event {
	h.Helper()
	of := func(typ string, data any) event.Draft { return event.New(typ, h.origin, ws, "", data).In(runID, "") }
	drafts := []event.Draft{
		of(run.EventCreated, run.Created{Run: runID, Title: "private title", Operations: []run.Outline{{ID: "private id", Type: "shell",
			Summary: "private one"}, {Type: "message"}}}),
		of(run.EventStarted, run.Started{Run: runID}),
		of(run.EventInvoked, run.Invoked{Run: runID, Index: 1, Tool: "shell", Title: "private", Input: []byte(`{"command":"private"}`),
			Decision: "allow"}),
		of(run.EventSucceeded, run.Ended{Run: runID, Index: 1, Kind: "shell-result", Result: &run.Result{Command: "private"}}),
	}
	if ended {
		drafts = append(drafts, of(run.EventCompleted, run.Finished{Run: runID, Summary: "private", Error: "private"}))
	}
	return h.append(drafts...)
}

func (h *house) get(e id.Event) event.Event {
	h.Helper()
	found, err := h.log.Get(h.Context(), ws, e)
	h.must(err)
	return found
}

func TestAnEventIsRedactedOnce(t *testing.T) {
	h := open(t)
	e := h.read("private")
	q := redaction.Request{Event: e.ID, Reason: "a mistake"}
	first, err := h.Redact(t.Context(), h.origin, ws, q)
	h.must(err)
	if len(first.Redactions) != 1 || first.Redactions[0].Event != e.ID || first.Redactions[0].Reason != "a mistake" ||
		first.Redactions[0].Principal != h.origin.Principal ||
		first.Remains.Forgotten != 1 || len(first.Remains.Live) != 1 {
		t.Errorf("the receipt is %+v", first)
	}
	if got := h.get(e.ID); got.Withheld != event.Forgotten || strings.Contains(string(got.Data), "private") {
		t.Errorf("the event is %+v", got)
	}
	if len(h.contents.events) != 1 || !strings.Contains(string(h.contents.events[0].Data), "private") {
		t.Errorf("content was forgotten by %+v, want the data as they were", h.contents.events)
	}
	again, err := h.Redact(t.Context(), h.origin, ws, redaction.Request{Event: e.ID, Reason: "once more"})
	h.must(err)
	if len(again.Redactions) != 1 || again.Redactions[0] != first.Redactions[0] {
		t.Errorf("once more: %+v, want %+v", again.Redactions, first.Redactions)
	}
	found, _, err := h.List(t.Context(), ws, 0, 10)
	if err != nil || len(found) != 1 || found[0] != first.Redactions[0] {
		t.Errorf("the list is %+v, %v", found, err)
	}
}

func TestARunIsRedactedAsAWhole(t *testing.T) {
	h := open(t)
	events := h.run(true)
	beside := h.read("beside")
	receipt, err := h.Redact(t.Context(), h.origin, ws, redaction.Request{Run: runID, Reason: "asked for"})
	h.must(err)
	if len(receipt.Redactions) != len(events) {
		t.Errorf("%d redactions, want %d", len(receipt.Redactions), len(events))
	}
	raw, err := h.log.Document(t.Context(), ws, run.Projection, string(runID))
	h.must(err)
	doc, _, err := projection.Load[run.Run](t.Context(), h.log, ws, run.Projection, string(runID))
	h.must(err)
	if strings.Contains(string(raw.Body), "private") || !doc.Redacted || doc.Status != run.Succeeded || len(doc.Operations) != 2 ||
		doc.Operations[1].State != run.Done {
		t.Errorf("the document is %s", raw.Body)
	}
	if h.get(beside.ID).Withheld != "" {
		t.Error("an event beside the run is redacted")
	}
	again, err := h.Redact(t.Context(), h.origin, ws, redaction.Request{Run: runID, Reason: "asked for"})
	h.must(err)
	if len(again.Redactions) != len(events) {
		t.Errorf("once more: %d redactions, want the %d of before", len(again.Redactions), len(events))
	}
}

func TestRefusals(t *testing.T) {
	h := open(t)
	e := h.read("private")
	active := h.run(false)
	all, err := h.log.Read(t.Context(), journal.Query{Workspace: ws})
	h.must(err)
	registered := all[0] // of the owner
	asked := h.append(event.New(policy.ApprovalRequestedType, h.origin, ws, "", policy.ApprovalRequested{Approval: "appr_1",
		ExpiresAt: h.clock.Now().Add(time.Hour)}).About(policy.ApprovalEntity, "appr_1"))[0]
	member := id.Principal("usr_01ARZ3NDEKTSV4RRFFQ69G5FAV")
	h.append(event.New(principal.RegisteredType, h.origin, ws, "", principal.Registered{Principal: member, Kind: id.User,
		Role: principal.Member, Name: "m"}).About(principal.Entity, string(member)))
	reason := strings.Repeat("r", policy.MaxReasonBytes)
	for name, c := range map[string]struct {
		who  id.Principal
		q    redaction.Request
		code string
	}{
		"nothing named":               {"", redaction.Request{Reason: "r"}, "redaction_target_required"},
		"both named":                  {"", redaction.Request{Event: e.ID, Run: runID, Reason: "r"}, "redaction_target_required"},
		"no reason":                   {"", redaction.Request{Event: e.ID, Reason: " "}, "reason_required"},
		"a reason that is too long":   {"", redaction.Request{Event: e.ID, Reason: reason + "r"}, "reason_required"},
		"no such event":               {"", redaction.Request{Event: "0190163d-8694-739b-aea5-966c26f8ad91", Reason: "r"}, "not_found"},
		"no such run":                 {"", redaction.Request{Run: "run_none", Reason: "r"}, "run_not_found"},
		"a run under way":             {"", redaction.Request{Run: runID, Reason: "r"}, "redaction_too_early"},
		"an event of a run under way": {"", redaction.Request{Event: active[0].ID, Reason: "r"}, "redaction_too_early"},
		"a question that is open":     {"", redaction.Request{Event: asked.ID, Reason: "r"}, "redaction_too_early"},
		"who may do what":             {"", redaction.Request{Event: registered.ID, Reason: "r"}, "not_redactable"},
		"a member":                    {member, redaction.Request{Event: e.ID, Reason: "r"}, policy.ReasonNoPolicy},
		"somebody whom nobody knows": {"usr_01ARZ3NDEKTSV4RRFFQ69G5FAX", redaction.Request{Event: e.ID, Reason: "r"},
			policy.ReasonPrincipalNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			origin := h.origin
			if c.who != "" {
				origin.Principal = c.who
			}
			if _, err := h.Redact(t.Context(), origin, ws, c.q); fault.CodeOf(err) != c.code {
				t.Errorf("%v, want %s", err, c.code)
			}
		})
	}
	if h.get(e.ID).Withheld != "" || len(h.contents.events) != 0 {
		t.Error("a refusal has redacted something")
	}
	if _, err := h.Redact(t.Context(), h.origin, ws, redaction.Request{Event: e.ID, Reason: reason}); err != nil {
		t.Errorf("the longest reason: %v", err)
	}
	redacted, _, err := h.List(t.Context(), ws, 0, 1)
	h.must(err)
	if _, err := h.Redact(t.Context(), h.origin, ws, redaction.Request{Event: redacted[0].By, Reason: "r"}); !errors.Is(err,
		redaction.ErrNotPossible) {
		t.Errorf("redact a redaction: %v", err)
	}
}

// The next start does redactions that were recorded and could not be done, with the content as well.
func TestRecoverFinishes(t *testing.T) {
	h := open(t)
	e := h.read("private")
	h.contents.broken = errors.New("the disk is full")
	if _, err := h.Redact(t.Context(), h.origin, ws, redaction.Request{Event: e.ID, Reason: "r"}); !errors.Is(err, h.contents.broken) {
		t.Fatalf("redact with a full disk: %v", err)
	}
	if h.get(e.ID).Withheld != "" {
		t.Error("the data are gone before the content that they name")
	}
	h.contents.broken = nil
	h.must(h.Recover(t.Context()))
	if h.get(e.ID).Withheld != event.Forgotten || len(h.contents.events) != 2 {
		t.Errorf("after the recovery: %+v, %d", h.get(e.ID), len(h.contents.events))
	}
}

func TestRetention(t *testing.T) {
	h := open(t, "file.*=1h", "run.*=2h", "file.read=30m")
	old := h.read("private")
	active := h.run(false)
	h.clock.pass(20 * time.Minute)
	young := h.read("private too")
	step := func(d time.Duration) {
		t.Helper()
		h.must(h.Step(t.Context(), h.clock.pass(d)))
	}
	is := func(e event.Event, want event.Withheld) {
		t.Helper()
		if got := h.get(e.ID); got.Withheld != want {
			t.Errorf("at %s %s %d is %q, want %q", h.clock.Now().Format(time.TimeOnly), e.Type, e.Seq, got.Withheld, want)
		}
	}
	step(10*time.Minute - time.Nanosecond)
	is(old, "")
	step(time.Nanosecond) // the shortest of its rules
	is(old, event.Forgotten)
	is(young, "")
	step(20 * time.Minute)
	is(young, event.Forgotten)
	step(2 * time.Hour)
	is(active[0], "") // its run is under way
	h.append(event.New(run.EventCompleted, h.origin, ws, "", run.Finished{Run: runID}).In(runID, ""))
	step(time.Second)
	is(active[0], event.Forgotten)
	is(active[2], "") // tool.invoked, which no rule selects
	found, _, err := h.List(t.Context(), ws, 0, 100)
	h.must(err)
	for _, r := range found {
		if r.Principal != system || !strings.HasPrefix(r.Reason, "retention: ") {
			t.Errorf("a redaction by retention says %+v", r)
		}
	}
	head, err := h.log.Head(t.Context(), ws)
	h.must(err)
	step(time.Second)
	if now, err := h.log.Head(t.Context(), ws); err != nil || now != head {
		t.Errorf("with nothing to do the log grew from %d to %d, %v", head, now, err)
	}
}

func TestRetentionOfManyEvents(t *testing.T) {
	h := open(t, "file.*=1h")
	for i := range 1_200 {
		h.read(fmt.Sprint("private ", i))
	}
	now := h.clock.pass(time.Hour)
	for steps := 0; ; steps++ {
		h.must(h.Step(t.Context(), now))
		found, _, err := h.List(t.Context(), ws, 0, journal.MaxRead)
		h.must(err)
		if len(found) == journal.MaxRead || steps > 10 {
			break
		}
	}
	all, err := h.log.Read(t.Context(), journal.Query{Workspace: ws, Types: []string{space.EventFileRead}, Limit: journal.MaxRead})
	h.must(err)
	for _, e := range all[:900] {
		if e.Withheld == "" {
			t.Fatalf("event %d is not redacted", e.Seq)
		}
	}
}

func TestRulesOfRetention(t *testing.T) {
	for rule, want := range map[string]time.Duration{
		"run.*=30d": 30 * 24 * time.Hour, "tool.succeeded=36h": 36 * time.Hour, "*=1m": 0, "file.*=1m": time.Minute,
		"file.*=36500d": run.MaxRetention, "file.*=59s": 0, "file.*=36501d": 0, "file.*": 0, "=1h": 0,
		"File.*=1h": 0, "a*b=1h": 0, "file.*=0d": 0, "file.*=-1d": 0,
		"file.*=1.5d": 0, "file.*=x": 0,
	} {
		r, err := redaction.ParseRetention([]string{rule})
		pattern, _, _ := strings.Cut(rule, "=")
		if (err == nil) != (want != 0) || r[pattern] != want {
			t.Errorf("%s: %v, %v, want %s", rule, r, err, want)
		}
		if err != nil && fault.CodeOf(err) != "retention_invalid" {
			t.Errorf("%s: %v, want retention_invalid", rule, err)
		}
	}
	for n, code := range map[int]string{redaction.MaxRules: "", redaction.MaxRules + 1: "retention_invalid"} {
		if _, err := redaction.ParseRetention(strings.Split(strings.Repeat("run.*=1h,", n-1)+"run.*=1h", ",")); fault.CodeOf(err) != code {
			t.Errorf("%d rules: %v, want %q", n, err, code)
		}
	}
}
