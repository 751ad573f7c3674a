package filestest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// Keep makes a snapshot of the house as it is after code ran in it.
func (h *House) Keep(t testing.TB) space.Snapshot {
	t.Helper()
	h.Past.Disturb()
	s, err := h.Past.Keep(t.Context())
	if err != nil {
		t.Fatalf("keep: %v", err)
	}
	return s
}

// Rewind restores the house to a snapshot.
func (h *House) Rewind(t testing.TB, to event.Digest) (from, now space.Snapshot, err error) {
	h.Past.Disturb()
	return h.Past.Rewind(t.Context(), h.Issue(policy.Action{Type: policy.SpaceRewind, Space: One, Content: to}))
}

// Diff compares two snapshots of the house and returns lines such as "modified a/b".
func (h *House) Diff(t testing.TB, from, to event.Digest) ([]string, error) {
	found, err := h.Past.Diff(t.Context(), h.Issue(policy.Action{Type: policy.SpaceDiff, Space: One, Target: from.String(), Content: to}), 0)
	var lines []string
	for _, d := range found {
		lines = append(lines, d.Change+" "+d.Path)
	}
	return lines, err
}

// Tree describes everything below a folder: kind, mode, path, and content or target. It follows nothing.
func Tree(t testing.TB, dir string) []string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		info, err := e.Info()
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%s %s", info.Mode(), rel)
		switch {
		case info.Mode().IsRegular():
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += " " + event.DigestOf(raw).Hex()[:16]
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			line += " -> " + target
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}

// same fails unless two descriptions are equal.
func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// must fails the test at once.
func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// mixed fills a folder with one of everything that a snapshot keeps.
func mixed(t testing.TB, dir string) {
	t.Helper()
	must(t,
		os.MkdirAll(filepath.Join(dir, "a/b/c"), 0o755), os.Mkdir(filepath.Join(dir, "empty"), 0o700),
		os.WriteFile(filepath.Join(dir, "a/one"), []byte("one"), 0o644), os.WriteFile(filepath.Join(dir, "a/b/two"), []byte("two"), 0o600),
		os.WriteFile(filepath.Join(dir, "run.sh"), []byte("#!/bin/sh\n"), 0o755), os.WriteFile(filepath.Join(dir, "nothing"), nil, 0o644),
		os.WriteFile(filepath.Join(dir, "line\nbreak \xff"), []byte("odd name"), 0o644),
		os.WriteFile(filepath.Join(dir, "large"), []byte(strings.Repeat("0123456789abcdef", 1<<17)), 0o644), // 2 MiB: more than is held in memory
		os.Symlink("a/one", filepath.Join(dir, "link")), os.Symlink("/etc/passwd", filepath.Join(dir, "out")), os.Symlink("a", filepath.Join(dir,
			"dirlink")),
		os.Chmod(filepath.Join(dir, "run.sh"), 0o755), os.Chmod(filepath.Join(dir, "a/one"), 0o644),
	)
}

