package vfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/vfs"
)

var (
	limits = bound.Limits{Gas: 1 << 40, Time: time.Hour, MemoryBytes: 16 << 20, OutputBytes: 1 << 20, FileBytes: 4 << 20, OpenFiles: 16,
		Depth: 8}
	began = time.Unix(1_700_000_000, 0)
)

// disk is a source in memory: what is in each folder, and what each file holds.
type disk struct {
	folders     map[string][]vfs.Found
	files       map[string]string
	bytes, left int64 // that fit
	reads       int
}

func (d *disk) List(dir string) ([]vfs.Found, error) {
	if found, ok := d.folders[dir]; ok {
		return found, nil
	}
	return nil, vfs.EACCES
}

func (d *disk) Read(path string, p []byte, off int64) (int, error) {
	d.reads++
	return strings.NewReader(d.files[path]).ReadAt(p, off)
}

func (d *disk) Room() (int64, int64, error) { return d.bytes, d.left, nil }

// file is an entry of a folder.
func (d *disk) file(path, content string) vfs.Found {
	if d.files == nil {
		d.files = map[string]string{}
	}
	d.files[path] = content
	return vfs.Found{Name: path[strings.LastIndexByte(path, '/')+1:], Kind: vfs.Regular, Mode: 0o644, Size: int64(len(content)),
		Modified: began}
}

// made is a file system with a folder at /w.
func made(t testing.TB, l bound.Limits, o vfs.Options) (*vfs.FS, vfs.At) {
	t.Helper()
	f := vfs.New(bound.New(l, [32]byte{}, began), nil)
	if err := f.Mount("/w", o); err != nil {
		t.Fatal(err)
	}
	n, err := f.Lookup(vfs.At{Dir: f.Root()}, "/w", true)
	if err != nil {
		t.Fatal(err)
	}
	return f, vfs.At{Dir: n}
}

func empty(t testing.TB) (*vfs.FS, vfs.At) {
	return made(t, limits, vfs.Options{Bytes: 1 << 30, Files: 1 << 20})
}

