package disk_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/filestest"
	"agentbox/internal/driver/disk"
)

const (
	origin id.Space = "spc_01ARZ3NDEKTSV4RRFFQ69G5FAA"
	forkA  id.Space = "spc_01ARZ3NDEKTSV4RRFFQ69G5FAB"
	forkB  id.Space = "spc_01ARZ3NDEKTSV4RRFFQ69G5FAC"
)

// originUID is the host uid of the space that is forked, which is another than that of its forks.
func originUID() int {
	if uid := spaceUID(); uid != 0 {
		return uid + 1
	}
	return 0
}

func noHalt() error { return nil }

// forks is a store in which every space that would be made with nothing in it is made as a fork of one that is full: of its snapshot from when it
// was empty. So all that the origin holds lies below the new space's files, hidden.
type forks struct {
	*disk.Spaces
	t *testing.T
}

// Create implements space.Store.
func (s forks) Create(ctx context.Context, p policy.Permit, uid int, limits space.Limits, from space.Seed) (int, error) {
	if from != (space.Seed{}) {
		return s.Spaces.Create(ctx, p, uid, limits, from)
	}
	a, err := p.Redeem(policy.SpaceCreate, policy.SpaceFork)
	if err != nil {
		return 0, err
	}
	made, empty := shared(s.t, s.Spaces)
	if made != nil {
		return 0, made
	}
	return s.Spaces.Create(ctx, issue(s.t)(policy.Action{Type: policy.SpaceFork, Space: a.Space, Target: string(origin), Content: empty}), uid, limits,
		space.Seed{Space: origin, Snapshot: empty})
}

// List implements space.Store: it does not tell of the origin.
func (s forks) List(ctx context.Context) ([]id.Space, error) {
	found, err := s.Spaces.List(ctx)
	return slices.DeleteFunc(found, func(sp id.Space) bool { return sp == origin }), err
}

// shared makes the origin, unless it is there, and returns its snapshot without files. It is full and shares its files when this returns.
func shared(t *testing.T, s *disk.Spaces) (error, event.Digest) {
	t.Helper()
	ctx := t.Context()
	if _, err := s.Create(ctx, issue(t)(policy.Action{Type: policy.SpaceCreate, Space: origin}), originUID(), filestest.Limits, space.Seed{}); err != nil && fault.CodeOf(err) != "space_exists" {
		return err, event.Digest{}
	}
	past, err := s.History(origin, originUID(), filestest.Limits)
	if err != nil {
		return err, event.Digest{}
	}
	kept, _, err := past.Kept(ctx)
	if err != nil {
		return err, event.Digest{}
	}
	if len(kept) > 0 {
		return nil, kept[0].Root
	}
	empty, err := past.Keep(ctx)
	if err != nil {
		return err, empty.Root
	}
	_, dir, err := s.Open(origin, originUID(), filestest.Limits)
	if err != nil {
		return err, empty.Root
	}
	fill(t, dir)
	past.Disturb()
	if _, err := past.Keep(ctx); err != nil {
		return err, empty.Root
	}
	if err := s.Share(ctx, origin, originUID(), filestest.Limits, noHalt); err != nil {
		return err, empty.Root
	}
	_, after, err := s.Open(origin, originUID(), filestest.Limits)
	if err == nil && after == dir {
		t.Skip("this host lets spaces share no files") // said once, by TestSharingIsPossible
	}
	return err, empty.Root
}

// fill puts into a folder what the suite's own files may be called.
func fill(t testing.TB, dir string) {
	t.Helper()
	for _, name := range []string{"f", "a/one", "a/b/two", "run.sh", "empty/not", "large", "new", "x/y/z", "deep/er/still", "file", "link/is/a/folder"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("of the origin: "+name), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	give(t, dir, originUID())
}

// give gives everything below a folder to a user.
func give(t testing.TB, dir string, uid int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || uid == 0 {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A fork that shares its files passes all that a space with files of its own does.
func TestFilesOfForks(t *testing.T) {
	filestest.Run(t, func(t *testing.T) filestest.Subject {
		s := openSpaces(t)
		s.Store = forks{s.Store.(*disk.Spaces), t}
		return s
	})
}
