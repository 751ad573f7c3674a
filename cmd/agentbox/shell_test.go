package main_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestShellOnATerminal is a person at a pseudo-terminal: lines are edited, completed, brought back and interrupted, questions are
// answered, and the terminal is left as it was.
func TestShellOnATerminal(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("AGENTBOX_CACHE", cache())
	t.Setenv("NO_COLOR", "1")
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}}
	c.start()
	c.post("/v1/spaces", `{"name":"weather","runtime":"heavy","best_effort":true}`)

	x := openTerminal(t, 100, 30, "shell", "weather", "--data", c.dir)
	x.sees("weather:/workspace$ ")
	if now := x.mode(); now.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG) != 0 {
		t.Error("keys are shown, wait for the end of a line, or make signals while a line is edited")
	}
	for _, step := range []struct {
		keys string
		sees []string
	}{
		{"mkdir 'my folder'; echo 1 > 'my folder/report.txt'\r", []string{"weather:/workspace$ "}},
		{"cd my\t\r", []string{`cd my\ folder/`, "weather:/workspace/my folder$ "}},
		{"cat re\t\r", []string{"cat report.txt ", "\n1\r\n", "$ "}},
		{"touch real.txt\r", []string{"folder$ "}},
		{"ls re\t\t\x15", []string{"real.txt", "report.txt"}},
		{"hea\t", []string{"head"}},
		{"\x15grep\t", []string{"grep"}},
		{"\x15export A='two\r", []string{"> "}},
		{"lines'\r", []string{"folder$ "}},
		{"echo \"$A\"\r", []string{"two\r\nlines\r\n", "folder$ "}},
		{"false\r", []string{"exit 1", "folder$ "}},
		{" echo sec''ret\r", []string{"secret\r\n", "folder$ "}},
		{"\x1b[A\r", []string{"false", "exit 1", "folder$ "}}, // the line before that is meant to be forgotten
		{"eco wrong\x01\x1b[C\x1b[Ch\x05\x17\x7f fine\r", []string{"fine\r\n", "folder$ "}},
		{"no such line\x03", []string{"folder$ "}},
		{"echo 'open\r", []string{"> "}},
		{"\x03", []string{"folder$ "}},
		{"echo begun; sleep 50; echo never\r", []string{"\nbegun\r\n"}},
		{"\x03", []string{"^C", "folder$ "}},
		{"cd ..; echo $PWD; printf open\r", []string{"/workspace\r\nopen\r\n", "weather:/workspace$ "}},
		{"printf '\\033[31mred\\033[2J\\n'\r", []string{"\x1b[31mred", `\x1b[2J`, "$ "}},
		{"rm -r 'my folder'\r", []string{"Allow it?"}},
		{"n\r", []string{"agentbox:", "$ "}},
		{"rm -r 'my folder'; echo gone\r", []string{"Allow it?"}},
		{"y\r", []string{"\ngone\r\n", "$ "}},
		{"rm -r *\rtrue y\rY\r", []string{"Allow it?"}}, // what was typed before the question does not answer it
		{"n\r", []string{"agentbox:", "$ true y\r", "$ Y\r", "permits Y\r\n", "$ "}},
		{"rm -r *\r", []string{"Allow it?"}},
		{"l\r", []string{"it waits until a person says: agentbox approvals approve appr_"}},
		{"\x03", []string{"^C", "$ "}},
		{"curl http://localhost\r", []string{"agentbox: ", "$ "}},
	} {
		x.press(step.keys)
		for _, text := range step.sees {
			x.sees(text)
		}
	}
	x.press("\x04")
	x.left()
	raw, err := os.ReadFile(filepath.Join(home, ".local", "state", "agentbox", "shell_history"))
	if err != nil || strings.Contains(string(raw), "ret") || !strings.Contains(string(raw), "cat report.txt") || strings.Contains(string(raw),
		"\ny\n") {
		t.Errorf("got the history %q (%v), want what was typed, less what was to be forgotten and what was answered", raw, err)
	}
}

