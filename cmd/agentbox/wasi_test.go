package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentbox/internal/driver/nano/wasi/wasitest"
)

// TestWASIFromOutside runs the probe of each function as a person does, over a real folder.
func TestWASIFromOutside(t *testing.T) {
	module := wasitest.Probes(t)
	cache, root := filepath.Join(t.TempDir(), "cache"), filepath.Join(t.TempDir(), "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	// wasi runs the command and returns its output, what it says, and its exit code.
	wasi := func(flags []string, args ...string) (out, says string, code int) {
		t.Helper()
		c := exec.Command("agentbox", append(append([]string{"wasi", "run", "--cache", cache, "--env", "A=1", "--env", "WASI_TEST", "--env",
			"WASI_NONE"}, flags...), args...)...)
		c.Env = append(os.Environ(), "WASI_TEST=from outside", "HOME="+t.TempDir())
		var stdout, stderr bytes.Buffer
		c.Stdin, c.Stdout, c.Stderr = strings.NewReader("input\n"), &stdout, &stderr
		err := c.Run()
		if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			t.Fatal(err)
		} else if ok {
			code = exit.ExitCode()
		}
		return stdout.String(), stderr.String(), code
	}
	list, says, code := wasi(nil, module, "list")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, says)
	}
	names := strings.Fields(list)
	if len(names) != 46 {
		t.Fatalf("%d functions have probes, want 46: %v", len(names), names)
	}
	for _, dir := range [][]string{{"--dir", root}, {"--dir", root + "::/"}} {
		for _, name := range names {
			if _, says, code := wasi(dir, module, name); code != 0 {
				t.Errorf("%v %s: exit code %d\n%s", dir, name, code, says)
			}
			if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
				t.Fatalf("%s left %v, %v", name, left, err)
			}
		}
	}
	for _, x := range []struct {
		flags, args []string
		code        int
		out         string
	}{
		{nil, []string{"args_get", "--", "a b", "-x", ""}, 0, "[probes.wasm]\n[args_get]\n[--]\n[a b]\n[-x]\n[]\n"},
		{nil, []string{"environ_get"}, 0, "[A=1]\n[WASI_TEST=from outside]\n"},
		{nil, []string{"fd_read", "stdin"}, 0, "input\n"},
		{nil, []string{"proc_exit", "33"}, 33, ""},
		{nil, []string{"proc_raise", "abort"}, 134, ""},
		{nil, []string{"fd_prestat_dir_name"}, 0, "/\n" + root + "\n"},
		{[]string{"--dir", "."}, []string{"fd_prestat_dir_name"}, 0, root + "\n.\n"},
	} {
		out, says, code := wasi(append([]string{"--dir", root}, x.flags...), append([]string{module}, x.args...)...)
		if code != x.code || out != x.out {
			t.Errorf("%v: exit code %d, output %q, want %d, %q\n%s", x.args, code, out, x.code, x.out, says)
		}
	}
}
