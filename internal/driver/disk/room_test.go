package disk

import (
	"errors"
	"testing"

	"agentbox/internal/domain/space"
)

// TestRoom is about both sides of the edge, and about a disk that says nothing.
func TestRoom(t *testing.T) {
	for _, c := range []struct {
		free  uint64
		known bool
		want  error
	}{{MinRoom, true, nil}, {MinRoom - 1, true, space.ErrDiskFull}, {0, true, space.ErrDiskFull}, {0, false, nil}} {
		if err := room(c.free, c.known); !errors.Is(err, c.want) {
			t.Errorf("%d bytes are free, known %t: %v, want %v", c.free, c.known, err, c.want)
		}
	}
	if _, known := free(t.TempDir()); !known {
		t.Error("the disk does not say how much is free")
	}
}
