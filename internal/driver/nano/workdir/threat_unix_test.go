//go:build unix

package workdir_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"agentbox/internal/driver/nano/workdir"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/vfs"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestNoLinkIsFollowed(t *testing.T) {
	outside, inside, f := folders(t)
	must(t, os.Symlink(outside, filepath.Join(inside, "dir")))
	must(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(inside, "file")))
	must(t, os.Mkdir(filepath.Join(inside, "real"), 0o755))
	must(t, os.Symlink("real", filepath.Join(inside, "within"))) // not even one that stays in the folder
	found, err := f.List(".")
	must(t, err)
	for _, x := range found {
		if x.Name != "real" && (x.Kind != vfs.Symlink || x.Target == "") {
			t.Errorf("got %+v", x)
		}
	}
	for _, dir := range []string{"dir", "within"} {
		if _, err := f.List(dir); !errors.Is(err, vfs.ENOTDIR) {
			t.Errorf("list %s: %v", dir, err)
		}
	}
	for _, path := range []string{"file", "dir/secret"} {
		if n, err := f.Read(path, make([]byte, 10), 0); n != 0 || err == nil {
			t.Errorf("read %s: %d, %v", path, n, err)
		}
	}
	for _, dir := range []string{"dir", "within"} {
		for op := vfs.Remove; op <= vfs.SetMode; op++ {
			c := content(dir+"/secret", "changed")
			c.Op, c.Slot, c.Target = op, 1, "x"
			if err := f.Apply([]vfs.Change{c}, "", nil); err == nil {
				t.Errorf("op %d through the link %s: want an error", op, dir)
			}
		}
	}
	for _, op := range []vfs.Op{vfs.SetMode, vfs.SetTime} {
		if err := f.Apply([]vfs.Change{{Op: op, Path: "file", Mode: 0o777, Modified: time.Unix(1, 0)}}, "", nil); err == nil {
			t.Errorf("op %d on a link: want an error", op)
		}
	}
	if err := f.Apply([]vfs.Change{{Op: vfs.RemoveDir, Path: "dir"}}, "", nil); err == nil {
		t.Error("a link was removed as a folder")
	}
	if err := f.Apply([]vfs.Change{{Op: vfs.MakeDir, Path: "dir", Mode: 0o755}}, "", nil); err == nil {
		t.Error("a link was taken for a folder")
	}
	// A written file takes the place of the link. A name for the link is a name for the link itself.
	must(t, f.Apply([]vfs.Change{{Op: vfs.Link, Path: "again", Target: "file"}, content("file", "mine")}, "", nil))
	holds(t, filepath.Join(inside, "file"), "mine")
	if target, err := os.Readlink(filepath.Join(inside, "again")); runtime.GOOS == "linux" && (err != nil || target != filepath.Join(outside,
		"secret")) {
		t.Errorf("got %q, %v", target, err)
	}
	holds(t, filepath.Join(outside, "secret"), "secret")
	if info, err := os.Stat(filepath.Join(outside, "secret")); err != nil || info.Mode() != 0o644 {
		t.Fatalf("got %v, %v", info.Mode(), err)
	}
	if all, _ := os.ReadDir(outside); len(all) != 1 {
		t.Fatalf("got %v", all)
	}
}

