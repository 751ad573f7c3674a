package spaces_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit"
)

// light opens a stack that has a tier nano.
func light(t testing.TB) *testkit.Stack {
	t.Helper()
	return testkit.Open(t, testkit.Options{Program: program, Light: &testkit.Light{}})
}

// promotions returns the space.promoted events so far.
func promotions(t testing.TB, s *testkit.Stack) []space.Promoted {
	t.Helper()
	var found []space.Promoted
	for _, e := range s.Events(0) {
		if e.Type == space.EventPromoted {
			d, err := event.Decode[space.Promoted](e)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, d)
		}
	}
	return found
}

func TestWhereASpaceBegins(t *testing.T) {
	both, heavy := light(t), open(t)
	for _, c := range []struct {
		name          string
		on            *testkit.Stack
		runtime, tier string // asked for
		overrides     string
		want          string // "" is refused
		code          string
	}{
		{name: "nothing said", on: both, want: "nano"},
		{name: "auto", on: both, runtime: "auto", want: "nano"},
		{name: "nano", on: both, runtime: "nano", want: "nano"},
		{name: "heavy", on: both, runtime: "heavy", want: "namespace"},
		{name: "a name", on: both, runtime: "namespace", want: "namespace"},
		{name: "the older word", on: both, tier: "heavy", want: "namespace"},
		{name: "both words, the same", on: both, tier: "nano", runtime: "nano", want: "nano"},
		{name: "both words, different", on: both, tier: "nano", runtime: "heavy", code: "validation_failed"},
		{name: "an unknown one", on: both, runtime: "mainframe", code: "tier_unknown"},
		{name: "auto below what the policy accepts", on: both, overrides: `{"weakest_tier":"namespace"}`, want: "namespace"},
		{name: "nano below what the policy accepts", on: both, runtime: "nano", overrides: `{"weakest_tier":"namespace"}`,
			code: "tier_not_accepted"},
		{name: "a policy that accepts nano", on: both, overrides: `{"weakest_tier":"nano"}`, want: "nano"},
		{name: "a policy that wants more than there is", on: both, runtime: "heavy", overrides: `{"weakest_tier":"fortress"}`,
			code: "tier_unavailable"},
		{name: "auto without a nano tier", on: heavy, want: "namespace"},
		{name: "nano without a nano tier", on: heavy, runtime: "nano", code: "tier_unknown"},
		{name: "a policy that accepts nano, without one", on: heavy, overrides: `{"weakest_tier":"nano"}`, want: "namespace"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := spaces.Request{Workspace: testkit.WS, Runtime: c.runtime, Tier: c.tier}
			if c.overrides != "" {
				q.Overrides = []byte(c.overrides)
			}
			made, err := c.on.Spaces.Creation.Create(c.on.Context(), c.on.Origin, q)
			if fault.CodeOf(err) != c.code {
				t.Fatalf("got %v, want %q", err, c.code)
			}
			if err != nil {
				return
			}
			runtime := c.runtime + strings.TrimPrefix(c.tier, c.runtime)
			if runtime == "" {
				runtime = space.RuntimeAuto
			}
			if made.Tier != c.want || made.Runtime != runtime {
				t.Errorf("got %s in %s, want %s in %s", made.Runtime, made.Tier, runtime, c.want)
			}
			if _, err := c.on.Spaces.Ending.Destroy(c.on.Context(), c.on.Origin, testkit.WS, made.ID); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestASpaceIsPromoted(t *testing.T) {
	s := light(t)
	made := s.SpaceOf(spaces.Request{Env: map[string]string{"A": "b"}})
	s.Rest(s.Start(made.ID, `[{"type":"createFile","path":"a","content":"one"}]`).ID)
	why := space.Why{Code: space.WhyRequested, Reason: strings.Repeat("ä", spaces.MaxReason+1)}
	got, err := s.Spaces.Routing.Promote(s.Context(), s.Origin, testkit.WS, made.ID, "", why)
	if err != nil {
		t.Fatal(err)
	}
	if got.Tier != "namespace" || got.Runtime != space.RuntimeAuto || got.Env["A"] != "b" || got.Limits != made.Limits || got.ID != made.ID {
		t.Errorf("got %+v, want what it was in the tier namespace", got)
	}
	if n := s.Options.Light.Living(); n != 0 {
		t.Errorf("%d instances are left in nano", n)
	}
	if text := s.File(made.ID, "a"); text != "one" {
		t.Errorf("the file holds %q", text)
	}
	done := promotions(t, s)
	if len(done) != 1 || done[0].From != "nano" || done[0].To != "namespace" || done[0].Code != "requested" ||
		len([]rune(done[0].Reason)) != spaces.MaxReason {
		t.Errorf("got %+v", done)
	}
	// Again it does nothing, and back it does not go.
	if again, err := s.Spaces.Routing.Promote(s.Context(), s.Origin, testkit.WS, made.ID, "namespace", why); err != nil ||
		again.Tier != "namespace" {
		t.Errorf("again: %+v, %v", again, err)
	}
	if _, err := s.Spaces.Routing.Promote(s.Context(), s.Origin, testkit.WS, made.ID, "nano", why); fault.CodeOf(err) != "tier_not_heavier" {
		t.Errorf("back: %v, want tier_not_heavier", err)
	}
	if n := len(promotions(t, s)); n != 1 {
		t.Errorf("%d promotions, want 1", n)
	}
	fork, err := s.Spaces.Creation.Fork(s.Context(), s.Origin, spaces.Fork{Workspace: testkit.WS, Space: made.ID})
	if err != nil || fork.Tier != "namespace" || fork.Runtime != space.RuntimeAuto {
		t.Errorf("a fork: %+v, %v", fork, err)
	}
}

func TestWhatIsNotPromoted(t *testing.T) {
	s := light(t)
	why := space.Why{Code: space.WhyRequested}
	promote := func(ws id.Workspace, sp id.Space, to string) error {
		_, err := s.Spaces.Routing.Promote(s.Context(), s.Origin, ws, sp, to, why)
		return err
	}
	auto, fixed := s.Space(), s.SpaceOf(spaces.Request{Runtime: "nano"})
	gone := s.SpaceOf(spaces.Request{})
	if _, err := s.Spaces.Ending.Destroy(s.Context(), s.Origin, testkit.WS, gone.ID); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		err  error
		code string
	}{
		"one that was asked to be in nano": {promote(testkit.WS, fixed.ID, ""), "runtime_fixed"},
		"one that is destroyed":            {promote(testkit.WS, gone.ID, ""), "space_destroyed"},
		"one that is not there":            {promote(testkit.WS, "spc_00000000000000000000000000", ""), "space_not_found"},
		"to where nothing is":              {promote(testkit.WS, auto.ID, "mainframe"), "tier_unknown"},
	} {
		if fault.CodeOf(c.err) != c.code {
			t.Errorf("%s: got %v, want %s", name, c.err, c.code)
		}
	}
	_, leave, err := s.Spaces.Living.Occupy(s.Context(), testkit.WS, auto.ID, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := promote(testkit.WS, auto.ID, ""); !errors.Is(err, spaces.ErrBusy) {
		t.Errorf("one that is in use: %v, want %v", err, spaces.ErrBusy)
	}
	leave()
	if _, err := s.Gate.KillSwitch.Throw(s.Context(), s.Origin, testkit.WS, ""); err != nil {
		t.Fatal(err)
	}
	if err := promote(testkit.WS, auto.ID, ""); fault.CodeOf(err) != policy.ReasonKillSwitch {
		t.Errorf("while the kill switch is thrown: %v, want %s", err, policy.ReasonKillSwitch)
	}
	if n := len(promotions(t, s)); n != 0 {
		t.Errorf("%d promotions, want none", n)
	}
}

// A policy of one's own may forbid to promote; then nothing happens.
func TestAPolicyRefusesAPromotion(t *testing.T) {
	s := light(t)
	standard, err := s.Gate.Bundles.Resolve("standard", nil)
	if err != nil {
		t.Fatal(err)
	}
	own, err := policy.NewBundle("own", standard.Cedar+
		"\n@id(\"stay\")\n@reason(\"it stays\")\nforbid (principal, action == Action::\"space.promote\", resource);\n", standard.Limits)
	if err != nil {
		t.Fatal(err)
	}
	made := s.SpaceOf(spaces.Request{Bundle: &own})
	_, err = s.Spaces.Routing.Promote(s.Context(), s.Origin, testkit.WS, made.ID, "", space.Why{Code: space.WhyRequested})
	if fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "it stays") {
		t.Errorf("got %v, want a denial", err)
	}
	if now, err := s.Spaces.Catalog.Space(s.Context(), testkit.WS, made.ID); err != nil || now.Tier != space.Nano {
		t.Errorf("the space is in %s, %v", now.Tier, err)
	}
}

// A daemon that ends between the start in the heavier tier and the record of it has done nothing; one that ends right after has.
func TestACrashWhileASpaceIsPromoted(t *testing.T) {
	for _, c := range []struct {
		name  string
		at    string // the event with which the daemon dies
		death testkit.Death
		want  string
	}{
		{"before it has started", space.EventStarted, testkit.Unconfirmed, "nano"},
		{"before it is recorded", space.EventStarted, testkit.Recorded, "nano"},
		{"after it is recorded", space.EventPromoted, testkit.Unconfirmed, "namespace"},
		{"after it is known", space.EventPromoted, testkit.Recorded, "namespace"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := light(t)
			made := s.Space()
			s.Log.DieAt(func(r event.Receipt) testkit.Death {
				if slices.ContainsFunc(r.Events, func(e event.Event) bool { return e.Type == c.at }) {
					return c.death
				}
				return testkit.Survive
			})
			_, err := s.Spaces.Routing.Promote(s.Context(), s.Origin, testkit.WS, made.ID, "", space.Why{Code: space.WhyRequested})
			if confirmed := c.want == "namespace" && c.death == testkit.Recorded; (err == nil) != confirmed {
				t.Errorf("it is confirmed: %v", err)
			}
			s.Crash()
			now, err := s.Spaces.Catalog.Space(s.Context(), testkit.WS, made.ID)
			if err != nil || now.Tier != c.want {
				t.Fatalf("the space is in %s, want %s, %v", now.Tier, c.want, err)
			}
			if _, err := s.Spaces.Living.Instance(s.Context(), now); err != nil {
				t.Errorf("it does not start: %v", err)
			}
			if living := s.Options.Light.Living(); living != map[string]int{"nano": 1}[c.want] {
				t.Errorf("%d instances live in nano", living)
			}
		})
	}
}
