package policy_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// question returns an open approval that ends in a day.
func question() policy.Approval {
	return policy.Approval{ID: "apr_1", Workspace: "ws_dev", Status: policy.Pending, ExpiresAt: noon.Add(24 * time.Hour)}
}

func TestAnAnswerToAQuestion(t *testing.T) {
	day := noon.Add(24 * time.Hour)
	at := func(s policy.ApprovalStatus, end time.Time) policy.Approval {
		a := question()
		a.Status, a.ExpiresAt = s, end
		return a
	}
	yes := func(change func(*policy.Answer)) policy.Answer {
		a := policy.Answer{Decision: policy.Approve}
		change(&a)
		return a
	}
	ends := func(end time.Time) policy.Answer { return yes(func(a *policy.Answer) { a.ExpiresAt = end }) }
	for _, c := range []struct {
		name   string
		doc    policy.Approval
		answer policy.Answer
		want   error
		status policy.ApprovalStatus
		end    time.Time
	}{
		{"yes", question(), ends(time.Time{}), nil, policy.Approved, day},
		{"no", question(), policy.Answer{Decision: policy.Refuse}, nil, policy.Denied, day},
		{"later", question(), policy.Answer{Decision: policy.Hold}, nil, policy.Held, day},
		{"yes after later", at(policy.Held, day), ends(time.Time{}), nil, policy.Approved, day},
		{"neither", question(), policy.Answer{Decision: "maybe"}, policy.ErrInvalidDecision, "", time.Time{}},
		{"nothing", question(), policy.Answer{}, policy.ErrInvalidDecision, "", time.Time{}},
		{"after the end was recorded", at(policy.Expired, day), ends(time.Time{}), policy.ErrApprovalExpired, "", time.Time{}},
		{"after it was withdrawn", at(policy.Withdrawn, day), ends(time.Time{}), policy.ErrApprovalWithdrawn, "", time.Time{}},
		{"after a yes", at(policy.Approved, day), policy.Answer{Decision: policy.Refuse}, policy.ErrAlreadyDecided, "", time.Time{}},
		{"after a no", at(policy.Denied, day), ends(time.Time{}), policy.ErrAlreadyDecided, "", time.Time{}},
		{"at the end", at(policy.Pending, noon), ends(time.Time{}), policy.ErrApprovalExpired, "", time.Time{}},
		{"in the last moment", at(policy.Pending, noon.Add(1)), ends(time.Time{}), nil, policy.Approved, noon.Add(policy.UseTime)},
		{"a no in the last moment", at(policy.Pending, noon.Add(1)), policy.Answer{Decision: policy.Refuse}, nil, policy.Denied, noon.Add(1)},
		{"with just the time for its use", at(policy.Pending, noon.Add(policy.UseTime)), ends(time.Time{}), nil, policy.Approved,
			noon.Add(policy.UseTime)},
		{"until soon", question(), ends(noon.Add(1)), nil, policy.Approved, noon.Add(1)},
		{"until now", question(), ends(noon), policy.ErrInvalidExpiry, "", time.Time{}},
		{"as long as may be", question(), ends(noon.Add(policy.MaxQuestionTime)), nil, policy.Approved, noon.Add(policy.MaxQuestionTime)},
		{"longer", question(), ends(noon.Add(policy.MaxQuestionTime + 1)), policy.ErrInvalidExpiry, "", time.Time{}},
		{"a long reason", question(), yes(func(a *policy.Answer) { a.Reason = strings.Repeat("x", policy.MaxReasonBytes) }), nil, policy.Approved,
			day},
		{"a longer one", question(), yes(func(a *policy.Answer) { a.Reason = strings.Repeat("x", policy.MaxReasonBytes+1) }),
			policy.ErrReasonTooLong, "", time.Time{}},
		{"a reason that is not a text", question(), yes(func(a *policy.Answer) { a.Reason = "\xff" }), policy.ErrReasonTooLong, "", time.Time{}},
	} {
		d, err := c.doc.Decide(c.answer, noon)
		if fault.CodeOf(err) != fault.CodeOf(c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
			continue
		}
		want := policy.ApprovalDecided{}
		if c.want == nil {
			want = policy.ApprovalDecided{Approval: "apr_1", Decision: c.answer.Decision, Status: c.status, Reason: c.answer.Reason,
				Scope: policy.ScopeOnce, ExpiresAt: c.end}
		}
		if !reflect.DeepEqual(d, want) {
			t.Errorf("%s: got %+v, want %+v", c.name, d, want)
		}
	}
}

