package app_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/testkit/wall"
)

// cautiousAgent is miniAgent that asks before it uses a tool, by the name that its model calls. A tool runs its command.
var cautiousAgent = strings.Replace(miniAgent, "        done = subprocess.run(", `        given = json.loads(c["function"]["arguments"])
        body = json.dumps({"id": c["id"], "tool": c["function"]["name"], "input": given}).encode()
        try:
            verdict = json.load(urllib.request.urlopen(urllib.request.Request(os.environ["AGENTBOX_PERMISSIONS_URL"], body)))
        except urllib.error.HTTPError as e:
            verdict = {"allow": False, "reason": "%d %s" % (e.code, e.read())}
        if not verdict["allow"]:
            talk.append({"role": "tool", "tool_call_id": c["id"], "content": "REFUSED " + verdict["reason"]})
            continue
        done = subprocess.run(`, 1)

const cautiousBlueprint = "adapter: {kind: external_cli, program: custom, wire: chat, command: [python3, agent.py, \"{task}\"], " +
	"permissions: ask}\n"

// startCautious is a daemon with an agent that asks, in a space whose policy knows some of its tools.
func startCautious(t *testing.T, script func(n int, tools []string) string) *outsider {
	o := startOutsider(t, startVendor(t, script), "", cautiousBlueprint)
	o.tools("custom.look", "custom.nuke")
	o.put("agent.py", cautiousAgent)
	return o
}

// tools moves the agent to a space whose policy allows one tool and refuses another.
func (o *outsider) tools(allowed, refused string) {
	o.t.Helper()
	in, _ := o.ask("POST", "/v1/spaces", jsonOf(o.t, map[string]any{"runtime": "heavy", "best_effort": true, "policy": "permissive",
		"limits": map[string]any{"memory_bytes": 2 << 30, "pids": 256}, "env": map[string]string{"SERVICE_KEY": secretValue},
		"policy_overrides": map[string]any{"allow": map[string]any{"tools": []string{allowed}},
			"deny": map[string]any{"tools": []string{refused}}},
	}), "")
	o.space = text(in, "id")
}

// question waits until a run asks a person.
func (o *outsider) question(r id.Run) map[string]any {
	o.t.Helper()
	for deadline := time.Now().Add(wall.Patience); ; <-time.After(50 * time.Millisecond) { // a person who looks again and again
		if open := o.questions(r, "pending"); len(open) > 0 {
			return open[0]
		}
		if time.Now().After(deadline) {
			o.t.Fatal("nobody is asked: " + o.standing(r))
		}
	}
}

func (o *outsider) questions(r id.Run, status string) (found []map[string]any) {
	o.t.Helper()
	raw, code := o.send("GET", "/v1/approvals?run_id="+string(r)+"&status="+status, "", "")
	var list struct {
		Approvals []map[string]any `json:"approvals"`
	}
	if err := json.Unmarshal(raw, &list); err != nil || code != http.StatusOK {
		o.t.Fatalf("%d %s: %v", code, raw, err)
	}
	return list.Approvals
}

func (o *outsider) decide(q map[string]any, body string) {
	o.t.Helper()
	o.ask("POST", "/v1/approvals/"+text(q, "approval_id")+"/decide", body, "")
}

// withdrawn waits until no question of a run is open, and holds that the last one was taken back.
func (o *outsider) withdrawn(r id.Run) {
	o.t.Helper()
	for deadline := time.Now().Add(wall.Patience); len(o.questions(r, "withdrawn")) == 0; <-time.After(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			o.t.Fatal("the question stays open: " + o.standing(r))
		}
	}
	if open := o.questions(r, "pending"); len(open) > 0 {
		o.t.Errorf("open questions: %v", open)
	}
}

// Secrets that a question must not show: a key by its form, and the value of a secret variable of the space.
const (
	secretValue = "s3cr3t-value"
	secretInput = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789 and " + secretValue
)

