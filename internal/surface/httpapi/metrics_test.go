package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// metric returns the value of a series in Prometheus's text, and "" where there is none.
func metric(text []byte, series string) string {
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// TestMetricsOfADaemon runs something and looks for it in the metrics: by a person who may, and by those who may not.
func TestMetricsOfADaemon(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	sp := d.must(t, "POST", "/v1/spaces", `{"name":"m","best_effort":true}`, "id")
	d.must(t, "POST", "/v1/spaces/"+sp+"/runs", `{"protocolVersion":"1.0","operations":[
		{"type":"shell","command":"echo four"},{"type":"shell","command":"exit 3"},{"type":"shell","command":"curl http://x"},
		{"type":"readFile","path":"none"},{"type":"shell","command":"rm -r x"}]}`, "runId")
	status, text := d.ask(t, "", "GET", "/metrics", "")
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	// A document is there a moment before the append that changed it has been counted.
	for try := 0; try < 100 && metric(text, `agentbox_runs_total{status="awaiting_approval"}`) == ""; try++ {
		<-time.After(20 * time.Millisecond)
		_, text = d.ask(t, "", "GET", "/metrics", "")
	}
	for series, want := range map[string]string{
		`agentbox_http_requests_total{code="201",method="POST",route="/v1/spaces"}`:                                     "1",
		`agentbox_http_requests_in_flight`:                                                                              "1",
		`agentbox_operations_total{operation="shell",outcome="succeeded"}`:                                              "1",
		`agentbox_operations_total{operation="shell",outcome="failed"}`:                                                 "1",
		`agentbox_operations_total{operation="shell",outcome="denied"}`:                                                 "1",
		`agentbox_space_commands_total{exit="zero",tier="namespace"}`:                                                   "1",
		`agentbox_space_commands_total{exit="nonzero",tier="namespace"}`:                                                "1",
		`agentbox_space_output_bytes_total{channel="stdout"}`:                                                           "5",
		`agentbox_gate_decisions_total{outcome="require_approval",preset="standard",reason="policy_requires_approval"}`: "1",
		`agentbox_approvals_waiting`:                                                                                    "1",
		`agentbox_approvals_total{status="requested"}`:                                                                  "1",
		`agentbox_runs_total{status="awaiting_approval"}`:                                                               "1",
		`agentbox_spaces{state="paused",tier="namespace"}`:                                                              "1",
		`agentbox_space_starts_total{outcome="started",tier="namespace"}`:                                               "1",
		`agentbox_space_start_duration_seconds_count{phase="total",tier="namespace"}`:                                   "1",
		`agentbox_space_start_duration_seconds_count{phase="set_up",tier="namespace"}`:                                  "1",
		`agentbox_kill_switches_thrown`:                                                                                 "0",
		`agentbox_log_appends_total{outcome="failed"}`:                                                                  "",
	} {
		if got := metric(text, series); got != want {
			t.Errorf("%s: got %q, want %q", series, got, want)
		}
	}
	for _, series := range []string{
		"agentbox_log_head_events", "agentbox_log_events_total", "agentbox_log_commit_duration_seconds_count", "agentbox_log_commit_batches_sum",
		`agentbox_data_bytes{part="wal"}`,
		"go_goroutines", "process_open_fds", "agentbox_approvals_oldest_timestamp_seconds",
	} {
		if got := metric(text, series); got == "" || got == "0" {
			t.Errorf("%s: got %q, want more than nothing", series, got)
		}
	}
	for _, secret := range []string{sp, "four", "curl", d.keys[""], "usr_", "agt_", "run_"} {
		if strings.Contains(strings.ReplaceAll(string(text), "{run_id}", ""), secret) {
			t.Errorf("the metrics hold %q", secret)
		}
	}
	for _, who := range []string{"viewer", "member", "agent", "nobody"} {
		if status, raw := d.ask(t, who, "GET", "/metrics", ""); status == http.StatusOK {
			t.Errorf("%s reads %d bytes of metrics", who, len(raw))
		}
	}
}

// TestStrangersMakeNoSeries asks for what there is not, with methods that there are not: the metrics stay as many as they were.
func TestStrangersMakeNoSeries(t *testing.T) {
	d := startDaemon(t)
	ask := func(n int) {
		for _, method := range []string{"GET", fmt.Sprintf("METHOD%d", n)} {
			for _, path := range []string{fmt.Sprintf("/none/%d", n), fmt.Sprintf("/v1/runs/run_%d", n), fmt.Sprintf("/v1//%d", n)} {
				d.ask(t, "", method, path, "")
				d.ask(t, "nobody", method, path, "")
			}
		}
	}
	series := func() int {
		_, text := d.ask(t, "", "GET", "/metrics", "")
		return len(regexp.MustCompile(`(?m)^agentbox_http`).FindAll(text, -1))
	}
	ask(0)
	series()
	before := series()
	for n := 1; n < 40; n++ {
		ask(n)
	}
	if after := series(); after != before || before < 10 {
		t.Errorf("%d series became %d", before, after)
	}
}

// TestTop looks at a space that works, at one that waits for a person, and at one that does nothing.
func TestTop(t *testing.T) {
	d := startDaemon(t)
	idle := d.must(t, "POST", "/v1/spaces", `{"name":"idle","best_effort":true}`, "id")
	waits := d.must(t, "POST", "/v1/spaces", `{"name":"waits","best_effort":true}`, "id")
	works := d.must(t, "POST", "/v1/spaces", `{"name":"works","best_effort":true}`, "id")
	d.must(t, "POST", "/v1/spaces/"+waits+"/runs",
		`{"protocolVersion":"1.0","operations":[{"type":"message","content":"hi"},{"type":"shell","command":"rm -r x"}]}`, "runId")
	d.must(t, "POST", "/v1/spaces/"+works+"/runs",
		`{"protocolVersion":"1.0","title":"long","wait":0,"operations":[{"type":"shell","command":"sleep 600"}]}`, "runId")

	type shown struct {
		Head, Decisions, Appends uint64
		Waiting                  int  `json:"approvals_waiting"`
		Thrown                   bool `json:"kill_switch"`
		Spaces                   []struct {
			ID     string `json:"space_id"`
			Name   string
			Status string
			Load   *struct {
				Memory int64 `json:"memory_bytes"`
			}
			Run *struct {
				Status, Operation, Summary, Title string
				Number, Of                        int
			}
		}
	}
	look := func() (out shown) {
		status, raw := d.ask(t, "", "GET", "/v1/top", "")
		if err := json.Unmarshal(raw, &out); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s %v", status, raw, err)
		}
		return out
	}
	out := look()
	for len(out.Spaces) == 3 && (out.Spaces[0].Run == nil || out.Spaces[0].Run.Status != "running" || out.Spaces[0].Load == nil) {
		<-time.After(100 * time.Millisecond) // it is about to start, and the daemon limits the rate of requests
		out = look()
	}
	if out.Head < 10 || out.Decisions < 5 || out.Appends < 5 || out.Waiting != 1 || out.Thrown || len(out.Spaces) != 3 {
		t.Fatalf("got %+v", out)
	}
	if s := out.Spaces[0]; s.ID != works || s.Status != "running" || s.Run.Operation != "shell" || s.Run.Title != "long" ||
		s.Run.Number != 1 || s.Run.Of != 1 {
		t.Errorf("the one that works: %+v %+v", s, s.Run)
	}
	if s := out.Spaces[1]; s.ID != waits || s.Status != "paused" || s.Run.Status != "awaiting_approval" || s.Run.Number != 2 ||
		s.Run.Summary != "rm -r x" {
		t.Errorf("the one that waits: %+v %+v", s, s.Run)
	}
	if s := out.Spaces[2]; s.ID != idle || s.Run != nil {
		t.Errorf("the one that does nothing: %+v", s)
	}
	if d.must(t, "PUT", "/v1/kill-switch", `{"on":true,"reason":"enough"}`, "reason") != "enough" || !look().Thrown {
		t.Error("the kill switch is not shown")
	}
}
