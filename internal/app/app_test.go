package app_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"testing"
	"time"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/spaces"
)

// start opens and runs a daemon in a fresh data directory, until the test ends.
func start(t *testing.T, dir string) *app.App {
	t.Helper()
	c := app.Default(dir)
	c.Listen = "127.0.0.1:0"
	a, err := app.Open(t.Context(), c, app.Clock{}, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	ready := make(chan struct{})
	go func() { ended <- a.Run(ctx, func(app.State) { close(ready) }) }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return a
}

func TestOperationsFromBeginningToEnd(t *testing.T) {
	a := start(t, t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	origin := event.Origin{Principal: a.Owner}
	s, err := a.Spaces.Create(ctx, origin, spaces.Request{Workspace: id.DefaultWorkspace, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := run.ParseMessage([]byte(`{"protocolVersion":"1.0","operations":[
		{"type":"message","content":"hello"},
		{"type":"createFile","path":"a/b.txt","content":"one\ntwo\n"},
		{"type":"shell","command":"wc -l < a/b.txt && echo oops >&2"},
		{"type":"shell","command":"curl https://example.com"},
		{"type":"readFile","path":"a/b.txt"},
		{"type":"editFile","path":"a/b.txt","edits":[{"oldContent":"two","newContent":"2"}]},
		{"type":"shell","command":"rm -r a && echo '<done>'"},
		{"type":"deleteFile","path":"missing"},
		{"type":"readFile","path":"../x"}
	]}`))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := a.Runs.Start(ctx, origin, runs.Request{Workspace: id.DefaultWorkspace, Space: s.ID, Message: m})
	if err != nil {
		t.Fatal(err)
	}
	doc, err = a.Runs.Wait(ctx, id.DefaultWorkspace, doc.ID)
	if err != nil {
		t.Fatal(err)
	}
	show(t, a, doc)
	if doc.Status != run.AwaitingApproval {
		t.Fatalf("the run is %s, want awaiting_approval", doc.Status)
	}
	_, approval := doc.Pending()
	if _, err := a.Gate.Approvals.Decide(ctx, origin, id.DefaultWorkspace, approval, policy.Answer{Decision: "approve"}); err != nil {
		t.Fatal(err)
	}
	doc, err = a.Runs.WaitPast(ctx, id.DefaultWorkspace, doc.ID, approval)
	if err != nil {
		t.Fatal(err)
	}
	show(t, a, doc)
	if doc.Status != run.Succeeded {
		t.Fatalf("the run is %s, want succeeded", doc.Status)
	}
}

func show(t *testing.T, a *app.App, doc run.Run) {
	t.Helper()
	events, err := a.Runs.Events(t.Context(), doc)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := json.MarshalIndent(events, "", " ")
	t.Logf("%s", raw)
}
