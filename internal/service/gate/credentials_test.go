package gate_test

import (
	"errors"
	"testing"
	"time"

	"agentbox/internal/domain/engine"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gate/authority"
)

// secret makes the text of a secret of a form.
func (g *grants) secret(f principal.Form, in id.Workspace, name string) string {
	g.t.Helper()
	text, err := f.New(in, name, &chance{n: uint64(len(g.events()))})
	if err != nil {
		g.t.Fatal(err)
	}
	return text
}

// key records a key of somebody, as somebody else has issued it.
func (g *grants) key(of, by id.Principal) (string, id.Key) {
	name := id.New[id.Key](g.ids)
	text := g.secret(principal.KeyForm, ws, string(name))
	g.record(ws, principal.KeyIssuedType, principal.KeyEntity, string(name), principal.KeyIssued{Key: name, Principal: of,
		Hash: principal.HashBearer(text), IssuedBy: by})
	return text, name
}

// borne records a capability token with a bearer.
func (g *grants) borne(to id.Principal, change ...granted) (string, id.Token) {
	var text string
	name := g.grant(to, append(change, func(d *token.Granted) {
		text = g.secret(principal.TokenForm, ws, string(d.Token))
		d.Hash = principal.HashSecret(text)
	})...)
	return text, name
}

// session records a session.
func (g *grants) session(of, by id.Principal, until time.Time) (string, id.Session) {
	name := id.New[id.Session](g.ids)
	text := g.secret(principal.AccessForm, ws, string(name))
	g.record(ws, principal.SessionBegunType, principal.SessionEntity, string(name), principal.SessionTokens{
		Session: name, Principal: of, Access: principal.Seal(nil, text), AccessUntil: until, RefreshUntil: until, IssuedBy: by,
	})
	return text, name
}

