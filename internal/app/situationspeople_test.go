package app_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/model"
	"agentbox/internal/service/agents"
)

const (
	removes = `{"command":"rm -r a"}`
	waits   = `{"command":"echo > begun; sleep 600"}`
	works   = `{"command":"echo > begun; while [ ! -e go ]; do sleep 0.02; done"}`
)

// peopleSituations are about what people do while an agent works.
func peopleSituations() []situation {
	return []situation{
		{name: "asked-and-approved", scenes: then(does("createFile", writesA), does("shell", removes)), end: "Three.", told: "exit code: 0",
			during: func(x *stage) { x.decide("approve") }},
		{name: "asked-and-denied", scenes: then(does("createFile", writesA), does("shell", removes)), end: "Three.", told: "refused: shell",
			during: func(x *stage) { x.decide("deny") }},
		{name: "asked-twice-in-a-turn", scenes: then(does("createFile", writesA), does("shell", removes, "shell", removes)), end: "Three.",
			during: func(x *stage) { x.decide("deny"); x.decide("approve") }},
		{name: "asks-a-person", scenes: then(does("ask_person", `{"question":"Which colour?"}`)), end: "Three.", told: "Green.",
			during: func(x *stage) {
				x.until("the question", func() bool { return x.posted("Which colour?") })
				x.steer("Green.")
			}},

		{name: "stop-before-the-first-piece", scenes: []scene{{waits: true}}, end: "enough", ended: "cancelled",
			during: func(x *stage) { x.request(x.first, 1); x.stop() }},
		{name: "stop-in-the-stream", scenes: []scene{{say: "I count", holds: true}}, end: "enough", ended: "cancelled",
			during: func(x *stage) { x.request(x.first, 1); x.stop() }},
		{name: "stop-before-a-retry", scenes: []scene{{fails: "load", after: "50"}}, end: "enough", ended: "cancelled",
			during: func(x *stage) { x.request(x.first, 1); x.failed(); x.stop() }},
		{name: "stop-in-a-tool-call", scenes: []scene{does("shell", waits)}, end: "enough", ended: "cancelled",
			during: func(x *stage) { x.works(); x.stop() }},
		{name: "stop-at-a-question", scenes: []scene{does("createFile", writesA), does("shell", removes)}, end: "enough", ended: "cancelled",
			during: func(x *stage) { x.question(); x.stop() }},
		{name: "stop-while-a-person-is-asked", scenes: []scene{does("ask_person", `{"question":"Which colour?"}`)}, end: "enough",
			ended: "cancelled", during: func(x *stage) {
				x.until("the question", func() bool { return x.posted("Which colour?") })
				x.stop()
			}},
		{name: "stop-too-late", scenes: then(), end: "Three.", during: func(x *stage) {
			x.wait()
			if raw, status := x.d.send("POST", "/v1/runs/"+string(x.run)+"/cancel", `{"reason":"enough"}`, ""); status != http.StatusConflict {
				x.t.Errorf("the run has ended, and stopping it is %d %s", status, raw)
			}
		}},

		{name: "steer-in-the-stream", scenes: then(scene{say: "I write", calls: does("createFile", writesA).calls, holds: true}), end: "Three.",
			told: "Hurry up.", during: func(x *stage) { x.request(x.first, 1); x.steer("Hurry up."); x.goOn() }},
		{name: "steer-in-a-tool-call", scenes: then(does("shell", works)), end: "Three.", told: "Hurry up.", during: func(x *stage) {
			x.works()
			x.steer("Hurry up.")
			x.d.ask("PUT", "/v1/spaces/"+x.space+"/files/go", "1", "")
		}},
		{name: "steer-at-a-question", scenes: then(does("createFile", writesA), does("shell", removes)), end: "Three.", told: "Leave it.",
			during: func(x *stage) { x.question(); x.steer("Leave it."); x.decide("deny") }},
		{name: "steer-before-a-retry", scenes: then(scene{fails: "load", after: "20"}, does("createFile", writesA)), end: "Three.",
			told: "Hurry up.", during: func(x *stage) { x.request(x.first, 1); x.failed(); x.steer("Hurry up.") }},
		{name: "steer-twice", scenes: then(scene{calls: does("createFile", writesA).calls, holds: true},
			scene{calls: does("readFile", `{"path":"a"}`).calls, holds: true}), end: "Three.", told: "Third.", during: func(x *stage) {
			x.request(x.first, 1)
			x.steer("First.")
			x.steer("Second.")
			x.goOn()
			x.request(x.first, 2)
			x.steer("Third.")
			x.goOn()
		}},
		{name: "steer-in-the-last-answer", scenes: []scene{{say: "Three.", holds: true}}, end: "Three.", told: "Count to three.",
			during: func(x *stage) { x.request(x.first, 1); x.steer("Count to four."); x.goOn() }},
	}
}

