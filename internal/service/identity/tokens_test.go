package identity_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/token"
	"agentbox/internal/service/gate"
)

// talk are scopes to post messages in one room.
func talk(rooms ...string) token.Scopes {
	return token.Scopes{Rooms: rooms, Actions: []string{policy.MessageCreate, policy.CapabilityGrant}}
}

// TestThreat17WhoGrantsWhat is the rule of root tokens: an owner or an admin grants them, to nobody above themselves. A plain session may
// not.
func TestThreat17WhoGrantsWhat(t *testing.T) {
	o := open(t)
	all := token.All()
	for _, c := range []struct {
		name   string
		by, to id.Principal
		code   string
	}{
		{"an owner to an agent", o.owner, o.agent, ""},
		{"an owner to an admin", o.owner, o.admin, ""},
		{"an admin to an admin", o.admin, o.admin, ""},
		{"an admin to a viewer", o.admin, o.viewer, ""},
		{"an admin to the owner", o.admin, o.owner, policy.ReasonRoleTooLow},
		{"an operator to an agent", o.operator, o.agent, policy.ReasonRoleTooLow},
		{"a member to himself", o.member, o.member, policy.ReasonRoleTooLow},
		{"a viewer to himself", o.viewer, o.viewer, policy.ReasonRoleTooLow},
		{"an agent to itself", o.agent, o.agent, policy.ReasonRoleTooLow},
		{"to nobody", o.owner, "agt_01M7YNAYM0SMK245AEDNVB5CNW", "issued_to_principal_not_found"},
		{"by nobody", "usr_01M7YNAYM0SMK245AEDNVB5CNW", o.agent, "granted_by_principal_not_found"},
	} {
		_, err := o.Grant(t.Context(), o.as(c.by), ws, token.Grant{IssuedTo: c.to, Scopes: all})
		o.want(c.name, err, c.code)
	}
	_, err := o.Grant(t.Context(), o.as(o.owner), "ws_other", token.Grant{IssuedTo: o.agent, Scopes: all})
	o.want("in another workspace", err, "granted_by_principal_not_found")
}

func TestATokenNarrowsWhatItsHolderMay(t *testing.T) {
	o := open(t)
	made := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: talk(string(room))})
	if err := o.says(o.agent, made.ID, room); err != nil {
		t.Errorf("in its room: %v", err)
	}
	if err := o.says(o.agent, "", "room_00000000000000000000000002"); err != nil {
		t.Errorf("without the token: %v", err)
	}
	o.want("in another room", o.says(o.agent, made.ID, "room_00000000000000000000000002"), policy.ReasonScopeRoom)
	o.want("in no room", o.says(o.agent, made.ID, ""), policy.ReasonScopeRoomRequired)
	o.want("of another", o.says(o.member, made.ID, room), policy.ReasonTokenMismatch)
	o.want("a token that is not there", o.says(o.agent, "cap_01M7YNAYM0SMK245AEDNVB5CNW", room), policy.ReasonTokenNotFound)
	// It gives nothing: no token permits an action that the role does not permit.
	root := o.give(o.as(o.owner), token.Grant{IssuedTo: o.viewer, Scopes: token.All()})
	o.want("of a viewer", o.says(o.viewer, root.ID, room), policy.ReasonRoleTooLow)
	// The subject of a refusal is in the log, with the token.
	var context struct {
		Token id.Token `json:"capability_token_id"`
	}
	if err := json.Unmarshal(o.last(policy.DeniedType).PolicyContext, &context); err != nil || context.Token != root.ID {
		t.Errorf("got %v, %v, want %s", context, err, root.ID)
	}
}

