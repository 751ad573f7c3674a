package httpapi_test

import (
	"testing"

	"agentbox/internal/app"
	"agentbox/internal/surface/httpapi/wire"
)

// TestWhoAsksForMuchKeepsHisClaims uses up the rate limit of a principal. The principal does not lose the run that they work on.
func TestWhoAsksForMuchKeepsHisClaims(t *testing.T) {
	d := startDaemon(t, func(c *app.Config) {
		c.Rates = wire.DefaultRates()
		c.Rates.General, c.Rates.Claims = 20, 3
	})
	var made struct {
		Run   string `json:"run_id"`
		Token string `json:"claim_token"`
	}
	d.succeed(t, "POST", "/v1/runs", `{"room_id":"room_00000000000000000000000000","title":"work"}`, &made)
	run := made.Run
	d.succeed(t, "POST", "/v1/runs/claim", `{}`, &made)
	for n := 0; ; n++ {
		status, raw := d.ask(t, "", "GET", "/v1/runs/"+run, "")
		if status == 429 {
			break
		}
		if status != 200 || n > 20 {
			t.Fatalf("request %d: %d %s", n, status, raw)
		}
	}
	token := `{"claim_token":"` + made.Token + `"}`
	for n, path := range []string{"lease/heartbeat", "lease/heartbeat", "complete", "complete"} {
		want := 200
		if n == 3 {
			want = 429 // these have their own measure
		}
		if status, raw := d.ask(t, "", "POST", "/v1/runs/"+run+"/"+path, token); status != want {
			t.Errorf("%s: %d %s, want %d", path, status, raw, want)
		}
	}
}
