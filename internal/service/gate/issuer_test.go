package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gate/approvals"
	"agentbox/internal/service/identity"
)

// key makes a key for one principal by another, and returns the origin of a request with that key.
func (h *house) key(by event.Origin, of id.Principal) event.Origin {
	h.t.Helper()
	bearer, doc, err := h.IssueKey(context.Background(), by, ws, of, "spare")
	if err != nil {
		h.t.Fatal(err)
	}
	c, err := h.Authenticate(context.Background(), bearer)
	if err != nil || c.Principal != of || doc.IssuedBy == "" {
		h.t.Fatalf("got %+v of %+v, %v", c, doc, err)
	}
	return event.Origin{Principal: c.Principal, Issuer: c.Issuer, Correlation: "cor_test"}
}

func (h *house) answer(q policy.Approval, by event.Origin, word policy.DecisionWord) (policy.Approval, error) {
	return h.Approvals.Decide(context.Background(), by, ws, q.ID, policy.Answer{Decision: word})
}

// questionOf is a question of a person; approvers is a line of the policy, or nothing.
func (h *house) questionOf(p id.Principal, approvers string) policy.Approval {
	h.t.Helper()
	a := h.file("standard", policy.FileCreate, "docs/a")
	a.Principal = p
	a.Bundle = h.bundle("preset: standard\n"+approvers+"ask: {paths: ['docs/**']}\n", false).Hash
	_, q := h.asked(a)
	return q
}

// A person cannot answer their own question with a key that they have issued to somebody else.
func TestNobodyAnswersHimselfWithAKeyThatHeIssued(t *testing.T) {
	h := build(t, nil)
	ada, bob := h.person("ada", principal.Admin), h.person("bob", principal.Admin)
	q := h.questionOf(h.owner, "")
	given := h.key(h.origin(h.owner), ada)
	for _, word := range []policy.DecisionWord{policy.Approve, policy.Refuse, policy.Hold} {
		if _, err := h.answer(q, given, word); !errors.Is(err, approvals.ErrOwnCredential) {
			t.Errorf("%s with the key that the requester issued: got %v, want %v", word, err, approvals.ErrOwnCredential)
		}
	}
	if doc, err := h.answer(h.questionOf(bob, ""), given, policy.Approve); err != nil || doc.Status != policy.Approved {
		t.Errorf("a question of somebody else: got %s, %v", doc.Status, err)
	}
	if doc, err := h.answer(q, h.key(given, ada), policy.Approve); err != nil || doc.Status != policy.Approved {
		t.Errorf("with a key of her own: got %s, %v", doc.Status, err)
	}
}

// A member whose key an admin has issued, who makes a second one with it and is raised, still comes with the admin's credential.
func TestAnIssuedKeyIsNotLeftByMakingAnother(t *testing.T) {
	h := build(t, nil)
	ada := h.person("ada", principal.Admin)
	puppet, err := h.AddPerson(context.Background(), h.origin(ada), ws, "puppet", principal.Member)
	if err != nil {
		t.Fatal(err)
	}
	second := h.key(h.key(h.key(h.origin(ada), puppet), puppet), puppet)
	if second.Issuer != ada {
		t.Errorf("the third key was issued by %q, want %s", second.Issuer, ada)
	}
	h.raise(puppet, principal.Member, principal.Operator)
	if _, err := h.answer(h.questionOf(ada, ""), second, policy.Approve); !errors.Is(err, approvals.ErrOwnCredential) {
		t.Errorf("got %v, want %v", err, approvals.ErrOwnCredential)
	}
}

// raise records another role of a person, as the identity service does.
func (h *house) raise(p id.Principal, from, to principal.Role) {
	h.t.Helper()
	draft := event.New(principal.RoleChangedType, h.origin(h.owner), ws, "", principal.RoleChanged{Principal: p, From: from,
		To: to}).About(principal.Entity, string(p))
	if _, err := h.log.Append(context.Background(), event.Batch{Workspace: ws, Drafts: []event.Draft{draft}}); err != nil {
		h.t.Fatal(err)
	}
}

