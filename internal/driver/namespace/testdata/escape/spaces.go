//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// namespaceTries are ways into other namespaces and other views of the file system.
var namespaceTries = map[string][]try{
	"clone user namespace":    {cloned(unix.CLONE_NEWUSER)},
	"clone3 user namespace":   {cloned3(unix.CLONE_NEWUSER), cloned3(unix.CLONE_NEWNS)},
	"unshare user namespace":  {unshared(unix.CLONE_NEWUSER)},
	"clone other namespaces":  {cloned(unix.CLONE_NEWNS), cloned(unix.CLONE_NEWPID), cloned(unix.CLONE_NEWNET), cloned(unix.CLONE_NEWCGROUP)},
	"unshare other namespace": {unshared(unix.CLONE_NEWNS), unshared(unix.CLONE_NEWNET), unshared(unix.CLONE_NEWTIME), unshared(unix.CLONE_NEWCGROUP)},
	"setns":                   {enter("/proc/1/ns/mnt"), enter("/proc/1/ns/user"), enter("/proc/self/ns/net"), enterPidfd},
	"mount":                   {mounted("tmpfs", "tmpfs", 0), mounted("proc", "proc", 0), mounted("/", "", unix.MS_BIND), mounted("cgroup", "cgroup", 0), mounted("cgroup2", "cgroup2", 0)},
	"remount read-only parts": {remount("/"), remount("/usr"), remount("/proc"), remount("/workspace")},
	"unmount": {
		func(string) error { return unix.Unmount("/proc", unix.MNT_DETACH) },
		func(string) error { return unix.Unmount("/workspace", unix.MNT_DETACH) },
		func(string) error { return unix.Unmount("/tmp", 0) },
	},
	"new mount interface": {
		func(string) error { _, err := unix.Fsopen("tmpfs", 0); return err },
		func(string) error { _, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE); return err },
		func(string) error {
			return unix.MoveMount(unix.AT_FDCWD, "/workspace", unix.AT_FDCWD, "/tmp", 0)
		},
		func(string) error {
			return unix.MountSetattr(unix.AT_FDCWD, "/usr", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
		},
		func(string) error { _, err := unix.Fspick(unix.AT_FDCWD, "/", 0); return err },
	},
	"pivot_root and chroot": {
		func(string) error { return unix.PivotRoot("/workspace", "/workspace") },
		func(string) error { return unix.Chroot("/workspace") },
	},
	"above the root": {func(arg string) error {
		// A folder kept open from before a change of root, then upwards: the classic way out of a chroot.
		fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		if err := unix.Fchdir(fd); err != nil {
			return err
		}
		for range 64 {
			if err := unix.Chdir(".."); err != nil {
				return err
			}
		}
		return openNow(strings.TrimPrefix(arg, "/"), unix.O_RDONLY)
	}},
}

// child runs this program's harmless way in a child with the given clone flags.
func cloned(flags uintptr) try {
	return func(string) error {
		cmd := exec.Command("/proc/self/exe", "nothing")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		if err := cmd.Start(); err != nil {
			return err
		}
		_ = cmd.Wait()
		return nil
	}
}

// cloned3 calls clone3 with the flags; the child ends at once.
func cloned3(flags uint64) try {
	return func(string) error {
		args := struct{ flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls uint64 }{flags: flags, exitSignal: uint64(unix.SIGCHLD)}
		pid, _, e := syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
		if e != 0 {
			return e
		}
		if pid == 0 {
			_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		_, err := syscall.Wait4(int(pid), nil, 0, nil)
		return err
	}
}

// unshared calls unshare in a child of one thread.
func unshared(flags uintptr) try {
	return func(string) error {
		cmd := exec.Command("/proc/self/exe", "nothing")
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: flags}
		if err := cmd.Start(); err != nil {
			return err
		}
		_ = cmd.Wait()
		return nil
	}
}

func enter(path string) try {
	return func(string) error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }()
		return unix.Setns(fd, 0)
	}
}

