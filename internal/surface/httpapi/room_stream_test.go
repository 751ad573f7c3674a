package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/room"
)

// TestTrapTheRoomStreamIgnoresItsCursor follows a room while messages are posted into it and into others, with a connection that is cut
// after every event and taken up by Last-Event-ID or from_seq: each event of the room comes once and in order, and no other.
func TestTrapTheRoomStreamIgnoresItsCursor(t *testing.T) {
	d := startDaemon(t)
	lab := d.must(t, "POST", "/v1/rooms", `{"title":"lab"}`, "room_id")
	thread := d.must(t, "POST", "/v1/rooms/"+lab+"/threads", `{"title":"talk"}`, "thread_id")
	elsewhere := d.must(t, "POST", "/v1/rooms/"+string(id.DefaultRoom)+"/threads", `{"title":"noise"}`, "thread_id")
	const messages = 40
	failed := make(chan error, 1)
	go func() {
		failed <- func() error {
			who := event.Origin{Principal: d.app.Owner}
			caller, err := d.app.Identity.Authenticate(context.Background(), d.keys[""])
			for n := range messages {
				for _, in := range []string{elsewhere, thread} {
					if err == nil {
						_, err = d.app.Rooms.Post(context.Background(), who, caller, id.Thread(in), room.MessageCreated{Content: fmt.Sprint(n)})
					}
				}
			}
			return err
		}()
	}()
	path := "/v1/streams/rooms/" + lab
	seen := 0
	for last := 0; last < messages+2; {
		query, header := fmt.Sprintf("?from_seq=%d", last+1), ""
		if last%2 == 1 { // the header wins over what the address says
			query, header = "?from_seq=1", strconv.Itoa(last)
		}
		frames := d.take(t, path+query, header, 1)
		if len(frames) != 1 {
			t.Fatalf("behind %d came %d events", last, len(frames))
		}
		var e event.Event
		if err := json.Unmarshal([]byte(frames[0].data), &e); err != nil {
			t.Fatal(err)
		}
		if frames[0].id != strconv.Itoa(last+1) || e.StreamSeq != uint64(last+1) || e.Room != id.Room(lab) {
			t.Fatalf("behind %d came %s: %s of %s", last, frames[0].id, e.Type, e.Room)
		}
		if e.Type == room.EventMessageCreated {
			if d, err := event.Decode[room.MessageCreated](e); err != nil || d.Content != fmt.Sprint(seen) {
				t.Fatalf("message %d says %q, %v", seen, d.Content, err)
			}
			seen++
		}
		last++
	}
	if err := <-failed; err != nil || seen != messages {
		t.Errorf("%d messages were seen, %v, want %d", seen, err, messages)
	}
}

// TestTrapTheRoomStreamDoesNotCheckTheWorkspace asks for a room of another workspace as for one that nobody has made: by stream, and by
// filters.
func TestTrapTheRoomStreamDoesNotCheckTheWorkspace(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	lab := d.must(t, "POST", "/v1/rooms", `{"title":"lab"}`, "room_id")
	unknown := string(id.New[id.Room](id.NewSource(realClock{}.Now, strings.NewReader(strings.Repeat("x", 100)))))
	for who, rooms := range map[string][]string{"other": {lab, unknown}, "": {unknown, "room_1", "ws_dev"}} {
		for _, r := range rooms {
			if status, raw := d.ask(t, who, "GET", "/v1/streams/rooms/"+r+"?from_seq=1", ""); status != http.StatusNotFound ||
				code(raw) != "room_not_found" {
				t.Errorf("%q for %q: %d %s", r, who, status, raw)
			}
		}
	}
	for _, filter := range []string{"room_id=" + lab, "stream_type=room&stream_id=" + lab} {
		var list struct {
			Events []event.Event `json:"events"`
		}
		status, raw := d.ask(t, "other", "GET", "/v1/events?"+filter, "")
		if err := json.Unmarshal(raw, &list); err != nil || status != http.StatusOK || len(list.Events) != 0 {
			t.Errorf("%s: %d %s, %v", filter, status, raw, err)
		}
	}
	// The default rooms of two workspaces have the same name and nothing else in common.
	d.must(t, "POST", "/v1/rooms/"+string(id.DefaultRoom)+"/threads", `{"title":"mine"}`, "thread_id")
	if status, raw := d.ask(t, "other", "POST", "/v1/rooms/"+string(id.DefaultRoom)+"/threads",
		`{"title":"theirs"}`); status != http.StatusCreated {
		t.Fatalf("%d %s", status, raw)
	}
	for _, f := range d.take(t, "/v1/streams/rooms/"+string(id.DefaultRoom)+"?from_seq=1", "", 1) {
		if strings.Contains(f.data, "theirs") || !strings.Contains(f.data, "mine") {
			t.Errorf("the stream of ws_dev shows %s", f.data)
		}
	}
	// A principal with the right to read may follow.
	if status, raw := d.ask(t, "viewer", "GET", "/v1/rooms/"+lab, ""); status != http.StatusOK {
		t.Errorf("a viewer: %d %s", status, raw)
	}
}

// TestTrapTheRoomStreamHasNoHeartbeat waits for a sign of life of a room in which nothing happens.
func TestTrapTheRoomStreamHasNoHeartbeat(t *testing.T) {
	d := startDaemon(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.address+"/v1/streams/rooms/"+string(id.DefaultRoom)+"?from_seq=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.keys[""])
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got := make([]byte, len(": still here\n\n"))
	if _, err := resp.Body.Read(got); err != nil || string(got) != ": still here\n\n" ||
		resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("got %q, %v of %s", got, err, resp.Header.Get("Content-Type"))
	}
}
