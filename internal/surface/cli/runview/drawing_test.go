package runview

import (
	"flag"
	"strings"
	"testing"
	"time"

	"agentbox/internal/client"
	"agentbox/internal/domain/run"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
	"agentbox/internal/surface/cli/termtest"
)

var _ = flag.Bool("update", false, "write the golden files")

// someRun has an operation in every state, and hostile text in every place that an agent writes.
func someRun() client.RunShown {
	at := func(ms int) time.Time { return termtest.Noon().Add(time.Duration(ms) * time.Millisecond) }
	no, yes, three, size := false, true, 3, int64(2048)
	r := client.RunShown{Run: run.Run{ID: "run_1", Status: run.AwaitingApproval, StartedAt: at(0), Operations: []run.Progress{
		{ID: "a", Type: "message", Summary: "hello \x1b[2J\u202eevil", State: run.Done, OK: true, Decision: "allow", BegunAt: at(0),
			EndedAt: at(0)},
		{ID: "b", Type: "createFile", Summary: "notes.txt", State: run.Done, OK: true, Decision: "allow", BegunAt: at(0), EndedAt: at(12)},
		{ID: "c", Type: "shell", Summary: "make", State: run.Done, Decision: "allow", BegunAt: at(12), EndedAt: at(1512)},
		{ID: "d", Type: "shell", Summary: "curl x", State: run.Done, Decision: "deny", Reason: "policy_forbids", BegunAt: at(1512),
			EndedAt: at(1512)},
		{ID: "e", Type: "shell", Summary: "rm -r old", State: run.Done, OK: true, Decision: "require_approval", Answer: "approved",
			BegunAt: at(2000), EndedAt: at(62000)},
		{ID: "f", Type: "shell", Summary: "rm -r all", State: run.Done, Decision: "require_approval", Answer: "denied"},
		{ID: "g", Type: "shell", Summary: "sleep 99", State: run.Done, Decision: "allow"},
		{ID: "h", Type: "shell", Summary: "deploy", State: run.Asking, Approval: "appr_1", Decision: "require_approval"},
		{ID: "i", Type: "readFile", Summary: "notes.txt", State: run.Begun, Decision: "allow"},
		{ID: "j", Type: "deleteFile", Summary: strings.Repeat("long/", 40) + "name", State: run.Waiting},
	}}}
	r.Artifacts = &run.Gathered{Files: 2, Bytes: 2050, LeftOut: 21, Error: "too_many_files",
		Named: []run.LeftOut{{Path: "out/\x1b[2J.key", Reason: "file_withheld"}}}
	r.Result.Events = []run.Result{
		{Type: "createFile", OperationID: "b", Success: &yes, BytesWritten: &size},
		{Type: "shell", OperationID: "c", Success: &no, ExitCode: &three, Error: "it said \x07no"},
		{Type: run.ResPolicyDenied, OperationID: "d", Reason: "curl x: a space has no network",
			Suggestion: "put the data in\x1b]0;owned\a as files"},
		{Type: run.ResApprovalRequired, OperationID: "e"},
		{Type: "shell", OperationID: "e", Success: &yes, ExitCode: new(int)},
		{Type: run.ResPolicyDenied, OperationID: "f", Reason: "not today", ReasonCode: "approval_denied"},
		{Type: run.ResUnknown, OperationID: "g", Reason: "the daemon stopped while the operation ran"},
	}
	return r
}

// someTime is a run with a queue, work, and a person who took their time.
func someTime() (client.RunShown, []run.Span) {
	r := someRun()
	r.Title = "weather <report> & \x1b[2J"
	at := func(ms int) time.Time { return termtest.Noon().Add(time.Duration(ms) * time.Millisecond) }
	return r, []run.Span{
		{Index: -1, Kind: run.SpanQueued, From: at(-500), To: at(0)},
		{Index: 0, Kind: run.SpanWorking, From: at(0), To: at(0)},
		{Index: 1, Kind: run.SpanWorking, From: at(0), To: at(12)},
		{Index: 2, Kind: run.SpanWorking, From: at(12), To: at(1512)},
		{Index: 4, Kind: run.SpanWaiting, From: at(2000), To: at(6000)},
		{Index: 4, Kind: run.SpanWorking, From: at(6000), To: at(6200)},
	}
}

// someEngine is a run that one engine gave back and another one ended.
func someEngine() (client.RunShown, []run.Span) {
	at := func(s int) time.Time { return termtest.Noon().Add(time.Duration(s) * time.Second) }
	r := client.RunShown{Run: run.Run{ID: "run_1", Title: "weather", Status: run.Succeeded, Order: run.Order{Engine: true}}}
	return r, []run.Span{
		{Index: -1, Kind: run.SpanQueued, From: at(0), To: at(2)},
		{Index: 0, Kind: run.SpanWorking, From: at(2), To: at(10), Part: run.PartAttempt, ID: "rat_1", Failed: true},
		{Index: 1, Kind: run.SpanWorking, From: at(3), To: at(9), Part: run.PartStep, ID: "step_1", Name: "look \x1b[2J <around>"},
		{Index: 2, Kind: run.SpanWorking, From: at(4), To: at(9), Part: run.PartCall, ID: "tc_1", Name: "web.search", Failed: true},
		{Index: -1, Kind: run.SpanQueued, From: at(10), To: at(20)},
		{Index: 3, Kind: run.SpanWorking, From: at(20), To: at(63), Part: run.PartAttempt, ID: "rat_2"},
	}
}

// TestRunDrawings compares how runs look with golden files.
func TestRunDrawings(t *testing.T) {
	i := &cmdline.Invocation{Host: cmdline.Host{Clock: termtest.Clock{}}}
	termtest.Drawings(t, map[string]func(*term.Printer){
		"timeline": func(p *term.Printer) { WriteRun(p, i, someRun()) },
		"waterfall": func(p *term.Printer) {
			r, spans := someTime()
			WriteWaterfall(p, r, spans)
		},
		"engine": func(p *term.Printer) {
			r, spans := someEngine()
			WriteWaterfall(p, r, spans)
			p.Line("%s", Waterfall(r.Run, spans))
		},
		"picture": func(p *term.Printer) {
			r, spans := someTime()
			p.Line("%s", Waterfall(r.Run, spans))
		},
	})
}
