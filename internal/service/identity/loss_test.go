package identity_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/identity"
)

// loser is a gate and a log at which somebody else is always faster.
type loser struct {
	policy.Gate
	journal.Journal
	times int
	err   error
}

func (l *loser) Record(context.Context, event.Origin, policy.Action, event.Batch) (event.Receipt, error) {
	l.times++
	return event.Receipt{}, l.err
}

func (l *loser) Append(context.Context, event.Batch) (event.Receipt, error) {
	l.times++
	return event.Receipt{}, l.err
}

// losing lets each record of the service be lost.
func (o *office) losing(err error) *loser {
	l := &loser{Gate: o.Gate, Journal: o.Log, err: err}
	o.Service.Gate, o.Service.Log = l, l
	return l
}

// Who always loses against somebody else tries again as often as is said, and then says so.
func TestWhoAlwaysLosesSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(o *office) error
		err   error
		times int
	}{
		"an owner": {func(o *office) error { _, err := o.Owner(o.t.Context(), elsewhere, "Olga"); return err }, journal.ErrConflict,
			journal.Tries},
		"an owner, by its name": {func(o *office) error { _, err := o.Owner(o.t.Context(), elsewhere, "Olga"); return err },
			journal.ErrKeyConflict, journal.Tries},
		"an agent": {func(o *office) error { _, err := o.Agent(o.t.Context(), o.as(o.owner), ws, "new"); return err }, journal.ErrConflict,
			journal.Tries},
		"somebody of another program": {func(o *office) error {
			_, err := o.Ensure(o.t.Context(), o.as(o.owner), ws, id.User, "new", "")
			return err
		}, journal.ErrConflict, journal.Tries},
		"a person": {func(o *office) error {
			p, err := o.AddPerson(o.t.Context(), o.as(o.owner), ws, "new", principal.Member)
			if p != "" {
				o.t.Errorf("a person that was not recorded: %s", p)
			}
			return err
		}, journal.ErrConflict, 1},
		"a key": {func(o *office) error {
			text, _, err := o.IssueKey(o.t.Context(), o.as(o.owner), ws, o.owner, "key")
			if text != "" {
				o.t.Error("a key that was not recorded is shown")
			}
			return err
		}, journal.ErrConflict, 1},
		"an agent that is registered": {func(o *office) error {
			_, err := o.RegisterAgent(o.t.Context(), o.as(o.owner), ws, "new")
			return err
		}, journal.ErrConflict, 1},
		"a quarantine": {func(o *office) error { return o.Quarantine(o.t.Context(), o.as(o.owner), ws, o.agent, true, "") },
			journal.ErrConflict, 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t)
			l := o.losing(c.err)
			if err := c.do(o); !errors.Is(err, journal.ErrConflict) || l.times != c.times {
				t.Errorf("got %v after %d times, want a conflict after %d", err, l.times, c.times)
			}
		})
	}
}

// Everybody ends their own keys. A key of somebody who is not known any more is ended by who keeps people.
func TestWhoEndsTheirOwnKey(t *testing.T) {
	o := open(t)
	for _, p := range []id.Principal{o.owner, o.admin, o.operator, o.member, o.viewer, o.agent} {
		_, key, err := o.IssueKey(t.Context(), o.as(p), ws, p, "key")
		if err != nil {
			t.Fatal(err)
		}
		o.want("one's own", o.RevokeKey(t.Context(), o.as(p), ws, key.ID, "", true), "")
	}
	stranger, key := id.Principal("usr_01M7YNAYM0SMK245AEDNVB5CNW"), id.Key("key_01M7YNAYM0SMK245AEDNVB5CNW")
	issued := event.New(principal.KeyIssuedType, o.as(o.owner), ws, "", principal.KeyIssued{Key: key, Principal: stranger, Name: "key"})
	if _, err := o.log.Append(t.Context(), event.Batch{Workspace: ws, Drafts: []event.Draft{issued.About(principal.KeyEntity,
		string(key))}}); err != nil {
		t.Fatal(err)
	}
	o.want("of a stranger, by a member", o.RevokeKey(t.Context(), o.as(o.member), ws, key, "", false), policy.ReasonRoleTooLow)
	o.want("of a stranger, by an admin", o.RevokeKey(t.Context(), o.as(o.admin), ws, key, "", false), "")
}

