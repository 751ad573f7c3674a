package gate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/engine"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate"
)

func definition(t *testing.T, name string) projection.Definition {
	t.Helper()
	i := slices.IndexFunc(gate.Definitions(), func(d projection.Definition) bool { return d.Name == name })
	if i < 0 {
		t.Fatalf("there is no definition %s", name)
	}
	return gate.Definitions()[i]
}

// TestWhichDocumentsAnEventChanges holds which documents an event changes: the document of its subject, the count of the principal, and the
// count of a workspace's action types. It also holds which events are the cause of the next one. A use of a standing approval is none.
func TestWhichDocumentsAnEventChanges(t *testing.T) {
	about := func(entity, key string) event.Event {
		return event.Event{Header: event.Header{Workspace: ws, Type: "test.said", EntityType: entity, EntityID: key}}
	}
	leads := map[string]bool{policy.ApprovalProjection: true, policy.StandingProjection: true, policy.KillSwitchProjection: true,
		policy.ActionTypeProjection: true, principal.Projection: true, principal.KeyProjection: true, principal.SessionProjection: true,
		engine.Projection: true, engine.TokenProjection: true, token.Projection: true}
	for name, entity := range map[string]string{policy.ApprovalProjection: policy.ApprovalEntity,
		policy.StandingProjection: policy.StandingEntity, policy.KillSwitchProjection: policy.KillSwitchEntity,
		policy.BundleProjection: policy.BundleEntity, policy.ActionTypeProjection: policy.ActionTypeEntity,
		policy.QuotaProjection: policy.QuotaEntity, principal.Projection: principal.Entity, principal.KeyProjection: principal.KeyEntity,
		principal.LoginProjection: principal.LoginEntity, principal.SessionProjection: principal.SessionEntity,
		engine.Projection: engine.Entity, engine.TokenProjection: engine.TokenEntity, token.Projection: token.Entity} {
		d := definition(t, name)
		if got := d.Keys(about(entity, "one")); !slices.Equal(got, []string{"one"}) {
			t.Errorf("%s: an event about a %s changes %v", name, entity, got)
		}
		for _, e := range []event.Event{about(entity, ""), about("something", "one")} {
			if got := d.Keys(e); len(got) != 0 {
				t.Errorf("%s: an event about %q %q changes %v", name, e.EntityType, e.EntityID, got)
			}
		}
		if got := d.Moves(about(entity, "one")); got != leads[name] {
			t.Errorf("%s: an event is the cause of the next one: %t", name, got)
		}
	}
	use := about(policy.StandingEntity, "one")
	use.Type = policy.StandingUsedType
	if definition(t, policy.StandingProjection).Moves(use) {
		t.Error("the use of a standing approval is the cause of what comes next")
	}
	asker := definition(t, policy.AskerProjection)
	asks := about(policy.ApprovalEntity, "one")
	asks.Type, asks.Principal = policy.ApprovalRequestedType, "agt_1"
	nobody, decided := asks, asks
	nobody.Principal, decided.Type = "", policy.ApprovalDecidedType
	if got := asker.Keys(asks); !slices.Equal(got, []string{"agt_1"}) || len(asker.Keys(nobody)) != 0 || len(asker.Keys(decided)) != 0 {
		t.Errorf("who asked is %v; of nobody %v; of an answer %v", got, asker.Keys(nobody), asker.Keys(decided))
	}
	types := definition(t, policy.ActionTypeCountProjection)
	if got, none := types.Keys(about(policy.ActionTypeEntity, "a.b")), types.Keys(about(policy.ApprovalEntity, "one")); len(none) != 0 ||
		!slices.Equal(got, []string{string(ws)}) {
		t.Errorf("a declaration changes the counts %v, a question %v", got, none)
	}
	for _, d := range []projection.Definition{asker, types} {
		e := asks
		if d.Name == policy.ActionTypeCountProjection {
			e.Type = policy.ActionTypeDeclaredType
		}
		state, err := d.Restore("one", nil, 0, 0)
		if err == nil {
			state, err = state.Fold(e)
		}
		body, _, failed := state.Encode()
		if err != nil || failed != nil || !strings.Contains(string(body), ":1") {
			t.Errorf("%s: one event is counted as %s, %v, %v", d.Name, body, err, failed)
		}
	}
}