// TestTheQuestionsOfAnExternalAgent lets an agent ask about its tools: one that policy allows, one that a person approves for the run, one
// that a person denies, one that policy refuses, and one that is too long for a person. The agent hears of each and goes on.
func TestTheQuestionsOfAnExternalAgent(t *testing.T) {
	const command = "mkdir -p made"
	wants := []struct {
		tool, command, more string
		status              string // of the recorded call
	}{
		{"look", "true", "", "succeeded"}, {"sh", command, secretInput, "succeeded"}, {"sh", command, secretInput, "succeeded"},
		{"wipe", "rm -rf .", "", "failed"}, {"nuke", "true", "", "failed"},
		{"look", "true", strings.Repeat("x", 40<<10), "succeeded"}, {"sh", "true", strings.Repeat("x", 40<<10), "failed"},
	}
	o := startCautious(t, func(n int, _ []string) string {
		if n == len(wants) {
			return says(codeDone)
		}
		return calls(n, wants[n].tool, map[string]any{"command": wants[n].command, "more": wants[n].more})
	})
	r := o.begin("go on")
	q := o.question(r)
	shown := jsonOf(t, q["question"])
	if !strings.Contains(shown, "let a coding agent use a tool: "+command) || !strings.Contains(shown, "custom.sh") ||
		!strings.Contains(shown, "[redacted]") || strings.Contains(shown, "sk-ant-") || strings.Contains(shown, secretValue) ||
		text(q, "action") != "agent.tool" {
		t.Errorf("a person is shown %s", jsonOf(t, q))
	}
	o.decide(q, `{"decision":"approve","scope":"run","uses":2,"expires_at":"`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`"}`)
	if q = o.question(r); !strings.Contains(jsonOf(t, q["question"]), "custom.wipe") {
		t.Errorf("the second question is %s", jsonOf(t, q))
	}
	o.decide(q, `{"decision":"deny","reason":"not today"}`)
	end := o.wait(r)
	if end.Status != "succeeded" || end.Reported.Output.Report != codeDone {
		t.Fatalf("the run ended as %+v; it printed %s", end, o.printed(end))
	}
	if got := o.shell("ls -d made"); !strings.Contains(got, "made\\n") {
		t.Errorf("it did %s", got)
	}
	last := o.v.bodies[len(o.v.bodies)-1]
	for _, want := range []string{"REFUSED a person refused it: not today", "the policy refuses custom.nuke", "too long to be shown"} {
		if !strings.Contains(last, want) {
			t.Errorf("the model does not hear %q: %s", want, last)
		}
	}
	var recorded struct {
		Calls []struct {
			Tool   string         `json:"tool_name"`
			Step   string         `json:"step_id"`
			Status string         `json:"status"`
			Input  map[string]any `json:"input"`
		} `json:"tool_calls"`
	}
	raw, _ := o.send("GET", "/v1/toolcalls?run_id="+string(r), "", "")
	if err := json.Unmarshal(raw, &recorded); err != nil {
		t.Fatal(err)
	}
	var turns struct {
		Steps []struct {
			ID    string         `json:"step_id"`
			Kind  string         `json:"kind"`
			Input map[string]any `json:"input"`
		} `json:"steps"`
	}
	steps, _ := o.send("GET", "/v1/runs/"+string(r)+"/steps", "", "")
	if err := json.Unmarshal(steps, &turns); err != nil {
		t.Fatal(err)
	}
	at := map[string]float64{}
	for _, s := range turns.Steps {
		if n, ok := s.Input["turn"].(float64); ok {
			at[s.ID] = n
		}
	}
	seen := 0
	for _, c := range recorded.Calls {
		turn, ok := at[c.Step]
		if !ok {
			continue // the program itself
		}
		seen++
		if want := wants[int(turn)]; c.Tool != "custom."+want.tool || c.Status != want.status {
			t.Errorf("turn %v: %+v, want %+v", turn, c, want)
		}
	}
	if seen != len(wants) {
		t.Errorf("%d calls are recorded: %s", seen, raw)
	}
	if strings.Contains(string(raw), secretValue) || strings.Contains(string(raw), "sk-ant-") {
		t.Errorf("the record has a secret: %s", raw)
	}
	o.kept()
}

// TestAnOpenQuestionEndsWithItsRun stops a run, throws the kill switch and ends the daemon while a person is asked. Nothing is done, and
// nobody can answer any more.
func TestAnOpenQuestionEndsWithItsRun(t *testing.T) {
	o := startCautious(t, func(int, []string) string { return calls(0, "sh", map[string]any{"command": "touch done.txt"}) })
	o.put("probe.py", `
import os, json, urllib.request
url = [l for l in open("/proc/%s/environ" % os.popen("pgrep -f agent.py").read().split()[0]).read().split("\0") if "PERMISSIONS" in l]
ask = urllib.request.Request(url[0].partition("=")[2], json.dumps({"id": "p", "tool": "look", "input": {}}).encode())
print(urllib.request.urlopen(ask).read().decode())
`)
	begin := func() (id.Run, map[string]any) {
		r := o.begin("go on")
		return r, o.question(r)
	}
	r, q := begin()
	if got := o.shell("python3 probe.py"); !strings.Contains(got, `{\"allow\":true}`) {
		t.Errorf("another process of the space asks: %s", got)
	}
	o.ask("POST", "/v1/runs/"+string(r)+"/cancel", `{}`, "")
	o.withdrawn(r)
	answer := "/v1/approvals/" + text(q, "approval_id") + "/decide"
	if raw, status := o.send("POST", answer, `{"decision":"approve"}`, ""); status != http.StatusConflict {
		t.Errorf("an answer afterwards: %d %s", status, raw)
	}
	r, _ = begin()
	o.ask("PUT", "/v1/kill-switch", `{"on":true,"reason":"a test"}`, "")
	o.withdrawn(r)
	o.ask("PUT", "/v1/kill-switch", `{"on":false,"reason":"a test"}`, "")
	if end := o.wait(r); end.Status == "succeeded" {
		t.Errorf("after the kill switch: %+v", end)
	}
	r, _ = begin()
	o.stop()
	next := &outsider{traceDaemon: startTraced(t, o.config), v: o.v, space: o.space}
	if end := next.wait(r); end.Status != "failed" || end.Error != "agent_interrupted" {
		t.Errorf("after the daemon: %+v", end)
	}
	next.withdrawn(r)
	if file, status := next.send("GET", "/v1/spaces/"+next.space+"/files/done.txt", "", ""); status != http.StatusNotFound {
		t.Errorf("it was done: %d %s", status, file)
	}
	next.kept()
}

