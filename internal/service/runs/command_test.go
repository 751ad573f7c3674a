package runs_test

import (
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit"
)

// light opens a stack with a tier nano, where a command with the word compiler is seen to need more.
func light(t testing.TB) *testkit.Stack {
	t.Helper()
	return testkit.Open(t, testkit.Options{Program: program, Light: &testkit.Light{}, Place: func(_ space.Offer, c space.Command,
		_ space.Read) []space.Need {
		if strings.Contains(c.Text, "compiler") {
			return []space.Need{{Kind: space.LackCommand, Name: "compiler"}}
		}
		return nil
	}})
}

// told returns the events of a type.
func told[T any](t testing.TB, s *testkit.Stack, typ string) []T {
	t.Helper()
	var found []T
	for _, e := range s.Events(0) {
		if e.Type == typ {
			d, err := event.Decode[T](e)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, d)
		}
	}
	return found
}

func TestWhatALighterTierTellsOfACommand(t *testing.T) {
	t.Parallel()
	s := light(t)
	made := s.Space()
	r := s.Rest(s.Start(made.ID, `[{"id":"a","type":"shell","command":"echo hello"}]`).ID)
	got := s.Results(r.ID)[0]
	if !got.OK() || *got.Stdout != "hello\n" || got.Tier != "nano" || got.Gas != 10 || got.Seed != "seed of a" || got.Clock == nil ||
		!got.Clock.Equal(testkit.LightClock) {
		t.Errorf("got %+v", got)
	}
}

// TestTheEventOfACommandHasItsOwnTime holds that neither the snapshot nor the record of a command counts to its duration.
func TestTheEventOfACommandHasItsOwnTime(t *testing.T) {
	t.Parallel()
	s := light(t)
	r := s.Rest(s.Start(s.Space().ID, `[{"type":"shell","command":"echo --took=7s"},{"type":"message","content":"end"}]`).ID)
	const want = 7000
	if got := s.Results(r.ID)[0]; !got.OK() || *got.DurationMS != want {
		t.Errorf("got the result %+v", got)
	}
	if got := told[run.Ended](t, s, run.EventSucceeded); len(got) != 2 || got[0].DurationMS != want || got[1].DurationMS >= want {
		t.Errorf("got the events %+v", got)
	}
}

