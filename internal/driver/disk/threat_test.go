package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/filestest"
)

const canary = "outside: nobody in a space may see or change this"

// fence is a space with something beside it that must stay as it is.
type fence struct {
	*filestest.House
	outside string // folder on the same file system
}

func houseIn(t testing.TB, dir string) *filestest.House {
	t.Helper()
	return filestest.NewHouse(t, openSpacesIn(t, dir))
}

func newFence(t testing.TB) fence {
	t.Helper()
	f := fence{houseIn(t, quickDir(t)), quickDir(t)}
	for _, name := range []string{"secret", "dir/secret", "dir/only-outside"} {
		path := filepath.Join(f.outside, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(canary), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// intact reports what has changed outside.
func (f fence) intact() error {
	var found []string
	err := filepath.Walk(f.outside, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			text, _ := os.ReadFile(path)
			rel, _ := filepath.Rel(f.outside, path)
			found = append(found, fmt.Sprintf("%s=%s %v", rel, text, info.Mode()))
			if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != os.Geteuid() {
				found = append(found, "owner changed")
			}
		}
		return err
	})
	want := fmt.Sprintf("dir/only-outside=%[1]s -rw-r--r--,dir/secret=%[1]s -rw-r--r--,secret=%[1]s -rw-r--r--", canary)
	if got := strings.Join(found, ","); got != want {
		return errors.Join(err, fmt.Errorf("outside there is now %s, want %s", got, want))
	}
	return err
}

// tryAll does everything to a path and returns an error if the canary came out or changed.
func (f fence) tryAll(t testing.TB, path string) error {
	var seen bytes.Buffer
	if text, err := f.Read(t, path); err == nil {
		seen.WriteString(text)
	}
	_, _ = f.Edit(t, path, space.Edit{Old: "outside", New: "changed"})
	_, _ = f.Write(t, path, "written", true)
	_, _ = f.Write(t, path+"/new", "written", true)
	_ = f.Files.Archive(t.Context(), f.Issue(filestest.Action(policy.FileArchive, path)), &seen, nil)
	entries, _ := f.Files.List(t.Context(), f.Issue(filestest.Action(policy.FileList, path)), true, 100)
	for _, e := range entries {
		seen.WriteString(filepath.Base(e.Path))
	}
	_ = f.Delete(t, path)
	if bytes.Contains(seen.Bytes(), []byte("outside:")) || bytes.Contains(seen.Bytes(), []byte("only-outside")) {
		return fmt.Errorf("%q reached outside", path)
	}
	return f.intact()
}

func TestThreat18LinksLeadNowhere(t *testing.T) {
	f := newFence(t)
	held, err := os.Open(f.outside)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	for name, target := range map[string]string{
		"absolute":    f.outside,
		"file":        filepath.Join(f.outside, "secret"),
		"relative":    "../../../../../../../../../../../../../.." + f.outside,
		"root":        "/",
		"proc root":   "/proc/self/root" + f.outside,
		"proc cwd":    "/proc/self/cwd",
		"proc fd":     fmt.Sprintf("/proc/self/fd/%d", held.Fd()),
		"proc fds":    fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), held.Fd()),
		"proc task":   fmt.Sprintf("/proc/thread-self/fd/%d/secret", held.Fd()),
		"dev fd":      fmt.Sprintf("/dev/fd/%d", held.Fd()),
		"loop":        "loop",
		"pair a":      "pair b",
		"pair b":      "pair a",
		"here":        ".",
		"up":          "..",
		"through up":  "here/..",
		"through abs": "absolute/dir",
	} {
		f.Link(t, name, target)
		for _, path := range []string{name, name + "/secret", name + "/dir/secret", name + "/dir"} {
			_, err := f.Read(t, path)
			if !errors.Is(err, space.ErrLink) {
				t.Errorf("read %q: %v, want %v", path, err, space.ErrLink)
			}
			if err := f.tryAll(t, path); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(filepath.Join(f.Dir, name)); err != nil {
				f.Link(t, name, target) // it was deleted, as a link may be
			}
		}
	}
}

