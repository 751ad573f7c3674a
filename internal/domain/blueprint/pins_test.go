package blueprint_test

import (
	"testing"

	"agentbox/internal/domain/blueprint"
)

// TestUnfitSaysEachReason: a pin that is missing, one that does not fit, and one of a thing that is not there.
func TestUnfitSaysEachReason(t *testing.T) {
	drift := []blueprint.Drift{
		{Reference: blueprint.Reference{Kind: blueprint.ToPolicy, Name: "standard"}, Now: "sha256:1"},
		{Reference: blueprint.Reference{Kind: blueprint.ToModel, Name: "main"}, Pinned: "sha256:1", Now: "sha256:2"},
		{Reference: blueprint.Reference{Kind: blueprint.ToBlueprint, Name: "helper"}, Pinned: "sha256:1", Reason: "no such blueprint"},
		{Reference: blueprint.Reference{Kind: blueprint.ToMCP, Name: "files"}},
	}
	want := "policy is not pinned, models.main has changed since it was pinned, blueprints.helper: no such blueprint, " +
		"mcp.files: there is no such thing now"
	if got := blueprint.Unfit(drift); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for n, want := range []string{"not pinned", "changed since it was pinned", "no such blueprint", "there is no such thing now"} {
		if got := drift[n].Why(); got != want {
			t.Errorf("%s: got %q, want %q", drift[n].Reference, got, want)
		}
	}
}
