package runs_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/gate/approvals"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit"
)

// kinds are the operations of the property test. Those with an effect append their own name to the ledger; %s stands for it.
var kinds = map[string]string{
	"message": `{"type":"message","content":"x"}`,
	"append":  `{"type":"shell","id":"%[1]s","command":"echo %[1]s >> ledger"}`,
	"asks":    `{"type":"shell","id":"%[1]s","command":"rm -rf d; echo %[1]s >> ledger"}`,
	"fails":   `{"type":"shell","id":"%[1]s","command":"echo %[1]s >> ledger; exit 1"}`,
	"denied":  `{"type":"shell","id":"%[1]s","command":"sudo true"}`,
	"invalid": `{"type":"shell","id":"%[1]s","command":"true","timeout":1}`,
	"create":  `{"type":"createFile","id":"%[1]s","path":"%[1]s","content":"x"}`,
	"read":    `{"type":"readFile","id":"%[1]s","path":"missing"}`,
}

// TestWhateverHappens lets people answer, cancel and restart, and daemons die, as a seed wills, and holds the end of each run against what
// must be: one result for each operation that was reached, in order, each effect at most once and after its intent, no question left open.
func TestWhateverHappens(t *testing.T) {
	t.Parallel()
	s := open(t)
	rapid.Check(t, func(rt *rapid.T) { happens(rt, s) })
	s.Verify()
}

func happens(rt *rapid.T, s *testkit.Stack) {
	revive(s) // an earlier try may have failed in the middle
	in := s.SpaceOf(spaces.Request{TTL: spaces.MaxTTL}).ID
	names := rapid.SliceOfN(rapid.SampledFrom(sorted()), 1, 6).Draw(rt, "operations")
	operations := make([]string, len(names))
	for i, name := range names {
		operations[i] = named(kinds[name], fmt.Sprintf("o%d", i))
	}
	request := runs.Request{Workspace: testkit.WS, Space: in, Message: s.Message("[" + strings.Join(operations, ",") + "]"), Key: "k" +
		string(in)}
	var cancels sync.WaitGroup
	defer cancels.Wait()
	live := func() { // how the daemon that has just begun will end
		dies, cancelled := rapid.IntRange(0, 12).Draw(rt, "dies"), rapid.IntRange(0, 40).Draw(rt, "cancelled")
		death := rapid.SampledFrom([]testkit.Death{testkit.Recorded, testkit.Unconfirmed}).Draw(rt, "death")
		runs, origin, n := s.Runs, s.Origin, 0
		s.Log.DieAt(func(r event.Receipt) testkit.Death {
			n++
			if i := slices.IndexFunc(r.Events, func(e event.Event) bool { return e.Run != "" }); n == cancelled && i >= 0 {
				id := r.Events[i].Run
				ctx := s.Context()
				cancels.Go(func() { _ = runs.Cancel(ctx, origin, testkit.WS, id, "a person cancelled it") })
			}
			if n == dies {
				return death
			}
			return testkit.Survive
		})
	}
	again := func() {
		s.Crash()
		live()
	}
	live()
	doc, err := s.Runs.Start(s.Context(), s.Origin, request)
	for err != nil {
		if fault.KindOf(err) != fault.Unavailable {
			rt.Fatalf("start: %v", err)
		}
		<-s.Log.Gone()
		again()
		doc, err = s.Runs.Start(s.Context(), s.Origin, request)
	}
	for {
		now, alive := s.RestOrDeath(doc.ID)
		if !alive {
			again()
			continue
		}
		if now.Status.Ended() {
			doc = now
			break
		}
		act(rt, s, now)
	}
	revive(s)
	cancels.Wait()
	judge(rt, s, doc, names)
	if _, err := s.Spaces.Ending.Destroy(s.Context(), s.Origin, testkit.WS, in); err != nil {
		rt.Fatalf("destroy: %v", err)
	}
}

// revive lets the daemon that lives go on living, and starts the next one if none lives; then it reports true.
func revive(s *testkit.Stack) bool {
	s.Log.DieAt(nil)
	select {
	case <-s.Log.Gone():
		s.Crash()
		return true
	default:
		return false
	}
}

// act does what a person does about a run that waits. The daemon may die over it.
func act(rt *rapid.T, s *testkit.Stack, doc run.Run) {
	_, approval := doc.Pending()
	ctx := s.Context()
	var err error
	switch what := rapid.SampledFrom([]string{"approve", "approve", "approve", "deny", "hold", "expire", "cancel", "restart"}).Draw(rt,
		"answer"); what {
	case "expire":
		s.Clock.Move(25 * time.Hour)
		err = s.Gate.Approvals.Step(ctx, s.Clock.Now())
	case "cancel":
		err = s.Runs.Cancel(ctx, s.Origin, testkit.WS, doc.ID, "")
	case "restart":
		s.Restart()
	default:
		_, err = s.Gate.Approvals.Decide(ctx, s.Origin, testkit.WS, approval, policy.Answer{Decision: policy.DecisionWord(what)})
	}
	if kind := fault.KindOf(err); err != nil && kind != fault.Unavailable && kind != fault.Conflict && ctx.Err() == nil {
		select {
		case <-s.Log.Gone(): // it died meanwhile
		default:
			rt.Fatalf("a person's act: %v", err)
		}
	}
}

// judge holds the end of a run against what must be.
func judge(rt *rapid.T, s *testkit.Stack, doc run.Run, names []string) {
	s.VerifyRun(doc.ID)
	results := s.Results(doc.ID)
	if doc.Status == run.Succeeded && len(results) != len(names) {
		rt.Fatalf("the run succeeded with %d results of %d", len(results), len(names))
	}
	ledger := ""
	if _, err := s.Spaces.Files.Read(s.Context(), s.Origin, testkit.WS, doc.Space, "ledger", spaces.Any); err == nil {
		ledger = s.File(doc.Space, "ledger")
	}
	last := -1
	for i, name := range names {
		op := fmt.Sprintf("o%d", i)
		done := strings.Count(ledger, op+"\n")
		if at := strings.Index(ledger, op+"\n"); done > 1 || done == 1 && at < last {
			rt.Fatalf("%s was done %d times, or out of order: %q", op, done, ledger)
		} else if done == 1 {
			last = at
		}
		reached := i < len(results)
		effect := name == "append" || name == "asks" || name == "fails"
		switch {
		case done == 1 && (!reached || results[i].Type != run.OpShell && results[i].Type != run.ResUnknown):
			rt.Fatalf("%s was done, and the results are %+v", op, results)
		case effect && done == 0 && reached && results[i].OK():
			rt.Fatalf("%s was not done, and its result is %+v", op, results[i])
		case reached && results[i].OperationID != op && name != "message":
			rt.Fatalf("result %d is that of %s", i, results[i].OperationID)
		}
	}
	for _, status := range []policy.ApprovalStatus{policy.Pending, policy.Held} {
		open, err := s.Gate.Approvals.List(s.Context(), testkit.WS, approvals.Filter{Run: doc.ID, Status: status})
		if err != nil || len(open) > 0 {
			rt.Fatalf("%d questions of a run that is %s are %s; %v", len(open), doc.Status, status, err)
		}
	}
}

func sorted() []string {
	names := make([]string, 0, len(kinds))
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// named puts an operation's name into its JSON.
func named(operation, name string) string {
	if !strings.Contains(operation, "%") {
		return operation
	}
	made := fmt.Sprintf(operation, name)
	if !json.Valid([]byte(made)) {
		panic("not JSON: " + made)
	}
	return made
}
