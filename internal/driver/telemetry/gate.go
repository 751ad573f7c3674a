package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// Gate is a gate whose decisions are counted.
type Gate struct {
	policy.Gate
	clock   event.Clock
	metrics *Metrics
	tracer  *Tracer
	presets func() map[event.Digest]string
}

var _ policy.Gate = (*Gate)(nil)

// WrapGate counts the decisions of a gate, and tells the tracer of them if it is not nil. Presets returns the names of the bundles that
// have one; nil for none.
func WrapGate(g policy.Gate, clock event.Clock, m *Metrics, t *Tracer, presets func() map[event.Digest]string) *Gate {
	return &Gate{g, clock, m, t, presets}
}

// Judge implements policy.Gate.
func (g *Gate) Judge(ctx context.Context, a policy.Action) (policy.Ruling, error) {
	began := g.clock.Now()
	ruling, err := g.Gate.Judge(ctx, a)
	ended := g.clock.Now()
	g.metrics.deciding.Observe(ended.Sub(began).Seconds())
	outcome, reason := ruling.Decision.Outcome.String(), ruling.Decision.ReasonCode
	if err != nil {
		outcome, reason = "error", ""
	} else {
		g.metrics.tallies.of(a.Workspace).decisions.Add(1)
	}
	reason, preset := among(reason, reasons), g.preset(ruling.Decision.Bundle)
	g.metrics.decisions.WithLabelValues(outcome, reason, preset).Inc()
	tell := func(r *traced) {
		g.tracer.asked(r, a.Step, began)
		g.tracer.moment(r.at(a.Run, a.Step), "gate decide", began, ended, "", attribute.String("agentbox.action.type", actionType(a.Type)),
			attribute.String("agentbox.gate.outcome", outcome), attribute.String("agentbox.gate.reason", reason),
			attribute.String("agentbox.policy.preset", preset))
	}
	if r := g.tracer.of(ctx, a.Workspace, a.Run); r != nil {
		tell(r)
	} else if a.Step != "" {
		g.tracer.later(a.Run, tell)
	}
	return ruling, err
}

// Record implements policy.Gate. The answer shows the decision.
func (g *Gate) Record(ctx context.Context, origin event.Origin, a policy.Action, b event.Batch) (event.Receipt, error) {
	receipt, err := g.Gate.Record(ctx, origin, a, b)
	outcome, reason := policy.Allow.String(), policy.ReasonDefaultAllow
	switch {
	case fault.KindOf(err) == fault.Denied:
		outcome, reason = policy.Deny.String(), fault.CodeOf(err)
	case fault.KindOf(err) == fault.Waiting:
		outcome, reason = policy.RequireApproval.String(), fault.CodeOf(err)
	case err != nil:
		outcome, reason = "error", ""
	}
	if err == nil || outcome != "error" {
		g.metrics.tallies.of(a.Workspace).decisions.Add(1)
	}
	g.metrics.decisions.WithLabelValues(outcome, among(reason, reasons), g.preset(event.Digest{})).Inc()
	return receipt, err
}

// Begin implements policy.Gate.
func (g *Gate) Begin(ctx context.Context, ruling policy.Ruling, approval id.Approval, intent event.Batch,
	with ...policy.Ruling) (permit policy.Permit, receipt event.Receipt, err error) {
	a := ruling.Action
	r := g.tracer.of(ctx, a.Workspace, a.Run)
	if r == nil && a.Step != "" && g.tracer.expect(a.Run, intent.Drafts) {
		if r = g.tracer.of(ctx, a.Workspace, a.Run); r != nil {
			g.tracer.now(a.Run, r)
		}
		defer func() {
			if err != nil || receipt.Replayed {
				g.tracer.unexpect(a.Run)
			}
		}()
	}
	if r == nil {
		return g.Gate.Begin(ctx, ruling, approval, intent, with...)
	}
	began, at := g.clock.Now(), r.at(a.Run, a.Step)
	self := g.tracer.fresh(at.parent, began)
	permit, receipt, err = g.Gate.Begin(trace.ContextWithSpanContext(ctx, self), ruling, approval, intent, with...)
	if err == nil {
		g.tracer.permitted(r, a, permit.Digest())
	}
	g.tracer.tell(span{
		name: "gate permit", kind: trace.SpanKindInternal, parent: at.parent, self: self, began: began, ended: g.clock.Now(),
		failed:     fault.CodeOf(err),
		attributes: []attribute.KeyValue{attribute.String("agentbox.action.type", actionType(a.Type))},
	})
	return permit, receipt, err
}

// Glance implements policy.Gate.
func (g *Gate) Glance(ruling policy.Ruling) (policy.Permit, error) {
	permit, err := g.Gate.Glance(ruling)
	if err == nil {
		g.tracer.glanced(ruling.Action, permit.Digest())
	}
	return permit, err
}

// actionType is the type of an action, of those that there are.
func actionType(typ string) string {
	if _, known := policy.KindOf(typ); known {
		return typ
	}
	return other
}

// preset is the name of a bundle, of the short list of those that have one.
func (g *Gate) preset(bundle event.Digest) string {
	if g.presets != nil {
		if name, ok := g.presets()[bundle]; ok {
			return name
		}
	}
	return other
}

// reasons are the gate's own reason codes. A bundle may have others, which its author chooses.
var reasons = []string{
	policy.ReasonDefaultAllow, policy.ReasonNoPolicy, policy.ReasonPolicyForbids, policy.ReasonPolicyAsks, policy.ReasonApprovalAllows,
	policy.ReasonStandingAllows, policy.ReasonKillSwitch, policy.ReasonUnknownAction, policy.ReasonPrincipalNotFound,
	policy.ReasonAgentQuarantined,
	policy.ReasonQuotaExceeded, policy.ReasonLimitExceeded, policy.ReasonClockUnreadable, policy.ReasonPolicyUnavailable,
	policy.ReasonPreApproval, policy.ReasonTokenNotFound,
	policy.ReasonRoleTooLow, policy.ReasonUnresolved, policy.ReasonCommandInvalid, policy.ReasonActionInvalid, policy.ReasonTooLongToShow,
	policy.ReasonApprovalDenied, policy.ReasonApprovalExpired, policy.ReasonApprovalMismatch,
}
