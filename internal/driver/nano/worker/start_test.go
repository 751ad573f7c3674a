package worker

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/userland/bound"
)

// latePool returns a pool whose starts fail before the start of a number. It also returns the function that counts the starts.
func latePool(t *testing.T, number int, patience time.Duration) (p *Pool, starts func() int64) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "starts")
	p = NewPool(Options{Command: []string{self, "late", file, strconv.Itoa(number)}, Workers: 1, Patience: patience, Prepare: Prepare,
		Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, func() int64 {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
}

// input executes an order of the tests' system that prints its input.
func input(ctx context.Context, p *Pool, text string) (printed string, err error) {
	o := Order{
		Argv: []string{"input"}, Stdin: []byte(text), Cwd: "/", Mounts: []Mount{{Path: "/workspace"}},
		Limits: bound.Limits{Gas: 1 << 40, Time: time.Hour, MemoryBytes: 64 << 20, OutputBytes: 1 << 20, FileBytes: 1 << 10, OpenFiles: 10,
			Depth: 10},
	}
	_, err = p.Execute(ctx, o, []Files{&counted{}}, func(_ string, b []byte) error {
		printed += string(b)
		return nil
	})
	return printed, err
}

// TestAStartThatFailedIsRepeated has a host lack something at the first three starts of a worker. Executions wait for the fourth.
func TestAStartThatFailedIsRepeated(t *testing.T) {
	p, starts := latePool(t, 4, time.Hour)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if got, err := input(t.Context(), p, "hi"); err != nil || got != "hi" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	all.Wait()
	if n := starts(); n != 4 {
		t.Errorf("there were %d starts, want 4", n)
	}
}

// TestStartsThatGoOnFailingFailTheExecutions has starts fail for longer than executions bear it. Each execution that waits learns why. A
// later one has a worker as soon as there is one.
func TestStartsThatGoOnFailingFailTheExecutions(t *testing.T) {
	p, starts := latePool(t, 12, time.Nanosecond)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			got, err := input(t.Context(), p, "hi")
			if fault.CodeOf(err) != "worker_not_started" || !strings.Contains(err.Error(), "no room for another process") {
				t.Errorf("got %q, %v, want worker_not_started with its reason", got, err)
			}
		})
	}
	all.Wait()
	if n := starts(); n < 2 || n >= 12 {
		t.Errorf("there were %d starts", n)
	}
	p.o.Patience = time.Hour
	if got, err := input(t.Context(), p, "hi"); err != nil || got != "hi" {
		t.Errorf("afterwards: got %q, %v", got, err)
	}
}

// TestAPoolIsClosedWhileItWaitsToStartAgain: the end comes at once, to the pool and to the execution.
func TestAPoolIsClosedWhileItWaitsToStartAgain(t *testing.T) {
	p, _ := latePool(t, 1<<30, time.Hour)
	failed := p.lastFailure().next
	ended := make(chan error, 1)
	go func() {
		_, err := input(t.Context(), p, "hi")
		ended <- err
	}()
	<-failed
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; fault.CodeOf(err) != "tier_closed" {
		t.Errorf("got %v, want tier_closed", err)
	}
}
