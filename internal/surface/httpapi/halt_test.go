package httpapi_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/app"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/surface/httpapi/wire"
)

// TestThreat31TheKillSwitchReachesAHundredBusyRuns throws it while a hundred commands add the time to a file of their space, again and
// again: none of them writes a second later. They add, because a file that is cut while it is read ends its download.
func TestThreat31TheKillSwitchReachesAHundredBusyRuns(t *testing.T) {
	const busy = 100
	d := startDaemon(t, func(c *app.Config) {
		c.Rates = wire.DefaultRates()
		c.Rates.Spaces, c.Rates.Runs, c.Rates.Files = 1000, 1000, 10_000
	})
	d.succeed(t, "PATCH", "/v1/workspaces/"+string(id.DefaultWorkspace), fmt.Sprintf(`{"max_concurrent_tasks":%d}`, busy), &struct{}{})
	const beat = `sleep 200 | while true; do echo $EPOCHREALTIME >> beat; read -t 0.2 x; done`
	body := fmt.Sprintf(`{"protocolVersion":"1.0","wait":0,"operations":[{"type":"shell","command":%q},{"type":"shell","command":"echo `+
		`more"}]}`, beat)
	spaces, runs := make([]string, busy), make([]string, busy)
	starters := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for n := range busy {
		wg.Go(func() {
			starters <- struct{}{}
			defer func() { <-starters }()
			var made struct {
				ID string `json:"id"`
			}
			d.succeed(t, "POST", "/v1/spaces", `{"policy":"permissive"}`, &made)
			var run struct {
				ID     string `json:"runId"`
				Status string `json:"status"`
			}
			d.succeed(t, "POST", "/v1/spaces/"+made.ID+"/runs", body, &run)
			if spaces[n], runs[n] = made.ID, run.ID; run.Status != "running" && run.Status != "queued" {
				t.Errorf("run %d is %s", n, run.Status)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	beats := func(n int) (float64, bool) {
		status, raw := d.ask(t, "", "GET", "/v1/spaces/"+spaces[n]+"/files/beat", "")
		lines := strings.Fields(string(raw))
		if status != 200 || len(lines) == 0 {
			return 0, false
		}
		at, err := strconv.ParseFloat(lines[len(lines)-1], 64)
		return at, err == nil
	}
	for n := range busy { // until each of them beats
		for ok := false; !ok; _, ok = beats(n) {
			if t.Context().Err() != nil {
				t.Fatal("not all of them began")
			}
		}
	}
	thrown := float64(time.Now().UnixMicro()) / 1e6
	if status, raw := d.ask(t, "", "PUT", "/v1/kill-switch", `{"on":true}`); status != 200 {
		t.Fatalf("%d %s", status, raw)
	}
	for n := range busy {
		doc, err := d.app.Runs.History.Wait(t.Context(), id.DefaultWorkspace, id.Run(runs[n]))
		if err != nil || !doc.Status.Ended() {
			t.Fatalf("run %d is %s, %v", n, doc.Status, err)
		}
	}
	last := 0.0
	for n := range busy {
		if at, ok := beats(n); ok {
			last = max(last, at)
		}
	}
	if last-thrown > 1 {
		t.Errorf("one wrote %.3f s after the kill switch was thrown", last-thrown)
	}
	t.Logf("the last one wrote %.3f s after the kill switch was thrown", last-thrown)
	if a := d.evaluate(t, "", `{"action":"api.call.idempotent","target":"api.example.com"}`); a.Code != policy.ReasonKillSwitch || !a.Blocked {
		t.Errorf("outside: %+v", a)
	}
}
