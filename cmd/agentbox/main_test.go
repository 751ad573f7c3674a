package main_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"agentbox/internal/spaceinit/inittest"
)

// sideBySide is how many tests run at the same time: most of their time is waiting, for a claim, a minute or a start.
const sideBySide = 6

// TestMain builds the program as `make build` does, the init embedded, so that the scripts run what users run.
func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "agentbox-scripts-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := compile(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := compileProbe(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// The command line, which is read later, may say another number.
	if err := flag.Set("test.parallel", strconv.Itoa(max(sideBySide, runtime.GOMAXPROCS(0)))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Setenv("GORACE", "halt_on_error=1")
	os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return m.Run()
}

// compile puts the program into a folder. The init goes in through an overlay, so that nothing is written into the source tree.
func compile(dir string) error {
	guest, err := inittest.Build()
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "init")
	if err := os.WriteFile(file, guest, 0o600); err != nil {
		return err
	}
	place, err := filepath.Abs(filepath.Join("..", "..", "internal", "spaceinit", "embedded", "program", "agentbox-init"))
	if err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {place: file}})
	if err != nil {
		return err
	}
	over := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(over, overlay, 0o600); err != nil {
		return err
	}
	out, err := exec.Command("go", "build", detector, "-overlay", over, "-o", filepath.Join(dir, "program", "agentbox"), ".").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build agentbox: %w\n%s", err, out)
	}
	return errors.Join(os.Remove(file), os.WriteFile(filepath.Join(dir, "agentbox"), []byte(unsets), 0o700))
}

// unsets runs the program without the variables that a script set to "unset": testscript can empty a variable, but not remove it.
const unsets = `#!/bin/sh
for name in AGENTBOX_KEY AGENTBOX_URL; do
	eval "value=\${$name-}"
	if [ "$value" = unset ]; then unset "$name"; fi
done
exec "${0%/*}/program/agentbox" "$@"
`

// compileProbe makes the WebAssembly module that tries every function of WASI.
func compileProbe(dir string) error {
	build := exec.Command("go", "build", "-ldflags=-s", "-o", filepath.Join(dir, "probe.wasm"),
		"../../internal/driver/nano/wasi/testdata/probe")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the probe: %w\n%s", err, out)
	}
	return os.Setenv("PROBE", filepath.Join(dir, "probe.wasm"))
}

// TestCommands runs every script of testdata against a daemon of its own. Beside testscript's own commands they use:
//
//	daemon [FLAG...]     starts `agentbox up` and goes on when it serves; it is ended with the script
//	witness NAME FLAG... starts `agentbox audit serve-witness` and keeps its address in a variable; it is ended with the script
//	crash                ends the daemon with SIGKILL
//	stop                 ends the daemon as a person does
//	exits CODE COMMAND   runs a command and wants this exit code
//	until CODE REGEXP COMMAND
//	                     runs a command until a line of its output or its errors matches, then interrupts it and wants this exit code
//	begin NAME REGEXP COMMAND
//	                     starts a command and goes on once it has printed a line that matches; it runs beside the next ones
//	finish NAME CODE     waits for its end, wants this exit code, and writes what it printed into the file NAME
//	capture NAME         keeps the last output, without spaces around it, in a variable
//	pick NAME PATH       keeps a value of the last output, which is JSON: run.operations.0.state
func TestCommands(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("AGENTBOX_HOME", filepath.Join(e.WorkDir, "data"))
			e.Setenv("AGENTBOX_CACHE", cache())
			e.Setenv("TMPDIR", e.WorkDir)
			e.Setenv("PROBE", os.Getenv("PROBE"))
			e.Values[daemonKey] = &scripted{}
			e.Values[lastingKey] = map[string]*lasting{}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"daemon": startDaemon, "witness": startWitness, "crash": crashDaemon, "stop": stopDaemon, "exits": exits, "until": until,
			"capture": capture, "pick": pick, "vendor": startVendor, "begin": begin, "finish": finish,
		},
		Condition: func(name string) (bool, error) {
			if name != "rootfs" {
				return false, fmt.Errorf("unknown condition %s", name)
			}
			roots, err := filepath.Glob(filepath.Join(cache(), "rootfs-*"))
			return len(roots) > 0, err
		},
		RequireExplicitExec: true,
	})
}

// cache is where the root of the spaces and the data set lie, for the scripts have a home of their own.
func cache() string {
	if dir := os.Getenv("AGENTBOX_CACHE"); dir != "" {
		return dir
	}
	return filepath.Join(os.Getenv("HOME"), ".cache", "agentbox")
}

const daemonKey = "daemon"

// scripted is the daemon of one script.
type scripted struct {
	cmd *exec.Cmd // nil before the first start and after a crash
	log *os.File
}

