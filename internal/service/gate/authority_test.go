package gate_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	runs "agentbox/internal/domain/run"
	"agentbox/internal/domain/token"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate"
)

// runOf has the document of one run.
type runOf struct {
	projection.Reader
	doc runs.Run
}

func (r *runOf) Document(ctx context.Context, ws id.Workspace, name, key string) (projection.Document, error) {
	if name == runs.Projection && key == string(r.doc.ID) {
		body, err := json.Marshal(r.doc)
		return projection.Document{Key: key, Version: 1, Body: body}, err
	}
	return r.Reader.Document(ctx, ws, name, key)
}

// grants is a house with people of every role and tokens between them.
type grants struct {
	*house
	run                      *runOf
	ada, otto, mia, vera     id.Principal // an admin, an operator, a member, a viewer
	service, other, departed id.Principal // the last one is known to nobody
}

func newGrants(t *testing.T) *grants {
	t.Helper()
	return newGrantsOver(t, func(*gate.Parts) {})
}

// newGrantsOver is newGrants over other parts.
func newGrantsOver(t *testing.T, change func(*gate.Parts)) *grants {
	t.Helper()
	r := &runOf{}
	g := &grants{run: r}
	g.house = build(t, func(p *gate.Parts) {
		r.Reader, p.Docs = p.Docs, r
		change(p)
	})
	g.ada, g.otto = g.person("Ada", principal.Admin), g.person("Otto", principal.Operator)
	g.mia, g.vera = g.person("Mia", principal.Member), g.person("Vera", principal.Viewer)
	g.service, g.departed = id.NewPrincipal(g.ids, id.Service), id.NewPrincipal(g.ids, id.User)
	g.record(ws, principal.RegisteredType, principal.Entity, string(g.service), principal.Registered{Principal: g.service, Kind: id.Service,
		Name: "mailer"})
	var err error
	if g.other, err = g.Agent(t.Context(), g.origin(g.owner), ws, "other"); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *grants) record(in id.Workspace, typ, entity, key string, data any) {
	g.t.Helper()
	draft := event.New(typ, g.origin(g.owner), in, "", data).About(entity, key)
	if _, err := g.log.Append(context.Background(), event.Batch{Workspace: in, Drafts: []event.Draft{draft}}); err != nil {
		g.t.Fatal(err)
	}
}

// grant records a token. Where nothing else is said, the owner granted it and it permits everything.
func (g *grants) grant(to id.Principal, change ...func(*token.Granted)) id.Token {
	g.t.Helper()
	d := token.Granted{Token: id.New[id.Token](g.ids), IssuedTo: to, GrantedBy: g.owner, Scopes: token.All()}
	for _, c := range change {
		c(&d)
	}
	g.record(ws, token.GrantedType, token.Entity, string(d.Token), d)
	return d.Token
}

func (g *grants) revoke(t id.Token) {
	g.record(ws, token.RevokedType, token.Entity, string(t), token.Revoked{Token: t, By: g.owner})
}

func (g *grants) quarantine(p id.Principal) {
	g.t.Helper()
	g.record(ws, principal.QuarantinedType, principal.Entity, string(p), principal.Quarantined{Principal: p})
}

type granted = func(*token.Granted)

func below(parent id.Token) granted { return func(d *token.Granted) { d.Parent, d.Depth = parent, 1 } }

func by(p id.Principal) granted { return func(d *token.Granted) { d.GrantedBy = p } }

func until(end time.Time) granted { return func(d *token.Granted) { d.ValidUntil = end } }

func actions(types ...string) granted { return func(d *token.Granted) { d.Scopes.Actions = types } }

func inRooms(names ...string) granted { return func(d *token.Granted) { d.Scopes.Rooms = names } }

