package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/app"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/external"
	"agentbox/internal/testkit/wall"
)

// realKey is the key of the scripted vendor. Nothing of a space may ever see it.
const realKey = "sk-live-9f83hf73hf73hf7s"

// vendor is a scripted server of chat completions. Its answers depend on the number of tool results in the conversation.
type vendor struct {
	*httptest.Server
	script func(n int, tools []string) string // the chunk of the answer

	mu     sync.Mutex
	bodies []string
	wrong  []string
}

func startVendor(t *testing.T, script func(n int, tools []string) string) *vendor {
	t.Helper()
	v := &vendor{script: script}
	v.Server = httptest.NewServer(v)
	t.Cleanup(v.Close)
	return v
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct {
			Role string `json:"role"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
	}
	var raw json.RawMessage
	err := json.NewDecoder(r.Body).Decode(&raw)
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.bodies = append(v.bodies, string(raw))
	if err != nil || r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer "+realKey {
		v.wrong = append(v.wrong, fmt.Sprint(r.Method, r.URL, r.Header, err))
		http.Error(w, "{}", http.StatusBadRequest)
		return
	}
	n := 0
	for _, m := range body.Messages {
		if m.Role == "tool" {
			n++
		}
	}
	var tools []string
	for _, one := range body.Tools {
		tools = append(tools, one.Function.Name)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "data: %s\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":7}}\n\ndata: [DONE]\n\n",
		v.script(n, tools))
}

// says is the chunk of an answer of text, calls that of one with a call of a tool.
func says(text string) string {
	raw, _ := json.Marshal(text)
	return `{"choices":[{"index":0,"delta":{"role":"assistant","content":` + string(raw) + `},"finish_reason":"stop"}]}`
}

func calls(n int, name string, arguments map[string]any) string {
	inner, _ := json.Marshal(arguments)
	outer, _ := json.Marshal(string(inner))
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_%d","type":"function",`+
		`"function":{"name":%q,"arguments":%s}}]},"finish_reason":"tool_calls"}]}`, n, name, outer)
}

// outsider is a daemon with a space, a model at the vendor, and the blueprint of an external agent.
type outsider struct {
	*traceDaemon
	v      *vendor
	config app.Config
	space  string
}

func startOutsider(t *testing.T, v *vendor, root, blueprint string) *outsider {
	t.Helper()
	config := app.Default(t.TempDir())
	config.Listen, config.Floating, config.RootFS = "127.0.0.1:0", true, root
	o := &outsider{traceDaemon: startTraced(t, config), v: v, config: config}
	if _, status := o.send("PUT", "/v1/model-keys/vendor", `{"value":"`+realKey+`"}`, ""); status >= 300 {
		t.Fatalf("the key: %d", status)
	}
	o.ask("PUT", "/v1/models/m1", `{"provider":"openai","dialect":"generic","base_url":"`+v.URL+`/v1","model":"scripted","key":"vendor",`+
		`"allow_private":true}`, "")
	o.blueprint("fixer", blueprint)
	in, _ := o.ask("POST", "/v1/spaces", `{"runtime":"heavy","best_effort":true,"policy":"permissive",`+
		`"limits":{"memory_bytes":2147483648,"pids":256}}`, "")
	o.space = text(in, "id")
	return o
}

func (o *outsider) blueprint(name, rest string) {
	o.t.Helper()
	o.ask("PUT", "/v1/blueprints/"+name, `{"text":`+jsonOf(o.t, "api_version: 1\nname: "+name+
		"\nmodels: {default: m1}\npolicy: permissive\n"+rest)+`}`, "")
}

func (o *outsider) put(path, content string) {
	o.t.Helper()
	o.ask("POST", "/v1/spaces/"+o.space+"/runs", jsonOf(o.t, map[string]any{"protocolVersion": "1.0", "operations": []any{
		map[string]any{"type": "createFile", "path": path, "content": content}}}), "")
}

// outcome is how a run of an external agent ended.
type outcome struct {
	Status   string `json:"status"`
	Error    string `json:"error"`
	Reported struct {
		Message string `json:"message"`
		Summary string `json:"summary"`
		Output  struct {
			Report   string `json:"report"`
			Run      string `json:"space_run_id"`
			ExitCode *int   `json:"exit_code"`
			Requests int    `json:"model_requests"`
		} `json:"output"`
	} `json:"reported"`
}

func (o *outsider) begin(task string) id.Run { return o.give("fixer", task) }

