package httpapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// story returns the events of a correlation, by their types.
func (d *daemon) story(t *testing.T, correlation string) map[string][]event.Event {
	t.Helper()
	var list struct {
		Events []event.Event `json:"events"`
	}
	d.succeed(t, "GET", "/v1/events?limit=200&correlation_id="+correlation, "", &list)
	found := map[string][]event.Event{}
	for _, e := range list.Events {
		found[e.Type] = append(found[e.Type], e)
	}
	return found
}

// under sends a request of an engine for one of its tool calls.
func (d *daemon) under(t *testing.T, path, call, token, body string) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", d.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + d.keys[""], "Content-Type": "application/json",
		"X-Tool-Call-Id": call, "X-Claim-Token": token} {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, raw
}

// TestAStoryHasOneCorrelation follows a run of an engine, the run in a space that one of its tool calls asks for, and the answer of a
// person: all of it is found by the correlation of the request, and leads back to it. A call does not succeed before its run has.
func TestAStoryHasOneCorrelation(t *testing.T) {
	c := app.Default(t.TempDir())
	c.Engine = app.EngineExternal
	d, stop := serveDaemon(t, c)
	defer stop()
	space := d.must(t, "POST", "/v1/spaces", `{}`, "id")
	made := d.must(t, "POST", "/v1/runs", `{"correlation_id":"corr-1"}`, "run_id") // in the default room
	var got struct {
		Token string `json:"claim_token"`
	}
	d.succeed(t, "POST", "/v1/runs/claim", `{}`, &got)
	held := func(more string) string { return `{"claim_token":"` + got.Token + `"` + more + `}` }
	unit := d.must(t, "POST", "/v1/runs/"+made+"/steps", held(`,"kind":"work"`), "step_id")
	if status := d.field(t, "/v1/steps/"+unit, "status"); status != "pending" {
		t.Errorf("a step without tool calls is %s", status)
	}
	call := d.must(t, "POST", "/v1/steps/"+unit+"/toolcalls", held(`,"tool_name":"clean"`), "tool_call_id")
	if status := d.field(t, "/v1/steps/"+unit, "status"); status != "running" {
		t.Errorf("a step with an open tool call is %s", status)
	}
	const plain = `{"protocolVersion":"1.0","operations":[{"type":"message","content":"x"}]}`
	if status, raw := d.under(t, "/v1/spaces/"+space+"/runs", "", got.Token, plain); status != http.StatusBadRequest ||
		!strings.Contains(string(raw), "X-Tool-Call-Id is empty") {
		t.Errorf("a run for a call that is not named: %d %s", status, raw)
	}
	status, raw := d.under(t, "/v1/spaces/"+space+"/runs", call, got.Token,
		`{"protocolVersion":"1.0","operations":[{"type":"shell","id":"rm","command":"rm -rf x"}]}`)
	if status >= 300 {
		t.Fatalf("%d %s", status, raw)
	}
	var child struct {
		ID string `json:"runId"`
	}
	if err := json.Unmarshal(raw, &child); err != nil || child.ID == "" {
		t.Fatalf("%v in %s", err, raw)
	}
	d.until(t, id.DefaultWorkspace, func() bool { return d.field(t, "/v1/runs/"+child.ID, "status") == "awaiting_approval" })
	if status, raw := d.ask(t, "", "POST", "/v1/toolcalls/"+call+"/succeed", held("")); status != http.StatusConflict ||
		code(raw) != "child_run_not_succeeded" {
		t.Errorf("a call whose run waits: %d %s", status, raw)
	}
	var open struct {
		Approvals []struct {
			ID     string `json:"approval_id"`
			Action string `json:"action_sha256"`
		} `json:"approvals"`
	}
	d.succeed(t, "GET", "/v1/approvals?status=pending", "", &open)
	if len(open.Approvals) != 1 {
		t.Fatalf("%d questions are open", len(open.Approvals))
	}
	asked := open.Approvals[0]
	if status, raw := d.ask(t, "", "POST", "/v1/approvals/"+asked.ID+"/decide", `{"decision":"approve","action_sha256":"sha256:`+
		strings.Repeat("0f", 32)+`"}`); status != http.StatusConflict || code(raw) != "action_mismatch" {
		t.Errorf("an answer to another action: %d %s", status, raw)
	}
	if status, raw := d.ask(t, "", "POST", "/v1/approvals/"+asked.ID+"/withdraw", `{}`); status < 400 {
		t.Errorf("what a run waits for was withdrawn: %d %s", status, raw)
	}
	d.decide(t, asked.ID, `{"decision":"approve","action_sha256":"`+asked.Action+`"}`)
	d.ended(t, id.Run(child.ID))
	done, end := "succeed", d.field(t, "/v1/runs/"+child.ID, "status")
	if end != "succeeded" {
		t.Errorf("the run is %s", end)
	}
	d.succeed(t, "POST", "/v1/toolcalls/"+call+"/"+done, held(""), nil)
	if status := d.field(t, "/v1/steps/"+unit, "status"); status != "succeeded" {
		t.Errorf("a step whose call has succeeded is %s", status)
	}
	d.succeed(t, "POST", "/v1/runs/"+made+"/fail", held(`,"error":{"code":"no_luck","message":"it rained"},"output":{"n":1}`), nil)
	if why := d.field(t, "/v1/runs/"+made, "error"); why != "no_luck" {
		t.Errorf("the run failed for %q", why)
	}

	d.checkCauses(t)
	found := d.story(t, "corr-1")
	for _, typ := range []string{"run.created", "run.claimed", "step.created", "tool.invoked", "approval.requested", "approval.decided",
		"run.resumed", "approval.used", "tool.succeeded", "run.completed", "run.failed"} {
		if len(found[typ]) == 0 {
			t.Errorf("%s is not in the story", typ)
		}
	}
	var tree struct {
		Path []event.Event `json:"path"`
	}
	d.succeed(t, "GET", "/v1/events/"+string(found["run.failed"][0].ID)+"/causes", "", &tree)
	if len(tree.Path) == 0 || tree.Path[0].ID != found["run.created"][0].ID {
		t.Errorf("the first cause of the end is %+v", tree.Path)
	}
	var effects struct {
		Effects []struct {
			Event event.Event `json:"event"`
		} `json:"effects"`
	}
	// which comes behind the end
	d.until(t, id.DefaultWorkspace, func() bool { return len(d.story(t, "corr-1")["evidence.manifest.created"]) == 1 })
	d.succeed(t, "GET", "/v1/events/"+string(found["run.created"][0].ID)+"/causes", "", &effects)
	total := 0
	for _, events := range d.story(t, "corr-1") {
		total += len(events)
	}
	if len(effects.Effects) != total-1 {
		t.Errorf("the first event led to %d events, the story has %d others", len(effects.Effects), total-1)
	}
}

