package httpapi_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"agentbox/internal/domain/incident"
)

// TestAnIncidentOfOneKeyIsOpenedOnce opens it from many sides at once.
func TestAnIncidentOfOneKeyIsOpenedOnce(t *testing.T) {
	d := startDaemon(t)
	var opened, deduped atomic.Int32
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			switch status, raw := d.ask(t, "", "POST", "/v1/incidents", `{"title":"one side of many","idempotency_key":"one"}`); status {
			case 201:
				opened.Add(1)
			case 200:
				deduped.Add(1)
			default:
				t.Errorf("%d %s", status, raw)
			}
		})
	}
	wg.Wait()
	if opened.Load() != 1 || deduped.Load() != 19 || len(d.recorded(t, incident.EventOpened)) != 1 {
		t.Errorf("%d were opened, %d found, %d recorded", opened.Load(), deduped.Load(), len(d.recorded(t, incident.EventOpened)))
	}
	if status, raw := d.ask(t, "other", "POST", "/v1/incidents", `{"title":"elsewhere","idempotency_key":"one"}`); status != 201 {
		t.Errorf("the key of another workspace is taken here: %d %s", status, raw)
	}
}

// TestAnIncidentIsClosedOnce closes it from many sides at once, while others go on learning.
func TestAnIncidentIsClosedOnce(t *testing.T) {
	d := startDaemon(t)
	path := "/v1/incidents/" + d.must(t, "POST", "/v1/incidents", `{"title":"it broke"}`, "incident_id")
	d.must(t, "POST", path+"/rca", `{"summary":"it was old"}`, "incident_id")
	d.must(t, "POST", path+"/learning", `{"note":"replace what is old"}`, "incident_id")
	var closed atomic.Int32
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			switch status, raw := d.ask(t, "", "POST", path+"/close", `{}`); {
			case status == 200:
				closed.Add(1)
			case status != 409 || code(raw) != "incident_already_closed":
				t.Errorf("close: %d %s", status, raw)
			}
		})
		wg.Go(func() {
			if status, raw := d.ask(t, "", "POST", path+"/learning", `{"note":"more"}`); status != 200 && (status != 409 ||
				code(raw) != "incident_closed") {
				t.Errorf("learn: %d %s", status, raw)
			}
		})
	}
	wg.Wait()
	last := uint64(0)
	for _, e := range d.recorded(t, incident.EventClosed, incident.EventLearned) {
		if last > 0 {
			t.Errorf("%s was recorded at %d, after the end at %d", e.Type, e.Seq, last)
		}
		if e.Type == incident.EventClosed {
			last = e.Seq
		}
	}
	if closed.Load() != 1 || last == 0 {
		t.Errorf("it was closed %d times", closed.Load())
	}
}

// TestAnIncidentBelongsToTheRoomOfItsRun refuses a run together with another room, and takes the run's where none is named.
func TestAnIncidentBelongsToTheRoomOfItsRun(t *testing.T) {
	d := startDaemon(t)
	space := "/v1/spaces/" + d.must(t, "POST", "/v1/spaces", `{}`, "id")
	run := d.must(t, "POST", space+"/runs", `{"protocolVersion":"1.0","operations":[{"type":"message","content":"hello"}]}`, "runId")
	if status, raw := d.ask(t, "", "POST", "/v1/incidents", `{"title":"a","run_id":"`+run+
		`","room_id":"room_01M7YNAYM0SM228XA4K3G6VDD4"}`); status != 400 || code(raw) != "run_room_mismatch" {
		t.Errorf("another room: %d %s", status, raw)
	}
	if room := d.must(t, "POST", "/v1/incidents", `{"title":"a","run_id":"`+run+`"}`, "room_id"); room != "room_00000000000000000000000000" {
		t.Errorf("the room is %q", room)
	}
	if status, raw := d.ask(t, "other", "POST", "/v1/incidents", `{"title":"a","run_id":"`+run+`"}`); status != 404 ||
		code(raw) != "run_not_found" {
		t.Errorf("the run of another workspace: %d %s", status, raw)
	}
}
