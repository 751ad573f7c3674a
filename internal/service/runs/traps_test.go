package runs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/service/gate/approvals"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/runs/history"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit"
)

// Resuming judges the approved operation again and must not ask about it again.
func TestTrapResumeAsksAgain(t *testing.T) {
	t.Parallel()
	s := open(t)
	doc := s.Start(s.Space().ID, `[{"type":"shell","command":"rm -rf d"}]`)
	s.Rest(doc.ID)
	s.Decide(doc.ID, policy.Approve, "")
	if doc = s.Rest(doc.ID); doc.Status != run.Succeeded {
		t.Errorf("the run is %s after its one question was answered", doc.Status)
	}
	questions, err := s.Gate.Approvals.List(s.Context(), testkit.WS, approvalsOf(doc.ID))
	if err != nil || len(questions) != 1 || !questions[0].Used {
		t.Errorf("got %d questions (%v), want one that was used", len(questions), err)
	}
}

// A denial must not drop the operations behind it.
func TestTrapDenialDropsTheTail(t *testing.T) {
	t.Parallel()
	s := open(t)
	doc := s.Start(s.Space().ID,
		`[{"type":"shell","command":"rm -rf d"},{"type":"shell","command":"echo tail"},{"type":"message","content":"end"}]`)
	s.Rest(doc.ID)
	s.Decide(doc.ID, policy.Refuse, "no")
	doc = s.Ended(doc.ID)
	results := s.Results(doc.ID)
	if doc.Status != run.Succeeded || len(results) != 3 || results[0].Type != run.ResPolicyDenied || !results[1].OK() || !results[2].OK() {
		t.Errorf("got %s, %+v", doc.Status, results)
	}
}

// An operation without an id must be resumable.
func TestTrapOperationWithoutIDCannotBeResumed(t *testing.T) {
	t.Parallel()
	s := open(t)
	doc := s.Start(s.Space().ID, `[{"type":"shell","command":"rm -rf a"},{"type":"shell","id":"op-1","command":"rm -rf b"}]`)
	s.Rest(doc.ID)
	s.Decide(doc.ID, policy.Approve, "")
	s.Rest(doc.ID)
	s.Decide(doc.ID, policy.Approve, "")
	if doc = s.Ended(doc.ID); doc.Operations[0].ID == doc.Operations[1].ID || !doc.Operations[0].OK || !doc.Operations[1].OK {
		t.Errorf("got %+v", doc.Operations)
	}
}

// Size is counted in bytes after decoding: characters do not count, nor does the length of base64.
func TestTrapSizeIsCountedInCharacters(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program})
	in := s.SpaceOf(spaces.Request{Overrides: json.RawMessage(`{"limits":{"file_bytes":12}}`)}).ID
	doc := s.Start(in, `[
		{"type":"createFile","path":"ascii","content":"twelve bytes"},
		{"type":"createFile","path":"umlauts","content":"ääääää"},
		{"type":"createFile","path":"more","content":"äääääää"},
		{"type":"createFile","path":"base64","encoding":"base64","content":"dHdlbHZlIGJ5dGVz"},
		{"type":"createFile","path":"base64more","encoding":"base64","content":"dGhpcnRlZW4gYnl0ZQ=="}
	]`)
	s.Ended(doc.ID)
	var got []bool
	for _, r := range s.Results(doc.ID) {
		got = append(got, r.OK())
	}
	if want := []bool{true, true, false, true, false}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: %+v", got, want, s.Results(doc.ID))
	}
}

// The policy's time must be applied to commands, and a request may only lower it.
func TestTrapPolicyTimeoutIsNotApplied(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.SpaceOf(spaces.Request{Overrides: json.RawMessage(`{"limits":{"command_ms":1000}}`)}).ID
	doc := s.Start(in, `[{"type":"shell","command":"sleep 3600","timeout":3600000},{"type":"shell","command":"echo next"}]`)
	s.Ended(doc.ID)
	r := s.Results(doc.ID)
	if r[0].TimedOut == nil || !*r[0].TimedOut || *r[0].ExitCode != 124 || r[0].Limit != "timeout_ms" || !r[1].OK() {
		t.Errorf("got %+v", r)
	}
}

// Chained commands must not pass by their first word.
func TestTrapChainingAroundTheAllowlist(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space().ID
	for _, command := range []string{"cat x; sudo y", "echo a && ssh host", "echo $(sudo id)", "true | sudo tee x", "bash -c 'sudo id'",
		"cat x\nsudo y"} {
		raw, err := json.Marshal([]map[string]string{{"type": "shell", "command": command}})
		if err != nil {
			t.Fatal(err)
		}
		doc := s.Start(in, string(raw))
		s.Rest(doc.ID)
		if r := s.Results(doc.ID); r[0].Type != run.ResPolicyDenied {
			t.Errorf("%q: got %+v, want policyDenied", command, r[0])
		}
	}
}

