package agentcmd

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/run"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// TestAConversationSaysThatTheLogCannotBeRead follows a run whose frames come on, while requests for the log are answered with 503. The
// conversation says so once, and once that the log can be read again; then it shows what was recorded meanwhile.
func TestAConversationSaysThatTheLogCannotBeRead(t *testing.T) {
	t.Parallel()
	wait := of(t, model.EventDeferred, model.Deferred{Reason: "the model main is left alone", Until: time.Unix(1e10, 0)})
	d := &recordedRun{frames: framesOf(t, model.Delta{Type: model.TextPart, Text: "I think."}), events: []event.Event{wait}, breaks: true,
		ends: make(chan struct{}), clock: hostClock{}, ended: client.RunShown{Run: run.Run{ID: ownRun, Status: run.Succeeded}}}
	screen, ended := d.attends(t, run.Running)
	const lost, back = "(the daemon does not answer: the database does not answer; the agent goes on when it does)", "(the daemon is back)"
	screen.sees(t, lost, 1)
	d.shut.Store(false)
	screen.sees(t, back, 1)
	screen.sees(t, "the model main is left alone", 1)
	close(d.ends)
	ended()
	for _, text := range []string{lost, back, "the model main is left alone"} {
		if n := strings.Count(screen.String(), text); n != 1 {
			t.Errorf("it says %d times %q\n%s", n, text, screen)
		}
	}
}

// TestATaskIsBegunOnce has a daemon take a task and break off before it answers. The task is sent again with the same key, and the next
// one, which has the same text, with another key.
func TestATaskIsBegunOnce(t *testing.T) {
	var keys []string
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if keys = append(keys, r.Header.Get("Idempotency-Key")); len(keys) == 1 {
				panic(http.ErrAbortHandler)
			}
		}
		_ = json.NewEncoder(w).Encode(run.Run{ID: ownRun})
	}))
	defer daemon.Close()
	screen := &chatScreen{}
	p := &term.Printer{Out: screen}
	i := &cmdline.Invocation{Host: cmdline.Host{Out: screen, Err: screen, Clock: hostClock{}}}
	c := &chat{i: i, api: client.New(daemon.URL, "abk_x"), out: p, err: p, space: "sp_1"}
	for n, sent := range []bool{false, true, true} {
		_, err := c.begin(t.Context(), "hello", nil)
		if (err == nil) != sent || !sent && !unanswered(t.Context(), err) || len(c.runs) != n {
			t.Fatalf("%d: got %v, and the runs %v", n, err, c.runs)
		}
	}
	if len(keys) != 3 || keys[0] == "" || keys[1] != keys[0] || keys[2] == keys[0] || slices.Contains(keys, "") {
		t.Errorf("got the keys %q", keys)
	}
}

// TestARunThatIsFollowedNamesWhatGoesOn has the daemon go away while a command follows an agent.
func TestARunThatIsFollowedNamesWhatGoesOn(t *testing.T) {
	t.Parallel()
	daemon := httptest.NewServer(http.NotFoundHandler())
	daemon.Close()
	screen := &chatScreen{}
	i := &cmdline.Invocation{Host: cmdline.Host{Out: screen, Err: screen, Clock: hostClock{}, Getenv: func(string) string { return "" }}}
	err := watched(t.Context(), i, client.New(daemon.URL, "abk_x"), run.Run{ID: ownRun}, false)
	f, ok := cmdline.AsFault(err)
	if !ok || f.Code != "daemon_unreachable" || !strings.Contains(f.Suggestion, "agentbox agent follow run_own") {
		t.Errorf("got %+v", err)
	}
}
