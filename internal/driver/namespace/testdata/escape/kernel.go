//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// text returns a pointer to a NUL-terminated text for a system call.
func text(s string) uintptr {
	p, err := syscall.BytePtrFromString(s)
	if err != nil {
		panic(err)
	}
	kept = append(kept, p)
	return uintptr(unsafe.Pointer(p))
}

var kept []*byte // so that what text returned stays

// zeros is a large empty structure for calls that want one.
var zeros [512]byte

func empty() uintptr { return uintptr(unsafe.Pointer(&zeros)) }

// kernelTries are calls that widen what the kernel shows or lets be done.
var kernelTries = map[string][]try{
	"core_pattern": {
		open("/proc/sys/kernel/core_pattern", unix.O_WRONLY), open("/proc/self/root/proc/sys/kernel/core_pattern", unix.O_WRONLY),
		open("/proc/thread-self/root/proc/sys/kernel/core_pattern", unix.O_RDWR),
	},
	"settings of the kernel": {
		open("/proc/sys/kernel/modprobe", unix.O_WRONLY), open("/proc/sys/vm/overcommit_memory", unix.O_WRONLY),
		open("/proc/sys/kernel/hostname", unix.O_WRONLY), open("/proc/sys/user/max_user_namespaces", unix.O_WRONLY),
		open("/proc/sys/net/ipv4/ip_forward", unix.O_WRONLY), open("/proc/sys/fs/binfmt_misc/register", unix.O_WRONLY),
	},
	"sysrq":                {open("/proc/sysrq-trigger", unix.O_WRONLY|unix.O_TRUNC), notNull("/proc/sysrq-trigger")},
	"memory of the kernel": {readSome("/proc/kcore"), readSome("/proc/kmsg"), readSome("/proc/kallsyms"), readSome("/dev/mem"), readSome("/dev/kmem"), readSome("/dev/port"), readSome("/proc/kpageflags")},
	"what runs on the host": {readSome("/proc/cmdline"), readSome("/proc/keys"), readSome("/proc/timer_list"), readSome("/proc/modules"), readSome("/proc/interrupts"), readSome("/proc/sys/kernel/random/boot_id"),
		readSome("/proc/diskstats"), readSome("/proc/devices"), readSome("/proc/locks")},
	"log of the kernel":       {func(string) error { _, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, zeros[:]); return err }, readSome("/dev/kmsg")},
	"keyrings":                {system(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, ^uintptr(2), 0), addKey, system(unix.SYS_REQUEST_KEY, text("user"), text("x"), 0, 0)},
	"bpf":                     {system(unix.SYS_BPF, unix.BPF_MAP_CREATE, empty(), 128), system(unix.SYS_BPF, unix.BPF_PROG_LOAD, empty(), 128)},
	"perf events":             {perf},
	"io_uring":                {ioUring},
	"userfaultfd":             {system(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|1)},
	"kernel modules":          {system(unix.SYS_INIT_MODULE, empty(), 512, text("")), system(unix.SYS_FINIT_MODULE, 0, text(""), 0), system(unix.SYS_DELETE_MODULE, text("loop"), unix.O_NONBLOCK)},
	"another kernel":          {system(unix.SYS_KEXEC_LOAD, 0, 0, 0, 0), system(unix.SYS_REBOOT, unix.LINUX_REBOOT_MAGIC1, unix.LINUX_REBOOT_MAGIC2, unix.LINUX_REBOOT_CMD_CAD_OFF, 0)},
	"clock":                   {system(unix.SYS_CLOCK_SETTIME, unix.CLOCK_REALTIME, empty()), system(unix.SYS_SETTIMEOFDAY, empty(), 0), system(unix.SYS_CLOCK_ADJTIME, unix.CLOCK_REALTIME, empty())},
	"names of the host":       {system(unix.SYS_SETHOSTNAME, text("x"), 1), system(unix.SYS_SETDOMAINNAME, text("x"), 1)},
	"swap, quota, accounting": {system(unix.SYS_SWAPON, text("/workspace/x"), 0), system(unix.SYS_QUOTACTL, 0, 0, 0, 0), system(unix.SYS_ACCT, text("/workspace/x"))},
	"personality":             {system(unix.SYS_PERSONALITY, 0x0040000), system(unix.SYS_PERSONALITY, 0x0400000)},
	"file notifications":      {system(unix.SYS_FANOTIFY_INIT, 0, 0)},
	"typing into a terminal": {
		// On a descriptor that is not a terminal the kernel itself would say ENOTTY; the filter says EPERM before, also with high bits set.
		refusedWith(unix.EPERM, func() error { return call(unix.SYS_IOCTL, 0, unix.TIOCSTI, text("x")) }),
		refusedWith(unix.EPERM, func() error { return call(unix.SYS_IOCTL, 0, unix.TIOCSTI|1<<32, text("x")) }),
		refusedWith(unix.EPERM, func() error { return call(unix.SYS_IOCTL, 0, unix.TIOCLINUX, text("\x02")) }),
	},
	"privileges": {
		func(string) error { return unix.Setresuid(0, 0, 0) }, func(string) error { return unix.Setresgid(0, 0, 0) },
		func(string) error { return unix.Setgroups([]int{0}) }, func(string) error {
			if _, err := unix.SetfsuidRetUid(0); err != nil {
				return err
			}
			if now, err := unix.SetfsuidRetUid(-1); err != nil || now != 0 {
				return errors.Join(err, errors.New("the file user stays "+strconv.Itoa(now)))
			}
			return nil
		},
		func(string) error {
			h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			d := [2]unix.CapUserData{{Effective: 1 << unix.CAP_SYS_ADMIN, Permitted: 1 << unix.CAP_SYS_ADMIN}}
			return unix.Capset(&h, &d[0])
		},
		func(string) error {
			return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_NET_RAW, 0, 0)
		},
		func(string) error { return hasPrivileges() },
	},
	"more than the limits": {
		raise(unix.RLIMIT_FSIZE), raise(unix.RLIMIT_NOFILE), raise(unix.RLIMIT_CORE), raise(unix.RLIMIT_MEMLOCK),
		func(string) error { return os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0) },
		func(string) error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -20) },
	},
	"maps of the user namespace": {
		open("/proc/self/uid_map", unix.O_WRONLY), open("/proc/self/gid_map", unix.O_WRONLY), open("/proc/self/setgroups", unix.O_WRONLY),
	},
	"leave the command's tree": {
		func(string) error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) },
	},
	"control groups": {
		open("/sys/fs/cgroup", unix.O_RDONLY), open("/sys/fs/cgroup/memory/release_agent", unix.O_WRONLY),
		func(string) error {
			list, err := filepath.Glob("/sys/fs/cgroup/*")
			if err == nil && len(list) == 0 {
				err = errors.New("none to be seen")
			}
			return err
		},
		func(string) error {
			b, err := os.ReadFile("/proc/self/cgroup")
			if err == nil && !strings.Contains(string(b), "agentbox") {
				err = errors.New("the groups' paths do not show")
			}
			return err
		},
	},
	"system calls of other interfaces": otherInterfaces,
}