// TestCodingAgentsAsk lets the coding agents of npm ask about their tools. scripts/agents brings them and starts this test.
func TestCodingAgentsAsk(t *testing.T) {
	root := os.Getenv("AGENTBOX_AGENTS_ROOT")
	if root == "" {
		t.Skip("the agents are not here: run scripts/agents test")
	}
	for program, c := range map[string]struct{ tool, argument, name string }{
		"claude": {"Bash", "command", "claude.Bash"}, "opencode": {"bash", "command", "opencode.bash"},
		"codex": {"exec_command", "cmd", "codex.commandExecution"},
	} {
		script := func(commands ...string) func(n int, tools []string) string {
			return func(n int, tools []string) string {
				switch {
				case !strings.Contains(strings.Join(tools, " ")+" ", c.tool+" "):
					return says("A title")
				case n < len(commands):
					return calls(n, c.tool, map[string]any{c.argument: commands[n]})
				}
				return says(codeDone)
			}
		}
		begin := func(t *testing.T, allowed string, commands ...string) (*outsider, id.Run) {
			o := startOutsider(t, startVendor(t, script(commands...)), root, "adapter: {kind: external_cli, program: "+program+
				", permissions: ask}\n")
			o.tools(allowed, "none")
			o.put("calc.py", brokenCode)
			o.put("test_calc.py", codeTest)
			return o, o.begin(codeTask)
		}
		t.Run(program+" with a tool that policy allows", func(t *testing.T) {
			o, r := begin(t, c.name, "python3 test_calc.py", codeFix, "python3 test_calc.py")
			o.fixed(r, o.wait(r), 4)
			if asked := o.questions(r, "pending"); len(asked) > 0 {
				t.Errorf("a person is asked: %v", asked)
			}
			if raw, _ := o.send("GET", "/v1/toolcalls?run_id="+string(r), "", ""); strings.Count(string(raw), `"`+c.name+`"`) != 3 {
				t.Errorf("the calls are %s", raw)
			}
		})
		t.Run(program+" with a person", func(t *testing.T) {
			o, r := begin(t, "none", "touch denied.txt", codeFix)
			q := o.question(r)
			if shown := jsonOf(t, q["question"]); !strings.Contains(shown, "touch denied.txt") || !strings.Contains(shown, c.name) {
				t.Errorf("a person is shown %s", shown)
			}
			o.decide(q, `{"decision":"deny","reason":"write no such file"}`)
			q = o.question(r)
			if shown := jsonOf(t, q["question"]); !strings.Contains(shown, "a - b/a + b") {
				t.Errorf("a person is shown %s", shown)
			}
			o.decide(q, `{"decision":"approve"}`)
			o.fixed(r, o.wait(r), 3)
			if _, status := o.send("GET", "/v1/spaces/"+o.space+"/files/denied.txt", "", ""); status != http.StatusNotFound {
				t.Errorf("the denied file is there: %d", status)
			}
			if last := o.v.bodies[len(o.v.bodies)-1]; !strings.Contains(last, "write no such file") {
				t.Errorf("the model does not hear why: %s", last)
			}
		})
		t.Run(program+" that is stopped", func(t *testing.T) {
			o, r := begin(t, "none", "touch denied.txt")
			o.question(r)
			o.ask("POST", "/v1/runs/"+string(r)+"/cancel", `{}`, "")
			o.withdrawn(r)
			if end := o.wait(r); end.Status != "cancelled" {
				t.Errorf("the run ended as %+v", end)
			}
		})
	}
}
