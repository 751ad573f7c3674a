package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/app"
	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/tool"
	"agentbox/internal/domain/web"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/service/agents"
	"agentbox/internal/service/blueprints"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/tools"
	"agentbox/internal/testkit/wall"
)

// played is a daemon in which an agent works whose model plays a cassette. The cassette knows each request in advance, so that a test also
// keeps the texts of the results that the model reads.
type played struct {
	t      *testing.T
	d      *traceDaemon
	config app.Config
	def    blueprint.Blueprint
	locked event.Digest
	space  string
	thread string
	allow  []string // tools that the policy of the space permits
}

// turn is one answer of the model, the result of each call, and the messages of people in the meantime.
type turn struct {
	calls   []model.Call
	results []model.Result
	heard   []string // before the next request
	says    string   // instead of calls: the answer of a model that calls tools in plain text
}

// one is a turn with one call.
func one(name, arguments, told string, ok bool) turn {
	return turn{calls: []model.Call{{ID: "a", Name: name, Arguments: arguments}}, results: []model.Result{{ID: "a", Text: told, Failed: !ok}}}
}

// startPlayed starts a daemon, and an agent's blueprint with more lines than the plain one. Before it is locked, the daemon is prepared.
func startPlayed(t *testing.T, more string, prepare ...func(*played)) *played {
	t.Helper()
	p := &played{t: t, config: app.Default(t.TempDir())}
	p.config.Listen = "127.0.0.1:0"
	p.begin()
	source := agentText + more
	var problems []blueprint.Problem
	if p.def, problems = blueprints.Read([]byte(source)); len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, do := range prepare {
		do(p)
	}
	p.d.ask("PUT", "/v1/models/played", `{"provider":"scripted","base_url":"counter","model":"any"}`, "")
	p.lock(source)
	if p.space == "" {
		p.inSpace(`"policy_overrides":` + p.overrides())
	}
	thread, _ := p.d.ask("POST", "/v1/rooms/"+string(id.DefaultRoom)+"/threads", `{"title":"talk"}`, "")
	p.thread = text(thread, "thread_id")
	return p
}

// lock registers the blueprint of a text, with its pins.
func (p *played) lock(source string) { p.t.Helper(); p.register("counter", source) }

// register registers the blueprint of a name, with its pins.
func (p *played) register(name, source string) {
	p.t.Helper()
	locked, _ := p.d.ask("POST", "/v1/blueprints/lock", `{"text":`+jsonOf(p.t, source)+`}`, "")
	made, _ := p.d.ask("PUT", "/v1/blueprints/"+name, `{"text":`+jsonOf(p.t, locked["text"])+`}`, "")
	var entry struct {
		Locked event.Digest `json:"locked_sha256"`
	}
	if err := json.Unmarshal([]byte(jsonOf(p.t, made)), &entry); err != nil {
		p.t.Fatal(err)
	}
	p.locked = entry.Locked
}

// inSpace makes the space in which the agent works from now on.
func (p *played) inSpace(more string) {
	p.t.Helper()
	in, _ := p.d.ask("POST", "/v1/spaces", `{"best_effort":true,`+more+`}`, "")
	p.space = text(in, "id")
}

// begin starts the daemon, again after stop.
func (p *played) begin() { p.d = startTraced(p.t, p.config) }

// overrides are those of the space: what the blueprint allows of the network.
func (p *played) overrides() string {
	if len(p.def.Space.Network.Allow) == 0 {
		return "{}"
	}
	allow := map[string][]string{"domains": p.def.Space.Network.Allow}
	if len(p.allow) > 0 {
		allow["tools"] = p.allow
	}
	return `{"allow":` + jsonOf(p.t, allow) + `}`
}

// task is what the agent is asked.
const task = "Count to three."

// record writes the cassette of a conversation that ends with a report.
func (p *played) record(turns ...turn) { p.t.Helper(); p.recordAll(p.talk(task, "Three.", turns...)) }

// talk is a conversation that a cassette knows.
type talk struct {
	def      blueprint.Blueprint
	offered  []tool.Tool
	key      string
	task     string
	protocol string
	turns    []turn
	report   string // "" for a conversation that does not come to its end
}

