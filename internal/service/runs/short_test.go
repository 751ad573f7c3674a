package runs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/service/runs"
	"agentbox/internal/testkit"
)

// TestAShortRequestStandsInItsEvent is about both sides of the edge, and about a text that the log would not keep: whatever lies where,
// the daemon that takes the run up does what was asked for.
func TestAShortRequestStandsInItsEvent(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program, SQLite: true, Idle: true})
	in := s.Space().ID
	asked := func(path, content string) string {
		return fmt.Sprintf(`[{"type":"createFile","path":%q,"content":%q}]`, path, content)
	}
	raw, err := json.Marshal(s.Message(asked("f", "x")))
	if err != nil {
		t.Fatal(err)
	}
	const edge = 4096
	for name, c := range map[string]struct {
		path, content string
		inline        bool
	}{
		"short":    {"a", "short", true},
		"edge":     {"b", strings.Repeat("x", edge-len(raw)+1), true},
		"too long": {"c", strings.Repeat("x", edge-len(raw)+2), false},
		"a secret": {"d", "ghp_" + strings.Repeat("Ab1", 12), false},
	} {
		doc := s.Start(in, asked(c.path, c.content))
		if doc.Input.Inline != c.inline || doc.Input.Digest.IsZero() {
			t.Errorf("%s: %+v", name, doc.Input)
		}
		content, err := s.Blobs.Open(t.Context(), doc.Input.Digest)
		if err == nil {
			err = content.Close()
		}
		if (err == nil) == c.inline {
			t.Errorf("%s: it is stored: %v", name, err)
		}
		s.Crash()
		s.Run()
		if doc = s.Ended(doc.ID); doc.Status != run.Succeeded {
			t.Fatalf("%s: the run is %s: %s", name, doc.Status, doc.Error)
		}
		if got := s.File(in, c.path); got != c.content {
			t.Errorf("%s: the file has %d bytes, want %d", name, len(got), len(c.content))
		}
		s.Crash()
	}
	for _, e := range s.Events(0) {
		if strings.Contains(string(e.Data), "ghp_Ab1") {
			t.Errorf("%s holds the secret", e.Type)
		}
	}
}

// asks starts a run for somebody who waits for its end.
func asks(s *testkit.Stack, in id.Space, operations, key string) (run.Run, error) {
	return s.Runs.Start(s.Context(), s.Origin, runs.Request{Workspace: testkit.WS, Space: in, Message: s.Message(operations), Key: key,
		Waits: true})
}

