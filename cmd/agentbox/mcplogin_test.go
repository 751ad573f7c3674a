package main_test

import (
	"bufio"
	"bytes"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentbox/internal/testkit/authserver"
)

// signIn runs `agentbox mcp login`, and does with its address what a browser does: it follows the issuer back to the command. It returns
// the page that the browser shows at last, and what the command said.
func signIn(t *testing.T, dir, space string, meanwhile func(callback string)) (page, said string, err error) {
	t.Helper()
	cmd := exec.Command("agentbox", "mcp", "login", "guarded", "--space", space, "--data", dir)
	var out bytes.Buffer
	cmd.Stdout = &out
	errs, pipeErr := cmd.StderrPipe()
	if pipeErr != nil {
		t.Fatal(pipeErr)
	}
	if err := startBound(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(errs)
	for lines.Scan() {
		said += lines.Text() + "\n"
		if !strings.HasPrefix(lines.Text(), "http") {
			continue
		}
		at, err := url.Parse(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		if meanwhile != nil {
			meanwhile(at.Query().Get("redirect_uri"))
		}
		page = browse(t, at.String())
	}
	return page, said + out.String(), cmd.Wait()
}

// browse opens an address as a browser does, which follows redirects, and returns the page.
func browse(t *testing.T, address string) string {
	t.Helper()
	got, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	var page bytes.Buffer
	if _, err := page.ReadFrom(got.Body); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

// TestLogInToAnMCPServer as a person does it, with a real daemon, a real authorization server and a browser that follows redirects. The
// tokens outlive a crash of the daemon and are in no file that can be read.
func TestLogInToAnMCPServer(t *testing.T) {
	t.Parallel()
	g := authserver.NewGuarded()
	t.Cleanup(g.Close)
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}}
	c.start()
	run := func(args ...string) (string, error) {
		out, err := exec.Command("agentbox", append(args, "--data", c.dir)...).CombinedOutput()
		return string(out), err
	}
	must := func(args ...string) string {
		t.Helper()
		out, err := run(args...)
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		return out
	}
	host := func(at string) string { return strings.TrimPrefix(at, "http://") }
	space := c.post("/v1/spaces", `{"policy_overrides":{"allow":{"domains":["`+host(g.URL)+`","`+host(g.Issuer.URL)+`"]}}}`)["id"].(string)
	must("mcp", "add", "guarded", "--url", g.URL+"/mcp", "--login")
	if out, err := run("mcp", "login", "guarded", "--space", space); err == nil || !strings.Contains(out, "--login --issuer "+g.Issuer.URL) {
		t.Errorf("an issuer that nobody has named: %v\n%s", err, out)
	}
	if out := must("mcp", "add", "guarded", "--url", g.URL+"/mcp", "--login", "--issuer", g.Issuer.URL); !strings.Contains(out, "mcp login") {
		t.Errorf("got %s", out)
	}
	g.Issuer.Refuses.Store(true)
	if page, said, err := signIn(t, c.dir, space, nil); err == nil || !strings.Contains(said, "access_denied") ||
		!strings.Contains(page, "failed") {
		t.Errorf("a refusal: %v, the page says %q, the command %s", err, page, said)
	}
	g.Issuer.Refuses.Store(false)
	page, said, err := signIn(t, c.dir, space, func(callback string) { // a page of another login changes nothing
		if page := browse(t, callback+"?code=x&state=y"); !strings.Contains(page, "no login that waits") {
			t.Errorf("the page of another login says %q", page)
		}
	})
	if err != nil || !strings.Contains(page, "You are logged in") || !strings.Contains(said, "guarded: logged in") {
		t.Fatalf("%v, the page says %q, the command %s", err, page, said)
	}
	c.kill()
	g.Issuer.Forgets() // the daemon that comes renews the tokens
	c.start()
	if out := must("mcp", "look", "guarded", "--space", space); !strings.Contains(out, "echo") || !strings.Contains(out, "is logged in as") {
		t.Errorf("got %s", out)
	}
	secrets := g.Issuer.Secrets()
	if len(secrets) < 5 || g.Issuer.Renewals.Load() != 1 {
		t.Errorf("%d secrets, %d renewals", len(secrets), g.Issuer.Renewals.Load())
	}
	texts := map[string]string{"the daemon": c.output.String(), "the events": must("events", "--json")}
	err = filepath.WalkDir(c.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		texts[path] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets {
		for where, text := range texts {
			if strings.Contains(text, secret) {
				t.Errorf("%s tells %s", where, secret)
			}
		}
	}
	must("mcp", "logout", "guarded")
	if out, err := run("mcp", "look", "guarded", "--space", space); err == nil || !strings.Contains(out, "agentbox mcp login") {
		t.Errorf("after the logout: %v\n%s", err, out)
	}
}
