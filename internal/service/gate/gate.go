// Package gate judges every action, asks people if policy says so, and is the only maker of permits.
package gate

//go:generate go test -count=1 -run ^TestTheRightsAreTheWrittenOnes$ . -update

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate/actiontypes"
	"agentbox/internal/service/gate/approvals"
	"agentbox/internal/service/gate/authority"
	"agentbox/internal/service/gate/bundles"
	"agentbox/internal/service/gate/killswitch"
)

// Parts are the dependencies of the gate.
type Parts struct {
	Log       journal.Journal
	Docs      projection.Reader // of Definitions and of the spaces, whose policies and environments it looks up
	Evaluator policy.Evaluator
	Clock     event.Clock
	IDs       *id.Source
	System    id.Principal // ends questions that nobody answered; without it the requester does

	Together       bool          // other daemons record into the same log, so the gate caches nothing that it decides by
	Shadow         bool          // record what policy would refuse, and let it pass; the default refuses
	QuestionTime   time.Duration // how long a question stays open; 0 means policy.DefaultQuestionTime
	EffectsPerHour int           // of one principal, counted in the log, over restarts too; 0 means without limit
}

// Gate implements policy.Gate. Related work that does not judge is in services of its own. Make it with New; any goroutine may call its
// methods.
type Gate struct {
	Parts

	KillSwitch  *killswitch.Service
	Approvals   *approvals.Service
	Bundles     *bundles.Service
	ActionTypes *actiontypes.Service

	authority *authority.Reader
	quota     quota
	spaces    projection.Known[space.Space]
	rooms     projection.Known[listed]
}

var _ policy.Gate = (*Gate)(nil)

// New returns a gate of the given parts.
func New(parts Parts) (*Gate, error) {
	if parts.QuestionTime == 0 {
		parts.QuestionTime = policy.DefaultQuestionTime
	}
	if parts.QuestionTime < 0 || parts.QuestionTime > policy.MaxQuestionTime {
		return nil, fmt.Errorf("a question may stay open for %s at most, not %s", policy.MaxQuestionTime, parts.QuestionTime)
	}
	g := &Gate{Parts: parts}
	g.authority = authority.New(authority.Parts{Docs: parts.Docs, Clock: parts.Clock})
	g.KillSwitch = killswitch.New(killswitch.Parts{Log: parts.Log, Docs: parts.Docs, Clock: parts.Clock, IDs: parts.IDs, Who: g.authority,
		Together: parts.Together})
	g.ActionTypes = actiontypes.New(actiontypes.Parts{Docs: parts.Docs, Clock: parts.Clock, Gate: g})
	g.Approvals = approvals.New(approvals.Parts{
		Log: parts.Log, Docs: parts.Docs, Clock: parts.Clock, IDs: parts.IDs, System: parts.System, QuestionTime: parts.QuestionTime,
		People: g.authority, Judge: g, Switch: g.KillSwitch, Declarations: g.ActionTypes,
	})
	g.quota.most, g.quota.docs, g.quota.together = parts.EffectsPerHour, parts.Docs, parts.Together
	var err error
	g.Bundles, err = bundles.New(bundles.Parts{
		Log: parts.Log, Docs: parts.Docs, Evaluator: parts.Evaluator, Clock: parts.Clock, Living: g.authority, Declared: g.ActionTypes,
	})
	return g, err
}

// Warm prepares the first decision: it compiles the standard policy, which must be read before it can judge anything.
func (g *Gate) Warm() error { return g.Bundles.Warm() }

// Judge implements policy.Gate.
func (g *Gate) Judge(ctx context.Context, a policy.Action) (policy.Ruling, error) {
	c, err := g.judge(ctx, a, nil)
	return c.ruling, err
}

