package rules_test

import (
	"testing"

	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/service/gate/rules"
)

// TestToolsOfServers asks about every call of a tool of an MCP server, in every preset, unless the policy names the tool. A server in the
// space is reached, whatever hosts are named.
func TestToolsOfServers(t *testing.T) {
	const in, out, asks, nothing = "allow", "deny", "require_approval", "nothing"
	for _, c := range []struct {
		text string
		call string // the tool shop__buy
		tell string // record that it is called
	}{
		{"preset: restrictive", asks, nothing}, {"preset: standard", asks, nothing},
		{"preset: permissive", asks, nothing}, {"files: {read: true}", asks, nothing},
		{"allow: {tools: [shop__buy]}", in, in},
		{"allow: {tools: [shop__sell]}", asks, nothing},
		{"deny: {tools: [shop__buy]}", out, out},
		{"allow: {tools: [shop__buy]}\ndeny: {tools: [shop__buy]}", out, out},
		{"allow: {tools: [shop__buy]}\nask: {tools: [shop__buy]}", asks, in},
		{"ask: {tools: [shop__buy]}", asks, nothing},
		{"deny: {actions: [mcp.call]}", out, nothing},
	} {
		b, err := rules.FromYAML([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		for _, f := range []struct {
			action, target string
			want           string
		}{
			{policy.MCPCall, "https://a.example:443/", c.call}, {policy.MCPCall, "", c.call}, {policy.ToolCall, "", c.tell},
			{policy.MCPConnect, "", in}, {policy.MCPConnectPrivate, "", nothing},
		} {
			facts := policy.Facts{Principal: "agt_00000000000000000000000001", Workspace: "ws_dev", Action: f.action, Tool: "shop__buy",
				Target: f.target}
			if f.action != policy.MCPCall && f.action != policy.ToolCall {
				facts.Tool = ""
			}
			v, err := cedar.New().Evaluate(b, facts)
			got := v.Outcome.String()
			if !v.Matched() {
				got = nothing
			}
			if err != nil || got != f.want {
				t.Errorf("%s: %s %q: got %q, %v, want %q", c.text, f.action, f.target, got, err, f.want)
			}
		}
		viewer := policy.Facts{Principal: "usr_00000000000000000000000001", Workspace: "ws_dev", Action: policy.MCPCall, Tool: "shop__buy",
			Role: "viewer"}
		if v, err := cedar.New().Evaluate(b, viewer); err != nil || v.Outcome != policy.Deny {
			t.Errorf("%s: a viewer: got %s, %v", c.text, v.Outcome, err)
		}
	}
}
