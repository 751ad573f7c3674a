// Package gate decides what may be done, asks people where policy says so, and is the only maker of permits.
package gate

//go:generate go test -count=1 -run ^TestTheRightsAreTheWrittenOnes$ . -update

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/token"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate/rules"
)

// Parts are what a gate is made of.
type Parts struct {
	Log       journal.Journal
	Docs      projection.Reader // of Definitions and of the spaces, whose policies and environments it looks up
	Evaluator policy.Evaluator
	Clock     event.Clock
	IDs       *id.Source
	Entropy   io.Reader    // of keys
	Secret    []byte       // under which tokens of engines and of sessions are sealed
	System    id.Principal // who ends questions that nobody answered; the requester where there is none

	Together       bool          // other daemons record what this one decides by: nothing of that is remembered
	Shadow         bool          // record what policy would refuse, and let it pass; the default refuses
	QuestionTime   time.Duration // how long a question stays open; 0 means policy.DefaultQuestionTime
	EffectsPerHour int           // of one principal, counted in the log, over restarts too; 0 means without limit
}

// Gate implements policy.Gate, policy.Agents and policy.Library. Make it with New; every method may be called from any goroutine.
type Gate struct {
	Parts

	standard policy.Bundle // for actions that belong to no space

	switches switches
	quota    quota
	askers   askers
	people   known[principal.Principal]
	spaces   known[space.Space]
	tenants  known[workspace.Workspace]
	tokens   known[token.Token]
	rooms    known[listed]
	types    known[policy.ActionType]

	mu      sync.RWMutex
	bundles map[pin]policy.Bundle // verified; a cache
	halt    func(ws id.Workspace, cause error)
	lifted  func(ws id.Workspace)
}

var (
	_ policy.Gate    = (*Gate)(nil)
	_ policy.Agents  = (*Gate)(nil)
	_ policy.Library = (*Gate)(nil)
)

// maxBundles is how many bundles are kept in memory.
const maxBundles = 256

// New returns a gate of the given parts.
func New(parts Parts) (*Gate, error) {
	standard, err := rules.Resolve(rules.Standard, nil)
	if err != nil {
		return nil, err
	}
	if parts.QuestionTime == 0 {
		parts.QuestionTime = policy.DefaultQuestionTime
	}
	if parts.QuestionTime < 0 || parts.QuestionTime > policy.MaxQuestionTime {
		return nil, fmt.Errorf("a question may stay open for %s at most, not %s", policy.MaxQuestionTime, parts.QuestionTime)
	}
	g := &Gate{Parts: parts, standard: standard, bundles: map[pin]policy.Bundle{}, askers: newAskers()}
	g.switches.docs, g.switches.together = parts.Docs, parts.Together
	g.quota.most, g.quota.docs, g.quota.together = parts.EffectsPerHour, parts.Docs, parts.Together
	return g, nil
}

// Warm gets ready what the first decision needs: the rules of the standard policy, which are read before anything is judged by them.
func (g *Gate) Warm() error { return g.Evaluator.Validate(g.standard) }

// OnHalt tells the gate whom to call when a kill switch is thrown, so that effects under way end at once. It is called once, before
// anything else.
func (g *Gate) OnHalt(f func(ws id.Workspace, cause error)) { g.halt = f }

// OnLift tells the gate whom to call when a kill switch is lifted, so that what it held goes on. It is called once, before anything else.
func (g *Gate) OnLift(f func(ws id.Workspace)) { g.lifted = f }

// Judge implements policy.Gate.
func (g *Gate) Judge(ctx context.Context, a policy.Action) (policy.Ruling, error) {
	c, err := g.judge(ctx, a, nil)
	return c.ruling, err
}

// Explain judges an action in every detail and says what led to the decision. Where bundle is not nil it decides instead of the pinned one.
func (g *Gate) Explain(ctx context.Context, a policy.Action, bundle *policy.Bundle) (policy.Explanation, error) {
	c, err := g.judge(ctx, a, bundle)
	if err != nil {
		return policy.Explanation{}, err
	}
	e := policy.Explanation{Decision: c.ruling.Decision, Request: c.ruling.Canonical, Parts: c.parts, Limits: c.ruling.Limits, PathRules: c.ruling.Limits.PathRules()}
	if c.ruling.Canonical != nil {
		if shown, err := policy.Render(c.ruling.Canonical); err == nil {
			e.Shown = shown
		}
	}
	return e, nil
}

// sealed is the gate's own copy of a ruling that it gave away. Nobody else can make one, or reach what is in it; what the two still share,
// the bytes of slices, is covered by the digest of the decision or decides nothing.
type sealed struct {
	by     *Gate
	ruling policy.Ruling
}

// seal marks a ruling as this gate's own.
func (g *Gate) seal(r policy.Ruling) *sealed { return &sealed{g, r} }

// own refuses a ruling that this gate did not make, or that was changed since.
func (g *Gate) own(r policy.Ruling) error {
	mine, ok := r.Seal.(*sealed)
	if !ok || mine.by != g || !equal(&r, &mine.ruling) || event.DigestOf(r.Canonical) != mine.ruling.Decision.Action {
		return policy.ErrPermitMismatch
	}
	return nil
}

// equal reports whether two rulings say the same of everything but the limits, which bind nobody.
func equal(a, b *policy.Ruling) bool {
	x, y := &a.Action, &b.Action
	d, e := &a.Decision, &b.Decision
	return string(a.Canonical) == string(b.Canonical) && a.Standing == b.Standing && a.Basis == b.Basis &&
		x.Type == y.Type && x.Workspace == y.Workspace && x.Room == y.Room && x.Principal == y.Principal && x.Token == y.Token &&
		x.Space == y.Space && x.Run == y.Run && x.Step == y.Step && x.Operation == y.Operation && x.Subject == y.Subject && x.Fence == y.Fence &&
		x.Path == y.Path && x.Content == y.Content && x.Size == y.Size && x.Overwrite == y.Overwrite && x.Mode == y.Mode && x.MaxBytes == y.MaxBytes &&
		x.Command == y.Command && slices.Equal(x.Argv, y.Argv) && x.Cwd == y.Cwd && maps.Equal(x.Env, y.Env) && x.Stdin == y.Stdin &&
		x.TimeoutMS == y.TimeoutMS && x.Tool == y.Tool && x.ToolHash == y.ToolHash && x.Method == y.Method && x.Target == y.Target &&
		string(x.Limits) == string(y.Limits) && x.Bundle == y.Bundle && x.Zone == y.Zone && string(x.Request) == string(y.Request) && x.Declared == y.Declared &&
		d.Outcome == e.Outcome && d.ReasonCode == e.ReasonCode && d.Reason == e.Reason && d.Suggestion == e.Suggestion &&
		slices.Equal(d.Policies, e.Policies) && d.Action == e.Action && d.Bundle == e.Bundle && d.Shadow == e.Shadow &&
		slices.Equal(d.Unsealed, e.Unsealed) && d.Approvers == e.Approvers
}

// refusal turns a decision that is no allowance into an error.
func refusal(d policy.Decision) error {
	kind := fault.Denied
	if d.Outcome == policy.RequireApproval {
		kind = fault.Waiting
	}
	return fault.New(kind, d.ReasonCode, "%s", d.Reason).With(d.Suggestion)
}