func (o *outsider) give(blueprint, task string) id.Run {
	o.t.Helper()
	made, _ := o.ask("POST", "/v1/blueprints/"+blueprint+"/runs", `{"task":`+jsonOf(o.t, task)+`,"space_id":"`+o.space+`"}`, "")
	return id.Run(text(made, "run_id"))
}

func (o *outsider) wait(r id.Run) (end outcome) {
	o.t.Helper()
	waiting, stop := context.WithTimeout(o.t.Context(), wall.Patience)
	defer stop()
	if doc, err := o.app.Runs.History.Wait(waiting, id.DefaultWorkspace, r); err != nil || !doc.Status.Ended() {
		o.t.Fatalf("the run is %s, %v; %s", doc.Status, err, o.standing(r))
	}
	raw, status := o.send("GET", "/v1/runs/"+string(r), "", "")
	if err := json.Unmarshal(raw, &end); err != nil || status != 200 {
		o.t.Fatalf("%d %s: %v", status, raw, err)
	}
	return end
}

// standing tells how far a run is that does not end.
func (o *outsider) standing(r id.Run) string {
	o.t.Helper()
	told := ""
	raw, _ := o.send("GET", "/v1/toolcalls?run_id="+string(r), "", "")
	told += string(raw)
	raw, _ = o.send("GET", "/v1/spaces/"+o.space+"/runs", "", "")
	told += string(raw)
	for _, one := range strings.Split(string(raw), `"run_id":"`)[1:] {
		frames, _ := o.app.Runs.Live.Read(o.t.Context(), id.Run(one[:strings.Index(one, `"`)]), 1, 1000)
		for _, f := range frames {
			told += fmt.Sprintf("\n%s: %.2000s", f.Kind, f.Data)
		}
	}
	o.v.mu.Lock()
	defer o.v.mu.Unlock()
	return told + fmt.Sprintf("\n%d requests at the vendor", len(o.v.bodies))
}

// printed is what the program printed, for messages of a test.
func (o *outsider) printed(end outcome) string {
	raw, _ := o.send("GET", "/v1/runs/"+end.Reported.Output.Run+"/events", "", "")
	return string(raw)
}

// kept holds that the vendor was asked with its key, and that nobody else has it.
func (o *outsider) kept() {
	o.t.Helper()
	o.v.mu.Lock()
	defer o.v.mu.Unlock()
	for _, one := range o.v.wrong {
		o.t.Errorf("the vendor was asked wrongly: %s", one)
	}
	if raw, status := o.send("GET", "/v1/events?limit=200", "", ""); status != http.StatusOK || strings.Contains(string(raw), realKey) {
		o.t.Errorf("the log has the key, or cannot be read: %d", status)
	}
}

const (
	brokenCode = "def add(a, b):\n    return a - b\n"
	fixedCode  = "def add(a, b):\n    return a + b\n"
	codeTest   = "import unittest\nfrom calc import add\n\n\nclass T(unittest.TestCase):\n    def test_add(self):\n" +
		"        self.assertEqual(add(2, 3), 5)\n\n\nunittest.main()\n"
	codeTask = "Fix calc.py so that python3 test_calc.py passes."
	codeFix  = "sed -i 's/a - b/a + b/' calc.py"
	codeDone = "I fixed add: it subtracted."
)

// miniAgent is a coding agent in a few lines: it runs the commands that its model asks for. It looks for what it must not find.
const miniAgent = `
import json, os, subprocess, sys, urllib.request
url, model = os.environ["AGENTBOX_MODEL_URL"], os.environ["AGENTBOX_MODEL"]
talk = [{"role": "user", "content": sys.argv[1]}]
tools = [{"type": "function", "function": {"name": "sh", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}}]
while True:
    ask = urllib.request.Request(url + "/chat/completions", json.dumps({"model": model, "messages": talk, "tools": tools}).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer none"})
    try:
        said = json.load(urllib.request.urlopen(ask))["choices"][0]["message"]
    except urllib.error.HTTPError as e:
        print(e.code, e.headers["X-Should-Retry"], json.load(e)["error"]["code"])
        sys.exit(3)
    talk.append(said)
    if not said.get("tool_calls"):
        print(said["content"])
        break
    for c in said["tool_calls"]:
        done = subprocess.run(json.loads(c["function"]["arguments"])["command"], shell=True, capture_output=True, text=True)
        talk.append({"role": "tool", "tool_call_id": c["id"], "content": done.stdout + done.stderr + "exit %d" % done.returncode})
`