// chains are tokens of somebody and what keeps each from being used in a room for an action, where anything does. All were granted for
// RunStart.
func (g *grants) chains(to id.Principal) map[string]struct {
	token id.Token
	code  string
} {
	now := g.clock.Now()
	revoked, above := g.grant(to), g.grant(g.mia)
	underRevoked := g.grant(to, below(above), by(g.mia))
	g.revoke(revoked)
	g.revoke(above)
	held, bad := g.person("Ida", principal.Member), g.person("Udo", principal.Member)
	byHeld, byBad := g.grant(to, by(held)), g.grant(held, by(bad))
	underBad := g.grant(to, below(byBad), by(g.mia))
	g.quarantine(held)
	g.quarantine(bad)
	foreign := id.New[id.Token](g.ids)
	g.record("ws_other", token.GrantedType, token.Entity, string(foreign), token.Granted{Token: foreign, IssuedTo: to, GrantedBy: g.owner,
		Scopes: token.All()})
	three := g.grant(to, below(g.grant(g.mia, below(g.grant(g.mia, below(g.grant(g.mia)))))))
	type chain = struct {
		token id.Token
		code  string
	}
	return map[string]chain{
		"a root":                                  {g.grant(to), ""},
		"handed on once":                          {g.grant(to, below(g.grant(g.mia)), by(g.mia)), ""},
		"handed on three times":                   {three, ""},
		"handed on four times":                    {g.grant(to, below(three)), policy.ReasonTokenNotFound},
		"in its last moment":                      {g.grant(to, until(now.Add(1))), ""},
		"no token":                                {id.New[id.Token](g.ids), policy.ReasonTokenNotFound},
		"a parent that is not there":              {g.grant(to, below(id.New[id.Token](g.ids))), policy.ReasonTokenNotFound},
		"one of another workspace":                {foreign, policy.ReasonTokenNotFound},
		"below one of another workspace":          {g.grant(to, below(foreign)), policy.ReasonTokenNotFound},
		"revoked":                                 {revoked, policy.ReasonTokenRevoked},
		"below one that was revoked":              {underRevoked, policy.ReasonTokenRevoked},
		"its time is over":                        {g.grant(to, until(now)), policy.ReasonTokenExpired},
		"the time of the one above is over":       {g.grant(to, below(g.grant(g.mia, until(now)))), policy.ReasonTokenExpired},
		"granted by one who is quarantined":       {byHeld, policy.ReasonAgentQuarantined},
		"below one that such a one has granted":   {underBad, policy.ReasonAgentQuarantined},
		"granted by nobody who is known":          {g.grant(to, by(g.departed)), policy.ReasonAgentQuarantined},
		"below one that nobody known has granted": {g.grant(to, below(g.grant(g.mia, by(g.departed)))), policy.ReasonAgentQuarantined},
		"for this room":                           {g.grant(to, inRooms("room_x", string(room))), ""},
		"for another room":                        {g.grant(to, inRooms("room_x")), policy.ReasonScopeRoom},
		"for no room":                             {g.grant(to, inRooms()), policy.ReasonScopeRoom},
		"below one for another room":              {g.grant(to, below(g.grant(g.mia, inRooms("room_x")))), policy.ReasonScopeRoom},
		"for this action":                         {g.grant(to, actions(policy.RunStart)), ""},
		"for another action":                      {g.grant(to, actions(policy.RunClaim)), policy.ReasonScopeAction},
		"for no action":                           {g.grant(to, actions()), policy.ReasonScopeActionRequired},
		"wider than the one above":                {g.grant(to, below(g.grant(g.mia, actions(policy.RunClaim)))), policy.ReasonScopeAction},
		"narrower than the one above":             {g.grant(to, actions(policy.RunClaim), below(g.grant(g.mia))), policy.ReasonScopeAction},
		"issued to another agent":                 {g.grant(g.other), policy.ReasonTokenMismatch},
		"issued to the one above only":            {g.grant(g.other, below(g.grant(to))), policy.ReasonTokenMismatch},
	}
}

