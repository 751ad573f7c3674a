package runs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit"
)

// background starts a background run.
func background(t *testing.T, s *testkit.Stack, in id.Space, operation string) run.Run {
	t.Helper()
	doc, err := s.Runs.Start(s.Context(), s.Origin, runs.Request{Workspace: testkit.WS, Space: in, Message: s.Message("[" + operation + "]"),
		Background: true})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func give(s *testkit.Stack, r id.Run, g runs.Given) error {
	return s.Runs.Input.Give(s.Context(), s.Origin, testkit.WS, r, g)
}

// stdout is the output of the one operation of an ended run.
func stdout(t *testing.T, s *testkit.Stack, r id.Run) string {
	t.Helper()
	results := s.Results(r)
	if len(results) != 1 || results[0].Stdout == nil {
		t.Fatalf("got %+v, want one result with output", results)
	}
	return *results[0].Stdout
}

// A background run does not wait for the run under way, and does not keep another one waiting. Its input is recorded by size and hash.
func TestABackgroundRun(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space()
	waiting, release := blocked(t, s, in)
	doc := background(t, s, in.ID, `{"type":"shell","command":"echo ready; cat; echo end","stdin":true,"tag":"server"}`)
	s.Prints(doc.ID, "ready")
	const secret = "a password of 24 letters"
	for _, g := range []runs.Given{{Stdin: []byte("hello\n")}, {Stdin: []byte(secret)}, {Close: true}} {
		if err := give(s, doc.ID, g); err != nil {
			t.Fatalf("give %+v: %v", g, err)
		}
	}
	doc = s.Ended(doc.ID)
	if doc.Status != run.Succeeded || !doc.Background || doc.Tag != "server" || !doc.Stdin || doc.PTY != nil {
		t.Errorf("got %+v", doc)
	}
	if got := stdout(t, s, doc.ID); got != "ready\nhello\n"+secret+"end\n" {
		t.Errorf("got %q", got)
	}
	if now := s.Find(waiting.ID); now.Status != run.Running {
		t.Errorf("the run in the queue: got %s, want running", now.Status)
	}
	release()
	s.Ended(waiting.ID)
	var given []run.Given
	for _, e := range s.Events(0) {
		if e.Type != run.EventInput {
			continue
		}
		if strings.Contains(string(e.Data), secret) {
			t.Errorf("the log holds the input: %s", e.Data)
		}
		d, err := event.Decode[run.Given](e)
		if err != nil {
			t.Fatal(err)
		}
		given = append(given, d)
	}
	if len(given) != 3 || given[0].Size != 6 || given[0].Digest != nil || given[1].Digest == nil ||
		*given[1].Digest != event.DigestOf([]byte(secret)) || given[2].Kind != run.InputClose {
		t.Errorf("recorded: %+v", given)
	}
	s.Verify()
}

// A terminal has the size that it was asked for, and the one that it gets; Ctrl-C ends what runs in it.
func TestABackgroundRunInATerminal(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.SpaceOf(spaces.Request{Preset: "permissive"})
	doc := background(t, s, in.ID, `{"type":"shell","command":"stty size; trap 'stty size' WINCH; trap 'echo inter''rupted; exit 3' INT; `+
		`echo $TERM; while :; do sleep 0.02; done","pty":{"cols":90,"rows":20}}`)
	s.Prints(doc.ID, "20 90\r\nxterm-256color\r\n")
	if err := give(s, doc.ID, runs.Given{Resize: &run.Terminal{Cols: 70, Rows: 10}}); err != nil {
		t.Fatal(err)
	}
	s.Prints(doc.ID, "10 70\r\n")
	if err := give(s, doc.ID, runs.Given{PTY: []byte("\x03")}); err != nil {
		t.Fatal(err)
	}
	doc = s.Ended(doc.ID)
	if got := stdout(t, s, doc.ID); !strings.HasSuffix(got, "interrupted\r\n") || *s.Results(doc.ID)[0].ExitCode != 3 {
		t.Errorf("got %q", got)
	}
	s.Verify()
}

func TestWhatIsNoBackgroundRun(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space()
	for _, operations := range []string{
		`[{"type":"message","content":"x"}]`, `[{"type":"shell","command":"true"},{"type":"shell","command":"true"}]`,
		`[{"type":"shell","command":"true","pty":{"cols":0,"rows":1}}]`,
		`[{"type":"shell","command":"true","stdin":true,"pty":{"cols":1,"rows":1}}]`,
		`[{"type":"shell","command":"true","tag":"` + strings.Repeat("x", 101) + `"}]`,
	} {
		_, err := s.Runs.Start(s.Context(), s.Origin, runs.Request{Workspace: testkit.WS, Space: in.ID, Message: s.Message(operations),
			Background: true})
		if fault.KindOf(err) != fault.Invalid {
			t.Errorf("%.80s: got %v, want invalid", operations, err)
		}
	}
	doc := s.Start(in.ID, `[{"type":"shell","command":"echo ran","stdin":true}]`)
	s.Ended(doc.ID)
	if got := s.Results(doc.ID); len(got) != 1 || got[0].ReasonCode != "operation_invalid" {
		t.Errorf("input in the queue: got %+v", got)
	}
}

func TestInputThatIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space()
	doc := background(t, s, in.ID, `{"type":"shell","command":"echo ready; cat","stdin":true}`)
	s.Prints(doc.ID, "ready")
	deaf := background(t, s, in.ID, `{"type":"shell","command":"echo ready; sleep 1000"}`)
	s.Prints(deaf.ID, "ready")
	asking := background(t, s, in.ID, `{"type":"shell","command":"bash","stdin":true}`)
	if asking = s.Rest(asking.ID); asking.Status != run.AwaitingApproval {
		t.Fatalf("a shell that reads commands: got %s, want that a person is asked", asking.Status)
	}
	for name, c := range map[string]struct {
		run  id.Run
		g    runs.Given
		want string
	}{
		"nothing":              {doc.ID, runs.Given{}, "input_invalid"},
		"two things":           {doc.ID, runs.Given{Close: true, Signal: "SIGINT"}, "input_invalid"},
		"too much":             {doc.ID, runs.Given{Stdin: make([]byte, space.MaxInputBytes+1)}, "input_invalid"},
		"a signal of no name":  {doc.ID, runs.Given{Signal: "9"}, "invalid_signal"},
		"a size of nothing":    {doc.ID, runs.Given{Resize: &run.Terminal{}}, "invalid_terminal_size"},
		"a key for a pipe":     {doc.ID, runs.Given{PTY: []byte("x")}, "run_takes_no_input"},
		"input for none":       {deaf.ID, runs.Given{Stdin: []byte("x")}, "run_takes_no_input"},
		"the end of none":      {deaf.ID, runs.Given{Close: true}, "run_takes_no_input"},
		"before it has begun":  {asking.ID, runs.Given{Stdin: []byte("x")}, "run_not_started"},
		"a run that is not":    {"run_none", runs.Given{Close: true}, "run_not_found"},
		"a signal for a queue": {asking.ID, runs.Given{Signal: "SIGTERM"}, "run_not_started"},
	} {
		if err := give(s, c.run, c.g); fault.CodeOf(err) != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	err := s.Runs.Input.Give(s.Context(), s.Origin, "ws_other", doc.ID, runs.Given{Close: true})
	if fault.CodeOf(err) != "run_not_found" {
		t.Errorf("from another workspace: got %v, want run_not_found", err)
	}
	for _, r := range []run.Run{doc, deaf} {
		if err := give(s, r.ID, runs.Given{Signal: "SIGKILL"}); err != nil {
			t.Error(err)
		}
		s.Ended(r.ID)
		if err := give(s, r.ID, runs.Given{Signal: "SIGKILL"}); !errors.Is(err, runs.ErrEnded) {
			t.Errorf("after its end: got %v, want %v", err, runs.ErrEnded)
		}
	}
	s.Decide(asking.ID, "deny", "")
	s.Ended(asking.ID)
	s.Verify()
}

// A run that waits for a person waits alone, and gets its input when the person has approved it.
func TestABackgroundRunWaitsForAPerson(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space()
	doc := background(t, s, in.ID, `{"type":"shell","command":"bash -s","stdin":true}`)
	if doc = s.Rest(doc.ID); doc.Status != run.AwaitingApproval {
		t.Fatalf("got %s", doc.Status)
	}
	other := s.Start(in.ID, `[{"type":"shell","command":"echo free"}]`)
	s.Ended(other.ID)
	s.Restart()
	s.Decide(doc.ID, policy.Approve, "")
	for err := give(s, doc.ID, runs.Given{Stdin: []byte("echo $((6*7))\n")}); err != nil; {
		if fault.CodeOf(err) != "run_not_started" {
			t.Fatal(err)
		}
		err = give(s, doc.ID, runs.Given{Stdin: []byte("echo $((6*7))\n")})
	}
	s.Prints(doc.ID, "42")
	if err := give(s, doc.ID, runs.Given{Close: true}); err != nil {
		t.Fatal(err)
	}
	if doc = s.Ended(doc.ID); doc.Status != run.Succeeded {
		t.Errorf("got %s", doc.Status)
	}
	s.Verify()
}

// The files of a background run are in the snapshot of the next run, and in no other one.
func TestSnapshotsBesideABackgroundRun(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space()
	first := s.Ended(s.Start(in.ID, `[{"type":"createFile","path":"a","content":"1"}]`).ID)
	doc := background(t, s, in.ID, `{"type":"shell","command":"echo begun; read x; echo 2 >b; echo written; read x","stdin":true}`)
	s.Prints(doc.ID, "begun")
	if err := give(s, doc.ID, runs.Given{Stdin: []byte("x\n")}); err != nil {
		t.Fatal(err)
	}
	s.Prints(doc.ID, "written")
	second := s.Start(in.ID, `[{"type":"createFile","path":"c","content":"3"}]`)
	second = s.Ended(second.ID)
	if _, err := s.Spaces.Snapshots.Rewind(s.Context(), s.Origin, testkit.WS, in.ID, "run_"); fault.CodeOf(err) != "space_busy" {
		t.Errorf("a rewind under a background run: got %v, want space_busy", err)
	}
	if err := give(s, doc.ID, runs.Given{Close: true}); err != nil {
		t.Fatal(err)
	}
	if doc = s.Ended(doc.ID); !doc.Operations[0].Snapshot.IsZero() {
		t.Error("a background run has a snapshot of its own")
	}
	diff, err := s.Spaces.Snapshots.Diff(s.Context(), s.Origin, testkit.WS, in.ID, first.Operations[0].Snapshot.String(),
		second.Operations[0].Snapshot.String(), 10)
	if err != nil {
		t.Fatal(err)
	}
	var changed []string
	for _, d := range diff.Differences {
		changed = append(changed, d.Path)
	}
	if fmt.Sprint(changed) != "[b c]" {
		t.Errorf("the second run's snapshot differs in %v, want b and c", changed)
	}
}

// At the bound one more is refused; all run side by side, and all end with their space.
func TestBackgroundRunsAtTheBound(t *testing.T) {
	t.Parallel()
	s := open(t)
	limits := space.DefaultLimits()
	limits.Pids, limits.MemoryBytes = 400, 1<<30
	in := s.SpaceOf(roomy(limits))
	var all []run.Run
	for range run.MaxBackground {
		all = append(all, background(t, s, in.ID, `{"type":"shell","command":"echo ready; cat","stdin":true}`))
	}
	_, err := s.Runs.Start(s.Context(), s.Origin, runs.Request{Workspace: testkit.WS, Space: in.ID, Background: true,
		Message: s.Message(`[{"type":"shell","command":"true"}]`)})
	if fault.CodeOf(err) != "quota_exceeded" {
		t.Errorf("one more: got %v, want quota_exceeded", err)
	}
	s.Ended(s.Start(in.ID, `[{"type":"shell","command":"echo the queue is free"}]`).ID)
	for _, doc := range all {
		s.Prints(doc.ID, "ready")
	}
	for i, doc := range all[1:] {
		if err := give(s, doc.ID, runs.Given{Stdin: fmt.Appendf(nil, "line %d\n", i)}); err != nil {
			t.Fatal(err)
		}
	}
	for i, doc := range all[1:] {
		s.Prints(doc.ID, fmt.Sprintf("line %d\n", i))
	}
	if _, err := s.Spaces.Ending.Destroy(s.Context(), s.Origin, testkit.WS, in.ID); err != nil {
		t.Fatal(err)
	}
	for _, doc := range all {
		if doc = s.Ended(doc.ID); doc.Status != run.Cancelled {
			t.Errorf("%s: got %s, want cancelled", doc.ID, doc.Status)
		}
	}
	s.Verify()
}

// After the sudden end of the daemon each background run has ended once, its frames are there, and none is begun again.
func TestBackgroundRunsOfADaemonThatDied(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testkit.Stack){"crash": (*testkit.Stack).Crash, "restart": (*testkit.Stack).Restart} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			in := s.Space()
			var all []run.Run
			for i := range 10 {
				all = append(all, background(t, s, in.ID, fmt.Sprintf(`{"type":"shell","command":"echo %d >>ran; echo ready %d; sleep 1000"}`, i, i)))
			}
			for i, doc := range all {
				s.Prints(doc.ID, fmt.Sprintf("ready %d\n", i))
			}
			end(s)
			for i, doc := range all {
				doc = s.Ended(doc.ID)
				if got := s.Results(doc.ID); doc.Status != run.Failed || len(got) != 1 || got[0].OK() {
					t.Errorf("run %d: got %s, %+v, want that it failed with a result", i, doc.Status, got)
				}
				s.Prints(doc.ID, fmt.Sprintf("ready %d\n", i))
			}
			if got := strings.Count(s.File(in.ID, "ran"), "\n"); got != len(all) {
				t.Errorf("%d commands ran, want %d", got, len(all))
			}
			s.Verify()
		})
	}
}