// Each credential opens what it names and nothing else, and says who has issued it where that was another one.
func TestWhatACredentialOpens(t *testing.T) {
	g := newGrants(t)
	now := g.clock.Now()
	open := func(name, bearer string, want principal.Caller) {
		t.Helper()
		want.Workspace = ws
		if got, err := g.Authenticate(t.Context(), bearer); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, want)
		}
	}
	shut := func(name, bearer string, want string) {
		t.Helper()
		got, err := g.Authenticate(t.Context(), bearer)
		if fault.CodeOf(err) != want || got.Principal != "" || got.Role != "" {
			t.Errorf("%s: got %+v, %v, want %q", name, got, err, want)
		}
	}
	const no = "unauthenticated"
	text, key := g.key(g.mia, g.mia)
	open("a key", text, principal.Caller{Principal: g.mia, Role: principal.Member, Key: key})
	shut("a key with another letter", flipped(text), no)
	shut("half a key", text[:len(text)/2], no)
	shut("nothing", "", no)
	shut("something", "secret", no)
	text, key = g.key(g.mia, g.ada)
	open("a key that another one made", text, principal.Caller{Principal: g.mia, Role: principal.Member, Key: key, Issuer: g.ada})
	g.record(ws, principal.KeyRevokedType, principal.KeyEntity, string(key), principal.KeyRevoked{Key: key})
	shut("a revoked key", text, no)
	shut("a key that is not there", g.secret(principal.KeyForm, ws, string(id.New[id.Key](g.ids))), no)
	text, _ = g.key(g.departed, g.departed)
	shut("a key of nobody", text, no)

	text, tok := g.borne(g.agent)
	open("a token", text, principal.Caller{Principal: g.agent, Token: tok, Issuer: g.owner})
	shut("a token with another letter", flipped(text), no)
	shut("half a token", text[:len(text)/2], no)
	g.revoke(tok)
	shut("a revoked token", text, no)
	text, tok = g.borne(g.mia, by(g.mia))
	open("a token of one's own", text, principal.Caller{Principal: g.mia, Role: principal.Member, Token: tok})
	text, tok = g.borne(g.agent, until(now.Add(1)))
	open("a token in its last moment", text, principal.Caller{Principal: g.agent, Token: tok, Issuer: g.owner})
	text, _ = g.borne(g.agent, until(now))
	shut("a token whose time is over", text, no)
	text, _ = g.borne(g.agent, below(g.grant(g.mia, until(now))))
	shut("a token below one whose time is over", text, no)
	text, _ = g.borne(g.agent, below("cap_none"))
	shut("a token below one that is not there", text, no)
	text, _ = g.borne(g.departed)
	shut("a token of nobody", text, no)
	shut("a token that is not there", g.secret(principal.TokenForm, ws, string(id.New[id.Token](g.ids))), no)
	shut("a token without a bearer", g.secret(principal.TokenForm, ws, string(g.grant(g.agent))), no)

	text, ses := g.session(g.ada, g.owner, now.Add(1))
	open("a session", text, principal.Caller{Principal: g.ada, Role: principal.Admin, Session: ses, Issuer: g.owner})
	shut("a session with another letter", flipped(text), no)
	shut("half a session", text[:len(text)/2], no)
	g.record(ws, principal.SessionEndedType, principal.SessionEntity, string(ses), principal.SessionEnded{Session: ses})
	shut("a session that has ended", text, no)
	text, _ = g.session(g.ada, "", now)
	shut("a session whose time is over", text, no)
	shut("a session that is not there", g.secret(principal.AccessForm, ws, string(id.New[id.Session](g.ids))), no)

	// A wrong credential is refused as wrong. Only the holder of a right one learns that a principal is quarantined.
	right := map[string]string{}
	right["a key"], _ = g.key(g.otto, g.otto)
	right["a token"], _ = g.borne(g.otto)
	right["a session"], _ = g.session(g.otto, "", now.Add(time.Hour))
	g.quarantine(g.otto)
	for name, text := range right {
		shut(name+" of one who is quarantined", text, policy.ReasonAgentQuarantined)
		shut(name+" of one who is quarantined, with another letter", flipped(text), no)
	}
	// A key in the name of another workspace is not found there.
	text, key = g.key(g.mia, g.mia)
	g.record("ws_other", principal.KeyIssuedType, principal.KeyEntity, string(key), principal.KeyIssued{Key: key, Principal: g.mia,
		Hash: principal.HashBearer(text)})
	if got, err := g.Authenticate(t.Context(), g.secret(principal.KeyForm, "ws_other", string(key))); !errors.Is(err,
		principal.ErrUnauthenticated) {
		t.Errorf("a key of another workspace: got %+v, %v", got, err)
	}
}

// flipped is a secret whose last letter is another.
func flipped(text string) string {
	last := "A"
	if text[len(text)-1] == 'A' {
		last = "B"
	}
	return text[:len(text)-1] + last
}

