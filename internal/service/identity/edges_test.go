package identity_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/engine"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/identity"
)

// late is a gate and a log before which somebody else does something, once or always.
type late struct {
	policy.Gate
	journal.Journal
	before func()
	always bool
}

func (l *late) first() {
	if do := l.before; do != nil {
		if !l.always {
			l.before = nil
		}
		do()
	}
}

func (l *late) Record(ctx context.Context, origin event.Origin, a policy.Action, b event.Batch) (event.Receipt, error) {
	l.first()
	return l.Gate.Record(ctx, origin, a, b)
}

func (l *late) Append(ctx context.Context, b event.Batch) (event.Receipt, error) {
	l.first()
	return l.Journal.Append(ctx, b)
}

// late lets somebody else be faster: do is done between what the service reads and what it records.
func (o *office) late(do func(*office)) *late {
	other := *o
	parts := o.Parts
	other.Service = identity.New(parts)
	other.Cheapen()
	l := &late{Gate: o.Gate, Journal: o.Log, before: func() { do(&other) }}
	o.Service.Gate, o.Service.Log = l, l
	return l
}

// knows registers principals without asking anybody.
func (o *office) knows(all ...principal.Registered) {
	o.t.Helper()
	var drafts []event.Draft
	for _, d := range all {
		drafts = append(drafts, event.New(principal.RegisteredType, o.as(o.owner), ws, "", d).About(principal.Entity, string(d.Principal)))
	}
	if _, err := o.log.Append(o.t.Context(), event.Batch{Workspace: ws, Drafts: drafts}); err != nil {
		o.t.Fatal(err)
	}
}

func numbered[T ~string](prefix string, n int) T { return T(fmt.Sprintf("%s_%026d", prefix, n)) }

// A service of a role is not a person, a person in quarantine keeps nobody, and a role that there is not is given to nobody.
func TestWhoManagesPeople(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	service, bad := numbered[id.Principal]("svc", 1), numbered[id.Principal]("usr", 1)
	o.knows(principal.Registered{Principal: service, Kind: id.Service, Role: principal.Overlord, Name: "engine"},
		principal.Registered{Principal: bad, Kind: id.User, Role: principal.Admin, Name: "Bad"})
	if err := o.Quarantine(ctx, o.as(o.owner), ws, bad, true, ""); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]id.Principal{"a service of a role": service, "one in quarantine": bad, "an operator": o.operator} {
		_, err := o.Grant(ctx, o.as(p), ws, token.Grant{IssuedTo: o.agent, Scopes: token.All()})
		o.want(name+" grants a root", err, policy.ReasonRoleTooLow)
		_, _, err = o.IssueKey(ctx, o.as(p), ws, o.agent, "key")
		o.want(name+" makes a key for an agent", err, policy.ReasonRoleTooLow)
		_, err = o.AddPerson(ctx, o.as(p), ws, "Nora", principal.Viewer)
		o.want(name+" adds a person", err, policy.ReasonRoleTooLow)
	}
	for _, role := range []principal.Role{"root", ""} {
		_, err := o.AddPerson(ctx, o.as(o.owner), ws, "Nora", role)
		o.want("the role "+string(role), err, "invalid_role")
	}
}

// misfiled reads the document of one principal in the place of another's.
type misfiled struct {
	projection.Reader
	of, by id.Principal
}

func (m *misfiled) Document(ctx context.Context, ws id.Workspace, name, key string) (projection.Document, error) {
	if name == principal.Projection && key == string(m.of) {
		key = string(m.by)
	}
	return m.Reader.Document(ctx, ws, name, key)
}

// Nobody acts by the document of another one, and nobody is found by it.
func TestNobodyIsFoundUnderAnotherName(t *testing.T) {
	o := open(t)
	o.Docs = &misfiled{o.Docs, o.viewer, o.owner}
	_, err := o.Agent(t.Context(), o.as(o.viewer), ws, "another")
	o.want("acting", err, policy.ReasonPrincipalNotFound)
	_, err = o.Principal(t.Context(), ws, o.viewer)
	o.want("found", err, "principal_not_found")
}

