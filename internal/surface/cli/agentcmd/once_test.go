package agentcmd

import (
	"regexp"
	"strings"
	"testing"

	"agentbox/internal/domain/run"
)

// erased matches a line that was removed from the terminal.
var erased = regexp.MustCompile(`[^\n]*\r\x1b\[K`)

// TestACallThatAskedIsDrawnOnce draws the frames of a call about which a person is asked, or was asked before. The terminal has its line
// once: the question stands in its place until the result is there.
func TestACallThatAskedIsDrawnOnce(t *testing.T) {
	exit, yes := 0, true
	twenty := strings.Repeat("x", 20) // with the rest of the line 32 bytes
	for name, c := range map[string]struct {
		summary  string
		width    int
		answered bool
		want     int
	}{
		"a question that waits":          {"rm -r a", 100, false, 1},
		"one that was answered":          {"rm -r a", 100, true, 1},
		"a line as wide as the terminal": {twenty, 32, false, 2},
		"one column less":                {twenty, 33, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			q := questionedAtATerminal(t)
			q.err.Width, q.blind = c.width, true
			if c.answered {
				q.approved = []string{"appr_A"}
			} else {
				go func() {
					q.screen.sees(t, "Allow it?", 1)
					q.types(t, "y\r")
				}()
			}
			for _, f := range framesOf(t, run.Outline{ID: "tc_1", Type: "shell", Summary: c.summary},
				run.Result{Type: run.ResApprovalRequired, OperationID: "tc_1", ApprovalID: "appr_A"},
				run.Result{Type: "shell", OperationID: "tc_1", ExitCode: &exit, Success: &yes}) {
				if err := q.frame(t.Context(), f); err != nil {
					t.Fatal(err)
				}
			}
			drawn := erased.ReplaceAllString(q.screen.String(), "")
			if n := strings.Count(drawn, "▸ shell "+c.summary); n != c.want {
				t.Errorf("the call is drawn %d times, want %d\n%q", n, c.want, drawn)
			}
			if line := "▸ shell " + c.summary + "  ✓ exit 0\n"; !strings.Contains(drawn, line) {
				t.Errorf("no %q in\n%s", line, drawn)
			}
		})
	}
}

// TestAQuestionOfTheAgentSaysHowToAnswer draws the call of ask_person: at a terminal, and where no person types.
func TestAQuestionOfTheAgentSaysHowToAnswer(t *testing.T) {
	for name, want := range map[string]string{
		"a terminal": "  ▸ ask_person Which colour?\n  the agent waits for your answer: type it\n",
		"a pipe": "  ▸ ask_person Which colour?\n  the agent waits for an answer: a line /steer ANSWER, or agentbox agent steer run_1 " +
			"ANSWER\n",
	} {
		q := questionedAtATerminal(t)
		q.run.ID, q.blind = "run_1", true
		if name == "a pipe" {
			q.editor = nil
		}
		ask := run.Outline{ID: "tc_1", Type: "ask_person", Summary: "Which colour?"}
		for _, f := range framesOf(t, ask, ask) { // the call goes on after a crash
			if err := q.frame(t.Context(), f); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.TrimPrefix(q.screen.String(), "\x1b[?2004h"); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
