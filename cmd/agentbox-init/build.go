//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"syscall"
	"unsafe"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"agentbox/internal/spaceinit"
)

// build makes the space around this process and gives up the privileges that this needed. It starts with all the privileges that a fresh
// user namespace gives over itself and ends with none.
func build(s *spaceinit.Setup) (spaceinit.Ready, error) {
	ready := spaceinit.Ready{Version: spaceinit.Version}
	unix.Umask(0)
	for _, m := range s.Mounts {
		if m.FD >= 0 {
			unix.CloseOnExec(int(m.FD))
		}
	}
	if s.Namespace {
		// The limit belongs to this user namespace, not to the host: no process in it can make another one, whatever its flags.
		if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
			ready.Missing = append(ready.Missing, "max_user_namespaces")
		}
	}
	up := make(chan error, 1)
	go func() { up <- loopbackUp() }() // it waits for a lock of all networks, beside the mounts
	if err := plant(s); err != nil {
		return ready, err
	}
	if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
		return ready, fmt.Errorf("set the host name: %w", err)
	}
	if err := <-up; err != nil {
		return ready, fmt.Errorf("bring the loopback interface up: %w", err)
	}
	for _, r := range s.Rlimits {
		lim := unix.Rlimit{Cur: r.Value, Max: r.Value}
		if err := unix.Prlimit(0, int(r.Resource), &lim, nil); err != nil {
			return ready, fmt.Errorf("set resource limit %d to %d: %w", r.Resource, r.Value, err)
		}
	}
	if err := dropPrivileges(); err != nil {
		return ready, err
	}
	if s.Landlock {
		abi, err := ll.LandlockGetABIVersion()
		if err == nil && abi > 1 { // version 1 cannot allow renaming between folders
			if err := confine(s.Writable, abi); err != nil {
				return ready, fmt.Errorf("apply Landlock: %w", err)
			}
			ready.Landlock = uint32(abi)
		} else {
			ready.Missing = append(ready.Missing, "landlock")
		}
	}
	if len(s.Filter) > 0 {
		if err := filter(s.Filter); err != nil {
			return ready, fmt.Errorf("apply the system call filter: %w", err)
		}
	}
	unix.Umask(0o022)
	// Not to be traced, read or opened through /proc by the commands, which share this user id.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return ready, fmt.Errorf("make the init undumpable: %w", err)
	}
	return ready, nil
}

// plant builds the tree of the space on a tmpfs and makes it the root.
func plant(s *spaceinit.Setup) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	// Host paths are opened before anything is mounted over them.
	trees := make([]int, len(s.Mounts))
	for i, m := range s.Mounts {
		trees[i] = int(m.FD)
		if m.Source == "" || m.Attr == 0 {
			continue
		}
		fd, err := openTree(m)
		if err != nil {
			return err
		}
		trees[i] = fd
	}
	if err := unix.Mount("tmpfs", s.Scratch, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=4m,nr_inodes=1024,mode=0755"); err != nil {
		return fmt.Errorf("mount the root on %s: %w", s.Scratch, err)
	}
	if err := unix.Chdir(s.Scratch); err != nil {
		return err
	}
	for _, d := range s.Dirs {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	for _, f := range s.Files {
		if err := writeFile(f); err != nil {
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
	}
	for _, l := range s.Links {
		if err := os.Symlink(l.Target, l.Path); err != nil {
			return err
		}
	}
	for i, m := range s.Mounts {
		if err := attach(m, trees[i]); err != nil && m.Type != "devpts" { // a kernel without terminals still runs commands that need none
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
	}
	for _, f := range s.Folders {
		if err := os.Mkdir(f, 0o700); err != nil {
			return err
		}
	}
	if err := unix.Mkdir(void, 0o555); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", void, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
		"size=4k,nr_inodes=1,mode=0555"); err != nil {
		return err
	}
	for _, target := range s.Masks {
		if err := mask(target); err != nil {
			return fmt.Errorf("hide %s: %w", target, err)
		}
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	// The old root lies over the new one now; with it every mount of the host goes.
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the host's root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &attr); err != nil {
		return fmt.Errorf("make the root read-only: %w", err)
	}
	return nil
}

// writeFile writes a small file without the runtime's poller, which would try to poll each.
func writeFile(f spaceinit.File) error {
	fd, err := unix.Open(f.Path, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	if len(f.Content) > 0 {
		_, err = unix.Write(fd, []byte(f.Content))
	}
	return errors.Join(err, unix.Close(fd))
}

// openTree makes a detached copy of the mount at a host path, with the attributes that it shall have.
func openTree(m spaceinit.Mount) (int, error) {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC)
	recursive := uint(0)
	if !m.File {
		recursive = unix.AT_RECURSIVE // the kernel refuses to split what it gave to this namespace as one
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, m.Source, flags|recursive)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", m.Source, err)
	}
	attr := unix.MountAttr{Attr_set: m.Attr}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|recursive, &attr); err != nil {
		return -1, fmt.Errorf("restrict %s: %w", m.Source, err)
	}
	return fd, nil
}

