//go:build linux && !portable

package snapshots

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// grove is a space whose folders are watched: 30 folders of 20 files.
func grove(t *testing.T) *home {
	t.Helper()
	h := newHome(t, 1<<30)
	for d := range 30 {
		for f := range 20 {
			h.put(fmt.Sprintf("d%02d/f%02d", d, f), fmt.Sprint(d, f))
		}
	}
	// The second look begins to watch. Young files are read again, which opens them, until they are old enough to be believed.
	for range 10_000 {
		if h.keepNow(); h.watch != nil && h.looked <= 30 {
			return h
		}
	}
	t.Fatalf("the folders are not watched: %d entries were looked at", h.looked)
	return nil
}

// anew is what somebody sees who looks at every file.
func (h *home) anew() string {
	h.t.Helper()
	where := h.where
	where.Kept = filepath.Join(h.t.TempDir(), "kept")
	p := New(where, 0, 1<<30, keys(), newChance(1))
	defer p.Close()
	s, err := p.Keep(h.t.Context())
	h.must(err)
	return s.Root.String()
}

// The cost of a command does not depend on the files that it leaves alone.
func TestUntouchedFilesAreNotLookedAt(t *testing.T) {
	h := grove(t)
	h.keepNow()
	if h.looked > 30 {
		t.Errorf("after a command that touched nothing: %d entries were looked at", h.looked)
	}
	h.put("d03/f03", "other")
	if h.keepNow(); h.looked > 30+20 {
		t.Errorf("after a command that wrote one file: %d entries were looked at", h.looked)
	}
}

// changes are ways in which code changes a tree, each by a path of its own through the kernel. The path of a file lies in some folder.
var changes = map[string]func(dir, file, other string) error{
	"write": func(_, file, _ string) error { return os.WriteFile(file, []byte(time.Now().String()), 0o644) },
	"write in place, times set back": func(_, file, _ string) error {
		var st unix.Stat_t
		if err := unix.Stat(file, &st); err != nil {
			return err
		}
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := f.WriteAt([]byte("X"), 0); err != nil {
			return err
		}
		return unix.UtimesNano(file, []unix.Timespec{st.Atim, st.Mtim})
	},
	"write through a mapping whose file is closed": func(_, file, _ string) error {
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		m, err := unix.Mmap(int(f.Fd()), 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err := f.Close(); err != nil {
			return err
		}
		if err != nil {
			return err
		}
		m[0]++
		return unix.Munmap(m)
	},
	"truncate by path": func(_, file, _ string) error {
		st, err := os.Stat(file)
		if err != nil {
			return err
		}
		return os.Truncate(file, st.Size()+1)
	},
	"change a mode":          func(_, file, _ string) error { return os.Chmod(file, []os.FileMode{0o600, 0o755}[rand.IntN(2)]) },
	"change a folder's mode": func(dir, _, _ string) error { return os.Chmod(dir, []os.FileMode{0o700, 0o750}[rand.IntN(2)]) },
	"remove":                 func(_, file, _ string) error { return os.Remove(file) },
	"rename over":            func(_, file, other string) error { return os.Rename(file, other) },
	"exchange": func(_, file, other string) error {
		return unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
	},
	"link and write by the other name": func(_, file, other string) error {
		_ = os.Remove(other)
		if err := os.Link(file, other); err != nil {
			return err
		}
		return os.WriteFile(other, []byte("by the other name"), 0o644)
	},
	"write to one that has two names": func(_, file, _ string) error { return os.WriteFile(file, []byte(fmt.Sprint(rand.Int())), 0o644) },
	"symbolic link": func(dir, _, _ string) error {
		return os.Symlink("f01", filepath.Join(dir, fmt.Sprint("l", rand.IntN(1e9))))
	},
	"make a folder with a file": func(dir, _, _ string) error {
		inner := filepath.Join(dir, fmt.Sprint("n", rand.IntN(1e9)))
		if err := os.Mkdir(inner, 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(inner, "f"), []byte("new"), 0o644)
	},
	"replace a folder": func(dir, _, _ string) error {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "f01"), []byte(fmt.Sprint(rand.Int())), 0o644)
	},
	"exchange folders": func(dir, _, other string) error {
		return unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, filepath.Dir(other), unix.RENAME_EXCHANGE)
	},
	"a file without a name gets one": func(dir, _, _ string) error {
		fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if _, err := unix.Write(fd, []byte("late")); err != nil {
			return err
		}
		return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, filepath.Join(dir, fmt.Sprint("t", rand.IntN(1e9))),
			unix.AT_SYMLINK_FOLLOW)
	},
	"more than the kernel notes": func(dir, file, _ string) error {
		for range 10_000 {
			for _, name := range []string{file, filepath.Join(dir, "f19")} {
				if f, err := os.Open(name); err == nil {
					_ = f.Close()
				}
			}
		}
		return os.WriteFile(file, []byte(fmt.Sprint(rand.Int())), 0o644)
	},
}

// The watch misses no change of a tree: the snapshot is that of a look at every file.
func TestTheWatchMissesNothing(t *testing.T) {
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			h := grove(t)
			before := h.keepNow().Root
			for i := range 3 {
				dir := filepath.Join(h.where.Files, fmt.Sprintf("d%02d", i))
				h.must(change(dir, filepath.Join(dir, "f01"), filepath.Join(h.where.Files, fmt.Sprintf("d%02d/f02", i+10))))
				got := h.keepNow()
				if got.Root == before && name != "change a mode" && name != "change a folder's mode" {
					t.Errorf("round %d: the snapshot is the one before", i)
				}
				if want := h.anew(); got.Root.String() != want {
					t.Errorf("round %d: got %s, want %s", i, got.Root, want)
				}
				before = got.Root
			}
		})
	}
}

// The same for changes in any order, which leave the tree in whatever state.
func TestTheWatchMissesNothingOfMany(t *testing.T) {
	h := grove(t)
	names := make([]string, 0, len(changes))
	for name := range changes {
		if name != "more than the kernel notes" {
			names = append(names, name)
		}
	}
	for i := range 60 {
		name := names[rand.IntN(len(names))]
		a, b := rand.IntN(30), rand.IntN(30)
		dir := filepath.Join(h.where.Files, fmt.Sprintf("d%02d", a))
		_ = changes[name](dir, filepath.Join(dir, fmt.Sprintf("f%02d", rand.IntN(20))), filepath.Join(h.where.Files, fmt.Sprintf("d%02d/f%02d", b,
			rand.IntN(20))))
		if got, want := h.keepNow().Root.String(), h.anew(); got != want {
			t.Fatalf("step %d, %s: got %s, want %s", i, name, got, want)
		}
	}
}
