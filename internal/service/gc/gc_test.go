package gc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/content"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/service/audit"
	"agentbox/internal/service/gate/killswitch"
	"agentbox/internal/service/gc"
	"agentbox/internal/service/runs"
	"agentbox/internal/spaceinit/inittest"
	"agentbox/internal/testkit"
)

var program []byte

func TestMain(m *testing.M) {
	var err error
	if program, err = inittest.Build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// long is an operation whose result does not fit into its event.
const long = `{"type":"shell","command":"seq 1 40000"}`

// stored returns operations with one behind them that makes the message too long for its event.
func stored(operations string) string {
	return "[" + operations + `,{"type":"message","content":"` + strings.Repeat("x", 4<<10) + `"}]`
}

func open(t *testing.T, o testkit.Options) *testkit.Stack {
	o.Program, o.SQLite = program, true
	return testkit.Open(t, o)
}

func sweep(t *testing.T, s *testkit.Stack) content.Swept {
	t.Helper()
	swept, err := s.GC.Sweep(s.Context(), s.Origin, testkit.WS)
	if err != nil {
		t.Fatal(err)
	}
	return swept
}

// intact fails unless everything that the log names is there.
func intact(t *testing.T, s *testkit.Stack, contents int) {
	t.Helper()
	report, err := audit.VerifyContents(t.Context(), s.Log, s.Blobs, testkit.WS)
	if err != nil || !report.OK || report.Contents != contents {
		t.Errorf("the log's contents: %+v, %v; want %d and nothing found", report, err, contents)
	}
}

func TestSweepKeepsWhatTheLogNames(t *testing.T) {
	s := open(t, testkit.Options{})
	// before the run, which may still hold what is put beside it
	garbage, err := s.Blobs.Put(s.Context(), strings.NewReader("of a run that was never recorded"), 100)
	if err != nil {
		t.Fatal(err)
	}
	s.Ended(s.Start(s.Space().ID, stored(long)).ID)
	found, err := s.GC.Survey(s.Context(), testkit.WS)
	if err != nil || found.Contents.Freed != 1 || found.Contents.Kept != 2 {
		t.Errorf("a survey: %+v, %v; want 1 to free and 2 to keep", found, err)
	}
	if swept := sweep(t, s); swept.Contents != found.Contents || swept.Failed != nil {
		t.Errorf("swept %+v, surveyed %+v", swept, found)
	}
	if _, err := s.Blobs.Open(s.Context(), garbage.Digest); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("the garbage: %v, want %v", err, blob.ErrNotFound)
	}
	intact(t, s, 2)
	var types []string
	for _, e := range s.Events(0) {
		if e.EntityType == content.EntityType {
			types = append(types, e.Type)
		}
	}
	if got, want := strings.Join(types, " "), content.EventSweepBegun+" "+content.EventSwept; got != want {
		t.Errorf("recorded are %s, want %s", got, want)
	}
}

func TestSweepsBesideRunsLoseNothing(t *testing.T) {
	s := open(t, testkit.Options{})
	in := s.Space().ID
	ctx, stop := context.WithCancel(s.Context())
	var sweeping sync.WaitGroup
	sweeping.Go(func() {
		for ctx.Err() == nil {
			sweep(t, s)
		}
	})
	const runs = 5
	for range runs {
		s.Ended(s.Start(in, stored(long+","+long)).ID)
	}
	stop()
	sweeping.Wait()
	intact(t, s, 3*runs)
}