const miniBlueprint = "adapter: {kind: external_cli, program: custom, wire: chat, command: [python3, agent.py, \"{task}\"]}\n"

// fixes is the script of a model that fixes the code by commands.
func fixes(tool, argument string) func(int, []string) string {
	return func(n int, _ []string) string {
		commands := []string{"python3 test_calc.py", codeFix, "python3 test_calc.py"}
		if n < len(commands) {
			return calls(n, tool, map[string]any{argument: commands[n]})
		}
		return says(codeDone)
	}
}

// fixed holds that the agent has done its task, and that each of its questions is a recorded step of its run.
func (o *outsider) fixed(r id.Run, end outcome, requests int) {
	o.t.Helper()
	if end.Status != "succeeded" || end.Reported.Output.Report != codeDone || end.Reported.Output.Requests < requests {
		o.t.Fatalf("the run ended as %+v; it printed %s", end, o.printed(end))
	}
	file, status := o.send("GET", "/v1/spaces/"+o.space+"/files/calc.py", "", "")
	if status != 200 || string(file) != fixedCode {
		o.t.Errorf("the file: %d %q", status, file)
	}
	raw, _ := o.send("GET", "/v1/runs/"+string(r)+"/steps", "", "")
	if n := strings.Count(string(raw), `"kind":"turn"`); n != end.Reported.Output.Requests {
		o.t.Errorf("%d steps for %d questions: %s", n, end.Reported.Output.Requests, raw)
	}
	o.kept()
}

// TestAnExternalAgent gives a task to a program in a space, which asks the daemon for its model without a key and without a network.
func TestAnExternalAgent(t *testing.T) {
	o := startOutsider(t, startVendor(t, fixes("sh", "command")), "", miniBlueprint)
	o.put("calc.py", brokenCode)
	o.put("test_calc.py", codeTest)
	o.put("agent.py", miniAgent)
	r := o.begin(codeTask)
	o.fixed(r, o.wait(r), 4)
	if got := o.v.bodies[3]; !strings.Contains(got, "exit 1") || !strings.Contains(got, "exit 0") || !strings.Contains(got, codeTask) {
		t.Errorf("the model was told %s", got)
	}
}

// endless is the script of a model that always wants a command.
func endless(command string) func(int, []string) string {
	return func(n int, _ []string) string { return calls(n, "sh", map[string]any{"command": command}) }
}

// TestBoundsOfAnExternalAgent holds the limits of the blueprint: of requests, tokens, money and time; and the length of a task.
func TestBoundsOfAnExternalAgent(t *testing.T) {
	o := startOutsider(t, startVendor(t, endless("true")), "", miniBlueprint)
	o.put("agent.py", miniAgent)
	o.put("sleep.py", "import time\nprint('asleep', flush=True)\ntime.sleep(600)\n")
	for name, c := range map[string]struct {
		rest, failure, message string
		vendor, exit           int
	}{
		"steps":  {miniBlueprint + "limits: {steps: 2}\n", "agent_failed", "exit code 3", 2, 3},
		"tokens": {miniBlueprint + "limits: {tokens: 500}\n", "agent_failed", "exit code 3", 0, 3},
		"money":  {miniBlueprint + "limits: {cost: \"0.01\"}\n", "agent_failed", "exit code 3", 0, 3},
		"seconds": {"adapter: {kind: external_cli, program: custom, wire: chat, command: [python3, sleep.py]}\nlimits: {seconds: 2}\n",
			"time_exceeded", "did not end within 2000 ms", 0, 124},
	} {
		o.blueprint(name, c.rest)
		before := len(o.v.bodies)
		end := o.wait(o.give(name, "go on"))
		if end.Status != "failed" || end.Error != c.failure || !strings.Contains(end.Reported.Message, c.message) ||
			end.Reported.Output.ExitCode == nil || *end.Reported.Output.ExitCode != c.exit || len(o.v.bodies)-before != c.vendor {
			t.Errorf("%s: %+v, %d requests at the vendor; %s", name, end, len(o.v.bodies)-before, o.printed(end))
		}
		if c.exit == 3 && end.Reported.Output.Report != "429 false insufficient_quota" {
			t.Errorf("%s: the program was told %q", name, end.Reported.Output.Report)
		}
	}
	body := `{"space_id":"` + o.space + `","task":"` + strings.Repeat("x", external.MaxTask) + `"}`
	if raw, status := o.send("POST", "/v1/blueprints/fixer/runs", body, ""); status != 202 && status != 201 && status != 200 {
		t.Errorf("the longest task: %d %s", status, raw)
	}
	body = strings.Replace(body, "xx", "xxx", 1)
	if raw, status := o.send("POST", "/v1/blueprints/fixer/runs", body, ""); status != 400 || !strings.Contains(string(raw), "task_too_long") {
		t.Errorf("a longer task: %d %s", status, raw)
	}
	o.kept()
}

