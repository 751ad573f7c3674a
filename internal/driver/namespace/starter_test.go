//go:build linux

package namespace

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/spacetest"
	"agentbox/internal/spaceinit"
	"agentbox/internal/testkit/wall"
)

// firstRole makes this test's own program give a starter its first thread. Among other tests one of theirs may hold that thread.
const firstRole = "AGENTBOX_TEST_FIRST"

// TestFirstThreadStartsNothing gives a starter the first thread of a process: it must take another one, for the first does not end before
// the process does, and what shall die with it would not.
func TestFirstThreadStartsNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "init")
	if err := os.WriteFile(file, program, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), firstRole+"="+file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// first plays the process: a goroutine that gets its first thread gives that to a starter.
func first() error {
	type try struct {
		first bool
		err   error
	}
	tries, free := make(chan try), make(chan struct{})
	defer close(free)
	for range 1_000 { // threads that are held here leave the first one for a later try
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if unix.Gettid() == unix.Getpid() {
				tries <- try{true, giveFirst()}
				return
			}
			tries <- try{}
			<-free
		}()
		if t := <-tries; t.first {
			return t.err
		}
	}
	return errors.New("no goroutine got the first thread")
}

func giveFirst() error {
	code, err := os.ReadFile(os.Getenv(firstRole))
	if err != nil {
		return err
	}
	s := &starter{hire: make(chan chan<- error), quit: make(chan struct{}), stopped: make(chan struct{}), known: map[int]bool{},
		answer: answerTime}
	if s.program, err = seal(code); err != nil {
		return err
	}
	if s.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return err
	}
	began := make(chan error)
	go func() {
		reply := make(chan error)
		s.hire <- reply
		began <- <-reply
	}()
	s.run() // returns when another thread has taken over
	if err := <-began; err != nil {
		return err
	}
	below, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", s.thread))
	if err != nil {
		return err
	}
	if s.thread == os.Getpid() || !slices.Contains(strings.Fields(string(below)), strconv.Itoa(s.launcher.Pid)) {
		return fmt.Errorf("the launcher %d is a child of thread %d, want one of another thread than the first", s.launcher.Pid, s.thread)
	}
	return errors.Join(s.stop(), s.program.Close(), s.null.Close())
}

// launcherOf returns the process of a tier's launcher; 0 for none.
func launcherOf(tier *Tier) int {
	tier.starter.busy.Lock()
	defer tier.starter.busy.Unlock()
	if tier.starter.launcher == nil {
		return 0
	}
	return tier.starter.launcher.Pid
}

func alive(t *testing.T, h spacetest.Host, s space.Instance, spec space.Spec) {
	t.Helper()
	if r := h.Exec(t, s, spacetest.Shell(spec.ID, "echo alive")); r.Stdout != "alive\n" {
		t.Errorf("got %+v, want a living space", r)
	}
}

// TestLauncherKilled kills the launcher: the spaces live on, and another launcher starts the next.
func TestLauncherKilled(t *testing.T) {
	h := host(t)
	tier := h.Tier.(*Tier)
	spec := h.Spec(t)
	first := h.Create(t, spec)
	before := launcherOf(tier)
	fd, err := unix.PidfdOpen(before, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		t.Fatal(err)
	}
	over(t, "the launcher that was killed", fd)
	alive(t, h, first, spec)
	next := h.Spec(t)
	alive(t, h, h.Create(t, next), next)
	if after := launcherOf(tier); after == before || after == 0 {
		t.Errorf("got launcher %d after %d, want another", after, before)
	}
	alive(t, h, first, spec)
}

// TestLauncherHangs stops the launcher: the start fails in bounded time, leaves nothing, and the next one has a launcher of its own.
func TestLauncherHangs(t *testing.T) {
	h := host(t)
	tier := h.Tier.(*Tier)
	tier.starter.answer = 300 * time.Millisecond
	spec := h.Spec(t)
	first := h.Create(t, spec)
	before := launcherOf(tier)
	if err := unix.Kill(before, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	next := h.Spec(t)
	s, err := h.Tier.Create(t.Context(), h.CreatePermit(t, next), next)
	if fault.CodeOf(err) != "space_not_started" || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("got %v, %v, want space_not_started", s, err)
	}
	tier.starter.answer = answerTime
	alive(t, h, h.Create(t, next), next)
	alive(t, h, first, spec)
}

