package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// watchNames are the paths of the messages of a watch, each with its kind.
func watchNames(t *testing.T, frames []frame) string {
	t.Helper()
	var all []string
	for _, f := range frames {
		var d struct {
			Path   string `json:"path"`
			From   string `json:"from"`
			Reason string `json:"reason"`
		}
		if err := json.Unmarshal([]byte(f.data), &d); err != nil {
			t.Fatal(err)
		}
		line := f.name + " " + d.Path + d.Reason
		if d.From != "" {
			line += " from " + d.From
		}
		all = append(all, line)
	}
	return strings.Join(all, ", ")
}

func wantNames(t *testing.T, frames []frame, want string) {
	t.Helper()
	if got := watchNames(t, frames); got != want {
		t.Errorf("told %s\nwant %s", got, want)
	}
}

// TestAWatchGoesOnAfterItsCursor watches a folder, goes, and comes back: what happened meanwhile is told, in order and once; after a cursor
// of nobody it is told that this is not known.
func TestAWatchGoesOnAfterItsCursor(t *testing.T) {
	d := startDaemon(t, busyRates)
	space := d.must(t, "POST", "/v1/spaces", `{"best_effort":true}`, "id")
	path := "/v1/spaces/" + space + "/watch?recursive=true"
	put := func(name, text string) {
		t.Helper()
		if status, raw := d.ask(t, "", "PUT", "/v1/spaces/"+space+"/files/"+name, text); status != http.StatusOK {
			t.Fatalf("%d %s", status, raw)
		}
	}
	begun := d.take(t, path, "", 1)
	wantNames(t, begun, "watching .")
	put("src/a.txt", "one")
	put(".env", "SECRET=1")
	put("src/a.txt", "two")
	if status, raw := d.ask(t, "", "DELETE", "/v1/spaces/"+space+"/files/src/a.txt", ""); status != http.StatusNoContent {
		t.Fatalf("%d %s", status, raw)
	}
	put("b.txt", "last")
	told := d.take(t, path, begun[0].id, 2)
	wantNames(t, told[:1], "watching .")
	// Two writes may be one event, so the rest is looked at as a whole.
	var all []frame
	for last := begun[0].id; len(all) == 0 || !strings.Contains(all[len(all)-1].data, "b.txt"); last = all[len(all)-1].id {
		all = append(all, d.take(t, path, last, 2)[1])
	}
	got := watchNames(t, all)
	if !strings.Contains(got, "removed src/a.txt, created b.txt") && !strings.Contains(got, "created src, created b.txt") ||
		!strings.HasPrefix(got, "created src") || strings.Contains(got, ".env") {
		t.Errorf("told %s", got)
	}
	for _, cursor := range []string{"1", "9000000000000000000"} {
		wantNames(t, d.take(t, path, cursor, 2), "watching ., overflow events_lost")
	}
	wantNames(t, d.take(t, "/v1/spaces/"+space+"/watch?path=src&after="+begun[0].id, "", 2), "watching src, overflow events_lost")
}

// TestAWatchIsBoundedAndRefused asks for watches that are not given.
func TestAWatchIsBoundedAndRefused(t *testing.T) {
	d := startDaemon(t, busyRates)
	space := d.must(t, "POST", "/v1/spaces", `{"best_effort":true}`, "id")
	for query, want := range map[string]string{
		"?path=none": "file_not_found", "?path=../x": "invalid_path", "?after=x": "invalid_parameter", "?recursive=maybe": "invalid_parameter",
	} {
		if status, raw := d.ask(t, "", "GET", "/v1/spaces/"+space+"/watch"+query, ""); status < 400 || !strings.Contains(string(raw), want) {
			t.Errorf("%s: %d %s, want %s", query, status, raw, want)
		}
	}
	status, raw := d.ask(t, "", "GET", "/v1/spaces/spc_01ARZ3NDEKTSV4RRFFQ69G5FAV/watch", "")
	if status != http.StatusNotFound {
		t.Errorf("a space that is not there: %d %s", status, raw)
	}
}
