package httpapi_test

import (
	"encoding/json"
	"strings"
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
		if status, raw := d.ask(t, who, "POST", "/v1/data/access/requests", `{"resource_type":"space","resource_id":"`+space+`","action":"read"`+
			more+`}`); status != 200 {
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
	label("restricted", `,"room_id":"`+d.must(t, "POST", "/v1/rooms", `{"title":"elsewhere"}`, "room_id")+`"`)
	reads("member", 403, "data_access_restricted_room_mismatch")
	label("restricted", `,"room_id":"room_00000000000000000000000000"`)
	reads("member", 200, "")
}

// TestLabelsHoldWhereArtifactsAreRead reads an artifact by its id and in a list.
func TestLabelsHoldWhereArtifactsAreRead(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	d.must(t, "POST", "/v1/runs", `{"room_id":"room_00000000000000000000000000","title":"report"}`, "run_id")
	_, raw := d.ask(t, "", "POST", "/v1/runs/claim", `{}`)
	var got struct {
		Token string `json:"claim_token"`
		Run   struct {
			ID string `json:"run_id"`
		} `json:"run"`
	}
	if err := json.Unmarshal(raw, &got); err != nil || got.Token == "" {
		t.Fatalf("%v %s", err, raw)
	}
	step := d.must(t, "POST", "/v1/runs/"+got.Run.ID+"/steps", `{"kind":"write","claim_token":"`+got.Token+`"}`, "step_id")
	artifact := d.must(t, "POST", "/v1/steps/"+step+"/artifacts", `{"kind":"note","claim_token":"`+got.Token+
		`","title":"private","content":{"type":"text","text":"private"},"metadata":{"of":"private"}}`, "artifact_id")
	shown := func(who string, want bool) {
		t.Helper()
		status, raw := d.ask(t, who, "GET", "/v1/artifacts/"+artifact, "")
		if (status == 200) != want || strings.Contains(string(raw), "private") != want {
			t.Errorf("by its id: %d %s", status, raw)
		}
		status, raw = d.ask(t, who, "GET", "/v1/artifacts?run_id="+got.Run.ID, "")
		if status != 200 || strings.Contains(string(raw), "private") != want || strings.Contains(string(raw), artifact) != want {
			t.Errorf("in the list: %d %s", status, raw)
		}
	}
	shown("member", true)
	d.must(t, "POST", "/v1/resources/labels", `{"resource_type":"artifact","resource_id":"`+artifact+`","label":"confidential"}`, "label")
	shown("member", false)
	if status, raw := d.ask(t, "member", "POST", "/v1/data/access/requests", `{"resource_type":"artifact","resource_id":"`+artifact+
		`","action":"read","justification":"the auditor asks"}`); status != 200 {
		t.Fatalf("%d %s", status, raw)
	}
	shown("member", true)
	shown("agent", false)
}
