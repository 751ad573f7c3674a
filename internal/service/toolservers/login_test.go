package toolservers_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/mcp"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/tool"
	"agentbox/internal/driver/endpoint/keys"
	"agentbox/internal/driver/fetch"
	"agentbox/internal/driver/keyring"
	"agentbox/internal/driver/mcpclient"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/toolservers"
	"agentbox/internal/testkit/authserver"
)

const redirect = "http://127.0.0.1:41817/callback"

// secrets are keys by name.
type secrets map[string]string

func (s secrets) Key(_ context.Context, _ id.Workspace, name string) (model.Secret, error) {
	value, ok := s[name]
	if !ok {
		return model.Secret{}, model.ErrNoKey
	}
	return model.NewSecret(value), nil
}

func (secrets) Set(context.Context, policy.Permit, id.Workspace, string, model.Secret) error {
	return errors.ErrUnsupported
}

func (secrets) Remove(context.Context, policy.Permit, id.Workspace, string) error {
	return errors.ErrUnsupported
}

// reaching has the fixture reach servers over the network of this machine. It returns the folder of what it keeps of logins.
func (f *fixture) reaching(known secrets) (folder string) {
	f.t.Helper()
	dir := f.t.TempDir()
	ring, err := keyring.Open(filepath.Join(dir, "ring"), rand.Reader)
	if err != nil {
		f.t.Fatal(err)
	}
	folder = filepath.Join(dir, "logins")
	if f.parts.Grants, err = keys.OpenGrants(folder, ring, rand.Reader); err != nil {
		f.t.Fatal(err)
	}
	f.parts.Dialer, f.parts.Keys = mcpclient.New("test", fetch.New("agentbox/test", nil).Dial), known
	f.restart()
	return folder
}