// A link that a command makes must not lead the daemon out of the space.
func TestTrapSymlinkOutOfTheSpace(t *testing.T) {
	t.Parallel()
	s := open(t)
	doc := s.Start(s.Space().ID, `[
		{"type":"createFile","path":"links.sh","content":"ln -s /etc/passwd p; ln -s / root"},
		{"type":"shell","command":"bash links.sh"},
		{"type":"readFile","path":"p"},
		{"type":"readFile","path":"root/etc/passwd"},
		{"type":"createFile","path":"root/tmp/out","content":"x"},
		{"type":"deleteFile","path":"root/etc/passwd"}
	]`)
	s.Ended(doc.ID)
	if r := s.Results(doc.ID)[1]; !r.OK() {
		t.Fatalf("the links were not made: %s", brief(r))
	}
	for i, r := range s.Results(doc.ID)[2:] {
		if r.OK() || r.ReasonCode != "link_refused" {
			t.Errorf("operation %d: got %+v, want link_refused", i+3, r)
		}
	}
}

// Runs must not be found, followed or cancelled from another workspace.
func TestTrapRunIsReadAcrossWorkspaces(t *testing.T) {
	t.Parallel()
	s := open(t)
	doc := s.Start(s.Space().ID, `[{"type":"message","content":"mine"}]`)
	s.Ended(doc.ID)
	const other = id.Workspace("ws_other")
	if _, err := s.Runs.History.Find(s.Context(), other, doc.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("find: got %v", err)
	}
	if err := s.Runs.Cancel(s.Context(), s.Origin, other, doc.ID, ""); fault.KindOf(err) != fault.NotFound {
		t.Errorf("cancel: got %v", err)
	}
	for f, err := range s.Runs.Frames.Follow(s.Context(), other, doc.ID, 1) {
		if fault.KindOf(err) != fault.NotFound {
			t.Errorf("follow: got %+v, %v", f, err)
		}
	}
	q := runs.Request{Workspace: other, Space: doc.Space, Message: s.Message(`[{"type":"message","content":"x"}]`)}
	if _, err := s.Runs.Start(s.Context(), s.Origin, q); fault.KindOf(err) != fault.NotFound {
		t.Errorf("start: got %v", err)
	}
}

// A refusal must not use up its idempotency key, and a repeated request finds its run whatever has become of the space.
func TestTrapIdempotencyKeyBurntByARejection(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space().ID
	q := runs.Request{Workspace: testkit.WS, Space: in, Message: s.Message(`[{"type":"message","content":"x"}]`), Key: "k",
		Title: strings.Repeat("x", 201)}
	if _, err := s.Runs.Start(s.Context(), s.Origin, q); fault.KindOf(err) != fault.Invalid {
		t.Fatalf("got %v, want a refusal", err)
	}
	q.Title = "corrected"
	first, err := s.Runs.Start(s.Context(), s.Origin, q)
	if err != nil {
		t.Fatalf("the corrected request: %v", err)
	}
	s.Ended(first.ID)
	if _, err := s.Spaces.Ending.Destroy(s.Context(), s.Origin, testkit.WS, in); err != nil {
		t.Fatal(err)
	}
	again, err := s.Runs.Start(s.Context(), s.Origin, q)
	if err != nil || again.ID != first.ID {
		t.Errorf("the repeated request: got %s, %v; want %s", again.ID, err, first.ID)
	}
	q.Key = "new"
	if _, err := s.Runs.Start(s.Context(), s.Origin, q); !errors.Is(err, runs.ErrSpaceNotReady) {
		t.Errorf("a new request in a space that is gone: %v", err)
	}
}

// The queue of a space must not take more than its limit, however many ask at once.
func TestTrapQueueQuotaUnderConcurrency(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space().ID
	head := s.Start(in, `[{"type":"shell","command":"echo begun; sleep 3600","timeout":3600000}]`)
	s.Prints(head.ID, "begun")
	m := s.Message(`[{"type":"message","content":"x"}]`)
	var wait sync.WaitGroup
	var mu sync.Mutex
	taken, full := 1, 0
	for range 2 * runs.MaxQueued {
		wait.Go(func() {
			_, err := s.Runs.Start(s.Context(), s.Origin, runs.Request{Workspace: testkit.WS, Space: in, Message: m})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				taken++
			case fault.CodeOf(err) == "quota_exceeded":
				full++
			default:
				t.Errorf("start: %v", err)
			}
		})
	}
	wait.Wait()
	if taken != runs.MaxQueued || full != runs.MaxQueued+1 {
		t.Errorf("%d runs were taken and %d refused; want %d and %d", taken, full, runs.MaxQueued, runs.MaxQueued+1)
	}
	// Destroying the space ends them all.
	if _, err := s.Spaces.Ending.Destroy(s.Context(), s.Origin, testkit.WS, in); err != nil {
		t.Fatal(err)
	}
	cancelled, err := s.Runs.History.List(s.Context(), testkit.WS, history.Filter{Space: in, Status: run.Cancelled}, "", 1000)
	if err != nil || len(cancelled) != runs.MaxQueued {
		t.Errorf("%d runs were cancelled, %v; want %d", len(cancelled), err, runs.MaxQueued)
	}
}

