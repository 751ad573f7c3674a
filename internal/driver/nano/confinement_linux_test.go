package nano

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAWorkerHasNothing looks from outside at what a worker's process has: descriptors, variables, rights, bounds.
func TestAWorkerHasNothing(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "a-secret")
	h := host(t)
	n := newNeighbour(t, h)
	if err := n.alive(t.Context()); err != nil {
		t.Fatal(err)
	}
	workers := 0
	// The files that Go's runtime keeps open to count the processors can only be read.
	known := regexp.MustCompile(
		`^(pipe:\[\d+\]|/dev/null|anon_inode:\[(eventpoll|eventfd|pidfd)\]|/memfd:agentbox-image ` +
			`\(deleted\)|/proc/\d+/pagemap|/sys/fs/cgroup/.*cpu[.\w]*)$`)
	for _, pid := range children(t) {
		dir := "/proc/" + pid
		command, err := os.ReadFile(dir + "/cmdline")
		if err != nil || !strings.Contains(string(command), "\x00serve\x00") {
			continue // it prepares, or is gone
		}
		status, err := os.ReadFile(dir + "/status")
		if err != nil {
			continue
		}
		value := func(name string) string {
			_, rest, _ := strings.Cut("\n"+string(status), "\n"+name+":")
			line, _, _ := strings.Cut(rest, "\n")
			return strings.TrimSpace(line)
		}
		if value("Seccomp") != "2" {
			continue // it begins only
		}
		workers++
		if value("NoNewPrivs") != "1" || strings.Trim(value("CapEff")+value("CapPrm"), "0") != "" && os.Geteuid() == 0 {
			t.Errorf("worker %s: no_new_privs %s, capabilities %s", pid, value("NoNewPrivs"), value("CapEff"))
		}
		if os.Geteuid() != 0 {
			continue // the rest is root's to see: nobody looks into a worker
		}
		if strings.Contains(value("Uid"), "0\t") || value("Groups") != "" {
			t.Errorf("worker %s: users %q, groups %q", pid, value("Uid"), value("Groups"))
		}
		if env, err := os.ReadFile(dir + "/environ"); err != nil || strings.Contains(string(env), "a-secret") {
			t.Errorf("worker %s: its variables are %q, %v", pid, env, err)
		}
		descriptors, err := os.ReadDir(dir + "/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range descriptors {
			if target, err := os.Readlink(filepath.Join(dir, "fd", d.Name())); err == nil && !known.MatchString(target) {
				t.Errorf("worker %s: descriptor %s is %s", pid, d.Name(), target)
			}
		}
		limits, err := os.ReadFile(dir + "/limits")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`Max file size +0 +0 `, `Max core file size +0 +0 `, `Max open files +64 +64 `, `Max locked memory +0 +0 `,
			`Max data size +4294967296 +4294967296 `, `Max msgqueue size +0 +0 `} {
			if !regexp.MustCompile(want).Match(limits) {
				t.Errorf("worker %s: its bounds are\n%s; want %s", pid, limits, want)
			}
		}
		own, err1 := os.Readlink("/proc/self/ns/net")
		its, err2 := os.Readlink(dir + "/ns/net")
		if err1 == nil && err2 == nil && own == its {
			t.Errorf("worker %s has the daemon's network", pid)
		}
	}
	if workers == 0 {
		t.Error("no worker was seen")
	}
}

// children are the processes that this one has started.
func children(t *testing.T) (all []string) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tasks {
		raw, _ := os.ReadFile(name)
		all = append(all, strings.Fields(string(raw))...)
	}
	return all
}
