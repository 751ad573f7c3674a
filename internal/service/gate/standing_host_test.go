package gate

import (
	"errors"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/token"
)

// TestAStandingApprovalOfAHostCoversTheHost holds that what is asked for at a host may differ, and where it lies may not.
func TestAStandingApprovalOfAHostCoversTheHost(t *testing.T) {
	of := func(method, target string) policy.Action {
		return policy.Action{Type: policy.APICallMutating, Workspace: "ws_dev", Principal: "agt_00000000000000000000000001", Method: method, Target: target}
	}
	one, err := policy.CoverOf(of("POST", "https://Api.Example.com/v1/a?x=1"), policy.ScopeWorkspace, nil)
	if err != nil || one.Kind != policy.CoverHost {
		t.Fatalf("got %+v, %v", one, err)
	}
	for target, want := range map[string]bool{
		"https://api.example.com/v2/b": true, "https://api.example.com": true, "https://api.example.com.": true, "HTTPS://api.example.com/": true, "https://u@api.example.com/x": true,
		"http://api.example.com/v1/a": false, "https://api.example.com:8443/": false, "https://evil.example/api.example.com": false, "https://api.example.com.evil.example/": false,
		"https://api.example.com@evil.example/": false, "https://evil.example#@api.example.com": false, "api.example.com": false,
	} {
		if got, err := policy.CoverOf(of("POST", target), policy.ScopeWorkspace, nil); err != nil || (got == one) != want {
			t.Errorf("%s: covered %t, %v, want %t", target, got == one, err, want)
		}
	}
	if got, _ := policy.CoverOf(of("DELETE", "https://api.example.com/"), policy.ScopeWorkspace, nil); got == one {
		t.Error("another method is covered")
	}
	if _, err := policy.CoverOf(of("POST", "https://a.example,b.example/"), policy.ScopeWorkspace, nil); !errors.Is(err, policy.ErrStandingImpossible) {
		t.Errorf("a target of two hosts: got %v", err)
	}
}

// TestAStandingApprovalHoldsToItsLastUse kills the change of < into <=.
func TestAStandingApprovalHoldsToItsLastUse(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	s := policy.Standing{ID: "sta_00000000000000000000000001", EndsAt: now.Add(1), Uses: 3}
	for used, want := range map[int]bool{0: true, 2: true, 3: false, 4: false} {
		if s.Used = used; s.Holds(now) != want {
			t.Errorf("%d of %d used: holds %t", used, s.Uses, !want)
		}
	}
	s.Used = 0
	if s.Holds(now.Add(1)) {
		t.Error("it holds at its end")
	}
	for _, broken := range []policy.Standing{{EndsAt: s.EndsAt, Uses: 3}, {ID: s.ID, EndsAt: s.EndsAt, Uses: 3, RevokedAt: now}} {
		if broken.Holds(now) {
			t.Errorf("%+v holds", broken)
		}
	}
}

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