// Of two persons who approve neither comes with a credential of the other, nor both with one of a third.
func TestTwoKeysOfOneIssuerAreOnePerson(t *testing.T) {
	h := build(t, nil)
	anna, otto := h.person("anna", principal.Operator), h.person("otto", principal.Operator)
	annas, ottos := h.key(h.origin(h.owner), anna), h.key(h.origin(h.owner), otto)
	for name, c := range map[string][2]event.Origin{
		"the issuer, then his key": {h.origin(h.owner), annas},
		"his key, then the issuer": {annas, h.origin(h.owner)},
		"two of his keys":          {annas, ottos},
	} {
		_, q := h.twoPersons("rm -r " + map[bool]string{true: "a", false: "b"}[name == "two of his keys"])
		if doc, err := h.answer(q, c[0], policy.Approve); err != nil || doc.Status != policy.Pending {
			t.Fatalf("%s: the first: got %s, %v", name, doc.Status, err)
		}
		if _, err := h.answer(q, c[1], policy.Approve); !errors.Is(err, policy.ErrAssentCredential) {
			t.Errorf("%s: got %v, want %v", name, err, policy.ErrAssentCredential)
		}
	}
	_, q := h.twoPersons("rm -r c")
	if _, err := h.answer(q, annas, policy.Approve); err != nil {
		t.Fatal(err)
	}
	own := h.key(annas, anna)
	if doc, err := h.answer(q, own, policy.Approve); err != nil || len(doc.Assents) != 1 || doc.Assents[0].Issuer != "" {
		t.Errorf("the same person with a key of her own: got %+v, %v", doc.Assents, err)
	}
	if _, err := h.answer(q, own, policy.Approve); !errors.Is(err, policy.ErrAlreadyAssented) {
		t.Errorf("twice: got %v, want %v", err, policy.ErrAlreadyAssented)
	}
	if doc, err := h.answer(q, h.origin(h.owner), policy.Approve); err != nil || doc.Status != policy.Approved {
		t.Errorf("the issuer: got %s, %v", doc.Status, err)
	}
	if doc, err := h.answer(q, h.origin(h.owner), policy.Refuse); !errors.Is(err, policy.ErrAlreadyDecided) {
		t.Errorf("again: got %s, %v", doc.Status, err)
	}
}

// Who makes keys for whom: owners for everybody but owners; admins for members, viewers, agents and services; everybody for themselves.
func TestWhoIssuesKeysForWhom(t *testing.T) {
	h := build(t, nil)
	people := map[principal.Role]id.Principal{principal.Overlord: h.owner, "agent": h.agent}
	for _, role := range []principal.Role{principal.Admin, principal.Operator, principal.Member, principal.Viewer} {
		people[role] = h.person(string(role), role)
	}
	people["peer"], people["other owner"] = h.person("peer", principal.Admin), h.person("other owner", principal.Overlord)
	may := map[principal.Role]map[principal.Role]bool{
		principal.Overlord: {principal.Admin: true, "peer": true, principal.Operator: true, principal.Member: true, principal.Viewer: true,
			"agent": true},
		principal.Admin: {principal.Member: true, principal.Viewer: true, "agent": true},
	}
	for by, issuer := range people {
		if by == "peer" || by == "other owner" {
			continue
		}
		for of, target := range people {
			_, _, err := h.IssueKey(context.Background(), h.origin(issuer), ws, target, "spare")
			if want := by == of || may[by][of]; want != (err == nil) || err != nil && !errors.Is(err, identity.ErrMayNotIssue) {
				t.Errorf("%s for %s: got %v, want allowed: %t", by, of, err, want)
			}
		}
	}
}

// An old key, whose event does not name the issuer, was issued by the principal who caused the event.
func TestAKeyOfOldWasIssuedByWhoCausedIt(t *testing.T) {
	data, err := json.Marshal(map[string]string{"key_id": "key_01M7YNAYM0SM228XA4K3G6VDD4", "principal_id": "usr_b",
		"secret_sha256": "sha256:" + event.DigestOf(nil).Hex()})
	if err != nil {
		t.Fatal(err)
	}
	for caused, want := range map[id.Principal]id.Principal{"usr_a": "usr_a", "": "usr_b"} {
		got, err := principal.Key{}.Evolve(event.Event{Header: event.Header{Type: principal.KeyIssuedType, Principal: caused}, Data: data})
		if err != nil || got.IssuedBy != want {
			t.Errorf("caused by %q: got %q, %v, want %s", caused, got.IssuedBy, err, want)
		}
	}
}

// Of many questions that a principal asks at once, as through two daemons, no more are open than may be.
func TestNoMoreQuestionsAreOpenThanMayBe(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	other, err := gate.New(h.parts)
	if err != nil {
		t.Fatal(err)
	}
	r := make([]policy.Ruling, approvals.MaxOpen+20)
	for n := range r {
		r[n] = h.judge(h.shell("standard", fmt.Sprintf("rm -r scratch%d", n)))
	}
	var wg sync.WaitGroup
	var asked, full atomic.Int32
	for n, g := range []*gate.Gate{h.Gate, other} {
		again := r
		if n == 1 { // its own rulings
			again = make([]policy.Ruling, len(r))
			for i := range r {
				if again[i], err = other.Judge(ctx, r[i].Action); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := n; i < len(again); i += 2 {
			wg.Go(func() {
				switch _, err := g.Ask(ctx, h.origin(h.agent), again[i], policy.Ask{}, event.Batch{Workspace: ws}); {
				case err == nil:
					asked.Add(1)
				case fault.CodeOf(err) == policy.ReasonQuotaExceeded:
					full.Add(1)
				default:
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if asked.Load() != approvals.MaxOpen || full.Load() != 20 || h.count(policy.ApprovalRequestedType) != approvals.MaxOpen {
		t.Errorf("%d questions were asked and %d refused, want %d and 20", asked.Load(), full.Load(), approvals.MaxOpen)
	}
}
