package gate_test

import (
	"strings"
	"testing"
)

// TestTheQuestionSaysWhatLeavesTheSpace asks about two commands that remove a folder. The question about the one that
// moves it away says so.
func TestTheQuestionSaysWhatLeavesTheSpace(t *testing.T) {
	h := build(t, nil)
	for command, want := range map[string]bool{"mv folder /tmp/gone": true, "rm -r folder": false} {
		_, q := h.asked(h.shell("standard", command))
		if got := strings.Contains(q.Question.Impact, "It moves files out of the space"); got != want {
			t.Errorf("%s: the impact is %q", command, q.Question.Impact)
		}
	}
}