func want(t testing.TB, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func put(t testing.TB, f *vfs.FS, at vfs.At, path, content string) {
	t.Helper()
	h, err := f.Open(at, path, vfs.Write|vfs.Create|vfs.Truncate, 0o644)
	want(t, err, nil)
	_, err = h.Write([]byte(content))
	want(t, err, nil)
	want(t, h.Close(), nil)
}

func get(t testing.TB, f *vfs.FS, at vfs.At, path string) string {
	t.Helper()
	h, err := f.Open(at, path, vfs.Read, 0)
	want(t, err, nil)
	defer h.Close()
	all, err := h.ReadAll()
	want(t, err, nil)
	f.Account().Release(int64(len(all)))
	return string(all)
}

func TestNamesAndPathsHaveBounds(t *testing.T) {
	f, at := empty(t)
	name := strings.Repeat("n", 255)
	want(t, f.Mkdir(at, name, 0o755), nil)
	want(t, f.Mkdir(at, name+"n", 0o755), vfs.ENAMETOOLONG)
	_, err := f.Stat(at, name+"n/x", true)
	want(t, err, vfs.ENAMETOOLONG)
	_, err = f.Stat(at, strings.Repeat("./", 2047)+".", true) // 4,095 bytes
	want(t, err, nil)
	_, err = f.Stat(at, strings.Repeat("./", 2048), true)
	want(t, err, vfs.ENAMETOOLONG)
	want(t, f.Symlink(strings.Repeat("t", 4095), at, "link"), nil)
	want(t, f.Symlink(strings.Repeat("t", 4096), at, "link2"), vfs.ENAMETOOLONG)
	_, err = f.Stat(at, "a\x00b", true)
	want(t, err, vfs.EINVAL)
	_, err = f.Stat(at, "", true)
	want(t, err, vfs.ENOENT)
}

func TestSymbolicLinksHaveABound(t *testing.T) {
	f, at := empty(t)
	put(t, f, at, "0", "end")
	for i := range 41 {
		want(t, f.Symlink(fmt.Sprint(i), at, fmt.Sprint(i+1)), nil)
	}
	if got := get(t, f, at, "40"); got != "end" {
		t.Fatalf("got %q", got)
	}
	_, err := f.Stat(at, "41", true)
	want(t, err, vfs.ELOOP)
	want(t, f.Symlink("loop", at, "loop"), nil)
	_, err = f.Stat(at, "loop/x", true)
	want(t, err, vfs.ELOOP)
}

func TestFoldersLieOnlySoDeep(t *testing.T) {
	f, at := empty(t)
	path := "d"
	want(t, f.Mkdir(at, path, 0o755), nil)
	for range vfs.MaxDepth - 2 {
		path += "/d"
		want(t, f.Mkdir(at, path, 0o755), nil)
	}
	want(t, f.Mkdir(at, path+"/d", 0o755), vfs.ENAMETOOLONG)
	put(t, f, at, path+"/file", "x")
	want(t, f.Mkdir(at, "e", 0o755), nil)
	want(t, f.Rename(at, "d", at, "e/d"), vfs.ENAMETOOLONG) // all that is below it as well
	want(t, f.Rename(at, "d", at, "x"), nil)
	if hit := f.Account().WasHit(); hit != "folder_depth" {
		t.Fatalf("hit %q", hit)
	}
}

func TestAFileHasABound(t *testing.T) {
	l := limits
	l.FileBytes = 100
	f, at := made(t, l, vfs.Options{Bytes: 1 << 20, Files: 10})
	h, err := f.Open(at, "f", vfs.Read|vfs.Write|vfs.Create, 0o644)
	want(t, err, nil)
	n, err := h.WriteAt(make([]byte, 100), 0)
	if n != 100 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	if n, err = h.WriteAt([]byte("xyz"), 98); n != 2 || !errors.Is(err, vfs.EFBIG) {
		t.Fatalf("got %d, %v, want what fits", n, err)
	}
	_, err = h.WriteAt([]byte("x"), 100)
	want(t, err, vfs.EFBIG)
	_, err = h.WriteAt([]byte("x"), 1<<63-1)
	want(t, err, vfs.EFBIG)
	want(t, h.Truncate(101), vfs.EFBIG)
	want(t, h.Allocate(1, 100), vfs.EFBIG)
	want(t, h.Truncate(100), nil)
	if hit := f.Account().WasHit(); hit != bound.File {
		t.Fatalf("hit %q", hit)
	}
	if n, err = h.WriteAt(nil, 1<<40); n != 0 || err != nil || h.Info().Size != 100 {
		t.Fatalf("writing nothing: %d, %v, size %d", n, err, h.Info().Size)
	}
}

func TestHandlesHaveABound(t *testing.T) {
	f, at := empty(t)
	put(t, f, at, "f", "")
	var all []*vfs.Handle
	for range limits.OpenFiles {
		h, err := f.Open(at, "f", vfs.Read, 0)
		want(t, err, nil)
		all = append(all, h)
	}
	_, err := f.Open(at, "f", vfs.Read, 0)
	want(t, err, vfs.EMFILE)
	_, err = f.Open(at, "new", vfs.Write|vfs.Create, 0o644)
	want(t, err, vfs.EMFILE)
	_, err = f.Stat(at, "new", true)
	want(t, err, vfs.ENOENT) // it was not made either
	_, _, err = f.Pipe()
	want(t, err, vfs.EMFILE)
	twin := all[0].Dup()
	want(t, all[0].Close(), nil)
	_, err = f.Open(at, "f", vfs.Read, 0)
	want(t, err, vfs.EMFILE) // its twin has it open
	want(t, twin.Close(), nil)
	want(t, twin.Close(), vfs.EBADF)
	_, err = f.Open(at, "f", vfs.Read, 0)
	want(t, err, nil)
}

func TestAMountHasAQuota(t *testing.T) {
	f, at := made(t, limits, vfs.Options{Bytes: 100, Files: 3, Disk: true})
	put(t, f, at, "a", strings.Repeat("x", 100))
	h, err := f.Open(at, "b", vfs.Write|vfs.Create, 0o644)
	want(t, err, nil)
	_, err = h.Write([]byte("x"))
	want(t, err, vfs.ENOSPC)
	if hit := f.Account().WasHit(); hit != bound.Disk {
		t.Fatalf("hit %q", hit)
	}
	want(t, f.Mkdir(at, "c", 0o755), nil)
	want(t, f.Mkdir(at, "d", 0o755), vfs.ENOSPC)
	want(t, f.Symlink("x", at, "d"), vfs.ENOSPC)
	want(t, f.Link(at, "a", false, at, "d"), nil) // a name takes no file
	want(t, f.Unlink(at, "a"), nil)
	_, err = h.Write([]byte("x"))
	want(t, err, vfs.ENOSPC) // it has another name
	open, err := f.Open(at, "d", vfs.Read, 0)
	want(t, err, nil)
	want(t, f.Unlink(at, "d"), nil)
	_, err = h.Write([]byte("x"))
	want(t, err, vfs.ENOSPC) // it is open
	want(t, open.Close(), nil)
	_, err = h.Write([]byte("x"))
	want(t, err, nil)
}

func TestAQuotaOfASourceIsAskedFor(t *testing.T) {
	d := &disk{bytes: 5, left: 1}
	d.folders = map[string][]vfs.Found{".": {d.file("old", "0123456789")}}
	f, at := made(t, limits, vfs.Options{Source: d})
	h, err := f.Open(at, "old", vfs.Read|vfs.Write, 0)
	want(t, err, nil)
	want(t, h.Truncate(3), nil)
	want(t, h.Truncate(15), nil)
	want(t, h.Truncate(16), vfs.ENOSPC)
	want(t, f.Mkdir(at, "a", 0o755), nil)
	want(t, f.Mkdir(at, "b", 0o755), vfs.ENOSPC)
	want(t, f.Rmdir(at, "a"), nil)
	want(t, f.Mkdir(at, "b", 0o755), nil)
}

func TestMemoryHasABoundAndIsGivenBack(t *testing.T) {
	l := limits
	l.MemoryBytes = 100_000
	f, at := made(t, l, vfs.Options{Bytes: 1 << 30, Files: 1 << 20})
	before, _ := f.Account().Memory()
	h, err := f.Open(at, "f", vfs.Read|vfs.Write|vfs.Create, 0o644)
	want(t, err, nil)
	_, err = h.Write(make([]byte, 101_000))
	want(t, err, vfs.ENOMEM)
	want(t, h.Truncate(3<<20), nil) // what is not written takes nothing
	if n, err := h.ReadAt(make([]byte, 10), 2<<20); n != 10 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	want(t, h.Truncate(0), nil)
	_, err = h.Write(make([]byte, 90_000))
	want(t, err, nil)
	want(t, f.Unlink(at, "f"), nil)
	want(t, h.Close(), nil)
	// Files that come and go take nothing in the end, however many they are.
	for i := range 2000 {
		name := fmt.Sprintf("%s%d", strings.Repeat("n", 200), i%3)
		put(t, f, at, name, "content")
		want(t, f.Link(at, name, false, at, "l"), nil)
		want(t, f.Symlink(strings.Repeat("t", 1000), at, "s"), nil)
		want(t, f.Rename(at, name, at, "short"), nil)
		want(t, f.Mkdir(at, name, 0o755), nil)
		for _, name := range []string{"l", "s", "short"} {
			want(t, f.Unlink(at, name), nil)
		}
		want(t, f.Rmdir(at, name), nil)
	}
	if now, _ := f.Account().Memory(); now != before {
		t.Fatalf("%d bytes are held, want %d", now, before)
	}
	for i := 0; ; i++ {
		if err := f.Mkdir(at, fmt.Sprint(i), 0o755); err != nil {
			want(t, err, vfs.ENOMEM)
			break
		}
	}
}

func TestRightsOfTheOwnerHold(t *testing.T) {
	f, at := empty(t)
	want(t, f.Mkdir(at, "d", 0o755), nil)
	put(t, f, at, "d/f", "x")
	want(t, f.Chmod(at, "d/f", 0o000, true), nil)
	_, err := f.Open(at, "d/f", vfs.Read, 0)
	want(t, err, vfs.EACCES)
	_, err = f.Open(at, "d/f", vfs.Write, 0)
	want(t, err, vfs.EACCES)
	want(t, f.Chmod(at, "d/f", 0o400, true), nil)
	_, err = f.Open(at, "d/f", vfs.Read|vfs.Truncate, 0)
	want(t, err, vfs.EACCES)
	want(t, f.Chmod(at, "d", 0o600, true), nil) // without the right to go through
	_, err = f.Stat(at, "d/f", true)
	want(t, err, vfs.EACCES)
	_, err = f.Stat(at, "d/.", true)
	want(t, err, vfs.EACCES)
	_, err = f.List(at, "d")
	want(t, err, nil)
	want(t, f.Chmod(at, "d", 0o500, true), nil) // without the right to write
	want(t, f.Unlink(at, "d/f"), vfs.EACCES)
	want(t, f.Mkdir(at, "d/e", 0o755), vfs.EACCES)
	want(t, f.Rename(at, "d/f", at, "g"), vfs.EACCES)
	want(t, f.Link(at, "d/f", false, at, "d/g"), vfs.EACCES)
	want(t, f.Mkdir(at, "e", 0o755), nil)
	want(t, f.Rename(at, "d", at, "e/d"), vfs.EACCES) // its .. would change
	want(t, f.Rename(at, "d", at, "c"), nil)
	want(t, f.Chmod(at, "c", 0o300, true), nil) // without the right to read
	_, err = f.List(at, "c")
	want(t, err, vfs.EACCES)
	_, err = f.Stat(at, "c/f", true)
	want(t, err, nil)
	// The host's own files are nobody's to change.
	want(t, f.MakeFile("/etc/os", 0o644, []byte("x")), nil)
	root := vfs.At{Dir: f.Root()}
	for _, err := range []error{
		f.Unlink(root, "/etc/os"), f.Mkdir(root, "/etc/x", 0o755), f.Rename(root, "/etc/os", root, "/etc/so"), f.Chmod(root, "/etc/os", 0o666,
			true),
		f.Utimes(root, "/etc/os", true, began, began), f.Rmdir(root, "/etc"), f.Mkdir(root, "/x", 0o755),
	} {
		want(t, err, vfs.EROFS)
	}
	_, err = f.Open(root, "/etc/os", vfs.Write, 0)
	want(t, err, vfs.EROFS)
	want(t, f.Rename(root, "/w", root, "/x"), vfs.EBUSY)
	want(t, f.Rmdir(root, "/w"), vfs.EBUSY)
	want(t, f.Link(root, "/etc/os", false, at, "os"), vfs.EXDEV)
}

func TestAFolderWithoutANameTakesNothing(t *testing.T) {
	f, at := empty(t)
	want(t, f.Mkdir(at, "d", 0o755), nil)
	h, err := f.Open(at, "d", vfs.Read, 0)
	want(t, err, nil)
	want(t, f.Rmdir(at, "d"), nil)
	in := vfs.At{Dir: h.Node()}
	want(t, f.Mkdir(in, "x", 0o755), vfs.ENOENT)
	_, err = f.Open(in, "x", vfs.Write|vfs.Create, 0o644)
	want(t, err, vfs.ENOENT)
	_, err = h.Node().Path()
	want(t, err, vfs.ENOENT)
	want(t, f.Link(at, "x", false, in, "y"), vfs.ENOENT)
}

func TestNothingOutsideOfABoundIsReached(t *testing.T) {
	f, at := empty(t)
	want(t, f.MakeFile("/secret", 0o644, []byte("s")), nil)
	want(t, f.Mkdir(at, "in", 0o755), nil)
	n, err := f.Lookup(at, "in", true)
	want(t, err, nil)
	within := vfs.At{Dir: n, Beneath: n}
	for _, path := range []string{"/secret", "..", "../..", "x/../..", "./../x"} {
		want(t, f.Mkdir(within, "x", 0o755), nil)
		_, err := f.Stat(within, path, true)
		want(t, err, vfs.EPERM)
		want(t, f.Rmdir(within, "x"), nil)
	}
	for _, target := range []string{"/secret", "../secret", "../../secret", ".."} {
		want(t, f.Symlink(target, within, "l"), nil)
		_, err := f.Stat(within, "l", true)
		want(t, err, vfs.EPERM)
		_, err = f.Open(within, "l/x", vfs.Write|vfs.Create, 0o644)
		want(t, err, vfs.EPERM)
		want(t, f.Unlink(within, "l"), nil)
	}
	// Where the bound is everything, an absolute link leads into it.
	all := vfs.At{Dir: f.Root(), Beneath: f.Root()}
	want(t, f.Symlink("/secret", at, "l"), nil)
	_, err = f.Stat(all, "w/l", true)
	want(t, err, nil)
	_, err = f.Stat(all, "..", true)
	want(t, err, vfs.EPERM)
}

func TestASourceIsNotTrusted(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "a\x00"} {
		d := &disk{folders: map[string][]vfs.Found{".": {{Name: name, Kind: vfs.Regular}}}}
		f, at := made(t, limits, vfs.Options{Source: d})
		_, err := f.List(at, ".")
		want(t, err, vfs.EIO)
	}
	d := &disk{}
	short := d.file("f", "short")
	short.Size = 100
	d.folders = map[string][]vfs.Found{".": {short, {Name: "fifo", Kind: vfs.Other}, {Name: "closed", Kind: vfs.Directory, Mode: 0o755}}}
	f, at := made(t, limits, vfs.Options{Source: d})
	h, err := f.Open(at, "f", vfs.Read, 0)
	want(t, err, nil)
	_, err = h.Read(make([]byte, 10))
	want(t, err, vfs.EIO) // it became shorter
	_, err = f.Open(at, "fifo", vfs.Read, 0)
	want(t, err, vfs.ENXIO)
	_, err = f.List(at, "closed")
	want(t, err, vfs.EACCES)
}

