package identity_test

import (
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/engine"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/service/identity"
)

// Only owners and admins end engines and their tokens. A refusal changes nothing, and is recorded.
func TestWhoEndsAnEngine(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	e, err := o.RegisterEngine(ctx, o.as(o.admin), ws, "mill")
	if err != nil {
		t.Fatal(err)
	}
	made, err := o.IssueEngineToken(ctx, o.as(o.admin), ws, e.ID, identity.EngineScopes(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]id.Principal{"an operator": o.operator, "a member": o.member, "a viewer": o.viewer, "an agent": o.agent,
		"the engine itself": e.ID} {
		refused := o.count(policy.DeniedType)
		_, err := o.RevokeEngineToken(ctx, o.as(p), ws, e.ID, made.ID, "mine")
		o.want(name+" revokes a token", err, policy.ReasonRoleTooLow)
		if n := o.count(policy.DeniedType); n != refused+1 {
			t.Errorf("%s revokes a token: %d refusals are recorded, want 1", name, n-refused)
		}
		_, err = o.DeactivateEngine(ctx, o.as(p), ws, e.ID, "mine")
		o.want(name+" deactivates it", err, policy.ReasonRoleTooLow)
		_, err = o.RegisterEngine(ctx, o.as(p), ws, "mine")
		o.want(name+" registers one", err, policy.ReasonRoleTooLow)
		_, err = o.IssueEngineToken(ctx, o.as(p), ws, e.ID, identity.EngineScopes(), time.Time{})
		o.want(name+" issues a token", err, policy.ReasonRoleTooLow)
	}
	_, err = o.RevokeEngineToken(ctx, o.as("usr_00000000000000000000000000"), ws, e.ID, made.ID, "")
	o.want("a stranger revokes a token", err, "principal_not_found")
	if tokens, err := o.EngineTokens(ctx, ws, e.ID, "", 10); err != nil || len(tokens) != 1 || !tokens[0].RevokedAt.IsZero() {
		t.Fatalf("after refusals: got %+v, %v", tokens, err)
	}

	long := strings.Repeat("x", policy.MaxReasonBytes+1)
	_, err = o.RevokeEngineToken(ctx, o.as(o.admin), ws, e.ID, made.ID, long)
	o.want("a token, for a long reason", err, policy.ErrReasonTooLong.Code)
	_, err = o.DeactivateEngine(ctx, o.as(o.admin), ws, e.ID, long)
	o.want("an engine, for a long reason", err, policy.ErrReasonTooLong.Code)
	_, err = o.RevokeEngineToken(ctx, o.as(o.admin), ws, e.ID, "engtok_00000000000000000000000000", "")
	o.want("a token that is not there", err, engine.ErrTokenNotFound.Code)
	other, err := o.RegisterEngine(ctx, o.as(o.owner), ws, "other")
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.RevokeEngineToken(ctx, o.as(o.admin), ws, other.ID, made.ID, "")
	o.want("a token of another engine", err, engine.ErrTokenNotFound.Code)

	doc, err := o.RevokeEngineToken(ctx, o.as(o.admin), ws, e.ID, made.ID, long[1:])
	if err != nil || doc.ID != made.ID || doc.RevokedAt.IsZero() || doc.Reason != long[1:] {
		t.Errorf("revoked: got %+v, %v", doc, err)
	}
	revoked := o.count(engine.TokenRevokedType)
	if again, err := o.RevokeEngineToken(ctx, o.as(o.owner), ws, e.ID, made.ID, "again"); err != nil || again.Reason != doc.Reason ||
		o.count(engine.TokenRevokedType) != revoked {
		t.Errorf("revoked twice: got %+v, %v", again, err)
	}
	off, err := o.DeactivateEngine(ctx, o.as(o.admin), ws, e.ID, "worn out")
	if err != nil || off.ID != e.ID || !off.Inactive || off.Reason != "worn out" {
		t.Errorf("deactivated: got %+v, %v", off, err)
	}
	ended := o.count(engine.DeactivatedType)
	if again, err := o.DeactivateEngine(ctx, o.as(o.owner), ws, e.ID, "again"); err != nil || again.Reason != "worn out" ||
		o.count(engine.DeactivatedType) != ended {
		t.Errorf("deactivated twice: got %+v, %v", again, err)
	}
	if got, err := o.Engine(ctx, ws, e.ID); err != nil || !got.Inactive {
		t.Errorf("got %+v, %v", got, err)
	}
	if all, err := o.Engines(ctx, ws, "", 10); err != nil || len(all) != 2 || all[0].ID != other.ID {
		t.Errorf("the newest first: got %+v, %v", all, err)
	}
}