// TestANameOutsideKeepsItsContent has a file of the folder that is one outside as well, as if somebody had planted it.
func TestANameOutsideKeepsItsContent(t *testing.T) {
	outside, inside, f := folders(t)
	must(t, os.Link(filepath.Join(outside, "secret"), filepath.Join(inside, "a")))
	must(t, os.Mkdir(filepath.Join(inside, "d"), 0o755))
	must(t, os.Link(filepath.Join(inside, "a"), filepath.Join(inside, "d", "b")))
	keep := content("a", "mine")
	keep.Keep = true
	must(t, f.Apply([]vfs.Change{keep}, "", nil))
	holds(t, filepath.Join(outside, "secret"), "secret")
	holds(t, filepath.Join(inside, "a"), "mine")
	holds(t, filepath.Join(inside, "d", "b"), "mine")
	a, _ := os.Stat(filepath.Join(inside, "a"))
	b, _ := os.Stat(filepath.Join(inside, "d", "b"))
	if !os.SameFile(a, b) {
		t.Fatal("the names within the folder are two files now")
	}
	must(t, f.Apply([]vfs.Change{{Op: vfs.SetMode, Path: "a", Mode: 0o600}}, "", nil))
	if info, _ := os.Stat(filepath.Join(outside, "secret")); info.Mode() != 0o644 {
		t.Fatalf("got %v", info.Mode())
	}
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	_, inside, f := folders(t)
	must(t, unix.Mkfifo(filepath.Join(inside, "fifo"), 0o644)) // opening it would wait for ever
	listener, err := net.Listen("unix", filepath.Join(inside, "s"))
	if err == nil {
		defer listener.Close()
	}
	if os.Getuid() == 0 && runtime.GOOS == "linux" {
		must(t, unix.Mknod(filepath.Join(inside, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	}
	found, err := f.List(".")
	must(t, err)
	for _, x := range found {
		if x.Kind != vfs.Other {
			t.Errorf("got %+v", x)
		}
		if _, err := f.Read(x.Name, make([]byte, 1), 0); !errors.Is(err, vfs.EIO) {
			t.Errorf("read %s: %v", x.Name, err)
		}
		if _, err := f.List(x.Name); err == nil {
			t.Errorf("list %s: want an error", x.Name)
		}
	}
	must(t, f.Apply([]vfs.Change{{Op: vfs.Take, Path: "fifo", Slot: 1}, {Op: vfs.Put, Path: "moved", Slot: 1}}, "", nil))
	if err := f.Apply([]vfs.Change{{Op: vfs.SetMode, Path: "moved", Mode: 0o777}}, "", nil); err == nil {
		t.Error("want an error")
	}
	must(t, f.Apply([]vfs.Change{content("moved", "a file now")}, "", nil))
	holds(t, filepath.Join(inside, "moved"), "a file now")
}

func TestNoFileGetsTheRightsOfItsOwner(t *testing.T) {
	_, inside, f := folders(t)
	c := content("f", "#!/bin/sh\n")
	c.Mode = 0o6755
	must(t, f.Apply([]vfs.Change{c, {Op: vfs.MakeDir, Path: "d", Mode: 0o7777}}, "", nil))
	must(t, f.Apply([]vfs.Change{{Op: vfs.SetMode, Path: "f", Mode: 0o7755}, {Op: vfs.SetMode, Path: "d", Mode: 0o7755}}, "", nil))
	for _, name := range []string{"f", "d"} {
		if info, err := os.Stat(filepath.Join(inside, name)); err != nil || info.Mode()&(os.ModeSetuid|os.ModeSetgid|os.ModeSticky) != 0 ||
			info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestNewFilesBelongToTheOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root gives files away")
	}
	outside, inside, f := folders(t)
	must(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(inside, "planted")))
	must(t, f.Apply([]vfs.Change{
		{Op: vfs.MakeDir, Path: "d", Mode: 0o755}, content("d/f", "x"), {Op: vfs.MakeLink, Path: "d/l", Target: filepath.Join(outside, "secret")},
		content("planted", "x"),
	}, "", &workdir.Owner{UID: 12_345, GID: 23_456}))
	for _, name := range []string{"d", "d/f", "d/l", "planted"} {
		info, err := os.Lstat(filepath.Join(inside, name))
		must(t, err)
		if s := info.Sys().(*syscall.Stat_t); s.Uid != 12_345 || s.Gid != 23_456 {
			t.Errorf("%s belongs to %d:%d", name, s.Uid, s.Gid)
		}
	}
	if info, _ := os.Stat(filepath.Join(outside, "secret")); info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Error("the file outside was given away")
	}
}

func TestTheStageLiesWhereItIsTold(t *testing.T) {
	outside, inside, f := folders(t)
	must(t, f.Apply([]vfs.Change{content("f", "x"), {Op: vfs.Take, Path: "f", Slot: 1}, {Op: vfs.Put, Path: "g", Slot: 1}}, outside, nil))
	holds(t, filepath.Join(inside, "g"), "x")
	if all, _ := os.ReadDir(outside); len(all) != 1 {
		t.Fatalf("left: %v", all)
	}
	if other, err := os.MkdirTemp("/dev/shm", "stage"); err == nil {
		defer os.RemoveAll(other)
		a, _ := os.Stat(other)
		b, _ := os.Stat(inside)
		if a.Sys().(*syscall.Stat_t).Dev != b.Sys().(*syscall.Stat_t).Dev {
			if err := f.Apply([]vfs.Change{content("h", "x")}, other, nil); err == nil || !strings.Contains(err.Error(), "file system") {
				t.Fatalf("got %v", err)
			}
		}
	}
}

func TestNamesNeedNotBeText(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("its file systems refuse such names")
	}
	_, inside, f := folders(t)
	write(t, filepath.Join(inside, "\xff\xfe"), "bytes")
	fs := vfs.New(bound.New(bound.Limits{Gas: 1 << 30, Time: time.Hour, MemoryBytes: 1 << 20, FileBytes: 1 << 20, OpenFiles: 9, Depth: 9},
		[32]byte{}, time.Unix(1e9, 0)), nil)
	must(t, fs.Mount("/w", vfs.Options{Source: f}))
	root := vfs.At{Dir: fs.Root()}
	must(t, fs.Rename(root, "/w/\xff\xfe", root, "/w/\xc3\x28"))
	changes, err := fs.Changes("/w")
	must(t, err)
	must(t, f.Apply(changes, "", nil))
	holds(t, filepath.Join(inside, "\xc3\x28"), "bytes")
}

