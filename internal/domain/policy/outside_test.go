package policy_test

import (
	"slices"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
)

// TestTheRegistryOfActionsOutside holds the registry to its contract.
func TestTheRegistryOfActionsOutside(t *testing.T) {
	type row struct {
		reversible           bool
		zone                 event.Zone
		preApproval, reviews bool
		cost                 policy.Cost
		recovery             policy.Recovery
	}
	mild, grave := row{true, event.Supervised, false, true, policy.LowCost, policy.EasyRecovery}, row{false, event.HighStakes, true, false,
		policy.HighCost, policy.HardRecovery}
	medium := grave
	medium.cost = policy.MediumCost
	want := map[string]row{
		"artifact.create": mild, "artifact.update": mild, "external.write": grave, "email.send": medium, "payment.execute": grave,
		"api.call.idempotent": mild, "api.call.mutating": grave,
	}
	var names []string
	for _, k := range policy.Registry() {
		names = append(names, k.Type)
		if got, ok := policy.KindOf(k.Type); !ok || got.Title == "" {
			t.Errorf("%s is listed and not known, or has no title", k.Type)
		}
		if k.Cost == "" || k.Recovery == "" {
			t.Errorf("%s is not graded", k.Type)
		}
		if k.Outside && !k.Reversible && k.Zone != event.HighStakes {
			t.Errorf("%s cannot be taken back and takes no high stakes", k.Type)
		}
		if w, ok := want[k.Type]; ok {
			delete(want, k.Type)
			if got := (row{k.Reversible, k.Zone, k.PreApproval, k.PostReview, k.Cost, k.Recovery}); got != w {
				t.Errorf("%s: got %+v, want %+v", k.Type, got, w)
			}
		}
	}
	if len(want) > 0 || !slices.IsSorted(names) {
		t.Errorf("missing are %v of %v", want, names)
	}
	if _, known := policy.KindOf("external_write"); known || policy.TypeOf("external_write") != policy.ExternalWrite ||
		policy.TypeOf("x") != "x" {
		t.Error("an alias is a name of its own")
	}
}