// Only a yes beyond once carries a scope and the standing approval that it makes. Its end is that of the standing approval, not of the
// answer.
func TestTheScopeOfAnAnswer(t *testing.T) {
	for _, c := range []struct {
		decision policy.DecisionWord
		scope    policy.Scope
		want     policy.Scope
		standing id.Standing
	}{
		{policy.Approve, "", policy.ScopeOnce, ""}, {policy.Approve, policy.ScopeOnce, policy.ScopeOnce, ""},
		{policy.Approve, policy.ScopeRoom, policy.ScopeRoom, "std_1"}, {policy.Refuse, policy.ScopeRoom, policy.ScopeOnce, ""},
		{policy.Hold, policy.ScopeRoom, policy.ScopeOnce, ""},
	} {
		answer := policy.Answer{Decision: c.decision, Scope: c.scope, Standing: "std_1"}
		if c.want == policy.ScopeRoom {
			answer.ExpiresAt = noon.Add(20 * 24 * time.Hour)
		}
		d, err := question().Decide(answer, noon)
		if err != nil || d.Scope != c.want || d.Standing != c.standing || !d.ExpiresAt.Equal(noon.Add(24*time.Hour)) {
			t.Errorf("%s for %q: got %+v, %v", c.decision, c.scope, d, err)
		}
	}
	for _, s := range []policy.Scope{policy.ScopeOnce, policy.ScopeRun, policy.ScopeRoom, policy.ScopeWorkspace, policy.ScopeTemplate} {
		if got, err := s.Known(); got != s || err != nil {
			t.Errorf("%s: got %q, %v", s, got, err)
		}
	}
	if got, err := policy.Scope("").Known(); got != policy.ScopeOnce || err != nil {
		t.Errorf("no scope: got %q, %v", got, err)
	}
	if got, err := policy.Scope("all").Known(); got != "" || !errors.Is(err, policy.ErrInvalidScope) {
		t.Errorf("an unknown scope: got %q, %v", got, err)
	}
}

// Two answers count as two persons only where neither of them can hold the credential of the other.
func TestWhoMayBeOnePerson(t *testing.T) {
	for _, c := range []struct {
		name                   string
		has, hasFrom, by, from id.Principal
		want                   bool
	}{
		{"two with keys of their own", "usr_a", "", "usr_b", "", false},
		{"two with keys of two issuers", "usr_a", "usr_c", "usr_b", "usr_d", false},
		{"the same", "usr_a", "", "usr_a", "", true},
		{"the same with another key", "usr_a", "usr_c", "usr_a", "usr_d", true},
		{"the first made the key of the second", "usr_a", "", "usr_b", "usr_a", true},
		{"the second made the key of the first", "usr_a", "usr_b", "usr_b", "", true},
		{"one made both keys", "usr_a", "usr_c", "usr_b", "usr_c", true},
	} {
		if got := (policy.Assent{By: c.has, Issuer: c.hasFrom}).Same(c.by, c.from); got != c.want {
			t.Errorf("%s: got %t", c.name, got)
		}
	}
}