func TestAFileIsFetchedAsFarAsItIsRead(t *testing.T) {
	d := &disk{}
	d.folders = map[string][]vfs.Found{".": {d.file("f", strings.Repeat("0123456789", 200_000))}}
	f, at := made(t, limits, vfs.Options{Source: d})
	h, err := f.Open(at, "f", vfs.Read, 0)
	want(t, err, nil)
	if d.reads != 0 {
		t.Fatal("it is read before it is asked for")
	}
	p := make([]byte, 5)
	for _, off := range []int64{1_999_995, 0, 7, 262_142, 5} {
		n, err := h.ReadAt(p, off)
		if got, want := string(p[:n]), "0123456789012345"[off%10:][:5]; got != want || err != nil {
			t.Fatalf("at %d: %q, %v, want %q", off, got, err, want)
		}
	}
	if d.reads != 3 {
		t.Fatalf("%d pieces were read, want 3", d.reads)
	}
}

// steps tells changes in short.
func steps(t testing.TB, f *vfs.FS) []string {
	t.Helper()
	changes, err := f.Changes("/w")
	want(t, err, nil)
	names := map[vfs.Op]string{
		vfs.Remove: "remove", vfs.RemoveDir: "rmdir", vfs.Take: "take", vfs.Put: "put", vfs.MakeDir: "mkdir", vfs.WriteFile: "write",
		vfs.MakeLink: "symlink",
		vfs.Link:     "link", vfs.SetTime: "time", vfs.SetMode: "mode",
	}
	var all []string
	for _, c := range changes {
		s := names[c.Op] + " " + c.Path
		switch c.Op {
		case vfs.WriteFile:
			s += fmt.Sprintf(" %q keep=%v", bytes.Join(c.Content, nil), c.Keep)
		case vfs.Take, vfs.Put:
			s += fmt.Sprintf(" slot=%d", c.Slot)
		case vfs.Link, vfs.MakeLink:
			s += " to " + c.Target
		case vfs.SetMode:
			s += fmt.Sprintf(" %o", c.Mode)
		case vfs.SetTime:
			continue
		}
		all = append(all, s)
	}
	return all
}

