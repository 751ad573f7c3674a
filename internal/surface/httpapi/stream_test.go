package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/spaces"
)

// frame is one message of an event stream.
type frame struct{ id, name, data string }

// take reads at most n messages of a stream behind a cursor and goes away, as a client does whose connection is cut.
func (d *daemon) take(t *testing.T, path, last string, n int) []frame {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.keys[""])
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return nil
	}
	if resp.StatusCode != http.StatusOK {
		raw, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s behind %q: %d %s", path, last, resp.StatusCode, raw)
	}
	var all []frame
	var f frame
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	for len(all) < n && lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			f.id = value
		case "event":
			f.name = value
		case "data":
			f.data = value
		case "":
			if f.id != "" && f.data != "" {
				all = append(all, f)
			}
			f = frame{}
		}
	}
	return all
}

// TestARunsStreamCutAtEveryFrame follows a run while it goes on with a connection that is cut after every frame, and takes it up again each
// time. Together the parts are one unbroken stream, and its end is the run's.
func TestARunsStreamCutAtEveryFrame(t *testing.T) {
	d := startDaemon(t)
	ctx := t.Context()
	origin := event.Origin{Principal: d.app.Owner}
	s, err := d.app.Spaces.Creation.Create(ctx, origin, spaces.Request{Workspace: id.DefaultWorkspace})
	if err != nil {
		t.Fatal(err)
	}
	m, err := run.ParseMessage([]byte(`{"protocolVersion":"1.0","operations":[
		{"type":"message","content":"counting"},
		{"type":"shell","command":"for i in $(seq 8); do echo line $i; sleep 0.02; done; printf '\\377\\000' "},
		{"type":"shell","command":"echo no >&2; exit 1"},
		{"type":"message","content":"done"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := d.app.Runs.Start(ctx, origin, runs.Request{Workspace: id.DefaultWorkspace, Space: s.ID, Message: m})
	if err != nil {
		t.Fatal(err)
	}
	path := "/v1/spaces/" + string(s.ID) + "/runs/" + string(doc.ID) + "/stream"
	var cut []frame
	for last := ""; len(cut) == 0 || cut[len(cut)-1].name != "complete"; last = cut[len(cut)-1].id {
		next := d.take(t, path, last, 1)
		if len(next) != 1 {
			t.Fatalf("behind %q the stream ended without complete", last)
		}
		cut = append(cut, next...)
	}
	whole := d.take(t, path, "", 1_000_000)
	if len(cut) != len(whole) {
		t.Fatalf("%d frames in pieces, %d in one", len(cut), len(whole))
	}
	for i := range whole {
		if cut[i] != whole[i] || cut[i].id != fmt.Sprint(i+1) {
			t.Errorf("frame %d: got %v, want %v", i+1, cut[i], whole[i])
		}
	}
	if doc, err = d.app.Runs.History.Find(ctx, id.DefaultWorkspace, doc.ID); err != nil || doc.Status != run.Succeeded {
		t.Errorf("complete was shown while the run is %s, %v", doc.Status, err)
	}
	if text := fmt.Sprint(whole); !strings.Contains(text, `"encoding":"base64"`) {
		t.Errorf("bytes that are no text are not marked: %s", text)
	}
	if rest := d.take(t, path, whole[len(whole)-1].id, 1); len(rest) != 0 {
		t.Errorf("behind complete came %v", rest)
	}
}

// TestTheLogsStreamCutAtEveryEvent follows the log while events are appended, with a connection that is cut after every event.
func TestTheLogsStreamCutAtEveryEvent(t *testing.T) {
	d := startDaemon(t)
	ctx := t.Context()
	origin := event.Origin{Principal: d.app.Owner}
	s, err := d.app.Spaces.Creation.Create(ctx, origin, spaces.Request{Workspace: id.DefaultWorkspace})
	if err != nil {
		t.Fatal(err)
	}
	head, err := d.app.Log.Head(ctx, id.DefaultWorkspace)
	if err != nil {
		t.Fatal(err)
	}
	const events = 60
	failed := make(chan error, 1)
	go func() {
		for i := range events {
			name := fmt.Sprint("name ", i)
			if _, err := d.app.Spaces.Settings.Update(ctx, origin, id.DefaultWorkspace, s.ID, spaces.Change{Name: &name}); err != nil {
				failed <- err
				return
			}
		}
		failed <- nil
	}()
	last := fmt.Sprint(head)
	for i := range events {
		next := d.take(t, "/v1/events/stream", last, 1)
		if len(next) != 1 || next[0].id != fmt.Sprint(head+uint64(i)+1) || !strings.Contains(next[0].data, fmt.Sprintf(`"name %d"`, i)) {
			t.Fatalf("behind %s came %v", last, next)
		}
		last = next[0].id
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
}

// TestAStreamBeyondItsEndIsRefused begins streams at their next place, and further on, where nothing would ever be sent of what is
// recorded in between.
func TestAStreamBeyondItsEndIsRefused(t *testing.T) {
	d := startDaemon(t)
	ctx, origin := t.Context(), event.Origin{Principal: d.app.Owner}
	s, err := d.app.Spaces.Creation.Create(ctx, origin, spaces.Request{Workspace: id.DefaultWorkspace})
	if err != nil {
		t.Fatal(err)
	}
	m, err := run.ParseMessage(
		[]byte(`{"protocolVersion":"1.0","operations":[{"type":"message","content":"a"},{"type":"message","content":"b"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := d.app.Runs.Start(ctx, origin, runs.Request{Workspace: id.DefaultWorkspace, Space: s.ID, Message: m})
	if err != nil {
		t.Fatal(err)
	}
	ofRun := "/v1/spaces/" + string(s.ID) + "/runs/" + string(doc.ID) + "/stream"
	frames := len(d.take(t, ofRun, "", 1_000_000))
	lab := d.must(t, "POST", "/v1/rooms", `{"title":"lab"}`, "room_id")
	d.must(t, "POST", "/v1/rooms/"+lab+"/threads", `{"title":"talk"}`, "thread_id")
	for path, length := range map[string]func() int{
		"/v1/streams/rooms/" + lab: func() int { return 2 },
		ofRun:                      func() int { return frames },
		"/v1/events/stream": func() int {
			head, err := d.app.Log.Head(ctx, id.DefaultWorkspace)
			if err != nil {
				t.Fatal(err)
			}
			return int(head)
		},
	} {
		from := "from_seq"
		if path == ofRun {
			from = "from"
		}
		for _, last := range []int{0, 1, 50, 1 << 40} { // how far behind the last place; the log grows a little by itself
			n := length() + last
			for query, header := range map[string]string{"": fmt.Sprint(n), fmt.Sprintf("?%s=%d", from, n+1): ""} {
				status, raw := d.begin(t, path+query, header)
				if good := status == 200 || status == 204 && path == ofRun; last == 0 && !good {
					t.Errorf("%s%s behind %q: %d %s, want it to go on", path, query, header, status, raw)
				}
				if last > 1 || last == 1 && path != "/v1/events/stream" {
					if status != 400 || code(raw) != "invalid_cursor" || !strings.Contains(string(raw), "begin at 1") {
						t.Errorf("%s%s behind %q: %d %s, want 400 invalid_cursor", path, query, header, status, raw)
					}
				}
			}
		}
	}
}

// begin opens a stream and returns the status, and the answer where it is not a stream.
func (d *daemon) begin(t *testing.T, path, last string) (int, []byte) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.keys[""])
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return resp.StatusCode, nil
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, raw
}

// TestADaemonThatCannotMakeSpacesSaysSoAndStops asks a daemon whose spaces have no root for a space, and ends it.
func TestADaemonThatCannotMakeSpacesSaysSoAndStops(t *testing.T) {
	d := startDaemon(t, func(c *app.Config) { c.RootFS = t.TempDir() })
	got := d.exchange(t, []string{"> POST /v1/spaces", "", `{"name":"one"}`})
	if !strings.HasPrefix(got, "< 503\n") {
		t.Errorf("a space without a root: %s", got)
	}
	if got := d.exchange(t, []string{"> GET /readyz"}); !strings.HasPrefix(got, "< 503\n") || !strings.Contains(got, `"name": "tiers"`) {
		t.Errorf("ready without a tier: %s", got)
	}
	if got := d.exchange(t, []string{"> GET /v1/doctor"}); !strings.HasPrefix(got, "< 200\n") || !strings.Contains(got, `"ok": false`) {
		t.Errorf("the doctor says %s", got)
	}
}

// Row 27: whatever a text holds, it is one event with the same text, in the list and on the stream.
func TestThreat27AnyTextIsOneEventWithTheSameText(t *testing.T) {
	d := startDaemon(t)
	ctx := t.Context()
	s, err := d.app.Spaces.Creation.Create(ctx, event.Origin{Principal: d.app.Owner}, spaces.Request{Workspace: id.DefaultWorkspace})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"two\nlines", "carriage\rreturn", "id: 99\nevent: complete\ndata: {}\n\n", "\x1b[31mred\x1b[0m", `{"event_type":"run.completed"}`,
		"\u2028\u2029", "a\u202eb",
		"\x7f\x01\x02", "\ufeff", "data: x\r\n\r\ndata: y", strings.Repeat("é", 100),
	} {
		head, err := d.app.Log.Head(ctx, id.DefaultWorkspace)
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(map[string]any{"metadata": map[string]string{"said": text}})
		if err != nil {
			t.Fatal(err)
		}
		if got := d.exchange(t, []string{"> PATCH /v1/spaces/" + string(s.ID), "", string(body)}); !strings.HasPrefix(got, "< 200") {
			t.Fatalf("%q: %s", text, got)
		}
		after, err := d.app.Log.Head(ctx, id.DefaultWorkspace)
		if err != nil || after != head+1 {
			t.Errorf("%q: %d events, %v, want one", text, after-head, err)
		}
		for _, f := range d.take(t, "/v1/events/stream", fmt.Sprint(head), 1) {
			var e struct {
				Data struct {
					Metadata map[string]string `json:"metadata"`
				} `json:"data"`
			}
			if err := json.Unmarshal([]byte(f.data), &e); err != nil || e.Data.Metadata["said"] != text || f.id != fmt.Sprint(after) {
				t.Errorf("%q came as event %s %q, %v", text, f.id, e.Data.Metadata, err)
			}
		}
	}
}

// Row 33: a file that is too large for its space is refused before it is kept, whether its length is known or not.
func TestThreat33AFileThatIsTooLargeIsNotKept(t *testing.T) {
	d := startDaemon(t)
	s, err := d.app.Spaces.Creation.Create(t.Context(), event.Origin{Principal: d.app.Owner}, spaces.Request{Workspace: id.DefaultWorkspace})
	if err != nil {
		t.Fatal(err)
	}
	const most = 10 << 20 // of the policy standard
	for _, c := range []struct {
		name   string
		size   int64
		length int64
		status int
	}{{"as large as permitted", most, most, 200}, {"larger", most + 1, most + 1, 413}, {"of a length that is not told", most + 1, -1, 413}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, d.address+"/v1/spaces/"+string(s.ID)+"/files/zeros",
			io.LimitReader(zeros{}, c.size))
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = c.length
		r.Header.Set("Authorization", "Bearer "+d.keys[""])
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != c.status || c.status == 413 && !strings.Contains(string(got), "10485760 bytes") {
			t.Errorf("%s: %d %s", c.name, resp.StatusCode, got)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	var kept int64
	err = filepath.WalkDir(filepath.Join(d.app.Config.DataDir, "blobs"), func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			info, err := e.Info()
			if err != nil {
				return err
			}
			kept += info.Size()
		}
		return err
	})
	if err != nil || kept > most {
		t.Errorf("%d bytes are kept, %v, want those of one file", kept, err)
	}
}

// zeros reads as zeros without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
