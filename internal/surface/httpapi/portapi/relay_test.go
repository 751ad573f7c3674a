package portapi

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
	"agentbox/internal/testkit/wall"
)

// reachable is one end of a pipe as a connection to a port.
type reachable struct{ net.Conn }

func (reachable) CloseWrite() error { return nil }
func (reachable) Port() int         { return 8080 }

// answered sends the head of a request to a program that does as told, and returns what comes of it.
func answered(t *testing.T, program func(c net.Conn)) (*http.Response, error) {
	t.Helper()
	ours, theirs := net.Pipe()
	ended := make(chan struct{})
	defer func() { _ = ours.Close(); <-ended }()
	go func() {
		defer close(ended)
		defer theirs.Close()
		if _, err := http.ReadRequest(bufio.NewReader(theirs)); err != nil {
			return
		}
		program(theirs)
	}()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost:8080/", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &Ports{Part: access.Part{Server: &wire.Server{Config: wire.Config{Clock: wall.Clock{}}}}}
	sent := make(chan error, 1)
	go func() { sent <- r.Write(ours) }()
	return s.head(t.Context(), reachable{ours}, bufio.NewReader(&headed{r: ours, left: MaxAnswerHead}), r, sent)
}

// TestASlowAnswer waits for the headers of an answer as long as they may take, and no longer.
func TestASlowAnswer(t *testing.T) {
	for _, c := range []struct {
		after time.Duration
		want  error
	}{{headerTime - 1, nil}, {headerTime + 1, errSlow}} {
		synctest.Test(t, func(t *testing.T) {
			answer, err := answered(t, func(conn net.Conn) {
				time.Sleep(c.after)
				_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
			})
			if !errors.Is(err, c.want) || err == nil && answer.StatusCode != http.StatusNoContent {
				t.Errorf("after %s: %v, %v, want %v", c.after, answer, err, c.want)
			}
		})
	}
}

// TestAnAnswerThatIsNone has programs answer what no client may take for an answer, or take two ways.
func TestAnAnswerThatIsNone(t *testing.T) {
	hints := strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", maxInformational)
	for name, c := range map[string]struct {
		text string
		good bool
	}{
		"an answer":                         {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true},
		"as many early hints as may be":     {hints[:len(hints)/maxInformational*(maxInformational-1)] + "HTTP/1.1 204 No Content\r\n\r\n", true},
		"more early hints than may be":      {hints + "HTTP/1.1 204 No Content\r\n\r\n", false},
		"two lengths":                       {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", false},
		"a length with a sign":              {"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na", false},
		"a negative length":                 {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\na", false},
		"two encodings":                     {"HTTP/1.1 200 OK\r\n" + strings.Repeat("Transfer-Encoding: chunked\r\n", 2) +
			"\r\n0\r\n\r\n", false},
		"an encoding that is not known":     {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", false},
		"a head that ends":                  {"HTTP/1.1 200 OK\r\nContent-Le", false},
		"another protocol":                  {"SSH-2.0-OpenSSH\r\n", false},
		"headers of more than may be":       {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", MaxAnswerHead) + "\r\n\r\n", false},
		"headers of nearly as much":         {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", MaxAnswerHead-100) + "\r\n\r\n", true},
		"no status that can be passed on":   {"HTTP/1.1 99 Low\r\n\r\n", false},
		"a status beyond":                   {"HTTP/1.1 1000 High\r\n\r\n", false},
		"a length beyond what may be said":  {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", false},
		"a head that has only carriage one": {"HTTP/1.1 200 OK\rX: 1\r\r", false},
	} {
		answer, err := answered(t, func(conn net.Conn) { _, _ = io.WriteString(conn, c.text) })
		if c.good != (err == nil) || err != nil && fault.CodeOf(err) != errTalk.Code {
			t.Errorf("%s: %v, %v", name, answer, err)
		}
	}
}

// TestBoundsOfBodies reads bodies of as many bytes as may be, and of one more.
func TestBoundsOfBodies(t *testing.T) {
	const most = 10
	for n := most - 1; n <= most+1; n++ {
		text := strings.Repeat("x", n)
		in := &limited{Reader: strings.NewReader(text), left: most}
		if got, err := io.ReadAll(in); n <= most && (err != nil || string(got) != text) || n > most && (!errors.Is(err, errTall) ||
			!in.tooLong.Load()) {
			t.Errorf("a request of %d bytes: %q, %v", n, got, err)
		}
		out := &headed{r: strings.NewReader(text), left: most}
		if got, err := io.ReadAll(out); n <= most && (err != nil || string(got) != text) || n > most && !errors.Is(err, errTalk) {
			t.Errorf("an answer of %d bytes: %q, %v", n, got, err)
		}
	}
}

// TestLocations holds that only an address of the program's own is turned into one of the preview's.
func TestLocations(t *testing.T) {
	below := place{kind: byPath, prefix: "/preview/secret"}
	for from, want := range map[string]string{
		"/a?b=1":                     "/preview/secret/a?b=1",
		"http://localhost:8080/a":    "/preview/secret/a",
		"http://127.0.0.1:8080/a#b":  "/preview/secret/a#b",
		"http://0.0.0.0:8080":        "/preview/secret/",
		"http://localhost:8081/a":    "http://localhost:8081/a",
		"http://localhost/a":         "http://localhost/a",
		"https://example.com:8080/a": "https://example.com:8080/a",
		"//example.com/a":            "//example.com/a",
		"a/b":                        "a/b",
		"http://[::1]:8080/a":        "/preview/secret/a",
		"http://u:p@localhost:8080/": "/preview/secret/",
		"/\\example.com":             "/preview/secret/%5Cexample.com",
	} {
		if got := below.location(from, 8080); got != want {
			t.Errorf("%s: got %s, want %s", from, got, want)
		}
	}
	host := place{kind: byHost, host: "8080-spc-x.localhost"}
	if got := host.location("http://localhost:8080//example.com/", 8080); got != "/example.com/" {
		t.Errorf("a path that another host could be read from: %s", got)
	}
}
