package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/token"
	"agentbox/internal/service/identity"
)

// TestTheTokenThatAnEngineNamesIsNotPassedOver sends an engine's credentials together with a header that names a capability token.
func TestTheTokenThatAnEngineNamesIsNotPassedOver(t *testing.T) {
	d := startDaemon(t)
	lab := d.must(t, "POST", "/v1/rooms", `{"title":"lab"}`, "room_id")
	owner := event.Origin{Principal: d.app.Owner}
	engine, err := d.app.Identity.RegisterEngine(t.Context(), owner, id.DefaultWorkspace, "mill")
	if err != nil {
		t.Fatal(err)
	}
	issued, err := d.app.Identity.IssueEngineToken(t.Context(), owner, id.DefaultWorkspace, engine.ID, identity.EngineScopes(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	near := identity.EngineScopes()
	near.Rooms = []string{lab}
	made, err := d.app.Identity.Grant(t.Context(), owner, id.DefaultWorkspace, token.Grant{IssuedTo: engine.ID, Scopes: near})
	if err != nil {
		t.Fatal(err)
	}
	claim := func(room string, narrow ...string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.address+"/v1/runs/claim", strings.NewReader(`{"room_id":"`+room+
			`"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Engine-Id", string(engine.ID))
		r.Header.Set("X-Engine-Token", issued.Secret)
		for _, name := range narrow {
			r.Header.Add("X-Capability-Token", name)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	for _, c := range []struct {
		room   string
		narrow []string
		want   int
	}{
		{lab, nil, 200}, {string(id.DefaultRoom), nil, 200},
		{lab, []string{string(issued.Capability)}, 200}, // its own
		{lab, []string{string(made.ID)}, 403},           // none that was derived from its own
		{string(id.DefaultRoom), []string{string(made.ID)}, 403},
		{lab, []string{"nonsense"}, 400}, {lab, []string{string(made.ID), string(made.ID)}, 400},
	} {
		if got := claim(c.room, c.narrow...); got != c.want {
			t.Errorf("a claim in %s under %v: %d, want %d", c.room, c.narrow, got, c.want)
		}
	}
}
