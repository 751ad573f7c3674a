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
