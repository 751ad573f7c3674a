//go:build linux

package namespace

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/spacetest"
	"agentbox/internal/driver/disk"
	"agentbox/internal/driver/memory"
)

// beneathOrigin is what a fork must not see: a file that its origin had when the two began to share files, and that the fork's snapshot
// has not.
const beneathOrigin = "of the origin alone"

// overOthers makes folders for spaces that are forks: their files lie over those of another space, hidden, under another user.
func overOthers(t *testing.T) func(t *testing.T) (string, int) {
	t.Helper()
	if err := disk.Sharing(t.TempDir()); err != nil {
		t.Skipf("this host lets forks share no files: %v", err)
	}
	ids := id.NewSource(time.Now, rand.Reader)
	return func(t *testing.T) (string, int) {
		t.Helper()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		store, err := disk.OpenSpaces(t.Context(), t.TempDir(), memory.NewKeys(rand.Reader), rand.Reader)
		must(err)
		t.Cleanup(func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
		origin, fork := id.New[id.Space](ids), id.New[id.Space](ids)
		owner, uid, limits := 700_000+int(nextUID.Add(1)), 700_000+int(nextUID.Add(1)), space.DefaultLimits()
		_, err = store.Create(t.Context(), issue(policy.Action{Type: policy.SpaceCreate, Space: origin}), owner, limits, space.Seed{})
		must(err)
		past, err := store.History(origin, owner, limits)
		must(err)
		empty, err := past.Keep(t.Context())
		must(err)
		_, dir, err := store.Open(origin, owner, limits)
		must(err)
		for _, name := range []string{"escape", "f", "a"} {
			must(os.WriteFile(filepath.Join(dir, name), []byte(beneathOrigin), 0o666))
			must(os.Chown(filepath.Join(dir, name), owner, owner))
		}
		past.Disturb()
		_, err = past.Keep(t.Context())
		must(err)
		must(store.Share(t.Context(), origin, owner, limits, func() error { return nil }))
		permit := issue(policy.Action{Type: policy.SpaceFork, Space: fork, Target: string(origin), Content: empty.Root})
		_, err = store.Create(t.Context(), permit, uid, limits, space.Seed{Space: origin, Snapshot: empty.Root})
		must(err)
		_, dir, err = store.Open(fork, uid, limits)
		must(err)
		if !strings.HasPrefix(dir, "/proc/self/fd/") {
			t.Fatalf("the fork has the folder %s of its own", dir)
		}
		return strings.Replace(dir, "self", fmt.Sprint(os.Getpid()), 1), uid
	}
}

// A space whose files lie over others is a space like any other.
func TestConformanceOfForks(t *testing.T) {
	h := host(t)
	h.Place = overOthers(t)
	spacetest.Run(t, h)
}

// No way leads out of one, nor down to what lies beneath its files.
func TestEscapeFromForks(t *testing.T) {
	h := host(t)
	h.Place = overOthers(t)
	tryAll(t, imprison(t, h), false)
}

func TestForksDoNotSeeWhatLiesBeneath(t *testing.T) {
	h := host(t)
	h.Place = overOthers(t)
	spec := h.Spec(t)
	living := h.Create(t, spec)
	r := h.Exec(t, living, spacetest.Shell(spec.ID, `
		ls -A; echo new > f; cat f; rm f; ls -A
		mknod wh c 0 0; for name in trusted.overlay.opaque trusted.overlay.redirect trusted.overlay.whiteout security.capability; do setfattr -n $name -v y . && echo "set $name"; done
		mkdir d; mv d e; touch e/x; chmod 4755 e/x; ls -A . e; find / -xdev -name staging -o -xdev -name trash 2>/dev/null; cat ../staging/* /workspace/../trash/* 2>/dev/null
		true`))
	if want := "new\ne\nwh\n"; strings.Contains(r.Stdout, beneathOrigin) || strings.Contains(r.Stdout, "set ") || r.Code != 0 {
		t.Errorf("got %+v, want about %q", r, want)
	}
	if got := strings.Fields(r.Stdout); len(got) > 0 && got[0] != "new" {
		t.Errorf("it began with %q", got[0])
	}
}
