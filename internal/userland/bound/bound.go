// Package bound says what one execution may use, and keeps the account of what it has used: gas, memory, output, time and chance.
package bound

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"
)

// Limits bound one execution. All are positive.
type Limits struct {
	Gas         int64         // units of work; what costs how much is part of the metering version
	Time        time.Duration // of the virtual clock's sleeping, and of the wall
	MemoryBytes int64         // linear memories of guests, and what commands and files hold
	OutputBytes int64         // of stdout and stderr together
	FileBytes   int64         // of one file
	OpenFiles   int64         // handles that are open at once
	Depth       int64         // of calls, of the shell's functions and of the programs that programs start
}

// The names of the bounds, as an exit tells them.
const (
	Gas    = "gas"
	Memory = "memory_bytes"
	Output = "output_bytes"
	Disk   = "disk_bytes"
	File   = "file_bytes"
	Depth  = "depth"

	Processes = "processes" // that live at once
)

// Stopped is why an execution was ended from outside of its code. It is returned as an error through Go code and thrown through WASM;
// nothing that runs on behalf of the execution may swallow it.
type Stopped struct {
	Limit    string // the bound that was hit, if it was one of this package's
	TimedOut bool   // its time ran out, on the wall or by sleeping
	Canceled bool   // somebody asked for it
}

func (s *Stopped) Error() string {
	switch {
	case s.TimedOut:
		return "the time of the execution ran out"
	case s.Canceled:
		return "the execution was cancelled"
	}
	return "the execution hit its bound " + s.Limit
}

// ErrMemory refuses memory beyond the bound. It ends the program that asked, as the kernel of an operating system would, not the execution.
var ErrMemory = errors.New("out of memory")

// nanosecondsPerGas is how far the virtual clock moves for a unit of gas.
const nanosecondsPerGas = 1

// Account counts the use of one execution against its limits. All of an execution runs on one fiber at a time, so only Stop may be called
// from elsewhere.
type Account struct {
	limits Limits
	start  time.Time
	stop   atomic.Pointer[Stopped]
	done   chan struct{} // closed when it was stopped

	promised   bool // Finish will be called
	afterwards []func()

	pace  func()
	paced int64 // gas at which pace is called next

	gas    int64 // used
	late   int64 // asked for after the stop
	slept  time.Duration
	memory int64 // held now
	peak   int64
	output int64
	depth  int64
	hit    string
	final  []string // the limits hit that end the execution
	chance *rand.ChaCha8
}

// New opens an account. The virtual clock begins at start; chance is drawn from seed.
func New(l Limits, seed [32]byte, start time.Time) *Account {
	return &Account{limits: l, start: start, done: make(chan struct{}), chance: rand.NewChaCha8(seed)}
}

// paceGas is the gas between two calls of SetPace's function: some tenths of a millisecond.
const paceGas = 500_000

// SetPace has pace called again and again while the execution computes. It may wait, to bound how much of a processor the execution takes.
func (a *Account) SetPace(pace func()) { a.pace, a.paced = pace, a.gas+paceGas }

// keep calls pace where it is time.
func (a *Account) keep() {
	if a.pace != nil && a.gas >= a.paced {
		a.pace()
		a.paced = a.gas + paceGas
	}
}

// Limits returns the bounds.
func (a *Account) Limits() Limits { return a.limits }

// Stop ends the execution at its next charge. The first cause counts. It may be called from any goroutine, at any time.
func (a *Account) Stop(cause *Stopped) {
	if a.stop.CompareAndSwap(nil, cause) {
		close(a.done)
	}
}

// Promise says that Finish will be called when the end of the execution was told of.
func (a *Account) Promise() { a.promised = true }

// Afterwards calls f: at once, or by Finish where that was promised and the execution was stopped. It is for releasing resources when that
// takes longer than the receiver of the outcome should wait.
func (a *Account) Afterwards(f func()) {
	if !a.promised || a.Stopped() == nil {
		f()
		return
	}
	a.afterwards = append(a.afterwards, f)
}

// Finish calls what was left for afterwards.
func (a *Account) Finish() {
	a.promised = false
	for _, f := range a.afterwards {
		f()
	}
	a.afterwards = nil
}

// Context returns a context that ends when the execution is stopped, for what does not charge by itself.
func (a *Account) Context() context.Context { return life{context.Background(), a} }

// life is an execution as a context.
type life struct {
	context.Context
	a *Account
}

func (l life) Done() <-chan struct{} { return l.a.done }

func (l life) Err() error {
	if l.a.Stopped() != nil {
		return context.Canceled
	}
	return nil
}

// Stopped returns why the execution was stopped, nil while it goes on.
func (a *Account) Stopped() *Stopped { return a.stop.Load() }

// Check returns the cause of a stop as an error, nil while the execution goes on.
func (a *Account) Check() error {
	if s := a.stop.Load(); s != nil {
		return s
	}
	return nil
}