// TestUnderWhatDocumentsAreFound holds the entries under which each document is found.
func TestUnderWhatDocumentsAreFound(t *testing.T) {
	used, now := policy.Standing{Uses: 2, Used: 1}, time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	match := used.Cover.Match.String()
	full, revoked, over := used, used, used
	full.Used, over.Used, revoked.RevokedAt = 2, 3, now
	hash := event.Digest{}.String()
	for name, c := range map[string]struct {
		of   string
		doc  any
		want string
	}{
		"a standing approval with a use left": {policy.StandingProjection, used, "match=" + match},
		"one without":                         {policy.StandingProjection, full, ""},
		"one that was used more":              {policy.StandingProjection, over, ""},
		"one that is revoked":                 {policy.StandingProjection, revoked, ""},
		"a question of a run": {policy.ApprovalProjection, policy.Approval{Status: policy.Pending, Run: run, Space: space, Room: room,
			Action: policy.ShellExec, RequestedBy: "agt_1"}, fmt.Sprint("open_by=agt_1 room=", room, " room_status=", room, " pending run=", run,
			" run_status=", run, " pending space=", space, " space_status=", space, " pending status=pending")},
		"one of no run, answered": {policy.ApprovalProjection, policy.Approval{Status: policy.Approved, Action: policy.ShellExec,
			RequestedBy: "agt_1"}, "request=" + hash + " status=approved"},
		"one that is held": {policy.ApprovalProjection, policy.Approval{Status: policy.Held, Run: run, Action: policy.ShellExec,
			RequestedBy: "agt_1"}, fmt.Sprint("open_by=agt_1 run=", run, " run_status=", run, " held status=held")},
		"one of a run about what is outside": {policy.ApprovalProjection, policy.Approval{Status: policy.Denied, Run: run,
			Action: policy.ExternalWrite}, fmt.Sprint("request=", hash, " run=", run, " run_status=", run, " denied status=denied")},
		"one of a run about what is recorded": {policy.ApprovalProjection, policy.Approval{Status: policy.Denied, Run: run,
			Action: policy.MessageCreate}, fmt.Sprint("request=", hash, " run=", run, " run_status=", run, " denied status=denied")},
		"one of a run about a declared action": {policy.ApprovalProjection, policy.Approval{Status: policy.Denied, Run: run,
			Action: "tea.make"}, fmt.Sprint("request=", hash, " run=", run, " run_status=", run, " denied status=denied")},
		"a person": {principal.Projection, principal.Principal{Kind: "user", Name: "Olga", Role: principal.Admin},
			"kind=user role=admin"},
		"an agent":   {principal.Projection, principal.Principal{Kind: "agent", Name: "worker"}, "agent=worker kind=agent"},
		"a service":  {principal.Projection, principal.Principal{Kind: "service", Name: "mailer"}, "kind=service"},
		"one of old": {principal.Projection, principal.Principal{Kind: "service", Legacy: "old"}, "kind=service legacy=old"},
		"an action type that is declared": {policy.ActionTypeProjection, policy.ActionType{Status: policy.DeclaredStatus},
			"living=true"},
		"one that is retired":    {policy.ActionTypeProjection, policy.ActionType{Status: "retired"}, ""},
		"a key":                  {principal.KeyProjection, principal.Key{Principal: "usr_1"}, "principal=usr_1"},
		"the token of an engine": {engine.TokenProjection, engine.Token{Engine: "eng_1"}, "engine=eng_1"},
		"a token":                {token.Projection, token.Token{IssuedTo: "agt_1", GrantedBy: "usr_1"}, "granted_by=usr_1 principal=agt_1"},
		"a derived token": {token.Projection, token.Token{IssuedTo: "agt_1", GrantedBy: "usr_1", Parent: "tok_1"},
			"derived=true edge=agt_1 edge=usr_1 granted_by=usr_1 parent=tok_1 principal=agt_1"},
	} {
		body, err := json.Marshal(c.doc)
		if err != nil {
			t.Fatal(err)
		}
		state, err := definition(t, c.of).Restore("one", body, 1, 1)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, found, err := state.Encode()
		var list []string
		for _, i := range found {
			list = append(list, i.Name+"="+i.Value)
		}
		if got := strings.Join(list, " "); err != nil || got != c.want {
			t.Errorf("%s: found under %s, %v, want %s", name, got, err, c.want)
		}
	}
}