// A caller is bound by the capability token under which they act, and by every one that it was derived from. Each refusal is recorded
// with its code.
func TestACallerIsBoundByTheirToken(t *testing.T) {
	g := newGrants(t)
	use := token.Use{Action: policy.RunStart, Room: room}
	caller := principal.Caller{Principal: g.agent, Workspace: ws}
	if err := g.Bound(t.Context(), g.origin(g.agent), caller, use); err != nil {
		t.Errorf("without a token: %v", err)
	}
	for name, c := range g.chains(g.agent) {
		before := len(g.events())
		caller.Token = c.token
		err := g.Bound(t.Context(), g.origin(g.agent), caller, use)
		recorded := g.events()[before:]
		if fault.CodeOf(err) != c.code || (c.code == "") != (len(recorded) == 0) {
			t.Errorf("%s: got %v and %d events, want %q", name, err, len(recorded), c.code)
		}
		if c.code == "" || len(recorded) == 0 {
			continue
		}
		if f := fault.KindOf(err); f != fault.Denied {
			t.Errorf("%s: the refusal is of the kind %v", name, f)
		}
		said, err := event.Decode[policy.Refused](recorded[0])
		a := policy.Action{Type: policy.RunStart, Workspace: ws, Room: room, Principal: g.agent, Token: c.token}
		canonical, failed := a.Canonical()
		if err != nil || failed != nil || len(recorded) != 1 || recorded[0].Type != policy.DeniedType ||
			!recorded[0].OccurredAt.Equal(g.clock.Now()) ||
			said.Action != policy.RunStart || said.Decision.ReasonCode != c.code || said.Decision.Reason == "" || said.Decision.Suggestion == "" ||
			said.Decision.Action != event.DigestOf(canonical) || recorded[0].Room != room {
			t.Errorf("%s: recorded %+v as %+v, %v", name, said, recorded[0].Header, err)
		}
	}
	// Who was authenticated may hold the token too, and nobody else.
	caller = principal.Caller{Principal: g.agent, Workspace: ws, By: g.ada, Token: g.grant(g.ada)}
	if err := g.Bound(t.Context(), g.origin(g.agent), caller, use); err != nil {
		t.Errorf("a token of who acts for the agent: %v", err)
	}
	caller.By = g.owner
	if err := g.Bound(t.Context(), g.origin(g.agent), caller, use); fault.CodeOf(err) != policy.ReasonTokenMismatch {
		t.Errorf("a token of another one: %v", err)
	}
	// An action that only shows is recorded as reading.
	caller = principal.Caller{Principal: g.agent, Workspace: ws, Token: g.grant(g.agent, func(d *token.Granted) {
		d.Scopes.Data.Read = []string{"run"}
	})}
	if err := g.Bound(t.Context(), g.origin(g.agent), caller, token.Use{Room: room, Reads: token.Names("run", "r", room)}); err != nil {
		t.Errorf("what it may see: %v", err)
	}
	before := len(g.events())
	if err := g.Bound(t.Context(), g.origin(g.agent), caller, token.Use{Room: room, Reads: token.Names("file", "f", room)}); fault.CodeOf(
		err) != policy.ReasonScopeData {
		t.Errorf("what it may not see: %v", err)
	}
	if said, err := event.Decode[policy.Refused](g.events()[before]); err != nil || said.Action != gate.ReadAction {
		t.Errorf("recorded as %+v, %v", said, err)
	}
}

