package gate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/engine"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	runs "agentbox/internal/domain/run"
	"agentbox/internal/domain/token"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gate/approvals"
)

// frail is a log with its documents of which one call fails: the one with the number at, from 1, since calls was set to 0. Where garbled, a
// document is read and its body is none.
type frail struct {
	journal.Journal
	docs      projection.Reader
	calls, at int
	garbled   bool
	recorded  bool   // something was
	hit       string // what failed; "" where there was nothing that could be garbled
}

var errFrail = errors.New("the disk has failed")

func (f *frail) fails(what string) bool {
	if f.calls++; f.calls != f.at {
		return false
	}
	f.hit = what
	return true
}

func (f *frail) Append(ctx context.Context, b event.Batch) (event.Receipt, error) {
	if f.fails("append") {
		return event.Receipt{}, errFrail
	}
	f.recorded = true
	return f.Journal.Append(ctx, b)
}

func (f *frail) Workspaces(ctx context.Context) ([]id.Workspace, error) {
	if f.fails("workspaces") {
		return nil, errFrail
	}
	return f.Journal.Workspaces(ctx)
}

func (f *frail) Document(ctx context.Context, ws id.Workspace, name, key string) (projection.Document, error) {
	if f.fails("document of " + name) {
		if !f.garbled {
			return projection.Document{}, errFrail
		}
		doc, err := f.docs.Document(ctx, ws, name, key)
		if err != nil {
			f.hit = ""
		}
		doc.Body = []byte(`{"`)
		return doc, err
	}
	return f.docs.Document(ctx, ws, name, key)
}

func (f *frail) Documents(ctx context.Context, q projection.Query) ([]projection.Document, error) {
	if f.fails("documents of " + q.Name) {
		if !f.garbled {
			return nil, errFrail
		}
		found, err := f.docs.Documents(ctx, q)
		if len(found) == 0 {
			f.hit = ""
		}
		for i := range found {
			found[i].Body = []byte(`{"`)
		}
		return found, err
	}
	return f.docs.Documents(ctx, q)
}

// other is a workspace besides that of the installation, which is looked up before something is done in it.
const otherWS = id.Workspace("ws_other")

// elsewhere makes the other workspace with an owner and an agent.
func (g *grants) elsewhere() (owner, agent id.Principal) {
	g.t.Helper()
	g.record(otherWS, workspace.EventCreated, workspace.EntityType, string(otherWS), workspace.Created{Workspace: otherWS,
		Kind: workspace.Community, Name: "other", Tasks: 1})
	owner, err := g.Owner(context.Background(), otherWS, "Olaf")
	agent, failed := g.Agent(context.Background(), g.origin(owner), otherWS, "worker")
	if err := errors.Join(err, failed); err != nil {
		g.t.Fatal(err)
	}
	return owner, agent
}

// sweep is something that is done over a store of which each call fails in its turn.
type sweep struct {
	name    string
	least   int    // calls that there are at least, so that the test tests something
	spared  string // what may be garbled, because only its version is looked at
	prepare func(g *grants) (do func() error)
}

