package codecmd

import (
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/run"
)

// TestAFlagThatATierDoesNotHeedIsNamed is about programs that chance and a clock were decided for, in tiers with and without.
func TestAFlagThatATierDoesNotHeedIsNamed(t *testing.T) {
	now := time.Now()
	heeded := run.Result{Type: run.OpShell, Seed: "7", Clock: &now}
	for _, c := range []struct {
		seed, clock string
		result      run.Result
		want        string
	}{
		{"7", "", run.Result{Type: run.OpShell}, "--seed decides nothing: the program ran in the tier namespace"},
		{"", "2026-01-02T15:04:05Z", run.Result{Type: run.OpShell}, "--clock decides nothing"},
		{"7", "2026-01-02T15:04:05Z", run.Result{Type: run.OpShell}, "--seed and --clock decide nothing"},
		{"7", "2026-01-02T15:04:05Z", heeded, ""},
		{"", "", run.Result{Type: run.OpShell}, ""},
		{"7", "", run.Result{Type: run.ResPolicyDenied}, ""},
	} {
		got := (&snippet{seed: c.seed, clock: c.clock}).undecided("namespace", c.result)
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("seed %q, clock %q, result %+v: got %q, want %q", c.seed, c.clock, c.result, got, c.want)
		}
	}
}