// TestThreat18GeneratedTrees makes trees as hostile code would and tries everything on paths through them.
func TestThreat18GeneratedTrees(t *testing.T) {
	f := newFence(t)
	inside, err := os.OpenRoot(f.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	names := []string{"a", "b", "secret", "dir", "..a"}
	rapid.Check(t, func(r *rapid.T) {
		if err := emptyDir(f.Dir); err != nil {
			r.Fatal(err)
		}
		path := rapid.Map(rapid.SliceOfN(rapid.SampledFrom(names), 1, 4), func(p []string) string { return strings.Join(p, "/") })
		target := rapid.OneOf(
			path,
			rapid.SampledFrom([]string{".", "..", "/", f.outside, f.outside + "/secret", f.outside + "/dir", "/proc/self/root" + f.outside,
				"/proc/self/cwd"}),
			rapid.Map(rapid.IntRange(1, 12), func(n int) string { return strings.Repeat("../", n) + f.outside }),
			rapid.Map(path, func(p string) string { return "../" + p }),
		)
		for range rapid.IntRange(1, 12).Draw(r, "entries") {
			// The tree is made through os.Root, so that the test itself does not get out.
			at := path.Draw(r, "path")
			switch rapid.IntRange(0, 4).Draw(r, "kind") {
			case 0:
				_ = inside.MkdirAll(at, 0o755)
			case 1:
				if file, err := inside.OpenFile(at, os.O_CREATE|os.O_EXCL, 0o644); err == nil {
					file.Close()
				}
			case 2, 3:
				_ = inside.Symlink(target.Draw(r, "target"), at)
			case 4:
				_ = unix.Mkfifo(filepath.Join(f.Dir, filepath.Base(at)), 0o644)
			}
		}
		for range rapid.IntRange(1, 6).Draw(r, "tries") {
			if err := f.tryAll(t, path.Draw(r, "tried")); err != nil {
				r.Fatal(err)
			}
		}
	})
}

// TestThreat18RacingRenames swaps a folder, a file and links under the driver's hands. None of 10,000 tries gets out.
func TestThreat18RacingRenames(t *testing.T) {
	f := newFence(t)
	at := func(name string) string { return filepath.Join(f.Dir, name) }
	f.Host(t, "real/secret", "inside")
	f.Link(t, "link", f.outside)
	f.Link(t, "file link", filepath.Join(f.outside, "secret"))
	f.Host(t, "plain", "inside")
	real, err := os.OpenRoot(at("real"))
	if err != nil {
		t.Fatal(err)
	}
	defer real.Close()
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			// The folder "swap" is now the real one, now a link to outside; so is the file in it.
			_ = unix.Renameat2(unix.AT_FDCWD, at("real"), unix.AT_FDCWD, at("link"), unix.RENAME_EXCHANGE)
			_ = unix.Renameat2(unix.AT_FDCWD, at("plain"), unix.AT_FDCWD, at("file link"), unix.RENAME_EXCHANGE)
			if i%64 == 0 {
				_ = real.WriteFile("secret", []byte("inside"), 0o644)
			}
		}
	})
	got := map[string]int{}
	for i := range 10_000 {
		path := [...]string{"real/secret", "link/secret", "plain", "file link", "real/new/deep", "link/new/deep"}[i%6]
		switch i % 5 {
		case 0, 1:
			text, err := f.Read(t, path)
			if strings.Contains(text, "outside:") {
				t.Fatalf("try %d: reading %q reached outside", i, path)
			}
			got["read "+fault.CodeOf(err)]++
		case 2:
			_, err := f.Edit(t, path, space.Edit{Old: "s", New: "s"})
			got["edit "+fault.CodeOf(err)]++
		case 3:
			_, err := f.Write(t, path, "inside", i%2 == 0)
			got["write "+fault.CodeOf(err)]++
		case 4:
			got["delete "+fault.CodeOf(f.Delete(t, path))]++
		}
	}
	close(stop)
	swapper.Wait()
	if err := f.intact(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(f.outside, "new")); err == nil {
		t.Error("a folder was made outside")
	}
	// The race was one: both sides of it were met.
	for _, met := range []string{"read ", "read link_refused", "write link_refused"} {
		if got[met] == 0 {
			t.Errorf("no try ended with %q: %v", met, got)
		}
	}
}

