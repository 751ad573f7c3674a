package nano

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space/spacetest"
)

// coldTier opens a tier whose cache is empty.
func coldTier(t *testing.T) (*Tier, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(t.TempDir(), "cache")
	tier, err := New(Options{
		Command: []string{self, "nano-worker"}, Cache: cache, Workers: 1, Scratch: filepath.Join(t.TempDir(), "nano"), Entropy: rand.Reader,
		Clock:  wall{},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tier.Close(); err != nil {
			t.Errorf("close the tier: %v", err)
		}
	})
	return tier, cache
}

// TestACommandWaitsForItsInterpreter: in an empty cache the interpreters are compiled in the background. A command that wants one waits,
// says so while it does, and none of the wait is its own time. The shell does not wait, and JavaScript not for Python.
func TestACommandWaitsForItsInterpreter(t *testing.T) {
	needPython(t)
	if testing.Short() {
		t.Skip("it compiles Python, which takes ten seconds")
	}
	tier, cache := coldTier(t)
	h := spacetest.Host{Tier: tier, Permit: issue, Place: place, IDs: id.NewSource(time.Now, rand.Reader)}
	if tier.prepare(); !tier.Cold() {
		t.Fatal("an empty cache is said to hold the interpreters")
	}
	spec := h.Spec(t)
	s := h.Create(t, spec)
	if r := h.Exec(t, s, spacetest.Shell(spec.ID, "echo at once")); r.Stdout != "at once\n" || r.Stderr != "" || tier.ready() {
		t.Errorf("the shell: %q, %q; the interpreters are compiled: %v", r.Stdout, r.Stderr, tier.ready())
	}
	if r := h.Exec(t, s, spacetest.Command{Space: spec.ID, Argv: []string{"node", "-p", "6*7"}, MS: 1000}); r.Stdout != "42\n" || r.Code != 0 {
		t.Errorf("JavaScript: %q, exit code %d, %q", r.Stdout, r.Code, r.Stderr)
	}
	if tier.ready() {
		t.Error("JavaScript has waited for Python")
	}
	began := time.Now()
	const limit = 4000 // milliseconds, less than the compilation takes, and more than the command itself on a busy machine
	r := h.Exec(t, s, spacetest.Command{Space: spec.ID, Argv: []string{"sh", "-c", "echo before; python3 -c 'print(6*7)'"}, MS: limit})
	took := time.Since(began)
	if r.Stdout != "before\n42\n" || r.Code != 0 || r.TimedOut {
		t.Fatalf("Python: %q, exit code %d, timed out %v, %q", r.Stdout, r.Code, r.TimedOut, r.Stderr)
	}
	line := regexp.MustCompile(
		`^compiling Python for this machine, once: \d+ s so far(\rcompiling Python for this machine, once: \d+ s so far)*\n$`)
	if took > limit*time.Millisecond && !line.MatchString(r.Stderr) {
		t.Errorf("it waited for %s and said %q", took, r.Stderr)
	}
	if r.Duration > limit*time.Millisecond || took-r.Duration < took/2 {
		t.Errorf("of %s, the command's own time is said to be %s", took, r.Duration)
	}
	if r := h.Exec(t, s, spacetest.Command{Space: spec.ID, Argv: []string{"python3", "-c", "print(1)"}, MS: limit}); r.Stdout != "1\n" ||
		r.Stderr != "" {
		t.Errorf("afterwards: %q, %q", r.Stdout, r.Stderr)
	}
	if left, err := filepath.Glob(filepath.Join(cache, ".new-*")); err != nil || len(left) > 0 {
		t.Errorf("it left %q, %v", left, err)
	}
	select {
	case <-tier.prepared: // the process says that Python is there before it ends
	case <-time.After(time.Minute):
		t.Fatal("Python is compiled, and the compilation does not end")
	}
	if again, _ := os.ReadDir(cache); len(again) == 0 || tier.Cold() {
		t.Error("what was compiled is to be compiled again")
	}
}

// TestATierThatEndsEndsItsCompilation: the process that compiles is gone with the tier, and nothing half written is left.
func TestATierThatEndsEndsItsCompilation(t *testing.T) {
	tier, cache := coldTier(t)
	if tier.prepare(); !tier.Cold() {
		t.Fatal("an empty cache is said to hold the interpreters")
	}
	began := time.Now()
	if err := tier.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > endsWithin {
		t.Errorf("it took %s: the compilation was killed, or awaited", took)
	}
	select {
	case <-tier.prepared:
	default:
		t.Error("the tier has ended before its compilation")
	}
	if left, err := filepath.Glob(filepath.Join(cache, ".new-*")); err != nil || len(left) > 0 {
		t.Errorf("it left %q, %v", left, err)
	}
	if _, err := os.Stat(tier.mark()); err == nil {
		t.Error("what was not finished is said to be prepared")
	}
}

// TestACompilationEndsWithItsStarter: the process ends when its standard input does, as it does where the daemon was killed.
func TestACompilationEndsWithItsStarter(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithTimeout(t.Context(), endsWithin)
	defer end()
	c := exec.CommandContext(ctx, self, "nano-worker", prepares, filepath.Join(t.TempDir(), "cache"))
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); c.ProcessState.ExitCode() != 1 || ctx.Err() != nil {
		t.Errorf("it went on, though nobody waits for it: %v", err)
	}
}

// failsToPrepare is the word by which this program fails to prepare the interpreters some times. A file counts the tries.
const failsToPrepare = "fails-to-prepare"

// prepareLate says that JavaScript is prepared at the try of this number.
func prepareLate(file, number string) (code int) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 2
	}
	if _, err := f.WriteString("x"); err != nil {
		return 2
	}
	if info, err := f.Stat(); err != nil || strconv.FormatInt(info.Size(), 10) != number {
		return 1
	}
	fmt.Println(scriptName)
	return 0
}

// hasty is a clock on which seconds take no time.
type hasty struct{ wall }

func (h hasty) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	if d <= time.Minute {
		d = 0
	}
	return h.wall.NewTimer(d)
}

// TestACompilationThatFailedIsRepeated has the host lack something for the first tries.
func TestACompilationThatFailedIsRepeated(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		works, tries int // the try that works, and how many are made
	}{{1, 1}, {2, 2}, {3, 3}, {4, 3}} {
		like, _ := coldTier(t)
		file := filepath.Join(t.TempDir(), "tries")
		o := like.o
		o.Command, o.Clock, o.Logger = []string{self, failsToPrepare, file, strconv.Itoa(x.works)}, hasty{}, slog.New(slog.DiscardHandler)
		if err := os.Mkdir(o.Cache, 0o700); err != nil {
			t.Fatal(err)
		}
		tier, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		tier.prepare()
		<-tier.prepared
		tried, err := os.ReadFile(file)
		if err != nil || len(tried) != x.tries {
			t.Errorf("it works at try %d: there were %d, %v, want %d", x.works, len(tried), err, x.tries)
		}
		if _, err := os.Stat(tier.mark()); (err == nil) != (x.works == x.tries) {
			t.Errorf("it works at try %d of %d: the mark is %v", x.works, x.tries, err)
		}
		if err := tier.Close(); err != nil {
			t.Error(err)
		}
	}
}
