package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/userland/program"
)

// The traps that are no signals.
const (
	trapExit   = 0
	trapErr    = -1
	trapDebug  = -2
	trapReturn = -3
)

// signals returns the names of the signals, by their number.
func signals() []string {
	return []string{"EXIT", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
		"STKFLT", "CHLD", "CONT", "STOP",
		"TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS"}
}

func signalName(n int) string {
	if all := signals(); n >= 0 && n < len(all) {
		return all[n]
	}
	return strconv.Itoa(n)
}

// signalText returns what bash says of a job that a signal has ended.
func signalText(n int) string {
	switch n {
	case program.SIGHUP:
		return "Hangup"
	case program.SIGQUIT:
		return "Quit"
	case program.SIGABRT:
		return "Aborted"
	case program.SIGKILL:
		return "Killed"
	case program.SIGTERM:
		return "Terminated"
	case program.SIGALRM:
		return "Alarm clock"
	case program.SIGUSR1:
		return "User defined signal 1"
	case program.SIGUSR2:
		return "User defined signal 2"
	}
	return "Signal " + strconv.Itoa(n)
}

// signalNumber reads a signal: a number or a name with or without SIG.
func signalNumber(s string) (int, bool) {
	if n, err := strconv.Atoi(s); err == nil {
		return n, n >= 0 && n < 65
	}
	name := strings.TrimPrefix(strings.ToUpper(s), "SIG")
	switch name {
	case "ERR":
		return trapErr, true
	case "DEBUG":
		return trapDebug, true
	case "RETURN":
		return trapReturn, true
	}
	if i := slices.Index(signals(), name); i >= 0 {
		return i, true
	}
	return 0, false
}

// runSignals runs the traps of the signals that have come.
func runSignals(sh *shell) {
	for len(sh.proc.pending) > 0 {
		s := sh.proc.pending[0]
		sh.proc.pending = sh.proc.pending[1:]
		if t := sh.traps[s]; t != "" {
			runTrap(sh, s, t)
		}
	}
}

// runTrap runs a trap; $? is afterwards what it was.
func runTrap(sh *shell, trap int, code string) {
	if sh.inTrap[trap] {
		return
	}
	sh.inTrap[trap] = true
	status, pipes, single := sh.status, sh.pipes, sh.single
	defer func() { delete(sh.inTrap, trap) }()
	where := "trap"
	if trap >= 0 {
		where = "signal"
	}
	runText(sh, code, where)
	if sh.flow == flowNone {
		sh.status, sh.pipes, sh.single = status, pipes, single
	}
}

// returnTrap runs the trap RETURN when a function or a sourced file has ended.
func returnTrap(sh *shell) {
	if t := sh.traps[trapReturn]; t != "" {
		runTrap(sh, trapReturn, t)
	}
}

// debugTrap runs the trap DEBUG before a command.
func debugTrap(sh *shell, c syntax.Command) {
	if t, ok := sh.traps[trapDebug]; ok && t != "" && (len(sh.frames) == 0 || sh.on[optFunctrace]) && !sh.inTrap[trapDebug] {
		if len(sh.inTrap) == 0 {
			sh.command = headOf(sh, c)
		}
		line := sh.line
		runTrap(sh, trapDebug, t)
		sh.line = line
	}
}

