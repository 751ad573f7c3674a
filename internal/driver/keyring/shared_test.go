package keyring_test

import (
	"crypto/rand"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"agentbox/internal/driver/keyring"
	"agentbox/internal/kernel/vault"
	"agentbox/internal/kernel/vault/vaulttest"
)

// hand is a clock that is set by hand.
type hand struct {
	mu sync.Mutex
	at time.Time
}

func (h *hand) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func (h *hand) passes(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = h.at.Add(d)
}

func shared(t *testing.T, dir string, now func() time.Time) *keyring.Keyring {
	t.Helper()
	k, err := keyring.OpenShared(dir, rand.Reader, now)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestConformanceOfASharedKeyring(t *testing.T) {
	dirs := map[vault.Keys]string{}
	vaulttest.Run(t, func(t *testing.T) vault.Keys {
		dir := filepath.Join(t.TempDir(), "keys")
		k := shared(t, dir, time.Now)
		dirs[k] = dir
		return k
	}, func(t *testing.T, k vault.Keys) vault.Keys {
		return shared(t, dirs[k], time.Now)
	})
}

// Programs that meet a tree at the same moment have the same one.
func TestATreeIsPlantedOnceByAll(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	var mu sync.Mutex
	planted := map[vault.Generation]int{}
	for range 8 {
		k := shared(t, dir, time.Now)
		wg.Go(func() {
			g, err := k.Plant("blobs")
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			planted[g]++
		})
	}
	wg.Wait()
	if len(planted) != 1 {
		t.Errorf("the tree was planted as %v, want one generation", planted)
	}
}

// A second program keeps a forgotten key for CheckTime at most. After a stop it checks before it opens anything.
func TestWhatAnotherForgetsIsDropped(t *testing.T) {
	dir, clock := t.TempDir(), &hand{at: time.Unix(1_000_000_000, 0)}
	mine, theirs := shared(t, dir, clock.now), shared(t, dir, clock.now)
	g, err := mine.Plant("blobs")
	if err != nil {
		t.Fatal(err)
	}
	want, err := mine.Key("blobs", g, 7)
	if err != nil {
		t.Fatal(err)
	}
	// A tree that was planted a moment ago is found at once.
	if got, err := theirs.Key("blobs", g, 7); err != nil || got != want {
		t.Errorf("another program has the key %x, %v", got[:4], err)
	}
	if err := mine.Forget("blobs", 7); err != nil {
		t.Fatal(err)
	}
	clock.passes(keyring.CheckTime - 1)
	if _, err := theirs.Key("blobs", g, 7); err != nil {
		t.Errorf("just before it has to look: %v", err)
	}
	clock.passes(1)
	if _, err := theirs.Key("blobs", g, 7); !errors.Is(err, vault.ErrForgotten) {
		t.Errorf("once it has to look: %v, want %v", err, vault.ErrForgotten)
	}
	if err := mine.Forget("blobs", 8); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Refresh(); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Holds("blobs", g, 8); !errors.Is(err, vault.ErrForgotten) {
		t.Errorf("once it was told: %v, want %v", err, vault.ErrForgotten)
	}
	// A clock that was set back is no reason to believe what is in memory.
	if err := mine.Forget("blobs", 9); err != nil {
		t.Fatal(err)
	}
	clock.passes(-time.Hour)
	if _, err := theirs.Key("blobs", g, 9); !errors.Is(err, vault.ErrForgotten) {
		t.Errorf("with its clock set back: %v, want %v", err, vault.ErrForgotten)
	}
}

// A program that forgets a key does not bring back keys that other programs forgot meanwhile, even if its copy in memory is old.
func TestForgettingBringsNothingBack(t *testing.T) {
	dir, still := t.TempDir(), &hand{at: time.Unix(1_000_000_000, 0)}
	first := shared(t, dir, still.now)
	g, err := first.Plant("blobs")
	if err != nil {
		t.Fatal(err)
	}
	const programs, each = 4, 10
	var wg sync.WaitGroup
	for n := range programs {
		k := shared(t, dir, time.Now)
		wg.Go(func() {
			for i := range each {
				if err := k.Forget("blobs", uint64(n*each+i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := first.Forget("blobs", programs*each); err != nil {
		t.Fatal(err)
	}
	for leaf := range uint64(programs*each + 1) {
		if err := open(t, dir).Holds("blobs", g, leaf); !errors.Is(err, vault.ErrForgotten) {
			t.Errorf("leaf %d is there again: %v", leaf, err)
		}
	}
	if err := first.Holds("blobs", g, programs*each+1); err != nil {
		t.Errorf("a leaf that nobody has forgotten: %v", err)
	}
}
