package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
)

// refusedTools returns how many refusals by a room's list of tools the log has.
func (d *daemon) refusedTools(t *testing.T) (n int) {
	t.Helper()
	for _, e := range d.recorded(t, policy.DeniedType) {
		var refused policy.Refused
		if err := json.Unmarshal(e.Data, &refused); err != nil {
			t.Fatal(err)
		}
		if refused.Decision.ReasonCode == policy.ReasonToolNotAllowed {
			n++
		}
	}
	return n
}

// TestARoomsListOfToolsHolds sets which tools a room allows, and uses others there: as an engine, in a space of the room, by way of an
// engine in that space, and as a program that asks before it acts.
func TestARoomsListOfToolsHolds(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	room := d.must(t, "POST", "/v1/rooms", `{"title":"lab","context":{"tool_allowlist":["saw","readFile"]}}`, "room_id")
	space := d.must(t, "POST", "/v1/spaces", `{"room_id":"`+room+`"}`, "id")
	const write = `{"type":"createFile","path":"a.txt","content":"hello"}`

	// An engine's tool calls.
	made := d.must(t, "POST", "/v1/runs", `{"room_id":"`+room+`"}`, "run_id")
	d.must(t, "POST", "/v1/runs/"+made+"/start", `{}`, "run_id")
	calls := "/v1/steps/" + d.must(t, "POST", "/v1/runs/"+made+"/steps", `{"kind":"work"}`, "step_id") + "/toolcalls"
	for _, c := range []struct {
		tool   string
		status int
		code   string
	}{
		{"saw", http.StatusCreated, policy.ReasonDefaultAllow}, {"space.readFile", http.StatusCreated, policy.ReasonDefaultAllow},
		{"drill", http.StatusOK, policy.ReasonToolNotAllowed}, {"shell", http.StatusOK, policy.ReasonToolNotAllowed},
	} {
		status, raw := d.ask(t, "", "POST", calls, `{"tool_name":"`+c.tool+`"}`)
		var answer struct {
			Code       string `json:"reason_code"`
			Suggestion string `json:"suggestion"`
		}
		if err := json.Unmarshal(raw, &answer); err != nil || status != c.status || answer.Code != c.code ||
			(c.status == http.StatusOK) == (answer.Suggestion == "") {
			t.Errorf("%s: got %d %s, want %d %s", c.tool, status, raw, c.status, c.code)
		}
	}
	before := d.refusedTools(t)
	if before != 2 {
		t.Errorf("the log has %d refusals, want 2", before)
	}

	// Runs in a space of the room, by a member and by the owner; and one by way of the engine within the daemon.
	for _, who := range []string{"member", ""} {
		status, raw := d.ask(t, who, "POST", "/v1/spaces/"+space+"/runs", `{"protocolVersion":"1.0","operations":[`+write+`]}`)
		var started struct {
			Run string `json:"runId"`
		}
		if err := json.Unmarshal(raw, &started); err != nil || status >= 300 {
			t.Fatalf("%d %s", status, raw)
		}
		d.ended(t, id.Run(started.Run))
	}
	d.ended(t, id.Run(d.must(t, "POST", "/v1/runs", `{"room_id":"`+room+`","input":{"protocolVersion":"1.0","space_id":"`+space+
		`","operations":[`+write+`]}}`, "run_id")))
	// And one that an engine of another room has executed in the space: what counts is whose the space is.
	d.ended(t, id.Run(d.must(t, "POST", "/v1/runs", `{"room_id":"`+string(id.DefaultRoom)+`","input":{"protocolVersion":"1.0","space_id":"`+
		space+`","operations":[`+write+`]}}`, "run_id")))
	if after := d.refusedTools(t); after != before+4 {
		t.Errorf("four runs left %d refusals, want 4: %s", after-before, d.failures(t))
	}
	if status, raw := d.ask(t, "", "GET", "/v1/spaces/"+space+"/files/a.txt", ""); status != http.StatusNotFound {
		t.Errorf("the file was written: %d %s", status, raw)
	}
	if status, raw := d.ask(t, "", "PUT", "/v1/spaces/"+space+"/files/b.txt", "hello"); status >= 300 {
		t.Errorf("a person's own upload: %d %s", status, raw)
	}
	if status, raw := d.ask(t, "agent", "PUT", "/v1/spaces/"+space+"/files/c.txt", "hello"); status != http.StatusForbidden ||
		!strings.Contains(string(raw), policy.ReasonToolNotAllowed) {
		t.Errorf("an agent's upload: %d %s", status, raw)
	}

	// A program that asks before it acts.
	for tool, want := range map[string]string{"saw": policy.ReasonDefaultAllow, "drill": policy.ReasonToolNotAllowed} {
		if got := d.evaluate(t, "agent", `{"action":"tool.call","room_id":"`+room+`","tool_name":"`+tool+`"}`); got.Code != want ||
			got.Blocked != (want == policy.ReasonToolNotAllowed) {
			t.Errorf("evaluate %s: got %+v, want %s", tool, got, want)
		}
	}
}

// failures are what results of operations and of runs say.
func (d *daemon) failures(t *testing.T) (said []string) {
	t.Helper()
	found, err := d.app.Log.Read(t.Context(), journal.Query{Workspace: id.DefaultWorkspace, Types: []string{run.EventFailed,
		policy.DeniedType}, Limit: journal.MaxRead})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		said = append(said, e.Type+" "+string(e.Data))
	}
	return said
}
