package snapshots

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/seal"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/vault"
)

// home is a space's folders with a past.
type home struct {
	t     *testing.T
	where Folders
	*Past
}

// chance yields numbers that are the same in every run of the tests.
type chance struct{ *rand.ChaCha8 }

// keys are the same in every test and for every daemon.
func keys() vault.Keys {
	k := memory.NewKeys(newChance(0))
	if _, err := k.Plant(seal.Tree); err != nil {
		panic(err)
	}
	return k
}

// plainPacks turns the packs of a folder into those of an earlier version.
func (h *home) plainPacks() {
	h.t.Helper()
	p, err := openPacks(h.t.Context(), h.where.Kept, keys(), false)
	h.must(err)
	var raw []byte
	for d, at := range p.objects {
		content, err := p.read(d, 1<<30)
		h.must(err)
		raw = append(binary.BigEndian.AppendUint64(append(raw, d[:]...), uint64(at.size)), content...)
	}
	h.must(p.remove(slices.Clone(p.all)), os.WriteFile(filepath.Join(h.where.Kept, "00000001"+plainSuffix), raw, 0o600))
}

func TestPacksOfAnEarlierVersion(t *testing.T) {
	h := newHome(t, 1<<30)
	old, now := h.two()
	h.plainPacks()
	h.again(1)
	for _, s := range []space.Snapshot{old, now} {
		if _, reached, err := h.Rewind(t.Context(), s.Root); err != nil || reached != s {
			t.Errorf("rewind to %v: %v, %v", s, reached, err)
		}
	}
	h.put("new", "what is kept from now on is sealed")
	last := h.keepNow()
	// A sweep that rewrites the old pack seals what it keeps of it.
	_, err := h.Sweep(t.Context(), []event.Digest{old.Root, now.Root}, false)
	h.must(err)
	if left, err := filepath.Glob(filepath.Join(h.where.Kept, "*"+plainSuffix)); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	h.must(os.RemoveAll(filepath.Join(h.where.Files, "deep")))
	h.Disturb()
	if _, reached, err := h.Rewind(t.Context(), last.Root); err != nil || reached.Root != last.Root {
		t.Errorf("rewind to what was sealed anew: %v, %v", reached, err)
	}
}

// A restore without keys leaves everything where it is, for the keys may come yet.
func TestNothingIsSweptWithoutKeys(t *testing.T) {
	h := newHome(t, 1<<30)
	old, _ := h.two()
	h.must(h.Sync(t.Context()))
	before := h.kepts()
	h.Past = New(h.where, 0, h.disk, memory.NewKeys(newChance(0)), newChance(3))
	if _, err := h.Sweep(t.Context(), []event.Digest{old.Root}, false); !errors.Is(err, vault.ErrMissing) {
		t.Errorf("a sweep without keys: %v, want %v", err, vault.ErrMissing)
	}
	if after := h.kepts(); !maps.Equal(before, after) {
		t.Error("it has changed something")
	}
	h.again(2)
	if _, _, err := h.Rewind(t.Context(), old.Root); err != nil {
		t.Errorf("with the keys: %v", err)
	}
}

func TestForgottenContentDoesNotComeBack(t *testing.T) {
	h := newHome(t, 1<<30)
	h.put("secret", "forget me")
	h.put("other", "keep me")
	with := h.keepNow()
	h.put("other", "kept")
	h.must(seal.Forget(h.keys, event.DigestOf([]byte("forget me"))))
	again := h.keepNow() // the live file is its owner's
	h.must(os.Remove(filepath.Join(h.where.Files, "secret")))
	without := h.keepNow()
	for _, root := range []event.Digest{with.Root, again.Root} {
		if _, _, err := h.Rewind(t.Context(), root); !errors.Is(err, vault.ErrForgotten) {
			t.Errorf("rewind to a snapshot with the forgotten file: %v, want %v", err, vault.ErrForgotten)
		}
		if got := h.keepNow(); got.Root != without.Root {
			t.Fatalf("a rewind that was refused changed the files: %v", got)
		}
	}
	h.put("other", "changed")
	h.Disturb()
	if _, _, err := h.Rewind(t.Context(), without.Root); err != nil {
		t.Errorf("rewind to a snapshot without it: %v", err)
	}
	// When no snapshot names it any more, a file of the same content is content like any other.
	_, err := h.Sweep(t.Context(), []event.Digest{with.Root, again.Root}, false)
	h.must(err)
	h.put("secret", "forget me")
	back := h.keepNow()
	h.put("secret", "changed")
	h.Disturb()
	if _, reached, err := h.Rewind(t.Context(), back.Root); err != nil || reached.Root != back.Root {
		t.Errorf("rewind to what came back: %v, %v", reached, err)
	}
}

