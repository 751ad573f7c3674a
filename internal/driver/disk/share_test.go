package disk_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/filestest"
	"agentbox/internal/driver/disk"
	"agentbox/internal/driver/disk/backup"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/seal"
	"agentbox/internal/kernel/vault"
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

// forks is a store in which every space that would be made with nothing in it is made as a fork of one that is full: of its snapshot from
// when it was empty. So all that the origin holds lies below the new space's files, hidden.
type forks struct {
	*disk.Spaces
	t *testing.T
}

// Create implements space.Store.
func (s forks) Create(ctx context.Context, p policy.Permit, uid int, limits space.Limits, from space.Seed) (space.Sown, error) {
	if from != (space.Seed{}) {
		return s.Spaces.Create(ctx, p, uid, limits, from)
	}
	a, err := p.Redeem(policy.SpaceCreate, policy.SpaceFork)
	if err != nil {
		return space.Sown{}, err
	}
	empty, err := shared(s.t, s.Spaces)
	if err != nil {
		return space.Sown{}, err
	}
	return s.Spaces.Create(ctx, issue(s.t)(policy.Action{Type: policy.SpaceFork, Space: a.Space, Target: string(origin), Content: empty}), uid,
		limits,
		space.Seed{Space: origin, Snapshot: empty})
}

// List implements space.Store: it does not tell of the origin.
func (s forks) List(ctx context.Context) ([]id.Space, error) {
	found, err := s.Spaces.List(ctx)
	return slices.DeleteFunc(found, func(sp id.Space) bool { return sp == origin }), err
}

// shared makes the origin, unless it is there, and returns its snapshot without files. It is full and shares its files when this returns.
func shared(t *testing.T, s *disk.Spaces) (event.Digest, error) {
	t.Helper()
	ctx := t.Context()
	if _, err := s.Create(ctx, issue(t)(policy.Action{Type: policy.SpaceCreate, Space: origin}), originUID(), filestest.Limits,
		space.Seed{}); err != nil && fault.CodeOf(err) != "space_exists" {
		return event.Digest{}, err
	}
	past, err := s.History(origin, originUID(), filestest.Limits)
	if err != nil {
		return event.Digest{}, err
	}
	kept, _, err := past.Kept(ctx)
	if err != nil {
		return event.Digest{}, err
	}
	if len(kept) > 0 {
		return kept[0].Root, nil
	}
	empty, err := past.Keep(ctx)
	if err != nil {
		return empty.Root, err
	}
	_, dir, err := s.Open(origin, originUID(), filestest.Limits)
	if err != nil {
		return empty.Root, err
	}
	fill(t, dir)
	past.Disturb()
	if _, err := past.Keep(ctx); err != nil {
		return empty.Root, err
	}
	if err := s.Share(ctx, origin, originUID(), filestest.Limits, noHalt); err != nil {
		return empty.Root, err
	}
	_, after, err := s.Open(origin, originUID(), filestest.Limits)
	if err == nil && after == dir {
		unshared(t)
	}
	return empty.Root, err
}

// unshared ends a test for which files should have become shared: it fails unless this host cannot do that, which TestSharingIsPossible
// says.
func unshared(t *testing.T) {
	t.Helper()
	why := disk.Sharing(t.TempDir())
	if why == nil {
		t.Fatal("the files did not become shared")
	}
	t.Skipf("this host lets spaces share no files: %v", why)
}

