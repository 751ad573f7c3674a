package wires

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/fault"
)

// asking is a server whose permissions are decided by a function. A request may take so long to be sent; 0 means as long as it takes.
func asking(t *testing.T, most time.Duration, permit Permit) *httptest.Server {
	t.Helper()
	s := New((&oracle{}).ask, nil)
	s.Offer(permit)
	served := httptest.NewUnstartedServer(s)
	served.Config.ReadTimeout = most
	served.Start()
	t.Cleanup(served.Close)
	return served
}

// TestPermissions holds what a question is, and how it is answered.
func TestPermissions(t *testing.T) {
	s := asking(t, 0, func(_ context.Context, p Permission) (Verdict, error) {
		switch p.Tool {
		case "Read":
			return Verdict{Allow: true}, nil
		case "broken":
			return Verdict{Allow: true}, fault.New(fault.Conflict, "run_not_running", "the run has ended")
		}
		return Verdict{Reason: p.ID + ": no " + string(p.Input)}, nil
	})
	long := strings.Repeat("x", maxIDBytes)
	sized := func(bytes int) string {
		const empty = `{"id":"a","tool":"Read","input":{"x":""}}`
		return strings.Replace(empty, `""`, `"`+strings.Repeat("x", bytes-len(empty))+`"`, 1)
	}
	for name, c := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"allowed":         {`{"id":"a","tool":"Read","input":{}}`, 200, `{"allow":true}`},
		"denied":          {`{"id":"a","tool":"Bash","input":{"x":1}}`, 200, `{"allow":false,"reason":"a: no {\"x\":1}"}`},
		"an error":        {`{"id":"a","tool":"broken","input":{}}`, 409, "the run has ended"},
		"no JSON":         {`{`, 400, "a question is an object"},
		"two":             {`{"id":"a","tool":"Read","input":{}} {}`, 400, "more than one"},
		"an unknown part": {`{"id":"a","tool":"Read","input":{},"allow":true}`, 400, "unknown field"},
		"no id":           {`{"tool":"Read","input":{}}`, 400, "id is the name"},
		"the longest id":  {`{"id":"` + long + `","tool":"Read","input":{}}`, 200, `"allow":true`},
		"a longer id":     {`{"id":"x` + long + `","tool":"Read","input":{}}`, 400, "id is the name"},
		"no input":        {`{"id":"a","tool":"Read"}`, 400, "input is the input"},
		"a list":          {`{"id":"a","tool":"Read","input":[]}`, 400, "input is the input"},
		"the longest":     {sized(MaxBody), 200, `"allow":true`},
		"a longer one":    {sized(MaxBody + 1), 413, "more than"},
	} {
		resp, got := post(t, s, PermissionsPath, c.body)
		if resp.StatusCode != c.status || !strings.Contains(got, c.want) || c.status != 200 && strings.Contains(got, `"allow"`) {
			t.Errorf("%s: %d %.300s", name, resp.StatusCode, got)
		}
	}
	_, without := serve(t)
	if resp, _ := post(t, without, PermissionsPath, `{"id":"a","tool":"Read","input":{}}`); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a server that offers none: %d", resp.StatusCode)
	}
}

// TestAPermissionWaits holds a question that waits longer than a request may take, how many wait, and that one whose program has gone ends.
func TestAPermissionWaits(t *testing.T) {
	began, answer, gone := make(chan struct{}, MaxPermissions+1), make(chan struct{}), make(chan struct{}, MaxPermissions)
	s := asking(t, 100*time.Millisecond, func(ctx context.Context, _ Permission) (Verdict, error) {
		began <- struct{}{}
		select {
		case <-answer:
			return Verdict{Allow: true}, nil
		case <-ctx.Done():
			gone <- struct{}{}
			return Verdict{}, ctx.Err()
		}
	})
	const body = `{"id":"a","tool":"Read","input":{}}`
	answers := make(chan string, MaxPermissions)
	for range MaxPermissions {
		go func() {
			resp, err := http.Post(s.URL+PermissionsPath, "application/json", strings.NewReader(body))
			if err != nil {
				answers <- err.Error()
				return
			}
			_ = resp.Body.Close()
			answers <- resp.Status
		}()
		<-began
	}
	if resp, got := post(t, s, PermissionsPath, body); resp.StatusCode != 429 || resp.Header.Get("X-Should-Retry") != "true" {
		t.Errorf("one more: %d %s", resp.StatusCode, got)
	}
	select {
	case <-gone:
		t.Error("a question ended with the time to send it")
	case <-time.After(5 * s.Config.ReadTimeout): // the real clock of the connection
	}
	close(answer)
	for range MaxPermissions {
		if got := <-answers; got != "200 OK" {
			t.Errorf("got %s", got)
		}
	}
}

// TestAPermissionOfAProgramThatHasGone ends with the connection.
func TestAPermissionOfAProgramThatHasGone(t *testing.T) {
	began, gone := make(chan struct{}), make(chan struct{})
	s := asking(t, 0, func(ctx context.Context, _ Permission) (Verdict, error) {
		close(began)
		<-ctx.Done()
		close(gone)
		return Verdict{Allow: true}, nil
	})
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"id":"a","tool":"Read","input":{}}`
	_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", PermissionsPath, len(body), body)
	if err != nil {
		t.Fatal(err)
	}
	<-began
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	<-gone
}
