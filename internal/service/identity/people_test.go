package identity_test

import (
	"sync"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/identity"
)

func TestWhoChangesRoles(t *testing.T) {
	for _, c := range []struct {
		name string
		by   func(*office) id.Principal
		of   func(*office) id.Principal
		to   principal.Role
		code string
	}{
		{"an owner makes an owner", func(o *office) id.Principal { return o.owner }, func(o *office) id.Principal { return o.member },
			principal.Overlord, ""},
		{"an admin makes an admin", func(o *office) id.Principal { return o.admin }, func(o *office) id.Principal { return o.member },
			principal.Admin, ""},
		{"an admin makes an owner", func(o *office) id.Principal { return o.admin }, func(o *office) id.Principal { return o.member },
			principal.Overlord, policy.ReasonRoleTooLow},
		{"an admin raises himself", func(o *office) id.Principal { return o.admin }, func(o *office) id.Principal { return o.admin },
			principal.Overlord, policy.ReasonRoleTooLow},
		{"an admin lowers himself", func(o *office) id.Principal { return o.admin }, func(o *office) id.Principal { return o.admin },
			principal.Viewer, ""},
		{"an admin lowers the owner", func(o *office) id.Principal { return o.admin }, func(o *office) id.Principal { return o.owner },
			principal.Viewer, policy.ReasonRoleTooLow},
		{"an operator raises himself", func(o *office) id.Principal { return o.operator }, func(o *office) id.Principal { return o.operator },
			principal.Admin, policy.ReasonRoleTooLow},
		{"a viewer lowers another", func(o *office) id.Principal { return o.viewer }, func(o *office) id.Principal { return o.member },
			principal.Viewer, policy.ReasonRoleTooLow},
		{"an agent makes an admin", func(o *office) id.Principal { return o.agent }, func(o *office) id.Principal { return o.member },
			principal.Admin, policy.ReasonRoleTooLow},
		{"the last owner goes", func(o *office) id.Principal { return o.owner }, func(o *office) id.Principal { return o.owner }, principal.Admin,
			"last_owner"},
		{"an agent gets a role", func(o *office) id.Principal { return o.owner }, func(o *office) id.Principal { return o.agent },
			principal.Admin, "principal_not_a_user"},
		{"nobody gets a role", func(o *office) id.Principal { return o.owner }, func(o *office) id.Principal {
			return "usr_01M7YNAYM0SMK245AEDNVB5CNW"
		}, principal.Admin, "principal_not_found"},
		{"a role that there is not", func(o *office) id.Principal { return o.owner }, func(o *office) id.Principal { return o.member }, "root",
			"invalid_role"},
		{"no role", func(o *office) id.Principal { return o.owner }, func(o *office) id.Principal { return o.member }, "", "invalid_role"},
	} {
		o := open(t)
		p := c.of(o)
		doc, err := o.ChangeRole(t.Context(), o.as(c.by(o)), ws, p, c.to)
		o.want(c.name, err, c.code)
		if err != nil {
			if o.count(principal.RoleChangedType) != 0 {
				t.Errorf("%s: it was recorded", c.name)
			}
			continue
		}
		changed, err := event.Decode[principal.RoleChanged](o.last(principal.RoleChangedType))
		if err != nil || changed.Principal != p || changed.To != c.to || changed.From == c.to || doc.Role != c.to {
			t.Errorf("%s: %+v is recorded, the role is %s (%v)", c.name, changed, doc.Role, err)
		}
	}
}

// TestOneOwnerIsAlwaysLeft has two owners lower each other and themselves at the same time.
func TestOneOwnerIsAlwaysLeft(t *testing.T) {
	for range 10 {
		o := open(t)
		if _, err := o.ChangeRole(t.Context(), o.as(o.owner), ws, o.admin, principal.Overlord); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for _, c := range [][2]id.Principal{{o.owner, o.admin}, {o.admin, o.owner}, {o.owner, o.owner}, {o.admin, o.admin}} {
			all.Go(func() {
				if _, err := o.ChangeRole(t.Context(), o.as(c[0]), ws, c[1], principal.Member); err != nil && fault.KindOf(err) == fault.Internal {
					t.Error(err)
				}
			})
		}
		all.Wait()
		owners := 0
		for _, p := range []id.Principal{o.owner, o.admin} {
			if doc, err := o.Principal(t.Context(), ws, p); err != nil {
				t.Fatal(err)
			} else if doc.Role == principal.Overlord {
				owners++
			}
		}
		if owners != 1 {
			t.Errorf("%d owners are left, want 1", owners)
		}
	}
}

