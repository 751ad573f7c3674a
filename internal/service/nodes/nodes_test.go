package nodes_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/node"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/service/nodes"
)

// roll is the members of a log in memory.
type roll []node.Member

func (r roll) Members(context.Context) ([]node.Member, error) { return slices.Clone(r), nil }

func (r roll) Remove(_ context.Context, n id.Node) error {
	for i := range r {
		if r[i].Node == n {
			r[i].Removed = true
			return nil
		}
	}
	return node.ErrNone
}

// gate lets everything pass, and remembers what was recorded.
type gate struct {
	policy.Gate
	recorded []string
}

func (g *gate) Judge(_ context.Context, a policy.Action) (policy.Ruling, error) {
	return policy.Ruling{Action: a, Decision: policy.Decision{Outcome: policy.Allow}}, nil
}

func (g *gate) Record(_ context.Context, _ event.Origin, _ policy.Action, b event.Batch) (event.Receipt, error) {
	for _, d := range b.Drafts {
		g.recorded = append(g.recorded, d.Type)
	}
	return event.Receipt{}, nil
}

const (
	dead  id.Node = "node_00000000000000000000000001"
	alive id.Node = "node_00000000000000000000000002"
	never id.Node = "node_00000000000000000000000003"
)

// A node is given up once: recorded, then fenced, then its spaces end. A repeat of the request, or the next start, does the rest.
func TestRemove(t *testing.T) {
	g, given, failing := &gate{}, []id.Node{}, errors.New("the disk is full")
	c := nodes.New(nodes.Parts{Members: roll{{Node: dead}, {Node: alive, Alive: true}}, Gate: g, GiveUp: func(_ context.Context,
		_ event.Origin, n id.Node) error {
		given = append(given, n)
		return failing
	}})
	owner := principal.Caller{Principal: "usr_00000000000000000000000001", Workspace: id.DefaultWorkspace}
	origin := event.Origin{Principal: owner.Principal}
	stranger := owner
	stranger.Workspace = "ws_other"
	for _, refused := range []struct {
		who    principal.Caller
		n      id.Node
		reason string
		code   string
	}{
		{owner, alive, "", node.ErrAlive.Code}, {owner, never, "", node.ErrNone.Code}, {stranger, dead, "", node.ErrNone.Code},
		{owner, dead, strings.Repeat("x", node.MaxReason+1), node.ErrReason.Code}, {owner, dead, "\xff", node.ErrReason.Code},
	} {
		if _, err := c.Remove(t.Context(), origin, refused.who, refused.n, refused.reason); fault.CodeOf(err) != refused.code {
			t.Errorf("%s: %v, want %s", refused.n, err, refused.code)
		}
	}
	if len(g.recorded)+len(given) > 0 {
		t.Fatalf("refusals have recorded %v and given up %v", g.recorded, given)
	}
	if _, err := c.Remove(t.Context(), origin, owner, dead, strings.Repeat("x", node.MaxReason)); !errors.Is(err, failing) {
		t.Errorf("where its spaces cannot be ended: %v", err)
	}
	if failing = nil; c.Recover(t.Context()) != nil {
		t.Error("it is not made up for")
	}
	m, err := c.Remove(t.Context(), origin, owner, dead, "again")
	if err != nil || !m.Removed {
		t.Errorf("again: %+v, %v", m, err)
	}
	if want := []id.Node{dead, dead, dead}; !slices.Equal(given, want) || !slices.Equal(g.recorded, []string{node.EventRemoved}) {
		t.Errorf("given up %v, recorded %v", given, g.recorded)
	}
}
