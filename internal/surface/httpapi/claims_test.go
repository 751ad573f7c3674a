package httpapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"agentbox/internal/app"
	"agentbox/internal/domain/run"
)

// TestADaemonThatStopsSaysSoToWhoWaitsForARun stops a daemon while somebody waits in a claim: nothing is known of what waits then.
func TestADaemonThatStopsSaysSoToWhoWaitsForARun(t *testing.T) {
	c := app.Default(t.TempDir())
	c.Engine = app.EngineExternal
	d, stop := serveDaemon(t, c)
	taken := make(chan struct{})
	// it reads the request's body, so that it answers it before it ends
	trace := &httptrace.ClientTrace{Got100Continue: func() { close(taken) }}
	r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodPost, d.address+"/v1/runs/claim",
		strings.NewReader(`{"wait":60}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.keys[""])
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Expect", "100-continue")
	type answer struct {
		status int
		raw    []byte
		err    error
	}
	answered := make(chan answer, 1)
	transport := &http.Transport{ExpectContinueTimeout: time.Minute}
	defer transport.CloseIdleConnections()
	go func() {
		resp, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			answered <- answer{err: err}
			return
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		answered <- answer{resp.StatusCode, raw, err}
	}()
	<-taken
	stop()
	if a := <-answered; a.err != nil || a.status != http.StatusServiceUnavailable || code(a.raw) != "stopping" {
		t.Errorf("got %d %s, %v", a.status, a.raw, a.err)
	}
}

// TestAClaimOfNothingSaysWhy asks for runs where none waits, where some wait behind those that run, and where nothing ever could come.
func TestAClaimOfNothingSaysWhy(t *testing.T) {
	c := app.Default(t.TempDir())
	c.Engine = app.EngineExternal
	c.ClaimTime = time.Minute
	d, stop := serveDaemon(t, c)
	defer stop()
	type answer struct {
		Claimed bool       `json:"claimed"`
		Reason  string     `json:"reason"`
		Waiting int        `json:"waiting"`
		Tasks   *run.Tasks `json:"tasks"`
	}
	claim := func(body string) (a answer) {
		t.Helper()
		status, raw := d.ask(t, "", "POST", "/v1/runs/claim", body)
		if err := json.Unmarshal(raw, &a); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s", status, raw)
		}
		return a
	}
	if a := claim(`{}`); a.Claimed || a.Reason != "nothing_waits" || a.Tasks != nil {
		t.Errorf("got %+v", a)
	}
	for range 7 {
		d.must(t, "POST", "/v1/runs", `{"room_id":"room_00000000000000000000000000"}`, "run_id")
	}
	for range 5 {
		if a := claim(`{}`); !a.Claimed || a.Reason != "" {
			t.Fatalf("got %+v", a)
		}
	}
	if a := claim(`{}`); a.Claimed || a.Reason != "workspace_full" || a.Waiting != 2 || a.Tasks == nil || *a.Tasks != (run.Tasks{Running: 5,
		Most: 5}) {
		t.Errorf("got %+v", a)
	}
	if a := claim(`{"work":"operations"}`); a.Claimed || a.Reason != "nothing_waits" {
		t.Errorf("got %+v", a)
	}
	status, raw := d.ask(t, "", "POST", "/v1/runs/claim", `{"room_id":"room_01M7YNAYM0SM228XA4K3G6VDD4","wait":60}`)
	if status != http.StatusNotFound || code(raw) != "room_not_found" {
		t.Errorf("got %d %s", status, raw)
	}
}

// TestAnOrderThatNobodyCouldExecuteIsRefused asks for runs of operations in spaces that are not there, or of unknown types. Other inputs
// are nobody's business.
func TestAnOrderThatNobodyCouldExecuteIsRefused(t *testing.T) {
	c := app.Default(t.TempDir())
	c.Engine = app.EngineExternal
	d, stop := serveDaemon(t, c)
	defer stop()
	there, gone := d.must(t, "POST", "/v1/spaces", `{}`, "id"), d.must(t, "POST", "/v1/spaces", `{}`, "id")
	if status, raw := d.ask(t, "", "DELETE", "/v1/spaces/"+gone, ""); status >= 300 {
		t.Fatalf("%d %s", status, raw)
	}
	head, err := d.app.Log.Head(t.Context(), "ws_dev")
	if err != nil {
		t.Fatal(err)
	}
	order := func(space, operation string) string {
		return `{"protocolVersion":"1.0","space_id":"` + space + `","operations":[` + operation + `]}`
	}
	const hello = `{"type":"message","content":"hello"}`
	for input, want := range map[string]string{
		order("spc_01M7YNAYM0SM228XA4K3G6VDD4", hello): "space_not_found", order(gone, hello): "space_not_ready",
		order(there, `{"type":"dream"}`): "operation_invalid", order(there, `{"type":"message","contents":"hello"}`): "operation_invalid",
	} {
		if status, raw := d.ask(t, "", "POST", "/v1/runs", `{"room_id":"room_00000000000000000000000000","input":`+input+`}`); status < 400 ||
			status >= 500 || code(raw) != want {
			t.Errorf("%s: got %d %s, want %s", input, status, raw, want)
		}
	}
	if now, err := d.app.Log.Head(t.Context(), "ws_dev"); err != nil || now != head {
		t.Errorf("the log went from %d to %d, %v", head, now, err)
	}
	for _, input := range []string{order(there, hello), `{"space_id":"spc_1"}`,
		`{"protocolVersion":"2.0","space_id":"spc_1","operations":[{"type":"dream"}]}`, `"dream"`, `null`} {
		d.must(t, "POST", "/v1/runs", `{"room_id":"room_00000000000000000000000000","input":`+input+`}`, "run_id")
	}
}
