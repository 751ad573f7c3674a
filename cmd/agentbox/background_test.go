package main_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// lasting is a command of a script that runs beside the next ones.
type lasting struct {
	cmd  *exec.Cmd
	done chan struct{} // is closed when everything that it printed is in said
	said strings.Builder
}

// begin starts a command and goes on once it has printed a line that matches. The script ends it with finish.
func begin(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: begin NAME REGEXP COMMAND [ARG...]")
	}
	pattern, err := regexp.Compile(args[1])
	ts.Check(err)
	program, err := exec.LookPath(args[2])
	ts.Check(err)
	l := &lasting{cmd: exec.Command(program, args[3:]...), done: make(chan struct{})}
	l.cmd.Dir = ts.MkAbs(".")
	l.cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"), "AGENTBOX_HOME="+ts.Getenv("AGENTBOX_HOME"))
	out, in, err := os.Pipe()
	ts.Check(err)
	l.cmd.Stdout, l.cmd.Stderr = in, in
	ts.Check(l.cmd.Start())
	ts.Check(in.Close())
	matched := make(chan struct{})
	go func() {
		defer close(l.done)
		defer out.Close()
		for lines, found := bufio.NewScanner(out), false; lines.Scan(); {
			l.said.WriteString(lines.Text() + "\n")
			if !found && pattern.MatchString(lines.Text()) {
				found = true
				close(matched)
			}
		}
	}()
	ts.Defer(func() {
		_ = l.cmd.Process.Kill()
		<-l.done
	})
	select {
	case <-matched:
	case <-l.done:
		ts.Fatalf("%s ended without a line that matches %q:\n%s", args[2], args[1], l.said.String())
	}
	ts.Value(lastingKey).(map[string]*lasting)[args[0]] = l
}

const lastingKey = "lasting"

// finish waits until a command that begin started has ended. What it printed is then in the file NAME.
func finish(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: finish NAME CODE")
	}
	l := ts.Value(lastingKey).(map[string]*lasting)[args[0]]
	if l == nil {
		ts.Fatalf("%s was not begun", args[0])
	}
	<-l.done
	_ = l.cmd.Wait() // the exit code says how it ended
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(l.said.String()), 0o600))
	if code := fmt.Sprint(l.cmd.ProcessState.ExitCode()); code != args[1] {
		ts.Fatalf("%s ended with %s, want %s:\n%s", args[0], code, args[1], l.said.String())
	}
}
