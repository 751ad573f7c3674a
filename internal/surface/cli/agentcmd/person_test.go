package agentcmd

import (
	"errors"
	"io"
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
		"two": {"l\ny\ny\ny\ny\n", []id.Approval{"appr_A", "appr_B"}, []string{"appr_A", "appr_B"},
			[]string{"Another question is open already", "approve appr_B", "of 2 open questions this one is the first",
				"of 1 open questions this one is the first", "(answered: title of appr_B)"}, waits},
		"one line for two":  {"l\ny\n", []id.Approval{"appr_A", "appr_B"}, nil, []string{"the answer was not sent"}, "(answered: "},
		"each at once":      {"y\ny\n", []id.Approval{"appr_A", "appr_B"}, []string{"appr_A", "appr_B"}, nil, stays},
		"two without input": {"", []id.Approval{"appr_A", "appr_B"}, nil, []string{waits + "appr_A, or deny", waits + "appr_B, or deny"}, stays},
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

// asks returns a person at a terminal or another input, without an input that is read: the test gives the lines.
func (q *questioned) asks(screen *chatScreen, terminal bool, lines <-chan string) *person {
	i := &cmdline.Invocation{Host: cmdline.Host{In: strings.NewReader(""), Out: screen, Err: screen, Asks: terminal, Clock: hostClock{}}}
	w := &person{i: i, api: q.api, p: &term.Printer{Out: screen}, run: ownRun, lines: lines, stop: func() {}}
	i.Answers = func(string) (string, error) {
		select {
		case line := <-w.lines:
			return line, nil
		default:
			return "", io.EOF
		}
	}
	return w
}

// TestALineForOneQuestionAnswersNoOther has a line in hand that was typed for a question that is open, when another question comes.
func TestALineForOneQuestionAnswersNoOther(t *testing.T) {
	for name, c := range map[string]struct {
		terminal bool
		says     string
	}{
		"at a terminal":         {true, "(what you typed before the question was shown does not answer it)"},
		"the lines of a script": {false, "(the answer was not sent: of 2 open questions this one is the first)"},
	} {
		t.Run(name, func(t *testing.T) {
			q, screen, lines := questionedAtATerminal(t), &chatScreen{}, make(chan string, 2)
			w := q.asks(screen, c.terminal, lines)
			first, err := w.i.Asked(t.Context(), w.api, "appr_A")
			if err != nil {
				t.Fatal(err)
			}
			w.left, w.current = append(w.left, first), first.ID
			lines <- "y"
			if err := w.answer(t.Context(), "appr_B"); err != nil {
				t.Fatal(err)
			}
			if len(lines) > 0 {
				w.take(t.Context(), <-w.replies(), true)
			}
			if got := q.answers(); len(got) != 0 || !strings.Contains(screen.String(), c.says) || len(w.left) != 2 {
				t.Fatalf("approved %v, %d open\n%s", got, len(w.left), screen)
			}
			for range 4 {
				if lines <- "y"; len(w.left) > 0 {
					w.take(t.Context(), <-w.replies(), true)
				}
			}
			if got := q.answers(); !slices.Equal(got, []string{"appr_A", "appr_B"}) {
				t.Errorf("approved %v\n%s", got, screen)
			}
		})
	}
}

// TestALineBeforeTheFirstQuestion types a line before any question is shown. At a terminal it answers none; the lines of a script are the
// answers to the questions, whenever they come.
func TestALineBeforeTheFirstQuestion(t *testing.T) {
	for name, c := range map[string]struct {
		terminal, read bool // the program has read the line already
		forget         error
		want           []string
		says           string
	}{
		"a script":                      {false, true, nil, []string{"appr_A"}, "Allow it?"},
		"a terminal, and it was read":   {true, true, nil, nil, "does not answer it"},
		"a terminal":                    {true, false, nil, nil, "Allow it?"},
		"a terminal that does not work": {true, false, errors.New("no terminal"), nil, "waits until a person says"},
	} {
		t.Run(name, func(t *testing.T) {
			q, screen := questionedAtATerminal(t), &chatScreen{}
			w := &person{api: q.api, p: &term.Printer{Out: screen}, run: ownRun}
			typed := strings.NewReader("yes\n")
			w.i = &cmdline.Invocation{Host: cmdline.Host{In: typed, Out: screen, Err: screen, Asks: c.terminal, Clock: hostClock{}}}
			w.i.Forget = func() error {
				if c.forget == nil {
					typed.Reset("")
				}
				return c.forget
			}
			if c.read && c.terminal {
				lines := make(chan string, 1)
				lines <- "yes"
				typed.Reset("")
				w = q.asks(screen, true, lines)
			}
			defer w.leave()
			if err := w.answer(t.Context(), "appr_A"); err != nil {
				t.Fatal(err)
			}
			if got := q.answers(); !slices.Equal(got, c.want) {
				t.Errorf("approved %v, want %v\n%s", got, c.want, screen)
			}
			if !strings.Contains(screen.String(), c.says) {
				t.Errorf("it does not say %q:\n%s", c.says, screen)
			}
		})
	}
}

// TestAQuestionThatIsAnsweredElsewhereEnds has somebody answer in another terminal while a question is shown. The prompt ends without an
// answer, and what was typed of one is dropped.
func TestAQuestionThatIsAnsweredElsewhereEnds(t *testing.T) {
	t.Parallel()
	elsewhere := func(q *questioned, screen *chatScreen) {
		screen.sees(t, "Allow it?", 1)
		q.mu.Lock()
		defer q.mu.Unlock()
		q.approved = append(q.approved, "appr_A")
	}
	q := questionedAtATerminal(t) // a chat
	go func() {
		q.screen.sees(t, "Allow it?", 1)
		q.types(t, "y")
		elsewhere(q, q.screen)
	}()
	if err := q.question(t.Context(), "appr_A"); err != nil {
		t.Fatal(err)
	}
	if got := q.answers(); len(got) != 1 || !strings.Contains(q.screen.String(), "(appr_A was answered already)") || q.hears(t) {
		t.Errorf("approved %v\n%s", got, q.screen)
	}
	q.types(t, "y\r") // too late
	if !q.hears(t) || len(q.later) != 0 || !strings.Contains(q.screen.String(), "(the question was answered already; type it again") {
		t.Errorf("later %q\n%s", q.later, q.screen)
	}
	q.leaveKeys()
	q.late = true
	go func() { // at the prompt
		q.types(t, "n\r")
		q.types(t, "n\r")
	}()
	if text, err := q.message(t.Context()); text != "n" || err != nil || strings.Count(q.screen.String(), "type it again") != 2 {
		t.Errorf("got %q, %v\n%s", text, err, q.screen)
	}
	q, screen := questionedAtATerminal(t), &chatScreen{} // a command
	in, keys := io.Pipe()
	defer keys.Close()
	w := &person{api: q.api, p: &term.Printer{Out: screen}, run: ownRun, i: &cmdline.Invocation{Host: cmdline.Host{In: in, Out: screen,
		Err: screen, Asks: true, Clock: hostClock{}}}}
	defer w.leave()
	go elsewhere(q, screen)
	if err := w.answer(t.Context(), "appr_A"); err != nil {
		t.Fatal(err)
	}
	if got := q.answers(); len(got) != 1 || !strings.Contains(screen.String(), "(appr_A was answered already)") {
		t.Errorf("approved %v\n%s", got, screen)
	}
}