// fill puts into a folder what the suite's own files may be called.
func fill(t testing.TB, dir string) {
	t.Helper()
	for _, name := range []string{"f", "a/one", "a/b/two", "run.sh", "empty/not", "large", "new", "x/y/z", "deep/er/still", "file",
		"link/is/a/folder"} {
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

// lair is a store with an origin that shares its files.
type lair struct {
	t     *testing.T
	root  string
	keys  vault.Keys
	store *disk.Spaces
}

func newLair(t *testing.T) *lair {
	t.Helper()
	l := &lair{t: t, root: filepath.Join(t.TempDir(), "spaces")}
	l.open()
	if _, err := shared(t, l.store); err != nil {
		t.Fatal(err)
	}
	return l
}

// open opens the store as the next daemon does.
func (l *lair) open() {
	l.t.Helper()
	if l.store != nil {
		if err := l.store.Close(); err != nil {
			l.t.Fatal(err)
		}
	}
	if l.keys == nil {
		l.keys = keys(l.t)
	}
	var err error
	l.store, err = disk.OpenSpaces(l.t.Context(), l.root, l.keys, rand.Reader)
	l.must(err)
	l.t.Cleanup(func() { _ = l.store.Close() })
}

func (l *lair) past(sp id.Space, uid int) space.History {
	l.t.Helper()
	past, err := l.store.History(sp, uid, filestest.Limits)
	l.must(err)
	return past
}

func (l *lair) dir(sp id.Space, uid int) string {
	l.t.Helper()
	_, dir, err := l.store.Open(sp, uid, filestest.Limits)
	l.must(err)
	return dir
}

// keep makes a snapshot of a space in which code ran.
func (l *lair) keep(sp id.Space, uid int) space.Snapshot {
	l.t.Helper()
	past := l.past(sp, uid)
	past.Disturb()
	s, err := past.Keep(l.t.Context())
	l.must(err)
	return s
}

// fork forks a snapshot of the origin.
func (l *lair) fork(made id.Space, uid int, at event.Digest) (string, error) {
	l.t.Helper()
	permit := issue(l.t)(policy.Action{Type: policy.SpaceFork, Space: made, Target: string(origin), Content: at})
	if _, err := l.store.Create(l.t.Context(), permit, uid, filestest.Limits, space.Seed{Space: origin, Snapshot: at}); err != nil {
		return "", err
	}
	return l.dir(made, uid), nil
}

func (l *lair) must(errs ...error) {
	l.t.Helper()
	for _, err := range errs {
		if err != nil {
			l.t.Fatal(err)
		}
	}
}

// takes returns what a space, or the frozen trees, occupy on the disk.
func (l *lair) takes(name string) int64 {
	l.t.Helper()
	used, err := beneath.Measure(l.t.Context(), filepath.Join(l.root, name))
	l.must(err)
	return used.Bytes
}

func TestSharingIsPossible(t *testing.T) {
	err := disk.Sharing(filepath.Join(t.TempDir(), "not", "there", "yet"))
	if err != nil && os.Geteuid() == 0 {
		if os.Getenv("CI") != "" && !portable {
			t.Errorf("where everything is tested spaces have to be able to share files: %v", err)
		}
		t.Logf("this host lets spaces share no files, so all that is said of it here is left out: %v", err)
	}
	if err == nil && os.Geteuid() != 0 {
		t.Error("a user without privileges can mount overlays")
	}
}

func TestForksShareWhatTheyDoNotChange(t *testing.T) {
	l := newLair(t)
	big := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	above := l.dir(origin, originUID())
	l.must(os.WriteFile(filepath.Join(above, "later"), []byte(big), 0o644), os.Chmod(filepath.Join(above, "run.sh"), 0o700))
	give(t, above, originUID())
	now := l.keep(origin, originUID())
	a, err := l.fork(forkA, spaceUID(), now.Root)
	l.must(err)
	b, err := l.fork(forkB, spaceUID(), now.Root)
	l.must(err)
	want := filestest.Tree(t, above)
	for _, dir := range []string{a, b} {
		if got := filestest.Tree(t, dir); !slices.Equal(got, want) {
			t.Errorf("a fork holds\n%v\nwant\n%v", got, want)
		}
	}
	// A fork has the origin's files since the first fork, and nothing else of it.
	if got := l.takes(string(forkA) + "/upper"); got < 1<<20 || got > 2<<20 {
		t.Errorf("the fork takes %d bytes beside its snapshot", got)
	}
	for _, change := range []error{
		os.WriteFile(filepath.Join(a, "f"), []byte("of fork A"), 0o644), os.Rename(filepath.Join(a, "a"), filepath.Join(a, "moved")),
		os.Remove(filepath.Join(b, "a/one")), os.WriteFile(filepath.Join(above, "new"), []byte("of the origin, later"), 0o644),
	} {
		l.must(change)
	}
	for path, want := range map[string]string{
		a + "/f": "of fork A", b + "/f": "of the origin: f", above + "/f": "of the origin: f", a + "/moved/one": "of the origin: a/one",
		a + "/new":       "of the origin: new",
		above + "/a/one": "of the origin: a/one", above + "/new": "of the origin, later",
	} {
		if raw, err := os.ReadFile(path); err != nil || string(raw) != want {
			t.Errorf("%s holds %q, %v; want %q", path, raw, err, want)
		}
	}
	// The origin may go; the tree goes with the last of them.
	snapshots := map[id.Space]event.Digest{forkA: l.keep(forkA, spaceUID()).Root, forkB: l.keep(forkB, spaceUID()).Root}
	l.must(l.store.Remove(t.Context(), origin))
	for fork, want := range snapshots {
		l.open()
		if got := l.keep(fork, spaceUID()); got.Root != want {
			t.Errorf("without the origin and after a restart %s is %v, want %v", fork, got.Root, want)
		}
		if found, err := os.ReadDir(filepath.Join(l.root, ".frozen")); err != nil || len(found) != 1 {
			t.Errorf("there are the trees %v, %v", found, err)
		}
		l.must(l.store.Remove(t.Context(), fork))
	}
	for _, dir := range []string{".frozen", ".trash"} {
		if left, err := os.ReadDir(filepath.Join(l.root, dir)); err != nil || len(left) != 0 {
			t.Errorf("left in %s are %v, %v", dir, left, err)
		}
	}
}

// The promises to a space that is forked: it goes on as if nothing had happened.
func TestTheOriginIsAsItWas(t *testing.T) {
	l := &lair{t: t, root: filepath.Join(t.TempDir(), "spaces")}
	l.open()
	permit := issue(t)(policy.Action{Type: policy.SpaceCreate, Space: origin})
	_, err := l.store.Create(t.Context(), permit, originUID(), filestest.Limits, space.Seed{})
	l.must(err)
	before := l.dir(origin, originUID())
	fill(t, before)
	l.must(os.Link(filepath.Join(before, "f"), filepath.Join(before, "g")), os.Symlink("f", filepath.Join(before, "to")))
	old := l.keep(origin, originUID())
	l.must(os.WriteFile(filepath.Join(before, "new"), []byte("changed"), 0o644))
	give(t, before, originUID())
	now := l.keep(origin, originUID())
	halted := 0
	halt := func() error {
		halted++
		if _, err := os.Lstat(filepath.Join(before, "f")); err != nil {
			t.Errorf("the files moved before what runs among them was ended: %v", err)
		}
		return nil
	}
	for range 2 {
		l.must(l.store.Share(t.Context(), origin, originUID(), filestest.Limits, halt))
	}
	after := l.dir(origin, originUID())
	if after == before {
		unshared(t)
	}
	if halted != 1 {
		t.Errorf("what runs was ended %d times, want once", halted)
	}
	if quick, err := l.past(origin, originUID()).Keep(t.Context()); err != nil || quick != now {
		t.Errorf("it is %+v, %v; want %+v", quick, err, now)
	}
	if whole := l.keep(origin, originUID()); whole != now {
		t.Errorf("looked at, it is %+v; want %+v", whole, now)
	}
	l.must(os.WriteFile(filepath.Join(after, "f"), []byte("through one name"), 0o644))
	if raw, err := os.ReadFile(filepath.Join(after, "g")); err != nil || string(raw) != "through one name" {
		t.Errorf("the file's other name shows %q, %v", raw, err)
	}
	l.open()
	past := l.past(origin, originUID())
	for _, to := range []event.Digest{old.Root, now.Root} {
		past.Disturb()
		if _, reached, err := past.Rewind(t.Context(), issue(t)(policy.Action{Type: policy.SpaceRewind, Space: origin,
			Content: to})); err != nil || reached.Root != to {
			t.Errorf("rewound to %v: %v, %v", to, reached, err)
		}
	}
}

// A power cut or a kill while files become shared leaves them as they were, or shared.
func TestSharingThatACrashInterrupts(t *testing.T) {
	l := newLair(t)
	l.must(l.store.Close())
	home, tree := filepath.Join(l.root, string(origin)), filepath.Join(l.root, ".frozen", string(origin))
	back := func() error { return os.Rename(filepath.Join(tree, "files"), filepath.Join(home, "files")) }
	for name, crash := range map[string]func() error{
		"all was done":           func() error { return nil },
		"the files did not move": back,
		"nothing else was there": func() error {
			return errors.Join(back(), os.RemoveAll(tree), os.RemoveAll(filepath.Join(home, "work")))
		},
		"what is tried was left":   func() error { return os.MkdirAll(filepath.Join(l.root, ".probe-1/lower/files"), 0o755) },
		"a tree without any space": func() error { return os.MkdirAll(filepath.Join(l.root, ".frozen", string(forkB), "files"), 0o755) },
	} {
		l.must(crash())
		l.open()
		dir := l.dir(origin, originUID())
		if raw, err := os.ReadFile(filepath.Join(dir, "a/one")); err != nil || string(raw) != "of the origin: a/one" {
			t.Errorf("%s: the file holds %q, %v", name, raw, err)
		}
		l.keep(origin, originUID())
		l.must(l.store.Share(t.Context(), origin, originUID(), filestest.Limits, noHalt))
		if trees, err := os.ReadDir(filepath.Join(l.root, ".frozen")); err != nil || len(trees) != 1 || trees[0].Name() != string(origin) {
			t.Errorf("%s: there are the trees %v, %v", name, trees, err)
		}
		if left, err := filepath.Glob(filepath.Join(l.root, ".probe-*")); err != nil || len(left) != 0 {
			t.Errorf("%s: left are %v, %v", name, left, err)
		}
		l.must(l.store.Close())
	}
}

// Files that no snapshot holds, or that must be kept from forks, keep a space from sharing its files. Then a fork makes its own.
func TestWhatIsNotShared(t *testing.T) {
	for name, spoil := range map[string]func(l *lair, dir string) error{
		"a pipe":                    func(_ *lair, dir string) error { return unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600) },
		"another user's file":       func(_ *lair, dir string) error { return os.Lchown(filepath.Join(dir, "f"), 3, 3) },
		"another user's folder":     func(_ *lair, dir string) error { return os.Lchown(filepath.Join(dir, "a/b"), 3, 3) },
		"what was redacted":         func(l *lair, _ string) error { return seal.Forget(l.keys, event.DigestOf([]byte("of the origin: f"))) },
		"a command that cannot end": nil,
	} {
		t.Run(name, func(t *testing.T) {
			if os.Geteuid() != 0 {
				t.Skip("only root shares files between users, and gives them away")
			}
			if portable && spoil == nil {
				t.Skip("nothing is halted where nothing is shared")
			}
			l := &lair{t: t, root: filepath.Join(t.TempDir(), "spaces")}
			l.open()
			_, err := l.store.Create(t.Context(), issue(t)(policy.Action{Type: policy.SpaceCreate, Space: origin}), originUID(), filestest.Limits,
				space.Seed{})
			l.must(err)
			dir := l.dir(origin, originUID())
			fill(t, dir)
			halt := noHalt
			if spoil == nil {
				halt = func() error { return errors.New("it does not end") }
			}
			l.keep(origin, originUID())
			if spoil != nil {
				l.must(spoil(l, dir))
			}
			now := l.keep(origin, originUID())
			if err := l.store.Share(t.Context(), origin, originUID(), filestest.Limits, halt); (err != nil) != (spoil == nil) {
				t.Fatal(err)
			}
			if after := l.dir(origin, originUID()); after != dir {
				t.Errorf("the files moved to %s", after)
			}
			_, err = l.fork(forkA, spaceUID(), now.Root)
			if name == "what was redacted" {
				if !errors.Is(err, vault.ErrForgotten) {
					t.Errorf("the fork: %v, want %v", err, vault.ErrForgotten)
				}
			} else if err != nil {
				t.Errorf("the fork: %v", err)
			}
		})
	}
}

// Forgotten content goes from the tree as well. A space that shows it keeps it as its own, and loses it for good when it deletes it.
func TestForgettingReachesFrozenTrees(t *testing.T) {
	l := newLair(t)
	const secret = "of the origin: a/b/two"
	now := l.keep(origin, originUID())
	a, err := l.fork(forkA, spaceUID(), now.Root)
	l.must(err)
	b, err := l.fork(forkB, spaceUID(), now.Root)
	l.must(err)
	l.must(os.Rename(filepath.Join(a, "a"), filepath.Join(a, "moved")), os.Remove(filepath.Join(b, "a/b/two")),
		os.Chmod(filepath.Join(a, "moved/b/two"), 0o600))
	l.open() // the other spaces are not in use when it is purged
	contents := map[event.Digest]bool{event.DigestOf([]byte(secret)): true}
	l.must(l.past(forkB, spaceUID()).Purge(t.Context(), contents))
	for _, daemon := range []string{"the daemon that did it", "the next one"} {
		if raw, err := os.ReadFile(filepath.Join(l.dir(forkA, spaceUID()), "moved/b/two")); err != nil || string(raw) != secret {
			t.Errorf("%s: the fork that moved it shows %q, %v", daemon, raw, err)
		}
		if raw, err := os.ReadFile(filepath.Join(l.dir(origin, originUID()), "a/b/two")); err != nil || string(raw) != secret {
			t.Errorf("%s: the origin shows %q, %v", daemon, raw, err)
		}
		if _, err := os.Lstat(filepath.Join(l.dir(forkB, spaceUID()), "a/b/two")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the fork that deleted it: %v", daemon, err)
		}
		l.open()
	}
	l.must(os.Remove(filepath.Join(l.dir(forkA, spaceUID()), "moved/b/two")), os.Remove(filepath.Join(l.dir(origin, originUID()), "a/b/two")))
	err = filepath.WalkDir(l.root, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), secret) {
			t.Errorf("%s still holds it", path)
		}
		return err
	})
	l.must(err)
	if _, err := l.fork("spc_01ARZ3NDEKTSV4RRFFQ69G5FAD", spaceUID(), l.keep(origin, originUID()).Root); err != nil {
		t.Errorf("a fork of what is left: %v", err)
	}
}

