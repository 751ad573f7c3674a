package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/app"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/engines"
	"agentbox/internal/testkit/wall"
)

var tellAnew = flag.Bool("update-situations", false, "write testdata/situations")

// situation is one thing that can happen to an agent at work, from the bytes of a vendor to the end of the run.
type situation struct {
	name   string
	only   string // the wire on which alone it can happen; "" for both
	more   string // lines of the blueprint, beyond those of every agent of the table
	entry  string // members of the model's entry, as JSON
	scenes []scene
	second []scene // of the model to which the route falls back; nil for none
	dead   bool    // nobody listens at the first model's address
	during func(*stage)

	secondEntry string // members of the second model's entry

	end   string // the code of the failure, or the report
	ended string // the status of the run; "" for succeeded if there is a report, and failed else
	told  string // a piece of what the model was sent last, word for word
}

// hurried is the machine's clock, whose shorter timers ring early: an engine that asks again after two seconds does so after 80 ms.
type hurried struct {
	app.Clock
	off time.Duration
}

func (c hurried) Now() time.Time { return c.Clock.Now().Add(c.off) }

func (c hurried) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	if d >= 100*time.Millisecond && d <= 20*time.Second {
		d /= 25
	}
	return c.Clock.NewTimer(d)
}

// stage is one situation on one wire in a daemon.
type stage struct {
	t      *testing.T
	d      *traceDaemon
	name   string // of the blueprint and of the model
	space  string
	thread string
	run    id.Run
	first  *actor
	second *actor
}

// TestSituations plays every situation on the wires on which it can happen, through the whole daemon. The end of each stands in the table.
// The files of testdata/situations hold the requests to the model, the events and the end of the run, word for word.
func TestSituations(t *testing.T) {
	all := situations()
	var mu sync.Mutex
	stories := map[string]map[string]string{}
	for _, wire := range []string{chatWire, messagesWire} {
		d := situationDaemon(t, t.TempDir(), 0) // one has room for 200 models
		staged := map[string]*stage{}
		var route []string
		for _, s := range all {
			if s.only != "" && s.only != wire {
				continue
			}
			x := prepare(t, d, s, wire)
			staged[s.name] = x
			if s.second != nil {
				route = append([]string{x.name, x.name + ".2"}, route...)
			}
		}
		d.ask("PUT", "/v1/model-settings", `{"routes":[{"models":`+jsonOf(t, route)+`}],"budgets":[]}`, "")
		t.Run(wire, func(t *testing.T) {
			for _, s := range all {
				x := staged[s.name]
				if x == nil {
					continue
				}
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					story := x.play(t, s)
					mu.Lock()
					defer mu.Unlock()
					if stories[s.name] == nil {
						stories[s.name] = map[string]string{}
					}
					stories[s.name][wire] = story
				})
			}
		})
	}
	for name, told := range stories {
		holdStory(t, filepath.Join("testdata", "situations", name+".txt"), told)
	}
	if len(all) < 40 {
		t.Errorf("%d situations, want at least 40", len(all))
	}
	for _, file := range glob(t, "testdata", "situations", "*.txt") {
		if _, there := stories[strings.TrimSuffix(filepath.Base(file), ".txt")]; !there {
			t.Errorf("%s tells of no situation", file)
		}
	}
}