// An action is judged under the token that it names, by the same rules; a viewer's and a member's tokens do not carry what an agent does.
func TestAnActionIsJudgedUnderItsToken(t *testing.T) {
	g := newGrants(t)
	judged := func(t id.Token, p id.Principal) string {
		r := g.judge(policy.Action{Type: policy.RunStart, Workspace: ws, Room: room, Principal: p, Token: t, Bundle: g.bundles["standard"].Hash})
		if r.Decision.Outcome == policy.Allow {
			return ""
		}
		return r.Decision.ReasonCode
	}
	for name, c := range g.chains(g.owner) {
		if name == "issued to another agent" || name == "issued to the one above only" {
			continue
		}
		if got := judged(c.token, g.owner); got != c.code {
			t.Errorf("%s: got %q, want %q", name, got, c.code)
		}
	}
	// Under which tokens of others an agent acts: those of who may act for it.
	named := actions(policy.RunStart)
	for _, c := range []struct {
		name string
		to   id.Principal
		want string
	}{
		{"its own", g.agent, ""}, {"the owner's", g.owner, ""}, {"an admin's", g.ada, ""}, {"a service's", g.service, ""},
		{"an operator's", g.otto, policy.ReasonTokenMismatch}, {"a member's", g.mia, policy.ReasonTokenMismatch}, {"a viewer's", g.vera,
			policy.ReasonTokenMismatch},
		{"another agent's", g.other, policy.ReasonTokenMismatch}, {"nobody's", g.departed, policy.ReasonTokenMismatch},
	} {
		tok := g.grant(c.to, named)
		if got := judged(tok, g.agent); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if c.to != g.owner {
			if got := judged(tok, g.owner); got != policy.ReasonTokenMismatch {
				t.Errorf("%s, used by a person: got %q, want %q", c.name, got, policy.ReasonTokenMismatch)
			}
		}
	}
	g.quarantine(g.ada)
	if got := judged(g.grant(g.ada, named), g.agent); got != policy.ReasonTokenMismatch {
		t.Errorf("a quarantined admin's: got %q", got)
	}
}

// An action of a run is done under the token under which the run was asked for, by whom that token was issued to and for the run's own
// agent.
func TestARunCarriesTheTokenUnderWhichItWasAskedFor(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(g *grants, r *runs.Run)
		want   string
	}{
		{"as it was asked for", func(*grants, *runs.Run) {}, ""},
		{"under another token", func(g *grants, r *runs.Run) { r.Token = g.grant(g.mia) }, policy.ReasonTokenMismatch},
		{"under none", func(g *grants, r *runs.Run) { r.Token = "" }, policy.ReasonTokenMismatch},
		{"by another", func(g *grants, r *runs.Run) { r.CreatedBy = g.otto }, policy.ReasonTokenMismatch},
		{"for another agent", func(g *grants, r *runs.Run) { r.Agent = g.other }, policy.ReasonTokenMismatch},
		{"another run", func(g *grants, r *runs.Run) { r.ID = "run_00000000000000000000000009" }, policy.ReasonTokenMismatch},
	} {
		g := newGrants(t)
		tok := g.grant(g.mia)
		g.run.doc = runs.Run{ID: run, Workspace: ws, Token: tok, CreatedBy: g.mia, Agent: g.agent}
		a := g.file("standard", policy.FileRead, "a")
		a.Token = tok
		c.change(g, &g.run.doc)
		if d := g.judge(a).Decision; (d.Outcome == policy.Allow) != (c.want == "") || c.want != "" && d.ReasonCode != c.want {
			t.Errorf("%s: got %s (%s), want %q", c.name, d.Outcome, d.ReasonCode, c.want)
		}
		if a.Run = ""; c.want == "" && g.judge(a).Decision.ReasonCode != policy.ReasonTokenMismatch {
			t.Errorf("%s, without naming the run: got %+v", c.name, g.judge(a).Decision)
		}
	}
}

