package gate

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Glance implements policy.Gate.
func (g *Gate) Glance(r policy.Ruling) (policy.Permit, error) {
	if err := g.Own(r); err != nil {
		return policy.Permit{}, err
	}
	kind, ok := r.Action.Kind()
	if !ok || kind.SideEffect != policy.Pure && kind.SideEffect != policy.Read {
		return policy.Permit{}, fault.New(fault.Denied, "intent_missing", "what changes anything must be recorded before it is done")
	}
	if !r.Decision.Allowed() {
		return policy.Permit{}, r.Decision.Refusal()
	}
	if r.Standing != "" {
		return policy.Permit{}, fault.New(fault.Denied, "intent_missing", "the use of a standing approval must be recorded before it is done")
	}
	return policy.Issue(r.Canonical, nil), nil
}

// Begin implements policy.Gate. A ruling is no right: the kill switch may have been thrown since, the principal quarantined, the standing
// approval used up. It judges again, unless nothing that the decision rests on has changed.
func (g *Gate) Begin(ctx context.Context, r policy.Ruling, approval id.Approval, intent event.Batch, with ...policy.Ruling) (policy.Permit,
	event.Receipt, error) {
	for _, other := range with {
		if err := g.Own(other); err != nil {
			return policy.Permit{}, event.Receipt{}, err
		}
	}
	if err := g.Own(r); err != nil {
		return policy.Permit{}, event.Receipt{}, err
	}
	if err := policy.Belongs(intent, r.Action.Workspace); err != nil {
		return policy.Permit{}, event.Receipt{}, err
	}
	if r.Action.Type == policy.ShellExec && len(r.Action.Argv) == 0 {
		return policy.Permit{}, event.Receipt{}, fault.New(fault.Internal, policy.ReasonActionInvalid,
			"the action says no argument vector, so nothing could run")
	}
	for try := 1; ; try++ {
		permit, receipt, err := g.begin(ctx, r, approval, intent, with)
		if err == nil || !errors.Is(err, journal.ErrConflict) || try == journal.Tries {
			return permit, receipt, err
		}
		if again, lookErr := projection.Stale(ctx, g.Docs, intent); lookErr != nil || again {
			return policy.Permit{}, event.Receipt{}, err // the caller's own expectation failed: another try cannot help
		}
	}
}

func (g *Gate) begin(ctx context.Context, r policy.Ruling, approval id.Approval, intent event.Batch, with []policy.Ruling) (policy.Permit,
	event.Receipt, error) {
	var none policy.Permit
	kind, _ := r.Action.Kind()
	effect := kind.SideEffect.Reaches()
	for _, other := range with {
		kind, _ := other.Action.Kind()
		if holds, err := g.holds(ctx, other, kind); err != nil || !holds || !together(other.Action, r.Action) {
			return none, event.Receipt{}, cmp.Or(err, error(policy.ErrApart))
		}
	}
	ruling := r
	same, err := g.holds(ctx, r, kind)
	if err == nil && !same {
		var now consideration
		now, err = g.judge(ctx, r.Action, nil)
		ruling = now.ruling
	}
	if err != nil {
		return none, event.Receipt{}, err
	}
	if string(ruling.Canonical) != string(r.Canonical) {
		return none, event.Receipt{}, policy.ErrPermitMismatch
	}
	batch := intent
	batch.Drafts, batch.Documents = slices.Clone(intent.Drafts), slices.Clip(intent.Documents) // additions go into copies
	d := ruling.Decision
	switch {
	case d.Outcome == policy.Deny && !d.Shadow:
		return none, event.Receipt{}, d.Refusal()
	case approval != "":
		if err := g.Approvals.Use(ctx, &batch, ruling, approval); err != nil {
			return none, event.Receipt{}, err
		}
	case d.Outcome == policy.RequireApproval && !d.Shadow:
		return none, event.Receipt{}, d.Refusal()
	case ruling.Standing != "":
		if err := g.Approvals.Count(ctx, &batch, ruling); err != nil {
			return none, event.Receipt{}, err
		}
	}
	if d.Shadow && approval == "" {
		batch.Drafts = append(batch.Drafts, policy.RefusedDraft(event.Origin{Principal: r.Action.Principal, Token: r.Action.Token,
			Correlation: intent.Correlation()}, ruling))
	}
	if len(batch.Drafts) == 0 {
		batch.Drafts = append(batch.Drafts, policy.BegunDraft(ruling))
	}
	uncount, err := g.countAll(ctx, &batch, r, with)
	if err != nil {
		return none, event.Receipt{}, err
	}
	if ws := r.Action.Workspace; ws != id.DefaultWorkspace { // either an effect or an archiving comes first
		batch.Documents = append(batch.Documents, event.DocumentVersion{Projection: workspace.Workspaces, Key: string(ws),
			Version: ruling.Basis.Workspace})
	}
	if ruling.Basis.Declared != 0 { // either the beginning or a change of the declaration comes first
		batch.Documents = append(batch.Documents, event.DocumentVersion{Projection: policy.ActionTypeProjection, Key: r.Action.Type,
			Version: ruling.Basis.Declared})
	}
	receipt, err := g.Log.Append(ctx, batch)
	if err != nil || receipt.Replayed {
		uncount()
		return none, receipt, err // the log knows the batch: it began before, and does not begin twice
	}
	var revoked func() error
	if effect {
		ws := r.Action.Workspace
		revoked = func() error { return g.KillSwitch.Check(ws) }
	}
	return policy.Issue(ruling.Canonical, revoked), receipt, nil
}

