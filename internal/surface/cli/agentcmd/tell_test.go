package agentcmd

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentbox/internal/client"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/room"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/surface/cli/term"
)

// TestWhatFailsIsTold draws the events of an agent's run. Each call that fails has one line. So has each call that policy, a person or the
// tool itself refuses.
func TestWhatFailsIsTold(t *testing.T) {
	const own, child = id.Run("run_own"), id.Run("run_child")
	no, three := false, 3
	of := func(r id.Run, typ string, data any) event.Event {
		t.Helper()
		raw, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		e := event.Event{}
		e.Run, e.Type, e.Data = r, typ, raw
		return e
	}
	call := func(typ, tool, message string, o errand.Outcome) event.Event {
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return of(own, typ, step.Ended{Call: "tc_1", Tool: tool, Error: raw, Message: message})
	}
	long := run.Result{Type: "shell", OperationID: "long", Success: &no, ExitCode: &three}
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(client.RunShown{Run: run.Run{ID: child}, Result: run.Events{Events: []run.Result{
			{Type: run.ResApprovalRequired, OperationID: "long"}, long}}})
	}))
	defer daemon.Close()
	denied := policy.Refused{Action: policy.ToolCall, Title: "call a tool: http_fetch",
		Decision: policy.Decision{Reason: "the room has no such tool"}}
	var out strings.Builder
	told := teller{p: &term.Printer{Out: &out}, api: client.New(daemon.URL, "abk_x"), made: run.Run{ID: own}, titles: map[string]string{},
		failed: map[id.Run]bool{}}
	for _, e := range []event.Event{
		of(own, step.EventCreated, step.Created{Title: "turn 1"}),
		of(child, run.EventCreated, run.Created{Run: child, Operations: []run.Outline{{ID: "no", Type: "shell", Summary: "sudo true"},
			{ID: "long", Type: "shell", Summary: "make"}}}),
		of(child, policy.DeniedType, policy.Refused{Action: policy.ModelCall}), // its result says the same
		of(child, run.EventErred, run.Ended{Run: child, Operation: "no", Tool: "shell", Kind: run.ResPolicyDenied,
			Result: &run.Result{Type: run.ResPolicyDenied, Reason: "it gains rights"}}),
		call(step.EventFailed, run.ToolPrefix+"shell", "", errand.Outcome{Child: child, Status: "succeeded"}), // so does this
		of(child, run.EventErred, run.Ended{Run: child, Operation: "long", Tool: "shell", Kind: "shell", Stored: &run.Input{}}),
		call(step.EventFailed, "http_fetch", "", errand.Outcome{Status: "failed", Text: "failed: no such host\ninstead: another"}),
		call(step.EventFailed, "search", "", errand.Outcome{Status: errand.Refused, Reason: "the requester may not"}),
		call(step.EventUnknown, "spawn", "the run ended before", errand.Outcome{}),
		call(step.EventFailed, "shell", "", errand.Outcome{Child: "run_2", Status: "cancelled", Reason: "its run was cancelled"}),
		of(own, policy.DeniedType, denied),
		of(own, policy.DeniedType, denied), // the loop asks again
		of(own, policy.DeniedType, policy.Refused{Action: policy.ModelCall}),
		of(own, step.EventCreated, step.Created{Title: "turn 2"}),
		of(own, model.EventDeferred, model.Deferred{Reason: "the model main is left alone", Until: time.Unix(1e9, 0)}),
		of(own, policy.DeniedType, denied),
		of(own, room.EventMessageCreated, room.MessageCreated{SenderType: id.Service, Content: "half is done\nmore follows"}),
		of(own, step.EventInvoked, step.Invoked{Tool: "ask_person"}),
		of("", room.EventMessageCreated, room.MessageCreated{SenderType: id.Service, Content: "Which colour?"}),
		of("", room.EventMessageCreated, room.MessageCreated{SenderType: id.User, Content: "blue"}),
		of(child, step.EventInvoked, step.Invoked{Tool: "ask_person"}), // a sub-agent
		of("", room.EventMessageCreated, room.MessageCreated{SenderType: id.Service, Content: "Which size?"}),
	} {
		told.tell(t.Context(), e)
	}
	want := `turn 1
  ▸ shell sudo true  ✗ it gains rights
  ▸ shell make  ✗ exit 3
  ▸ http_fetch   ✗ failed: no such host
  ▸ search   ✗ the requester may not
  ▸ spawn   ✗ unknown: the run ended before
  ▸ shell   ✗ its run was cancelled
  ▸ tool call a tool: http_fetch  ✗ the room has no such tool
turn 2
  waits until 2001-09-09 01:46:40.000 UTC: the model main is left alone
  ▸ tool call a tool: http_fetch  ✗ the room has no such tool
  ▸ message half is done\nmore follows
  ▸ ask_person Which colour?
  waits for an answer: agentbox agent steer run_own ANSWER
  ▸ ask_person Which size?
  waits for an answer: agentbox agent steer run_own ANSWER
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}

	daemon.Close() // a long result that cannot be read says less
	out.Reset()
	told.tell(t.Context(), of(child, run.EventErred, run.Ended{Run: child, Operation: "long", Tool: "shell", Kind: "shell",
		Stored: &run.Input{}}))
	if want := fmt.Sprintln("  ▸ shell make  ✗ failed"); out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
