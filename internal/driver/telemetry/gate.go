package telemetry

import (
	"context"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
)

// Gate is a gate whose decisions are counted.
type Gate struct {
	policy.Gate
	clock   event.Clock
	metrics *Metrics
	presets map[event.Digest]string
}

var _ policy.Gate = (*Gate)(nil)

// WrapGate counts the decisions of a gate. Presets are the names of the bundles that have one.
func WrapGate(g policy.Gate, clock event.Clock, m *Metrics, presets map[event.Digest]string) *Gate {
	return &Gate{g, clock, m, presets}
}

// Judge implements policy.Gate.
func (g *Gate) Judge(ctx context.Context, a policy.Action) (policy.Ruling, error) {
	began := g.clock.Now()
	ruling, err := g.Gate.Judge(ctx, a)
	g.metrics.deciding.Observe(g.clock.Now().Sub(began).Seconds())
	outcome, reason := ruling.Decision.Outcome.String(), ruling.Decision.ReasonCode
	if err != nil {
		outcome, reason = "error", ""
	} else {
		g.metrics.tallies.of(a.Workspace).decisions.Add(1)
	}
	g.metrics.decisions.WithLabelValues(outcome, among(reason, reasons), g.preset(ruling.Decision.Bundle)).Inc()
	return ruling, err
}

// preset is the name of a bundle, of the short list of those that have one.
func (g *Gate) preset(bundle event.Digest) string {
	if name, ok := g.presets[bundle]; ok {
		return name
	}
	return other
}

// reasons are the gate's own reason codes. A bundle may have others, which its author chooses.
var reasons = []string{
	policy.ReasonDefaultAllow, policy.ReasonNoPolicy, policy.ReasonPolicyForbids, policy.ReasonPolicyAsks, policy.ReasonApprovalAllows,
	policy.ReasonStandingAllows, policy.ReasonKillSwitch, policy.ReasonUnknownAction, policy.ReasonPrincipalNotFound, policy.ReasonAgentQuarantined,
	policy.ReasonQuotaExceeded, policy.ReasonLimitExceeded, policy.ReasonPolicyUnavailable, policy.ReasonPreApproval, policy.ReasonTokenNotFound,
	policy.ReasonRoleTooLow, policy.ReasonUnresolved, policy.ReasonCommandInvalid, policy.ReasonActionInvalid, policy.ReasonTooLongToShow,
	policy.ReasonApprovalDenied, policy.ReasonApprovalExpired, policy.ReasonApprovalMismatch,
}