// A reader that stands still keeps nobody waiting.
func TestASlowReaderOfABackgroundRun(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space()
	doc := background(t, s, in.ID, `{"type":"shell","command":"echo ready; read x; seq 200000; echo end","stdin":true}`)
	read := 0
	for f, err := range s.Runs.Frames.Follow(s.Context(), testkit.WS, doc.ID, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if read++; f.Kind == livestream.Stdout && strings.Contains(string(f.Data), "ready") {
			if err := give(s, doc.ID, runs.Given{Stdin: []byte("\n")}); err != nil {
				t.Fatal(err)
			}
			if doc = s.Ended(doc.ID); doc.Status != run.Succeeded { // while nobody reads
				t.Errorf("got %s", doc.Status)
			}
		}
	}
	if result := s.Results(doc.ID)[0]; len(result.Omitted) != 1 || result.Omitted[0] != "stdout" {
		t.Errorf("a long output: got %v omitted, want stdout", result.Omitted)
	}
	if read < 10 {
		t.Errorf("read %d frames, want all", read)
	}
}

// A full pipe refuses input, says so, and loses nothing.
func TestInputThatNobodyReads(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space()
	doc := background(t, s, in.ID, `{"type":"shell","command":"echo ready; until test -e go; do sleep 0.02; done; wc -c","stdin":true}`)
	s.Prints(doc.ID, "ready")
	sent, full := 0, error(nil)
	for full == nil && sent < 4<<20 {
		ctx, cancel := context.WithTimeout(s.Context(), 2*time.Second)
		if full = s.Runs.Input.Give(ctx, s.Origin, testkit.WS, doc.ID, runs.Given{Stdin: make([]byte, space.MaxInputBytes)}); full == nil {
			sent += space.MaxInputBytes
		}
		cancel()
	}
	if !errors.Is(full, space.ErrInputFull) {
		t.Errorf("after %d bytes: got %v, want input_full", sent, full)
	}
	s.Ended(s.Start(in.ID, `[{"type":"createFile","path":"go","content":""}]`).ID)
	if err := give(s, doc.ID, runs.Given{Close: true}); err != nil {
		t.Fatal(err)
	}
	s.Ended(doc.ID)
	if got := strings.TrimSpace(strings.TrimPrefix(stdout(t, s, doc.ID), "ready\n")); got != fmt.Sprint(sent) {
		t.Errorf("it read %s bytes, want the %d that were taken", got, sent)
	}
	found, err := s.Log.Read(s.Context(), journal.Query{Workspace: testkit.WS, Run: doc.ID, Types: []string{run.EventInput}, Limit: 1000})
	if err != nil || len(found) != sent/space.MaxInputBytes+1 {
		t.Errorf("%d inputs are recorded, %v, want those that were taken", len(found), err)
	}
}