var travelling = map[string]func(*testing.T, *House){
	"the same files have the same hash": func(t *testing.T, h *House) {
		none := h.Keep(t)
		mixed(t, h.Dir)
		first := h.Keep(t)
		if again := h.Keep(t); again != first || first.Root == none.Root {
			t.Errorf("kept twice: %+v, then %+v; empty it was %v", first, again, none.Root)
		}
		if first.Files != 6 || first.Bytes != 3+3+10+0+8+2<<20 {
			t.Errorf("got %d files with %d bytes", first.Files, first.Bytes)
		}
		must(t, os.RemoveAll(filepath.Join(h.Dir, "a")), os.MkdirAll(filepath.Join(h.Dir, "a/b/c"), 0o755))
		must(t, os.WriteFile(filepath.Join(h.Dir, "a/one"), []byte("one"), 0o644), os.WriteFile(filepath.Join(h.Dir, "a/b/two"), []byte("two"),
			0o600))
		if again := h.Keep(t); again != first {
			t.Errorf("made anew: %+v, want %+v", again, first)
		}
	},
	"the hash is the one that is documented": func(t *testing.T, h *House) {
		must(t, os.WriteFile(filepath.Join(h.Dir, "b"), []byte("hi\n"), 0o644), os.Mkdir(filepath.Join(h.Dir, "a"), 0o755), os.Symlink("b",
			filepath.Join(h.Dir, "c")))
		inner := event.DigestOf([]byte("agentbox folder 1\n"))
		text := "agentbox folder 1\nfolder 0755 " + inner.Hex() + " \"a\"\nfile 0644 " + event.DigestOf([]byte("hi\n")).Hex() +
			" 3 \"b\"\nlink \"b\" \"c\"\n"
		if got, want := h.Keep(t).Root, event.DigestOf([]byte(text)); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	},
	"times that are set back hide no change": func(t *testing.T, h *House) {
		path := filepath.Join(h.Dir, "f")
		must(t, os.WriteFile(path, []byte("before"), 0o644))
		info, err := os.Stat(path)
		must(t, err)
		first := h.Keep(t)
		must(t, os.WriteFile(path, []byte("after!"), 0o644), os.Chtimes(path, info.ModTime(), info.ModTime()))
		if again := h.Keep(t); again.Root == first.Root {
			t.Error("a file of the same size and time but another content was not noticed")
		}
	},
	"what is written from outside is seen without looking at everything": func(t *testing.T, h *House) {
		mixed(t, h.Dir)
		h.Keep(t)
		changes := []func() error{
			func() error { _, err := h.Write(t, "a/b/new", "x", false); return err },
			func() error { _, err := h.Write(t, "x/y/z", "x", false); return err },
			func() error { _, err := h.Write(t, "run.sh", "other", true); return err },
			func() error { _, err := h.Edit(t, "a/one", space.Edit{Old: "one", New: "two"}); return err },
			func() error { return h.Delete(t, "x/y/z") },
			func() error { return h.Delete(t, "link") },
		}
		for i, change := range changes {
			must(t, change())
			quick, err := h.Past.Keep(t.Context())
			must(t, err)
			if whole := h.Keep(t); quick != whole {
				t.Errorf("change %d: %+v, and when everything is looked at %+v", i, quick, whole)
			}
		}
	},
	"many changes in one tick are all seen": func(t *testing.T, h *House) {
		path := filepath.Join(h.Dir, "f")
		seen := map[event.Digest]int{}
		for i := range 200 {
			must(t, os.WriteFile(path, fmt.Appendf(nil, "%06d", i), 0o644))
			root := h.Keep(t).Root
			if before, ok := seen[root]; ok {
				t.Fatalf("change %d has the hash of change %d", i, before)
			}
			seen[root] = i
		}
	},
	"back and forth": func(t *testing.T, h *House) {
		mixed(t, h.Dir)
		old, before := h.Keep(t), Tree(t, h.Dir)
		must(t,
			os.RemoveAll(filepath.Join(h.Dir, "a")), os.WriteFile(filepath.Join(h.Dir, "a"), []byte("a file now"), 0o644),
			os.Remove(filepath.Join(h.Dir, "nothing")), os.MkdirAll(filepath.Join(h.Dir, "nothing/at/all"), 0o755),
			os.Remove(filepath.Join(h.Dir, "link")), os.Symlink("elsewhere", filepath.Join(h.Dir, "link")),
			os.Remove(filepath.Join(h.Dir, "out")), os.WriteFile(filepath.Join(h.Dir, "out"), []byte("no link"), 0o644),
			os.Chmod(filepath.Join(h.Dir, "run.sh"), 0o644), os.Chmod(filepath.Join(h.Dir, "empty"), 0o755),
			os.WriteFile(filepath.Join(h.Dir, "new"), []byte("new"), 0o640), os.WriteFile(filepath.Join(h.Dir, "large"), []byte("small"), 0o644),
		)
		changed := Tree(t, h.Dir)
		from, now, err := h.Rewind(t, old.Root)
		if err != nil || now != old {
			t.Fatalf("rewind: %v, %+v, want %+v", err, now, old)
		}
		same(t, "rewound", Tree(t, h.Dir), before)
		if _, _, err := h.Rewind(t, from.Root); err != nil {
			t.Fatalf("rewind the rewind: %v", err)
		}
		same(t, "rewound again", Tree(t, h.Dir), changed)
		if again := h.Keep(t); again.Root != from.Root {
			t.Errorf("after that the files are %v, want %v", again.Root, from.Root)
		}
	},
	"special files go and are counted": func(t *testing.T, h *House) {
		old := h.Keep(t)
		must(t, syscall.Mkfifo(filepath.Join(h.Dir, "pipe"), 0o644), os.Mkdir(filepath.Join(h.Dir, "d"), 0o755),
			syscall.Mkfifo(filepath.Join(h.Dir, "d/pipe"), 0o644))
		if s := h.Keep(t); s.Omitted != 2 {
			t.Errorf("%d pipes were counted, want 2", s.Omitted)
		}
		if _, _, err := h.Rewind(t, old.Root); err != nil {
			t.Fatal(err)
		}
		same(t, "rewound", Tree(t, h.Dir), nil)
	},
	"holes stay holes": func(t *testing.T, h *House) {
		path := filepath.Join(h.Dir, "sparse")
		must(t, os.WriteFile(path, []byte("begin"), 0o644), os.Truncate(path, 2<<20))
		old := h.Keep(t)
		must(t, os.Remove(path))
		if _, _, err := h.Rewind(t, old.Root); err != nil {
			t.Fatal(err)
		}
		var st syscall.Stat_t
		must(t, syscall.Stat(path, &st))
		if st.Size != 2<<20 || st.Blocks*512 > 64<<10 {
			t.Errorf("%d bytes on %d blocks, want %d bytes on a few", st.Size, st.Blocks, 2<<20)
		}
	},
	"two names become two files": func(t *testing.T, h *House) {
		one, two := filepath.Join(h.Dir, "one"), filepath.Join(h.Dir, "two")
		must(t, os.WriteFile(one, []byte("first"), 0o644), os.Link(one, two))
		old := h.Keep(t)
		must(t, os.WriteFile(two, []byte("other"), 0o644)) // in place: both names
		if _, _, err := h.Rewind(t, old.Root); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{one, two} {
			if raw, err := os.ReadFile(path); string(raw) != "first" {
				t.Errorf("%s holds %q, %v", path, raw, err)
			}
		}
	},
	"a comparison": func(t *testing.T, h *House) {
		mixed(t, h.Dir)
		old := h.Keep(t)
		must(t, os.WriteFile(filepath.Join(h.Dir, "a/one"), []byte("uno"), 0o644), os.RemoveAll(filepath.Join(h.Dir, "empty")),
			os.Mkdir(filepath.Join(h.Dir, "z"), 0o755), os.WriteFile(filepath.Join(h.Dir, "z/new"), nil, 0o644))
		got, err := h.Diff(t, old.Root, h.Keep(t).Root)
		must(t, err)
		same(t, "diff", got, []string{"modified a/one", "removed empty", "added z", "added z/new"})
		if got, err := h.Diff(t, old.Root, old.Root); err != nil || len(got) != 0 {
			t.Errorf("a snapshot differs from itself: %v, %v", got, err)
		}
	},
	"what is not kept": func(t *testing.T, h *House) {
		s := h.Keep(t)
		other := event.DigestOf([]byte("never"))
		if _, _, err := h.Rewind(t, other); !errors.Is(err, space.ErrSnapshotNotFound) {
			t.Errorf("rewind: %v", err)
		}
		if _, err := h.Diff(t, s.Root, other); !errors.Is(err, space.ErrSnapshotNotFound) {
			t.Errorf("diff: %v", err)
		}
	},
	"what the permit does not say": func(t *testing.T, h *House) {
		s := h.Keep(t)
		for name, a := range map[string]policy.Action{
			"another space":  {Type: policy.SpaceRewind, Space: Two, Content: s.Root},
			"another action": {Type: policy.SpaceDiff, Space: One, Content: s.Root},
		} {
			if _, _, err := h.Past.Rewind(t.Context(), h.Issue(a)); !errors.Is(err, policy.ErrPermitMismatch) {
				t.Errorf("%s: %v, want %v", name, err, policy.ErrPermitMismatch)
			}
		}
		if _, _, err := h.Past.Rewind(t.Context(), policy.Permit{}); !errors.Is(err, policy.ErrNoPermit) {
			t.Errorf("no permit: %v", err)
		}
	},
	"archived, and begun with again": func(t *testing.T, h *House) {
		must(t, os.MkdirAll(filepath.Join(h.Dir, "d", "empty"), 0o755))
		must(t, os.WriteFile(filepath.Join(h.Dir, "d", "a"), []byte("one"), 0o644))
		must(t, os.WriteFile(filepath.Join(h.Dir, "d", "key.pem"), []byte("secret"), 0o644))
		must(t, os.Symlink("d/a", filepath.Join(h.Dir, "link")))
		must(t, os.Symlink("/etc/passwd", filepath.Join(h.Dir, "out")))
		s := h.Keep(t)
		must(t, os.WriteFile(filepath.Join(h.Dir, "d", "a"), []byte("two"), 0o644))
		h.Keep(t)
		archive := func(most int64, may func(string) bool) (string, int, error) {
			var b bytes.Buffer
			omitted, err := h.Past.Archive(t.Context(), h.Issue(policy.Action{Type: policy.FileArchive, Space: One, Path: ".", Content: s.Root,
				MaxBytes: most}), &b, may)
			return b.String(), omitted, err
		}
		all := func(string) bool { return true }
		got, omitted, err := archive(s.Bytes, func(path string) bool { return path != "d/key.pem" })
		must(t, err)
		if names := entries(t, got); omitted != 2 || names != "d/ d/a=one d/empty/ link->d/a" {
			t.Errorf("got %s, %d left out", names, omitted)
		}
		if got, _, err := archive(s.Bytes-1, all); got != "" || fault.CodeOf(err) != space.ErrArchiveTooLarge.Code {
			t.Errorf("a byte more than the bound: %d bytes, %v", len(got), err)
		}
		for name, a := range map[string]policy.Action{
			"another space": {Type: policy.FileArchive, Space: Two, Path: ".", Content: s.Root, MaxBytes: 1 << 20},
			"no bound":      {Type: policy.FileArchive, Space: One, Path: ".", Content: s.Root},
			"a folder":      {Type: policy.FileArchive, Space: One, Path: "d", Content: s.Root, MaxBytes: 1 << 20},
		} {
			if _, err := h.Past.Archive(t.Context(), h.Issue(a), io.Discard, all); !errors.Is(err, policy.ErrPermitMismatch) {
				t.Errorf("%s: %v, want %v", name, err, policy.ErrPermitMismatch)
			}
		}
	},
	"old ones go, the newest stays": func(t *testing.T, h *House) {
		path := filepath.Join(h.Dir, "f")
		var all []space.Snapshot
		for i := range 12 { // 24 MiB of content where the bound is 16
			must(t, os.WriteFile(path, bytes.Repeat(fmt.Appendf(nil, "%08d", i), 2<<20/8), 0o644))
			all = append(all, h.Keep(t))
		}
		kept, bytes, err := h.Past.Kept(t.Context())
		must(t, err)
		if bytes > 2*Limits.DiskBytes || len(kept) < 4 || len(kept) > 8 || kept[len(kept)-1] != all[11] {
			t.Errorf("%d snapshots are kept with %d bytes, want at most %d bytes", len(kept), bytes, 2*Limits.DiskBytes)
		}
		if _, _, err := h.Rewind(t, all[0].Root); !errors.Is(err, space.ErrSnapshotNotFound) || !strings.Contains(err.Error(), "16777216") {
			t.Errorf("the oldest: %v, want %v with the bound", err, space.ErrSnapshotNotFound)
		}
		if _, _, err := h.Rewind(t, kept[0].Root); err != nil {
			t.Errorf("the oldest that is kept: %v", err)
		}
	},
	"files beyond the bound": func(t *testing.T, h *House) {
		for i := range 4 {
			path := filepath.Join(h.Dir, fmt.Sprint(i))
			must(t, os.WriteFile(path, nil, 0o644), os.Truncate(path, Limits.DiskBytes/4))
		}
		h.Keep(t)
		must(t, os.WriteFile(filepath.Join(h.Dir, "more"), []byte("x"), 0o644))
		h.Past.Disturb()
		if _, err := h.Past.Keep(t.Context()); !errors.Is(err, space.ErrSnapshotTooLarge) || !strings.Contains(err.Error(),
			fmt.Sprint(Limits.DiskBytes)) {
			t.Errorf("one byte more than %d: %v", Limits.DiskBytes, err)
		}
		must(t, os.Remove(filepath.Join(h.Dir, "more")))
		h.Keep(t)
	},
	"folders beyond the depth": func(t *testing.T, h *House) {
		deep := h.Dir + strings.Repeat("/d", 255)
		must(t, os.MkdirAll(deep, 0o755))
		h.Keep(t)
		must(t, os.Mkdir(deep+"/d", 0o755))
		h.Past.Disturb()
		if _, err := h.Past.Keep(t.Context()); fault.CodeOf(err) != space.ErrTreeTooDeep.Code {
			t.Errorf("256 deep: %v", err)
		}
	},
	"a fork": func(t *testing.T, h *House) {
		must(t, os.WriteFile(filepath.Join(h.Dir, "secret"), []byte("gone by then"), 0o644))
		earlier := h.Keep(t)
		must(t, os.Remove(filepath.Join(h.Dir, "secret")))
		mixed(t, h.Dir)
		s := h.Keep(t)
		a := policy.Action{Type: policy.SpaceFork, Space: Two, Target: string(One), Content: s.Root}
		seed := space.Seed{Space: One, Snapshot: s.Root}
		if _, err := h.Store.Create(t.Context(), h.Issue(policy.Action{Type: policy.SpaceFork, Space: Two, Target: string(One),
			Content: earlier.Root}), h.UID, Limits, seed); !errors.Is(err, policy.ErrPermitMismatch) {
			t.Errorf("another snapshot than was decided: %v", err)
		}
		n, err := h.Store.Create(t.Context(), h.Issue(a), h.UID, Limits, seed)
		must(t, err)
		past, err := h.Store.History(Two, h.UID, Limits)
		must(t, err)
		_, dir, err := h.Store.Open(Two, h.UID, Limits)
		must(t, err)
		same(t, "fork", Tree(t, dir), Tree(t, h.Dir))
		if now, err := past.Keep(t.Context()); err != nil || now.Root != s.Root || int64(n.Files) != s.Files {
			t.Errorf("it is %+v, %v, of %d files, want %+v", now, err, n, s)
		}
		if h.UID != 0 {
			var st syscall.Stat_t
			must(t, syscall.Lstat(filepath.Join(dir, "a/b/two"), &st))
			if int(st.Uid) != h.UID {
				t.Errorf("its files belong to %d, want %d", st.Uid, h.UID)
			}
		}
		if _, _, err := past.Rewind(t.Context(), h.Issue(policy.Action{Type: policy.SpaceRewind, Space: Two, Content: earlier.Root})); !errors.Is(
			err, space.ErrSnapshotNotFound) {
			t.Errorf("the past of the other space: %v, want %v", err, space.ErrSnapshotNotFound)
		}
		// A write in one is not seen in the other, in place or not; and the other may be removed.
		must(t, os.WriteFile(filepath.Join(dir, "a/one"), []byte("two"), 0o644))
		past.Disturb()
		if raw, err := os.ReadFile(filepath.Join(h.Dir, "a/one")); string(raw) != "one" {
			t.Errorf("the other space's file holds %q, %v", raw, err)
		}
		must(t, h.Store.Remove(t.Context(), One))
		if _, _, err := past.Rewind(t.Context(), h.Issue(policy.Action{Type: policy.SpaceRewind, Space: Two, Content: s.Root})); err != nil {
			t.Errorf("rewind the fork after the other space is gone: %v", err)
		}
	},
	"a fork that does not fit": func(t *testing.T, h *House) {
		must(t, os.WriteFile(filepath.Join(h.Dir, "f"), make([]byte, 1<<20), 0o644))
		s := h.Keep(t)
		a := policy.Action{Type: policy.SpaceFork, Space: Two, Target: string(One), Content: s.Root}
		small := Limits
		small.DiskBytes = 1<<20 - 1
		if _, err := h.Store.Create(t.Context(), h.Issue(a), h.UID, small, space.Seed{Space: One, Snapshot: s.Root}); !errors.Is(err,
			space.ErrQuota) {
			t.Errorf("a byte too little: %v, want %v", err, space.ErrQuota)
		}
		if found, err := h.Store.List(t.Context()); err != nil || len(found) != 1 {
			t.Errorf("left are %v, %v", found, err)
		}
		small.DiskBytes++
		if _, err := h.Store.Create(t.Context(), h.Issue(a), h.UID, small, space.Seed{Space: One, Snapshot: s.Root}); err != nil {
			t.Errorf("just enough: %v", err)
		}
	},
	"a sweep": func(t *testing.T, h *House) {
		began, _, err := h.Past.Kept(t.Context()) // a fork has its first
		must(t, err)
		var all []space.Snapshot
		var digests []event.Digest
		for i := range 6 {
			must(t, os.WriteFile(filepath.Join(h.Dir, "f"), bytes.Repeat([]byte{byte(i)}, 200_000), 0o644))
			all = append(all, h.Keep(t))
			digests = append(digests, all[i].Root)
		}
		_, before, err := h.Past.Kept(t.Context())
		must(t, err)
		allowed := policy.Action{Type: policy.ContentSweep, Space: One}
		for name, p := range map[string]policy.Permit{"none": {}, "another's": h.Issue(policy.Action{Type: policy.ContentSweep, Space: Two}),
			"another": h.Issue(policy.Action{Type: policy.SpaceRewind, Space: One})} {
			if _, err := h.Past.Sweep(t.Context(), p, digests); err == nil {
				t.Errorf("swept with the permit %s", name)
			}
		}
		gone := digests[:4:4]
		for _, s := range began {
			gone = append(gone, s.Root)
		}
		would, err := h.Past.Survey(t.Context(), gone)
		must(t, err)
		if kept, bytes, err := h.Past.Kept(t.Context()); err != nil || len(kept) != len(began)+6 || bytes != before {
			t.Fatalf("a survey left %d snapshots of %d bytes, %v; want %d of %d", len(kept), bytes, err, len(began)+6, before)
		}
		freed, err := h.Past.Sweep(t.Context(), h.Issue(allowed), gone)
		must(t, err)
		kept, bytes, err := h.Past.Kept(t.Context())
		must(t, err)
		if freed != would || freed < 800_000 || bytes != before-freed || !slices.Equal(kept, all[4:]) {
			t.Errorf("freed %d, as surveyed %d, of %d; kept are %v in %d bytes", freed, would, before, kept, bytes)
		}
		if _, _, err := h.Rewind(t, all[3].Root); !errors.Is(err, space.ErrSnapshotNotFound) {
			t.Errorf("rewind to one that was let go: %v", err)
		}
		if _, _, err := h.Rewind(t, all[4].Root); err != nil {
			t.Errorf("rewind to one that was kept: %v", err)
		}
		// The newest snapshot stays, whatever the caller requests.
		_, err = h.Past.Sweep(t.Context(), h.Issue(allowed), digests)
		must(t, err)
		if kept, _, err := h.Past.Kept(t.Context()); err != nil || len(kept) != 1 || kept[0].Root != all[4].Root {
			t.Errorf("kept are %v, %v; want the newest", kept, err)
		}
	},
	"a fork whose parent is swept": func(t *testing.T, h *House) {
		for i := range 4 {
			must(t, os.WriteFile(filepath.Join(h.Dir, "f"), bytes.Repeat([]byte{byte(i)}, 300_000), 0o644))
			h.Keep(t)
		}
		kept, _, err := h.Past.Kept(t.Context())
		must(t, err)
		first := kept[len(kept)-4].Root
		if first == kept[len(kept)-1].Root {
			t.Fatal("the snapshots are the same")
		}
		a := policy.Action{Type: policy.SpaceFork, Space: Two, Target: string(One), Content: first}
		_, err = h.Store.Create(t.Context(), h.Issue(a), h.UID, Limits, space.Seed{Space: One, Snapshot: first})
		must(t, err)
		_, err = h.Past.Sweep(t.Context(), h.Issue(policy.Action{Type: policy.ContentSweep, Space: One}), []event.Digest{first})
		must(t, err)
		past, err := h.Store.History(Two, h.UID, Limits)
		must(t, err)
		_, dir, err := h.Store.Open(Two, h.UID, Limits)
		must(t, err)
		must(t, os.Remove(filepath.Join(dir, "f")))
		past.Disturb()
		if _, _, err := past.Rewind(t.Context(), h.Issue(policy.Action{Type: policy.SpaceRewind, Space: Two, Content: first})); err != nil {
			t.Errorf("the fork's snapshot went with its parent's: %v", err)
		}
	},
	"durable while it is used": func(t *testing.T, h *House) {
		mixed(t, h.Dir)
		s := h.Keep(t)
		must(t, h.Store.Sync(t.Context()))
		must(t, os.RemoveAll(filepath.Join(h.Dir, "a")))
		h.Keep(t)
		if _, _, err := h.Rewind(t, s.Root); err != nil {
			t.Fatal(err)
		}
		must(t, h.Store.Sync(t.Context()))
		if again := h.Keep(t); again != s {
			t.Errorf("got %+v, want %+v", again, s)
		}
	},
}

// entries lists what a tar.gz file holds.
func entries(t testing.TB, archive string) string {
	t.Helper()
	unzipped, err := gzip.NewReader(strings.NewReader(archive))
	must(t, err)
	var found []string
	for files := tar.NewReader(unzipped); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return strings.Join(found, " ")
		}
		must(t, err)
		content, err := io.ReadAll(files)
		must(t, err)
		switch h.Typeflag {
		case tar.TypeReg:
			h.Name += "=" + string(content)
		case tar.TypeSymlink:
			h.Name += "->" + h.Linkname
		}
		found = append(found, h.Name)
	}
}
