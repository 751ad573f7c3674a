package redaction_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/query"
	"agentbox/internal/service/redaction"
)

// kept records a run of that many operations beside its own events, which has ended, and whose data are kept for a time; 0 for good.
func (h *house) kept(r id.Run, keep time.Duration, operations int) []event.Event {
	h.Helper()
	of := func(typ string, data any) event.Draft { return event.New(typ, h.origin, ws, "", data).In(r, "") }
	seconds := int64(keep / time.Second)
	drafts := []event.Draft{of(run.EventCreated, run.Created{Run: r, Title: "private", Retention: seconds, Operations: make([]run.Outline,
		operations)})}
	for n := range operations {
		drafts = append(drafts, of(run.EventSucceeded, run.Ended{Run: r, Index: n, Result: &run.Result{Command: "private"}}))
	}
	end := run.Finished{Run: r, Summary: "private", Retention: seconds, Until: run.Run{Retention: seconds}.Until(h.clock.Now())}
	drafts = append(drafts, of(run.EventCompleted, end))
	var all []event.Event
	for some := range slices.Chunk(drafts, journal.MaxBatch) {
		all = append(all, h.append(some...)...)
	}
	return all
}

func (h *house) doc(r id.Run) run.Run {
	h.Helper()
	doc, _, err := projection.Load[run.Run](h.Context(), h.log, ws, run.Projection, string(r))
	h.must(err)
	return doc
}

// gone reports whether nothing of the events is left, and fails where some is.
func (h *house) gone(events []event.Event) bool {
	h.Helper()
	n := 0
	for _, e := range events {
		if h.get(e.ID).Withheld == event.Forgotten {
			n++
		}
	}
	if n != 0 && n != len(events) {
		h.Errorf("%d of %d events are redacted", n, len(events))
	}
	return n > 0
}

// again is the service, just started on the same log.
func (h *house) again() {
	h.Service = redaction.New(h.Parts)
}

func (h *house) count(typ string) int {
	h.Helper()
	found, err := h.log.Read(h.Context(), journal.Query{Workspace: ws, Types: []string{typ}, Limit: journal.MaxRead})
	h.must(err)
	return len(found)
}

// TestARunIsForgottenWhenItsTimeIsOver holds it to the moment, over a restart, and to once.
func TestARunIsForgottenWhenItsTimeIsOver(t *testing.T) {
	h := open(t)
	short, long, good := h.kept("run_short", time.Hour, 3), h.kept("run_long", 2*time.Hour, 1), h.kept("run_good", 0, 1)
	if doc := h.doc("run_short"); doc.Retention != 3600 || !doc.KeptUntil.Equal(h.clock.Now().Add(time.Hour)) {
		t.Errorf("the run says %+v", doc)
	}
	h.must(h.Step(t.Context(), h.clock.pass(time.Hour-time.Nanosecond)))
	if h.gone(short) {
		t.Fatal("it is gone too early")
	}
	h.again()
	h.must(h.Step(t.Context(), h.clock.pass(time.Nanosecond)))
	if !h.gone(short) || h.gone(long) || h.gone(good) {
		t.Fatal("want the short one gone, and no other")
	}
	doc := h.doc("run_short")
	if !doc.Forgotten.Equal(h.clock.Now()) || !doc.Redacted || doc.Status != run.Succeeded || doc.Retention != 3600 || doc.Title != "" {
		t.Errorf("the run says %+v", doc)
	}
	found, _, err := h.List(t.Context(), ws, 0, 100)
	h.must(err)
	if len(found) != len(short) || found[0].Principal != system || found[0].Reason != "retention: the data of the run are kept for 1h0m0s" {
		t.Errorf("redactions %+v", found)
	}
	head, err := h.log.Head(t.Context(), ws)
	h.must(err)
	for range 3 {
		h.again()
		h.must(h.Step(t.Context(), h.clock.pass(time.Second)))
	}
	if now, err := h.log.Head(t.Context(), ws); err != nil || now != head {
		t.Errorf("with nothing to do the log grew from %d to %d, %v", head, now, err)
	}
	h.must(h.Step(t.Context(), h.clock.pass(time.Hour)))
	if !h.gone(long) || h.gone(good) {
		t.Error("want the long one gone too, and what has no time left as it is")
	}
}

// TestARunOfManyEventsIsForgotten redacts more events than a batch and a request may have.
func TestARunOfManyEventsIsForgotten(t *testing.T) {
	h := open(t)
	events := h.kept(runID, time.Minute, journal.MaxBatch+1)
	h.must(h.Step(t.Context(), h.clock.pass(time.Minute)))
	if !h.gone(events) || h.count(run.EventForgotten) != 1 {
		t.Errorf("%d run.forgotten", h.count(run.EventForgotten))
	}
}

