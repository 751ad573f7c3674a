package workdir_test

import (
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
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"agentbox/internal/driver/nano/workdir"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/vfs"
)

// step is one operation on files, the same for the virtual file system and the host's.
type step struct {
	op        string
	path, to  string
	off       int64
	data      string
	mode      uint32
	slot      int
	flags     vfs.Flags
	hostFlags int
	followed  bool
}

func (s step) String() string {
	return fmt.Sprintf("%s %q %q off=%d len=%d mode=%o slot=%d flags=%x", s.op, s.path, s.to, s.off, len(s.data), s.mode, s.slot, s.flags)
}

var paths = rapid.Custom(func(t *rapid.T) string {
	var names []string
	for range rapid.IntRange(1, 4).Draw(t, "depth") {
		names = append(names, rapid.SampledFrom([]string{"a", "b", "c", "d", "é"}).Draw(t, "name"))
		if rapid.IntRange(0, 9).Draw(t, "dots") == 0 {
			names = append(names, rapid.SampledFrom([]string{".", ".."}).Draw(t, "dot"))
		}
	}
	p := strings.Join(names, rapid.SampledFrom([]string{"/", "/", "/", "//", "/./"}).Draw(t, "slash"))
	if rapid.IntRange(0, 7).Draw(t, "trailing") == 0 {
		p += "/"
	}
	return p
})

var steps = rapid.Custom(func(t *rapid.T) step {
	s := step{
		op: rapid.SampledFrom([]string{
			"mkdir", "mkdir", "open", "open", "open", "unlink", "rmdir", "rename", "rename", "rename", "link", "link", "symlink", "chmod", "stat",
			"list", "readlink",
			"write", "write", "read", "truncate", "close", "utimes",
		}).Draw(t, "op"),
		path: paths.Draw(t, "path"), to: paths.Draw(t, "to"),
		off:  rapid.SampledFrom([]int64{0, 0, 1, 5, 300, 70_000, 300_000}).Draw(t, "off"),
		data: strings.Repeat(rapid.SampledFrom([]string{"x", "yz", "0123456789"}).Draw(t, "data"), rapid.IntRange(0, 9).Draw(t, "times")),
		mode: rapid.Uint32Range(0, 0o77).Draw(t, "mode") | 0o700, slot: rapid.IntRange(0, 3).Draw(t, "slot"),
		followed: rapid.Bool().Draw(t, "follow"),
	}
	for _, f := range []struct {
		flag vfs.Flags
		host int
	}{{vfs.Create, unix.O_CREAT}, {vfs.Exclusive, unix.O_EXCL}, {vfs.Truncate, unix.O_TRUNC}, {vfs.Append, unix.O_APPEND}, {vfs.NoFollow,
		unix.O_NOFOLLOW}} {
		if rapid.IntRange(0, 2).Draw(t, "flag") == 0 || f.flag == vfs.Create && rapid.Bool().Draw(t, "create") {
			s.flags |= f.flag
			s.hostFlags |= f.host
		}
	}
	if s.op == "symlink" { // what stands behind a link to a name with a slash, Linux and POSIX say differently
		s.to = strings.TrimRight(s.to, "/")
	}
	s.flags |= vfs.Read | vfs.Write
	s.hostFlags |= unix.O_RDWR
	return s
})

// host does steps on a folder of the host.
type host struct {
	dir int
	fds [4]int
}

