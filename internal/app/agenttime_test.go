package app_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/testkit/wall"
)

// fails waits for the end of a run, and returns its failure and how long models and tools worked for it.
func (p *played) fails(r id.Run) (failure string, worked time.Duration) {
	p.t.Helper()
	waiting, stop := context.WithTimeout(p.t.Context(), wall.Patience)
	defer stop()
	if _, err := p.d.app.Runs.History.Wait(waiting, id.DefaultWorkspace, r); err != nil {
		p.t.Fatal(err)
	}
	raw, _ := p.d.send("GET", "/v1/runs/"+string(r), "", "")
	var ended struct {
		Error    string `json:"error"`
		Reported struct {
			Output struct {
				Worked int64 `json:"worked_ms"`
			} `json:"output"`
		} `json:"reported"`
	}
	if err := json.Unmarshal(raw, &ended); err != nil {
		p.t.Fatal(err)
	}
	return ended.Error, time.Duration(ended.Reported.Output.Worked) * time.Millisecond
}

// TestTheTimeOfATool ends commands and code that work for longer than a call may, whatever timeout the model asks for.
func TestTheTimeOfATool(t *testing.T) {
	p := startPlayed(t, "limits: {tool_seconds: 1}\n")
	const ended = "exit code: 124\nit was ended at its time limit\n" +
		"failed: the command did not end within 1000 ms; it and its children were killed\n"
	p.plays(
		one("code", `{"language":"python","code":"while True: pass","timeout":20000}`, ended+"stderr:\nTraceback (most recent call last):\n"+
			"  File \"<cell 1>\", line 1, in <module>\n    while True: pass\nKeyboardInterrupt\n"+
			"agentbox: the cell was interrupted; the context keeps its variables\n", false),
		one("shell", `{"command":"while true; do :; done"}`, ended, false),
		one("shell", `{"command":"while true; do :; done","timeout":30000}`, ended, false),
		one("shell", `{"command":"echo done"}`, "exit code: 0\nstdout:\ndone\n", true),
	)
}

// TestTheTimeOfAnAgent ends a run whose tools have worked for as long as they may. Time in which it waits for a person does not count, also
// where the daemon is stopped meanwhile.
func TestTheTimeOfAnAgent(t *testing.T) {
	p := startPlayed(t, "limits: {seconds: 2}\n")
	ask := one("ask_person", `{"question":"Which colour?"}`, "A person has answered. Their words follow.", true)
	ask.heard = []string{"Green."}
	busy := one("code", `{"language":"python","code":"while True: pass"}`, "", false)
	busy.results = nil
	p.recordAll(p.talk(task, "", ask, busy))
	run := p.start()
	said := func() string {
		raw, _ := p.d.send("GET", "/v1/threads/"+p.thread+"/messages", "", "")
		return string(raw)
	}
	p.until(func() bool { return strings.Contains(said(), "Which colour?") })
	began := time.Now()
	p.d.stop()
	p.begin()
	p.until(func() bool { return time.Since(began) > 3*time.Second }) // longer than the run may work
	p.d.ask("POST", "/v1/threads/"+p.thread+"/messages", `{"content_md":"Green."}`, "")
	failure, worked := p.fails(run)
	if failure != "time_limit" || worked < 2*time.Second || worked > 20*time.Second {
		t.Errorf("the run ended as %q after %s", failure, worked)
	}
}

// TestAnAgentCallsToolsInPlainText works with a model whose entry says that it knows no tool calls. Malformed operations are skipped.
func TestAnAgentCallsToolsInPlainText(t *testing.T) {
	p := startPlayed(t, "")
	p.d.ask("PUT", "/v1/models/played", `{"provider":"scripted","base_url":"counter","model":"any","no_tools":true}`, "")
	p.lock(agentText + "description: again\n")
	k := p.talk(task, "Three.", turn{
		says: "I write it.\n```operations\n" + `{"protocolVersion":"1.0","operations":[{"type":"createFile","id":"w","path":"a.txt",` +
			`"content":"1"},{"id":"none"},{"type":"readFile","path":"a.txt"}]}` + "\n```\n",
		results: []model.Result{{ID: "w", Text: "1 bytes written to a.txt\n"},
			{ID: "none", Failed: true, Text: "not made: type of an operation is the name of a tool"}, {ID: "op-3", Text: "1"}},
	})
	k.protocol = "text"
	p.recordAll(k)
	run := p.start()
	p.ends(run)
	steps, _ := p.d.send("GET", "/v1/runs/"+string(run)+"/steps", "", "")
	if !strings.Contains(string(steps), `"refused":{"1":"not made: type of an operation is the name of a tool"}`) {
		t.Errorf("the operation that was skipped is not recorded: %s", steps)
	}
}
