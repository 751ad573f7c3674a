package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// small mounts a file system of few bytes and returns where.
func small(t *testing.T, size int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", size)); err != nil {
		t.Skipf("this host mounts nothing: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount the small disk: %v", err)
		}
	})
	return dir
}

// strike is a daemon to which something happens, with a space.
func strike(t *testing.T, dir string) *victim {
	t.Helper()
	c := &victim{t: t, bin: "agentbox", dir: dir, seen: map[string]string{}, chance: rand.New(rand.NewPCG(3, 4))}
	c.start()
	c.space = c.post("/v1/spaces", `{"name":"fault","runtime":"heavy","ttl_seconds":3600}`)["id"].(string)
	return c
}

// run asks for a run of one command and waits for its end. It returns the HTTP status, the error code or the type of the result, and
// whether the command succeeded.
func (c *victim) run(command string) (status int, what string, succeeded bool) {
	c.t.Helper()
	type answer struct {
		status int
		body   map[string]any
		ok     bool
	}
	asked := make(chan answer, 1)
	go func() {
		body, _ := json.Marshal(map[string]any{"protocolVersion": "1.0", "operations": []any{map[string]any{"type": "shell", "command": command}},
			"wait": 20})
		status, got, ok := c.once("POST", "/v1/spaces/"+c.space+"/runs", string(body))
		asked <- answer{status, got, ok}
	}()
	select {
	case a := <-asked:
		if !a.ok {
			return 0, "", false
		}
		if a.status >= 400 {
			return a.status, fmt.Sprint(a.body["error"]), false
		}
		events, _ := a.body["events"].([]any)
		if len(events) == 0 {
			return a.status, fmt.Sprint(a.body["status"]), false
		}
		result := events[0].(map[string]any)
		if code, ok := result["reasonCode"]; ok {
			return a.status, fmt.Sprint(code), result["success"] == true
		}
		return a.status, fmt.Sprint(result["type"]), result["success"] == true
	case <-time.After(time.Minute):
		c.t.Fatalf("the daemon hangs\n%s", c.output.String())
		return
	}
}

// A disk fills up under the daemon. The daemon refuses events that it cannot record with a code, nothing hangs, and no acknowledged event
// is lost. With room again the same daemon goes on, and so does the next.
func TestFaultDiskFull(t *testing.T) {
	t.Parallel()
	dir := small(t, 32<<20)
	c := strike(t, filepath.Join(dir, "data"))
	if _, what, ok := c.run("echo before"); !ok {
		t.Fatalf("before the disk is full: %s", what)
	}
	ballast := filepath.Join(dir, "ballast")
	fill(t, ballast)
	succeeded, refused := 0, ""
	for range 200 {
		status, what, ok := c.run("true")
		if ok {
			succeeded++
			continue
		}
		refused = what
		if what == "log_unavailable" || what == "disk_full" || what == "log_write_failed" {
			break
		}
		t.Fatalf("a full disk: %d %s", status, what)
	}
	if refused == "" {
		t.Fatalf("%d runs succeeded on a full disk", succeeded)
	}
	for range 3 { // it stays so, at once
		if _, what, ok := c.run("true"); ok || what != "log_unavailable" && what != "disk_full" {
			t.Errorf("after the disk was full: %s, %v", what, ok)
		}
	}
	if status, _, _ := c.once("GET", "/v1/runs?limit=1", ""); status != 200 {
		t.Errorf("reading answers %d, want 200", status)
	}
	for _, again := range []func(){func() {}, func() { c.kill(); c.verify(); c.start() }} {
		shut := c.untilReadiness(503)
		if !strings.Contains(shut, "MiB of room") && !strings.Contains(shut, "the disk that holds "+c.dir) {
			// the log, or what is signed beside it
			t.Errorf("a daemon whose disk is full says %s", shut)
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		c.untilReadiness(200)
		if _, what, ok := c.run("echo with room"); !ok {
			t.Fatalf("with room again: %s\n%s", what, c.output.String())
		}
		succeeded++
		again()
		fill(t, ballast)
		for range 200 { // until the room that the log has kept is used up
			if _, _, ok := c.run("true"); !ok {
				break
			}
			succeeded++
		}
	}
	c.kill()
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	c.verify()
	c.start()
	if runs := len(c.list("/v1/runs?limit=100&status=succeeded", "runs")); runs < min(succeeded+1, 100) {
		t.Errorf("%d runs are there, %d were acknowledged", runs, succeeded+1)
	}
	if _, what, ok := c.run("echo after"); !ok {
		t.Errorf("with room again: %s", what)
	}
	c.end()
	c.verify()
}

// untilReadiness asks whether the daemon can work until it answers with a status, and returns what it says then. While its log is shut it
// reads files, of which each time is recorded, so that the room that the log has kept is used up.
func (c *victim) untilReadiness(want int) string {
	c.t.Helper()
	for ctx := c.t.Context(); ; {
		status, body, ok := c.once("GET", "/readyz", "")
		if ok && status == want {
			return fmt.Sprint(body)
		}
		if want != 200 {
			c.once("GET", "/v1/spaces/"+c.space+"/files", "")
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			c.t.Fatalf("the daemon stays as it is: %d %v", status, body)
		}
	}
}

// fill writes a file until the disk is full.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 16
		}
	}
}

