package cmdline

import (
	"testing"

	"agentbox/internal/domain/fault"
)

// TestExitCodes gives every kind of fault its own code, and tells a refusal by policy from one at the door.
func TestExitCodes(t *testing.T) {
	for kind, want := range kinds {
		if got := ExitCode(fault.New(kind, "x", "x")); got != want {
			t.Errorf("exitCode(%v): got %d, want %d", kind, got, want)
		}
	}
	for kind := fault.Internal; kind <= fault.Unavailable; kind++ {
		if _, ok := kinds[kind]; !ok {
			t.Errorf("%v has no exit code", kind)
		}
	}
	if got := ExitCode(fault.New(fault.Denied, "kill_switch_active", "x")); got != ExitRefused {
		t.Errorf("got %d, want %d", got, ExitRefused)
	}
}
