package gate_test

import (
	"context"
	"errors"
	"testing"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	runs "agentbox/internal/domain/run"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gate/approvals"
)

// asker has the document of the run, which says who asked for it.
type asker struct {
	projection.Reader
	by id.Principal
}

func (a *asker) Document(ctx context.Context, ws id.Workspace, name, key string) (projection.Document, error) {
	if name == runs.Projection && key == string(run) {
		return projection.Document{Key: key, Version: 1, Body: []byte(`{"run_id":"` + key + `","requested_by":"` + string(a.by) + `"}`)}, nil
	}
	return a.Reader.Document(ctx, ws, name, key)
}

// The requester of a run is none of the two persons whom policy demands. Where one is enough, they decide about the agent of their own
// space.
func TestWhoeverAskedForARunIsNoneOfTwo(t *testing.T) {
	of := &asker{}
	h := build(t, func(p *gate.Parts) { of.Reader, p.Docs = p.Docs, of })
	anna, otto, ina := h.person("anna", principal.Operator), h.person("otto", principal.Operator), h.person("ina", principal.Operator)
	of.by = anna
	_, q := h.twoPersons("rm -r scratch")
	if _, err := h.decide(q, anna, policy.Approve); !errors.Is(err, approvals.ErrOwnRequest) {
		t.Errorf("who asked for the run: got %v, want %v", err, approvals.ErrOwnRequest)
	}
	origin := h.origin(otto)
	origin.Issuer = anna
	if _, err := h.Approvals.Decide(context.Background(), origin, ws, q.ID, policy.Answer{Decision: policy.Approve}); !errors.Is(err,
		approvals.ErrOwnCredential) {
		t.Errorf("with a key of theirs: got %v, want %v", err, approvals.ErrOwnCredential)
	}
	for i, p := range []id.Principal{otto, ina} {
		want := []policy.ApprovalStatus{policy.Pending, policy.Approved}[i]
		if doc, err := h.decide(q, p, policy.Approve); err != nil || doc.Status != want {
			t.Errorf("person %d: got %s, %v, want %s", i+1, doc.Status, err, want)
		}
	}
	_, q = h.asked(h.shell("standard", "rm -r one"))
	if doc, err := h.decide(q, anna, policy.Approve); err != nil || doc.Status != policy.Approved {
		t.Errorf("where one is enough: got %s, %v", doc.Status, err)
	}
}

// Where only the requester of the run and one other person could decide, that one is enough.
func TestOneOtherIsEnoughWhereTheSecondAskedForTheRun(t *testing.T) {
	of := &asker{}
	h := build(t, func(p *gate.Parts) { of.Reader, p.Docs = p.Docs, of })
	anna := h.person("anna", principal.Operator)
	of.by = h.owner
	_, q := h.twoPersons("rm -r scratch")
	if _, err := h.decide(q, h.owner, policy.Approve); !errors.Is(err, approvals.ErrOwnRequest) {
		t.Errorf("the owner, who asked: got %v", err)
	}
	if doc, err := h.decide(q, anna, policy.Approve); err != nil || doc.Status != policy.Approved {
		t.Errorf("the only other: got %s, %v", doc.Status, err)
	}
}
