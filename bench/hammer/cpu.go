package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit in which the kernel counts the time of processors for programs.
const tick = 10 * time.Millisecond

// cpuOf is the processor time that a process and its children have used so far. With neighbours on the machine it tells more than a
// rate. A child that has ended counts only if its parent waited for it.
func cpuOf(pid int) (used time.Duration) {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	raw, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return 0 // it has ended
	}
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) < 15 {
		return 0
	}
	for _, ticks := range fields[11:15] { // its own in user and kernel mode, and of those that it waited for
		n, err := strconv.Atoi(ticks)
		if err != nil {
			return 0
		}
		used += time.Duration(n) * tick
	}
	tasks, err := filepath.Glob(filepath.Join(proc, "task", "*", "children"))
	if err != nil {
		return used
	}
	for _, task := range tasks {
		children, err := os.ReadFile(task)
		if err != nil {
			continue
		}
		for child := range strings.FieldsSeq(string(children)) {
			if n, err := strconv.Atoi(child); err == nil {
				used += cpuOf(n)
			}
		}
	}
	return used
}

// costs are the processor time of each process, in microseconds per message or run.
type costs struct {
	Daemon   float64 `json:"daemon_us"`
	Postgres float64 `json:"postgres_us,omitempty"`
	Clients  float64 `json:"clients_us"`
}

// spent is the processor time used so far.
type spent struct{ daemon, postgres, clients time.Duration }

// since divides the time used since then by the number of things done.
func (s spent) since(then spent, done int) costs {
	each := func(now, then time.Duration) float64 {
		return float64((now - then).Microseconds()) / float64(max(1, done))
	}
	return costs{each(s.daemon, then.daemon), each(s.postgres, then.postgres), each(s.clients, then.clients)}
}

// spend reads the processor time that child processes used so far; a process id of 0 means none.
func spend(daemon, postgres int) spent {
	s := spent{clients: cpuOf(os.Getpid())}
	if daemon > 0 {
		s.daemon = cpuOf(daemon)
	}
	if postgres > 0 {
		s.postgres = cpuOf(postgres)
	}
	s.clients -= s.daemon + s.postgres
	return s
}
