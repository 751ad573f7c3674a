package main_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
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
)

// agentKills returns how often the daemon is killed while agents work: 24 times, or as often as AGENTBOX_AGENT_KILLS says.
func agentKills(t *testing.T) int {
	t.Helper()
	asked := os.Getenv("AGENTBOX_AGENT_KILLS")
	if asked == "" {
		return 24
	}
	n, err := strconv.Atoi(asked)
	if err != nil || n < 1 {
		t.Fatalf("AGENTBOX_AGENT_KILLS is %q, and is to be a number of kills", asked)
	}
	return n
}

// TestAgentsAreKilledAtRandomMoments lets agents work in spaces and kills the daemon with SIGKILL, again and again. Nothing that an agent
// does happens twice, no answer that was recorded is paid for twice, the model is never asked something else for the same turn, and each
// run ends with the report that the model gave. The model is a server of the test that counts.
func TestAgentsAreKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	o := &office{t: t, jobs: map[int]*job{}, teller: newTeller(t, seed), c: &victim{
		t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}, chance: rand.New(rand.NewPCG(seed, 2)),
		flags: []string{"--claim-time", "1s", "--rate", "general=1000000", "--rate", "runs=1000000"},
	}}
	o.open(6)
	rounds := agentKills(t)
	for round := range rounds {
		o.c.round = round
		o.handOut(true)
		o.pester()
		select {
		case <-time.After(time.Duration(o.c.chance.IntN(1200)) * time.Millisecond): // the moment of the kill
		case <-t.Context().Done():
		}
		o.c.kill()
		if round%10 == 9 {
			o.c.verify()
		}
		o.c.start()
		o.c.answer()
		if done := round + 1; done%50 == 0 {
			t.Logf("%d of %d kills, %d runs begun", done, rounds, len(o.jobs))
		}
	}
	within(t, 5*time.Minute, "every run of an agent to end", func() bool {
		o.c.answer()
		return !o.handOut(false)
	})
	again, unknown := 0, 0
	for _, n := range slices.Sorted(func(yield func(int) bool) {
		for n := range o.jobs {
			if !yield(n) {
				return
			}
		}
	}) {
		a, u := o.check(o.jobs[n])
		again, unknown = again+a, unknown+u
	}
	o.c.end()
	o.c.verify()
	t.Logf("%d kills, %d runs, %d requests to the model, %d of them because no answer was recorded, %d calls with an unknown outcome", rounds,
		len(o.jobs), o.teller.total, again, unknown)
	if rounds >= 20 && again == 0 {
		t.Error("no kill came between a request and its answer")
	}
}

// job is a task of an agent, in the space of its slot.
type job struct {
	n           int
	run, thread string
	space       string
}

// office hands tasks out to agents, one for each space at a time.
type office struct {
	t      *testing.T
	c      *victim
	teller *teller
	spaces []string
	now    []*job // in each space
	jobs   map[int]*job
	notes  int
}

// open starts the daemon with a model, an agent and some spaces.
func (o *office) open(spaces int) {
	o.t.Helper()
	o.c.start()
	ask := func(method, path, body string) map[string]any {
		status, answer, ok := o.c.call(method, path, body)
		if !ok || status >= 300 {
			o.t.Fatalf("%s %s: %d %v", method, path, status, answer)
		}
		return answer
	}
	ask("PATCH", "/v1/workspaces/ws_dev", `{"max_concurrent_tasks":64}`)
	ask("PUT", "/v1/models/teller", `{"provider":"openai","dialect":"generic","model":"m","allow_private":true,"base_url":"`+
		o.teller.server.URL+`"}`)
	source := "api_version: 1\nname: clerk\nadapter: {kind: internal}\nmodels: {default: teller}\n"
	locked := ask("POST", "/v1/blueprints/lock", `{"text":`+quoted(source)+`}`)
	ask("PUT", "/v1/blueprints/clerk", `{"text":`+quoted(locked["text"].(string))+`}`)
	for n := range spaces {
		made := o.c.post("/v1/spaces", fmt.Sprintf(`{"name":"desk-%d","runtime":"heavy","ttl_seconds":604800}`, n))
		o.spaces, o.now = append(o.spaces, made["id"].(string)), append(o.now, nil)
	}
}