// A record is made under the token of its origin: an action that names none gets that one, and one that names another is refused.
func TestARecordIsMadeUnderTheTokenOfItsOrigin(t *testing.T) {
	o := open(t)
	made := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: talk(string(room))})
	other := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
	for _, c := range []struct {
		name   string
		origin event.Origin
		token  id.Token
		in     id.Room
		code   string
	}{
		{"the same", o.under(o.agent, made.ID), made.ID, room, ""},
		{"none in the action", o.under(o.agent, made.ID), "", room, ""},
		{"none in the action, beyond the token", o.under(o.agent, made.ID), "", "room_00000000000000000000000002", policy.ReasonScopeRoom},
		{"none in the origin", o.as(o.agent), made.ID, room, policy.ReasonActionInvalid},
		{"another one", o.under(o.agent, made.ID), other.ID, room, policy.ReasonActionInvalid},
	} {
		before := o.count("test.said")
		_, err := o.gate.Record(t.Context(), c.origin, policy.Action{Type: policy.MessageCreate, Workspace: ws, Room: c.in,
			Principal: o.agent, Token: c.token}, event.Batch{
			Workspace: ws, Drafts: []event.Draft{event.New("test.said", c.origin, ws, c.in, struct{}{})},
		})
		o.want(c.name, err, c.code)
		if n := o.count("test.said") - before; (n == 1) != (c.code == "") {
			t.Errorf("%s: %d were recorded", c.name, n)
		}
		if c.code == policy.ReasonActionInvalid && fault.KindOf(err) != fault.Internal {
			t.Errorf("%s: it is a fault of the program, got %v", c.name, fault.KindOf(err))
		}
	}
}

func TestDelegationsAreIntersectedCappedAndRecorded(t *testing.T) {
	o := open(t)
	until := o.clock.Now().Add(time.Hour)
	root := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: talk(string(room)), ValidUntil: until})
	child := o.give(o.as(o.agent), token.Grant{IssuedTo: o.stub, Parent: root.ID, Scopes: token.All(), ValidUntil: until.Add(time.Hour)})
	if !child.ValidUntil.Equal(until) || len(child.Scopes.Rooms) != 1 || len(child.Scopes.Tools) != 0 || child.Depth != 1 {
		t.Errorf("the child is %+v", child.Token)
	}
	if err := o.says(o.stub, child.ID, room); err != nil {
		t.Error(err)
	}
	attempts := o.count(token.AttemptedType)
	for _, c := range []struct {
		name  string
		as    event.Origin
		grant token.Grant
		code  string
	}{
		{"of another's token", o.as(o.member), token.Grant{IssuedTo: o.stub, Parent: root.ID}, "parent_token_grantor_mismatch"},
		{"of a token that is not there", o.as(o.agent), token.Grant{IssuedTo: o.stub, Parent: "cap_01M7YNAYM0SMK245AEDNVB5CNW"},
			"parent_token_not_found"},
		{"until the past", o.as(o.agent), token.Grant{IssuedTo: o.stub, Parent: root.ID, ValidUntil: o.clock.Now()}, "invalid_valid_until"},
		{"beside its own token", o.under(o.stub, child.ID), token.Grant{IssuedTo: o.stub, Parent: root.ID}, "parent_token_grantor_mismatch"},
		{"to nobody", o.as(o.agent), token.Grant{IssuedTo: "agt_01M7YNAYM0SMK245AEDNVB5CNW", Parent: root.ID}, "issued_to_principal_not_found"},
	} {
		_, err := o.Grant(t.Context(), c.as, ws, c.grant)
		o.want(c.name, err, c.code)
		attempted, err := event.Decode[token.Attempted](o.last(token.AttemptedType))
		if attempts++; err != nil || o.count(token.AttemptedType) != attempts || attempted.Reason != c.code || attempted.From != c.as.Principal {
			t.Errorf("%s: recorded was %+v (%v)", c.name, attempted, err)
		}
	}
	// A caller that acts under a token derives from it without naming it, and from nothing else.
	under := o.give(o.under(o.stub, child.ID), token.Grant{IssuedTo: o.stub, Scopes: token.All()})
	if under.Parent != child.ID || under.Depth != 2 {
		t.Errorf("got %+v", under.Token)
	}
	third := o.give(o.under(o.stub, under.ID), token.Grant{IssuedTo: o.stub, Scopes: token.All()})
	_, err := o.Grant(t.Context(), o.under(o.stub, third.ID), ws, token.Grant{IssuedTo: o.stub, Scopes: token.All()})
	o.want("a fourth time", err, "delegation_depth_exceeded")
	// A token without the action grants nothing.
	mute := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.Scopes{Rooms: []string{"*"},
		Actions: []string{policy.MessageCreate}}})
	_, err = o.Grant(t.Context(), o.under(o.agent, mute.ID), ws, token.Grant{IssuedTo: o.agent, Scopes: token.All()})
	o.want("under a token that does not permit it", err, policy.ReasonScopeAction)

	edges, err := o.Edges(t.Context(), ws, o.stub, "", 10)
	if err != nil || len(edges) != 3 || edges[2].From != o.agent || edges[2].To != o.stub || edges[0].Depth != 3 {
		t.Errorf("the edges are %+v, %v", edges, err)
	}
	o.clock.move(time.Hour)
	for _, made := range []id.Token{root.ID, child.ID, third.ID} {
		_, err := o.Authenticate(t.Context(), "")
		o.want("nobody", err, principal.ErrUnauthenticated.Code)
		doc, err := o.Token(t.Context(), ws, made)
		if status, err2 := o.InForce(t.Context(), ws, doc); err != nil || err2 != nil || status != "expired" {
			t.Errorf("%s is %s after its time, %v %v", made, status, err, err2)
		}
	}
	o.want("after its time", o.says(o.stub, child.ID, room), policy.ReasonTokenExpired)
}