func newChance(seed byte) chance { return chance{rand.NewChaCha8([32]byte{seed})} }

func newHome(t *testing.T, disk int64) *home { return newHomeIn(t, t.TempDir(), disk) }

// newQuickHome is newHome in memory, where the host has such a file system, for hundreds of snapshots whose durability is not in question.
func newQuickHome(t *testing.T, disk int64) *home {
	dir, err := os.MkdirTemp("/dev/shm", "agentbox-test-")
	if err != nil {
		return newHome(t, disk)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return newHomeIn(t, dir, disk)
}

func newHomeIn(t *testing.T, dir string, disk int64) *home {
	h := &home{t: t, where: Folders{Files: filepath.Join(dir, "files"), Staging: filepath.Join(dir, "staging"), Kept: filepath.Join(dir,
		"snapshots")}}
	h.must(os.Mkdir(h.where.Files, 0o755), os.Mkdir(h.where.Staging, 0o700))
	h.Past = New(h.where, 0, disk, keys(), newChance(0))
	return h
}

// again opens the past as the next daemon does: with an empty staging folder and nothing in memory.
func (h *home) again(seed byte) {
	h.t.Helper()
	h.must(os.RemoveAll(h.where.Staging), os.Mkdir(h.where.Staging, 0o700))
	h.Past = New(h.where, 0, h.disk, keys(), newChance(seed))
}

func (h *home) must(errs ...error) {
	h.t.Helper()
	for _, err := range errs {
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h *home) put(path, text string) {
	h.t.Helper()
	path = filepath.Join(h.where.Files, path)
	h.must(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
}

func (h *home) keepNow() space.Snapshot {
	h.t.Helper()
	h.Disturb()
	s, err := h.Keep(h.t.Context())
	h.must(err)
	return s
}

// two makes two states that differ in every way and returns them; the files are in the second.
func (h *home) two() (old, now space.Snapshot) {
	h.put("same", "same")
	h.put("changed", "before")
	h.put("deep/er/still", "there")
	h.put("goes/away", "soon")
	h.put("file", "a file")
	h.must(os.Symlink("same", filepath.Join(h.where.Files, "link")), os.Chmod(filepath.Join(h.where.Files, "same"), 0o600))
	old = h.keepNow()
	h.put("changed", "after")
	h.put("deep/er/still", "here")
	h.put("deep/new", "new")
	h.must(os.RemoveAll(filepath.Join(h.where.Files, "goes")), os.Remove(filepath.Join(h.where.Files, "file")),
		os.Remove(filepath.Join(h.where.Files, "link")))
	h.put("file/is/a/folder", "now")
	h.put("link", "no link")
	h.must(os.Chmod(filepath.Join(h.where.Files, "same"), 0o755), os.Chmod(filepath.Join(h.where.Files, "deep/er"), 0o700))
	return old, h.keepNow()
}

func TestRewindThatACrashInterruptsAtEveryStep(t *testing.T) {
	probe := newHome(t, 1<<30)
	old, now := probe.two()
	steps := len(probe.way(old.Root).steps)
	if steps < 8 {
		t.Fatalf("the rewind has %d steps; the test wants some", steps)
	}
	for done := -1; done <= steps; done++ {
		h := newHome(t, 1<<30)
		h.two()
		way := h.way(old.Root) // everything lies ready
		want := now.Root
		if done >= 0 {
			h.must(h.durably(rewindingFile, old.Root.String()+"\n"))
			h.part(way, done)
			want = old.Root
		}
		h.again(byte(done + 2))
		if got := h.keepNow(); got.Root != want {
			t.Errorf("after %d of %d steps the next daemon finds %v, want %v", done, steps, got.Root, want)
		}
		if _, _, err := h.Rewind(t.Context(), now.Root); err != nil {
			t.Errorf("after %d steps, a new rewind: %v", done, err)
		}
		if left, err := os.ReadDir(h.where.Staging); err != nil || len(left) > 0 {
			t.Errorf("after %d steps there are left %v, %v", done, left, err)
		}
	}
}

// way plans a rewind.
func (h *home) way(to event.Digest) *plan {
	h.t.Helper()
	h.must(h.load(h.t.Context()), h.look(h.t.Context(), nil, nil))
	staging, err := beneath.Root(h.where.Staging)
	h.must(err)
	h.t.Cleanup(func() { staging.Close() })
	way := &plan{maker: h.rewinding().maker(h.t.Context()), staging: staging, only: map[string]bool{}}
	h.must(way.between(".", h.now, to))
	return way
}

// part does some steps of a plan.
func (h *home) part(way *plan, steps int) {
	h.t.Helper()
	root, err := beneath.Root(h.where.Files)
	h.must(err)
	defer root.Close()
	trash, err := h.rewinding().openTrash()
	h.must(err)
	defer trash.Close()
	way.steps = way.steps[:steps]
	h.must(way.apply(root, trash))
}

func TestRewindThatFailsOnItsWayIsUndone(t *testing.T) {
	h := newHome(t, 1<<30)
	old, now := h.two()
	// The steps of one folder fail because somebody put a link where it was, after the files were looked at.
	way := h.way(old.Root)
	h.must(h.durably(rewindingFile, old.Root.String()+"\n"))
	outside := t.TempDir()
	h.must(os.MkdirAll(filepath.Join(outside, "er"), 0o755), os.WriteFile(filepath.Join(outside, "er/still"), []byte("outside"), 0o644))
	h.must(os.Rename(filepath.Join(h.where.Files, "deep"), filepath.Join(h.where.Files, "moved")), os.Symlink(outside,
		filepath.Join(h.where.Files, "deep")))
	root, err := beneath.Root(h.where.Files)
	h.must(err)
	defer root.Close()
	trash, err := h.rewinding().openTrash()
	h.must(err)
	defer trash.Close()
	if err := way.apply(root, trash); !errors.Is(err, space.ErrLink) {
		t.Fatalf("through a link: %v, want %v", err, space.ErrLink)
	}
	if raw, err := os.ReadFile(filepath.Join(outside, "er/still")); string(raw) != "outside" {
		t.Fatalf("outside there is now %q, %v", raw, err)
	}
	h.must(h.rewinding().undo(now.Root))
	if got := h.keepNow(); got.Root != now.Root {
		t.Errorf("undone, the files are %v, want %v", got.Root, now.Root)
	}
	if _, err := os.Stat(filepath.Join(h.where.Kept, rewindingFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the rewind is still announced: %v", err)
	}
}

func TestRewindToContentThatTheDiskLost(t *testing.T) {
	h := newHome(t, 1<<30)
	old, now := h.two()
	packed, err := filepath.Glob(filepath.Join(h.where.Kept, "*"+freshSuffix))
	h.must(err)
	raw, err := os.ReadFile(packed[0])
	h.must(err)
	if bytes.Contains(raw, []byte("before")) {
		t.Error("content lies there unsealed")
	}
	raw[h.packs.objects[event.DigestOf([]byte("before"))].at]++
	h.must(os.WriteFile(packed[0], raw, 0o600))
	if _, _, err := h.Rewind(t.Context(), old.Root); !errors.Is(err, space.ErrSnapshotDamaged) {
		t.Errorf("got %v, want %v", err, space.ErrSnapshotDamaged)
	}
	if got := h.keepNow(); got.Root != now.Root {
		t.Errorf("the files are %v, want them untouched: %v", got.Root, now.Root)
	}
	// A pack that was not durable is read when the next daemon opens it, and ends at what was damaged.
	h.again(1)
	if _, _, err := h.Rewind(t.Context(), old.Root); !errors.Is(err, space.ErrSnapshotNotFound) {
		t.Errorf("the next daemon: %v, want %v", err, space.ErrSnapshotNotFound)
	}
	h.keepNow()
}

func TestPackThatWasCutOff(t *testing.T) {
	whole := newQuickHome(t, 1<<30)
	old, _ := whole.two()
	first := filepath.Join(whole.where.Kept, "00000001"+freshSuffix)
	raw, err := os.ReadFile(first)
	whole.must(err)
	for size := 0; size <= len(raw); size += 7 {
		h := newQuickHome(t, 1<<30)
		h.two()
		h.must(os.Truncate(filepath.Join(h.where.Kept, "00000001"+freshSuffix), int64(size)))
		h.again(1)
		now := h.keepNow() // whatever is left, the files can be kept
		h.put("changed", "once more")
		h.keepNow()
		if _, _, err := h.Rewind(t.Context(), now.Root); err != nil {
			t.Fatalf("cut off at %d of %d: %v", size, len(raw), err)
		}
		if _, _, err := h.Rewind(t.Context(), old.Root); err != nil && !errors.Is(err, space.ErrSnapshotNotFound) &&
			!errors.Is(err, space.ErrSnapshotDamaged) {
			t.Fatalf("cut off at %d of %d, rewound to what was: %v", size, len(raw), err)
		}
	}
}

func TestTheOldestGoAtTheBound(t *testing.T) {
	h := newQuickHome(t, 1<<30)
	var all []space.Snapshot
	for i := range MaxKept + 1 {
		h.put("f", fmt.Sprint(i))
		all = append(all, h.keepNow())
		if kept := len(h.kept); i < MaxKept && kept != i+1 {
			t.Fatalf("after %d there are %d kept", i+1, kept)
		}
	}
	if len(h.kept) != keptAfter || h.kept[0] != all[MaxKept+1-keptAfter] || h.kept[keptAfter-1] != all[MaxKept] {
		t.Errorf("%d are kept, from %v; want the last %d", len(h.kept), h.kept[0].Root, keptAfter)
	}
	if n := len(h.packs.all); n > MaxPacks+1 {
		t.Errorf("there are %d packs, want at most %d", n, MaxPacks+1)
	}
	h.again(1)
	if _, _, err := h.Rewind(t.Context(), all[len(all)-keptAfter].Root); err != nil {
		t.Errorf("the oldest that is kept: %v", err)
	}
	if raw, err := os.ReadFile(filepath.Join(h.where.Files, "f")); string(raw) != fmt.Sprint(MaxKept+1-keptAfter) {
		t.Errorf("the file holds %q, %v", raw, err)
	}
}

// Each state of the files is the same when it is restored, after all kinds of changes.
func TestRandomStates(t *testing.T) {
	for seed := range byte(8) {
		h := newHome(t, 1<<30)
		dice := rand.New(newChance(seed + 10))
		model := map[event.Digest]string{}
		names := []string{"a", "b", "c", "a/a", "a/b", "b/a", "b/a/c", "c/b"}
		for range 120 {
			path := filepath.Join(h.where.Files, names[dice.IntN(len(names))])
			switch dice.IntN(7) {
			case 0:
				_ = os.MkdirAll(path, 0o755)
			case 1:
				_ = os.RemoveAll(path)
			case 2:
				_ = os.Symlink(names[dice.IntN(len(names))], path)
			case 3:
				_ = os.Rename(path, filepath.Join(h.where.Files, names[dice.IntN(len(names))]))
			case 4:
				if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink == 0 {
					_ = os.Chmod(path, 0o700|os.FileMode(dice.IntN(0o100)))
				}
			default:
				if info, err := os.Lstat(path); err != nil || info.Mode().IsRegular() {
					_ = os.WriteFile(path, fmt.Append(nil, dice.IntN(10)), 0o644)
				}
			}
			if dice.IntN(3) == 0 {
				s := h.keepNow()
				is := h.describe()
				if was, ok := model[s.Root]; ok && was != is {
					t.Fatalf("seed %d: two states have the hash %v:\n%s\n%s", seed, s.Root, was, is)
				}
				model[s.Root] = is
			}
			if dice.IntN(10) == 0 && len(h.kept) > 0 {
				h.Disturb()
				to := h.kept[dice.IntN(len(h.kept))]
				if _, _, err := h.Rewind(t.Context(), to.Root); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if is, was := h.describe(), model[to.Root]; was != "" && is != was {
					t.Fatalf("seed %d: rewound to %v\n got %s\nwant %s", seed, to.Root, is, was)
				}
			}
			if dice.IntN(20) == 0 {
				h.must(h.Sync(t.Context()))
				h.again(byte(dice.IntN(256)))
			}
		}
	}
}

// describe says what the files are.
func (h *home) describe() string {
	var lines []string
	h.must(filepath.WalkDir(h.where.Files, func(path string, e os.DirEntry, err error) error {
		if err != nil || path == h.where.Files {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		line := strings.TrimPrefix(path, h.where.Files) + " " + info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += " " + string(raw)
		case info.Mode()&os.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			line += " " + target
		}
		lines = append(lines, line)
		return nil
	}))
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestACancelledRewindChangesNothing(t *testing.T) {
	h := newHome(t, 1<<30)
	old, now := h.two()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := h.Rewind(ctx, old.Root); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if got := h.keepNow(); got.Root != now.Root {
		t.Errorf("the files are %v, want %v", got.Root, now.Root)
	}
}

func TestThreat18FoldersThatLie(t *testing.T) {
	d := strings.Repeat("ab", 32)
	long := strings.Repeat("n", 256)
	for name, text := range map[string]string{
		"nothing":              "",
		"no header":            "file 0644 " + d + " 1 \"a\"\n",
		"no end":               header + "file 0644 " + d + " 1 \"a\"",
		"up":                   header + "file 0644 " + d + " 1 \"..\"\n",
		"here":                 header + "folder 0755 " + d + " \".\"\n",
		"a way up":             header + "file 0644 " + d + " 1 \"../a\"\n",
		"a path":               header + "file 0644 " + d + " 1 \"a/b\"\n",
		"an absolute path":     header + "file 0644 " + d + " 1 \"/etc/passwd\"\n",
		"no name":              header + "file 0644 " + d + " 1 \"\"\n",
		"a NUL":                header + "file 0644 " + d + " 1 \"a\\x00b\"\n",
		"a long name":          header + "file 0644 " + d + " 1 \"" + long + "\"\n",
		"a name twice":         header + "file 0644 " + d + " 1 \"a\"\nfile 0644 " + d + " 1 \"a\"\n",
		"a name twice as both": header + "folder 0755 " + d + " \"a\"\nlink \"/\" \"a\"\n",
		"out of order":         header + "file 0644 " + d + " 1 \"b\"\nfile 0644 " + d + " 1 \"a\"\n",
		"a device":             header + "device 0644 " + d + " 1 \"a\"\n",
		"set-user":             header + "file 4755 " + d + " 1 \"a\"\n",
		"a mode beyond":        header + "file 77777777777 " + d + " 1 \"a\"\n",
		"a decimal mode":       header + "file 0648 " + d + " 1 \"a\"\n",
		"a negative size":      header + "file 0644 " + d + " -1 \"a\"\n",
		"a huge size":          header + "file 0644 " + d + " 99999999999999999999 \"a\"\n",
		"half a hash":          header + "file 0644 " + d[:32] + " 1 \"a\"\n",
		"large letters":        header + "file 0644 " + strings.ToUpper(d) + " 1 \"a\"\n",
		"no target":            header + "link \"\" \"a\"\n",
		"a NUL in a target":    header + "link \"a\\x00\" \"a\"\n",
		"a long target":        header + "link \"" + strings.Repeat("t", maxTarget+1) + "\" \"a\"\n",
		"another quote":        header + "file 0644 " + d + " 1 `a`\n",
		"another escape":       header + "file 0644 " + d + " 1 \"\\x61\"\n",
		"a zero in front":      header + "file 0644 " + d + " 01 \"a\"\n",
		"a blank behind":       header + "file 0644 " + d + " 1 \"a\" \n",
		"two blanks":           header + "file  0644 " + d + " 1 \"a\"\n",
	} {
		if got, err := decode([]byte(text)); fault.CodeOf(err) != space.ErrSnapshotDamaged.Code {
			t.Errorf("%s: got %v, %v, want %s", name, got, err, space.ErrSnapshotDamaged.Code)
		}
	}
	ok := header + "link \"../../etc\" \"a\"\nfile 0000 " + d + " 0 \"b\\n\\xff\"\n"
	if got, err := decode([]byte(ok)); err != nil || len(got) != 2 || got[1].name != "b\n\xff" {
		t.Errorf("got %v, %v", got, err)
	}
}

// A folder that lies about where it leads makes nothing outside, even if its hash is right.
func TestThreat18HostileSnapshot(t *testing.T) {
	for _, name := range []string{"../escaped", "..", "/tmp/escaped", "a/../../escaped"} {
		h := newHome(t, 1<<30)
		h.put("f", "x")
		now := h.keepNow()
		text := []byte(header + "file 0644 " + event.DigestOf([]byte("x")).Hex() + " 1 " + fmt.Sprintf("%q", name) + "\n")
		root := event.DigestOf(text)
		w := h.packs.writer(1 << 20)
		h.must(w.add(root, text), w.done(), h.note(space.Snapshot{Root: root, Files: 1, Bytes: 1}))
		if _, _, err := h.Rewind(t.Context(), root); fault.CodeOf(err) != space.ErrSnapshotDamaged.Code {
			t.Errorf("%q: %v", name, err)
		}
		if got := h.keepNow(); got.Root != now.Root {
			t.Errorf("%q: the files are %v, want %v", name, got.Root, now.Root)
		}
		if found, err := filepath.Glob(filepath.Join(filepath.Dir(h.where.Files), "escaped*")); err != nil || len(found) > 0 {
			t.Errorf("%q: %v lies outside", name, found)
		}
	}
}

func FuzzFolder(f *testing.F) {
	d := strings.Repeat("ab", 32)
	for _, text := range []string{"", header, header + "file 0644 " + d + " 1 \"a\"\n", header + "folder 0755 " + d +
		" \"a\"\nlink \"x\" \"b\"\n", header + "link \"\\xff\" \"\\n\"\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, err := decode(text)
		if err != nil {
			return
		}
		if !bytes.Equal(encode(entries), text) {
			t.Fatalf("%q is not its own form", text)
		}
		for _, e := range entries {
			if joined := filepath.Join("/in/here", e.name); filepath.Dir(joined) != "/in/here" || strings.ContainsRune(e.name, 0) {
				t.Fatalf("%q leads to %q", text, joined)
			}
		}
	})
}

func FuzzPack(f *testing.F) {
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, recordHead+3))
	content := []byte("content")
	digest := event.DigestOf(content)
	f.Add(append(append(slices.Clone(digest[:]), 0, 0, 0, 0, 0, 0, 0, 7), content...))
	f.Fuzz(func(t *testing.T, raw []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "00000001"+unsyncedPlain), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "00000002"+packSuffix), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := openPacks(t.Context(), dir, keys(), false)
		if err != nil {
			t.Fatal(err)
		}
		for d := range p.objects {
			got, err := p.read(d, int64(len(raw)))
			if err != nil && !p.objects[d].pack.plain {
				continue // nobody sealed it
			}
			if err != nil || event.DigestOf(got) != d {
				t.Fatalf("it yields %v: %q, %v", d, got, err)
			}
		}
		p.rest()
	})
}
