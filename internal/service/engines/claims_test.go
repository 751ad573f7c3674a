package engines_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/engines"
)

// TestTrapAStaleEngineFinishesNothing lets an engine sleep beyond its claim and wake after another has the run.
func TestTrapAStaleEngineFinishesNothing(t *testing.T) {
	h, ctx := open(t), t.Context()
	h.ask("")
	_, old := h.claim()
	h.clock.move(run.ClaimTime)
	_, err := h.Complete(ctx, h.owner, old, "late", nil)
	h.code(err, "lease_expired")
	doc, fresh := h.claim()
	if doc.Fence != 2 || doc.Attempts != 2 || doc.ID != old.Run {
		t.Fatalf("got fence %d, attempt %d of %s", doc.Fence, doc.Attempts, doc.ID)
	}
	before := h.head()
	for name, do := range map[string]func(engines.Hold) error{
		"renew":    func(k engines.Hold) error { _, err := h.Renew(ctx, h.owner, k); return err },
		"release":  func(k engines.Hold) error { _, err := h.Release(ctx, h.owner, k); return err },
		"start":    func(k engines.Hold) error { _, err := h.Begin(ctx, h.owner, k); return err },
		"complete": func(k engines.Hold) error { _, err := h.Complete(ctx, h.owner, k, "", nil); return err },
		"fail":     func(k engines.Hold) error { _, err := h.Fail(ctx, h.owner, k, "", "", nil); return err },
	} {
		if got := fault.CodeOf(do(old)); got != "lease_token_mismatch" {
			t.Errorf("%s by the old engine: %q", name, got)
		}
		if got := fault.CodeOf(do(engines.Hold{Workspace: ws, Run: old.Run})); got != "run_locked" && !((name == "renew" || name == "release") &&
			got != "") {
			t.Errorf("%s without a token: %q", name, got)
		}
	}
	if after := h.head(); after != before {
		t.Errorf("the old engine recorded %d events", after-before)
	}
	if _, err := h.Complete(ctx, h.owner, fresh, "done", nil); err != nil {
		t.Error(err)
	}
	tries, err := h.Look.Attempts(ctx, ws, old.Run)
	if err != nil || len(tries) != 2 || tries[0].Reason != run.ReleasedLapsed || tries[1].Reason != run.ReleasedCompleted ||
		tries[1].Number != 2 {
		t.Errorf("got %+v, %v", tries, err)
	}
}

func TestRunsAreClaimedQueuedFirstThenExpiredOldestFirst(t *testing.T) {
	h, ctx := open(t), t.Context()
	one, two := h.ask(""), h.ask("")
	if doc, _ := h.claim(); doc.ID != one.ID {
		t.Errorf("got %s, want the oldest", doc.ID)
	}
	if doc, _ := h.claim(); doc.ID != two.ID {
		t.Errorf("got %s, want the next", doc.ID)
	}
	_, _, err := h.Claim(ctx, h.owner, ws, engines.Wanted{})
	if !errors.Is(err, errand.ErrNothing) {
		t.Errorf("got %v of two live claims", err)
	}
	h.clock.move(run.ClaimTime + time.Second)
	three := h.ask("")
	for i, want := range []id.Run{three.ID, one.ID, two.ID} {
		if doc, _ := h.claim(); doc.ID != want {
			t.Errorf("claim %d: got %s, want %s", i, doc.ID, want)
		}
	}
	four := h.ask("")
	if _, _, err := h.Claim(ctx, h.owner, ws, engines.Wanted{Room: "room_01M7YNAYM0SM228XA4K3G6VDD4"}); !errors.Is(err, errand.ErrNothing) {
		t.Errorf("got %v of another room", err)
	}
	if doc, _, err := h.Claim(ctx, h.owner, ws, engines.Wanted{Room: four.Room}); err != nil || doc.ID != four.ID {
		t.Errorf("got %s, %v of its own room", doc.ID, err)
	}
}

func TestALiveClaimIsKeptByHeartbeats(t *testing.T) {
	h, ctx := open(t), t.Context()
	h.ask("")
	_, k := h.claim()
	for range 12 {
		h.clock.move(run.RenewEvery(run.ClaimTime))
		doc, err := h.Renew(ctx, h.owner, k)
		if err != nil || !doc.Claim.Until.Equal(h.clock.Now().Add(run.ClaimTime)) {
			t.Fatalf("got %+v, %v", doc.Claim, err)
		}
	}
	h.clock.move(run.ClaimTime - time.Millisecond)
	if _, _, err := h.Claim(ctx, h.owner, ws, engines.Wanted{}); !errors.Is(err, errand.ErrNothing) {
		t.Errorf("a claim with a millisecond left was taken: %v", err)
	}
	h.clock.move(time.Millisecond)
	_, err := h.Renew(ctx, h.owner, k)
	h.code(err, "lease_expired")
	if doc, _ := h.claim(); doc.Fence != 2 {
		t.Errorf("got fence %d", doc.Fence)
	}
}