// A disk that cannot be written is refused at the start, with a word about it, by a daemon that ends.
func TestFaultReadOnlyDisk(t *testing.T) {
	t.Parallel()
	dir := small(t, 32<<20)
	c := strike(t, filepath.Join(dir, "data"))
	c.end()
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(c.bin, "up", "--data", c.dir, "--listen", "127.0.0.1:0").CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("read-only")) {
		t.Errorf("a daemon on a read-only disk: %v\n%s", err, out)
	}
	if strings.Contains(string(out), "goroutine ") {
		t.Errorf("it panics:\n%s", out)
	}
	c.verify() // which writes nothing
}

// starve bounds how many descriptors the daemon may have.
func (c *victim) starve(most *unix.Rlimit) {
	c.t.Helper()
	if err := unix.Prlimit(c.daemon.Process.Pid, unix.RLIMIT_NOFILE, most, nil); err != nil {
		c.t.Fatal(err)
	}
}

// A daemon that has no file descriptor left refuses what needs one, with a code, and goes on when there are some again.
func TestFaultNoFileDescriptors(t *testing.T) {
	t.Parallel()
	c := strike(t, filepath.Join(t.TempDir(), "data"))
	if _, what, ok := c.run("echo before"); !ok {
		t.Fatalf("before: %s", what)
	}
	pid := c.daemon.Process.Pid
	var before unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		t.Fatal(err)
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	c.starve(&unix.Rlimit{Cur: 0, Max: before.Max}) // for as long as each of its loops goes round
	stored := "echo " + strings.Repeat("x", 5_000)  // which is not part of its event, but a file
	for ended := time.After(2 * time.Second); ; {
		if _, what, ok := c.run(stored); ok || what == "internal_error" {
			t.Errorf("without descriptors: %s, %v", what, ok)
		}
		select {
		case <-time.After(50 * time.Millisecond):
			continue
		case <-ended:
		}
		break
	}
	c.starve(&before)
	c.untilReadiness(200)
	refused := 0
	for _, most := range []int{0, 8, len(open) / 2, len(open) - 4, len(open) - 2, len(open), len(open) + 2} {
		left := unix.Rlimit{Cur: uint64(most), Max: before.Max}
		c.starve(&left)
		status, what, ok := c.run("echo during >> during")
		t.Logf("%d descriptors, %d were open: %d %s, %v", most, len(open), status, what, ok)
		if !ok {
			refused++
		}
		if !ok && (what == "" || what == "<nil>") {
			t.Errorf("with %d descriptors the answer is %d without a code", most, status)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
	c.starve(&before)
	if _, what, ok := c.run("echo after"); !ok {
		t.Errorf("with descriptors again: %s\n%s", what, c.output.String())
	}
	c.end()
	c.verify()
}