// Runs of one space go in order; spaces go side by side.
func TestRunsQueueInOrderAndSpacesGoSideBySide(t *testing.T) {
	t.Parallel()
	s := open(t)
	a, b := s.Space().ID, s.Space().ID
	first := s.Start(a, `[{"type":"shell","command":"echo begun; while ! test -e go; do sleep 0.01; done; echo 1 >> order"}]`)
	s.Prints(first.ID, "begun")
	var others []id.Run
	for _, n := range []string{"2", "3", "4"} {
		others = append(others, s.Start(a, `[{"type":"shell","command":"echo `+n+` >> order"}]`).ID)
	}
	beside := s.Start(b, `[{"type":"shell","command":"echo beside"}]`)
	if doc := s.Ended(beside.ID); doc.Status != run.Succeeded {
		t.Errorf("the run beside is %s", doc.Status)
	}
	if doc := s.Find(others[0]); doc.Status != run.Queued {
		t.Errorf("the second run is %s while the first is under way", doc.Status)
	}
	if _, err := s.Spaces.Files.Write(s.Context(), s.Origin, testkit.WS, a, "go", false, "", event.DigestOf(nil), 0,
		bytes.NewReader(nil)); err != nil {
		t.Fatal(err)
	}
	s.Ended(others[2])
	if got := s.File(a, "order"); got != "1\n2\n3\n4\n" {
		t.Errorf("the order was %q", got)
	}
}

// A run that is started while those of an earlier daemon are taken up comes after them.
func TestRunsOfAnEarlierDaemonComeFirst(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space().ID
	asks := s.Start(in, `[{"type":"shell","command":"rm -rf d"}]`)
	s.Rest(asks.ID)
	s.Options.Idle = true
	s.Restart()
	later := s.Start(in, `[{"type":"message","content":"later"}]`)
	s.Run()
	if doc := s.Rest(asks.ID); doc.Status != run.AwaitingApproval {
		t.Fatalf("the first run is %s", doc.Status)
	}
	s.Decide(asks.ID, policy.Approve, "")
	last := s.Ended(later.ID)
	if first := s.Find(asks.ID); !first.Status.Ended() || last.StartedAt.Before(first.EndedAt) {
		t.Errorf("the later run began at %s, before the first ended at %s", last.StartedAt, first.EndedAt)
	}
}

// Output beyond the limit ends a command, and its earlier output is kept.
func TestOutputBeyondTheLimit(t *testing.T) {
	t.Parallel()
	s := open(t)
	limits := spaces.Request{}
	limits.Limits.OutputBytes = 64 << 10
	doc := s.Start(s.SpaceOf(limits).ID, `[{"type":"shell","command":"yes","timeout":30000},{"type":"shell","command":"echo next"}]`)
	s.Ended(doc.ID)
	r := s.Results(doc.ID)
	if r[0].OK() || r[0].Limit != "output_bytes" || !strings.Contains(r[0].Error, "65536") || len(*r[0].Stdout) > 64<<10 || !r[1].OK() {
		t.Errorf("got success=%v limit=%q error=%q, %d bytes; then %+v", r[0].OK(), r[0].Limit, r[0].Error, len(*r[0].Stdout), r[1])
	}
}

// A long result is kept apart from the log and comes back whole after a restart.
func TestLongResultComesBackWholeAfterARestart(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program, SQLite: true})
	doc := s.Start(s.Space().ID,
		`[{"type":"shell","command":"head -c 200000 /dev/zero | tr '\\0' x"},{"type":"shell","command":"head -c 300000 /dev/zero | tr '\\0' y `+
			`> f"},{"type":"readFile","path":"f"}]`)
	s.Ended(doc.ID)
	s.Restart()
	r := s.Results(doc.ID)
	if *r[0].Stdout != strings.Repeat("x", 200_000) || *r[2].Content != strings.Repeat("y", 300_000) {
		t.Errorf("got %d and %d bytes, want 200000 and 300000", len(*r[0].Stdout), len(*r[2].Content))
	}
	for _, e := range s.Events(0) {
		if len(e.Data) > 80<<10 {
			t.Errorf("%s holds %d bytes", e.Type, len(e.Data))
		}
	}
}

