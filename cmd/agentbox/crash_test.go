package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// kills returns how often the daemon is killed: 50 times, or as often as AGENTBOX_KILLS says.
func kills(t *testing.T) int {
	t.Helper()
	asked := os.Getenv("AGENTBOX_KILLS")
	if asked == "" {
		return 50
	}
	n, err := strconv.Atoi(asked)
	if err != nil || n < 1 {
		t.Fatalf("AGENTBOX_KILLS is %q, and is to be a number of kills", asked)
	}
	return n
}

// TestTheDaemonIsKilledAtRandomMoments runs operations against the real daemon and kills it with SIGKILL, again and again. Nothing that was
// acknowledged is lost, no operation runs twice, each that was interrupted has exactly one result and asks, no process of a space is left,
// and the log verifies each time. It speaks plain HTTP, as a stranger's client would.
func TestTheDaemonIsKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}, chance: rand.New(rand.NewPCG(1,
		2))}
	c.start()
	c.space = c.post("/v1/spaces", `{"name":"crash","runtime":"heavy","ttl_seconds":604800}`)["id"].(string)
	c.ledger = "ledger-" + c.space
	rounds := kills(t)
	for round := range rounds {
		c.round = round
		stop := c.work(3)
		select {
		case <-time.After(time.Duration(c.chance.IntN(400)) * time.Millisecond): // the moment of the kill
		case <-t.Context().Done():
		}
		c.kill()
		stop()
		c.nothingIsLeft()
		c.verify()
		c.start()
		c.answer()
		if done := round + 1; done%50 == 0 {
			t.Logf("%d of %d kills, %d runs acknowledged", done, rounds, len(c.runs))
		}
	}
	c.settle()
	c.everyOperationHasOneResult()
	c.end()
	c.verify()
	t.Logf("%d kills, %d runs and %d sweeps acknowledged, %d operations interrupted", rounds, len(c.runs), c.sweeps, c.unknown)
	if rounds > 5 && c.sweeps == 0 {
		t.Error("no sweep came to its end")
	}
}

// victim is the test's view of the daemon.
type victim struct {
	t       *testing.T
	bin     string
	dir     string
	flags   []string // of the daemon, beyond those of every victim
	space   string
	ledger  string // the file into which the commands write what they do; no other test has one of that name
	round   int
	chance  *rand.Rand
	daemon  *exec.Cmd
	output  bytes.Buffer
	url     string
	key     string
	unknown int

	mu     sync.Mutex
	runs   []string          // acknowledged
	seen   map[string]string // results that a client has seen, by run and operation
	sweeps int               // acknowledged
}

// start starts the daemon and waits until it is ready.
func (c *victim) start() {
	c.t.Helper()
	_ = os.Remove(filepath.Join(c.dir, "daemon.json"))
	c.output.Reset()
	c.daemon = exec.Command(c.bin, append([]string{"up", "--data", c.dir, "--listen", "127.0.0.1:0", "--keep-snapshots", "3"}, c.flags...)...)
	c.daemon.Stdout, c.daemon.Stderr = &c.output, &c.output
	if err := startBound(c.daemon); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = c.daemon.Process.Kill() })
	alive(c.t, c.daemon.Process.Pid, "the daemon to be ready", c.ready)
}

// ready reports whether the daemon answers.
func (c *victim) ready() bool {
	raw, err := os.ReadFile(filepath.Join(c.dir, "daemon.json"))
	var state struct{ Addr string }
	if err != nil || json.Unmarshal(raw, &state) != nil {
		return false
	}
	key, err := os.ReadFile(filepath.Join(c.dir, "owner.key"))
	if err != nil {
		return false
	}
	c.url, c.key = "http://"+state.Addr, strings.TrimSpace(string(key))
	resp, err := http.Get(c.url + "/readyz")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == 200
}

func (c *victim) kill() {
	_ = c.daemon.Process.Kill()
	_ = c.daemon.Wait()
}

// end stops the daemon as a person does.
func (c *victim) end() {
	c.t.Helper()
	_ = c.daemon.Process.Signal(syscall.SIGTERM)
	if err := c.daemon.Wait(); err != nil {
		c.t.Errorf("the daemon ended with %v\n%s", err, c.output.String())
	}
}

// alive polls until done, as long as a child of this process lives: how long it has to do something depends on the machine.
func alive(t *testing.T, pid int, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ; !done(); <-tick.C {
		var ended unix.Siginfo
		if err := unix.Waitid(unix.P_PID, pid, &ended, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil || ended.Signo != 0 {
			t.Fatalf("it ended while waiting for %s (%v)", what, err)
		}
	}
}

// within polls until done, for what another process does in its own time.
func within(t *testing.T, d time.Duration, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(d); !done(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", d, what)
		}
	}
}