// talk is a conversation of the blueprint's agent.
func (p *played) talk(task, report string, turns ...turn) talk {
	p.t.Helper()
	offered, hash, err := tools.Offered(tools.OfferOf(p.def))
	if err != nil {
		p.t.Fatal(err)
	}
	if len(p.def.Tools.MCP) > 0 {
		more, err := p.d.app.Servers.Offered(p.t.Context(), id.DefaultWorkspace, p.def)
		if err != nil {
			p.t.Fatal(err)
		}
		offered = append(offered, more...)
		if hash, err = tool.HashOf(offered); err != nil {
			p.t.Fatal(err)
		}
	}
	m := errand.Mission{Version: 1, Blueprint: "counter", Edition: 1, Locked: p.locked, Loop: agents.Hash(), Tools: hash,
		Space: id.Space(p.space), Task: task}
	return talk{p.def, offered, agents.CacheKey(m), task, p.def.Tools.Protocol, turns, report}
}

// recordAll writes the cassette of several conversations.
func (p *played) recordAll(talks ...talk) {
	p.t.Helper()
	tape := model.Cassette{}
	for _, one := range talks {
		tape.Recordings = append(tape.Recordings, one.recordings(p.t)...)
	}
	raw, err := tape.Write()
	if err != nil {
		p.t.Fatal(err)
	}
	folder := filepath.Join(p.config.DataDir, "cassettes")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "counter.jsonl"), raw, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// recordings are the requests of a conversation, with their answers.
func (k talk) recordings(t *testing.T) (tape []model.Recording) {
	t.Helper()
	c := agents.Begin(k.def, append(slices.Clone(k.offered), agents.ReadResult()), k.key, k.task)
	c.Speak(k.protocol)
	answer := func(a model.Answer) {
		next := c.Next()
		if next.Request == nil {
			t.Fatalf("the conversation ends: %+v", next.End)
		}
		r, err := model.Record(*next.Request, &a, nil)
		if err != nil {
			t.Fatal(err)
		}
		tape = append(tape, r)
		c.Answered(a)
	}
	for _, one := range k.turns {
		a := model.Answer{Stop: model.StopTools, Usage: model.Usage{Input: 10, Output: 5}}
		for i := range one.calls {
			a.Parts = append(a.Parts, model.Part{Type: model.CallPart, Call: &one.calls[i]})
		}
		if one.says != "" {
			a.Stop, a.Parts = model.StopEnd, []model.Part{model.Text(one.says)}
		}
		answer(a)
		if one.results != nil {
			c.Acted(one.results)
		}
		for _, said := range one.heard {
			c.Hear(said)
		}
	}
	if k.report != "" {
		answer(model.Answer{Stop: model.StopEnd, Usage: model.Usage{Input: 20, Output: 2}, Parts: []model.Part{model.Text(k.report)}})
	}
	return tape
}

// start begins the agent's run.
func (p *played) start() id.Run {
	p.t.Helper()
	run, _ := p.d.ask("POST", "/v1/blueprints/counter/runs",
		`{"task":`+jsonOf(p.t, task)+`,"space_id":"`+p.space+`","thread_id":"`+p.thread+`"}`, "")
	return id.Run(text(run, "run_id"))
}

// ends waits for the end of the run, which is the agent's report.
func (p *played) ends(run id.Run) {
	p.t.Helper()
	waiting, stop := context.WithTimeout(p.t.Context(), wall.Patience)
	defer stop()
	if _, err := p.d.app.Runs.History.Wait(waiting, id.DefaultWorkspace, run); err != nil {
		p.t.Error(err)
	}
	raw, _ := p.d.send("GET", "/v1/runs/"+string(run), "", "")
	if !strings.Contains(string(raw), `"status":"succeeded"`) || !strings.Contains(string(raw), `"report":"Three."`) {
		calls, _ := p.d.app.Engines.Look.Calls(p.t.Context(), id.DefaultWorkspace, engines.Of{Run: run}, "", 100)
		for _, c := range calls {
			p.t.Logf("%s %s: %s%s", c.Tool, c.Status, c.Output, c.Error)
			if c.Child != "" {
				told, _ := p.d.send("GET", "/v1/runs/"+string(c.Child), "", "")
				p.t.Logf("%s", told)
			}
		}
		p.t.Fatalf("the run ended otherwise: %s", raw)
	}
}

// plays records a conversation, and runs it.
func (p *played) plays(turns ...turn) id.Run {
	p.t.Helper()
	p.record(turns...)
	run := p.start()
	p.ends(run)
	return run
}