// The end of a key rests on the newest other one. Behind more than a page of newer ones that are ended, there is an older one.
func TestOnWhichKeyAnEndRests(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	var made [3]id.Key
	for i := range made {
		_, key, err := o.IssueKey(ctx, o.as(o.owner), ws, o.owner, "key")
		if err != nil {
			t.Fatal(err)
		}
		made[i] = key.ID
	}
	o.late(func(other *office) {
		o.want("an older one", other.RevokeKey(ctx, o.as(o.owner), ws, made[1], "", false), "")
	})
	o.want("the oldest, meanwhile", o.RevokeKey(ctx, o.as(o.owner), ws, made[0], "", false), "")

	o = open(t)
	var old [2]id.Key
	for i := range old {
		_, key, err := o.IssueKey(ctx, o.as(o.owner), ws, o.owner, "key")
		if err != nil {
			t.Fatal(err)
		}
		old[i] = key.ID
	}
	for _, n := range []int{98, 99, 100, 101} { // a page, with the one that is ended, and about a page
		var drafts []event.Draft
		for i := range n {
			name := id.Key(fmt.Sprintf("key_7Z%03d%021d", n, i))
			drafts = append(drafts, event.New(principal.KeyIssuedType, o.as(o.owner), ws, "", principal.KeyIssued{Key: name, Principal: o.owner,
				Name: "key"}).About(principal.KeyEntity, string(name)),
				event.New(principal.KeyRevokedType, o.as(o.owner), ws, "", principal.KeyRevoked{Key: name}).About(principal.KeyEntity, string(name)))
		}
		if _, err := o.log.Append(ctx, event.Batch{Workspace: ws, Drafts: drafts}); err != nil {
			t.Fatal(err)
		}
		_, key, err := o.IssueKey(ctx, o.as(o.owner), ws, o.owner, "key")
		if err != nil {
			t.Fatal(err)
		}
		o.want("with an old one", o.RevokeKey(ctx, o.as(o.owner), ws, key.ID, "", false), "")
	}
	o.want("the last but one", o.RevokeKey(ctx, o.as(o.owner), ws, old[1], "", false), "")
	o.want("the last", o.RevokeKey(ctx, o.as(o.owner), ws, old[0], "", false), "last_owner_key")
}

// Of two owners who lower themselves at the same time one stays an owner; one in quarantine does not count.
func TestOwnersWhoLowerThemselves(t *testing.T) {
	ctx := t.Context()
	two := func() *office {
		o := open(t)
		if _, err := o.ChangeRole(ctx, o.as(o.owner), ws, o.admin, principal.Overlord); err != nil {
			t.Fatal(err)
		}
		return o
	}
	o := two()
	o.late(func(other *office) {
		_, err := other.ChangeRole(ctx, o.as(o.admin), ws, o.admin, principal.Member)
		o.want("the faster one", err, "")
	})
	_, err := o.ChangeRole(ctx, o.as(o.owner), ws, o.owner, principal.Member)
	o.want("the slower one", err, identity.ErrLastOwner.Code)

	o = two()
	drafts := []event.Draft{event.New(principal.QuarantinedType, o.as(o.owner), ws, "", principal.Quarantined{
		Principal: o.admin}).About(principal.Entity, string(o.admin))}
	if _, err := o.log.Append(ctx, event.Batch{Workspace: ws, Drafts: drafts}); err != nil { // as an operator of before could
		t.Fatal(err)
	}
	_, err = o.ChangeRole(ctx, o.as(o.owner), ws, o.owner, principal.Member)
	o.want("with another one in quarantine", err, identity.ErrLastOwner.Code)
}

