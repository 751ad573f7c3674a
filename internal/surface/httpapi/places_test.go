package httpapi_test

import (
	"fmt"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/room"
)

// TestWhatIsNamedIsThere names rooms, threads and runs that are not there, or in another workspace, or elsewhere, wherever a body can.
func TestWhatIsNamedIsThere(t *testing.T) {
	d := startDaemon(t)
	here := d.must(t, "POST", "/v1/rooms", `{"title":"here"}`, "room_id")
	thread := d.must(t, "POST", "/v1/rooms/"+here+"/threads", `{"title":"talk"}`, "thread_id")
	run := d.must(t, "POST", "/v1/runs", `{"room_id":"`+here+`"}`, "run_id")
	other, err := d.app.Identity.Owner(t.Context(), "ws_other", "owner")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := d.app.Rooms.CreateRoom(t.Context(), event.Origin{Principal: other}, "ws_other", room.Created{Title: "theirs"})
	if err != nil {
		t.Fatal(err)
	}
	const nowhere = "room_01M7YNAYM0SMK245AEDNVB5CNW"
	for _, c := range []struct {
		path, body string
		threads    bool
		good       int
	}{
		{"/v1/policy/evaluate", `"action":"email.send","target":"a@example.com"`, true, 200},
		{"/v1/policy/evaluate", `"action":"email.send","target":"a@example.com","preview":true`, true, 200},
		{"/v1/approvals", `"action":"email.send","target":"a@example.com"`, true, 201},
		{"/v1/data/access/requests", `"resource_type":"thing","resource_id":"a","action":"read"`, false, 200},
		{"/v1/resources/labels", `"resource_type":"thing","resource_id":"a","label":"confidential"`, false, 201},
		{"/v1/incidents", `"title":"it broke"`, true, 201},
	} {
		runs := c.path != "/v1/resources/labels"
		for _, q := range []struct {
			named  string
			status int
			code   string
			try    bool
		}{
			{`"room_id":"` + nowhere + `"`, 404, "room_not_found", true},
			{`"room_id":"` + string(theirs.ID) + `"`, 404, "room_not_found", true},
			{`"room_id":"here"`, 404, "room_not_found", true},
			{`"thread_id":"th_01M7YNAYM0SMK245AEDNVB5CNW"`, 404, "thread_not_found", c.threads},
			{`"room_id":"` + string(id.DefaultRoom) + `","thread_id":"` + thread + `"`, 404, "thread_not_found", c.threads},
			{`"run_id":"run_01M7YNAYM0SMK245AEDNVB5CNW"`, 404, "run_not_found", runs},
			{`"run_id":"` + run + `","room_id":"` + string(id.DefaultRoom) + `"`, 400, "run_room_mismatch", runs},
			{`"run_id":"` + run + `","thread_id":"th_01M7YNAYM0SMK245AEDNVB5CNW"`, 404, "thread_not_found", runs && c.threads},
			{`"room_id":"` + here + `"`, c.good, "", true},
			{`"room_id":"` + string(id.DefaultRoom) + `"`, c.good, "", c.path != "/v1/resources/labels"},
			{`"room_id":"` + here + `","thread_id":"` + thread + `"`, c.good, "", c.threads},
			{`"run_id":"` + run + `","room_id":"` + here + `"`, c.good, "", runs},
		} {
			if !q.try {
				continue
			}
			before := len(d.recorded(t))
			status, raw := d.ask(t, "", "POST", c.path, fmt.Sprintf(`{%s,%s}`, c.body, q.named))
			if status != q.status || q.code != "" && code(raw) != q.code {
				t.Errorf("%s with %s: %d %s, want %d %s", c.path, q.named, status, raw, q.status, q.code)
			}
			if now := len(d.recorded(t)); q.code != "" && now != before {
				t.Errorf("%s with %s left %d events", c.path, q.named, now-before)
			}
		}
	}
}
