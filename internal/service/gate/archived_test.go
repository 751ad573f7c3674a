package gate_test

import (
	"context"
	"errors"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/service/gate"
)

func (g *grants) archive(on bool) {
	typ := workspace.EventUnarchived
	if on {
		typ = workspace.EventArchived
	}
	g.record(otherWS, typ, workspace.EntityType, string(otherWS), workspace.Archiving{Workspace: otherWS})
}

// An archived workspace permits what ends something, what forgets, and reading. It refuses everything else, also all that is done
// outside, and no refusal makes it grow.
func TestWhatAnArchivedWorkspacePermits(t *testing.T) {
	endures := map[string]bool{
		policy.SpaceDestroy: true, policy.RunCancel: true, policy.AuditRedact: true, policy.ContentSweep: true, policy.KillSwitchSet: true,
		policy.KeyRevoke: true, policy.CapabilityRevoke: true, policy.StandingRevoke: true,
	}
	g := newGrants(t)
	owner, _ := g.elsewhere()
	judged := func(kind policy.Kind) string {
		a := policy.Action{Type: kind.Type, Workspace: otherWS, Principal: owner}
		if kind.Type == policy.ShellExec {
			a.Command, a.Argv = "ls", []string{"/bin/bash", "-c", "ls"}
		}
		return g.judge(a).Decision.ReasonCode
	}
	for _, archived := range []bool{false, true, false} {
		g.archive(archived)
		for _, kind := range policy.Registry() {
			reads := kind.SideEffect == policy.Pure || kind.SideEffect == policy.Read
			want := archived && (kind.Outside || !reads) && !endures[kind.Type]
			if code := judged(kind); (code == policy.ReasonArchived) != want {
				t.Errorf("archived %t: %s is judged as %s", archived, kind.Type, code)
			}
		}
	}
	// The workspace of the installation is never archived, whatever its document says.
	g.record(ws, workspace.EventArchived, workspace.EntityType, string(ws), workspace.Archiving{Workspace: ws})
	if code := g.judge(g.shell("standard", "ls")).Decision.ReasonCode; code == policy.ReasonArchived {
		t.Error("the workspace of the installation is archived")
	}
}

// An action that is not judged is refused in an archived workspace too. A question can still be denied there, and an action that was
// allowed before does not begin.
func TestNothingIsBegunInAnArchivedWorkspace(t *testing.T) {
	ctx := context.Background()
	g := newGrants(t)
	owner, agent := g.elsewhere()
	a := policy.Action{Type: policy.FileCreate, Workspace: otherWS, Room: room, Principal: agent, Path: "a"}
	allowed := g.judge(a)
	intent := event.Batch{Workspace: otherWS, Drafts: []event.Draft{event.New("tool.invoked", g.origin(agent), otherWS, room, struct{}{})}}
	asks := policy.Action{Type: policy.ShellExec, Workspace: otherWS, Room: room, Principal: agent, Command: "rm -r x",
		Argv: []string{"/bin/bash", "-c", "rm -r x"}}
	var questions []policy.Approval
	for _, command := range []string{"rm -r x", "rm -r y"} {
		asks.Command, asks.Argv = command, []string{"/bin/bash", "-c", command}
		q, err := g.Ask(ctx, g.origin(agent), g.judge(asks), policy.Ask{}, event.Batch{Workspace: otherWS})
		if err != nil {
			t.Fatal(err)
		}
		questions = append(questions, q)
	}
	archived := func(name string, err error) {
		t.Helper()
		if fault.CodeOf(err) != policy.ReasonArchived {
			t.Errorf("%s: got %v", name, err)
		}
	}
	answer := func(q policy.Approval, word policy.DecisionWord) error {
		_, err := g.Approvals.Decide(ctx, g.origin(owner), otherWS, q.ID, policy.Answer{Decision: word})
		return err
	}
	g.archive(true)
	before := len(g.eventsOf(otherWS))
	_, _, err := g.Begin(ctx, allowed, "", intent)
	archived("an effect that was allowed before", err)
	_, err = g.Agent(ctx, g.origin(owner), otherWS, "another")
	archived("a new agent", err)
	if known, err := g.Agent(ctx, g.origin(owner), otherWS, "worker"); err != nil || known != agent {
		t.Errorf("an agent that is there: got %s, %v", known, err)
	}
	_, err = g.Bundles.Pin(ctx, g.origin(owner), otherWS, "permissive", nil)
	archived("a policy", err)
	archived("an approval", answer(questions[0], policy.Approve))
	_, err = g.Record(ctx, g.origin(owner), policy.Action{Type: policy.PrincipalAdd, Workspace: otherWS, Principal: owner}, intent)
	archived("what is recorded", err)
	caller := principal.Caller{Principal: agent, Workspace: otherWS, Token: "cap_none"}
	if err := g.Bound(ctx, g.origin(agent), caller, token.Use{}); fault.CodeOf(err) != policy.ReasonTokenNotFound {
		t.Errorf("a refusal: got %v", err)
	}
	if n := len(g.eventsOf(otherWS)) - before; n != 0 {
		t.Errorf("it has grown by %d events", n)
	}
	if err := answer(questions[0], policy.Refuse); err != nil {
		t.Errorf("a denial: %v", err)
	}
	g.archive(false)
	if err := answer(questions[1], policy.Approve); err != nil {
		t.Errorf("an approval when it is unarchived: %v", err)
	}
	if err := g.Bound(ctx, g.origin(agent), caller, token.Use{}); fault.CodeOf(err) != policy.ReasonTokenNotFound ||
		len(g.eventsOf(otherWS)) != before+4 {
		t.Errorf("a refusal when it is unarchived: %v, and %d events", err, len(g.eventsOf(otherWS))-before)
	}
}

