package disk_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/filestest"
	"agentbox/internal/driver/disk"
	"agentbox/internal/driver/disk/internal/beneath"
)

// deep makes folders within folders, deeper than any path can name, and a file in the last.
func deep(t testing.TB, dir, name string, depth int) {
	t.Helper()
	at, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range depth {
		if err := unix.Mkdirat(int(at.Fd()), name, 0o755); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Openat(int(at.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		at.Close()
		at = os.NewFile(uintptr(fd), name)
	}
	fd, err := unix.Openat(int(at.Fd()), "f", unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	at.Close()
	unix.Close(fd)
}

func descriptors(t testing.TB) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

func TestRemoveHostileTree(t *testing.T) {
	f := newFence(t)
	deep(t, f.Dir, strings.Repeat("n", 200), 3000)
	for i := range 3000 {
		f.Host(t, fmt.Sprintf("wide/%d", i), "")
	}
	f.Host(t, "new\nline/bad\xff", "x")
	f.Host(t, "locked/a/b/f", "x")
	f.Link(t, "out", f.outside)
	f.Link(t, "locked/a/out", f.outside+"/dir")
	if err := unix.Mkfifo(filepath.Join(f.Dir, "pipe"), 0); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{"locked/a/b": 0, "locked/a": 0o111, "locked": 0o444, "wide": 0o555} {
		if err := os.Chmod(filepath.Join(f.Dir, path), mode); err != nil {
			t.Fatal(err)
		}
	}
	before := descriptors(t)
	if err := f.Store.Remove(t.Context(), filestest.One); err != nil {
		t.Fatal(err)
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors are open, want %d", after, before)
	}
	left, err := os.ReadDir(filepath.Dir(filepath.Dir(f.Dir)))
	if err != nil || len(left) != 1 || left[0].Name() != ".trash" {
		t.Errorf("left are %v, %v", left, err)
	}
	if left, err = os.ReadDir(filepath.Join(filepath.Dir(filepath.Dir(f.Dir)), ".trash")); err != nil || len(left) != 0 {
		t.Errorf("left in the trash are %v, %v", left, err)
	}
	if err := f.intact(); err != nil {
		t.Error(err)
	}
}

func TestOpenSpacesFinishesWhatWasLeft(t *testing.T) {
	dir := t.TempDir()
	s := openSpacesIn(t, dir)
	h := filestest.NewHouse(t, s)
	h.Host(t, "f", "x")
	half := filepath.Join(dir, string(filestest.One), "staging", "half written")
	gone := filepath.Join(dir, ".trash", "half removed", "a", "b")
	if err := errors.Join(os.WriteFile(half, nil, 0o600), os.MkdirAll(gone, 0o700)); err != nil {
		t.Fatal(err)
	}
	h.Store = openSpacesIn(t, dir).Store
	for _, path := range []string{half, filepath.Join(dir, ".trash", "half removed")} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	if got, err := h.Read(t, "f"); got != "x" || err != nil {
		t.Errorf("the space's file holds %q, %v", got, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of the spaces is %v, %v, want closed to others", info.Mode(), err)
	}
}

func TestMeasure(t *testing.T) {
	h := filestest.NewHouse(t, openSpaces(t))
	measure := func() beneath.Usage {
		t.Helper()
		u, err := beneath.Measure(t.Context(), h.Dir)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	empty := measure()
	if empty.Inodes != 1 {
		t.Errorf("an empty folder has %d inodes, want 1", empty.Inodes)
	}
	h.Host(t, "a/b/f", strings.Repeat("x", 100_000))
	one := measure()
	if n := one.Bytes - empty.Bytes; one.Inodes != 4 || n < 100_000 || n > 150_000 {
		t.Errorf("two folders and 100,000 bytes are %+v", one)
	}
	if err := os.Link(filepath.Join(h.Dir, "a/b/f"), filepath.Join(h.Dir, "a/twin")); err != nil {
		t.Fatal(err)
	}
	if twin := measure(); twin != one {
		t.Errorf("a second name of the file is %+v, want %+v", twin, one)
	}
	h.Host(t, "hole", "")
	if err := os.Truncate(filepath.Join(h.Dir, "hole"), 1<<40); err != nil {
		t.Fatal(err)
	}
	h.Link(t, "link", "/")
	if hole := measure(); hole.Bytes > one.Bytes+64<<10 || hole.Inodes != 6 {
		t.Errorf("with a hole of 1 TiB and a link it is %+v", hole)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := beneath.Measure(ended, h.Dir); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}

func TestMeasureAtTheEdgeOfDepth(t *testing.T) {
	for depth, code := range map[int]string{beneath.MaxDepth - 1: "", beneath.MaxDepth + 1: "tree_too_deep"} {
		dir := quickDir(t)
		deep(t, dir, strings.Repeat("n", 100), depth)
		before := descriptors(t)
		u, err := beneath.Measure(t.Context(), dir)
		if fault.CodeOf(err) != code || code == "" && u.Inodes != int64(depth)+2 {
			t.Errorf("%d deep: %+v, %v, want %q", depth, u, err, code)
		}
		if after := descriptors(t); after != before {
			t.Errorf("%d descriptors are open, want %d", after, before)
		}
	}
}

// TestThreat33HugeFolders lists and archives what no caller could hold.
func TestThreat33HugeFolders(t *testing.T) {
	f := newFence(t)
	root, err := os.OpenRoot(f.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.Mkdir("wide", 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range disk.MaxArchiveEntries {
		if file, err := root.Create(fmt.Sprintf("wide/%06d", i)); err != nil {
			t.Fatal(err)
		} else {
			file.Close()
		}
	}
	deep(t, f.Dir, "d", 2000)
	got, err := f.List(t, ".", true, 3)
	if err != nil || strings.Join(got, " ") != "d d/d d/d/d" {
		t.Errorf("listed %q, %v", got, err)
	}
	got, err = f.List(t, "wide", true, 2)
	if err != nil || strings.Join(got, " ") != "wide/000000 wide/000001" {
		t.Errorf("listed %q, %v", got, err)
	}
	got, err = f.List(t, "d", true, 0)
	if err != nil || len(got) == 0 || len(got[len(got)-1]) > 300 {
		t.Errorf("listed %d entries of the deep tree, %v", len(got), err)
	}
	archive := func(path string) error {
		return f.Files.Archive(t.Context(), f.Issue(filestest.Action(policy.FileArchive, path)), io.Discard, nil)
	}
	if err := archive("wide"); err != nil {
		t.Errorf("an archive of %d entries: %v", disk.MaxArchiveEntries, err)
	}
	f.Host(t, "wide/one more", "")
	wantIs(t, "an archive of one entry more", archive("wide"), space.ErrArchiveTooLarge)
	f.Host(t, "huge/hole", "")
	if err := os.Truncate(filepath.Join(f.Dir, "huge/hole"), disk.MaxArchiveBytes+1); err != nil {
		t.Fatal(err)
	}
	wantIs(t, "an archive of 1 GiB and a byte", archive("huge"), space.ErrArchiveTooLarge)
}

// TestArchiveThatGrowsIsNotWhole: an archive that breaks a bound after it was begun ends without the directory that makes it readable.
func TestArchiveThatGrowsIsNotWhole(t *testing.T) {
	h := filestest.NewHouse(t, openSpaces(t))
	noise := make([]byte, 100_000) // more than the zip writer holds back
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	h.Host(t, "a", string(noise))
	h.Host(t, "b", "small")
	a := filestest.Action(policy.FileArchive, ".")
	a.MaxBytes = int64(len(noise)) + 10
	out := &watched{first: func() { h.Host(t, "b", "larger than small") }}
	wantIs(t, "an archive that grows", h.Files.Archive(t.Context(), h.Issue(a), out, nil), space.ErrArchiveTooLarge)
	if _, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len())); err == nil || out.Len() == 0 {
		t.Errorf("the %d bytes that were written pass for an archive: %v", out.Len(), err)
	}
}

// watched calls first before the first bytes are written to it.
type watched struct {
	bytes.Buffer
	first func()
}

// Write keeps what is written.
func (w *watched) Write(p []byte) (int, error) {
	if w.Len() == 0 {
		w.first()
	}
	return w.Buffer.Write(p)
}
