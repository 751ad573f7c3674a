package spacetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// permitCases are about the right to do what is done.
var permitCases = []testCase{
	{"creating needs a permit for exactly that", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		create := func(p policy.Permit) error {
			s, err := h.Tier.Create(t.Context(), p, spec)
			if err == nil {
				t.Error("a space was made")
				return s.Close()
			}
			return err
		}
		if err := create(policy.Permit{}); !errors.Is(err, policy.ErrNoPermit) {
			t.Errorf("without a permit: got %v", err)
		}
		if err := create(h.Permit(Shell(spec.ID, "true").Action())); !errors.Is(err, policy.ErrPermitMismatch) {
			t.Errorf("with a permit for a command: got %v", err)
		}
		other := spec
		other.ID = id.New[id.Space](h.IDs)
		if err := create(h.CreatePermit(t, other)); !errors.Is(err, policy.ErrPermitMismatch) {
			t.Errorf("with a permit for another space: got %v", err)
		}
		other = spec
		other.Limits.MemoryBytes--
		if err := create(h.CreatePermit(t, other)); !errors.Is(err, policy.ErrPermitMismatch) {
			t.Errorf("with a permit for other limits: got %v", err)
		}
		p := h.CreatePermit(t, spec)
		s, err := h.Tier.Create(t.Context(), p, spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := create(p); !errors.Is(err, policy.ErrPermitSpent) {
			t.Errorf("with a spent permit: got %v", err)
		}
	}},
	{"a command needs a permit for exactly that", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		exec := func(p policy.Permit, stdin string) error {
			_, err := s.Exec(t.Context(), p, []byte(stdin), func(string, []byte) error { return nil })
			return err
		}
		touch := Shell(spec.ID, "touch ran")
		if err := exec(policy.Permit{}, ""); !errors.Is(err, policy.ErrNoPermit) {
			t.Errorf("without a permit: got %v", err)
		}
		if err := exec(h.CreatePermit(t, spec), ""); !errors.Is(err, policy.ErrPermitMismatch) {
			t.Errorf("with a permit for a space: got %v", err)
		}
		elsewhere := touch
		elsewhere.Space = id.New[id.Space](h.IDs)
		if err := exec(h.Permit(elsewhere.Action()), ""); !errors.Is(err, policy.ErrPermitMismatch) {
			t.Errorf("with a permit for another space: got %v", err)
		}
		if err := exec(h.Permit(touch.Action()), "input"); !errors.Is(err, policy.ErrPermitMismatch) {
			t.Errorf("with input that was not permitted: got %v", err)
		}
		a := touch.Action()
		a.Stdin = event.DigestOf([]byte("input"))
		for _, other := range []string{"", "inpu", "Input", "input\n"} {
			if err := exec(h.Permit(a), other); !errors.Is(err, policy.ErrPermitMismatch) {
				t.Errorf("with the input %q instead: got %v", other, err)
			}
		}
		if _, err := os.Lstat(filepath.Join(spec.Dir, "ran")); err == nil {
			t.Error("the command ran")
		}
		p := h.Permit(a)
		if err := exec(p, "input"); err != nil {
			t.Error(err)
		}
		if err := exec(p, "input"); !errors.Is(err, policy.ErrPermitSpent) {
			t.Errorf("with a spent permit: got %v", err)
		}
	}},
	{"one permit, one start", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		p := h.Permit(Shell(spec.ID, "echo x >>ran").Action())
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { _, _ = s.Exec(t.Context(), p, nil, func(string, []byte) error { return nil }) })
		}
		all.Wait()
		if b, err := os.ReadFile(filepath.Join(spec.Dir, "ran")); err != nil || string(b) != "x\n" {
			t.Errorf("ran: got %q, %v, want once", b, err)
		}
	}},
}

