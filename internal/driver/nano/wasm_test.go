package nano

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/spacetest"
)

// TestMain makes the test's program a worker where it was started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "nano-worker" {
		if err := Worker(context.Background(), os.Args[2:], os.Stdin, os.Stdout, func() { os.Exit(1) }); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 4 && os.Args[1] == failsToPrepare && os.Args[4] == prepares {
		os.Exit(prepareLate(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// wall is the real clock.
type wall struct{}

func (wall) Now() time.Time { return time.Now() }

func (wall) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

func openTier(t testing.TB, workers int) *Tier {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	tier, err := New(Options{
		Command: []string{self, "nano-worker"}, Cache: filepath.Join(cache, "agentbox", "wasm-test"), Workers: workers,
		Scratch: filepath.Join(t.TempDir(), "nano"), Entropy: rand.Reader, Clock: wall{},
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
	return tier
}

// place makes a folder for the files of a space.
func place(t *testing.T) (dir string, uid int) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "closed", "files")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir, 0
}

func issue(a policy.Action) policy.Permit {
	canonical, err := a.Canonical()
	if err != nil {
		panic(err)
	}
	return policy.Issue(canonical, nil)
}

// createPermit is the permit that a specification needs.
func createPermit(t testing.TB, spec space.Spec) policy.Permit {
	t.Helper()
	raw, err := json.Marshal(spec.Limits)
	if err != nil {
		t.Fatal(err)
	}
	return issue(policy.Action{Type: policy.SpaceStart, Workspace: id.DefaultWorkspace, Space: spec.ID, Limits: raw})
}

func host(t *testing.T) spacetest.Host { return hostOf(t, 2) }

func hostOf(t *testing.T, workers int) spacetest.Host {
	return spacetest.Host{Tier: openTier(t, workers), Permit: issue, Place: place, IDs: id.NewSource(time.Now, rand.Reader)}
}

func TestConformance(t *testing.T) { spacetest.Run(t, host(t)) }

func TestProbe(t *testing.T) {
	r := openTier(t, 1).Probe(t.Context())
	if !r.OK || len(r.Checks) < 4 {
		t.Errorf("got %+v", r)
	}
}