// Who was let act for another lets nobody else act, and a token that is named again is not looked up.
func TestActingForAnotherIsNotHandedOn(t *testing.T) {
	o := open(t)
	_, err := o.ActsFor(t.Context(), principal.Caller{Principal: o.admin, By: o.owner, Workspace: ws}, o.agent, "")
	o.want("handed on", err, identity.ErrNotYours.Code)
	c := principal.Caller{Principal: o.agent, Workspace: ws, Token: "cap_01M7YNAYM0SMK245AEDNVB5CNW"}
	if got, err := o.ActsFor(t.Context(), c, "", c.Token); err != nil || got != c {
		t.Errorf("the token of the caller: got %+v, %v", got, err)
	}
}

// A credential says who issued it and when, its text opens, and what is recorded is recorded at the time of the clock.
func TestACredentialSaysWhoIssuedIt(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	late := &clock{now: o.clock.Now().Add(time.Minute)} // the log has another clock
	o.Service.Clock = late
	at := func(typ string) {
		t.Helper()
		if e := o.last(typ); !e.OccurredAt.Equal(late.Now()) {
			t.Errorf("%s occurred at %s", typ, e.OccurredAt)
		}
	}
	for name, c := range map[string]struct{ issuer, want id.Principal }{
		"their own": {"", o.admin}, "an admin's": {o.viewer, o.viewer}, "an owner's": {o.owner, o.admin},
		"a stranger's": {numbered[id.Principal]("usr", 9), numbered[id.Principal]("usr", 9)},
	} {
		late.move(time.Second)
		origin := o.as(o.admin)
		origin.Issuer = c.issuer
		text, key, err := o.IssueKey(ctx, origin, ws, o.admin, "key")
		if err != nil || key.IssuedBy != c.want || key.Principal != o.admin {
			t.Errorf("by %s credential: got %+v, %v, want by %s", name, key, err, c.want)
		}
		at(principal.KeyIssuedType)
		if who, err := o.Authenticate(ctx, text); err != nil || who.Principal != o.admin || who.Key != key.ID {
			t.Errorf("by %s credential: it opens for %+v, %v", name, who, err)
		}
		if err := o.RevokeKey(ctx, o.as(o.admin), ws, key.ID, "", false); err != nil {
			t.Error(err)
		}
		at(principal.KeyRevokedType)
	}
	if _, key, err := o.IssueKey(ctx, o.as(o.owner), ws, o.member, "key"); err != nil || key.IssuedBy != o.owner || key.Principal != o.member {
		t.Errorf("of another one: got %+v, %v", key, err)
	}
	if made := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()}); made.IssuedBy != o.owner {
		t.Errorf("a token: got %+v", made.Token)
	}
	at(token.GrantedType)
	if err := o.Quarantine(ctx, o.as(o.owner), ws, o.member, true, strings.Repeat("x", policy.MaxReasonBytes)); err != nil {
		t.Error(err)
	}
	at(principal.QuarantinedType)
	o.want("a long reason", o.Quarantine(ctx, o.as(o.owner), ws, o.viewer, true, strings.Repeat("x", policy.MaxReasonBytes+1)),
		policy.ErrReasonTooLong.Code)
}

