package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentbox/internal/domain/fault"
)

// serve answers requests with a function and returns a client of it.
func serve(t *testing.T, answer http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(answer)
	c := New(s.URL, "secret")
	c.pause = 1
	t.Cleanup(func() { c.Close(); s.Close() })
	return c
}

// TestWhatIsSent holds methods, addresses, headers and bodies.
func TestWhatIsSent(t *testing.T) {
	var got string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = fmt.Sprintf("%s %s %s", r.Method, r.URL.RequestURI(), body)
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("got Authorization %q", r.Header.Get("Authorization"))
		}
		fmt.Fprint(w, "{}")
	})
	ctx := t.Context()
	text := "n"
	for _, call := range []struct {
		do   func() error
		want string
	}{
		{func() error {
			_, err := c.CreateSpace(ctx, SpaceRequest{Name: "n", TTLSeconds: 60})
			return err
		}, `POST /v1/spaces {"name":"n","ttl_seconds":60}`},
		{func() error { _, err := c.UpdateSpace(ctx, "spc_1", SpaceChange{Name: &text}); return err }, `PATCH /v1/spaces/spc_1 {"name":"n"}`},
		{func() error { _, err := c.ExtendSpace(ctx, "spc_1", 90e9); return err }, `POST /v1/spaces/spc_1/extend {"ttl_seconds":90}`},
		{func() error {
			_, err := c.Spaces(ctx, SpaceFilter{Status: "ready", Page: Page{Limit: 5, Cursor: "c d"}})
			return err
		}, `GET /v1/spaces?cursor=c+d&limit=5&status=ready `},
		{func() error { _, err := c.Space(ctx, "../x"); return err }, `GET /v1/spaces/..%2Fx `},
		{func() error { _, err := c.DestroySpace(ctx, "spc_1"); return err }, `DELETE /v1/spaces/spc_1 `},
		{func() error {
			_, err := c.CreateRun(ctx, "spc_1", RunRequest{Message: Message{json.RawMessage(`"1.0"`), json.RawMessage(`[]`)}})
			return err
		}, `POST /v1/spaces/spc_1/runs {"protocolVersion":"1.0","operations":[],"wait_seconds":0}`},
		{func() error { _, err := c.Files(ctx, "spc_1", ".", true); return err }, `GET /v1/spaces/spc_1/files?path=.&recursive=true `},
		{func() error { return c.DeleteFile(ctx, "spc_1", "a b/ü?.txt") }, `DELETE /v1/spaces/spc_1/files/a%20b/%C3%BC%3F.txt `},
		{func() error { return c.DeleteFile(ctx, "spc_1", "archive") }, `DELETE /v1/spaces/spc_1/files/%2e/archive `},
		{func() error { return c.DeleteFile(ctx, "spc_1", "/etc/x") }, `DELETE /v1/spaces/spc_1/files/%2Fetc/x `},
		{func() error { return c.DeleteFile(ctx, "spc_1", "a//b") }, `DELETE /v1/spaces/spc_1/files/a%2F%2Fb `},
		{func() error { return c.DeleteFile(ctx, "spc_1", "a/../b") }, `DELETE /v1/spaces/spc_1/files/a/%2E%2E/b `},
		{func() error {
			_, err := c.WriteFile(ctx, "spc_1", "f", strings.NewReader("hi"), 2, true, "")
			return err
		}, `PUT /v1/spaces/spc_1/files/f?overwrite=true hi`},
		{func() error {
			_, err := c.WriteFile(ctx, "spc_1", "f", strings.NewReader("hi"), 2, true, "0755")
			return err
		}, `PUT /v1/spaces/spc_1/files/f?mode=0755&overwrite=true hi`},
		{func() error {
			_, err := c.Decide(ctx, "appr_1", Answer{Decision: "approve"})
			return err
		}, `POST /v1/approvals/appr_1/decide {"decision":"approve"}`},
		{func() error { _, err := c.SetKillSwitch(ctx, true, ""); return err }, `PUT /v1/kill-switch {"on":true}`},
		{func() error {
			_, err := c.Events(ctx, EventFilter{Run: "run_1", Types: []string{"a.b", "c.d"}, From: 3, Limit: 9})
			return err
		}, `GET /v1/events?event_types=a.b%2Cc.d&from_seq=3&limit=9&run_id=run_1 `},
		{func() error {
			_, err := c.Explain(ctx, Trial{Policy: "standard", Operation: json.RawMessage(`{}`)})
			return err
		}, `POST /v1/policies/explain {"policy":"standard","operation":{}}`},
	} {
		if err := call.do(); err != nil {
			t.Errorf("%s: %v", call.want, err)
		}
		if got != call.want {
			t.Errorf("got %s, want %s", got, call.want)
		}
	}
}