// TestAnAgentRunsCode keeps a variable between two calls, shows values, and reads what it may not.
func TestAnAgentRunsCode(t *testing.T) {
	p := startPlayed(t, "")
	p.plays(
		one("code", `{"language":"python","code":"x = 20\nprint('made')"}`, "exit code: 0\nstdout:\nmade\n", true),
		one("code", `{"language":"python","code":"x + 1"}`, "exit code: 0\nstdout:\n21\n", true),
		one("code", `{"language":"typescript","code":"const n: number = 4; n * 2"}`, "exit code: 0\nstdout:\n8\n", true),
		one("code", `{"language":"perl","code":"1"}`,
			`not made: the arguments of code are wrong: language is python, javascript or typescript, not "perl"`, false),
	)
}

// site is a real server that counts what it is asked.
type site struct {
	*httptest.Server
	mu    sync.Mutex // guards asked
	asked []string
}

func startSite(t *testing.T) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.Method+" "+r.URL.Path)
		s.mu.Unlock()
		if r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
			t.Errorf("%s is sent credentials", r.URL)
		}
		hops, hopping := strings.CutPrefix(r.URL.Path, "/hop/")
		n, _ := strconv.Atoi(hops)
		switch {
		case hopping && n > 0:
			http.Redirect(w, r, "/hop/"+strconv.Itoa(n-1), http.StatusFound)
		case r.URL.Path == "/away":
			http.Redirect(w, r, "http://localhost:1/", http.StatusFound)
		case r.URL.Path == "/picture":
			w.Header().Set("Content-Type", "image/png")
		case r.URL.Path == "/long":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = w.Write([]byte(strings.Repeat("<0123456789>\n", 10_000)))
		case r.URL.Path == "/secret":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = w.Write([]byte("the key is AKIA" + "IOSFODNN7EXAMPLF\n"))
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte("<html><body><h1>News</h1><script>alert(1)</script><p>See <a href='/more'>more</a>.</p></body></html>"))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) host() string { return strings.TrimPrefix(s.URL, "http://") }

// fetching are the lines of a blueprint whose agent may fetch from a site.
func fetching(s *site) string {
	return "tools: {allow: [http_fetch]}\nspace: {network: {allow_domains: [\"" + s.host() + "\"]}}\n"
}

// TestAnAgentFetchesPages fetches from a real server, over redirects, and is refused every way around the list of hosts.
func TestAnAgentFetchesPages(t *testing.T) {
	s := startSite(t)
	p := startPlayed(t, fetching(s))
	page := func(at string) string {
		return "status: 200\nurl: " + s.URL + at + "\ntype: text/html\n\n# News\n\nSee [more](" + s.URL + "/more).\n"
	}
	refused := func(why string) string {
		return tool.Refusal{Tool: "http_fetch", Rule: "no_policy_allows", Reason: "nothing in the policy standard permits fetch from " + why,
			Instead: "Use another command or operation; `agentbox policy show " + p.space + "` lists what the policy permits."}.Text()
	}
	long := "status: 200\nurl: " + s.URL + "/long\ntype: text/plain\n\n" + strings.Repeat("<0123456789>\n", 10_000)
	p.plays(
		one("http_fetch", `{"url":"`+s.URL+`/hop/5"}`, page("/hop/0"), true),
		one("http_fetch", `{"url":"`+s.URL+`/hop/6"}`, "failed: the address redirects more than 5 times", false),
		one("http_fetch", `{"url":"`+s.URL+`/x","method":"HEAD"}`, "status: 200\nurl: "+s.URL+"/x\ntype: text/html\n", true),
		one("http_fetch", `{"url":"`+s.URL+`/away"}`, refused("the own network: http://localhost:1/"), false),
		one("http_fetch", `{"url":"http://169.254.169.254/latest"}`, refused("the own network: http://169.254.169.254:80/latest"), false),
		one("http_fetch", `{"url":"https://a.example/"}`, refused("the web: https://a.example:443/"), false),
		one("http_fetch", `{"url":"`+s.URL+`/picture"}`, `failed: the answer has the media type "image/png"; only texts are shown`, false),
		one("http_fetch", `{"url":"ftp://a.example/"}`, "not made: the arguments of http_fetch are wrong: "+web.ErrURL.Error(), false),
		one("http_fetch", `{"url":"`+s.URL+`/secret"}`,
			"status: 200\nurl: "+s.URL+"/secret\ntype: text/plain\n\nthe key is [redacted]\n", true),
		one("http_fetch", `{"url":"`+s.URL+`/long"}`, long, true),
		one("read_result", `{"id":"a","offset":50000,"length":13}`,
			fmt.Sprintf("characters 50000 to 50013 of %d:\n%s", len(long), long[50_000:50_013]), true),
	)
	want := []string{"GET /hop/5", "GET /hop/4", "GET /hop/3", "GET /hop/2", "GET /hop/1", "GET /hop/0", "GET /hop/6", "GET /hop/5",
		"GET /hop/4", "GET /hop/3", "GET /hop/2", "GET /hop/1", "HEAD /x", "GET /away", "GET /picture", "GET /secret", "GET /long"}
	if !slices.Equal(s.asked, want) {
		t.Errorf("the site was asked for %v", s.asked)
	}
}

