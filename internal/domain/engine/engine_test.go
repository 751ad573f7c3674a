package engine_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/engine"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
)

// folds holds what an event makes of a document, and that broken data change nothing.
func folds[T interface {
	comparable
	Evolve(event.Event) (T, error)
}](t *testing.T, before T, typ string, data any, want T) {
	t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	e := event.Event{Header: event.Header{Type: typ, Workspace: "ws_dev", Principal: "usr_1", OccurredAt: time.Unix(9, 0).UTC()}, Data: raw}
	if got, err := before.Evolve(e); err != nil || got != want {
		t.Errorf("%s: got %+v, %v, want %+v", typ, got, err, want)
	}
	if e.Data = json.RawMessage(`[]`); typ != "x" {
		if got, err := before.Evolve(e); err == nil || got != before {
			t.Errorf("%s with broken data: got %+v, %v", typ, got, err)
		}
	}
}

func TestTheDocumentsOfAnEngine(t *testing.T) {
	at, seal := time.Unix(9, 0).UTC(), event.DigestOf([]byte("seal"))
	g := engine.Engine{ID: "svc_1", Workspace: "ws_dev", Name: "worker", CreatedBy: "usr_1", CreatedAt: at}
	folds(t, engine.Engine{}, engine.RegisteredType, engine.Registered{Engine: "svc_1", Name: "worker"}, g)
	folds(t, g, "x", nil, g)
	off := g
	off.Inactive, off.Reason, off.DeactivatedAt = true, "old", at
	folds(t, g, engine.DeactivatedType, engine.Deactivated{Engine: "svc_1", Reason: "old"}, off)
	folds(t, off, engine.DeactivatedType, engine.Deactivated{Engine: "svc_1", Reason: "again"}, off)

	k := engine.Token{ID: "engtok_1", Workspace: "ws_dev", Engine: "svc_1", Capability: "cap_1", Seal: seal, ExpiresAt: at.Add(1),
		CreatedAt: at}
	folds(t, engine.Token{}, engine.TokenIssuedType, engine.TokenIssued{Token: "engtok_1", Engine: "svc_1", Capability: "cap_1", Seal: seal,
		ExpiresAt: at.Add(1)}, k)
	folds(t, k, "x", nil, k)
	revoked := k
	revoked.RevokedAt, revoked.Reason = at, "lost"
	folds(t, k, engine.TokenRevokedType, engine.TokenRevoked{Token: "engtok_1", Reason: "lost"}, revoked)
	folds(t, revoked, engine.TokenRevokedType, engine.TokenRevoked{Token: "engtok_1", Reason: "again"}, revoked)

	for name, c := range map[string]struct {
		k    engine.Token
		seal event.Digest
		want bool
	}{
		"its own": {k, seal, true}, "another": {k, event.DigestOf([]byte("x")), false}, "of no token": {engine.Token{Seal: seal}, seal, false},
		"none of a token without one": {engine.Token{ID: "engtok_1"}, event.Digest{}, false},
	} {
		if got := c.k.Opens(c.seal); got != c.want {
			t.Errorf("the seal is %s: opens %t", name, got)
		}
	}
}

// An engine's work is what its token has to permit, and a refusal names what is missing.
func TestWhatAnEngineMayNot(t *testing.T) {
	work := engine.Work()
	for _, action := range []string{policy.RunClaim, policy.ToolCall, policy.EvidenceCollect} {
		if !slices.Contains(work, action) {
			t.Errorf("%s is not work of an engine", action)
		}
	}
	for _, action := range work {
		if k, known := policy.KindOf(action); !known || !k.Services {
			t.Errorf("services may not %s", action)
		}
	}
	if err := engine.NotPermitted("run.claim"); !errors.Is(err, engine.ErrActionNot) ||
		!strings.Contains(err.Error(), "does not permit run.claim") {
		t.Errorf("got %v", err)
	}
	if err := engine.NotPermitted(""); !errors.Is(err, engine.ErrActionNot) || !strings.Contains(err.Error(), "to see this") {
		t.Errorf("got %v", err)
	}
}