func (h *host) do(s step) (string, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW
	if s.followed {
		flags = 0
	}
	switch s.op {
	case "mkdir":
		if err := unix.Mkdirat(h.dir, s.path, s.mode); err != nil {
			return "", err
		}
		return "", unix.Fchmodat(h.dir, s.path, s.mode, 0)
	case "open":
		if h.fds[s.slot] > 0 {
			return "busy", nil
		}
		fd, err := unix.Openat(h.dir, s.path, s.hostFlags|unix.O_CLOEXEC, s.mode)
		if err == nil {
			h.fds[s.slot] = fd
		}
		return "", err
	case "close":
		if h.fds[s.slot] > 0 {
			_ = unix.Close(h.fds[s.slot])
			h.fds[s.slot] = 0
		}
		return "", nil
	case "write":
		if h.fds[s.slot] == 0 {
			return "", nil
		}
		if s.off%2 == 0 {
			n, err := unix.Write(h.fds[s.slot], []byte(s.data))
			return fmt.Sprint(n), err
		}
		_, _ = unix.Seek(h.fds[s.slot], s.off, io.SeekStart)
		n, err := unix.Write(h.fds[s.slot], []byte(s.data))
		return fmt.Sprint(n), err
	case "read":
		if h.fds[s.slot] == 0 {
			return "", nil
		}
		buf := make([]byte, 100)
		n, err := unix.Pread(h.fds[s.slot], buf, s.off)
		return string(buf[:max(n, 0)]), err
	case "truncate":
		if h.fds[s.slot] == 0 {
			return "", nil
		}
		return "", unix.Ftruncate(h.fds[s.slot], s.off)
	case "unlink":
		return "", unix.Unlinkat(h.dir, s.path, 0)
	case "rmdir":
		return "", unix.Unlinkat(h.dir, s.path, unix.AT_REMOVEDIR)
	case "rename":
		return "", unix.Renameat(h.dir, s.path, h.dir, s.to)
	case "link":
		flags := 0
		if s.followed {
			flags = unix.AT_SYMLINK_FOLLOW
		}
		return "", unix.Linkat(h.dir, s.path, h.dir, s.to, flags)
	case "symlink":
		return "", unix.Symlinkat(s.to, h.dir, s.path)
	case "readlink":
		buf := make([]byte, 5000)
		n, err := unix.Readlinkat(h.dir, s.path, buf)
		return string(buf[:max(n, 0)]), err
	case "chmod":
		return "", unix.Fchmodat(h.dir, s.path, s.mode, 0)
	case "utimes":
		t := unix.NsecToTimespec(s.off * 1e9)
		return "", unix.UtimesNanoAt(h.dir, s.path, []unix.Timespec{t, t}, 0)
	case "stat":
		var st unix.Stat_t
		if err := unix.Fstatat(h.dir, s.path, &st, flags); err != nil {
			return "", err
		}
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return fmt.Sprintf("dir %o", st.Mode&0o7777), nil
		}
		return fmt.Sprintf("%o %o %d", st.Mode>>12, st.Mode&0o7777, st.Size), nil
	case "list":
		fd, err := unix.Openat(h.dir, s.path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return "", err
		}
		f := os.NewFile(uintptr(fd), "list")
		defer f.Close()
		names, err := f.Readdirnames(-1)
		slices.Sort(names)
		return strings.Join(names, " "), err
	}
	panic(s.op)
}

// guest does steps on a virtual file system.
type guest struct {
	fs      *vfs.FS
	at      vfs.At
	handles [4]*vfs.Handle
}

func (g *guest) do(s step) (string, error) {
	h := g.handles[s.slot]
	switch s.op {
	case "mkdir":
		return "", g.fs.Mkdir(g.at, s.path, s.mode)
	case "open":
		if h != nil {
			return "busy", nil
		}
		var err error
		h, err = g.fs.Open(g.at, s.path, s.flags, s.mode)
		g.handles[s.slot] = h
		return "", err
	case "close":
		if h != nil {
			_ = h.Close()
			g.handles[s.slot] = nil
		}
		return "", nil
	case "write":
		if h == nil {
			return "", nil
		}
		if s.off%2 == 1 {
			_, _ = h.Seek(s.off, io.SeekStart)
		}
		n, err := h.Write([]byte(s.data))
		return fmt.Sprint(n), err
	case "read":
		if h == nil {
			return "", nil
		}
		buf := make([]byte, 100)
		n, err := h.ReadAt(buf, s.off)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return string(buf[:n]), err
	case "truncate":
		if h == nil {
			return "", nil
		}
		return "", h.Truncate(s.off)
	case "unlink":
		return "", g.fs.Unlink(g.at, s.path)
	case "rmdir":
		return "", g.fs.Rmdir(g.at, s.path)
	case "rename":
		return "", g.fs.Rename(g.at, s.path, g.at, s.to)
	case "link":
		return "", g.fs.Link(g.at, s.path, s.followed, g.at, s.to)
	case "symlink":
		return "", g.fs.Symlink(s.to, g.at, s.path)
	case "readlink":
		return g.fs.Readlink(g.at, s.path)
	case "chmod":
		return "", g.fs.Chmod(g.at, s.path, s.mode, true)
	case "utimes":
		return "", g.fs.Utimes(g.at, s.path, true, time.Unix(s.off, 0), time.Unix(s.off, 0))
	case "stat":
		i, err := g.fs.Stat(g.at, s.path, s.followed)
		if err != nil {
			return "", err
		}
		if i.IsDir() {
			return fmt.Sprintf("dir %o", i.Mode), nil
		}
		kind := map[vfs.Kind]int{vfs.Regular: unix.S_IFREG >> 12, vfs.Symlink: unix.S_IFLNK >> 12}[i.Kind]
		return fmt.Sprintf("%o %o %d", kind, i.Mode, i.Size), nil
	case "list":
		all, err := g.fs.List(g.at, s.path)
		var names []string
		for _, e := range all {
			names = append(names, e.Name)
		}
		return strings.Join(names, " "), err
	}
	panic(s.op)
}

// escapes reports whether a step could leave the folder: only the host would let it.
func (s step) escapes() bool {
	for _, p := range []string{s.path, s.to} {
		depth := 0
		for _, name := range strings.Split(p, "/") {
			switch name {
			case "", ".":
			case "..":
				if depth--; depth < 0 {
					return true
				}
			default:
				depth++
			}
		}
	}
	return s.op == "symlink" && strings.Contains(s.to, "..")
}

