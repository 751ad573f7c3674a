package runner_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/runner"
	"agentbox/internal/testkit/wall"
)

// gentle is an engine's way to a host where nothing goes wrong.
func (h *host) gentle() seat {
	return seat{host: h, chance: locked(rand.New(rand.NewPCG(3, 3))), dead: context.Background()}
}

// work lets an engine work until it is ended.
func (h *host) work(records errand.Records, claims errand.Claims) (end func()) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- (&runner.Runner{Claims: claims, Records: records, Clock: wall.Clock{}, Logger: slog.New(slog.DiscardHandler)}).Run(ctx)
	}()
	return func() {
		stop()
		if err := <-ended; err != nil {
			h.t.Error(err)
		}
	}
}

func (h *host) found(r id.Run) run.Run {
	h.t.Helper()
	doc, err := h.hands.Find(context.Background(), ws, r)
	if err != nil {
		h.t.Fatal(err)
	}
	return doc
}

// listed are the operations in the output of a run.
func (h *host) listed(r id.Run) []errand.Outcome {
	h.t.Helper()
	doc := h.found(r)
	if doc.Reported == nil {
		h.t.Fatalf("%s reported nothing: %s %s", r, doc.Status, doc.Error)
	}
	var out struct {
		Operations []errand.Outcome `json:"operations"`
	}
	if err := json.Unmarshal(doc.Reported.Output, &out); err != nil {
		h.t.Fatal(err)
	}
	return out.Operations
}

// TestAnEngineWaitsUntilTheKillSwitchIsLifted throws the switch for much longer than a claim lasts.
func TestAnEngineWaitsUntilTheKillSwitchIsLifted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		defer func() { h.hands.Evidence.Wait(); _ = h.log.Close() }()
		if _, err := h.gate.KillSwitch.Throw(t.Context(), h.owner, ws, "to see"); err != nil {
			t.Fatal(err)
		}
		r := h.ask(2).ID
		end := h.work(h.gentle(), h.gentle())
		defer end()
		time.Sleep(10 * time.Minute)
		if doc := h.found(r); doc.Status != run.Running || doc.Attempts != 1 {
			t.Errorf("under the switch the run is %s (%s) in attempt %d", doc.Status, doc.Error, doc.Attempts)
		}
		events, err := h.log.Read(t.Context(), journal.Query{Workspace: ws, Types: []string{policy.DeniedType}, Limit: 100})
		if err != nil || len(events) != 1 {
			t.Errorf("%d refusals were recorded, want 1: %v", len(events), err)
		}
		if _, err := h.gate.KillSwitch.Lift(t.Context(), h.owner, ws, ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if doc := h.found(r); doc.Attempts != 1 {
			t.Errorf("the run took %d attempts", doc.Attempts)
		}
		h.verify(r, 2)
	})
}

// choosy is a seat whose gate refuses the operations of some indexes, and whose space fails those of others.
type choosy struct {
	seat
	refuses, fails map[int]bool
	at             int // of the last operation that was asked about
}

func (c *choosy) Invoke(ctx context.Context, w errand.Work, in id.Step, index int, operation json.RawMessage) (errand.Verdict, error) {
	if c.at = index; c.refuses[index] {
		return errand.Verdict{Code: "no_policy_allows", Reason: "no policy allows it"}, nil
	}
	return c.seat.Invoke(ctx, w, in, index, operation)
}

func (c *choosy) Operate(ctx context.Context, w errand.Work, call id.ToolCall, in id.Space, operation json.RawMessage) (errand.Outcome,
	error) {
	o, err := c.seat.Operate(ctx, w, call, in, operation)
	o.Status, o.OK = "succeeded", !c.fails[c.at]
	return o, err
}

func (c *choosy) Conclude(ctx context.Context, w errand.Work, call id.ToolCall, _ string, o errand.Outcome) error {
	raw, err := json.Marshal(o)
	if err != nil {
		return err
	}
	by := engines.Shown{Token: w.Token}
	if o.OK {
		_, err = c.hands.Steps.Succeed(ctx, c.owner, ws, by, call, raw)
	} else {
		_, err = c.hands.Steps.Fail(ctx, c.owner, ws, by, call, raw, "")
	}
	return err
}