// situationDaemon starts a daemon whose shorter waits are cut.
func situationDaemon(t *testing.T, dir string, off time.Duration) *traceDaemon {
	t.Helper()
	config := app.Default(dir)
	config.Listen, config.MaxSpaces, config.ApprovalTime = "127.0.0.1:0", 1000, 7*24*time.Hour
	config.RateRules = []string{"general=1000000", "runs=1000000", "spaces=1000000", "owner=1000000"}
	prices := "date: 2026-11-28\ncurrency: USD\nmodels:\n  dear: {input: 1000, output: 1000}\n"
	if err := os.WriteFile(filepath.Join(dir, "prices.yaml"), []byte(prices), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startBy(t, config, hurried{off: off})
	d.ask("PATCH", "/v1/workspaces/"+string(id.DefaultWorkspace), `{"max_concurrent_tasks":64}`, "")
	return d
}

// prepare makes the vendors, the models and the agent of a situation.
func prepare(t *testing.T, d *traceDaemon, s situation, wire string) *stage {
	t.Helper()
	x := &stage{t: t, d: d, name: "s-" + s.name}
	entry := func(name, url, more string) {
		provider := `"provider":"openai","dialect":"zai"`
		if wire == messagesWire {
			provider = `"provider":"anthropic"`
		}
		members := `{` + provider + `,"base_url":"` + url + `","allow_private":true`
		if !strings.Contains(more, `"model"`) {
			members += `,"model":"m"`
		}
		if more != "" {
			members += "," + more
		}
		d.ask("PUT", "/v1/models/"+name, members+`}`, "")
	}
	x.first = startActor(t, wire, s.scenes)
	url := x.first.URL
	if s.dead {
		url = "http://127.0.0.1:1"
	}
	entry(x.name, url, s.entry)
	if s.second != nil {
		x.second = startActor(t, wire, s.second)
		entry(x.name+".2", x.second.URL, s.secondEntry)
	}
	source := "api_version: 1\nname: " + x.name + "\nadapter: {kind: internal}\nmodels: {default: " + x.name + "}\n" +
		"tools: {allow: [readFile, createFile, deleteFile, shell, ask_person, message]}\n" + s.more
	locked, _ := d.ask("POST", "/v1/blueprints/lock", `{"text":`+jsonOf(t, source)+`}`, "")
	d.ask("PUT", "/v1/blueprints/"+x.name, `{"text":`+jsonOf(t, text(locked, "text"))+`}`, "")
	return x
}

// play gives the agent its task, does what people do meanwhile, and returns the story.
func (x *stage) play(t *testing.T, s situation) string {
	t.Helper()
	own := *x.d
	own.t = t
	x.t, x.d, x.first.t = t, &own, t
	in, _ := x.d.ask("POST", "/v1/spaces", `{"best_effort":true,"ttl_seconds":2592000}`, "")
	thread, _ := x.d.ask("POST", "/v1/rooms/"+string(id.DefaultRoom)+"/threads", `{"title":"talk"}`, "")
	x.space, x.thread = text(in, "id"), text(thread, "thread_id")
	run, _ := x.d.ask("POST", "/v1/blueprints/"+x.name+"/runs",
		`{"task":`+jsonOf(t, task)+`,"space_id":"`+x.space+`","thread_id":"`+x.thread+`"}`, "")
	x.run = id.Run(text(run, "run_id"))
	if s.during != nil {
		s.during(x)
	}
	return x.story(s)
}

// wait waits for the end of the run.
func (x *stage) wait() {
	x.t.Helper()
	ctx, stop := context.WithTimeout(x.t.Context(), wall.Patience)
	defer stop()
	if _, err := x.d.app.Runs.History.Wait(ctx, id.DefaultWorkspace, x.run); err != nil {
		x.t.Fatal(err)
	}
}

// ending is how a run of an agent ended.
type ending struct {
	Status   string `json:"status"`
	Error    string `json:"error"`
	Reported struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Output  struct {
			Report string      `json:"report"`
			Turns  int         `json:"turns"`
			Usage  model.Usage `json:"usage"`
		} `json:"output"`
	} `json:"reported"`
}

// story waits for the end of the run, holds it to what the table says, and tells everything.
func (x *stage) story(s situation) string {
	x.t.Helper()
	x.wait()
	raw, status := x.d.send("GET", "/v1/runs/"+string(x.run), "", "")
	var end ending
	if err := json.Unmarshal(raw, &end); err != nil || status != http.StatusOK {
		x.t.Fatalf("%d %s: %v", status, raw, err)
	}
	want := s.ended
	if want == "" {
		want = "succeeded"
		if end.Reported.Output.Report == "" {
			want = "failed"
		}
	}
	came := end.Reported.Output.Report
	if came == "" {
		came = end.Error
	}
	if end.Status != want || !strings.Contains(came, s.end) || s.end == "" {
		x.t.Errorf("the run ended as %s with %.300q, want %s with %q\n%s", end.Status, came, want, s.end, raw)
	}
	var b strings.Builder
	requests := x.first.requests()
	if x.second != nil {
		requests = append(requests, x.second.requests()...)
	}
	last := x.tellRequests(&b, requests)
	if !strings.Contains(last, s.told) {
		x.t.Errorf("the model was sent last\n%s\nwant it to be told %q", last, s.told)
	}
	x.tellEvents(&b)
	fmt.Fprintf(&b, "end: %s, %d turns, %d tokens\n", end.Status, end.Reported.Output.Turns, end.Reported.Output.Usage.Tokens())
	if end.Error != "" {
		fmt.Fprintf(&b, "error: %s\n", end.Error)
	}
	if end.Reported.Message != "" {
		fmt.Fprintf(&b, "message: %s\n", shortened(end.Reported.Message))
	}
	if end.Reported.Output.Report != "" {
		fmt.Fprintf(&b, "report: %s\n", shortened(end.Reported.Output.Report))
	}
	return x.plain(b.String())
}

