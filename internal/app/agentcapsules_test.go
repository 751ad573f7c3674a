package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/tool"
	"agentbox/internal/service/blueprints"
	"agentbox/internal/service/engines"
)

// of returns the same daemon with another agent: the one of a name, whose blueprint has more lines than the plain one.
func (p *played) of(name, more string) *played {
	p.t.Helper()
	source := strings.Replace(agentText, "name: counter", "name: "+name, 1) + more
	other := *p
	var problems []blueprint.Problem
	if other.def, problems = blueprints.Read([]byte(source)); len(problems) > 0 {
		p.t.Fatal(problems)
	}
	other.register(name, source)
	return &other
}

// family starts a daemon with a parent, and registers the blueprints of its children by name before the parent's is pinned.
func family(t *testing.T, parent string, children map[string]string) (*played, map[string]*played) {
	t.Helper()
	of := map[string]*played{}
	p := startPlayed(t, parent, func(p *played) {
		p.d.ask("PUT", "/v1/models/played", `{"provider":"scripted","base_url":"counter","model":"any"}`, "")
		for name, more := range children {
			of[name] = p.of(name, more)
		}
	})
	return p, of
}

// written returns the answer to a call that has written a capsule.
func written(text string, most int) string {
	return fmt.Sprintf("written: %d of %d characters", len([]rune(text)), most)
}

// writes is a turn in which a capsule is written.
func writes(capsule, text string, most int) turn {
	return one("capsule_write", fmt.Sprintf(`{"capsule":%q,"text":%q}`, capsule, text), written(text, most), true)
}

// capsules are the texts of the capsules of a run, by their types, the oldest first.
func (p *played) capsules(of id.Run) (found []string) {
	p.t.Helper()
	all, err := p.d.app.Engines.Look.Artifacts(p.t.Context(), id.DefaultWorkspace, engines.Of{Run: of}, "", 1000)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, a := range slices.Backward(all) {
		if a.Kind == "capsule" {
			raw, _ := p.d.send("GET", "/v1/artifacts/"+string(a.ID)+"/content", "", "")
			found = append(found, a.Title+": "+string(raw))
		}
	}
	return found
}

const everySource = "context: {sources: [status_capsules, plan_capsules, decision_capsules, artifact_manifests]}\n"

