package worker

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"agentbox/internal/userland/bound"
)

// threeWorkers returns a pool of as many at most.
func threeWorkers(t *testing.T) *Pool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := NewPool(Options{Command: []string{self, "serve"}, Workers: 3, Prepare: Prepare, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// executes has the pool execute what the system of the tests does.
func executes(ctx context.Context, t *testing.T, p *Pool, what string, heard func()) {
	t.Helper()
	o := Order{
		Argv: []string{what}, Cwd: "/", Mounts: []Mount{{Path: "/workspace"}},
		Limits: bound.Limits{Gas: 1 << 40, Time: time.Minute, MemoryBytes: 64 << 20, OutputBytes: 1 << 10, FileBytes: 1 << 10, OpenFiles: 10,
			Depth: 10},
	}
	if _, err := p.Execute(ctx, o, []Files{&counted{}}, func(string, []byte) error {
		heard()
		return nil
	}); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// TestEachOfThoseWhoWaitCountsForAWorker has an execution come where another one has seen the idle worker, and has not taken it yet:
// whichever takes it, the other one does not wait until that one has ended.
func TestEachOfThoseWhoWaitCountsForAWorker(t *testing.T) {
	p := threeWorkers(t)
	executes(t.Context(), t, p, "input", func() {})
	p.count(1)
	executes(t.Context(), t, p, "input", func() {})
	p.count(-1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started != 2 {
		t.Errorf("there are %d workers for two executions at once", p.started)
	}
}

// TestWorkersThatNobodyNeedsEnd has three executions at once, then one at a time, then none. Surplus workers end, but for one.
func TestWorkersThatNobodyNeedsEnd(t *testing.T) {
	p := threeWorkers(t)
	execute := func(ctx context.Context, what string, heard func()) { executes(ctx, t, p, what, heard) }
	together := func(count int) {
		ctx, end := context.WithCancel(t.Context())
		var begun, all sync.WaitGroup
		for range count {
			begun.Add(1)
			all.Go(func() { execute(ctx, "spin", sync.OnceFunc(begun.Done)) })
		}
		begun.Wait()
		end()
		all.Wait()
	}
	living := func(want int) {
		t.Helper()
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.living) != want || p.started != want {
			t.Fatalf("got %d workers, of which %d live, want %d", p.started, len(p.living), want)
		}
	}
	together(3)
	p.shed() // from here on it counts
	living(3)
	together(3)
	p.shed()
	living(3)
	together(2)
	together(1)
	p.shed()
	living(2)
	p.shed()
	p.shed()
	living(1)
	together(3)
	living(3)
	p.shed()
	execute(t.Context(), "input", func() {})
	execute(t.Context(), "input", func() {})
	p.shed()
	living(1)
	execute(t.Context(), "input", func() {})
}

// TestAllWorkersButOneEndInALull has three executions at once, then none: all end but for one, as soon as nothing was executed between
// two looks, and not while one works.
func TestAllWorkersButOneEndInALull(t *testing.T) {
	p := threeWorkers(t)
	ctx, end := context.WithCancel(t.Context())
	var begun, all sync.WaitGroup
	for range 3 {
		begun.Add(1)
		all.Go(func() { executes(ctx, t, p, "spin", sync.OnceFunc(begun.Done)) })
	}
	begun.Wait()
	living := func(want int) {
		t.Helper()
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.living) != want || p.started != want {
			t.Fatalf("got %d workers, of which %d live, want %d", p.started, len(p.living), want)
		}
	}
	p.lull()
	p.lull()
	living(3) // they work
	end()
	all.Wait()
	executes(t.Context(), t, p, "input", func() {})
	p.lull()
	living(3) // there was one since
	p.lull()
	living(1)
	p.lull()
	living(1)
	executes(t.Context(), t, p, "input", func() {})
	living(1)
}

// TestACloseLeavesNoProcessBehind: a pool that is closed while the program goes on must have taken note of the end of its workers, which
// else stay in the table of processes.
func TestACloseLeavesNoProcessBehind(t *testing.T) {
	p := threeWorkers(t)
	executes(t.Context(), t, p, "input", func() {})
	w := <-p.idle
	p.idle <- w
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if w.command.ProcessState == nil {
		t.Errorf("nobody has waited for the process %d", w.command.Process.Pid)
	}
}
