package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// halfClosed sends a request, closes the sending end of the connection, and reads the answer.
func (d *daemon) halfClosed(t *testing.T, method, path, body string) (int, []byte) {
	t.Helper()
	host := strings.TrimPrefix(d.address, "http://")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn,
		"%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, path, host, d.keys[""], len(body), body)
	if err == nil {
		err = conn.(*net.TCPConn).CloseWrite()
	}
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, raw
}

// TestAClientThatClosesItsEndIsAnswered sends requests of every kind by clients that close their end as soon as they have sent them.
func TestAClientThatClosesItsEndIsAnswered(t *testing.T) {
	d := startDaemon(t)
	sp := d.must(t, "POST", "/v1/spaces", `{"best_effort":true}`, "id")
	for n := range 20 {
		for _, c := range []struct{ method, path, body string }{
			{"GET", "/v1/spaces", ""}, {"GET", "/v1/top", ""}, {"GET", "/v1/approvals", ""}, {"GET", "/v1/events", ""},
			{"PATCH", "/v1/spaces/" + sp, fmt.Sprintf(`{"description":"%d"}`, n)},
		} {
			if status, raw := d.halfClosed(t, c.method, c.path, c.body); status != http.StatusOK {
				t.Fatalf("%s %s: %d %s", c.method, c.path, status, raw)
			}
		}
	}
	// A run goes on. A caller who closed their side gets the status of the run at once.
	status, raw := d.halfClosed(t, "POST", "/v1/spaces/"+sp+"/runs",
		`{"protocolVersion":"1.0","operations":[{"type":"shell","command":"sleep 600"}]}`)
	var answer struct{ RunID, Status string }
	if err := json.Unmarshal(raw, &answer); err != nil || status != http.StatusAccepted || answer.Status != "running" {
		t.Errorf("a run: %d %s %v", status, raw, err)
	}
}

// TestTheDoctorLooksOnce sends many requests at once, and one more. The doctor looks once.
func TestTheDoctorLooksOnce(t *testing.T) {
	d := startDaemon(t)
	var asking sync.WaitGroup
	said := make(chan string, 9)
	ask := func() {
		_, raw := d.ask(t, "", "GET", "/v1/doctor", "")
		said <- string(raw)
	}
	for range cap(said) - 1 {
		asking.Go(ask)
	}
	asking.Wait()
	ask()
	close(said)
	want := <-said
	if !strings.Contains(want, `"start_ns":`) || strings.Contains(want, `"start_ns":0`) {
		t.Fatalf("he says %s", want)
	}
	for got := range said {
		if got != want {
			t.Errorf("he looked again: %s, then %s", want, got)
		}
	}
}