// TestOfManyEnginesExactlyOneHasARun lets engines race for few runs.
func TestOfManyEnginesExactlyOneHasARun(t *testing.T) {
	h := open(t)
	for range 5 {
		h.ask("")
	}
	var mu sync.Mutex
	got := map[id.Run]int{}
	var working sync.WaitGroup
	for range 8 {
		working.Go(func() {
			for {
				doc, _, err := h.Claim(context.Background(), h.owner, ws, engines.Wanted{})
				if errors.Is(err, errand.ErrNothing) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				got[doc.ID]++
				mu.Unlock()
			}
		})
	}
	working.Wait()
	if len(got) != 5 {
		t.Errorf("%d runs were claimed, want 5", len(got))
	}
	for r, n := range got {
		if n != 1 {
			t.Errorf("%s was claimed %d times", r, n)
		}
	}
}

func TestLimitsOfWhatIsAskedFor(t *testing.T) {
	h, ctx := open(t), t.Context()
	ask := func(q engines.Request) error {
		q.Workspace, q.Room = ws, "room_00000000000000000000000000"
		_, err := h.Create(ctx, h.owner, q)
		return err
	}
	long := func(n int) string { return strings.Repeat("0", n) }
	input := func(n int) []byte { return []byte(`"` + long(n-2) + `"`) }
	tags := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint(i))
		}
		return all
	}
	for name, c := range map[string]struct {
		q    engines.Request
		code string
	}{
		"title":       {engines.Request{Title: long(run.MaxTitle)}, ""},
		"long title":  {engines.Request{Title: long(run.MaxTitle + 1)}, "invalid_field"},
		"goal":        {engines.Request{Goal: long(run.MaxGoal)}, ""},
		"long goal":   {engines.Request{Goal: long(run.MaxGoal + 1)}, "invalid_field"},
		"input":       {engines.Request{Input: input(run.MaxGiven)}, ""},
		"large input": {engines.Request{Input: input(run.MaxGiven + 1)}, "field_too_large"},
		"tags":        {engines.Request{Tags: tags(run.MaxTags)}, ""},
		"many tags":   {engines.Request{Tags: tags(run.MaxTags + 1)}, "invalid_field"},
		"long tag":    {engines.Request{Tags: []string{long(run.MaxTag + 1)}}, "invalid_field"},
		"no word":     {engines.Request{Tags: []string{"a b"}}, "invalid_field"},
		"no text":     {engines.Request{Title: "\xff"}, "invalid_field"},
	} {
		if got := fault.CodeOf(ask(c.q)); got != c.code {
			t.Errorf("%s: got %q, want %q", name, got, c.code)
		}
	}
	h.ask("")
	_, k := h.claim()
	_, err := h.Complete(ctx, h.owner, k, "", input(run.MaxReport+1))
	h.code(err, "field_too_large")
	if _, err := h.Complete(ctx, h.owner, k, "", input(run.MaxReport)); err != nil {
		t.Error(err)
	}
}

// TestThreat30NoWriteOfAnOldFence plays random histories of engines that pause, and of a clock that jumps: at any moment at most one of
// them can write, and nothing is recorded under a fence that is not the last.
func TestThreat30NoWriteOfAnOldFence(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHouse(t)
		defer h.close()
		ctx := context.Background()
		of := h.ask("").ID
		type engine struct {
			hold  engines.Hold
			fence uint64
		}
		two := make([]engine, 2)
		newest := uint64(0)
		over := false
		for range rapid.IntRange(5, 40).Draw(rt, "moments") {
			e := &two[rapid.IntRange(0, 1).Draw(rt, "engine")]
			h.Evidence.Wait() // the evidence of a run that has ended is an event too
			before := h.head()
			var err error
			switch what := rapid.SampledFrom([]string{"claim", "renew", "release", "complete", "pass", "jump"}).Draw(rt, "what"); what {
			case "pass":
				h.clock.move(time.Duration(rapid.IntRange(1, 40).Draw(rt, "seconds")) * time.Second)
				continue
			case "jump":
				h.clock.move(rapid.SampledFrom([]time.Duration{-time.Hour, time.Hour}).Draw(rt, "jump"))
				continue
			case "claim":
				doc, token, err := h.Claim(ctx, h.owner, ws, engines.Wanted{})
				if errors.Is(err, errand.ErrNothing) {
					continue
				}
				if err != nil {
					rt.Fatal(err)
				}
				if over || doc.Fence != newest+1 {
					rt.Fatalf("fence %d was given after %d, the run being over: %t", doc.Fence, newest, over)
				}
				newest = doc.Fence
				*e = engine{engines.Hold{Workspace: ws, Run: doc.ID, Token: token}, doc.Fence}
				continue
			case "renew":
				_, err = h.Renew(ctx, h.owner, hold(e.hold, of))
			case "release":
				_, err = h.Release(ctx, h.owner, hold(e.hold, of))
			case "complete":
				_, err = h.Complete(ctx, h.owner, hold(e.hold, of), "", nil)
				over = over || err == nil
			}
			switch {
			case err == nil && (e.fence != newest || e.fence == 0):
				rt.Fatalf("an engine of fence %d wrote although %d was given", e.fence, newest)
			case err != nil && h.head() != before:
				rt.Fatalf("what was refused (%v) recorded %d events", err, h.head()-before)
			}
		}
		fences(rt, h, of)
	})
}

