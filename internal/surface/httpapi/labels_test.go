package httpapi_test

import (
	"testing"
)

// TestLabelsHoldWhereFilesAreRead reads a file of a space before and after the space is labelled.
func TestLabelsHoldWhereFilesAreRead(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	space := d.must(t, "POST", "/v1/spaces", `{}`, "id")
	if status, raw := d.ask(t, "", "PUT", "/v1/spaces/"+space+"/files/a.txt", "hello"); status >= 300 {
		t.Fatalf("write: %d %s", status, raw)
	}
	reads := func(who string, status int, reason string) {
		t.Helper()
		for _, path := range []string{"/files/a.txt", "/files/archive"} {
			if got, raw := d.ask(t, who, "GET", "/v1/spaces/"+space+path, ""); got != status || status != 200 && code(raw) != reason {
				t.Errorf("%s of %q: %d %.200s, want %d %s", path, who, got, raw, status, reason)
			}
		}
	}
	label := func(level, more string) {
		t.Helper()
		d.must(t, "POST", "/v1/resources/labels", `{"resource_type":"space","resource_id":"`+space+`","label":"`+level+`"`+more+`}`, "label")
	}
	access := func(who, more string) {
		t.Helper()
		if status, raw := d.ask(t, who, "POST", "/v1/data/access/requests", `{"resource_type":"space","resource_id":"`+space+`","action":"read"`+more+`}`); status != 200 {
			t.Fatalf("%d %s", status, raw)
		}
	}
	reads("member", 200, "")
	label("confidential", "")
	reads("member", 403, "data_access_required")
	access("member", "")
	reads("member", 200, "")
	reads("agent", 403, "data_access_required") // each asks for itself
	reads("", 403, "data_access_required")
	label("sensitive_pii", `,"purpose_tags":["support"]`)
	reads("member", 403, "data_access_required") // what was asked for was less
	access("member", "")                         // for no purpose: a person has to decide
	reads("member", 403, "data_access_required")
	access("member", `,"purpose_tags":["support"]`)
	reads("member", 200, "")
	label("restricted", `,"room_id":"room_00000000000000000000000001"`)
	reads("member", 403, "data_access_restricted_room_mismatch")
	label("restricted", `,"room_id":"room_00000000000000000000000000"`)
	reads("member", 200, "")
}
