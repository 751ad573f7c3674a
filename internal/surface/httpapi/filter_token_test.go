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

// TestATokenOfARoomListsWhatIsInIt lists with the room as filter, under a token for one of two rooms.
func TestATokenOfARoomListsWhatIsInIt(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	agent, err := d.app.Identity.Agent(t.Context(), event.Origin{Principal: d.app.Owner}, id.DefaultWorkspace, "stranger")
	if err != nil {
		t.Fatal(err)
	}
	lab := d.must(t, "POST", "/v1/rooms", `{"title":"lab"}`, "room_id")
	here := d.must(t, "POST", "/v1/runs", `{"title":"here","room_id":"`+lab+`"}`, "run_id")
	there := d.must(t, "POST", "/v1/runs", `{"title":"there","room_id":"`+string(id.DefaultRoom)+`"}`, "run_id")
	for _, room := range []string{lab, string(id.DefaultRoom)} {
		d.must(t, "POST", "/v1/resources/labels", `{"resource_type":"file","resource_id":"`+room+`.txt","label":"restricted","room_id":"`+room+
			`"}`, "resource_id")
	}
	scopes := token.All()
	scopes.Rooms = []string{lab}
	d.granted(t, "near", agent, scopes, "", d.app.Owner)
	for _, c := range []struct {
		path   string
		status int
		has    string
		hasNot string
		code   string
	}{
		{"/v1/runs?room_id=" + lab, http.StatusOK, here, there, ""},
		{"/v1/runs?room_id=" + string(id.DefaultRoom), http.StatusForbidden, "", there, policy.ReasonScopeRoom},
		{"/v1/runs", http.StatusForbidden, "", there, policy.ReasonScopeRoomRequired},

		{"/v1/resources/labels?room_id=" + lab, http.StatusOK, lab + ".txt", "default.txt", ""},
		{"/v1/resources/labels?room_id=" + lab + "&resource_type=file&resource_id=" + lab + ".txt", http.StatusOK, lab + ".txt", "", ""},
		{"/v1/resources/labels?room_id=" + lab + "&resource_type=file&resource_id=" + string(id.DefaultRoom) + ".txt", http.StatusOK, "",
			"restricted", ""},
		{"/v1/resources/labels", http.StatusForbidden, "", "restricted", policy.ReasonScopeRoomRequired},
	} {
		status, raw := d.ask(t, "near", "GET", c.path, "")
		if status != c.status || code(raw) != c.code || !strings.Contains(string(raw), c.has) || c.hasNot != "" && strings.Contains(string(raw),
			c.hasNot) {
			t.Errorf("%s: %d %s", c.path, status, raw)
		}
	}
}
