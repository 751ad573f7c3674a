package nano

import (
	"errors"
	"testing"

	"agentbox/internal/userland/program"
)

// TestRehearsal: a worker rehearses what it has, and does not come up with an interpreter that does not run.
func TestRehearsal(t *testing.T) {
	rests := 0
	system := func(table program.Table) *system {
		s := newSystem(&guests{table: table})
		s.rest = func() error { rests++; return nil }
		return s
	}
	if err := system(nil).rehearse(); err != nil || rests != 2 {
		t.Errorf("without interpreters: %v, and it rested %d times, want 2", err, rests)
	}
	ran := 0
	works := program.Func(func(p *program.Process) int { ran++; _, _ = p.Out().WriteString("1\n"); return 0 })
	if err := system(program.Table{"python3": works, "js": works}).rehearse(); err != nil || ran != 3 {
		t.Errorf("with both: %v, and %d of them ran", err, ran)
	}
	if err := system(program.Table{"python3": notReady(pythonName)}).rehearse(); err != nil {
		t.Errorf("with one that is being prepared: %v", err)
	}
	for _, bad := range []program.Func{func(*program.Process) int { return 1 }, func(*program.Process) int { panic(errors.New("a defect")) }} {
		if err := system(program.Table{"js": bad}).rehearse(); err == nil {
			t.Error("a worker comes up with an interpreter that does not run")
		}
	}
}
