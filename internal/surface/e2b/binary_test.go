package e2b

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The bytes of these tests are written by hand, from the numbers and types of the fields.

// A call in protobuf is answered in protobuf, and refused in JSON.
func TestACallInProtobuf(t *testing.T) {
	with := func(s *Surface) map[string]string {
		return map[string]string{"E2b-Sandbox-Id": "spc_1", "X-Access-Token": s.tokens.of(&caller{bearer: key}, "spc_1")}
	}
	api := &reply{status: http.StatusOK, body: `{"runs":[]}`}
	s := open(t, api)
	w := send(t, s, "POST", "/e2b/process.Process/List", binaryType, "", with(s))
	if w.Code != http.StatusOK || w.Body.Len() != 0 || w.Header().Get("Content-Type") != binaryType {
		t.Errorf("no commands: got %d, %q, %v", w.Code, w.Body, w.Header())
	}
	// The longest body: fields that the message does not have.
	w = send(t, s, "POST", "/e2b/filesystem.Filesystem/Stat", binaryType, strings.Repeat("x", maxRequest), with(s))
	if w.Code != http.StatusOK {
		t.Errorf("the longest body: got %d, %.200s", w.Code, w.Body)
	}
	api = &reply{status: http.StatusNotFound, body: `{"error":{"code":"file_not_found","message":"there is none"}}`}
	s = open(t, api)
	w = send(t, s, "POST", "/e2b/filesystem.Filesystem/Stat", binaryType, "\x0a\x01x", with(s))
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), `"code":"not_found"`) ||
		w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("a missing file: got %d, %s, %v", w.Code, w.Body, w.Header())
	}
	for name, c := range map[string]struct{ path, body, want string }{
		"half a message":    {"/e2b/filesystem.Filesystem/Stat", "\x0a\x09x", `"code":"invalid_argument"`},
		"a wrong wire type": {"/e2b/filesystem.Filesystem/Stat", "\x0b", `"code":"invalid_argument"`},
		"too long": {"/e2b/filesystem.Filesystem/Stat", strings.Repeat("x", maxRequest+1),
			fmt.Sprintf("more than %d bytes", maxRequest)},
		"no such call":    {"/e2b/filesystem.Filesystem/Format", "", `"code":"unimplemented"`},
		"no such service": {"/e2b/disk.Disk/Format", "", `"code":"unimplemented"`},
	} {
		if w := send(t, s, "POST", c.path, binaryType, c.body, with(s)); w.Code == http.StatusOK || !strings.Contains(w.Body.String(), c.want) ||
			w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: got %d, %.200s", name, w.Code, w.Body)
		}
	}
}

// unread fails a test that reads it.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body of a stranger is read")
	return 0, io.EOF
}

// The body of a caller who is not known is not read.
func TestABodyOfAStrangerInProtobuf(t *testing.T) {
	s := open(t, &reply{status: http.StatusOK, body: `{}`})
	for _, kind := range []string{binaryType, binaryStreamType} {
		r := httptest.NewRequest("POST", "/e2b/process.Process/SendInput", unread{t})
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		if s.Serve(w, r); !strings.Contains(w.Body.String(), "unauthenticated") {
			t.Errorf("%s: got %d %q", kind, w.Code, w.Body)
		}
	}
}

// A stream in protobuf has the same frames as one in JSON. Only its last one is JSON.
func TestAStreamInProtobuf(t *testing.T) {
	clock := &beating{}
	over := make(chan struct{})
	close(over)
	s := at(&running{show: ended, after: over}, clock)
	with := map[string]string{"E2b-Sandbox-Id": "spc_1", "X-Access-Token": s.tokens.of(&caller{bearer: key}, "spc_1")}
	// process { cmd: "bash", args: ["-c", "x"] }
	w := send(t, s, "POST", "/e2b/process.Process/Start", binaryStreamType, message("\x0a\x0d\x0a\x04bash\x12\x02-c\x12\x01x"), with)
	if got := w.Header().Get("Content-Type"); w.Code != http.StatusOK || got != binaryStreamType {
		t.Fatalf("got %d, %s", w.Code, got)
	}
	raw := w.Body.String()
	// event { data { stdout: "hi" } }; event { end { exit_code: 0, exited: true, status: … } }
	for _, want := range []string{message("\x0a\x06\x12\x04\x0a\x02hi"), "\x1a", "\x10\x01", "\x02\x00\x00\x00\x02{}"} {
		if !strings.Contains(raw, want) {
			t.Errorf("no %q in %q", want, raw)
		}
	}
	if raw[0] != 0 || raw[5] != 0x0a || raw[7] != 0x0a { // event { start {
		t.Errorf("the first message is not a start: %q", raw)
	}
	w = send(t, s, "POST", "/e2b/process.Process/Start", binaryStreamType, message("\x0a\x09x"), with)
	if raw := w.Body.String(); raw == "" || raw[0] != endOfFrame || !strings.Contains(raw, "invalid_argument") ||
		w.Header().Get("Content-Type") != binaryStreamType {
		t.Errorf("half a message: got %q, %v", raw, w.Header())
	}
	w = send(t, s, "POST", "/e2b/process.Process/Fly", binaryStreamType, message(""), with)
	if raw := w.Body.String(); raw == "" || raw[0] != endOfFrame || !strings.Contains(raw, "unimplemented") {
		t.Errorf("no such call: got %q", raw)
	}
}

// The input of a command arrives as its bytes, in several frames.
func TestInputInProtobuf(t *testing.T) {
	var transcoder transcoder
	in, out, err := transcoder.messages("/process.Process/StreamInput")
	if err != nil || in == nil || out == nil {
		t.Fatalf("got %v, %v, %v", in, out, err)
	}
	raw, err := toJSON(in, []byte("\x12\x05\x12\x03\x0a\x01\xff")) // data { input { stdin: 0xff } }
	want := `{"data":{"input":{"stdin":"` + base64.StdEncoding.EncodeToString([]byte{0xff}) + `"}}}`
	if got := strings.ReplaceAll(string(raw), " ", ""); err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	long := &framesIn{body: strings.NewReader(message("\x12\x05\x12\x03\x0a\x01\xff") + message("\x1a\x00")), message: in}
	for _, want := range []string{want, `{"keepalive":{}}`} {
		raw, err := nextFrame(long)
		if got := strings.ReplaceAll(string(raw), " ", ""); err != nil || got != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
}
