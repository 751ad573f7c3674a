package disk_test

import (
	"crypto/rand"
	"os"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space/filestest"
	"agentbox/internal/driver/disk"
	"agentbox/internal/driver/disk/frames"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/kernel/blob/blobtest"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/kernel/livestream/livestreamtest"
	"agentbox/internal/kernel/vault"
)

// spaceUID is the host uid of the tests' spaces, where the test may give files away.
func spaceUID() int {
	if os.Geteuid() == 0 {
		return 61_234
	}
	return 0
}

func issue(t testing.TB) func(policy.Action) policy.Permit {
	return func(a policy.Action) policy.Permit {
		t.Helper()
		canonical, err := a.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		return policy.Issue(canonical, nil)
	}
}

func openSpaces(t testing.TB, sources ...string) filestest.Subject {
	t.Helper()
	return openSpacesIn(t, t.TempDir(), sources...)
}

// keys are those of every test, so that what one store sealed another opens.
func keys(t testing.TB) vault.Keys {
	t.Helper()
	k := memory.NewKeys(constant{})
	for _, tree := range []string{"blobs", "frames"} {
		if _, err := k.Plant(tree); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

// constant is entropy that is always the same: the seed of each tree is, and so are its keys.
type constant struct{}

// Read implements io.Reader.
func (constant) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 7
	}
	return len(p), nil
}

func openSpacesIn(t testing.TB, dir string, sources ...string) filestest.Subject {
	t.Helper()
	s, err := disk.OpenSpaces(t.Context(), dir, keys(t), rand.Reader, sources...)
	if err != nil {
		t.Fatal(err)
	}
	return filestest.Subject{Store: s, UID: spaceUID(), Issue: issue(t)}
}

func TestFiles(t *testing.T) {
	filestest.Run(t, func(t *testing.T) filestest.Subject { return openSpaces(t) })
}

func TestBlobs(t *testing.T) {
	dirs := map[blob.Store]string{}
	open := func(t *testing.T, dir string) blob.Store {
		s, err := disk.OpenBlobs(t.Context(), dir, keys(t), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		dirs[s] = dir
		return s
	}
	blobtest.Run(t, issue(t),
		func(t *testing.T) blob.Store { return open(t, t.TempDir()) },
		func(t *testing.T, s blob.Store) blob.Store { return open(t, dirs[s]) })
}

type clock struct{ at time.Time }

func (c clock) Now() time.Time { return c.at }
func (clock) NewTimer(time.Duration) (<-chan time.Time, func()) {
	return make(chan time.Time), func() {}
}

func openFrames(t testing.TB, dir string, c event.Clock, max int64) *frames.Store {
	t.Helper()
	s, err := frames.Open(dir, keys(t), rand.Reader, c, max)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestFrames(t *testing.T) {
	type made struct {
		dir   string
		clock event.Clock
	}
	by := map[livestream.Store]made{}
	open := func(t *testing.T, m made) livestream.Store {
		s := openFrames(t, m.dir, m.clock, 0)
		by[s] = m
		return s
	}
	livestreamtest.Run(t,
		func(t *testing.T, c event.Clock) livestream.Store { return open(t, made{t.TempDir(), c}) },
		func(t *testing.T, s livestream.Store) livestream.Store {
			if err := s.(*frames.Store).Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, by[s])
		})
}
