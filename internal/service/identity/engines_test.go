package identity_test

import (
	"testing"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/token"
	"agentbox/internal/service/identity"
)

func TestAnEngineIsKnownByItsToken(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	e, err := o.RegisterEngine(ctx, o.as(o.admin), ws, "mill")
	if err != nil {
		t.Fatal(err)
	}
	other, err := o.RegisterEngine(ctx, o.as(o.admin), ws, "other")
	if err != nil {
		t.Fatal(err)
	}
	until := o.clock.Now().Add(time.Hour)
	issue := func(scopes token.Scopes, until time.Time) identity.EngineToken {
		t.Helper()
		made, err := o.IssueEngineToken(ctx, o.as(o.admin), ws, e.ID, scopes, until)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	made := issue(identity.EngineScopes(), until)
	who, err := o.AuthenticateEngine(ctx, e.ID, made.Secret)
	if err != nil || who.Principal != e.ID || who.Token != made.Capability || !who.Engine || who.Role != "" {
		t.Fatalf("got %+v, %v", who, err)
	}
	for i := range made.Secret {
		if _, err := o.AuthenticateEngine(ctx, e.ID, made.Secret[:i]+string(made.Secret[i]^1)+made.Secret[i+1:]); err == nil {
			t.Fatalf("byte %d flipped opens too", i)
		}
	}
	engine := func(e id.Principal, secret string) error {
		_, err := o.AuthenticateEngine(ctx, e, secret)
		return err
	}
	o.want("without a token", engine(e.ID, ""), "missing_engine_token")
	o.want("without an id", engine("", made.Secret), "missing_engine_token")
	o.want("under another's id", engine(other.ID, made.Secret), "engine_token_invalid")
	o.want("garbage", engine(e.ID, "garbage"), "engine_token_invalid")
	// As a key it opens nothing.
	if who, err := o.Authenticate(ctx, made.Secret); err == nil {
		t.Errorf("as a key it is %+v", who)
	}
	o.clock.move(time.Hour - 1)
	o.want("in its last moment", engine(e.ID, made.Secret), "")
	o.clock.move(1)
	o.want("after its time", engine(e.ID, made.Secret), "engine_token_expired")

	lost := issue(identity.EngineScopes(), time.Time{})
	if _, err := o.RevokeEngineToken(ctx, o.as(o.admin), ws, e.ID, lost.ID, "lost"); err != nil {
		t.Fatal(err)
	}
	o.want("a revoked token", engine(e.ID, lost.Secret), "engine_token_invalid")
	bound := issue(identity.EngineScopes(), time.Time{})
	if _, err := o.Revoke(ctx, o.as(o.admin), ws, bound.Capability, ""); err != nil {
		t.Fatal(err)
	}
	o.want("a token bound to a revoked one", engine(e.ID, bound.Secret), policy.ReasonTokenRevoked)
	good := issue(identity.EngineScopes(), time.Time{})
	if err := o.Quarantine(ctx, o.as(o.owner), ws, e.ID, true, "odd"); err != nil {
		t.Fatal(err)
	}
	o.want("in quarantine", engine(e.ID, good.Secret), policy.ReasonAgentQuarantined)
	if err := o.Quarantine(ctx, o.as(o.owner), ws, e.ID, false, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := o.DeactivateEngine(ctx, o.as(o.admin), ws, e.ID, "sold"); err != nil {
		t.Fatal(err)
	}
	o.want("deactivated", engine(e.ID, good.Secret), "engine_inactive")
	_, err = o.IssueEngineToken(ctx, o.as(o.admin), ws, e.ID, identity.EngineScopes(), time.Time{})
	o.want("a token for it", err, "engine_inactive")
}

func TestWhoKeepsEngines(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	e, err := o.RegisterEngine(ctx, o.as(o.owner), ws, "mill")
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]id.Principal{"an operator": o.operator, "a member": o.member, "a viewer": o.viewer, "an agent": o.agent,
		"the engine": e.ID} {
		_, err := o.RegisterEngine(ctx, o.as(p), ws, "another")
		o.want(name+" registers", err, policy.ReasonRoleTooLow)
		_, err = o.IssueEngineToken(ctx, o.as(p), ws, e.ID, identity.EngineScopes(), time.Time{})
		o.want(name+" issues", err, policy.ReasonRoleTooLow)
		_, err = o.DeactivateEngine(ctx, o.as(p), ws, e.ID, "")
		o.want(name+" deactivates", err, policy.ReasonRoleTooLow)
	}
	_, err = o.IssueEngineToken(ctx, o.as(o.owner), "ws_other", e.ID, identity.EngineScopes(), time.Time{})
	o.want("in another workspace", err, "engine_not_found")
	_, err = o.IssueEngineToken(ctx, o.as(o.owner), ws, e.ID, identity.EngineScopes(), o.clock.Now())
	o.want("until now", err, "invalid_valid_until")
	// Under a capability token no engine gets more than that.
	root := o.give(o.as(o.owner), token.Grant{IssuedTo: o.owner, Scopes: token.Scopes{Rooms: []string{token.Any},
		Actions: []string{policy.EngineToken, policy.RunClaim}}})
	made, err := o.IssueEngineToken(ctx, o.under(o.owner, root.ID), ws, e.ID, identity.EngineScopes(), time.Time{})
	if err != nil || len(made.Scopes.Actions) != 1 || made.Scopes.Actions[0] != policy.RunClaim {
		t.Errorf("got %+v, %v", made.Scopes, err)
	}
}
