package spacetest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

// boundCases are about what happens at each bound and just before it.
var boundCases = []testCase{
	{"output up to its bound", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		spec.Limits.OutputBytes = 100_000
		s := h.Create(t, spec)
		r := h.Exec(t, s, Shell(spec.ID, "head -c 60000 /dev/zero; head -c 40000 /dev/zero >&2"))
		if r.Limit != "" || r.Code != 0 || len(r.Stdout)+len(r.Stderr) != 100_000 {
			t.Errorf("at the bound: got %+v and %d bytes, want all of them", r.Exit, len(r.Stdout)+len(r.Stderr))
		}
		r = h.Exec(t, s, Shell(spec.ID, "head -c 60000 /dev/zero; head -c 40001 /dev/zero >&2; sleep 1000"))
		if r.Limit != "output_bytes" || r.Code != 137 || len(r.Stdout)+len(r.Stderr) != 100_000 {
			t.Errorf("over the bound: got %+v and %d bytes, want 100000 bytes and output_bytes", r.Exit, len(r.Stdout)+len(r.Stderr))
		}
	}},
	{"output without end", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		r := h.Exec(t, s, Shell(spec.ID, "yes & yes >&2"))
		if r.Limit != "output_bytes" || int64(len(r.Stdout)+len(r.Stderr)) != spec.Limits.OutputBytes {
			t.Errorf("got %+v and %d bytes, want output_bytes", r.Exit, len(r.Stdout)+len(r.Stderr))
		}
		if left := h.processes(t, s, spec.ID); left != "" {
			t.Errorf("left behind:\n%s", left)
		}
	}},
	{"output that is taken slowly holds nobody up", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		spec.Limits.OutputBytes = 64 << 20
		s := h.Create(t, spec)
		release, blocked, done := make(chan struct{}), make(chan struct{}), make(chan error)
		go func() {
			n := 0
			_, err := s.Exec(t.Context(), h.Permit(Shell(spec.ID, "head -c 8000000 /dev/zero").Action()), nil, func(_ string, data []byte) error {
				if n == 0 {
					close(blocked)
					<-release
				}
				n += len(data)
				return nil
			})
			if err == nil && n != 8_000_000 {
				t.Errorf("got %d bytes, want 8000000", n)
			}
			done <- err
		}()
		<-blocked
		if r := h.Exec(t, s, Shell(spec.ID, "head -c 100000 /dev/zero")); len(r.Stdout) != 100_000 {
			t.Errorf("the other command: got %d bytes", len(r.Stdout))
		}
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}},
	{"memory", "memory_bytes", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		// tail keeps all of its input, which has no line.
		if r := h.Exec(t, s, Shell(spec.ID, "head -c 20m /dev/zero | tail | wc -c")); r.Code != 0 || r.Limit != "" {
			t.Errorf("below the bound: got %+v", r)
		}
		r := h.Exec(t, s, Shell(spec.ID, "head -c 400m /dev/zero | tail >/dev/null; echo $?; exit 9"))
		if r.Limit != "memory_bytes" || r.Stdout != "137\n" || r.Code != 9 {
			t.Errorf("over the bound: got %+v, want memory_bytes", r)
		}
		r = h.Exec(t, s, Command{Space: spec.ID, Argv: []string{"sh", "-c", "exec tail /dev/zero"}, MS: 60_000})
		if r.Limit != "memory_bytes" || r.Code != 137 || r.Signal != "SIGKILL" {
			t.Errorf("without end: got %+v, want memory_bytes", r)
		}
		if r := h.Exec(t, s, Shell(spec.ID, "echo alive")); r.Stdout != "alive\n" {
			t.Errorf("afterwards: got %+v", r)
		}
	}},
	{"memory of a full /tmp", "memory_bytes", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		r := h.Exec(t, s, Shell(spec.ID, "head -c 7m /dev/zero >/tmp/a && echo fits; head -c 7m /dev/zero >/tmp/b || echo full"))
		if r.Stdout != "fits\nfull\n" || !strings.Contains(r.Stderr, "No space left") {
			t.Errorf("got %+v, want a bound of %d bytes", r, spec.Limits.TmpBytes)
		}
	}},
	{"processes", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		wait := h.start(t, t.Context(), s, Shell(spec.ID, "echo up; while [ ! -e go ]; do read -t 0.01 x; done; exit 4"))
		r := h.Exec(t, s, Shell(spec.ID, "n=0; while [ $n -lt 500 ]; do sleep 1000 & n=$((n+1)); done"))
		if r.Code == 0 {
			t.Errorf("got %+v after 500 processes, want a failure", r)
		}
		if !slices.Contains(h.Unnamed, "pids") && r.Limit != "pids" {
			t.Errorf("got %+v, want pids", r.Exit)
		}
		h.Exec(t, s, Shell(spec.ID, ": >go"))
		if r, err := wait(); err != nil || r.Code != 4 {
			t.Errorf("the other command: got %+v, %v", r, err)
		}
	}},
	{"a fork bomb", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		near := h.Create(t, h.Spec(t))
		c := Shell(spec.ID, "b() { b | b & }; trap '' TERM; b; while :; do b; done 2>/dev/null")
		c.MS = 500
		if r, err := h.TryExec(t.Context(), s, c); err == nil && r.Code == 0 {
			t.Errorf("got %+v", r.Exit)
		}
		select {
		case <-near.Done():
			t.Error("the neighbour has ended")
		default:
		}
		if left := h.processes(t, s, spec.ID); left != "" {
			t.Errorf("left behind:\n%s", left)
		}
	}},
	{"a fork bomb beside another command", space.Processes, func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		wait := h.start(t, t.Context(), s, Shell(spec.ID, "echo up; while [ ! -e go ]; do :; done; exit 4"))
		c := Shell(spec.ID, "b() { b | b & }; trap '' TERM; b; while :; do b; done 2>/dev/null")
		c.MS = 300
		if r, err := h.TryExec(t.Context(), s, c); err == nil && r.Code == 0 {
			t.Errorf("got %+v", r.Exit)
		}
		if err := os.WriteFile(filepath.Join(spec.Dir, "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if r, err := wait(); err != nil || r.Code != 4 {
			t.Errorf("the other command: got %+v, %v", r, err)
		}
		if left := h.processes(t, s, spec.ID); left != "" {
			t.Errorf("left behind:\n%s", left)
		}
	}},
	{"one file", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		spec.Limits.FileBytes = 1 << 20
		s := h.Create(t, spec)
		if r := h.Exec(t, s, Shell(spec.ID, "head -c 1048576 /dev/zero >fits && wc -c <fits")); strings.TrimSpace(r.Stdout) != "1048576" {
			t.Errorf("at the bound: got %+v", r)
		}
		for _, script := range []string{"exec head -c 1048577 /dev/zero >large", "head -c 1048577 /dev/zero >larger; exit $?"} {
			if r := h.Exec(t, s, Command{Space: spec.ID, Argv: []string{"sh", "-c", script}, MS: 60_000}); r.Limit != "file_bytes" || r.Code == 0 {
				t.Errorf("over the bound by %q: got %+v, want file_bytes", script, r)
			}
		}
		if r := h.Exec(t, s, Shell(spec.ID, "wc -c <large; truncate -s 2m sparse || echo no")); strings.Fields(r.Stdout)[0] != "1048576" {
			t.Errorf("afterwards: got %+v", r)
		}
	}},
	{"open files", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		spec.Limits.OpenFiles = 64
		s := h.Create(t, spec)
		if r := h.Exec(t, s, Shell(spec.ID, "ulimit -n; ulimit -Hn; ulimit -n 65 || echo no")); r.Stdout != "64\n64\nno\n" {
			t.Errorf("got %+v, want 64", r)
		}
	}},
	{"disk", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		r := h.Exec(t, s, Shell(spec.ID, "i=0; while :; do head -c 4m /dev/zero >file$i || exit 1; i=$((i+1)); done"))
		if r.Limit != "disk_bytes" || r.Code != 137 {
			t.Errorf("got %+v, want disk_bytes", r)
		}
		u, err := s.Usage(t.Context())
		if err != nil || u.DiskBytes < spec.Limits.DiskBytes {
			t.Errorf("usage: got %+v, %v, want at least %d bytes", u, err, spec.Limits.DiskBytes)
		}
		t.Logf("overshoot: %d of %d bytes", u.DiskBytes-spec.Limits.DiskBytes, spec.Limits.DiskBytes)
		// Over the bound a command may still run, to delete something.
		if r := h.Exec(t, s, Shell(spec.ID, "rm file*; sync; sleep 0.05; echo done")); r.Stdout != "done\n" || r.Limit != "" {
			t.Errorf("afterwards: got %+v", r)
		}
	}},
	{"a great number of files", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		c := Shell(spec.ID, "i=0; while :; do mkdir d$i; cd d$i; n=0; while [ $n -lt 500 ]; do : >f$n; n=$((n+1)); done; cd ..; i=$((i+1)); done")
		if r := h.Exec(t, s, c); r.Limit != "disk_bytes" || r.Code != 137 {
			t.Errorf("got %+v, want disk_bytes", r)
		}
	}},
	{"folders without end", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		if r := h.Exec(t, s, Shell(spec.ID, "while mkdir d && cd d; do :; done; sleep 1000")); r.Limit != "folder_depth" {
			t.Errorf("got %+v, want folder_depth", r.Exit)
		}
	}},
	{"processor time", "cpu_millis", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		spec.Limits.CPUMillis = 100
		s := h.Create(t, spec)
		before, err := s.Usage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c := Shell(spec.ID, "while :; do :; done & while :; do :; done")
		c.MS = 1000
		r := h.Exec(t, s, c)
		after, err := s.Usage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// A tenth of a core, with as much again for the period under way at either end.
		if used, most := after.CPUMicros-before.CPUMicros, r.Duration.Microseconds()/5+200_000; used > most || used <= 0 {
			t.Errorf("used %d µs of processor in %v, want at most %d", used, r.Duration, most)
		}
	}},
	{"limits that are none", "", func(t *testing.T, h Host) {
		for _, spoil := range []func(*space.Limits){
			func(l *space.Limits) { l.MemoryBytes = 0 }, func(l *space.Limits) { l.CPUMillis = -1 }, func(l *space.Limits) { l.Pids = 0 },
			func(l *space.Limits) { l.DiskBytes = 0 }, func(l *space.Limits) { l.FileBytes = 0 }, func(l *space.Limits) { l.OutputBytes = 0 },
			func(l *space.Limits) { l.OpenFiles = 0 }, func(l *space.Limits) { l.TmpBytes = -5 },
		} {
			spec := h.Spec(t)
			spoil(&spec.Limits)
			if s, err := h.Tier.Create(t.Context(), h.CreatePermit(t, spec), spec); fault.CodeOf(err) != "limit_invalid" {
				t.Errorf("%+v: got %v, %v, want limit_invalid", spec.Limits, s, err)
			}
		}
	}},
}

// lacks reports whether the host cannot enforce a bound.
func (h Host) lacks(bound string) bool { return slices.Contains(h.Unenforced, bound) }