// Explain judges an action in full detail and reports how the decision came about. A non-nil bundle replaces the pinned one.
func (g *Gate) Explain(ctx context.Context, a policy.Action, bundle *policy.Bundle) (policy.Explanation, error) {
	c, err := g.judge(ctx, a, bundle)
	if err != nil {
		return policy.Explanation{}, err
	}
	e := policy.Explanation{Decision: c.ruling.Decision, Request: c.ruling.Canonical, Parts: c.parts, Limits: c.ruling.Limits,
		PathRules: c.ruling.Limits.PathRules()}
	e.Shown, _ = policy.Render(c.ruling.Canonical) // empty for an action that cannot be shown in full
	return e, nil
}

// Ask implements policy.Gate.
func (g *Gate) Ask(ctx context.Context, origin event.Origin, r policy.Ruling, q policy.Ask, with event.Batch) (policy.Approval, error) {
	return g.Approvals.Ask(ctx, origin, r, q, with)
}

// AskOnce implements policy.Gate.
func (g *Gate) AskOnce(ctx context.Context, origin event.Origin, r policy.Ruling, with event.Batch) (policy.Approval, error) {
	return g.Approvals.AskOnce(ctx, origin, r, with)
}

// Withdraw implements policy.Gate.
func (g *Gate) Withdraw(ctx context.Context, origin event.Origin, approval id.Approval, reason string, with event.Batch) (event.Receipt,
	error) {
	return g.Approvals.Withdraw(ctx, origin, approval, reason, with)
}

// sealed is the gate's own copy of a ruling that it returned. Nobody else can make one, or reach its fields. Both still share the bytes of
// slices. Those are covered by the digest of the decision, or do not affect it.
type sealed struct {
	by     *Gate
	ruling policy.Ruling
}

// seal marks a ruling as this gate's own.
func (g *Gate) seal(r policy.Ruling) *sealed { return &sealed{g, r} }

// Own refuses a ruling that this gate did not make, or that was changed since.
func (g *Gate) Own(r policy.Ruling) error {
	mine, ok := r.Seal.(*sealed)
	if !ok || mine.by != g || !equal(&r, &mine.ruling) || event.DigestOf(r.Canonical) != mine.ruling.Decision.Action {
		return policy.ErrPermitMismatch
	}
	return nil
}

// equal reports whether two rulings are equal in everything except the limits, which bind nobody. It is one comparison of all fields.
//
//nolint:cyclop // it compares all fields
func equal(a, b *policy.Ruling) bool {
	x, y := &a.Action, &b.Action
	d, e := &a.Decision, &b.Decision
	return string(a.Canonical) == string(b.Canonical) && a.Standing == b.Standing && a.Basis == b.Basis &&
		x.Type == y.Type && x.Workspace == y.Workspace && x.Room == y.Room && x.Principal == y.Principal && x.Token == y.Token &&
		x.Space == y.Space && x.Run == y.Run && x.Step == y.Step && x.Operation == y.Operation && x.Subject == y.Subject && x.Fence == y.Fence &&
		x.Path == y.Path && x.Content == y.Content && x.Size == y.Size && x.Overwrite == y.Overwrite && x.Mode == y.Mode &&
		x.MaxBytes == y.MaxBytes &&
		x.Command == y.Command && slices.Equal(x.Argv, y.Argv) && x.Cwd == y.Cwd && maps.Equal(x.Env, y.Env) && x.Stdin == y.Stdin &&
		x.TimeoutMS == y.TimeoutMS && x.Background == y.Background && x.Attach == y.Attach &&
		x.Tool == y.Tool && x.ToolHash == y.ToolHash && x.Method == y.Method && x.Target == y.Target &&
		string(x.Limits) == string(y.Limits) && x.Bundle == y.Bundle && x.Zone == y.Zone && string(x.Request) == string(y.Request) &&
		x.Declared == y.Declared &&
		d.Outcome == e.Outcome && d.ReasonCode == e.ReasonCode && d.Reason == e.Reason && d.Suggestion == e.Suggestion &&
		slices.Equal(d.Policies, e.Policies) && d.Action == e.Action && d.Bundle == e.Bundle && d.Shadow == e.Shadow &&
		slices.Equal(d.Unsealed, e.Unsealed) && d.Approvers == e.Approvers
}
