package gate_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/service/gate/approvals"
)

// deploy is what the tests declare.
func deploy(change func(*policy.Declare)) policy.Declare {
	d := policy.Declare{Name: "deploy.production", Description: "deploy a build", SideEffect: policy.Network, Reversible: true}
	if change != nil {
		change(&d)
	}
	return d
}

func (h *house) declare(change func(*policy.Declare)) policy.ActionType {
	h.t.Helper()
	doc, err := h.ActionTypes.Declare(context.Background(), h.origin(h.owner), ws, deploy(change))
	if err != nil {
		h.t.Fatal(err)
	}
	return doc
}

// deploys is an action of the declared type.
func (h *house) deploys() policy.Action {
	return policy.Action{
		Type: "deploy.production", Workspace: ws, Room: room, Principal: h.agent, Zone: event.Supervised, Target: "web1.example.com",
		Request: []byte(`{"build":7}`),
	}
}

func asks(d *policy.Declare) { d.Asks = true }

// TestADeclaredActionIsJudged judges the same action before it is declared, under each declaration, and after it is retired.
func TestADeclaredActionIsJudged(t *testing.T) {
	h := build(t, nil)
	viewer := h.person("Vera", principal.Viewer)
	expect := func(what string, a policy.Action, want policy.Outcome, code string) {
		t.Helper()
		if d := h.judge(a).Decision; d.Outcome != want || d.ReasonCode != code {
			t.Errorf("%s: got %s, %s (%s), want %s, %s", what, d.Outcome, d.ReasonCode, d.Reason, want, code)
		}
	}
	a := h.deploys()
	expect("undeclared", a, policy.Deny, policy.ReasonUnknownAction)
	h.declare(nil)
	expect("declared", a, policy.Allow, policy.ReasonDefaultAllow)
	seen := a
	seen.Principal = viewer
	expect("by a viewer", seen, policy.Deny, policy.ReasonRoleTooLow)
	forged := a
	forged.Declared = policy.Declaration{Version: 9, Description: "harmless", SideEffect: policy.Pure, Zone: event.Sandbox}
	if r := h.judge(forged); r.Action.Declared.Version != 1 || r.Action.Declared.SideEffect != policy.Network {
		t.Errorf("the caller's own words count: %+v", r.Action.Declared)
	}
	h.declare(asks)
	expect("that always asks", a, policy.RequireApproval, policy.ReasonPreApproval)
	h.declare(func(d *policy.Declare) { d.Zone = event.HighStakes })
	expect("of high stakes", a, policy.RequireApproval, policy.ReasonHighStakes)
	a.Zone = event.Sandbox
	expect("of high stakes, from a sandbox", a, policy.Deny, policy.ReasonZoneMismatch)
	a.Zone = event.Supervised
	h.declare(func(d *policy.Declare) { d.Targets = []string{policy.TargetAddress, policy.TargetRoom} })
	expect("with another target", a, policy.Deny, policy.ReasonTargetMismatch)
	a.Target = ""
	expect("about a room", a, policy.Allow, policy.ReasonDefaultAllow)
	if _, err := h.ActionTypes.Retire(t.Context(), h.origin(h.owner), ws, "deploy.production", "moved"); err != nil {
		t.Fatal(err)
	}
	expect("retired", a, policy.Deny, policy.ReasonUnknownAction)
	if n := h.count(policy.ActionTypeDeclaredType)*100 + h.count(policy.ActionTypeChangedType)*10 +
		h.count(policy.ActionTypeRetiredType); n != 131 {
		t.Errorf("got %d events, want one declared, three changed, one retired", n)
	}
	h.declare(nil)
	if _, err := h.KillSwitch.Throw(t.Context(), h.origin(h.owner), ws, ""); err != nil {
		t.Fatal(err)
	}
	expect("while the kill switch is on", a, policy.Deny, policy.ReasonKillSwitch)
	h.declare(func(d *policy.Declare) { d.SideEffect = policy.Read })
	expect("that only reads, while the kill switch is on", a, policy.Allow, policy.ReasonDefaultAllow)
}

