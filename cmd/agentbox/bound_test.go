package main_test

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// parent starts the programs that end with the tests. A program that asks for a signal at its parent's death gets it when the thread that
// started it dies. Other tests end threads of this process, as each closed tier of spaces does. This thread lives as long as the process.
var parent = sync.OnceValue(func() chan<- birth {
	births := make(chan birth)
	go func() {
		runtime.LockOSThread()
		for b := range births {
			b.started <- b.cmd.Start()
		}
	}()
	return births
})

// birth is a program to start.
type birth struct {
	cmd     *exec.Cmd
	started chan<- error
}

// startBound starts a program that is killed when this process ends, however it does.
func startBound(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error)
	parent() <- birth{cmd, started}
	return <-started
}