// TestAnAgentTalksToPeople posts a message, searches for it, and asks a person, whose answer comes after a restart of the daemon.
func TestAnAgentTalksToPeople(t *testing.T) {
	p := startPlayed(t, "")
	old, _ := p.d.ask("POST", "/v1/threads/"+p.thread+"/messages", `{"content_md":"the harvest is late"}`, "")
	found := turn{calls: []model.Call{{ID: "a", Name: "search", Arguments: `{"words":"harvest late"}`},
		{ID: "b", Name: "search", Arguments: `{"words":"zebra"}`}},
		results: []model.Result{{ID: "a", Text: text(old, "created_at")[:19] + "Z user: the harvest is late\n"},
			{ID: "b", Text: "nothing was found\n"}}}
	ask := one("ask_person", `{"question":"Which colour?"}`, "A person has answered. Their words follow.", true)
	ask.heard = []string{"Green."}
	p.record(found, one("message", `{"content":"I begin."}`, "posted", true), ask)
	run := p.start()
	said := func() string {
		raw, _ := p.d.send("GET", "/v1/threads/"+p.thread+"/messages", "", "")
		return string(raw)
	}
	p.until(func() bool { return strings.Contains(said(), "Which colour?") })
	p.d.stop()
	p.begin()
	p.d.ask("POST", "/v1/threads/"+p.thread+"/messages", `{"content_md":"Green."}`, "")
	p.ends(run)
	for what, want := range map[string]int{"I begin.": 1, "Which colour?": 1, `"sender_type":"service"`: 2} {
		if got := strings.Count(said(), what); got != want {
			t.Errorf("%s is there %d times in %s", what, got, said())
		}
	}
}

// until waits until something is so.
func (p *played) until(so func() bool) {
	p.t.Helper()
	ctx, stop := context.WithTimeout(p.t.Context(), wall.Patience)
	defer stop()
	for !so() {
		if !errand.Pause(ctx, wall.Clock{}, 20*time.Millisecond) {
			p.t.Fatal("it did not come to that")
		}
	}
}

// TestEachToolIsRefused works in a room that allows no tool: each call is refused in the one form, and none has an effect.
func TestEachToolIsRefused(t *testing.T) {
	s := startSite(t)
	p := startPlayed(t, "tools: {classes: [pure, read, filesystem, process, network, record]}\n"+
		"space: {network: {allow_domains: [\""+s.host()+"\"]}}\n")
	p.d.ask("PATCH", "/v1/rooms/"+string(id.DefaultRoom), `{"context":{"tool_allowlist":[]}}`, "")
	var turns []turn
	for _, call := range []model.Call{
		{Name: "code", Arguments: `{"language":"python","code":"1"}`}, {Name: "http_fetch", Arguments: `{"url":"` + s.URL + `"}`},
		{Name: "html_to_markdown", Arguments: `{"html":"<p>a</p>"}`}, {Name: "ask_person", Arguments: `{"question":"why?"}`},
		{Name: "message", Arguments: `{"content":"hello"}`}, {Name: "search", Arguments: `{"words":"hello"}`},
	} {
		turns = append(turns, one(call.Name, call.Arguments, tool.Refusal{Tool: call.Name, Rule: "tool_not_allowed",
			Reason: "the room's list of allowed tools is empty, so that none may be used"}.Text(), false))
	}
	p.plays(turns...)
	if raw, _ := p.d.send("GET", "/v1/threads/"+p.thread+"/messages", "", ""); len(s.asked) > 0 || strings.Contains(string(raw), "hello") {
		t.Errorf("the site was asked %v, and the thread is %s", s.asked, raw)
	}
}

