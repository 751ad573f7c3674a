package space_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

func TestLackingIsAFault(t *testing.T) {
	err := fmt.Errorf("run a command: %w", &space.Lacking{Lacks: []space.Lack{{Kind: space.LackModule, Name: "numpy", Detail: "a.py:1"}}})
	if fault.KindOf(err) != fault.Conflict || fault.CodeOf(err) != "tier_lacks" || !strings.Contains(err.Error(),
		"the module numpy (a.py:1)") {
		t.Errorf("got %v", err)
	}
	lacking, ok := errors.AsType[*space.Lacking](err)
	if !ok || len(lacking.Lacks) != 1 {
		t.Errorf("got %v", lacking)
	}
}

func TestNamesOfLacks(t *testing.T) {
	var many []space.Lack
	for i := range 6 {
		many = append(many, space.Lack{Kind: "command", Name: fmt.Sprint("c", i)})
	}
	for n, want := range map[int]string{
		0: "something that the command wants", 1: "the command c0", 2: "the command c0, the command c1",
		5: "the command c0, the command c1, the command c2, the command c3, the command c4",
		6: "the command c0, the command c1, the command c2, the command c3, the command c4 and more",
	} {
		if got := space.Names(many[:n]); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
	for _, c := range []struct{ where, why, want string }{
		{"", "", ""}, {"a:1", "", "a:1"}, {"", "the rules say so", "the rules say so"}, {"a:1", "the rules say so", "a:1: the rules say so"},
	} {
		if got := (space.Need{Kind: "command", Name: "c", Where: c.where, Why: c.why}).Lack().Detail; got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestAPromotionSetsTheTier(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	promoted := func(d space.Promoted) event.Event {
		raw, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return event.Event{Header: event.Header{Type: space.EventPromoted, EntityType: space.EntityType, EntityID: "spc_1", OccurredAt: at},
			Data: raw}
	}
	before := space.Space{ID: "spc_1", Runtime: space.RuntimeAuto, Tier: space.Nano, Status: space.Running}
	e := promoted(space.Promoted{Space: "spc_1", From: space.Nano, To: "namespace", Code: space.WhyRouted, Reason: "it needs gcc",
		Operation: "a", Unenforced: []string{"pids"}})
	if !space.Touches(e) {
		t.Error("it does not touch the space")
	}
	now, err := space.Evolve(before, e)
	if err != nil || now.Tier != "namespace" || now.Runtime != space.RuntimeAuto || now.Status != space.Running || len(now.Unenforced) != 1 ||
		!now.UpdatedAt.Equal(at) {
		t.Errorf("got %+v, %v", now, err)
	}
	left, err := space.Remains(e)
	if d, ok := left.(space.Promoted); err != nil || !ok || d.Reason != "" || d.Operation != "" || d.To != "namespace" {
		t.Errorf("of a redacted one stays %+v, %v", left, err)
	}
	if now, err = space.Evolve(now, promoted(space.Promoted{})); err != nil || now.Tier != "namespace" {
		t.Errorf("one that says nothing: %+v, %v", now, err)
	}
}

// TestANetworkIsANetwork: however an interpreter of nano says that it has none, no other tier of the host is named for it.
func TestANetworkIsANetwork(t *testing.T) {
	offers := space.Offers{{Tier: space.Nano, Lacks: []string{"node"}}, {Tier: "sandbox", Programs: []string{"bash", "python3"}}}
	for lack, want := range map[space.Lack]string{
		{Kind: "feature", Name: "python3", Detail: "network example.com"}:    "example.com",
		{Kind: "feature", Name: "bash", Detail: "network 1.2.3.4"}:           "1.2.3.4",
		{Kind: "feature", Name: "bash", Detail: "network"}:                   "",
		{Kind: "feature", Name: "node", Detail: "the network"}:               "",
		{Kind: "feature", Name: "bun", Detail: "the modules of the network"}: "",
		{Kind: "feature", Name: "gawk", Detail: "networks"}:                  "",
		{Kind: space.LackNetwork, Name: "example.com"}:                       "example.com",
	} {
		n := lack.Need()
		if n.Kind != space.LackNetwork || n.Name != want {
			t.Errorf("%v: it needs %+v, want the network %q", lack, n, want)
		}
		if all := offers.With(n); len(all) > 0 {
			t.Errorf("%v: %v have it", lack, all)
		}
		says := strings.TrimSuffix("no tier of this host has the network "+want, " ")
		if got := offers.Advice(space.Nano, []space.Lack{lack}); !strings.Contains(got, says) {
			t.Errorf("%v: the advice is %q, want %q", lack, got, says)
		}
	}
	if n := (space.Lack{Kind: "feature", Name: "python3", Detail: "networking"}).Need(); n.Kind != space.LackFeature {
		t.Errorf("it needs %+v", n)
	}
}