// shell runs a command in the space and returns what it printed.
func (o *outsider) shell(command string) string {
	o.t.Helper()
	done, _ := o.ask("POST", "/v1/spaces/"+o.space+"/runs", jsonOf(o.t, map[string]any{"protocolVersion": "1.0", "operations": []any{
		map[string]any{"type": "shell", "command": command}}}), "")
	return jsonOf(o.t, done)
}

// probe is a program that asks on the port of which the agent has left a note.
const probe = `
import json, urllib.request
url = open("url.txt").read()
ask = urllib.request.Request(url + "/chat/completions", json.dumps({"messages": [{"role": "user", "content": "mine"}]}).encode())
try: print("ANSWER", json.load(urllib.request.urlopen(ask))["choices"][0]["message"]["content"])
except Exception as e: print("NOTHING", e)
`

// TestTheWireOfARun holds who reaches the wire: every process of the space while the program runs, whose questions count for the run; and
// nobody before it, after it, or from outside. Stop ends it.
func TestTheWireOfARun(t *testing.T) {
	o := startOutsider(t, startVendor(t, func(int, []string) string { return says("yes") }), "",
		"adapter: {kind: external_cli, program: custom, wire: chat, command: [python3, wait.py]}\nlimits: {steps: 2}\n")
	o.put("probe.py", probe)
	o.put("wait.py", "import os, time\nopen('url.new', 'w').write(os.environ['AGENTBOX_MODEL_URL'])\nos.rename('url.new', 'url.txt')\n"+
		"time.sleep(600)\n")
	r := o.begin("wait")
	for deadline := time.Now().Add(wall.Patience); ; {
		if _, status := o.send("GET", "/v1/spaces/"+o.space+"/files/url.txt", "", ""); status == 200 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the program does not start: " + o.standing(r))
		}
	}
	for i, want := range []string{"ANSWER yes", "ANSWER yes", "NOTHING HTTP Error 429"} {
		if got := o.shell("python3 probe.py"); !strings.Contains(got, want) {
			t.Errorf("question %d: %s", i+1, got)
		}
	}
	url, _ := o.send("GET", "/v1/spaces/"+o.space+"/files/url.txt", "", "")
	if raw, _ := o.send("GET", "/v1/spaces/"+o.space+"/ports", "", ""); strings.Contains(string(raw), `"port"`) {
		t.Errorf("the port is listed: %s", raw)
	}
	if resp, err := http.Get(string(url) + "/models"); err == nil {
		t.Errorf("the port is open on the host: %d", resp.StatusCode)
	}
	o.ask("POST", "/v1/runs/"+string(r)+"/cancel", `{}`, "")
	waiting, stop := context.WithTimeout(t.Context(), wall.Patience)
	defer stop()
	if doc, err := o.app.Runs.History.Wait(waiting, id.DefaultWorkspace, r); err != nil || doc.Status != run.Cancelled {
		t.Fatalf("after stop: %s, %v", doc.Status, err)
	}
	for got := ""; !strings.Contains(got, "refused"); { // its engine hears of it within a heartbeat
		if got = o.shell("python3 probe.py"); waiting.Err() != nil {
			t.Fatalf("after stop: %s", got)
		}
	}
	if got := o.shell("ps -e -o args"); strings.Contains(got, "wait.py") {
		t.Errorf("the program goes on: %s", got)
	}
	o.kept()
}

// TestAnExternalAgentIsNotStartedTwice stops the daemon while a program runs. The next one ends the run and asks nobody again.
func TestAnExternalAgentIsNotStartedTwice(t *testing.T) {
	o := startOutsider(t, startVendor(t, endless("echo once >> done.txt; sleep 600")), "", miniBlueprint)
	o.put("agent.py", miniAgent)
	r := o.begin("go on")
	for deadline := time.Now().Add(wall.Patience); ; {
		if _, status := o.send("GET", "/v1/spaces/"+o.space+"/files/done.txt", "", ""); status == 200 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the program does not start: " + o.standing(r))
		}
	}
	o.stop()
	next := &outsider{traceDaemon: startTraced(t, o.config), v: o.v, space: o.space}
	end := next.wait(r)
	if end.Status != "failed" || end.Error != "agent_interrupted" {
		t.Errorf("the run ended as %+v", end)
	}
	if file, _ := next.send("GET", "/v1/spaces/"+o.space+"/files/done.txt", "", ""); string(file) != "once\n" || len(o.v.bodies) != 1 {
		t.Errorf("it was done %q, with %d requests", file, len(o.v.bodies))
	}
	next.kept()
}

