package identity_test

import (
	"errors"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/kernel/journal"
)

// A grant rests on who gets it and on every token above it: if one of them changes meanwhile, it is decided anew.
func TestOnWhatAGrantRests(t *testing.T) {
	ctx := t.Context()
	o := open(t)
	o.late(func(other *office) {
		_, err := other.ChangeRole(ctx, o.as(o.owner), ws, o.operator, principal.Overlord)
		o.want("another role", err, "")
	})
	_, err := o.Grant(ctx, o.as(o.admin), ws, token.Grant{IssuedTo: o.operator, Scopes: token.All()})
	o.want("to one who has become an owner", err, "role_not_permitted")

	o = open(t)
	root := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
	o.late(func(other *office) {
		_, err := other.Revoke(ctx, o.as(o.owner), ws, root.ID, "")
		o.want("the end of the token above", err, "")
	})
	if _, err := o.Grant(ctx, o.as(o.agent), ws, token.Grant{IssuedTo: o.stub, Parent: root.ID, Scopes: token.All()}); err == nil {
		t.Error("a token was derived from one that was revoked meanwhile")
	}
}

// A caller under a token derives from it and revokes below it only. That holds for an owner too.
func TestUnderATokenNothingBesideItIsReached(t *testing.T) {
	ctx := t.Context()
	o := open(t)
	mine := o.give(o.as(o.owner), token.Grant{IssuedTo: o.owner, Scopes: token.All()})
	other := o.give(o.as(o.owner), token.Grant{IssuedTo: o.owner, Scopes: token.All()})
	_, err := o.Grant(ctx, o.under(o.owner, mine.ID), ws, token.Grant{IssuedTo: o.agent, Parent: other.ID, Scopes: token.All()})
	o.want("derived from another one", err, token.ErrParentNotYours.Code)
	_, err = o.Revoke(ctx, o.under(o.owner, mine.ID), ws, other.ID, "")
	o.want("another one revoked", err, principal.ErrMayNotGive.Code)
	below := o.give(o.under(o.owner, mine.ID), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
	if below.Parent != mine.ID {
		t.Errorf("it is derived from %q", below.Parent)
	}
	if got, err := o.Revoke(ctx, o.under(o.owner, mine.ID), ws, below.ID, ""); err != nil || got.RevokedAt.IsZero() {
		t.Errorf("the one below revoked: %+v, %v", got, err)
	}
}

// An agent of the role that only people have revokes nothing of others. A token that there is not is told as such.
func TestWhoRevokesNothing(t *testing.T) {
	ctx := t.Context()
	o := open(t)
	made := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
	service := id.Principal("svc_01M7YNAYM0SMK245AEDNVB5CNW")
	o.knows(principal.Registered{Principal: service, Kind: id.Service, Role: principal.Overlord, Name: "engine"})
	_, err := o.Revoke(ctx, o.as(service), ws, made.ID, "")
	o.want("a service of a role", err, principal.ErrMayNotGive.Code)
	_, err = o.Revoke(ctx, o.as(o.owner), ws, "cap_01M7YNAYM0SMK245AEDNVB5CNW", "")
	o.want("one that is not there", err, token.ErrNotFound.Code)
	_, err = o.Revoke(ctx, o.as(o.owner), ws, "", "")
	o.want("none", err, token.ErrNotFound.Code)
	attempts := o.count(token.AttemptedType)
	_, err = o.Grant(ctx, o.as(o.owner), ws, token.Grant{IssuedTo: o.agent, Parent: "cap_01M7YNAYM0SMK245AEDNVB5CNW", Scopes: token.All()})
	o.want("derived from one that is not there", err, token.ErrParentNotFound.Code)
	if n := o.count(token.AttemptedType) - attempts; n != 1 {
		t.Errorf("%d attempts were recorded", n)
	}
	o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Parent: "", Scopes: token.All()})
	if got := o.last(token.GrantedType); got.Causation != "" {
		t.Errorf("a root follows from %s", got.Causation)
	}
}

// An attempt that failed for another reason than a refusal is not recorded as one.
func TestAFailureIsNoAttempt(t *testing.T) {
	ctx := t.Context()
	f := &frail{}
	o := openOver(t, f)
	root := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
	f.calls, f.at = 0, 1
	_, err := o.Grant(ctx, o.as(o.agent), ws, token.Grant{IssuedTo: o.stub, Parent: root.ID, Scopes: token.All()})
	if !errors.Is(err, errFrail) || o.count(token.AttemptedType) != 0 {
		t.Errorf("got %v, and %d attempts were recorded", err, o.count(token.AttemptedType))
	}
	o.losing(journal.ErrConflict)
	if _, err := o.Grant(ctx, o.as(o.agent), ws, token.Grant{IssuedTo: o.stub, Parent: root.ID, Scopes: token.All()}); !errors.Is(err,
		journal.ErrConflict) {
		t.Errorf("got %v", err)
	}
	attempts := o.count(token.AttemptedType)
	o = open(t)
	root = o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
	gate := o.Service.Gate
	for name, lost := range map[string]error{
		"unavailable": fault.New(fault.Unavailable, "busy", "later"), "internal": fault.New(fault.Internal, "broken", "no"),
		"refused": fault.New(fault.Denied, "denied", "no"),
	} {
		o.Service.Gate = &loser{Gate: gate, err: lost}
		before := o.count(token.AttemptedType)
		_, err := o.Grant(ctx, o.as(o.agent), ws, token.Grant{IssuedTo: o.stub, Parent: root.ID, Scopes: token.All()})
		if told := o.count(token.AttemptedType) > before; !errors.Is(err, lost) || told != (name == "refused") {
			t.Errorf("%s: got %v, recorded as an attempt: %v", name, err, told)
		}
		if _, err := o.Revoke(ctx, o.as(o.owner), ws, root.ID, ""); !errors.Is(err, lost) {
			t.Errorf("%s: the end of a token: %v", name, err)
		}
	}
	if attempts != 0 {
		t.Errorf("%d attempts were recorded of failures", attempts)
	}
	made := o.everything()
	for _, e := range made {
		if _, err := event.Decode[token.Granted](e); e.Type == token.GrantedType && err != nil {
			t.Error(err)
		}
	}
}
