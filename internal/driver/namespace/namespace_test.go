//go:build linux

package namespace

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space/spacetest"
	"agentbox/internal/spaceinit/inittest"
	"agentbox/internal/testkit/ondisk"
	"agentbox/internal/testkit/wall"
)

// builtEnv names a folder with the programs that the tests need, for a run by a user who cannot build them.
const builtEnv = "AGENTBOX_TEST_BUILT"

// program is the init, built once for all tests of this package; attempts is the program that tries to get out.
var program, attempts []byte

// build reads or builds what the tests need.
func build() (err error) {
	if dir := os.Getenv(builtEnv); dir != "" {
		if program, err = os.ReadFile(filepath.Join(dir, "init")); err == nil {
			attempts, err = os.ReadFile(filepath.Join(dir, "escape"))
		}
		return err
	}
	if program, err = inittest.Build(); err == nil {
		attempts, err = inittest.BuildPackage("agentbox/internal/driver/namespace/testdata/escape")
	}
	return err
}

func TestMain(m *testing.M) {
	if os.Getenv(firstRole) != "" {
		if err := first(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv(daemonRole) != "" {
		daemon()
		return
	}
	if err := errors.Join(ondisk.Use(), build()); err != nil { // in memory a file without a name is bounded as memory
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// testRoot is the root file system of the tests: the one in AGENTBOX_TEST_ROOT, or the host's own programs, which need no preparation.
func testRoot() string {
	if dir := os.Getenv("AGENTBOX_TEST_ROOT"); dir != "" {
		return dir
	}
	return HostRoot
}

// openTier makes a tier and closes it after the test.
func openTier(t *testing.T) *Tier {
	t.Helper()
	tier, err := New(Options{Program: program, Root: testRoot(), Owner: fmt.Sprintf("test%d", os.Getpid()), Clock: wall.Clock{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tier.Close(); err != nil {
			t.Errorf("close the tier: %v", err)
		}
	})
	return tier
}

var nextUID atomic.Int64

// place makes a folder for a space that nobody but its user and the daemon can reach.
func place(t *testing.T) (dir string, uid int) {
	t.Helper()
	closed := filepath.Join(t.TempDir(), "closed")
	dir = filepath.Join(closed, "files")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		return dir, 0
	}
	uid = 700_000 + int(nextUID.Add(1))
	if err := os.Chown(dir, uid, uid); err != nil {
		t.Fatal(err)
	}
	return dir, uid
}

func issue(a policy.Action) policy.Permit {
	canonical, err := a.Canonical()
	if err != nil {
		panic(err)
	}
	return policy.Issue(canonical, nil)
}

// host is the tier under test as the suite wants it.
func host(t *testing.T) spacetest.Host {
	t.Helper()
	tier := openTier(t)
	h := spacetest.Host{Tier: tier, Permit: issue, Place: place, IDs: id.NewSource(time.Now, rand.Reader)}
	// The bounds that this host cannot enforce are found out as the tier does it.
	g, failed := tier.groups.create(tier.groupName("probe"), h.Spec(t).Limits)
	for bound := range failed {
		if bound == "pids" {
			h.Unnamed = append(h.Unnamed, bound)
		} else {
			h.Unenforced = append(h.Unenforced, bound)
		}
	}
	if err := g.remove(); err != nil {
		t.Error(err)
	}
	return h
}

func TestConformance(t *testing.T) { spacetest.Run(t, host(t)) }

// TestUnprivileged runs the tests again as a user without any privilege. It leaves out the bounds that the host then cannot enforce, and
// names them.
func TestUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("this run is one")
		return
	}
	const nobody = 65534
	// Not below the folder of this test, which only root may enter.
	dir, err := os.MkdirTemp("", "agentbox-unprivileged-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	for name, content := range map[string][]byte{"init": program, "escape": attempts} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run",
		"^Test(Conformance|Escape|FilesWithout.*|Look|HostUser|DaemonKilled|ReapLeftovers|Probe|Launcher.*)$", "-test.v", "-test.timeout=6m")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, builtEnv + "=" + dir, "AGENTBOX_TEST_ROOT=" + HostRoot}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 10 * time.Second // what it may have left has its output too
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
