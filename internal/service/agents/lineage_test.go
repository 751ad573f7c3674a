package agents_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/tool"
	"agentbox/internal/service/agents"
	"agentbox/internal/service/tools"
)

// asked keeps the requests that a world gets.
type asked struct {
	*world
	asks []model.Ask
}

func (a *asked) Ask(ctx context.Context, q model.Ask) (model.Reply, error) {
	a.asks = append(a.asks, q)
	return a.world.Ask(ctx, q)
}

// TestWhatASubAgentInherits holds that a sub-agent has no tool, time or budget beyond those of the agents above it.
func TestWhatASubAgentInherits(t *testing.T) {
	for name, c := range map[string]struct {
		lineage errand.Lineage
		tools   []string
		seconds int
		failure string
	}{
		"narrower": {errand.Lineage{Tools: []string{"readFile", "spawn", "gone"}, Left: 5, Below: 1}, []string{"readFile", "spawn"}, 5, ""},
		"the last": {errand.Lineage{Tools: []string{"readFile", "spawn"}, Left: 9}, []string{"readFile"}, 7, ""},
		"nothing":  {errand.Lineage{}, nil, 1, ""},
		"a budget": {errand.Lineage{Left: 9, Above: []errand.Bounded{{Run: "run_0", Tokens: 9, Cost: "1.50"}, {Run: "run_00"}}}, nil, 7, ""},
		"no money": {errand.Lineage{Above: []errand.Bounded{{Run: "run_0", Cost: "much"}}}, nil, 0, agents.FailInput},
	} {
		w := &asked{world: newWorld(says("Three."))}
		l := loopOf(w.world, blueprint.Blueprint{Limits: blueprint.Limits{Seconds: 7}})
		l.Models = w
		l.Tools = func(context.Context, id.Workspace, blueprint.Blueprint) ([]tool.Tool, event.Digest, error) {
			return tools.Builtin(), event.DigestOf([]byte("tools")), nil
		}
		got, err := l.Perform(t.Context(), errand.Work{Run: "run_1", Input: mission(t, func(m *errand.Mission) { m.Lineage = &c.lineage })})
		if err != nil || got.Failure != c.failure {
			t.Fatalf("%s: got %+v, %v", name, got, err)
		}
		if c.failure != "" {
			continue
		}
		var offered []string
		for _, one := range w.asks[0].Request.Tools {
			if one.Name != "read_result" {
				offered = append(offered, one.Name)
			}
		}
		if !slices.Equal(offered, c.tools) || w.asks[0].Time != time.Duration(c.seconds)*time.Second {
			t.Errorf("%s: offered %v, for %s", name, offered, w.asks[0].Time)
		}
		var above []id.Run
		for _, bounded := range c.lineage.Above {
			above = append(above, bounded.Run)
		}
		if !slices.Equal(w.asks[0].AboveRuns(), above) {
			t.Errorf("%s: it counts for %v", name, w.asks[0].AboveRuns())
		}
		if name == "a budget" && w.asks[0].Above[0].Limits != (model.Limits{Tokens: 9, Cost: 1_500_000}) {
			t.Errorf("its budget is %+v", w.asks[0].Above[0].Limits)
		}
	}
}