// archivedBy is a log in which the workspace is archived, or unarchived, just before the next batch comes.
type archivedBy struct {
	*frail
	first func()
}

func (a *archivedBy) Append(ctx context.Context, b event.Batch) (event.Receipt, error) {
	if first := a.first; first != nil {
		a.first = nil
		first()
	}
	return a.frail.Append(ctx, b)
}

// An archiving and another event have an order. An action that found the workspace alive just before records nothing after the archiving.
func TestAnArchivingComesFirst(t *testing.T) {
	ctx := context.Background()
	for name, do := range map[string]func(g *grants, q policy.Approval, r policy.Ruling) error{
		"an effect": func(g *grants, _ policy.Approval, r policy.Ruling) error {
			intent := event.Batch{Workspace: otherWS, Drafts: []event.Draft{event.New("tool.invoked", g.origin(r.Action.Principal), otherWS, room,
				struct{}{})}}
			_, _, err := g.Begin(ctx, r, "", intent)
			return err
		},
		"an agent": func(g *grants, q policy.Approval, _ policy.Ruling) error {
			_, err := g.Agent(ctx, g.origin(q.RequestedBy), otherWS, "another")
			return err
		},
		"a policy": func(g *grants, q policy.Approval, _ policy.Ruling) error {
			_, err := g.Bundles.Pin(ctx, g.origin(q.RequestedBy), otherWS, "permissive", nil)
			return err
		},
		"an approval": func(g *grants, q policy.Approval, _ policy.Ruling) error {
			owner, err := g.Owner(ctx, otherWS, "Olaf")
			if err == nil {
				_, err = g.Approvals.Decide(ctx, g.origin(owner), otherWS, q.ID, policy.Answer{Decision: policy.Approve})
			}
			return err
		},
		"a refusal": func(g *grants, q policy.Approval, _ policy.Ruling) error {
			c := principal.Caller{Principal: q.RequestedBy, Workspace: otherWS, Token: "cap_none"}
			if err := g.Bound(ctx, g.origin(q.RequestedBy), c, token.Use{}); fault.CodeOf(err) != policy.ReasonTokenNotFound {
				return err
			}
			return workspace.ErrArchived // told to who asked, and recorded nowhere
		},
	} {
		log := &archivedBy{frail: &frail{}}
		g := newGrantsOver(t, func(p *gate.Parts) {
			log.Journal, log.docs = p.Log, p.Docs
			p.Log = log
		})
		_, agent := g.elsewhere()
		a := policy.Action{Type: policy.ShellExec, Workspace: otherWS, Room: room, Principal: agent, Command: "rm -r x",
			Argv: []string{"/bin/bash", "-c", "rm -r x"}}
		q, err := g.Ask(ctx, g.origin(agent), g.judge(a), policy.Ask{}, event.Batch{Workspace: otherWS})
		if err != nil {
			t.Fatal(err)
		}
		r := g.judge(policy.Action{Type: policy.FileCreate, Workspace: otherWS, Room: room, Principal: agent, Path: "a"})
		before := len(g.eventsOf(otherWS))
		log.first = func() { g.archive(true) }
		if err := do(g, q, r); !errors.Is(err, workspace.ErrArchived) && fault.CodeOf(err) != policy.ReasonArchived {
			t.Errorf("%s: got %v", name, err)
		}
		if n := len(g.eventsOf(otherWS)) - before; n != 1 {
			t.Errorf("%s: %d events, want the archiving alone", name, n)
		}
	}
}