// The last key of the owners is not ended by chance: one that is ended, or that is of somebody in quarantine, does not count as another.
func TestTheLastKeyOfTheOwners(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	key := func(p id.Principal) id.Key {
		t.Helper()
		_, key, err := o.IssueKey(ctx, o.as(p), ws, p, "key")
		if err != nil {
			t.Fatal(err)
		}
		return key.ID
	}
	end := func(key id.Key, last bool) error { return o.RevokeKey(ctx, o.as(o.owner), ws, key, "", last) }
	one := key(o.owner)
	key(o.admin) // of nobody who is an owner
	o.want("the only one", end(one, false), "last_owner_key")
	two := key(o.owner)
	o.want("one of two", end(two, false), "")
	o.want("the one that is left", end(one, false), "last_owner_key")
	// Behind more than a page of owners, and behind more than a page of keys that are ended, there is another one.
	var many []principal.Registered
	for n := range 101 {
		many = append(many, principal.Registered{Principal: numbered[id.Principal]("usr", n), Kind: id.User, Role: principal.Overlord,
			Name: "owner"})
	}
	o.knows(many...)
	o.want("among owners without keys", end(one, false), "last_owner_key")
	third := key(many[100].Principal)
	var drafts []event.Draft
	for n := range 101 {
		name := numbered[id.Key]("key", n)
		drafts = append(drafts, event.New(principal.KeyIssuedType, o.as(o.owner), ws, "", principal.KeyIssued{Key: name,
			Principal: many[100].Principal, Name: "key"}).About(principal.KeyEntity, string(name)),
			event.New(principal.KeyRevokedType, o.as(o.owner), ws, "", principal.KeyRevoked{Key: name}).About(principal.KeyEntity, string(name)))
	}
	if _, err := o.log.Append(ctx, event.Batch{Workspace: ws, Drafts: drafts}); err != nil {
		t.Fatal(err)
	}
	o.want("where another owner has one", end(one, false), "")
	drafts = []event.Draft{event.New(principal.QuarantinedType, o.as(o.owner), ws, "", principal.Quarantined{
		Principal: many[100].Principal}).About(principal.Entity, string(many[100].Principal))}
	if _, err := o.log.Append(ctx, event.Batch{Workspace: ws, Drafts: drafts}); err != nil {
		t.Fatal(err)
	}
	four := key(o.owner)
	o.want("where another owner in quarantine has one", end(four, false), "last_owner_key")
	o.want("where it is meant", end(four, true), "")
	o.want("one of another owner", end(third, true), "")
}

// Of two who end the last two keys of the owners one fails.
func TestTwoEndTheLastTwoKeys(t *testing.T) {
	o := open(t)
	var made [2]id.Key
	for i := range made {
		_, key, err := o.IssueKey(t.Context(), o.as(o.owner), ws, o.owner, "key")
		if err != nil {
			t.Fatal(err)
		}
		made[i] = key.ID
	}
	o.late(func(other *office) {
		o.want("the first one", other.RevokeKey(t.Context(), o.as(o.owner), ws, made[1], "", false), "")
	})
	if err := o.RevokeKey(t.Context(), o.as(o.owner), ws, made[0], "", false); !errors.Is(err, journal.ErrConflict) {
		t.Errorf("the second one: got %v", err)
	}
}