// TestAPolicyDecidesAboutTheProgram lets nothing start that the space's policy refuses.
func TestAPolicyDecidesAboutTheProgram(t *testing.T) {
	o := startOutsider(t, startVendor(t, func(int, []string) string { return says("yes") }), "",
		"adapter: {kind: external_cli, program: custom, wire: chat, command: [sudo, id]}\n")
	if end := o.wait(o.begin("go on")); end.Status != "failed" || end.Error != "command_refused" {
		t.Errorf("the run ended as %+v", end)
	}
	if len(o.v.bodies) > 0 {
		t.Errorf("%d requests at the vendor", len(o.v.bodies))
	}
}

// TestCodingAgents gives a failing test to the coding agents of npm. scripts/agents brings them and starts this test.
func TestCodingAgents(t *testing.T) {
	root := os.Getenv("AGENTBOX_AGENTS_ROOT")
	if root == "" {
		t.Skip("the agents are not here: run scripts/agents test")
	}
	for program, tool := range map[string][2]string{"opencode": {"bash", "command"}, "codex": {"exec_command", "cmd"},
		"claude": {"Bash", "command"}} {
		t.Run(program, func(t *testing.T) {
			script := fixes(tool[0], tool[1])
			o := startOutsider(t, startVendor(t, func(n int, tools []string) string {
				if !strings.Contains(strings.Join(tools, " ")+" ", tool[0]+" ") {
					return says("A title")
				}
				return script(n, tools)
			}), root, "adapter: {kind: external_cli, program: "+program+"}\n")
			o.put("calc.py", brokenCode)
			o.put("test_calc.py", codeTest)
			r := o.begin(codeTask)
			o.fixed(r, o.wait(r), 4)
		})
	}
}

// TestAnExternalAgentNeedsAHeavySpace gives a task to a program in a nano space, whose programs have no sockets.
func TestAnExternalAgentNeedsAHeavySpace(t *testing.T) {
	p := startPlayed(t, "", withNano(t))
	p.d.send("PUT", "/v1/model-keys/vendor", `{"value":"`+realKey+`"}`, "")
	p.d.ask("PUT", "/v1/models/m1", `{"provider":"openai","dialect":"generic","base_url":"http://127.0.0.1:1/v1","model":"none",`+
		`"key":"vendor","allow_private":true}`, "")
	p.inSpace(`"runtime":"nano","policy":"permissive"`)
	locked, _ := p.d.ask("POST", "/v1/blueprints/lock", `{"text":`+jsonOf(t, "api_version: 1\nname: fixer\nmodels: {default: m1}\n"+
		"policy: permissive\n"+miniBlueprint)+`}`, "")
	p.d.ask("PUT", "/v1/blueprints/fixer", `{"text":`+jsonOf(t, locked["text"])+`}`, "")
	made, _ := p.d.ask("POST", "/v1/blueprints/fixer/runs", `{"task":"go on","space_id":"`+p.space+`"}`, "")
	if failure, _ := p.fails(id.Run(text(made, "run_id"))); failure != "space_not_heavy" {
		t.Errorf("the run ended as %q", failure)
	}
}

// TestAnExternalAgentGoesOnNoConversation refuses what a program cannot be told: an earlier conversation, and another model.
func TestAnExternalAgentGoesOnNoConversation(t *testing.T) {
	o := startOutsider(t, startVendor(t, func(int, []string) string { return says("yes") }), "", miniBlueprint)
	for _, more := range []string{`"after_run_id":"run_00000000000000000000000001"`, `"model":"m1"`} {
		raw, status := o.send("POST", "/v1/blueprints/fixer/runs", `{"task":"go on","space_id":"`+o.space+`",`+more+`}`, "")
		if status != 400 || !strings.Contains(string(raw), `"conversation_unsupported"`) {
			t.Errorf("%s: %d %s", more, status, raw)
		}
	}
}