// together reports whether two actions may be recorded in one commit: each must count for a different principal.
func together(a, b policy.Action) bool {
	return a.Workspace == b.Workspace && a.Principal != b.Principal
}

// countAll counts the effects that a batch records, all of them or none.
func (g *Gate) countAll(ctx context.Context, batch *event.Batch, r policy.Ruling, with []policy.Ruling) (uncount func(), err error) {
	var taken []id.Principal
	uncount = func() {
		for _, p := range taken {
			g.quota.remove(p)
		}
	}
	for _, each := range append([]policy.Ruling{r}, with...) {
		if kind, _ := each.Action.Kind(); !kind.SideEffect.Reaches() {
			continue
		}
		left, err := g.quota.add(ctx, batch, each.Action, g.Clock.Now())
		if err == nil && !left {
			err = g.quota.full()
		}
		if err != nil {
			uncount()
			return nil, err
		}
		taken = append(taken, each.Action.Principal)
	}
	return uncount, nil
}

// holds reports whether nothing has changed on which the ruling depends, so that the gate need not judge again. The ruling is this gate's
// own. It must allow without a standing approval and not under a capability token. These must be unchanged: the documents of the principal
// and the space, the declaration of the action, and the room's list of tools. The kill switch must be open and the quota must have room.
// The bundle is named by its hash and cannot change; the rest is in the canonical bytes.
func (g *Gate) holds(ctx context.Context, r policy.Ruling, kind policy.Kind) (bool, error) {
	a := r.Action
	if r.Decision.Outcome != policy.Allow || r.Standing != "" || r.Basis.Principal == 0 || a.Token != "" {
		return false, nil
	}
	if kind.Stops() {
		if on, err := g.KillSwitch.On(ctx, a.Workspace); on || err != nil {
			return false, err
		}
	}
	if kind.SideEffect.Reaches() {
		now := g.Clock.Now()
		if !credible(now) {
			return false, nil
		}
		if left, err := g.quota.left(ctx, a.Workspace, a.Principal, now); !left || err != nil {
			return false, err
		}
	}
	if same, err := g.unchanged(ctx, a.Workspace, principal.Projection, string(a.Principal), r.Basis.Principal); !same || err != nil {
		return false, err
	}
	if a.Workspace != id.DefaultWorkspace {
		if same, err := g.unchanged(ctx, a.Workspace, workspace.Workspaces, string(a.Workspace), r.Basis.Workspace); !same || err != nil {
			return false, err
		}
	}
	if a.Declared.Version > 0 {
		if same, err := g.unchanged(ctx, a.Workspace, policy.ActionTypeProjection, a.Type, r.Basis.Declared); !same || err != nil {
			return false, err
		}
	}
	in := a.Room
	if a.Space != "" {
		doc, version, err := g.spaces.Load(ctx, g.Docs, a.Workspace, space.Projection, string(a.Space))
		if errors.Is(err, projection.ErrNotFound) {
			err = nil
		}
		if err != nil || version != r.Basis.Space {
			return false, err
		}
		if doc.ID != "" {
			in = doc.Room
		}
	}
	return g.sameTools(ctx, r, kind, in)
}

// unchanged reports whether a document still has that version, 0 meaning that there is none.
func (g *Gate) unchanged(ctx context.Context, ws id.Workspace, name, key string, version uint64) (bool, error) {
	doc, err := projection.Lend(ctx, g.Docs, ws, name, key)
	if errors.Is(err, projection.ErrNotFound) {
		return version == 0, nil
	}
	return err == nil && doc.Version == version, err
}
