package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/token"
)

// TestLabelsHoldWhereFilesAreRead reads a file of a space before and after the space is labelled.
func TestLabelsHoldWhereFilesAreRead(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	space := d.must(t, "POST", "/v1/spaces", `{}`, "id")
	if status, raw := d.ask(t, "", "PUT", "/v1/spaces/"+space+"/files/a.txt", "hello"); status >= 300 {
		t.Fatalf("write: %d %s", status, raw)
	}
	reads := func(who string, status int, reason string) {
		t.Helper()
		for _, path := range []string{"/files/a.txt", "/files/archive"} {
			if got, raw := d.ask(t, who, "GET", "/v1/spaces/"+space+path, ""); got != status || status != 200 && code(raw) != reason {
				t.Errorf("%s of %q: %d %.200s, want %d %s", path, who, got, raw, status, reason)
			}
		}
	}
	label := func(level, more string) {
		t.Helper()
		d.must(t, "POST", "/v1/resources/labels", `{"resource_type":"space","resource_id":"`+space+`","label":"`+level+`"`+more+`}`, "label")
	}
	access := func(who, more string) {
		t.Helper()
		if status, raw := d.ask(t, who, "POST", "/v1/data/access/requests", `{"resource_type":"space","resource_id":"`+space+`","action":"read"`+
			more+`}`); status != 200 {
			t.Fatalf("%d %s", status, raw)
		}
	}
	reads("member", 200, "")
	label("confidential", "")
	reads("member", 403, "data_access_required")
	access("member", "")
	reads("member", 200, "")
	reads("agent", 403, "data_access_required") // each asks for itself
	reads("", 403, "data_access_required")
	label("sensitive_pii", `,"purpose_tags":["support"]`)
	reads("member", 403, "data_access_required") // what was asked for was less
	access("member", "")                         // for no purpose: a person has to decide
	reads("member", 403, "data_access_required")
	access("member", `,"purpose_tags":["support"]`)
	reads("member", 200, "")
	label("restricted", `,"room_id":"`+d.must(t, "POST", "/v1/rooms", `{"title":"elsewhere"}`, "room_id")+`"`)
	reads("member", 403, "data_access_restricted_room_mismatch")
	label("restricted", `,"room_id":"room_00000000000000000000000000"`)
	reads("member", 200, "")
}

// TestLabelsHoldWhereArtifactsAreRead reads an artifact by its id and in a list.
func TestLabelsHoldWhereArtifactsAreRead(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	d.must(t, "POST", "/v1/runs", `{"room_id":"room_00000000000000000000000000","title":"report"}`, "run_id")
	_, raw := d.ask(t, "", "POST", "/v1/runs/claim", `{}`)
	var got struct {
		Token string `json:"claim_token"`
		Run   struct {
			ID string `json:"run_id"`
		} `json:"run"`
	}
	if err := json.Unmarshal(raw, &got); err != nil || got.Token == "" {
		t.Fatalf("%v %s", err, raw)
	}
	step := d.must(t, "POST", "/v1/runs/"+got.Run.ID+"/steps", `{"kind":"write","claim_token":"`+got.Token+`"}`, "step_id")
	artifact := d.must(t, "POST", "/v1/steps/"+step+"/artifacts", `{"kind":"note","claim_token":"`+got.Token+
		`","title":"private","content":{"type":"text","text":"private"},"metadata":{"of":"private"}}`, "artifact_id")
	shown := func(who string, want bool) {
		t.Helper()
		status, raw := d.ask(t, who, "GET", "/v1/artifacts/"+artifact, "")
		if (status == 200) != want || strings.Contains(string(raw), "private") != want {
			t.Errorf("by its id: %d %s", status, raw)
		}
		status, raw = d.ask(t, who, "GET", "/v1/artifacts?run_id="+got.Run.ID, "")
		if status != 200 || strings.Contains(string(raw), "private") != want || strings.Contains(string(raw), artifact) != want {
			t.Errorf("in the list: %d %s", status, raw)
		}
	}
	shown("member", true)
	d.must(t, "POST", "/v1/resources/labels", `{"resource_type":"artifact","resource_id":"`+artifact+`","label":"confidential"}`, "label")
	shown("member", false)
	if status, raw := d.ask(t, "member", "POST", "/v1/data/access/requests", `{"resource_type":"artifact","resource_id":"`+artifact+
		`","action":"read","justification":"the auditor asks"}`); status != 200 {
		t.Fatalf("%d %s", status, raw)
	}
	shown("member", true)
	shown("agent", false)
}

// TestATokenBindsRequestsForAccess asks under a token that may read one document, for that one and for others.
func TestATokenBindsRequestsForAccess(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	agent, err := d.app.Identity.Agent(t.Context(), event.Origin{Principal: d.app.Owner}, id.DefaultWorkspace, "stranger")
	if err != nil {
		t.Fatal(err)
	}
	one := token.All()
	one.Data = token.Data{Read: []string{"resource:document:ok1"}}
	d.granted(t, "one", agent, one, "", d.app.Owner)
	d.granted(t, "all", agent, token.All(), "", d.app.Owner)
	for name, level := range map[string]string{"no1": `"confidential"`, "no2": `"sensitive_pii","purpose_tags":["support"]`} {
		d.must(t, "POST", "/v1/resources/labels", `{"resource_type":"document","resource_id":"`+name+`","label":`+level+`}`, "")
	}
	for _, c := range []struct{ who, document, action, more, want string }{
		{"one", "ok1", "read", "", "default_allow"},
		{"one", "ok1", "write", "", policy.ReasonScopeDataRequired},
		{"one", "plain", "read", "", policy.ReasonScopeData},
		{"one", "no1", "read", "", policy.ReasonScopeData},
		{"one", "no1", "write", "", policy.ReasonScopeDataRequired},
		{"one", "no1", "read", `,"room_id":"room_00000000000000000000000000"`, policy.ReasonScopeData},
		{"one", "no2", "read", `,"purpose_tags":["support"]`, policy.ReasonScopeData},
		{"one", "no2", "read", "", policy.ReasonScopeData}, // nobody is asked about it
		{"all", "no1", "read", "", "default_allow"},
		{"all", "no1", "write", "", "default_allow"},
	} {
		status, raw := d.ask(t, c.who, "POST", "/v1/data/access/requests", `{"resource_type":"document","resource_id":"`+c.document+
			`","action":"`+c.action+`"`+c.more+`}`)
		var got struct {
			Code     string `json:"reason_code"`
			Blocked  bool   `json:"blocked"`
			Approval string `json:"approval_id"`
		}
		if err := json.Unmarshal(raw, &got); err != nil || status != 200 || got.Code != c.want || got.Blocked != (c.want != "default_allow") ||
			got.Approval != "" {
			t.Errorf("%s of %s under the token %s: %d %s, want %s", c.action, c.document, c.who, status, raw, c.want)
		}
	}
}
