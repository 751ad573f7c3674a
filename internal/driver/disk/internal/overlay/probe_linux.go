//go:build linux && !portable

package overlay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The users of a probe: nobody's, and of no account.
const (
	probeOwner = 65533
	probeUser  = 65534
)

// Probe tests in an empty folder whether the host and its file system can do what shared files need:
//   - a tree of one user belongs to another one in an overlay;
//   - folders can be renamed in the overlay;
//   - changes do not reach the tree;
//   - part of the overlay can be mounted elsewhere;
//   - a remounted overlay has the same contents.
//
// Its leftovers are in the folder.
func Probe(dir string) error {
	if os.Geteuid() != 0 {
		return errors.New("the daemon is not root")
	}
	l := Layers{Lower: filepath.Join(dir, "lower"), Owner: probeOwner, User: probeUser, Upper: filepath.Join(dir, "upper"),
		Work: filepath.Join(dir, "work")}
	shared := filepath.Join(l.Lower, "files", "folder", "file")
	err := errors.Join(os.MkdirAll(filepath.Dir(shared), 0o755), os.Mkdir(l.Upper, 0o700), os.Mkdir(l.Work, 0o700), os.WriteFile(shared,
		[]byte("shared"), 0o644))
	for _, p := range []string{filepath.Join(l.Lower, "files"), filepath.Dir(shared), shared} {
		err = errors.Join(err, os.Lchown(p, probeOwner, probeOwner))
	}
	if err != nil {
		return err
	}
	if err := l.change(); err != nil {
		return err
	}
	if raw, err := os.ReadFile(shared); err != nil || string(raw) != "shared" {
		return fmt.Errorf("a change reached the shared file: %q, %w", raw, err)
	}
	again, err := Mount(l)
	if err != nil {
		return fmt.Errorf("make it anew: %w", err)
	}
	defer again.Close()
	return holds(again, "files/renamed/file", "changed")
}

// change is the first life of a probe's overlay.
func (l Layers) change() error {
	top, err := Mount(l)
	if err != nil {
		return err
	}
	defer top.Close()
	var st unix.Stat_t
	if err := unix.Fstatat(int(top.Fd()), "files/folder/file", &st, 0); err != nil {
		return err
	}
	if st.Uid != probeUser || st.Gid != probeUser {
		return fmt.Errorf("a file of user %d belongs to %d in the overlay, not to %d", probeOwner, st.Uid, probeUser)
	}
	part, err := unix.OpenTree(int(top.Fd()), "files", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("a part of a mount that no path leads to: %w", err)
	}
	defer func() { _ = unix.Close(part) }()
	if err := unix.Renameat(part, "folder", part, "renamed"); err != nil {
		return fmt.Errorf("rename a shared folder: %w", err)
	}
	fd, err := unix.Openat(part, "renamed/file", unix.O_WRONLY|unix.O_TRUNC|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte("changed"))
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return err
	}
	return holds(top, "files/renamed/file", "changed")
}

// holds reports whether a file has a content.
func holds(top *os.File, name, want string) error {
	fd, err := unix.Openat(int(top.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	var buf [16]byte
	n, err := unix.Read(fd, buf[:])
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return err
	}
	if got := string(buf[:max(n, 0)]); got != want {
		return fmt.Errorf("%s holds %q, not %q", name, got, want)
	}
	return nil
}
