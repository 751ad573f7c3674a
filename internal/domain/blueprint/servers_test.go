package blueprint_test

import (
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/blueprint"
)

// TestServersOfABlueprint are referred to once each, also where single tools are named.
func TestServersOfABlueprint(t *testing.T) {
	b := blueprint.Blueprint{APIVersion: 1, Name: "a", Adapter: blueprint.Adapter{Kind: blueprint.Internal},
		Models: map[string]string{"default": "m"}, Tools: blueprint.Tools{MCP: []string{"shop", "files__read", "files__write"},
			Deny: []string{"shop__sell"}}}
	var names []string
	for _, r := range b.References() {
		if r.Kind == blueprint.ToMCP {
			names = append(names, r.String())
		}
	}
	if !slices.Equal(names, []string{"mcp.files", "mcp.shop"}) {
		t.Errorf("got %v", names)
	}
	for tool, want := range map[string]bool{"shop__buy": true, "shop__sell": false, "files__read": true, "files__move": false,
		"web__get": false} {
		server, _, _ := strings.Cut(tool, "__")
		if got := b.Tools.Serves(server, tool); got != want {
			t.Errorf("%s: got %t", tool, got)
		}
	}
	if wrong := b.Check(); len(wrong) > 0 {
		t.Errorf("got %+v", wrong)
	}
	for name, change := range map[string]func(*blueprint.Blueprint){
		"a capital letter":  func(b *blueprint.Blueprint) { b.Tools.MCP = []string{"Shop"} },
		"no tool":           func(b *blueprint.Blueprint) { b.Tools.MCP = []string{"shop__"} },
		"a dot":             func(b *blueprint.Blueprint) { b.Tools.MCP = []string{"shop.buy"} },
		"an adapter beside": func(b *blueprint.Blueprint) { b.Adapter.Kind = blueprint.Remote },
	} {
		other := b
		change(&other)
		if wrong := other.Check(); len(wrong) != 1 || !strings.HasPrefix(wrong[0].Path, "tools.mcp") {
			t.Errorf("%s: got %+v", name, wrong)
		}
	}
}
