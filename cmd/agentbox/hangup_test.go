package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestADaemonWhoseTerminalGoesAwayStops sends the signal of a terminal that is closed. The daemon stops as after Ctrl-C. Each line of its
// log is JSON if the operator wants that, also the one about the stop and the one about a start that is refused.
func TestADaemonWhoseTerminalGoesAwayStops(t *testing.T) {
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}, flags: []string{"--log-format",
		"json"}}
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP) // else the daemon would ignore it where this test is to outlive its own terminal
	t.Cleanup(func() { signal.Stop(caught) })
	c.start()
	var refused bytes.Buffer
	second := exec.Command("agentbox", "up", "--data", c.dir, "--listen", "127.0.0.1:0", "--log-format", "json")
	second.Stderr = &refused
	if err := second.Run(); err == nil || second.ProcessState.ExitCode() != 3 {
		t.Errorf("a second daemon: %v\n%s", err, refused.String())
	}
	if err := c.daemon.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = c.daemon.Process.Kill() })
	defer late.Stop()
	if err := c.daemon.Wait(); err != nil {
		t.Errorf("the daemon ended with %v", err)
	}
	_, log, _ := strings.Cut(c.output.String(), "end the daemon with Ctrl-C\n") // standard output is in front of it
	for text, want := range map[string]string{log: `"code":"daemon_stops"`, refused.String(): `"error":"data_in_use"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %q", want, text)
		}
		for line := range strings.Lines(text) {
			if !json.Valid([]byte(line)) {
				t.Errorf("a line is no JSON: %q", line)
			}
		}
	}
}

// TestADaemonThatIsToOutliveItsTerminalDoes starts the daemon as nohup does: the signal of a terminal that is closed is ignored.
func TestADaemonThatIsToOutliveItsTerminalDoes(t *testing.T) {
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}}
	c.daemon = exec.Command("sh", "-c", `trap "" HUP; exec agentbox up --listen 127.0.0.1:0 --data "$1"`, "sh", c.dir)
	c.daemon.Stdout, c.daemon.Stderr = &c.output, &c.output
	if err := startBound(c.daemon); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.daemon.Process.Kill() })
	alive(t, c.daemon.Process.Pid, "the daemon to be ready", c.ready)
	if err := c.daemon.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	c.post("/v1/spaces", `{"name":"first","runtime":"nano"}`) // a daemon that stops refuses it
	c.end()
	if n := strings.Count(c.output.String(), "the daemon stops"); n != 1 {
		t.Errorf("it says %d times that it stops, want once: after SIGTERM\n%s", n, c.output.String())
	}
}