// TestADeclarationIsTheGatesToSay hands the gate actions with declarations of the caller's own: they count nothing.
func TestADeclarationIsTheGatesToSay(t *testing.T) {
	h := build(t, nil)
	said := policy.Declaration{Version: 1, Description: "harmless", SideEffect: policy.Pure, Zone: event.Sandbox, Reversible: true}
	for _, a := range []policy.Action{h.shell("standard", "ls"), h.deploys()} {
		plain := h.judge(a)
		a.Declared = said
		if r := h.judge(a); r.Action.Declared != (policy.Declaration{}) || string(r.Canonical) != string(plain.Canonical) ||
			r.Decision.Outcome != plain.Decision.Outcome {
			t.Errorf("%s: got %s, want %s", a.Type, r.Canonical, plain.Canonical)
		}
	}
}

// TestWhoDeclares has every role and kind declare, change and retire.
func TestWhoDeclares(t *testing.T) {
	h := build(t, nil)
	for _, c := range []struct {
		who  string
		p    id.Principal
		code string
	}{
		{"the owner", h.owner, ""}, {"an admin", h.person("Ada", principal.Admin), ""},
		{"an operator", h.person("Otto", principal.Operator), policy.ReasonRoleTooLow}, {"a member", h.person("Mia", principal.Member),
			policy.ReasonRoleTooLow},
		{"an agent", h.agent, policy.ReasonRoleTooLow},
	} {
		h.declare(asks)
		if _, err := h.ActionTypes.Declare(t.Context(), h.origin(c.p), ws, deploy(asks)); fault.CodeOf(err) != c.code {
			t.Errorf("%s declares what holds already: got %v, want %q", c.who, err, c.code)
		}
		if _, err := h.ActionTypes.Declare(t.Context(), h.origin(c.p), ws, deploy(nil)); fault.CodeOf(err) != c.code {
			t.Errorf("%s declares: got %v, want %q", c.who, err, c.code)
		}
		if _, err := h.ActionTypes.Retire(t.Context(), h.origin(c.p), ws, "deploy.production", ""); fault.CodeOf(err) != c.code {
			t.Errorf("%s retires: got %v, want %q", c.who, err, c.code)
		}
	}
	if _, err := h.ActionTypes.Retire(t.Context(), h.origin(h.owner), ws, "deploy.nothing", ""); !errors.Is(err,
		policy.ErrActionTypeNotFound) {
		t.Errorf("what nobody declared is retired: %v", err)
	}
}

// TestAsManyActionTypesAsFit declares up to the bound, from many sides at once.
func TestAsManyActionTypesAsFit(t *testing.T) {
	h := build(t, nil)
	name := func(n int) func(*policy.Declare) {
		return func(d *policy.Declare) { d.Name = fmt.Sprintf("deploy.place%d", n) }
	}
	for n := range policy.MaxActionTypes - 1 {
		h.declare(name(n))
	}
	var wait sync.WaitGroup
	errs := make([]error, 8)
	for n := range errs {
		wait.Go(func() {
			_, errs[n] = h.ActionTypes.Declare(context.Background(), h.origin(h.owner), ws, deploy(name(1_000+n)))
		})
	}
	wait.Wait()
	made := 0
	for _, err := range errs {
		switch {
		case err == nil:
			made++
		case !errors.Is(err, policy.ErrActionTypeFull):
			t.Errorf("got %v, want too_many_action_types", err)
		}
	}
	list, err := h.ActionTypes.List(t.Context(), ws, false, "", policy.MaxActionTypes+1)
	if err != nil || made != 1 || len(list) != policy.MaxActionTypes {
		t.Errorf("%d of eight fit, and there are %d types (%v), want 1 and %d", made, len(list), err, policy.MaxActionTypes)
	}
	if _, err := h.ActionTypes.Retire(t.Context(), h.origin(h.owner), ws, "deploy.place0", ""); err != nil {
		t.Fatal(err)
	}
	h.declare(name(5_000)) // there is room again
}

// begins begins an action under an approval.
func (h *house) begins(a policy.Action, approval id.Approval) error {
	_, _, err := h.Begin(context.Background(), h.judge(a), approval, event.Batch{Workspace: ws})
	return err
}