func startDaemon(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("! daemon has no meaning")
	}
	log, err := os.OpenFile(ts.MkAbs("daemon.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	program, err := exec.LookPath("agentbox")
	ts.Check(err)
	cmd := exec.Command(program, append([]string{"up", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"), "AGENTBOX_CACHE="+ts.Getenv("AGENTBOX_CACHE"), "AGENTBOX_HOME="+
		ts.Getenv("AGENTBOX_HOME"), "TMPDIR="+ts.Getenv("TMPDIR"))
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	d := ts.Value(daemonKey).(*scripted)
	d.cmd, d.log = cmd, log
	ts.Defer(func() { d.end(ts) })
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.Contains(lines.Text(), "serves on") {
		text, _ := os.ReadFile(log.Name())
		ts.Fatalf("the daemon does not serve: %s\n%s", lines.Text(), text)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
}

func startWitness(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: witness NAME FLAG...")
	}
	program, err := exec.LookPath("agentbox")
	ts.Check(err)
	cmd := exec.Command(program, append([]string{"audit", "serve-witness", "--listen", "127.0.0.1:0", "--json"}, args[1:]...)...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"))
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() {
		ts.Check(cmd.Process.Signal(unix.SIGINT))
		if err := cmd.Wait(); err != nil {
			ts.Logf("the witness ended with %v", err)
		}
	})
	var serves struct {
		URL string `json:"url"`
	}
	if err := json.NewDecoder(out).Decode(&serves); err != nil || serves.URL == "" {
		ts.Fatalf("the witness does not serve: %v", err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	ts.Setenv(args[0], serves.URL)
}

// crashDaemon ends the daemon as a power cut would, as far as a process can.
func crashDaemon(ts *testscript.TestScript, neg bool, args []string) {
	d := ts.Value(daemonKey).(*scripted)
	if neg || len(args) > 0 || d.cmd == nil {
		ts.Fatalf("usage: crash, while a daemon runs")
	}
	ts.Check(d.cmd.Process.Kill())
	_ = d.cmd.Wait() // it was killed, which is an error
	d.cmd = nil
	ts.Check(d.log.Close())
}

// stopDaemon ends the daemon and waits for it.
func stopDaemon(ts *testscript.TestScript, neg bool, args []string) {
	d := ts.Value(daemonKey).(*scripted)
	if neg || len(args) > 0 || d.cmd == nil {
		ts.Fatalf("usage: stop, while a daemon runs")
	}
	d.end(ts)
}

// end interrupts the daemon as a person would, and waits for it.
func (d *scripted) end(ts *testscript.TestScript) {
	if d.cmd == nil {
		return
	}
	defer d.log.Close()
	if err := d.cmd.Process.Signal(unix.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		ts.Logf("interrupt the daemon: %v", err)
	}
	if err := d.cmd.Wait(); err != nil {
		ts.Logf("the daemon ended with %v", err)
	}
	d.cmd = nil
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("got exit code %d, want %s", code, args[0])
	}
}

func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: until CODE REGEXP COMMAND [ARG...]")
	}
	pattern, err := regexp.Compile(args[1])
	ts.Check(err)
	program, err := exec.LookPath(args[2])
	ts.Check(err)
	cmd := exec.Command(program, args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"), "AGENTBOX_HOME="+ts.Getenv("AGENTBOX_HOME"))
	out, in, err := os.Pipe()
	ts.Check(err)
	defer out.Close()
	cmd.Stdout, cmd.Stderr = in, in
	ts.Check(cmd.Start())
	ts.Check(in.Close())
	found := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		ts.Logf("%s", lines.Text())
		if !found && pattern.MatchString(lines.Text()) {
			found = true
			ts.Check(cmd.Process.Signal(unix.SIGINT))
		}
	}
	_ = cmd.Wait() // the exit code says how it ended
	if code := fmt.Sprint(cmd.ProcessState.ExitCode()); !found || code != args[0] {
		ts.Fatalf("matched %v, got exit code %s, want %s", found, code, args[0])
	}
}

func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: capture NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

func pick(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: pick NAME PATH")
	}
	var value any
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &value); err != nil {
		ts.Fatalf("the last output is not JSON: %v", err)
	}
	for part := range strings.SplitSeq(args[1], ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[part]
		case []any:
			n, err := strconv.Atoi(part)
			if err != nil || n >= len(v) {
				ts.Fatalf("no %s of %d", part, len(v))
			}
			value = v[n]
		default:
			value = nil
		}
	}
	if value == nil {
		ts.Fatalf("the last output has no %s", args[1])
	}
	ts.Setenv(args[0], fmt.Sprint(value))
}
