package agentcmd

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/client"
	"agentbox/internal/domain/id"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/lineedit"
	"agentbox/internal/surface/cli/term"
)

type hostClock struct{}

func (hostClock) Now() time.Time { return time.Now() }

func (hostClock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// chatScreen is what a chat has drawn.
type chatScreen struct {
	mu    sync.Mutex
	b     strings.Builder
	drawn chan struct{} // is closed when something is drawn
}

func (s *chatScreen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drawn != nil {
		close(s.drawn)
		s.drawn = nil
	}
	return s.b.Write(p)
}

func (s *chatScreen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// next returns what the screen has, and a channel that is closed when it has more.
func (s *chatScreen) next() (string, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drawn == nil {
		s.drawn = make(chan struct{})
	}
	return s.b.String(), s.drawn
}

// sees waits until the screen has had a text so often.
func (s *chatScreen) sees(t *testing.T, text string, times int) {
	t.Helper()
	for late := time.After(time.Minute); ; {
		had, more := s.next()
		if strings.Count(had, text) >= times {
			return
		}
		select {
		case <-more:
		case <-late:
			t.Errorf("no %q in\n%s", text, had)
			return
		}
	}
}

// questioned is a chat at a terminal, whose daemon has a question under every name.
type questioned struct {
	*attended
	screen *chatScreen
	keys   *io.PipeWriter

	mu       sync.Mutex
	approved []string
}

func questionedAtATerminal(t *testing.T) *questioned {
	t.Helper()
	q := &questioned{screen: &chatScreen{}}
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		approval, status := strings.Split(r.URL.Path, "/")[3], "pending"
		q.mu.Lock()
		defer q.mu.Unlock()
		if r.Method == http.MethodPost {
			q.approved = append(q.approved, approval)
		}
		if slices.Contains(q.approved, approval) {
			status = "approved"
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"approval_id": approval, "status": status, "title": "title of " + approval,
			"action_sha256": "sha256:" + strings.Repeat("a", 64)})
	}))
	t.Cleanup(daemon.Close)
	in, keys := io.Pipe()
	t.Cleanup(func() { _ = keys.Close() })
	i := &cmdline.Invocation{Host: cmdline.Host{
		In: in, Out: q.screen, Err: q.screen, Terminal: true, Asks: true, Width: 100, Clock: hostClock{},
		Getenv: func(name string) string { return map[string]string{"NO_COLOR": "1"}[name] },
		Screen: func() (int, int) { return 100, 40 }, Edit: func() (func(), error) { return func() {}, nil },
	}}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	editor, _, err := lineedit.Open(ctx, i, "h", nil)
	if err != nil || editor == nil {
		t.Fatal(err)
	}
	p := &term.Printer{Out: q.screen}
	c := &chat{i: i, api: client.New(daemon.URL, "abk_x"), out: p, err: p, ask: true, editor: editor, interrupts: make(chan struct{}, 1),
		typing: make(chan struct{}, 1)}
	q.keys = keys
	q.attended = &attended{chat: c, draw: &term.Markdown{P: p}, asked: map[id.Approval]bool{}, asks: map[string]id.Approval{}}
	q.watch()
	return q
}

// answers are the questions that were answered, in order.
func (q *questioned) answers() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.approved)
}

// types presses keys.
func (q *questioned) types(t *testing.T, keys string) {
	t.Helper()
	if _, err := q.keys.Write([]byte(keys)); err != nil {
		t.Error(err)
	}
}

// leaves shows a question, and leaves it open.
func (q *questioned) leaves(t *testing.T, approval id.Approval) {
	t.Helper()
	before := strings.Count(q.screen.String(), "Allow it?")
	go func() {
		q.screen.sees(t, "Allow it?", before+1)
		q.types(t, "l\r")
	}()
	if err := q.question(t.Context(), approval); err != nil {
		t.Fatal(err)
	}
}

// hears takes the line that the person begins to type; false where none comes.
func (q *questioned) hears(t *testing.T) bool {
	t.Helper()
	select {
	case <-q.typing:
		q.listen(t.Context(), make(chan framed), nil)
		return true
	case <-time.After(300 * time.Millisecond):
		return false
	}
}

// TestAnAnswerIsToTheQuestionThatWasShown leaves two questions open. An answer counts only for the question that the person saw last.
func TestAnAnswerIsToTheQuestionThatWasShown(t *testing.T) {
	q := questionedAtATerminal(t)
	q.leaves(t, "appr_A")
	q.leaves(t, "appr_B")
	q.types(t, "y\r")
	if !q.hears(t) || len(q.answers()) != 0 {
		t.Fatalf("approved %v\n%s", q.answers(), q.screen)
	}
	q.screen.sees(t, "of 2 open questions this one is the first", 1)
	for _, want := range [][]string{{"appr_A"}, {"appr_A"}, {"appr_A", "appr_B"}} { // the second answer only shows B again
		q.types(t, "y\r")
		if !q.hears(t) || !slices.Equal(q.answers(), want) {
			t.Fatalf("approved %v, want %v\n%s", q.answers(), want, q.screen)
		}
	}
}

// TestWhatWasTypedBeforeAQuestionAnswersNone types a yes to the agent's words, before a question appears that is left open.
func TestWhatWasTypedBeforeAQuestionAnswersNone(t *testing.T) {
	q := questionedAtATerminal(t)
	q.types(t, "yes\r")
	<-q.typing
	q.leaves(t, "appr_A")
	q.screen.sees(t, "does not answer it", 1)
	if q.hears(t) || len(q.answers()) != 0 {
		t.Fatalf("approved %v\n%s", q.answers(), q.screen)
	}
	for keys, want := range map[string]string{"yes\rgo on\ry": "go on\r", "": "", "a\n": "", "yes, please\r": "yes, please\r"} {
		if kept, dropped := withoutReplies([]byte(keys)); string(kept) != want || dropped != (want != keys) {
			t.Errorf("%q: got %q, %t, want %q", keys, kept, dropped, want)
		}
	}
}

// TestWhoLeavesWithLinesStaysWhereTheTaskFails: the lines are at the prompt again, without keys that would change them.
func TestWhoLeavesWithLinesStaysWhereTheTaskFails(t *testing.T) {
	q := questionedAtATerminal(t)
	q.later = []string{"one\x15 \x04line"}
	q.typed(t.Context(), "", io.EOF)
	q.leaveKeys()
	q.failed = true
	q.unheard(t.Context())
	if q.leaving || len(q.later) != 0 || string(q.editor.Keys.Take()) != "one   line" {
		t.Errorf("leaving %t, later %q\n%s", q.leaving, q.later, q.screen)
	}
}

// TestTheKeyThatLeavesCountsOnce presses Ctrl-D while the agent works, and types a line after it.
func TestTheKeyThatLeavesCountsOnce(t *testing.T) {
	q := questionedAtATerminal(t)
	q.types(t, "\x04")
	if !q.hears(t) || !q.leaving {
		t.Fatalf("leaving %t\n%s", q.leaving, q.screen)
	}
	q.types(t, "/rewind\r")
	if !q.hears(t) || !slices.Equal(q.later, []string{"/rewind"}) || strings.Count(q.screen.String(), "(you leave when") != 1 {
		t.Fatalf("later %q\n%s", q.later, q.screen)
	}
	if q.hears(t) {
		t.Errorf("it listens although nobody types\n%s", q.screen)
	}
}
