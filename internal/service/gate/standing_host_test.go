package gate

import (
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/token"
)

// TestTheLeastRoleThatDecides holds who answers what.
func TestTheLeastRoleThatDecides(t *testing.T) {
	for _, c := range []struct {
		action   string
		standing bool
		want     principal.Role
	}{
		{policy.ShellExec, false, principal.Operator}, {policy.ShellExec, true, principal.Admin}, {policy.FileDelete, false, principal.Operator},
		{policy.ExternalWrite, false, principal.Admin}, {policy.PaymentExecute, false, principal.Admin}, {policy.EmailSend, false, principal.Admin},
		{"never.heard.of", false, principal.Admin}, {policy.RunContinue, false, principal.Operator},
	} {
		if got := leastRole(policy.Approval{Action: c.action}, c.standing); got != c.want {
			t.Errorf("%s, standing %t: %s decides, want %s", c.action, c.standing, got, c.want)
		}
	}
}

// TestEveryOperationIsATool holds that a new type of operation cannot be forgotten here: each has a row, and what has none is bound all the same.
func TestEveryOperationIsATool(t *testing.T) {
	rows := map[string]bool{}
	for _, operation := range operations {
		rows[operation] = true
	}
	for _, operation := range run.OpTypes() {
		if !rows[operation] {
			t.Errorf("the operation %s is no tool: add its action to operations", operation)
		}
	}
	for action := range operations {
		if _, ok := policy.KindOf(action); !ok {
			t.Errorf("%s is no action", action)
		}
	}
	for _, effect := range []policy.SideEffect{policy.Pure, policy.Read, policy.Filesystem, policy.Process, policy.Network, ""} {
		if name, bound := toolOf(policy.Action{Type: "file.rename", Operation: "op-1"}, policy.Kind{SideEffect: effect}); !bound || name != "file.rename" {
			t.Errorf("an operation of the effect %q without a row: tool %q, bound %t", effect, name, bound)
		}
	}
	if _, bound := toolOf(policy.Action{Type: policy.RunContinue, Operation: "op-1"}, policy.Kind{SideEffect: policy.Control}); bound {
		t.Error("going on with an operation counts as a tool")
	}
}

// TestDataAccessIsBoundByTheToken holds what a request to come near data reads and writes under a token.
func TestDataAccessIsBoundByTheToken(t *testing.T) {
	for _, typ := range []string{policy.DataAccess, policy.DataAccessUnjustified} {
		for method, read := range map[string]bool{"read": true, "write": false, "": false} {
			c := consideration{ruling: policy.Ruling{Action: policy.Action{Type: typ, Room: "room_1", Subject: "document/ok/1", Method: method}}}
			u := c.use()
			want := token.Names("document", "ok/1", "")
			got, none := u.Reads, u.Writes
			if !read {
				got, none = none, got
			}
			if event.DigestOf([]byte(join(got))) != event.DigestOf([]byte(join(want))) || len(none) > 0 {
				t.Errorf("%s %q: reads %v, writes %v", typ, method, u.Reads, u.Writes)
			}
		}
	}
}

func join(list []string) (text string) {
	for _, s := range list {
		text += s + "\n"
	}
	return text
}