// TestLauncherKilledAtWork kills launchers while spaces are started, at whatever they are doing. A start succeeds or fails; what failed
// leaves no process and no group.
func TestLauncherKilledAtWork(t *testing.T) {
	h := host(t)
	tier := h.Tier.(*Tier)
	const spaces = 40
	done := make(chan struct{})
	var killer, starts sync.WaitGroup
	killer.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			for _, f := range named(t, spaceinit.LauncherName+"\x00"+tier.owner) {
				if pid, err := strconv.Atoi(filepath.Base(f)); err == nil && childOfThis(pid) {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			}
		}
	})
	var mu sync.Mutex
	var living []space.Instance
	var failed []error
	for range 4 {
		starts.Go(func() {
			for range spaces / 4 {
				spec := h.Spec(t)
				s, err := h.Tier.Create(t.Context(), h.CreatePermit(t, spec), spec)
				mu.Lock()
				if err == nil {
					living = append(living, s)
				} else {
					failed = append(failed, err)
				}
				mu.Unlock()
			}
		})
	}
	starts.Wait()
	close(done)
	killer.Wait()
	t.Logf("%d started, %d failed", len(living), len(failed))
	for _, err := range failed {
		if fault.CodeOf(err) != "space_not_started" {
			t.Errorf("got %v, want space_not_started", err)
		}
	}
	// A process that was about to become an init looked like its launcher, so some may have been killed just after they were started.
	for start := time.Now(); ; {
		inits := named(t, initName+"\x00"+tier.owner+"\x00")
		stand := 0
		for _, s := range living {
			select {
			case <-s.Done():
			default:
				stand++
			}
		}
		if len(inits) == stand {
			break
		}
		if time.Since(start) > wall.Patience {
			t.Fatalf("got inits %v for %d spaces", inits, stand)
		}
	}
	spec := h.Spec(t)
	s, err := h.Tier.Create(t.Context(), h.CreatePermit(t, spec), spec)
	if fault.CodeOf(err) == "space_not_started" { // the last one that was killed had not died yet
		s, err = h.Tier.Create(t.Context(), h.CreatePermit(t, spec), spec)
	}
	if err != nil {
		t.Fatal(err)
	}
	alive(t, h, s, spec)
	for _, s := range append(living, s) {
		_ = s.Close() // one that was killed says so
	}
	if groups := tier.leftGroups(); len(groups) != 0 {
		t.Errorf("control groups left: %q", groups)
	}
	for _, pid := range children(t, tier.starter.thread) {
		if pid != launcherOf(tier) {
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			t.Errorf("process %d was never waited for:\n%s", pid, status)
		}
	}
}

func childOfThis(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", os.Getpid()))
}

func children(t *testing.T, thread int) []int {
	t.Helper()
	list, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", thread))
	if err != nil {
		t.Log("this kernel does not tell the children of a thread")
		return nil
	}
	var pids []int
	for text := range strings.FieldsSeq(string(list)) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// TestLauncher looks at a launcher from outside: it holds only the resources that starting an init takes.
func TestLauncher(t *testing.T) {
	h := host(t)
	h.Create(t, h.Spec(t))
	pid := launcherOf(h.Tier.(*Tier))
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	capabilities := "0000000000000000"
	if os.Geteuid() == 0 {
		capabilities = fmt.Sprintf("%016x", 1<<unix.CAP_SETUID|1<<unix.CAP_SETGID)
	}
	for _, want := range []string{
		"CapInh:\t0000000000000000\n", "CapPrm:\t" + capabilities + "\n", "CapEff:\t" + capabilities + "\n", "CapAmb:\t0000000000000000\n",
		"NoNewPrivs:\t1\n",
	} {
		if !strings.Contains(string(status), want) {
			t.Errorf("no %q in its status:\n%s", want, status)
		}
	}
	// Its standard streams, its socket, its program, the daemon's groups, and the runtime's poller. It closes what was sent after its answer.
	most := 5 + len(h.Tier.(*Tier).starter.homes) + 2
	for start := time.Now(); ; {
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			t.Fatal(err)
		}
		if len(fds) <= most {
			break
		}
		if time.Since(start) > wall.Patience {
			var open []string
			for _, fd := range fds {
				target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name()))
				open = append(open, fd.Name()+" "+target)
			}
			t.Fatalf("got %q, want at most %d descriptors: what was sent for a start is still open", open, most)
		}
	}
	if os.Geteuid() != 0 {
		return
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		at := strings.Fields(line)[4]
		if at != "/" && !strings.HasPrefix(at, "/proc") && !slices.Contains(spaceinit.Devices, strings.TrimPrefix(at, "/dev/")) {
			t.Errorf("it has the mount %s", line)
		}
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/root/usr", pid)); err == nil {
		t.Error("it has the host's files")
	}
}

// TestStarvedStart starts spaces with less and less memory until none can be started. The kernel never kills this process then, and the
// next space starts as ever.
func TestStarvedStart(t *testing.T) {
	h := host(t)
	if slices.Contains(h.Unenforced, "memory_bytes") {
		t.Log("left out: this host does not bound memory")
		return
	}
	failed := false
	for memory := int64(8 << 20); memory >= 4<<10; memory /= 2 {
		spec := h.Spec(t)
		spec.Limits.MemoryBytes = memory
		s, err := h.Tier.Create(t.Context(), h.CreatePermit(t, spec), spec)
		if err != nil {
			failed = true
			continue
		}
		if err := s.Close(); err != nil {
			t.Errorf("%d bytes: %v", memory, err)
		}
	}
	if !failed {
		t.Error("a space started in 4 KiB")
	}
	spec := h.Spec(t)
	alive(t, h, h.Create(t, spec), spec)
	if groups := h.Tier.(*Tier).leftGroups(); len(groups) != len(living(h.Tier.(*Tier), spec.ID)) {
		t.Errorf("control groups left: %q", groups)
	}
}

// living are the groups of a living space.
func living(tier *Tier, s id.Space) []string {
	tier.mu.Lock()
	defer tier.mu.Unlock()
	return tier.living[s].group.dirs()
}
