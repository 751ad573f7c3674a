package rules_test

import (
	"testing"

	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/service/gate/rules"
)

// TestToolsOfServers asks about every call of a tool of an MCP server, in every preset, unless the policy names the tool. A server in the space
// is reached, whatever hosts are named.
func TestToolsOfServers(t *testing.T) {
	in, out, asks := policy.Allow, policy.Deny, policy.RequireApproval
	for _, c := range []struct {
		text string
		call policy.Outcome // of the tool shop__buy
		tell policy.Outcome // to record that it is called; the zero value where nothing is said of that
	}{
		{"base: restrictive", asks, ""}, {"base: standard", asks, ""}, {"base: permissive", asks, ""}, {"files: {read: true}", asks, ""},
		{"allow: {tools: [shop__buy]}", in, in},
		{"allow: {tools: [shop__sell]}", asks, ""},
		{"deny: {tools: [shop__buy]}", out, out},
		{"allow: {tools: [shop__buy]}\ndeny: {tools: [shop__buy]}", out, out},
		{"allow: {tools: [shop__buy]}\nask: {tools: [shop__buy]}", asks, in},
		{"ask: {tools: [shop__buy]}", asks, ""},
		{"deny: {actions: [mcp.call]}", out, ""},
	} {
		b, err := rules.FromYAML([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		for _, f := range []struct {
			action, target string
			want           policy.Outcome
		}{
			{policy.MCPCall, "https://a.example:443/", c.call}, {policy.MCPCall, "", c.call}, {policy.ToolCall, "", c.tell},
			{policy.MCPConnect, "", in}, {policy.MCPConnectPrivate, "", out},
		} {
			facts := policy.Facts{Principal: "agt_00000000000000000000000001", Workspace: "ws_dev", Action: f.action, Tool: "shop__buy",
				Target: f.target}
			if f.action != policy.MCPCall && f.action != policy.ToolCall {
				facts.Tool = ""
			}
			v, err := cedar.New().Evaluate(b, facts)
			got := v.Outcome
			if !v.Matched() && f.want == "" {
				got = ""
			}
			if err != nil || got != f.want {
				t.Errorf("%s: %s %q: got %q, %v, want %q", c.text, f.action, f.target, got, err, f.want)
			}
		}
		viewer := policy.Facts{Principal: "usr_00000000000000000000000001", Workspace: "ws_dev", Action: policy.MCPCall, Tool: "shop__buy",
			Role: "viewer"}
		if v, err := cedar.New().Evaluate(b, viewer); err != nil || v.Outcome != out {
			t.Errorf("%s: a viewer: got %s, %v", c.text, v.Outcome, err)
		}
	}
}