// If a call of the store fails, the request fails with that error. The answer claims nothing that nobody could read or record, and is no
// refusal.
func TestEveryFailureOfTheStoreIsTold(t *testing.T) {
	ctx := context.Background()
	const versions = "document of principals, document of workspaces"
	everything := func(g *grants) token.Use { return token.Use{Action: policy.RunStart, Room: room} }
	for _, c := range []sweep{
		{"the judgement of an agent's start under a token", 5, "", func(g *grants) func() error {
			a := policy.Action{Type: policy.RunStart, Workspace: ws, Room: room, Principal: g.agent, Bundle: g.bundles["standard"].Hash}
			a.Token = g.grant(g.agent, actions(policy.RunStart), below(g.grant(g.mia, actions(policy.RunStart))))
			return func() error { _, err := g.Judge(ctx, a); return err }
		}},
		{"the judgement under the token of a run", 5, "", func(g *grants) func() error {
			a := g.file("standard", policy.FileRead, "a")
			a.Token = g.grant(g.mia)
			g.run.doc = runs.Run{ID: run, Workspace: ws, Token: a.Token, CreatedBy: g.mia, Agent: g.agent}
			return func() error { _, err := g.Judge(ctx, a); return err }
		}},
		{"the judgement under the token of an owner", 5, "", func(g *grants) func() error {
			a := g.file("standard", policy.FileRead, "a")
			a.Token = g.grant(g.owner)
			return func() error { _, err := g.Judge(ctx, a); return err }
		}},
		{"the judgement under a pinned policy", 2, "", func(g *grants) func() error {
			return func() error { _, err := g.Judge(ctx, g.shell("permissive", "ls")); return err }
		}},
		{"a caller who is bound", 2, "", func(g *grants) func() error {
			c := principal.Caller{Principal: g.agent, Workspace: ws, Token: g.grant(g.agent)}
			return func() error { return g.Bound(ctx, g.origin(g.agent), c, everything(g)) }
		}},
		{"a caller who is refused in another workspace", 3, "", func(g *grants) func() error {
			_, agent := g.elsewhere()
			c := principal.Caller{Principal: agent, Workspace: otherWS, Token: "cap_none"}
			return func() error { return told(g.Bound(ctx, g.origin(agent), c, everything(g)), policy.ReasonTokenNotFound) }
		}},
		{"acting for an agent under a token", 3, "", func(g *grants) func() error {
			c, tok := principal.Caller{Principal: g.ada, Workspace: ws}, g.grant(g.ada)
			return func() error { _, err := g.ActsFor(ctx, c, g.agent, tok); return err }
		}},
		{"a key", 2, "", func(g *grants) func() error {
			text, _ := g.key(g.mia, g.ada)
			return func() error { _, err := g.Authenticate(ctx, text); return err }
		}},
		{"the bearer of a token", 3, "", func(g *grants) func() error {
			text, _ := g.borne(g.agent, below(g.grant(g.mia)))
			return func() error { _, err := g.Authenticate(ctx, text); return err }
		}},
		{"a session", 2, "", func(g *grants) func() error {
			text, _ := g.session(g.ada, "", g.clock.Now().Add(time.Hour))
			return func() error { _, err := g.Authenticate(ctx, text); return err }
		}},
		{"an engine", 4, "", func(g *grants) func() error {
			g.record(ws, engine.RegisteredType, engine.Entity, string(g.service), engine.Registered{Engine: g.service, Name: "mailer"})
			name := id.New[id.EngineToken](g.ids)
			text := g.secret(principal.EngineForm, ws, string(name))
			g.record(ws, engine.TokenIssuedType, engine.TokenEntity, string(name), engine.TokenIssued{
				Token: name, Engine: g.service, Capability: g.grant(g.service), Seal: principal.Seal(nil, text),
			})
			return func() error { _, err := g.AuthenticateEngine(ctx, g.service, text); return err }
		}},
		{"a new owner", 2, "", func(g *grants) func() error {
			return func() error { _, err := g.Owner(ctx, otherWS, "Olaf"); return err }
		}},
		{"a new agent elsewhere", 4, "", func(g *grants) func() error {
			owner, _ := g.elsewhere()
			return func() error { _, err := g.Agent(ctx, g.origin(owner), otherWS, "another"); return err }
		}},
		{"a new person", 3, versions, func(g *grants) func() error {
			return func() error { _, err := g.AddPerson(ctx, g.origin(g.owner), ws, "Nora", principal.Member); return err }
		}},
		{"a quarantine", 4, versions, func(g *grants) func() error {
			return func() error { return g.Quarantine(ctx, g.origin(g.owner), ws, g.mia, true, "") }
		}},
		{"somebody", 1, "", func(g *grants) func() error {
			return func() error { _, err := g.Principal(ctx, ws, g.mia); return err }
		}},
		{"a key for another one, by one who acts by what another one made", 5, versions, func(g *grants) func() error {
			origin := g.origin(g.ada)
			origin.Issuer = g.owner
			return func() error { _, _, err := g.IssueKey(ctx, origin, ws, g.mia, "key"); return err }
		}},
		{"the end of a key of another one", 4, versions, func(g *grants) func() error {
			_, key := g.key(g.mia, g.mia)
			return func() error { return g.RevokeKey(ctx, g.origin(g.owner), ws, key, "", false) }
		}},
		{"the end of a key of an owner", 4, versions, func(g *grants) func() error {
			_, key := g.key(g.owner, g.owner)
			g.key(g.owner, g.owner)
			return func() error { return g.RevokeKey(ctx, g.origin(g.owner), ws, key, "", false) }
		}},
		{"the answer to a question elsewhere, with a standing approval", 6, "", func(g *grants) func() error {
			owner, agent := g.elsewhere()
			r, err := g.Judge(ctx, policy.Action{
				Type: policy.ShellExec, Workspace: otherWS, Room: room, Run: run, Principal: agent, Command: "rm -r x", Argv: []string{"/bin/bash",
					"-c", "rm -r x"}, TimeoutMS: 1,
			})
			q, failed := g.Ask(ctx, g.origin(agent), r, policy.Ask{}, event.Batch{Workspace: otherWS})
			if err := errors.Join(err, failed); err != nil {
				g.t.Fatal(err)
			}
			answer := policy.Answer{Decision: policy.Approve, Scope: policy.ScopeRun, Uses: 2, ExpiresAt: g.clock.Now().Add(time.Hour)}
			return func() error { _, err := g.Approvals.Decide(ctx, g.origin(owner), otherWS, q.ID, answer); return err }
		}},
		{"a question", 4, "", func(g *grants) func() error {
			return ruled(g, g.shell("standard", "rm -r scratch"), func(r policy.Ruling) error {
				_, err := g.Ask(ctx, g.origin(g.agent), r, policy.Ask{}, event.Batch{Workspace: ws})
				return err
			})
		}},
		{"a question that is asked once", 4, "", func(g *grants) func() error {
			a := policy.Action{Type: policy.SpaceCreate, Workspace: ws, Room: room, Principal: g.agent, Bundle: g.bundles["standard"].Hash}
			a.Type, a.Target, a.Zone = policy.ExternalWrite, "a.org", event.HighStakes
			return ruled(g, a, func(r policy.Ruling) error {
				_, err := g.AskOnce(ctx, g.origin(g.agent), r, event.Batch{Workspace: ws})
				return err
			})
		}},
		{"the withdrawal of a question", 3, "", func(g *grants) func() error {
			a := g.shell("standard", "rm -r scratch")
			a.Run, a.Space = "", ""
			_, q := g.asked(a)
			return func() error { _, err := g.Approvals.TakeBack(ctx, g.origin(g.agent), ws, q.ID, ""); return err }
		}},
		{"the end of questions", 3, "", func(g *grants) func() error {
			g.asked(g.shell("standard", "rm -r scratch"))
			g.clock.move(policy.DefaultQuestionTime)
			return func() error { return g.Approvals.Step(ctx, g.clock.Now()) }
		}},
		{"an effect that is counted", 6, versions, counted(false)},
		{"an effect that other daemons count too", 7, versions, counted(true)},
		{"the use of an approval", 3, "", func(g *grants) func() error {
			a := g.shell("standard", "rm -r scratch")
			_, q := g.asked(a)
			g.approve(q, g.owner)
			return ruled(g, a, func(r policy.Ruling) error { _, _, err := g.Begin(ctx, r, q.ID, g.intent(a)); return err })
		}},
		{"the use of a standing approval", 4, "", func(g *grants) func() error {
			_, r := g.granted(g.t, 10)
			return ruled(g, r.Action, func(r policy.Ruling) error { _, _, err := g.Begin(ctx, r, "", g.intent(r.Action)); return err })
		}},
		{"an effect elsewhere", 5, versions, func(g *grants) func() error {
			_, agent := g.elsewhere()
			a := policy.Action{Type: policy.FileCreate, Workspace: otherWS, Room: room, Principal: agent, Path: "a"}
			intent := event.Batch{Workspace: otherWS, Drafts: []event.Draft{event.New("tool.invoked", g.origin(agent), otherWS, room, struct{}{})}}
			return ruled(g, a, func(r policy.Ruling) error { _, _, err := g.Begin(ctx, r, "", intent); return err })
		}},
		{"a judgement in a space with a list of tools", 5, "", func(g *grants) func() error {
			g.housed()
			g.everyRoomLists("createFile")
			a := g.file("standard", policy.FileCreate, "a")
			return func() error { _, err := g.Judge(ctx, a); return err }
		}},
		{"an effect in a space with a list of tools", 6, versions, func(g *grants) func() error {
			g.housed()
			g.everyRoomLists("createFile")
			a := g.file("standard", policy.FileCreate, "a")
			return ruled(g, a, func(r policy.Ruling) error { _, _, err := g.Begin(ctx, r, "", g.intent(a)); return err })
		}},
		{"a policy that is pinned elsewhere", 3, "", func(g *grants) func() error {
			owner, _ := g.elsewhere()
			return func() error { _, err := g.Bundles.Pin(ctx, g.origin(owner), otherWS, "permissive", nil); return err }
		}},
		{"a change of an action type", 5, versions, func(g *grants) func() error {
			g.declare(nil)
			return func() error { _, err := g.ActionTypes.Declare(ctx, g.origin(g.owner), ws, deploy(asks)); return err }
		}},
		{"a declaration that holds already", 3, "", func(g *grants) func() error {
			g.declare(nil)
			return func() error { _, err := g.ActionTypes.Declare(ctx, g.origin(g.owner), ws, deploy(nil)); return err }
		}},
		{"the end of an action type", 5, versions, func(g *grants) func() error {
			g.declare(nil)
			return func() error {
				_, err := g.ActionTypes.Retire(ctx, g.origin(g.owner), ws, "deploy.production", "")
				return err
			}
		}},
		{"the end of an action type that there is not", 2, "", func(g *grants) func() error {
			return func() error {
				_, err := g.ActionTypes.Retire(ctx, g.origin(g.owner), ws, "deploy.production", "")
				return told(err, policy.ErrActionTypeNotFound.Code)
			}
		}},
		{"a declaration as of now", 1, "", func(g *grants) func() error {
			g.declare(nil)
			return ruled(g, g.deploys(), func(r policy.Ruling) error { return g.ActionTypes.Current(ctx, r.Action) })
		}},
		{"what a policy names", 1, "", func(g *grants) func() error {
			g.declare(nil)
			b := g.bundle("allow: {actions: [deploy.production]}", false)
			return func() error { _, err := g.Bundles.Warnings(ctx, ws, b); return err }
		}},
		{"the kill switch", 1, "", func(g *grants) func() error {
			return func() error { _, err := g.KillSwitch.State(ctx, ws); return err }
		}},
		{"the lifting of the kill switch", 4, "", func(g *grants) func() error {
			if _, err := g.KillSwitch.Throw(ctx, g.origin(g.owner), ws, ""); err != nil {
				g.t.Fatal(err)
			}
			return func() error { _, err := g.KillSwitch.Lift(ctx, g.origin(g.owner), ws, ""); return err }
		}},
		{"lists", 2, "", func(g *grants) func() error {
			return func() error {
				_, err := g.Approvals.List(ctx, ws, approvals.Filter{})
				_, failed := g.Approvals.Standings(ctx, ws, "", 10)
				return errors.Join(err, failed)
			}
		}},
	} {
		for _, garbled := range []bool{false, true} {
			failures := c.swept(t, garbled)
			if failures < c.least {
				t.Errorf("%s: %d calls have failed, want at least %d", c.name, failures, c.least)
			}
		}
	}
}