func TestAListIsOnlySoLong(t *testing.T) {
	_, inside, f := folders(t)
	for _, name := range []string{"a", "b", "c"} {
		must(t, os.Symlink(strings.Repeat("t", 99), filepath.Join(inside, name)))
	}
	f.Bound(300, workdir.MaxEntries)
	if all, err := f.List("."); err != nil || len(all) != 3 {
		t.Fatalf("got %v, %v", all, err)
	}
	f.Bound(299, workdir.MaxEntries)
	if _, err := f.List("."); !errors.Is(err, vfs.ENOMEM) {
		t.Fatalf("got %v", err)
	}
	f.Bound(workdir.MaxListing, 3)
	if all, err := f.List("."); err != nil || len(all) != 3 {
		t.Fatalf("got %v, %v", all, err)
	}
	f.Bound(workdir.MaxListing, 2)
	if _, err := f.List("."); !errors.Is(err, vfs.ENOMEM) {
		t.Fatalf("a name more: got %v", err)
	}
	if workdir.MaxEntries != 1<<18 || workdir.MaxListing != 64<<20 {
		t.Errorf("the bounds are %d names and %d bytes", workdir.MaxEntries, workdir.MaxListing)
	}
}

func TestAFewEntries(t *testing.T) {
	_, inside, f := folders(t)
	for _, name := range []string{"a", "b", "c"} {
		must(t, os.Symlink("t", filepath.Join(inside, name)))
	}
	if all, ok := f.Few(3); !ok || len(all) != 3 {
		t.Errorf("3 of at most 3: got %v, %t", all, ok)
	}
	if _, ok := f.Few(2); ok {
		t.Error("3 are told where at most 2 are few")
	}
}

