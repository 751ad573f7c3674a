package policy

import (
	"slices"
	"sync/atomic"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
)

// Permit is the right to do one action once. Only the gate makes one (arch_test.go proves it); the zero value permits nothing. A driver
// that touches the world takes a permit, redeems it, and does the redeemed action.
type Permit struct {
	grant    *grant
	supplied *supplied // what Supply was given; nil for nothing
}

type grant struct {
	canonical []byte
	digest    event.Digest
	revoked   func() error // asked at redemption; the kill switch may have been thrown since
	spent     atomic.Bool
	returned  atomic.Bool // it was given back after an attempt without effect; that is possible once
}

// The refusals of a permit.
var (
	// ErrNoPermit refuses the zero Permit.
	ErrNoPermit = fault.New(fault.Denied, "permit_missing", "there is no permit: ask the gate first")
	// ErrPermitSpent refuses a permit's second use.
	ErrPermitSpent = fault.New(fault.Denied, "permit_spent", "the permit was used before; ask the gate again")
	// ErrPermitMismatch refuses a permit for another action, or with content that differs from the decided one.
	ErrPermitMismatch = fault.New(fault.Denied, "approval_mismatch", "what is to be done is not what was decided; ask again")
)

// Issue makes a permit for an action's canonical bytes. Only the gate calls it. The permit calls the function revoked, if not nil, at
// redemption and may still refuse.
func Issue(canonical []byte, revoked func() error) Permit {
	return Permit{grant: &grant{canonical: canonical, digest: event.DigestOf(canonical), revoked: revoked}}
}

// Redeem spends the permit for an action of one of the given types and returns that action, read from the bytes that were decided on.
// The masks of secret variables are replaced by the values that Supply was given.
func (p Permit) Redeem(types ...string) (Action, error) {
	if p.grant == nil {
		return Action{}, ErrNoPermit
	}
	if p.grant.digest != event.DigestOf(p.grant.canonical) {
		return Action{}, ErrPermitMismatch
	}
	action, err := ParseAction(p.grant.canonical)
	if err != nil {
		return Action{}, err
	}
	if !slices.Contains(types, action.Type) {
		return Action{}, ErrPermitMismatch
	}
	if err := p.unmask(&action); err != nil {
		return Action{}, err
	}
	if p.grant.revoked != nil {
		if err := p.grant.revoked(); err != nil {
			return Action{}, err
		}
	}
	if p.grant.spent.Swap(true) {
		return Action{}, ErrPermitSpent
	}
	return action, nil
}

// Try is Redeem for an attempt that may end without effect: a lighter tier may find that it cannot do the action and undo its work. The
// function back is never nil. It makes the permit unspent again, so that a heavier tier can redeem it. It works once in a permit's life.
// After that, or if the permit was refused, it does nothing. A caller that has caused any effect must not call it.
func (p Permit) Try(types ...string) (a Action, back func(), err error) {
	a, err = p.Redeem(types...)
	if err != nil {
		return Action{}, func() {}, err
	}
	return a, func() {
		if !p.grant.returned.Swap(true) { // there is no other attempt before the first such call, so that a late one takes nothing away
			p.grant.spent.Store(false)
		}
	}, nil
}

// Digest names the action of the permit; zero for the zero Permit.
func (p Permit) Digest() event.Digest {
	if p.grant == nil {
		return event.Digest{}
	}
	return p.grant.digest
}
