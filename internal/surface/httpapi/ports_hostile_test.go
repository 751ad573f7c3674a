package httpapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/token"
)

// TestNoRequestIsSmuggled sends what one side could take for one request and the other for two. The program gets one or none.
func TestNoRequestIsSmuggled(t *testing.T) {
	p := startPorts(t, "")
	v := p.preview(`{}`)
	const smuggled = "GET /echo/smuggled HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	for name, c := range map[string]struct {
		headers, body string
		status        string // the first one
	}{
		"two encodings":            {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n" + smuggled, "501"},
		"an encoding in a list":    {"Transfer-Encoding: identity, chunked\r\n", "0\r\n\r\n" + smuggled, "501"},
		"an encoding of nobody":    {"Transfer-Encoding: xchunked\r\n", "0\r\n\r\n" + smuggled, "501"},
		"a space before the colon": {"Transfer-Encoding : chunked\r\n", "0\r\n\r\n" + smuggled, "400"},
		"two lengths":              {"Content-Length: 0\r\nContent-Length: 72\r\n", smuggled, "400"},
		"a length with a sign":     {"Content-Length: +0\r\n", smuggled, "400"},
		"a length of a list":       {"Content-Length: 0, 72\r\n", smuggled, "400"},
		"a broken chunk":           {"Transfer-Encoding: chunked\r\nConnection: close\r\n", "zz\r\n" + smuggled, ""},
		"a length and an encoding": {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n",
			"0\r\n\r\n" + smuggled, "200"},
		"a request behind it":         {"Content-Length: 0\r\n", smuggled, "200"},
		"a line in a header":          {"X-A: 1\n\r\nGET /echo/smuggled HTTP/1.1\r\nConnection: close\r\n", "", ""},
		"a length that is hop by hop": {"Content-Length: 5\r\nConnection: close, Content-Length\r\n", "GET /" + smuggled, "200"},
	} {
		got := p.raw("POST /echo/first HTTP/1.1\r\nHost: " + v.Host + "\r\nX-Preview-Token: " + v.Token + "\r\n" + c.headers + "\r\n" + c.body)
		if c.status != "" && !strings.HasPrefix(got, "HTTP/1.1 "+c.status+" ") {
			t.Errorf("%s: %.200s, want %s", name, got, c.status)
		}
		if strings.Contains(got, `"path": "/echo/smuggled"`) {
			t.Errorf("%s: the program got it: %s", name, got)
		}
	}
	_, text := p.send("GET", v.Host, "/seen", "", "X-Preview-Token", v.Token)
	if strings.Contains(text, "smuggled") || !strings.Contains(text, "/echo/first") {
		t.Errorf("the program saw %s", text)
	}
	// A path stays one path, and each header one header.
	_, text = p.send("GET", v.Host, "/echo/%0d%0aX-Bad:%201%0d%0a/../%2e%2e/", "", "X-Preview-Token", v.Token)
	if e := read(t, text); e.Path != "/echo/%0d%0aX-Bad:%201%0d%0a/../%2e%2e/" || e.get("X-Bad") != "" {
		t.Errorf("the program got %s", text)
	}
	_, text = p.send("POST", v.Host, "/echo", "hello", "X-Preview-Token", v.Token, "Connection", "X-Preview-Token, Host", "Te", "trailers",
		"Keep-Alive", "1", "Proxy-Authorization", "Basic x", "Proxy-Connection", "close")
	e := read(t, text)
	if e.get("Host") != "localhost:8080" || e.Body != "hello" {
		t.Errorf("the program got %s", text)
	}
	for _, name := range []string{"X-Preview-Token", "Te", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection"} {
		if e.get(name) != "" {
			t.Errorf("the program got %s: %q", name, e.get(name))
		}
	}
}

// TestAnswersThatAreHostile passes answers on that are large or that could be taken two ways.
func TestAnswersThatAreHostile(t *testing.T) {
	p := startPorts(t, "")
	v := p.preview(`{}`)
	get := func(path string) (*http.Response, string) {
		t.Helper()
		return p.send("GET", v.Host, path, "", "X-Preview-Token", v.Token)
	}
	if resp, text := get("/twice"); resp.StatusCode != 502 || code([]byte(text)) != "port_bad_answer" {
		t.Errorf("two encodings: %d %s", resp.StatusCode, text)
	}
	if resp, text := get("/mixed"); resp.StatusCode != 200 || text != "ok" {
		t.Errorf("a length and an encoding: %d %q", resp.StatusCode, text)
	}
	resp, _ := get("/names")
	if resp.Header.Get("X-Good") != "1" || len(resp.Header["X Y"]) > 0 || resp.Header.Get("X-Agentbox-Own") != "" {
		t.Errorf("the names of headers: %v", resp.Header)
	}
	if resp, text := get("/big"); resp.StatusCode != 200 || len(text) != 100<<20 || strings.Trim(text, "b") != "" {
		t.Errorf("a large answer: %d, %d bytes", resp.StatusCode, len(text))
	}
	// Half of a large answer is enough for its client, and the program is told.
	_, reader := p.stream(v, "/big", "")
	if resp, err := http.ReadResponse(reader, nil); err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	if resp, text := get("/echo"); resp.StatusCode != 200 {
		t.Errorf("beside an answer that nobody reads: %d %s", resp.StatusCode, text)
	}
}

