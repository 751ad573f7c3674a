package identity_test

import (
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
)

// A grant that narrows another one follows from it, is made once however often it is sent, and shows its bearer once.
func TestAGrantThatIsSentAgain(t *testing.T) {
	o := open(t)
	root := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
	rooted := o.last(token.GrantedType)
	if rooted.Causation != "" {
		t.Errorf("a root is caused by %s", rooted.Causation)
	}
	origin := o.as(o.agent)
	origin.Key, origin.Command = "k", event.DigestOf([]byte("grant"))
	grant := token.Grant{IssuedTo: o.stub, Parent: root.ID, Scopes: token.All()}
	first := o.give(origin, grant)
	if got := o.last(token.GrantedType); got.Causation != rooted.ID || got.EntityID != string(first.ID) {
		t.Errorf("it is caused by %s, want %s", got.Causation, rooted.ID)
	}
	again := o.give(origin, grant)
	if first.Bearer == "" || again.Bearer != "" || again.ID != first.ID || again.IssuedTo != o.stub || o.count(token.GrantedType) != 2 {
		t.Errorf("sent again: got %+v, want %+v without a bearer", again, first)
	}
}

// The refusal of a root is not about a delegation. The refusal of a delegation is recorded with its readable parts.
func TestWhatIsRecordedOfAGrantThatIsRefused(t *testing.T) {
	o := open(t)
	root := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
	_, err := o.Grant(t.Context(), o.as(o.member), ws, token.Grant{IssuedTo: o.member, Scopes: token.All()})
	o.want("a root", err, policy.ReasonRoleTooLow)
	if n := o.count(token.AttemptedType); n != 0 {
		t.Errorf("%d attempts were recorded of a root", n)
	}
	unread := token.All()
	unread.Rooms = []string{"\x00"}
	for name, c := range map[string]struct {
		grant token.Grant
		want  token.Attempted
	}{
		"of a parent that is none": {token.Grant{IssuedTo: o.stub, Parent: "x", Scopes: token.All()},
			token.Attempted{To: o.stub, Scopes: token.All()}},
		"to a name that is none": {token.Grant{IssuedTo: "x", Parent: root.ID, Scopes: token.All()},
			token.Attempted{Parent: root.ID, Scopes: token.All()}},
		"of scopes that are none": {token.Grant{IssuedTo: o.stub, Parent: root.ID, Scopes: unread},
			token.Attempted{Parent: root.ID, To: o.stub}},
	} {
		_, err := o.Grant(t.Context(), o.as(o.agent), ws, c.grant)
		got, decoded := event.Decode[token.Attempted](o.last(token.AttemptedType))
		if err == nil || decoded != nil || got.Parent != c.want.Parent || got.To != c.want.To || got.From != o.agent || got.Reason == "" ||
			strings.Join(got.Scopes.Actions, " ") != strings.Join(c.want.Scopes.Actions, " ") ||
			strings.Join(got.Scopes.Rooms, " ") != strings.Join(c.want.Scopes.Rooms, " ") {
			t.Errorf("%s: got %v, and recorded was %+v, %v", name, err, got, decoded)
		}
	}
	_, err = o.Grant(t.Context(), o.as(o.owner), ws, token.Grant{IssuedTo: o.agent, Scopes: token.Scopes{Rooms: []string{"*"}}})
	o.want("what permits nothing", err, token.ErrPermitsNothing.Code)
	_, err = o.Grant(t.Context(), o.as(o.agent), ws, token.Grant{IssuedTo: o.stub, Parent: root.ID,
		Scopes: token.Scopes{Rooms: []string{"*"}}})
	o.want("what permits nothing, of a parent", err, token.ErrPermitsNothing.Code)
}

