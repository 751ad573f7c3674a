package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestThePortThatAnswersTooEarly asks a program that answers before it has the whole request. The answer comes at once, and the connection
// of the client serves the requests behind it or ends.
func TestThePortThatAnswersTooEarly(t *testing.T) {
	p := startPorts(t, "")
	at := "/v1/spaces/" + p.space + "/ports/8080/proxy/hasty"
	head := " HTTP/1.1\r\nHost: " + p.host + "\r\nAuthorization: Bearer " + p.keys[""] + "\r\n"
	dial := func() (net.Conn, *bufio.Reader) {
		conn, err := net.Dial("tcp", p.host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn, bufio.NewReader(conn)
	}
	next := func(r *bufio.Reader) (int, string, error) {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(raw), err
	}
	conn, answers := dial()
	for n := range 100 {
		fmt.Fprint(conn, "GET "+at+head+"\r\n")
		if status, text, err := next(answers); err != nil || status != http.StatusOK || text != "hasty" {
			t.Fatalf("request %d of the connection: %d %s, %v", n, status, text, err)
		}
	}
	for n := range 20 {
		conn, answers = dial()
		fmt.Fprint(conn, "POST "+at+head+"Content-Length: 1000\r\n\r\nthe beginning")
		if n%2 == 0 { // the rest comes while the answer is on its way
			fmt.Fprint(conn, strings.Repeat("x", 1000-len("the beginning")))
		}
		status, text, err := next(answers)
		if err != nil || status != http.StatusOK || text != "hasty" {
			t.Fatalf("with a body: %d %s, %v", status, text, err)
		}
		fmt.Fprint(conn, "GET /v1/spaces/"+p.space+head+"\r\n")
		if status, text, err := next(answers); err == nil && status != http.StatusOK {
			t.Errorf("the request behind it: %d %s", status, text)
		}
	}
}