// permits makes another space, whose policy permits the hosts and ports of these addresses, too.
func (f *fixture) permits(addresses ...string) {
	f.t.Helper()
	for _, address := range addresses {
		at, err := url.Parse(address)
		if err != nil {
			f.t.Fatal(err)
		}
		f.hosts = append(f.hosts, strconv.Quote(at.Host))
	}
	f.n++
	f.lab = id.Space(fmt.Sprintf("spc_%026d", f.n))
	b, err := f.gate.Bundles.ReadPolicy([]byte("allow: {domains: ["+strings.Join(f.hosts, ", ")+"]}"), false)
	if err == nil {
		err = f.gate.Bundles.PinBundle(f.t.Context(), f.owner, ws, b)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	draft := event.New(space.EventCreated, f.owner, ws, "", space.Created{Space: f.lab, Name: "lab", Bundle: b.Hash}).
		About(space.EntityType, string(f.lab))
	if _, err := f.log.Append(f.t.Context(), event.Batch{Workspace: ws, Drafts: []event.Draft{draft}}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) from(origin event.Origin) toolservers.Place {
	p := f.place(origin)
	p.Space = f.lab
	return p
}

// logsIn has the owner log in to a server.
func (f *fixture) logsIn(name string) (mcp.Held, error) {
	f.t.Helper()
	v, err := f.Login(f.t.Context(), f.from(f.owner), name, redirect)
	if err != nil {
		return mcp.Held{}, err
	}
	q, err := authserver.Visit(f.t.Context(), v.Address)
	if err != nil {
		return mcp.Held{}, err
	}
	return f.FinishLogin(f.t.Context(), f.owner, ws, name, mcp.Returned{Code: q.Get("code"), State: q.Get("state"), Issuer: q.Get("iss")})
}

// guarded starts a server with a login, which the workspace knows.
func (f *fixture) guarded() *authserver.Guarded {
	f.t.Helper()
	g := authserver.NewGuarded()
	f.t.Cleanup(g.Close)
	f.permits(g.URL, g.Issuer.URL)
	f.put(mcp.Server{Name: "guarded", URL: g.URL + "/mcp", Login: true, Issuer: g.Issuer.URL})
	return g
}

func (f *fixture) put(server mcp.Server) {
	f.t.Helper()
	if _, err := f.Put(f.t.Context(), f.owner, ws, server); err != nil {
		f.t.Fatal(err)
	}
}

// looks looks at a server from the space, and trusts everything that it offers.
func (f *fixture) looks(name string) mcp.Held {
	f.t.Helper()
	held, err := f.Look(f.t.Context(), f.from(f.owner), name)
	if err != nil {
		f.t.Fatal(err)
	}
	var all []mcp.Named
	for _, seen := range held.Tools {
		if seen.Problem == "" {
			all = append(all, mcp.Named{Tool: seen.Name, Hash: seen.Hash})
		}
	}
	if held, err = f.Trust(f.t.Context(), f.owner, ws, name, all); err != nil {
		f.t.Fatal(err)
	}
	return held
}

// asks has the agent call a tool of a server, which a person approves.
func (f *fixture) asks(offered, arguments string) (tool.Result, error) {
	f.t.Helper()
	u := f.use()
	u.Place, u.Task = f.from(f.agent), toolservers.Task{Type: offered, Arguments: json.RawMessage(arguments)}
	return f.called(u)
}

// TestAPersonLogsIn at a server; agents use it then, until the person logs out. The tokens are in no event and in no file that can be read.
func TestAPersonLogsIn(t *testing.T) {
	f := start(t)
	folder := f.reaching(nil)
	g := f.guarded()
	if _, err := f.Look(t.Context(), f.from(f.owner), "guarded"); !errors.Is(err, mcp.ErrLogin) {
		t.Errorf("before: got %v", err)
	}
	held, err := f.logsIn("guarded")
	if err != nil || held.Session == nil || held.Session.By != f.owner.Principal || held.Session.Client == "" {
		t.Fatalf("got %+v, %v", held, err)
	}
	f.looks("guarded")
	if got, err := f.asks("guarded__echo", `{}`); err != nil || got.Text != "Bearer [token]" {
		t.Fatalf("got %+v, %v", got, err)
	}
	f.restart() // the tokens outlive the daemon
	g.Issuer.Forgets()
	if got, err := f.asks("guarded__echo", `{}`); err != nil || got.Text != "Bearer [token]" || g.Issuer.Renewals.Load() != 1 {
		t.Errorf("renewed %d times: got %+v, %v", g.Issuer.Renewals.Load(), got, err)
	}
	f.silent(g, folder)
	if err := f.Logout(t.Context(), f.owner, ws, "guarded"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.asks("guarded__echo", `{}`); !errors.Is(err, mcp.ErrLogin) {
		t.Errorf("after: got %v", err)
	}
	if err := f.Logout(t.Context(), f.owner, ws, "guarded"); !errors.Is(err, mcp.ErrLogin) {
		t.Errorf("twice: got %v", err)
	}
	if held, err := f.Get(t.Context(), ws, "guarded"); err != nil || held.Session != nil || len(f.files(folder)) > 0 {
		t.Errorf("got %+v, %v; the files are %v", held.Session, err, f.files(folder))
	}
}

// files are the files of a folder.
func (f *fixture) files(folder string) (paths []string) {
	f.t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return paths
}

// silent wants no secret of an issuer in any event or file.
func (f *fixture) silent(g *authserver.Guarded, folder string) {
	f.t.Helper()
	all, err := f.log.Read(f.t.Context(), journal.Query{Workspace: ws, Limit: 1000})
	if err != nil {
		f.t.Fatal(err)
	}
	texts := []string{fmt.Sprint(all)}
	for _, path := range f.files(folder) {
		raw, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || info.Mode().Perm() != 0o600 {
			f.t.Errorf("%s: %v, %v", path, err, statErr)
		}
		texts = append(texts, string(raw))
	}
	for _, e := range all {
		texts = append(texts, string(e.Data))
	}
	for _, secret := range g.Issuer.Secrets() {
		for _, text := range texts {
			if strings.Contains(text, secret) {
				f.t.Errorf("%s is kept where it can be read", secret)
			}
		}
	}
	if len(texts) < 5 || len(g.Issuer.Secrets()) < 5 {
		f.t.Error("there was nothing to look at")
	}
}

// TestALoginEndsOnce, by the one who began it, and for the server as it was.
func TestALoginEndsOnce(t *testing.T) {
	f := start(t)
	folder := f.reaching(nil)
	g := f.guarded()
	ctx := t.Context()
	begin := func() mcp.Returned {
		t.Helper()
		v, err := f.Login(ctx, f.from(f.owner), "guarded", redirect)
		if err != nil {
			t.Fatal(err)
		}
		q, err := authserver.Visit(ctx, v.Address)
		if err != nil {
			t.Fatal(err)
		}
		return mcp.Returned{Code: q.Get("code"), State: q.Get("state"), Issuer: q.Get("iss")}
	}
	finish := func(origin event.Origin, back mcp.Returned) error {
		_, err := f.FinishLogin(ctx, origin, ws, "guarded", back)
		return err
	}
	first := begin()
	if err := finish(f.agent, first); fault.KindOf(err) != fault.Denied && !errors.Is(err, mcp.ErrNoLogin) {
		t.Errorf("by another: got %v", err)
	}
	second := begin() // which takes the place of the first
	if err := finish(f.owner, first); !errors.Is(err, mcp.ErrFailed) {
		t.Errorf("with the answer of a login that was given up: got %v", err)
	}
	if err := finish(f.owner, second); !errors.Is(err, mcp.ErrNoLogin) {
		t.Errorf("after a wrong answer: got %v", err)
	}
	third := begin()
	f.put(mcp.Server{Name: "guarded", URL: g.URL + "/mcp?other", Login: true, Issuer: g.Issuer.URL})
	if err := finish(f.owner, third); !errors.Is(err, mcp.ErrNoLogin) {
		t.Errorf("of another server: got %v", err)
	}
	if n := len(f.files(folder)); n != 0 {
		t.Errorf("%d grants are kept", n)
	}
	for _, bad := range []string{"", "https://127.0.0.1:1/", "http://example.com:80/", "http://127.0.0.1/callback", "http://127.0.0.1:1/?a=b",
		"http://a@127.0.0.1:1/", "http://localhost:1/"} {
		if _, err := f.Login(ctx, f.from(f.owner), "guarded", bad); fault.KindOf(err) != fault.Invalid {
			t.Errorf("redirect %q: got %v", bad, err)
		}
	}
	if _, err := f.Login(ctx, f.from(f.agent), "guarded", redirect); fault.KindOf(err) != fault.Denied {
		t.Errorf("an agent: got %v", err)
	}
	if _, err := f.Login(ctx, f.from(f.owner), "shop", redirect); fault.CodeOf(err) != "mcp_login_unwanted" {
		t.Errorf("a server without a login: got %v", err)
	}
}

// TestALoginGoesWithItsServer is destroyed when the server is changed or removed.
func TestALoginGoesWithItsServer(t *testing.T) {
	f := start(t)
	folder := f.reaching(nil)
	for name, change := range map[string]func(g *authserver.Guarded) error{
		"removed": func(*authserver.Guarded) error { return f.Remove(t.Context(), f.owner, ws, "guarded", "") },
		"changed": func(g *authserver.Guarded) error {
			_, err := f.Put(t.Context(), f.owner, ws, mcp.Server{Name: "guarded", URL: g.URL + "/other", Login: true})
			return err
		},
	} {
		g := f.guarded()
		if _, err := f.logsIn("guarded"); err != nil || len(f.files(folder)) != 1 {
			t.Fatalf("%s: %v, %v", name, err, f.files(folder))
		}
		if err := change(g); err != nil || len(f.files(folder)) != 0 {
			t.Errorf("%s: got %v, %v", name, err, f.files(folder))
		}
	}
}

// TestALoginNeedsThePolicy of the space: for the server, and for the issuer.
func TestALoginNeedsThePolicy(t *testing.T) {
	f := start(t)
	f.reaching(nil)
	g := f.guarded()
	for _, only := range []string{g.URL, g.Issuer.URL} {
		f.hosts = nil
		f.permits(only)
		if _, err := f.Login(t.Context(), f.from(f.owner), "guarded", redirect); fault.KindOf(err) != fault.Denied {
			t.Errorf("%s alone is permitted: got %v", only, err)
		}
	}
	if n := len(f.events(mcp.EventLoggedIn)); n != 0 || len(g.Issuer.Secrets()) != 0 {
		t.Errorf("%d logins are recorded", n)
	}
}

// hasty gives logins up as soon as their address is shown.
type hasty struct{ mcp.Dialer }

func (hasty) Login(ctx context.Context, _ policy.Permit, _ mcp.Target, by mcp.Browser) (mcp.Grant, mcp.LoggedIn, error) {
	ctx, stop := context.WithCancel(ctx)
	stop()
	_, err := by.Visit(ctx, "https://issuer.example/authorize")
	return mcp.Grant{}, mcp.LoggedIn{}, err
}

// TestLoginsThatNobodyFinishes make room for others.
func TestLoginsThatNobodyFinishes(t *testing.T) {
	f := start(t)
	f.reaching(nil)
	f.parts.Dialer = hasty{f.parts.Dialer}
	f.restart()
	g := f.guarded()
	for n := range mcp.MaxLogins + 5 {
		name := fmt.Sprintf("guarded-%d", n)
		f.put(mcp.Server{Name: name, URL: g.URL + "/mcp", Login: true, Issuer: g.Issuer.URL})
		_, err := f.Login(t.Context(), f.from(f.owner), name, redirect)
		for tries := 0; errors.Is(err, mcp.ErrLoginsFull) && tries < 1000; tries++ { // the goroutines of the others end meanwhile
			_, err = f.Login(t.Context(), f.from(f.owner), name, redirect)
		}
		if err != nil && !errors.Is(err, mcp.ErrNoLogin) { // it may have ended before its address was read
			t.Fatalf("login %d: got %v", n, err)
		}
	}
}

// TestManyLogins may wait, up to a limit.
func TestManyLogins(t *testing.T) {
	f := start(t)
	f.reaching(nil)
	g := f.guarded()
	name := func(n int) string { return fmt.Sprintf("guarded-%d", n) }
	for n := range mcp.MaxLogins + 1 {
		f.put(mcp.Server{Name: name(n), URL: g.URL + "/mcp", Login: true, Issuer: g.Issuer.URL})
		_, err := f.Login(t.Context(), f.from(f.owner), name(n), redirect)
		if n < mcp.MaxLogins && err != nil || n == mcp.MaxLogins && !errors.Is(err, mcp.ErrLoginsFull) {
			t.Fatalf("login %d: got %v", n, err)
		}
	}
	if _, err := f.Login(t.Context(), f.from(f.owner), name(0), redirect); err != nil {
		t.Errorf("the same once more: got %v", err)
	}
	if err := f.Close(); err != nil { // which waits for all of them
		t.Error(err)
	}
}
