package spaces

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

var errNoTier = fault.New(fault.Unavailable, "tier_unavailable", "no tier can make spaces on this host; run agentbox doctor")

// asks makes one wish of the two names that a request may give it.
func (q *Request) asks() error {
	if q.Runtime != "" && q.Tier != "" && q.Runtime != q.Tier {
		return invalid("runtime is %.32q and tier, its older name, is %.32q; name one of them", q.Runtime, q.Tier)
	}
	q.Runtime = cmp.Or(q.Runtime, q.Tier)
	q.Tier = q.Runtime
	return nil
}

// tier returns the tier of a name.
func (k *Service) tier(name string) (space.Tier, error) {
	i := k.place(name)
	if i < 0 {
		return nil, fault.New(fault.Invalid, "tier_unknown", "there is no runtime or tier %.32q here", name).With("ask for one of these: " +
			strings.Join(k.runtimes(), ", "))
	}
	return k.Tiers[i], nil
}

// runtimes are the runtimes that a space may request here.
func (k *Service) runtimes() []string {
	names := []string{space.RuntimeAuto, space.RuntimeHeavy}
	for _, t := range k.Tiers {
		names = append(names, t.Name())
	}
	return names
}

// place returns where a tier stands among those of this daemon, from the weakest to the strongest; -1 for none of them.
func (k *Service) place(name string) int {
	return slices.IndexFunc(k.Tiers, func(t space.Tier) bool { return t.Name() == name })
}

// strongest returns the strongest tier of this daemon that is not nano.
func (k *Service) strongest() (space.Tier, error) {
	if n := len(k.Tiers); n > 0 && k.Tiers[n-1].Name() != space.Nano {
		return k.Tiers[n-1], nil
	}
	return nil, errNoTier
}

// begins returns the tier in which a new space with this runtime begins. Its policy accepts no tier weaker than weakest. An impossible
// request is refused: nothing is downgraded.
func (k *Service) begins(runtime, weakest string) (tier space.Tier, err error) {
	switch runtime {
	case "", space.RuntimeAuto:
		if i := k.place(space.Nano); i >= 0 && k.accepts(weakest, space.Nano) == nil {
			return k.Tiers[i], nil
		}
		tier, err = k.strongest()
	case space.RuntimeHeavy:
		tier, err = k.strongest()
	default:
		tier, err = k.tier(runtime)
	}
	if err == nil {
		err = k.accepts(weakest, tier.Name())
	}
	return tier, err
}

// accepts refuses a tier of this daemon that is weaker than the weakest one that a policy accepts. Nano is the weakest of all. So a policy
// that names it accepts every tier, also if this daemon has no nano tier.
func (k *Service) accepts(weakest, name string) error {
	least := k.place(weakest)
	switch {
	case weakest == "" || weakest == space.Nano:
		return nil
	case least < 0:
		return fault.New(fault.Unavailable, errNoTier.Code,
			"the policy accepts no tier weaker than %.32s, which this host has not; run agentbox doctor", weakest)
	case k.place(name) < least:
		return fault.New(fault.Denied, "tier_not_accepted", "the policy accepts no tier weaker than %.32s; %.32s is", weakest, name).
			With("ask for the runtime heavy, or for auto")
	}
	return nil
}

// moves reports whether a space is promoted where that is needed.
func moves(doc space.Space) bool { return doc.Runtime == space.RuntimeAuto && doc.Tier == space.Nano }

// tentative reports whether the effects of a command in a space are dropped if the tier lacks something, because a heavier tier has it.
func (k *Service) tentative(doc space.Space) bool {
	_, err := k.strongest()
	return moves(doc) && err == nil
}

// Offers implements space.Keeping.
func (k *Service) Offers() space.Offers {
	all := make(space.Offers, len(k.Tiers))
	for i, t := range k.Tiers {
		all[i] = t.Offer()
	}
	return all
}

// elsewhere returns the function that reports whether a heavier tier has what the tier of a space lacks.
func (k *Service) elsewhere(doc space.Space) func(space.Lack) bool {
	heavier, err := k.strongest()
	if err != nil || doc.Tier == heavier.Name() {
		return nil
	}
	return func(l space.Lack) bool { return heavier.Offer().Has(l.Need()) }
}

// Route implements space.Keeping.
func (k *Service) Route(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, c space.Command) (space.Route, error) {
	doc, err := k.alive(ctx, ws, s)
	if err != nil {
		return space.Route{}, err
	}
	r := space.Route{Runtime: cmp.Or(doc.Runtime, doc.Tier), Tier: doc.Tier, To: doc.Tier}
	at := k.place(doc.Tier)
	if at < 0 || k.Place == nil {
		return r, nil
	}
	files, _, err := k.Store.Open(doc.ID, doc.UID, doc.Limits)
	if err != nil {
		return r, err
	}
	offers := k.Offers()
	r.Needs = k.Place(offers[at], c, func(path string, most int64) ([]byte, error) { return k.read(ctx, origin, doc, files, path, most) })
	for i, n := range r.Needs {
		r.Needs[i].Tiers = slices.DeleteFunc(offers.With(n), func(name string) bool { return name == doc.Tier })
	}
	r.Unreachable = offers.Unreachable(r.Needs)
	if heavier, err := k.strongest(); err == nil && moves(doc) && len(r.Unreachable) == 0 && serves(heavier.Offer(), r.Needs) {
		r.To = heavier.Name()
	}
	for _, n := range r.Needs {
		if r.To == r.Tier || !offers[k.place(r.To)].Has(n) {
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
func (k *Service) read(ctx context.Context, origin event.Origin, doc space.Space, files space.Files, path string, most int64) ([]byte,
	error) {
	path, err := space.CleanFilePath(path)
	if err != nil {
		return nil, err
	}
	ruling, err := k.Gate.Judge(ctx, policy.Action{
		Type: policy.FileRead, Workspace: doc.Workspace, Room: doc.Room, Principal: origin.Principal, Token: origin.Token, Space: doc.ID,
		Path: path, Bundle: doc.Bundle,
	})
	if err != nil {
		return nil, err
	}
	if d := ruling.Decision; !d.Allowed() {
		return nil, fault.New(fault.Denied, d.ReasonCode, "%s", d.Reason)
	}
	permit, err := k.Gate.Glance(ruling)
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