// TestAgentsHandEachOtherCapsules lets a parent and its child read each other's capsules, and the parent a file that the child has made in
// a space of its own. Everything is still there when the space is not.
func TestAgentsHandEachOtherCapsules(t *testing.T) {
	p, of := family(t, "limits: {children: 2, depth: 1}\ncomms: {capsules: [plan, manifest], spawn: [reporter]}\n"+everySource,
		map[string]string{"reporter": "comms: {capsules: [status, plan, decision, risk, manifest]}\n" + everySource})
	const plan, shown = "Count.\nThen report.", "plan:\n  Count.\n  Then report.\n"
	capsules := "status:\n  Done.\nplan:\n  Write a.txt.\nrisk:\n  It may rain.\n" +
		"decision 1:\n  One line.\ndecision 2:\n  Spaces between.\n"
	list := "artifact: a.txt, text/plain, 6 bytes\n"
	p.recordAll(
		p.talk(task, "Three.",
			writes("plan", plan, 3000),
			one("spawn", `{"task":"Write it down.","blueprint":"reporter","space":"new"}`,
				"status: succeeded\nreport:\nIt is written.\n"+capsules+list, true),
			one("capsule_read", `{"from":"children"}`, "child 1, reporter, succeeded\n"+capsules+list, true),
			one("capsule_read", `{"from":"children","number":1,"capsule":"risk"}`,
				"child 1, reporter, succeeded\nrisk:\n  It may rain.\n", true),
			one("capsule_read", `{"from":"children","number":2}`, "failed: from children the last number is 1", false),
			one("artifact_read", `{"from":"children","artifact":"a.txt"}`, "characters 0 to 6 of 6:\n1 2 3\n", true),
			one("artifact_read", `{"from":"children","artifact":"a.txt","offset":2,"length":3}`, "characters 2 to 5 of 6:\n2 3", true),
			one("artifact_read", `{"from":"children","artifact":"plan"}`, notListed, false), // a capsule is no artifact of the list
			one("readFile", `{"path":"a.txt"}`, "failed: there is no \"a.txt\"\n", false),
		),
		of["reporter"].child("Write it down.\n\nThe plan of your parent:\n  Count.\n  Then report.\n", "It is written.", true,
			writes("status", "Beginning.", 1500), writes("plan", "Write a.txt.", 3000), writes("risk", "It may rain.", 1500),
			one("createFile", `{"path":"a.txt","content":"1 2 3\n"}`, "6 bytes written to a.txt\n", true),
			writes("decision", "One line.", 3000), writes("decision", "Spaces between.", 3000), writes("status", "Done.", 1500),
			one("capsule_read", `{"from":"parent"}`, "parent, counter, running\n"+shown, true),
			one("capsule_read", `{"from":"ancestors","capsule":"plan"}`, "ancestor 1, counter, running\n"+shown, true),
			one("capsule_read", `{"from":"parent","capsule":"risk"}`, "parent, counter, running\nit shows you nothing\n", true),
			one("capsule_read", `{"from":"siblings"}`, "you have no siblings\n", true),
			one("capsule_read", `{"from":"children"}`, "you have no children\n", true),
			one("artifact_read", `{"from":"parent","artifact":"a.txt"}`, notListed, false),
		),
	)
	parent := p.start()
	p.ends(parent)
	made := p.children(parent)
	if len(made) != 1 {
		t.Fatalf("%d sub-agents", len(made))
	}
	if raw, status := p.d.send("DELETE", "/v1/spaces/"+p.spaceOf(made[0]), "", ""); status >= 300 {
		t.Fatalf("the space is not removed: %d %s", status, raw)
	}
	want := []string{"status: Beginning.", "plan: Write a.txt.", "risk: It may rain.", "decision: One line.",
		"decision: Spaces between.", "status: Done."}
	if got := p.capsules(made[0].ID); !slices.Equal(got, want) {
		t.Errorf("the capsules are %q, want %q", got, want)
	}
	if got := p.capsules(parent); !slices.Equal(got, []string{"plan: " + plan}) {
		t.Errorf("the capsules of the parent are %q", got)
	}
	raw, _ := p.d.send("GET", "/v1/artifacts?run_id="+string(made[0].ID), "", "")
	if !strings.Contains(string(raw), `"kind":"capsule","title":"risk","mime_type":"text/markdown"`) {
		t.Errorf("people see %s", raw)
	}
}

const notListed = "failed: the relative shows you no such artifact\n" +
	"instead: Take a name from its list of artifacts: capsule_read with capsule manifest."

// spaceOf is the space in which the agent of a run works.
func (p *played) spaceOf(r run.Run) string {
	p.t.Helper()
	given, err := p.d.app.Engines.Given(p.t.Context(), r)
	m, ok := errand.ReadMission(given)
	if err != nil || !ok {
		p.t.Fatalf("%s: %v", given, err)
	}
	return string(m.Space)
}

