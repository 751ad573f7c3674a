package gate_test

import (
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
)

// Declared types are returned, found and listed. Retired types are found, and listed on request.
func TestDeclaredActionTypesAreFound(t *testing.T) {
	h := build(t, nil)
	ctx := t.Context()
	late := &clock{now: h.clock.Now().Add(time.Minute)} // the log has another clock
	h.ActionTypes.Clock = late
	named := func(name string) func(*policy.Declare) { return func(d *policy.Declare) { d.Name = name } }
	for i, name := range []string{"deploy.a", "deploy.b", "deploy.c"} {
		if doc := h.declare(named(name)); doc.Name != name || doc.Version != 1 || !doc.Living() {
			t.Errorf("declared %d: got %+v", i, doc)
		}
		if e := h.last(policy.ActionTypeDeclaredType); !e.OccurredAt.Equal(late.Now()) {
			t.Errorf("declared at %s", e.OccurredAt)
		}
	}
	retired, err := h.ActionTypes.Retire(ctx, h.origin(h.owner), ws, "deploy.b", "moved")
	if err != nil || retired.Name != "deploy.b" || retired.Living() {
		t.Errorf("retired: got %+v, %v", retired, err)
	}
	for _, c := range []struct {
		retired bool
		after   string
		limit   int
		want    string
	}{
		{false, "", 10, "deploy.a deploy.c"}, {true, "", 10, "deploy.a deploy.b deploy.c"}, {true, "deploy.a", 1, "deploy.b"},
		{false, "deploy.a", 10, "deploy.c"},
	} {
		found, err := h.ActionTypes.List(ctx, ws, c.retired, c.after, c.limit)
		var names []string
		for _, doc := range found {
			names = append(names, doc.Name)
		}
		if got := strings.Join(names, " "); got != c.want || err != nil {
			t.Errorf("listed after %q: got %s, %v, want %s", c.after, got, err, c.want)
		}
	}
	if doc, err := h.ActionTypes.Get(ctx, ws, "deploy.b"); err != nil || doc.Name != "deploy.b" || doc.Living() {
		t.Errorf("a retired one: got %+v, %v", doc, err)
	}
	if doc, err := h.ActionTypes.Get(ctx, ws, "deploy.d"); fault.CodeOf(err) != policy.ErrActionTypeNotFound.Code || doc.Name != "" {
		t.Errorf("one that there is not: got %+v, %v", doc, err)
	}
}

// Who may not retire any type learns that first, and it is in the log where there is one; a reason has to be one.
func TestWhoRetires(t *testing.T) {
	h := build(t, nil)
	mia := h.person("Mia", principal.Member)
	h.declare(nil)
	for _, c := range []struct {
		who          string
		p            id.Principal
		name, reason string
		code         string
		denied, done int // events
	}{
		{"a member", mia, "deploy.production", "", policy.ReasonRoleTooLow, 1, 0},
		{"a member, of none", mia, "deploy.staging", "", policy.ReasonRoleTooLow, 0, 0},
		{"the owner, of none", h.owner, "deploy.staging", "", policy.ErrActionTypeNotFound.Code, 0, 0},
		{"the owner, too long", h.owner, "deploy.production", strings.Repeat("x", policy.MaxReasonBytes+1), policy.ErrReasonTooLong.Code, 0, 0},
		{"the owner", h.owner, "deploy.production", strings.Repeat("x", policy.MaxReasonBytes), "", 0, 1},
		{"the owner, again", h.owner, "deploy.production", "", policy.ErrActionTypeNotFound.Code, 0, 0},
	} {
		denied, done := h.count(policy.DeniedType), h.count(policy.ActionTypeRetiredType)
		doc, err := h.ActionTypes.Retire(t.Context(), h.origin(c.p), ws, c.name, c.reason)
		if fault.CodeOf(err) != c.code || (err == nil) != (doc.Name == c.name) {
			t.Errorf("%s: got %+v, %v, want %q", c.who, doc, err, c.code)
		}
		if d, n := h.count(policy.DeniedType)-denied, h.count(policy.ActionTypeRetiredType)-done; d != c.denied || n != c.done {
			t.Errorf("%s: %d refusals and %d ends were recorded, want %d and %d", c.who, d, n, c.denied, c.done)
		}
	}
}
