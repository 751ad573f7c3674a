package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
)

// TestAnOrderKeepsItsSpaceWhenTheNameMovesOn orders a run in a space by its name. The daemon keeps the identifier.
func TestAnOrderKeepsItsSpaceWhenTheNameMovesOn(t *testing.T) {
	d := startDaemon(t)
	space := d.must(t, "POST", "/v1/spaces", `{"name":"shop"}`, "id")
	order := `{"room_id":"room_00000000000000000000000000","input":{"protocolVersion":"1.0","space_id":"shop","operations":[{"type":"message","content":"x"}]}}`
	made := d.must(t, "POST", "/v1/runs", order, "run_id")
	if _, raw := d.ask(t, "", "GET", "/v1/runs/"+made, ""); !strings.Contains(string(raw),
		`"given":{"operations":[{"type":"message","content":"x"}],"protocolVersion":"1.0","space_id":"`+space+`"}`) {
		t.Errorf("the order is %s, want the identifier of its space", raw)
	}
	if status, raw := d.ask(t, "", "POST", "/v1/runs", strings.ReplaceAll(order, "shop", "nothing")); status != http.StatusNotFound ||
		code(raw) != "space_not_found" {
		t.Errorf("an order in a space that is not there: %d %s", status, raw)
	}
}

// TestANameOfSeveralIsToldToWhomTheyAreOpen asks for two living spaces by the name that both have: who may see them is told their
// identifiers, and whose token is for another room nothing.
func TestANameOfSeveralIsToldToWhomTheyAreOpen(t *testing.T) {
	d := startDaemon(t)
	var ids []string
	for range 2 {
		ids = append(ids, d.must(t, "POST", "/v1/spaces", `{}`, "space_id"))
		d.double(t, ids[len(ids)-1], "double")
	}
	status, raw := d.ask(t, "", "GET", "/v1/spaces/double", "")
	if status != http.StatusConflict || code(raw) != "name_ambiguous" || !strings.Contains(string(raw), ids[0]+", "+ids[1]) {
		t.Errorf("the name of two: %d %s", status, raw)
	}
	d.keys["away"] = d.must(t, "POST", "/v1/capabilities/grant", `{"issued_to_principal_id":"`+string(d.app.Owner)+
		`","scopes":{"rooms":["room_01M7YNAYM0SMK245AEDNVB5CNW"],"action_types":["file.list"],"data_access":{"read":["space"]}}}`, "bearer")
	status, raw = d.ask(t, "away", "GET", "/v1/spaces/double", "")
	if status != http.StatusForbidden || strings.Contains(string(raw), "spc_") {
		t.Errorf("the name of two under a token for another room: %d %s", status, raw)
	}
}

// double gives a space a name as logs from before names were unique have it.
func (d *daemon) double(t *testing.T, which, name string) {
	t.Helper()
	draft := event.New(space.EventUpdated, event.Origin{Principal: d.app.Owner}, id.DefaultWorkspace, id.DefaultRoom,
		space.Updated{Space: id.Space(which), Name: &name})
	if _, err := d.app.Log.Append(t.Context(), event.Batch{Workspace: id.DefaultWorkspace, Drafts: []event.Draft{draft.About(space.EntityType,
		which)}}); err != nil {
		t.Fatal(err)
	}
}
