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
	"agentbox/internal/domain/mcp"
	"agentbox/internal/surface/httpapi/wire"
	"agentbox/internal/testkit"
)

// sent is a request to an operation, and one to the same endpoint that asks for something else.
type sent struct {
	path, body, other string
	media             string // JSON unless named
	status            int
	keyless           bool // a key is refused
	whileRuns         bool // what is made ends with the daemon, and its secret is told again until then
	harmless          bool // nothing is done, so that nothing is recorded and another body is another question
}

// ownStep are the step of an explanation and the hash of the action that holds it.
var ownStep = regexp.MustCompile(`step_[0-9A-Z]{26}|sha256:[0-9a-f]{64}`)

// shownOnce are secrets, which are in the first answer only.
var shownOnce = regexp.MustCompile(`,"(?:bearer|key|token|access_token|refresh_token)":"[a-z]+_[^"]*\.[^"]*"`)

// remained is what an answer to a redaction says of content.
var remained = regexp.MustCompile(`,"contents":\{[^}]*\}`)

// documented returns the operations of the committed API document: method and path by id.
func documented(t *testing.T) map[string][2]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "api", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	found := map[string][2]string{}
	for path, methods := range document.Paths {
		for method, op := range methods {
			found[op.ID] = [2]string{strings.ToUpper(method), path}
		}
	}
	return found
}

// modelSample is a model that plays a cassette which nobody has.
const modelSample = `{"provider":"scripted","base_url":"none","model":"one"}`

// serverSample is an MCP server that nobody has, and trustSample releases the tool of offers.
const (
	serverSample = `{"command":"serve"}`
	loginSample  = `{"space_id":"spc_01M7YNAYM0SMK245AEDNVB5CNW","redirect_uri":"http://127.0.0.1:41817/callback"}`
	trustSample  = `{"tools":[{"tool":"forecast","tool_sha256":"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}]}`
)

// blueprintSample is the text of a blueprint as a text of JSON.
const blueprintSample = `"api_version: 1\nname: weather-report\nadapter: {kind: internal}\nmodels: {default: glm}\n# note"`

