package spacetest

import (
	"fmt"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

// commandCases are about the input and the output of commands.
var commandCases = []testCase{
	{"output and exit code", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		for _, code := range []int{0, 1, 3, 127, 255} {
			r := h.Exec(t, s, Shell(spec.ID, fmt.Sprintf("echo out; echo err >&2; exit %d", code)))
			if r.Code != code || r.Stdout != "out\n" || r.Stderr != "err\n" || r.Signal != "" || r.Limit != "" || r.TimedOut || r.Canceled {
				t.Errorf("exit %d: got %+v, want that code, out and err", code, r)
			}
		}
	}},
	{"arguments are passed as they are", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		args := []string{"a b", "", "$HOME", "'\"", "ü\n", strings.Repeat("x", 100_000)}
		c := Command{Space: spec.ID, Argv: append([]string{"printf", "%s|"}, args...), MS: 60_000}
		if r, want := h.Exec(t, s, c), strings.Join(args, "|")+"|"; r.Stdout != want {
			t.Errorf("got %.80q, want %.80q", r.Stdout, want)
		}
	}},
	{"no such program", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		for _, argv := range [][]string{{"no-such-program"}, {"/usr/bin/no-such-program"}, {"/etc/passwd"}, {"/workspace"}, {""}, nil,
			{"sh\x00"}} {
			_, err := h.TryExec(t.Context(), s, Command{Space: spec.ID, Argv: argv, MS: 60_000})
			if fault.KindOf(err) != fault.Invalid {
				t.Errorf("%q: got %v, want a fault of kind invalid", argv, err)
			}
		}
		if r := h.Exec(t, s, Shell(spec.ID, "echo still here")); r.Stdout != "still here\n" {
			t.Errorf("afterwards: got %+v", r)
		}
	}},
	{"input", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		spec.Limits.OutputBytes = 8 << 20
		s := h.Create(t, spec)
		for _, size := range []int{1, 1000, 65_536, 3_000_000} {
			c := Shell(spec.ID, "cat")
			c.Stdin = strings.Repeat("0123456789abcdef", size/16+1)[:size]
			if r := h.Exec(t, s, c); r.Stdout != c.Stdin {
				t.Errorf("%d bytes of input: got %d bytes back, or others", size, len(r.Stdout))
			}
		}
	}},
	{"input is empty without any", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		if r := h.Exec(t, s, Shell(spec.ID, "wc -c")); strings.TrimSpace(r.Stdout) != "0" {
			t.Errorf("got %q, want 0", r.Stdout)
		}
	}},
	{"input that nobody reads", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		c := Shell(spec.ID, "exec <&-; echo done")
		c.Stdin = strings.Repeat("x", 2_000_000)
		if r := h.Exec(t, s, c); r.Stdout != "done\n" || r.Code != 0 {
			t.Errorf("got %+v, want done", r)
		}
	}},
	{"output keeps its order on each channel", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		r := h.Exec(t, s, Shell(spec.ID, `i=0; while [ $i -lt 5000 ]; do echo "$i"; echo "e$i" >&2; i=$((i+1)); done`))
		var out, errs strings.Builder
		for i := range 5000 {
			fmt.Fprintln(&out, i)
			fmt.Fprintf(&errs, "e%d\n", i)
		}
		if r.Stdout != out.String() || r.Stderr != errs.String() {
			t.Errorf("got %d and %d bytes in another order, want %d and %d", len(r.Stdout), len(r.Stderr), out.Len(), errs.Len())
		}
	}},
	{"output comes as it is written", space.Concurrency, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		// start returns at the first line; the command waits for a file that is made only then.
		wait := h.start(t, t.Context(), s, Shell(spec.ID, "echo ready; while [ ! -e go ]; do sleep 0.01; done; echo gone"))
		h.Exec(t, s, Shell(spec.ID, "touch go"))
		if r, err := wait(); err != nil || r.Stdout != "ready\ngone\n" {
			t.Errorf("got %+v, %v", r, err)
		}
	}},
	{"output that is not text", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		if r := h.Exec(t, s, Shell(spec.ID, `printf '\000\377\200'`)); r.Stdout != "\x00\xff\x80" {
			t.Errorf("got %q", r.Stdout)
		}
	}},
	{"environment", "", func(t *testing.T, h Host) {
		t.Setenv("SECRET_OF_THE_DAEMON", "leaked")
		spec := h.Spec(t)
		s := h.Create(t, spec)
		c := Shell(spec.ID, "env")
		c.Env = map[string]string{"MINE": "a=b\nc"}
		r := h.Exec(t, s, c)
		for _, want := range []string{"OWN=space\n", "MINE=a=b\nc\n", "PATH=", "HOME=", "LANG=", "TMPDIR=", "USER="} {
			if !strings.Contains(r.Stdout, want) {
				t.Errorf("environment without %q:\n%s", want, r.Stdout)
			}
		}
		if strings.Contains(r.Stdout, "leaked") {
			t.Errorf("the daemon's environment shows:\n%s", r.Stdout)
		}
		c.Env = map[string]string{"OWN": "command"}
		if r := h.Exec(t, s, c); !strings.Contains(r.Stdout, "OWN=command\n") {
			t.Errorf("the command's variable does not cover the space's:\n%s", r.Stdout)
		}
		for _, name := range []string{"", "A=B", "A\x00"} {
			c.Env = map[string]string{name: "x"}
			if _, err := h.TryExec(t.Context(), s, c); fault.CodeOf(err) != "invalid_env" {
				t.Errorf("variable %q: got %v, want invalid_env", name, err)
			}
		}
	}},
	{"working folder", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		h.Exec(t, s, Shell(spec.ID, "mkdir -p a/b"))
		c := Shell(spec.ID, "basename $PWD; ls ..")
		c.Cwd = "a/b"
		if r := h.Exec(t, s, c); r.Stdout != "b\nb\n" {
			t.Errorf("got %q", r.Stdout)
		}
		for _, cwd := range []string{"..", "a/../../etc", "/etc", "a\x00"} {
			c.Cwd = cwd
			if _, err := h.TryExec(t.Context(), s, c); fault.CodeOf(err) != "invalid_cwd" {
				t.Errorf("%q: got %v, want invalid_cwd", cwd, err)
			}
		}
		c.Cwd = "missing"
		if _, err := h.TryExec(t.Context(), s, c); fault.KindOf(err) != fault.Invalid {
			t.Errorf("a folder that is not there: got %v, want invalid", err)
		}
	}},
	{"the tools are there", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		spec.Limits.MemoryBytes = 512 << 20
		s := h.Create(t, spec)
		r := h.Exec(t, s, Shell(spec.ID, `python3 -c 'print(6*7)' && echo a:b | awk -F: '{print $2}' && printf 'x\ny\n' | sed -n 2p | grep -c y`))
		if r.Stdout != "42\nb\n1\n" {
			t.Errorf("got %+v", r)
		}
	}},
	{"commands run side by side", space.Concurrency, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		const n = 8
		waits := make([]func() (Result, error), n)
		for i := range waits {
			waits[i] = h.start(t, t.Context(), s, Shell(spec.ID,
				fmt.Sprintf("echo %d; while [ ! -e go%d ]; do sleep 0.01; done; (sleep 1000 &) ; exit %d", i, i, i)))
		}
		// In the opposite order: each ends alone and takes only its own process with it.
		for i := n - 1; i >= 0; i-- {
			h.Exec(t, s, Shell(spec.ID, fmt.Sprintf("touch go%d", i)))
			if r, err := waits[i](); err != nil || r.Code != i || r.Stdout != fmt.Sprintln(i) {
				t.Errorf("command %d: got %+v, %v", i, r, err)
			}
		}
		if left := h.processes(t, s, spec.ID); left != "" {
			t.Errorf("left behind:\n%s", left)
		}
	}},
}
