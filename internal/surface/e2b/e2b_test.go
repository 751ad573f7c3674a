package e2b

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/id"
)

const key = "abx_a.key"

// still is a clock that stands.
type still struct{}

func (still) Now() time.Time { return time.Unix(1_800_000_000, 0) }

func (still) NewTimer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// reply is what /v1 answers to every request, and the requests that it got.
type reply struct {
	status int
	body   string
	asked  []string
	keys   []string
	sent   string // the last body
}

func (a *reply) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.asked = append(a.asked, r.Method+" "+r.URL.Path)
	a.keys = append(a.keys, r.Header.Get("Authorization"))
	if raw, err := io.ReadAll(r.Body); err == nil {
		a.sent = string(raw)
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

func open(t *testing.T, api http.Handler) *Surface {
	t.Helper()
	clock := still{}
	return New(Parts{API: api, Key: bytes.Repeat([]byte{7}, 32), Clock: clock, IDs: id.NewSource(clock.Now, rand.Reader)})
}

func send(t *testing.T, s *Surface, method, target, kind, body string, headers map[string]string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	if !s.Serve(w, r) {
		t.Fatalf("%s %s was not taken", method, target)
	}
	return w
}

func TestWhichRequestsAreTaken(t *testing.T) {
	s := open(t, http.NotFoundHandler())
	for target, want := range map[string]bool{"/v1/spaces": false, "/e2bx": false, "/files": false, "/files?signature=v1_x": true,
		"/e2b/sandboxes": true, "/e2b//files": true, "/e2b/nothing": true} {
		if got := s.Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil)); got != want {
			t.Errorf("%s: got %v, want %v", target, got, want)
		}
	}
}

// An error of the control plane always has the status as a number, also where there is no such operation.
func TestErrorsOfTheControlPlane(t *testing.T) {
	missing := &reply{status: 404, body: `{"error":"space_not_found","detail":"there is no such space"}`}
	s := open(t, missing)
	with := map[string]string{"X-Api-Key": key}
	for _, c := range []struct {
		method, path string
		headers      map[string]string
		want         int
	}{
		{"GET", "/e2b/sandboxes/spc_x", with, 404}, {"GET", "/e2b/sandboxes/spc_x", nil, 401}, {"GET", "/e2b/no/such", with, 404},
		{"POST", "/e2b/sandboxes/spc_x/pause", with, 404}, {"POST", "/e2b/v3/templates", with, 400},
		{"DELETE", "/e2b/sandboxes/spc_x", with, 404},
	} {
		w := send(t, s, c.method, c.path, "application/json", "{}", c.headers)
		var e struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != c.want || e.Code != c.want || e.Message == "" {
			t.Errorf("%s %s: got %d %s, want %d", c.method, c.path, w.Code, w.Body, c.want)
		}
	}
}