func quoted(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// handOut gives each space whose run has ended the next one, if there is to be one. It reports whether runs go on.
func (o *office) handOut(next bool) (busy bool) {
	o.t.Helper()
	for i, j := range o.now {
		if j != nil {
			doc := o.c.shown(j.run)
			if doc["ended_at"] == nil {
				busy = true
				continue
			}
			o.now[i] = nil
		}
		if !next {
			continue
		}
		n := len(o.jobs)
		made := o.c.post("/v1/blueprints/clerk/runs", fmt.Sprintf(`{"task":"job %d.","space_id":"%s"}`, n, o.spaces[i]))
		thread, _ := made["thread_id"].(string)
		o.now[i] = &job{n: n, run: made["run_id"].(string), thread: thread, space: o.spaces[i]}
		o.jobs[n], busy = o.now[i], true
	}
	return busy
}

// pester tells one of the agents something.
func (o *office) pester() {
	o.t.Helper()
	if j := o.now[o.c.chance.IntN(len(o.now))]; j != nil && j.thread != "" {
		o.notes++
		o.c.post("/v1/threads/"+j.thread+"/messages", fmt.Sprintf(`{"content_md":"note %d."}`, o.notes))
	}
}

// check holds everything about a run that has ended. It returns how many requests were sent again because no answer was recorded, and how
// many calls have an outcome that nobody knows.
func (o *office) check(j *job) (again, unknown int) {
	o.t.Helper()
	doc := o.c.shown(j.run)
	reported, _ := doc["reported"].(map[string]any)
	output, _ := reported["output"].(map[string]any)
	asked := o.teller.of(j.n)
	if doc["status"] != "succeeded" || output["report"] != asked.report {
		o.t.Errorf("job %d is %v with %v, want the report %q", j.n, doc["status"], reported, asked.report)
		return 0, 0
	}
	usage, _ := output["usage"].(map[string]any)
	if usage["input_tokens"] != float64(10*turnsOfJob) || usage["output_tokens"] != float64(5*turnsOfJob) {
		o.t.Errorf("job %d: the run counts %v, want %d answers of 10 and 5 tokens", j.n, usage, turnsOfJob)
	}
	sent, answered := o.recorded(j.run)
	for turn := range turnsOfJob {
		if answered[turn] != 1 || asked.requests[turn] > sent[turn] || asked.requests[turn] == 0 {
			o.t.Errorf("job %d, turn %d: %d requests, of which %d are recorded, with %d answers", j.n, turn, asked.requests[turn], sent[turn],
				answered[turn])
		}
		again += asked.requests[turn] - 1
	}
	for _, text := range asked.notes {
		if n := strings.Count(asked.last, text); n > 1 {
			o.t.Errorf("job %d was told %q %d times", j.n, text, n)
		}
	}
	return again, o.effects(j, asked)
}

// recorded reads from the log how often each turn was asked, and how often it was answered. Nothing is asked after an answer.
func (o *office) recorded(run string) (sent, answered map[int]int) {
	o.t.Helper()
	sent, answered = map[int]int{}, map[int]int{}
	for from := 1; ; {
		status, page, ok := o.c.call("GET", fmt.Sprintf("/v1/events?limit=200&from_seq=%d&run_id=%s&event_types=model.asked,model.answered",
			from, run), "")
		if !ok || status != 200 {
			o.t.Fatalf("events: %d %v", status, page)
		}
		events := page["events"].([]any)
		for _, raw := range events {
			e := raw.(map[string]any)
			data := e["data"].(map[string]any)
			_, text, _ := strings.Cut(data["call_id"].(string), "/")
			n, err := strconv.Atoi(text)
			if err != nil {
				o.t.Fatalf("%v: %v", data, err)
			}
			turn := n - 1
			if answered[turn] > 0 {
				o.t.Errorf("run %s, turn %d: %v after the answer was recorded", run, turn, e["event_type"])
			}
			if e["event_type"] == "model.asked" {
				sent[turn]++
			} else {
				answered[turn]++
			}
		}
		if len(events) == 0 {
			return sent, answered
		}
		from = int(page["next_from_seq"].(float64))
	}
}

// effects counts what the agent did in its space and in its thread: nothing is there twice, and what it was told has succeeded is there.
func (o *office) effects(j *job, asked *asked) (unknown int) {
	o.t.Helper()
	files := filepath.Join(o.c.dir, "spaces", j.space, "files")
	raw, err := os.ReadFile(filepath.Join(files, "ledger"))
	if err != nil {
		o.t.Error(err)
	}
	lines := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		lines[strings.TrimSpace(line)]++
	}
	for _, call := range doingsOfJob(j.n) {
		outcome, there := asked.outcomes[call.id], 0
		switch call.tool {
		case "shell":
			there = lines[call.mark]
		case "createFile":
			if content, err := os.ReadFile(filepath.Join(files, call.mark)); err == nil && string(content) == call.mark {
				there = 1
			}
		case "message":
			_, page, _ := o.c.call("GET", "/v1/threads/"+j.thread+"/messages", "")
			text, _ := json.Marshal(page)
			there = bytes.Count(text, []byte(call.mark))
		default:
			continue
		}
		switch {
		case there > 1:
			o.t.Errorf("job %d: %s was done %d times", j.n, call.mark, there)
		case outcome == "ok" && there != 1:
			o.t.Errorf("job %d: %s has succeeded, and is not there", j.n, call.mark)
		case outcome != "ok" && outcome != "unknown":
			o.t.Errorf("job %d: %s ended as %q", j.n, call.mark, outcome)
		}
		if outcome == "unknown" {
			unknown++
		}
	}
	return unknown
}