// Charge counts gas, and fails with *Stopped when the execution has none left or was stopped. A negative charge is a refusal as well.
func (a *Account) Charge(gas int64) error {
	if s := a.stop.Load(); s != nil {
		a.late += max(gas, 0)
		return s
	}
	if gas < 0 || gas > a.limits.Gas-a.gas {
		a.gas = a.limits.Gas
		return a.end(&Stopped{Limit: Gas})
	}
	a.gas += gas
	a.keep()
	return nil
}

// Slice takes up to want units of gas in advance, for code that counts by itself, and fails if none is left. Unused gas is
// given back with Return; in between, Used and Now count it as used.
func (a *Account) Slice(want int64) (int64, error) {
	if s := a.stop.Load(); s != nil {
		return 0, s
	}
	got := min(want, a.limits.Gas-a.gas)
	if got <= 0 {
		return 0, a.end(&Stopped{Limit: Gas})
	}
	a.gas += got
	a.keep()
	return got, nil
}

// Return gives back what is left of slices. A negative amount was used beyond them; it counts even if it exceeds the bound.
func (a *Account) Return(gas int64) { a.gas -= gas }

// Late returns the gas that was asked for after the stop: what code that does not end at once has tried to do.
func (a *Account) Late() int64 { return a.late }

// Used returns the gas that was used.
func (a *Account) Used() int64 { return a.gas }

// Now returns the virtual time: the start, the time slept since, and a nanosecond for each unit of gas. A slice counts when it is taken.
func (a *Account) Now() time.Time {
	return a.start.Add(a.slept + time.Duration(min(max(a.gas, 0), math.MaxInt64/2)*nanosecondsPerGas))
}

// Worked returns how far gas has moved the virtual clock.
func (a *Account) Worked() time.Duration { return a.Now().Sub(a.start) - a.slept }

// Sleep moves the virtual clock. A program that sleeps beyond the execution's time limit is stopped at once, because it would never wake.
func (a *Account) Sleep(d time.Duration) error {
	if s := a.stop.Load(); s != nil {
		return s
	}
	if d = max(d, 0); d > a.limits.Time-a.slept {
		a.slept = a.limits.Time
		return a.end(&Stopped{TimedOut: true})
	}
	a.slept += d
	return nil
}

// Slept returns how far the virtual clock was moved by sleeping.
func (a *Account) Slept() time.Duration { return a.slept }

// Allocate counts memory that is held from now on. It returns ErrMemory for memory beyond the bound, and notes the bound as hit.
func (a *Account) Allocate(n int64) error {
	if n > a.limits.MemoryBytes-a.memory {
		a.Hit(Memory)
		return ErrMemory
	}
	a.memory += n
	a.peak = max(a.peak, a.memory)
	return nil
}

// Release counts memory that is held no more.
func (a *Account) Release(n int64) { a.memory -= n }

// Memory returns what is held now, and the most that was held at once.
func (a *Account) Memory() (now, peak int64) { return a.memory, a.peak }

// Spare returns how much memory may still be held.
func (a *Account) Spare() int64 { return a.limits.MemoryBytes - a.memory }

// Print counts n bytes of output and returns how many of them may be shown; with fewer than n the execution is stopped.
func (a *Account) Print(n int) (fits int, err error) {
	if s := a.stop.Load(); s != nil {
		return 0, s
	}
	if left := a.limits.OutputBytes - a.output; int64(n) > left {
		a.output = a.limits.OutputBytes
		return int(left), a.end(&Stopped{Limit: Output})
	}
	a.output += int64(n)
	return n, nil
}

// Enter goes one level deeper: a function of the shell, a program that a program starts. Each Enter without an error has its Leave.
func (a *Account) Enter() error {
	if a.depth >= a.limits.Depth {
		a.Hit(Depth)
		return ErrDepth
	}
	a.depth++
	return nil
}

// Leave ends what Enter began.
func (a *Account) Leave() { a.depth-- }

// ErrDepth refuses to go deeper.
var ErrDepth = errors.New("too many levels of calls")

// EndAt names bounds that end the whole execution when they are hit, though code would be told of an error only.
func (a *Account) EndAt(limits ...string) { a.final = limits }

// Hit notes that a bound was hit. The first one is kept.
func (a *Account) Hit(limit string) {
	if slices.Contains(a.final, limit) {
		a.Stop(&Stopped{Limit: limit})
	}
	if a.hit == "" {
		a.hit = limit
	}
}

// WasHit returns the first bound that was hit without ending the execution, "" for none.
func (a *Account) WasHit() string { return a.hit }

// Entropy fills p with bytes that the seed decides.
func (a *Account) Entropy(p []byte) {
	for len(p) >= 8 {
		binary.LittleEndian.PutUint64(p, a.chance.Uint64())
		p = p[8:]
	}
	if len(p) > 0 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], a.chance.Uint64())
		copy(p, last[:])
	}
}

// end stops the execution for a cause and returns the first one.
func (a *Account) end(cause *Stopped) error {
	a.Stop(cause)
	return a.stop.Load()
}
