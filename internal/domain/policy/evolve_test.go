package policy_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// told is an event about something, with everything that an envelope can say.
func told(t *testing.T, typ, about string, data any) event.Event {
	t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return event.Event{Data: raw, Header: event.Header{
		ID: "evt_1", Type: typ, Workspace: "ws_dev", Room: "room_1", Thread: "thr_1", Run: "run_1", Step: "stp_1", Principal: "usr_1",
		OccurredAt: noon, EntityID: about,
	}}
}

// broken returns the event with data that are no object.
func broken(e event.Event) event.Event {
	e.Data = json.RawMessage(`[]`)
	return e
}

// requested is an approval as its question makes it.
func requested(t *testing.T) policy.Approval {
	t.Helper()
	a, err := policy.Approval{}.Evolve(told(t, policy.ApprovalRequestedType, "apr_1", policy.ApprovalRequested{
		Approval: "apr_1", Space: "spc_1", Operation: "op-1", Action: policy.FileDelete, Title: "delete a file: a",
		Request:    policy.Stored(`{"a":1}`),
		ActionHash: event.DigestOf([]byte("a")), Bundle: event.DigestOf([]byte("b")), Question: policy.Question{What: "what"},
		Scope:     policy.ScopeOnce,
		ExpiresAt: noon.Add(time.Hour), Approvers: 2, Through: "svc_1",
	}))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAnApprovalIsFoldedFromItsEvents holds what each event changes, and that it changes nothing else.
func TestAnApprovalIsFoldedFromItsEvents(t *testing.T) {
	a := requested(t)
	if want := (policy.Approval{
		ID: "apr_1", Workspace: "ws_dev", Room: "room_1", Space: "spc_1", Run: "run_1", Step: "stp_1", Thread: "thr_1", Operation: "op-1",
		Action: policy.FileDelete, Title: "delete a file: a", Request: policy.Stored(`{"a":1}`), ActionHash: event.DigestOf([]byte("a")),
		Bundle:   event.DigestOf([]byte("b")),
		Question: policy.Question{What: "what"}, RequestedBy: "usr_1", Through: "svc_1", RequestedAt: noon, ExpiresAt: noon.Add(time.Hour),
		Status: policy.Pending,
		Scope:  policy.ScopeOnce, Approvers: 2,
	}); !reflect.DeepEqual(a, want) {
		t.Fatalf("got %+v, want %+v", a, want)
	}
	assent := policy.ApprovalAssented{Approval: "apr_1", Reason: "yes", Scope: policy.ScopeRun, ExpiresAt: noon.Add(time.Minute), Uses: 3,
		Issuer: "usr_2"}
	decided := policy.ApprovalDecided{
		Approval: "apr_1", Decision: policy.Approve, Status: policy.Approved, Reason: "fine", Scope: policy.ScopeRoom,
		ExpiresAt: noon.Add(2 * time.Hour), Standing: "sta_1",
	}
	for _, c := range []struct {
		typ    string
		data   any
		other  any // the same, about another approval
		change func(*policy.Approval)
	}{
		{policy.ApprovalAssentedType, assent, policy.ApprovalAssented{Approval: "apr_2"}, func(a *policy.Approval) {
			a.Assents = []policy.Assent{{By: "usr_1", At: noon, Reason: "yes", Scope: policy.ScopeRun, ExpiresAt: noon.Add(time.Minute), Uses: 3,
				Issuer: "usr_2"}}
		}},
		{policy.ApprovalDecidedType, decided, policy.ApprovalDecided{Approval: "apr_2", Status: policy.Approved}, func(a *policy.Approval) {
			a.Status, a.Reason, a.Scope, a.ExpiresAt, a.Standing = policy.Approved, "fine", policy.ScopeRoom, noon.Add(2*time.Hour), "sta_1"
			a.DecidedBy, a.DecidedAt = "usr_1", noon
		}},
		{policy.ApprovalUsedType, policy.ApprovalUsed{Approval: "apr_1"}, policy.ApprovalUsed{Approval: "apr_2"},
			func(a *policy.Approval) { a.Used = true }},
		{policy.ApprovalExpiredType, policy.ApprovalExpired{Approval: "apr_1"}, policy.ApprovalExpired{Approval: "apr_2"},
			func(a *policy.Approval) { a.Status = policy.Expired }},
		{policy.ApprovalWithdrawnType, policy.ApprovalWithdrawn{Approval: "apr_1", Reason: "over"}, policy.ApprovalWithdrawn{Approval: "apr_2"},
			func(a *policy.Approval) {
				a.Status, a.Reason = policy.Withdrawn, "over"
			}},
		{"thread.created", struct{}{}, nil, func(*policy.Approval) {}},
	} {
		e := told(t, c.typ, "apr_1", c.data)
		want := a
		c.change(&want)
		if got, err := a.Evolve(e); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", c.typ, got, err, want)
		}
		if c.other == nil {
			continue
		}
		for name, e := range map[string]event.Event{"about another approval": told(t, c.typ, "apr_1", c.other), "with broken data": broken(e)} {
			if got, err := a.Evolve(e); err == nil || !reflect.DeepEqual(got, a) {
				t.Errorf("%s %s: got %+v, %v", c.typ, name, got, err)
			}
		}
	}
	if got, err := a.Evolve(broken(told(t, policy.ApprovalRequestedType, "apr_1", nil))); err == nil || !reflect.DeepEqual(got, a) {
		t.Errorf("a broken question: got %+v, %v", got, err)
	}
	gone := told(t, policy.ApprovalRequestedType, "apr_9", struct{}{})
	gone.Withheld = event.Destroyed
	if got, err := a.Evolve(gone); err != nil || !reflect.DeepEqual(got, policy.Approval{
		ID: "apr_9", Workspace: "ws_dev", Room: "room_1", Run: "run_1", Step: "stp_1", Thread: "thr_1", RequestedBy: "usr_1", RequestedAt: noon,
		Status: policy.Expired,
	}) {
		t.Errorf("a question whose data were destroyed: got %+v, %v", got, err)
	}
}