// TestRefusals turns problem documents into faults, and other answers too.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		kind   fault.Kind
		code   string
	}{
		{400, `{"error":"invalid_json","detail":"d"}`, fault.Invalid, "invalid_json"},
		{401, `{"error":"unauthenticated","detail":"d"}`, fault.Denied, "unauthenticated"},
		{403, `{"error":"kill_switch_active","detail":"d","suggestion":"s"}`, fault.Denied, "kill_switch_active"},
		{404, `{"error":"space_not_found","detail":"d"}`, fault.NotFound, "space_not_found"},
		{405, `{"error":"method_not_allowed","detail":"d"}`, fault.Invalid, "method_not_allowed"},
		{409, `{"error":"version_conflict","detail":"d"}`, fault.Conflict, "version_conflict"},
		{413, `{"error":"file_too_large","detail":"d"}`, fault.Exhausted, "file_too_large"},
		{429, `{"error":"rate_limited","detail":"d"}`, fault.Exhausted, "rate_limited"},
		{429, `{"error":"rate_limited","detail":"d","retry_after":7}`, fault.Exhausted, "rate_limited"},
		{503, `{"error":"log_unavailable","detail":"d"}`, fault.Unavailable, "log_unavailable"},
		{500, `{"error":"internal_error","detail":"d"}`, fault.Internal, "internal_error"},
		{502, `<html>`, fault.Unavailable, "unexpected_answer"},
		{302, ``, fault.Internal, "unexpected_answer"},
		{418, `{}`, fault.Invalid, "unexpected_answer"},
		{200, `{"id":`, fault.Internal, "unexpected_answer"},
	} {
		api := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://elsewhere.invalid/")
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		})
		_, err := api.Space(t.Context(), "spc_1")
		if fault.KindOf(err) != c.kind || fault.CodeOf(err) != c.code {
			t.Errorf("%d: got %v %s (%v), want %v %s", c.status, fault.KindOf(err), fault.CodeOf(err), err, c.kind, c.code)
		}
	}
}

// TestTheKeyStaysOnThisMachine refuses an address to which a key would go in clear text.
func TestTheKeyStaysOnThisMachine(t *testing.T) {
	for _, address := range []string{"http://192.0.2.1:1", "http://localhost.example:1", "ftp://127.0.0.1", "127.0.0.1:7433",
		"http://127.0.0.1.example"} {
		if _, err := New(address, "k").Session(t.Context()); fault.CodeOf(err) != "address_insecure" && fault.CodeOf(err) != "address_invalid" {
			t.Errorf("%s: got %v, want a refusal", address, err)
		}
	}
}

// TestAStreamThatBreaksIsTakenUpAgain cuts the connection after every frame, in the middle of the next one, and wants each frame once.
func TestAStreamThatBreaksIsTakenUpAgain(t *testing.T) {
	const frames = 5
	var asked []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		from := r.URL.Query().Get("from")
		asked = append(asked, from)
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		var n int
		fmt.Sscan(from, &n)
		kind := "stdout"
		if n == frames {
			kind = "complete"
		}
		fmt.Fprintf(w, ": hello\n\nid: %d\nevent: %s\ndata: {\"n\":\ndata: %d}\n\nid: %d\nevent: stdout\ndata: {\"cut", n, kind, n, n+1)
	})
	var got []string
	for f, err := range c.FollowRun(t.Context(), "spc_1", "run_1", 0) {
		if err != nil {
			t.Fatal(err)
		}
		var data struct{ N uint64 }
		if err := json.Unmarshal(f.Data, &data); err != nil || data.N != f.N {
			t.Errorf("frame %d: got %s, %v", f.N, f.Data, err)
		}
		got = append(got, fmt.Sprintf("%d %s", f.N, f.Kind))
	}
	if diff := cmp.Diff([]string{"1 stdout", "2 stdout", "3 stdout", "4 stdout", "5 complete"}, got); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1", "2", "3", "4", "5"}, asked); diff != "" {
		t.Errorf("asked from (-want +got):\n%s", diff)
	}
}

// TestAStreamNeverEndsWithASuccessThatDidNotHappen wants an error from streams that skip, repeat or end for good.
func TestAStreamNeverEndsWithASuccessThatDidNotHappen(t *testing.T) {
	for name, body := range map[string]string{
		"a gap":         "id: 2\nevent: complete\ndata: {}\n\n",
		"no number":     "event: complete\ndata: {}\n\n",
		"no JSON":       "id: 1\nevent: complete\ndata: {\n\n",
		"always cut":    "id: 1\nevent: complete\ndata: {}\n",
		"not a stream":  "",
		"another space": "problem",
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				switch body {
				case "":
				case "problem":
					w.WriteHeader(http.StatusNotFound)
				default:
					w.Header().Set("Content-Type", "text/event-stream")
				}
				fmt.Fprint(w, body)
			})
			ctx, cancel := context.WithCancel(t.Context())
			var last error
			complete := false
			for f, err := range c.FollowRun(ctx, "spc_1", "run_1", 0) {
				complete, last = complete || f.Kind == FrameComplete, err
			}
			cancel()
			if complete || last == nil {
				t.Errorf("got complete %v and %v, want an error only", complete, last)
			}
		})
	}
}

