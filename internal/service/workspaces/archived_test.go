package workspaces_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"log/slog"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/claim"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/outside"
)

// TestAnArchivedWorkspaceTakesNoRecords tries what is recorded without a judgement, and what would be refused with a record, before and
// after a workspace is archived.
func TestAnArchivedWorkspaceTakesNoRecords(t *testing.T) {
	const (
		ws         = id.Workspace("ws_a")
		passphrase = "correct horse battery"
	)
	h, ctx := open(t), t.Context()
	h.make(ws)
	owner := h.caller(ws)
	origin := as(owner, "")
	c := clock{time.UnixMilli(1_800_000_000_000).UTC()}
	ids := id.NewSource(c.Now, rand.Reader)
	desk := identity.New(identity.Parts{
		Log: h.log, Docs: h.log, Gate: h.gate, Clock: c, IDs: ids, Entropy: rand.Reader, Secret: []byte("0123456789abcdef0123456789abcdef"),
		BootstrapToken: "boot",
	})
	judge := outside.New(outside.Parts{
		Log: h.log, Docs: h.log, Gate: h.gate, Clock: c, Place: func(context.Context, id.Workspace, id.Room, id.Thread) error { return nil },
	})
	tokens, err := claim.NewTokens(make([]byte, claim.SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	seal, err := policy.NewSeal(make([]byte, ed25519.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	hands := engines.New(engines.Parts{
		Log: h.log, Docs: h.log, Blobs: memory.NewBlobs(), MaxContent: 1 << 20, Gate: h.gate, Tokens: tokens, Seal: seal, Clock: c, IDs: ids,
		Logger: slog.New(slog.DiscardHandler), Place: func(context.Context, id.Workspace, id.Room, id.Thread) error { return nil },
	})
	t.Cleanup(hands.Evidence.Wait)
	if _, err := desk.Bootstrap(ctx, "boot", ws, "owner", passphrase); err != nil {
		t.Fatal(err)
	}
	session, err := desk.Login(ctx, ws, "", passphrase)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hands.Create(ctx, origin, engines.Request{Workspace: ws, Room: id.DefaultRoom, Title: "waits"}); err != nil {
		t.Fatal(err)
	}
	agent, err := h.people.Agent(ctx, origin, ws, "worker")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(target string) policy.Approval {
		t.Helper()
		q, err := judge.Ask(ctx, event.Origin{Principal: agent}, principal.Caller{Principal: agent, Workspace: ws},
			outside.Question{Action: policy.ExternalWrite, Target: target, Zone: event.HighStakes}, outside.Words{}, policy.Ask{})
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	first, second := ask("a.example"), ask("b.example")
	answer := func(q policy.Approval, word policy.DecisionWord) error {
		_, err := h.gate.Approvals.Decide(ctx, origin, ws, q.ID, policy.Answer{Decision: word, Scope: policy.ScopeOnce})
		return err
	}
	if err := answer(second, policy.Hold); err != nil {
		t.Fatal(err)
	}
	bundle, err := h.gate.Bundles.Resolve("restrictive", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Archive(ctx, as(h.owner, ""), h.owner, ws, "over"); err != nil {
		t.Fatal(err)
	}
	head := func() uint64 {
		t.Helper()
		n, err := h.log.Head(ctx, ws)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := head()
	refused := map[string]func() error{
		"approve": func() error { return answer(first, policy.Approve) },
		"hold":    func() error { return answer(first, policy.Hold) },
		"pin":     func() error { return h.gate.Bundles.PinBundle(ctx, origin, ws, bundle) },
		"agent": func() error {
			_, err := h.people.Agent(ctx, origin, ws, "another")
			return err
		},
		"log in": func() error {
			_, err := desk.Login(ctx, ws, "", passphrase)
			return err
		},
		"log in wrongly": func() error {
			_, err := desk.Login(ctx, ws, "", "wrong horse battery")
			return err
		},
		"set a passphrase": func() error { return desk.SetPassphrase(ctx, origin, ws, passphrase, passphrase+"!") },
		"refresh": func() error {
			_, err := desk.Refresh(ctx, session.RefreshToken)
			return err
		},
		"claim": func() error {
			_, _, err := hands.Claim(ctx, origin, ws, engines.Wanted{})
			return err
		},
		"make an agent": func() error {
			_, err := desk.RegisterAgent(ctx, origin, ws, "third")
			return err
		},
		"evaluate": func() error {
			a, err := judge.Evaluate(ctx, origin, owner, outside.Question{Action: policy.ExternalWrite, Target: "a.example"}, false)
			if err == nil && (a.Decision.Outcome != policy.Deny || a.Event != "") {
				t.Errorf("evaluated: %+v", a)
			}
			return fault.New(fault.Denied, a.Decision.ReasonCode, "as it was answered")
		},
	}
	for name, try := range refused {
		for range 3 {
			h.want(name, try(), workspace.ErrArchived.Code)
		}
		if now := head(); now != before {
			t.Errorf("%s recorded %d events", name, now-before)
			before = now
		}
	}
	for name, end := range map[string]func() error{
		"deny":    func() error { return answer(first, policy.Refuse) },
		"log out": func() error { return desk.Logout(ctx, ws, session.ID) },
	} {
		if err := end(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := h.Unarchive(ctx, as(h.owner, ""), h.owner, ws, ""); err != nil {
		t.Fatal(err)
	}
	if err := answer(second, policy.Approve); err != nil {
		t.Errorf("approved when the workspace lives again: %v", err)
	}
	if _, err := desk.Login(ctx, ws, "", passphrase); err != nil {
		t.Errorf("logged in when it lives again: %v", err)
	}
}