// TestQuestionsOutside keeps the thread and the title of a question, refuses a scope that no answer could grant, and lets only the
// requester take it back.
func TestQuestionsOutside(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	thread := d.must(t, "POST", "/v1/rooms/"+string(id.DefaultRoom)+"/threads", `{"title":"talk"}`, "thread_id")
	const what = `"action":"payment.execute","zone":"high_stakes","request":{"amount":1}`
	if status, raw := d.ask(t, "agent", "POST", "/v1/approvals", `{`+what+`,"scope":"workspace"}`); status != http.StatusBadRequest {
		t.Errorf("a scope that cannot be granted: %d %s", status, raw)
	}
	asked := d.request(t, "agent", `{`+what+`,"room_id":"`+string(id.DefaultRoom)+`","thread_id":"`+thread+`","title":"rent"}`)
	var doc struct {
		Thread   string `json:"thread_id"`
		Status   string `json:"status"`
		Question struct {
			Title string `json:"agent_title"`
		} `json:"question"`
	}
	if d.succeed(t, "GET", "/v1/approvals/"+asked, "", &doc); doc.Thread != thread || doc.Question.Title != "rent" {
		t.Errorf("got %+v", doc)
	}
	if status, raw := d.ask(t, "member", "POST", "/v1/approvals/"+asked+"/withdraw", `{}`); status != http.StatusForbidden ||
		code(raw) != "not_requester" {
		t.Errorf("somebody else: %d %s", status, raw)
	}
	for range 2 {
		if status, raw := d.ask(t, "agent", "POST", "/v1/approvals/"+asked+"/withdraw", `{"reason":"paid"}`); status != http.StatusOK ||
			!strings.Contains(string(raw), `"withdrawn"`) {
			t.Errorf("the requester: %d %s", status, raw)
		}
	}
	if status, raw := d.ask(t, "", "POST", "/v1/approvals/"+asked+"/decide", `{"decision":"approve"}`); status != http.StatusConflict {
		t.Errorf("an answer to what was withdrawn: %d %s", status, raw)
	}
}

// TestAQuarantinedAgentIsToldSo answers a valid key with why it opens nothing, and an invalid one as before.
func TestAQuarantinedAgentIsToldSo(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	agent := d.field(t, "/v1/agents?limit=1", "agents")
	_, after, _ := strings.Cut(agent, "principal_id:")
	d.succeed(t, "POST", "/v1/agents/"+strings.Fields(strings.TrimRight(after, "]"))[0]+"/quarantine", `{"reason":"odd"}`, nil)
	if status, raw := d.ask(t, "agent", "GET", "/v1/spaces", ""); status != http.StatusForbidden || code(raw) != "agent_quarantined" {
		t.Errorf("%d %s", status, raw)
	}
	d.keys["wrong"] = d.keys["agent"] + "x"
	if status, raw := d.ask(t, "wrong", "GET", "/v1/spaces", ""); status != http.StatusUnauthorized || code(raw) != "unauthenticated" {
		t.Errorf("%d %s", status, raw)
	}
}

// TestAMalformedOperationIsSkipped executes the others.
func TestAMalformedOperationIsSkipped(t *testing.T) {
	d := startDaemon(t)
	space := d.must(t, "POST", "/v1/spaces", `{}`, "id")
	status, raw := d.ask(t, "", "POST", "/v1/spaces/"+space+"/runs",
		`{"protocolVersion":"1.0","operations":[{"type":"createFile","id":"a","path":"a","content":"1"},`+
			`{"type":"dream","id":"b"},{"type":"createFile","id":"c","path":"c"},{"type":"shell","command":"cat `+
			`a","extra":1},{"type":"readFile","id":"e","path":"a"}]}`)
	var made struct {
		Run string `json:"runId"`
	}
	if err := json.Unmarshal(raw, &made); err != nil || status != http.StatusCreated {
		t.Fatalf("%d %s", status, raw)
	}
	d.ended(t, id.Run(made.Run))
	_, raw = d.ask(t, "", "GET", "/v1/spaces/"+space+"/runs/"+made.Run, "")
	for text, n := range map[string]int{`"category":"validation"`: 3, `"operationId":"b"`: 1, `"operationId":"c"`: 1, `"operationId":"e"`: 1,
		`"size":1`: 1} {
		if got := strings.Count(string(raw), text); got != n {
			t.Errorf("%s stands there %d times, want %d: %s", text, got, n, raw)
		}
	}
}
