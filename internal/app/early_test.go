package app_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentbox/internal/app"
)

// state is what daemon.json says.
type state struct {
	Addr  string `json:"addr"`
	Phase string `json:"phase"`
}

// TestADaemonAnswersWhileItStarts asks a daemon from the moment on at which it says where it listens until it can work: it answers each
// time, says what it does, and turns nobody away while the server takes over.
func TestADaemonAnswersWhileItStarts(t *testing.T) {
	dir := t.TempDir()
	c := app.Default(dir)
	c.Listen = "127.0.0.1:0"
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	up := make(chan struct{})
	clock := &gated{file: filepath.Join(dir, "daemon.json"), asked: make(chan struct{}), open: make(chan struct{})}
	go func() {
		ended <- app.Up(ctx, c, clock, slog.New(slog.DiscardHandler), func(app.State) { close(up) })
	}()
	<-clock.asked // the daemon has said where it listens, and does not go on
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(addr, path string) (int, string) {
		resp, err := client.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Header.Get("X-Request-Id") == "" || resp.Header.Get("Traceparent") == "" {
			t.Errorf("%s: no request id or trace in %v", path, resp.Header)
		}
		return resp.StatusCode, string(raw)
	}
	read := func() state {
		var s state
		raw, err := os.ReadFile(filepath.Join(dir, "daemon.json"))
		if err != nil || json.Unmarshal(raw, &s) != nil {
			t.Fatalf("daemon.json: %s %v", raw, err)
		}
		return s
	}
	s := read()
	if s.Phase == "" {
		t.Error("a daemon that does not go on says that it can work")
	}
	for path, want := range map[string]struct {
		status int
		says   string
	}{
		"/healthz":   {200, `"status":"starting"`},
		"/readyz":    {503, `"detail":"the daemon `},
		"/v1/spaces": {503, `"error":"starting"`},
	} {
		if status, got := ask(s.Addr, path); status != want.status || !strings.Contains(got, want.says) {
			t.Errorf("%s: %d %s", path, status, got)
		}
	}
	close(clock.open)
	asked := 0
	for status := 0; status != 200; asked++ {
		var got string
		if status, got = ask(s.Addr, "/readyz"); status != 200 && status != 503 {
			t.Fatalf("%d %s", status, got)
		}
	}
	<-up
	if s := read(); s.Phase != "" {
		t.Errorf("the phase of a daemon that works is %q", s.Phase)
	}
	if status, got := ask(s.Addr, "/v1/spaces"); status != 401 {
		t.Errorf("without a key: %d %s", status, got)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	t.Logf("asked %d times", asked)
}

// gated is the machine's clock; the first who asks it for the time once a file is there waits for the test.
type gated struct {
	app.Clock
	file        string
	taken       atomic.Bool
	asked, open chan struct{}
}

func (g *gated) Now() time.Time {
	if _, err := os.Stat(g.file); err == nil && g.taken.CompareAndSwap(false, true) {
		close(g.asked)
		<-g.open
	}
	return time.Now()
}