// samples returns a request for each POST of the API document, and for other changes that take a body. It makes what they are about.
func samples(t *testing.T, d *daemon) map[string]sent {
	t.Helper()
	space := func() string {
		var made struct {
			ID string `json:"id"`
		}
		d.succeed(t, "POST", "/v1/spaces", `{"runtime":"heavy"}`, &made)
		return "/v1/spaces/" + made.ID
	}
	light := func() string { return "/v1/spaces/" + d.must(t, "POST", "/v1/spaces", `{}`, "id") }
	asking := func() (in, run, approval string) { // a run that waits for a person
		in = space()
		var message struct {
			Run string `json:"runId"`
		}
		d.succeed(t, "POST", in+"/runs",
			`{"protocolVersion":"1.0","operations":[{"type":"shell","id":"clean","command":"rm -rf x"},{"type":"message","content":"then"}]}`,
			&message)
		var open struct {
			Approvals []struct {
				ID string `json:"approval_id"`
			} `json:"approvals"`
		}
		d.succeed(t, "GET", "/v1/approvals?run_id="+message.Run, "", &open)
		return in, in + "/runs/" + message.Run, open.Approvals[0].ID
	}
	var beside struct {
		Run string `json:"runId"`
	}
	d.succeed(t, "POST", space()+"/runs", `{"protocolVersion":"1.0","background":true,"operations":[{"type":"shell","command":"cat","stdin":`+
		`true}]}`, &beside)
	_, resumed, _ := asking()
	_, cancelled, _ := asking()
	_, _, decided := asking()
	part := func(name, text string) string {
		return "--cut\r\nContent-Disposition: form-data; name=\"f\"; filename=\"" + name + "\"\r\n\r\n" + text + "\r\n"
	}
	written := space()
	var wrote struct {
		Run string `json:"runId"`
	}
	d.succeed(t, "POST", written+"/runs", `{"protocolVersion":"1.0","operations":[{"type":"createFile","path":"f","content":"x"}]}`, &wrote)
	var forgotten struct {
		Run string `json:"runId"`
	}
	d.succeed(t, "POST", space()+"/runs", `{"protocolVersion":"1.0","operations":[{"type":"message","content":"private"}]}`, &forgotten)
	incident := func() string {
		var opened struct {
			ID string `json:"incident_id"`
		}
		d.succeed(t, "POST", "/v1/incidents", `{"title":"it broke"}`, &opened)
		return "/v1/incidents/" + opened.ID + "/rca"
	}
	learned := strings.Replace(incident(), "/rca", "/learning", 1)
	closed := incident()
	d.succeed(t, "POST", closed, `{"summary":"it was old"}`, nil)
	d.succeed(t, "POST", strings.Replace(closed, "/rca", "/learning", 1), `{"note":"replace what is old"}`, nil)
	closed = strings.Replace(closed, "/rca", "/close", 1)
	d.succeed(t, "POST", "/v1/resources/labels", `{"resource_type":"person","resource_id":"b","label":"confidential"}`, nil)
	order := `{"room_id":"room_00000000000000000000000000","title":"for an engine","input":{"n":1}}`
	ordered := func() string {
		var made struct {
			Run string `json:"run_id"`
		}
		d.succeed(t, "POST", "/v1/runs", order, &made)
		return "/v1/runs/" + made.Run
	}
	claimed := func() (run, token string) {
		ordered()
		var got struct {
			Token string `json:"claim_token"`
			Run   struct {
				ID string `json:"run_id"`
			} `json:"run"`
		}
		d.succeed(t, "POST", "/v1/runs/claim", `{}`, &got)
		return "/v1/runs/" + got.Run.ID, got.Token
	}
	d.succeed(t, "PATCH", "/v1/workspaces/ws_dev", `{"max_concurrent_tasks":100}`, nil) // many of the samples run at the same time
	for _, ws := range []string{"ws_over", "ws_back", "ws_wide"} {
		d.succeed(t, "POST", "/v1/workspaces", `{"workspace_id":"`+ws+`"}`, nil)
	}
	d.succeed(t, "POST", "/v1/workspaces/ws_back/archive", `{}`, nil)
	paused := func() string {
		s := space()
		d.succeed(t, "POST", s+"/pause", `{}`, nil)
		return s
	}
	thread := func() string {
		return "/v1/threads/" + d.must(t, "POST", "/v1/rooms/"+string(id.DefaultRoom)+"/threads", `{"title":"talk"}`, "thread_id") + "/messages"
	}
	talk := thread()
	talked := strings.TrimSuffix(talk, "/messages")
	operation := `{"operation":{"type":"shell","command":"ls"}%s}`
	table := map[string]sent{
		"create-space":  {path: "/v1/spaces", body: `{"name":"one"}`, other: `{"name":"two"}`, status: 201},
		"extend-space":  {path: space() + "/extend", body: `{"duration_seconds":7200}`, other: `{"duration_seconds":3600}`, status: 200},
		"promote-space": {path: light() + "/promote", body: `{"reason":"a compiler"}`, other: `{"reason":"another"}`, status: 200},
		"preview-port": {path: space() + "/ports/8080/preview", body: `{}`, other: `{"ttl_seconds":60}`, status: 200,
			whileRuns: true},
		"pause-space":      {path: space() + "/pause", body: `{"reason":"a while"}`, other: `{"reason":"another"}`, status: 200},
		"resume-space":     {path: paused() + "/resume", body: `{}`, other: `{"ttl_seconds":60}`, status: 200},
		"set-space-policy": {path: space() + "/policy", body: `{"policy":"restrictive"}`, other: `{"policy":"permissive"}`, status: 200},
		"route-command":    {path: written + "/route", body: `{"command":"gcc x.c","cwd":"."}`, status: 200, harmless: true},
		"rewind-space":     {path: written + "/rewind", body: `{"to":"` + wrote.Run + `"}`, other: `{"to":"00000000"}`, status: 200},
		"fork-space":       {path: written + "/fork", body: `{"name":"fork"}`, other: `{"name":"other fork"}`, status: 201},
		"create-run": {
			path: space() + "/runs", body: `{"protocolVersion":"1.0","artifacts":["log"],"operations":[` +
				`{"type":"shell","command":"echo once >> log; cat log"}]}`,
			other: `{"protocolVersion":"1.0","operations":[{"type":"message","content":"other"}]}`, status: 201,
		},
		"run-cell": {
			path: light() + "/contexts/c/cells", body: `{"language":"python","code":"x = 1"}`, other: `{"language":"python","code":"x = 2"}`,
			status: 201,
		},
		"resume-run": {
			path: resumed + "/resume", body: `{"approval":{"operationId":"clean","decision":"approved"}}`,
			other: `{"approval":{"operationId":"clean","decision":"denied"}}`, status: 201,
		},
		"cancel-run": {path: cancelled + "/cancel", body: `{"reason":"enough"}`, other: `{"reason":"other"}`, status: 202},
		"decide-approval": {path: "/v1/approvals/" + decided + "/decide", body: `{"decision":"approve"}`, other: `{"decision":"deny"}`,
			status: 200},
		"upload-files": {
			path: space() + "/files?path=in", body: part("a.txt", "one") + part("b/c.txt", "two") + "--cut--\r\n",
			media: "multipart/form-data; boundary=cut",
			other: part("a.txt", "one") + part("b/c.txt", "three") + "--cut--\r\n", status: 201,
		},
		"create-workspace": {path: "/v1/workspaces", body: `{"workspace_id":"ws_made","kind":"community"}`,
			other: `{"workspace_id":"ws_made","kind":"private"}`, status: 201},
		"archive-workspace":   {path: "/v1/workspaces/ws_over/archive", body: `{"reason":"over"}`, other: `{"reason":"really"}`, status: 200},
		"unarchive-workspace": {path: "/v1/workspaces/ws_back/unarchive", body: `{"reason":"back"}`, other: `{"reason":"really"}`, status: 200},
		"update-workspace": {path: "/v1/workspaces/ws_wide", body: `{"max_concurrent_tasks":7}`, other: `{"max_concurrent_tasks":8}`,
			status: 200},
		"create-room": {path: "/v1/rooms", body: `{"title":"lab"}`, other: `{"title":"kitchen"}`, status: 201},
		"create-thread": {path: "/v1/rooms/" + string(id.DefaultRoom) + "/threads", body: `{"title":"one"}`, other: `{"title":"two"}`,
			status: 201},
		"create-message": {path: talk, body: `{"content_md":"once"}`, other: `{"content_md":"other"}`, status: 201},
		"sweep-content":  {path: "/v1/content/sweep", body: "", other: "", status: 200},
		"redact-events": {
			path: "/v1/audit/redactions", body: `{"run_id":"` + forgotten.Run + `","reason":"a mistake"}`,
			other: `{"run_id":"` + forgotten.Run + `","reason":"another one"}`, status: 200,
		},
		"give-input": {path: "/v1/runs/" + beside.Run + "/input", body: `{"stdin":"aGVsbG8K"}`, other: `{"signal":"SIGTERM"}`, status: 200},
		"retain-run": {path: "/v1/runs/" + wrote.Run + "/retention", body: `{"retention":"30d"}`, other: `{"retention":"none"}`,
			status: 200},
		"validate-policy": {path: "/v1/policies/validate", body: fmt.Sprintf(operation, ""), other: fmt.Sprintf(operation,
			`,"policy":"permissive"`), status: 200, harmless: true},
		"explain-policy": {path: "/v1/policies/explain", body: fmt.Sprintf(operation, ""), other: fmt.Sprintf(operation,
			`,"policy":"permissive"`), status: 200, harmless: true},
		"evaluate-policy": {path: "/v1/policy/evaluate",
			body:  `{"action":"email.send","zone":"high_stakes","target":"ada@example.com","request":{"n":1}}`,
			other: `{"action":"email.send","zone":"high_stakes","target":"ada@example.com","request":{"n":2}}`, status: 200},
		"request-approval": {path: "/v1/approvals", body: `{"action":"email.send","request":{"n":1}}`,
			other: `{"action":"email.send","request":{"n":2}}`, status: 201},
		"withdraw-approval": {path: "/v1/approvals/" + d.request(t, "", `{"action":"email.send","request":{"n":9}}`) + "/withdraw",
			body: `{"reason":"done"}`, status: 200, harmless: true},
		"open-incident":     {path: "/v1/incidents", body: `{"title":"one"}`, other: `{"title":"two"}`, status: 201},
		"analyse-incident":  {path: incident(), body: `{"summary":"one"}`, other: `{"summary":"two"}`, status: 200},
		"learn-of-incident": {path: learned, body: `{"note":"one"}`, other: `{"note":"two"}`, status: 200},
		"close-incident":    {path: closed, body: `{"reason":"one"}`, other: `{"reason":"two"}`, status: 200},
		"label-resource": {path: "/v1/resources/labels", body: `{"resource_type":"person","resource_id":"a","label":"confidential"}`,
			other: `{"resource_type":"person","resource_id":"a","label":"sensitive_pii"}`, status: 201},
		"request-data-access": {path: "/v1/data/access/requests", body: `{"resource_type":"person","resource_id":"b","action":"read"}`,
			other: `{"resource_type":"person","resource_id":"b","action":"write"}`, status: 200},
		// Not a POST, but a change of which a lost answer would leave one in doubt as well.
		"update-room": {path: "/v1/rooms/" + string(id.DefaultRoom), body: `{"topic":"one"}`, other: `{"topic":"other"}`, status: 200},
		"update-room-defaults": {path: "/v1/room-defaults", body: `{"context":{"system_prompt":"be brief"}}`,
			other: `{"context":{"system_prompt":"be long"}}`, status: 200},
		"update-thread": {path: talked, body: `{"status":"closed"}`, other: `{"status":"open"}`, status: 200},
		"update-space":  {path: space(), body: `{"name":"renamed"}`, other: `{"name":"other"}`, status: 200},
	}
	declared := `{"description":"%s","side_effect":"network","target_kinds":["host"]}`
	table["put-action-type"] = sent{path: "/v1/action-types/deploy.once", body: fmt.Sprintf(declared, "one"), other: fmt.Sprintf(declared,
		"two"), status: 200}
	table["put-blueprint"] = sent{path: "/v1/blueprints/weather-report", body: `{"text":` + blueprintSample + `}`,
		other: `{"text":` + strings.Replace(blueprintSample, "glm", "other", 1) + `}`, status: 200}
	d.succeed(t, "PUT", "/v1/models/played", modelSample, nil)
	table["put-model"] = sent{path: "/v1/models/glm", body: modelSample, other: strings.Replace(modelSample, "one", "other", 1), status: 200}
	table["put-model-settings"] = sent{path: "/v1/model-settings", body: `{"routes":[],"budgets":[]}`,
		other: `{"routes":[],"budgets":[{"scope":"workspace","tokens_per_day":1}]}`, status: 200}
	d.succeed(t, "PUT", "/v1/mcp-servers/weather", serverSample, nil)
	table["put-mcp-server"] = sent{path: "/v1/mcp-servers/github", body: serverSample,
		other: strings.Replace(serverSample, "serve", "other", 1), status: 200}
	table["look-at-mcp-server"] = sent{path: "/v1/mcp-servers/nobody/look", body: `{"space_id":"spc_none"}`, keyless: true, status: 404}
	table["log-in-to-mcp-server"] = sent{path: "/v1/mcp-servers/nobody/login", body: loginSample, keyless: true, status: 404}
	table["finish-mcp-login"] = sent{path: "/v1/mcp-servers/nobody/login/finish", body: `{"code":"c","state":"s"}`, keyless: true, status: 404}
	d.succeed(t, "PUT", "/v1/mcp-servers/notes", serverSample, nil)
	d.loggedIn(t, "notes")
	table["log-out-of-mcp-server"] = sent{path: "/v1/mcp-servers/notes/login", status: 204}
	d.offers(t, "weather")
	table["trust-mcp-tools"] = sent{path: "/v1/mcp-servers/weather/trust", body: trustSample,
		other: strings.Replace(trustSample, "forecast", "other", 1), status: 200}
	table["put-model-key"] = sent{path: "/v1/model-keys/zai", body: `{"value":"a-key"}`, keyless: true}
	table["test-model"] = sent{path: "/v1/models/played/test", keyless: true}
	remote := `"api_version: 1\nname: remote\nadapter: {kind: remote}\n# note"` // which refers to no model
	named := strings.TrimPrefix(space(), "/v1/spaces/")
	table["run-blueprint"] = sent{path: d.runner(t) + "/runs", body: `{"task":"report","space_id":"` + named + `"}`, other: `{"task":"other"}`, status: 201}
	table["check-blueprint"] = sent{path: "/v1/blueprints/check", body: `{"text":` + remote + `}`,
		other: `{"text":"a"}`, status: 200, harmless: true}
	table["lock-blueprint"] = sent{path: "/v1/blueprints/lock", body: `{"text":` + remote + `}`,
		other: `{"text":` + strings.Replace(remote, "remote", "other", 1) + `}`, status: 200, harmless: true}
	table["compare-blueprints"] = sent{path: "/v1/blueprints/compare", body: `{"from":` + remote + `,"to":` + remote + `}`,
		other: `{"from":` + remote + `,"to":` + strings.Replace(remote, "remote", "other", 1) + `}`, status: 200, harmless: true}
	table["create-engine-run"] = sent{path: "/v1/runs", body: order, other: `{"room_id":"room_00000000000000000000000000","title":"other"}`,
		status: 201}
	table["claim-run"] = sent{path: "/v1/runs/claim", body: `{}`, other: `{"room_id":"room_00000000000000000000000000"}`, status: 200}
	for op, way := range map[string]string{"renew-claim": "lease/heartbeat", "release-claim": "lease/release", "complete-run": "complete",
		"fail-run": "fail"} {
		run, token := claimed()
		table[op] = sent{path: run + "/" + way, body: `{"claim_token":"` + token + `"}`, other: `{"claim_token":"clm_OTHER"}`, status: 200}
	}
	working, token := claimed()
	var unit struct {
		Step string `json:"step_id"`
	}
	d.succeed(t, "POST", working+"/steps", `{"kind":"work","claim_token":"`+token+`"}`, &unit)
	call := func() string {
		var made struct {
			Call string `json:"tool_call_id"`
		}
		d.succeed(t, "POST", "/v1/steps/"+unit.Step+"/toolcalls", `{"tool_name":"look","claim_token":"`+token+`"}`, &made)
		return "/v1/toolcalls/" + made.Call
	}
	held := func(more string) string { return `{"claim_token":"` + token + `"` + more + `}` }
	table["create-step"] = sent{path: working + "/steps", body: held(`,"kind":"work"`), other: held(`,"kind":"play"`), status: 201}
	table["create-tool-call"] = sent{path: "/v1/steps/" + unit.Step + "/toolcalls", body: held(`,"tool_name":"look"`),
		other: held(`,"tool_name":"leap"`), status: 201}
	table["succeed-tool-call"] = sent{path: call() + "/succeed", body: held(`,"output":1`), other: held(`,"output":2`), status: 200}
	table["fail-tool-call"] = sent{path: call() + "/fail", body: held(`,"message":"no"`), other: held(`,"message":"yes"`), status: 200}
	table["create-artifact"] = sent{path: "/v1/steps/" + unit.Step + "/artifacts", body: held(`,"kind":"note"`),
		other: held(`,"kind":"other"`), status: 201}
	ordered() // for the next claim
	table["finalize-evidence"] = sent{path: "/v1/runs/" + wrote.Run + "/evidence/finalize", status: 200}
	table["start-run"] = sent{path: ordered() + "/start", body: `{}`, other: `{"claim_token":"clm_OTHER"}`, status: 200}
	table["cancel-engine-run"] = sent{path: ordered() + "/cancel", body: `{"reason":"enough"}`, other: `{"reason":"other"}`, status: 202}
	var granted struct {
		Token string `json:"token_id"`
	}
	grant := `{"issued_to_principal_id":"` + string(d.app.Owner) + `","scopes":{"rooms":["%s"],"action_types":["run.start"]}}`
	d.succeed(t, "POST", "/v1/capabilities/grant", fmt.Sprintf(grant, "*"), &granted)
	table["grant-capability"] = sent{path: "/v1/capabilities/grant", body: fmt.Sprintf(grant, "one"), other: fmt.Sprintf(grant, "two"),
		status: 201}
	table["revoke-capability"] = sent{
		path: "/v1/capabilities/revoke", body: `{"token_id":"` + granted.Token + `","reason":"enough"}`, other: `{"token_id":"` + granted.Token +
			`"}`, status: 200,
	}
	var worker, stray, person struct {
		ID string `json:"principal_id"`
	}
	d.succeed(t, "POST", "/v1/agents", `{"display_name":"free"}`, &worker)
	d.succeed(t, "POST", "/v1/agents", `{"display_name":"stray"}`, &stray)
	d.succeed(t, "POST", "/v1/agents/"+stray.ID+"/quarantine", "", nil)
	d.succeed(t, "POST", "/v1/principals", `{"kind":"user","role":"viewer","display_name":"Vera"}`, &person)
	table["register-agent"] = sent{path: "/v1/agents", body: `{"display_name":"one"}`, other: `{"display_name":"two"}`, status: 201}
	table["quarantine-agent"] = sent{path: "/v1/agents/" + worker.ID + "/quarantine", body: `{"reason":"odd"}`, other: `{}`, status: 200}
	table["unquarantine-agent"] = sent{path: "/v1/agents/" + stray.ID + "/unquarantine", body: `{"reason":"fine"}`, other: `{}`, status: 200}
	table["add-principal"] = sent{
		path: "/v1/principals", body: `{"kind":"user","role":"member","display_name":"Mia"}`, other: `{"kind":"service","display_name":"mailer"}`,
		status: 201,
	}
	table["change-role"] = sent{path: "/v1/principals/" + person.ID + "/role", body: `{"role":"member"}`, other: `{"role":"operator"}`,
		status: 200}
	table["ensure-principal"] = sent{
		path: "/v1/principals/legacy/ensure", body: `{"actor_type":"service","actor_id":"cron"}`,
		other: `{"actor_type":"agent","actor_id":"cron"}`, status: 200,
	}
	table["issue-key"] = sent{path: "/v1/keys", body: `{"name":"one"}`, other: `{"name":"two"}`, status: 201}
	var engine, idle struct {
		ID string `json:"engine_id"`
	}
	var issued struct {
		ID string `json:"token_id"`
	}
	d.succeed(t, "POST", "/v1/engines/register", `{"display_name":"mill"}`, &engine)
	d.succeed(t, "POST", "/v1/engines/register", `{"display_name":"idle"}`, &idle)
	d.succeed(t, "POST", "/v1/engines/"+engine.ID+"/tokens/issue", ``, &issued)
	table["register-engine"] = sent{path: "/v1/engines/register", body: `{"display_name":"one"}`, other: `{"display_name":"two"}`, status: 201}
	table["deactivate-engine"] = sent{path: "/v1/engines/" + idle.ID + "/deactivate", body: `{"reason":"gone"}`, other: `{}`, status: 200}
	table["issue-engine-token"] = sent{path: "/v1/engines/" + engine.ID + "/tokens/issue", body: `{}`,
		other: `{"scopes":{"rooms":["*"],"action_types":["run.claim"]}}`, status: 201}
	table["revoke-engine-token"] = sent{path: "/v1/engines/" + engine.ID + "/tokens/" + issued.ID + "/revoke", body: `{"reason":"lost"}`,
		other: `{}`, status: 200}
	table["bootstrap-owner"] = sent{path: "/v1/auth/bootstrap-owner", body: `{"display_name":"Olga","passphrase":"correct horse battery"}`,
		keyless: true}
	table["login"] = sent{path: "/v1/auth/login", body: `{"passphrase":"correct horse battery"}`, keyless: true}
	table["set-passphrase"] = sent{path: "/v1/auth/passphrase", body: `{"passphrase":"correct horse battery"}`, keyless: true}
	table["refresh"] = sent{path: "/v1/auth/refresh", body: `{"refresh_token":"none"}`, keyless: true}
	table["logout"] = sent{path: "/v1/auth/logout", status: 200, harmless: true}
	_, transcript := d.ask(t, "", "GET", "/v1/runs/"+wrote.Run+"/transcript?redact=none", "")
	_, other := d.ask(t, "", "GET", "/v1/runs/"+wrote.Run+"/transcript?redact=output", "")
	table["import-run"] = sent{path: "/v1/runs/import", body: string(transcript), other: string(other), media: "application/x-ndjson",
		status: 201}
	table["import-workspace"] = sent{
		path: "/v1/workspaces/import", body: parcel(t, "ws_parcel", 3), other: parcel(t, "ws_another", 1), media: "application/gzip", status: 201,
	}
	return table
}