// doing is a tool call of a job, and the mark that it leaves.
type doing struct{ id, tool, mark, arguments string }

// turnsOfJob is how many answers the model gives for a job.
const turnsOfJob = 5

// turnOfJob returns the calls of a turn of a job; none for the last one.
func turnOfJob(n, turn int) []doing {
	mark := func(k int) string { return fmt.Sprintf("j%d-t%d-%d", n, turn, k) }
	shell := func(k int, more string) doing {
		return doing{mark(k), "shell", mark(k), fmt.Sprintf(`{"command":"echo %s >> ledger%s"}`, mark(k), more)}
	}
	write := func(k int) doing {
		return doing{mark(k), "createFile", mark(k), fmt.Sprintf(`{"path":"%s","content":"%s"}`, mark(k), mark(k))}
	}
	read := func(k int) doing { return doing{mark(k), "readFile", mark(k), `{"path":"ledger"}`} }
	switch turn {
	case 0:
		return []doing{{mark(0), "message", mark(0), fmt.Sprintf(`{"content":"%s"}`, mark(0))}, shell(1, "")}
	case 1:
		return []doing{read(0), read(1), write(2)}
	case 2:
		return []doing{shell(0, "; sleep 0.05")}
	case 3:
		return []doing{write(0), shell(1, "; sleep 0.02"), shell(2, "")}
	}
	return nil
}

func doingsOfJob(n int) []doing {
	var all []doing
	for turn := range turnsOfJob {
		all = append(all, turnOfJob(n, turn)...)
	}
	return all
}

// asked is what the model was asked for a job.
type asked struct {
	requests map[int]int               // by turn
	sums     map[int][sha256.Size]byte // of the request of each turn
	outcomes map[string]string         // of the calls, by id, as the model was told
	notes    []string                  // that it was told
	last     string                    // the last request
	report   string
}

// teller is a model of the wire of chat completions. It answers by what the conversation holds, and counts.
type teller struct {
	t      *testing.T
	server *httptest.Server

	mu     sync.Mutex // guards the rest
	chance *rand.Rand
	jobs   map[int]*asked
	total  int
}