// TestARunThatIsForgottenHalfwayIsFinished breaks off before anything is destroyed, and begins again.
func TestARunThatIsForgottenHalfwayIsFinished(t *testing.T) {
	h := open(t)
	events := h.kept(runID, time.Minute, 2)
	others := h.kept("run_other", time.Minute, 2)
	h.contents.broken = errors.New("the disk is full")
	if err := h.Step(t.Context(), h.clock.pass(time.Minute)); !errors.Is(err, h.contents.broken) {
		t.Fatalf("got %v", err)
	}
	if h.gone(events) || h.count(run.EventForgotten) != 0 {
		t.Fatal("something is gone")
	}
	h.contents.broken = nil
	h.again()
	h.must(h.Step(t.Context(), h.clock.Now()))
	if !h.gone(events) || !h.gone(others) || h.count(run.EventForgotten) != 2 || h.count(event.RedactedType) != len(events)+len(others) {
		t.Errorf("%d run.forgotten and %d redactions of %d events", h.count(run.EventForgotten), h.count(event.RedactedType), len(events)+
			len(others))
	}
}

// TestAClockThatIsSetBack does not keep a run longer than it said, nor shorter, with and without a restart in between.
func TestAClockThatIsSetBack(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint(restart), func(t *testing.T) {
			h := open(t)
			h.must(h.Step(t.Context(), h.clock.Now()))
			h.clock.pass(365 * 24 * time.Hour) // a clock that is wrong
			events := h.kept(runID, time.Hour, 1)
			h.must(h.Step(t.Context(), h.clock.Now()))
			now := h.clock.pass(-365 * 24 * time.Hour)
			if restart {
				h.again()
			}
			h.must(h.Step(t.Context(), now))
			if doc := h.doc(runID); !doc.KeptUntil.Equal(now.Add(time.Hour)) || h.count(run.EventRetained) != 1 {
				t.Errorf("it is kept until %s, want %s; %d run.retained", doc.KeptUntil, now.Add(time.Hour), h.count(run.EventRetained))
			}
			h.must(h.Step(t.Context(), h.clock.pass(time.Hour-time.Nanosecond)))
			if h.gone(events) {
				t.Error("it is gone too early")
			}
			h.must(h.Step(t.Context(), h.clock.pass(time.Nanosecond)))
			if !h.gone(events) {
				t.Error("it is kept longer than it said")
			}
		})
	}
}

// TestRetain changes the time of a run that has ended.
func TestRetain(t *testing.T) {
	h := open(t)
	events := h.kept(runID, time.Hour, 1)
	ended := h.doc(runID).EndedAt
	retain := func(keep time.Duration) run.Run {
		t.Helper()
		doc, err := h.Retain(t.Context(), h.origin, ws, runID, keep)
		h.must(err)
		return doc
	}
	if doc := retain(3 * time.Hour); doc.Retention != 3*3600 || !doc.KeptUntil.Equal(ended.Add(3*time.Hour)) {
		t.Errorf("it says %+v", doc)
	}
	h.must(h.Step(t.Context(), h.clock.pass(2*time.Hour)))
	if h.gone(events) {
		t.Fatal("it is gone at the time that it had before")
	}
	if doc := retain(0); doc.Retention != 0 || !doc.KeptUntil.IsZero() {
		t.Errorf("it says %+v", doc)
	}
	h.must(h.Step(t.Context(), h.clock.pass(2*time.Hour)))
	if h.gone(events) {
		t.Fatal("it is gone, and was to be kept")
	}
	retain(10 * time.Hour)
	retain(10 * time.Hour) // to the same moment
	h.must(h.Step(t.Context(), h.clock.pass(6*time.Hour)))
	if !h.gone(events) {
		t.Fatal("it is there still")
	}
	if _, err := h.Retain(t.Context(), h.origin, ws, runID, time.Hour); !errors.Is(err, redaction.ErrForgotten) {
		t.Errorf("retain what is gone: %v", err)
	}
	late := h.kept("run_late", 0, 1)
	h.clock.pass(time.Hour)
	_, err := h.Retain(t.Context(), h.origin, ws, "run_late", time.Minute) // its time is over already
	h.must(err)
	h.must(h.Step(t.Context(), h.clock.Now()))
	if !h.gone(late) {
		t.Error("a time that was over when it was set did not end")
	}
}