// An engine is known by its id and its token together, while it is active and the capability token to which its token is bound is in force.
func TestWhatTheTokenOfAnEngineOpens(t *testing.T) {
	g := newGrants(t)
	now := g.clock.Now()
	g.record(ws, engine.RegisteredType, engine.Entity, string(g.service), engine.Registered{Engine: g.service, Name: "mailer"})
	issue := func(e id.Principal, capability id.Token, end time.Time) (string, id.EngineToken) {
		name := id.New[id.EngineToken](g.ids)
		text := g.secret(principal.EngineForm, ws, string(name))
		g.record(ws, engine.TokenIssuedType, engine.TokenEntity, string(name), engine.TokenIssued{
			Token: name, Engine: e, Capability: capability, Seal: principal.Seal(nil, text), ExpiresAt: end,
		})
		return text, name
	}
	capability := g.grant(g.service)
	text, _ := issue(g.service, capability, time.Time{})
	last, _ := issue(g.service, capability, now.Add(1))
	over, _ := issue(g.service, capability, now)
	revoked, name := issue(g.service, capability, time.Time{})
	g.record(ws, engine.TokenRevokedType, engine.TokenEntity, string(name), engine.TokenRevoked{Token: name, Engine: g.service})
	unknown, _ := issue(g.departed, g.grant(g.departed), time.Time{})
	bound := func(capability id.Token) string {
		text, _ := issue(g.service, capability, time.Time{})
		return text
	}
	withdrawn := g.grant(g.service)
	g.revoke(withdrawn)
	want := principal.Caller{Principal: g.service, Workspace: ws, Token: capability, Engine: true}
	for _, c := range []struct {
		name, secret string
		engine       id.Principal
		want         string
	}{
		{"its own", text, g.service, ""},
		{"in its last moment", last, g.service, ""},
		{"its time is over", over, g.service, "engine_token_expired"},
		{"revoked", revoked, g.service, "engine_token_invalid"},
		{"another letter", flipped(text), g.service, "engine_token_invalid"},
		{"half", text[:len(text)/2], g.service, "engine_token_invalid"},
		{"none", "", g.service, "missing_engine_token"},
		{"without the engine", text, "", "missing_engine_token"},
		{"another engine's", text, g.departed, "engine_token_invalid"},
		{"one that is not there", g.secret(principal.EngineForm, ws, string(id.New[id.EngineToken](g.ids))), g.service, "engine_token_invalid"},
		{"of an engine that is not there", unknown, g.departed, "engine_inactive"},
		{"without a capability token", bound("cap_none"), g.service, policy.ReasonTokenNotFound},
		{"under the capability token of another", bound(g.grant(g.agent)), g.service, policy.ReasonTokenMismatch},
		{"under one that was revoked", bound(withdrawn), g.service, policy.ReasonTokenRevoked},
		{"under one whose time is over", bound(g.grant(g.service, until(now))), g.service, policy.ReasonTokenExpired},
		{"under one below such a one", bound(g.grant(g.service, below(withdrawn))), g.service, policy.ReasonTokenRevoked},
	} {
		got, err := g.AuthenticateEngine(t.Context(), c.engine, c.secret)
		if fault.CodeOf(err) != c.want || c.want == "" && got != want || c.want != "" && got != (principal.Caller{}) {
			t.Errorf("%s: got %+v, %v, want %q", c.name, got, err, c.want)
		}
	}
	g.quarantine(g.service)
	if got, err := g.AuthenticateEngine(t.Context(), g.service, text); fault.CodeOf(err) != policy.ReasonAgentQuarantined ||
		got.Principal != "" {
		t.Errorf("quarantined: got %+v, %v", got, err)
	}
	g.record(ws, engine.DeactivatedType, engine.Entity, string(g.service), engine.Deactivated{Engine: g.service})
	if got, err := g.AuthenticateEngine(t.Context(), g.service, text); fault.CodeOf(err) != "engine_inactive" || got != (principal.Caller{}) {
		t.Errorf("deactivated: got %+v, %v", got, err)
	}
}

// A gate keeps a question open as long as it was told, within its bounds.
func TestHowLongAGateMayKeepAQuestionOpen(t *testing.T) {
	h := build(t, nil)
	for _, c := range []struct {
		time time.Duration
		good bool
	}{{0, true}, {1, true}, {policy.MaxQuestionTime, true}, {policy.MaxQuestionTime + 1, false}, {-1, false}} {
		parts := h.parts
		parts.QuestionTime = c.time
		g, err := gate.New(parts)
		if (err == nil) != c.good {
			t.Errorf("%s: %v", c.time, err)
		}
		if c.good && c.time == 0 && g.QuestionTime != policy.DefaultQuestionTime || c.good && c.time > 0 && g.QuestionTime != c.time {
			t.Errorf("%s: became %s", c.time, g.QuestionTime)
		}
	}
}

// A quarantined person revokes no standing approval, though their role would reach.
func TestAQuarantinedPersonRevokesNothing(t *testing.T) {
	h := build(t, nil)
	otto := h.person("otto", principal.Operator)
	s, _ := h.granted(t, 10)
	if err := h.Quarantine(t.Context(), h.origin(h.owner), ws, otto, true, ""); err != nil {
		t.Fatal(err)
	}
	if err := h.Approvals.Revoke(t.Context(), h.origin(otto), ws, s, ""); !errors.Is(err, authority.ErrNotDecider) ||
		h.count(policy.StandingRevokedType) != 0 {
		t.Errorf("got %v and %d revocations", err, h.count(policy.StandingRevokedType))
	}
}
