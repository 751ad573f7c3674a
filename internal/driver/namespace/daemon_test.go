//go:build linux

package namespace

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/spacetest"
	"agentbox/internal/spaceinit"
	"agentbox/internal/testkit/wall"
)

// daemonRole makes this test's own program play a daemon that is killed. Its value is the folder of a space, the user, and the owner.
const daemonRole = "AGENTBOX_TEST_DAEMON"

// daemon makes a space, starts a command that never ends in it, prints what the command prints and waits.
func daemon() {
	f := strings.Split(os.Getenv(daemonRole), "|")
	uid, _ := strconv.Atoi(f[1])
	fail := func(err error) {
		if err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
	}
	code, err := os.ReadFile(f[3])
	fail(err)
	tier, err := New(Options{Program: code, Root: testRoot(), Owner: f[2], Clock: wall.Clock{}})
	fail(err)
	spec := space.Spec{ID: leftSpace, Dir: f[0], UID: uid, Limits: space.DefaultLimits(), BestEffort: true}
	raw, err := json.Marshal(spec.Limits)
	fail(err)
	ctx := context.Background()
	s, err := tier.Create(ctx, issue(policy.Action{Type: policy.SpaceStart, Workspace: id.DefaultWorkspace, Space: spec.ID, Limits: raw}),
		spec)
	fail(err)
	c := spacetest.Shell(spec.ID, "trap '' TERM HUP; (setsid sleep 4242 &); sleep 4243 & echo up; wait; sleep 4244")
	_, err = s.Exec(ctx, issue(c.Action()), nil, func(_ string, data []byte) error {
		_, err := os.Stdout.Write(data)
		return err
	})
	fail(err)
}

const leftSpace = id.Space("spc_0000000000000000000000DEAD")

// TestDaemonKilled kills a daemon with SIGKILL while a command runs: every process of the space ends with it, and the next daemon finds
// and removes what else is left. So it does when the launcher was killed before.
func TestDaemonKilled(t *testing.T) {
	for _, first := range []string{"", spaceinit.LauncherName} {
		t.Run("after the death of "+cmp.Or(first, "nobody"), func(t *testing.T) { killDaemon(t, first) })
	}
}

// killDaemon kills its process of that name, if any, and then the daemon.
func killDaemon(t *testing.T, first string) {
	dir, uid := place(t)
	file := filepath.Join(t.TempDir(), "init")
	if err := os.WriteFile(file, program, 0o600); err != nil {
		t.Fatal(err)
	}
	owner := fmt.Sprintf("left%d%s", os.Getpid(), strings.ReplaceAll(first, "-", ""))
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d|%s|%s", daemonRole, dir, uid, owner, file))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "up\n" {
		t.Fatalf("the daemon said %q, %v", line, err)
	}
	before := ofSpace(t)
	for n := 0; len(before) < 4 && n < 1_000; n++ { // a program that is just being replaced by another has no command line
		before = ofSpace(t)
	}
	if len(before) < 4 {
		t.Fatalf("before the kill: got %v, want an init, a shell and two programs", before)
	}
	launchers := named(t, spaceinit.LauncherName+"\x00"+owner)
	if len(launchers) != 1 {
		t.Fatalf("got launchers %v, want one", launchers)
	}
	if first != "" {
		pid, err := strconv.Atoi(filepath.Base(launchers[0]))
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	var ended int
	for pid, line := range before {
		if strings.HasPrefix(line, initName) {
			if ended, err = unix.PidfdOpen(pid, 0); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = unix.Close(ended) }()
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	// The init dies of the daemon's death, and the descriptor says when.
	over(t, "the init of the killed daemon", ended)
	if after := ofSpace(t); len(after) != 0 {
		t.Errorf("after the kill: got %v, want none", after)
	}
	for start := time.Now(); len(named(t, spaceinit.LauncherName+"\x00"+owner)) > 0; { // it has been told by now, and ends in its own time
		if time.Since(start) > wall.Patience {
			t.Fatal("the launcher has outlived the daemon")
		}
	}
	tier, err := New(Options{Program: program, Root: testRoot(), Owner: owner, Clock: wall.Clock{}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tier.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := tier.Reap(t.Context(), nil); err != nil {
		t.Errorf("reap: %v", err)
	}
	if groups := tier.leftGroups(); len(groups) != 0 {
		t.Errorf("control groups left: %q", groups)
	}
}

// over waits until the process of a descriptor has ended.
func over(t *testing.T, what string, fd int) {
	t.Helper()
	for start := time.Now(); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 1000)
		switch {
		case n == 1:
			return
		case err != nil && err != unix.EINTR:
			t.Fatal(err)
		case time.Since(start) > wall.Patience:
			t.Fatalf("%s has not ended in %s", what, wall.Patience)
		}
	}
}

// TestReapLeftovers lets a daemon live on beside the next one, as a hung one would: the next one ends its spaces.
func TestReapLeftovers(t *testing.T) {
	first := host(t)
	spec := first.Spec(t)
	s := first.Create(t, spec)
	second, err := New(Options{Program: program, Root: testRoot(), Owner: fmt.Sprintf("test%d", os.Getpid()), Clock: wall.Clock{}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := second.Reap(t.Context(), []id.Space{spec.ID}); err != nil {
		t.Fatal(err)
	}
	if r := first.Exec(t, s, spacetest.Shell(spec.ID, "echo kept")); r.Stdout != "kept\n" {
		t.Errorf("a space that was to be kept: got %+v", r)
	}
	stranger, err := New(Options{Program: program, Root: testRoot(), Owner: "stranger", Clock: wall.Clock{}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stranger.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := stranger.Reap(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if r := first.Exec(t, s, spacetest.Shell(spec.ID, "echo kept")); r.Stdout != "kept\n" {
		t.Errorf("a space of another owner: got %+v", r)
	}
	if err := second.Reap(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if groups := second.leftGroups(); len(groups) != 0 {
		t.Errorf("control groups left: %q", groups)
	}
}

// ofSpace lists the host's processes that belong to the space of the killed daemon, by their command lines.
func ofSpace(t *testing.T) map[int]string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		line := strings.ReplaceAll(string(b), "\x00", " ")
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil && (strings.Contains(line, string(leftSpace)) ||
			strings.Contains(line, "sleep 424")) {
			found[pid] = line
		}
	}
	return found
}
