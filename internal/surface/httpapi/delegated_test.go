package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
)

// one is a run of a single command that waits for its end.
const one = `{"wait_seconds":20,"protocolVersion":"1.0","operations":[{"type":"shell","command":"echo done > made.txt"}]}`

// TestAnAgentStartsRunsUnderATokenThatNamesThem has agents and services start runs in a space: with their own key, and under tokens that
// say so, nearly so and not at all.
func TestAnAgentStartsRunsUnderATokenThatNamesThem(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	ctx, ws, owner := t.Context(), id.DefaultWorkspace, event.Origin{Principal: d.app.Owner}
	other := d.must(t, "POST", "/v1/rooms", `{"title":"other"}`, "room_id")
	here := d.must(t, "POST", "/v1/spaces", `{}`, "id")
	there := d.must(t, "POST", "/v1/spaces", fmt.Sprintf(`{"room_id":%q}`, other), "id")
	strict := d.must(t, "POST", "/v1/spaces", `{"policy":"restrictive"}`, "id")
	own := d.must(t, "POST", "/v1/spaces", `{"policy_overrides":{"allow":{"actions":["run.start"],"commands":["echo"]}}}`, "id")
	shut := d.must(t, "POST", "/v1/spaces", `{"policy_overrides":{"deny":{"actions":["run.start"]}}}`, "id")

	agent, err := d.app.Identity.Agent(ctx, owner, ws, "stranger")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = d.app.Identity.Agent(ctx, owner, ws, "second"); err != nil {
		t.Fatal(err)
	}
	service, err := d.app.Identity.AddService(ctx, owner, ws, "builder")
	if err != nil {
		t.Fatal(err)
	}
	admin, err := d.app.Identity.AddPerson(ctx, owner, ws, "ada", principal.Admin)
	if err != nil {
		t.Fatal(err)
	}
	if d.keys["service"], _, err = d.app.Identity.IssueKey(ctx, owner, ws, service.ID, "builder"); err != nil {
		t.Fatal(err)
	}
	named := token.Scopes{
		Rooms: []string{string(id.DefaultRoom)}, Tools: []string{token.Any}, Actions: []string{"run.start", "shell.exec", "file.create"},
		Data: token.Data{Read: []string{"file", "run", "space"}, Write: []string{"file"}},
	}
	with := func(actions ...string) token.Scopes {
		s := named
		s.Actions = actions
		return s
	}
	root := d.granted(t, "named", agent, named, "", d.app.Owner)
	d.granted(t, "derived", agent, named, root, agent)
	d.granted(t, "narrowed", agent, with("run.start", "file.create"), root, agent)
	any := d.granted(t, "any", agent, with("*"), "", d.app.Owner)
	d.granted(t, "widened", agent, with("run.start", "shell.exec"), any, agent)
	d.granted(t, "reads", agent, with("file.read"), "", d.app.Owner)
	d.granted(t, "engine", service.ID, named, "", d.app.Owner)
	d.granted(t, "hers", agent, named, "", admin)

	start := func(who, space, body string) (status int, reason string, answer string) {
		t.Helper()
		status, raw := d.ask(t, who, "POST", "/v1/spaces/"+space+"/runs", body)
		return status, code(raw), string(raw)
	}
	for _, c := range []struct {
		name, who, space string
		status           int
		reason           string
	}{
		{"an agent with its own key", "agent", here, 403, "no_policy_allows"},
		{"a service with its own key", "service", here, 403, "no_policy_allows"},
		{"an agent under a token that names it", "named", here, 201, ""},
		{"an agent under a token that was derived from that", "derived", here, 201, ""},
		{"a service under a token that names it", "engine", here, 201, ""},
		{"an agent under a token of an admin", "hers", here, 201, ""},
		{"a token that says any action", "any", here, 403, "no_policy_allows"},
		{"a token that was derived from one that says any action", "widened", here, 403, "no_policy_allows"},
		{"a token that names another action", "reads", here, 403, "capability_scope_action_not_allowed"},
		{"a token for another room", "named", there, 403, "capability_scope_room_not_allowed"},
		{"a policy that does not give it", "named", strict, 403, "no_policy_allows"},
		{"a policy that gives it to all, own key", "agent", own, 201, ""},
		{"a policy that gives it to all, service", "service", own, 201, ""},
		{"a viewer where the policy gives it to agents", "viewer", own, 403, "role_not_permitted"},
		{"a policy that refuses it, token", "named", shut, 403, "policy_forbids"},
		{"a policy that refuses it, owner", "", shut, 403, "policy_forbids"},
	} {
		status, reason, answer := start(c.who, c.space, one)
		if status != c.status || reason != c.reason || status < 300 && !strings.Contains(answer, `"success":true`) {
			t.Errorf("%s: got %d %s %s, want %d %s", c.name, status, reason, answer, c.status, c.reason)
		}
	}

	// Who is refused is told how to come to it, where there is a way.
	for _, c := range []struct{ who, space, hint string }{
		{"agent", here, "agentbox token grant AGENT --action run.start"}, {"service", here, "agentbox token grant SERVICE --action run.start"},
		{"any", here, "agentbox token grant AGENT --action run.start"}, {"named", strict, "this one does not"},
	} {
		if _, _, answer := start(c.who, c.space, one); !strings.Contains(answer, c.hint) {
			t.Errorf("%s is told %s, want %q in it", c.who, answer, c.hint)
		}
	}

	// The token also binds the operations of the run.
	if _, _, answer := start("narrowed", here, one); !strings.Contains(answer, "capability_scope_action_not_allowed") {
		t.Errorf("under a token without shell.exec: got %s", answer)
	}
	// The example of `agentbox token grant --help`.
	d.granted(t, "example", agent, token.Scopes{Rooms: []string{token.Any}, Actions: []string{"run.start", "file.read"},
		Data: token.Data{Read: []string{"file", "run"}}}, "", d.app.Owner)
	if status, _, answer := start("example", here, strings.Replace(one, `"type":"shell","command":"echo done > made.txt"`,
		`"type":"readFile","path":"made.txt"`, 1)); !strings.Contains(answer, `"done\n"`) {
		t.Errorf("the example of the help: got %d %s", status, answer)
	}
	// An agent acts as itself or as the space's agent, and as nobody else.
	for name, status := range map[string]int{"stranger": 201, "second": 403} {
		body := fmt.Sprintf(`{"agent":{"name":%q},%s`, name, one[1:])
		if got, reason, _ := start("named", here, body); got != status {
			t.Errorf("as %s: got %d %s", name, got, reason)
		}
	}
	// Rights that a person handed on rest with them: a viewer starts no run by somebody else's hand either.
	if _, err := d.app.Identity.ChangeRole(ctx, owner, ws, admin, principal.Viewer); err != nil {
		t.Fatal(err)
	}
	if status, reason, _ := start("hers", here, one); status != 403 || reason != "no_policy_allows" {
		t.Errorf("under a token of who is a viewer now: %d %s", status, reason)
	}
	d.must(t, "POST", "/v1/capabilities/revoke", `{"token_id":"`+string(root)+`"}`, "")
	for _, who := range []string{"named", "derived"} {
		if status, reason, _ := start(who, here, one); status < 400 {
			t.Errorf("%s after the revocation: %d %s", who, status, reason)
		}
	}
}