// TestAnApprovalIsForOneVersion changes a declaration at each point of the life of an approval.
func TestAnApprovalIsForOneVersion(t *testing.T) {
	h := build(t, nil)
	ada := h.person("Ada", principal.Admin)
	h.declare(asks)
	a := h.deploys()
	_, q := h.asked(a)
	h.approve(q, ada)
	if err := h.begins(a, q.ID); err != nil {
		t.Errorf("what was approved does not begin: %v", err)
	}

	_, q = h.asked(a)
	h.approve(q, ada)
	before := h.judge(a)
	h.declare(func(d *policy.Declare) { d.Asks, d.Description = true, "deploy anything" })
	if err := h.begins(a, q.ID); fault.CodeOf(err) != policy.ReasonApprovalMismatch {
		t.Errorf("changed after it was approved: got %v, want approval_mismatch", err)
	}
	if _, _, err := h.Begin(t.Context(), before, q.ID, event.Batch{Workspace: ws}); fault.CodeOf(err) != policy.ReasonApprovalMismatch {
		t.Errorf("a ruling of before the change: got %v, want approval_mismatch", err)
	}

	_, q = h.asked(a)
	h.declare(asks)
	if _, err := h.decide(q, ada, policy.Approve); !errors.Is(err, policy.ErrDeclarationChanged) {
		t.Errorf("changed before it was approved: got %v", err)
	}
	if _, err := h.decide(q, ada, policy.Refuse); err != nil {
		t.Errorf("what changed cannot be denied: %v", err)
	}

	_, q = h.asked(a)
	if _, err := h.ActionTypes.Retire(t.Context(), h.origin(h.owner), ws, a.Type, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := h.decide(q, ada, policy.Approve); !errors.Is(err, policy.ErrDeclarationChanged) {
		t.Errorf("retired before it was approved: got %v", err)
	}
	h.declare(asks) // as it was, under a version of its own
	if err := h.begins(a, q.ID); err == nil {
		t.Error("a question about a retired declaration is good for the next one")
	}
}

// TestAnAllowedActionIsForOneVersion begins on a ruling that a change of the declaration has overtaken.
func TestAnAllowedActionIsForOneVersion(t *testing.T) {
	h := build(t, nil)
	h.declare(nil)
	r := h.judge(h.deploys())
	h.declare(asks)
	if _, _, err := h.Begin(t.Context(), r, "", event.Batch{Workspace: ws}); err == nil {
		t.Error("it began under the declaration of before")
	}
	if n := h.count(policy.BegunType); n != 0 {
		t.Errorf("%d have begun", n)
	}
}

// TestAStandingApprovalIsForOneVersion grants a standing approval for a room and changes the declaration.
func TestAStandingApprovalIsForOneVersion(t *testing.T) {
	h := build(t, nil)
	ada := h.person("Ada", principal.Admin)
	h.declare(asks)
	a := h.deploys()
	_, q := h.asked(a)
	answer := policy.Answer{Decision: policy.Approve, Scope: policy.ScopeRoom, ExpiresAt: h.clock.Now().Add(1e12), Uses: 5}
	if _, err := h.Approvals.Decide(t.Context(), h.origin(ada), ws, q.ID, answer); err != nil {
		t.Fatal(err)
	}
	a.Request = []byte(`{"build":8}`)
	if d := h.judge(a).Decision; d.ReasonCode != policy.ReasonStandingAllows {
		t.Errorf("another request: got %s", d.ReasonCode)
	}
	h.declare(func(d *policy.Declare) { d.Asks, d.Description = true, "deploy anything" })
	if d := h.judge(a).Decision; d.Outcome != policy.RequireApproval {
		t.Errorf("another version: got %s", d.ReasonCode)
	}
}

// TestOwnActionsUnderAToken grants tokens that name a declared action and others.
func TestOwnActionsUnderAToken(t *testing.T) {
	h := build(t, nil)
	h.declare(nil)
	grant := func(actions ...string) id.Token {
		scopes := token.All()
		scopes.Actions = actions
		tok := id.New[id.Token](h.ids)
		draft := event.New(token.GrantedType, h.origin(h.owner), ws, "", token.Granted{Token: tok, IssuedTo: h.agent, GrantedBy: h.owner,
			Scopes: scopes})
		if _, err := h.log.Append(t.Context(), event.Batch{Workspace: ws, Drafts: []event.Draft{draft.About(token.Entity,
			string(tok))}}); err != nil {
			t.Fatal(err)
		}
		return tok
	}
	for _, c := range []struct {
		scopes []string
		want   policy.Outcome
	}{{[]string{"deploy.production"}, policy.Allow}, {[]string{"*"}, policy.Allow}, {[]string{"deploy.staging", "email.send"}, policy.Deny}} {
		a := h.deploys()
		a.Token = grant(c.scopes...)
		if d := h.judge(a).Decision; d.Outcome != c.want {
			t.Errorf("%v: got %s (%s)", c.scopes, d.Outcome, d.Reason)
		}
	}
}

// TestOwnActionsInASpace judges a declared action in a space, whose policy has to permit it.
func TestOwnActionsInASpace(t *testing.T) {
	h := build(t, nil)
	h.declare(nil)
	for text, want := range map[string]string{
		"preset: standard":                      policy.ReasonNoPolicy,
		"allow: {actions: [deploy.production]}": policy.ReasonDefaultAllow,
		"allow: {actions: [deploy.production]}\nask: {actions: [deploy.production]}":  policy.ReasonPolicyAsks,
		"ask: {actions: [deploy.production]}":                                         policy.ReasonPolicyAsks,
		"allow: {actions: [deploy.production]}\ndeny: {actions: [deploy.production]}": policy.ReasonPolicyForbids,
		"allow: {actions: [deploy.staging]}":                                          policy.ReasonNoPolicy,
	} {
		b := h.bundle(text, false)
		in := id.New[id.Space](h.ids)
		h.pinned(in, b.Hash, nil)
		a := h.deploys()
		a.Space = in
		if d := h.judge(a).Decision; d.ReasonCode != want {
			t.Errorf("%s: got %s (%s), want %s", text, d.ReasonCode, d.Reason, want)
		}
		a.Space = ""
		e, err := h.Explain(t.Context(), a, &b)
		if err != nil || e.Decision.ReasonCode != want {
			t.Errorf("%s, tried: got %s, %v, want %s", text, e.Decision.ReasonCode, err, want)
		}
	}
	cedarText := `@id("ours") permit (principal, action == Action::"deploy.production", resource) when { context.target == ` +
		`"web1.example.com" };`
	b := h.bundle(cedarText, true)
	for target, want := range map[string]policy.Outcome{"web1.example.com": policy.Allow, "web2.example.com": policy.Deny} {
		a := h.deploys()
		a.Target = target
		if e, err := h.Explain(t.Context(), a, &b); err != nil || e.Decision.Outcome != want {
			t.Errorf("Cedar, %s: got %s, %v", target, e.Decision.Outcome, err)
		}
	}
	if said, err := h.Bundles.Warnings(t.Context(), ws, b); err != nil || len(said) != 0 {
		t.Errorf("got the warnings %q, %v", said, err)
	}
	if said, err := h.Bundles.Warnings(t.Context(), ws, h.bundle("deny: {actions: [deploy.staging]}", false)); err != nil || len(said) != 1 {
		t.Errorf("an undeclared action: got the warnings %q, %v", said, err)
	}
}

// TestTheInboxOfARoom lists the approvals of rooms, by pages.
func TestTheInboxOfARoom(t *testing.T) {
	h := build(t, nil)
	h.declare(asks)
	rooms := []id.Room{"room_00000000000000000000000001", "room_00000000000000000000000002"}
	var asked []id.Approval
	for n := range 6 {
		a := h.deploys()
		a.Room, a.Request = rooms[n%2], fmt.Appendf(nil, `{"build":%d}`, n)
		_, q := h.asked(a)
		asked = append(asked, q.ID)
	}
	h.approve(policy.Approval{ID: asked[0]}, h.person("Ada", principal.Admin))
	list := func(f approvals.Filter) (got []id.Approval) {
		t.Helper()
		found, err := h.Approvals.List(t.Context(), ws, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range found {
			got = append(got, a.ID)
		}
		return got
	}
	for what, c := range map[string]struct{ got, want []id.Approval }{
		"all":       {list(approvals.Filter{Room: rooms[0]}), []id.Approval{asked[4], asked[2], asked[0]}},
		"open":      {list(approvals.Filter{Room: rooms[0], Status: policy.Pending}), []id.Approval{asked[4], asked[2]}},
		"a page":    {list(approvals.Filter{Room: rooms[1], Limit: 2}), []id.Approval{asked[5], asked[3]}},
		"the next":  {list(approvals.Filter{Room: rooms[1], Limit: 2, After: asked[3]}), []id.Approval{asked[1]}},
		"elsewhere": {list(approvals.Filter{Room: "room_00000000000000000000000003"}), nil},
	} {
		if fmt.Sprint(c.got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %v, want %v", what, c.got, c.want)
		}
	}
}
