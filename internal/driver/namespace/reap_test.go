//go:build linux

package namespace

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
)

// TestReapSparesTheDaemon empties a group of which a single thread of this process is a member, as it is while a space is started by the
// daemon itself. Version 1 of control groups then lists the whole process.
func TestReapSparesTheDaemon(t *testing.T) {
	tier := openTier(t)
	name := tier.groupName(id.Space("spc_0000000000000000000000BUSY"))
	if os.Geteuid() != 0 || len(tier.groups.v1) == 0 {
		t.Log("left out: only root on a host with control groups of version 1 can put a thread into a group")
		return
	}
	g, failed := tier.groups.create(name, space.DefaultLimits())
	if len(failed) != 0 {
		t.Fatal(failed)
	}
	asleep := exec.Command("sleep", "4245")
	if err := asleep.Start(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range g.dirs() {
		if err := writeFile(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(asleep.Process.Pid)); err != nil {
			t.Fatal(err)
		}
	}
	entered, leave, left := make(chan error), make(chan struct{}), make(chan error)
	go func() {
		runtime.LockOSThread()
		var all error
		for _, e := range g.entries() {
			all = errors.Join(all, writeFile(filepath.Join(e.dir, "tasks"), "0"))
		}
		entered <- all
		<-leave
		for _, e := range g.entries() {
			all = errors.Join(all, writeFile(filepath.Join(e.home, "tasks"), "0"))
		}
		if all == nil {
			runtime.UnlockOSThread() // it is back; else it ends with the goroutine
		}
		left <- all
	}()
	if err := <-entered; err != nil {
		t.Fatal(err)
	}
	for _, dir := range g.dirs() {
		procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil || !slices.Contains(strings.Fields(string(procs)), strconv.Itoa(os.Getpid())) {
			t.Fatalf("%s: got %q, %v, want this process among them: the test would prove nothing", dir, procs, err)
		}
	}
	reaped := make(chan error, 1)
	go func() { reaped <- tier.Reap(t.Context(), nil) }()
	if err := asleep.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("a process of the group: got %v, want it killed", err)
	}
	close(leave)
	if err := errors.Join(<-left, <-reaped); err != nil {
		t.Error(err)
	}
	if groups := tier.leftGroups(); len(groups) != 0 {
		t.Errorf("control groups left: %q", groups)
	}
}

// TestKillIn signals nobody who is not in the group, whatever a list said.
func TestKillIn(t *testing.T) {
	asleep := exec.Command("sleep", "4246")
	if err := asleep.Start(); err != nil {
		t.Fatal(err)
	}
	killIn("/nowhere/agentbox-of-nobody", asleep.Process.Pid)
	if err := asleep.Process.Signal(unix.Signal(0)); err != nil {
		t.Fatal(err)
	}
	if err := asleep.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = asleep.Wait()
	for _, c := range []struct {
		groups string
		in     bool
	}{
		{"4:memory:/process/agentbox-x-1\n0::/\n", true}, {"0::/agentbox-x-1\n", true}, {"0::/agentbox-x-1/below\n", true},
		{"0::/agentbox-x-12\n", false}, {"0::/\n", false}, {"", false}, {"agentbox-x-1", false},
	} {
		if got := inGroup(c.groups, "agentbox-x-1"); got != c.in {
			t.Errorf("%q: got %v, want %v", c.groups, got, c.in)
		}
	}
}
