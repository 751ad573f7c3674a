package httpapi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/surface/httpapi/wire"
	"agentbox/internal/testkit"
)

// deeds are what people and agents ask the services for, in any order. The words in braces stand for what earlier deeds made.
var deeds = map[string]struct{ method, path, body, made, name string }{
	"space":    {"POST", "/v1/spaces", `{"runtime":"nano"}`, "id", "space"},
	"heavy":    {"POST", "/v1/spaces", `{"runtime":"nano","policy":"permissive"}`, "id", "space"},
	"fork":     {"POST", "/v1/spaces/{space}/fork", `{}`, "id", "space"},
	"rename":   {"PATCH", "/v1/spaces/{space}", `{"description":"another"}`, "", ""},
	"extend":   {"POST", "/v1/spaces/{space}/extend", `{"duration_seconds":7200}`, "", ""},
	"stricter": {"POST", "/v1/spaces/{space}/policy", `{"policy":"restrictive"}`, "", ""},
	"wider":    {"POST", "/v1/spaces/{space}/policy", `{"policy":"permissive"}`, "", ""},
	"destroy":  {"DELETE", "/v1/spaces/{space}", ``, "", ""},
	"upload":   {"PUT", "/v1/spaces/{space}/files/a.txt", `{"text":"plain"}`, "", ""},
	"withhold": {"PUT", "/v1/spaces/{space}/files/.env", `{"text":"ghp_1A2b3C4d5E6f7G8h9I0j1K2l3M4n5O6p7Q8r"}`, "", ""},
	"remove":   {"DELETE", "/v1/spaces/{space}/files/a.txt", ``, "", ""},
	"run": {"POST", "/v1/spaces/{space}/runs",
		`{"protocolVersion":"1.0","wait_seconds":1,"operations":[{"type":"shell","command":"echo ` +
			`a"},{"type":"createFile","path":"b","content":"c"}]}`, "runId", "run"},
	"refused": {"POST", "/v1/spaces/{space}/runs",
		`{"protocolVersion":"1.0","wait_seconds":1,"operations":[{"type":"shell","command":"sudo a"}]}`, "runId", "run"},
	"asks": {"POST", "/v1/spaces/{space}/runs",
		`{"protocolVersion":"1.0","wait_seconds":1,"operations":[{"type":"shell","id":"o","command":"rm -r ` +
			`b"},{"type":"message","content":"then"}]}`, "runId", "run"},
	"leaks": {"POST", "/v1/spaces/{space}/runs",
		`{"protocolVersion":"1.0","wait_seconds":1,"operations":[{"type":"shell","command":"echo ghp_1A2b3C4d5E6f7G8h9I0j1K2l3M4n5O6p7Q8r"}]}`,
		"runId", "run"},
	"sleeps": {"POST", "/v1/spaces/{space}/runs",
		`{"protocolVersion":"1.0","wait_seconds":0,"operations":[{"type":"shell","command":"sleep 100"},{"type":"shell","command":"echo b"}]}`,
		"runId", "run"},
	"rewind":     {"POST", "/v1/spaces/{space}/rewind", `{"to":"{run}"}`, "", ""},
	"approve":    {"POST", "/v1/spaces/{space}/runs/{run}/resume", `{"approval":{"operationId":"o","decision":"approved"}}`, "", ""},
	"deny":       {"POST", "/v1/spaces/{space}/runs/{run}/resume", `{"approval":{"operationId":"o","decision":"denied"}}`, "", ""},
	"cancel":     {"POST", "/v1/runs/{run}/cancel", `{"reason":"enough"}`, "", ""},
	"retain":     {"POST", "/v1/runs/{run}/retention", `{"retention":"30d"}`, "", ""},
	"forget":     {"POST", "/v1/audit/redactions", `{"run_id":"{run}","reason":"a mistake"}`, "", ""},
	"throw":      {"PUT", "/v1/kill-switch", `{"on":true,"reason":"odd"}`, "", ""},
	"lift":       {"PUT", "/v1/kill-switch", `{"on":false}`, "", ""},
	"room":       {"POST", "/v1/rooms", `{"title":"lab"}`, "", ""},
	"thread":     {"POST", "/v1/rooms/" + string(id.DefaultRoom) + "/threads", `{"title":"talk"}`, "thread_id", "thread"},
	"message":    {"POST", "/v1/threads/{thread}/messages", `{"content_md":"hello"}`, "", ""},
	"leaky talk": {"POST", "/v1/threads/{thread}/messages", `{"content_md":"ghp_1A2b3C4d5E6f7G8h9I0j1K2l3M4n5O6p7Q8r"}`, "", ""},
	"order": {"POST", "/v1/runs", `{"room_id":"` + string(id.DefaultRoom) +
		`","title":"for an engine","input":{"key":"ghp_1A2b3C4d5E6f7G8h9I0j1K2l3M4n5O6p7Q8r"}}`, "run_id", "order"},
	"claim":   {"POST", "/v1/runs/claim", `{}`, "claim_token", "claim"},
	"renew":   {"POST", "/v1/runs/{order}/lease/heartbeat", `{"claim_token":"{claim}"}`, "", ""},
	"release": {"POST", "/v1/runs/{order}/lease/release", `{"claim_token":"{claim}"}`, "", ""},
	"step":    {"POST", "/v1/runs/{order}/steps", `{"kind":"work","claim_token":"{claim}"}`, "step_id", "step"},
	"call":    {"POST", "/v1/steps/{step}/toolcalls", `{"tool_name":"look","claim_token":"{claim}"}`, "tool_call_id", "call"},
	"called": {"POST", "/v1/toolcalls/{call}/succeed", `{"output":"ghp_1A2b3C4d5E6f7G8h9I0j1K2l3M4n5O6p7Q8r","claim_token":"{claim}"}`, "",
		""},
	"complete": {"POST", "/v1/runs/{order}/complete", `{"claim_token":"{claim}"}`, "", ""},
	"question": {"POST", "/v1/approvals", `{"action":"email.send","target":"ada@example.com","request":{"n":1}}`, "approval_id", "approval"},
	"answer":   {"POST", "/v1/approvals/{approval}/decide", `{"decision":"approve"}`, "", ""},
	"act": {"POST", "/v1/policy/evaluate", `{"action":"email.send","zone":"high_stakes","target":"ada@example.com","request":{"n":1}}`,
		"", ""},
	"withdraw": {"POST", "/v1/approvals/{approval}/withdraw", `{"reason":"done"}`, "", ""},
	"incident": {"POST", "/v1/incidents", `{"title":"it broke"}`, "incident_id", "incident"},
	"analyse":  {"POST", "/v1/incidents/{incident}/rca", `{"summary":"it was old"}`, "", ""},
	"label":    {"POST", "/v1/resources/labels", `{"resource_type":"person","resource_id":"a","label":"confidential"}`, "", ""},
	"access":   {"POST", "/v1/data/access/requests", `{"resource_type":"person","resource_id":"a","action":"read"}`, "", ""},
	"declare":  {"PUT", "/v1/action-types/deploy.it", `{"description":"deploy","side_effect":"network","target_kinds":["host"]}`, "", ""},
	"retire":   {"DELETE", "/v1/action-types/deploy.it", ``, "", ""},
	"grant": {"POST", "/v1/capabilities/grant",
		`{"issued_to_principal_id":"{owner}","scopes":{"rooms":["*"],"action_types":["run.start"]}}`, "token_id", "token"},
	"revoke": {"POST", "/v1/capabilities/revoke", `{"token_id":"{token}"}`, "", ""},
	"sweep":  {"POST", "/v1/content/sweep", ``, "", ""},
}