func TestRetainRefuses(t *testing.T) {
	h := open(t, "tool.*=2h", "file.*=1m", "approval.*=3h")
	member := id.Principal("usr_01ARZ3NDEKTSV4RRFFQ69G5FAV")
	h.append(event.New(principal.RegisteredType, h.origin, ws, "", principal.Registered{Principal: member, Kind: id.User,
		Role: principal.Member, Name: "m"}).About(principal.Entity, string(member)))
	h.kept("run_ended", 0, 1)
	h.run(false)
	h.append(event.New(run.EventImported, h.origin, ws, "", run.ImportedData{Run: "run_imported", Recorded: run.Run{Status: run.Succeeded,
		Retention: 60, KeptUntil: h.clock.Now()}}).In("run_imported", ""))
	if doc := h.doc("run_imported"); doc.Retention != 0 || !doc.KeptUntil.IsZero() {
		t.Errorf("an imported run promises %+v", doc)
	}
	for name, c := range map[string]struct {
		who  id.Principal
		run  id.Run
		keep time.Duration
		code string
	}{
		"the operator's longest":   {h.origin.Principal, "run_ended", 2 * time.Hour, ""},
		"longer than the operator": {h.origin.Principal, "run_ended", 2*time.Hour + time.Second, "retention_too_long"},
		"the shortest":             {h.origin.Principal, "run_ended", time.Minute, ""},
		"too short":                {h.origin.Principal, "run_ended", time.Minute - time.Second, "retention_invalid"},
		"no whole second":          {h.origin.Principal, "run_ended", time.Minute + time.Millisecond, "retention_invalid"},
		"below nothing":            {h.origin.Principal, "run_ended", -time.Hour, "retention_invalid"},
		"a run under way":          {h.origin.Principal, runID, time.Hour, "redaction_too_early"},
		"no such run":              {h.origin.Principal, "run_none", time.Hour, "run_not_found"},
		"an imported one":          {h.origin.Principal, "run_imported", time.Hour, "not_redactable"},
		"a member":                 {member, "run_ended", time.Hour, policy.ReasonNoPolicy},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h.Retain(t.Context(), event.Origin{Principal: c.who}, ws, c.run, c.keep)
			if fault.CodeOf(err) != c.code {
				t.Errorf("got %v, want %q", err, c.code)
			}
		})
	}
	if h.count(policy.DeniedType) != 1 {
		t.Error("the refusal is not in the log")
	}
	free := open(t)
	free.kept("run_ended", 0, 1)
	for keep, code := range map[time.Duration]string{run.MaxRetention: "", run.MaxRetention + time.Second: "retention_invalid"} {
		if _, err := free.Retain(t.Context(), free.origin, ws, "run_ended", keep); fault.CodeOf(err) != code {
			t.Errorf("%s: %v, want %q", keep, err, code)
		}
	}
}

// TestTheRulesBoundRuns holds the list of what a run's events are to what can be redacted.
func TestTheRulesBoundRuns(t *testing.T) {
	for _, typ := range query.EventTypes() {
		e := event.Event{Header: event.Header{Type: typ}, Data: []byte(`{}`)}
		_, err := redaction.Remains(e)
		class, _, _ := strings.Cut(typ, ".")
		of := slices.Contains([]string{"run", "step", "tool", "artifact", "approval", "action", "policy"}, class)
		bound := redaction.Retention{typ: time.Hour}.OfRuns() == time.Hour
		if want := err == nil && of; bound != want {
			t.Errorf("%s bounds runs: %t, want %t", typ, bound, want)
		}
	}
	if got := (redaction.Retention{"run.*": 3 * time.Hour, "tool.failed": 2 * time.Hour, "file.*": time.Hour}).OfRuns(); got != 2*time.Hour {
		t.Errorf("got %s", got)
	}
	if got := (redaction.Retention{"file.*": time.Hour}).OfRuns(); got != 0 {
		t.Errorf("got %s", got)
	}
}

// TestRetentionsRebuild has documents folded anew that equal the live ones, with runs that are kept, forgotten and kept longer.
func TestRetentionsRebuild(t *testing.T) {
	h := open(t)
	h.kept("run_a", time.Hour, 1)
	h.kept("run_b", 5*time.Hour, 1)
	_, err := h.Retain(t.Context(), h.origin, ws, "run_b", 6*time.Hour)
	h.must(err)
	h.must(h.Step(t.Context(), h.clock.pass(time.Hour)))
	list := func() (bodies []string) {
		t.Helper()
		docs, err := h.log.Documents(t.Context(), projection.Query{Workspace: ws, Name: run.RetentionProjection})
		h.must(err)
		for _, d := range docs {
			bodies = append(bodies, d.Key+string(d.Body))
		}
		return bodies
	}
	before := list()
	if len(before) != 3 || !strings.Contains(before[0], "run_a") {
		t.Fatalf("got %q", before)
	}
	h.must(h.log.Rebuild(t.Context(), run.RetentionProjection))
	if after := list(); !slices.Equal(after, before) {
		t.Errorf("got  %q\nwant %q", after, before)
	}
}
