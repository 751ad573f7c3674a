package awk_test

import (
	"strings"
	"testing"

	"agentbox/internal/userland/shelltest"
)

// TestWhatIsGawksIsSaidToBe runs programs that only gawk knows: the message says so, and the tier learns that a heavier one can run them.
func TestWhatIsGawksIsSaidToBe(t *testing.T) {
	for script, want := range map[string]string{
		`awk '@load "time"; BEGIN { }'`: "lines of @load",
		`awk '@include "x"; BEGIN { }'`: "lines of @include",
	} {
		r := shelltest.Execute(programs(), shelltest.Limits, script)
		if r.Code != 2 || len(r.Lacks) != 1 || r.Lacks[0].Detail != want || !strings.Contains(r.Err,
			want+" are gawk's, and not supported in a nano space") {
			t.Errorf("%s: got %d, %v, %q; want %s", script, r.Code, r.Lacks, r.Err, want)
		}
	}
}
