package spacetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// inputBytes is how much input a case sends; the buffer of a command is smaller.
const inputBytes = 1 << 20

// running is a command in the background of a test.
type running struct {
	space.Process
	t    *testing.T
	done chan struct{}
	exit space.Exit
	err  error

	mu      sync.Mutex
	changed chan struct{} // closed when more is printed
	printed bytes.Buffer
}

// background begins a command in the background. A time limit ends one that hangs.
func (h Host) background(t *testing.T, ctx context.Context, s space.Instance, c Command, attach string) *running {
	t.Helper()
	a := c.Action()
	a.Background, a.Attach = true, attach
	p, err := s.Start(ctx, h.Permit(a), space.TerminalSize{Cols: 100, Rows: 30})
	if err != nil {
		t.Fatalf("start %q: %v", c.Argv, err)
	}
	r := &running{Process: p, t: t, done: make(chan struct{}), changed: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.exit, r.err = p.Wait(func(_ string, data []byte) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.printed.Write(data)
			close(r.changed)
			r.changed = make(chan struct{})
			return nil
		})
	}()
	return r
}

// output is the output so far.
func (r *running) output() (string, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.printed.String(), r.changed
}

// expect waits until a text was printed.
func (r *running) expect(text string) {
	r.t.Helper()
	for {
		got, more := r.output()
		if strings.Contains(got, text) {
			return
		}
		select {
		case <-more:
		case <-r.done:
			if got, _ := r.output(); !strings.Contains(got, text) {
				r.t.Fatalf("ended as %+v, %v without printing %q; it printed %.500q", r.exit, r.err, text, got)
			}
			return
		}
	}
}

// send gives input that the command has to accept.
func (r *running) send(input string) {
	r.t.Helper()
	if err := r.Send(r.t.Context(), []byte(input), nil); err != nil {
		r.t.Fatalf("send %.40q: %v", input, err)
	}
}

// ended waits for the end and returns how the command ended.
func (r *running) ended() Result {
	r.t.Helper()
	<-r.done
	if r.err != nil {
		r.t.Fatalf("it could not run: %v", r.err)
	}
	got, _ := r.output()
	return Result{Exit: r.exit, Stdout: got}
}

