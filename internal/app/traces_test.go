package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	wiretrace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
)

// collected is an OTLP/HTTP collector that keeps what it is told.
type collected struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*wiretrace.Span
	raw   bytes.Buffer
	about []string // of the resources
}

func collect(t *testing.T) *collected {
	t.Helper()
	c := &collected{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var q collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &q)
		}
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw.Write(body)
		for _, rs := range q.GetResourceSpans() {
			for _, a := range rs.GetResource().GetAttributes() {
				c.about = append(c.about, a.GetKey()+"="+a.GetValue().GetStringValue())
			}
			for _, ss := range rs.GetScopeSpans() {
				c.spans = append(c.spans, ss.GetSpans()...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

// tree draws the spans of one trace below a parent: each on a line, its children further in, in the order in which they began. Spans that
// happen once for each try of something stand once.
func (c *collected) tree(traceID, parent string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	var draw func(parent, indent string)
	draw = func(parent, indent string) {
		var below []*wiretrace.Span
		for _, s := range c.spans {
			if fmt.Sprintf("%x", s.GetTraceId()) == traceID && fmt.Sprintf("%x", s.GetParentSpanId()) == parent {
				below = append(below, s)
			}
		}
		slices.SortStableFunc(below, func(a, b *wiretrace.Span) int {
			return int(int64(a.GetStartTimeUnixNano()) - int64(b.GetStartTimeUnixNano()))
		})
		for _, s := range below {
			line := indent + s.GetName()
			if s.GetStatus().GetCode() == wiretrace.Status_STATUS_CODE_ERROR {
				line += " !" + attribute(s, "error.type")
			}
			b.WriteString(line + "\n")
			draw(fmt.Sprintf("%x", s.GetSpanId()), indent+"  ")
		}
	}
	draw(parent, "")
	return b.String()
}

func attribute(s *wiretrace.Span, name string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == name {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// traceDaemon is a daemon that a test asks over its port.
type traceDaemon struct {
	t    *testing.T
	app  *app.App
	url  string
	key  string
	stop func()
}

func startTraced(t *testing.T, c app.Config) *traceDaemon {
	t.Helper()
	return startBy(t, c, app.Clock{})
}

// startBy starts a daemon that goes by a clock.
func startBy(t *testing.T, c app.Config, clock event.Clock) *traceDaemon {
	t.Helper()
	a, err := app.Open(t.Context(), c, clock, slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	ready := make(chan app.State, 1)
	go func() { ended <- a.Run(ctx, func(s app.State) { ready <- s }) }()
	d := &traceDaemon{t: t, app: a}
	d.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(d.stop)
	select {
	case s := <-ready:
		d.url = "http://" + s.Address
	case err := <-ended:
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(c.DataDir, "owner.key"))
	if err != nil {
		t.Fatal(err)
	}
	d.key = strings.TrimSpace(string(key))
	return d
}

// send sends a request, with a traceparent unless it is empty, and returns the answer's body and status.
func (d *traceDaemon) send(method, path, body, traceparent string) ([]byte, int) {
	d.t.Helper()
	raw, answer := d.roundTrip(method, path, body, traceparent)
	return raw, answer.StatusCode
}

func (d *traceDaemon) roundTrip(method, path, body, traceparent string) ([]byte, *http.Response) {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.key)
	if strings.HasPrefix(body, "{") {
		r.Header.Set("Content-Type", "application/json")
	}
	if traceparent != "" {
		r.Header.Set("Traceparent", traceparent)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return raw, answer
}

// ask sends a request that succeeds, and returns the answer's fields and its headers.
func (d *traceDaemon) ask(method, path, body, traceparent string) (map[string]any, http.Header) {
	d.t.Helper()
	raw, answer := d.roundTrip(method, path, body, traceparent)
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil || answer.StatusCode >= 300 {
		d.t.Fatalf("%s %s: %d %s %v", method, path, answer.StatusCode, raw, err)
	}
	return fields, answer.Header
}

// counts wants a line among the metrics.
func (d *traceDaemon) counts(want string) {
	d.t.Helper()
	raw, status := d.send("GET", "/metrics", "", "")
	if status != 200 || !strings.Contains(string(raw), want+"\n") {
		d.t.Errorf("/metrics answers %d and has no %s", status, want)
	}
}

func text(fields map[string]any, name string) string {
	s, _ := fields[name].(string)
	return s
}

// TestTheTraceOfARun tells a real collector of a real run, which waits for a person while the daemon is restarted, and compares the
// tree of spans. The spans hold no word of the commands.
func TestTheTraceOfARun(t *testing.T) {
	c := collect(t)
	config := app.Default(t.TempDir())
	config.Listen, config.Traces = "127.0.0.1:0", c.URL
	d := startTraced(t, config)
	const traceID, caller = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	made, _ := d.ask("POST", "/v1/spaces", `{"best_effort":true,"env":{"SECRET":"hunter2","TRACEPARENT":""}}`, "")
	space := text(made, "id")
	answer, h := d.ask("POST", "/v1/spaces/"+space+"/runs", `{"protocolVersion":"1.0","title":"a title of mine","operations":[
		{"type":"createFile","path":"name-of-mine.txt","content":"content-of-mine"},
		{"type":"shell","id":"id-of-mine","command":"echo $TRACEPARENT; exit 3"},
		{"type":"shell","command":"curl http://host-of-mine"},
		{"type":"readFile","path":"name-of-mine.txt"},
		{"type":"editFile","path":"name-of-mine.txt","edits":[{"oldContent":"content","newContent":"something"}]},
		{"type":"deleteFile","path":"name-of-mine-too.txt"},
		{"type":"shell","command":"rm -r folder-of-mine"}]}`, "00-"+traceID+"-"+caller+"-01")
	if h.Get("Traceresponse") != h.Get("Traceparent") || !strings.HasPrefix(h.Get("Traceresponse"), "00-"+traceID+"-") {
		t.Errorf("answered %q, %q", h.Get("Traceresponse"), h.Get("Traceparent"))
	}
	runID := id.Run(text(answer, "runId"))
	place := ""
	for _, e := range answer["events"].([]any) {
		if e := e.(map[string]any); e["operationId"] == "id-of-mine" {
			place = strings.TrimSpace(text(e, "stdout"))
		}
	}
	d.stop()

	d = startTraced(t, config) // another daemon, on the same log
	questions, _ := d.ask("GET", "/v1/approvals?status=pending", "", "")
	question := questions["approvals"].([]any)[0].(map[string]any)
	d.ask("POST", "/v1/approvals/"+text(question, "approval_id")+"/decide", `{"decision":"approve"}`, "")
	ended, err := d.app.Runs.History.Wait(t.Context(), id.DefaultWorkspace, runID)
	if err == nil && !ended.Status.Ended() {
		ended, err = d.app.Runs.History.WaitPast(t.Context(), id.DefaultWorkspace, runID, id.Approval(text(question, "approval_id")))
	}
	if err != nil || ended.Status != run.Succeeded {
		t.Fatalf("%+v %v", ended, err)
	}
	d.counts(`agentbox_approval_wait_duration_seconds_count{status="approved"} 1`) // by this daemon, of a question that the other one asked
	d.stop()

	const want = `POST /v1/spaces/{space_id}/runs
  invoke_agent
    execute_tool createFile
      gate decide
      gate permit
        log append
      space file create
      log append
    execute_tool shell !failed
      gate decide
      gate permit
        log append
      space exec !nonzero
      log append
    execute_tool shell !denied
      gate decide
      log append
    execute_tool readFile
      gate decide
      space file read
      log append
    execute_tool editFile
      gate decide
      gate permit
        log append
      space file edit
      log append
    execute_tool deleteFile !failed
      gate decide
      gate permit
        log append
      space file delete !file_not_found
      log append
    execute_tool shell !failed
      gate decide
      approval
      log append
      log append
      log append
      gate decide
      gate permit
        log append
      space start
        space start prepare
        space start launch
        space start set_up
      space exec !nonzero
      log append
`
	if diff := cmp.Diff(want, c.tree(traceID, caller)); diff != "" {
		t.Errorf("the trace (-want +got):\n%s", diff)
	}
	// The command knew its place: below it is where whatever it tells belongs.
	found := false
	for _, s := range c.spans {
		found = found || s.GetName() == "execute_tool shell" && place == fmt.Sprintf("00-%s-%x-01", traceID, s.GetSpanId())
		if s.GetEndTimeUnixNano() < s.GetStartTimeUnixNano() {
			t.Errorf("%s ends before it begins", s.GetName())
		}
	}
	if !found {
		t.Errorf("the command was told %q, which is not an operation's place", place)
	}
	if !slices.Contains(c.about, "service.name=agentbox") || !slices.Contains(c.about, "service.version="+app.Version) {
		t.Errorf("the resource is %v", c.about)
	}
	for _, word := range []string{"of-mine", "of mine", "hunter2", "SECRET", d.key, "echo", "curl", "rm -r"} {
		if bytes.Contains(c.raw.Bytes(), []byte(word)) {
			t.Errorf("the collector was told %q", word)
		}
	}
}

// TestTheTraceOfARequest makes a space and uses its files without any run: the spans of the space stand below
// the span of their request.
func TestTheTraceOfARequest(t *testing.T) {
	c := collect(t)
	config := app.Default(t.TempDir())
	config.Listen, config.Traces = "127.0.0.1:0", c.URL
	d := startTraced(t, config)
	const traceID, caller = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	const followed, ignored = "00-" + traceID + "-" + caller + "-01", "00-" + traceID + "-" + caller + "-00"
	made, _ := d.ask("POST", "/v1/spaces", `{"best_effort":true}`, followed)
	space := "/v1/spaces/" + text(made, "id")
	const name, content = "/files/name-of-mine.txt", "content-of-mine"
	for _, asked := range []struct {
		method, path, body, traceparent string
		status                          int
	}{
		{"PUT", name, content, followed, 200},
		{"GET", name, "", followed, 200},
		{"GET", "/files/name-of-another.txt", "", followed, 404},
		{"GET", "/files", "", followed, 200},
		{"GET", "/files/archive", "", followed, 200},
		{"GET", name, "", ignored, 200},
		{"DELETE", name, "", followed, 204},
	} {
		if _, status := d.send(asked.method, space+asked.path, asked.body, asked.traceparent); status != asked.status {
			t.Errorf("%s %s: %d, want %d", asked.method, asked.path, status, asked.status)
		}
	}
	d.ask("POST", "/v1/spaces", `{"best_effort":true}`, ignored)
	d.stop()
	const want = `POST /v1/spaces
  space start
    space start prepare
    space start launch
    space start set_up
PUT /v1/spaces/{space_id}/files/{path...}
  space file create
GET /v1/spaces/{space_id}/files/{path...}
  space file read
GET /v1/spaces/{space_id}/files/{path...}
  space file read !file_not_found
GET /v1/spaces/{space_id}/files
  space file list
GET /v1/spaces/{space_id}/files/archive
  space file archive
DELETE /v1/spaces/{space_id}/files/{path...}
  space file delete
`
	if diff := cmp.Diff(want, c.tree(traceID, caller)); diff != "" {
		t.Errorf("the trace (-want +got):\n%s", diff)
	}
	figures := map[string]int64{}
	for _, s := range c.spans {
		for _, a := range s.GetAttributes() {
			if strings.HasPrefix(a.GetKey(), "agentbox.file.") {
				figures[s.GetName()+" "+a.GetKey()] = max(figures[s.GetName()+" "+a.GetKey()], a.GetValue().GetIntValue())
			}
		}
	}
	archived := figures["space file archive agentbox.file.bytes"]
	delete(figures, "space file archive agentbox.file.bytes")
	if diff := cmp.Diff(map[string]int64{
		"space file create agentbox.file.bytes": int64(len(content)), "space file read agentbox.file.bytes": int64(len(content)),
		"space file list agentbox.file.entries": 1,
	}, figures); diff != "" || archived < int64(len(content)) {
		t.Errorf("the figures (-want +got):\n%s\nan archive of %d bytes", diff, archived)
	}
	if bytes.Contains(c.raw.Bytes(), []byte("of-mine")) || bytes.Contains(c.raw.Bytes(), []byte("of-another")) {
		t.Error("the collector was told a path or a content")
	}
}

// TestWhoseTracesAreTold sends requests with and without a trace header. A caller's trace with the sampled flag off is not exported. A
// trace that begins here follows OTEL_TRACES_SAMPLER.
func TestWhoseTracesAreTold(t *testing.T) {
	for _, c := range []struct {
		sampler, traceparent string
		told                 bool
		recorded             bool // the run names its trace
	}{
		{"", "", true, true},
		{"always_off", "", false, false},
		{"parentbased_always_off", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", true, true},
		{"", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", false, true},
	} {
		t.Run(fmt.Sprintf("%q %q", c.sampler, c.traceparent), func(t *testing.T) {
			if c.sampler != "" {
				t.Setenv("OTEL_TRACES_SAMPLER", c.sampler)
			}
			to := collect(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", to.URL)
			config := app.Default(t.TempDir())
			config.Listen = "127.0.0.1:0"
			d := startTraced(t, config)
			made, _ := d.ask("POST", "/v1/spaces", `{"best_effort":true}`, c.traceparent)
			_, h := d.ask("POST", "/v1/spaces/"+text(made, "id")+"/runs",
				`{"protocolVersion":"1.0","operations":[{"type":"message","content":"hi"}]}`, c.traceparent)
			parts := strings.Split(h.Get("Traceresponse"), "-")
			if len(parts) != 4 || (parts[3] == "01") != c.told {
				t.Errorf("answered %v", parts)
			}
			created, err := d.app.Log.Read(t.Context(), journal.Query{Workspace: id.DefaultWorkspace, Types: []string{run.EventCreated}})
			if err != nil || len(created) != 1 {
				t.Fatalf("%d %v", len(created), err)
			}
			data, err := event.Decode[run.Created](created[0])
			if err != nil || (data.Trace != "") != c.recorded || c.recorded && data.Trace != h.Get("Traceresponse") {
				t.Errorf("the run was made with the trace %q (%v), answered %q", data.Trace, err, h.Get("Traceresponse"))
			}
			d.stop()
			if got := strings.Contains(to.tree(parts[1], ""), "invoke_agent") || strings.Contains(to.tree(parts[1], "00f067aa0ba902b7"),
				"invoke_agent"); got != c.told {
				t.Errorf("told: %v, want %v", got, c.told)
			}
		})
	}
}

// TestNoTracesWithoutACollector starts a daemon as most are: nothing is told, and no run names a trace that nobody follows.
func TestNoTracesWithoutACollector(t *testing.T) {
	config := app.Default(t.TempDir())
	config.Listen = "127.0.0.1:0"
	d := startTraced(t, config)
	made, _ := d.ask("POST", "/v1/spaces", `{"best_effort":true,"env":{"TRACEPARENT":""}}`, "")
	answer, h := d.ask("POST", "/v1/spaces/"+text(made, "id")+"/runs",
		`{"protocolVersion":"1.0","operations":[{"type":"shell","command":"echo \"<$TRACEPARENT>\""}]}`, "")
	if !strings.HasSuffix(h.Get("Traceresponse"), "-00") {
		t.Errorf("answered %q", h.Get("Traceresponse"))
	}
	if got := text(answer["events"].([]any)[0].(map[string]any), "stdout"); got != "<>\n" {
		t.Errorf("the command was told %q", got)
	}
	for name, c := range map[string]func(*app.Config){
		"no scheme": func(c *app.Config) { c.Traces = "127.0.0.1:4318" },
		"a file":    func(c *app.Config) { c.Traces = "file:///tmp/x" },
	} {
		config := app.Default(t.TempDir())
		c(&config)
		if a, err := app.Open(t.Context(), config, app.Clock{}, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: accepted (%v)", name, a.Close())
		}
	}
}
