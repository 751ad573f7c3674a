package agentcmd

import (
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/id"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// TestALineAnswersAQuestionThatWasLeftOpen gives a command that follows a run its input: the answers to questions, and lines after them.
func TestALineAnswersAQuestionThatWasLeftOpen(t *testing.T) {
	const stays, waits = "The question stays open", "  waits until a person says: agentbox approvals approve "
	for name, c := range map[string]struct {
		input    string
		asked    []id.Approval
		approved []string
		says     []string
		never    string
	}{
		"at once": {"y\n", []id.Approval{"appr_A"}, []string{"appr_A"}, nil, stays},
		"later":   {"l\ny\n", []id.Approval{"appr_A"}, []string{"appr_A"}, []string{stays, "(answered: title of appr_A)"}, waits},
		"after a detail": {"l\nd\n\nl\nyes\n", []id.Approval{"appr_A"}, []string{"appr_A"},
			[]string{stays, "(the question is still open"}, waits},
		"after other text": {"l\nwhat\ny\n", []id.Approval{"appr_A"}, []string{"appr_A"}, []string{"agentbox agent steer run_own TEXT"}, waits},
		"never":            {"l\n", []id.Approval{"appr_A"}, nil, []string{stays}, waits},
		"no input":         {"", []id.Approval{"appr_A"}, nil, []string{waits + "appr_A, or deny"}, stays},
		"two": {"l\nl\ny\ny\ny\ny\n", []id.Approval{"appr_A", "appr_B"}, []string{"appr_A", "appr_B"},
			[]string{"of 2 open questions this one is the first", "(answered: title of appr_B)"}, waits},
		"the first of two": {"l\ny\ny\ny\n", []id.Approval{"appr_A", "appr_B"}, []string{"appr_B", "appr_A"},
			[]string{"of 1 open questions this one is the first", "(answered: title of appr_A)"}, waits},
	} {
		t.Run(name, func(t *testing.T) {
			q, screen := questionedAtATerminal(t), &chatScreen{}
			i := &cmdline.Invocation{Host: cmdline.Host{In: strings.NewReader(c.input), Out: screen, Err: screen, Clock: hostClock{}}}
			w := &person{i: i, api: q.api, p: &term.Printer{Out: screen}, run: ownRun}
			for _, approval := range c.asked {
				if err := w.answer(t.Context(), approval); err != nil {
					t.Fatal(err)
				}
			}
			for w.replies() != nil {
				line, more := <-w.replies()
				w.take(t.Context(), line, more)
			}
			w.leave()
			if got := q.answers(); !slices.Equal(got, c.approved) {
				t.Errorf("approved %v, want %v\n%s", got, c.approved, screen)
			}
			for _, text := range c.says {
				if !strings.Contains(screen.String(), text) {
					t.Errorf("it does not say %q:\n%s", text, screen)
				}
			}
			if strings.Contains(screen.String(), c.never) {
				t.Errorf("it says %q:\n%s", c.never, screen)
			}
			if i.Answers != nil {
				t.Error("another question would read the lines of this one")
			}
		})
	}
}

// TestAnAnswerElsewhereIsNoticed leaves a question open that somebody else answers.
func TestAnAnswerElsewhereIsNoticed(t *testing.T) {
	q, screen := questionedAtATerminal(t), &chatScreen{}
	i := &cmdline.Invocation{Host: cmdline.Host{In: strings.NewReader("l\ny\n"), Out: screen, Err: screen, Clock: hostClock{}}}
	w := &person{i: i, api: q.api, p: &term.Printer{Out: screen}, run: ownRun}
	defer w.leave()
	if err := w.answer(t.Context(), "appr_A"); err != nil {
		t.Fatal(err)
	}
	q.mu.Lock()
	q.approved = []string{"appr_A"}
	q.mu.Unlock()
	w.take(t.Context(), <-w.replies(), true)
	if len(q.answers()) != 1 || !strings.Contains(screen.String(), "(appr_A was answered already)") || w.replies() != nil {
		t.Errorf("approved %v\n%s", q.answers(), screen)
	}
}
