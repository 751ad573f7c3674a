package main_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// told is what a program has said so far.
type told struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *told) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// String returns all of it.
func (s *told) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// heldOnce is a vendor whose second answer stops in its middle, the first time that it is asked for. It closes held when it has come so
// far.
func heldOnce(vendor http.Handler, held chan struct{}) http.Handler {
	var asked atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) != 2 {
			vendor.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, word := range []string{"The ", "file "} {
			fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant",`+
				`"content":%q},"finish_reason":null}]}`+"\n\n", word)
		}
		_ = http.NewResponseController(w).Flush()
		close(held)
		<-r.Context().Done()
	})
}

// TestAMessageToADaemonThatIsAwayIsSentOnce kills the daemon while a person at a terminal types. The chat says once that the daemon is
// away, and keeps the message: it is at the prompt again after Ctrl-C, and it is sent when the daemon is back, on another port.
func TestAMessageToADaemonThatIsAwayIsSentOnce(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AGENTBOX_CACHE", cache())
	t.Setenv("NO_COLOR", "1")
	vendor := newVendor([][]vendorItem{{{Say: "First: $LAST"}}, {{Say: "Second: $LAST"}}}, "Last: $LAST")
	t.Cleanup(vendor.Close)
	c := worker(t, vendor.URL)
	x := openTerminal(t, 120, 40, "chat", "--data", c.dir)
	x.sees("worker> ")
	x.press("a task\r")
	x.sees("First: a task")
	x.sees("worker> ")
	c.kill()
	const (
		away  = "(the daemon has gone away; your message is sent when it is back: agentbox up)"
		again = "(what you typed is at the prompt again"
	)
	x.press("another task\r")
	x.sees(away)
	x.press("\x03")
	x.sees(again)
	x.sees("another task")
	x.press("\r")
	c.start()
	x.sees("(the daemon is back)")
	x.sees("Second: another task")
	x.sees("worker> ")
	x.press("\x04")
	x.sees("go on: agentbox chat --resume run_")
	x.left()
}

// TestAChatOutlivesTheDaemon kills the daemon with SIGKILL while an agent answers, after a tool call. The chat says that it has lost the
// daemon, waits, and goes on with the daemon that comes on another port. Nothing is shown or done twice, and the next task works.
func TestAChatOutlivesTheDaemon(t *testing.T) {
	t.Parallel()
	vendor := newVendor([][]vendorItem{
		{{Say: "I write."}, {Tool: "shell", Arguments: []byte(`{"command": "echo once >> a.txt; cat a.txt"}`)}},
		{{Say: "The file has one line."}},
		{{Say: "Second: $LAST"}},
	}, "Last: $LAST")
	held := make(chan struct{})
	vendor.Config.Handler = heldOnce(vendor.Config.Handler, held)
	t.Cleanup(func() {
		vendor.CloseClientConnections()
		vendor.Close()
	})
	c := worker(t, vendor.URL, "--claim-time", "1s")
	chat := exec.Command("agentbox", "chat", "--data", c.dir)
	in, err := chat.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs told
	chat.Stdout, chat.Stderr = &out, &errs
	if err := startBound(chat); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = chat.Process.Kill() })
	if _, err := io.WriteString(in, "first task\n"); err != nil {
		t.Fatal(err)
	}
	<-held // a piece of the answer has come
	before := c.url
	c.kill()
	within(t, time.Minute, "the chat to miss the daemon", func() bool { return strings.Contains(errs.String(), "the daemon has gone away") })
	c.start()
	if c.url == before {
		t.Logf("the daemon is back at the same address %s", before)
	}
	within(t, time.Minute, "the answer", func() bool { return strings.Contains(out.String(), "one line.") })
	if _, err := io.WriteString(in, "second task\n"); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := chat.Wait(); err != nil {
		t.Errorf("the chat ended with %v", err)
	}
	if got, want := out.String(), "I write.\nThe file has one line.\nSecond: second task\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for text, times := range map[string]int{"▸ shell": 1, "the daemon has gone away": 1, "the daemon is back": 1,
		"go on: agentbox chat": 1} {
		if n := strings.Count(errs.String(), text); n != times {
			t.Errorf("it said %d times %q, want %d:\n%s", n, text, times, errs.String())
		}
	}
}
