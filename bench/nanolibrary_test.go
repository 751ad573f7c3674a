package bench

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/spacetest"
	"agentbox/internal/driver/disk"
	"agentbox/internal/driver/memory"
	"agentbox/internal/driver/nano"
	"agentbox/internal/driver/nano/hostiletest"
)

// The library path of the nano tier: a command is permitted, goes to a worker, which is a process of the daemon's program, and has ended
// when its changes are in the space's folder. The path over HTTP adds the request, the gate, the log and the snapshot. Each command is
// fresh.

// nanoTier is the tier in this process, with workers of its own.
type nanoTier struct {
	spacetest.Host

	b *testing.B
}

func openNanoTier(b *testing.B, workers int) *nanoTier {
	b.Helper()
	program, err := nanoProgram()
	must(b, err)
	cache := os.Getenv("AGENTBOX_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		must(b, err)
		cache = filepath.Join(home, ".cache", "agentbox")
	}
	cache, err = filepath.Abs(filepath.Join(cache, "wasm")) // the daemon's own, so that nothing is compiled twice
	must(b, err)
	tier, err := nano.New(nano.Options{
		Command: []string{program, "nano-worker"}, Cache: cache, Workers: workers, Scratch: filepath.Join(b.TempDir(), "nano"),
		Entropy: rand.Reader, Clock: app.Clock{},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	must(b, err)
	b.Cleanup(func() { must(b, tier.Close()) })
	issue := func(a policy.Action) policy.Permit { return permit(b, a) }
	return &nanoTier{Host: spacetest.Host{Tier: tier, Permit: issue, IDs: id.NewSource(time.Now, rand.Reader)}, b: b}
}

// folder makes a folder for the files of a space, with one file if it has a name.
func (n *nanoTier) folder(name, content string) string {
	n.b.Helper()
	dir := filepath.Join(n.b.TempDir(), "files")
	must(n.b, os.Mkdir(dir, 0o700))
	if name != "" {
		must(n.b, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

// living is a space, and what is needed to run in it.
type living struct {
	space.Instance

	tier *nanoTier
	id   id.Space
}

// create makes a space of a folder.
func (n *nanoTier) create(dir string) (*living, error) {
	s := &living{tier: n, id: id.New[id.Space](n.IDs)}
	var err error
	s.Instance, err = n.start(s.id, dir)
	return s, err
}

func (n *nanoTier) start(s id.Space, dir string) (space.Instance, error) {
	spec := space.Spec{ID: s, Dir: dir, Limits: space.DefaultLimits()}
	raw, err := json.Marshal(spec.Limits)
	if err != nil {
		return nil, err
	}
	return n.Tier.Create(n.b.Context(), permit(n.b, policy.Action{Type: policy.SpaceStart, Workspace: id.DefaultWorkspace, Space: s,
		Limits: raw}), spec)
}

func (l *living) exec(argv []string) (spacetest.Result, error) {
	return l.tier.TryExec(l.tier.b.Context(), l.Instance, spacetest.Command{Space: l.id, Argv: argv, MS: 30_000})
}

// run runs a command that prints what is wanted.
func (l *living) run(want string, argv ...string) error {
	r, err := l.exec(argv)
	if err == nil && (r.Code != 0 || r.Stdout != want) {
		err = fmt.Errorf("%q printed %q, want %q; code %d, lacks %v: %s", argv, r.Stdout, want, r.Code, r.Lacks, r.Stderr)
	}
	return err
}

// need leaves a benchmark out where nano spaces do not have an interpreter.
func (l *living) need(want string, argv ...string) {
	l.tier.b.Helper()
	if err := l.run(want, argv...); err != nil {
		leaveOut(l.tier.b, "nano spaces do not run it (make quickjs nano): "+err.Error())
	}
}

// fresh measures a command in a living space of a tier with one worker.
func fresh(b *testing.B, file, content, want string, argv ...string) {
	n := openNanoTier(b, 1)
	s, err := n.create(n.folder(file, content))
	must(b, err)
	s.need(want, argv...)
	timed(b, ourTime(b), watched(func() error { return s.run(want, argv...) }))
}

// ourTime is what this process and its workers have had of the processors.
func ourTime(b *testing.B) func() time.Duration {
	return func() time.Duration { return processorTime(b, os.Getpid()) }
}

// BenchmarkNanoEval is a fresh JavaScript that prints what 1+1 is. QuickJS for Node makes a new context of a new runtime in this run's
// module, or with the name quickjs-module also a new module, which is what isolates the runs of a nano space from each other; bun is
// started as a program.
func BenchmarkNanoEval(b *testing.B) {
	b.Run("ours", func(b *testing.B) { fresh(b, "", "", "2\n", "js", "-p", "1+1") })
	for _, peer := range []string{"quickjs", "quickjs-module"} {
		b.Run(peer, func(b *testing.B) { beside(b, peer, "1+1", "2\n") })
	}
	b.Run("bun", func(b *testing.B) { forked(b, b.TempDir(), "2\n", filepath.Join(needPeers(b), "bun"), "-p", "1+1") })
}

// typescript is a file whose types have to go.
const typescript = `interface P { name: string; n: number }
const p: P = { name: 'x', n: 1 };
function f<T>(x: T): T { return x }
console.log(f<number>(p.n) as number);
`

// BenchmarkNanoTypeScript runs a file of TypeScript with types in a fresh interpreter, beside bun as a program. No file has been there
// before: each says another thing.
func BenchmarkNanoTypeScript(b *testing.B) {
	runs := func(b *testing.B, dir string, used func() time.Duration, run func(want string) error) {
		b.Helper()
		written := 0
		timed(b, used, func() (time.Duration, error) {
			written++
			text := strings.ReplaceAll(strings.ReplaceAll(typescript, "n: 1", fmt.Sprintf("n: %d", written)), "P", fmt.Sprintf("P%d", written))
			if err := os.WriteFile(filepath.Join(dir, "f.ts"), []byte(text), 0o600); err != nil {
				return 0, err
			}
			return watched(func() error { return run(fmt.Sprintln(written)) })()
		})
	}
	b.Run("ours", func(b *testing.B) {
		n := openNanoTier(b, 1)
		dir := n.folder("f.ts", typescript)
		s, err := n.create(dir)
		must(b, err)
		s.need("1\n", "bun", "f.ts")
		runs(b, dir, ourTime(b), func(want string) error { return s.run(want, "bun", "f.ts") })
	})
	b.Run("bun", func(b *testing.B) {
		dir, program := b.TempDir(), filepath.Join(needPeers(b), "bun")
		var spent time.Duration
		runs(b, dir, func() time.Duration { return spent }, func(want string) error { return fork(&spent, dir, want, program, "f.ts") })
	})
}

// shellScripts are those of BenchmarkNanoShell, and what they print.
var shellScripts = []struct{ name, script, want string }{
	{"echo", "echo hello", "hello\n"},
	{"lines=100", "seq 100 | sort -rn | head -n 3", "100\n99\n98\n"},
	{"lines=100000", "seq 100000 | sort -rn | head -n 3", "100000\n99999\n99998\n"},
}

// BenchmarkNanoShell is a new space and a script in it, to its whole output: an echo, and three programs in a pipe. Beside it stands
// just-bash, a virtual shell in JavaScript in the process of its caller: a new shell with a new file system for each script, by its own
// clock, when the engine has compiled it.
func BenchmarkNanoShell(b *testing.B) {
	for _, x := range shellScripts {
		b.Run(x.name+"/ours", func(b *testing.B) {
			n := openNanoTier(b, 1)
			dir := n.folder("", "")
			timed(b, ourTime(b), watched(func() error {
				s, err := n.create(dir)
				if err != nil {
					return err
				}
				if err := s.run(x.want, "/bin/bash", "-c", x.script); err != nil {
					return err
				}
				return s.Close()
			}))
		})
		b.Run(x.name+"/just-bash", func(b *testing.B) { beside(b, "just-bash", x.script, x.want) })
	}
}

// How many runs an op of BenchmarkNanoWorkers is, of ours and of the host's.
const (
	batch    = 400
	rawBatch = 100
)

// BenchmarkNanoWorkers measures how many fresh Pythons start per second with two workers, compared with one worker. Each caller has its own
// space. Four callers keep every worker busy. With as many callers as workers, the caller's own work takes no time from the workers.
func BenchmarkNanoWorkers(b *testing.B) {
	busy := func(b *testing.B, workers, callers int) {
		n := openNanoTier(b, workers)
		spaces := make([]*living, callers)
		for c := range spaces {
			s, err := n.create(n.folder("", ""))
			must(b, err)
			s.need("1\n", "python3", "-c", "print(1)")
			spaces[c] = s
		}
		runs := func(count int64) error {
			var (
				left   atomic.Int64
				all    sync.WaitGroup
				failed = make([]error, callers)
			)
			left.Store(count)
			for c, s := range spaces {
				all.Go(func() {
					for left.Add(-1) >= 0 && failed[c] == nil {
						failed[c] = s.run("1\n", "python3", "-c", "print(1)")
					}
				})
			}
			all.Wait()
			return errors.Join(failed...)
		}
		must(b, runs(batch/4)) // every worker has started
		began, done := time.Now(), 0
		for b.Loop() {
			must(b, runs(batch))
			done += batch
		}
		b.ReportMetric(float64(done)/time.Since(began).Seconds(), "runs/s")
		b.ReportMetric(0, "ns/op")
	}
	if cores := runtime.NumCPU(); cores < 2 {
		leaveOut(b, fmt.Sprintf("two workers need two cores; this machine has %d", cores))
	}
	b.Run("callers=4/ours", func(b *testing.B) { busy(b, 2, 4) })
	b.Run("callers=4/yardstick", func(b *testing.B) { busy(b, 1, 4) })
	b.Run("callers=workers/ours", func(b *testing.B) { busy(b, 2, 2) })
	b.Run("callers=workers/yardstick", func(b *testing.B) { busy(b, 1, 1) })
	// The speed of the machine: programs that only compute, and ones that start, each alone and two at a time.
	python := hostPython(b)
	raw := func(b *testing.B, at int, code string) {
		runs := func(count int64) {
			var (
				left   atomic.Int64
				all    sync.WaitGroup
				failed = make([]error, at)
			)
			left.Store(count)
			for c := range at {
				all.Go(func() {
					for left.Add(-1) >= 0 && failed[c] == nil {
						failed[c] = exec.Command(python, "-I", "-S", "-c", code).Run()
					}
				})
			}
			all.Wait()
			must(b, errors.Join(failed...))
		}
		began, done := time.Now(), int64(0)
		for b.Loop() {
			runs(rawBatch)
			done += rawBatch
		}
		b.ReportMetric(float64(done)/time.Since(began).Seconds(), "runs/s")
		b.ReportMetric(0, "ns/op")
	}
	for _, x := range [][2]string{{"computing", "for i in range(1_000_000): pass"}, {"starting", "print(1)"}} {
		b.Run("machine="+x[0]+"/ours", func(b *testing.B) { raw(b, 2, x[1]) })
		b.Run("machine="+x[0]+"/yardstick", func(b *testing.B) { raw(b, 1, x[1]) })
	}
}

// contextCells are what BenchmarkNanoContext runs in each language: a cell that fills a context, with a hundred thousand numbers or with
// next to nothing, one that changes it, one that shows it, and what that prints; and a command that does about as much as the second
// without a context.
var contextCells = []struct {
	name, language, fill, change, show, held string
	plain                                    []string
}{
	{
		"python", "python", "x = list(range(100_000)); n = 0", "n += 1", "print(len(x), x[-1])", "100000 99999\n",
		[]string{"python3", "-c", "n = 0; n += 1"},
	},
	{"python-small", "python", "x = [7]; n = 0", "n += 1", "print(len(x), x[-1])", "1 7\n", []string{"python3", "-c", "n = 0; n += 1"}},
	{
		"js", "js", "var x = Array.from({ length: 100_000 }, (_, i) => i), n = 0; 0", "n += 1", "console.log(x.length, x.at(-1))",
		"100000 99999\n",
		[]string{"js", "-e", "var n = 0; n += 1"},
	},
	{"js-small", "js", "var x = [7], n = 0", "n += 1", "console.log(x.length, x.at(-1))", "1 7\n", []string{"js", "-e", "var n = 0; n += 1"}},
}

// BenchmarkNanoContext keeps the memory of an interpreter and forks it. A snapshot is a whole cell that adds to a number, over the
// library path: the memory is restored from the file of the context, the cell runs, the memory is kept in the file, and a snapshot is
// made of the space. Beside it stands the same in a fresh interpreter that keeps nothing. A fork is another space made of that snapshot,
// ready for its first cell; the check of the memory is not timed. Of a snapshot, space-p50-ms is the part that the
// space's takes, the cell's is the rest; context-MB is the size of the file.
func BenchmarkNanoContext(b *testing.B) {
	for _, x := range contextCells {
		cell := func(code string) []string { return []string{x.language, "--context", "c", "-c", code} }
		b.Run(x.name+"/snapshot/ours", func(b *testing.B) {
			k := newKept(b, x.plain)
			must(b, k.run(cell(x.fill)))
			timed(b, ourTime(b), watched(func() error { return k.run(cell(x.change)) }))
			b.ReportMetric(k.half(), "space-p50-ms")
			b.ReportMetric(k.megabytes(), "context-MB")
			must(b, k.living.run(x.held, cell(x.show)...))
		})
		b.Run(x.name+"/snapshot/yardstick", func(b *testing.B) {
			k := newKept(b, x.plain)
			timed(b, ourTime(b), watched(func() error { return k.run(x.plain) }))
			b.ReportMetric(k.half(), "space-p50-ms")
		})
		b.Run(x.name+"/fork/ours", func(b *testing.B) {
			k := newKept(b, x.plain)
			must(b, k.run(cell(x.fill)))
			size := k.megabytes() // before the files are shared, and lie elsewhere
			timed(b, nil, func() (time.Duration, error) {
				began := time.Now()
				f, err := k.fork()
				took := time.Since(began)
				if err != nil {
					return 0, err
				}
				if err := f.run(x.held, cell(x.show)...); err != nil {
					return 0, err
				}
				return took, errors.Join(f.Close(), k.store.Remove(b.Context(), f.id))
			})
			b.ReportMetric(size, "context-MB")
		})
	}
}

// kept is a space whose files have a past, as those of a daemon have.
type kept struct {
	*living

	store *disk.Spaces
	past  space.History
	last  event.Digest    // its newest snapshot
	took  []time.Duration // what each snapshot took
	dir   string
}

func newKept(b *testing.B, plain []string) *kept {
	b.Helper()
	n := openNanoTier(b, 1)
	store, err := disk.OpenSpaces(b.Context(), b.TempDir(), memory.NewKeys(rand.Reader), rand.Reader)
	must(b, err)
	k := &kept{store: store, living: &living{tier: n, id: id.New[id.Space](n.IDs)}}
	must(b, k.make(k.living, policy.Action{Type: policy.SpaceCreate, Space: k.id}, space.Seed{}))
	_, k.dir, err = store.Open(k.id, 0, space.DefaultLimits())
	must(b, err)
	k.past, err = store.History(k.id, 0, space.DefaultLimits())
	must(b, err)
	k.need("", plain...)
	return k
}

// make makes the files of a space, and the space.
func (k *kept) make(s *living, a policy.Action, from space.Seed) error {
	b, limits := k.tier.b, space.DefaultLimits()
	if _, err := k.store.Create(b.Context(), permit(b, a), 0, limits, from); err != nil {
		return err
	}
	_, dir, err := k.store.Open(s.id, 0, limits)
	if err != nil {
		return err
	}
	s.Instance, err = s.tier.start(s.id, dir)
	return err
}

// run runs a command and makes a snapshot of the files.
func (k *kept) run(argv []string) error {
	if r, err := k.exec(argv); err != nil || r.Code != 0 {
		return fmt.Errorf("%q: %+v: %w", argv, r, err)
	}
	began := time.Now()
	k.past.Disturb() // as before a command
	s, err := k.past.Keep(k.tier.b.Context())
	k.last, k.took = s.Root, append(k.took, time.Since(began))
	return err
}

// half is what half of the snapshots of the space took at most.
func (k *kept) half() float64 {
	slices.Sort(k.took)
	return milliseconds(k.took[len(k.took)/2])
}

// fork makes a space of the newest snapshot.
func (k *kept) fork() (*living, error) {
	b := k.tier.b
	f := &living{tier: k.tier, id: id.New[id.Space](k.tier.IDs)}
	if err := k.store.Share(b.Context(), k.id, 0, space.DefaultLimits(), func() error { return nil }); err != nil {
		return nil, err
	}
	return f, k.make(f, policy.Action{Type: policy.SpaceFork, Space: f.id, Target: string(k.id), Content: k.last}, space.Seed{Space: k.id,
		Snapshot: k.last})
}

// megabytes is the size of the context.
func (k *kept) megabytes() float64 {
	found, err := filepath.Glob(filepath.Join(k.dir, ".agentbox", "contexts", "c.*"))
	must(k.tier.b, err)
	if len(found) != 1 {
		k.tier.b.Fatalf("contexts: got %v, want one", found)
	}
	info, err := os.Stat(found[0])
	must(k.tier.b, err)
	return float64(info.Size()) / 1e6
}

// stopAfter is the time that a runaway is given.
const stopAfter = 200 * time.Millisecond

// BenchmarkNanoStop has programs that take what they can stopped by their time, one after the other: how much later each has ended. Those
// that another bound ends first, or whose time passes by sleeping, are left out. The yardstick are as many endless loops of the host's
// shell, killed by a timer.
func BenchmarkNanoStop(b *testing.B) {
	report := func(b *testing.B, late []time.Duration) {
		slices.Sort(late)
		ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
		b.ReportMetric(ms(late[len(late)/2]), "p50-ms")
		b.ReportMetric(ms(late[len(late)*9/10]), "p90-ms")
		b.ReportMetric(ms(late[len(late)-1]), "max-ms")
		b.ReportMetric(float64(len(late)), "stopped")
		b.ReportMetric(0, "ns/op")
	}
	stopped := 0
	b.Run("ours", func(b *testing.B) {
		n := openNanoTier(b, 1)
		var late []time.Duration
		for b.Loop() {
			for _, group := range []struct {
				scripts []hostiletest.Script
				argv    []string
			}{{hostiletest.Shells, []string{"bash", "-c"}}, {hostiletest.Pythons, []string{"python3", "-c"}}, {hostiletest.JavaScripts,
				[]string{"node", "-e"}}} {
				for _, x := range group.scripts[:sized(len(group.scripts), min(3, len(group.scripts)))] {
					s, err := n.create(n.folder("", ""))
					must(b, err)
					must(b, s.run("", "true")) // the worker has done with the one before
					r, err := n.TryExec(b.Context(), s.Instance, spacetest.Command{Space: s.id, Argv: append(group.argv, x.Text),
						MS: stopAfter.Milliseconds()})
					must(b, err)
					if took := r.Duration - r.Commit; r.TimedOut && took >= stopAfter {
						late = append(late, took-stopAfter)
					}
					must(b, s.Close())
				}
			}
		}
		stopped = len(late) / b.N
		report(b, late)
	})
	b.Run("yardstick", func(b *testing.B) {
		var late []time.Duration
		for b.Loop() {
			for range max(stopped, 1) {
				ctx, cancel := context.WithTimeout(b.Context(), stopAfter)
				began := time.Now()
				_ = exec.CommandContext(ctx, "/bin/sh", "-c", "while :; do :; done").Run()
				late = append(late, time.Since(began)-stopAfter)
				cancel()
			}
		}
		report(b, late)
	})
}
