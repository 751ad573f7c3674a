package spaces

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// Routing decides in which tier a command runs, and moves spaces to a heavier one. It implements space.Routing.
type Routing struct {
	Tiers
	catalog *Catalog
	living  *Living
	acts    policy.Client
	gate    policy.Gate
	library policy.Library
	store   space.Store
	Place   space.Place // finds what a command needs; nil finds nothing
	logger  *slog.Logger
}

var _ space.Routing = (*Routing)(nil)

// Promote moves a space to a heavier tier, while no operation of it is under way. If to is "", or a runtime that leaves the tier open, it
// is the strongest tier. A space that is already there does not change.
func (ro *Routing) Promote(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, to string, why space.Why) (space.Space,
	error) {
	leave, err := ro.living.alone(s)
	if err != nil {
		return space.Space{}, err
	}
	defer leave()
	doc, err := ro.catalog.alive(ctx, ws, s)
	if err == nil && doc.Pause != nil {
		err = cmp.Or(ro.acts.Early(ctx, origin, actionOn(policy.SpacePromote, origin, doc)), error(space.ErrPaused))
	}
	if err != nil {
		return doc, err
	}
	return ro.promote(ctx, origin, ws, s, to, why, ro.acts.Ask)
}

// PromoteHeld implements space.Routing. It does not wait for a person: if policy asks, it returns a refusal.
func (ro *Routing) PromoteHeld(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, to string,
	why space.Why) (space.Space,
	error) {
	return ro.promote(ctx, origin, ws, s, to, why, func(ctx context.Context, origin event.Origin, a policy.Action) (policy.Ruling, id.Approval,
		error) {
		ruling, err := ro.acts.Allow(ctx, origin, a)
		return ruling, "", err
	})
}

// judging takes an action to the gate.
type judging func(ctx context.Context, origin event.Origin, a policy.Action) (policy.Ruling, id.Approval, error)

func (ro *Routing) promote(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, to string, why space.Why,
	judge judging) (space.Space, error) {
	doc, err := ro.catalog.alive(ctx, ws, s)
	if err != nil {
		return doc, err
	}
	action := actionOn(policy.SpacePromote, origin, doc)
	tier, err := ro.above(ctx, doc, to)
	if err != nil || tier.Name() == doc.Tier { // nothing to do, which only a permitted caller may learn
		return doc, cmp.Or(ro.acts.Early(ctx, origin, action), err)
	}
	action.Target = tier.Name()
	ruling, approval, err := judge(ctx, origin, action)
	if err != nil {
		return doc, err
	}
	if err := ro.lift(ctx, origin, doc, tier, why, ruling, approval); err != nil {
		return doc, err
	}
	return ro.catalog.Space(ctx, ws, s)
}

// above returns the tier to which a space may be promoted, or its own where it is there.
func (ro *Routing) above(ctx context.Context, doc space.Space, to string) (tier space.Tier, err error) {
	switch to {
	case "", space.RuntimeAuto, space.RuntimeHeavy:
		tier, err = ro.strongest()
	default:
		tier, err = ro.tier(to)
	}
	if err != nil || tier.Name() == doc.Tier {
		return tier, err
	}
	bundle, err := ro.library.Bundle(ctx, doc.Workspace, doc.Bundle)
	switch {
	case err != nil:
		return nil, err
	case ro.place(tier.Name()) < ro.place(doc.Tier):
		return nil, fault.New(fault.Conflict, "tier_not_heavier", "the space is in the tier %s; it never goes back to %s", doc.Tier, tier.Name()).
			With("fork a snapshot from before, or make a new space")
	case !moves(doc):
		return nil, errRuntimeFixed
	case doc.Status == space.Creating:
		return nil, fault.New(ErrBusy.Kind, ErrBusy.Code, "the space is still being made")
	}
	return tier, ro.accepts(bundle.Limits.Weakest, tier.Name())
}

