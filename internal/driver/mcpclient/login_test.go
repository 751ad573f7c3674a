package mcpclient_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/mcp"
	"agentbox/internal/domain/policy"
	"agentbox/internal/testkit/authserver"
)

const redirect = "http://127.0.0.1:41817/callback"

// held is a grant in memory.
type held struct {
	mu    sync.Mutex
	grant mcp.Grant
}

// Use implements mcp.Holder.
func (h *held) Use(_ context.Context, f func(mcp.Grant) (mcp.Grant, error)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	next, err := f(h.grant)
	if err == nil {
		h.grant = next
	}
	return err
}

// person is a person who has a server with a login.
type person struct {
	*authserver.Guarded
	t    *testing.T
	to   mcp.Target
	held *held
	back func(mcp.Returned) mcp.Returned // changes what the browser comes back with; nil for nothing
}

func newPerson(t *testing.T) *person {
	t.Helper()
	p := &person{Guarded: authserver.NewGuarded(), t: t, held: &held{}}
	t.Cleanup(p.Close)
	p.to = mcp.Target{Server: mcp.Server{Name: "guarded", URL: p.URL + "/mcp", Login: true}, Private: true, Grant: p.held}
	p.named(p.Issuer.URL)
	return p
}

// named has the person name an issuer.
func (p *person) named(issuer string) {
	p.to.Server.Issuer, p.to.Issuer = issuer, mcp.Issuer{URL: issuer + "/", Private: true}
}

// permits returns the permit to reach the server, and puts that for its issuer into the target.
func (p *person) permits() policy.Permit {
	p.t.Helper()
	if p.to.Issuer.URL != "" {
		p.to.Granted = permit(p.t, policy.Action{Type: policy.MCPConnectPrivate, Subject: "guarded", Target: p.to.Issuer.URL})
	}
	return permit(p.t, policy.Action{Type: p.to.Action(), Subject: "guarded", Target: p.to.Server.URL})
}

func (p *person) logIn() (mcp.LoggedIn, error) {
	p.t.Helper()
	grant, facts, err := client().Login(p.t.Context(), p.permits(), p.to, mcp.Browser{Redirect: redirect,
		Visit: func(ctx context.Context, address string) (mcp.Returned, error) {
			q, err := authserver.Visit(ctx, address)
			back := mcp.Returned{Code: q.Get("code"), State: q.Get("state"), Issuer: q.Get("iss")}
			if p.back != nil {
				back = p.back(back)
			}
			return back, err
		}})
	if err == nil {
		p.held.grant = grant
	}
	p.silent(fmt.Sprint(err, grant, facts))
	return facts, err
}

// silent wants no secret of the issuer in a text.
func (p *person) silent(text string) {
	p.t.Helper()
	for _, secret := range p.Issuer.Secrets() {
		if strings.Contains(text, secret) {
			p.t.Errorf("a secret is told: %s", text)
		}
	}
}

func (p *person) echo() (mcp.Answer, error) {
	p.t.Helper()
	s, err := client().Open(p.t.Context(), p.permits(), p.to)
	if err != nil {
		p.silent(err.Error())
		return mcp.Answer{}, err
	}
	defer s.Close()
	got, err := s.Call(p.t.Context(), calling(p.t, "guarded__echo", `{}`, time.Minute))
	p.silent(fmt.Sprint(got, err))
	return got, err
}

func (p *person) works() {
	p.t.Helper()
	if got, err := p.echo(); err != nil || got.Text != "Bearer [token]" {
		p.t.Errorf("got %+v, %v", got, err)
	}
}

// TestAPersonLogsIn at a server whose tokens come from another host, and from its own. Sessions use the tokens.
func TestAPersonLogsIn(t *testing.T) {
	for _, own := range []bool{false, true} {
		p := newPerson(t)
		if own {
			p.Together()
			p.to.Server.Issuer, p.to.Issuer = "", mcp.Issuer{}
		}
		if _, err := p.echo(); !errors.Is(err, mcp.ErrLogin) {
			t.Errorf("before: got %v", err)
		}
		facts, err := p.logIn()
		if err != nil || facts.Name != "guarded" || !strings.HasPrefix(facts.Client, "client-") || strings.Join(facts.Scopes, " ") != "tools" {
			t.Fatalf("got %+v, %v", facts, err)
		}
		p.works()
	}
}

// TestALoginNeedsItsPermits reaches neither the server nor the issuer without a permit for exactly these.
func TestALoginNeedsItsPermits(t *testing.T) {
	p := newPerson(t)
	good := p.permits()
	for name, change := range map[string]func(*mcp.Target){
		"no permit for the issuer":      func(to *mcp.Target) { to.Granted = policy.Permit{} },
		"a permit for another issuer":   func(to *mcp.Target) { to.Issuer.URL = "http://127.0.0.1:1/" },
		"a permit for another server":   func(to *mcp.Target) { to.Server.Name = "other" },
		"a server to which no one logs": func(to *mcp.Target) { to.Server.Login = false },
	} {
		to := p.to
		change(&to)
		_, _, err := client().Login(t.Context(), good, to, mcp.Browser{Redirect: redirect})
		if !errors.Is(err, policy.ErrPermitMismatch) && !errors.Is(err, policy.ErrNoPermit) {
			t.Errorf("%s: got %v", name, err)
		}
		good = p.permits()
	}
	if len(p.Issuer.Secrets()) > 0 {
		t.Error("the issuer was asked")
	}
}