// Follow yields the same from every number on, and nothing behind the end.
func TestFollowFromEachNumber(t *testing.T) {
	t.Parallel()
	s := open(t)
	doc := s.Start(s.Space().ID,
		`[{"type":"message","content":"x"},{"type":"shell","command":"echo out; echo err >&2"},{"type":"shell","command":"rm -rf d"}]`)
	s.Rest(doc.ID)
	s.Decide(doc.ID, policy.Approve, "")
	s.Ended(doc.ID)
	all := follow(t, s, doc.ID, 0)
	if last := all[len(all)-1]; last.Kind != livestream.Complete || slices.ContainsFunc(all[:len(all)-1], func(f livestream.Frame) bool {
		return f.Kind == livestream.Complete
	}) {
		t.Errorf("complete is not the last frame, once")
	}
	for i, f := range all {
		if f.N != uint64(i)+1 {
			t.Fatalf("frame %d has the number %d", i+1, f.N)
		}
		rest := follow(t, s, doc.ID, f.N)
		if !slices.EqualFunc(rest, all[i:], func(a, b livestream.Frame) bool {
			return a.N == b.N && a.Kind == b.Kind && bytes.Equal(a.Data, b.Data)
		}) {
			t.Errorf("from %d on there are other frames", f.N)
		}
	}
	if rest := follow(t, s, doc.ID, uint64(len(all))+1); len(rest) != 0 {
		t.Errorf("behind the end there are %d frames", len(rest))
	}
}

// A stream of a run that goes on ends with an error, never as if the run had ended.
func TestFollowOfABrokenStreamIsAnError(t *testing.T) {
	t.Parallel()
	s := open(t)
	doc := s.Start(s.Space().ID, `[{"type":"shell","command":"rm -rf d"}]`)
	s.Rest(doc.ID)
	ctx, cancel := context.WithCancel(s.Context())
	var last error
	for f, err := range s.Runs.Frames.Follow(ctx, testkit.WS, doc.ID, 1) {
		if last = err; f.Kind == livestream.Result {
			cancel()
		}
		if f.Kind == livestream.Complete {
			t.Error("a run that waits is complete")
		}
	}
	cancel()
	if !errors.Is(last, context.Canceled) {
		t.Errorf("the stream ended with %v", last)
	}
}

// An approval that is used too late is a refusal of its operation, not the end of the run.
func TestApprovalThatComesTooLate(t *testing.T) {
	t.Parallel()
	s := open(t)
	doc := s.Start(s.SpaceOf(spaces.Request{TTL: 30 * 24 * time.Hour}).ID,
		`[{"type":"shell","command":"rm -rf d"},{"type":"shell","command":"echo tail"}]`)
	s.Rest(doc.ID)
	s.Options.Idle = true
	s.Restart() // nobody executes
	s.Decide(doc.ID, policy.Approve, "")
	s.Clock.Move(8 * 24 * time.Hour)
	s.Run()
	doc = s.Ended(doc.ID)
	r := s.Results(doc.ID)
	if doc.Status != run.Succeeded || r[0].Type != run.ResPolicyDenied || r[0].ReasonCode != policy.ReasonApprovalExpired || !r[1].OK() {
		t.Errorf("got %s, %+v", doc.Status, r)
	}
}

// A variable that was taken out of a space's environment is gone from the next command on.
func TestEnvironmentOfTheSpace(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.SpaceOf(spaces.Request{Env: map[string]string{"A": "1", "B": "2"}}).ID
	print := `[{"type":"shell","command":"echo ${A-none} ${B-none} ${C-none}","env":{"C":"3"}}]`
	doc := s.Start(in, print)
	s.Ended(doc.ID)
	if got := *s.Results(doc.ID)[0].Stdout; got != "1 2 3\n" {
		t.Errorf("got %q", got)
	}
	if _, err := s.Spaces.Settings.Update(s.Context(), s.Origin, testkit.WS, in,
		spaces.Change{Env: &map[string]string{"B": "4"}}); err != nil {
		t.Fatal(err)
	}
	doc = s.Start(in, print)
	s.Ended(doc.ID)
	if got := *s.Results(doc.ID)[0].Stdout; got != "none 4 3\n" {
		t.Errorf("after the change: got %q", got)
	}
}

func follow(t *testing.T, s *testkit.Stack, r id.Run, from uint64) []livestream.Frame {
	t.Helper()
	var all []livestream.Frame
	for f, err := range s.Runs.Frames.Follow(s.Context(), testkit.WS, r, from) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return all
}

func approvalsOf(r id.Run) approvals.Filter { return approvals.Filter{Run: r} }