func TestASandboxIsMade(t *testing.T) {
	api := &reply{status: 201, body: `{"id":"spc_1","metadata":{"e2b.template":"base"}}`}
	s := open(t, api)
	for _, path := range []string{"/e2b/sandboxes", "/e2b/v2/sandboxes"} {
		w := send(t, s, "POST", path, "application/json", `{"templateID":"base","secure":true}`,
			map[string]string{"X-Api-Key": "e2b_" + hex.EncodeToString([]byte(key))})
		var made map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil || w.Code != http.StatusCreated {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
		for _, name := range []string{"sandboxID", "templateID", "clientID", "envdVersion", "envdAccessToken", "trafficAccessToken"} {
			if made[name] == nil || made[name] == "" {
				t.Errorf("%s is missing: %s", name, w.Body)
			}
		}
		if w.Header().Get("Should-Retry") != "false" {
			t.Error("a package would repeat a creation")
		}
	}
	if api.keys[0] != "Bearer "+key {
		t.Errorf("got %q, want the key itself", api.keys[0])
	}
}

// The token of a sandbox is the same each time, opens that sandbox only, and says nothing of the key.
func TestTokens(t *testing.T) {
	s := open(t, http.NotFoundHandler())
	c := &caller{bearer: key}
	token := s.tokens.of(c, "spc_1")
	if again := s.tokens.of(c, "spc_1"); again != token {
		t.Errorf("got %s, want %s", again, token)
	}
	if got, ok := s.tokens.open("spc_1", token); !ok || got != key {
		t.Errorf("got %q, %v", got, ok)
	}
	for _, wrong := range []struct{ sandbox, token string }{{"spc_2", token}, {"spc_1", token + "A"}, {"spc_1", ""}, {"", token}} {
		if _, ok := s.tokens.open(wrong.sandbox, wrong.token); ok {
			t.Errorf("%v opens it", wrong)
		}
	}
	if strings.Contains(token, base64.RawURLEncoding.EncodeToString([]byte(key))) {
		t.Error("the token shows the key")
	}
	other := New(Parts{API: http.NotFoundHandler(), Key: bytes.Repeat([]byte{8}, 32), Clock: still{}})
	if _, ok := other.tokens.open("spc_1", token); ok {
		t.Error("another daemon opens it")
	}
}

// A signed address names no sandbox; it holds for one operation, one path and its time.
func TestSignedAddresses(t *testing.T) {
	api := &reply{status: 200, body: "content"}
	s := open(t, api)
	token := s.tokens.of(&caller{bearer: key}, "spc_1")
	sign := func(said string) string {
		sum := sha256.Sum256([]byte(said))
		return "v1_" + base64.RawStdEncoding.EncodeToString(sum[:])
	}
	for name, c := range map[string]struct {
		path, signature, until string
		want                   int
	}{
		"as it is":     {"a b.txt", sign("a b.txt:read::" + token), "", 200},
		"another path": {"b.txt", sign("a b.txt:read::" + token), "", 401},
		"of a write":   {"a b.txt", sign("a b.txt:write::" + token), "", 401},
		"too late":     {"a b.txt", sign("a b.txt:read::" + token + ":" + "1"), "1", 401},
	} {
		q := url.Values{"path": {c.path}, "signature": {c.signature}}
		if c.until != "" {
			q.Set("signature_expiration", c.until)
		}
		w := send(t, s, "GET", "/files?"+q.Encode(), "", "", nil)
		if w.Code != c.want {
			t.Errorf("%s: got %d %s, want %d", name, w.Code, w.Body, c.want)
		}
	}
	if len(api.asked) != 1 || api.asked[0] != "GET /v1/spaces/spc_1/files/a b.txt" {
		t.Errorf("asked: %v", api.asked)
	}
}

// A signed address holds after a restart, and for each caller of a sandbox. The stored record shows no token, and opens nothing under
// another key.
func TestSignedAddressesSurviveARestart(t *testing.T) {
	var kept []string
	parts := Parts{API: &reply{status: 200, body: "content"}, Key: bytes.Repeat([]byte{7}, 32), Clock: still{},
		Remember: func(line string) error { kept = append(kept, line); return nil }}
	before := New(parts)
	tokens := []string{before.tokens.of(&caller{bearer: key}, "spc_1"), before.tokens.of(&caller{bearer: key + "2"}, "spc_1")}
	before.tokens.of(&caller{bearer: key}, "spc_1") // known already
	if len(kept) != 2 || strings.Contains(strings.Join(kept, "\n"), tokens[0]) {
		t.Fatalf("kept: %q", kept)
	}
	get := func(s *Surface, token string) int {
		sum := sha256.Sum256([]byte("a.txt:read::" + token))
		q := url.Values{"path": {"a.txt"}, "signature": {"v1_" + base64.RawStdEncoding.EncodeToString(sum[:])}}
		return send(t, s, "GET", "/files?"+q.Encode(), "", "", nil).Code
	}
	parts.Known = append([]string{"", "damaged", kept[0] + "AA"}, kept...)
	after := New(parts)
	for n, token := range tokens {
		if got := get(after, token); got != 200 {
			t.Errorf("token %d after a restart: got %d, want 200", n, got)
		}
	}
	parts.Key = bytes.Repeat([]byte{8}, 32)
	if got := get(New(parts), tokens[0]); got != 401 {
		t.Errorf("under another key: got %d, want 401", got)
	}
}

// A refused stream is answered with 200, the type of a stream and one end frame; a refused call with its status and a word.
func TestRefusedCalls(t *testing.T) {
	s := open(t, &reply{status: 404, body: `{"error":"file_not_found","detail":"no file"}`})
	with := map[string]string{"E2b-Sandbox-Id": "spc_1", "X-Access-Token": s.tokens.of(&caller{bearer: key}, "spc_1")}
	w := send(t, s, "POST", "/e2b/process.Process/Connect", streamType, "\x00\x00\x00\x00\x16{\"process\":{\"pid\":12}}", with)
	raw := w.Body.Bytes()
	if w.Code != 200 || w.Header().Get("Content-Type") != streamType || len(raw) < 5 || raw[0] != endOfFrame ||
		!strings.Contains(string(raw[5:]), `"code":"not_found"`) {
		t.Errorf("got %d %q", w.Code, raw)
	}
	w = send(t, s, "POST", "/e2b/filesystem.Filesystem/Stat", "application/json", `{"path":"x"}`, with)
	if w.Code != 404 || !strings.Contains(w.Body.String(), `"code":"not_found"`) || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	w = send(t, s, "POST", "/e2b/filesystem.Filesystem/Stat", "application/json", `{"path":"x"}`, map[string]string{"E2b-Sandbox-Id": "spc_1"})
	if w.Code != 401 {
		t.Errorf("without a token: got %d", w.Code)
	}
}

// A sandbox that has ended is told as E2B's proxy does: with 502, which only then means that it is gone.
func TestASandboxThatHasEnded(t *testing.T) {
	s := open(t, &reply{status: 409, body: `{"error":"space_destroyed","detail":"the space was destroyed"}`})
	with := map[string]string{"E2b-Sandbox-Id": "spc_1", "X-Access-Token": s.tokens.of(&caller{bearer: key}, "spc_1")}
	for _, path := range []string{"/e2b/health", "/e2b/files?path=x"} {
		w := send(t, s, "GET", path, "", "", with)
		if w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "was not found") {
			t.Errorf("%s: got %d %s", path, w.Code, w.Body)
		}
	}
}

