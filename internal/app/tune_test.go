package app

import (
	"context"
	"log/slog"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
)

// TestRestComesAfterWork gives memory back once for each time that there was something to do, when that has ended.
func TestRestComesAfterWork(t *testing.T) {
	const busy, quiet = 100 << 20, 1 << 10
	var (
		r     rest
		taken uint64
	)
	for n, x := range []struct {
		more uint64
		want bool
	}{
		{busy, false}, {busy, false}, {quiet, true}, // it has begun, and has nothing to do
		{quiet, false}, {quiet, false}, // there is nothing to give back
		{1 << 20, false}, {busy, false}, {busy, false}, {quiet, true}, {quiet, false},
		{worthBytes - 1<<20, false}, {quiet, false}, {restBytes, true}, // little, and little more
	} {
		if taken += x.more; r.step(taken) != x.want {
			t.Errorf("step %d, %d bytes more: got %v, want %v", n+1, x.more, !x.want, x.want)
		}
	}
}

// TestTheHeapIsGivenBack leaves rubbish, as much as a daemon does that was busy: at rest it is the system's again.
func TestTheHeapIsGivenBack(t *testing.T) {
	const rubbish = 256 << 20
	before := kept()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it lies there until somebody collects it
	for range rubbish >> 20 {
		runtime.KeepAlive(make([]byte, 1<<20))
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		a := newApp(Config{}, Clock{}, slog.New(slog.DiscardHandler))
		ended := make(chan error, 1)
		go func() { ended <- a.upkeep.releaseMemory(ctx) }()
		c, _ := a.clock.NewTimer(3 * restPeriod)
		<-c
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if after := kept(); after > before+rubbish/8 {
		t.Errorf("the heap keeps %d bytes, and kept %d before there was rubbish", after, before)
	}
}

// kept is how much memory of the system the heap has, used or not.
func kept() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapSys - m.HeapReleased
}

// TestTheHeapGrowsByAPart has a small heap grow to nine times what lives, a larger one by so many bytes, and a large one to twice what
// lives.
func TestTheHeapGrowsByAPart(t *testing.T) {
	for lives, want := range map[uint64]int{0: gcPercent, 1 << 20: gcPercent, 12 << 20: gcPercent, 24 << 20: 400, 48 << 20: 200, 96 << 20: 100,
		1 << 30: 100} {
		if got := percent(lives); got != want {
			t.Errorf("%d bytes live: got %d, want %d", lives, got, want)
		}
	}
}