// swept lets one call after the other fail, until what is to be done is done, and returns how many have failed.
func (c sweep) swept(t *testing.T, garbled bool) (failures int) {
	t.Helper()
	var do func() error
	f := &frail{garbled: garbled}
	var g *grants
	for at := 1; ; at++ {
		if f.recorded || do == nil {
			g = newGrantsOver(t, func(p *gate.Parts) {
				*f = frail{Journal: p.Log, docs: p.Docs, garbled: garbled}
				p.Log, p.Docs = f, f
			})
			do = c.prepare(g)
		}
		g.restart() // it remembers nothing
		f.calls, f.at, f.hit, f.recorded = 0, at, "", false
		err := do()
		switch {
		case f.calls < at:
			if err != nil {
				t.Errorf("%s: when nothing has failed: %v", c.name, err)
			}
			return failures
		case !garbled && !errors.Is(err, errFrail):
			t.Errorf("%s: call %d, %s, has failed: got %v", c.name, at, f.hit, err)
		case garbled && err == nil && strings.HasPrefix(f.hit, "document") && !strings.Contains(c.spared, f.hit):
			t.Errorf("%s: call %d, %s, was garbled: got no error", c.name, at, f.hit)
		}
		failures++
	}
}

// ruled judges an action and does something with the ruling.
func ruled(g *grants, a policy.Action, do func(policy.Ruling) error) func() error {
	return func() error {
		r, err := g.Judge(context.Background(), a)
		if err != nil {
			return err
		}
		return do(r)
	}
}

// counted judges and begins the second effect of an hour.
func counted(together bool) func(g *grants) func() error {
	return func(g *grants) func() error {
		g.parts.EffectsPerHour, g.parts.Together = 5, together
		g.restart()
		a := g.shell("standard", "ls")
		if err := begin(g.house, g.judge(a), ""); err != nil {
			g.t.Fatal(err)
		}
		return ruled(g, a, func(r policy.Ruling) error {
			_, _, err := g.Begin(context.Background(), r, "", g.intent(a))
			return err
		})
	}
}

// told returns no error where it is the refusal that was to come.
func told(err error, code string) error {
	switch {
	case fault.CodeOf(err) == code:
		return nil
	case err == nil:
		return errors.New("it was not refused")
	}
	return err
}