// TestRevocationReachesEveryChildAtOnce revokes the root while its children are in use, over every way of using them.
func TestRevocationReachesEveryChildAtOnce(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	root := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
	one := o.give(o.under(o.agent, root.ID), token.Grant{IssuedTo: o.stub, Scopes: token.All()})
	two := o.give(o.under(o.stub, one.ID), token.Grant{IssuedTo: o.stub, Scopes: token.All()})
	if two.Bearer == "" || one.Bearer == "" {
		t.Fatal("an agent gets no bearer for an agent that it registered")
	}
	who, err := o.Authenticate(ctx, two.Bearer)
	if err != nil || who.Principal != o.stub || who.Token != two.ID {
		t.Fatalf("got %+v, %v", who, err)
	}
	if err := o.gate.Bound(ctx, o.under(o.stub, two.ID), who, token.Use{Reads: []string{"run"}}); err != nil {
		t.Fatal(err)
	}
	ruling, err := o.gate.Judge(ctx, policy.Action{Type: policy.MessageCreate, Workspace: ws, Room: room, Principal: o.stub, Token: two.ID})
	if err != nil || ruling.Decision.Outcome != policy.Allow {
		t.Fatalf("got %+v, %v", ruling.Decision, err)
	}
	if _, err := o.Revoke(ctx, o.as(o.owner), ws, root.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	o.want("to act", o.says(o.stub, two.ID, room), policy.ReasonTokenRevoked)
	_, err = o.Authenticate(ctx, two.Bearer)
	o.want("to be known", err, principal.ErrUnauthenticated.Code)
	o.want("to look", o.gate.Bound(ctx, o.under(o.stub, two.ID), who, token.Use{Reads: []string{"run"}}), policy.ReasonTokenRevoked)
	_, _, err = o.gate.Begin(ctx, ruling, "", event.Batch{Workspace: ws, Drafts: []event.Draft{event.New("test.said", o.as(o.stub), ws, room,
		struct{}{})}})
	o.want("to begin what was allowed before", err, policy.ReasonTokenRevoked)
	_, err = o.Grant(ctx, o.as(o.stub), ws, token.Grant{IssuedTo: o.stub, Parent: one.ID, Scopes: token.All()})
	o.want("to hand on", err, "parent_token_revoked")
	_, err = o.ActsFor(ctx, principal.Caller{Principal: o.stub, Workspace: ws}, "", two.ID)
	o.want("to be named", err, policy.ReasonTokenRevoked)
	again, err := o.Revoke(ctx, o.as(o.owner), ws, root.ID, "again")
	if err != nil || again.Reason != "enough" || o.count(token.RevokedType) != 1 {
		t.Errorf("revoked twice: %+v, %v", again, err)
	}
}

// TestARevocationWinsOverAGrantThatItMeets grants and revokes at the same time: whatever the order, nothing in force is left below what
// was revoked.
func TestARevocationWinsOverAGrantThatItMeets(t *testing.T) {
	o := open(t)
	for range 20 {
		root := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
		var all sync.WaitGroup
		var child id.Token
		all.Go(func() {
			if made, err := o.Grant(t.Context(), o.as(o.agent), ws, token.Grant{IssuedTo: o.agent, Parent: root.ID,
				Scopes: token.All()}); err == nil {
				child = made.ID
			}
		})
		all.Go(func() {
			if _, err := o.Revoke(t.Context(), o.as(o.owner), ws, root.ID, ""); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		if child != "" {
			o.want("a child of a revoked token", o.says(o.agent, child, room), policy.ReasonTokenRevoked)
		}
	}
}

func TestWhoRevokes(t *testing.T) {
	o := open(t)
	fresh := func() (root, child id.Token) {
		r := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
		return r.ID, o.give(o.as(o.agent), token.Grant{IssuedTo: o.stub, Parent: r.ID, Scopes: token.All()}).ID
	}
	for name, c := range map[string]struct {
		who  func(root, child id.Token) (event.Origin, id.Token)
		code string
	}{
		"the owner":                  {func(r, c id.Token) (event.Origin, id.Token) { return o.as(o.owner), c }, ""},
		"an admin":                   {func(r, c id.Token) (event.Origin, id.Token) { return o.as(o.admin), c }, ""},
		"who granted it":             {func(r, c id.Token) (event.Origin, id.Token) { return o.as(o.agent), c }, ""},
		"who holds it":               {func(r, c id.Token) (event.Origin, id.Token) { return o.as(o.stub), c }, ""},
		"who holds a child":          {func(r, c id.Token) (event.Origin, id.Token) { return o.as(o.stub), r }, policy.ReasonRoleTooLow},
		"an operator":                {func(r, c id.Token) (event.Origin, id.Token) { return o.as(o.operator), c }, policy.ReasonRoleTooLow},
		"a viewer":                   {func(r, c id.Token) (event.Origin, id.Token) { return o.as(o.viewer), c }, policy.ReasonRoleTooLow},
		"under the token itself":     {func(r, c id.Token) (event.Origin, id.Token) { return o.under(o.stub, c), c }, ""},
		"under the parent":           {func(r, c id.Token) (event.Origin, id.Token) { return o.under(o.agent, r), c }, ""},
		"a token above the caller's": {func(r, c id.Token) (event.Origin, id.Token) { return o.under(o.stub, c), r }, policy.ReasonRoleTooLow},
		"a token that is not there": {func(r, c id.Token) (event.Origin, id.Token) { return o.as(o.owner), "cap_01M7YNAYM0SMK245AEDNVB5CNW" },
			policy.ReasonTokenNotFound},
		"what is not a token": {func(r, c id.Token) (event.Origin, id.Token) { return o.as(o.owner), "" }, policy.ReasonTokenNotFound},
		"who is nobody": {func(r, c id.Token) (event.Origin, id.Token) { return o.as("usr_01M7YNAYM0SMK245AEDNVB5CNW"), c },
			"principal_not_found"},
		"another, under a token of all": {func(r, c id.Token) (event.Origin, id.Token) { return o.under(o.agent, r), "" },
			policy.ReasonTokenNotFound},
	} {
		as, which := c.who(fresh())
		_, err := o.Revoke(t.Context(), as, ws, which, "")
		o.want(name, err, c.code)
	}
}

// TestABearerIsGivenToWhoMaySpeakForItsHolder keeps a grant from becoming a way to be somebody else.
func TestABearerIsGivenToWhoMaySpeakForItsHolder(t *testing.T) {
	o := open(t)
	root := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
	var people []id.Principal
	for _, role := range []principal.Role{principal.Admin, principal.Overlord} {
		p, err := o.AddPerson(t.Context(), o.as(o.owner), ws, "another "+string(role), role)
		if err != nil {
			t.Fatal(err)
		}
		people = append(people, p)
	}
	peer, second := people[0], people[1]
	for name, c := range map[string]struct {
		to   id.Principal
		want bool
	}{
		"itself": {o.agent, true}, "an agent that it registered": {o.stub, true}, "the owner": {o.owner, false}, "an admin": {o.admin, false},
		"a viewer": {o.viewer, false},
	} {
		made := o.give(o.as(o.agent), token.Grant{IssuedTo: c.to, Parent: root.ID, Scopes: token.All()})
		if got := made.Bearer != ""; got != c.want || got == made.Hash.IsZero() {
			t.Errorf("an agent for %s: got a bearer %t, want %t", name, got, c.want)
		}
	}
	for name, c := range map[string]struct {
		by, to id.Principal
		want   bool
	}{
		"an owner for an admin": {o.owner, o.admin, true}, "an admin for himself": {o.admin, o.admin, true}, "an admin for a peer": {o.admin,
			peer, false},
		"an admin for an operator": {o.admin, o.operator, false}, "an admin for a member": {o.admin, o.member, true},
		"an owner for an owner": {o.owner, second, false},
	} {
		made := o.give(o.as(c.by), token.Grant{IssuedTo: c.to, Scopes: token.All()})
		if (made.Bearer != "") != c.want {
			t.Errorf("%s: got a bearer %t, want %t", name, made.Bearer != "", c.want)
		}
		if made.Bearer == "" {
			continue
		}
		issuer := c.by
		if c.by == c.to {
			issuer = ""
		}
		if who, err := o.Authenticate(t.Context(), made.Bearer); err != nil || who.Issuer != issuer || made.IssuedBy != c.by {
			t.Errorf("%s: it was issued by %q and %q, %v, want %q", name, who.Issuer, made.IssuedBy, err, issuer)
		}
	}
	made := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
	for i := range made.Bearer {
		flipped := made.Bearer[:i] + string(made.Bearer[i]^1) + made.Bearer[i+1:]
		if who, err := o.Authenticate(t.Context(), flipped); err == nil {
			t.Fatalf("byte %d flipped is %+v", i, who)
		}
	}
	// A token without a bearer is opened by none, whatever its hash.
	silent := o.give(o.as(o.agent), token.Grant{IssuedTo: o.owner, Parent: root.ID, Scopes: token.All()})
	forged := fmt.Sprintf("abt_dev.%s.%s", string(silent.ID)[len("cap_"):], made.Bearer[len(made.Bearer)-52:])
	if who, err := o.Authenticate(t.Context(), forged); err == nil {
		t.Errorf("a token without a bearer is %+v", who)
	}
}

// TestQuarantineStopsWhatWasHandedOn: tokens that a quarantined principal handed on are suspended too.
func TestQuarantineStopsWhatWasHandedOn(t *testing.T) {
	o := open(t)
	root := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
	child := o.give(o.as(o.agent), token.Grant{IssuedTo: o.stub, Parent: root.ID, Scopes: token.All()})
	if err := o.Quarantine(t.Context(), o.as(o.owner), ws, o.agent, true, "odd"); err != nil {
		t.Fatal(err)
	}
	o.want("while it lasts", o.says(o.stub, child.ID, room), policy.ReasonAgentQuarantined)
	if err := o.Quarantine(t.Context(), o.as(o.owner), ws, o.agent, false, ""); err != nil {
		t.Fatal(err)
	}
	o.want("afterwards", o.says(o.stub, child.ID, room), "")
}

func TestWhoActsForWhom(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	caller := func(p id.Principal) principal.Caller {
		return principal.Caller{Principal: p, Workspace: ws, Key: "key"}
	}
	for _, c := range []struct {
		name   string
		as, of id.Principal
		code   string
	}{
		{"himself", o.member, o.member, ""},
		{"nobody", o.member, "", ""},
		{"the owner for an agent", o.owner, o.agent, ""},
		{"an admin for an agent", o.admin, o.agent, ""},
		{"an operator for an agent", o.operator, o.agent, "agent_actor_id_mismatch"},
		{"a member for an agent", o.member, o.agent, "agent_actor_id_mismatch"},
		{"an agent for another", o.agent, o.stub, "agent_actor_id_mismatch"},
		{"an agent for a person", o.agent, o.owner, "agent_actor_id_mismatch"},
		{"the owner for a person", o.owner, o.viewer, "agent_actor_id_mismatch"},
		{"for who is not there", o.owner, "agt_01M7YNAYM0SMK245AEDNVB5CNW", "principal_not_found"},
	} {
		got, err := o.ActsFor(ctx, caller(c.as), c.of, "")
		o.want(c.name, err, c.code)
		if err != nil {
			continue
		}
		acts := c.of == "" || c.of == c.as
		if acts && got != caller(c.as) || !acts && (got.Principal != c.of || got.By != c.as || got.Role != "") {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
	acting, err := o.ActsFor(ctx, caller(o.owner), o.agent, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.ActsFor(ctx, acting, o.stub, "")
	o.want("for one through another", err, "agent_actor_id_mismatch")
	if err := o.Quarantine(ctx, o.as(o.owner), ws, o.agent, true, ""); err != nil {
		t.Fatal(err)
	}
	_, err = o.ActsFor(ctx, caller(o.owner), o.agent, "")
	o.want("for a quarantined agent", err, policy.ReasonAgentQuarantined)
	// The events say both.
	e := event.New("test.said", event.Origin{Principal: o.agent, By: o.owner}, ws, room, struct{}{})
	if string(e.PolicyContext) != `{"authenticated_principal_id":"`+string(o.owner)+`"}` || e.Principal != o.agent {
		t.Errorf("got %s of %s", e.PolicyContext, e.Principal)
	}
}

func TestATokenIsNarrowedByNameOnly(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	root := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
	other := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
	child := o.give(o.as(o.agent), token.Grant{IssuedTo: o.agent, Parent: root.ID, Scopes: talk(string(room))})
	for _, c := range []struct {
		name string
		has  id.Token
		asks id.Token
		who  id.Principal
		code string
	}{
		{"from everything to a token", "", root.ID, o.agent, ""},
		{"from a token to its child", root.ID, child.ID, o.agent, ""},
		{"to the same", child.ID, child.ID, o.agent, ""},
		{"from a child to its parent", child.ID, root.ID, o.agent, policy.ReasonTokenMismatch},
		{"to one beside it", root.ID, other.ID, o.agent, policy.ReasonTokenMismatch},
		{"to another's", "", root.ID, o.member, policy.ReasonTokenMismatch},
		{"to none that is there", "", "cap_01M7YNAYM0SMK245AEDNVB5CNW", o.agent, policy.ReasonTokenNotFound},
	} {
		got, err := o.ActsFor(ctx, principal.Caller{Principal: c.who, Workspace: ws, Token: c.has}, "", c.asks)
		o.want(c.name, err, c.code)
		if err == nil && got.Token != c.asks {
			t.Errorf("%s: got %s", c.name, got.Token)
		}
	}
	// Who names none stays under the token that they came with.
	if got, err := o.ActsFor(ctx, principal.Caller{Principal: o.agent, Workspace: ws, Token: child.ID}, "", ""); err != nil ||
		got.Token != child.ID {
		t.Errorf("without a name: %s, %v", got.Token, err)
	}
}

// A principal who may act for an agent hands it their own token. An authenticated principal holds their own token while they act for
// another.
func TestATokenHoldsForWhoActsForItsHolder(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	made := o.give(o.as(o.owner), token.Grant{IssuedTo: o.admin, Scopes: talk(string(room))})
	o.want("an agent under the token of an admin", o.says(o.agent, made.ID, room), "")
	if err := o.Quarantine(ctx, o.as(o.owner), ws, o.admin, true, ""); err != nil {
		t.Fatal(err)
	}
	o.want("of an admin who is quarantined", o.says(o.agent, made.ID, room), policy.ReasonTokenMismatch)
	seen := token.Use{Reads: []string{"run"}, Anywhere: true}
	for _, c := range []struct {
		name   string
		caller principal.Caller
		code   string
	}{
		{"without a token", principal.Caller{Principal: o.agent, Workspace: ws}, ""},
		{"its holder", principal.Caller{Principal: o.admin, Workspace: ws, Token: made.ID}, policy.ReasonScopeDataRequired},
		{"its holder, who acts for an agent", principal.Caller{Principal: o.agent, By: o.admin, Workspace: ws, Token: made.ID},
			policy.ReasonScopeDataRequired},
		{"another", principal.Caller{Principal: o.agent, Workspace: ws, Token: made.ID}, policy.ReasonTokenMismatch},
	} {
		before := o.count(policy.DeniedType)
		o.want(c.name, o.gate.Bound(ctx, o.as(c.caller.Principal), c.caller, seen), c.code)
		if n := o.count(policy.DeniedType) - before; (n == 1) != (c.code != "") {
			t.Errorf("%s: %d refusals were recorded", c.name, n)
		}
		if c.code == "" {
			continue
		}
		if data := string(o.last(policy.DeniedType).Data); !strings.Contains(data, gate.ReadAction) {
			t.Errorf("%s: the refusal of a look is recorded as %s", c.name, data)
		}
	}
}

// TestARunActsUnderTheTokenThatAskedForIt is how a run's agent may act under the token of the run's requester, and nobody else may.
func TestARunActsUnderTheTokenThatAskedForIt(t *testing.T) {
	o := open(t)
	made := o.give(o.as(o.owner), token.Grant{IssuedTo: o.member, Scopes: talk(string(room))})
	const r = id.Run("run_01M7YNAYM0SMK245AEDNVB5CNW")
	created := run.Created{Run: r, Agent: o.agent, Operations: []run.Outline{}, Token: made.ID}
	if _, err := o.log.Append(t.Context(), event.Batch{Workspace: ws, Drafts: []event.Draft{
		event.New(run.EventCreated, o.under(o.member, made.ID), ws, room, created).In(r, ""),
	}}); err != nil {
		t.Fatal(err)
	}
	// The same person asks for a run of the same agent without the token, and another person names the token for a run of it.
	const bare, foreign = id.Run("run_01M7YNAYM0SMK245AEDNVB5CN1"), id.Run("run_01M7YNAYM0SMK245AEDNVB5CN2")
	for _, c := range []struct {
		by    id.Principal
		run   id.Run
		token id.Token
	}{{o.member, bare, ""}, {o.admin, foreign, made.ID}} {
		created := run.Created{Run: c.run, Agent: o.agent, Operations: []run.Outline{}, Token: c.token}
		if _, err := o.log.Append(t.Context(), event.Batch{Workspace: ws, Drafts: []event.Draft{event.New(run.EventCreated, o.as(c.by), ws, room,
			created).In(c.run, "")}}); err != nil {
			t.Fatal(err)
		}
	}
	judge := func(p id.Principal, in id.Room, of id.Run) string {
		t.Helper()
		ruling, err := o.gate.Judge(t.Context(), policy.Action{Type: policy.MessageCreate, Workspace: ws, Room: in, Run: of, Principal: p,
			Token: made.ID})
		if err != nil {
			t.Fatal(err)
		}
		return ruling.Decision.ReasonCode
	}
	for name, c := range map[string]struct {
		who  id.Principal
		in   id.Room
		of   id.Run
		want string
	}{
		"the run's agent":                 {o.agent, room, r, policy.ReasonDefaultAllow},
		"the run's agent elsewhere":       {o.agent, "room_00000000000000000000000002", r, policy.ReasonScopeRoom},
		"the run's agent outside the run": {o.agent, room, "", policy.ReasonTokenMismatch},
		"another agent":                   {o.stub, room, r, policy.ReasonTokenMismatch},
		"in a run that is not there":      {o.agent, room, "run_01M7YNAYM0SMK245AEDNVB5CN0", policy.ReasonTokenMismatch},
		"in their run under another":      {o.agent, room, bare, policy.ReasonTokenMismatch},
		"in the run of another":           {o.agent, room, foreign, policy.ReasonTokenMismatch},
	} {
		if got := judge(c.who, c.in, c.of); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}
