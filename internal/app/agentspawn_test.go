package app_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/tool"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/service/engines"
	"agentbox/internal/testkit/wall"
)

// child is a conversation of a sub-agent of the blueprint's own. It is offered what its parent is; the last generation starts no others.
func (p *played) child(task, report string, last bool, turns ...turn) talk {
	k := p.talk(task, report, turns...)
	if last {
		k.offered = slices.DeleteFunc(k.offered, func(t tool.Tool) bool { return t.Name == tool.Spawn })
	}
	return k
}

// children are the runs that were made for tool calls of a run.
func (p *played) children(of id.Run) (found []run.Run) {
	p.t.Helper()
	calls, err := p.d.app.Engines.Look.Calls(p.t.Context(), id.DefaultWorkspace, engines.Of{Run: of}, "", 100)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, c := range calls {
		if c.Tool != tool.Spawn || c.Child == "" {
			continue
		}
		doc, err := p.d.app.Engines.Find(p.t.Context(), id.DefaultWorkspace, c.Child)
		if err != nil {
			p.t.Fatal(err)
		}
		found = append(found, doc)
	}
	return found
}

// usage is what a run has used, with its sub-agents.
func (p *played) usage(r id.Run) model.Used {
	p.t.Helper()
	used, err := p.d.app.Models.UsageOf(p.t.Context(), id.DefaultWorkspace, model.ScopeRun, string(r), "")
	if err != nil {
		p.t.Fatal(err)
	}
	return used
}

// TestASubAgent gives a task to a sub-agent in a workspace in which one run may run: its report is the result, and what it uses counts for
// both. The number of sub-agents, their depth and their blueprints are bounded.
func TestASubAgent(t *testing.T) {
	p := startPlayed(t, "limits: {children: 1, depth: 1}\n")
	p.d.ask("PATCH", "/v1/workspaces/"+string(id.DefaultWorkspace), `{"max_concurrent_tasks":1}`, "")
	refused := func(rule, reason, instead string) string {
		return tool.Refusal{Tool: "spawn", Rule: rule, Reason: reason, Instead: instead}.Text()
	}
	p.recordAll(
		p.talk(task, "Three.",
			one("spawn", `{"task":"go","blueprint":"stranger"}`, refused("spawn_blueprint",
				"the agent may start sub-agents of its own blueprint, and of those that comms.spawn of its blueprint names", ""), false),
			one("spawn", `{"task":"Write it down."}`, "status: succeeded\nreport:\nIt is written.\nartifact: a.txt, text/plain, 6 bytes\n", true),
			one("readFile", `{"path":"a.txt"}`, "1 2 3\n", true),
			one("spawn", `{"task":"Again."}`, refused("spawn_limit",
				"this agent has started as many sub-agents as limits.children permits", "Do the rest yourself."), false),
		),
		p.child("Write it down.", "It is written.", true,
			one("createFile", `{"path":"a.txt","content":"1 2 3\n"}`, "6 bytes written to a.txt\n", true),
			one("spawn", `{"task":"deeper"}`, `not made: there is no tool "spawn"; the tools are ask_person, code, createFile, deleteFile, `+
				"editFile, html_to_markdown, md_read, md_write, message, readFile, search, shell, read_result", false),
		),
	)
	parent := p.start()
	p.ends(parent)
	made := p.children(parent)
	if len(made) != 1 {
		t.Fatalf("%d sub-agents", len(made))
	}
	of := made[0]
	if of.Parent == nil || of.Parent.Run != parent || of.Status != run.Succeeded || of.Token == "" || of.Blueprint != "counter" {
		t.Errorf("the sub-agent is %+v", of)
	}
	whole, part := p.usage(parent), p.usage(of.ID)
	if part.Usage.Tokens() == 0 || whole.Usage.Tokens() != part.Usage.Tokens()+4*15+22 || whole.Reserved != (model.Reserve{}) {
		t.Errorf("the run used %+v, its sub-agent %+v", whole.Usage, part.Usage)
	}
	granted, err := p.d.app.Identity.Token(t.Context(), id.DefaultWorkspace, of.Token)
	if err != nil || !slices.Equal(granted.Scopes.Rooms, []string{string(id.DefaultRoom)}) || granted.ValidUntil.IsZero() ||
		granted.Hash != (event.Digest{}) {
		t.Errorf("its token is %+v, %v", granted, err)
	}
	// The lineage is in the events: the call is the cause of the run.
	raw, _ := p.d.send("GET", "/v1/events?limit=200&event_type=run.created", "", "")
	if !strings.Contains(string(raw), `"parent":{"run_id":"`+string(parent)+`","tool_call_id":"`+string(of.Parent.Call)+`"`) {
		t.Errorf("the events do not name the parent: %s", raw)
	}
}

// TestASubAgentInASpaceOfItsOwn holds that its files are not those of its parent.
func TestASubAgentInASpaceOfItsOwn(t *testing.T) {
	p := startPlayed(t, "limits: {children: 2, depth: 1}\n")
	p.recordAll(
		p.talk(task, "Three.",
			one("spawn", `{"task":"Write it down.","space":"new"}`, "status: succeeded\nreport:\nIt is written.\nartifact: a.txt, text/plain, 6 bytes\n", true),
			one("readFile", `{"path":"a.txt"}`, "failed: there is no \"a.txt\"\n", false),
		),
		p.child("Write it down.", "It is written.", true,
			one("createFile", `{"path":"a.txt","content":"1 2 3\n"}`, "6 bytes written to a.txt\n", true)),
	)
	p.ends(p.start())
	// A space that permits less than the blueprint says leads to no other one.
	p.inSpace(`"policy":"restrictive"`)
	p.plays(one("spawn", `{"task":"Write it down.","space":"new"}`, tool.Refusal{Tool: "spawn", Rule: "spawn_space",
		Reason:  "the space of this agent has another policy than its blueprint says, so a new space could permit more",
		Instead: "Let the sub-agent work in the same space."}.Text(), false))
}