func TestRuleOfSnapshots(t *testing.T) {
	write := func(s *testkit.Stack, in id.Space, text string) {
		s.Ended(s.Start(in, `[{"type":"createFile","path":"f","overwrite":true,"content":"`+strings.Repeat(text, 1000)+`"}]`).ID)
	}
	kept := func(s *testkit.Stack, in id.Space) int {
		past, err := s.Spaces.Snapshots.List(s.Context(), testkit.WS, in, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		return len(past.Kept)
	}
	t.Run("by number", func(t *testing.T) {
		s := open(t, testkit.Options{Rule: content.Rule{Snapshots: 2}})
		in := s.Space().ID
		for _, text := range []string{"a", "b", "c"} {
			write(s, in, text)
		}
		if n := kept(s, in); n != 4 {
			t.Fatalf("%d are kept before, want 4", n)
		}
		if swept := sweep(t, s); swept.Snapshots.Kept != 2 || swept.Snapshots.Freed != 2 || kept(s, in) != 2 {
			t.Errorf("swept %+v, kept are %d; want 2 and 2", swept, kept(s, in))
		}
	})
	t.Run("by age", func(t *testing.T) {
		s := open(t, testkit.Options{Rule: content.Rule{Seconds: 3600}})
		in := s.Space().ID
		write(s, in, "a")
		s.Clock.Move(59 * time.Minute)
		if swept := sweep(t, s); swept.Snapshots.Freed != 0 {
			t.Errorf("within the hour: %+v", swept)
		}
		write(s, in, "b")
		s.Clock.Move(2 * time.Minute)
		if swept := sweep(t, s); swept.Snapshots.Kept == 0 || kept(s, in) != 2 { // before the second run, and after it
			t.Errorf("after an hour: %+v, kept are %d; want 2", swept, kept(s, in))
		}
		s.Clock.Move(2 * time.Hour)
		if swept := sweep(t, s); kept(s, in) != 1 || swept.Snapshots.Kept != 1 {
			t.Errorf("after all of them are old: %+v, kept are %d; want the newest", swept, kept(s, in))
		}
	})
}

func TestSweepAsksTheGate(t *testing.T) {
	s := open(t, testkit.Options{})
	garbage, err := s.Blobs.Put(s.Context(), strings.NewReader("garbage"), 100)
	if err != nil {
		t.Fatal(err)
	}
	agent, err := s.Identity.Agent(s.Context(), s.Origin, testkit.WS, "an agent")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.GC.Sweep(s.Context(), event.Origin{Principal: agent}, testkit.WS); err == nil {
		t.Error("an agent has swept")
	}
	if _, err := s.Gate.KillSwitch.Throw(s.Context(), s.Origin, testkit.WS, "stop"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GC.Sweep(s.Context(), s.Origin, testkit.WS); !errors.Is(err, killswitch.ErrThrown) {
		t.Errorf("under the kill switch: %v, want %v", err, killswitch.ErrThrown)
	}
	if err := s.GC.Step(s.Context(), testkit.WS, s.Owner); err != nil {
		t.Errorf("a step under the kill switch: %v", err)
	}
	f, err := s.Blobs.Open(s.Context(), garbage.Digest)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if _, err := s.Gate.KillSwitch.Lift(s.Context(), s.Origin, testkit.WS, "go on"); err != nil {
		t.Fatal(err)
	}
	if err := s.GC.Step(s.Context(), testkit.WS, s.Owner); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Blobs.Open(s.Context(), garbage.Digest); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a step has left it: %v", err)
	}
	head, err := s.Log.Head(s.Context(), testkit.WS)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.GC.Step(s.Context(), testkit.WS, s.Owner); err != nil {
		t.Fatal(err)
	}
	if now, err := s.Log.Head(s.Context(), testkit.WS); err != nil || now != head {
		t.Errorf("a step with nothing to do recorded %d events, %v", now-head, err)
	}
}

func TestQuotaOfContent(t *testing.T) {
	s := open(t, testkit.Options{Content: 300_000})
	in := s.Space().ID
	usage := func() content.Usage {
		u, err := gc.Usage(s.Context(), s.Docs, testkit.WS)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	first := s.Ended(s.Start(in, stored(long)).ID)
	u := usage()
	if u.Contents != 2 || u.Bytes < 200_000 || u.Bytes > 290_000 {
		t.Fatalf("the first run has %+v", u)
	}
	if s.Results(first.ID)[0].Stdout == nil {
		t.Fatal("the first run's result is not whole")
	}
	// The second result does not fit: it is recorded all the same, without its long text.
	second := s.Ended(s.Start(in, stored(long)).ID)
	if second.Status != run.Succeeded {
		t.Errorf("the second run ended as %s", second.Status)
	}
	if r := s.Results(second.ID)[0]; r.ExitCode == nil || *r.ExitCode != 0 || r.Stdout != nil && len(*r.Stdout) > 100_000 {
		t.Errorf("its result is %+v, want the exit code without the long text", r)
	}
	// At the edge: what fills the quota is taken, a byte more is not.
	start := func(size int64) error {
		m := s.Message(`[{"type":"message","id":"m","content":"x"}]`)
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		m = s.Message(`[{"type":"message","id":"m","content":"` + strings.Repeat("x", int(size)-len(raw)+1) + `"}]`)
		_, err = s.Runs.Start(s.Context(), s.Origin, runs.Request{Workspace: testkit.WS, Space: in, Message: m})
		return err
	}
	left := 300_000 - usage().Bytes
	if err := start(left + 1); !errors.Is(err, content.ErrQuota) {
		t.Errorf("a byte more than fits: %v, want %v", err, content.ErrQuota)
	}
	if err := start(left); err != nil {
		t.Errorf("just as much as fits: %v", err)
	}
	if u := usage(); u.Bytes != 300_000 {
		t.Errorf("used are %d, want 300000", u.Bytes)
	}
}