func TestASecondYes(t *testing.T) {
	hour := func(n int) time.Time {
		if n == 0 {
			return time.Time{}
		}
		return noon.Add(time.Duration(n) * time.Hour)
	}
	assent := func(by id.Principal, scope policy.Scope, hours, uses int) policy.Assent {
		return policy.Assent{By: by, Scope: scope, ExpiresAt: hour(hours), Uses: uses}
	}
	a, b := assent("usr_a", policy.ScopeOnce, 0, 0), assent("usr_b", policy.ScopeOnce, 0, 0)
	room := func(hours, uses int) policy.Answer {
		return policy.Answer{Decision: policy.Approve, Scope: policy.ScopeRoom, ExpiresAt: hour(hours), Uses: uses}
	}
	yes := policy.Answer{Decision: policy.Approve}
	for _, c := range []struct {
		name   string
		needs  int
		own    []policy.Assent
		answer policy.Answer
		others []policy.Assent
		more   bool
		enough bool
		end    int
		uses   int
		want   error
	}{
		{"the first of two", 2, nil, yes, nil, true, false, 0, 0, nil},
		{"the first of two, and nobody else is there", 2, nil, yes, nil, false, true, 0, 0, nil},
		{"the second of two", 2, nil, yes, []policy.Assent{a}, true, true, 0, 0, nil},
		{"the second of three", 3, nil, yes, []policy.Assent{a}, true, false, 0, 0, nil},
		{"the third of three", 3, nil, yes, []policy.Assent{a, b}, true, true, 0, 0, nil},
		{"their own before", 2, []policy.Assent{assent("usr_z", policy.ScopeOnce, 0, 0)}, yes, nil, true, false, 0, 0, policy.ErrAlreadyAssented},
		{"their own before, of another scope", 2, []policy.Assent{assent("usr_z", policy.ScopeRoom, 0, 0)}, yes, nil, true, false, 0, 0, nil},
		{"their own before, with another key", 2, []policy.Assent{{By: "usr_z", Issuer: "usr_y", Scope: policy.ScopeOnce}}, yes, nil, true, false,
			0, 0, nil},
		{"that of another before", 2, []policy.Assent{a}, yes, nil, true, false, 0, 0, nil},
		{"one who may be the same", 2, nil, yes, []policy.Assent{assent("usr_z", policy.ScopeOnce, 0, 0)}, true, false, 0, 0,
			policy.ErrAssentCredential},
		{"of another scope", 2, nil, room(1, 1), []policy.Assent{a}, true, false, 1, 1, policy.ErrAssentDiffers},
		{"the narrower bounds of the first", 2, nil, room(5, 9), []policy.Assent{assent("usr_a", policy.ScopeRoom, 2, 3)}, true, true, 2, 3, nil},
		{"the narrower bounds of the second", 2, nil, room(2, 3), []policy.Assent{assent("usr_a", policy.ScopeRoom, 5, 9)}, true, true, 2, 3,
			nil},
		{"the end of the first", 2, nil, room(0, 3), []policy.Assent{assent("usr_a", policy.ScopeRoom, 5, 0)}, true, true, 5, 3, nil},
		{"the end of the second", 2, nil, room(5, 3), []policy.Assent{assent("usr_a", policy.ScopeRoom, 0, 0)}, true, true, 5, 3, nil},
	} {
		doc := question()
		doc.Approvers, doc.Assents = c.needs, c.own
		answer, enough, err := doc.Second(c.answer, "usr_z", "", c.others, c.more)
		if enough != c.enough || fault.CodeOf(err) != fault.CodeOf(c.want) || !answer.ExpiresAt.Equal(hour(c.end)) || answer.Uses != c.uses ||
			answer.Scope != c.answer.Scope {
			t.Errorf("%s: got %+v, %t, %v", c.name, answer, enough, err)
		}
	}
	got := question().Assent(policy.Answer{Reason: "r", ExpiresAt: hour(1), Uses: 2}, "usr_i")
	if want := (policy.ApprovalAssented{Approval: "apr_1", Reason: "r", Scope: policy.ScopeOnce, ExpiresAt: hour(1), Uses: 2,
		Issuer: "usr_i"}); got != want {
		t.Errorf("the assent is %+v, want %+v", got, want)
	}
}

// An approval is used once, in its time, for the very bytes that a person saw, by who asked, under the same policy and in the same
// workspace.
func TestTheUseOfAnApproval(t *testing.T) {
	bytes := []byte(`{"a":1}`)
	act := policy.Action{Principal: "agt_a", Workspace: "ws_dev", Bundle: event.DigestOf([]byte("policy"))}
	good := question()
	good.Status, good.Request, good.ActionHash, good.RequestedBy, good.Bundle = policy.Approved, bytes, event.DigestOf(bytes), act.Principal,
		act.Bundle
	for _, c := range []struct {
		name   string
		change func(*policy.Approval)
		want   error
	}{
		{"as approved", func(*policy.Approval) {}, nil},
		{"in the last moment", func(a *policy.Approval) { a.ExpiresAt = noon.Add(1) }, nil},
		{"after it", func(a *policy.Approval) { a.ExpiresAt = noon }, policy.ErrApprovalLapsed},
		{"twice", func(a *policy.Approval) { a.Used = true }, policy.ErrApprovalUsed},
		{"denied", func(a *policy.Approval) { a.Status = policy.Denied }, policy.ErrApprovalDenied},
		{"expired", func(a *policy.Approval) { a.Status = policy.Expired }, policy.ErrApprovalLapsed},
		{"withdrawn", func(a *policy.Approval) { a.Status = policy.Withdrawn }, policy.ErrApprovalWithdrawn},
		{"pending", func(a *policy.Approval) { a.Status = policy.Pending }, policy.ErrApprovalPending},
		{"held", func(a *policy.Approval) { a.Status = policy.Held }, policy.ErrApprovalPending},
		{"of no status", func(a *policy.Approval) { a.Status = "" }, policy.ErrApprovalMismatch},
		{"of another digest", func(a *policy.Approval) { a.ActionHash = event.DigestOf(nil) }, policy.ErrApprovalMismatch},
		{"of other bytes", func(a *policy.Approval) { a.Request = []byte(`{"a":2}`) }, policy.ErrApprovalMismatch},
		{"of another policy", func(a *policy.Approval) { a.Bundle = event.DigestOf(nil) }, policy.ErrApprovalMismatch},
		{"of another agent", func(a *policy.Approval) { a.RequestedBy = "agt_b" }, policy.ErrApprovalMismatch},
		{"of another workspace", func(a *policy.Approval) { a.Workspace = "ws_x" }, policy.ErrApprovalMismatch},
	} {
		a := good
		c.change(&a)
		used, err := a.Use(bytes, act, noon)
		if c.want == nil && (err != nil || used.Approval != "apr_1" || used.ActionHash != event.DigestOf(bytes)) || c.want != nil &&
			(!errors.Is(err, c.want) || used != policy.ApprovalUsed{}) {
			t.Errorf("%s: got %+v, %v, want %v", c.name, used, err, c.want)
		}
	}
}

