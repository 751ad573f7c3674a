package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/run"
)

// TestWhatIsNoneIsRefused calls commands with an argument, a number or a word that means nothing: none of them reaches a daemon.
func TestWhatIsNoneIsRefused(t *testing.T) {
	for line, want := range map[string]string{
		"approvals approve|":           "approvals approve: APPROVAL is empty",
		"approvals deny| ":             "approvals deny: APPROVAL is empty",
		"approvals show|":              "approvals show: APPROVAL is empty",
		"approvals withdraw|":          "approvals withdraw: APPROVAL is empty",
		"runs show|":                   "runs show: RUN is empty",
		"space destroy|":               "space rm: SPACE is empty",
		"events --limit -1":            "events: --limit is -1; it is 1 at least",
		"events --limit 0":             "events: --limit is 0; it is 1 at least",
		"runs list --limit -5":         "runs list: --limit is -5; it is 1 at least",
		"help nope":                    "there is no command agentbox nope",
		"help space nope":              "there is no command agentbox space nope",
		"exec -r bash -c true --seed|": "--seed is empty",
	} {
		words, last, more := strings.Cut(line, "|")
		args := strings.Fields(words)
		if more {
			args = append(args, last)
		}
		var out, said bytes.Buffer
		code := Run(t.Context(), Host{In: strings.NewReader(""), Out: &out, Err: &said, Getenv: func(string) string { return "" }}, args)
		if code != ExitInvalid || !strings.Contains(said.String(), want) {
			t.Errorf("%s: got %d, %q and %q; want %d and %q", line, code, out.String(), said.String(), ExitInvalid, want)
		}
	}
	for _, line := range []string{"help", "help space", "help space create", "help help"} {
		var out, said bytes.Buffer
		code := Run(t.Context(), Host{Out: &out, Err: &said, Getenv: func(string) string { return "" }}, strings.Fields(line))
		if code != ExitOK || !strings.Contains(out.String(), "agentbox") || said.Len() > 0 {
			t.Errorf("%s: got %d, %q and %q", line, code, out.String(), said.String())
		}
	}
}

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