// chains are deeds of which each needs the one before it.
var chains = [][]string{
	{"order", "claim", "step", "call", "called", "complete"}, {"order", "claim", "renew", "release"}, {"order", "claim", "step", "throw"},
	{"question", "answer", "act"}, {"question", "withdraw"}, {"grant", "revoke"}, {"declare", "retire"}, {"incident", "analyse"},
	{"label", "access"},
	{"heavy", "sleeps", "throw", "lift"}, {"heavy", "sleeps", "cancel"}, {"heavy", "sleeps", "destroy"}, {"space", "asks", "approve"},
	{"space", "asks", "deny"}, {"space", "asks", "cancel"},
	{"space", "run", "rewind", "fork"}, {"space", "leaks", "forget"}, {"space", "upload", "withhold", "remove"}, {"heavy", "run", "stricter",
		"wider"}, {"space", "run", "retain", "sweep"},
}

// causal looks at the events of a log as they come, and at how each follows from others.
type causal struct {
	d     *daemon
	seen  map[id.Event]event.Event
	next  uint64
	ended int // effects that the kill switch ended
	leaks int
	done  map[string]int // deeds that succeeded
}

// play does deeds one after the other, looks at the log after each, and leaves no space behind.
func (c *causal) play(rt rapid.TB, t *testing.T, order []string) {
	made, spaces := map[string]string{"owner": string(c.d.app.Owner)}, []string{}
	for _, name := range append([]string{"lift", "space", "thread"}, order...) {
		deed := deeds[name]
		if name == "sleeps" && c.busy(t, id.Space(made["space"])) {
			continue // it would wait for its turn
		}
		path, ok := filled(deed.path, made)
		body, also := filled(deed.body, made)
		if !ok || !also {
			continue
		}
		status, raw := c.d.ask(t, "", deed.method, path, body)
		if status >= 500 {
			rt.Fatalf("%s: %d %s", name, status, raw)
		}
		var answer map[string]any
		if _ = json.Unmarshal(raw, &answer); status < 300 {
			c.done[name]++
			if text, ok := answer[deed.made].(string); ok && text != "" {
				if made[deed.name] = text; deed.name == "space" {
					spaces = append(spaces, text)
				}
			}
			if r, ok := answer["run"].(map[string]any); ok && name == "claim" {
				made["order"] = fmt.Sprint(r["run_id"])
			}
			if name == "sleeps" {
				c.awaken(t, id.Run(made["run"]))
			}
		}
		c.look(rt, t)
	}
	c.d.must(t, "PUT", "/v1/kill-switch", `{"on":false}`, "")
	for _, in := range spaces { // so that there is never one too many; what sleeps ends
		c.d.ask(t, "", "DELETE", "/v1/spaces/"+in, "")
	}
	c.look(rt, t)
}

