package engines_test

import (
	"context"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/engines"
)

// called claims a run and begins a tool call in it.
func (h *house) called() (run.Run, engines.Hold, step.Call) {
	h.t.Helper()
	doc, k := h.claim()
	k.Permit = h.Permits.OfClaim(doc)
	s, err := h.Steps.Add(context.Background(), h.owner, k, engines.StepRequest{Kind: "work"})
	if err != nil {
		h.t.Fatal(err)
	}
	return doc, k, h.call(k, s.ID)
}

// TestWhatAnEngineReportsUnderItsPermitIsPermitted shows the permits of a claim and of a call, and reports without.
func TestWhatAnEngineReportsUnderItsPermitIsPermitted(t *testing.T) {
	h, ctx := open(t), t.Context()
	h.ask("")
	doc, k, c := h.called()
	p, err := policy.OpenPermit(h.Permits.Key(), h.Permits.OfCall(ws, c))
	if err != nil || p.Kind != policy.PermitCall || p.Call != c.ID || p.Tool != "look" || p.Fence != 1 || p.Engine != h.owner.Principal ||
		p.Run != doc.ID || p.Workspace != ws ||
		p.Action != c.Action || p.Action.IsZero() || !p.BeginBy.Equal(c.BegunAt.Add(run.ClaimTime)) {
		t.Errorf("the permit of the call: %+v, %v", p, err)
	}
	if p, err = policy.OpenPermit(h.Permits.Key(), k.Permit); err != nil || p.Kind != policy.PermitRun || p.Attempt != doc.Claim.Attempt ||
		p.Fence != 1 {
		t.Errorf("the permit of the claim: %+v, %v", p, err)
	}
	kept, err := h.Service.Look.Call(ctx, ws, c.ID)
	if err != nil || h.Permits.OfCall(ws, kept) != h.Permits.OfCall(ws, c) {
		t.Errorf("a repeat is answered with another permit: %v", err)
	}
	other := h.call(k, c.Step)
	before := h.head()
	for what, permit := range map[string]string{
		"the claim's": k.Permit, "another call's": h.Permits.OfCall(ws, other), "no permit": "prm_x.y", "a forged one": func() string {
			seal, err := policy.NewSeal([]byte("0123456789abcdef0123456789abcdef"))
			if err != nil {
				t.Fatal(err)
			}
			return seal.Sign(p)
		}(),
	} {
		_, err := h.Steps.Succeed(ctx, h.owner, ws, engines.Shown{Token: k.Token, Permit: permit}, c.ID, nil)
		if h.code(err, "permit_invalid"); err == nil {
			t.Errorf("%s was taken", what)
		}
	}
	if after := h.head(); after != before {
		t.Errorf("refused permits recorded %d events", after-before)
	}
	c, err = h.Steps.Succeed(ctx, h.owner, ws, engines.Shown{Token: k.Token, Permit: h.Permits.OfCall(ws, c)}, c.ID, nil)
	if err != nil || c.As != policy.Permitted {
		t.Errorf("with the permit: %+v, %v", c, err)
	}
	_, err = h.Steps.Succeed(ctx, h.owner, ws, engines.Shown{Token: k.Token, Permit: h.Permits.OfCall(ws, c)}, c.ID, nil)
	h.code(err, "tool_call_not_running") // it is spent
	if other, err = h.Steps.Fail(ctx, h.owner, ws, engines.Shown{Token: k.Token}, other.ID, nil, "broken"); err != nil ||
		other.As != policy.Attested {
		t.Errorf("without one: %+v, %v", other, err)
	}
	wrong := k
	wrong.Permit = h.Permits.OfCall(ws, other)
	_, err = h.Complete(ctx, h.owner, wrong, "done", nil)
	h.code(err, "permit_invalid")
	if doc, err = h.Complete(ctx, h.owner, k, "done", nil); err != nil || doc.Reported == nil || doc.Reported.As != policy.Permitted {
		t.Errorf("the end with the permit: %+v, %v", doc.Reported, err)
	}
	h.ask("")
	_, k = h.claim()
	if doc, err = h.Fail(ctx, h.owner, k, "broken", "it broke", nil); err != nil || doc.Reported.As != policy.Attested {
		t.Errorf("the end without one: %+v, %v", doc.Reported, err)
	}
}

