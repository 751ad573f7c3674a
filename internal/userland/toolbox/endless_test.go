package toolbox_test

import (
	"errors"
	"maps"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"testing"
	"time"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/shelltest"
)

// endless are inputs that do not end: a line without an end, and short lines.
var endless = []string{"/dev/zero", "<(yes)"}

// heldBytes is the memory that each command may hold in TestEachCommandKeepsItsBounds, and spareBytes what the process may take besides:
// what the collector has not taken back yet, and the buffers and stacks of the pipes.
const (
	heldBytes  = 16 << 20
	spareBytes = 64 << 20
)

// TestEachCommandKeepsItsBounds runs every command that there is on inputs that do not end. Each ends by itself, by its gas or by its
// memory; it tries to do nothing after its stop for more than 5 ms; it holds no more than its bound; and the process does not take more
// than that either.
func TestEachCommandKeepsItsBounds(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs every command until its gas is used up")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	for _, name := range slices.Sorted(maps.Keys(programs())) {
		for i, in := range endless {
			script := name + " < " + in
			if own := busy[name]; own != "" && i == 0 {
				script += "; " + own
			}
			l := small()
			l.MemoryBytes, l.Time = heldBytes, time.Minute
			l.Gas = 20_000_000
			a := bound.New(l, [32]byte{1}, shelltest.Start())
			stop, most := watchHeap()
			r := shelltest.ExecuteWith(a, programs(), "("+script+") >/dev/null 2>&1")
			stop()
			stopped, ok := errors.AsType[*bound.Stopped](r.Stopped)
			if r.Stopped != nil && !(ok && (stopped.Limit == bound.Gas || stopped.TimedOut)) {
				t.Errorf("%s: ended by %v", script, r.Stopped)
			}
			if r.Late > lateGas {
				t.Errorf("%s: tried to do %d units of work after it was stopped, want %d at most", script, r.Late, lateGas)
			}
			if _, peak := a.Memory(); peak > heldBytes {
				t.Errorf("%s: held %d bytes, want %d at most", script, peak, heldBytes)
			}
			if got := most(); got > heldBytes+spareBytes {
				t.Errorf("%s: the process took %d MiB, want %d at most", script, got>>20, (heldBytes+spareBytes)>>20)
			}
		}
	}
}

// watchHeap measures how much the heap grows until stop is called.
func watchHeap() (stop func(), most func() int64) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	read := func() int64 { metrics.Read(sample); return int64(sample[0].Value.Uint64()) }
	runtime.GC()
	before, top := read(), int64(0)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			case <-time.After(time.Millisecond):
				top = max(top, read()-before)
			}
		}
	}()
	return func() { close(quit); <-done }, func() int64 { return top }
}
