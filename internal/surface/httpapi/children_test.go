package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"agentbox/internal/app"
	"agentbox/internal/domain/id"
)

// engaged is a run that an engine has claimed, with a step, and a space for the runs of its tool calls.
type engaged struct {
	*daemon
	run, token, step, space string
}

func engage(t *testing.T) engaged {
	t.Helper()
	c := app.Default(t.TempDir())
	c.Engine = app.EngineExternal
	d, stop := serveDaemon(t, c)
	t.Cleanup(stop)
	e := engaged{daemon: d, space: d.must(t, "POST", "/v1/spaces", `{}`, "id"), run: d.must(t, "POST", "/v1/runs", `{}`, "run_id")}
	e.token = d.must(t, "POST", "/v1/runs/claim", `{}`, "claim_token")
	e.step = d.must(t, "POST", "/v1/runs/"+e.run+"/steps", e.held(`,"kind":"work"`), "step_id")
	return e
}

func (e engaged) held(more string) string { return `{"claim_token":"` + e.token + `"` + more + `}` }

// child makes a tool call, and asks for a run in the space for it.
func (e engaged) child(t *testing.T, operations string) (call, permit string, child id.Run) {
	t.Helper()
	var made struct {
		ID     string `json:"tool_call_id"`
		Permit string `json:"permit"`
	}
	e.succeed(t, "POST", "/v1/steps/"+e.step+"/toolcalls", e.held(`,"tool_name":"work"`), &made)
	status, raw := e.under(t, "/v1/spaces/"+e.space+"/runs", made.ID, e.token, `{"protocolVersion":"1.0","operations":[`+operations+`]}`)
	var got struct {
		ID id.Run `json:"runId"`
	}
	if err := json.Unmarshal(raw, &got); err != nil || got.ID == "" || status >= 300 {
		t.Fatalf("%v: %d %s", err, status, raw)
	}
	return made.ID, made.Permit, got.ID
}

// A tool call succeeds only where every operation of its run did what it was asked. The engine may report that it failed.
func TestACallSucceedsOnlyWhereEveryOperationDid(t *testing.T) {
	e := engage(t)
	for name, c := range map[string]struct {
		operations string
		unmet      []string // what the refusal names
	}{
		"all did":       {`{"type":"message","id":"a","content":"x"},{"type":"shell","id":"b","command":"true"}`, nil},
		"exit 1":        {`{"type":"shell","id":"bad","command":"exit 1"}`, []string{"bad (failed)"}},
		"refused whole": {`{"type":"shell","id":"root","command":"sudo rm -rf /"}`, []string{"root (policyDenied)"}},
		"one of them":   {`{"type":"shell","id":"b","command":"true"},{"type":"readFile","id":"none","path":"none"}`, []string{"none (failed)"}},
		"more than a few": {strings.Repeat(`{"type":"shell","command":"false"},`, 6) + `{"type":"shell","command":"false"}`,
			[]string{"(failed)", "2 more"}},
	} {
		call, permit, child := e.child(t, c.operations)
		e.ended(t, child)
		if status := e.field(t, "/v1/runs/"+string(child), "status"); status != "succeeded" {
			t.Errorf("%s: the run is %s", name, status)
		}
		body := e.held(`,"permit":"` + permit + `"`)
		status, raw := e.ask(t, "", "POST", "/v1/toolcalls/"+call+"/succeed", body)
		if c.unmet == nil {
			if status != http.StatusOK {
				t.Errorf("%s: %d %s", name, status, raw)
			}
			continue
		}
		if status != http.StatusConflict || code(raw) != "child_run_not_succeeded" {
			t.Errorf("%s: %d %s", name, status, raw)
		}
		for _, want := range c.unmet {
			if !strings.Contains(string(raw), want) {
				t.Errorf("%s: the answer does not name %q: %s", name, want, raw)
			}
		}
		if now := e.field(t, "/v1/toolcalls/"+call, "status"); now != "running" {
			t.Errorf("%s: after the refusal the call is %s", name, now)
		}
		if status, raw := e.ask(t, "", "POST", "/v1/toolcalls/"+call+"/fail", body); status != http.StatusOK ||
			!strings.Contains(string(raw), `"permitted"`) {
			t.Errorf("%s: a report that it failed: %d %s", name, status, raw)
		}
	}
}

// A run that waits for a person ends when the run of the engine that asked for it does. An answer after that executes nothing.
func TestAnAnswerAfterTheParentsEndExecutesNothing(t *testing.T) {
	for _, end := range []string{"complete", "fail", "cancel"} {
		e := engage(t)
		call, _, child := e.child(t, `{"type":"shell","id":"rm","command":"rm -rf x; touch done"}`)
		e.until(t, id.DefaultWorkspace, func() bool { return e.field(t, "/v1/runs/"+string(child), "status") == "awaiting_approval" })
		var open struct {
			Approvals []struct {
				ID string `json:"approval_id"`
			} `json:"approvals"`
		}
		e.succeed(t, "GET", "/v1/approvals?status=pending", "", &open)
		if len(open.Approvals) != 1 {
			t.Fatalf("%s: %d questions are open", end, len(open.Approvals))
		}
		body := e.held("")
		if end == "cancel" {
			body = `{}`
		}
		e.succeed(t, "POST", "/v1/runs/"+e.run+"/"+end, body, nil)
		e.until(t, id.DefaultWorkspace, func() bool { return e.field(t, "/v1/runs/"+string(child), "status") == "cancelled" })
		if status := e.field(t, "/v1/toolcalls/"+call, "status"); status != "unknown" {
			t.Errorf("%s: the call is %s", end, status)
		}
		status, raw := e.ask(t, "", "POST", "/v1/approvals/"+open.Approvals[0].ID+"/decide", `{"decision":"approve"}`)
		if status != http.StatusConflict || code(raw) != "approval_withdrawn" {
			t.Errorf("%s: an answer after the end: %d %s", end, status, raw)
		}
		if files := e.listing(t, e.space); strings.Contains(files, "done") {
			t.Errorf("%s: the space holds %s", end, files)
		}
		e.checkCauses(t)
	}
}
