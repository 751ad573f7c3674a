//go:build linux

package namespace

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// TestReapSparesVisitors empties a group in which this process has a thread and another process is as a whole.
func TestReapSparesVisitors(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("control groups need root")
	}
	h, err := findHierarchy("/")
	if err != nil {
		t.Fatal(err)
	}
	top, ok := h.v1[pidsController]
	if !ok {
		t.Skip("version 2 takes no single threads")
	}
	dir := filepath.Join(top, fmt.Sprintf("agentbox-visit%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	inside := exec.Command("sleep", "1000")
	if err := inside.Start(); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(filepath.Join(dir, "cgroup.procs"), fmt.Sprint(inside.Process.Pid)); err != nil {
		t.Fatal(err)
	}
	entered, leave, left := make(chan error), make(chan struct{}), make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends
		entered <- writeFile(filepath.Join(dir, "tasks"), "0")
		<-leave
		left <- writeFile(filepath.Join(top, "tasks"), "0")
	}()
	if err := <-entered; err != nil {
		t.Fatal(err)
	}
	killIn(dir, os.Getpid()) // the test lives on
	killIn(dir, inside.Process.Pid)
	if err := inside.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the process of the group: got %v, want killed", err)
	}
	close(leave)
	if err := <-left; err != nil {
		t.Fatal(err)
	}
	if err := emptyGroup(t.Context(), dir); err != nil {
		t.Error(err)
	}
}