// An action of the workspace's own can be granted while it is declared.
func TestOnlyWhatIsDeclaredIsGranted(t *testing.T) {
	o := open(t)
	grant := func(actions ...string) error {
		_, err := o.Grant(t.Context(), o.as(o.owner), ws, token.Grant{IssuedTo: o.agent, Scopes: token.Scopes{Rooms: []string{"*"},
			Actions: actions}})
		return err
	}
	unknown := token.UnknownAction("deploy.production")
	for _, c := range []struct {
		when string
		do   func() error
		want string
	}{
		{"undeclared", func() error { return nil }, codeOf(unknown)},
		{"declared", func() error {
			_, err := o.gate.ActionTypes.Declare(t.Context(), o.as(o.owner), ws, policy.Declare{Name: "deploy.production",
				Description: "deploy a build", SideEffect: policy.Network, Reversible: true})
			return err
		}, ""},
		{"retired", func() error {
			_, err := o.gate.ActionTypes.Retire(t.Context(), o.as(o.owner), ws, "deploy.production", "")
			return err
		}, codeOf(unknown)},
	} {
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		o.want(c.when, grant(policy.MessageCreate, "deploy.production"), c.want)
		o.want(c.when+", first", grant("deploy.production", policy.MessageCreate), c.want)
	}
	o.want("what nobody can declare", grant("MOON"), codeOf(token.UnknownAction("MOON")))
}

