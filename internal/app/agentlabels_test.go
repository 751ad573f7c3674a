package app_test

import (
	"context"
	"strings"
	"testing"

	"agentbox/internal/domain/id"
	runs "agentbox/internal/domain/run"
	"agentbox/internal/domain/tool"
	"agentbox/internal/service/engines"
	"agentbox/internal/testkit/wall"
)

// TestAnAgentHearsNothingThatALabelKeeps labels the thread of a run while it waits for a person: its requester may not read what is posted
// from then on, so the agent, which would tell them, does not read it either.
func TestAnAgentHearsNothingThatALabelKeeps(t *testing.T) {
	p := startPlayed(t, "")
	ask := one("ask_person", `{"question":"Which colour?"}`, "A person has answered. Their words follow.", true)
	ask.heard = []string{"[A person has written a message that this run may not show you.]"}
	p.record(ask)
	run := p.start()
	p.until(func() bool {
		raw, _ := p.d.send("GET", "/v1/threads/"+p.thread+"/messages", "", "")
		return strings.Contains(string(raw), "Which colour?")
	})
	p.d.ask("POST", "/v1/resources/labels", `{"resource_type":"thread","resource_id":"`+p.thread+`","label":"confidential"}`, "")
	p.d.ask("POST", "/v1/threads/"+p.thread+"/messages", `{"content_md":"Green, says the plum."}`, "")
	waiting, stop := context.WithTimeout(t.Context(), wall.Patience)
	defer stop()
	if doc, err := p.d.app.Runs.History.Wait(waiting, id.DefaultWorkspace, run); err != nil || doc.Status != runs.Succeeded {
		t.Fatalf("the run ended as %+v, %v", doc, err)
	}
	past, err := p.d.app.Engines.Look.Steps(t.Context(), id.DefaultWorkspace, engines.Of{Run: run}, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range past {
		if strings.Contains(string(s.Input), "plum") {
			t.Errorf("the record of a turn has the message: %s", s.Input)
		}
	}
}

// TestAnAgentEndsWhereALabelBegins labels the space of a run while it waits for a person. Its requester may not read the files any more, so
// the agent, which would tell them, does not either.
func TestAnAgentEndsWhereALabelBegins(t *testing.T) {
	p := startPlayed(t, "")
	ask := one("ask_person", `{"question":"Which colour?"}`, "A person has answered. Their words follow.", true)
	ask.heard = []string{"Green."}
	denied := tool.Refusal{Tool: "readFile", Rule: "data_access_required",
		Reason: "the space has a label that keeps it from the requester of the run"}.Text()
	p.record(ask, one("readFile", `{"path":"plan.txt"}`, denied, false))
	run := p.start()
	p.until(func() bool {
		raw, _ := p.d.send("GET", "/v1/threads/"+p.thread+"/messages", "", "")
		return strings.Contains(string(raw), "Which colour?")
	})
	p.d.ask("POST", "/v1/resources/labels", `{"resource_type":"space","resource_id":"`+p.space+`","label":"confidential"}`, "")
	p.d.ask("POST", "/v1/threads/"+p.thread+"/messages", `{"content_md":"Green."}`, "")
	waiting, stop := context.WithTimeout(t.Context(), wall.Patience)
	defer stop()
	if doc, err := p.d.app.Runs.History.Wait(waiting, id.DefaultWorkspace, run); err != nil || doc.Status != runs.Succeeded {
		t.Fatalf("the run ended as %+v, %v", doc, err)
	}
}
