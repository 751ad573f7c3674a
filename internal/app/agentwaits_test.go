package app_test

import (
	"encoding/json"
	"slices"
	"testing"

	"agentbox/internal/domain/id"
)

// listed is what the list of runs says about a run.
type listed struct {
	ID        id.Run        `json:"run_id"`
	Status    string        `json:"status"`
	For       string        `json:"waits_for"`
	Approvals []id.Approval `json:"approval_ids"`
}

// listed returns the runs of agents that a list shows, by their ids.
func (p *played) listed(filter string) map[id.Run]listed {
	p.t.Helper()
	raw, status := p.d.send("GET", "/v1/runs?"+filter, "", "")
	var page struct {
		Runs []listed `json:"runs"`
	}
	if err := json.Unmarshal(raw, &page); err != nil || status != 200 {
		p.t.Fatalf("%d %s: %v", status, raw, err)
	}
	found := map[id.Run]listed{}
	for _, r := range page.Runs {
		found[r.ID] = r
	}
	return found
}

// waits reports whether a run waits for a person.
func (p *played) waits(r id.Run) bool {
	p.t.Helper()
	doc, err := p.d.app.Engines.Find(p.t.Context(), id.DefaultWorkspace, r)
	if err != nil {
		p.t.Fatal(err)
	}
	w, err := p.d.app.Engines.Look.Waits(p.t.Context(), doc)
	if err != nil {
		p.t.Fatal(err)
	}
	return w.For != ""
}

// TestTheListSaysThatAnAgentWaitsForAnApproval asks a person about a command of a sub-agent: the lists and the run say of both that they
// wait, until the person has answered.
func TestTheListSaysThatAnAgentWaitsForAnApproval(t *testing.T) {
	p := startPlayed(t, "limits: {children: 1, depth: 1}\n")
	p.recordAll(
		p.talk(task, "Three.", one("spawn", `{"task":"Tidy up."}`, "status: succeeded\nreport:\nTidy.\n", true)),
		p.child("Tidy up.", "Tidy.", true, one("shell", `{"command":"rm -rf old"}`, "exit code: 0\n", true)),
	)
	parent := p.start()
	p.until(func() bool { return p.waits(parent) })
	of := p.children(parent)[0].ID
	for _, filter := range []string{"work=agent", "blueprint=counter", "work=agent&status=running", "work=agent&status=awaiting_approval",
		"blueprint=counter&status=awaiting_approval"} {
		runs := p.listed(filter)
		for _, r := range []id.Run{parent, of} {
			if got := runs[r]; got.For != "approval" || len(got.Approvals) != 1 || !slices.Equal(got.Approvals, runs[parent].Approvals) ||
				got.Status != "running" {
				t.Errorf("%s: of %s got %+v, want that it waits for one approval", filter, r, got)
			}
		}
	}
	shown, _ := p.d.ask("GET", "/v1/runs/"+string(parent), "", "")
	if text(shown, "waits_for") != "approval" {
		t.Errorf("the run itself shows %q", text(shown, "waits_for"))
	}
	// A page of one: the list goes on with the other one, and ends.
	raw, _ := p.d.ask("GET", "/v1/runs?work=agent&status=awaiting_approval&limit=1", "", "")
	if next := p.listed("work=agent&status=awaiting_approval&limit=1&cursor=" + text(raw, "next_cursor")); len(next) != 1 ||
		next[parent].For != "approval" {
		t.Errorf("the second page is %+v", next)
	}
	p.d.ask("POST", "/v1/approvals/"+string(p.listed("work=agent")[parent].Approvals[0])+"/decide", `{"decision":"approve"}`, "")
	p.ends(parent)
	if got := p.listed("work=agent"); got[parent].For != "" || got[of].For != "" || len(p.listed("work=agent&status=awaiting_approval")) != 0 {
		t.Errorf("after the answer got %+v", got)
	}
}

// TestTheListKeepsAnApprovalFromThoseWhoMayNotSeeIt labels the approval for which an agent waits: a viewer sees that the run waits, and not
// for which approval.
func TestTheListKeepsAnApprovalFromThoseWhoMayNotSeeIt(t *testing.T) {
	p := startPlayed(t, "")
	p.record(one("shell", `{"command":"rm -rf old"}`, "exit code: 0\n", true))
	of := p.start()
	p.until(func() bool { return p.waits(of) })
	open := p.listed("work=agent")[of].Approvals[0]
	p.d.ask("POST", "/v1/resources/labels", `{"resource_type":"approval","resource_id":"`+string(open)+`","label":"confidential"}`, "")
	vera, _ := p.d.ask("POST", "/v1/principals", `{"kind":"user","role":"viewer","display_name":"Vera"}`, "")
	key, _ := p.d.ask("POST", "/v1/keys", `{"name":"vera","principal_id":"`+text(vera, "principal_id")+`"}`, "")
	p.d.key = text(key, "key")
	for _, filter := range []string{"work=agent", "work=agent&status=awaiting_approval"} {
		if got := p.listed(filter)[of]; got.For != "approval" || len(got.Approvals) != 0 {
			t.Errorf("%s: a viewer sees %+v", filter, got)
		}
	}
	if shown, _ := p.d.ask("GET", "/v1/runs/"+string(of), "", ""); text(shown, "waits_for") != "approval" || shown["approval_ids"] != nil {
		t.Errorf("of the run a viewer sees %v and %v", shown["waits_for"], shown["approval_ids"])
	}
}

// TestTheListSaysThatAnAgentWaitsForAnAnswer has an agent ask with ask_person: it waits for a message in its thread, and not for an
// approval.
func TestTheListSaysThatAnAgentWaitsForAnAnswer(t *testing.T) {
	p := startPlayed(t, "")
	asks := one("ask_person", `{"question":"Which colour?"}`, "A person has answered. Their words follow.", true)
	asks.heard = []string{"Green."}
	p.record(asks)
	of := p.start()
	p.until(func() bool { return p.waits(of) })
	if got := p.listed("work=agent&status=awaiting_approval")[of]; got.For != "answer" || got.Approvals != nil || got.Status != "running" {
		t.Errorf("got %+v, want that it waits for an answer", got)
	}
	p.until(func() bool {
		raw, _ := p.d.send("GET", "/v1/threads/"+p.thread+"/messages", "", "")
		return json.Valid(raw) && slices.ContainsFunc(messagesOf(p.t, raw), func(said string) bool { return said == "Which colour?" })
	})
	p.d.ask("POST", "/v1/threads/"+p.thread+"/messages", `{"content_md":"Green."}`, "")
	p.ends(of)
	if got := p.listed("work=agent")[of]; got.For != "" || got.Status != "succeeded" {
		t.Errorf("after the answer got %+v", got)
	}
}

// messagesOf returns the texts of a list of messages.
func messagesOf(t *testing.T, raw []byte) (texts []string) {
	t.Helper()
	var page struct {
		Messages []struct {
			Content string `json:"content_md"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		t.Fatal(err)
	}
	for _, m := range page.Messages {
		texts = append(texts, m.Content)
	}
	return texts
}