// tree describes everything in a folder but times: names, kinds, modes, contents, targets, and which names are one file.
func tree(t rapid.TB, root string) map[string]string {
	t.Helper()
	all, first := map[string]string{}, map[uint64]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		st := info.Sys().(*syscall.Stat_t)
		switch {
		case info.IsDir():
			all[name] = fmt.Sprintf("dir %o", info.Mode().Perm())
			return nil
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			all[name] = "link to " + target
			if err != nil {
				return err
			}
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			all[name] = fmt.Sprintf("%o %d %x", info.Mode().Perm(), len(content), strings.TrimRight(string(content), "\x00"))
		default:
			all[name] = info.Mode().String()
		}
		if st.Nlink > 1 {
			if first[st.Ino] == "" {
				first[st.Ino] = name
			}
			all[name] += fmt.Sprintf(" (%d names, %s)", st.Nlink, first[st.Ino])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var plenty = bound.Limits{Gas: 1 << 40, Time: time.Hour, MemoryBytes: 1 << 30, OutputBytes: 1 << 20, FileBytes: 1 << 30, OpenFiles: 64,
	Depth: 64}

func mounted(t rapid.TB, folder *workdir.Folder) (*vfs.FS, vfs.At) {
	t.Helper()
	f := vfs.New(bound.New(plenty, [32]byte{}, time.Unix(1_700_000_000, 0)), nil)
	if err := f.Mount("/w", vfs.Options{Source: folder}); err != nil {
		t.Fatal(err)
	}
	n, err := f.Lookup(vfs.At{Dir: f.Root()}, "/w", true)
	if err != nil {
		t.Fatal(err)
	}
	return f, vfs.At{Dir: n}
}

func TestTheSameStepsLeaveTheSameFiles(t *testing.T) {
	base := t.TempDir()
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		virtual, real, staging := filepath.Join(base, fmt.Sprint(run), "v"), filepath.Join(base, fmt.Sprint(run), "r"), filepath.Join(base,
			fmt.Sprint(run), "s")
		defer os.RemoveAll(filepath.Join(base, fmt.Sprint(run)))
		for _, dir := range []string{virtual, real, staging} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		open := func(dir string) *host {
			fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			return &host{dir: fd}
		}
		closed := func(h *host) {
			for _, fd := range append(h.fds[:], h.dir) {
				if fd > 0 {
					_ = unix.Close(fd)
				}
			}
		}
		old := unix.Umask(0)
		defer unix.Umask(old)
		before, twin := open(virtual), open(real)
		defer closed(twin)
		for _, s := range rapid.SliceOfN(steps, 0, 25).Draw(t, "before") {
			if !s.escapes() {
				_, _ = before.do(s)
				_, _ = twin.do(s)
			}
		}
		closed(before)
		// Twice, so that the next execution sees the applied changes.
		for range 2 {
			folder, err := workdir.Open(virtual, 1<<40, 1<<40)
			if err != nil {
				t.Fatal(err)
			}
			f, at := mounted(t, folder)
			g := &guest{fs: f, at: at}
			for i := range twin.fds {
				_, _ = twin.do(step{op: "close", slot: i})
			}
			for i, s := range rapid.SliceOfN(steps, 1, 40).Draw(t, "steps") {
				if s.escapes() {
					continue
				}
				got, gotErr := g.do(s)
				want, wantErr := twin.do(s)
				if !same(gotErr, wantErr) || wantErr == nil && got != want {
					t.Fatalf("step %d, %s\n got: %.200q, %v\nwant: %.200q, %v", i, s, got, gotErr, want, wantErr)
				}
			}
			changes, err := f.Changes("/w")
			if err != nil {
				t.Fatal(err)
			}
			stage := rapid.SampledFrom([]string{staging, ""}).Draw(t, "staging")
			if err := folder.Apply(changes, stage, nil); err != nil {
				t.Fatalf("apply: %v\n%s", err, describe(changes))
			}
			if diff := cmp.Diff(tree(t, real), tree(t, virtual)); diff != "" {
				t.Fatalf("want -, got +:\n%s\n%s", diff, describe(changes))
			}
			if left, _ := os.ReadDir(staging); len(left) > 0 {
				t.Fatalf("left in the staging folder: %v", left)
			}
			if now, _ := f.Account().Memory(); now < 0 {
				t.Fatalf("memory held: %d", now)
			}
			if err := folder.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func same(got, want error) bool {
	if got == nil || want == nil {
		return got == nil && want == nil
	}
	return strings.EqualFold(got.Error(), want.Error())
}

func describe(changes []vfs.Change) string {
	var b strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&b, "%d %q slot=%d mode=%o target=%q keep=%v size=%d\n", c.Op, c.Path, c.Slot, c.Mode, c.Target, c.Keep, c.Size)
	}
	return b.String()
}
