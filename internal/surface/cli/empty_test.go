package cli

import (
	"bytes"
	"strings"
	"testing"

	"agentbox/internal/surface/cli/cmdline"
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
		code := Run(t.Context(), cmdline.Host{In: strings.NewReader(""), Out: &out, Err: &said, Getenv: func(string) string { return "" }}, args)
		if code != cmdline.ExitInvalid || !strings.Contains(said.String(), want) {
			t.Errorf("%s: got %d, %q and %q; want %d and %q", line, code, out.String(), said.String(), cmdline.ExitInvalid, want)
		}
	}
	for _, line := range []string{"help", "help space", "help space create", "help help"} {
		var out, said bytes.Buffer
		code := Run(t.Context(), cmdline.Host{Out: &out, Err: &said, Getenv: func(string) string { return "" }}, strings.Fields(line))
		if code != cmdline.ExitOK || !strings.Contains(out.String(), "agentbox") || said.Len() > 0 {
			t.Errorf("%s: got %d, %q and %q", line, code, out.String(), said.String())
		}
	}
}