// processCases are about commands that run in the background, get input and signals, and have terminals.
var processCases = []testCase{
	{"input until its end", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		unbounded := Shell(spec.ID, "cat; echo end")
		unbounded.MS = 0
		r := h.background(t, t.Context(), s, unbounded, policy.AttachStdin)
		for _, line := range []string{"one\n", "two\n"} {
			r.send(line)
			r.expect(line)
		}
		r.send("")
		if got := r.ended(); got.Stdout != "one\ntwo\nend\n" || got.Code != 0 {
			t.Errorf("got %+v", got)
		}
		if err := r.Send(t.Context(), []byte("x"), nil); !errors.Is(err, space.ErrCommandEnded) {
			t.Errorf("input after the end: got %v, want command_ended", err)
		}
		if err := r.Signal("SIGTERM"); !errors.Is(err, space.ErrCommandEnded) {
			t.Errorf("a signal after the end: got %v, want command_ended", err)
		}
	}},
	{"no input without any", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		r := h.background(t, t.Context(), s, Shell(spec.ID, "wc -c; sleep 0.2"), "")
		if err := r.Send(t.Context(), []byte("x"), nil); !errors.Is(err, space.ErrInputClosed) {
			t.Errorf("got %v, want input_closed", err)
		}
		if got := r.ended(); strings.TrimSpace(got.Stdout) != "0" {
			t.Errorf("got %q", got.Stdout)
		}
	}},
	{"more input than there is room for", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		spec.Limits.OutputBytes = 8 << 20
		s := h.Create(t, spec)
		r := h.background(t, t.Context(), s, Shell(spec.ID, "cat"), policy.AttachStdin)
		input := strings.Repeat("0123456789abcdef", inputBytes/16)
		for rest := input; rest != ""; {
			n := min(len(rest), space.MaxInputBytes)
			r.send(rest[:n])
			rest = rest[n:]
		}
		r.send("")
		if got := r.ended(); got.Stdout != input {
			t.Errorf("got %d bytes back, or others", len(got.Stdout))
		}
	}},
	{"input that is not read", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		r := h.background(t, t.Context(), s, Shell(spec.ID, "while [ ! -e go ]; do sleep 0.01; done; wc -c"), policy.AttachStdin)
		full := errors.New("still room")
		sent := 0
		for range 64 {
			ctx, cancel := context.WithCancel(t.Context())
			taken := make(chan error, 1)
			go func() { taken <- r.Send(ctx, bytes.Repeat([]byte("x"), space.MaxInputBytes), nil) }()
			h.Exec(t, s, Shell(spec.ID, "sleep 0.1"))
			cancel()
			if err := <-taken; err != nil {
				full = err
				break
			}
			sent += space.MaxInputBytes
		}
		if !errors.Is(full, space.ErrInputFull) {
			t.Errorf("after %d bytes: got %v, want input_full", sent, full)
		}
		if err := r.Send(t.Context(), make([]byte, space.MaxInputBytes+1), nil); !errors.Is(err, space.ErrInputFull) {
			t.Errorf("too much at once: got %v, want input_full", err)
		}
		h.Exec(t, s, Shell(spec.ID, "touch go"))
		r.send("")
		if got := r.ended(); strings.TrimSpace(got.Stdout) != fmt.Sprint(sent) {
			t.Errorf("it read %q bytes, want the %d that were taken", got.Stdout, sent)
		}
	}},
	{"input that is refused at the last moment", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		r := h.background(t, t.Context(), s, Shell(spec.ID, "cat"), policy.AttachStdin)
		refused := errors.New("refused")
		if err := r.Send(t.Context(), []byte("secret"), func() error { return refused }); !errors.Is(err, refused) {
			t.Errorf("got %v, want the refusal", err)
		}
		r.send("x")
		r.send("")
		if got := r.ended(); got.Stdout != "x" {
			t.Errorf("got %q, want x alone", got.Stdout)
		}
	}},
	{"input that the command has closed", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		r := h.background(t, t.Context(), s, Shell(spec.ID, "exec <&-; echo shut; sleep 1000"), policy.AttachStdin)
		r.expect("shut")
		var err error
		for range 200 {
			if err = r.Send(t.Context(), []byte("x"), nil); err != nil {
				break
			}
			h.Exec(t, s, Shell(spec.ID, "sleep 0.01")) // the refusal comes back from the space
		}
		if !errors.Is(err, space.ErrInputClosed) {
			t.Errorf("got %v, want input_closed", err)
		}
		if err := r.Signal("SIGKILL"); err != nil {
			t.Error(err)
		}
		r.ended()
	}},
	{"signals", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		r := h.background(t, t.Context(), s, Shell(spec.ID,
			`trap 'echo got one' USR1; trap 'echo got two; exit 7' TERM; echo ready; while :; do sleep 0.02; done`), "")
		r.expect("ready")
		for _, step := range []struct{ signal, says string }{{"SIGUSR1", "got one"}, {"SIGTERM", "got two"}} {
			if err := r.Signal(step.signal); err != nil {
				t.Fatal(err)
			}
			r.expect(step.says)
		}
		if got := r.ended(); got.Code != 7 || got.TimedOut || got.Canceled {
			t.Errorf("got %+v, want 7", got.Exit)
		}
		if err := r.Signal("SIGNOPE"); fault.CodeOf(err) != "invalid_signal" {
			t.Errorf("got %v, want invalid_signal", err)
		}
	}},
	{"SIGKILL leaves nothing behind", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		r := h.background(t, t.Context(), s, Shell(spec.ID, `(setsid sleep 1000 &); sleep 1000 & echo ready; wait`), "")
		r.expect("ready")
		if err := r.Signal("SIGKILL"); err != nil {
			t.Fatal(err)
		}
		if got := r.ended(); got.Code != 137 || got.Exit.Signal != "SIGKILL" || got.TimedOut || got.Canceled {
			t.Errorf("got %+v, want 137 and SIGKILL", got.Exit)
		}
		if left := h.processes(t, s, spec.ID); left != "" {
			t.Errorf("left behind:\n%s", left)
		}
	}},
	{"a terminal and its size", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		r := h.background(t, t.Context(), s, Shell(spec.ID,
			`test -t 0 && test -t 1 && test -t 2 && echo terminal; stty size; trap 'stty size; exit' WINCH; echo ready; `+
				`while :; do sleep 0.02; done`),
			policy.AttachTerminal)
		r.expect("ready")
		if err := r.Resize(space.TerminalSize{Cols: 81, Rows: 25}); err != nil {
			t.Fatal(err)
		}
		if got := r.ended(); got.Stdout != "terminal\r\n30 100\r\nready\r\n25 81\r\n" {
			t.Errorf("got %q", got.Stdout)
		}
		for _, size := range []space.TerminalSize{{}, {Cols: 1}, {Cols: 1001, Rows: 1}, {Cols: -1, Rows: 1}} {
			if err := r.Resize(size); fault.CodeOf(err) != "invalid_terminal_size" {
				t.Errorf("%+v: got %v, want invalid_terminal_size", size, err)
			}
		}
	}},
	{"a shell in a terminal", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		c := Command{Space: spec.ID, Argv: []string{"bash", "--norc", "-i"}, Env: map[string]string{"PS1": "> ", "TERM": "dumb"}, MS: 60_000}
		r := h.background(t, t.Context(), s, c, policy.AttachTerminal)
		r.expect("> ")
		r.send("echo $((6*7))\r")
		r.expect("\n42\r\n")
		// The command is in the foreground before it prints. Earlier input would interrupt the shell, and not the command.
		r.send("sh -c 'echo rea\"\"dy; exec sleep 1000'\r")
		r.expect("\nready\r\n")
		r.send("\x03")
		r.expect("^C")
		r.send("echo code $?\r")
		r.expect("code 130\r\n> ") // what ends the input before the prompt is there ends nothing
		r.send("")                 // Ctrl-D
		if got := r.ended(); got.Code != 0 {
			t.Errorf("got %+v", got)
		}
		if left := h.processes(t, s, spec.ID); left != "" {
			t.Errorf("left behind:\n%s", left)
		}
	}},
	{"a signal reaches the foreground of a terminal", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		c := Command{Space: spec.ID, Argv: []string{"bash", "--norc", "-i"}, Env: map[string]string{"PS1": "> ", "TERM": "dumb"}, MS: 60_000}
		r := h.background(t, t.Context(), s, c, policy.AttachTerminal)
		r.expect("> ")
		r.send("sh -c 'trap \"echo inter\"\"rupted; exit 9\" INT; echo rea\"\"dy; while :; do sleep 0.02; done'\r")
		r.expect("ready")
		if err := r.Signal("SIGINT"); err != nil {
			t.Fatal(err)
		}
		r.expect("interrupted")
		if err := r.Signal("SIGHUP"); err != nil {
			t.Fatal(err)
		}
		r.ended()
	}},
	{"the space is closed while commands run in the background", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		r := h.background(t, t.Context(), s, Shell(spec.ID, "echo ready; cat"), policy.AttachTerminal)
		r.expect("ready")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		<-r.done
		if fault.CodeOf(r.err) != "space_ended" {
			t.Errorf("got %+v, %v, want space_ended", r.exit, r.err)
		}
		if err := r.Send(t.Context(), []byte("x"), nil); !errors.Is(err, space.ErrCommandEnded) {
			t.Errorf("input: got %v, want command_ended", err)
		}
	}},
	{"cancelled in the background", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		ctx, cancel := context.WithCancel(t.Context())
		r := h.background(t, ctx, s, Shell(spec.ID, "trap '' TERM INT HUP; echo ready; while :; do sleep 1; done"), policy.AttachTerminal)
		r.expect("ready")
		cancel()
		if got := r.ended(); !got.Canceled || got.Code != 137 {
			t.Errorf("got %+v, want 137 and cancelled", got.Exit)
		}
		if left := h.processes(t, s, spec.ID); left != "" {
			t.Errorf("left behind:\n%s", left)
		}
	}},
	{"many in the background", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		all := make([]*running, 16)
		for i := range all {
			attach := []string{policy.AttachStdin, policy.AttachTerminal}[i%2]
			all[i] = h.background(t, t.Context(), s, Shell(spec.ID, fmt.Sprintf("read line; echo %d got $line; exit %d", i, i)), attach)
		}
		for i := len(all) - 1; i >= 0; i-- {
			all[i].send(fmt.Sprintf("line%d\n", i))
			all[i].expect(fmt.Sprintf("%d got line%d", i, i))
			if got := all[i].ended(); got.Code != i {
				t.Errorf("command %d: got %+v", i, got.Exit)
			}
		}
		if left := h.processes(t, s, spec.ID); left != "" {
			t.Errorf("left behind:\n%s", left)
		}
	}},
	{"a terminal that a program makes", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		spec.Limits.MemoryBytes = 256 << 20
		s := h.Create(t, spec)
		r := h.Exec(t, s, Shell(spec.ID, `python3 -c '
import os, pty, fcntl, termios, struct
m, s = pty.openpty()
fcntl.ioctl(s, termios.TIOCSWINSZ, struct.pack("HHHH", 7, 9, 0, 0))
print(os.ttyname(s).startswith("/dev/pts/"), os.get_terminal_size(s).columns)'`))
		if r.Stdout != "True 9\n" {
			t.Errorf("got %+v", r)
		}
	}},
	{"permits of commands in the background", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		a := Shell(spec.ID, "touch made").Action()
		size := space.TerminalSize{Cols: 80, Rows: 24}
		for name, p := range map[string]policy.Permit{"none": {}, "of a command that waits": h.Permit(a), "of another space": h.Permit(
			policy.Action{Type: policy.ShellExec, Workspace: workspace, Space: "space_other", Argv: a.Argv, Background: true})} {
			if _, err := s.Start(t.Context(), p, size); fault.KindOf(err) != fault.Denied {
				t.Errorf("a permit %s: got %v, want a denial", name, err)
			}
		}
		a.Background, a.Attach = true, policy.AttachStdin
		if _, err := s.Exec(t.Context(), h.Permit(a), nil, func(string, []byte) error { return nil }); fault.KindOf(err) != fault.Denied {
			t.Errorf("Exec of a command with input: got %v, want a denial", err)
		}
		if r := h.Exec(t, s, Shell(spec.ID, "ls")); r.Stdout != "" {
			t.Errorf("something ran: %q", r.Stdout)
		}
	}},
	{"a tier without processes says so", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		a := Shell(spec.ID, "cat").Action()
		a.Background, a.Attach = true, policy.AttachStdin
		p := h.Permit(a)
		started, err := s.Start(t.Context(), p, space.TerminalSize{Cols: 80, Rows: 24})
		if err == nil {
			if err := started.Send(t.Context(), nil, nil); err != nil {
				t.Error(err)
			}
			if _, err := started.Wait(func(string, []byte) error { return nil }); err != nil {
				t.Error(err)
			}
			return
		}
		if fault.CodeOf(err) != "tier_lacks" {
			t.Fatalf("got %v, want tier_lacks", err)
		}
		if _, err := p.Redeem(policy.ShellExec); err != nil {
			t.Errorf("the permit afterwards: %v", err)
		}
	}},
}
