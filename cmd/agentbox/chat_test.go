package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestChatOnATerminal is a person at a pseudo-terminal who talks with an agent: answers are drawn while they come, tool calls are lines,
// questions are answered, the run can be stopped, and the terminal is left as it was.
func TestChatOnATerminal(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("AGENTBOX_CACHE", cache())
	t.Setenv("NO_COLOR", "1")
	vendor := newVendor([][]vendorItem{
		{{Say: "I **write**."}, {Tool: "shell", Arguments: []byte(`{"command": "echo hello > a.txt; cat a.txt"}`)}},
		{{Say: "Done: $LAST"}},
		{{Tool: "shell", Arguments: []byte(`{"command": "rm -r a.txt"}`)}},
		{{Say: "Second: $LAST"}},
		{{Say: "I think of "}, {Hold: "long one"}, {Say: "this: $LAST"}},
	}, "Last: $LAST")
	t.Cleanup(func() {
		vendor.CloseClientConnections()
		vendor.Close()
	})
	c := worker(t, vendor.URL)

	x := openTerminal(t, 120, 40, "chat", "--data", c.dir) // the only blueprint
	x.sees("worker> ")
	if now := x.mode(); now.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG) != 0 {
		t.Error("keys are shown, wait for the end of a line, or make signals while a line is edited")
	}
	for _, step := range []struct {
		keys string
		sees []string
	}{
		{"first\\\r", []string{". "}},
		{"task\r", []string{"I **write**.", "▸ shell echo hello > a.txt; cat a.txt", "✓ exit 0", "Done: first", "task", "worker> "}},
		{"/tools\r", []string{"│ hello", "worker> "}},
		{"dropped\x03", []string{"worker> "}},
		{"second task\r", []string{"▸ shell rm -r a.txt", "exactly", "rm -r a.txt", "Allow it? [y]es, [a]lways for all agents in room default"}},
		{"y\r", []string{"✓ exit 0", "Second: second task", "worker> "}},
		{"a long one\r", []string{"I think of "}},
		{"\x03", []string{"stopped; say how to go on", "worker> "}},
		{"\x1b[A\x17two\r", []string{"I think of this:", "a long two", "worker> "}}, // the line before comes back, and is changed
		{"\x1b[200~pasted\rlines\x1b[201~\r", []string{"Last: pasted", "lines", "worker> "}},
		{"/help\r", []string{"/rewind", "worker> "}},
	} {
		x.press(step.keys)
		for _, text := range step.sees {
			x.sees(text)
		}
	}
	x.press("\x04")
	x.sees("go on: agentbox chat --resume run_")
	x.left()
	raw, err := os.ReadFile(filepath.Join(home, ".local", "state", "agentbox", "chat_history"))
	if err != nil || strings.Contains(string(raw), "\ny\n") || !strings.Contains(string(raw), "second task") {
		t.Errorf("got the history %q (%v), want what was said, less what was answered", raw, err)
	}
}

// worker starts a daemon whose only blueprint is an agent named worker, which asks the model of a vendor.
func worker(t *testing.T, vendor string, flags ...string) *victim {
	t.Helper()
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}, flags: flags}
	c.start()
	blueprint := filepath.Join(t.TempDir(), "worker.yaml")
	const text = "api_version: 1\nname: worker\nadapter: {kind: internal}\nmodels: {default: main}\n"
	if err := os.WriteFile(blueprint, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"model", "add", "main", "--dialect", "generic", "--url", vendor + "/v1", "--model", "m", "--private"},
		{"blueprint", "lock", blueprint}, {"blueprint", "register", blueprint},
	} {
		if out, err := exec.Command("agentbox", append(args, "--data", c.dir)...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	return c
}