func roomy(l space.Limits) spaces.Request { return spaces.Request{Limits: l} }

// A possible beginning of a secret is shown soon in a terminal, where somebody waits for it. A secret is not shown.
func TestATerminalShowsWhatIsHeldBack(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.SpaceOf(spaces.Request{Preset: "permissive"})
	const secret = "ghp_aB3dE6gH9kaB3dE6gH9kaB3dE6gH9kaB3d"
	doc := background(t, s, in.ID, `{"type":"shell","command":"printf 'your ghp_'; read x; `+
		`printf 'g''hp_%s\\n' aB3dE6gH9kaB3dE6gH9kaB3dE6gH9kaB3d",`+
		`"pty":{"cols":80,"rows":24}}`)
	for seen := ""; !strings.Contains(seen, "your ghp_"); s.Clock.Move(time.Second) {
		frames, err := s.Live.Read(s.Context(), doc.ID, 1, 100)
		if err != nil {
			t.Fatal(err)
		}
		seen = ""
		for _, f := range frames {
			if f.Kind == livestream.Stdout {
				seen += string(f.Data)
			}
		}
	}
	if err := give(s, doc.ID, runs.Given{PTY: []byte("\r")}); err != nil {
		t.Fatal(err)
	}
	s.Ended(doc.ID)
	for f, err := range s.Runs.Frames.Follow(s.Context(), testkit.WS, doc.ID, 1) {
		if err != nil || strings.Contains(string(f.Data), secret) {
			t.Errorf("frame %d shows the secret, %v: %s", f.N, err, f.Data)
		}
	}
}
