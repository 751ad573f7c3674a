package runs_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit"
)

// employer is a run that an engine has claimed; runs in spaces are executed for its tool calls.
type employer struct {
	s    *testkit.Stack
	hold engines.Hold
	step id.Step
}

func employ(s *testkit.Stack) *employer {
	s.T.Helper()
	ctx := s.Context()
	_, err := s.Engines.Create(ctx, s.Origin, engines.Request{Workspace: testkit.WS, Room: spaces.DefaultRoom, Title: "parent"})
	if err != nil {
		s.T.Fatal(err)
	}
	doc, token, err := s.Engines.Claim(ctx, s.Origin, testkit.WS, engines.Wanted{})
	if err != nil {
		s.T.Fatal(err)
	}
	p := &employer{s: s, hold: engines.Hold{Workspace: testkit.WS, Run: doc.ID, Token: token}}
	unit, err := s.Engines.Steps.Add(ctx, s.Origin, p.hold, engines.StepRequest{Kind: "work"})
	if err != nil {
		s.T.Fatal(err)
	}
	p.step = unit.ID
	return p
}

// child starts a run in a space for a tool call of its own.
func (p *employer) child(in id.Space, operations string) run.Run {
	p.s.T.Helper()
	ctx := p.s.Context()
	call, no, err := p.s.Engines.Steps.Invoke(ctx, p.s.Origin, testkit.WS, p.hold.Token, engines.CallRequest{Step: p.step, Tool: "work"})
	if err != nil || no != nil {
		p.s.T.Fatal(no, err)
	}
	doc, err := p.s.Runs.Start(ctx, p.s.Origin, runs.Request{Workspace: testkit.WS, Space: in, Message: p.s.Message(operations),
		Under: func(ctx context.Context) (run.Under, error) {
			return p.s.Engines.Steps.Vouch(ctx, testkit.WS, p.hold.Token, call.ID)
		}})
	if err != nil {
		p.s.T.Fatal(err)
	}
	return doc
}

// end ends the parent as an event of that type says.
func (p *employer) end(typ string) {
	p.s.T.Helper()
	var err error
	switch ctx := context.Background(); typ {
	case run.EventCompleted:
		_, err = p.s.Engines.Complete(ctx, p.s.Origin, p.hold, "done", nil)
	case run.EventFailed:
		_, err = p.s.Engines.Fail(ctx, p.s.Origin, p.hold, "no_luck", "", nil)
	case run.EventCancelled:
		_, err = p.s.Engines.Cancel(ctx, p.s.Origin, testkit.WS, p.hold.Run, "enough")
	}
	if err != nil {
		p.s.T.Fatal(err)
	}
}

// orphaned waits for the end of a child, which is a cancellation that the end of its parent has caused. The child's question is withdrawn,
// and no part of it began after that end.
func (p *employer) orphaned(doc run.Run) {
	p.s.T.Helper()
	now := p.s.Ended(doc.ID)
	if now.Status != run.Cancelled {
		p.s.T.Errorf("the child is %s (%s)", now.Status, now.Error)
	}
	var end event.Event
	asked := map[string]bool{}
	for _, e := range p.s.Events(0) {
		switch {
		case e.Run == p.hold.Run && e.EntityType == run.EntityType && slices.Contains([]string{run.EventCompleted, run.EventFailed,
			run.EventCancelled}, e.Type):
			end = e
		case e.Run != doc.ID:
		case e.Type == run.EventInvoked && end.ID != "":
			p.s.T.Errorf("an operation began behind the parent's end: %s", e.Data)
		case e.Type == policy.ApprovalRequestedType:
			asked[e.EntityID] = true
		case e.Type == policy.ApprovalWithdrawnType:
			delete(asked, e.EntityID)
			if e.Causation != end.ID {
				p.s.T.Errorf("the question was withdrawn because of %q", e.Causation)
			}
		case e.Type == policy.ApprovalDecidedType:
			delete(asked, e.EntityID)
		case e.Type == run.EventCancelled:
			if end.ID == "" || e.Causation != end.ID {
				p.s.T.Errorf("the cancellation follows from %q, not from the parent's end %q", e.Causation, end.ID)
			}
		}
	}
	if len(asked) > 0 {
		p.s.T.Errorf("questions stay open: %v", asked)
	}
}

const (
	risky = `[{"type":"shell","command":"rm -rf x; touch done"}]`
	works = `[{"type":"shell","command":"echo begun; sleep 600"},{"type":"createFile","path":"done","content":"x"}]`
	short = `[{"type":"createFile","path":"done","content":"x"}]`
)

// The end of a run, however it comes, ends those that are executed for its tool calls: one that waits for a person, one behind it in the
// queue, and one that executes.
func TestAChildEndsWithItsParent(t *testing.T) {
	t.Parallel()
	s := open(t)
	tasks(s, 50)
	for _, typ := range []string{run.EventCompleted, run.EventFailed, run.EventCancelled} {
		p, in, other := employ(s), s.Space().ID, s.Space().ID
		stranger := s.Rest(s.Start(s.Space().ID, risky).ID)
		waits := s.Rest(p.child(in, risky).ID)
		if waits.Status != run.AwaitingApproval {
			t.Fatalf("the child is %s", waits.Status)
		}
		queued, working := p.child(in, short), p.child(other, works)
		s.Prints(working.ID, "begun")
		_, question := waits.Pending()
		p.end(typ)
		for _, child := range []run.Run{waits, queued, working} {
			p.orphaned(child)
		}
		_, err := s.Gate.Approvals.Decide(s.Context(), s.Origin, testkit.WS, question, policy.Answer{Decision: policy.Approve})
		if fault.CodeOf(err) != policy.ErrApprovalWithdrawn.Code {
			t.Errorf("%s: an answer after the end: %v", typ, err)
		}
		if now := s.Find(stranger.ID); now.Status != run.AwaitingApproval {
			t.Errorf("%s: a run of nobody's is %s", typ, now.Status)
		}
		for _, space := range []id.Space{in, other} {
			if names := list(t, s, run.Run{Space: space}); len(names) > 0 {
				t.Errorf("%s: a space holds %v", typ, names)
			}
		}
	}
	s.Verify()
}

