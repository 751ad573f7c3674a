//go:build linux

package namespace

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/spaceinit"
)

// Names and paths that a space sees from inside.
const (
	workdir = "/workspace" // its files
	homedir = "/tmp/home"  // private, gone with the space
	insider = 1000         // its one user and group

	// maxTerminals bounds the terminals of a space, those that its programs make for themselves included.
	maxTerminals = 2 * spaceinit.MaxCommands

	// initThreads is the init's own part of the bound on processes: its threads.
	initThreads = 24
)

// masks are the parts of /proc that everybody may read, tell about the host, and serve no program; and those that would do harm in the
// hands of root, which no process of a space is. All of /proc is read-only besides.
var masks = []string{
	"acpi", "asound", "bus", "cmdline", "devices", "diskstats", "driver", "interrupts", "irq", "kallsyms", "kcore", "key-users", "keys",
	"kmsg",
	"latency_stats", "locks", "mdstat", "modules", "partitions", "sched_debug", "scsi", "softirqs", "swaps", "sys/kernel/random/boot_id",
	"sysrq-trigger", "timer_list", "timer_stats",
}

// layout says how the init shall build the space. The mounts that only the daemon may make come as descriptors, which the caller closes.
func (t *Tier) layout(spec space.Spec) (s *spaceinit.Setup, files []*os.File, err error) {
	const quiet = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	s = &spaceinit.Setup{
		Hostname:  "space",
		Dirs:      append([]string{"etc", "dev", "var", "run", cellFolder, "home"}, t.root.dirs...),
		Files:     append(etcFiles(), cellFiles()...),
		Links:     append(t.root.links, t.links...),
		Landlock:  true,
		Namespace: true,
		Filter:    t.filter,
		Folders:   []string{strings.TrimPrefix(homedir, "/")},
		Writable:  []string{workdir, "/tmp", "/" + spaceinit.Terminals},
	}
	for _, dir := range spaceinit.Scratches {
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			s.Scratch = dir
			break
		}
	}
	mount := func(source, target string, file bool, attr uint64) error {
		m := spaceinit.Mount{Source: source, FD: -1, Target: target, File: file, Attr: attr}
		if t.privileged && attr != 0 {
			// The daemon's user may pass folders that the space's may not, so it opens the way.
			tree, err := openTree(source, attr)
			if err != nil {
				return fmt.Errorf("open %s: %w", target, err)
			}
			m.Source, m.FD = "", int32(firstMount+len(files))
			files = append(files, tree)
		}
		s.Mounts = append(s.Mounts, m)
		return nil
	}
	for _, b := range t.root.binds {
		err = errors.Join(err, mount(b.source, b.target, b.file, quiet|unix.MOUNT_ATTR_RDONLY))
	}
	err = errors.Join(err, mount(spec.Dir, strings.TrimPrefix(workdir, "/"), false, quiet))
	for _, d := range spaceinit.Devices {
		if _, missing := os.Stat("/dev/" + d); missing != nil && d == spaceinit.Terminal {
			continue
		}
		err = errors.Join(err, mount("/dev/"+d, "dev/"+d, true, 0))
		s.Writable = append(s.Writable, "/dev/"+d)
	}
	if err != nil {
		for _, f := range files {
			_ = f.Close()
		}
		return nil, nil, err
	}
	inodes := space.MaxFiles(spec.Limits.TmpBytes)
	s.Mounts = append(s.Mounts,
		spaceinit.Mount{FD: -1, Type: "proc", Target: "proc", Attr: quiet | unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOEXEC},
		spaceinit.Mount{
			FD: -1, Type: "tmpfs", Target: "tmp", Attr: quiet,
			Option: fmt.Sprintf("size=%d,nr_inodes=%d,mode=1777", spec.Limits.TmpBytes, inodes),
		})
	s.Mounts = append(s.Mounts, spaceinit.Mount{
		FD: -1, Type: "devpts", Target: spaceinit.Terminals, Attr: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC,
		Option: fmt.Sprintf("newinstance,mode=0600,ptmxmode=0666,max=%d", maxTerminals),
	})
	s.Masks = append(s.Masks, t.root.masks...)
	for _, m := range masks {
		s.Masks = append(s.Masks, "proc/"+m)
	}
	for resource, value := range map[uint32]int64{
		unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: spec.Limits.FileBytes, unix.RLIMIT_NOFILE: spec.Limits.OpenFiles,
		unix.RLIMIT_MEMLOCK: 64 << 10, unix.RLIMIT_MSGQUEUE: 64 << 10,
	} {
		s.Rlimits = append(s.Rlimits, spaceinit.Rlimit{Resource: resource, Value: uint64(value)})
	}
	return s, files, nil
}

// etcFiles are the files of /etc that programs ask for. They name no user and no host of the real machine.
func etcFiles() []spaceinit.File {
	return []spaceinit.File{
		{Path: "etc/passwd", Content: fmt.Sprintf("agent:x:%d:%d:agent:%s:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n", insider, insider,
			homedir)},
		{Path: "etc/group", Content: fmt.Sprintf("agent:x:%d:\nnogroup:x:65534:\n", insider)},
		{Path: "etc/hosts", Content: "127.0.0.1 localhost space\n::1 localhost space\n"},
		{Path: "etc/hostname", Content: "space\n"},
		{Path: "etc/nsswitch.conf", Content: "passwd: files\ngroup: files\nhosts: files\n"},
		{Path: "etc/resolv.conf", Content: ""},
	}
}

// etcLinks are the links that every space has.
func etcLinks() []spaceinit.Link {
	return []spaceinit.Link{
		{Path: "dev/fd", Target: "/proc/self/fd"},
		{Path: "dev/stdin", Target: "/proc/self/fd/0"},
		{Path: "dev/stdout", Target: "/proc/self/fd/1"},
		{Path: "dev/stderr", Target: "/proc/self/fd/2"},
		{Path: "dev/ptmx", Target: "pts/ptmx"},
		{Path: "dev/shm", Target: "/tmp"}, // shared memory is bounded like the rest of /tmp
		{Path: "var/tmp", Target: "/tmp"},
		{Path: "home/user", Target: workdir}, // the name that programs made for E2B know
		{Path: "etc/mtab", Target: "/proc/self/mounts"},
	}
}

// openTree makes a detached copy of the mount at path with attributes of its own and no propagation.
func openTree(path string, attr uint64) (*os.File, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path,
		unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	set := unix.MountAttr{Attr_set: attr, Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &set); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), path), nil
}

// environment returns the variables of a command: the space's, then the command's, and none of the daemon's.
func environment(own, command map[string]string) []string {
	all := map[string]string{
		"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": homedir, "TMPDIR": "/tmp", "LANG": "C.UTF-8", "USER": "agent", "LOGNAME": "agent",
		"SHELL": "/bin/sh",
	}
	for _, extra := range []map[string]string{own, command} {
		for name, value := range extra {
			all[name] = value
		}
	}
	env := make([]string, 0, len(all))
	for name, value := range all {
		env = append(env, name+"="+value)
	}
	return env
}

// groupName is the name of a space's control groups, so that a later daemon finds those of an earlier one.
func (t *Tier) groupName(s id.Space) string { return "agentbox-" + t.owner + "-" + string(s) }
