package main_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestTheStartOfThePackagesIsSmall reads what each package allocates before main begins. Every command pays for it, and so does each
// worker of the nano tier. The runtime counts it, so that it is the same on every machine; the time is not.
func TestTheStartOfThePackagesIsSmall(t *testing.T) {
	if detector == "-race" {
		t.Skip("the race detector allocates besides")
	}
	const (
		mostOfOne = 400 << 10 // bytes; the largest, gojq, has 220 KB
		mostOfAll = 3 << 20   // bytes; all have 2 MB
	)
	cmd := exec.Command("agentbox", "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var told bytes.Buffer
	cmd.Stderr = &told
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, told.Bytes())
	}
	found := regexp.MustCompile(`(?m)^init (\S+) @.*?(\d+) bytes, \d+ allocs$`).FindAllStringSubmatch(told.String(), -1)
	if len(found) < 100 {
		t.Fatalf("the runtime tells of %d packages:\n%s", len(found), told.Bytes())
	}
	all := 0
	for _, one := range found {
		size, err := strconv.Atoi(one[2])
		if err != nil {
			t.Fatal(err)
		}
		if all += size; size > mostOfOne {
			t.Errorf("the package %s allocates %d bytes before the program begins; make what is not always needed when it is needed", one[1], size)
		}
	}
	t.Logf("%d packages allocate %d bytes", len(found), all)
	if all > mostOfAll {
		t.Errorf("all packages allocate %d bytes before the program begins, want at most %d", all, mostOfAll)
	}
}

// TestADaemonThatNobodyUsesIsSmall: a daemon that has started and has nothing to do keeps no process of the nano tier, maps nothing that
// was prepared for an interpreter, and gives the memory of its start back.
func TestADaemonThatNobodyUsesIsSmall(t *testing.T) {
	if detector == "-race" {
		t.Skip("the race detector takes a multiple of the memory")
	}
	const mostRSS = 60 << 20 // 40 to 47 MB were measured with a million events
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}}
	c.start()
	defer c.end()
	pid := c.daemon.Process.Pid
	// interpreters that were never compiled on this machine are compiled first, once
	within, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	for {
		children, processes := inside(t, pid)
		size := resident(t, pid)
		if len(processes) == 0 && size <= mostRSS {
			t.Logf("%d MiB, children: %q", size>>20, children)
			break
		}
		select {
		case <-within.Done():
			t.Fatalf("the daemon has %d MiB, want at most %d, and the processes %q", size>>20, mostRSS>>20, processes)
		case <-time.After(200 * time.Millisecond):
		}
	}
	maps, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "maps"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(maps), "\n") {
		if strings.Contains(line, filepath.Join(cache(), "wasm")) {
			t.Errorf("it maps %s", line)
		}
	}
}

// inside returns the processes that a process has started, and those of them that belong to the nano tier.
func inside(t *testing.T, pid int) (all, ofNano []string) {
	t.Helper()
	tasks, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children"))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		raw, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		for _, child := range strings.Fields(string(raw)) {
			line, err := os.ReadFile(filepath.Join("/proc", child, "cmdline"))
			if err != nil {
				continue // it has ended
			}
			text := strings.ReplaceAll(string(line), "\x00", " ")
			if all = append(all, text); strings.Contains(text, "nano-worker") {
				ofNano = append(ofNano, text)
			}
		}
	}
	return all, ofNano
}