// call asks the API, later again where the rate is used up; ok is false where the daemon died under it.
func (c *victim) call(method, path, body string, header ...string) (int, map[string]any, bool) {
	for {
		status, answer, ok := c.once(method, path, body, header...)
		if status != http.StatusTooManyRequests || answer["error"] != "rate_limited" {
			return status, answer, ok
		}
		<-time.After(100 * time.Millisecond)
	}
}

func (c *victim) once(method, path, body string, header ...string) (int, map[string]any, bool) {
	req, err := http.NewRequestWithContext(context.Background(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Error(err)
		return 0, nil, false
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, false
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, false
	}
	answer := map[string]any{}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return 0, nil, false
	}
	return resp.StatusCode, answer, true
}

func (c *victim) post(path, body string) map[string]any {
	c.t.Helper()
	status, answer, ok := c.call("POST", path, body)
	if !ok || status >= 300 {
		c.t.Fatalf("POST %s: %d %v\n%s", path, status, answer, c.output.String())
	}
	return answer
}

// work sends runs from n clients until the daemon dies, and returns a function that waits for the clients.
func (c *victim) work(n int) (wait func()) {
	var clients sync.WaitGroup
	for client := range n {
		clients.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("r%d-c%d-%d", c.round, client, i)
				if !c.send(name) {
					return
				}
			}
		})
	}
	clients.Go(func() {
		for c.sweep() {
		}
	})
	return clients.Wait
}

// sweep frees what nothing names, while the runs go on.
func (c *victim) sweep() bool {
	status, answer, ok := c.call("POST", "/v1/content/sweep", "")
	if !ok {
		return false
	}
	if status == http.StatusOK {
		c.mu.Lock()
		c.sweeps++
		c.mu.Unlock()
	} else if status != http.StatusTooManyRequests && status != http.StatusConflict {
		c.t.Errorf("sweep: %d %v", status, answer)
		return false
	}
	select {
	case <-time.After(20 * time.Millisecond): // the runs are to come to something too
	case <-c.t.Context().Done():
	}
	return true
}

// send asks for one run whose commands write what they do into a ledger, and looks at it once.
func (c *victim) send(name string) bool {
	ops := []map[string]any{
		{"type": "message", "id": "say", "content": name},
		{"type": "createFile", "id": "make", "path": "f-" + name, "content": name},
		{"type": "shell", "id": "one", "command": "echo " + name + ".one >> " + c.ledger + "; sleep 0.02; echo " + name + ".one.end >> " +
			c.ledger},
		{"type": "editFile", "id": "edit", "path": "f-" + name, "edits": []map[string]any{{"oldContent": name, "newContent": "edited"}}},
		{"type": "shell", "id": "two", "command": "echo " + name + ".two >> " + c.ledger},
		{"type": "deleteFile", "id": "drop", "path": "f-" + name},
	}
	body, _ := json.Marshal(map[string]any{"protocolVersion": "1.0", "operations": ops, "wait": 0, "title": name})
	status, answer, ok := c.call("POST", "/v1/spaces/"+c.space+"/runs", string(body), "Idempotency-Key", name)
	if !ok {
		return false
	}
	if status == http.StatusTooManyRequests || status == http.StatusConflict {
		return true
	}
	if status >= 300 {
		c.t.Errorf("run %s: %d %v", name, status, answer)
		return false
	}
	run := answer["runId"].(string)
	c.mu.Lock()
	c.runs = append(c.runs, run)
	c.mu.Unlock()
	for ended := false; !ended; { // and watch it, so that results are acknowledged too
		status, shown, ok := c.call("GET", "/v1/runs/"+run, "")
		if !ok {
			return false
		}
		if status != 200 {
			c.t.Errorf("run %s: %d %v", name, status, shown)
			return false
		}
		c.mu.Lock()
		c.remember(run, shown["result"].(map[string]any))
		c.mu.Unlock()
		ended = shown["ended_at"] != nil || shown["status"] == "awaiting_approval"
	}
	return true
}

// remember keeps the results that were acknowledged; one that was seen before must not change.
func (c *victim) remember(run string, message map[string]any) {
	for _, raw := range message["events"].([]any) {
		e := raw.(map[string]any)
		if e["type"] == "approvalRequired" {
			continue
		}
		key := run + " " + fmt.Sprint(e["operationId"])
		text, _ := json.Marshal(e)
		if before, ok := c.seen[key]; ok && before != string(text) {
			c.t.Errorf("%s: a result changed\nbefore %s\nnow    %s", key, before, text)
		}
		c.seen[key] = string(text)
	}
}

// nothingIsLeft finds no process of a space on the host.
func (c *victim) nothingIsLeft() {
	c.t.Helper()
	within(c.t, 10*time.Second, "every process of the space to end", func() bool { return len(c.orphans()) == 0 })
}

