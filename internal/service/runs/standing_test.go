package runs_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/runs"
	"agentbox/internal/testkit"
)

// revoking is the gate, and somebody who revokes a standing approval in the moment between the decision that rests on it and the effect.
type revoking struct {
	policy.Gate
	revoke func(policy.Ruling)
}

func (g *revoking) Judge(ctx context.Context, a policy.Action) (policy.Ruling, error) {
	r, err := g.Gate.Judge(ctx, a)
	if err == nil && r.Standing != "" {
		g.revoke(r)
	}
	return r, err
}

// Threat 13: a standing approval that ends between the decision and the effect permits nothing, and a person is asked instead.
func TestThreat13StandingApprovalThatEndsBeforeTheEffectAsks(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program, Idle: true})
	revoked := 0
	var first run.Run
	gate := &revoking{s.Gate, func(r policy.Ruling) {
		if r.Action.Run == first.ID {
			return // it has an approval of its own
		}
		revoked++
		if err := s.Gate.Approvals.Revoke(t.Context(), s.Origin, testkit.WS, r.Standing, "a moment before"); err != nil {
			t.Error(err)
		}
	}}
	s.Runs = runs.New(runs.Parts{
		Log: s.Log, Docs: s.Docs, Blobs: s.Blobs, Live: s.Live, Gate: gate, Agents: s.Identity,
		Spaces: s.Spaces.Living, Routes: s.Spaces.Routing, Bundles: s.Gate.Bundles,
		Clock: s.Clock, IDs: s.IDs, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	s.Spaces.SetOccupants(s.Runs)
	s.Run()
	const operations = `[{"type":"shell","command":"rm -r build"}]`
	space := s.Space().ID
	first = s.Rest(s.Start(space, operations).ID)
	_, question := first.Pending()
	if _, err := s.Gate.Approvals.Decide(t.Context(), s.Origin, testkit.WS, question, policy.Answer{
		Decision: policy.Approve, Scope: policy.ScopeWorkspace, Uses: 5, ExpiresAt: s.Clock.Now().Add(time.Hour),
	}); err != nil {
		t.Fatal(err)
	}
	s.Ended(first.ID)
	second := s.Rest(s.Start(space, operations).ID)
	if second.Status != run.AwaitingApproval || revoked != 1 {
		t.Errorf("the run is %s after %d revocations, want awaiting_approval after 1", second.Status, revoked)
	}
	if p := second.Operations[0]; !p.BegunAt.IsZero() {
		t.Errorf("the operation began at %s", p.BegunAt)
	}
}
