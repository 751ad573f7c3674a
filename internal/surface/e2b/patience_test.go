package e2b

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/id"
)

// past is a clock for which the time that a sender is given is over.
type past struct{ still }

func (past) Now() time.Time { return time.Now().Add(-time.Hour) }

// TestNobodyHoldsAConnectionUnknown sends the head of a request, and no body: a caller who is not known loses the connection, and one who
// is may take their time.
func TestNobodyHoldsAConnectionUnknown(t *testing.T) {
	api := &reply{status: 200, body: `{}`}
	s := New(Parts{API: api, Key: bytes.Repeat([]byte{7}, 32), Clock: past{}, IDs: id.NewSource(past{}.Now, rand.Reader)})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.Serve(w, r) }))
	defer server.Close()
	begin := func(path, more string) net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, "POST /e2b"+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"+more+"\r\n"); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, path := range []string{"/sandboxes", "/sandboxes/spc_1/pause", "/files?path=a", "/process.Process/Start", "/no/such"} {
		for _, more := range []string{"", "X-Api-Key: guessed\r\n", "X-Access-Token: agentbox_guessed\r\nE2b-Sandbox-Id: spc_1\r\n"} {
			if _, err := io.ReadAll(begin(path, more)); err != nil { // it ends because the connection does
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	token := s.tokens.of(&caller{bearer: key}, "spc_1")
	known := begin("/files?path=a.txt", "X-Access-Token: "+token+"\r\nE2b-Sandbox-Id: spc_1\r\n")
	waiting := make([]byte, 1)
	_ = known.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if _, err := known.Read(waiting); err == nil || !err.(net.Error).Timeout() { //nolint:errorlint // of net
		t.Fatalf("the connection of a known caller: %v", err)
	}
	_ = known.SetReadDeadline(time.Time{})
	if _, err := io.WriteString(known, "hi"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(known), nil)
	if err != nil || answer.StatusCode != 200 || api.sent != "hi" {
		t.Errorf("got %+v, %v; /v1 got %q", answer, err, api.sent)
	}
}

// TestTheTimeOfABeat is never longer than the surface's own, and never none: a client that asks for ages would be sent signs without end.
func TestTheTimeOfABeat(t *testing.T) {
	for asked, want := range map[string]time.Duration{"": keepalive, "1": time.Second, "45": keepalive, "46": keepalive,
		"9223372037":          keepalive,
		"9223372036854775807": keepalive, "-5": keepalive, "0": keepalive} {
		clock := &timers{first: make(chan time.Duration, 1)}
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Keepalive-Ping-Interval", asked)
		stop := beat(clock, r, func() {})
		stop()
		if got := <-clock.first; got != want {
			t.Errorf("%q: every %v, want %v", asked, got, want)
		}
	}
}

// timers is a clock that tells of its first timer.
type timers struct {
	still
	first chan time.Duration
}

func (c *timers) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	select {
	case c.first <- d:
	default:
	}
	return nil, func() {}
}

// TestWhatASignatureIsOf: the parts of what is signed cannot be read in another way, and nobody has the daemon hash a long text for each
// token.
func TestWhatASignatureIsOf(t *testing.T) {
	api := &reply{status: 200, body: `x`}
	s := open(t, api)
	token := s.tokens.of(&caller{bearer: key}, "spc_1")
	signed := func(path, operation, user string) string {
		sum := sha256.Sum256([]byte(path + ":" + operation + ":" + user + ":" + token))
		return signaturePrefix + base64.RawStdEncoding.EncodeToString(sum[:])
	}
	get := func(method, path, user, sign string) int {
		q := url.Values{"path": {path}, "username": {user}, "signature": {sign}}
		r := httptest.NewRequest(method, "/files?"+q.Encode(), strings.NewReader("x"))
		w := httptest.NewRecorder()
		s.Serve(w, r)
		return w.Code
	}
	long := strings.Repeat("a", maxSigned-len(":read:user:"))
	for _, c := range []struct {
		what, method, path, user, sign string
		want                           int
	}{
		{"as it was signed", "GET", "a", "user", signed("a", "read", "user"), 200},
		{"the longest", "GET", long, "user", signed(long, "read", "user"), 200},
		{"a byte more", "GET", long + "a", "user", signed(long+"a", "read", "user"), 401},
		{"a read as a write", "POST", "a", "user", signed("a", "read", "user"), 401},
		{"a read of one path as a write of another", "POST", "a", "b:read:user", signed("a:write:b", "read", "user"), 401},
	} {
		if got := get(c.method, c.path, c.user, c.sign); got != c.want {
			t.Errorf("%s: got %d, want %d", c.what, got, c.want)
		}
	}
}

// TestARedirectIsNoSuccess: the server of /v1 answers one to an address that it does not take as it is, and has done nothing.
func TestARedirectIsNoSuccess(t *testing.T) {
	s := open(t, &reply{status: 307})
	token := s.tokens.of(&caller{bearer: key}, "spc_1")
	with := map[string]string{"X-Access-Token": token, "E2b-Sandbox-Id": "spc_1"}
	if w := send(t, s, "POST", "/e2b/files?path=~", "application/octet-stream", "x", with); w.Code < 400 {
		t.Errorf("an upload: %d %s", w.Code, w.Body)
	}
	if w := send(t, s, "DELETE", "/e2b/contexts/main", "", "", with); w.Code < 400 {
		t.Errorf("a context: %d %s", w.Code, w.Body)
	}
}
