package spaces

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

// Tiers are the tiers of this daemon, from the weakest to the strongest.
type Tiers []space.Tier

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
func (ts Tiers) tier(name string) (space.Tier, error) {
	i := ts.place(name)
	if i < 0 {
		return nil, fault.New(fault.Invalid, "tier_unknown", "there is no runtime or tier %.32q here", name).With("ask for one of these: " +
			strings.Join(ts.runtimes(), ", "))
	}
	return ts[i], nil
}

// runtimes are the runtimes that a space may request here.
func (ts Tiers) runtimes() []string {
	names := []string{space.RuntimeAuto, space.RuntimeHeavy}
	for _, t := range ts {
		names = append(names, t.Name())
	}
	return names
}

// place returns where a tier stands among those of this daemon, from the weakest to the strongest; -1 for none of them.
func (ts Tiers) place(name string) int {
	return slices.IndexFunc(ts, func(t space.Tier) bool { return t.Name() == name })
}

// strongest returns the strongest tier of this daemon that is not nano.
func (ts Tiers) strongest() (space.Tier, error) {
	if n := len(ts); n > 0 && ts[n-1].Name() != space.Nano {
		return ts[n-1], nil
	}
	return nil, errNoTier
}

// begins returns the tier in which a new space with this runtime begins. Its policy accepts no tier weaker than weakest. An impossible
// request is refused: nothing is downgraded.
func (ts Tiers) begins(runtime, weakest string) (tier space.Tier, err error) {
	switch runtime {
	case "", space.RuntimeAuto:
		if i := ts.place(space.Nano); i >= 0 && ts.accepts(weakest, space.Nano) == nil {
			return ts[i], nil
		}
		tier, err = ts.strongest()
	case space.RuntimeHeavy:
		tier, err = ts.strongest()
	default:
		tier, err = ts.tier(runtime)
	}
	if err == nil {
		err = ts.accepts(weakest, tier.Name())
	}
	return tier, err
}

// accepts refuses a tier of this daemon that is weaker than the weakest one that a policy accepts. Nano is the weakest of all. So a policy
// that names it accepts every tier, also if this daemon has no nano tier.
func (ts Tiers) accepts(weakest, name string) error {
	least := ts.place(weakest)
	switch {
	case weakest == "" || weakest == space.Nano:
		return nil
	case least < 0:
		return fault.New(fault.Unavailable, errNoTier.Code,
			"the policy accepts no tier weaker than %.32s, which this host has not; run agentbox doctor", weakest)
	case ts.place(name) < least:
		return fault.New(fault.Denied, "tier_not_accepted", "the policy accepts no tier weaker than %.32s; %.32s is", weakest, name).
			With("ask for the runtime heavy, or for auto")
	}
	return nil
}

// moves reports whether a space is promoted where that is needed.
func moves(doc space.Space) bool { return doc.Runtime == space.RuntimeAuto && doc.Tier == space.Nano }

// tentative reports whether the effects of a command in a space are dropped if the tier lacks something, because a heavier tier has it.
func (ts Tiers) tentative(doc space.Space) bool {
	_, err := ts.strongest()
	return moves(doc) && err == nil
}

// Offers implements space.Routing.
func (ts Tiers) Offers() space.Offers {
	all := make(space.Offers, len(ts))
	for i, t := range ts {
		all[i] = t.Offer()
	}
	return all
}

// elsewhere returns the function that reports whether a heavier tier has what the tier of a space lacks.
func (ts Tiers) elsewhere(doc space.Space) func(space.Lack) bool {
	heavier, err := ts.strongest()
	if err != nil || doc.Tier == heavier.Name() {
		return nil
	}
	return func(l space.Lack) bool { return heavier.Offer().Has(l.Need()) }
}

// Probe asks every tier for its support on this host.
func (ts Tiers) Probe(ctx context.Context) []space.Report {
	reports := make([]space.Report, len(ts))
	for i, t := range ts {
		reports[i] = t.Probe(ctx)
	}
	return reports
}

// Try reports whether some tier can make a space and run a program in it.
func (ts Tiers) Try(ctx context.Context) error { return Try(ctx, ts) }

// Try reports whether one of some tiers can make a space and run a program in it.
func Try(ctx context.Context, tiers []space.Tier) error {
	var errs []error
	for _, t := range tiers {
		err := t.Try(ctx)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fault.Wrap(errors.Join(errs...), fault.Unavailable, "tier_unavailable", "no tier can make spaces on this host; run agentbox doctor")
}
