package httpapi_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/app"
	"agentbox/internal/surface/httpapi/wire"
	"agentbox/internal/testkit"
	"agentbox/internal/testkit/authserver"
)

// documentedExamples are the examples of bodies in the committed API document, by operation. An operation that takes JSON and has none
// fails.
func documentedExamples(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "api", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]struct {
			ID   string `json:"operationId"`
			Body *struct {
				Content map[string]struct {
					Example json.RawMessage `json:"example"`
				} `json:"content"`
			} `json:"requestBody"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, methods := range document.Paths {
		for _, op := range methods {
			if op.Body == nil {
				continue
			}
			body, isJSON := op.Body.Content["application/json"]
			if isJSON && len(body.Example) == 0 {
				t.Errorf("%s has no example of its body: write one in examples.go", op.ID)
			}
			if isJSON {
				found[op.ID] = string(body.Example)
			}
		}
	}
	return found
}

// named returns, for the operations whose bodies name something by an identifier, what stands here for the one of the example, which is
// nobody's, and the paths of what that is in.
func (d *daemon) named(t *testing.T) (ids, paths map[string]string) {
	t.Helper()
	ran := func() (space, run string) {
		in := d.must(t, "POST", "/v1/spaces", `{"runtime":"heavy"}`, "id")
		return in, d.must(t, "POST", "/v1/spaces/"+in+"/runs",
			`{"protocolVersion":"1.0","operations":[{"type":"createFile","path":"f","content":"x"}]}`, "runId")
	}
	_, forgotten := ran()
	in, run := ran()
	d.must(t, "POST", "/v1/spaces/"+in+"/runs", `{"protocolVersion":"1.0","operations":[{"type":"createFile","path":"serve.py","content":`+
		`"import json, sys\nfor line in sys.stdin:\n  m = json.loads(line)\n  if m['method'] == 'initialize':\n    r = {'protocolVersion': `+
		`'2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 's', 'version': '1'}}\n  else:\n    r = {'tools': []}\n`+
		`  if 'id' in m:\n    print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': r}), flush=True)\n"}]}`, "runId")
	d.must(t, "PUT", "/v1/mcp-servers/inner", `{"command":"python3 serve.py"}`, "name")
	paths = map[string]string{"rewind-space": "/v1/spaces/" + in + "/rewind", "look-at-mcp-server": "/v1/mcp-servers/inner/look",
		"log-in-to-mcp-server": "/v1/mcp-servers/guarded/login", "finish-mcp-login": "/v1/mcp-servers/guarded/login/finish"}
	owner := string(d.app.Owner)
	return map[string]string{
		"redact-events": forgotten, "rewind-space": run, "grant-capability": owner, "look-at-mcp-server": in,
		"log-in-to-mcp-server": d.guarded(t),
		"revoke-capability": d.must(t, "POST", "/v1/capabilities/grant", `{"issued_to_principal_id":"`+owner+
			`","scopes":{"rooms":["*"],"action_types":["run.start"]}}`, "token_id"),
		"refresh": "", // what the example of login, which is sent before, was answered with
	}, paths
}

// guarded makes an MCP server with a login, and a space that may reach it.
func (d *daemon) guarded(t *testing.T) (space string) {
	t.Helper()
	g := authserver.NewGuarded()
	t.Cleanup(g.Close)
	host := func(url string) string { return `"` + strings.TrimPrefix(url, "http://") + `"` }
	d.must(t, "PUT", "/v1/mcp-servers/guarded", `{"url":"`+g.URL+`/mcp","login":true,"issuer":"`+g.Issuer.URL+`"}`, "name")
	return d.must(t, "POST", "/v1/spaces", `{"policy_overrides":{"allow":{"domains":[`+host(g.URL)+`,`+host(g.Issuer.URL)+`]}}}`, "id")
}

// answered begins a login from a space, and returns the body that finishes it.
func (d *daemon) answered(t *testing.T, space string) string {
	t.Helper()
	at := d.must(t, "POST", "/v1/mcp-servers/guarded/login", `{"space_id":"`+space+`","redirect_uri":"http://127.0.0.1:41817/callback"}`,
		"authorization_url")
	q, err := authserver.Visit(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]string{"code": q.Get("code"), "state": q.Get("state"), "iss": q.Get("iss")})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

var identifierOfNobody = regexp.MustCompile(`[a-z]+_(?:dev\.)?01M7YNAYM0SMK245AEDNVB5CNW(?:\.AAAA)?`)

// TestEveryExampleIsReal sends each example of the API document to something that it fits, as it stands there but for an identifier of
// nobody, for which that of something here is put. All succeed.
func TestEveryExampleIsReal(t *testing.T) {
	d := startDaemon(t, func(c *app.Config) {
		c.Rates, c.Light = wire.DefaultRates(), &testkit.Light{}
		c.Rates.Spaces, c.Rates.Runs = 1000, 1000
	})
	table, known, found := samples(t, d), documented(t), documentedExamples(t)
	named, paths := d.named(t)
	first := []string{"bootstrap-owner", "login", "refresh"}
	last := "put-kill-switch" // which stops everything else
	send := func(op, body string) {
		s, ok := table[op]
		where := known[op]
		if path := paths[op]; path != "" {
			s.path, s.status = path, 0
		}
		if !ok || s.path == "" {
			s.path = strings.NewReplacer("{room_id}", "room_00000000000000000000000000", "{action_type}", "deploy.production",
				"{blueprint}", "weather-report", "{model}", "glm", "{model_key}", "zai", "{mcp_server}", "github").Replace(where[1])
		}
		if identifierOfNobody.MatchString(body) != (named[op] != "") {
			t.Errorf("the example of %s names something, and the test has nothing of it, or it names nothing: %s", op, body)
		}
		body = identifierOfNobody.ReplaceAllString(body, named[op])
		if op == "finish-mcp-login" { // with the code of a real login
			body = d.answered(t, named["log-in-to-mcp-server"])
		}
		r, err := http.NewRequestWithContext(t.Context(), where[0], d.address+s.path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+d.keys[""])
		if op == "set-passphrase" { // the owner has one by now
			r.Header.Set("Authorization", "Bearer "+d.key(t, "viewer-vera"))
		}
		if op == "bootstrap-owner" {
			r.Header.Set("X-Bootstrap-Token", d.app.Identity.BootstrapToken)
		}
		if token := claimToken.FindString(s.body); token != "" { // the header does as well as the field
			r.Header.Set("X-Claim-Token", token)
		}
		resp, raw := d.send(t, r)
		holds(t, where[0], s.path, resp, raw)
		if op == "login" {
			var made struct {
				Refresh string `json:"refresh_token"`
			}
			if err := json.Unmarshal(raw, &made); err != nil {
				t.Fatal(err)
			}
			named["refresh"] = made.Refresh
		}
		if resp.StatusCode >= 300 || s.status != 0 && resp.StatusCode != s.status {
			t.Errorf("the example of %s: %d %s, want %d", op, resp.StatusCode, raw, s.status)
		}
	}
	for _, op := range first {
		send(op, found[op])
	}
	for _, op := range slices.Sorted(maps.Keys(found)) {
		body := found[op]
		if !slices.Contains(first, op) && op != last {
			send(op, body)
		}
	}
	send(last, found[last])
}
