package shellcmd

import (
	"strings"
	"testing"

	"agentbox/internal/domain/policy"
)

func TestALineThatIsAskedAbout(t *testing.T) {
	c := carried{top: "/w", folder: "/tmp", code: 3, first: map[string]string{"A": "1"}, now: map[string]string{}}
	const line = "rm -r x\necho 'a\nb'"
	op, _, err := c.operation(line, strings.NewReader(strings.Repeat("x", 16)))
	if err != nil {
		t.Fatal(err)
	}
	canonical, err := policy.Action{Type: policy.ShellExec, Workspace: "ws_1", Principal: "usr_1", Command: op.Command,
		Argv: []string{"/bin/bash", "-c", op.Command}}.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	what, err := policy.Render(canonical)
	if err != nil {
		t.Fatal(err)
	}
	a := policy.Approval{ID: "appr_1", Title: "run a command: cd -- /tmp || exit"}
	a.Question.What = what
	got := lineAsked(a, op.Command, line)
	if got.Title != `run a command: rm -r x\necho 'a\nb'` {
		t.Errorf("the title is %q", got.Title)
	}
	for _, text := range []string{"  | rm -r x\n  | echo 'a\n  | b'\n", "argv[0]", "agentbox approvals show appr_1"} {
		if !strings.Contains(got.Question.What, text) {
			t.Errorf("it does not show %q:\n%s", text, got.Question.What)
		}
	}
	for _, text := range []string{"cd --", "unset", "(exit 3)", "here="} {
		if !strings.Contains(what, text) || strings.Contains(got.Question.What, text) {
			t.Errorf("it shows %q:\n%s", text, got.Question.What)
		}
	}
	other := a
	other.Question.What = "command: \"something else\"\n"
	if got := lineAsked(other, op.Command, line); got.Title != other.Title || got.Question.What != other.Question.What {
		t.Errorf("a question about something else became %q", got.Question.What)
	}
}