// A principal who granted a token above it revokes a token, whatever has become of their role, for a reason within its bounds. A refused
// caller is recorded.
func TestWhoGrantedOneAboveRevokes(t *testing.T) {
	o := open(t)
	root := o.give(o.as(o.admin), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
	child := o.give(o.as(o.agent), token.Grant{IssuedTo: o.stub, Parent: root.ID, Scopes: token.All()})
	grandchild := o.give(o.as(o.stub), token.Grant{IssuedTo: o.stub, Parent: child.ID, Scopes: token.All()})
	if _, err := o.ChangeRole(t.Context(), o.as(o.owner), ws, o.admin, principal.Member); err != nil {
		t.Fatal(err)
	}
	service := id.Principal("svc_01M7YNAYM0SMK245AEDNVB5CNW")
	registered := event.New(principal.RegisteredType, o.as(o.owner), ws, "", principal.Registered{Principal: service, Kind: id.Service,
		Role: principal.Overlord, Name: "engine"})
	if _, err := o.log.Append(t.Context(), event.Batch{Workspace: ws, Drafts: []event.Draft{registered.About(principal.Entity,
		string(service))}}); err != nil {
		t.Fatal(err)
	}
	reason := strings.Repeat("x", policy.MaxReasonBytes)
	for _, c := range []struct {
		name   string
		as     event.Origin
		which  id.Token
		reason string
		code   string
	}{
		{"a service of that role", o.as(service), root.ID, "", policy.ReasonRoleTooLow},
		{"the holder of one below", o.as(o.stub), root.ID, "", policy.ReasonRoleTooLow},
		{"for a long reason", o.as(o.admin), grandchild.ID, reason + "x", policy.ErrReasonTooLong.Code},
		{"who granted the root", o.as(o.admin), grandchild.ID, reason, ""},
		{"who holds one above", o.as(o.agent), child.ID, "", ""},
	} {
		refusals, revoked := o.count(policy.DeniedType), o.count(token.RevokedType)
		doc, err := o.Revoke(t.Context(), c.as, ws, c.which, c.reason)
		o.want(c.name, err, c.code)
		if n := o.count(policy.DeniedType) - refusals; (n == 1) != (c.code == policy.ReasonRoleTooLow) {
			t.Errorf("%s: %d refusals were recorded", c.name, n)
		}
		if n := o.count(token.RevokedType) - revoked; (n == 1) != (c.code == "") || err == nil && (doc.ID != c.which ||
			doc.RevokedAt.IsZero() ||
			doc.Reason != c.reason || doc.RevokedBy != c.as.Principal) {
			t.Errorf("%s: got %+v, and %d were revoked", c.name, doc, n)
		}
	}
	if _, err := o.Token(t.Context(), ws, "cap_01M7YNAYM0SMK245AEDNVB5CNW"); codeOf(err) != token.ErrNotFound.Code {
		t.Errorf("one that is not there: got %v", err)
	}
}

// The list of tokens is the newest first, of their holder, page by page, and says whether each is in force.
func TestTokensAreListed(t *testing.T) {
	o := open(t)
	root := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
	child := o.give(o.as(o.agent), token.Grant{IssuedTo: o.stub, Parent: root.ID, Scopes: token.All()})
	short := o.give(o.as(o.owner), token.Grant{IssuedTo: o.stub, Scopes: token.All(), ValidUntil: o.clock.Now().Add(time.Minute)})
	other := o.give(o.as(o.stub), token.Grant{IssuedTo: o.stub, Parent: child.ID, Scopes: token.All()})
	names := func(list []token.Token) (text string) {
		for _, l := range list {
			text += string(l.ID) + " "
		}
		return text
	}
	for _, c := range []struct {
		holder id.Principal
		after  id.Token
		limit  int
		want   []token.Token
	}{
		{"", "", 10, []token.Token{other.Token, short.Token, child.Token, root.Token}},
		{o.stub, "", 10, []token.Token{other.Token, short.Token, child.Token}},
		{o.agent, "", 10, []token.Token{root.Token}},
		{o.stub, "", 1, []token.Token{other.Token}},
		{o.stub, other.ID, 10, []token.Token{short.Token, child.Token}},
		{o.owner, "", 10, nil},
	} {
		got, err := o.Tokens(t.Context(), ws, c.holder, c.after, c.limit)
		if err != nil || names(got) != names(c.want) {
			t.Errorf("of %q after %q: got %s, %v, want %s", c.holder, c.after, names(got), err, names(c.want))
		}
	}
	for _, c := range []struct {
		of    id.Principal
		after id.Token
		limit int
		want  int
	}{{"", "", 10, 2}, {o.agent, "", 10, 1}, {o.stub, "", 10, 2}, {o.owner, "", 10, 0}, {"", "", 1, 1}, {"", other.ID, 10, 1}} {
		got, err := o.Edges(t.Context(), ws, c.of, c.after, c.limit)
		if err != nil || len(got) != c.want || got == nil {
			t.Errorf("the edges of %q after %q: got %+v, %v, want %d", c.of, c.after, got, err, c.want)
		}
	}
	force := func(when string, want map[id.Token]string) {
		t.Helper()
		for name, status := range want {
			if got, err := o.InForce(t.Context(), ws, token.Token{ID: name}); got != status || err != nil {
				t.Errorf("%s: %s is %s, %v, want %s", when, name, got, err, status)
			}
		}
	}
	force("at first", map[id.Token]string{root.ID: "active", child.ID: "active", short.ID: "active", other.ID: "active",
		"cap_01M7YNAYM0SMK245AEDNVB5CNW": "revoked"})
	if _, err := o.Revoke(t.Context(), o.as(o.agent), ws, child.ID, ""); err != nil {
		t.Fatal(err)
	}
	o.clock.move(time.Minute)
	force("a minute later", map[id.Token]string{root.ID: "active", child.ID: "revoked", short.ID: "expired", other.ID: "revoked"})
}

// Keys are listed the newest first, of their principal, page by page; one that is not there is not found, and names are held to their
// form.
func TestKeysAreListed(t *testing.T) {
	o := open(t)
	var made []id.Key
	for _, p := range []id.Principal{o.owner, o.admin, o.owner} {
		_, key, err := o.IssueKey(t.Context(), o.as(p), ws, p, "key")
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, key.ID)
	}
	for _, c := range []struct {
		of    id.Principal
		after id.Key
		limit int
		want  []id.Key
	}{
		{"", "", 10, []id.Key{made[2], made[1], made[0]}}, {o.owner, "", 10, []id.Key{made[2], made[0]}}, {o.admin, "", 10, made[1:2]},
		{"", made[2], 1, made[1:2]}, {o.member, "", 10, nil},
	} {
		got, err := o.Keys(t.Context(), ws, c.of, c.after, c.limit)
		var ids []id.Key
		for _, k := range got {
			ids = append(ids, k.ID)
		}
		if err != nil || len(ids) != len(c.want) {
			t.Errorf("of %q after %q: got %v, %v, want %v", c.of, c.after, ids, err, c.want)
			continue
		}
		for i := range ids {
			if ids[i] != c.want[i] {
				t.Errorf("of %q after %q: got %v, want %v", c.of, c.after, ids, c.want)
			}
		}
	}
	if k, err := o.Key(t.Context(), ws, made[0]); err != nil || k.ID != made[0] || k.Principal != o.owner {
		t.Errorf("got %+v, %v", k, err)
	}
	_, err := o.Key(t.Context(), ws, "key_01M7YNAYM0SMK245AEDNVB5CNW")
	o.want("one that is not there", err, "key_not_found")
	o.want("one that is not there, revoked", o.RevokeKey(t.Context(), o.as(o.owner), ws, "key_01M7YNAYM0SMK245AEDNVB5CNW", "", false),
		"key_not_found")
	_, _, err = o.IssueKey(t.Context(), o.as(o.owner), ws, o.owner, " ")
	o.want("a name that is none", err, principal.ErrInvalidName.Code)
	_, _, err = o.IssueKey(t.Context(), o.as(o.owner), ws, "usr_01M7YNAYM0SMK245AEDNVB5CNW", "key")
	o.want("of nobody", err, "principal_not_found")
}