// TestAPersonAssentsOnce holds that a second yes of the same person replaces the first, and that documents share no list.
func TestAPersonAssentsOnce(t *testing.T) {
	a := requested(t)
	for _, c := range []struct {
		by   id.Principal
		want []id.Principal
	}{{"usr_1", []id.Principal{"usr_1"}}, {"usr_2", []id.Principal{"usr_1", "usr_2"}}, {"usr_1", []id.Principal{"usr_2", "usr_1"}}} {
		e := told(t, policy.ApprovalAssentedType, "apr_1", policy.ApprovalAssented{Approval: "apr_1"})
		e.Principal = c.by
		before := append([]policy.Assent{}, a.Assents...)
		next, err := a.Evolve(e)
		var got []id.Principal
		for _, one := range next.Assents {
			got = append(got, one.By)
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("after %s: got %v, %v, want %v", c.by, got, err, c.want)
		}
		if len(before) > 0 && !reflect.DeepEqual(a.Assents, before) {
			t.Errorf("after %s the document before it says %+v, want %+v", c.by, a.Assents, before)
		}
		a = next
	}
}

// TestAStandingApprovalIsFoldedFromItsEvents holds what each event changes.
func TestAStandingApprovalIsFoldedFromItsEvents(t *testing.T) {
	cover := policy.Cover{Kind: policy.CoverHost, Scope: policy.ScopeRoom, Action: policy.APICallMutating, Match: event.DigestOf([]byte("m")),
		Text: "text"}
	grant := told(t, policy.StandingGrantedType, "sta_1", policy.StandingGranted{Standing: "sta_1", Approval: "apr_1", Cover: cover,
		EndsAt: noon.Add(time.Hour), Uses: 3})
	s, err := policy.Standing{}.Evolve(grant)
	want := policy.Standing{ID: "sta_1", Workspace: "ws_dev", Approval: "apr_1", Cover: cover, EndsAt: noon.Add(time.Hour), Uses: 3,
		GrantedBy: "usr_1", GrantedAt: noon}
	if err != nil || s != want {
		t.Fatalf("got %+v, %v, want %+v", s, err, want)
	}
	used, revoked := told(t, policy.StandingUsedType, "sta_1", policy.StandingUsed{Standing: "sta_1"}), told(t, policy.StandingRevokedType,
		"sta_1", policy.StandingRevoked{Standing: "sta_1"})
	want.Used = 1
	if got, err := s.Evolve(used); err != nil || got != want {
		t.Errorf("used: got %+v, %v, want %+v", got, err, want)
	}
	want.Used, want.RevokedAt, want.RevokedBy = 0, noon, "usr_1"
	if got, err := s.Evolve(revoked); err != nil || got != want {
		t.Errorf("revoked: got %+v, %v, want %+v", got, err, want)
	}
	for name, e := range map[string]event.Event{
		"a broken grant": broken(grant), "a broken use": broken(used), "a broken revocation": broken(revoked),
		"the use of another":        told(t, policy.StandingUsedType, "sta_1", policy.StandingUsed{Standing: "sta_2"}),
		"the revocation of another": told(t, policy.StandingRevokedType, "sta_1", policy.StandingRevoked{Standing: "sta_2"}),
	} {
		if got, err := s.Evolve(e); err == nil || got != s {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	if got, err := s.Evolve(told(t, "thread.created", "", nil)); err != nil || got != s {
		t.Errorf("another event: got %+v, %v", got, err)
	}
	if !policy.IsUse(used) || policy.IsUse(revoked) {
		t.Error("a use, and only a use, counts as one")
	}
}

// TestTheOtherDocumentsOfPermission folds the kill switch, a pinned bundle, a quota, and who asks.
func TestTheOtherDocumentsOfPermission(t *testing.T) {
	var off policy.KillSwitch
	thrown, lifted := told(t, policy.KillSwitchThrownType, "", policy.KillSwitchThrown{Reason: "fire"}), told(t, policy.KillSwitchLiftedType,
		"", policy.KillSwitchLifted{Reason: "rain"})
	on := policy.KillSwitch{Workspace: "ws_dev", On: true, Reason: "fire", By: "usr_1", At: noon}
	for name, c := range map[string]struct {
		e    event.Event
		want policy.KillSwitch
		ok   bool
	}{
		"thrown": {thrown, on, true}, "lifted": {lifted, policy.KillSwitch{Workspace: "ws_dev", Reason: "rain", By: "usr_1", At: noon}, true},
		"another event":  {told(t, "x", "", nil), on, true},
		"a broken throw": {broken(thrown), on, false}, "a broken lift": {broken(lifted), on, false},
	} {
		before := on
		if name == "thrown" {
			before = off
		}
		if got, err := before.Evolve(c.e); got != c.want || (err == nil) != c.ok {
			t.Errorf("the kill switch, %s: got %+v, %v, want %+v", name, got, err, c.want)
		}
	}

	bundle, err := policy.NewBundle("mine", "permit(principal, action, resource);", policy.Limits{FileBytes: 1, CommandMS: 1})
	if err != nil {
		t.Fatal(err)
	}
	pin := told(t, policy.BundlePinnedType, "", policy.BundlePinned{Bundle: bundle})
	if got, err := policy.EvolveBundle(policy.Bundle{}, pin); err != nil || !reflect.DeepEqual(got, bundle) {
		t.Errorf("a bundle: got %+v, %v", got, err)
	}
	if got, err := policy.EvolveBundle(bundle, told(t, "x", "", nil)); err != nil || !reflect.DeepEqual(got, bundle) {
		t.Errorf("a bundle after another event: got %+v, %v", got, err)
	}
	if _, err := policy.EvolveBundle(bundle, broken(pin)); err == nil {
		t.Error("a broken bundle was read")
	}

	hour := policy.Quota{Principal: "agt_1", Window: noon, Used: 4}
	counted := func(window time.Time) event.Event {
		return told(t, policy.EffectCountedType, "", policy.EffectCounted{Principal: "agt_1", Window: window})
	}
	for name, c := range map[string]struct {
		e    event.Event
		want policy.Quota
		ok   bool
	}{
		"of the same hour":   {counted(noon), policy.Quota{Principal: "agt_1", Window: noon, Used: 5}, true},
		"of the next":        {counted(noon.Add(time.Hour)), policy.Quota{Principal: "agt_1", Window: noon.Add(time.Hour), Used: 1}, true},
		"of the hour before": {counted(noon.Add(-time.Hour)), hour, true}, "none": {told(t, "x", "", policy.EffectCounted{Principal: "agt_1",
			Window: noon}), hour, true}, "broken": {broken(counted(noon)), hour, false},
	} {
		if got, err := hour.Evolve(c.e); got != c.want || (err == nil) != c.ok {
			t.Errorf("an effect %s: got %+v, %v, want %+v", name, got, err, c.want)
		}
	}
	if got := (policy.Asker{Principal: "usr_1", Asked: 4}).Evolve(told(t, policy.ApprovalRequestedType, "",
		nil)); got != (policy.Asker{Principal: "usr_1", Asked: 5}) {
		t.Errorf("got %+v", got)
	}
	if got := (policy.Asker{}).Evolve(told(t, policy.ApprovalRequestedType, "", nil)); got != (policy.Asker{Principal: "usr_1", Asked: 1}) {
		t.Errorf("got %+v", got)
	}

	var count policy.ActionTypeCount
	for _, c := range []struct {
		typ  string
		want int
	}{{policy.ActionTypeDeclaredType, 1}, {policy.ActionTypeDeclaredType, 2}, {"x", 2}, {policy.ActionTypeRetiredType, 1}} {
		if count = count.Evolve(told(t, c.typ, "", nil)); count.Living != c.want {
			t.Errorf("after %s: %d types, want %d", c.typ, count.Living, c.want)
		}
	}
}