func hold(k engines.Hold, of id.Run) engines.Hold {
	k.Workspace, k.Run = ws, of
	return k
}

// fences holds the log against the rule that fences only rise, and that nothing is recorded under an older one.
func fences(rt *rapid.T, h *house, of id.Run) {
	events, err := h.log.Read(context.Background(), journal.Query{Workspace: ws, Run: of, Limit: 1000})
	if err != nil {
		rt.Fatal(err)
	}
	last := uint64(0)
	for _, e := range events {
		d, err := event.Decode[struct {
			Fence uint64 `json:"fence"`
		}](e)
		if err != nil {
			rt.Fatal(err)
		}
		switch e.Type {
		case run.EventClaimed:
			if d.Fence != last+1 {
				rt.Fatalf("fence %d follows %d", d.Fence, last)
			}
			last = d.Fence
		case run.EventRenewed, run.EventReleased:
			if d.Fence != last {
				rt.Fatalf("%s of fence %d behind a claim of fence %d", e.Type, d.Fence, last)
			}
		}
	}
}

// TestAnEngineThatMayNotClaimIsRecordedOnceAnHour lets a quarantined engine poll for two hours, once a minute.
func TestAnEngineThatMayNotClaimIsRecordedOnceAnHour(t *testing.T) {
	h, ctx := open(t), t.Context()
	agent, err := h.people.Agent(ctx, h.owner, ws, "mill")
	if err != nil {
		t.Fatal(err)
	}
	h.ask("")
	if err := h.people.Quarantine(ctx, h.owner, ws, agent, true, "odd"); err != nil {
		t.Fatal(err)
	}
	before := h.head()
	for range 120 {
		_, _, err := h.Claim(ctx, event.Origin{Principal: agent}, ws, engines.Wanted{})
		h.code(err, policy.ReasonAgentQuarantined)
		h.clock.move(time.Minute)
	}
	if n := h.head() - before; n != 2 {
		t.Errorf("%d events in two hours of polling, want 2", n)
	}
	if _, k := h.claim(); k.Token == "" {
		t.Error("the run cannot be claimed by anybody")
	}
}

// looked counts the documents that are read in lists.
type looked struct {
	projection.Reader
	n int
}

// Documents implements projection.Reader.
func (l *looked) Documents(ctx context.Context, q projection.Query) ([]projection.Document, error) {
	found, err := l.Reader.Documents(ctx, q)
	l.n += len(found)
	return found, err
}

// TestAClaimOfOneKindDoesNotLookAtTheOthers has many runs of any input wait before one of operations, in the room and out of it.
func TestAClaimOfOneKindDoesNotLookAtTheOthers(t *testing.T) {
	h, ctx := open(t), t.Context()
	for range 300 {
		h.ask(`{"anything":1}`)
	}
	wanted := h.ask(`{"type":"operations","protocolVersion":"1.0","space_id":"spc_00000000000000000000000001","operations":[{"type":"message","operationId":"op-1","content":"x"}]}`)
	docs := &looked{Reader: h.Docs}
	h.Docs = docs
	for _, want := range []engines.Wanted{{Work: errand.Operations}, {Work: errand.Operations, Room: wanted.Room}} {
		if offers, err := h.Offers(ctx, ws, want); err != nil || !offers || docs.n > 4 {
			t.Errorf("%+v: offers %t, %v, after a look at %d documents", want, offers, err, docs.n)
		}
		docs.n = 0
	}
	doc, _, err := h.Claim(ctx, h.owner, ws, engines.Wanted{Work: errand.Operations})
	if err != nil || doc.ID != wanted.ID {
		t.Errorf("got %s, %v, want %s", doc.ID, err, wanted.ID)
	}
	if offers, err := h.Offers(ctx, ws, engines.Wanted{Work: errand.Operations, Room: "room_00000000000000000000000009"}); err != nil ||
		offers {
		t.Errorf("another room offers %t, %v", offers, err)
	}
	h.clock.move(run.ClaimTime)
	if again, _, err := h.Claim(ctx, h.owner, ws, engines.Wanted{Work: errand.Operations, Room: wanted.Room}); err != nil ||
		again.ID != wanted.ID {
		t.Errorf("after its claim is over: got %s, %v", again.ID, err)
	}
}