func newTeller(t *testing.T, seed uint64) *teller {
	t.Helper()
	m := &teller{t: t, jobs: map[int]*asked{}, chance: rand.New(rand.NewPCG(seed, 3))}
	m.server = httptest.NewServer(m)
	t.Cleanup(func() {
		m.server.CloseClientConnections()
		m.server.Close()
	})
	return m
}

func (m *teller) of(n int) *asked {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.jobs[n]
}

// toldMessage is a message of a request.
type toldMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	CallID  string `json:"tool_call_id"`
}

// ServeHTTP answers a request, piece by piece.
func (m *teller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var q struct {
		Messages []toldMessage `json:"messages"`
	}
	if err := json.Unmarshal(raw, &q); err != nil {
		m.t.Errorf("a request is no JSON: %v", err)
		return
	}
	n, turn := -1, 0
	outcomes := map[string]string{}
	var notes []string
	for _, message := range q.Messages {
		switch message.Role {
		case "user":
			if n < 0 {
				if _, err := fmt.Sscanf(message.Content, "job %d.", &n); err != nil {
					m.t.Errorf("the task is %q", message.Content)
					return
				}
			}
			for word := range strings.SplitSeq(message.Content, "note ") {
				if number, _, ok := strings.Cut(word, "."); ok && strings.Trim(number, "0123456789") == "" {
					notes = append(notes, "note "+number+".")
				}
			}
		case "assistant":
			turn++
		case "tool":
			outcomes[message.CallID] = outcomeOf(message.Content)
		}
	}
	items, report := m.count(n, turn, raw, outcomes, notes)
	m.say(w, items, report)
}

// outcomeOf says in a word what the model reads as the result of a call.
func outcomeOf(text string) string {
	switch text, failed := strings.CutPrefix(text, "Error: "); {
	case strings.HasPrefix(text, "unknown:"):
		return "unknown"
	case failed:
		return text
	}
	return "ok"
}

// count counts a request, and returns the answer to it. The requests of a turn have to be the same, byte for byte.
func (m *teller) count(n, turn int, raw []byte, outcomes map[string]string, notes []string) ([]doing, string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total++
	of := m.jobs[n]
	if of == nil {
		of = &asked{requests: map[int]int{}, sums: map[int][sha256.Size]byte{}, outcomes: map[string]string{}}
		m.jobs[n] = of
	}
	sum := sha256.Sum256(raw)
	if before, there := of.sums[turn]; there && before != sum {
		m.t.Errorf("job %d, turn %d is asked something else than before: %s", n, turn, raw)
	}
	of.requests[turn]++
	of.sums[turn], of.outcomes, of.notes, of.last = sum, outcomes, notes, string(raw)
	items := turnOfJob(n, turn)
	if len(items) > 0 {
		return items, ""
	}
	var report strings.Builder
	fmt.Fprintf(&report, "job %d:", n)
	for _, call := range doingsOfJob(n) {
		fmt.Fprintf(&report, " %s %s", call.id, outcomes[call.id])
	}
	of.report = report.String()
	return nil, of.report
}

// say streams an answer: calls, or a report.
func (m *teller) say(w http.ResponseWriter, items []doing, report string) {
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(format string, args ...any) {
		m.mu.Lock()
		late := time.Duration(m.chance.IntN(12)) * time.Millisecond
		m.mu.Unlock()
		<-time.After(late) // a slow vendor
		fmt.Fprintf(w, "data: "+format+"\n\n", args...)
		_ = http.NewResponseController(w).Flush()
	}
	finish := "stop"
	for i, call := range items {
		finish = "tool_calls"
		chunk(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}]}}]}`,
			i, call.id, call.tool, quoted(call.arguments))
	}
	for word := range strings.SplitAfterSeq(report, ": ") {
		if word != "" {
			chunk(`{"choices":[{"index":0,"delta":{"content":%s}}]}`, quoted(word))
		}
	}
	chunk(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, finish)
	chunk(`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}`)
	fmt.Fprint(w, "data: [DONE]\n\n")
}
