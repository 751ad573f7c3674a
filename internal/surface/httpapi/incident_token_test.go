package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/token"
)

// TestAnIncidentOfAnotherRoomIsNotShownByItsKey opens an incident with the key of one in a room that the token is not for.
func TestAnIncidentOfAnotherRoomIsNotShownByItsKey(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	agent, err := d.app.Identity.Agent(t.Context(), event.Origin{Principal: d.app.Owner}, id.DefaultWorkspace, "stranger")
	if err != nil {
		t.Fatal(err)
	}
	lab := d.must(t, "POST", "/v1/rooms", `{"title":"lab"}`, "room_id")
	in := func(room string) string {
		return `{"title":"it leaks","room_id":"` + room + `","idempotency_key":"run_failed:1"}`
	}
	d.must(t, "POST", "/v1/incidents", in(lab), "incident_id")
	elsewhere, there := token.All(), token.All()
	elsewhere.Rooms, there.Rooms = []string{string(id.DefaultRoom)}, []string{lab}
	d.granted(t, "elsewhere", agent, elsewhere, "", d.app.Owner)
	d.granted(t, "there", agent, there, "", d.app.Owner)
	if status, raw := d.ask(t, "elsewhere", "POST", "/v1/incidents", in(string(id.DefaultRoom))); status != http.StatusForbidden ||
		code(raw) != policy.ReasonScopeRoom {
		t.Errorf("%d %s", status, raw)
	}
	if status, raw := d.ask(t, "there", "POST", "/v1/incidents", in(lab)); status != http.StatusOK || !strings.Contains(string(raw),
		`"deduped":true`) {
		t.Errorf("%d %s", status, raw)
	}
}