// biTrap is the builtin trap.
func biTrap(sh *shell, args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "-l" {
		return biKill(sh, []string{"kill", "-l"})
	}
	print := len(args) == 0
	if len(args) > 0 && args[0] == "-p" {
		print, args = true, args[1:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if print {
		return printTraps(sh, args)
	}
	action, signals := args[0], args[1:]
	if len(signals) == 0 {
		if _, ok := signalNumber(action); !ok {
			sh.stderr("trap: usage: trap [-lp] [[arg] signal_spec ...]\n")
			return 2
		}
		action, signals = "-", args
	}
	if _, err := strconv.Atoi(action); err == nil {
		action, signals = "-", args
	}
	status := 0
	sh.parents = nil
	for _, name := range signals {
		n, ok := signalNumber(name)
		if !ok {
			sh.complain("trap", "%s: invalid signal specification", name)
			status = 1
			continue
		}
		if action == "-" {
			delete(sh.traps, n)
		} else {
			sh.traps[n] = action
		}
	}
	return status
}

func printTraps(sh *shell, names []string) int {
	status := 0
	var wanted []int
	for _, name := range names {
		n, ok := signalNumber(name)
		if !ok {
			sh.complain("trap", "%s: invalid signal specification", name)
			status = 1
			continue
		}
		wanted = append(wanted, n)
	}
	if len(names) == 0 {
		for n := range 65 {
			wanted = append(wanted, n)
		}
		wanted = append(wanted, trapDebug, trapErr, trapReturn)
	}
	traps := sh.traps
	if sh.parents != nil {
		traps = sh.parents
	}
	var b strings.Builder
	for _, n := range wanted {
		if t, ok := traps[n]; ok {
			name := "SIG" + signalName(n)
			switch n {
			case trapExit:
				name = "EXIT"
			case trapErr:
				name = "ERR"
			case trapDebug:
				name = "DEBUG"
			case trapReturn:
				name = "RETURN"
			}
			b.WriteString("trap -- " + quoteSingle(t) + " " + name + "\n")
		}
	}
	if b.Len() > 0 {
		return sh.stdout("trap", b.String())
	}
	return status
}

// biKill is the builtin kill.
func biKill(sh *shell, args []string) int {
	signal := program.SIGTERM
	i := 1
	if len(args) < 2 {
		sh.stderr("kill: usage: kill [-s sigspec | -n signum | -sigspec] pid | jobspec ... or kill -l [sigspec]\n")
		return 2
	}
	if args[1] == "-l" || args[1] == "-L" {
		if len(args) > 2 {
			for _, a := range args[2:] {
				if n, err := strconv.Atoi(a); err == nil {
					if n > 128 {
						n -= 128
					}
					sh.stdout("kill", signalName(n)+"\n")
				} else if n, ok := signalNumber(a); ok {
					sh.stdout("kill", strconv.Itoa(n)+"\n")
				} else {
					sh.complain("kill", "%s: invalid signal specification", a)
					return 1
				}
			}
			return 0
		}
		var b strings.Builder
		for n, name := range signals()[1:] {
			end := "\t"
			if (n+1)%5 == 0 {
				end = "\n"
			}
			b.WriteString(pad(strings.Repeat(" ", max(2-len(strconv.Itoa(n+1)), 0))+strconv.Itoa(n+1)+") SIG"+name, 0) + end)
		}
		return sh.stdout("kill", b.String()+"\n")
	}
	if a := args[1]; len(a) > 1 && a[0] == '-' && a != "--" {
		name := a[1:]
		i = 2
		if name == "s" || name == "n" {
			if len(args) < 3 {
				sh.complain("kill", "-%s: option requires an argument", name)
				return 1
			}
			name = args[2]
			i = 3
		}
		n, ok := signalNumber(name)
		if !ok || n < 0 {
			sh.complain("kill", "%s: invalid signal specification", name)
			return 1
		}
		signal = n
	} else if a == "--" {
		i = 2
	}
	status := 0
	for _, a := range args[i:] {
		if !killTarget(sh, a, signal) {
			status = 1
		}
	}
	return status
}

// killTarget sends a signal to what a word names.
func killTarget(sh *shell, who string, signal int) bool {
	if strings.HasPrefix(who, "%") {
		p := jobNamed(sh, who)
		if p == nil {
			sh.complain("kill", "%s: no such job", who)
			return false
		}
		if signal != 0 {
			p.kill(signal)
		}
		return true
	}
	pid, err := strconv.Atoi(who)
	if err != nil {
		sh.complain("kill", "%s: arguments must be process or job IDs", who)
		return false
	}
	if pid == sh.pid && sh.proc.shell != sh { // a subshell that has no process of its own
		if t, ok := sh.traps[signal]; ok {
			if t != "" {
				runTrap(sh, signal, t)
			}
			return true
		}
		if signal != 0 {
			panic(program.Killed{Signal: signal})
		}
		return true
	}
	for _, p := range sh.w.procs {
		if p.pid != pid {
			continue
		}
		switch {
		case signal == 0 || signal == 17 || signal == 18 || signal == 28 || signal == 23:
		case p == sh.proc && p.shell == sh:
			if t, ok := sh.traps[signal]; ok && signal != program.SIGKILL {
				if t != "" {
					runTrap(sh, signal, t)
				}
				return true
			}
			panic(program.Killed{Signal: signal})
		default:
			p.kill(signal)
		}
		return true
	}
	sh.complain("kill", "(%d) - No such process", pid)
	return false
}
