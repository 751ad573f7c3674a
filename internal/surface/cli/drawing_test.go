package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
)

// clock stands still.
type clock struct{}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func (clock) Now() time.Time { return noon }

func (clock) NewTimer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// drawn returns what a function draws on a terminal of a width, with colours as {31:...}.
func drawn(width int, draw func(*printer)) string {
	var out bytes.Buffer
	draw(&printer{out: &out, colour: true, width: width})
	s := strings.ReplaceAll(out.String(), "\x1b[0m", "}")
	for _, c := range []string{bold, faint, red, green, yellow, cyan} {
		s = strings.ReplaceAll(s, "\x1b["+c+"m", "{"+c+":")
	}
	return s
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name + ".txt"
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s has changed (-want +got):\n%s", file, diff)
	}
}

// someRun has an operation in every state, and hostile text in every place that an agent writes.
func someRun() client.RunShown {
	at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
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
	at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
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
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
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

// someTranscript is a transcript whose texts would like to be more than text.
func someTranscript() run.Transcript {
	yes, zero, stdout := true, 0, "```\n# owned\x1b[2J\n"
	return run.Transcript{
		Header: run.TranscriptHeader{
			Version: 1, Exported: noon, Head: 9, Redacted: []string{"env"}, Place: run.Place{ID: "spc_1", Tier: "namespace", Policy: "standard"},
			Run: run.Run{ID: "run_1", Title: "a | b `c`", Status: run.Succeeded, StartedAt: noon, EndedAt: noon.Add(time.Second), Agent: "agt_1",
				CreatedBy: "usr_1"},
		},
		Asked: []run.Asked{
			{Index: 0, Operation: run.Operation{Type: run.OpEditFile, ID: "a", Path: "x.txt", Edits: []run.Edit{{Old: "one\ntwo", New: "three"}}}},
			{Index: 1, Operation: run.Operation{Type: run.OpShell, ID: "b", Command: "cat x", Env: map[string]string{"K": ""}},
				Removed: map[string]run.Removed{"env.K": {}}},
			{Index: 2, Operation: run.Operation{Type: run.OpMessage, ID: "c", Content: "bye"}},
		},
		Outcomes: []run.Outcome{
			{Index: 0, ID: "a", Decision: "allow", Result: run.Result{Type: run.OpEditFile, Success: &yes, EditsApplied: &zero}},
			{Index: 1, ID: "b", Decision: "require_approval", Reason: "policy_requires_approval", Answer: "approved", BegunAt: noon,
				EndedAt: noon.Add(time.Second),
				Result:  run.Result{Type: run.OpShell, Success: &yes, ExitCode: &zero, Stdout: &stdout}},
		},
	}
}

// drawings compares what a terminal shows with golden files; -update rewrites them.
func drawings(t *testing.T, all map[string]func(*printer)) {
	t.Helper()
	for name, draw := range all {
		t.Run(name, func(t *testing.T) { golden(t, name, drawn(100, draw)) })
	}
}

// TestRunDrawings compares how runs look with golden files.
func TestRunDrawings(t *testing.T) {
	i := &invocation{Host: Host{Clock: clock{}}}
	drawings(t, map[string]func(*printer){
		"timeline": func(p *printer) { p.run(i, someRun()) },
		"waterfall": func(p *printer) {
			r, spans := someTime()
			p.waterfall(r, spans)
		},
		"engine": func(p *printer) {
			r, spans := someEngine()
			p.waterfall(r, spans)
			p.line("%s", waterfall(r.Run, spans))
		},
		"picture": func(p *printer) {
			r, spans := someTime()
			p.line("%s", waterfall(r.Run, spans))
		},
	})
}

// TestTranscriptDrawings compares how transcripts look with golden files.
func TestTranscriptDrawings(t *testing.T) {
	digest := event.DigestOf([]byte("x"))
	drawings(t, map[string]func(*printer){
		"markdown": func(p *printer) { p.line("%s", markdown(someTranscript())) },
		"replay": func(p *printer) {
			t := someTranscript()
			p.replayed(replayed{Recorded: "run_1", Run: "run_2", Compared: 2, Same: true, Start: start{From: "snapshot", Snapshot: digest,
				Exact: true}}, t, t)
			at := int64(3)
			p.replayed(replayed{
				Recorded: "run_1", Run: "run_2", Compared: 2, Start: start{From: "empty"}, Notes: []string{"another policy\x1b[2J"},
				Divergence: &run.Divergence{Index: 1, Operation: "b", Field: "stdout", Offset: &at, Recorded: "one\n", Replayed: "on\x1b[2J"},
			}, t, t)
		},
	})
}

// TestApprovalDrawings compares how questions look with golden files.
func TestApprovalDrawings(t *testing.T) {
	i := &invocation{Host: Host{Clock: clock{}}}
	digest := event.DigestOf([]byte("x"))
	drawings(t, map[string]func(*printer){
		"approval": func(p *printer) {
			p.approval(i, policy.Approval{
				ID: "appr_1", Title: "run a command: rm -r old", Status: policy.Pending, RequestedBy: "agt_1", RequestedAt: noon.Add(-time.Minute),
				ExpiresAt: noon.Add(time.Hour), Run: "run_1", Operation: "clean", ActionHash: digest,
				Question: policy.Question{
					What: "command: \"rm -r old\"\ncwd: \"\"\n", Why: "it deletes a folder", Impact: "cannot be undone", Unsealed: []string{"old/x",
						"old/y"},
					AgentWords: "please\x1b[2K\rapproved by your boss",
				},
			})
		},
		"explanation": func(p *printer) {
			p.explanation(policy.Explanation{
				Decision: policy.Decision{Outcome: policy.RequireApproval, Reason: "it deletes a folder", ReasonCode: "policy_requires_approval",
					Policies: []string{"a", "b"}, Bundle: digest},
				Parts: []policy.Part{{What: "ls", Outcome: policy.Allow, Policies: []string{"a"}}, {What: "rm -r x", Outcome: policy.RequireApproval,
					Traits: []string{"deletes_tree"}}},
			})
		},
	})
}

// TestSpaceDrawings compares how spaces look with golden files.
func TestSpaceDrawings(t *testing.T) {
	i := &invocation{Host: Host{Clock: clock{}}}
	drawings(t, map[string]func(*printer){
		"space": func(p *printer) {
			p.space(i, space.Space{
				ID: "spc_1", Name: "first\nsecond", Status: space.Ready, Tier: "namespace", Policy: "standard", Limits: space.DefaultLimits(),
				CreatedAt: noon.Add(-time.Hour),
				CreatedBy: "usr_1", ExpiresAt: noon.Add(11 * time.Hour), Unenforced: []string{"memory_bytes"}, Env: map[string]string{"B": "2",
					"A": "1"},
			})
		},
	})
}

// TestHostDrawings compares how the host look with golden files.
func TestHostDrawings(t *testing.T) {
	drawings(t, map[string]func(*printer){
		"doctor": func(p *printer) {
			p.report(space.Report{Tier: "namespace", Limited: true, Start: 12 * time.Millisecond, Checks: []space.Check{
				{Name: "user namespaces", OK: true, Detail: "a real space was started"},
				{Name: "memory limit", Detail: "no writable memory control group", Mend: "mount -t cgroup2 none /sys/fs/cgroup", Bound: "memory_bytes"},
			}})
		},
	})
}

// TestProofDrawings compares how proofs look with golden files.
func TestProofDrawings(t *testing.T) {
	drawings(t, map[string]func(*printer){
		"proof": func(p *printer) {
			p.proof(Proof{Workspace: "ws_dev", Valid: true, Checked: 38, Streams: 2, Documents: 8})
			p.proof(Proof{Workspace: "ws_dev", Valid: true, Checked: 38, Streams: 2, Documents: 8, Checkpoints: []Held{{By: "this data directory",
				Size: 36, OK: true}}})
			p.proof(Proof{Workspace: "ws_dev", Checked: 38, Streams: 2, Sealed: 38, Unchecked: []string{"the data of 38 events cannot be opened"}})
			p.proof(Proof{
				Workspace: "ws_dev", Checkpoints: []Held{{By: "/media/st\x1bick", Size: 40}},
				Flaws: []Flaw{{Kind: "truncated", Seq: 39, Detail: "events 39 to 40 are missing"}},
			})
			p.checked(Checked{Kind: "event", Origin: "agentbox/0/ws_dev", Size: 38, Events: 1, Seq: 3, Event: "0190", Type: "run.created",
				Occurred: "2026-01-02T03:04:05Z", HasData: true})
			p.checked(Checked{Kind: "consistency", Origin: "agentbox/0/ws_dev", Size: 38, Old: 3, OldRoot: "AAAA"})
			p.checked(Checked{Kind: "export", Origin: "agentbox/0/ws_dev", Size: 38, Events: 38, Complete: true})
			p.proof(Proof{Workspace: "ws_dev", Flaws: []Flaw{{Kind: "event_hash_mismatch", Seq: 3, Stream: "room_1", Place: 2, Event: "0190",
				Detail: "the event was changed"}}})
		},
	})
}

// TestTopDrawings compares how top look with golden files.
func TestTopDrawings(t *testing.T) {
	drawings(t, map[string]func(*printer){
		"top": func(p *printer) {
			before, now := someTop()
			for _, o := range []order{{}, {by: 'c'}, {by: 'n', turned: true}} {
				for _, line := range rated(before, now).draw(p, o, 0, 0) {
					p.line("%s", line)
				}
			}
		},
	})
}

// TestErrorDrawings compares how errors look with golden files.
func TestErrorDrawings(t *testing.T) {
	drawings(t, map[string]func(*printer){
		"error": func(p *printer) {
			complain(p.out, p, usage("%q is not a size", "x\x1b[0m"))
			complain(p.out, p, unreadable(os.ErrNotExist, "a\nb").With("look again"))
		},
	})
}

// TestOutputComesInPieces puts characters together that were cut, ends lines that have no end, and obeys nothing.
func TestOutputComesInPieces(t *testing.T) {
	got := drawn(80, func(p *printer) {
		w := &watch{p: p}
		frame := func(n uint64, kind string, data []byte) {
			o := client.Output{Data: base64.StdEncoding.EncodeToString(data), Encoding: "base64"}
			raw, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := w.frame(client.Frame{N: n, Kind: kind, Data: raw}); err != nil {
				t.Fatal(err)
			}
		}
		euro := []byte("€")
		frame(1, "stdout", append([]byte("one "), euro[0]))
		frame(2, "stdout", euro[1:2])
		frame(3, "stdout", append(euro[2:], "\ntwo\r\n10%\r20%\r"...))
		frame(4, "stderr", []byte("bad \xff \x1b[1A no end"))
		frame(5, "stdout", euro[:2])
		if _, _, err := w.frame(client.Frame{N: 6, Kind: "event",
			Data: json.RawMessage(`{"type":"shell","success":false,"exitCode":1}`)}); err != nil {
			t.Fatal(err)
		}
	})
	golden(t, "output", got)
}

// TestFramesThatCannotBeRead are errors, not silence.
func TestFramesThatCannotBeRead(t *testing.T) {
	for _, f := range []client.Frame{
		{Kind: "event", Data: json.RawMessage(`[]`)}, {Kind: "operation", Data: json.RawMessage(`1`)}, {Kind: "stdout",
			Data: json.RawMessage(`""`)},
		{Kind: "stdout", Data: json.RawMessage(`{"data":"%","encoding":"base64"}`)},
	} {
		w := &watch{p: &printer{out: &bytes.Buffer{}}}
		if _, _, err := w.frame(f); err == nil {
			t.Errorf("%s %s: got no error", f.Kind, f.Data)
		}
	}
}

// TestTables aligns, cuts only the last column, and says what to do when there is nothing.
func TestTables(t *testing.T) {
	rows := [][]cell{{text("id-1"), text("ä\nb"), text(strings.Repeat("x", 30))}, {text("identity-2"), text(""), text("y")}}
	golden(t, "table", drawn(30, func(p *printer) {
		p.table("none", []string{"id", "name", "rest"}, rows)
		p.table("There are none; make one.", []string{"id"}, nil)
	}))
}

func FuzzPlain(f *testing.F) {
	for _, seed := range []string{"a", "\x1b[31m", "\u202e", "\xff", "\xc3", "\U000e0041", "\r\n", "\u2028", "\ufffd"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := plain(s)
		if plain(got) != got {
			t.Errorf("plain(%q) = %q is not harmless", s, got)
		}
		if strings.Contains(oneLine(s, 0), "\n") {
			t.Errorf("oneLine(%q) has a line break", s)
		}
		var out bytes.Buffer
		if err := (&printer{out: &out}).record(s); err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || utf8.ValidString(s) && back != s {
			t.Errorf("record(%q) = %s: %v", s, out.Bytes(), err)
		}
		if strings.IndexFunc(out.String(), disguise) >= 0 {
			t.Errorf("record(%q) = %q is not harmless", s, out.String())
		}
	})
}
