package approvals

import (
	"testing"

	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
)

// TestTheLeastRoleThatDecides holds who answers what.
func TestTheLeastRoleThatDecides(t *testing.T) {
	for _, c := range []struct {
		action   string
		standing bool
		want     principal.Role
	}{
		{policy.ShellExec, false, principal.Operator}, {policy.ShellExec, true, principal.Admin}, {policy.FileDelete, false, principal.Operator},
		{policy.ExternalWrite, false, principal.Admin}, {policy.PaymentExecute, false, principal.Admin}, {policy.EmailSend, false,
			principal.Admin},
		{"never.heard.of", false, principal.Admin}, {policy.RunContinue, false, principal.Operator},
	} {
		if got := leastRole(policy.Approval{Action: c.action}, c.standing); got != c.want {
			t.Errorf("%s, standing %t: %s decides, want %s", c.action, c.standing, got, c.want)
		}
	}
}

// TestWhatLeavesTheFilesOfTheSpace holds which actions move files out, as their questions say.
func TestWhatLeavesTheFilesOfTheSpace(t *testing.T) {
	for _, c := range []struct {
		a    policy.Action
		want bool
	}{
		{policy.Action{Type: policy.ShellExec, Command: "mv folder /tmp/gone"}, true},
		{policy.Action{Type: policy.ShellExec, Argv: []string{"/bin/bash", "-c", "mv folder /tmp/gone"}}, true},
		{policy.Action{Type: policy.ShellExec, Command: "mv folder other"}, false},
		{policy.Action{Type: policy.ShellExec, Command: "mv folder '/tmp/gone"}, false}, // no command at all
		{policy.Action{Type: policy.ExternalWrite, Command: "mv folder /tmp/gone"}, false},
	} {
		if got := leaves(c.a); got != c.want {
			t.Errorf("%s %q %q: got %t, want %t", c.a.Type, c.a.Command, c.a.Argv, got, c.want)
		}
	}
}