// posted reports whether somebody has posted a text in the thread of the run.
func (x *stage) posted(words string) bool {
	raw, _ := x.d.send("GET", "/v1/threads/"+x.thread+"/messages", "", "")
	return bytes.Contains(raw, []byte(words))
}

// failed waits until a failure of the model is recorded.
func (x *stage) failed() {
	x.t.Helper()
	x.until("a recorded failure", func() bool {
		raw, _ := x.d.send("GET", "/v1/events?event_types="+model.EventFailed+"&run_id="+string(x.run), "", "")
		return bytes.Contains(raw, []byte(model.EventFailed))
	})
}

// TestAnApprovalOfThreeDays leaves a question open for three days, over a restart of the daemon. The answer then leads to the same end, the
// model is asked nothing twice, and the command runs once.
func TestAnApprovalOfThreeDays(t *testing.T) {
	for _, wire := range []string{chatWire, messagesWire} {
		t.Run(wire, func(t *testing.T) {
			dir := t.TempDir()
			s := situation{name: "three-days", end: "Three.", scenes: then(does("createFile", writesA),
				does("shell", `{"command":"echo once >> log; rm -r a"}`)), told: "exit code: 0"}
			d := situationDaemon(t, dir, 0)
			x := prepare(t, d, s, wire)
			asked := ""
			s.during = func(x *stage) {
				asked = x.question()
				d.stop()
				later := situationDaemon(t, dir, 3*24*time.Hour)
				x.d.app, x.d.url, x.d.stop = later.app, later.url, later.stop
				if again := x.question(); again != asked {
					t.Errorf("another question is open: %s, want %s", again, asked)
				}
				x.decide("approve")
			}
			x.play(t, s)
			if n, _ := x.first.asked(); n != 3 {
				t.Errorf("the model was asked %d times, want 3", n)
			}
			if raw, status := x.d.send("GET", "/v1/spaces/"+x.space+"/files/log", "", ""); status != http.StatusOK || string(raw) != "once\n" {
				t.Errorf("the command left %d %q, want that it ran once", status, raw)
			}
		})
	}
}

// TestAnApprovalThatNobodyGives leaves a question open for longer than questions live: the call is refused, and the run goes on.
func TestAnApprovalThatNobodyGives(t *testing.T) {
	dir := t.TempDir()
	s := situation{name: "nobody", end: "Three.", scenes: then(does("createFile", writesA), does("shell", removes)),
		told: "refused: shell"}
	d := situationDaemon(t, dir, 0)
	x := prepare(t, d, s, chatWire)
	s.during = func(x *stage) {
		x.question()
		d.stop()
		later := situationDaemon(t, dir, 8*24*time.Hour)
		x.d.app, x.d.url, x.d.stop = later.app, later.url, later.stop
	}
	x.play(t, s)
}

// TestTheKillSwitchHoldsAnAgent throws the kill switch while the model answers: the answer is given up, nothing is asked until the switch
// is lifted, and then the run goes on to its end.
func TestTheKillSwitchHoldsAnAgent(t *testing.T) {
	d := situationDaemon(t, t.TempDir(), 0)
	s := situation{name: "kill-switch", end: "Three.", scenes: then(does("createFile", writesA), scene{say: "I count", holds: true})}
	x := prepare(t, d, s, chatWire)
	s.during = func(x *stage) {
		x.request(x.first, 2)
		x.d.ask("PUT", "/v1/kill-switch", `{"on":true,"reason":"a test"}`, "")
		x.failed()
		before, _ := x.first.asked()
		x.until("the loop asks again", func() bool {
			raw, _ := x.d.send("GET", "/v1/events?event_types=policy.denied&run_id="+string(x.run), "", "")
			return bytes.Contains(raw, []byte("kill_switch"))
		})
		if n, _ := x.first.asked(); n != before {
			x.t.Errorf("the model was asked %d times while the switch was on", n-before)
		}
		x.d.ask("PUT", "/v1/kill-switch", `{"on":false}`, "")
	}
	x.play(t, s)
}

// TestTheCircuitOfAModelIsOpen has a model fail five times in a row. The next run meets an open circuit, and has less time than that is
// open: nothing is sent.
func TestTheCircuitOfAModelIsOpen(t *testing.T) {
	d := situationDaemon(t, t.TempDir(), 0)
	s := situation{name: "broken", end: agents.FailModel, more: "limits: {seconds: 20}\n", scenes: []scene{{fails: "broken"}}}
	x := prepare(t, d, s, chatWire)
	x.play(t, s)
	x.play(t, s)
	if n, _ := x.first.asked(); n != 5 {
		t.Errorf("the model was asked %d times, want 5: three of the first run, two of the second, whose last try met the open circuit", n)
	}
	third := x.play(t, s)
	if n, _ := x.first.asked(); n != 5 || !strings.Contains(third, "model.refused circuit_open") {
		t.Errorf("the model was asked %d times, and the third run tells\n%s", n, third)
	}
}
