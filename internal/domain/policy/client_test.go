package policy_test

import (
	"context"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// verdict is a gate that always decides the same, and counts what it is asked to do.
type verdict struct {
	policy.Gate
	decision     policy.Decision
	answer       policy.ApprovalStatus // of the question that it is asked to make
	begun, asked int
}

func (v *verdict) Judge(_ context.Context, a policy.Action) (policy.Ruling, error) {
	return policy.Ruling{Action: a, Decision: v.decision}, nil
}

func (v *verdict) Begin(context.Context, policy.Ruling, id.Approval, event.Batch, ...policy.Ruling) (policy.Permit, event.Receipt, error) {
	v.begun++
	return policy.Permit{}, event.Receipt{}, nil
}

func (v *verdict) AskOnce(context.Context, event.Origin, policy.Ruling, event.Batch) (policy.Approval, error) {
	v.asked++
	return policy.Approval{ID: "apr_one", Status: v.answer}, nil
}

// TestWhatAClientMakesOfADecision holds which decisions go through, which are refused and as what, and which refusals are recorded.
func TestWhatAClientMakesOfADecision(t *testing.T) {
	deny := policy.Decision{Outcome: policy.Deny, ReasonCode: "no", Reason: "no"}
	ask := policy.Decision{Outcome: policy.RequireApproval, ReasonCode: "ask", Reason: "ask"}
	shadow := deny
	shadow.Shadow = true
	nobody := policy.Decision{Outcome: policy.Deny, ReasonCode: policy.ReasonPrincipalNotFound, Reason: "nobody"}
	const through = fault.Internal // no error
	for name, c := range map[string]struct {
		decision     policy.Decision
		client       policy.Client
		do, early    fault.Kind
		records      int // by Do
		recordsEarly int
	}{
		"allowed":                  {policy.Decision{Outcome: policy.Allow}, policy.Client{}, through, through, 0, 0},
		"allowed in shadow":        {shadow, policy.Client{}, through, through, 0, 0},
		"denied":                   {deny, policy.Client{}, fault.Denied, fault.Denied, 1, 1},
		"a person is to decide":    {ask, policy.Client{}, fault.Waiting, through, 1, 0},
		"nobody waits for them":    {ask, policy.Client{Final: true}, fault.Denied, through, 1, 0},
		"nobody":                   {nobody, policy.Client{}, fault.Denied, fault.Denied, 1, 1},
		"nobody, of known callers": {nobody, policy.Client{Known: true}, fault.Denied, fault.Denied, 0, 0},
	} {
		for _, silent := range []bool{false, true} {
			g := &verdict{decision: c.decision}
			recorded := 0
			client := c.client
			client.Gate = g
			if !silent {
				client.Append = func(_ context.Context, b event.Batch) (event.Receipt, error) {
					recorded += len(b.Drafts)
					return event.Receipt{}, nil
				}
			} else {
				c.records, c.recordsEarly = 0, 0
			}
			_, _, err := client.Do(t.Context(), event.Origin{}, policy.Action{Type: policy.FileRead}, event.Batch{})
			if (err == nil) != (c.do == through) || err != nil && fault.KindOf(err) != c.do || g.begun != map[bool]int{true: 1}[c.do == through] ||
				recorded != c.records {
				t.Errorf("%s, silent %t: Do returned %v, began %d times and recorded %d refusals, want %d", name, silent, err, g.begun, recorded,
					c.records)
			}
			recorded = 0
			err = client.Early(t.Context(), event.Origin{}, policy.Action{Type: policy.FileRead})
			if (err == nil) != (c.early == through) || err != nil && fault.KindOf(err) != c.early || recorded != c.recordsEarly {
				t.Errorf("%s, silent %t: Early returned %v and recorded %d refusals, want %d", name, silent, err, recorded, c.recordsEarly)
			}
		}
	}
}

// TestAClientAsksAndUsesTheAnswer holds that a question is made only where policy asks, and that its answer decides.
func TestAClientAsksAndUsesTheAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		outcome  policy.Outcome
		answer   policy.ApprovalStatus
		asked    int
		approval id.Approval
		kind     fault.Kind
	}{
		"allowed":  {policy.Allow, "", 0, "", fault.Internal},
		"denied":   {policy.Deny, "", 0, "", fault.Denied},
		"open":     {policy.RequireApproval, policy.Pending, 1, "apr_one", fault.Waiting},
		"refused":  {policy.RequireApproval, policy.Denied, 1, "apr_one", fault.Denied},
		"approved": {policy.RequireApproval, policy.Approved, 1, "apr_one", fault.Internal},
	} {
		g := &verdict{decision: policy.Decision{Outcome: c.outcome, ReasonCode: "why", Reason: "why"}, answer: c.answer}
		_, approval, err := policy.Client{Gate: g}.Ask(t.Context(), event.Origin{}, policy.Action{Type: policy.FileRead})
		if g.asked != c.asked || approval != c.approval || (err == nil) != (c.kind == fault.Internal) || err != nil &&
			fault.KindOf(err) != c.kind {
			t.Errorf("%s: asked %d times, got %q, %v, want %d, %q", name, g.asked, approval, err, c.asked, c.approval)
		}
	}
}