// TestEveryPostIsDoneOnceOverARestart sends each POST of the API document four times under one key: twice to a daemon, then with another
// body, then to the daemon that comes after it. The effect happens once, and the answer is the same each time.
func TestEveryPostIsDoneOnceOverARestart(t *testing.T) {
	c := app.Default(t.TempDir())
	c.Rates, c.Light = wire.DefaultRates(), &testkit.Light{}
	c.Rates.Spaces, c.Rates.Runs = 1000, 1000
	d, stop := serveDaemon(t, c)
	table := samples(t, d)
	known := documented(t)
	for op, where := range known {
		if _, ok := table[op]; where[0] == "POST" && !ok {
			t.Errorf("%s is not in the table: say what it is sent", op)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	ask := func(op string, body string) (int, string, string) {
		s := table[op]
		media := s.media
		if media == "" {
			media = "application/json"
		}
		return d.keyed(t, known[op][0], s.path, media, "key of "+op, body)
	}
	first := map[string]string{}
	for op, s := range table {
		if !s.keyless {
			continue
		}
		if status, _, got := ask(op, s.body); status != 400 || !strings.Contains(got, `"idempotency_key_not_possible"`) {
			t.Errorf("%s with a key: %d %s", op, status, got)
		}
		delete(table, op)
	}
	ops := slices.Sorted(maps.Keys(table))
	d.decide(t, d.request(t, "", table["evaluate-policy"].body), `{"decision":"approve"}`) // a refusal would not use up its key
	for _, op := range ops {
		s := table[op]
		status, _, got := ask(op, s.body)
		if status != s.status {
			t.Fatalf("%s: %d %s", op, status, got)
		}
		first[op] = got
	}
	// Others change meanwhile what was asked about: an answer of then is not one of now.
	d.succeed(t, "PATCH", table["extend-space"].path[:len("/v1/spaces/")+len("spc_")+26], `{"name":"later"}`, nil)
	d.succeed(t, "PATCH", table["update-space"].path, `{"description":"later"}`, nil)
	d.succeed(t, "PATCH", table["update-room"].path, `{"topic":"later"}`, nil)
	d.succeed(t, "PATCH", table["update-room-defaults"].path, `{"context":{"memory_summary":"later"}}`, nil)
	d.succeed(t, "PATCH", table["update-thread"].path, `{"title":"later"}`, nil)
	d.succeed(t, "PUT", table["put-action-type"].path, `{"description":"later","side_effect":"process"}`, nil)
	d.succeed(t, "POST", table["retain-run"].path, `{"retention":"31d"}`, nil)
	d.succeed(t, "POST", table["analyse-incident"].path, `{"summary":"later"}`, nil)
	d.succeed(t, "POST", table["learn-of-incident"].path, `{"note":"later"}`, nil)
	again := func(when string) {
		for _, op := range ops {
			s := table[op]
			head, err := d.app.Log.Head(t.Context(), id.DefaultWorkspace)
			if err != nil {
				t.Fatal(err)
			}
			status, replayed, got := ask(op, s.body)
			want := first[op]
			if s.harmless { // it is decided anew, about a step of its own
				got, want = ownStep.ReplaceAllString(got, ""), ownStep.ReplaceAllString(want, "")
			}
			if s.whileRuns && when == "after a restart" {
				if status != 409 || !strings.Contains(got, `"space_not_running"`) {
					t.Errorf("%s %s: %d %s", op, when, status, got)
				}
				continue
			}
			if !s.whileRuns {
				want = shownOnce.ReplaceAllString(want, "")
			}
			if op == "redact-events" { // what remained was told once; it may have changed since
				got, want = remained.ReplaceAllString(got, ""), remained.ReplaceAllString(want, "")
			}
			if status != s.status || got != want {
				t.Errorf("%s %s: got %d replayed %q\n%s\nwant %d\n%s", op, when, status, replayed, got, s.status, want)
			}
			if s.other == "" {
				continue // it takes no body
			}
			if status, _, got := ask(op, s.other); s.harmless != (status == 200) || !s.harmless && (status != 409 || !strings.Contains(got,
				`"idempotency_conflict"`)) {
				t.Errorf("%s %s with another body: %d %s", op, when, status, got)
			}
			if now, err := d.app.Log.Head(t.Context(), id.DefaultWorkspace); err != nil || now != head {
				t.Errorf("%s %s: a repeat recorded %d events (%v)", op, when, now-head, err)
			}
		}
	}
	// The runs that were decided and begun go on by themselves: their records are not effects of a repeat.
	var began struct {
		ID string `json:"run_id"`
	}
	if err := json.Unmarshal([]byte(first["run-blueprint"]), &began); err != nil {
		t.Fatal(err)
	}
	if _, err := d.app.Runs.History.Wait(t.Context(), id.DefaultWorkspace, id.Run(began.ID)); err != nil {
		t.Fatal(err)
	}
	run := d.field(t, strings.TrimSuffix(table["decide-approval"].path, "/decide"), "run_id")
	if _, err := d.app.Runs.History.Wait(t.Context(), id.DefaultWorkspace, id.Run(run)); err != nil {
		t.Fatal(err)
	}
	again("again")
	stop()
	d, stop = serveDaemon(t, c)
	defer stop()
	again("after a restart")
}

// TestALiftThatIsSentAgainLiftsNothingThrownSince is about the one change whose late repeat would be dangerous.
func TestALiftThatIsSentAgainLiftsNothingThrownSince(t *testing.T) {
	d := startDaemon(t)
	lift := func() string {
		_, _, got := d.keyed(t, "PUT", "/v1/kill-switch", "application/json", "lift", `{"on":false}`)
		return got
	}
	d.succeed(t, "PUT", "/v1/kill-switch", `{"on":true}`, nil)
	if got := lift(); !strings.Contains(got, `"on":false`) {
		t.Fatalf("the first lift: %s", got)
	}
	for range 2 { // a throw is never taken for a repeat
		if status, _, got := d.keyed(t, "PUT", "/v1/kill-switch", "application/json", "throw", `{"on":true}`); status != 200 ||
			!strings.Contains(got, `"on":true`) {
			t.Fatalf("throw: %d %s", status, got)
		}
		if got := lift(); !strings.Contains(got, `"on":true`) {
			t.Errorf("the same lift again: %s", got)
		}
	}
}

// keyed sends a request with an idempotency key and returns the status, whether the answer says that it is a repetition, and the body.
func (d *daemon) keyed(t *testing.T, method, path, media, key, body string) (int, string, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, d.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.keys[""])
	r.Header.Set("Content-Type", media)
	if key != "" {
		r.Header.Set("Idempotency-Key", strings.ReplaceAll(key, " ", "_"))
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Idempotency-Replayed"), string(raw)
}

// offers has an MCP server offer a tool that nobody trusts yet.
func (d *daemon) offers(t *testing.T, server string) {
	t.Helper()
	listed := mcp.Listed{Name: server, Tools: []mcp.Seen{{Tool: mcp.Tool{Name: "forecast", Input: json.RawMessage(`{"type":"object"}`)},
		Hash: event.DigestOf([]byte("test"))}}}
	draft := event.New(mcp.EventListed, event.Origin{Principal: d.app.Owner}, id.DefaultWorkspace, "", listed).About(mcp.Entity, server)
	if _, err := d.app.Log.Append(t.Context(), event.Batch{Workspace: id.DefaultWorkspace, Drafts: []event.Draft{draft}}); err != nil {
		t.Fatal(err)
	}
}

// loggedIn records that a person has logged in to an MCP server.
func (d *daemon) loggedIn(t *testing.T, server string) {
	t.Helper()
	draft := event.New(mcp.EventLoggedIn, event.Origin{Principal: d.app.Owner}, id.DefaultWorkspace, "",
		mcp.LoggedIn{Name: server, Client: "c"}).About(mcp.Entity, server)
	if _, err := d.app.Log.Append(t.Context(), event.Batch{Workspace: id.DefaultWorkspace, Drafts: []event.Draft{draft}}); err != nil {
		t.Fatal(err)
	}
}

// runner registers a blueprint with its pins, whose model plays a cassette that is not there, and returns its path.
func (d *daemon) runner(t *testing.T) string {
	t.Helper()
	d.succeed(t, "PUT", "/v1/models/played", modelSample, nil)
	var locked struct {
		Text string `json:"text"`
	}
	const text = `{"text":"api_version: 1\nname: runner\nadapter: {kind: internal}\nmodels: {default: played}\n"}`
	d.succeed(t, "POST", "/v1/blueprints/lock", text, &locked)
	raw, err := json.Marshal(locked)
	if err != nil {
		t.Fatal(err)
	}
	d.succeed(t, "PUT", "/v1/blueprints/runner", string(raw), nil)
	return "/v1/blueprints/runner"
}

// succeed sends a request that has to succeed and reads its answer.
func (d *daemon) succeed(t *testing.T, method, path, body string, out any) {
	t.Helper()
	status, _, got := d.keyed(t, method, path, "application/json", "", body)
	if status >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, status, got)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(got), out); err != nil {
			t.Fatal(err)
		}
	}
}

// field reads one field of an answer.
func (d *daemon) field(t *testing.T, path, name string) string {
	t.Helper()
	var all map[string]any
	d.succeed(t, "GET", path, "", &all)
	return fmt.Sprint(all[name])
}
