package wire

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"syscall"
	"testing"

	"agentbox/internal/domain/fault"
)

// TestWhatPassesIsNoInternalError holds what has nothing to do with the request against its status, however deep it lies.
func TestWhatPassesIsNoInternalError(t *testing.T) {
	for _, c := range []struct {
		err    error
		code   string
		status int
		after  int64
	}{
		{&os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}, "descriptors_exhausted", http.StatusServiceUnavailable, 5},
		{fault.Wrap(os.NewSyscallError("socket", syscall.ENFILE), fault.Internal, "space_broken", "no"), "descriptors_exhausted",
			http.StatusServiceUnavailable, 5},
		{fmt.Errorf("read: %w", context.Canceled), "request_abandoned", http.StatusServiceUnavailable, 1},
		{&os.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, "internal_error", http.StatusInternalServerError, 0},
		{context.DeadlineExceeded, "internal_error", http.StatusInternalServerError, 0},
	} {
		if p := ProblemOf(c.err, "req"); p.Code != c.code || p.Status != c.status || p.RetryAfter != c.after {
			t.Errorf("%v: got %s %d %d, want %s %d %d", c.err, p.Code, p.Status, p.RetryAfter, c.code, c.status, c.after)
		}
	}
}
