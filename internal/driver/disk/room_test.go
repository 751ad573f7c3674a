package disk

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/room"
)

// TestRoom is about both sides of the edge, and about a disk that says nothing.
func TestRoom(t *testing.T) {
	for _, c := range []struct {
		free  uint64
		known bool
		want  error
	}{{MinRoom, true, nil}, {MinRoom - 1, true, space.ErrDiskFull}, {0, true, space.ErrDiskFull}, {0, false, nil}} {
		if err := enough("/data/content", c.free, c.known); !errors.Is(err, c.want) || err != nil &&
			(!strings.Contains(err.Error(), "/data/content has ") || !strings.Contains(err.Error(), "at least 1024 KiB are needed")) {
			t.Errorf("%d bytes are free, known %t: %v, want %v", c.free, c.known, err, c.want)
		}
	}
	if _, known := room.Free(t.TempDir()); !known {
		t.Error("the disk does not say how much is free")
	}
}

// TestAFullDiskIsNamed is about a write for which the disk had no room.
func TestAFullDiskIsNamed(t *testing.T) {
	dir := t.TempDir()
	err := stored(&fs.PathError{Op: "write", Path: filepath.Join(dir, "content"), Err: syscall.ENOSPC})
	if !errors.Is(err, space.ErrDiskFull) || !strings.Contains(err.Error(), "the disk that holds "+dir+" is full: it has ") ||
		!strings.Contains(err.Error(), " KiB free") {
		t.Errorf("got %v, want the folder and what is free", err)
	}
	if err := stored(syscall.EDQUOT); !errors.Is(err, space.ErrDiskFull) || !strings.Contains(err.Error(), "the data directory") {
		t.Errorf("without a path: got %v", err)
	}
}