// lifeCases are about spaces as a whole.
var lifeCases = []testCase{
	{"files outlive the space's processes", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		h.Exec(t, s, Shell(spec.ID, "mkdir d; echo kept >d/f; echo lost >/tmp/f"))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = h.Create(t, spec)
		if r := h.Exec(t, s, Shell(spec.ID, "cat d/f; cat /tmp/f 2>/dev/null || echo gone")); r.Stdout != "kept\ngone\n" {
			t.Errorf("got %+v", r)
		}
	}},
	{"files are shared with the outside", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		if err := os.WriteFile(filepath.Join(spec.Dir, "in"), []byte("from outside"), 0o644); err != nil {
			t.Fatal(err)
		}
		h.Exec(t, s, Shell(spec.ID, "tr a-z A-Z <in >out"))
		if b, err := os.ReadFile(filepath.Join(spec.Dir, "out")); err != nil || string(b) != "FROM OUTSIDE" {
			t.Errorf("got %q, %v", b, err)
		}
	}},
	{"neighbours do not see each other", space.Concurrency, func(t *testing.T, h Host) {
		a, b := h.Spec(t), h.Spec(t)
		one, two := h.Create(t, a), h.Create(t, b)
		wait := h.start(t, t.Context(), one, Shell(a.ID, "echo secret >/tmp/s; echo secret >s; echo up; while [ ! -e go ]; do sleep 0.01; done"))
		r := h.Exec(t, two, Shell(b.ID,
			"cat /tmp/s s 2>/dev/null; ls /workspace /tmp; for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo; done"))
		if strings.Contains(r.Stdout, "secret") || strings.Contains(r.Stdout, "go ]") {
			t.Errorf("the neighbour shows:\n%s", r.Stdout)
		}
		if err := two.Close(); err != nil {
			t.Error(err)
		}
		h.Exec(t, one, Shell(a.ID, "touch go"))
		if r, err := wait(); err != nil || r.Code != 0 {
			t.Errorf("after the neighbour's end: got %+v, %v", r, err)
		}
	}},
	{"one instance of a space at a time", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		h.Create(t, spec)
		if s, err := h.Tier.Create(t.Context(), h.CreatePermit(t, spec), spec); fault.CodeOf(err) != "space_running" {
			t.Errorf("got %v, %v, want space_running", s, err)
		}
	}},
	{"a space whose creation is cancelled leaves nothing", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if s, err := h.Tier.Create(ctx, h.CreatePermit(t, spec), spec); err == nil {
			_ = s.Close()
			t.Error("a space was made")
		}
		h.Create(t, spec)
	}},
	{"a space without its folder", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		spec.Dir = filepath.Join(spec.Dir, "missing")
		if s, err := h.Tier.Create(t.Context(), h.CreatePermit(t, spec), spec); fault.CodeOf(err) != "space_not_started" {
			t.Errorf("got %v, %v, want space_not_started", s, err)
		}
	}},
	{"usage", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		h.Exec(t, s, Shell(spec.ID, "head -c 1m /dev/zero >f; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"))
		u, err := s.Usage(t.Context())
		if err != nil || u.DiskBytes < 1<<20 || u.DiskBytes > 2<<20 {
			t.Errorf("got %+v, %v, want a little over 1 MiB of disk", u, err)
		}
		if !h.lacks("memory_bytes") && u.MemoryBytes <= 0 || !h.lacks("cpu_millis") && u.CPUMicros <= 0 {
			t.Errorf("got %+v, want memory and processor time", u)
		}
	}},
	{"unenforced bounds are named", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		want := slices.Clone(h.Unenforced)
		slices.Sort(want)
		if got := s.Unenforced(); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}},
	{"a bound that cannot be enforced", "", func(t *testing.T, h Host) {
		if len(h.Unenforced) == 0 {
			t.Log("this host enforces every bound")
			return
		}
		spec := h.Spec(t)
		spec.BestEffort = false
		s, err := h.Tier.Create(t.Context(), h.CreatePermit(t, spec), spec)
		if fault.CodeOf(err) != "bound_not_enforceable" || !slices.ContainsFunc(h.Unenforced, func(b string) bool {
			return strings.Contains(err.Error(), b)
		}) {
			t.Errorf("got %v, %v, want bound_not_enforceable with the name of one of %v", s, err, h.Unenforced)
		}
	}},
	{"many at once", "", func(t *testing.T, h Host) {
		const n = 12
		var all sync.WaitGroup
		for range n {
			spec := h.Spec(t)
			all.Go(func() {
				s, err := h.Tier.Create(t.Context(), h.CreatePermit(t, spec), spec)
				if err != nil {
					t.Error(err)
					return
				}
				if r, err := h.TryExec(t.Context(), s, Shell(spec.ID, "echo $OWN")); err != nil || r.Stdout != "space\n" {
					t.Errorf("got %+v, %v", r, err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}},
	{"reaping spares what is wanted", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		if err := h.Tier.Reap(t.Context(), []id.Space{spec.ID}); err != nil {
			t.Error(err)
		}
		if err := h.Tier.Reap(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if r := h.Exec(t, s, Shell(spec.ID, "echo alive")); r.Stdout != "alive\n" {
			t.Errorf("got %+v", r)
		}
	}},
}