func TestThreat18PipesAndDevices(t *testing.T) {
	f := newFence(t)
	full := filepath.Join(f.Dir, "pipe")
	if err := unix.Mkfifo(full, 0o666); err != nil {
		t.Fatal(err)
	}
	special := []string{"pipe"}
	if os.Geteuid() == 0 {
		for name, dev := range map[string]uint64{"null": unix.Mkdev(1, 3), "zero": unix.Mkdev(1, 5), "tty": unix.Mkdev(5, 0)} {
			if err := unix.Mknod(filepath.Join(f.Dir, name), unix.S_IFCHR|0o666, int(dev)); err != nil {
				t.Fatal(err)
			}
			special = append(special, name)
		}
	}
	for _, path := range special { // opening a pipe without another end would wait
		_, err := f.Read(t, path)
		wantIs(t, "read "+path, err, space.ErrNotAFile)
		_, err = f.Edit(t, path, space.Edit{Old: "a", New: "b"})
		wantIs(t, "edit "+path, err, space.ErrNotAFile)
		_, err = f.Write(t, path, "x", true)
		wantIs(t, "write "+path, err, space.ErrNotAFile)
		wantIs(t, "delete "+path, f.Delete(t, path), space.ErrNotAFile)
	}
	var out bytes.Buffer
	if err := f.Files.Archive(t.Context(), f.Issue(filestest.Action(policy.FileArchive, ".")), &out, nil); err != nil {
		t.Error(err)
	}
	entries, err := f.Files.List(t.Context(), f.Issue(filestest.Action(policy.FileList, ".")), true, 0)
	if err != nil || len(entries) != len(special) || entries[0].Type != "other" {
		t.Errorf("listed %+v, %v", entries, err)
	}
}

