package runs

import (
	"strings"
	"testing"

	"agentbox/internal/domain/space"
)

// TestABoundIsToldWithItsNumbers: what a person reads about a bound is what ended the command, whichever of its numbers was reached.
func TestABoundIsToldWithItsNumbers(t *testing.T) {
	l := space.Limits{MemoryBytes: 11, OutputBytes: 12, DiskBytes: 1 << 30, Pids: 14, FileBytes: 15}
	for limit, want := range map[string][]string{
		"memory_bytes": {"11 bytes"}, "output_bytes": {"12 bytes"}, "disk_bytes": {"1073741824 bytes", "262144 files"},
		"folder_depth": {"more than 255 deep"}, "pids": {"14 processes"}, "file_bytes": {"15 bytes"}, "gas": {"the limit gas"},
	} {
		for _, part := range want {
			if got := limitError(limit, l); !strings.Contains(got, part) {
				t.Errorf("%s: %q does not say %q", limit, got, part)
			}
		}
	}
}