// TestTheWriterSaysWhoReads has siblings of which one shows itself to its children only, and the other its plan and no list. What the
// writer does not give, and what the reader does not take, nobody is shown.
func TestTheWriterSaysWhoReads(t *testing.T) {
	p, of := family(t, "limits: {children: 9, depth: 2}\ncontext: {sources: [plan_capsules]}\n"+
		"comms: {scopes: [descendants], capsules: [plan, manifest], spawn: [open, shy, reader]}\n", map[string]string{
		"open":   "comms: {capsules: [plan, status]}\n",
		"shy":    "comms: {scopes: [children], capsules: [plan, manifest]}\n",
		"reader": "limits: {children: 1}\ncomms: {scopes: [siblings], capsules: [plan]}\n" + everySource,
	})
	file := one("createFile", `{"path":"a.txt","content":"1\n"}`, "2 bytes written to a.txt\n", true)
	plan := func(of string) turn { return writes("plan", "The plan of "+of+".", 3000) }
	mine := "plan:\n  The plan of mine.\n"
	asks := tool.Refusal{Tool: "capsule_write", Rule: "capsule_type", Reason: "you write capsules of these types: plan",
		Instead: "Write one of these, or go on without it."}.Text()
	p.recordAll(
		p.talk(task, "Three.",
			one("capsule_read", `{"from":"children"}`, "you have no children\n", true),
			one("capsule_read", `{"from":"parent"}`, "you have no parent\n", true),
			plan("mine"),
			one("capsule_write", `{"capsule":"risk","text":"x"}`, asks, false),
			one("spawn", `{"task":"Open.","blueprint":"open"}`, "status: succeeded\nreport:\nDone.\nplan:\n  The plan of open.\n", true),
			one("spawn", `{"task":"Shy.","blueprint":"shy"}`, "status: succeeded\nreport:\nDone.\n", true),
			one("spawn", `{"task":"Read.","blueprint":"reader"}`, "status: succeeded\nreport:\nDone.\n", true),
			one("capsule_read", `{"from":"children"}`, "child 1, open, succeeded\nplan:\n  The plan of open.\nchild 2, shy, succeeded\n"+
				"it shows you nothing\nchild 3, reader, succeeded\nit shows you nothing\n", true),
			one("capsule_read", `{"from":"children","capsule":"manifest"}`, tool.Refusal{Tool: "capsule_read", Rule: "capsule_type",
				Reason:  "context.sources of your definition does not name artifact_manifests",
				Instead: "Read another type, or go on without it."}.Text(), false),
			one("artifact_read", `{"from":"children","artifact":"a.txt"}`, `not made: there is no tool "artifact_read"; `+
				"the tools are ask_person, capsule_read, capsule_write, code, createFile, deleteFile, editFile, html_to_markdown, md_read, "+
				"md_write, message, readFile, search, shell, spawn, read_result", false),
		),
		of["open"].child("Open.", "Done.", true, file, plan("open"), writes("status", "Open.", 1500)),
		of["shy"].child("Shy.", "Done.", true, plan("shy")),
		of["reader"].child("Read.\n\nThe plan of your parent:\n  The plan of mine.\n", "Done.", false,
			plan("reader"),
			one("capsule_read", `{"from":"siblings"}`, "sibling 1, open, succeeded\nstatus:\n  Open.\nplan:\n  The plan of open.\n"+
				"sibling 2, shy, succeeded\nit shows you nothing\n", true),
			one("capsule_read", `{"from":"siblings","number":3}`, "failed: from siblings the last number is 2", false),
			one("artifact_read", `{"from":"siblings","artifact":"a.txt"}`, notListed, false),
			one("artifact_read", `{"from":"siblings","number":2,"artifact":"a.txt"}`, notListed, false),
			one("artifact_read", `{"from":"parent","number":2,"artifact":"a.txt"}`, "failed: from parent the last number is 1", false),
			one("spawn", `{"task":"Deeper."}`, "status: succeeded\nreport:\nDone.\n", true),
		),
		// A grandchild reads what the root lets its descendants read, and not the siblings of its parent. Its parent shows itself to siblings.
		of["reader"].child("Deeper.", "Done.", true,
			one("capsule_read", `{"from":"ancestors"}`,
				"ancestor 1, reader, running\nit shows you nothing\nancestor 2, counter, running\n"+mine, true),
			one("capsule_read", `{"from":"siblings"}`, "you have no siblings\n", true),
			one("artifact_read", `{"from":"ancestors","number":2,"artifact":"a.txt"}`, notListed, false),
			one("artifact_read", `{"from":"ancestors","number":3,"artifact":"a.txt"}`, "failed: from ancestors the last number is 2", false),
		),
	)
	p.ends(p.start())
}