// TestNoChangesReachOutside applies whatever changes to a folder with links planted in it, as a worker that was taken over might send them.
func TestNoChangesReachOutside(t *testing.T) {
	outside, _, _ := folders(t)
	before := tell(t, outside)
	spaces := filepath.Join(filepath.Dir(outside), "spaces")
	must(t, os.Mkdir(spaces, 0o755))
	run := 0
	rapid.Check(t, func(r *rapid.T) {
		run++
		inside := filepath.Join(spaces, fmt.Sprint(run))
		must(t, os.Mkdir(inside, 0o755))
		defer os.RemoveAll(inside)
		must(t, os.Symlink(outside, filepath.Join(inside, "a")))
		must(t, os.Symlink("../../outside", filepath.Join(inside, "b")))
		must(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(inside, "c")))
		must(t, os.MkdirAll(filepath.Join(inside, "d", "a"), 0o755))
		f, err := workdir.Open(inside, 1<<30, 1<<20)
		must(t, err)
		defer f.Close()
		path := rapid.Custom(func(r *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{
				"a", "b", "c", "d", "e", "secret", "outside", "..", ".", "", ".agentbox-apply-0", "f1", "s1",
			}), 0, 4).Draw(r, "names"), "/")
		})
		changes := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) vfs.Change {
			return vfs.Change{
				Op: vfs.Op(rapid.IntRange(0, 11).Draw(r, "op")), Path: path.Draw(r, "path"), Target: rapid.OneOf(path, rapid.Just(outside)).Draw(r,
					"target"),
				Slot: rapid.IntRange(0, 2).Draw(r, "slot"), Mode: rapid.Uint32().Draw(r, "mode"), Modified: time.Unix(1, 0), Keep: rapid.Bool().Draw(r,
					"keep"),
				Content: [][]byte{[]byte("changed")}, Size: rapid.Int64Range(0, 100).Draw(r, "size"),
			}
		}), 1, 20).Draw(r, "changes")
		_ = f.Apply(changes, "", nil)
		if after := tell(t, outside); after != before {
			r.Fatalf("the folder outside was changed:\n%s\nwas:\n%s", after, before)
		}
	})
}

// TestRacingRenamesLeadNowhere exchanges a folder for a link to one outside, over and over, while it is listed, read and changed.
func TestRacingRenamesLeadNowhere(t *testing.T) {
	outside, inside, f := folders(t)
	must(t, os.Mkdir(filepath.Join(outside, "deep"), 0o755))
	write(t, filepath.Join(outside, "deep", "file"), "secret")
	before := tell(t, outside)
	dir, link := filepath.Join(inside, "dir"), filepath.Join(inside, "link")
	must(t, os.MkdirAll(filepath.Join(dir, "deep"), 0o755))
	write(t, filepath.Join(dir, "deep", "file"), "mine")
	must(t, os.Symlink(outside, link))
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		third := filepath.Join(inside, "third")
		for !stop.Load() {
			_ = os.Rename(dir, third)
			_ = os.Rename(link, dir)
			_ = os.Rename(dir, link)
			_ = os.Rename(third, dir)
		}
	}()
	worked := 0
	for i := range 25 {
		text := fmt.Sprintf("mine %d", i)
		p := make([]byte, 20)
		if n, err := f.Read("dir/deep/file", p, 0); (err == nil || errors.Is(err, io.EOF)) && !strings.HasPrefix(string(p[:n]), "mine") {
			t.Errorf("read %q", p[:n])
		}
		if found, err := f.List("dir"); err == nil && slices.ContainsFunc(found, func(x vfs.Found) bool { return x.Name == "secret" }) {
			t.Error("the folder outside was listed")
		}
		for _, c := range []vfs.Change{
			content("dir/deep/file", text), content("dir/deep/new", text), {Op: vfs.SetMode, Path: "dir/deep/file", Mode: 0o640},
			{Op: vfs.SetTime, Path: "dir/deep/file", Modified: time.Unix(int64(i), 0)}, {Op: vfs.Remove, Path: "dir/secret"}, {Op: vfs.MakeLink,
				Path: "dir/deep/l", Target: "x"},
			{Op: vfs.Remove, Path: "dir/deep/l"}, {Op: vfs.MakeDir, Path: "dir/deep/d", Mode: 0o700}, {Op: vfs.RemoveDir, Path: "dir/deep/d"},
		} {
			if err := f.Apply([]vfs.Change{c}, "", nil); err == nil {
				worked++
			}
		}
	}
	stop.Store(true)
	<-done
	if after := tell(t, outside); after != before {
		t.Fatalf("the folder outside was changed:\n%s\nwas:\n%s", after, before)
	}
	if worked == 0 {
		t.Fatal("nothing was ever applied: nothing was tried")
	}
}

// tell describes everything in a folder.
func tell(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %s %d %s", path, info.Mode(), info.Size(), info.ModTime())
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			fmt.Fprintf(&b, " %q %v", text, err)
		}
		b.WriteString("\n")
		return nil
	}))
	return b.String()
}
