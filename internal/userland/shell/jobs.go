package shell

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"agentbox/internal/userland/fiber"
	"agentbox/internal/userland/program"
)

// jobNamed returns the job that %n, %% or %name means.
func jobNamed(sh *shell, spec string) *proc {
	s := strings.TrimPrefix(spec, "%")
	if len(sh.jobs) == 0 {
		return nil
	}
	switch s {
	case "", "%", "+":
		return sh.jobs[len(sh.jobs)-1]
	case "-":
		return sh.jobs[max(len(sh.jobs)-2, 0)]
	}
	if n, err := strconv.Atoi(s); err == nil {
		if n >= 1 && n <= len(sh.jobs) {
			return sh.jobs[n-1]
		}
		return nil
	}
	for _, p := range sh.jobs {
		if strings.HasPrefix(p.text, s) {
			return p
		}
	}
	return nil
}

// biWait is the builtin wait.
func biWait(sh *shell, args []string) int {
	any, variable := false, ""
	i := 1
	for ; i < len(args) && len(args[i]) > 1 && args[i][0] == '-'; i++ {
		switch args[i] {
		case "-n":
			any = true
		case "-f":
		case "-p":
			if i++; i < len(args) {
				variable = args[i]
			}
		default:
			sh.complain("wait", "%s: invalid option", args[i])
			sh.stderr("wait: usage: wait [-fn] [-p var] [id ...]\n")
			return 2
		}
	}
	ids := args[i:]
	if any {
		return waitAny(sh, ids, variable)
	}
	if len(ids) == 0 {
		for _, p := range sh.jobs {
			waitJob(sh, p)
		}
		sh.jobs = nil
		return 0
	}
	status := 0
	for _, id := range ids {
		var p *proc
		if strings.HasPrefix(id, "%") {
			if p = jobNamed(sh, id); p == nil {
				sh.complain("wait", "%s: no such job", id)
				status = 127
				continue
			}
		} else {
			pid, err := strconv.Atoi(id)
			if err != nil {
				sh.complain("wait", "`%s': not a pid or valid job spec", id)
				status = 1
				continue
			}
			for _, j := range slices.Concat(sh.jobs, sh.w.procs) {
				if j.pid == pid && j.pid != sh.pid {
					p = j
				}
			}
			if l := sh.lastProc; p == nil && l != nil && l.pid == pid && pid == sh.lastJob {
				p = l
			}
			if ended, ok := sh.ended[pid]; ok && p == nil {
				status = ended
				continue
			}
			if p == nil {
				sh.complain("wait", "pid %d is not a child of this shell", pid)
				status = 127
				continue
			}
		}
		waitJob(sh, p)
		forgetJob(sh, p)
		status = p.status
		if variable != "" {
			sh.set(variable, strconv.Itoa(p.pid))
		}
	}
	return status
}

// waitJob waits for a job; signals that have a trap are handled meanwhile.
func waitJob(sh *shell, p *proc) {
	sh.w.wait(p)
	if signal := sh.proc.dying(); signal != 0 {
		panic(program.Killed{Signal: signal})
	}
}

// forgetJob takes a job that has ended out of the list and remembers its status.
func forgetJob(sh *shell, p *proc) {
	sh.jobs = slices.DeleteFunc(slices.Clone(sh.jobs), func(j *proc) bool { return j == p })
	if sh.ended == nil {
		sh.ended = map[int]int{}
	}
	sh.hold(16)
	sh.ended[p.pid] = p.status
}

// waitAny waits for the first job that ends.
func waitAny(sh *shell, ids []string, variable string) int {
	jobs := sh.jobs
	if len(ids) > 0 {
		jobs = nil
		for _, id := range ids {
			for _, p := range sh.jobs {
				if strconv.Itoa(p.pid) == id || jobNamed(sh, id) == p && id[0] == '%' {
					jobs = append(jobs, p)
				}
			}
		}
	}
	if len(jobs) == 0 {
		return 127
	}
	for {
		for _, p := range jobs {
			if p.done {
				sh.jobs = slices.DeleteFunc(slices.Clone(sh.jobs), func(j *proc) bool { return j == p })
				if variable != "" {
					sh.set(variable, strconv.Itoa(p.pid))
				}
				return p.status
			}
		}
		sh.charge(10)
		queues := make([]*fiber.Queue, len(jobs))
		for i, p := range jobs {
			queues[i] = p.queue
		}
		sh.w.deadlock(sh.w.group.Wait(queues...))
	}
}

func biJobs(sh *shell, args []string) int {
	pids := len(args) > 1 && strings.Contains(args[1], "p")
	long := len(args) > 1 && strings.Contains(args[1], "l")
	var b strings.Builder
	for i, p := range sh.jobs {
		mark := " "
		if i == len(sh.jobs)-1 {
			mark = "+"
		} else if i == len(sh.jobs)-2 {
			mark = "-"
		}
		state, end := "Running", " &"
		if p.done {
			if state, end = "Done", ""; p.status != 0 {
				state = fmt.Sprintf("Exit %d", p.status)
			}
		}
		switch {
		case pids:
			fmt.Fprintf(&b, "%d\n", p.pid)
		case long:
			fmt.Fprintf(&b, "[%d]%s %d %-23s %s%s\n", i+1, mark, p.pid, state, strings.TrimSpace(p.text), end)
		default:
			fmt.Fprintf(&b, "[%d]%s  %-23s %s%s\n", i+1, mark, state, strings.TrimSpace(p.text), end)
		}
	}
	sh.jobs = slices.DeleteFunc(slices.Clone(sh.jobs), func(p *proc) bool { return p.done })
	if b.Len() == 0 {
		return 0
	}
	return sh.stdout("jobs", b.String())
}

func biDisown(sh *shell, args []string) int {
	if len(args) == 1 && len(sh.jobs) > 0 {
		sh.jobs = sh.jobs[:len(sh.jobs)-1]
	}
	for _, a := range args[1:] {
		if a == "-a" {
			sh.jobs = nil
		}
		sh.jobs = slices.DeleteFunc(slices.Clone(sh.jobs), func(p *proc) bool {
			return strconv.Itoa(p.pid) == a || jobNamed(sh, a) == p && strings.HasPrefix(a, "%")
		})
	}
	return 0
}
