package bench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The other yardstick of spaces is @anthropic-ai/sandbox-runtime, pinned in testdata/sandbox-runtime and fetched on demand. It is used as
// its readme says a program should, as a library of one long-lived process: its proxies and its JavaScript engine are started before the
// clock is. Each of its commands has a sandbox of its own, on the host's programs, without limits.

// sandboxRuntime is that process.
type sandboxRuntime struct {
	in    io.Writer
	out   *bufio.Scanner
	fault *strings.Builder
}

func openSandboxRuntime(b *testing.B) *sandboxRuntime {
	b.Helper()
	needBubblewrap(b)
	fetch := exec.Command("../scripts/fetch-sandbox-runtime")
	why := &strings.Builder{}
	fetch.Stderr = why
	folder, err := fetch.Output()
	if err != nil {
		leaveOut(b, strings.TrimSpace(why.String())+": "+err.Error())
	}
	dir := strings.TrimSpace(string(folder))
	cmd := exec.Command("node", filepath.Join(dir, "drive.mjs"))
	cmd.Dir = b.TempDir()
	cmd.Env = append(os.Environ(), "SOCAT="+filepath.Join(dir, "tools/socat"), "RIPGREP="+filepath.Join(dir, "tools/rg"))
	r := &sandboxRuntime{fault: &strings.Builder{}}
	cmd.Stderr = r.fault
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	r.in, r.out = in, bufio.NewScanner(out)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			b.Errorf("the sandbox runtime: %v\n%s", err, r.fault)
		}
	})
	r.expect(b, "ready")
	return r
}

// expect reads the next line.
func (r *sandboxRuntime) expect(b *testing.B, want string) {
	b.Helper()
	if !r.out.Scan() || r.out.Text() != want {
		b.Fatalf("the sandbox runtime: got %q, %v, want %q\n%s", r.out.Text(), r.out.Err(), want, r.fault)
	}
}

// order has it run a command.
func (r *sandboxRuntime) order(b *testing.B, command string) {
	b.Helper()
	if _, err := fmt.Fprintln(r.in, command); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSpaceCreateRuntime is a new space beside a sandbox of the sandbox runtime.
func BenchmarkSpaceCreateRuntime(b *testing.B) {
	b.Run("ours", createOurs)
	b.Run("yardstick", func(b *testing.B) {
		r := openSandboxRuntime(b)
		for b.Loop() {
			r.order(b, "echo hello")
			r.expect(b, "output")
			b.StopTimer()
			r.expect(b, "exit 0")
			b.StartTimer()
		}
	})
}

// BenchmarkSpaceExecRuntime is a command in a living space beside the sandbox runtime, which makes a sandbox for it.
func BenchmarkSpaceExecRuntime(b *testing.B) {
	b.Run("ours", execOurs)
	b.Run("yardstick", func(b *testing.B) {
		r := openSandboxRuntime(b)
		for b.Loop() {
			r.order(b, "true")
			r.expect(b, "exit 0")
		}
	})
}