func enterPidfd(string) error {
	fd, err := unix.PidfdOpen(1, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Setns(fd, unix.CLONE_NEWNS)
}

func mounted(source, kind string, flags uintptr) try {
	return func(string) error {
		target, err := os.MkdirTemp("", "mount")
		if err != nil {
			return err
		}
		if err := unix.Mount(source, target, kind, flags, ""); err != nil {
			return err
		}
		return errors.Join(unix.Unmount(target, unix.MNT_DETACH), os.Remove(target))
	}
}

func remount(target string) try {
	return func(string) error { return unix.Mount("", target, "", unix.MS_REMOUNT|unix.MS_BIND, "") }
}

// processTries are ways into other processes.
var processTries = map[string][]try{
	"ptrace the init": {
		func(string) error { return unix.PtraceAttach(1) },
		func(string) error { return unix.PtraceSeize(1) },
	},
	"ptrace another command": {func(arg string) error {
		pid, err := strconv.Atoi(arg)
		if err != nil {
			return err
		}
		return unix.PtraceAttach(pid)
	}},
	"read another process's memory": {func(arg string) error {
		pid, err := strconv.Atoi(arg)
		if err != nil {
			return err
		}
		var b [8]byte
		local := []unix.Iovec{{Base: &b[0], Len: 8}}
		_, err = unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
		return err
	}},
	"the init through /proc": {
		open("/proc/1/root/etc", unix.O_RDONLY), open("/proc/1/cwd", unix.O_RDONLY), open("/proc/1/mem", unix.O_RDWR),
		open("/proc/1/exe", unix.O_RDONLY), open("/proc/1/maps", unix.O_RDONLY), readSome("/proc/1/environ"), open("/proc/1/fd/3", unix.O_RDWR),
		open("/proc/1/task/1/root/etc", unix.O_RDONLY), open("/proc/1/map_files", unix.O_RDONLY),
		func(string) error { _, err := os.ReadDir("/proc/1/fd"); return err },
	},
	"take the init's connection": {func(string) error {
		fd, err := unix.PidfdOpen(1, 0)
		if err != nil {
			return err
		}
		_, err = unix.PidfdGetfd(fd, 3, 0)
		return err
	}},
	"inherited descriptors": {func(string) error {
		list, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			return err
		}
		for _, f := range list {
			target, err := os.Readlink(f)
			if err != nil || filepath.Base(f) == "0" && target == "/dev/null" || strings.HasPrefix(target, "pipe:") ||
				strings.HasPrefix(target, "anon_inode:[event") || strings.HasPrefix(target, "/proc/") {
				continue // ours: pipes, the runtime's poller, and the folder that is being read
			}
			return nil
		}
		return fmt.Errorf("only our own among %q", list)
	}},
	"signal the host": {
		func(arg string) error {
			pid, err := strconv.Atoi(arg)
			if err != nil {
				return err
			}
			return unix.Kill(pid, 0)
		},
		func(arg string) error {
			pid, err := strconv.Atoi(arg)
			if err != nil {
				return err
			}
			_, err = unix.PidfdOpen(pid, 0)
			return err
		},
	},
	"the daemon's environment": {func(arg string) error {
		if slices.ContainsFunc(os.Environ(), func(v string) bool { return strings.HasSuffix(v, "="+arg) }) {
			return nil
		}
		all, err := filepath.Glob("/proc/[0-9]*/environ")
		if err != nil {
			return err
		}
		for _, f := range all {
			if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), arg) {
				return nil
			}
		}
		return fmt.Errorf("in none of %d environments", len(all)+1)
	}},
	"the launcher": {func(string) error {
		all, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			return err
		}
		for _, f := range all {
			if b, err := os.ReadFile(f); err == nil && strings.HasPrefix(string(b), "agentbox-launcher\x00") {
				return nil
			}
		}
		return fmt.Errorf("none of %d processes is one", len(all))
	}},
	"processes of the host": {func(arg string) error { _, err := os.Stat("/proc/" + arg); return err }},
}
