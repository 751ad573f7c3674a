//go:build linux

package namespace

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/space"
)

// The controllers that bound a space, by the names that both versions of control groups give them.
const (
	memoryController = "memory"
	pidsController   = "pids"
	cpuController    = "cpu"
	cpuacct          = "cpuacct" // version 1 only; version 2 counts in cpu
)

// hierarchy is where the control groups of this daemon's spaces are made.
type hierarchy struct {
	v1      map[string]string // controller to the daemon's own group in that hierarchy
	v2      string            // the daemon's own group in the unified hierarchy, "" without one
	unified map[string]bool   // the controllers that v2 can bound children with
	tops    []string          // where the hierarchies are mounted
}

// findHierarchy finds the host's control groups below root, which is / except in tests.
func findHierarchy(root string) (*hierarchy, error) {
	own, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil, err
	}
	mounts, err := os.Open(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = mounts.Close() }()
	paths := map[string]string{} // controller, "" for the unified hierarchy, to the group's path
	for line := range strings.Lines(string(own)) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 {
			for c := range strings.SplitSeq(f[1], ",") {
				paths[c] = f[2]
			}
		}
	}
	h := &hierarchy{v1: map[string]string{}, unified: map[string]bool{}}
	lines := bufio.NewScanner(mounts)
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		f, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(kind) < 3 {
			continue
		}
		at := func(path string) string {
			// In a container the mount shows a part of the tree only.
			rest, below := strings.CutPrefix(path, strings.TrimSuffix(f[3], "/"))
			if !below {
				rest = ""
			}
			return filepath.Join(root, f[4], rest)
		}
		if strings.HasPrefix(kind[0], "cgroup") {
			h.tops = append(h.tops, filepath.Join(root, f[4]))
		}
		switch kind[0] {
		case "cgroup":
			for c := range strings.SplitSeq(kind[2], ",") {
				if path, ok := paths[c]; ok && slices.Contains([]string{memoryController, pidsController, cpuController, cpuacct}, c) {
					h.v1[c] = at(path)
				}
			}
		case "cgroup2":
			if path, ok := paths[""]; ok {
				h.v2 = at(path)
			}
		}
	}
	return h, lines.Err()
}

// daemonGroup is the group into which a daemon moves itself: a group of version 2 bounds its children only if it has no process of its own.
const daemonGroup = "agentbox-daemon"

// delegate makes the daemon's own group of version 2 hand its controllers to the groups of spaces, if the daemon may. Controllers that it
// may not hand on stay out of unified, and their bounds are not enforceable.
func (h *hierarchy) delegate(pid int) {
	if h.v2 == "" {
		return
	}
	h.v2 = strings.TrimSuffix(h.v2, "/"+daemonGroup) // an earlier start of this process has moved
	offered := words(filepath.Join(h.v2, "cgroup.controllers"))
	for _, c := range []string{memoryController, pidsController, cpuController} {
		if h.v1[c] != "" || !slices.Contains(offered, c) {
			continue
		}
		control := filepath.Join(h.v2, "cgroup.subtree_control")
		if !slices.Contains(words(control), c) {
			err := writeFile(control, "+"+c)
			if errors.Is(err, unix.EBUSY) && h.moveOut(pid) == nil {
				err = writeFile(control, "+"+c)
			}
			if err != nil {
				continue
			}
		}
		h.unified[c] = true
	}
}

// moveOut moves the daemon into a group below its own.
func (h *hierarchy) moveOut(pid int) error {
	dir := filepath.Join(h.v2, daemonGroup)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return writeFile(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(pid))
}

func words(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(b))
}

// group holds the control groups of one space.
type group struct {
	v1   map[string]string // controller to the group's directory
	home map[string]string // controller to the group in which the daemon's own threads belong
	v2   string            // the group's directory in the unified hierarchy, "" if none is needed
}

// set is one value that bounds a space.
type set struct {
	controller, bound string
	files             [][2]string // of version 1
	unified           [][2]string // of version 2
}

// create makes the groups of a space and sets its bounds. It returns the bounds that could not be set and why; those that could stay.
func (h *hierarchy) create(name string, l space.Limits) (*group, map[string]error) {
	g := &group{v1: map[string]string{}, home: map[string]string{}}
	failed := map[string]error{}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	const period = 100_000 // microseconds
	for _, s := range []set{
		{
			memoryController, "memory_bytes",
			[][2]string{{"memory.limit_in_bytes", number(l.MemoryBytes)}, {"?memory.memsw.limit_in_bytes", number(l.MemoryBytes)}},
			[][2]string{{"memory.max", number(l.MemoryBytes)}, {"?memory.swap.max", "0"}},
		},
		{
			pidsController, "pids",
			[][2]string{{"pids.max", number(l.Pids + initThreads)}}, [][2]string{{"pids.max", number(l.Pids + initThreads)}},
		},
		{
			cpuController, "cpu_millis",
			[][2]string{{"cpu.cfs_period_us", number(period)}, {"cpu.cfs_quota_us", number(max(l.CPUMillis*period/1000, 1000))}},
			[][2]string{{"cpu.max", number(max(l.CPUMillis*period/1000, 1000)) + " " + number(period)}},
		},
		{cpuacct, "", nil, nil},
	} {
		if err := g.apply(h, name, s); err != nil && s.bound != "" {
			failed[s.bound] = err
		}
	}
	return g, failed
}