// TestParse reads streams as the standard says, however they are cut into pieces.
func TestParse(t *testing.T) {
	const stream = ":c\r\nid:1\r\ndata: a\r\ndata:  b\r\n\r\nevent: e\rdata\r\rdata: x\n\nid: \x00\nid\nretry: 5\nunknown: y\ndata: " +
		"z\n\n\ndata: lost\n"
	want := []message{{id: "1", data: "a\n b"}, {id: "1", name: "e", data: ""}, {id: "1", data: "x"}, {id: "", data: "z"}}
	for name, r := range map[string]io.Reader{"whole": strings.NewReader(stream),
		"by bytes": iotest.OneByteReader(strings.NewReader(stream))} {
		var got []message
		for m, err := range parse(r) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, m)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(message{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestParseMessage keeps the operations as they are and names what does not belong.
func TestParseMessage(t *testing.T) {
	m, err := ParseMessage([]byte(`{"protocolVersion":"1.0","operations":[{"type":"x", "y": 1e400}]}`))
	if err != nil || string(m.Operations) != `[{"type":"x", "y": 1e400}]` {
		t.Errorf("got %s, %v", m.Operations, err)
	}
	for _, raw := range []string{``, `[]`, `{"operation":[]}`, `{"protocolVersion":"1.0"`, `null x`} {
		if _, err := ParseMessage([]byte(raw)); fault.CodeOf(err) != "operation_invalid" {
			t.Errorf("%s: got %v, want operation_invalid", raw, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"data: a\n\n", "id: 1\r\nevent: e\r\ndata: {}\r\n\r\n", "\r\r\n\n", ":", "data", "data:\xff\n\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		var whole, pieces []message
		for m, err := range parse(strings.NewReader(stream)) {
			if err != nil {
				return
			}
			whole = append(whole, m)
		}
		for m := range parse(iotest.OneByteReader(strings.NewReader(stream))) {
			pieces = append(pieces, m)
		}
		if !cmp.Equal(whole, pieces, cmp.AllowUnexported(message{})) {
			t.Errorf("got %v by bytes, want %v", pieces, whole)
		}
		for _, m := range whole {
			if strings.ContainsAny(m.name+m.id, "\r\n") {
				t.Errorf("a field of %q spans lines", m)
			}
		}
	})
}

// TestAnAnswerThatIsCutOffIsAskedForAgain holds what is read, which may be repeated, against what is changed, which may not.
func TestAnAnswerThatIsCutOffIsAskedForAgain(t *testing.T) {
	cuts, asked := 0, 0
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked <= cuts {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"principal`)
			return // the connection is closed before the whole answer was sent
		}
		_, _ = io.WriteString(w, `{"principal_id":"usr_1"}`)
	})
	for _, try := range []struct{ cuts, asked int }{{0, 1}, {2, 3}, {3, 3}} {
		cuts, asked = try.cuts, 0
		s, err := c.Session(t.Context())
		if want := try.cuts < getTries; (err == nil) != want || want && s.Principal != "usr_1" || asked != try.asked {
			t.Errorf("cut off %d times: got %+v, %v after %d requests", try.cuts, s, err, asked)
		}
	}
	cuts, asked = 1, 0
	if err := c.post(t.Context(), "/v1/x", nil, &Session{}); err == nil || asked != 1 {
		t.Errorf("a change that was cut off: got %v after %d requests, want an error after one", err, asked)
	}
}

// TestLater: of a refusal that may be made again is told when, unless it is more than an hour.
func TestLater(t *testing.T) {
	for _, x := range []struct {
		status int
		body   string
		want   time.Duration
	}{
		{429, `{"error":"rate_limited","detail":"d","retry_after":7}`, 7 * time.Second},
		{429, `{"error":"rate_limited","detail":"d","retry_after":3600}`, time.Hour},
		{429, `{"error":"rate_limited","detail":"d","retry_after":3601}`, 0},
		{429, `{"error":"rate_limited","detail":"d"}`, 0},
		{503, `{"error":"log_unavailable","detail":"d","retry_after":7}`, 0},
	} {
		api := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(x.status)
			_, _ = w.Write([]byte(x.body))
		})
		_, err := api.Space(t.Context(), "spc_x")
		later, ok := errors.AsType[*Later](err)
		if ok != (x.want > 0) || ok && later.After != x.want {
			t.Errorf("%d %s: got %v, want after %s", x.status, x.body, err, x.want)
		}
	}
}
