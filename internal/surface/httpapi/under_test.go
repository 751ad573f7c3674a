package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/step"
	"agentbox/internal/domain/token"
)

// granted issues a capability token of the owner's; its bearer is the key of that name.
func (d *daemon) granted(t *testing.T, name string, to id.Principal, s token.Scopes, parent id.Token, by id.Principal) id.Token {
	t.Helper()
	made, err := d.app.Identity.Grant(t.Context(), event.Origin{Principal: by}, id.DefaultWorkspace, token.Grant{IssuedTo: to, Scopes: s,
		Parent: parent})
	if err != nil {
		t.Fatal(err)
	}
	d.keys[name] = made.Bearer
	return made.ID
}

// TestAToolIsCalledUnderTheTokenThatTheBodyNames names the caller's, an agent's, a derived and somebody else's capability token.
func TestAToolIsCalledUnderTheTokenThatTheBodyNames(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	agent, err := d.app.Identity.Agent(t.Context(), event.Origin{Principal: d.app.Owner}, id.DefaultWorkspace, "stranger")
	if err != nil {
		t.Fatal(err)
	}
	service, err := d.app.Identity.AddService(t.Context(), event.Origin{Principal: d.app.Owner}, id.DefaultWorkspace, "engine")
	if err != nil {
		t.Fatal(err)
	}
	only := func(tool string) token.Scopes {
		s := token.All()
		s.Tools = []string{tool}
		return s
	}
	own := d.granted(t, "own", d.app.Owner, only("saw"), "", d.app.Owner)
	agents := d.granted(t, "agents", agent, token.All(), "", d.app.Owner)
	derived := d.granted(t, "derived", agent, only("saw"), agents, agent)
	d.granted(t, "engine", service.ID, only("saw"), "", d.app.Owner)
	run := d.must(t, "POST", "/v1/runs", `{"room_id":"`+string(id.DefaultRoom)+`"}`, "run_id")
	d.must(t, "POST", "/v1/runs/"+run+"/start", `{}`, "run_id")
	path := "/v1/steps/" + d.must(t, "POST", "/v1/runs/"+run+"/steps", `{"kind":"work"}`, "step_id") + "/toolcalls"
	for _, c := range []struct {
		name, who, tool, more string
		status                int
		reason                string
		under                 id.Token
	}{
		{"one's own", "", "saw", `"capability_token_id":"` + string(own) + `"`, 201, policy.ReasonDefaultAllow, own},
		{"one's own that does not permit it", "", "drill", `"capability_token_id":"` + string(own) + `"`, 200, policy.ReasonScopeTool, ""},
		{"somebody else's", "member", "saw", `"capability_token_id":"` + string(own) + `"`, 200, policy.ReasonTokenMismatch, ""},
		{"an agent's", "", "saw", `"agent_id":"` + string(agent) + `","capability_token_id":"` + string(derived) + `"`, 201,
			policy.ReasonDefaultAllow, derived},
		{"an agent's that does not permit it", "", "drill", `"agent_id":"` + string(agent) + `","capability_token_id":"` + string(derived) + `"`,
			200, policy.ReasonScopeTool, ""},
		{"an agent's, by an engine under its own", "engine", "saw", `"agent_id":"` + string(agent) + `","capability_token_id":"` +
			string(agents) + `"`, 201, policy.ReasonDefaultAllow, agents},
		{"an agent's, by an engine whose own does not permit it", "engine", "drill", `"agent_id":"` + string(agent) +
			`","capability_token_id":"` + string(agents) + `"`, 403, policy.ReasonScopeTool, ""},
		{"one that was derived from the caller's", "agents", "saw", `"capability_token_id":"` + string(derived) + `"`, 201,
			policy.ReasonDefaultAllow, derived},
		{"one from which the caller's was derived", "derived", "drill", `"capability_token_id":"` + string(agents) + `"`, 403,
			policy.ReasonTokenMismatch, ""},
	} {
		status, raw := d.ask(t, c.who, "POST", path, `{"tool_name":"`+c.tool+`",`+c.more+`}`)
		var got struct {
			ID     string `json:"tool_call_id"`
			Reason string `json:"reason_code"`
			Error  string `json:"error"`
		}
		if err := json.Unmarshal(raw, &got); err != nil || status != c.status || got.Reason+got.Error != c.reason {
			t.Errorf("%s: %d %s", c.name, status, raw)
			continue
		}
		if c.under == "" {
			continue
		}
		invoked := d.recorded(t, step.EventInvoked)
		if last := invoked[len(invoked)-1]; last.EntityID != got.ID || !strings.Contains(string(last.PolicyContext), string(c.under)) {
			t.Errorf("%s: recorded under %s, want %s", c.name, last.PolicyContext, c.under)
		}
	}
}

// TestWhoActsUnderATokenAsksUnderOneThatWasDerivedFromIt asks before it acts outside, under the bearer of one token and in the name of
// another.
func TestWhoActsUnderATokenAsksUnderOneThatWasDerivedFromIt(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	agent, err := d.app.Identity.Agent(t.Context(), event.Origin{Principal: d.app.Owner}, id.DefaultWorkspace, "stranger")
	if err != nil {
		t.Fatal(err)
	}
	near := token.All()
	near.Domains = []string{"good.example"}
	wide := d.granted(t, "wide", agent, token.All(), "", d.app.Owner)
	narrow := d.granted(t, "narrow", agent, near, wide, agent)
	for _, c := range []struct {
		who, target string
		named       id.Token
		want        string
	}{
		{"wide", "good.example", narrow, policy.ReasonDefaultAllow},
		{"wide", "evil.example", narrow, policy.ReasonScopeDomain},
		{"wide", "evil.example", "", policy.ReasonDefaultAllow},
		{"narrow", "evil.example", wide, policy.ReasonTokenMismatch},
		{"agent", "https://evil.example?@good.example", narrow, policy.ReasonScopeDomain},
	} {
		got := d.evaluate(t, c.who, `{"action":"api.call.idempotent","method":"GET","target":"`+c.target+`","capability_token_id":"`+
			string(c.named)+`"}`)
		if got.Code+got.Error != c.want {
			t.Errorf("%s, %s under %s: got %+v, want %s", c.who, c.target, c.named, got, c.want)
		}
	}
}