// TestWhatARunSaysOfItsOperations ends runs of which some operations did not succeed: each is listed in its place, and the run has failed
// unless its order says to continue on errors.
func TestWhatARunSaysOfItsOperations(t *testing.T) {
	for name, c := range map[string]struct {
		refuses, fails map[int]bool
		order          string
		status         run.Status
		err, said      string
	}{
		"all succeed":    {status: run.Succeeded, said: "3 of 3 operations succeeded"},
		"one is refused": {refuses: map[int]bool{0: true}, status: run.Failed, err: errand.Failed, said: "2 of 3 operations succeeded"},
		"one fails":      {fails: map[int]bool{1: true}, status: run.Failed, err: errand.Failed, said: "2 of 3 operations succeeded"},
		"none succeeds": {refuses: map[int]bool{0: true, 2: true}, fails: map[int]bool{1: true}, status: run.Failed, err: errand.Failed,
			said: "0 of 3 operations succeeded"},
		"errors are let pass": {refuses: map[int]bool{2: true}, fails: map[int]bool{1: true}, order: `"continue_on_error":true,`,
			status: run.Succeeded, said: "1 of 3 operations succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t)
				defer func() { h.hands.Evidence.Wait(); _ = h.log.Close() }()
				r := h.order(3, c.order).ID
				s := &choosy{seat: h.gentle(), refuses: c.refuses, fails: c.fails}
				end := h.work(s, s)
				time.Sleep(time.Minute)
				end()
				doc := h.found(r)
				if doc.Status != c.status || doc.Error != c.err || doc.Reported == nil || doc.Reported.Summary+doc.Reported.Message != c.said {
					t.Errorf("got %s (%s) with %+v, want %s (%s) with %q", doc.Status, doc.Error, doc.Reported, c.status, c.err, c.said)
				}
				for i, o := range h.listed(r) {
					want := errand.Outcome{Child: o.Child, Status: "succeeded", OK: !c.fails[i]}
					if c.refuses[i] {
						want = errand.Outcome{Status: errand.Refused, Code: "no_policy_allows", Reason: "no policy allows it"}
					}
					if o != want || o.Child == "" && !c.refuses[i] {
						t.Errorf("operation %d: got %+v, want %+v", i+1, o, want)
					}
				}
				if n := len(h.listed(r)); n != 3 {
					t.Errorf("%d operations are listed, want 3", n)
				}
			})
		})
	}
}

// TestWhatAnEarlierAttemptDidIsListed stops an engine between two operations: the one that takes the run over lists both, each in its
// place.
func TestWhatAnEarlierAttemptDidIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		defer func() { h.hands.Evidence.Wait(); _ = h.log.Close() }()
		r := h.ask(2).ID
		first := &held{choosy: choosy{seat: h.gentle()}, from: 1, reached: make(chan struct{})}
		end := h.work(first, first)
		<-first.reached
		end()
		second := &choosy{seat: h.gentle()}
		end = h.work(second, second)
		time.Sleep(time.Minute)
		end()
		got := h.listed(r)
		if doc := h.found(r); doc.Status != run.Succeeded || doc.Attempts != 2 || len(got) != 2 {
			t.Fatalf("the run is %s (%s) after %d attempts and lists %+v", doc.Status, doc.Error, doc.Attempts, got)
		}
		calls, err := h.hands.Look.Calls(context.Background(), ws, engines.Of{Run: r}, "", 10) // the newest first
		if err != nil || len(calls) != 2 || got[0].Child != calls[1].Child || got[1].Child != calls[0].Child || !got[0].OK || !got[1].OK {
			t.Errorf("got %+v of the calls %+v, %v", got, calls, err)
		}
	})
}

// held is an engine that comes to a halt before an operation.
type held struct {
	choosy
	from    int
	reached chan struct{}
}

func (s *held) Invoke(ctx context.Context, w errand.Work, in id.Step, index int, operation json.RawMessage) (errand.Verdict, error) {
	if index >= s.from {
		close(s.reached)
		<-ctx.Done()
		return errand.Verdict{}, fault.Wrap(ctx.Err(), fault.Unavailable, "interrupted", "it was stopped")
	}
	return s.choosy.Invoke(ctx, w, in, index, operation)
}

// TestRecorded reads what a call tells of its operation, also where its output was redacted.
func TestRecorded(t *testing.T) {
	at := func(index int) json.RawMessage { raw, _ := json.Marshal(errand.At{Index: index}); return raw }
	s := step.Step{ID: "step_1", Input: at(2)}
	for name, c := range map[string]struct {
		call step.Call
		want errand.Progress
	}{
		"none":    {step.Call{}, errand.Progress{Index: 2, Step: "step_1"}},
		"running": {step.Call{ID: "call_1", Status: step.Running}, errand.Progress{Index: 2, Step: "step_1", Call: "call_1"}},
		"succeeded": {step.Call{ID: "call_1", Status: step.Succeeded,
			Output: json.RawMessage(`{"run_id":"run_1","status":"succeeded","success":true}`)},
			errand.Progress{Index: 2, Step: "step_1", Call: "call_1", Ended: true, OK: true, Outcome: errand.Outcome{Child: "run_1",
				Status: "succeeded", OK: true}}},
		"failed": {step.Call{ID: "call_1", Status: step.Failed,
			Error: json.RawMessage(`{"run_id":"run_1","status":"cancelled","success":false}`)},
			errand.Progress{Index: 2, Step: "step_1", Call: "call_1", Ended: true, Outcome: errand.Outcome{Child: "run_1", Status: "cancelled"}}},
		"redacted": {step.Call{ID: "call_1", Status: step.Succeeded, Child: "run_1"},
			errand.Progress{Index: 2, Step: "step_1", Call: "call_1", Ended: true, OK: true, Outcome: errand.Outcome{Child: "run_1",
				Status: "succeeded", OK: true}}},
		"other output": {step.Call{ID: "call_1", Status: step.Failed, Child: "run_1", Error: json.RawMessage(`"no"`)},
			errand.Progress{Index: 2, Step: "step_1", Call: "call_1", Ended: true, Outcome: errand.Outcome{Child: "run_1", Status: "failed"}}},
	} {
		if got := errand.Recorded(s.ID, s.Input, asCall(c.call)); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}