func notNull(path string) try {
	return func(string) error {
		var st, null unix.Stat_t
		if err := errors.Join(unix.Stat(path, &st), unix.Stat("/dev/null", &null)); err != nil {
			return err
		}
		if st.Rdev == null.Rdev && st.Mode&unix.S_IFMT == unix.S_IFCHR {
			return errors.New("it is the null device")
		}
		return nil
	}
}

// refusedWith is held only if the call fails with exactly that error: others would mean that it got through to the kernel.
func refusedWith(want syscall.Errno, f func() error) try {
	return func(string) error {
		if err := f(); err == want {
			return err
		}
		return nil
	}
}

func addKey(string) error {
	_, err := unix.AddKey("user", "escape", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
	return err
}

func perf(string) error {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func ioUring(string) error {
	var params [30]uint32
	return call(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&params)))
}

func hasPrivileges() error {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		switch name {
		case "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb":
			if value != "0000000000000000" {
				return nil
			}
		case "NoNewPrivs", "Seccomp_filters":
			if value == "0" {
				return nil
			}
		}
	}
	return errors.New("none in any set")
}

func raise(resource int) try {
	return func(string) error {
		return unix.Setrlimit(resource, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	}
}

// networkTries are ways to other machines, to the host and to the hypervisor.
var networkTries = map[string][]try{
	"vsock":           {socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0), socket(unix.AF_VSOCK, unix.SOCK_DGRAM, 0)},
	"packet sockets":  {socket(unix.AF_PACKET, unix.SOCK_RAW, 0x300), socket(unix.AF_PACKET, unix.SOCK_DGRAM, 0x300), socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)},
	"kernel's crypto": {socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)},
	"netlink": {
		socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER), socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT),
		socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT), socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_XFRM),
	},
	"other families": {socket(unix.AF_BLUETOOTH, unix.SOCK_RAW, 0), socket(unix.AF_TIPC, unix.SOCK_STREAM, 0), socket(unix.AF_XDP, unix.SOCK_RAW, 0), socket(unix.AF_CAN, unix.SOCK_RAW, 1), socket(unix.AF_RDS, unix.SOCK_SEQPACKET, 0)},
	"host's loopback": {func(arg string) error {
		c, err := net.Dial("tcp", arg)
		if err != nil {
			return err
		}
		return c.Close()
	}},
	"host's abstract socket": {func(arg string) error {
		c, err := net.Dial("unix", "@"+arg)
		if err != nil {
			return err
		}
		return c.Close()
	}},
	"host's socket file": {func(arg string) error {
		c, err := net.Dial("unix", arg)
		if err != nil {
			return err
		}
		return c.Close()
	}},
	"interfaces": {
		func(string) error {
			list, err := net.Interfaces()
			if err != nil {
				return err
			}
			for _, i := range list {
				if i.Flags&net.FlagLoopback == 0 {
					return nil
				}
			}
			return fmt.Errorf("only loopback among %d", len(list))
		},
		func(string) error {
			b, err := os.ReadFile("/proc/net/route")
			if err != nil {
				return err
			}
			if n := strings.Count(string(b), "\n"); n <= 1 {
				return errors.New("no route")
			}
			return nil
		},
		func(string) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			ifr, err := unix.NewIfreq("lo")
			if err != nil {
				return err
			}
			ifr.SetUint16(0)
			return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
		},
	},
}

