package httpapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/audit"
	"agentbox/internal/surface/httpapi/wire"
	"agentbox/internal/testkit"
)

// schema is that of a JSON body, as far as it is looked at.
type schema struct {
	Ref        string            `json:"$ref"`
	Type       any               `json:"type"`
	Enum       []any             `json:"enum"`
	Format     string            `json:"format"`
	Encoding   string            `json:"contentEncoding"`
	Properties map[string]schema `json:"properties"`
}

// freeTexts returns the members of the JSON body of each changing operation that may hold any text or any value.
func freeTexts(t *testing.T) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "api", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]struct {
			ID   string `json:"operationId"`
			Body struct {
				Content map[string]struct{ Schema schema }
			} `json:"requestBody"`
		} `json:"paths"`
		Components struct{ Schemas map[string]schema }
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, methods := range document.Paths {
		for method, op := range methods {
			if method == "get" {
				continue
			}
			s := op.Body.Content["application/json"].Schema
			if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
				s = document.Components.Schemas[name]
			}
			for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
				p := s.Properties[name]
				text := p.Type == "string" && len(p.Enum) == 0 && p.Format == "" && p.Encoding == ""
				if any := p.Ref == "" && p.Type == nil; (text || any) && !strings.HasPrefix(name, "$") {
					found[op.ID] = append(found[op.ID], name)
				}
			}
			if _, ok := found[op.ID]; !ok && op.Body.Content["application/json"].Schema.Ref != "" {
				found[op.ID] = nil
			}
		}
	}
	return found
}

// withSecrets returns bodies that are made of one that is good, with secrets in them: in all its free texts, in each of them, and in each
// text that it has.
func withSecrets(t *testing.T, good string, free []string, secret string) (bodies []string) {
	t.Helper()
	var object map[string]any
	if good == "" {
		object = map[string]any{}
	} else if err := json.Unmarshal([]byte(good), &object); err != nil {
		return nil // it is not JSON
	}
	text := "a text with " + secret + " in it"
	write := func(names ...string) {
		changed := maps.Clone(object)
		for _, name := range names {
			switch was := object[name].(type) {
			case nil:
				changed[name] = text
			case string:
				changed[name] = was + " " + secret
			}
		}
		raw, err := json.Marshal(changed)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), secret) {
			bodies = append(bodies, string(raw))
		}
	}
	var words []string // those that name nothing
	for _, name := range free {
		if !strings.HasSuffix(name, "_id") && !strings.HasSuffix(name, "token") && !strings.HasSuffix(name, "sha256") {
			words = append(words, name)
		}
	}
	write(words...)
	for _, name := range free {
		write(name)
	}
	var each func(v any, put func(any))
	each = func(v any, put func(any)) {
		switch v := v.(type) {
		case string:
			put(v + " " + secret)
			raw, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			bodies = append(bodies, string(raw))
			put(v)
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				each(v[name], func(x any) { v[name] = x })
			}
		case []any:
			for i := range v {
				each(v[i], func(x any) { v[i] = x })
			}
		}
	}
	each(object, func(any) {})
	return bodies
}

// countsByItsBytes are the members of events in which a secret is marked and not taken out.
var countsByItsBytes = map[string][]string{
	policy.ApprovalRequestedType: {"action", "title", "request", "question"}, policy.BundlePinnedType: {"bundle"}, space.EventCreated: {"env"},
	space.EventUpdated: {"env"},
	run.EventSucceeded: {"result"}, run.EventErred: {"result"}, run.EventUnknown: {"result"},
}

// takesNoText are the operations that take a JSON body and no text of anybody that is recorded: they take names that are checked, decide
// without a record, or, where a name is the key of a document, refuse one that is a secret.
var takesNoText = strings.Fields(
	`bootstrap-owner change-role check-blueprint claim-run compare-blueprints explain-policy extend-space finish-mcp-login give-input
	grant-capability issue-engine-token label-resource lock-blueprint log-in-to-mcp-server login look-at-mcp-server preview-port
	put-model-key put-read-cursor refresh register-agent release-claim renew-claim resume-space retain-run rewind-space
	route-command set-passphrase set-space-policy start-run trust-mcp-tools validate-policy`)