// A space of which not all can be looked at may still show a shared file. It would lose that file if nobody said so.
func TestForgettingIsRefusedWhereNotAllOfAForkCanBeSeen(t *testing.T) {
	l := newLair(t)
	const secret = "of the origin: a/b/two"
	now := l.keep(origin, originUID())
	a, err := l.fork(forkA, spaceUID(), now.Root)
	l.must(err)
	deep := strings.Repeat("d/", beneath.MaxDepth-1)
	digs(t, a, deep+"x", "")
	l.must(os.Rename(filepath.Join(a, "a"), filepath.Join(a, deep+"moved")))
	contents := map[event.Digest]bool{event.DigestOf([]byte(secret)): true}
	if err := l.past(origin, originUID()).Purge(t.Context(), contents); fault.CodeOf(err) != space.ErrTreeTooDeep.Code {
		t.Errorf("with a folder that is nested too deep: %v, want %s", err, space.ErrTreeTooDeep.Code)
	}
	if !digsUp(t, a, deep+"moved/b/two") {
		t.Error("the fork has lost its file")
	}
	l.must(os.Rename(filepath.Join(a, deep+"moved"), filepath.Join(a, "moved")), l.past(origin, originUID()).Purge(t.Context(), contents))
	if raw, err := os.ReadFile(filepath.Join(a, "moved/b/two")); err != nil || string(raw) != secret {
		t.Errorf("the fork shows %q, %v", raw, err)
	}
}