func TestChangesSayWhatIsDifferent(t *testing.T) {
	for _, x := range []struct {
		name string
		do   func(f *vfs.FS, at vfs.At) error
		want []string
	}{
		{"nothing", func(f *vfs.FS, at vfs.At) error { _, err := f.List(at, "d"); return err }, nil},
		{"a name for another, by a link", func(f *vfs.FS, at vfs.At) error { // the file is never read
			return errors.Join(f.Link(at, "a", false, at, "c"), f.Unlink(at, "a"))
		}, []string{"take a slot=1", "put c slot=1"}},
		{"two folders change places", func(f *vfs.FS, at vfs.At) error {
			return errors.Join(f.Rename(at, "d", at, "t"), f.Rename(at, "e", at, "d"), f.Rename(at, "t", at, "e"))
		}, []string{"take d slot=1", "take e slot=2", "put d slot=2", "put e slot=1"}},
		{"there and back", func(f *vfs.FS, at vfs.At) error {
			return errors.Join(f.Rename(at, "d", at, "t"), f.Rename(at, "t", at, "d"), f.Mkdir(at, "x", 0o755), f.Rmdir(at, "x"))
		}, nil},
		{"a file over another", func(f *vfs.FS, at vfs.At) error { return f.Rename(at, "a", at, "b") }, []string{"take a slot=1", "remove b",
			"put b slot=1"}},
		{"out of a folder that goes", func(f *vfs.FS, at vfs.At) error {
			return errors.Join(f.Rename(at, "d/f", at, "x"), f.Rmdir(at, "d"))
		}, []string{"take d/f slot=1", "rmdir d", "put x slot=1"}},
		{"into a new folder that moves", func(f *vfs.FS, at vfs.At) error {
			return errors.Join(f.Mkdir(at, "n", 0o500), f.Chmod(at, "n", 0o700, true), f.Rename(at, "d", at, "n/d"), f.Rename(at, "n", at, "m"),
				f.Chmod(at, "m", 0o500, true))
		}, []string{"take d slot=1", "mkdir m", "put m/d slot=1", "mode m 500"}},
		{"a file with other names that is written", func(f *vfs.FS, at vfs.At) error {
			h, err := f.Open(at, "h1", vfs.Write|vfs.Append, 0)
			if err != nil {
				return err
			}
			_, err = h.Write([]byte("!"))
			return errors.Join(err, h.Close(), f.Rename(at, "h1", at, "moved"))
		}, []string{`write h1 "hard!" keep=true`, "take h1 slot=1", "put moved slot=1"}},
		{"one that lives on under a name that nobody has looked at", func(f *vfs.FS, at vfs.At) error {
			h, err := f.Open(at, "h1", vfs.Write|vfs.Truncate, 0)
			if err != nil {
				return err
			}
			_, err = h.Write([]byte("new"))
			return errors.Join(err, h.Close(), f.Unlink(at, "h1"))
		}, []string{`write h1 "new" keep=true`, "remove h1"}},
		{"a new name of one that nobody has looked at", func(f *vfs.FS, at vfs.At) error {
			return errors.Join(f.Unlink(at, "h1"), f.Link(at, "e/h2", false, at, "h3"))
		}, []string{"remove h1", "link h3 to e/h2"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			d := &disk{bytes: 1 << 20, left: 100}
			h1, h2 := d.file("h1", "hard"), d.file("e/h2", "hard")
			h1.Same, h1.Links, h2.Same, h2.Links = 7, 2, 7, 2
			d.folders = map[string][]vfs.Found{
				".": {
					d.file("a", "A"), d.file("b", "B"), h1, {Name: "d", Kind: vfs.Directory, Mode: 0o755, Modified: began},
					{Name: "e", Kind: vfs.Directory, Mode: 0o755, Modified: began},
				},
				"d": {d.file("d/f", "F")}, "e": {h2},
			}
			f, at := made(t, limits, vfs.Options{Source: d})
			want(t, x.do(f, at), nil)
			first := steps(t, f)
			if diff := cmp.Diff(x.want, first); diff != "" {
				t.Fatalf("want -, got +:\n%s", diff)
			}
			if diff := cmp.Diff(first, steps(t, f)); diff != "" {
				t.Fatalf("asked again:\n%s", diff)
			}
			if x.name == "a name for another, by a link" && d.reads != 0 {
				t.Fatal("the file was read")
			}
		})
	}
}