// A question ends by itself at its end, and is withdrawn, only while it is open.
func TestTheEndOfAQuestion(t *testing.T) {
	for status, open := range map[policy.ApprovalStatus]bool{policy.Pending: true, policy.Held: true, policy.Approved: false,
		policy.Denied: false, policy.Expired: false, policy.Withdrawn: false} {
		a := question()
		a.Status = status
		if _, over := a.Expire(a.ExpiresAt.Add(-1)); over {
			t.Errorf("%s: over before its end", status)
		}
		if e, over := a.Expire(a.ExpiresAt); over != open || e.Approval != a.ID {
			t.Errorf("%s: over at its end: %t, %+v", status, over, e)
		}
		if w, ok := a.Withdraw("why"); ok != open || w != (policy.ApprovalWithdrawn{Approval: a.ID, Reason: "why"}) {
			t.Errorf("%s: withdrawn %t, %+v", status, ok, w)
		}
	}
}

// An approval stores its action in canonical form, whenever it is read. An action without a canonical form is refused.
func TestStoredBytesAreCanonical(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for raw, want := range map[string]string{
		`{"b": 1, "a": "<"}`: `{"a":"<","b":1}`, "null": "", deep(64): deep(64), "[" + strings.Repeat("[],", 99) + "[]]": "[" +
			strings.Repeat("[],", 99) + "[]]",
	} {
		s := policy.Stored("before")
		if err := json.Unmarshal([]byte(raw), &s); err != nil || string(s) != want || (want == "") != (s == nil) {
			t.Errorf("%.40s: got %.40s, %v", raw, s, err)
		}
		again, err := s.MarshalJSON()
		if err != nil || want != "" && string(again) != want || want == "" && string(again) != "null" {
			t.Errorf("%.40s is written as %.40s, %v", raw, again, err)
		}
	}
	for _, raw := range []string{`{"a":9007199254740993}`, deep(65)} {
		var s policy.Stored
		if err := json.Unmarshal([]byte(raw), &s); err == nil {
			t.Errorf("%.40s is stored as %.40s", raw, s)
		}
	}
	if _, err := policy.Canonicalize([]byte("{")); err == nil {
		t.Error("broken JSON has a canonical form")
	}
}

// An action that nobody knows, or that has no canonical form, has no standing approval.
func TestWhatHasNoCover(t *testing.T) {
	unknown := policy.Action{Type: "no.such", Workspace: "ws_dev", Tool: "t", ToolHash: event.DigestOf([]byte("t"))}
	if c, err := policy.CoverOf(unknown, policy.ScopeWorkspace, nil); !errors.Is(err, policy.ErrStandingImpossible) || c != (policy.Cover{}) {
		t.Errorf("an unknown action: %+v, %v", c, err)
	}
	inexact := policy.Action{Type: policy.PaymentExecute, Workspace: "ws_dev", Target: "shop.example",
		Request: json.RawMessage(`{"a":9007199254740993}`)}
	if c, err := policy.CoverOf(inexact, policy.ScopeWorkspace, nil); err == nil || c != (policy.Cover{}) {
		t.Errorf("an inexact payment: %+v, %v", c, err)
	}
}
