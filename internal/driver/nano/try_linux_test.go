package nano

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
)

// workersThat counts the child processes that a tier has told a word.
func workersThat(t *testing.T, tier *Tier, word string) (count int) {
	t.Helper()
	for _, pid := range children(t) {
		command, err := os.ReadFile("/proc/" + pid + "/cmdline")
		if err == nil && strings.HasSuffix(string(command), "\x00"+word+"\x00"+tier.o.Cache+"\x00") {
			count++
		}
	}
	return count
}

// openTierAlone is openTier with another name for the cache, by which its workers are told from those of other tests.
func openTierAlone(t *testing.T) *Tier {
	t.Helper()
	like := openTier(t, 1)
	if err := os.MkdirAll(like.o.Cache, 0o700); err != nil {
		t.Fatal(err)
	}
	o := like.o
	o.Cache, o.Scratch, o.Workers = filepath.Join(t.TempDir(), "cache"), filepath.Join(t.TempDir(), "nano"), 2
	if err := os.Symlink(like.o.Cache, o.Cache); err != nil {
		t.Fatal(err)
	}
	tier, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tier.Close(); err != nil {
			t.Errorf("close the tier: %v", err)
		}
	})
	return tier
}

// TestATryLoadsNoInterpreter: a daemon is asked whether its tiers work as soon as it runs, and every ten minutes. A daemon in which
// nobody makes a nano space has no worker after that.
func TestATryLoadsNoInterpreter(t *testing.T) {
	tier := openTierAlone(t)
	for range 2 {
		if err := tier.Try(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{serves, tries} {
			if got := workersThat(t, tier, word); got != 0 {
				t.Errorf("%d workers that %s after a try, want none", got, word)
			}
		}
	}

	tier.warm()
	if err := tier.Try(t.Context()); err != nil { // waits for the worker of the spaces
		t.Fatal(err)
	}
	if got := workersThat(t, tier, serves); got != 1 {
		t.Errorf("%d workers serve once there are spaces, want 1: the try was not of their worker", got)
	}
}

// TestATryFindsWhatKeepsWorkersFromStarting: a try without interpreters looks whether the folder can be trusted from which a worker loads
// them.
func TestATryFindsWhatKeepsWorkersFromStarting(t *testing.T) {
	tier := openTier(t, 1)
	cache := filepath.Join(t.TempDir(), "cache")
	if err := os.Mkdir(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(cache, 0o777); err != nil {
		t.Fatal(err)
	}
	tier.o.Cache = cache
	if err := tier.Try(t.Context()); fault.CodeOf(err) != "worker_not_started" {
		t.Errorf("a try with a folder in which others may write: got %v, want worker_not_started", err)
	}
}