// lift ends the instance of a space, starts the one of the heavier tier, and records that. A space that does not start there, or a daemon
// that ends before it is recorded, leaves the space as it was: the next operation starts it in its own tier again.
func (ro *Routing) lift(ctx context.Context, origin event.Origin, doc space.Space, tier space.Tier, why space.Why, ruling policy.Ruling,
	approval id.Approval) error {
	l := ro.living.of(doc.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.halt(); err != nil {
		ro.logger.Warn("close a space", "code", "space_not_closed", "space", doc.ID, "error", err)
	}
	lifted := doc
	lifted.Tier = tier.Name()
	instance, err := ro.living.start(ctx, lifted, func(doc space.Space) (policy.Permit, error) {
		return ro.living.mayStart(ctx,
			origin.Correlation, doc)
	})
	if err != nil {
		return err
	}
	promoted := space.Promoted{
		Space: doc.ID, From: doc.Tier, To: tier.Name(), Code: why.Code, Reason: shortened(why.Reason), Run: why.Run, Operation: why.Operation,
		Unenforced: instance.Unenforced(),
	}
	_, _, err = ro.gate.Begin(context.WithoutCancel(ctx), ruling, approval, origin.Once(event.Batch{
		Workspace: doc.Workspace, Drafts: []event.Draft{draftOf(space.EventPromoted, origin, doc, promoted)},
	}))
	if err != nil {
		return errors.Join(err, instance.Close())
	}
	l.instance = instance
	return nil
}

// Route implements space.Routing.
func (ro *Routing) Route(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, c space.Command) (space.Route, error) {
	doc, err := ro.catalog.alive(ctx, ws, s)
	if err != nil {
		return space.Route{}, err
	}
	r := space.Route{Runtime: cmp.Or(doc.Runtime, doc.Tier), Tier: doc.Tier, To: doc.Tier}
	at := ro.place(doc.Tier)
	if at < 0 || ro.Place == nil {
		return r, nil
	}
	files, _, err := ro.store.Open(doc.ID, doc.UID, doc.Limits)
	if err != nil {
		return r, err
	}
	offers := ro.Offers()
	r.Needs = ro.Place(offers[at], c, func(path string, most int64) ([]byte, error) {
		return read(ctx, ro.gate, origin, doc, files, path, most)
	})
	for i, n := range r.Needs {
		r.Needs[i].Tiers = slices.DeleteFunc(offers.With(n), func(name string) bool { return name == doc.Tier })
	}
	r.Unreachable = offers.Unreachable(r.Needs)
	if heavier, err := ro.strongest(); err == nil && moves(doc) && len(r.Unreachable) == 0 && serves(heavier.Offer(), r.Needs) {
		r.To = heavier.Name()
	}
	for _, n := range r.Needs {
		if r.To == r.Tier || !offers[ro.place(r.To)].Has(n) {
			r.Unmet = append(r.Unmet, n)
		}
	}
	return r, ctx.Err()
}

// serves reports whether a tier is worth a promotion: it satisfies at least one need of a command, and all except those that the command
// only tries.
func serves(has space.Offer, needs []space.Need) bool {
	some := false
	for _, n := range needs {
		if !has.Has(n) && !n.Tried {
			return false
		}
		some = some || has.Has(n)
	}
	return some
}

// read returns the beginning of a file of a space, if the origin may read it. Like every read that judges a command, it is not recorded.
func read(ctx context.Context, gate policy.Gate, origin event.Origin, doc space.Space, files space.Files, path string, most int64) ([]byte,
	error) {
	path, err := space.CleanFilePath(path)
	if err != nil {
		return nil, err
	}
	ruling, err := gate.Judge(ctx, policy.Action{
		Type: policy.FileRead, Workspace: doc.Workspace, Room: doc.Room, Principal: origin.Principal, Token: origin.Token, Space: doc.ID,
		Path: path, Bundle: doc.Bundle,
	})
	if err != nil {
		return nil, err
	}
	if d := ruling.Decision; !d.Allowed() {
		return nil, fault.New(fault.Denied, d.ReasonCode, "%s", d.Reason)
	}
	permit, err := gate.Glance(ruling)
	if err != nil {
		return nil, err
	}
	file, err := files.Read(ctx, permit)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most))
}

// MaxReason is how many characters of why a space is promoted are kept.
const MaxReason = 500

var errRuntimeFixed = fault.New(fault.Conflict, "runtime_fixed", "the space was asked to run in one tier and stays in it").
	With("make one with the runtime auto, or heavy; a fork has the same runtime")

// shortened returns at most MaxReason characters of a text.
func shortened(text string) string {
	if runes := []rune(text); len(runes) > MaxReason {
		return string(runes[:MaxReason-1]) + "…"
	}
	return text
}
