package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/token"
)

// TestTheInboxOfARoomIsForThoseWhoSeeIt asks in two rooms, answers, and reads the inboxes and the stream of one as people, under tokens
// and behind a label.
func TestTheInboxOfARoomIsForThoseWhoSeeIt(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	lab, other := d.must(t, "POST", "/v1/rooms", `{"title":"lab"}`, "room_id"), string(id.DefaultRoom)
	ask := func(room, text string) string {
		return d.must(t, "POST", "/v1/approvals", fmt.Sprintf(`{"question":%q,"room_id":%q}`, text, room), "approval_id")
	}
	first, elsewhere, second := ask(lab, "May it be closed?"), ask(other, "May it be opened?"), ask(lab, "May it be renamed?")
	d.must(t, "POST", "/v1/approvals/"+first+"/decide", `{"decision":"deny"}`, "status")

	within := token.All()
	within.Rooms = []string{lab}
	d.granted(t, "within", d.app.Owner, within, "", d.app.Owner)
	blind := within
	blind.Data = token.Scopes{}.Data
	d.granted(t, "blind", d.app.Owner, blind, "", d.app.Owner)
	inbox := func(who, query string) (int, string) {
		t.Helper()
		status, raw := d.ask(t, who, "GET", "/v1/approvals?"+query, "")
		var list struct {
			Approvals []policy.Approval `json:"approvals"`
			Next      string            `json:"next_cursor"`
		}
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatal(err)
		}
		if status != http.StatusOK {
			return status, code(raw)
		}
		said := list.Next
		for _, a := range list.Approvals {
			said += " " + string(a.ID)
		}
		return status, strings.TrimSpace(said)
	}
	for _, c := range []struct {
		who, query string
		status     int
		want       string
	}{
		{"", "room_id=" + lab, 200, second + " " + first},
		{"viewer", "room_id=" + lab, 200, second + " " + first},
		{"", "room_id=" + lab + "&status=pending", 200, second},
		{"", "room_id=" + other, 200, elsewhere},
		{"", "limit=1&room_id=" + lab, 200, second + " " + second}, // the cursor, and the page
		{"", "limit=1&room_id=" + lab + "&cursor=" + second, 200, first},
		{"", "room_id=" + lab + "&run_id=run_00000000000000000000000001", 200, ""},
		{"other", "room_id=" + lab, 200, ""},
		{"within", "room_id=" + lab, 200, second + " " + first},
		{"within", "room_id=" + other, 403, policy.ReasonScopeRoom},
		{"within", "", 403, policy.ReasonScopeRoomRequired},
		{"blind", "room_id=" + lab, 403, policy.ReasonScopeDataRequired},
	} {
		if status, got := inbox(c.who, c.query); status != c.status || got != c.want {
			t.Errorf("%q, %s: got %d %s, want %d %s", c.who, c.query, status, got, c.status, c.want)
		}
	}

	var types []string
	for _, f := range d.take(t, "/v1/streams/rooms/"+lab+"?from_seq=1", "", 4) {
		var e event.Event
		if err := json.Unmarshal([]byte(f.data), &e); err != nil {
			t.Fatal(err)
		}
		types = append(types, e.Type+" "+e.EntityID)
	}
	want := []string{"room.created " + lab, "approval.requested " + first, "approval.requested " + second, "approval.decided " + first}
	if !slices.Equal(types, want) {
		t.Errorf("the stream of the room has %v, want %v", types, want)
	}

	d.must(t, "POST", "/v1/resources/labels", `{"resource_type":"room","resource_id":"`+lab+`","label":"confidential"}`, "label")
	if status, got := inbox("viewer", "room_id="+lab); status != http.StatusForbidden || got != "data_access_required" {
		t.Errorf("behind a label: %d %s", status, got)
	}
	if status, got := inbox("viewer", "status=pending"); status != http.StatusOK || got != elsewhere {
		t.Errorf("beside a label: %d %s", status, got)
	}
}

// TestOwnActionsInTokens grants tokens over the API for declared, undeclared and retired actions, and acts under one.
func TestOwnActionsInTokens(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	grant := func(actions string) (int, []byte) {
		return d.ask(t, "", "POST", "/v1/capabilities/grant", `{"issued_to_principal_id":"`+string(d.app.Owner)+
			`","scopes":{"rooms":["*"],"action_types":["policy.evaluate",`+actions+`]}}`)
	}
	if status, raw := grant(`"deploy.it"`); status != http.StatusBadRequest || code(raw) != "invalid_action" {
		t.Errorf("undeclared: %d %s", status, raw)
	}
	for _, name := range []string{"deploy.it", "deploy.that"} {
		d.must(t, "PUT", "/v1/action-types/"+name, `{"description":"deploy","side_effect":"read"}`, "status")
	}
	status, raw := grant(`"deploy.it"`)
	var made struct {
		Bearer string `json:"bearer"`
	}
	if err := json.Unmarshal(raw, &made); err != nil || status != http.StatusCreated || made.Bearer == "" {
		t.Fatalf("declared: %d %s", status, raw)
	}
	d.keys["narrowed"] = made.Bearer
	for action, want := range map[string]string{"deploy.it": policy.ReasonScopeDataRequired, "deploy.that": policy.ReasonScopeAction,
		"deploy.all": policy.ReasonScopeAction} {
		var got struct {
			Code string `json:"reason_code"`
		}
		if status, raw := d.ask(t, "narrowed", "POST", "/v1/policy/evaluate", `{"action":"`+action+`"}`); json.Unmarshal(raw, &got) != nil ||
			status != 200 || got.Code != want {
			t.Errorf("%s: %d %s, want %s", action, status, raw, want)
		}
	}
	if status, raw := d.ask(t, "", "DELETE", "/v1/action-types/deploy.it", ""); status != http.StatusNoContent {
		t.Errorf("retire: %d %s", status, raw)
	}
	if status, raw := grant(`"deploy.it"`); status != http.StatusBadRequest || code(raw) != "invalid_action" {
		t.Errorf("retired: %d %s", status, raw)
	}
}
