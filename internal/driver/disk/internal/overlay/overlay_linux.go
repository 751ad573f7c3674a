//go:build linux && !portable

package overlay

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/driver/disk/internal/beneath"
)

// An overlay ends shortly after its last descriptor was closed. These are the longest wait for that, and the interval of the checks.
const (
	patience = 5 * time.Second
	glance   = 5 * time.Millisecond
)

// quiet are the attributes of every mount: no program changes its user, and no node is a device.
const quiet = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV

// Mount makes the overlay. The same upper folder has one overlay at a time: while there is another, Mount waits for its end.
func Mount(l Layers) (*os.File, error) {
	lower, err := l.below()
	if err != nil {
		return nil, err
	}
	defer lower.Close()
	option := [][2]string{{"upperdir", l.Upper}, {"workdir", l.Work}, {"redirect_dir", "on"}, {"metacopy", "on"}, {"index", "on"}}
	for waited := time.Duration(0); ; waited += glance {
		made, err := assemble(quiet, []int{int(lower.Fd())}, option)
		switch {
		case errors.Is(err, unix.ESTALE) && option[len(option)-1][0] == "index":
			// The folders were copied, and the index names files by where they lay. Without it, names of one file below part when one is written.
			option = option[:len(option)-1]
		case errors.Is(err, unix.EBUSY) && waited < patience:
			<-time.NewTimer(glance).C
		default:
			return made, err
		}
	}
}

// View makes a read-only overlay of the same layers for a reader, also while another process has the one that Mount made.
func View(l Layers) (*beneath.Folder, error) {
	lower, err := l.below()
	if err != nil {
		return nil, err
	}
	defer lower.Close()
	upper, err := tree(l.Upper, unix.MountAttr{Attr_set: quiet | unix.MOUNT_ATTR_RDONLY})
	if err != nil {
		return nil, err
	}
	defer upper.Close()
	return assemble(quiet|unix.MOUNT_ATTR_RDONLY, []int{int(upper.Fd()), int(lower.Fd())}, [][2]string{{"redirect_dir", "follow"},
		{"metacopy", "on"}, {"index", "off"}})
}

// below returns the lower folder as a mount in which its files belong to the user.
func (l Layers) below() (*os.File, error) {
	attr := unix.MountAttr{Attr_set: quiet | unix.MOUNT_ATTR_RDONLY}
	if l.Owner != l.User {
		users, err := mapped(l.Owner, l.User)
		if err != nil {
			return nil, err
		}
		defer users.Close()
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(users.Fd())
	}
	return tree(l.Lower, attr)
}

// tree returns a detached copy of the mount at a path, with attributes of its own.
func tree(path string, attr unix.MountAttr) (*os.File, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return nil, fmt.Errorf("open_tree: %w", err)
	}
	attr.Propagation = unix.MS_PRIVATE
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return nil, errors.Join(fmt.Errorf("mount_setattr: %w", err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), path), nil
}

// assemble makes an overlay of layers, the uppermost first, and options.
func assemble(attr int, layers []int, options [][2]string) (*os.File, error) {
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("fsopen: %w", err)
	}
	defer func() { _ = unix.Close(fs) }()
	for _, fd := range layers {
		if err := unix.FsconfigSetFd(fs, "lowerdir+", fd); err != nil {
			return nil, said(fs, "lowerdir", err)
		}
	}
	for _, o := range options {
		if err := unix.FsconfigSetString(fs, o[0], o[1]); err != nil {
			return nil, said(fs, o[0], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, said(fs, "create", err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attr)
	if err != nil {
		return nil, fmt.Errorf("fsmount: %w", err)
	}
	return os.NewFile(uintptr(fd), "overlay"), nil
}

// said adds the kernel's explanation to an error.
func said(fs int, step string, err error) error {
	var words []string
	buf := [512]byte{}
	for range 8 {
		n, failed := unix.Read(fs, buf[:])
		if failed != nil || n <= 0 {
			break
		}
		words = append(words, strings.TrimSpace(string(buf[:n])))
	}
	return fmt.Errorf("overlay, %s: %w %s", step, err, strings.Join(words, "; "))
}

// mapped returns a user namespace in which one user, and the group of the same number, is another. Only a process can have one made: it is
// stopped by the kernel before it begins, and ended.
func mapped(from, to int) (*os.File, error) {
	runtime.LockOSThread() // the process ends with the thread that started it
	defer runtime.UnlockOSThread()
	one := []syscall.SysProcIDMap{{ContainerID: from, HostID: to, Size: 1}}
	process, err := os.StartProcess("/proc/self/exe", []string{"agentbox-mapping"}, &os.ProcAttr{Sys: &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER, UidMappings: one, GidMappings: one, Ptrace: true, Pdeathsig: unix.SIGKILL,
	}})
	if err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	users, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", process.Pid))
	err = errors.Join(err, process.Kill())
	_, failed := process.Wait()
	if err = errors.Join(err, failed); err != nil {
		if users != nil {
			users.Close()
		}
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	return users, nil
}

// owner returns the user that owns a folder.
func owner(path string) (int, error) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	return int(st.Uid), err
}