// TestLimitsOfCapsules writes capsules that are just short enough, one that is too long of each type, and one more than a run may have.
func TestLimitsOfCapsules(t *testing.T) {
	p := startPlayed(t, "comms: {capsules: [status, plan, decision, risk]}\n"+
		"context: {status_capsule_chars: 100, plan_capsule_chars: 101, decision_capsule_chars: 102}\n")
	var turns []turn
	for typ, most := range map[string]int{"status": 100, "plan": 101, "decision": 102, "risk": 100} {
		long := strings.Repeat("\u00e9", most+1)
		turns = append(turns, writes(typ, long[2:], most), one("capsule_write", fmt.Sprintf(`{"capsule":%q,"text":%q}`, typ, long),
			fmt.Sprintf("failed: the capsule has %d characters; at most %d are written\ninstead: Shorten it.", most+1, most), false))
	}
	const most = 200
	for n := len(turns) / 2; n < most; { // the loop makes 64 calls of an answer
		var many turn
		for ; n < most && len(many.calls) < 64; n++ {
			callID := fmt.Sprint("c", n)
			many.calls = append(many.calls, model.Call{ID: callID, Name: "capsule_write",
				Arguments: fmt.Sprintf(`{"capsule":"status","text":"at %03d"}`, n)})
			many.results = append(many.results, model.Result{ID: callID, Text: written("at 000", 100)})
		}
		turns = append(turns, many)
	}
	turns = append(turns, one("capsule_write", `{"capsule":"plan","text":"x"}`, tool.Refusal{Tool: "capsule_write", Rule: "capsule_limit",
		Reason: "a run writes at most 200 capsules", Instead: "Go on without them."}.Text(), false))
	if got := p.capsules(p.plays(turns...)); len(got) != most {
		t.Errorf("%d capsules are there", len(got))
	}
}

// TestAnotherRunIsNoRelative holds that a run of the same blueprint, in the same space and thread, reads nothing of an earlier one, and
// that what is not text, too long, or a secret is not read.
func TestAnotherRunIsNoRelative(t *testing.T) {
	const lines = "limits: {children: 1, depth: 1}\ncomms: {capsules: [plan, manifest]}\n" + everySource
	p := startPlayed(t, lines)
	p.inSpace(`"policy_overrides":{},"env":{"API_KEY":"hunter2hunter2"}`)
	nobody := func(from string) turn {
		return one("capsule_read", `{"from":"`+from+`"}`, "you have no "+from+"\n", true)
	}
	p.plays(writes("plan", "Of the first.", 3000),
		one("createFile", `{"path":"old.txt","content":"1\n"}`, "2 bytes written to old.txt\n", true))
	read := func(name, told string, ok bool, more ...string) turn {
		return one("artifact_read", `{"from":"children","artifact":"`+name+`"`+strings.Join(more, "")+`}`, told, ok)
	}
	child := "status: succeeded\nreport:\nDone.\nartifact: b.txt, text/plain, 5 bytes\nartifact: key.txt, text/plain, 49 bytes\n" +
		"artifact: long.txt, text/plain, 4194305 bytes\nartifact: most.txt, text/plain, 4194304 bytes\nartifact: old.txt, text/plain, 2 bytes\n"
	p.recordAll(
		p.talk(task, "Three.",
			nobody("parent"), nobody("ancestors"), nobody("siblings"), nobody("children"),
			one("artifact_read", `{"from":"siblings","artifact":"old.txt"}`, "failed: you have no siblings", false),
			one("spawn", `{"task":"Write."}`, child, true),
			read("old.txt", "characters 0 to 2 of 2:\n1\n", true),
			read("key.txt", "characters 0 to 35 of 35:\nthe keys are [redacted]\n[redacted]\n", true),
			read("key.txt", "characters 16 to 21 of 35:\ndacte", true, `,"offset":16,"length":5`),
			read("b.txt", "failed: the artifact is not a text in UTF-8, so you cannot read it", false),
			read("long.txt", "failed: an artifact with more than 4194304 bytes is not read\ninstead: Ask for a shorter one.", false),
			read("most.txt", "characters 4194303 to 4194304 of 4194304:\nx", true, `,"offset":4194303`),
			read("gone.txt", notListed, false),
		),
		p.child("Write.", "Done.", true,
			one("shell", `{"command":"printf '\\377\\376 b\\n' > b.txt; `+
				`printf 'the keys are AKIA%s\\n%s\\n' IOSFODNN7EXAMPLF \"$API_KEY\" > key.txt; `+
				`head -c 4194304 /dev/zero | tr '\\0' x > most.txt; head -c 4194305 /dev/zero | tr '\\0' x > long.txt"}`, "exit code: 0\n", true)),
	)
	p.ends(p.start())
}