// The end of a command always has its exit code. The end of a refused command has none, and says why.
func TestTheEndOfACommand(t *testing.T) {
	zero := 0
	end, err := result{Type: "shell", ExitCode: &zero}.end()
	if err != nil || end["exitCode"] != 0 || end["exited"] != true {
		t.Errorf("got %v, %v", end, err)
	}
	if end, err = (result{}).end(); err != nil || end["exitCode"] != 137 {
		t.Errorf("killed: got %v, %v", end, err)
	}
	if _, err = (result{Type: "operationDenied", Reason: "it is not allowed"}).end(); err == nil || err.Error() != "it is not allowed" {
		t.Errorf("refused: got %v", err)
	}
}

// A line of the code interpreter is ASCII, and no character is told in halves.
func TestLinesOfTheCodeInterpreter(t *testing.T) {
	w := httptest.NewRecorder()
	out := &lines{stream: &stream{w: w}}
	for _, piece := range []string{"a\xe2\x82", "\xacb\xf0\x9f", "\x8c\x8d"} {
		if err := out.text("stdout", []byte(piece), "now"); err != nil {
			t.Fatal(err)
		}
	}
	said := ""
	for line := range strings.SplitSeq(strings.TrimSuffix(w.Body.String(), "\n"), "\n") {
		var l struct {
			Text string `json:"text"`
			Time string `json:"timestamp"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Time == "" {
			t.Fatalf("%q: %v", line, err)
		}
		said += l.Text
	}
	if said != "a€b🌍" || strings.ContainsFunc(w.Body.String(), func(r rune) bool { return r > 127 }) {
		t.Errorf("got %q", w.Body)
	}
}

func TestPaths(t *testing.T) {
	for p, want := range map[string]string{"": ".", "a": "a", "/home/user": ".", "/home/user/a/../b": "b", "/workspace/a": "a", "~/a": "a",
		"/tmp/x": "/tmp/x", "../../etc/x": "/etc/x", "/home/users": "/home/users"} {
		if got, inside := locate(p); got != want || inside != (want[0] != '/') {
			t.Errorf("%q: got %q, %v, want %q", p, got, inside, want)
		}
	}
}
