// Package gate decides what may be done, asks people where policy says so, and is the only maker of permits.
package gate

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/space"
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
	Entropy   io.Reader    // of keys and of the gate's own mark
	System    id.Principal // who ends questions that nobody answered; the requester where there is none

	Shadow         bool          // record what policy would refuse, and let it pass; the default refuses
	QuestionTime   time.Duration // how long a question stays open; 0 means policy.DefaultQuestionTime
	EffectsPerHour int           // of one principal, counted in the log, over restarts too; 0 means without limit
}

// Gate implements policy.Gate, policy.Agents and policy.Library. Make it with New; every method may be called from any goroutine.
type Gate struct {
	Parts

	standard policy.Bundle // for actions that belong to no space
	key      [32]byte      // marks rulings; made anew at each start, for no ruling outlives the process

	switches switches
	quota    quota
	sealers  sync.Pool // of *sealer
	people   known[principal.Principal]
	spaces   known[space.Space]

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
	g := &Gate{Parts: parts, standard: standard, bundles: map[pin]policy.Bundle{}}
	g.switches.docs = parts.Docs
	g.quota.most, g.quota.docs = parts.EffectsPerHour, parts.Docs
	if _, err := io.ReadFull(parts.Entropy, g.key[:]); err != nil {
		return nil, fmt.Errorf("make the gate's mark: %w", err)
	}
	return g, parts.Evaluator.Validate(standard)
}

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
	e := policy.Explanation{Decision: c.ruling.Decision, Request: c.ruling.Canonical, Parts: c.parts, Limits: c.ruling.Limits}
	if c.ruling.Canonical != nil {
		if shown, err := policy.Render(c.ruling.Canonical); err == nil {
			e.Shown = shown
		}
	}
	return e, nil
}

// sealer makes marks; it is kept for the next one, for making a keyed hash costs more than using it.
type sealer struct {
	mac  hash.Hash
	text []byte
}

// seal marks a ruling as this gate's own. The canonical bytes are under the mark by the digest that the decision names; own holds the two
// together.
func (g *Gate) seal(r policy.Ruling) [32]byte {
	s, ok := g.sealers.Get().(*sealer)
	if !ok {
		s = &sealer{mac: hmac.New(sha256.New, g.key[:])}
	}
	defer g.sealers.Put(s)
	d := r.Decision
	shadow := uint64(0)
	if d.Shadow {
		shadow = 1
	}
	b := s.text[:0]
	b = append(b, d.Action[:]...)
	for _, n := range []uint64{uint64(d.Outcome), shadow, r.Basis.Principal, r.Basis.Space, uint64(d.Approvers), uint64(len(d.Policies)), uint64(len(d.Unsealed))} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	for _, text := range []string{string(r.Standing), d.ReasonCode, d.Reason, d.Suggestion} {
		b = appendText(b, text)
	}
	for _, list := range [][]string{d.Policies, d.Unsealed} {
		for _, text := range list {
			b = appendText(b, text)
		}
	}
	s.text = b
	s.mac.Reset()
	s.mac.Write(b)
	s.text = s.mac.Sum(b)
	return [32]byte(s.text[len(b):])
}

// appendText appends a text and before it its length, so that no two lists of texts give the same bytes.
func appendText(b []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(text))), text...)
}

// own refuses a ruling that this gate did not make, or that was changed since.
func (g *Gate) own(r policy.Ruling) error {
	mark := g.seal(r)
	if !hmac.Equal(mark[:], r.Seal[:]) {
		return policy.ErrPermitMismatch
	}
	canonical, err := r.Action.Canonical()
	if err != nil {
		return err
	}
	if string(canonical) != string(r.Canonical) || event.DigestOf(canonical) != r.Decision.Action {
		return policy.ErrPermitMismatch
	}
	return nil
}

// refusal turns a decision that is no allowance into an error.
func refusal(d policy.Decision) error {
	kind := fault.Denied
	if d.Outcome == policy.RequireApproval {
		kind = fault.Waiting
	}
	return fault.New(kind, d.ReasonCode, "%s", d.Reason).With(d.Suggestion)
}