// A child that was answered before its parent ends does what it was asked.
func TestAChildThatWasAnsweredBeforeItsParentEnds(t *testing.T) {
	t.Parallel()
	s := open(t)
	p, in := employ(s), s.Space().ID
	child := s.Rest(p.child(in, risky).ID)
	s.Decide(child.ID, policy.Approve, "")
	if now := s.Ended(child.ID); now.Status != run.Succeeded || !now.Succeeded() {
		t.Errorf("the child is %s", now.Status)
	}
	p.end(run.EventCompleted)
	if now := s.Find(child.ID); now.Status != run.Succeeded {
		t.Errorf("after its parent's end the child is %s", now.Status)
	}
	s.Verify()
}

// A daemon that starts ends the children of runs that have ended, answered or not, before anything of them is done.
func TestADaemonThatStartsEndsTheChildrenOfWhatHasEnded(t *testing.T) {
	t.Parallel()
	for _, answer := range []policy.DecisionWord{"", policy.Approve} {
		s := testkit.Open(t, testkit.Options{Program: program, Idle: true})
		s.Run()
		p, in := employ(s), s.Space().ID
		first := s.Rest(s.Start(in, risky).ID) // somebody else's, in front of them
		second := s.Rest(p.child(s.Space().ID, risky).ID)
		behind := p.child(in, short)
		s.Restart() // idle: nobody follows
		if answer != "" {
			s.Decide(second.ID, answer, "")
		}
		p.end(run.EventFailed)
		s.Run()
		p.orphaned(second)
		p.orphaned(behind)
		if names := list(t, s, second); len(names) > 0 {
			t.Errorf("answer %q: the space holds %v", answer, names)
		}
		if now := s.Find(first.ID); now.Status != run.AwaitingApproval {
			t.Errorf("a run of nobody's is %s", now.Status)
		}
		s.Verify()
	}
}

// meanwhile is the gate, and somebody who does something in the moment between a decision and what is begun by it.
type meanwhile struct {
	policy.Gate
	do func(policy.Action)
}

func (g *meanwhile) Judge(ctx context.Context, a policy.Action) (policy.Ruling, error) {
	r, err := g.Gate.Judge(ctx, a)
	g.do(a)
	return r, err
}

// Of the end of a run and an operation of its child one comes first: nothing is begun behind the end, with the first operation, a later
// one and one that a person has approved. A heartbeat in that moment is in nobody's way.
func TestNoOperationOfAChildBeginsBehindItsParentsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		operations, at string
		approve, beat  bool
	}{
		"the first operation": {operations: `[{"type":"createFile","id":"x","path":"done","content":"x"}]`, at: "x"},
		"a later one": {operations: `[{"type":"message","id":"m","content":"hi"},{"type":"createFile","id":"x","path":"done","content":"x"}]`,
			at: "x"},
		"an approved one": {operations: `[{"type":"shell","id":"x","command":"rm -rf y; touch done"}]`, at: "x", approve: true},
		"a heartbeat":     {operations: `[{"type":"createFile","id":"x","path":"done","content":"x"}]`, at: "x", beat: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := testkit.Open(t, testkit.Options{Program: program, Idle: true})
			var p *employer
			var once sync.Once
			var armed atomic.Bool // by the answer, if there is one
			armed.Store(!c.approve)
			gate := &meanwhile{s.Gate, func(a policy.Action) {
				if a.Operation != c.at || !armed.Load() {
					return
				}
				once.Do(func() {
					if !c.beat {
						p.end(run.EventCancelled)
					} else if _, err := s.Engines.Renew(context.Background(), s.Origin, p.hold); err != nil {
						t.Error(err)
					}
				})
			}}
			s.Runs = runs.New(runs.Parts{
				Log: s.Log, Docs: s.Docs, Blobs: s.Blobs, Live: s.Live, Gate: gate, Agents: s.Identity,
				Spaces: s.Spaces.Living, Routes: s.Spaces.Routing, Bundles: s.Gate.Bundles,
				Clock: s.Clock, IDs: s.IDs, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
			})
			s.Spaces.SetOccupants(s.Runs)
			s.Run()
			p = employ(s)
			child := p.child(s.Space().ID, c.operations)
			if c.approve {
				if now := s.Rest(child.ID); now.Status != run.AwaitingApproval {
					t.Fatalf("the child is %s", now.Status)
				}
				armed.Store(true)
				s.Decide(child.ID, policy.Approve, "")
			}
			if c.beat {
				if now := s.Ended(child.ID); now.Status != run.Succeeded || !now.Succeeded() {
					t.Errorf("the child is %s", now.Status)
				}
				return
			}
			p.orphaned(child)
			if names := list(t, s, child); len(names) > 0 {
				t.Errorf("the space holds %v", names)
			}
			s.Verify()
		})
	}
}