// A list leaves out the agents of spaces where it is asked to, and goes on over more than a page.
func TestListsOfManyPrincipals(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	var many []principal.Registered
	for n := range 99 {
		many = append(many, principal.Registered{Principal: numbered[id.Principal]("svc", n), Kind: id.Service, Name: fmt.Sprintf("mill %d", n)})
	}
	spaces := principal.Registered{Principal: "agt_7ZZZZZZZZZZZZZZZZZZZZZZZZZ", Kind: id.Agent, Name: principal.SpaceAgent + "spc_1"}
	person := principal.Registered{Principal: "usr_7ZZZZZZZZZZZZZZZZZZZZZZZZZ", Kind: id.User, Role: principal.Viewer,
		Name: principal.SpaceAgent + "spc_1"}
	other := principal.Registered{Principal: "agt_7ZZZZZZZZZZZZZZZZZZZZZZZZY", Kind: id.Agent, Name: principal.SpaceAgent + "mill"}
	o.knows(append(many, spaces, person, other)...)
	has := func(f identity.Filter, p id.Principal) bool {
		t.Helper()
		f.Limit = 1000
		found, err := o.Principals(ctx, ws, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range found {
			if x.ID == p {
				return true
			}
		}
		return false
	}
	for name, c := range map[string]struct {
		of          id.Principal
		kind        id.PrincipalKind
		named, want bool
	}{
		"the agent of a space": {spaces.Principal, id.Agent, false, true}, "the same, left out": {spaces.Principal, id.Agent, true, false},
		"a person of that name": {person.Principal, id.User, true, true}, "an agent of a name like it": {other.Principal, id.Agent, true, true},
	} {
		if got := has(identity.Filter{Kind: c.kind, Named: c.named}, c.of); got != c.want {
			t.Errorf("%s: listed: %v", name, got)
		}
	}
	for _, n := range []int{99, 100, 101, 102} {
		p := principal.Registered{Principal: numbered[id.Principal]("svc", n), Kind: id.Service, Name: fmt.Sprintf("mill %d", n)}
		o.knows(p)
		for limit := 1; limit <= 2; limit++ {
			found, err := o.Principals(ctx, ws, identity.Filter{Kind: id.Service, Name: "MILL 0", Limit: limit})
			if err != nil || len(found) != 1 || found[0].Name != "mill 0" {
				t.Errorf("beside %d others: got %+v, %v", n, found, err)
			}
		}
	}
}

// A viewer registers no agent, a name that is none registers nobody, and what is as it is meant to be records nothing.
func TestTheEdgesOfPeople(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	_, err := o.Agent(ctx, o.as(o.viewer), ws, "new")
	o.want("an agent of a viewer", err, identity.ErrMayNotRegister.Code)
	_, err = o.Agent(ctx, o.as(o.agent), ws, "of an agent")
	o.want("an agent of an agent", err, "")
	again, err := o.Agent(ctx, o.as(o.viewer), ws, "worker")
	if err != nil || again != o.agent {
		t.Errorf("an agent that there is: got %s, %v", again, err)
	}
	_, err = o.AddPerson(ctx, o.as(o.owner), ws, " ", principal.Member)
	o.want("a person without a name", err, principal.ErrInvalidName.Code)
	_, err = o.Owner(ctx, elsewhere, " ")
	o.want("an owner without a name", err, principal.ErrInvalidName.Code)
	_, err = o.Agent(ctx, o.as(o.owner), ws, " ")
	o.want("an agent without a name", err, principal.ErrInvalidName.Code)
	for _, on := range []bool{true, true, false, false} {
		before := o.count(principal.QuarantinedType) + o.count(principal.UnquarantinedType)
		doc, err := o.Principal(ctx, ws, o.agent)
		if err != nil {
			t.Fatal(err)
		}
		o.want("quarantine", o.Quarantine(ctx, o.as(o.owner), ws, o.agent, on, ""), "")
		now := o.count(principal.QuarantinedType) + o.count(principal.UnquarantinedType)
		if changed := doc.Quarantined != on; (now-before == 1) != changed {
			t.Errorf("to %v from %v: %d events", on, doc.Quarantined, now-before)
		}
	}
	registered := o.last(principal.RegisteredType)
	if registered.IdempotencyKey != "principal:agent:of an agent" || !registered.OccurredAt.Equal(o.clock.Now()) {
		t.Errorf("registered under %q at %s", registered.IdempotencyKey, registered.OccurredAt)
	}
	if fault.KindOf(identity.ErrMayNotStop) != fault.Denied {
		t.Error("not to stop is not a refusal")
	}
}

// Who ends a run: the agent whose run it is, people from member on, and services.
func TestWhoStopsRuns(t *testing.T) {
	o := open(t)
	for _, c := range []struct {
		who   id.Principal
		agent id.Principal
		code  string
	}{
		{o.owner, o.agent, ""}, {o.member, o.agent, ""}, {o.viewer, o.agent, identity.ErrMayNotStop.Code}, {o.agent, o.agent, ""},
		{o.stub, o.agent, identity.ErrMayNotStop.Code}, {o.agent, o.stub, identity.ErrMayNotStop.Code},
		{"usr_01M7YNAYM0SMK245AEDNVB5CNW", o.agent, identity.ErrMayNotStop.Code},
	} {
		o.want(string(c.who)+" stops "+string(c.agent), o.MayStop(t.Context(), ws, c.who, c.agent), c.code)
	}
	f := &frail{}
	o = openOver(t, f)
	f.at = f.calls + 1
	o.want("a viewer whose role cannot be read", o.MayStop(t.Context(), ws, o.viewer, o.agent), "")
}

// Somebody who sets the first passphrase at the same time as another person is told that there is one.
func TestTheFirstPassphraseOfTwoAtOnce(t *testing.T) {
	o := open(t)
	o.BootstrapToken = "the daemon's own"
	l := o.losing(journal.ErrConflict)
	_, err := o.Bootstrap(t.Context(), o.BootstrapToken, ws, "Olga", right)
	o.want("the later one", err, principal.ErrOwnerExists.Code)
	if l.times != 1 {
		t.Errorf("it was tried %d times, want once", l.times)
	}
}
