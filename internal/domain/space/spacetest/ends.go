package spacetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

// daemons starts processes in every way that loses a parent and prints a line when they run.
const daemons = `
sleep 1000 &
(sleep 1001 &)
setsid sleep 1002 &
setsid sh -c '(sleep 1003 & sleep 1004) & sleep 1005' &
sh -c 'trap "" TERM HUP INT; sleep 1006; sleep 1007' &
(setsid sh -c 'exec 0</dev/null 1>/dev/null 2>/dev/null; sh -c "sleep 1008 & exec sleep 1009" & exit 0' &)
n=0; while [ $n -lt 9 ]; do n=$(cat /proc/[0-9]*/comm 2>/dev/null | grep -c '^sleep'); done
echo all run
`

// endCases are about the ends of commands and their remains.
var endCases = []testCase{
	{"a signal", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		for signal, want := range map[string]struct {
			code int
			name string
		}{"TERM": {143, "SIGTERM"}, "KILL": {137, "SIGKILL"}, "SEGV": {139, "SIGSEGV"}, "INT": {130, "SIGINT"}} {
			if r := h.Exec(t, s, Shell(spec.ID, "kill -"+signal+" $$")); r.Code != want.code || r.Signal != want.name {
				t.Errorf("%s: got %+v, want %d %s", signal, r.Exit, want.code, want.name)
			}
		}
	}},
	{"nothing is left when it ends", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		if r := h.Exec(t, s, Shell(spec.ID, daemons+"exit 7")); r.Code != 7 || !strings.Contains(r.Stdout, "all run") {
			t.Errorf("got %+v", r)
		}
		if left := h.processes(t, s, spec.ID); left != "" {
			t.Errorf("left behind:\n%s", left)
		}
	}},
	{"nothing is left when it ends beside another", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		wait := h.start(t, t.Context(), s, Shell(spec.ID,
			"(sleep 2000 &); echo up; while [ ! -e go ]; do sleep 0.01; done; pgrep -f 'sleep 2000' >/dev/null && echo mine lives"))
		h.Exec(t, s, Shell(spec.ID, daemons))
		h.Exec(t, s, Shell(spec.ID, "touch go"))
		if r, err := wait(); err != nil || !strings.Contains(r.Stdout, "mine lives") {
			t.Errorf("the other command: got %+v, %v", r, err)
		}
		if left := h.processes(t, s, spec.ID); left != "" {
			t.Errorf("left behind:\n%s", left)
		}
	}},
	{"time runs out", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		c := Shell(spec.ID, "echo begun; sleep 1000")
		c.MS = 200
		if r := h.Exec(t, s, c); r.Code != 124 || !r.TimedOut || r.Canceled || r.Stdout != "begun\n" {
			t.Errorf("got %+v, want 124 and timed out", r)
		}
	}},
	{"time runs out for a whole tree", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		c := Shell(spec.ID, daemons+"sleep 3000; sleep 3001")
		c.MS = 1500
		if r := h.Exec(t, s, c); r.Code != 124 || !r.TimedOut {
			t.Errorf("got %+v, want 124 and timed out", r)
		}
		if left := h.processes(t, s, spec.ID); left != "" {
			t.Errorf("left behind:\n%s", left)
		}
	}},
	{"a command may tidy up when its time runs out", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		c := Shell(spec.ID, "trap 'echo tidied; exit 0' TERM; sleep 1000 & wait")
		c.MS = 1500
		if r := h.Exec(t, s, c); r.Code != 124 || !r.TimedOut || r.Stdout != "tidied\n" {
			t.Errorf("got %+v, want tidied, 124 and timed out", r)
		}
	}},
	{"a command that ignores SIGTERM", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		c := Shell(spec.ID, "trap '' TERM; while :; do sleep 0.1; done")
		c.MS = 200
		if r := h.Exec(t, s, c); r.Code != 124 || !r.TimedOut {
			t.Errorf("got %+v, want 124 and timed out", r)
		}
		if left := h.processes(t, s, spec.ID); left != "" {
			t.Errorf("left behind:\n%s", left)
		}
	}},
	{"a stopped command", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		c := Shell(spec.ID, "kill -STOP $$")
		c.MS = 200
		if r := h.Exec(t, s, c); r.Code != 124 || !r.TimedOut {
			t.Errorf("got %+v, want 124 and timed out", r)
		}
	}},
	{"cancelled", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		ctx, cancel := context.WithCancel(t.Context())
		wait := h.start(t, ctx, s, Shell(spec.ID, "trap '' TERM;"+daemons+"while :; do sleep 0.1; done"))
		cancel()
		if r, err := wait(); err != nil || !r.Canceled || r.TimedOut || r.Code != 137 {
			t.Errorf("got %+v, %v, want 137 and cancelled", r.Exit, err)
		}
		if left := h.processes(t, s, spec.ID); left != "" {
			t.Errorf("left behind:\n%s", left)
		}
	}},
	{"cancelled before it starts", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r, err := h.TryExec(ctx, s, Shell(spec.ID, "sleep 1000"))
		if err == nil && !r.Canceled {
			t.Errorf("got %+v, want cancelled", r.Exit)
		}
		if left := h.processes(t, s, spec.ID); left != "" {
			t.Errorf("left behind:\n%s", left)
		}
	}},
	{"output that is refused", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		refusal := errors.New("no more")
		_, err := s.Exec(t.Context(), h.Permit(Shell(spec.ID, "echo x; sleep 1000").Action()), nil, func(string, []byte) error { return refusal })
		if !errors.Is(err, refusal) {
			t.Errorf("got %v, want the callback's own error", err)
		}
		if left := h.processes(t, s, spec.ID); left != "" {
			t.Errorf("left behind:\n%s", left)
		}
	}},
	{"a command that kills what it can", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		h.Exec(t, s, Shell(spec.ID,
			"trap '' TERM HUP INT QUIT USR1 PIPE; for s in HUP INT QUIT TERM USR1 PIPE SEGV KILL; do kill -$s 1; done; kill -KILL -1"))
		if r := h.Exec(t, s, Shell(spec.ID, "echo alive")); r.Stdout != "alive\n" {
			t.Errorf("got %+v", r)
		}
	}},
	{"output held open by another command", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		// The second command gets the first one's stdout through /proc and keeps it; the first ends all the same.
		whoKeeps := h.start(t, t.Context(), s, Shell(spec.ID,
			"echo up; while [ ! -s pid ]; do sleep 0.01; done; exec 9>/proc/$(cat pid)/fd/1; touch have; while [ ! -e go ]; do sleep 0.01; done"))
		r := h.Exec(t, s, Shell(spec.ID, "echo $$ >pid.new; mv pid.new pid; while [ ! -e have ]; do sleep 0.01; done; echo mine"))
		if r.Stdout != "mine\n" || r.Code != 0 {
			t.Errorf("got %+v", r)
		}
		h.Exec(t, s, Shell(spec.ID, "touch go"))
		if _, err := whoKeeps(); err != nil {
			t.Error(err)
		}
	}},
	{"the space is closed", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		wait := h.start(t, t.Context(), s, Shell(spec.ID, daemons+"sleep 1000"))
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := wait(); fault.CodeOf(err) != "space_ended" {
			t.Errorf("the command: got %v, want space_ended", err)
		}
		select {
		case <-s.Done():
		default:
			t.Error("Done is not closed after Close")
		}
		if _, err := h.TryExec(t.Context(), s, Shell(spec.ID, "true")); fault.CodeOf(err) != "space_ended" {
			t.Errorf("a command afterwards: got %v, want space_ended", err)
		}
		if _, err := s.Usage(t.Context()); fault.CodeOf(err) != "space_ended" {
			t.Errorf("usage afterwards: got %v, want space_ended", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("closed again: %v", err)
		}
	}},
}