// Keys that one principal makes or ends for another: a refusal is recorded and changes nothing.
func TestWhoMakesAndEndsKeysOfOthers(t *testing.T) {
	o := open(t)
	service := id.Principal("svc_01M7YNAYM0SMK245AEDNVB5CNW")
	registered := event.New(principal.RegisteredType, o.as(o.owner), ws, "", principal.Registered{Principal: service, Kind: id.Service,
		Role: principal.Overlord, Name: "engine"})
	if _, err := o.log.Append(t.Context(), event.Batch{Workspace: ws, Drafts: []event.Draft{registered.About(principal.Entity,
		string(service))}}); err != nil {
		t.Fatal(err)
	}
	bad, err := o.AddPerson(t.Context(), o.as(o.owner), ws, "bad", principal.Admin)
	if err == nil {
		err = o.Quarantine(t.Context(), o.as(o.owner), ws, bad, true, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		by, of   id.Principal
		make     string // what it is refused with
		end      string
		occurred bool // that a refusal is recorded
	}{
		{"an owner for an admin", o.owner, o.admin, "", "", false},
		{"an owner for an agent", o.owner, o.agent, "", "", false},
		{"an owner for a service", o.owner, service, "", "", false},
		{"an admin for a member", o.admin, o.member, "", "", false},
		{"an admin for a viewer", o.admin, o.viewer, "", "", false},
		{"an admin for an operator", o.admin, o.operator, policy.ReasonRoleTooLow, "", true},
		{"an admin for an agent", o.admin, o.agent, "", "", false},
		{"an admin for a service", o.admin, service, "", "", false},
		{"an admin for an owner", o.admin, o.owner, policy.ReasonRoleTooLow, policy.ReasonRoleTooLow, true},
		{"an operator for a viewer", o.operator, o.viewer, policy.ReasonRoleTooLow, policy.ReasonRoleTooLow, true},
		{"an agent for its own", o.agent, o.stub, policy.ReasonRoleTooLow, policy.ReasonRoleTooLow, true},
		{"a service for a viewer", service, o.viewer, policy.ReasonRoleTooLow, policy.ReasonRoleTooLow, true},
		{"one in quarantine for a viewer", bad, o.viewer, policy.ReasonRoleTooLow, policy.ReasonRoleTooLow, true},
	} {
		before := o.count(policy.DeniedType)
		_, key, err := o.IssueKey(t.Context(), o.as(c.by), ws, c.of, "made")
		o.want(c.name, err, c.make)
		if n := o.count(policy.DeniedType) - before; (n == 1) != (c.make != "") {
			t.Errorf("%s: %d refusals were recorded", c.name, n)
		}
		if err != nil {
			if _, key, err = o.IssueKey(t.Context(), o.as(o.owner), ws, c.of, "made"); err != nil {
				_, key, err = o.IssueKey(t.Context(), o.as(c.of), ws, c.of, "made")
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for round := range 2 {
			ended := o.count(principal.KeyRevokedType)
			o.want(c.name+" ends it", o.RevokeKey(t.Context(), o.as(c.by), ws, key.ID, "", true), c.end)
			if n := o.count(principal.KeyRevokedType) - ended; (n == 1) != (c.end == "" && round == 0) {
				t.Errorf("%s: %d ends were recorded", c.name, n)
			}
		}
	}
	_, err = o.Grant(t.Context(), o.as(o.owner), ws, token.Grant{IssuedTo: o.agent, Scopes: token.All()})
	o.want("a grant", err, "")
}

func codeOf(err error) string { return fault.CodeOf(err) }
