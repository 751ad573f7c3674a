package agentcmd

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"agentbox/internal/client"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/run"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// TestTheCostCountsEveryTask counts what tasks cost that succeeded, that failed, with and without a turn, and that were taken back.
func TestTheCostCountsEveryTask(t *testing.T) {
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/usage":
			tokens := map[string]int{"run_1": 1, "run_2": 20, "run_3": 300, "run_4": 4000, "run_5": 50000}[r.URL.Query().Get("run_id")]
			_ = json.NewEncoder(w).Encode(client.ModelUsage{Usage: []model.Used{{Requests: 1, Usage: model.Usage{Input: tokens}}}, Currency: "EUR"})
		case "/v1/runs/run_4":
			_ = json.NewEncoder(w).Encode(client.RunShown{Run: run.Run{ID: "run_4", Status: run.Failed}})
		case "/v1/runs/run_5":
			_ = json.NewEncoder(w).Encode(client.RunShown{Run: run.Run{ID: "run_5", Status: run.Failed,
				Reported: &run.Reported{Output: json.RawMessage(`{"turns": 1}`)}}})
		default: // no steps of tasks that are taken back
			_, _ = w.Write([]byte("{}"))
		}
	}))
	defer daemon.Close()
	screen := &chatScreen{}
	p := &term.Printer{Out: screen}
	c := &chat{i: &cmdline.Invocation{Host: cmdline.Host{Out: screen, Err: screen}}, api: client.New(daemon.URL, "abk_x"), out: p, err: p}
	costs := func(want string) {
		t.Helper()
		before := len(screen.String())
		if err := c.cost(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		if got := screen.String()[before:]; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	fails := func(r id.Run) {
		t.Helper()
		c.runs = append(c.runs, r)
		if err := (&attended{chat: c, run: run.Run{ID: r}, blind: true}).ended(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	costs("no model was asked yet\n")
	c.runs = []id.Run{"run_1", "run_2", "run_3"}
	costs("3 tasks: 3 requests, 321 tokens, 0 EUR\n")
	if fails("run_4"); len(c.runs) != 3 {
		t.Errorf("the next task goes on after %v", c.runs)
	}
	costs("4 tasks: 4 requests, 4321 tokens, 0 EUR\n")
	if err := c.rewind(t.Context(), "2"); err != nil || !slices.Equal(c.runs, []id.Run{"run_1"}) {
		t.Fatal(err, c.runs)
	}
	costs("4 tasks: 4 requests, 4321 tokens, 0 EUR\n  of it 2 tasks taken back: 2 requests, 320 tokens, 0 EUR\n")
	fails("run_5")
	costs("5 tasks: 5 requests, 54321 tokens, 0 EUR\n  of it 2 tasks taken back: 2 requests, 320 tokens, 0 EUR\n")
}
