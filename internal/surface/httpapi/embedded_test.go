package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"agentbox/internal/app"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
)

// TestAnArchivedWorkspaceDoesNotEndTheEngine archives a workspace in which a run waits: the engine within the daemon leaves it alone,
// records nothing in it, and executes the runs of others.
func TestAnArchivedWorkspaceDoesNotEndTheEngine(t *testing.T) {
	order := func(space string) string {
		return `{"room_id":"room_00000000000000000000000000","input":{"protocolVersion":"1.0","space_id":"` + space +
			`","operations":[{"type":"message","content":"hello"}]}}`
	}
	c := app.Default(t.TempDir())
	c.Engine = app.EngineExternal // until the workspace is archived
	d, stop := serveDaemon(t, c)
	d.keys["late"] = d.must(t, "POST", "/v1/workspaces", `{"workspace_id":"ws_aaa"}`, "key")
	status, raw := d.ask(t, "late", "POST", "/v1/spaces", `{}`)
	var there space.Space
	if err := json.Unmarshal(raw, &there); err != nil || status != http.StatusCreated {
		t.Fatalf("%d %s", status, raw)
	}
	status, raw = d.ask(t, "late", "POST", "/v1/runs", order(string(there.ID)))
	var left run.Run
	if err := json.Unmarshal(raw, &left); err != nil || status != http.StatusCreated || left.Work == "" {
		t.Fatalf("%d %s", status, raw)
	}
	if status, raw := d.ask(t, "late", "POST", "/v1/workspaces/ws_aaa/archive", `{}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, raw)
	}
	head, err := d.app.Log.Head(t.Context(), "ws_aaa")
	if err != nil {
		t.Fatal(err)
	}
	stop()

	c.Engine = app.EngineEmbedded
	d, stop = serveDaemon(t, c)
	defer stop()
	here := d.must(t, "POST", "/v1/spaces", `{}`, "id")
	for range 2 { // between the two it has looked at every workspace
		d.ended(t, id.Run(d.must(t, "POST", "/v1/runs", order(here), "run_id")))
	}
	if now, err := d.app.Log.Head(t.Context(), "ws_aaa"); err != nil || now != head {
		t.Errorf("the log of the archived workspace went from %d to %d, %v", head, now, err)
	}
}

// ended waits until a run of the default workspace has ended.
func (d *daemon) ended(t *testing.T, r id.Run) {
	t.Helper()
	for {
		seq, err := d.app.Log.Head(t.Context(), id.DefaultWorkspace)
		if err != nil {
			t.Fatal(err)
		}
		found, err := d.app.Log.Read(t.Context(), journal.Query{Workspace: id.DefaultWorkspace, Run: r, Types: []string{run.EventCompleted,
			run.EventFailed}, Limit: 1})
		if err == nil && len(found) == 0 {
			err = d.app.Log.Wait(t.Context(), id.DefaultWorkspace, seq)
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 {
			return
		}
	}
}

// TestARunThatAsksKeepsNobodyWaiting lets runs of one workspace wait for a person, as many as may run there: the engine within the daemon
// executes those of another one meanwhile, and the ones that waited when they are answered.
func TestARunThatAsksKeepsNobodyWaiting(t *testing.T) {
	const waiting = 5 // as many as run in a workspace at the same time
	d, stop := serveDaemon(t, app.Default(t.TempDir()))
	defer stop()
	d.keys["busy"] = d.must(t, "POST", "/v1/workspaces", `{"workspace_id":"ws_aaa"}`, "key")
	for range waiting + 1 {
		made := func(path, body, field string) string {
			status, raw := d.ask(t, "busy", "POST", path, body)
			var answer map[string]any
			if err := json.Unmarshal(raw, &answer); err != nil || status != http.StatusCreated {
				t.Fatalf("%d %s", status, raw)
			}
			return answer[field].(string)
		}
		space := made("/v1/spaces", `{}`, "id")
		made("/v1/runs", `{"room_id":"room_00000000000000000000000000","input":{"protocolVersion":"1.0","space_id":"`+space+
			`","operations":[{"type":"shell","command":"rm -r scratch"}]}}`, "run_id")
	}
	questions := func() (open []string) {
		status, raw := d.ask(t, "busy", "GET", "/v1/approvals?status=pending", "")
		var answer struct {
			Approvals []struct {
				ID string `json:"approval_id"`
			} `json:"approvals"`
		}
		if err := json.Unmarshal(raw, &answer); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s", status, raw)
		}
		for _, a := range answer.Approvals {
			open = append(open, a.ID)
		}
		return open
	}
	d.until(t, "ws_aaa", func() bool { return len(questions()) == waiting })
	d.ended(t, id.Run(d.must(t, "POST", "/v1/runs",
		`{"room_id":"room_00000000000000000000000000","input":{"protocolVersion":"1.0","space_id":"`+d.must(t, "POST", "/v1/spaces", `{}`, "id")+
			`","operations":[{"type":"message","content":"hello"}]}}`, "run_id")))
	open := questions()
	if len(open) != waiting {
		t.Fatalf("%d questions are open, want %d: one more than may run waits", len(open), waiting)
	}
	if status, raw := d.ask(t, "busy", "POST", "/v1/approvals/"+open[0]+"/decide", `{"decision":"approve"}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, raw)
	}
	d.until(t, "ws_aaa", func() bool { return len(questions()) == waiting })
}

// until looks at something again with each event of a workspace, until it is so.
func (d *daemon) until(t *testing.T, ws id.Workspace, so func() bool) {
	t.Helper()
	for {
		seq, err := d.app.Log.Head(t.Context(), ws)
		if err != nil {
			t.Fatal(err)
		}
		if so() {
			return
		}
		if err := d.app.Log.Wait(t.Context(), ws, seq); err != nil {
			t.Fatal(err)
		}
	}
}