// commits notes what is recorded of runs, a text for each commit. A reader of the log may see a commit before it is noted.
func commits(s *testkit.Stack) (list func() []string, ended <-chan struct{}) {
	var mu sync.Mutex
	var all []string
	completed := make(chan struct{}, 100)
	s.Log.DieAt(func(r event.Receipt) testkit.Death {
		var types []string
		for _, e := range r.Events {
			if e.Run != "" {
				types = append(types, e.Type)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if len(types) > 0 {
			all = append(all, strings.Join(types, " "))
		}
		if slices.Contains(types, run.EventCompleted) {
			completed <- struct{}{}
		}
		return testkit.Survive
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}, completed
}

// TestWhatIsKnownTogetherIsOneCommit counts the commits of runs: of those that are only asked for, and of those that somebody waits for.
func TestWhatIsKnownTogetherIsOneCommit(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space().ID
	for operations, want := range map[string][]string{
		`[{"type":"shell","command":"true"}]`: {"run.created", "run.started tool.invoked", "tool.succeeded run.completed"},
		`[{"type":"shell","command":"true"},{"type":"shell","command":"true"}]`: {
			"run.created", "run.started tool.invoked", "tool.succeeded", "tool.invoked", "tool.succeeded run.completed",
		},
		`[{"type":"message","content":"x"}]`:       {"run.created", "run.started", "tool.succeeded run.completed"},
		`[{"type":"shell","command":"sudo true"}]`: {"run.created", "run.started", "tool.failed policy.denied run.completed"},
	} {
		list, ended := commits(s)
		s.Ended(s.Start(in, operations).ID)
		<-ended
		if got := list(); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", operations, got, want)
		}
		if want[1] == "run.started tool.invoked" {
			want = append([]string{"run.created run.started tool.invoked"}, want[2:]...)
		}
		list, ended = commits(s)
		doc, err := asks(s, s.Space().ID, operations, "") // in a space of which surely no worker is left
		if err != nil {
			t.Fatal(err)
		}
		s.Ended(doc.ID)
		<-ended
		if got := list(); !slices.Equal(got, want) {
			t.Errorf("%s, waited for:\n got %q\nwant %q", operations, got, want)
		}
	}
	s.Verify()
}

// TestARunThatBeginsAtOnceIsAskedForOnce repeats a request, one after the other and together.
func TestARunThatBeginsAtOnceIsAskedForOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space().ID
	const operations = `[{"type":"shell","command":"echo x >> f"}]`
	for round := range 4 {
		var wait sync.WaitGroup
		made := make([]id.Run, 8)
		for i := range made {
			wait.Go(func() {
				doc, err := asks(s, in, operations, fmt.Sprint("key ", round))
				if err != nil {
					t.Error(err)
				}
				made[i] = doc.ID
			})
		}
		wait.Wait()
		if again, err := asks(s, in, operations, fmt.Sprint("key ", round)); err != nil || again.ID != made[0] || len(slices.Compact(made)) != 1 {
			t.Fatalf("%v, %v, %v", made, again.ID, err)
		}
		s.Ended(made[0])
	}
	if _, err := asks(s, in, `[{"type":"shell","command":"true"}]`, "key 0"); fault.CodeOf(err) != "idempotency_conflict" {
		t.Errorf("another request with the key: %v", err)
	}
	if got := s.File(in, "f"); got != strings.Repeat("x\n", 4) {
		t.Errorf("the command ran otherwise than once for each key: %q", got)
	}
	s.Verify()
}

// TestARunThatCannotBeginAtOnceIsRecordedFirst is about what stands in the way: another run, somebody who has the space's files, the kill
// switch.
func TestARunThatCannotBeginAtOnceIsRecordedFirst(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space().ID
	const operations = `[{"type":"shell","command":"true"}]`
	first := func(doc run.Run, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		s.Ended(doc.ID)
	}
	leave, err := s.Spaces.Living.Seize(in)
	if err != nil {
		t.Fatal(err)
	}
	list, _ := commits(s)
	doc, err := asks(s, in, operations, "") // the caller does not wait for the files
	if got := list(); err != nil || !slices.Equal(got, []string{"run.created"}) {
		t.Errorf("while somebody has the files: %q, %v", got, err)
	}
	leave()
	first(doc, err)

	list, _ = commits(s)
	before := s.Start(in, `[{"type":"shell","command":"sleep 0.2"}]`)
	first(asks(s, in, operations, ""))
	if got := list(); !slices.Contains(got, "run.created") || slices.Contains(got, "run.created run.started tool.invoked") {
		t.Errorf("behind another run: %q", got)
	}
	s.Ended(before.ID)

	if _, err := s.Gate.KillSwitch.Throw(s.Context(), s.Origin, testkit.WS, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := asks(s, in, operations, ""); fault.CodeOf(err) != policy.ReasonKillSwitch {
		t.Errorf("under the kill switch: %v", err)
	}
	s.Verify()
}

// TestTheDaemonDiesWhileARunBeginsAtOnce loses the answer, and the commit with it or not. Nothing is done twice, and the caller gets an
// answer.
func TestTheDaemonDiesWhileARunBeginsAtOnce(t *testing.T) {
	t.Parallel()
	for _, death := range []testkit.Death{testkit.Recorded, testkit.Unconfirmed} {
		for _, idle := range []bool{false, true} {
			s := testkit.Open(t, testkit.Options{Program: program})
			in := s.Space().ID
			s.Log.DieAt(func(r event.Receipt) testkit.Death {
				if slices.ContainsFunc(r.Events, func(e event.Event) bool { return e.Type == run.EventCreated }) {
					return death
				}
				return testkit.Survive
			})
			doc, err := asks(s, in, `[{"type":"shell","command":"echo x >> f"}]`, "key")
			if (err == nil) != (death == testkit.Recorded) {
				t.Errorf("%v: told of %s, and %v", death, doc.ID, err)
			}
			<-s.Log.Gone()
			s.Crash()
			if idle {
				s.Restart()
			}
			again, err := asks(s, in, `[{"type":"shell","command":"echo x >> f"}]`, "key")
			if err != nil {
				t.Fatal(err)
			}
			if now := s.Rest(again.ID); now.Status == run.AwaitingApproval {
				s.Decide(again.ID, policy.Approve, "")
			}
			if now := s.Ended(again.ID); now.Status != run.Succeeded {
				t.Errorf("%v: the run is %s: %s", death, now.Status, now.Error)
			}
			s.Verify()
		}
	}
}

// TestADaemonThatEndsAnswersWhoAsks asks while the daemon ends: nobody waits for ever.
func TestADaemonThatEndsAnswersWhoAsks(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space().ID
	for range 10 {
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				_, _ = asks(s, in, `[{"type":"message","content":"x"}]`, "")
			})
		}
		s.Runs.Halt(testkit.WS, errors.New("it ends"))
		wait.Wait()
	}
	var wait sync.WaitGroup
	service := s.Runs
	for range 16 {
		wait.Go(func() {
			_, _ = service.Start(context.WithoutCancel(t.Context()), s.Origin, runs.Request{Workspace: testkit.WS, Space: in,
				Message: s.Message(`[{"type":"shell","command":"true"}]`), Waits: true})
		})
	}
	s.Restart()
	wait.Wait()
	s.Verify()
}

// TestLostLiveOutputIsMadeUp loses the live output of a run, as a host does that ends at once. The output in the log is shown again.
func TestLostLiveOutputIsMadeUp(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program, SQLite: true})
	doc := s.Ended(s.Start(s.Space().ID, `[{"type":"shell","command":"echo a"},{"type":"shell","command":"false"}]`).ID)
	s.Crash()
	if err := os.Remove(filepath.Join(s.Dir, "live", string(doc.ID)+".frames")); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for f, err := range s.Runs.Frames.Follow(t.Context(), testkit.WS, doc.ID, 1) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, f.Kind)
	}
	if want := []string{livestream.Operation, livestream.Result, livestream.Operation, livestream.Result,
		livestream.Complete}; !slices.Equal(kinds, want) {
		t.Errorf("shown are %v, want %v", kinds, want)
	}
}
