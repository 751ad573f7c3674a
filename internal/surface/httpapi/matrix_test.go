package httpapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/surface/httpapi/wire"
	"agentbox/internal/testkit"
)

// endpoint is an operation of the API document, with what it says that it takes.
type endpoint struct {
	id, method, path string
	public           bool
	needs            wire.Needs
	engines          bool // open to engines, by their own tokens
}

// endpoints reads the committed API document.
func endpoints(t *testing.T) []endpoint {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "api", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]struct {
			ID       string                `json:"operationId"`
			Security []map[string][]string `json:"security"`
			Needs    wire.Needs            `json:"x-needs"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	var all []endpoint
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for method, op := range document.Paths[path] {
			all = append(all, endpoint{op.ID, strings.ToUpper(method), path, len(op.Security) == 0, op.Needs, len(op.Security) > 1})
		}
	}
	slices.SortFunc(all, func(a, b endpoint) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	return all
}

// matrix is a daemon with something of everything, and those who try it.
type matrix struct {
	*daemon
	samples map[string]sent
	things  map[string]string // by the parameter of a path
	excused map[string]bool   // the reasons of the table of rights that were needed
}

var claimToken = regexp.MustCompile(`clm_[A-Z2-7]+`)

var parameter = regexp.MustCompile(`\{([a-z_]+)\}`)

// request returns the request that is tried of an operation. Where the path has a parameter that stands for nothing here, the test fails:
// say what it stands for.
func (m *matrix) request(t *testing.T, e endpoint) (path string, s sent) {
	t.Helper()
	if s, ok := m.samples[e.id]; ok {
		return s.path, s
	}
	if e.method == http.MethodPost {
		t.Errorf("%s is not among the samples: say what it is sent", e.id)
	}
	path = parameter.ReplaceAllStringFunc(e.path, func(name string) string {
		value, ok := m.things[name[1:len(name)-1]]
		if !ok {
			t.Errorf("%s: the matrix has nothing for %s", e.id, name)
		}
		return value
	})
	return path, sent{}
}

// try is tryAs with an authorization alone.
func (m *matrix) try(t *testing.T, e endpoint, authorization string) (int, string, string) {
	t.Helper()
	if authorization == "" {
		return m.tryAs(t, e, nil)
	}
	return m.tryAs(t, e, http.Header{"Authorization": {authorization}})
}

// tryAs sends the request of an operation with a credential and returns the status, the code of a problem and the answer.
func (m *matrix) tryAs(t *testing.T, e endpoint, as http.Header) (int, string, string) {
	t.Helper()
	path, s := m.request(t, e)
	a := m.send(t, e, as, path, s)
	return a.status, a.code, a.raw
}

// answered is what came of a request.
type answered struct {
	status    int
	code, raw string
}

// send sends something to an operation with a credential. It reads nothing of an event stream.
func (m *matrix) send(t *testing.T, e endpoint, as http.Header, path string, s sent) answered {
	t.Helper()
	body := s.body
	if body == "" && (e.method == http.MethodPut || e.method == http.MethodPatch) {
		body = `{"on":true}`
	}
	r, err := http.NewRequestWithContext(t.Context(), e.method, m.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(r.Header, as)
	if e.id == "write-artifact" { // whose body is not a place for it
		r.Header.Set("X-Claim-Token", claimToken.FindString(m.samples["create-artifact"].body))
	}
	if s.media != "" {
		r.Header.Set("Content-Type", s.media)
	} else if e.method != http.MethodGet && body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return answered{status: resp.StatusCode}
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem") {
		var judged struct {
			Decision string `json:"decision"`
			Code     string `json:"reason_code"`
		}
		if json.Unmarshal(raw, &judged) == nil && judged.Decision == "deny" && (strings.HasPrefix(judged.Code, "capability_") ||
			judged.Code == policy.ReasonRoleTooLow) {
			return answered{http.StatusForbidden, judged.Code, string(raw)} // a decision is an answer, and this one refuses
		}
		return answered{resp.StatusCode, "", string(raw)}
	}
	return answered{resp.StatusCode, code(raw), string(raw)}
}

// populated makes something of everything.
func populated(t *testing.T) *matrix {
	t.Helper()
	d := startDaemon(t, func(c *app.Config) {
		c.Rates, c.Light = wire.DefaultRates(), &testkit.Light{}
		c.Rates.Spaces, c.Rates.Runs, c.Rates.Files, c.Rates.General, c.Rates.Failures = 10_000, 10_000, 10_000, 100_000, 100_000
	})
	d.populate(t)
	m := &matrix{daemon: d, samples: samples(t, d), things: map[string]string{"path": "f", "port": "8080", "context": "c",
		"room_id": "room_00000000000000000000000000"}}
	var list map[string][]map[string]any
	first := func(path, field, key string) string {
		t.Helper()
		list = nil
		status, raw := d.ask(t, "", "GET", path, "")
		if _ = json.Unmarshal(raw, &list); status != 200 || len(list[field]) == 0 {
			t.Fatalf("%s has nothing of %s: %d %s", path, field, status, raw)
		}
		return list[field][0][key].(string)
	}
	first("/v1/runs", "runs", "run_id")
	m.things["thread_id"] = d.must(t, "POST", "/v1/rooms/room_00000000000000000000000000/threads", `{"title":"for the matrix"}`, "thread_id")
	for _, r := range list["runs"] { // the newest that is executed in a space
		if in, _ := r["space_id"].(string); in != "" && m.things["space_id"] == "" {
			m.things["run_id"], m.things["space_id"] = r["run_id"].(string), in
		}
	}
	content := "output"
	declared := fmt.Sprintf(`,"size_bytes":%d,"sha256":"%s","content":{"type":"none"}}`, len(content), event.DigestOf([]byte(content)))
	m.things["artifact_id"] = d.must(t, "POST", m.samples["create-artifact"].path, strings.TrimSuffix(m.samples["create-artifact"].body, "}")+
		declared, "artifact_id")
	m.samples["write-artifact"] = sent{path: "/v1/artifacts/" + m.things["artifact_id"] + "/content", body: content,
		media: "application/octet-stream"}
	m.things["tool_call_id"] = first("/v1/toolcalls", "tool_calls", "tool_call_id")
	m.things["step_id"] = list["tool_calls"][0]["step_id"].(string)
	m.things["incident_id"] = first("/v1/incidents", "incidents", "incident_id")
	m.things["approval_id"] = first("/v1/approvals", "approvals", "approval_id")
	m.things["event_id"] = first("/v1/events?run_id="+m.things["run_id"], "events", "event_id")
	m.things["agent_id"] = first("/v1/agents", "agents", "agent_id")
	m.things["principal_id"] = m.things["agent_id"]
	m.things["workspace_id"] = string(id.DefaultWorkspace)
	m.things["engine_id"] = first("/v1/engines", "engines", "engine_id")
	m.things["action_type"] = "deploy.production"
	m.samples["put-action-type"] = sent{path: "/v1/action-types/deploy.production", body: `{"description":"deploy","side_effect":"network"}`}
	m.must(t, "PUT", m.samples["put-action-type"].path, m.samples["put-action-type"].body, "status")
	m.things["blueprint"] = "weather-report"
	m.samples["put-blueprint"] = sent{path: "/v1/blueprints/weather-report", body: `{"text":` + blueprintSample + `}`}
	m.must(t, "PUT", m.samples["put-blueprint"].path, m.samples["put-blueprint"].body, "status")
	m.samples["run-blueprint"] = sent{path: m.runner(t) + "/runs", body: `{"task":"report","space_id":"` + m.things["space_id"] + `"}`}
	m.things["model"], m.things["model_key"] = "glm", "zai"
	m.samples["put-model"] = sent{path: "/v1/models/glm", body: modelSample}
	m.samples["put-model-key"] = sent{path: "/v1/model-keys/zai", body: `{"value":"a-key"}`}
	m.samples["put-model-settings"] = sent{path: "/v1/model-settings", body: `{"routes":[],"budgets":[]}`}
	m.must(t, "PUT", "/v1/models/glm", modelSample, "name")
	m.things["mcp_server"] = "github"
	m.samples["put-mcp-server"] = sent{path: "/v1/mcp-servers/github", body: serverSample}
	m.samples["look-at-mcp-server"] = sent{path: "/v1/mcp-servers/github/look", body: `{"space_id":"spc_01M7YNAYM0SMK245AEDNVB5CNW"}`}
	m.samples["log-in-to-mcp-server"] = sent{path: "/v1/mcp-servers/github/login", body: loginSample}
	m.samples["finish-mcp-login"] = sent{path: "/v1/mcp-servers/github/login/finish", body: `{"code":"c","state":"s"}`}
	m.samples["trust-mcp-tools"] = sent{path: "/v1/mcp-servers/github/trust", body: trustSample}
	m.must(t, "PUT", "/v1/mcp-servers/github", serverSample, "name")
	m.offers(t, "github")
	m.things["standing_id"] = "stand_01M7YNAYM0SMK245AEDNVB5CNW"
	m.things["node_id"] = "node_01M7YNAYM0SMK245AEDNVB5CNW"
	m.things["key_id"] = "key_01M7YNAYM0SMK245AEDNVB5CNW"
	return m
}

// bearer gives somebody a token of the owner with scopes.
func (m *matrix) bearer(t *testing.T, to id.Principal, s token.Scopes) (string, id.Token) {
	t.Helper()
	made, err := m.app.Identity.Grant(t.Context(), event.Origin{Principal: m.app.Owner}, id.DefaultWorkspace, token.Grant{IssuedTo: to,
		Scopes: s})
	if err != nil {
		t.Fatal(err)
	}
	return "Bearer " + made.Bearer, made.ID
}

// viewerMay says whether a viewer may do what an operation takes.
func viewerMay(n wire.Needs) bool {
	kind, known := policy.KindOf(n.Action)
	switch {
	case n.Least != "":
		return principal.Viewer.AtLeast(n.Least)
	case n.Own:
		return true
	case n.Reads != "":
		return true
	case kind.SideEffect == policy.Record:
		return kind.Role == string(principal.Viewer)
	}
	return known && (kind.SideEffect == policy.Pure || kind.SideEffect == policy.Read)
}

// TestMatrixOfRights tries every operation of the API document with every kind of credential that is not enough for it. The expectation
// follows from the operation's own statement about credentials; an operation without one fails.
func TestMatrixOfRights(t *testing.T) {
	m := populated(t)
	ctx, ws, owner := t.Context(), id.DefaultWorkspace, event.Origin{Principal: m.app.Owner}
	revoked, key, err := m.app.Identity.IssueKey(ctx, owner, ws, m.app.Owner, "lost")
	if err == nil {
		err = m.app.Identity.RevokeKey(ctx, owner, ws, key.ID, "lost", false)
	}
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := m.app.Identity.Agent(ctx, owner, ws, "stranger")
	if err != nil {
		t.Fatal(err)
	}
	quarantined := m.keys["agent"]
	stopped, _ := m.bearer(t, stranger, token.All())
	if err := m.app.Identity.Quarantine(ctx, owner, ws, stranger, true, "for the matrix"); err != nil {
		t.Fatal(err)
	}
	gone, taken := m.bearer(t, m.app.Owner, token.All())
	child, err := m.app.Identity.Grant(ctx, event.Origin{Principal: m.app.Owner, Token: taken}, ws, token.Grant{IssuedTo: m.app.Owner,
		Scopes: token.All()})
	if err == nil {
		_, err = m.app.Identity.Revoke(ctx, owner, ws, taken, "for the matrix")
	}
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := token.All()
	elsewhere.Rooms = []string{"room_01M7YNAYM0SMK245AEDNVB5CNW"}
	idle := token.Scopes{Rooms: []string{token.Any}, Actions: []string{policy.MessageSend}, Data: token.Data{Read: []string{"nothing"},
		Write: []string{"nothing"}}}
	inert, _ := m.bearer(t, m.app.Owner, idle)
	away, _ := m.bearer(t, m.app.Owner, elsewhere)
	strangers := map[string]string{
		"no credential": "", "garbage": "Bearer garbage", "another scheme": "Basic b3duZXI6",
		"a key that is not there": "Bearer abk_dev.01M7YNAYM0SMK245AEDNVB5CNW." + strings.Repeat("A", 52),
		"a revoked key":           "Bearer " + revoked, "a key of a quarantined agent": "Bearer " + quarantined,
		"a token of a quarantined agent": stopped,
		"a revoked token":                gone,
		"a token below a revoked one":    "Bearer " + child.Bearer,
	}
	tried := 0
	for _, e := range endpoints(t) {
		if e.public {
			continue
		}
		tried++
		if !e.needs.Own && (e.needs.Action != "") == (e.needs.Reads != "") {
			t.Errorf("%s does not say what it needs: set Needs of its wire.Operation", e.id)
			continue
		}
		kind, known := policy.KindOf(e.needs.Action)
		if e.needs.Action != "" && !known {
			t.Errorf("%s is an action that is not in the registry: %s", e.id, e.needs.Action)
		}
		before, err := m.app.Log.Head(ctx, ws)
		if err != nil {
			t.Fatal(err)
		}
		for name, authorization := range strangers {
			wanted, why := http.StatusUnauthorized, "unauthenticated"
			if strings.HasSuffix(name, "of a quarantined agent") {
				wanted, why = http.StatusForbidden, "agent_quarantined"
			}
			if status, code, raw := m.try(t, e, authorization); status != wanted || code != why {
				t.Errorf("%s with %s: %d %s, want %d %s", e.id, name, status, raw, wanted, why)
			}
		}
		if now, err := m.app.Log.Head(ctx, ws); err != nil || now != before {
			t.Errorf("%s: strangers left %d events (%v)", e.id, now-before, err)
		}
		m.otherWorkspace(t, e)
		status, _, raw := m.try(t, e, "Bearer "+m.keys["viewer"])
		// an answer for each file
		each := strings.Contains(raw, policy.ReasonRoleTooLow) && strings.Contains(raw, `"ok":false`) && !strings.Contains(raw, `"ok":true`)
		if may := viewerMay(e.needs); may == (status == http.StatusForbidden || status == http.StatusUnauthorized || each) {
			t.Errorf("%s of a viewer: %d %s, want it permitted: %t", e.id, status, raw, may)
		}
		if e.needs.Own {
			continue
		}
		status, code, raw := m.try(t, e, inert)
		if status != http.StatusForbidden || code != policy.ReasonScopeAction && code != policy.ReasonScopeData {
			t.Errorf("%s under a token without it: %d %s", e.id, status, raw)
		}
		status, code, raw = m.try(t, e, away)
		if scoped := code == policy.ReasonScopeRoom || code == policy.ReasonScopeRoomRequired; scoped == kind.Anywhere || scoped &&
			status != http.StatusForbidden {
			t.Errorf("%s under a token for another room: %d %s", e.id, status, raw)
		}
	}
	if tried < 60 {
		t.Errorf("%d operations were tried; the document is too small", tried)
	}
	m.everything(t)
}

// otherWorkspace tries an operation with the key of another workspace's owner: what lies here is not there, and no answer tells of it.
func (m *matrix) otherWorkspace(t *testing.T, e endpoint) {
	t.Helper()
	status, code, raw := m.try(t, e, "Bearer "+m.keys["other"])
	named := strings.Contains(strings.ReplaceAll(e.path, "{room_id}", ""), "_id}")
	if named && status != http.StatusNotFound && (e.method != http.MethodDelete || status != http.StatusNoContent) {
		t.Errorf("%s with a key of another workspace: %d %s, want 404", e.id, status, raw)
	}
	if status == http.StatusUnauthorized || code == "internal_error" {
		t.Errorf("%s with a key of another workspace: %d %s", e.id, status, raw)
	}
	path, sent := m.request(t, e)
	for name, thing := range m.things {
		if len(thing) > 20 && !strings.Contains(path, thing) && name != "room_id" && strings.Contains(raw, thing) && !strings.Contains(sent.body,
			thing) {
			t.Errorf("%s tells another workspace of %s", e.id, thing)
		}
	}
}

// everything tries every operation under a token that permits all: none is refused because of it, so that the refusals before were not
// for the token as such.
func (m *matrix) everything(t *testing.T) {
	t.Helper()
	all, _ := m.bearer(t, m.app.Owner, token.All())
	for _, e := range endpoints(t) {
		if e.public {
			continue
		}
		status, code, raw := m.try(t, e, all)
		scoped := strings.HasPrefix(code, "capability_")
		if unbounded := e.id == "issue-key" || e.id == "set-passphrase"; status == http.StatusUnauthorized || status >= 500 ||
			scoped != unbounded {
			t.Errorf("%s under a token that permits everything: %d %s", e.id, status, raw)
		}
	}
}
