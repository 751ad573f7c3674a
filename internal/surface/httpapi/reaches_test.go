package httpapi_test

import (
	"encoding/json"
	"testing"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/token"
)

// TestARunReachesNothingThatALabelKeeps asks for runs which the daemon would execute in the caller's name: in a labelled space, with a
// labelled thread, and after a labelled run. The names stand in the bodies, where no route sees them.
func TestARunReachesNothingThatALabelKeeps(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	runner := d.runner(t) + "/runs"
	label := func(typ, id string) {
		t.Helper()
		d.must(t, "POST", "/v1/resources/labels", `{"resource_type":"`+typ+`","resource_id":"`+id+`","label":"confidential"}`, "label")
	}
	refused := func(who, path, body string) {
		t.Helper()
		if status, raw := d.ask(t, who, "POST", path, body); status != 403 || code(raw) != "data_access_required" {
			t.Errorf("POST %s %s: %d %s, want it refused", path, body, status, raw)
		}
	}
	taken := func(who, path, body string) {
		t.Helper()
		if status, raw := d.ask(t, who, "POST", path, body); status != 201 {
			t.Errorf("POST %s %s: %d %s, want it taken", path, body, status, raw)
		}
	}
	room := string(id.DefaultRoom)
	open := d.must(t, "POST", "/v1/spaces", `{"name":"open","best_effort":true}`, "id")
	space := d.must(t, "POST", "/v1/spaces", `{"name":"plumspace","best_effort":true}`, "id")
	thread := d.must(t, "POST", "/v1/rooms/"+room+"/threads", `{"title":"plumtalk"}`, "thread_id")
	before := d.must(t, "POST", runner, `{"task":"plumtask","space_id":"`+open+`"}`, "run_id")
	d.must(t, "PUT", "/v1/mcp-servers/served", `{"command":"serve"}`, "name")
	order := func(space string) string {
		return `{"input":{"protocolVersion":"1.0","space_id":"` + space + `","operations":[{"type":"shell","command":"ls"}]}}`
	}
	mission := func(space, after string) string {
		const none = `"sha256:0000000000000000000000000000000000000000000000000000000000000000"`
		return `{"input":{"agent_run":1,"blueprint":"runner","blueprint_version":1,"locked_sha256":` + none + `,"loop_sha256":` + none +
			`,"tools_sha256":` + none + `,"space_id":"` + space + `","after_run_id":"` + after + `","task":"t"}}`
	}
	taken("member", runner, `{"task":"t","space_id":"plumspace","thread_id":"`+thread+`","room_id":"`+room+`"}`)
	taken("member", "/v1/runs", order(space))
	label("space", space)
	label("thread", thread)
	label("run", before)

	refused("member", runner, `{"task":"t","space_id":"`+space+`"}`)
	refused("member", runner, `{"task":"t","space_id":"plumspace"}`)
	refused("member", runner, `{"task":"t","space_id":"`+open+`","room_id":"`+room+`","thread_id":"`+thread+`"}`)
	refused("member", runner, `{"task":"t","after_run_id":"`+before+`"}`)
	refused("member", "/v1/runs", order(space))
	refused("member", "/v1/runs", order("plumspace"))
	refused("member", "/v1/runs", mission(space, ""))
	refused("member", "/v1/runs", mission(open, before))
	refused("", "/v1/mcp-servers/served/look", `{"space_id":"`+space+`"}`)
	taken("member", runner, `{"task":"t","space_id":"`+open+`"}`)
	taken("member", "/v1/runs", order(open))
}

// TestATokenBoundsWhatAnAgentHears: under a token that reads no messages, an agent is given no thread to read.
func TestATokenBoundsWhatAnAgentHears(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	runner := d.runner(t) + "/runs"
	room := string(id.DefaultRoom)
	space := d.must(t, "POST", "/v1/spaces", `{"name":"open","best_effort":true}`, "id")
	thread := d.must(t, "POST", "/v1/rooms/"+room+"/threads", `{"title":"talk"}`, "thread_id")
	scopes := token.All()
	scopes.Data.Read = []string{"run", "space"}
	d.granted(t, "deaf", d.app.Owner, scopes, "", d.app.Owner)
	body := `{"task":"t","space_id":"` + space + `","room_id":"` + room + `"`
	if status, raw := d.ask(t, "deaf", "POST", runner, body+`,"thread_id":"`+thread+`"}`); status != 403 ||
		code(raw) != policy.ReasonScopeData {
		t.Errorf("with a thread: %d %s", status, raw)
	}
	d.granted(t, "hears", d.app.Owner, token.All(), "", d.app.Owner)
	if status, raw := d.ask(t, "hears", "POST", runner, body+`,"thread_id":"`+thread+`"}`); status != 201 {
		t.Errorf("under a token that reads: %d %s", status, raw)
	}
}

// TestNobodyNamesAPictureByItsHash asks for the task of an agent with a picture that the request does not bring.
func TestNobodyNamesAPictureByItsHash(t *testing.T) {
	d := startDaemon(t)
	space := d.must(t, "POST", "/v1/spaces", `{"name":"open","best_effort":true}`, "id")
	const hash = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	raw, err := json.Marshal(map[string]any{"input": map[string]any{"agent_run": 1, "blueprint": "runner", "blueprint_version": 1,
		"locked_sha256": hash, "loop_sha256": hash, "tools_sha256": hash, "space_id": space, "task": "t",
		"pictures": []any{map[string]any{"name": "a", "mime_type": "image/png", "size_bytes": 1, "sha256": hash}}}})
	if err != nil {
		t.Fatal(err)
	}
	if status, got := d.ask(t, "", "POST", "/v1/runs", string(raw)); status != 403 || code(got) != "pictures_not_yours" {
		t.Errorf("got %d %s", status, got)
	}
}
