package program_test

import (
	"runtime"
	"testing"
	"time"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/program"
)

func account() *bound.Account {
	return bound.New(bound.Limits{Gas: 1 << 40, Time: time.Hour, MemoryBytes: 1 << 30, OutputBytes: 1 << 20, FileBytes: 1 << 20, OpenFiles: 16,
		Depth: 1000}, [32]byte{1}, time.Unix(1e9, 0))
}

// TestAStopComesDownTheStack stops the last of many programs that have started each other. On its way down, the stop leaves behind it
// what it has come through: else each level would go through all the others again.
func TestAStopComesDownTheStack(t *testing.T) {
	a := account()
	const levels = 200
	depths := make([]int, levels)
	var start func(level int)
	start = func(level int) {
		program.Run(program.Func(func(p *program.Process) int {
			defer func() { depths[level] = runtime.Callers(0, make([]uintptr, 100*levels)) }()
			if level == levels-1 {
				a.Stop(&bound.Stopped{TimedOut: true})
				p.Charge(1)
			}
			start(level + 1)
			return 0
		}), &program.Process{Account: a})
	}
	if s, ok := program.Catch(func() { start(0) }).(*bound.Stopped); !ok || !s.TimedOut {
		t.Fatalf("got %v, want what stopped the account", s)
	}
	for i := range levels - 1 {
		if depths[i] >= depths[i+1] {
			t.Fatalf("at level %d the stack has %d functions, at level %d it had %d", i, depths[i], i+1, depths[i+1])
		}
	}
}

// TestCatchLetsDefectsGoOn keeps a defect of Go's own from being taken for something that a program throws.
func TestCatchLetsDefectsGoOn(t *testing.T) {
	defer func() {
		if _, defect := recover().(runtime.Error); !defect {
			t.Error("the defect was caught")
		}
	}()
	program.Catch(func() { var list []int; _ = list[len(list)] })
}

// TestAListKeepsItsOrder goes beyond several of the pieces in which a list grows.
func TestAListKeepsItsOrder(t *testing.T) {
	var l program.List[int]
	const n = 10_000
	for i := range n {
		if l.Len() != i {
			t.Fatalf("got %d elements, want %d", l.Len(), i)
		}
		l.Append(i)
	}
	at := 0
	for _, block := range l.Blocks() {
		for _, v := range block {
			if v != at || *l.At(at) != at {
				t.Fatalf("element %d: got %d and %d", at, v, *l.At(at))
			}
			at++
		}
	}
	if at != n {
		t.Errorf("got %d elements, want %d", at, n)
	}
}
