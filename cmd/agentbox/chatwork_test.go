package main_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// chatTerminal is a person at a terminal who talks with an agent whose model says the answers. The first request waits for the channel, if
// it is not nil.
func chatTerminal(t *testing.T, answers [][]vendorItem, until chan struct{}) (x *terminal, asked chan struct{}) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AGENTBOX_CACHE", cache())
	t.Setenv("NO_COLOR", "1")
	vendor := newVendor(answers, "Last: $LAST")
	asked = make(chan struct{})
	if until != nil {
		var requests atomic.Int64
		serve := vendor.Config.Handler
		vendor.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1) == 1 {
				close(asked)
				select {
				case <-until:
				case <-r.Context().Done():
				}
			}
			serve.ServeHTTP(w, r)
		})
	}
	t.Cleanup(func() {
		vendor.CloseClientConnections()
		vendor.Close()
	})
	c := worker(t, vendor.URL)
	x = openTerminal(t, 120, 40, "chat", "--data", c.dir)
	x.sees("worker> ")
	return x, asked
}

// does presses keys, and wants texts on the terminal, one behind the other.
func (x *terminal) does(steps ...[]string) {
	x.t.Helper()
	for _, step := range steps {
		x.press(step[0])
		for _, text := range step[1:] {
			x.sees(text)
		}
	}
}

// TestAQuestionThatIsLeftOpenIsAnsweredLater leaves a question open. Other lines go to the agent meanwhile, commands work, and y answers
// the question.
func TestAQuestionThatIsLeftOpenIsAnsweredLater(t *testing.T) {
	x, _ := chatTerminal(t, [][]vendorItem{
		{{Say: "I write."}, {Tool: "shell", Arguments: []byte(`{"command": "echo hello > a.txt"}`)}},
		{{Say: "Done: $LAST"}},
		{{Tool: "shell", Arguments: []byte(`{"command": "rm -r a.txt"}`)}},
		{{Say: "Heard: $LAST"}},
	}, nil)
	x.does(
		[]string{"first task\r", "(while the agent works, a line that you type goes to it; Ctrl-C or /stop stops it)", "Done: first task",
			"worker> "},
		[]string{"second task\r", "run a command: rm -r a.txt", "exactly  command: \"rm -r a.txt\"", "space spc_", "room default", "why",
			"all agents of the room default", "take it back: agentbox approvals revoke appr_",
			"Allow it? [y]es, [a]lways for all agents in room default, [n]o, [l]ater, [d]etails: "},
		[]string{"d\r", "policy_bundle: ", "Allow it? "},
		[]string{"what\r", "the answers are y, a, n, d and l", "Allow it? "},
		[]string{"l\r", "The question stays open", "Type y, n, a or d"},
		[]string{"use python\r", "[y, n, a or d answers: run a command: rm -r a.txt; else to the agent at work] ", "use python"},
		[]string{"/files\r", "6 B  a.txt"},
		[]string{"/rewind\r", "/rewind waits until the agent is done"},
		[]string{"/bogus\r", "/bogus is no command"},
		[]string{"y\r", "answered: run a command: rm -r a.txt", "✓ exit 0", "Heard: use python", "> /rewind", "1 task taken back",
			"worker> "},
		[]string{"\x04", "go on: agentbox chat --resume run_"},
	)
	x.left()
	if n := strings.Count(x.seen, "while the agent works, a line"); n != 1 {
		t.Errorf("it said %d times how to stop, want once", n)
	}
}

// TestLinesToAnAgentAtWorkAreNotLost types while the only turn of an agent is under way. The line comes too late for it, so it is the next
// message. A line that is dropped is not sent, and stops nothing.
func TestLinesToAnAgentAtWorkAreNotLost(t *testing.T) {
	release := make(chan struct{})
	x, asked := chatTerminal(t, [][]vendorItem{{{Say: "Done: $LAST"}}}, release)
	x.does([]string{"first task\r", "(while the agent works"})
	<-asked
	x.does(
		[]string{"dropped", "[you, to the agent at work] dropped"},
		[]string{"\x03"},
		[]string{"more \\\r", "[you, to the agent at work] ", ". "},
		[]string{"words\r"},
		[]string{"/files\r", "the space has no files"},
	)
	close(release)
	x.does(
		[]string{"", "Done: first task", "the agent was done before it read your last words", "> more", "Last: more", "words", "worker> "},
		[]string{"\x04", "go on: agentbox chat --resume run_"},
	)
	x.left()
	if strings.Contains(x.seen, "Last: dropped") || strings.Contains(x.seen, "stopped") {
		t.Errorf("a dropped line was sent, or it stopped the agent:\n%s", x.seen)
	}
}

// TestWhatWasTypedBeforeAStopIsAtThePromptAgain stops an agent that has not read the last words.
func TestWhatWasTypedBeforeAStopIsAtThePromptAgain(t *testing.T) {
	x, _ := chatTerminal(t, [][]vendorItem{{{Say: "I think of "}, {Hold: "long one"}, {Say: "this: $LAST"}}}, nil)
	x.does(
		[]string{"a long one\r", "I think of "},
		[]string{"and two\\\r", "[you, to the agent at work] "},
		[]string{"more\r", "more"},
		[]string{"/stop\r", "stopped; say how to go on", "at the prompt again", "worker> and two\\", ". more"},
		[]string{"\r", "this: a long one", "and two", "more", "worker> "},
		[]string{"\x04", "go on: "},
	)
	x.left()
}

// TestUsesOfAStandingApprovalAreSaid allows a command always. Its next call is not asked about, and a line says why.
func TestUsesOfAStandingApprovalAreSaid(t *testing.T) {
	remove := []vendorItem{{Tool: "shell", Arguments: []byte(`{"command": "rm -r a.txt", "timeout": 20000}`)}}
	x, _ := chatTerminal(t, [][]vendorItem{remove, {{Say: "One."}}, remove, {{Say: "Two."}}}, nil)
	x.does(
		[]string{"first\r", "Allow it? "},
		[]string{"a\r", "allowed for all agents of the room default until ", "take it back: agentbox approvals revoke appr_", "One.", "worker> "},
		[]string{"second\r", "✗ exit 1", "standing approval, use 1 of 100; end it: agentbox approvals revoke appr_", "Two.", "worker> "},
		[]string{"/tools\r", "▸ shell command=\"rm -r a.txt\" timeout=20000", "✗ exit 1", "worker> "},
		[]string{"\x04", "go on: "},
	)
	x.left()
	if n := strings.Count(x.seen, "standing approval, use"); n != 1 {
		t.Errorf("it said %d times that a standing approval was used, want once", n)
	}
}
