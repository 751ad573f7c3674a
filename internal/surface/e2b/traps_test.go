package e2b

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentbox/internal/domain/id"
)

// beating is a clock whose timers of at most a minute fire a few times, at once. A longer timer never fires.
type beating struct {
	still
	left  atomic.Int64
	asked chan time.Duration // each time that somebody waited for
}

func (b *beating) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	select {
	case b.asked <- d:
	default:
	}
	fires := make(chan time.Time, 1)
	if d <= time.Minute && b.left.Add(-1) >= 0 {
		fires <- b.Now()
	}
	return fires, func() {}
}

// running is a /v1 whose runs show what they are told to show, once the test says so.
type running struct {
	show  string
	after <-chan struct{}
	asked chan string
}

func (a *running) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/stream") {
		select {
		case <-a.after:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, a.show)
		return
	}
	raw, _ := io.ReadAll(r.Body)
	select {
	case a.asked <- r.Method + " " + r.URL.Path + " " + string(raw):
	default:
	}
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"runId":"run_1","run_id":"run_1"}`)
}

// message is one message of Connect.
func message(text string) string { return string(framed(0, []byte(text))) }

// frames returns the flags and the messages of the answer of a stream.
func framesOf(t *testing.T, raw []byte) (flags []byte, said []map[string]any) {
	t.Helper()
	for len(raw) > 0 {
		if len(raw) < 5 || int(binary.BigEndian.Uint32(raw[1:5])) > len(raw)-5 {
			t.Fatalf("half a frame: %q", raw)
		}
		n := 5 + int(binary.BigEndian.Uint32(raw[1:5]))
		var m map[string]any
		if err := json.Unmarshal(raw[5:n], &m); err != nil {
			t.Fatal(err)
		}
		flags, said, raw = append(flags, raw[0]), append(said, m), raw[n:]
	}
	return flags, said
}

// kind names the event of a message.
func kind(m map[string]any) string {
	event, _ := m["event"].(map[string]any)
	for name := range event {
		return name
	}
	return ""
}

const ended = "event: stdout\ndata: {\"data\":\"hi\"}\n\n" +
	"event: event\ndata: {\"type\":\"shell\",\"exitCode\":0}\n\nevent: complete\ndata: {}\n\n"

func at(api http.Handler, clock interface {
	Now() time.Time
	NewTimer(time.Duration) (<-chan time.Time, func())
}) *Surface {
	return New(Parts{API: api, Key: bytes.Repeat([]byte{7}, 32), Clock: clock, IDs: id.NewSource(clock.Now, rand.Reader)})
}

// A command's stream begins with its start, has signs of life in less than 50 seconds, and ends with the exit code and an end frame.
func TestTheStreamOfACommand(t *testing.T) {
	for _, path := range []string{"/e2b/process.Process/Start", "/e2b//process.Process//Start"} {
		clock := &beating{asked: make(chan time.Duration, 10)}
		clock.left.Store(2)
		goOn := make(chan struct{})
		go func() { // two signs of life, then the third wait is for one that does not come
			for range 3 {
				<-clock.asked
			}
			close(goOn)
		}()
		s := at(&running{show: ended, after: goOn}, clock)
		with := map[string]string{"E2b-Sandbox-Id": "spc_1", "X-Access-Token": s.tokens.of(&caller{bearer: key}, "spc_1")}
		w := send(t, s, "POST", path, streamType, message(`{"process":{"cmd":"/bin/bash","args":["-l","-c","echo hi"]}}`), with)
		flags, said := framesOf(t, w.Body.Bytes())
		var kinds []string
		for _, m := range said {
			kinds = append(kinds, kind(m))
		}
		if got := strings.Join(kinds, " "); got != "start keepalive keepalive data end " || w.Header().Get("Content-Type") != streamType {
			t.Fatalf("%s: got %q, %s", path, got, w.Header())
		}
		end := said[4]["event"].(map[string]any)["end"].(map[string]any)
		if code, ok := end["exitCode"]; !ok || code != float64(0) || flags[5] != endOfFrame || len(said[5]) != 0 {
			t.Errorf("%s: got %v, %v, flags %v", path, end, said[5], flags)
		}
	}
	if keepalive >= 50*time.Second {
		t.Errorf("a sign of life each %s: a package asks for one each 50 s", keepalive)
	}
}

// A program that no tier has ends a command as a shell ends it that looks for the program itself.
func TestAMissingProgram(t *testing.T) {
	over := make(chan struct{})
	close(over)
	s := at(&running{after: over, show: "event: event\ndata: {\"type\":\"shell\",\"error\":\"no tier of this host has fly\"," +
		"\"reasonCode\":\"program_unavailable\",\"suggestion\":\"bring the files in\"}\n\nevent: complete\ndata: {}\n\n"}, &beating{})
	with := map[string]string{"E2b-Sandbox-Id": "spc_1", "X-Access-Token": s.tokens.of(&caller{bearer: key}, "spc_1")}
	w := send(t, s, "POST", "/e2b/process.Process/Start", streamType, message(`{"process":{"cmd":"fly"}}`), with)
	_, said := framesOf(t, w.Body.Bytes())
	if len(said) != 4 || kind(said[1]) != "data" || kind(said[2]) != "end" || len(said[3]) != 0 {
		t.Fatalf("got %v", said)
	}
	text := said[1]["event"].(map[string]any)["data"].(map[string]any)["stderr"].(string)
	end := said[2]["event"].(map[string]any)["end"].(map[string]any)
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || string(raw) != "no tier of this host has fly (bring the files in)\n" || end["exitCode"] != float64(127) {
		t.Errorf("got %q, %v, %v", raw, err, end)
	}
}

// A call whose time is over is answered with that, and its command is cancelled. The most that a header can say does not end a call.
func TestTheTimeOfACall(t *testing.T) {
	for timeout, want := range map[string]string{"1500": "deadline_exceeded", "9223372036854775807": ""} {
		clock := &beating{asked: make(chan time.Duration, 10)}
		if clock.left.Store(0); want != "" {
			clock.left.Store(1)
		}
		never, over := make(chan struct{}), make(chan struct{})
		close(over)
		api := &running{show: ended, after: over, asked: make(chan string, 10)}
		if want != "" {
			api.after = never
		}
		s := at(api, clock)
		with := map[string]string{"E2b-Sandbox-Id": "spc_1", "X-Access-Token": s.tokens.of(&caller{bearer: key}, "spc_1"),
			"Connect-Timeout-Ms": timeout}
		w := send(t, s, "POST", "/e2b/process.Process/Start", streamType, message(`{"process":{"cmd":"sleep","args":["9"]}}`), with)
		flags, said := framesOf(t, w.Body.Bytes())
		failure, _ := said[len(said)-1]["error"].(map[string]any)
		code, _ := failure["code"].(string)
		if code != want || flags[len(flags)-1] != endOfFrame {
			t.Errorf("%s ms: got %v", timeout, said)
		}
		close(api.asked)
		cancelled := false
		for asked := range api.asked {
			cancelled = cancelled || strings.Contains(asked, "/cancel")
		}
		if cancelled != (want != "") {
			t.Errorf("%s ms: the command was cancelled: %t", timeout, cancelled)
		}
	}
}

// Each line of the code interpreter is one whole JSON value, also the signs of life, and the body ends behind the last.
func TestTheStreamOfACell(t *testing.T) {
	clock := &beating{asked: make(chan time.Duration, 10)}
	clock.left.Store(1)
	goOn := make(chan struct{})
	go func() {
		<-clock.asked
		<-clock.asked
		close(goOn)
	}()
	s := at(&running{show: ended, after: goOn}, clock)
	with := map[string]string{"E2b-Sandbox-Id": "spc_1", "X-Access-Token": s.tokens.of(&caller{bearer: key}, "spc_1")}
	w := send(t, s, "POST", "/e2b/execute", "application/json", `{"code":"print('hi')","language":"python"}`, with)
	types := []string{}
	for line := range strings.Lines(w.Body.String()) {
		var l struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Type == "" || !strings.HasSuffix(line, "\n") {
			t.Fatalf("%q: %v", line, err)
		}
		types = append(types, l.Type)
	}
	if got := strings.Join(types, " "); got != "keepalive stdout number_of_executions" && got != "keepalive number_of_executions stdout" {
		t.Errorf("got %q", got)
	}
}

// A call that is not offered is refused in the form of a call, also one of a service that is not there.
func TestCallsThatAreNotThere(t *testing.T) {
	s := open(t, http.NotFoundHandler())
	with := map[string]string{"E2b-Sandbox-Id": "spc_1", "X-Access-Token": s.tokens.of(&caller{bearer: key}, "spc_1")}
	for _, path := range []string{"/e2b/process.Process/Nothing", "/e2b/other.Service/Do", "/e2b/filesystem.Filesystem/WatchAll"} {
		w := send(t, s, "POST", path, "application/json", "{}", with)
		var e struct {
			Code, Message string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Code != "unimplemented" || e.Message == "" {
			t.Errorf("%s: got %d %s", path, w.Code, w.Body)
		}
		w = send(t, s, "POST", path, streamType, message("{}"), with)
		flags, said := framesOf(t, w.Body.Bytes())
		if failure, _ := said[0]["error"].(map[string]any); w.Code != 200 || len(flags) != 1 || flags[0] != endOfFrame ||
			failure["code"] != "unimplemented" {
			t.Errorf("%s as a stream: got %d %v", path, w.Code, said)
		}
	}
}

// A command of 4,000 characters is a run's; a longer one becomes a script. A message of 8 MiB is read; a larger one is refused.
func TestTheBoundsOfACall(t *testing.T) {
	for n, script := range map[int]bool{maxCommand: false, maxCommand + 1: true} {
		over := make(chan struct{})
		close(over)
		api := &running{show: ended, after: over, asked: make(chan string, 10)}
		s := at(api, still{})
		with := map[string]string{"E2b-Sandbox-Id": "spc_1", "X-Access-Token": s.tokens.of(&caller{bearer: key}, "spc_1")}
		line := "true " + strings.Repeat("é", n-5)
		send(t, s, "POST", "/e2b/process.Process/Start", streamType, message(`{"process":{"cmd":"bash","args":["-c","`+line+`"]}}`), with)
		asked := <-api.asked
		for strings.HasPrefix(asked, "GET ") { // whether the sandbox is paused
			asked = <-api.asked
		}
		if strings.HasPrefix(asked, "PUT ") != script {
			t.Errorf("%d characters: %.80s", n, asked)
		}
	}
	for n, fits := range map[int]bool{maxFrame: true, maxFrame + 1: false} {
		head := append([]byte{0}, binary.BigEndian.AppendUint32(nil, uint32(n))...)
		_, err := nextFrame(io.MultiReader(bytes.NewReader(head), bytes.NewReader(make([]byte, n))))
		if (err == nil) != fits {
			t.Errorf("a message of %d bytes: %v", n, err)
		}
	}
	w := httptest.NewRecorder()
	if s := at(http.NotFoundHandler(), still{}); !s.Serve(w, httptest.NewRequest(http.MethodPost, "/e2b/", nil)) || w.Code != 404 {
		t.Errorf("the prefix alone: got %d", w.Code)
	}
}
