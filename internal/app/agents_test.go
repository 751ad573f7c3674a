package app_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentbox/internal/app"
	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/tool"
	"agentbox/internal/service/agents"
	"agentbox/internal/service/blueprints"
	"agentbox/internal/service/tools"
	"agentbox/internal/testkit/wall"
)

// agentText is the blueprint of the test's agent.
const agentText = "api_version: 1\nname: counter\nadapter: {kind: internal}\nmodels: {default: played}\n" +
	"artifacts: ['*.txt', 'out/**']\n"

// TestAnAgentWorksInASpace gives an agent a task whose model plays a cassette: it writes a file, is refused a command, and reports. The
// cassette knows each request in advance, so that the test also holds what the model is sent.
func TestAnAgentWorksInASpace(t *testing.T) {
	def, problems := blueprints.Read([]byte(agentText))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	config := app.Default(t.TempDir())
	config.Listen = "127.0.0.1:0"
	d := startTraced(t, config)
	d.ask("PUT", "/v1/models/played", `{"provider":"scripted","base_url":"counter","model":"any"}`, "")
	d.ask("PUT", "/v1/blueprints/counter", `{"text":`+jsonOf(t, agentText)+`}`, "")
	raw, status := d.send("POST", "/v1/blueprints/counter/runs", `{"task":"Count to three."}`, "")
	if status != 409 || !strings.Contains(string(raw), `"blueprint_unpinned"`) {
		t.Fatalf("a blueprint without pins: %d %s", status, raw)
	}
	locked, _ := d.ask("POST", "/v1/blueprints/lock", `{"text":`+jsonOf(t, agentText)+`}`, "")
	made, _ := d.ask("PUT", "/v1/blueprints/counter", `{"text":`+jsonOf(t, text(locked, "text"))+`}`, "")
	var entry struct {
		Locked event.Digest `json:"locked_sha256"`
	}
	if err := json.Unmarshal([]byte(jsonOf(t, made)), &entry); err != nil {
		t.Fatal(err)
	}
	offered, hash, err := tools.Offered(tools.OfferOf(def))
	if err != nil {
		t.Fatal(err)
	}
	in, _ := d.ask("POST", "/v1/spaces", `{"best_effort":true}`, "")
	mission := errand.Mission{Version: 1, Blueprint: "counter", Edition: 2, Locked: entry.Locked, Loop: agents.Hash(), Tools: hash,
		Space: id.Space(text(in, "id")), Task: "Count to three.", Artifacts: []string{"*.txt", "out/**"}}
	writeCassette(t, filepath.Join(config.DataDir, "cassettes"), def, append(offered, agents.ReadResult()), mission)

	run, _ := d.ask("POST", "/v1/blueprints/counter/runs",
		`{"task":"Count to three.","title":"count","space_id":"`+string(mission.Space)+`"}`, "")
	var ended struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Kept   struct {
			Files   int    `json:"files"`
			Bytes   int    `json:"size_bytes"`
			LeftOut int    `json:"left_out"`
			Error   string `json:"error"`
		} `json:"artifacts_kept"`
		Reported struct {
			Message string `json:"message"`
			Output  struct {
				Report string `json:"report"`
				Turns  int    `json:"turns"`
			} `json:"output"`
		} `json:"reported"`
	}
	waiting, stop := context.WithTimeout(t.Context(), wall.Patience)
	defer stop()
	if _, err := d.app.Runs.History.Wait(waiting, id.DefaultWorkspace, id.Run(text(run, "run_id"))); err != nil {
		t.Fatal(err)
	}
	raw, status = d.send("GET", "/v1/runs/"+text(run, "run_id"), "", "")
	if err := json.Unmarshal(raw, &ended); err != nil || status != 200 {
		t.Fatalf("%d %s: %v", status, raw, err)
	}
	if ended.Status != "succeeded" || ended.Reported.Output.Report != "Three." || ended.Reported.Output.Turns != 2 {
		t.Errorf("the run ended as %+v", ended)
	}
	file, status := d.send("GET", "/v1/spaces/"+string(mission.Space)+"/files/count.txt", "", "")
	if status != 200 || string(file) != "1 2 3\n" {
		t.Errorf("the agent's file: %d %q", status, file)
	}
	if g := ended.Kept; g.Files != 1 || g.Bytes != 6 || g.LeftOut != 0 || g.Error != "" {
		t.Errorf("the run keeps %+v, want the one file", g)
	}
	var listed struct {
		Artifacts []struct {
			ID   string `json:"artifact_id"`
			Path string `json:"path"`
		} `json:"artifacts"`
	}
	raw, status = d.send("GET", "/v1/artifacts?run_id="+text(run, "run_id"), "", "")
	if err := json.Unmarshal(raw, &listed); err != nil || status != 200 || len(listed.Artifacts) != 1 ||
		listed.Artifacts[0].Path != "count.txt" {
		t.Fatalf("the artifacts of the run: %d %s: %v", status, raw, err)
	}
	if raw, status = d.send("DELETE", "/v1/spaces/"+string(mission.Space), "", ""); status >= 300 {
		t.Fatalf("the space is not removed: %d %s", status, raw)
	}
	if raw, status = d.send("GET", "/v1/artifacts/"+listed.Artifacts[0].ID+"/content", "", ""); status != 200 || string(raw) != "1 2 3\n" {
		t.Errorf("the artifact after the end of its space: %d %q", status, raw)
	}
	if raw, status = d.send("DELETE", "/v1/blueprints/counter", "", ""); status >= 300 {
		t.Fatalf("the blueprint is not removed: %d %s", status, raw)
	}
	raw, status = d.send("POST", "/v1/blueprints/counter/runs", `{"task":"Count to three."}`, "")
	if status != 409 || !strings.Contains(string(raw), `"blueprint_removed"`) {
		t.Errorf("a task for a blueprint that was removed: %d %s", status, raw)
	}
}

// writeCassette records the conversation of the test.
func writeCassette(t *testing.T, folder string, def blueprint.Blueprint, offered []tool.Tool, m errand.Mission) {
	t.Helper()
	c := agents.Begin(def, offered, agents.CacheKey(m), m.Task)
	call := func(callID, name, arguments string) model.Part {
		return model.Part{Type: model.CallPart, Call: &model.Call{ID: callID, Name: name, Arguments: arguments}}
	}
	first := model.Answer{Stop: model.StopTools, Usage: model.Usage{Input: 10, Output: 5}, Parts: []model.Part{
		call("a", "createFile", `{"path":"count.txt","content":"1 2 3\n"}`), call("b", "shell", `{"command":"sudo true"}`),
	}}
	tape := model.Cassette{}
	record := func(a model.Answer) {
		r, err := model.Record(*c.Next().Request, &a, nil)
		if err != nil {
			t.Fatal(err)
		}
		tape.Recordings = append(tape.Recordings, r)
		c.Answered(a)
	}
	record(first)
	refused := tool.Refusal{Tool: "shell", Rule: "policy_forbids",
		Reason:  "sudo true: it exists to gain rights, or to reach another machine or the kernel",
		Instead: "Work as the space's own user on the space's own files; nothing here needs more rights."}
	c.Acted([]model.Result{{ID: "a", Text: "6 bytes written to count.txt\n"}, {ID: "b", Failed: true, Text: refused.Text()}})
	record(model.Answer{Stop: model.StopEnd, Usage: model.Usage{Input: 20, Output: 2}, Parts: []model.Part{model.Text("Three.")}})
	raw, err := tape.Write()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "counter.jsonl"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
