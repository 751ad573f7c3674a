package tools_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/fault"
	"agentbox/internal/service/tools"
)

// TestTheArgumentsOfCapsules holds the edges of the arguments, each beside what fits.
func TestTheArgumentsOfCapsules(t *testing.T) {
	for tool, cases := range map[string]map[string]string{
		tools.CapsuleWriteTool: {
			`{"capsule":"risk","text":"x"}`: "", `{"capsule":"manifest","text":"x"}`: "capsule is one of status, plan, decision, risk",
			`{"text":"x"}`: `risk, not ""`, `{"capsule":"plan","text":" \n"}`: "text is missing",
		},
		tools.CapsuleReadTool: {
			`{"from":"parent"}`: "", `{"from":"cousins"}`: "from is one of parent, ancestors, children, siblings",
			`{"from":"parent","number":1000}`: "", `{"from":"parent","number":1001}`: "number is 1 to 1000",
			`{"from":"parent","number":-1}`: "number is 1 to 1000", `{"from":"parent","capsule":"thought"}`: "capsule is one of status",
		},
		tools.ArtifactReadTool: {
			`{"from":"parent","artifact":"` + strings.Repeat("\u00e9", 255) + `"}`: "",
			`{"from":"parent","artifact":"` + strings.Repeat("\u00e9", 256) + `"}`: "artifact is missing",
			`{"from":"parent"}`:                                 "artifact is missing",
			`{"from":"parent","artifact":"a","offset":-1}`:      "offset is at least 0",
			`{"from":"parent","artifact":"a","length":-1}`:      "length at least 1",
			`{"from":"parent","artifact":"a","number":1001}`:    "number is 1 to 1000",
			`{"from":"me","artifact":"a"}`:                      "from is one of",
			`{"from":"parent","artifact":"a","run_id":"run_1"}`: "unknown field",
		},
	} {
		for arguments, want := range cases {
			_, err := tools.Prepare(tool, json.RawMessage(arguments))
			if got := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(got, want) ||
				err != nil && fault.KindOf(err) != fault.Invalid {
				t.Errorf("%s of %.60s: got %v, want %q", tool, arguments, err, want)
			}
		}
	}
	if a, err := tools.ReadArtifactRead(json.RawMessage(`{"from":"parent","artifact":"a"}`)); err != nil || a.Number != 1 {
		t.Errorf("without a number: %+v, %v", a, err)
	}
}

// TestWhatIsShownOfCapsules shows capsules under budgets: the newest of each type, and the newest decisions, the oldest of these first.
func TestWhatIsShownOfCapsules(t *testing.T) {
	long := strings.Repeat("\u00e9", 7)
	short := "  \u00e9\u00e9\u00e9\u00e9\n  [1 of 7 characters are left out here. You are shown no more of it.]\n  \u00e9\u00e9\n"
	all := blueprint.CapsuleTypes()
	for name, c := range map[string]struct {
		shown []string
		found [][2]string // type and text, the newest first
		want  string
	}{
		"nothing":    {all, nil, ""},
		"not shown":  {[]string{"plan"}, [][2]string{{"status", "s"}}, ""},
		"the newest": {all, [][2]string{{"plan", "new\n"}, {"status", "s"}, {"plan", "old"}}, "status:\n  s\nplan:\n  new\n"},
		"the order":  {all, [][2]string{{"decision", "d"}, {"risk", "r"}, {"plan", "p"}}, "plan:\n  p\nrisk:\n  r\ndecision 1:\n  d\n"},
		"its lines":  {all, [][2]string{{"plan", "a\n\nb:"}}, "plan:\n  a\n  \n  b:\n"},
		"just fits":  {all, [][2]string{{"plan", long[:12]}}, "plan:\n  " + long[:12] + "\n"},
		"too long":   {all, [][2]string{{"plan", long}}, "plan:\n" + short},
		"decisions that fit": {all, [][2]string{{"decision", "ccc"}, {"plan", "p"}, {"decision", "bb"}, {"decision", "\u00e9"}},
			"plan:\n  p\ndecision 1:\n  \u00e9\ndecision 2:\n  bb\ndecision 3:\n  ccc\n"},
		"one decision too many": {all, [][2]string{{"decision", "ccc"}, {"decision", "bbb"}, {"decision", "a"}, {"decision", "0"}},
			"2 older decisions are left out\ndecision 3:\n  bbb\ndecision 4:\n  ccc\n"},
		"a long decision": {all, [][2]string{{"decision", long}, {"decision", "b"}},
			"1 older decisions are left out\ndecision 2:\n" + short},
	} {
		var types []string
		for _, one := range c.found {
			types = append(types, one[0])
		}
		budgets := blueprint.Context{Status: 6, Plan: 6, Decision: 6, Manifest: 6}
		got, err := tools.Capsules(budgets, c.shown, types, func(i int) (string, error) { return c.found[i][1], nil })
		if err != nil || got != c.want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
	}
	gone := errors.New("gone")
	for _, typ := range []string{"plan", "decision"} {
		lost := func(int) (string, error) { return "", gone }
		if _, err := tools.Capsules(blueprint.Context{}, all, []string{typ}, lost); !errors.Is(err, gone) {
			t.Errorf("a %s that cannot be read: %v", typ, err)
		}
	}
}

// TestTheListOfArtifactsHasABudget leaves out the oldest lines, and counts them.
func TestTheListOfArtifactsHasABudget(t *testing.T) {
	lines := []string{"a\n", "bb\n", "\u00e9\u00e9\u00e9\n"}
	for budget, want := range map[int]string{
		9: "a\nbb\n\u00e9\u00e9\u00e9\n",
		8: "bb\n\u00e9\u00e9\u00e9\n1 older artifacts are left out\n",
		6: "\u00e9\u00e9\u00e9\n2 older artifacts are left out\n",
		3: "3 older artifacts are left out\n",
	} {
		if got := tools.Manifest(slices.Clone(lines), budget); got != want {
			t.Errorf("%d characters: got %q, want %q", budget, got, want)
		}
	}
	if got := tools.Manifest(nil, 100); got != "" {
		t.Errorf("no artifacts: %q", got)
	}
}