// TestASubAgentOutlivesTheDaemon stops the daemon while a sub-agent waits for a person. The next one starts no second sub-agent.
func TestASubAgentOutlivesTheDaemon(t *testing.T) {
	p := startPlayed(t, "limits: {children: 2, depth: 1}\n")
	asks := one("ask_person", `{"question":"Which colour?"}`, "A person has answered. Their words follow.", true)
	asks.heard = []string{"Green."}
	spawns := one("spawn", `{"task":"Ask them."}`, "status: succeeded\nreport:\nGreen.\n", true)
	spawns.heard = []string{"Green."} // they talk in the same thread
	p.recordAll(p.talk(task, "Three.", spawns), p.child("Ask them.", "Green.", true, asks))
	parent := p.start()
	said := func() string {
		raw, _ := p.d.send("GET", "/v1/threads/"+p.thread+"/messages", "", "")
		return string(raw)
	}
	p.until(func() bool { return strings.Contains(said(), "Which colour?") })
	p.d.stop()
	p.begin()
	p.d.ask("POST", "/v1/threads/"+p.thread+"/messages", `{"content_md":"Green."}`, "")
	p.ends(parent)
	if made := p.children(parent); len(made) != 1 || strings.Count(said(), "Which colour?") != 1 {
		t.Errorf("%d sub-agents, and the thread is %s", len(made), said())
	}
}

// TestTheEndOfARunEndsItsSubAgents stops a run whose sub-agent waits for a person.
func TestTheEndOfARunEndsItsSubAgents(t *testing.T) {
	p := startPlayed(t, "limits: {children: 2, depth: 1}\n")
	ask := turn{calls: []model.Call{{ID: "a", Name: "ask_person", Arguments: `{"question":"Which colour?"}`}}}
	spawn := turn{calls: []model.Call{{ID: "a", Name: "spawn", Arguments: `{"task":"Ask them."}`}}}
	p.recordAll(p.talk(task, "", spawn), p.child("Ask them.", "", true, ask))
	parent := p.start()
	p.until(func() bool {
		raw, _ := p.d.send("GET", "/v1/threads/"+p.thread+"/messages", "", "")
		return strings.Contains(string(raw), "Which colour?")
	})
	p.d.ask("POST", "/v1/runs/"+string(parent)+"/cancel", `{}`, "")
	made := p.children(parent)
	if len(made) != 1 {
		t.Fatalf("%d sub-agents", len(made))
	}
	waiting, stop := context.WithTimeout(t.Context(), wall.Patience)
	defer stop()
	if doc, err := p.d.app.Runs.History.Wait(waiting, id.DefaultWorkspace, made[0].ID); err != nil || doc.Status != run.Cancelled {
		t.Errorf("the sub-agent is %s, %v", doc.Status, err)
	}
}

// TestNobodyClaimsALineage holds that only a tool call makes a sub-agent.
func TestNobodyClaimsALineage(t *testing.T) {
	p := startPlayed(t, "limits: {children: 2}\n")
	p.record()
	parent := p.start()
	p.ends(parent)
	raw, status := p.d.send("POST", "/v1/runs", `{"input":{"agent_run":1,"blueprint":"counter","blueprint_version":1,"locked_sha256":"`+
		p.locked.String()+`","loop_sha256":"`+p.locked.String()+`","tools_sha256":"`+p.locked.String()+`","space_id":"`+p.space+
		`","lineage":{"parent_run_id":"`+string(parent)+`","parent_call_id":"tc_1","root_run_id":"`+string(parent)+
		`","depth":1,"generations":1,"tools":["shell"],"seconds":9},"task":"t"}}`, "")
	if status != 403 || !strings.Contains(string(raw), "lineage_not_yours") {
		t.Errorf("got %d %s", status, raw)
	}
}

// TestAQuestionOfASubAgent holds that people who watch the parent are asked about what its sub-agent wants to do.
func TestAQuestionOfASubAgent(t *testing.T) {
	p := startPlayed(t, "limits: {children: 1, depth: 1}\n")
	p.recordAll(
		p.talk(task, "Three.", one("spawn", `{"task":"Tidy up."}`, "status: succeeded\nreport:\nTidy.\n", true)),
		p.child("Tidy up.", "Tidy.", true, one("shell", `{"command":"rm -rf old"}`, "exit code: 0\n", true)),
	)
	parent := p.start()
	var approval string
	p.until(func() bool {
		frames, err := p.d.app.Runs.Live.Read(t.Context(), parent, 1, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames {
			var said run.Result
			if f.Kind == livestream.Result && json.Unmarshal(f.Data, &said) == nil && said.Type == run.ResApprovalRequired {
				approval = said.ApprovalID
			}
		}
		return approval != ""
	})
	p.d.ask("POST", "/v1/approvals/"+approval+"/decide", `{"decision":"approve"}`, "")
	p.ends(parent)
}