// TestALabelHidesWhatARelativeMade labels the capsule and the file of a child, while the parent waits for a person and the daemon starts
// again. The requester of the run may not see them, so the parent does not either.
func TestALabelHidesWhatARelativeMade(t *testing.T) {
	p := startPlayed(t, "limits: {children: 1, depth: 1}\ncomms: {capsules: [plan, manifest]}\n"+everySource)
	ask := one("ask_person", `{"question":"Which colour?"}`, "A person has answered. Their words follow.", true)
	ask.heard = []string{"Green."}
	shown := "plan:\n  Write.\nartifact: a.txt, text/plain, 2 bytes\n"
	p.recordAll(
		p.talk(task, "Three.",
			one("spawn", `{"task":"Write."}`, "status: succeeded\nreport:\nDone.\n"+shown, true),
			one("capsule_read", `{"from":"children"}`, "child 1, counter, succeeded\n"+shown, true),
			ask,
			one("capsule_read", `{"from":"children"}`, "child 1, counter, succeeded\nit shows you nothing\n", true),
			one("artifact_read", `{"from":"children","artifact":"a.txt"}`, notListed, false),
		),
		p.child("Write.", "Done.", true, writes("plan", "Write.", 3000),
			one("createFile", `{"path":"a.txt","content":"1\n"}`, "2 bytes written to a.txt\n", true)),
	)
	parent := p.start()
	p.until(func() bool {
		raw, _ := p.d.send("GET", "/v1/threads/"+p.thread+"/messages", "", "")
		return strings.Contains(string(raw), "Which colour?")
	})
	p.d.stop()
	p.begin()
	made, err := p.d.app.Engines.Look.Artifacts(t.Context(), id.DefaultWorkspace, engines.Of{Run: p.children(parent)[0].ID}, "", 10)
	if err != nil || len(made) != 2 {
		t.Fatalf("%d artifacts, %v", len(made), err)
	}
	for _, a := range made {
		p.d.ask("POST", "/v1/resources/labels", `{"resource_type":"artifact","resource_id":"`+string(a.ID)+`","label":"confidential"}`, "")
	}
	p.d.ask("POST", "/v1/threads/"+p.thread+"/messages", `{"content_md":"Green."}`, "")
	p.ends(parent)
}

// TestAParentDeniesToolsOfCapsules holds that a sub-agent has the tools of capsules of its own blueprint, but for those that its parent's
// blueprint denies. The cassette knows which tools it is offered.
func TestAParentDeniesToolsOfCapsules(t *testing.T) {
	p, of := family(t, "limits: {children: 1, depth: 1}\ncomms: {spawn: [reporter]}\ntools: {deny: [capsule_read]}\n",
		map[string]string{"reporter": "comms: {capsules: [plan, manifest]}\n" + everySource})
	child := of["reporter"].child("Write.", "Done.", true, writes("plan", "Write.", 3000),
		one("artifact_read", `{"from":"parent","artifact":"a.txt"}`, notListed, false))
	child.offered = slices.DeleteFunc(child.offered, func(t tool.Tool) bool { return t.Name == "capsule_read" })
	p.recordAll(
		p.talk(task, "Three.", one("spawn", `{"task":"Write.","blueprint":"reporter"}`, "status: succeeded\nreport:\nDone.\n", true)),
		child,
	)
	p.ends(p.start())
}
