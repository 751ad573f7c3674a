package runs_test

import (
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/runs/history"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit"
)

// In a tier without processes a background run takes its turn with the others. A command that needs a process is refused there, or promotes
// the space where its runtime lets it.
func TestBackgroundRunsInATierWithoutProcesses(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program, Light: &testkit.Light{}})
	light := s.SpaceOf(spaces.Request{Runtime: space.Nano})
	doc := s.Ended(background(t, s, light.ID, `{"type":"shell","command":"echo hello"}`).ID)
	if got := stdout(t, s, doc.ID); got != "hello\n" || doc.Status != run.Succeeded || doc.Operations[0].Snapshot.IsZero() {
		t.Errorf("without input: got %q, %+v", got, doc)
	}
	doc = s.Ended(background(t, s, light.ID, `{"type":"shell","command":"cat","stdin":true}`).ID)
	if got := s.Results(doc.ID); len(got) != 1 || got[0].ReasonCode != "tier_lacks" || !strings.Contains(got[0].Suggestion, "promote") {
		t.Errorf("with input: got %+v, want tier_lacks with a suggestion", got)
	}
	doc = background(t, s, light.ID, `{"type":"shell","command":"sleep 1000"}`)
	s.Prints(doc.ID, "waiting")
	if err := give(s, doc.ID, runs.Given{Signal: "SIGTERM"}); fault.CodeOf(err) != "tier_lacks" {
		t.Errorf("a signal: got %v, want tier_lacks", err)
	}
	second := background(t, s, light.ID, `{"type":"shell","command":"echo second"}`)
	if err := s.Runs.Cancel(s.Context(), s.Origin, testkit.WS, doc.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	if second = s.Ended(second.ID); second.Status != run.Succeeded {
		t.Errorf("the one behind it: got %s", second.Status)
	}
	s.Options.Light.Ran()

	auto := s.SpaceOf(spaces.Request{Runtime: space.RuntimeAuto})
	doc = background(t, s, auto.ID, `{"type":"shell","command":"echo ready; cat","stdin":true}`)
	s.Prints(doc.ID, "ready")
	for _, g := range []runs.Given{{Stdin: []byte("hello\n")}, {Close: true}} {
		if err := give(s, doc.ID, g); err != nil {
			t.Fatal(err)
		}
	}
	s.Ended(doc.ID)
	if got := s.Results(doc.ID)[0]; got.Tier != "namespace" || *got.Stdout != "ready\nhello\n" {
		t.Errorf("auto: got %+v", got)
	}
	other := s.SpaceOf(spaces.Request{Runtime: space.RuntimeAuto})
	doc = background(t, s, other.ID, `{"type":"shell","command":"echo ready; sleep 1000 # want module numpy"}`)
	s.Prints(doc.ID, "ready")
	s.Ended(s.Start(other.ID, `[{"type":"shell","command":"echo the queue is free"}]`).ID)
	if err := s.Runs.Cancel(s.Context(), s.Origin, testkit.WS, doc.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	if ran := s.Options.Light.Ran(); !slices.Contains(ran, "echo ready; sleep 1000 # want module numpy") {
		t.Errorf("it was not tried in the light tier: %v", ran)
	}
	s.Verify()
}

// Input that comes while a space is being promoted for a command that takes it waits for that command. The lighter tier does not refuse
// it.
func TestInputWaitsForThePromotionOfItsSpace(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program, Light: &testkit.Light{}})
	for _, operation := range []string{
		`{"type":"shell","command":"head -n 1","stdin":true}`,
		`{"type":"shell","command":"head -n 1","pty":{"cols":80,"rows":24}}`,
	} {
		doc := background(t, s, s.SpaceOf(spaces.Request{Runtime: space.RuntimeAuto}).ID, operation)
		input := runs.Given{Stdin: []byte("hello\n")}
		if doc.PTY != nil {
			input = runs.Given{PTY: []byte("hello\n")}
		}
		if err := give(s, doc.ID, input); err != nil {
			t.Fatalf("%s: %v", operation, err)
		}
		s.Ended(doc.ID)
		if got := s.Results(doc.ID)[0]; got.Tier != "namespace" || !strings.HasPrefix(*got.Stdout, "hello") {
			t.Errorf("%s: got %+v", operation, got)
		}
	}
	s.Verify()
}

// Lists name background runs alone where they are asked to.
func TestListsOfBackgroundRuns(t *testing.T) {
	t.Parallel()
	s := open(t)
	in, other := s.Space(), s.Space()
	plain := s.Ended(s.Start(in.ID, `[{"type":"message","content":"x"}]`).ID)
	ended := s.Ended(background(t, s, in.ID, `{"type":"shell","command":"true"}`).ID)
	going := background(t, s, in.ID, `{"type":"shell","command":"echo ready; sleep 1000"}`)
	elsewhere := background(t, s, other.ID, `{"type":"shell","command":"echo ready; sleep 1000"}`)
	s.Prints(going.ID, "ready")
	s.Prints(elsewhere.ID, "ready")
	for name, c := range map[string]struct {
		f    history.Filter
		want []run.Run
	}{
		"of a space":           {history.Filter{Space: in.ID, Background: true}, []run.Run{going, ended}},
		"that run in a space":  {history.Filter{Space: in.ID, Background: true, Status: run.Running}, []run.Run{going}},
		"all":                  {history.Filter{Background: true}, []run.Run{elsewhere, going, ended}},
		"all that run":         {history.Filter{Background: true, Status: run.Running}, []run.Run{elsewhere, going}},
		"every run of a space": {history.Filter{Space: in.ID}, []run.Run{going, ended, plain}},
	} {
		got, err := s.Runs.History.List(s.Context(), testkit.WS, c.f, "", 10)
		same := slices.EqualFunc(got, c.want, func(a, b run.Run) bool { return a.ID == b.ID })
		if err != nil || !same {
			t.Errorf("%s: got %d, %v, want %d", name, len(got), err, len(c.want))
		}
	}
	_, err := s.Runs.History.List(s.Context(), testkit.WS, history.Filter{Room: in.Room, Background: true}, "", 10)
	if fault.CodeOf(err) != "invalid_filter" {
		t.Errorf("of a room: got %v, want invalid_filter", err)
	}
}
