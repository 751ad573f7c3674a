package app_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
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
	s, err := a.Spaces.Creation.Create(ctx, origin, spaces.Request{Workspace: id.DefaultWorkspace, Name: "test"})
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
	doc, err = a.Runs.History.Wait(ctx, id.DefaultWorkspace, doc.ID)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Status != run.AwaitingApproval {
		t.Fatalf("the run is %s, want awaiting_approval", doc.Status)
	}
	before := []string{
		"op-1 message true",
		"op-2 createFile true a/b.txt written 8",
		`op-3 shell true exit 0 stdout "2\n" stderr "oops\n"`,
		"op-4 policyDenied policy_forbids",
		`op-5 readFile true a/b.txt "one\ntwo\n"`,
		"op-6 editFile true a/b.txt edits 1",
	}
	results(t, a, doc, append(before, "op-7 approvalRequired"))
	_, approval := doc.Pending()
	if _, err := a.Gate.Approvals.Decide(ctx, origin, id.DefaultWorkspace, approval, policy.Answer{Decision: "approve"}); err != nil {
		t.Fatal(err)
	}
	doc, err = a.Runs.History.WaitPast(ctx, id.DefaultWorkspace, doc.ID, approval)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Status != run.Succeeded {
		t.Fatalf("the run is %s, want succeeded", doc.Status)
	}
	results(t, a, doc, append(before, `op-7 shell true exit 0 stdout "<done>\n" stderr ""`, "op-8 deleteFile false missing file_not_found",
		"op-9 error invalid_path"))
}

// results holds the results of a run: what each operation did, and what it said.
func results(t *testing.T, a *app.App, doc run.Run, want []string) {
	t.Helper()
	events, err := a.Runs.History.Events(t.Context(), doc)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range events.Events {
		line := r.OperationID + " " + r.Type
		if r.Success != nil {
			line += fmt.Sprintf(" %t", *r.Success)
		}
		if r.Path != "" {
			line += " " + r.Path
		}
		if r.BytesWritten != nil {
			line += fmt.Sprintf(" written %d", *r.BytesWritten)
		}
		if r.Content != nil {
			line += fmt.Sprintf(" %q", *r.Content)
		}
		if r.EditsApplied != nil {
			line += fmt.Sprintf(" edits %d", *r.EditsApplied)
		}
		if r.ExitCode != nil && r.Stdout != nil && r.Stderr != nil {
			line += fmt.Sprintf(" exit %d stdout %q stderr %q", *r.ExitCode, *r.Stdout, *r.Stderr)
		}
		if r.ReasonCode != "" {
			line += " " + r.ReasonCode
		}
		got = append(got, line)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