// A data directory that was copied is as good as the one that it was copied from.
func TestACopiedDataDirectory(t *testing.T) {
	l := newLair(t)
	now := l.keep(origin, originUID())
	a, err := l.fork(forkA, spaceUID(), now.Root)
	l.must(err)
	l.must(os.WriteFile(filepath.Join(a, "f"), []byte("changed"), 0o644), os.Remove(filepath.Join(a, "new")))
	want := l.keep(forkA, spaceUID())
	l.must(l.store.Close())
	copied := filepath.Join(t.TempDir(), "copy")
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", l.root, copied).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	l.root, l.store = copied, nil
	l.open()
	for sp, want := range map[id.Space]space.Snapshot{origin: now, forkA: want} {
		uid := spaceUID()
		if sp == origin {
			uid = originUID()
		}
		if got := l.keep(sp, uid); got != want {
			t.Errorf("%s is %+v, want %+v", sp, got, want)
		}
	}
}

// In a backup each space has all its files, with their owners, and needs no others: it can be restored where nothing can be shared.
func TestABackupOfForks(t *testing.T) {
	l := newLair(t)
	a, err := l.fork(forkA, spaceUID(), l.keep(origin, originUID()).Root)
	l.must(err)
	l.must(os.WriteFile(filepath.Join(a, "f"), []byte("changed"), 0o600), os.Rename(filepath.Join(a, "a"), filepath.Join(a, "moved")),
		os.Remove(filepath.Join(a, "new")))
	give(t, a, spaceUID())
	want := map[id.Space][]string{origin: filestest.Tree(t, l.dir(origin, originUID())), forkA: filestest.Tree(t, a)}
	l.keep(forkA, spaceUID())
	var b bytes.Buffer
	if _, err := backup.Write(t.Context(), &b, filepath.Dir(l.root), backup.Options{}); err != nil {
		// the daemon, whose mounts they are, goes on
		t.Fatal(err)
	}
	restored := t.TempDir()
	if _, err := backup.Restore(t.Context(), &b, restored, nil); err != nil {
		t.Fatal(err)
	}
	for sp, want := range want {
		home := filepath.Join(restored, "spaces", string(sp))
		if got := filestest.Tree(t, filepath.Join(home, "files")); !slices.Equal(got, want) {
			t.Errorf("restored is\n%v\nwant\n%v", got, want)
		}
		found, err := os.ReadDir(home)
		var names []string
		for _, e := range found {
			names = append(names, e.Name())
		}
		if err != nil || !slices.Equal(names, []string{"files", "snapshots", "staging"}) {
			t.Errorf("in %s are %v, %v", sp, names, err)
		}
	}
	info, err := os.Lstat(filepath.Join(restored, "spaces", string(forkA), "files/moved/one"))
	if err != nil || owner(info) != max(spaceUID(), os.Geteuid()) {
		t.Errorf("the fork's file: %v, %v", info, err)
	}
	if _, err := os.Lstat(filepath.Join(restored, "spaces/.frozen")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the frozen trees: %v", err)
	}
	l.must(l.store.Close())
	l.root, l.store = filepath.Join(restored, "spaces"), nil
	l.open()
	l.keep(forkA, spaceUID())
	if err := l.store.Share(t.Context(), forkA, spaceUID(), filestest.Limits, noHalt); err != nil {
		t.Error(err)
	}
}