// tellRequests writes what the model was sent: of each request what it has beyond the one before. It returns the last one as a text.
func (x *stage) tellRequests(b *strings.Builder, requests [][]byte) string {
	x.t.Helper()
	var before []string
	for n, raw := range requests {
		lines, err := told(raw)
		if err != nil {
			x.t.Errorf("request %d: %v", n+1, err)
		}
		same := 0
		for same < min(len(before), len(lines)) && before[same] == lines[same] {
			same++
		}
		switch {
		case slices.Equal(before, lines):
			fmt.Fprintf(b, "request %d: the same again\n", n+1)
		case same == len(before):
			fmt.Fprintf(b, "request %d\n", n+1)
		default:
			fmt.Fprintf(b, "request %d, from its part %d on\n", n+1, same+1)
		}
		for _, line := range lines[same:] {
			fmt.Fprintf(b, "  %s\n", line)
		}
		before = lines
	}
	if len(requests) == 0 {
		return ""
	}
	return string(requests[len(requests)-1])
}

// tellEvents writes what happened: each event of a request to a model in its order, and the tool calls in the order of the answers.
func (x *stage) tellEvents(b *strings.Builder) {
	x.t.Helper()
	var events []event.Event
	counts := map[string]int{}
	x.until("every request to have an outcome", func() bool { // that of a run that was stopped comes a little later
		var err error
		q := journal.Query{Workspace: id.DefaultWorkspace, Run: x.run, Limit: journal.MaxRead}
		if events, err = x.d.app.Log.Read(x.t.Context(), q); err != nil {
			x.t.Fatal(err)
		}
		clear(counts)
		for _, e := range events {
			counts[e.Type]++
		}
		return counts[model.EventAsked] == counts[model.EventAnswered]+counts[model.EventFailed]
	})
	b.WriteString("events\n")
	for _, e := range events {
		if line := modelEvent(x.t, e); line != "" {
			fmt.Fprintf(b, "  %s %s\n", e.Type, line)
		}
	}
	calls, err := x.d.app.Engines.Look.Calls(x.t.Context(), id.DefaultWorkspace, engines.Of{Run: x.run}, "", 1000)
	if err != nil {
		x.t.Fatal(err)
	}
	type place struct {
		step  id.Step
		index int
	}
	lines := map[place]string{}
	for _, c := range calls {
		var at errand.TurnCall
		if err := json.Unmarshal(c.Input, &at); err != nil {
			x.t.Fatal(err)
		}
		lines[place{c.Step, at.Index}] += fmt.Sprintf("  %s %s: %s\n", at.Call, c.Tool, c.Status)
	}
	for _, at := range slices.SortedFunc(maps.Keys(lines), func(a, b place) int {
		if n := strings.Compare(string(a.step), string(b.step)); n != 0 {
			return n
		}
		return a.index - b.index
	}) {
		b.WriteString(lines[at])
	}
	for _, typ := range []string{"step.created", "toolcall.denied", "run.completed", "run.failed", "run.cancelled"} {
		if counts[typ] > 0 {
			fmt.Fprintf(b, "  %d %s\n", counts[typ], typ)
		}
	}
}

// modelEvent tells of an event of a request to a model; "" of another one.
func modelEvent(t *testing.T, e event.Event) string {
	t.Helper()
	switch e.Type {
	case model.EventAsked:
		d, err := event.Decode[model.Asked](e)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d.%d %s: %s", d.Step, d.Attempt, d.Entry, d.Reason)
	case model.EventAnswered, model.EventFailed:
		d, err := event.Decode[model.Outcome](e)
		if err != nil {
			t.Fatal(err)
		}
		guessed := ""
		if d.Guessed {
			guessed = " (guessed)"
		}
		if d.Failure != nil {
			return fmt.Sprintf("%d %s: %s; next %s: %s%s", d.Attempt, d.Failure.Class, d.Failure, d.Next, d.Why, guessed)
		}
		return fmt.Sprintf("%d %s, %d calls%s", d.Attempt, d.Answer.Stop, len(d.Answer.Calls()), guessed)
	case model.EventRefused:
		d, err := event.Decode[model.Unsent](e)
		if err != nil {
			t.Fatal(err)
		}
		return d.Code + ": " + d.Reason
	}
	return ""
}