// TestNoFreeTextBringsASecretIn sends secrets in every text of every body of the API document: none of them is in the log, but where its
// bytes count; each event that had one says so, and the log tells of it.
func TestNoFreeTextBringsASecretIn(t *testing.T) {
	d := startDaemon(t, func(c *app.Config) {
		c.Rates, c.Light = wire.DefaultRates(), &testkit.Light{}
		c.Rates.Spaces, c.Rates.Runs, c.Rates.Files, c.Rates.General, c.Rates.Failures = 100_000, 100_000, 100_000, 1_000_000, 1_000_000
	})
	secret := "ghp" + "_" + strings.Repeat("aB3dE6gH9k", 3)
	table, known, free := samples(t, d), documented(t), freeTexts(t)
	for op, more := range map[string][2]string{"resume-run": {`"decision"`, `"reason":"fine","decision"`}, "succeed-tool-call": {`"output":1`,
		`"output":"a result"`}} {
		s := table[op]
		s.body = strings.Replace(s.body, more[0], more[1], 1)
		table[op] = s
	}
	table["put-kill-switch"] = sent{path: "/v1/kill-switch", body: `{"on":true}`}
	table["put-action-type"] = sent{path: "/v1/action-types/deploy.site", body: `{"description":"publish the site","side_effect":"network"}`}
	table["put-blueprint"] = sent{path: "/v1/blueprints/weather-report", body: `{"text":` + blueprintSample + `}`}
	table["put-model"] = sent{path: "/v1/models/glm", body: modelSample}
	table["put-model-settings"] = sent{path: "/v1/model-settings",
		body: `{"routes":[],"budgets":[{"scope":"room","id":"a","tokens_per_day":1}]}`}
	table["put-model-key"] = sent{path: "/v1/model-keys/zai", body: `{"value":"a-key"}`}
	table["put-mcp-server"] = sent{path: "/v1/mcp-servers/github", body: serverSample}
	table["put-read-cursor"] = sent{path: "/v1/rooms/room_00000000000000000000000000/read-cursor", body: `{}`}
	ops := slices.Sorted(maps.Keys(free))
	last := slices.Index(ops, "put-kill-switch") // for nothing is done behind it
	for _, op := range append(slices.Delete(ops, last, last+1), "put-kill-switch") {
		s, ok := table[op]
		if !ok {
			t.Errorf("%s is not among the samples: say what it is sent", op)
			continue
		}
		before := len(d.anywhere(t, leak.EventDetected))
		var refused []string
		for _, body := range withSecrets(t, s.body, free[op], secret) {
			if status, raw := d.ask(t, "", known[op][0], s.path, body); status >= 500 {
				t.Errorf("%s with %s: %d %s", op, body, status, raw)
			} else if status >= 300 {
				refused = append(refused, fmt.Sprintf("%s: %d %s", body, status, raw))
			}
		}
		if told := len(d.anywhere(t, leak.EventDetected)) > before; told == slices.Contains(takesNoText, op) {
			t.Errorf("%s has told of a secret: %t\n%.3000s", op, told, strings.Join(refused, "\n"))
		}
	}
	told := map[string]bool{}
	all := d.anywhere(t)
	for _, e := range all {
		if e.Type == leak.EventDetected {
			told[string(e.Causation)] = true
		}
	}
	for _, e := range all {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(e.Data, &members); err != nil {
			t.Fatal(err)
		}
		for _, name := range countsByItsBytes[e.Type] {
			delete(members, name)
		}
		for name, value := range members {
			if strings.Contains(name+string(value), secret) {
				t.Errorf("%s holds a secret in %s: %s", e.Type, name, value)
			}
		}
		if strings.Contains(string(e.Data), secret) && !e.ContainsSecrets || e.ContainsSecrets != told[string(e.ID)] {
			t.Errorf("%s says %t, and is told of: %t", e.Type, e.ContainsSecrets, told[string(e.ID)])
		}
		if strings.Contains(e.EntityID+e.IdempotencyKey+string(e.Correlation), secret) {
			t.Errorf("%s has a secret in its header", e.Type)
		}
	}
	if report, err := audit.Verify(t.Context(), d.app.Log, "ws_dev"); err != nil || !report.OK {
		t.Errorf("the log does not prove itself: %+v, %v", report, err)
	}
}

