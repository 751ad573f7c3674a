//go:build linux

package namespace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentbox/internal/domain/space"
)

// tree writes files below a new folder; a name that ends with / is a folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestHierarchyOne(t *testing.T) {
	root := tree(t, map[string]string{
		"proc/self/cgroup": "9:name=systemd:/\n4:memory:/sub\n2:cpu,cpuacct:/a/b\n8:pids:/\n0::/\n",
		"proc/self/mountinfo": `31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw
35 31 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
32 31 0:29 /a /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`,
		"sys/fs/cgroup/unified/cgroup.controllers": "hugetlb\n",
	})
	h, err := findHierarchy(root)
	if err != nil {
		t.Fatal(err)
	}
	for controller, want := range map[string]string{"memory": "memory/sub", "cpu": "cpu/b", "cpuacct": "cpu/b", "pids": "pids"} {
		if got := h.v1[controller]; got != filepath.Join(root, "sys/fs/cgroup", want) {
			t.Errorf("%s: got %s, want %s", controller, got, want)
		}
	}
	if h.delegate(os.Getpid()); len(h.unified) != 0 || len(h.tops) != 4 {
		t.Errorf("got %+v, want nothing from the unified hierarchy and four trees", h)
	}
}

func TestHierarchyTwo(t *testing.T) {
	root := tree(t, map[string]string{
		"proc/self/cgroup":                                   "0::/daemon\n",
		"proc/self/mountinfo":                                "41 31 0:38 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n",
		"sys/fs/cgroup/daemon/cgroup.controllers":            "cpu memory pids\n",
		"sys/fs/cgroup/daemon/cgroup.subtree_control":        "",
		"sys/fs/cgroup/daemon/agentbox-x/memory.max":         "max",
		"sys/fs/cgroup/daemon/agentbox-x/memory.swap.max":    "max",
		"sys/fs/cgroup/daemon/agentbox-x/memory.current":     "4096\n",
		"sys/fs/cgroup/daemon/agentbox-x/memory.events":      "low 0\nmax 3\noom 1\noom_kill 2\n",
		"sys/fs/cgroup/daemon/agentbox-x/pids.max":           "max",
		"sys/fs/cgroup/daemon/agentbox-x/pids.current":       "5\n",
		"sys/fs/cgroup/daemon/agentbox-x/pids.events":        "max 7\n",
		"sys/fs/cgroup/daemon/agentbox-x/cpu.max":            "max 100000",
		"sys/fs/cgroup/daemon/agentbox-x/cpu.stat":           "usage_usec 1234\nuser_usec 1\n",
		"sys/fs/cgroup/daemon/agentbox-x/cgroup.procs":       "",
		"sys/fs/cgroup/daemon/agentbox-x/cgroup.controllers": "cpu memory pids\n",
	})
	h, err := findHierarchy(root)
	if err != nil {
		t.Fatal(err)
	}
	h.delegate(os.Getpid())
	if b, err := os.ReadFile(filepath.Join(h.v2, "cgroup.subtree_control")); err != nil || !strings.HasPrefix(string(b), "+cpu") {
		t.Errorf("the controllers that are handed on: got %q, %v, want the last one added", b, err)
	}
	l := space.DefaultLimits()
	l.MemoryBytes, l.CPUMillis, l.Pids = 1<<20, 1500, 10
	g, failed := h.create("agentbox-x", l)
	if len(failed) != 0 || len(g.v1) != 0 {
		t.Fatalf("got %+v, %v", g, failed)
	}
	for name, want := range map[string]string{"memory.max": "1048576", "memory.swap.max": "0", "pids.max": "34", "cpu.max": "150000 100000"} {
		b, err := os.ReadFile(filepath.Join(g.v2, name))
		// A file, unlike the kernel's, keeps what was longer.
		if err != nil || !strings.HasPrefix(string(b), want) {
			t.Errorf("%s: got %q, %v, want %s", name, b, err, want)
		}
	}
	if got, want := g.usage(), (usage{memory: 4096, pids: 5, cpuMicros: 1234}); got != want {
		t.Errorf("usage: got %+v, want %+v", got, want)
	}
	if got, want := g.hits(), (hits{oomKills: 2, pidsRefused: 7}); got != want {
		t.Errorf("hits: got %+v, want %+v", got, want)
	}
}

// TestHierarchyNone is a host that gives the daemon nothing: every bound that needs a group is named.
func TestHierarchyNone(t *testing.T) {
	root := tree(t, map[string]string{"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": "22 27 0:21 / /proc rw,relatime - proc proc rw\n"})
	h, err := findHierarchy(root)
	if err != nil {
		t.Fatal(err)
	}
	h.delegate(os.Getpid())
	g, failed := h.create("agentbox-x", space.DefaultLimits())
	for _, bound := range []string{"memory_bytes", "pids", "cpu_millis"} {
		if failed[bound] == nil {
			t.Errorf("%s is not among what failed: %v", bound, failed)
		}
	}
	if got, want := g.usage(), (usage{-1, -1, -1}); got != want {
		t.Errorf("usage: got %+v, want %+v", got, want)
	}
	if got, want := g.hits(), (hits{-1, -1}); got != want {
		t.Errorf("hits: got %+v, want %+v", got, want)
	}
	if err := g.remove(); err != nil {
		t.Error(err)
	}
}
