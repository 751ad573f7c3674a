package spaces

import (
	"cmp"
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// MaxReason is how many characters of why a space is promoted are kept.
const MaxReason = 500

var errRuntimeFixed = fault.New(fault.Conflict, "runtime_fixed", "the space was asked to run in one tier and stays in it").
	With("make one with the runtime auto, or heavy; a fork has the same runtime")

// Promote moves a space to a heavier tier, while no operation of it is under way. If to is "", or a runtime that leaves the tier open, it
// is the strongest tier. A space that is already there does not change.
func (k *Service) Promote(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, to string, why space.Why) (space.Space,
	error) {
	leave, err := k.alone(s)
	if err != nil {
		return space.Space{}, err
	}
	defer leave()
	return k.promote(ctx, origin, ws, s, to, why, k.through().Ask)
}

// PromoteHeld implements space.Keeping. It does not wait for a person: if policy asks, it returns a refusal.
func (k *Service) PromoteHeld(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, to string, why space.Why) (space.Space,
	error) {
	return k.promote(ctx, origin, ws, s, to, why, func(ctx context.Context, origin event.Origin, a policy.Action) (policy.Ruling, id.Approval,
		error) {
		ruling, err := k.through().Allow(ctx, origin, a)
		return ruling, "", err
	})
}

// judging takes an action to the gate.
type judging func(ctx context.Context, origin event.Origin, a policy.Action) (policy.Ruling, id.Approval, error)

func (k *Service) promote(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, to string, why space.Why,
	judge judging) (space.Space, error) {
	doc, err := k.alive(ctx, ws, s)
	if err != nil {
		return doc, err
	}
	action := k.action(policy.SpacePromote, origin, doc)
	tier, err := k.above(ctx, doc, to)
	if err != nil || tier.Name() == doc.Tier { // nothing to do, which only a permitted caller may learn
		return doc, cmp.Or(k.through().Early(ctx, origin, action), err)
	}
	action.Target = tier.Name()
	ruling, approval, err := judge(ctx, origin, action)
	if err != nil {
		return doc, err
	}
	if err := k.lift(ctx, origin, doc, tier, why, ruling, approval); err != nil {
		return doc, err
	}
	return k.Space(ctx, ws, s)
}

// above returns the tier to which a space may be promoted, or its own where it is there.
func (k *Service) above(ctx context.Context, doc space.Space, to string) (tier space.Tier, err error) {
	switch to {
	case "", space.RuntimeAuto, space.RuntimeHeavy:
		tier, err = k.strongest()
	default:
		tier, err = k.tier(to)
	}
	if err != nil || tier.Name() == doc.Tier {
		return tier, err
	}
	bundle, err := k.Library.Bundle(ctx, doc.Workspace, doc.Bundle)
	switch {
	case err != nil:
		return nil, err
	case k.place(tier.Name()) < k.place(doc.Tier):
		return nil, fault.New(fault.Conflict, "tier_not_heavier", "the space is in the tier %s; it never goes back to %s", doc.Tier, tier.Name()).
			With("fork a snapshot from before, or make a new space")
	case !moves(doc):
		return nil, errRuntimeFixed
	case doc.Status == space.Creating:
		return nil, fault.New(ErrBusy.Kind, ErrBusy.Code, "the space is still being made")
	}
	return tier, k.accepts(bundle.Limits.Weakest, tier.Name())
}

// lift ends the instance of a space, starts the one of the heavier tier, and records that. A space that does not start there, or a daemon
// that ends before it is recorded, leaves the space as it was: the next operation starts it in its own tier again.
func (k *Service) lift(ctx context.Context, origin event.Origin, doc space.Space, tier space.Tier, why space.Why, ruling policy.Ruling,
	approval id.Approval) error {
	l := k.of(doc.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.halt(); err != nil {
		k.Logger.Warn("close a space", "code", "space_not_closed", "space", doc.ID, "error", err)
	}
	lifted := doc
	lifted.Tier = tier.Name()
	instance, err := k.start(ctx, lifted, func(doc space.Space) (policy.Permit, error) { return k.mayStart(ctx, origin.Correlation, doc) })
	if err != nil {
		return err
	}
	promoted := space.Promoted{
		Space: doc.ID, From: doc.Tier, To: tier.Name(), Code: why.Code, Reason: shortened(why.Reason), Run: why.Run, Operation: why.Operation,
		Unenforced: instance.Unenforced(),
	}
	_, _, err = k.Gate.Begin(context.WithoutCancel(ctx), ruling, approval, origin.Once(event.Batch{
		Workspace: doc.Workspace, Drafts: []event.Draft{k.event(space.EventPromoted, origin, doc, promoted)},
	}))
	if err != nil {
		return errors.Join(err, instance.Close())
	}
	l.instance = instance
	return nil
}

// shortened returns at most MaxReason characters of a text.
func shortened(text string) string {
	if runes := []rune(text); len(runes) > MaxReason {
		return string(runes[:MaxReason-1]) + "…"
	}
	return text
}