// anywhere returns the events of every workspace.
func (d *daemon) anywhere(t *testing.T, types ...string) (all []event.Event) {
	t.Helper()
	workspaces, err := d.app.Log.Workspaces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, ws := range workspaces {
		for from := uint64(1); ; {
			found, err := d.app.Log.Read(t.Context(), journal.Query{Workspace: ws, Types: types, From: from, Limit: journal.MaxRead})
			if err != nil {
				t.Fatal(err)
			}
			if all = append(all, found...); len(found) < journal.MaxRead {
				break
			}
			from = found[len(found)-1].Seq + 1
		}
	}
	return all
}

// TestAToolIsCalledUnderANamedToken names a capability token in a tool call: it narrows the call, and the event says that it did.
func TestAToolIsCalledUnderANamedToken(t *testing.T) {
	d := startDaemon(t)
	d.must(t, "POST", "/v1/runs", `{"room_id":"room_00000000000000000000000000"}`, "run_id")
	var got struct {
		Token string `json:"claim_token"`
		Run   struct {
			ID string `json:"run_id"`
		} `json:"run"`
	}
	d.succeed(t, "POST", "/v1/runs/claim", `{}`, &got)
	step := d.must(t, "POST", "/v1/runs/"+got.Run.ID+"/steps", `{"kind":"work","claim_token":"`+got.Token+`"}`, "step_id")
	token := d.must(t, "POST", "/v1/capabilities/grant", `{"issued_to_principal_id":"`+d.field(t, "/v1/auth/session", "principal_id")+
		`","scopes":{"rooms":["*"],"tools":["look"],"action_types":["*"],"data_access":{"read":["*"],"write":["*"]}}}`, "token_id")
	for _, c := range []struct {
		tool, token, reason string
		status              int
	}{
		{"look", token, policy.ReasonDefaultAllow, 201}, {"leap", token, policy.ReasonScopeTool, 200}, {"look", "cap_01M7YNAYM0SMK245AEDNVB5CNW",
			policy.ReasonTokenNotFound, 200}, {"look", "cap_", policy.ReasonTokenNotFound, 200},
	} {
		status, raw := d.ask(t, "", "POST", "/v1/steps/"+step+"/toolcalls", `{"tool_name":"`+c.tool+`","claim_token":"`+got.Token+
			`","capability_token_id":"`+c.token+`"}`)
		if status != c.status || !strings.Contains(string(raw), `"reason_code":"`+c.reason+`"`) {
			t.Errorf("%s under %s: %d %s", c.tool, c.token, status, raw)
		}
	}
	called := d.recorded(t, run.EventInvoked)
	if len(called) != 1 || !strings.Contains(string(called[0].PolicyContext), token) {
		t.Errorf("%d calls are recorded: %+v", len(called), called)
	}
}

// TestARepeatThatHeldASecretHasTheFirstAnswer sends requests with secrets twice under one key.
func TestARepeatThatHeldASecretHasTheFirstAnswer(t *testing.T) {
	d := startDaemon(t)
	secret := "ghp" + "_" + strings.Repeat("aB3dE6gH9k", 3)
	thread := d.must(t, "POST", "/v1/rooms/room_00000000000000000000000000/threads", `{"title":"talk"}`, "thread_id")
	space := d.must(t, "POST", "/v1/spaces", `{}`, "id")
	for path, body := range map[string]string{
		"/v1/threads/" + thread + "/messages": `{"content_md":"it is ` + secret + `"}`, "/v1/incidents": `{"title":"lost ` + secret + `"}`,
		"/v1/runs":   `{"title":"with ` + secret + `","room_id":"room_00000000000000000000000000"}`,
		"/v1/spaces": `{"name":"of ` + secret + `"}`, "/v1/spaces/" + space +
			"/runs": `{"protocolVersion":"1.0","operations":[{"type":"shell","command":"echo ` + secret + `"}]}`,
		"/v1/rooms": `{"title":"of ` + secret + `"}`, "/v1/spaces/" + space + "/extend": `{"duration_seconds":7200}`,
	} {
		first, _, want := d.keyed(t, "POST", path, "application/json", "key", body)
		second, _, got := d.keyed(t, "POST", path, "application/json", "key", body)
		if first >= 300 || second != first || got != want {
			t.Errorf("%s: got %d %s, want %d %s", path, second, got, first, want)
		}
	}
}