// The parts that differ from one time to the next.
var (
	anyID   = regexp.MustCompile(`\b([a-z]{2,8})_[0-9A-HJKMNP-TV-Z]{26}\b`)
	anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// plain takes what differs from one time to the next out of a story.
func (x *stage) plain(story string) string {
	story = strings.ReplaceAll(story, x.first.URL, "http://first")
	if x.second != nil {
		story = strings.ReplaceAll(story, x.second.URL, "http://second")
		story = strings.ReplaceAll(story, strings.TrimPrefix(x.second.URL, "http://"), "second")
	}
	story = strings.ReplaceAll(story, strings.TrimPrefix(x.first.URL, "http://"), "first")
	story = anyTime.ReplaceAllString(anyID.ReplaceAllString(story, "$1"), "TIME")
	return strings.ReplaceAll(strings.ReplaceAll(story, " "+x.name+".2", " second"), " "+x.name, " first")
}

// holdStory compares the story of a situation with the file, or writes that.
func holdStory(t *testing.T, file string, told map[string]string) {
	t.Helper()
	var b bytes.Buffer
	for _, wire := range slices.Sorted(maps.Keys(told)) {
		fmt.Fprintf(&b, "== %s ==\n%s", wire, told[wire])
	}
	if *tellAnew {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(want, b.Bytes()) {
		t.Errorf("%s: got\n%s\nwant\n%s\n(%v); -update-situations writes it", file, b.Bytes(), want, err)
	}
}

// TestTheDocsListEverySituation holds the table of docs/ENGINES.md.
func TestTheDocsListEverySituation(t *testing.T) {
	const begin, end = "<!-- situations -->\n", "<!-- end of situations -->"
	var b strings.Builder
	b.WriteString("| about | situations |\n|---|---|\n")
	for _, g := range situationGroups() {
		var names []string
		for _, s := range g.of {
			names = append(names, s.name)
		}
		fmt.Fprintf(&b, "| %s (%d) | %s |\n", g.about, len(names), strings.Join(names, ", "))
	}
	file := filepath.Join("..", "..", "docs", "ENGINES.md")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(raw), begin)
	got, after, ended := strings.Cut(rest, end)
	switch {
	case !found || !ended:
		t.Errorf("%s has no place for the table of situations", file)
	case *tellAnew:
		if err := os.WriteFile(file, []byte(before+begin+b.String()+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	case got != b.String():
		t.Errorf("%s: got\n%s\nwant\n%s\n-update-situations writes it", file, got, b.String())
	}
}

// The actions of people meanwhile.

// request waits until a vendor has had so many requests.
func (x *stage) request(of *actor, n int) {
	x.t.Helper()
	ctx, stop := context.WithTimeout(x.t.Context(), wall.Patience)
	defer stop()
	for {
		came, next := of.asked()
		if came >= n {
			return
		}
		select {
		case <-next:
		case <-ctx.Done():
			x.t.Fatalf("the model was asked %d times, want %d", came, n)
		}
	}
}

// until waits until something is so.
func (x *stage) until(what string, so func() bool) {
	x.t.Helper()
	ctx, stop := context.WithTimeout(x.t.Context(), wall.Patience)
	defer stop()
	for !so() {
		if !errand.Pause(ctx, wall.Clock{}, 10*time.Millisecond) {
			x.t.Fatalf("it did not come to that: %s", what)
		}
	}
}

// goOn lets a scene go on that waits.
func (x *stage) goOn() {
	x.t.Helper()
	select {
	case x.first.goOn <- struct{}{}:
	case <-time.After(wall.Patience):
		x.t.Fatal("no scene waits")
	}
}

// steer posts a message to the agent.
func (x *stage) steer(words string) {
	x.t.Helper()
	x.d.ask("POST", "/v1/threads/"+x.thread+"/messages", `{"content_md":`+jsonOf(x.t, words)+`}`, "")
}

// stop ends the run as a person does.
func (x *stage) stop() {
	x.t.Helper()
	x.d.ask("POST", "/v1/runs/"+string(x.run)+"/cancel", `{"reason":"enough"}`, "")
}

// question waits until the space asks a person, and returns the approval.
func (x *stage) question() string {
	x.t.Helper()
	var list struct {
		Approvals []struct {
			ID string `json:"approval_id"`
		} `json:"approvals"`
	}
	x.until("a question", func() bool {
		raw, _ := x.d.send("GET", "/v1/approvals?status=pending&space_id="+x.space, "", "")
		return json.Unmarshal(raw, &list) == nil && len(list.Approvals) > 0
	})
	return list.Approvals[0].ID
}

// decide answers the question.
func (x *stage) decide(word string) {
	x.t.Helper()
	x.d.ask("POST", "/v1/approvals/"+x.question()+"/decide", `{"decision":"`+word+`"}`, "")
}

// works waits until a tool call of the agent works in the space.
func (x *stage) works() {
	x.t.Helper()
	x.until("a command that works", func() bool {
		_, status := x.d.send("GET", "/v1/spaces/"+x.space+"/files/begun", "", "")
		return status == http.StatusOK
	})
}