// TestAShellBehindAQuestion opens shells in a space whose run waits for a person: each says what it waits for, is given up, and leaves no
// run behind.
func TestAShellBehindAQuestion(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AGENTBOX_CACHE", cache())
	t.Setenv("NO_COLOR", "1")
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}}
	c.start()
	space, _ := c.post("/v1/spaces", `{"name":"weather","runtime":"heavy","best_effort":true}`)["id"].(string)
	c.post("/v1/spaces/"+space+"/runs", `{"protocolVersion":"1.0","operations":[{"type":"shell","command":"rm -r *"}]}`)
	idle := func(how string) {
		t.Helper()
		_, answer, _ := c.call("GET", "/v1/runs?status=queued&space_id="+space, "")
		if runs, ok := answer["runs"].([]any); !ok || len(runs) > 0 {
			t.Errorf("%s: got the queued runs %v, want none", how, answer)
		}
	}
	const waits = "of the same space waits for a person; see agentbox approvals"

	x := openTerminal(t, 100, 30, "shell", "weather", "--data", c.dir)
	x.sees(waits + "; Ctrl-C gives it up")
	x.press("\x03")
	for more := range x.output {
		x.seen += more
	}
	if _ = x.cmd.Wait(); x.cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("it ended with %d, want 130:\n%s", x.cmd.ProcessState.ExitCode(), x.seen)
	}
	if now := x.mode(); *now != *x.before {
		t.Errorf("the terminal is left as %+v, it was %+v", *now, *x.before)
	}
	idle("at a terminal")

	piped := exec.Command("agentbox", "shell", "weather", "--data", c.dir, "--json")
	piped.Stdin = strings.NewReader("echo never\n")
	said, err := piped.StderrPipe()
	x.check(err)
	x.check(piped.Start())
	t.Cleanup(func() { _ = piped.Process.Kill() })
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || !strings.HasSuffix(line, waits+"\n") {
		t.Errorf("it says %q (%v), want what it waits for", line, err)
	}
	x.check(piped.Process.Signal(os.Interrupt))
	if _ = piped.Wait(); piped.ProcessState.ExitCode() != 130 {
		t.Errorf("it ended with %d, want 130", piped.ProcessState.ExitCode())
	}
	idle("piped")
}

// TestWhatIsTypedBeforeAQuestion types a yes while a run works. The question that the run asks then is shown and waits for its own answer.
func TestWhatIsTypedBeforeAQuestion(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AGENTBOX_CACHE", cache())
	t.Setenv("NO_COLOR", "1")
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}}
	c.start()
	space, _ := c.post("/v1/spaces", `{"name":"weather","runtime":"heavy","best_effort":true}`)["id"].(string)
	operations := filepath.Join(t.TempDir(), "operations.json")
	if err := os.WriteFile(operations, []byte(`{"protocolVersion":"1.0","operations":[
		{"type":"shell","id":"wait","command":"echo begun; until test -e typed; do sleep 0.1; done","timeout":600000},
		{"type":"shell","id":"remove","command":"rm -r *"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}

	x := openTerminal(t, 100, 30, "run", "weather", operations, "--ask", "--stream", "--data", c.dir)
	x.sees("begun")
	x.press("y\ny\ny")
	typed := "/v1/spaces/" + space + "/files/typed"
	if status, answer, _ := c.call("PUT", typed, "it is", "Content-Type", "application/octet-stream"); status >= 300 {
		t.Fatalf("got %d %v", status, answer)
	}
	x.sees("Allow it?")
	x.press("n\n")
	for more := range x.output {
		x.seen += more
	}
	if err := x.cmd.Wait(); err != nil || strings.Contains(x.seen[x.drawn:], "Allow it?") {
		t.Errorf("it ended with %v, want one question and its answer:\n%s", err, x.seen)
	}
	_, answer, _ := c.call("GET", "/v1/approvals?status=denied", "")
	if denied, _ := answer["approvals"].([]any); len(denied) != 1 {
		t.Errorf("got the denied approvals %v, want the one", answer)
	}
}

// sees waits until a text is shown behind what was seen before.
func (x *terminal) sees(text string) {
	x.t.Helper()
	late := time.After(time.Minute)
	for {
		if before, _, ok := strings.Cut(x.seen[x.drawn:], text); ok {
			x.drawn += len(before) + len(text)
			return
		}
		select {
		case more, ok := <-x.output:
			if !ok {
				x.t.Fatalf("it ended before %q was shown, after %q", text, x.seen[x.drawn:])
			}
			x.seen += more
		case <-late:
			x.t.Fatalf("%q was not shown in a minute, after %q", text, x.seen[x.drawn:])
		}
	}
}

// left waits for the end of the program and compares the terminal with what it was.
func (x *terminal) left() {
	x.t.Helper()
	for more := range x.output {
		x.seen += more
	}
	if err := x.cmd.Wait(); err != nil {
		x.t.Errorf("it ended with %v", err)
	}
	if now := x.mode(); *now != *x.before {
		x.t.Errorf("the terminal is left as %+v, it was %+v", *now, *x.before)
	}
}
