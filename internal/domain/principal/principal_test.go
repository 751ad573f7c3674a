package principal_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
)

const key = id.Key("key_01M7YNAYM0SM228XA4K3G6VDD4")

func TestBearer(t *testing.T) {
	bearer, err := principal.NewBearer("ws_dev", key, bytes.NewReader(bytes.Repeat([]byte{0xa5}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	ws, k, ok := principal.ParseBearer(bearer)
	if !ok || ws != "ws_dev" || k != key {
		t.Errorf("got %s, %s, %t of %s", ws, k, ok, bearer)
	}
	doc := principal.Key{ID: key, Workspace: "ws_dev", Hash: principal.HashBearer(bearer)}
	if !doc.Opens(bearer) {
		t.Error("the key does not open")
	}
	for i := range bearer {
		flipped := bearer[:i] + string(bearer[i]^1) + bearer[i+1:]
		if doc.Opens(flipped) {
			t.Errorf("%s opens too", flipped)
		}
	}
	if (principal.Key{}).Opens("") || (principal.Key{Hash: principal.HashBearer("")}).Opens("") {
		t.Error("the zero key opens")
	}
	if _, err := principal.NewBearer("ws_dev", key, iotest.ErrReader(errors.New("empty"))); err == nil {
		t.Error("a key was made without chance")
	}
}

func TestBearersThatAreNone(t *testing.T) {
	secret := strings.Repeat("A", 52)
	for _, text := range []string{
		"", "abk_", "abk_dev", "abk_dev..", "abk_dev.01M7YNAYM0SM228XA4K3G6VDD4.", "abk_.01M7YNAYM0SM228XA4K3G6VDD4." + secret,
		"abk_dev.01M7YNAYM0SM228XA4K3G6VDD4." + secret + "A", "abk_dev.01m7ynaym0sm228xa4k3g6vdd4." + secret,
		"abk_DEV.01M7YNAYM0SM228XA4K3G6VDD4." + secret,
		"ABK_dev.01M7YNAYM0SM228XA4K3G6VDD4." + secret, "abk_dev.01M7YNAYM0SM228XA4K3G6VDD4." + secret + ".x", strings.Repeat("x", 1<<16),
	} {
		if ws, k, ok := principal.ParseBearer(text); ok {
			t.Errorf("%.60q was read as %s of %s", text, k, ws)
		}
	}
}

// FuzzForms reads any text as every kind of secret: it is one kind at most, names what can be named, and holds nothing but letters,
// digits and what divides them.
func FuzzForms(f *testing.F) {
	for _, form := range []principal.Form{principal.KeyForm, principal.TokenForm, principal.EngineForm, principal.AccessForm,
		principal.RefreshForm} {
		f.Add(string(form) + "dev.01M7YNAYM0SM228XA4K3G6VDD4." + strings.Repeat("A", 52))
		f.Add(string(form) + "..")
	}
	f.Fuzz(func(t *testing.T, text string) {
		var names []string
		for _, parse := range []func() (id.Workspace, string, bool){
			func() (id.Workspace, string, bool) {
				ws, n, ok := principal.ParseBearer(text)
				return ws, string(n), ok
			},
			func() (id.Workspace, string, bool) { ws, n, ok := principal.ParseToken(text); return ws, string(n), ok },
			func() (id.Workspace, string, bool) {
				ws, n, ok := principal.ParseEngine(text)
				return ws, string(n), ok
			},
			func() (id.Workspace, string, bool) {
				ws, n, ok := principal.ParseAccess(text)
				return ws, string(n), ok
			},
			func() (id.Workspace, string, bool) {
				ws, n, ok := principal.ParseRefresh(text)
				return ws, string(n), ok
			},
		} {
			ws, name, ok := parse()
			if !ok {
				if ws != "" || name != "" {
					t.Errorf("%q is refused and names %s, %s", text, ws, name)
				}
				continue
			}
			names = append(names, name)
			if _, err := id.ParseWorkspace(string(ws)); err != nil {
				t.Errorf("%q: %v", text, err)
			}
			if _, ulid, _ := strings.Cut(name, "_"); len(ulid) != 26 || !strings.Contains(text, "."+ulid+".") {
				t.Errorf("%q names %s", text, name)
			}
		}
		if len(names) > 1 {
			t.Errorf("%q is %q", text, names)
		}
	})
}

func FuzzParseBearer(f *testing.F) {
	f.Add("abk_dev.01M7YNAYM0SM228XA4K3G6VDD4." + strings.Repeat("A", 52))
	f.Add("abk_..")
	f.Fuzz(func(t *testing.T, text string) {
		ws, k, ok := principal.ParseBearer(text)
		if !ok {
			if ws != "" || k != "" {
				t.Errorf("%q is refused and names %s, %s", text, ws, k)
			}
			return
		}
		if _, err := id.ParseWorkspace(string(ws)); err != nil {
			t.Error(err)
		}
		if _, err := id.Parse[id.Key](string(k)); err != nil {
			t.Error(err)
		}
	})
}

func TestRoles(t *testing.T) {
	order := []principal.Role{principal.Viewer, principal.Member, principal.Operator, principal.Admin, principal.Overlord}
	for i, role := range order {
		for j, other := range order {
			if got := role.AtLeast(other); got != (i >= j) {
				t.Errorf("%s at least %s: got %t", role, other, got)
			}
		}
		for _, nobody := range []principal.Role{"", "root"} {
			if nobody.AtLeast(role) {
				t.Errorf("the role %q is at least %s", nobody, role)
			}
		}
	}
	if principal.Role("").AtLeast("") || principal.Role("root").AtLeast("root") {
		t.Error("an unknown role is something")
	}
}

func TestEvolve(t *testing.T) {
	at := func(typ string, data string) event.Event {
		return event.Event{Header: event.Header{Type: typ, Workspace: "ws_dev", Principal: "usr_a"}, Data: []byte(data)}
	}
	var p principal.Principal
	for _, e := range []event.Event{
		at(principal.RegisteredType, `{"principal_id":"agt_1","kind":"agent","display_name":"worker","later":1}`),
		at(principal.QuarantinedType, `{"principal_id":"agt_1","reason":"odd"}`),
		at("something.else", `{}`),
	} {
		var err error
		if p, err = p.Evolve(e); err != nil {
			t.Fatal(err)
		}
	}
	if p.ID != "agt_1" || !p.Quarantined || p.Reason != "odd" || p.CreatedBy != "usr_a" {
		t.Errorf("got %+v", p)
	}
	p, err := p.Evolve(at(principal.UnquarantinedType, `{}`))
	if err != nil || p.Quarantined || p.Reason != "" {
		t.Errorf("got %+v, %v", p, err)
	}
	if _, err := p.Evolve(at(principal.RegisteredType, `[`)); err == nil {
		t.Error("broken data was folded")
	}
}

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"Olga": true, "größe 日本": true, strings.Repeat("x", principal.MaxName): true, "": false, " a": false, "a ": false, "a\nb": false,
		"a\x1b[m":  false,
		"a\u0085b": false, "a\u2028b": false, "\xff": false, strings.Repeat("x", principal.MaxName+1): false,
	} {
		if err := principal.CheckName(name); (err == nil) != ok {
			t.Errorf("%q: got %v, want accepted: %t", name, err, ok)
		}
	}
}

// TestWhoMayActForAnother holds that services, owners and admins act for agents, and that nobody acts for anybody else.
func TestWhoMayActForAnother(t *testing.T) {
	agent := principal.Principal{Kind: id.Agent}
	for _, c := range []struct {
		name  string
		by    principal.Principal
		other principal.Principal
		want  bool
	}{
		{"a service", principal.Principal{Kind: id.Service}, agent, true},
		{"an admin", principal.Principal{Kind: id.User, Role: principal.Admin}, agent, true},
		{"an owner", principal.Principal{Kind: id.User, Role: principal.Overlord}, agent, true},
		{"an operator", principal.Principal{Kind: id.User, Role: principal.Operator}, agent, false},
		{"an agent", principal.Principal{Kind: id.Agent, Role: principal.Overlord}, agent, false},
		{"a service in quarantine", principal.Principal{Kind: id.Service, Quarantined: true}, agent, false},
		{"an owner in quarantine", principal.Principal{Kind: id.User, Role: principal.Overlord, Quarantined: true}, agent, false},
		{"for a user", principal.Principal{Kind: id.Service}, principal.Principal{Kind: id.User}, false},
		{"for a service", principal.Principal{Kind: id.User, Role: principal.Overlord}, principal.Principal{Kind: id.Service}, false},
	} {
		if got := c.by.MayActFor(c.other); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}