// TestTokensAreRenewed once for all sessions: an issuer ends a login whose refresh token comes twice.
func TestTokensAreRenewed(t *testing.T) {
	p := newPerson(t)
	if _, err := p.logIn(); err != nil {
		t.Fatal(err)
	}
	together := func() {
		var all sync.WaitGroup
		for range 20 {
			s, err := client().Open(t.Context(), p.permits(), p.to)
			if err != nil {
				t.Error(err)
				continue
			}
			all.Go(func() {
				defer s.Close()
				if got, err := s.Call(t.Context(), calling(t, "guarded__echo", `{}`, time.Minute)); err != nil || got.Text != "Bearer [token]" {
					t.Errorf("got %+v, %v", got, err)
				}
			})
		}
		all.Wait()
	}
	together()
	if n := p.Issuer.Renewals.Load(); n != 0 {
		t.Errorf("good tokens were renewed %d times", n)
	}
	p.Issuer.Forgets() // which the client learns when the server refuses the token
	together()
	if n := p.Issuer.Renewals.Load(); n != 1 {
		t.Errorf("a token was renewed %d times, want once", n)
	}
	p.Issuer.Lasts.Store(1) // each token is over by the time it comes
	p.Issuer.Forgets()
	together()
	if n := p.Issuer.Stolen.Load(); n != 0 || p.Issuer.Renewals.Load() < 20 {
		t.Errorf("%d refresh tokens came twice; %d were renewed", n, p.Issuer.Renewals.Load())
	}
	p.Issuer.Ends()
	if _, err := p.echo(); !errors.Is(err, mcp.ErrLogin) {
		t.Errorf("after its end: got %v", err)
	}
}

// TestNoIssuerButTheNamedOne is asked, whatever the server says, and its name is told so that a person can name it.
func TestNoIssuerButTheNamedOne(t *testing.T) {
	thief := authserver.NewIssuer()
	t.Cleanup(thief.Close)
	asked := 0
	thief.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ })
	for name, change := range map[string]func(p *person){
		"another host":                 func(p *person) { p.Names.Store(&thief.URL) },
		"a host, where none is named":  func(p *person) { p.Names.Store(&thief.URL); p.to.Server.Issuer, p.to.Issuer = "", mcp.Issuer{} },
		"another tenant of the host":   func(p *person) { at := p.Issuer.URL + "/evil"; p.Names.Store(&at) },
		"itself, as old revisions had": func(p *person) { p.Names.Store(&p.URL) },
	} {
		p := newPerson(t)
		change(p)
		_, err := p.logIn()
		if !errors.Is(err, mcp.ErrIssuer) || !strings.Contains(err.Error(), *p.Names.Load()) {
			t.Errorf("%s: got %v", name, err)
		}
		if len(p.Issuer.Secrets()) > 0 || asked > 0 {
			t.Errorf("%s: an issuer was asked", name)
		}
	}
}

// TestAnAnswerOfAnotherLogin gives no tokens: another state, another issuer, a code that was used.
func TestAnAnswerOfAnotherLogin(t *testing.T) {
	for name, change := range map[string]func(mcp.Returned) mcp.Returned{
		"another state":  func(r mcp.Returned) mcp.Returned { r.State += "x"; return r },
		"another issuer": func(r mcp.Returned) mcp.Returned { r.Issuer = "https://thief.example"; return r },
		"no issuer":      func(r mcp.Returned) mcp.Returned { r.Issuer = ""; return r },
		"another code":   func(r mcp.Returned) mcp.Returned { r.Code += "x"; return r },
	} {
		p := newPerson(t)
		p.back = change
		if _, err := p.logIn(); !errors.Is(err, mcp.ErrFailed) {
			t.Errorf("%s: got %v", name, err)
		}
		if n := len(p.Issuer.Secrets()); n != 1 {
			t.Errorf("%s: %d secrets were given, want the code alone", name, n)
		}
	}
}

// TestAServerWantsMore than the login was for: the call is refused, and the next login asks for it.
func TestAServerWantsMore(t *testing.T) {
	p := newPerson(t)
	if _, err := p.logIn(); err != nil {
		t.Fatal(err)
	}
	more := "write"
	p.Wants.Store(&more)
	if _, err := p.echo(); !errors.Is(err, mcp.ErrLogin) {
		t.Errorf("got %v", err)
	}
	facts, err := p.logIn()
	if err != nil || strings.Join(facts.Scopes, " ") != "tools write" {
		t.Fatalf("got %+v, %v", facts, err)
	}
	p.works()
}

// TestAGrantIsForOneServer is not used for another address or issuer under the same name.
func TestAGrantIsForOneServer(t *testing.T) {
	p, other := newPerson(t), newPerson(t)
	if _, err := p.logIn(); err != nil {
		t.Fatal(err)
	}
	other.held.grant = p.held.grant
	if _, err := other.echo(); !errors.Is(err, mcp.ErrLogin) || other.Calls.Load() != 0 {
		t.Errorf("got %v", err)
	}
	for _, text := range []string{fmt.Sprint(p.held.grant), fmt.Sprintf("%#v", p.held.grant), fmt.Sprintf("%+v", p.to)} {
		p.silent(text)
	}
}
