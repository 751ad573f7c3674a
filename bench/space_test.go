package bench

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/namespace"
	"agentbox/internal/spaceinit/inittest"
)

// The spaces of these benchmarks have the root file system of `make rootfs`, where it is there, else the host's own programs. So has the
// yardstick: bubblewrap with as many namespaces, the same system read-only, a private /proc, /dev and /tmp, and a folder of files. It
// bounds nothing and filters no system call.

// rootFS is the folder of the root file system, or the name of the host's.
var rootFS = sync.OnceValue(func() string {
	out, err := exec.Command("../scripts/rootfs", "--print").Output()
	dir := strings.TrimSpace(string(out))
	if _, missing := os.Stat(filepath.Join(dir, "agentbox-rootfs")); err != nil || missing != nil {
		return namespace.HostRoot
	}
	return dir
})

func permit(tb testing.TB, a policy.Action) policy.Permit {
	tb.Helper()
	canonical, err := a.Canonical()
	if err != nil {
		tb.Fatal(err)
	}
	return policy.Issue(canonical, nil)
}

// benchSpaces makes spaces for a benchmark.
type benchSpaces struct {
	tier *namespace.Tier
	ids  *id.Source
	uid  int
}

func openSpaces(b *testing.B) *benchSpaces {
	b.Helper()
	program, err := inittest.Build()
	if err != nil {
		b.Fatal(err)
	}
	tier, err := namespace.New(namespace.Options{Program: program, Root: rootFS(), Owner: "bench", Clock: clock{}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := tier.Close(); err != nil {
			b.Error(err)
		}
	})
	s := &benchSpaces{tier: tier, ids: id.NewSource(time.Now, rand.Reader)}
	if os.Geteuid() == 0 {
		s.uid = 700_000
	}
	return s
}

func (s *benchSpaces) spec(b *testing.B) (space.Spec, policy.Permit) {
	b.Helper()
	dir := b.TempDir()
	if s.uid != 0 {
		if err := os.Chown(dir, s.uid, s.uid); err != nil {
			b.Fatal(err)
		}
	}
	spec := space.Spec{ID: id.New[id.Space](s.ids), Dir: dir, UID: s.uid, Limits: space.DefaultLimits(), BestEffort: os.Geteuid() != 0}
	raw, err := json.Marshal(spec.Limits)
	if err != nil {
		b.Fatal(err)
	}
	return spec, permit(b, policy.Action{Type: policy.SpaceStart, Workspace: id.DefaultWorkspace, Space: spec.ID, Limits: raw})
}

func command(b *testing.B, s id.Space, argv ...string) policy.Permit {
	b.Helper()
	return permit(b, policy.Action{Type: policy.ShellExec, Workspace: id.DefaultWorkspace, Space: s, Argv: argv, TimeoutMS: 30_000})
}

// wrapped is the yardstick's command.
func wrapped(b *testing.B, argv ...string) *exec.Cmd {
	b.Helper()
	system := "/usr"
	if root := rootFS(); root != namespace.HostRoot {
		system = filepath.Join(root, "usr")
	}
	args := []string{
		"--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", system, "/usr", "--symlink", "usr/bin", "/bin",
		"--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
		"--bind", b.TempDir(), "/workspace", "--chdir", "/workspace", "--clearenv", "--setenv", "PATH", "/usr/bin:/bin",
	}
	return exec.Command("bwrap", append(args, argv...)...)
}

func needBubblewrap(b *testing.B) {
	b.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		leaveOut(b, "bubblewrap is missing: install bubblewrap")
	}
}

// createOurs is the time from nothing to the first byte that a program in a new space prints.
func createOurs(b *testing.B) {
	s := openSpaces(b)
	for b.Loop() {
		b.StopTimer()
		spec, create := s.spec(b)
		echo := command(b, spec.ID, "echo", "hello")
		b.StartTimer()
		instance, err := s.tier.Create(b.Context(), create, spec)
		if err != nil {
			b.Fatal(err)
		}
		_, err = instance.Exec(b.Context(), echo, nil, func(string, []byte) error {
			b.StopTimer()
			return nil
		})
		if err := errors.Join(err, instance.Close()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// execOurs is the time that `true` takes in a space that is there.
func execOurs(b *testing.B) {
	s := openSpaces(b)
	spec, create := s.spec(b)
	instance, err := s.tier.Create(b.Context(), create, spec)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		b.StopTimer()
		run := command(b, spec.ID, "true")
		b.StartTimer()
		if exit, err := instance.Exec(b.Context(), run, nil, func(string, []byte) error { return nil }); err != nil || exit.Code != 0 {
			b.Fatal(exit, err)
		}
	}
	b.StopTimer()
	if err := instance.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSpaceCreate is a new space beside bubblewrap's.
func BenchmarkSpaceCreate(b *testing.B) {
	b.Run("ours", createOurs)
	b.Run("yardstick", func(b *testing.B) {
		needBubblewrap(b)
		for b.Loop() {
			b.StopTimer()
			cmd := wrapped(b, "echo", "hello")
			out, err := cmd.StdoutPipe()
			if err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := cmd.Wait(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
}

// BenchmarkSpaceExec is a command in a living space beside bubblewrap, which makes one for it.
func BenchmarkSpaceExec(b *testing.B) {
	b.Run("ours", execOurs)
	b.Run("yardstick", func(b *testing.B) {
		needBubblewrap(b)
		for b.Loop() {
			b.StopTimer()
			cmd := wrapped(b, "true")
			b.StartTimer()
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
