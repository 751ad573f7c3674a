package outside_test

import (
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/outside"
)

// TestWhatAQuestionIsAbout asks plain questions about a run, a room and the workspace, and what cannot be asked.
func TestWhatAQuestionIsAbout(t *testing.T) {
	c := convene(t)
	run, err := c.hands.Create(t.Context(), event.Origin{Principal: c.owner.Principal}, engines.Request{Workspace: ws, Room: near,
		Title: "a run"})
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		q    outside.Question
		want string // what it is about, or the code of the refusal
	}{
		"a run":               {outside.Question{Text: "May it go on?", Run: run.ID}, string(run.ID)},
		"a run and its room":  {outside.Question{Text: "May it go on?", Run: run.ID, Room: near}, string(run.ID)},
		"a room":              {outside.Question{Text: "May it be closed?", Room: far}, string(far)},
		"the workspace":       {outside.Question{Text: "May it be archived?"}, string(ws)},
		"by its action":       {outside.Question{Action: policy.QuestionAsk, Text: "May we?"}, string(ws)},
		"by its request":      {outside.Question{Action: policy.QuestionAsk, Request: []byte(`{"question":"May we?"}`)}, string(ws)},
		"a run elsewhere":     {outside.Question{Text: "May it?", Run: run.ID, Room: far}, "run_room_mismatch"},
		"no room":             {outside.Question{Text: "May it?", Room: "room_00000000000000000000000001"}, "room_not_found"},
		"no run":              {outside.Question{Text: "May it?", Run: "run_00000000000000000000000001"}, "run_not_found"},
		"a step of no run":    {outside.Question{Text: "May it?", Step: "step_00000000000000000000000001"}, "step_without_run"},
		"an action beside it": {outside.Question{Text: "May it?", Action: policy.EmailSend}, "question_with_action"},
		"a target":            {outside.Question{Text: "May it?", Target: "ada@example.com"}, "question_with_target"},
		"a tool":              {outside.Question{Text: "May it?", Tool: "saw"}, "question_with_target"},
		"a space":             {outside.Question{Text: "May it?", Space: "spc_00000000000000000000000001"}, "question_with_target"},
		"another request":     {outside.Question{Text: "May it?", Request: []byte(`{"question":"May it not?"}`)}, "question_with_target"},
		"more in its request": {outside.Question{Action: policy.QuestionAsk, Request: []byte(`{"question":"May it?","pay":100}`)},
			"question_with_target"},
		"high stakes":           {outside.Question{Text: "May it?", Zone: event.HighStakes}, "question_with_target"},
		"nothing":               {outside.Question{Action: policy.QuestionAsk}, "missing_question"},
		"too much":              {outside.Question{Text: strings.Repeat("x", policy.MaxQuestionText+1)}, "question_too_long"},
		"a secret":              {outside.Question{Text: "Is it ghp_012345678901234567890123456789012345?"}, "request_holds_secret"},
		"neither":               {outside.Question{}, "missing_action"},
		"an action in no space": {outside.Question{Action: policy.EmailSend, Space: "spc_00000000000000000000000001"}, "space_not_found"},
	} {
		doc, err := c.Ask(t.Context(), event.Origin{Principal: c.agent.Principal}, c.agent, x.q, outside.Words{}, policy.Ask{})
		got := fault.CodeOf(err)
		if err == nil {
			a, err := policy.ParseAction(doc.Request)
			if err != nil {
				t.Fatal(err)
			}
			got = a.Subject
			if doc.Status != policy.Pending || !strings.Contains(doc.Question.What, "request.question: \"May") ||
				doc.Question.Impact != "Nothing is done. The requester learns the answer." {
				t.Errorf("%s: got %+v", name, doc)
			}
		}
		if got != x.want {
			t.Errorf("%s: got %q (%v), want %q", name, got, err, x.want)
		}
	}
	scope := policy.Ask{Scope: policy.ScopeRoom}
	if _, err := c.Ask(t.Context(), event.Origin{Principal: c.agent.Principal}, c.agent, outside.Question{Text: "May it?", Room: near},
		outside.Words{}, scope); fault.CodeOf(err) != "standing_not_possible" {
		t.Errorf("a standing answer: %v", err)
	}
}

// TestAnAnsweredQuestion answers a plain question; the answer is told once, to who asked.
func TestAnAnsweredQuestion(t *testing.T) {
	c := convene(t)
	q := outside.Question{Text: "May this room be closed?", Room: near}
	doc := c.ask(q)
	if a := c.evaluate(q, ""); a.Decision.Allowed() || a.Approval != doc.ID {
		t.Errorf("before the answer: got %+v", a)
	}
	if err := c.decide(doc, policy.Approve); err != nil {
		t.Fatal(err)
	}
	if a := c.evaluate(outside.Question{Text: q.Text, Room: far}, ""); a.Decision.Allowed() {
		t.Errorf("of another room: got %+v", a)
	}
	if a := c.evaluate(q, ""); !a.Decision.Allowed() || a.Approval != doc.ID {
		t.Errorf("after the answer: got %+v", a)
	}
	if a := c.evaluate(q, ""); a.Decision.Allowed() {
		t.Errorf("a second time: got %+v", a)
	}
}

// TestADeclaredActionAboutARoom asks about an action of the workspace's own without a target, and evaluates it.
func TestADeclaredActionAboutARoom(t *testing.T) {
	c := convene(t)
	declare := func(asks bool) {
		t.Helper()
		cmd := policy.Declare{Name: "room_tools.tidy", Description: "tidy a room", SideEffect: policy.Network, Asks: asks,
			Targets: []string{policy.TargetRoom}}
		if _, err := c.gate.ActionTypes.Declare(t.Context(), event.Origin{Principal: c.owner.Principal}, ws, cmd); err != nil {
			t.Fatal(err)
		}
	}
	q := outside.Question{Action: "room_tools.tidy", Room: near}
	if a := c.evaluate(q, ""); a.Decision.ReasonCode != policy.ReasonUnknownAction {
		t.Errorf("undeclared: got %+v", a.Decision)
	}
	declare(true)
	doc := c.ask(q)
	if doc.Room != near || !strings.Contains(doc.Question.What, `subject_id: "`+string(near)+`"`) || !strings.HasPrefix(doc.Title,
		"this workspace's own action room_tools.tidy, version 1") {
		t.Errorf("got %+v", doc)
	}
	if _, err := c.Ask(t.Context(), event.Origin{Principal: c.agent.Principal}, c.agent, outside.Question{Action: q.Action}, outside.Words{},
		policy.Ask{}); fault.CodeOf(err) != policy.ReasonTargetMismatch {
		t.Errorf("about the workspace: %v", err)
	}
	if err := c.decide(doc, policy.Approve); err != nil {
		t.Fatal(err)
	}
	if a := c.evaluate(q, ""); !a.Decision.Allowed() || a.Event == "" {
		t.Errorf("approved: got %+v", a)
	}
	doc = c.ask(q)
	if err := c.decide(doc, policy.Approve); err != nil {
		t.Fatal(err)
	}
	declare(false)
	declare(true)
	if a := c.evaluate(q, ""); a.Decision.Allowed() || a.Approval != "" {
		t.Errorf("changed since it was approved: got %+v", a)
	}
}