// apply makes the group of one controller and sets its values.
func (g *group) apply(h *hierarchy, name string, s set) error {
	if parent, ok := h.v1[s.controller]; ok {
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		g.v1[s.controller], g.home[s.controller] = dir, parent
		return write(dir, s.files)
	}
	if !h.unified[s.controller] {
		return fmt.Errorf("this host has no %s controller", s.controller)
	}
	if g.v2 == "" {
		dir := filepath.Join(h.v2, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		g.v2 = dir
	}
	return write(g.v2, s.unified)
}

// write writes values into a group's files. A name that starts with ? is for a file that not every kernel has.
func write(dir string, values [][2]string) error {
	for _, v := range values {
		name, optional := strings.CutPrefix(v[0], "?")
		if err := writeFile(filepath.Join(dir, name), v[1]); err != nil && !(optional && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}

// writeFile writes to a file that exists: control files are never made. A signal, as the runtime sends them to its own threads, may
// interrupt a write that has to wait for a bound to be applied; then nothing was set, and writeFile tries again.
func writeFile(path, value string) error {
	fd, err := again(func() (int, error) { return unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	if _, err = again(func() (int, error) { return unix.Write(fd, []byte(value)) }); err != nil {
		err = &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return errors.Join(err, unix.Close(fd))
}

// again calls the kernel until no signal interrupts it.
func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}

// entry is a group of version 1 with the daemon's own one in the same hierarchy.
type entry struct{ dir, home string }

// entries returns the groups into which the thread that forks the init has to go.
func (g *group) entries() []entry {
	var list []entry
	for c, dir := range g.v1 {
		if e := (entry{dir, g.home[c]}); !slices.Contains(list, e) {
			list = append(list, e)
		}
	}
	return list
}

// homes opens the tasks files of the daemon's own groups of version 1, as far as it may: a thread that has left them returns through these.
func (h *hierarchy) homes() []*home {
	var list []*home
	for _, dir := range h.v1 {
		if slices.ContainsFunc(list, func(h *home) bool { return h.dir == dir }) {
			continue
		}
		if tasks, err := os.OpenFile(filepath.Join(dir, "tasks"), os.O_WRONLY, 0); err == nil {
			list = append(list, &home{dir, tasks})
		}
	}
	return list
}

// remove removes the groups; every process in them must have ended.
func (g *group) remove() error {
	var all error
	for _, dir := range g.dirs() {
		if err := unix.Rmdir(dir); err != nil && err != unix.ENOENT {
			all = errors.Join(all, &fs.PathError{Op: "remove", Path: dir, Err: err})
		}
	}
	return all
}

func (g *group) dirs() []string {
	var dirs []string
	for _, dir := range g.v1 {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	if g.v2 != "" {
		dirs = append(dirs, g.v2)
	}
	return dirs
}

// usage is the use of a space; -1 where the kernel does not tell.
type usage struct{ memory, pids, cpuMicros int64 }

// usage reads the present use of the space, and its processor time since the start.
func (g *group) usage() usage {
	u := usage{memory: -1, pids: -1, cpuMicros: -1}
	if dir, ok := g.v1[memoryController]; ok {
		u.memory = value(dir, "memory.usage_in_bytes", "")
	} else if g.v2 != "" {
		u.memory = value(g.v2, "memory.current", "")
	}
	if dir := g.pids(); dir != "" {
		u.pids = value(dir, "pids.current", "")
	}
	if dir, ok := g.v1[cpuacct]; ok {
		if ns := value(dir, "cpuacct.usage", ""); ns >= 0 {
			u.cpuMicros = ns / 1000
		}
	} else if g.v2 != "" {
		u.cpuMicros = value(g.v2, "cpu.stat", "usage_usec")
	}
	return u
}

// hits is how often bounds were hit since the start; -1 where the kernel does not tell.
type hits struct{ oomKills, pidsRefused int64 }

// hits reads how often the space hit the bounds that the kernel counts.
func (g *group) hits() hits {
	h := hits{oomKills: -1, pidsRefused: -1}
	if dir, ok := g.v1[memoryController]; ok {
		h.oomKills = value(dir, "memory.oom_control", "oom_kill")
	} else if g.v2 != "" {
		h.oomKills = value(g.v2, "memory.events", "oom_kill")
	}
	if dir := g.pids(); dir != "" {
		h.pidsRefused = value(dir, "pids.events", "max")
	}
	return h
}

// pids returns the group that counts processes.
func (g *group) pids() string {
	if dir, ok := g.v1[pidsController]; ok {
		return dir
	}
	return g.v2
}

// value reads a number: the whole file, or the line that starts with key.
func value(dir, name, key string) int64 {
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(raw)) {
		text := strings.TrimSpace(line)
		if key != "" {
			var ok bool
			if text, ok = strings.CutPrefix(text, key+" "); !ok {
				continue
			}
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return -1
		}
		return n
	}
	return -1
}
