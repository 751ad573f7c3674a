package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// claimTime is how long the engines of these tests own a run without being heard of. On a machine that is busy enough an engine loses its
// claim all the same, and claims the run again, so that there may be more attempts than were meant.
const claimTime = 3 * time.Second

// shop is a daemon that leaves runs to engines outside of it, and may run one of them at a time. The operations of an engine in a space
// need no other place.
func shop(t *testing.T) *victim {
	t.Helper()
	// this test asks often, by the key of the engines
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}, flags: []string{"--engine",
		"external", "--claim-time", claimTime.String(), "--rate", "general=1000000"}}
	c.start()
	if status, answer, _ := c.call("PATCH", "/v1/workspaces/ws_dev", `{"max_concurrent_tasks":1}`); status != 200 {
		t.Fatalf("%d %v", status, answer)
	}
	c.space = c.post("/v1/spaces", `{"name":"shop","runtime":"heavy"}`)["id"].(string)
	c.ledger = "ledger-" + c.space
	return c
}

// order asks for a run of commands that each write a line, of which the first waits until it is let go.
func (c *victim) order() string {
	c.t.Helper()
	operations := []string{`{"type":"shell","command":"echo begun >> ` + c.ledger + `; until test -e go; do sleep 0.01; done; echo one >> ` +
		c.ledger + `"}`}
	for _, n := range []string{"two", "three"} {
		operations = append(operations, `{"type":"shell","command":"echo `+n+` >> `+c.ledger+`"}`)
	}
	body := `{"room_id":"room_00000000000000000000000000","title":"work","input":{"protocolVersion":"1.0","space_id":"` + c.space +
		`","operations":[` + strings.Join(operations, ",") + `]}}`
	return c.post("/v1/runs", body)["run_id"].(string)
}

// engine starts an engine of the daemon as a process of its own.
func (c *victim) engine(output *bytes.Buffer, flags ...string) *exec.Cmd {
	c.t.Helper()
	e := exec.Command(c.bin, append([]string{"engine", "--data", c.dir}, flags...)...)
	e.Stdout, e.Stderr = output, output
	if err := startBound(e); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = e.Process.Kill() })
	return e
}

func (c *victim) shown(run string) map[string]any {
	c.t.Helper()
	status, answer, ok := c.call("GET", "/v1/runs/"+run, "")
	if !ok || status != 200 {
		c.t.Fatalf("run %s: %d %v", run, status, answer)
	}
	return answer
}

// tried is how often engines have tried to execute a run.
func (c *victim) tried(run string) int {
	c.t.Helper()
	n, _ := c.shown(run)["attempts"].(float64)
	return int(n)
}

// attempts waits until engines have tried to execute a run so often.
func (c *victim) attempts(run string, n int) {
	c.t.Helper()
	alive(c.t, c.daemon.Process.Pid, fmt.Sprintf("attempt %d", n), func() bool { return c.tried(run) >= n })
}

// lines are what the commands have written.
func (c *victim) lines() []string {
	raw, err := os.ReadFile(filepath.Join(c.dir, "spaces", c.space, "files", c.ledger))
	if err != nil && !os.IsNotExist(err) {
		c.t.Error(err)
	}
	return strings.Fields(string(raw))
}

func (c *victim) letGo() {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, "spaces", c.space, "files", "go"), nil, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// done waits until a run has ended well, and finds each operation done once, by one call of one step.
func (c *victim) done(run string, attempts int) {
	c.t.Helper()
	alive(c.t, c.daemon.Process.Pid, "the run to end, and its evidence", func() bool {
		status, _, _ := c.call("GET", "/v1/runs/"+run+"/evidence", "")
		return status == 200
	})
	doc := c.shown(run)
	if doc["status"] != "succeeded" || c.tried(run) < attempts {
		c.t.Errorf("the run is %v after %v attempts: %v", doc["status"], doc["attempts"], doc)
	}
	if reported, _ := doc["reported"].(map[string]any); reported["recorded_as"] != "permitted" ||
		reported["summary"] != "3 of 3 operations succeeded" {
		c.t.Errorf("it was reported as %v", doc["reported"])
	}
	if got := strings.Join(c.lines(), " "); got != "begun one two three" {
		c.t.Errorf("the commands wrote %q", got)
	}
	steps, calls := c.list("/v1/runs/"+run+"/steps", "steps"), c.list("/v1/toolcalls?run_id="+run, "tool_calls")
	if len(steps) != 3 || len(calls) != 3 {
		c.t.Errorf("%d steps and %d calls", len(steps), len(calls))
	}
	for _, call := range calls {
		if call["status"] != "succeeded" {
			c.t.Errorf("a call is %v", call["status"])
		}
	}
}

// TestAnEngineThatSleepsBeyondItsClaimChangesNothing stops an engine in the middle of an operation until another one has the run, and
// lets it go on when that is done.
func TestAnEngineThatSleepsBeyondItsClaimChangesNothing(t *testing.T) {
	t.Parallel()
	c := shop(t)
	run := c.order()
	var sleeper, worker bytes.Buffer
	first := c.engine(&sleeper, "--once")
	c.attempts(run, 1)
	alive(t, c.daemon.Process.Pid, "the first command", func() bool { return len(c.lines()) == 1 })
	if err := first.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	second := c.engine(&worker)
	c.attempts(run, 2)
	c.letGo()
	c.done(run, 2)
	before := len(c.list("/v1/events?limit=200&run_id="+run, "events"))
	if err := first.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err != nil { // it finds its claim lost, and nothing else to do
		t.Errorf("the engine that slept ended with %v\n%s", err, sleeper.String())
	}
	if !strings.Contains(sleeper.String(), "claim_lost") {
		t.Errorf("the engine that slept said\n%s", sleeper.String())
	}
	if after := len(c.list("/v1/events?limit=200&run_id="+run, "events")); after != before {
		t.Errorf("the engine that slept recorded %d events\n%s", after-before, sleeper.String())
	}
	c.done(run, 2)
	if err := second.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("the other engine ended with %v\n%s", err, worker.String())
	}
	attempts := c.list("/v1/runs/"+run+"/attempts", "attempts")
	if n := len(attempts); n < 2 || attempts[0]["release_reason"] != "lease_expired_reclaimed" ||
		attempts[n-1]["release_reason"] != "run_completed" {
		t.Errorf("the attempts are %v", attempts)
	}
	c.end()
	c.verify()
}

// TestAnEngineThatIsKilledLosesNothing kills engines with SIGKILL in the middle of an operation, one after the other.
func TestAnEngineThatIsKilledLosesNothing(t *testing.T) {
	t.Parallel()
	c := shop(t)
	run := c.order()
	const kills = 3
	tries := 0
	for range kills {
		var said bytes.Buffer
		e := c.engine(&said)
		c.attempts(run, tries+1)
		alive(t, c.daemon.Process.Pid, "the first command", func() bool { return len(c.lines()) == 1 })
		if err := e.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = e.Wait()
		tries = c.tried(run)
	}
	var said bytes.Buffer
	last := c.engine(&said)
	c.attempts(run, tries+1)
	c.letGo()
	c.done(run, kills+1)
	if err := last.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := last.Wait(); err != nil {
		t.Errorf("the last engine ended with %v\n%s", err, said.String())
	}
	c.end()
	c.verify()
}
