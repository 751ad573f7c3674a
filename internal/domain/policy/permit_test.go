package policy_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
)

// permitFor returns a permit to run a command.
func permitFor(t *testing.T, revoked func() error) policy.Permit {
	t.Helper()
	raw, err := policy.Action{Type: policy.ShellExec, Workspace: "ws_1", Principal: "usr_1", Command: "ls"}.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	return policy.Issue(raw, revoked)
}

func TestAPermitIsTriedAndGivenBack(t *testing.T) {
	p := permitFor(t, nil)
	a, back, err := p.Try(policy.ShellExec)
	if err != nil || a.Command != "ls" {
		t.Fatalf("got %+v, %v", a, err)
	}
	if _, err := p.Redeem(policy.ShellExec); !errors.Is(err, policy.ErrPermitSpent) {
		t.Errorf("while it is tried: %v, want %v", err, policy.ErrPermitSpent)
	}
	back()
	if _, again, err := p.Try(policy.ShellExec); err != nil {
		t.Errorf("given back: %v", err)
	} else {
		again() // once in its life
	}
	back()
	if _, err := p.Redeem(policy.ShellExec); !errors.Is(err, policy.ErrPermitSpent) {
		t.Errorf("given back twice: %v, want %v", err, policy.ErrPermitSpent)
	}
}

func TestALateBackTakesNothingAway(t *testing.T) {
	p := permitFor(t, nil)
	_, back, err := p.Try(policy.ShellExec)
	if err != nil {
		t.Fatal(err)
	}
	back()
	if _, err := p.Redeem(policy.ShellExec); err != nil {
		t.Fatal(err)
	}
	back()
	if _, err := p.Redeem(policy.ShellExec); !errors.Is(err, policy.ErrPermitSpent) {
		t.Errorf("%v, want %v", err, policy.ErrPermitSpent)
	}
}

func TestARefusedTryGivesNothingBack(t *testing.T) {
	for name, c := range map[string]struct {
		p    policy.Permit
		typ  string
		code string
	}{
		"the zero permit": {policy.Permit{}, policy.ShellExec, "permit_missing"},
		"another action":  {permitFor(t, nil), policy.FileRead, "approval_mismatch"},
	} {
		_, back, err := c.p.Try(c.typ)
		if fault.CodeOf(err) != c.code {
			t.Errorf("%s: got %v, want %s", name, err, c.code)
		}
		back()
	}
	p := permitFor(t, nil)
	if _, err := p.Redeem(policy.ShellExec); err != nil {
		t.Fatal(err)
	}
	_, back, err := p.Try(policy.ShellExec)
	back()
	if _, again := p.Redeem(policy.ShellExec); !errors.Is(err, policy.ErrPermitSpent) || !errors.Is(again, policy.ErrPermitSpent) {
		t.Errorf("a spent permit: %v, then %v, want %v", err, again, policy.ErrPermitSpent)
	}
}

func TestARevokedPermitIsRefusedWhenItIsRedeemedAgain(t *testing.T) {
	var thrown atomic.Bool
	switched := fault.New(fault.Denied, policy.ReasonKillSwitch, "the kill switch is thrown")
	p := permitFor(t, func() error {
		if thrown.Load() {
			return switched
		}
		return nil
	})
	_, back, err := p.Try(policy.ShellExec)
	if err != nil {
		t.Fatal(err)
	}
	back()
	thrown.Store(true)
	if _, err := p.Redeem(policy.ShellExec); !errors.Is(err, switched) {
		t.Errorf("%v, want %v", err, switched)
	}
}

func TestRacingForAPermitThatIsGivenBackHasOneEffect(t *testing.T) {
	for range 200 {
		p := permitFor(t, nil)
		var effects, tries atomic.Int64
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				if i%2 == 0 {
					if _, err := p.Redeem(policy.ShellExec); err == nil {
						effects.Add(1)
					}
					return
				}
				if _, back, err := p.Try(policy.ShellExec); err == nil {
					if tries.Add(1) > 1 {
						effects.Add(1) // the second one is not given back: it stands for an effect
						return
					}
					back()
					back()
				}
			})
		}
		all.Wait()
		if n := effects.Load(); n > 1 {
			t.Fatalf("%d effects of one permit", n)
		}
	}
}
