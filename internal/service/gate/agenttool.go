package gate

import (
	"fmt"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/service/gate/approvals"
)

// agentTool judges the question of a coding agent about one of its tools. A rule of the policy permits it, asks or refuses. Where no rule
// is about it, a person is asked. Nobody is asked about an input that is too long to be shown in full; it is refused.
func (c *consideration) agentTool(e policy.Evaluator, facts policy.Facts) {
	a := c.ruling.Action
	if v := entitlement(c.kind, c.who.Kind, c.who.Role); v.outcome != policy.Allow {
		c.soft = false
		c.part(policy.Title(a), nil, v, nil)
		return
	}
	if reading, err := approvals.Read(a); err == nil && a.Command != "" {
		c.words = reading.Words()
	}
	c.ask(e, facts, a.Tool, true)
	if len(c.parts) == 0 {
		c.soft = false
		c.part(a.Tool, nil, verdict{policy.RequireApproval, policy.ReasonPolicyAsks,
			fmt.Sprintf("no rule of the policy %s is about %s, so a person is asked", c.bundle.Name, policy.Brief(a.Tool)),
			"Name the tool in the policy: allow.tools, ask.tools or deny.tools."}, nil)
	}
	if d := &c.ruling.Decision; d.Outcome == policy.RequireApproval && len(a.Request) == 0 && a.Size > 0 {
		c.soft = false
		c.deny(fault.CodeOf(policy.ErrTooLongToShow), policy.ErrTooLongToShow.Msg, policy.ErrTooLongToShow.Suggestion)
	}
}