func TestAgentsHaveNamesOfTheirOwn(t *testing.T) {
	o := open(t)
	var all sync.WaitGroup
	var made sync.Map
	for range 8 {
		all.Go(func() {
			doc, err := o.RegisterAgent(t.Context(), o.as(o.member), ws, "the one")
			if err == nil {
				made.Store(doc.ID, true)
			} else {
				o.want("the second of a name", err, "agent_name_taken")
			}
		})
	}
	all.Wait()
	n := 0
	made.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d agents of one name", n)
	}
	for name, c := range map[string]struct {
		by   id.Principal
		code string
	}{"a viewer": {o.viewer, policy.ReasonRoleTooLow}, "an agent": {o.agent, ""}} {
		_, err := o.RegisterAgent(t.Context(), o.as(c.by), ws, name)
		o.want(name, err, c.code)
	}
	_, err := o.RegisterAgent(t.Context(), o.as(o.owner), ws, "")
	o.want("without a name", err, "invalid_display_name")
}

func TestEnsureFindsOrMakes(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	one, err := o.Ensure(ctx, o.as(o.admin), ws, id.User, "anna", "Anna")
	if err != nil || one.Role != principal.Viewer || one.Name != "Anna" {
		t.Fatalf("got %+v, %v", one, err)
	}
	for _, c := range []struct {
		kind  id.PrincipalKind
		actor string
		want  id.Principal
		code  string
	}{
		{id.User, "anna", one.ID, ""}, {id.User, string(one.ID), one.ID, ""}, {id.Agent, "worker", o.agent, ""},
		{id.Agent, string(one.ID), "", "invalid_actor"}, {id.User, "usr_01M7YNAYM0SMK245AEDNVB5CNW", "", "principal_not_found"},
		{id.User, "", "", "invalid_actor"}, {"robot", "x", "", "invalid_actor"},
	} {
		got, err := o.Ensure(ctx, o.as(o.admin), ws, c.kind, c.actor, "")
		o.want(string(c.kind)+" "+c.actor, err, c.code)
		if err == nil && got.ID != c.want {
			t.Errorf("%s %s: got %s, want %s", c.kind, c.actor, got.ID, c.want)
		}
	}
	_, err = o.Ensure(ctx, o.as(o.member), ws, id.Service, "cron", "")
	o.want("by a member", err, policy.ReasonRoleTooLow)
	if err := o.Quarantine(ctx, o.as(o.owner), ws, one.ID, true, ""); err != nil {
		t.Fatal(err)
	}
	_, err = o.Ensure(ctx, o.as(o.admin), ws, id.User, "anna", "")
	o.want("of a quarantined one", err, "principal_revoked")
}

func TestPrincipalsAreListed(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	for n, c := range []struct {
		f    identity.Filter
		want []id.Principal
		code string
	}{
		{identity.Filter{Kind: id.Agent, Limit: 10}, []id.Principal{o.stub, o.agent}, ""},
		{identity.Filter{Kind: id.Agent, Limit: 1}, []id.Principal{o.stub}, ""},
		{identity.Filter{Kind: id.Agent, After: o.stub, Limit: 10}, []id.Principal{o.agent}, ""},
		{identity.Filter{Kind: id.Agent, Name: "OWN", Limit: 10}, []id.Principal{o.stub}, ""},
		{identity.Filter{Name: "viewer", Limit: 10}, []id.Principal{o.viewer}, ""},
		{identity.Filter{Kind: id.Agent, After: o.owner, Limit: 10}, nil, "invalid_cursor"},
		{identity.Filter{After: "x", Limit: 10}, nil, "invalid_cursor"},
	} {
		found, err := o.Principals(ctx, ws, c.f)
		o.want("a list", err, c.code)
		if len(found) != len(c.want) {
			t.Errorf("%d: got %+v, want %v", n, found, c.want)
			continue
		}
		for i, p := range found {
			if p.ID != c.want[i] {
				t.Errorf("%d: got %s, want %s", n, p.ID, c.want[i])
			}
		}
	}
}

