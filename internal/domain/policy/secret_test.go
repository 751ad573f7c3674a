package policy_test

import (
	"errors"
	"strings"
	"testing"

	"agentbox/internal/domain/policy"
)

// TestMasks holds what is a mask.
func TestMasks(t *testing.T) {
	mask := policy.Mask([]byte(strings.Repeat("\xab", 32)))
	if !policy.IsMask(mask) || len(mask) != len("[secret hmac-sha256:]")+64 {
		t.Errorf("%q is not a mask", mask)
	}
	for _, other := range []string{"", "x", mask[1:], mask[:len(mask)-1], mask + " ", " " + mask, strings.Replace(mask, "ab", "a", 1),
		strings.Replace(mask, "ab", "abab", 1), strings.Replace(mask, "ab", "AB", 1), strings.Replace(mask, "ab", "g0", 1)} {
		if policy.IsMask(other) {
			t.Errorf("%q is a mask", other)
		}
	}
}

// TestSupply holds where the values of secret variables replace their masks, and that a mask never reaches a command.
func TestSupply(t *testing.T) {
	mask, other := policy.Mask([]byte(strings.Repeat("\x01", 32))), policy.Mask([]byte(strings.Repeat("\x02", 32)))
	issue := func(env map[string]string) policy.Permit {
		raw, err := policy.Action{Type: policy.ShellExec, Workspace: "ws_1", Principal: "usr_1", Command: "ls", Env: env}.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		return policy.Issue(raw, nil)
	}
	masked, values := map[string]string{"KEY": mask, "MODE": "a"}, map[string]string{"KEY": "value", "MODE": "a"}
	a, err := issue(map[string]string{"KEY": mask, "MODE": "b"}).Supply(masked, values).Redeem(policy.ShellExec)
	if err != nil || a.Env["KEY"] != "value" || a.Env["MODE"] != "b" {
		t.Errorf("got %v, %v", a.Env, err)
	}
	if a, err = issue(map[string]string{"KEY": "own"}).Supply(masked, values).Redeem(policy.ShellExec); err != nil || a.Env["KEY"] != "own" {
		t.Errorf("a value of the command's own: got %v, %v", a.Env, err)
	}
	for name, p := range map[string]policy.Permit{
		"nothing supplied":  issue(map[string]string{"KEY": mask}),
		"another value":     issue(map[string]string{"KEY": other}).Supply(masked, values),
		"another variable":  issue(map[string]string{"MODE": mask}).Supply(masked, values),
		"no value":          issue(map[string]string{"KEY": mask}).Supply(masked, nil),
		"the mask as value": issue(map[string]string{"KEY": mask}).Supply(masked, masked),
	} {
		if _, err := p.Redeem(policy.ShellExec); !errors.Is(err, policy.ErrPermitMismatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