// orphans are the processes of this test's spaces: those in a control group of its daemon, where it can make some, and those whose command
// line names its ledger. Other daemons may run on the host.
func (c *victim) orphans() []string {
	found := []string{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		groups, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cgroup"))
		if err != nil {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if bytes.Contains(groups, []byte(c.space)) || bytes.Contains(line, []byte(c.ledger)) {
			found = append(found, e.Name()+" "+string(line))
		}
	}
	return found
}

// verify checks the log offline, with nothing but the data directory.
func (c *victim) verify() {
	c.t.Helper()
	out, err := exec.Command(c.bin, "audit", "verify", "--data", c.dir, "--json").CombinedOutput()
	if err != nil {
		c.t.Fatalf("round %d: audit verify: %v\n%s", c.round, err, out)
	}
}

// answer lets the runs go on that ask after an interrupted operation.
func (c *victim) answer() {
	c.t.Helper()
	for _, a := range c.list("/v1/approvals?status=pending&limit=100", "approvals") {
		if a["action"] != "run.continue" {
			c.t.Fatalf("something else asks: %v", a)
		}
		c.post(fmt.Sprintf("/v1/approvals/%s/decide", a["approval_id"]), `{"decision":"approve"}`)
	}
}

// settle lets every interrupted run go on and waits until all have ended.
func (c *victim) settle() {
	c.t.Helper()
	within(c.t, 5*time.Minute, "every run to end", func() bool {
		c.answer()
		for _, status := range []string{"queued", "running", "awaiting_approval"} {
			if len(c.list("/v1/runs?limit=1&status="+status, "runs")) > 0 {
				return false
			}
		}
		return true
	})
}

func (c *victim) list(path, field string) []map[string]any {
	c.t.Helper()
	status, answer, ok := c.call("GET", path, "")
	if !ok || status != 200 {
		c.t.Fatalf("GET %s: %d %v", path, status, answer)
	}
	items := []map[string]any{}
	for _, raw := range answer[field].([]any) {
		items = append(items, raw.(map[string]any))
	}
	return items
}

// everyOperationHasOneResult compares what the clients saw, what the log says and what the commands did.
func (c *victim) everyOperationHasOneResult() {
	c.t.Helper()
	done, names := map[string]map[string]any{}, map[string]string{}
	for _, run := range c.runs {
		status, answer, ok := c.call("GET", "/v1/runs/"+run, "")
		if !ok || status != 200 {
			c.t.Fatalf("run %s was acknowledged and is %d %v", run, status, answer)
		}
		names[run] = answer["title"].(string)
		message := answer["result"].(map[string]any)
		if message["status"] != "completed" || len(message["events"].([]any)) != 6 {
			c.t.Errorf("run %s is %v with %d results", run, message["status"], len(message["events"].([]any)))
		}
		c.remember(run, message)
		for _, raw := range message["events"].([]any) {
			e := raw.(map[string]any)
			done[names[run]+"."+fmt.Sprint(e["operationId"])] = e
			if e["type"] == "unknown" {
				c.unknown++
			}
		}
	}
	c.resultsInTheLog()
	c.doings(done)
}

// resultsInTheLog counts the result events of each operation.
func (c *victim) resultsInTheLog() {
	c.t.Helper()
	results := map[string]int{}
	for from := 1.0; ; {
		status, answer, ok := c.call("GET", fmt.Sprintf("/v1/events?limit=200&from_seq=%d&event_types=tool.succeeded,tool.failed,tool.unknown",
			int(from)), "")
		if !ok || status != 200 {
			c.t.Fatalf("events: %d %v", status, answer)
		}
		for _, raw := range answer["events"].([]any) {
			e := raw.(map[string]any)
			results[fmt.Sprint(e["run_id"], " ", e["data"].(map[string]any)["operation_id"])]++
		}
		if len(answer["events"].([]any)) == 0 {
			break
		}
		from = answer["next_from_seq"].(float64)
	}
	for op, n := range results {
		if n != 1 {
			c.t.Errorf("%s has %d result events", op, n)
		}
	}
	if len(results) < 6*len(c.runs) {
		c.t.Errorf("%d results for %d acknowledged runs of 6 operations", len(results), len(c.runs))
	}
}

// doings checks what the commands wrote: what succeeded was done once, and nothing was done twice.
func (c *victim) doings(done map[string]map[string]any) {
	c.t.Helper()
	raw, err := os.ReadFile(filepath.Join(c.dir, "spaces", c.space, "files", c.ledger))
	if err != nil {
		c.t.Fatal(err)
	}
	lines := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		lines[strings.TrimSpace(line)]++
	}
	for line, n := range lines {
		if n != 1 {
			c.t.Errorf("%s was done %d times", line, n)
		}
	}
	for name, e := range done {
		if e["type"] == "shell" && e["success"] == true && lines[name] != 1 {
			c.t.Errorf("%s succeeded and was done %d times", name, lines[name])
		}
	}
}