// Who is slower finds what the faster one did.
func TestWhoIsSlowerFindsWhatTheFasterDid(t *testing.T) {
	ctx := t.Context()
	o := open(t)
	o.late(func(other *office) {
		if doc, err := other.RegisterAgent(ctx, o.as(o.owner), ws, "one"); err != nil || doc.Name != "one" {
			t.Errorf("the faster: got %+v, %v", doc, err)
		}
	})
	_, err := o.RegisterAgent(ctx, o.as(o.owner), ws, "one")
	o.want("an agent of the name", err, identity.ErrNameTaken.Code)
	_, err = o.RegisterAgent(ctx, o.as(o.owner), ws, "one")
	o.want("later", err, identity.ErrNameTaken.Code)

	o = open(t)
	var first principal.Principal
	o.late(func(other *office) {
		if first, err = other.Ensure(ctx, o.as(o.owner), ws, id.Agent, "one", "Another Name"); err != nil || first.Name != "one" {
			t.Errorf("the faster: got %+v, %v", first, err)
		}
	})
	if doc, err := o.Ensure(ctx, o.as(o.owner), ws, id.Agent, "one", ""); err != nil || doc.ID != first.ID {
		t.Errorf("ensured: got %+v, %v, want %s", doc, err, first.ID)
	}
	if doc, err := o.RegisterAgent(ctx, o.as(o.owner), ws, "two"); err != nil || doc.Name != "two" || doc.Kind != id.Agent {
		t.Errorf("registered: got %+v, %v", doc, err)
	}

	o = open(t)
	o.late(func(other *office) {
		if _, err := other.ChangeRole(ctx, o.as(o.owner), ws, o.admin, principal.Member); err != nil {
			t.Error(err)
		}
	})
	_, err = o.ChangeRole(ctx, o.as(o.admin), ws, o.member, principal.Admin)
	o.want("a role that is given by one who has it no more", err, policy.ReasonRoleTooLow)
	before := o.count(principal.RoleChangedType)
	if doc, err := o.ChangeRole(ctx, o.as(o.owner), ws, o.member, principal.Member); err != nil || doc.ID != o.member ||
		o.count(principal.RoleChangedType) != before {
		t.Errorf("the role that they have: got %+v, %v", doc, err)
	}

	o = open(t)
	owner := o.settled()
	o.late(func(*office) {
		archived := event.New(workspace.EventArchived, o.as(owner), elsewhere, "", workspace.Archiving{Reason: "over"})
		if _, err := o.log.Append(ctx, event.Batch{Workspace: elsewhere, Drafts: []event.Draft{archived.About(workspace.EntityType,
			string(elsewhere))}}); err != nil {
			t.Error(err)
		}
	})
	for _, when := range []string{"while it is archived", "after it was archived"} {
		_, err = o.Agent(ctx, o.as(owner), elsewhere, "another")
		o.want(when, err, workspace.ErrArchived.Code)
	}
}

// A token of an engine that is asked for twice is made once and shown once; the newest is listed first, and names and reasons have
// bounds.
func TestTheEdgesOfEngines(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	_, err := o.RegisterEngine(ctx, o.as(o.owner), ws, " ")
	o.want("a name that is none", err, principal.ErrInvalidName.Code)
	e, err := o.RegisterEngine(ctx, o.as(o.owner), ws, "mill")
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.IssueEngineToken(ctx, o.as(numbered[id.Principal]("usr", 9)), ws, e.ID, identity.EngineScopes(), time.Time{})
	o.want("a token, by nobody", err, "principal_not_found")
	_, err = o.IssueEngineToken(ctx, o.under(o.owner, "cap_01M7YNAYM0SMK245AEDNVB5CNW"), ws, e.ID, identity.EngineScopes(), time.Time{})
	o.want("a token, under none", err, token.ErrParentNotFound.Code)
	origin := o.as(o.owner)
	origin.Key, origin.Command = "k", event.DigestOf([]byte("issue"))
	var made [2]identity.EngineToken
	for i := range made {
		if made[i], err = o.IssueEngineToken(ctx, origin, ws, e.ID, identity.EngineScopes(), time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	if made[0].Secret == "" || made[1].Secret != "" || made[0].ID != made[1].ID || o.count(engine.TokenIssuedType) != 1 {
		t.Errorf("sent again: got %+v and %+v", made[0], made[1])
	}
	newer, err := o.IssueEngineToken(ctx, o.as(o.owner), ws, e.ID, identity.EngineScopes(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if all, err := o.EngineTokens(ctx, ws, e.ID, "", 10); err != nil || len(all) != 2 || all[0].ID != newer.ID {
		t.Errorf("listed: got %+v, %v", all, err)
	}
	_, err = o.EngineTokens(ctx, ws, numbered[id.Principal]("svc", 9), "", 10)
	o.want("of none", err, engine.ErrNotFound.Code)
	long := strings.Repeat("x", policy.MaxReasonBytes)
	if doc, err := o.DeactivateEngine(ctx, o.as(o.owner), ws, e.ID, long); err != nil || doc.Reason != long {
		t.Errorf("a reason as long as may be: got %v", err)
	}
}