// TestThreat30ThePermitOfAnOldFenceIsWorthNothing has another engine take the run over, and show what the first one was given.
func TestThreat30ThePermitOfAnOldFenceIsWorthNothing(t *testing.T) {
	h, ctx := open(t), t.Context()
	h.ask("")
	_, old, c := h.called()
	stale := h.Permits.OfCall(ws, c)
	h.clock.move(run.ClaimTime)
	doc, fresh := h.claim()
	for what, shown := range map[string]engines.Shown{"the old token": {Token: old.Token, Permit: stale}, "the new token": {Token: fresh.Token,
		Permit: stale}} {
		want := map[string]string{"the old token": "lease_token_mismatch", "the new token": "permit_invalid"}[what]
		_, err := h.Steps.Succeed(ctx, h.owner, ws, shown, c.ID, nil)
		h.code(err, want)
	}
	taken := fresh
	taken.Permit = old.Permit
	_, err := h.Complete(ctx, h.owner, taken, "", nil)
	h.code(err, "permit_invalid")
	fresh.Permit = h.Permits.OfClaim(doc)
	stranger, err := h.people.AddPerson(ctx, h.owner, ws, "Mia", "member")
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Complete(ctx, event.Origin{Principal: stranger}, fresh, "mine", nil)
	h.code(err, "permit_invalid") // with the token and the permit of another engine
	if c, err = h.Steps.Succeed(ctx, h.owner, ws, engines.Shown{Token: fresh.Token}, c.ID, nil); err != nil || c.As != policy.Attested {
		t.Errorf("what the first engine began, reported by the second: %+v, %v", c, err)
	}
	if _, err = h.Complete(ctx, h.owner, fresh, "done", nil); err != nil {
		t.Error(err)
	}
}

// TestNoToolCallIsLeftRunning ends runs in every way while calls are under way: each has one result, which is that nobody knows.
func TestNoToolCallIsLeftRunning(t *testing.T) {
	for name, end := range map[string]func(*house, engines.Hold) error{
		"complete": func(h *house, k engines.Hold) error {
			_, err := h.Complete(context.Background(), h.owner, k, "", nil)
			return err
		},
		"fail": func(h *house, k engines.Hold) error {
			_, err := h.Fail(context.Background(), h.owner, k, "", "", nil)
			return err
		},
		"cancel": func(h *house, k engines.Hold) error {
			_, err := h.Cancel(context.Background(), h.owner, ws, k.Run, "")
			return err
		},
		"cancel after the claim is over": func(h *house, k engines.Hold) error {
			h.clock.move(2 * run.ClaimTime)
			_, err := h.Cancel(context.Background(), h.owner, ws, k.Run, "")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, ctx := open(t), t.Context()
			h.ask("")
			_, k, first := h.called()
			calls := []id.ToolCall{}
			for range 150 { // more than one commit closes
				calls = append(calls, h.call(k, first.Step).ID)
			}
			if _, err := h.Steps.Succeed(ctx, h.owner, ws, engines.Shown{Token: k.Token}, first.ID, nil); err != nil {
				t.Fatal(err)
			}
			if err := end(h, k); err != nil {
				t.Fatal(err)
			}
			for _, c := range calls {
				doc, err := h.Service.Look.Call(ctx, ws, c)
				if err != nil || doc.Status != step.Unknown || doc.EndedAt.IsZero() || doc.As != policy.Attested || doc.Message == "" {
					t.Fatalf("call %s: %+v, %v", c, doc, err)
				}
			}
			if doc, err := h.Service.Look.Call(ctx, ws, first.ID); err != nil || doc.Status != step.Succeeded {
				t.Errorf("the call that had its result: %+v, %v", doc, err)
			}
			results := map[string]int{}
			for from := uint64(1); ; {
				page, err := h.log.Read(ctx, journal.Query{Workspace: ws, From: from, Types: []string{step.EventUnknown}, Limit: 100})
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range page {
					results[e.EntityID]++
					from = e.Seq + 1
				}
				if len(page) < 100 {
					break
				}
			}
			if len(results) != len(calls) {
				t.Errorf("%d calls have a result that nobody knows, want %d", len(results), len(calls))
			}
			for c, n := range results {
				if n != 1 {
					t.Errorf("call %s has %d results", c, n)
				}
			}
		})
	}
}

// TestTheEvidenceOfARunSaysThatItsCallsHaveEnded holds as long as one commit closes them.
func TestTheEvidenceOfARunSaysThatItsCallsHaveEnded(t *testing.T) {
	h, ctx := open(t), t.Context()
	h.ask("")
	_, k, _ := h.called()
	if _, err := h.Cancel(ctx, h.owner, ws, k.Run, ""); err != nil {
		t.Fatal(err)
	}
	found, _, err := h.Evidence.Of(ctx, ws, k.Run)
	if err != nil || !found.Completeness.Calls || !found.Completeness.Terminal {
		t.Errorf("%+v, %v", found.Completeness, err)
	}
}