// TestThreat18HardLinks: code in a space has no name for anything outside its mount, so it cannot link to it. Should the host's owner
// make such a link, the file has two names, and what is outside still does not change through the other one.
func TestThreat18HardLinks(t *testing.T) {
	f := newFence(t)
	link := func(name string) {
		if err := os.Link(filepath.Join(f.outside, "secret"), filepath.Join(f.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("edited")
	link("written")
	link("deleted")
	if _, err := f.Edit(t, "edited", space.Edit{Old: "outside", New: "changed"}); err != nil {
		t.Error(err)
	}
	if _, err := f.Write(t, "written", "new", true); err != nil {
		t.Error(err)
	}
	if err := f.Delete(t, "deleted"); err != nil {
		t.Error(err)
	}
	if err := f.intact(); err != nil {
		t.Error(err)
	}
}

// TestThreat18Mounts: whatever is mounted in a space's folder is not entered, and no link leads out of a mount.
func TestThreat18Mounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting takes root")
	}
	if portable {
		t.Skip("a folder that is mounted a second time looks like any other")
	}
	f := newFence(t)
	f.Host(t, "bound/f", "inside")
	f.Host(t, "bound file", "inside")
	f.Host(t, "proc/f", "inside")
	inMountNamespace(t, func() error {
		for _, m := range []struct{ from, to, kind string }{
			{f.outside, "bound", ""}, {filepath.Join(f.outside, "secret"), "bound file", ""}, {"proc", "proc", "proc"},
		} {
			flags := uintptr(0)
			if m.kind == "" {
				flags = unix.MS_BIND
			}
			if err := unix.Mount(m.from, filepath.Join(f.Dir, m.to), m.kind, flags, ""); err != nil {
				return fmt.Errorf("mount %s: %w", m.to, err)
			}
		}
		for _, path := range []string{"bound/secret", "bound/dir/secret", "bound file", "proc/self/root" + f.outside + "/secret", "proc/version",
			"bound/new"} {
			_, err := f.Read(t, path)
			wantIs(t, "read "+path, err, space.ErrMount)
			_, err = f.Write(t, path, "x", false)
			if err == nil {
				t.Errorf("wrote %s", path)
			}
			if path != "bound file" {
				wantIs(t, "delete "+path, f.Delete(t, path), space.ErrMount)
			}
			if err := f.tryAll(t, path); err != nil {
				t.Error(err)
			}
		}
		var out bytes.Buffer
		if err := f.Files.Archive(t.Context(), f.Issue(filestest.Action(policy.FileArchive, ".")), &out, nil); err != nil {
			return err
		}
		if bytes.Contains(out.Bytes(), []byte("secret")) {
			t.Error("the archive entered a mount")
		}
		// The space's folder as a mount of its own, as a tier makes it: the kernel refuses a link from outside.
		own := filepath.Join(f.outside, "own")
		if err := errors.Join(os.Mkdir(own, 0o755), unix.Mount(f.Dir, own, "", unix.MS_BIND, "")); err != nil {
			return err
		}
		if err := os.Link(filepath.Join(f.outside, "secret"), filepath.Join(own, "linked")); !errors.Is(err, unix.EXDEV) {
			t.Errorf("a hard link into the mount: %v, want %v", err, unix.EXDEV)
		}
		return nil
	})
}

// TestThreat08ContentSwapped holds that the written bytes are those of the decision, even if the source changes while it is read.
func TestThreat08ContentSwapped(t *testing.T) {
	f := newFence(t)
	decided, swapped := strings.Repeat("decided ", 8192), strings.Repeat("swapped ", 8192)
	source := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(source, []byte(decided), 0o644); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		file, err := os.OpenFile(source, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer file.Close()
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = file.WriteAt([]byte(swapped), 0)
				_, _ = file.WriteAt([]byte(decided), 0)
			}
		}
	})
	a := filestest.Action(policy.FileCreate, "script")
	a.Content, a.Size, a.Overwrite = event.DigestOf([]byte(decided)), int64(len(decided)), true
	refused := 0
	for range 500 {
		file, err := os.Open(source)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Files.Write(t.Context(), f.Issue(a), file)
		file.Close()
		switch {
		case errors.Is(err, policy.ErrPermitMismatch):
			refused++
		case err != nil:
			t.Fatal(err)
		default:
			if got, err := f.Read(t, "script"); err != nil || got != decided {
				t.Fatalf("%d bytes were written that nobody decided on, %v", len(got), err)
			}
		}
	}
	close(stop)
	swapper.Wait()
	if refused == 0 {
		t.Error("the source was never caught swapped")
	}
}

// TestThreat08FileSwappedWhileEdited: an edit is applied to one version of a file as a whole, and never undoes a later one unseen.
func TestThreat08FileSwappedWhileEdited(t *testing.T) {
	f := newFence(t)
	whole := regexp.MustCompile(`^version \d+ MARK(ED)? end$`)
	f.Host(t, "f", "version 0 MARK end")
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for i := 1; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			next := filepath.Join(f.Dir, "next")
			_ = os.WriteFile(next, fmt.Appendf(nil, "version %d MARK end", i), 0o644)
			_ = os.Rename(next, filepath.Join(f.Dir, "f"))
		}
	})
	for range 500 {
		_, err := f.Edit(t, "f", space.Edit{Old: "MARK end", New: "MARKED end"})
		if err != nil && !errors.Is(err, space.ErrFileChanged) && !errors.Is(err, space.ErrEditNotFound) {
			t.Fatal(err)
		}
		if text, err := f.Read(t, "f"); err != nil || !whole.MatchString(text) {
			t.Fatalf("the file holds %q, %v", text, err)
		}
	}
	close(stop)
	swapper.Wait()
}

// TestFileHeldByALease: a program that holds a lease on its file blocks everybody who opens it for 45 seconds. This opener does not wait.
func TestFileHeldByALease(t *testing.T) {
	f := newFence(t)
	f.Host(t, "f", "x")
	if f.UID != 0 {
		if err := os.Chown(filepath.Join(f.Dir, "f"), 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.OpenFile(filepath.Join(f.Dir, "f"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	_, err = f.Read(t, "f")
	wantIs(t, "read", err, space.ErrFileBusy)
	_, err = f.Edit(t, "f", space.Edit{Old: "x", New: "y"})
	wantIs(t, "edit", err, space.ErrFileBusy)
}

func wantIs(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}
