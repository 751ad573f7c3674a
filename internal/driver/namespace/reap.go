//go:build linux

package namespace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/id"
)

// Reap ends what an earlier daemon left of its spaces, but those in keep and those of this tier that live: the init of each, with which
// every process of the space ends, and its control groups.
func (t *Tier) Reap(ctx context.Context, keep []id.Space) error {
	mine := func(s id.Space) bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.living[s] != nil || slices.Contains(keep, s)
	}
	// Nobody may start a space whose group is being emptied: its processes would be in the group by then.
	claim := func(s id.Space) (release func(), ok bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.living[s] != nil || t.reaping[s] || slices.Contains(keep, s) {
			return nil, false
		}
		t.reaping[s] = true
		return func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			delete(t.reaping, s)
		}, true
	}
	var all error
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, p := range processes {
		if pid, err := strconv.Atoi(p.Name()); err == nil {
			all = errors.Join(all, t.reapInit(ctx, pid, mine))
		}
	}
	for _, dir := range t.leftGroups() {
		s := id.Space(strings.TrimPrefix(filepath.Base(dir), t.groupName("")))
		if release, ok := claim(s); ok {
			all = errors.Join(all, emptyGroup(ctx, dir))
			release()
		}
	}
	return all
}

// reapInit ends a process if it is the init of a space of this owner that is not wanted. The descriptor that is opened first keeps the
// number from meaning another process by the time of the kill.
func (t *Tier) reapInit(ctx context.Context, pid int, mine func(id.Space) bool) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil //nolint:nilerr // it has ended meanwhile
	}
	defer func() { _ = unix.Close(fd) }()
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return nil //nolint:nilerr // it has ended meanwhile
	}
	args := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	if len(args) != 3 || args[0] != initName || args[1] != t.owner || mine(id.Space(args[2])) {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH && err != unix.EPERM {
		return err
	}
	return await(ctx, func() error {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		if n == 1 || err != nil && err != unix.EINTR {
			return nil
		}
		return errors.New("the init of an earlier space does not end")
	})
}

// leftGroups returns the control groups with this owner's names, wherever the daemon that made them stood in the tree.
func (t *Tier) leftGroups() []string {
	var found []string
	for _, top := range t.groups.tops {
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil //nolint:nilerr // groups come and go during the walk
			}
			if strings.HasPrefix(d.Name(), t.groupName("")) {
				found = append(found, path)
				return fs.SkipDir
			}
			// The kernel counts the folders in a folder of groups. Most have none, and to read the names of their fifty files is what takes a walk
			// its time.
			var st unix.Stat_t
			if unix.Lstat(path, &st) == nil && st.Nlink == noFolders {
				return fs.SkipDir
			}
			return nil
		})
	}
	return found
}

// noFolders is the number of links of a folder that holds no other.
const noFolders = 2

// emptyGroup ends the processes of a group and removes it.
func emptyGroup(ctx context.Context, dir string) error {
	return await(ctx, func() error {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for _, text := range words(filepath.Join(dir, "cgroup.procs")) {
			if pid, err := strconv.Atoi(text); err == nil {
				killIn(dir, pid)
			}
		}
		if err := unix.Rmdir(dir); err != nil && err != unix.ENOENT {
			return &fs.PathError{Op: "remove", Path: dir, Err: err}
		}
		return nil
	})
}

// killIn kills a process of a group, but never this one: on version 1 the list holds every process of which a single thread is in the
// group, as that of a daemon or its launcher may be while a space is started. The descriptor that is opened first keeps the number from
// meaning another process by the time of the kill, and the process must be in the group with its first thread.
func killIn(dir string, pid int) {
	if pid <= 1 || pid == os.Getpid() {
		return
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it has ended meanwhile
	}
	defer func() { _ = unix.Close(fd) }()
	groups, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	if err == nil && inGroup(string(groups), filepath.Base(dir)) {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

// inGroup reports whether a /proc/PID/cgroup names a group in one of the hierarchies.
func inGroup(groups, name string) bool {
	for line := range strings.Lines(groups) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 && slices.Contains(strings.Split(f[2], "/"), name) {
			return true
		}
	}
	return false
}

// await tries until it succeeds, ctx ends or five seconds have passed.
func await(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return err
		}
	}
}
