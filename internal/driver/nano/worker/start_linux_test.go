package worker

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAWorkerThatEndedWhileItWasIdleCostsNoExecution kills all idle workers of a pool, as a host does whose memory is short. The next
// executions have new workers.
func TestAWorkerThatEndedWhileItWasIdleCostsNoExecution(t *testing.T) {
	for name, text := range map[string]string{"an order": "hi", "an order in parts": strings.Repeat("x", 3*piece)} {
		p, starts := latePool(t, 1, 0)
		if got, err := input(t.Context(), p, text); err != nil || got != text {
			t.Fatalf("%s: got %d bytes, %v", name, len(got), err)
		}
		w := <-p.idle
		w.kill()
		if err := unix.Waitid(unix.P_PID, w.command.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
			t.Fatal(err)
		}
		p.idle <- w
		if got, err := input(t.Context(), p, text); err != nil || got != text {
			t.Errorf("%s: got %d bytes, %v", name, len(got), err)
		}
		if n := starts(); n != 2 {
			t.Errorf("%s: there were %d starts, want 2", name, n)
		}
	}
}