// attach makes the target of one mount and mounts it.
func attach(m spaceinit.Mount, tree int) error {
	if err := makeTarget(m); err != nil {
		return err
	}
	if m.Source != "" && m.Attr == 0 {
		return unix.Mount(m.Source, m.Target, "", unix.MS_BIND, "")
	}
	if m.Type == "" {
		defer func() { _ = unix.Close(tree) }()
		return unix.MoveMount(tree, "", unix.AT_FDCWD, m.Target, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}
	flags := uintptr(0)
	for attr, flag := range map[uint64]uintptr{
		unix.MOUNT_ATTR_RDONLY: unix.MS_RDONLY, unix.MOUNT_ATTR_NOSUID: unix.MS_NOSUID,
		unix.MOUNT_ATTR_NODEV: unix.MS_NODEV, unix.MOUNT_ATTR_NOEXEC: unix.MS_NOEXEC,
	} {
		if m.Attr&attr != 0 {
			flags |= flag
		}
	}
	return unix.Mount(m.Type, m.Target, m.Type, flags, m.Option)
}

func makeTarget(m spaceinit.Mount) error {
	var err error
	if m.File {
		var fd int
		if fd, err = unix.Open(m.Target, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o444); err == nil {
			err = unix.Close(fd)
		}
	} else {
		err = unix.Mkdir(m.Target, 0o755)
	}
	if err == unix.EEXIST || err == unix.EROFS {
		return nil
	}
	return err
}

// void is an empty read-only folder.
const void = "void"

// mask hides a file behind the null device and a folder behind the empty one, where they exist.
func mask(target string) error {
	var st unix.Stat_t
	if err := unix.Lstat(target, &st); err != nil {
		return nil //nolint:nilerr // what is not there needs no hiding
	}
	source := path.Join("dev", "null")
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		source = void
	}
	return unix.Mount(source, target, "", unix.MS_BIND, "")
}

// loopbackUp brings lo up; a new network namespace has nothing else.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}

// dropPrivileges empties every capability set of every thread, and the bounding set of the one that forks commands.
func dropPrivileges() error {
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL {
			return fmt.Errorf("drop capability %d from the bounding set: %w", c, err)
		}
	}
	if err := setCapabilities(&[2]unix.CapUserData{}); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// setCapabilities sets the capabilities of every thread.
func setCapabilities(sets *[2]unix.CapUserData) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	_, _, e := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&sets[0])), 0)
	runtime.KeepAlive(&header)
	runtime.KeepAlive(sets)
	if e != 0 {
		return fmt.Errorf("give up capabilities: %w", e)
	}
	return nil
}

// confine lets this thread, the one that forks commands, and so its children write only to the named paths, and reach no abstract socket
// outside. The other threads of the init open nothing that a command names.
func confine(writable []string, abi int) error {
	const (
		files    = ll.AccessFSExecute | ll.AccessFSWriteFile | ll.AccessFSReadFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev
		read     = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir
		version2 = ll.AccessFSRefer<<1 - 1
		version3 = ll.AccessFSTruncate<<1 - 1
		version5 = ll.AccessFSIoctlDev<<1 - 1
	)
	rules := ll.RulesetAttr{HandledAccessFS: version2}
	if abi >= 3 {
		rules.HandledAccessFS = version3
	}
	if abi >= 5 {
		rules.HandledAccessFS = version5
	}
	if abi >= 6 {
		// Not the network, which the empty namespace closes: programs may serve on loopback. Nor signals, which the process namespace bounds.
		rules.Scoped = ll.ScopeAbstractUnixSocket
	}
	fd, err := ll.LandlockCreateRuleset(&rules, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	grant := func(path string, rights uint64) error {
		parent, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		defer func() { _ = unix.Close(parent) }()
		var st unix.Stat_t
		if err := unix.Fstat(parent, &st); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			rights &= files
		}
		return ll.LandlockAddPathBeneathRule(fd, &ll.PathBeneathAttr{AllowedAccess: rights & rules.HandledAccessFS, ParentFd: parent}, 0)
	}
	if err := grant("/", read); err != nil {
		return err
	}
	for _, w := range writable {
		rights := uint64(version3)
		if w == "/"+spaceinit.Terminals || w == "/dev/"+spaceinit.Terminal {
			rights = version5 // the size and the mode of a terminal are set by ioctl
		}
		if err := grant(w, rights); err != nil {
			return err
		}
	}
	return ll.LandlockRestrictSelf(fd, 0)
}

// filter installs the program for all threads.
func filter(program []byte) error {
	const instruction = 8
	if len(program)%instruction != 0 || len(program)/instruction > 4096 {
		return unix.EINVAL
	}
	f := unix.SockFprog{Len: uint16(len(program) / instruction), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))}
	_, _, e := syscall.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&f)))
	runtime.KeepAlive(program)
	if e != 0 {
		return e
	}
	return nil
}
