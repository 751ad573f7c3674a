package cli

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/run"
)

func TestWhereItStandsSaysHowLongAnEngineIsSilent(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	claimed := func(ago time.Duration) *run.Claim {
		return &run.Claim{Renewed: now.Add(-ago), Until: now.Add(-ago + run.ClaimTime)}
	}
	for want, r := range map[string]run.Run{
		"running":                               {Status: run.Running, Claim: claimed(20 * time.Second)},
		"running, engine silent for 1 min 20 s": {Status: run.Running, Claim: claimed(80 * time.Second)},
		"failed":                                {Status: run.Failed, Claim: claimed(80 * time.Second)},
		"queued":                                {Status: run.Queued},
	} {
		if got := whereItStands(r, now).text; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// soon is a clock whose timers are over at once.
type soon struct{}

func (soon) Now() time.Time { return time.Now() }

func (soon) NewTimer(time.Duration) (<-chan time.Time, func()) {
	over := make(chan time.Time, 1)
	over <- time.Time{}
	return over, func() {}
}

// TestWhatAQueuedRunWaitsForIsSaid watches a run that is queued behind engines of which some are silent, and one for which there is room.
func TestWhatAQueuedRunWaitsForIsSaid(t *testing.T) {
	for tasks, want := range map[string]string{
		`{"running":5,"most":5,"silent":2}`: "the run run_1 is queued: 5 of 5 tasks of the workspace run, 2 of them with engines that were not " +
			"heard of for longer than their claims last; see agentbox runs list\n",
		`{"running":5,"most":5,"silent":0}`: "the run run_1 is queued: 5 of 5 tasks of the workspace run; see agentbox runs list\n",
		`{"running":4,"most":5,"silent":2}`: "",
	} {
		asked := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.URL.Path == "/v1/top" {
				_, _ = w.Write([]byte(`{"tasks":` + tasks + `}`))
				close(asked)
				return
			}
			_, _ = w.Write([]byte(`{"run_id":"run_1","status":"queued"}`))
		}))
		var said told
		i := &invocation{Host: Host{Err: &said, Clock: soon{}, Getenv: func(string) string { return "" }}}
		said.done = make(chan struct{})
		stop := i.tellOfQueue(context.Background(), client.New(server.URL, "key"), "spc_1", "run_1", "")
		<-asked
		if want != "" {
			<-said.done
		}
		stop()
		if got := said.String(); got != want {
			t.Errorf("%s: got %q, want %q", tasks, got, want)
		}
		server.Close()
	}
}

// TestARunBehindAQuestionSaysSo watches a run of a space whose earlier run waits for a person, with --json too.
func TestARunBehindAQuestionSaysSo(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("status") == "awaiting_approval" {
			_, _ = w.Write([]byte(`{"runs":[{"run_id":"run_0","status":"awaiting_approval"}]}`))
			return
		}
		_, _ = w.Write([]byte(`{"run_id":"run_1","status":"queued"}`))
	}))
	defer server.Close()
	said := told{done: make(chan struct{})}
	i := &invocation{json: true, Host: Host{Err: &said, Clock: soon{}, Getenv: func(string) string { return "" }}}
	stop := i.tellOfQueue(context.Background(), client.New(server.URL, "key"), "spc_1", "run_1", "")
	<-said.done
	stop()
	want := "the run run_1 is queued: run_0 of the same space waits for a person; see agentbox approvals\n"
	if got := said.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// told is an output whose done is closed when something was written to it.
type told struct {
	strings.Builder
	done chan struct{}
}

func (w *told) Write(p []byte) (int, error) {
	n, err := w.Builder.Write(p)
	if strings.HasSuffix(w.String(), "\n") {
		close(w.done)
	}
	return n, err
}

// TestASessionWaitsWhereItsLinesComeTooFast: a line that was refused for its rate is sent again, when the daemon says so and with a word
// about it.
func TestASessionWaitsWhereItsLinesComeTooFast(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if asked++; asked <= 2 {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write([]byte(`{"error":"rate_limited","detail":"d","retry_after":9}`))
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"error":"taken","detail":"it was taken this time"}`))
	}))
	defer server.Close()
	var said strings.Builder
	i := &invocation{Host: Host{Clock: soon{}, Out: io.Discard, Err: &said, Getenv: func(string) string { return "" }}}
	api := client.New(server.URL, "key")
	defer api.Close()
	o := ordered{api: api, space: "spc_1", wait: i.patience("the lines")}
	if _, _, err := o.do(t.Context(), run.Operation{Type: run.OpShell, Command: "true"}); fault.CodeOf(err) != "taken" || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	if got := said.String(); strings.Count(got, "the lines come faster than the daemon takes runs of this key; waiting 9s") != 1 {
		t.Errorf("said is %q", got)
	}
	asked, o.wait = 0, nil
	if _, _, err := o.do(t.Context(), run.Operation{Type: run.OpShell, Command: "true"}); fault.CodeOf(err) != "rate_limited" || asked != 1 {
		t.Errorf("without anybody who waits, asked %d times: %v", asked, err)
	}
}

// TestACellWaitsWhereCellsComeTooFast: the same of a cell.
func TestACellWaitsWhereCellsComeTooFast(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if asked++; asked <= 2 {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write([]byte(`{"error":"rate_limited","detail":"d","retry_after":9}`))
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"error":"taken","detail":"it was taken this time"}`))
	}))
	defer server.Close()
	var said strings.Builder
	i := &invocation{Host: Host{Clock: soon{}, Out: io.Discard, Err: &said, Getenv: func(string) string { return "" }}}
	api := client.New(server.URL, "key")
	defer api.Close()
	cell := cellRun{i: i, space: "spc_1", name: "c"}
	if err := cell.run(t.Context(), api); fault.CodeOf(err) != "taken" || asked != 3 || strings.Count(said.String(),
		"the cells come faster") != 1 {
		t.Errorf("a cell: asked %d times: %v, said %q", asked, err, said.String())
	}
}
