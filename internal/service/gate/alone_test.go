package gate_test

import (
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
)

// A single owner answers what they have asked themselves, for nobody else could; an admin who is alone does not.
func TestOnlyAnOwnerAnswersAlone(t *testing.T) {
	for role, want := range map[principal.Role]string{principal.Overlord: "", principal.Admin: "approval_own_request"} {
		h := build(t, nil)
		ann := h.person("ann", principal.Admin)
		if role == principal.Overlord {
			h.raise(ann, principal.Admin, principal.Overlord)
		}
		h.raise(h.owner, principal.Overlord, principal.Member)
		a := h.shell("standard", "rm -r scratch")
		a.Principal = ann
		_, q := h.asked(a)
		if doc, err := h.decide(q, ann, policy.Approve); fault.CodeOf(err) != want || err == nil && doc.Status != policy.Approved {
			t.Errorf("%s: got %s, %v, want %q", role, doc.Status, err, want)
		}
	}
}

// A standing approval follows from the answer that made it.
func TestAStandingApprovalFollowsFromItsAnswer(t *testing.T) {
	h := build(t, nil)
	h.granted(t, 10)
	var decided, granted event.Event
	for _, e := range h.events() {
		switch e.Type {
		case policy.ApprovalDecidedType:
			decided = e
		case policy.StandingGrantedType:
			granted = e
		}
	}
	if granted.ID == "" || granted.Causation != decided.ID || granted.Correlation != decided.Correlation ||
		!granted.OccurredAt.Equal(decided.OccurredAt) {
		t.Errorf("got %+v behind %+v", granted.Header, decided.Header)
	}
}