// TestAnAgentFetchesWhatAPersonApproves asks a person about each page. It is fetched after they have approved, and not where they deny.
func TestAnAgentFetchesWhatAPersonApproves(t *testing.T) {
	s := startSite(t)
	p := startPlayed(t, fetching(s))
	p.inSpace(`"policy_overrides":{"allow":{"domains":` + jsonOf(t, p.def.Space.Network.Allow) + `},"ask":{"domains":["127.0.0.1"]}}`)
	denied := tool.Refusal{Tool: "http_fetch", Rule: "approval_denied", Reason: "a person refused it: not this one",
		Instead: "Do without it, or change the request."}.Text()
	p.record(one("http_fetch", `{"url":"`+s.URL+`/x","method":"HEAD"}`, "status: 200\nurl: "+s.URL+"/x\ntype: text/html\n", true),
		one("http_fetch", `{"url":"`+s.URL+`/y"}`, denied, false))
	owner := p.d.key
	mia, _ := p.d.ask("POST", "/v1/principals", `{"kind":"user","role":"member","display_name":"Mia"}`, "")
	key, _ := p.d.ask("POST", "/v1/keys", `{"name":"mia","principal_id":"`+text(mia, "principal_id")+`"}`, "")
	p.d.key = text(key, "key")
	run := p.start()
	p.d.key = owner
	answer := func(body string) {
		var question string
		p.until(func() bool {
			asked, _ := p.d.ask("GET", "/v1/approvals?status=pending", "", "")
			for _, q := range asked["approvals"].([]any) {
				question = text(q.(map[string]any), "approval_id")
			}
			return question != ""
		})
		p.d.ask("POST", "/v1/approvals/"+question+"/decide", body, "")
	}
	answer(`{"decision":"approve"}`)
	answer(`{"decision":"deny","reason":"not this one"}`)
	p.ends(run)
	if !slices.Equal(s.asked, []string{"HEAD /x"}) {
		t.Errorf("the site was asked for %v", s.asked)
	}
}

// TestAnAgentRunsCodeInANanoSpace keeps a variable between two calls where the tier is nano.
func TestAnAgentRunsCodeInANanoSpace(t *testing.T) {
	p := startPlayed(t, "", withNano(t))
	p.inSpace(`"runtime":"nano"`)
	p.plays(
		one("code", `{"language":"javascript","code":"var n = 4; console.log('made')"}`, "exit code: 0\nstdout:\nmade\n", true),
		one("code", `{"language":"javascript","code":"n * 2"}`, "exit code: 0\nstdout:\n8\n", true),
		one("code", `{"language":"typescript","code":"const m: number = n + 1; m"}`, "exit code: 0\nstdout:\n5\n", true),
		one("code", `{"language":"javascript","context":"other","code":"typeof n"}`, "exit code: 0\nstdout:\n'undefined'\n", true),
	)
	if raw, _ := p.d.send("GET", "/v1/spaces/"+p.space, "", ""); !strings.Contains(string(raw), `"tier":"nano"`) {
		t.Errorf("the space is %s", raw)
	}
}

// TestPeopleSeeTheDaemonsOwnTools holds the frames of the calls that are no operations: one of the call and one of its result, also where
// the daemon was stopped in between.
func TestPeopleSeeTheDaemonsOwnTools(t *testing.T) {
	p := startPlayed(t, "")
	ask := one("ask_person", `{"question":"Which colour?"}`, "A person has answered. Their words follow.", true)
	ask.heard = []string{"Green."}
	p.record(one("html_to_markdown", `{"html":"<h1>News</h1>"}`, "# News\n", true), ask, one("search", `{"words":"zebra crossing"}`,
		"nothing was found\n", true))
	run := p.start()
	p.until(func() bool {
		raw, _ := p.d.send("GET", "/v1/threads/"+p.thread+"/messages", "", "")
		return strings.Contains(string(raw), "Which colour?")
	})
	p.d.stop()
	p.begin()
	p.d.ask("POST", "/v1/threads/"+p.thread+"/messages", `{"content_md":"Green."}`, "")
	p.ends(run)
	frames, err := p.d.app.Runs.Live.Read(t.Context(), run, 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, f := range frames {
		var said struct {
			Type    string `json:"type"`
			Summary string `json:"summary"`
			Success *bool  `json:"success"`
		}
		if json.Unmarshal(f.Data, &said) != nil {
			continue
		}
		switch f.Kind {
		case livestream.Operation:
			shown = append(shown, said.Type+": "+said.Summary)
		case livestream.Result:
			shown = append(shown, said.Type+fmt.Sprintf(" %t", *said.Success))
		}
	}
	want := []string{"html_to_markdown: <h1>News</h1>", "html_to_markdown true", "ask_person: Which colour?", "ask_person true",
		"search: zebra crossing", "search true"}
	if !slices.Equal(shown, want) {
		t.Errorf("people see %q", shown)
	}
}
