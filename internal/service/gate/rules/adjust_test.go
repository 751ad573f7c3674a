package rules_test

import (
	"slices"
	"testing"

	"agentbox/internal/domain/policy"
	"agentbox/internal/service/gate/rules"
)

// TestAnAdjustmentKeepsWhatThePresetRefuses adjusts each preset in each way, and wants nothing of the preset's refusals to be lost.
func TestAnAdjustmentKeepsWhatThePresetRefuses(t *testing.T) {
	for _, name := range []string{"restrictive", "standard", "permissive"} {
		preset, err := rules.Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		a := policy.Adjustment{
			ReadOnly: true, Deny: []string{"secret/**"}, Withhold: []string{"private/**"}, Domains: []string{"example.com"}, CommandMS: 1,
			Tools: []string{"claude.Read"},
		}
		overrides, err := rules.Overrides(name, a)
		if err != nil {
			t.Fatal(err)
		}
		got, err := rules.Read(name, overrides)
		if err != nil {
			t.Fatal(err)
		}
		for what, lists := range map[string][2][]string{
			"deny": {preset.Deny.Paths, got.Deny.Paths}, "withhold": {preset.Withhold.Paths, got.Withhold.Paths},
			"domains": {preset.Allow.Domains, got.Allow.Domains}, "tools": {preset.Allow.Tools, got.Allow.Tools},
		} {
			for _, entry := range lists[0] {
				if !slices.Contains(lists[1], entry) {
					t.Errorf("%s: %s lost %q", name, what, entry)
				}
			}
			if len(lists[1]) != len(lists[0])+1 {
				t.Errorf("%s: %s has %d entries more", name, what, len(lists[1])-len(lists[0]))
			}
		}
		if got.Write || got.CommandMS != 1 || got.Read != preset.Read || !slices.Equal(got.Deny.Commands, preset.Deny.Commands) {
			t.Errorf("%s: got %+v", name, got)
		}
		if more, err := rules.Overrides(name, policy.Adjustment{CommandMS: preset.CommandMS + 1}); more != nil || err != nil {
			t.Errorf("%s: a longer time adjusts it: %s, %v", name, more, err)
		}
		if same, err := rules.Overrides(name, policy.Adjustment{CommandMS: preset.CommandMS, ReadOnly: !preset.Write}); same != nil ||
			err != nil {
			t.Errorf("%s: the present values adjust it: %s, %v", name, same, err)
		}
		twice, err := rules.Overrides(name, policy.Adjustment{Deny: append([]string{"a", "a"}, preset.Deny.Paths...)})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := rules.Read(name, twice); err != nil || len(got.Deny.Paths) != len(preset.Deny.Paths)+1 {
			t.Errorf("%s: an entry that stands twice: %q, %v", name, got.Deny.Paths, err)
		}
		if none, err := rules.Overrides(name, policy.Adjustment{}); none != nil || err != nil {
			t.Errorf("%s: nothing adjusts it: %s, %v", name, none, err)
		}
	}
	if got, err := rules.Overrides("nothing", policy.Adjustment{ReadOnly: true}); err == nil || got != nil {
		t.Errorf("a preset that does not exist: got %s, %v", got, err)
	}
}