// A policy may let agents do what a person named in a token: the person has to be one who may do it, and every token of the chain has to
// name it.
func TestWhatAPersonHandsOnToAnAgent(t *testing.T) {
	g := newGrants(t)
	start := actions(policy.RunStart)
	for _, c := range []struct {
		name  string
		token id.Token
		typ   string
		want  bool
	}{
		{"named by the owner", g.grant(g.agent, start), policy.RunStart, true},
		{"named by a member", g.grant(g.agent, start, by(g.mia)), policy.RunStart, true},
		{"named by a viewer", g.grant(g.agent, start, by(g.vera)), policy.RunStart, false},
		{"named by an agent", g.grant(g.agent, start, by(g.other)), policy.RunStart, false},
		{"named by a service", g.grant(g.agent, start, by(g.service)), policy.RunStart, false},
		{"handed on by an agent, named by the owner", g.grant(g.agent, start, by(g.other), below(g.grant(g.other, start))), policy.RunStart,
			true},
		{"handed on by the owner, named by an agent", g.grant(g.agent, start, below(g.grant(g.other, start, by(g.other)))), policy.RunStart,
			false},
		{"everything, which names nothing", g.grant(g.agent), policy.RunStart, false},
		{"named below everything", g.grant(g.agent, start, below(g.grant(g.mia))), policy.RunStart, false},
		{"everything below one that names it", g.grant(g.agent, below(g.grant(g.mia, start))), policy.RunStart, false},
		{"without a token", "", policy.RunStart, false},
		{"what no policy gives to agents", g.grant(g.agent, actions(policy.SpaceCreate)), policy.SpaceCreate, false},
	} {
		d := g.judge(policy.Action{Type: c.typ, Workspace: ws, Room: room, Principal: g.agent, Token: c.token,
			Bundle: g.bundles["standard"].Hash}).Decision
		if got := d.Outcome == policy.Allow; got != c.want {
			t.Errorf("%s: got %s (%s), want allowed %t", c.name, d.Outcome, d.ReasonCode, c.want)
		}
	}
}

// Rights that agents may not have stay with persons. Neither a policy that permits all delegated uses nor a token changes that.
func TestWhatNobodyHandsOn(t *testing.T) {
	g := newGrants(t)
	b := g.bundle(`@id("all") permit (principal, action, resource) when { context.delegated };`, true)
	for typ, want := range map[string]bool{policy.RunStart: true, policy.ShellExec: false, policy.FileRead: false} {
		a := g.file("standard", typ, "a")
		if typ == policy.ShellExec {
			a = g.shell("standard", "ls")
		}
		a.Bundle, a.Token = b.Hash, g.grant(g.agent, actions(typ))
		if d := g.judge(a).Decision; (d.Outcome == policy.Allow) != want || !want && d.ReasonCode != policy.ReasonNoPolicy {
			t.Errorf("%s: got %s %s (%s), want allowed: %t", typ, d.Outcome, d.ReasonCode, d.Reason, want)
		}
	}
}

// Who may act for whom, under which token.
func TestActingForAnother(t *testing.T) {
	g := newGrants(t)
	const code = "agent_actor_id_mismatch"
	caller := func(p id.Principal) principal.Caller {
		return principal.Caller{Principal: p, Workspace: ws, Role: principal.Admin, Key: "key_1", Session: "ses_1"}
	}
	for _, c := range []struct {
		name   string
		caller principal.Caller
		p      id.Principal
		want   string
	}{
		{"the owner for an agent", caller(g.owner), g.agent, ""},
		{"an admin for an agent", caller(g.ada), g.agent, ""},
		{"a service for an agent", caller(g.service), g.agent, ""},
		{"an operator for an agent", caller(g.otto), g.agent, code},
		{"a member for an agent", caller(g.mia), g.agent, code},
		{"an agent for another", caller(g.other), g.agent, code},
		{"the owner for a member", caller(g.owner), g.mia, code},
		{"the owner for a service", caller(g.owner), g.service, code},
		{"the owner for nobody", caller(g.owner), g.departed, "principal_not_found"},
		{"nobody for an agent", caller(g.departed), g.agent, policy.ReasonPrincipalNotFound},
		{"who acts for one already", principal.Caller{Principal: g.owner, Workspace: ws, By: g.ada}, g.agent, code},
	} {
		got, err := g.ActsFor(t.Context(), c.caller, c.p, "")
		want := principal.Caller{}
		if c.want == "" {
			want = principal.Caller{Principal: c.p, By: c.caller.Principal, Workspace: ws, Session: "ses_1"}
		}
		if fault.CodeOf(err) != c.want || got != want {
			t.Errorf("%s: got %+v, %v, want %+v and %q", c.name, got, err, want, c.want)
		}
	}
	for _, p := range []id.Principal{"", g.mia} { // oneself
		if got, err := g.ActsFor(t.Context(), caller(g.mia), p, ""); err != nil || got != caller(g.mia) {
			t.Errorf("for oneself: got %+v, %v", got, err)
		}
	}
	g.quarantine(g.other)
	if got, err := g.ActsFor(t.Context(), caller(g.owner), g.other, ""); fault.CodeOf(err) != policy.ReasonAgentQuarantined ||
		got != (principal.Caller{}) {
		t.Errorf("for one who is quarantined: got %+v, %v", got, err)
	}
	g.quarantine(g.service)
	if got, err := g.ActsFor(t.Context(), caller(g.service), g.agent, ""); fault.CodeOf(err) != code || got != (principal.Caller{}) {
		t.Errorf("by one who is quarantined: got %+v, %v", got, err)
	}
}

