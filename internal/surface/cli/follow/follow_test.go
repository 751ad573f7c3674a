package follow

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/run"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/termtest"
)

// TestARunThatPolicyRefusedWholeIsNoSuccess holds how a command ends of whose operations policy refused all, or some.
func TestARunThatPolicyRefusedWholeIsNoSuccess(t *testing.T) {
	of := func(types ...string) client.RunShown {
		r := client.RunShown{}
		r.Status = run.Succeeded
		for _, typ := range types {
			r.Result.Events = append(r.Result.Events, run.Result{Type: typ, OperationID: "op"})
		}
		return r
	}
	for _, c := range []struct {
		r    client.RunShown
		want int
	}{
		{of(run.ResPolicyDenied), cmdline.ExitRefused}, {of(run.ResPolicyDenied, run.ResPolicyDenied),
			cmdline.ExitRefused}, {of(run.ResPolicyDenied, "message"),
			cmdline.ExitOK}, {of("message"), cmdline.ExitOK}, {of(), cmdline.ExitOK},
	} {
		if got := cmdline.ExitCode(Verdict(c.r, false)); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.r.Result.Events, got, c.want)
		}
	}
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
		var said termtest.Told
		i := &cmdline.Invocation{Host: cmdline.Host{Err: &said, Clock: termtest.Soon{}, Getenv: func(string) string { return "" }}}
		said.Done = make(chan struct{})
		stop := TellOfQueue(context.Background(), i, client.New(server.URL, "key"), "spc_1", "run_1", "")
		<-asked
		if want != "" {
			<-said.Done
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
	said := termtest.Told{Done: make(chan struct{})}
	i := &cmdline.Invocation{JSON: true, Host: cmdline.Host{Err: &said, Clock: termtest.Soon{}, Getenv: func(string) string { return "" }}}
	stop := TellOfQueue(context.Background(), i, client.New(server.URL, "key"), "spc_1", "run_1", "")
	<-said.Done
	stop()
	want := "the run run_1 is queued: run_0 of the same space waits for a person; see agentbox approvals\n"
	if got := said.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
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
	i := &cmdline.Invocation{Host: cmdline.Host{Clock: termtest.Soon{}, Out: io.Discard, Err: &said,
		Getenv: func(string) string { return "" }}}
	api := client.New(server.URL, "key")
	defer api.Close()
	o := Ordered{Api: api, Space: "spc_1", Wait: Patience(i, "the lines")}
	if _, _, err := o.Do(t.Context(), run.Operation{Type: run.OpShell, Command: "true"}); fault.CodeOf(err) != "taken" || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	if got := said.String(); strings.Count(got, "the lines come faster than the daemon takes runs of this key; waiting 9s") != 1 {
		t.Errorf("said is %q", got)
	}
	asked, o.Wait = 0, nil
	if _, _, err := o.Do(t.Context(), run.Operation{Type: run.OpShell, Command: "true"}); fault.CodeOf(err) != "rate_limited" || asked != 1 {
		t.Errorf("without anybody who waits, asked %d times: %v", asked, err)
	}
}