func socket(family, kind, protocol int) try {
	return func(string) error {
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}
}

// fileTries are ways to files that are not the space's.
var fileTries = map[string][]try{
	"nothing":            {func(string) error { return errors.New("nothing was tried") }},
	"a file of the host": {func(arg string) error { return openNow(arg, unix.O_RDONLY) }},
	"write to the system": {
		open("/usr/bin/escape", unix.O_CREAT|unix.O_WRONLY), open("/etc/passwd", unix.O_WRONLY), open("/escape", unix.O_CREAT|unix.O_WRONLY),
		open("/void/escape", unix.O_CREAT|unix.O_WRONLY), open("/usr/local/escape", unix.O_CREAT|unix.O_WRONLY), open("/dev/escape", unix.O_CREAT|unix.O_WRONLY),
		func(string) error { return unix.Chmod("/etc/passwd", 0o666) },
		func(string) error { return unix.Rename("/usr/bin/env", "/usr/bin/env2") },
		func(string) error { return unix.Unlink("/bin") },
	},
	"device nodes": {
		func(string) error { return unix.Mknod("/workspace/disk", unix.S_IFBLK|0o666, int(unix.Mkdev(254, 0))) },
		func(string) error { return unix.Mknod("/tmp/mem", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 1))) },
		open("/dev/vda", unix.O_RDONLY), open("/dev/sda", unix.O_RDONLY), open("/dev/kvm", unix.O_RDWR), open("/dev/fuse", unix.O_RDWR), open("/dev/net/tun", unix.O_RDWR),
	},
	"a device that the host left": {func(arg string) error { return openNow(arg, unix.O_RDONLY) }},
	"a privileged program": {func(string) error {
		if os.Geteuid() != os.Getuid() || os.Geteuid() == 0 {
			return nil
		}
		return errors.New("user " + strconv.Itoa(os.Geteuid()))
	}},
	"files by handle": {
		func(string) error { _, _, err := unix.NameToHandleAt(unix.AT_FDCWD, "/usr", 0); return err },
		func(string) error {
			fd, err := unix.Open("/usr", unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			// The handle of the root of an ext4 file system: inode 2, generation 0.
			_, err = unix.OpenByHandleAt(fd, unix.NewFileHandle(1, []byte{2, 0, 0, 0, 0, 0, 0, 0}), unix.O_RDONLY)
			return err
		},
	},
	"links out of the files": {
		func(arg string) error {
			_ = os.Symlink(arg, "/workspace/out")
			return openNow("/workspace/out", unix.O_RDONLY)
		},
		func(string) error { return os.Link("/usr/bin/env", "/workspace/env") },
		func(string) error { return os.Link("/etc/passwd", "/workspace/passwd") },
		func(arg string) error { return openNow("/workspace/../.."+arg, unix.O_RDONLY) },
		func(arg string) error { return openNow("/proc/self/root/../.."+arg, unix.O_RDONLY) },
		func(arg string) error { return openNow("/proc/self/cwd/../../../../.."+arg, unix.O_RDONLY) },
		func(arg string) error { return openNow("/proc/self/fd/../../../../../.."+arg, unix.O_RDONLY) },
	},
}