// TestNoKeyUnderAToken keeps a narrowed caller from making what is not narrowed.
func TestNoKeyUnderAToken(t *testing.T) {
	o := open(t)
	made := o.give(o.as(o.owner), token.Grant{IssuedTo: o.owner, Scopes: token.All()})
	_, _, err := o.IssueKey(t.Context(), o.under(o.owner, made.ID), ws, o.owner, "escape")
	o.want("a key", err, policy.ReasonScopeAction)
	if n := o.count(principal.KeyIssuedType); n != 0 {
		t.Errorf("%d keys were made", n)
	}
}

// TestWhatIsRefusedBeforePolicyStandsInTheLog tries what the role alone would permit, and what it does not: each refusal is one event.
func TestWhatIsRefusedBeforePolicyStandsInTheLog(t *testing.T) {
	o, ctx := open(t), t.Context()
	_, key, err := o.IssueKey(ctx, o.as(o.member), ws, o.member, "own")
	if err != nil {
		t.Fatal(err)
	}
	granted := o.give(o.as(o.owner), token.Grant{IssuedTo: o.owner, Scopes: talk("*")})
	for name, do := range map[string]func() error{
		"an admin makes an owner": func() error {
			_, err := o.AddPerson(ctx, o.as(o.admin), ws, "Mallory", principal.Overlord)
			return err
		},
		"a member adds a person": func() error {
			_, err := o.AddPerson(ctx, o.as(o.member), ws, "Mallory", principal.Viewer)
			return err
		},
		"an admin lowers an owner": func() error { _, err := o.ChangeRole(ctx, o.as(o.admin), ws, o.owner, principal.Viewer); return err },
		"an operator raises himself": func() error {
			_, err := o.ChangeRole(ctx, o.as(o.operator), ws, o.operator, principal.Admin)
			return err
		},
		"a member quarantines an agent":      func() error { return o.Quarantine(ctx, o.as(o.member), ws, o.agent, true, "") },
		"an admin quarantines an owner":      func() error { return o.Quarantine(ctx, o.as(o.admin), ws, o.owner, true, "") },
		"an admin makes an owner's key":      func() error { _, _, err := o.IssueKey(ctx, o.as(o.admin), ws, o.owner, "mine"); return err },
		"an operator revokes a member's key": func() error { return o.RevokeKey(ctx, o.as(o.operator), ws, key.ID, "", false) },
		"a member takes another one's token": func() error { _, err := o.Revoke(ctx, o.as(o.member), ws, granted.ID, ""); return err },
	} {
		before, err := o.log.Head(ctx, ws)
		if err != nil {
			t.Fatal(err)
		}
		o.want(name, do(), policy.ReasonRoleTooLow)
		found, err := o.log.Read(ctx, journal.Query{Workspace: ws, From: before + 1, Limit: 10})
		if err != nil || len(found) != 1 || found[0].Type != policy.DeniedType {
			t.Errorf("%s: recorded as %v, %v", name, found, err)
			continue
		}
		d, err := event.Decode[policy.Refused](found[0])
		if err != nil || d.Decision.Outcome != policy.Deny || d.Decision.ReasonCode != policy.ReasonRoleTooLow || d.Decision.Reason == "" {
			t.Errorf("%s: recorded as %+v, %v", name, d, err)
		}
	}
	before, err := o.log.Head(ctx, ws)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.AddPerson(ctx, o.as("usr_01M7YNAYM0SM228XA4K3G6VDD4"), ws, "Mallory", principal.Viewer); err == nil {
		t.Error("nobody adds people")
	}
	if after, err := o.log.Head(ctx, ws); err != nil || after != before {
		t.Errorf("whoever is nobody here is refused in the log: %v", err)
	}
}
