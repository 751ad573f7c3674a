package simulation_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"agentbox/internal/testkit/simulation"
)

var (
	first = flag.Uint64("seed", 0, "the first seed")
	seeds = flag.Uint64("seeds", 200, "how many seeds are played")
)

// TestMain leaves one processor to the simulations, and lets no goroutine be interrupted, so that those that are ready at the same moment
// go on in the order in which they became so. The runtime reads that only at its start.
func TestMain(m *testing.M) {
	const undisturbed = "asyncpreemptoff=1"
	if !strings.Contains(os.Getenv("GODEBUG"), undisturbed) {
		os.Setenv("GODEBUG", strings.TrimPrefix(os.Getenv("GODEBUG")+","+undisturbed, ","))
		self, err := os.Executable()
		if err == nil {
			err = unix.Exec(self, os.Args, os.Environ())
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	runtime.GOMAXPROCS(1)
	os.Exit(m.Run())
}

// play plays the history of a seed, without the collector, which would let goroutines change places.
func play(t *testing.T, seed uint64) (h simulation.History) {
	t.Helper()
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	synctest.Test(t, func(*testing.T) { h = simulation.Simulate(seed) })
	return h
}

// TestSeeds plays the histories of many seeds. One that goes wrong is written to a file and says how to repeat it.
func TestSeeds(t *testing.T) {
	var sum simulation.History
	for seed := *first; seed < *first+*seeds; seed++ {
		h := play(t, seed)
		sum.Daemons, sum.Runs, sum.Effects, sum.Unknown = sum.Daemons+h.Daemons, sum.Runs+h.Runs, sum.Effects+h.Effects, sum.Unknown+h.Unknown
		sum.Used, sum.Switched, sum.Promoted = sum.Used+h.Used, sum.Switched+h.Switched, sum.Promoted+h.Promoted
		if done := seed - *first + 1; done%500 == 0 {
			t.Logf("%d of %d seeds, %d effects", done, *seeds, sum.Effects)
		}
		if len(h.Wrong) == 0 {
			continue
		}
		file := filepath.Join(os.TempDir(), fmt.Sprintf("simulation-%d.txt", seed))
		if err := os.WriteFile(file, []byte(h.String()), 0o600); err != nil {
			t.Error(err)
		}
		for _, wrong := range h.Wrong {
			t.Errorf("seed %d: %s", seed, wrong)
		}
		t.Errorf("the history of seed %d is in %s; repeat it with\n\tgo test ./internal/testkit/simulation -run TestSeeds -seed %d -seeds 1",
			seed, file, seed)
	}
	t.Logf("%d seeds: %d daemons, %d runs, %d effects, %d unknown, %d approvals used, %d times the kill switch, %d promotions",
		*seeds, sum.Daemons, sum.Runs, sum.Effects, sum.Unknown, sum.Used, sum.Switched, sum.Promoted)
	if *seeds >= 100 && (sum.Unknown == 0 || sum.Used == 0 || sum.Switched == 0 || sum.Promoted == 0 || sum.Effects == 0) {
		t.Errorf("the histories do too little: %+v", sum)
	}
}

// One seed is one history, byte for byte.
func TestSameSeedSameHistory(t *testing.T) {
	if shuffled {
		t.Skip("the race detector puts goroutines that are ready at the same moment into a new order each time")
	}
	// On several processors the machine chooses who is first of those that are ready at the same moment, the more often the busier it is.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for seed := range uint64(12) {
		once, again := play(t, seed), play(t, seed)
		if once.String() == again.String() {
			continue
		}
		for i := range min(len(once.Lines), len(again.Lines)) {
			if once.Lines[i] != again.Lines[i] {
				t.Errorf("seed %d parts at line %d, after\n%s\nonce\n%s\nagain\n%s", seed, i, few(once.Lines[max(i-5, 0):i]),
					few(once.Lines[i:]), few(again.Lines[i:]))
				break
			}
		}
	}
}

// few returns the first lines.
func few(lines []string) string { return strings.Join(lines[:min(5, len(lines))], "\n") }