// look checks what was recorded since it looked last.
func (c *causal) look(t rapid.TB, ctx *testing.T) {
	for {
		found, err := c.d.app.Log.Read(ctx.Context(), journal.Query{Workspace: id.DefaultWorkspace, From: c.next, Limit: journal.MaxRead})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range found {
			c.check(t, e)
			c.seen[e.ID], c.next = e, e.Seq+1
		}
		if len(found) < journal.MaxRead {
			return
		}
	}
}

// busy reports whether a run of a space has not ended.
func (c *causal) busy(t *testing.T, in id.Space) bool {
	t.Helper()
	doc, err := c.d.app.Spaces.Catalog.Space(t.Context(), id.DefaultWorkspace, in)
	return err != nil || doc.ActiveRun != ""
}

// awaken waits until the first operation of a run has begun or has come to nothing.
func (c *causal) awaken(t *testing.T, r id.Run) {
	t.Helper()
	for _, err := range journal.Tail(t.Context(), c.d.app.Log, journal.Query{Workspace: id.DefaultWorkspace, Run: r,
		Types: []string{run.EventInvoked, run.EventErred, run.EventCompleted, run.EventCancelled, run.EventFailed}}) {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}

func (c *causal) check(t rapid.TB, e event.Event) {
	if e.Correlation == "" {
		t.Errorf("%d %s has no correlation", e.Seq, e.Type)
	}
	cause, earlier := c.seen[e.Causation]
	switch {
	case e.Causation == "" && slices.Contains(follows, e.Type):
		t.Errorf("%d %s names no cause", e.Seq, e.Type)
	case e.Causation == "":
	case !earlier:
		t.Errorf("%d %s names %s, which is not an earlier event of its workspace", e.Seq, e.Type, e.Causation)
	case cause.Correlation != e.Correlation && !crosses(e, cause):
		t.Errorf("%d %s has the correlation %s, and its cause %d %s has %s", e.Seq, e.Type, e.Correlation, cause.Seq, cause.Type,
			cause.Correlation)
	}
	// Each cause is earlier, so that there is no cycle; that the way ends is seen by going it.
	steps := map[id.Event]bool{}
	for at := e; at.Causation != ""; at = c.seen[at.Causation] {
		if steps[at.ID] {
			t.Fatalf("%d %s is its own cause", e.Seq, e.Type)
		}
		steps[at.ID] = true
	}
	switch e.Type {
	case leak.EventDetected:
		c.leaks++
		if told, err := event.Decode[leak.Detected](e); err != nil || told.Event != e.Causation && e.Withheld == "" {
			t.Errorf("%d tells of %+v and is caused by %s, %v", e.Seq, told, e.Causation, err)
		}
	case run.EventErred:
		d, err := event.Decode[run.Ended](e)
		if err != nil || e.Withheld != "" || d.Result == nil || d.Result.ReasonCode != policy.ReasonKillSwitch || !begun(c.seen, e) {
			return
		}
		if c.ended++; cause.Type != policy.KillSwitchThrownType {
			t.Errorf("%d %s was ended by the kill switch and names %d %s as its cause", e.Seq, e.Type, cause.Seq, cause.Type)
		}
	}
}

// begun reports whether the operation of a result had begun.
func begun(seen map[id.Event]event.Event, ended event.Event) bool {
	d, err := event.Decode[run.Ended](ended)
	if err != nil {
		return false
	}
	for _, e := range seen {
		if e.Run == ended.Run && e.Type == run.EventInvoked {
			if b, err := event.Decode[run.Invoked](e); err == nil && b.Index == d.Index {
				return true
			}
		}
	}
	return false
}

// TestEachEventFollowsFromAnEarlierOne asks the services for anything in any order, as a seed wills, and holds every event that is
// recorded against what must be of causes: the cause is there, earlier and of the same workspace, its correlation is inherited, and no
// way of causes comes back to itself.
func TestEachEventFollowsFromAnEarlierOne(t *testing.T) {
	d := startDaemon(t, func(c *app.Config) {
		c.Rates, c.Light = wire.DefaultRates(), &testkit.Light{}
		c.Rates.Spaces, c.Rates.Runs, c.Rates.Files, c.Rates.General = 1_000_000, 1_000_000, 1_000_000, 1_000_000
	})
	d.succeed(t, "PATCH", "/v1/workspaces/"+string(id.DefaultWorkspace), `{"max_concurrent_tasks":100}`, nil)
	names := make([]string, 0, len(deeds))
	for name := range deeds {
		names = append(names, name)
	}
	slices.Sort(names)
	c := &causal{d: d, seen: map[id.Event]event.Event{}, next: 1, done: map[string]int{}}
	// Everything once, so that something is said of it, and then as a seed wills.
	seldom := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(chains, func(chain []string) bool { return slices.Contains(chain, name) })
	})
	for _, chain := range append(slices.Clone(chains), seldom) {
		c.play(t, t, chain)
	}
	for _, name := range names {
		if c.done[name] == 0 {
			t.Errorf("%s never succeeds, so that nothing is said of it", name)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		var order []string
		for _, chain := range rapid.SliceOfN(rapid.SampledFrom(chains), 1, 3).Draw(rt, "chains") {
			order = append(order, chain...)
		}
		for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 6).Draw(rt, "others") {
			order = slices.Insert(order, rapid.IntRange(0, len(order)).Draw(rt, "place"), name)
		}
		c.play(rt, t, order)
	})
	if c.ended == 0 || c.leaks == 0 {
		t.Errorf("the kill switch ended %d effects, and %d leaks were told of: nothing is said of them", c.ended, c.leaks)
	}
	t.Logf("%d events, %d effects that the kill switch ended, %d leaks", len(c.seen), c.ended, c.leaks)
}

// filled puts what was made into a text, and reports whether all of it was there.
func filled(text string, made map[string]string) (string, bool) {
	var out []byte
	for i := 0; i < len(text); i++ {
		end := i + 1
		for end < len(text) && text[end] >= 'a' && text[end] <= 'z' {
			end++
		}
		if text[i] != '{' || end == i+1 || end == len(text) || text[end] != '}' {
			out = append(out, text[i])
			continue
		}
		value, ok := made[text[i+1:end]]
		if !ok {
			return "", false
		}
		out = append(out, value...)
		i = end
	}
	return string(out), true
}