func TestACommandThatIsSeenToNeedMoreRunsInTheHeavierTier(t *testing.T) {
	t.Parallel()
	s := light(t)
	made := s.Space()
	r := s.Rest(s.Start(made.ID, `[{"id":"a","type":"shell","command":"echo compiler"},{"id":"b","type":"shell","command":"echo again"}]`).ID)
	for i, want := range []string{"compiler\n", "again\n"} {
		if got := s.Results(r.ID)[i]; !got.OK() || *got.Stdout != want || got.Tier != "namespace" || got.Gas != 0 || got.Clock != nil {
			t.Errorf("got %+v", got)
		}
	}
	if ran := s.Options.Light.Ran(); len(ran) > 0 {
		t.Errorf("in nano ran %q", ran)
	}
	want := []space.Promoted{{
		Space: made.ID, From: "nano", To: "namespace", Code: space.WhyRouted, Reason: "it needs the command compiler", Run: r.ID, Operation: "a",
	}}
	if diff := gocmp.Diff(want, told[space.Promoted](t, s, space.EventPromoted)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	s.Verify()
}

func TestACommandThatFindsOutThatItNeedsMoreRunsAgain(t *testing.T) {
	t.Parallel()
	s := light(t)
	made := s.Space()
	r := s.Rest(s.Start(made.ID, `[{"id":"a","type":"shell","command":"echo here # want module numpy"}]`).ID)
	got := s.Results(r.ID)[0]
	if !got.OK() || *got.Stdout != "here\n" || got.Tier != "namespace" || len(got.Lacks) > 0 {
		t.Errorf("got %+v", got)
	}
	if ran := s.Options.Light.Ran(); !slices.Equal(ran, []string{"echo here # want module numpy"}) {
		t.Errorf("in nano ran %q", ran)
	}
	if got := told[space.Promoted](t, s, space.EventPromoted); len(got) != 1 || got[0].Code != space.WhyTierLacks ||
		got[0].Reason != "it needs the module numpy" {
		t.Errorf("got %+v", got)
	}
	if n := len(told[run.Invoked](t, s, run.EventInvoked)); n != 1 {
		t.Errorf("%d intents, want 1", n)
	}
	s.Verify()
}

func TestASpaceThatWasAskedToBeInNanoStaysThere(t *testing.T) {
	t.Parallel()
	s := light(t)
	made := s.SpaceOf(spaces.Request{Runtime: "nano"})
	r := s.Rest(s.Start(made.ID,
		`[{"id":"a","type":"shell","command":"true # want module numpy"},{"id":"b","type":"shell","command":"echo compiler"}]`).ID)
	results := s.Results(r.ID)
	want := []run.Lack{{Kind: "module", Name: "numpy"}}
	if got := results[0]; got.OK() || *got.ExitCode != 127 || !slices.Equal(got.Lacks, want) || !strings.Contains(got.Suggestion,
		"runtime auto") || got.Tier != "nano" {
		t.Errorf("got %+v", got)
	}
	if got := results[1]; !got.OK() || got.Tier != "nano" {
		t.Errorf("got %+v", got)
	}
	if got := told[space.Promoted](t, s, space.EventPromoted); len(got) > 0 {
		t.Errorf("got %+v", got)
	}
}

// Where the policy does not let the space be promoted, the command does not run, and the result says why.
func TestACommandWhoseSpaceMayNotBePromoted(t *testing.T) {
	t.Parallel()
	s := light(t)
	standard, err := s.Gate.Bundles.Resolve("permissive", nil)
	if err != nil {
		t.Fatal(err)
	}
	own, err := policy.NewBundle("own", standard.Cedar+
		"\n@id(\"stay\")\n@reason(\"it stays\")\nforbid (principal, action == Action::\"space.promote\", resource);\n", standard.Limits)
	if err != nil {
		t.Fatal(err)
	}
	made := s.SpaceOf(spaces.Request{Bundle: &own})
	r := s.Rest(s.Start(made.ID,
		`[{"id":"a","type":"shell","command":"echo compiler"},{"id":"b","type":"shell","command":"echo # want module `+
			`numpy"},{"id":"c","type":"shell","command":"echo done"}]`).ID)
	results := s.Results(r.ID)
	for _, got := range results[:2] {
		if got.Type != run.ResPolicyDenied || !strings.Contains(got.Reason, "it stays") {
			t.Errorf("got %+v", got)
		}
	}
	if !results[2].OK() {
		t.Errorf("got %+v", results[2])
	}
	if ran := s.Options.Light.Ran(); !slices.Equal(ran, []string{"echo # want module numpy", "echo done"}) {
		t.Errorf("in nano ran %q", ran)
	}
	s.Verify()
}

// A command that a person approved runs once, with the approved bytes, whichever tier it ends up in.
func TestAnApprovedCommandRunsInTheHeavierTier(t *testing.T) {
	t.Parallel()
	s := light(t)
	made := s.Space()
	r := s.Rest(s.Start(made.ID, `[{"id":"a","type":"shell","command":"mkdir d; rm -r d; echo compiler >> log; cat log"}]`).ID)
	if r.Status != run.AwaitingApproval {
		t.Fatalf("the run is %s, want a question", r.Status)
	}
	if got := told[space.Promoted](t, s, space.EventPromoted); len(got) > 0 {
		t.Errorf("promoted before anybody approved: %+v", got)
	}
	s.Decide(r.ID, policy.Approve, "")
	r = s.Ended(r.ID)
	if got := s.Results(r.ID); got[len(got)-1].Tier != "namespace" || *got[len(got)-1].Stdout != "compiler\n" {
		t.Errorf("got %+v", got[len(got)-1])
	}
	s.Verify()
}

func TestTheKillSwitchEndsACommandInALighterTier(t *testing.T) {
	t.Parallel()
	s := light(t)
	made := s.Space()
	r := s.Start(made.ID, `[{"id":"a","type":"shell","command":"sleep 100"},{"id":"b","type":"shell","command":"echo compiler"}]`)
	s.Prints(r.ID, "waiting")
	if _, err := s.Gate.KillSwitch.Throw(s.Context(), s.Origin, testkit.WS, ""); err != nil {
		t.Fatal(err)
	}
	s.Rest(r.ID)
	results := s.Results(r.ID)
	if got := results[0]; got.OK() || got.ReasonCode != policy.ReasonKillSwitch {
		t.Errorf("got %+v", got)
	}
	if got := told[space.Promoted](t, s, space.EventPromoted); len(got) > 0 {
		t.Errorf("promoted while the kill switch is thrown: %+v", got)
	}
	s.Verify()
}

// TestTheKillSwitchEndsACommandBeforeItsSpaceStarts throws the switch when a command has begun and its space has not: the command ends, and
// names the throw as its cause.
func TestTheKillSwitchEndsACommandBeforeItsSpaceStarts(t *testing.T) {
	t.Parallel()
	s := light(t)
	made := s.Space()
	if err := s.Spaces.Living.Close(); err != nil { // as a change of the policy does
		t.Fatal(err)
	}
	halted, thrown := make(chan struct{}), make(chan error, 1)
	s.Gate.KillSwitch.OnHalt(func(ws id.Workspace, cause error) {
		s.Runs.Halt(ws, cause)
		close(halted)
	})
	s.Log.DieAt(func(r event.Receipt) testkit.Death {
		if slices.ContainsFunc(r.Events, func(e event.Event) bool { return e.Type == run.EventInvoked }) {
			go func() { // it is recorded once this append is over
				_, err := s.Gate.KillSwitch.Throw(s.Context(), s.Origin, testkit.WS, "")
				thrown <- err
			}()
			<-halted
		}
		return testkit.Survive
	})
	r := s.Start(made.ID, `[{"id":"a","type":"shell","command":"echo a"}]`)
	if err := <-thrown; err != nil {
		t.Fatal(err)
	}
	s.Rest(r.ID)
	types := map[id.Event]string{}
	for _, e := range s.Events(0) {
		if types[e.ID] = e.Type; e.Type == run.EventErred && types[e.Causation] != policy.KillSwitchThrownType {
			t.Errorf("the end of the command names %q as its cause", types[e.Causation])
		}
	}
	if got := s.Results(r.ID); len(got) != 1 || got[0].ReasonCode != policy.ReasonKillSwitch {
		t.Errorf("got %+v, want one result that names the kill switch", got)
	}
	s.Verify()
}

func TestACancelledCommandInALighterTier(t *testing.T) {
	t.Parallel()
	s := light(t)
	made := s.Space()
	r := s.Start(made.ID, `[{"id":"a","type":"shell","command":"sleep 100"},{"id":"b","type":"shell","command":"echo compiler"}]`)
	s.Prints(r.ID, "waiting")
	if err := s.Runs.Cancel(s.Context(), s.Origin, testkit.WS, r.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	if got := s.Find(r.ID); got.Status != run.Cancelled {
		t.Errorf("the run is %s", got.Status)
	}
	if got := told[space.Promoted](t, s, space.EventPromoted); len(got) > 0 {
		t.Errorf("promoted for what was cancelled: %+v", got)
	}
	s.Verify()
}
