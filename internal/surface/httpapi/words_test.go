package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"agentbox/internal/domain/id"
)

// TestOlderWordsAreTakenForAVersion sends each field and word under its name of today and of before, and both at once.
func TestOlderWordsAreTakenForAVersion(t *testing.T) {
	d := startDaemon(t)
	space := "/v1/spaces/" + d.must(t, "POST", "/v1/spaces", `{}`, "space_id")
	asking := func(words string) string {
		return d.must(t, "POST", space+"/runs", `{"protocolVersion":"1.0","operations":[{"type":"shell","id":"a","command":"mkdir d; rm -r d"}],`+
			words+`}`, "runId")
	}
	for _, decision := range []string{"approve", "deny", "approved", "denied"} {
		run := asking(`"wait_seconds":30`)
		if status, raw := d.ask(t, "", "POST", space+"/runs/"+run+"/resume", `{"approval":{"operationId":"a","decision":"`+decision+
			`"},"wait":30}`); status != http.StatusCreated {
			t.Errorf("resume with %s: %d %s", decision, status, raw)
		}
		run = asking(`"wait":30`)
		_, raw := d.ask(t, "", "GET", "/v1/approvals?run_id="+run, "")
		asked := strings.Split(strings.Split(string(raw), `"approval_id":"`)[1], `"`)[0]
		want := map[byte]string{'a': "approved", 'd': "denied"}[decision[0]]
		if got := d.must(t, "POST", "/v1/approvals/"+asked+"/decide", `{"decision":"`+decision+`"}`, "status"); got != want {
			t.Errorf("decide with %s: %s, want %s", decision, got, want)
		}
	}
	for path, bodies := range map[string]map[string]int{
		space + "/extend": {`{"ttl_seconds":60}`: 200, `{"duration_seconds":60}`: 200, `{"ttl_seconds":60,"duration_seconds":60}`: 400, `{}`: 400,
			`{"ttl_seconds":9}`: 400},
		"/v1/runs/claim": {`{"wait_seconds":0}`: 200, `{"wait":0}`: 200, `{"wait_seconds":61}`: 400},
		space + "/runs": {
			`{"protocolVersion":"1.0","operations":[{"type":"message","content":"x"}],"wait":1,"wait_seconds":1}`: 400,
			`{"protocolVersion":"1.0","operations":[{"type":"message","content":"x"}],"wait_seconds":301}`:        400,
			`{"protocolVersion":"1.0","operations":[{"type":"message","content":"x"}],"wait_seconds":300}`:        201,
		},
		space + "/contexts/c/cells": {`{"language":"python","code":"1","timeout":1000,"timeout_ms":1000}`: 400,
			`{"language":"python","code":"1","timeout_ms":0}`: 400},
	} {
		for body, want := range bodies {
			if status, raw := d.ask(t, "", "POST", path, body); status != want {
				t.Errorf("%s with %s: %d %s, want %d", path, body, status, raw, want)
			}
		}
	}
}

// TestARunBehindAnotherIsToldAsQueued starts a run in a space where an earlier one waits for a person.
func TestARunBehindAnotherIsToldAsQueued(t *testing.T) {
	d := startDaemon(t)
	space := "/v1/spaces/" + d.must(t, "POST", "/v1/spaces", `{}`, "space_id")
	start := func(command, want string) string {
		t.Helper()
		_, raw := d.ask(t, "", "POST", space+"/runs",
			`{"protocolVersion":"1.0","wait_seconds":2,"operations":[{"type":"shell","command":"`+command+`"}]}`)
		var got struct {
			Run    string `json:"runId"`
			Status string `json:"status"`
		}
		if err := json.Unmarshal(raw, &got); err != nil || got.Status != want {
			t.Errorf("%s: %s, want %s", command, raw, want)
		}
		return got.Run
	}
	first := start("mkdir d; rm -r d", "awaiting_approval")
	second := start("echo later", "queued")
	if got := d.field(t, "/v1/runs/"+second, "status"); got != "queued" {
		t.Errorf("the run is %s, want queued", got)
	}
	d.must(t, "POST", "/v1/runs/"+first+"/cancel", `{}`, "")
	d.ended(t, id.Run(second))
	if got := d.field(t, "/v1/runs/"+second, "status"); got != "succeeded" {
		t.Errorf("after the first one the run is %s, want succeeded", got)
	}
}