// A request may name a token of its own, and under a token only one that was derived from that one.
func TestActingUnderAToken(t *testing.T) {
	g := newGrants(t)
	now := g.clock.Now()
	own, other := g.grant(g.ada), g.grant(g.ada)
	child := g.grant(g.agent, below(own), by(g.ada))
	revoked := g.grant(g.ada)
	g.revoke(revoked)
	under := func(p id.Principal, by id.Principal, t id.Token) principal.Caller {
		return principal.Caller{Principal: p, By: by, Workspace: ws, Token: t}
	}
	for _, c := range []struct {
		name   string
		caller principal.Caller
		p      id.Principal
		token  id.Token
		want   string
	}{
		{"one's own", under(g.ada, "", ""), "", own, ""},
		{"none", under(g.ada, "", own), "", "", ""},
		{"the same", under(g.ada, "", own), "", own, ""},
		{"another of one's own under one", under(g.ada, "", own), "", other, policy.ReasonTokenMismatch},
		{"one that was derived, for its holder", under(g.ada, "", own), g.agent, child, ""},
		{"one that was derived, as oneself", under(g.ada, "", own), "", child, policy.ReasonTokenMismatch},
		{"the one above", under(g.agent, "", child), "", own, policy.ReasonTokenMismatch},
		{"one's own, for an agent", under(g.ada, "", ""), g.agent, own, ""},
		{"the agent's, for the agent", under(g.ada, "", ""), g.agent, child, ""},
		{"of somebody else, for an agent", under(g.owner, "", ""), g.agent, own, policy.ReasonTokenMismatch},
		{"of somebody else", under(g.mia, "", ""), "", own, policy.ReasonTokenMismatch},
		{"one that is not there", under(g.ada, "", ""), "", "cap_none", policy.ReasonTokenNotFound},
		{"one of another workspace", principal.Caller{Principal: g.ada, Workspace: "ws_other"}, "", own, policy.ReasonTokenNotFound},
		{"revoked", under(g.ada, "", ""), "", revoked, policy.ReasonTokenRevoked},
		{"its time is over", under(g.ada, "", ""), "", g.grant(g.ada, until(now)), policy.ReasonTokenExpired},
		{"in its last moment", under(g.ada, "", ""), "", g.grant(g.ada, until(now.Add(1))), ""},
	} {
		got, err := g.ActsFor(t.Context(), c.caller, c.p, c.token)
		want := c.caller
		switch {
		case c.want != "":
			want = principal.Caller{}
		case c.p != "":
			want.Principal, want.By = c.p, c.caller.Principal
		}
		if c.want == "" && c.token != "" {
			want.Token = c.token
		}
		if fault.CodeOf(err) != c.want || got != want {
			t.Errorf("%s: got %+v, %v, want %+v and %q", c.name, got, err, want, c.want)
		}
	}
}