// TestNoSecretOfAnAddressIsKept looks for the secret of an address where it could have gone: to the program, its output and the log.
func TestNoSecretOfAnAddressIsKept(t *testing.T) {
	p := startPorts(t, "")
	v := p.preview(`{}`)
	secret := v.Token
	resp, _ := p.send("GET", v.Host, "/echo?agentbox_preview="+secret+"&x=1", "")
	if l := resp.Header.Get("Location"); resp.StatusCode != 303 || strings.Contains(l, secret) ||
		resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("moved to %q with %v", l, resp.Header)
	}
	path := strings.TrimPrefix(v.PathURL, p.address)
	for _, r := range []struct {
		method, host, path string
		headers            []string
	}{
		{"GET", v.Host, "/echo/a", []string{"X-Preview-Token", secret}},
		{"GET", v.Host, "/echo/b", []string{"Cookie", "agentbox_preview=" + secret}},
		{"GET", v.Host, "/echo/c", []string{"Cookie", "a=1; agentbox_preview=" + secret,
			"Referer", "http://" + v.Host + "/?agentbox_preview=" + secret}},
		{"POST", v.Host, "/echo/d?agentbox_preview=" + secret, []string{"X-Preview-Token", secret}},
		{"GET", p.host, path + "echo/e", []string{"Referer", p.address + path}},
		{"GET", v.Host, "/echo/f", []string{"X-Preview-Token", secret, "Authorization", "Bearer " + p.keys[""]}},
		{"GET", v.Host, "/echo/g", []string{"X-Preview-Token", secret, "X-Api-Key", p.keys[""]}},
	} {
		resp, text := p.send(r.method, r.host, r.path, "", r.headers...)
		if resp.StatusCode != 200 || strings.Contains(text, secret) || strings.Contains(text, p.keys[""]) {
			t.Errorf("%s %s: %d, the program got %s", r.method, r.path, resp.StatusCode, text)
		}
	}
	_, text := p.send("GET", v.Host, "/seen", "", "X-Preview-Token", secret)
	if strings.Contains(text, secret) {
		t.Errorf("the program saw %s", text)
	}
	for _, e := range p.anywhere(t) {
		if strings.Contains(string(e.Data), secret) || strings.Contains(e.IdempotencyKey, secret) {
			t.Errorf("the log has the secret: %s", e.Type)
		}
	}
}

// TestAPreviewEndsWithItsToken revokes the capability token by which an address was made.
func TestAPreviewEndsWithItsToken(t *testing.T) {
	p := startPorts(t, "")
	made, err := p.app.Identity.Grant(t.Context(), event.Origin{Principal: p.app.Owner}, id.DefaultWorkspace, token.Grant{
		IssuedTo: p.app.Owner, Scopes: token.All()})
	if err != nil {
		t.Fatal(err)
	}
	p.keys["granted"] = made.Bearer
	status, raw := p.ask(t, "granted", "POST", "/v1/spaces/"+p.space+"/ports/8080/preview", `{}`)
	var v preview
	if err := json.Unmarshal(raw, &v); err != nil || status != 200 {
		t.Fatalf("%d %s", status, raw)
	}
	if resp, text := p.send("GET", v.Host, "/echo", "", "X-Preview-Token", v.Token); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	_, sse := p.stream(v, "/events", "")
	if resp, err := http.ReadResponse(sse, nil); err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	if _, err := p.app.Identity.Revoke(t.Context(), event.Origin{Principal: p.app.Owner}, id.DefaultWorkspace, made.ID, "a test"); err != nil {
		t.Fatal(err)
	}
	if resp, text := p.send("GET", v.Host, "/echo", "", "X-Preview-Token", v.Token); resp.StatusCode != 403 {
		t.Errorf("after the token was revoked: %d %s", resp.StatusCode, text)
	}
	if rest, err := io.ReadAll(sse); err == nil && strings.Contains(string(rest), "data: 3") {
		t.Errorf("the stream goes on: %q", rest)
	}
	p.closedWith(space.PortNotPermitted)
}

// TestAPreviewEndsWithItsKeyOrSession revokes the key, and ends the session, by which an address was made. Addresses of others hold.
func TestAPreviewEndsWithItsKeyOrSession(t *testing.T) {
	p := startPorts(t, "")
	var key struct {
		ID     string `json:"key_id"`
		Bearer string `json:"key"`
	}
	p.succeed(t, "POST", "/v1/keys", `{"name":"for a preview"}`, &key)
	p.succeed(t, "POST", "/v1/auth/passphrase", `{"passphrase":"correct horse battery"}`, &struct{}{})
	var session struct {
		Access string `json:"access_token"`
	}
	p.succeed(t, "POST", "/v1/auth/login", `{"passphrase":"correct horse battery","principal_id":"`+string(p.app.Owner)+`"}`, &session)
	p.keys["key"], p.keys["session"] = key.Bearer, session.Access
	made := map[string]preview{}
	for _, by := range []string{"", "key", "session"} {
		status, raw := p.ask(t, by, "POST", "/v1/spaces/"+p.space+"/ports/8080/preview", `{}`)
		var v preview
		if err := json.Unmarshal(raw, &v); err != nil || status != http.StatusOK {
			t.Fatalf("%q: %d %s", by, status, raw)
		}
		made[by] = v
	}
	want := func(by string, status int) {
		t.Helper()
		if resp, text := p.send("GET", made[by].Host, "/echo", "", "X-Preview-Token", made[by].Token); resp.StatusCode != status {
			t.Errorf("the address of %q: %d %s, want %d", by, resp.StatusCode, text, status)
		}
	}
	for by := range made {
		want(by, http.StatusOK)
	}
	if status, raw := p.ask(t, "", "DELETE", "/v1/keys/"+key.ID, ""); status != http.StatusNoContent && status != http.StatusOK {
		t.Fatalf("%d %s", status, raw)
	}
	want("key", http.StatusForbidden)
	want("session", http.StatusOK)
	if status, raw := p.ask(t, "session", "POST", "/v1/auth/logout", ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, raw)
	}
	want("session", http.StatusForbidden)
	want("", http.StatusOK)
	p.closedWith(space.PortNotPermitted)
}
